//! `vmpictl matrix`.

use super::Output;
use super::peers::find_job;
use crate::failure::Failure;
use crate::matrix::{self, Form};
use std::io::IsTerminal;
use std::path::Path;
use vmpi_shared::control::{Reply, Request};

/// `--place`: where the ranks of a job, or of a run that a file is of, would better sit.
pub fn place(target: Option<&str>, output: Option<&str>) -> Result<Output, Failure> {
    let found = if let Some(target) = target.filter(|target| Path::new(target).is_file()) {
        let text = std::fs::read_to_string(target).map_err(|e| Failure::usage(format!("{target}: {e}")))?;
        serde_json::from_str(&text)
            .map_err(|e| Failure::usage(format!("{target} is no matrix of vmpirun --matrix FILE.json: {e}")))?
    } else {
        let (mut peer, job, _) = find_job(target)?;
        let Reply::Matrix { matrix: found } = peer.ask(&Request::Matrix { job, on: None })? else {
            return Err(Failure::new(1, format!("vmpid (pid {}) did not answer with the matrix", peer.pid)));
        };
        if !found.nodes.is_empty() {
            let why = "each vmpid knows what its own node has sent; ask with the file of vmpirun --matrix FILE.json";
            return Err(Failure::usage(format!("job {job} is on several nodes: {why}")));
        }
        *found
    };
    let text = crate::place::advice(&found);
    match output {
        Some(path) => {
            std::fs::write(path, text).map_err(|e| Failure::new(1, format!("cannot write {path}: {e}")))?;
            Ok(String::new().into())
        }
        None => Ok(text.into()),
    }
}

/// What has gone from rank to rank; `switch`: begin or stop counting first.
pub fn matrix(
    target: Option<&str>,
    switch: Option<bool>,
    form: Option<Form>,
    output: Option<&str>,
) -> Result<Output, Failure> {
    let (mut peer, job, rank) = find_job(target)?;
    if let (Some(_), Some(target)) = (rank, target) {
        return Err(Failure::usage(format!("`{target}`: the matrix is that of a whole job; leave the rank out")));
    }
    let Reply::Matrix { matrix: found } = peer.ask(&Request::Matrix { job, on: switch })? else {
        return Err(Failure::new(1, format!("vmpid (pid {}) did not answer with the matrix", peer.pid)));
    };
    if let Some(path) = output.filter(|_| form.is_none()) {
        matrix::save(&found, path)?;
        return Ok(String::new().into());
    }
    let bytes = match form {
        Some(form) => form.render(&found).map_err(|error| Failure::new(1, error.to_string()))?,
        None => matrix::text(&found).into_bytes(),
    };
    if let Some(path) = output {
        std::fs::write(path, bytes).map_err(|e| Failure::new(1, format!("cannot write {path}: {e}")))?;
        return Ok(String::new().into());
    }
    if form == Some(Form::Png) && std::io::stdout().is_terminal() {
        return Err(Failure::usage("a PNG is not for a terminal; say --output FILE"));
    }
    Ok(Output { bytes, code: 0 })
}
