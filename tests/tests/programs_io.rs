//! Real users of MPI-IO as Debian and PyPI ship them: parallel HDF5 through h5py, PnetCDF's tools, mpi4py's own tests.

use std::path::PathBuf;
use std::time::Duration;
use vmpi_tests::compile::Mpi;
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::oracle::launcher;
use vmpi_tests::place::{Turn, room, top, venv};

fn vmpirun(name: &str, ranks: u32) -> Vmpirun {
    Turn::beside_others();
    let v = ranks.div_ceil(2).to_string();
    Vmpirun::new(name).args(["-n", &ranks.to_string(), "-V", &v]).deadline(Duration::from_secs(400))
}

fn succeeded(what: &str, outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{what}\n{}\n--- stderr\n{}", outcome.stdout, outcome.stderr);
}

/// Run a program under Debian's Open MPI, for which it was built.
fn openmpi(ranks: u32, program: &str, args: &[String], dir: &PathBuf) -> String {
    Turn::beside_others();
    let _turn = Turn::take();
    let output = launcher(Mpi::Openmpi, ranks).arg(program).args(args).current_dir(dir).output();
    let output = output.unwrap_or_else(|e| panic!("mpiexec.openmpi: {e}; run `cargo xtask setup` first"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Debian's h5py-mpi writes the same file under its own MPI and under vmpi, and reads back what it wrote.
#[test]
fn hdf5_files_are_those_of_openmpi() {
    let dir = room("h5py");
    let script = top().join("tests/data/h5.py").display().to_string();
    for ranks in [1, 3] {
        let path = |who: &str| dir.join(format!("{who}-{ranks}.h5"));
        let args = |who: &str| [script.clone(), path(who).display().to_string()];
        let wanted = openmpi(ranks, "/usr/bin/python3", &args("openmpi"), &dir);
        assert_eq!(wanted, "hdf5 agrees\n");
        let got = vmpirun(&format!("h5py-{ranks}"), ranks).arg("/usr/bin/python3").args(args("vmpi")).cwd(&dir).run();
        succeeded("h5py", &got);
        assert_eq!(got.stdout, wanted);
        let (ours, theirs) = (std::fs::read(path("vmpi")).unwrap(), std::fs::read(path("openmpi")).unwrap());
        assert!(ours == theirs, "{ranks} ranks: the files of {} and {} bytes differ", ours.len(), theirs.len());
    }
}

/// PnetCDF's tools, built for Open MPI: make a file, print it, compare two in parallel.
#[test]
fn pnetcdf_tools() {
    let dir = room("pnetcdf");
    let text = std::fs::read_to_string(top().join("tests/data/x.cdl")).unwrap();
    std::fs::write(dir.join("x.cdl"), &text).unwrap();
    std::fs::write(dir.join("y.cdl"), text.replace("160 ;", "161 ;")).unwrap();
    let words = |args: &[&str]| args.iter().map(|a| (*a).to_owned()).collect::<Vec<String>>();
    let run = |name: &str, ranks, tool: &str, args: &[&str]| {
        vmpirun(name, ranks).arg(format!("/usr/bin/{tool}")).args(args).cwd(&dir).run()
    };
    openmpi(1, "ncmpigen", &words(&["-o", "theirs.nc", "x.cdl"]), &dir);
    succeeded("ncmpigen", &run("ncmpigen", 1, "ncmpigen", &["-o", "ours.nc", "x.cdl"]));
    succeeded("ncmpigen", &run("ncmpigen-other", 1, "ncmpigen", &["-o", "other.nc", "y.cdl"]));
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    assert!(read("ours.nc") == read("theirs.nc"), "ncmpigen made another file than under Open MPI");
    let dump = run("ncmpidump", 1, "ncmpidump", &["ours.nc"]);
    assert_eq!(dump.stdout, openmpi(1, "ncmpidump", &words(&["ours.nc"]), &dir));
    let same = run("ncmpidiff", 3, "ncmpidiff", &["ours.nc", "theirs.nc"]);
    succeeded("ncmpidiff", &same);
    assert!(same.stdout.contains("All variables of two files are the same"), "{}", same.stdout);
    let different = run("ncmpidiff-other", 3, "ncmpidiff", &["ours.nc", "other.nc"]);
    assert_eq!(different.code, 1, "{}", different.stdout);
    assert!(different.stdout.contains("160 vs 161"), "{}", different.stdout);
}

/// mpi4py's tests of files, with the mpi4py of the virtual environment.
fn mpi4py(abi: &str) {
    let tests = top().join("target/sources/mpi4py-4.1.2/test/main.py");
    assert!(tests.is_file(), "no {}: run `cargo xtask setup` first", tests.display());
    for ranks in [1, 2, 4] {
        let outcome = vmpirun(&format!("mpi4py-io-{abi}-{ranks}"), ranks)
            .env("MPI4PY_MPIABI", abi)
            .arg(venv().join("bin/python"))
            .arg(&tests)
            .args(["-q", "test_io", "test_file"])
            .cwd(room("cwd"))
            .run();
        succeeded(&format!("mpi4py's test_io and test_file, {ranks} ranks, MPI4PY_MPIABI={abi}"), &outcome);
        assert_eq!(outcome.stderr.matches("Ran 89 tests").count(), ranks as usize, "{}", outcome.stderr);
    }
}

#[test]
fn mpi4py_files_with_the_abi_of_openmpi() {
    mpi4py("openmpi");
}

#[test]
fn mpi4py_files_with_the_abi_of_mpich() {
    mpi4py("mpich");
}
