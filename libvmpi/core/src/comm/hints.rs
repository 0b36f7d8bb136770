//! The hints of a communicator (MPI 4.1 section 7.4.4): assertions of the program, each true or false.
//!
//! All of them are kept and told, and nothing is made of them: matching is exact without them.

use crate::info::{self, Entries};

/// MPI's assertions. MPI_Comm_get_info tells all of them, and no key that is not known, as MPICH and Open MPI.
const KNOWN: [&str; 5] = [
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// What is set of each.
#[derive(Clone, Default)]
pub struct Hints([bool; KNOWN.len()]);

impl Hints {
    /// Take what `entries` say of them; a value that says neither is ignored.
    pub fn set(&mut self, entries: &Entries) {
        for (known, hint) in KNOWN.iter().zip(&mut self.0) {
            match entries.get(known.as_bytes()) {
                Some(b"true" | b"1") => *hint = true,
                Some(b"false" | b"0") => *hint = false,
                _ => {}
            }
        }
    }

    /// All of them.
    pub fn entries(&self) -> Entries {
        let mut entries = Entries::default();
        for (known, hint) in KNOWN.iter().zip(self.0) {
            entries.set(known.as_bytes(), if hint { b"true" } else { b"false" });
        }
        entries.set(info::ALLOC_KINDS.0, info::ALLOC_KINDS.1);
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_ignored() {
        let mut hints = Hints::default();
        let mut asked = Entries::default();
        for (key, value) in [
            ("mpi_assert_no_any_tag", "true"),
            ("mpi_assert_exact_length", "perhaps"),
            ("mpi_assert_allow_overtaking", "1"),
            ("mpi_assert_strict_persistent_collective_ordering", "true"),
            ("tooth_fairy", "true"),
        ] {
            asked.set(key.as_bytes(), value.as_bytes());
        }
        hints.set(&asked);
        let told = hints.entries();
        assert_eq!(told.len(), KNOWN.len() + 1);
        assert_eq!(told.get(info::ALLOC_KINDS.0), Some(info::ALLOC_KINDS.1));
        assert_eq!(told.get(b"mpi_assert_no_any_tag"), Some(&b"true"[..]));
        assert_eq!(told.get(b"mpi_assert_strict_persistent_collective_ordering"), Some(&b"true"[..]));
        assert_eq!(told.get(b"mpi_assert_no_any_source"), Some(&b"false"[..]));
        assert_eq!(told.get(b"mpi_assert_exact_length"), Some(&b"false"[..]));
        asked.set(b"mpi_assert_no_any_tag", b"false");
        hints.set(&asked);
        assert_eq!(hints.entries().get(b"mpi_assert_no_any_tag"), Some(&b"false"[..]));
    }
}
