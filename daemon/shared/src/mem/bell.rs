//! A rank's way to call the daemon at once: an eventfd that the daemon's event loop watches (a futex in model tests).
//!
//! One per job, so that no job can read away another's calls. Ringing never blocks: a bell that has been rung and not yet
//! answered is rung.

#[cfg(not(feature = "model"))]
mod real {
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// One end of a bell.
    pub struct Bell(OwnedFd);

    impl Bell {
        /// # Errors
        /// No descriptor is free.
        pub fn new() -> std::io::Result<Bell> {
            let event = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
            Ok(Bell(OwnedFd::from(event)))
        }

        /// The end that the daemon handed over.
        pub fn from_fd(fd: OwnedFd) -> Bell {
            Bell(fd)
        }

        pub fn fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        /// Call the daemon.
        pub fn ring(&self) {
            // It can fail only because the counter is full: then it is rung.
            let _ = nix::unistd::write(&self.0, &1u64.to_ne_bytes());
        }

        /// Heard: quiet until the next ring.
        pub fn quiet(&self) {
            let _ = nix::unistd::read(&self.0, &mut [0; 8]);
        }
    }
}

#[cfg(feature = "model")]
mod model {
    use crate::mem::sync::{AtomicU32, Ordering, futex_wait, futex_wake};
    use shuttle::sync::Arc;

    /// A bell between threads.
    #[derive(Clone, Default)]
    pub struct Bell(Arc<AtomicU32>);

    impl Bell {
        pub fn ring(&self) {
            self.0.store(1, Ordering::SeqCst);
            futex_wake(&self.0, 1);
        }

        /// Sleep until it has been rung since the last time.
        pub fn wait(&self) {
            while self.0.swap(0, Ordering::SeqCst) == 0 {
                futex_wait(&self.0, 0, None);
            }
        }
    }
}

#[cfg(feature = "model")]
pub use model::Bell;
#[cfg(not(feature = "model"))]
pub use real::Bell;
