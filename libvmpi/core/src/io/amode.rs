//! Access modes of files: what may be combined (MPI 4.1 section 14.2.1), and what they ask of the kernel.

use crate::consts::{
    MODE_APPEND, MODE_CREATE, MODE_DELETE_ON_CLOSE, MODE_EXCL, MODE_RDONLY, MODE_RDWR, MODE_SEQUENTIAL,
    MODE_UNIQUE_OPEN, MODE_WRONLY,
};
use crate::errors::{Class, Result, fail};
use std::fs::OpenOptions;

const ACCESS: i32 = MODE_RDONLY | MODE_WRONLY | MODE_RDWR;
const ALL: i32 =
    ACCESS | MODE_APPEND | MODE_CREATE | MODE_DELETE_ON_CLOSE | MODE_EXCL | MODE_SEQUENTIAL | MODE_UNIQUE_OPEN;

/// Is this a combination that MPI allows?
///
/// # Errors
/// `Class::Amode`.
pub fn check(amode: i32) -> Result<()> {
    if amode & !ALL != 0 {
        return fail(Class::Amode, "the access mode has bits that mean nothing");
    }
    if (amode & ACCESS).count_ones() != 1 {
        return fail(
            Class::Amode,
            "the access mode must have exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY",
        );
    }
    if amode & MODE_RDONLY != 0 && amode & (MODE_CREATE | MODE_EXCL) != 0 {
        return fail(Class::Amode, "MPI_MODE_RDONLY does not go with MPI_MODE_CREATE or MPI_MODE_EXCL");
    }
    if amode & MODE_RDWR != 0 && amode & MODE_SEQUENTIAL != 0 {
        return fail(Class::Amode, "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL");
    }
    Ok(())
}

pub fn reads(amode: i32) -> bool {
    amode & MODE_WRONLY == 0
}

pub fn writes(amode: i32) -> bool {
    amode & MODE_RDONLY == 0
}

/// How the kernel is to open the file; only the rank that `creates` may make it.
pub fn options(amode: i32, creates: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(reads(amode)).write(writes(amode));
    if creates && amode & MODE_CREATE != 0 {
        if amode & MODE_EXCL != 0 {
            options.create_new(true);
        } else {
            options.create(true);
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations() {
        for good in [MODE_RDONLY, MODE_RDWR | MODE_CREATE | MODE_EXCL, MODE_WRONLY | MODE_SEQUENTIAL | MODE_APPEND] {
            assert_eq!(check(good), Ok(()));
        }
        let bad = [
            0,
            MODE_CREATE,
            MODE_RDONLY | MODE_RDWR,
            MODE_RDONLY | MODE_CREATE,
            MODE_RDONLY | MODE_EXCL,
            MODE_RDWR | MODE_SEQUENTIAL,
            MODE_RDWR | 1 << 20,
            i32::MIN,
        ];
        for amode in bad {
            assert_eq!(check(amode).unwrap_err().class, Class::Amode, "{amode:#x}");
        }
    }
}
