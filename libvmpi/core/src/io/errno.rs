//! What the kernel says about files, as MPI says it.

use crate::errors::{Class, Error};
use std::io;

/// The error class of an errno.
pub fn class(errno: i32) -> Class {
    match errno {
        libc::ENOENT => Class::NoSuchFile,
        libc::EACCES | libc::EPERM => Class::Access,
        libc::EEXIST => Class::FileExists,
        libc::EROFS => Class::ReadOnly,
        libc::ENOSPC => Class::NoSpace,
        libc::EDQUOT => Class::Quota,
        libc::EBUSY | libc::ETXTBSY => Class::FileInUse,
        libc::EISDIR | libc::ENOTDIR | libc::ENAMETOOLONG | libc::ELOOP | libc::ENXIO | libc::ENODEV => Class::BadFile,
        libc::ENOMEM => Class::NoMem,
        libc::EOPNOTSUPP | libc::ENOSYS => Class::UnsupportedOperation,
        _ => Class::Io,
    }
}

/// `action` on the file `name` failed with `error`; errno's own text stays in the message.
pub fn error(action: &str, name: &str, error: &io::Error) -> Error {
    let class = error.raw_os_error().map_or(Class::Io, class);
    Error::new(class, format!("cannot {action} the file {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_keeps_name_and_text() {
        let e = error("open", "/no/such", &io::Error::from_raw_os_error(libc::ENOENT));
        assert_eq!(e.class, Class::NoSuchFile);
        assert!(e.message.contains("/no/such") && e.message.contains("No such file or directory"), "{e}");
        assert_eq!(error("write", "f", &io::Error::from_raw_os_error(libc::EIO)).class, Class::Io);
    }
}
