//! Where things are: the installed tools, the test programs, room for results, and whose turn it is.

use nix::fcntl::{Flock, FlockArg};
use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The project's top directory.
pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_path_buf()
}

/// The directory of vmpirun, vmpictl and vmpid: `VMPI_BIN_DIR`, else target/release as `cargo xtask build` lays it out.
pub fn bin_dir() -> PathBuf {
    let dir = std::env::var_os("VMPI_BIN_DIR").map(PathBuf::from).unwrap_or_else(|| top().join("target/release"));
    assert!(dir.join("vmpirun").exists(), "no vmpirun in {}: run `cargo xtask build` first", dir.display());
    dir
}

/// A directory for this suite's files below target/.
pub fn room(name: &str) -> PathBuf {
    let dir = top().join("target/vmpi-tests").join(name);
    fs::create_dir_all(&dir).unwrap_or_else(|e| panic!("cannot create {}: {e}", dir.display()));
    dir
}

/// The virtual environment with the peers from PyPI: `VMPI_TEST_VENV`, else target/venv as `cargo xtask setup` makes it.
pub fn venv() -> PathBuf {
    let dir = std::env::var_os("VMPI_TEST_VENV").map(PathBuf::from).unwrap_or_else(|| top().join("target/venv"));
    assert!(
        dir.join("bin/python").exists(),
        "no virtual environment in {}: run `cargo xtask setup` first",
        dir.display()
    );
    dir
}

/// MPICH 5 from PyPI in a virtual environment of its own (in the other one, Intel MPI has files of the same names), the oracle
/// of the standard ABI: `VMPI_TEST_VENV_MPICH`, else target/venv-mpich here or in the repository's main worktree.
pub fn venv_mpich() -> PathBuf {
    let own = top().join("target/venv-mpich");
    let dir = std::env::var_os("VMPI_TEST_VENV_MPICH").map(PathBuf::from).unwrap_or_else(|| {
        let main = fs::read_to_string(top().join(".git")).ok().and_then(|text| {
            let git = PathBuf::from(text.strip_prefix("gitdir:")?.trim());
            Some(git.ancestors().nth(3)?.join("target/venv-mpich"))
        });
        if own.exists() { own } else { main.unwrap_or(own) }
    });
    assert!(dir.join("bin/mpiexec").exists(), "no MPICH in {}: run `cargo xtask setup` first", dir.display());
    dir
}

/// The schema of Perfetto's traces by its makers, from PyPI: `VMPI_TEST_VENV_PERFETTO`, else target/venv-perfetto.
pub fn venv_perfetto() -> PathBuf {
    let own = top().join("target/venv-perfetto");
    let dir = std::env::var_os("VMPI_TEST_VENV_PERFETTO").map_or(own, PathBuf::from);
    assert!(dir.join("bin/python").exists(), "no schema in {}: run `cargo xtask setup` first", dir.display());
    dir
}

/// The reader of OTF2 archives by the format's makers, from PyPI: `VMPI_TEST_VENV_OTF2`, else target/venv-otf2.
pub fn venv_otf2() -> PathBuf {
    let own = top().join("target/venv-otf2");
    let dir = std::env::var_os("VMPI_TEST_VENV_OTF2").map_or(own, PathBuf::from);
    assert!(dir.join("bin/python").exists(), "no reader in {}: run `cargo xtask setup` first", dir.display());
    dir
}

/// The right to start processes; given back when dropped. One test has it at a time, or several that do not mind each other (`Turn::beside_others`).
pub struct Turn {
    _lock: Flock<File>,
    _taken: Arc<()>,
}

thread_local! {
    /// The test that runs on this thread does not mind others of its kind beside it.
    static BESIDE_OTHERS: Cell<bool> = const { Cell::new(false) };
    /// The turn that this thread took last.
    static TAKEN: RefCell<Weak<()>> = const { RefCell::new(Weak::new()) };
}

impl Turn {
    /// From now on turns of this thread may be shared: for tests that wait for most of their time, or of which only the answers count. Not for what
    /// measures times, looks at all of the machine, or changes files that other tests use.
    pub fn beside_others() {
        BESIDE_OTHERS.set(true);
    }

    /// Waits for the others.
    ///
    /// # Panics
    /// This thread's last turn has not ended: it would wait for itself.
    pub fn take() -> Turn {
        let before = TAKEN.with_borrow(Weak::upgrade);
        assert!(before.is_none(), "this test takes its turn twice: a Vmpirun takes it when it is made");
        let taken = Arc::new(());
        TAKEN.set(Arc::downgrade(&taken));
        let how = if BESIDE_OTHERS.get() { FlockArg::LockShared } else { FlockArg::LockExclusive };
        Turn { _lock: lock("", "turn", how), _taken: taken }
    }
}

/// The right to make what several tests use (programs, the small installation), for those whose turn is shared; given back when dropped.
pub fn making() -> Flock<File> {
    lock("", "making", FlockArg::LockExclusive)
}

/// The right to make this one file; given back when dropped.
pub fn making_one(file: &Path) -> Flock<File> {
    let name = file.file_name().expect("it has a name").to_string_lossy();
    lock("making", &name, FlockArg::LockExclusive)
}

fn lock(within: &str, name: &str, how: FlockArg) -> Flock<File> {
    let path = room(within).join(format!("{name}.lock"));
    let file = File::create(&path).unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()));
    Flock::lock(file, how).expect("flock cannot fail on a fresh file")
}

/// Have `make` make a file, or whatever it is, somewhere beside `path`, and put it there when it is whole: another test may look for it meanwhile.
pub fn put_whole(path: &Path, make: impl FnOnce(&Path)) {
    let name = path.file_name().expect("it has a name").to_string_lossy();
    let unfinished = path.with_file_name(format!("{name}.{}.unfinished", std::process::id()));
    let _ = fs::remove_file(&unfinished);
    make(&unfinished);
    fs::rename(&unfinished, path).unwrap_or_else(|e| panic!("cannot make {}: {e}", path.display()));
}
