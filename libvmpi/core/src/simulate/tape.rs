//! `--compute record` and `replay`: what the rank computes between its calls of MPI, into a file and out of it.
//!
//! A replayed run makes the calls that the recorded one has made, in this order. Of polls, and of looks at clocks, it may make others, as many as messages on another
//! network or other ranks beside it take: what was computed before one that is not made counts before the next call; one that was not made then finds nothing
//! computed. So the time that a rank computes in all is the same, and depends on the file and the program alone.

use crate::errors::{Class, Error, Result};
use crate::process;
use std::path::PathBuf;
use std::sync::Mutex;
use vmpi_shared::control::env;
use vmpi_shared::simulate::Compute;
use vmpi_shared::simulate::recording::{Kind, Problem, Reader, Writer};

static TAPE: Mutex<Option<Tape>> = Mutex::new(None);

/// The call that a program ends with.
const END: &str = "MPI_Finalize";

pub(super) struct Tape {
    path: PathBuf,
    me: u32,
    way: Way,
}

enum Way {
    Writes {
        file: Writer,
        /// Computed before the call under way, and before those that had no name.
        before: u64,
    },
    Reads {
        file: Reader,
        /// What was recorded next, and is paid for: the call under way is to be it.
        due: Option<Due>,
        /// Calls so far, without polls.
        calls: u64,
    },
}

struct Due {
    kind: Kind,
    name: String,
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
        Way::Reads { file, due: None, calls: 0 }
    };
    *TAPE.lock().unwrap() = Some(Tape { path, me, way });
    Ok(())
}

/// Do something with the tape, if there is one: nanoseconds that the rank is to have computed.
pub(super) fn with(work: impl FnOnce(&mut Tape) -> u64) -> u64 {
    TAPE.lock().unwrap().as_mut().map_or(0, work)
}

impl Tape {
    fn fail(&self, why: &str) -> ! {
        process::abort(125, &format!("--compute: {}: {why}", self.path.display()))
    }

    /// A call begins, `ns` after the point before.
    pub(super) fn before_call(&mut self, ns: u64) -> u64 {
        match &mut self.way {
            Way::Writes { before, .. } => {
                *before = before.saturating_add(ns);
                ns
            }
            // Paid for before a poll that was not recorded.
            Way::Reads { due: Some(_), .. } => 0,
            Way::Reads { due: None, .. } => self.next_call(),
        }
    }

    /// A clock is looked at.
    pub(super) fn at_clock(&mut self, ns: u64) -> u64 {
        let done = match &mut self.way {
            Way::Writes { file, .. } => file.put(Kind::Clock, "", ns).map(|()| ns).map_err(Problem::from),
            Way::Reads { file, due: None, .. } => match file.peek() {
                Ok(Some(point)) if point.kind == Kind::Clock => {
                    let ns = point.ns;
                    file.take();
                    Ok(ns)
                }
                Ok(_) => Ok(0),
                Err(why) => Err(why),
            },
            Way::Reads { .. } => Ok(0),
        };
        done.unwrap_or_else(|why| self.fail(&why.to_string()))
    }

    /// Go on to the next call that was recorded, which is due then: what was computed up to there.
    fn next_call(&mut self) -> u64 {
        let Way::Reads { file, due, .. } = &mut self.way else { return 0 };
        let mut sum = 0_u64;
        let failed = loop {
            match file.peek() {
                Ok(Some(point)) => {
                    sum = sum.saturating_add(point.ns);
                    let call = (point.kind != Kind::Clock).then(|| Due { kind: point.kind, name: point.name.into() });
                    file.take();
                    if call.is_some() {
                        *due = call;
                        return sum;
                    }
                }
                Ok(None) => return sum,
                Err(why) => break why,
            }
        };
        self.fail(&failed.to_string())
    }

    /// The call under way is over; it was one of `name`.
    pub(super) fn after_call(&mut self, name: &'static str) -> u64 {
        let kind = Kind::of(name);
        if let Way::Writes { file, before } = &mut self.way {
            let put = file.put(kind, name, std::mem::take(before));
            if let Err(why) = put {
                self.fail(&format!("cannot record what rank {} computes: {why}", self.me));
            }
            return 0;
        }
        let mut late = 0_u64;
        loop {
            let Way::Reads { due, calls, .. } = &mut self.way else { return late };
            match due {
                Some(known) if kind == Kind::Poll => {
                    if known.kind == Kind::Poll {
                        *due = None;
                    }
                    return late;
                }
                Some(known) if known.kind == Kind::Call => {
                    if known.name != name {
                        let recorded = known.name.clone();
                        self.differs(name, &recorded);
                    }
                    (*due, *calls) = (None, *calls + 1);
                    return late;
                }
                // It polls less often than then.
                Some(_) => *due = None,
                None => {
                    late = late.saturating_add(self.next_call());
                    let Way::Reads { due: None, .. } = &self.way else { continue };
                    if kind == Kind::Poll {
                        return late;
                    }
                    self.differs(name, "");
                }
            }
        }
    }

    /// The call under way is not the one that was recorded (empty: none was).
    fn differs(&self, name: &str, recorded: &str) -> ! {
        let Way::Reads { file, calls, .. } = &self.way else { process::abort(125, "nothing is replayed") };
        let here = if name.is_empty() { "one that does not say its name" } else { name };
        let there = match recorded {
            "" => "no more call",
            recorded => recorded,
        };
        self.fail(&format!(
            "this run is not the one that was recorded ({}): call {} of rank {} is {here}, and there it was {there}",
            file.about.command,
            calls + 1,
            self.me
        ))
    }

    /// The rank calls MPI no more.
    pub(super) fn finish(&mut self) -> u64 {
        let late = self.after_call(END);
        if let Way::Writes { file, .. } = &mut self.way {
            let finished = file.finish();
            if let Err(why) = finished {
                self.fail(&format!("cannot record what rank {} computes: {why}", self.me));
            }
        }
        late
    }
}
