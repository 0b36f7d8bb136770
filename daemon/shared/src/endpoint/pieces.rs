//! What a sender does for a message that it has announced, where the receiver cannot read its memory: piece by piece through its slab, a window of them for each
//! time that the receiver asks.

use super::Endpoint;
use super::transfer::{blocks_from, copy_blocks};
use crate::matching::elements;
use crate::matching::envelope::FLAG_LAST_OF_WINDOW;
use crate::matching::envelope::{Envelope, PIECE_BYTES, kind};
use crate::matching::queues::go;
use crate::matching::request::{FLAG_CARRIED, FLAG_ELEMENTS, state};
use crate::mem::slab::PART_BYTES;
use vmpi_cma::Block;

/// What a piece has, as long as there is a block for it: where other messages have all of one size, a smaller one, and in the end what fits into an envelope.
const SIZES_BYTES: [u64; 4] = [PART_BYTES, 16384, 8192, 2048];
/// Largest number of slab blocks given for one PULL.
const WINDOW_BLOCKS: u64 = 8;

impl Endpoint {
    /// A message that this rank has announced is wanted, and it must go on with that itself.
    #[cold]
    pub(super) fn push_on(&mut self, index: u32) {
        let me = self.me;
        let slot = &mut self.queues().slots[index as usize];
        if slot.flags & FLAG_CARRIED == 0 {
            return self.push_pieces(index);
        }
        slot.state = state::SENT;
        slot.flags &= !FLAG_CARRIED;
        let (to, go) = (slot.from, go(me, index, slot.peer_request, slot.len));
        self.deliver_one(to, &go);
    }

    /// The receiver cannot read this process: give it the next pieces through the slab.
    fn push_pieces(&mut self, index: u32) {
        let slot = self.queues().slots[index as usize];
        let blocks = match slot.blocks {
            0 => vec![Block { addr: slot.addr, len: slot.capacity }],
            // SAFETY: this process made the list when it started the send and keeps it until the request completes.
            n => unsafe { std::slice::from_raw_parts(slot.addr as *const Block, n as usize) }.to_vec(),
        };
        self.queues().slots[index as usize].state = state::SENT;
        let mut offset = slot.progress;
        for step in 0..WINDOW_BLOCKS {
            // No more than the receiver has room for: it is done with the message once it has that.
            let rest = slot.len.min(slot.capacity).saturating_sub(offset);
            if rest == 0 {
                return;
            }
            let slab = self.job.slab(self.me);
            let block = SIZES_BYTES.iter().map(|most| rest.min(*most)).find_map(|len| Some((slab.take(len)?, len)));
            let mut piece = Envelope::EMPTY;
            piece.kind = kind::PIECE;
            piece.from = self.me;
            piece.request = slot.peer_request;
            piece.set_offset(offset);
            let target = match block {
                Some((block, len)) => {
                    piece.len = len;
                    piece.set_addr(block);
                    self.job.block(self.me, block, len).expect("own block")
                }
                None => {
                    piece.len = rest.min(PIECE_BYTES as u64);
                    piece.piece_mut().as_mut_ptr()
                }
            };
            // SAFETY: the blocks, or elements, are this rank's send buffer; the target has room for `piece.len` bytes.
            unsafe {
                if slot.flags & FLAG_ELEMENTS != 0 {
                    elements::pack(index, offset, target, piece.len as usize);
                } else {
                    copy_blocks(&[Block { addr: target as u64, len: piece.len }], &blocks_from(&blocks, offset));
                }
            }
            offset += piece.len;
            let last = step + 1 == WINDOW_BLOCKS || block.is_none();
            if last {
                piece.flags |= FLAG_LAST_OF_WINDOW;
            }
            self.deliver_one(slot.from, &piece);
            if last {
                return;
            }
        }
    }
}
