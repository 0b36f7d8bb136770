//! Are mpi.h, and the Fortran modules made from it, what the library exports? Is it what the standard's own header says?
//!
//! The library's table of functions is read as text (the rows of `c_table_*!`); the reference is the mpi_abi.h of MPICH 5.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vmpi_tests::installation::prefix;
use vmpi_tests::place::{Turn, bin_dir, room, top, venv_mpich};

/// A header's text without comments and preprocessor lines.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut parts = text.split("/*");
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        bare.push_str(part.split_once("*/").map_or("", |(_, rest)| rest));
    }
    bare.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// The prototypes of functions with an MPI name: name and the whole declaration, without line breaks.
fn prototypes(path: &Path) -> BTreeMap<String, String> {
    let text = code(path);
    let mut found = BTreeMap::new();
    for statement in text.split([';', '{', '}']) {
        let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((head, _)) = words.split_once('(') else { continue };
        let name = head.rsplit([' ', '*']).next().unwrap_or_default();
        let is_mpi = ["MPI_", "PMPI_", "MPIX_", "PMPIX_"].iter().any(|prefix| name.starts_with(prefix));
        if is_mpi && !words.starts_with("typedef") && !words.starts_with("static") {
            found.insert(name.to_owned(), words);
        }
    }
    found
}

fn ours(name: &str) -> PathBuf {
    top().join("libvmpi/include").join(name)
}

fn reference() -> PathBuf {
    venv_mpich().join("include/mpi_abi.h")
}

/// Compile `source` against vmpi's headers; what the compiler says, if it refuses.
fn compile(name: &str, source: &str, flags: &[&str], output: &str) -> Result<PathBuf, String> {
    let file = room("header").join(name);
    let result = room("header").join(output);
    fs::write(&file, source).expect("target/ is writable");
    let mut cc = Command::new("cc");
    cc.args(flags).arg("-o").arg(&result).arg(&file).arg("-I").arg(top().join("libvmpi/include"));
    let output = cc.output().expect("there is a C compiler");
    if output.status.success() { Ok(result) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// What the face exports.
fn exported() -> BTreeSet<String> {
    let face = bin_dir().join("vmpi/standard/libmpi_abi.so.1");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&face).output().expect("nm of binutils runs");
    assert!(output.status.success(), "nm {}", face.display());
    let text = String::from_utf8(output.stdout).expect("nm prints text");
    text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect()
}

#[test]
fn every_function_of_the_headers_is_exported() {
    let symbols = exported();
    for header in ["mpi.h", "vmpi.h"] {
        let declared = prototypes(&ours(header));
        assert!(declared.len() >= 10, "{header}: {} prototypes found", declared.len());
        let missing: Vec<&String> = declared.keys().filter(|name| !symbols.contains(*name)).collect();
        assert!(missing.is_empty(), "{header} declares what the library does not export: {missing:?}");
    }
}

#[test]
fn every_function_of_the_standards_header_is_declared_the_same() {
    let own = prototypes(&ours("mpi.h"));
    let theirs = prototypes(&reference());
    let standard = |name: &&String| name.starts_with("MPI_") || name.starts_with("PMPI_");
    let missing: Vec<&String> = theirs.keys().filter(standard).filter(|name| !own.contains_key(*name)).collect();
    assert!(missing.is_empty(), "mpi.h lacks {missing:?}");
    let mut source = String::from("#include <mpi.h>\n");
    for (name, declaration) in theirs.iter().filter(|(name, _)| standard(name)) {
        assert!(declaration.contains(name));
        source.push_str(&format!("{declaration};\n"));
    }
    compile("redeclared.c", &source, &["-c"], "redeclared.o").unwrap_or_else(|e| panic!("prototypes differ:\n{e}"));
}

/// A program may name the structures behind the handles, and C++ has them in the names of its functions: MPI 5.0 section
/// 20.3.2, with its erratum of 2025 for those of the tool interface (mpi-forum issue 1001), which MPICH 5.0.2 lacks.
#[test]
fn handles_point_to_the_structures_that_the_standard_names() {
    let objects = [
        "Op",
        "Comm",
        "Group",
        "Win",
        "File",
        "Session",
        "Message",
        "Info",
        "Errhandler",
        "Request",
        "Datatype",
        "T_enum",
        "T_cvar_handle",
        "T_pvar_handle",
        "T_pvar_session",
        "T_event_registration",
        "T_event_instance",
    ];
    let mut source = String::from("#include <mpi.h>\n");
    for object in objects {
        // Declared once more, which only the same type may be.
        source.push_str(&format!("typedef struct MPI_ABI_{object} *MPI_{object};\n"));
    }
    for (flags, output) in [(["-xc", "-std=c11", "-c"], "handles.o"), (["-xc++", "-std=c++11", "-c"], "handles++.o")] {
        compile("handles.c", &source, &flags, output).unwrap_or_else(|e| panic!("{flags:?}:\n{e}"));
    }
}

/// The external names that a Fortran module's interfaces and variables refer to.
fn fortran_names(module: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(module).unwrap_or_else(|e| panic!("{}: {e}", module.display()));
    let mut names = BTreeSet::new();
    let mut inside_abstract = false;
    for line in text.lines().map(str::trim) {
        inside_abstract = line == "abstract interface" || inside_abstract && line != "end interface";
        if let Some((_, bound)) = line.split_once("bind(C, name=\"") {
            names.insert(bound.split_once('"').expect("a closed string").0.to_owned());
        } else if let Some(rest) = line.strip_prefix("subroutine ").filter(|_| !inside_abstract) {
            names.insert(format!("{}_", rest.split_once('(').expect("arguments").0.to_lowercase()));
        }
    }
    names
}

#[test]
fn every_procedure_of_the_fortran_modules_is_exported() {
    let _turn = Turn::take();
    let modules = prefix().join("lib/vmpi/fortran");
    let symbols = exported();
    for module in ["mpi.f90", "mpi_f08.f90"] {
        let names = fortran_names(&modules.join(module));
        assert!(names.len() > 700, "{module}: {} names found", names.len());
        let missing: Vec<&String> = names.iter().filter(|name| !symbols.contains(*name)).collect();
        assert!(missing.is_empty(), "{module} names what the library does not export: {missing:?}");
    }
}

/// A program that prints each constant's value, and the sizes of types.
fn printer(names: &BTreeSet<String>, header: &str) -> String {
    let mut source = format!("#include <stdio.h>\n{header}\nint main(void) {{\n");
    for name in names {
        source.push_str(&format!("printf(\"{name} %lld\\n\", (long long)(intptr_t){name});\n"));
    }
    for name in
        ["MPI_Status", "MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Comm", "MPI_T_cb_safety", "MPI_T_source_order"]
    {
        source.push_str(&format!("printf(\"sizeof {name} %zu\\n\", sizeof({name}));\n"));
    }
    source.push_str("return 0; }\n");
    source
}

fn run(program: &Path) -> String {
    let output = Command::new(program).output().expect("it was just compiled");
    assert!(output.status.success(), "{}", program.display());
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Names of constants: object-like macros with a value, and enumerators.
fn constants(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["#define", name, _, ..] if name.starts_with("MPI_") && !name.contains('(') => {
                names.insert(name.to_owned());
            }
            [name, "=", ..] if name.starts_with("MPI_") => {
                names.insert(name.to_owned());
            }
            _ => {}
        }
    }
    // What the reference uses to build its own types.
    names.into_iter().filter(|name| !name.starts_with("MPI_ABI_") || name.contains("VERSION")).collect()
}

#[test]
fn every_constant_of_the_standards_header_has_its_value() {
    let names = constants(&reference());
    assert!(names.len() > 300, "{} constants found", names.len());
    let own = compile("own.c", &printer(&names, "#include <mpi.h>"), &[], "own").unwrap_or_else(|e| panic!("{e}"));
    let header = format!("#include \"{}\"", reference().display());
    let theirs = compile("theirs.c", &printer(&names, &header), &[], "theirs").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(run(&own), run(&theirs));
}

/// `pub const NAME: TYPE = VALUE` and `NAME = 0x...` in a source file of the core, as MPI_NAME.
fn core_constants(file: &str) -> BTreeMap<String, i64> {
    let path = top().join("libvmpi/core/src").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.trim().strip_prefix("pub const ").and_then(|rest| rest.split_once(':')) else {
            continue;
        };
        let Some((_, value)) = rest.split_once(" = ") else { continue };
        let value = value.trim_end_matches(';');
        let value = value.split_once('(').map_or(value, |(_, inside)| inside.trim_end_matches(')'));
        let number = match value.strip_prefix("0x") {
            Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
            None => value.parse().ok(),
        };
        if let Some(number) = number {
            found.insert(name.to_owned(), number);
        }
    }
    found
}

#[test]
fn the_core_speaks_the_headers_numbers() {
    let names = constants(&ours("mpi.h"));
    let printed =
        compile("core.c", &printer(&names, "#include <mpi.h>"), &[], "core").unwrap_or_else(|e| panic!("{e}"));
    let printed = run(&printed);
    let header: BTreeMap<&str, i64> = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    let mut compared = 0;
    for (name, value) in core_constants("consts.rs") {
        // The core's names cannot begin with a digit; and it keeps one number apart that the standard gives a second meaning.
        let name = name.strip_prefix("TWO_").map_or(name.clone(), |rest| format!("2{rest}"));
        if name == "DISTRIBUTE_DFLT_DARG" {
            continue;
        }
        if let Some(&wanted) = header.get(format!("MPI_{name}").as_str()) {
            assert_eq!(value, wanted, "MPI_{name}");
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} constants were compared");
}

/// How a C type is passed: i (int), l (64-bit integer), d (double), p (an address or a handle).
fn class_of_c(argument: &str) -> char {
    let words: Vec<&str> = argument.split([' ', '[']).filter(|word| *word != "const").collect();
    let is_address = argument.contains('*') || argument.contains('[');
    match words[0] {
        _ if is_address => 'p',
        "int" | "MPI_Fint" | "MPI_T_cb_safety" | "enum" => 'i',
        "double" => 'd',
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => 'l',
        "MPI_Status" => panic!("a status by value: {argument}"),
        _ => 'p',
    }
}

/// The same for a type as the table writes it.
fn class_of_rust(ty: &str) -> char {
    match ty.trim().rsplit("::").next().unwrap_or_default() {
        _ if ty.contains('*') => 'p',
        "c_int" | "i32" => 'i',
        "i64" | "isize" | "usize" | "u64" | "X" | "Large" | "CAint" => 'l',
        "c_double" | "f64" => 'd',
        _ => 'p',
    }
}

/// Every `fn MPI_X = f(a: T, ...) -> R;` row: name, classes of the arguments, class of the result.
fn table_rows(dir: &Path, rows: &mut BTreeMap<String, (String, char)>) {
    for entry in fs::read_dir(dir).expect("the directory of the tables").filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            table_rows(&path, rows);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        for part in text.split("fn ").filter(|part| part.starts_with("MPI_")) {
            let Some((name, rest)) = part.split_once(" = ") else { continue };
            let Some((signature, _)) = rest.split_once(';') else { continue };
            let (Some((_, inside)), Some((_, result))) = (signature.split_once('('), signature.rsplit_once("-> "))
            else {
                continue;
            };
            let Some((arguments, _)) = inside.rsplit_once(')') else { continue };
            let types = arguments.split(',').filter_map(|argument| argument.split_once(": "));
            let classes = types.map(|(_, ty)| class_of_rust(ty.trim_end_matches(','))).collect();
            rows.insert(name.trim().to_owned(), (classes, class_of_rust(result)));
        }
    }
}

#[test]
fn every_row_of_the_tables_takes_what_the_header_says() {
    let mut rows = BTreeMap::new();
    table_rows(&top().join("libvmpi/abi/src"), &mut rows);
    let mut compared = 0;
    for (name, declaration) in prototypes(&ours("mpi.h")) {
        let Some((classes, result)) = rows.get(&name) else { continue };
        let (head, rest) = declaration.split_once('(').expect("a prototype has arguments");
        let arguments = rest.rsplit_once(')').expect("a prototype ends").0.trim();
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let arguments = arguments.into_iter().filter(|argument| *argument != "void");
        // Of the variable arguments of MPI_Pcontrol the first one is a pointer, where the user says so.
        let wanted: String =
            arguments.map(|argument| if argument == "..." { 'p' } else { class_of_c(argument) }).collect();
        // Events: there are none, and what asks for one answers so without a look at its arguments.
        if !(classes.is_empty() && name.starts_with("MPI_T_")) {
            assert_eq!(classes, &wanted, "arguments of {name}");
        }
        assert_eq!(*result, class_of_c(head), "result of {name}");
        compared += 1;
    }
    assert!(compared > 200, "only {compared} functions were compared");
}
