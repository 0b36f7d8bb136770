//! Reduction operations (MPI 4.1 section 6.9). (Floor 3.)
//!
//! Reading order: `element` (which arithmetic a datatype has); the loops are in `vmpi_shared::arith`, because carriers of other nodes
//! execute them, too. `unsafe` is in [`Operation::apply`].

mod element;

#[cfg(test)]
mod tests;

use crate::consts::{dt, op};
use crate::datatype::Type;
use crate::errors::{Class, Error, Result, fail};
use crate::face::face;
use crate::guarded::EntryGuarded;
use crate::handle::{Datatype, FIRST_DYNAMIC, Handle, Op};
use crate::table::Table;
use std::ffi::c_void;
use std::rc::Rc;
pub use vmpi_shared::arith::Builtin;
use vmpi_shared::arith::{Element, Kernel, kernel};

/// A user-defined operation: `f(invec, inoutvec, len, datatype)`, made by the ABI layer from the program's function
/// pointer.
pub type UserFunction = Rc<dyn Fn(*const c_void, *mut c_void, u64, Datatype)>;

const BUILTINS: &[(Op, Builtin, &str)] = &[
    (op::SUM, Builtin::Sum, "MPI_SUM"),
    (op::MIN, Builtin::Min, "MPI_MIN"),
    (op::MAX, Builtin::Max, "MPI_MAX"),
    (op::PROD, Builtin::Prod, "MPI_PROD"),
    (op::BAND, Builtin::Band, "MPI_BAND"),
    (op::BOR, Builtin::Bor, "MPI_BOR"),
    (op::BXOR, Builtin::Bxor, "MPI_BXOR"),
    (op::LAND, Builtin::Land, "MPI_LAND"),
    (op::LOR, Builtin::Lor, "MPI_LOR"),
    (op::LXOR, Builtin::Lxor, "MPI_LXOR"),
    (op::MINLOC, Builtin::Minloc, "MPI_MINLOC"),
    (op::MAXLOC, Builtin::Maxloc, "MPI_MAXLOC"),
    (op::REPLACE, Builtin::Replace, "MPI_REPLACE"),
    (op::NO_OP, Builtin::NoOp, "MPI_NO_OP"),
];

/// What a predefined operation is called.
pub(crate) fn name(handle: Op) -> Option<&'static str> {
    BUILTINS.iter().find(|row| row.0 == handle).map(|row| row.2)
}

enum Kind {
    Builtin(Builtin),
    User(UserFunction),
}

/// An operation.
pub struct Operation {
    kind: Kind,
    commutative: bool,
}

impl Operation {
    /// May operands change places?
    pub fn is_commutative(&self) -> bool {
        self.commutative
    }

    /// Which built-in operation this is.
    pub fn builtin(&self) -> Option<Builtin> {
        match self.kind {
            Kind::Builtin(builtin) => Some(builtin),
            Kind::User(_) => None,
        }
    }

    /// Is the operation defined on this datatype (built-in ones: MPI 4.1 section 6.9.2)?
    ///
    /// # Errors
    /// `Class::Op` if not.
    pub fn check(&self, datatype: Datatype, ty: &Type) -> Result<()> {
        self.check_for(datatype, ty, face().bytes_are_bits)
    }

    fn check_for(&self, datatype: Datatype, ty: &Type, bytes_are_bits: bool) -> Result<()> {
        let Kind::Builtin(builtin) = self.kind else { return Ok(()) };
        let name = BUILTINS.iter().find(|row| row.1 == builtin).map_or("", |row| row.2);
        if matches!(builtin, Builtin::Replace | Builtin::NoOp) {
            return fail(Class::Op, format!("{name} is for one-sided accumulation only"));
        }
        if ty.named().is_none() {
            return fail(Class::Op, format!("{name} is not defined for derived datatypes"));
        }
        let allowed = match builtin {
            Builtin::Band | Builtin::Bor | Builtin::Bxor => true,
            _ if ty.named() == Some(dt::BYTE) => !bytes_are_bits,
            Builtin::Land | Builtin::Lor | Builtin::Lxor => {
                face().logical_on_reals || !element_of(ty).is_some_and(Element::is_real)
            }
            _ => true,
        };
        match find_kernel(builtin, ty) {
            Some(_) if allowed => Ok(()),
            _ => {
                let type_name = crate::datatype::name(datatype).unwrap_or_default();
                fail(Class::Op, format!("{name} is not defined for {type_name}"))
            }
        }
    }

    /// May accumulation into a window use the operation on elements of the predefined type `ty`: any built-in one that
    /// is defined on it, MPI_REPLACE and MPI_NO_OP on every type (MPI 4.1 section 12.3.4)?
    ///
    /// # Errors
    /// `Class::Op` if not.
    pub fn check_accumulate(&self, datatype: Datatype, ty: &Type) -> Result<()> {
        match self.kind {
            Kind::User(_) => fail(Class::Op, "accumulation takes predefined operations only"),
            Kind::Builtin(Builtin::Replace | Builtin::NoOp) => Ok(()),
            Kind::Builtin(_) => self.check_for(datatype, ty, false),
        }
    }

    /// `inout[i] = input[i] op inout[i]` for `count` elements. A user's operation is called back: no borrow of a
    /// `EntryGuarded` may be held. What `check` refuses is left alone.
    ///
    /// # Safety
    /// Both must hold `count` elements of `ty`, and not overlap.
    pub unsafe fn apply(&self, input: *const c_void, inout: *mut c_void, count: u64, datatype: Datatype, ty: &Type) {
        match &self.kind {
            Kind::User(function) => function(input, inout, count, datatype),
            Kind::Builtin(Builtin::NoOp) => {}
            Kind::Builtin(Builtin::Replace) => ty.blocks(count, &mut |offset, len| {
                let (from, to) = (input.cast::<u8>(), inout.cast::<u8>());
                // SAFETY: the blocks of `count` elements, which the caller says are there.
                unsafe {
                    let from = from.wrapping_offset(offset as isize);
                    std::ptr::copy_nonoverlapping(from, to.wrapping_offset(offset as isize), len as usize);
                }
                true
            }),
            Kind::Builtin(builtin) => match find_kernel(*builtin, ty) {
                // SAFETY: the caller's promise.
                Some(kernel) => unsafe { kernel(input.cast(), inout.cast(), count as usize) },
                None => debug_assert!(false, "apply without check"),
            },
        }
    }
}

fn find_kernel(builtin: Builtin, ty: &Type) -> Option<Kernel> {
    kernel(builtin, element_of(ty)?)
}

/// The arithmetic of a predefined datatype's elements.
pub(crate) fn element_of(ty: &Type) -> Option<Element> {
    element::of(ty.named()?)
}

struct Registry {
    builtin: Vec<(Op, Rc<Operation>)>,
    made: Table<Op, Rc<Operation>>,
}

static REGISTRY: EntryGuarded<Registry> = EntryGuarded::new(Registry { builtin: Vec::new(), made: Table::new() });

/// The operation behind a handle; `Class::Op` if there is none.
pub fn get(handle: Op) -> Result<Rc<Operation>> {
    let found = REGISTRY.with(|r| {
        if handle.raw() >= FIRST_DYNAMIC {
            return r.made.get(handle).cloned();
        }
        if r.builtin.is_empty() {
            // One of the two operands, whichever is first or second.
            let commutes = |kind| !matches!(kind, Builtin::Replace | Builtin::NoOp);
            let make = |kind| Rc::new(Operation { kind: Kind::Builtin(kind), commutative: commutes(kind) });
            r.builtin = BUILTINS.iter().map(|row| (row.0, make(row.1))).collect();
        }
        r.builtin.iter().find(|row| row.0 == handle).map(|row| Rc::clone(&row.1))
    });
    let unknown = || match handle.is_null() {
        true => Error::new(Class::Op, "the operation is MPI_OP_NULL"),
        false => Error::new(Class::Op, format!("no operation has the handle {:#x}", handle.raw())),
    };
    found.ok_or_else(unknown)
}

/// A built-in operation.
///
/// # Errors
/// None: all of them have handles.
pub(crate) fn built_in(builtin: Builtin) -> Result<Rc<Operation>> {
    get(BUILTINS.iter().find(|row| row.1 == builtin).map_or(Op::NULL, |row| row.0))
}

/// Make an operation of the program's function (MPI_Op_create).
pub fn create(function: UserFunction, commutative: bool) -> Op {
    let operation = Rc::new(Operation { kind: Kind::User(function), commutative });
    REGISTRY.with(|r| r.made.insert(operation))
}

/// Give an operation of the program another function: a language binding says how its function is to be called.
///
/// # Errors
/// `Class::Op` for what is not an operation of the program.
pub fn replace(handle: Op, function: UserFunction) -> Result<()> {
    let old = get(handle)?;
    if old.builtin().is_some() {
        return fail(Class::Op, "a predefined operation has no function of the program");
    }
    let operation = Rc::new(Operation { kind: Kind::User(function), commutative: old.commutative });
    REGISTRY.with(|r| {
        if let Some(place) = r.made.get_mut(handle) {
            *place = operation;
        }
    });
    Ok(())
}

/// Forget the handle; operations under way keep the function (MPI_Op_free).
///
/// # Errors
/// `Class::Op` for a built-in operation.
pub fn free(handle: Op) -> Result<()> {
    if get(handle)?.builtin().is_some() {
        return fail(Class::Op, "a predefined operation cannot be freed");
    }
    let operation = REGISTRY.with(|r| r.made.remove(handle));
    drop(operation);
    Ok(())
}
