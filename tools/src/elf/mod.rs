//! Which MPI a program was built for, read from its ELF file and its libraries' as ld.so would find them.

mod closure;
mod image;
mod search;
mod soname;

pub use closure::{Closure, Library, closure};
pub use image::{Image, ImageError};
pub use search::Search;
pub use soname::{Face, Soname, of_soname};
