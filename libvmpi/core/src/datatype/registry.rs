//! Datatype handles: the predefined ones, those the program made, commit state and names.

use super::basic::BASICS;
use super::recipe::{Item, Recipe};
use super::{Marker, Rules, Type};
use crate::check::made::{self, What};
use crate::consts::dt;
use crate::errors::{Class, Error, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::{Datatype, FIRST_DYNAMIC, Handle};
use crate::table::Table;
use std::rc::Rc;

struct Entry {
    ty: Rc<Type>,
    committed: bool,
    name: Option<String>,
    /// An f90 type: predefined in all but its handle (MPI 4.1 section 19.1.9).
    permanent: bool,
}

struct Registry {
    /// By handle, from `dt` 0x200; filled at first use.
    predefined: Vec<Option<Entry>>,
    made: Table<Datatype, Entry>,
}

static REGISTRY: EntryGuarded<Registry> = EntryGuarded::new(Registry { predefined: Vec::new(), made: Table::new() });

impl Registry {
    #[inline(always)]
    fn entry(&mut self, handle: Datatype) -> Result<&mut Entry> {
        let found = if handle.raw() >= FIRST_DYNAMIC {
            self.of_program(handle)
        } else {
            if self.predefined.is_empty() {
                self.fill();
            }
            let index = handle.raw().wrapping_sub(Datatype::NULL.raw()) as usize;
            self.predefined.get_mut(index).and_then(Option::as_mut)
        };
        found.ok_or_else(|| no_such(handle))
    }

    /// Not in line: most messages are of predefined types.
    #[inline(never)]
    fn of_program(&mut self, handle: Datatype) -> Option<&mut Entry> {
        self.made.get_mut(handle)
    }

    #[cold]
    fn fill(&mut self) {
        self.predefined.resize_with(0x100, || None);
        let mut put = |handle: Datatype, ty: Type| {
            let entry = Entry { ty: Rc::new(ty), committed: true, name: None, permanent: true };
            self.predefined[(handle.raw() - Datatype::NULL.raw()) as usize] = Some(entry);
        };
        for basic in BASICS {
            put(basic.handle, Type::basic(basic));
        }
        put(dt::LB, Type::marker(Marker::Lb));
        put(dt::UB, Type::marker(Marker::Ub));
    }

    fn insert(&mut self, ty: Rc<Type>, committed: bool) -> Datatype {
        self.made.insert(Entry { ty, committed, name: None, permanent: false })
    }

    /// The handle of an f90 recipe made before.
    fn known_f90(&self, recipe: &Recipe) -> Option<Datatype> {
        let key = (recipe.combiner(), recipe.items());
        let same = |entry: &Entry| (entry.ty.recipe().combiner(), entry.ty.recipe().items()) == key;
        self.made.iter().find(|(_, entry)| entry.permanent && same(entry)).map(|(handle, _)| handle)
    }
}

#[cold]
fn no_such(handle: Datatype) -> Error {
    if handle.is_null() {
        return Error::new(Class::Type, "the datatype is MPI_DATATYPE_NULL");
    }
    Error::new(Class::Type, format!("no datatype has the handle {:#x}", handle.raw()))
}

/// It may not communicate yet.
#[cold]
fn not_committed(entry: &Entry) -> Error {
    let name = entry.name.as_deref().unwrap_or("it");
    Error::new(Class::Type, format!("the datatype is not committed (call MPI_Type_commit on {name} first)"))
}

/// The datatype behind a handle; `Class::Type` if there is none.
pub fn get(handle: Datatype) -> Result<Rc<Type>> {
    REGISTRY.with(|r| r.entry(handle).map(|e| Rc::clone(&e.ty)))
}

/// As `get`, and it must be committed.
#[inline(always)]
pub fn get_committed(handle: Datatype) -> Result<Rc<Type>> {
    REGISTRY.with(|r| match r.entry(handle)? {
        entry if entry.committed => Ok(Rc::clone(&entry.ty)),
        entry => Err(not_committed(entry)),
    })
}

/// Make a type and a handle for it, not committed. `large`: the constructor was a `_c` one.
///
/// # Errors
/// `Class::Count` and `Class::Arg` for arguments out of range.
pub fn create(recipe: Recipe, rules: Rules, large: bool) -> Result<Datatype> {
    let f90 = matches!(recipe, Recipe::F90Real { .. } | Recipe::F90Complex { .. } | Recipe::F90Integer { .. });
    if f90 && let Some(handle) = REGISTRY.with(|r| r.known_f90(&recipe)) {
        return Ok(handle);
    }
    let ty = Rc::new(Type { large, ..Type::new(recipe, rules)? });
    let handle = REGISTRY.with(|r| r.made.insert(Entry { ty, committed: f90, name: None, permanent: f90 }));
    if f90 {
        // As good as predefined.
        made::freed(What::Datatype, handle.raw());
    }
    Ok(handle)
}

/// A new, committed handle for a type at hand (internal uses such as file views).
pub fn insert(ty: Rc<Type>) -> Datatype {
    REGISTRY.with(|r| r.insert(ty, true))
}

/// A new handle for a copy, committed if the original is (MPI_Type_dup). The caller copies the attributes: it calls
/// the copy callbacks after this and frees the new handle if one of them fails.
pub fn dup(handle: Datatype) -> Result<Datatype> {
    let (child, committed) = REGISTRY.with(|r| r.entry(handle).map(|e| (Rc::clone(&e.ty), e.committed)))?;
    let ty = Rc::new(Type::new(Recipe::Dup(child), Rules::Standard)?);
    Ok(REGISTRY.with(|r| r.insert(ty, committed)))
}

/// Allow communication with it (MPI_Type_commit).
pub fn commit(handle: Datatype) -> Result<()> {
    REGISTRY.with(|r| r.entry(handle).map(|e| e.committed = true))
}

/// May the program free this handle? `Class::Type` if it is predefined.
pub fn check_free(handle: Datatype) -> Result<()> {
    REGISTRY.with(|r| match r.entry(handle)? {
        entry if entry.permanent => fail(Class::Type, "a predefined datatype cannot be freed"),
        _ => Ok(()),
    })
}

/// Forget the handle; operations under way keep the type (MPI_Type_free). The caller deletes the attributes first: it
/// calls `check_free`, then the delete callbacks, then this.
pub fn free(handle: Datatype) -> Result<()> {
    check_free(handle)?;
    let entry = REGISTRY.with(|r| r.made.remove(handle));
    drop(entry);
    Ok(())
}

/// The name of the type; empty if it has none (MPI_Type_get_name).
pub fn name(handle: Datatype) -> Result<String> {
    REGISTRY.with(|r| {
        let entry = r.entry(handle)?;
        if let Some(name) = &entry.name {
            return Ok(name.clone());
        }
        Ok(match handle {
            dt::LB => "MPI_LB",
            dt::UB => "MPI_UB",
            _ => BASICS.iter().find(|basic| basic.handle == handle).map_or("", |basic| basic.name),
        }
        .to_owned())
    })
}

/// Name the type (MPI_Type_set_name).
pub fn set_name(handle: Datatype, name: &str) -> Result<()> {
    REGISTRY.with(|r| r.entry(handle).map(|e| e.name = Some(name.to_owned())))
}

/// The arguments that made the type: numbers, and types as handles, new ones for derived types
/// (MPI_Type_get_contents).
///
/// # Errors
/// `Class::Type` for a predefined type, which has no contents.
pub fn contents(handle: Datatype) -> Result<(Vec<Item>, Vec<Datatype>)> {
    let ty = get(handle)?;
    if matches!(ty.recipe(), Recipe::Named(_)) {
        return fail(Class::Type, "a predefined datatype has no contents");
    }
    Ok((ty.recipe().items(), ty.recipe().children().iter().map(handle_of).collect()))
}

/// A handle for the program: a predefined type's own, a new, committed one for a derived type.
pub fn handle_of(ty: &Rc<Type>) -> Datatype {
    match ty.recipe() {
        Recipe::Named(handle) => *handle,
        recipe => REGISTRY.with(|r| r.known_f90(recipe).unwrap_or_else(|| r.insert(Rc::clone(ty), true))),
    }
}
