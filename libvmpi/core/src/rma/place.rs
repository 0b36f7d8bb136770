//! Where a target's memory is, and reading and writing packed pieces of it.

#![allow(unsafe_code)]

use super::{Reach, Window, remote};
use crate::consts;
use crate::datatype::{self, Type};
use crate::errors::{Class, Error, Result, fail};
use crate::failure;
use crate::process::endpoint;
use std::rc::Rc;
use vmpi_cma::{Block, CopyError, Side};

/// The target side of an operation, as the program gave it.
#[derive(Clone)]
pub struct Place {
    pub target: i32,
    /// In the target's displacement units; an address in a dynamic window.
    pub disp: i64,
    pub count: u64,
    pub ty: Rc<Type>,
}

/// The same, checked: elements in the memory of a member.
pub(super) struct Spot<'a> {
    pub window: &'a Window,
    pub target: u32,
    pub ty: &'a Type,
    pub count: u64,
    /// Address in the target's process from which the elements' displacements count.
    addr: u64,
    reach: Reach,
}

impl Window {
    /// Check the target of an operation. `None`: MPI_PROC_NULL.
    ///
    /// # Errors
    /// `Class::Rank`, `Class::Disp`, `Class::RmaSync` outside an epoch, `Class::RmaRange` beyond the target's memory.
    #[inline]
    pub(super) fn locate<'a>(&'a self, place: &'a Place) -> Result<Option<Spot<'a>>> {
        if place.target == consts::PROC_NULL {
            self.check_access(None)?;
            return Ok(None);
        }
        let target = self.check_rank(place.target)?;
        if place.disp < 0 && !self.is_dynamic() {
            return fail(Class::Disp, format!("the target displacement is {}, which is negative", place.disp));
        }
        self.check_access(Some(target))?;
        self.check_member(target)?;
        let part = &self.parts[target as usize];
        let (ty, count) = (&*place.ty, place.count);
        let addr = part.base.wrapping_add((place.disp as u64).wrapping_mul(part.unit as u64));
        if count > 0 && ty.size() > 0 {
            let reach = (i128::from(count) - 1) * i128::from(ty.extent());
            let offset = if self.is_dynamic() {
                i128::from(place.disp as u64)
            } else {
                i128::from(place.disp) * i128::from(part.unit)
            };
            let from = offset + i128::from(ty.true_lb()) + reach.min(0);
            let to = offset + i128::from(ty.true_lb()) + i128::from(ty.true_extent()) + reach.max(0);
            if self.is_dynamic() {
                let inside = u64::try_from(from).ok().zip(u64::try_from(to).ok());
                if !inside.is_some_and(|(from, to)| self.all_attached(target, ty, count, addr, from, to)) {
                    return self.outside(target, from, to);
                }
            } else if from < 0 || to > i128::from(part.bytes) {
                return self.outside(target, from, to);
            }
        }
        Ok(Some(Spot { window: self, target, ty, count, addr, reach: part.reach }))
    }

    /// Has the target attached every byte? Usually the whole stretch; else each block is looked for.
    fn all_attached(&self, target: u32, ty: &Type, count: u64, addr: u64, from: u64, to: u64) -> bool {
        if self.is_far(target) {
            // Its node's carrier looks.
            return true;
        }
        if self.control.is_attached(target, from, to) {
            return true;
        }
        let mut all = true;
        ty.blocks(count, &mut |offset, len| {
            let from = addr.wrapping_add_signed(offset);
            all = self.control.is_attached(target, from, from.saturating_add(len));
            all
        });
        all
    }

    #[cold]
    fn outside<T>(&self, target: u32, from: i128, to: i128) -> Result<T> {
        if self.is_dynamic() {
            return fail(
                Class::RmaRange,
                format!("rank {target} has not attached all of the memory from address {from:#x} to {to:#x}"),
            );
        }
        let bytes = self.parts[target as usize].bytes;
        fail(
            Class::RmaRange,
            format!("bytes {from} to {to} are accessed in the window of rank {target}, which has {bytes} bytes"),
        )
    }
}

impl Spot<'_> {
    /// Packed bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.ty.size().saturating_mul(self.count)
    }

    /// Is it on another node, in reach of its carrier?
    #[inline]
    pub fn is_far(&self) -> bool {
        self.reach == Reach::Far
    }

    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Does the target itself do what is wanted, asked by messages?
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.reach == Reach::Ask
    }

    /// Where the elements' displacements count from, if the memory is mapped here.
    #[inline]
    pub fn here(&self) -> Option<*mut u8> {
        match self.reach {
            Reach::Here { shift } => Some(self.addr.wrapping_add(shift) as *mut u8),
            _ => None,
        }
    }

    /// As `here`, if moreover the elements are one block of memory: its first byte.
    #[inline]
    pub fn dense_here(&self) -> Option<*mut u8> {
        let here = self.here()?;
        self.ty.is_dense().then(|| here.wrapping_offset(self.ty.true_lb() as isize))
    }

    /// The blocks of packed bytes `[from, to)` in the target's process.
    pub fn blocks(&self, from: u64, to: u64) -> Vec<Block> {
        if self.ty.is_dense() {
            let start = self.addr.wrapping_add_signed(self.ty.true_lb());
            return vec![Block { addr: start.wrapping_add(from), len: to - from }];
        }
        let mut blocks = Vec::new();
        self.ty.blocks_in(self.count, from, to, &mut |offset, len| {
            blocks.push(Block { addr: self.addr.wrapping_add_signed(offset), len });
            true
        });
        blocks
    }

    /// Read packed bytes from `from` on, and wait for them.
    ///
    /// # Errors
    /// `Class::RmaRange` if the memory does not exist (any more), `Class::Other` if it cannot be copied.
    ///
    /// # Safety
    /// Nobody else may use `into`; the target's memory is there as its owner promised.
    pub unsafe fn read(&self, from: u64, into: &mut [u8]) -> Result<()> {
        match self.reach {
            Reach::Here { shift } => {
                let memory = self.addr.wrapping_add(shift) as *const u8;
                // SAFETY: the caller's promise.
                unsafe { datatype::pack(self.ty, self.count, memory, from, into) };
                Ok(())
            }
            Reach::Copy { pid } => {
                let blocks = self.blocks(from, from + into.len() as u64);
                // SAFETY: the caller's promise.
                let copied = unsafe { vmpi_cma::read(pid, &[Block::of(into)], &blocks) };
                self.copied(copied)
            }
            Reach::Far => self.window.read_far_now(self.target, &self.blocks(from, from + into.len() as u64), into),
            Reach::Ask => remote::read(self.window, self.target, &self.blocks(from, from + into.len() as u64), into),
        }
    }

    /// Write packed bytes from `from` on; on another node they are there at the next synchronisation.
    ///
    /// # Errors
    /// As [`Spot::read`].
    ///
    /// # Safety
    /// The target's memory is there as its owner promised.
    pub unsafe fn write(&self, from: u64, data: &[u8]) -> Result<()> {
        match self.reach {
            Reach::Here { shift } => {
                let memory = self.addr.wrapping_add(shift) as *mut u8;
                // SAFETY: the caller's promise.
                unsafe { datatype::unpack(self.ty, self.count, memory, from, data) };
                Ok(())
            }
            Reach::Copy { pid } => {
                let blocks = self.blocks(from, from + data.len() as u64);
                // SAFETY: the caller's promise.
                let copied = unsafe { vmpi_cma::write(pid, &[Block::of(data)], &blocks) };
                self.copied(copied)
            }
            Reach::Far => self.window.write_far(self.target, &self.blocks(from, from + data.len() as u64), data),
            Reach::Ask => remote::write(self.window, self.target, &self.blocks(from, from + data.len() as u64), data),
        }
    }

    fn copied(&self, copied: std::result::Result<u64, CopyError>) -> Result<()> {
        copied.map(drop).map_err(|error| {
            if matches!(error, CopyError::NoSuchProcess { .. }) {
                failure::await_verdict();
            }
            let class = match error {
                CopyError::Fault { side: Side::Remote, .. } | CopyError::Impossible { side: Side::Remote, .. } => {
                    Class::RmaRange
                }
                CopyError::Fault { side: Side::Local, .. } | CopyError::Impossible { side: Side::Local, .. } => {
                    Class::Buffer
                }
                CopyError::NoSuchProcess { .. } if endpoint().node.header().recovery != 0 => Class::ProcFailed,
                _ => Class::Other,
            };
            Error::new(class, format!("the memory of rank {} cannot be accessed: {error}", self.target))
        })
    }
}
