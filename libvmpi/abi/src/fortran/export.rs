//! Macros that turn rows of the Fortran tables into a face's exported symbols.
//!
//! A row reads `fn send SEND = c::send(buf: Buf, count: Int, ...);`: the procedure's name in both cases, the generic
//! function it calls, and the kind of each argument (`args`), with an element count in brackets where the kind is an
//! array, and after a semicolon the hidden lengths of CHARACTER arguments. The trailing IERROR is implied.
//!
//! Each row becomes one hidden function, and one jump to it per mangling: `mpi_send_` (what gfortran calls),
//! `mpi_send__`, `mpi_send`, `MPI_SEND`, the same with a P, and for Open MPI `ompi_send_f` (what its mpi_f08 module
//! calls). `#[counts]` before a row: mpi_f08 has it with large counts too. The kinds `Num`, `Nums`, `ConstNums` are INTEGERs, and
//! INTEGERs of MPI_COUNT_KIND there. For MPICH a row also becomes `mpi_send_f08_` (handles are one-INTEGER types, which arrive like INTEGERs) and, from
//! a second function whose choice buffers are descriptors, `mpi_send_f08ts_`: of the two, its mpi_f08 module calls one. The jumps go to the hidden function and not to each other, so that a profiling tool may replace `mpi_send_`
//! and call `pmpi_send_`.
//!
//! For MPICH the jumps of mpif.h, of `use mpi` and of mpi_f08 where it has descriptors go through an [`Entry`](super::through::Entry): where a profiling
//! tool wraps the C function of that name, the hidden function behind them is another one, which calls the tool. (Without choice buffers, MPICH's
//! mpi_f08 calls the PMPI_ functions.) A row that calls `internal::` has no such C function.

/// A procedure without an argument list of its own: jumps to `$body`, whatever the arguments are.
#[macro_export]
macro_rules! f_alias {
    ($body:path, $name:expr) => {
        const _: () = {
            #[unsafe(naked)]
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn alias() {
                #[cfg(target_arch = "x86_64")]
        core::arch::naked_asm!("jmp {}", sym $body);
                #[cfg(target_arch = "aarch64")]
        core::arch::naked_asm!("b {}", sym $body);
            }
        };
    };
}

/// A procedure that jumps to where `$entry` says.
#[macro_export]
macro_rules! f_jump {
    ($entry:path, $name:expr) => {
        const _: () = {
            #[unsafe(naked)]
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn jump() {
                #[cfg(target_arch = "x86_64")]
        core::arch::naked_asm!("jmp qword ptr [rip + {}]", sym $entry);
                #[cfg(target_arch = "aarch64")]
        core::arch::naked_asm!("adrp x16, {0}", "ldr x16, [x16, :lo12:{0}]", "br x16", sym $entry);
            }
        };
    };
}

/// Export `$body` as Fortran procedure `$low` under the manglings of face `$face`: openmpi; mpich; mpifh (mpich without
/// mpi_f08); f08, descriptors and large (mpich's mpi_f08 only: plain, with descriptors, large counts).
#[macro_export]
macro_rules! f_manglings {
    (openmpi, [$pre:ident $PRE:ident], $low:ident $UP:ident, $body:path) => {
        $crate::f_manglings! { mpifh, [$pre $PRE], $low $UP, $body }
        $crate::f_alias! { $body, concat!("o", stringify!($pre), "_", stringify!($low), "_f") }
    };
    (mpich, [$pre:ident $PRE:ident], $low:ident $UP:ident, $body:path) => {
        $crate::f_manglings! { mpifh, [$pre $PRE], $low $UP, $body }
        $crate::f_manglings! { f08, [$pre $PRE], $low $UP, $body }
    };
    (f08, $pre:tt, $low:ident $UP:ident, $body:path) => {
        $crate::f08_names! { f_alias, $pre, $low, "_f08_", $body }
    };
    (descriptors, $pre:tt, $low:ident $UP:ident, $body:path) => {
        $crate::f08_names! { f_alias, $pre, $low, "_f08ts_", $body }
    };
    (large, $pre:tt, $low:ident $UP:ident, $body:path) => {
        $crate::f08_names! { f_alias, $pre, $low, "_f08_large_", $body }
    };
    (mpifh, $pre:tt, $low:ident $UP:ident, $body:path) => {
        $crate::f_names! { f_alias, $pre, $low $UP, $body }
    };
}

/// The names of mpif.h and `use mpi`, made by `$make`.
#[macro_export]
#[doc(hidden)]
macro_rules! f_names {
    ($make:ident, [$pre:ident $PRE:ident], $low:ident $UP:ident, $to:path) => {
        $crate::$make! { $to, concat!(stringify!($pre), "_", stringify!($low), "_") }
        $crate::$make! { $to, concat!(stringify!($pre), "_", stringify!($low), "__") }
        $crate::$make! { $to, concat!(stringify!($pre), "_", stringify!($low)) }
        $crate::$make! { $to, concat!(stringify!($PRE), "_", stringify!($UP)) }
        $crate::$make! { $to, concat!("p", stringify!($pre), "_", stringify!($low), "_") }
        $crate::$make! { $to, concat!("p", stringify!($pre), "_", stringify!($low), "__") }
        $crate::$make! { $to, concat!("p", stringify!($pre), "_", stringify!($low)) }
        $crate::$make! { $to, concat!("P", stringify!($PRE), "_", stringify!($UP)) }
    };
}

/// The two names of a procedure of mpi_f08, made by `$make`.
#[macro_export]
#[doc(hidden)]
macro_rules! f08_names {
    ($make:ident, [$pre:ident $PRE:ident], $low:ident, $suffix:literal, $to:path) => {
        $crate::$make! { $to, concat!(stringify!($pre), "_", stringify!($low), $suffix) }
        $crate::$make! { $to, concat!("p", stringify!($pre), "r_", stringify!($low), $suffix) }
    };
}

/// Export rows of procedures `$pre_name` that end in IERROR.
#[macro_export]
macro_rules! export_f {
    ($A:ty, $face:ident, [$pre:ident $PRE:ident];
     $($(#[$large:ident])? fn $low:ident $UP:ident = $($func:ident)::+ (
        $($arg:ident : $kind:ty $([$len:expr])?),* $(; $($hidden:ident),+)?
     );)*) => {
        const _: () = {
            #[allow(unused_imports)]
            use $crate::fortran::args::*;
            #[allow(unused_imports)]
            use $crate::fortran::dynamic::kinds::*;
            #[allow(unused_imports)]
            use $crate::fortran::lengths::*;
            #[allow(unused_imports)]
            use $crate::fortran::{c, f, internal};
            #[allow(unused_imports)]
            use $crate::fortran::export::h;
            $(
                const _: () = {
                    $crate::f_body! { $A, concat!(stringify!($PRE), "_", stringify!($UP)), [$($func)::+];
                        $($arg: $kind $([$len])?),* $(; $($hidden),+)? }
                    $crate::f_exports! { $face, [$pre $PRE], $low $UP; $A, [$($func)::+];
                        $($arg: $kind $([$len])?),* $(; $($hidden),+)? }
                };
                $crate::f_with_descriptors! { $face, [$pre $PRE], $low $UP; $A, [$($func)::+];
                    $($arg: $kind $([$len])?),* $(; $($hidden),+)? }
                $crate::f_with_counts! { [$($large)?] $face, [$pre $PRE], $low $UP; $A, [$($func)::+];
                    $($arg: $kind $([$len])?),* $(; $($hidden),+)? }
            )*
        };
    };
}

/// The names of a row, whose `body` is there: those of mpif.h and `use mpi` through an entry where they are MPICH's.
#[macro_export]
#[doc(hidden)]
macro_rules! f_exports {
    ($face:ident, $pre:tt, $low:ident $UP:ident; $A:ty, [internal::$func:ident]; $($row:tt)*) => {
        $crate::f_manglings! { $face, $pre, $low $UP, body }
    };
    (mpich, $pre:tt, $low:ident $UP:ident; $($row:tt)*) => {
        $crate::f_exports! { mpifh, $pre, $low $UP; $($row)* }
        $crate::f_manglings! { f08, $pre, $low $UP, body }
    };
    (mpifh, [$pre:ident $PRE:ident], $low:ident $UP:ident; $A:ty, $func:tt; $($row:tt)*) => {
        $crate::f_asking_body! { $A, concat!(stringify!($PRE), "_", stringify!($UP)), $func; $($row)* }
        $crate::f_names! { f_jump, [$pre $PRE], $low $UP, ENTRY }
    };
    (large, $pre:tt, $low:ident $UP:ident; $A:ty, $func:tt; $($row:tt)*) => {
        $crate::f_manglings! { large, $pre, $low $UP, body }
        f_names_of_intel! { f_alias, $pre, $low $UP, "_c_f08_", body; $($row)* }
    };
    ($face:ident, $pre:tt, $low:ident $UP:ident; $($row:tt)*) => {
        $crate::f_manglings! { $face, $pre, $low $UP, body }
    };
}

/// `fn body` of a row: read the arguments, call the function, write the results.
#[macro_export]
macro_rules! f_body {
    ($A:ty, $name:expr, $func:tt; $($arg:ident : $kind:ty $([$len:expr])?),* $(; $($hidden:ident),+)?) => {
        unsafe extern "C" fn body(
            $($arg: *mut std::ffi::c_void,)*
            ierror: *mut std::ffi::c_int,
            $($($hidden: usize,)+)?
        ) {
            // SAFETY: the caller passes what the Fortran binding of this procedure says, which is what
            // the kinds expect; the generic function's contract is MPI's.
            unsafe {
                $crate::f_converted! { $A, $name, ierror; $($arg: $kind $([$len])?),*;
                    $crate::f_call! { $A, $func; $(<$kind as Arg<$A>>::pass(&mut $arg)),* } }
            }
        }
    };
}

/// `fn asking` of a row, and its entry: as `body`, but by the C function that a tool has put before vmpi's.
#[macro_export]
#[doc(hidden)]
macro_rules! f_asking_body {
    ($A:ty, $name:expr, $func:tt; $($arg:ident : $kind:ty $([$len:expr])?),* $(; $($hidden:ident),+)?) => {
        static ENTRY: $crate::fortran::through::Entry = $crate::fortran::through::Entry::new(
            $name,
            body as *const std::ffi::c_void,
            asking as *const std::ffi::c_void,
        );
        unsafe extern "C" fn asking(
            $($arg: *mut std::ffi::c_void,)*
            ierror: *mut std::ffi::c_int,
            $($($hidden: usize,)+)?
        ) {
            // SAFETY: as in `body`; the tool's function has the same contract.
            unsafe {
                let Some(tool) = ENTRY.tool() else {
                    return body($($arg,)* ierror $($(, $hidden)+)?);
                };
                $crate::f_converted! { $A, $name, ierror; $($arg: $kind $([$len])?),*;
                    $crate::f_call_tool! { tool, $A, $func; $($arg: $kind),* } }
            }
        }
    };
}

/// `$call`, with the arguments as C has them, and the results as Fortran has them.
#[macro_export]
#[doc(hidden)]
macro_rules! f_converted {
    ($A:ty, $name:expr, $ierror:ident; $($arg:ident : $kind:ty $([$len:expr])?),*; $($call:tt)*) => {
        let ($(mut $arg,)*) = ($(<$kind as Arg<$A>>::take($arg, $crate::f_len!($($len)?)),)*);
        let copied = false $(|| <$kind as Arg<$A>>::is_copy(&$arg))*;
        let code = if copied && $crate::fortran::descriptor::outlives_its_call($name) {
            $crate::fortran::descriptor::refuse_copy::<$A>($name)
        } else {
            $($call)*
        };
        let started = if copied && code == 0 {
            None::<h::Request>$(.or(<$kind as Arg<$A>>::started(&$arg)))*
        } else {
            None
        };
        match started {
            Some(request) => {
                $(<$kind as Arg<$A>>::give_after($arg, request);)*
            }
            None => {
                $(<$kind as Arg<$A>>::give($arg, code);)*
            }
        }
        if !$ierror.is_null() {
            $ierror.write_unaligned(code);
        }
    };
}

/// A row's own function with these arguments.
#[macro_export]
#[doc(hidden)]
macro_rules! f_call {
    ($A:ty, [f::$func:ident]; $($arg:expr),*) => {
        f::$func::<$A>($crate::fortran::through::Through::OWN $(, $arg)*)
    };
    ($A:ty, [$module:ident::$func:ident]; $($arg:expr),*) => {
        $module::$func::<$A>($($arg),*)
    };
}

/// The tool's function for a row, which has the arguments of C's.
#[macro_export]
#[doc(hidden)]
macro_rules! f_call_tool {
    ($tool:ident, $A:ty, [f::$func:ident]; $($arg:ident: $kind:ty),*) => {
        f::$func::<$A>(
            $crate::fortran::through::Through::tool($tool)
            $(, <$kind as Arg<$A>>::pass_to_tool(&mut $arg))*
        )
    };
    ($tool:ident, $A:ty, $func:tt; $($arg:ident: $kind:ty),*) => {{
        let function = std::mem::transmute::<
            std::ptr::NonNull<std::ffi::c_void>,
            unsafe extern "C" fn($(<$kind as Arg<$A>>::Passed),*) -> std::ffi::c_int,
        >($tool);
        function($(<$kind as Arg<$A>>::pass_to_tool(&mut $arg)),*)
    }};
}

/// The row once more for MPICH's mpi_f08, where choice buffers are descriptors; the other faces have no such procedures.
#[macro_export]
macro_rules! f_with_descriptors {
    (mpich, $pre:tt, $low:ident $UP:ident; $A:ty, [internal::$func:ident]; $($row:tt)*) => {};
    (mpich, [$pre:ident $PRE:ident], $low:ident $UP:ident; $A:ty, $func:tt; $($row:tt)*) => {
        const _: () = {
            #[allow(unused_imports)]
            use $crate::fortran::descriptor::{Buf, Location, types_of_peers};
            $crate::f_body! { $A, concat!(stringify!($PRE), "_", stringify!($UP)), $func; $($row)* }
            $crate::f_asking_body! { $A, concat!(stringify!($PRE), "_", stringify!($UP)), $func; $($row)* }
            $crate::f08_names! { f_jump, [$pre $PRE], $low, "_f08ts_", ENTRY }
        };
    };
    ($($other:tt)*) => {};
}

/// The row twice more for mpi_f08 with large counts, if it has that: plain, and with descriptors.
#[macro_export]
macro_rules! f_with_counts {
    ([counts] mpich, [$pre:ident $PRE:ident], $low:ident $UP:ident; $A:ty, $func:tt; $($row:tt)*) => {
        $crate::f_with_counts! { [counts] f08, [$pre $PRE], $low $UP; $A, $func; $($row)* }
        const _: () = {
            #[allow(unused_imports)]
            use $crate::fortran::descriptor::{Buf, Location, types_of_peers};
            #[allow(unused_imports)]
            use $crate::fortran::large::{ConstNums, Num, Nums, n};
            $crate::f_body! { $A, concat!(stringify!($PRE), "_", stringify!($UP)), $func; $($row)* }
            $crate::f_asking_body! { $A, concat!(stringify!($PRE), "_", stringify!($UP), "_C"), $func; $($row)* }
            $crate::f08_names! { f_jump, [$pre $PRE], $low, "_f08ts_large_", ENTRY }
            f_names_of_intel! { f_jump, [$pre $PRE], $low $UP, "_c_f08ts_", ENTRY; $($row)* }
        };
    };
    ([counts] f08, [$pre:ident $PRE:ident], $low:ident $UP:ident; $A:ty, $func:tt; $($row:tt)*) => {
        const _: () = {
            #[allow(unused_imports)]
            use $crate::fortran::large::{ConstNums, Num, Nums, n};
            $crate::f_body! { $A, concat!(stringify!($PRE), "_", stringify!($UP)), $func; $($row)* }
            $crate::f_manglings! { large, [$pre $PRE], $low $UP, body }
            f_names_of_intel! { f_alias, [$pre $PRE], $low $UP, "_c_f08_", body; $($row)* }
        };
    };
    ($($other:tt)*) => {};
}

/// The element count given in a row, or 0.
#[macro_export]
macro_rules! f_len {
    () => {
        0
    };
    ($len:expr) => {
        $len
    };
}

/// Export procedures and functions that have no IERROR: each names the function that it is.
#[macro_export]
macro_rules! export_f_plain {
    ($A:ty, $face:ident; $(fn $low:ident $UP:ident = $func:ident ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        $(const _: () = {
            unsafe extern "C" fn body($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller passes what the Fortran binding of this procedure says.
                unsafe { $crate::fortran::special::$func::<$A>($($arg),*) }
            }
            $crate::f_manglings! { $face, [mpi MPI], $low $UP, body }
        };)*
    };
}

/// Export functions without IERROR that are C functions: each names the function of `special` that reaches those.
#[macro_export]
macro_rules! export_f_values {
    ($A:ty, $face:ident; $(fn $low:ident $UP:ident = $func:ident ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        $(const _: () = {
            unsafe extern "C" fn body($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller passes what the Fortran binding of this procedure says.
                unsafe {
                    $crate::fortran::special::$func::<$A>($crate::fortran::through::Through::OWN $(, $arg)*)
                }
            }
            $crate::f_values! { $face, $A; fn $low $UP = $func ($($arg: $ty),*) $(-> $ret)?; }
        };)*
    };
}

/// The names of such a function, whose `body` is there.
#[macro_export]
#[doc(hidden)]
macro_rules! f_values {
    (mpich, $A:ty; fn $low:ident $UP:ident = $func:ident ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;) => {
        static ENTRY: $crate::fortran::through::Entry = $crate::fortran::through::Entry::new(
            concat!("MPI_", stringify!($UP)),
            body as *const std::ffi::c_void,
            asking as *const std::ffi::c_void,
        );
        unsafe extern "C" fn asking($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: as in `body`; the tool's function has the same contract.
            unsafe {
                let through = ENTRY.tool().map_or(
                    $crate::fortran::through::Through::OWN,
                    $crate::fortran::through::Through::tool,
                );
                $crate::fortran::special::$func::<$A>(through $(, $arg)*)
            }
        }
        $crate::f_names! { f_jump, [mpi MPI], $low $UP, ENTRY }
        $crate::f_manglings! { f08, [mpi MPI], $low $UP, body }
    };
    ($face:ident, $A:ty; fn $low:ident $UP:ident $($rest:tt)*) => {
        $crate::f_manglings! { $face, [mpi MPI], $low $UP, body }
    };
}

/// Intel's names of procedures with large counts, `mpi_send_c_f08ts_` and `mpi_pack_size_c_f08_`, where its mpi_f08 module is MPICH's in
/// everything else. A face's `f_names_of_intel` is this or `f_refused_of_intel`.
#[macro_export]
macro_rules! f_served_of_intel {
    ($make:ident, $pre:tt, $low:ident $UP:ident, $suffix:literal, $to:path; $($row:tt)*) => {
        $crate::f08_names! { $make, $pre, $low, $suffix, $to }
    };
}

/// The same names where they cannot be served: for the standard ABI, handles of Intel's module are pointers, not INTEGERs.
#[macro_export]
macro_rules! f_refused_of_intel {
    ($A:ty; $make:ident, [$pre:ident $PRE:ident], $low:ident $UP:ident, $suffix:literal, $to:path;
        $($arg:ident : $kind:ty $([$len:expr])?),* $(; $($hidden:ident),+)?) => {
        const _: () = {
            unsafe extern "C" fn refused($($arg: *mut std::ffi::c_void,)* ierror: *mut std::ffi::c_int) {
                $(let _ = $arg;)*
                let code = $crate::entry::unsupported::<$A>($crate::refusal!(
                    concat!(stringify!($PRE), "_", stringify!($UP), "_C"),
                    "intel",
                    "handles of Intel's mpi_f08 for the standard ABI are pointers; use its mpi or mpif.h, or vmpifort"
                ));
                if !ierror.is_null() {
                    // SAFETY: the caller passes IERROR at this place.
                    unsafe { ierror.write_unaligned(code) };
                }
            }
            $crate::f08_names! { f_alias, [$pre $PRE], $low, $suffix, refused }
        };
    };
}

/// Export procedures that this vmpi does not offer: `$low($number of arguments)`; each raises an error that names it.
#[macro_export]
macro_rules! export_f_unsupported {
    ($A:ty, $face:ident, [$pre:ident $PRE:ident]; $($args:tt: $($low:ident $UP:ident)*;)*) => {
        $($(const _: () = {
            $crate::f_unsupported_body! { $A, $face, concat!(stringify!($PRE), "_", stringify!($UP)), $args }
            $crate::f_manglings! { $face, [$pre $PRE], $low $UP, body }
            $crate::f_unsupported_descriptors! { $face, [$pre $PRE], $low $UP, body }
        };)*)*
    };
}

/// What is not offered takes no argument apart, so one body serves MPICH's procedures with descriptors too.
#[macro_export]
#[doc(hidden)]
macro_rules! f_unsupported_descriptors {
    (mpich, $pre:tt, $low:ident $UP:ident, $body:path) => {
        $crate::f_manglings! { descriptors, $pre, $low $UP, $body }
    };
    ($($other:tt)*) => {};
}

/// `fn body` of a procedure with the given arguments before IERROR.
#[macro_export]
macro_rules! f_unsupported_body {
    ($A:ty, $face:ident, $name:expr, ($($arg:ident)*)) => {
        unsafe extern "C" fn body($($arg: *mut std::ffi::c_void,)* ierror: *mut std::ffi::c_int) {
            $(let _ = $arg;)*
            let code = $crate::entry::unsupported::<$A>($crate::refusal!($name, stringify!($face), "not implemented yet"));
            if !ierror.is_null() {
                // SAFETY: the caller passes IERROR at this place.
                unsafe { ierror.write_unaligned(code) };
            }
        }
    };
}

/// The handle types, as the tables write them.
pub mod h {
    pub use vmpi_core::handle::{Comm, Datatype, Errhandler, File, Group, Info, Message, Op, Request, Session, Win};
}

/// Everything, as Open MPI's libmpi_mpifh exports it.
#[macro_export]
macro_rules! f_tables_openmpi {
    ($A:ty) => {
        $crate::f_table_buffer_detach! { $A, openmpi }
        $crate::f_tables! { $A, openmpi }
        $crate::f_table_coll_init! { $A, openmpi, [mpix MPIX] }
        $crate::f_table_ft_openmpi! { $A, openmpi }
        $crate::f_table_win_cptr! { $A, openmpi }
        $crate::f_sizeof_openmpi! {}
        $crate::export_f_values! { $A, openmpi;
            fn wtime_f90 WTIME_F90 = wtime() -> f64;
            fn wtick_f90 WTICK_F90 = wtick() -> f64;
            fn aint_add_f90 AINT_ADD_F90 = aint_add(base: *const i64, disp: *const i64) -> i64;
            fn aint_diff_f90 AINT_DIFF_F90 = aint_diff(addr1: *const i64, addr2: *const i64) -> i64;
        }
    };
}

/// Everything, as MPICH's libmpichfort exports it.
#[macro_export]
macro_rules! f_tables_mpich {
    ($A:ty) => {
        $crate::f_table_buffer_detach! { $A, mpifh }
        $crate::f_table_f08! { $A }
        $crate::f_table_large! { $A }
        $crate::f_tables! { $A, mpich }
        $crate::f_table_coll_init! { $A, mpich, [mpi MPI] }
        $crate::f_table_mpi4! { $A, mpich }
        $crate::f_table_mpi41! { $A, mpich }
        $crate::f_table_unsupported_mpich! { $A, mpich }
        $crate::f_sizeof_mpich! {}
    };
}

/// What both faces export.
#[macro_export]
macro_rules! f_tables {
    ($A:ty, $face:ident) => {
        $crate::f_table_p2p! { $A, $face }
        $crate::f_table_mpi4_p2p! { $A, $face }
        $crate::f_table_session! { $A, $face }
        $crate::f_table_request! { $A, $face }
        $crate::f_table_coll! { $A, $face }
        $crate::f_table_neighbor! { $A, $face }
        $crate::f_table_comm! { $A, $face }
        $crate::f_table_dynamic! { $A, $face }
        $crate::f_table_group! { $A, $face }
        $crate::f_table_attr! { $A, $face }
        $crate::f_table_errhandler! { $A, $face }
        $crate::f_table_topo! { $A, $face }
        $crate::f_table_datatype! { $A, $face }
        $crate::f_table_op! { $A, $face }
        $crate::f_table_env! { $A, $face }
        $crate::f_table_info! { $A, $face }
        $crate::f_table_rma! { $A, $face }
        $crate::f_table_win! { $A, $face }
        $crate::f_table_io! { $A, $face }
        $crate::f_table_ft! { $A, $face }
        $crate::f_table_regions! { $A, $face }
        $crate::export_f_conversion_null! { $face }
        $crate::f_table_plain! { $A, $face }
    };
}
