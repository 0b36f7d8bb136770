//! One ELF file: what it needs, where it says to look, and whether MPI is inside.

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Sym};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::path::Path;

/// What is read of an ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// PT_INTERP: the dynamic loader.
    pub loader: Option<String>,
    /// ET_EXEC or ET_DYN, for execution or as a library.
    pub executable: bool,
    pub needed: Vec<String>,
    pub soname: Option<String>,
    /// DT_RPATH: beats LD_LIBRARY_PATH.
    pub rpath: Option<String>,
    /// DT_RUNPATH: LD_LIBRARY_PATH beats it.
    pub runpath: Option<String>,
}

/// Why a file is no ELF file that can run here.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("is not an ELF file")]
    NotElf,
    #[error("is a 32-bit ELF file; vmpi runs 64-bit programs")]
    Not64Bit,
    #[error("is built for {found}, this machine is {here}")]
    WrongMachine { found: String, here: &'static str },
    #[error("is a damaged ELF file: {0}")]
    Damaged(&'static str),
}

impl From<object::read::Error> for ImageError {
    fn from(_: object::read::Error) -> ImageError {
        ImageError::Damaged("its headers point outside the file")
    }
}

const MAGIC: [u8; 4] = [0x7f, b'E', b'L', b'F'];

impl Image {
    /// Read the headers and the dynamic section.
    ///
    /// # Errors
    /// The file cannot be read, is no ELF file, or is one for another machine.
    pub fn read(path: &Path) -> Result<Image, ImageError> {
        let cache = ReadCache::new(File::open(path)?);
        Image::parse(&cache)
    }

    /// As [`Image::read`], from bytes or a cache over a file.
    pub fn parse<'data, R: ReadRef<'data>>(data: R) -> Result<Image, ImageError> {
        let ident = data.read_bytes_at(0, 16).map_err(|()| ImageError::NotElf)?;
        if ident[..4] != MAGIC {
            return Err(ImageError::NotElf);
        }
        if ident[4] != elf::ELFCLASS64.0 {
            return Err(ImageError::Not64Bit);
        }
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let machine = header.e_machine(endian);
        let here = own_machine();
        if Some(machine) != here {
            return Err(ImageError::WrongMachine { found: machine_name(machine), here: std::env::consts::ARCH });
        }
        let mut image =
            Image { executable: matches!(header.e_type(endian), elf::ET_EXEC | elf::ET_DYN), ..Image::default() };
        let segments = header.program_headers(endian, data)?;
        for segment in segments {
            if let Some(loader) = segment.interpreter(endian, data)? {
                image.loader = Some(String::from_utf8_lossy(loader).into_owned());
            }
        }
        for segment in segments {
            if let Some(entries) = segment.dynamic(endian, data)? {
                image.read_dynamic(endian, data, segments, entries)?;
            }
        }
        Ok(image)
    }

    fn read_dynamic<'data, R: ReadRef<'data>>(
        &mut self,
        endian: Endianness,
        data: R,
        segments: &[elf::ProgramHeader64<Endianness>],
        entries: &[elf::Dyn64<Endianness>],
    ) -> Result<(), ImageError> {
        let value = |tag: elf::DynamicTag| {
            entries.iter().find(|entry| entry.d_tag(endian) == tag).map(|entry| entry.d_val(endian))
        };
        let (Some(address), Some(size)) = (value(elf::DT_STRTAB), value(elf::DT_STRSZ)) else { return Ok(()) };
        let strings = segments
            .iter()
            .find_map(|segment| segment.data_range(endian, data, address, size).ok().flatten())
            .ok_or(ImageError::Damaged("its dynamic string table lies in no segment"))?;
        let text = |entry: &elf::Dyn64<Endianness>| {
            let start = usize::try_from(entry.d_val(endian)).ok()?;
            let rest = strings.get(start..)?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            Some(String::from_utf8_lossy(&rest[..end]).into_owned())
        };
        for entry in entries {
            match entry.d_tag(endian) {
                elf::DT_NULL => break,
                elf::DT_NEEDED => self.needed.extend(text(entry)),
                elf::DT_SONAME => self.soname = text(entry),
                elf::DT_RPATH => self.rpath = text(entry),
                elf::DT_RUNPATH => self.runpath = text(entry),
                _ => {}
            }
        }
        Ok(())
    }

    /// No loader and no libraries: nothing can be put in MPI's place.
    pub fn is_static(&self) -> bool {
        self.loader.is_none() && self.needed.is_empty()
    }
}

/// Whether MPI_Init is defined in the file itself; a stripped file does not tell.
pub fn defines_mpi_init(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| defines(&ReadCache::new(file), b"MPI_Init").unwrap_or(false))
}

fn defines<'data, R: ReadRef<'data>>(data: R, name: &[u8]) -> Result<bool, object::read::Error> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let symbols = sections.symbols(endian, data, kind)?;
        let found = symbols
            .iter()
            .any(|symbol| symbol.st_shndx(endian) != elf::SHN_UNDEF && symbols.symbol_name(endian, symbol) == Ok(name));
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn own_machine() -> Option<elf::Machine> {
    match std::env::consts::ARCH {
        "x86_64" => Some(elf::EM_X86_64),
        "aarch64" => Some(elf::EM_AARCH64),
        "riscv64" => Some(elf::EM_RISCV),
        "powerpc64" => Some(elf::EM_PPC64),
        "s390x" => Some(elf::EM_S390),
        _ => None,
    }
}

fn machine_name(machine: elf::Machine) -> String {
    match machine {
        elf::EM_X86_64 => "x86_64".into(),
        elf::EM_AARCH64 => "aarch64".into(),
        elf::EM_RISCV => "riscv".into(),
        elf::EM_PPC64 => "powerpc64".into(),
        elf::EM_S390 => "s390x".into(),
        other => format!("ELF machine {}", other.0),
    }
}
