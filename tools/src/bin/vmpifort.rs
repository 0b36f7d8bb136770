//! `vmpifort`: see `vmpi_tools::wrapper`.

fn main() -> std::process::ExitCode {
    vmpi_tools::wrapper::main(vmpi_tools::wrapper::Language::Fortran)
}
