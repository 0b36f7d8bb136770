//! Choice buffers of mpi_f08: a compiler passes TYPE(*), DIMENSION(..) as the address of a descriptor of its own: gfortran (from version 9 on) and Intel's, whose
//! programs call procedures of the same names.
//!
//! A contiguous buffer is used where it lies. A section that is not (`a(1:10:2)`) is copied together before the call, or each time that a persistent
//! operation is started, and what the call, or the operation, changed is copied back at its end. A partitioned operation cannot have that, nor a
//! one-sided one over several nodes, and says so.

use super::args::{self, Arg};
use super::lengths;
use crate::abi::Abi;
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use vmpi_core::errors::{Class, fail};
use vmpi_core::handle::Request;
use vmpi_core::request::copied::{self, Copied};
use vmpi_core::{consts, lock};

/// One dimension; the stride counts spans.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
struct Dimension {
    stride: isize,
    lower: isize,
    upper: isize,
}

/// What libgfortran calls an array descriptor; the dimensions follow it.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
struct Descriptor {
    /// Address of the first element.
    base: *mut u8,
    offset: usize,
    element_bytes: usize,
    version: i32,
    rank: i8,
    kind: i8,
    attribute: i16,
    /// Bytes that a stride of one goes on.
    span: isize,
}

const _: () = assert!(size_of::<Descriptor>() == 40 && size_of::<Dimension>() == 24);

/// What ifx and ifort pass (Intel's "Handle Fortran Array Descriptors"); the dimensions follow.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
struct IntelDescriptor {
    base: *mut u8,
    element_bytes: usize,
    reserved: usize,
    /// Of an array that is there, the lowest bit is set.
    flags: usize,
    rank: usize,
    reserved_too: usize,
}

/// One dimension of that; the stride counts bytes.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
struct IntelDimension {
    extent: isize,
    stride: isize,
    lower: isize,
}

const _: () = assert!(size_of::<IntelDescriptor>() == 48 && size_of::<IntelDimension>() == 24);

impl Descriptor {
    /// Intel's flags lie where gfortran has its version, which is 0 (1 from `bind(C)`), and, in the upper half, rank and type, which is never 0.
    #[inline]
    fn is_intels(&self) -> bool {
        self.version & 1 != 0 && (self.rank, self.kind, self.attribute) == (0, 0, 0)
    }
}

/// The most dimensions that an array may have.
const MOST_DIMENSIONS: i8 = 15;

/// An array section: where its elements lie.
#[derive(Clone, Debug)]
struct Section {
    base: *mut u8,
    element_bytes: usize,
    /// Elements, and bytes from one to the next, of each dimension.
    dimensions: Vec<(usize, isize)>,
}

impl Section {
    /// Call `f` with each element's address, in array element order.
    fn each(&self, mut f: impl FnMut(*mut u8)) {
        let total: usize = self.dimensions.iter().map(|dimension| dimension.0).product();
        for index in 0..total {
            let (mut rest, mut offset) = (index, 0);
            for &(extent, bytes) in &self.dimensions {
                offset += (rest % extent) as isize * bytes;
                rest /= extent;
            }
            f(self.base.wrapping_offset(offset));
        }
    }
}

/// The section, if it is not contiguous.
///
/// # Safety
/// `descriptor` must be a live descriptor of gfortran or of Intel's compilers.
unsafe fn scattered(descriptor: *const Descriptor) -> Option<Section> {
    // SAFETY: promised by the caller.
    if unsafe { (*descriptor).is_intels() } {
        // SAFETY: as above.
        return unsafe { scattered_of_intel(descriptor.cast()) };
    }
    // SAFETY: promised by the caller.
    let Descriptor { base, element_bytes, rank, span, .. } = unsafe { *descriptor };
    let rank = rank.clamp(0, MOST_DIMENSIONS) as usize;
    // SAFETY: the dimensions follow the descriptor.
    let given = unsafe { std::slice::from_raw_parts(descriptor.add(1).cast::<Dimension>(), rank) };
    let unit = if span == 0 { element_bytes as isize } else { span };
    let extents = given.iter().map(|dimension| (dimension.upper - dimension.lower + 1, dimension.stride * unit));
    section(base, element_bytes, extents)
}

/// The same of Intel's compilers.
///
/// # Safety
/// `descriptor` must be a live descriptor of theirs.
#[cold]
unsafe fn scattered_of_intel(descriptor: *const IntelDescriptor) -> Option<Section> {
    // SAFETY: promised by the caller.
    let IntelDescriptor { base, element_bytes, rank, .. } = unsafe { *descriptor };
    let rank = rank.min(MOST_DIMENSIONS as usize);
    // SAFETY: the dimensions follow the descriptor.
    let given = unsafe { std::slice::from_raw_parts(descriptor.add(1).cast::<IntelDimension>(), rank) };
    section(base, element_bytes, given.iter().map(|dimension| (dimension.extent, dimension.stride)))
}

/// The section of elements with these extents and distances in bytes, if it is not contiguous.
#[inline]
fn section(base: *mut u8, element_bytes: usize, extents: impl Iterator<Item = (isize, isize)>) -> Option<Section> {
    let mut dimensions = Vec::new();
    let mut next = element_bytes as isize;
    let mut contiguous = true;
    for (extent, bytes) in extents {
        contiguous &= extent == 1 || bytes == next;
        // Negative: the last dimension of an assumed-size array, whose end nobody knows. Zero: nothing to copy.
        if extent <= 0 {
            return None;
        }
        next *= extent;
        dimensions.push((extent as usize, bytes));
    }
    if contiguous { None } else { Some(Section { base, element_bytes, dimensions }) }
}

/// A section's elements, copied together.
struct Together {
    section: Section,
    /// What the operation uses.
    bytes: Vec<u128>,
    /// What the section holds.
    there: Vec<u128>,
}

impl Together {
    /// # Safety
    /// The section's elements must be readable as long as the copy is taken, and those that change writable as long as it is put back.
    #[cold]
    unsafe fn new(section: Section) -> Together {
        let elements: usize = section.dimensions.iter().map(|dimension| dimension.0).product();
        let bytes = vec![0; (elements * section.element_bytes).div_ceil(size_of::<u128>())];
        let mut together = Together { section, there: bytes.clone(), bytes };
        together.take();
        together
    }
}

impl Copied for Together {
    fn take(&mut self) {
        let mut to: *mut u8 = self.bytes.as_mut_ptr().cast();
        self.section.each(|element| {
            // SAFETY: promised to `new`; `bytes` has room for all elements.
            unsafe {
                std::ptr::copy_nonoverlapping(element, to, self.section.element_bytes);
                to = to.add(self.section.element_bytes);
            }
        });
        self.there.copy_from_slice(&self.bytes);
    }

    /// A section that is only sent may lie in memory that is only read; and the program may use what of the section the operation does not.
    fn put_back(&mut self) {
        if self.bytes == self.there {
            return;
        }
        let (mut from, mut old): (*const u8, *const u8) = (self.bytes.as_ptr().cast(), self.there.as_ptr().cast());
        let element_bytes = self.section.element_bytes;
        self.section.each(|element| {
            // SAFETY: promised to `new`; both hold as many elements.
            unsafe {
                if std::slice::from_raw_parts(from, element_bytes) != std::slice::from_raw_parts(old, element_bytes) {
                    std::ptr::copy_nonoverlapping(from, element, element_bytes);
                }
                (from, old) = (from.add(element_bytes), old.add(element_bytes));
            }
        });
        self.there.copy_from_slice(&self.bytes);
    }
}

/// A buffer, and its copy if it had to be copied together.
pub struct Held {
    base: *mut c_void,
    copy: Option<Box<Together>>,
}

/// A choice buffer.
pub enum Buf {}
impl<A: Abi> Arg<A> for Buf {
    type Held = Held;
    type Passed = *mut c_void;

    #[inline]
    unsafe fn take(arg: *mut c_void, _len: usize) -> Held {
        let descriptor: *const Descriptor = arg.cast();
        // SAFETY: the compiler passes a descriptor here; each has the address first.
        let (base, section) = unsafe { ((*descriptor).base.cast(), scattered(descriptor)) };
        // SAFETY: the elements are where the descriptor says, and stay there until the operation has ended, or the persistent request is freed.
        Held { base, copy: section.map(|section| Box::new(unsafe { Together::new(section) })) }
    }

    #[inline]
    fn pass(held: &mut Held) -> *mut c_void {
        held.copy.as_mut().map_or(held.base, |copy| copy.bytes.as_mut_ptr().cast())
    }

    fn pass_to_tool(held: &mut Held) -> *mut c_void {
        let mut buffer = <Buf as Arg<A>>::pass(held);
        <args::Buf as Arg<A>>::pass_to_tool(&mut buffer)
    }

    #[inline]
    unsafe fn give(held: Held, _code: c_int) {
        if let Some(mut copy) = held.copy {
            copy.put_back();
        }
    }

    #[inline]
    fn is_copy(held: &Held) -> bool {
        held.copy.is_some()
    }

    #[cold]
    unsafe fn give_after(held: Held, request: Request) {
        let Some(copy) = held.copy else { return };
        let _entered = lock::enter();
        copied::hold(request, copy);
    }
}

/// MPI_Get_address's location: MPI_BOTTOM's address is 0, not that of the variable; a section's is its first element's.
pub enum Location {}
impl<A: Abi> Arg<A> for Location {
    type Held = *mut c_void;
    type Passed = *mut c_void;
    unsafe fn take(arg: *mut c_void, _len: usize) -> *mut c_void {
        // SAFETY: as in `Buf`.
        let base: *mut c_void = unsafe { (*arg.cast::<Descriptor>()).base }.cast();
        if A::buf_in(base) as usize == consts::BOTTOM { std::ptr::null_mut() } else { base }
    }
    fn pass(held: &mut *mut c_void) -> *mut c_void {
        *held
    }
}

/// As [`lengths::types_of_peers`] with a descriptor.
///
/// # Safety
/// As there, and `buf` must be a live descriptor.
pub unsafe fn types_of_peers<A: Abi>(comm: *mut c_void, buf: *mut c_void) -> usize {
    // SAFETY: promised by the caller.
    unsafe { lengths::types_of_peers::<A>(comm, (*buf.cast::<Descriptor>()).base.cast()) }
}

/// Is a buffer of this procedure used when the call has returned, until something else than its request says that it is not: one partition of it after the
/// other; until the next synchronisation, where windows lie on several nodes?
#[cold]
pub fn outlives_its_call(procedure: &str) -> bool {
    const ONE_SIDED: [&str; 6] =
        ["MPI_ACCUMULATE", "MPI_COMPARE_AND_SWAP", "MPI_FETCH_AND_OP", "MPI_GET", "MPI_GET_ACCUMULATE", "MPI_PUT"];
    ["MPI_PRECV_INIT", "MPI_PSEND_INIT"].contains(&procedure)
        || (ONE_SIDED.contains(&procedure) && vmpi_core::nodes::count() > 1)
}

/// Such a procedure was given a section that would have to be copied.
#[cold]
pub fn refuse_copy<A: Abi>(function: &'static str) -> c_int {
    entry::run::<A>(function, Target::Process, || {
        fail(
            Class::Buffer,
            "an array section that is not contiguous was passed to a partitioned operation, or a one-sided one over several nodes; \
             vmpi does not offer this: copy the section, or describe it by a datatype",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Array<const RANK: usize> {
        head: Descriptor,
        dimensions: [Dimension; RANK],
    }

    fn array<const RANK: usize>(base: *mut i32, dims: [(isize, isize); RANK]) -> Array<RANK> {
        let head = Descriptor {
            base: base.cast(),
            offset: 0,
            element_bytes: 4,
            version: 0,
            rank: RANK as i8,
            kind: 1,
            attribute: 0,
            span: 4,
        };
        Array { head, dimensions: dims.map(|(stride, upper)| Dimension { stride, lower: 1, upper }) }
    }

    fn scattered_section<const RANK: usize>(array: &Array<RANK>) -> Option<Section> {
        // SAFETY: an array is a descriptor with its dimensions behind it.
        unsafe { scattered((&raw const *array).cast()) }
    }

    #[test]
    fn what_is_contiguous() {
        let mut a = [0; 24];
        let base = a.as_mut_ptr();
        assert!(scattered_section(&array(base, [])).is_none(), "a scalar");
        assert!(scattered_section(&array(base, [(1, 24)])).is_none());
        assert!(scattered_section(&array(base, [(1, 4), (4, 6)])).is_none());
        assert!(scattered_section(&array(base, [(1, 4), (4, -1)])).is_none(), "assumed size");
        assert!(scattered_section(&array(base, [(2, 0)])).is_none(), "empty");
        assert!(scattered_section(&array(base, [(7, 1)])).is_none(), "one element");
        assert!(scattered_section(&array(base, [(2, 12)])).is_some());
        assert!(scattered_section(&array(base, [(1, 2), (4, 6)])).is_some());
    }

    /// What ifx passes for `a(1:10:2, 1:3)` of an `a(10, 3)`, and for all of it.
    #[test]
    fn descriptors_of_intel() {
        #[repr(C)]
        struct Array {
            head: IntelDescriptor,
            dimensions: [IntelDimension; 2],
        }
        let mut a: Vec<i32> = (0..30).collect();
        let mut array = Array {
            head: IntelDescriptor {
                base: a.as_mut_ptr().cast(),
                element_bytes: 4,
                reserved: 0,
                flags: 1,
                rank: 2,
                reserved_too: 0,
            },
            dimensions: [(5, 8), (3, 40)].map(|(extent, stride)| IntelDimension { extent, stride, lower: 1 }),
        };
        let look = |array: &Array| {
            // SAFETY: an array is a descriptor with its dimensions behind it.
            unsafe { scattered((&raw const *array).cast()) }
        };
        let mut seen = Vec::new();
        // SAFETY: the section lies in `a`.
        look(&array).unwrap().each(|element| seen.push(unsafe { element.cast::<i32>().read() }));
        assert_eq!(seen, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28]);
        array.dimensions[0] = IntelDimension { extent: 10, stride: 4, lower: 1 };
        assert!(look(&array).is_none());
    }

    #[test]
    fn sections_are_copied_there_and_back() {
        let mut a: Vec<i32> = (0..24).collect();
        // a(4,6): a(3:2:-1, 1:6:2)
        let rows = array(a.as_mut_ptr().wrapping_add(2), [(-1, 2), (8, 3)]);
        // SAFETY: the section lies in `a`.
        let mut copy = unsafe { Together::new(scattered_section(&rows).unwrap()) };
        let elements = |copy: &mut Together| {
            // SAFETY: there are six elements.
            unsafe { &mut *copy.bytes.as_mut_ptr().cast::<[i32; 6]>() }
        };
        assert_eq!(*elements(&mut copy), [2, 1, 10, 9, 18, 17]);
        elements(&mut copy)[3] = 99;
        copy.put_back();
        let changed: Vec<usize> = (0..24).filter(|&i| a[i] != i as i32).collect();
        assert_eq!((changed, a[9]), (vec![9], 99));
        // What the operation has not changed is the program's, and what has been put back is, too.
        a[9] = 5;
        a[18] = 6;
        copy.put_back();
        assert_eq!((a[9], a[18]), (5, 6));
        copy.take();
        assert_eq!(*elements(&mut copy), [2, 1, 10, 5, 6, 17]);
    }
}
