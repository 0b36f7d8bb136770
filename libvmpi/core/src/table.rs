//! Handle tables: dynamic handle index to object.

use crate::check::made;
use crate::handle::{FIRST_DYNAMIC, Handle};
use std::marker::PhantomData;

/// Objects of one kind that the program created, by handle; slots are reused.
pub struct Table<H, T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    kind: PhantomData<H>,
}

impl<H: Handle, T> Table<H, T> {
    pub const fn new() -> Self {
        Table { slots: Vec::new(), free: Vec::new(), kind: PhantomData }
    }

    /// Store `object` and name it.
    #[inline]
    pub fn insert(&mut self, object: T) -> H {
        let handle = self.place(object);
        if let Some(what) = H::MADE {
            made::made(what, handle.raw());
        }
        handle
    }

    #[inline]
    fn place(&mut self, object: T) -> H {
        match self.free.pop() {
            Some(index) => {
                // What is free holds nothing that would have to be dropped.
                std::mem::forget(self.slots[index as usize].replace(object));
                H::from_raw(FIRST_DYNAMIC + index)
            }
            None => self.push(object),
        }
    }

    /// Not in line: few objects are more than ever before.
    #[inline(never)]
    fn push(&mut self, object: T) -> H {
        self.slots.push(Some(object));
        H::from_raw(FIRST_DYNAMIC + (self.slots.len() - 1) as u32)
    }

    #[inline]
    pub fn get(&self, handle: H) -> Option<&T> {
        self.slots.get(handle.dynamic_index()?)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, handle: H) -> Option<&mut T> {
        self.slots.get_mut(handle.dynamic_index()?)?.as_mut()
    }

    /// Forget the handle and return its object.
    #[inline]
    pub fn remove(&mut self, handle: H) -> Option<T> {
        let index = handle.dynamic_index()?;
        let object = self.slots.get_mut(index)?.take();
        if object.is_some() {
            self.free.push(index as u32);
            if let Some(what) = H::MADE {
                made::freed(what, handle.raw());
            }
        }
        object
    }

    /// Number of live objects.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All live objects with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (H, &T)> {
        self.slots.iter().enumerate().filter_map(|(i, s)| Some((H::from_raw(FIRST_DYNAMIC + i as u32), s.as_ref()?)))
    }
}

impl<H: Handle, T> Default for Table<H, T> {
    fn default() -> Self {
        Table::new()
    }
}
