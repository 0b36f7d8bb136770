//! A one-sided window's control block: who has locked whose memory, who may access whom, what is attached.
//!
//! One segment per window and node, made by the first of its members there and mapped by the others; memory that MPI allocates for
//! the window follows in the same segment. A member of another node has its place in it, too: this node's carrier waits there in its name. Every word says who writes it. All-zero is a valid start.
//!
//! Waiting: a member says that it waits ([`Member::waiting`]), looks once more and is suspended; whoever changes what a
//! member may wait for fences and then looks at that word (SYNC W). Death story: a member that dies with a lock, or
//! before it posts or completes, leaves the others SUSPENDED; its death ends the job.

use crate::mem::segment::{Segment, SegmentError, layout_hash};
use crate::mem::sync::{AtomicU32, AtomicU64, Ordering, fence};
use std::mem::size_of;
use std::os::fd::{BorrowedFd, OwnedFd};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// One member of a window.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Member {
    /// Threads of this member that wait for something in this window; the member.
    pub waiting: AtomicU32,
    /// The member whose lock it waits for, plus 1; [`ANY`]: several, or something else; the member.
    pub wants: AtomicU32,
    /// Its place in that lock's line; the member.
    pub ticket: AtomicU32,
    /// Its number in the job, plus 1, where the window has members on other nodes; whoever makes the segment.
    rank: AtomicU32,
    /// Where its memory lies in its process, and bytes of it, for its node's carrier; the member.
    base: AtomicU64,
    bytes: AtomicU64,
    reserved0: [u32; 8],
    /// The lock on this member's memory (MPI_Win_lock). Whoever locks and unlocks.
    pub lock: LineLock,
    /// The lock for the moment of an accumulation. Whoever accumulates.
    pub moment: MomentLock,
    /// Access epochs on this member that have been completed (MPI_Win_complete), ever; fetch_add by the origins.
    pub completed: AtomicU64,
    /// Slots of `Window::attached` used so far; the member.
    pub attachments: AtomicU32,
    /// It has attached more than there are slots: nothing is checked any more; the member.
    pub unchecked: AtomicU32,
    reserved1: [u64; 3],
}

impl Member {
    /// Its number in the job, if that has been told.
    pub fn rank(&self) -> Option<u32> {
        self.rank.load(SEQ).checked_sub(1)
    }
    pub fn set_rank(&self, rank: u32) {
        self.rank.store(rank + 1, SEQ);
    }

    /// Address and bytes of its memory.
    pub fn memory(&self) -> (u64, u64) {
        (self.base.load(SEQ), self.bytes.load(SEQ))
    }
    pub fn set_memory(&self, base: u64, bytes: u64) {
        self.base.store(base, SEQ);
        self.bytes.store(bytes, SEQ);
    }

    /// A thread of this member begins to wait for something ([`Member::wants`]); it then looks once more (SYNC W).
    pub fn begin_wait(&self, wants: u32, ticket: u32) {
        let first = self.waiting.fetch_add(1, SEQ) == 0;
        self.ticket.store(ticket, SEQ);
        self.wants.store(if first { wants } else { ANY }, SEQ);
        fence(SEQ); // SYNC W
    }
    pub fn end_wait(&self) {
        self.waiting.fetch_sub(1, SEQ);
    }
}

/// Value of [`Member::wants`]: wake it for everything.
pub const ANY: u32 = u32::MAX;

/// A fair lock for readers and writers: whoever comes draws a ticket and is let in when it is called.
#[repr(C)]
#[derive(Default)]
pub struct LineLock {
    next: AtomicU32,
    /// The ticket that may come in to share.
    shared: AtomicU32,
    /// The ticket that may come in alone.
    exclusive: AtomicU32,
    /// Threads that wait for their ticket.
    queued: AtomicU32,
}

/// A place in the line of a [`LineLock`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    pub number: u32,
    pub exclusive: bool,
}

impl LineLock {
    /// Get in line.
    #[inline]
    pub fn draw(&self, exclusive: bool) -> Ticket {
        Ticket { number: self.next.fetch_add(1, SEQ), exclusive }
    }

    /// Has the ticket been called?
    #[inline]
    pub fn is_called(&self, ticket: Ticket) -> bool {
        let called = if ticket.exclusive { &self.exclusive } else { &self.shared };
        called.load(SEQ) == ticket.number
    }

    /// Come in with a ticket that has been called. True: somebody may have to be woken ([`Window::called`]).
    #[inline]
    pub fn come_in(&self, ticket: Ticket) -> bool {
        if ticket.exclusive {
            return false;
        }
        self.shared.fetch_add(1, SEQ);
        self.has_queue()
    }

    /// Leave. True: somebody may have to be woken.
    #[inline]
    pub fn leave(&self, exclusive: bool) -> bool {
        if exclusive {
            self.shared.fetch_add(1, SEQ);
        }
        self.exclusive.fetch_add(1, SEQ);
        self.has_queue()
    }

    /// A thread begins or ends to wait for its ticket.
    pub fn queue(&self) {
        self.queued.fetch_add(1, SEQ);
    }
    pub fn unqueue(&self) {
        self.queued.fetch_sub(1, SEQ);
    }

    #[inline]
    fn has_queue(&self) -> bool {
        fence(SEQ); // SYNC W
        self.queued.load(SEQ) != 0
    }
}

/// A lock that is held for moments only, by whoever reads, computes and writes back.
#[repr(C)]
#[derive(Default)]
pub struct MomentLock {
    /// 0, or the holder plus 1; the highest bit: somebody waits.
    word: AtomicU32,
    reserved: u32,
}

const CONTENDED: u32 = 1 << 31;

impl MomentLock {
    /// Take it for `member`, if it is free.
    #[inline]
    pub fn take(&self, member: u32) -> bool {
        let word = self.word.load(RELAXED);
        word & !CONTENDED == 0 && self.word.compare_exchange(word, word | (member + 1), SEQ, RELAXED).is_ok()
    }

    /// The holder must wake those who wait. False: it is free now.
    pub fn contend(&self) -> bool {
        let mut word = self.word.load(SEQ);
        loop {
            if word & !CONTENDED == 0 {
                return false;
            }
            match self.word.compare_exchange(word, word | CONTENDED, SEQ, SEQ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// The member that has it.
    pub fn holder(&self) -> Option<u32> {
        (self.word.load(SEQ) & !CONTENDED).checked_sub(1)
    }

    /// Give it back. True: somebody may have to be woken.
    #[inline]
    pub fn give(&self) -> bool {
        let contended = self.word.swap(0, SEQ) & CONTENDED != 0;
        if contended {
            fence(SEQ); // SYNC W
        }
        contended
    }
}

/// A piece of memory that a member has attached to a dynamic window; the member writes it, `bytes` last.
#[repr(C)]
#[derive(Default)]
pub struct Attached {
    base: AtomicU64,
    /// 0: a free slot.
    bytes: AtomicU64,
}

/// Attachments of one member that are remembered.
const ATTACHED_SLOTS: u32 = 4096;

const MEMBERS_AT: u64 = 64;
const LAYOUT: u64 =
    layout_hash(&[2, MEMBERS_AT, size_of::<Member>() as u64, size_of::<Attached>() as u64, ATTACHED_SLOTS as u64]);

#[cfg(not(feature = "model"))]
const _: () = {
    assert!(size_of::<Member>() == 128);
    assert!(std::mem::offset_of!(Member, lock) == 64);
    assert!(size_of::<crate::mem::segment::Head>() as u64 <= MEMBERS_AT);
};

/// What a window's segment is made from. All members know the same.
#[derive(Copy, Clone, Debug)]
pub struct Shape {
    pub members: u32,
    /// Memory can be attached.
    pub dynamic: bool,
    /// Bytes of memory that MPI allocates for all members.
    pub data_bytes: u64,
}

impl Shape {
    fn posts_at(&self) -> u64 {
        MEMBERS_AT + u64::from(self.members) * size_of::<Member>() as u64
    }
    fn attached_at(&self) -> u64 {
        (self.posts_at() + u64::from(self.members).pow(2) * 4).next_multiple_of(64)
    }
    fn data_at(&self) -> u64 {
        let slots = if self.dynamic { u64::from(self.members) * u64::from(ATTACHED_SLOTS) } else { 0 };
        (self.attached_at() + slots * size_of::<Attached>() as u64).next_multiple_of(4096)
    }
    fn bytes(&self) -> Option<u64> {
        self.data_at().checked_add(self.data_bytes)?.checked_next_multiple_of(4096)
    }
}

/// A mapped window segment.
pub struct Window {
    shape: Shape,
    members: *const Member,
    segment: Segment,
}

// SAFETY: `members` points into the segment, which is Send and Sync; what is reached through it is atomics.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    pub fn create(shape: Shape) -> Result<Window, SegmentError> {
        let bytes = shape.bytes().filter(|bytes| *bytes <= i64::MAX as u64);
        let bytes = bytes.ok_or(SegmentError::Map { bytes: shape.data_bytes, errno: nix::errno::Errno::ENOMEM })?;
        Ok(Self::view(shape, Segment::create("window", LAYOUT, bytes)?))
    }

    /// Map the segment that another member has made.
    pub fn map(shape: Shape, fd: OwnedFd) -> Result<Window, SegmentError> {
        let segment = Segment::map("window", LAYOUT, fd)?;
        let (found, expected) = (segment.bytes() as u64, shape.bytes().unwrap_or(0));
        if found != expected {
            return Err(SegmentError::Size { expected, found });
        }
        Ok(Self::view(shape, segment))
    }

    fn view(shape: Shape, segment: Segment) -> Window {
        let bytes = shape.members as usize * size_of::<Member>();
        Window { shape, members: segment.at(MEMBERS_AT, bytes).as_ptr().cast(), segment }
    }

    /// Everybody has mapped it: the descriptor is not needed any more.
    pub fn close_fd(&mut self) {
        self.segment.close_fd();
    }

    pub fn raw_fd(&self) -> i32 {
        self.segment.raw_fd()
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    pub fn members(&self) -> u32 {
        self.shape.members
    }

    #[inline]
    pub fn member(&self, member: u32) -> &Member {
        assert!(member < self.shape.members, "member {member} of a window of {}", self.shape.members);
        // SAFETY: in range of the array that `view` checked; atomics only.
        unsafe { &*self.members.add(member as usize) }
    }

    /// How often `target` has opened its memory to `origin` (MPI_Win_post), ever; written by `target`.
    pub fn posts(&self, origin: u32, target: u32) -> &AtomicU32 {
        let n = self.shape.members;
        assert!(origin < n && target < n, "members {origin} and {target} of a window of {n}");
        let index = u64::from(origin) * u64::from(n) + u64::from(target);
        // SAFETY: `Segment::at` checks the range; the offset is a multiple of 4.
        unsafe { self.segment.at(self.shape.posts_at() + index * 4, 4).cast::<AtomicU32>().as_ref() }
    }

    /// Address of the memory that MPI allocated, from `offset` on.
    ///
    /// # Panics
    /// If `offset` is beyond it.
    pub fn data(&self, offset: u64) -> *mut u8 {
        self.segment.at(self.shape.data_at() + offset, 0).as_ptr()
    }

    /// Is somebody waiting for the lock on `target`, whose ticket may have been called now? Their members.
    pub fn called(&self, target: u32) -> impl Iterator<Item = u32> {
        let lock = &self.member(target).lock;
        let (shared, exclusive) = (lock.shared.load(SEQ), lock.exclusive.load(SEQ));
        (0..self.shape.members).filter(move |&member| {
            let member = self.member(member);
            let (wants, ticket) = (member.wants.load(SEQ), member.ticket.load(SEQ));
            member.waiting.load(SEQ) != 0
                && (wants == ANY || (wants == target + 1 && (ticket == shared || ticket == exclusive)))
        })
    }

    /// The members that wait for something at `target`.
    pub fn waiting_for(&self, target: u32) -> impl Iterator<Item = u32> {
        (0..self.shape.members).filter(move |&member| {
            let member = self.member(member);
            let wants = member.wants.load(SEQ);
            member.waiting.load(SEQ) != 0 && (wants == ANY || wants == target + 1)
        })
    }

    /// The number that a segment of at least eight bytes is made for where no memory is accessed, but steps are taken (`ask::What::Step`): the shared
    /// pointer of a file. Whoever steps.
    pub fn counter(&self) -> Option<&AtomicU64> {
        if self.shape.data_bytes < size_of::<AtomicU64>() as u64 {
            return None;
        }
        // SAFETY: `Segment::at` checks the range; the offset is a multiple of 4096; used as an atomic by all.
        Some(unsafe { self.segment.at(self.shape.data_at(), size_of::<AtomicU64>()).cast::<AtomicU64>().as_ref() })
    }

    fn attached(&self, member: u32, slot: u32) -> &Attached {
        assert!(self.shape.dynamic && member < self.shape.members && slot < ATTACHED_SLOTS);
        let index = u64::from(member) * u64::from(ATTACHED_SLOTS) + u64::from(slot);
        let (at, len) = (self.shape.attached_at() + index * size_of::<Attached>() as u64, size_of::<Attached>());
        // SAFETY: `Segment::at` checks the range; the offset is a multiple of 16; atomics only.
        unsafe { self.segment.at(at, len).cast::<Attached>().as_ref() }
    }

    /// Remember that `member` (the caller) has attached `[base, base + bytes)`.
    pub fn attach(&self, member: u32, base: u64, bytes: u64) {
        let head = self.member(member);
        let used = head.attachments.load(RELAXED);
        let free = (0..used).find(|&slot| self.attached(member, slot).bytes.load(RELAXED) == 0).unwrap_or(used);
        if free == ATTACHED_SLOTS {
            head.unchecked.store(1, SEQ);
            return;
        }
        let slot = self.attached(member, free);
        slot.base.store(base, SEQ);
        slot.bytes.store(bytes, SEQ);
        head.attachments.store(used.max(free + 1), SEQ);
    }

    /// Forget the attachment of `member` (the caller) that starts at `base`. False if none is remembered.
    pub fn detach(&self, member: u32, base: u64) -> bool {
        let used = self.member(member).attachments.load(RELAXED);
        let found = (0..used)
            .map(|slot| self.attached(member, slot))
            .find(|attached| attached.bytes.load(RELAXED) != 0 && attached.base.load(RELAXED) == base);
        match found {
            Some(attached) => {
                attached.bytes.store(0, SEQ);
                true
            }
            None => self.member(member).unchecked.load(RELAXED) != 0,
        }
    }

    /// What `member` has attached: address and bytes.
    pub fn attachments(&self, member: u32) -> impl Iterator<Item = (u64, u64)> {
        let used = if self.shape.dynamic { self.member(member).attachments.load(SEQ).min(ATTACHED_SLOTS) } else { 0 };
        (0..used).map(move |slot| {
            let attached = self.attached(member, slot);
            (attached.base.load(SEQ), attached.bytes.load(SEQ))
        })
    }

    /// May all of `[from, to)` be accessed in the memory of `member`?
    pub fn holds(&self, member: u32, from: u64, to: u64) -> bool {
        if self.shape.dynamic {
            return self.is_attached(member, from, to);
        }
        let (base, bytes) = self.member(member).memory();
        from >= base && to - base <= bytes
    }

    /// Is all of `[from, to)` attached by `member`?
    pub fn is_attached(&self, member: u32, mut from: u64, to: u64) -> bool {
        let head = self.member(member);
        if head.unchecked.load(SEQ) != 0 {
            return true;
        }
        let used = head.attachments.load(SEQ).min(ATTACHED_SLOTS);
        // Pieces may touch: go on where one ends.
        while from < to {
            let end = (0..used).find_map(|slot| {
                let attached = self.attached(member, slot);
                let bytes = attached.bytes.load(SEQ);
                let base = attached.base.load(SEQ);
                // A slot that changes meanwhile belongs to a piece that nobody may access now.
                let end = base.saturating_add(bytes);
                (bytes != 0 && attached.bytes.load(SEQ) == bytes && base <= from && from < end).then_some(end)
            });
            match end {
                Some(end) => from = end,
                None => return false,
            }
        }
        true
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn window(members: u32, dynamic: bool) -> Window {
        Window::create(Shape { members, dynamic, data_bytes: 100 }).unwrap()
    }

    #[test]
    fn the_line_is_fair_and_readers_share() {
        let lock = LineLock::default();
        let tickets: Vec<Ticket> = [false, false, true, false, true].map(|exclusive| lock.draw(exclusive)).into();
        let called = |lock: &LineLock| tickets.iter().map(|t| lock.is_called(*t)).collect::<Vec<_>>();
        assert_eq!(called(&lock), [true, false, false, false, false]);
        lock.come_in(tickets[0]);
        assert!(lock.is_called(tickets[1]));
        lock.come_in(tickets[1]);
        assert!(!lock.is_called(tickets[2]), "two share it");
        lock.leave(false);
        assert!(!lock.is_called(tickets[2]));
        lock.leave(false);
        assert!(lock.is_called(tickets[2]) && !lock.is_called(tickets[3]));
        lock.come_in(tickets[2]);
        lock.leave(true);
        assert!(lock.is_called(tickets[3]) && !lock.is_called(tickets[4]));
        lock.come_in(tickets[3]);
        lock.leave(false);
        assert!(lock.is_called(tickets[4]));
    }

    #[test]
    fn a_moment_is_taken_once_and_tells_who_waits() {
        let lock = MomentLock::default();
        assert!(lock.take(0) && !lock.take(1));
        assert!(lock.contend());
        assert!(lock.give());
        assert!(!lock.contend());
        assert!(lock.take(1) && !lock.give());
    }

    #[test]
    fn attachments_are_found_joined_and_forgotten() {
        let window = window(2, true);
        window.attach(1, 1000, 100);
        window.attach(1, 1100, 100);
        assert!(window.is_attached(1, 1000, 1200));
        assert!(!window.is_attached(1, 999, 1001) && !window.is_attached(1, 1199, 1201));
        assert!(!window.is_attached(0, 1000, 1001));
        assert!(window.detach(1, 1000) && !window.detach(1, 1000));
        assert!(!window.is_attached(1, 1000, 1001) && window.is_attached(1, 1100, 1200));
        window.attach(1, 5000, 8);
        assert_eq!(window.member(1).attachments.load(RELAXED), 2, "the free slot is used again");
        assert!(window.is_attached(1, 5000, 5000), "nothing is always there");
    }

    #[test]
    fn a_window_of_another_shape_is_refused() {
        let first = window(3, false);
        // SAFETY: the descriptor is open as long as `first` lives.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(first.raw_fd()) }.try_clone_to_owned().unwrap();
        let shape = Shape { members: 3, dynamic: false, data_bytes: 5000 };
        assert!(matches!(Window::map(shape, fd), Err(SegmentError::Size { .. })));
        let absurd = Shape { members: 1, dynamic: false, data_bytes: u64::MAX - 5 };
        assert!(Window::create(absurd).is_err());
    }
}
