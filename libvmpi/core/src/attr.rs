//! Attributes cached on communicators, datatypes and windows (MPI 4.1 section 7.7).
//!
//! The ABI layer makes the copy and delete callbacks (it knows how C or Fortran calls them); here they are closures.
//! A value remembers how it was set, so that C and Fortran see it as MPI 4.1 section 19.3.7 says.

use crate::check::made::{self, What};
use crate::consts::{self, TAG_UB_VALUE};
use crate::errhandler::codes;
use crate::errors::{Class, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::{Comm, Handle};
use crate::process;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// What kind of object carries the attribute.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Comm,
    Type,
    Win,
}

/// An attribute's value, by how it was set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// From C: the pointer.
    Pointer(usize),
    /// From Fortran with the MPI-1 functions, or a predefined attribute: an INTEGER.
    Integer(i32),
    /// From Fortran: an INTEGER(KIND=MPI_ADDRESS_KIND).
    Address(isize),
}

impl Value {
    /// As a Fortran INTEGER: an address is cut to its low bits.
    pub fn as_integer(self) -> i32 {
        self.as_address() as i32
    }

    /// As a Fortran address: an INTEGER is sign-extended.
    pub fn as_address(self) -> isize {
        match self {
            Value::Pointer(pointer) => pointer as isize,
            Value::Integer(value) => value as isize,
            Value::Address(value) => value,
        }
    }

    /// As C sees it: the pointer, or for a value that was not set from C a pointer to `cell`, which gets the value.
    pub fn as_pointer(self, cell: &mut i64) -> usize {
        match self {
            Value::Pointer(pointer) => return pointer,
            // An `int` at the cell's address must read as the value: on a little-endian machine it does.
            Value::Integer(value) => *cell = i64::from(value),
            Value::Address(value) => *cell = value as i64,
        }
        std::ptr::from_mut(cell) as usize
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "Value::as_pointer stores an int in a 64-bit cell");

/// Called when an object is duplicated: (object's raw handle, keyval, value); `None`: the copy has no such attribute.
pub type CopyFn = Rc<dyn Fn(u32, i32, Value) -> Result<Option<Value>>>;
/// Called when an attribute goes: (object's raw handle, keyval, value).
pub type DeleteFn = Rc<dyn Fn(u32, i32, Value) -> Result<()>>;

/// `MPI_{COMM,TYPE,WIN}_NULL_COPY_FN`: attributes are not copied.
pub fn null_copy() -> CopyFn {
    Rc::new(|_, _, _| Ok(None))
}

/// `MPI_{COMM,TYPE,WIN}_DUP_FN`: the copy has the same value.
pub fn dup_copy() -> CopyFn {
    Rc::new(|_, _, value| Ok(Some(value)))
}

/// `MPI_{COMM,TYPE,WIN}_NULL_DELETE_FN`: nothing to do.
pub fn null_delete() -> DeleteFn {
    Rc::new(|_, _, _| Ok(()))
}

struct Keyval {
    kind: Kind,
    id: i32,
    copy: CopyFn,
    delete: DeleteFn,
}

/// One attribute of one object; `cell` is what C's pointer to a Fortran value points to.
#[derive(Clone)]
struct Attribute {
    keyval: Rc<Keyval>,
    value: Value,
}

struct Slot {
    attribute: Attribute,
    cell: Box<i64>,
}

struct State {
    keyvals: BTreeMap<i32, Rc<Keyval>>,
    /// Keys that were freed. A copy of the number stays good for as long as an attribute has the key.
    freed: BTreeMap<i32, Weak<Keyval>>,
    last_keyval: i32,
    /// The attributes of an object in the order in which they were set. No hash table, of which memcheck says at the end that it may be lost: what points to one
    /// points into it.
    of: BTreeMap<(Kind, u32), Vec<Slot>>,
}

static STATE: EntryGuarded<State> = EntryGuarded::new(State {
    keyvals: BTreeMap::new(),
    freed: BTreeMap::new(),
    last_keyval: crate::handle::FIRST_DYNAMIC as i32 - 1,
    of: BTreeMap::new(),
});

impl State {
    fn keyval(&self, keyval: i32) -> Option<Rc<Keyval>> {
        self.keyvals.get(&keyval).cloned().or_else(|| self.freed.get(&keyval)?.upgrade())
    }

    /// The key itself, for the caller to drop: what it keeps alive may call back into this module. `None` if it was freed before.
    fn free(&mut self, keyval: i32) -> Option<Rc<Keyval>> {
        let freed = self.keyvals.remove(&keyval)?;
        self.freed.retain(|_, keyval| keyval.strong_count() > 0);
        self.freed.insert(keyval, Rc::downgrade(&freed));
        Some(freed)
    }

    fn slots(&mut self, kind: Kind, object: u32) -> &mut Vec<Slot> {
        self.of.entry((kind, object)).or_default()
    }

    fn slot(&mut self, kind: Kind, object: u32, keyval: i32) -> Option<&mut Slot> {
        let slots = self.of.get_mut(&(kind, object))?;
        slots.iter_mut().find(|slot| slot.attribute.keyval.id == keyval)
    }

    fn last(&mut self, kind: Kind, object: u32) -> Option<Attribute> {
        Some(self.of.get(&(kind, object))?.last()?.attribute.clone())
    }

    fn take(&mut self, kind: Kind, object: u32, keyval: i32) -> Option<Slot> {
        let slots = self.of.get_mut(&(kind, object))?;
        let index = slots.iter().position(|slot| slot.attribute.keyval.id == keyval)?;
        Some(slots.remove(index))
    }

    fn put(&mut self, kind: Kind, object: u32, attribute: Attribute) {
        // As if it had been deleted before: it is the one that was set last.
        let id = attribute.keyval.id;
        let slots = self.slots(kind, object);
        slots.retain(|slot| slot.attribute.keyval.id != id);
        slots.push(Slot { attribute, cell: Box::new(0) });
    }
}

/// Give a key other callbacks: a language binding says how its functions are to be called. For a key that no attribute has yet.
///
/// # Errors
/// `Class::Keyval` if there is no such key.
pub fn replace(keyval: i32, copy: CopyFn, delete: DeleteFn) -> Result<()> {
    STATE.with(|state| match state.keyvals.get_mut(&keyval) {
        Some(place) => {
            *place = Rc::new(Keyval { kind: place.kind, id: keyval, copy, delete });
            Ok(())
        }
        None => fail(Class::Keyval, format!("{keyval} is not the key of attributes")),
    })
}

/// A new attribute key for objects of `kind`.
pub fn create_keyval(kind: Kind, copy: CopyFn, delete: DeleteFn) -> i32 {
    STATE.with(|state| {
        state.last_keyval += 1;
        let id = state.last_keyval;
        state.keyvals.insert(id, Rc::new(Keyval { kind, id, copy, delete }));
        made::made(What::Keyval, id as u32);
        id
    })
}

/// Free a key; attributes that have it keep their callbacks. Freeing it again, through another copy of its number, is
/// in order as long as an attribute has it, as in the reference MPIs: a delete callback may do so.
///
/// # Errors
/// `Class::Keyval` for a predefined key or one that does not exist for `kind`.
pub fn free_keyval(kind: Kind, keyval: i32) -> Result<()> {
    find(kind, keyval)?;
    made::freed(What::Keyval, keyval as u32);
    let freed = STATE.with(|state| state.free(keyval));
    drop(freed);
    Ok(())
}

fn is_predefined(keyval: i32) -> bool {
    (consts::TAG_UB..=consts::UNIVERSE_SIZE).contains(&keyval)
        || (consts::WIN_BASE..=consts::WIN_MODEL).contains(&keyval)
}

fn find(kind: Kind, keyval: i32) -> Result<Rc<Keyval>> {
    if keyval == consts::KEYVAL_INVALID {
        return fail(Class::Keyval, "the key is MPI_KEYVAL_INVALID");
    }
    if is_predefined(keyval) {
        return fail(Class::Keyval, "the key is that of a predefined attribute, which cannot be changed");
    }
    match STATE.with(|state| state.keyval(keyval)) {
        Some(found) if found.kind == kind => Ok(found),
        Some(_) => fail(Class::Keyval, format!("key {keyval} was made for another kind of object")),
        None => fail(Class::Keyval, format!("there is no attribute key {keyval} (freed already?)")),
    }
}

/// Set an attribute of an object, which must exist; the delete callback of an old value is called first.
///
/// # Errors
/// `Class::Keyval`; what the delete callback returned, and the old value stays then.
pub fn set(kind: Kind, object: u32, keyval: i32, value: Value) -> Result<()> {
    let keyval = find(kind, keyval)?;
    let old = STATE.with(|state| state.slot(kind, object, keyval.id).map(|slot| slot.attribute.clone()));
    if let Some(old) = old {
        (old.keyval.delete)(object, keyval.id, old.value)?;
    }
    STATE.with(|state| state.put(kind, object, Attribute { keyval, value }));
    Ok(())
}

/// Set a predefined attribute of a window (`consts::WIN_*`) for the library itself; it is not copied.
pub fn set_predefined(kind: Kind, object: u32, keyval: i32, value: Value) {
    let keyval = Rc::new(Keyval { kind, id: keyval, copy: null_copy(), delete: null_delete() });
    STATE.with(|state| state.put(kind, object, Attribute { keyval, value }));
}

/// The value of an attribute, `None` if it is not set. HOST and IO are ranks in the core's numbers.
///
/// # Errors
/// `Class::Keyval` for a key that does not exist.
pub fn get(kind: Kind, object: u32, keyval: i32) -> Result<Option<Value>> {
    if kind == Kind::Comm && is_predefined(keyval) {
        return Ok(predefined(keyval).map(Value::Integer));
    }
    if !is_predefined(keyval) {
        find(kind, keyval)?;
    }
    Ok(STATE.with(|state| state.slot(kind, object, keyval).map(|slot| slot.attribute.value)))
}

/// As [`get`], as C sees it: for a value that was not set from C, a pointer that is valid as long as the attribute.
///
/// # Errors
/// As [`get`].
pub fn get_pointer(kind: Kind, object: u32, keyval: i32) -> Result<Option<usize>> {
    if !is_predefined(keyval) {
        find(kind, keyval)?;
    }
    Ok(STATE.with(|state| {
        let slot = state.slot(kind, object, keyval)?;
        Some(slot.attribute.value.as_pointer(&mut slot.cell))
    }))
}

/// Value of a predefined attribute of communicators, in the core's numbers; `None` if this job does not set it.
pub fn predefined(keyval: i32) -> Option<i32> {
    match keyval {
        consts::TAG_UB => Some(TAG_UB_VALUE),
        // Every rank can do I/O, and none is special.
        consts::IO => Some(consts::ANY_SOURCE),
        consts::HOST => Some(consts::PROC_NULL),
        // The nodes' clocks are not compared, and `--wtime rank` gives each rank its own.
        consts::WTIME_IS_GLOBAL => Some(0),
        consts::APPNUM => Some(process::appnum()).filter(|&appnum| appnum >= 0),
        consts::UNIVERSE_SIZE => Some(process::universe_size()).filter(|&size| size > 0),
        consts::LASTUSEDCODE => Some(codes::last_used_code()),
        _ => None,
    }
}

/// Delete one attribute; nothing happens if it is not set (MPI_Comm_delete_attr).
///
/// # Errors
/// `Class::Keyval`; what the delete callback returned, and the attribute stays then.
pub fn delete(kind: Kind, object: u32, keyval: i32) -> Result<()> {
    find(kind, keyval)?;
    let attribute = STATE.with(|state| state.slot(kind, object, keyval).map(|slot| slot.attribute.clone()));
    match attribute {
        Some(attribute) => remove(kind, object, attribute),
        None => Ok(()),
    }
}

fn remove(kind: Kind, object: u32, attribute: Attribute) -> Result<()> {
    (attribute.keyval.delete)(object, attribute.keyval.id, attribute.value)?;
    let removed = STATE.with(|state| state.take(kind, object, attribute.keyval.id));
    drop(removed);
    Ok(())
}

/// Copy the attributes of one object to another as their copy callbacks say.
///
/// # Errors
/// What a copy callback returned; attributes copied before stay on `to`.
pub fn copy_all(kind: Kind, from: u32, to: u32) -> Result<()> {
    let attributes: Vec<Attribute> = STATE.with(|state| match state.of.get(&(kind, from)) {
        Some(slots) => slots.iter().map(|slot| slot.attribute.clone()).collect(),
        None => Vec::new(),
    });
    for Attribute { keyval, value } in attributes {
        if let Some(value) = (keyval.copy)(from, keyval.id, value)? {
            STATE.with(|state| state.put(kind, to, Attribute { keyval, value }));
        }
    }
    Ok(())
}

/// Delete all attributes of an object that is about to go, the last one set first.
///
/// # Errors
/// What a delete callback returned; that attribute and those set before it stay then.
pub fn delete_all(kind: Kind, object: u32) -> Result<()> {
    while let Some(attribute) = STATE.with(|state| state.last(kind, object)) {
        remove(kind, object, attribute)?;
    }
    drop_all(kind, object);
    Ok(())
}

/// Forget all attributes of an object without calling anybody.
pub fn drop_all(kind: Kind, object: u32) {
    let dropped = STATE.with(|state| state.of.remove(&(kind, object)));
    drop(dropped);
}

/// The first thing that MPI_Finalize does: delete MPI_COMM_SELF's attributes (MPI 4.1 section 11.2.4), and then MPI_COMM_WORLD's, as Open MPI
/// and MPICH do.
///
/// # Errors
/// As [`delete_all`].
pub fn delete_last_attributes() -> Result<()> {
    delete_all(Kind::Comm, Comm::SELF.raw())?;
    delete_all(Kind::Comm, Comm::WORLD.raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::Error;
    use std::cell::RefCell;

    // One test: the state belongs to the process, and tests run on several threads.
    #[test]
    fn attributes_live_copy_and_die() {
        let log = Rc::new(RefCell::new(Vec::new()));
        let deleted = log.clone();
        let delete_logged: DeleteFn = Rc::new(move |_, _, value| {
            if value == Value::Pointer(13) {
                return Err(Error::user(99));
            }
            deleted.borrow_mut().push(value.as_integer());
            Ok(())
        });
        let plus_one: CopyFn = Rc::new(|_, _, value| Ok(Some(Value::Integer(value.as_integer() + 1))));
        let (a, b) = (5000, 5001);
        let copied = create_keyval(Kind::Type, plus_one, delete_logged.clone());
        let kept = create_keyval(Kind::Type, null_copy(), delete_logged);

        assert_eq!(get(Kind::Type, a, copied).unwrap(), None);
        set(Kind::Type, a, copied, Value::Integer(-1)).unwrap();
        set(Kind::Type, a, kept, Value::Address(1 << 40 | 7)).unwrap();
        let pointer = get_pointer(Kind::Type, a, copied).unwrap().unwrap();
        // SAFETY: the attribute is set, so its cell lives.
        assert_eq!(unsafe { *(pointer as *const i32) }, -1);
        assert_eq!(get(Kind::Type, a, kept).unwrap().unwrap().as_integer(), 7);
        assert_eq!(set(Kind::Comm, a, kept, Value::Integer(1)).unwrap_err().class, Class::Keyval);
        assert_eq!(set(Kind::Comm, a, consts::TAG_UB, Value::Integer(1)).unwrap_err().class, Class::Keyval);

        copy_all(Kind::Type, a, b).unwrap();
        assert_eq!(get(Kind::Type, b, copied).unwrap(), Some(Value::Integer(0)));
        assert_eq!(get(Kind::Type, b, kept).unwrap(), None);

        free_keyval(Kind::Type, copied).unwrap();
        free_keyval(Kind::Type, copied).unwrap();
        assert_eq!(get(Kind::Type, b, copied).unwrap(), Some(Value::Integer(0)));
        drop_all(Kind::Type, b);
        delete_all(Kind::Type, a).unwrap();
        assert_eq!(free_keyval(Kind::Type, copied).unwrap_err().class, Class::Keyval);
        assert_eq!(*log.borrow(), [7, -1]);

        set(Kind::Type, a, kept, Value::Pointer(13)).unwrap();
        assert_eq!(delete(Kind::Type, a, kept).unwrap_err().code, 99);
        assert_eq!(get(Kind::Type, a, kept).unwrap(), Some(Value::Pointer(13)));
    }

    #[test]
    fn conversions_between_languages() {
        let mut cell = 0;
        assert_eq!(Value::Pointer(0x1234).as_pointer(&mut cell), 0x1234);
        assert_eq!(Value::Integer(-2).as_address(), -2);
        assert_eq!(Value::Address(0x1_0000_0003).as_integer(), 3);
        let pointer = Value::Address(-5).as_pointer(&mut cell);
        assert_eq!(pointer, std::ptr::from_mut(&mut cell) as usize);
        assert_eq!(cell, -5);
    }
}
