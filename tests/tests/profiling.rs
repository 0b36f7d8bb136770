//! Profiling tools in C and the Fortran programs that they are preloaded into, with MPICH's ABI: what they see is what they see under MPICH.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vmpi_tests::compile::{Mpi, made};
use vmpi_tests::installation::prefix;
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::{Turn, room, top};
use vmpi_tests::scratch::Scratch;

/// Calls of each function.
type Calls = BTreeMap<String, u64>;

/// A library of this source, by the compiler wrapper of `mpi`.
fn library(dir: &Path, source: &Path, mpi: Mpi) -> PathBuf {
    let _turn = Turn::take();
    let library = dir.join("tool.so");
    let wrapper =
        if mpi == Mpi::Standard { prefix().join("bin/vmpicc") } else { format!("mpicc.{}", mpi.name()).into() };
    let output =
        Command::new(wrapper).args(["-shared", "-fPIC", "-w", "-Wl,-z,lazy", "-o"]).arg(&library).arg(source).output();
    let output = output.expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// The source of a tool that counts the calls of every C function of MPICH and passes them on, whatever their arguments are.
fn counter() -> String {
    let names: Vec<&str> = include_str!("../data/mpich-functions.txt").lines().collect();
    let mut source = "#include <stdio.h>\n#include <stdlib.h>\nstatic const char *names[] = {".to_owned();
    names.iter().for_each(|name| source += &format!("\"{name}\","));
    source += &format!("}};\n__attribute__((used)) static long counts[{}];\n", names.len());
    for (index, name) in names.iter().enumerate() {
        source += &format!(
            "__asm__(\".text\\n.globl {name}\\n.type {name},@function\\n{name}: lock incq counts+{}(%rip)\\njmp P{name}@plt\\n\");\n",
            index * 8
        );
    }
    source
        + "__attribute__((destructor)) static void end(void)
           {
               FILE *file = fopen(getenv(\"COUNTS\"), \"a\");
               for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
                   if (counts[i]) fprintf(file, \"%s %ld\\n\", names[i], counts[i]);
               fclose(file);
           }"
}

/// What the counters of all processes of a job have written. MPICH's own Fortran functions convert files by calls that can be wrapped, which tells
/// nothing of the program.
fn calls(file: &Path) -> Calls {
    let mut calls = Calls::new();
    let text = fs::read_to_string(file).expect("the tool has written");
    let _ = fs::remove_file(file);
    for line in text.lines() {
        let (name, count) = line.split_once(' ').expect("a name and a count");
        if !["MPI_File_c2f", "MPI_File_f2c"].contains(&name) {
            *calls.entry(name.to_owned()).or_default() += count.parse::<u64>().expect("a count");
        }
    }
    calls
}

/// mpif.h, `use mpi` and mpi_f08: the calls that a tool sees, function by function.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_tool_counts_what_it_counts_under_mpich() {
    let scratch = Scratch::new("counting-tool");
    let source = scratch.path().join("counter.c");
    fs::write(&source, counter()).expect("the scratch directory is writable");
    let tool = library(scratch.path(), &source, Mpi::Mpich);
    let counts = scratch.path().join("counts");
    let preload = format!("LD_PRELOAD={}", tool.display());
    let variable = format!("COUNTS={}", counts.display());
    for program in
        ["legacy.f", "rma.f90", "bad_handles.f90", "grequest.f90", "usempif08.f90", "f08.f90", "profiled.f90"]
    {
        let binary = made(program, Mpi::Mpich);
        let ranks = if program == "grequest.f90" { "1" } else { "2" };
        let theirs = {
            let _turn = Turn::take();
            let mut mpich = Command::new("timeout");
            mpich.args(["60", "mpiexec.mpich", "-n", ranks, "env", &preload, &variable]).arg(&binary);
            assert!(mpich.current_dir(scratch.path()).status().expect("mpiexec.mpich starts").success(), "{program}");
            calls(&counts)
        };
        let run = Vmpirun::new("counter").args(["-n", ranks, "-x", &preload, "-x", &variable]).arg(&binary);
        let outcome = run.cwd(scratch.path()).run();
        assert_eq!(outcome.code, 0, "{program}: {outcome:?}");
        assert_eq!(calls(&counts), theirs, "{program}");
    }
}

/// Constants, strings and indices are C's when a tool gets them, and callbacks that pass through it stay Fortran's.
#[test]
fn a_tool_gets_what_c_passes() {
    let expected = "all checks hold\n\
        tool: init 1 sums 2 in place 1 bottom 1 ignored 1 1 unweighted 2 named 1 first 1\n\
        tool: ops 1 keys 1 handlers 1 grequests 1 levels 2 times 1\n";
    for mpi in [Mpi::Mpich, Mpi::Standard] {
        let dir = room("profiler").join(mpi.name());
        fs::create_dir_all(&dir).expect("target/ is writable");
        let tool = library(&dir, &top().join("tests/programs/profiler.c"), mpi);
        let binary = made("profiled.f90", mpi);
        let preload = format!("LD_PRELOAD={}", tool.display());
        let outcome = Vmpirun::new("profiler").args(["-n", "2", "-x", &preload]).arg(&binary).run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, expected), "{}: {outcome:?}", mpi.name());
        // Without a tool, the same program.
        let outcome = Vmpirun::new("unprofiled").args(["-n", "2"]).arg(&binary).run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "all checks hold\n"), "{}: {outcome:?}", mpi.name());
    }
}

/// Open MPI's Fortran functions call the PMPI_ ones, so a tool in C sees nothing.
#[test]
fn open_mpis_fortran_passes_the_tool_by() {
    let dir = room("profiler").join("openmpi");
    fs::create_dir_all(&dir).expect("target/ is writable");
    let tool = library(&dir, &top().join("tests/programs/profiler.c"), Mpi::Openmpi);
    let preload = format!("LD_PRELOAD={}", tool.display());
    let binary = made("profiled.f90", Mpi::Openmpi);
    let outcome = Vmpirun::new("profiler").args(["-n", "2", "-x", &preload]).arg(&binary).run();
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "all checks hold\n"), "{outcome:?}");
}
