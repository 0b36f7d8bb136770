//! What the program has made and not freed, or started and not completed, and where.

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

/// Collectives that do not wait and whose requests are there, by these: the function, and where it was called.
static STARTED: EntryGuarded<BTreeMap<u32, (&'static str, Site)>> = EntryGuarded::new(BTreeMap::new());

/// The collective that the program has just started has this request.
pub(crate) fn started(request: u32) {
    STARTED.with(|started| started.insert(request, (called(), sites::here())));
}

/// What was started with this request.
pub(crate) fn started_with(request: u32) -> Option<(&'static str, Site)> {
    STARTED.with(|started| started.get(&request).copied())
}

/// The request is no more; another one may get its number.
#[cold]
pub(crate) fn ended(request: u32) {
    STARTED.with(|started| started.remove(&request));
}

/// What is left, each place once, with how many there are.
pub(crate) fn left() -> BTreeMap<Made, u64> {
    let mut left = BTreeMap::new();
    MADE.with(|all| all.values().for_each(|made| *left.entry(*made).or_default() += 1));
    left
}
