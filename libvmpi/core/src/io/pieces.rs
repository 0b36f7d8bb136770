//! Lists of pieces of a file, compactly: what ranks tell each other in collective accesses.

use crate::consts::dt;
use crate::datatype::{self, Recipe, Rules, Type};
use crate::errors::{Class, Result, fail};
use std::rc::Rc;

/// `count` pieces of `len` bytes, `stride` bytes apart, the first at `position`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pieces {
    pub position: i64,
    pub len: u64,
    pub stride: i64,
    pub count: u64,
}

/// Bytes of [`Pieces`] in a message.
pub const PIECES_BYTES: usize = 32;

impl Pieces {
    /// End of the last piece.
    pub fn end(&self) -> i64 {
        self.position + self.stride * (self.count as i64 - 1) + self.len as i64
    }
}

/// Pieces in the order of the data stream.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct List(pub Vec<Pieces>);

impl List {
    /// Add a piece at the end.
    pub fn push(&mut self, position: i64, len: u64) {
        if let Some(last) = self.0.last_mut()
            && last.len == len
        {
            if last.count == 1 {
                (last.stride, last.count) = (position - last.position, 2);
                return;
            }
            if position == last.position + last.stride * last.count as i64 {
                last.count += 1;
                return;
            }
        }
        self.0.push(Pieces { position, len, stride: 0, count: 1 });
    }

    /// Call `f(position, len)` for each piece.
    pub fn each(&self, f: &mut dyn FnMut(i64, u64)) {
        for pieces in &self.0 {
            for i in 0..pieces.count as i64 {
                f(pieces.position + i * pieces.stride, pieces.len);
            }
        }
    }

    /// First position and end of the last piece, of pieces in ascending order; `None` if there are none.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        Some((self.0.first()?.position, self.0.last()?.end()))
    }

    /// The same without what lies at or after `end`.
    pub fn before(&self, end: i64) -> List {
        let mut kept = List::default();
        if self.bounds().is_none_or(|(_, last)| last <= end) {
            return self.clone();
        }
        for pieces in &self.0 {
            if pieces.end() <= end {
                kept.0.push(*pieces);
                continue;
            }
            for i in 0..pieces.count as i64 {
                let position = pieces.position + i * pieces.stride;
                if position >= end {
                    return kept;
                }
                kept.push(position, pieces.len.min((end - position) as u64));
            }
        }
        kept
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        for pieces in &self.0 {
            out.extend_from_slice(&pieces.position.to_ne_bytes());
            out.extend_from_slice(&pieces.len.to_ne_bytes());
            out.extend_from_slice(&pieces.stride.to_ne_bytes());
            out.extend_from_slice(&pieces.count.to_ne_bytes());
        }
    }

    /// What another rank sent, which must be ascending pieces inside `[low, high)`.
    ///
    /// # Errors
    /// `Class::Intern` for anything else.
    pub fn decode(bytes: &[u8], low: i64, high: i64) -> Result<List> {
        let word = |at: &[u8], i: usize| u64::from_ne_bytes(std::array::from_fn(|k| at[i * 8 + k]));
        let (mut list, mut from) = (List::default(), low);
        for chunk in bytes.chunks_exact(PIECES_BYTES) {
            let (position, len) = (word(chunk, 0) as i64, word(chunk, 1));
            let (stride, count) = (word(chunk, 2) as i64, word(chunk, 3));
            let room = (high - low) as u64;
            let sane = position >= from
                && position <= high
                && (1..=room).contains(&len)
                && (1..=room).contains(&count)
                && (count == 1 || (stride >= len as i64 && stride <= high - low))
                && i128::from(stride) * i128::from(count - 1) + i128::from(len) <= i128::from(high - position);
            if !sane {
                return fail(Class::Intern, "a rank sent a list of pieces that makes no sense");
            }
            let pieces = Pieces { position, len, stride, count };
            from = pieces.end();
            list.0.push(pieces);
        }
        Ok(list)
    }

    /// The pieces as a datatype, relative to `base`.
    ///
    /// # Errors
    /// None for lists that were checked.
    pub fn to_type(&self, base: i64) -> Result<Rc<Type>> {
        let byte = datatype::get(dt::BYTE)?;
        let displacements: Vec<i64> = self.0.iter().map(|p| p.position - base).collect();
        if self.0.iter().all(|p| p.count == 1) {
            let blocklengths = self.0.iter().map(|p| p.len as i64).collect();
            let recipe = Recipe::Hindexed { blocklengths, displacements, child: byte };
            return Ok(Rc::new(Type::new(recipe, Rules::Standard)?));
        }
        let strided = |p: &Pieces| {
            let recipe = Recipe::Hvector {
                count: p.count as i64,
                blocklength: p.len as i64,
                stride: p.stride,
                child: byte.clone(),
            };
            Ok(Rc::new(Type::new(recipe, Rules::Standard)?))
        };
        let children = self.0.iter().map(strided).collect::<Result<Vec<_>>>()?;
        let recipe = Recipe::Struct { blocklengths: vec![1; children.len()], displacements, children };
        Ok(Rc::new(Type::new(recipe, Rules::Standard)?))
    }
}

/// Which bytes of a window have been given: a bit for each.
pub struct Coverage {
    words: Vec<u64>,
}

impl Coverage {
    pub fn new() -> Coverage {
        Coverage { words: Vec::new() }
    }

    /// Nothing of `bytes` bytes is covered.
    pub fn reset(&mut self, bytes: usize) {
        self.words.clear();
        self.words.resize(bytes.div_ceil(64), 0);
    }

    /// Bytes `[from, from + len)` are.
    pub fn set(&mut self, from: usize, len: usize) {
        let (mut at, end) = (from, from + len);
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let n = (64 - bit).min(end - at);
            let mask = if n == 64 { u64::MAX } else { ((1 << n) - 1) << bit };
            self.words[word] |= mask;
            at += n;
        }
    }

    /// The first byte at or after `from` that is covered (or not), as far as `end`.
    fn next(&self, from: usize, end: usize, covered: bool) -> usize {
        let mut at = from;
        while at < end {
            let word = if covered { self.words[at / 64] } else { !self.words[at / 64] };
            let rest = word >> (at % 64);
            if rest != 0 {
                return (at + rest.trailing_zeros() as usize).min(end);
            }
            at = (at / 64 + 1) * 64;
        }
        end
    }

    /// Call `f(from, len)` for each run of covered bytes below `end`, until it returns false.
    pub fn runs(&self, end: usize, f: &mut dyn FnMut(usize, usize) -> bool) {
        let mut at = 0;
        while at < end {
            let start = self.next(at, end, true);
            at = self.next(start, end, false);
            if start < at && !f(start, at - start) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(list: &List) -> Vec<(i64, u64)> {
        let mut all = Vec::new();
        list.each(&mut |position, len| all.push((position, len)));
        all
    }

    /// Ascending pieces as gaps and lengths; many alike, so that runs form.
    fn ascending() -> impl Strategy<Value = Vec<(i64, u64)>> {
        prop::collection::vec((0i64..4, 1u64..4), 0..60).prop_map(|steps| {
            let mut at = 0;
            steps
                .into_iter()
                .map(|(gap, len)| {
                    let piece = (at + gap, len);
                    at = piece.0 + len as i64;
                    piece
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_list_is_the_pieces_it_was_made_of(pieces in ascending(), end in 0i64..300) {
            let _types = super::super::tests::TYPES.lock().unwrap();
            let mut list = List::default();
            pieces.iter().for_each(|(position, len)| list.push(*position, *len));
            prop_assert_eq!(naive(&list), pieces.clone());
            let mut bytes = Vec::new();
            list.encode(&mut bytes);
            prop_assert_eq!(&List::decode(&bytes, 0, 1000).unwrap(), &list);
            let cut: Vec<(i64, u64)> = pieces
                .iter()
                .filter(|p| p.0 < end)
                .map(|p| (p.0, p.1.min((end - p.0) as u64)))
                .collect();
            prop_assert_eq!(naive(&list.before(end)), cut);
            if let Some((low, high)) = list.bounds() {
                prop_assert!(List::decode(&bytes, low + 1, 1000).is_err());
                prop_assert!(List::decode(&bytes, 0, high - 1).is_err());
            }
            // As a type: the same blocks, neighbours merged.
            let mut merged: Vec<(i64, u64)> = Vec::new();
            for (position, len) in pieces {
                match merged.last_mut() {
                    Some(last) if last.0 + last.1 as i64 == position => last.1 += len,
                    _ => merged.push((position, len)),
                }
            }
            let mut blocks = Vec::new();
            list.to_type(0).unwrap().blocks(1, &mut |offset, len| { blocks.push((offset, len)); true });
            prop_assert_eq!(blocks, merged);
        }

        #[test]
        fn garbage_is_refused_or_sane(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
            if let Ok(list) = List::decode(&bytes, 100, 5000) {
                let mut from = 100;
                for pieces in &list.0 {
                    prop_assert!(pieces.position >= from && pieces.end() <= 5000);
                    from = pieces.end();
                }
            }
        }

        #[test]
        fn coverage_is_a_set_of_bytes(parts in prop::collection::vec((0usize..300, 0usize..150), 0..12)) {
            let mut coverage = Coverage::new();
            coverage.reset(450);
            let mut set = vec![false; 450];
            for (from, len) in parts {
                coverage.set(from, len);
                set[from..from + len].fill(true);
            }
            let mut seen = vec![false; 450];
            let mut last = 0;
            coverage.runs(450, &mut |from, len| {
                assert!(from >= last && len > 0);
                last = from + len + 1;
                seen[from..from + len].fill(true);
                true
            });
            prop_assert_eq!(seen, set);
        }
    }
}
