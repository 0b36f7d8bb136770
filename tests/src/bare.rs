//! A bare Debian (debootstrap's minbase) to install packages in: made once, kept in target/, and never written to. Each
//! run sees it through an overlay that goes with its mount namespace, without a network, and all its processes end with it.

use crate::place::{making_one, room};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Bare {
    root: PathBuf,
    room: PathBuf,
}

/// What a run said, both streams in one, and its exit code.
pub struct Said {
    pub code: i32,
    pub text: String,
}

impl Bare {
    /// The release with Python, since that is what wheels are for.
    ///
    /// # Panics
    /// Without root, debootstrap, or Debian's packages.
    pub fn debian(release: &str) -> Bare {
        let room = room("bare");
        let root = room.join(release);
        let _making = making_one(&root);
        if !root.join("etc/vmpi-made").exists() {
            let _ = fs::remove_dir_all(&root);
            let mut make = Command::new("debootstrap");
            make.args(["--variant=minbase", "--include=python3,python3-venv,python3-pip", release]).arg(&root);
            let made = make.output().unwrap_or_else(|e| panic!("debootstrap does not start: {e}"));
            assert!(made.status.success(), "debootstrap: {}", String::from_utf8_lossy(&made.stdout));
            fs::write(root.join("etc/vmpi-made"), "").expect("it was just made");
        }
        Bare { root, room }
    }

    /// Run a script of sh there as root; `/dist` is this directory, and `as_me 'COMMANDS'` is a user without any right.
    pub fn run(&self, dist: &Path, script: &str) -> Said {
        let work = self.room.join(format!("work-{}", std::process::id()));
        fs::create_dir_all(&work).expect("target/ is writable");
        let outer = "set -e\n\
             mount -t tmpfs -o size=4g tmpfs \"$WORK\"\n\
             mkdir \"$WORK/upper\" \"$WORK/work\" \"$WORK/root\"\n\
             mount -t overlay -o lowerdir=\"$LOWER\",upperdir=\"$WORK/upper\",workdir=\"$WORK/work\" overlay \"$WORK/root\"\n\
             cd \"$WORK/root\"\n\
             mkdir dist\n\
             mount -t proc proc proc\n\
             mount --rbind /sys sys\n\
             mkdir -p dev/shm\n\
             mount -t tmpfs -o mode=1777 tmpfs dev/shm\n\
             mount --bind \"$DIST\" dist\n\
             cat > inner\n\
             exec chroot . /bin/sh -e /inner";
        let inner = format!(
            "export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root\n\
             rm /inner\n\
             useradd -m -s /bin/sh me\n\
             as_me() {{ su - me -c \"set -e; export LC_ALL=C.UTF-8; $1\"; }}\n{script}\n"
        );
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--propagation", "private"]);
        unshare.args(["sh", "-c", outer]).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        unshare.env("WORK", &work).env("LOWER", &self.root).env("DIST", dist);
        let output = work.with_extension("output");
        let file = fs::File::create(&output).expect("target/ is writable");
        let again = file.try_clone().expect("a descriptor");
        let mut child =
            unshare.stdin(Stdio::piped()).stdout(again).stderr(file).spawn().expect("util-linux is essential");
        {
            use std::io::Write;
            let mut stdin = child.stdin.take().expect("it is piped");
            // If it ended before, its code says so.
            let _ = stdin.write_all(inner.as_bytes());
        }
        let status = child.wait().expect("it is our child");
        let text = String::from_utf8_lossy(&fs::read(&output).expect("it was written")).into_owned();
        let _ = (fs::remove_file(&output), fs::remove_dir(&work));
        Said { code: status.code().unwrap_or(-1), text }
    }
}
