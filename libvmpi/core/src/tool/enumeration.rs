//! Names for the values of variables.

use super::types::{Failure, Result};
use crate::consts;
use vmpi_shared::control::{Check, Overlap, Policy};
use vmpi_shared::sched::RunState;

/// A list of values with names.
pub struct Enumeration {
    pub name: &'static str,
    pub items: &'static [(i32, &'static str)],
}

pub const SWITCH: usize = 0;
pub const POLICY: usize = 1;
pub const ON_BLOCK: usize = 2;
pub const WTIME: usize = 3;
pub const RUN_STATE: usize = 4;
pub const OVERLAP: usize = 5;
pub const CHECK: usize = 6;

const fn policies() -> [(i32, &'static str); Policy::NAMES.len()] {
    let mut items = [(0, ""); Policy::NAMES.len()];
    let mut at = 0;
    while at < items.len() {
        items[at] = (Policy::NAMES[at].1 as i32, Policy::NAMES[at].0);
        at += 1;
    }
    items
}

static POLICIES: [(i32, &str); Policy::NAMES.len()] = policies();

/// All of them, by index.
pub static ALL: &[Enumeration] = &[
    Enumeration { name: "switch", items: &[(0, "off"), (1, "on")] },
    Enumeration { name: "policy", items: &POLICIES },
    Enumeration { name: "on_block", items: &[(0, "release"), (1, "keep")] },
    Enumeration { name: "wtime", items: &[(0, "wall"), (1, "rank")] },
    Enumeration {
        name: "run_state",
        items: &[
            (RunState::Init as i32, "INIT"),
            (RunState::Running as i32, "RUNNING"),
            (RunState::Suspended as i32, "SUSPENDED"),
            (RunState::Tended as i32, "TENDED"),
            (RunState::Ready as i32, "READY"),
            (RunState::Away as i32, "AWAY"),
            (RunState::Finalized as i32, "FINALIZED"),
            (RunState::Dead as i32, "DEAD"),
            (RunState::Adopted as i32, "ADOPTED"),
        ],
    },
    Enumeration {
        name: "overlap",
        items: &[(Overlap::Off as i32, "off"), (Overlap::Auto as i32, "auto"), (Overlap::On as i32, "on")],
    },
    Enumeration {
        name: "check",
        items: &[(Check::Off as i32, "off"), (Check::Cheap as i32, "cheap"), (Check::Full as i32, "full")],
    },
];

/// The enumeration with this index.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn get(index: usize) -> Result<&'static Enumeration> {
    ALL.get(index).ok_or(Failure(consts::T_ERR_INVALID_HANDLE))
}
