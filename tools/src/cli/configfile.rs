//! Files that hold sections of a command line, one a line (`-configfile`, Open MPI's `--app`).

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
