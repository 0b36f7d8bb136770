//! The last round of a blocking collective of the program's: messages after which this rank has nothing to do for it, out of and into the program's own memory. Who is
//! told of it (`overlap`) may have the call return before they are over.

use super::plan::Data;
use crate::comm::Communicator;
use crate::datatype::Type;
use crate::errors::Result;
use crate::handle::Comm;
use crate::p2p::Slot;
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::OnceLock;

/// Rounds without a message of so many bytes are nobody's business.
const LEAST_BYTES: u64 = 32 << 10;

/// A message of the round.
pub struct Message<'a> {
    pub comm: &'a Communicator,
    pub data: Data,
    pub ty: &'a Rc<Type>,
    pub peer: i32,
    pub tag: i32,
    pub receives: bool,
}

/// Messages that are to be waited for.
pub type Rest = SmallVec<[Slot; 8]>;

/// Who may leave messages behind.
#[derive(Copy, Clone)]
pub struct Leaver {
    /// Start all of them, in this order, of a call with this communicator. `None`: nothing has been done.
    ///
    /// # Safety
    /// The data must be valid until the messages are over.
    pub leave: unsafe fn(Comm, &[Message<'_>]) -> Option<Result<Rest>>,
    /// A call that has not been left behind has waited.
    pub waited: fn(),
}

static LEAVER: OnceLock<Leaver> = OnceLock::new();

/// From now on last rounds are told of.
pub(crate) fn tell(leaver: Leaver) {
    let _ = LEAVER.set(leaver);
}

pub(super) fn leaver() -> Option<&'static Leaver> {
    LEAVER.get()
}

pub(super) fn is_large(data: &Data) -> bool {
    data.bytes() >= LEAST_BYTES
}
