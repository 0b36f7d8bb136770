//! Arithmetic on lists of blocks: clip, advance, pair. Pure; touches no memory that the blocks describe.

use crate::Block;
use crate::error::{CopyError, Side};

/// Bytes that a list describes.
///
/// # Errors
/// [`CopyError::Impossible`] for a block that wraps round the address space, or if the sum does not fit 64 bits.
pub fn total_bytes(blocks: &[Block], side: Side) -> Result<u64, CopyError> {
    let mut total = 0u64;
    for block in blocks {
        let impossible = CopyError::Impossible { side, addr: block.addr, len: block.len };
        block.addr.checked_add(block.len).ok_or(impossible)?;
        total = total.checked_add(block.len).ok_or(impossible)?;
    }
    Ok(total)
}

/// A place in a list of blocks.
#[derive(Copy, Clone, Debug)]
pub struct Cursor<'a> {
    blocks: &'a [Block],
    /// Bytes of the first block that lie behind the cursor; less than its length, or 0.
    behind_bytes: u64,
}

impl<'a> Cursor<'a> {
    /// The beginning of a list.
    pub fn new(blocks: &'a [Block]) -> Cursor<'a> {
        let mut cursor = Cursor { blocks, behind_bytes: 0 };
        cursor.skip_empty();
        cursor
    }

    /// What is left of the block under the cursor; `None` at the end of the list.
    pub fn here(&self) -> Option<Block> {
        let block = self.blocks.first()?;
        Some(Block { addr: block.addr + self.behind_bytes, len: block.len - self.behind_bytes })
    }

    /// Move on by `bytes`, at most to the end of the list.
    pub fn advance(&mut self, mut bytes: u64) {
        while let Some(here) = self.here() {
            if bytes < here.len {
                self.behind_bytes += bytes;
                return;
            }
            bytes -= here.len;
            self.blocks = &self.blocks[1..];
            self.behind_bytes = 0;
            self.skip_empty();
        }
    }

    /// Clip: hand the coming non-empty blocks to `each`, at most `max_blocks` of them and `max_bytes` in all. Returns the bytes
    /// handed out. Does not move the cursor.
    pub fn clip(&self, max_blocks: usize, max_bytes: u64, mut each: impl FnMut(Block)) -> u64 {
        let mut ahead = *self;
        let mut bytes = 0;
        for _ in 0..max_blocks {
            let Some(here) = ahead.here() else { break };
            let len = here.len.min(max_bytes - bytes);
            if len == 0 {
                break;
            }
            each(Block { addr: here.addr, len });
            bytes += len;
            ahead.advance(len);
        }
        bytes
    }

    fn skip_empty(&mut self) {
        while let [Block { len: 0, .. }, rest @ ..] = self.blocks {
            self.blocks = rest;
        }
    }
}

/// Cut two lists into pieces that are contiguous on both sides: (address in `a`, address in `b`, length), in order, until
/// the shorter list ends.
pub fn pair<'a>(a: &'a [Block], b: &'a [Block]) -> impl Iterator<Item = (u64, u64, u64)> + 'a {
    let (mut a, mut b) = (Cursor::new(a), Cursor::new(b));
    std::iter::from_fn(move || {
        let (x, y) = (a.here()?, b.here()?);
        let len = x.len.min(y.len);
        a.advance(len);
        b.advance(len);
        Some((x.addr, y.addr, len))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every byte address that a list describes, in order: the slow and obvious meaning.
    fn flat(blocks: &[Block]) -> Vec<u64> {
        blocks.iter().flat_map(|b| b.addr..b.addr + b.len).collect()
    }

    fn lists() -> impl Strategy<Value = Vec<Block>> {
        prop::collection::vec((0u64..10_000, 0u64..7).prop_map(|(addr, len)| Block { addr, len }), 0..12)
    }

    proptest! {
        #[test]
        fn advance_drops_the_first_bytes(list in lists(), steps in prop::collection::vec(0u64..9, 0..6)) {
            let mut cursor = Cursor::new(&list);
            for step in &steps {
                cursor.advance(*step);
            }
            let behind = steps.iter().sum::<u64>() as usize;
            let all = flat(&list);
            let rest = &all[behind.min(all.len())..];
            prop_assert_eq!(cursor.here().map(|b| b.addr), rest.first().copied());
            let mut left = Vec::new();
            cursor.clip(usize::MAX, u64::MAX, |b| left.push(b));
            prop_assert_eq!(flat(&left), rest);
        }

        #[test]
        fn clip_keeps_both_bounds_and_loses_nothing(list in lists(), max_blocks in 1usize..5, max_bytes in 1u64..20) {
            let mut cursor = Cursor::new(&list);
            let mut seen = Vec::new();
            loop {
                let mut window = Vec::new();
                let bytes = cursor.clip(max_blocks, max_bytes, |b| window.push(b));
                prop_assert!(window.len() <= max_blocks && bytes <= max_bytes);
                prop_assert!(window.iter().all(|b| b.len > 0));
                prop_assert_eq!(bytes, window.iter().map(|b| b.len).sum::<u64>());
                if bytes == 0 {
                    break;
                }
                seen.extend(flat(&window));
                cursor.advance(bytes);
            }
            prop_assert_eq!(seen, flat(&list));
        }

        #[test]
        fn pairs_are_a_zip_of_the_bytes(a in lists(), b in lists()) {
            let pieces: Vec<(u64, u64)> = pair(&a, &b).flat_map(|(x, y, n)| (0..n).map(move |i| (x + i, y + i))).collect();
            let bytes: Vec<(u64, u64)> = flat(&a).into_iter().zip(flat(&b)).collect();
            prop_assert_eq!(pieces, bytes);
        }
    }

    #[test]
    fn a_block_round_the_end_of_the_address_space_is_impossible() {
        let bad = Block { addr: u64::MAX - 3, len: 8 };
        let expected = CopyError::Impossible { side: Side::Remote, addr: bad.addr, len: 8 };
        assert_eq!(total_bytes(&[Block { addr: 0, len: 1 }, bad], Side::Remote), Err(expected));
    }
}
