//! Names for addresses: function, file and line.

use super::capture::At;
use super::modules::Modules;
use super::{bytes, debug};
use addr2line::Loader;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
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
    in_vmpi: bool,
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
        let symbol = symbol.map(|symbol| addr2line::demangle_auto(symbol.name().into(), None).into_owned());
        let exported = image.exported(at, probe).map(str::to_owned);
        let plain = Frame { module: path.to_string_lossy().into_owned(), in_vmpi: image.in_vmpi, ..place };
        let mut frames = Vec::new();
        if let Some(debug) = debug
            && let Ok(mut found) = debug.find_frames(probe)
        {
            while let Ok(Some(frame)) = found.next() {
                let function = frame.function.as_ref().and_then(|name| name.demangle().ok().map(String::from));
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
        let mut image =
            Image { path: path.to_owned(), debug: OnceCell::new(), exports: BTreeMap::new(), in_vmpi: false };
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
        (*size == 0 || probe - *start < *size).then_some(name)
    }

    /// Is the function that begins at `address` not known to end before `probe`?
    fn may_reach(&self, address: u64, probe: u64) -> bool {
        self.exports.get(&address).is_none_or(|(_, size)| *size == 0 || probe.wrapping_sub(address) < *size)
    }

    /// Take note of the exported functions. One that is but a jump to another place gives its name to that place, since only that is
    /// ever on a stack.
    fn read_exports(&mut self, file: &object::File) {
        let code: Vec<(u64, &[u8])> = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
            .filter_map(|section| Some((section.address(), section.data().ok()?)))
            .collect();
        let mut is_mpi = [false; 2];
        for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
            let Ok(name) = symbol.name() else { continue };
            is_mpi[0] |= name == "MPI_Init";
            is_mpi[1] |= name == "MPIX_Rtime";
            match jump_target(&code, symbol.address()) {
                Some(target) => self.prefer(target, name, 0),
                None => self.prefer(symbol.address(), name, symbol.size()),
            }
        }
        self.in_vmpi = is_mpi == [true, true];
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

/// Where the code at `address` goes if it is a jump (x86-64: E9 and a distance).
fn jump_target(code: &[(u64, &[u8])], address: u64) -> Option<u64> {
    let bytes = code.iter().find_map(|(start, bytes)| {
        let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
        bytes.get(offset..offset + 5)
    })?;
    let distance = i32::from_le_bytes(bytes[1..].try_into().ok()?);
    (bytes[0] == 0xe9).then(|| address.wrapping_add(5).wrapping_add_signed(distance.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_gives_its_name_away() {
        let code = [0x90, 0xe9, 0x0b, 0, 0, 0, 0xc3];
        assert_eq!(jump_target(&[(0x1000, &code)], 0x1001), Some(0x1011));
        assert_eq!(jump_target(&[(0x1000, &code)], 0x1000), None);
        assert_eq!(jump_target(&[(0x1000, &code)], 0x1006), None);
        let mut image = Image::load(Path::new("/nowhere"));
        for name in ["pmpi_recv_", "PMPI_Recv", "MPI_Recv", "mpi_recv_"] {
            image.prefer(8, name, 0);
        }
        assert_eq!(image.exports[&8].0, "MPI_Recv");
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
