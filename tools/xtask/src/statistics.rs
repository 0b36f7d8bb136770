//! Medians and percentiles of few samples.

/// The value below which `percent` of the samples lie, between neighbours linearly; 0 of nothing.
pub fn percentile(samples: &[f64], percent: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = percent / 100.0 * last as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
}

pub fn median(samples: &[f64]) -> f64 {
    percentile(samples, 50.0)
}

/// The median of the ratios pair by pair: what holds where absolute times drift.
pub fn median_ratio(samples: &[f64], base: &[f64]) -> f64 {
    let ratios: Vec<f64> = samples.iter().zip(base).filter(|(_, b)| **b > 0.0).map(|(a, b)| a / b).collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_samples() {
        let samples = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert_eq!(median(&samples), 3.0);
        assert_eq!(percentile(&samples, 0.0), 1.0);
        assert_eq!(percentile(&samples, 100.0), 5.0);
        assert!((percentile(&samples, 5.0) - 1.2).abs() < 1e-9);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[1.0, 2.0]), 1.5);
    }

    #[test]
    fn ratios_go_pair_by_pair() {
        assert_eq!(median_ratio(&[2.0, 30.0, 8.0], &[1.0, 10.0, 2.0]), 3.0);
        assert_eq!(median_ratio(&[2.0], &[0.0]), 0.0);
    }
}
