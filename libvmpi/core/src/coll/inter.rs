//! Collectives on intercommunicators (MPI 4.1 section 6.2.3): data goes from one group to the other, by way of the
//! groups' first ranks and phases within a group where that saves messages.

use super::algo::{barrier_dissemination, bcast_binomial, reduce_scatter_rooted::parts_of, scatter_linear};
use super::choose;
use super::plan::{Data, Plan, Ranks, Regions};
use super::work::Work;
use crate::consts::{PROC_NULL, ROOT};
use crate::errors::{Class, Result, fail};

/// Append this rank's steps of `work`; `local`: its own group, `remote`: the other one.
pub fn build(plan: &mut Plan, local: Ranks, remote: Ranks, work: &Work) -> Result<()> {
    let leader = local.rank == 0;
    match work {
        Work::Barrier => {
            barrier_dissemination::build(plan, local);
            if leader {
                swap(plan, remote, Data::EMPTY, Data::EMPTY);
            }
            bcast_binomial::build(plan, local, Data::EMPTY, 0);
        }
        Work::Bcast { data, root } => match *root {
            PROC_NULL => {}
            ROOT => plan.send_some(remote, 0, *data),
            root => {
                if leader {
                    plan.recv_some(remote, root as u32, *data);
                    plan.fence();
                }
                choose::bcast(plan, local, *data, 0);
            }
        },
        Work::Gather { send, recv, root, .. } => {
            if let (ROOT, Some(recv)) = (*root, recv) {
                for from in 0..remote.size {
                    plan.recv_some(remote, from, recv.get(from as usize));
                }
            } else if let (true, Some(send)) = (*root >= 0, send) {
                plan.send_some(remote, *root as u32, *send);
            }
        }
        Work::Scatter { send, recv, root, .. } => {
            if let (ROOT, Some(send)) = (*root, send) {
                for to in 0..remote.size {
                    plan.send_some(remote, to, send.get(to as usize));
                }
            } else if let (true, Some(recv)) = (*root >= 0, recv) {
                plan.recv_some(remote, *root as u32, *recv);
            }
        }
        Work::Allgather { send: Some(send), recv, .. } => exchange(plan, remote, |_| *send, recv),
        Work::Alltoall { send: Some(send), recv, .. } => exchange(plan, remote, |to| send.get(to), recv),
        Work::Reduce { send, recv, root, commutative } => match (*root, recv) {
            (PROC_NULL, _) => {}
            (ROOT, Some(recv)) => plan.recv_some(remote, 0, *recv),
            (root, _) => {
                let sum = leader.then(|| plan.temp(send.elem, send.count));
                choose::reduce(plan, local, *send, sum, 0, *commutative);
                if let Some(sum) = sum {
                    plan.send_some(remote, root as u32, sum);
                }
            }
        },
        // To rank 0 the order of the ranks costs nothing.
        Work::Allreduce { send, recv, .. } if send.bytes() > 0 => {
            let sum = leader.then(|| plan.temp(send.elem, send.count));
            choose::reduce(plan, local, *send, sum, 0, false);
            if let Some(sum) = sum {
                swap(plan, remote, sum, *recv);
            }
            choose::bcast(plan, local, *recv, 0);
        }
        Work::ReduceScatter { send, recv, counts, commutative, .. } if send.bytes() > 0 => {
            let leads = leader.then(|| (plan.temp(send.elem, send.count), plan.temp(send.elem, send.count)));
            choose::reduce(plan, local, *send, leads.map(|(ours, _)| ours), 0, *commutative);
            let parts = leads.map(|(ours, theirs)| {
                swap(plan, remote, ours, theirs);
                parts_of(theirs, counts)
            });
            scatter_linear::build(plan, local, parts.as_ref(), Some(*recv), 0);
        }
        Work::Allreduce { .. } | Work::ReduceScatter { .. } => {}
        Work::Allgather { .. } | Work::Alltoall { .. } => {
            return fail(Class::Buffer, "MPI_IN_PLACE has no meaning on an intercommunicator");
        }
        Work::Scan { .. } | Work::Exscan { .. } | Work::Neighbor { .. } => {
            return fail(Class::Comm, "this collective is not defined on intercommunicators");
        }
    }
    plan.fence();
    Ok(())
}

/// The first ranks of both groups swap data.
fn swap(plan: &mut Plan, remote: Ranks, send: Data, recv: Data) {
    plan.recv(remote, 0, recv);
    plan.send(remote, 0, send);
    plan.fence();
}

/// Every rank of one group exchanges a block with every rank of the other, starting with its own counterpart.
fn exchange(plan: &mut Plan, remote: Ranks, send: impl Fn(usize) -> Data, recv: &Regions) {
    for i in 0..remote.size {
        let peer = remote.after(i);
        plan.recv_some(remote, peer, recv.get(peer as usize));
        plan.send_some(remote, peer, send(peer as usize));
    }
}
