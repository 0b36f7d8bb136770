//! Partitioned messages (MPI 4.1 chapter 4): one message whose parts the sender declares ready one by one.
//!
//! The sender tells the receiver once, when the request is made, how it partitions (a header message; headers meet the
//! receives of headers in the order of the calls, as MPI matches partitioned operations). Each start then moves the data
//! as ordinary messages of one or more of the sender's partitions, which leave as soon as all of theirs are ready. They
//! carry a tag that only this pair of requests has: the sign bit keeps them apart from everything else on the plane.

use crate::comm::Communicator;
use crate::consts::{self, dt};
use crate::datatype::{self, Type};
use crate::errors::{Class, Error, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::Request;
use crate::p2p::slot::Slot;
use crate::p2p::{Mode, cancel, poll, start_recv, start_send};
use crate::plane::Plane;
use crate::request::table::Progress;
use crate::request::{self, table};
use crate::status::Status;
use std::cell::RefCell;
use std::ffi::c_void;
use std::ops::Range;
use std::rc::Rc;

/// A message of a partitioned operation has the sign bit in its tag; a header has the program's tag beside it.
const PARTITIONED: i32 = i32::MIN;
/// And data has this one, above all tags of programs, then the channel and the message's number.
const DATA: i32 = 1 << 30;
const MESSAGE_BITS: u32 = 8;
const CHANNEL_BITS: u32 = 30 - MESSAGE_BITS;
/// The last one is left out: its tags would meet the wildcards.
const CHANNEL_COUNT: u32 = (1 << CHANNEL_BITS) - 1;
/// Most messages that one start is moved in: more partitions share messages.
const MAX_MESSAGES: u64 = 1 << MESSAGE_BITS;

const _: () = assert!(consts::TAG_UB_VALUE < DATA);

fn data_tag(channel: u32, message: u64) -> i32 {
    PARTITIONED | DATA | (channel << MESSAGE_BITS) as i32 | message as i32
}

/// How the sender partitions: partitions, bytes of each, messages, channel.
type Header = [u64; 4];

/// What the program gave to MPI_Psend_init or MPI_Precv_init, checked.
pub struct Arguments {
    pub comm: Rc<Communicator>,
    pub buf: *mut c_void,
    pub partitions: u64,
    /// Elements in each partition.
    pub count: u64,
    pub ty: Rc<Type>,
    pub peer: i32,
    pub tag: i32,
}

impl Arguments {
    fn bytes_per_partition(&self) -> u64 {
        self.count * self.ty.size()
    }
}

/// A partitioned request's own state.
#[derive(Clone)]
pub enum Channel {
    Send(Rc<Sender>),
    Receive(Rc<Receiver>),
}

/// The channel of a partitioned request.
///
/// # Errors
/// `Class::Request` for any other.
pub fn channel(request: Request) -> Result<Channel> {
    let channel = table::channel(request)?;
    Ok(channel.downcast_ref::<Channel>().expect("made here").clone())
}

/// The sending side.
pub struct Sender {
    arguments: Arguments,
    channel: u32,
    messages: u64,
    run: RefCell<Sending>,
}

#[derive(Default)]
struct Sending {
    active: bool,
    ready: Vec<bool>,
    /// Partitions of each message that are not ready.
    missing: Vec<u64>,
    unsent: u64,
    under_way: Vec<Slot>,
    error: Option<Error>,
}

/// Partitions `lo .. hi` of message `message` of `messages`.
fn partitions_of(message: u64, messages: u64, partitions: u64) -> Range<u64> {
    let first = |message: u64| (u128::from(message) * u128::from(partitions) / u128::from(messages)) as u64;
    first(message)..first(message + 1)
}

/// The message that partition `partition` travels in.
fn message_of(partition: u64, messages: u64, partitions: u64) -> u64 {
    let guess = (u128::from(partition) * u128::from(messages) / u128::from(partitions)) as u64;
    (guess..messages)
        .find(|&message| partitions_of(message, messages, partitions).contains(&partition))
        .expect("every partition is in a message")
}

static CHANNELS: EntryGuarded<u32> = EntryGuarded::new(0);

/// MPI_Psend_init.
///
/// # Errors
/// Those of sending the header.
///
/// # Safety
/// The buffer must hold all partitions while the request is active.
pub unsafe fn psend_init(arguments: Arguments) -> Result<Request> {
    // A channel is used again after four million others; its last message has been received long since.
    let channel = CHANNELS.with(|next| {
        let channel = *next;
        *next = (channel + 1) % CHANNEL_COUNT;
        channel
    });
    let messages = arguments.partitions.min(MAX_MESSAGES);
    let header: Header = [arguments.partitions, arguments.bytes_per_partition(), messages, u64::from(channel)];
    let byte = datatype::get(dt::BYTE)?;
    let (buf, bytes, tag) = ((&raw const header).cast(), size_of::<Header>() as u64, PARTITIONED | arguments.tag);
    // SAFETY: so few bytes travel in the envelope; the slot, if any, only waits for the receiver.
    let slot = unsafe {
        start_send(&arguments.comm, Plane::Collective, buf, bytes, &byte, arguments.peer, tag, Mode::Standard)?
    };
    if slot.is_some() {
        request::free(request::insert_send(slot))?;
    }
    let sender = Rc::new(Sender { arguments, channel, messages, run: RefCell::default() });
    let started = sender.clone();
    let start = Box::new(move || Ok(Box::new(SendProgress(started.begin())) as Box<dyn Progress>));
    Ok(request::insert_partitioned(start, Rc::new(Channel::Send(sender))))
}

impl Sender {
    fn begin(self: &Rc<Self>) -> Rc<Sender> {
        let partitions = self.arguments.partitions;
        *self.run.borrow_mut() = Sending {
            active: true,
            ready: vec![false; partitions as usize],
            missing: (0..self.messages)
                .map(|message| {
                    let range = partitions_of(message, self.messages, partitions);
                    range.end - range.start
                })
                .collect(),
            unsent: self.messages,
            ..Sending::default()
        };
        self.clone()
    }

    /// MPI_Pready for some partitions: all must be valid, or nothing happens.
    ///
    /// # Errors
    /// `Class::Request` if the operation is not active; `Class::Arg` for a partition out of range or ready before.
    pub fn ready(&self, partitions: impl Iterator<Item = i64> + Clone) -> Result<()> {
        let known = self.arguments.partitions;
        let mut complete = Vec::new();
        {
            let run = &mut *self.run.borrow_mut();
            if !run.active {
                return fail(Class::Request, "the partitioned send has not been started");
            }
            for partition in partitions.clone() {
                match u64::try_from(partition) {
                    Ok(valid) if valid < known => {
                        if run.ready[valid as usize] {
                            return fail(Class::Arg, format!("partition {partition} was declared ready before"));
                        }
                    }
                    _ => return fail(Class::Arg, format!("partition {partition} is not one of 0 to {}", known - 1)),
                }
            }
            for partition in partitions {
                let partition = partition as u64;
                if std::mem::replace(&mut run.ready[partition as usize], true) {
                    continue; // named twice in one call
                }
                let message = message_of(partition, self.messages, known);
                run.missing[message as usize] -= 1;
                if run.missing[message as usize] == 0 {
                    complete.push(message);
                }
            }
        }
        for message in complete {
            let started = self.send(message);
            let run = &mut *self.run.borrow_mut();
            run.unsent -= 1;
            match started {
                Ok(slot) => run.under_way.extend(slot),
                Err(error) => {
                    run.error.get_or_insert(error);
                }
            }
        }
        Ok(())
    }

    fn send(&self, message: u64) -> Result<Option<Slot>> {
        let a = &self.arguments;
        let range = partitions_of(message, self.messages, a.partitions);
        let offset = (range.start * a.count) as i64 * a.ty.extent();
        let (buf, count) = (a.buf.wrapping_byte_offset(offset as isize), (range.end - range.start) * a.count);
        let tag = data_tag(self.channel, message);
        // SAFETY: `psend_init`'s contract: the buffer holds all partitions while the request is active.
        unsafe { start_send(&a.comm, Plane::Collective, buf, count, &a.ty, a.peer, tag, Mode::Standard) }
    }
}

struct SendProgress(Rc<Sender>);

impl Progress for SendProgress {
    fn advance(&mut self) -> Result<Option<Status>> {
        let run = &mut *self.0.run.borrow_mut();
        let error = &mut run.error;
        run.under_way.retain(|slot| match poll(*slot) {
            None => true,
            Some(Ok(_)) => false,
            Some(Err(e)) => {
                error.get_or_insert(e);
                false
            }
        });
        if run.unsent > 0 || !run.under_way.is_empty() {
            return Ok(None);
        }
        run.active = false;
        run.error.take().map_or(Ok(Some(Status::EMPTY)), Err)
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend_from_slice(&self.0.run.borrow().under_way);
    }
}

/// The receiving side.
pub struct Receiver {
    arguments: Arguments,
    setup: RefCell<Setup>,
    run: RefCell<Receiving>,
}

enum Setup {
    /// Nothing comes from MPI_PROC_NULL.
    Nothing,
    Waiting(Slot, Box<Header>),
    Known(Header),
    Failed(Error),
}

#[derive(Default)]
struct Receiving {
    active: bool,
    posted: bool,
    messages: Vec<Incoming>,
    error: Option<Error>,
}

/// One message of one start.
struct Incoming {
    slot: Option<Slot>,
    /// Its place in the packed data of all partitions.
    bytes: Range<u64>,
    /// Where it is received if its bytes do not lie in one block of the program's buffer.
    packed: Option<Vec<u8>>,
}

/// MPI_Precv_init.
///
/// # Errors
/// Those of posting the header's receive.
///
/// # Safety
/// The buffer must have room for all partitions while the request is active.
pub unsafe fn precv_init(arguments: Arguments) -> Result<Request> {
    let setup = if arguments.peer == consts::PROC_NULL {
        Setup::Nothing
    } else {
        let byte = datatype::get(dt::BYTE)?;
        let mut header = Box::new([0; 4]);
        let (buf, bytes, tag) = ((&raw mut *header).cast(), size_of::<Header>() as u64, PARTITIONED | arguments.tag);
        // SAFETY: the box lives until the slot is polled or cancelled.
        let slot = unsafe { start_recv(&arguments.comm, Plane::Collective, buf, bytes, &byte, arguments.peer, tag)? };
        Setup::Waiting(slot, header)
    };
    let receiver = Rc::new(Receiver { arguments, setup: RefCell::new(setup), run: RefCell::default() });
    let started = receiver.clone();
    let start = Box::new(move || {
        *started.run.borrow_mut() = Receiving { active: true, ..Receiving::default() };
        Ok(Box::new(ReceiveProgress(started.clone())) as Box<dyn Progress>)
    });
    Ok(request::insert_partitioned(start, Rc::new(Channel::Receive(receiver))))
}

impl Receiver {
    /// How the sender partitions, if that is known; `Err` if it can never be.
    fn header(&self) -> Result<Option<Header>> {
        let setup = &mut *self.setup.borrow_mut();
        if let Setup::Waiting(slot, header) = setup
            && let Some(outcome) = poll(*slot)
        {
            *setup = match outcome {
                Ok(_) if header[0] > 0 && (1..=MAX_MESSAGES).contains(&header[2]) => Setup::Known(**header),
                Ok(_) => Setup::Failed(Error::new(Class::Intern, "the sender's partitioning makes no sense")),
                Err(error) => Setup::Failed(error),
            };
        }
        match setup {
            Setup::Nothing | Setup::Waiting(..) => Ok(None),
            Setup::Known(header) => Ok(Some(*header)),
            Setup::Failed(error) => Err(error.clone()),
        }
    }

    /// Post the receives of one start.
    fn post(&self, header: &Header) -> Result<()> {
        let a = &self.arguments;
        let byte = datatype::get(dt::BYTE)?;
        let [partitions, bytes_each, messages, channel] = *header;
        let room = a.partitions * a.bytes_per_partition();
        for message in 0..messages {
            let range = partitions_of(message, messages, partitions);
            let bytes = range.start.saturating_mul(bytes_each)..range.end.saturating_mul(bytes_each);
            let (len, tag) = (bytes.end - bytes.start, data_tag(channel as u32, message));
            let direct = a.ty.is_dense() && bytes.end <= room;
            let mut packed = (!direct).then(|| vec![0u8; len as usize]);
            let buf = match &mut packed {
                Some(packed) => packed.as_mut_ptr().cast(),
                None => a.buf.wrapping_byte_offset(a.ty.true_lb() as isize).wrapping_byte_add(bytes.start as usize),
            };
            // SAFETY: `precv_init`'s contract; `packed` is kept until the slot is polled.
            let slot = unsafe { start_recv(&a.comm, Plane::Collective, buf, len, &byte, a.peer, tag)? };
            self.run.borrow_mut().messages.push(Incoming { slot: Some(slot), bytes, packed });
        }
        Ok(())
    }

    /// Take in the messages that have arrived; true if that was the last.
    fn reap(&self) -> bool {
        let a = &self.arguments;
        let run = &mut *self.run.borrow_mut();
        let room = a.partitions * a.bytes_per_partition();
        for message in &mut run.messages {
            let Some(outcome) = message.slot.and_then(poll) else { continue };
            message.slot = None;
            if let Some(packed) = message.packed.take() {
                let fits = room.saturating_sub(message.bytes.start).min(packed.len() as u64) as usize;
                let (buf, count) = (a.buf.cast(), a.partitions * a.count);
                // SAFETY: `precv_init`'s contract; no more bytes than the buffer has room for.
                unsafe { datatype::unpack(&a.ty, count, buf, message.bytes.start, &packed[..fits]) };
                if message.bytes.end > room {
                    let sent = message.bytes.end;
                    run.error.get_or_insert_with(|| {
                        Error::new(Class::Truncate, format!("{sent} bytes or more were sent, there is room for {room}"))
                    });
                }
            }
            if let Err(error) = outcome {
                run.error.get_or_insert(error);
            }
        }
        run.posted && run.messages.iter().all(|message| message.slot.is_none())
    }

    fn advance(&self) -> Result<Option<Status>> {
        let a = &self.arguments;
        if a.peer == consts::PROC_NULL {
            self.run.borrow_mut().active = false;
            return Ok(Some(Status::PROC_NULL));
        }
        let header = match self.header() {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.run.borrow_mut().active = false;
                return Err(error);
            }
        };
        if !std::mem::replace(&mut self.run.borrow_mut().posted, true)
            && let Err(error) = self.post(&header)
        {
            self.run.borrow_mut().error.get_or_insert(error);
        }
        if !self.reap() {
            return Ok(None);
        }
        let run = &mut *self.run.borrow_mut();
        run.active = false;
        let bytes = header[0].saturating_mul(header[1]);
        let status = Status { source: a.peer, tag: a.tag, bytes, ..Status::EMPTY };
        run.error.take().map_or(Ok(Some(status)), Err)
    }

    /// Has all of one of the receiver's partitions arrived? True of an operation that is not active.
    ///
    /// # Errors
    /// `Class::Arg` for a partition out of range.
    pub fn has_arrived(&self, partition: i64) -> Result<bool> {
        let a = &self.arguments;
        let Some(partition) = u64::try_from(partition).ok().filter(|&partition| partition < a.partitions) else {
            return fail(Class::Arg, format!("partition {partition} is not one of 0 to {}", a.partitions - 1));
        };
        self.reap();
        let run = self.run.borrow();
        let (start, end) = (partition * a.bytes_per_partition(), (partition + 1) * a.bytes_per_partition());
        // A partition without data is there when everything is.
        let open = |message: &Incoming| {
            message.slot.is_some() && (start == end || (message.bytes.start < end && message.bytes.end > start))
        };
        Ok(!run.active || (run.posted && !run.messages.iter().any(open)))
    }
}

impl Drop for Receiver {
    /// A request that was freed and never matched: its header must not be received into freed memory.
    fn drop(&mut self) {
        if let Setup::Waiting(slot, _) = self.setup.get_mut() {
            cancel(*slot);
            poll(*slot);
        }
    }
}

struct ReceiveProgress(Rc<Receiver>);

impl Progress for ReceiveProgress {
    fn advance(&mut self) -> Result<Option<Status>> {
        self.0.advance()
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        if let Setup::Waiting(slot, _) = &*self.0.setup.borrow() {
            slots.push(*slot);
        }
        slots.extend(self.0.run.borrow().messages.iter().filter_map(|message| message.slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_is_in_one_message() {
        for partitions in [1, 2, 7, 255, 256, 257, 1000, 100_000] {
            let messages = MAX_MESSAGES.min(partitions);
            let mut next = 0;
            for message in 0..messages {
                let range = partitions_of(message, messages, partitions);
                assert_eq!(range.start, next);
                assert!(range.end > range.start);
                for partition in [range.start, range.end - 1] {
                    assert_eq!(message_of(partition, messages, partitions), message);
                }
                next = range.end;
            }
            assert_eq!(next, partitions);
        }
    }

    #[test]
    fn tags_are_no_wildcards_and_keep_apart() {
        for (channel, message) in [(0, 0), (0, 255), (CHANNEL_COUNT - 1, 255)] {
            let tag = data_tag(channel, message);
            assert!(tag < consts::ANY_TAG && tag & DATA != 0);
        }
    }
}
