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

impl Work {
    /// As the call had it.
    pub fn root(&self) -> Option<i32> {
        match self {
            Work::Bcast { root, .. }
            | Work::Gather { root, .. }
            | Work::Scatter { root, .. }
            | Work::Reduce { root, .. } => Some(*root),
            _ => None,
        }
    }

    /// What this rank, which is `rank` of its communicator, has to send and to receive, bytes: what is in its buffers.
    pub fn bytes(&self, rank: u32) -> (u64, u64) {
        let one = |data: &Option<Data>| data.as_ref().map_or(0, Data::bytes);
        let all = |regions: &Option<Regions>| regions.as_ref().map_or(0, Regions::bytes);
        let of = |list: &[(i32, Data)]| list.iter().map(|(_, data)| data.bytes()).sum();
        match self {
            Work::Barrier => (0, 0),
            Work::Bcast { data, root } if *root == rank as i32 => (data.bytes(), 0),
            Work::Bcast { data, .. } => (0, data.bytes()),
            Work::Gather { send, recv, .. } => (one(send), all(recv)),
            Work::Scatter { send, recv, .. } => (all(send), one(recv)),
            Work::Allgather { send, recv, .. } => (one(send), recv.bytes()),
            Work::Alltoall { send, recv, .. } => (all(send), recv.bytes()),
            Work::Reduce { send, recv, .. } => (send.bytes(), one(recv)),
            Work::Allreduce { send, recv, .. }
            | Work::ReduceScatter { send, recv, .. }
            | Work::Scan { send, recv }
            | Work::Exscan { send, recv } => (send.bytes(), recv.bytes()),
            Work::Neighbor { sends, recvs } => (of(sends), of(recvs)),
        }
    }
}
