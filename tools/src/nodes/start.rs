//! Start an agent on every node, and hear what the nodes are like.

use super::frames::{self, Facts, Frame, FromNode, ToNode};
use super::place::Known;
use super::slurm;
use super::text::{self, Unlined};
use crate::cli::Starter;
use crate::daemon::VERSION;
use crate::failure::Failure;
use crate::hosts::{self, Host};
use crate::threads;
use std::io::{BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use vmpi_shared::control::PROTOCOL;

/// A node's vmpid must answer in this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// An agent that has said hello.
pub struct Agent {
    pub known: Known,
    pub child: Child,
    pub to: ChildStdin,
    pub from: Box<dyn Read + Send>,
}

/// How nodes are reached.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Instead of ssh: called with the host's name and the command.
    pub launcher: Option<String>,
    /// More arguments for it, or for ssh, before the host's name.
    pub arguments: Vec<String>,
    /// Whose command it is otherwise; Slurm's starts the agent of this node, too.
    pub starter: Starter,
    /// The batch system's job.
    pub job: String,
    /// Its nodes, in its order.
    pub names: Vec<String>,
}

impl Way {
    /// It would be ssh, if no variable names something else.
    pub fn needs_agent_variables(&self) -> bool {
        self.launcher.is_none() && self.starter == Starter::Ssh
    }
}

/// An agent on each of `hosts`, all at once.
///
/// # Errors
/// The first that does not come; the others are ended.
pub fn all(hosts: &[Host], way: &Way, exe_dir: &Path) -> Result<Vec<Agent>, Failure> {
    let mut agents = Vec::new();
    let (tell, told) = mpsc::channel();
    let mut children = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let mut command = command(host, way, exe_dir);
        let as_text = carries_text_only(host, way);
        let (stdout, stderr) = match as_text {
            true => (Stdio::null(), Stdio::piped()),
            false => (Stdio::piped(), Stdio::inherit()),
        };
        let started = command.stdin(Stdio::piped()).stdout(stdout).stderr(stderr).process_group(0).spawn();
        let mut child = started.map_err(|e| {
            end(&mut children);
            Failure::own(format!("node {}: cannot run {:?}: {e}", host.name, command.get_program()))
        })?;
        let mut to = child.stdin.take().expect("piped");
        let from: Box<dyn Read + Send> = match (child.stdout.take(), child.stderr.take()) {
            (Some(stdout), _) => Box::new(BufReader::new(stdout)),
            (None, Some(stderr)) => {
                // If this fails, reading says why.
                let _ = to.write_all(&text::ASKED);
                Box::new(Unlined::new(BufReader::new(stderr), std::io::stderr()))
            }
            (None, None) => unreachable!("one of them is piped"),
        };
        children.push(child);
        let tell = tell.clone();
        threads::spawn(move || {
            let (mut to, mut from) = (to, from);
            let heard = greet(&mut to, &mut from);
            // Whoever listens may have given up.
            let _ = tell.send((number, heard.map(|facts| (facts, to, from))));
        });
    }
    drop(tell);
    let until = Instant::now() + PATIENCE;
    let mut heard: Vec<Option<(Facts, ChildStdin, Box<dyn Read + Send>)>> = hosts.iter().map(|_| None).collect();
    for _ in hosts {
        let why = match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((number, Ok(parts))) => {
                heard[number] = Some(parts);
                continue;
            }
            Ok((number, Err(why))) => {
                let name = &hosts[number].name;
                match why {
                    Silence::Said(reason, code) => Failure::new(code, format!("node {name}: {reason}")),
                    Silence::Ended(error) => {
                        let status = children[number].try_wait().ok().flatten();
                        let status = status.map_or(String::new(), |status| format!(" ({status})"));
                        let how = match error.kind() {
                            std::io::ErrorKind::UnexpectedEof => String::new(),
                            _ => format!(": {error}"),
                        };
                        Failure::own(format!(
                            "node {name}: its vmpid did not start: {} ended{status} before it answered{how}; is {} there{}?",
                            describe(&hosts[number], way),
                            exe_dir.join("vmpid").display(),
                            match way.needs_agent_variables() {
                                true => format!(", and does `ssh {name}` work without a password"),
                                false => String::new(),
                            },
                        ))
                    }
                }
            }
            Err(_) => {
                let missing = heard.iter().position(Option::is_none).unwrap_or(0);
                Failure::own(format!(
                    "node {}: its vmpid did not answer within {} s",
                    hosts[missing].name,
                    PATIENCE.as_secs()
                ))
            }
        };
        drop(heard);
        end(&mut children);
        return Err(why);
    }
    for ((host, child), heard) in hosts.iter().zip(children).zip(heard) {
        if let Some((facts, to, from)) = heard {
            let known = Known { name: host.name.clone(), slots: host.slots, facts };
            agents.push(Agent { known, child, to, from });
        }
    }
    Ok(agents)
}

/// These nodes are not needed.
pub fn dismiss(agents: Vec<Agent>) {
    let mut children: Vec<Child> = agents.into_iter().map(|agent| agent.child).collect();
    end(&mut children);
}

/// End what has been started: their standard input is closed by now, and they have a moment to go.
pub fn end(children: &mut [Child]) {
    let until = Instant::now() + Duration::from_secs(3);
    for child in children {
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

enum Silence {
    Said(String, i32),
    Ended(std::io::Error),
}

fn greet(to: &mut ChildStdin, from: &mut impl Read) -> Result<Facts, Silence> {
    let hello = ToNode::Hello { version: VERSION.into(), protocol: PROTOCOL };
    // If this fails, reading says why.
    let _ = frames::say(to, &hello);
    frames::await_preamble(from).map_err(Silence::Ended)?;
    loop {
        match frames::hear::<FromNode>(from).map_err(Silence::Ended)? {
            Some(Frame::Said(FromNode::Hello { facts })) => return Ok(facts),
            Some(Frame::Said(FromNode::Failed { reason, code })) => return Err(Silence::Said(reason, code)),
            Some(_) => {}
            None => return Err(Silence::Ended(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

fn describe(host: &Host, way: &Way) -> String {
    match (&way.launcher, way.starter) {
        (None, Starter::Srun) => format!("`srun --nodelist={} ...`", host.name),
        _ if hosts::is_here(&host.name) => "it".into(),
        (Some(launcher), _) => format!("`{launcher} {} ...`", host.name),
        (None, starter) => format!("`{} {} ...`", starter.name(), host.name),
    }
}

/// What starts the agent: vmpid itself on this node, the user's launcher, the batch system's, or ssh. The same place of vmpi on all nodes is assumed;
/// nothing secret is in the arguments.
fn command(host: &Host, way: &Way, exe_dir: &Path) -> Command {
    let vmpid = exe_dir.join("vmpid");
    if way.launcher.is_none() && way.starter == Starter::Srun {
        let mut command = slurm::srun(&way.job, &host.name);
        command.arg(vmpid).arg("--bootstrap");
        return command;
    }
    if hosts::is_here(&host.name) {
        let mut command = Command::new(vmpid);
        command.arg("--bootstrap");
        return command;
    }
    let words: Vec<&str> = match &way.launcher {
        Some(launcher) => launcher.split_whitespace().collect(),
        None => match way.starter {
            // The other end of both is a shell.
            Starter::Ssh | Starter::Oarsh => return by_ssh(way.starter.name(), host, way, &vmpid),
            Starter::Rsh => vec!["rsh"],
            Starter::Blaunch => vec!["blaunch"],
            Starter::Qrsh => vec!["qrsh", "-inherit", "-V"],
            Starter::Srun | Starter::Pbs | Starter::Flux => {
                let broker = way.names.iter().position(|name| *name == host.name).unwrap_or(0);
                let mut command = Command::new("flux");
                command
                    .args(["exec", "--rank"])
                    .arg(broker.to_string())
                    .args(&way.arguments)
                    .arg(vmpid)
                    .arg("--bootstrap");
                return command;
            }
        },
    };
    let mut command = Command::new(words.first().copied().unwrap_or("ssh"));
    command.args(&words[1.min(words.len())..]).args(&way.arguments).arg(&host.name).arg(vmpid).arg("--bootstrap");
    command
}

fn by_ssh(program: &str, host: &Host, way: &Way, vmpid: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5"]);
    command
        .args(&way.arguments)
        .arg("--")
        .arg(&host.name)
        .arg(format!("exec {} --bootstrap", quoted(&vmpid.display().to_string())));
    command
}

/// `flux exec`: see [`text`].
fn carries_text_only(host: &Host, way: &Way) -> bool {
    way.launcher.is_none() && way.starter == Starter::Flux && !hosts::is_here(&host.name)
}

/// As one word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_way_has_its_command() {
        let host = |name: &str| Host { name: name.into(), slots: None };
        let dir = Path::new("/opt/it's here");
        assert_eq!(words(&command(&host("localhost"), &Way::default(), dir)), ["/opt/it's here/vmpid", "--bootstrap"]);
        let ssh = words(&command(&host("n7"), &Way::default(), dir));
        assert_eq!(ssh[ssh.len() - 3..], ["--", "n7", r"exec '/opt/it'\''s here/vmpid' --bootstrap"]);
        let way = Way { launcher: Some("rsh -l me".into()), arguments: vec!["-q".into()], ..Way::default() };
        let rsh = words(&command(&host("n7"), &way, Path::new("/v")));
        assert_eq!(rsh, ["rsh", "-l", "me", "-q", "n7", "/v/vmpid", "--bootstrap"]);
        let of = |starter| Way { starter, job: "12".into(), names: vec!["n6".into(), "n7".into()], ..Way::default() };
        let shown = |starter| words(&command(&host("n7"), &of(starter), Path::new("/v"))).join(" ");
        assert_eq!(shown(Starter::Blaunch), "blaunch n7 /v/vmpid --bootstrap");
        assert_eq!(shown(Starter::Qrsh), "qrsh -inherit -V n7 /v/vmpid --bootstrap");
        assert_eq!(shown(Starter::Flux), "flux exec --rank 1 /v/vmpid --bootstrap");
        assert_eq!(shown(Starter::Rsh), "rsh n7 /v/vmpid --bootstrap");
        assert!(
            shown(Starter::Oarsh).starts_with("oarsh -x")
                && shown(Starter::Oarsh).ends_with("-- n7 exec '/v/vmpid' --bootstrap")
        );
        let way = of(Starter::Srun);
        let srun = words(&command(&host("localhost"), &way, Path::new("/v")));
        assert_eq!((srun[0].as_str(), srun[1..3].join(" ")), ("srun", "--jobid 12".to_string()));
        assert_eq!(srun[srun.len() - 3..], ["--nodelist=localhost", "/v/vmpid", "--bootstrap"]);
    }
}
