//! An unmodified program's memory, laid open to the job's other ranks (`VMPI_MAP_MEMORY=1`; off otherwise).
//!
//! The kernel's copy from process to process looks up and pins each page; a copy between two mappings of the same memory does not. So
//! memory through which many bytes of messages have gone is moved, where it is, into a memory file: the file's page at offset A holds what
//! the process has at address A. The others map the file (`vmpi_shared::matching::heap`) and copy by themselves.
//!
//! What makes it safe, and what it costs:
//! - Memory is moved while no message is under way and no window exists, so nobody else writes to it, by the only thread, with signals blocked.
//! - Only private, anonymous, writable memory without a name, or the heap, is moved. Pages that hold zeros take no memory in the file.
//! - Before each message the kernel is asked (PROCMAP_QUERY, Linux 6.11) whether the buffer's addresses still mean the file: a program
//!   frees memory and gets other at the same address. What nothing maps any more is punched out of the file when that is found, or when
//!   more memory is moved; till then it stays used. What could not be punched out is not used again.
//! - A child of fork gets memory of its own before fork returns in it, or is ended; the parent waits for that. What starts a program at
//!   once (posix_spawn, system, popen, vfork) does not copy. A process made by the bare system call shares the memory with its parent: this is why it is off.

use crate::giant::Giant;
use crate::lock::{self, Entered};
use crate::process::endpoint;
use nix::fcntl::OFlag;
use nix::sys::mman::{MRemapFlags, MapFlags, ProtFlags, mmap, mmap_anonymous, mremap, munmap};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};
use std::ffi::c_void;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use vmpi_shared::control::env;

/// A process's addresses are below this, and so is the file's end.
const ADDRESSES: u64 = 1 << 47;
const PAGE_BYTES: u64 = 4 << 10;

static WANTED: LazyLock<bool> = LazyLock::new(|| std::env::var_os(env::MAP_MEMORY).is_some_and(|value| value == "1"));
static HEAP: Giant<Option<Heap>> = Giant::new(None);
/// The file could not be had; it has been said.
static REFUSED: Giant<bool> = Giant::new(false);

/// The file, and what has been moved into it.
struct Heap {
    file: File,
    inode: u64,
    /// This process's memory map, to be asked about.
    maps: File,
    /// Parts of the file that may hold something.
    ranges: Vec<Range<u64>>,
}

/// Does the job want it, and can it be had as far as is known?
#[inline]
pub(super) fn is_wanted() -> bool {
    *WANTED && !REFUSED.with(|refused| *refused)
}

/// May others reach `len` bytes at `addr` through the file?
#[inline]
pub(super) fn holds(addr: u64, len: u64) -> bool {
    is_wanted() && len != 0 && HEAP.with(|heap| heap.as_mut().is_some_and(|heap| heap.holds(addr, len)))
}

/// Move what of `range` can be moved; false if nothing of it lies in the file then. `None`: not now, messages are under way. To be called while it is wanted, which it may not
/// be any more on return.
#[cold]
pub(super) fn move_in(range: Range<u64>) -> Option<bool> {
    if endpoint().queues().head.slots_live != 0 || !crate::rma::is_unused() || !is_alone() {
        return None;
    }
    let moved = HEAP.with(|heap| {
        if heap.is_none() {
            *heap = Heap::new().inspect_err(refuse).ok();
        }
        heap.as_mut().is_some_and(|heap| heap.move_in(range).unwrap_or(false))
    });
    Some(moved)
}

/// The user has asked for it: the first rank of the node says why it cannot be.
fn refuse(why: &std::io::Error) {
    REFUSED.with(|refused| *refused = true);
    let endpoint = endpoint();
    if (0..endpoint.me).all(|rank| endpoint.node.is_remote(rank)) {
        let name = env::MAP_MEMORY;
        eprintln!(
            "vmpi: {name}=1 has no effect on this node: {why}. Large messages are copied by the kernel, as without it."
        );
    }
}

/// Is this thread the only one of its process?
fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}

/// The kernel's `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

nix::ioctl_readwrite!(procmap_query, b'f', 17, Query);

impl Heap {
    fn new() -> std::io::Result<Heap> {
        let other = |error: memfd::Error| std::io::Error::other(error);
        let (limit, _) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_FSIZE)?;
        if limit < ADDRESSES {
            let why = format!("files may have {limit} bytes at most (ulimit -f), the memory file needs {ADDRESSES}");
            return Err(std::io::Error::new(ErrorKind::FileTooLarge, why));
        }
        let file = memfd::MemfdOptions::default()
            .close_on_exec(true)
            .allow_sealing(true)
            .create("vmpi-heap")
            .map_err(other)?;
        file.as_file().set_len(ADDRESSES)?;
        file.add_seals(&[memfd::FileSeal::SealShrink, memfd::FileSeal::SealGrow, memfd::FileSeal::SealSeal])
            .map_err(other)?;
        let file = file.into_file();
        let inode = file.metadata()?.ino();
        let mut heap = Heap { file, inode, maps: File::open("/proc/self/maps")?, ranges: Vec::new() };
        // Asks about this function's own code: an old kernel does not know the question.
        heap.query(Heap::new as *const () as u64).map_err(|errno| {
            std::io::Error::other(format!(
                "the kernel does not tell what lies at an address (PROCMAP_QUERY, Linux 6.11: {errno})"
            ))
        })?;
        // SAFETY: the handlers are functions of this library, which is never unloaded.
        if unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) } != 0 {
            return Err(std::io::Error::from(ErrorKind::OutOfMemory));
        }
        let endpoint = endpoint();
        endpoint.node.rank(endpoint.me).heap_fd.store(heap.file.as_raw_fd() as u32 + 1, Ordering::Release);
        Ok(heap)
    }

    fn query(&mut self, addr: u64) -> nix::Result<Query> {
        let mut query = Query { size: size_of::<Query>() as u64, query_addr: addr, ..Query::default() };
        // SAFETY: the descriptor is that of a memory map, and the kernel writes into `query` only.
        unsafe { procmap_query(self.maps.as_raw_fd(), &raw mut query)? };
        Ok(query)
    }

    fn holds(&mut self, addr: u64, len: u64) -> bool {
        let Some(end) = addr.checked_add(len) else { return false };
        if !self.ranges.iter().any(|range| range.contains(&addr)) {
            return false;
        }
        let mut at = addr;
        while at < end {
            match self.query(at) {
                // Offset and address are the same: nobody has moved it.
                Ok(area) if area.inode == self.inode && area.vma_offset == area.vma_start && area.vma_end > at => {
                    at = area.vma_end
                }
                _ => {
                    if at == addr {
                        // What is wrong with it shows again when memory is moved.
                        let _ = self.sweep();
                    }
                    return false;
                }
            }
        }
        true
    }

    fn is_of_file(&self, map: &MemoryMap) -> bool {
        map.inode == self.inode && map.perms.contains(MMPermissions::SHARED)
    }

    /// Parts of the file that this process maps, wherever.
    fn mapped(&self) -> procfs::ProcResult<(Vec<MemoryMap>, Vec<Range<u64>>)> {
        let maps: Vec<MemoryMap> = Process::myself()?.maps()?.into_iter().collect();
        let of_file = maps.iter().filter(|map| self.is_of_file(map));
        let ranges = of_file.map(|map| map.offset..map.offset + (map.address.1 - map.address.0)).collect();
        Ok((maps, ranges))
    }

    /// Give memory back that nothing maps any more.
    fn sweep(&mut self) -> procfs::ProcResult<Vec<MemoryMap>> {
        let (maps, mut mapped) = self.mapped()?;
        mapped.sort_unstable_by_key(|part| part.start);
        for gap in gaps(&std::mem::take(&mut self.ranges), &mapped) {
            let (at, len) = (gap.start as libc::off_t, (gap.end - gap.start) as libc::off_t);
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: a system call on plain values.
            if unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at, len) } != 0 {
                mapped.push(gap);
            }
        }
        self.ranges = mapped;
        Ok(maps)
    }

    fn move_in(&mut self, wanted: Range<u64>) -> procfs::ProcResult<bool> {
        let maps = self.sweep()?;
        let mut any = self.ranges.iter().any(|part| overlap(part, &wanted));
        for map in &maps {
            let plain = map.perms == MMPermissions::READ | MMPermissions::WRITE | MMPermissions::PRIVATE
                && map.inode == 0
                && matches!(map.pathname, MMapPath::Anonymous | MMapPath::Heap);
            let range = map.address.0.max(wanted.start)..map.address.1.min(wanted.end);
            // What holds nothing is zero, which is what `copy_pages` wants.
            let holds_nothing = |range: &Range<u64>| !self.ranges.iter().any(|part| overlap(part, range));
            if plain && !range.is_empty() && range.end <= ADDRESSES && holds_nothing(&range) {
                any |= self.move_area(range).is_ok();
            }
        }
        Ok(any)
    }

    /// Put the file's pages where the process's own were.
    fn move_area(&mut self, range: Range<u64>) -> nix::Result<()> {
        let len = NonZeroUsize::new((range.end - range.start) as usize).expect("not empty");
        let (mut all, mut before) = (SigSet::all(), SigSet::empty());
        // A handler that writes while the bytes are copied would write in vain.
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), Some(&mut before))?;
        let moved = (|| {
            // SAFETY: a new mapping, of a file that cannot shrink.
            let copy = unsafe {
                let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
                mmap(
                    None,
                    len,
                    prot,
                    MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE,
                    &self.file,
                    range.start as libc::off_t,
                )?
            };
            // SAFETY: the source is this process's, mapped and readable (the caller has looked), and this is its only thread.
            unsafe { copy_pages(range.start as *const u8, copy.as_ptr().cast::<u8>(), len.get()) };
            replace(copy, len, range.start)
        })();
        all = before;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), None)?;
        moved?;
        self.ranges.push(range);
        Ok(())
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// What of `ranges` is in none of `parts`, which are sorted.
fn gaps(ranges: &[Range<u64>], parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    for range in ranges {
        let mut at = range.start;
        for part in parts.iter().filter(|part| overlap(part, range)) {
            if at < part.start {
                gaps.push(at..part.start);
            }
            at = at.max(part.end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
    }
    gaps
}

/// Let the memory at `from` take the place of what is at `to`, in one step; it is gone if that cannot be.
fn replace(from: NonNull<c_void>, len: NonZeroUsize, to: u64) -> nix::Result<()> {
    let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
    // SAFETY: both are whole mappings of this process of that length, and hold the same bytes; nobody else knows the first.
    unsafe {
        mremap(from, len.get(), len.get(), flags, NonNull::new(to as *mut c_void)).map(drop).inspect_err(|_| {
            let _ = munmap(from, len.get());
        })
    }
}

/// Copy `len` bytes, whole pages, to where all is zero: pages that are zero are left alone, so that they take no memory.
///
/// # Safety
/// Both are aligned to pages, valid for `len` bytes, and used by nobody else.
unsafe fn copy_pages(from: *const u8, to: *mut u8, len: usize) {
    const WORDS: usize = PAGE_BYTES as usize / size_of::<u64>();
    for at in (0..len).step_by(PAGE_BYTES as usize) {
        // SAFETY: inside both.
        unsafe {
            let (from, to) = (from.add(at).cast::<[u64; WORDS]>(), to.add(at).cast::<[u64; WORDS]>());
            if (*from).iter().any(|word| *word != 0) {
                *to = *from;
            }
        }
    }
}

/// What fork needs: nothing may be allocated or given back between it and the child's having its own memory, because until then both
/// have the same heap.
struct Forking {
    /// No other thread is in MPI.
    entered: Entered,
    /// Areas of the file, and a pipe; `None`: they could not be had, so no child may go on.
    ready: Option<Ready>,
}

struct Ready {
    areas: Vec<(u64, u64)>,
    /// Ends when nobody holds the other end any more.
    end: File,
    begin: File,
}

static FORKING: Giant<Option<Forking>> = Giant::new(None);

impl Ready {
    fn new(heap: &Heap) -> Option<Ready> {
        let (maps, _) = heap.mapped().ok()?;
        let areas = maps.iter().filter(|map| heap.is_of_file(map)).map(|map| map.address).collect();
        let (end, begin) = nix::unistd::pipe2(OFlag::O_CLOEXEC).ok()?;
        Some(Ready { areas, end: end.into(), begin: begin.into() })
    }
}

extern "C" fn before_fork() {
    let entered = lock::enter();
    let Some(ready) = HEAP.with(|heap| heap.as_ref().map(Ready::new)) else { return };
    FORKING.with(|forking| *forking = Some(Forking { entered, ready }));
}

/// The child has its own copies, or is gone, when nobody writes to the pipe any more.
extern "C" fn in_parent() {
    if let Some(Forking { entered, ready }) = FORKING.with(Option::take) {
        if let Some(Ready { areas, mut end, begin }) = ready {
            drop(begin);
            while end.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
            drop(areas);
        }
        drop(entered);
    }
}

extern "C" fn in_child() {
    let Some(Forking { entered, ready }) = FORKING.with(Option::take) else { return };
    let Some(Ready { areas, end, begin }) = ready else { end_child() };
    for (start, stop) in &areas {
        let len = NonZeroUsize::new((stop - start) as usize).expect("areas are not empty");
        // SAFETY: a new mapping, which then takes the place of what it is a copy of.
        let copied = unsafe {
            let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
            mmap_anonymous(None, len, prot, MapFlags::MAP_PRIVATE).and_then(|copy| {
                copy_pages(*start as *const u8, copy.as_ptr().cast::<u8>(), len.get());
                replace(copy, len, *start)
            })
        };
        if copied.is_err() {
            end_child();
        }
    }
    // This process is no rank: it neither leaves MPI nor has a heap to share.
    std::mem::forget(entered);
    HEAP.with(|heap| drop(heap.take()));
    drop((areas, end, begin));
}

/// Going on would be writing into the parent's memory; so would be formatting a sentence.
fn end_child() -> ! {
    const WHY: &[u8] = b"vmpi: a child of fork ends with 125, because it cannot have its own copy of the memory that VMPI_MAP_MEMORY=1 \
lays open: too many open files, or too little memory.\n";
    // SAFETY: writes constant bytes, and ends the process at once.
    unsafe {
        libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
        libc::_exit(125)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each page of the ranges that no part has, and no other, is in a gap.
        #[test]
        fn gaps_are_what_is_left(ranges in pieces(), parts in pieces()) {
            let has = |list: &[Range<u64>], page: u64| list.iter().any(|range| range.contains(&page));
            let gaps = gaps(&ranges, &parts);
            for page in 0..130 {
                prop_assert_eq!(has(&gaps, page), has(&ranges, page) && !has(&parts, page), "page {}", page);
            }
        }
    }

    fn pieces() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0u64..100, 1u64..30), 0..6).prop_map(|list| {
            let mut list: Vec<Range<u64>> = list.into_iter().map(|(start, len)| start..start + len).collect();
            list.sort_unstable_by_key(|range| range.start);
            list
        })
    }
}
