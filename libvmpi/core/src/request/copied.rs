//! Buffers that an operation has instead of the program's, which lie scattered (array sections of Fortran): when they are filled from those,
//! and when what has come goes back.

use crate::guarded::EntryGuarded;
use crate::handle::Request;
use std::collections::BTreeMap;

/// A copy of a buffer of the program.
pub trait Copied {
    /// Take what the program has in its buffer: the operation starts.
    fn take(&mut self);
    /// Put what the operation has changed since `take`, or since the last `put_back`, where the program has it; nothing else is written.
    fn put_back(&mut self);
}

/// By request, as a number.
static COPIES: EntryGuarded<BTreeMap<u32, Vec<Box<dyn Copied>>>> = EntryGuarded::new(BTreeMap::new());

/// The operation of `request`, which is persistent or has just been started, uses this copy: what it has changed is to be put back when it has ended, before the
/// program hears of that, and each start takes anew.
pub fn hold(request: Request, copy: Box<dyn Copied>) {
    if request == Request::SENT {
        // Nobody looks at it any more.
        return;
    }
    COPIES.with(|copies| copies.entry(request.0).or_default().push(copy));
}

/// Does any request have copies?
#[inline]
pub(super) fn any() -> bool {
    COPIES.with(|copies| !copies.is_empty())
}

/// A persistent request is about to be started.
pub(super) fn take(request: Request) {
    if any() {
        each(request, |copy| copy.take());
    }
}

/// The operation of `request` has ended.
#[inline]
pub(super) fn put_back(request: Request) {
    if any() {
        each(request, |copy| copy.put_back());
    }
}

/// A request is no more.
#[inline]
pub(super) fn forget(request: Request) {
    if any() {
        COPIES.with(|copies| copies.remove(&request.0));
    }
}

#[cold]
fn each(request: Request, f: impl Fn(&mut dyn Copied)) {
    COPIES.with(|copies| copies.get_mut(&request.0).into_iter().flatten().for_each(|copy| f(&mut **copy)));
}
