//! Accumulations: what the blocks hold is read, computed with and written back.
#![allow(unsafe_code)]

use vmpi_shared::arith::{Builtin, Element, kernel};
use vmpi_shared::ask::{Ask, What};
use vmpi_shared::node::NodeSegment;

use super::answer::Answer;
use crate::carrier::transfer::{Cursor, Unreachable};

/// Most bytes that one accumulation combines.
const MOST_COMBINED: u64 = 64 << 10;

/// Read, compute and write back. The lock for moments is held.
pub fn combine(ask: &Ask, node: &NodeSegment, mut from: Cursor, data: &[u8]) -> Result<Answer, Unreachable> {
    let invalid = Unreachable::Errno(libc::EINVAL);
    if ask.bytes > MOST_COMBINED {
        return Err(invalid);
    }
    let bytes = ask.bytes as usize;
    let mut memory = vec![0; bytes];
    let mut to = from.clone();
    if ask.what == What::Swap {
        let (new, old) = data.split_at(bytes);
        from.read(node, &mut memory)?;
        if memory == old {
            to.write(node, new)?;
        }
        return Ok(Answer::Data(memory));
    }
    let op = Builtin::try_from(ask.op).map_err(|_| Unreachable::Errno(libc::EINVAL))?;
    let fetches = ask.what == What::Fetch;
    if (op == Builtin::NoOp) != data.is_empty() || (op == Builtin::NoOp && !fetches) {
        return Err(invalid);
    }
    if fetches || op != Builtin::Replace {
        from.read(node, &mut memory)?;
    }
    let old = if fetches { memory.clone() } else { Vec::new() };
    match op {
        Builtin::NoOp => {}
        Builtin::Replace => to.write(node, data)?,
        op => {
            let element = Element::try_from(ask.element).ok().filter(|element| bytes.is_multiple_of(element.bytes()));
            let (kernel, element) = element.and_then(|element| Some((kernel(op, element)?, element))).ok_or(invalid)?;
            // SAFETY: both have `bytes` bytes, which are whole elements.
            unsafe { kernel(data.as_ptr(), memory.as_mut_ptr(), bytes / element.bytes()) };
            to.write(node, &memory)?;
        }
    }
    Ok(if fetches { Answer::Data(old) } else { Answer::Nothing })
}
