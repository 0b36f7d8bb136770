//! vmpirun: run MPI programs with several ranks per core.

fn main() {
    let mut args = Vec::new();
    for arg in std::env::args_os().skip(1) {
        match arg.into_string() {
            Ok(arg) => args.push(arg),
            Err(arg) => {
                eprintln!("vmpirun: the argument {} is not UTF-8, which vmpid cannot be told", arg.to_string_lossy());
                std::process::exit(vmpi_tools::failure::code::USAGE);
            }
        }
    }
    if args == ["--bootstrap"] {
        // By vmpid on a node of a job of several.
        let code = vmpi_tools::launch::exe_dir().map_or(125, |dir| vmpi_tools::nodes::agent::main(&dir));
        std::process::exit(code);
    }
    std::process::exit(vmpi_tools::launch::main(&args));
}
