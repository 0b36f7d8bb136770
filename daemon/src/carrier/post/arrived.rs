//! Envelopes of other nodes: out of the link's buffer, and to the ranks here.

use vmpi_shared::control::Nodes;
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::matching::envelope::{Envelope, kind};

use super::CarrierLoop;
use crate::carrier::wire::{self, BodyError};

/// An envelope for rank `to` of this node.
pub(super) struct Arrived {
    to: u32,
    envelope: Envelope,
    /// What has no block.
    payload: Vec<u8>,
}

impl Arrived {
    /// Out of the link's buffer; a payload goes into its sender's slab, if there is a block.
    ///
    /// # Errors
    /// What makes no sense.
    pub(super) fn take_in(
        endpoint: &CarrierEndpoint,
        nodes: &Nodes,
        node: u32,
        (to, mut envelope, payload): (u32, Envelope, &[u8]),
    ) -> Result<Arrived, BodyError> {
        check_ends(endpoint, nodes, node, to, (envelope.kind != kind::FIN).then_some(envelope.from))?;
        if is_answer(envelope.kind) && envelope.request >= endpoint.job.config().slots {
            let (what, number) = ("request", envelope.request.into());
            return Err(BodyError::Number { kind: wire::ENVELOPE, what, number });
        }
        let stored =
            wire::has_payload(&envelope) && envelope.kind != kind::ASK && endpoint.store(&mut envelope, payload);
        Ok(Arrived { to, envelope, payload: if stored { Vec::new() } else { payload.to_vec() } })
    }
}

/// Answers go without credit.
fn is_answer(kind: u8) -> bool {
    matches!(kind, kind::FIN | kind::PULL)
}

/// Something from rank `from` of `node` (who answers need not say who it is) to one of this node?
pub(super) fn check_ends(
    endpoint: &CarrierEndpoint,
    nodes: &Nodes,
    node: u32,
    to: u32,
    from: Option<u32>,
) -> Result<(), BodyError> {
    match from {
        _ if !endpoint.is_local(to) => Err(BodyError::NotHere(to)),
        Some(from) if nodes.of_rank.get(from as usize) != Some(&node) => Err(BodyError::NotThere(from)),
        _ => Ok(()),
    }
}

impl CarrierLoop {
    /// An envelope for a rank of this node.
    pub(super) fn arrived(&mut self, node: u32, arrived: Arrived) -> Result<(), BodyError> {
        let Arrived { to, mut envelope, payload } = arrived;
        if is_answer(envelope.kind) {
            if envelope.kind == kind::FIN {
                self.announced.remove(&(to, envelope.request));
            }
            self.deliver_answer(to, envelope)?;
            self.settle();
            return Ok(());
        }
        self.take_credit(node, to)?;
        if envelope.kind == kind::ASK {
            let payload = if wire::has_payload(&envelope) { &payload[..] } else { envelope.ask_payload() };
            self.asked(node, to, &envelope, payload)?;
            self.settle();
            return Ok(());
        }
        let credit = Some(node);
        if envelope.kind == kind::SLAB && !payload.is_empty() && self.may_keep(payload.len()) {
            self.keep((node, to), &mut envelope, payload);
            self.deliver(credit, to, envelope, Vec::new());
        } else {
            self.deliver(credit, to, envelope, payload);
        }
        self.settle();
        Ok(())
    }
}
