//! Dynamic processes (MPI 4.1 chapter 11): spawn, ports and names, join. (Floor 9.)
//!
//! Reading order: this file (how a rank asks its daemon and waits for the answer), `spawn` and `command` (what to start), `port`
//! (accept, connect, names), `join`.
//!
//! All processes of a job of vmpirun, spawned ones included, are ranks of one job and share its segments; so a new
//! intercommunicator needs no connection, only that both groups know each other and the contexts.

mod command;
mod join;
mod port;
mod spawn;

pub use command::Command;
pub use join::join;
pub use port::{accept, close_port, connect, lookup_name, open_port, publish_name, unpublish_name};
pub use spawn::{Spawned, spawn};

use crate::calls::CALL_DESCRIPTOR;
use crate::comm::Communicator;
use crate::construct;
use crate::errors::{Class, Error, Result, fail};
use crate::guarded::EntryGuarded;
use crate::{process, request};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::rc::Rc;
use vmpi_shared::control::{Reply, Request};
use vmpi_shared::dynamic::{Answer, Ask, InterContexts, Why};

struct Questions {
    asked: u64,
    /// Answers, and descriptors that came along, that another thread has read, until the one that asked takes them.
    answers: BTreeMap<u64, (Answer, Vec<OwnedFd>)>,
}

static QUESTIONS: EntryGuarded<Questions> = EntryGuarded::new(Questions { asked: 0, answers: BTreeMap::new() });

/// A question under way.
pub(crate) struct Question {
    number: u64,
    /// The class of errors of the conversation itself.
    otherwise: Class,
}

impl Question {
    /// Ask the daemon, which wakes this rank after it has sent the answer. Death story: if the daemon dies, the kernel ends this process.
    pub(crate) fn put(question: Ask, otherwise: Class) -> Result<Question> {
        Self::put_with(question, &[], otherwise)
    }

    /// As `put`, with descriptors that go along.
    fn put_with(question: Ask, files: &[RawFd], otherwise: Class) -> Result<Question> {
        let number = QUESTIONS.with(|questions| {
            questions.asked += 1;
            questions.asked
        });
        let sent = process::with_daemon(|daemon| daemon.send(&Request::Ask { number, ask: question }, files));
        match sent {
            Some(Ok(())) => Ok(Question { number, otherwise }),
            Some(Err(error)) => fail(otherwise, format!("the vmpi daemon cannot be asked: {error}")),
            None => fail(
                otherwise,
                "this program was not started by vmpirun, so no other process can be reached; start it with vmpirun -n 1 PROGRAM",
            ),
        }
    }

    /// The answer, if it has come. Does not wait.
    pub(crate) fn answer(&self) -> Result<Option<Answer>> {
        Ok(self.answer_with()?.map(|(answer, _)| answer))
    }

    /// As `answer`, with the descriptors that came along.
    fn answer_with(&self) -> Result<Option<(Answer, Vec<OwnedFd>)>> {
        match take_answer(self.number, self.otherwise)? {
            Some((Answer::Denied { why, reason }, _)) => fail(class_of(why), reason),
            answer => Ok(answer),
        }
    }

    /// Wait for the answer, suspended: messages to this rank are matched meanwhile, and others have its core.
    fn wait(&self, call: u32) -> Result<(Answer, Vec<OwnedFd>)> {
        loop {
            let seen = request::progress();
            if let Some(answer) = self.answer_with()? {
                return Ok(answer);
            }
            request::block(seen, call, -1, -1);
        }
    }
}

/// Ask the daemon and wait for the answer.
fn ask(question: Ask, call: u32, otherwise: Class) -> Result<Answer> {
    Ok(Question::put(question, otherwise)?.wait(call)?.0)
}

/// Pass a descriptor on to so many ranks of this node, who take it by the number that this returns.
pub(crate) fn pass_descriptor(file: RawFd, takers: u32, otherwise: Class) -> Result<u64> {
    let question = Question::put_with(Ask::Pass { takers }, &[file], otherwise)?;
    question.wait(CALL_DESCRIPTOR)?;
    Ok(question.number)
}

/// The descriptor that rank `from` has passed on so.
pub(crate) fn take_descriptor(from: u32, number: u64, otherwise: Class) -> Result<OwnedFd> {
    let (_, files) = Question::put(Ask::Take { from, number }, otherwise)?.wait(CALL_DESCRIPTOR)?;
    files.into_iter().next().map_or_else(|| strange(otherwise), Ok)
}

fn class_of(why: Why) -> Class {
    match why {
        Why::Spawn => Class::Spawn,
        Why::Port => Class::Port,
        Why::Name => Class::Name,
        Why::Service => Class::Service,
        Why::Descriptor => Class::Other,
    }
}

/// Read what the daemon has sent; the answer to question `number` if it has come. Does not wait.
fn take_answer(number: u64, otherwise: Class) -> Result<Option<(Answer, Vec<OwnedFd>)>> {
    loop {
        if let Some(answer) = QUESTIONS.with(|questions| questions.answers.remove(&number)) {
            return Ok(Some(answer));
        }
        let read = process::with_daemon(|daemon| {
            use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
            let mut fds = [PollFd::new(daemon.stream().as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, PollTimeout::ZERO).unwrap_or(0) > 0;
            // A frame that has begun to arrive is whole in a moment.
            ready.then(|| daemon.receive::<Reply>())
        });
        match read.flatten() {
            None => return Ok(None),
            Some(Ok(Some((Reply::Answer { number, answer }, files)))) => {
                QUESTIONS.with(|questions| questions.answers.insert(number, (answer, files)));
                // It may be for another thread.
                crate::lock::note_change();
            }
            Some(Ok(Some(_))) => return fail(otherwise, "the vmpi daemon said something that is no answer"),
            Some(Ok(None)) => return fail(otherwise, "the vmpi daemon has closed the connection"),
            Some(Err(error)) => return fail(otherwise, format!("the vmpi daemon cannot be heard: {error}")),
        }
    }
}

fn strange<T>(class: Class) -> Result<T> {
    fail(class, "the vmpi daemon gave an answer to another question")
}

/// What the root of a collective call of this chapter tells the others.
#[derive(Clone, Debug, Default)]
struct Outcome {
    contexts: InterContexts,
    /// The remote group, in the job's numbers.
    remote: Vec<u32>,
    /// For each program, how many processes were asked for and how many started.
    counts: Vec<[u32; 2]>,
}

impl Outcome {
    fn words(&self) -> Vec<u32> {
        let mut words = self.contexts.to_vec();
        words.push(self.counts.len() as u32);
        words.extend(self.counts.iter().flatten());
        words.extend(&self.remote);
        words
    }

    fn from_words(words: &[u32]) -> Option<Outcome> {
        let (contexts, rest) = words.split_first_chunk::<3>()?;
        let (&programs, rest) = rest.split_first()?;
        let (counts, remote) = rest.split_at_checked(2 * programs as usize)?;
        let counts = counts.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        Some(Outcome { contexts: *contexts, remote: remote.to_vec(), counts })
    }
}

/// How a collective call of this chapter ended at its root; the counts are known however it ended.
type Shared = (Outcome, Option<Error>);

/// All ranks of `comm` learn how the call ended at the root, which gives `mine`.
fn share(comm: &Communicator, root: u32, mine: Option<Shared>) -> Result<Shared> {
    let (mut class, mut words, mut text) = (0, Vec::new(), Vec::new());
    let mut own_error = None;
    if let Some((outcome, error)) = mine {
        words = outcome.words();
        if let Some(error) = error {
            class = error.class.0 as u32;
            text = error.message.clone().into_bytes();
            own_error = Some(error);
        }
    }
    let mut lengths = [class, words.len() as u32, text.len() as u32];
    construct::bcast(comm, &mut lengths, root)?;
    let [class, word_count, text_bytes] = lengths;
    words.resize(word_count as usize, 0);
    construct::bcast(comm, &mut words, root)?;
    text.resize(text_bytes as usize, 0);
    if text_bytes > 0 {
        crate::coll::bcast_bytes(comm, &mut text, root)?;
    }
    let Some(outcome) = Outcome::from_words(&words) else {
        return fail(Class::Intern, format!("rank {root} sent a result that makes no sense"));
    };
    let error = match own_error {
        Some(error) => Some(error),
        None if class == 0 => None,
        None => {
            let reason = String::from_utf8_lossy(&text);
            Some(Error::new(Class(class as i32), format!("it failed on the root, rank {root}: {reason}")))
        }
    };
    Ok((outcome, error))
}

/// The root argument of a collective call on the intracommunicator `comm`.
fn check_root(comm: &Communicator, root: i32) -> Result<u32> {
    match u32::try_from(root) {
        Ok(valid) if valid < comm.size() => Ok(valid),
        _ => fail(
            Class::Root,
            format!("root {root} is not a rank of the communicator, which are 0 to {}", comm.size() - 1),
        ),
    }
}

/// The job's numbers of the members of `comm`.
fn members(comm: &Rc<Communicator>) -> vmpi_shared::dynamic::Ranks {
    comm.local.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_survives_its_words() {
        for outcome in
            [Outcome::default(), Outcome { contexts: [1, 2, 3], remote: vec![7, 9], counts: vec![[4, 2], [1, 0]] }]
        {
            let words = outcome.words();
            let again = Outcome::from_words(&words).unwrap();
            assert_eq!(again.words(), words);
        }
        assert!(Outcome::from_words(&[1, 2, 3]).is_none());
        assert!(Outcome::from_words(&[1, 2, 3, 4, 0]).is_none());
    }
}
