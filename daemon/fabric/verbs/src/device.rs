//! A device of libibverbs: one protection domain, one completion queue and its channel, and a queue pair per connection.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::ptr::null_mut;

use crate::sys::*;
use vmpi_fabric::verbs::abi::{Address, Done, Facts, Keys, SHAPES, Table, Text, VERSION, Work, flag, what};

pub static TABLE: Table = Table {
    version: VERSION,
    bytes: size_of::<Table>() as u32,
    shapes: SHAPES,
    open,
    close,
    prepare,
    register,
    pair,
    join,
    part,
    receive,
    send,
    poll,
    arm,
    heed,
    status,
};

const ETHERNET: u8 = IBV_LINK_LAYER_ETHERNET as u8;
/// An acknowledgement is awaited for 4.096 us * 2^18 = 1.07 s, and a packet sent up to seven times: a peer that does not answer is seen after about eight
/// seconds. (7 retries would be for ever, to some devices.)
const TIMEOUT: u8 = 18;
const RETRIES: u8 = 6;
/// A receive is always there (credits), so this is never used; 0.64 ms.
const RECEIVER_NOT_READY: u8 = 12;
const INLINE_BYTES: u32 = 128;
/// Completions taken at a time.
const BATCH: usize = 32;

struct Card {
    context: *mut ibv_context,
    domain: *mut ibv_pd,
    channel: *mut ibv_comp_channel,
    queue: *mut ibv_cq,
    regions: Vec<*mut ibv_mr>,
    /// The queue pairs that live.
    pairs: HashMap<usize, *mut Pair>,
    port: u8,
    attributes: ibv_port_attr,
    gid_index: u8,
    gid: [u8; 16],
}

struct Pair {
    card: *mut Card,
    queue_pair: *mut ibv_qp,
    inline_bytes: u32,
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().filter(|errno| *errno != 0).unwrap_or(libc::EIO)
}

fn in_words(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

/// Leave the reason, and return the number.
///
/// # Safety
/// `why` is the caller's, or null.
unsafe fn refuse(why: *mut Text, errno: i32, text: &str) -> i32 {
    if !why.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *why = Text::of(text) };
    }
    errno
}

unsafe extern "C" fn open(
    name: *const u8,
    len: usize,
    card: *mut *mut c_void,
    facts: *mut Facts,
    why: *mut Text,
) -> i32 {
    // SAFETY: the caller's bytes.
    let wanted = if len == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(name, len) } };
    let wanted = String::from_utf8_lossy(wanted).into_owned();
    if let Err(text) = load() {
        // SAFETY: the caller's.
        return unsafe { refuse(why, libc::ENOPKG, &text) };
    }
    let mut count = 0;
    // SAFETY: returns a list of so many devices, or null.
    let list = unsafe { ibv_get_device_list(&mut count) };
    if list.is_null() {
        let errno = errno();
        let text = format!("libibverbs finds no RDMA devices: {}", in_words(errno));
        // SAFETY: the caller's.
        return unsafe { refuse(why, errno, &text) };
    }
    // SAFETY: a list of `count` devices.
    let devices = unsafe { std::slice::from_raw_parts(list, count.max(0) as usize) };
    let (mut reasons, mut found) = (Vec::new(), None);
    for device in devices {
        // SAFETY: a device of the list.
        let name = unsafe { CStr::from_ptr(ibv_get_device_name(*device)) }.to_string_lossy().into_owned();
        if !wanted.is_empty() && name != wanted {
            continue;
        }
        // SAFETY: a device of the list.
        match unsafe { Card::open(*device, &name) } {
            Ok(opened) => {
                found = Some((name, opened));
                break;
            }
            Err(reason) => reasons.push(format!("{name}: {reason}")),
        }
    }
    let names = || {
        // SAFETY: as above.
        let name = |device: &*mut ibv_device| unsafe { CStr::from_ptr(ibv_get_device_name(*device)) }.to_string_lossy();
        devices.iter().map(|device| name(device).into_owned()).collect::<Vec<_>>().join(", ")
    };
    let text = match (count, wanted.as_str()) {
        (0, _) => "there is no RDMA device".to_string(),
        (_, wanted) if reasons.is_empty() => format!("there is no RDMA device {wanted}, only {}", names()),
        _ => reasons.join("; "),
    };
    // SAFETY: from `ibv_get_device_list`; opened devices stay.
    unsafe { ibv_free_device_list(list) };
    let Some((name, opened)) = found else {
        // SAFETY: the caller's.
        return unsafe { refuse(why, libc::ENODEV, &text) };
    };
    // SAFETY: an open device, and a structure that it fills.
    let limits = unsafe {
        let mut limits: ibv_device_attr = std::mem::zeroed();
        ibv_query_device(opened.context, &mut limits);
        limits
    };
    let port = opened.port;
    // SAFETY: the caller's; the channel is open.
    unsafe {
        *facts = Facts {
            name: Text::of(&format!("{name} port {port}")),
            channel: (*opened.channel).fd,
            most_completions: limits.max_cqe.max(0) as u32,
            most_works: limits.max_qp_wr.max(0) as u32,
            reserved: 0,
        };
        *card = Box::into_raw(opened).cast();
    }
    0
}

impl Card {
    /// # Safety
    /// `device` is in a list that is not freed yet.
    unsafe fn open(device: *mut ibv_device, name: &str) -> Result<Box<Card>, String> {
        // SAFETY: promised by the caller.
        let context = unsafe { ibv_open_device(device) };
        if context.is_null() {
            let why = in_words(errno());
            return Err(format!("it cannot be opened ({why}); may this user read and write /dev/infiniband?"));
        }
        let mut card = Box::new(Card {
            context,
            domain: null_mut(),
            channel: null_mut(),
            queue: null_mut(),
            regions: Vec::new(),
            pairs: HashMap::new(),
            port: 0,
            // SAFETY: plain numbers.
            attributes: unsafe { std::mem::zeroed() },
            gid_index: 0,
            gid: [0; 16],
        });
        card.find_port(name)?;
        // SAFETY: an open device.
        unsafe {
            card.domain = ibv_alloc_pd(context);
            card.channel = ibv_create_comp_channel(context);
        }
        if card.domain.is_null() || card.channel.is_null() {
            return Err(format!("it has no room for one more user: {}", in_words(errno())));
        }
        // SAFETY: an open descriptor.
        let set = unsafe {
            let fd = (*card.channel).fd;
            libc::fcntl(fd, libc::F_SETFL, libc::fcntl(fd, libc::F_GETFL) | libc::O_NONBLOCK)
        };
        match set {
            0 => Ok(card),
            _ => Err(in_words(errno())),
        }
    }

    /// The first port that is active, and the address to be used there.
    fn find_port(&mut self, name: &str) -> Result<(), String> {
        // SAFETY: an open device, and a structure that it fills.
        let ports = unsafe {
            let mut limits: ibv_device_attr = std::mem::zeroed();
            match ibv_query_device(self.context, &mut limits) {
                0 => limits.phys_port_cnt,
                errno => return Err(format!("it cannot be asked: {}", in_words(errno))),
            }
        };
        for port in 1..=ports {
            // SAFETY: as above.
            let failed = unsafe { ibv_query_port(self.context, port, &mut self.attributes) };
            if failed != 0 || self.attributes.state != IBV_PORT_ACTIVE {
                continue;
            }
            self.port = port;
            if self.attributes.link_layer != ETHERNET {
                return Ok(());
            }
            let entries = self.attributes.gid_tbl_len.clamp(0, 256);
            let best = (0..entries).filter_map(|index| self.gid_rank(name, port, index)).max_by_key(|(rank, ..)| *rank);
            let Some((_, index, gid)) = best else {
                return Err("its port has no address (RoCE version 2) yet".into());
            };
            (self.gid_index, self.gid) = (index as u8, gid);
            return Ok(());
        }
        Err("none of its ports is active".into())
    }

    /// How useful an address of the port is: routed IPv4 before IPv6 before link-local ones; only RoCE version 2.
    fn gid_rank(&self, name: &str, port: u8, index: c_int) -> Option<(u8, c_int, [u8; 16])> {
        let path = format!("/sys/class/infiniband/{name}/ports/{port}/gid_attrs/types/{index}");
        if std::fs::read_to_string(Path::new(&path)).ok()?.trim() != "RoCE v2" {
            return None;
        }
        let mut gid = ibv_gid { raw: [0; 16] };
        // SAFETY: an open device, and room for an address.
        let raw = unsafe {
            if ibv_query_gid(self.context, port, index, &mut gid) != 0 {
                return None;
            }
            gid.raw
        };
        let rank = match raw {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..] => 3,
            [0xfe, 0x80, ..] => 1,
            raw if raw == [0; 16] => return None,
            _ => 2,
        };
        // Of equal ones the first.
        Some((rank * 2 + u8::from(index < 16), index, raw))
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: each made by this card, and ended once, in the order in which they depend on each other.
        unsafe {
            for pair in std::mem::take(&mut self.pairs).into_values() {
                ibv_destroy_qp((*pair).queue_pair);
                drop(Box::from_raw(pair));
            }
            for region in self.regions.drain(..) {
                ibv_dereg_mr(region);
            }
            if !self.queue.is_null() {
                ibv_destroy_cq(self.queue);
            }
            if !self.channel.is_null() {
                ibv_destroy_comp_channel(self.channel);
            }
            if !self.domain.is_null() {
                ibv_dealloc_pd(self.domain);
            }
            ibv_close_device(self.context);
        }
    }
}

/// # Safety
/// `card` is from `open`, and not closed.
unsafe fn of<'a>(card: *mut c_void) -> &'a mut Card {
    // SAFETY: promised by the caller; one thread uses the table.
    unsafe { &mut *card.cast::<Card>() }
}

unsafe extern "C" fn close(card: *mut c_void) {
    // SAFETY: from `open`, and never named again.
    drop(unsafe { Box::from_raw(card.cast::<Card>()) });
}

unsafe extern "C" fn prepare(card: *mut c_void, completions: u32, why: *mut Text) -> i32 {
    // SAFETY: an open card; the queue is made once.
    unsafe {
        let card = of(card);
        if card.queue.is_null() {
            let most = completions.min(i32::MAX as u32) as c_int;
            card.queue = ibv_create_cq(card.context, most, null_mut(), card.channel, 0);
        }
        match card.queue.is_null() {
            false => 0,
            true => {
                let errno = errno();
                refuse(why, errno, &format!("no queue for {completions} completions: {}", in_words(errno)))
            }
        }
    }
}

unsafe extern "C" fn register(card: *mut c_void, addr: u64, bytes: u64, keys: *mut Keys, why: *mut Text) -> i32 {
    let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    // SAFETY: an open card; the caller keeps the memory.
    unsafe {
        raise_memlock();
        let card = of(card);
        let region = ibv_reg_mr(card.domain, addr as *mut c_void, bytes as usize, access as c_int);
        if region.is_null() {
            let errno = errno();
            let mib = bytes.div_ceil(1 << 20);
            let hint = match errno {
                libc::ENOMEM | libc::EAGAIN => "; a user may lock only so much memory (ulimit -l)",
                _ => "",
            };
            let text = format!("{mib} MiB of memory cannot be registered: {}{hint}", in_words(errno));
            return refuse(why, errno, &text);
        }
        *keys = Keys { local: (*region).lkey, remote: (*region).rkey };
        card.regions.push(region);
    }
    0
}

/// Registered memory counts as locked: use what the system allows.
fn raise_memlock() {
    // SAFETY: a local structure.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            // If not, registering says so.
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit);
        }
    }
}

unsafe extern "C" fn pair(
    at: *mut c_void,
    receives: u32,
    sends: u32,
    pair: *mut *mut c_void,
    own: *mut Address,
    why: *mut Text,
) -> i32 {
    // SAFETY: an open card, the caller's structures.
    unsafe {
        let card = of(at);
        let mut wish: ibv_qp_init_attr = std::mem::zeroed();
        (wish.send_cq, wish.recv_cq, wish.qp_type) = (card.queue, card.queue, IBV_QPT_RC);
        let mut queue_pair = null_mut();
        for inline in [INLINE_BYTES, 0] {
            wish.cap = ibv_qp_cap {
                max_send_wr: sends,
                max_recv_wr: receives,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: inline,
            };
            queue_pair = ibv_create_qp(card.domain, &mut wish);
            if !queue_pair.is_null() {
                break;
            }
        }
        if queue_pair.is_null() {
            let errno = errno();
            return refuse(why, errno, &format!("no room for one more connection: {}", in_words(errno)));
        }
        let mut attributes: ibv_qp_attr = std::mem::zeroed();
        attributes.qp_state = IBV_QPS_INIT;
        attributes.port_num = card.port;
        attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        let failed = ibv_modify_qp(queue_pair, &mut attributes, mask as c_int);
        if failed != 0 {
            ibv_destroy_qp(queue_pair);
            return refuse(why, failed, &format!("a connection cannot begin: {}", in_words(failed)));
        }
        *own = Address {
            gid: card.gid,
            queue_pair: (*queue_pair).qp_num,
            packet: RandomState::new().hash_one((*queue_pair).qp_num) as u32 & 0x00ff_ffff,
            lid: card.attributes.lid,
            mtu: card.attributes.active_mtu as u8,
            ethernet: u8::from(card.attributes.link_layer == ETHERNET),
        };
        let made =
            Box::into_raw(Box::new(Pair { card: at.cast(), queue_pair, inline_bytes: wish.cap.max_inline_data }));
        card.pairs.insert(made as usize, made);
        *pair = made.cast();
    }
    0
}

unsafe extern "C" fn join(pair: *mut c_void, own: *const Address, to: *const Address, why: *mut Text) -> i32 {
    // SAFETY: a live connection's end of a live card, the caller's structures.
    unsafe {
        let (pair, own, to) = (&*pair.cast::<Pair>(), *own, *to);
        let card = &*pair.card;
        if own.ethernet != to.ethernet || !(1..=5).contains(&to.mtu) {
            let kind = |ethernet| if ethernet == 1 { "Ethernet" } else { "InfiniBand" };
            let (here, there) = (kind(own.ethernet), kind(to.ethernet));
            return refuse(why, libc::EINVAL, &format!("the device here is on {here}, the other node's on {there}"));
        }
        let mut attributes: ibv_qp_attr = std::mem::zeroed();
        attributes.qp_state = IBV_QPS_RTR;
        attributes.path_mtu = own.mtu.min(to.mtu).into();
        attributes.dest_qp_num = to.queue_pair & 0x00ff_ffff;
        attributes.rq_psn = to.packet & 0x00ff_ffff;
        attributes.min_rnr_timer = RECEIVER_NOT_READY;
        attributes.ah_attr.port_num = card.port;
        attributes.ah_attr.dlid = to.lid;
        if to.ethernet == 1 {
            attributes.ah_attr.is_global = 1;
            attributes.ah_attr.grh.dgid = ibv_gid { raw: to.gid };
            attributes.ah_attr.grh.sgid_index = card.gid_index;
            attributes.ah_attr.grh.hop_limit = 64;
        }
        let mask = IBV_QP_STATE
            | IBV_QP_AV
            | IBV_QP_PATH_MTU
            | IBV_QP_DEST_QPN
            | IBV_QP_RQ_PSN
            | IBV_QP_MAX_DEST_RD_ATOMIC
            | IBV_QP_MIN_RNR_TIMER;
        let failed = ibv_modify_qp(pair.queue_pair, &mut attributes, mask as c_int);
        if failed != 0 {
            return refuse(
                why,
                failed,
                &format!("the way to the other node's device is not known: {}", in_words(failed)),
            );
        }
        let mut attributes: ibv_qp_attr = std::mem::zeroed();
        attributes.qp_state = IBV_QPS_RTS;
        (attributes.timeout, attributes.retry_cnt, attributes.rnr_retry) = (TIMEOUT, RETRIES, RETRIES);
        attributes.sq_psn = own.packet & 0x00ff_ffff;
        let mask = IBV_QP_STATE
            | IBV_QP_TIMEOUT
            | IBV_QP_RETRY_CNT
            | IBV_QP_RNR_RETRY
            | IBV_QP_SQ_PSN
            | IBV_QP_MAX_QP_RD_ATOMIC;
        match ibv_modify_qp(pair.queue_pair, &mut attributes, mask as c_int) {
            0 => 0,
            failed => refuse(why, failed, &format!("the connection cannot be opened: {}", in_words(failed))),
        }
    }
}

unsafe extern "C" fn part(pair: *mut c_void) {
    // SAFETY: a live connection's end, never named again.
    unsafe {
        let pair = Box::from_raw(pair.cast::<Pair>());
        ibv_destroy_qp(pair.queue_pair);
        (*pair.card).pairs.remove(&((&raw const *pair) as usize));
    }
}

unsafe extern "C" fn receive(pair: *mut c_void, id: u64, addr: u64, bytes: u32, key: u32) -> i32 {
    // SAFETY: a live connection's end; the structures live until the call returns.
    unsafe {
        let mut place = ibv_sge { addr, length: bytes, lkey: key };
        let mut work: ibv_recv_wr = std::mem::zeroed();
        (work.wr_id, work.sg_list, work.num_sge) = (id, &mut place, 1);
        let mut bad = null_mut();
        ibv_post_recv((*pair.cast::<Pair>()).queue_pair, &mut work, &mut bad)
    }
}

unsafe extern "C" fn send(pair: *mut c_void, work: *const Work) -> i32 {
    // SAFETY: as in `receive`.
    unsafe {
        let (pair, work) = (&*pair.cast::<Pair>(), &*work);
        let mut place = ibv_sge { addr: work.addr, length: work.bytes, lkey: work.key };
        let mut wish: ibv_send_wr = std::mem::zeroed();
        (wish.wr_id, wish.sg_list, wish.num_sge) = (work.id, &mut place, 1);
        let mut flags = 0;
        if work.flags & flag::SIGNALED != 0 {
            flags |= IBV_SEND_SIGNALED;
        }
        if work.bytes <= pair.inline_bytes {
            flags |= IBV_SEND_INLINE;
        }
        wish.send_flags = flags;
        wish.opcode = IBV_WR_SEND;
        if work.flags & flag::WRITE != 0 {
            wish.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
            wish.imm_data = work.immediate.to_be();
            (wish.remote_addr, wish.rkey) = (work.remote, work.remote_key);
        }
        let mut bad = null_mut();
        ibv_post_send(pair.queue_pair, &mut wish, &mut bad)
    }
}

unsafe extern "C" fn poll(card: *mut c_void, done: *mut Done, most: u32) -> i32 {
    // SAFETY: an open and prepared card; room for `most`.
    unsafe {
        let mut batch: [ibv_wc; BATCH] = std::mem::zeroed();
        let count = ibv_poll_cq(of(card).queue, most.min(BATCH as u32) as c_int, batch.as_mut_ptr());
        if count < 0 {
            return -errno();
        }
        for (at, one) in batch[..count as usize].iter().enumerate() {
            let what = match one.opcode {
                IBV_WC_RECV => what::RECEIVED,
                IBV_WC_RECV_RDMA_WITH_IMM => what::WRITTEN,
                _ => what::SENT,
            };
            let immediate = u32::from_be(one.imm_data);
            let told = Done { id: one.wr_id, status: one.status, what, bytes: one.byte_len, immediate };
            done.add(at).write(told);
        }
        count
    }
}

unsafe extern "C" fn arm(card: *mut c_void) -> i32 {
    // SAFETY: an open and prepared card.
    unsafe { ibv_req_notify_cq(of(card).queue, 0) }
}

unsafe extern "C" fn heed(card: *mut c_void) -> i32 {
    // SAFETY: an open card, whose channel does not block.
    unsafe {
        let (mut queue, mut context, mut any) = (null_mut(), null_mut(), 0);
        while ibv_get_cq_event(of(card).channel, &mut queue, &mut context) == 0 {
            ibv_ack_cq_events(queue, 1);
            any = 1;
        }
        any
    }
}

unsafe extern "C" fn status(status: u32) -> *const c_char {
    // SAFETY: static strings for all numbers.
    unsafe { ibv_wc_status_str(status) }
}
