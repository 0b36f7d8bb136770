//! Which of a core's idle time was start-up and end.

use super::track::Clock;
use super::{CoreDid, CoreSlice, Ns};
use vmpi_shared::sched::outside::joined;
use vmpi_shared::trace::TraceMap;

/// When ranks of a core started, and ended: in order, without overlaps.
pub(super) struct Outside {
    starting: Vec<(Ns, Ns)>,
    ending: Vec<(Ns, Ns)>,
}

impl Outside {
    pub(super) fn new(map: &TraceMap, clock: &Clock, core: u32) -> Outside {
        let (mut starting, mut ending) = (Vec::new(), Vec::new());
        for rank in map.ranks.iter().filter(|rank| rank.here) {
            let Some(life) = rank.life else { continue };
            let (entered, left, over) = life.edges(map.until);
            if life.core == core {
                starting.push((clock.ns(life.born), clock.ns(entered)));
            }
            if rank.core == core {
                ending.push((clock.ns(left), clock.ns(over)));
            }
        }
        if map.ends_at != 0 {
            ending.push((clock.ns(map.ends_at), clock.length));
        }
        Outside { starting: joined(starting), ending: joined(ending) }
    }

    /// The slices, with what was idle then under its name.
    pub(super) fn told(&self, slices: Vec<CoreSlice>) -> Vec<CoreSlice> {
        let within = |slices: Vec<CoreSlice>, spans: &[(Ns, Ns)], did: CoreDid| -> Vec<CoreSlice> {
            slices.into_iter().flat_map(|slice| split(slice, spans, did)).collect()
        };
        let slices = within(slices, &self.starting, CoreDid::Starting);
        within(slices, &self.ending, CoreDid::Ending)
    }
}

/// What lies in the spans of a stretch that nobody used is told as `did`.
fn split(slice: CoreSlice, spans: &[(Ns, Ns)], did: CoreDid) -> Vec<CoreSlice> {
    if slice.did != CoreDid::Idle {
        return vec![slice];
    }
    let mut parts = Vec::new();
    let mut at = slice.from;
    let mut part = |until: Ns, did: CoreDid, at: &mut Ns| {
        if *at < until {
            parts.push(CoreSlice { from: *at, until, did });
            *at = until;
        }
    };
    let first = spans.partition_point(|(_, until)| *until <= slice.from);
    for (from, until) in spans[first..].iter().take_while(|(from, _)| *from < slice.until) {
        part((*from).clamp(slice.from, slice.until), CoreDid::Idle, &mut at);
        part((*until).min(slice.until), did, &mut at);
    }
    part(slice.until, CoreDid::Idle, &mut at);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_idle_is_told_otherwise() {
        use CoreDid::{Ending, Idle, Ran, Starting};
        let slices = [(0, 10, Idle), (10, 20, Ran(0)), (20, 40, Idle), (40, 50, Ran(1)), (50, 90, Idle)];
        let slices = slices.map(|(from, until, did)| CoreSlice { from, until, did }).to_vec();
        let outside = Outside { starting: vec![(0, 25)], ending: vec![(24, 26), (45, 60), (80, 100)] };
        let told: Vec<_> = outside.told(slices).iter().map(|slice| (slice.from, slice.until, slice.did)).collect();
        let expected = [
            (0, 10, Starting),
            (10, 20, Ran(0)),
            (20, 25, Starting),
            (25, 26, Ending),
            (26, 40, Idle),
            (40, 50, Ran(1)),
            (50, 60, Ending),
            (60, 80, Idle),
            (80, 90, Ending),
        ];
        assert_eq!(told, expected);
    }
}
