//! vmpictl: show what the vmpi daemons of this node are doing.

fn main() {
    std::process::exit(vmpi_tools::ctl::main());
}
