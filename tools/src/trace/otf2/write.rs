//! An archive through libotf2: beside its place first, so that one that was there is replaced only by a whole one.
#![allow(unsafe_code)]

use super::communicators::Members;
use super::library::{FlushCallbacks, Functions, Handle};
use super::{Archive, Event, Kind, Ns};
use crate::daemon::VERSION;
use crate::trace::timeline::Timeline;
use std::collections::HashMap;
use std::ffi::{CString, OsStr, c_int, c_void};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

// Of the format's enumerations.
const WRITE: u8 = 0;
const POSIX: u8 = 1;
const NOT_COMPRESSED: u8 = 1;
const FLUSH: u8 = 1;
const PROCESS: u8 = 1;
const CPU_THREAD: u8 = 1;
const ROLE_FUNCTION: u8 = 1;
const ROLE_CODE: u8 = 4;
const PARADIGM_USER: u8 = 1;
const PARADIGM_MPI: u8 = 4;
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;
const COMM_SELF: u8 = 6;
const ON: u8 = 1;
const OFF: u8 = 2;
const UNDEFINED: u32 = u32::MAX;
const EVENT_CHUNK: u64 = 1 << 20;
const DEFINITION_CHUNK: u64 = 4 << 20;
const NS_PER_SECOND: u64 = 1_000_000_000;
/// What an archive is called before it is in its place.
const NAME: &str = "trace";
const ANCHOR: &str = "trace.otf2";
const NULL: Handle = std::ptr::null_mut();

/// Write the timeline as the archive whose anchor file is `path` (NAME.otf2, beside which come NAME.def and the directory NAME).
///
/// # Errors
/// There is no libotf2, or it says what is wrong.
pub fn write(timeline: &Timeline, host: &str, path: &Path) -> Result<(), String> {
    let functions = Functions::load()?;
    let archive = Archive::of(timeline, host);
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{file}-{}", std::process::id()));
    fs::create_dir(&fresh).map_err(|e| format!("{}: {e}", fresh.display()))?;
    let done = Writer::open(&functions, &fresh)
        .and_then(|writer| writer.all(&archive))
        .and_then(|()| replace(&fresh, path).map_err(|e| e.to_string()));
    let _ = fs::remove_dir_all(&fresh);
    done
}

/// Can the archive be written: is libotf2 there, and its place free, or an archive's?
///
/// # Errors
/// What is missing, or in the way.
pub fn check(path: &Path) -> Result<(), String> {
    Functions::load()?;
    in_the_way(path).map_or(Ok(()), Err)
}

/// What lies beside the anchor file in an archive: the definitions, and the directory of events.
fn parts(path: &Path) -> [PathBuf; 2] {
    [path.with_extension("def"), path.with_extension("")]
}

/// What is there and belongs to no archive.
fn in_the_way(path: &Path) -> Option<String> {
    let own = |entry: &Path| entry.extension().is_some_and(|ending| ending == "evt" || ending == "def");
    for part in parts(path) {
        let strange = match fs::read_dir(&part) {
            _ if !path.exists() => part.exists().then_some(part),
            Ok(list) => list.filter_map(Result::ok).map(|entry| entry.path()).find(|entry| !own(entry)),
            Err(_) => None,
        };
        if let Some(strange) = strange {
            return Some(format!("{} is there, and is no part of an OTF2 archive", strange.display()));
        }
    }
    None
}

/// Put the archive that is in `fresh` in the place of what `path` is the anchor file of.
fn replace(fresh: &Path, path: &Path) -> io::Result<()> {
    if let Some(strange) = in_the_way(path) {
        return Err(io::Error::other(strange));
    }
    let ([definitions, events], [new_definitions, new_events]) = (parts(path), parts(&fresh.join(ANCHOR)));
    if let Ok(list) = fs::read_dir(&events) {
        for entry in list {
            fs::remove_file(entry?.path())?;
        }
        fs::remove_dir(&events)?;
    }
    fs::rename(new_events, events)?;
    fs::rename(new_definitions, definitions)?;
    // The anchor last: it says that the rest is there.
    fs::rename(fresh.join(ANCHOR), path)
}

unsafe extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    FLUSH
}

static CALLBACKS: FlushCallbacks = FlushCallbacks { before: flush, after: None };

/// An archive being written.
struct Writer<'a> {
    otf2: &'a Functions,
    archive: Handle,
}

/// Strings, each defined when it is first named.
struct Strings {
    numbers: HashMap<String, u32>,
}

impl<'a> Writer<'a> {
    fn open(otf2: &'a Functions, dir: &Path) -> Result<Writer<'a>, String> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(|e| e.to_string());
        let (dir, name, creator) =
            (text(dir.as_os_str())?, text(OsStr::new(NAME))?, text(OsStr::new(&format!("vmpi {VERSION}")))?);
        // SAFETY: strings that outlive the call; the numbers are the format's.
        let archive = unsafe {
            (otf2.open)(dir.as_ptr(), name.as_ptr(), WRITE, EVENT_CHUNK, DEFINITION_CHUNK, POSIX, NOT_COMPRESSED)
        };
        if archive.is_null() {
            return Err("libotf2 could not begin the archive".into());
        }
        let writer = Writer { otf2, archive };
        // SAFETY: the archive is open; the callbacks are static.
        unsafe {
            writer.good((otf2.set_flush)(archive, &raw const CALLBACKS, NULL))?;
            writer.good((otf2.set_serial)(archive))?;
            writer.good((otf2.set_creator)(archive, creator.as_ptr()))?;
        }
        Ok(writer)
    }

    fn good(&self, code: c_int) -> Result<(), String> {
        if code == 0 { Ok(()) } else { Err(format!("libotf2 says: {}", self.otf2.words(code))) }
    }

    /// Everything; the archive is closed.
    fn all(self, archive: &Archive) -> Result<(), String> {
        let done = self.events(archive).and_then(|()| self.definitions(archive));
        // SAFETY: it is open, and not used any more.
        let closed = self.good(unsafe { (self.otf2.close)(self.archive) });
        done.and(closed)
    }

    fn events(&self, archive: &Archive) -> Result<(), String> {
        let otf2 = self.otf2;
        // SAFETY: for all of it: the archive is open, handles are those that it gave and are closed once.
        unsafe {
            self.good((otf2.open_events)(self.archive))?;
            for ((_, events), rank) in archive.locations.iter().zip(0u64..) {
                let writer = (otf2.events_of)(self.archive, rank);
                if writer.is_null() {
                    return Err(format!("libotf2 gave no room for the events of rank {rank}"));
                }
                let put = events.iter().try_for_each(|(at, event)| self.event(writer, *at, event));
                self.good((otf2.close_events_of)(self.archive, writer))?;
                put?;
            }
            self.good((otf2.close_events)(self.archive))?;
            // Readers want a file of definitions for each location, if an empty one.
            self.good((otf2.open_definitions)(self.archive))?;
            for rank in 0..archive.locations.len() as u64 {
                let writer = (otf2.definitions_of)(self.archive, rank);
                if !writer.is_null() {
                    self.good((otf2.close_definitions_of)(self.archive, writer))?;
                }
            }
            self.good((otf2.close_definitions)(self.archive))
        }
    }

    /// # Safety
    /// `to` is an open writer of events.
    unsafe fn event(&self, to: Handle, at: Ns, event: &Event) -> Result<(), String> {
        let otf2 = self.otf2;
        // SAFETY: the caller's promise.
        let code = unsafe {
            match *event {
                Event::Enter(region) => (otf2.enter)(to, NULL, at, region),
                Event::Leave(region) => (otf2.leave)(to, NULL, at, region),
                Event::Send { to: peer, comm, tag, bytes } => (otf2.send)(to, NULL, at, peer, comm, tag, bytes),
                Event::Receive { from, comm, tag, bytes } => (otf2.receive)(to, NULL, at, from, comm, tag, bytes),
                Event::CollectiveBegin => (otf2.collective_begin)(to, NULL, at),
                Event::CollectiveEnd { operation, comm, root, sent, received } => {
                    (otf2.collective_end)(to, NULL, at, operation, comm, root.unwrap_or(UNDEFINED), sent, received)
                }
                Event::Recording(on) => (otf2.measurement)(to, NULL, at, if on { ON } else { OFF }),
            }
        };
        self.good(code)
    }

    /// Every reference is defined before it is used: some readers want it so.
    fn definitions(&self, archive: &Archive) -> Result<(), String> {
        let otf2 = self.otf2;
        // SAFETY: for all of it: the archive is open; the writer is its own.
        unsafe {
            let to = (otf2.definitions)(self.archive);
            if to.is_null() {
                return Err("libotf2 gave no room for definitions".into());
            }
            self.good((otf2.clock)(to, NS_PER_SECOND, 0, archive.length, archive.realtime))?;
            let mut strings = Strings { numbers: HashMap::new() };
            let mut text = |name: &str| self.string(to, &mut strings, name);
            let nothing = text("")?;
            let (machine, node, thread) = (text("machine")?, text("node")?, text("Master thread")?);
            self.good((otf2.node)(to, 0, machine, machine, UNDEFINED))?;
            for (name, number) in archive.nodes.iter().zip(1u32..) {
                self.good((otf2.node)(to, number, text(name)?, node, 0))?;
            }
            for ((node, events), rank) in archive.locations.iter().zip(0u32..) {
                // ViTE tells things apart by name and number: a process and its thread may not be called alike.
                let name = text(&format!("MPI Rank {rank}"))?;
                self.good((otf2.process)(to, rank, name, PROCESS, node + 1, UNDEFINED))?;
                self.good((otf2.location)(to, rank.into(), thread, CPU_THREAD, events.len() as u64, rank))?;
            }
            for ((name, kind), number) in archive.regions.iter().zip(0u32..) {
                let (role, paradigm) = match kind {
                    Kind::Program => (ROLE_FUNCTION, PARADIGM_USER),
                    Kind::Own => (ROLE_CODE, PARADIGM_USER),
                    Kind::Mpi => (ROLE_FUNCTION, PARADIGM_MPI),
                };
                let name = text(name)?;
                self.good((otf2.region)(to, number, name, name, nothing, role, paradigm, 0, nothing, 0, 0))?;
            }
            let ranks: Vec<u64> = (0..archive.locations.len() as u64).collect();
            let group = |number: u32, name: u32, kind: u8, members: &[u64]| {
                let members_at = members.as_ptr();
                self.good((otf2.group)(to, number, name, kind, PARADIGM_MPI, 0, members.len() as u32, members_at))
            };
            group(0, nothing, COMM_LOCATIONS, &ranks)?;
            for (communicator, number) in archive.communicators.iter().zip(0u32..) {
                let name = text(&communicator.name)?;
                match &communicator.members {
                    Members::Ranks(ranks) => {
                        let members: Vec<u64> = ranks.iter().map(|rank| u64::from(*rank)).collect();
                        group(number + 1, nothing, COMM_GROUP, &members)?;
                    }
                    Members::Oneself => group(number + 1, nothing, COMM_SELF, &[])?,
                }
                self.good((otf2.communicator)(to, number, name, number + 1, UNDEFINED, 0))?;
            }
        }
        Ok(())
    }

    /// The number of a string.
    ///
    /// # Safety
    /// `to` is the archive's writer of definitions.
    unsafe fn string(&self, to: Handle, strings: &mut Strings, text: &str) -> Result<u32, String> {
        if let Some(number) = strings.numbers.get(text) {
            return Ok(*number);
        }
        let number = strings.numbers.len() as u32;
        let bytes = CString::new(text.replace('\0', "?")).map_err(|e| e.to_string())?;
        // SAFETY: the caller's promise; a string that outlives the call.
        self.good(unsafe { (self.otf2.string)(to, number, bytes.as_ptr()) })?;
        strings.numbers.insert(text.to_owned(), number);
        Ok(number)
    }
}
