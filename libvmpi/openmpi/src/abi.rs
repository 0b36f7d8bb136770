//! The face as the generic functions see it.

use crate::status::Status;
use crate::{OpenMpi, sentinels};
use std::ffi::{c_int, c_void};
use vmpi_abi::abi::{Abi, Weights};
use vmpi_abi::numbers::{self, Tables};

impl Abi for OpenMpi {
    const NAME: &'static str = "Open MPI";
    const RELEASE: &'static str = "Open MPI v4.1.4";
    const VERSION: (c_int, c_int) = (3, 1);
    type Status = Status;

    const NUMBERS: Tables = numbers::OPENMPI;

    #[inline]
    fn buf_in(buf: *const c_void) -> *const c_void {
        sentinels::buffer(buf)
    }

    fn f_argv_null(address: *const c_void) -> bool {
        crate::commons::is_argv_null(address)
    }

    fn f_argvs_null(address: *const c_void) -> bool {
        crate::commons::is_argvs_null(address)
    }

    fn f_errcodes_ignored(address: *const c_void) -> bool {
        crate::commons::is_errcodes_ignore(address)
    }

    const IN_PLACE: usize = sentinels::IN_PLACE;
    const STATUS_IGNORE: usize = 0;

    fn unweighted() -> *const c_int {
        sentinels::UNWEIGHTED as *const c_int
    }

    fn weights_empty() -> *const c_int {
        sentinels::WEIGHTS_EMPTY as *const c_int
    }

    fn weights_in(weights: *const c_int) -> Weights {
        sentinels::weights(weights)
    }

    const MAX_PROCESSOR_NAME: usize = 256;
    const MAX_ERROR_STRING: usize = 256;
    const MAX_OBJECT_NAME: usize = 64;
    const MAX_INFO_KEY: usize = 36;
    const MAX_INFO_VAL: usize = 256;
    const MAX_LIBRARY_VERSION_STRING: usize = 256;
    const MAX_PORT_NAME: usize = 1024;
    const BSEND_OVERHEAD: c_int = 128;
    const MAX_STRINGTAG_LEN: usize = 1024;
    const PSETS: &'static [&'static str] = &["mpi://WORLD", "mpi://SELF", "mpix://SHARED"];

    #[inline]
    fn status_ignored(status: *const Status) -> bool {
        sentinels::status_ignored(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_core::consts;
    use vmpi_core::errors::{CLASSES, Class};

    #[test]
    fn every_class_has_a_number_of_open_mpi() {
        for &(class, name) in CLASSES {
            let face = OpenMpi::err_out(class.0);
            assert!((0..92).contains(&face), "{name} is {face}");
        }
        assert_eq!(OpenMpi::err_in(13), Class::Arg.0);
        assert_eq!(OpenMpi::err_in(OpenMpi::err_out(0x4000)), 0x4000);
    }

    #[test]
    fn ranks_tags_and_keys() {
        assert_eq!(OpenMpi::rank_in(-1), consts::ANY_SOURCE);
        assert_eq!(OpenMpi::rank_in(-2), consts::PROC_NULL);
        assert!(OpenMpi::rank_in(-3) < 0 && OpenMpi::rank_in(-3) != consts::PROC_NULL);
        assert_eq!(OpenMpi::tag_in(-1), consts::ANY_TAG);
        assert_ne!(OpenMpi::tag_in(-2), consts::ANY_TAG);
        assert_eq!(OpenMpi::keyval_in(0), consts::TAG_UB);
        assert_eq!(OpenMpi::keyval_in(-1), consts::KEYVAL_INVALID);
        assert_ne!(OpenMpi::keyval_in(501), consts::TAG_UB);
    }
}
