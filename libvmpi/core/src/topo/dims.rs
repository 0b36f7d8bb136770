//! MPI_Dims_create: the most even factorization of a number of ranks.

use crate::errors::{Class, Result, fail};
use std::collections::HashSet;

/// Fill the zero entries of `dims` so that the product is `nodes`, as even as possible and not increasing.
///
/// # Errors
/// `Class::Dims` for a negative entry, and where the entries that are given do not divide `nodes`.
pub fn create(nodes: i32, dims: &mut [i32]) -> Result<()> {
    let Ok(nodes @ 1..) = u64::try_from(nodes) else {
        return fail(Class::Dims, format!("the number of nodes is {nodes}, it must be positive"));
    };
    let mut given: u64 = 1;
    for (index, &dim) in dims.iter().enumerate() {
        match u64::try_from(dim) {
            Ok(0) => {}
            Ok(dim) => given = given.saturating_mul(dim),
            Err(_) => return fail(Class::Dims, format!("dims[{index}] is {dim}, it must not be negative")),
        }
    }
    let open = dims.iter().filter(|&&dim| dim == 0).count();
    if !nodes.is_multiple_of(given) || (open == 0 && given != nodes && !dims.is_empty()) {
        return fail(Class::Dims, format!("the given dimensions make {given} nodes, which does not fit {nodes}"));
    }
    let mut chosen = factorize(nodes / given, open).into_iter();
    for dim in dims.iter_mut().filter(|dim| **dim == 0) {
        *dim = chosen.next().expect("one factor for each open dimension") as i32;
    }
    Ok(())
}

/// `parts` factors of `n`, not increasing, as close to each other as possible: the largest and the smallest differ as little
/// as they can; among several such, the one whose smallest factor is the largest, then the second smallest, and so on. That is
/// what MPICH gives; where the largest factor was made the least, 5040 in three dimensions came out as 20, 18, 14, not 21, 16, 15.
fn factorize(n: u64, parts: usize) -> Vec<u64> {
    if parts == 0 {
        return Vec::new();
    }
    let mut divisors: Vec<u64> = (1..).take_while(|d| d * d <= n).filter(|d| n.is_multiple_of(*d)).collect();
    let large: Vec<u64> = divisors.iter().rev().map(|d| n / d).filter(|d| d * d > n).collect();
    divisors.extend(large);
    let mut best = Vec::new();
    let mut spread = n;
    for &smallest in divisors.iter().rev().filter(|d| !exceeds(**d, parts, n)) {
        // Only what is closer together counts from now on.
        while spread > 0 {
            let mut search = Search { divisors: &divisors, largest: smallest + spread - 1, dead_ends: HashSet::new() };
            let mut factors = vec![smallest];
            if !search.complete(n / smallest, parts - 1, &mut factors) {
                break;
            }
            spread = factors[parts - 1] - smallest;
            best = factors;
        }
    }
    best.reverse();
    best
}

/// Is `factor` to the power of `parts` more than `n`?
fn exceeds(factor: u64, parts: usize, n: u64) -> bool {
    factor > 1 && u32::try_from(parts).ok().and_then(|parts| factor.checked_pow(parts)).is_none_or(|power| power > n)
}

struct Search<'a> {
    divisors: &'a [u64],
    /// No factor may be above this.
    largest: u64,
    /// What remained, in how many factors, from which one on.
    dead_ends: HashSet<(u64, usize, u64)>,
}

impl Search<'_> {
    /// Append `parts` factors of `n` to `factors`, which must not decrease, each as large as it can be; false if there are none.
    fn complete(&mut self, n: u64, parts: usize, factors: &mut Vec<u64>) -> bool {
        if parts == 0 {
            return n == 1;
        }
        let last = factors[factors.len() - 1];
        let reached = n == 1 || exceeds(self.largest, parts, n - 1);
        if !reached || self.dead_ends.contains(&(n, parts, last)) {
            return false;
        }
        let from = self.divisors.partition_point(|&d| d < last);
        let to = self.divisors.partition_point(|&d| d <= self.largest && !exceeds(d, parts, n));
        for index in (from..to).rev() {
            let next = self.divisors[index];
            if n.is_multiple_of(next) {
                factors.push(next);
                if self.complete(n / next, parts - 1, factors) {
                    return true;
                }
                factors.pop();
            }
        }
        self.dead_ends.insert((n, parts, last));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(nodes: i32, mut dims: Vec<i32>) -> Vec<i32> {
        create(nodes, &mut dims).unwrap();
        dims
    }

    #[test]
    fn the_standards_examples() {
        assert_eq!(made(6, vec![0, 0]), [3, 2]);
        assert_eq!(made(7, vec![0, 0]), [7, 1]);
        assert_eq!(made(6, vec![0, 3, 0]), [2, 3, 1]);
        assert_eq!(create(7, &mut [0, 3, 0]).unwrap_err().class, Class::Dims);
    }

    #[test]
    fn even_grids() {
        assert_eq!(made(12, vec![0, 0]), [4, 3]);
        assert_eq!(made(24, vec![0, 0, 0]), [4, 3, 2]);
        assert_eq!(made(36, vec![0, 0, 0]), [4, 3, 3]);
        assert_eq!(made(16, vec![0, 0, 0]), [4, 2, 2]);
        assert_eq!(made(5040, vec![0, 0, 0]), [21, 16, 15]);
        assert_eq!(made(119_952, vec![0; 5]), [17, 14, 9, 8, 7]);
        assert_eq!(made(1, vec![0, 0]), [1, 1]);
        assert_eq!(made(1_000_000, vec![0, 0, 0]), [100, 100, 100]);
        assert_eq!(made(2_147_483_647, vec![0, 0]), [2_147_483_647, 1]);
        assert_eq!(made(8, vec![0; 12]), [2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(made(4, vec![4]), [4]);
        assert_eq!(made(4, vec![]), Vec::<i32>::new());
    }

    #[test]
    fn factors_multiply_to_n_and_do_not_increase() {
        for n in 1..400 {
            for parts in 1..6 {
                let factors = factorize(n, parts);
                assert_eq!(factors.iter().product::<u64>(), n);
                assert!(factors.windows(2).all(|pair| pair[0] >= pair[1]));
            }
        }
    }

    /// The closest factors, by trying all.
    fn closest(n: u64, parts: usize) -> Vec<u64> {
        fn all(n: u64, parts: usize, from: u64, factors: &mut Vec<u64>, found: &mut Vec<Vec<u64>>) {
            if parts == 0 {
                if n == 1 {
                    found.push(factors.clone());
                }
                return;
            }
            for factor in (from..=n).filter(|factor| n.is_multiple_of(*factor)) {
                factors.push(factor);
                all(n / factor, parts - 1, factor, factors, found);
                factors.pop();
            }
        }
        let mut found = Vec::new();
        all(n, parts, 1, &mut Vec::new(), &mut found);
        let best = found.into_iter().min_by_key(|f| (f[parts - 1] - f[0], std::cmp::Reverse(f.clone())));
        best.unwrap().into_iter().rev().collect()
    }

    #[test]
    fn no_other_factors_are_closer() {
        for n in (1..300).chain([720, 1680, 2520, 5040]) {
            for parts in 1..5 {
                assert_eq!(factorize(n, parts), closest(n, parts), "{n} in {parts}");
            }
        }
    }

    #[test]
    fn numbers_with_many_divisors_take_no_time() {
        for parts in 2..20 {
            assert_eq!(factorize(2_095_133_040, parts).iter().product::<u64>(), 2_095_133_040);
        }
    }

    #[test]
    fn wrong_arguments() {
        assert_eq!(create(0, &mut [0]).unwrap_err().class, Class::Dims);
        assert_eq!(create(4, &mut [-1, 0]).unwrap_err().class, Class::Dims);
        assert_eq!(create(4, &mut [3]).unwrap_err().class, Class::Dims);
        assert_eq!(create(4, &mut [2]).unwrap_err().class, Class::Dims);
    }
}
