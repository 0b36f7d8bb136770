//! A small Slurm: slurmctld and two slurmd with names and ports of their own on this machine, and munge, all Debian's.

use crate::leftovers::eventually;
use crate::scratch::Scratch;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ended when dropped.
pub struct Slurm {
    scratch: Scratch,
    processes: Vec<Child>,
}

/// A munged of our own, with a fresh key, so that the system's is not needed.
fn munged(dir: &Path) -> Child {
    let key = dir.join("munge.key");
    fs::write(&key, fs::read("/proc/sys/kernel/random/uuid").expect("it is there").repeat(4)).expect("writable");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).expect("it is ours");
    let at = |name: &str| format!("={}", dir.join(name).display());
    Command::new("/usr/sbin/munged")
        .args(["--foreground", "--force", &format!("--key-file{}", at("munge.key"))])
        .args([format!("--socket{}", at("munge.socket")), format!("--pid-file{}", at("munged.pid"))])
        .args([format!("--log-file{}", at("munged.log")), format!("--seed-file{}", at("munged.seed"))])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("munged does not start: {e}; run `cargo xtask guest` first"))
}

impl Slurm {
    /// Nodes vmpis1 and vmpis2, a CPU each as far as Slurm knows.
    ///
    /// # Panics
    /// If Slurm is not installed or does not come up.
    pub fn start() -> Slurm {
        let scratch = Scratch::new("slurm");
        let dir = scratch.path().to_owned();
        // munged wants all above its socket safe, and others must reach it.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let host = nix::unistd::gethostname().expect("it has a name").to_string_lossy().into_owned();
        let base = dir.display();
        for name in ["state", "spool-vmpis1", "spool-vmpis2"] {
            fs::create_dir(dir.join(name)).expect("the scratch directory is writable");
        }
        let port = 20_000 + std::process::id() % 20_000;
        let conf = format!(
            "ClusterName=vmpi\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={base}/munge.socket\nCryptoType=crypto/munge\nCredType=cred/munge\n\
             SlurmctldPort={port}\nSlurmctldPidFile={base}/slurmctld.pid\nSlurmdPidFile={base}/slurmd-%n.pid\n\
             SlurmdSpoolDir={base}/spool-%n\nStateSaveLocation={base}/state\nSlurmctldLogFile={base}/slurmctld.log\n\
             SlurmdLogFile={base}/slurmd-%n.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSchedulerType=sched/builtin\nReturnToService=2\n\
             SlurmdParameters=config_overrides\nJobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             SwitchType=switch/none\nInactiveLimit=0\nKillWait=2\nWaitTime=0\n\
             NodeName=vmpis1 NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=1 RealMemory=100 State=UNKNOWN\n\
             NodeName=vmpis2 NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=1 RealMemory=100 State=UNKNOWN\n\
             PartitionName=all Nodes=vmpis[1-2] Default=YES MaxTime=60 State=UP\n",
            port + 1,
            port + 2
        );
        fs::write(dir.join("slurm.conf"), conf).expect("the scratch directory is writable");
        let mut slurm = Slurm { scratch, processes: vec![munged(&dir)] };
        assert!(eventually(Duration::from_secs(20), || dir.join("munge.socket").exists()), "munged: {}", slurm.logs());
        let daemons: [(&str, &[&str]); 3] =
            [("slurmctld", &["-D", "-c"]), ("slurmd", &["-D", "-N", "vmpis1"]), ("slurmd", &["-D", "-N", "vmpis2"])];
        for (daemon, arguments) in daemons {
            let child = slurm
                .command(&format!("/usr/sbin/{daemon}"))
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            slurm.processes.push(child.unwrap_or_else(|e| panic!("{daemon} does not start: {e}")));
        }
        let idle = || {
            let told = slurm.command("sinfo").args(["-h", "-o", "%T %D"]).output();
            told.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).trim() == "idle 2")
        };
        assert!(eventually(Duration::from_secs(60), idle), "Slurm does not come up:\n{}", slurm.logs());
        slurm
    }

    /// A command that knows this Slurm.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.conf());
        command
    }

    pub fn conf(&self) -> std::path::PathBuf {
        self.scratch.path().join("slurm.conf")
    }

    /// The ends of the daemons' logs.
    pub fn logs(&self) -> String {
        let mut all = String::new();
        for entry in fs::read_dir(self.scratch.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "log") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let end = lines[lines.len().saturating_sub(12)..].join("\n");
                all.push_str(&format!("--- {}\n{end}\n", path.display()));
            }
        }
        all
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.command("scancel").args(["--user", "root"]).output();
        // In the order of their start but munged last: a slurmd ends its steps.
        for child in self.processes.iter_mut().rev() {
            let pid = nix::unistd::Pid::from_raw(child.id() as i32);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            let gone = eventually(Duration::from_secs(5), || matches!(child.try_wait(), Ok(Some(_))));
            if !gone {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
