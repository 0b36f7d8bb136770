//! What a launcher and its agent on a node say to each other, through standard input and output of `vmpid --bootstrap`.
//!
//! A frame is a little-endian `u32` length, a byte that says what it is, and JSON or the bytes of a stream. The agent's first words are
//! [`PREAMBLE`]: shells on the way may have said something before.

use crate::topology::Topology;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use vmpi_shared::control::{JobSpec, MAX_FRAME_BYTES, Reply, Request};

pub const PREAMBLE: &[u8] = b"\nvmpid bootstrap 1\n";
/// So much other text may come before it.
pub const MOST_NOISE_BYTES: usize = 64 << 10;

const SAID: u8 = 0;
const BYTES: u8 = 1;
const RECORDED: u8 = 2;

/// From the launcher.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum ToNode {
    Hello {
        version: String,
        protocol: u32,
    },
    Submit {
        spec: Box<JobSpec>,
    },
    Ask {
        request: Request,
    },
    StdinEnd,
    Alive,
    /// What does the node's clock say? Answer: `Time`.
    Time {
        number: u32,
    },
}

/// From the agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum FromNode {
    Hello {
        facts: Facts,
    },
    Said {
        reply: Box<Reply>,
    },
    /// It cannot go on.
    Failed {
        reason: String,
        code: i32,
    },
    /// So many bytes of standard input have been passed on.
    StdinTaken {
        bytes: u64,
    },
    Alive,
    /// CLOCK_BOOTTIME, when question `number` had come.
    Time {
        number: u32,
        there: u64,
    },
}

/// What a launcher must know of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Its own name.
    pub name: String,
    pub version: String,
    pub cpus: Vec<u32>,
    /// Which CPUs lie together.
    #[serde(default)]
    pub topology: Topology,
    /// CPUs' worth of time that its control group grants.
    #[serde(default)]
    pub quota: Option<f64>,
    /// Where other nodes may reach it, the likeliest first.
    pub addresses: Vec<IpAddr>,
    /// An RDMA device of use that is not made of software, or the one that its owner has named.
    #[serde(default)]
    pub rdma: Option<String>,
}

/// A frame that has come.
#[derive(Debug)]
pub enum Frame<T> {
    Said(T),
    /// Bytes of a stream: 0 for standard input; else rank * 2, and 1 more for standard error (of a spawned rank: `NewRank::stream` instead of its
    /// number). None from a node: that stream ends.
    Bytes(u32, Vec<u8>),
    /// What lies at this place of the node's job segment (`records`), before the word that it belongs to; to a node: of the trace for a tool there.
    Recorded(u64, Vec<u8>),
}

/// # Errors
/// Those of writing.
pub fn say<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    put(to, SAID, &[&body])
}

/// # Errors
/// Those of writing.
pub fn pass(to: &mut impl Write, stream: u32, bytes: &[u8]) -> io::Result<()> {
    put(to, BYTES, &[&stream.to_le_bytes(), bytes])
}

/// # Errors
/// Those of writing.
pub fn recorded(to: &mut impl Write, at: u64, bytes: &[u8]) -> io::Result<()> {
    put(to, RECORDED, &[&at.to_le_bytes(), bytes])
}

fn put(to: &mut impl Write, what: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut frame = Vec::with_capacity(4 + length);
    frame.extend_from_slice(&(length as u32).to_le_bytes());
    frame.push(what);
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    to.write_all(&frame)?;
    to.flush()
}

/// The next frame; blocks. `None`: the other side has closed its end.
///
/// # Errors
/// Those of reading, and bytes that are no frame.
pub fn hear<T: for<'de> Deserialize<'de>>(from: &mut impl Read) -> io::Result<Option<Frame<T>>> {
    let nonsense = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut head = [0; 4];
    let mut got = 0;
    while got < 4 {
        match from.read(&mut head[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => got += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let length = u32::from_le_bytes(head);
    if length == 0 || length > MAX_FRAME_BYTES {
        return Err(nonsense(format!("a frame of {length} bytes")));
    }
    // What is announced need not come: memory grows with what does.
    let mut body = Vec::new();
    from.take(length.into()).read_to_end(&mut body)?;
    if body.len() != length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match (body[0], body.get(1..5)) {
        (SAID, _) => Ok(Some(Frame::Said(serde_json::from_slice(&body[1..])?))),
        (BYTES, Some(stream)) => {
            let stream = u32::from_le_bytes(stream.try_into().expect("four bytes"));
            body.drain(..5);
            Ok(Some(Frame::Bytes(stream, body)))
        }
        (RECORDED, Some(_)) if body.len() >= 9 => {
            let at = u64::from_le_bytes(body[1..9].try_into().expect("eight bytes"));
            body.drain(..9);
            Ok(Some(Frame::Recorded(at, body)))
        }
        (what, _) => Err(nonsense(format!("a frame of kind {what}"))),
    }
}

/// Read over whatever comes before the agent's first words.
///
/// # Errors
/// They do not come.
pub fn await_preamble(from: &mut impl Read) -> io::Result<()> {
    let mut window: Vec<u8> = Vec::new();
    let mut byte = [0];
    for _ in 0..MOST_NOISE_BYTES {
        from.read_exact(&mut byte)?;
        window.push(byte[0]);
        if window.ends_with(PREAMBLE) {
            return Ok(());
        }
        if window.len() > 2 * PREAMBLE.len() {
            window.drain(..PREAMBLE.len());
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "what answers there is no vmpid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_as_they_went() {
        let mut wire = b"Welcome to node7!\nvmpid bootstrap 0\n".to_vec();
        wire.extend_from_slice(PREAMBLE);
        say(&mut wire, &FromNode::Alive).unwrap();
        pass(&mut wire, 7, b"text").unwrap();
        pass(&mut wire, 0, b"").unwrap();
        recorded(&mut wire, 1 << 40, b"events").unwrap();
        recorded(&mut wire, 7, b"").unwrap();
        let mut from = &wire[..];
        await_preamble(&mut from).unwrap();
        assert!(matches!(hear::<FromNode>(&mut from), Ok(Some(Frame::Said(FromNode::Alive)))));
        assert!(matches!(hear::<FromNode>(&mut from), Ok(Some(Frame::Bytes(7, bytes))) if bytes == b"text"));
        assert!(matches!(hear::<FromNode>(&mut from), Ok(Some(Frame::Bytes(0, bytes))) if bytes.is_empty()));
        assert!(
            matches!(hear::<FromNode>(&mut from), Ok(Some(Frame::Recorded(at, bytes))) if at == 1 << 40 && bytes == b"events")
        );
        assert!(matches!(hear::<FromNode>(&mut from), Ok(Some(Frame::Recorded(7, bytes))) if bytes.is_empty()));
        assert!(matches!(hear::<FromNode>(&mut from), Ok(None)));
    }

    /// What a node is like, in the message that tells of it: JSON with its type inside is read in another way than by itself.
    #[test]
    fn a_nodes_facts_come_as_they_went() {
        let topology = Topology::synthetic("package:2 core:2 pu:2").unwrap();
        let mut wire = Vec::new();
        say(&mut wire, &FromNode::Hello { facts: Facts { topology: topology.clone(), ..Facts::default() } }).unwrap();
        match hear::<FromNode>(&mut &wire[..]) {
            Ok(Some(Frame::Said(FromNode::Hello { facts }))) => assert_eq!(facts.topology, topology),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        for bytes in [
            &[0, 0, 0, 0][..],
            &[255, 255, 255, 255, 0],
            &[1, 0, 0, 0, 9],
            &[3, 0, 0, 0, 1, 0, 0],
            &[5, 0, 0, 0, 2, 0, 0, 0, 0],
            &[9, 0, 0],
        ] {
            assert!(hear::<FromNode>(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
        assert!(await_preamble(&mut &vec![b'x'; 2 * MOST_NOISE_BYTES][..]).is_err());
    }
}
