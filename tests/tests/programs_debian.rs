//! Numerical libraries and programs of chemistry, biology and algebra as Debian ships them, unmodified: the answers are those
//! under the MPI that they were built for. docs/applications.md lists them, and those that were tried by hand.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vmpi_tests::case::first_difference;
use vmpi_tests::compile::Mpi;
use vmpi_tests::job::Vmpirun;
use vmpi_tests::oracle;
use vmpi_tests::place::{Turn, room, top};

/// What may differ between two correct runs, and is not compared.
enum Compare {
    /// Nothing.
    All,
    /// Times: lines with this in them.
    But(&'static str),
    /// Times, rates and residuals: words with a decimal point.
    WithoutDecimals,
    /// Everything but the lines with this in them.
    Only(&'static str),
}

impl Compare {
    fn applied(&self, text: &str) -> String {
        let kept = text.lines().filter(|line| match self {
            Compare::But(word) => !line.contains(word),
            Compare::Only(word) => line.contains(word),
            _ => true,
        });
        let decimal =
            |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || ".Ee+-".contains(c));
        let line = |line: &str| match self {
            Compare::WithoutDecimals => line.split_whitespace().filter(|w| !decimal(w)).collect::<Vec<_>>().join(" "),
            _ => line.trim_end().to_owned(),
        };
        kept.map(|l| line(l) + "\n").collect()
    }
}

/// A program of a Debian package.
struct Program {
    /// Built for `mpi`.
    path: &'static str,
    mpi: Mpi,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// Where it runs; its own directory below target/ by default.
    directory: Option<&'static str>,
    /// What a shell does there before.
    prepare: &'static str,
    ranks: &'static [u32],
    compare: Compare,
    /// What must stand in the output, so that two failures are not called equal.
    demand: &'static str,
    /// MPICH spins where ranks share a core, and takes minutes: the same program built for Open MPI is asked.
    asked: Option<&'static str>,
}

const DEFAULT: Program = Program {
    path: "",
    mpi: Mpi::Openmpi,
    args: &[],
    env: &[],
    directory: None,
    prepare: "",
    ranks: &[6],
    compare: Compare::All,
    demand: "",
    asked: None,
};

/// One thread a rank, where a BLAS would make its own.
const ONE_THREAD: &[(&str, &str)] = &[("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1")];

impl Program {
    /// # Panics
    /// If the answers differ, or the package is missing.
    fn check(&self, name: &str) {
        Turn::beside_others();
        for path in [Some(self.path), self.asked].into_iter().flatten() {
            assert!(Path::new(path).exists(), "no {path}: run `cargo xtask setup` first");
        }
        let data = top().join("tests/data").display().to_string();
        let args: Vec<String> = self.args.iter().map(|a| a.replace("DATA", &data)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let env: Vec<(&str, &str)> = ONE_THREAD.iter().chain(self.env).copied().collect();
        let own = room(name);
        let directory = self.directory.map_or(own.as_path(), Path::new);
        if !self.prepare.is_empty() {
            let script = self.prepare.replace("DATA", &data);
            let output = Command::new("/bin/sh").args(["-ec", &script]).current_dir(directory).output();
            let output = output.unwrap_or_else(|e| panic!("/bin/sh: {e}"));
            assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        for &ranks in self.ranks {
            let asked = Path::new(self.asked.unwrap_or(self.path));
            let wanted = oracle::ask(Mpi::Openmpi, asked, ranks, &args, &env, directory);
            assert_eq!(wanted.code, 0, "{name} fails under Open MPI itself\n{}", wanted.stdout);
            let numbers = ["-n".to_owned(), ranks.to_string(), "-V".to_owned(), ranks.div_ceil(2).to_string()];
            let mut run = Vmpirun::new(&format!("{name}-{ranks}")).args(numbers).arg(self.path).args(&args);
            for (key, value) in &env {
                run = run.env(key, value);
            }
            let got = run.cwd(directory).deadline(Duration::from_secs(300)).run();
            let told = format!("{} {args:?}, built for {}, {ranks} ranks", self.path, self.mpi.name());
            assert_eq!(got.code, 0, "{told}\n{}\n--- stderr\n{}", got.stdout, got.stderr);
            let (ours, theirs) = (self.compare.applied(&got.stdout), self.compare.applied(&wanted.stdout));
            assert!(
                theirs.contains(self.demand),
                "{told}: no {:?} under Open MPI itself:\n{}",
                self.demand,
                wanted.stdout
            );
            assert!(ours == theirs, "{told}\n{}", first_difference(&ours, &theirs));
        }
    }
}

/// A tester of ScaLAPACK, built for both MPIs; the numbers in it are of tests that pass.
fn scalapack(name: &str, demand: &'static str) {
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        let path = |mpi: Mpi| format!("/usr/lib/x86_64-linux-gnu/scalapack/{}-tests/{name}", mpi.name()).leak() as &str;
        let program = Program {
            path: path(mpi),
            asked: Some(path(Mpi::Openmpi)),
            mpi,
            directory: Some(if name.starts_with("PBLAS") {
                "/usr/share/scalapack/PBLAS"
            } else {
                "/usr/share/scalapack"
            }),
            compare: Compare::WithoutDecimals,
            demand,
            ..DEFAULT
        };
        program.check(&format!("{}-{}", name.replace('/', "-"), mpi.name()));
    }
}

const PASSED: &str = "\n0 tests completed and failed residual checks.\n";

#[test]
fn scalapack_qr() {
    scalapack("xdqr", PASSED);
}

#[test]
fn scalapack_band_lu() {
    scalapack("xsgblu", PASSED);
}

#[test]
fn scalapack_inverse_of_complex_matrices() {
    scalapack("xzinv", PASSED);
}

#[test]
fn scalapack_hessenberg() {
    scalapack("xzhrd", PASSED);
}

#[test]
fn pblas() {
    scalapack("PBLAS/dpb1tst", "PASSED");
}

/// Make one test per program.
macro_rules! programs {
    ($($(#[$attribute:meta])* $name:ident: $program:expr;)*) => { $(
        #[test]
        $(#[$attribute])*
        fn $name() {
            let program: Program = $program;
            program.check(stringify!($name));
        }
    )* };
}

/// A solver of MUMPS, which reads its matrix from the standard input of rank 0.
const fn mumps(args: &'static [&'static str]) -> Program {
    Program {
        path: "/bin/sh",
        args,
        ranks: &[1, 4, 6],
        // "Time to build/scatter RHS", "Elapsed time in solve driver"
        compare: Compare::But("ime "),
        demand: "Solution is",
        ..DEFAULT
    }
}

programs! {
    mumps_real: mumps(&["-c", "exec /usr/lib/mumps/dsimpletest < /usr/lib/mumps/input_simpletest_real"]);
    mumps_complex: mumps(&["-c", "exec /usr/lib/mumps/zsimpletest < /usr/lib/mumps/input_simpletest_cmplx"]);
    // And hypre, SuperLU_DIST and MUMPS inside it, and SLEPc.
    petsc: Program {
        path: "/usr/bin/python3",
        args: &["DATA/petsc.py"],
        env: &[(
            "PYTHONPATH",
            "/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages:\
             /usr/lib/slepcdir/slepc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages",
        )],
        demand: "eigenvalues: ",
        ..DEFAULT
    };
    // ARMCI over MPI's one-sided communication.
    nwchem_of_openmpi: Program {
        path: "/usr/bin/nwchem.openmpi",
        args: &["DATA/h2o.nw"],
        compare: Compare::Only("Total SCF energy ="),
        demand: "-75.98399682",
        ..DEFAULT
    };
    nwchem_of_mpich: Program {
        path: "/usr/bin/nwchem.mpich",
        mpi: Mpi::Mpich,
        asked: Some("/usr/bin/nwchem.openmpi"),
        args: &["DATA/h2o.nw"],
        compare: Compare::Only("Total SCF energy ="),
        demand: "-75.98399682",
        ..DEFAULT
    };
    iqtree: Program {
        path: "/usr/bin/iqtree2-mpi",
        args: &["-s", "/usr/share/doc/iqtree/examples/example.phy", "-m", "HKY", "-seed", "1", "-nt", "1", "-redo", "-n", "4",
            "-pre", "iqtree"],
        compare: Compare::Only("BEST SCORE FOUND"),
        demand: "BEST SCORE FOUND : -2",
        ..DEFAULT
    };
    // R's start script would put the system's directories before the faces; one rank spawns three slaves.
    rmpi: Program {
        path: "/usr/bin/Rscript",
        args: &["DATA/rmpi.R"],
        ranks: &[1, 3],
        demand: " sum ",
        ..DEFAULT
    };
    parform: Program {
        path: "/usr/bin/parform",
        args: &["-q", "DATA/polynomial.frm"],
        ranks: &[2, 6],
        demand: "531441*d^12",
        ..DEFAULT
    };
    // Of the following the digits are compared that do not depend on the order of sums.
    #[ignore = "second tier"]
    quantum_espresso: Program {
        prepare: "zcat /usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz > Si.UPF",
        path: "/usr/bin/pw.x",
        args: &["-npool", "2", "-in", "DATA/silicon.pw"],
        compare: Compare::Only("!    total energy"),
        demand: "-15.85081793 Ry",
        ..DEFAULT
    };
    #[ignore = "second tier"]
    cp2k: Program {
        path: "/bin/sh",
        args: &["-c", r"cp2k.psmp -i DATA/h2o.cp2k | sed -n 's/.*FORCE_EVAL.*\(-[0-9]*\.[0-9]\{9\}\).*/energy \1/p'"],
        demand: "energy -17.160327043",
        ..DEFAULT
    };
    #[ignore = "second tier"]
    abinit: Program {
        // Its output goes beside its input.
        prepare: "cp DATA/silicon.abi . && rm -f silicon.abo*",
        path: "/usr/bin/abinit",
        args: &["silicon.abi"],
        compare: Compare::Only(" ETOT "),
        demand: "-8.86623781",
        ..DEFAULT
    };
    #[ignore = "second tier"]
    gpaw: Program {
        path: "/usr/bin/gpaw",
        args: &["python", "DATA/hydrogen.py"],
        demand: "energy -6.42234",
        ..DEFAULT
    };
    #[ignore = "second tier"]
    liggghts: Program {
        path: "/usr/bin/liggghts",
        args: &["-in", "DATA/pack.liggghts"],
        compare: Compare::Only("    2000     2000"),
        demand: "0.0792967",
        ..DEFAULT
    };
    // Who sends to whom is found out by probing and a nonblocking barrier, round after round with one tag.
    #[ignore = "second tier"]
    dolfinx: Program {
        path: "/usr/bin/python3",
        args: &["DATA/refined.py"],
        compare: Compare::Only("cells"),
        ranks: &[4, 6],
        demand: "cells 10368 unknowns 13428",
        ..DEFAULT
    };
    // Ranks that look for messages all the time, and work between two looks.
    #[ignore = "second tier"]
    abyss: Program {
        prepare: "python3 DATA/reads.py > reads.fasta",
        path: "/bin/sh",
        args: &["-c", "/usr/lib/abyss/ABYSS-P -k31 -c3 -e2 -E0 -b0 -o contigs.fasta reads.fasta | grep ^Assembled || true"],
        demand: "1 contigs",
        ..DEFAULT
    };
}

/// FFTW's library for MPI, called by a program of ours: Debian ships none.
#[test]
fn fftw() {
    let turn = Turn::take();
    let binary = room("bin").join("fft.openmpi");
    let mut compile = Command::new("mpicc.openmpi");
    compile.arg("-O1").arg(top().join("tests/data/fft.c")).arg("-o").arg(&binary);
    let output = compile.args(["-lfftw3_mpi", "-lfftw3", "-lm"]).output();
    let output = output.unwrap_or_else(|e| panic!("mpicc.openmpi: {e}; run `cargo xtask setup` first"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    drop(turn);
    let path = binary.display().to_string().leak();
    Program { path, ranks: &[1, 4, 6], demand: "real, two dimensions", ..DEFAULT }.check("fftw");
}
