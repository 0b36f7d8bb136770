//! Where headers, modules and libraries are: in an installation, or beside the binaries of a build.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// mpi.h, vmpi.h, mpif.h.
    pub include: PathBuf,
    /// gfortran's compiled modules.
    pub modules: PathBuf,
    /// libmpi_abi.so.
    pub libraries: PathBuf,
}

impl Layout {
    /// `PREFIX/include/vmpi` and `PREFIX/lib/vmpi` for `PREFIX/bin`, or `vmpi/...` beside the executable.
    ///
    /// # Errors
    /// 125: neither is there.
    pub fn beside(exe_dir: &Path) -> Result<Layout, Failure> {
        let prefix = exe_dir.parent().unwrap_or(exe_dir);
        let build = exe_dir.join("vmpi");
        let installed = Layout {
            include: prefix.join("include/vmpi"),
            modules: prefix.join("lib/vmpi/fortran"),
            libraries: prefix.join("lib/vmpi/standard"),
        };
        let built = Layout {
            include: build.join("include"),
            modules: build.join("fortran"),
            libraries: build.join("standard"),
        };
        let complete = |layout: &Layout| layout.include.join("mpi.h").is_file() && layout.libraries.is_dir();
        match [built, installed.clone()].into_iter().find(complete) {
            Some(layout) => Ok(layout),
            None => Err(Failure::own(format!(
                "vmpi's mpi.h and libmpi_abi.so are neither in {} and {} nor in {}; run `cargo xtask install` or `cargo xtask build`",
                installed.include.display(),
                installed.libraries.display(),
                build.display()
            ))),
        }
    }
}
