//! From a program's name to a file that can be executed, or the sentence that says why not.

use crate::elf::{Closure, Image, ImageError, Search, Soname, closure};
use crate::failure::Failure;
use nix::unistd::{AccessFlags, access};
use std::io::Read;
use std::path::{Path, PathBuf};

/// An executable file and what it is.
#[derive(Clone, Debug)]
pub struct Program {
    /// Absolute path.
    pub path: PathBuf,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// An ELF file, with the MPI libraries below it.
    Elf(Box<Closure>),
    /// A file with a `#!` line: its interpreter.
    Script { interpreter: PathBuf },
}

/// Programs that start other programs: that they have no MPI of their own means nothing.
const LAUNCHERS: [&str; 40] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "env",
    "python",
    "pypy",
    "perl",
    "ruby",
    "julia",
    "Rscript",
    "R",
    "node",
    "lua",
    "java",
    "octave",
    "tclsh",
    "time",
    "timeout",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "numactl",
    "stdbuf",
    "setsid",
    "gdb",
    "gdbserver",
    "lldb",
    "valgrind",
    "strace",
    "ltrace",
    "perf",
    "rr",
    "xterm",
    "busybox",
    "sudo",
    "catchsegv",
];

/// Of the launchers, those whose own process may open an MPI library. The auditor (`libvmpi/audit`) knows them, too.
const INTERPRETERS: [&str; 11] =
    ["python", "pypy", "perl", "ruby", "julia", "R", "node", "lua", "java", "octave", "tclsh"];

impl Program {
    /// The last part of the path.
    pub fn name(&self) -> String {
        self.path
            .file_name()
            .map_or_else(|| self.path.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// A script, an interpreter, a shell or a tool that runs another program.
    pub fn is_launcher(&self) -> bool {
        let name = self.name();
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        matches!(self.kind, Kind::Script { .. }) || LAUNCHERS.contains(&stem) || LAUNCHERS.contains(&name.as_str())
    }

    /// An interpreter of a language whose programs open libraries by a path, a script for one, or a script in its place (pyenv's `python3`).
    /// Not a shell: what it starts is another program.
    pub fn opens_libraries(&self) -> bool {
        let interpreter = match &self.kind {
            Kind::Script { interpreter } => Some(interpreter),
            Kind::Elf(_) => None,
        };
        std::iter::once(&self.path)
            .chain(interpreter)
            .any(|file| is_interpreter(&file.file_name().unwrap_or_default().to_string_lossy()))
    }

    /// A script, or a tool that runs another program, in whose text or arguments an interpreter is named: what it starts may open libraries by a path. `cwd`: where
    /// files that the arguments name lie. Not where valgrind is named, too (`environ::audit_what_it_starts`).
    pub fn starts_interpreters(&self, args: &[String], cwd: &Path) -> bool {
        if !self.is_launcher() || self.opens_libraries() {
            return false;
        }
        let script = matches!(self.kind, Kind::Script { .. }).then(|| self.path.clone());
        let named = args.iter().map(|arg| cwd.join(arg)).filter(|file| file.is_file());
        let texts: Vec<String> = script.into_iter().chain(named).map(|file| head_of(&file)).collect();
        let all =
            texts.iter().chain(args).flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && !"._-/".contains(c)));
        let names: Vec<&str> = all.map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        names.iter().any(|name| is_interpreter(name)) && !names.contains(&"valgrind")
    }

    /// The MPI libraries are visible in the ELF file.
    pub fn links_mpi(&self) -> bool {
        matches!(&self.kind, Kind::Elf(found) if !found.mpi.is_empty())
    }
}

fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-'))
}

/// The first part of a file, as far as it is text.
fn head_of(file: &Path) -> String {
    const MOST: u64 = 1 << 16;
    let mut head = Vec::new();
    let _ = std::fs::File::open(file).map(|file| file.take(MOST).read_to_end(&mut head));
    let text = head.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Find a program as the launchers do: a name with `/` below `cwd`; else in `dirs` (-path), in PATH, in `cwd`.
///
/// # Errors
/// 127: no such program; 126: it is there and cannot be executed, with the reason.
pub fn resolve(name: &str, dirs: Option<&str>, path: &str, cwd: &Path, search: &Search) -> Result<Program, Failure> {
    let file = find(name, dirs, path, cwd)?;
    let kind = inspect(&file, search, path)?;
    Ok(Program { path: file, kind })
}

fn find(name: &str, dirs: Option<&str>, path: &str, cwd: &Path) -> Result<PathBuf, Failure> {
    if name.is_empty() {
        return Err(Failure::not_found("the program's name is empty"));
    }
    if name.contains('/') {
        let file = cwd.join(name);
        return match std::fs::metadata(&file) {
            Ok(_) => check_mode(&file).map(|()| file),
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(Failure::cannot_execute(format!("cannot reach {}: {e}", file.display())))
            }
            Err(e) => Err(Failure::not_found(format!("no such program: {}: {e}", file.display()))),
        };
    }
    let mut refused = None;
    let asked = dirs.unwrap_or("").split(':').filter(|dir| !dir.is_empty());
    let usual = path.split(':').map(|dir| if dir.is_empty() { "." } else { dir });
    for dir in asked.chain(usual).chain(["."]) {
        let file = cwd.join(dir).join(name);
        let file = if dir == "." { cwd.join(name) } else { file };
        if file.is_file() {
            match check_mode(&file) {
                Ok(()) => return Ok(file),
                Err(why) => refused = refused.or(Some(why)),
            }
        } else if file.is_dir() && dir == "." {
            refused = refused.or(check_mode(&file).err());
        }
    }
    Err(refused.unwrap_or_else(|| {
        let also = dirs.map_or(String::new(), |dirs| format!("-path {dirs}, "));
        Failure::not_found(format!(
            "no such program: `{name}` is neither in {also}PATH nor in {}; give its path, or the directory with -path",
            cwd.display()
        ))
    }))
}

fn check_mode(file: &Path) -> Result<(), Failure> {
    if file.is_dir() {
        return Err(Failure::cannot_execute(format!("{} is a directory, not a program", file.display())));
    }
    if !file.is_file() {
        return Err(Failure::cannot_execute(format!("{} is not a regular file", file.display())));
    }
    access(file, AccessFlags::X_OK).map_err(|e| {
        Failure::cannot_execute(format!("{} is not executable ({}); `chmod +x` makes it so", file.display(), e.desc()))
    })
}

fn inspect(file: &Path, search: &Search, path: &str) -> Result<Kind, Failure> {
    let shown = file.display();
    match closure(file, search) {
        Ok(found) => {
            check_elf(file, &found)?;
            Ok(Kind::Elf(Box::new(found)))
        }
        Err(ImageError::NotElf) => script(file, path),
        // Executable, but not readable: the kernel runs it, and nobody can see which MPI it wants.
        Err(ImageError::Io(e)) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            Ok(Kind::Elf(Box::new(Closure {
                image: Image::default(),
                mpi: Vec::new(),
                has_mpi_inside: false,
                missing: Vec::new(),
            })))
        }
        Err(why) => Err(Failure::cannot_execute(format!("{shown} {why}"))),
    }
}

fn check_elf(file: &Path, found: &Closure) -> Result<(), Failure> {
    let shown = file.display();
    if let Some(loader) = &found.image.loader
        && !Path::new(loader).exists()
    {
        return Err(Failure::cannot_execute(format!(
            "{shown} needs the loader {loader}, which does not exist on this machine (built for another C library?)"
        )));
    }
    if !found.image.executable {
        return Err(Failure::cannot_execute(format!("{shown} is an object file, not a linked program")));
    }
    if found.has_mpi_inside {
        return Err(Failure::cannot_execute(format!(
            "{shown} has an MPI library linked into itself (it defines MPI_Init), so vmpi cannot take that library's place; \
             link the program against the shared MPI library (without -static) or run it with its own mpirun"
        )));
    }
    let libraries: Vec<String> = found.mpi.iter().map(|library| library.soname.clone()).collect();
    if found.faces().len() > 1 {
        return Err(Failure::cannot_execute(format!(
            "{shown} would load two MPI libraries of different ABIs into one process ({}): {}; rebuild all of it with one MPI",
            libraries.join(", "),
            found.mpi.iter().map(through).collect::<Vec<_>>().join("; ")
        )));
    }
    if let Some(library) = found.mpi.iter().find(|library| library.kind == Soname::Unknown) {
        return Err(Failure::cannot_execute(format!(
            "{shown} is built for {}, an MPI ABI that vmpi does not have; vmpi has libmpi.so.40 (Open MPI 4 and 5), \
             libmpi.so.12, libmpich.so.12 (MPICH 3 to 5, Intel MPI) and libmpi_abi.so.1 (the MPI-5 standard's): rebuild it \
             with one of these",
            library.soname
        )));
    }
    Ok(())
}

/// `libmpi.so.40 through lmp, liblammps.so.0`.
pub fn through(library: &crate::elf::Library) -> String {
    let chain: Vec<_> = library
        .chain
        .iter()
        .map(|file| file.file_name().map_or_else(|| "?".into(), |name| name.to_string_lossy().into_owned()))
        .collect();
    format!("{} through {}", library.soname, chain.join(", "))
}

/// Check a script's `#!` line as execve(2) reads it.
fn script(file: &Path, path: &str) -> Result<Kind, Failure> {
    let shown = file.display();
    let mut head = [0u8; 256];
    let got = std::fs::File::open(file)
        .and_then(|mut file| file.read(&mut head))
        .map_err(|e| Failure::cannot_execute(format!("{shown} cannot be read: {e}")))?;
    let Some(line) = head[..got].strip_prefix(b"#!") else {
        return Err(Failure::cannot_execute(format!(
            "{shown} is neither an ELF program nor a script with an interpreter; if it is a script, begin it with a line like #!/bin/sh"
        )));
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or(line);
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let Some(interpreter) = words.next() else {
        return Err(Failure::cannot_execute(format!("{shown} names no interpreter after its #!")));
    };
    let hint = if line.ends_with('\r') {
        " (the line ends with a carriage return: convert the file with dos2unix)"
    } else {
        ""
    };
    let interpreter = PathBuf::from(interpreter);
    if !interpreter.is_file() || access(&interpreter, AccessFlags::X_OK).is_err() {
        return Err(Failure::cannot_execute(format!(
            "{shown} is a script for the interpreter {}, which does not exist or is not executable{hint}",
            interpreter.display()
        )));
    }
    if interpreter.file_name().is_some_and(|name| name == "env")
        && let Some(command) = words.next().filter(|word| !word.starts_with('-') && !word.contains('='))
        && !command.contains('/')
        && !path.split(':').any(|dir| Path::new(dir).join(command).is_file())
    {
        return Err(Failure::cannot_execute(format!(
            "{shown} is a script for `env {command}`, and {command} is not in PATH{hint}"
        )));
    }
    Ok(Kind::Script { interpreter })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn resolve_in(dir: &Path, name: &str) -> Result<Program, Failure> {
        resolve(name, None, "/usr/bin:/bin", dir, &Search::new(""))
    }

    fn write(dir: &Path, name: &str, text: &[u8], mode: u32) {
        std::fs::write(dir.join(name), text).unwrap();
        std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn each_reason_has_its_code_and_sentence() {
        let dir = std::env::temp_dir().join(format!("vmpi-program-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        write(&dir, "plain", b"#!/bin/sh\n", 0o644);
        write(&dir, "nohead", b"echo hello\n", 0o755);
        write(&dir, "empty", b"", 0o755);
        write(&dir, "badinterp", b"#!/no/such/interpreter -x\n", 0o755);
        write(&dir, "badenv", b"#!/usr/bin/env nopython9\n", 0o755);
        write(&dir, "dos", b"#!/bin/sh\r\n", 0o755);
        write(&dir, "good", b"#! /bin/sh -e\n", 0o755);
        let mut other = vec![0u8; 64];
        other[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (other[16], other[18]) = (2, 243);
        write(&dir, "riscv", &other, 0o755);
        for (name, code, part) in [
            ("nothere", 127, "no such program"),
            ("./nothere", 127, "no such program"),
            ("./sub", 126, "directory"),
            ("sub", 126, "directory"),
            ("plain", 126, "chmod +x"),
            ("./plain", 126, "chmod +x"),
            ("nohead", 126, "#!/bin/sh"),
            ("empty", 126, "neither an ELF"),
            ("badinterp", 126, "/no/such/interpreter"),
            ("badenv", 126, "nopython9"),
            ("dos", 126, "carriage return"),
            ("riscv", 126, "built for riscv"),
        ] {
            let why = resolve_in(&dir, name).unwrap_err();
            assert_eq!(why.code, code, "{name}: {why}");
            assert!(why.sentence.contains(part), "{name}: {why}");
        }
        let good = resolve_in(&dir, "good").unwrap();
        assert!(good.is_launcher() && !good.links_mpi() && good.path == dir.join("good"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn launchers() {
        let shell = resolve_in(Path::new("/"), "sh").unwrap();
        assert!(shell.is_launcher());
        let python =
            Program { path: "/opt/bin/python3.11".into(), kind: Kind::Script { interpreter: "/bin/sh".into() } };
        assert!(python.is_launcher());
        assert!(!resolve_in(Path::new("/"), "true").unwrap().is_launcher());
    }

    #[test]
    fn languages_that_open_libraries_are_known_by_their_own_name_or_their_interpreters() {
        let script = |path: &str, interpreter: &str| Program {
            path: path.into(),
            kind: Kind::Script { interpreter: interpreter.into() },
        };
        assert!(script("/x/run.py", "/usr/bin/python3.11").opens_libraries());
        assert!(script("/root/.pyenv/shims/python3", "/bin/bash").opens_libraries());
        assert!(!script("/x/run.sh", "/bin/sh").opens_libraries());
        assert!(!script("/usr/bin/valgrind", "/bin/sh").opens_libraries());
    }
}
