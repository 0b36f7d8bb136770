//! Fortran's named constants in the standard ABI: each of the three forms has all that the real MPIs have and all of mpi.h, of
//! the right kind and with C's values.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vmpi_tests::installation::prefix;
use vmpi_tests::place::{Turn, room, top};

/// How a program gets the constants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Form {
    Mpif,
    Mpi,
    F08,
}

/// What the constant is in C: `None` where C has none of that name.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    Offset,
    Handle,
}

/// Variables: only their being there can be asked for.
const VARIABLES: [&str; 9] = [
    "MPI_ARGVS_NULL",
    "MPI_ARGV_NULL",
    "MPI_BOTTOM",
    "MPI_ERRCODES_IGNORE",
    "MPI_IN_PLACE",
    "MPI_STATUSES_IGNORE",
    "MPI_STATUS_IGNORE",
    "MPI_UNWEIGHTED",
    "MPI_WEIGHTS_EMPTY",
];

/// What is no number in C or another one, in the standard's ABI with gfortran. The fields of a status are counted from 1.
const FORTRAN_ONLY: [(&str, i64); 10] = [
    ("MPI_ADDRESS_KIND", 8),
    ("MPI_ASYNC_PROTECTS_NONBLOCKING", 0),
    ("MPI_COUNT_KIND", 8),
    ("MPI_ERROR", 3),
    ("MPI_INTEGER_KIND", 4),
    ("MPI_OFFSET_KIND", 8),
    ("MPI_SOURCE", 1),
    ("MPI_STATUS_SIZE", 8),
    ("MPI_SUBARRAYS_SUPPORTED", 0),
    ("MPI_TAG", 2),
];

/// The names in mpi.h that Fortran has, too, and what they are.
fn of_c() -> BTreeMap<String, Kind> {
    let text = fs::read_to_string(top().join("libvmpi/include/mpi.h")).expect("the header is there");
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, value) = match words[..] {
            ["#define", name, value] => (name, value),
            [name, "=", value] => (name, value),
            _ => continue,
        };
        // The tool interface is C's only; callbacks are procedures; addresses are variables.
        let is_ours = name.starts_with("MPI_") && !name.starts_with("MPI_T_") && !name.starts_with("MPI_F_");
        if !is_ours || name.contains('(') || value.contains('*') || value.contains("_function") {
            continue;
        }
        let kind = match value.strip_prefix("((").and_then(|typed| typed.split_once(')')) {
            Some(("MPI_Offset", _)) => Kind::Offset,
            Some(("void", _)) => continue,
            Some(_) => Kind::Handle,
            // A second name.
            None => found.get(value).cloned().unwrap_or(Kind::Number),
        };
        found.insert(name.to_owned(), kind);
    }
    found.retain(|name, _| !VARIABLES.contains(&name.as_str()));
    found.remove("MPI_BUFFER_AUTOMATIC");
    found
}

/// The names that the real MPIs have.
fn of_others() -> BTreeSet<String> {
    let text = fs::read_to_string(top().join("tests/data/fortran-constants.txt")).expect("the list is there");
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// What `program`, just compiled, prints: a name and a number a line.
fn numbers(source: &Path, compiler: &str) -> BTreeMap<String, i64> {
    let binary = source.with_extension("run");
    let mut command = Command::new(prefix().join("bin").join(compiler));
    let output = command.arg("-o").arg(&binary).arg(source).output().expect("the wrapper runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {}:\n{said}", source.display());
    let output = Command::new(&binary).output().expect("it was just compiled");
    assert!(output.status.success(), "{}", binary.display());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pair = |line: &str| line.trim().split_once(' ').map(|(name, number)| (name.to_owned(), number.trim().parse()));
    text.lines().filter_map(pair).map(|(name, number)| (name, number.expect("a number"))).collect()
}

fn write(name: &str, text: &str) -> PathBuf {
    let path = room("fortran").join(name);
    fs::write(&path, text).expect("target/ is writable");
    path
}

/// A program that prints all constants, and for variables 0.
fn printer(form: Form, names: &BTreeSet<String>, kinds: &BTreeMap<String, Kind>) -> PathBuf {
    let (usage, include) = match form {
        Form::Mpif => ("", "include 'mpif.h'\n"),
        Form::Mpi => ("use mpi\n", ""),
        Form::F08 => ("use mpi_f08\n", ""),
    };
    let mut text = format!("program p\n{usage}implicit none\n{include}");
    for name in names {
        let value = match kinds.get(name) {
            _ if VARIABLES.contains(&name.as_str()) => format!("storage_size({name}) * 0"),
            _ if name.ends_with("_SUPPORTED") || name.ends_with("_NONBLOCKING") => format!("merge(1, 0, {name})"),
            Some(Kind::Handle) if form == Form::F08 => format!("{name}%MPI_VAL"),
            _ => name.clone(),
        };
        text.push_str(&format!("print '(a,i0)', '{name} ', {value}\n"));
    }
    // The kind is that of the argument that it is for.
    text.push_str("print '(a,i0)', 'kind ', kind(MPI_DISPLACEMENT_CURRENT)\n");
    if form != Form::Mpif {
        for ty in ["Comm", "Datatype", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request", "Win"] {
            text.push_str(&format!("print '(a,i0)', '{ty} ', bits_of_{ty}()\n"));
        }
        text.push_str("contains\n");
        for ty in ["Comm", "Datatype", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request", "Win"] {
            text.push_str(&format!(
                "integer function bits_of_{ty}()\ntype(MPI_{ty}) :: x\nx%MPI_VAL = 0\nbits_of_{ty} = storage_size(x)\nend function\n"
            ));
        }
    }
    text.push_str("end program\n");
    write(&format!("{form:?}.f90"), &text)
}

#[test]
fn every_constant_is_in_all_three_forms() {
    let _turn = Turn::take();
    let kinds = of_c();
    assert!(kinds.len() > 250, "{} constants found in mpi.h", kinds.len());
    let others = of_others();
    assert!(others.len() > 250, "{} constants of other MPIs", others.len());
    let names: BTreeSet<String> = kinds.keys().chain(&others).cloned().collect();

    let mut source = String::from("#include <mpi.h>\n#include <stdio.h>\nint main(void) {\n");
    for name in kinds.keys() {
        source.push_str(&format!("printf(\"{name} %lld\\n\", (long long)(intptr_t){name});\n"));
    }
    source.push_str("return 0; }\n");
    let c = numbers(&write("c.c", &source), "vmpicc");
    let wanted = |name: &String| match FORTRAN_ONLY.iter().find(|(known, _)| known == name) {
        Some((_, value)) => *value,
        None if VARIABLES.contains(&name.as_str()) => 0,
        // Fortran's strings have no NUL.
        None => c.get(name).unwrap_or_else(|| panic!("mpi.h has no {name}")) - i64::from(name.starts_with("MPI_MAX_")),
    };
    for form in [Form::Mpif, Form::Mpi, Form::F08] {
        let got = numbers(&printer(form, &names, &kinds), "vmpifort");
        for name in &names {
            assert_eq!(got.get(name), Some(&wanted(name)), "{form:?}: {name}");
        }
        assert_eq!(got["kind"], 8, "{form:?}");
        if form != Form::Mpif {
            assert_eq!(got["Comm"], 32, "{form:?}");
        }
    }
}
