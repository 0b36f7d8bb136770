//! MPI error classes and the error value that every core function returns.
//!
//! A core function returns `Result<T>`. An [`Error`] carries the class (numbered as in the MPI-5 standard ABI; faces
//! renumber it) and a sentence about the offending value. The function's name, the communicator and the rank are
//! added where the error handler is invoked (`raise`), so a message here says only what is wrong and why.

use crate::consts;
use crate::handle::File;
use crate::status::Status;

/// An MPI error class, numbered as in the standard ABI.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Class(pub i32);

#[allow(non_upper_case_globals, missing_docs)]
impl Class {
    pub const Success: Class = Class(0);
    pub const Buffer: Class = Class(1);
    pub const Count: Class = Class(2);
    pub const Type: Class = Class(3);
    pub const Tag: Class = Class(4);
    pub const Comm: Class = Class(5);
    pub const Rank: Class = Class(6);
    pub const Request: Class = Class(7);
    pub const Root: Class = Class(8);
    pub const Group: Class = Class(9);
    pub const Op: Class = Class(10);
    pub const Topology: Class = Class(11);
    pub const Dims: Class = Class(12);
    pub const Arg: Class = Class(13);
    pub const Unknown: Class = Class(14);
    pub const Truncate: Class = Class(15);
    pub const Other: Class = Class(16);
    pub const Intern: Class = Class(17);
    pub const Pending: Class = Class(18);
    pub const InStatus: Class = Class(19);
    pub const Access: Class = Class(20);
    pub const Amode: Class = Class(21);
    pub const Assert: Class = Class(22);
    pub const BadFile: Class = Class(23);
    pub const Base: Class = Class(24);
    pub const Conversion: Class = Class(25);
    pub const Disp: Class = Class(26);
    pub const DupDatarep: Class = Class(27);
    pub const FileExists: Class = Class(28);
    pub const FileInUse: Class = Class(29);
    pub const File: Class = Class(30);
    pub const InfoKey: Class = Class(31);
    pub const InfoNokey: Class = Class(32);
    pub const InfoValue: Class = Class(33);
    pub const Info: Class = Class(34);
    pub const Io: Class = Class(35);
    pub const Keyval: Class = Class(36);
    pub const Locktype: Class = Class(37);
    pub const Name: Class = Class(38);
    pub const NoMem: Class = Class(39);
    pub const NotSame: Class = Class(40);
    pub const NoSpace: Class = Class(41);
    pub const NoSuchFile: Class = Class(42);
    pub const Port: Class = Class(43);
    pub const Quota: Class = Class(44);
    pub const ReadOnly: Class = Class(45);
    pub const RmaAttach: Class = Class(46);
    pub const RmaConflict: Class = Class(47);
    pub const RmaRange: Class = Class(48);
    pub const RmaShared: Class = Class(49);
    pub const RmaSync: Class = Class(50);
    pub const Service: Class = Class(51);
    pub const Size: Class = Class(52);
    pub const Spawn: Class = Class(53);
    pub const UnsupportedDatarep: Class = Class(54);
    pub const UnsupportedOperation: Class = Class(55);
    pub const Win: Class = Class(56);
    pub const RmaFlavor: Class = Class(57);
    pub const ProcAborted: Class = Class(58);
    pub const ValueTooLarge: Class = Class(59);
    pub const Session: Class = Class(60);
    pub const Errhandler: Class = Class(61);
    pub const Abi: Class = Class(62);
    // Codes of the tool interface, which are classes, too; its functions have them from `consts`.
    pub const ToolCannotInit: Class = Class(consts::T_ERR_CANNOT_INIT);
    pub const ToolNotAccessible: Class = Class(consts::T_ERR_NOT_ACCESSIBLE);
    pub const ToolNotInitialized: Class = Class(consts::T_ERR_NOT_INITIALIZED);
    pub const ToolNotSupported: Class = Class(consts::T_ERR_NOT_SUPPORTED);
    pub const ToolMemory: Class = Class(consts::T_ERR_MEMORY);
    pub const ToolInvalid: Class = Class(consts::T_ERR_INVALID);
    pub const ToolInvalidIndex: Class = Class(consts::T_ERR_INVALID_INDEX);
    pub const ToolInvalidItem: Class = Class(consts::T_ERR_INVALID_ITEM);
    pub const ToolInvalidSession: Class = Class(consts::T_ERR_INVALID_SESSION);
    pub const ToolInvalidHandle: Class = Class(consts::T_ERR_INVALID_HANDLE);
    pub const ToolInvalidName: Class = Class(consts::T_ERR_INVALID_NAME);
    pub const ToolOutOfHandles: Class = Class(consts::T_ERR_OUT_OF_HANDLES);
    pub const ToolOutOfSessions: Class = Class(consts::T_ERR_OUT_OF_SESSIONS);
    pub const ToolCvarSetNotNow: Class = Class(consts::T_ERR_CVAR_SET_NOT_NOW);
    pub const ToolCvarSetNever: Class = Class(consts::T_ERR_CVAR_SET_NEVER);
    pub const ToolPvarNoWrite: Class = Class(consts::T_ERR_PVAR_NO_WRITE);
    pub const ToolPvarNoStartstop: Class = Class(consts::T_ERR_PVAR_NO_STARTSTOP);
    pub const ToolPvarNoAtomic: Class = Class(consts::T_ERR_PVAR_NO_ATOMIC);
    // Of fault tolerance (ULFM), which the standard's ABI does not number.
    pub const ProcFailed: Class = Class(0x3f01);
    pub const ProcFailedPending: Class = Class(0x3f02);
    pub const Revoked: Class = Class(0x3f03);
}

/// Standard name and one-line text of every predefined error class.
pub const CLASSES: &[(Class, &str)] = &[
    (Class::Success, "MPI_SUCCESS"),
    (Class::Buffer, "MPI_ERR_BUFFER"),
    (Class::Count, "MPI_ERR_COUNT"),
    (Class::Type, "MPI_ERR_TYPE"),
    (Class::Tag, "MPI_ERR_TAG"),
    (Class::Comm, "MPI_ERR_COMM"),
    (Class::Rank, "MPI_ERR_RANK"),
    (Class::Request, "MPI_ERR_REQUEST"),
    (Class::Root, "MPI_ERR_ROOT"),
    (Class::Group, "MPI_ERR_GROUP"),
    (Class::Op, "MPI_ERR_OP"),
    (Class::Topology, "MPI_ERR_TOPOLOGY"),
    (Class::Dims, "MPI_ERR_DIMS"),
    (Class::Arg, "MPI_ERR_ARG"),
    (Class::Unknown, "MPI_ERR_UNKNOWN"),
    (Class::Truncate, "MPI_ERR_TRUNCATE"),
    (Class::Other, "MPI_ERR_OTHER"),
    (Class::Intern, "MPI_ERR_INTERN"),
    (Class::Pending, "MPI_ERR_PENDING"),
    (Class::InStatus, "MPI_ERR_IN_STATUS"),
    (Class::Access, "MPI_ERR_ACCESS"),
    (Class::Amode, "MPI_ERR_AMODE"),
    (Class::Assert, "MPI_ERR_ASSERT"),
    (Class::BadFile, "MPI_ERR_BAD_FILE"),
    (Class::Base, "MPI_ERR_BASE"),
    (Class::Conversion, "MPI_ERR_CONVERSION"),
    (Class::Disp, "MPI_ERR_DISP"),
    (Class::DupDatarep, "MPI_ERR_DUP_DATAREP"),
    (Class::FileExists, "MPI_ERR_FILE_EXISTS"),
    (Class::FileInUse, "MPI_ERR_FILE_IN_USE"),
    (Class::File, "MPI_ERR_FILE"),
    (Class::InfoKey, "MPI_ERR_INFO_KEY"),
    (Class::InfoNokey, "MPI_ERR_INFO_NOKEY"),
    (Class::InfoValue, "MPI_ERR_INFO_VALUE"),
    (Class::Info, "MPI_ERR_INFO"),
    (Class::Io, "MPI_ERR_IO"),
    (Class::Keyval, "MPI_ERR_KEYVAL"),
    (Class::Locktype, "MPI_ERR_LOCKTYPE"),
    (Class::Name, "MPI_ERR_NAME"),
    (Class::NoMem, "MPI_ERR_NO_MEM"),
    (Class::NotSame, "MPI_ERR_NOT_SAME"),
    (Class::NoSpace, "MPI_ERR_NO_SPACE"),
    (Class::NoSuchFile, "MPI_ERR_NO_SUCH_FILE"),
    (Class::Port, "MPI_ERR_PORT"),
    (Class::Quota, "MPI_ERR_QUOTA"),
    (Class::ReadOnly, "MPI_ERR_READ_ONLY"),
    (Class::RmaAttach, "MPI_ERR_RMA_ATTACH"),
    (Class::RmaConflict, "MPI_ERR_RMA_CONFLICT"),
    (Class::RmaRange, "MPI_ERR_RMA_RANGE"),
    (Class::RmaShared, "MPI_ERR_RMA_SHARED"),
    (Class::RmaSync, "MPI_ERR_RMA_SYNC"),
    (Class::Service, "MPI_ERR_SERVICE"),
    (Class::Size, "MPI_ERR_SIZE"),
    (Class::Spawn, "MPI_ERR_SPAWN"),
    (Class::UnsupportedDatarep, "MPI_ERR_UNSUPPORTED_DATAREP"),
    (Class::UnsupportedOperation, "MPI_ERR_UNSUPPORTED_OPERATION"),
    (Class::Win, "MPI_ERR_WIN"),
    (Class::RmaFlavor, "MPI_ERR_RMA_FLAVOR"),
    (Class::ProcAborted, "MPI_ERR_PROC_ABORTED"),
    (Class::ValueTooLarge, "MPI_ERR_VALUE_TOO_LARGE"),
    (Class::Session, "MPI_ERR_SESSION"),
    (Class::Errhandler, "MPI_ERR_ERRHANDLER"),
    (Class::Abi, "MPI_ERR_ABI"),
    (Class::ToolCannotInit, "MPI_T_ERR_CANNOT_INIT"),
    (Class::ToolNotAccessible, "MPI_T_ERR_NOT_ACCESSIBLE"),
    (Class::ToolNotInitialized, "MPI_T_ERR_NOT_INITIALIZED"),
    (Class::ToolNotSupported, "MPI_T_ERR_NOT_SUPPORTED"),
    (Class::ToolMemory, "MPI_T_ERR_MEMORY"),
    (Class::ToolInvalid, "MPI_T_ERR_INVALID"),
    (Class::ToolInvalidIndex, "MPI_T_ERR_INVALID_INDEX"),
    (Class::ToolInvalidItem, "MPI_T_ERR_INVALID_ITEM"),
    (Class::ToolInvalidSession, "MPI_T_ERR_INVALID_SESSION"),
    (Class::ToolInvalidHandle, "MPI_T_ERR_INVALID_HANDLE"),
    (Class::ToolInvalidName, "MPI_T_ERR_INVALID_NAME"),
    (Class::ToolOutOfHandles, "MPI_T_ERR_OUT_OF_HANDLES"),
    (Class::ToolOutOfSessions, "MPI_T_ERR_OUT_OF_SESSIONS"),
    (Class::ToolCvarSetNotNow, "MPI_T_ERR_CVAR_SET_NOT_NOW"),
    (Class::ToolCvarSetNever, "MPI_T_ERR_CVAR_SET_NEVER"),
    (Class::ToolPvarNoWrite, "MPI_T_ERR_PVAR_NO_WRITE"),
    (Class::ToolPvarNoStartstop, "MPI_T_ERR_PVAR_NO_STARTSTOP"),
    (Class::ToolPvarNoAtomic, "MPI_T_ERR_PVAR_NO_ATOMIC"),
    (Class::ProcFailed, "MPIX_ERR_PROC_FAILED"),
    (Class::ProcFailedPending, "MPIX_ERR_PROC_FAILED_PENDING"),
    (Class::Revoked, "MPIX_ERR_REVOKED"),
];

/// The failure of an MPI operation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The error class.
    pub class: Class,
    /// User-defined error code when a callback returned one (standard numbering otherwise): what the call returns.
    pub code: i32,
    /// What is wrong, with the offending value.
    pub message: String,
    /// The file whose error handler gets the error, when that is not the call's own object (MPI_Wait and its kin).
    pub file: Option<File>,
    /// What has arrived all the same, when the operation was a receive: a message that was too long has a source and a tag.
    pub received: Option<Status>,
}

impl Error {
    /// An error of `class` described by `message`.
    #[cold]
    pub fn new(class: Class, message: impl Into<String>) -> Error {
        Error { class, code: class.0, message: message.into(), file: None, received: None }
    }
    /// A callback of the program returned `code`: pass it on unchanged.
    pub fn user(code: i32) -> Error {
        let message = format!("a callback of the program returned error code {code}");
        Error { class: Class::Other, code, message, file: None, received: None }
    }
    /// A receive has failed after its message came.
    pub fn of_receive(self, received: Status) -> Error {
        Error { received: Some(received), ..self }
    }
    /// An operation on `file` has failed in a call that does not name the file.
    pub fn on_file(self, file: File) -> Error {
        Error { file: Some(file), ..self }
    }
}

/// Result of a core function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Shorthand: `fail(Class::Rank, format!(...))`.
#[cold]
pub fn fail<T>(class: Class, message: impl Into<String>) -> Result<T> {
    Err(Error::new(class, message))
}
