//! Binary heaps in plain memory: of events by their key, and of ranks by the earliest time at which they may still do something.

/// An event's place in the order of virtual time. `tie` makes it total: no two events have the same key.
#[repr(C)]
#[derive(Copy, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub time: u64,
    pub tie: u64,
}

/// An event in a heap.
#[repr(C)]
#[derive(Copy, Clone, Default, Debug)]
pub struct Entry {
    pub key: Key,
    pub event: u32,
    pub reserved: u32,
}

/// The events of `heap[..len]`, the earliest first.
pub fn push(heap: &mut [Entry], len: &mut u32, entry: Entry) -> bool {
    let mut at = *len as usize;
    if at >= heap.len() {
        return false;
    }
    *len += 1;
    while at > 0 {
        let parent = (at - 1) / 2;
        if heap[parent].key <= entry.key {
            break;
        }
        heap[at] = heap[parent];
        at = parent;
    }
    heap[at] = entry;
    true
}

/// The earliest event, if there is any.
#[inline]
pub fn first(heap: &[Entry], len: u32) -> Option<Entry> {
    if len == 0 { None } else { heap.first().copied() }
}

/// Take the earliest event out.
pub fn pop(heap: &mut [Entry], len: &mut u32) -> Option<Entry> {
    let first = first(heap, *len)?;
    *len -= 1;
    let count = (*len as usize).min(heap.len() - 1);
    let last = heap[count];
    let mut at = 0;
    loop {
        let mut child = 2 * at + 1;
        if child >= count {
            break;
        }
        if child + 1 < count && heap[child + 1].key < heap[child].key {
            child += 1;
        }
        if last.key <= heap[child].key {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    Some(first)
}

/// Where a rank is in the heap of those that run: it knows its own place, so that it can be taken out and moved.
pub trait Places {
    fn bound(&self, rank: u32) -> u64;
    /// Its place + 1; 0: it is not in the heap.
    fn place(&self, rank: u32) -> u32;
    fn set_place(&mut self, rank: u32, place: u32);
}

/// Put a rank that is not there into `heap[..len]`.
pub fn insert(heap: &mut [u32], len: &mut u32, ranks: &mut impl Places, rank: u32) {
    let at = *len as usize;
    *len += 1;
    rise(heap, at, ranks, rank);
}

/// Take a rank out, if it is there.
pub fn remove(heap: &mut [u32], len: &mut u32, ranks: &mut impl Places, rank: u32) {
    let Some(at) = ranks.place(rank).checked_sub(1) else { return };
    ranks.set_place(rank, 0);
    *len -= 1;
    let last = heap[*len as usize];
    if last != rank {
        settle(heap, *len, at as usize, ranks, last);
    }
}

/// The bound of a rank that is there has changed.
pub fn moved(heap: &mut [u32], len: u32, ranks: &mut impl Places, rank: u32) {
    if let Some(at) = ranks.place(rank).checked_sub(1) {
        settle(heap, len, at as usize, ranks, rank);
    }
}

fn settle(heap: &mut [u32], len: u32, at: usize, ranks: &mut impl Places, rank: u32) {
    if at > 0 && ranks.bound(rank) < ranks.bound(heap[(at - 1) / 2]) {
        rise(heap, at, ranks, rank);
    } else {
        sink(heap, len as usize, at, ranks, rank);
    }
}

fn rise(heap: &mut [u32], mut at: usize, ranks: &mut impl Places, rank: u32) {
    let bound = ranks.bound(rank);
    while at > 0 {
        let parent = (at - 1) / 2;
        if ranks.bound(heap[parent]) <= bound {
            break;
        }
        heap[at] = heap[parent];
        ranks.set_place(heap[at], at as u32 + 1);
        at = parent;
    }
    heap[at] = rank;
    ranks.set_place(rank, at as u32 + 1);
}

fn sink(heap: &mut [u32], len: usize, mut at: usize, ranks: &mut impl Places, rank: u32) {
    let bound = ranks.bound(rank);
    loop {
        let mut child = 2 * at + 1;
        if child >= len {
            break;
        }
        if child + 1 < len && ranks.bound(heap[child + 1]) < ranks.bound(heap[child]) {
            child += 1;
        }
        if bound <= ranks.bound(heap[child]) {
            break;
        }
        heap[at] = heap[child];
        ranks.set_place(heap[at], at as u32 + 1);
        at = child;
    }
    heap[at] = rank;
    ranks.set_place(rank, at as u32 + 1);
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_in_order() {
        let mut random = fastrand::Rng::with_seed(43);
        let mut heap = vec![Entry::default(); 500];
        let (mut len, mut expected) = (0, Vec::new());
        for event in 0..500 {
            let key = Key { time: random.u64(..50), tie: u64::from(event) };
            expected.push(key);
            assert!(push(&mut heap, &mut len, Entry { key, event, reserved: 0 }));
            if random.u32(..3) == 0 {
                expected.sort();
                assert_eq!(pop(&mut heap, &mut len).map(|entry| entry.key), Some(expected.remove(0)));
            }
        }
        while (len as usize) < heap.len() {
            let key = Key { time: 99, tie: 1000 + u64::from(len) };
            assert!(push(&mut heap, &mut len, Entry { key, ..Entry::default() }));
        }
        assert!(!push(&mut heap, &mut len, Entry::default()), "there is no more room");
        let rest: Vec<Key> = std::iter::from_fn(|| pop(&mut heap, &mut len)).map(|entry| entry.key).collect();
        assert!(rest.is_sorted() && rest.len() == 500);
        expected.sort();
        assert_eq!(rest[..expected.len()], expected);
    }

    struct Table {
        bounds: Vec<u64>,
        places: Vec<u32>,
    }

    impl Places for Table {
        fn bound(&self, rank: u32) -> u64 {
            self.bounds[rank as usize]
        }
        fn place(&self, rank: u32) -> u32 {
            self.places[rank as usize]
        }
        fn set_place(&mut self, rank: u32, place: u32) {
            self.places[rank as usize] = place;
        }
    }

    #[test]
    fn the_earliest_rank_is_first_whatever_changes() {
        const RANKS: u32 = 37;
        let mut random = fastrand::Rng::with_seed(7);
        let mut table = Table { bounds: vec![0; RANKS as usize], places: vec![0; RANKS as usize] };
        let mut heap = vec![0; RANKS as usize];
        let mut len = 0;
        for _ in 0..20_000 {
            let rank = random.u32(..RANKS);
            let bound = random.u64(..100);
            match (table.place(rank), random.bool()) {
                (0, _) => {
                    table.bounds[rank as usize] = bound;
                    insert(&mut heap, &mut len, &mut table, rank);
                }
                (_, true) => remove(&mut heap, &mut len, &mut table, rank),
                (_, false) => {
                    table.bounds[rank as usize] = bound;
                    moved(&mut heap, len, &mut table, rank);
                }
            }
            let present: Vec<u32> = (0..RANKS).filter(|rank| table.place(*rank) != 0).collect();
            assert_eq!(present.len(), len as usize);
            assert!(present.iter().all(|rank| heap[table.place(*rank) as usize - 1] == *rank));
            let least = present.iter().map(|rank| table.bound(*rank)).min();
            assert_eq!((len > 0).then(|| table.bound(heap[0])), least);
        }
    }
}
