//! The program's own regions, out of their begins and ends: spans, and the rows in which they are shown.

use super::{Ns, RegionSpan};
use std::collections::HashMap;
use std::rc::Rc;
use vmpi_shared::trace::regions::RegionRead;

/// Those of a rank in the making. A region that begins again while it is open (recursion, threads) is one span, until the end that matches.
#[derive(Default)]
pub(super) struct Regions {
    /// By region: begins without an end, and when the first one was.
    open: HashMap<u16, (u64, Ns)>,
    /// Region, from when to when.
    done: Vec<(u16, Option<Ns>, Ns)>,
}

impl Regions {
    pub(super) fn note(&mut self, begins: bool, region: u16, at: Ns) {
        if begins {
            self.open.entry(region).or_insert((0, at)).0 += 1;
            return;
        }
        match self.open.get_mut(&region) {
            Some((depth, _)) if *depth > 1 => *depth -= 1,
            _ => {
                // Its begin may have been before the recording, or be overwritten.
                let since = self.open.remove(&region).map(|(_, since)| since);
                self.done.push((region, since, at));
            }
        }
    }

    /// All of them, by what the ring's table says of them. What began before `known_from` is told from then, what did not end until `until`; so is what
    /// was open when the recording began (`since`, ticks) and of which nothing was noted.
    pub(super) fn spans(self, table: &[RegionRead], since: u64, known_from: Ns, until: Ns) -> Vec<RegionSpan> {
        let names: Vec<Rc<str>> = table.iter().map(|region| Rc::from(region.name.as_str())).collect();
        let name = |region: u16| names.get(usize::from(region)).cloned().unwrap_or_else(|| Rc::from("(unknown)"));
        let span = |region: u16, begun: Option<Ns>, ended: Option<Ns>| {
            let from = begun.unwrap_or(known_from);
            let until = ended.unwrap_or(until).max(from);
            RegionSpan { from, until, name: name(region), row: 0, begun: begun.is_some(), ended: ended.is_some() }
        };
        let noted = |region: u16| self.open.contains_key(&region) || self.done.iter().any(|(done, ..)| *done == region);
        let before = (0..).zip(table).filter(|(_, told)| told.open && told.since < since).map(|(region, _)| region);
        let before: Vec<u16> = before.filter(|region| !noted(*region)).collect();
        let done = self.done.iter().map(|(region, begun, ended)| span(*region, *begun, Some(*ended)));
        let open = self.open.iter().map(|(region, (_, begun))| span(*region, Some(*begun), None));
        let before = before.iter().map(|region| span(*region, None, None));
        let mut spans: Vec<RegionSpan> = done.chain(open).chain(before).collect();
        // What is around others comes before them, and so above.
        spans.sort_by(|a, b| (a.from, b.until, &a.name).cmp(&(b.from, a.until, &b.name)));
        let mut rows: Vec<Ns> = Vec::new();
        for span in &mut spans {
            let free = rows.iter().position(|until| *until <= span.from);
            let row = free.unwrap_or_else(|| {
                rows.push(0);
                rows.len() - 1
            });
            rows[row] = span.until;
            span.row = row as u32;
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (Ns, Ns, String, u32, bool, bool);

    fn spans(notes: &[(bool, u16, Ns)]) -> Vec<Told> {
        of_table(notes, 3)
    }

    fn of_table(notes: &[(bool, u16, Ns)], number: usize) -> Vec<Told> {
        let mut regions = Regions::default();
        notes.iter().for_each(|(begins, region, at)| regions.note(*begins, *region, *at));
        // `b` was open when the recording began, and `c` began afterwards.
        let read = |name: &str, open, since| RegionRead { name: name.into(), open, since, ..RegionRead::default() };
        let table = [read("a", true, 1), read("b", false, 1), read("c", true, 9), read("d", true, 3)];
        let told = |span: RegionSpan| (span.from, span.until, span.name.to_string(), span.row, span.begun, span.ended);
        regions.spans(&table[..number], 5, 5, 100).into_iter().map(told).collect()
    }

    #[test]
    fn spans_of_a_row_do_not_overlap() {
        let nested =
            spans(&[(true, 0, 10), (true, 1, 20), (false, 1, 30), (true, 1, 40), (false, 1, 50), (false, 0, 60)]);
        assert_eq!(
            nested,
            [
                (10, 60, "a".into(), 0, true, true),
                (20, 30, "b".into(), 1, true, true),
                (40, 50, "b".into(), 1, true, true)
            ]
        );
        let crossing =
            spans(&[(true, 0, 10), (true, 1, 20), (false, 0, 30), (true, 2, 31), (false, 1, 40), (false, 2, 41)]);
        let rows: Vec<(String, u32)> = crossing.into_iter().map(|span| (span.2, span.3)).collect();
        assert_eq!(rows, [("a".into(), 0), ("b".into(), 1), ("c".into(), 0)]);
    }

    #[test]
    fn what_was_open_all_the_time_is_told() {
        let told = of_table(&[(true, 0, 10), (false, 0, 20)], 4);
        assert_eq!(told, [(5, 100, "d".into(), 0, false, false), (10, 20, "a".into(), 1, true, true)]);
    }

    #[test]
    fn recursion_is_one_span_and_halves_go_to_the_edges() {
        assert_eq!(
            spans(&[(true, 0, 10), (true, 0, 20), (false, 0, 30), (false, 0, 40)]),
            [(10, 40, "a".into(), 0, true, true)]
        );
        assert_eq!(
            spans(&[(false, 1, 30), (true, 0, 40), (true, 9, 41)]),
            [
                (5, 30, "b".into(), 0, false, true),
                (40, 100, "a".into(), 0, true, false),
                (41, 100, "(unknown)".into(), 1, true, false)
            ]
        );
    }
}
