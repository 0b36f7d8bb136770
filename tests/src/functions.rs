//! The table of all functions of MPI and what becomes of each: docs/functions.md, made from the built faces.
//!
//! What a face exports is in its dynamic symbols; what it refuses, in its section `vmpi_refused` (`refusal!` of vmpi-abi). The
//! lists in `data/` say what there is to export.

use crate::place;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The functions of MPI 5.0: what MPICH 5.0.2's mpi_abi.h declares, and [`DRAFTS`].
const STANDARD: &str = include_str!("../data/standard-functions.txt");

/// Drafts of MPI 4.0 had these, and mpi4py names them.
const DRAFTS: [&str; 2] = ["MPI_Precv_init_c", "MPI_Psend_init_c"];

/// A face, and what the real libraries of its ABI export.
struct Face {
    name: &'static str,
    package: &'static str,
    functions: &'static str,
    fortran: &'static str,
    exports: HashSet<String>,
    /// Name and face in which it is refused, with the reason.
    refused: BTreeMap<(String, String), String>,
}

/// The face's library, as `cargo xtask build` made it.
pub fn library(package: &str) -> PathBuf {
    place::bin_dir().join(format!("lib{}.so", package.replace('-', "_")))
}

/// Standard output of a tool of binutils about the library.
pub fn output_of(tool: &str, arguments: &[&str], library: &Path) -> String {
    let output = Command::new(tool).args(arguments).arg(library).output().unwrap_or_else(|e| panic!("{tool}: {e}"));
    assert!(output.status.success(), "{tool} {}: {}", library.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a tool of binutils prints text")
}

/// The names and reasons of a library's section of refused functions.
///
/// # Panics
/// When there is an entry without the three parts that `refusal!` writes.
fn refused(library: &Path) -> BTreeMap<(String, String), String> {
    let output = Command::new("objcopy")
        .args(["--dump-section", "vmpi_refused=/dev/stdout"])
        .args([library, Path::new("/dev/null")])
        .output()
        .expect("objcopy runs");
    let text = String::from_utf8(output.stdout).expect("names are text");
    let parts = text.split('\0').filter(|entry| !entry.is_empty()).map(|entry| {
        let mut parts = entry.split('\t').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_else(|| panic!("{}: {entry:?}", library.display()));
        ((next(), next()), next())
    });
    parts.collect()
}

impl Face {
    fn new(name: &'static str, package: &'static str, functions: &'static str, fortran: &'static str) -> Self {
        let path = library(package);
        let exports = output_of("nm", &["--dynamic", "--defined-only"], &path);
        let exports = exports.lines().filter_map(|line| line.split_whitespace().last().map(str::to_owned)).collect();
        Face { name, package, functions, fortran, exports, refused: refused(&path) }
    }

    /// What becomes of a symbol; `faces` are those of `f_manglings` that it may be refused in.
    fn state(&self, symbol: &str, name: &str, faces: &[&str], real: &str) -> String {
        if !self.exports.contains(symbol) {
            return if real.lines().any(|known| known == symbol) { "missing".into() } else { "–".into() };
        }
        let refused = faces.iter().find_map(|face| self.refused.get(&(name.to_owned(), (*face).to_owned())));
        refused.map_or("works".into(), |why| format!("error: {why}"))
    }

    fn c(&self, name: &str) -> String {
        self.state(name, name, &["C"], self.functions)
    }

    /// mpif.h and `use mpi`.
    fn fortran(&self, name: &str) -> String {
        let symbol = format!("{}_", name.to_lowercase());
        self.state(&symbol, &name.to_uppercase(), &["mpifh", "mpich", "openmpi"], self.fortran)
    }

    /// `use mpi_f08`: the first of the symbols that a module may call for it.
    fn f08(&self, name: &str) -> String {
        let low = name.to_lowercase();
        let (base, large) = low.strip_suffix("_c").map_or((low.as_str(), ""), |base| (base, "large_"));
        let plain = ["f08", "mpich", "openmpi"].as_slice();
        let symbols = [
            (
                format!("{base}_f08ts_{large}"),
                if large.is_empty() { &["descriptors", "mpich"] } else { ["large_descriptors"].as_slice() },
            ),
            (format!("{base}_f08_{large}"), if large.is_empty() { plain } else { ["large"].as_slice() }),
            (format!("o{low}_f"), plain),
        ];
        let name = base.to_uppercase();
        let states = symbols.iter().map(|(symbol, faces)| self.state(symbol, &name, faces, ""));
        states.into_iter().find(|state| state != "–").unwrap_or_else(|| "–".into())
    }

    /// MPIX_ functions that it has or ought to have.
    fn extensions(&self) -> impl Iterator<Item = &str> {
        self.exports.iter().map(String::as_str).chain(self.functions.lines()).filter(|name| name.starts_with("MPIX_"))
    }
}

const HEAD: &str = "# Every function of MPI, and what becomes of it

Made from the built libraries by `cargo xtask functions`; `tests/tests/functions.rs` fails when it is out of date.

Three libraries stand in for the real ones: **O** for Open MPI's (`libmpi.so.40`), **M** for MPICH's and Intel MPI's (`libmpich.so.12`,
`libmpi.so.12`), **S** for those of the MPI-5 standard ABI (`libmpi_abi.so.1`); each from C, from Fortran's `mpif.h` and `use mpi`, and from
`use mpi_f08` (Open MPI's, MPICH's, vmpi's own modules; functions with `_c` are the same names there, with large counts).

- `works`: it is there and does what MPI says.
- `error: why`: it is there, and returns an MPI error that names it.
- `–`: there is no such function in this ABI (the real libraries have none, and vmpi adds none), or MPI has no binding of it in that language.
- `missing`: the real library has it and this one does not.
";

fn table(page: &mut String, names: &BTreeSet<&str>, faces: &[Face]) {
    page.push_str("\n| function | C: O | M | S | mpif.h, `use mpi`: O | M | S | `use mpi_f08`: O | M | S |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for name in names {
        let _ = write!(page, "| {name} |");
        for column in [Face::c, Face::fortran, Face::f08] {
            for face in faces {
                let _ = write!(page, " {} |", column(face, name));
            }
        }
        page.push('\n');
    }
}

fn totals(page: &mut String, names: &BTreeSet<&str>, faces: &[Face]) {
    page.push_str("\n| | C | mpif.h, `use mpi` | `use mpi_f08` |\n| --- | --- | --- | --- |\n");
    for face in faces {
        let _ = write!(page, "| {} |", face.name);
        for column in [Face::c, Face::fortran, Face::f08] {
            let states: Vec<String> = names.iter().map(|name| column(face, name)).collect();
            let count = |start: &str| states.iter().filter(|state| state.starts_with(start)).count();
            let _ = write!(page, " {} work, {} error, {} missing |", count("works"), count("error"), count("missing"));
        }
        page.push('\n');
    }
}

/// The whole page.
pub fn page() -> String {
    let faces = [
        Face::new(
            "Open MPI (O)",
            "vmpi-openmpi",
            include_str!("../data/openmpi-functions.txt"),
            include_str!("../data/openmpi-fortran.txt"),
        ),
        Face::new(
            "MPICH (M)",
            "vmpi-mpich",
            include_str!("../data/mpich-functions.txt"),
            include_str!("../data/mpich-fortran.txt"),
        ),
        Face::new("the standard's (S)", "vmpi-standard", STANDARD, include_str!("../data/mpich-fortran.txt")),
    ];
    for face in &faces {
        let unknown: Vec<_> =
            face.refused.keys().filter(|(name, kind)| kind == "C" && !face.exports.contains(name)).collect();
        assert!(unknown.is_empty(), "{} refuses what it does not export: {unknown:?}", face.package);
    }
    let standard: BTreeSet<&str> = STANDARD.lines().filter(|name| !DRAFTS.contains(name)).collect();
    let mut page = HEAD.to_owned();
    let _ = write!(page, "\n## The {} functions of MPI 5.0\n", standard.len());
    totals(&mut page, &standard, &faces);
    table(&mut page, &standard, &faces);
    let older: BTreeSet<&str> = faces
        .iter()
        .flat_map(|face| face.functions.lines())
        .filter(|name| !standard.contains(name) && !name.starts_with("MPIX_"))
        .collect();
    page.push_str("\n## What older versions of MPI had, and others have\n");
    table(&mut page, &older, &faces);
    let extensions: BTreeSet<&str> = faces.iter().flat_map(Face::extensions).collect();
    page.push_str("\n## Extensions (MPIX_)\n");
    table(&mut page, &extensions, &faces);
    page
}
