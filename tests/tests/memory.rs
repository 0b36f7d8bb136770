//! Memory that is laid open to the other ranks (`VMPI_MAP_MEMORY=1`): the same bytes, whatever the program does with its memory.

use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::Turn;

fn run(ranks: u32, v: u32, mpi: Mpi, wanted: &str) {
    let turn = Turn::take();
    let binary = program("open_memory.c", mpi);
    drop(turn);
    let run = Vmpirun::new("memory").args(["-n", &ranks.to_string(), "-V", &v.to_string()]).arg(binary);
    let got = run.env("VMPI_MAP_MEMORY", wanted).deadline(Duration::from_secs(120)).run();
    let lies = if wanted == "1" { "all memory lies in files\n" } else { "" };
    let told = format!("{ranks} ranks, V = {v}, {} VMPI_MAP_MEMORY={wanted}: {} {}", mpi.name(), got.code, got.stderr);
    assert_eq!((got.code, got.stdout.trim()), (0, format!("{lies}all bytes are right").as_str()), "{told}");
}

#[test]
fn what_is_laid_open_is_what_it_was() {
    for (ranks, v) in [(2, 1), (2, 2), (3, 2), (4, 2), (6, 3)] {
        run(ranks, v, Mpi::Openmpi, "1");
    }
}

#[test]
fn under_the_other_interface_too() {
    run(4, 2, Mpi::Mpich, "1");
}

#[test]
fn nothing_is_laid_open_unasked() {
    run(3, 2, Mpi::Openmpi, "0");
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
    assert_eq!((got.code, got.stdout.trim()), (0, "some memory does not lie in a file\nall bytes are right"), "{told}");
    assert_eq!(got.stderr.matches("VMPI_MAP_MEMORY=1 has no effect on this node: files may have").count(), 1, "{told}");
}

/// Which pages the memory of two ranks has got after so many rounds of messages, with or without a memory file to be had. `late`: malloc asks for none.
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
    assert_eq!(pages(200, true, false, "1", "1"), pages(200, true, false, "0", "1"));
    assert_eq!(pages(200, false, false, "1", "0"), offered().1);
}

/// ... and what lies open does, too.
#[test]
fn memory_that_is_laid_open_gets_huge_pages() {
    assert_eq!(pages(200, true, true, "1", "1"), pages(200, true, true, "0", "1"));
    assert_eq!(pages(200, false, true, "1", "0"), offered().1);
}
