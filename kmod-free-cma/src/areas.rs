//! What lies at an address of this process, asked of the kernel without reading all of /proc/self/maps (PROCMAP_QUERY, Linux 6.11).
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The kernel's `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

nix::ioctl_readwrite!(procmap_query, b'f', 17, Query);

/// An area of memory: what one mapping is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Area {
    pub start: u64,
    pub end: u64,
    /// Where `start` is in the file; with `inode`, 0 if there is no file.
    pub offset: u64,
    pub inode: u64,
    /// Sum of `READABLE`, `WRITABLE`, `EXECUTABLE`, `SHARED`.
    pub rights: u64,
    pub page_bytes: u64,
}

impl Area {
    pub const READABLE: u64 = 1;
    pub const WRITABLE: u64 = 2;
    pub const EXECUTABLE: u64 = 4;
    pub const SHARED: u64 = 8;
}

/// This process's memory map, to be asked about.
pub struct Areas(File);

impl Areas {
    /// # Errors
    /// There is no /proc, or the kernel does not know the question.
    pub fn open() -> io::Result<Areas> {
        let areas = Areas(File::open("/proc/self/maps")?);
        // What this function's own code lies in.
        areas.at(Areas::open as *const () as u64).map_err(|errno| {
            let why = "the kernel does not tell what lies at an address (PROCMAP_QUERY, Linux 6.11";
            io::Error::other(format!("{why}: {errno})"))
        })?;
        Ok(areas)
    }

    /// # Errors
    /// ENOENT where nothing is mapped.
    pub fn at(&self, addr: u64) -> nix::Result<Area> {
        let mut query = Query { size: size_of::<Query>() as u64, query_addr: addr, ..Query::default() };
        // SAFETY: the descriptor is that of a memory map, and the kernel writes into `query` only.
        unsafe { procmap_query(self.0.as_raw_fd(), &raw mut query)? };
        let Query { vma_start: start, vma_end: end, vma_flags: rights, .. } = query;
        let Query { vma_offset: offset, inode, vma_page_size: page_bytes, .. } = query;
        Ok(Area { start, end, offset, inode, rights, page_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
    use std::num::NonZeroUsize;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn areas_are_told_with_their_files() {
        let Ok(areas) = Areas::open() else {
            let release = nix::sys::utsname::uname().unwrap().release().to_string_lossy().into_owned();
            let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
            let mut parts = release.split(['.', '-']);
            let version = (number(parts.next()), number(parts.next()));
            return assert!(version < (Some(6), Some(11)), "Linux {release} knows the question");
        };
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let len = NonZeroUsize::new(3 << 12).unwrap();
        // SAFETY: new mappings, which nothing else knows of; a part of the one gives way to the other.
        let (start, end) = unsafe {
            let at = mmap_anonymous(None, len, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE).unwrap();
            let middle = NonZeroUsize::new(at.addr().get() + (1 << 12));
            let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED;
            mmap(middle, NonZeroUsize::new(1 << 12).unwrap(), ProtFlags::PROT_READ, flags, &file, 1 << 12).unwrap();
            munmap(at.byte_add(2 << 12), 1 << 12).unwrap();
            (at.addr().get() as u64, at.addr().get() as u64 + (2 << 12))
        };
        let middle = start + (1 << 12);
        assert_eq!(areas.at(middle - 1).map(|area| (area.end, area.inode)), Ok((middle, 0)));
        let inode = file.metadata().unwrap().ino();
        let mapped = Area { start: middle, end, offset: 1 << 12, inode, rights: Area::READABLE, page_bytes: 1 << 12 };
        assert_eq!(areas.at(end - 1), Ok(mapped));
        assert_ne!(areas.at(end), Ok(mapped));
    }
}
