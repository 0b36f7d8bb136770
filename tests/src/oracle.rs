//! The right answer: the same binary under the MPI that it was compiled for, asked once and kept; where that MPI does not end
//! every time, what it answered when it did (tests/data/answers).

use crate::compile::Mpi;
use crate::place::{Turn, making_one, put_whole, room, top, venv_mpich};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the real MPI made of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
}

/// The real MPIs hang now and then where processes are spawned, or fail without a word: then they are asked again.
const ATTEMPTS: u32 = 3;
/// Seconds of one attempt.
const PATIENCE: &str = "60";

/// Written when a package is installed or removed.
const PACKAGES: &str = "/var/lib/dpkg/status";

/// Run `binary` on `ranks` ranks under the real MPI, or recall its answer. It takes a turn of its own.
///
/// # Panics
/// If the launcher cannot be started, or does not end in time (`timeout` of coreutils) in any of [`ATTEMPTS`].
pub fn ask(mpi: Mpi, binary: &Path, ranks: u32, args: &[&str], env: &[(&str, &str)], cwd: &Path) -> Answer {
    let mut hasher = DefaultHasher::new();
    let modified = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    // A package that came since then may have brought another BLAS, whose last digits differ.
    (binary, modified(binary), modified(Path::new(PACKAGES)), ranks, args, env).hash(&mut hasher);
    let name = binary.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let kept = room("oracle").join(format!("{name}-{ranks}-{:016x}.txt", hasher.finish()));
    if let Some(answer) = read(&kept) {
        return answer;
    }
    // The tests of one program for several MPIs run side by side, and may have the same question.
    let _asking = making_one(&kept);
    if let Some(answer) = read(&kept) {
        return answer;
    }
    let _turn = Turn::take();
    let attempt = || {
        let output = launcher(mpi, ranks)
            .arg(binary)
            .args(args)
            .envs(env.iter().copied())
            .current_dir(cwd)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| {
                panic!("the launcher of {} does not start: {e}; run `cargo xtask setup` first", mpi.name())
            });
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        Answer { code: output.status.code().unwrap_or(-1), stdout }
    };
    // 137: it did not even end by TERM.
    let hangs = |answer: &Answer| [124, 137].contains(&answer.code);
    // Open MPI's launcher fails without a word now and then; a program may, too, and does so each time.
    let is_silent = |answer: &Answer| answer.code != 0 && answer.stdout.is_empty();
    let mut answers: Vec<Answer> = Vec::new();
    while answers.len() < ATTEMPTS as usize && answers.last().is_none_or(|last| hangs(last) || is_silent(last)) {
        answers.push(attempt());
    }
    let answer = answers.into_iter().rfind(|answer| !hangs(answer));
    let answer = answer.unwrap_or_else(|| panic!("{} itself hangs in {name}, {ATTEMPTS} times", mpi.name()));
    write(&kept, &answer);
    answer
}

/// What `mpi` has answered to a program of tests/programs. With `VMPI_ASK_AGAIN=1` it is asked, and the file written anew.
///
/// # Panics
/// If there is no such file, or as [`ask`].
pub fn recall(mpi: Mpi, program: &str, binary: &Path, ranks: u32, cwd: &Path) -> Answer {
    let file = top().join(format!("tests/data/answers/{program}-{ranks}.txt"));
    if std::env::var_os("VMPI_ASK_AGAIN").is_some() {
        let answer = ask(mpi, binary, ranks, &[], &[], cwd);
        write(&file, &answer);
        return answer;
    }
    read(&file).unwrap_or_else(|| panic!("{} has no answer in it: run with VMPI_ASK_AGAIN=1 once", file.display()))
}

/// The exit code in a line, then standard output.
fn read(file: &Path) -> Option<Answer> {
    let text = fs::read_to_string(file).ok()?;
    let (code, stdout) = text.split_once('\n')?;
    Some(Answer { code: code.parse().ok()?, stdout: stdout.into() })
}

fn write(file: &Path, answer: &Answer) {
    put_whole(file, |unfinished| {
        fs::write(unfinished, format!("{}\n{}", answer.code, answer.stdout))
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", unfinished.display()));
    });
}

/// The real MPI's launcher, ready for the program's name.
pub fn launcher(mpi: Mpi, ranks: u32) -> Command {
    launcher_within(mpi, ranks, PATIENCE)
}

/// The same for a program that may hang: so many seconds are enough.
pub fn launcher_within(mpi: Mpi, ranks: u32, seconds: &str) -> Command {
    let mut command = Command::new("timeout");
    if mpi == Mpi::Standard {
        // MPICH 5 as a library of the standard ABI: the same binary finds it by its soname.
        command.arg(seconds).arg(venv_mpich().join("bin/mpiexec")).env("LD_LIBRARY_PATH", venv_mpich().join("lib"));
    } else {
        command.args(["-k", "5", seconds, &format!("mpiexec.{}", mpi.name())]);
    }
    if mpi == Mpi::Openmpi {
        command.arg("--oversubscribe");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_mpi_yield_when_idle", "1").env("OMPI_MCA_btl_base_warn_component_unused", "0");
    }
    command.args(["-n", &ranks.to_string()]);
    command
}
