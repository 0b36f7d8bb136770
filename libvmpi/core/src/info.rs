//! Info objects: ordered (key, value) pairs (MPI 4.1 chapter 10).
//!
//! Keys and values are bytes; their length limits are the face's and are checked at the border.

use crate::errors::{Class, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::{Handle, Info};
use crate::process;
use crate::table::Table;
use std::rc::Rc;

/// The kinds of memory that calls take, as sessions, communicators, windows and files tell them: key and value (MPI 4.1 section 12.4.3).
pub const ALLOC_KINDS: (&[u8], &[u8]) = (b"mpi_memory_alloc_kinds", b"mpi,system");

/// The pairs of an info object, in the order in which their keys were first set.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Entries(Vec<(Vec<u8>, Vec<u8>)>);

impl Entries {
    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_slice())
    }

    /// Set `key`, replacing its value if it has one.
    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value.to_vec(),
            None => self.0.push((key.to_vec(), value.to_vec())),
        }
    }

    /// Remove `key`.
    ///
    /// # Errors
    /// `Class::InfoNokey` if it is not there.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        match self.0.iter().position(|(known, _)| known == key) {
            Some(index) => {
                self.0.remove(index);
                Ok(())
            }
            None => fail(Class::InfoNokey, format!("there is no key \"{}\"", String::from_utf8_lossy(key))),
        }
    }

    /// The keys of fewer bytes than that, in their order: an ABI cannot name longer ones.
    pub fn keys_below(&self, bytes: usize) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(key, _)| key.as_slice()).filter(move |key| key.len() < bytes)
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }
}

static INFOS: EntryGuarded<Table<Info, Rc<Entries>>> = EntryGuarded::new(Table::new());

/// A new info object.
pub fn insert(entries: Rc<Entries>) -> Info {
    INFOS.with(|infos| infos.insert(entries))
}

/// The pairs of an info object as they are now.
///
/// # Errors
/// `Class::Info` if there is none.
pub fn get(handle: Info) -> Result<Rc<Entries>> {
    if handle == Info::ENV {
        return Ok(Rc::new(environment()));
    }
    match INFOS.with(|infos| infos.get(handle).cloned()) {
        Some(entries) => Ok(entries),
        None if handle.is_null() => fail(Class::Info, "the info object is MPI_INFO_NULL"),
        None => fail(Class::Info, format!("{:#x} is not the handle of an info object", handle.raw())),
    }
}

/// As [`get`]; `Info::NULL` is an empty one, as in arguments that are hints.
///
/// # Errors
/// As [`get`].
pub fn hints(handle: Info) -> Result<Rc<Entries>> {
    if handle.is_null() { Ok(Rc::default()) } else { get(handle) }
}

/// Change an info object.
///
/// # Errors
/// `Class::Info` if there is none or it is `Info::ENV`; what `f` returns.
pub fn change(handle: Info, f: impl FnOnce(&mut Entries) -> Result<()>) -> Result<()> {
    if handle == Info::ENV {
        return fail(Class::Info, "MPI_INFO_ENV cannot be changed");
    }
    get(handle)?;
    INFOS.with(|infos| match infos.get_mut(handle) {
        Some(entries) => f(Rc::make_mut(entries)),
        None => Ok(()),
    })
}

/// Forget a handle.
///
/// # Errors
/// As [`change`].
pub fn free(handle: Info) -> Result<()> {
    change(handle, |_| Ok(()))?;
    INFOS.with(|infos| infos.remove(handle));
    Ok(())
}

/// What MPI_INFO_ENV says: how this process was started, as far as it can be known (MPI 4.1 section 11.2.2).
pub fn environment() -> Entries {
    use std::os::unix::ffi::OsStrExt;
    let mut entries = Entries::default();
    let mut arguments = std::env::args_os();
    if let Some(command) = arguments.next() {
        entries.set(b"command", command.as_bytes());
    }
    let argv: Vec<Vec<u8>> = arguments.map(|argument| argument.as_bytes().to_vec()).collect();
    if !argv.is_empty() {
        entries.set(b"argv", &argv.join(&b' '));
    }
    let size = process::size_at_start().to_string();
    entries.set(b"maxprocs", size.as_bytes());
    entries.set(b"soft", size.as_bytes());
    entries.set(b"host", process::processor_name().as_bytes());
    entries.set(b"arch", std::env::consts::ARCH.as_bytes());
    if let Ok(directory) = std::env::current_dir() {
        entries.set(b"wdir", directory.as_os_str().as_bytes());
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_values_are_replaced() {
        let mut entries = Entries::default();
        entries.set(b"b", b"1");
        entries.set(b"a", b"2");
        entries.set(b"b", b"3");
        assert_eq!(entries.len(), 2);
        assert_eq!(entries.keys_below(2).next().unwrap(), b"b");
        assert_eq!(entries.keys_below(1).next(), None);
        assert_eq!(entries.get(b"b"), Some(&b"3"[..]));
        assert_eq!(entries.keys_below(2).nth(2), None);
        entries.delete(b"b").unwrap();
        assert_eq!(entries.delete(b"b").unwrap_err().class, Class::InfoNokey);
        assert_eq!(entries.keys_below(2).next().unwrap(), b"a");
    }

    #[test]
    fn a_duplicate_is_independent() {
        let first = insert(Rc::default());
        change(first, |entries| {
            entries.set(b"key", b"old");
            Ok(())
        })
        .unwrap();
        let second = insert(get(first).unwrap());
        change(first, |entries| entries.delete(b"key")).unwrap();
        assert_eq!(get(second).unwrap().get(b"key"), Some(&b"old"[..]));
        free(first).unwrap();
        assert_eq!(get(first).unwrap_err().class, Class::Info);
        assert_eq!(hints(Info::NULL).unwrap().len(), 0);
        assert_eq!(free(Info::ENV).unwrap_err().class, Class::Info);
    }
}
