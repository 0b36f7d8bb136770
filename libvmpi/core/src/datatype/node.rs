//! Where the bytes of a type lie: a compact loop nest, and the walk over any part of it.

use std::rc::Rc;

/// A nest of at most this many runs is flattened to a list.
/// (Few in tests, so that they see the other shapes too.)
const FLATTEN: u64 = if cfg!(test) { 6 } else { 512 };

/// Bytes in memory in typemap order, relative to an origin.
#[derive(Debug)]
pub struct Node {
    /// Packed bytes.
    pub size: u64,
    /// Contiguous runs that a walk meets.
    runs: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// `size` bytes from the origin.
    Run,
    /// `body` at 0, stride, 2 * stride, ...
    Loop { stride: i64, body: Rc<Node> },
    /// Runs of any length; a run ends where the next one starts in the packed order.
    Runs(Box<[(i64, u64)]>),
    /// Different bodies.
    Parts(Box<[Part]>),
}

#[derive(Debug)]
struct Part {
    offset: i64,
    /// Packed bytes before this part.
    start: u64,
    node: Rc<Node>,
}

/// A node and where its origin lies.
#[derive(Clone, Debug)]
pub struct Placed {
    pub offset: i64,
    pub node: Rc<Node>,
}

/// What a walk does with the memory it meets; `false` stops the walk.
pub trait Sink {
    fn run(&mut self, offset: i64, len: u64) -> bool;
    /// `count` runs of `len` bytes, `stride` apart.
    #[inline]
    fn strided(&mut self, offset: i64, count: u64, stride: i64, len: u64) -> bool {
        (0..count).all(|i| self.run(offset.wrapping_add((i as i64).wrapping_mul(stride)), len))
    }
}

impl Placed {
    /// `len` bytes at `offset`.
    pub fn run(offset: i64, len: u64) -> Placed {
        let node = Node { size: len, runs: u64::from(len > 0), kind: Kind::Run };
        Placed { offset: if len > 0 { offset } else { 0 }, node: Rc::new(node) }
    }

    /// The same, moved.
    pub fn at(&self, distance: i64) -> Placed {
        Placed { offset: self.offset.wrapping_add(distance), node: Rc::clone(&self.node) }
    }

    /// `count` of `self`, `stride` bytes apart. The caller has checked that `count * size` fits.
    pub fn replicate(&self, count: u64, stride: i64) -> Placed {
        let node = &self.node;
        if count == 0 || node.size == 0 {
            return Placed::run(0, 0);
        }
        if count == 1 {
            return self.clone();
        }
        let size = node.size * count;
        let runs = node.runs.saturating_mul(count);
        match &node.kind {
            Kind::Run if stride == node.size as i64 => return Placed::run(self.offset, size),
            // A loop of a loop whose strides fit together is one loop.
            Kind::Loop { stride: inner, body } if stride == inner.wrapping_mul((node.size / body.size) as i64) => {
                let kind = Kind::Loop { stride: *inner, body: Rc::clone(body) };
                return Placed { offset: self.offset, node: Rc::new(Node { size, runs, kind }) };
            }
            Kind::Runs(_) | Kind::Parts(_) if runs <= FLATTEN => {
                return flatten((0..count).map(|i| self.at((i as i64).wrapping_mul(stride))));
            }
            _ => {}
        }
        let kind = Kind::Loop { stride, body: Rc::clone(node) };
        Placed { offset: self.offset, node: Rc::new(Node { size, runs, kind }) }
    }

    /// One after the other in typemap order.
    pub fn sequence(parts: Vec<Placed>) -> Placed {
        let mut merged: Vec<Placed> = Vec::with_capacity(parts.len());
        for part in parts {
            if part.node.size == 0 {
                continue;
            }
            match merged.last_mut() {
                Some(last) if last.is_run() && part.is_run() && last.end() == part.offset => {
                    *last = Placed::run(last.offset, last.node.size + part.node.size);
                }
                _ => merged.push(part),
            }
        }
        if merged.is_empty() {
            return Placed::run(0, 0);
        }
        if merged.len() == 1 {
            return merged.swap_remove(0);
        }
        if let Some(stride) = regular(&merged) {
            let kind = Kind::Loop { stride, body: Rc::clone(&merged[0].node) };
            let size = merged.iter().map(|p| p.node.size).sum();
            let runs = merged.iter().fold(0u64, |n, p| n.saturating_add(p.node.runs));
            return Placed { offset: merged[0].offset, node: Rc::new(Node { size, runs, kind }) };
        }
        let runs = merged.iter().fold(0u64, |n, p| n.saturating_add(p.node.runs));
        if runs <= FLATTEN || merged.iter().all(Placed::is_run) {
            return flatten(merged.into_iter());
        }
        let mut start = 0;
        let parts: Box<[Part]> = merged
            .into_iter()
            .map(|p| {
                let part = Part { offset: p.offset, start, node: p.node };
                start += part.node.size;
                part
            })
            .collect();
        Placed { offset: 0, node: Rc::new(Node { size: start, runs, kind: Kind::Parts(parts) }) }
    }

    pub fn is_run(&self) -> bool {
        matches!(self.node.kind, Kind::Run)
    }

    fn end(&self) -> i64 {
        self.offset.wrapping_add(self.node.size as i64)
    }
}

/// The common distance of placements of one and the same node.
fn regular(parts: &[Placed]) -> Option<i64> {
    let first = &parts[0];
    let stride = parts[1].offset.wrapping_sub(first.offset);
    let same = |p: &Placed| {
        Rc::ptr_eq(&p.node, &first.node) || (p.is_run() && first.is_run() && p.node.size == first.node.size)
    };
    parts.windows(2).all(|w| same(&w[1]) && w[1].offset.wrapping_sub(w[0].offset) == stride).then_some(stride)
}

/// The runs of `parts` as a list, neighbours merged.
fn flatten(parts: impl Iterator<Item = Placed>) -> Placed {
    struct List {
        runs: Vec<(i64, u64)>,
        size: u64,
        end: i64,
    }
    impl Sink for List {
        fn run(&mut self, offset: i64, len: u64) -> bool {
            if self.runs.is_empty() || self.end != offset {
                self.runs.push((offset, self.size));
            }
            self.size += len;
            self.end = offset.wrapping_add(len as i64);
            true
        }
    }
    let mut list = List { runs: Vec::new(), size: 0, end: 0 };
    for part in parts {
        part.node.walk(part.offset, 0, part.node.size, &mut list);
    }
    if list.runs.len() == 1 {
        return Placed::run(list.runs[0].0, list.size);
    }
    let runs = list.runs.len() as u64;
    let kind = Kind::Runs(list.runs.into_boxed_slice());
    Placed { offset: 0, node: Rc::new(Node { size: list.size, runs, kind }) }
}

impl Node {
    /// Visit the memory behind packed bytes `[from, to)`, `from < to <= size`, with the origin at `at`.
    pub fn walk<S: Sink>(&self, at: i64, from: u64, to: u64, sink: &mut S) -> bool {
        match &self.kind {
            Kind::Run => sink.run(at.wrapping_add(from as i64), to - from),
            Kind::Loop { stride, body } => body.walk_many(*stride, at, from, to, sink),
            Kind::Runs(runs) => {
                let first = if from == 0 { 0 } else { runs.partition_point(|r| r.1 <= from) - 1 };
                for (i, &(offset, start)) in runs.iter().enumerate().skip(first) {
                    if start >= to {
                        break;
                    }
                    let end = runs.get(i + 1).map_or(self.size, |r| r.1).min(to);
                    let begin = start.max(from);
                    if !sink.run(at.wrapping_add(offset).wrapping_add((begin - start) as i64), end - begin) {
                        return false;
                    }
                }
                true
            }
            Kind::Parts(parts) => {
                let first = if from == 0 { 0 } else { parts.partition_point(|p| p.start <= from) - 1 };
                for part in &parts[first..] {
                    if part.start >= to {
                        break;
                    }
                    let begin = part.start.max(from) - part.start;
                    let end = part.node.size.min(to - part.start);
                    if !part.node.walk(at.wrapping_add(part.offset), begin, end, sink) {
                        return false;
                    }
                }
                true
            }
        }
    }

    /// As `walk`, for as many copies of `self`, `stride` bytes apart, as `to` needs.
    pub fn walk_many<S: Sink>(&self, stride: i64, at: i64, from: u64, to: u64, sink: &mut S) -> bool {
        if from >= to {
            return true;
        }
        let size = self.size;
        let place = |i: u64| at.wrapping_add((i as i64).wrapping_mul(stride));
        let (mut i, head) = if from == 0 { (0, 0) } else { (from / size, from % size) };
        if head != 0 {
            let end = size.min(to - i * size);
            if !self.walk(place(i), head, end, sink) {
                return false;
            }
            i += 1;
        }
        let (whole, tail) = (to / size, to % size);
        if i < whole {
            let go_on = match self.kind {
                Kind::Run if stride == size as i64 => sink.run(place(i), (whole - i) * size),
                Kind::Run => sink.strided(place(i), whole - i, stride, size),
                _ => (i..whole).all(|i| self.walk(place(i), 0, size, sink)),
            };
            if !go_on {
                return false;
            }
            i = whole;
        }
        if tail != 0 && i == whole { self.walk(place(i), 0, tail, sink) } else { true }
    }
}
