//! MPI_Dims_create: the most even factorization of a number of ranks.

use crate::errors::{Class, Result, fail};

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

/// `parts` factors of `n`, not increasing: the least largest one, then the least second one, and so on.
fn factorize(n: u64, parts: usize) -> Vec<u64> {
    if parts == 0 {
        return Vec::new();
    }
    let mut divisors: Vec<u64> = (1..).take_while(|d| d * d <= n).filter(|d| n.is_multiple_of(*d)).collect();
    let large: Vec<u64> = divisors.iter().rev().map(|d| n / d).filter(|d| d * d > n).collect();
    divisors.extend(large);
    let mut dead_ends = std::collections::HashSet::new();
    let mut factors = Vec::with_capacity(parts);
    let found = search(n, parts, n, &divisors, &mut factors, &mut dead_ends);
    debug_assert!(found, "n * 1 * 1 ... is always a factorization");
    factors
}

/// Append to `factors` the best `parts` factors of `n` none of which is above `largest`; false if there are none.
fn search(
    n: u64,
    parts: usize,
    largest: u64,
    divisors: &[u64],
    factors: &mut Vec<u64>,
    dead_ends: &mut std::collections::HashSet<(u64, usize, u64)>,
) -> bool {
    if parts == 0 {
        return n == 1;
    }
    if dead_ends.contains(&(n, parts, largest)) {
        return false;
    }
    for &first in divisors.iter().take_while(|&&d| d <= largest) {
        // The largest factor is at least the root of the product.
        let reaches = first.checked_pow(parts as u32).is_none_or(|most| most >= n);
        if !reaches || !n.is_multiple_of(first) {
            continue;
        }
        factors.push(first);
        if search(n / first, parts - 1, first, divisors, factors, dead_ends) {
            return true;
        }
        factors.pop();
    }
    dead_ends.insert((n, parts, largest));
    false
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

    #[test]
    fn wrong_arguments() {
        assert_eq!(create(0, &mut [0]).unwrap_err().class, Class::Dims);
        assert_eq!(create(4, &mut [-1, 0]).unwrap_err().class, Class::Dims);
        assert_eq!(create(4, &mut [3]).unwrap_err().class, Class::Dims);
        assert_eq!(create(4, &mut [2]).unwrap_err().class, Class::Dims);
    }
}
