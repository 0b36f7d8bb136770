//! What other packagers take: the source of the commit, and recipes with its version and checksum filled in.

use super::Facts;
use super::tarball::gzip;
use crate::Result;
use crate::shell::{command, shown};

/// A template of packaging/, built in, and where it goes.
macro_rules! templates {
    ($($from:literal => $to:literal)*) => {
        &[$(($to, include_str!(concat!("../../../../packaging/", $from)))),*]
    };
}

const RECIPES: &[(&str, &str)] = templates! {
    "Dockerfile" => "recipes/Dockerfile"
    "vmpi.def" => "recipes/vmpi.def"
    "spack/package.py" => "recipes/spack/package.py"
    "easybuild/vmpi.eb" => "recipes/easybuild/vmpi-@VERSION@.eb"
    "modulefile/vmpi" => "recipes/modulefile/@VERSION@"
    "conda/meta.yaml" => "recipes/conda/meta.yaml"
    "ci/action.yml" => "recipes/ci/action.yml"
};

/// The files of the commit as git has them; `None`: what was packaged is no commit.
pub fn source(facts: &Facts) -> Result<Option<(String, Vec<u8>)>> {
    if facts.commit.as_ref().is_none_or(|commit| commit.ends_with('+')) {
        return Ok(None);
    }
    let name = format!("vmpi-{}", facts.version);
    let mut archive = command("git");
    archive.args([
        "archive",
        "--format=tar",
        &format!("--prefix={name}/"),
        &format!("--mtime=@{}", facts.epoch),
        "HEAD",
    ]);
    let made = archive.output().map_err(|e| format!("{} does not start: {e}", shown(&archive)))?;
    if !made.status.success() {
        return Err(format!("{} failed: {}", shown(&archive), String::from_utf8_lossy(&made.stderr)));
    }
    Ok(Some((format!("{name}.tar.gz"), gzip(&made.stdout)?)))
}

/// Empty where there is no commit: a recipe without the checksum of its source would be of no use.
pub fn recipes(facts: &Facts) -> Result<Vec<(String, Vec<u8>)>> {
    if !facts.sums.contains_key("SOURCE_SHA256") {
        eprintln!("dist: no recipes for other packagers, since they name the checksum of a commit's source");
        return Ok(Vec::new());
    }
    RECIPES.iter().map(|(name, text)| Ok((facts.fill(name)?, facts.fill(text)?.into_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_filled() {
        let made = recipes(&Facts::for_tests()).unwrap();
        assert_eq!(made.len(), RECIPES.len());
        for (name, text) in made {
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("0.1.0"), "{name} does not say of which version it is");
        }
        assert!(recipes(&Facts { sums: Default::default(), ..Facts::for_tests() }).unwrap().is_empty());
    }
}
