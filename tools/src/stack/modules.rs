//! The ELF files that a process has mapped, and how to unwind through them.

use super::bytes;
use super::capture::StackError;
use framehop::x86_64::UnwinderX86_64;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use object::{Object, ObjectSection, ObjectSegment};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

type Bytes = Arc<[u8]>;

/// What unwinding needs of a file.
#[derive(Clone, Default)]
struct Sections {
    text: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Bytes)>,
    eh_frame_hdr: Option<(Range<u64>, Bytes)>,
    /// Loaded parts: offset in the file, size, address.
    segments: Vec<(u64, u64, u64)>,
}

/// Of files seen so far: ranks of a job map the same ones.
static FILES: LazyLock<Mutex<HashMap<PathBuf, Option<Arc<Sections>>>>> = LazyLock::new(Mutex::default);

fn sections_of(path: &Path) -> Option<Arc<Sections>> {
    let mut files = FILES.lock().ok()?;
    if let Some(known) = files.get(path) {
        return known.clone();
    }
    let found = read_sections(path).map(Arc::new);
    files.insert(path.to_owned(), found.clone());
    found
}

fn read_sections(path: &Path) -> Option<Sections> {
    let bytes = bytes::of(path)?;
    let file = object::File::parse(&*bytes).ok()?;
    let with_data = |name: &str| {
        let section = file.section_by_name(name)?;
        let range = section.address()..section.address() + section.size();
        Some((range, Bytes::from(&*section.uncompressed_data().ok()?)))
    };
    Some(Sections {
        text: file.section_by_name(".text").map(|section| section.address()..section.address() + section.size()),
        eh_frame: with_data(".eh_frame"),
        eh_frame_hdr: with_data(".eh_frame_hdr"),
        segments: file
            .segments()
            .map(|segment| (segment.file_range().0, segment.file_range().1, segment.address()))
            .collect(),
    })
}

/// A file in the process's memory.
pub struct Mapped {
    pub path: PathBuf,
    pub range: Range<u64>,
    /// To be added to the file's addresses.
    bias: u64,
}

impl Mapped {
    /// Where in the file this address lies.
    pub fn offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.bias)
    }

    /// An address in the code that is being executed: where a call returns to, that lies before.
    pub fn probe(&self, address: u64, returns: bool) -> u64 {
        self.offset(address).wrapping_sub(returns.into())
    }
}

/// All of them.
pub struct Modules {
    mapped: Vec<Mapped>,
    unwinder: UnwinderX86_64<Bytes>,
}

impl Modules {
    /// What is mapped in a process now.
    ///
    /// # Errors
    /// `/proc/PID/maps` cannot be read.
    pub fn of(pid: i32) -> Result<Modules, StackError> {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => StackError::Gone { pid },
            _ => StackError::Maps { pid, source },
        })?;
        let mut modules = Modules { mapped: Vec::new(), unwinder: UnwinderX86_64::new() };
        let mut files: BTreeMap<PathBuf, Parts> = BTreeMap::new();
        for (path, part) in maps.lines().filter_map(parse_line) {
            files.entry(path).or_default().push(part);
        }
        // Code only: what else a rank has mapped, a program may write to and cut short meanwhile, or it is a device.
        for (path, parts) in files.into_iter().filter(|(_, parts)| parts.iter().any(|part| part.code)) {
            let Some(sections) = sections_of(&path) else { continue };
            let Some(bias) = bias(&sections.segments, &parts) else { continue };
            let start = parts.iter().map(|part| part.range.start).min().unwrap_or(0);
            let end = parts.iter().map(|part| part.range.end).max().unwrap_or(0);
            let info = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: sections.text.clone(),
                eh_frame_svma: sections.eh_frame.as_ref().map(|(range, _)| range.clone()),
                eh_frame: sections.eh_frame.as_ref().map(|(_, data)| data.clone()),
                eh_frame_hdr_svma: sections.eh_frame_hdr.as_ref().map(|(range, _)| range.clone()),
                eh_frame_hdr: sections.eh_frame_hdr.as_ref().map(|(_, data)| data.clone()),
                ..ExplicitModuleSectionInfo::default()
            };
            let name = path.to_string_lossy().into_owned();
            modules.unwinder.add_module(Module::new(name, start..end, bias, info));
            modules.mapped.push(Mapped { path, range: start..end, bias });
        }
        Ok(modules)
    }

    pub fn unwinder(&self) -> &UnwinderX86_64<Bytes> {
        &self.unwinder
    }

    /// The file that an address lies in.
    pub fn find(&self, address: u64) -> Option<&Mapped> {
        self.mapped.iter().find(|mapped| mapped.range.contains(&address))
    }
}

/// A mapped part of a file: its addresses, its place there, whether it may be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    range: Range<u64>,
    offset: u64,
    code: bool,
}

type Parts = Vec<Part>;

/// A line of proc_pid_maps(5) that maps a file.
fn parse_line(line: &str) -> Option<(PathBuf, Part)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let code = words.next()?.contains('x');
    let offset = words.next()?;
    let path = line.find('/').map(|at| PathBuf::from(&line[at..]))?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((path, Part { range: number(start)?..number(end)?, offset: number(offset)?, code }))
}

/// Where the file's address 0 lies, from any mapped part of it.
fn bias(segments: &[(u64, u64, u64)], parts: &[Part]) -> Option<u64> {
    parts.iter().find_map(|Part { range, offset, .. }| {
        let inside = |(start, size, _): &&(u64, u64, u64)| (*start & !4095..start + size).contains(offset);
        let (start, _, address) = segments.iter().find(inside)?;
        Some(range.start.wrapping_sub(address.wrapping_add(offset.wrapping_sub(*start))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps() {
        let line = "7f0000001000-7f0000002000 r-xp 00001000 fe:00 17   /usr/lib/lib x.so";
        let part = Part { range: 0x7f00_0000_1000..0x7f00_0000_2000, offset: 0x1000, code: true };
        assert_eq!(parse_line(line), Some((PathBuf::from("/usr/lib/lib x.so"), part.clone())));
        let data = line.replace("r-xp", "rw-s");
        assert_eq!(parse_line(&data).map(|(_, part)| part), Some(Part { code: false, ..part }));
        assert!(parse_line("7f0000001000-7f0000002000 rw-p 00000000 00:00 0 [heap]").is_none());
    }

    #[test]
    fn the_bias_follows_from_any_part() {
        let segments = [(0, 0x800, 0), (0x1010, 0x500, 0x2010)];
        let bias = |range, offset| bias(&segments, &[Part { range, offset, code: true }]);
        assert_eq!(bias(0x10000..0x11000, 0), Some(0x10000));
        assert_eq!(bias(0x12000..0x13000, 0x1000), Some(0x10000));
        assert_eq!(bias(0x12000..0x13000, 0x9000), None);
    }
}
