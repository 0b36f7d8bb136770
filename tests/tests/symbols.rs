//! Do the faces export every symbol that programs built with the real libraries may name?
//!
//! Intel MPI is asked itself, where `cargo xtask setup` has put it. The lists in `data/` are names only: the functions that Debian's Open MPI 4.1.4 and MPICH 4.0.2, Open MPI 5.0.11 and
//! MPICH 5 export (`nm -D`), those of the MPI-5 standard ABI, and data objects with the sizes that programs copy.

use std::collections::HashMap;
use std::path::Path;
use vmpi_tests::functions::{library, output_of};
use vmpi_tests::place::venv;

/// An exported symbol: its type as `nm` prints it, and its size in bytes.
struct Symbol {
    kind: char,
    bytes: u64,
}

/// What the library exports, by name.
fn exported(library: &Path) -> HashMap<String, Symbol> {
    output_of("nm", &["--dynamic", "--defined-only", "--print-size"], library)
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, bytes, kind, name] = words[..] else { return None };
            let symbol = Symbol { kind: kind.chars().next()?, bytes: u64::from_str_radix(bytes, 16).ok()? };
            Some((name.to_owned(), symbol))
        })
        .collect()
}

/// Check that each function of the list is exported under its MPI_ and PMPI_ names.
fn check_functions(package: &str, list: &str) {
    let library = library(package);
    let symbols = exported(&library);
    let is_function = |name: &str| symbols.get(name).is_some_and(|symbol| symbol.kind == 'T');
    let missing: Vec<String> =
        list.lines().flat_map(|name| [name.to_owned(), format!("P{name}")]).filter(|name| !is_function(name)).collect();
    let (many, path) = (missing.len(), library.display());
    assert!(missing.is_empty(), "{path} does not export {many} functions: {}", missing.join(" "));
}

/// Check that each object of the list (name, tab, size in bytes) is exported with its size.
fn check_objects(package: &str, list: &str) {
    let library = library(package);
    let symbols = exported(&library);
    let wrong: Vec<String> = list
        .lines()
        .filter_map(|line| {
            let (name, bytes) = line.split_once('\t').expect("name, tab, size");
            let bytes: u64 = bytes.parse().expect("a size");
            match symbols.get(name) {
                None => Some(format!("{name} is missing")),
                Some(symbol) if symbol.kind == 'T' => Some(format!("{name} is a function")),
                Some(symbol) if symbol.bytes != bytes => {
                    Some(format!("{name} has {} bytes, not {bytes}", symbol.bytes))
                }
                Some(_) => None,
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{}: {}", library.display(), wrong.join(", "));
}

fn check_soname(package: &str, soname: &str) {
    let library = library(package);
    let text = output_of("readelf", &["--dynamic"], &library);
    assert!(text.contains(&format!("Library soname: [{soname}]")), "{}: {text}", library.display());
}

#[test]
fn openmpi_functions() {
    check_functions("vmpi-openmpi", include_str!("../data/openmpi-functions.txt"));
}

#[test]
fn openmpi_objects() {
    check_objects("vmpi-openmpi", include_str!("../data/openmpi-objects.tsv"));
}

#[test]
fn openmpi_soname() {
    check_soname("vmpi-openmpi", "libmpi.so.40");
}

#[test]
fn mpich_functions() {
    check_functions("vmpi-mpich", include_str!("../data/mpich-functions.txt"));
}

#[test]
fn mpich_objects() {
    check_objects("vmpi-mpich", include_str!("../data/mpich-objects.tsv"));
}

/// What MPICH's mpi_f08 module calls, as libmpichfort.so.12 exports it; the same in the standard's face, for vmpi's own module.
#[test]
fn mpi_f08_of_mpich() {
    for package in ["vmpi-mpich", "vmpi-standard"] {
        let library = library(package);
        let symbols = exported(&library);
        let missing: Vec<&str> =
            include_str!("../data/mpich-f08.txt").lines().filter(|name| !symbols.contains_key(*name)).collect();
        assert!(missing.is_empty(), "{} does not export {}", library.display(), missing.join(" "));
    }
}

#[test]
fn mpich_soname() {
    check_soname("vmpi-mpich", "libmpich.so.12");
}

/// The standard's own list, large-count functions included.
#[test]
fn standard_functions() {
    check_functions("vmpi-standard", include_str!("../data/standard-functions.txt"));
}

#[test]
fn standard_soname() {
    check_soname("vmpi-standard", "libmpi_abi.so.1");
}

/// Programs that load an MPI library at run time ask so whether it is Open MPI's (NEURON's wheels).
#[test]
fn open_mpis_face_is_told_from_others() {
    let has = |package: &str| exported(&library(package)).contains_key("ompi_mpi_init");
    assert!(has("vmpi-openmpi") && !has("vmpi-mpich"));
}

/// Names that programs of Intel MPI may have from its libraries. The rest are its own: other parts of MPICH, the run-time library of Fortran,
/// names of modules (`mpi_f08._`) and procedures that only its own procedures call.
fn names_for_programs(library: &str) -> Vec<String> {
    let own = |name: &str| {
        name.ends_with("._")
            || name.ends_with("_cdesc")
            || name.contains("_proxy")
            || ["mpi_c_interface", "mpirinit", "MPIR_F_", "MPIR_C_", "MPIR_F08_get"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
    };
    let program_may = |name: &str| {
        let public = ["MPI_", "PMPI_", "MPIX_", "PMPIX_", "MPIR_F08_", "mpi_", "pmpi_", "pmpir_", "mpix_", "pmpix_"];
        let common = ["mpipriv", "mpifcmb"];
        public.iter().chain(&common).any(|prefix| name.starts_with(prefix)) && !own(name)
    };
    let mut names: Vec<String> = exported(&venv().join("lib").join(library)).into_keys().collect();
    names.retain(|name| program_may(name));
    assert!(names.len() > 900, "{library} has lost its symbols: {}", names.len());
    names
}

fn check_intel(package: &str, libraries: [&str; 2], refused: fn(&str) -> bool) {
    let symbols = exported(&library(package));
    let names = libraries.iter().flat_map(|library| names_for_programs(library));
    let mut missing: Vec<String> = names.filter(|name| !symbols.contains_key(name) && !refused(name)).collect();
    missing.sort();
    assert!(missing.is_empty(), "{package} does not export {} names: {}", missing.len(), missing.join(" "));
}

#[test]
fn intels_names_in_the_face_of_mpich() {
    check_intel("vmpi-mpich", ["libmpi.so.12", "libmpifort.so.12"], |_| false);
}

/// What Intel's mpi_f08 for the standard ABI has from its modules is not there, so that a program of it ends when it is loaded: its handles are pointers.
#[test]
fn intels_names_in_the_face_of_the_standard() {
    check_intel("vmpi-standard", ["libmpi_abi.so.1", "libmpifort_abi.so.1"], |name| name.contains("_mp_"));
}

/// Objects that programs copy, or whose size the linker compares.
#[test]
fn intels_objects() {
    for (package, libraries) in [
        ("vmpi-mpich", ["libmpi.so.12", "libmpifort.so.12"]),
        ("vmpi-standard", ["libmpi_abi.so.1", "libmpifort_abi.so.1"]),
    ] {
        let ours = exported(&library(package));
        for library in libraries {
            for (name, theirs) in exported(&venv().join("lib").join(library)) {
                let is_data = |symbol: &Symbol| ['B', 'D', 'R', 'V'].contains(&symbol.kind);
                let Some(own) = ours.get(&name).filter(|_| name.starts_with("MPI_") || name.contains("_constants_mp_"))
                else {
                    continue;
                };
                if is_data(&theirs) {
                    assert!(
                        is_data(own) && own.bytes >= theirs.bytes,
                        "{package}: {name} has {} bytes, not {}",
                        own.bytes,
                        theirs.bytes
                    );
                }
            }
        }
    }
}
