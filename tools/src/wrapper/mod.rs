//! vmpicc, vmpicxx, vmpifort: a compiler with the flags that a program for the MPI-5 standard ABI needs.
//!
//! They understand what the wrappers of Open MPI (`-showme:...`) and MPICH (`-show`, `-compile-info`, `-cc=...`) do, because
//! build systems ask them that way.

mod flags;
mod layout;
mod modules;

pub use flags::{Answer, Flags, answer};
pub use layout::Layout;

use crate::failure::Failure;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What a wrapper compiles.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
    Fortran,
}

impl Language {
    pub fn wrapper(self) -> &'static str {
        match self {
            Language::C => "vmpicc",
            Language::Cxx => "vmpicxx",
            Language::Fortran => "vmpifort",
        }
    }

    /// The variable that names another compiler than the usual one, and the usual one.
    fn compiler(self) -> (&'static str, &'static str) {
        match self {
            Language::C => ("VMPICC_CC", "cc"),
            Language::Cxx => ("VMPICXX_CXX", "c++"),
            Language::Fortran => ("VMPIFORT_FC", "gfortran"),
        }
    }

    /// How MPICH's wrappers are told the compiler.
    fn option(self) -> &'static str {
        match self {
            Language::C => "-cc=",
            Language::Cxx => "-cxx=",
            Language::Fortran => "-fc=",
        }
    }
}

/// Run a wrapper with these words, its name first.
pub fn main(language: Language, words: &[OsString]) -> i32 {
    let args: Vec<String> = words.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    match run(language, &args) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("{}: {}", language.wrapper(), failure.sentence);
            failure.code
        }
    }
}

fn run(language: Language, args: &[String]) -> Result<(), Failure> {
    let exe = std::env::current_exe().map_err(|e| Failure::own(format!("cannot find out where I am: {e}")))?;
    let layout = Layout::beside(exe.parent().unwrap_or(&exe))?;
    let (variable, usual) = language.compiler();
    let compiler = std::env::var(variable).ok().filter(|name| !name.trim().is_empty());
    let flags = Flags::new(language, compiler.unwrap_or_else(|| usual.into()), &layout);
    match answer(&flags, args) {
        Answer::Print(text) => {
            println!("{text}");
            Ok(())
        }
        Answer::Modules(dir) => modules::make(std::path::Path::new(&dir), &flags.compiler),
        Answer::Run(command) => {
            let (program, rest) = command.split_first().ok_or_else(|| Failure::own("no compiler is named"))?;
            let why = Command::new(program).args(rest).exec();
            Err(Failure::not_found(format!("cannot run the compiler {program}: {why}; {variable} names another one")))
        }
    }
}
