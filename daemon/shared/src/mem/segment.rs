//! A memfd with magic, version, kind and layout hash first, sealed against resizing; mapping refuses a mismatch.

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// First word of every segment.
pub const MAGIC: u64 = u64::from_le_bytes(*b"vmpi-seg");

/// Why a segment could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error("cannot create a memory file of {bytes} bytes: {source}")]
    Create { bytes: u64, source: std::io::Error },
    #[error("cannot map a segment of {bytes} bytes: {errno}")]
    Map { bytes: u64, errno: nix::errno::Errno },
    #[error(
        "the descriptor is not a vmpi {expected} segment of this version (layout {found:#x}, expected {layout:#x})"
    )]
    Mismatch { expected: &'static str, found: u64, layout: u64 },
    #[error(
        "the segment is not sealed against resizing, or its size {found} is not the {expected} bytes its header tells"
    )]
    Size { expected: u64, found: u64 },
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
pub struct Segment {
    base: NonNull<u8>,
    bytes: usize,
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
        let segment = Self::map_raw(fd, bytes)?;
        // SAFETY: the mapping is at least a page long, fresh and only ours yet.
        unsafe {
            segment.base.cast::<Head>().write(Head { magic: MAGIC, layout, bytes, reserved: 0 });
        }
        Ok(segment)
    }

    /// Map a segment made by another process and check that it is what it should be.
    pub fn map(kind: &'static str, layout: u64, fd: OwnedFd) -> Result<Segment, SegmentError> {
        let found = nix::sys::stat::fstat(&fd).map_err(|errno| SegmentError::Map { bytes: 0, errno })?.st_size as u64;
        if found < 4096 {
            return Err(SegmentError::Size { expected: 4096, found });
        }
        let seals = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_GET_SEALS).unwrap_or(0);
        if seals & libc::F_SEAL_SHRINK == 0 {
            return Err(SegmentError::Size { expected: found, found });
        }
        let segment = Self::map_raw(fd, found)?;
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

    fn map_raw(fd: OwnedFd, bytes: u64) -> Result<Segment, SegmentError> {
        let length = NonZeroUsize::new(bytes as usize).ok_or(SegmentError::Size { expected: 1, found: 0 })?;
        // SAFETY: a fresh shared mapping at an address that the kernel chooses.
        let base = unsafe {
            mmap(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, &fd, 0)
                .map_err(|errno| SegmentError::Map { bytes, errno })?
        };
        // Mostly holes, which a core dump would walk through page by page. An old kernel may say no: no harm.
        // SAFETY: the mapping that was just made.
        let _ = unsafe { madvise(base, bytes as usize, MmapAdvise::MADV_DONTDUMP) };
        Ok(Segment { base: base.cast(), bytes: bytes as usize, fd: Some(fd) })
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
    /// If that is not inside the segment.
    #[inline]
    pub fn at(&self, offset: u64, len: usize) -> NonNull<u8> {
        let end = offset.checked_add(len as u64);
        assert!(end.is_some_and(|end| end <= self.bytes as u64), "offset {offset} + {len} is outside the segment");
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.add(offset as usize) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped by map_raw with this length; references handed out do not outlive `self`.
        let _ = unsafe { munmap(self.base.cast::<c_void>(), self.bytes) };
    }
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
}
