//! Where the ranks' output goes that comes from the nodes: to the session, which sees it like that of one node.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use nix::fcntl::OFlag;
use vmpi_shared::control::{NewRank, Stdio};

type Sink = Arc<Mutex<File>>;

pub enum Sinks {
    Shared([Option<File>; 2]),
    /// By the numbers of the streams.
    PerRank(Mutex<HashMap<u32, Sink>>),
}

impl Sinks {
    /// The descriptors that the session has given, but for standard input.
    pub fn new(stdio: Stdio, mut files: impl Iterator<Item = File>) -> Sinks {
        match stdio {
            Stdio::Shared => Sinks::Shared([files.next(), files.next()]),
            Stdio::PerRank => {
                let sinks = (0..).zip(files).map(|(stream, file)| (stream, Arc::new(Mutex::new(file))));
                Sinks::PerRank(Mutex::new(sinks.collect()))
            }
        }
    }

    /// Bytes of a stream; none: it ends.
    pub fn write(&self, stream: u32, bytes: &[u8]) {
        // Whoever reads has gone if this fails, and says so itself.
        let _ = match self {
            Sinks::Shared(both) => both[stream as usize % 2].as_ref().map_or(Ok(()), |mut file| file.write_all(bytes)),
            Sinks::PerRank(sinks) => {
                // Held by nobody while a slow reader is waited for.
                let sink = sinks.lock().ok().and_then(|mut sinks| match bytes {
                    [] => sinks.remove(&stream).and(None),
                    _ => sinks.get(&stream).cloned(),
                });
                match sink.as_ref().and_then(|sink| sink.lock().ok()) {
                    Some(mut file) => file.write_all(bytes),
                    None => Ok(()),
                }
            }
        };
    }

    /// Ranks have been spawned: the ends for the session, of stdout and stderr of each; none if all share theirs.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn add(&self, ranks: &[NewRank]) -> nix::Result<Vec<OwnedFd>> {
        let Sinks::PerRank(sinks) = self else { return Ok(Vec::new()) };
        let mut ends = Vec::with_capacity(2 * ranks.len());
        for rank in ranks {
            for stream in [2 * rank.stream, 2 * rank.stream + 1] {
                let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
                ends.push(read);
                if let Ok(mut sinks) = sinks.lock() {
                    sinks.insert(stream, Arc::new(Mutex::new(File::from(write))));
                }
            }
        }
        Ok(ends)
    }

    /// No more comes: the session sees the end of the streams.
    pub fn close(&self) {
        if let Sinks::PerRank(sinks) = self
            && let Ok(mut sinks) = sinks.lock()
        {
            sinks.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn streams_of_new_ranks_come_and_go() {
        let sinks = Sinks::new(Stdio::PerRank, std::iter::empty());
        let new =
            |stream| NewRank { rank: 5, pid: 1, world: 2, world_rank: 0, program: "/x".into(), node: None, stream };
        let ends = sinks.add(&[new(3), new(4)]).unwrap();
        for (stream, bytes) in [(6, &b"out"[..]), (9, b"err"), (7, b""), (99, b"nobody's"), (6, b"!")] {
            sinks.write(stream, bytes);
        }
        sinks.write(9, b"");
        sinks.close();
        let texts = ends.into_iter().map(|end| {
            let mut text = String::new();
            File::from(end).read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["out!", "", "", "err"]);
    }
}
