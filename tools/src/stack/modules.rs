//! The ELF files that a process has mapped, and how to unwind through them.

use super::bytes;
use super::capture::StackError;
use framehop::x86_64::UnwinderX86_64;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

type Bytes = Arc<[u8]>;

/// A part of a file that is loaded: its place there, and where it is to lie.
#[derive(Clone, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
    code: bool,
}

/// What unwinding needs of a file.
#[derive(Clone, Default)]
struct Sections {
    text: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Bytes)>,
    eh_frame_hdr: Option<(Range<u64>, Bytes)>,
    segments: Vec<Segment>,
}

impl Sections {
    /// The file's addresses, whole pages.
    fn extent(&self) -> Range<u64> {
        let start = self.segments.iter().map(|segment| segment.address & !4095).min().unwrap_or(0);
        let end = self.segments.iter().map(|segment| (segment.address + segment.size).next_multiple_of(4096)).max();
        start..end.unwrap_or(start)
    }
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
        segments: file.segments().map(|segment| segment_of(&segment)).collect(),
    })
}

fn segment_of<'a>(segment: &impl ObjectSegment<'a>) -> Segment {
    let (offset, size) = segment.file_range();
    let code = matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if (p_flags & object::elf::PF_X).0 != 0);
    Segment { offset, size, address: segment.address(), code }
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
            // What the loader has mapped; the program may have mapped the file elsewhere once more, to read it.
            let Range { start, end } = sections.extent();
            let (start, end) = (bias.wrapping_add(start), bias.wrapping_add(end));
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

    /// Is one of the files with code such a one?
    pub fn any(&self, is: impl Fn(&Path) -> bool) -> bool {
        self.mapped.iter().any(|mapped| is(&mapped.path))
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

/// Where the file's address 0 lies, from any part of it that is mapped as code. (Others may be mapped once more elsewhere, and the last page of one
/// segment is often the first of the next.)
fn bias(segments: &[Segment], parts: &[Part]) -> Option<u64> {
    parts.iter().filter(|part| part.code).find_map(|Part { range, offset, .. }| {
        let inside = |segment: &&Segment| {
            segment.code && (segment.offset & !4095..segment.offset + segment.size).contains(offset)
        };
        let segment = segments.iter().find(inside)?;
        Some(range.start.wrapping_sub(segment.address.wrapping_add(offset.wrapping_sub(segment.offset))))
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
    fn the_bias_follows_from_code() {
        let segment = |offset, size, address, code| Segment { offset, size, address, code };
        let segments = [segment(0, 0x1010, 0, false), segment(0x1010, 0x500, 0x2010, true)];
        let bias = |range, offset, code| bias(&segments, &[Part { range, offset, code }]);
        assert_eq!(bias(0x70000..0x71000, 0, false), None);
        assert_eq!(bias(0x12000..0x13000, 0x1000, true), Some(0x10000));
        assert_eq!(bias(0x12000..0x13000, 0x9000, true), None);
        let sections = Sections { segments: segments.to_vec(), ..Sections::default() };
        assert_eq!(sections.extent(), 0..0x3000);
    }
}
