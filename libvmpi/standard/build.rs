//! The name under which programs look for this library.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // Handlers of exits, signals and threads lie here as long as the process, also when who has opened it closes it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
