//! What must agree before a version is tagged. Nothing is uploaded or tagged here: it says what its maintainer does.

use crate::Result;
use crate::build::commit;
use crate::place::{target, top};
use crate::setup::tool;
use crate::shell::{cargo, command, create_dir, output};
use serde_json::Value;
use std::fs;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A thing that must hold: what it is called, and whether it does.
type Check = (&'static str, fn() -> Result<()>);

const CHECKS: &[Check] = &[
    ("the checkout is a commit", is_a_commit),
    ("there is no such tag yet", is_not_tagged),
    ("CHANGELOG.md has the version and its date, and nothing unreleased", || {
        changelog(&read("CHANGELOG.md")?, VERSION)
    }),
    ("CITATION.cff has the version", || citation(&read("CITATION.cff")?, VERSION)),
    ("Cargo.toml's rust-version is the one that the guide says", || {
        rust_version(&read("Cargo.toml")?, &read("docs/guide/src/versions.md")?)
    }),
    ("packages name a homepage and a maintainer who can be reached", reachable),
    ("every crate has the workspace's version, and Cargo.lock is up to date", lock),
    ("manual pages are made, and have the version", manual_pages),
    ("schemas are JSON, and each document that they describe has a schema_version", || {
        schema(&read("docs/vmpictl.schema.json")?)
    }),
    ("licences, sources and bans of all crates", deny),
];

pub fn release() -> Result<()> {
    let mut failed = 0;
    for (what, check) in CHECKS {
        match check() {
            Ok(()) => println!("holds: {what}"),
            Err(why) => {
                failed += 1;
                println!("DOES NOT HOLD: {what}: {}", why.trim());
            }
        }
    }
    if failed > 0 {
        return Err(format!("{failed} of {} things must be put right before {VERSION} is released", CHECKS.len()));
    }
    println!(
        "\n{VERSION} may be released. What no command of this project does by itself:\n\
         cargo xtask test && cargo xtask test --tier 2\n\
         git tag -s v{VERSION} -m 'vmpi {VERSION}' && git push origin v{VERSION}\n\
         cargo xtask dist --glibc 2.28               # from the tag; twice, on two machines, with equal SHA256SUMS\n\
         gpg --detach-sign --armor target/dist/out/SHA256SUMS\n\
         twine upload target/dist/out/*.whl          # PyPI; the other files go to the release's page"
    );
    Ok(())
}

fn read(name: &str) -> Result<String> {
    fs::read_to_string(top().join(name)).map_err(|e| format!("{name}: {e}"))
}

fn is_a_commit() -> Result<()> {
    match commit() {
        None => Err("this is no git checkout".into()),
        Some(id) if id.ends_with('+') => Err(format!("files differ from commit {}", id.trim_end_matches('+'))),
        Some(_) => Ok(()),
    }
}

fn is_not_tagged() -> Result<()> {
    let tags = output(command("git").args(["tag", "--list", &format!("v{VERSION}")]))?;
    if tags.trim().is_empty() { Ok(()) } else { Err(format!("v{VERSION} is tagged; raise the version in Cargo.toml")) }
}

fn changelog(text: &str, version: &str) -> Result<()> {
    let mut sections = text.split("\n## ").skip(1);
    let mut newest = sections.next().unwrap_or_default();
    if let Some(unreleased) = newest.strip_prefix("Unreleased") {
        if let Some(line) = unreleased.lines().find(|line| !line.trim().is_empty()) {
            return Err(format!("still under Unreleased: {line}"));
        }
        newest = sections.next().unwrap_or_default();
    }
    let heading = newest.lines().next().unwrap_or_default();
    let date = heading.strip_prefix(version).and_then(|rest| rest.strip_prefix(" - ")).unwrap_or_default();
    let parts: Vec<&str> = date.split('-').collect();
    let is_date = matches!(parts[..], [y, m, d] if (y.len(), m.len(), d.len()) == (4, 2, 2)
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit())));
    match is_date {
        true => Ok(()),
        false => Err(format!("the newest heading is `{heading}`, not `{version} - YYYY-MM-DD`")),
    }
}

fn citation(text: &str, version: &str) -> Result<()> {
    let said = text.lines().find_map(|line| line.strip_prefix("version: ")).unwrap_or("none");
    if said.trim().trim_matches('"') == version { Ok(()) } else { Err(format!("it says {said}, not {version}")) }
}

/// A domain that is nobody's (RFC 2606): what stands in packages until the project has an address.
const NOBODY: &str = "example.org";

fn reachable() -> Result<()> {
    let mut files = vec!["CITATION.cff".to_string(), "Cargo.toml".into(), "tools/xtask/src/dist/debian.rs".into()];
    for dir in ["debian", "easybuild", "spack", "conda", "rpm", "ci"].map(|name| format!("packaging/{name}")) {
        let entries = fs::read_dir(top().join(&dir)).map_err(|e| format!("{dir}: {e}"))?;
        files.extend(entries.flatten().map(|entry| format!("{dir}/{}", entry.file_name().to_string_lossy())));
    }
    files.sort();
    let texts = files.into_iter().map(|name| read(&name).map(|text| (name, text))).collect::<Result<Vec<_>>>()?;
    unreachable_in(&texts)
}

fn unreachable_in(texts: &[(String, String)]) -> Result<()> {
    let found: Vec<&str> =
        texts.iter().filter(|(_, text)| text.contains(NOBODY)).map(|(name, _)| name.as_str()).collect();
    match found[..] {
        [] => Ok(()),
        _ => Err(format!("{NOBODY} stands for the project's address in {}", found.join(", "))),
    }
}

fn rust_version(manifest: &str, page: &str) -> Result<()> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = line.ok_or("Cargo.toml says none")?.trim_matches('"');
    match page.contains(&format!("Rust {version}")) {
        true => Ok(()),
        false => Err(format!("the guide does not say Rust {version}")),
    }
}

fn lock() -> Result<()> {
    let said = output(cargo().args(["metadata", "--format-version", "1", "--locked", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&said).map_err(|e| format!("cargo metadata's answer: {e}"))?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let odd: Vec<String> = packages
        .iter()
        .filter(|package| package["version"] != VERSION)
        .map(|package| format!("{} {}", package["name"], package["version"]))
        .collect();
    if odd.is_empty() { Ok(()) } else { Err(odd.join(", ")) }
}

fn manual_pages() -> Result<()> {
    let share = target().join("release-check");
    let _ = fs::remove_dir_all(&share);
    create_dir(&share)?;
    output(cargo().args(["run", "--quiet", "--package", "xtask", "--features", "manual", "--", "manual"]).arg(&share))?;
    for name in ["vmpirun.1", "vmpictl.1"] {
        let page = fs::read_to_string(share.join("man/man1").join(name)).map_err(|e| format!("{name}: {e}"))?;
        if !page.lines().any(|line| line.starts_with(".TH") && line.contains(VERSION)) {
            return Err(format!("{name} does not have {VERSION} in its title"));
        }
    }
    Ok(())
}

fn schema(text: &str) -> Result<()> {
    let schema: Value = serde_json::from_str(text).map_err(|e| format!("docs/vmpictl.schema.json: {e}"))?;
    let definitions = schema["$defs"].as_object().ok_or("it has no $defs")?;
    let documents = definitions.iter().filter(|(_, what)| !what["properties"]["schema_version"].is_null());
    let loose: Vec<&str> = documents
        .clone()
        .filter(|(_, what)| {
            let required = what["required"].as_array().cloned().unwrap_or_default();
            !required.iter().any(|name| name == "schema_version")
        })
        .map(|(name, _)| name.as_str())
        .collect();
    match (documents.count(), loose.is_empty()) {
        (0, _) => Err("no document of vmpictl has a schema_version".into()),
        (_, false) => Err(format!("schema_version is not required in {}", loose.join(", "))),
        _ => Ok(()),
    }
}

fn deny() -> Result<()> {
    let deny = tool("cargo-deny").ok_or("there is no cargo-deny; run `cargo xtask setup` first")?;
    output(command(deny).args(["--workspace", "check", "licenses", "bans", "sources"])).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_has_the_version_and_nothing_unreleased() {
        let log = |text: &str| changelog(&format!("# Changes\n\n{text}"), "0.1.0");
        assert_eq!(log("## 0.1.0 - 2026-11-27\n\n- all\n"), Ok(()));
        assert_eq!(log("## Unreleased\n\n## 0.1.0 - 2026-11-27\n"), Ok(()));
        assert_eq!(
            log("## Unreleased\n\n- new\n\n## 0.1.0 - 2026-11-27\n").unwrap_err(),
            "still under Unreleased: - new"
        );
        for odd in ["## 0.1.0\n", "## 0.1.0 - soon\n", "## 0.1.01 - 2026-11-27\n", "## 0.2.0 - 2026-11-27\n", ""] {
            assert!(log(odd).unwrap_err().contains("not `0.1.0 - YYYY-MM-DD`"), "{odd}");
        }
    }

    #[test]
    fn an_address_that_is_nobodys_is_found() {
        let texts = |second: &str| vec![("a".to_string(), "x".to_string()), ("b".to_string(), second.to_string())];
        assert_eq!(unreachable_in(&texts("Homepage: https://vmpi.dev")), Ok(()));
        assert!(unreachable_in(&texts("vmpi@example.org")).unwrap_err().ends_with("address in b"));
        // As long as it is so, `release` says so of these and of no others.
        let why = reachable().err().unwrap_or_default();
        assert!(why.is_empty() || why.contains("packaging/debian/vmpi.control, "), "{why}");
    }

    #[test]
    fn other_files_say_the_same() {
        assert_eq!(citation("version: 0.1.0\n", "0.1.0"), Ok(()));
        assert!(citation("version: 0.1\n", "0.1.0").is_err() && citation("", "0.1.0").is_err());
        assert_eq!(rust_version("rust-version = \"1.95\"\n", "needs Rust 1.95"), Ok(()));
        assert!(rust_version("rust-version = \"1.95\"\n", "needs Rust 1.9").is_err());
        let document = |required: &str| {
            schema(&format!(
                r#"{{"$defs":{{"ps":{{"properties":{{"schema_version":{{}}}},"required":[{required}]}}}}}}"#
            ))
        };
        assert_eq!(document("\"schema_version\""), Ok(()));
        assert_eq!(document("").unwrap_err(), "schema_version is not required in ps");
        assert!(schema("{\"$defs\":{}}").is_err() && schema("{").is_err());
        assert_eq!(schema(&read("docs/vmpictl.schema.json").unwrap()), Ok(()), "the one that there is");
    }
}
