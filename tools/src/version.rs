//! Which vmpi this is.

use std::sync::OnceLock;

/// What others compare: equal on all nodes and in all of a job's programs.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

static LONG: OnceLock<&str> = OnceLock::new();

/// Told once, at the start, by the program: the commit that it was built from.
pub fn built_from(commit: Option<&'static str>) {
    let _ = LONG.set(commit.filter(|commit| !commit.is_empty()).map_or(VERSION, |commit| with(commit).leak()));
}

/// What people read: with the commit, where it is known.
pub fn long() -> &'static str {
    LONG.get().copied().unwrap_or(VERSION)
}

fn with(commit: &str) -> String {
    format!("{VERSION} (commit {commit})")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_commit_stands_behind_the_version() {
        assert_eq!(super::with("0123abc"), concat!(env!("CARGO_PKG_VERSION"), " (commit 0123abc)"));
        assert_eq!(super::long(), super::VERSION, "nobody has told it");
    }
}
