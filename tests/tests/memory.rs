//! Memory that is laid open to the other ranks (`VMPI_MAP_MEMORY`): the same bytes, whatever the program does with its memory.

use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::leftovers::{Process, eventually};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::Turn;

/// open_memory.c on so many ranks, under a shell's command; the first word of what it says about its memory.
fn run(ranks: u32, v: u32, mpi: Mpi, how: &str, wanted: Option<&str>, shell: &str) -> String {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("open_memory.c", mpi);
    drop(turn);
    let run = Vmpirun::new("memory").args(["-n", &ranks.to_string(), "-V", &v.to_string(), "sh", "-c", shell]);
    let run = run.arg(binary).args([how]).deadline(Duration::from_secs(120));
    let got = if let Some(wanted) = wanted { run.env("VMPI_MAP_MEMORY", wanted) } else { run }.run();
    let told =
        format!("{ranks} ranks, V = {v}, {} {wanted:?} {how}: {} {} {}", mpi.name(), got.code, got.stdout, got.stderr);
    let (first, last) = got.stdout.trim().split_once('\n').expect(&told);
    assert_eq!((got.code, last), (0, "all bytes are right"), "{told}");
    first.strip_suffix(" memory lies in files").expect(&told).to_string()
}

const PLAIN: &str = "exec $0 $1";

#[test]
fn what_is_laid_open_is_what_it_was() {
    for (ranks, v) in [(2, 1), (2, 2), (3, 2), (4, 2), (6, 3)] {
        assert_eq!(run(ranks, v, Mpi::Openmpi, "plain", Some("1"), PLAIN), "all");
        assert_eq!(run(ranks, v, Mpi::Openmpi, "plain", None, PLAIN), "all");
    }
}

/// Then a child of fork gets copies.
#[test]
fn fork_while_messages_are_under_way_or_beside_threads() {
    for how in ["pending", "thread", "forks"] {
        assert_eq!(run(4, 2, Mpi::Openmpi, how, Some("1"), PLAIN), "all");
        assert_eq!(run(4, 2, Mpi::Openmpi, how, None, PLAIN), "all");
    }
}

#[test]
fn under_the_other_interface_too() {
    assert_eq!(run(4, 2, Mpi::Mpich, "plain", Some("1"), PLAIN), "all");
    assert_eq!(run(4, 2, Mpi::Mpich, "plain", None, PLAIN), "all");
}

/// The carriers of two nodes read and write it where it lies.
#[test]
fn over_nodes_too() {
    let nodes = Nodes::new("memory");
    let turn = Turn::take();
    let binary = program("open_memory.c", Mpi::Openmpi);
    drop(turn);
    for (ranks, how, fabric) in [("2", "plain", "tcp"), ("4", "pending", "tcp"), ("3", "plain", "emulated:20:1000")] {
        let run = nodes.vmpirun("memory").args(["--fabric", fabric, "--map-by", "node", "-n", ranks, "-V", "2"]);
        let job = run.arg(&binary).arg(how).deadline(Duration::from_secs(120)).start();
        let is_mapped = |process: &Process| {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid)).unwrap_or_default();
            process.command.contains("--carry") && maps.contains("vmpi-heap")
        };
        let both = || job.processes().iter().filter(|process| is_mapped(process)).count() == 2;
        let seen = eventually(Duration::from_secs(60), both);
        let told = format!("{:?}", job.processes());
        let got = job.finish();
        let told = format!("{ranks} ranks, {how}, {fabric}: {} {} {} {told}", got.code, got.stdout, got.stderr);
        assert_eq!((got.code, got.stdout.trim()), (0, "all memory lies in files\nall bytes are right"), "{told}");
        assert!(seen, "a carrier does not map it: {told}");
    }
}

#[test]
fn nothing_is_laid_open_where_that_is_unwanted() {
    assert_eq!(run(3, 2, Mpi::Openmpi, "plain", Some("0"), PLAIN), "no");
}

/// Others' memory would take address space that the program may want later.
#[test]
fn nothing_is_laid_open_unasked_where_address_space_is_limited() {
    assert_eq!(run(3, 2, Mpi::Openmpi, "plain", None, "ulimit -v 8000000; exec $0 $1"), "no");
    assert_eq!(run(3, 2, Mpi::Openmpi, "plain", Some("1"), "ulimit -v 8000000; exec $0 $1"), "all");
}

/// A device may have pages of who has opened it.
#[test]
fn nothing_is_laid_open_unasked_where_a_device_is_open() {
    assert_eq!(run(3, 2, Mpi::Openmpi, "plain", None, "exec $0 $1 9</dev/kmsg"), "no");
    assert_eq!(run(3, 2, Mpi::Openmpi, "plain", None, "exec $0 $1 9</dev/urandom"), "all");
}

/// The user has asked for it: where it cannot be, that is said, once, and the job goes on without it.
#[test]
fn why_nothing_is_laid_open_is_said() {
    let turn = Turn::take();
    let binary = program("open_memory.c", Mpi::Openmpi);
    drop(turn);
    let limited = ["-n", "3", "-V", "2", "sh", "-c", "ulimit -f 1000000; exec $0"];
    let run = Vmpirun::new("memory").args(limited).arg(binary).env("VMPI_MAP_MEMORY", "1");
    let got = run.deadline(Duration::from_secs(120)).run();
    let told = format!("{} {} {}", got.code, got.stdout, got.stderr);
    assert_eq!((got.code, got.stdout.trim()), (0, "no memory lies in files\nall bytes are right"), "{told}");
    assert_eq!(got.stderr.matches("VMPI_MAP_MEMORY=1 has no effect on this node: files may have").count(), 1, "{told}");
}

/// Which pages the memory of two ranks (one's holds zeros) has got after so many rounds of messages, enough for where making huge pages takes long, with or without a memory file to be had. `late`: malloc asks for none.
fn pages(rounds: u32, late: bool, file: bool, map: &str, huge: &str) -> String {
    let turn = Turn::take();
    let binary = program("huge_pages.c", Mpi::Openmpi);
    drop(turn);
    let shell = if file { "exec $0 $1" } else { "ulimit -f 1000000; exec $0 $1" };
    let run = Vmpirun::new("memory").args(["-n", "2", "-V", "2", "sh", "-c", shell]).arg(&binary);
    let run = run.args([&rounds.to_string()]).env("GLIBC_TUNABLES", if late { "glibc.malloc.hugetlb=0" } else { "" });
    let got = run.env("VMPI_MAP_MEMORY", map).env("VMPI_HUGE_PAGES", huge).deadline(Duration::from_secs(120)).run();
    let told = format!(
        "{rounds} rounds, late {late}, file {file}, map {map}, huge {huge}: {} {} {}",
        got.code, got.stdout, got.stderr
    );
    assert_eq!((got.code, got.stderr.contains("has no effect")), (0, map == "1" && !file), "{told}");
    got.stdout
}

const SMALL: &str = "rank 0: small pages\nrank 1: small pages\n";
const HUGE: &str = "rank 0: huge pages\nrank 1: huge pages\n";

/// What the kernel gives to who asks for huge pages, and to who does not.
fn offered() -> (&'static str, &'static str) {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let given = |to: &[&str]| if to.iter().any(|to| enabled.contains(to)) { HUGE } else { SMALL };
    (given(&["[madvise]", "[always]"]), given(&["[always]"]))
}

#[test]
fn large_blocks_have_huge_pages_from_the_start() {
    assert_eq!(pages(0, false, true, "0", "1"), offered().0);
    assert_eq!(pages(0, true, true, "0", "1"), offered().1);
    assert_eq!(pages(0, false, true, "0", "0"), offered().1);
}

/// ... as without it: what is copied by the kernel then comes out of huge pages, unless these are unwanted, too.
#[test]
fn memory_that_is_not_laid_open_gets_huge_pages() {
    assert_eq!(pages(1000, true, false, "1", "1"), pages(1000, true, false, "0", "1"));
    assert_eq!(pages(1000, false, false, "1", "0"), offered().1);
}

/// ... and what lies open does, too.
#[test]
fn memory_that_is_laid_open_gets_huge_pages() {
    assert_eq!(pages(1000, true, true, "1", "1"), pages(1000, true, true, "0", "1"));
    assert_eq!(pages(1000, false, true, "1", "0"), offered().1);
}
