//! Following a record: what this rank's receives take and its tests answer, until the record ends; from then on it is free.

use super::{SCRIPT, Want, left_the_record, mode};
use crate::consts;
use crate::guarded::EntryGuarded;
use std::collections::VecDeque;
use std::path::Path;
use vmpi_shared::decisions::{Entry, read_rank};

/// A source that no message comes from.
pub(super) const NEVER: i32 = i32::MIN;

/// What a receive took.
#[derive(Copy, Clone)]
enum Took {
    Message { source: u32, tag: Option<i32> },
    Nothing,
}

/// What a test or a probe said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    No,
    Yes,
    Found(Want),
    /// The index of a request; `None`: none is active.
    One(Option<usize>),
    Some(Vec<usize>),
}

impl Answer {
    /// In words.
    pub(crate) fn told(&self) -> String {
        match self {
            Answer::No => "the answer no".into(),
            Answer::Yes => "the answer yes".into(),
            Answer::Found(want) => format!("a message of {} with tag {} found by a probe", want.source, want.tag),
            Answer::One(None) => "no active request".into(),
            Answer::One(Some(index)) => format!("the request with index {index}"),
            Answer::Some(indices) => format!("the requests {indices:?}"),
        }
    }
}

struct Script {
    /// By their numbers, from the smallest on. Those before `next` are over.
    receives: Vec<(u64, Took)>,
    next: usize,
    answers: VecDeque<Entry>,
    /// Decisions so far.
    decided: u64,
    /// By slot: a receive that is to take a message, whether it is cancelled or not.
    kept: Vec<bool>,
}

static STATE: EntryGuarded<Option<Script>> = EntryGuarded::new(None);

pub(super) fn begin(file: &str, rank: u32, ranks: u32) -> Result<(), String> {
    let mut script = Script { receives: Vec::new(), next: 0, answers: VecDeque::new(), decided: 0, kept: Vec::new() };
    for entry in read_rank(Path::new(file), rank, ranks)? {
        match entry {
            Entry::Receive { number, source, tag } => {
                script.receives.push((number, Took::Message { source, tag }));
            }
            Entry::Cancelled { number } => {
                script.receives.push((number, Took::Nothing));
            }
            Entry::Time(_) | Entry::Asked { .. } | Entry::Took { .. } | Entry::Left { .. } => {}
            answer => script.answers.push_back(answer),
        }
    }
    script.receives.sort_by_key(|(number, _)| *number);
    STATE.with(|state| *state = Some(script));
    Ok(())
}

impl Script {
    /// What the receive with this number took. Receives are asked for in their order.
    fn took(&mut self, number: u64) -> Option<Took> {
        while self.receives.get(self.next).is_some_and(|(known, _)| *known < number) {
            self.next += 1;
        }
        self.receives.get(self.next).filter(|(known, _)| *known == number).map(|(_, took)| *took)
    }
}

fn with<R>(nothing: R, look: impl FnOnce(&mut Script) -> R) -> R {
    STATE.with(|state| state.as_mut().map(look)).unwrap_or(nothing)
}

/// Decisions of this rank so far, by the record.
pub(super) fn decided() -> u64 {
    with(0, |script| script.decided)
}

/// Does a message from there with that tag fit what is asked for?
fn fits(asked: Want, source: u32, tag: Option<i32>, size: u32) -> bool {
    source < size
        && (asked.source == consts::ANY_SOURCE || asked.source == source as i32)
        && (asked.tag == consts::ANY_TAG) == tag.is_some()
}

/// The receive with this number has done what the record says, if that says anything.
pub(super) fn followed(number: u64) {
    with((), |script| script.decided += u64::from(script.took(number).is_some()));
}

/// What the receive with this number, for `asked`, is to take.
pub(super) fn receive(number: u64, asked: Want, size: u32) -> Want {
    match with(None, |script| script.took(number)) {
        None => asked,
        Some(Took::Nothing) => Want { source: NEVER, tag: asked.tag },
        Some(Took::Message { source, tag }) if fits(asked, source, tag, size) => {
            Want { source: source as i32, tag: tag.unwrap_or(asked.tag) }
        }
        Some(Took::Message { source, tag }) => {
            with((), |script| script.decided += 1);
            let with_tag = tag.map_or_else(String::new, |tag| format!(" with tag {tag}"));
            left_the_record(
                &format!("a message of {} with tag {} of a communicator of {size}", any(asked.source), any(asked.tag)),
                &format!("a message of rank {source}{with_tag} for its receive {number}"),
            )
        }
    }
}

fn any(number: i32) -> String {
    if number < 0 { "anybody (or any)".into() } else { number.to_string() }
}

/// Is the receive in this slot not to be cancelled, since it took a message?
pub(crate) fn keeps(slot: u32) -> bool {
    mode(SCRIPT) && with(false, |script| script.kept.get(slot as usize).copied().unwrap_or(false))
}

/// The receive in this slot is to take a message, or nothing is known of it.
pub(super) fn keep(slot: u32, keeps: bool) {
    with((), |script| {
        let slot = slot as usize;
        if keeps && script.kept.len() <= slot {
            script.kept.resize(slot + 1, false);
        }
        if let Some(kept) = script.kept.get_mut(slot) {
            *kept = keeps;
        }
    });
}

/// What a probe for `asked` that waits found; `None`: the record says nothing.
pub(super) fn found(asked: Want, size: u32) -> Option<Want> {
    match answer()? {
        Answer::Found(found) if found.source < size as i32 => Some(found),
        other => {
            let asked = format!("a message found by a probe for {} with tag {}", any(asked.source), any(asked.tag));
            left_the_record(&asked, &other.told())
        }
    }
}

/// The next answer.
pub(super) fn answer() -> Option<Answer> {
    with(None, |script| {
        let entry = script.answers.front_mut()?;
        script.decided += 1;
        let (answer, left) = match entry {
            Entry::No(run) => {
                *run = run.saturating_sub(1);
                (Answer::No, *run > 0)
            }
            Entry::Yes(run) => {
                *run = run.saturating_sub(1);
                (Answer::Yes, *run > 0)
            }
            Entry::Found { source, tag } => (Answer::Found(Want { source: *source as i32, tag: *tag }), false),
            Entry::Index(index) => (Answer::One(index.checked_sub(1).map(|index| index as usize)), false),
            Entry::Set(indices) => (Answer::Some(indices.iter().map(|index| *index as usize).collect()), false),
            _ => return None,
        };
        if !left {
            script.answers.pop_front();
        }
        Some(answer)
    })
}
