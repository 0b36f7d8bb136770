//! MPICH's test suite for the second tier: Debian's source package, unpacked and built once in target/mpich-suite against Debian's MPICH. The tests
//! (`tests/tests/mpich_suite.rs`) run it; nothing is installed.

use crate::Result;
use crate::place::target;
use crate::shell::{command, create_dir, output, run, write};
use std::fs;
use std::path::Path;

const PACKAGE: &str = "mpich";
const VERSION: &str = "4.0.2-3";
/// The one file of the source package that is used, and what it must be: apt checks the signature, this that it is the same as ever.
const ARCHIVE: &str = "mpich_4.0.2.orig.tar.xz";
const SHA256: &str = "b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860";
const SUITE: &str = "mpich-4.0.2/test/mpi";
/// A list of apt's own: where sources come from is not the system's business.
const SOURCES: &str = "\
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
";
const COMPILERS: &[&str] = &["MPICC=mpicc.mpich", "MPICXX=mpicxx.mpich", "MPIF77=mpif77.mpich", "MPIFC=mpif90.mpich"];
const OPTIONS: &[&str] =
    &["MPIEXEC=mpirun.mpich", "--enable-ft-tests", "--enable-fortran=all", "--enable-threads=multiple"];
/// The suite's configure builds the tests of mpi_f08 only as a part of MPICH's own build, because it does not look whether the compilers have the
/// module (it says so itself); Debian's do.
const ONLY_WITHIN_MPICH: &str = r#"test "$enable_f08" = "yes" -a "$FROM_MPICH" = "yes""#;
const WITHOUT: &str = r#"test "$enable_f08" = "yes""#;

/// Fetch and build it, if that has not been done.
pub fn prepare() -> Result<()> {
    let dir = target().join("mpich-suite");
    let stamp = dir.join("made.txt");
    let mpich = output(command("dpkg-query").args(["-W", "-f=${Version}", "libmpich-dev"]))?;
    let wanted = format!("{SHA256}\n{COMPILERS:?} {OPTIONS:?}\nlibmpich-dev {mpich}\n");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    create_dir(&dir)?;
    fetch(&dir)?;
    let build = dir.join("build");
    for old in [dir.join("mpich-4.0.2"), build.clone()] {
        let _ = fs::remove_dir_all(old);
    }
    run(command("tar").arg("-xJf").arg(dir.join(ARCHIVE)).arg("-C").arg(&dir).arg(SUITE))?;
    create_dir(&build)?;
    let script = dir.join(SUITE).join("configure");
    let text = fs::read_to_string(&script).map_err(|e| format!("{}: {e}", script.display()))?;
    if !text.contains(ONLY_WITHIN_MPICH) {
        return Err(format!("{} does not decide about mpi_f08 as it did", script.display()));
    }
    write(&script, &text.replace(ONLY_WITHIN_MPICH, WITHOUT))?;
    run(command(&script)
        .current_dir(&build)
        .args(["--quiet", "--disable-dependency-tracking"])
        .args(COMPILERS)
        .args(OPTIONS))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let make = || {
        let mut make = command("make");
        make.current_dir(&build).args(["--silent", &format!("-j{jobs}")]);
        make
    };
    run(&mut make())?;
    // No part of the rest. One program of these is not C (io/c2f902cio.c lacks a variable), so make goes on; what is missing the tests will tell.
    if let Err(why) = run(make().args(["--keep-going", "-C", "f08"])) {
        eprintln!("{why}: as expected");
    }
    write(&stamp, &wanted)
}

/// The archive, checked, in `dir`.
fn fetch(dir: &Path) -> Result<()> {
    if is_whole(dir) {
        return Ok(());
    }
    let (sources, lists) = (dir.join("debian.sources"), dir.join("lists"));
    write(&sources, SOURCES)?;
    create_dir(&lists.join("partial"))?;
    let apt = |arguments: &[&str]| {
        let mut apt = command("apt-get");
        apt.current_dir(dir).args(["-qq", "-o", "APT::Sandbox::User=root"]);
        apt.arg("-o").arg(format!("Dir::Etc::sourcelist={}", sources.display()));
        apt.args(["-o", "Dir::Etc::sourceparts=-", "-o"]).arg(format!("Dir::State::lists={}", lists.display()));
        run(apt.args(arguments))
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", &format!("{PACKAGE}={VERSION}")])?;
    let _ = fs::remove_dir_all(&lists);
    if is_whole(dir) {
        Ok(())
    } else {
        Err(format!("{ARCHIVE} is not the file that it was: its SHA-256 is not {SHA256}"))
    }
}

fn is_whole(dir: &Path) -> bool {
    let sum = output(command("sha256sum").arg(dir.join(ARCHIVE)));
    sum.is_ok_and(|sum| sum.split_whitespace().next() == Some(SHA256))
}
