//! Where the debug information of a stripped file lies: beside it or below /usr/lib/debug, as gdb looks for it.
//!
//! Known by the build ID, which both files have; gdb falls back on a checksum, for which all of the file must be read.

use super::bytes;
use object::{Object, ObjectSection};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where distributions put what they strip.
const SYSTEM: &str = "/usr/lib/debug";

/// The file to be read for names and lines: `path` itself, unless it has none and another file has its.
pub fn file_of(path: &Path) -> PathBuf {
    found(path, Path::new(SYSTEM)).unwrap_or_else(|| path.to_owned())
}

fn found(path: &Path, system: &Path) -> Option<PathBuf> {
    let bytes = bytes::of(path)?;
    let file = object::File::parse(&*bytes).ok()?;
    if has_lines(&file) {
        return None;
    }
    let id = file.build_id().ok()??;
    let link = file.gnu_debuglink().ok().flatten().map(|(name, _)| OsStr::from_bytes(name));
    candidates(path, id, link, system).into_iter().find(|candidate| belongs(candidate, id))
}

fn has_lines(file: &object::File) -> bool {
    file.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
}

fn candidates(path: &Path, id: &[u8], link: Option<&OsStr>, system: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let [first, rest @ ..] = id {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        all.push(system.join(format!(".build-id/{first:02x}/{rest}.debug")));
    }
    if let (Some(link), Some(dir)) = (link, path.parent()) {
        let below = system.join(dir.strip_prefix("/").unwrap_or(dir));
        all.extend([dir.join(link), dir.join(".debug").join(link), below.join(link)]);
    }
    all
}

fn belongs(candidate: &Path, id: &[u8]) -> bool {
    let Some(bytes) = bytes::of(candidate) else { return false };
    object::File::parse(&*bytes).is_ok_and(|file| file.build_id().ok().flatten() == Some(id) && has_lines(&file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn run(program: &str, args: &[&OsStr]) {
        let status = Command::new(program).args(args).status().unwrap_or_else(|e| panic!("{program}: {e}"));
        assert!(status.success(), "{program} {args:?}");
    }

    /// Stripped as `cargo xtask dist` does: found in each of the places, and only if it is that file's own.
    #[test]
    fn what_was_stripped_off_is_found_where_gdb_looks() {
        let dir = std::env::temp_dir().join(format!("vmpi-debug-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("bin/.debug")).unwrap();
        let build = |name: &str, text: &str| {
            let (source, made) = (dir.join("x.c"), dir.join("bin").join(name));
            std::fs::write(&source, text).unwrap();
            run("cc", &["-g".as_ref(), "-Wl,--build-id".as_ref(), source.as_ref(), "-o".as_ref(), made.as_ref()]);
            made
        };
        let (own, other) =
            (build("own", "int main(void) { return 0; }"), build("other", "int main(void) { return 1; }"));
        assert_eq!(found(&own, &dir), None, "it has its own");
        let apart = dir.join("bin/.debug/own.debug");
        run("objcopy", &["--only-keep-debug".as_ref(), own.as_ref(), apart.as_ref()]);
        run("strip", &[own.as_ref()]);
        let link = format!("--add-gnu-debuglink={}", apart.display());
        run("objcopy", &[link.as_ref(), own.as_ref()]);
        assert_eq!(found(&own, &dir), Some(apart.clone()));
        std::fs::rename(&apart, dir.join("bin/own.debug")).unwrap();
        assert_eq!(found(&own, &dir), Some(dir.join("bin/own.debug")));
        // Another program's under the right name is not taken.
        std::fs::rename(dir.join("bin/own.debug"), dir.join("kept")).unwrap();
        std::fs::copy(&other, &apart).unwrap();
        assert_eq!(found(&own, &dir), None);
        let bytes = std::fs::read(&own).unwrap();
        let id = object::File::parse(&*bytes).unwrap().build_id().unwrap().unwrap().to_vec();
        let by_id = candidates(&own, &id, None, &dir).remove(0);
        std::fs::create_dir_all(by_id.parent().unwrap()).unwrap();
        std::fs::rename(dir.join("kept"), &by_id).unwrap();
        assert_eq!(found(&own, &dir), Some(by_id));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
