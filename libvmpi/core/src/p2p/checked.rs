//! Messages of a program that is checked (`vmpirun --check`): what is open, and does it fit?
//!
//! The sender's kind of data (`check::signature`) travels in the envelope's `trace`, where a recording has its numbers: while this rank records, nothing is compared.

use super::{Mode, Slot};
use crate::check::sites::{self, Site};
use crate::check::{self, signature, sums, tell};
use crate::consts;
use crate::datatype::Type;
use crate::guarded::EntryGuarded;
use crate::monitor;
use crate::plane::{Plane, USER_TAG_BIT};
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_shared::control::{FindingKind, Party};
use vmpi_shared::endpoint::Taken;
use vmpi_shared::matching::envelope::Envelope;
use vmpi_shared::trace::called;

/// A buffer: where, how many elements, of which type.
type Buffer<'a> = (*const c_void, u64, &'a Rc<Type>);

/// An operation of the program that is not complete.
pub(crate) struct Open {
    pub function: &'static str,
    pub site: Site,
    receives: bool,
    peer: i32,
    tag: i32,
    addr: u64,
    count: u64,
    ty: Rc<Type>,
    /// Of what was in the buffer when it was sent.
    sum: Option<u64>,
}

/// By slot.
static OPEN: EntryGuarded<Vec<Option<Open>>> = EntryGuarded::new(Vec::new());
/// A send that has no slot yet.
static STARTED: EntryGuarded<Option<Open>> = EntryGuarded::new(None);

/// Blocks of a buffer that are looked at one by one.
const MOST_BLOCKS: usize = 4096;

impl Open {
    fn new(receives: bool, (buf, count, ty): Buffer<'_>, peer: i32, tag: i32) -> Open {
        let (function, site) = (called(), sites::here());
        Open { function, site, receives, peer, tag, addr: buf as u64, count, ty: ty.clone(), sum: None }
    }

    pub(crate) fn words(&self) -> String {
        words(self.function, self.receives, self.count.saturating_mul(self.ty.size()), (self.peer, self.tag))
    }

    /// The memory that it reaches: first byte and length; `None`: too many pieces.
    fn blocks(&self) -> Option<Vec<(u64, u64)>> {
        let mut blocks = Vec::new();
        self.ty.blocks(self.count, &mut |offset, len| {
            blocks.push((self.addr.wrapping_add_signed(offset), len));
            blocks.len() <= MOST_BLOCKS
        });
        (blocks.len() <= MOST_BLOCKS).then_some(blocks)
    }

    /// A sum over what is in its buffer now; `None`: it cannot be read.
    fn sum_of_buffer(&self) -> Option<u64> {
        self.blocks()?.into_iter().try_fold(sums::START, |sum, (addr, len)| sums::over_memory(sum, addr, len))
    }

    fn party(&self) -> Party {
        tell::own(self.words(), self.site)
    }
}

/// Do two lists of blocks share a byte? The lists are sorted here.
fn overlap(a: &mut [(u64, u64)], b: &mut [(u64, u64)]) -> bool {
    a.sort_unstable();
    b.sort_unstable();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (one, other) = (a[i], b[j]);
        if one.1 > 0 && other.1 > 0 && one.0 < other.0 + other.1 && other.0 < one.0 + one.1 {
            return true;
        }
        if one.0 + one.1 <= other.0 + other.1 { i += 1 } else { j += 1 }
    }
    false
}

/// `MPI_Irecv (4 bytes, tag 5, source 0)`.
fn words(function: &str, receives: bool, bytes: u64, (peer, tag): (i32, i32)) -> String {
    let tag = if tag == consts::ANY_TAG { "any tag".into() } else { format!("tag {tag}") };
    let peer = match (receives, peer) {
        (true, consts::ANY_SOURCE) => "any source".into(),
        (true, peer) => format!("source {peer}"),
        (false, peer) => format!("destination {peer}"),
    };
    format!("{function} ({bytes} bytes, {tag}, {peer})")
}

/// What a function of MPI is for messages.
#[derive(Copy, Clone)]
struct Nature {
    /// Its name's address.
    function: usize,
    /// It sends or receives by itself; others (constructions of communicators, partitioned operations) send messages among the program's.
    for_messages: bool,
    blocks: bool,
}

const NATURES: usize = 64;
static KNOWN: EntryGuarded<[Nature; NATURES]> =
    EntryGuarded::new([Nature { function: 0, for_messages: false, blocks: false }; NATURES]);

/// That of the function that the program has called. Names are looked at once.
fn nature() -> Nature {
    let name = called();
    let function = name.as_ptr() as usize;
    KNOWN.with(|known| {
        let found = &mut known[sites::place_of::<NATURES>(function)];
        if found.function != function {
            *found = Nature { function, ..nature_of(name) };
        }
        *found
    })
}

#[cold]
fn nature_of(name: &str) -> Nature {
    let plain = name.strip_prefix("MPI_").unwrap_or(name).to_ascii_lowercase();
    let for_messages = ["send", "recv", "start"].iter().any(|word| plain.contains(word)) && !plain.starts_with("win_");
    Nature { function: 0, for_messages, blocks: !(name.starts_with("MPI_I") || name.starts_with("MPI_Start")) }
}

/// Can this be the program's own message?
fn may_be_the_programs(plane: Plane, tag: i32) -> bool {
    plane == Plane::User && (tag >= 0 || tag == consts::ANY_TAG)
}

/// A send begins; in which mode it goes on.
pub(super) fn sending(plane: Plane, envelope: &mut Envelope, buffer: Buffer<'_>, dest: i32, mode: Mode) -> Mode {
    if !check::is_on() {
        return mode;
    }
    STARTED.with(|started| *started = None);
    let tag = envelope.tag;
    if !may_be_the_programs(plane, tag) {
        return mode;
    }
    let Nature { for_messages, blocks, .. } = nature();
    if !for_messages {
        return mode;
    }
    if envelope.trace == 0 && !monitor::records() {
        envelope.trace = signature::of(buffer.2, envelope.len);
    }
    if tag & USER_TAG_BIT != 0 {
        let text = format!("the tag is {tag}, MPI_TAG_UB is {}", consts::TAG_UB_VALUE);
        tell::tell(FindingKind::TagTooLarge, vec![Open::new(false, buffer, dest, tag).party()], text);
    }
    let passes = blocks || mode == Mode::Buffered;
    if passes && !check::is_full() {
        return mode;
    }
    let mut open = Open::new(false, buffer, dest, tag);
    if check::is_full() {
        look_for_overlap(&open);
    }
    if passes {
        return mode;
    }
    if check::is_full() {
        open.sum = open.sum_of_buffer();
    }
    STARTED.with(|started| *started = Some(open));
    // One that has left at once has a request all the same, so that it can be missed.
    if matches!(mode, Mode::Standard | Mode::Ready) { Mode::Noted } else { mode }
}

/// The send that has begun has this slot.
pub(super) fn opened(slot: Slot) {
    if check::is_on() {
        put(slot, STARTED.with(Option::take));
    }
}

fn put(slot: Slot, open: Option<Open>) {
    OPEN.with(|all| {
        if all.len() <= slot.0 as usize {
            all.resize_with(slot.0 as usize + 1, || None);
        }
        all[slot.0 as usize] = open;
    });
}

/// A receive is about to be posted.
#[cold]
pub(super) fn posting(
    slot: Slot,
    plane: Plane,
    (buf, count, ty): (*mut c_void, u64, &Rc<Type>),
    source: i32,
    tag: i32,
) {
    if !check::is_on() {
        return;
    }
    if !(may_be_the_programs(plane, tag) && nature().for_messages) {
        return put(slot, None);
    }
    let open = Open::new(true, (buf.cast_const(), count, ty), source, tag);
    if check::is_full() {
        look_for_overlap(&open);
    }
    put(slot, Some(open));
}

/// A receive, or what it overlaps with, must not share memory with another operation.
fn look_for_overlap(new: &Open) {
    let span = |open: &Open| {
        let reach = (open.count.saturating_sub(1) as i64).saturating_mul(open.ty.extent());
        let first = open.addr.wrapping_add_signed(open.ty.true_lb() + reach.min(0));
        (first, first.saturating_add_signed(open.ty.true_extent().saturating_add(reach.abs())))
    };
    if new.count == 0 || new.ty.size() == 0 {
        return;
    }
    let (first, end) = span(new);
    let found = OPEN.with(|all| {
        let others = all.iter().flatten().filter(|other| (other.receives || new.receives) && other.count > 0);
        let mut near = others.filter(|other| span(other).0 < end && first < span(other).1);
        let shares = |other: &&Open| match (new.blocks(), other.blocks()) {
            (Some(mut a), Some(mut b)) => overlap(&mut a, &mut b),
            _ => false,
        };
        near.find(shares).map(|other| (other.words(), other.site))
    });
    if let Some((words, site)) = found {
        tell::tell(FindingKind::BufferOverlap, vec![new.party(), tell::own(words, site)], String::new());
    }
}

/// The receive has got its message, of `len` bytes, of which `bytes` have found room.
pub(super) fn received(slot: Slot, sent_as: u16, from: u32, (tag, bytes, len): (i32, u64, u64)) {
    let Some(open) = OPEN.with(|all| all.get_mut(slot.0 as usize).and_then(Option::take)) else { return };
    if len > bytes {
        let text = format!("the message has {len} bytes, the buffer {bytes}");
        let sender = Party { ranks: [from].into(), call: format!("a send with tag {tag}"), site: None };
        tell::tell(FindingKind::Truncation, vec![open.party(), sender], text);
    }
    if len <= bytes && differs(&open.ty, bytes, sent_as) {
        tell_of_types((open.party(), sent_as, signature::of(&open.ty, bytes)), from, tag);
    }
}

/// Has this rank received `bytes` bytes as another kind of data than they were sent as?
fn differs(ty: &Type, bytes: u64, sent_as: u16) -> bool {
    sent_as != signature::ANY && !signature::fit(sent_as, signature::of(ty, bytes)) && !monitor::records()
}

#[cold]
fn tell_of_types((receiver, sent_as, received_as): (Party, u16, u16), from: u32, tag: i32) {
    let sender = Party { ranks: [from].into(), call: format!("a send with tag {tag}"), site: None };
    let text = format!("sent as {}, received as {}", signature::words(sent_as), signature::words(received_as));
    tell::tell(FindingKind::TypeMismatch, vec![receiver, sender], text);
}

/// A blocking receive of at most `room` bytes, for `asked` (source and tag), has taken this message without a request.
pub(super) fn taken(ty: &Type, (room, asked): (u64, (i32, i32)), message: &Taken) {
    if check::is_on() && differs(ty, message.len, message.trace) {
        let receiver = tell::own(words(called(), true, room, asked), sites::here());
        tell_of_types((receiver, message.trace, signature::of(ty, message.len)), message.from, message.tag);
    }
}

/// The operation is complete, and the program knows.
pub(super) fn ended(slot: Slot) {
    let Some(open) = OPEN.with(|all| all.get_mut(slot.0 as usize).and_then(Option::take)) else { return };
    if open.sum.is_some() && open.sum_of_buffer() != open.sum {
        tell::tell(FindingKind::SendBufferChanged, vec![open.party()], String::new());
    }
}

/// The program has freed its request: it hears of the end in its own way, and may do what it likes with the buffer then.
pub(crate) fn freed(slot: Slot) {
    if check::is_on() {
        put(slot, None);
    }
}

/// What is open under this slot: in words, and where it was started.
pub(crate) fn open_at(slot: Slot) -> Option<(String, Site)> {
    OPEN.with(|all| all.get(slot.0 as usize)?.as_ref().map(|open| (open.words(), open.site)))
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn columns_of_a_matrix_do_not_overlap_unless_they_do() {
        let column = |at: u64, width: u64| (0..4).map(|row| (row * 64 + at, width)).collect::<Vec<_>>();
        assert!(!overlap(&mut column(0, 8), &mut column(8, 8)));
        assert!(overlap(&mut column(0, 16), &mut column(8, 8)));
        assert!(!overlap(&mut column(0, 8), &mut [(8, 0)]));
        assert!(overlap(&mut [(200, 1)], &mut column(0, 16)));
        assert!(!overlap(&mut [], &mut column(0, 16)));
    }
}
