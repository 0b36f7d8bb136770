//! The table of functions through which the plugin (`libvmpi_verbs.so`) is used: plain C types, a version, and the sizes of what is passed.
//!
//! Nothing of Rust's ABI crosses: the plugin may have been built by another compiler. It is called by one thread.

use std::ffi::{c_char, c_void};

/// Changes with the meaning of anything here.
pub const VERSION: u32 = 1;
/// The plugin's one symbol, of type [`Entry`].
pub const ENTRY: &[u8] = b"vmpi_verbs_table\0";
pub type Entry = unsafe extern "C" fn() -> *const Table;

/// A short text that the plugin fills.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    pub bytes: [u8; 252],
    pub used: u32,
}

impl Text {
    pub const EMPTY: Text = Text { bytes: [0; 252], used: 0 };

    pub fn of(text: &str) -> Text {
        let mut made = Text::EMPTY;
        let used = text.len().min(made.bytes.len());
        made.bytes[..used].copy_from_slice(&text.as_bytes()[..used]);
        made.used = used as u32;
        made
    }

    pub fn text(&self) -> String {
        let used = (self.used as usize).min(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..used]).into_owned()
    }
}

/// Where a connection's end is.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Of use on Ethernet (RoCE).
    pub gid: [u8; 16],
    pub queue_pair: u32,
    /// The first packet's number.
    pub packet: u32,
    /// Of use on InfiniBand.
    pub lid: u16,
    /// As `enum ibv_mtu`: 1 is 256 bytes, 5 is 4096.
    pub mtu: u8,
    /// 1: Ethernet.
    pub ethernet: u8,
}

/// Keys of registered memory.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    pub local: u32,
    pub remote: u32,
}

/// What has been opened.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Facts {
    /// The device and its port.
    pub name: Text,
    /// Readable when a completion has come after `arm`.
    pub channel: i32,
    pub most_completions: u32,
    pub most_works: u32,
    pub reserved: u32,
}

/// Bits of [`Work::flags`].
pub mod flag {
    /// RDMA WRITE with an immediate word; else a SEND.
    pub const WRITE: u32 = 1;
    /// Tell when it is done (and all before it).
    pub const SIGNALED: u32 = 2;
}

/// Something to be sent.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub id: u64,
    pub addr: u64,
    pub remote: u64,
    pub bytes: u32,
    pub key: u32,
    pub remote_key: u32,
    pub immediate: u32,
    pub flags: u32,
    pub reserved: u32,
}

/// Values of [`Done::what`].
pub mod what {
    /// Work of this end.
    pub const SENT: u32 = 0;
    /// A SEND has come into a posted receive.
    pub const RECEIVED: u32 = 1;
    /// A WRITE has come; its immediate word took a posted receive.
    pub const WRITTEN: u32 = 2;
}

/// A completion.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub id: u64,
    /// 0: done; else as `enum ibv_wc_status`, and only `id` means anything.
    pub status: u32,
    pub what: u32,
    pub bytes: u32,
    pub immediate: u32,
}

/// What the plugin can do. Functions that return a number return 0 or an errno; those with a `why` also say it in words.
#[repr(C)]
pub struct Table {
    pub version: u32,
    /// Size of this table.
    pub bytes: u32,
    pub shapes: u64,
    /// Open a device (its name, or none: the first with an active port), with a completion channel.
    pub open: unsafe extern "C" fn(
        name: *const u8,
        len: usize,
        card: *mut *mut c_void,
        facts: *mut Facts,
        why: *mut Text,
    ) -> i32,
    /// End all connections and registrations, and close the device.
    pub close: unsafe extern "C" fn(card: *mut c_void),
    /// Make the completion queue, once, for so many at a time.
    pub prepare: unsafe extern "C" fn(card: *mut c_void, completions: u32, why: *mut Text) -> i32,
    /// Register memory, for the other ends to write into as well.
    pub register:
        unsafe extern "C" fn(card: *mut c_void, addr: u64, bytes: u64, keys: *mut Keys, why: *mut Text) -> i32,
    /// Make one end of a connection; receives may be posted at once.
    pub pair: unsafe extern "C" fn(
        card: *mut c_void,
        receives: u32,
        sends: u32,
        pair: *mut *mut c_void,
        own: *mut Address,
        why: *mut Text,
    ) -> i32,
    /// Connect it to the other end.
    pub join: unsafe extern "C" fn(pair: *mut c_void, own: *const Address, to: *const Address, why: *mut Text) -> i32,
    /// Destroy it: nothing more is read or written for it.
    pub part: unsafe extern "C" fn(pair: *mut c_void),
    pub receive: unsafe extern "C" fn(pair: *mut c_void, id: u64, addr: u64, bytes: u32, key: u32) -> i32,
    pub send: unsafe extern "C" fn(pair: *mut c_void, work: *const Work) -> i32,
    /// Take completions; their number, or an errno, negative.
    pub poll: unsafe extern "C" fn(card: *mut c_void, done: *mut Done, most: u32) -> i32,
    /// Make the channel readable at the next completion.
    pub arm: unsafe extern "C" fn(card: *mut c_void) -> i32,
    /// Take what made the channel readable: 1, or 0 if there was nothing.
    pub heed: unsafe extern "C" fn(card: *mut c_void) -> i32,
    /// A completion's status in words.
    pub status: unsafe extern "C" fn(status: u32) -> *const c_char,
}

const fn mix(seed: u64, sizes: &[usize]) -> u64 {
    let (mut hash, mut at) = (seed, 0);
    while at < sizes.len() {
        hash = (hash ^ sizes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

/// The sizes of all that is passed.
pub const SHAPES: u64 = mix(
    0xcbf2_9ce4_8422_2325,
    &[
        size_of::<Text>(),
        size_of::<Address>(),
        size_of::<Keys>(),
        size_of::<Facts>(),
        size_of::<Work>(),
        size_of::<Done>(),
        size_of::<Table>(),
    ],
);

const _: () = assert!(size_of::<Text>() == 256 && size_of::<Address>() == 28 && size_of::<Facts>() == 272);
const _: () = assert!(size_of::<Work>() == 48 && size_of::<Done>() == 24 && size_of::<Table>() == 16 + 13 * 8);
