//! `--chaos A..B`: seed after seed, until one fails.

use super::Chaos;
use super::trial::{Ended, Place, Trial, shell};
use crate::cli::RunOptions;
use crate::failure::{Failure, code};
use std::io::Write;

/// The command line that runs one seed again.
fn again(args: &[String], chaos: &Chaos, seed: u64) -> String {
    let range = format!("{}..", chaos.first);
    let one = chaos.of_seed(seed);
    let mut told = false;
    let mut words: Vec<String> = vec!["vmpirun".into(), "--on-deadlock".into(), "abort".into()];
    for word in args {
        let (flag, value) = word.split_once('=').map_or((None, word.as_str()), |(flag, value)| (Some(flag), value));
        if !told && value.starts_with(&range) {
            told = true;
            words.push(flag.map_or(one.clone(), |flag| format!("{flag}={one}")));
        } else {
            words.push(word.clone());
        }
    }
    if !told {
        words.splice(1..1, ["--chaos".into(), one]);
    }
    shell(&words)
}

fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "vmpirun: {sentence}");
}

pub(super) fn run(options: &RunOptions, chaos: &Chaos, last: u64, args: &[String]) -> Result<i32, Failure> {
    let mut place = Place::new()?;
    let mut first: Option<Ended> = None;
    for seed in chaos.first..=last {
        let trial = Trial { chaos: Some(seed), ..Trial::default() };
        let ended = trial.run(args, &mut place)?;
        // The program may have such codes, too, but hardly with the first seed.
        if seed == chaos.first && matches!(ended.code, code::USAGE | code::CANNOT_EXECUTE | code::NOT_FOUND) {
            ended.show();
            return Ok(ended.code);
        }
        let differs = options.compare_stdout && first.as_ref().is_some_and(|first| first.stdout != ended.stdout);
        if ended.code != 0 || differs {
            ended.show();
            let before = match seed - chaos.first {
                0 => String::new(),
                count => format!("; the {count} before it did not"),
            };
            let how = match (differs, &first) {
                (true, Some(first)) if ended.code == 0 => {
                    format!("other output than with seed {}: {}", chaos.first, difference(&first.stdout, &ended.stdout))
                }
                _ => ended.how(),
            };
            say(&format!("--chaos: seed {seed} fails: {how}{before}. Again: {}", again(args, chaos, seed)));
            return Ok(if ended.code == 0 { 1 } else { ended.code });
        }
        if options.verbose {
            say(&format!("--chaos: seed {seed}: {}", ended.how()));
        }
        first.get_or_insert(ended);
    }
    if let Some(first) = &first {
        first.show();
    }
    if !options.quiet {
        let same = if options.compare_stdout { ", and print the same" } else { "" };
        say(&format!(
            "--chaos: seeds {} to {last}: all end well{same}; the output above is the first one's",
            chaos.first
        ));
    }
    Ok(0)
}

/// The first line that differs.
pub(super) fn difference(one: &[u8], other: &[u8]) -> String {
    let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
    let (mut ones, mut others) = (one.lines(), other.lines());
    for line in 1.. {
        match (ones.next(), others.next()) {
            (None, None) => break,
            (a, b) if a != b => {
                let show = |line: Option<&str>| line.map_or("no such line".into(), |line| format!("`{line}`"));
                return format!("line {line} was {}, and is {}", show(a), show(b));
            }
            _ => {}
        }
    }
    "the same lines, otherwise ended".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_runs_a_seed_again() {
        let chaos = Chaos::parse("1..200,sends").unwrap();
        let args = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        let again = |line| again(&args(line), &chaos, 17);
        assert_eq!(
            again("-n 4 --chaos 1..200,sends ./a 1..200"),
            "vmpirun --on-deadlock abort -n 4 --chaos 17,sends ./a 1..200"
        );
        assert_eq!(again("--chaos=1..200,sends ./a"), "vmpirun --on-deadlock abort --chaos=17,sends ./a");
        assert_eq!(again("-n 4 ./a"), "vmpirun --chaos 17,sends --on-deadlock abort -n 4 ./a");
    }

    #[test]
    fn the_line_that_differs() {
        assert_eq!(difference(b"a\nb\n", b"a\nc\n"), "line 2 was `b`, and is `c`");
        assert_eq!(difference(b"a\n", b"a\nc\n"), "line 2 was no such line, and is `c`");
    }
}
