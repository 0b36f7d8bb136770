//! What becomes of guarded memory, and what memory is not guarded.

use super::*;

const BYTES: usize = 1 << 20;

fn block() -> *mut u8 {
    // SAFETY: a plain allocation.
    unsafe {
        let at = libc::malloc(BYTES).cast::<u8>();
        at.write_bytes(1, BYTES);
        at
    }
}

#[test]
fn freed_memory_is_waited_for() {
    if !is_offered() {
        return;
    }
    for access in [Access::Away, Access::Any, Access::Write] {
        for heap in [false, true] {
            alone(|| {
                // SAFETY: plain allocations.
                unsafe {
                    if heap {
                        libc::mallopt(libc::M_MMAP_THRESHOLD, 64 << 20);
                    }
                    let first = block();
                    start(0, first, BYTES, 9, access).unwrap();
                    libc::free(first.cast());
                    assert_eq!(arrived(), 1, "before it is somebody else's");
                    let again = block();
                    assert!(all(again, BYTES, 1));
                    start(0, again, BYTES, 8, access).unwrap();
                    let larger = libc::realloc(again.cast(), 4 * BYTES).cast::<u8>();
                    assert_eq!(arrived(), 2);
                    assert!(all(larger, BYTES, 8));
                    start(0, larger, 4 * BYTES, 7, access).unwrap();
                    let smaller = libc::realloc(larger.cast(), BYTES).cast::<u8>();
                    assert!(all(smaller, BYTES, 7));
                    assert_eq!(arrived(), 3);
                    libc::free(smaller.cast());
                }
            });
        }
    }
}

#[test]
fn mappings_change_when_it_has_arrived() {
    if !is_offered() {
        return;
    }
    for access in [Access::Away, Access::Any, Access::Write] {
        // SAFETY: the test's memory.
        alone(|| unsafe {
            let at = pages(16);
            start(0, at, 16 * PAGE, 9, access).unwrap();
            assert_eq!(libc::munmap(at.add(15 * PAGE).cast(), PAGE), 0);
            assert_eq!(arrived(), 1);
            assert!(all(at, 15 * PAGE, 9));
            start(0, at, 8 * PAGE, 8, access).unwrap();
            let moved = libc::mremap(at.cast(), 8 * PAGE, 32 * PAGE, libc::MREMAP_MAYMOVE).cast::<u8>();
            assert_eq!(arrived(), 2);
            assert!(all(moved, 8 * PAGE, 8));
            start(0, moved, 8 * PAGE, 7, access).unwrap();
            assert_eq!(libc::madvise(moved.cast(), 4 * PAGE, libc::MADV_DONTNEED), 0);
            assert_eq!(arrived(), 3);
            assert!(all(moved, 4 * PAGE, 0) && all(moved.add(4 * PAGE), 4 * PAGE, 7));
            start(0, moved, 8 * PAGE, 6, access).unwrap();
            assert_eq!(libc::mprotect(moved.cast(), 8 * PAGE, libc::PROT_READ), 0);
            assert_eq!(arrived(), 4);
            assert!(all(moved, 8 * PAGE, 6));
            let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mprotect(moved.cast(), 8 * PAGE, rights);
            start(0, moved, 8 * PAGE, 5, access).unwrap();
            let new = libc::mmap(moved.cast(), PAGE, rights, kind | libc::MAP_FIXED, -1, 0);
            assert_eq!((new, arrived()), (moved.cast(), 5));
            assert!(all(moved, PAGE, 0) && all(moved.add(PAGE), 7 * PAGE, 5));
        });
    }
}

#[test]
fn memory_of_other_kinds_is_refused() {
    if !is_offered() {
        return;
    }
    alone(|| {
        // SAFETY: new mappings.
        let map = |rights, kind| unsafe {
            libc::mmap(std::ptr::null_mut(), 4 * PAGE, rights, kind | libc::MAP_ANONYMOUS, -1, 0).cast::<u8>()
        };
        let open = libc::PROT_READ | libc::PROT_WRITE;
        let kinds = [
            map(open, libc::MAP_SHARED),
            map(libc::PROT_READ, libc::MAP_PRIVATE),
            map(libc::PROT_NONE, libc::MAP_PRIVATE),
            map(open | libc::PROT_EXEC, libc::MAP_PRIVATE),
            8192 as *mut u8,
        ];
        for at in kinds {
            for access in [Access::Away, Access::Any, Access::Write] {
                assert_eq!(arm(at as usize, 2 * PAGE, access, 0), Err(NotGuardable::Kind));
            }
        }
        // A hole in the middle.
        let at = pages(3);
        // SAFETY: the test's memory.
        unsafe { libc::munmap(at.add(PAGE).cast(), PAGE) };
        assert_eq!(arm(at as usize, 3 * PAGE, Access::Away, 0), Err(NotGuardable::Kind));
        for (addr, len) in [(at as usize, 0), (usize::MAX - 5, 10), (usize::MAX - 5, 3), (1 << 47, 1)] {
            assert_eq!(arm(addr, len, Access::Away, 0), Err(NotGuardable::Nothing));
        }
        assert!(!any_armed());
    });
}

#[test]
fn stacks_and_a_threads_own_variables_are_refused() {
    if !is_offered() {
        return;
    }
    thread_local! { static OWN: [u8; 100] = const { [0; 100] } }
    alone(|| {
        let local = [1u8; 20 * PAGE];
        let first = pages::first_stack();
        let own = OWN.with(|own| own.as_ptr() as usize);
        for access in [Access::Away, Access::Any, Access::Write] {
            // A thread's variables lie at the end of its stack.
            let result = arm(local.as_ptr() as usize, local.len(), access, 0);
            assert!(matches!(result, Err(NotGuardable::Stack | NotGuardable::ThreadLocal)), "{result:?}");
            assert_eq!(arm(first, 100, access, 0), Err(NotGuardable::Stack));
            assert_eq!(arm(own, 100, access, 0), Err(NotGuardable::ThreadLocal));
        }
        assert!(local.iter().all(|byte| *byte == 1));
    });
}

#[test]
fn of_several_areas_all_are_guarded_or_none() {
    if !is_offered() {
        return;
    }
    for taken in [false, true] {
        alone(|| {
            let at = pages(8);
            // SAFETY: the test's memory; makes areas of their own.
            unsafe {
                libc::madvise(at.add(2 * PAGE).cast(), PAGE, libc::MADV_DONTFORK);
                libc::madvise(at.add(5 * PAGE).cast(), PAGE, libc::MADV_DONTFORK);
                if taken {
                    let place = landing(at as usize + 5 * PAGE) as *mut libc::c_void;
                    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
                    assert_eq!(libc::mmap(place, PAGE, libc::PROT_READ, kind, -1, 0), place);
                }
            }
            let result = start(0, at, 8 * PAGE, 9, Access::Away);
            if taken {
                assert_eq!(result, Err(NotGuardable::Place));
                assert!(!any_armed() && all(at, 8 * PAGE, 1));
                assert_eq!(arrived(), 0);
            } else {
                assert_eq!(result, Ok(()));
                assert!(all(at, 8 * PAGE, 9));
                assert_eq!(arrived(), 1);
            }
        });
    }
}

#[test]
fn older_kernels_tell_of_areas_the_same() {
    alone(|| {
        let (own, code) = ([0u8; 8], pages::may_be_guarded as *const () as usize);
        // SAFETY: a new mapping.
        let shared = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
        };
        for at in [block() as usize, pages(3) as usize + PAGE, own.as_ptr() as usize, code, shared as usize] {
            let (asked, read) = (pages::area_at(at).unwrap(), pages::area_in_maps(at as u64).unwrap());
            assert_eq!((asked.start, asked.end, asked.rights), (read.start, read.end, read.rights));
        }
        assert_eq!((pages::area_at(64), pages::area_in_maps(64)), (None, None));
    });
}
