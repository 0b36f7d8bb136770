//! Ranks that end badly, as vmpirun tells of them: with their call stacks, the same one of many ranks once.
//!
//! [`look`] is done on the rank's node, while it waits (`vmpi_shared::crash`); [`Crashes`] gathers what has been seen; [`words`] says it.

mod words;

pub use words::place_of;

use crate::stack::{Names, Taken};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use vmpi_shared::crash::{Crash, Dying, OnCrash, Place};

/// Those that come this soon behind the first are told together...
const TOGETHER: Duration = Duration::from_millis(50);
/// ...or before the job's end, if it is about to end.
const BEFORE_END: Duration = Duration::from_secs(1);

/// A rank that waits has been looked at; it need not wait any more.
pub struct Seen {
    dying: Dying,
    taken: Result<Taken, String>,
    thread: Option<String>,
}

/// Look at a rank that waits for it.
pub fn look(dying: Dying) -> Seen {
    let thread = dying.thread.map(|thread| {
        let name = std::fs::read_to_string(format!("/proc/{}/task/{thread}/comm", dying.pid));
        name.map_or_else(|_| thread.to_string(), |name| format!("{thread} ({})", name.trim_end()))
    });
    let taken =
        Taken::at(dying.pid, dying.thread.unwrap_or(dying.pid), dying.registers).map_err(|error| error.to_string());
    Seen { dying, taken, thread }
}

impl Seen {
    /// What can be told of it.
    pub fn crash(self, names: &mut Names) -> Crash {
        let Seen { dying, taken, thread } = self;
        let Dying { rank, pid, way, address, registers, .. } = dying;
        let (frames, error) = match taken {
            Ok(taken) => (taken.places(names), None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let stack_used_up = words::is_stack_used_up(way, address, registers.sp);
        let address = words::told_address(way, address, pid);
        Crash { rank, pid, thread, way, address, stack_used_up, frames, error, node: String::new() }
    }
}

/// All that has been heard of.
#[derive(Default)]
pub struct Crashes {
    list: Vec<Crash>,
    told: usize,
    due: Option<Instant>,
    names: Names,
}

impl Crashes {
    /// A rank of this node waits, and has been looked at.
    pub fn seen(&mut self, seen: Seen, ends_job: bool) {
        let crash = seen.crash(&mut self.names);
        self.add(crash, ends_job);
    }

    pub fn add(&mut self, crash: Crash, ends_job: bool) {
        self.list.push(crash);
        self.due.get_or_insert(Instant::now() + if ends_job { BEFORE_END } else { TOGETHER });
    }

    /// When what has been heard is to be told.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What has not been told yet, if it is time to, or at the `last`.
    pub fn news(&mut self, now: Instant, last: bool, choice: OnCrash) -> Option<String> {
        if !last && self.due.is_none_or(|due| due > now) {
            return None;
        }
        self.due = None;
        let news = &self.list[self.told..];
        self.told = self.list.len();
        (!news.is_empty()).then(|| words::text(news, choice))
    }

    pub fn into_list(self) -> Vec<Crash> {
        self.list
    }
}

/// For programs.
pub fn json(list: &[Crash]) -> Value {
    list.iter().map(|crash| json!(crash)).collect()
}

/// The frame that people want to see first: one of the program's source, and not of a header of the C++ library's.
fn foremost(frames: &[Place]) -> Option<&Place> {
    let own = |frame: &&Place| {
        frame.in_source && !["std::", "__gnu_cxx::"].iter().any(|space| frame.function.starts_with(space))
    };
    frames.iter().find(own).or(frames.iter().find(|frame| frame.in_source)).or(frames.first())
}
