//! Copy what `build` made below a prefix.

use crate::Result;
use crate::build::{AUDITOR, FAMILIES, HEADERS, NAMES, PROGRAMS, VERBS, build};
use crate::place::{release, top};
use crate::shell::{cargo, copy, create_dir, link, run, write};
use std::fs;
use std::path::Path;

/// The names that scripts and CMake expect.
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
    build()?;
    let bin = prefix.join("bin");
    create_dir(&bin)?;
    for program in PROGRAMS {
        copy(&release().join(program), &bin.join(program))?;
    }
    NAMES.iter().try_for_each(|name| link(Path::new("vmpirun"), &bin.join(name)))?;
    for family in FAMILIES {
        let dir = prefix.join("lib/vmpi").join(family.directory);
        create_dir(&dir)?;
        for name in family.thin.iter().chain([&family.soname]) {
            copy(&release().join("vmpi").join(family.directory).join(name), &dir.join(name))?;
        }
        family.links.iter().try_for_each(|(name, file)| link(Path::new(file), &dir.join(name)))?;
    }
    copy(&release().join(AUDITOR), &prefix.join("lib/vmpi").join(AUDITOR))?;
    copy(&release().join(VERBS), &prefix.join("lib/vmpi").join(VERBS))?;
    let include = prefix.join("include/vmpi");
    create_dir(&include)?;
    for name in HEADERS {
        copy(&release().join("vmpi/include").join(name), &include.join(name))?;
    }
    let modules = release().join("vmpi/fortran");
    if modules.is_dir() {
        let installed = prefix.join("lib/vmpi/fortran");
        create_dir(&installed)?;
        for name in ["mpif.h", "mpi.f90", "mpi.mod", "mpi_f08.f90", "mpi_f08.mod"] {
            copy(&modules.join(name), &installed.join(name))?;
        }
    }
    // In a directory of their own: on PATH only by the user's choice.
    let names = prefix.join("lib/vmpi/bin");
    create_dir(&names)?;
    for (name, program) in USUAL_NAMES {
        link(&Path::new("../../../bin").join(program), &names.join(name))?;
    }
    pkg_config(prefix)?;
    let share = prefix.join("share");
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
    run(cargo().args(["run", "--quiet", "--package", "xtask", "--features", "manual", "--", "manual"]).arg(&share))?;
    eprintln!("installed below {}; {} has mpirun, mpiexec, mpicc and so on", prefix.display(), names.display());
    Ok(())
}

/// What `pkg-config vmpi` and `pkg-config vmpi-fort` answer.
fn pkg_config(prefix: &Path) -> Result<()> {
    let prefix = std::path::absolute(prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
    let dir = prefix.join("lib/pkgconfig");
    create_dir(&dir)?;
    let version = env!("CARGO_PKG_VERSION");
    let head = |name: &str, language: &str| {
        format!(
            "prefix={}\nlibdir=${{prefix}}/lib/vmpi/standard\nincludedir=${{prefix}}/include/vmpi\n\n\
             Name: {name}\nDescription: MPI for {language} with the MPI-5 standard ABI (vmpi)\nVersion: {version}\n",
            prefix.display()
        )
    };
    let link = "-L${libdir} -Wl,-rpath,${libdir}";
    let c = format!("Cflags: -I${{includedir}}\nLibs: {link} -lmpi_abi\n");
    let fortran =
        format!("Cflags: -I${{includedir}} -I${{prefix}}/lib/vmpi/fortran\nLibs: {link} -lmpifort_abi -lmpi_abi\n");
    write(&dir.join("vmpi.pc"), &format!("{}{c}", head("vmpi", "C and C++")))?;
    write(&dir.join("vmpi-fort.pc"), &format!("{}{fortran}", head("vmpi-fort", "Fortran")))
}
