//! Messages, out of what their two ends have recorded.

use super::{Message, Ns};
use std::collections::HashMap;
use std::rc::Rc;
use vmpi_shared::trace::Within;

/// A message's end: who, with whom, and the rest of what both ends know.
pub(super) struct End {
    pub(super) rank: u32,
    pub(super) peer: u32,
    pub(super) id: u16,
    pub(super) ns: Ns,
    pub(super) bytes: u64,
    pub(super) context: u32,
    pub(super) tag: i32,
    /// The function that the sender called.
    pub(super) call: Rc<str>,
    pub(super) within: Within,
}

/// Sends with their receives; and how many ends have no other. `slack`: so far off may be what the clocks of two ranks say.
pub(super) fn matched(sends: &[End], takes: &[End], slack: impl Fn(u32, u32) -> Ns) -> (Vec<Message>, u64) {
    // A sender's numbers come round again: the last one before the receiving is meant.
    let mut by_id: HashMap<(u32, u16), Vec<usize>> = HashMap::new();
    for (index, send) in sends.iter().enumerate() {
        by_id.entry((send.rank, send.id)).or_default().push(index);
    }
    let mut messages = Vec::with_capacity(takes.len());
    let mut used = vec![false; sends.len()];
    for take in takes {
        let candidates = by_id.get(&(take.peer, take.id)).map_or(&[][..], Vec::as_slice);
        let until = take.ns.saturating_add(slack(take.peer, take.rank));
        let last = candidates.partition_point(|index| sends[*index].ns <= until);
        let Some(index) = last.checked_sub(1).map(|last| candidates[last]) else { continue };
        let send = &sends[index];
        let fits =
            send.peer == take.rank && send.context == take.context && send.tag == take.tag && take.bytes <= send.bytes;
        if fits && !used[index] {
            used[index] = true;
            messages.push(Message {
                from: send.rank,
                to: take.rank,
                sent: send.ns,
                received: take.ns,
                bytes: send.bytes,
                tag: send.tag,
                call: send.call.clone(),
                collective: send.context & 1 == 1,
                context: send.context & !1,
                within: send.within,
            });
        }
    }
    messages.sort_by_key(|message| (message.sent, message.from));
    let half = (sends.len() + takes.len() - 2 * messages.len()) as u64;
    (messages, half)
}
