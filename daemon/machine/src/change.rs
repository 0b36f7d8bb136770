//! The same machine with another network between its hosts: `latency=2us`, `bandwidth=25GB/s`.

use crate::machine::{Level, Machine, Model, Topology};
use crate::units;

/// What may be other than the file says.
pub const CHANGES: [&str; 2] = ["latency", "bandwidth"];

/// `value`, where what was `old` is `new` now.
fn scaled(value: u64, new: u64, old: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(new) / u128::from(old.max(1))).unwrap_or(u64::MAX)
}

impl Machine {
    /// Change the latency or the bandwidth between the two nearest hosts (of one host, between its nearest cores) to what `KEY=VALUE` says, and all others
    /// of the network in the same proportion.
    ///
    /// # Errors
    /// What may be said, or why that does not go with this machine.
    pub fn change(&mut self, said: &str) -> Result<(), String> {
        let (key, value) = said.split_once('=').unwrap_or((said, ""));
        match key {
            "latency" => {
                let new = units::time(value).filter(|time| *time > 0);
                let new = new.ok_or_else(|| format!("`{value}` is no latency: a number with ps, ns, us, ms or s"))?;
                self.change_latency(new)
            }
            "bandwidth" => {
                let new = units::bandwidth(value).filter(|bandwidth| *bandwidth > 0);
                let new = new.ok_or_else(|| {
                    format!(
                        "`{value}` is no bandwidth: a number with B/s or b/s, and k, M, G, T, Ki, Mi, Gi or Ti before"
                    )
                })?;
                self.change_bandwidth(new)
            }
            other => Err(format!("`{other}` is not one of {}", CHANGES.join(", "))),
        }
    }

    /// The levels of the network, nearest first: those between hosts, or all if there is one host.
    fn network(&mut self) -> std::ops::Range<usize> {
        let begin = if self.host_count() > 1 { Level::Switch as usize } else { 0 };
        begin.min(self.levels.len())..self.levels.len()
    }

    /// Classes of links between hosts.
    fn links(&self) -> usize {
        let loopback = match self.topology {
            Topology::Flat { loopback, .. } => loopback,
            Topology::Routes(_) => true,
            _ => false,
        };
        self.classes.len() - usize::from(loopback).min(self.classes.len())
    }

    fn change_latency(&mut self, new: u64) -> Result<(), String> {
        let (network, links) = (self.network(), self.links());
        let old = match self.model {
            Model::LogGp => self.levels[network.clone()].first().map(|level| level.pieces[0].latency),
            Model::Smpi => self.classes[..links].first().map(|class| class.latency),
        };
        let old = old.filter(|old| *old > 0).ok_or("the machine says of no latency to begin with")?;
        let (pieces, classes) = (self.levels[network].iter_mut(), self.classes[..links].iter_mut());
        pieces.flat_map(|level| &mut level.pieces).for_each(|piece| piece.latency = scaled(piece.latency, new, old));
        classes.for_each(|class| class.latency = scaled(class.latency, new, old));
        self.hop_latency = scaled(self.hop_latency, new, old);
        Ok(())
    }

    fn change_bandwidth(&mut self, new: u64) -> Result<(), String> {
        let (network, links) = (self.network(), self.links());
        let old = match self.model {
            Model::LogGp => self.levels[network.clone()].first().map(|level| level.pieces[0].bandwidth),
            Model::Smpi => self.classes[..links].first().map(|class| class.bandwidth),
        };
        let old = old.filter(|old| *old > 0).ok_or("the machine says of no bandwidth to begin with")?;
        let (pieces, classes) = (self.levels[network].iter_mut(), self.classes[..links].iter_mut());
        let faster = |value: u64| scaled(value, new, old).clamp(1, units::FASTEST);
        pieces.flat_map(|level| &mut level.pieces).for_each(|piece| piece.bandwidth = faster(piece.bandwidth));
        classes.for_each(|class| class.bandwidth = faster(class.bandwidth));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;

    fn wire(machine: &Machine, to: u32, bytes: u64) -> u64 {
        let words = machine.image_words();
        let image = Image::from_words(&words).unwrap();
        image.cost(&image.path(0, to), bytes).wire
    }

    #[test]
    fn the_network_changes_in_proportion_and_the_hosts_do_not() {
        for name in ["ethernet", "fat-tree", "torus", "dragonfly"] {
            let before = Machine::load(name).unwrap();
            let far = before.place_count() - 1;
            let near = before.levels[Level::Switch as usize].pieces[0];
            let mut after = before.clone();
            after.change(&format!("latency={}ps", 3 * near.latency)).unwrap();
            assert!(wire(&after, far, 0).abs_diff(3 * wire(&before, far, 0)) < 3, "{name}");
            assert_eq!(wire(&after, 1, 1 << 20), wire(&before, 1, 1 << 20), "{name}: within a host");
            let mut after = before.clone();
            after.change(&format!("bandwidth={}B/s", 2 * near.bandwidth)).unwrap();
            let bytes = |machine: &Machine| wire(machine, far, 1 << 24) - wire(machine, far, 1 << 23);
            assert!(bytes(&before).abs_diff(2 * bytes(&after)) < 10, "{name}");
        }
    }

    #[test]
    fn a_platform_changes_too() {
        let text = "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"1GBps\" lat=\"10us\"/></platform>";
        let before = Machine::from_text(text, "c.xml").unwrap();
        let mut after = before.clone();
        after.change("latency=20us").unwrap();
        // All but the 20 ns of SMPI's envelope.
        assert!(wire(&after, 1, 0).abs_diff(2 * wire(&before, 1, 0)) < 25_000);
    }

    #[test]
    fn what_may_be_changed_is_said() {
        let mut machine = Machine::load("ethernet").unwrap();
        for (said, wanted) in [
            ("latency=fast", "no latency"),
            ("latency=0s", "no latency"),
            ("bandwidth=3us", "no bandwidth"),
            ("speed=2", "latency, bandwidth"),
        ] {
            let why = machine.change(said).unwrap_err();
            assert!(why.contains(wanted), "{why}");
        }
        // One host has no network: its own levels count.
        let mut laptop = Machine::load("laptop").unwrap();
        laptop.change("latency=1us").unwrap();
        assert_eq!(laptop.levels[0].pieces[0].latency, 1_000_000);
    }
}
