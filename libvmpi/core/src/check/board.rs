//! Where the ranks of this node compare what they do (`vmpi_shared::check`), in a job with a daemon.

use crate::guarded::EntryGuarded;
use vmpi_shared::check::CheckBoard;

static BOARD: EntryGuarded<Option<CheckBoard>> = EntryGuarded::new(None);

pub(crate) fn set(board: CheckBoard) {
    BOARD.with(|own| *own = Some(board));
}

/// `None`: there is none.
pub(crate) fn with<R>(look: impl FnOnce(&CheckBoard) -> R) -> Option<R> {
    BOARD.with(|board| board.as_ref().map(look))
}

/// A function's name as it stands there.
pub(crate) fn name_of(function: &str) -> [u8; 32] {
    let mut name = [0; 32];
    let len = function.len().min(name.len());
    name[..len].copy_from_slice(&function.as_bytes()[..len]);
    name
}

/// The same in words.
pub(crate) fn name(name: &[u8; 32]) -> String {
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..len]).into_owned()
}
