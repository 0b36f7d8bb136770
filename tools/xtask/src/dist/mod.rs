//! Packages of what `build` makes, each from the same tree: a wheel, a relocatable tarball, Debian packages, an RPM,
//! recipes for other packagers, and a list of checksums.
//!
//! Reading order: [`dist`] -> [`reproducible`] (how it is built) -> [`strip`] (debug information goes into files of its
//! own) -> [`crates`] (licences, bill of materials) -> [`check`] (what no package may hold) -> [`tree`], [`wheel`],
//! [`tarball`], [`debian`], [`rpm`], [`recipes`].
//!
//! Archives are written here by well-kept crates (tar, zip, flate2), because their bytes must not depend on the tools of
//! the machine; Debian packages and RPMs by dpkg-deb and rpmbuild, which honour SOURCE_DATE_EPOCH and know their formats'
//! policies. cargo-deb and cargo-generate-rpm package what one crate of Cargo makes; here most files are made by `build`.

mod check;
mod crates;
mod debian;
mod recipes;
mod reproducible;
mod rpm;
mod strip;
mod tarball;
mod tree;
mod wheel;

use crate::Result;
use crate::build::build_as;
use crate::install::lay_out;
use crate::place::{target, top};
use crate::shell::{command, create_dir, output, write};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tree::{Entry, Tree};

pub struct Options {
    /// Where the packages go.
    pub into: PathBuf,
    /// Package what is there, though it is no commit.
    pub allow_dirty: bool,
    /// Link for this glibc with zig, as cargo-zigbuild does.
    pub glibc: Option<String>,
}

/// What the packages say about themselves.
pub struct Facts {
    pub version: String,
    /// The commit, if there is one.
    pub commit: Option<String>,
    /// The commit's time, or SOURCE_DATE_EPOCH: the time of every file.
    pub epoch: u64,
    /// The same: year, month, day, hour, minute, second in UTC.
    pub time: [u16; 6],
    /// The oldest glibc that the binaries run with.
    pub glibc: String,
    /// Checksums by their names in templates: `SOURCE_SHA256`, if there is a commit, and `TARBALL_SHA256`.
    pub sums: BTreeMap<&'static str, String>,
}

impl Facts {
    fn of_checkout(options: &Options) -> Result<Facts> {
        let commit = crate::build::commit();
        match &commit {
            Some(id) if id.ends_with('+') && !options.allow_dirty => {
                return Err(
                    "files differ from the commit that is checked out, and packages say which commit they are of; \
                     commit, or say --allow-dirty"
                        .into(),
                );
            }
            None if !options.allow_dirty => {
                return Err(
                    "this is no git checkout, so packages could not say which commit they are of; say --allow-dirty"
                        .into(),
                );
            }
            _ => {}
        }
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text.trim().parse().map_err(|_| format!("SOURCE_DATE_EPOCH is no number: {text}"))?,
            Err(_) if commit.is_some() => {
                let text = output(command("git").args(["log", "-1", "--format=%ct"]))?;
                text.trim().parse().map_err(|_| format!("git's time of the commit is no number: {text}"))?
            }
            Err(_) => return Err("without a commit its time is not known; set SOURCE_DATE_EPOCH".into()),
        };
        Ok(Facts {
            version: env!("CARGO_PKG_VERSION").into(),
            commit,
            epoch,
            time: time_of(epoch)?,
            glibc: String::new(),
            sums: BTreeMap::new(),
        })
    }

    /// A template with what is known in the place of `@NAME@`.
    ///
    /// # Errors
    /// Something that nobody knows.
    pub fn fill(&self, template: &str) -> Result<String> {
        let mut text = template.replace("@VERSION@", &self.version).replace("@GLIBC@", &self.glibc);
        text = text.replace("@COMMIT@", self.commit.as_deref().unwrap_or("none"));
        for (name, sum) in &self.sums {
            text = text.replace(&format!("@{name}@"), sum);
        }
        let pieces: Vec<&str> = text.split('@').collect();
        let is_name = |word: &&&str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
        };
        let between = pieces.get(1..pieces.len() - 1).unwrap_or_default();
        match between.iter().find(is_name) {
            Some(name) => Err(format!("a template asks for @{name}@, which is not known")),
            None => Ok(text),
        }
    }

    #[cfg(test)]
    fn for_tests() -> Facts {
        Facts {
            version: "0.1.0".into(),
            commit: Some("0123456789ab".into()),
            epoch: 1_700_000_000,
            time: [2023, 11, 14, 22, 13, 20],
            glibc: "2.34".into(),
            sums: BTreeMap::from([("SOURCE_SHA256", "00ff".into()), ("TARBALL_SHA256", "11ff".into())]),
        }
    }
}

fn time_of(epoch: u64) -> Result<[u16; 6]> {
    let text = output(command("date").args(["-u", "-d", &format!("@{epoch}"), "+%Y %m %d %H %M %S"]))?;
    let numbers: Vec<u16> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("date(1) says: {text}"))
}

/// Everything that is given away, in `options.into`.
pub fn dist(options: &Options) -> Result<()> {
    let mut facts = Facts::of_checkout(options)?;
    let room = target().join("dist");
    let manner = reproducible::manner(&room, &facts, options.glibc.as_deref())?;
    build_as(&manner)?;
    let (stage, debug) = (room.join("stage"), room.join("debug"));
    Tree::default().write(&stage)?;
    Tree::default().write(&debug)?;
    lay_out(&manner.release(), &stage, "${pcfiledir}/../..")?;
    strip::apart(&stage, &debug)?;
    let (mut tree, debug) = (Tree::of(&stage)?, Tree::of(&debug)?);
    facts.glibc = check::glibc(&stage, &tree)?;
    check::no_paths_of_the_build(&tree, &reproducible::places())?;
    check::no_paths_of_the_build(&debug, &reproducible::places())?;
    let found = crates::shipped()?;
    tree.put("share/doc/vmpi/vmpi.cdx.json", Entry::text(crates::bill_of_materials(&found, &facts)));
    tree.put("share/doc/vmpi/THIRD-PARTY-LICENSES.txt", Entry::text(crates::licenses(&found)?));
    let mut made = BTreeMap::new();
    if let Some((name, bytes)) = recipes::source(&facts)? {
        facts.sums.insert("SOURCE_SHA256", sum(&bytes));
        made.insert(name, bytes);
    }
    let (name, bytes) = tarball::relocatable(&tree, &facts)?;
    facts.sums.insert("TARBALL_SHA256", sum(&bytes));
    made.insert(name, bytes);
    made.extend([wheel::wheel(&tree, &facts, &room.join("thin"))?, tarball::debug(&debug, &facts)?]);
    made.extend(debian::packages(&tree, &debug, &facts, &room.join("deb"))?);
    made.extend(rpm::package(&tree, &facts, &room.join("rpm"))?);
    made.extend(recipes::recipes(&facts)?);
    for name in ["vmpi.cdx.json", "THIRD-PARTY-LICENSES.txt"] {
        made.insert(name.into(), tree.0[&format!("share/doc/vmpi/{name}")].bytes().to_vec());
    }
    give(&made, &options.into)?;
    let head = if facts.commit.is_some() { "" } else { " (of no commit)" };
    eprintln!("dist: vmpi {}{head}, for glibc {} and later, in {}", facts.version, facts.glibc, options.into.display());
    Ok(())
}

/// SHA-256 as sha256sum prints it.
fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Write all files and their checksums; `sha256sum -c SHA256SUMS` checks them.
fn give(made: &BTreeMap<String, Vec<u8>>, into: &Path) -> Result<()> {
    let into = if into.is_absolute() { into.to_owned() } else { top().join(into) };
    let mut sums = String::new();
    // Only what an earlier call has listed is taken away: the directory may be somebody's.
    let listed = fs::read_to_string(into.join("SHA256SUMS")).unwrap_or_default();
    for (_, name) in listed.lines().filter_map(|line| line.split_once("  ")) {
        let _ = fs::remove_file(into.join(name));
    }
    for (name, bytes) in made {
        let path = into.join(name);
        path.parent().map_or(Ok(()), create_dir)?;
        fs::write(&path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        sums.push_str(&format!("{}  {name}\n", sum(bytes)));
    }
    write(&into.join("SHA256SUMS"), &sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_and_what_nobody_knows_is_named() {
        let facts = Facts::for_tests();
        let text = facts.fill("v@VERSION@ @SOURCE_SHA256@ a@b \"$@\" %{x}").unwrap();
        assert_eq!(text, "v0.1.0 00ff a@b \"$@\" %{x}");
        assert!(facts.fill("@WEATHER@").unwrap_err().contains("@WEATHER@"));
        assert_eq!(time_of(facts.epoch).unwrap(), facts.time);
    }

    /// sha256sum itself agrees, and a second call takes away what only the first one made.
    #[test]
    fn checksums_are_those_of_the_files() {
        let dir = std::env::temp_dir().join(format!("vmpi-sums-{}", std::process::id()));
        let made = BTreeMap::from([("a.whl".to_owned(), b"one".to_vec()), ("recipes/b".to_owned(), b"two".to_vec())]);
        give(&made, &dir).unwrap();
        fs::write(dir.join("mine"), "not listed").unwrap();
        output(command("sha256sum").args(["--strict", "-c", "SHA256SUMS"]).current_dir(&dir)).unwrap();
        give(&BTreeMap::from([("c".to_owned(), Vec::new())]), &dir).unwrap();
        assert!(!dir.join("a.whl").exists() && dir.join("mine").exists() && dir.join("c").exists());
        fs::remove_dir_all(dir).unwrap();
    }
}
