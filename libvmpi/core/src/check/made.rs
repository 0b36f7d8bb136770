//! What the program has made and not freed, and where.

use super::sites::{self, Site};
use crate::guarded::EntryGuarded;
use std::collections::BTreeMap;
use vmpi_shared::trace::called;

/// Kinds of objects.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    Comm,
    Group,
    Window,
    File,
    Session,
    Info,
    Errhandler,
    Datatype,
    Op,
    Keyval,
}

impl What {
    pub(crate) fn name(self) -> &'static str {
        match self {
            What::Comm => "communicator",
            What::Group => "group",
            What::Window => "window",
            What::File => "file",
            What::Session => "session",
            What::Info => "info object",
            What::Errhandler => "error handler",
            What::Datatype => "datatype",
            What::Op => "operation",
            What::Keyval => "attribute key",
        }
    }
}

/// Where an object was made, and by which function.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Made {
    pub what: What,
    pub function: &'static str,
    pub site: Site,
}

static MADE: EntryGuarded<BTreeMap<(What, u32), Made>> = EntryGuarded::new(BTreeMap::new());

/// The program gets the handle `raw` of a new object.
pub(crate) fn made(what: What, raw: u32) {
    if super::is_on() {
        let made = Made { what, function: called(), site: sites::here() };
        MADE.with(|all| all.insert((what, raw), made));
    }
}

/// It is freed, or was none of the program's.
pub(crate) fn freed(what: What, raw: u32) {
    if super::is_on() {
        MADE.with(|all| all.remove(&(what, raw)));
    }
}

/// What is left, each place once, with how many there are.
pub(crate) fn left() -> BTreeMap<Made, u64> {
    let mut left = BTreeMap::new();
    MADE.with(|all| all.values().for_each(|made| *left.entry(*made).or_default() += 1));
    left
}
