//! What earlier runs took, in a file per program, arguments, directory and machine, below the user's cache directory.
//!
//! Several vmpirun at a time may learn: each changes the file as a whole, under a lock, by renaming a new one over it. A file that makes no
//! sense is as good as none. Nothing here can keep a job from running.

use super::choice::{KEPT, Record, Run};
use crate::program::Program;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SCHEMA: u32 = 1;
/// Longest file that is read.
const MOST_BYTES: u64 = 1 << 20;
/// Files kept; the oldest go first.
const MOST_FILES: usize = 500;
/// How long to wait for others that are writing: looks, and the time between two.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// Why nothing can be remembered.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("neither XDG_CACHE_HOME nor HOME names a directory")]
    NoPlace,
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: another vmpirun holds the lock", path.display())]
    Locked { path: PathBuf },
}

fn of_file(path: &Path) -> impl Fn(io::Error) -> MemoryError + '_ {
    |source| MemoryError::File { path: path.into(), source }
}

/// Which file on disk: it changes when the program is built again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    files: Vec<(PathBuf, u64, u64, i64, i64)>,
}

impl Identity {
    /// Of the program, and of the script if it is an interpreter.
    ///
    /// # Errors
    /// The program's file cannot be looked at.
    pub fn of(program: &Program, arguments: &[String], cwd: &Path) -> Result<Identity, MemoryError> {
        let stamp = |path: &Path| -> io::Result<(PathBuf, u64, u64, i64, i64)> {
            let found = fs::metadata(path)?;
            Ok((path.into(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        };
        let mut files = vec![stamp(&program.path).map_err(of_file(&program.path))?];
        let script = arguments.iter().map(|argument| cwd.join(argument)).find(|path| path.is_file());
        if let Some(stamp) = script.filter(|_| program.is_launcher()).and_then(|script| stamp(&script).ok()) {
            files.push(stamp);
        }
        Ok(Identity { files })
    }
}

/// What a memory belongs to.
#[derive(Debug)]
pub struct Key<'a> {
    pub program: &'a Path,
    pub arguments: &'a [String],
    pub cwd: &'a Path,
    pub ranks: Option<u32>,
    pub cores: u32,
}

impl Key<'_> {
    fn words(&self) -> Vec<String> {
        let places = [self.program, self.cwd].map(|path| path.display().to_string());
        let numbers = [format!("{:?}", self.ranks), self.cores.to_string()];
        places.into_iter().chain(numbers).chain(self.arguments.iter().cloned()).collect()
    }

    /// A name for the file: FNV-1a of the words.
    fn number(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in self.words().iter().flat_map(|word| word.bytes().chain([0])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash
    }
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema_version: u32,
    /// The key in words: two keys may have one number.
    of: Vec<String>,
    identity: Identity,
    records: Vec<Record>,
}

/// What is there.
#[derive(Debug, PartialEq)]
pub enum Recall {
    Nothing,
    Records(Vec<Record>),
    /// It was of another build of the program.
    Changed,
    Damaged(String),
}

/// One program's file.
pub struct Memory {
    path: PathBuf,
    of: Vec<String>,
}

impl Memory {
    /// The file of this key; it need not exist, but its directory can be written.
    ///
    /// # Errors
    /// There is no cache directory, or it cannot be made or written.
    pub fn open(key: &Key) -> Result<Memory, MemoryError> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        Memory::open_in(&cache.ok_or(MemoryError::NoPlace)?.join("vmpi").join("auto"), key)
    }

    fn open_in(dir: &Path, key: &Key) -> Result<Memory, MemoryError> {
        // Command lines are nobody else's business.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(of_file(dir))?;
        nix::unistd::access(dir, nix::unistd::AccessFlags::W_OK).map_err(|errno| of_file(dir)(errno.into()))?;
        Ok(Memory { path: dir.join(format!("{:016x}.json", key.number())), of: key.words() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What earlier runs of this program took.
    pub fn recall(&self, identity: &Identity) -> Recall {
        let mut text = String::new();
        let open = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&self.path);
        let read = open.and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        match read {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Recall::Nothing,
            Err(e) => return Recall::Damaged(e.to_string()),
            Ok(_) => {}
        }
        let document: Document = match serde_json::from_str(&text) {
            Ok(document) => document,
            Err(e) => return Recall::Damaged(e.to_string()),
        };
        if document.schema_version != SCHEMA || document.of != self.of {
            return Recall::Nothing;
        }
        if document.identity != *identity {
            return Recall::Changed;
        }
        let sane = |record: &Record| record.v > 0 && record.runs.len() <= KEPT && record.runs.iter().all(Run::is_sane);
        if !document.records.iter().all(sane) {
            return Recall::Damaged("it holds figures that no clock can show".into());
        }
        Recall::Records(document.records)
    }

    /// Add a run with `v`; `None`: a rank failed.
    ///
    /// # Errors
    /// The file cannot be locked or written.
    pub fn record(&self, identity: &Identity, v: u32, outcome: Option<Run>) -> Result<(), MemoryError> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        let _lock = lock(&dir.join("lock"))?;
        // Again: another vmpirun may have written meanwhile.
        let mut records = match self.recall(identity) {
            Recall::Records(records) => records,
            Recall::Nothing | Recall::Changed | Recall::Damaged(_) => Vec::new(),
        };
        if !records.iter().any(|record| record.v == v) {
            records.push(Record { v, ..Record::default() });
        }
        for record in records.iter_mut().filter(|record| record.v == v) {
            match outcome.filter(Run::is_sane) {
                Some(run) => {
                    record.runs.push(run);
                    record.runs.drain(..record.runs.len().saturating_sub(KEPT));
                    record.failures = 0;
                }
                None => record.failures = record.failures.saturating_add(1),
            }
        }
        let document = Document { schema_version: SCHEMA, of: self.of.clone(), identity: identity.clone(), records };
        let new = self.path.with_extension(format!("{}.tmp", std::process::id()));
        let text = serde_json::to_string_pretty(&document).map_err(|e| of_file(&new)(e.into()))?;
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        forget(dir);
        written.map_err(of_file(&self.path))
    }
}

/// Wait for the others, but not for long: they only write a small file.
fn lock(path: &Path) -> Result<Flock<File>, MemoryError> {
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(of_file(path))?;
    for _ in 0..LOOKS {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((back, nix::errno::Errno::EWOULDBLOCK)) => file = back,
            Err((_, errno)) => return Err(of_file(path)(errno.into())),
        }
        std::thread::sleep(PAUSE);
    }
    Err(MemoryError::Locked { path: path.into() })
}

/// Is it called as a memory is (`Memory::open_in`)? The user may keep other files there.
fn is_memory(path: &Path) -> bool {
    let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json"));
    number.is_some_and(|number| number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Keep the newest files only.
fn forget(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_memory(path)).collect();
    if files.len() <= MOST_FILES {
        return;
    }
    let mut aged: Vec<_> =
        files.into_iter().map(|path| (path.metadata().and_then(|found| found.modified()).ok(), path)).collect();
    aged.sort();
    let surplus = aged.len() - MOST_FILES;
    for (_, path) in aged.into_iter().take(surplus) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Kind;

    struct Room(PathBuf);

    impl Room {
        fn new(name: &str) -> Room {
            let dir = std::env::temp_dir().join(format!("vmpi-auto-{}-{name}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            Room(dir)
        }

        fn memory(&self, ranks: Option<u32>) -> Memory {
            let arguments = ["in.txt".to_string()];
            let key =
                Key { program: Path::new("/bin/app"), arguments: &arguments, cwd: Path::new("/"), ranks, cores: 2 };
            Memory::open_in(&self.0.join("cache"), &key).unwrap()
        }

        fn identity(&self) -> Identity {
            let path = self.0.join("app");
            if !path.exists() {
                fs::write(&path, "one").unwrap();
            }
            let program = Program { path, kind: Kind::Script { interpreter: "/bin/sh".into() } };
            Identity::of(&program, &["script".into()], &self.0).unwrap()
        }
    }

    impl Drop for Room {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn run(elapsed_s: f64) -> Option<Run> {
        Some(Run { elapsed_s, idle: 0.1, handoff: 0.01 })
    }

    #[test]
    fn what_is_recorded_is_recalled_and_of_each_v_the_last_runs_only() {
        let room = Room::new("recall");
        let (memory, identity) = (room.memory(None), room.identity());
        assert_eq!(memory.recall(&identity), Recall::Nothing);
        for at in 0..8 {
            memory.record(&identity, 2, run(1.0 + f64::from(at))).unwrap();
        }
        memory.record(&identity, 3, None).unwrap();
        let Recall::Records(records) = memory.recall(&identity) else { panic!("nothing there") };
        assert_eq!(records[0].runs.iter().map(|run| run.elapsed_s).collect::<Vec<_>>(), [4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!((records[1].v, records[1].failures), (3, 1));
        assert_eq!(room.memory(Some(4)).recall(&identity), Recall::Nothing, "another question has another memory");
    }

    #[test]
    fn another_build_and_another_script_begin_anew() {
        let room = Room::new("changed");
        let memory = room.memory(None);
        let before = room.identity();
        memory.record(&before, 2, run(1.0)).unwrap();
        fs::write(room.0.join("app"), "another").unwrap();
        let after = room.identity();
        assert_eq!(memory.recall(&after), Recall::Changed);
        fs::write(room.0.join("script"), "print(1)").unwrap();
        let with_script = room.identity();
        assert_ne!(after, with_script, "the script counts, too");
        memory.record(&with_script, 1, run(2.0)).unwrap();
        let Recall::Records(records) = memory.recall(&with_script) else { panic!("nothing there") };
        assert_eq!(records.len(), 1, "what the other build took is gone");
    }

    #[test]
    fn damage_is_as_good_as_nothing() {
        let room = Room::new("damaged");
        let (memory, identity) = (room.memory(None), room.identity());
        memory.record(&identity, 2, run(1.0)).unwrap();
        let good = fs::read_to_string(memory.path()).unwrap();
        for bad in [
            "",
            "{",
            "[]",
            "\u{0}\u{0}",
            &good[..good.len() / 2],
            &good.replace("1.0", "-1.0"),
            &good.replace("1.0", "1e999"),
        ] {
            fs::write(memory.path(), bad).unwrap();
            assert!(matches!(memory.recall(&identity), Recall::Damaged(_)), "{bad}");
        }
        fs::write(memory.path(), [0xff, 0xfe]).unwrap();
        assert!(matches!(memory.recall(&identity), Recall::Damaged(_)));
        memory.record(&identity, 2, run(3.0)).unwrap();
        assert!(matches!(memory.recall(&identity), Recall::Records(_)), "and is written anew");
    }

    #[test]
    fn many_learn_at_a_time() {
        let room = Room::new("many");
        let identity = room.identity();
        std::thread::scope(|scope| {
            for v in 1..=8 {
                let (memory, identity) = (room.memory(None), &identity);
                scope.spawn(move || (0..3).for_each(|_| memory.record(identity, v, run(1.0)).unwrap()));
            }
        });
        let Recall::Records(records) = room.memory(None).recall(&identity) else { panic!("nothing there") };
        assert_eq!(records.iter().map(|record| record.runs.len()).sum::<usize>(), 24);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error() {
        let room = Room::new("unwritable");
        fs::write(room.0.join("cache"), "a file").unwrap();
        let key = Key { program: Path::new("/bin/app"), arguments: &[], cwd: Path::new("/"), ranks: None, cores: 2 };
        assert!(Memory::open_in(&room.0.join("cache"), &key).is_err());
        let locked = File::options().create(true).truncate(false).write(true).open(room.0.join("lock")).unwrap();
        let _held = Flock::lock(locked, FlockArg::LockExclusive).unwrap();
        assert!(matches!(lock(&room.0.join("lock")), Err(MemoryError::Locked { .. })));
    }
    #[test]
    fn only_memories_are_forgotten() {
        let room = Room::new("forget");
        let own = ["my results.json", "0123456789abcdef.json.bak", "notes.json"].map(|name| room.0.join(name));
        own.iter().for_each(|path| fs::write(path, "mine").unwrap());
        for number in 0..MOST_FILES + 3 {
            fs::write(room.0.join(format!("{number:016x}.json")), "{}").unwrap();
        }
        let before = fs::read_dir(&room.0).unwrap().count();
        forget(&room.0);
        assert_eq!(fs::read_dir(&room.0).unwrap().count(), before - 3);
        assert!(own.iter().all(|path| path.exists()));
        let pipe = room.0.join("lock");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(lock(&pipe).is_err(), "nobody waits for its reader");
    }
}
