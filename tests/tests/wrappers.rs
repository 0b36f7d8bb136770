//! vmpicc, vmpicxx and vmpifort as build systems use them.

use std::fs;
use std::path::Path;
use std::process::Command;
use vmpi_tests::installation::prefix;
use vmpi_tests::job::{Vmpirun, path_with};
use vmpi_tests::place::{Turn, room, top};

/// Standard output of a command that must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{}\n{said}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run(name: &str, program: &Path) -> String {
    let outcome = Vmpirun::new(name).args(["-n", "3", "-V", "3"]).arg(program).run();
    assert_eq!(outcome.code, 0, "{}\n{}", outcome.stdout, outcome.stderr);
    outcome.stdout
}

/// CMake's FindMPI, told nothing but PATH: C, C++ and all three forms of Fortran.
#[test]
fn cmake_finds_vmpi() {
    let turn = Turn::take();
    let build = room("cmake");
    fs::remove_dir_all(&build).expect("it was just made");
    let names = prefix().join("lib/vmpi/bin");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(top().join("tests/cmake")).arg("-B").arg(&build).env("PATH", path_with(&names));
    for variable in ["CC", "CXX", "FC", "MPI_HOME", "I_MPI_ROOT"] {
        configure.env_remove(variable);
    }
    let said = output(&mut configure);
    for name in ["C: ", "CXX: ", "Fortran: "] {
        let line = said.lines().find(|line| line.starts_with(&format!("-- {name}"))).unwrap_or_default();
        assert!(line.contains(&names.display().to_string()), "another MPI was found for {name}\n{said}");
    }
    output(Command::new("cmake").arg("--build").arg(&build));
    drop(turn);
    assert_eq!(run("cmake-c", &build.join("hello_c")), "C: 3, clock 1\n");
    assert_eq!(run("cmake-cxx", &build.join("hello_cxx")), "C++: 2 of 3\n");
    assert_eq!(run("cmake-f", &build.join("hello_f")), "Fortran: 3\n");
}

/// What the wrappers print is what a compiler needs, and what they make names the standard's library only.
#[test]
fn the_shown_command_is_the_one_that_works() {
    let turn = Turn::take();
    let source = top().join("tests/cmake/hello.cc");
    let binary = room("bin").join("shown");
    let shown = output(Command::new(prefix().join("bin/vmpicxx")).arg("-show").arg(&source).arg("-o").arg(&binary));
    output(Command::new("sh").arg("-c").arg(shown));
    let needed = output(Command::new("readelf").arg("-d").arg(&binary));
    let mpi: Vec<&str> = needed.lines().filter(|line| line.contains("NEEDED") && line.contains("mpi")).collect();
    assert!(mpi.len() == 1 && mpi[0].contains("libmpi_abi.so.1"), "{mpi:?}");
    drop(turn);
    assert_eq!(run("shown", &binary), "C++: 2 of 3\n");
}
