//! What a message is made of, in a few bits: so that both ends can compare it.
//!
//! Numbers are told by how they are represented (integer or floating point, and size), which is less than the standard demands: MPI_INT and MPI_UNSIGNED, or a complex number and two real ones, are
//! not told apart. Characters, MPI_BYTE and MPI_PACKED go with everything.

use crate::datatype::Type;
use crate::datatype::basic::{Form, Unit};

/// Nothing is known of it.
pub(crate) const ANY: u16 = 0;
/// Not one kind of number: a hash.
const MIXED: u16 = 0x4000;
/// Groups of equal numbers that a hash is made of.
const MOST_GROUPS: u32 = 256;

/// The kind of a number; `ANY` for what may be anything.
fn class(unit: Unit) -> u16 {
    let form = match unit.form {
        Form::Raw => return ANY,
        Form::Integer | Form::Long | Form::UnsignedLong | Form::Wide => 1,
        Form::Float => 2,
        Form::Extended => 3,
    };
    form << 8 | u16::from(unit.bytes)
}

/// The first `bytes` bytes of elements of `ty`.
pub(crate) fn of(ty: &Type, bytes: u64) -> u16 {
    let signature = ty.signature();
    if bytes == 0 || signature.bytes == 0 {
        return ANY;
    }
    if let Some((unit, _)) = signature.uniform() {
        return class(unit);
    }
    let mut groups = Groups { left: bytes, last: (ANY, 0), hash: 0xcbf2_9ce4, count: 0, wild: false };
    while groups.left > 0 && signature.visit(&mut |unit, number| groups.add(class(unit), unit.size() * number)) {}
    groups.end()
}

struct Groups {
    left: u64,
    /// The group that goes on: its class, and bytes.
    last: (u16, u64),
    hash: u32,
    count: u32,
    wild: bool,
}

impl Groups {
    fn add(&mut self, class: u16, bytes: u64) -> bool {
        let here = bytes.min(self.left);
        self.left -= here;
        self.wild |= class == ANY;
        if class == self.last.0 {
            self.last.1 += here;
        } else {
            self.close();
            self.last = (class, here);
        }
        if self.wild || self.count >= MOST_GROUPS {
            self.left = 0;
        }
        self.left > 0
    }

    fn close(&mut self) {
        if self.last.1 > 0 && self.count < MOST_GROUPS {
            self.count += 1;
            for part in [u64::from(self.last.0), self.last.1] {
                self.hash = (self.hash ^ (part ^ part >> 32) as u32).wrapping_mul(0x0100_0193);
            }
        }
    }

    fn end(mut self) -> u16 {
        if self.wild {
            return ANY;
        }
        if self.count == 0 {
            return self.last.0;
        }
        self.close();
        MIXED | ((self.hash ^ self.hash >> 14) as u16 & (MIXED - 1))
    }
}

/// May data of one kind be received as the other?
pub(crate) fn fit(a: u16, b: u16) -> bool {
    a == b || a == ANY || b == ANY
}

/// In words.
pub(crate) fn words(code: u16) -> String {
    let bytes = code & 0xff;
    match (code, code >> 8) {
        (ANY, _) => "bytes".into(),
        (MIXED.., _) => "numbers of several kinds".into(),
        (_, 1) => format!("{bytes}-byte integers"),
        (_, 2) => format!("{bytes}-byte floating-point numbers"),
        _ => "extended floating-point numbers".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::dt;
    use crate::datatype::{self, Recipe, Rules};
    use crate::handle::Datatype;

    fn get(handle: Datatype) -> std::rc::Rc<Type> {
        datatype::get(handle).unwrap()
    }

    fn structure(parts: &[(Datatype, i64, i64)]) -> std::rc::Rc<Type> {
        let recipe = Recipe::Struct {
            blocklengths: parts.iter().map(|part| part.1).collect(),
            displacements: parts.iter().map(|part| part.2).collect(),
            children: parts.iter().map(|part| get(part.0)).collect(),
        };
        get(datatype::create(recipe, Rules::Standard, false).unwrap())
    }

    #[test]
    fn equal_sequences_have_equal_codes_however_they_are_made() {
        let pair = structure(&[(dt::INT, 1, 0), (dt::DOUBLE, 1, 8)]);
        let twice = structure(&[(dt::INT, 1, 0), (dt::DOUBLE, 1, 8), (dt::INT, 1, 16), (dt::DOUBLE, 1, 24)]);
        assert_eq!(of(&pair, 24), of(&twice, 24));
        assert!(fit(of(&pair, 12), of(&twice, 12)));
        assert!(!fit(of(&pair, 24), of(&get(dt::INT), 24)));
        // Only the first integer has come.
        assert_eq!(of(&pair, 4), of(&get(dt::INT), 4));
        let order = structure(&[(dt::DOUBLE, 1, 0), (dt::INT, 1, 8)]);
        assert!(!fit(of(&pair, 12), of(&order, 12)));
    }

    #[test]
    fn bytes_go_with_everything_and_numbers_with_their_like() {
        let code = |handle: Datatype| of(&get(handle), 64);
        assert!(fit(code(dt::INT), code(dt::INTEGER)) && fit(code(dt::LONG), code(dt::LONG_LONG)));
        assert!(!fit(code(dt::INT), code(dt::FLOAT)) && !fit(code(dt::FLOAT), code(dt::DOUBLE)));
        for handle in [dt::BYTE, dt::PACKED, dt::CHAR] {
            assert!(fit(code(handle), code(dt::DOUBLE)), "{handle:?}");
        }
        assert!(words(code(dt::DOUBLE)).contains("8-byte floating"), "{}", words(code(dt::DOUBLE)));
    }
}
