//! Hints to the processor that memory will be needed soon. They change nothing that can be seen, and do nothing where there is no such memory.

/// The cache line of `place` will be written to: this core asks for it alone, so that the write does not have to.
///
/// The intrinsic for that (`_MM_HINT_ET0`) asks for reading only, unless the program is compiled for processors that all have the instruction: the line then
/// comes over twice. Processors without it take it for a no-op.
#[inline(always)]
pub fn for_writing<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(feature = "model")))]
    // SAFETY: a prefetch has no effect but on caches, and never faults.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(feature = "model"))))]
    let _ = place;
}
