//! Error classes, codes and their texts, predefined and added by the program (MPI 4.1 sections 9.4 and 9.5).
//!
//! The core's error codes are the classes themselves; a code that the program added has its class beside it.

use crate::errors::{CLASSES, Class, Result, fail};
use crate::guarded::EntryGuarded;

/// The first code that the program may get: above MPI_ERR_LASTCODE of the standard ABI. A face whose last code is
/// higher moves it up.
pub const FIRST_ADDED: i32 = 0x4000;

struct Added {
    /// `None`: this is a class itself.
    class: Option<i32>,
    text: String,
}

/// By number; `None` was removed.
static ADDED: EntryGuarded<Vec<Option<Added>>> = EntryGuarded::new(Vec::new());

fn index(code: i32) -> Option<usize> {
    code.checked_sub(FIRST_ADDED).and_then(|index| usize::try_from(index).ok())
}

fn is_predefined(code: i32) -> bool {
    CLASSES.iter().any(|(class, _)| class.0 == code)
}

/// Look at a code that the program added.
fn look<T>(code: i32, f: impl FnOnce(&Added) -> T) -> Option<T> {
    let index = index(code)?;
    ADDED.with(|added| added.get(index)?.as_ref().map(f))
}

fn is_added(code: i32) -> bool {
    look(code, |_| ()).is_some()
}

fn add(class: Option<i32>) -> i32 {
    ADDED.with(|added| {
        added.push(Some(Added { class, text: String::new() }));
        FIRST_ADDED + (added.len() - 1) as i32
    })
}

/// A new error class (MPI_Add_error_class).
pub fn add_error_class() -> i32 {
    add(None)
}

/// A new error code of `class` (MPI_Add_error_code).
///
/// # Errors
/// `Class::Arg` if `class` is not a class.
pub fn add_error_code(class: i32) -> Result<i32> {
    if (is_predefined(class) || is_added(class)) && error_class(class).0 == class {
        Ok(add(Some(class)))
    } else {
        fail(Class::Arg, format!("{class} is not an error class"))
    }
}

/// Set the text of a code or class that the program added (MPI_Add_error_string).
///
/// # Errors
/// `Class::Arg` for a predefined or unknown code.
pub fn add_error_string(code: i32, text: &str) -> Result<()> {
    if !is_added(code) {
        return fail(Class::Arg, format!("error code {code} was not added by this program"));
    }
    ADDED.with(|added| {
        if let Some(Some(entry)) = index(code).and_then(|index| added.get_mut(index)) {
            entry.text = text.to_owned();
        }
    });
    Ok(())
}

/// Forget a code or class; numbers at the end are given out again.
fn remove(code: i32) {
    ADDED.with(|added| {
        if let Some(entry) = index(code).and_then(|index| added.get_mut(index)) {
            *entry = None;
        }
        while added.last().is_some_and(Option::is_none) {
            added.pop();
        }
    });
}

/// The code must be one that the program added, without a text of its own.
fn check_removable(code: i32, what: &str) -> Result<()> {
    match look(code, |entry| entry.text.is_empty()) {
        None => fail(Class::Arg, format!("error {what} {code} was not added by this program")),
        Some(false) => fail(Class::Arg, format!("error {what} {code} still has a text; remove that first")),
        Some(true) => Ok(()),
    }
}

/// MPI_Remove_error_class.
///
/// # Errors
/// `Class::Arg` for a class that the program did not add, or that still has codes or a text.
pub fn remove_error_class(class: i32) -> Result<()> {
    check_removable(class, "class")?;
    if error_class(class).0 != class {
        return fail(Class::Arg, format!("{class} is an error code, not a class"));
    }
    if ADDED.with(|added| added.iter().flatten().any(|entry| entry.class == Some(class))) {
        return fail(Class::Arg, format!("error class {class} still has error codes"));
    }
    remove(class);
    Ok(())
}

/// MPI_Remove_error_code.
///
/// # Errors
/// `Class::Arg` for a code that the program did not add, or that still has a text.
pub fn remove_error_code(code: i32) -> Result<()> {
    check_removable(code, "code")?;
    if error_class(code).0 == code {
        return fail(Class::Arg, format!("{code} is an error class, not a code"));
    }
    remove(code);
    Ok(())
}

/// MPI_Remove_error_string.
///
/// # Errors
/// `Class::Arg` for a code that the program did not add, or that has no text.
pub fn remove_error_string(code: i32) -> Result<()> {
    match look(code, |entry| entry.text.is_empty()) {
        None => fail(Class::Arg, format!("error code {code} was not added by this program")),
        Some(true) => fail(Class::Arg, format!("error code {code} has no text")),
        Some(false) => add_error_string(code, ""),
    }
}

/// Is this an error code at all?
pub fn is_known(code: i32) -> bool {
    is_predefined(code) || is_added(code)
}

/// The class of an error code; `Class::Unknown` for a number that is none.
pub fn error_class(code: i32) -> Class {
    if is_predefined(code) {
        return Class(code);
    }
    let added = look(code, |entry| entry.class);
    match added {
        Some(class) => Class(class.unwrap_or(code)),
        None => Class::Unknown,
    }
}

/// Name and meaning of an error code; empty for an added code without a text (as MPI says).
pub fn error_string(code: i32) -> String {
    if let Some((class, name)) = CLASSES.iter().find(|(class, _)| class.0 == code) {
        return format!("{name}: {}", meaning(*class));
    }
    match look(code, |entry| entry.text.clone()) {
        Some(text) => text,
        None => format!("{code} is not an MPI error code"),
    }
}

/// The highest code in use: the value of the attribute MPI_LASTUSEDCODE.
pub fn last_used_code() -> i32 {
    ADDED.with(|added| FIRST_ADDED - 1 + added.len() as i32)
}

fn meaning(class: Class) -> &'static str {
    MEANINGS.iter().find(|(known, _)| *known == class).map_or("no description", |(_, text)| text)
}

const MEANINGS: &[(Class, &str)] = &[
    (Class::Success, "no error"),
    (Class::Buffer, "the buffer address is not usable"),
    (Class::Count, "the count is negative or too large"),
    (Class::Type, "the datatype is null, freed or not committed"),
    (Class::Tag, "the tag is out of range"),
    (Class::Comm, "the communicator is null, freed or of the wrong kind"),
    (Class::Rank, "no such rank"),
    (Class::Request, "the request is not valid here"),
    (Class::Root, "no such root"),
    (Class::Group, "the group is null, freed or not a subset"),
    (Class::Op, "the operation is null or does not work on the datatype"),
    (Class::Topology, "the communicator has no such topology"),
    (Class::Dims, "the dimensions do not fit"),
    (Class::Arg, "an argument is not valid"),
    (Class::Unknown, "the cause is not known"),
    (Class::Truncate, "the message is longer than the receive buffer"),
    (Class::Other, "an error that has no class of its own"),
    (Class::Intern, "an error inside the MPI library"),
    (Class::Pending, "the operation is neither complete nor failed"),
    (Class::InStatus, "the error codes are in the statuses"),
    (Class::Access, "permission to the file was denied"),
    (Class::Amode, "the access mode given to MPI_File_open is not valid"),
    (Class::Assert, "the assertion argument is not valid"),
    (Class::BadFile, "the file name is not valid"),
    (Class::Base, "the base address of the window is not valid"),
    (Class::Conversion, "a data conversion function failed"),
    (Class::Disp, "the displacement is not valid"),
    (Class::DupDatarep, "the data representation is defined already"),
    (Class::FileExists, "the file exists"),
    (Class::FileInUse, "the file is open in some process"),
    (Class::File, "the file handle is not valid"),
    (Class::InfoKey, "the info key is empty or too long"),
    (Class::InfoNokey, "the info object has no such key"),
    (Class::InfoValue, "the info value is too long"),
    (Class::Info, "the info object is null or freed"),
    (Class::Io, "an input or output error"),
    (Class::Keyval, "the attribute key is not valid"),
    (Class::Locktype, "the lock type is not valid"),
    (Class::Name, "the service name is not published"),
    (Class::NoMem, "out of memory"),
    (Class::NotSame, "a collective argument differs between processes"),
    (Class::NoSpace, "no space left on the device"),
    (Class::NoSuchFile, "the file does not exist"),
    (Class::Port, "the port name is not valid"),
    (Class::Quota, "the quota is exceeded"),
    (Class::ReadOnly, "the file or file system is read-only"),
    (Class::RmaAttach, "the memory cannot be attached to the window"),
    (Class::RmaConflict, "conflicting accesses to the window"),
    (Class::RmaRange, "the target memory is not in the window"),
    (Class::RmaShared, "the memory cannot be shared"),
    (Class::RmaSync, "the synchronization of the window is not right"),
    (Class::Service, "the service name cannot be published or withdrawn"),
    (Class::Size, "the window size is not valid"),
    (Class::Spawn, "the processes could not be started"),
    (Class::UnsupportedDatarep, "the data representation is not offered"),
    (Class::UnsupportedOperation, "the operation is not offered"),
    (Class::Win, "the window is null or freed"),
    (Class::RmaFlavor, "the window is of the wrong flavor"),
    (Class::ProcAborted, "a process that takes part has ended"),
    (Class::ValueTooLarge, "the value does not fit into the argument's type"),
    (Class::Session, "the session is null or finalized"),
    (Class::Errhandler, "the error handler is null or freed"),
    (Class::Abi, "a request about the ABI that cannot be met"),
    (Class::ToolCannotInit, "the tool interface cannot be initialized now"),
    (Class::ToolNotAccessible, "what is asked for cannot be reached now"),
    (Class::ToolNotInitialized, "the tool interface is not initialized"),
    (Class::ToolNotSupported, "what is asked for is not offered"),
    (Class::ToolMemory, "out of memory"),
    (Class::ToolInvalid, "an argument is not valid, or the interface is used wrongly"),
    (Class::ToolInvalidIndex, "no such index"),
    (Class::ToolInvalidItem, "no such item"),
    (Class::ToolInvalidSession, "no such session"),
    (Class::ToolInvalidHandle, "no such handle"),
    (Class::ToolInvalidName, "no variable, category or event has this name"),
    (Class::ToolOutOfHandles, "no more handles are to be had"),
    (Class::ToolOutOfSessions, "no more sessions are to be had"),
    (Class::ToolCvarSetNotNow, "the variable cannot be set now"),
    (Class::ToolCvarSetNever, "the variable cannot be set before the program ends"),
    (Class::ToolPvarNoWrite, "the variable cannot be written or reset"),
    (Class::ToolPvarNoStartstop, "the variable cannot be started or stopped"),
    (Class::ToolPvarNoAtomic, "the variable cannot be read and written in one step"),
    (Class::ProcFailed, "a process that takes part has failed"),
    (Class::ProcFailedPending, "a process that may take part has failed; the operation goes on"),
    (Class::Revoked, "the communicator has been revoked"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_name_and_a_meaning() {
        for (class, name) in CLASSES {
            assert!(error_string(class.0).starts_with(&format!("{name}: ")));
            assert_ne!(meaning(*class), "no description", "{name}");
            assert_eq!(error_class(class.0), *class);
        }
        assert_eq!(error_class(-7), Class::Unknown);
    }

    #[test]
    fn added_codes_have_classes_and_texts() {
        let class = add_error_class();
        let code = add_error_code(class).unwrap();
        let rank = add_error_code(Class::Rank.0).unwrap();
        assert!(last_used_code() >= rank && rank > code && code > class && class >= FIRST_ADDED);
        assert_eq!(error_class(class), Class(class));
        assert_eq!(error_class(code), Class(class));
        assert_eq!(error_class(rank), Class::Rank);
        assert_eq!(error_string(code), "");
        add_error_string(code, "too blue").unwrap();
        assert_eq!(error_string(code), "too blue");
        assert!(add_error_code(code).is_err());
        assert!(add_error_string(Class::Rank.0, "mine").is_err());

        assert!(remove_error_class(class).is_err() && remove_error_code(code).is_err());
        remove_error_string(code).unwrap();
        assert!(remove_error_string(code).is_err() && remove_error_class(code).is_err());
        remove_error_code(code).unwrap();
        assert!(remove_error_code(code).is_err() && !is_known(code));
        remove_error_class(class).unwrap();
        assert_eq!(error_class(class), Class::Unknown);
        assert_eq!(error_class(rank), Class::Rank);
        remove_error_code(rank).unwrap();
    }
}
