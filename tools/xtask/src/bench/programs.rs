//! The programs that are run, compiled once for each ABI.

use super::system::Abi;
use crate::Result;
use crate::place::{target, top, venv_mpich};
use crate::shell::{cargo, command, create_dir, output};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// A C file of tests/programs, without its ending.
    C(&'static str),
    /// A file of a Debian package.
    Installed(&'static str),
    /// The scheduler's own clock updates: a binary of vmpi-shared that no installation has.
    ClockUpdates,
}

/// What has been compiled, or why it could not be.
#[derive(Default)]
pub struct Programs {
    built: BTreeMap<(Program, Abi), Result<PathBuf>>,
}

impl Program {
    /// Why it cannot be run on this machine, if it cannot.
    pub fn absent(self) -> Option<String> {
        let Program::Installed(path) = self else { return None };
        (!Path::new(path).exists()).then(|| format!("{path} is not installed"))
    }
}

impl Programs {
    /// The executable file; compiled at the first call.
    ///
    /// # Errors
    /// What the compiler said; again at each call, without another try.
    pub fn get(&mut self, program: Program, abi: Abi) -> Result<PathBuf> {
        self.built.entry((program, abi)).or_insert_with(|| build(program, abi)).clone()
    }
}

fn build(program: Program, abi: Abi) -> Result<PathBuf> {
    match program {
        Program::C(name) => compile(name, abi),
        Program::Installed(path) => Ok(path.into()),
        Program::ClockUpdates => {
            let binary = ["--package", "vmpi-shared", "--features", "measure", "--bin", "clock_updates"];
            output(cargo().args(["build", "--quiet", "--release"]).args(binary))?;
            Ok(target().join("release/clock_updates"))
        }
    }
}

fn compile(name: &str, abi: Abi) -> Result<PathBuf> {
    let dir = target().join("bench/programs");
    create_dir(&dir)?;
    let (mut compiler, suffix): (Command, _) = match abi {
        Abi::OpenMpi => (command("mpicc.openmpi"), "openmpi"),
        Abi::Mpich => (command("mpicc.mpich"), "mpich"),
        Abi::Mpich5 => (command(venv_mpich().join("bin/mpicc")), "mpich5"),
        Abi::Smpi => (command("smpicc"), "smpi"),
        Abi::None => (command("cc"), "none"),
    };
    let binary = dir.join(format!("{}.{suffix}", name.replace('/', "-")));
    let source = top().join("tests/programs").join(format!("{name}.c"));
    let threads = std::fs::read_to_string(&source).is_ok_and(|text| text.contains("<omp.h>"));
    compiler.args(threads.then_some("-fopenmp"));
    // Not for this CPU in particular: products and sums must stay apart everywhere, so that results can be compared.
    output(compiler.args(["-O3", "-ffp-contract=off", "-o"]).arg(&binary).arg(source).args(["-lm", "-ldl"]))?;
    // MPICH 5's compiler writes a path of libraries into the program, which would win over its peers' and ours.
    if abi == Abi::Mpich5 && output(command("readelf").arg("-dW").arg(&binary))?.contains("(RPATH)") {
        return Err(format!("{} has an RPATH, which LD_LIBRARY_PATH cannot override", binary.display()));
    }
    binary.canonicalize().map_err(|e| format!("{}: {e}", binary.display()))
}
