//! The daemon's voice: errors as sentences on stderr, details only with `VMPI_LOG=debug`.

use std::sync::OnceLock;

/// Was `VMPI_LOG=debug` set when the daemon started?
pub fn is_debug() -> bool {
    static DEBUG: OnceLock<bool> = OnceLock::new();
    *DEBUG.get_or_init(|| std::env::var_os("VMPI_LOG").is_some_and(|value| value == "debug"))
}

/// Print a line on stderr if `VMPI_LOG=debug`.
#[macro_export]
macro_rules! debug {
    ($($arg:tt)*) => {
        if $crate::log::is_debug() {
            $crate::log::line(&format!($($arg)*));
        }
    };
}

/// Print a sentence on stderr; a closed stderr is no reason to end.
pub fn line(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "vmpid: {text}");
}
