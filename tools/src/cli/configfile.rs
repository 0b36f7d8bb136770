//! Files that hold sections of a command line, one a line (`-configfile`, Open MPI's `--app`).

use crate::cpus;
use crate::failure::Failure;

/// Sections of a file: a section a line or between `:`; `#` comments; `\` at a line's end continues it.
///
/// # Errors
/// Exit code 2 when the file cannot be read or a quote is left open.
pub fn read(file: &str) -> Result<Vec<Vec<String>>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::usage(format!("cannot read the configuration file {file}: {e}")))?;
    sections(&text).map_err(|why| Failure::usage(format!("{file}: {why}")))
}

pub fn sections(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut all = Vec::new();
    for line in text.replace("\\\n", " ").lines() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let words = split_words(line)?;
        all.extend(words.split(|word| word == ":").filter(|words| !words.is_empty()).map(<[String]>::to_vec));
    }
    Ok(all)
}

/// srun's file of programs (`--multi-prog`): `0-3 PROGRAM ARGUMENTS` a line, `*` for the ranks that no other line names; `%t` in a word is the
/// rank, `%o` its place among those of the line. For each rank its words.
///
/// # Errors
/// A line that makes no sense, or a rank without a program.
pub fn programs_of_ranks(text: &str, ranks: u32) -> Result<Vec<Vec<String>>, String> {
    let mut programs: Vec<Option<Vec<String>>> = vec![None; ranks as usize];
    let mut others = None;
    for line in text.replace("\\\n", " ").lines() {
        let mut words = split_words(line)?;
        if words.is_empty() || words[0].starts_with('#') {
            continue;
        }
        let list = words.remove(0);
        if words.is_empty() {
            return Err(format!("`{line}` names no program"));
        }
        if list == "*" {
            others = Some(words);
            continue;
        }
        for (offset, rank) in cpus::parse_list(&list)?.into_iter().enumerate() {
            let Some(place) = programs.get_mut(rank as usize) else {
                return Err(format!("`{line}`: there is no rank {rank} of {ranks}"));
            };
            *place = Some(filled(&words, rank, offset));
        }
    }
    let mut offset = 0;
    let with = |(rank, program): (u32, Option<Vec<String>>)| match (program, &others) {
        (Some(program), _) => Ok(program),
        (None, Some(words)) => {
            offset += 1;
            Ok(filled(words, rank, offset - 1))
        }
        (None, None) => Err(format!("rank {rank} of {ranks} has no program")),
    };
    (0..).zip(programs).map(with).collect()
}

fn filled(words: &[String], rank: u32, offset: usize) -> Vec<String> {
    words.iter().map(|word| word.replace("%t", &rank.to_string()).replace("%o", &offset.to_string())).collect()
}

/// Split a line at blanks as a shell would: quotes and backslashes, no expansion.
pub fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err(format!("a {c} is never closed in `{line}`")),
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => word.extend(chars.next()),
                        Some(other) => word.push(other),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_ranks_of_a_multi_prog_file() {
        let text = "# coupled\n0 ./ocean %t\n2-3 ./ice 'a b' %o\n* ./atmos %t:%o\n";
        let programs: Vec<String> = programs_of_ranks(text, 5).unwrap().iter().map(|words| words.join("|")).collect();
        assert_eq!(programs, ["./ocean|0", "./atmos|1:0", "./ice|a b|0", "./ice|a b|1", "./atmos|4:1"]);
        for (text, part) in
            [("0 ./a\n", "rank 1 of 2 has no program"), ("0-7 ./a", "no rank 2"), ("0-1", "names no program")]
        {
            let why = programs_of_ranks(text, 2).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
