//! Instructions that touch what is guarded.

use super::*;

#[test]
fn what_is_received_is_waited_for_by_reading_and_by_writing() {
    if !is_offered() {
        return;
    }
    for access in [Access::Away, Access::Any] {
        for write in [false, true] {
            for offset in [0, 100, PAGE - 1] {
                alone(|| {
                    let block = pages(8);
                    let (buffer, len) = (block.wrapping_add(offset), 5 * PAGE + 7);
                    // It is shorter than what was posted.
                    start(3, buffer, len, 9, access).unwrap();
                    // SAFETY: the test's memory.
                    unsafe { (*ON_THE_WAY.0.get())[3].as_mut().unwrap().len = 4 * PAGE };
                    assert!(any_armed());
                    let touched = buffer.wrapping_add(2 * PAGE + 5);
                    // SAFETY: the test's memory.
                    unsafe {
                        if write {
                            touched.write_volatile(77);
                            assert_eq!(touched.read_volatile(), 77);
                            touched.write_volatile(9);
                        } else {
                            assert_eq!(touched.read_volatile(), 9);
                        }
                    }
                    assert_eq!((arrived(), last_addr()), (1, touched as usize));
                    assert_ne!(last_instruction(), 0);
                    assert!(!any_armed());
                    assert!(all(block, offset, 1) && all(buffer, 4 * PAGE, 9));
                    assert!(all(buffer.wrapping_add(4 * PAGE), 8 * PAGE - offset - 4 * PAGE, 1));
                    assert_eq!(arrived(), 1);
                });
            }
        }
    }
}

#[test]
fn what_is_sent_may_be_read_and_is_waited_for_by_writing() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let block = pages(8);
        let buffer = block.wrapping_add(300);
        send(0, buffer, 6 * PAGE, 5);
        // The same once more, to somebody else.
        send(1, buffer, 6 * PAGE, 5);
        assert!(all(buffer, 6 * PAGE, 5) && all(block, 300, 1));
        assert_eq!(arrived(), 0);
        // SAFETY: the test's memory.
        unsafe { buffer.add(PAGE).write_volatile(6) };
        assert_eq!(arrived(), 2);
        assert!(!any_armed());
    });
}

#[test]
fn neighbours_in_the_same_pages_wait_and_keep_their_data() {
    if !is_offered() {
        return;
    }
    for access in [Access::Away, Access::Any, Access::Write] {
        alone(|| {
            let block = pages(4);
            let buffer = block.wrapping_add(64);
            start(0, buffer, 3 * PAGE, 9, access).unwrap();
            let (before, behind) = (block.wrapping_add(10), buffer.wrapping_add(3 * PAGE));
            // SAFETY: the test's memory.
            unsafe {
                before.write_volatile(33);
                assert_eq!(arrived(), 1);
                behind.write_volatile(44);
                assert_eq!((before.read_volatile(), behind.read_volatile()), (33, 44));
            }
            assert!(all(buffer, 3 * PAGE, 9) && all(before.wrapping_add(1), 53, 1));
        });
    }
}

#[test]
fn guards_share_pages() {
    if !is_offered() {
        return;
    }
    // Rows that end in the middle of pages, one behind the other; they arrive in any order.
    for order in [[0u32, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        alone(|| {
            let block = pages(8);
            let row = 2 * PAGE + 100;
            for ticket in 0..3u32 {
                receive(ticket, block.wrapping_add(ticket as usize * row), row, 10 + ticket as u8);
            }
            for ticket in order {
                arrives(ticket, 0, 0);
            }
            assert!(!any_armed());
            for ticket in 0..3usize {
                assert!(all(block.wrapping_add(ticket * row), row, 10 + ticket as u8));
            }
            assert!(all(block.wrapping_add(3 * row), 8 * PAGE - 3 * row, 1));
            assert_eq!(arrived(), 3);
        });
        // Of two that share a page the first one's is open only when both have come; the rest of it is at once.
        alone(|| {
            let block = pages(8);
            receive(0, block, PAGE + 10, 20);
            receive(1, block.wrapping_add(PAGE + 10), 2 * PAGE, 21);
            assert!(all(block, PAGE, 20));
            assert_eq!(arrived(), 1);
            assert!(all(block.wrapping_add(PAGE), 10, 20));
            assert_eq!(arrived(), 2);
            assert!(all(block.wrapping_add(PAGE + 10), 2 * PAGE, 21));
        });
    }
}

#[test]
fn guards_of_different_kinds_do_not_share_pages() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let block = pages(4);
        send(7, block, PAGE + 1, 3);
        let beside = block.wrapping_add(PAGE + 8);
        assert_eq!(start(8, beside, 2 * PAGE, 4, Access::Away), Err(NotGuardable::Overlap(7)));
        assert_eq!(arm(beside as usize, PAGE, Access::Write, 7), Err(NotGuardable::Table));
        assert_eq!(arm(beside as usize, PAGE, Access::Write, MOST as u32), Err(NotGuardable::Table));
        assert!(all(beside, 2 * PAGE, 1));
        wait_for_all();
        receive(8, beside, 2 * PAGE, 4);
        assert!(all(beside, 2 * PAGE, 4));
    });
}

/// In pages of its own: beside it lie the guard's own variables here, but not in a program.
#[repr(align(4096))]
struct Buffer(#[expect(dead_code, reason = "used by its address")] [u8; 64 << 10]);
static mut WITH_A_VALUE: Buffer = Buffer([1; 64 << 10]);
static mut ZEROS: Buffer = Buffer([0; 64 << 10]);

#[test]
fn static_memory_can_be_guarded() {
    if !is_offered() {
        return;
    }
    for (buffer, was) in [((&raw mut WITH_A_VALUE).cast::<u8>(), 1), ((&raw mut ZEROS).cast::<u8>(), 0)] {
        for access in [Access::Away, Access::Any, Access::Write] {
            alone(|| {
                start(0, buffer, 40 << 10, 9, access).unwrap();
                // SAFETY: the test's memory.
                unsafe { buffer.add(8 << 10).write_volatile(9) };
                assert_eq!(arrived(), 1);
                assert!(all(buffer, 40 << 10, 9) && all(buffer.wrapping_add(40 << 10), 24 << 10, was));
            });
        }
    }
}

#[test]
fn after_the_last_guard_the_process_is_as_before() {
    if !is_offered() {
        return;
    }
    alone(|| {
        // SAFETY: asks only.
        let handlers = || unsafe {
            [libc::SIGSEGV, libc::SIGSYS].map(|signal| {
                let mut is: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &mut is);
                (is.sa_sigaction, is.sa_flags)
            })
        };
        let areas = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        let before = handlers();
        let block = pages(64);
        // The alternate stack stays, and descriptors.
        receive(0, block, PAGE, 2);
        wait_for_all();
        let had = areas();
        for round in 0..100u8 {
            receive(0, block.wrapping_add(PAGE), 32 * PAGE - 5, round);
            send(1, block.wrapping_add(40 * PAGE), 10 * PAGE, round);
            assert!(all(block.wrapping_add(PAGE), 32 * PAGE - 5, round));
            wait_for_all();
            assert_eq!(handlers(), before);
        }
        assert_eq!(areas(), had);
    });
}

static NAMES: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());

#[inline(never)]
fn who_touches(buffer: *mut u8) {
    // SAFETY: the test's memory.
    unsafe { buffer.write_volatile(1) };
}

/// For debuggers, and for `vmpictl stacks`.
#[test]
fn the_stack_below_a_wait_is_that_of_who_touched() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let buffer = pages(2);
        receive(0, buffer, PAGE, 9);
        let notes = |ticket, _, _| {
            *NAMES.lock().unwrap() = std::backtrace::Backtrace::force_capture().to_string();
            disarm(ticket);
        };
        set_callback(notes, || false);
        who_touches(buffer);
        let names = NAMES.lock().unwrap();
        let at = |name: &str| names.find(name).unwrap_or_else(|| panic!("{name} is not in {names}"));
        assert!(at("touched") < at("who_touches") && at("who_touches") < at("the_stack_below"));
    });
}
