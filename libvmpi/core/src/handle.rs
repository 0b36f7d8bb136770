//! Core handles: a `u32` per object, the same in every face.
//!
//! Values below 4096 are predefined objects and have exactly the value that the MPI-5 standard ABI gives them
//! (`MPI_COMM_WORLD` is 0x101 and so on); `FIRST_DYNAMIC + index` names an object that the program created.

use crate::check::made::What;

/// First handle value that does not name a predefined object.
pub const FIRST_DYNAMIC: u32 = 4096;

/// What all handle types have in common.
pub trait Handle: Copy + Eq + std::hash::Hash + std::fmt::Debug + 'static {
    /// The null handle of this kind, as the standard ABI numbers it.
    const NULL: Self;
    fn from_raw(raw: u32) -> Self;
    fn raw(self) -> u32;
    fn is_null(self) -> bool {
        self == Self::NULL
    }
    /// What the program is to free, and is told of if it does not (`vmpirun --check`). No request: they are many, and looked at in another way.
    const MADE: Option<What> = None;
    /// Index of a created object in its table; `None` for a predefined one.
    fn dynamic_index(self) -> Option<usize> {
        self.raw().checked_sub(FIRST_DYNAMIC).map(|i| i as usize)
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident = $null:literal $($made:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        #[repr(transparent)]
        pub struct $name(pub u32);
        impl Handle for $name {
            const NULL: Self = $name($null);
            $(const MADE: Option<What> = Some(What::$made);)?
            #[inline] fn from_raw(raw: u32) -> Self { $name(raw) }
            #[inline] fn raw(self) -> u32 { self.0 }
        }
    )*};
}

handles! {
    /// A communicator.
    Comm = 0x100 Comm;
    /// A group of ranks.
    Group = 0x108 Group;
    /// A one-sided window.
    Win = 0x110 Window;
    /// A file.
    File = 0x118 File;
    /// A session.
    Session = 0x120 Session;
    /// A matched message.
    Message = 0x128;
    /// An info object.
    Info = 0x130 Info;
    /// An error handler.
    Errhandler = 0x140;
    /// A request.
    Request = 0x180;
    /// A datatype.
    Datatype = 0x200 Datatype;
    /// A reduction operation.
    Op = 0x20 Op;
}

impl Comm {
    pub const WORLD: Comm = Comm(0x101);
    pub const SELF: Comm = Comm(0x102);
}
impl Group {
    pub const EMPTY: Group = Group(0x109);
}
impl Message {
    pub const NO_PROC: Message = Message(0x129);
}
impl Request {
    /// The request of every send that was complete when it was started: most are, and have nothing to remember. (Open MPI and MPICH do so as well.)
    /// The first one of the table, for as long as the process lives.
    pub(crate) const SENT: Request = Request(FIRST_DYNAMIC);
}
impl Info {
    pub const ENV: Info = Info(0x131);
}
impl Errhandler {
    pub const ARE_FATAL: Errhandler = Errhandler(0x141);
    pub const ABORT: Errhandler = Errhandler(0x142);
    pub const RETURN: Errhandler = Errhandler(0x143);
    /// Of MPICH's C++ bindings alone, in no other ABI.
    pub const THROW: Errhandler = Errhandler(0x14f);
}
