//! mpi.h as data: prototypes and constants.

/// One argument of a C function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    /// Without `const`, stars and brackets.
    pub ty: String,
    pub stars: usize,
    /// `[]`, `[][3]`, or nothing.
    pub brackets: String,
    pub constant: bool,
}

/// A C function, without the MPI_ of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    pub name: String,
    pub arguments: Vec<Argument>,
}

/// The `int MPI_X(...)` of a header without comments inside prototypes.
pub fn prototypes(header: &str) -> Vec<Prototype> {
    let mut found = Vec::new();
    for statement in header.split(';') {
        // What stands before the prototype: comments, preprocessor lines.
        let start = statement.rfind("\nint MPI_").map(|at| at + 1);
        let Some(text) = start.map(|at| &statement[at..]) else { continue };
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((head, rest)) = words.split_once('(') else { continue };
        let (Some(name), Some((inside, _))) = (head.strip_prefix("int MPI_"), rest.rsplit_once(')')) else { continue };
        let arguments = inside.split(", ").filter(|one| !matches!(*one, "void" | "...")).map(argument).collect();
        found.push(Prototype { name: name.into(), arguments });
    }
    found
}

fn argument(text: &str) -> Argument {
    let (declarator, brackets) = match text.find('[') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let at = declarator.rfind([' ', '*']).map_or(0, |at| at + 1);
    let (ty, name) = declarator.split_at(at);
    Argument {
        name: name.into(),
        stars: ty.matches('*').count(),
        constant: ty.contains("const "),
        ty: ty.replace("const ", "").replace('*', "").trim().into(),
        brackets: brackets.into(),
    }
}

/// Names and values of `#define NAME ((TYPE)VALUE)`, `#define NAME VALUE` and enumerators; the type if one is named.
pub fn constants(header: &str) -> Vec<(String, Option<String>, i64)> {
    let mut found: Vec<(String, Option<String>, i64)> = Vec::new();
    for line in header.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, value) = match words[..] {
            ["#define", name, value] => (name, value),
            [name, "=", value] => (name, value.trim_end_matches(',')),
            _ => continue,
        };
        if !name.starts_with("MPI_") {
            continue;
        }
        // A second name of another constant.
        if let Some((_, ty, number)) = found.iter().find(|known| known.0 == value).cloned() {
            found.push((name.into(), ty, number));
            continue;
        }
        let typed = value.strip_prefix("((").and_then(|rest| rest.trim_end_matches(')').split_once(')'));
        let (ty, value) = typed.map_or((None, value), |(ty, value)| (Some(ty.to_owned()), value));
        let number = match value.strip_prefix("0x") {
            Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16),
            None => value.parse(),
        };
        if let Ok(number) = number {
            found.push((name.into(), ty, number));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prototype() {
        let text = "/* x */\nint MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3],\n    const void *p);\n";
        let found = prototypes(text);
        assert_eq!((found.len(), found[0].name.as_str()), (1, "Group_range_incl"));
        let [group, n, ranges, p] = &found[0].arguments[..] else { panic!("four arguments") };
        assert_eq!((group.ty.as_str(), group.name.as_str(), group.stars), ("MPI_Group", "group", 0));
        assert_eq!((n.ty.as_str(), n.stars), ("int", 0));
        assert_eq!((ranges.name.as_str(), ranges.brackets.as_str(), ranges.constant), ("ranges", "[][3]", false));
        assert_eq!((p.ty.as_str(), p.stars, p.constant), ("void", 1, true));
    }

    #[test]
    fn constants_of_each_form() {
        let text =
            "#define MPI_A ((MPI_Comm)0x101)\n#define MPI_B 12\n enum {\n MPI_C = -3,\n};\n#define MPI_D MPI_A\n";
        let found = constants(text);
        let comm = Some("MPI_Comm".to_owned());
        assert_eq!(
            found,
            [
                ("MPI_A".into(), comm.clone(), 0x101),
                ("MPI_B".into(), None, 12),
                ("MPI_C".into(), None, -3),
                ("MPI_D".into(), comm, 0x101)
            ]
        );
    }
}
