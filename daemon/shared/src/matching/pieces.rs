//! What a sender does for a message that it has announced, where the receiver cannot read its memory: piece by piece through its slab, a window of them for each
//! time that the receiver asks.

use super::elements;
use super::envelope::{Envelope, PIECE_BYTES, kind};
use super::queues::go;
use super::request::{FLAG_CARRIED, FLAG_ELEMENTS, state};
use super::tend::Endpoint;
use super::transfer::{FLAG_LAST_OF_WINDOW, blocks_from, copy_blocks};
use crate::mem::slab::PART_BYTES;
use vmpi_cma::Block;

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
        let piece_bytes = PART_BYTES;
        let mut offset = slot.progress;
        for step in 0..WINDOW_BLOCKS {
            // No more than the receiver has room for: it is done with the message once it has that.
            let rest = slot.len.min(slot.capacity).saturating_sub(offset);
            if rest == 0 {
                return;
            }
            let block = self.job.slab(self.me).take(piece_bytes);
            let len = rest.min(if block.is_some() { piece_bytes } else { PIECE_BYTES as u64 });
            let mut piece = Envelope::EMPTY;
            piece.kind = kind::PIECE;
            piece.from = self.me;
            piece.request = slot.peer_request;
            piece.set_offset(offset);
            let last = step + 1 == WINDOW_BLOCKS || block.is_none();
            let target = match block {
                // The class is chosen by length on return, so a short last piece says the block's full length class.
                Some(block) if crate::mem::slab::class_of(len) == crate::mem::slab::class_of(piece_bytes) => {
                    piece.set_addr(block);
                    self.job.block(self.me, block, len).expect("own block")
                }
                Some(block) => {
                    self.job.slab(self.me).give(block, piece_bytes);
                    match self.job.slab(self.me).take(len) {
                        Some(small) => {
                            piece.set_addr(small);
                            self.job.block(self.me, small, len).expect("own block")
                        }
                        None => piece.piece_mut().as_mut_ptr(),
                    }
                }
                None => piece.piece_mut().as_mut_ptr(),
            };
            piece.len = if piece.addr() == 0 { len.min(PIECE_BYTES as u64) } else { len };
            // SAFETY: the blocks, or elements, are this rank's send buffer; the target has room for `piece.len` bytes.
            unsafe {
                if slot.flags & FLAG_ELEMENTS != 0 {
                    elements::pack(index, offset, target, piece.len as usize);
                } else {
                    copy_blocks(&[Block { addr: target as u64, len: piece.len }], &blocks_from(&blocks, offset));
                }
            }
            offset += piece.len;
            let last = last || piece.addr() == 0;
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
