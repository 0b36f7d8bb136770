//! `--compute record` and `replay`: what the rank computes between its calls of MPI, into a file and out of it.
//!
//! A replayed run makes the calls that the recorded one has made, in this order. Of polls, and of looks at clocks, it may make others, as many as messages on another
//! network or other ranks beside it take: what was computed before one that is not made counts before the next call, or the next look at a clock; one that was not made then finds
//! nothing computed. So the time that a rank computes in all is the same, and depends on the file and the program alone.

use crate::errors::{Class, Error, Result};
use crate::process;
use std::path::PathBuf;
use std::sync::Mutex;
use vmpi_shared::control::env;
use vmpi_shared::simulate::Compute;
use vmpi_shared::simulate::recording::{Kind, Problem, Reader, Writer};

static TAPE: Mutex<Option<Tape>> = Mutex::new(None);

pub(super) struct Tape {
    path: PathBuf,
    me: u32,
    way: Way,
}

enum Way {
    Writes {
        file: Writer,
        /// Computed before the call under way.
        before: u64,
    },
    Reads {
        file: Reader,
        /// Calls so far, without polls.
        calls: u64,
    },
}

/// # Errors
/// There is no such file, or it is none of that kind.
pub(super) fn begin(me: u32, compute: Compute) -> Result<()> {
    let path = PathBuf::from(std::env::var_os(env::COMPUTATION).unwrap_or_default());
    let refused = |why: String| Error::new(Class::Other, format!("--compute: {}: {why}", path.display()));
    let way = if compute == Compute::Record {
        let file = Writer::open(&path, me).map_err(|why| refused(why.to_string()))?;
        Way::Writes { file, before: 0 }
    } else {
        let file = Reader::open(&path, me).map_err(|why| refused(why.to_string()))?;
        Way::Reads { file, calls: 0 }
    };
    *TAPE.lock().unwrap() = Some(Tape { path, me, way });
    Ok(())
}

/// Do something with the tape, if there is one.
pub(super) fn with<T: Default>(work: impl FnOnce(&mut Tape) -> T) -> T {
    TAPE.lock().unwrap().as_mut().map(work).unwrap_or_default()
}

impl Tape {
    fn fail(&self, why: &str) -> ! {
        process::abort(125, &format!("--compute: {}: {why}", self.path.display()))
    }

    /// A call of `name` is under way, which began `ns` after the point before.
    pub(super) fn call(&mut self, name: &str, ns: u64) -> u64 {
        let done = match &mut self.way {
            Way::Writes { before, .. } => {
                *before = ns;
                Ok(ns)
            }
            Way::Reads { .. } if Kind::of(name) == Kind::Poll => self.poll(),
            Way::Reads { .. } => self.next_call(name),
        };
        done.unwrap_or_else(|why| self.fail(&why.to_string()))
    }

    /// It is over.
    pub(super) fn over(&mut self, name: &'static str) {
        if let Way::Writes { file, before } = &mut self.way {
            let put = file.put(Kind::of(name), name, std::mem::take(before));
            if let Err(why) = put {
                self.fail(&format!("cannot record what rank {} computes: {why}", self.me));
            }
        }
    }

    /// A clock is looked at.
    pub(super) fn clock(&mut self, ns: u64) -> u64 {
        let done = match &mut self.way {
            Way::Writes { file, .. } => file.put(Kind::Clock, "", ns).map(|()| ns).map_err(Problem::from),
            Way::Reads { .. } => self.next_clock(),
        };
        done.unwrap_or_else(|why| self.fail(&why.to_string()))
    }

    /// The next point, if it is a poll.
    fn poll(&mut self) -> std::result::Result<u64, Problem> {
        let Way::Reads { file, .. } = &mut self.way else { return Ok(0) };
        let ns = file.peek()?.filter(|point| point.kind == Kind::Poll).map(|point| point.ns);
        if ns.is_some() {
            file.take();
        }
        Ok(ns.unwrap_or(0))
    }

    /// Up to the next look at a clock, if that is before the next call.
    fn next_clock(&mut self) -> std::result::Result<u64, Problem> {
        let Way::Reads { file, .. } = &mut self.way else { return Ok(0) };
        let mut sum = 0_u64;
        if file.has_clock()? {
            while let Some(point) = file.peek()? {
                sum = sum.saturating_add(point.ns);
                let is_it = point.kind == Kind::Clock;
                file.take();
                if is_it {
                    break;
                }
            }
        }
        Ok(sum)
    }

    /// Up to the next call, which is to be one of `name`.
    fn next_call(&mut self, name: &str) -> std::result::Result<u64, Problem> {
        let Way::Reads { file, calls } = &mut self.way else { return Ok(0) };
        let mut sum = 0_u64;
        while let Some(point) = file.peek()? {
            sum = sum.saturating_add(point.ns);
            let call = (point.kind == Kind::Call).then(|| point.name == name);
            let there = (call == Some(false)).then(|| point.name.to_owned());
            file.take();
            match (call, there) {
                (Some(true), _) => {
                    *calls += 1;
                    return Ok(sum);
                }
                (_, Some(there)) => self.differs(name, &there),
                _ => {}
            }
        }
        self.differs(name, "");
    }

    /// The call under way is not the one that was recorded (empty: none was).
    fn differs(&self, name: &str, recorded: &str) -> ! {
        let Way::Reads { file, calls, .. } = &self.way else { process::abort(125, "nothing is replayed") };
        let here = if name.is_empty() { "one that does not say its name" } else { name };
        let there = if recorded.is_empty() { "none" } else { recorded };
        self.fail(&format!(
            "this run is not the one that was recorded ({}): call {} of rank {} is {here}, and there it was {there}",
            file.about.command,
            calls + 1,
            self.me
        ))
    }

    /// The rank calls MPI no more.
    pub(super) fn finish(&mut self, name: &'static str) {
        self.over(name);
        if let Way::Writes { file, .. } = &mut self.way {
            let finished = file.finish();
            if let Err(why) = finished {
                self.fail(&format!("cannot record what rank {} computes: {why}", self.me));
            }
        }
    }
}
