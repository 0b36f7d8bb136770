//! Who is measured: vmpi, the other MPIs, the machine itself; how each is launched.
//!
//! The same binary runs under vmpi and under the MPI that it was built with, and under the peers that keep that ABI.

use crate::place::{release, top, venv, venv_mpich, venv_openmpi};
use crate::shell::{command, shown, which};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Abi {
    /// libmpi.so.40, by Debian's Open MPI.
    OpenMpi,
    /// libmpich.so.12, by Debian's MPICH.
    Mpich,
    /// libmpi.so.12, by MPICH 5 from PyPI: what Intel MPI has too.
    Mpich5,
    /// SimGrid's SMPI, by its own compiler.
    Smpi,
    /// No MPI.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Vmpi,
    Peer,
    /// Runs programs in virtual time.
    Simulator,
    Floor,
}

pub struct System {
    /// In JSON and on the command line.
    pub name: &'static str,
    /// In tables and pictures.
    pub title: &'static str,
    pub abi: Abi,
    pub kind: Kind,
    /// Part of the quick set.
    pub quick: bool,
    launch: fn(&mut Command, &Launch),
    launcher: fn() -> PathBuf,
}

/// A job: how many ranks on which CPUs.
pub struct Launch<'a> {
    pub ranks: u32,
    pub cpus: &'a [u32],
    /// The ranks take the CPUs in turn, one each. (vmpi pins its ranks always.)
    pub pin: bool,
    /// Flags of vmpirun, or of Open MPI 4's launcher.
    pub flags: &'a [&'a str],
}

pub const SYSTEMS: &[System] = &[
    System {
        name: "vmpi-openmpi",
        title: "vmpi (Open MPI binary)",
        abi: Abi::OpenMpi,
        kind: Kind::Vmpi,
        quick: true,
        launch: vmpi,
        launcher: vmpirun,
    },
    System {
        name: "openmpi4-yield",
        title: "Open MPI 4, yield",
        abi: Abi::OpenMpi,
        kind: Kind::Peer,
        quick: true,
        launch: |command, launch| openmpi4(command, launch, true),
        launcher: || on_path("mpiexec.openmpi"),
    },
    System {
        name: "openmpi4",
        title: "Open MPI 4, no yield",
        abi: Abi::OpenMpi,
        kind: Kind::Peer,
        quick: false,
        launch: |command, launch| openmpi4(command, launch, false),
        launcher: || on_path("mpiexec.openmpi"),
    },
    System {
        name: "openmpi5",
        title: "Open MPI 5, yield",
        abi: Abi::OpenMpi,
        kind: Kind::Peer,
        quick: false,
        launch: openmpi5,
        launcher: || venv_openmpi().join("bin/mpiexec"),
    },
    System {
        name: "vmpi-mpich",
        title: "vmpi (MPICH binary)",
        abi: Abi::Mpich,
        kind: Kind::Vmpi,
        quick: true,
        launch: vmpi,
        launcher: vmpirun,
    },
    System {
        name: "mpich4",
        title: "MPICH 4",
        abi: Abi::Mpich,
        kind: Kind::Peer,
        quick: true,
        launch: hydra,
        launcher: || on_path("mpiexec.mpich"),
    },
    System {
        name: "mpich5",
        title: "MPICH 5",
        abi: Abi::Mpich5,
        kind: Kind::Peer,
        quick: false,
        launch: |command, launch| {
            hydra(command, launch);
            command.env("LD_LIBRARY_PATH", venv_mpich().join("lib"));
        },
        launcher: || venv_mpich().join("bin/mpiexec"),
    },
    System {
        name: "intelmpi",
        title: "Intel MPI, yield",
        abi: Abi::Mpich5,
        kind: Kind::Peer,
        quick: false,
        launch: intelmpi,
        launcher: || venv().join("bin/mpiexec.hydra"),
    },
    System {
        name: "smpi",
        title: "SimGrid's SMPI",
        abi: Abi::Smpi,
        kind: Kind::Simulator,
        quick: true,
        launch: smpi,
        launcher: || on_path("smpirun"),
    },
    System {
        name: "floor",
        title: "floor",
        abi: Abi::None,
        kind: Kind::Floor,
        quick: true,
        launch: |_, _| {},
        launcher: PathBuf::new,
    },
];

/// The systems to measure: `quick`, `all`, or names separated by commas; floors are always there.
///
/// # Errors
/// A name that is no system's.
pub fn choose(peers: &str) -> Result<Vec<&'static System>, String> {
    let names: Vec<&str> = peers.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known = |name: &&str| ["quick", "all"].contains(name) || SYSTEMS.iter().any(|system| system.name == *name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = SYSTEMS.iter().map(|system| system.name).collect();
        return Err(format!("there is no system {name}; there are quick, all, {}", all.join(", ")));
    }
    let chosen = |system: &&System| {
        let by_name = names.contains(&system.name) || names.contains(&"all");
        by_name || (system.quick && names.contains(&"quick")) || system.kind == Kind::Floor
    };
    Ok(SYSTEMS.iter().filter(chosen).collect())
}

/// The vmpi whose binary a system's is, or is closest to: what the system's ratio is taken against.
pub fn counterpart(system: &System, systems: &[&'static System]) -> Option<&'static System> {
    let family = if system.abi == Abi::Mpich5 { Abi::Mpich } else { system.abi };
    let ours = || systems.iter().copied().filter(|s| s.kind == Kind::Vmpi);
    ours().find(|s| s.abi == family).or_else(|| ours().next())
}

impl System {
    /// Why it cannot be measured here, if it cannot.
    pub fn unavailable(&self) -> Option<String> {
        let launcher = (self.launcher)();
        let there = self.kind == Kind::Floor || launcher.is_file();
        (!there).then(|| format!("there is no {}", launcher.display()))
    }

    /// How it is run, as one would type it: for the record.
    pub fn how(&self, cpus: &[u32]) -> String {
        if self.kind == Kind::Floor {
            return "as it is".into();
        }
        let launch = Launch { ranks: cpus.len() as u32, cpus, pin: false, flags: &[] };
        let job = self.command(&launch, Path::new("PROGRAM"), &[]);
        let set = |(name, value): (&OsStr, Option<&OsStr>)| {
            format!("{}={} ", name.to_string_lossy(), value.unwrap_or_default().to_string_lossy())
        };
        job.get_envs().map(set).collect::<String>() + &shown(&job)
    }

    /// The command that runs `program` as this job.
    pub fn command(&self, launch: &Launch, program: &Path, arguments: &[String]) -> Command {
        if self.kind == Kind::Floor {
            let mut floor = command(program);
            floor.args(arguments);
            return floor;
        }
        // Launcher, daemons and ranks alike stay on these CPUs.
        let list = list(launch.cpus);
        let mut job = command("taskset");
        job.args(["-c", &list]).arg((self.launcher)());
        if launch.pin && self.kind == Kind::Peer {
            job.env("BENCH_PIN", &list);
        }
        (self.launch)(&mut job, launch);
        let count = if self.kind == Kind::Simulator { "-np" } else { "-n" };
        job.args([count, &launch.ranks.to_string()]).arg(program).args(arguments);
        job
    }
}

/// CPUs as taskset and vmpirun want them.
pub fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn vmpirun() -> PathBuf {
    release().join("vmpirun")
}

fn on_path(name: &str) -> PathBuf {
    which(name).unwrap_or_else(|| name.into())
}

fn vmpi(command: &mut Command, launch: &Launch) {
    let place = launch.flags.iter().skip_while(|flag| **flag != "--cpus-per-rank").nth(1);
    let place = place.and_then(|cpus| cpus.parse().ok()).unwrap_or(1);
    let v = (launch.ranks * place).div_ceil(launch.cpus.len() as u32);
    command.args(["--quiet", "-V", &v.to_string(), "--cores", &list(launch.cpus)]).args(launch.flags);
}

/// Ranks on hosts of the cluster in their order, as vmpi places them; without computation, which SMPI measures by real time.
fn smpi(command: &mut Command, _: &Launch) {
    let data = top().join("tests/data/simulate");
    command.arg("-platform").arg(data.join("cluster.xml")).arg("-hostfile").arg(data.join("cluster.hosts"));
    command.args(["--cfg=smpi/simulate-computation:no", "--log=root.thresh:critical"]);
}

/// Ranks go where the kernel puts them: bound ranks of a peer that shares cores are slower still. A variant says otherwise.
fn openmpi4(command: &mut Command, launch: &Launch, yields: bool) {
    let flags = if launch.flags.is_empty() { &["--bind-to", "none"] } else { launch.flags };
    command.arg("--oversubscribe").args(flags).env("OMPI_MCA_mpi_yield_when_idle", if yields { "1" } else { "0" });
    allow_root(command);
}

fn openmpi5(command: &mut Command, _: &Launch) {
    command.args(["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]).env("OMPI_MCA_mpi_yield_when_idle", "1");
    command.env("LD_LIBRARY_PATH", venv_openmpi().join("lib"));
    allow_root(command);
}

fn allow_root(command: &mut Command) {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
}

fn hydra(command: &mut Command, _: &Launch) {
    command.args(["-bind-to", "none"]);
}

/// I_MPI_THREAD_YIELD=2: waiting ranks call sched_yield. Its other values, spin counts (I_MPI_SHM_RECV_SPIN_COUNT) and
/// MPIR_CVAR_POLLS_BEFORE_YIELD made no difference to two ranks of one core, 0.8 to 1.2 ms each way.
fn intelmpi(command: &mut Command, _: &Launch) {
    command.env("I_MPI_ROOT", venv()).env("LD_LIBRARY_PATH", venv().join("lib"));
    command.env("I_MPI_PIN", "0").env("I_MPI_FABRICS", "shm").env("I_MPI_THREAD_YIELD", "2");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(peers: &str) -> Vec<&'static str> {
        choose(peers).unwrap().iter().map(|system| system.name).collect()
    }

    #[test]
    fn systems_are_chosen_by_set_and_by_name() {
        assert_eq!(names("quick"), ["vmpi-openmpi", "openmpi4-yield", "vmpi-mpich", "mpich4", "smpi", "floor"]);
        assert_eq!(names("all").len(), SYSTEMS.len());
        assert_eq!(names("mpich5, vmpi-mpich"), ["vmpi-mpich", "mpich5", "floor"]);
        assert!(choose("quick,mpich6").err().unwrap().contains("no system mpich6"));
    }

    #[test]
    fn peers_are_compared_with_vmpi_of_their_family() {
        let all = choose("all").unwrap();
        let of = |name: &str| counterpart(all.iter().find(|s| s.name == name).unwrap(), &all).unwrap().name;
        assert_eq!(
            [of("openmpi5"), of("mpich4"), of("intelmpi"), of("floor")],
            ["vmpi-openmpi", "vmpi-mpich", "vmpi-mpich", "vmpi-openmpi"]
        );
        let some = choose("vmpi-mpich,openmpi4").unwrap();
        assert_eq!(counterpart(&SYSTEMS[1], &some).unwrap().name, "vmpi-mpich");
        assert!(counterpart(&SYSTEMS[1], &choose("openmpi4").unwrap()).is_none());
    }

    #[test]
    fn commands_name_cpus_and_ranks() {
        let launch = Launch { ranks: 4, cpus: &[0, 3], pin: true, flags: &["--cpus-per-rank", "2"] };
        let words = |system: &System| {
            let command = system.command(&launch, Path::new("p"), &["x".into()]);
            let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            (words.join(" "), command.get_envs().any(|(name, _)| name == "BENCH_PIN"))
        };
        let (vmpi, pinned) = words(&SYSTEMS[0]);
        assert!(vmpi.ends_with("vmpirun --quiet -V 4 --cores 0,3 --cpus-per-rank 2 -n 4 p x") && !pinned, "{vmpi}");
        let (peer, pinned) = words(&SYSTEMS[1]);
        let how = SYSTEMS[1].how(&[0, 3]);
        assert!(how.contains("yield_when_idle=1 ") && how.ends_with("--bind-to none -n 2 PROGRAM"), "{how}");
        assert!(peer.starts_with("-c 0,3 ") && peer.ends_with("-n 4 p x") && pinned, "{peer}");
    }
}
