//! PMI-1, as Hydra speaks it, and Slurm's pmi2 plugin, too: lines of `name=value` over the descriptor PMI_FD.
//!
//! The two differ from the documents and from each other: `rc` may be missing, any order of fields, any subversion; a command that Hydra does not know ends
//! the job, so that no other than these are sent. Hydra ends a job of which a process leaves without `finalize`, with code 0: `foreign` says `abort` then.

use super::Wire;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd};

/// Longer lines are no answers.
const MOST_BYTES: usize = 1 << 16;

#[derive(Debug)]
pub struct Pmi {
    to: File,
    from: BufReader<File>,
    rank: u32,
    size: u32,
    kvsname: String,
}

/// The value of a field of an answer.
fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    answer.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

impl Pmi {
    /// Greet the process manager whose descriptor PMI_FD names.
    pub fn start() -> Result<Pmi, String> {
        let number = |name: &str| {
            let value = std::env::var(name).map_err(|_| format!("{name} is not set"))?;
            value.parse::<u32>().map_err(|_| format!("{name} is {value:?}, not a number"))
        };
        let fd = number("PMI_FD")? as i32;
        let (rank, size) = (number("PMI_RANK")?, number("PMI_SIZE")?);
        // What this process starts must not have it.
        // SAFETY: fcntl with numbers; a descriptor that is not open is told by the result.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
            return Err(format!("the descriptor {fd} (PMI_FD) is not open"));
        }
        // SAFETY: the descriptor is open, and was made for the MPI library of this process.
        let to = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        Pmi::greet(to, rank, size)
    }

    fn greet(to: File, rank: u32, size: u32) -> Result<Pmi, String> {
        let from = BufReader::new(to.try_clone().map_err(|error| error.to_string())?);
        let mut pmi = Pmi { to, from, rank, size, kvsname: String::new() };
        pmi.ask("init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        let answer = pmi.ask("get_my_kvsname", "my_kvsname")?;
        pmi.kvsname = field(&answer, "kvsname").ok_or_else(|| format!("it gives no kvsname: {answer}"))?.to_string();
        Ok(pmi)
    }

    /// One question and its answer.
    fn ask(&mut self, command: &str, wanted: &str) -> Result<String, String> {
        self.to.write_all(format!("cmd={command}\n").as_bytes()).map_err(|error| format!("{command}: {error}"))?;
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut self.from, MOST_BYTES as u64);
        limited.read_until(b'\n', &mut line).map_err(|error| format!("{command}: {error}"))?;
        let answer = String::from_utf8_lossy(&line).trim_end().to_string();
        if !line.ends_with(b"\n") {
            return Err(format!("{command}: it has closed the connection"));
        }
        if field(&answer, "cmd") != Some(wanted) || field(&answer, "rc").is_some_and(|rc| rc != "0") {
            return Err(format!("{command}: it answers {answer}"));
        }
        Ok(answer)
    }
}

impl Wire for Pmi {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn job(&self) -> String {
        // Slurm's are `7.0`: of which user, at least.
        format!("{} {}", nix::unistd::geteuid(), self.kvsname)
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), String> {
        let kvsname = self.kvsname.clone();
        self.ask(&format!("put kvsname={kvsname} key={key} value={value}"), "put_result").map(drop)
    }

    fn fence(&mut self) -> Result<(), String> {
        self.ask("barrier_in", "barrier_out").map(drop)
    }

    fn get(&mut self, _: u32, key: &str) -> Result<String, String> {
        let kvsname = self.kvsname.clone();
        let answer = self.ask(&format!("get kvsname={kvsname} key={key}"), "get_result")?;
        field(&answer, "value").map(str::to_owned).ok_or_else(|| format!("get {key}: it answers {answer}"))
    }

    fn is_done(&self) -> bool {
        // Hydra makes one code of all of its processes' ends (it ors them), and takes MPI_Abort's by this way only.
        false
    }

    fn abort(&mut self, code: i32) {
        // It ends all of its processes, this one among them.
        let _ = self.to.write_all(format!("cmd=abort exitcode={code}\n").as_bytes());
    }

    fn finish(&mut self) -> Result<(), String> {
        self.ask("finalize", "finalize_ack").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// A process manager that answers each line by the next of `answers`; what it was asked.
    fn served(answers: &'static [&'static str]) -> (Result<Pmi, String>, std::thread::JoinHandle<Vec<String>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || {
            let mut asked = Vec::new();
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            for answer in answers {
                asked.extend(lines.next().and_then(Result::ok));
                (&theirs).write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        (Pmi::greet(File::from(OwnedFd::from(ours)), 1, 4), server)
    }

    #[test]
    fn hydras_and_slurms_answers_are_understood() {
        let hydra: &[&str] = &[
            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n",
            "cmd=my_kvsname rc=0 kvsname=kvs_7_0_1_h\n",
            "cmd=put_result rc=0\n",
            "cmd=barrier_out tag=0\n",
            "cmd=get_result rc=0 value=host/0-1\n",
            "cmd=finalize_ack rc=0\n",
        ];
        let slurm: &[&str] = &[
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
            "cmd=my_kvsname kvsname=6.0\n",
            "cmd=put_result rc=0\n",
            "cmd=barrier_out rc=0\n",
            "cmd=get_result rc=0 value=host/0-1\n",
            "cmd=finalize_ack rc=0\n",
        ];
        for answers in [hydra, slurm] {
            let (pmi, server) = served(answers);
            let mut pmi = pmi.unwrap();
            pmi.put("vmpi-1", "host/0-1").unwrap();
            pmi.fence().unwrap();
            assert_eq!(pmi.get(0, "vmpi-0").unwrap(), "host/0-1");
            pmi.finish().unwrap();
            let asked = server.join().unwrap();
            assert_eq!(asked[0], "cmd=init pmi_version=1 pmi_subversion=1");
            assert!(
                asked[2].starts_with("cmd=put kvsname=") && asked[2].ends_with("key=vmpi-1 value=host/0-1"),
                "{asked:?}"
            );
            assert_eq!(asked.last().unwrap(), "cmd=finalize");
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for (answers, part) in [
            (&[][..], "closed"),
            (&["cmd=response_to_init rc=-1\n"], "rc=-1"),
            (&["cmd=something rc=0\n"], "cmd=something"),
            (&["cmd=response_to_init rc=0\n", "cmd=my_kvsname rc=0\n"], "no kvsname"),
            (&["cmd=response_to_init rc=0"], "closed"),
        ] {
            let (pmi, server) = served(answers);
            server.join().unwrap();
            let why = pmi.unwrap_err();
            // The kernel tells a close by who has not read all as a reset.
            let closed = part == "closed" && ["reset", "Broken pipe"].iter().any(|word| why.contains(word));
            assert!(closed || why.contains(part), "{why}");
        }
    }
}
