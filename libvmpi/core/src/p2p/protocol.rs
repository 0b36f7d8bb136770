//! Which way a message goes by its size and its receiver: with its data, or announced.

use crate::process::endpoint;
use crate::simulate;
use vmpi_shared::matching::request::NOBODY;

/// Does a message of so many bytes go without its receiver (unless there is no memory for it, or for more unexpected ones)?
#[inline]
pub fn is_eager(total: u64) -> bool {
    total <= u64::from(endpoint().job.config().eager_limit_bytes)
}

/// May a message of up to so many bytes be announced by `from`, if that is known?
#[inline(always)]
pub(super) fn may_be_announced(total: u64, from: u32) -> bool {
    gains_by_being_open(total) || !(is_eager(total) || is_eager_from(total, from))
}

/// Does it go without its receiver by where `from` lives, if that is known, and on this node?
#[inline(never)]
fn is_eager_from(total: u64, from: u32) -> bool {
    from != NOBODY && !endpoint().node.is_remote(from) && is_eager_to(total, from)
}

/// Is one copy of a message of so many bytes better than two, where ranks need not ask the kernel for it?
#[inline]
pub(super) fn gains_by_being_open(total: u64) -> bool {
    total > endpoint().job.config().open_eager_limit_bytes.into()
}

/// As `is_eager`, by where the receiver lives. On another node two more copies take less than asking for the data, and than the kernel's copies at both ends; on
/// this core two copies, while the data is in its cache, take less than the kernel's one, which two cores could share.
#[inline]
pub(super) fn is_eager_to(total: u64, to: u32) -> bool {
    let endpoint = endpoint();
    let (node, config) = (&endpoint.node, endpoint.job.config());
    is_eager(total)
        || total
            <= u64::from(match node.is_remote(to) {
                _ if node.header().simulated != 0 => simulate::wait::eager_limit(to),
                true => config.far_eager_limit_bytes,
                false if node.core_of(to) == node.core_of(endpoint.me) => config.near_eager_limit_bytes,
                false => 0,
            })
}
