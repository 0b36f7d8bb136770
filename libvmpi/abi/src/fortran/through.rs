//! The way from a Fortran procedure to the C function of its name, where MPICH's Fortran side goes it.
//!
//! MPICH's mpif.h, `use mpi`, and mpi_f08 where there are choice buffers, call the C functions by their public names, so a profiling tool that wraps
//! those, and only those (Darshan, mpiP, Caliper), sees what a Fortran program does; `pmpi_send_` is `mpi_send_` there. So the
//! names of a procedure jump to what its [`Entry`] says: at first to the body that looks for the C function; if that is vmpi's own, from then
//! on to the body that calls the implementation.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where the names of a procedure lead.
#[repr(C)]
pub struct Entry {
    /// What the names jump to; the first field, because they jump through the entry's address.
    body: AtomicPtr<c_void>,
    /// The tool's C function, once it was found.
    tool: AtomicPtr<c_void>,
    /// The body that calls vmpi itself.
    direct: *const c_void,
    /// The procedure's name in capitals.
    name: &'static str,
}

// SAFETY: addresses of functions, and atomics.
unsafe impl Sync for Entry {}

/// Longer than any name of a procedure.
const LONGEST_NAME: usize = 64;

impl Entry {
    /// `direct` calls vmpi, `asking` asks [`Entry::tool`] first.
    #[must_use]
    pub const fn new(name: &'static str, direct: *const c_void, asking: *const c_void) -> Entry {
        assert!(name.len() < LONGEST_NAME);
        Entry { body: AtomicPtr::new(asking.cast_mut()), tool: AtomicPtr::new(null_mut()), direct, name }
    }

    /// The C function of this name, if it is a tool's.
    #[inline]
    pub fn tool(&self) -> Option<NonNull<c_void>> {
        // Relaxed, here and below: what the addresses name was there before the program was started.
        NonNull::new(self.tool.load(Ordering::Relaxed)).or_else(|| self.look())
    }

    #[cold]
    fn look(&self) -> Option<NonNull<c_void>> {
        let name = c_name(self.name);
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        // SAFETY: a name. The search goes as for a library that needs this one: what was preloaded or is the program's comes first.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if found.is_null() || own().contains(&(found as usize)) {
            self.body.store(self.direct.cast_mut(), Ordering::Relaxed);
            return None;
        }
        self.tool.store(found, Ordering::Relaxed);
        NonNull::new(found)
    }
}

/// MPI_COMM_RANK as C writes it: MPI_Comm_rank. MPI_ALLOC_MEM_CPTR is C's MPI_Alloc_mem.
fn c_name(procedure: &str) -> [u8; LONGEST_NAME] {
    let mut name = [0; LONGEST_NAME];
    let procedure = procedure.strip_suffix("_CPTR").unwrap_or(procedure);
    let prefix = procedure.find('_').map_or(0, |end| end + 2);
    for (at, letter) in procedure.bytes().enumerate() {
        name[at] = if at < prefix { letter } else { letter.to_ascii_lowercase() };
    }
    name
}

/// The addresses at which this library lies.
fn own() -> &'static std::ops::Range<usize> {
    static OWN: OnceLock<std::ops::Range<usize>> = OnceLock::new();
    OWN.get_or_init(|| {
        let mut found = 0..0;
        // SAFETY: `each` is called for as long as this call lasts, with what lies in `found`.
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut found).cast()) };
        found
    })
}

/// Put the object's addresses into the range `found` if this function is in it.
unsafe extern "C" fn each(object: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: dl_iterate_phdr passes a description whose headers are there, and on what `own` gave it.
    let (object, found) = unsafe { (&*object, &mut *found.cast::<std::ops::Range<usize>>()) };
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let end = loaded.map(|header| header.p_vaddr + header.p_memsz).max().unwrap_or(0);
    let range = object.dlpi_addr as usize..(object.dlpi_addr + end) as usize;
    if !range.contains(&(each as *const c_void as usize)) {
        return 0;
    }
    *found = range;
    1
}

/// How a procedure of `f` reaches its C function.
#[derive(Copy, Clone)]
pub struct Through(Option<NonNull<c_void>>);

impl Through {
    /// vmpi's own, without a detour.
    pub const OWN: Through = Through(None);

    #[must_use]
    pub fn tool(function: NonNull<c_void>) -> Through {
        Through(Some(function))
    }

    /// The tool's function.
    #[inline]
    #[must_use]
    pub fn address(self) -> Option<NonNull<c_void>> {
        self.0
    }
}

/// Call C's `$name` with the given arguments, of the given types: `call!(through, c::init::<A>(argc: *mut c_int) -> c_int)`.
/// The values are variables of these names.
#[macro_export]
#[doc(hidden)]
macro_rules! f_through {
    ($through:expr, $module:ident::$func:ident::<$A:ty>($($arg:ident: $ty:ty),*) -> $result:ty) => {
        match $through.address() {
            None => $module::$func::<$A>($($arg),*),
            Some(function) => {
                let function =
                    std::mem::transmute::<std::ptr::NonNull<std::ffi::c_void>, unsafe extern "C" fn($($ty),*) -> $result>(
                        function,
                    );
                function($($arg),*)
            }
        }
    };
}

/// Fortran procedures of the program on their way through a tool, which takes them for C functions.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Procedures {
    addresses: [usize; 3],
    /// They are for attributes that are INTEGERs, as in MPI-1.
    pub integers: bool,
}

impl Procedures {
    #[must_use]
    pub fn new<const N: usize>(procedures: [*mut c_void; N]) -> Procedures {
        let mut addresses = [0; 3];
        for (to, from) in addresses.iter_mut().zip(procedures) {
            *to = from as usize;
        }
        Procedures { addresses, integers: false }
    }

    /// The procedures for attributes of this kind.
    #[must_use]
    pub fn of_words<const N: usize>(procedures: [*mut c_void; N], integers: bool) -> Procedures {
        Procedures { integers, ..Procedures::new(procedures) }
    }

    /// Let the C functions that `call` reaches know these procedures for Fortran's.
    pub fn announced<T>(self, call: impl FnOnce() -> T) -> T {
        ON_THE_WAY.set(Some(self));
        let result = call();
        ON_THE_WAY.set(None);
        result
    }

    /// What was announced, if these addresses are Fortran procedures.
    #[must_use]
    pub fn from_fortran<const N: usize>(functions: [usize; N]) -> Option<Procedures> {
        ON_THE_WAY.get().filter(|procedures| procedures.addresses[..N] == functions)
    }
}

thread_local! {
    static ON_THE_WAY: Cell<Option<Procedures>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_c() {
        let c = |name| String::from_utf8(c_name(name).split(|&byte| byte == 0).next().unwrap().to_vec()).unwrap();
        assert_eq!(c("MPI_SEND"), "MPI_Send");
        assert_eq!(c("MPI_TYPE_CREATE_F90_REAL"), "MPI_Type_create_f90_real");
        assert_eq!(c("MPIX_COMM_AGREE"), "MPIX_Comm_agree");
        assert_eq!(c("MPI_ALLOC_MEM_CPTR"), "MPI_Alloc_mem");
    }

    #[test]
    fn own_addresses() {
        assert!(own().contains(&(names_in_c as *const c_void as usize)));
        assert!(!own().contains(&(libc::getpid as *const c_void as usize)));
    }

    #[test]
    fn procedures_are_known_on_their_way_only() {
        let given = Procedures::new([8 as *mut c_void, 16 as *mut c_void]);
        assert!(given.announced(|| Procedures::from_fortran([8, 16])).is_some());
        assert!(given.announced(|| Procedures::from_fortran([16, 8])).is_none());
        assert!(Procedures::from_fortran([8, 16]).is_none());
    }
}
