//! What a trace in Perfetto's format adds up to: sums by what ranks did, read back from the file that vmpirun wrote.

use super::perfetto::{COUNTER, INSTANT, SLICE_BEGIN, SLICE_END, Trace, TrackEvent};
use prost::Message as _;
use std::collections::{BTreeMap, HashMap};

/// Sums over a trace. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    pub program: String,
    pub ranks: u32,
    pub length_s: f64,
    /// By state of ranks (RUNNING, SUSPENDED, ...), and of cores (running, idle, ...).
    pub of_ranks: BTreeMap<String, f64>,
    pub of_cores: BTreeMap<String, f64>,
    /// By what ranks were suspended in: an MPI function.
    pub waits: BTreeMap<String, f64>,
    /// The program's own regions.
    pub regions: BTreeMap<String, f64>,
    /// By kind (point-to-point, collective): messages and bytes.
    pub messages: BTreeMap<String, (u64, u64)>,
}

/// What a track is about.
#[derive(Copy, Clone, PartialEq)]
enum About {
    Cores,
    Ranks,
    Regions,
    Else,
}

struct Names {
    names: HashMap<u64, String>,
    categories: HashMap<u64, String>,
    notes: HashMap<u64, String>,
}

impl Totals {
    /// # Errors
    /// Not a trace of vmpi, in words.
    pub fn read(bytes: &[u8]) -> Result<Totals, String> {
        let trace = Trace::decode(bytes).map_err(|e| e.to_string())?;
        let mut totals = Totals::default();
        let mut names = Names { names: HashMap::new(), categories: HashMap::new(), notes: HashMap::new() };
        let (mut groups, mut tracks) = (HashMap::new(), HashMap::new());
        for packet in &trace.packet {
            if let Some(data) = &packet.interned_data {
                for (to, list) in [
                    (&mut names.names, &data.event_names),
                    (&mut names.categories, &data.event_categories),
                    (&mut names.notes, &data.debug_annotation_names),
                ] {
                    to.extend(list.iter().filter_map(|entry| Some((entry.iid?, entry.name.clone()?))));
                }
            }
            let Some(descriptor) = &packet.track_descriptor else { continue };
            let (Some(id), Some(name)) = (descriptor.uuid, &descriptor.name) else { continue };
            match descriptor.parent_uuid {
                None => {
                    let (job, what) = name.rsplit_once(": ").ok_or("it has a track that vmpi does not write")?;
                    let program = job.split_once(" (").and_then(|(_, rest)| rest.strip_suffix(')'));
                    totals.program = program.unwrap_or_default().to_owned();
                    let about = match what {
                        "cores" => About::Cores,
                        "ranks" => About::Ranks,
                        "regions" => About::Regions,
                        _ => About::Else,
                    };
                    groups.insert(id, about);
                }
                Some(parent) => {
                    let about = groups.get(&parent).copied().unwrap_or(About::Else);
                    totals.ranks += u32::from(about == About::Ranks);
                    tracks.insert(id, about);
                }
            }
        }
        if totals.ranks == 0 {
            return Err("it has no ranks".into());
        }
        totals.events(&trace, &names, &tracks);
        Ok(totals)
    }

    fn events(&mut self, trace: &Trace, names: &Names, tracks: &HashMap<u64, About>) {
        let (mut first, mut last) = (u64::MAX, 0);
        let mut open: HashMap<u64, (u64, &str, &str)> = HashMap::new();
        let none = String::new();
        for packet in &trace.packet {
            let (Some(at), Some(event)) = (packet.timestamp, &packet.track_event) else { continue };
            let Some(track) = event.track_uuid else { continue };
            if event.r#type != Some(COUNTER) {
                (first, last) = (first.min(at), last.max(at));
            }
            let about = tracks.get(&track).copied().unwrap_or(About::Else);
            let name = event.name_iid.and_then(|id| names.names.get(&id)).unwrap_or(&none);
            let category = event.category_iids.first().and_then(|id| names.categories.get(id)).unwrap_or(&none);
            match event.r#type {
                Some(SLICE_BEGIN) => drop(open.insert(track, (at, name, category))),
                Some(SLICE_END) => {
                    if let Some((since, name, category)) = open.remove(&track) {
                        self.add(about, name, category, at.saturating_sub(since) as f64 * 1e-9);
                    }
                }
                Some(INSTANT) if about == About::Ranks && !event.flow_ids.is_empty() => {
                    let (messages, bytes) = self.messages.entry(category.clone()).or_default();
                    (*messages, *bytes) = (*messages + 1, bytes.saturating_add(note(event, names, "bytes")));
                }
                _ => {}
            }
        }
        self.length_s = last.saturating_sub(first) as f64 * 1e-9;
    }

    fn add(&mut self, about: About, name: &str, category: &str, seconds: f64) {
        let (sums, key) = match about {
            About::Cores => (&mut self.of_cores, category),
            About::Ranks => (&mut self.of_ranks, category),
            About::Regions => (&mut self.regions, name),
            About::Else => return,
        };
        *sums.entry(key.to_owned()).or_default() += seconds;
        if let (About::Ranks, Some(call)) = (about, name.strip_prefix("SUSPENDED in ")) {
            *self.waits.entry(call.to_owned()).or_default() += seconds;
        }
    }
}

fn note(event: &TrackEvent, names: &Names, wanted: &str) -> u64 {
    let is_it = |id: u64| names.notes.get(&id).is_some_and(|name| name == wanted);
    let found = event.debug_annotations.iter().find(|note| note.name_iid.is_some_and(is_it));
    found.and_then(|note| note.int_value).map_or(0, i64::cast_unsigned)
}

#[cfg(test)]
mod tests {
    use super::super::perfetto;
    use super::super::timeline::{Message, RankDid, RankSlice, RankTrack, RegionSpan, Timeline};
    use super::*;
    use std::rc::Rc;

    #[test]
    fn what_was_written_adds_up() {
        let slice =
            |from, until, did, call: &str| RankSlice { from, until, did, call: Rc::from(call), peer: 0, tag: 0 };
        let slices = vec![
            slice(0, 1_000_000_000, RankDid::Running, ""),
            slice(1_000_000_000, 3_000_000_000, RankDid::Suspended, "MPI_Recv"),
            slice(3_000_000_000, 3_500_000_000, RankDid::Suspended, "MPI_Wait"),
        ];
        let region =
            RegionSpan { from: 0, until: 500_000_000, name: Rc::from("solve"), row: 0, begun: true, ended: true };
        let ranks = vec![
            RankTrack { rank: 0, slices, regions: vec![region.clone()], ..RankTrack::default() },
            RankTrack { rank: 1, regions: vec![region], ..RankTrack::default() },
        ];
        let message = Message {
            from: 0,
            to: 1,
            sent: 5,
            received: 9,
            bytes: 100,
            tag: 0,
            call: Rc::from(""),
            collective: false,
            context: 0,
            within: vmpi_shared::trace::Within::default(),
        };
        let program = "./a (b)".into();
        let timeline = Timeline { program, ranks, messages: vec![message.clone(), message], ..Timeline::default() };
        let totals = Totals::read(&perfetto::encode(&timeline)).expect("a trace");
        let sums = |list: &[(&str, f64)]| list.iter().map(|(name, sum)| ((*name).to_owned(), *sum)).collect();
        let expected = Totals {
            program: "./a (b)".into(),
            ranks: 2,
            length_s: 3.5,
            of_ranks: sums(&[("RUNNING", 1.0), ("SUSPENDED", 2.5)]),
            of_cores: BTreeMap::new(),
            waits: sums(&[("MPI_Recv", 2.0), ("MPI_Wait", 0.5)]),
            regions: sums(&[("solve", 1.0)]),
            messages: [("point-to-point".to_owned(), (2, 200))].into(),
        };
        assert_eq!(totals, expected);
        for nonsense in [&b"\x0a"[..], b"", b"\x0a\x02\x08\x01", b"{}"] {
            assert!(Totals::read(nonsense).is_err(), "{nonsense:?}");
        }
    }
}
