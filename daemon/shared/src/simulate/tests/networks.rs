//! Networks that are hard on an order: where much comes at once, overtakes, or gets in each other's way.

use crate::simulate::network::{Cost, Flow, Network};

pub(super) const LATENCY: u64 = 1000;

/// Distances differ, and small messages overtake large ones.
pub(super) struct Uneven;

impl Network for Uneven {
    fn cost(&self, from: u32, to: u32, bytes: u64) -> Cost {
        let wire = LATENCY + u64::from(from.abs_diff(to)) * 7 + bytes * 3;
        Cost { send_overhead: 50, wire, receive_overhead: RECEIVE, gap: 20 }
    }
}

pub(super) const RECEIVE: u64 = 30;

/// All are as far from each other, whatever they send: much comes at the same time.
pub(super) struct Even;

impl Network for Even {
    fn cost(&self, _from: u32, _to: u32, _bytes: u64) -> Cost {
        Cost { send_overhead: 50, wire: LATENCY, receive_overhead: RECEIVE, gap: 100 }
    }
}

/// Each message takes longer by those that are under way when its latency is over.
pub(super) struct Narrow;

/// Under way since `begin`, when its latency is over; until `end`, if that is known already.
#[derive(Copy, Clone)]
struct Under {
    begin: u64,
    bytes: u64,
    key: u64,
    end: u64,
}

fn words(memory: &mut [u8]) -> &mut [[u8; 8]] {
    memory.as_chunks_mut().0
}

fn flows(memory: &mut [u8]) -> Vec<Under> {
    let words = words(memory);
    let at = |index: usize| u64::from_ne_bytes(words[index]);
    let one = |flow: usize| {
        let [begin, bytes, key, end] = [1, 2, 3, 4].map(|word| at(4 * flow + word));
        Under { begin, bytes, key, end }
    };
    (0..at(0) as usize).map(one).collect()
}

fn set_flows(memory: &mut [u8], flows: &[Under]) {
    let each = flows.iter().flat_map(|flow| [flow.begin, flow.bytes, flow.key, flow.end]);
    let all = [flows.len() as u64].into_iter().chain(each);
    words(memory).iter_mut().zip(all).for_each(|(word, value)| *word = value.to_ne_bytes());
}

impl Network for Narrow {
    fn cost(&self, _from: u32, _to: u32, bytes: u64) -> Cost {
        Cost { send_overhead: 50, wire: LATENCY + bytes, receive_overhead: RECEIVE, gap: 20 }
    }

    fn shares(&self, from: u32, to: u32, _bytes: u64) -> bool {
        from != to
    }

    fn start(&self, memory: &mut [u8], flow: &Flow) -> bool {
        let mut all = flows(memory);
        all.push(Under { begin: flow.at + LATENCY, bytes: flow.bytes, key: flow.key, end: 0 });
        set_flows(memory, &all);
        true
    }

    fn next(&self, memory: &mut [u8]) -> Option<u64> {
        flows(memory).into_iter().map(|flow| if flow.end == 0 { flow.begin } else { flow.end }).min()
    }

    fn advance(&self, memory: &mut [u8], to: u64, ended: &mut Vec<(u64, u64)>) -> bool {
        let mut all = flows(memory);
        all.sort_unstable_by_key(|flow| (flow.begin, flow.key));
        for at in 0..all.len() {
            let Under { begin, bytes, end, .. } = all[at];
            if end == 0 && begin <= to {
                let beside = all.iter().filter(|other| other.end > begin).count() as u64;
                all[at].end = begin + bytes + beside * 11;
            }
        }
        let (mut over, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|flow| flow.end != 0 && flow.end <= to);
        over.sort_unstable_by_key(|flow| (flow.end, flow.key));
        ended.extend(over.into_iter().map(|flow| (flow.key, flow.end)));
        set_flows(memory, &left);
        true
    }
}
