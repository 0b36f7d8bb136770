//! A small installation of what compiles programs: the wrappers, headers, modules and the standard ABI's library.

use crate::place::{bin_dir, put_whole, room, top};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The names that CMake looks for.
const NAMES: &[(&str, &str)] = &[
    ("mpicc", "vmpicc"),
    ("mpicxx", "vmpicxx"),
    ("mpif77", "vmpifort"),
    ("mpif90", "vmpifort"),
    ("mpifort", "vmpifort"),
    ("mpiexec", "vmpirun"),
];

/// The installation's prefix, laid out as `cargo xtask install` does. Call it in a turn of one's own, or while `making`.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = room("prefix");
        let libraries = room("prefix/lib/vmpi/standard");
        // A copy, because the wrapper looks around where it really is.
        put_whole(&room("prefix/bin").join("vmpirun"), |copy| {
            fs::copy(bin_dir().join("vmpirun"), copy).unwrap_or_else(|e| panic!("no vmpirun: {e}"));
        });
        for name in ["vmpicc", "vmpicxx", "vmpifort"] {
            link(Path::new("vmpirun"), &room("prefix/bin").join(name));
        }
        for (name, program) in NAMES {
            link(&Path::new("../../../bin").join(program), &room("prefix/lib/vmpi/bin").join(name));
        }
        link(&top().join("libvmpi/include"), &room("prefix/include").join("vmpi"));
        let face = bin_dir().join("vmpi/standard/libmpi_abi.so.1");
        for name in ["libmpi_abi.so.1", "libmpi_abi.so", "libmpifort_abi.so"] {
            link(&face, &libraries.join(name));
        }
        modules(&prefix);
        prefix
    })
}

/// The Fortran modules, made by the wrapper if it or mpi.h has changed since.
fn modules(prefix: &Path) {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let made = changed(&prefix.join("lib/vmpi/fortran/mpi_f08.mod"));
    let wrapper = bin_dir().join("vmpifort");
    if made > changed(&wrapper) && made > changed(&top().join("libvmpi/include/mpi.h")) {
        return;
    }
    let mut make = Command::new(prefix.join("bin/vmpifort"));
    let output = make.arg("-modules").arg(prefix.join("lib/vmpi/fortran")).output().expect("it was just copied");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn link(from: &Path, to: &Path) {
    put_whole(to, |link| symlink(from, link).unwrap_or_else(|e| panic!("cannot link {}: {e}", link.display())));
}

/// A virtual environment with mpi4py built by vmpicc from its source on PyPI. Call it in one's turn only.
pub fn mpi4py_of_our_own() -> PathBuf {
    let dir = room("venv-mpi4py");
    let stamp = dir.join("vmpi-built.txt");
    let wanted =
        format!("mpi4py==4.1.2\n{}", fs::read_to_string(top().join("libvmpi/include/mpi.h")).expect("our header"));
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return dir;
    }
    let run = |command: &mut Command| {
        let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&dir));
    // Without optimization: what counts is which functions it finds, not how fast it is.
    let mut pip = Command::new(dir.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-cache-dir"]);
    pip.args(["--no-binary=mpi4py", "mpi4py==4.1.2"]).env("CFLAGS", "-O0").env("MPICC", prefix().join("bin/vmpicc"));
    run(&mut pip);
    fs::write(&stamp, wanted).expect("target/ is writable");
    dir
}
