//! Loading the plugin, and the device behind its table.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::abi::{Address, Done, ENTRY, Entry, Facts, Keys, SHAPES, Table, Text, VERSION, Work};
use super::nic::{Nic, NicError, Pair};

/// The plugin's file.
pub const FILE: &str = "libvmpi_verbs.so";

/// Where it is looked for: beside this executable, or in the installation's `lib/vmpi`.
pub fn directories() -> Vec<PathBuf> {
    let own = std::env::current_exe().ok();
    let dir = own.as_deref().and_then(Path::parent).map_or_else(PathBuf::new, PathBuf::from);
    vec![dir.join("../lib/vmpi"), dir]
}

/// Why verbs cannot be used on this node.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("vmpi's plugin for verbs, {FILE}, is not in {0}: this vmpi was built without it")]
    NotThere(String),
    #[error("{path} cannot be loaded: {why}; the package libibverbs1 has what it needs")]
    Load { path: String, why: String },
    #[error("{path} is no plugin of vmpi: {why}")]
    Stranger { path: String, why: String },
    #[error("{path} is of another version of vmpi (its table is {theirs}, this vmpid's {VERSION}); install the same")]
    Version { path: String, theirs: u32 },
    #[error("{0}")]
    Device(String),
}

/// The loaded plugin. It stays until the process ends: a device's threads may still be in it.
pub struct Plugin {
    table: &'static Table,
}

impl Plugin {
    /// Out of the first of these directories that has it.
    ///
    /// # Errors
    /// None has, what it needs is missing, or it is of another version.
    pub fn load(directories: &[PathBuf]) -> Result<Plugin, PluginError> {
        let found = directories.iter().map(|dir| dir.join(FILE)).find(|path| path.is_file());
        match found {
            Some(path) => Plugin::load_file(&path),
            None => {
                let all: Vec<String> = directories.iter().map(|dir| dir.display().to_string()).collect();
                Err(PluginError::NotThere(all.join(" or ")))
            }
        }
    }

    /// # Errors
    /// As `load`.
    pub fn load_file(file: &Path) -> Result<Plugin, PluginError> {
        let path = file.display().to_string();
        // SAFETY: a plugin's initializers do nothing, those of libibverbs are made for any process.
        let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|e| PluginError::Load { path: path.clone(), why: loader_words(&e) })?;
        // SAFETY: the symbol is called as its type only after it has been found under that name, which only plugins of vmpi have.
        let entry = unsafe { library.get::<Entry>(ENTRY) };
        let entry = *entry.map_err(|e| PluginError::Stranger { path: path.clone(), why: e.to_string() })?;
        // SAFETY: it takes nothing, and returns a static table or null.
        let table = unsafe { entry() };
        if table.is_null() {
            return Err(PluginError::Stranger { path, why: "it has no table".into() });
        }
        // SAFETY: the first word of all versions' tables is the version; nothing else is read before it is known.
        let theirs = unsafe { table.cast::<u32>().read() };
        if theirs != VERSION {
            return Err(PluginError::Version { path, theirs });
        }
        // SAFETY: a table of this version, in a library that is never unloaded.
        let table: &'static Table = unsafe { &*table };
        if (table.bytes, table.shapes) != (size_of::<Table>() as u32, SHAPES) {
            return Err(PluginError::Stranger { path, why: "its table has another layout".into() });
        }
        std::mem::forget(library);
        Ok(Plugin { table })
    }

    /// A device by its name, or the first that is of use.
    ///
    /// # Errors
    /// There is none, or none with this name; in words.
    pub fn open(&self, device: Option<&str>) -> Result<Card, PluginError> {
        let name = device.unwrap_or_default();
        let mut facts = Facts { name: Text::EMPTY, channel: -1, most_completions: 0, most_works: 0, reserved: 0 };
        let (mut card, mut why) = (std::ptr::null_mut(), Text::EMPTY);
        // SAFETY: all pointers are to locals of the table's types.
        let failed = unsafe { (self.table.open)(name.as_ptr(), name.len(), &mut card, &mut facts, &mut why) };
        if failed != 0 || card.is_null() || facts.channel < 0 {
            return Err(PluginError::Device(words(failed, &why)));
        }
        Ok(Card { table: self.table, card, name: facts.name.text(), facts, pairs: Vec::new() })
    }
}

/// The reason without the error's own prefix.
fn loader_words(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn words(errno: i32, why: &Text) -> String {
    match why.text() {
        empty if empty.is_empty() => std::io::Error::from_raw_os_error(errno).to_string(),
        text => text,
    }
}

/// An open device. Closed when dropped, with all its connections.
pub struct Card {
    table: &'static Table,
    card: *mut c_void,
    name: String,
    facts: Facts,
    /// Null: parted.
    pairs: Vec<(*mut c_void, Address)>,
}

impl Card {
    fn live(&self, pair: Pair) -> Result<*mut c_void, NicError> {
        match self.pairs.get(pair as usize) {
            Some((at, _)) if !at.is_null() => Ok(*at),
            _ => Err(NicError("the connection has ended".into())),
        }
    }
}

fn done(errno: i32, what: &str) -> Result<(), NicError> {
    match errno {
        0 => Ok(()),
        errno => Err(NicError(format!("{what}: {}", std::io::Error::from_raw_os_error(errno)))),
    }
}

impl Nic for Card {
    fn name(&self) -> &str {
        &self.name
    }

    fn channel(&self) -> BorrowedFd<'_> {
        // SAFETY: the card has it open until it is dropped; `open` has checked that it is one.
        unsafe { BorrowedFd::borrow_raw(self.facts.channel) }
    }

    fn prepare(&mut self, completions: u32) -> Result<(), NicError> {
        if completions > self.facts.most_completions {
            let (name, most) = (&self.name, self.facts.most_completions);
            return Err(NicError(format!(
                "{name} has room for {most} completions, and these nodes need {completions}"
            )));
        }
        let mut why = Text::EMPTY;
        // SAFETY: `card` is open.
        match unsafe { (self.table.prepare)(self.card, completions, &mut why) } {
            0 => Ok(()),
            errno => Err(NicError(words(errno, &why))),
        }
    }

    fn register(&mut self, addr: u64, bytes: u64) -> Result<Keys, NicError> {
        let (mut keys, mut why) = (Keys::default(), Text::EMPTY);
        // SAFETY: `card` is open; the caller keeps the memory longer than this device, as the trait demands.
        match unsafe { (self.table.register)(self.card, addr, bytes, &mut keys, &mut why) } {
            0 => Ok(keys),
            errno => Err(NicError(words(errno, &why))),
        }
    }

    fn pair(&mut self, receives: u32, sends: u32) -> Result<(Pair, Address), NicError> {
        if receives.max(sends) > self.facts.most_works {
            return Err(NicError(format!("{} takes only {} works at a time", self.name, self.facts.most_works)));
        }
        let (mut pair, mut own, mut why) = (std::ptr::null_mut(), Address::default(), Text::EMPTY);
        // SAFETY: `card` is open and prepared, or the plugin says that it is not.
        match unsafe { (self.table.pair)(self.card, receives, sends, &mut pair, &mut own, &mut why) } {
            0 => {
                self.pairs.push((pair, own));
                Ok((self.pairs.len() as u32 - 1, own))
            }
            errno => Err(NicError(words(errno, &why))),
        }
    }

    fn join(&mut self, pair: Pair, to: &Address) -> Result<(), NicError> {
        let (at, own, mut why) = (self.live(pair)?, self.pairs[pair as usize].1, Text::EMPTY);
        // SAFETY: a live connection's end.
        match unsafe { (self.table.join)(at, &own, to, &mut why) } {
            0 => Ok(()),
            errno => Err(NicError(words(errno, &why))),
        }
    }

    fn part(&mut self, pair: Pair) {
        if let Ok(at) = self.live(pair) {
            self.pairs[pair as usize].0 = std::ptr::null_mut();
            // SAFETY: live until now, and never named again.
            unsafe { (self.table.part)(at) };
        }
    }

    fn receive(&mut self, pair: Pair, id: u64, addr: u64, bytes: u32, key: u32) -> Result<(), NicError> {
        // SAFETY: a live connection's end; the memory is registered, which the device checks by `key`.
        done(unsafe { (self.table.receive)(self.live(pair)?, id, addr, bytes, key) }, "a receive cannot be posted")
    }

    fn send(&mut self, pair: Pair, work: &Work) -> Result<(), NicError> {
        // SAFETY: as in `receive`.
        done(unsafe { (self.table.send)(self.live(pair)?, work) }, "a message cannot be posted")
    }

    fn poll(&mut self, done: &mut [Done]) -> Result<usize, NicError> {
        // SAFETY: room for so many.
        let count = unsafe { (self.table.poll)(self.card, done.as_mut_ptr(), done.len() as u32) };
        usize::try_from(count)
            .map_err(|_| NicError(format!("{} failed: {}", self.name, std::io::Error::from_raw_os_error(-count))))
    }

    fn arm(&mut self) -> Result<(), NicError> {
        // SAFETY: `card` is open.
        done(unsafe { (self.table.arm)(self.card) }, "the device cannot be asked to tell")
    }

    fn heed(&mut self) -> bool {
        // SAFETY: `card` is open.
        unsafe { (self.table.heed)(self.card) == 1 }
    }

    fn status(&self, status: u32) -> String {
        // SAFETY: it returns a static string or null for any number.
        let text = unsafe { (self.table.status)(status) };
        match text.is_null() {
            true => format!("status {status}"),
            // SAFETY: not null, so a C string that lives as long as the library.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: open until now; connections that are left end with it.
        unsafe { (self.table.close)(self.card) };
    }
}
