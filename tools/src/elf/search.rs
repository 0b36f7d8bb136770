//! Where ld.so looks for a library: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, ld.so.cache, the default directories
//! (ld.so(8)). Directories of glibc-hwcaps are left out: what lies there has the same sonames.

use super::Image;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The directories and the cache, for one environment.
#[derive(Clone, Debug, Default)]
pub struct Search {
    pub library_path: Vec<PathBuf>,
    cache: HashMap<String, PathBuf>,
}

#[cfg(target_arch = "x86_64")]
const LIB: (&str, &str) = ("lib/x86_64-linux-gnu", "x86_64");
#[cfg(target_arch = "aarch64")]
const LIB: (&str, &str) = ("lib/aarch64-linux-gnu", "aarch64");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const LIB: (&str, &str) = ("lib64", "");

impl Search {
    /// With the value of LD_LIBRARY_PATH and this machine's ld.so.cache.
    pub fn new(library_path: &str) -> Search {
        let library_path = library_path.split([':', ';']).filter(|dir| !dir.is_empty()).map(PathBuf::from).collect();
        let cache = std::fs::read("/etc/ld.so.cache").ok().and_then(|bytes| parse_cache(&bytes)).unwrap_or_default();
        Search { library_path, cache }
    }

    /// The file that ld.so would load for `name`, needed by the last of `loaders` (the program first).
    pub fn find(&self, name: &str, loaders: &[(&Path, &Image)]) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.exists());
        }
        let (_, needing) = loaders.last()?;
        let rpaths = loaders.iter().rev().filter(|_| needing.runpath.is_none()).flat_map(|(path, image)| {
            let rpath = image.rpath.as_deref().filter(|_| image.runpath.is_none());
            expand(rpath.unwrap_or(""), path)
        });
        let runpaths =
            loaders.iter().rev().take(1).flat_map(|(path, image)| expand(image.runpath.as_deref().unwrap_or(""), path));
        let in_dir = |dir: PathBuf| Some(dir.join(name)).filter(|path| is_library(path));
        rpaths
            .chain(self.library_path.iter().cloned())
            .chain(runpaths)
            .find_map(in_dir)
            .or_else(|| self.cache.get(name).filter(|path| path.exists()).cloned())
            .or_else(|| {
                let defaults = [format!("/{}", LIB.0), format!("/usr/{}", LIB.0)];
                let defaults = defaults.iter().map(String::as_str).chain(["/lib64", "/usr/lib64", "/lib", "/usr/lib"]);
                defaults.map(PathBuf::from).find_map(in_dir)
            })
    }
}

/// ld.so passes over files of other machines.
fn is_library(path: &Path) -> bool {
    path.is_file() && Image::read(path).is_ok()
}

/// The directories of a DT_RPATH or DT_RUNPATH with `$ORIGIN`, `$LIB` and `$PLATFORM` filled in.
fn expand(list: &str, object: &Path) -> Vec<PathBuf> {
    let origin = std::fs::canonicalize(object).ok();
    let origin = origin.as_deref().and_then(Path::parent).unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    list.split(':')
        .filter(|dir| !dir.is_empty())
        .map(|dir| {
            let mut dir = dir.to_string();
            for (name, value) in [("ORIGIN", origin.as_str()), ("LIB", LIB.0), ("PLATFORM", LIB.1)] {
                dir = dir.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
            }
            PathBuf::from(dir)
        })
        .collect()
}

/// The name -> file table of an ld.so.cache in the format of glibc 2.2 and later.
fn parse_cache(bytes: &[u8]) -> Option<HashMap<String, PathBuf>> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER_BYTES: usize = 48;
    const ENTRY_BYTES: usize = 24;
    let start = bytes.windows(MAGIC.len()).position(|window| window == MAGIC)?;
    let table = &bytes[start..];
    let word = |at: usize| Some(u32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?));
    let text = |at: u32| {
        let rest = table.get(at as usize..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    // The low byte says which C library, the next for which machine; libraries of others are not for us.
    const OWN_FLAGS: u32 = if cfg!(target_arch = "x86_64") { 0x0303 } else { 0x0a03 };
    let count = word(MAGIC.len())? as usize;
    let mut names = HashMap::new();
    for entry in (0..count).map(|i| HEADER_BYTES + i * ENTRY_BYTES) {
        let (flags, key, value) = (word(entry)?, word(entry + 4)?, word(entry + 8)?);
        if flags == OWN_FLAGS {
            names.entry(text(key)?).or_insert(PathBuf::from(text(value)?));
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_of_this_machine_knows_libc() {
        let search = Search::new("");
        assert!(search.cache.contains_key("libc.so.6"), "{} entries", search.cache.len());
        assert_eq!(parse_cache(b"nonsense"), None);
        let mut short = b"glibc-ld.so.cache1.1".to_vec();
        short.extend(9u32.to_le_bytes());
        assert_eq!(parse_cache(&short), None);
    }

    #[test]
    fn origin_is_the_objects_directory() {
        let dirs = expand("$ORIGIN/../lib:${ORIGIN}:/opt/$LIB", Path::new("/usr/bin/env"));
        assert_eq!(dirs[0], Path::new("/usr/bin/../lib"));
        assert_eq!(dirs[1], Path::new("/usr/bin"));
        assert_eq!(dirs[2], Path::new("/opt").join(LIB.0));
    }
}
