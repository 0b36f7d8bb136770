//! libotf2, opened when it is needed: version 3 (its library's version 10), by the names of its makers and of Debian.
#![allow(unsafe_code)]

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};

/// What it is called.
const NAMES: [&str; 2] = ["libotf2.so.10", "libopen-trace-format2.so.10"];

/// `OTF2_FlushCallbacks`.
#[repr(C)]
pub(super) struct FlushCallbacks {
    pub(super) before: unsafe extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    pub(super) after: Option<unsafe extern "C" fn(*mut c_void, u8, u64) -> u64>,
}

/// A handle of the library's.
pub(super) type Handle = *mut c_void;

macro_rules! functions {
    ($($field:ident = $name:literal: ($($arg:ty),*) -> $ret:ty;)*) => {
        /// Its functions, as OTF2 3.0 declares them.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) -> $ret,)*
            _library: Library,
        }

        impl Functions {
            fn of(library: Library) -> Result<Functions, libloading::Error> {
                // SAFETY: these are their types in OTF2 3, whose library it is by its version; it stays open as long as they are here.
                unsafe { Ok(Functions { $($field: *library.get(concat!($name, "\0").as_bytes())?,)* _library: library }) }
            }
        }
    };
}

functions! {
    open = "OTF2_Archive_Open": (*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Handle;
    close = "OTF2_Archive_Close": (Handle) -> c_int;
    set_flush = "OTF2_Archive_SetFlushCallbacks": (Handle, *const FlushCallbacks, *mut c_void) -> c_int;
    set_serial = "OTF2_Archive_SetSerialCollectiveCallbacks": (Handle) -> c_int;
    set_creator = "OTF2_Archive_SetCreator": (Handle, *const c_char) -> c_int;
    open_events = "OTF2_Archive_OpenEvtFiles": (Handle) -> c_int;
    close_events = "OTF2_Archive_CloseEvtFiles": (Handle) -> c_int;
    events_of = "OTF2_Archive_GetEvtWriter": (Handle, u64) -> Handle;
    close_events_of = "OTF2_Archive_CloseEvtWriter": (Handle, Handle) -> c_int;
    open_definitions = "OTF2_Archive_OpenDefFiles": (Handle) -> c_int;
    close_definitions = "OTF2_Archive_CloseDefFiles": (Handle) -> c_int;
    definitions_of = "OTF2_Archive_GetDefWriter": (Handle, u64) -> Handle;
    close_definitions_of = "OTF2_Archive_CloseDefWriter": (Handle, Handle) -> c_int;
    definitions = "OTF2_Archive_GetGlobalDefWriter": (Handle) -> Handle;
    enter = "OTF2_EvtWriter_Enter": (Handle, Handle, u64, u32) -> c_int;
    leave = "OTF2_EvtWriter_Leave": (Handle, Handle, u64, u32) -> c_int;
    send = "OTF2_EvtWriter_MpiSend": (Handle, Handle, u64, u32, u32, u32, u64) -> c_int;
    receive = "OTF2_EvtWriter_MpiRecv": (Handle, Handle, u64, u32, u32, u32, u64) -> c_int;
    collective_begin = "OTF2_EvtWriter_MpiCollectiveBegin": (Handle, Handle, u64) -> c_int;
    collective_end = "OTF2_EvtWriter_MpiCollectiveEnd": (Handle, Handle, u64, u8, u32, u32, u64, u64) -> c_int;
    measurement = "OTF2_EvtWriter_MeasurementOnOff": (Handle, Handle, u64, u8) -> c_int;
    clock = "OTF2_GlobalDefWriter_WriteClockProperties": (Handle, u64, u64, u64, u64) -> c_int;
    string = "OTF2_GlobalDefWriter_WriteString": (Handle, u32, *const c_char) -> c_int;
    node = "OTF2_GlobalDefWriter_WriteSystemTreeNode": (Handle, u32, u32, u32, u32) -> c_int;
    process = "OTF2_GlobalDefWriter_WriteLocationGroup": (Handle, u32, u32, u8, u32, u32) -> c_int;
    location = "OTF2_GlobalDefWriter_WriteLocation": (Handle, u64, u32, u8, u64, u32) -> c_int;
    region = "OTF2_GlobalDefWriter_WriteRegion": (Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> c_int;
    group = "OTF2_GlobalDefWriter_WriteGroup": (Handle, u32, u32, u8, u8, u32, u32, *const u64) -> c_int;
    communicator = "OTF2_GlobalDefWriter_WriteComm": (Handle, u32, u32, u32, u32, u32) -> c_int;
    describe = "OTF2_Error_GetDescription": (c_int) -> *const c_char;
}

impl Functions {
    /// The library, or what to do.
    pub(super) fn load() -> Result<Functions, String> {
        Functions::load_one(&NAMES)
    }

    fn load_one(names: &[&str]) -> Result<Functions, String> {
        let mut why = String::new();
        for name in names {
            // SAFETY: its initializers are those of any C library.
            match unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_LOCAL) }.and_then(Functions::of) {
                Ok(functions) => return Ok(functions),
                Err(error) => {
                    use std::error::Error;
                    let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                    // That one is there and of no use says more than that another is not there.
                    if why.is_empty() || !words.contains("No such file") {
                        why = words;
                    }
                }
            }
        }
        Err(format!(
            "an OTF2 archive is written by libotf2 3, which cannot be loaded ({why}); Debian has it in the package libopen-trace-format2-10"
        ))
    }

    /// What an error code means.
    pub(super) fn words(&self, code: c_int) -> String {
        // SAFETY: it takes any number, and returns a static string or null.
        let text = unsafe { (self.describe)(code) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let missing = Functions::load_one(&["libotf2.so.none", "libotf2.so.neither"]).err().expect("there is none");
        assert!(missing.contains("libotf2.so.n") && missing.contains("libopen-trace-format2-10"), "{missing}");
        // A library that has none of its functions is none; why says more than that another is not there.
        let strange = Functions::load_one(&["libc.so.6", "libotf2.so.none"]).err().expect("that is another one");
        assert!(strange.contains("OTF2_") && !strange.contains("libotf2.so.none"), "{strange}");
    }
}
