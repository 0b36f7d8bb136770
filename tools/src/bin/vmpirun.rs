//! vmpirun, and by its other names vmpictl, vmpicc, vmpicxx and vmpifort.

fn main() {
    // Here, so that another commit makes nothing but this file new.
    std::process::exit(vmpi_tools::multicall::main(option_env!("VMPI_COMMIT")));
}
