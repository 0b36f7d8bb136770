//! From a call to work: argument checks, handles looked up, blocks located.
//!
//! Only what is significant at this rank is looked at. What the MPI standard calls erroneous and both Open MPI and
//! MPICH report is reported with the class they use; the first wrong argument wins.

use super::call::{Block, Call, Many, Operands, Parts, Types};
use super::neighbor;
use super::p2p_machine::{Kit, Reduction};
use super::plan::{Data, Elem, Regions};
use super::work::Work;
use crate::coll;
use crate::comm::Communicator;
use crate::comm::topology::Neighbours;
use crate::consts::{self, PROC_NULL, ROOT};
use crate::datatype::{self, Type};
use crate::errors::{Class, Error, Result, fail};
use crate::face::face;
use crate::handle::{Datatype, Handle};
use crate::op;
use smallvec::smallvec;
use std::ffi::c_void;

/// Check `call` on `comm` and say what there is to do.
///
/// # Errors
/// The class of the offending argument.
///
/// # Safety
/// Arrays of counts and displacements must have as many entries as the call demands.
pub unsafe fn resolve(comm: &Communicator, call: &Call) -> Result<(Work, Kit)> {
    let kit = Kit { types: smallvec![datatype::get(consts::dt::BYTE)?], reduction: None };
    let mut resolver = Resolver { comm, kit, last: (consts::dt::BYTE, Elem::BYTE), commutative: true };
    // SAFETY: the caller's contract.
    let work = unsafe { resolver.work(call)? };
    Ok((work, resolver.kit))
}

struct Resolver<'c> {
    comm: &'c Communicator,
    kit: Kit,
    /// The type looked up last: most calls name one type twice.
    last: (Datatype, Elem),
    commutative: bool,
}

/// Which side of a rooted collective this rank is on.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Side {
    Root,
    Leaf,
    /// In the root's group of an intercommunicator, but not the root: nothing to do.
    Idle,
}

fn in_place(addr: *mut c_void) -> bool {
    addr.addr() == consts::IN_PLACE
}

/// # Errors
/// Always.
fn aliased<T>(class: Class) -> Result<T> {
    fail(class, "send and receive buffer are the same; MPI_IN_PLACE says that this is meant")
}

/// Are both buffers one?
fn is_aliased(operands: &Operands) -> bool {
    let Operands { send, recv, .. } = *operands;
    send == recv && !send.is_null() && !in_place(send)
}

fn describe(ty: &Type, id: usize) -> Elem {
    Elem {
        id: id as u32,
        size: ty.size(),
        extent: ty.extent(),
        true_lb: ty.true_lb(),
        true_extent: ty.true_extent(),
        dense: ty.is_dense(),
    }
}

impl Resolver<'_> {
    /// # Safety
    /// As [`resolve`].
    unsafe fn work(&mut self, call: &Call) -> Result<Work> {
        // SAFETY (all `many` below): the caller's contract.
        Ok(match *call {
            Call::Barrier => Work::Barrier,
            Call::Bcast { data, root } => {
                let side = self.side(root)?;
                let data = if side == Side::Idle { Data::EMPTY } else { self.block(&data, "buffer")? };
                Work::Bcast { data, root }
            }
            Call::Gather { send, recv, root } => {
                let side = self.side(root)?;
                let even = matches!(recv, Many::Even(_));
                let own = self.own(side, &send, recv.addr())?;
                let recv = match side {
                    // SAFETY: see above.
                    Side::Root => Some(unsafe { self.many(&recv, self.peers(), "receive buffer")? }),
                    _ => None,
                };
                self.apart(own, recv.as_ref().map(|recv| self.part(recv)))?;
                Work::Gather { send: own, recv, root, even }
            }
            Call::Scatter { send, recv, root } => {
                let side = self.side(root)?;
                let even = matches!(send, Many::Even(_));
                let send_regions = match side {
                    // SAFETY: see above.
                    Side::Root => Some(unsafe { self.many(&send, self.peers(), "send buffer")? }),
                    _ => None,
                };
                let own = self.own(side, &recv, send.addr())?;
                self.apart(send_regions.as_ref().map(|send| self.part(send)), own)?;
                Work::Scatter { send: send_regions, recv: own, root, even }
            }
            Call::Allgather { send, recv } => {
                let even = matches!(recv, Many::Even(_));
                let send = match in_place(send.addr) && !self.comm.is_inter() {
                    true => None,
                    false => Some(self.block(&send, "send buffer")?),
                };
                // SAFETY: see above.
                let recv = unsafe { self.many(&recv, self.peers(), "receive buffer")? };
                self.apart(send, Some(self.part(&recv)))?;
                Work::Allgather { send, recv, even }
            }
            Call::Alltoall { send, recv } => {
                let even = matches!(recv, Many::Even(_));
                let send = match in_place(send.addr()) && !self.comm.is_inter() {
                    true => None,
                    // SAFETY: see above.
                    false => Some(unsafe { self.many(&send, self.peers(), "send buffer")? }),
                };
                // SAFETY: see above.
                let recv = unsafe { self.many(&recv, self.peers(), "receive buffer")? };
                self.apart(send.as_ref().map(|send| self.part(send)), Some(self.part(&recv)))?;
                Work::Alltoall { send, recv, even }
            }
            Call::Reduce { operands, count, root } => self.reduce(&operands, count, root)?,
            Call::Allreduce { operands, count } => {
                if !face().refuses_aliases && count > 1 && is_aliased(&operands) {
                    // Open MPI lets one element pass.
                    return aliased(Class::Buffer);
                }
                let (send, recv) = self.operands(&operands, count, count)?;
                Work::Allreduce { send, recv, commutative: self.commutative }
            }
            // SAFETY: see above.
            Call::ReduceScatter { operands, parts } => unsafe { self.reduce_scatter(&operands, parts)? },
            Call::Scan { operands, count } => {
                self.intra_only("scans")?;
                let (send, recv) = self.operands(&operands, count, count)?;
                Work::Scan { send, recv }
            }
            Call::Exscan { operands, count } => {
                self.intra_only("scans")?;
                let (send, recv) = self.operands(&operands, count, count)?;
                Work::Exscan { send, recv }
            }
            // SAFETY: see above.
            Call::NeighborAllgather { send, recv } => unsafe { self.neighbor_allgather(&send, &recv)? },
            // SAFETY: see above.
            Call::NeighborAlltoall { send, recv } => unsafe { self.neighbor_alltoall(&send, &recv)? },
        })
    }

    /// # Safety
    /// As [`resolve`].
    unsafe fn neighbor_allgather(&mut self, send: &Block, recv: &Many) -> Result<Work> {
        let (sources, destinations) = self.neighbours()?;
        let send = self.blocks(send, destinations.len(), "send buffer")?;
        // SAFETY: the caller's contract.
        let recv = unsafe { self.many(recv, sources.len(), "receive buffer")? };
        Ok(Work::Neighbor {
            sends: neighbor::sends(&destinations, |_| send),
            recvs: neighbor::receives(&sources, &recv, false),
        })
    }

    /// # Safety
    /// As [`resolve`].
    unsafe fn neighbor_alltoall(&mut self, send: &Many, recv: &Many) -> Result<Work> {
        let (sources, destinations) = self.neighbours()?;
        // SAFETY: the caller's contract, for both.
        let send = unsafe { self.many(send, destinations.len(), "send buffer")? };
        // SAFETY: as above.
        let recv = unsafe { self.many(recv, sources.len(), "receive buffer")? };
        let cartesian = neighbor::is_cartesian(self.comm);
        Ok(Work::Neighbor {
            sends: neighbor::sends(&destinations, |i| send.get(i)),
            recvs: neighbor::receives(&sources, &recv, cartesian),
        })
    }

    /// Ranks that blocks are sent to and received from.
    fn peers(&self) -> usize {
        self.comm.peers().size() as usize
    }

    fn intra_only(&self, what: &str) -> Result<()> {
        if self.comm.is_inter() {
            return fail(Class::Comm, format!("{what} are not defined on an intercommunicator"));
        }
        Ok(())
    }

    fn neighbours(&self) -> Result<(Neighbours, Neighbours)> {
        self.intra_only("neighbourhood collectives")?;
        coll::neighbours(self.comm)
    }

    fn side(&self, root: i32) -> Result<Side> {
        let size = self.peers();
        match root {
            ROOT if self.comm.is_inter() => Ok(Side::Root),
            PROC_NULL if self.comm.is_inter() => Ok(Side::Idle),
            0.. if (root as usize) < size => {
                let is_root = !self.comm.is_inter() && root as u32 == self.comm.rank;
                Ok(if is_root { Side::Root } else { Side::Leaf })
            }
            _ => fail(Class::Root, format!("root is {root}, but must be between 0 and {}", size - 1)),
        }
    }

    fn elem(&mut self, handle: Datatype) -> Result<Elem> {
        if handle != self.last.0 {
            let ty = datatype::get_committed(handle)?;
            self.last = (handle, describe(&ty, self.kit.types.len()));
            self.kit.types.push(ty);
        }
        Ok(self.last.1)
    }

    fn count(&self, count: i64) -> Result<u64> {
        u64::try_from(count)
            .map_err(|_| Error::new(Class::Count, format!("count is {count}, but must not be negative")))
    }

    /// `what`: the argument, as a message calls it.
    fn data(&mut self, addr: *mut c_void, count: i64, handle: Datatype, what: &str) -> Result<Data> {
        let count = self.count(count)?;
        let elem = self.elem(handle)?;
        let data = Data { at: addr.cast(), count, elem };
        if in_place(addr) {
            return fail(Class::Buffer, format!("the {what} must not be MPI_IN_PLACE here"));
        }
        // MPI_BOTTOM is the same address, but only a derived type can make it useful.
        if addr.is_null() && data.bytes() > 0 && handle.dynamic_index().is_none() {
            return fail(Class::Buffer, format!("the {what} is a null pointer, but the count is {count}"));
        }
        Ok(data)
    }

    fn block(&mut self, block: &Block, what: &str) -> Result<Data> {
        self.data(block.addr, block.count, block.ty, what)
    }

    /// This rank's own block among those of an intracommunicator's ranks.
    fn part(&self, regions: &Regions) -> Data {
        if self.comm.is_inter() { Data::EMPTY } else { regions.get(self.comm.rank as usize) }
    }

    /// Nothing may be both sent from and received into, where this face's library looks for that: both are there, of one type and at one address.
    fn apart(&self, send: Option<Data>, recv: Option<Data>) -> Result<()> {
        let (Some(send), Some(recv)) = (send, recv) else { return Ok(()) };
        let both = !send.at.is_null() && send.at == recv.at && send.bytes() > 0 && recv.bytes() > 0;
        if both && send.elem.id == recv.elem.id && face().refuses_aliases {
            return aliased(Class::Buffer);
        }
        Ok(())
    }

    /// `n` blocks; where there is none, nobody looks at the buffer.
    fn blocks(&mut self, block: &Block, n: usize, what: &str) -> Result<Data> {
        if n > 0 {
            return self.block(block, what);
        }
        self.count(block.count)?;
        self.data(block.addr, 0, block.ty, what)
    }

    /// The block of this rank in a gather or scatter, `None` if there is none or it is in place.
    fn own(&mut self, side: Side, block: &Block, other: *mut c_void) -> Result<Option<Data>> {
        let what = "buffer of this rank's own block";
        match (side, self.comm.is_inter()) {
            (Side::Idle, _) | (Side::Root, true) => Ok(None),
            (Side::Root, false) if in_place(block.addr) && !in_place(other) => Ok(None),
            _ => self.block(block, what).map(Some),
        }
    }

    /// # Safety
    /// The arrays must have `n` entries.
    unsafe fn many(&mut self, many: &Many, n: usize, what: &str) -> Result<Regions> {
        let (addr, counts, displs, types) = match *many {
            Many::Even(block) => return Ok(Regions::Even { first: self.blocks(&block, n, what)?, blocks: n }),
            Many::Listed { addr, counts, displs, types } => (addr, counts, displs, types),
        };
        if in_place(addr) {
            return fail(Class::Buffer, format!("the {what} must not be MPI_IN_PLACE here"));
        }
        if n > 0 && (counts.is_null() || displs.is_null()) {
            return fail(Class::Arg, "the array of counts or of displacements is a null pointer");
        }
        let mut list = Vec::with_capacity(n);
        for i in 0..n {
            // SAFETY: not null, and the caller vouches for the length.
            let (count, displ) = unsafe { (counts.get(i), displs.get(i)) };
            let handle = match types {
                Types::One(handle) => handle,
                Types::Each(handle) => handle(i),
            };
            let unit = match types {
                Types::One(_) => self.elem(handle)?.extent,
                Types::Each(_) => 1,
            };
            let at = addr.wrapping_byte_offset((displ * unit) as isize);
            list.push(match addr.is_null() && displ != 0 {
                // Relative to MPI_BOTTOM: any address will do.
                true => Data { at: at.cast(), count: self.count(count)?, elem: self.elem(handle)? },
                false => self.data(at, count, handle, what)?,
            });
        }
        if let Types::One(handle) = types {
            self.elem(handle)?;
        }
        Ok(Regions::Listed(list))
    }

    /// The type of a reduction, and its operation, which goes into the kit.
    fn operation(&mut self, operands: &Operands) -> Result<Elem> {
        let elem = self.elem(operands.ty)?;
        if matches!(operands.op, consts::op::REPLACE | consts::op::NO_OP) {
            return fail(Class::Op, "MPI_REPLACE and MPI_NO_OP are for one-sided communication only");
        }
        let op = op::get(operands.op)?;
        op.check(operands.ty, &self.kit.types[elem.id as usize])?;
        self.commutative = op.is_commutative();
        self.kit.reduction = Some(Reduction { op, datatype: operands.ty });
        Ok(elem)
    }

    /// Contribution and result of a reduction where every rank has both; the same if in place.
    fn operands(&mut self, operands: &Operands, send_count: i64, recv_count: i64) -> Result<(Data, Data)> {
        self.count(send_count)?;
        self.operation(operands)?;
        let recv = self.data(operands.recv, recv_count, operands.ty, "receive buffer")?;
        let send = match in_place(operands.send) && !self.comm.is_inter() {
            true => Data { at: recv.at, count: self.count(send_count)?, elem: recv.elem },
            false => {
                let send = self.data(operands.send, send_count, operands.ty, "send buffer")?;
                self.apart(Some(send), Some(recv))?;
                send
            }
        };
        Ok((send, recv))
    }

    fn reduce(&mut self, operands: &Operands, count: i64, root: i32) -> Result<Work> {
        let side = self.side(root)?;
        let commutative = |resolver: &Self| resolver.commutative;
        if side == Side::Idle {
            return Ok(Work::Reduce { send: Data::EMPTY, recv: None, root, commutative: true });
        }
        if side == Side::Root && !self.comm.is_inter() {
            if count > 0 && is_aliased(operands) {
                return aliased(if face().refuses_aliases { Class::Buffer } else { Class::Arg });
            }
            let (send, recv) = self.operands(operands, count, count)?;
            return Ok(Work::Reduce { send, recv: Some(recv), root, commutative: commutative(self) });
        }
        self.count(count)?;
        self.operation(operands)?;
        let (send, recv) = match side {
            Side::Root => (Data::EMPTY, Some(self.data(operands.recv, count, operands.ty, "receive buffer")?)),
            _ => (self.data(operands.send, count, operands.ty, "send buffer")?, None),
        };
        Ok(Work::Reduce { send, recv, root, commutative: commutative(self) })
    }

    /// # Safety
    /// A list of parts must have an entry for each rank of the local group.
    unsafe fn reduce_scatter(&mut self, operands: &Operands, parts: Parts) -> Result<Work> {
        let ranks = self.comm.size() as usize;
        let counts: Vec<u64> = match parts {
            Parts::Even(count) => vec![self.count(count)?; ranks],
            Parts::Listed(array) if array.is_null() => {
                return fail(Class::Arg, "the array of receive counts is a null pointer");
            }
            // SAFETY: not null, and the caller vouches for the length.
            Parts::Listed(array) => (0..ranks).map(|i| self.count(unsafe { array.get(i) })).collect::<Result<_>>()?,
        };
        let total: u64 = counts.iter().sum();
        let own = counts[self.comm.rank as usize];
        let (send, recv) = match in_place(operands.send) && !self.comm.is_inter() {
            // The receive buffer holds the whole contribution.
            true => {
                let (send, whole) = self.operands(operands, total as i64, total as i64)?;
                (send, Data { count: own, ..whole })
            }
            false => self.operands(operands, total as i64, own as i64)?,
        };
        let in_place = send.at == recv.at;
        Ok(Work::ReduceScatter { send, recv, counts, in_place, commutative: self.commutative })
    }
}
