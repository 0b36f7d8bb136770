//! Do blocking calls return before their messages are over? (`vmpirun --overlap`, `VMPI_OVERLAP`)

use super::env;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Overlap {
    Off,
    /// Where it has been found to pay.
    Auto,
    /// Whenever they can.
    On,
}

impl Overlap {
    /// All of them, by the names that users know.
    pub const NAMES: [(&'static str, Overlap); 3] =
        [("auto", Overlap::Auto), ("on", Overlap::On), ("off", Overlap::Off)];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, overlap)| *overlap == self).map_or("", |(name, _)| name)
    }

    pub fn of_word(word: u32) -> Overlap {
        Self::NAMES.iter().find(|(_, overlap)| *overlap as u32 == word).map_or(Overlap::Off, |(_, overlap)| *overlap)
    }

    /// What the environment of this process says.
    ///
    /// # Errors
    /// A sentence about a word that is none of the names.
    pub fn of_environment() -> Result<Overlap, String> {
        let Some(word) = std::env::var_os(env::OVERLAP) else { return Ok(Overlap::Off) };
        let known = Self::NAMES.iter().find(|(name, _)| word == *name);
        known.map(|(_, overlap)| *overlap).ok_or_else(|| {
            format!("{} is `{}`, which is not one of auto, on, off", env::OVERLAP, word.to_string_lossy())
        })
    }
}
