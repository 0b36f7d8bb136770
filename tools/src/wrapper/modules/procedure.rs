//! What the functions of mpi.h are in Fortran (MPI 5.0 chapter 19 and annex A).

use super::header::{self, Argument, Prototype};

/// The types of handles.
pub const HANDLES: [&str; 11] = [
    "MPI_Comm",
    "MPI_Datatype",
    "MPI_Errhandler",
    "MPI_File",
    "MPI_Group",
    "MPI_Info",
    "MPI_Message",
    "MPI_Op",
    "MPI_Request",
    "MPI_Session",
    "MPI_Win",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TYPE(*): any buffer.
    Choice,
    Integer,
    Logical,
    Address,
    Count,
    Offset,
    Handle(String),
    Status,
    /// CHARACTER(LEN=*)
    Text,
    /// TYPE(C_PTR) in mpi_f08, an address or a pointer in the other forms.
    Pointer,
    /// A procedure of this abstract interface.
    Procedure(String),
}

/// How many: one, an array of assumed size, or an array with the given first dimension(s).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Scalar,
    Array,
    Leading(&'static str),
}

/// A dummy argument. What the call may change is INTENT(INOUT) where MPI says OUT: it asks no more of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dummy {
    pub name: String,
    pub kind: Kind,
    pub shape: Shape,
    pub only_in: bool,
}

#[derive(Clone, Debug)]
pub struct Procedure {
    /// Without MPI_.
    pub name: String,
    pub dummies: Vec<Dummy>,
    /// Buffers are used after the call returns.
    pub goes_on: bool,
    /// Deprecated, with INTEGER attributes: not in mpi_f08.
    pub old: bool,
}

impl Procedure {
    /// mpi_f08 passes descriptors, which another symbol expects.
    pub fn has_choice(&self) -> bool {
        self.dummies.iter().any(|dummy| dummy.kind == Kind::Choice)
    }
}

/// Arguments that are LOGICAL where C has int.
const LOGICALS: [&str; 8] = ["flag", "periods", "reorder", "remain_dims", "commute", "high", "weighted", "is_set"];

/// What C alone has: the tool interface, conversions, large counts (which are other forms of a procedure, see `large`).
fn in_fortran(name: &str) -> bool {
    let ends = ["_c", "_toint", "_fromint"];
    name != "Pcontrol" && !name.starts_with("T_") && !ends.iter().any(|end| name.ends_with(end))
}

/// Two procedures of one name must differ in kinds of arguments that the compiler tells apart: MPI_ADDRESS_KIND is
/// MPI_COUNT_KIND here, and procedures are all alike.
fn differ(a: &Procedure, b: &Procedure) -> bool {
    let kinds = |procedure: &Procedure| -> Vec<Kind> {
        let of = |dummy: &Dummy| match &dummy.kind {
            Kind::Address | Kind::Offset => Kind::Count,
            Kind::Procedure(_) => Kind::Procedure(String::new()),
            other => other.clone(),
        };
        procedure.dummies.iter().map(of).collect()
    };
    kinds(a) != kinds(b)
}

/// The form of a procedure with large counts, from the C function with `_c`, if mpi_f08 can have both.
pub fn large(mpi_h: &str, of: &Procedure) -> Option<Procedure> {
    let name = format!("{}_c", of.name);
    let prototype = header::prototypes(mpi_h).into_iter().find(|one| one.name == name)?;
    let form = procedure(&Prototype { name: of.name.clone(), ..prototype });
    differ(of, &form).then_some(form)
}

pub fn all(mpi_h: &str) -> Vec<Procedure> {
    header::prototypes(mpi_h).iter().filter(|one| in_fortran(&one.name)).map(procedure).collect()
}

fn procedure(prototype: &Prototype) -> Procedure {
    let name = prototype.name.as_str();
    let old = name.starts_with("Attr_") || name.starts_with("Keyval_");
    let dummies: Vec<Dummy> = prototype
        .arguments
        .iter()
        .filter(|argument| {
            !matches!(
                (name, argument.name.as_str()),
                (_, "argc") | ("Init" | "Init_thread" | "Info_create_env", "argv")
            )
        })
        .map(|argument| dummy(name, argument, old))
        .collect();
    let gives_request = dummies.iter().any(|dummy| dummy.kind == Kind::Handle("MPI_Request".into()) && !dummy.only_in);
    let goes_on = gives_request || name.ends_with("_begin") || name.ends_with("_end") || name.starts_with("Win_");
    Procedure { name: name.into(), dummies, goes_on, old }
}

fn dummy(function: &str, argument: &Argument, old: bool) -> Dummy {
    let Argument { name, ty, stars, brackets, constant } = argument;
    let is_text = ty == "char";
    let arrays = brackets.matches('[').count();
    // One star or bracket is the string itself.
    let arrays = if is_text { (arrays + stars).saturating_sub(1) } else { arrays };
    let kind = match ty.as_str() {
        "void" if ["attribute_val", "extra_state"].contains(&name.as_str()) => {
            if old {
                Kind::Integer
            } else {
                Kind::Address
            }
        }
        "void" if ["baseptr", "buffer_addr"].contains(&name.as_str()) => Kind::Pointer,
        "void" => Kind::Choice,
        "int" if LOGICALS.contains(&name.as_str()) => Kind::Logical,
        "int" => Kind::Integer,
        "char" => Kind::Text,
        "MPI_Aint" => Kind::Address,
        "MPI_Count" => Kind::Count,
        "MPI_Offset" => Kind::Offset,
        "MPI_Status" => Kind::Status,
        handle if HANDLES.contains(&handle) => Kind::Handle(handle.into()),
        function => Kind::Procedure(function.replace("errhandler_fn", "errhandler_function")),
    };
    let shape = match (arrays, brackets.as_str()) {
        (_, "[][3]") => Shape::Leading("3, "),
        (2, _) => Shape::Leading("count, "),
        (0, _) if !name.starts_with("array_of_") => Shape::Scalar,
        _ => Shape::Array,
    };
    let changes = (*stars > usize::from(is_text && *constant) || arrays > 0) && !constant;
    let changes = changes && !matches!(kind, Kind::Procedure(_)) && name != "ranges" && function != "Cancel";
    // Their addresses count, and what lies there may change.
    let changes = changes || matches!(function, "Get_address" | "Win_detach") && kind == Kind::Choice;
    // C's `void *` says nothing of these: values that are set go in, MPI_Comm_get_attr's comes out.
    let value_in = matches!(kind, Kind::Address | Kind::Integer)
        && ty == "void"
        && !function.ends_with("get_attr")
        && function != "Attr_get";
    let name = if name == "indx" { "index".into() } else { name.clone() };
    let only_in = !changes || value_in || (is_text && arrays > 0);
    Dummy { name, kind, shape, only_in }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Procedure {
        all(super::super::MPI_H).into_iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    fn shown(name: &str) -> Vec<(String, Kind, Shape, bool)> {
        find(name).dummies.into_iter().map(|d| (d.name, d.kind, d.shape, d.only_in)).collect()
    }

    #[test]
    fn procedures_of_each_sort() {
        let request = Kind::Handle("MPI_Request".into());
        assert!(all(super::super::MPI_H).len() > 380);
        assert!(find("Isend").goes_on && find("Isend").has_choice() && !find("Send").goes_on);
        assert_eq!(shown("Init_thread").len(), 2);
        assert_eq!(shown("Wait")[0], ("request".into(), request.clone(), Shape::Scalar, false));
        assert_eq!(shown("Waitall")[1], ("array_of_requests".into(), request, Shape::Array, false));
        assert_eq!(shown("Iprobe")[3], ("flag".into(), Kind::Logical, Shape::Scalar, false));
        assert_eq!(shown("Group_range_incl")[2].2, Shape::Leading("3, "));
        assert_eq!(shown("Comm_set_attr")[2], ("attribute_val".into(), Kind::Address, Shape::Scalar, true));
        assert_eq!(shown("Comm_get_attr")[2], ("attribute_val".into(), Kind::Address, Shape::Scalar, false));
        assert_eq!(shown("Attr_put")[2].1, Kind::Integer);
        assert_eq!(shown("Info_set")[1], ("key".into(), Kind::Text, Shape::Scalar, true));
        assert_eq!(shown("Error_string")[1], ("string".into(), Kind::Text, Shape::Scalar, false));
        assert_eq!(shown("Unpack_external")[0], ("datarep".into(), Kind::Text, Shape::Scalar, true));
        assert_eq!(shown("Comm_spawn")[1], ("argv".into(), Kind::Text, Shape::Array, true));
        assert_eq!(shown("Comm_spawn_multiple")[2].2, Shape::Leading("count, "));
        assert_eq!(shown("Alloc_mem")[2].1, Kind::Pointer);
        let large = large(super::super::MPI_H, &find("Gatherv")).unwrap();
        let count = |i: usize| (large.dummies[i].kind.clone(), large.dummies[i].shape.clone());
        assert_eq!((count(1), count(4)), ((Kind::Count, Shape::Scalar), (Kind::Count, Shape::Array)));
        assert_eq!(shown("Status_get_source")[1], ("source".into(), Kind::Integer, Shape::Scalar, false));
        assert!(super::large(super::super::MPI_H, &find("Type_get_extent")).is_none(), "they cannot be told apart");
        assert!(super::large(super::super::MPI_H, &find("Op_create")).is_none());
        assert_eq!(shown("Op_create")[0].1, Kind::Procedure("MPI_User_function".into()));
    }
}
