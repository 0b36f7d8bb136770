//! OTF2 archives, read back with the reader of the format's makers, beside what the program is known to have done.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vmpi_tests::job::Vmpirun;
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::{room, top, venv_otf2};
use vmpi_tests::traces::built;

/// What is in an archive that is as it must be.
fn read(path: &Path) -> Value {
    let script = top().join("tests/data/otf2_check.py");
    let output = Command::new(venv_otf2().join("bin/python")).arg(script).arg(path).output().expect("python runs");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// Is everything there that `otf2.c` does?
fn is_whole(archive: &Value, ranks: u32) {
    let names = archive["communicators"].as_array().expect("communicators");
    let back =
        names.iter().filter_map(Value::as_str).find(|name| name.starts_with("communicator ")).expect("the other one");
    assert!(!back.contains("by ranks of the job"), "all its members are known: {names:?}");
    for rank in 0..ranks {
        let own = &archive["ranks"][format!("MPI Rank {rank}")];
        let sends_back = rank == ranks - 1;
        let mut sends = json!({ "MPI_COMM_WORLD 7 100": 20, "MPI_COMM_SELF 0 16": 2 });
        let mut receives = sends.clone();
        if sends_back {
            sends[format!("{back} 9 8")] = 5.into();
        }
        if rank == 0 {
            receives[format!("{back} 9 8")] = 5.into();
        }
        assert_eq!((&own["sends"], &own["receives"]), (&sends, &receives), "rank {rank}");
        let (root, all) = (rank == 1, 8 * ranks);
        let bcast = if root { "40 0" } else { "0 40" };
        let gathered = if rank == 0 { all } else { 0 };
        let reduced = if rank == 0 { 8 } else { 0 };
        let last = ranks - 1;
        let mut collectives = json!({ "MPI_COMM_SELF barrier - 0 0": 3 });
        for (key, times) in [
            (format!("MPI_COMM_WORLD bcast 1 {bcast}"), 3),
            ("MPI_COMM_WORLD allreduce - 24 24".into(), 4),
            (format!("MPI_COMM_WORLD gather 0 8 {gathered}"), 2),
            (format!("{back} reduce {last} 8 {reduced}"), 5),
            (format!("{back} barrier - 0 0"), 2),
        ] {
            collectives[key] = times.into();
        }
        assert_eq!(own["collectives"], collectives, "rank {rank}");
        let left = (rank + ranks - 1) % ranks;
        assert_eq!(archive["pairs"][format!("MPI_COMM_WORLD: {left} to MPI Rank {rank}")], 20);
    }
    // Ranks are those of the communicator: its rank 0 is the last of the job.
    assert_eq!(archive["pairs"][format!("{back}: 0 to MPI Rank 0")], 5);
    let regions = &archive["regions"];
    // `one` ends within `two`, which is left and entered again.
    assert_eq!((regions["one"].as_u64(), regions["two"].as_u64()), (Some(ranks.into()), Some(2 * u64::from(ranks))));
    assert_eq!(regions["MPI_Bcast"].as_u64(), Some(3 * u64::from(ranks)), "{regions}");
}

#[test]
fn an_archive_has_what_the_program_did() {
    let dir = room("otf2");
    let path = dir.join("run.otf2");
    let _ = std::fs::remove_file(&path);
    for (ranks, v) in [(4, "2"), (3, "3")] {
        // The second one replaces the first.
        let binary = built("otf2.c");
        let run = Vmpirun::new("otf2").args(["-n", &ranks.to_string(), "-V", v, "--trace"]).arg(&path);
        let outcome = run.arg(binary).run();
        assert!(outcome.code == 0 && outcome.stderr.is_empty(), "{outcome:?}");
        let archive = read(&path);
        is_whole(&archive, ranks);
        assert_eq!(archive["ranks"].as_object().map(serde_json::Map::len), Some(ranks as usize));
    }
    let left: Vec<String> = std::fs::read_dir(&dir)
        .expect("it is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with('.') || name.contains("trace"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let _ = std::fs::remove_dir_all(dir);
}

/// What is there and no archive's stays, and that is said before the job starts.
#[test]
fn nothing_else_is_overwritten() {
    let dir = room("otf2-kept");
    let path = dir.join("run.otf2");
    let binary = built("otf2.c");
    std::fs::create_dir_all(dir.join("run")).expect("target/ is writable");
    for (strange, anchor) in [("run/mine.txt", false), ("run/mine.txt", true), ("run.def", false)] {
        let strange = dir.join(strange);
        std::fs::write(&strange, "kept").expect("target/ is writable");
        if anchor {
            std::fs::write(&path, "an anchor").expect("target/ is writable");
        }
        let run = Vmpirun::new("otf2-kept").args(["-n", "2", "--trace"]).arg(&path).arg(&binary);
        let outcome = run.run();
        assert!(outcome.code == 2 && outcome.stdout.is_empty(), "{outcome:?}");
        assert!(outcome.stderr.contains("no part of an OTF2 archive"), "{outcome:?}");
        assert_eq!(std::fs::read_to_string(&strange).expect("it is there"), "kept");
        std::fs::remove_file(strange).expect("it is there");
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir(dir.join("run"));
        std::fs::create_dir_all(if anchor { dir.clone() } else { dir.join("run") }).expect("target/ is writable");
    }
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn a_running_job_is_told_of() {
    let dir = room("otf2-running");
    let path = dir.join("running.otf2");
    let binary = built("regions.c");
    let run = Vmpirun::new("otf2-running").args(["-n", "2", "-V", "2"]).arg(binary).arg("forever");
    let job = run.deadline(Duration::from_secs(120)).start();
    let started = eventually(Duration::from_secs(60), || job.vmpictl(&["trace", "1", "start"]).code == 0);
    assert!(started, "{:?}", job.vmpictl(&["ps"]));
    // However busy the machine is.
    let mut archive = Value::Null;
    let enough = eventually(Duration::from_secs(60), || {
        let exported = job.vmpictl(&["trace", "1", "export", path.to_str().expect("UTF-8")]);
        assert_eq!(exported.code, 0, "{exported:?}");
        archive = read(&path);
        let barriers = &archive["ranks"]["MPI Rank 1"]["collectives"]["MPI_COMM_WORLD barrier - 0 0"];
        archive["regions"]["inner"].as_u64() >= Some(2) && barriers.as_u64() >= Some(2)
    });
    assert!(enough, "{archive}");
    assert_eq!(job.vmpictl(&["kill", "1"]).code, 0);
    assert_eq!(job.finish().code, 143);
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn a_pause_is_told() {
    let dir = room("otf2-pause");
    let path = dir.join("pause.otf2");
    let binary = built("regions.c");
    let run = Vmpirun::new("otf2-pause").args(["-n", "2", "--trace"]).arg(&path).arg(binary).arg("levels");
    assert_eq!(run.run().code, 0);
    let archive = read(&path);
    for rank in ["MPI Rank 0", "MPI Rank 1"] {
        assert_eq!(archive["ranks"][rank]["paused"], 2, "off and on: {archive}");
    }
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn several_nodes_are_in_one_archive() {
    let binary = built("otf2.c");
    let nodes = Nodes::new("otf2");
    let dir = room("otf2-nodes");
    let path = dir.join("nodes.otf2");
    let run = nodes.vmpirun("otf2-nodes").args(["-n", "4", "-V", "2", "--trace"]).arg(&path).arg(binary);
    let outcome = run.run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let archive = read(&path);
    is_whole(&archive, 4);
    assert_eq!(archive["nodes"].as_array().map(Vec::len), Some(2), "{}", archive["nodes"]);
    let _ = std::fs::remove_dir_all(dir);
}
