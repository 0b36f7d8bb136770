//! A test that needs another kernel runs itself again in a guest: qemu without hardware support, the host's file system as root, read-only.
//!
//! The guest's clock counts its own instructions (`-icount`, which works with one CPU), so that a busy host makes the guest slow, but lets
//! none of its timeouts run out.

use crate::place::{Turn, room, top};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const IN_GUEST: &str = "VMPI_TEST_GUEST";

/// Is this process in the guest?
pub fn is_here() -> bool {
    std::env::var_os(IN_GUEST).is_some()
}

/// Ended when dropped.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Run test `name` of this very program in a guest, with these variables; what it printed.
///
/// # Panics
/// If there is no qemu or kernel, the guest does not end in time, or the test fails there.
pub fn run(name: &str, variables: &[(&str, PathBuf)], deadline: Duration) -> String {
    let guest = top().join("target/guest");
    let hint = "run `cargo xtask guest` (or `cargo xtask test --tier 2`) first";
    assert!(guest.join("vmlinuz").is_file(), "no kernel in {}: {hint}", guest.display());
    let _turn = Turn::take();
    let (share, dir) = (room(""), room("guest"));
    let (output, status, console) = (dir.join("output"), dir.join("status"), dir.join("console"));
    for file in [&output, &status, &console] {
        let _ = fs::remove_file(file);
    }
    let program = std::env::current_exe().expect("it has a path");
    let exports: String =
        variables.iter().map(|(name, value)| format!("export {name}='{}'\n", value.display())).collect();
    let start = format!(
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/tmp LANG=C.UTF-8 {IN_GUEST}=1 RUST_BACKTRACE=1\n{exports}\
         hostname guest; ip link set lo up; ulimit -l unlimited; ulimit -c 0\n\
         cd '{}' && '{}' --ignored --exact '{name}' --nocapture --test-threads 1 >'{}' 2>&1\n\
         echo $? >'{}'; sync; echo o >/proc/sysrq-trigger; sleep 60\n",
        top().display(),
        program.display(),
        output.display(),
        status.display(),
    );
    fs::write(dir.join("start"), start).expect("target/ is writable");
    let shared = |tag: &str, path: &Path, more: &str| {
        let path = path.canonicalize().expect("it exists");
        vec![
            "-fsdev".into(),
            format!("local,id={tag},path={},security_model=none,multidevs=remap{more}", path.display()),
            "-device".into(),
            format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}"),
        ]
    };
    let kernel = format!(
        "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr random.trust_cpu=on audit=0 share={}",
        share.display()
    );
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args(["-M", "pc", "-accel", "tcg,thread=single,tb-size=256", "-icount", "shift=2,sleep=on"])
        .args(["-cpu", "max,la57=off", "-smp", "1", "-m", "1536"])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .arg("-kernel")
        .arg(guest.join("vmlinuz"))
        .arg("-initrd")
        .arg(guest.join("initramfs"))
        .args(["-append", &kernel])
        .args(["-serial", &format!("file:{}", console.display())])
        .args(shared("root", Path::new("/"), ",readonly=on"))
        .args(shared("share", &share, ""))
        .stdin(Stdio::null());
    let end = Instant::now() + deadline;
    let child = command.spawn().unwrap_or_else(|e| panic!("qemu-system-x86_64 does not start: {e}; {hint}"));
    let mut qemu = Qemu(child);
    let read =
        |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let ended = loop {
        match qemu.0.try_wait().expect("it is our child") {
            Some(_) => break true,
            None if Instant::now() > end => break false,
            None => std::thread::sleep(Duration::from_millis(200)),
        }
    };
    drop(qemu);
    let (output, status, console) = (read(&output), read(&status), read(&console));
    assert!(
        ended && status.trim() == "0",
        "{} (status {status:?})\n--- output\n{output}\n--- console\n{console}",
        if ended { "the test failed in the guest" } else { "the guest did not end in time" },
    );
    output
}
