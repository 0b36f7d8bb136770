//! `vmpictl doctor`: does this machine let vmpi do its best? A mark, the fact, and what to do about it.

mod twin;

use super::Output;
use crate::cpus;
use crate::elf::{Face, Search};
use crate::environ::{self, FaceDirs};
use crate::failure::Failure;
use crate::launch::exe_dir;
use crate::program;
use crate::rdma;
use nix::sys::resource::{Resource, getrlimit};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use twin::Twin;
use vmpi_fabric::verbs::{Plugin, PluginError};
use vmpi_shared::{guarding, perf_event};

/// How it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Mark {
    Good,
    /// It works, with a disadvantage.
    Warning,
    /// It does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    subject: &'static str,
    mark: Mark,
    fact: String,
    /// Empty: nothing is to be done.
    advice: String,
}

fn finding(subject: &'static str, mark: Mark, fact: impl Into<String>, advice: &str) -> Finding {
    Finding { subject, mark, fact: fact.into(), advice: advice.into() }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn kernel() -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let fact = format!("Linux {release}");
    if version >= (5, 4) {
        finding("kernel", Mark::Good, fact, "")
    } else {
        finding("kernel", Mark::Bad, fact, "vmpi needs Linux 5.4 or newer (pidfd_open)")
    }
}

/// Read a child's memory, as ranks read each other's.
fn single_copy() -> Finding {
    const SUBJECT: &str = "single copy";
    let twice =
        "large messages are copied twice; allow process_vm_readv (the container's seccomp filter, CAP_SYS_PTRACE)";
    let twin = match Twin::start() {
        Ok(twin) => twin,
        Err(errno) => {
            let fact = format!("could not be tried: no child process can be started ({errno})");
            return finding(SUBJECT, Mark::Warning, fact, "let other processes end, or raise the limits below");
        }
    };
    match twin.is_readable() {
        Ok(true) => finding(SUBJECT, Mark::Good, "process_vm_readv works between processes of this user", ""),
        Ok(false) => {
            let fact = "process_vm_readv does not give what lies in the other process's memory";
            finding(SUBJECT, Mark::Warning, fact, "VMPI_SINGLE_COPY=0 in the job's environment does without it")
        }
        Err(errno) => finding(SUBJECT, Mark::Warning, format!("process_vm_readv is refused: {errno}"), twice),
    }
}

fn yama() -> Finding {
    const SUBJECT: &str = "ptrace scope";
    match read("/proc/sys/kernel/yama/ptrace_scope").as_deref() {
        None => finding(SUBJECT, Mark::Good, "Yama is not there: processes of one user may read each other", ""),
        Some("0") => finding(SUBJECT, Mark::Good, "0: processes of one user may read each other", ""),
        Some("1") => finding(SUBJECT, Mark::Good, "1: ranks allow each other by prctl(PR_SET_PTRACER)", ""),
        Some(other) => finding(
            SUBJECT,
            Mark::Warning,
            format!("{other}: only privileged processes may read others"),
            "large messages are copied twice, and vmpictl stacks works as root only; sysctl kernel.yama.ptrace_scope=1",
        ),
    }
}

fn limit(subject: &'static str, resource: Resource, least: u64, what: &str, advice: &str) -> Finding {
    match getrlimit(resource) {
        Ok((soft, hard)) => {
            let show = |value: u64| if value == u64::MAX { "unlimited".into() } else { value.to_string() };
            let mark = if hard >= least { Mark::Good } else { Mark::Warning };
            let advice = if mark == Mark::Good { "" } else { advice };
            finding(subject, mark, format!("{what}: {} (hard limit {})", show(soft), show(hard)), advice)
        }
        Err(errno) => finding(subject, Mark::Warning, format!("{what}: {errno}"), advice),
    }
}

fn cores() -> Vec<Finding> {
    let mut found = Vec::new();
    match cpus::allowed() {
        Ok(allowed) => {
            let online = read("/sys/devices/system/cpu/online").unwrap_or_default();
            let fact =
                format!("{} CPUs may be used ({}); online: {online}", allowed.len(), cpus::format_list(&allowed));
            found.push(finding("affinity", Mark::Good, fact, ""));
            if let Some(quota) = cpus::cgroup_quota() {
                let short = quota < allowed.len() as f64;
                let (mark, advice) = match short {
                    true => (
                        Mark::Warning,
                        "ranks are throttled beyond it; use as many cores as it grants (vmpirun --cores)",
                    ),
                    false => (Mark::Good, ""),
                };
                found.push(finding("control group", mark, format!("grants {quota:.2} CPUs of time"), advice));
            } else {
                found.push(finding("control group", Mark::Good, "does not limit CPU time", ""));
            }
        }
        Err(error) => found.push(finding("affinity", Mark::Bad, error.sentence, "")),
    }
    found
}

fn clock() -> Finding {
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource").unwrap_or_else(|| "?".into());
    let flags = read("/proc/cpuinfo").unwrap_or_default();
    let steady = flags.lines().find(|line| line.starts_with("flags")).is_some_and(|line| {
        let has = |flag: &str| line.split_ascii_whitespace().any(|word| word == flag);
        has("constant_tsc") && has("nonstop_tsc")
    });
    let fact = format!("{source}; time-stamp counter {}", if steady { "steady" } else { "not known to be steady" });
    if steady {
        finding("clock", Mark::Good, fact, "")
    } else {
        finding("clock", Mark::Warning, fact, "the clocks of ranks use clock_gettime, which costs more")
    }
}

fn faces() -> Result<Vec<Finding>, Failure> {
    let dirs = FaceDirs::beside(&exe_dir()?);
    let found = Face::ALL.into_iter().map(|face| match dirs.get(face) {
        Some(dir) => finding("library", Mark::Good, format!("for {face}: {}", dir.display()), ""),
        None => finding(
            "library",
            Mark::Warning,
            format!("for {face}: not installed"),
            "programs built for it cannot run; install it (cargo xtask install)",
        ),
    });
    Ok(found.collect())
}

fn of_program(name: &str) -> Finding {
    const SUBJECT: &str = "program";
    let looked = || -> Result<String, Failure> {
        let (own, _) = environ::own();
        let cwd = std::env::current_dir().map_err(|e| Failure::own(e.to_string()))?;
        let search = Search::new(own.get("LD_LIBRARY_PATH").map_or("", String::as_str));
        let path = own.get("PATH").cloned().unwrap_or_else(|| "/usr/bin:/bin".into());
        let program = program::resolve(name, None, &path, &cwd, &search)?;
        let mut env = own.clone();
        let choice = environ::choose_face(&program, &FaceDirs::beside(&exe_dir()?), &mut env)?;
        let face = choice.face.map_or("no MPI visible".to_owned(), |face| face.to_string());
        Ok(format!("{}: {face} ({})", program.path.display(), choice.why))
    };
    match looked() {
        Ok(fact) => finding(SUBJECT, Mark::Good, fact, ""),
        Err(error) => finding(SUBJECT, Mark::Bad, error.sentence, ""),
    }
}

/// RDMA devices: as the kernel and, through vmpi's plugin, as `--fabric verbs` sees them.
fn network() -> Vec<Finding> {
    const SUBJECT: &str = "RDMA";
    let devices = rdma::devices(Path::new(rdma::DEVICES));
    let plugin = rdma::load();
    let first = plugin.as_ref().map(|plugin| rdma::try_open(plugin, None));
    let verbs = match first {
        Ok(Ok(port)) => finding("verbs", Mark::Good, format!("--fabric verbs takes {port}"), ""),
        Ok(Err(why)) => no_verbs(&devices, &why),
        Err(why) => no_verbs(&devices, why),
    };
    let mut found: Vec<Finding> = match &devices[..] {
        [] => {
            let fact = format!("no devices (nothing in {}): messages to other nodes go over TCP", rdma::DEVICES);
            vec![finding(SUBJECT, Mark::Good, fact, "")]
        }
        some => some.iter().map(|device| of_device(device, plugin.as_ref().ok())).collect(),
    };
    found.push(verbs);
    found
}

/// Where there are no devices this is no fault.
fn no_verbs(devices: &[rdma::Device], why: &PluginError) -> Finding {
    let fact = format!("--fabric verbs is refused: {why}");
    match devices {
        [] => finding("verbs", Mark::Good, fact, ""),
        _ => finding("verbs", Mark::Warning, fact, "until that is mended messages to other nodes go over TCP"),
    }
}

fn of_device(device: &rdma::Device, plugin: Option<&Plugin>) -> Finding {
    let name = &device.name;
    let ports = if device.ports.is_empty() { "no ports".to_owned() } else { device.ports.join("; ") };
    let made = if device.software { " (made of software: only with --fabric verbs)" } else { "" };
    let fact = format!("{name}{made}: {ports}");
    match plugin.map(|plugin| rdma::try_open(plugin, Some(name))) {
        Some(Ok(port)) => finding("RDMA", Mark::Good, format!("{fact}; usable: {port}"), ""),
        Some(Err(why)) => {
            let advice = "messages to other nodes do not go by it";
            finding("RDMA", Mark::Warning, format!("{fact}; cannot be used: {why}"), advice)
        }
        None if device.active => finding("RDMA", Mark::Good, fact, ""),
        None => finding("RDMA", Mark::Warning, fact, "no port is active: is there a cable, and a subnet manager?"),
    }
}

/// The devices of a virtual machine.
const VIRTIO_DEVICES: &str = "/sys/bus/virtio/devices";
/// VIRTIO_ID_BALLOON.
const BALLOON: &str = "0x0005";
/// VIRTIO_BALLOON_F_REPORTING: it tells the host which pages are free. A bit of the features, the first one first.
const REPORTING: usize = 5;

/// Does this virtual machine give free memory back to its host as it goes?
fn reports_free_pages(devices: &Path) -> bool {
    std::fs::read_dir(devices).into_iter().flatten().flatten().any(|device| {
        let file = |name: &str| std::fs::read_to_string(device.path().join(name)).unwrap_or_default();
        file("device").trim() == BALLOON && file("features").as_bytes().get(REPORTING) == Some(&b'1')
    })
}

/// Of transparent huge pages: what the kernel offers (/sys/kernel/mm/transparent_hugepage/enabled), and what the first use of one costs.
fn huge_pages(offered: Option<&str>, reported: bool) -> Finding {
    const SUBJECT: &str = "huge pages";
    if offered.is_none_or(|choice| choice.contains("[never]")) {
        let advice = "large messages are copied at about half the speed; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        return finding(SUBJECT, Mark::Warning, "the kernel gives none", advice);
    }
    if reported {
        let fact =
            "this virtual machine gives free memory back to its host: the first use of one may take milliseconds";
        let advice = "a program that touches much memory and ends soon may be faster with VMPI_HUGE_PAGES=0; try both";
        return finding(SUBJECT, Mark::Warning, fact, advice);
    }
    finding(SUBJECT, Mark::Good, "large blocks of memory get them", "")
}

fn others() -> Vec<Finding> {
    let faults = read("/proc/sys/vm/unprivileged_userfaultfd").unwrap_or_else(|| "not offered".into());
    let sampled = Twin::start().map_err(std::io::Error::from).and_then(|twin| perf_event::try_to_sample(twin.pid()));
    vec![
        events(&sampled, read(perf_event::PARANOID).as_deref()),
        finding("userfaultfd", Mark::Good, format!("for users: {faults}; vmpi does not need it"), ""),
        overlap(&guarding::look()),
    ]
}

/// The kernel's performance events: without them nobody sees that a rank spins on memory, and `vmpirun --counters` has none. `paranoid`: the setting.
fn events(sampled: &std::io::Result<()>, paranoid: Option<&str>) -> Finding {
    const SUBJECT: &str = "perf events";
    let setting = paranoid.map_or("perf_event_paranoid is not there".into(), |n| format!("perf_event_paranoid is {n}"));
    let Err(why) = sampled else { return finding(SUBJECT, Mark::Good, format!("{setting}: ranks may be sampled"), "") };
    let lost = "a rank that waits by spinning on memory keeps its core for the quantum (5 s; vmpirun --quantum 20: 20 ms), and --counters has none";
    let remedy = match paranoid.and_then(|n| n.parse::<i32>().ok()) {
        None => "the kernel was built without them (CONFIG_PERF_EVENTS)",
        Some(3..) => "sysctl kernel.perf_event_paranoid=2",
        Some(_) => "allow perf_event_open (the container's seccomp filter, CAP_PERFMON)",
    };
    finding(
        SUBJECT,
        Mark::Warning,
        format!("{setting}: ranks may not be sampled ({why})"),
        &format!("{lost}; {remedy}"),
    )
}

/// Of --overlap: can buffers of messages that are under way be guarded?
fn overlap(found: &Result<(), guarding::Unavailable>) -> Finding {
    match found {
        Ok(()) => finding("overlap", Mark::Good, guarding::OFFERED, ""),
        Err(why) => finding("overlap", Mark::Warning, "--overlap has no effect", &why.to_string()),
    }
}

/// Look at the machine, and at a program; exit code 1 if something does not work.
pub fn doctor(program: Option<&str>, as_json: bool) -> Result<Output, Failure> {
    let mut findings = vec![kernel(), single_copy(), yama()];
    let files = "many ranks need many: raise it (ulimit -n, LimitNOFILE)";
    findings.push(limit("open files", Resource::RLIMIT_NOFILE, 4096, "descriptors of a process", files));
    let processes = "each rank is a process: raise it (ulimit -u, TasksMax)";
    findings.push(limit("processes", Resource::RLIMIT_NPROC, 4096, "processes of this user", processes));
    let memory = "only RDMA between nodes needs it: raise it there (ulimit -l, LimitMEMLOCK)";
    findings.push(limit("locked memory", Resource::RLIMIT_MEMLOCK, 64 << 10, "bytes", memory));
    findings.extend(cores());
    findings.push(clock());
    let offered = read("/sys/kernel/mm/transparent_hugepage/enabled");
    findings.push(huge_pages(offered.as_deref(), reports_free_pages(Path::new(VIRTIO_DEVICES))));
    findings.extend(network());
    findings.extend(others());
    findings.extend(faces()?);
    findings.extend(program.map(of_program));
    let bad = findings.iter().any(|finding| finding.mark == Mark::Bad);
    let bytes = if as_json {
        format!("{:#}\n", json!({ "schema_version": 1, "good": !bad, "findings": findings })).into_bytes()
    } else {
        findings.iter().map(line).collect::<String>().into_bytes()
    };
    Ok(Output { bytes, code: i32::from(bad) })
}

fn line(finding: &Finding) -> String {
    let mark = match finding.mark {
        Mark::Good => "\u{2713}",
        Mark::Warning => "!",
        Mark::Bad => "\u{2717}",
    };
    let advice = if finding.advice.is_empty() { String::new() } else { format!("\n{:18}{}", "", finding.advice) };
    format!("{mark} {:<15} {}{advice}\n", finding.subject, finding.fact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sampling_needs_is_named() {
        let refused = |paranoid| events(&Err(std::io::Error::from_raw_os_error(libc::EACCES)), paranoid);
        for (paranoid, remedy) in [
            (Some("3"), "sysctl kernel.perf_event_paranoid=2"),
            (Some("2"), "CAP_PERFMON"),
            (None, "CONFIG_PERF_EVENTS"),
        ] {
            let found = refused(paranoid);
            assert!(found.mark == Mark::Warning && found.advice.contains(remedy), "{found:?}");
            assert!(found.advice.contains("--quantum 20"), "{found:?}");
        }
        assert!(refused(Some("3")).fact.starts_with("perf_event_paranoid is 3"));
        let good = events(&Ok(()), Some("2"));
        assert!(good.mark == Mark::Good && good.advice.is_empty(), "{good:?}");
    }

    #[test]
    fn this_machine_runs_vmpi() {
        assert_eq!(kernel().mark, Mark::Good, "{:?}", kernel());
        assert!(cores().iter().all(|finding| finding.mark != Mark::Bad));
        assert_eq!(of_program("/no/such/program").mark, Mark::Bad);
        assert!(of_program("/bin/sh").fact.contains("no MPI visible"), "{:?}", of_program("/bin/sh"));
    }

    #[test]
    fn a_machine_without_guards_is_told_what_is_missing() {
        assert_eq!(overlap(&Ok(())).mark, Mark::Good);
        let missing = overlap(&Err(guarding::Unavailable::Valgrind));
        assert_eq!((missing.mark, missing.fact.as_str()), (Mark::Warning, "--overlap has no effect"));
        assert!(missing.advice.contains("valgrind"), "{missing:?}");
    }

    /// A busy machine takes nothing away: what is found once is found always.
    #[test]
    fn single_copies_are_judged_alike_under_load() {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        let over = AtomicBool::new(false);
        let found = std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let found: Vec<String> = (0..100).map(|_| single_copy().fact).collect();
            over.store(true, Relaxed);
            found
        });
        assert!(found.iter().all(|fact| *fact == found[0]), "{found:?}");
        assert!(!found[0].contains("No such process"), "{found:?}");
    }

    #[test]
    fn devices_without_a_plugin_are_judged_by_their_ports() {
        let device = |active: bool| rdma::Device {
            name: "mlx5_0".into(),
            software: !active,
            ports: vec![format!("port 1 is {}", if active { "ACTIVE" } else { "DOWN" })],
            active,
        };
        let (good, bad) = (of_device(&device(true), None), of_device(&device(false), None));
        assert_eq!((good.mark, good.fact.as_str()), (Mark::Good, "mlx5_0: port 1 is ACTIVE"));
        assert!(bad.mark == Mark::Warning && bad.fact.contains("made of software") && bad.fact.contains("DOWN"));
    }

    /// Whatever this machine has: a sentence about devices, and one about the plugin.
    #[test]
    fn the_network_has_its_sentences() {
        let found = network();
        assert!(found.iter().any(|finding| finding.subject == "RDMA" && !finding.fact.is_empty()), "{found:?}");
        assert!(found.iter().any(|finding| finding.subject == "verbs" && !finding.fact.is_empty()), "{found:?}");
    }

    #[test]
    fn a_balloon_that_reports_is_told_from_others() {
        let dir = std::env::temp_dir().join(format!("vmpi-doctor-{}", std::process::id()));
        let device = |name: &str, kind: &str, features: &str| {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            std::fs::write(dir.join(name).join("device"), format!("{kind}\n")).unwrap();
            std::fs::write(dir.join(name).join("features"), format!("{features}\n")).unwrap();
        };
        assert!(!reports_free_pages(&dir), "there is no such directory");
        device("virtio0", "0x0002", "0010011001");
        device("virtio1", "0x0005", "0110000100");
        assert!(!reports_free_pages(&dir), "a disk, and a balloon that does not report");
        device("virtio2", "0x0005", "0110010100");
        assert!(reports_free_pages(&dir));
        std::fs::remove_dir_all(&dir).unwrap();
        let marks = [
            (Some("always [madvise] never"), false),
            (Some("[always] madvise never"), true),
            (Some("always madvise [never]"), true),
            (None, false),
        ]
        .map(|(offered, reported)| huge_pages(offered, reported).mark);
        assert_eq!(marks, [Mark::Good, Mark::Warning, Mark::Warning, Mark::Warning]);
    }

    #[test]
    fn advice_stands_below_the_fact() {
        let text = line(&finding("clock", Mark::Warning, "slow", "do this"));
        assert_eq!(text, "! clock           slow\n                  do this\n");
    }
}
