//! The image's parts: little-endian, no pointers, each table a count and an offset in the header.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const MAGIC: u64 = u64::from_le_bytes(*b"vmpimach");
/// Raised with every change of what stands below.
pub const VERSION: u32 = 2;

/// Where a table lies: bytes from the image's begin, entries.
#[derive(Copy, Clone, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Table {
    pub offset: u32,
    pub count: u32,
}

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    pub magic: u64,
    pub version: u32,
    /// [`crate::Model`]
    pub model: u32,
    /// `topology::*`
    pub topology: u32,
    /// Flat: bits `HALF_DUPLEX`, `BACKBONE`, `LOOPBACK`.
    pub flags: u32,
    pub hosts: u32,
    pub places: u32,
    pub links: u32,
    /// Of `sizes` and `ups` that are used.
    pub dimensions: u32,
    /// Fat tree: `down`; torus: `size`; dragonfly: groups, switches.
    pub sizes: [u32; 8],
    /// Fat tree: `up`; dragonfly: global links of a switch.
    pub ups: [u32; 8],
    pub hosts_per_switch: u32,
    /// Longest path in shared links, both ways.
    pub most_uses: u32,
    pub hop_latency: u64,
    pub poll: u64,
    pub storage_latency: u64,
    pub storage_bandwidth: u64,
    /// [`HostRun`]
    pub host_runs: Table,
    /// [`Class`]
    pub classes: Table,
    /// [`Level`]: six or none
    pub levels: Table,
    /// [`Piece`]
    pub pieces: Table,
    /// [`Route`]
    pub routes: Table,
    /// u32
    pub route_links: Table,
    pub total_bytes: u64,
}

pub mod topology {
    pub const FLAT: u32 = 0;
    pub const FAT_TREE: u32 = 1;
    pub const TORUS: u32 = 2;
    pub const DRAGONFLY: u32 = 3;
    pub const ROUTES: u32 = 4;
}

pub const HALF_DUPLEX: u32 = 1;
pub const BACKBONE: u32 = 2;
pub const LOOPBACK: u32 = 4;

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HostRun {
    pub first_host: u32,
    pub first_place: u32,
    pub hosts: u32,
    pub sockets: u32,
    pub cores: u32,
    pub reserved: u32,
    pub speed_millionths: u64,
}

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Class {
    pub first: u32,
    pub count: u32,
    pub bandwidth: u64,
    pub latency: u64,
    /// 1: messages compete.
    pub shared: u32,
    pub reserved: u32,
}

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Level {
    pub first_piece: u32,
    pub pieces: u32,
    pub eager_limit: u64,
}

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Piece {
    pub from_bytes: u64,
    pub latency: u64,
    pub send_overhead: u64,
    pub receive_overhead: u64,
    pub gap: u64,
    pub bandwidth: u64,
}

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Route {
    /// From << 32 | to; sorted.
    pub key: u64,
    pub first_link: u32,
    pub links: u32,
}

const _: () = assert!(size_of::<Header>() == 200 && align_of::<Header>() == 8);
const _: () = assert!(size_of::<HostRun>() == 32 && size_of::<Class>() == 32 && size_of::<Piece>() == 48);
