//! Do the faces export every symbol that programs built with the real libraries may name?
//!
//! The lists in `data/` are names only: the functions that Debian's Open MPI 4.1.4 and MPICH 4.0.2, Open MPI 5.0.11 and
//! MPICH 5 export (`nm -D`), those of the MPI-5 standard ABI, and data objects with the sizes that programs copy.

use std::collections::HashMap;
use std::path::Path;
use vmpi_tests::functions::{library, output_of};

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
