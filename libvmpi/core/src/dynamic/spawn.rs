//! MPI_Comm_spawn and MPI_Comm_spawn_multiple.

use super::{Command, Outcome, Shared, ask, check_root, members, share, strange};
use crate::calls;
use crate::comm::Communicator;
use crate::construct;
use crate::errors::{Class, Error, Result};
use crate::simulate;
use std::rc::Rc;
use vmpi_shared::dynamic::{Answer, Ask};

/// How a spawn ended: the error codes of all processes are known in any case.
pub struct Spawned {
    pub result: Result<Rc<Communicator>>,
    /// For each process asked for, in order of the commands.
    pub codes: Vec<Class>,
}

/// Start processes; collective over the intracommunicator `comm`. `commands` is asked at the root only.
///
/// The processes have started when this returns; whether they call MPI_Init is theirs. If one cannot be started none is.
///
/// # Errors
/// `Class::Root` and `Class::Comm` for arguments that all ranks see alike, and those of the messages needed; what went wrong with
/// the spawn itself is in the result.
pub fn spawn(comm: &Rc<Communicator>, root: i32, commands: impl FnOnce() -> Result<Vec<Command>>) -> Result<Spawned> {
    simulate::refuse("MPI_Comm_spawn", "ranks that come later have no place on the simulated machine")?;
    let root = check_root(comm, root)?;
    let mine = (comm.rank == root).then(|| start(comm, commands));
    let (outcome, error) = share(comm, root, mine)?;
    let mut codes = Vec::new();
    for [asked, started] in outcome.counts {
        let good = if error.is_some() { 0 } else { started };
        codes.extend((0..asked).map(|process| if process < good { Class::Success } else { Class::Spawn }));
    }
    let result = match error {
        Some(error) => Err(error),
        None => construct::connect(comm, outcome.contexts, outcome.remote),
    };
    Ok(Spawned { result, codes })
}

/// The root's part.
fn start(comm: &Rc<Communicator>, commands: impl FnOnce() -> Result<Vec<Command>>) -> Shared {
    let failed = |outcome: Outcome, error: Error| (outcome, Some(error));
    let commands = match commands() {
        Ok(commands) => commands,
        Err(error) => return failed(Outcome::default(), error),
    };
    let counts = commands.iter().map(|command| [command.maxprocs.max(0) as u32, 0]).collect();
    let mut outcome = Outcome { counts, ..Outcome::default() };
    match question(comm, &commands).and_then(|question| ask(question, calls::CALL_SPAWN, Class::Spawn)) {
        Ok(Answer::Spawned { ranks, contexts, counts }) => {
            outcome.remote = ranks.iter().collect();
            outcome.contexts = contexts;
            for ([_, started], count) in outcome.counts.iter_mut().zip(counts) {
                *started = count;
            }
            (outcome, None)
        }
        Ok(_) => (outcome, strange::<()>(Class::Spawn).err()),
        Err(error) => failed(outcome, error),
    }
}

fn question(comm: &Rc<Communicator>, commands: &[Command]) -> Result<Ask> {
    let apps = commands.iter().map(Command::prepare).collect::<Result<_>>()?;
    let mut errhandler = String::new();
    for command in commands {
        let one = command.errhandler()?;
        if errhandler.is_empty() {
            errhandler = one;
        }
    }
    Ok(Ask::Spawn { apps, parent: members(comm), errhandler, variables: Vec::new() })
}
