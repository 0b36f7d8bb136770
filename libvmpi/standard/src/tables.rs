//! The generic functions as this face's exported symbols.

use crate::Standard;

vmpi_abi::c_tables!(Standard);
vmpi_abi::c_table_ft_openmpi!(Standard);
vmpi_abi::c_table_ft_own!(Standard);
vmpi_abi::c_tables_mpi5!(Standard);
vmpi_abi::c_table_partitioned_c!(Standard);
vmpi_abi::c_table_convert_pointers!(Standard);
vmpi_abi::f_tables_mpich!(Standard);
