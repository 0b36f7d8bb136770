//! What of a process's memory is laid open unasked: that of the GNU C library's malloc, in a process whose memory nothing but its own code uses.
//!
//! Of such memory everything that may happen to it is known: its owner uses it through pointers, and malloc takes none of it for zero that it has not
//! got anew from the kernel. Other memory may have a meaning that a memory file has not: other allocators take it for zero after
//! MADV_DONTNEED, and a device or the kernel may hold the pages themselves.

use procfs::process::{FDTarget, MMPermissions, MMapPath, MemoryMap, Process};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;

const PAGE_BYTES: u64 = 4 << 10;
/// In the size of malloc's blocks: this one is a mapping. The others of the low bits are not set then.
const IS_MMAPPED: u64 = 2;
const FLAGS: u64 = 7;
/// Pages that are looked at in an area, besides those that blocks begin with.
const MOST_PAGES: u32 = 1 << 12;
/// Devices that take no pages of who opens them.
const HARMLESS: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts/",
    "/dev/random",
    "/dev/urandom",
    "/dev/shm/",
];

/// Private, anonymous, writable memory without a name, or the heap.
pub(super) fn is_plain(map: &MemoryMap) -> bool {
    map.perms == MMPermissions::READ | MMPermissions::WRITE | MMPermissions::PRIVATE
        && map.inode == 0
        && matches!(map.pathname, MMapPath::Anonymous | MMapPath::Heap)
}

/// What of `wanted` is malloc's and not yet in the file: of the heap, and of blocks that are mapped each by itself. `is_moved`: an area lies in the file.
pub(super) fn in_maps(
    maps: &[MemoryMap],
    wanted: &Range<u64>,
    is_moved: impl Fn(&MemoryMap) -> bool,
) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    // A block of which a part has been moved is several areas.
    let belong = |one: &MemoryMap, next: &MemoryMap| one.address.1 == next.address.0;
    let is_memory = |map: &MemoryMap| (is_plain(map) && map.pathname != MMapPath::Heap) || is_moved(map);
    for run in maps.chunk_by(|one, next| belong(one, next) && is_memory(one) && is_memory(next)) {
        let (start, end) = (run[0].address.0, run[run.len() - 1].address.1);
        if end <= wanted.start || start >= wanted.end {
            continue;
        }
        let parts = match run {
            [heap] if heap.pathname == MMapPath::Heap && is_plain(heap) => std::iter::once(start..end).collect(),
            _ if is_memory(&run[0]) => blocks_in(start..end, wanted),
            _ => continue,
        };
        for map in run.iter().filter(|map| is_plain(map)) {
            found.extend(parts.iter().map(|part| part.start.max(map.address.0)..part.end.min(map.address.1)));
        }
    }
    clipped(found, wanted)
}

/// What of these parts lies in `wanted`.
pub(super) fn clipped(parts: Vec<Range<u64>>, wanted: &Range<u64>) -> Vec<Range<u64>> {
    let clip = |part: Range<u64>| part.start.max(wanted.start)..part.end.min(wanted.end);
    parts.into_iter().map(clip).filter(|part| part.start < part.end).collect()
}

/// The blocks of malloc, each mapped by itself, that have a part in `wanted`. The area is readable memory of this process.
fn blocks_in(area: Range<u64>, wanted: &Range<u64>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let (mut at, mut others) = (area.start, 0);
    while at < area.end.min(wanted.end) && others < MOST_PAGES {
        // SAFETY: readable memory of the process, `at` is a multiple of pages inside it; another thread may unmap it only if there is one (the caller has looked).
        let [before, size] = unsafe { (at as *const [u64; 2]).read_volatile() };
        match block_bytes(before, size, area.end - at) {
            Some(bytes) => {
                if at + bytes > wanted.start {
                    found.push(at..at + bytes);
                }
                at += bytes;
            }
            None => {
                at += PAGE_BYTES;
                others += 1;
            }
        }
    }
    found
}

/// Does a page begin a block of malloc's own mapping, and of how many bytes? It holds nothing of a block before, and a size of whole pages with the flag.
fn block_bytes(before: u64, size: u64, room: u64) -> Option<u64> {
    let bytes = size & !FLAGS;
    (before == 0 && size & FLAGS == IS_MMAPPED && bytes != 0 && bytes.is_multiple_of(PAGE_BYTES) && bytes <= room)
        .then_some(bytes)
}

/// As `are_its_own`, of this process now.
pub(super) fn may_be_moved() -> bool {
    Process::myself().is_ok_and(|process| {
        process.maps().is_ok_and(|maps| are_its_own(&process, &maps.into_iter().collect::<Vec<MemoryMap>>()))
    })
}

/// Does nothing but this process use its memory, as far as can be seen? Not so where a device is open that could have its pages (a graphics card, an RDMA adapter), where the kernel reads and writes
/// for it in the background (io_uring, aio), or where memory must stay in place (mlock).
pub(super) fn are_its_own(process: &Process, maps: &[MemoryMap]) -> bool {
    let is_ring =
        |path: &MMapPath| matches!(path, MMapPath::Path(path) if path.to_string_lossy().starts_with("/[aio]"));
    let kernel = maps.iter().any(|map| is_ring(&map.pathname));
    let locked = || process.status().map_or(true, |status| status.vmlck.is_none_or(|kb| kb != 0));
    !kernel
        && !locked()
        && is_malloc_the_librarys()
        && process.fd().is_ok_and(|all| all.flatten().all(|fd| is_harmless(&fd.target)))
}

/// Or is there another one before it (jemalloc, an address sanitizer)?
fn is_malloc_the_librarys() -> bool {
    let library_of = |function: *const c_void| {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: `info` is written to if there is such a function; zeros are a value of it, too.
        unsafe {
            libc::dladdr(function, info.as_mut_ptr());
            info.assume_init().dli_fbase
        }
    };
    // SAFETY: looks up a name that each process has.
    let malloc = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr()) };
    library_of(malloc) == library_of(libc::gnu_get_libc_version as *const c_void)
}

fn is_harmless(target: &FDTarget) -> bool {
    match target {
        FDTarget::Path(path) => {
            !path.starts_with("/dev") || HARMLESS.iter().any(|name| path.to_str().is_some_and(|p| p.starts_with(name)))
        }
        FDTarget::AnonInode(kind) => !kind.contains("io_uring") && !kind.contains("userfaultfd"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(parts: Vec<Range<u64>>) -> Vec<(u64, u64)> {
        parts.into_iter().map(|part| (part.start, part.end)).collect()
    }

    fn found(start: u64, end: u64) -> Vec<(u64, u64)> {
        let maps: Vec<MemoryMap> = Process::myself().unwrap().maps().unwrap().into_iter().collect();
        ends(in_maps(&maps, &(start..end), |_| false))
    }

    #[test]
    fn what_malloc_has_is_found_and_nothing_else() {
        const BYTES: usize = 5 << 20;
        // SAFETY: plain allocations, looked at while they live.
        unsafe {
            let blocks = [libc::malloc(BYTES), libc::memalign(64, BYTES), libc::malloc(3 * BYTES)].map(|p| p as u64);
            for block in blocks {
                let end = block + BYTES as u64;
                assert_eq!(found(block, end), [(block, end)]);
                assert_eq!(found(end - 7, end), [(end - 7, end)]);
            }
            for block in blocks {
                libc::free(block as *mut libc::c_void);
            }
            let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let own = libc::mmap(std::ptr::null_mut(), BYTES, prot, flags, -1, 0);
            assert_ne!(own, libc::MAP_FAILED);
            assert_eq!(found(own as u64, own as u64 + BYTES as u64), []);
            libc::munmap(own, BYTES);
            let heap = libc::sbrk(0) as u64;
            assert_eq!(found(heap - 4096, heap), [(heap - 4096, heap)]);
        }
        let local = [0u8; 64];
        assert_eq!(found(local.as_ptr() as u64, local.as_ptr() as u64 + 64), []);
    }

    #[test]
    fn a_block_of_which_a_part_lies_open_is_found_whole() {
        const BYTES: u64 = 5 << 20;
        // SAFETY: as above.
        unsafe {
            let block = libc::malloc(BYTES as usize) as u64;
            let (begin, end) = (block - 16, block - 16 + BYTES + PAGE_BYTES);
            let map = |from: u64, to: u64| MemoryMap {
                address: (from, to),
                perms: MMPermissions::READ | MMPermissions::WRITE | MMPermissions::PRIVATE,
                offset: 0,
                dev: (0, 0),
                inode: 0,
                pathname: MMapPath::Anonymous,
                extension: Default::default(),
            };
            let middle = begin + 4096 * 100;
            let shared = MemoryMap {
                perms: MMPermissions::READ | MMPermissions::WRITE | MMPermissions::SHARED,
                ..map(begin, middle)
            };
            let maps = [shared, map(middle, end)];
            let wanted = begin..end;
            let open = |map: &MemoryMap| map.perms.contains(MMPermissions::SHARED);
            assert_eq!(ends(in_maps(&maps, &wanted, open)), [(middle, end)]);
            assert_eq!(ends(in_maps(&maps, &wanted, |_| false)), [], "it begins in an area of another kind");
            libc::free(block as *mut libc::c_void);
        }
    }

    #[test]
    fn a_block_says_its_size() {
        assert_eq!(block_bytes(0, 0x21000 | 2, 0x21000), Some(0x21000));
        for (before, size, room) in [
            (0, 0, 1 << 20),
            (0, 2, 1 << 20),
            (0, 0x21000, 1 << 20),
            (0, 0x21000 | 3, 1 << 20),
            (0, 0x21000 | 6, 1 << 20),
            (16, 0x21000 | 2, 1 << 20),
            (0, 0x21010 | 2, 1 << 20),
            (0, 0x21000 | 2, 0x20000),
        ] {
            assert_eq!(block_bytes(before, size, room), None, "{before} {size:x} {room:x}");
        }
    }

    #[test]
    fn what_may_have_pages_is_known() {
        for (name, harmless) in [
            ("/dev/null", true),
            ("/dev/pts/3", true),
            ("/dev/shm/vmpi-1", true),
            ("/dev/nvidia0", false),
            ("/dev/infiniband/uverbs0", false),
            ("/dev/kfd", false),
            ("/devices/file", true),
            ("/tmp/dev", true),
        ] {
            assert_eq!(is_harmless(&FDTarget::Path(name.into())), harmless, "{name}");
        }
        assert!(!is_harmless(&FDTarget::AnonInode("[io_uring]".into())));
        assert!(is_harmless(&FDTarget::AnonInode("[eventfd]".into())));
        let process = Process::myself().unwrap();
        let maps: Vec<MemoryMap> = process.maps().unwrap().into_iter().collect();
        assert!(are_its_own(&process, &maps));
    }
}
