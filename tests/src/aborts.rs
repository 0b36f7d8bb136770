//! What is left of a job in which a rank of `ulfm_abort.c` aborts a communicator.

use crate::job::Outcome;

/// The stories that every header has what is needed for; "error" needs MPI_ERRORS_ABORT.
pub const STORIES: [&str; 4] = ["odd", "self", "inter", "spawned"];

/// Who was to survive did, and the exit code and a sentence tell of those who did not.
///
/// # Panics
/// If not.
pub fn check(story: &str, ranks: u32, outcome: &Outcome) {
    let odd = ranks / 2;
    let (dead, code) = match story {
        "odd" => (odd, 8),
        "self" => (1, 8),
        "inter" => (odd + 1, 8),
        // MPI_ERR_RANK in every ABI.
        "error" => (odd, 6),
        "spawned" => (3, 8),
        _ => panic!("no such story: {story}"),
    };
    let left = if story == "spawned" { ranks } else { ranks - dead };
    let what = if dead == 1 { "itself".into() } else { format!("the {dead} ranks of a communicator") };
    let said = format!("aborted {what} with code {code}, and the others were not ended");
    let seen = outcome.stdout.matches(" goes on\n").count() as u32;
    assert_eq!((seen, outcome.code), (left, code), "{story} of {ranks}: {outcome:?}");
    assert_eq!(outcome.stderr.matches(&said).count(), 1, "{story} of {ranks}: no \"{said}\" in {outcome:?}");
}
