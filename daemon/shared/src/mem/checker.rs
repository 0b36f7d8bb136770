//! What programs that watch a process's memory have to be told, because it happens behind their backs: valgrind's memcheck, and the
//! sanitizers that compilers put into programs.
//!
//! They see what the process itself does, and system calls. A peer, a carrier or the kernel on their behalf writes into this process's buffers as well
//! ([`written`]); memcheck would call that uninitialised. And of memory that processes share it knows only one of those that use it ([`Shared`]).
//!
//! valgrind is told by instructions that do nothing elsewhere, a sanitizer by a function of its own, looked up by name: programs without one have none.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Requests of `valgrind.h` and `memcheck.h`, which says that their numbers stay as they are.
mod memcheck {
    pub const RUNNING_ON_VALGRIND: usize = 0x1001;
    const TOOL: usize = (b'M' as usize) << 24 | (b'C' as usize) << 16;
    pub const MAKE_MEM_NOACCESS: usize = TOOL;
    pub const MAKE_MEM_DEFINED: usize = TOOL + 2;
    pub const CHECK_MEM_IS_ADDRESSABLE: usize = TOOL + 4;
    pub const MAKE_MEM_DEFINED_IF_ADDRESSABLE: usize = TOOL + 11;
    pub const ENABLE_ADDR_ERROR_REPORTING_IN_RANGE: usize = TOOL + 13;
    pub const DISABLE_ADDR_ERROR_REPORTING_IN_RANGE: usize = TOOL + 14;
}

/// Ask valgrind; 0 where there is none, or a tool of it that does not know the request.
#[inline]
fn ask(request: usize, at: usize, len: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let arguments = [request, at, len, 0, 0, 0];
        let mut answer = 0usize;
        // SAFETY: the rotations give rdi back as it was and the exchange changes nothing; valgrind, which knows the sequence, reads the six words.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") arguments.as_ptr(), inout("rdx") answer, options(nostack),
            );
        }
        answer
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (request, at, len);
        0
    }
}

/// Does this process run under valgrind?
pub fn is_valgrind() -> bool {
    ask(memcheck::RUNNING_ON_VALGRIND, 0, 0) != 0
}

type Unpoison = unsafe extern "C" fn(*const c_void, usize);
type IsPoisoned = unsafe extern "C" fn(*const c_void, usize) -> *const c_void;
type Store = unsafe extern "C" fn(usize, usize);

/// Functions of the sanitizers' run-time libraries; each is there only in a program that was built with it.
struct Sanitizer {
    /// MemorySanitizer: these bytes have a value now.
    unpoison: Option<Unpoison>,
    /// AddressSanitizer: the first byte that nobody may use, and what its compiler calls before it stores so many bytes, which ends the program with the place.
    address: Option<(IsPoisoned, Store)>,
}

fn sanitizer() -> &'static Sanitizer {
    static SANITIZER: OnceLock<Sanitizer> = OnceLock::new();
    // SAFETY: the functions of these names have these types (sanitizer/msan_interface.h, asan_interface.h; the last by the compilers).
    SANITIZER.get_or_init(|| unsafe {
        let is_poisoned = find(c"__asan_region_is_poisoned").map(|f| std::mem::transmute::<*mut c_void, IsPoisoned>(f));
        let store = find(c"__asan_storeN").map(|f| std::mem::transmute::<*mut c_void, Store>(f));
        Sanitizer {
            unpoison: find(c"__msan_unpoison").map(|f| std::mem::transmute::<*mut c_void, Unpoison>(f)),
            address: is_poisoned.zip(store),
        }
    })
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

const UNKNOWN: u8 = 0;
const NOBODY: u8 = 1;
const SOMEBODY: u8 = 2;

static WATCHED: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Is there anybody to be told?
#[inline]
pub fn is_watched() -> bool {
    match WATCHED.load(Ordering::Relaxed) {
        NOBODY => false,
        SOMEBODY => true,
        _ => look(),
    }
}

#[cold]
fn look() -> bool {
    let somebody = is_valgrind() || sanitizer().unpoison.is_some() || sanitizer().address.is_some();
    WATCHED.store(if somebody { SOMEBODY } else { NOBODY }, Ordering::Relaxed);
    somebody
}

/// Somebody else has written `len` bytes at `at` for this process, or will have before the program may look at them.
#[inline]
pub fn written(at: u64, len: u64) {
    if is_watched() {
        tell(at as usize, len as usize);
    }
}

/// Bytes that do not belong to the program are told of here, where the program is in the call that was given them.
#[cold]
fn tell(at: usize, len: usize) {
    if ask(memcheck::CHECK_MEM_IS_ADDRESSABLE, at, len) == 0 {
        ask(memcheck::MAKE_MEM_DEFINED, at, len);
    } else {
        ask(memcheck::MAKE_MEM_DEFINED_IF_ADDRESSABLE, at, len);
    }
    let Sanitizer { unpoison, address } = sanitizer();
    // SAFETY: they look at, or change, what is known of these bytes, not the bytes.
    unsafe {
        if let Some((is_poisoned, store)) = address {
            let bad = is_poisoned(at as *const c_void, len) as usize;
            if bad != 0 {
                store(bad, at + len - bad);
            }
        }
        if let Some(unpoison) = unpoison {
            unpoison(at as *const c_void, len);
        }
    }
}

/// As [`written`] of memory that others may write to at any time: a window's, which may be more than there is.
#[inline]
pub fn exposed(at: u64, len: u64) {
    /// Memcheck looks at each byte: more of them are taken as they are.
    const MOST_BYTES: u64 = 1 << 30;
    if is_watched() && len <= MOST_BYTES {
        expose(at as usize, len as usize);
    }
}

#[cold]
fn expose(at: usize, len: usize) {
    ask(memcheck::MAKE_MEM_DEFINED_IF_ADDRESSABLE, at, len);
    if let Some(unpoison) = sanitizer().unpoison {
        // SAFETY: as in `tell`.
        unsafe { unpoison(at as *const c_void, len) };
    }
}

/// A mapping of memory through which processes of the job give each other data: nothing about it is judged, what is read there has a
/// value, and memcheck's search for leaks, which would look through all of it (and have memory for each page that holds nothing), leaves it out.
#[derive(Debug, Default)]
pub struct Shared {
    at: usize,
    len: usize,
}

/// Those that there are: memcheck complains if one is left when the process ends.
static ALL: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

impl Shared {
    pub fn new(at: *const u8, len: usize) -> Shared {
        let shared = Shared { at: at as usize, len };
        if is_valgrind() {
            ask(memcheck::DISABLE_ADDR_ERROR_REPORTING_IN_RANGE, shared.at, len);
            ask(memcheck::MAKE_MEM_NOACCESS, shared.at, len);
            let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((shared.at, len));
        }
        shared
    }

    /// Is it one?
    pub fn is_known(&self) -> bool {
        self.len != 0
    }
}

impl Drop for Shared {
    /// What is mapped there next is judged as usual.
    fn drop(&mut self) {
        if self.is_known() && is_valgrind() {
            ask(memcheck::ENABLE_ADDR_ERROR_REPORTING_IN_RANGE, self.at, self.len);
            let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|one| *one != (self.at, self.len));
        }
    }
}

/// The library's last moment: objects of the program that call MPI_Finalize when they are destroyed have done so.
#[used]
// SAFETY: what the linker gathers there are functions without arguments.
#[unsafe(link_section = ".fini_array")]
static AT_THE_END: extern "C" fn() = judge_all;

/// Nobody uses that memory any more.
extern "C" fn judge_all() {
    for (at, len) in ALL.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        ask(memcheck::ENABLE_ADDR_ERROR_REPORTING_IN_RANGE, at, len);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn without_a_checker_nothing_happens() {
        assert!(!is_valgrind());
        assert_eq!(ask(memcheck::CHECK_MEM_IS_ADDRESSABLE, 0, 8), 0);
        let bytes = [7u8; 64];
        written(bytes.as_ptr() as u64, 64);
        exposed(bytes.as_ptr() as u64, 64);
        drop(Shared::new(bytes.as_ptr(), 64));
        assert_eq!(bytes, [7; 64]);
    }
}
