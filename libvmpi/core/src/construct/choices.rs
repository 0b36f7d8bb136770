//! What all ranks of a communicator chose, and contexts for what comes of it.

use crate::coll;
use crate::comm::Communicator;
use crate::consts;
use crate::errors::Result;
use crate::process;

/// What every rank of an intracommunicator chose.
pub(super) fn gather_choices(comm: &Communicator, color: i32, key: i32) -> Result<Vec<(i32, i32)>> {
    let mut mine = [0u8; 8];
    mine[..4].copy_from_slice(&color.to_ne_bytes());
    mine[4..].copy_from_slice(&key.to_ne_bytes());
    let mut all = vec![0; 8 * comm.size() as usize];
    coll::allgather_bytes(comm, &mine, &mut all)?;
    Ok(decode_choices(&all))
}

pub(super) fn decode_choices(bytes: &[u8]) -> Vec<(i32, i32)> {
    let word = |bytes: &[u8]| i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    bytes.chunks_exact(8).map(|choice| (word(choice), word(&choice[4..]))).collect()
}

/// `count` fresh contexts.
pub(super) fn take_contexts(count: usize) -> Vec<u32> {
    (0..count).map(|_| process::new_context()).collect()
}

/// Broadcast contexts (or any words; all ranks give as many) from rank 0 of an intracommunicator.
pub(super) fn share_contexts(comm: &Communicator, contexts: Vec<u32>) -> Result<Vec<u32>> {
    let mut bytes: Vec<u8> = contexts.iter().flat_map(|context| context.to_ne_bytes()).collect();
    if !bytes.is_empty() {
        coll::bcast_bytes(comm, &mut bytes, 0)?;
    }
    Ok(bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Sort (key, rank) pairs of the ranks that gave `color`, and return the ranks in the new order.
pub(super) fn ranks_of_color(choices: &[(i32, i32)], color: i32) -> Vec<u32> {
    let mut chosen: Vec<(i32, u32)> =
        choices.iter().zip(0u32..).filter(|((c, _), _)| *c == color).map(|((_, key), rank)| (*key, rank)).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|(_, rank)| rank).collect()
}

/// The distinct colors that were chosen, in increasing order.
pub(super) fn colors(choices: &[(i32, i32)]) -> Vec<i32> {
    let mut colors: Vec<i32> = choices.iter().map(|(color, _)| *color).filter(|&c| c != consts::UNDEFINED).collect();
    colors.sort_unstable();
    colors.dedup();
    colors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts;

    #[test]
    fn split_orders_by_key_then_rank() {
        let choices = [(1, 5), (0, 0), (1, 5), (1, -3), (consts::UNDEFINED, 0), (0, -1)];
        assert_eq!(colors(&choices), [0, 1]);
        assert_eq!(ranks_of_color(&choices, 1), [3, 0, 2]);
        assert_eq!(ranks_of_color(&choices, 0), [5, 1]);
    }
}
