//! A job's waits in sentences.

use super::graph::USER_TAG_BIT;
use super::{Stray, Why};
use crate::cpus::format_list;
use crate::table::seconds;
use std::collections::{BTreeMap, BTreeSet};
use vmpi_shared::escape;
use vmpi_shared::waits::{RankWait, Site, WaitKind, WaitOn};

/// So many nodes are named with their ranks.
const MOST_NODES: usize = 16;

/// `rank 3`, `ranks 0-4,7`.
fn ranks(list: &[u32]) -> String {
    match list {
        [one] => format!("rank {one}"),
        many => format!("ranks {}", format_list(many)),
    }
}

/// `wait` or `waits`.
fn verb(list: &[u32], word: &str) -> String {
    if list.len() == 1 { format!("{word}s") } else { word.to_owned() }
}

impl Why {
    /// `MPI_COMM_WORLD`, `the communicator "rows"`, `a communicator of ranks 0,2`.
    fn comm_name(&self, context: u32) -> String {
        let comm = self.waits.comm(context);
        let members: Vec<u32> = comm.iter().flat_map(|comm| comm.members.iter().flatten()).copied().collect();
        match comm {
            Some(comm) if comm.name.starts_with("MPI_COMM_") => comm.name.clone(),
            Some(comm) if !comm.name.is_empty() => format!("the communicator \"{}\"", comm.name),
            Some(comm) if !members.is_empty() && members.len() == comm.members.len() => {
                format!("a communicator of {}", ranks(&members))
            }
            _ if context & !1 == 2 => "MPI_COMM_SELF".into(),
            _ => format!("a communicator (context {:#x})", context & !1),
        }
    }

    /// A member: `rank 1`, or `rank 1 of ... (rank 4 of the job)` where that differs.
    fn member(&self, context: u32, peer: i32, in_job: Option<u32>) -> String {
        match (u32::try_from(peer), in_job) {
            (Ok(peer), Some(rank)) if peer == rank => format!("rank {rank}"),
            (Ok(peer), Some(rank)) => format!("rank {peer} there (rank {rank} of the job)"),
            (Ok(peer), None) => format!("rank {peer} there"),
            (Err(_), Some(rank)) => format!("rank {rank}"),
            (Err(_), None) => format!("any rank of {}", self.comm_name(context)),
        }
    }

    /// The call as a noun: `MPI_Recv`, or what is known without its name.
    fn call(&self, rank: &RankWait) -> String {
        let function = rank.site.as_ref().map_or("", |site| site.function.as_str());
        match function {
            "" if rank.call == "inbox space" => "a send".into(),
            "" if rank.call == "collective" => "a collective call".into(),
            "" if rank.call == "wait" => "a wait for requests".into(),
            "" => format!("a {}", rank.call),
            function => function.trim_start_matches('P').to_owned(),
        }
    }

    /// ` at pair.c:12 (main)`.
    fn place(&self, rank: &RankWait) -> String {
        rank.site.as_ref().map_or_else(String::new, at)
    }

    /// The call, and where it is: `MPI_Recv at pair.c:12 (main)`. Of one that has returned before, also where its buffer is touched, or what has to wait for it.
    fn call_there(&self, rank: &RankWait) -> String {
        let Some(deferred) = &rank.deferred else { return format!("{}{}", self.call(rank), self.place(rank)) };
        let left = match &deferred.function[..] {
            "" => format!("a {}", rank.call),
            function => format!("{function}{}, deferred", deferred.site.as_ref().map_or_else(String::new, at)),
        };
        match &rank.site {
            Some(site) if site.function.is_empty() => format!("{left}, since its buffer is touched{},", at(site)),
            Some(_) => format!("{}{} for {left},", self.call(rank), self.place(rank)),
            None => left,
        }
    }

    fn wait(&self, wait: &WaitOn) -> String {
        let tag = if wait.tag == -2 { "any tag".into() } else { format!("tag {}", wait.tag) };
        let on = self.comm_name(wait.context);
        let one = if wait.ranks.len() == 1 { wait.ranks.first().copied() } else { None };
        match wait.kind {
            WaitKind::Receive | WaitKind::Send if wait.context & 1 == 1 => {
                let from = one.map_or("another member".into(), |rank| format!("rank {rank}"));
                format!("on {on}, for {from}")
            }
            WaitKind::Receive | WaitKind::Probe => {
                let who = if wait.peer < 0 { "any rank".into() } else { self.member(wait.context, wait.peer, one) };
                format!("on {on}, for a message from {who} with {tag}")
            }
            WaitKind::Send => {
                format!(
                    "on {on}, until {} receives its message of {} bytes with {tag}{}",
                    self.member(wait.context, wait.peer, one),
                    wait.bytes,
                    if wait.crowded { ", since that one holds so many" } else { "" }
                )
            }
            WaitKind::Collective if wait.ranks.is_empty() => "for the other members".into(),
            WaitKind::Collective => format!("on {on}, for {}", ranks(&wait.ranks)),
            WaitKind::Space => format!("until {} takes messages out of its full inbox", ranks(&wait.ranks)),
            WaitKind::Window if wait.peer >= 0 => format!("for its turn with the window of rank {}", wait.peer),
            WaitKind::Window => "for other members of the window".into(),
            WaitKind::Daemon => "for an answer of vmpid".into(),
            WaitKind::Connect => "for a group of this job that connects to its port".into(),
            WaitKind::Accept => "for a group of this job that accepts at the port".into(),
        }
    }

    /// What a rank does, without its number.
    fn doing(&self, rank: &RankWait) -> String {
        if let Some(busy) = rank.is_busy.filter(|_| rank.call.is_empty() && rank.state != "ENDED") {
            let call = rank.site.as_ref().map_or("", |site| site.function.as_str()).trim_start_matches('P');
            return match (busy, call) {
                (true, "") => format!("computes{}", self.place(rank)),
                (true, call) => format!("asks again and again by {call}{}", self.place(rank)),
                (false, _) => format!("sleeps outside MPI{}", self.place(rank)),
            };
        }
        if rank.call.is_empty() {
            return match rank.state.as_str() {
                "ENDED" => "has ended".into(),
                "REMOTE" => format!("is on node {}, of which nothing is heard", escape::word(&rank.node)),
                "STARTING" => "has not called MPI_Init yet".into(),
                "FINALIZED" => "has left MPI".into(),
                "AWAY" => "is outside MPI, asleep or computing, and has given its core up".into(),
                "READY" => "could go on, and waits for its core".into(),
                _ => "runs".into(),
            };
        }
        let mut waits: Vec<String> = rank.waits.iter().take(4).map(|wait| self.wait(wait)).collect();
        waits.dedup();
        let more = rank.more as usize + rank.waits.len().saturating_sub(4);
        let joint = if rank.any { "; or " } else { "; and " };
        let mut text = waits.join(joint);
        if more > 0 {
            text.push_str(&format!("{joint}{more} more"));
        }
        format!("{} {text}", self.call_there(rank)).trim_end().to_owned()
    }
}

/// ` at pair.c:12 (main)`.
fn at(site: &Site) -> String {
    match &site.caller[..] {
        "" => format!(" at {}", site.place),
        caller => format!(" at {} ({caller})", site.place),
    }
}

/// One line per kind of wait: who, and what they do.
fn lines(why: &Why) -> Vec<String> {
    let mut groups: Vec<(String, bool, Vec<u32>, f64)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for rank in &why.waits.ranks {
        let doing = why.doing(rank);
        let at = *known.entry(doing.clone()).or_insert_with(|| {
            groups.push((doing, !rank.call.is_empty(), Vec::new(), f64::MAX));
            groups.len() - 1
        });
        groups[at].2.push(rank.rank);
        groups[at].3 = groups[at].3.min(rank.waiting_s);
    }
    let line = |(doing, waits, list, since): (String, bool, Vec<u32>, f64)| match waits {
        true => format!("{} {} in {doing}, since {}", ranks(&list), verb(&list, "wait"), seconds(since)),
        false if list.len() > 1 => {
            let plural = [
                ("computes", "compute"),
                ("asks", "ask"),
                ("sleeps", "sleep"),
                ("has ", "have "),
                ("is ", "are "),
                ("runs", "run"),
                ("waits", "wait"),
                ("its core", "their cores"),
            ];
            let doing = plural.iter().fold(doing, |text, (one, many)| text.replacen(one, many, 1));
            format!("{} {doing}", ranks(&list))
        }
        false => format!("{} {doing}", ranks(&list)),
    };
    groups.into_iter().map(line).collect()
}

/// What follows, a sentence each.
pub fn sentences(why: &Why) -> Vec<String> {
    let mut sentences = Vec::new();
    let rank = |number: u32| why.waits.ranks.iter().find(|rank| rank.rank == number);
    for absence in &why.graph.absences {
        let call = absence.present.first().and_then(|first| rank(*first)).map_or("it".into(), |first| why.call(first));
        let all = absence.present.len() + absence.absent.len();
        if absence.present.is_empty() || absence.absent.len() > absence.present.len() {
            continue;
        }
        let absent = &absence.absent;
        let mut text = format!(
            "{} {} missing in {call}: {} of the {all} members of {} are there.",
            ranks(absent),
            if absent.len() == 1 { "is" } else { "are" },
            absence.present.len(),
            why.comm_name(absence.context)
        );
        if let [one] = absent[..]
            && let Some(there) = rank(one)
        {
            text.push_str(&match there.call.is_empty() {
                true => format!(" Rank {one} {}.", why.doing(there)),
                false => format!(" Rank {one} is in {} instead.", why.call_there(there).trim_end_matches(',')),
            });
        }
        sentences.push(text);
    }
    for circle in &why.graph.cycles {
        sentences.push(match circle[..] {
            [one] => format!("rank {one} waits for itself: it cannot send while it waits."),
            [a, b] => format!("rank {a} and rank {b} wait for each other."),
            _ => {
                let steps: Vec<String> = circle.iter().chain(circle.first()).map(u32::to_string).collect();
                format!("ranks {} wait for each other in a circle: {}.", format_sorted(circle), steps.join(" -> "))
            }
        });
    }
    for edge in &why.graph.edges {
        if let Some(to) = rank(edge.to).filter(|to| to.state == "ENDED")
            && rank(edge.from).is_some_and(|from| from.waits.len() == 1 && from.waits[0].ranks.len() == 1)
        {
            sentences.push(format!("rank {} waits for rank {}, which has ended.", edge.from, to.rank));
        }
    }
    // Where memory has ended it is no wonder that there are such messages.
    if why.waits.limit().is_none() {
        sentences.extend(unlike(&why.graph.strays).into_iter().take(16).map(|stray| stray_sentence(why, stray)));
    }
    sentences
}

/// Of many messages that differ in their lengths at most, the first.
fn unlike(strays: &[Stray]) -> Vec<&Stray> {
    let mut seen = BTreeSet::new();
    let first = |stray: &&Stray| {
        let Stray { rank, message, wanted, .. } = stray;
        seen.insert((*rank, message.from, message.tag, message.context, wanted.peer, wanted.tag, wanted.context))
    };
    strays.iter().filter(first).collect()
}

fn format_sorted(list: &[u32]) -> String {
    let mut list = list.to_vec();
    list.sort_unstable();
    format_list(&list)
}

fn stray_sentence(why: &Why, stray: &Stray) -> String {
    let (message, wanted) = (&stray.message, &stray.wanted);
    if message.context & 1 == 1 {
        // A communicator is being made: the tags are the program's, the messages are not.
        let call = why.waits.ranks.iter().find(|rank| rank.rank == stray.rank).map(|rank| why.call(rank));
        return format!(
            "rank {} has given {} the tag {} on {}, and rank {} the tag {}: is one of the two tags wrong?",
            stray.rank,
            call.unwrap_or_default(),
            wanted.tag & !USER_TAG_BIT,
            why.comm_name(message.context),
            message.from,
            message.tag & !USER_TAG_BIT
        );
    }
    let here = format!(
        "rank {} holds a message from rank {} with tag {} ({} bytes) on {} that no receive has asked for, and waits for one",
        stray.rank,
        message.from,
        message.tag,
        message.bytes,
        why.comm_name(message.context)
    );
    if stray.tag_differs {
        format!("{here} with tag {}: is one of the two tags wrong?", wanted.tag)
    } else if stray.source_differs {
        let one = wanted.ranks.first().filter(|_| wanted.ranks.len() == 1).copied();
        format!("{here} from {}: is one of the two ranks wrong?", why.member(wanted.context, wanted.peer, one))
    } else {
        format!("{here} on {}: is one of the two communicators wrong?", why.comm_name(wanted.context))
    }
}

/// Of a job of several nodes: `ranks 0-2 are on node a, rank 3 on node b.`
fn whereabouts(why: &Why) -> Option<String> {
    let mut nodes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for rank in why.waits.ranks.iter().filter(|rank| !rank.node.is_empty() && rank.state != "REMOTE") {
        nodes.entry(&rank.node).or_default().push(rank.rank);
    }
    let mut nodes: Vec<(&str, Vec<u32>)> = nodes.into_iter().collect();
    nodes.sort_by_key(|(_, list)| list[0]);
    let (first, rest) = nodes.split_first()?;
    let (name, list) = first;
    let mut text =
        format!("{} {} on node {}", ranks(list), if list.len() == 1 { "is" } else { "are" }, escape::word(name));
    for (name, list) in rest.iter().take(MOST_NODES - 1) {
        text.push_str(&format!(", {} on node {}", ranks(list), escape::word(name)));
    }
    if nodes.len() > MOST_NODES {
        text.push_str(&format!(", and others on {} more", nodes.len() - MOST_NODES));
    }
    Some(text + ".")
}

/// What can be done about a job that does not go on.
pub fn next_steps(why: &Why) -> String {
    let job = why.waits.job;
    let at = why.waits.ranks.iter().find(|rank| rank.pid != 0 && !["ENDED", "REMOTE"].contains(&rank.state.as_str()));
    let attach = at.map_or(String::new(), |rank| {
        let node = if rank.node.is_empty() { String::new() } else { format!(" on node {}", escape::word(&rank.node)) };
        format!(", one of them closely: gdb -p {}{node} (rank {})", rank.pid, rank.rank)
    });
    let by_itself = match why.waits.deadlock {
        true => "next time, --on-deadlock abort ends such a job by itself (exit code 123)",
        false => "next time, --timeout SECONDS ends a job that takes too long (exit code 124)",
    };
    format!(
        "To go on: look at all call stacks: vmpictl stacks {job}{attach}; end the job: Ctrl-C, or vmpictl kill {job}; {by_itself}\n"
    )
}

/// The report about a job in which nothing has come about for so long.
pub fn hang_text(why: &Why, seconds: u64) -> String {
    let waiting = why.waits.ranks.iter().filter(|rank| !rank.call.is_empty()).count();
    let alive = why.waits.ranks.iter().filter(|rank| rank.state != "ENDED").count();
    let mut text = format!(
        "no progress in job {} ({}) for {seconds} s: no message has gone or come, and no wait in MPI has ended; \
         {waiting} of {alive} ranks wait in MPI\n",
        why.waits.job,
        escape::word(&why.waits.program)
    );
    for line in lines(why).into_iter().map(|line| format!("  {line}")).chain(sentences(why).iter().map(|s| capital(s)))
    {
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn capital(sentence: &str) -> String {
    format!("{}{}", sentence[..1].to_uppercase(), &sentence[1..])
}

/// The whole report.
pub fn text(why: &Why) -> String {
    let elsewhere = why.waits.ranks.iter().any(|rank| rank.state == "REMOTE");
    let waiting = why.waits.ranks.iter().filter(|rank| !rank.call.is_empty()).count();
    let alive = why.waits.ranks.iter().filter(|rank| !["ENDED", "REMOTE"].contains(&rank.state.as_str())).count();
    let mut text = if let Some(limit) = why.waits.limit().filter(|_| why.waits.deadlock) {
        format!("job {} ({}) cannot go on: {}\n", why.waits.job, escape::word(&why.waits.program), limit.sentence())
    } else if why.waits.deadlock {
        let who = match alive {
            1 if why.waits.ranks.len() == 1 => "its rank waits in MPI".to_string(),
            1 => "the only rank left waits in MPI".to_string(),
            _ => format!("all {alive} ranks wait in MPI for each other"),
        };
        format!(
            "deadlock in job {} ({}): {who}, and no message is under way\n",
            why.waits.job,
            escape::word(&why.waits.program)
        )
    } else {
        let of = if elsewhere { "ranks of this node" } else { "ranks" };
        format!("job {} ({}): {waiting} of {alive} {of} wait in MPI\n", why.waits.job, escape::word(&why.waits.program))
    };
    for line in lines(why) {
        text.push_str(&format!("  {line}\n"));
    }
    for sentence in sentences(why).into_iter().chain(whereabouts(why)) {
        text.push_str(&format!("{}\n", capital(&sentence)));
    }
    if elsewhere {
        text.push_str("A circle of waits that leads over several nodes, and so a deadlock of the whole job, cannot be seen from one of them\n");
    }
    text
}
