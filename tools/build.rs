//! Debuggers look for MPIR's names in vmpirun (`src/mpir.rs`), in a stripped one among its dynamic symbols.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bin=vmpirun=-Wl,--export-dynamic-symbol=MPIR_*");
}
