//! The second tier's largest suite: MPICH 4.0.2's own tests, compiled by Debian's MPICH, under vmpi with MPICH's ABI. All of its lists
//! but `testlist.dtp` (which takes hours under MPICH, too). What may fail, and why, is in tests/data/mpich-suite-expected.tsv.

// A module, so that `cargo xtask test --tier 2 mpich_suite` finds them by name.
mod mpich_suite {
    use std::collections::BTreeSet;
    use std::fs;
    use vmpi_tests::mpich_suite::{directory, run};

    macro_rules! lists {
        ($($name:ident)*) => {
            const LISTS: &[&str] = &[$(stringify!($name)),*];

            $(
                #[test]
                #[ignore = "second tier"]
                fn $name() {
                    run(stringify!($name));
                }
            )*
        };
    }

    lists! { attr coll comm cxx datatype errhan errors f08 f77 f90 group impls info init io mpi_t part pt2pt rma spawn threads topo }

    #[test]
    #[ignore = "second tier"]
    fn no_list_is_left_out() {
        let suite = directory();
        let text = fs::read_to_string(suite.join("testlist")).expect("the suite has a list of its lists");
        let all = text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
        let missing: BTreeSet<&str> = all.filter(|list| !LISTS.contains(list)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
