//! What the bytes of a type mean: its basic elements in typemap order, compactly.

use super::basic::Unit;
use std::rc::Rc;

/// A sequence of basic elements.
#[derive(Debug)]
pub struct Signature {
    pub bytes: u64,
    pub elements: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Units(Unit),
    Loop(Rc<Signature>),
    Sequence(Vec<Rc<Signature>>),
}

impl Signature {
    pub fn empty() -> Rc<Signature> {
        Rc::new(Signature { bytes: 0, elements: 0, kind: Kind::Sequence(Vec::new()) })
    }

    pub fn unit(unit: Unit) -> Rc<Signature> {
        Rc::new(Signature { bytes: unit.size(), elements: 1, kind: Kind::Units(unit) })
    }

    /// `count` times `body`. The caller has checked that `count * bytes` fits.
    pub fn repeat(body: &Rc<Signature>, count: u64) -> Rc<Signature> {
        if count == 1 {
            return Rc::clone(body);
        }
        if count == 0 || body.bytes == 0 {
            return Signature::empty();
        }
        let kind = match &body.kind {
            Kind::Units(unit) => Kind::Units(*unit),
            Kind::Loop(inner) => Kind::Loop(Rc::clone(inner)),
            Kind::Sequence(_) => Kind::Loop(Rc::clone(body)),
        };
        Rc::new(Signature { bytes: body.bytes * count, elements: body.elements * count, kind })
    }

    /// One after the other; equal neighbours become one.
    pub fn sequence(parts: impl IntoIterator<Item = Rc<Signature>>) -> Rc<Signature> {
        let mut merged: Vec<Rc<Signature>> = Vec::new();
        for part in parts {
            if part.bytes == 0 {
                continue;
            }
            if let Some(last) = merged.last_mut()
                && let (Kind::Units(a), Kind::Units(b)) = (&last.kind, &part.kind)
                && a == b
            {
                *last = Rc::new(Signature {
                    bytes: last.bytes + part.bytes,
                    elements: last.elements + part.elements,
                    kind: Kind::Units(*a),
                });
                continue;
            }
            merged.push(part);
        }
        if merged.len() == 1 {
            return merged.swap_remove(0);
        }
        let (bytes, elements) = merged.iter().fold((0, 0), |(b, e), s| (b + s.bytes, e + s.elements));
        Rc::new(Signature { bytes, elements, kind: Kind::Sequence(merged) })
    }

    /// The basic element and its number, if all are the same.
    pub fn uniform(&self) -> Option<(Unit, u64)> {
        match &self.kind {
            Kind::Units(unit) => Some((*unit, self.elements)),
            _ => None,
        }
    }

    /// Basic elements in the first `bytes` bytes (of endless repetitions); `None` if they end inside one.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        if self.bytes == 0 {
            return (bytes == 0).then_some(0);
        }
        let (whole, rest) = (bytes / self.bytes, bytes % self.bytes);
        let before = whole * self.elements;
        if rest == 0 {
            return Some(before);
        }
        let inside = match &self.kind {
            Kind::Units(unit) => (rest % unit.size() == 0).then_some(rest / unit.size())?,
            Kind::Loop(body) => body.elements_in(rest)?,
            Kind::Sequence(parts) => {
                let (mut left, mut count) = (rest, 0);
                for part in parts {
                    let here = left.min(part.bytes);
                    count += part.elements_in(here)?;
                    left -= here;
                    if left == 0 {
                        break;
                    }
                }
                count
            }
        };
        Some(before + inside)
    }

    /// Bytes of the first `elements` basic elements (of endless repetitions); `None` if there are none or too many.
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        if self.elements == 0 {
            return (elements == 0).then_some(0);
        }
        let (whole, rest) = (elements / self.elements, elements % self.elements);
        let before = whole.checked_mul(self.bytes)?;
        let inside = match &self.kind {
            Kind::Units(unit) => rest * unit.size(),
            Kind::Loop(body) => body.bytes_of(rest)?,
            Kind::Sequence(parts) => {
                let (mut left, mut bytes) = (rest, 0);
                for part in parts {
                    let here = left.min(part.elements);
                    bytes += part.bytes_of(here)?;
                    left -= here;
                }
                bytes
            }
        };
        before.checked_add(inside)
    }

    /// Call `f(unit, number)` for each group of equal basic elements in order, until it returns false.
    pub fn visit(&self, f: &mut dyn FnMut(Unit, u64) -> bool) -> bool {
        match &self.kind {
            Kind::Units(unit) => f(*unit, self.elements),
            Kind::Loop(body) => (0..self.bytes / body.bytes).all(|_| body.visit(f)),
            Kind::Sequence(parts) => parts.iter().all(|part| part.visit(f)),
        }
    }

    /// Sum of `f` over the basic elements, without visiting repetitions one by one.
    pub fn total(&self, f: &dyn Fn(Unit) -> u64) -> u64 {
        match &self.kind {
            Kind::Units(unit) => self.elements.saturating_mul(f(*unit)),
            Kind::Loop(body) => (self.bytes / body.bytes).saturating_mul(body.total(f)),
            Kind::Sequence(parts) => parts.iter().fold(0, |n, part| n.saturating_add(part.total(f))),
        }
    }
}
