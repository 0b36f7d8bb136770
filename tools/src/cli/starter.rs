//! Whose way to start a process on a node `--launcher` names.

use super::parse::Line;

/// What starts an agent on another node.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Starter {
    #[default]
    Ssh,
    Rsh,
    /// Slurm's.
    Srun,
    /// PBS's and Torque's.
    Pbs,
    /// LSF's.
    Blaunch,
    /// Grid Engine's.
    Qrsh,
    /// Flux's.
    Flux,
    /// OAR's.
    Oarsh,
}

impl Starter {
    /// The command.
    pub fn name(self) -> &'static str {
        match self {
            Starter::Ssh => "ssh",
            Starter::Rsh => "rsh",
            Starter::Srun => "srun",
            Starter::Pbs => "pbs_tmrsh",
            Starter::Blaunch => "blaunch",
            Starter::Qrsh => "qrsh",
            Starter::Flux => "flux exec",
            Starter::Oarsh => "oarsh",
        }
    }
}

/// `--launcher`, `--bootstrap`: Hydra's and Intel's names.
pub fn launcher(line: &mut Line, word: &str) -> Result<(), String> {
    let starter = match word {
        "ssh" => Starter::Ssh,
        "rsh" => Starter::Rsh,
        "slurm" | "srun" => Starter::Srun,
        "pbs" | "pbsdsh" | "pbs_tmrsh" | "torque" => Starter::Pbs,
        "lsf" | "blaunch" => Starter::Blaunch,
        "sge" | "qrsh" => Starter::Qrsh,
        "flux" => Starter::Flux,
        "oar" | "oarsh" => Starter::Oarsh,
        _ => {
            line.ignore(&format!("--launcher {word}"));
            return Ok(());
        }
    };
    super::apply::set(&mut line.job.starter, starter)
}
