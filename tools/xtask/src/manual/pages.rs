//! Which page has which part of the guide.

use super::roff;
use crate::Result;
use std::path::Path;

/// A section of a page: its title, and the heading of the guide's page that it is made of.
type Section = (&'static str, &'static str, &'static str);

/// A page that is made of the guide alone.
pub struct Page {
    pub file: &'static str,
    name: &'static str,
    synopsis: &'static str,
    about: &'static str,
    sections: &'static [Section],
    see_also: &'static str,
}

/// Behind vmpirun's flags.
const VMPIRUN: &[Section] = &[
    ("RANKS AND CORES", "choosing-v.md", "How many ranks on a core: choosing V"),
    ("POLICIES AND BALANCE", "choosing-v.md", "Who runs next, and where"),
    ("EXIT STATUS", "deadlocks.md", "Exit codes"),
    ("ENVIRONMENT", "tuning.md", "Variables for vmpirun, vmpictl and vmpid"),
    ("ENVIRONMENT OF THE RANKS", "tuning.md", "Variables for the ranks"),
    ("FILES", "tuning.md", "Files"),
    ("EXAMPLES", "getting-started.md", "A program that was built with another MPI"),
    ("SLURM", "nodes.md", "Slurm"),
    ("MESSAGES", "faq.md", "Messages of vmpirun"),
];

/// Behind vmpictl's commands.
const VMPICTL: &[Section] = &[
    ("COMMANDS IN SHORT", "vmpictl.md", "Looking into jobs that run: vmpictl"),
    ("COLUMNS", "glossary.md", "Columns of `vmpictl ps --ranks`, `show` and `top`"),
    ("STATES", "glossary.md", "States of a rank"),
    ("EXAMPLES", "vmpictl.md", "While it runs"),
    ("WHAT A JOB WAITS FOR", "deadlocks.md", "A job that does not get on"),
    ("ENVIRONMENT", "tuning.md", "Variables for vmpirun, vmpictl and vmpid"),
    ("FILES", "tuning.md", "Files"),
];

pub const OF_THE_GUIDE: &[Page] = &[
    Page {
        file: "vmpicc.1",
        name: "vmpicc, vmpicxx, vmpifort",
        synopsis: "vmpicc [-show|-showme:...|-cc=COMPILER] [arguments of the compiler]\nvmpicxx ...\nvmpifort [-modules DIR] ...",
        about: "compile MPI programs for the MPI-5 standard ABI",
        sections: &[
            ("DESCRIPTION", "cmake.md", "The wrappers"),
            ("EXAMPLES", "getting-started.md", "vmpi's own wrappers"),
            ("CMAKE", "cmake.md", "An ordinary project"),
            ("PKG-CONFIG", "cmake.md", "pkg-config"),
            ("FILES", "tuning.md", "Files"),
        ],
        see_also: "vmpirun(1), vmpi(7), cc(1), gfortran(1), pkg-config(1)",
    },
    Page {
        file: "vmpid.1",
        name: "vmpid",
        synopsis: "vmpid [--runtime-dir DIR]",
        about: "start and watch the ranks of vmpirun's jobs on this node",
        sections: &[
            ("DESCRIPTION", "fault-tolerance.md", "Several jobs at a time"),
            ("NODES", "nodes.md", "What messages go over"),
            ("ENVIRONMENT", "tuning.md", "Variables for vmpirun, vmpictl and vmpid"),
            ("FILES", "tuning.md", "Files"),
        ],
        see_also: "vmpirun(1), vmpictl(1), vmpi(7)",
    },
    Page {
        file: "vmpi.7",
        name: "vmpi",
        synopsis: "vmpirun -V 3 ./app",
        about: "several MPI ranks per core, each a process of the operating system",
        sections: &[
            ("DESCRIPTION", "getting-started.md", "Getting started: C, Fortran, Python"),
            ("TERMS", "glossary.md", "Terms"),
            ("STATES", "glossary.md", "States of a rank"),
            ("CLOCKS", "clocks.md", "How long did my rank compute? Clocks and counters"),
            ("SEVERAL NODES", "nodes.md", "By name"),
            ("CONTAINERS", "containers.md", "What vmpi needs"),
            ("PYTHON", "mpi4py.md", "mpi4py"),
            ("MPI_T", "tuning.md", "MPI_T"),
            ("LIMITATIONS", "limitations.md", "Not yet"),
        ],
        see_also: "vmpirun(1), vmpictl(1), vmpicc(1), vmpid(1)",
    },
];

/// Names of one page.
pub const SAME: &[(&str, &str)] = &[("vmpicxx.1", "vmpicc.1"), ("vmpifort.1", "vmpicc.1")];

/// How `command` is called: all flags would be a page by themselves.
#[cfg(feature = "manual")]
pub fn synopsis(command: &str) -> String {
    let called = match command {
        "vmpirun" => "vmpirun [options] PROGRAM [arguments] [: [options] PROGRAM [arguments]]...",
        _ => "vmpictl COMMAND [options] [JOB]",
    };
    roff::section("SYNOPSIS", &format!("```\n{called}\n```"))
}

/// What stands behind the flags of `command`.
///
/// # Errors
/// The guide has no such page, or no such heading.
pub fn sections(top: &Path, command: &str) -> Result<String> {
    let (of_the_guide, more) = match command {
        "vmpirun" => (VMPIRUN, "vmpictl(1), vmpicc(1), vmpid(1), vmpi(7)"),
        _ => (VMPICTL, "vmpirun(1), vmpi(7)\n\nExit status: 0 means success, and nothing else does."),
    };
    Ok(made(top, of_the_guide)? + &roff::section("SEE ALSO", more))
}

/// A page with all of its sections.
///
/// # Errors
/// As [`sections`].
pub fn whole(top: &Path, page: &Page) -> Result<String> {
    let (title, number) = page.file.rsplit_once('.').ok_or("a page's file ends with its section")?;
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(".TH {title} {number} \"\" \"vmpi {version}\"\n");
    text.push_str(&roff::section("NAME", &format!("{} - {}", page.name, page.about)));
    text.push_str(&roff::section("SYNOPSIS", &format!("```\n{}\n```", page.synopsis)));
    text.push_str(&made(top, page.sections)?);
    Ok(text + &roff::section("SEE ALSO", page.see_also))
}

fn made(top: &Path, sections: &[Section]) -> Result<String> {
    let one = |(title, page, heading): &Section| {
        let path = top.join("docs/guide/src").join(page);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let part = roff::below(&text, heading).ok_or_else(|| format!("{}: no heading `{heading}`", path.display()))?;
        Ok(roff::section(title, &part))
    };
    sections.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::top;

    /// The guide has every heading that pages are made of, and what is made has no line that roff takes for a request of its own.
    #[test]
    fn pages_are_made_of_the_guide() {
        let mut pages: Vec<String> = OF_THE_GUIDE.iter().map(|page| whole(&top(), page).unwrap()).collect();
        pages.extend(["vmpirun", "vmpictl"].map(|name| sections(&top(), name).unwrap()));
        let known = [".TH", ".SH", ".SS", ".PP", ".TP", ".IP", ".RS", ".RE", ".nf", ".fi"];
        assert!(SAME.iter().all(|(_, as_page)| OF_THE_GUIDE.iter().any(|page| page.file == *as_page)));
        for page in pages {
            let wrong = page.lines().find(|l| l.starts_with(['.', '\'']) && !known.iter().any(|k| l.starts_with(k)));
            assert_eq!(wrong, None);
            assert!(page.contains(".SH \"SEE ALSO\"") && page.contains("vmpi(7)") | page.contains("vmpirun(1)"));
        }
        let vmpirun = sections(&top(), "vmpirun").unwrap();
        for part in [".SH \"EXIT STATUS\"", ".SH \"ENVIRONMENT\"", ".SH \"FILES\"", ".SH \"EXAMPLES\"", "\\fB124\\fR"] {
            assert!(vmpirun.contains(part), "{part}\n{vmpirun}");
        }
    }
}
