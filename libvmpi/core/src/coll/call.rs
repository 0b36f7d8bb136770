//! A collective call as the program made it: buffers, counts and handles in core numbers, nothing checked yet.
//!
//! The v, w and regular forms of a collective are one [`Call`] each; the face's entry point fills it in once, and
//! [`super::run`], [`super::start`] and [`super::init`] are its blocking, nonblocking and persistent forms.

use crate::handle::{Datatype, Op};
use std::ffi::c_void;

/// `count` elements at `addr` (0: MPI_BOTTOM, 1: MPI_IN_PLACE).
#[derive(Copy, Clone, Debug)]
pub struct Block {
    pub addr: *mut c_void,
    pub count: i64,
    pub ty: Datatype,
}

/// An array of counts or displacements, as C passes it: `int`, or MPI_Count and MPI_Aint.
#[derive(Copy, Clone, Debug)]
pub enum Counts {
    I32(*const i32),
    I64(*const i64),
}

impl Counts {
    pub fn is_null(self) -> bool {
        match self {
            Counts::I32(array) => array.is_null(),
            Counts::I64(array) => array.is_null(),
        }
    }

    /// Entry `i`.
    ///
    /// # Safety
    /// The array must have more than `i` entries.
    pub unsafe fn get(self, i: usize) -> i64 {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                Counts::I32(array) => i64::from(*array.add(i)),
                Counts::I64(array) => *array.add(i),
            }
        }
    }
}

impl From<*const i32> for Counts {
    fn from(array: *const i32) -> Counts {
        Counts::I32(array)
    }
}

impl From<*const i64> for Counts {
    fn from(array: *const i64) -> Counts {
        Counts::I64(array)
    }
}

/// The datatypes of a [`Many::Listed`], and with them the unit of its displacements.
#[derive(Copy, Clone)]
pub enum Types<'a> {
    /// One for all; displacements count its extent (the v forms).
    One(Datatype),
    /// Block i's; displacements count bytes (the w forms).
    Each(&'a dyn Fn(usize) -> Datatype),
}

/// A block for each rank or neighbour.
#[derive(Copy, Clone)]
pub enum Many<'a> {
    /// One after another, each with the block's count.
    Even(Block),
    Listed {
        addr: *mut c_void,
        counts: Counts,
        displs: Counts,
        types: Types<'a>,
    },
}

impl Many<'_> {
    pub fn addr(&self) -> *mut c_void {
        match self {
            Many::Even(block) => block.addr,
            Many::Listed { addr, .. } => *addr,
        }
    }
}

/// Elements of each rank's part in a reduce-scatter.
#[derive(Copy, Clone, Debug)]
pub enum Parts {
    Even(i64),
    Listed(Counts),
}

/// What a reduction combines and how.
#[derive(Copy, Clone, Debug)]
pub struct Operands {
    pub send: *mut c_void,
    pub recv: *mut c_void,
    pub ty: Datatype,
    pub op: Op,
}

/// A collective call. `root`: a rank, or MPI_ROOT or MPI_PROC_NULL on an intercommunicator.
#[derive(Copy, Clone)]
pub enum Call<'a> {
    Barrier,
    Bcast { data: Block, root: i32 },
    Gather { send: Block, recv: Many<'a>, root: i32 },
    Scatter { send: Many<'a>, recv: Block, root: i32 },
    Allgather { send: Block, recv: Many<'a> },
    Alltoall { send: Many<'a>, recv: Many<'a> },
    Reduce { operands: Operands, count: i64, root: i32 },
    Allreduce { operands: Operands, count: i64 },
    ReduceScatter { operands: Operands, parts: Parts },
    Scan { operands: Operands, count: i64 },
    Exscan { operands: Operands, count: i64 },
    NeighborAllgather { send: Block, recv: Many<'a> },
    NeighborAlltoall { send: Many<'a>, recv: Many<'a> },
}
