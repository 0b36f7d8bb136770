//! `vmpictl compare`.

use super::Output;
use crate::compare::{Comparison, read};
use crate::failure::Failure;

/// Two files about runs, side by side.
pub fn compare(a: &str, b: &str, as_json: bool) -> Result<Output, Failure> {
    let (a, b) = (read(a).map_err(Failure::usage)?, read(b).map_err(Failure::usage)?);
    let comparison = Comparison::new(&a, &b).map_err(Failure::usage)?;
    Ok(Output::from(if as_json { format!("{:#}\n", comparison.json()) } else { comparison.text() }))
}
