//! Attributes, with what is allowed if they are wrong.

use super::{Read, Source};
use crate::units::{self, Ps};
use roxmltree::Node;

/// No other attribute stands there.
pub fn known(source: &Source<'_>, node: Node<'_, '_>, names: &[&str]) -> Read<()> {
    match node.attributes().find(|attribute| !names.contains(&attribute.name())) {
        None => Ok(()),
        Some(other) => {
            let says = format!("{}=\"{}\" is not read; allowed are {}", other.name(), other.value(), names.join(", "));
            Err(source.at(node, says))
        }
    }
}

pub fn text<'a>(source: &Source<'_>, node: Node<'a, '_>, name: &str) -> Read<&'a str> {
    node.attribute(name).ok_or_else(|| source.at(node, format!("{name} is missing")))
}

fn figure<T>(
    source: &Source<'_>,
    node: Node<'_, '_>,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
    allowed: &str,
) -> Read<T> {
    let value = text(source, node, name)?;
    parse(value).ok_or_else(|| source.at(node, format!("{name}=\"{value}\"; allowed is {allowed}")))
}

pub fn bandwidth(source: &Source<'_>, node: Node<'_, '_>, name: &str) -> Read<u64> {
    figure(
        source,
        node,
        name,
        units::simgrid_bandwidth,
        "one bandwidth above 0, such as 125MBps, 1Gbps, or a number of bytes a second",
    )
}

/// None where it may be left out, and is.
pub fn latency(source: &Source<'_>, node: Node<'_, '_>, name: &str, needed: bool) -> Read<Ps> {
    if !needed && node.attribute(name).is_none() {
        return Ok(0);
    }
    figure(source, node, name, units::simgrid_time, "a time, such as 50us, or a number of seconds; at most 1000 s")
}

pub fn speed(source: &Source<'_>, node: Node<'_, '_>) -> Read<f64> {
    figure(source, node, "speed", units::simgrid_speed, "one speed above 0, such as 1Gf or a number of flops a second")
}

pub fn cores(source: &Source<'_>, node: Node<'_, '_>) -> Read<u32> {
    if node.attribute("core").is_none() {
        return Ok(1);
    }
    figure(source, node, "core", |text| text.parse().ok().filter(|n| (1..=4096).contains(n)), "a number from 1 to 4096")
}

/// One of these words; the first where nothing stands there.
pub fn word<'a>(source: &Source<'_>, node: Node<'_, '_>, name: &str, allowed: &[&'a str]) -> Read<&'a str> {
    let Some(value) = node.attribute(name) else { return Ok(allowed[0]) };
    match allowed.iter().find(|word| **word == value) {
        Some(word) => Ok(word),
        None => Err(source.at(node, format!("{name}=\"{value}\" is not read; allowed are {}", allowed.join(", ")))),
    }
}
