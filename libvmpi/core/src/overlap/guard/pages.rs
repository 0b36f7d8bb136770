//! How pages are closed and opened. What is called with signals held back makes system calls by `raw` only, and allocates nothing.

use super::table::{ADDRESSES, PAGE_BYTES, parts_without_guard};
use super::{Access, NotGuardable, raw};
use nix::Error;
use procfs::process::{MMPermissions, Process};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;
use vmpi_cma::{Area, Areas};

/// The bit in which an address and its landing differ. Far from where the kernel puts mappings by itself, and a multiple of all sizes of pages.
const AWAY: usize = 1 << 45;
/// What a thread's control block has behind the address that the thread pointer means, and more.
const CONTROL_BLOCK_BYTES: usize = 16 << 10;
const OPEN: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
const READABLE: u64 = libc::PROT_READ as u64;
const CLOSED: u64 = libc::PROT_NONE as u64;

/// Parts of a guard that no other guard has, each in one area of memory.
pub(super) type Pieces = SmallVec<[Range<usize>; 4]>;

/// Where a byte lies while it is guarded with `Access::Away`.
#[inline]
pub fn landing(addr: usize) -> usize {
    addr ^ AWAY
}

/// May these pages be guarded, and in which pieces?
pub(super) fn may_be_guarded(wanted: &Range<usize>) -> Result<Pieces, NotGuardable> {
    let (pointer, stack) = (thread_pointer(), stack_pointer());
    if wanted.start < pointer + CONTROL_BLOCK_BYTES && pointer.saturating_sub(thread_local_bytes()) < wanted.end {
        return Err(NotGuardable::ThreadLocal);
    }
    let own = own_thread_locals();
    if wanted.start < own.end && own.start < wanted.end {
        return Err(NotGuardable::ThreadLocal);
    }
    let mut pieces = Pieces::new();
    // What is guarded already has been looked at then, and looks different now.
    for part in parts_without_guard(wanted) {
        let mut at = part.start;
        while at < part.end {
            let area = area_at(at).ok_or(NotGuardable::Kind)?;
            let (start, end) = (area.start as usize, area.end as usize);
            let is_plain = area.page_bytes == PAGE_BYTES as u64 && area.rights == Area::READABLE | Area::WRITABLE;
            if start > at || end <= at || !is_plain {
                return Err(NotGuardable::Kind);
            }
            if [stack, first_stack()].iter().any(|on| (start..end).contains(on)) {
                return Err(NotGuardable::Stack);
            }
            let end = end.min(part.end);
            pieces.push(at..end);
            at = end;
        }
    }
    Ok(pieces)
}

pub(super) fn area_at(addr: usize) -> Option<Area> {
    static AREAS: OnceLock<Option<Areas>> = OnceLock::new();
    match AREAS.get_or_init(|| Areas::open().ok()).as_ref().map(|areas| areas.at(addr as u64)) {
        Some(Ok(area)) => Some(area),
        Some(Err(Error::ENOENT)) => None,
        // An older kernel, or the program has closed all descriptors.
        _ => area_in_maps(addr as u64),
    }
}

pub(super) fn area_in_maps(addr: u64) -> Option<Area> {
    let maps = Process::myself().ok()?.maps().ok()?;
    let map = maps.iter().find(|map| (map.address.0..map.address.1).contains(&addr))?;
    let has = |flag, right| if map.perms.contains(flag) { right } else { 0 };
    let rights = has(MMPermissions::READ, Area::READABLE)
        | has(MMPermissions::WRITE, Area::WRITABLE)
        | has(MMPermissions::EXECUTE, Area::EXECUTABLE)
        | has(MMPermissions::SHARED, Area::SHARED);
    // Pages of hugetlb are not told here; the kernel refuses what is not a multiple of them.
    let (offset, inode, page_bytes) = (map.offset, map.inode, PAGE_BYTES as u64);
    Some(Area { start: map.address.0, end: map.address.1, offset, inode, rights, page_bytes })
}

fn stack_pointer() -> usize {
    let own: usize;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("mov {}, rsp", out(reg) own, options(nomem, nostack, preserves_flags)) };
    own
}

/// An address on the stack that the process was started with.
pub(super) fn first_stack() -> usize {
    unsafe extern "C" {
        static __libc_stack_end: *const u8;
    }
    // SAFETY: ld.so has set it before any code of the program ran.
    unsafe { __libc_stack_end as usize }
}

fn thread_pointer() -> usize {
    let own: usize;
    // SAFETY: the first word of a thread's control block is its address (x86-64 psABI); read, nothing else.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) own, options(nostack, preserves_flags, readonly)) };
    own
}

/// Where this library's thread-local variables of this thread lie, and more: in a block of malloc's, if the program has opened the library (Python does). What waits uses them.
fn own_thread_locals() -> Range<usize> {
    thread_local! {
        static ONE: Cell<u8> = const { Cell::new(0) };
    }
    static BYTES: OnceLock<usize> = OnceLock::new();
    // The loader takes the block now, if it has not done that before.
    let one = ONE.with(|one| std::ptr::from_ref(one) as usize);
    let bytes = *BYTES.get_or_init(own_thread_local_bytes);
    one.saturating_sub(bytes)..one + bytes
}

/// The size of this library's thread-local variables.
fn own_thread_local_bytes() -> usize {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, found: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the loader passes a valid structure, and the pointer below.
        unsafe {
            let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
            let here = own_thread_local_bytes as *const () as u64;
            let is_own = |header: &libc::Elf64_Phdr| {
                let start = (*info).dlpi_addr + header.p_vaddr;
                header.p_type == libc::PT_LOAD && (start..start + header.p_memsz).contains(&here)
            };
            if headers.iter().any(is_own) {
                let variables = headers.iter().filter(|header| header.p_type == libc::PT_TLS);
                *found.cast::<usize>() = variables.map(|header| header.p_memsz as usize).sum();
            }
        }
        0
    }
    let mut found = 0usize;
    // SAFETY: `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

/// At most so many bytes of variables lie before the control block: those of this library are among them.
fn thread_local_bytes() -> usize {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _size: usize, sum: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the loader passes a valid structure, and the pointer below.
        unsafe {
            let headers = std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum));
            let variables = headers.iter().filter(|header| header.p_type == libc::PT_TLS);
            *sum.cast::<usize>() += variables.map(|header| header.p_memsz as usize + PAGE_BYTES).sum::<usize>();
        }
        0
    }
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        // The loader keeps some for libraries that are opened later.
        let mut sum = 4 * PAGE_BYTES;
        // SAFETY: `sum` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut sum).cast()) };
        sum
    })
}

/// Close all of these pieces, or nothing.
pub(super) fn close_all(pieces: &Pieces, access: Access) -> Result<(), NotGuardable> {
    for (closed, piece) in pieces.iter().enumerate() {
        close(piece, access).inspect_err(|_| pieces[..closed].iter().for_each(|piece| open(piece, access)))?;
    }
    Ok(())
}

/// Open what no guard in the table has.
pub(super) fn open_all(had: &Range<usize>, access: Access) {
    parts_without_guard(had).for_each(|part| open(&part, access));
}

fn close(part: &Range<usize>, access: Access) -> Result<(), NotGuardable> {
    match access {
        Access::Write => protect(part, READABLE).map_err(NotGuardable::Kernel),
        Access::Any => protect(part, CLOSED).map_err(NotGuardable::Kernel),
        Access::Away => move_away(part),
    }
}

fn open(part: &Range<usize>, access: Access) {
    let done = match access {
        Access::Write | Access::Any => protect(part, OPEN),
        Access::Away => move_back(part),
    };
    if let Err(why) = done {
        end_process(why);
    }
}

fn protect(part: &Range<usize>, rights: u64) -> nix::Result<()> {
    // SAFETY: pages that were readable and writable when they were closed, and have not been unmapped since (that waits).
    unsafe { raw::known(libc::SYS_mprotect, [part.start as u64, part.len() as u64, rights]) }.map(drop)
}

/// Others than this thread, which does not touch it now, see the pages at no time or at one of the two places.
fn move_away(part: &Range<usize>) -> Result<(), NotGuardable> {
    let (from, to, len) = (part.start as u64, landing(part.start) as u64, part.len() as u64);
    take_place(to, len)?;
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP) as u64;
    // SAFETY: the target is a mapping made just now; the source is one area of the program's, whose users will be stopped.
    if let Err(why) = unsafe { raw::known(libc::SYS_mremap, [from, len, len, flags, to]) } {
        // SAFETY: as above.
        let _ = unsafe { raw::known(libc::SYS_munmap, [to, len]) };
        return Err(NotGuardable::Kernel(why));
    }
    protect(part, CLOSED).map_err(|why| {
        open(part, Access::Away);
        NotGuardable::Kernel(why)
    })
}

/// Have nothing else lie there: the kernel would put it aside without asking.
fn take_place(at: u64, len: u64) -> Result<(), NotGuardable> {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping where nothing is.
    match unsafe { raw::known(libc::SYS_mmap, [at, len, CLOSED, kind as u64, u64::MAX, 0]) } {
        Ok(got) if got == at => Ok(()),
        Ok(got) => {
            // A kernel before 4.17 takes the flag for a wish.
            // SAFETY: it was made just now.
            let _ = unsafe { raw::known(libc::SYS_munmap, [got, len]) };
            Err(NotGuardable::Place)
        }
        Err(Error::EEXIST) => Err(NotGuardable::Place),
        Err(why) => Err(NotGuardable::Kernel(why)),
    }
}

/// In halves, if it has become several areas there.
fn move_back(part: &Range<usize>) -> nix::Result<()> {
    let (from, to, len) = (landing(part.start) as u64, part.start as u64, part.len() as u64);
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
    // SAFETY: what `move_away` has moved goes back to where it has kept the place.
    match unsafe { raw::known(libc::SYS_mremap, [from, len, len, flags, to]) } {
        Ok(_) => Ok(()),
        Err(Error::EFAULT) if part.len() > PAGE_BYTES => {
            let middle = part.start + (part.len() / 2).next_multiple_of(PAGE_BYTES);
            move_back(&(part.start..middle))?;
            move_back(&(middle..part.end))
        }
        Err(why) => Err(why),
    }
}

/// The program's memory cannot be given back to it.
#[cold]
fn end_process(why: Error) -> ! {
    const WHAT: &[u8] = b"vmpi: the kernel does not give memory of a buffer back that was guarded (VMPI_OVERLAP); this rank ends. Error ";
    let number = why as i32;
    let digits = [b'0' + (number / 100 % 10) as u8, b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8, b'\n'];
    for text in [WHAT, &digits] {
        // SAFETY: writes bytes that are there.
        let _ = unsafe { raw::known(libc::SYS_write, [2, text.as_ptr() as u64, text.len() as u64]) };
    }
    // SAFETY: ends the process.
    let _ = unsafe { raw::known(libc::SYS_exit_group, [125]) };
    std::process::abort()
}

const _: () = assert!(AWAY < ADDRESSES);
