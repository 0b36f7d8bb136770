//! The memory file of this rank: its page at offset A holds what the process has at address A, where that is mapped so.

use nix::sys::mman::{MRemapFlags, MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, mremap, munmap};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use procfs::process::{MMPermissions, MemoryMap, Process};
use std::ffi::c_void;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

/// A process's addresses are below this, and so is the file's end.
pub(super) const ADDRESSES: u64 = 1 << 47;
const PAGE_BYTES: usize = 4 << 10;

pub(super) struct MemoryFile {
    file: File,
    pub(super) inode: u64,
}

/// Where a part of the file is mapped.
pub(super) struct Area {
    at: u64,
    len: u64,
    offset: u64,
}

impl Area {
    pub(super) fn part(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }

    /// Is a child to have it?
    pub(super) fn pass_on(&self, wanted: bool) -> nix::Result<()> {
        let at = NonNull::new(self.at as *mut c_void).ok_or(nix::Error::EFAULT)?;
        pass_on(at, length(self.len), wanted)
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl MemoryFile {
    pub(super) fn new() -> Result<MemoryFile> {
        let other = |error: memfd::Error| Error::other(error);
        let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
        if limit < ADDRESSES {
            let why = format!("files may have {limit} bytes at most (ulimit -f), the memory file needs {ADDRESSES}");
            return Err(Error::new(ErrorKind::FileTooLarge, why));
        }
        let options = memfd::MemfdOptions::default().close_on_exec(true).allow_sealing(true);
        let file = options.create("vmpi-heap").map_err(other)?;
        file.as_file().set_len(ADDRESSES)?;
        let seals = [memfd::FileSeal::SealShrink, memfd::FileSeal::SealGrow, memfd::FileSeal::SealSeal];
        file.add_seals(&seals).map_err(other)?;
        let file = file.into_file();
        let inode = file.metadata()?.ino();
        Ok(MemoryFile { file, inode })
    }

    fn fd(&self) -> i32 {
        self.file.as_raw_fd()
    }

    pub(super) fn is_behind(&self, map: &MemoryMap) -> bool {
        map.inode == self.inode && map.perms.contains(MMPermissions::SHARED)
    }

    /// Where this process maps the file.
    pub(super) fn areas(&self) -> procfs::ProcResult<Vec<Area>> {
        let maps = Process::myself()?.maps()?;
        let ours = maps.iter().filter(|map| self.is_behind(map));
        Ok(ours.map(|map| Area { at: map.address.0, len: map.address.1 - map.address.0, offset: map.offset }).collect())
    }

    /// Have a part hold nothing; false if that cannot be.
    pub(super) fn punch(&self, part: &Range<u64>) -> bool {
        let (at, len) = (part.start as libc::off_t, (part.end - part.start) as libc::off_t);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a system call on plain values.
        unsafe { libc::fallocate(self.fd(), mode, at, len) == 0 }
    }

    /// Put the file's pages, which hold nothing yet, where the process's own were; `zeros`: also those that hold zeros.
    ///
    /// # Safety
    /// They are mapped and readable, and nobody writes to them meanwhile but signal handlers.
    pub(super) unsafe fn give(&self, range: &Range<u64>, zeros: bool) -> nix::Result<()> {
        let len = length(range.end - range.start);
        without_signals(|| {
            let open = self.map(range.start, len)?;
            pass_on(open, len, false).inspect_err(|_| unmap(open, len))?;
            // SAFETY: as promised; the target is a new mapping.
            unsafe { copy_pages(range.start as *const u8, open.as_ptr().cast::<u8>(), len.get(), zeros) };
            replace(open, len, range.start)
        })
    }

    /// Put memory of this process's own, with the same bytes, where it has, or its parent had, an area of the file. Allocates nothing.
    pub(super) fn take_back(&self, area: &Area) -> nix::Result<()> {
        let len = length(area.len);
        without_signals(|| {
            let open = self.map(area.offset, len)?;
            let (prot, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
            // SAFETY: a new mapping.
            let taken = unsafe { mmap_anonymous(None, len, prot, flags) }.and_then(|own| {
                // SAFETY: both are new mappings of that length; the second is zero.
                unsafe { copy_pages(open.as_ptr().cast::<u8>(), own.as_ptr().cast::<u8>(), len.get(), false) };
                replace(own, len, area.at)
            });
            unmap(open, len);
            taken
        })
    }

    /// A part of the file, wherever there is room.
    fn map(&self, offset: u64, len: NonZeroUsize) -> nix::Result<NonNull<c_void>> {
        let (prot, flags) =
            (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE);
        // SAFETY: a new mapping, of a file that cannot shrink.
        unsafe { mmap(None, len, prot, flags, &self.file, offset as libc::off_t) }
    }
}

/// Is a child to have this mapping? Sharing it with its parent, until it has its own.
fn pass_on(at: NonNull<c_void>, len: NonZeroUsize, wanted: bool) -> nix::Result<()> {
    let advice = if wanted { MmapAdvise::MADV_DOFORK } else { MmapAdvise::MADV_DONTFORK };
    // SAFETY: changes nothing of this process's memory.
    unsafe { madvise(at, len.get(), advice) }
}

fn length(len: u64) -> NonZeroUsize {
    NonZeroUsize::new(len as usize).expect("areas are not empty")
}

/// A handler that writes while bytes are copied would write in vain.
fn without_signals(work: impl FnOnce() -> nix::Result<()>) -> nix::Result<()> {
    let (all, mut before) = (SigSet::all(), SigSet::empty());
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&all), Some(&mut before))?;
    let result = work();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    result
}

fn unmap(at: NonNull<c_void>, len: NonZeroUsize) {
    // SAFETY: a mapping that the caller has made, and of which nobody else knows.
    let _ = unsafe { munmap(at, len.get()) };
}

/// Let the memory at `from` take the place of what is at `to`, in one step; it is gone if that cannot be.
fn replace(from: NonNull<c_void>, len: NonZeroUsize, to: u64) -> nix::Result<()> {
    let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
    // SAFETY: both are whole mappings of this process of that length, and hold the same bytes; nobody else knows the first.
    unsafe {
        mremap(from, len.get(), len.get(), flags, NonNull::new(to as *mut c_void))
            .map(drop)
            .inspect_err(|_| unmap(from, len))
    }
}

/// Copy `len` bytes, whole pages, to where all is zero. Unless `zeros` are wanted, pages that hold them are left alone, so that they take no memory.
///
/// # Safety
/// Both are aligned to pages, valid for `len` bytes, and used by nobody else.
unsafe fn copy_pages(from: *const u8, to: *mut u8, len: usize, zeros: bool) {
    const WORDS: usize = PAGE_BYTES / size_of::<u64>();
    for at in (0..len).step_by(PAGE_BYTES) {
        // SAFETY: inside both.
        unsafe {
            let (from, to) = (from.add(at).cast::<[u64; WORDS]>(), to.add(at).cast::<[u64; WORDS]>());
            if zeros || (*from).iter().any(|word| *word != 0) {
                *to = *from;
            }
        }
    }
}
