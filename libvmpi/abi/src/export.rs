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

/// Export functions that this vmpi does not offer, and why: each raises an error that names itself.
#[macro_export]
macro_rules! export_unsupported {
    ($A:ty; $($name:ident)*) => {
        $crate::export_unsupported! { $A, "not implemented yet"; $($name)* }
    };
    ($A:ty, $why:literal; $($name:ident)*) => {
        const _: () = {
            $(
                #[unsafe(export_name = stringify!($name))]
                pub unsafe extern "C" fn $name() -> std::ffi::c_int {
                    $crate::entry::unsupported::<$A>($crate::refusal!(stringify!($name), "C", $why))
                }
                const _: () = {
                    #[unsafe(export_name = concat!("P", stringify!($name)))]
                    pub unsafe extern "C" fn profiled() -> std::ffi::c_int {
                        $crate::entry::unsupported::<$A>($crate::refusal!(stringify!($name), "C", $why))
                    }
                };
            )*
        };
    };
}

/// The name of a function that is refused. It lies with the face that it is refused in (`C`, or what `f_manglings` is told)
/// and the reason, with tabs between them, in the library's section `vmpi_refused`: `tests/src/functions.rs` makes
/// docs/functions.md of that.
#[macro_export]
macro_rules! refusal {
    ($name:expr, $face:expr, $why:literal) => {{
        const TEXT: &str = concat!($name, "\t", $face, "\t", $why, "\0");
        #[unsafe(link_section = "vmpi_refused")]
        static REFUSED: [u8; TEXT.len()] = $crate::export::array(TEXT);
        $crate::export::name_in(&REFUSED)
    }};
}

/// A text's bytes as an array.
///
/// # Panics
/// When `N` is not its length.
pub const fn array<const N: usize>(text: &str) -> [u8; N] {
    *text.as_bytes().first_chunk().expect("as long as the text")
}

/// What stands before the first tab.
pub fn name_in(refused: &'static [u8]) -> &'static str {
    std::str::from_utf8(refused.split(|byte| *byte == b'\t').next().unwrap_or_default()).unwrap_or_default()
}
