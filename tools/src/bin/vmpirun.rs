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
    std::process::exit(vmpi_tools::launch::main(&args));
}
