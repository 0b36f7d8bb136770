//! Lists of nodes as Slurm, Flux and users compress them: `n[001-003,7],login`.

/// Nodes of a list; more are a slip.
const MOST_NODES: usize = 1 << 17;

/// `n[001-003,7],login,r[1-2]n[1-4]` as names, in order.
///
/// # Errors
/// What makes no sense in it.
pub fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in split_outside(list)? {
        let mut made = vec![String::new()];
        let mut rest = part;
        while let Some((plain, more)) = rest.split_once('[') {
            let (inside, behind) = more.split_once(']').ok_or("a bracket is not closed")?;
            made.iter_mut().for_each(|name| name.push_str(plain));
            let numbers = ranges(inside)?;
            if made.len().saturating_mul(numbers.len()) > MOST_NODES {
                return Err("it names too many nodes".into());
            }
            let with = |name: &String| numbers.iter().map(|n| format!("{name}{n}")).collect::<Vec<String>>();
            made = made.iter().flat_map(with).collect();
            rest = behind;
        }
        if rest.contains(']') {
            return Err("a bracket is closed that was not opened".into());
        }
        made.iter_mut().for_each(|name| name.push_str(rest));
        if made.iter().any(String::is_empty) {
            return Err("a node has no name".into());
        }
        names.extend(made);
        if names.len() > MOST_NODES {
            return Err("it names too many nodes".into());
        }
    }
    Ok(names)
}

/// The parts between commas that are not in brackets.
pub fn split_outside(list: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut inside) = (Vec::new(), 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' if inside => return Err("a bracket in a bracket".into()),
            '[' => inside = true,
            ']' => inside = false,
            ',' if !inside => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    Ok(parts)
}

/// `001-003,7` with the zeros in front kept.
fn ranges(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(|_| format!("`{text}` is no number")),
            false => Err(format!("`{text}` is no number")),
        };
        let (first, last) = (number(low)?, number(high)?);
        if first > last {
            return Err(format!("`{part}` goes backwards"));
        }
        if (last - first) as usize >= MOST_NODES || all.len() + (last - first) as usize >= MOST_NODES {
            return Err("it names too many nodes".into());
        }
        all.extend((first..=last).map(|n| format!("{n:0width$}", width = low.len())));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(list: &str) -> Vec<String> {
        expand(list).unwrap()
    }

    #[test]
    fn lists_of_nodes() {
        assert_eq!(names("n1"), ["n1"]);
        assert_eq!(names("n[1-3],login"), ["n1", "n2", "n3", "login"]);
        assert_eq!(names("n[008-010,7]"), ["n008", "n009", "n010", "n7"]);
        assert_eq!(names("r[1-2]n[1,3].x"), ["r1n1.x", "r1n3.x", "r2n1.x", "r2n3.x"]);
        for wrong in ["", "a,,b", "n[1-", "n[3-1]", "n[a-b]", "n]1", "n[1-[2]]", "n[0-99999999]", "n[]", "n[1-2-3]"] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
    }

    /// Names, compressed as Slurm does it.
    fn compress(prefix: &str, width: usize, numbers: &[u64]) -> String {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *number => *last = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let shown = |(low, high): &(u64, u64)| match low == high {
            true => format!("{low:0width$}"),
            false => format!("{low:0width$}-{high:0width$}"),
        };
        format!("{prefix}[{}]", ranges.iter().map(shown).collect::<Vec<_>>().join(","))
    }

    proptest! {
        #[test]
        fn compressed_lists_come_back(parts in proptest::collection::vec(("[a-z]{1,5}", 1usize..5, proptest::collection::btree_set(0u64..9999, 1..40)), 1..5)) {
            let (mut list, mut wanted) = (Vec::new(), Vec::new());
            for (prefix, width, numbers) in parts {
                let numbers: Vec<u64> = numbers.into_iter().collect();
                list.push(compress(&prefix, width, &numbers));
                wanted.extend(numbers.iter().map(|n| format!("{prefix}{n:0width$}")));
            }
            prop_assert_eq!(expand(&list.join(",")).unwrap(), wanted);
        }

        /// Any text: an answer or an error.
        #[test]
        fn noise_harms_nothing(text in "[\\[\\]a-c0-9,x()-]{0,30}") {
            let _ = expand(&text);
        }
    }
}
