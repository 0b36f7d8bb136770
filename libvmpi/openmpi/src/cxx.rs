//! What Open MPI's libmpi_cxx.so.40 (the C++ bindings) calls besides MPI's functions.

use crate::OpenMpi;
use crate::handles::{Cell, Kind};
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use vmpi_abi::abi::Codec;
use vmpi_abi::c::{attr, cxx};
use vmpi_abi::entry::{self, Target};
use vmpi_core::errhandler;
use vmpi_core::errors::{Class, Error, fail};
use vmpi_core::handle::{Comm, Errhandler, File, Handle, Op, Win};

/// The C function that C++ operations are made with: the program's C++ function is its fifth argument.
type OpIntercept = unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_int, *mut *mut c_void, usize);
/// What libmpi_cxx writes into an error handler: it calls the program's C++ function, its fourth argument.
type ErrhandlerDispatch = unsafe extern "C" fn(*mut *mut c_void, *mut c_int, *const c_char, usize);

/// Bytes of an error handler, and where the dispatch function lies in it.
const ERRHANDLER_BYTES: usize = 1024;
const DISPATCH_OFFSET: usize = 0x78;

/// Objects as ompi_errhandler_create and ompi_attr_create_keyval number them.
const COMM: c_int = 1;
const WIN_ERRHANDLER: c_int = 2;
const TYPE_KEYVAL: c_int = 2;
const WIN_KEYVAL: c_int = 3;

/// Called right after MPI_Op_create: the operation is a C++ function's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_op_set_cxx_callback(op: *mut c_void, function: usize) {
    entry::run::<OpenMpi>("MPI::Op::Init", Target::Process, || {
        let op: Op = OpenMpi::dec(op);
        // SAFETY: libmpi_cxx has just made the operation with a function of this type.
        let intercept = unsafe { std::mem::transmute::<usize, OpIntercept>(cxx::function_of_op(op)?) };
        cxx::replace_op(op, move |input, inout, mut len, ty| {
            let mut ty = OpenMpi::enc(ty);
            // SAFETY: what MPI_User_function is given, and the program's C++ function.
            unsafe { intercept(input, inout, &raw mut len, &raw mut ty, function) };
        })
    });
}

/// An error handler as libmpi_cxx sees it: it writes its dispatch function into what it gets.
#[repr(C, align(16))]
struct Handler {
    cell: Cell,
    rest: [usize; ERRHANDLER_BYTES / 8 - 1],
}

const _: () = assert!(size_of::<Handler>() == ERRHANDLER_BYTES);

/// Make the error handler of a C++ function. What it points to stays for ever: the program may hold its address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_errhandler_create(kind: c_int, function: usize, _language: c_int) -> *mut c_void {
    let handler = Box::leak(Box::new(Handler { cell: Cell { magic: Errhandler::MAGIC, id: 0 }, rest: [0; _] }));
    let place = std::ptr::from_mut(handler).cast::<u8>();
    let dispatch = place as usize + DISPATCH_OFFSET;
    let call = move |target: Target, code: i32| {
        // SAFETY: the handler was leaked; libmpi_cxx wrote a function of this type there, or it is still null.
        let found = unsafe { (dispatch as *const Option<ErrhandlerDispatch>).read() };
        let mut object = match kind {
            COMM => OpenMpi::enc(if let Target::Comm(comm) = target { comm } else { Comm::WORLD }),
            WIN_ERRHANDLER => OpenMpi::enc(if let Target::Win(win) = target { win } else { Win::NULL }),
            _ => OpenMpi::enc(if let Target::File(file) = target { file } else { File::NULL }),
        };
        let mut code = <OpenMpi as vmpi_abi::abi::Abi>::err_out(code);
        if let Some(dispatch) = found {
            // SAFETY: the arguments live here; the last is the program's C++ function.
            unsafe { dispatch(&raw mut object, &raw mut code, c"".as_ptr(), function) };
        }
        <OpenMpi as vmpi_abi::abi::Abi>::err_in(code)
    };
    entry::run_any_time::<OpenMpi>("MPI::Create_errhandler", || {
        let made = errhandler::create(Rc::new(call));
        // SAFETY: inside the handler, which nobody else has yet.
        unsafe { place.cast::<Cell>().write(Cell { magic: Errhandler::MAGIC, id: made.raw() }) };
        Ok(())
    });
    place.cast()
}

/// Make a key of attributes with callbacks of libmpi_cxx, which get the C++ functions in their extra state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_attr_create_keyval(
    kind: c_int,
    copy: *mut c_void,
    delete: *mut c_void,
    keyval: *mut c_int,
    extra: *mut c_void,
    _flags: c_int,
    _bindings_extra: *mut c_void,
) -> c_int {
    // SAFETY: addresses of functions of these types, or null; the generic function's contract is MPI's.
    unsafe {
        let copy = std::mem::transmute::<*mut c_void, attr::CopyFunction<*mut c_void>>(copy);
        let delete = std::mem::transmute::<*mut c_void, attr::DeleteFunction<*mut c_void>>(delete);
        match kind {
            COMM => attr::comm_create_keyval::<OpenMpi>(copy, delete, keyval, extra),
            TYPE_KEYVAL => attr::type_create_keyval::<OpenMpi>(copy, delete, keyval, extra),
            WIN_KEYVAL => attr::win_create_keyval::<OpenMpi>(copy, delete, keyval, extra),
            _ => entry::run::<OpenMpi>("MPI::Create_keyval", Target::Process, || {
                fail(Class::Arg, format!("{kind} is no kind of object that carries attributes"))
            }),
        }
    }
}

/// Report an error of a C++ function on the object's error handler. `object` is a handle of any kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_errhandler_invoke(
    _errhandler: *mut c_void,
    object: *mut c_void,
    _kind: c_int,
    code: c_int,
    _message: *const c_char,
) -> c_int {
    let comm: Comm = OpenMpi::dec(object);
    let (win, file): (Win, File) = (OpenMpi::dec(object), OpenMpi::dec(object));
    let target = match u32::MAX {
        none if comm.raw() != none => Target::Comm(comm),
        none if win.raw() != none => Target::Win(win),
        none if file.raw() != none => Target::File(file),
        _ => Target::Process,
    };
    let code = <OpenMpi as vmpi_abi::abi::Abi>::err_in(code);
    entry::run::<OpenMpi>("MPI", target, || Err(Error::user(code)))
}
