//! Clocks and counters of this rank (process-POV) and of its core (core-POV).

use crate::errors::{Class, Error, Result};
use crate::process::{endpoint, is_active, node};
use crate::simulate;
use std::sync::atomic::Ordering;
use vmpi_shared::node::counting;
use vmpi_shared::{control, sched};

/// Wall clock (or the process-POV clock under `--wtime rank`), seconds.
pub fn wtime() -> f64 {
    if is_active() && node().header().wtime_rank != 0 {
        return rtime();
    }
    if simulate::is_on() {
        return simulate::look() as f64 * 1e-12;
    }
    vmpi_shared::clock::monotonic_ns() as f64 * 1e-9
}

pub fn wtick() -> f64 {
    if simulate::is_on() {
        return 1e-12;
    }
    1e-9
}

/// Process-POV clock, seconds: time this rank has been RUNNING (listing 2 of the EuroMPI'20 paper).
pub fn rtime() -> f64 {
    let endpoint = endpoint();
    endpoint.node.seconds(sched::own_time(&endpoint.node, endpoint.me))
}

/// The place of an event among those that are counted.
fn counter(event: &str) -> Result<usize> {
    let list = std::env::var(control::env::COUNTERS).unwrap_or_default();
    let place = list.split(',').position(|name| name.trim() == event).filter(|_| counting::of_rank(node()).is_some());
    place.ok_or_else(|| {
        let counted = if list.is_empty() { "nothing is".to_owned() } else { format!("only {list}") };
        let what = format!("`{event}` is not counted ({counted}); vmpirun --counters says what is");
        Error::new(Class::Arg, what)
    })
}

/// What this rank has counted of an event since MPI_Init: process-POV.
///
/// # Errors
/// `Class::Arg`: it is not counted.
pub fn rcounter(event: &str) -> Result<u64> {
    let at = counter(event)?;
    Ok(counting::of_rank(node()).map_or(0, |values| values[at]))
}

/// What ranks have counted of an event on this rank's core in metered sections: core-POV.
///
/// # Errors
/// `Class::Arg`: it is not counted.
pub fn pcounter(event: &str) -> Result<u64> {
    let at = counter(event)?;
    let endpoint = endpoint();
    Ok(counting::of_core(&endpoint.node, endpoint.node.core_of(endpoint.me))[at])
}

/// Core-POV timer of this rank's core, seconds (listing 3).
pub fn ptime() -> f64 {
    let endpoint = endpoint();
    let node = &endpoint.node;
    node.seconds(node.core(node.core_of(endpoint.me)).ptime.load(Ordering::Relaxed))
}

/// This rank enters the metered section of the core-POV timer.
pub fn start_processor_timer() {
    let endpoint = endpoint();
    counting::section(&endpoint.node, endpoint.node.core_of(endpoint.me), true);
    endpoint.node.rank(endpoint.me).m.store(endpoint.node.now(), Ordering::Relaxed);
}

/// This rank leaves the metered section.
pub fn stop_processor_timer() {
    let endpoint = endpoint();
    let node = &endpoint.node;
    let rank = node.rank(endpoint.me);
    let m = rank.m.swap(0, Ordering::Relaxed);
    if m != 0 {
        node.core(node.core_of(endpoint.me)).ptime.fetch_add(node.now().saturating_sub(m), Ordering::Relaxed);
        counting::section(node, node.core_of(endpoint.me), false);
    }
}
