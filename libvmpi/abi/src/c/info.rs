//! Info objects: MPI 4.1 chapter 10. All of them work before MPI_Init and after MPI_Finalize.

use super::args::{handle_at, not_null, put_text, text};
use crate::abi::{Abi, CInfo, dec, enc};
use std::ffi::{c_char, c_int};
use std::rc::Rc;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Handle, Info};
use vmpi_core::info::{self, Entries};

fn get<A: Abi>(info: CInfo<A>) -> Result<Rc<Entries>> {
    info::get(dec::<A, _>(info))
}

/// A key argument, which must not be empty and must fit the face's limit.
///
/// # Safety
/// `key` must be null or a string with a NUL.
unsafe fn key_at<'a, A: Abi>(key: *const c_char) -> Result<&'a [u8]> {
    if key.is_null() {
        return fail(Class::InfoKey, "the key is a null pointer");
    }
    // SAFETY: as the caller says.
    let key = unsafe { text(key, "key")? };
    match key.len() {
        0 => fail(Class::InfoKey, "the key is empty"),
        length if length >= A::MAX_INFO_KEY => {
            fail(Class::InfoKey, format!("the key has {length} bytes, the longest may have {}", A::MAX_INFO_KEY - 1))
        }
        _ => Ok(key),
    }
}

crate::entry_points! {
    /// `MPI_Info_create`.
    anytime fn info_create = "MPI_Info_create"(info: *mut CInfo<A>) => {
        not_null(info, "info")?;
        *info = enc::<A, _>(info::insert(Rc::default()));
    }

    /// `MPI_Info_create_env`; the arguments of main are known without being given.
    anytime fn info_create_env = "MPI_Info_create_env"(_argc: c_int, _argv: *mut *mut c_char, info: *mut CInfo<A>) => {
        not_null(info, "info")?;
        *info = enc::<A, _>(info::insert(Rc::new(info::environment())));
    }

    /// `MPI_Info_dup`.
    anytime fn info_dup = "MPI_Info_dup"(info: CInfo<A>, newinfo: *mut CInfo<A>) => {
        let entries = get::<A>(info)?;
        not_null(newinfo, "newinfo")?;
        *newinfo = enc::<A, _>(info::insert(entries));
    }

    /// `MPI_Info_free`.
    anytime fn info_free = "MPI_Info_free"(info: *mut CInfo<A>) => {
        info::free(handle_at::<A, _>(info, "info")?)?;
        *info = enc::<A, _>(Info::NULL);
    }

    /// `MPI_Info_set`.
    anytime fn info_set = "MPI_Info_set"(info: CInfo<A>, key: *const c_char, value: *const c_char) => {
        let info = dec::<A, _>(info);
        info::get(info)?;
        let key = key_at::<A>(key)?;
        if value.is_null() {
            return fail(Class::InfoValue, "the value is a null pointer");
        }
        let value = text(value, "value")?;
        if value.len() >= A::MAX_INFO_VAL {
            let (length, most) = (value.len(), A::MAX_INFO_VAL - 1);
            return fail(Class::InfoValue, format!("the value has {length} bytes, the longest may have {most}"));
        }
        info::change(info, |entries| {
            entries.set(key, value);
            Ok(())
        })?;
    }

    /// `MPI_Info_delete`.
    anytime fn info_delete = "MPI_Info_delete"(info: CInfo<A>, key: *const c_char) => {
        let info = dec::<A, _>(info);
        info::get(info)?;
        let key = key_at::<A>(key)?;
        info::change(info, |entries| entries.delete(key))?;
    }

    /// `MPI_Info_get`: at most `valuelen` bytes and a NUL.
    anytime fn info_get = "MPI_Info_get"(
        info: CInfo<A>, key: *const c_char, valuelen: c_int, value: *mut c_char, flag: *mut c_int,
    ) => {
        let entries = get::<A>(info)?;
        let key = key_at::<A>(key)?;
        let Ok(room) = usize::try_from(valuelen) else {
            return fail(Class::Arg, format!("valuelen is {valuelen}, it must not be negative"));
        };
        not_null(value, "value")?;
        not_null(flag, "flag")?;
        let found = entries.get(key);
        if let Some(found) = found {
            put_text(value, room + 1, found);
        }
        *flag = c_int::from(found.is_some());
    }

    /// `MPI_Info_get_string`: `buflen` is the room with the NUL, and comes back as the room needed.
    anytime fn info_get_string = "MPI_Info_get_string"(
        info: CInfo<A>, key: *const c_char, buflen: *mut c_int, value: *mut c_char, flag: *mut c_int,
    ) => {
        let entries = get::<A>(info)?;
        let key = key_at::<A>(key)?;
        not_null(buflen, "buflen")?;
        not_null(flag, "flag")?;
        let Ok(room) = usize::try_from(*buflen) else {
            return fail(Class::Arg, format!("buflen is {}, it must not be negative", *buflen));
        };
        let found = entries.get(key);
        if let Some(found) = found {
            if room > 0 {
                not_null(value, "value")?;
                put_text(value, room, found);
            }
            *buflen = found.len() as c_int + 1;
        }
        *flag = c_int::from(found.is_some());
    }

    /// `MPI_Info_get_valuelen`.
    anytime fn info_get_valuelen = "MPI_Info_get_valuelen"(
        info: CInfo<A>, key: *const c_char, valuelen: *mut c_int, flag: *mut c_int,
    ) => {
        let entries = get::<A>(info)?;
        let key = key_at::<A>(key)?;
        not_null(valuelen, "valuelen")?;
        not_null(flag, "flag")?;
        let found = entries.get(key);
        if let Some(found) = found {
            *valuelen = found.len() as c_int;
        }
        *flag = c_int::from(found.is_some());
    }

    /// `MPI_Info_get_nkeys`.
    anytime fn info_get_nkeys = "MPI_Info_get_nkeys"(info: CInfo<A>, nkeys: *mut c_int) => {
        let entries = get::<A>(info)?;
        not_null(nkeys, "nkeys")?;
        *nkeys = entries.keys_below(A::MAX_INFO_KEY).count() as c_int;
    }

    /// `MPI_Info_get_nthkey`.
    anytime fn info_get_nthkey = "MPI_Info_get_nthkey"(info: CInfo<A>, n: c_int, key: *mut c_char) => {
        let entries = get::<A>(info)?;
        not_null(key, "key")?;
        let found = usize::try_from(n).ok().and_then(|n| entries.keys_below(A::MAX_INFO_KEY).nth(n));
        let Some(found) = found else {
            let count = entries.keys_below(A::MAX_INFO_KEY).count();
            return fail(Class::Arg, format!("there is no key number {n}, the info object has {count}"));
        };
        put_text(key, A::MAX_INFO_KEY, found);
    }
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_info {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::info];
            fn MPI_Info_create = info_create(info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Info_create_env = info_create_env(argc: c_int, argv: *mut *mut c_char, info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Info_dup = info_dup(info: $crate::abi::CInfo<$A>, newinfo: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Info_free = info_free(info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Info_set = info_set(info: $crate::abi::CInfo<$A>, key: *const c_char, value: *const c_char) -> c_int;
            fn MPI_Info_delete = info_delete(info: $crate::abi::CInfo<$A>, key: *const c_char) -> c_int;
            fn MPI_Info_get = info_get(info: $crate::abi::CInfo<$A>, key: *const c_char, valuelen: c_int, value: *mut c_char, flag: *mut c_int) -> c_int;
            fn MPI_Info_get_string = info_get_string(info: $crate::abi::CInfo<$A>, key: *const c_char, buflen: *mut c_int, value: *mut c_char, flag: *mut c_int) -> c_int;
            fn MPI_Info_get_valuelen = info_get_valuelen(info: $crate::abi::CInfo<$A>, key: *const c_char, valuelen: *mut c_int, flag: *mut c_int) -> c_int;
            fn MPI_Info_get_nkeys = info_get_nkeys(info: $crate::abi::CInfo<$A>, nkeys: *mut c_int) -> c_int;
            fn MPI_Info_get_nthkey = info_get_nthkey(info: $crate::abi::CInfo<$A>, n: c_int, key: *mut c_char) -> c_int;
        }
    };
}
