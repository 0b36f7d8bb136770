//! What MPICH's libmpichcxx.so.12 (the C++ bindings) calls besides MPI's functions: each is called right after an object was
//! made with a C++ function, and gives the function that calls such functions.

use crate::Mpich;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_abi::abi::{Abi, Codec};
use vmpi_abi::c::cxx;
use vmpi_abi::entry::{self, Target};
use vmpi_core::attr::{self, CopyFn, DeleteFn, Value};
use vmpi_core::errhandler;
use vmpi_core::errors::Error;
use vmpi_core::handle::{Comm, Errhandler, File, Handle, Op, Win};

/// Calls a C++ operation, its fifth argument.
type OpProxy = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, c_int, usize);
/// Calls a C++ error handler, its fourth argument: kind of object, handle, code.
type ErrhandlerProxy = unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, usize);
/// Calls a C++ copy callback, its first argument: handle, key, extra state, type of the value, value in and out, flag.
type CopyProxy =
    unsafe extern "C" fn(usize, c_int, c_int, *mut c_void, c_int, *mut c_void, *mut *mut c_void, *mut c_int) -> c_int;
/// Calls a C++ delete callback, its first argument: handle, key, type of the value, value, extra state.
type DeleteProxy = unsafe extern "C" fn(usize, c_int, c_int, c_int, *mut c_void, *mut c_void) -> c_int;

/// A value that is a pointer, as MPICH numbers the types of attributes.
const POINTER: c_int = 0;

/// The operation is a C++ function's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPII_Op_set_cxx(op: c_int, proxy: OpProxy) {
    entry::run::<Mpich>("MPI::Op::Init", Target::Process, || {
        let op: Op = Mpich::dec(op);
        let function = cxx::function_of_op(op)?;
        cxx::replace_op(op, move |input, inout, len, ty| {
            // SAFETY: what MPI::User_function is given, and the program's C++ function.
            unsafe { proxy(input, inout, len, Mpich::enc(ty), function) };
        })
    });
}

/// The error handler is a C++ function's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPII_Errhandler_set_cxx(handler: c_int, proxy: ErrhandlerProxy) {
    entry::run_any_time::<Mpich>("MPI::Create_errhandler", || {
        let handler: Errhandler = Mpich::dec(handler);
        let function = cxx::function_of_errhandler(handler)?;
        let call = move |target: Target, code: i32| {
            let mut code = Mpich::err_out(code);
            let mut file: *mut c_void = Mpich::enc(File::NULL);
            let (kind, mut object) = match target {
                Target::Comm(comm) => (0, Mpich::enc(comm)),
                Target::Win(win) => (2, <Mpich as Codec<Win>>::enc(win)),
                Target::File(of) => {
                    file = Mpich::enc(of);
                    (1, 0)
                }
                _ => (0, Mpich::enc(Comm::WORLD)),
            };
            let object = if kind == 1 { (&raw mut file).cast() } else { &raw mut object };
            // SAFETY: the arguments live here; the last is the program's C++ function.
            unsafe { proxy(kind, object, &raw mut code, function) };
            // The bindings take an error code that a call returns for one that no handler has seen.
            0
        };
        errhandler::replace(handler, Rc::new(call))
    });
}

/// The key's callbacks are C++ functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPII_Keyval_set_proxy(keyval: c_int, copy_proxy: CopyProxy, delete_proxy: DeleteProxy) {
    // In C and in Fortran a handle is the same int.
    entry::run::<Mpich>("MPI::Create_keyval", Target::Process, || {
        let keyval = Mpich::keyval_in(keyval);
        let cxx::Callbacks { copy, delete, extra, integer } = cxx::functions_of_keyval(keyval)?;
        let copy: CopyFn = match copy {
            0 => attr::null_copy(),
            copy => Rc::new(move |object, keyval, value| {
                let mut cell = 0;
                let given = value.as_pointer(&mut cell) as *mut c_void;
                let (mut new_value, mut flag) = (std::ptr::null_mut(), 0);
                // SAFETY: what the proxy wants; the outputs live here.
                let code = unsafe {
                    let handle = integer(object);
                    let key = Mpich::keyval_out(keyval);
                    let extra = extra as *mut c_void;
                    copy_proxy(copy, handle, key, extra, POINTER, given, &raw mut new_value, &raw mut flag)
                };
                match (code, flag) {
                    (0, 0) => Ok(None),
                    (0, _) => Ok(Some(Value::Pointer(new_value as usize))),
                    _ => Err(Error::user(Mpich::err_in(code))),
                }
            }),
        };
        let delete: DeleteFn = match delete {
            0 => attr::null_delete(),
            delete => Rc::new(move |object, keyval, value| {
                let mut cell = 0;
                let given = value.as_pointer(&mut cell) as *mut c_void;
                let handle = integer(object);
                let (key, extra) = (Mpich::keyval_out(keyval), extra as *mut c_void);
                // SAFETY: what the proxy wants.
                match unsafe { delete_proxy(delete, handle, key, POINTER, given, extra) } {
                    0 => Ok(()),
                    code => Err(Error::user(Mpich::err_in(code))),
                }
            }),
        };
        attr::replace(keyval, copy, delete)
    });
}
