//! The second tier: suites that take many minutes. `cargo xtask test --tier 2` runs them, and CI where time allows.
//!
//! mpi4py's whole test suite, each ABI, on 1 to 5 ranks. What may fail or be skipped is in tests/data/mpi4py-allowed.tsv, made
//! from runs under Open MPI 5 and MPICH 5 (docs/mpi4py.md); anything else is a defect.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use vmpi_tests::installation::mpi4py_of_our_own;
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::{Turn, room, top, venv};

/// What a row of the table allows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Allowed {
    /// Tests that a peer fails too, or that are known to be missing.
    Fail,
    /// Tests that mpi4py leaves out for the row's reason.
    Skip,
}

struct Row {
    what: Allowed,
    abis: Vec<String>,
    /// A test's name, or its beginning before a `*`.
    test: String,
    reason: String,
}

fn table() -> Vec<Row> {
    let path = top().join("tests/data/mpi4py-allowed.tsv");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| {
        let [what, abis, test, reason, ..] = line.split('\t').collect::<Vec<&str>>()[..] else {
            panic!("{}: not what, ABIs, test, reason: {line:?}", path.display())
        };
        let what = match what {
            "fail" => Allowed::Fail,
            "skip" => Allowed::Skip,
            _ => panic!("{}: neither fail nor skip: {line:?}", path.display()),
        };
        Row { what, abis: abis.split(',').map(str::to_owned).collect(), test: test.into(), reason: reason.into() }
    })
    .collect()
}

impl Row {
    fn allows(&self, what: Allowed, abi: &str, test: &str, reason: &str) -> bool {
        let named = match self.test.strip_suffix('*') {
            Some(beginning) => test.starts_with(beginning),
            None => test == self.test,
        };
        // How a failure is worded is no part of the agreement.
        self.what == what
            && named
            && self.abis.iter().any(|a| a == abi)
            && (what == Allowed::Fail || reason == self.reason)
    }
}

/// The whole suite once; everything that is not allowed, in words.
fn suite(abi: &str, ranks: u32) {
    let main = top().join("target/sources/mpi4py-4.1.2/test/main.py");
    assert!(main.is_file(), "no {}: run `cargo xtask setup` first", main.display());
    let python = match abi {
        "mpiabi" => {
            let _turn = Turn::take();
            mpi4py_of_our_own()
        }
        _ => venv(),
    };
    let results = room(&format!("mpi4py-suite/{abi}-{ranks}"));
    fs::remove_dir_all(&results).and_then(|()| fs::create_dir(&results)).expect("target/ is writable");
    let outcome = Vmpirun::new(&format!("mpi4py-{abi}-{ranks}"))
        .args(["-n", &ranks.to_string()])
        .deadline(Duration::from_secs(1500))
        .env("MPI4PY_MPIABI", abi)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(python.join("bin/python"))
        .args([top().join("tests/mpi4py/suite.py"), main, results.clone()])
        .args(["-q", "--no-numpy"])
        .cwd(room("cwd"))
        .run();
    let files: Vec<PathBuf> = (0..ranks).map(|rank| results.join(format!("{rank}.tsv"))).collect();
    let (allowed, mut wrong, mut started) = (table(), BTreeSet::new(), BTreeSet::new());
    for (rank, file) in files.iter().enumerate() {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}\n{}", file.display(), outcome.stderr));
        let mut number = 0;
        for line in text.lines() {
            let (what, rest) = line.split_once('\t').unwrap_or((line, ""));
            let (test, reason) = rest.split_once('\t').unwrap_or((rest, ""));
            let what = match what {
                "skip" => Allowed::Skip,
                "fail" => Allowed::Fail,
                "start" => {
                    number += 1;
                    continue;
                }
                _ => continue,
            };
            if !allowed.iter().any(|row| row.allows(what, abi, test, reason)) {
                wrong.insert(format!("{what:?} {test}: {reason}"));
            }
        }
        if !text.lines().last().is_some_and(|line| line.starts_with("end\t")) {
            wrong.insert(format!("rank {rank} did not end"));
        }
        started.insert(number);
    }
    assert!(wrong.is_empty(), "{abi}, {ranks} ranks: {wrong:#?}\n--- stderr\n{}", outcome.stderr);
    assert!(started.len() == 1 && started.first() > Some(&2000), "ranks ran {started:?} tests");
}

macro_rules! suites {
    ($($abi:ident: $($name:ident $ranks:literal),*;)*) => {$(
        mod $abi {
            $(
                #[test]
                #[ignore = "second tier"]
                fn $name() {
                    super::suite(stringify!($abi), $ranks);
                }
            )*
        }
    )*};
}

suites! {
    openmpi: mpi4py_1 1, mpi4py_2 2, mpi4py_3 3, mpi4py_4 4, mpi4py_5 5;
    mpich: mpi4py_1 1, mpi4py_2 2, mpi4py_3 3, mpi4py_4 4, mpi4py_5 5;
    mpiabi: mpi4py_1 1, mpi4py_2 2, mpi4py_3 3, mpi4py_4 4, mpi4py_5 5;
}
