//! A rank's way to call the daemon at once, or the carrier at once or in a moment: an eventfd, and a timer, that the other's event loop
//! watches (a futex in model tests).
//!
//! One per job, so that no job can read away another's calls. Ringing never blocks: a bell that has been rung and not yet
//! answered is rung.

#[cfg(not(feature = "model"))]
mod real {
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::time::Duration;

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

    /// A bell that can also be asked to ring in a moment.
    pub struct Chime {
        bell: Bell,
        timer: TimerFd,
    }

    impl Chime {
        /// # Errors
        /// No descriptors are free.
        pub fn new() -> std::io::Result<Chime> {
            let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
            Ok(Chime { bell: Bell::new()?, timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)? })
        }

        /// The ends that the daemon handed over, in the order of `fds`.
        pub fn from_fds(bell: OwnedFd, timer: OwnedFd) -> Chime {
            // SAFETY: whatever descriptor it is, this owns it; setting one that is no timer is an error of the call.
            Chime { bell: Bell(bell), timer: unsafe { TimerFd::from_owned_fd(timer) } }
        }

        pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
            [self.bell.fd(), self.timer.as_fd()]
        }

        pub fn ring(&self) {
            self.bell.ring();
        }

        /// Ring when so much time has passed.
        pub fn ring_in(&self, time: Duration) {
            // Refused only if it is no timer, and then at once.
            if self.timer.set(Expiration::OneShot(time.into()), TimerSetTimeFlags::empty()).is_err() {
                self.ring();
            }
        }

        /// Heard: quiet until the next ring, if it `rang`; and not in a moment either, if it has been asked for that.
        pub fn quiet(&self, rang: bool, asked: bool) {
            if rang {
                self.bell.quiet();
            }
            if asked {
                let _ = self.timer.unset();
            }
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

        /// As if no time passed: any other order of events is one that the model tries as well.
        pub fn ring_in(&self, _time: std::time::Duration) {
            self.ring();
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
pub use model::{Bell, Bell as Chime};
#[cfg(not(feature = "model"))]
pub use real::{Bell, Chime};
