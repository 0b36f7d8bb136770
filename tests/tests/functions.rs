//! Is docs/functions.md what the faces are? With VMPI_WRITE=1 (`cargo xtask functions`) it becomes that.

use std::path::PathBuf;
use vmpi_tests::functions::page;
use vmpi_tests::place;

fn table() -> PathBuf {
    place::top().join("docs/functions.md")
}

#[test]
fn the_table_is_up_to_date() {
    let path = table();
    let page = page();
    if std::env::var_os("VMPI_WRITE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a file in docs")).expect("docs can be made");
        std::fs::write(&path, page).expect("the table can be written");
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let changed: Vec<&str> = page.lines().filter(|line| !written.lines().any(|old| old == *line)).collect();
    assert!(
        written == page,
        "docs/functions.md is out of date; run `cargo xtask functions`. New lines:\n{}",
        changed.join("\n")
    );
}

/// Nothing that a real library offers may be missing from the one that stands in for it. The table is read as written: making it takes half a minute,
/// and that it is true is the other test's matter.
#[test]
fn nothing_is_missing() {
    let page = std::fs::read_to_string(table()).expect("the table can be read");
    assert!(page.contains("| MPI_Send |"), "no table in {}", table().display());
    let missing: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| MPI") && line.contains("| missing |")).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
