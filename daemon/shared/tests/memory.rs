//! Slab blocks against a naive model, and what mapping refuses.

#![cfg(not(feature = "model"))]

use memfd::{FileSeal, MemfdOptions};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use vmpi_shared::control::{Balance, OnBlock, Policy, Wtime};
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::mem::chunks::CHUNK_BYTES;
use vmpi_shared::mem::slab::{CLASS_BYTES, PART_BYTES, class_of};
use vmpi_shared::node::{NodeConfig, NodeSegment, Patience};

fn job(ranks: u32, slab_bytes: u64) -> JobSegment {
    let small = JobConfig {
        ranks,
        inbox_cells: 4,
        slots: 4,
        unexpected: 4,
        slab_bytes,
        cells: 1,
        chunks: 1,
        ..JobConfig::default()
    };
    JobSegment::create(&small).unwrap()
}

fn node() -> NodeSegment {
    NodeSegment::create(&NodeConfig {
        job: 1,
        ranks: 3,
        v: 2,
        cpus: vec![0, 1],
        placement: vec![0, 0, 1],
        policy: Policy::Rr,
        balance: Balance::None,
        own_cores: 1,
        bind: false,
        on_block: OnBlock::Release,
        wtime: Wtime::Wall,
        quantum_ms: 0,
        recovery: false,
        answers_first: false,
        patience: Patience::default(),
    })
    .unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Take(u64),
    Give(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![0..600u64, 500..9000u64, 9000..140_000u64];
    prop_oneof![2 => len.prop_map(Step::Take), 1 => any::<prop::sample::Index>().prop_map(Step::Give)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Blocks lie in the region and never overlap, hold what was asked for, keep their contents, and run out only when
    /// neither a block of the class has come back nor the untouched rest suffices.
    #[test]
    fn slab_blocks_are_disjoint(steps in prop::collection::vec(step(), 1..150)) {
        let job = job(2, 1 << 20);
        let slab = job.slab(1);
        // Offset -> (length asked for, stamp); blocks at hand by class; bytes touched.
        let mut live: BTreeMap<u64, (u64, u8)> = BTreeMap::new();
        let mut spare = [0; CLASS_BYTES.len()];
        let mut touched = 0;
        for (stamp, step) in steps.into_iter().enumerate() {
            match step {
                Step::Take(len) => {
                    let taken = slab.take(len);
                    let Some(class) = class_of(len) else {
                        prop_assert_eq!(taken, None);
                        continue;
                    };
                    let size = CLASS_BYTES[class];
                    // The last quarter is for blocks of less than 64 KiB.
                    let room = if size < PART_BYTES { slab.bytes() } else { slab.bytes() / 4 * 3 };
                    prop_assert_eq!(taken.is_some(), spare[class] > 0 || touched + size <= room);
                    let Some(block) = taken else { continue };
                    if spare[class] > 0 { spare[class] -= 1 } else { touched += size }
                    prop_assert!(block >= slab.start && block + size <= slab.start + slab.bytes());
                    if let Some((before, (len, _))) = live.range(..=block).next_back() {
                        prop_assert!(before + CLASS_BYTES[class_of(*len).unwrap()] <= block, "overlap");
                    }
                    if let Some((after, _)) = live.range(block..).next() {
                        prop_assert!(block + size <= *after, "overlap");
                    }
                    let at = job.block(1, block, size).expect("inside the slab");
                    prop_assert!(job.block(0, block, size).is_none(), "of another rank");
                    // SAFETY: `size` bytes of a block that was just taken.
                    unsafe { at.write_bytes(stamp as u8, size as usize) };
                    live.insert(block, (len, stamp as u8));
                }
                Step::Give(which) => {
                    if live.is_empty() { continue }
                    let block = *live.keys().nth(which.index(live.len())).unwrap();
                    let (len, stamp) = live.remove(&block).unwrap();
                    let class = class_of(len).unwrap();
                    let at = job.block(1, block, CLASS_BYTES[class]).unwrap();
                    // SAFETY: as above.
                    let bytes = unsafe { std::slice::from_raw_parts(at, CLASS_BYTES[class] as usize) };
                    prop_assert!(bytes.iter().all(|byte| *byte == stamp), "somebody wrote into a block in use");
                    slab.give(block, len);
                    spare[class] += 1;
                }
            }
        }
    }

    /// A rank that attaches later finds a header that another rank of its job has scribbled over: an error or a segment
    /// whose parts are inside the mapping, never a panic.
    #[test]
    fn mapping_survives_a_scribbled_header(words in prop::collection::vec((4..40usize, scribble()), 1..4)) {
        if let Ok(job) = JobSegment::map(scribbled(job(2, 4096).fd(), &words)) {
            for rank in 0..job.config().ranks.min(4) {
                prop_assert!(!job.inbox(rank).has_mail());
                prop_assert!(job.block(rank, job.slab(rank).start, job.config().slab_bytes).is_some());
            }
        }
        if let Ok(node) = NodeSegment::map(scribbled(node().fd(), &words)) {
            // Other counts may put the sets where other data lies: reading them is all that must go well.
            (0..node.header().cores).for_each(|core| _ = std::hint::black_box(node.ready_count(core)));
            (0..node.header().ranks).for_each(|rank| assert!(node.core_of(rank) < node.header().cores));
        }
    }
}

/// Values that a header word may be overwritten with.
fn scribble() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), Just(1 << 31), any::<u32>(), 0..100u32]
}

/// A sealed copy of a segment with 32-bit words of its head replaced (the first 4 words are magic and layout).
fn scribbled(fd: std::os::fd::BorrowedFd<'_>, words: &[(usize, u32)]) -> OwnedFd {
    let mut bytes = contents(fd);
    for (at, value) in words {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_ne_bytes());
    }
    file(&bytes, true)
}

fn contents(fd: std::os::fd::BorrowedFd<'_>) -> Vec<u8> {
    let mut file = std::fs::File::from(fd.try_clone_to_owned().unwrap());
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn file(bytes: &[u8], sealed: bool) -> OwnedFd {
    let memfd = MemfdOptions::default().allow_sealing(true).create("test").unwrap();
    memfd.as_file().write_all(bytes).unwrap();
    if sealed {
        memfd.add_seals(&[FileSeal::SealShrink, FileSeal::SealGrow]).unwrap();
    }
    memfd.into_file().into()
}

/// Payloads for which the region has no block, in chunks.
#[test]
fn payloads_beyond_the_region_lie_apart_and_their_memory_is_given_back() {
    const LEN: u64 = 2000;
    let config = JobConfig {
        ranks: 2,
        inbox_cells: 4,
        slots: 4,
        slab_bytes: 8192,
        cells: 1,
        chunks: 64,
        ..JobConfig::default()
    };
    let job = JobSegment::create(&config).unwrap();
    let kept = || nix::sys::stat::fstat(job.fd()).unwrap().st_blocks * 512;
    let (slab, before) = (job.slab(1), kept());
    let mut taken: Vec<u64> = std::iter::from_fn(|| slab.take_or_put(1, LEN)).collect();
    let in_region = taken.iter().filter(|offset| (slab.start..slab.start + slab.bytes()).contains(offset)).count();
    // The last chunks are for messages themselves.
    let (used, limit) = job.chunks().used_bytes();
    assert!(in_region == 4 && used * 8 >= limit * 7 && used < limit, "{in_region}, {used} of {limit}");
    assert_eq!((slab.take_or_put(1, LEN), slab.take_or_put(1, PART_BYTES + 1)), (None, None));
    for (stamp, offset) in taken.iter().enumerate() {
        // SAFETY: so many bytes, which are nobody else's.
        unsafe { job.block(1, *offset, LEN).unwrap().write_bytes(stamp as u8, LEN as usize) };
    }
    assert!(kept() - before > (used / 2) as i64);
    fastrand::shuffle(&mut taken[in_region..]);
    let stamps: BTreeMap<u64, u8> = {
        let mut sorted = taken[in_region..].to_vec();
        sorted.sort_unstable();
        sorted.into_iter().zip(in_region..).map(|(offset, stamp)| (offset, stamp as u8)).collect()
    };
    for (offset, stamp) in &stamps {
        let at = job.block(1, *offset, LEN).unwrap();
        // SAFETY: as above.
        assert!(unsafe { std::slice::from_raw_parts(at, LEN as usize) }.iter().all(|byte| byte == stamp), "{offset}");
    }
    taken.iter().for_each(|offset| slab.give(*offset, LEN));
    assert!(job.chunks().used_bytes().0 <= CHUNK_BYTES, "what the sender fills stays its own");
    assert!(kept() - before <= 20 * CHUNK_BYTES as i64, "{} of {used}", kept() - before);
    let outside = slab.start + slab.bytes();
    assert!(job.block(1, outside, 1).is_none() && job.block(1, u64::MAX - 3, 8).is_none());
}

#[test]
fn mapping_refuses_what_is_not_the_segment() {
    let (job, node) = (job(2, 4096), node());
    let (job_bytes, node_bytes) = (contents(job.fd()), contents(node.fd()));
    let maps = |bytes: &[u8], sealed| {
        (JobSegment::map(file(bytes, sealed)).is_ok(), NodeSegment::map(file(bytes, sealed)).is_ok())
    };
    assert_eq!(maps(&job_bytes, true), (true, false), "each kind maps as itself only");
    assert_eq!(maps(&node_bytes, true), (false, true));
    for good in [&job_bytes, &node_bytes] {
        assert_eq!(maps(good, false), (false, false), "not sealed: a peer could shrink it under our feet");
        assert_eq!(maps(&good[..good.len() - 4096], true), (false, false), "too short");
        let longer: Vec<u8> = good.iter().copied().chain([0; 4096]).collect();
        assert_eq!(maps(&longer, true), (false, false), "too long");
        assert_eq!(maps(&good[..16], true), (false, false), "hardly anything");
        let mut other = good.clone();
        other[0] ^= 1;
        assert_eq!(maps(&other, true), (false, false), "magic");
        let mut other = good.clone();
        other[8] ^= 1;
        assert_eq!(maps(&other, true), (false, false), "layout of another version");
    }
    assert_eq!(maps(&[], true), (false, false));
}
