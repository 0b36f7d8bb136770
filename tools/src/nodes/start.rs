//! Start an agent on every node, and hear what the nodes are like.

use super::frames::{self, Facts, Frame, FromNode, ToNode};
use super::slurm;
use crate::daemon::VERSION;
use crate::failure::Failure;
use crate::hosts::{self, Host};
use crate::threads;
use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use vmpi_shared::control::PROTOCOL;

/// A node's vmpid must answer in this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// An agent that has said hello.
pub struct Agent {
    /// The node, as the user calls it.
    pub name: String,
    pub slots: Option<u32>,
    pub facts: Facts,
    pub child: Child,
    pub to: ChildStdin,
    pub from: BufReader<ChildStdout>,
}

/// How nodes are reached.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Instead of ssh: called with the host's name and the command.
    pub launcher: Option<String>,
    /// More arguments for it, or for ssh, before the host's name.
    pub arguments: Vec<String>,
    /// The Slurm job on whose nodes srun starts the agents, this node included.
    pub slurm_job: Option<String>,
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
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn();
        let mut child = started.map_err(|e| {
            end(&mut children);
            Failure::own(format!("node {}: cannot run {:?}: {e}", host.name, command.get_program()))
        })?;
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        children.push(child);
        let tell = tell.clone();
        threads::spawn(move || {
            let mut from = BufReader::new(from);
            let mut to = to;
            let heard = greet(&mut to, &mut from);
            // Whoever listens may have given up.
            let _ = tell.send((number, heard.map(|facts| (facts, to, from))));
        });
    }
    drop(tell);
    let until = Instant::now() + PATIENCE;
    let mut heard: Vec<Option<(Facts, ChildStdin, BufReader<ChildStdout>)>> = hosts.iter().map(|_| None).collect();
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
                            match (&way.launcher, &way.slurm_job) {
                                (None, None) => format!(", and does `ssh {name}` work without a password"),
                                _ => String::new(),
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
            agents.push(Agent { name: host.name.clone(), slots: host.slots, facts, child, to, from });
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

fn greet(to: &mut ChildStdin, from: &mut BufReader<ChildStdout>) -> Result<Facts, Silence> {
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
    match &way.launcher {
        _ if way.slurm_job.is_some() => format!("`srun --nodelist={} ...`", host.name),
        _ if hosts::is_here(&host.name) => "it".into(),
        Some(launcher) => format!("`{launcher} {} ...`", host.name),
        None => format!("`ssh {} ...`", host.name),
    }
}

/// What starts the agent: vmpid itself on this node, the user's launcher, or ssh. The same place of vmpi on all nodes is assumed; nothing
/// secret is in the arguments.
fn command(host: &Host, way: &Way, exe_dir: &Path) -> Command {
    let vmpid = exe_dir.join("vmpid");
    if let Some(job) = &way.slurm_job {
        let mut command = slurm::srun(job, &host.name);
        command.arg(vmpid).arg("--bootstrap");
        return command;
    }
    if hosts::is_here(&host.name) {
        let mut command = Command::new(vmpid);
        command.arg("--bootstrap");
        return command;
    }
    if let Some(launcher) = &way.launcher {
        let mut words = launcher.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("ssh"));
        command.args(words).args(&way.arguments).arg(&host.name).arg(vmpid).arg("--bootstrap");
        return command;
    }
    let mut command = Command::new("ssh");
    command.args(["-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5"]);
    // ssh's other end is a shell.
    command
        .args(&way.arguments)
        .arg("--")
        .arg(&host.name)
        .arg(format!("exec {} --bootstrap", quoted(&vmpid.display().to_string())));
    command
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
        let way = Way { slurm_job: Some("12".into()), ..Way::default() };
        let srun = words(&command(&host("localhost"), &way, Path::new("/v")));
        assert_eq!((srun[0].as_str(), srun[1..3].join(" ")), ("srun", "--jobid 12".to_string()));
        assert_eq!(srun[srun.len() - 3..], ["--nodelist=localhost", "/v/vmpid", "--bootstrap"]);
    }
}
