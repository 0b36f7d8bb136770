//! R puts directories in front of LD_LIBRARY_PATH when it starts; on Debian these are the system's, where Rmpi would find the
//! real MPI: every rank would be alone, without an error. R takes `R_LD_LIBRARY_PATH` instead of its own choice if it is set.

use crate::environ::Env;
use std::path::{Path, PathBuf};

const LIBRARY_PATH: &str = "R_LD_LIBRARY_PATH";

/// Let the R that `program` starts, or the one on PATH, look in `faces` first.
pub fn tell(program: &Path, faces: &[String], env: &mut Env) {
    let before = match env.get(LIBRARY_PATH).filter(|set| !set.is_empty()) {
        Some(set) => set.clone(),
        // What R would add by itself, but for the system's directories, which the loader knows.
        None => match home(program, env) {
            Some(home) => home.join("lib").display().to_string(),
            None => return,
        },
    };
    env.insert(LIBRARY_PATH.into(), format!("{}:{before}", faces.join(":")));
}

/// R_HOME, as R's start script, beside the program or on PATH, has it.
fn home(program: &Path, env: &Env) -> Option<PathBuf> {
    let beside = program.parent().map(Path::to_path_buf);
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let scripts = beside.into_iter().chain(std::env::split_paths(path)).map(|dir| dir.join("R"));
    scripts
        .filter_map(|script| std::fs::read(script).ok())
        .find_map(|script| home_in(&String::from_utf8_lossy(&script)))
}

fn home_in(script: &str) -> Option<PathBuf> {
    let value = script.lines().find_map(|line| line.strip_prefix("R_HOME_DIR="))?.trim().trim_matches('"');
    value.starts_with('/').then(|| value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_home_is_in_the_start_script() {
        assert_eq!(home_in("#!/bin/bash\n\nR_HOME_DIR=/usr/lib/R\nif test"), Some("/usr/lib/R".into()));
        assert_eq!(home_in("R_HOME_DIR=\"/opt/R/lib/R\"\n"), Some("/opt/R/lib/R".into()));
        assert_eq!(home_in("R_HOME_DIR=${x}\n"), None);
        assert_eq!(home_in("another program"), None);
    }

    #[test]
    fn faces_come_first_and_no_r_changes_nothing() {
        let base = std::env::temp_dir().join(format!("vmpi-r-{}", std::process::id()));
        std::fs::create_dir_all(&base).unwrap();
        std::fs::write(base.join("R"), "#!/bin/sh\nR_HOME_DIR=/home/of/R\n").unwrap();
        let faces = ["/f/openmpi".to_owned(), "/f/mpich".to_owned()];
        let mut by_path = env(&[("PATH", &format!("/nowhere:{}", base.display()))]);
        tell(Path::new("/nowhere/sh"), &faces, &mut by_path);
        let mut beside = Env::new();
        tell(&base.join("Rscript"), &faces, &mut beside);
        let mut set = env(&[("R_LD_LIBRARY_PATH", "/mine")]);
        tell(&base.join("Rscript"), &faces, &mut set);
        let mut none = env(&[("PATH", "/nowhere")]);
        tell(Path::new("/nowhere/program"), &faces, &mut none);
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(by_path[LIBRARY_PATH], "/f/openmpi:/f/mpich:/home/of/R/lib");
        assert_eq!(beside[LIBRARY_PATH], "/f/openmpi:/f/mpich:/home/of/R/lib");
        assert_eq!(set[LIBRARY_PATH], "/f/openmpi:/f/mpich:/mine");
        assert!(!none.contains_key(LIBRARY_PATH));
    }
}
