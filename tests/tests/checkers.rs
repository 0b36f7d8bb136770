//! Under checkers of memory (valgrind's memcheck, AddressSanitizer) right programs are told of nothing, wrong ones are.
//!
//! None for MemorySanitizer: it wants every library of a program compiled with it, and ends one in MPI_Init that was not, under each MPI.

use std::process::Command;
use std::time::Duration;
use vmpi_tests::compile::{Flavour, Mpi, flavoured};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::place::Turn;

/// With so many ranks and V, under `tool`; `planted`: what is wrong with it.
fn run(source: &str, mpi: Mpi, flavour: Flavour, (ranks, v): (u32, u32), tool: &[&str], planted: &[&str]) -> Outcome {
    let turn = Turn::take();
    let binary = flavoured(source, mpi, flavour);
    drop(turn);
    let run = Vmpirun::new("checkers").args(["-n", &ranks.to_string(), "-V", &v.to_string()]).args(tool).arg(binary);
    let file = run.runtime_dir().join("file");
    // UndefinedBehaviorSanitizer goes on otherwise.
    let run = run.env("UBSAN_OPTIONS", "halt_on_error=1");
    run.arg(file).args(planted).deadline(Duration::from_secs(600)).run()
}

fn is_clean(got: &Outcome, what: &str) {
    assert_eq!((got.code, got.stdout.trim(), got.stderr.as_str()), (0, "0 wrong", ""), "{what}");
}

const MEMCHECK: &[&str] =
    &["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite,possible"];

const ADDRESS: Flavour<'static> = Flavour { name: ".asan", compiler: None, options: &["-fsanitize=address,undefined"] };

/// clang, or clang++, of whichever version Debian has; `None` where there is none, which is said.
fn clang(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &String| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let versions = (14..30).map(|version| format!("{name}-{version}"));
    let found = std::iter::once(name.to_string()).chain(versions).find(is_there);
    if found.is_none() {
        eprintln!("skipped: there is no {name}");
    }
    found
}

#[test]
fn memcheck_has_nothing_to_say_of_c() {
    for (mpi, layout) in [(Mpi::Openmpi, (2, 1)), (Mpi::Openmpi, (3, 3)), (Mpi::Mpich, (3, 2))] {
        let got = run("watched.c", mpi, Flavour::default(), layout, MEMCHECK, &[]);
        is_clean(&got, &format!("{mpi:?} {layout:?}"));
    }
}

#[test]
fn memcheck_has_nothing_to_say_of_cxx_and_fortran() {
    for source in ["watched.cc", "watched.f90"] {
        is_clean(&run(source, Mpi::Openmpi, Flavour::default(), (3, 2), MEMCHECK, &[]), source);
    }
}

#[test]
fn memcheck_finds_what_is_wrong() {
    for (planted, said) in [
        ("uninitialised", "Conditional jump or move depends on uninitialised value(s)"),
        ("overflow", "Unaddressable byte(s) found during client check request"),
    ] {
        let got = run("watched.c", Mpi::Openmpi, Flavour::default(), (2, 1), MEMCHECK, &[planted]);
        assert!(got.code == 9 && got.stderr.contains(said), "{planted}: {got:?}");
        assert!(got.stderr.contains("watched.c"), "it does not say where: {got:?}");
    }
}

#[test]
fn address_sanitizer_of_gcc() {
    for (source, mpi) in [
        ("watched.c", Mpi::Openmpi),
        ("watched.c", Mpi::Mpich),
        ("watched.cc", Mpi::Openmpi),
        ("watched.f90", Mpi::Openmpi),
    ] {
        for layout in [(2, 1), (3, 3)] {
            is_clean(&run(source, mpi, ADDRESS, layout, &[], &[]), &format!("{source} {mpi:?} {layout:?}"));
        }
    }
    finds_an_overflow(ADDRESS);
}

/// DT_RPATH: the system's MPI would be found first, so vmpi's library is preloaded, behind the sanitizer's.
#[test]
fn address_sanitizer_stays_first() {
    let rpath = "-Wl,--disable-new-dtags,-rpath,/usr/lib/x86_64-linux-gnu/openmpi/lib,-rpath,/usr/lib/x86_64-linux-gnu";
    let options = ["-fsanitize=address", rpath];
    let flavour = Flavour { name: ".asan-rpath", compiler: None, options: &options };
    is_clean(&run("watched.cc", Mpi::Openmpi, flavour, (2, 2), &[], &[]), "with DT_RPATH");
    // In virtual time the face is preloaded, too.
    let simulated = ["--simulate", "laptop", "-q"];
    let got = run("watched.c", Mpi::Openmpi, ADDRESS, (3, 2), &simulated, &[]);
    assert_eq!((got.code, got.stdout.trim()), (0, "0 wrong"), "{got:?}");
}

#[test]
fn address_sanitizer_of_clang() {
    let (Some(clang), Some(cxx)) = (clang("clang"), clang("clang++")) else { return };
    let within = Flavour { name: ".clang-asan", compiler: Some(&clang), options: ADDRESS.options };
    for layout in [(2, 1), (3, 3)] {
        is_clean(&run("watched.c", Mpi::Openmpi, within, layout, &[], &[]), &format!("{layout:?}"));
    }
    finds_an_overflow(within);
    // Its run-time library as one that is shared; nothing else says where that is.
    let runtime = Command::new(&clang).arg("-print-runtime-dir").output().expect("clang runs").stdout;
    let rpath = format!("-Wl,-rpath,{}", String::from_utf8_lossy(&runtime).trim());
    let options = ["-fsanitize=address", "-shared-libasan", &rpath];
    let apart = Flavour { name: ".clang-asan-shared", compiler: Some(&clang), options: &options };
    is_clean(&run("watched.c", Mpi::Openmpi, apart, (3, 2), &[], &[]), "shared");
    finds_an_overflow(apart);
    let cxx = Flavour { name: ".clang-asan", compiler: Some(&cxx), options: ADDRESS.options };
    is_clean(&run("watched.cc", Mpi::Openmpi, cxx, (3, 2), &[], &[]), "clang++");
}

/// Though not the program's own code has written there.
fn finds_an_overflow(flavour: Flavour) {
    let got = run("watched.c", Mpi::Openmpi, flavour, (2, 1), &[], &["overflow"]);
    assert!(got.code != 0 && got.stderr.contains("heap-buffer-overflow"), "{flavour:?}: {got:?}");
}
