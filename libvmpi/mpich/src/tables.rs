//! The generic functions as this face's exported symbols.

use crate::Mpich;
use vmpi_abi::f_served_of_intel as f_names_of_intel;

vmpi_abi::c_tables!(Mpich);
vmpi_abi::c_tables_mpi5!(Mpich);
vmpi_abi::c_table_attr_mpich!(Mpich);
vmpi_abi::c_table_mpich!(Mpich);
vmpi_abi::f_tables_mpich!(Mpich);
