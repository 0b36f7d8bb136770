//! Build everything; lay out target/release as an installation.
//!
//! A face is one shared object under the soname that the real library's file has. The other sonames of its family are thin:
//! empty objects that depend on it, so that however many of them a program needs, the code is loaded once. Debian's own
//! libmpi_usempif08.so.40 needs no copy: it holds only wrappers, and finds its symbols in the thin libmpi_mpifh.so.40.

use crate::Result;
use crate::place::{target, top};
use crate::shell::{cargo, command, copy, create_dir, link, output, run, which};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A face: the directory, cargo's file, the soname of the whole, the sonames of the thin ones, and the names without a
/// version: by those the linker finds the standard ABI's (what is built here is built for that), and `dlopen` the others'
/// (Rmpi opens `libmpi.so`; the system's would be a second MPI in the rank).
pub struct Family {
    pub directory: &'static str,
    pub file: &'static str,
    pub soname: &'static str,
    pub thin: &'static [&'static str],
    pub links: &'static [(&'static str, &'static str)],
}

/// Every soname that programs built with these MPIs name, but the libraries of the C++ bindings (libmpi_cxx.so.40,
/// libmpichcxx.so.12): those stay the system's, on top of ours (`cxx.rs` of each face).
pub const FAMILIES: &[Family] = &[
    Family {
        directory: "openmpi",
        file: "libvmpi_openmpi.so",
        soname: "libmpi.so.40",
        thin: &["libmpi_mpifh.so.40", "libmpi_usempi_ignore_tkr.so.40"],
        links: &[("libmpi.so", "libmpi.so.40")],
    },
    Family {
        directory: "mpich",
        file: "libvmpi_mpich.so",
        soname: "libmpich.so.12",
        thin: &["libmpi.so.12", "libmpichfort.so.12", "libmpifort.so.12"],
        links: &[("libmpi.so", "libmpi.so.12"), ("libmpich.so", "libmpich.so.12")],
    },
    Family {
        directory: "standard",
        file: "libvmpi_standard.so",
        soname: "libmpi_abi.so.1",
        thin: &["libmpi_abi.so.0", "libmpifort_abi.so.1", "libmpifort_abi.so.0"],
        links: &[("libmpi_abi.so", "libmpi_abi.so.1"), ("libmpifort_abi.so", "libmpifort_abi.so.1")],
    },
];

/// Programs that belong beside each other.
pub const PROGRAMS: &[&str] = &["vmpirun", "vmpid"];

/// Other names of vmpirun, by which it is something else.
pub const NAMES: &[&str] = &["vmpictl", "vmpicc", "vmpicxx", "vmpifort"];

/// In libvmpi/include.
pub const HEADERS: &[&str] = &["mpi.h", "vmpi.h"];

/// The auditor of ld.so, which finds the faces beside itself.
pub const AUDITOR: &str = "libvmpi_audit.so";

/// What vmpid loads where there are RDMA devices; beside it, or in the installation's lib/vmpi.
pub const VERBS: &str = "libvmpi_verbs.so";

pub fn build() -> Result<()> {
    build_as(&Manner { target: target(), environment: Vec::new() })
}

/// Where cargo builds, and with which variables besides.
pub struct Manner {
    pub target: PathBuf,
    pub environment: Vec<(&'static str, OsString)>,
}

impl Manner {
    /// What is installed and given away says from which commit it is; while one works, each commit would build anew.
    pub fn with_commit() -> Manner {
        let environment = commit().into_iter().map(|commit| ("VMPI_COMMIT", commit.into())).collect();
        Manner { target: target(), environment }
    }

    /// Where the built files lie.
    pub fn release(&self) -> PathBuf {
        self.target.join("release")
    }
}

/// The commit that is checked out, `+` if files differ from it; `None`: not a git checkout, or no git.
pub fn commit() -> Option<String> {
    let git = |args: &[&str]| output(command("git").args(args)).ok().map(|text| text.trim().to_owned());
    // A tarball may lie in somebody else's repository.
    let own = git(&["rev-parse", "--show-prefix"])?.is_empty();
    let id = git(&["rev-parse", "--short=12", "HEAD"]).filter(|id| own && !id.is_empty())?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if changed { id + "+" } else { id })
}

/// Build as told, into `manner.release()`.
pub fn build_as(manner: &Manner) -> Result<()> {
    let release = manner.release();
    let mut build = cargo();
    build.env("CARGO_TARGET_DIR", &manner.target).envs(manner.environment.iter().map(|(name, value)| (name, value)));
    // These two run as they are built for development, if at all.
    build.args(["build", "--release", "--workspace", "--exclude", "xtask", "--exclude", "vmpi-tests"]);
    run(&mut build)?;
    for program in PROGRAMS {
        if !release.join(program).is_file() {
            return Err(format!("cargo built no {program}"));
        }
    }
    NAMES.iter().try_for_each(|name| link(Path::new("vmpirun"), &release.join(name)))?;
    let include = release.join("vmpi/include");
    create_dir(&include)?;
    HEADERS.iter().try_for_each(|name| copy(&top().join("libvmpi/include").join(name), &include.join(name)))?;
    FAMILIES.iter().try_for_each(|family| lay_out(family, &release, &release.join("vmpi").join(family.directory)))?;
    copy(&release.join(AUDITOR), &release.join("vmpi").join(AUDITOR))?;
    fortran_modules(&release)
}

/// mpif.h and the modules, in the form of this machine's gfortran.
fn fortran_modules(release: &Path) -> Result<()> {
    if which("gfortran").is_none() {
        eprintln!(
            "there is no gfortran: vmpifort gets no modules (`vmpifort -modules DIR` makes them with any gfortran)"
        );
        return Ok(());
    }
    run(command(release.join("vmpifort")).arg("-modules").arg(release.join("vmpi/fortran")))
}

fn lay_out(family: &Family, release: &Path, dir: &Path) -> Result<()> {
    let built = release.join(family.file);
    let soname = soname_of(&built)?;
    if soname.as_deref() != Some(family.soname) {
        let found = soname.unwrap_or_else(|| "none".into());
        return Err(format!("{} must have the soname {}, not {found}", built.display(), family.soname));
    }
    create_dir(dir)?;
    let whole = dir.join(family.soname);
    copy(&built, &whole)?;
    family.thin.iter().try_for_each(|name| thin(&whole, name, &dir.join(name)))?;
    family.links.iter().try_for_each(|(name, file)| link(Path::new(file), &dir.join(name)))
}

/// An empty library that needs `whole`, which lies beside it.
pub fn thin(whole: &Path, soname: &str, file: &Path) -> Result<()> {
    let mut cc = command("cc");
    cc.args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed,--strip-all"]);
    cc.arg(whole).arg(format!("-Wl,-soname,{soname}")).arg("-Wl,-rpath,$ORIGIN").arg("-o").arg(file);
    output(&mut cc).map(drop)
}

/// DT_SONAME of a shared object, as binutils print it.
fn soname_of(file: &Path) -> Result<Option<String>> {
    let dynamic = output(command("readelf").arg("-dW").arg(file))?;
    let line = dynamic.lines().find(|line| line.contains("(SONAME)"));
    Ok(line.and_then(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_string())))
}
