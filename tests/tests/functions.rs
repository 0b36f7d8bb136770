//! Is docs/functions.md what the faces are? With VMPI_WRITE=1 (`cargo xtask functions`) it becomes that.

use vmpi_tests::functions::page;
use vmpi_tests::place;

#[test]
fn the_table_is_up_to_date_and_nothing_is_missing() {
    let path = place::top().join("docs/functions.md");
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
    // Nothing that a real library offers may be missing from the one that stands in for it.
    let missing: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| MPI") && line.contains("| missing |")).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
