//! The flags of one language, and what to do with a command line.

use super::{Language, Layout};

/// What a wrapper adds, word by word.
#[derive(Clone, Debug)]
pub struct Flags {
    language: Language,
    /// The compiler, which may be several words.
    pub compiler: Vec<String>,
    pub include_dirs: Vec<String>,
    pub library_dir: String,
    pub libraries: Vec<&'static str>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Print(String),
    Run(Vec<String>),
    /// Write and compile the Fortran modules to this directory.
    Modules(String),
}

impl Flags {
    pub fn new(language: Language, compiler: String, layout: &Layout) -> Flags {
        let mut include_dirs = vec![layout.include.display().to_string()];
        let mut libraries = vec!["mpi_abi"];
        if language == Language::Fortran {
            include_dirs.push(layout.modules.display().to_string());
            libraries.insert(0, "mpifort_abi");
        }
        let compiler = compiler.split_whitespace().map(str::to_owned).collect();
        Flags { language, compiler, include_dirs, library_dir: layout.libraries.display().to_string(), libraries }
    }

    pub fn compile(&self) -> Vec<String> {
        self.include_dirs.iter().map(|dir| format!("-I{dir}")).collect()
    }

    /// The library's place goes into DT_RUNPATH, so that a program also starts without vmpirun, and LD_LIBRARY_PATH still
    /// puts another library of the same ABI in its place.
    pub fn link(&self) -> Vec<String> {
        let dir = &self.library_dir;
        let mut words = vec![format!("-L{dir}"), format!("-Wl,-rpath,{dir}"), "-Wl,--enable-new-dtags".into()];
        words.extend(self.libraries.iter().map(|name| format!("-l{name}")));
        words
    }
}

/// Flags after which a compiler does not link.
const NO_LINK: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];

/// What `args` ask for.
pub fn answer(flags: &Flags, args: &[String]) -> Answer {
    if let (Language::Fortran, [option, dir]) = (flags.language, args)
        && option == "-modules"
    {
        return Answer::Modules(dir.clone());
    }
    let mut flags = flags.clone();
    let mut show = None;
    let mut rest = Vec::new();
    for arg in args {
        if let Some(name) = arg.strip_prefix(flags.language.option()) {
            flags.compiler = name.split_whitespace().map(str::to_owned).collect();
        } else if matches!(arg.as_str(), "-show" | "-compile-info" | "-link-info" | "-compile_info" | "-link_info")
            || arg == "-showme"
            || arg == "--showme"
            || arg.starts_with("-showme:")
            || arg.starts_with("--showme:")
        {
            show = Some(arg.trim_start_matches('-').replace('_', "-"));
        } else {
            rest.push(arg.clone());
        }
    }
    let links = !rest.iter().any(|arg| NO_LINK.contains(&arg.as_str()));
    let command = |compile: bool, link: bool| {
        let mut words = flags.compiler.clone();
        if compile {
            words.extend(flags.compile());
        }
        words.extend(rest.iter().cloned());
        if link {
            words.extend(flags.link());
        }
        words
    };
    let Some(show) = show else {
        // With nothing to compile or link (`vmpicc --version`, `-dumpversion`), the compiler itself is asked.
        let informs = rest.iter().all(|arg| arg.starts_with('-')) && !rest.iter().any(|arg| arg == "-");
        return Answer::Run(command(!informs, links && !informs));
    };
    let words = match show.as_str() {
        "show" | "showme" => command(true, links),
        "compile-info" => command(true, false),
        "link-info" => command(false, true),
        "showme:compile" => flags.compile(),
        "showme:link" => flags.link(),
        "showme:command" => flags.compiler.clone(),
        "showme:incdirs" => flags.include_dirs.clone(),
        "showme:libdirs" => vec![flags.library_dir.clone()],
        "showme:libs" => flags.libraries.iter().map(|name| name.to_string()).collect(),
        "showme:version" => {
            vec![format!("{}: vmpi {} (MPI-5 standard ABI)", flags.language.wrapper(), env!("CARGO_PKG_VERSION"))]
        }
        _ => vec![
            "-show -compile-info -link-info -showme:command,compile,link,incdirs,libdirs,libs,version".into(),
            format!("{}COMPILER; everything else is the compiler's", flags.language.option()),
        ],
    };
    Answer::Print(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(language: Language) -> Flags {
        let layout = Layout { include: "/p/include".into(), modules: "/p/mod".into(), libraries: "/p/lib".into() };
        Flags::new(language, "gcc -m64".into(), &layout)
    }

    fn asked(language: Language, line: &str) -> String {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match answer(&flags(language), &args) {
            Answer::Print(text) => text,
            Answer::Run(words) => format!("run {}", words.join(" ")),
            Answer::Modules(dir) => format!("modules {dir}"),
        }
    }

    const LINK: &str = "-L/p/lib -Wl,-rpath,/p/lib -Wl,--enable-new-dtags -lmpi_abi";

    #[test]
    fn what_is_run() {
        let c = |line| asked(Language::C, line);
        assert_eq!(c("-O2 a.c -o a"), format!("run gcc -m64 -I/p/include -O2 a.c -o a {LINK}"));
        assert_eq!(c("-c a.c"), "run gcc -m64 -I/p/include -c a.c");
        assert_eq!(c("-cc=clang a.c"), format!("run clang -I/p/include a.c {LINK}"));
        assert_eq!(c("--version"), "run gcc -m64 --version");
        assert_eq!(c("-E -"), "run gcc -m64 -I/p/include -E -");
    }

    #[test]
    fn what_build_systems_ask() {
        let c = |line| asked(Language::C, line);
        assert_eq!(c("-show"), format!("gcc -m64 -I/p/include {LINK}"));
        assert_eq!(c("-show -c a.c"), "gcc -m64 -I/p/include -c a.c");
        assert_eq!(c("-compile-info"), "gcc -m64 -I/p/include");
        assert_eq!(c("-link_info"), format!("gcc -m64 {LINK}"));
        assert_eq!(c("-showme:compile"), "-I/p/include");
        assert_eq!(c("--showme:link"), LINK);
        assert_eq!(c("-showme:libs"), "mpi_abi");
        assert_eq!(asked(Language::Fortran, "-showme:incdirs"), "/p/include /p/mod");
        assert_eq!(asked(Language::Fortran, "-showme:libs"), "mpifort_abi mpi_abi");
        assert_eq!(asked(Language::Fortran, "-modules /m"), "modules /m");
        assert!(asked(Language::Cxx, "-showme:help").contains("-cxx="));
    }
}
