//! `vmpictl machine measure`: ping-pongs between two ranks become the file of a machine.
//!
//! Reading order: this file (compile, run, write) -> `fit` (times to figures) -> `measure.c` (what is run).

mod fit;

use crate::failure::Failure;
use fit::{Measured, parse};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use vmpi_machine::Machine;

const PROGRAM: &str = include_str!("measure.c");

/// The text of a file that describes this machine, or the nodes that `flags` of vmpirun name.
///
/// # Errors
/// A sentence: no compiler, a run that failed, figures that make no sense.
pub fn measure(flags: &[String]) -> Result<String, Failure> {
    let place = Place::make()?;
    let program = place.compile()?;
    let first = place.run(&program, flags)?;
    // Between hosts; what messages cost within one is measured here.
    let (within, between) = match first.same_host {
        true => (first, None),
        false => (place.run(&program, &[])?, Some(first)),
    };
    if !within.same_host {
        return Err(Failure::new(
            1,
            "two ranks without any flag are not on one host: messages within it cannot be measured",
        ));
    }
    let text = file(&within, between.as_ref());
    match Machine::from_toml(&text, "what was measured") {
        Ok(_) => Ok(text),
        Err(why) => Err(Failure::own(format!("{why}\n{text}"))),
    }
}

fn file(within: &Measured, between: Option<&Measured>) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).max(2);
    let (hosts, what) = if between.is_some() { (2, "two hosts") } else { (1, "one host") };
    let farthest =
        [Some(within), between].into_iter().flatten().map(|one| one.farthest(&one.parts())).fold(0.0, f64::max);
    let mut text = format!("about = \"{what}, as measured\"\n");
    text += &format!(
        "source = \"\"\"\nvmpictl machine measure, {}: half a round trip of two ranks, each with a core of its own, for 1 B to 4 MiB, medians; the \
         figures below come within {:.0} % of each.\"\"\"\n\n",
        cpu(),
        (100.0 * farthest).ceil()
    );
    text += &format!("[hosts]\ncount = {hosts}\ncores = {cores}\n\n{}", within.level("socket"));
    if let Some(between) = between {
        let fastest = between.parts().iter().map(|part| part.bandwidth).fold(0.0, f64::max);
        text +=
            &format!("\n[links.host]\nbandwidth = \"{fastest:.1}MB/s\"\nshared = true\n\n{}", between.level("switch"));
    }
    text
}

/// The processor's name, without what would end a string of TOML's.
fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let plain = |c: &char| c.is_ascii_graphic() && !"\"\\".contains(*c) || *c == ' ';
    model.map_or("an unknown processor".into(), |(_, model)| model.chars().filter(plain).collect())
}

/// A directory of our own, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn make() -> Result<Place, Failure> {
        let path = std::env::temp_dir().join(format!("vmpi-measure-{}-{:08x}", std::process::id(), fastrand::u32(..)));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| Failure::new(1, format!("cannot make {}: {e}", path.display())))?;
        Ok(Place(path))
    }

    fn compile(&self) -> Result<PathBuf, Failure> {
        let (source, program) = (self.0.join("measure.c"), self.0.join("measure"));
        std::fs::write(&source, PROGRAM)
            .map_err(|e| Failure::new(1, format!("cannot write {}: {e}", source.display())))?;
        let mut compiler = Command::new(beside("vmpicc")?);
        output(compiler.arg("-O2").arg("-o").arg(&program).arg(&source), "vmpicc")?;
        Ok(program)
    }

    fn run(&self, program: &Path, flags: &[String]) -> Result<Measured, Failure> {
        let mut job = Command::new(beside("vmpirun")?);
        job.args(["--quiet", "-n", "2", "-V", "1"]).args(flags).arg(program).current_dir(&self.0);
        parse(&output(&mut job, "vmpirun")?).map_err(|why| Failure::new(1, why))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Another of our programs.
fn beside(name: &str) -> Result<PathBuf, Failure> {
    let exe = std::env::current_exe().map_err(|e| Failure::own(format!("cannot find vmpictl's own place: {e}")))?;
    Ok(exe.with_file_name(name))
}

/// What it printed, since it worked.
fn output(command: &mut Command, name: &str) -> Result<String, Failure> {
    let done = command.output().map_err(|e| Failure::new(1, format!("{name} does not start: {e}")))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(Failure::new(1, format!("nothing was measured: {name} ended with {}; it said: {}", done.status, said.trim())))
}
