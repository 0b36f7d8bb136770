//! Equal stacks of many ranks, once.

use serde::Serialize;
use std::collections::HashMap;
use vmpi_shared::crash::Place;

/// Frames that are printed of a stack.
const MOST_LINES: usize = 40;

/// Ranks with the same stack, in a thread of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    pub ranks: Vec<u32>,
    /// Empty: the first thread of each.
    pub thread: String,
    pub frames: Vec<Place>,
}

/// Put equal ones together; the most frequent first, then by rank.
pub fn group(stacks: impl IntoIterator<Item = (u32, String, Vec<Place>)>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<(String, Vec<Place>), usize> = HashMap::new();
    for (rank, thread, frames) in stacks {
        let at = *known.entry((thread.clone(), frames.clone())).or_insert_with(|| {
            groups.push(Group { ranks: Vec::new(), thread, frames });
            groups.len() - 1
        });
        groups[at].ranks.push(rank);
    }
    for group in &mut groups {
        group.ranks.sort_unstable();
        group.ranks.dedup();
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.ranks.len()), group.ranks[0]));
    groups
}

/// A line per frame; calls of one place by itself, as in a recursion, are one line.
pub fn lines(frames: &[Place]) -> String {
    let mut text = String::new();
    let (mut at, mut printed) = (0, 0);
    while at < frames.len() {
        if printed == MOST_LINES {
            text.push_str(&format!("  ... {} more\n", frames.len() - at));
            break;
        }
        let frame = &frames[at];
        let count = frames[at..].iter().take_while(|other| *other == frame).count();
        let number = format!("#{at}");
        let place = if frame.in_vmpi { "in vmpi".to_owned() } else { format!("at {}", frame.at) };
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        text.push_str(&format!("  {number:<3} {} {place}{times}\n", frame.function));
        at += count;
        printed += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: &str) -> Place {
        Place { function: function.into(), at: "a.c:1".into(), in_vmpi: false, in_source: true }
    }

    #[test]
    fn equal_ones_are_put_together() {
        let stack = |names: &[&str]| names.iter().map(|name| place(name)).collect::<Vec<_>>();
        let stacks = [(3, vec!["a"]), (0, vec!["b"]), (1, vec!["a"]), (2, vec!["a", "b"])];
        let groups = group(stacks.map(|(rank, names)| (rank, String::new(), stack(&names))));
        let ranks: Vec<_> = groups.iter().map(|group| group.ranks.clone()).collect();
        assert_eq!(ranks, [vec![1, 3], vec![0], vec![2]]);
    }

    #[test]
    fn a_recursion_is_one_line() {
        let mut frames = vec![place("deep"); 100];
        frames.push(place("main"));
        assert_eq!(lines(&frames), "  #0  deep at a.c:1 (100 times)\n  #100 main at a.c:1\n");
        let many: Vec<Place> = (0..60).map(|number| place(&format!("f{number}"))).collect();
        assert!(lines(&many).ends_with("  ... 20 more\n"));
    }
}
