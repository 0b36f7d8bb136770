//! The integer constants whose numbers differ between the ABIs: a row per constant, a column per ABI.
//!
//! The core speaks the MPI-5 standard's numbers, so that column is the row's name. The others were printed by C programs
//! from the headers of Open MPI 4.1 and MPICH 4.0; what only Open MPI 5 and MPICH 5 have is from theirs, which else agree.
//! A new kind of constant is a block of rows here and a method with a default body in `abi::Abi`.

use std::ffi::c_int;
use vmpi_core::consts::*;
use vmpi_core::errors::Class;

/// Constants of one meaning, as one ABI numbers them.
///
/// Where several core numbers share a number of the face, the first row says what the face's number means; where a core
/// number has several, the first row says which one is given out.
#[derive(Copy, Clone, Debug)]
pub struct Numbers {
    rows: &'static [[i32; 3]],
    column: usize,
}

/// The ABI has no number for it.
const NONE: i32 = i32::MIN;

/// A number that means nothing to the core, for a face's number that means nothing to the face but would to the core.
pub const MEANINGLESS: i32 = i32::MIN;

/// A bit that no set of the core's has.
pub const MEANINGLESS_BIT: i32 = 1 << 30;

/// The core's MPI_ERR_LASTCODE: codes that the program added lie above.
pub const LASTCODE: i32 = 0x3fff;

/// The bit of error codes that the program added, in MPICH, whose MPI_ERR_LASTCODE is one less.
pub const MPICH_DYNAMIC_CODE: i32 = 0x4000_0000;

impl Numbers {
    /// The core's number for the face's `number`; one that means nothing passes unchanged, or becomes
    /// [`MEANINGLESS`] if the core would see a meaning in it.
    pub fn to_core(self, number: c_int) -> i32 {
        match self.rows.iter().find(|row| row[self.column] == number && number != NONE) {
            Some(row) => row[0],
            None if self.rows.iter().any(|row| row[0] == number) => MEANINGLESS,
            None => number,
        }
    }

    /// The face's number for the core's `number`; one that means nothing passes unchanged.
    pub fn to_face(self, number: i32) -> c_int {
        let row = self.rows.iter().find(|row| row[0] == number && row[self.column] != NONE);
        row.map_or(number, |row| row[self.column])
    }

    /// As `to_core`, for a set of bits; a bit that means nothing becomes [`MEANINGLESS_BIT`].
    pub fn bits_to_core(self, bits: c_int) -> i32 {
        let known = self.rows.iter().fold(0, |all, row| all | row[self.column]);
        let stray = if bits & !known != 0 { MEANINGLESS_BIT } else { 0 };
        self.rows.iter().filter(|row| bits & row[self.column] != 0).fold(stray, |all, row| all | row[0])
    }

    /// As `to_face`, for a set of bits.
    pub fn bits_to_face(self, bits: i32) -> c_int {
        self.rows.iter().filter(|row| bits & row[0] != 0).fold(0, |all, row| all | row[self.column])
    }
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident { $($core:expr => $openmpi:expr, $mpich:expr;)* })*) => {
        /// All constants of one ABI.
        #[derive(Copy, Clone, Debug)]
        pub struct Tables {
            $($(#[$doc])* pub $table: Numbers,)*
        }

        impl Tables {
            const fn column(column: usize) -> Tables {
                Tables { $($table: Numbers { rows: &[$([$core, $openmpi, $mpich]),*], column },)* }
            }
        }
    };
}

/// The numbers of the MPI-5 standard's ABI, which are the core's.
pub const STANDARD: Tables = Tables::column(0);
/// The numbers of Open MPI.
pub const OPENMPI: Tables = Tables::column(1);
/// The numbers of MPICH.
pub const MPICH: Tables = Tables::column(2);

tables! {
    /// Special ranks.
    ranks {
        ANY_SOURCE => -1, -2;
        PROC_NULL => -2, -1;
        ROOT => -4, -3;
        UNDEFINED => -32766, -32766;
    }
    /// Special tags.
    tags {
        ANY_TAG => -1, -1;
    }
    /// Results of comparing communicators or groups.
    comparisons {
        IDENT => 0, 0;
        CONGRUENT => 1, 1;
        SIMILAR => 2, 2;
        UNEQUAL => 3, 3;
    }
    /// Kinds of locks on windows.
    locks {
        LOCK_EXCLUSIVE => 1, 234;
        LOCK_SHARED => 2, 235;
    }
    /// Assertions about windows, as bits.
    win_asserts {
        MODE_NOCHECK => 1, 1024;
        MODE_NOPRECEDE => 2, 8192;
        MODE_NOPUT => 4, 4096;
        MODE_NOSTORE => 8, 2048;
        MODE_NOSUCCEED => 16, 16384;
    }
    /// How a window was made.
    win_flavors {
        WIN_FLAVOR_CREATE => 1, 1;
        WIN_FLAVOR_ALLOCATE => 2, 2;
        WIN_FLAVOR_DYNAMIC => 3, 3;
        WIN_FLAVOR_SHARED => 4, 4;
    }
    /// Memory models of windows.
    win_models {
        WIN_UNIFIED => 0, 2;
        WIN_SEPARATE => 1, 1;
    }
    /// Kinds of virtual topologies.
    topologies {
        CART => 1, 2;
        GRAPH => 2, 1;
        DIST_GRAPH => 3, 3;
        UNDEFINED => -32766, -32766;
    }
    /// Split types.
    split_types {
        COMM_TYPE_SHARED => 0, 1;
        UNDEFINED => -32766, -32766;
        COMM_TYPE_SHARED => 9, NONE; // Open MPI's own finer types: a host is what shares memory
        COMM_TYPE_HW_UNGUIDED => 12, 3; // Open MPI 5
        COMM_TYPE_HW_GUIDED => 13, 2;
        COMM_TYPE_RESOURCE_GUIDED => NONE, 4; // MPICH from 4.1 on; MPIX_COMM_TYPE_NEIGHBORHOOD before
        COMM_TYPE_RESOURCE_GUIDED => NONE, 5; // MPIX_COMM_TYPE_NEIGHBORHOOD of those: the core takes its directory, too
    }
    /// How a datatype was made.
    combiners {
        COMBINER_NAMED => 0, 1;
        COMBINER_DUP => 1, 2;
        COMBINER_CONTIGUOUS => 2, 3;
        COMBINER_VECTOR => 3, 4;
        COMBINER_HVECTOR => 5, 6;
        COMBINER_INDEXED => 6, 7;
        COMBINER_HINDEXED => 8, 9;
        COMBINER_INDEXED_BLOCK => 9, 10;
        COMBINER_HINDEXED_BLOCK => 18, 19;
        COMBINER_STRUCT => 11, 12;
        COMBINER_SUBARRAY => 12, 13;
        COMBINER_DARRAY => 13, 14;
        COMBINER_F90_REAL => 14, 15;
        COMBINER_F90_COMPLEX => 15, 16;
        COMBINER_F90_INTEGER => 16, 17;
        COMBINER_RESIZED => 17, 18;
        COMBINER_VALUE_INDEX => NONE, 20;
    }
    /// Distributions of an array.
    distributions {
        DISTRIBUTE_NONE => 2, 123;
        DISTRIBUTE_BLOCK => 0, 121;
        DISTRIBUTE_CYCLIC => 1, 122;
    }
    /// The default argument of a distribution.
    dargs {
        DISTRIBUTE_DFLT_DARG => -1, -49767;
    }
    /// Orders of an array.
    orders {
        ORDER_C => 0, 56;
        ORDER_FORTRAN => 1, 57;
    }
    /// Levels of thread support.
    thread_levels {
        THREAD_SINGLE => 0, 0;
        THREAD_FUNNELED => 1, 1;
        THREAD_SERIALIZED => 2, 2;
        THREAD_MULTIPLE => 3, 3;
    }
    /// Classes of datatypes.
    type_classes {
        TYPECLASS_INTEGER => 1, 2;
        TYPECLASS_REAL => 2, 1;
        TYPECLASS_COMPLEX => 3, 3;
    }
    /// Keys of predefined attributes; MPICH has a second one for Fortran.
    keyvals {
        KEYVAL_INVALID => -1, 0x24000000;
        TAG_UB => 0, 0x64400001;
        IO => 2, 0x64400005;
        HOST => 1, 0x64400003;
        WTIME_IS_GLOBAL => 3, 0x64400007;
        APPNUM => 4, 0x6440000d;
        LASTUSEDCODE => 5, 0x6440000b;
        UNIVERSE_SIZE => 6, 0x64400009;
        WIN_BASE => 7, 0x66000001;
        WIN_DISP_UNIT => 9, 0x66000005;
        WIN_SIZE => 8, 0x66000003;
        WIN_CREATE_FLAVOR => 10, 0x66000007;
        WIN_MODEL => 11, 0x66000009;
        TAG_UB => NONE, 0x64400002;
        IO => NONE, 0x64400006;
        HOST => NONE, 0x64400004;
        WTIME_IS_GLOBAL => NONE, 0x64400008;
        APPNUM => NONE, 0x6440000e;
        LASTUSEDCODE => NONE, 0x6440000c;
        UNIVERSE_SIZE => NONE, 0x6440000a;
        WIN_BASE => NONE, 0x66000002;
        WIN_DISP_UNIT => NONE, 0x66000006;
        WIN_SIZE => NONE, 0x66000004;
        WIN_CREATE_FLAVOR => NONE, 0x66000008;
        WIN_MODEL => NONE, 0x6600000a;
    }
    /// Error classes, and codes of the tool interface; for those that Open MPI lacks, at the end, the nearest that it has.
    errors {
        Class::Success.0 => 0, 0;
        Class::Buffer.0 => 1, 1;
        Class::Count.0 => 2, 2;
        Class::Type.0 => 3, 3;
        Class::Tag.0 => 4, 4;
        Class::Comm.0 => 5, 5;
        Class::Rank.0 => 6, 6;
        Class::Request.0 => 7, 19;
        Class::Root.0 => 8, 7;
        Class::Group.0 => 9, 8;
        Class::Op.0 => 10, 9;
        Class::Topology.0 => 11, 10;
        Class::Dims.0 => 12, 11;
        Class::Arg.0 => 13, 12;
        Class::Unknown.0 => 14, 13;
        Class::Truncate.0 => 15, 14;
        Class::Other.0 => 16, 15;
        Class::Intern.0 => 17, 16;
        Class::Pending.0 => 19, 18;
        Class::InStatus.0 => 18, 17;
        Class::Access.0 => 20, 20;
        Class::Amode.0 => 21, 21;
        Class::Assert.0 => 22, 53;
        Class::BadFile.0 => 23, 22;
        Class::Base.0 => 24, 46;
        Class::Conversion.0 => 25, 23;
        Class::Disp.0 => 26, 52;
        Class::DupDatarep.0 => 27, 24;
        Class::FileExists.0 => 28, 25;
        Class::FileInUse.0 => 29, 26;
        Class::File.0 => 30, 27;
        Class::InfoKey.0 => 31, 29;
        Class::InfoNokey.0 => 32, 31;
        Class::InfoValue.0 => 33, 30;
        Class::Info.0 => 34, 28;
        Class::Io.0 => 35, 32;
        Class::Keyval.0 => 36, 48;
        Class::Locktype.0 => 37, 47;
        Class::Name.0 => 38, 33;
        Class::NoMem.0 => 39, 34;
        Class::NotSame.0 => 40, 35;
        Class::NoSpace.0 => 41, 36;
        Class::NoSuchFile.0 => 42, 37;
        Class::Port.0 => 43, 38;
        Class::Quota.0 => 44, 39;
        Class::ReadOnly.0 => 45, 40;
        Class::RmaAttach.0 => 69, 56;
        Class::RmaConflict.0 => 46, 49;
        Class::RmaRange.0 => 68, 55;
        Class::RmaShared.0 => 71, 57;
        Class::RmaSync.0 => 47, 50;
        Class::Service.0 => 48, 41;
        Class::Size.0 => 49, 51;
        Class::Spawn.0 => 50, 42;
        Class::UnsupportedDatarep.0 => 51, 43;
        Class::UnsupportedOperation.0 => 52, 44;
        Class::Win.0 => 53, 45;
        Class::RmaFlavor.0 => 70, 58;
        Class::ProcAborted.0 => 74, 76;
        Class::Session.0 => 78, 75;
        Class::ValueTooLarge.0 => 79, 77;
        Class::Errhandler.0 => 13, 80;
        Class::Abi.0 => 16, 81;
        Class::ProcFailed.0 => 75, 101;
        Class::ProcFailedPending.0 => 76, 102;
        Class::Revoked.0 => 77, 103;
        T_ERR_MEMORY => 54, 59;
        T_ERR_NOT_INITIALIZED => 55, 60;
        T_ERR_CANNOT_INIT => 56, 61;
        T_ERR_INVALID_INDEX => 57, 62;
        T_ERR_INVALID_ITEM => 58, 63;
        T_ERR_INVALID_HANDLE => 59, 64;
        T_ERR_OUT_OF_HANDLES => 60, 65;
        T_ERR_OUT_OF_SESSIONS => 61, 66;
        T_ERR_INVALID_SESSION => 62, 67;
        T_ERR_CVAR_SET_NOT_NOW => 63, 68;
        T_ERR_CVAR_SET_NEVER => 64, 69;
        T_ERR_PVAR_NO_STARTSTOP => 65, 70;
        T_ERR_PVAR_NO_WRITE => 66, 71;
        T_ERR_PVAR_NO_ATOMIC => 67, 72;
        T_ERR_INVALID_NAME => 73, 73;
        T_ERR_INVALID => 72, 74;
        T_ERR_NOT_SUPPORTED => 72, 78;
        T_ERR_NOT_ACCESSIBLE => 72, 79;
        LASTCODE => 92, MPICH_DYNAMIC_CODE - 1;
    }
    /// Bits of the access modes of files (both ABIs have ROMIO's numbers).
    file_modes {
        MODE_CREATE => 1, 1;
        MODE_RDONLY => 2, 2;
        MODE_WRONLY => 4, 4;
        MODE_RDWR => 8, 8;
        MODE_DELETE_ON_CLOSE => 16, 16;
        MODE_UNIQUE_OPEN => 32, 32;
        MODE_EXCL => 64, 64;
        MODE_APPEND => 128, 128;
        MODE_SEQUENTIAL => 256, 256;
    }
    /// Where a seek counts from.
    seeks {
        SEEK_SET => 600, 600;
        SEEK_CUR => 602, 602;
        SEEK_END => 604, 604;
    }
    /// Special displacements.
    displacements {
        DISPLACEMENT_CURRENT as i32 => -54_278_278, -54_278_278;
    }
    /// Classes of performance variables.
    tool_classes {
        T_PVAR_CLASS_STATE => 0, 240;
        T_PVAR_CLASS_LEVEL => 1, 241;
        T_PVAR_CLASS_SIZE => 2, 242;
        T_PVAR_CLASS_PERCENTAGE => 3, 243;
        T_PVAR_CLASS_HIGHWATERMARK => 4, 244;
        T_PVAR_CLASS_LOWWATERMARK => 5, 245;
        T_PVAR_CLASS_COUNTER => 6, 246;
        T_PVAR_CLASS_AGGREGATE => 7, 247;
        T_PVAR_CLASS_TIMER => 8, 248;
        T_PVAR_CLASS_GENERIC => 9, 249;
    }
    /// What a variable of the tool interface belongs to.
    tool_bindings {
        T_BIND_NO_OBJECT => 0, 9700;
        T_BIND_MPI_COMM => 1, 9701;
    }
    /// What a callback of an event requires of itself.
    tool_safeties {
        T_CB_REQUIRE_NONE => 0, 0;
        T_CB_REQUIRE_MPI_RESTRICTED => 1, 1;
        T_CB_REQUIRE_THREAD_SAFE => 2, 2;
        T_CB_REQUIRE_ASYNC_SIGNAL_SAFE => 3, 3;
    }
    /// Whether events of a source come in order.
    tool_orders {
        T_SOURCE_ORDERED => 0, 0;
        T_SOURCE_UNORDERED => 1, 1;
    }
    /// Where a control variable may be set.
    tool_scopes {
        T_SCOPE_CONSTANT => 0, 60438;
        T_SCOPE_READONLY => 1, 60439;
        T_SCOPE_LOCAL => 2, 60440;
        T_SCOPE_GROUP => 3, 60441;
        T_SCOPE_GROUP_EQ => 4, 60442;
        T_SCOPE_ALL => 5, 60443;
        T_SCOPE_ALL_EQ => 6, 60444;
    }
    /// Who wants a variable.
    tool_verbosities {
        T_VERBOSITY_USER_BASIC => 0, 221;
        T_VERBOSITY_USER_DETAIL => 1, 222;
        T_VERBOSITY_USER_ALL => 2, 223;
        T_VERBOSITY_TUNER_BASIC => 3, 224;
        T_VERBOSITY_TUNER_DETAIL => 4, 225;
        T_VERBOSITY_TUNER_ALL => 5, 226;
        T_VERBOSITY_MPIDEV_BASIC => 6, 227;
        T_VERBOSITY_MPIDEV_DETAIL => 7, 228;
        T_VERBOSITY_MPIDEV_ALL => 8, 229;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for tables in [STANDARD, OPENMPI, MPICH] {
            for row in tables.ranks.rows {
                assert_eq!(tables.ranks.to_core(row[tables.ranks.column]), row[0]);
                assert_eq!(tables.ranks.to_face(row[0]), row[tables.ranks.column]);
            }
            assert_eq!(tables.ranks.to_core(7), 7);
            assert_eq!(tables.ranks.to_face(7), 7);
        }
    }

    #[test]
    fn bits_are_translated_one_by_one() {
        assert_eq!(MPICH.win_asserts.bits_to_core(0), 0);
        assert_eq!(MPICH.win_asserts.bits_to_core(2048 | 8192), MODE_NOSTORE | MODE_NOPRECEDE);
        assert_eq!(OPENMPI.win_asserts.bits_to_core(31), 31 << 10);
        assert_eq!(OPENMPI.win_asserts.bits_to_core(33), MODE_NOCHECK | MEANINGLESS_BIT);
    }

    #[test]
    fn file_modes_are_bits() {
        for tables in [STANDARD, OPENMPI, MPICH] {
            for bits in 0..512 {
                assert_eq!(tables.file_modes.bits_to_face(tables.file_modes.bits_to_core(bits)), bits);
            }
        }
        assert_eq!(MPICH.file_modes.bits_to_core(2 | 1024), MODE_RDONLY | MEANINGLESS_BIT);
    }

    #[test]
    fn a_number_without_meaning_gains_none() {
        assert_eq!(OPENMPI.ranks.to_core(-3), MEANINGLESS);
        assert_eq!(OPENMPI.ranks.to_core(-5), -5);
        assert_eq!(OPENMPI.combiners.to_core(117), MEANINGLESS);
    }

    #[test]
    fn the_standards_numbers_are_the_cores() {
        for number in [-32766, -4, 0, 7, 62, 100, 221, 501, 4096, LASTCODE, LASTCODE + 1] {
            assert_eq!(STANDARD.errors.to_face(number), number);
            assert_eq!(STANDARD.keyvals.to_core(number), number);
            assert_eq!(STANDARD.ranks.to_core(number), number);
        }
    }
}
