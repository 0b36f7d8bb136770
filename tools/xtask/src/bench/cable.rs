//! Two nodes on one machine: network namespaces with a cable between them, each with a host name and a CPU of its own.

use super::system::{Abi, System};
use crate::Result;
use crate::place::release;
use crate::shell::{command, create_dir, output, write};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The systems that can run over the cable.
pub const SYSTEMS: &[&str] = &["vmpi-openmpi", "openmpi4-yield", "openmpi4", "vmpi-mpich", "mpich4", "floor"];

/// `enter NODE COMMAND ...`: run it there; what `--launcher-exec` calls.
const ENTER: &str = r#"#!/bin/sh
node=$1; shift
export VMPI_BENCH_BASE=${VMPI_BENCH_BASE:-$VMPI_RUNTIME_DIR}
export VMPI_RUNTIME_DIR="$VMPI_BENCH_BASE/$node"
mkdir -p -m 700 "$VMPI_RUNTIME_DIR"
case $node in *b) cpu=CPU_B;; *) cpu=CPU_A;; esac
exec ip netns exec "$node" unshare --uts sh -c 'hostname "$1"; cpu=$2; shift 2; exec taskset -c $cpu "$@"' sh "$node" "$cpu" "$@"
"#;
/// As ssh: options first, and a line for the shell last; what the peers' launchers call.
const SSH: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
node=$1; shift
exec ENTER "$node" sh -c "$*"
"#;

/// Removed when dropped.
pub struct Cable {
    dir: PathBuf,
    a: String,
    b: String,
}

impl Cable {
    /// # Errors
    /// Only root may make network namespaces, and not everywhere.
    pub fn lay(cpus: &[u32]) -> Result<Cable> {
        let pid = std::process::id();
        let dir = std::env::temp_dir().join(format!("vmpi-cable-{pid}"));
        create_dir(&dir)?;
        let cable = Cable { dir, a: format!("vmpix{pid}a"), b: format!("vmpix{pid}b") };
        let (first, last) = (cpus[0].to_string(), cpus[cpus.len() - 1].to_string());
        script(&cable.enter(), &ENTER.replace("CPU_A", &first).replace("CPU_B", &last))?;
        script(&cable.ssh(), &SSH.replace("ENTER", &cable.enter().display().to_string()))?;
        let names = format!("127.0.0.1 localhost\n10.97.0.1 {}\n10.97.0.2 {}\n", cable.a, cable.b);
        for (node, _) in cable.nodes() {
            // `ip netns exec` puts this in the place of /etc/hosts.
            create_dir(&etc(node))?;
            write(&etc(node).join("hosts"), &names)?;
            ip(&format!("netns add {node}"))?;
        }
        ip(&format!("link add cable netns {} type veth peer name cable netns {}", cable.a, cable.b))?;
        for (node, address) in cable.nodes() {
            ip(&format!("-n {node} addr add {address}/24 dev cable"))?;
            ip(&format!("-n {node} link set lo up"))?;
            ip(&format!("-n {node} link set cable up"))?;
        }
        Ok(cable)
    }

    fn nodes(&self) -> [(&str, &'static str); 2] {
        [(&self.a, "10.97.0.1"), (&self.b, "10.97.0.2")]
    }

    fn enter(&self) -> PathBuf {
        self.dir.join("enter")
    }

    fn ssh(&self) -> PathBuf {
        self.dir.join("ssh")
    }

    /// The command that runs `program` on both nodes; `flags` are vmpirun's. For a floor, both ends of the program itself.
    pub fn command(
        &self,
        system: &System,
        ranks: u32,
        flags: &[String],
        program: &Path,
        arguments: &[String],
    ) -> Command {
        let mut job = command(self.enter());
        job.arg(&self.a);
        let hosts = format!("{},{}", self.a, self.b);
        match (system.abi, system.kind) {
            (Abi::None, _) => {
                // Servers end with their first client.
                let (enter, program) = (self.enter().display().to_string(), program.display());
                let words = arguments.join(" ");
                let script = format!(
                    "{enter} {b} timeout 20 {program} server {words} & {program} client 10.97.0.2 {words}; wait
                    for c in $(cat /proc/sys/net/ipv4/tcp_congestion_control) reno; do
                        {enter} {b} timeout 5 iperf3 -s -1 > /dev/null &
                        for again in 1 2 3 4 5 6; do
                            sleep 0.3
                            iperf3 -C $c -c 10.97.0.2 -t 1 -f G > iperf3.$$ && break
                        done
                        awk -v c=$c '/receiver/ {{ print \"@ far_bandwidth 4194304\", $7, \"iperf3-\" c }}' iperf3.$$
                        rm iperf3.$$; wait
                    done",
                    b = self.b
                );
                job.current_dir(&self.dir);
                job.args(["sh", "-c", &script]);
                return job;
            }
            (_, super::system::Kind::Vmpi) => {
                job.arg(release().join("vmpirun")).args(["--quiet", "--host", &hosts, "--launcher-exec"]);
                job.arg(self.enter()).args(flags);
            }
            (Abi::OpenMpi, _) => {
                job.args(["mpiexec.openmpi", "--mca", "plm_rsh_agent"]).arg(self.ssh());
                job.args(["--mca", "btl", "tcp,vader,self", "--mca", "btl_tcp_if_include", "cable"]);
                job.args(["--mca", "oob_tcp_if_include", "cable", "--bind-to", "none", "--oversubscribe"]);
                job.args(["--host", &format!("{}:64,{}:64", self.a, self.b)]);
                job.args(["--map-by", &format!("ppr:{}:node", ranks.div_ceil(2))]);
                if system.name == "openmpi4-yield" {
                    job.env("OMPI_MCA_mpi_yield_when_idle", "1");
                }
                job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            }
            _ => {
                job.args(["mpiexec.mpich", "-launcher", "ssh", "-launcher-exec"]).arg(self.ssh());
                job.args(["-hosts", &hosts, "-iface", "cable", "-genv", "UCX_TLS", "tcp,self"]);
                job.args(["-genv", "UCX_NET_DEVICES", "cable"]);
            }
        }
        job.args(["-n", &ranks.to_string()]).arg(program).args(arguments);
        job
    }
}

fn etc(node: &str) -> PathBuf {
    Path::new("/etc/netns").join(node)
}

fn script(path: &Path, text: &str) -> Result<()> {
    write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|e| format!("{}: {e}", path.display()))
}

fn ip(arguments: &str) -> Result<()> {
    let done = output(command("ip").args(arguments.split_whitespace()));
    done.map(drop).map_err(|why| format!("network namespaces need root and iproute2: {why}"))
}

impl Drop for Cable {
    fn drop(&mut self) {
        for (node, _) in self.nodes() {
            let _ = output(command("ip").args(["netns", "del", node]));
            let _ = fs::remove_dir_all(etc(node));
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}
