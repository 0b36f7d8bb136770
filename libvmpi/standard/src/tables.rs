//! The generic functions as this face's exported symbols.

use crate::Standard;

macro_rules! f_names_of_intel {
    ($($row:tt)*) => {
        vmpi_abi::f_refused_of_intel! { Standard; $($row)* }
    };
}

vmpi_abi::c_tables!(Standard);
vmpi_abi::c_table_ft_openmpi!(Standard);
vmpi_abi::c_table_ft_own!(Standard);
vmpi_abi::c_tables_mpi5!(Standard);
vmpi_abi::c_table_mpich!(Standard);
vmpi_abi::c_table_partitioned_c!(Standard);
vmpi_abi::c_table_convert_pointers!(Standard);
vmpi_abi::f_tables_mpich!(Standard);
