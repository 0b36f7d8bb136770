//! A memfd with magic, version, kind and layout hash first, sealed against resizing; mapping refuses a mismatch.

use super::checker::Shared;
use nix::errno::Errno;
use nix::sys::mman::{MRemapFlags, MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mremap, munmap};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// What `map_head` maps, and the least that a segment has.
const HEAD_BYTES: u64 = 4096;

/// First word of every segment.
pub const MAGIC: u64 = u64::from_le_bytes(*b"vmpi-seg");

/// Why a segment could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error("cannot create a memory file of {bytes} bytes: {source}")]
    Create { bytes: u64, source: std::io::Error },
    #[error(
        "cannot create a memory file of {bytes} bytes: files may have {limit} bytes at most (ulimit -f); raise that limit"
    )]
    FileSize { bytes: u64, limit: u64 },
    #[error("cannot map a segment of {bytes} bytes: {errno}")]
    Map { bytes: u64, errno: Errno },
    #[error(
        "cannot map a segment of {bytes} bytes: a process may have {limit} bytes of addresses at most (ulimit -v); raise that \
         limit or use fewer ranks"
    )]
    AddressSpace { bytes: u64, limit: u64 },
    #[error(
        "the descriptor is not a vmpi {expected} segment of this version (layout {found:#x}, expected {layout:#x})"
    )]
    Mismatch { expected: &'static str, found: u64, layout: u64 },
    #[error(
        "the segment is not sealed against resizing, or its size {found} is not the {expected} bytes its header tells"
    )]
    Size { expected: u64, found: u64 },
}

/// Why a mapping of `bytes` was refused.
fn unmapped(bytes: u64, errno: Errno) -> SegmentError {
    match getrlimit(Resource::RLIMIT_AS) {
        Ok((limit, _)) if errno == Errno::ENOMEM && limit != RLIM_INFINITY => {
            SegmentError::AddressSpace { bytes, limit }
        }
        _ => SegmentError::Map { bytes, errno },
    }
}

/// Head of a segment. Written once by the creator before the descriptor is handed to anyone.
#[repr(C)]
pub struct Head {
    pub magic: u64,
    pub layout: u64,
    pub bytes: u64,
    pub reserved: u64,
}

/// A mapped segment; unmapped on drop.
///
/// It may be mapped in part, from its start; the whole is mapped a second time, elsewhere, when somebody needs the rest. Addresses of the
/// first part stay good.
pub struct Segment {
    base: NonNull<u8>,
    /// Bytes mapped at `base`.
    mapped: usize,
    /// Bytes of the file.
    bytes: usize,
    /// Bytes of it that `whole` maps: not what is mapped apart.
    wanted: usize,
    /// What checkers of memory know of the mapping at `base`.
    shared: Shared,
    whole: OnceLock<(NonNull<u8>, Shared)>,
    /// `None`: given up, the mapping is all that is needed.
    fd: Option<OwnedFd>,
}

// SAFETY: the mapping is shared memory that many processes use at once anyway; access rules are those of its users.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Make a zeroed segment of `bytes` (sparse: memory is used as it is touched).
    pub fn create(kind: &'static str, layout: u64, bytes: u64) -> Result<Segment, SegmentError> {
        Self::create_in_part(kind, layout, bytes, bytes)
    }

    /// As `create`, with only the first `mapped` bytes (at least a page) mapped.
    pub fn create_in_part(kind: &'static str, layout: u64, bytes: u64, mapped: u64) -> Result<Segment, SegmentError> {
        // Beyond the limit the kernel does not refuse, it kills (SIGXFSZ).
        if let Ok((limit, _)) = getrlimit(Resource::RLIMIT_FSIZE)
            && limit < bytes
        {
            return Err(SegmentError::FileSize { bytes, limit });
        }
        let make = || -> Result<OwnedFd, memfd::Error> {
            let file = memfd::MemfdOptions::default()
                .close_on_exec(true)
                .allow_sealing(true)
                .create(format!("vmpi-{kind}"))?;
            file.as_file().set_len(bytes).map_err(memfd::Error::Create)?;
            file.add_seals(&[memfd::FileSeal::SealShrink, memfd::FileSeal::SealGrow, memfd::FileSeal::SealSeal])?;
            Ok(file.into_file().into())
        };
        let fd = make().map_err(|e| SegmentError::Create { bytes, source: std::io::Error::other(e) })?;
        let segment = Self::map_raw(fd, bytes, mapped)?;
        // SAFETY: the mapping is at least a page long, fresh and only ours yet.
        unsafe {
            segment.base.cast::<Head>().write(Head { magic: MAGIC, layout, bytes, reserved: 0 });
        }
        Ok(segment)
    }

    /// Map a segment made by another process and check that it is what it should be.
    pub fn map(kind: &'static str, layout: u64, fd: OwnedFd) -> Result<Segment, SegmentError> {
        let mut segment = Self::map_head(kind, layout, fd)?;
        segment.extend(segment.bytes)?;
        Ok(segment)
    }

    /// As `map`, but only the first page; `extend` comes next.
    pub fn map_head(kind: &'static str, layout: u64, fd: OwnedFd) -> Result<Segment, SegmentError> {
        let found = nix::sys::stat::fstat(&fd).map_err(|errno| SegmentError::Map { bytes: 0, errno })?.st_size as u64;
        if found < HEAD_BYTES {
            return Err(SegmentError::Size { expected: HEAD_BYTES, found });
        }
        let seals = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_GET_SEALS).unwrap_or(0);
        if seals & libc::F_SEAL_SHRINK == 0 {
            return Err(SegmentError::Size { expected: found, found });
        }
        let segment = Self::map_raw(fd, found, HEAD_BYTES)?;
        // SAFETY: at least a page is mapped.
        let head = unsafe { segment.base.cast::<Head>().read() };
        if head.magic != MAGIC || head.layout != layout {
            return Err(SegmentError::Mismatch { expected: kind, found: head.layout, layout });
        }
        if head.bytes != found {
            return Err(SegmentError::Size { expected: head.bytes, found });
        }
        Ok(segment)
    }

    fn map_raw(fd: OwnedFd, bytes: u64, mapped: u64) -> Result<Segment, SegmentError> {
        let length = NonZeroUsize::new(mapped as usize).ok_or(SegmentError::Size { expected: 1, found: 0 })?;
        // SAFETY: a fresh shared mapping at an address that the kernel chooses.
        let base = unsafe {
            mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, &fd, 0)
                .map_err(|errno| unmapped(mapped, errno))?
        };
        let segment = Segment {
            base: base.cast(),
            mapped: mapped as usize,
            bytes: bytes as usize,
            wanted: bytes as usize,
            shared: Shared::default(),
            whole: OnceLock::new(),
            fd: Some(fd),
        };
        dont_dump(segment.base, segment.mapped);
        Ok(segment)
    }

    /// Map `bytes` from the start instead of what is mapped now. All addresses change.
    ///
    /// # Errors
    /// Those of mremap; the old mapping is still there then.
    pub fn extend(&mut self, bytes: usize) -> Result<(), SegmentError> {
        let bytes = bytes.min(self.bytes);
        self.base = self.remap(self.mapped, bytes)?;
        self.mapped = bytes;
        Ok(())
    }

    /// Address of the segment mapped whole, but for what is mapped apart: where it is, or a second mapping if only its first part is mapped there.
    ///
    /// # Errors
    /// Those of mremap, which fails where the process may not have so many addresses.
    pub fn whole(&self) -> Result<NonNull<u8>, SegmentError> {
        if self.mapped >= self.wanted {
            return Ok(self.base);
        }
        mapped_once(&self.whole, self.wanted, self.shared.is_known(), || self.remap(0, self.wanted))
    }

    /// What lies from `from` to the end of the file, as a mapping of its own. It needs the descriptor.
    ///
    /// # Errors
    /// Those of mmap, for one page.
    pub fn apart(&mut self, from: u64) -> Result<Apart, SegmentError> {
        self.wanted = from as usize;
        let (bytes, concealed) = (self.bytes - self.wanted, self.shared.is_known());
        if bytes == 0 {
            return Ok(Apart { first: None, bytes, concealed, whole: OnceLock::new() });
        }
        // SAFETY: a fresh shared mapping at an address that the kernel chooses.
        let first = unsafe {
            let page = NonZeroUsize::new_unchecked(HEAD_BYTES as usize);
            mmap(None, page, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, self.fd(), from as i64)
                .map_err(|errno| unmapped(HEAD_BYTES, errno))?
        };
        Ok(Apart { first: Some(first.cast()), bytes, concealed, whole: OnceLock::new() })
    }

    /// Map `bytes` of the file anew, instead of `old` bytes of the mapping at `base` (0: that stays). It needs no descriptor.
    fn remap(&self, old: usize, bytes: usize) -> Result<NonNull<u8>, SegmentError> {
        // SAFETY: `base` is this segment's own mapping, shared, from offset 0 of a file of `self.bytes`; who extends has it exclusively.
        let base = unsafe { mremap(self.base.cast::<c_void>(), old, bytes, MRemapFlags::MREMAP_MAYMOVE, None) }
            .map_err(|errno| unmapped(bytes as u64, errno))?
            .cast();
        dont_dump(base, bytes);
        Ok(base)
    }

    /// Keep checkers of memory out of it. Nobody sleeps on words of it (futex): memcheck would object to that.
    pub fn conceal(&mut self) {
        self.shared = Shared::new(self.base.as_ptr(), self.mapped);
    }

    /// The descriptor to hand to other processes.
    ///
    /// # Panics
    /// After [`Segment::close_fd`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("the descriptor has been given up").as_fd()
    }

    /// As [`Segment::fd`], as a number.
    ///
    /// # Panics
    /// After [`Segment::close_fd`].
    pub fn raw_fd(&self) -> i32 {
        self.fd().as_raw_fd()
    }

    /// Everybody who needs the segment has mapped it: give the descriptor up.
    pub fn close_fd(&mut self) {
        self.fd = None;
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first `count` words as they are now, to be compared with what they were.
    pub fn words(&self, count: usize) -> Vec<u64> {
        let first = self.at(0, count * 8).cast::<u64>();
        // SAFETY: inside the mapping, aligned. Volatile: a process that scribbles may write them right now.
        (0..count).map(|index| unsafe { first.add(index).read_volatile() }).collect()
    }

    /// Address of `offset`, for `len` bytes.
    ///
    /// # Panics
    /// If that is not inside the part that is mapped.
    #[inline]
    pub fn at(&self, offset: u64, len: usize) -> NonNull<u8> {
        let end = offset.checked_add(len as u64);
        assert!(end.is_some_and(|end| end <= self.mapped as u64), "offset {offset} + {len} is outside the segment");
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.add(offset as usize) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped by map_raw with this length; references handed out do not outlive `self`.
        let _ = unsafe { munmap(self.base.cast::<c_void>(), self.mapped) };
        if let Some((whole, _)) = self.whole.get() {
            // SAFETY: likewise, by `whole`.
            let _ = unsafe { munmap(whole.cast::<c_void>(), self.wanted) };
        }
    }
}

/// The last part of a segment, which is mapped when it is needed: it is much, and most processes never need it.
pub struct Apart {
    /// Its first page, from which the rest is mapped: the descriptor will have been given up then.
    first: Option<NonNull<u8>>,
    bytes: usize,
    /// As the rest of the segment is ([`Segment::conceal`]).
    concealed: bool,
    whole: OnceLock<(NonNull<u8>, Shared)>,
}

impl Apart {
    /// Its address.
    ///
    /// # Errors
    /// Those of mremap, which fails where the process may not have so many addresses.
    pub fn base(&self) -> Result<NonNull<u8>, SegmentError> {
        let (Some(first), bytes) = (self.first, self.bytes) else { return Ok(NonNull::dangling()) };
        mapped_once(&self.whole, bytes, self.concealed, || {
            // SAFETY: a second mapping of the file that `first` maps, shared, from where that begins.
            let base = unsafe { mremap(first.cast::<c_void>(), 0, bytes, MRemapFlags::MREMAP_MAYMOVE, None) };
            let base = base.map_err(|errno| unmapped(bytes as u64, errno))?.cast();
            dont_dump(base, bytes);
            Ok(base)
        })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let parts = [(self.first, HEAD_BYTES as usize), (self.whole.get().map(|(base, _)| *base), self.bytes)];
        for (base, bytes) in parts {
            if let Some(base) = base {
                // SAFETY: mapped by `Segment::apart` and `base` with these lengths.
                let _ = unsafe { munmap(base.cast::<c_void>(), bytes) };
            }
        }
    }
}

/// The address in `known`, or of what `map` maps, `bytes` long; `concealed` from checkers of memory.
fn mapped_once(
    known: &OnceLock<(NonNull<u8>, Shared)>,
    bytes: usize,
    concealed: bool,
    map: impl FnOnce() -> Result<NonNull<u8>, SegmentError>,
) -> Result<NonNull<u8>, SegmentError> {
    if let Some((there, _)) = known.get() {
        return Ok(*there);
    }
    let made = map()?;
    let shared = || if concealed { Shared::new(made.as_ptr(), bytes) } else { Shared::default() };
    let kept = known.get_or_init(|| (made, shared())).0;
    if kept != made {
        // Another thread was faster.
        // SAFETY: the mapping that was just made, which nobody has seen.
        let _ = unsafe { munmap(made.cast::<c_void>(), bytes) };
    }
    Ok(kept)
}

/// Mostly holes, which a core dump would walk through page by page. An old kernel may say no: no harm.
fn dont_dump(base: NonNull<u8>, bytes: usize) {
    // SAFETY: advice about a mapping that was just made.
    let _ = unsafe { madvise(base.cast::<c_void>(), bytes, MmapAdvise::MADV_DONTDUMP) };
}

/// A hash of the sizes and offsets that two processes must agree on (FNV-1a).
pub const fn layout_hash(parts: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < parts.len() {
        let mut shift = 0;
        while shift < 64 {
            hash ^= (parts[i] >> shift) & 0xff;
            hash = hash.wrapping_mul(0x100_0000_01b3);
            shift += 8;
        }
        i += 1;
    }
    hash
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn mapping_refuses_another_layout_and_resizing() {
        let segment = Segment::create("node", 7, 8192).unwrap();
        let copy = segment.fd().try_clone_to_owned().unwrap();
        assert!(matches!(Segment::map("node", 8, copy), Err(SegmentError::Mismatch { found: 7, layout: 8, .. })));
        let copy = segment.fd().try_clone_to_owned().unwrap();
        assert!(Segment::map("node", 7, copy).is_ok());
        assert!(nix::unistd::ftruncate(segment.fd(), 0).is_err());
    }

    #[test]
    fn a_part_and_the_whole_are_the_same_memory() {
        let mut part = Segment::create_in_part("node", 7, 1 << 20, 4096).unwrap();
        part.close_fd();
        let whole = part.whole().unwrap();
        assert_eq!(part.whole().unwrap(), whole, "mapped once");
        // SAFETY: inside the two mappings of this test.
        unsafe {
            part.at(4088, 8).cast::<u64>().write_volatile(77);
            assert_eq!(whole.add(4088).cast::<u64>().read_volatile(), 77);
            whole.add((1 << 20) - 8).cast::<u64>().write_volatile(78);
        }
        part.extend(usize::MAX).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { part.at((1 << 20) - 8, 8).cast::<u64>().read_volatile() }, 78);
    }
}
