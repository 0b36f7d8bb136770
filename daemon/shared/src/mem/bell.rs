//! A rank's way to call the daemon at once, or the carrier at once or in a moment: an eventfd, and a timer, that the other's event loop
//! watches (a futex in model tests).
//!
//! One per job, so that no job can read away another's calls. Ringing never blocks: a bell that has been rung and not yet
//! answered is rung. What ranks hold they can misuse (O_NONBLOCK is the open file's, not the descriptor's): the daemon and the carrier neither read
//! nor write it in a way that can wait.

#[cfg(not(feature = "model"))]
mod real {
    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
    use std::time::Duration;

    fn event() -> std::io::Result<OwnedFd> {
        let event = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(OwnedFd::from(event))
    }

    fn ring(fd: &OwnedFd) {
        // It can fail only because the counter is full: then it is rung.
        let _ = nix::unistd::write(fd, &1u64.to_ne_bytes());
    }

    /// Read the counter, whatever the open file says of waiting: all who have it share that, and each rank can change it.
    fn quiet(fd: &OwnedFd) {
        let mut count = [0u8; 8];
        let part = libc::iovec { iov_base: count.as_mut_ptr().cast(), iov_len: count.len() };
        // SAFETY: one part of eight bytes, which outlives the call. -1: where the file stands, which it does not.
        let read = unsafe { libc::preadv2(fd.as_raw_fd(), &part, 1, -1, libc::RWF_NOWAIT) };
        if read < 0 && !matches!(Errno::last(), Errno::EAGAIN | Errno::EINTR) {
            // Before Linux 5.8, or where a filter of system calls does not know it. Who rings and takes it back in between, on purpose, can make this wait; nothing else can.
            let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
                let _ = nix::unistd::read(fd, &mut count);
            }
        }
    }

    /// One end of a bell.
    pub struct Bell {
        /// What all who may ring have.
        shared: OwnedFd,
        /// Rung by the daemon, and by who listens: a rank can make ringing `shared` wait for ever, by filling its counter.
        own: Option<OwnedFd>,
    }

    impl Bell {
        /// # Errors
        /// No descriptors are free.
        pub fn new() -> std::io::Result<Bell> {
            Ok(Bell { shared: event()?, own: Some(event()?) })
        }

        /// The end that the daemon handed over.
        pub fn from_fd(fd: OwnedFd) -> Bell {
            Bell { shared: fd, own: None }
        }

        /// To be handed to ranks.
        pub fn fd(&self) -> BorrowedFd<'_> {
            self.shared.as_fd()
        }

        /// To be listened to.
        pub fn heard_by(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
            std::iter::once(&self.shared).chain(&self.own).map(AsFd::as_fd)
        }

        /// Call the daemon.
        pub fn ring(&self) {
            ring(self.own.as_ref().unwrap_or(&self.shared));
        }

        /// Heard: quiet until the next ring.
        pub fn quiet(&self) {
            quiet(&self.shared);
            self.own.iter().for_each(quiet);
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

        /// The ends that the daemon handed over to a rank, in the order of `fds`.
        pub fn from_fds(bell: OwnedFd, timer: OwnedFd) -> Chime {
            // SAFETY: whatever descriptor it is, this owns it; setting one that is no timer is an error of the call.
            Chime { bell: Bell::from_fd(bell), timer: unsafe { TimerFd::from_owned_fd(timer) } }
        }

        /// And those to the carrier, with the one of its own.
        pub fn of_carrier(bell: OwnedFd, timer: OwnedFd, own: OwnedFd) -> Chime {
            let mut chime = Chime::from_fds(bell, timer);
            chime.bell.own = Some(own);
            chime
        }

        pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
            [self.bell.fd(), self.timer.as_fd()]
        }

        /// What the daemon and the carrier alone have.
        pub fn own_fd(&self) -> Option<BorrowedFd<'_>> {
            self.bell.own.as_ref().map(AsFd::as_fd)
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
                quiet(&self.bell.shared);
            }
            if asked {
                let _ = self.timer.unset();
            }
        }

        /// Heard what the daemon, or this process, has rung.
        pub fn quiet_own(&self) {
            self.bell.own.iter().for_each(quiet);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use nix::fcntl::{FcntlArg, OFlag, fcntl};
        use std::sync::mpsc;

        /// `f` comes to its end, whatever a rank has done.
        fn comes_back(f: impl FnOnce() + Send + 'static) {
            let (say, hear) = mpsc::channel();
            std::thread::spawn(move || {
                f();
                let _ = say.send(());
            });
            assert!(hear.recv_timeout(Duration::from_secs(20)).is_ok(), "it waits for ever");
        }

        fn rings(fd: BorrowedFd) -> bool {
            poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() > 0
        }

        #[test]
        fn a_rank_that_makes_the_open_file_wait_stops_nobody() {
            let bell = Bell::new().unwrap();
            let rank = Bell::from_fd(bell.fd().try_clone_to_owned().unwrap());
            fcntl(rank.fd(), FcntlArg::F_SETFL(OFlag::empty())).unwrap();
            rank.ring();
            assert!(bell.heard_by().any(rings));
            // It takes the ring back before it has been heard.
            quiet(&rank.shared);
            comes_back(move || {
                bell.quiet();
                rank.ring();
                bell.quiet();
                assert!(!bell.heard_by().any(rings), "heard");
                // Ringing would wait now, for all who have it.
                nix::unistd::write(&rank.shared, &(u64::MAX - 1).to_ne_bytes()).unwrap();
                bell.ring();
                assert!(bell.heard_by().any(rings));
                bell.quiet();
                assert!(!bell.heard_by().any(rings));
            });
        }

        #[test]
        fn the_daemon_calls_a_carrier_past_what_ranks_have() {
            let daemons = Chime::new().unwrap();
            let [bell, timer] = daemons.fds().map(|fd| fd.try_clone_to_owned().unwrap());
            let own = daemons.own_fd().unwrap().try_clone_to_owned().unwrap();
            let carrier = Chime::of_carrier(bell, timer, own);
            fcntl(daemons.fds()[0], FcntlArg::F_SETFL(OFlag::empty())).unwrap();
            nix::unistd::write(daemons.fds()[0], &(u64::MAX - 1).to_ne_bytes()).unwrap();
            comes_back(move || {
                daemons.ring();
                assert!(rings(carrier.own_fd().unwrap()));
                carrier.quiet(true, true);
                carrier.quiet_own();
                assert!(!rings(carrier.own_fd().unwrap()) && !rings(carrier.fds()[0]));
            });
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
