//! The numbers of ROMIO's mpio.h, which Open MPI and MPICH share: access modes, seeks, the current displacement.

use std::ffi::c_int;
use vmpi_core::consts;

/// Bits of access modes: the core's, ROMIO's.
const AMODES: &[(i32, c_int)] = &[
    (consts::MODE_CREATE, 1),
    (consts::MODE_RDONLY, 2),
    (consts::MODE_WRONLY, 4),
    (consts::MODE_RDWR, 8),
    (consts::MODE_DELETE_ON_CLOSE, 16),
    (consts::MODE_UNIQUE_OPEN, 32),
    (consts::MODE_EXCL, 64),
    (consts::MODE_APPEND, 128),
    (consts::MODE_SEQUENTIAL, 256),
];

/// A bit that no access mode has in the core.
const MEANINGLESS_MODE: i32 = 1 << 30;

pub fn amode_in(amode: c_int) -> i32 {
    let known = AMODES.iter().fold(0, |all, (_, bit)| all | bit);
    let modes = AMODES.iter().filter(|(_, bit)| amode & bit != 0).fold(0, |all, (core, _)| all | core);
    if amode & !known != 0 { modes | MEANINGLESS_MODE } else { modes }
}

pub fn amode_out(amode: i32) -> c_int {
    AMODES.iter().filter(|(core, _)| amode & core != 0).fold(0, |all, (_, bit)| all | bit)
}

pub fn whence_in(whence: c_int) -> i32 {
    match whence {
        600 => consts::SEEK_SET,
        602 => consts::SEEK_CUR,
        604 => consts::SEEK_END,
        _ => crate::codec::MEANINGLESS,
    }
}

pub fn displacement_in(displacement: i64) -> i64 {
    match displacement {
        -54_278_278 => consts::DISPLACEMENT_CURRENT,
        consts::DISPLACEMENT_CURRENT => i64::MIN,
        other => other,
    }
}

/// The functions of an `impl Abi` about files, for a face with these numbers.
#[macro_export]
macro_rules! abi_romio_numbers {
    () => {
        fn amode_in(amode: std::ffi::c_int) -> i32 {
            $crate::romio::amode_in(amode)
        }
        fn amode_out(amode: i32) -> std::ffi::c_int {
            $crate::romio::amode_out(amode)
        }
        fn whence_in(whence: std::ffi::c_int) -> i32 {
            $crate::romio::whence_in(whence)
        }
        fn displacement_in(displacement: i64) -> i64 {
            $crate::romio::displacement_in(displacement)
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_go_there_and_back() {
        for amode in 0..512 {
            assert_eq!(amode_out(amode_in(amode)), amode);
        }
        assert_eq!(amode_in(2 | 1024), consts::MODE_RDONLY | MEANINGLESS_MODE);
        assert_eq!(displacement_in(-1), i64::MIN);
    }
}
