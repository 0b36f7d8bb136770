//! The memory that is registered with the device: all slots of all connections, mapped once.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

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

    /// What has come. The slot is this end's from its completion until its credit is given back; another process of the job that
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
        // SAFETY: as in `read`; `self` is borrowed mutably, and the device reads only slots whose work has not completed.
        unsafe { std::slice::from_raw_parts_mut(self.check(span), span.bytes) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and nothing borrows it any more.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}
