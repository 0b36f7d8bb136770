//! The library's allocator: malloc's, but not while a touch is waited for (`settle::touched`). A touch may happen inside malloc, whose own words lie beside the program's buffers; what is allocated until it
//! is over comes out of memory of this library's own, and what is freed is kept until the next MPI call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// What is allocated while a touch is waited for: lists of blocks, of answers, now and then a text.
const BYTES: usize = 4 << 20;
/// So many that are freed meanwhile are remembered; more stay allocated.
const MOST_KEPT: usize = 1024;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; BYTES]>);
// SAFETY: each part is given to one user, as by any allocator.
unsafe impl Sync for Memory {}

struct Kept(UnsafeCell<[(*mut u8, Layout); MOST_KEPT]>);
// SAFETY: a place is written by who has taken its number, and read when no touch is waited for.
unsafe impl Sync for Kept {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
static KEPT: Kept = Kept(UnsafeCell::new([(std::ptr::null_mut(), Layout::new::<u8>()); MOST_KEPT]));
/// Touches that are waited for.
static TOUCHES: AtomicUsize = AtomicUsize::new(0);
/// One has ever been.
static USED: AtomicBool = AtomicBool::new(false);
/// Bytes given out, pieces not freed yet, and entries of `KEPT`.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);

pub struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// A touch is waited for, as long as this lives.
pub struct Touch(());

impl Touch {
    pub fn begin() -> Touch {
        USED.store(true, Relaxed);
        TOUCHES.fetch_add(1, Relaxed);
        Touch(())
    }
}

impl Drop for Touch {
    fn drop(&mut self) {
        TOUCHES.fetch_sub(1, Relaxed);
    }
}

/// Free what could not be freed while a touch was waited for. Not from there.
pub fn tidy_up() {
    if COUNT.load(Relaxed) == 0 || TOUCHES.load(Relaxed) != 0 {
        return;
    }
    let count = COUNT.swap(0, Relaxed).min(MOST_KEPT);
    for at in 0..count {
        // SAFETY: written when it was freed; nobody writes now.
        let (pointer, layout) = unsafe { (*KEPT.0.get())[at] };
        // SAFETY: malloc's, and freed by its user.
        unsafe { System.dealloc(pointer, layout) };
    }
}

fn is_own(pointer: *mut u8) -> bool {
    let base = MEMORY.0.get() as usize;
    (base..base + BYTES).contains(&(pointer as usize))
}

fn take(layout: Layout) -> *mut u8 {
    let base = MEMORY.0.get() as usize;
    let mut start = 0;
    let taken = NEXT.fetch_update(Relaxed, Relaxed, |next| {
        start = (base + next).next_multiple_of(layout.align()) - base;
        start.checked_add(layout.size()).filter(|end| *end <= BYTES)
    });
    if taken.is_err() {
        return std::ptr::null_mut();
    }
    LIVE.fetch_add(1, Relaxed);
    (base + start) as *mut u8
}

#[cold]
fn give(pointer: *mut u8, layout: Layout) {
    if is_own(pointer) {
        if LIVE.fetch_sub(1, Relaxed) == 1 {
            NEXT.store(0, Relaxed);
        }
    } else if TOUCHES.load(Relaxed) == 0 {
        // SAFETY: malloc's.
        unsafe { System.dealloc(pointer, layout) };
    } else {
        let at = COUNT.fetch_add(1, Relaxed);
        if at < MOST_KEPT {
            // SAFETY: the number is this call's alone.
            unsafe { (*KEPT.0.get())[at] = (pointer, layout) };
        }
    }
}

// SAFETY: malloc's memory, or parts of `MEMORY` that nobody else has; each is given back to where it came from.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        if TOUCHES.load(Relaxed) == 0 { unsafe { System.alloc(layout) } } else { take(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if TOUCHES.load(Relaxed) == 0 {
            // SAFETY: passed on.
            return unsafe { System.alloc_zeroed(layout) };
        }
        let pointer = take(layout);
        if !pointer.is_null() {
            // SAFETY: so many bytes have just been taken; others may have used them before.
            unsafe { pointer.write_bytes(0, layout.size()) };
        }
        pointer
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if USED.load(Relaxed) {
            return give(pointer, layout);
        }
        // SAFETY: passed on; nothing else has ever been given out.
        unsafe { System.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !USED.load(Relaxed) || (TOUCHES.load(Relaxed) == 0 && !is_own(pointer)) {
            // SAFETY: passed on; it is malloc's.
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // SAFETY: the caller's promise about the size; both are as long as is copied.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(pointer, new, size.min(layout.size()));
                give(pointer, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is allocated before a touch, meanwhile and behind it is kept, grown and freed on the other side. One test: other tests' threads allocate here, too.
    #[test]
    fn what_is_allocated_on_one_side_is_freed_on_the_other() {
        let before = vec![1u8; 1000];
        let mut grown = vec![2u8; 10];
        let touch = Touch::begin();
        drop(before);
        assert!(COUNT.load(Relaxed) > 0, "not freed");
        let meanwhile = vec![3u64; 100];
        assert!(is_own(meanwhile.as_ptr() as *mut u8));
        grown.resize(5000, 4);
        assert!(is_own(grown.as_mut_ptr()) && grown[..10] == [2; 10] && grown[4999] == 4);
        drop(touch);
        grown.resize(50_000, 5);
        assert!(!is_own(grown.as_mut_ptr()) && grown[9] == 2 && grown[4999] == 4 && grown[49_999] == 5);
        assert_eq!(meanwhile, [3; 100]);
        drop(meanwhile);
        tidy_up();
        assert_eq!(COUNT.load(Relaxed), 0);
    }
}
