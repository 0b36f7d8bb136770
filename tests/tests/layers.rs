//! Which file may import which: the floors of the three crates. A file imports from lower floors of its crate and from its own, and no files import each other in a
//! circle, but for a parent and its children.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;
use vmpi_tests::place::top;

struct Crate {
    name: &'static str,
    src: &'static str,
    /// Path of a file, or of a folder with its `/`, and its floor; the longest that fits counts.
    floors: &'static [(&'static str, u32)],
}

const CRATES: [Crate; 3] = [
    Crate {
        name: "shared",
        src: "daemon/shared/src",
        floors: &[
            ("lib.rs", 7),
            // A process's end of both segments.
            ("endpoint/", 6),
            ("sched/", 5),
            ("node.rs", 4),
            ("node/", 4),
            ("job.rs", 4),
            ("job/", 4),
            ("leftovers.rs", 4),
            ("runtime_dir.rs", 4),
            ("control.rs", 3),
            ("control/", 3),
            ("meter.rs", 3),
            ("ask.rs", 3),
            ("agreement.rs", 3),
            ("matching/", 2),
            ("simulate/", 2),
            ("trace/", 2),
            ("cell.rs", 2),
            ("window.rs", 2),
            ("roster.rs", 2),
            ("monitor.rs", 2),
            ("spawn_protocol.rs", 2),
            ("ports.rs", 2),
            ("", 1),
        ],
    },
    Crate {
        name: "vmpid",
        src: "daemon/src",
        floors: &[
            ("main.rs", 6),
            // Who may ask what.
            ("control.rs", 5),
            ("clients.rs", 5),
            ("dynamic.rs", 5),
            ("daemon.rs", 4),
            ("arbiter.rs", 3),
            ("job.rs", 2),
            ("job/", 2),
            ("", 1),
        ],
    },
    Crate {
        name: "core",
        src: "libvmpi/core/src",
        floors: &[
            ("lib.rs", 12),
            ("overlap/", 11),
            ("overlap/own_memory.rs", 1),
            ("overlap/guard/", 1),
            ("check/", 1),
            ("check/signature.rs", 2),
            ("check/tell.rs", 3),
            ("check/calls.rs", 3),
            ("check/far.rs", 3),
            ("check/at_end.rs", 9),
            ("io/", 10),
            ("session.rs", 10),
            // Errors to their handlers.
            ("raise.rs", 10),
            ("rma/", 9),
            ("topo/", 9),
            ("ulfm/", 9),
            ("dynamic/", 9),
            ("passing.rs", 9),
            ("init.rs", 9),
            // Making communicators.
            ("construct/", 8),
            ("coll/", 7),
            ("request/", 6),
            ("p2p/", 5),
            ("monitor.rs", 4),
            ("chance/", 4),
            ("regions.rs", 4),
            ("tool/", 4),
            ("memory/", 4),
            ("comm/", 3),
            ("failure/", 3),
            ("attr.rs", 3),
            ("op/", 3),
            ("hardware.rs", 3),
            ("process_sets.rs", 3),
            ("crash.rs", 3),
            ("errhandler/", 2),
            ("datatype/", 2),
            ("group.rs", 2),
            ("info.rs", 2),
            ("clock.rs", 2),
            ("nodes.rs", 2),
            ("lock.rs", 2),
            ("process.rs", 2),
            ("simulate/", 2),
            ("", 1),
        ],
    },
];

impl Crate {
    fn floor(&self, file: &str) -> u32 {
        let fits = |prefix: &str| if prefix.ends_with(".rs") { file == prefix } else { file.starts_with(prefix) };
        let found = self.floors.iter().filter(|(prefix, _)| fits(prefix)).max_by_key(|(prefix, _)| prefix.len());
        found.expect("the last one fits all").1
    }
}

/// The module that a file is, by its path below `src`.
fn module_of(file: &str) -> Vec<String> {
    let path = file.strip_suffix(".rs").expect("a Rust file");
    let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(names.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

/// Paths of a file that begin in its crate, from the root; what is compiled for tests only does not count.
struct Paths {
    module: Vec<String>,
    found: BTreeSet<Vec<String>>,
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let tokens = match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string(),
            _ => String::new(),
        };
        tokens.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test") && !tokens.starts_with("not")
    })
}

impl Paths {
    fn note(&mut self, path: &[String]) {
        let mut from = self.module.clone();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => (from, rest) = (Vec::new(), &path[1..]),
            Some("self") => rest = &path[1..],
            Some("super") => {}
            _ => return,
        }
        while let Some("super") = rest.first().map(String::as_str) {
            from.pop();
            rest = &rest[1..];
        }
        self.found.insert(from.into_iter().chain(rest.iter().cloned()).collect());
    }

    fn tree(&mut self, before: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(before, &path.tree);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(before, item)),
            syn::UseTree::Name(name) => self.leaf(before, &name.ident),
            syn::UseTree::Rename(rename) => self.leaf(before, &rename.ident),
            syn::UseTree::Glob(_) => self.note(before),
        }
    }

    fn leaf(&mut self, before: &[String], name: &syn::Ident) {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        self.note(&path);
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return syn::visit::visit_item(self, item),
        };
        if is_for_tests(attributes) {
            return;
        }
        if let syn::Item::Mod(module) = item {
            self.module.push(module.ident.to_string());
            syn::visit::visit_item(self, item);
            self.module.pop();
            return;
        }
        syn::visit::visit_item(self, item);
    }

    /// No import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&names);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        // What stands in a macro's arguments is no syntax tree: paths in it, word by word.
        let text = called.tokens.to_string().replace(" :: ", "::");
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            let names: Vec<String> = word.split("::").map(str::to_owned).collect();
            if names.len() > 1 {
                self.note(&names);
            }
        }
    }
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

type Imports = BTreeMap<String, BTreeSet<String>>;

/// For each file of the crate those of it that it imports.
fn imports(of: &Crate) -> Imports {
    let src = top().join(of.src);
    let mut paths = Vec::new();
    files_below(&src, &mut paths);
    let name = |path: &PathBuf| path.strip_prefix(&src).expect("it is below").to_string_lossy().into_owned();
    let for_tests = |file: &str| file.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "bin"));
    let files: BTreeMap<Vec<String>, String> =
        paths.iter().map(name).filter(|file| !for_tests(file)).map(|file| (module_of(&file), file)).collect();
    let of_file = |(module, file): (&Vec<String>, &String)| {
        let text = fs::read_to_string(src.join(file)).expect("it can be read");
        let tree = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut paths = Paths { module: module.clone(), found: BTreeSet::new() };
        paths.visit_file(&tree);
        let target = |path: &Vec<String>| (0..=path.len()).rev().find_map(|length| files.get(&path[..length])).cloned();
        let targets = paths.found.iter().filter_map(target).filter(|target| target != file).collect();
        (file.clone(), targets)
    };
    files.iter().map(of_file).collect()
}

/// A module and one within it.
fn are_related(a: &str, b: &str) -> bool {
    let (a, b) = (module_of(a), module_of(b));
    !a.is_empty() && !b.is_empty() && (a.starts_with(&b) || b.starts_with(&a))
}

/// Files that import each other by way of others.
fn in_circles(imports: &Imports) -> BTreeSet<String> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut left = vec![from];
        while let Some(file) = left.pop() {
            for next in imports[file].iter().filter(|next| !are_related(file, next)) {
                if reached.insert(next) {
                    left.push(next);
                }
            }
        }
        reached
    };
    imports.keys().filter(|file| reached(file).contains(file)).cloned().collect()
}

#[test]
fn no_file_imports_from_above() {
    let mut found = BTreeSet::new();
    for of in &CRATES {
        let imports = imports(of);
        assert!(imports.len() > 30, "{}: the sources are elsewhere", of.src);
        let fits_none = |prefix: &str| !imports.keys().any(|file| file.starts_with(prefix));
        let stale = of.floors.iter().filter(|(prefix, _)| fits_none(prefix));
        found.extend(stale.map(|(prefix, _)| format!("{}: no file is called {prefix}", of.name)));
        for (file, targets) in &imports {
            let up = targets.iter().filter(|to| of.floor(to) > of.floor(file) && !are_related(file, to));
            found.extend(up.map(|to| format!("{}: {file} -> {to}", of.name)));
        }
        found.extend(in_circles(&imports).into_iter().map(|file| format!("{}: in a circle: {file}", of.name)));
    }
    assert!(found.is_empty(), "imports from above, or files in a circle: {found:#?}");
}
