//! `cargo xtask dist`: the same bytes from two directories, and packages that install, work and go without a trace on a
//! bare Debian 12 and 13.
//!
//! The packages are those of the commit that is checked out, made once for it; `VMPI_DIST_DIR` names others. Builds take
//! minutes, so all of this is of the second tier.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vmpi_tests::bare::Bare;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{kill_all, remaining};
use vmpi_tests::leftovers::{eventually, shared_memory_files};
use vmpi_tests::place::{Turn, making_one, room, top};
use vmpi_tests::scratch::Scratch;

/// Both streams of a command that must succeed.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// The packages of the commit, built in a clone of this name.
fn built_in(name: &str) -> PathBuf {
    let dir = room("dist").join(name);
    let _making = making_one(&dir);
    let (source, out, stamp) = (dir.join("source"), dir.join("out"), dir.join("commit"));
    let head = said(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(top()));
    if fs::read_to_string(&stamp).is_ok_and(|made| made == head) {
        return out;
    }
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("target/ is writable");
    said(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(top()).arg(&source));
    said(Command::new("git").args(["checkout", "--quiet", "--detach", head.trim()]).current_dir(&source));
    let mut dist = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    dist.args(["xtask", "dist", "--into"]).arg(&out).current_dir(&source);
    // xtask itself need not be the same bytes, so it is built once for both.
    dist.env("CARGO_TARGET_DIR", room("dist/tools")).env_remove("SOURCE_DATE_EPOCH").env_remove("RUSTFLAGS");
    said(&mut dist);
    let _ = fs::remove_dir_all(source.join("target"));
    fs::write(&stamp, head).expect("target/ is writable");
    out
}

fn packages() -> PathBuf {
    std::env::var_os("VMPI_DIST_DIR").map_or_else(|| built_in("one"), PathBuf::from)
}

/// The file whose name begins and ends like this.
fn file(dir: &Path, begin: &str, end: &str) -> PathBuf {
    let names = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())).flatten();
    let mut fitting = names.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && name.ends_with(end)
    });
    let found = fitting.next().unwrap_or_else(|| panic!("no {begin}...{end} in {}", dir.display()));
    assert!(fitting.next().is_none(), "two {begin}...{end}");
    found
}

/// Two clones in directories whose names differ in length: every package has the same bytes.
#[test]
#[ignore = "second tier"]
fn packages_of_two_directories_are_equal() {
    let _turn = Turn::take();
    let sums = |dir: &Path| fs::read_to_string(dir.join("SHA256SUMS")).expect("dist writes it");
    let (one, other) = (built_in("one"), built_in("another-place"));
    assert_eq!(sums(&one), sums(&other));
    for dir in [&one, &other] {
        said(Command::new("sha256sum").args(["--strict", "--quiet", "-c", "SHA256SUMS"]).current_dir(dir));
    }
}

/// Packages, and wheels of others for a Python of this version, in one directory.
fn with_wheels(dist: &Path, python: &str) -> Scratch {
    let scratch = Scratch::new("dist");
    let mut copy = Command::new("cp");
    copy.args(["-r", "-T"]).arg(dist).arg(scratch.path());
    said(&mut copy);
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]);
    pip.args(["--python-version", python, "mpi4py==4.1.2", "mpich==5.0.2", "-d"]).arg(scratch.path().join("others"));
    said(&mut pip);
    // The user there must be able to look into it.
    said(Command::new("chmod").args(["-R", "a+rX"]).arg(scratch.path()));
    scratch
}

const RANKS: &str = "from mpi4py import MPI; c = MPI.COMM_WORLD; print(c.allreduce(c.rank), c.size, flush=True)";

/// What all ranks of `RANKS` say, with three on each core.
fn of_three_per_core() -> String {
    let cores = std::thread::available_parallelism().expect("Linux says it").get();
    let ranks = 3 * cores;
    format!("{} {ranks}\n", ranks * (ranks - 1) / 2).repeat(ranks)
}

/// Between two marks of a script.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let found = text.split_once(&format!("<<{begin}\n")).and_then(|(_, rest)| rest.split_once(&format!("<<{end}\n")));
    found.unwrap_or_else(|| panic!("no <<{begin} ... <<{end} in\n{text}")).0
}

const WHEEL: &str = r#"
as_me '
python3 -m venv v
begin=$(date +%s)
v/bin/pip install --quiet --no-index --find-links /dist/others /dist/vmpi-*.whl mpi4py
echo "<<ranks"
v/bin/vmpirun -V 3 v/bin/python3 -c "$RANKS"
echo "<<took"
echo $(($(date +%s) - begin))
echo "<<names"
v/bin/vmpirun --version
v/bin/vmpictl --version
v/bin/vmpicc -show
PATH=$PWD/v/lib/vmpi/bin:$PATH mpirun -n 2 echo rank 2>/dev/null
v/bin/pip check
echo "<<beside"
v/bin/pip install --quiet --no-index --find-links /dist/others mpich
v/bin/vmpirun -n 2 v/bin/python3 -c "from mpi4py import MPI; print(MPI.COMM_WORLD.size, MPI.get_vendor()[0])"
(cd v && find . -name "*mpich*" -o -name "libmpi*" -o -name "mpiexec*" | sort) > with
v/bin/pip uninstall --quiet -y vmpi
(cd v && find . -name "*mpich*" -o -name "libmpi*" -o -name "mpiexec*" | grep -v "/vmpi/" | sort) > without
grep -v "/vmpi/" with | diff - without
find v -iname "*vmpi*"
echo "<<user"
pip install --quiet --user --break-system-packages --no-index --find-links /dist/others /dist/vmpi-*.whl mpi4py 2>&1 | grep -v PATH || :
.local/bin/vmpirun -n 2 python3 -c "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
pip uninstall --quiet -y --break-system-packages vmpi
find .local -iname "*vmpi*"
echo "<<end"
'
"#;

fn the_wheel(bare: &Bare, dist: &Path) {
    let got = bare.run(dist, &WHEEL.replace("$RANKS", RANKS));
    assert_eq!(got.code, 0, "{}", got.text);
    assert_eq!(between(&got.text, "ranks", "took"), of_three_per_core(), "{}", got.text);
    let seconds: u32 = between(&got.text, "took", "names").trim().parse().expect("a number");
    assert!(seconds < 60, "to install and run took {seconds} s");
    let names = between(&got.text, "names", "beside");
    let version = env!("CARGO_PKG_VERSION");
    for line in [format!("vmpirun (vmpi) {version} (commit "), format!("vmpictl {version} (commit ")] {
        assert!(names.lines().any(|said| said.starts_with(&line)), "{names}");
    }
    assert!(
        names.contains("/home/me/v/include/vmpi") && names.contains("rank\nrank\nNo broken requirements"),
        "{names}"
    );
    assert_eq!(between(&got.text, "beside", "user"), "2 MPICH\n2 MPICH\n", "and nothing of vmpi is left");
    assert_eq!(between(&got.text, "user", "end"), "2\n2\n", "and nothing of vmpi is left");
}

const TARBALL: &str = r#"
as_me '
tar -xzf /dist/vmpi-*-linux-x86_64.tar.gz
mv vmpi-* "a place"
echo "<<ranks"
"a place/bin/vmpirun" -n 2 -V 2 echo rank 2>/dev/null
echo "<<moved"
mv "a place" b
b/bin/vmpirun -n 3 echo rank 2>/dev/null
echo "<<installed"
mkdir p && touch p/mine
b/install.sh --prefix p > /dev/null
b/install.sh --prefix p > /dev/null
rm -r b
tar -xzf /dist/vmpi-*-linux-x86_64.tar.gz
p/bin/vmpirun -n 1 echo rank 2>/dev/null
p/bin/vmpictl ps > /dev/null
vmpi-*/install.sh --uninstall --prefix p > /dev/null
find p
! vmpi-*/install.sh --uninstall --prefix p
echo "<<end"
'
"#;

fn the_tarball(bare: &Bare, dist: &Path) {
    let got = bare.run(dist, TARBALL);
    assert_eq!(got.code, 0, "{}", got.text);
    assert_eq!(between(&got.text, "ranks", "moved"), "rank\nrank\n");
    assert_eq!(between(&got.text, "moved", "installed"), "rank\nrank\nrank\n");
    let installed = between(&got.text, "installed", "end");
    assert!(installed.starts_with("rank\np\np/mine\n"), "only what was there before is left: {installed}");
    assert!(installed.contains("vmpi was not installed below p by this script"), "{installed}");
}

/// Files of dpkg's own and of logs; what they say of past packages is no trace of ours.
const DEB: &str = r#"
files() { find / -xdev ! -path '/tmp/*' ! -path '/home/*' ! -path '/var/log/*' ! -path '/var/lib/dpkg/*-old' | sort; }
files > /tmp/before
echo "<<installed"
dpkg -i /dist/vmpi_*.deb /dist/vmpi-dev_*.deb /dist/vmpi-dbgsym_*.deb > /tmp/said 2>&1 || { cat /tmp/said; exit 1; }
dpkg --verify vmpi vmpi-dev vmpi-dbgsym
as_me 'mpirun -n 2 -V 2 echo rank 2>/dev/null; mpicc -show; vmpictl --version; mpiexec --version'
for file in /usr/share/man/man1/vmpirun.1.gz /usr/share/man/man1/mpirun.1.gz /usr/share/bash-completion/completions/vmpirun.bash \
    /usr/lib/systemd/user/vmpid.service /usr/share/doc/vmpi/copyright /usr/lib/debug/.build-id; do [ -e $file ] || echo "no $file"; done
update-alternatives --query mpirun | grep -e ^Value -e ^Priority
echo "<<removed"
dpkg --purge vmpi-dbgsym vmpi-dev vmpi > /tmp/said 2>&1 || { cat /tmp/said; exit 1; }
files > /tmp/after
diff /tmp/before /tmp/after
[ ! -e /usr/bin/mpirun ] && [ ! -e /usr/bin/mpicc ]
dpkg -l | grep vmpi || :
echo "<<end"
"#;

fn the_deb(bare: &Bare, dist: &Path) {
    let got = bare.run(dist, DEB);
    assert_eq!(got.code, 0, "{}", got.text);
    let installed = between(&got.text, "installed", "removed");
    assert!(installed.starts_with("rank\nrank\n"), "{installed}");
    for part in ["-I/usr/include/vmpi", "-L/usr/lib/vmpi/standard", "Value: /usr/bin/vmpirun\n", "Priority: 30\n"] {
        assert!(installed.contains(part), "{part}: {installed}");
    }
    assert!(!installed.contains("no /"), "{installed}");
    assert_eq!(between(&got.text, "removed", "end"), "", "a trace is left");
}

fn on_bare_debian(release: &str, python: &str) {
    let _turn = Turn::take();
    let before = shared_memory_files();
    let (bare, dist) = (Bare::debian(release), with_wheels(&packages(), python));
    the_wheel(&bare, dist.path());
    the_tarball(&bare, dist.path());
    the_deb(&bare, dist.path());
    assert_eq!(remaining(dist.path(), &before), None);
}

#[test]
#[ignore = "second tier"]
fn packages_work_on_bare_debian_12() {
    on_bare_debian("bookworm", "3.11");
}

#[test]
#[ignore = "second tier"]
fn packages_work_on_bare_debian_13() {
    on_bare_debian("trixie", "3.13");
}

/// The tarball, unpacked; with what was stripped off, if asked.
fn unpacked(dir: &Path, debug: bool) -> PathBuf {
    let dist = packages();
    let archives = [Some(file(&dist, "vmpi-", "x86_64.tar.gz")), debug.then(|| file(&dist, "vmpi-", "debug.tar.gz"))];
    for archive in archives.into_iter().flatten() {
        said(Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(archive).arg("-C").arg(dir));
    }
    dir.to_owned()
}

/// Without links and with scripts in their place: the wrappers of a wheel compile, and what they make runs.
#[test]
#[ignore = "second tier"]
fn a_wheel_compiles_programs() {
    let _turn = Turn::take();
    let scratch = Scratch::new("wheel");
    let venv = scratch.path().join("v");
    said(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let wheel = file(&packages(), "vmpi-", ".whl");
    said(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "--no-index"]).arg(wheel));
    let bin = venv.join("bin");
    let run_time = scratch.path().join("run");
    for (wrapper, source, expected) in [
        ("vmpicc", "hello.c", "C: 3, clock 1\n"),
        ("vmpicxx", "hello.cc", "C++: 2 of 3\n"),
        ("vmpifort", "hello.f90", "Fortran: 3\n"),
    ] {
        let program = scratch.path().join(source).with_extension("");
        said(Command::new(bin.join(wrapper)).arg(top().join("tests/cmake").join(source)).arg("-o").arg(&program));
        let mut run = Command::new(bin.join("vmpirun"));
        run.args(["-n", "3", "-V", "3"]).arg(&program).env("VMPI_RUNTIME_DIR", &run_time);
        assert_eq!(said(&mut run), expected, "{wrapper}");
    }
    // Who opens a library by its name without a version gets all of it.
    for (face, name) in [("openmpi", "libmpi.so"), ("mpich", "libmpi.so"), ("mpich", "libmpich.so")] {
        let library = venv.join("lib/vmpi").join(face).join(name);
        let ask = format!("import ctypes; print(ctypes.CDLL('{}').MPI_Init is not None)", library.display());
        assert_eq!(said(Command::new(bin.join("python3")).args(["-c", &ask])), "True\n", "{face}");
    }
}

/// Stripped files name no functions of vmpi's own; with the other archive beside them gdb and vmpictl do, with lines.
#[test]
#[ignore = "second tier"]
fn debug_information_is_found_where_it_was_put() {
    let _turn = Turn::take();
    let lines_by_gdb = |prefix: &Path| {
        let library = prefix.join("lib/vmpi/openmpi/libmpi.so.40");
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch", "-ex", "info line MPI_Recv"]).arg(library).env_remove("DEBUGINFOD_URLS");
        said(&mut gdb)
    };
    let (bare, with) = (Scratch::new("bare"), Scratch::new("with"));
    let without = lines_by_gdb(&unpacked(bare.path(), false));
    assert!(!without.contains(".rs"), "{without}");
    let prefix = unpacked(with.path(), true);
    let found = lines_by_gdb(&prefix);
    assert!(found.contains(".rs"), "{found}");
    let program = program("deadlock.c", Mpi::Openmpi);
    for (prefix, has_lines) in [(bare.path(), false), (prefix.as_path(), true)] {
        let run_time = prefix.join("run");
        let command = |name: &str, args: &[&str]| {
            let mut command = Command::new(prefix.join("bin").join(name));
            command.args(args).env("VMPI_RUNTIME_DIR", &run_time);
            command
        };
        let mut run = command("vmpirun", &["-n", "2", "--on-deadlock", "ignore"]);
        let mut job = run.arg(&program).arg("missing").spawn().expect("it was just unpacked");
        let mut stacks = String::new();
        let waits = eventually(Duration::from_secs(30), || {
            let asked = command("vmpictl", &["stacks", "--all-frames"]).output().expect("it was just unpacked");
            stacks = String::from_utf8_lossy(&asked.stdout).into_owned();
            stacks.matches("missing_participant").count() == 2
        });
        let _ = command("vmpictl", &["kill", "1"]).output();
        job.wait().expect("it is our child");
        kill_all(&run_time);
        assert!(waits, "{stacks}");
        let own = stacks.lines().filter(|line| line.contains("vmpi_core") && line.contains(".rs:")).count();
        assert_eq!(own > 0, has_lines, "{stacks}");
    }
}
