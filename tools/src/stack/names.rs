//! Names for addresses: function, file and line.

use super::modules::Modules;
use addr2line::Loader;
use object::{Object, ObjectSymbol};
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
    /// Inside vmpi's MPI library.
    #[serde(skip)]
    pub in_vmpi: bool,
    /// The symbol of the library's interface, as it is linked.
    #[serde(skip)]
    pub exported: Option<String>,
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
    debug: Option<Loader>,
    /// Exported functions by address.
    exports: BTreeMap<u64, String>,
    in_vmpi: bool,
}

/// Names found so far, by file.
#[derive(Default)]
pub struct Names {
    images: HashMap<PathBuf, Image>,
}

impl Names {
    /// The frames at `address`; `returns`: it is where a call returns to, so the call lies before it.
    pub fn frames(&mut self, modules: &Modules, address: u64, returns: bool) -> Vec<Frame> {
        let Some(mapped) = modules.find(address) else { return vec![Frame { address, ..Frame::default() }] };
        let offset = address.wrapping_sub(mapped.bias);
        let probe = offset - u64::from(returns);
        let image = self.images.entry(mapped.path.clone()).or_insert_with(|| Image::load(&mapped.path));
        let exported = image.exports.range(..=probe).next_back().map(|(_, name)| name.clone());
        let plain = Frame {
            address,
            module: mapped.path.to_string_lossy().into_owned(),
            offset,
            in_vmpi: image.in_vmpi,
            exported: exported.clone(),
            ..Frame::default()
        };
        let mut frames = Vec::new();
        if let Some(debug) = &image.debug
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
        let symbol = image.debug.as_ref().and_then(|debug| debug.find_symbol(probe)).map(addr2line_demangle);
        // The outermost one is a function of its own.
        if let Some(last) = frames.last_mut()
            && last.function.is_none()
        {
            last.function = symbol.or(exported);
        }
        frames
    }
}

fn addr2line_demangle(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}

impl Image {
    fn load(path: &Path) -> Image {
        let (mut exports, mut in_vmpi) = (BTreeMap::new(), false);
        if let Ok(file) = std::fs::File::open(path) {
            let cache = object::ReadCache::new(file);
            if let Ok(file) = object::File::parse(&cache) {
                // Each face of vmpi has it (`refusal!` in libvmpi/abi).
                in_vmpi = file.section_by_name("vmpi_refused").is_some();
                for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
                    if let Ok(name) = symbol.name() {
                        prefer(&mut exports, symbol.address(), name);
                    }
                }
            }
        }
        Image { debug: Loader::new(path).ok(), exports, in_vmpi }
    }
}

/// Of several names of one function keep MPI's own.
fn prefer(exports: &mut BTreeMap<u64, String>, address: u64, name: &str) {
    let rank = |name: &str| match name {
        name if name.starts_with("MPI_") || name.starts_with("MPIX_") => 0,
        name if name.starts_with("PMPI_") => 1,
        _ => 2,
    };
    match exports.get(&address) {
        Some(known) if rank(known) <= rank(name) => {}
        _ => {
            exports.insert(address, name.to_owned());
        }
    }
}
