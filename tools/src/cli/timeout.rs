//! After how long a job is ended: `--timeout`, or the variable that Hydra and Open MPI's mpirun look at.

use super::apply::number;
use crate::failure::Failure;

const VARIABLE: &str = "MPIEXEC_TIMEOUT";

/// Seconds; none for ever. What the command line says wins; a number in the environment that is not positive says nothing.
///
/// # Errors
/// The variable is not a number.
pub fn timeout_s(given: Option<u64>, variable: impl Fn(&str) -> Option<String>) -> Result<Option<u64>, Failure> {
    let set = variable(VARIABLE).filter(|value| !value.is_empty() && !value.starts_with('-'));
    match (given, set) {
        (None, Some(value)) => {
            let seconds = number(&value, "seconds").map_err(|why| Failure::usage(format!("{VARIABLE}: {why}")))?;
            Ok(Some(seconds).filter(|seconds| *seconds > 0))
        }
        _ => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins_and_what_is_not_positive_says_nothing() {
        let with = |value: &'static str| move |name: &str| (name == VARIABLE).then(|| value.to_owned());
        assert_eq!(timeout_s(None, |_| None), Ok(None));
        assert_eq!(timeout_s(None, with("10")), Ok(Some(10)));
        assert_eq!(timeout_s(Some(3), with("10")), Ok(Some(3)));
        assert_eq!(timeout_s(None, with("0")), Ok(None));
        assert_eq!(timeout_s(None, with("-1")), Ok(None));
        assert_eq!(timeout_s(None, with("")), Ok(None));
        assert_eq!(timeout_s(None, with("soon")).unwrap_err().code, 2);
    }
}
