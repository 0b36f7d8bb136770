//! Copies between real processes, and every refusal that this machine can produce.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{
    ForkResult, Gid, Pid, Uid, fork, getuid, pause, pipe, read as read_fd, setresgid, setresuid, write as write_fd,
};
use vmpi_cma::{Block, CopyError, Refusal, Side, probe, read, write};

/// A forked child that has finished `prepare` and sleeps until it is dropped. It has this process's addresses.
struct Child(Pid);

impl Child {
    fn sleeping(prepare: impl FnOnce()) -> Child {
        let (ready, tell) = pipe().unwrap();
        // SAFETY: the child only prepares, writes a byte and sleeps; glibc's allocator is usable after fork.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                // SAFETY: prctl with plain numbers; the child must not outlive the test.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                prepare();
                let _ = write_fd(&tell, &[1]);
                loop {
                    pause();
                }
            }
            ForkResult::Parent { child } => {
                drop(tell);
                assert_eq!(read_fd(&ready, &mut [0u8]), Ok(1), "the child did not get ready");
                Child(child)
            }
        }
    }

    fn pid(&self) -> i32 {
        self.0.as_raw()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

/// Run `ask` in a child of its own (which may give up rights) and return the text that it answers.
fn answer_of(ask: impl FnOnce() -> String) -> String {
    let (ready, tell) = pipe().unwrap();
    // SAFETY: as in `Child::sleeping`.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let _ = write_fd(&tell, ask().as_bytes());
            // SAFETY: ends this child without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(tell);
            let mut text = vec![0u8; 4096];
            let len = read_fd(&ready, &mut text).unwrap();
            waitpid(child, None).unwrap();
            String::from_utf8(text[..len].to_vec()).unwrap()
        }
    }
}

fn become_user(id: u32) {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setresgid(group, group, group).unwrap();
    setresuid(user, user, user).unwrap();
}

fn set_dumpable(yes: bool) {
    nix::sys::prctl::set_dumpable(yes).unwrap();
}

/// Anonymous pages; the second half can be made inaccessible.
fn pages(count: usize) -> &'static mut [u8] {
    // SAFETY: a fresh private mapping, leaked.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let addr = libc::mmap(std::ptr::null_mut(), count * 4096, protection, flags, -1, 0);
        assert_ne!(addr, libc::MAP_FAILED);
        std::slice::from_raw_parts_mut(addr.cast(), count * 4096)
    }
}

#[test]
fn a_child_can_be_read_and_written() {
    let shared_address = pages(256);
    shared_address.fill(1);
    let size = shared_address.len();
    let theirs = [Block::of(shared_address)];
    let child = Child::sleeping(|| shared_address.fill(7));
    let mut mine = vec![0u8; size];
    probe(child.pid(), theirs[0].addr).unwrap();
    // SAFETY: `mine` is local and exclusive.
    assert_eq!(unsafe { read(child.pid(), &[Block::of(&mine)], &theirs) }, Ok(size as u64));
    assert!(std::hint::black_box(&mut mine).iter().all(|&b| b == 7));
    mine.fill(9);
    // SAFETY: `mine` is local; the child only sleeps.
    assert_eq!(unsafe { write(child.pid(), &[Block::of(&mine)], &theirs) }, Ok(size as u64));
    mine.fill(0);
    // SAFETY: as above.
    unsafe { read(child.pid(), &[Block::of(&mine)], &theirs) }.unwrap();
    assert!(std::hint::black_box(&mut mine).iter().all(|&b| b == 9));
}

#[test]
fn a_fault_names_the_address_and_what_arrived_before_it() {
    let theirs = pages(4);
    theirs.fill(3);
    let hole = &theirs[2 * 4096..];
    // SAFETY: our own mapping; nobody reads its second half afterwards.
    assert_eq!(unsafe { libc::mprotect(hole.as_ptr() as *mut _, hole.len(), libc::PROT_NONE) }, 0);
    let child = Child::sleeping(|| ());
    let mine = vec![0u8; theirs.len()];
    let fault = |side, addr| CopyError::Fault { pid: child.pid(), side, addr, copied: 2 * 4096 };
    // SAFETY: `mine` is local.
    let result = unsafe { read(child.pid(), &[Block::of(&mine)], &[Block::of(theirs)]) };
    assert_eq!(result, Err(fault(Side::Remote, hole.as_ptr() as u64)));
    // SAFETY: the kernel checks the hole; that it refuses is what is tested.
    let result = unsafe { write(child.pid(), &[Block::of(theirs)], &[Block::of(&mine)]) };
    assert_eq!(result, Err(fault(Side::Local, hole.as_ptr() as u64)));
    // SAFETY: as above.
    let result = unsafe { read(child.pid(), &[Block::of(theirs)], &[Block::of(&mine)]) };
    assert_eq!(result, Err(fault(Side::Local, hole.as_ptr() as u64)));
}

#[test]
fn a_dead_peer_is_no_such_process() {
    let byte = 1u8;
    let addr = &raw const byte as u64;
    let child = Child::sleeping(|| ());
    let pid = child.pid();
    kill(child.0, Signal::SIGKILL).unwrap();
    // A zombie has no memory any more: the kernel's answer depends on how far its exit has come, but never is "yes".
    drop(child);
    assert_eq!(probe(pid, addr), Err(Refusal::NoSuchProcess { pid }));
    let mine = [0u8; 1];
    // SAFETY: `mine` is local.
    let result = unsafe { read(pid, &[Block::of(&mine)], &[Block { addr, len: 1 }]) };
    assert_eq!(result, Err(CopyError::NoSuchProcess { pid }));
}

#[test]
fn a_bad_address_is_not_a_refusal() {
    let child = Child::sleeping(|| ());
    assert_eq!(probe(child.pid(), 8), Err(Refusal::BadAddress { pid: child.pid(), addr: 8 }));
}

#[test]
fn a_process_that_is_not_dumpable_is_named() {
    if !getuid().is_root() {
        return;
    }
    let byte = 1u8;
    let addr = &raw const byte as u64;
    let peer = Child::sleeping(|| {
        become_user(65534);
        set_dumpable(false);
    });
    let answer = answer_of(|| {
        become_user(65534);
        format!("{:?}", probe(peer.pid(), addr))
    });
    assert_eq!(answer, format!("{:?}", Err::<(), _>(Refusal::NotDumpable { pid: peer.pid() })));
}

#[test]
fn another_user_is_named() {
    if !getuid().is_root() {
        return;
    }
    let byte = 1u8;
    let addr = &raw const byte as u64;
    let peer = Child::sleeping(|| become_user(65533));
    let answer = answer_of(|| {
        become_user(65534);
        format!("{:?}", probe(peer.pid(), addr))
    });
    let expected = Refusal::OtherUser { pid: peer.pid(), mine: 65534, theirs: 65533 };
    assert_eq!(answer, format!("{:?}", Err::<(), _>(expected)));
}

#[test]
fn another_user_namespace_is_named() {
    if !getuid().is_root() {
        return;
    }
    let byte = 1u8;
    let addr = &raw const byte as u64;
    let peer = Child::sleeping(|| {
        become_user(65534);
        set_dumpable(true);
    });
    let answer = answer_of(|| {
        become_user(65534);
        set_dumpable(true);
        if nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER).is_err() {
            return "no user namespaces here".into();
        }
        format!("{:?}", probe(peer.pid(), addr))
    });
    if answer != "no user namespaces here" {
        assert_eq!(answer, format!("{:?}", Err::<(), _>(Refusal::UserNamespace { pid: peer.pid() })));
    }
}

#[test]
fn a_seccomp_filter_is_named() {
    let byte = 1u8;
    let addr = &raw const byte as u64;
    let peer = Child::sleeping(|| ());
    let answer = answer_of(|| {
        forbid(libc::SYS_process_vm_readv as u32);
        format!("{:?}", probe(peer.pid(), addr))
    });
    assert_eq!(answer, format!("{:?}", Err::<(), _>(Refusal::Seccomp)));
}

/// Make one system call fail with EPERM in this process from now on.
fn forbid(call: u32) {
    let statement = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: `program` and its filter live through the call, which copies them.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}
