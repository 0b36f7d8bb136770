//! What MPI leaves open, decided otherwise (`vmpirun --chaos`), written down (`--record`) or decided as it was (`--replay`). (Floor 4.)
//!
//! Choices are: who runs next; when a message is seen, beside those of other senders; which sender's message a receive or a probe from anybody takes; whether a
//! test says yes, and which request is taken of several; whether a standard send waits for its receiver. Only jobs that ask for it come here: by the
//! words that the short ways ask anyway (`event::is_wanted`, `failure::is_news`, what is due at the entry).
//!
//! Reading order: this file (the hooks), `draw` (chaos), `log` and `script` (a record written and followed). Tests and waits for one of several are in
//! `request::by_chance`.

mod draw;
mod log;
mod pace;
mod script;

pub(crate) use draw::{leave_place, says_not_yet, some_of, take_one, take_place, wishes_synchronous};
pub(crate) use script::{Answer, keeps};

use crate::comm::Communicator;
use crate::consts;
use crate::errors::{Class, Error, Result};
use crate::failure;
use crate::guarded::EntryGuarded;
use crate::lock;
use crate::plane::Plane;
use crate::process::{self, endpoint};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vmpi_shared::control::env;
use vmpi_shared::decisions::Entry;
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::matching::request::{FLAG_WAKE, NOBODY};

/// The exit code of a job that vmpi cannot go on with.
const OWN_FAULT: i32 = 125;

const CHAOS: u32 = 1;
const LOG: u32 = 2;
const SCRIPT: u32 = 4;
/// Messages are held back.
const HOLD: u32 = 8;
/// All is written down that tells what else could have been taken.
const FULL: u32 = 16;

static MODE: AtomicU32 = AtomicU32::new(0);
/// What it was when MPI ended here.
static BEFORE: AtomicU32 = AtomicU32::new(0);

fn mode(what: u32) -> bool {
    MODE.load(Ordering::Relaxed) & what != 0
}

/// Is any of it asked for?
#[inline]
pub(crate) fn is_on() -> bool {
    mode(CHAOS | LOG | SCRIPT)
}

/// Do decisions follow from a seed?
pub(crate) fn is_chaotic() -> bool {
    mode(CHAOS)
}

/// This rank is about to start. True: something is asked for.
///
/// # Errors
/// A file cannot be written or read.
pub(crate) fn begin(endpoint: &mut Endpoint, ranks: u32) -> Result<bool> {
    let word = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let failed = |what: &str, why: String| Error::new(Class::Other, format!("vmpirun {what}: {why}"));
    let mut wanted = 0;
    if let Some(directory) = word(env::RECORD) {
        let full = word(env::RECORD_ALL).is_some();
        log::begin(&directory, endpoint.me, full).map_err(|why| failed("--record", why))?;
        wanted |= if full { LOG | FULL } else { LOG };
    }
    if let Some(file) = word(env::REPLAY) {
        script::begin(&file, endpoint.me, ranks).map_err(|why| failed("--replay", why))?;
        wanted |= SCRIPT;
    }
    if let Some(chaos) = word(env::CHAOS) {
        if draw::begin(&chaos, endpoint).ok_or_else(|| failed("--chaos", format!("{} is {chaos:?}", env::CHAOS)))? {
            endpoint.hold_back();
            wanted |= HOLD;
        }
        wanted |= CHAOS;
    }
    MODE.store(wanted, Ordering::Relaxed);
    if wanted & CHAOS != 0 {
        lock::on_entry(draw::entered);
    }
    if wanted != 0 {
        failure::look_always();
    }
    Ok(wanted != 0)
}

/// Nothing more is decided, unless MPI begins again.
pub(crate) fn finish() {
    if mode(LOG) {
        log::finish();
    }
    BEFORE.store(MODE.swap(0, Ordering::Relaxed), Ordering::Relaxed);
}

/// MPI begins again in this process: decisions go on where they ended, and what is held back is let go.
pub(crate) fn resume() {
    MODE.store(BEFORE.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Changes (deaths, revocations) that have been acted on.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Has something happened that this process has not acted on? As `failure::is_news`, which always says so here.
pub(crate) fn is_news(changes: u64) -> bool {
    CHANGES.swap(changes, Ordering::Relaxed) != changes
}

/// The same, and it stays news.
pub(crate) fn has_news(changes: u64) -> bool {
    CHANGES.load(Ordering::Relaxed) != changes
}

/// Is there a record only, and nobody who has a word in what is seen of the messages that come?
pub(crate) fn leaves_messages() -> bool {
    let modes = MODE.load(Ordering::Relaxed);
    modes != 0 && modes & CHAOS == 0
}

/// Take in what has arrived.
#[cold]
pub(crate) fn progress() {
    endpoint().progress();
    draw::let_some_go();
}

/// This rank is about to suspend. True: it is to look again instead.
#[cold]
pub(crate) fn before_waiting() -> bool {
    if mode(LOG) {
        log::catch_up();
    }
    if mode(HOLD) {
        // What comes now wakes this rank in any case.
        endpoint().forget_probe();
    }
    let awake = draw::let_one_go();
    if awake {
        endpoint().stay_awake();
    }
    awake
}

/// A message to rank `to` of the job is about to be sent.
#[cold]
pub(crate) fn before_sending(to: u32) {
    if mode(SCRIPT) {
        pace::before_sending(to);
    }
}

/// What a receive or a probe is for, or is to be for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub source: i32,
    pub tag: i32,
}

impl Want {
    fn is_wild(self) -> bool {
        self.source == consts::ANY_SOURCE || self.tag == consts::ANY_TAG
    }
}

/// A blocking receive is about to take its message without a request, if it is the next one to come: which. `None`: it is to be posted.
pub(crate) fn taking(comm: &Communicator, source: i32, tag: i32) -> Option<Want> {
    let asked = Want { source, tag };
    let modes = MODE.load(Ordering::Relaxed);
    if modes & (CHAOS | FULL) != 0 {
        return None;
    }
    if modes & LOG != 0 {
        // It may wait, perhaps for good.
        log::catch_up();
    }
    if modes & SCRIPT == 0 {
        return Some(asked);
    }
    if !asked.is_wild() {
        pace::favour(comm, source);
        return Some(asked);
    }
    let wanted = script::receive(log::next_number(), asked, comm.peers().size());
    pace::favour(comm, wanted.source);
    (wanted.source != script::NEVER).then_some(wanted)
}

/// It has taken this message (source and tag).
pub(crate) fn took(source: i32, tag: i32, message: (i32, i32)) {
    let asked = Want { source, tag };
    let modes = MODE.load(Ordering::Relaxed);
    if modes == 0 || !asked.is_wild() {
        return;
    }
    let number = log::number();
    if modes & SCRIPT != 0 {
        script::followed(number);
    }
    if modes & LOG != 0 {
        log::took(number, (tag == consts::ANY_TAG, message));
    }
}

/// A receive is about to be posted in this slot.
#[cold]
pub(crate) fn posting(comm: &Communicator, plane: Plane, slot: u32) {
    if plane != Plane::User {
        return;
    }
    let queues = endpoint().queues();
    let shared = &queues.slots[slot as usize];
    let asked = Want { source: shared.source, tag: shared.tag };
    let size = comm.peers().size();
    let mut wanted = asked;
    if asked.is_wild() {
        let number = log::number();
        if mode(SCRIPT) {
            wanted = script::receive(number, asked, size);
            script::followed(number);
            script::keep(slot, wanted != asked && wanted.source >= 0);
        }
        if wanted == asked && asked.source == consts::ANY_SOURCE && mode(CHAOS) {
            wanted.source = draw::prefer(comm.context, size, asked);
        }
        if mode(LOG) {
            log::posted(slot, number, comm.context, asked);
        }
    }
    if mode(SCRIPT) {
        pace::favour(comm, wanted.source);
    }
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot as usize];
    if mode(LOG) && asked.is_wild() {
        // Whoever matches it, this rank is to see that.
        shared.flags |= FLAG_WAKE;
    }
    if wanted != asked {
        (shared.source, shared.tag) = (wanted.source, wanted.tag);
        shared.from = u32::try_from(wanted.source)
            .ok()
            .filter(|source| *source < size)
            .map_or(NOBODY, |source| comm.peers().world_rank(source));
    }
}

/// A message has been received: into this slot.
#[cold]
pub(crate) fn received(slot: u32, context: u32, source: i32, tag: i32) {
    taken(context);
    if mode(SCRIPT) {
        script::keep(slot, false);
    }
    if mode(LOG) {
        log::received(slot, context, source, tag);
    }
}

/// What probes have found, and nobody has taken since: the next such probe finds it, too.
static FOUND: EntryGuarded<Vec<(u32, Want)>> = EntryGuarded::new(Vec::new());

pub(crate) fn was_found(context: u32, asked: Want) -> bool {
    FOUND.with(|found| found.contains(&(context, asked)))
}

/// A message of this context has been taken.
pub(crate) fn taken(context: u32) {
    FOUND.with(|found| found.retain(|(of, _)| *of != context));
}

/// The receive in this slot ends without a message.
#[cold]
pub(crate) fn cancelled(slot: u32) {
    if mode(LOG) {
        log::cancelled(slot);
    }
}

/// What a probe for `asked` that waits is to wait for.
#[cold]
pub(crate) fn probing(comm: &Communicator, asked: Want) -> Want {
    let size = comm.peers().size();
    if mode(SCRIPT)
        && let Some(found) = script::found(asked, size)
    {
        pace::favour(comm, found.source);
        return found;
    }
    let source = if mode(CHAOS) && asked.source == consts::ANY_SOURCE {
        draw::prefer(comm.context, size, asked)
    } else {
        asked.source
    };
    Want { source, ..asked }
}

/// What the record says that a test or a probe that does not wait answers; `None`: nothing.
#[cold]
pub(crate) fn answer() -> Option<Answer> {
    if mode(SCRIPT) { script::answer() } else { None }
}

/// The program has asked for something else than the record has an answer for.
#[cold]
pub(crate) fn left_the_record(asked: &str, told: &str) -> ! {
    let rank = process::endpoint_rank();
    process::abort(
        OWN_FAULT,
        &format!(
            "the replay cannot go on: rank {rank} leaves the record in its decision {}: it asks for {asked}, and the record has {told}. Is it the same program \
             with the same input, and does nothing else decide what it does (the clock, threads, files, random numbers)?",
            script::decided()
        ),
    )
}

/// A test or a probe has said so.
#[cold]
pub(crate) fn note(entry: &Entry) {
    if mode(LOG) {
        log::answered(entry);
    }
}

/// A probe has found a message, for `asked`.
#[cold]
pub(crate) fn note_found(context: u32, asked: Want, source: i32, tag: i32) {
    if mode(CHAOS) && !was_found(context, asked) {
        FOUND.with(|found| found.push((context, asked)));
    }
    if mode(LOG) {
        log::found(context, asked, source, tag);
    }
}
