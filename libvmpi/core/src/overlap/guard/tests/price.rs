//! What guards cost, printed: `cargo test -p vmpi-core guard::tests::price -- --nocapture`. No price is judged here.

use super::*;
use std::time::Instant;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed(body: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    body();
    begun.elapsed().as_secs_f64() * 1e6
}

#[test]
fn prices_are_told() {
    if !is_offered() {
        return;
    }
    alone(|| {
        const ROUNDS: usize = 41;
        set_callback(|ticket, _, _| disarm(ticket), || false);
        for huge in [false, true] {
            for len in [64 << 10, 1 << 20, 16usize << 20] {
                let block = pages((len + (4 << 20)) / PAGE);
                let buffer = (block as usize).next_multiple_of(2 << 20);
                let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
                // SAFETY: the test's memory.
                unsafe {
                    libc::madvise(buffer as *mut libc::c_void, len, libc::MADV_DONTNEED);
                    libc::madvise(buffer as *mut libc::c_void, len, advice);
                    (buffer as *mut u8).write_bytes(1, len);
                }
                for access in [Access::Write, Access::Away, Access::Any] {
                    let (mut on, mut off, mut fault) = (Vec::new(), Vec::new(), Vec::new());
                    for _ in 0..ROUNDS {
                        on.push(timed(|| arm(buffer, len, access, 0).unwrap()));
                        off.push(timed(|| disarm(0)));
                        arm(buffer, len, access, 0).unwrap();
                        // SAFETY: the test's memory.
                        fault.push(timed(|| unsafe { (buffer as *mut u8).write_volatile(1) }));
                    }
                    let pages = if huge { "huge" } else { "small" };
                    let (on, off, fault) = (median(on), median(off), median(fault));
                    println!(
                        "{access:?} {len:>8} {pages:5}: arm {on:6.1} disarm {off:6.1} fault and disarm {fault:6.1} us"
                    );
                }
                // SAFETY: the test's memory.
                unsafe { libc::munmap(block.cast(), len + (4 << 20)) };
            }
        }
        let block = pages(1);
        // SAFETY: takes nothing.
        let call = || unsafe { libc::getppid() };
        let calls = || {
            median(
                (0..200)
                    .map(|_| {
                        timed(|| {
                            (0..10).for_each(|_| {
                                call();
                            })
                        }) / 10.0
                    })
                    .collect(),
            )
        };
        let before = calls();
        arm(block as usize, 1, Access::Write, 0).unwrap();
        println!("a system call: {before:.2} us, while something is guarded {:.2} us", calls());
        disarm(0);
    });
}
