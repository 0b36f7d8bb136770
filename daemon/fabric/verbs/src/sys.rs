//! What is used of infiniband/verbs.h, and libibverbs itself, loaded when it is asked for.
//!
//! Written here, because the crates that have it (rdma-sys, rdma-mummy-sys, ibverbs-sys) make it anew in each build, with
//! bindgen: whoever built vmpi needed libclang and headers for devices that he may not have. The ABI is fixed (IBVERBS_1.1,
//! since 2006); the test compares all of this with the header of the machine. Of what only libibverbs makes, the beginning
//! is enough.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The file, and the package that has it.
const FILE: &str = "libibverbs.so.1";

/// Known by their addresses only.
pub enum ibv_device {}
pub enum ibv_pd {}

type Unused = Option<unsafe extern "C" fn()>;

#[repr(C)]
pub struct ibv_context {
    device: *mut ibv_device,
    before_poll_cq: [Unused; 11],
    poll_cq: unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int,
    req_notify_cq: unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int,
    before_post_send: [Unused; 12],
    post_send: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
    post_recv: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
}

#[repr(C)]
pub struct ibv_comp_channel {
    context: *mut ibv_context,
    pub fd: c_int,
}

#[repr(C)]
pub struct ibv_cq {
    context: *mut ibv_context,
}

#[repr(C)]
pub struct ibv_qp {
    context: *mut ibv_context,
    qp_context: *mut c_void,
    pd: *mut ibv_pd,
    send_cq: *mut ibv_cq,
    recv_cq: *mut ibv_cq,
    srq: *mut c_void,
    handle: u32,
    pub qp_num: u32,
}

#[repr(C)]
pub struct ibv_mr {
    context: *mut ibv_context,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

#[repr(C)]
pub struct ibv_device_attr {
    before_max_qp_wr: [u64; 14],
    pub max_qp_wr: c_int,
    device_cap_flags: c_uint,
    max_sge: [c_int; 2],
    max_cq: c_int,
    pub max_cqe: c_int,
    before_max_pkeys: [u32; 22],
    max_pkeys: u16,
    local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}

/// As the exported `ibv_query_port` fills it; newer headers have a longer one for newer questions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_port_attr {
    pub state: c_uint,
    max_mtu: c_uint,
    pub active_mtu: c_uint,
    pub gid_tbl_len: c_int,
    port_cap_flags: u32,
    max_msg_sz: u32,
    bad_pkey_cntr: u32,
    qkey_viol_cntr: u32,
    pkey_tbl_len: u16,
    pub lid: u16,
    sm_lid: u16,
    lmc_to_phys_state: [u8; 8],
    pub link_layer: u8,
    flags: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_gid {
    pub raw: [u8; 16],
    /// For its alignment.
    global: [u64; 2],
}

#[repr(C)]
pub struct ibv_qp_cap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

#[repr(C)]
pub struct ibv_qp_init_attr {
    qp_context: *mut c_void,
    pub send_cq: *mut ibv_cq,
    pub recv_cq: *mut ibv_cq,
    srq: *mut c_void,
    pub cap: ibv_qp_cap,
    pub qp_type: c_uint,
    sq_sig_all: c_int,
}

#[repr(C)]
pub struct ibv_global_route {
    pub dgid: ibv_gid,
    flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    traffic_class: u8,
}

#[repr(C)]
pub struct ibv_ah_attr {
    pub grh: ibv_global_route,
    pub dlid: u16,
    sl: u8,
    src_path_bits: u8,
    static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}

#[repr(C)]
pub struct ibv_qp_attr {
    pub qp_state: c_uint,
    cur_qp_state: c_uint,
    pub path_mtu: c_uint,
    path_mig_state: c_uint,
    qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: c_uint,
    cap: ibv_qp_cap,
    pub ah_attr: ibv_ah_attr,
    alt_ah_attr: ibv_ah_attr,
    pkey_index: u16,
    alt_pkey_index: u16,
    en_sqd_async_notify: u8,
    sq_draining: u8,
    max_rd_atomic: u8,
    max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    alt_port_num: u8,
    alt_timeout: u8,
    rate_limit: u32,
}

#[repr(C)]
pub struct ibv_sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

#[repr(C)]
pub struct ibv_recv_wr {
    pub wr_id: u64,
    next: *mut ibv_recv_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
}

/// The unions, as writing with an immediate value uses them.
#[repr(C)]
pub struct ibv_send_wr {
    pub wr_id: u64,
    next: *mut ibv_send_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
    pub opcode: c_uint,
    pub send_flags: c_uint,
    pub imm_data: u32,
    pub remote_addr: u64,
    pub rkey: u32,
    after_rkey: u32,
    of_other_kinds: [u64; 9],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_wc {
    pub wr_id: u64,
    pub status: c_uint,
    pub opcode: c_uint,
    vendor_err: u32,
    pub byte_len: u32,
    pub imm_data: u32,
    qp_num: u32,
    src_qp: u32,
    wc_flags: c_uint,
    pkey_index: u16,
    slid: u16,
    sl: u8,
    dlid_path_bits: u8,
}

macro_rules! constants {
    ($($name:ident = $value:expr;)*) => {
        $(pub const $name: c_uint = $value;)*
        #[cfg(test)]
        const CONSTANTS: &[(&str, c_uint)] = &[$((stringify!($name), $value)),*];
    };
}

constants! {
    IBV_PORT_ACTIVE = 4;
    IBV_ACCESS_LOCAL_WRITE = 1;
    IBV_ACCESS_REMOTE_WRITE = 1 << 1;
    IBV_QPT_RC = 2;
    IBV_QPS_INIT = 1;
    IBV_QPS_RTR = 2;
    IBV_QPS_RTS = 3;
    IBV_QP_STATE = 1;
    IBV_QP_ACCESS_FLAGS = 1 << 3;
    IBV_QP_PKEY_INDEX = 1 << 4;
    IBV_QP_PORT = 1 << 5;
    IBV_QP_AV = 1 << 7;
    IBV_QP_PATH_MTU = 1 << 8;
    IBV_QP_TIMEOUT = 1 << 9;
    IBV_QP_RETRY_CNT = 1 << 10;
    IBV_QP_RNR_RETRY = 1 << 11;
    IBV_QP_RQ_PSN = 1 << 12;
    IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13;
    IBV_QP_MIN_RNR_TIMER = 1 << 15;
    IBV_QP_SQ_PSN = 1 << 16;
    IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17;
    IBV_QP_DEST_QPN = 1 << 20;
    IBV_SEND_SIGNALED = 1 << 1;
    IBV_SEND_INLINE = 1 << 3;
    IBV_WR_RDMA_WRITE_WITH_IMM = 1;
    IBV_WR_SEND = 2;
    IBV_WC_RECV = 1 << 7;
    IBV_WC_RECV_RDMA_WITH_IMM = (1 << 7) + 1;
    IBV_LINK_LAYER_ETHERNET = 2;
}

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    // SAFETY: the types are those of verbs.h, and the default versions of these symbols are IBVERBS_1.1's.
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }?,)*
                })
            }
        }

        $(
            /// # Safety
            /// As verbs.h says.
            pub unsafe fn $name($($arg: $type),*) $(-> $result)? {
                // SAFETY: promised by the caller.
                unsafe { (functions().$name)($($arg),*) }
            }
        )*
    };
}

functions! {
    fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    fn ibv_free_device_list(list: *mut *mut ibv_device);
    fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
    fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    fn ibv_close_device(context: *mut ibv_context) -> c_int;
    fn ibv_query_device(context: *mut ibv_context, into: *mut ibv_device_attr) -> c_int;
    fn ibv_query_port(context: *mut ibv_context, port: u8, into: *mut ibv_port_attr) -> c_int;
    fn ibv_query_gid(context: *mut ibv_context, port: u8, index: c_int, into: *mut ibv_gid) -> c_int;
    fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    fn ibv_dealloc_pd(domain: *mut ibv_pd) -> c_int;
    fn ibv_reg_mr(domain: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    fn ibv_dereg_mr(region: *mut ibv_mr) -> c_int;
    fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    fn ibv_create_cq(context: *mut ibv_context, cqe: c_int, own: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int) -> *mut ibv_cq;
    fn ibv_destroy_cq(queue: *mut ibv_cq) -> c_int;
    fn ibv_get_cq_event(channel: *mut ibv_comp_channel, queue: *mut *mut ibv_cq, own: *mut *mut c_void) -> c_int;
    fn ibv_ack_cq_events(queue: *mut ibv_cq, count: c_uint);
    fn ibv_create_qp(domain: *mut ibv_pd, wish: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    fn ibv_modify_qp(pair: *mut ibv_qp, attributes: *mut ibv_qp_attr, mask: c_int) -> c_int;
    fn ibv_destroy_qp(pair: *mut ibv_qp) -> c_int;
    fn ibv_wc_status_str(status: c_uint) -> *const c_char;
}

// Inline functions of verbs.h: the device's own, without a call through libibverbs.

/// # Safety
/// A live queue pair and work that lives until it returns.
pub unsafe fn ibv_post_send(pair: *mut ibv_qp, work: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { ((*(*pair).context).post_send)(pair, work, bad) }
}

/// # Safety
/// As `ibv_post_send`.
pub unsafe fn ibv_post_recv(pair: *mut ibv_qp, work: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { ((*(*pair).context).post_recv)(pair, work, bad) }
}

/// # Safety
/// A live queue, and room for `count` completions.
pub unsafe fn ibv_poll_cq(queue: *mut ibv_cq, count: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { ((*(*queue).context).poll_cq)(queue, count, into) }
}

/// # Safety
/// A live queue.
pub unsafe fn ibv_req_notify_cq(queue: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { ((*(*queue).context).req_notify_cq)(queue, solicited_only) }
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

fn functions() -> &'static Functions {
    FUNCTIONS.get().expect("`load` comes before everything, and nothing is opened if it fails")
}

/// Load libibverbs, once.
///
/// # Errors
/// It is not there, or lacks something; in words.
pub fn load() -> Result<(), String> {
    if FUNCTIONS.get().is_some() {
        return Ok(());
    }
    let words = |error: libloading::Error| {
        use std::error::Error;
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("{FILE} cannot be loaded: {why}; the package libibverbs1 (Fedora: libibverbs) has it")
    };
    // SAFETY: libibverbs' initializers are made for any process.
    let library = unsafe { Library::open(Some(FILE), RTLD_NOW | RTLD_LOCAL) }.map_err(words)?;
    let functions = Functions::of(&library).map_err(words)?;
    // A device's threads may still be in it at the end.
    std::mem::forget(library);
    let _ = FUNCTIONS.set(functions);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    /// Lines of a C program and what it must print: for each structure its size (where we make it) and where fields lie.
    macro_rules! layouts {
        ($($type:ident $(as $c:literal)? $([$whole:ident])? { $($field:ident $(= $path:literal)?),* })*) => {{
            let mut expected: Vec<(String, usize)> = Vec::new();
            $(
                #[allow(unused_variables)]
                let c = stringify!($type);
                let keyword = "struct";
                $(let c = $c;)?
                $(let _ = stringify!($whole); expected.push((format!("sizeof({keyword} {c})"), size_of::<$type>()));)?
                $({
                    #[allow(unused_variables)]
                    let path = stringify!($field);
                    $(let path = $path;)?
                    expected.push((format!("offsetof({keyword} {c}, {path})"), offset_of!($type, $field)));
                })*
            )*
            expected
        }};
    }

    fn expected() -> Vec<(String, usize)> {
        let mut all = layouts! {
            ibv_context {
                device, poll_cq = "ops.poll_cq", req_notify_cq = "ops.req_notify_cq", post_send = "ops.post_send",
                post_recv = "ops.post_recv"
            }
            ibv_comp_channel { context, fd }
            ibv_cq { context }
            ibv_qp { context, send_cq, qp_num }
            ibv_mr { context, lkey, rkey }
            ibv_device_attr [whole] { max_qp_wr, device_cap_flags, max_sge, max_cqe, max_pkeys, phys_port_cnt }
            ibv_port_attr {
                state, active_mtu, gid_tbl_len, qkey_viol_cntr, lid, lmc_to_phys_state = "lmc", link_layer, flags
            }
            ibv_qp_init_attr [whole] { send_cq, recv_cq, cap, qp_type, sq_sig_all }
            ibv_qp_cap [whole] { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
            ibv_ah_attr [whole] { grh, dlid, is_global, port_num }
            ibv_global_route [whole] { dgid, sgid_index, hop_limit }
            ibv_qp_attr [whole] {
                qp_state, path_mtu, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index,
                min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, rate_limit
            }
            ibv_sge [whole] { addr, length, lkey }
            ibv_recv_wr [whole] { wr_id, next, sg_list, num_sge }
            ibv_send_wr [whole] {
                wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, remote_addr = "wr.rdma.remote_addr",
                rkey = "wr.rdma.rkey"
            }
            ibv_wc [whole] { wr_id, status, opcode, byte_len, imm_data, qp_num, dlid_path_bits }
        };
        all.push(("sizeof(union ibv_gid)".into(), size_of::<ibv_gid>()));
        all.extend(CONSTANTS.iter().map(|(name, value)| ((*name).to_owned(), *value as usize)));
        all
    }

    /// Every structure and number as the header of this machine has it.
    #[test]
    fn this_is_what_verbs_h_says() {
        if !Path::new("/usr/include/infiniband/verbs.h").exists() {
            eprintln!("left out: there is no libibverbs-dev here");
            return;
        }
        let dir = std::env::temp_dir().join(format!("vmpi-verbs-h-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let expected = expected();
        let lines: String =
            expected.iter().map(|(what, _)| format!("printf(\"%zu\\n\", (size_t)({what}));\n")).collect();
        let head = "#include <stdio.h>\n#include <stddef.h>\n#include <infiniband/verbs.h>\n";
        std::fs::write(dir.join("x.c"), format!("{head}int main(void) {{\n{lines}return 0; }}\n")).unwrap();
        let built = Command::new("cc").args(["-w", "x.c", "-o", "x"]).current_dir(&dir).output().expect("there is cc");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let said = String::from_utf8(Command::new(dir.join("x")).output().unwrap().stdout).unwrap();
        let numbers: Vec<usize> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numbers.len(), expected.len());
        for ((what, ours), theirs) in expected.iter().zip(numbers) {
            assert_eq!(*ours, theirs, "{what}");
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// Where there is a libibverbs, it has all of it; it is found by the name of its file.
    #[test]
    fn libibverbs_has_every_function() {
        match load() {
            Ok(()) => {
                // SAFETY: a static string for any number.
                let first = unsafe { CStr::from_ptr(ibv_wc_status_str(0)) };
                assert_eq!(first, c"success");
            }
            Err(why) => {
                assert!(why.contains("libibverbs1") && why.contains(FILE) && !why.contains("undefined symbol"), "{why}")
            }
        }
    }
}
