//! vmpirun, and by its other names vmpictl, vmpicc, vmpicxx and vmpifort.

fn main() {
    std::process::exit(vmpi_tools::called::main());
}
