//! From measured times to a level's figures: LogGP's parameters, piece by piece.

/// What the program said; times in us.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub same_host: bool,
    pub send_overhead: f64,
    pub receive_overhead: f64,
    pub gap: f64,
    /// The largest message that leaves before its receive is posted.
    pub eager_bytes: u64,
    /// Bytes, half a round trip; rising.
    pub times: Vec<(u64, f64)>,
}

/// From a size on: latency in us, bytes a us.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Part {
    pub from_bytes: u64,
    pub latency: f64,
    pub bandwidth: f64,
}

/// A part goes on as long as it is no farther off than this.
const NEAR: f64 = 0.04;
/// No bandwidth is taken for more than this, bytes a us: 1 TB/s.
const FASTEST: f64 = 1e6;

/// # Errors
/// A line that is missing or makes no sense.
pub fn parse(text: &str) -> Result<Measured, String> {
    let mut measured = Measured::default();
    let (mut same, mut eager) = (None, None);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        let wrong = || format!("the measuring program said `{line}`");
        match words.as_slice() {
            ["same", value] => same = Some(*value == "1"),
            ["overheads", _, _, _] => {
                let [send, receive, gap] = [1, 2, 3].map(number);
                measured.send_overhead = send.ok_or_else(wrong)?;
                measured.receive_overhead = receive.ok_or_else(wrong)?;
                measured.gap = gap.ok_or_else(wrong)?;
            }
            ["time", bytes, _] => {
                let bytes = bytes.parse().map_err(|_| wrong())?;
                measured.times.push((bytes, number(2).filter(|us| *us > 0.0).ok_or_else(wrong)?));
            }
            ["eager", bytes] => eager = Some(bytes.parse().map_err(|_| wrong())?),
            _ => {}
        }
    }
    measured.same_host = same.ok_or("the measuring program did not say where its ranks are")?;
    measured.eager_bytes = eager.ok_or("the measuring program did not come to its end")?;
    if measured.times.len() < 2 || !measured.times.is_sorted_by(|a, b| a.0 < b.0) {
        return Err("the measuring program told of fewer than two sizes".into());
    }
    // Both ends together take no longer than the least message: what they would take more is waiting.
    let least = measured.times[0].1;
    let both = measured.send_overhead + measured.receive_overhead;
    if both > 0.8 * least {
        let scale = 0.8 * least / both;
        (measured.send_overhead, measured.receive_overhead) =
            (measured.send_overhead * scale, measured.receive_overhead * scale);
    }
    // A simulation announces larger messages and asks for them, each by a message without bytes; what was measured has that in it.
    for (bytes, us) in &mut measured.times {
        if *bytes > measured.eager_bytes {
            *us = (*us - 2.0 * least).max(*us / 2.0);
        }
    }
    Ok(measured)
}

impl Measured {
    /// The fewest parts, greedily, that come near each measured time.
    pub fn parts(&self) -> Vec<Part> {
        let both = self.send_overhead + self.receive_overhead;
        let mut parts: Vec<Part> = Vec::new();
        let mut first = 0;
        while first < self.times.len() {
            let longest = (first + 1..self.times.len()).rev().find_map(|last| {
                let part = line(self.times[first], self.times[last], both)?;
                let is_near = |(bytes, us): &(u64, f64)| (part.time(*bytes, both) / us - 1.0).abs() <= NEAR;
                self.times[first..=last].iter().all(is_near).then_some((part, last + 1))
            });
            let (mut part, next) = longest.unwrap_or_else(|| (alone(self.times[first], both), first + 1));
            part.from_bytes = if first == 0 { 0 } else { self.times[first].0 };
            parts.push(part);
            first = next;
        }
        parts
    }

    /// How far the parts are off, at most, of the time.
    pub fn farthest(&self, parts: &[Part]) -> f64 {
        let both = self.send_overhead + self.receive_overhead;
        let off = |(bytes, us): &(u64, f64)| {
            let part = parts.iter().rfind(|part| part.from_bytes <= *bytes);
            part.map_or(f64::INFINITY, |part| (part.time(*bytes, both) / us - 1.0).abs())
        };
        self.times.iter().map(off).fold(0.0, f64::max)
    }

    /// A table of the machine's file.
    pub fn level(&self, name: &str) -> String {
        let us = |us: f64| format!("\"{:.0}ns\"", us * 1000.0);
        let rate = |bytes_per_us: f64| format!("\"{:.1}MB/s\"", bytes_per_us);
        let parts = self.parts();
        let mut text = format!("[level.{name}]\nlatency = {}\n", us(parts[0].latency));
        text +=
            &format!("send_overhead = {}\nreceive_overhead = {}\n", us(self.send_overhead), us(self.receive_overhead));
        text += &format!("gap = {}\nbandwidth = {}\n", us(self.gap), rate(parts[0].bandwidth));
        text += &format!("eager_limit = \"{}B\"\n", self.eager_bytes);
        if parts.len() > 1 {
            let row = |part: &Part| {
                format!(
                    "    {{ from = \"{}B\", latency = {}, bandwidth = {} }},\n",
                    part.from_bytes,
                    us(part.latency),
                    rate(part.bandwidth)
                )
            };
            text += &format!("sizes = [\n{}]\n", parts[1..].iter().map(row).collect::<String>());
        }
        text
    }
}

impl Part {
    fn time(&self, bytes: u64, both: f64) -> f64 {
        both + self.latency + bytes as f64 / self.bandwidth
    }
}

/// The line through two times, if it is one of LogGP's: rising, and its latency not less than nothing.
fn line((bytes, us): (u64, f64), (more, later): (u64, f64), both: f64) -> Option<Part> {
    let slope = (later - us).max(0.0) / (more - bytes) as f64;
    let bandwidth = if slope > 0.0 { (1.0 / slope).min(FASTEST) } else { FASTEST };
    let latency = us - both - bytes as f64 / bandwidth;
    (latency >= 0.0).then_some(Part { from_bytes: bytes, latency, bandwidth })
}

/// A single time: all of it bandwidth but for small messages, whose latency it is.
fn alone((bytes, us): (u64, f64), both: f64) -> Part {
    let rest = (us - both).max(0.001);
    if bytes < 1024 {
        return Part { from_bytes: bytes, latency: rest, bandwidth: FASTEST };
    }
    Part { from_bytes: bytes, latency: 0.0, bandwidth: (bytes as f64 / rest).min(FASTEST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.3 us and 10 GB/s up to 8 KiB, from there 2 us and 12 GB/s.
    fn known() -> Measured {
        let time = |bytes: u64| match bytes {
            ..16384 => 0.5 + bytes as f64 / 10_000.0,
            _ => 2.2 + bytes as f64 / 12_000.0,
        };
        let sizes = (0..16).map(|power| if power == 0 { 1 } else { 64 << power });
        let times = sizes.map(|bytes| (bytes, time(bytes))).collect();
        Measured { same_host: true, send_overhead: 0.1, receive_overhead: 0.1, gap: 0.15, eager_bytes: 8192, times }
    }

    #[test]
    fn parameters_are_found_again() {
        let parts = known().parts();
        assert_eq!(parts.len(), 2, "{parts:?}");
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.02;
        assert!(
            parts[0].from_bytes == 0 && near(parts[0].latency, 0.3) && near(parts[0].bandwidth, 10_000.0),
            "{parts:?}"
        );
        assert!(
            parts[1].from_bytes == 16384 && near(parts[1].latency, 2.0) && near(parts[1].bandwidth, 12_000.0),
            "{parts:?}"
        );
        assert!(known().farthest(&parts) < 0.001);
    }

    /// Times that no line fits, or that fall, still give parts that come near.
    #[test]
    fn whatever_is_measured_is_met() {
        let mut odd = known();
        odd.times = vec![(1, 0.4), (128, 0.35), (256, 0.9), (512, 0.5), (4096, 40.0), (8192, 41.0), (1 << 20, 1000.0)];
        let parts = odd.parts();
        assert!(odd.farthest(&parts) <= 0.21, "{parts:?} {}", odd.farthest(&parts));
        let file = format!("[hosts]\ncount = 1\ncores = 2\n{}", odd.level("socket"));
        vmpi_machine::Machine::from_toml(&file, "odd").unwrap_or_else(|why| panic!("{why}\n{file}"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let text = "same 1\noverheads 0.1 0.1 0.2\ntime 1 0.5\ntime 128 0.6\neager 4096\n";
        assert_eq!(parse(text).unwrap().times, [(1, 0.5), (128, 0.6)]);
        let without = |line: &str| parse(&text.replace(line, "")).unwrap_err();
        assert!(without("eager 4096").contains("did not come to its end"));
        assert!(without("same 1").contains("where its ranks are"));
        assert!(without("time 1 0.5").contains("fewer than two sizes"));
        assert!(parse(&text.replace("0.6", "nan")).unwrap_err().contains("`time 128 nan`"));
        // Above the eager limit the handshake is not in the figures.
        let announced = parse(&text.replace("eager 4096", "time 8192 3.5\neager 4096")).unwrap();
        assert_eq!(announced.times[2], (8192, 2.5));
        // What the ends take is never more than the whole.
        let slow = parse(&text.replace("0.1 0.1", "3.0 1.0")).unwrap();
        assert!((slow.send_overhead - 0.3).abs() < 1e-9 && (slow.receive_overhead - 0.1).abs() < 1e-9);
    }
}
