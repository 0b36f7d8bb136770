//! Names for addresses: function, file and line.

use super::capture::At;
use super::modules::Modules;
use super::{bytes, debug};
use addr2line::Loader;
use addr2line::gimli::{BaseAddresses, EhFrameHdr, LittleEndian, Pointer};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// One frame of a stack, with the functions that were inlined there as frames of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Frame {
    pub address: u64,
    /// The file that the code is in, and the address there.
    pub module: String,
    pub offset: u64,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// In vmpi's MPI library.
    pub in_vmpi: bool,
}

impl Frame {
    /// `file.c:12`, or `program+0x1234`.
    pub fn place(&self) -> String {
        let base = |path: &str| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ if self.module.is_empty() => format!("{:#x}", self.address),
            _ => format!("{}+{:#x}", base(&self.module), self.offset),
        }
    }
}

struct Image {
    path: PathBuf,
    /// Symbols and debug information, read when they are first asked for: those of vmpi's own library are large.
    debug: OnceCell<Option<Loader>>,
    /// Exported functions by address, and their sizes (0: not known).
    exports: BTreeMap<u64, (String, u64)>,
    /// Where functions begin, exported or not; of vmpi's own library only.
    begins: BTreeSet<u64>,
    in_vmpi: bool,
}

/// A function's name as it stands in the source. What C calls `f` is no abbreviation of C++'s for a type.
fn as_written(name: &str) -> String {
    match ["_Z", "__Z", "_R"].iter().any(|begin| name.starts_with(begin)) {
        true => addr2line::demangle_auto(name.into(), None).into_owned(),
        false => name.into(),
    }
}

/// Names found so far, by file.
#[derive(Default)]
pub struct Names {
    images: HashMap<PathBuf, Image>,
}

impl Names {
    /// The frames there.
    pub fn frames(&mut self, modules: &Modules, At { address, returns }: At) -> Vec<Frame> {
        let Some(mapped) = modules.find(address) else { return vec![Frame { address, ..Frame::default() }] };
        let plain = Frame { address, offset: mapped.offset(address), ..Frame::default() };
        self.frames_in(&mapped.path, mapped.probe(address, returns), plain)
    }

    /// The frames of a call that returns to `offset` of a file, whose process may be gone.
    pub fn frames_of_call(&mut self, path: &Path, offset: u64) -> Vec<Frame> {
        self.frames_in(path, offset.wrapping_sub(1), Frame { offset, ..Frame::default() })
    }

    fn frames_in(&mut self, path: &Path, probe: u64, place: Frame) -> Vec<Frame> {
        let image = self.image(path);
        let debug = image.debug();
        let symbol = debug.and_then(|debug| debug.find_symbol_info(probe));
        // Of a stripped file it is the one before, however far.
        let symbol = symbol.filter(|symbol| image.may_reach(symbol.address(), probe));
        let at = symbol.as_ref().map_or(probe, |symbol| symbol.address());
        let symbol = symbol.map(|symbol| as_written(symbol.name()));
        let exported = image.exported(at, probe).map(str::to_owned);
        let plain = Frame { module: path.to_string_lossy().into_owned(), in_vmpi: image.in_vmpi, ..place };
        let mut frames = Vec::new();
        if let Some(debug) = debug
            && let Ok(mut found) = debug.find_frames(probe)
        {
            while let Ok(Some(frame)) = found.next() {
                let function = frame.function.as_ref().and_then(|name| Some(as_written(&name.raw_name().ok()?)));
                let (file, line) = frame.location.map_or((None, None), |l| (l.file.map(String::from), l.line));
                frames.push(Frame { function, file, line, ..plain.clone() });
            }
        }
        if frames.is_empty() {
            frames.push(plain);
        }
        // The outermost one is a function of its own.
        if let Some(last) = frames.last_mut()
            && last.function.is_none()
        {
            last.function = symbol.or(exported);
        }
        frames
    }

    /// The function of vmpi's MPI library that the code there belongs to (empty: none that is exported); `None`: it lies in
    /// another file. Right for what a program has called: the functions within have no names here.
    pub fn in_vmpi(&mut self, modules: &Modules, At { address, returns }: At) -> Option<&str> {
        let mapped = modules.find(address)?;
        let probe = mapped.probe(address, returns);
        let image = self.image(&mapped.path);
        image.in_vmpi.then(|| image.exported(probe, probe).unwrap_or_default())
    }

    fn image(&mut self, path: &Path) -> &Image {
        self.images.entry(path.to_owned()).or_insert_with(|| Image::load(path))
    }
}

impl Image {
    fn load(path: &Path) -> Image {
        let mut image = Image {
            path: path.to_owned(),
            debug: OnceCell::new(),
            exports: BTreeMap::new(),
            begins: BTreeSet::new(),
            in_vmpi: false,
        };
        if let Some(bytes) = bytes::of(path)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            image.read_exports(&file);
        }
        image
    }

    fn debug(&self) -> Option<&Loader> {
        // A line of the C library's says nothing of the program, and the foremost frame with a line is where it was.
        let is_systems = !self.in_vmpi && ["/lib", "/usr/lib"].iter().any(|dir| self.path.starts_with(dir));
        let file = || if is_systems { self.path.clone() } else { debug::file_of(&self.path) };
        self.debug.get_or_init(|| Loader::new(file()).ok()).as_ref()
    }

    /// The exported function whose code `probe` lies in, where that of the function around it starts at or before `at`.
    fn exported(&self, at: u64, probe: u64) -> Option<&str> {
        let (start, (name, size)) = self.exports.range(..=at).next_back()?;
        // Of a function with jumps to it the size is not known; but not where another one begins.
        let reaches = || probe <= *start || self.begins.range(start + 1..=probe).next().is_none();
        (if *size == 0 { reaches() } else { probe.wrapping_sub(*start) < *size }).then_some(name)
    }

    /// Is the function that begins at `address` not known to end before `probe`?
    fn may_reach(&self, address: u64, probe: u64) -> bool {
        self.exports.get(&address).is_none_or(|(_, size)| *size == 0 || probe.wrapping_sub(address) < *size)
    }

    /// Take note of the exported functions. One of vmpi's that is but a jump to another place gives its name to that place, since only that
    /// is ever on a stack. Elsewhere such a place may be an entry of the table of procedures, and what lies behind that anybody's.
    fn read_exports(&mut self, file: &object::File) {
        let code: Vec<(u64, &[u8])> = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
            .filter_map(|section| Some((section.address(), section.data().ok()?)))
            .collect();
        let exports = || file.dynamic_symbols().filter(|symbol| symbol.is_definition());
        let has = |wanted: &str| exports().any(|symbol| symbol.name() == Ok(wanted));
        self.in_vmpi = has("MPI_Init") && has("MPIX_Rtime");
        let words = if self.in_vmpi { words(file) } else { HashMap::new() };
        if self.in_vmpi {
            self.begins = begins(file).unwrap_or_default();
        }
        for symbol in exports() {
            let Ok(name) = symbol.name() else { continue };
            let name = if self.in_vmpi { fortran_name(name) } else { None }.unwrap_or_else(|| name.to_owned());
            let targets = if self.in_vmpi { jump_targets(&code, symbol.address(), &words) } else { Vec::new() };
            match targets[..] {
                [] => self.prefer(symbol.address(), &name, symbol.size()),
                ref targets => targets.iter().for_each(|target| self.prefer(*target, &name, 0)),
            }
        }
    }

    /// Of several names of one function keep MPI's own.
    fn prefer(&mut self, address: u64, name: &str, size: u64) {
        let rank = |name: &str| match name {
            name if name.starts_with("MPI_") || name.starts_with("MPIX_") => 0,
            name if name.starts_with("PMPI_") || name.starts_with("PMPIX_") => 1,
            _ => 2,
        };
        match self.exports.get(&address) {
            Some((known, _)) if (rank(known), known.as_str()) <= (rank(name), name) => {}
            _ => {
                self.exports.insert(address, (name.to_owned(), size));
            }
        }
    }
}

/// Where the code at `address` goes if it is a jump: x86-64's E9 and a distance, or FF 25 and the distance of one of the `words` that hold addresses. Fortran's
/// entries jump through such a word (`Entry` in vmpi-abi), two behind which there is where they go when no tool is in between.
fn jump_targets(code: &[(u64, &[u8])], address: u64, words: &HashMap<u64, u64>) -> Vec<u64> {
    let bytes = code.iter().find_map(|(start, bytes)| {
        let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
        bytes.get(offset..offset + 6).or(bytes.get(offset..)).filter(|bytes| !bytes.is_empty())
    });
    let target = |behind: u64, distance: [u8; 4]| {
        address.wrapping_add(behind).wrapping_add_signed(i32::from_le_bytes(distance).into())
    };
    match bytes.unwrap_or_default() {
        [0xe9, a, b, c, d, ..] => vec![target(5, [*a, *b, *c, *d])],
        [0xff, 0x25, a, b, c, d] => {
            let word = target(6, [*a, *b, *c, *d]);
            [word, word + 16].iter().filter_map(|word| words.get(word).copied()).collect()
        }
        _ => Vec::new(),
    }
}

/// What the loader writes into a library's words: addresses of its own.
fn words(file: &object::File) -> HashMap<u64, u64> {
    let relative = |(at, relocation): (u64, object::Relocation)| match relocation.target() {
        object::RelocationTarget::Absolute => Some((at, relocation.addend() as u64)),
        _ => None,
    };
    file.dynamic_relocations().into_iter().flatten().filter_map(relative).collect()
}

/// Where functions begin, by the table for unwinding, which is there in stripped files, too.
fn begins(file: &object::File) -> Option<BTreeSet<u64>> {
    let section = file.section_by_name(".eh_frame_hdr")?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(section.address());
    let header = EhFrameHdr::new(section.data().ok()?, LittleEndian).parse(&bases, 8).ok()?;
    let table = header.table()?;
    let mut rows = table.iter(&bases);
    let mut begins = BTreeSet::new();
    while let Ok(Some((Pointer::Direct(begin), _))) = rows.next() {
        begins.insert(begin);
    }
    Some(begins)
}

/// `MPI_Recv` of `mpi_recv_`, `MPI_RECV`, `pmpi_recv_f08ts_`, `ompi_recv_f`: a procedure of Fortran's as the standard writes it. `None`: it is none.
fn fortran_name(symbol: &str) -> Option<String> {
    let lower = symbol.to_ascii_lowercase();
    let bare = lower.trim_end_matches('_');
    let rest = match symbol.strip_prefix("ompi_").map(|rest| rest.strip_suffix("_f")) {
        Some(rest) => rest?,
        None => {
            // C's names are neither all small nor all capital.
            if symbol != lower && symbol != symbol.to_ascii_uppercase() {
                return None;
            }
            ["mpi_", "pmpi_", "pmpir_"].iter().find_map(|prefix| bare.strip_prefix(prefix))?
        }
    };
    let kinds = ["_f08ts_large", "_f08_large", "_c_f08ts", "_c_f08", "_f08ts", "_f08"];
    let rest = kinds.iter().find_map(|kind| rest.strip_suffix(kind)).unwrap_or(rest);
    let first = rest.chars().next()?;
    Some(format!("MPI_{}{}", first.to_ascii_uppercase(), &rest[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_c_calls_f_is_no_type_of_cxx() {
        for (name, shown) in [("f", "f"), ("i", "i"), ("main", "main"), ("_ZN3foo3barEv", "foo::bar()")] {
            assert_eq!(as_written(name), shown);
        }
    }

    #[test]
    fn a_jump_gives_its_name_away() {
        let code = [0x90, 0xe9, 0x0b, 0, 0, 0, 0xc3];
        let none = HashMap::new();
        assert_eq!(jump_targets(&[(0x1000, &code)], 0x1001, &none), [0x1011]);
        assert!(jump_targets(&[(0x1000, &code)], 0x1000, &none).is_empty());
        assert!(jump_targets(&[(0x1000, &code)], 0x1006, &none).is_empty());
        let through = [0xff, 0x25, 0xfa, 0x0f, 0, 0, 0xcc];
        let words = HashMap::from([(0x2000, 0x1111), (0x2008, 7), (0x2010, 0x1222)]);
        assert_eq!(jump_targets(&[(0x1000, &through)], 0x1000, &words), [0x1111, 0x1222]);
        assert!(jump_targets(&[(0x1000, &through)], 0x1000, &none).is_empty());
        let mut image = Image::load(Path::new("/nowhere"));
        for name in ["pmpi_recv_", "PMPI_Recv", "MPI_Recv", "mpi_recv_"] {
            image.prefer(8, name, 0);
        }
        assert_eq!(image.exports[&8].0, "MPI_Recv");
        // What lies behind, where another function begins, is none of its own.
        assert_eq!(image.exported(100, 100), Some("MPI_Recv"));
        image.begins = BTreeSet::from([8, 64]);
        assert_eq!((image.exported(8, 63), image.exported(8, 64)), (Some("MPI_Recv"), None));
    }

    #[test]
    fn procedures_of_fortran_have_their_names_of_the_standard() {
        let name = |symbol: &str| fortran_name(symbol).unwrap_or_default();
        for symbol in ["mpi_recv", "mpi_recv__", "MPI_RECV", "pmpi_recv_f08ts_", "pmpir_recv_f08_large_", "ompi_recv_f"]
        {
            assert_eq!(name(symbol), "MPI_Recv", "{symbol}");
        }
        assert_eq!(name("mpi_comm_get_attr_f08_"), "MPI_Comm_get_attr");
        for symbol in ["MPI_Recv", "PMPI_Recv", "MPIX_Rtime", "ompi_mpi_comm_world", "mpi_", "main"] {
            assert_eq!(name(symbol), "", "{symbol}");
        }
    }

    /// libc's `__sched_cpufree` is a jump to the entry of free, behind which there are functions without a name.
    #[test]
    fn exports_of_other_libraries_stay_where_they_are() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps.lines().find_map(|line| Some(&line[line.find('/')?..]).filter(|path| path.contains("libc.so")));
        let libc = Path::new(libc.unwrap());
        let bytes = bytes::of(libc).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let known: BTreeSet<u64> = file.dynamic_symbols().map(|symbol| symbol.address()).collect();
        let image = Image::load(libc);
        assert!(!image.exports.is_empty());
        let moved: Vec<_> = image.exports.iter().filter(|(address, _)| !known.contains(address)).collect();
        assert!(moved.is_empty(), "{moved:?}");
    }

    #[test]
    fn a_function_of_unknown_size_reaches_from_its_first_byte_to_where_the_next_one_begins() {
        let image = Image {
            path: PathBuf::new(),
            debug: OnceCell::new(),
            exports: BTreeMap::from([(10, ("known".to_owned(), 0)), (40, ("sized".to_owned(), 4))]),
            begins: BTreeSet::from([10, 20, 40]),
            in_vmpi: true,
        };
        let at = |at: u64| image.exported(at, at);
        assert_eq!([at(9), at(10), at(19), at(20)], [None, Some("known"), Some("known"), None]);
        assert_eq!([at(40), at(43), at(44)], [Some("sized"), Some("sized"), None]);
        // Right behind a call that does not return another function may begin: its return address, less one.
        assert_eq!(image.exported(10, 9), Some("known"));
    }

    /// This test's own function is found with its file and line.
    #[test]
    fn an_address_of_this_process_has_a_name() {
        let address = an_address_of_this_process_has_a_name as *const () as u64;
        let modules = Modules::of(std::process::id() as i32).unwrap();
        let frames = Names::default().frames(&modules, At { address, returns: false });
        let frame = frames.last().unwrap();
        assert!(frame.function.as_ref().is_some_and(|name| name.contains("an_address_of")), "{frame:?}");
        assert!(frame.place().starts_with("names.rs:"), "{frame:?}");
    }
}
