//! One row of a suite.

use crate::compile::{Mpi, made};
use crate::job::Vmpirun;
use crate::oracle;
use crate::place::Turn;
use crate::report;
use crate::scratch::Scratch;
use std::time::Duration;

/// Which of the installed MPIs offer what a program calls; where none does, the program's own checks decide.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Peers {
    Both,
    /// MPI 4.0: MPICH does, Open MPI 4.1 does not.
    Mpich,
    /// Debian's do, and PyPI's MPICH 5, which is asked about the standard ABI, dies on the way.
    Debian,
    /// Programs that spawn or connect. Debian's MPICH cannot under its launcher ("Error in spawn call"), and Open MPI 4.1 hangs
    /// now and then (on some machines of two cores three times of three): what it answered is in tests/data/answers.
    Recorded,
    Neither,
}

/// A program of tests/programs, and how to run it.
#[derive(Copy, Clone, Debug)]
pub struct Case {
    pub program: &'static str,
    /// Numbers of ranks, each run in turn.
    pub ranks: &'static [u32],
    pub v: u32,
    pub args: &'static [&'static str],
    pub env: &'static [(&'static str, &'static str)],
    /// More flags for vmpirun.
    pub flags: &'static [&'static str],
    pub deadline_s: u64,
    /// At most one rank was RUNNING on each core at every scheduling point (SPECIFICATION 2.1); not demanded of programs that spin
    /// outside MPI, where the watchdog lets another rank run.
    pub one_running: bool,
    /// No other test beside it: the program counts what a disturbed machine does to it.
    pub alone: bool,
    pub peers: Peers,
}

impl Case {
    /// What most rows have in common.
    pub const DEFAULT: Case = Case {
        program: "",
        ranks: &[2, 6],
        v: 3,
        args: &[],
        env: &[],
        flags: &[],
        deadline_s: 120,
        one_running: true,
        alone: false,
        peers: Peers::Both,
    };

    /// The real MPI's answer. MPICH spins without yielding, and takes minutes with more ranks than cores: then the same source
    /// built with Open MPI is asked (the programs print the same under both). The oracle of the standard ABI has no
    /// Fortran, so that of MPICH is asked.
    fn oracle(&self, mpi: Mpi, ranks: u32, cwd: &std::path::Path) -> oracle::Answer {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let by_itself = match self.peers {
            Peers::Both | Peers::Recorded => false,
            Peers::Debian => mpi == Mpi::Standard,
            Peers::Mpich => mpi != Mpi::Mpich || ranks > cores,
            Peers::Neither => true,
        };
        if by_itself {
            return oracle::Answer { code: 0, stdout: "all checks hold\n".into() };
        }
        let foreign = mpi == Mpi::Standard && !self.program.ends_with(".c");
        let judge = match mpi {
            _ if ranks > cores || self.peers == Peers::Recorded => Mpi::Openmpi,
            Mpi::Standard if foreign => Mpi::Mpich,
            mpi => mpi,
        };
        let binary = made(self.program, judge);
        if self.peers == Peers::Recorded {
            return oracle::recall(judge, self.program, &binary, ranks, cwd);
        }
        oracle::ask(judge, &binary, ranks, self.args, self.env, cwd)
    }

    /// Run under vmpi, and demand the exit code and the output of the real MPI.
    ///
    /// # Panics
    /// If they differ, and as [`Vmpirun::run`].
    pub fn check(&self, mpi: Mpi) {
        if !self.alone {
            Turn::beside_others();
        }
        // Of its own: others may write files of the same names.
        let scratch = Scratch::new("cwd");
        let cwd = scratch.path();
        for &ranks in self.ranks {
            let binary = made(self.program, mpi);
            let wanted = self.oracle(mpi, ranks, cwd);
            let mut run = Vmpirun::new(&format!("{}-{}-{ranks}", self.program, mpi.name()));
            run = run
                .args(["-n", &ranks.to_string(), "-V", &self.v.to_string(), "--report=full"])
                .args(self.flags)
                .arg(&binary);
            for (key, value) in self.env {
                run = run.env(key, value);
            }
            let got = run.args(self.args).cwd(cwd).deadline(Duration::from_secs(self.deadline_s)).run();
            let told =
                format!("{} {:?}, {} ranks, V {}, built for {}", self.program, self.args, ranks, self.v, mpi.name());
            if (got.code, &got.stdout) != (wanted.code, &wanted.stdout) {
                panic!(
                    "{told}: exit code {} (the real MPI: {})\n{}\n--- stderr\n{}",
                    got.code,
                    wanted.code,
                    first_difference(&got.stdout, &wanted.stdout),
                    got.stderr
                );
            }
            let cores = report::cores(&got.stderr);
            assert!(!cores.is_empty(), "{told}: vmpirun --report=full printed no table of cores\n{}", got.stderr);
            if self.one_running {
                let good = cores.iter().all(|core| core.max_running <= 1 && core.violations == 0);
                assert!(good, "{told}: more than one rank was RUNNING on a core: {cores:?}");
            }
        }
    }
}

/// Where two texts part, in words.
pub fn first_difference(got: &str, wanted: &str) -> String {
    let (mut a, mut b) = (got.lines(), wanted.lines());
    for number in 1.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (x, y) if x == y => {}
            (x, y) => {
                return format!(
                    "line {number} of stdout: {:?}\n      the real MPI's: {:?}",
                    x.unwrap_or("(end)"),
                    y.unwrap_or("(end)")
                );
            }
        }
    }
    "the outputs are the same, line by line".into()
}

/// Make one module per row with one test per MPI: `suite! { name: Case { ... }; ... }`.
#[macro_export]
macro_rules! suite {
    ($($name:ident: $case:expr;)*) => { $(
        mod $name {
            use super::*;
            #[test]
            fn openmpi() {
                let case: $crate::case::Case = $case;
                case.check($crate::compile::Mpi::Openmpi);
            }
            #[test]
            fn mpich() {
                let case: $crate::case::Case = $case;
                case.check($crate::compile::Mpi::Mpich);
            }
            #[test]
            fn standard() {
                let case: $crate::case::Case = $case;
                case.check($crate::compile::Mpi::Standard);
            }
        }
    )* };
}
