//! Debian's LAMMPS, unmodified, on three ranks per core.

use crate::Result;
use crate::build;
use crate::place::{release, top};
use crate::setup::setup;
use crate::shell::{command, output, which};
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, Instant};

pub fn demo(steps: u32) -> Result<()> {
    setup()?;
    let lammps = which("lmp").ok_or("there is no lmp (LAMMPS) on PATH, although setup found its package installed")?;
    build::build()?;
    let runtime_dir = std::env::temp_dir().join(format!("vmpi-demo-{}", std::process::id()));
    // Private, or vmpirun takes another and vmpictl does not find the job.
    let made = std::fs::DirBuilder::new().mode(0o700).create(&runtime_dir);
    made.map_err(|e| format!("cannot create {}: {e}", runtime_dir.display()))?;
    let tool = |name: &str| {
        let mut command = command(release().join(name));
        command.env("VMPI_RUNTIME_DIR", &runtime_dir);
        command
    };

    println!("\n$ vmpirun -V 3 --report lmp -in tests/data/in.melt     # {} as Debian ships it", lammps.display());
    let mut vmpirun = tool("vmpirun");
    vmpirun.args(["-V", "3", "--report"]).arg(&lammps).arg("-in").arg(top().join("tests/data/in.melt"));
    vmpirun.args(["-log", "none", "-var", "steps", &steps.to_string()]).current_dir(&runtime_dir);
    let start = Instant::now();
    let mut job = vmpirun.spawn().map_err(|e| format!("vmpirun does not start: {e}"))?;

    // While it runs: what the ranks are doing, once they are all there.
    let mut seen = None;
    while job.try_wait().map_err(|e| e.to_string())?.is_none() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
        let listing = output(tool("vmpictl").args(["ps", "--ranks"])).unwrap_or_default();
        if listing.contains("RUNNING") {
            seen = Some(listing);
            if start.elapsed() > Duration::from_millis(700) {
                break;
            }
        }
    }
    let status = job.wait().map_err(|e| e.to_string())?;
    let _ = std::fs::remove_dir_all(&runtime_dir);
    match seen {
        Some(listing) => println!("\n$ vmpictl ps --ranks     # taken while it ran\n{listing}"),
        None => println!("\n(the run ended before vmpictl could look; try --steps 2000)"),
    }
    if status.success() {
        println!(
            "{} s in all. The table above shows, per core, how often the core was handed from rank to rank.",
            start.elapsed().as_secs_f32()
        );
        Ok(())
    } else {
        Err(format!("vmpirun ended with {status}"))
    }
}
