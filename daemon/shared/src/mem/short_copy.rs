//! Copying few bytes without a call.

/// As `ptr::copy_nonoverlapping`, for lengths that are mostly small and not known before: up to 16 bytes are two moves that may overlap,
/// where a call of memcpy takes its code, cold after a switch, into the cache.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(always)]
pub unsafe fn short_copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: all bytes lie within the first `len`.
    unsafe {
        match len {
            8..=16 => {
                let (first, last) =
                    (from.cast::<u64>().read_unaligned(), from.add(len - 8).cast::<u64>().read_unaligned());
                to.cast::<u64>().write_unaligned(first);
                to.add(len - 8).cast::<u64>().write_unaligned(last);
            }
            4..8 => {
                let (first, last) =
                    (from.cast::<u32>().read_unaligned(), from.add(len - 4).cast::<u32>().read_unaligned());
                to.cast::<u32>().write_unaligned(first);
                to.add(len - 4).cast::<u32>().write_unaligned(last);
            }
            0 => {} // then they need not be addresses at all
            _ => std::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_no_byte_more() {
        let from: Vec<u8> = (1..=40).collect();
        for len in 0..=40 {
            let mut to = [0u8; 42];
            // SAFETY: both have room for `len` bytes.
            unsafe { short_copy(from.as_ptr(), to.as_mut_ptr().add(1), len) };
            assert_eq!((&to[1..=len], to[0]), (&from[..len], 0));
            assert!(to[len + 1..].iter().all(|byte| *byte == 0));
        }
    }
}
