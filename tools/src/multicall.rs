//! One program under several names: to link vmpictl by itself took 50 s and 30 MB more, and each compiler wrapper 10 s.

use crate::failure::code;
use crate::wrapper::Language;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What this program is when it is called by a name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Called {
    Vmpirun,
    Vmpictl,
    Wrapper(Language),
}

/// How names end: `vmpicc`, `mpicc` and `mpicc.vmpi` are one.
const ENDINGS: &[(&str, Called)] = &[
    ("ctl", Called::Vmpictl),
    ("cc", Called::Wrapper(Language::C)),
    ("cxx", Called::Wrapper(Language::Cxx)),
    ("c++", Called::Wrapper(Language::Cxx)),
    ("CC", Called::Wrapper(Language::Cxx)),
    ("fort", Called::Wrapper(Language::Fortran)),
    ("f90", Called::Wrapper(Language::Fortran)),
    ("f77", Called::Wrapper(Language::Fortran)),
];

impl Called {
    fn by(name: &OsStr) -> Called {
        let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default();
        ENDINGS.iter().find(|(ending, _)| stem.ends_with(ending)).map_or(Called::Vmpirun, |(_, called)| *called)
    }
}

/// What a script in the place of a link says first: Python's wheels hold no links, and `exec` of sh gives no other name.
const CALLED_AS: &str = "--called-as=";

/// The arguments with the name, which may stand in the first one.
fn with_name(mut args: Vec<OsString>) -> Vec<OsString> {
    let name = args.get(1).and_then(|first| first.to_str()?.strip_prefix(CALLED_AS)).map(OsString::from);
    if let Some(name) = name {
        args.remove(1);
        args[0] = name;
    }
    args
}

/// Be what the name says; the exit code. `commit`: what this was built from, if that is known.
pub fn main(commit: Option<&'static str>) -> i32 {
    vmpi_shared::faults::end_the_process();
    crate::version::built_from(commit);
    let args = with_name(std::env::args_os().collect());
    match Called::by(args.first().map_or(OsStr::new(""), OsString::as_os_str)) {
        Called::Vmpirun => vmpirun(&args),
        Called::Vmpictl => crate::ctl::main(&args),
        Called::Wrapper(language) => crate::wrapper::main(language, &args),
    }
}

fn vmpirun(words: &[OsString]) -> i32 {
    let mut args = Vec::new();
    for arg in words.iter().skip(1).cloned() {
        match arg.into_string() {
            Ok(arg) => args.push(arg),
            Err(arg) => {
                eprintln!(
                    "vmpirun: the argument {} is not UTF-8, which vmpid cannot be told",
                    vmpi_shared::escape::lines(&arg.to_string_lossy())
                );
                return code::USAGE;
            }
        }
    }
    if args == ["--bootstrap"] {
        // By vmpid on a node of a job of several.
        return crate::launch::exe_dir().map_or(125, |dir| crate::nodes::agent::main(&dir));
    }
    match args.as_slice() {
        // By a process that another launcher has started.
        [flag, cpus, rest @ ..] if flag == "--detach" => crate::stand_in::detach(cpus, rest),
        [flag, _] if flag == crate::stand_in::FLAG => crate::stand_in::main(),
        _ => crate::launch::main(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_the_name() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let named = with_name(words("/opt/bin/vmpirun --called-as=vmpictl ps --called-as=x"));
        assert_eq!(named, words("vmpictl ps --called-as=x"));
        for plain in ["vmpirun", "vmpirun -n 2 --called-as=vmpictl", ""] {
            assert_eq!(with_name(words(plain)), words(plain), "only where it comes first");
        }
        assert_eq!(with_name(Vec::new()), Vec::<OsString>::new());
    }

    #[test]
    fn names_lead_to_what_they_say() {
        let called = |name: &str| Called::by(OsStr::new(name));
        for name in ["vmpirun", "mpirun", "/usr/bin/mpiexec", "mpirun.vmpi", "", "vmpirun-0.2"] {
            assert_eq!(called(name), Called::Vmpirun, "{name}");
        }
        assert_eq!(called("/opt/vmpi/bin/vmpictl"), Called::Vmpictl);
        for (names, language) in [
            (&["vmpicc", "mpicc", "../mpicc", "mpicc.vmpi"][..], Language::C),
            (&["vmpicxx", "mpicxx", "mpic++", "mpiCC"], Language::Cxx),
            (&["vmpifort", "mpifort", "mpif90", "mpif77"], Language::Fortran),
        ] {
            for name in names {
                assert_eq!(called(name), Called::Wrapper(language), "{name}");
            }
        }
    }
}
