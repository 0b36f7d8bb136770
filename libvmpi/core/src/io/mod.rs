//! Files (MPI 4.1 chapter 14). (Floor 10.)
//!
//! Reading order: `file` (what an open file is; open, close, delete), `amode`, `errno`, `hints`, `agree` (what all ranks
//! must be at one about), `view` and `representation` (which bytes of the file, and what they look like), `memory` (the
//! program's buffer), `transfer` and `lock` (the kernel's calls), `access` (reads and writes as MPI has them),
//! `two_phase` with `domains` and `pieces` (collective ones), `shared_pointer`, `manage` (size, view, sync, ...).
//!
//! An independent access is done by the time its call returns, also that of MPI_File_iread and its kin: then the request
//! is complete from the start. (The page cache takes writes at memory speed; a helper thread or io_uring would have to
//! hold a core that another rank can use.) Collective nonblocking and split accesses go on in any MPI call.

pub mod access;
mod agree;
mod amode;
mod domains;
pub mod errno;
pub mod file;
mod hints;
mod lock;
pub mod manage;
mod memory;
mod pieces;
pub mod representation;
mod shared_pointer;
mod transfer;
mod two_phase;
pub mod view;

#[cfg(test)]
mod tests;

pub use access::{Place, Way};
pub use file::{File, close, delete, get, open};
pub use memory::Buffer;
