//! Figures with units: times in picoseconds, bandwidths in bytes a second, sizes in bytes.

/// Picoseconds: a duration, or a point of virtual time.
pub type Ps = u64;

pub const PS_PER_S: u64 = 1_000_000_000_000;
/// No time of a machine is longer, so that sums of some do not overflow.
pub const LONGEST: Ps = 1000 * PS_PER_S;
/// No bandwidth of a machine is higher.
pub const FASTEST: u64 = 1_000_000_000_000_000;

/// A number and what stands behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || ".+-eE".contains(c);
    // An `e` or `E` belongs to the number only if a digit or a sign follows: `1EBps`.
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let next = text[at + c.len_utf8()..].chars().next();
        let exponent = !matches!(c, 'e' | 'E') || next.is_some_and(|c| c.is_ascii_digit() || "+-".contains(c));
        if !is_number(c) || !exponent {
            break;
        }
        end = at + c.len_utf8();
    }
    let value: f64 = text[..end].parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| (value, text[end..].trim_start()))
}

fn whole(value: f64, most: u64) -> Option<u64> {
    let rounded = value.round();
    (rounded <= most as f64).then_some(rounded as u64)
}

/// `1.5us`; seconds where `bare` and no unit stands there.
fn time_with(text: &str, bare: bool) -> Option<Ps> {
    let (value, unit) = split(text)?;
    let factor = match unit {
        "ps" => 1.0,
        "ns" => 1e3,
        "us" | "µs" => 1e6,
        "ms" => 1e9,
        "s" => 1e12,
        "m" if bare => 60e12,
        "" if bare => 1e12,
        _ => return None,
    };
    whole(value * factor, LONGEST)
}

/// `1.5us`, `300ns`, `0s`.
pub fn time(text: &str) -> Option<Ps> {
    time_with(text, false)
}

/// As SimGrid has it: seconds without a unit.
pub fn simgrid_time(text: &str) -> Option<Ps> {
    time_with(text, true)
}

/// k, M, G, T, P and their binary kin.
fn prefix(text: &str) -> Option<f64> {
    Some(match text {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

/// `12.5GB/s`, `100Gb/s`, `1GiB/s`: bytes a second, of which there is at least one.
pub fn bandwidth(text: &str) -> Option<u64> {
    let (value, unit) = split(text)?;
    let unit = unit.strip_suffix("/s")?;
    let factor = match (unit.strip_suffix('B'), unit.strip_suffix('b')) {
        (Some(before), _) => prefix(before)?,
        (_, Some(before)) => prefix(before)? / 8.0,
        _ => return None,
    };
    whole(value * factor, FASTEST).filter(|bytes| *bytes > 0)
}

/// As SimGrid has it: `1GBps`, `1Gbps`, `1000` (bytes a second).
pub fn simgrid_bandwidth(text: &str) -> Option<u64> {
    let (value, unit) = split(text)?;
    let factor = match (unit, unit.strip_suffix("Bps"), unit.strip_suffix("bps")) {
        ("", ..) => 1.0,
        (_, Some(before), _) => prefix(before)?,
        (_, _, Some(before)) => prefix(before)? / 8.0,
        _ => return None,
    };
    whole(value * factor, FASTEST).filter(|bytes| *bytes > 0)
}

/// As SimGrid has it: `1Gf`, `1e9`, in flops a second.
pub fn simgrid_speed(text: &str) -> Option<f64> {
    let (value, unit) = split(text)?;
    let factor = if unit.is_empty() { 1.0 } else { prefix(unit.strip_suffix('f')?)? };
    let speed = value * factor;
    (speed > 0.0 && speed.is_finite()).then_some(speed)
}

/// `4KiB`, `64kB`, `1MiB`, `100B`.
pub fn size(text: &str) -> Option<u64> {
    let (value, unit) = split(text)?;
    whole(value * prefix(unit.strip_suffix('B')?)?, 1 << 50)
}

/// How long `bytes` take at so many bytes a second, rounded up.
pub fn transfer_time(bytes: u64, bandwidth: u64) -> Ps {
    let ps = (u128::from(bytes) * u128::from(PS_PER_S)).div_ceil(u128::from(bandwidth.max(1)));
    u64::try_from(ps).unwrap_or(u64::MAX)
}

/// `1.5us`: four digits.
pub fn show_time(ps: Ps) -> String {
    let value = ps as f64;
    let (scaled, unit) = match ps {
        0 => return "0s".into(),
        1..1_000 => (value, "ps"),
        1_000..1_000_000 => (value / 1e3, "ns"),
        1_000_000..1_000_000_000 => (value / 1e6, "us"),
        1_000_000_000..1_000_000_000_000 => (value / 1e9, "ms"),
        _ => (value / 1e12, "s"),
    };
    format!("{}{unit}", four_digits(scaled))
}

/// `12.5GB/s`.
pub fn show_bandwidth(bytes_per_second: u64) -> String {
    let value = bytes_per_second as f64;
    let (scaled, unit) = match bytes_per_second {
        0..1_000 => (value, "B/s"),
        1_000..1_000_000 => (value / 1e3, "kB/s"),
        1_000_000..1_000_000_000 => (value / 1e6, "MB/s"),
        1_000_000_000..1_000_000_000_000 => (value / 1e9, "GB/s"),
        _ => (value / 1e12, "TB/s"),
    };
    format!("{}{unit}", four_digits(scaled))
}

fn four_digits(value: f64) -> String {
    let decimals = if value >= 1000.0 { 0 } else { 3 - (value.max(1.0).log10().floor() as usize).min(3) };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_with_units() {
        assert_eq!(
            ["0.1us", "300ns", "0s", "1.5 ms", "7ps"].map(time),
            [100_000, 300_000, 0, 1_500_000_000, 7].map(Some)
        );
        assert_eq!(["1", "1 x", "-1us", "us", "", "1e9s", "nans"].map(time), [None; 7]);
        assert_eq!(["1e-5", "10us", "1m"].map(simgrid_time), [10_000_000, 10_000_000, 60 * PS_PER_S].map(Some));
        assert_eq!(["25GB/s", "200Gb/s", "1GiB/s"].map(bandwidth), [25_000_000_000, 25_000_000_000, 1 << 30].map(Some));
        assert_eq!(["25GB", "0B/s", "1Gx/s", "25"].map(bandwidth), [None; 4]);
        let simgrid = ["1GBps", "1Gbps", "125MBps", "1e3", "1kBps"].map(simgrid_bandwidth);
        assert_eq!(simgrid, [1_000_000_000, 125_000_000, 125_000_000, 1000, 1000].map(Some));
        assert_eq!(["1Gf", "2e9", "1.5Mf"].map(simgrid_speed), [1e9, 2e9, 1.5e6].map(Some));
        assert_eq!(["4KiB", "64kB", "0B", "1MiB"].map(size), [4096, 64000, 0, 1 << 20].map(Some));
        assert_eq!(["4", "4K", "B"].map(size), [None; 3]);
    }

    #[test]
    fn transfers_are_rounded_up() {
        assert_eq!(
            (transfer_time(0, 1), transfer_time(1, 3), transfer_time(3, 1_000_000_000)),
            (0, 333_333_333_334, 3000)
        );
        assert_eq!(transfer_time(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn figures_are_shown_short() {
        let shown = [0, 999, 1_500, 20_169_000, 1_286_870_000, 12_000_000_000_000].map(show_time);
        assert_eq!(shown, ["0s", "999ps", "1.5ns", "20.17us", "1.287ms", "12s"]);
        assert_eq!([125, 25_000_000_000, 12_345_678].map(show_bandwidth), ["125B/s", "25GB/s", "12.35MB/s"]);
    }
}
