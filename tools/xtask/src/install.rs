//! Copy what `build` made below a prefix.

use crate::Result;
use crate::build::{FAMILIES, PROGRAMS, build};
use crate::place::{release, top};
use crate::shell::{cargo, copy, create_dir, run};
use std::os::unix::fs::symlink;
use std::path::Path;

pub fn install(prefix: &Path) -> Result<()> {
    build()?;
    let bin = prefix.join("bin");
    create_dir(&bin)?;
    for program in PROGRAMS {
        copy(&release().join(program), &bin.join(program))?;
    }
    for family in FAMILIES {
        let dir = prefix.join("lib/vmpi").join(family.directory);
        create_dir(&dir)?;
        for name in family.thin.iter().chain([&family.soname]) {
            copy(&release().join("vmpi").join(family.directory).join(name), &dir.join(name))?;
        }
    }
    // The names that scripts expect, in a directory of their own: on PATH only by the user's choice.
    let names = prefix.join("lib/vmpi/bin");
    create_dir(&names)?;
    for name in ["mpirun", "mpiexec"] {
        let link = names.join(name);
        let _ = std::fs::remove_file(&link);
        symlink("../../../bin/vmpirun", &link).map_err(|e| format!("cannot link {}: {e}", link.display()))?;
    }
    let share = prefix.join("share");
    let doc = share.join("doc/vmpi");
    create_dir(&doc)?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&top().join(name), &doc.join(name))?;
    }
    // A run of its own, because only these pages need the tools' tables compiled into xtask.
    run(cargo().args(["run", "--quiet", "--package", "xtask", "--features", "manual", "--", "manual"]).arg(&share))?;
    eprintln!("installed below {}; {} has mpirun and mpiexec", prefix.display(), names.display());
    Ok(())
}
