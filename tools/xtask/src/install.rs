//! Copy what `build` made below a prefix.

use crate::Result;
use crate::build::{AUDITOR, FAMILIES, HEADERS, Manner, NAMES, PROGRAMS, VERBS, build_as};
use crate::place::top;
use crate::shell::{cargo, copy, create_dir, link, run, write};
use std::fs;
use std::path::Path;

/// Where the names that scripts and CMake expect are.
pub const USUAL_NAMES_IN: &str = "lib/vmpi/bin";

/// mpif.h, and gfortran's modules with their sources.
const MODULES: &[&str] = &["mpif.h", "mpi.f90", "mpi.mod", "mpi_f08.f90", "mpi_f08.mod"];

/// Those names.
const USUAL_NAMES: &[(&str, &str)] = &[
    ("mpirun", "vmpirun"),
    ("mpiexec", "vmpirun"),
    ("mpiexec.hydra", "vmpirun"),
    ("orterun", "vmpirun"),
    ("prterun", "vmpirun"),
    ("mpicc", "vmpicc"),
    ("mpicxx", "vmpicxx"),
    ("mpic++", "vmpicxx"),
    ("mpifort", "vmpifort"),
    ("mpif90", "vmpifort"),
    ("mpif77", "vmpifort"),
];

pub fn install(prefix: &Path) -> Result<()> {
    let manner = Manner::with_commit();
    build_as(&manner)?;
    let absolute = std::path::absolute(prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
    lay_out(&manner.release(), prefix, &absolute.display().to_string())?;
    let names = prefix.join(USUAL_NAMES_IN);
    eprintln!("installed below {}; {} has mpirun, mpiexec, mpicc and so on", prefix.display(), names.display());
    Ok(())
}

/// Copy what lies in `release` below `prefix`; `called`: the prefix as pkg-config is to say it.
pub fn lay_out(release: &Path, prefix: &Path, called: &str) -> Result<()> {
    let bin = prefix.join("bin");
    create_dir(&bin)?;
    for program in PROGRAMS {
        copy(&release.join(program), &bin.join(program))?;
    }
    NAMES.iter().try_for_each(|name| link(Path::new("vmpirun"), &bin.join(name)))?;
    libraries(release, &prefix.join("lib/vmpi"))?;
    let include = prefix.join("include/vmpi");
    create_dir(&include)?;
    for name in HEADERS {
        copy(&release.join("vmpi/include").join(name), &include.join(name))?;
    }
    // In a directory of their own: on PATH only by the user's choice.
    let names = prefix.join(USUAL_NAMES_IN);
    create_dir(&names)?;
    for (name, program) in USUAL_NAMES {
        link(&Path::new("../../../bin").join(program), &names.join(name))?;
    }
    pkg_config(prefix, called)?;
    documents(&prefix.join("share"))
}

fn libraries(release: &Path, lib: &Path) -> Result<()> {
    for family in FAMILIES {
        let dir = lib.join(family.directory);
        create_dir(&dir)?;
        for name in family.thin.iter().chain([&family.soname]) {
            copy(&release.join("vmpi").join(family.directory).join(name), &dir.join(name))?;
        }
        family.links.iter().try_for_each(|(name, file)| link(Path::new(file), &dir.join(name)))?;
    }
    copy(&release.join(AUDITOR), &lib.join(AUDITOR))?;
    copy(&release.join(VERBS), &lib.join(VERBS))?;
    let modules = release.join("vmpi/fortran");
    if !modules.is_dir() {
        return Ok(());
    }
    let installed = lib.join("fortran");
    create_dir(&installed)?;
    MODULES.iter().try_for_each(|name| copy(&modules.join(name), &installed.join(name)))
}

fn documents(share: &Path) -> Result<()> {
    let doc = share.join("doc/vmpi");
    create_dir(&doc)?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&top().join(name), &doc.join(name))?;
    }
    for dir in ["docs", "docs/guide/src", "examples"] {
        create_dir(&doc.join(dir))?;
        let entries = fs::read_dir(top().join(dir)).map_err(|e| format!("{dir}: {e}"))?;
        let mut files = entries.flatten().filter(|entry| entry.path().is_file());
        files.try_for_each(|file| copy(&file.path(), &doc.join(dir).join(file.file_name())))?;
    }
    // A run of its own, because only these pages need the tools' tables compiled into xtask.
    run(cargo().args(["run", "--quiet", "--package", "xtask", "--features", "manual", "--", "manual"]).arg(share))
}

/// What `pkg-config vmpi` and `pkg-config vmpi-fort` answer.
fn pkg_config(prefix: &Path, called: &str) -> Result<()> {
    let dir = prefix.join("lib/pkgconfig");
    create_dir(&dir)?;
    let version = env!("CARGO_PKG_VERSION");
    let head = |name: &str, language: &str| {
        format!(
            "prefix={called}\nlibdir=${{prefix}}/lib/vmpi/standard\nincludedir=${{prefix}}/include/vmpi\n\n\
             Name: {name}\nDescription: MPI for {language} with the MPI-5 standard ABI (vmpi)\nVersion: {version}\n"
        )
    };
    let link = "-L${libdir} -Wl,-rpath,${libdir}";
    let c = format!("Cflags: -I${{includedir}}\nLibs: {link} -lmpi_abi\n");
    let fortran =
        format!("Cflags: -I${{includedir}} -I${{prefix}}/lib/vmpi/fortran\nLibs: {link} -lmpifort_abi -lmpi_abi\n");
    write(&dir.join("vmpi.pc"), &format!("{}{c}", head("vmpi", "C and C++")))?;
    write(&dir.join("vmpi-fort.pc"), &format!("{}{fortran}", head("vmpi-fort", "Fortran")))
}
