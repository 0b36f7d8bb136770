//! Standard input, dealt out to the nodes of those who read it.

use super::super::frames::{self, ToNode};
use super::outbox::Outbox;
use crate::threads;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex};

/// Bytes on their way to a node.
pub(super) const STDIN_BYTES: u64 = 256 << 10;

/// Pass standard input on to the nodes of those who read it, a window at a time.
pub(super) fn feed(mut stdin: File, to: Vec<(usize, Outbox)>, window: Arc<(Mutex<Vec<u64>>, Condvar)>) {
    threads::spawn(move || {
        let mut bytes = vec![0; 32 << 10];
        loop {
            let (open, changed) = &*window;
            let Ok(mut room) = open.lock() else { return };
            while to.iter().any(|(node, _)| room[*node] < bytes.len() as u64) {
                room = match changed.wait(room) {
                    Ok(room) => room,
                    Err(_) => return,
                };
            }
            drop(room);
            let count = match stdin.read(&mut bytes) {
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            let mut frame = Vec::new();
            let made = match count {
                0 => frames::say(&mut frame, &ToNode::StdinEnd),
                _ => frames::pass(&mut frame, 0, &bytes[..count]),
            };
            let passed = to.iter().filter(|(_, to)| to.pass(frame.clone())).count();
            if made.is_err() || passed == 0 || count == 0 {
                return;
            }
            if let Ok(mut room) = open.lock() {
                to.iter().for_each(|(node, _)| room[*node] -= count as u64);
            }
        }
    });
}
