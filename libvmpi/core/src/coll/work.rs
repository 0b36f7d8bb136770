//! A collective call, checked and resolved: which data to move, with whom. What plans are built from.

use super::plan::{Data, Regions};

/// The job of this rank in one collective.
///
/// `send: None` means in place. What is significant only at the root is `None` elsewhere. `even`: the form of the call
/// whose blocks all have the same size (known to all ranks). `root` is as in [`super::call::Call`].
pub enum Work {
    Barrier,
    Bcast {
        data: Data,
        root: i32,
    },
    Gather {
        send: Option<Data>,
        recv: Option<Regions>,
        root: i32,
        even: bool,
    },
    Scatter {
        send: Option<Regions>,
        recv: Option<Data>,
        root: i32,
        even: bool,
    },
    Allgather {
        send: Option<Data>,
        recv: Regions,
        even: bool,
    },
    Alltoall {
        send: Option<Regions>,
        recv: Regions,
        even: bool,
    },
    /// In place: `send` is the root's `recv`.
    Reduce {
        send: Data,
        recv: Option<Data>,
        root: i32,
        commutative: bool,
    },
    /// In place: `send` is `recv`; as for `Scan` and `Exscan`.
    Allreduce {
        send: Data,
        recv: Data,
        commutative: bool,
    },
    /// `send`: the whole contribution, `counts` elements for each rank; `recv`: this rank's part.
    ReduceScatter {
        send: Data,
        recv: Data,
        counts: Vec<u64>,
        in_place: bool,
        commutative: bool,
    },
    Scan {
        send: Data,
        recv: Data,
    },
    Exscan {
        send: Data,
        recv: Data,
    },
    /// Messages to and from neighbours, in matching order (see `neighbor`).
    Neighbor {
        sends: Vec<(i32, Data)>,
        recvs: Vec<(i32, Data)>,
    },
}
