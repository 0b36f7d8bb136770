//! The begin and the end of a program that is checked: what is left when it calls MPI_Finalize, and of objects when its last session has ended, too.

use super::made::{self, Made, What};
use super::sites::Site;
use super::{far, is_full, is_on, tell};
use crate::comm::{self, Communicator};
use crate::errors::{Class, Error, Result};
use crate::handle::{Comm, Handle};
use crate::monitor;
use crate::p2p::{buffered, checked as messages};
use crate::process::{self, endpoint};
use crate::request::{self, Left};
use crate::tool::event;
use std::collections::BTreeMap;
use std::rc::Rc;
use vmpi_shared::control::{Check, FindingKind, Party};

/// Kinds of lost messages of a communicator that are told one by one.
const MOST_MESSAGES: usize = 64;

/// MPI is up: what is wanted?
///
/// # Errors
/// `Class::Other` for a word that is no level.
pub(crate) fn prepare() -> Result<()> {
    let level = Check::of_environment().map_err(|why| Error::new(Class::Other, why))?;
    if level != Check::Off {
        super::set(level);
        event::note_checked();
        monitor::check();
    }
    Ok(())
}

/// All ranks have come to MPI_Finalize.
pub(crate) fn look() {
    if !is_on() {
        return;
    }
    endpoint().progress();
    far::look();
    requests();
    lost_messages();
    if is_full() {
        let text = |owner: buffered::Owner| format!("the buffer of {}", owner.describe());
        for owner in buffered::owners() {
            say(FindingKind::BufferNotDetached, "MPI_Buffer_attach".into(), Site::default(), text(owner));
        }
    }
}

fn say(kind: FindingKind, call: String, site: Site, text: String) {
    tell::tell(kind, vec![tell::own(call, site)], text);
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("one {what}") } else { format!("{count} {what}s") }
}

/// Requests that the program has not completed, each place once.
fn requests() {
    let mut left: BTreeMap<(String, Site, bool), u64> = BTreeMap::new();
    for request in request::left() {
        let (words, site, is_persistent) = match request {
            Left::Message(slot) => match messages::open_at(slot) {
                Some((words, site)) => (words, site, false),
                None => continue,
            },
            Left::Collective(handle) => match made::started_with(handle.raw()) {
                Some((name, site)) => (name.to_owned(), site, false),
                None => continue,
            },
            Left::Generalized => ("MPI_Grequest_start".to_owned(), Site::default(), false),
            Left::Inactive => ("a persistent request".to_owned(), Site::default(), true),
        };
        *left.entry((words, site, is_persistent)).or_default() += 1;
    }
    for ((words, site, is_persistent), count) in left {
        if !is_persistent {
            say(FindingKind::RequestNotCompleted, words, site, counted(count, "request"));
        } else if is_full() {
            say(FindingKind::NotFreed, words, site, counted(count, "request"));
        }
    }
}

/// Messages that have come and that no receive has asked for.
fn lost_messages() {
    let own = [Comm::WORLD, Comm::SELF].into_iter().filter_map(|handle| comm::get(handle).ok());
    let all: Vec<Rc<Communicator>> = own.chain(comm::created()).collect();
    for comm in all {
        let envelopes = endpoint().queues().unexpected_of(comm.context);
        let mut lost: BTreeMap<(u32, i32, u64), u64> = BTreeMap::new();
        for envelope in envelopes.iter().filter(|envelope| envelope.tag >= 0) {
            *lost.entry((envelope.from, envelope.tag, envelope.len)).or_default() += 1;
        }
        let name = String::from_utf8_lossy(&comm.name()).into_owned();
        let name = if name.is_empty() { "a communicator without a name".into() } else { name };
        for ((from, tag, bytes), count) in lost.into_iter().take(MOST_MESSAGES) {
            let sender =
                Party { ranks: [from].into(), call: format!("a send of {bytes} bytes with tag {tag}"), site: None };
            let receiver =
                Party { ranks: [process::endpoint_rank()].into(), call: "no receive for it".into(), site: None };
            let text = format!("{} in {name}", counted(count, "message"));
            tell::tell(FindingKind::MessageNotReceived, vec![sender, receiver], text);
        }
    }
}

/// Is it one that the program need not free, or never saw? What MPI_Init and MPI_Comm_get_parent give, and what windows and files have of their own.
fn is_ours(made: &Made) -> bool {
    let of = |names: &[&str]| names.iter().any(|name| made.function.starts_with(name));
    let of_its_own = !matches!(made.what, What::Window | What::File);
    of(&["MPI_Init", "MPI_Comm_get_parent", "MPI_Finalize"])
        || of_its_own && of(&["MPI_Win_create", "MPI_Win_allocate", "MPI_File_open"])
}

/// Who has made it. Functions that may be called at any time say not what they are.
fn maker(made: &Made) -> String {
    match made.what {
        What::Info | What::Errhandler | What::Keyval | What::Session => "made".into(),
        _ => made.function.into(),
    }
}

/// The last of the world model and the sessions ends: what has the program made and not freed?
pub(crate) fn objects() {
    if !is_on() {
        return;
    }
    for (made, count) in made::left() {
        let kind = match made.what {
            What::Window => FindingKind::WindowNotFreed,
            What::File => FindingKind::FileNotClosed,
            _ => FindingKind::NotFreed,
        };
        if !is_ours(&made) && (kind.is_error() || is_full()) {
            say(kind, maker(&made), made.site, counted(count, made.what.name()));
        }
    }
}
