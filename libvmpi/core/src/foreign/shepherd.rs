//! vmpirun, started by the first rank of a job that another launcher has started, for the stand-ins of all.

use crate::own_file::own_file;
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vmpi_shared::stand_in;

/// Where a rank is, and what it may use there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub host: String,
    pub cpus: Vec<u32>,
}

impl fmt::Display for Seat {
    /// `host/0-3,7`: no character that a wire takes for its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, list(&self.cpus))
    }
}

/// Numbers as `0-3,7`.
fn list(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

impl Seat {
    pub fn parse(text: &str) -> Result<Seat, String> {
        let bad = || format!("a rank says that it is at {text:?}");
        let (host, cpus) = text.split_once('/').ok_or_else(bad)?;
        let mut all = Vec::new();
        for part in cpus.split(',').filter(|part| !part.is_empty()) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high): (u32, u32) = (low.parse().map_err(|_| bad())?, high.parse().map_err(|_| bad())?);
            if high < low || high - low > 1 << 16 {
                return Err(bad());
            }
            all.extend(low..=high);
        }
        Ok(Seat { host: host.into(), cpus: all })
    }
}

/// The arguments of vmpirun for these seats. `rank_file`: where the nodes of ranks can be written.
fn arguments(seats: &[Seat], own: &Path, rank_file: &Path) -> Result<Vec<String>, String> {
    let mut words: Vec<String> =
        ["-n", &seats.len().to_string(), "--output", "raw", "--stdin", "none", "--quiet", "-wdir", "/"]
            .map(String::from)
            .to_vec();
    let mut on_host: BTreeMap<&str, u32> = BTreeMap::new();
    seats.iter().for_each(|seat| *on_host.entry(&seat.host).or_default() += 1);
    if on_host.len() > 1 {
        let hosts: Vec<String> = on_host.iter().map(|(host, ranks)| format!("{host}:{ranks}")).collect();
        let lines: String =
            seats.iter().enumerate().map(|(rank, seat)| format!("rank {rank}={}\n", seat.host)).collect();
        std::fs::write(rank_file, lines).map_err(|error| format!("cannot write {}: {error}", rank_file.display()))?;
        words.extend(["--host".into(), hosts.join(","), "--rankfile".into(), rank_file.display().to_string()]);
        if std::env::var("SLURM_JOB_ID").is_ok() {
            words.extend(["--launcher".into(), "slurm".into()]);
        }
    } else {
        words.extend(["--host".into(), "localhost".into()]);
    }
    let program = std::env::current_exe().unwrap_or_default();
    words.extend([own.display().to_string(), "--stand-in".into(), program.display().to_string()]);
    Ok(words)
}

/// Start it, for ranks at these seats; the descriptor is closed when it ends.
pub fn start(prefix: &Path, seats: &[Seat]) -> Result<OwnedFd, String> {
    let vmpirun = vmpirun()?;
    let here = &seats[0].host;
    // The launcher may have bound each rank to a core of its own: all that the ranks of this node may use is the job's.
    let mut cpus: Vec<u32> =
        seats.iter().filter(|seat| seat.host == *here).flat_map(|seat| seat.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let words = arguments(seats, &vmpirun, &rank_file(prefix))?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    let mut command = Command::new(&vmpirun);
    command.args(["--detach", &list(&cpus)]).args(words).env(stand_in::VARIABLE, prefix);
    for (variable, _) in std::env::vars_os() {
        let of_outer = |name: &str| ["PMI_", "PMIX_", "HYDI_"].iter().any(|prefix| name.starts_with(prefix));
        if variable.to_str().is_some_and(of_outer) {
            command.env_remove(&variable);
        }
    }
    // It becomes no child of this process, whose program may wait for its own: what is waited for here only starts it.
    let status = command.stdin(Stdio::from(OwnedFd::from(theirs))).status();
    drop(command);
    match status {
        Ok(status) if status.success() => Ok(ours.into()),
        Ok(status) => Err(format!("{} does not start ({status})", vmpirun.display())),
        // The program ignores SIGCHLD, so that nothing is known of it.
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(ours.into()),
        Err(error) => Err(format!("cannot run {}: {error}", vmpirun.display())),
    }
}

/// Where the nodes of ranks stand until vmpirun has read them.
pub fn rank_file(prefix: &Path) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push("-ranks");
    path.into()
}

/// vmpirun of the installation that this library belongs to.
fn vmpirun() -> Result<PathBuf, String> {
    let own = own_directory().ok_or("this library does not know where it lies")?;
    // As built (vmpi/FACE), and as installed (lib/vmpi/FACE).
    let places = [own.join("../../vmpirun"), own.join("../../../bin/vmpirun")];
    let found = places.iter().find_map(|place| std::fs::canonicalize(place).ok());
    found.ok_or_else(|| {
        let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        format!("there is no vmpirun beside this library (looked for {})", looked.join(", "))
    })
}

/// Where this library lies, whatever link it was loaded by.
fn own_directory() -> Option<PathBuf> {
    std::fs::canonicalize(own_file()?).ok()?.parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_come_back() {
        for (text, cpus) in [("n1/0-3,7", vec![0, 1, 2, 3, 7]), ("n1.x/5", vec![5]), ("n1/", vec![])] {
            let seat = Seat::parse(text).unwrap();
            assert_eq!((seat.cpus.clone(), seat.to_string().as_str()), (cpus, text));
        }
        for wrong in ["n1", "n1/a", "n1/3-1", "n1/0-99999999"] {
            assert!(Seat::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn several_nodes_have_a_rank_file() {
        let file = std::env::temp_dir().join(format!("vmpi-seats-{}", std::process::id()));
        let seat = |host: &str| Seat { host: host.into(), cpus: vec![0] };
        let words = arguments(&[seat("b"), seat("a"), seat("b")], Path::new("/v/vmpirun"), &file).unwrap().join(" ");
        assert!(
            words.starts_with("-n 3 ")
                && words.contains("--host a:1,b:2 --rankfile")
                && words.contains("/v/vmpirun --stand-in /"),
            "{words}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "rank 0=b\nrank 1=a\nrank 2=b\n");
        std::fs::remove_file(&file).unwrap();
        let words = arguments(&[seat("a"), seat("a")], Path::new("/v/vmpirun"), &file).unwrap().join(" ");
        assert!(words.contains("--host localhost") && !file.exists(), "{words}");
    }
}
