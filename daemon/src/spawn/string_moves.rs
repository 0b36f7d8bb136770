//! Whether memcpy of the C library is slow here where the target lies a little behind the source in its page.
//!
//! It moves more than 2 KiB by one `rep movsb` where processors are said to be good at that. Those of AMD (Zen 3 and later) take twenty times as long if the target
//! lies 1 to 31 bytes behind: here 2.3 GB/s instead of 45. There it often lies: a large block of malloc's begins 16 bytes behind its page, blocks of
//! shared memory begin with theirs.
#![allow(unsafe_code)]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

const PAGE_BYTES: usize = 4096;
const COPIED_BYTES: usize = 16 << 10;
/// Where the target lies: there it may be slow; there it is not.
const NEAR_BYTES: usize = 16;
const FAR_BYTES: usize = 64;
/// So many times as long is no noise.
const SLOW: u32 = 4;
const ROUNDS: usize = 5;

static SLOW_HERE: LazyLock<bool> = LazyLock::new(measure);

/// Measured once, in a tenth of a millisecond.
pub(super) fn are_slow() -> bool {
    *SLOW_HERE
}

fn measure() -> bool {
    let (source, mut target) = (vec![1u8; COPIED_BYTES + PAGE_BYTES], vec![1u8; COPIED_BYTES + 2 * PAGE_BYTES]);
    let from = source.as_ptr().wrapping_add(source.as_ptr().align_offset(PAGE_BYTES));
    let page = target.as_mut_ptr().wrapping_add(target.as_ptr().align_offset(PAGE_BYTES));
    let once = |to: *mut u8| {
        let begin = Instant::now();
        // SAFETY: the source has so many bytes behind the start of its first page, and the target a page more.
        unsafe { libc::memcpy(to.cast(), from.cast(), COPIED_BYTES) };
        begin.elapsed()
    };
    let least = |behind: usize| (0..ROUNDS).map(|_| once(page.wrapping_add(behind))).min();
    let (near, far) = (least(NEAR_BYTES), least(FAR_BYTES));
    near > far.map(|far: Duration| far * SLOW)
}
