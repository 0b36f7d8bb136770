//! A rank whose process another MPI's launcher has started (Hydra's mpiexec, srun, PRRTE): vmpid starts a stand-in for it, which leads the process to
//! its place in the job and lives as long as it.
//!
//! The process listens at [`socket`]; the stand-in, which finds the name in its environment, connects and sends [`Place`]; the process answers with
//! [`Taken`] and a descriptor of itself. When the process ends, so does the stand-in; when the stand-in is ended, with its job, the kernel ends the process.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// In the environment of the stand-ins: what the names of their processes' sockets begin with ([`prefix`]).
pub const VARIABLE: &str = "VMPI_STAND_IN";

/// What the process must know to be the rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// What vmpid has put into the stand-in's environment, by names.
    pub variables: Vec<(String, String)>,
    /// The CPUs that the stand-in may use.
    pub cpus: Vec<u32>,
}

/// The process is the rank from now on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Taken {
    pub pid: i32,
}

/// What the names of the sockets of the job `name` begin with.
pub fn prefix(runtime_dir: &Path, name: &str) -> PathBuf {
    runtime_dir.join(format!("in-{name}"))
}

/// Where the process that is to be `rank` listens.
pub fn socket(prefix: &Path, rank: u32) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!("-{rank}"));
    path.into()
}

/// A short name for what a launcher calls its job, the same in all of its processes (FNV-1a).
pub fn short_name(job: &str) -> String {
    let hash = job
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        assert_eq!(short_name(""), "cbf29ce484222325");
        assert_eq!(short_name("a"), "af63dc4c8601ec8c");
        assert_ne!(short_name("kvs_1_0_1_host"), short_name("kvs_1_0_2_host"));
        assert_eq!(socket(&prefix(Path::new("/tmp/vmpi-1"), "00"), 12), Path::new("/tmp/vmpi-1/in-00-12"));
    }
}
