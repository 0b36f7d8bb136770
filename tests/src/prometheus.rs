//! Is a text what Prometheus reads, and named as it should be? The rules of `promtool check metrics`.

use std::collections::{BTreeMap, BTreeSet};

/// A sample: name, labels, value.
pub type Sample = (String, BTreeMap<String, String>, f64);

fn is_name(text: &str, colon: bool) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || (colon && c == ':');
    text.chars().next().is_some_and(first) && text.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// Labels `{a="b",...}` and what follows them.
fn labels(text: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut labels = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else { return Ok((labels, text)) };
    loop {
        if let Some(end) = rest.strip_prefix('}') {
            return Ok((labels, end));
        }
        let (name, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        if !is_name(name, false) || name.starts_with("__") {
            return Err(format!("`{name}` is no name of a label"));
        }
        let (mut value, mut chars) = (String::new(), after.char_indices());
        let end = loop {
            match chars.next() {
                Some((at, '"')) => break at + 1,
                Some((_, '\\')) => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => value.push(c),
                    other => return Err(format!("an escape that is none: {other:?}")),
                },
                Some((_, '\n')) | None => return Err("a value without an end".into()),
                Some((_, c)) => value.push(c),
            }
        };
        if labels.insert(name.to_owned(), value).is_some() {
            return Err(format!("the label {name} twice"));
        }
        rest = &after[end..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// All samples, or the first thing that is wrong.
///
/// # Errors
/// In words, with the line.
pub fn check(text: &str) -> Result<Vec<Sample>, String> {
    let mut helps: BTreeSet<String> = BTreeSet::new();
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    let mut samples: Vec<Sample> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut current = String::new();
    if !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    for line in text.lines() {
        let fail = |why: &str| Err(format!("{why}: {line}"));
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let Some((name, help)) = rest.split_once(' ') else { return fail("HELP without a text") };
            if help.is_empty() || !helps.insert(name.to_owned()) {
                return fail("HELP is empty, or there twice");
            }
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = rest.split_once(' ') else { return fail("TYPE without a type") };
            if !is_name(name, true) || !helps.contains(name) {
                return fail("a name that is none, or TYPE before HELP");
            }
            if !["counter", "gauge"].contains(&kind) || types.insert(name.to_owned(), kind.to_owned()).is_some() {
                return fail("no type, or there twice");
            }
            if (kind == "counter") != name.ends_with("_total") {
                return fail("counters, and they alone, end in _total");
            }
            let parts: Vec<&str> = name.split('_').collect();
            let bad = [
                "milliseconds",
                "microseconds",
                "nanoseconds",
                "ms",
                "us",
                "ns",
                "minutes",
                "kilobytes",
                "kb",
                "mb",
                "percent",
            ];
            if parts.iter().any(|part| bad.contains(part) || ["counter", "gauge"].contains(part)) {
                return fail("a unit that is no base unit, or the type in the name");
            }
            name.clone_into(&mut current);
            continue;
        }
        let end = line.find(['{', ' ']).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let (labels, rest) = labels(rest).map_err(|why| format!("{why}: {line}"))?;
        let Ok(value) = rest.trim_start().parse::<f64>() else { return fail("no value") };
        if name != current {
            return fail("a sample that does not stand below its TYPE");
        }
        if types[name] == "counter" && (value < 0.0 || value.is_nan()) {
            return fail("a counter below 0");
        }
        let key = format!("{name}{labels:?}");
        if !seen.insert(key) {
            return fail("the same sample twice");
        }
        samples.push((name.to_owned(), labels, value));
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_found() {
        let good =
            "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\",y=\"\\\"\\\\\\n\"} 2\na_total{x=\"2\"} 0\n";
        let samples = check(good).unwrap();
        assert_eq!((samples.len(), samples[0].2, samples[0].1["y"].as_str()), (2, 2.0, "\"\\\n"));
        for (from, to) in [
            ("a_total A.", "a_total"),
            ("# TYPE a_total counter\n", ""),
            ("counter", "gauge"),
            ("counter", "summary"),
            ("} 2", "} -2"),
            ("} 2", "} two"),
            ("x=\"2\"", "x=\"1\",y=\"\\\"\\\\\\n\""),
            ("x=\"2\"", "1x=\"2\""),
            ("a_total{x=\"2\"}", "b{x=\"2\"}"),
            ("} 0\n", "} 0"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(bad != good && check(&bad).is_err(), "{bad}");
        }
        assert!(check("# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n").is_err());
    }
}
