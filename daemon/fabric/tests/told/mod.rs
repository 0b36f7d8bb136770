//! What fabrics tell, gathered.

use std::time::{Duration, Instant};
use vmpi_fabric::{Event, Fabric, LinkError};

pub const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub enum Told {
    Up(u32),
    #[allow(dead_code)] // not each test file looks into them
    Frame(u32, u8, Vec<u8>),
    Lost(u32, LinkError),
}

/// One turn of a fabric, and what it told.
pub fn turn<F: Fabric + ?Sized>(fabric: &mut F) -> Vec<Told> {
    let mut told = Vec::new();
    fabric.progress(Instant::now(), &mut |event| {
        told.push(match event {
            Event::Up(node) => Told::Up(node),
            Event::Frame { node, kind, body } => Told::Frame(node, kind, body.to_vec()),
            Event::Lost(node, why) => Told::Lost(node, why),
        });
    });
    fabric.flush();
    told
}

/// Turn all until `enough` of what was told (node, event).
pub fn until<F: Fabric + ?Sized>(
    nodes: &mut [&mut F],
    enough: impl Fn(&[(usize, Told)]) -> bool,
) -> Vec<(usize, Told)> {
    let (start, mut all) = (Instant::now(), Vec::new());
    while !enough(&all) {
        assert!(start.elapsed() < LIMIT, "told only {all:?}");
        for (me, node) in nodes.iter_mut().enumerate() {
            all.extend(turn(&mut **node).into_iter().map(|told| (me, told)));
        }
        std::thread::yield_now();
    }
    all
}

/// Links that are up, both ends counted.
pub fn ups(told: &[(usize, Told)]) -> usize {
    told.iter().filter(|(me, told)| matches!(told, Told::Up(node) if *node as usize != *me)).count()
}

#[allow(dead_code)] // not each test file counts them
pub fn frames(told: &[(usize, Told)]) -> usize {
    told.iter().filter(|(_, told)| matches!(told, Told::Frame(..))).count()
}

/// Who has lost whom, and why.
pub fn losses(told: &[(usize, Told)]) -> Vec<(usize, u32, String)> {
    let loss = |(me, told): &(usize, Told)| match told {
        Told::Lost(node, why) => Some((*me, *node, why.to_string())),
        _ => None,
    };
    told.iter().filter_map(loss).collect()
}
