//! The library's own memory where calls may be left behind. What lies in malloc's heap shares pages with the program's buffers: it could be guarded with them. And a touch may happen inside malloc, which
//! its handler cannot call then. So while `VMPI_OVERLAP` says that there may be guards, what this library allocates comes out of mappings of its own.

use dlmalloc::GlobalDlmalloc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use vmpi_shared::control::env;

pub struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const UNKNOWN: u8 = 0;
const MALLOC: u8 = 1;
const OWN: u8 = 2;
/// Where all memory comes from, and goes to, from the first piece on.
static FROM: AtomicU8 = AtomicU8::new(UNKNOWN);

#[inline]
fn is_own() -> bool {
    match FROM.load(Relaxed) {
        UNKNOWN => decide(),
        from => from == OWN,
    }
}

#[cold]
fn decide() -> bool {
    let mut name = [0u8; 32];
    name[..env::OVERLAP.len()].copy_from_slice(env::OVERLAP.as_bytes());
    // SAFETY: a string with a zero byte behind it; what is found is one, too, and looked at up to its first difference. Nothing is allocated.
    let own = unsafe {
        let value = libc::getenv(name.as_ptr().cast());
        !value.is_null() && libc::strcmp(value, c"off".as_ptr()) != 0
    };
    // Another thread would find the same.
    FROM.store(if own { OWN } else { MALLOC }, Relaxed);
    own
}

// SAFETY: all of it is malloc's, or all of it dlmalloc's.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        unsafe { if is_own() { GlobalDlmalloc.alloc(layout) } else { System.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        unsafe { if is_own() { GlobalDlmalloc.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) } }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { if is_own() { GlobalDlmalloc.dealloc(pointer, layout) } else { System.dealloc(pointer, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: passed on.
        unsafe {
            if is_own() { GlobalDlmalloc.realloc(pointer, layout, size) } else { System.realloc(pointer, layout, size) }
        }
    }
}
