//! Macros that turn the generic functions of `c/` into a face's exported symbols.
//!
//! A chapter file `c/NAME.rs` ends with a table, a macro that lists each C function once:
//!
//! ```ignore
//! #[macro_export]
//! macro_rules! c_table_info {
//!     ($A:ty) => {
//!         $crate::export_c! { $A, [$crate::c::info];
//!             fn MPI_Info_create = info_create(info: *mut $crate::abi::CInfo<$A>) -> c_int;
//!         }
//!     };
//! }
//! ```
//!
//! where `info_create<A: Abi>` is an `unsafe fn` generic over the face. Each line exports `MPI_X` and `PMPI_X`.

/// Export each listed generic function under its MPI_ and PMPI_ names.
#[macro_export]
macro_rules! export_c {
    ($A:ty, [$($module:tt)*]; $(fn $name:ident = $func:ident ( $($arg:ident : $ty:ty),* $(,)? ) -> $ret:ty;)*) => {
        const _: () = {
            #[allow(unused_imports)]
            use std::ffi::{c_char, c_double, c_int, c_void};
            use $($module)* as functions;
            $(
                #[doc(hidden)]
                #[unsafe(export_name = stringify!($name))]
                pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                    // SAFETY: the caller keeps MPI's contract for this function, which is the generic function's.
                    unsafe { functions::$func::<$A>($($arg),*) }
                }
                const _: () = {
                    #[unsafe(export_name = concat!("P", stringify!($name)))]
                    pub unsafe extern "C" fn profiled($($arg: $ty),*) -> $ret {
                        // SAFETY: as above.
                        unsafe { functions::$func::<$A>($($arg),*) }
                    }
                };
            )*
        };
    };
}

/// Export functions that this vmpi does not offer: each raises an error that names itself.
#[macro_export]
macro_rules! export_unsupported {
    ($A:ty; $($name:ident)*) => {
        const _: () = {
            $(
                #[unsafe(export_name = stringify!($name))]
                pub unsafe extern "C" fn $name() -> std::ffi::c_int {
                    $crate::entry::unsupported::<$A>(stringify!($name))
                }
                const _: () = {
                    #[unsafe(export_name = concat!("P", stringify!($name)))]
                    pub unsafe extern "C" fn profiled() -> std::ffi::c_int {
                        $crate::entry::unsupported::<$A>(stringify!($name))
                    }
                };
            )*
        };
    };
}
