//! Nothing is linked: ld.so loads this with a name space of its own, where even the C library would be a second one.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in ["-nostdlib", "-nostartfiles", "-Wl,-z,defs"] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
