//! The crates whose code is in the packages: a bill of materials (CycloneDX 1.5), and their licences.
//!
//! From cargo's own answer (`cargo metadata`), because packages hold several programs and libraries: cargo-cyclonedx
//! writes a bill for each crate, with a time and a random number in it.

use super::Facts;
use crate::Result;
use crate::shell::{cargo, output};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What is packed of this workspace.
const SHIPPED: &[&str] =
    &["vmpi-tools", "vmpid", "vmpi-openmpi", "vmpi-mpich", "vmpi-standard", "vmpi-audit", "vmpi-verbs"];

/// One crate, by cargo's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    pub name: String,
    pub version: String,
    pub license: String,
    /// From a registry, and not of this workspace.
    pub foreign: bool,
    pub dir: PathBuf,
    pub needs: Vec<String>,
}

impl Crate {
    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// Those that are shipped and all that they need to run, sorted.
pub fn shipped() -> Result<Vec<Crate>> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let metadata: Value =
        serde_json::from_str(&output(&mut metadata)?).map_err(|e| format!("cargo metadata's answer: {e}"))?;
    closure(&metadata, SHIPPED)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn closure(metadata: &Value, roots: &[&str]) -> Result<Vec<Crate>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let needs: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            // Not for tests, and not to build.
            let runs = |dep: &&Value| list(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            (text(&node["id"]), list(&node["deps"]).iter().filter(runs).map(|dep| text(&dep["pkg"])).collect())
        })
        .collect();
    let mut wanted: Vec<String> = Vec::new();
    for root in roots {
        let id = packages.iter().find(|(_, package)| package["name"] == **root).map(|(id, _)| id.clone());
        wanted.push(id.ok_or_else(|| format!("this workspace has no crate {root}"))?);
    }
    let mut seen = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        if seen.insert(id.clone()) {
            wanted.extend(needs.get(&id).into_iter().flatten().cloned());
        }
    }
    let made = |id: &String| Crate {
        name: text(&packages[id]["name"]),
        version: text(&packages[id]["version"]),
        license: text(&packages[id]["license"]).replace('/', " OR "),
        foreign: !packages[id]["source"].is_null(),
        dir: PathBuf::from(text(&packages[id]["manifest_path"])).parent().map(Into::into).unwrap_or_default(),
        needs: Vec::new(),
    };
    let reference = |id: &String| made(id).reference();
    let crates = seen.iter().map(|id| {
        let mut needs: Vec<String> =
            needs.get(id).into_iter().flatten().filter(|need| seen.contains(*need)).map(reference).collect();
        needs.sort();
        Crate { needs, ..made(id) }
    });
    let mut crates: Vec<Crate> = crates.collect();
    crates.sort();
    Ok(crates)
}

/// CycloneDX, without the random serial number that two equal builds would differ by.
pub fn bill_of_materials(crates: &[Crate], facts: &Facts) -> String {
    let [year, month, day, hour, minute, second] = facts.time;
    let own = format!("vmpi@{}", facts.version);
    let components: Vec<Value> = crates
        .iter()
        .map(|one| {
            let mut component = json!({
                "type": "library",
                "bom-ref": one.reference(),
                "name": one.name,
                "version": one.version,
                "licenses": [{ "expression": one.license }],
            });
            if one.foreign {
                component["purl"] = one.reference().into();
            }
            component
        })
        .collect();
    let mut dependencies: Vec<Value> =
        crates.iter().map(|one| json!({ "ref": one.reference(), "dependsOn": one.needs })).collect();
    let roots = crates.iter().filter(|one| SHIPPED.contains(&one.name.as_str())).map(Crate::reference);
    dependencies.insert(0, json!({ "ref": own, "dependsOn": roots.collect::<Vec<_>>() }));
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "vmpi",
                "version": facts.version,
                "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
            },
            "properties": [{ "name": "vmpi:commit", "value": facts.commit.as_deref().unwrap_or("none") }],
        },
        "components": components,
        "dependencies": dependencies,
    });
    format!("{bill:#}\n")
}

const TEXTS: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Who may be used under what, then each text once with the crates that bring it.
pub fn licenses(crates: &[Crate]) -> Result<String> {
    let mut list = String::from(
        "vmpi's programs and libraries contain code of these crates, and of Rust's standard library (MIT OR Apache-2.0,\n\
         https://github.com/rust-lang/rust). Below the list each text of a licence, with the crates that bring it.\n\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in crates.iter().filter(|one| one.foreign) {
        let name = format!("{} {}", one.name, one.version);
        let mut files: Vec<PathBuf> = std::fs::read_dir(&one.dir)
            .map_err(|e| format!("{}: {e}", one.dir.display()))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let file = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
                path.is_file() && TEXTS.iter().any(|text| file.starts_with(text))
            })
            .collect();
        files.sort();
        let without = if files.is_empty() { "  (the crate brings no text)" } else { "" };
        list.push_str(&format!("{name}: {}{without}\n", one.license));
        for file in files {
            let bytes = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let text = String::from_utf8_lossy(&bytes).replace('\r', "").trim().to_owned();
            let who = texts.entry(text).or_default();
            if !who.contains(&name) {
                who.push(name.clone());
            }
        }
    }
    for (text, who) in texts {
        list.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), who.join(", ")));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Value {
        let package = |id: &str, name: &str, source: Value| {
            json!({ "id": id, "name": name, "version": "1.0.0",
            "license": "MIT/Apache-2.0", "source": source, "manifest_path": format!("/x/{name}/Cargo.toml") })
        };
        let dep = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        json!({
            "packages": [package("r", "vmpid", Value::Null), package("a", "a", "registry".into()),
                package("b", "b", "registry".into()), package("t", "t", "registry".into())],
            "resolve": { "nodes": [
                { "id": "r", "deps": [dep("a", Value::Null), dep("t", "dev".into())] },
                { "id": "a", "deps": [dep("b", Value::Null)] },
                { "id": "b", "deps": [] }, { "id": "t", "deps": [] }] },
        })
    }

    #[test]
    fn what_runs_is_in_the_bill_and_what_tests_is_not() {
        let crates = closure(&metadata(), &["vmpid"]).unwrap();
        let names: Vec<&str> = crates.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "vmpid"]);
        assert_eq!(crates[0].license, "MIT OR Apache-2.0", "an SPDX expression");
        let bill: Value = serde_json::from_str(&bill_of_materials(&crates, &Facts::for_tests())).unwrap();
        assert_eq!(bill["components"].as_array().unwrap().len(), 3);
        assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        assert!(bill["components"][2]["purl"].is_null(), "vmpid is on no registry");
        let references: BTreeSet<String> =
            bill["components"].as_array().unwrap().iter().map(|one| text(&one["bom-ref"])).collect();
        for needed in
            bill["dependencies"].as_array().unwrap().iter().flat_map(|one| one["dependsOn"].as_array().unwrap())
        {
            assert!(references.contains(needed.as_str().unwrap()), "{needed}");
        }
        assert!(closure(&metadata(), &["gone"]).unwrap_err().contains("gone"));
    }
}
