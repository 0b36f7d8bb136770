//! Fortran entry points.
