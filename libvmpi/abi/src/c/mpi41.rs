//! What MPI 4.1 adds to the environment and to datatypes: hardware info, removal of error codes, value-index pairs.

use super::args::not_null;
use crate::abi::{CDatatype, CInfo, dec, enc};
use crate::entry::Target;
use std::ffi::c_int;
use std::rc::Rc;
use vmpi_core::consts::dt;
use vmpi_core::errhandler::codes;
use vmpi_core::handle::{Datatype, Handle};
use vmpi_core::{datatype, hardware, info};

/// The predefined pairs for MPI_MINLOC and MPI_MAXLOC: value, index, pair.
const PAIRS: &[(Datatype, Datatype, Datatype)] = &[
    (dt::FLOAT, dt::INT, dt::FLOAT_INT),
    (dt::DOUBLE, dt::INT, dt::DOUBLE_INT),
    (dt::LONG, dt::INT, dt::LONG_INT),
    (dt::INT, dt::INT, dt::TWO_INT),
    (dt::SHORT, dt::INT, dt::SHORT_INT),
    (dt::LONG_DOUBLE, dt::INT, dt::LONG_DOUBLE_INT),
    (dt::REAL, dt::REAL, dt::TWO_REAL),
    (dt::DOUBLE_PRECISION, dt::DOUBLE_PRECISION, dt::TWO_DOUBLE_PRECISION),
    (dt::INTEGER, dt::INTEGER, dt::TWO_INTEGER),
];

crate::entry_points! {
    /// `MPI_Get_hw_resource_info`.
    active fn get_hw_resource_info = "MPI_Get_hw_resource_info"(info: *mut CInfo<A>) for Target::Process => {
        not_null(info, "hw_info")?;
        *info = enc::<A, _>(info::insert(Rc::new(hardware::resource_info())));
    }

    /// `MPI_Remove_error_class`.
    active fn remove_error_class = "MPI_Remove_error_class"(errorclass: c_int) for Target::Process => {
        codes::remove_error_class(A::err_in(errorclass))?;
    }

    /// `MPI_Remove_error_code`.
    active fn remove_error_code = "MPI_Remove_error_code"(errorcode: c_int) for Target::Process => {
        codes::remove_error_code(A::err_in(errorcode))?;
    }

    /// `MPI_Remove_error_string`.
    active fn remove_error_string = "MPI_Remove_error_string"(errorcode: c_int) for Target::Process => {
        codes::remove_error_string(A::err_in(errorcode))?;
    }

    /// `MPI_Type_get_value_index`: MPI_DATATYPE_NULL where there is no predefined pair.
    active fn type_get_value_index = "MPI_Type_get_value_index"(
        value: CDatatype<A>, index: CDatatype<A>, pair: *mut CDatatype<A>,
    ) for Target::Process => {
        let (value, index) = (dec::<A, Datatype>(value), dec::<A, Datatype>(index));
        datatype::get(value)?;
        datatype::get(index)?;
        not_null(pair, "pair_type")?;
        let known = PAIRS.iter().find(|known| known.0 == value && known.1 == index);
        *pair = enc::<A, _>(known.map_or(Datatype::NULL, |known| known.2));
    }
}

/// The table of these.
#[macro_export]
macro_rules! c_table_mpi41 {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::mpi41];
            fn MPI_Get_hw_resource_info = get_hw_resource_info(info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Remove_error_class = remove_error_class(errorclass: c_int) -> c_int;
            fn MPI_Remove_error_code = remove_error_code(errorcode: c_int) -> c_int;
            fn MPI_Remove_error_string = remove_error_string(errorcode: c_int) -> c_int;
            fn MPI_Type_get_value_index = type_get_value_index(value: $crate::abi::CDatatype<$A>, index: $crate::abi::CDatatype<$A>, pair: *mut $crate::abi::CDatatype<$A>) -> c_int;
        }
    };
}
