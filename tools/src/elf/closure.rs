//! A program and all libraries that ld.so would load with it, down to MPI.

use super::soname::{Face, Soname, of_soname};
use super::{Image, ImageError, Search};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// An MPI library somewhere below the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    pub soname: String,
    /// The file that ld.so would take.
    pub file: Option<PathBuf>,
    /// The files that lead to it, the program first.
    pub chain: Vec<PathBuf>,
    pub kind: Soname,
}

/// The program's file and the MPI libraries below it.
#[derive(Clone, Debug)]
pub struct Closure {
    pub image: Image,
    pub mpi: Vec<Library>,
    /// No MPI library below the program, but MPI_Init inside it.
    pub has_mpi_inside: bool,
    /// Libraries that ld.so would not find.
    pub missing: Vec<String>,
}

impl Closure {
    /// The faces that the program's libraries ask for, each once.
    pub fn faces(&self) -> Vec<Face> {
        let mut faces: Vec<Face> = Vec::new();
        for library in &self.mpi {
            if let Soname::Mpi(face) = library.kind
                && !faces.contains(&face)
            {
                faces.push(face);
            }
        }
        faces
    }
}

struct Loaded {
    path: PathBuf,
    image: Image,
    parent: Option<Rc<Loaded>>,
}

impl Loaded {
    fn chain(&self) -> Vec<(&Path, &Image)> {
        let mut chain = vec![(self.path.as_path(), &self.image)];
        let mut at = self;
        while let Some(parent) = &at.parent {
            chain.push((&parent.path, &parent.image));
            at = parent;
        }
        chain.reverse();
        chain
    }
}

/// Walk the libraries breadth first, as ld.so does; MPI libraries are noted and not entered.
///
/// # Errors
/// The program itself is no ELF file for this machine. Damaged libraries count as missing.
pub fn closure(program: &Path, search: &Search) -> Result<Closure, ImageError> {
    let image = Image::read(program)?;
    let mut found = Closure { image: image.clone(), mpi: Vec::new(), has_mpi_inside: false, missing: Vec::new() };
    let mut seen: HashSet<String> = HashSet::new();
    let mut queue = std::collections::VecDeque::from([Rc::new(Loaded { path: program.into(), image, parent: None })]);
    while let Some(object) = queue.pop_front() {
        for name in &object.image.needed {
            if !seen.insert(name.clone()) {
                continue;
            }
            let chain = object.chain();
            let file = search.find(name, &chain);
            let kind = of_soname(Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name));
            if kind != Soname::Other {
                let chain = chain.iter().map(|(path, _)| path.to_path_buf()).collect();
                found.mpi.push(Library { soname: name.clone(), file, chain, kind });
                continue;
            }
            match file.and_then(|file| Image::read(&file).ok().map(|image| (file, image))) {
                Some((path, image)) => queue.push_back(Rc::new(Loaded { path, image, parent: Some(object.clone()) })),
                None => found.missing.push(name.clone()),
            }
        }
    }
    found.has_mpi_inside = found.mpi.is_empty() && super::image::defines_mpi_init(program);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faces(program: &str) -> Vec<Face> {
        closure(Path::new(program), &Search::new("")).map(|found| found.faces()).unwrap_or_default()
    }

    #[test]
    fn programs_of_this_machine() {
        for (program, expected) in
            [("/usr/bin/lmp", vec![Face::OpenMpi]), ("/usr/bin/hpcc", vec![Face::OpenMpi]), ("/bin/sh", vec![])]
        {
            if Path::new(program).exists() {
                assert_eq!(faces(program), expected, "{program}");
            }
        }
    }

    #[test]
    fn nothing_is_missing_from_the_shell() {
        let found = closure(Path::new("/bin/sh"), &Search::new("")).unwrap();
        assert!(found.missing.is_empty(), "{:?}", found.missing);
        assert!(found.image.loader.is_some() && !found.image.is_static() && !found.has_mpi_inside);
    }

    #[test]
    fn text_and_garbage_are_errors() {
        assert!(matches!(closure(Path::new("/etc/passwd"), &Search::new("")), Err(ImageError::NotElf)));
        assert!(matches!(Image::parse(&b"\x7fELF\x02\x01\x01"[..]), Err(ImageError::NotElf)));
        let mut wrong = vec![0u8; 64];
        wrong[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        wrong[16] = 2;
        wrong[18] = 243;
        assert!(matches!(Image::parse(wrong.as_slice()), Err(ImageError::WrongMachine { .. })));
    }
}
