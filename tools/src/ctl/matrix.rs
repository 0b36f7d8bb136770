//! `vmpictl matrix`.

use super::Output;
use super::peers::find_job;
use crate::failure::Failure;
use crate::matrix::{self, Form};
use std::io::IsTerminal;
use vmpi_shared::control::{Reply, Request};

/// What has gone from rank to rank; `switch`: begin or stop counting first.
pub fn matrix(target: &str, switch: Option<bool>, form: Option<Form>, output: Option<&str>) -> Result<Output, Failure> {
    let (mut peer, job, rank) = find_job(target)?;
    if rank.is_some() {
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
