//! Cutting a list of blocks to what one ask may hold.

use vmpi_cma::Block;

/// Blocks, taken from the front.
pub(super) struct Pieces<'a> {
    blocks: &'a [Block],
    index: usize,
    at: u64,
}

impl Pieces<'_> {
    pub fn of(blocks: &[Block]) -> Pieces<'_> {
        let mut pieces = Pieces { blocks, index: 0, at: 0 };
        pieces.skip_empty();
        pieces
    }

    fn skip_empty(&mut self) {
        while self.blocks.get(self.index).is_some_and(|block| block.len == self.at) {
            (self.index, self.at) = (self.index + 1, 0);
        }
    }

    pub fn is_over(&self) -> bool {
        self.index >= self.blocks.len()
    }

    /// The next blocks of at most `bytes` bytes together, and their bytes.
    pub fn take(&mut self, mut bytes: u64, most: usize) -> (Vec<Block>, u64) {
        let mut taken = Vec::new();
        let mut total = 0;
        while bytes > 0 && taken.len() < most && !self.is_over() {
            let block = self.blocks[self.index];
            let len = (block.len - self.at).min(bytes);
            taken.push(Block { addr: block.addr.wrapping_add(self.at), len });
            (bytes, total) = (bytes - len, total + len);
            self.at += len;
            self.skip_empty();
        }
        (taken, total)
    }

    /// Go back to where it stood.
    pub fn back_to(&mut self, place: (usize, u64)) {
        (self.index, self.at) = place;
    }

    /// Where it stands.
    pub fn place(&self) -> (usize, u64) {
        (self.index, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All bytes come, once and in order, whatever the limits.
        #[test]
        fn nothing_is_lost(lens in proptest::collection::vec(0u64..40, 0..30), limits in proptest::collection::vec((1u64..60, 1usize..5), 1..6)) {
            let blocks: Vec<Block> = (0..).zip(&lens).map(|(at, len)| Block { addr: 1000 * at, len: *len }).collect();
            let bytes = |blocks: &[Block]| -> Vec<u64> { blocks.iter().flat_map(|b| b.addr..b.addr + b.len).collect() };
            let mut pieces = Pieces::of(&blocks);
            let mut all = Vec::new();
            for (bytes_most, blocks_most) in limits.iter().cycle() {
                if pieces.is_over() {
                    break;
                }
                let place = pieces.place();
                let (lost, _) = pieces.take(7, 3);
                prop_assert!(!lost.is_empty());
                pieces.back_to(place);
                let (taken, len) = pieces.take(*bytes_most, *blocks_most);
                prop_assert!(len > 0 && len <= *bytes_most && taken.len() <= *blocks_most);
                prop_assert_eq!(len, taken.iter().map(|block| block.len).sum::<u64>());
                all.extend(bytes(&taken));
            }
            prop_assert_eq!(all, bytes(&blocks));
        }
    }
}
