//! Dynamic processes, as Fortran calls them: arrays of CHARACTERs become C's arrays of strings.

/// Kinds of arguments that only this chapter has.
pub mod kinds {
    use crate::abi::Abi;
    use crate::fortran::args::{Arg, trimmed};
    use std::ffi::{c_char, c_int, c_void};

    /// C strings and the arrays of pointers to them.
    pub struct Strings {
        _texts: Vec<Vec<u8>>,
        pointers: Vec<*mut c_char>,
    }

    impl Strings {
        fn new(texts: impl Iterator<Item = Vec<u8>>) -> Strings {
            let mut texts: Vec<Vec<u8>> = texts
                .map(|mut text| {
                    text.push(0);
                    text
                })
                .collect();
            // The heap blocks of the strings stay where they are when the vector of vectors moves.
            let ends = [std::ptr::null_mut()];
            let pointers = texts.iter_mut().map(|text| text.as_mut_ptr().cast::<c_char>()).chain(ends).collect();
            Strings { _texts: texts, pointers }
        }
    }

    /// Element `index` of an array of CHARACTER*`len`, without blanks around it.
    ///
    /// # Safety
    /// The array has such an element.
    unsafe fn element(array: *const c_void, index: usize, len: usize) -> Vec<u8> {
        // SAFETY: as the caller says.
        let bytes = unsafe { std::slice::from_raw_parts(array.cast::<u8>().add(index * len), len) };
        trimmed(bytes).to_vec()
    }

    /// Elements of an array of CHARACTER*`len`, `step` apart, up to a blank one.
    ///
    /// # Safety
    /// The array ends with a blank element.
    unsafe fn until_blank(array: *const c_void, first: usize, step: usize, len: usize) -> Strings {
        // SAFETY: as the caller says; nothing is read behind the blank element.
        let element = |at: usize| unsafe { element(array, first + at * step, len) };
        Strings::new((0..).map(element).take_while(|text| len > 0 && !text.is_empty()))
    }

    /// Two numbers in the one that a row's length is.
    #[must_use]
    pub fn count_and_len(count: usize, len: usize) -> usize {
        count << 32 | len & 0xFFFF_FFFF
    }

    /// The arguments of a command: an array of CHARACTERs that ends with a blank one, or MPI_ARGV_NULL.
    pub enum Argv {}
    impl<A: Abi> Arg<A> for Argv {
        type Held = Option<Strings>;
        type Passed = *mut *mut c_char;
        unsafe fn take(arg: *mut c_void, len: usize) -> Option<Strings> {
            // SAFETY: the array ends with a blank element.
            (!A::f_argv_null(arg)).then(|| unsafe { until_blank(arg, 0, 1, len) })
        }
        fn pass(held: &mut Option<Strings>) -> *mut *mut c_char {
            held.as_mut().map_or(std::ptr::null_mut(), |strings| strings.pointers.as_mut_ptr())
        }
    }

    /// An array of `count` commands.
    pub enum Commands {}
    impl<A: Abi> Arg<A> for Commands {
        type Held = Strings;
        type Passed = *mut *mut c_char;
        unsafe fn take(arg: *mut c_void, both: usize) -> Strings {
            let (count, len) = (both >> 32, both & 0xFFFF_FFFF);
            // SAFETY: the array has `count` elements.
            Strings::new((0..count).map(|index| unsafe { element(arg, index, len) }))
        }
        fn pass(held: &mut Strings) -> *mut *mut c_char {
            held.pointers.as_mut_ptr()
        }
    }

    /// The arguments of `count` commands: a two-dimensional array, each row of which ends with a blank element, or MPI_ARGVS_NULL.
    pub enum Argvs {}
    impl<A: Abi> Arg<A> for Argvs {
        type Held = Option<(Vec<Strings>, Vec<*mut *mut c_char>)>;
        type Passed = *mut *mut *mut c_char;
        unsafe fn take(arg: *mut c_void, both: usize) -> Self::Held {
            let (count, len) = (both >> 32, both & 0xFFFF_FFFF);
            if A::f_argvs_null(arg) {
                return None;
            }
            // SAFETY: Fortran's array is (count, *): the arguments of one command are `count` elements apart.
            let mut rows: Vec<Strings> = (0..count).map(|row| unsafe { until_blank(arg, row, count, len) }).collect();
            let pointers = rows.iter_mut().map(|row| row.pointers.as_mut_ptr()).collect();
            Some((rows, pointers))
        }
        fn pass(held: &mut Self::Held) -> *mut *mut *mut c_char {
            held.as_mut().map_or(std::ptr::null_mut(), |(_, pointers)| pointers.as_mut_ptr())
        }
    }

    /// An INTEGER array of error codes coming out, or MPI_ERRCODES_IGNORE.
    pub enum ErrCodes {}
    impl<A: Abi> Arg<A> for ErrCodes {
        type Held = *mut c_int;
        type Passed = *mut c_int;
        unsafe fn take(arg: *mut c_void, _len: usize) -> *mut c_int {
            if A::f_errcodes_ignored(arg) { std::ptr::null_mut() } else { arg.cast() }
        }
        fn pass(held: &mut *mut c_int) -> *mut c_int {
            *held
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::ffi::CStr;

        fn texts(strings: &Strings) -> Vec<&str> {
            let all = strings.pointers.iter().take_while(|pointer| !pointer.is_null());
            // SAFETY: the strings end with NUL and live in `strings`.
            all.map(|pointer| unsafe { CStr::from_ptr(*pointer) }.to_str().unwrap()).collect()
        }

        #[test]
        fn rows_of_a_fortran_array() {
            // CHARACTER*3 ARGV(2, 3): columns one after the other.
            let array = b"a1 b1 a2        zzz";
            // SAFETY: each row ends with a blank element.
            let rows = unsafe { [0, 1].map(|row| until_blank(array.as_ptr().cast(), row, 2, 3)) };
            assert_eq!(rows.each_ref().map(texts), [vec!["a1", "a2"], vec!["b1"]]);
            assert_eq!(count_and_len(3, 7), 3 << 32 | 7);
        }
    }
}

/// Dynamic processes.
#[macro_export]
macro_rules! f_table_dynamic {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn close_port CLOSE_PORT = c::close_port(port_name: StrIn[port_name_len]; port_name_len);
            fn comm_accept COMM_ACCEPT = c::comm_accept(port_name: StrIn[port_name_len], info: In<h::Info>, root: Int,
                comm: In<h::Comm>, newcomm: Out<h::Comm>; port_name_len);
            fn comm_connect COMM_CONNECT = c::comm_connect(port_name: StrIn[port_name_len], info: In<h::Info>, root: Int,
                comm: In<h::Comm>, newcomm: Out<h::Comm>; port_name_len);
            fn comm_join COMM_JOIN = c::comm_join(fd: Int, intercomm: Out<h::Comm>);
            fn comm_spawn COMM_SPAWN = c::comm_spawn(command: StrIn[command_len], argv: Argv[argv_len], maxprocs: Int,
                info: In<h::Info>, root: Int, comm: In<h::Comm>, intercomm: Out<h::Comm>, errcodes: ErrCodes;
                command_len, argv_len);
            fn comm_spawn_multiple COMM_SPAWN_MULTIPLE = c::comm_spawn_multiple(count: Int,
                commands: Commands[count_and_len(n(count), command_len)], argvs: Argvs[count_and_len(n(count), argv_len)],
                maxprocs: ConstInts, infos: Ins<h::Info>[n(count)], root: Int, comm: In<h::Comm>,
                intercomm: Out<h::Comm>, errcodes: ErrCodes; command_len, argv_len);
            fn lookup_name LOOKUP_NAME = c::lookup_name(service_name: StrIn[service_name_len], info: In<h::Info>,
                port_name: StrOut[port_name_len]; service_name_len, port_name_len);
            fn open_port OPEN_PORT = c::open_port(info: In<h::Info>, port_name: StrOut[port_name_len]; port_name_len);
            fn publish_name PUBLISH_NAME = c::publish_name(service_name: StrIn[service_name_len], info: In<h::Info>,
                port_name: StrIn[port_name_len]; service_name_len, port_name_len);
            fn unpublish_name UNPUBLISH_NAME = c::unpublish_name(service_name: StrIn[service_name_len], info: In<h::Info>,
                port_name: StrIn[port_name_len]; service_name_len, port_name_len);
        }
    };
}
