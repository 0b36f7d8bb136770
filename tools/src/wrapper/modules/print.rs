//! mpif.h, and the modules mpi and mpi_f08, as text.
//!
//! The modules hold declarations only: procedures are the library's, and so is what stands behind MPI_IN_PLACE and the like.

use super::constants::{Constant, Type};
use super::procedure::{Dummy, HANDLES, Kind, Procedure, Shape, large};
use std::fmt::Write;

/// Names of other procedures than those of the table, and what the two older forms declare of them.
const FUNCTIONS: [&str; 8] = [
    "MPI_WTIME",
    "MPI_WTICK",
    "PMPI_WTIME",
    "PMPI_WTICK",
    "MPI_AINT_ADD",
    "MPI_AINT_DIFF",
    "PMPI_AINT_ADD",
    "PMPI_AINT_DIFF",
];
const CALLBACKS: [&str; 13] = [
    "MPI_NULL_COPY_FN",
    "MPI_NULL_DELETE_FN",
    "MPI_DUP_FN",
    "MPI_COMM_NULL_COPY_FN",
    "MPI_COMM_NULL_DELETE_FN",
    "MPI_COMM_DUP_FN",
    "MPI_TYPE_NULL_COPY_FN",
    "MPI_TYPE_NULL_DELETE_FN",
    "MPI_TYPE_DUP_FN",
    "MPI_WIN_NULL_COPY_FN",
    "MPI_WIN_NULL_DELETE_FN",
    "MPI_WIN_DUP_FN",
    "MPI_CONVERSION_FN_NULL",
];

/// Parameters and common blocks, in lines that are right in fixed and in free form.
fn declarations(constants: &[Constant]) -> String {
    let mut text = String::new();
    for Constant { name, ty, value } in constants {
        let ty = if matches!(ty, Type::Offset) { "INTEGER*8" } else { "INTEGER" };
        let _ = writeln!(text, "      {ty} {name}\n      PARAMETER ({name}={value})");
    }
    text.push_str(
        "      LOGICAL MPI_SUBARRAYS_SUPPORTED
      PARAMETER (MPI_SUBARRAYS_SUPPORTED=.FALSE.)
      LOGICAL MPI_ASYNC_PROTECTS_NONBLOCKING
      PARAMETER (MPI_ASYNC_PROTECTS_NONBLOCKING=.FALSE.)
      INTEGER MPI_BOTTOM, MPI_IN_PLACE
      INTEGER MPI_STATUS_IGNORE(MPI_STATUS_SIZE)
      INTEGER MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)
      INTEGER MPI_ERRCODES_IGNORE(1)
      INTEGER MPI_UNWEIGHTED(1), MPI_WEIGHTS_EMPTY(1)
      CHARACTER*1 MPI_ARGVS_NULL(1,1), MPI_ARGV_NULL(1)
      COMMON /MPIPRIV1/ MPI_BOTTOM,MPI_IN_PLACE,MPI_STATUS_IGNORE
      COMMON /MPIPRIV2/ MPI_STATUSES_IGNORE,MPI_ERRCODES_IGNORE
      COMMON /MPIPRIVC/ MPI_ARGVS_NULL,MPI_ARGV_NULL
      COMMON /MPIFCMB5/ MPI_UNWEIGHTED
      COMMON /MPIFCMB9/ MPI_WEIGHTS_EMPTY
      SAVE /MPIPRIV1/,/MPIPRIV2/,/MPIPRIVC/,/MPIFCMB5/,/MPIFCMB9/
",
    );
    for name in FUNCTIONS {
        let ty = if name.contains("AINT") { "INTEGER*8" } else { "DOUBLE PRECISION" };
        let _ = writeln!(text, "      {ty} {name}\n      EXTERNAL {name}");
    }
    for name in CALLBACKS {
        let _ = writeln!(text, "      EXTERNAL {name}");
    }
    text
}

const WRITTEN: &str = "! Made by vmpifort -modules from mpi.h.\n";

pub fn mpif_h(constants: &[Constant]) -> String {
    format!("{WRITTEN}{}", declarations(constants))
}

/// The types of mpi_f08, which the module mpi has, too (MPI 4.1 section 19.1.3): with BIND they are the same in both.
fn types() -> String {
    let mut text = String::new();
    for handle in HANDLES {
        let _ = writeln!(text, "type, bind(C) :: {handle}\n  integer :: MPI_VAL\nend type");
    }
    text.push_str(STATUS);
    text
}

/// The module mpi: what mpif.h has, the types of mpi_f08, and an interface for each procedure.
pub fn module_mpi(constants: &[Constant], procedures: &[Procedure]) -> String {
    let mut text = format!("{WRITTEN}module mpi\nimplicit none\n{}{}", types(), declarations(constants));
    for procedure in procedures {
        for prefix in ["MPI_", "PMPI_"] {
            let name = format!("{prefix}{}", procedure.name);
            text.push_str("interface\n");
            subroutine(&mut text, &name, procedure, false);
            text.push_str("end interface\n");
        }
    }
    text.push_str(SIZEOF);
    text.push_str("end module mpi\n");
    text
}

/// The module mpi_f08.
pub fn module_f08(mpi_h: &str, constants: &[Constant], procedures: &[Procedure]) -> String {
    let mut text = format!("{WRITTEN}module mpi_f08\nuse, intrinsic :: iso_c_binding, only: c_ptr\nimplicit none\n");
    text.push_str(&types());
    text.push_str(F08_LOGICALS);
    for Constant { name, ty, value } in constants {
        let _ = match ty {
            Type::Integer => writeln!(text, "integer, parameter :: {name} = {value}"),
            Type::Offset => writeln!(text, "integer(MPI_OFFSET_KIND), parameter :: {name} = {value}"),
            Type::Handle(ty) => writeln!(text, "type({ty}), parameter :: {name} = {ty}({value})"),
        };
    }
    text.push_str(F08_VARIABLES);
    for (operator, suffix) in [("==", "eq"), ("/=", "neq")] {
        let _ = writeln!(text, "interface operator({operator})");
        for handle in HANDLES {
            let kind = handle.trim_start_matches("MPI_").to_lowercase();
            let _ = writeln!(
                text,
                "  logical function {kind}_{suffix}(a, b) bind(C, name=\"__mpi_f08_types_MOD_mpi_{kind}_{suffix}\")\n    \
                 import :: {handle}\n    type({handle}), intent(in) :: a, b\n  end function"
            );
        }
        text.push_str("end interface\n");
    }
    text.push_str(F08_CALLBACKS);
    for procedure in procedures.iter().filter(|one| !one.old) {
        for (prefix, specific) in [("MPI_", "MPI_"), ("PMPI_", "PMPIR_")] {
            let suffix = if procedure.has_choice() { "_f08ts" } else { "_f08" };
            let _ = writeln!(text, "interface {prefix}{}", procedure.name);
            subroutine(&mut text, &format!("{specific}{}{suffix}", procedure.name), procedure, true);
            if let Some(large) = large(mpi_h, procedure) {
                subroutine(&mut text, &format!("{specific}{}{suffix}_large", procedure.name), &large, true);
            }
            text.push_str("end interface\n");
        }
    }
    text.push_str(F08_FUNCTIONS);
    text.push_str(SIZEOF);
    text.push_str("end module mpi_f08\n");
    text
}

/// An interface body.
fn subroutine(text: &mut String, name: &str, procedure: &Procedure, f08: bool) {
    let names: Vec<&str> = procedure.dummies.iter().map(|dummy| dummy.name.as_str()).chain(["ierror"]).collect();
    let lines: Vec<String> = names.chunks(5).map(|chunk| chunk.join(", ")).collect();
    let _ = writeln!(text, "  subroutine {name}({})\n    import", lines.join(", &\n    "));
    for dummy in &procedure.dummies {
        let _ = match (f08, &dummy.kind) {
            (false, Kind::Procedure(_)) => writeln!(text, "    external :: {}", dummy.name),
            (false, Kind::Choice | Kind::Pointer) => {
                writeln!(text, "    !GCC$ ATTRIBUTES NO_ARG_CHECK :: {0}\n    type(*), dimension(*) :: {0}", dummy.name)
            }
            _ => writeln!(text, "    {} :: {}", attributes(dummy, procedure.goes_on, f08), dummy.name),
        };
    }
    let optional = if f08 { "optional, " } else { "" };
    let _ = writeln!(text, "    integer, {optional}intent(out) :: ierror\n  end subroutine");
}

/// Type, shape and intent of a dummy argument.
fn attributes(dummy: &Dummy, goes_on: bool, f08: bool) -> String {
    let ty = match &dummy.kind {
        Kind::Choice => "type(*), dimension(..)".into(),
        Kind::Integer => "integer".into(),
        Kind::Logical => "logical".into(),
        Kind::Address => "integer(MPI_ADDRESS_KIND)".into(),
        Kind::Count => "integer(MPI_COUNT_KIND)".into(),
        Kind::Offset => "integer(MPI_OFFSET_KIND)".into(),
        Kind::Handle(name) if f08 => format!("type({name})"),
        Kind::Status if f08 => "type(MPI_Status)".into(),
        Kind::Handle(_) | Kind::Status => "integer".into(),
        Kind::Text => "character(len=*)".into(),
        Kind::Pointer => "type(c_ptr)".into(),
        Kind::Procedure(name) => return format!("procedure({name})"),
    };
    let fields = if dummy.kind == Kind::Status && !f08 { "MPI_STATUS_SIZE" } else { "" };
    let shape = match (&dummy.shape, fields) {
        (Shape::Scalar, "") => String::new(),
        (Shape::Scalar, fields) => format!(", dimension({fields})"),
        (Shape::Array, "") => ", dimension(*)".into(),
        (Shape::Array, fields) => format!(", dimension({fields}, *)"),
        (Shape::Leading(first), _) => format!(", dimension({first}*)"),
    };
    let intent = match dummy.kind {
        _ if dummy.only_in => ", intent(in)",
        // MPI_STATUS_IGNORE and MPI_IN_PLACE are not written.
        Kind::Status | Kind::Choice => "",
        _ => ", intent(inout)",
    };
    let asynchronous = if dummy.kind == Kind::Choice && goes_on { ", asynchronous" } else { "" };
    format!("{ty}{shape}{intent}{asynchronous}")
}

const STATUS: &str = "type, bind(C) :: MPI_Status
  integer :: MPI_SOURCE
  integer :: MPI_TAG
  integer :: MPI_ERROR
  integer, private :: internal(5)
end type
";

const F08_LOGICALS: &str = "logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.
logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false.
";

const F08_VARIABLES: &str = "integer, bind(C, name=\"MPIR_F08_MPI_BOTTOM\"), asynchronous :: MPI_BOTTOM
integer, bind(C, name=\"MPIR_F08_MPI_IN_PLACE\") :: MPI_IN_PLACE
type(MPI_Status), bind(C, name=\"MPIR_F08_MPI_STATUS_IGNORE_OBJ\") :: MPI_STATUS_IGNORE
type(MPI_Status), bind(C, name=\"MPIR_F08_MPI_STATUSES_IGNORE_OBJ\") :: MPI_STATUSES_IGNORE(1)
integer, bind(C, name=\"__mpi_f08_link_constants_MOD_mpi_errcodes_ignore\") :: MPI_ERRCODES_IGNORE(1)
integer, bind(C, name=\"__mpi_f08_link_constants_MOD_mpi_unweighted\") :: MPI_UNWEIGHTED(1)
integer, bind(C, name=\"__mpi_f08_link_constants_MOD_mpi_weights_empty\") :: MPI_WEIGHTS_EMPTY(1)
character(1), bind(C, name=\"__mpi_f08_link_constants_MOD_mpi_argv_null\") :: MPI_ARGV_NULL(1)
character(1), bind(C, name=\"__mpi_f08_link_constants_MOD_mpi_argvs_null\") :: MPI_ARGVS_NULL(1,1)
";

/// What programs give to MPI, and what MPI gives to programs for the same purpose.
const F08_CALLBACKS: &str = include_str!("callbacks.f90");

const F08_FUNCTIONS: &str = include_str!("functions.f90");

/// MPI_Sizeof: the library's procedures look at no argument but the last two.
const SIZEOF: &str = include_str!("sizeof.f90");
