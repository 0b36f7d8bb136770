//! Data representations: native, internal, external32, and those that the program registers (MPI 4.1 section 14.5).

#![allow(unsafe_code)]

use crate::consts::dt;
use crate::datatype::{self, Recipe, Rules, Type, external};
use crate::errors::{Class, Error, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::Datatype;
use std::ffi::c_void;
use std::rc::Rc;

/// `convert(userbuf, datatype, count, filebuf, position)`.
pub type Convert = Box<dyn Fn(*mut c_void, Datatype, u64, *mut c_void, i64) -> Result<()>>;
/// The extent of a predefined datatype in the file.
pub type Extent = Box<dyn Fn(Datatype) -> Result<i64>>;

/// A representation that the program has registered. Without a function, the bytes are those of memory.
pub struct Registered {
    pub name: String,
    pub read: Option<Convert>,
    pub write: Option<Convert>,
    pub extent: Extent,
}

static REGISTERED: EntryGuarded<Vec<Rc<Registered>>> = EntryGuarded::new(Vec::new());

/// Longest name of a representation, with its NUL (MPI_MAX_DATAREP_STRING in both ABIs).
pub const MAX_NAME: usize = 128;

/// MPI_Register_datarep.
///
/// # Errors
/// `Class::DupDatarep` for a name in use, `Class::Arg` for one that is empty or too long.
pub fn register(new: Registered) -> Result<()> {
    if new.name.is_empty() || new.name.len() >= MAX_NAME {
        return fail(Class::Arg, format!("the name of a data representation must have 1 to {} bytes", MAX_NAME - 1));
    }
    let taken = ["native", "internal", "external32"].contains(&new.name.as_str())
        || REGISTERED.with(|all| all.iter().any(|known| known.name == new.name));
    if taken {
        return fail(Class::DupDatarep, format!("there is a data representation {:?} already", new.name));
    }
    REGISTERED.with(|all| all.push(Rc::new(new)));
    Ok(())
}

/// How data lie in a file.
#[derive(Clone)]
pub enum Representation {
    Native,
    /// Defined by the library: here the same bytes as native.
    Internal,
    External32(Rules),
    Registered(Rc<Registered>),
}

impl Representation {
    /// # Errors
    /// `Class::UnsupportedDatarep`.
    pub fn find(name: &str, rules: Rules) -> Result<Representation> {
        match name {
            "native" | "NATIVE" => Ok(Representation::Native),
            "internal" | "INTERNAL" => Ok(Representation::Internal),
            "external32" | "EXTERNAL32" => Ok(Representation::External32(rules)),
            _ => match REGISTERED.with(|all| all.iter().find(|known| known.name == name).cloned()) {
                Some(known) => Ok(Representation::Registered(known)),
                None => fail(
                    Class::UnsupportedDatarep,
                    format!("{name:?} is not native, internal, external32 or a registered data representation"),
                ),
            },
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Representation::Native => "native",
            Representation::Internal => "internal",
            Representation::External32(_) => "external32",
            Representation::Registered(known) => &known.name,
        }
    }

    /// The bytes of memory are those of the file.
    pub fn is_native(&self) -> bool {
        matches!(self, Representation::Native | Representation::Internal)
    }

    /// Bytes of one element of `ty` in the file.
    ///
    /// # Errors
    /// What the program's extent function returned.
    pub fn size(&self, ty: &Type) -> Result<u64> {
        match self {
            Representation::Native | Representation::Internal => Ok(ty.size()),
            Representation::External32(rules) => Ok(external::size(ty, 1, *rules)),
            Representation::Registered(known) => registered_size(known, ty),
        }
    }

    /// The type whose extents and displacements are those that `ty` has in the file: what a filetype means there. Byte
    /// displacements that the program gave itself stay (such types are not portable, MPI 4.1 section 2.4).
    ///
    /// # Errors
    /// As [`Representation::size`].
    pub fn in_file(&self, ty: &Rc<Type>) -> Result<Rc<Type>> {
        if self.is_native() {
            return Ok(ty.clone());
        }
        self.scaled(ty)
    }

    fn scaled(&self, ty: &Rc<Type>) -> Result<Rc<Type>> {
        let children = ty.recipe().children();
        if children.is_empty() {
            let size = match self {
                Representation::Registered(known) => extent_of(known, ty)?,
                _ => self.size(ty)?,
            };
            if size == ty.size() && size as i64 == ty.extent() {
                return Ok(ty.clone());
            }
            let recipe = Recipe::Contiguous { count: size as i64, child: datatype::get(dt::BYTE)? };
            return Ok(Rc::new(Type::new(recipe, Rules::Standard)?));
        }
        let scaled: Vec<Rc<Type>> = children.iter().map(|child| self.scaled(child)).collect::<Result<_>>()?;
        if scaled.iter().zip(children).all(|(new, old)| Rc::ptr_eq(new, old)) {
            return Ok(ty.clone());
        }
        let mut recipe = ty.recipe().clone();
        recipe.replace_children(scaled);
        Ok(Rc::new(Type::new(recipe, Rules::Standard)?))
    }

    /// The file's bytes of `count` elements at `buf`.
    ///
    /// # Errors
    /// `Class::Conversion`, or what the program's function returned.
    ///
    /// # Safety
    /// `buf` must hold `count` elements of `ty`, whose handle is `handle`.
    pub unsafe fn encode(&self, ty: &Type, handle: Datatype, count: u64, buf: *mut c_void) -> Result<Vec<u8>> {
        let bytes = self.size(ty)?.saturating_mul(count);
        match self {
            Representation::External32(rules) => {
                let mut out = Vec::with_capacity(bytes as usize);
                // SAFETY: the caller's promise.
                unsafe { external::pack_external(ty, count, buf.cast(), *rules, &mut out)? };
                Ok(out)
            }
            Representation::Registered(known) if known.write.is_some() => {
                let mut out = vec![0; bytes as usize];
                if let Some(write) = known.write.as_ref().filter(|_| count > 0) {
                    write(buf, handle, count, out.as_mut_ptr().cast(), 0)?;
                }
                Ok(out)
            }
            _ => {
                let mut out = vec![0; (ty.size() * count) as usize];
                // SAFETY: the caller's promise.
                unsafe { datatype::pack(ty, count, buf.cast(), 0, &mut out) };
                Ok(out)
            }
        }
    }

    /// Put the file's bytes `data` into `count` elements at `buf`; returns the bytes of memory that this filled. A last
    /// element of which the file has only a part is left out.
    ///
    /// # Errors
    /// As [`Representation::encode`].
    ///
    /// # Safety
    /// `buf` must have room for `count` elements of `ty`, whose handle is `handle`.
    pub unsafe fn decode(
        &self,
        ty: &Type,
        handle: Datatype,
        count: u64,
        buf: *mut c_void,
        data: &mut [u8],
    ) -> Result<u64> {
        let size = self.size(ty)?;
        let whole = (data.len() as u64).checked_div(size).unwrap_or(0).min(count);
        match self {
            Representation::External32(rules) => {
                // SAFETY: the caller's promise; not more than `count` elements.
                unsafe { external::unpack_external(ty, whole, buf.cast(), *rules, data)? };
            }
            Representation::Registered(known) if known.read.is_some() => {
                if let Some(read) = known.read.as_ref().filter(|_| whole > 0) {
                    read(buf, handle, whole, data.as_mut_ptr().cast(), 0)?;
                }
            }
            _ => {
                // SAFETY: as above.
                return Ok(unsafe { datatype::unpack(ty, count, buf.cast(), 0, data) } as u64);
            }
        }
        Ok(whole * ty.size())
    }
}

/// What the program says a predefined type takes in the file.
fn extent_of(known: &Registered, ty: &Type) -> Result<u64> {
    let handle = ty.named().ok_or_else(|| Error::new(Class::Intern, "a type without children has a name"))?;
    let extent = (known.extent)(handle)?;
    u64::try_from(extent).map_err(|_| {
        Error::new(Class::Conversion, format!("the data representation {:?} gives an extent of {extent}", known.name))
    })
}

fn registered_size(known: &Registered, ty: &Type) -> Result<u64> {
    match ty.recipe() {
        Recipe::Struct { blocklengths, children, .. } => {
            blocklengths.iter().zip(children).try_fold(0u64, |sum, (blocks, child)| {
                Ok(sum.saturating_add(registered_size(known, child)?.saturating_mul(*blocks as u64)))
            })
        }
        recipe => match recipe.children() {
            [] => extent_of(known, ty),
            [child, ..] => match ty.size().checked_div(child.size()) {
                Some(repetitions) => Ok(registered_size(known, child)?.saturating_mul(repetitions)),
                None => Ok(0),
            },
        },
    }
}
