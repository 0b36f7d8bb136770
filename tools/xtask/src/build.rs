//! Build everything; lay out target/release as an installation.
//!
//! A face is one shared object under the soname that the real library's file has. The other sonames of its family are thin:
//! empty objects that depend on it, so that however many of them a program needs, the code is loaded once. Debian's own
//! libmpi_usempif08.so.40 needs no copy: it holds only wrappers, and finds its symbols in the thin libmpi_mpifh.so.40.

use crate::Result;
use crate::place::release;
use crate::shell::{cargo, command, copy, create_dir, output, run};
use std::path::Path;

/// A face: the directory, cargo's file, the soname of the whole, the sonames of the thin ones.
pub struct Family {
    pub directory: &'static str,
    pub file: &'static str,
    pub soname: &'static str,
    pub thin: &'static [&'static str],
}

/// Every soname that programs built with these MPIs name. (Open MPI's wrappers of the C++ language, its libopen-rte and
/// libopen-pal are named by no program of Debian's, and hold other symbols than MPI's: they stay the system's.)
pub const FAMILIES: &[Family] = &[
    Family {
        directory: "openmpi",
        file: "libvmpi_openmpi.so",
        soname: "libmpi.so.40",
        thin: &["libmpi_mpifh.so.40", "libmpi_usempi_ignore_tkr.so.40"],
    },
    Family {
        directory: "mpich",
        file: "libvmpi_mpich.so",
        soname: "libmpich.so.12",
        thin: &["libmpi.so.12", "libmpichfort.so.12", "libmpifort.so.12"],
    },
    Family {
        directory: "standard",
        file: "libvmpi_standard.so",
        soname: "libmpi_abi.so.1",
        thin: &["libmpi_abi.so.0", "libmpifort_abi.so.1", "libmpifort_abi.so.0"],
    },
];

/// Programs that belong beside each other.
pub const PROGRAMS: &[&str] = &["vmpirun", "vmpictl", "vmpid"];

pub fn build() -> Result<()> {
    run(cargo().args(["build", "--release", "--workspace"]))?;
    for program in PROGRAMS {
        if !release().join(program).is_file() {
            return Err(format!("cargo built no {program}"));
        }
    }
    FAMILIES.iter().try_for_each(|family| lay_out(family, &release().join("vmpi").join(family.directory)))
}

fn lay_out(family: &Family, dir: &Path) -> Result<()> {
    let built = release().join(family.file);
    let soname = soname_of(&built)?;
    if soname.as_deref() != Some(family.soname) {
        let found = soname.unwrap_or_else(|| "none".into());
        return Err(format!("{} must have the soname {}, not {found}", built.display(), family.soname));
    }
    create_dir(dir)?;
    let whole = dir.join(family.soname);
    copy(&built, &whole)?;
    for name in family.thin {
        let mut link = command("cc");
        link.args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed"]);
        link.arg(&whole).arg(format!("-Wl,-soname,{name}")).arg("-Wl,-rpath,$ORIGIN").arg("-o").arg(dir.join(name));
        output(&mut link)?;
    }
    Ok(())
}

/// DT_SONAME of a shared object, as binutils print it.
fn soname_of(file: &Path) -> Result<Option<String>> {
    let dynamic = output(command("readelf").arg("-dW").arg(file))?;
    let line = dynamic.lines().find(|line| line.contains("(SONAME)"));
    Ok(line.and_then(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_string())))
}
