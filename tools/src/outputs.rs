//! Files that are written when a job is over are tried before it starts: a long run is not lost to a slip in a path.

use crate::cli::RunOptions;
use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Try every file and directory that the options name for the job's end.
///
/// # Errors
/// Exit code 2: one cannot be written, and why.
pub fn check(options: &RunOptions) -> Result<(), Failure> {
    let files = [("--trace", &options.trace), ("--matrix", &options.matrix), ("--report-html", &options.report_html)];
    for (flag, file) in files {
        if let Some(file) = file {
            try_file(Path::new(file)).map_err(|e| refused(flag, file, &e))?;
        }
    }
    if let Some(path) = &options.trace {
        crate::trace::check(path)?;
    }
    if let Some(dir) = &options.profile {
        try_dir(Path::new(dir)).map_err(|e| refused("--profile", dir, &e))?;
    }
    Ok(())
}

fn refused(flag: &str, path: &str, error: &io::Error) -> Failure {
    Failure::usage(format!(
        "{flag} {path}: it could not be written when the job is over ({error}); nothing was started"
    ))
}

/// Open a file for writing as it will be, without touching what is in it; one that was not there goes again.
pub fn try_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // A device, or a pipe, whose reader may come later.
        Ok(meta) if !meta.is_file() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            drop(File::create_new(path)?);
            fs::remove_file(path)
        }
        Err(e) => Err(e),
    }
}

/// Make the directory, and a file in it that goes again.
fn try_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let probe = dir.join(format!(".vmpi-{}", std::process::id()));
    drop(File::create_new(&probe)?);
    fs::remove_file(probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_refused_and_nothing_is_left() {
        let dir = std::env::temp_dir().join(format!("vmpi-outputs-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let kept = dir.join("kept.csv");
        fs::write(&kept, "old").unwrap();
        let with = |path: &Path| {
            let matrix = Some(path.display().to_string());
            check(&RunOptions { matrix, ..RunOptions::default() })
        };
        assert_eq!((with(&kept), with(&dir.join("new.csv"))), (Ok(()), Ok(())));
        assert_eq!(with(Path::new("/dev/null")), Ok(()));
        assert_eq!(fs::read_to_string(&kept).unwrap(), "old");
        for (path, why) in [(dir.clone(), "directory"), (dir.join("no/x.csv"), "No such"), (kept.join("x"), "Not a")] {
            let refused = with(&path).unwrap_err();
            assert!(refused.code == 2 && refused.sentence.contains(why), "{refused}");
        }
        let profile = Some(kept.display().to_string());
        assert!(check(&RunOptions { profile, ..RunOptions::default() }).is_err());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
