//! Memory for slots: registered with a device, or shared with another carrier.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A part of the mapping.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub at: usize,
    pub bytes: usize,
}

/// Unmapped when dropped: after the device, which writes here.
pub struct Staging {
    base: NonNull<c_void>,
    bytes: usize,
}

impl Staging {
    /// # Errors
    /// Those of mmap.
    pub fn new(bytes: usize) -> io::Result<Staging> {
        let length = NonZeroUsize::new(bytes.max(1)).expect("at least one");
        let (access, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE);
        // SAFETY: a fresh mapping that nobody else knows.
        let base = unsafe { mmap_anonymous(None, length, access, flags) }?;
        Ok(Staging { base, bytes: length.get() })
    }

    /// Memory that another process can map, by the descriptor.
    ///
    /// # Errors
    /// Those of memfd_create and mmap.
    pub fn shared(bytes: usize) -> io::Result<(Staging, OwnedFd)> {
        let options = memfd::MemfdOptions::default().close_on_exec(true).allow_sealing(true);
        let file = options.create("vmpi-staging").map_err(io::Error::other)?;
        file.as_file().set_len(bytes as u64)?;
        file.add_seals(&[memfd::FileSeal::SealShrink, memfd::FileSeal::SealGrow]).map_err(io::Error::other)?;
        let fd = OwnedFd::from(file.into_file());
        Ok((Staging::map(fd.try_clone()?, bytes)?, fd))
    }

    /// What another process has made by [`Staging::shared`].
    ///
    /// # Errors
    /// Those of mmap; it is shorter, or could become so.
    pub fn map(fd: OwnedFd, bytes: usize) -> io::Result<Staging> {
        let seals = fcntl(&fd, FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_truncate)?;
        if !seals.contains(SealFlag::F_SEAL_SHRINK) || (nix::sys::stat::fstat(&fd)?.st_size as u64) < bytes as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let length = NonZeroUsize::new(bytes.max(1)).expect("at least one");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address that the kernel chooses, of a file that stays as long as this.
        let base = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, &fd, 0) }?;
        Ok(Staging { base, bytes: length.get() })
    }

    pub fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn check(&self, span: Span) -> *mut u8 {
        assert!(span.at.checked_add(span.bytes).is_some_and(|end| end <= self.bytes), "{span:?} is outside");
        self.base.as_ptr().cast::<u8>().wrapping_add(span.at)
    }

    /// What has come. The slot is this end's until its credit is given back; another process of the job that
    /// writes there all the same breaks its own messages, whose heads and bodies are checked where they are used.
    ///
    /// # Panics
    /// Outside the mapping.
    pub fn read(&self, span: Span) -> &[u8] {
        // SAFETY: inside the mapping, which lives as long as `self`; initialized, since fresh memory is zero.
        unsafe { std::slice::from_raw_parts(self.check(span), span.bytes) }
    }

    /// A slot of this end's that no work names.
    ///
    /// # Panics
    /// Outside the mapping.
    pub fn write(&mut self, span: Span) -> &mut [u8] {
        // SAFETY: as in `read`; `self` is borrowed mutably, and the other end or the device reads only slots that were sent and not given back.
        unsafe { std::slice::from_raw_parts_mut(self.check(span), span.bytes) }
    }

    /// A word that both ends use.
    ///
    /// # Panics
    /// Outside the mapping, or across words.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        let word = self.check(Span { at, bytes: size_of::<AtomicU64>() }).cast::<AtomicU64>();
        assert!(word.is_aligned(), "a word at {at}");
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned; `read` and `write` are asked for other parts.
        unsafe { &*word }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: mapped by this type, and nothing borrows it any more.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}
