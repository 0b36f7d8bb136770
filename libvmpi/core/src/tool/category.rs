//! Categories: the variables, ordered (MPI 4.1 section 15.3.9). They never change.

use super::types::{Failure, Result};
use super::{cvar, event, pvar};
use crate::consts;
use crate::tool::types;

/// A category.
pub struct Category {
    pub name: &'static str,
    pub description: &'static str,
    /// Indices of the categories in it.
    pub categories: &'static [usize],
}

/// All of them; the index is MPI's.
pub static ALL: &[Category] = &[
    Category { name: "vmpi", description: "The virtualizing runtime.", categories: &[1, 2, 3] },
    Category { name: "vmpi_scheduling", description: "Cores, and the ranks that share them.", categories: &[] },
    Category { name: "vmpi_messages", description: "Messages, and the memory they use.", categories: &[] },
    Category {
        name: "vmpi_monitoring",
        description: "What went from this rank to each other, counted while a handle is started.",
        categories: &[],
    },
];

impl Category {
    /// Indices of its control variables.
    pub fn cvars(&self) -> Vec<usize> {
        (0..cvar::ALL.len()).filter(|&index| cvar::ALL[index].category == self.name).collect()
    }

    /// Indices of its types of events.
    pub fn events(&self) -> Vec<usize> {
        (0..event::ALL.len()).filter(|&index| event::ALL[index].category == self.name).collect()
    }

    /// Indices of its performance variables.
    pub fn pvars(&self) -> Vec<usize> {
        (0..pvar::ALL.len()).filter(|&index| pvar::ALL[index].category == self.name).collect()
    }
}

/// The category with this index.
///
/// # Errors
/// `T_ERR_INVALID_INDEX`.
pub fn get(index: i32) -> Result<&'static Category> {
    usize::try_from(index).ok().and_then(|index| ALL.get(index)).ok_or(Failure(consts::T_ERR_INVALID_INDEX))
}

/// MPI_T_category_get_index.
///
/// # Errors
/// `T_ERR_INVALID_NAME`.
pub fn index_of(name: &[u8]) -> Result<usize> {
    types::index_of(ALL.iter().map(|category| category.name), name)
}
