//! A fabric whose frames are counted: what is under way between nodes follows from what all of them have sent and acted on
//! (`vmpi_shared::sched::carrier_bell::Stand`).

use std::ops::{Deref, DerefMut};

use vmpi_fabric::Fabric;

pub struct FrameCount {
    fabric: Box<dyn Fabric>,
    sent: u64,
}

impl FrameCount {
    pub fn new(fabric: Box<dyn Fabric>) -> FrameCount {
        FrameCount { fabric, sent: 0 }
    }

    /// Frames that have been handed over for other nodes.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// As [`Fabric::send`].
    pub fn send(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        self.sent += 1;
        self.fabric.send(node, kind, parts);
    }

    /// As [`Fabric::send_bulk`].
    pub fn send_bulk(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        self.sent += 1;
        self.fabric.send_bulk(node, kind, parts);
    }

    /// As [`Fabric::send_staged`].
    pub fn send_staged(&mut self, node: u32, kind: u8) {
        self.sent += 1;
        self.fabric.send_staged(node, kind);
    }
}

impl Deref for FrameCount {
    type Target = dyn Fabric;

    fn deref(&self) -> &Self::Target {
        &*self.fabric
    }
}

impl DerefMut for FrameCount {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.fabric
    }
}
