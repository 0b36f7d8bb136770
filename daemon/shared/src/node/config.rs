//! What a node segment is made from, and how patient its ranks are.

use crate::control::{Balance, OnBlock, Policy, Wtime};
use std::time::Duration;

/// What a node segment is made from.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub job: u32,
    pub ranks: u32,
    pub v: u32,
    /// CPU number of each core.
    pub cpus: Vec<u32>,
    /// For each rank the index of its core.
    pub placement: Vec<u32>,
    pub policy: Policy,
    pub balance: Balance,
    /// The first of the cores, between which ranks may move.
    pub own_cores: u32,
    /// Each rank is pinned to its core's CPU.
    pub bind: bool,
    pub on_block: OnBlock,
    pub wtime: Wtime,
    pub quantum_ms: u64,
    /// The job goes on when a rank dies.
    pub recovery: bool,
    /// Ranks that others wait for an answer of go first (`--progress rank`).
    pub answers_first: bool,
    pub patience: Patience,
}

/// For how long things are worth waiting for, by what switching costs on the machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The last rank of a core to suspend watches so long before it sleeps.
    pub spin: Duration,
    /// So long where idle times lately were shorter: beside such a time a wake-up matters, and so do the caches, which a core that halts may lose.
    pub long: Duration,
    /// Turns on a core shorter than this are short: several waiting ranks are woken together.
    pub brisk: Duration,
}

impl Default for Patience {
    /// The usual: a wake-up across cores takes 35 us, a hand-over 3 us. `long` is shorter than follows from that elsewhere: where no wake-up can be measured
    /// there is one core, and longer watching was not tried.
    fn default() -> Patience {
        let us = Duration::from_micros;
        Patience { spin: us(60), long: us(1000), brisk: us(20) }
    }
}

impl NodeConfig {
    /// `ranks` ranks on one core, everything else as plain as can be: a world without a daemon, a measurement.
    pub fn on_one_core(cpu: u32, ranks: u32) -> NodeConfig {
        NodeConfig {
            job: 0,
            ranks,
            v: ranks,
            cpus: vec![cpu],
            placement: vec![0; ranks as usize],
            policy: Policy::Rr,
            balance: Balance::None,
            own_cores: 1,
            bind: false,
            on_block: OnBlock::Keep,
            wtime: Wtime::Wall,
            quantum_ms: 0,
            recovery: false,
            answers_first: false,
            patience: Patience::default(),
        }
    }
}
