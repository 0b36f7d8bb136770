//! Which level of threads MPI_Init, which does not say, asks for: what the user's environment says, in the words of Open MPI or of MPICH.

use crate::consts::{THREAD_FUNNELED, THREAD_MULTIPLE, THREAD_SERIALIZED, THREAD_SINGLE};
use crate::errors::{Class, Result, fail};

/// Open MPI's variable: 0 to 3.
const NUMBER: &str = "OMPI_MPI_THREAD_LEVEL";
/// MPICH's: the name of the level.
const NAMES: [&str; 2] = ["MPIR_CVAR_DEFAULT_THREAD_LEVEL", "MPICH_DEFAULT_THREAD_LEVEL"];

const LEVELS: [(&str, i32); 4] = [
    ("MPI_THREAD_SINGLE", THREAD_SINGLE),
    ("MPI_THREAD_FUNNELED", THREAD_FUNNELED),
    ("MPI_THREAD_SERIALIZED", THREAD_SERIALIZED),
    ("MPI_THREAD_MULTIPLE", THREAD_MULTIPLE),
];

/// The level that MPI_Init asks for.
///
/// # Errors
/// `Class::Other` if MPICH's variable holds no name of a level.
pub fn of_init() -> Result<i32> {
    level(|variable| std::env::var(variable).ok())
}

fn level(get: impl Fn(&str) -> Option<String>) -> Result<i32> {
    if let Some(number) = get(NUMBER) {
        // What is no level asks for the highest, as there.
        let index = number.trim().parse::<usize>().unwrap_or(LEVELS.len());
        return Ok(LEVELS.get(index).map_or(THREAD_MULTIPLE, |(_, level)| *level));
    }
    let Some((variable, name)) = NAMES.iter().find_map(|variable| Some((variable, get(variable)?))) else {
        return Ok(THREAD_SINGLE);
    };
    match LEVELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim())) {
        Some((_, level)) => Ok(*level),
        None => {
            fail(Class::Other, format!("{variable} is `{name}`; it may be one of {}", LEVELS.map(|l| l.0).join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variable: &str, value: &str) -> Result<i32> {
        level(|asked| (asked == variable).then(|| value.to_string()))
    }

    #[test]
    fn the_environment_says_it_in_either_way() {
        assert_eq!(level(|_| None).unwrap(), THREAD_SINGLE);
        let numbers = ["0", "1", "2", "3", "7", "-1"].map(|number| with(NUMBER, number).unwrap());
        let highest = THREAD_MULTIPLE;
        assert_eq!(numbers, [THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, highest, highest, highest]);
        for variable in NAMES {
            assert_eq!(with(variable, "mpi_thread_Serialized").unwrap(), THREAD_SERIALIZED);
            let why = with(variable, "all").unwrap_err().message;
            assert!(why.contains(variable) && why.contains("`all`") && why.contains("MPI_THREAD_MULTIPLE"), "{why}");
        }
    }
}
