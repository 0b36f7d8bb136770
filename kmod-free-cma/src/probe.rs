//! May I copy from this peer? Asked by a real call; /proc is read only to explain a refusal.
//!
//! The kernel's rule is PTRACE_MODE_ATTACH_REALCREDS of ptrace(2), then the security modules. [`explain`] walks the same
//! steps in the same order and names the one that refuses; where the evidence does not suffice it says so.

use crate::copy::peek;
use nix::errno::Errno;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// CAP_SYS_PTRACE of linux/capability.h.
const CAP_SYS_PTRACE: u64 = 1 << 19;

/// Why a peer's memory is out of reach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("process {pid} does not exist (any more)")]
    NoSuchProcess { pid: i32 },
    #[error(
        "a seccomp filter of this process forbids process_vm_readv even on itself; run the container with a profile that allows it"
    )]
    Seccomp,
    #[error(
        "process_vm_readv does not exist here: the kernel lacks CONFIG_CROSS_MEMORY_ATTACH, or a seccomp filter hides it"
    )]
    Unsupported,
    #[error("process {pid} lives in another user namespace; start all ranks of a node in one container or namespace")]
    UserNamespace { pid: i32 },
    #[error("process {pid} runs as user {theirs}, this one as user {mine}; start all ranks as one user")]
    OtherUser { pid: i32, mine: u32, theirs: u32 },
    #[error("process {pid} runs in group {theirs}, this one in group {mine}; start all ranks with one group")]
    OtherGroup { pid: i32, mine: u32, theirs: u32 },
    #[error("process {pid} is not dumpable (set-user-ID, an unreadable executable, or prctl(PR_SET_DUMPABLE, 0))")]
    NotDumpable { pid: i32 },
    #[error("process {pid} has capabilities that this one lacks; give all ranks the same")]
    MoreCapabilities { pid: i32 },
    #[error("Yama forbids it: kernel.yama.ptrace_scope is {scope}; sysctl kernel.yama.ptrace_scope=0 lifts this{}", if *scope == 1 { ", or the peer's prctl(PR_SET_PTRACER)" } else { "" })]
    Yama { scope: u32 },
    #[error("address {addr:#x} of process {pid} is not readable")]
    BadAddress { pid: i32, addr: u64 },
    /// The evidence in /proc names none of the limits above (another security module, for example).
    #[error("the kernel refuses access to the memory of process {pid} ({errno}), and /proc does not tell why")]
    Unexplained { pid: i32, errno: Errno },
}

/// Read one byte at `addr`, an address known to be readable in process `pid`. One system call if the answer is yes.
///
/// # Errors
/// The limit that refused.
pub fn probe(pid: i32, addr: u64) -> Result<(), Refusal> {
    match peek(pid, addr) {
        Ok(_) => Ok(()),
        Err(Errno::EFAULT) => Err(Refusal::BadAddress { pid, addr }),
        Err(errno) => Err(explain(pid, errno)),
    }
}

/// Let every process of this user copy from and to this one, where Yama's ptrace_scope is 1 and would allow only ancestors.
/// Returns false if this kernel has no Yama, where nothing needs to be lifted.
#[allow(unsafe_code)]
pub fn allow_peers() -> bool {
    // SAFETY: prctl with plain numbers changes only this process's record in Yama.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) == 0 }
}

/// Name the limit behind a refused call on process `pid`; reads /proc.
pub fn explain(pid: i32, errno: Errno) -> Refusal {
    match errno {
        Errno::ESRCH => return Refusal::NoSuchProcess { pid },
        Errno::ENOSYS => return Refusal::Unsupported,
        _ => {}
    }
    // A process may always read itself, whatever its credentials: a refusal here can only come from a system-call filter.
    let own = 0u8;
    if peek(std::process::id() as i32, &raw const own as u64) == Err(Errno::EPERM) {
        return Refusal::Seccomp;
    }
    let Some(theirs) = Credentials::of(&pid.to_string()) else { return Refusal::NoSuchProcess { pid } };
    let Some(mine) = Credentials::of("self") else { return Refusal::Unexplained { pid, errno } };
    if mine.namespace_differs(&theirs) {
        return Refusal::UserNamespace { pid };
    }
    if mine.effective & CAP_SYS_PTRACE == 0 {
        if let Some(&user) = theirs.users.iter().find(|&&user| user != mine.users[0]) {
            return Refusal::OtherUser { pid, mine: mine.users[0], theirs: user };
        }
        if let Some(&group) = theirs.groups.iter().find(|&&group| group != mine.groups[0]) {
            return Refusal::OtherGroup { pid, mine: mine.groups[0], theirs: group };
        }
        // The kernel gives the files (not the directory) of a process that is not dumpable to root.
        if theirs.proc_owner != theirs.users[1] {
            return Refusal::NotDumpable { pid };
        }
        if theirs.permitted & !mine.permitted != 0 {
            return Refusal::MoreCapabilities { pid };
        }
    }
    match yama_scope() {
        Some(3) => Refusal::Yama { scope: 3 },
        Some(scope @ 1..) if mine.effective & CAP_SYS_PTRACE == 0 => Refusal::Yama { scope },
        _ => Refusal::Unexplained { pid, errno },
    }
}

/// kernel.yama.ptrace_scope; `None` without Yama.
pub fn yama_scope() -> Option<u32> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}

/// What /proc tells about a process's rights.
struct Credentials {
    /// Real, effective, saved.
    users: [u32; 3],
    groups: [u32; 3],
    permitted: u64,
    effective: u64,
    proc_owner: u32,
    user_namespace: Option<std::path::PathBuf>,
    uid_map: Option<String>,
}

impl Credentials {
    fn of(who: &str) -> Option<Credentials> {
        let dir = format!("/proc/{who}");
        let status = fs::read_to_string(format!("{dir}/status")).ok()?;
        Some(Credentials {
            users: ids(&status, "Uid:")?,
            groups: ids(&status, "Gid:")?,
            permitted: mask(&status, "CapPrm:")?,
            effective: mask(&status, "CapEff:")?,
            proc_owner: fs::metadata(format!("{dir}/status")).ok()?.uid(),
            user_namespace: fs::read_link(format!("{dir}/ns/user")).ok(),
            uid_map: fs::read_to_string(format!("{dir}/uid_map")).ok(),
        })
    }

    /// Surely another namespace: by the link where it may be read, else by the maps, which every process may read.
    fn namespace_differs(&self, other: &Credentials) -> bool {
        match (&self.user_namespace, &other.user_namespace) {
            (Some(a), Some(b)) => a != b,
            _ => matches!((&self.uid_map, &other.uid_map), (Some(a), Some(b)) if a != b),
        }
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

fn ids(status: &str, name: &str) -> Option<[u32; 3]> {
    let mut numbers = field(status, name)?.split_whitespace().map(|word| word.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

fn mask(status: &str, name: &str) -> Option<u64> {
    u64::from_str_radix(field(status, name)?.trim(), 16).ok()
}
