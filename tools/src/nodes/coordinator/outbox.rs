//! What goes to a node's agent. Words overtake bytes: a death, Ctrl-C or a sign of life waits for a piece of a trace or of standard input, not for
//! all of it; and who says a word does not wait for the agent.
//!
//! What the pipe does not take at once a thread writes. It has not all to write: questions about clocks would take its wake-up for a part of the
//! way. Death story: writing to an agent that is gone fails, and one that takes nothing is given up by its silence and killed (`start::end`);
//! then the thread ends, and who waits with bytes hears that there is nobody.

use crate::nodes::frames::{self, ToNode};
use crate::threads;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};

#[derive(Clone)]
pub(super) struct Outbox(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    /// The pipe; `None` while the thread writes to it.
    to: Option<File>,
    /// Frames; the first one may have begun to go.
    words: VecDeque<Vec<u8>>,
    /// A frame of bytes: goes when there is no word.
    piece: Option<Vec<u8>>,
    /// Nothing comes any more; words that are there go.
    over: bool,
}

impl Outbox {
    pub(super) fn new(to: impl Into<OwnedFd>) -> Outbox {
        let to = File::from(to.into());
        // Where this cannot be, words wait for the agent.
        let _ = fcntl(&to, FcntlArg::F_SETFL(OFlag::O_WRONLY | OFlag::O_NONBLOCK));
        let queue = Queue { to: Some(to), words: VecDeque::new(), piece: None, over: false };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() });
        let its = shared.clone();
        threads::spawn(move || its.write());
        Outbox(shared)
    }

    /// Say a word; does not block. An agent that is gone shows where it is listened to.
    pub(super) fn say(&self, message: &ToNode) {
        let mut frame = Vec::new();
        let Ok(mut queue) = self.0.queue.lock() else { return };
        if queue.over || frames::say(&mut frame, message).is_err() {
            return;
        }
        let at_once = queue.words.is_empty();
        let taken = match queue.to.as_mut().filter(|_| at_once).map(|to| to.write(&frame)) {
            // That the agent is gone the thread finds, too.
            None | Some(Err(_)) => 0,
            Some(Ok(count)) => count,
        };
        if taken < frame.len() {
            queue.words.push_back(frame.split_off(taken));
            self.0.changed.notify_all();
        }
    }

    /// Pass on a frame of bytes, or the word behind such; blocks while the one before it has not begun to go. False: nobody takes it.
    pub(super) fn pass(&self, frame: Vec<u8>) -> bool {
        let Ok(queue) = self.0.queue.lock() else { return false };
        let Ok(mut queue) = self.0.changed.wait_while(queue, |queue| queue.piece.is_some() && !queue.over) else {
            return false;
        };
        if queue.over {
            return false;
        }
        queue.piece = Some(frame);
        self.0.changed.notify_all();
        true
    }

    /// Close the pipe once the words have gone; bytes do not.
    pub(super) fn close(&self) {
        if let Ok(mut queue) = self.0.queue.lock() {
            (queue.over, queue.piece) = (true, None);
        }
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn write(&self) {
        let nothing = |queue: &mut Queue| queue.words.is_empty() && queue.piece.is_none() && !queue.over;
        while let Ok(mut queue) = self.queue.lock().and_then(|queue| self.changed.wait_while(queue, nothing)) {
            let frame = queue.words.pop_front().or_else(|| queue.piece.take());
            let Some((mut to, frame)) = queue.to.take().zip(frame) else { return };
            drop(queue);
            self.changed.notify_all();
            let done = write_all(&mut to, &frame);
            let Ok(mut queue) = self.queue.lock() else { return };
            match done {
                Ok(()) => queue.to = Some(to),
                Err(_) => {
                    (queue.over, queue.piece) = (true, None);
                    queue.words.clear();
                    self.changed.notify_all();
                }
            }
        }
    }
}

/// To a pipe that does not block.
fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::frames::Frame;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn piece(at: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        frames::recorded(&mut frame, at, &[7; 64 << 10]).unwrap();
        frame
    }

    /// A trace that goes by faster than it is read holds no word up.
    #[test]
    fn words_overtake_bytes() {
        let (mut from, to) = io::pipe().unwrap();
        let outbox = Outbox::new(to);
        let passed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while outbox.pass(piece(passed.load(Ordering::SeqCst))) {
                    passed.fetch_add(1, Ordering::SeqCst);
                }
            });
            let mut read = 0;
            for number in 0..200 {
                outbox.say(&ToNode::Time { number });
                // One more may just have been taken, and not been counted yet.
                let before = passed.load(Ordering::SeqCst) + 1;
                loop {
                    match frames::hear::<ToNode>(&mut from).unwrap().expect("more") {
                        Frame::Recorded(at, bytes) => {
                            assert_eq!((at, bytes.len()), (read, 64 << 10), "in order, and whole");
                            read += 1;
                        }
                        Frame::Said(ToNode::Time { number: heard }) => break assert_eq!(heard, number),
                        other => panic!("{other:?}"),
                    }
                }
                assert!(read <= before, "word {number} came behind {read} pieces; {before} were there before it");
            }
            outbox.close();
        });
    }

    /// Words to an agent that takes nothing hold nobody up; they go when it does, and then the pipe is closed.
    #[test]
    fn who_says_a_word_does_not_wait() {
        let (mut from, to) = io::pipe().unwrap();
        let outbox = Outbox::new(to);
        let version = "9".repeat(10 << 10);
        for protocol in 0..100 {
            outbox.say(&ToNode::Hello { version: version.clone(), protocol });
        }
        assert!(outbox.pass(piece(0)));
        outbox.close();
        assert!(!outbox.pass(piece(1)));
        outbox.say(&ToNode::Alive);
        for wanted in 0..100 {
            let heard = frames::hear::<ToNode>(&mut from).unwrap();
            assert!(
                matches!(&heard, Some(Frame::Said(ToNode::Hello { protocol, .. })) if *protocol == wanted),
                "{heard:?}"
            );
        }
        assert!(matches!(frames::hear::<ToNode>(&mut from), Ok(None)));
    }

    #[test]
    fn who_waits_for_an_agent_that_dies_hears_it() {
        let (from, to) = io::pipe().unwrap();
        let outbox = Outbox::new(to);
        std::thread::scope(|scope| {
            let passing = scope.spawn(|| while outbox.pass(piece(0)) {});
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(from);
            passing.join().unwrap();
        });
        outbox.say(&ToNode::Alive);
    }
}
