//! Random types against a naive typemap, the definition of MPI 4.1 section 5.1 written down literally.

#![allow(unsafe_code)]

use super::basic::{BASICS, Unit};
use super::*;
use crate::consts::{self, dt};
use crate::errors::Class;
use proptest::prelude::*;

fn basic(handle: Datatype) -> Rc<Type> {
    Rc::new(Type::basic(BASICS.iter().find(|b| b.handle == handle).unwrap()))
}

fn make(recipe: Recipe) -> Rc<Type> {
    Rc::new(Type::new(recipe, Rules::Standard).unwrap_or_else(|e| panic!("{e}")))
}

/// One entry of a typemap: a basic element, or a bound.
#[derive(Copy, Clone, Debug)]
enum Entry {
    Data(Unit),
    Lb,
    Ub,
    /// The rounded end of a member: real MPIs compose bounds from the members' bounds, not from the flat typemap
    /// (which makes a difference for misaligned members only).
    End,
}

#[derive(Clone, Debug, Default)]
struct Map(Vec<(i64, Entry)>);

impl Map {
    fn data(&self) -> impl Iterator<Item = (i64, Unit)> + '_ {
        self.0.iter().filter_map(|&(at, e)| if let Entry::Data(unit) = e { Some((at, unit)) } else { None })
    }
    fn marks(&self, ub: bool) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().filter(move |(_, e)| matches!((e, ub), (Entry::Lb, false) | (Entry::Ub, true))).map(|e| e.0)
    }
    fn size(&self) -> u64 {
        self.data().map(|(_, u)| u.size()).sum()
    }
    fn lb(&self) -> i64 {
        self.marks(false).min().or(self.data().map(|e| e.0).min()).unwrap_or(0)
    }
    fn ub(&self) -> i64 {
        if let Some(ub) = self.marks(true).max() {
            return ub;
        }
        let ends = self.0.iter().filter(|e| matches!(e.1, Entry::End)).map(|e| e.0);
        let Some(mut ub) = self.data().map(|(at, u)| at + u.size() as i64).chain(ends).max() else { return 0 };
        let align = self.data().map(|(_, u)| i64::from(u.bytes)).max().unwrap_or(1);
        while (ub - self.lb()) % align != 0 {
            ub += 1;
        }
        ub
    }
    fn extent(&self) -> i64 {
        self.ub() - self.lb()
    }
    fn true_bounds(&self) -> (i64, i64) {
        let low = self.data().map(|e| e.0).min().unwrap_or(0);
        (low, self.data().map(|(at, u)| at + u.size() as i64).max().unwrap_or(0) - low)
    }
    fn add(&mut self, other: &Map, at: i64) {
        self.0.extend(other.0.iter().map(|&(o, e)| (at + o, e)));
    }
    /// Address of each packed byte of `count` elements.
    fn bytes(&self, count: u64) -> Vec<i64> {
        let starts = (0..count as i64).map(|i| i * self.extent());
        starts
            .flat_map(|s| self.data().flat_map(move |(at, u)| (0..u.size() as i64).map(move |b| s + at + b)))
            .collect()
    }
}

#[derive(Clone, Debug)]
enum Spec {
    Basic(usize),
    Contiguous(i64, Box<Spec>),
    Vector(i64, i64, i64, Box<Spec>),
    Hvector(i64, i64, i64, Box<Spec>),
    Indexed(Vec<(i64, i64)>, Box<Spec>),
    Hindexed(Vec<(i64, i64)>, Box<Spec>),
    IndexedBlock(i64, Vec<i64>, Box<Spec>),
    HindexedBlock(i64, Vec<i64>, Box<Spec>),
    Struct(Vec<(i64, i64, Spec)>),
    Resized(i64, i64, Box<Spec>),
    Subarray(Vec<(i64, i64, i64)>, bool, Box<Spec>),
    Dup(Box<Spec>),
}

const KINDS: &[Datatype] =
    &[dt::CHAR, dt::SHORT, dt::INT, dt::DOUBLE, dt::C_DOUBLE_COMPLEX, dt::DOUBLE_INT, dt::SHORT_INT, dt::LONG_DOUBLE];

fn spec() -> impl Strategy<Value = Spec> {
    let leaf = (0..KINDS.len()).prop_map(Spec::Basic);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let pairs = |step: std::ops::Range<i64>| prop::collection::vec((0..4i64, step), 0..4);
        prop_oneof![
            (0..4i64, boxed.clone()).prop_map(|(n, t)| Spec::Contiguous(n, t)),
            (0..4i64, 0..4i64, -5..6i64, boxed.clone()).prop_map(|(n, b, s, t)| Spec::Vector(n, b, s, t)),
            (0..4i64, 0..4i64, -40..41i64, boxed.clone()).prop_map(|(n, b, s, t)| Spec::Hvector(n, b, s, t)),
            (pairs(-5..6), boxed.clone()).prop_map(|(v, t)| Spec::Indexed(v, t)),
            (pairs(-40..41), boxed.clone()).prop_map(|(v, t)| Spec::Hindexed(v, t)),
            (0..4i64, prop::collection::vec(-5..6i64, 0..4), boxed.clone())
                .prop_map(|(b, v, t)| Spec::IndexedBlock(b, v, t)),
            (0..4i64, prop::collection::vec(-40..41i64, 0..4), boxed.clone())
                .prop_map(|(b, v, t)| Spec::HindexedBlock(b, v, t)),
            prop::collection::vec((0..3i64, -40..41i64, inner), 0..4).prop_map(Spec::Struct),
            (-20..20i64, -30..60i64, boxed.clone()).prop_map(|(lb, e, t)| Spec::Resized(lb, e, t)),
            (prop::collection::vec((1..4i64, 0..3i64, 0..3i64), 1..4), any::<bool>(), boxed.clone())
                .prop_map(|(v, c, t)| Spec::Subarray(v, c, t)),
            boxed.prop_map(Spec::Dup),
        ]
    })
}

fn split(pairs: &[(i64, i64)]) -> (Vec<i64>, Vec<i64>) {
    pairs.iter().copied().unzip()
}

/// The type and its typemap; `None` when it gets too large.
fn build(spec: &Spec) -> Option<(Rc<Type>, Map)> {
    let blocks = |child: &Map, blocks: &[(i64, i64)]| {
        let mut map = Map::default();
        for &(length, at) in blocks {
            (0..length).for_each(|i| map.add(child, at + i * child.extent()));
        }
        map
    };
    let (recipe, map) = match spec {
        Spec::Basic(kind) => {
            let ty = basic(KINDS[*kind]);
            let row = BASICS.iter().find(|b| b.handle == KINDS[*kind])?;
            let mut map = Map(vec![(0, Entry::Data(row.first))]);
            if let Some(second) = row.second {
                map.0.push((row.first.size().next_multiple_of(second.bytes.into()) as i64, Entry::Data(second)));
            }
            map.0.push((map.ub(), Entry::End));
            return Some((ty, map));
        }
        Spec::Contiguous(count, t) => {
            let (child, map) = build(t)?;
            (Recipe::Contiguous { count: *count, child }, blocks(&map, &[(*count, 0)]))
        }
        Spec::Vector(count, blocklength, stride, t) => {
            let (child, map) = build(t)?;
            let list: Vec<_> = (0..*count).map(|i| (*blocklength, i * stride * map.extent())).collect();
            (Recipe::Vector { count: *count, blocklength: *blocklength, stride: *stride, child }, blocks(&map, &list))
        }
        Spec::Hvector(count, blocklength, stride, t) => {
            let (child, map) = build(t)?;
            let list: Vec<_> = (0..*count).map(|i| (*blocklength, i * stride)).collect();
            (Recipe::Hvector { count: *count, blocklength: *blocklength, stride: *stride, child }, blocks(&map, &list))
        }
        Spec::Indexed(pairs, t) => {
            let (child, map) = build(t)?;
            let list: Vec<_> = pairs.iter().map(|&(n, d)| (n, d * map.extent())).collect();
            let (blocklengths, displacements) = split(pairs);
            (Recipe::Indexed { blocklengths, displacements, child }, blocks(&map, &list))
        }
        Spec::Hindexed(pairs, t) => {
            let (child, map) = build(t)?;
            let (blocklengths, displacements) = split(pairs);
            (Recipe::Hindexed { blocklengths, displacements, child }, blocks(&map, pairs))
        }
        Spec::IndexedBlock(blocklength, places, t) => {
            let (child, map) = build(t)?;
            let list: Vec<_> = places.iter().map(|d| (*blocklength, d * map.extent())).collect();
            let recipe = Recipe::IndexedBlock { blocklength: *blocklength, displacements: places.clone(), child };
            (recipe, blocks(&map, &list))
        }
        Spec::HindexedBlock(blocklength, places, t) => {
            let (child, map) = build(t)?;
            let list: Vec<_> = places.iter().map(|&d| (*blocklength, d)).collect();
            let recipe = Recipe::HindexedBlock { blocklength: *blocklength, displacements: places.clone(), child };
            (recipe, blocks(&map, &list))
        }
        Spec::Struct(members) => {
            let (mut map, mut children) = (Map::default(), Vec::new());
            for (length, at, t) in members {
                let (child, inner) = build(t)?;
                map.add(&blocks(&inner, &[(*length, *at)]), 0);
                children.push(child);
            }
            let (blocklengths, displacements) = split(&members.iter().map(|m| (m.0, m.1)).collect::<Vec<_>>());
            (Recipe::Struct { blocklengths, displacements, children }, map)
        }
        Spec::Resized(lb, extent, t) => {
            let (child, inner) = build(t)?;
            let mut map = Map(inner.data().map(|(at, u)| (at, Entry::Data(u))).collect());
            map.0.extend([(*lb, Entry::Lb), (lb + extent, Entry::Ub)]);
            (Recipe::Resized { lb: *lb, extent: *extent, child }, map)
        }
        Spec::Subarray(dims, order_c, t) => {
            let (child, inner) = build(t)?;
            let subsizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
            let starts: Vec<i64> = dims.iter().map(|d| d.1).collect();
            let sizes: Vec<i64> = dims.iter().map(|d| d.0 + d.1 + d.2).collect();
            let mut fast: Vec<usize> = (0..dims.len()).collect();
            if *order_c {
                fast.reverse();
            }
            let mut places = vec![0];
            let mut stride = inner.extent();
            for d in fast {
                let range = starts[d]..starts[d] + subsizes[d];
                places = range.flat_map(|i| places.iter().map(move |p| p + i * stride)).collect();
                stride *= sizes[d];
            }
            let mut map = Map::default();
            for at in places {
                inner.data().for_each(|(o, u)| map.0.push((at + o, Entry::Data(u))));
            }
            map.0.extend([(0, Entry::Lb), (stride, Entry::Ub)]);
            let order = if *order_c { consts::ORDER_C } else { consts::ORDER_FORTRAN };
            (Recipe::Subarray { sizes, subsizes, starts, order, child }, map)
        }
        Spec::Dup(t) => {
            let (child, map) = build(t)?;
            (Recipe::Dup(child), map)
        }
    };
    let mut map = map;
    if map.size() > 0 {
        map.0.push((map.ub(), Entry::End));
    }
    (map.0.len() <= 600).then(|| (make(recipe), map))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_typemap(spec in spec(), count in 0..4u64, cuts in prop::collection::vec(any::<u16>(), 0..6)) {
        let Some((ty, map)) = build(&spec) else { return Ok(()) };
        prop_assert_eq!(ty.size(), map.size());
        prop_assert_eq!((ty.lb(), ty.ub()), (map.lb(), map.ub()));
        prop_assert_eq!((ty.true_lb(), ty.true_extent()), map.true_bounds());
        prop_assert_eq!(ty.signature().elements, map.data().count() as u64);

        let places = map.bytes(count);
        let total = places.len();
        let low = places.iter().copied().min().unwrap_or(0);
        let room = (places.iter().copied().max().unwrap_or(0) - low + 1) as usize;
        let memory: Vec<u8> = (0..room).map(|i| (i * 7 + i / 251) as u8).collect();
        let packed: Vec<u8> = places.iter().map(|p| memory[(p - low) as usize]).collect();
        let user = memory.as_ptr().wrapping_offset(-low as isize);

        // Blocks: the same bytes, and neighbours merged.
        let mut seen = Vec::new();
        let mut last = None;
        let mut merged = true;
        ty.blocks(count, &mut |offset, len| {
            merged &= last != Some(offset) && len > 0;
            last = Some(offset + len as i64);
            seen.extend(offset..offset + len as i64);
            true
        });
        prop_assert!(merged);
        prop_assert_eq!(&seen, &places);
        if ty.is_dense() {
            prop_assert!(places.iter().enumerate().all(|(i, p)| *p == ty.true_lb() + i as i64));
        }

        // Pack and unpack in pieces.
        let mut bounds: Vec<usize> = cuts.iter().map(|c| usize::from(*c) % (total + 1)).collect();
        bounds.extend([0, total]);
        bounds.sort();
        let mut back = vec![0; room];
        let mut expected = vec![0; room];
        for w in bounds.windows(2) {
            let mut out = vec![0; w[1] - w[0]];
            // SAFETY: `memory` and `back` span every byte of the elements.
            let n = unsafe { pack(&ty, count, user, w[0] as u64, &mut out) };
            prop_assert_eq!(n, out.len());
            prop_assert_eq!(&out[..], &packed[w[0]..w[1]]);
            let at = back.as_mut_ptr().wrapping_offset(-low as isize);
            // SAFETY: as above.
            let n = unsafe { unpack(&ty, count, at, w[0] as u64, &out) };
            prop_assert_eq!(n, out.len());
        }
        places.iter().zip(&packed).for_each(|(p, b)| expected[(p - low) as usize] = *b);
        prop_assert_eq!(back, expected);
        let mut more = vec![0; 5];
        // SAFETY: as above.
        prop_assert_eq!(unsafe { pack(&ty, count, user, total as u64, &mut more) }, 0);

        // Elements.
        let sizes: Vec<u64> = (0..2).flat_map(|_| map.data().map(|e| e.1.size())).collect();
        let mut ends = vec![0];
        sizes.iter().for_each(|s| ends.push(ends[ends.len() - 1] + s));
        if !sizes.is_empty() {
            for bytes in 0..=ends[ends.len() - 1] {
                let elements = ends.binary_search(&bytes).ok().map(|e| e as u64);
                prop_assert_eq!(ty.elements_in(bytes), elements);
            }
            for (n, end) in ends.iter().enumerate() {
                prop_assert_eq!(ty.bytes_of(n as u64), Some(*end));
            }
        }

        // external32: a long of these bytes may need more than it has.
        let mut external = Vec::new();
        // SAFETY: as above.
        match unsafe { external::pack_external(&ty, count, user, Rules::OpenMpi, &mut external) } {
            Ok(()) => prop_assert_eq!(external.len() as u64, external::size(&ty, count, Rules::OpenMpi)),
            Err(error) => prop_assert_eq!(error.class, Class::Conversion),
        }
    }

    #[test]
    fn distributed_arrays_cover_the_array_once(
        dims in prop::collection::vec((1..8i64, 1..4i64, 0..3usize, prop::option::of(1..4i32)), 1..4),
        order_c in any::<bool>(),
    ) {
        let hows = [consts::DISTRIBUTE_NONE, consts::DISTRIBUTE_BLOCK, consts::DISTRIBUTE_CYCLIC];
        let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
        let distributions: Vec<i32> = dims.iter().map(|d| hows[d.2]).collect();
        let grid: Vec<i64> = dims.iter().map(|d| if d.2 == 0 { 1 } else { d.1 }).collect();
        let block = |d: usize| match (hows[dims[d].2], dims[d].3) {
            (consts::DISTRIBUTE_BLOCK, Some(b)) => i64::from(b).max((sizes[d] + grid[d] - 1) / grid[d]),
            (consts::DISTRIBUTE_BLOCK, None) => (sizes[d] + grid[d] - 1) / grid[d],
            (consts::DISTRIBUTE_CYCLIC, b) => b.unwrap_or(1).into(),
            _ => sizes[d],
        };
        let arguments: Vec<i32> = (0..dims.len())
            .map(|d| if dims[d].3.is_none() { consts::DISTRIBUTE_DFLT_DARG } else { block(d) as i32 })
            .collect();
        let size: i64 = grid.iter().product();
        let order = if order_c { consts::ORDER_C } else { consts::ORDER_FORTRAN };
        let cells: i64 = sizes.iter().product();
        let mut all = Vec::new();
        for rank in 0..size {
            let ty = make(Recipe::Darray {
                size, rank, order,
                sizes: sizes.clone(),
                distributions: distributions.clone(),
                arguments: arguments.clone(),
                grid: grid.clone(),
                child: basic(dt::INT),
            });
            prop_assert_eq!((ty.lb(), ty.extent()), (0, 4 * cells));
            let mut mine = Vec::new();
            ty.blocks(1, &mut |at, len| {
                mine.extend((at..at + len as i64).step_by(4).map(|b| b / 4));
                true
            });
            let mut expected = Vec::new();
            for cell in 0..cells {
                let (mut rest, mut place) = (cell, vec![0; sizes.len()]);
                let fast: Vec<usize> = if order_c { (0..sizes.len()).rev().collect() } else { (0..sizes.len()).collect() };
                for d in fast {
                    place[d] = rest % sizes[d];
                    rest /= sizes[d];
                }
                let owner = (0..sizes.len()).fold(0, |r, d| r * grid[d] + place[d] / block(d) % grid[d]);
                if owner == rank {
                    expected.push(cell);
                }
            }
            prop_assert_eq!(&mine, &expected);
            if let (Some(first), Some(last)) = (expected.first(), expected.last()) {
                prop_assert_eq!((ty.true_lb(), ty.true_extent()), (first * 4, (last - first + 1) * 4));
            }
            all.extend(mine);
        }
        all.sort();
        prop_assert_eq!(all, (0..cells).collect::<Vec<_>>());
    }
}

#[test]
fn pair_types_have_the_padding_of_c() {
    for (handle, size, extent) in [
        (dt::FLOAT_INT, 8, 8),
        (dt::DOUBLE_INT, 12, 16),
        (dt::LONG_INT, 12, 16),
        (dt::SHORT_INT, 6, 8),
        (dt::LONG_DOUBLE_INT, 20, 32),
        (dt::TWO_INT, 8, 8),
    ] {
        let ty = basic(handle);
        assert_eq!((ty.size(), ty.extent(), ty.lb()), (size, extent, 0), "{handle:?}");
    }
}

#[test]
fn extents_follow_the_face() {
    // As printed by Debian's Open MPI 4.1.4 and MPICH 4.0.2.
    let int = basic(dt::INT);
    let hvector = || Recipe::Hvector { count: 2, blocklength: 1, stride: 5, child: int.clone() };
    assert_eq!(Type::new(hvector(), Rules::OpenMpi).unwrap().extent(), 12);
    assert_eq!(Type::new(hvector(), Rules::Mpich).unwrap().extent(), 9);
    let resized =
        |rules| Rc::new(Type::new(Recipe::Resized { lb: -2, extent: 10, child: int.clone() }, rules).unwrap());
    for (rules, at, lb, extent) in [
        (Rules::OpenMpi, 0, -2, 10),
        (Rules::Mpich, 0, -2, 40),
        (Rules::OpenMpi, 30, 28, 10),
        (Rules::Mpich, 30, 0, 40),
    ] {
        let (blocklengths, displacements) = (vec![1, 1], vec![at, 30 - at]);
        let children = vec![resized(rules), basic(dt::DOUBLE)];
        let ty = Type::new(Recipe::Struct { blocklengths, displacements, children }, rules).unwrap();
        assert_eq!((ty.lb(), ty.extent()), (lb, extent), "{rules:?} {at}");
    }
    let markers = vec![Rc::new(Type::marker(Marker::Lb)), int.clone(), Rc::new(Type::marker(Marker::Ub))];
    for rules in [Rules::OpenMpi, Rules::Mpich] {
        let (blocklengths, displacements) = (vec![1, 1, 1], vec![-3, 0, 9]);
        let ty = Type::new(Recipe::Struct { blocklengths, displacements, children: markers.clone() }, rules).unwrap();
        assert_eq!((ty.lb(), ty.extent(), ty.size(), ty.true_lb()), (-3, 12, 4, 0));
    }
}

#[test]
fn large_types_stay_small() {
    let row = make(Recipe::Contiguous { count: 1 << 20, child: basic(dt::DOUBLE) });
    let plane = make(Recipe::Vector { count: 1 << 20, blocklength: 1, stride: 2, child: row });
    assert_eq!(plane.size(), 8 << 40);
    let mut first = Vec::new();
    plane.blocks_in(1, (8 << 40) - 4, u64::MAX, &mut |at, len| {
        first.push((at, len));
        true
    });
    assert_eq!(first, [((8 << 20) * ((2 << 20) - 1) - 4, 4)]);
    let too_large = Type::new(Recipe::Contiguous { count: i64::MAX, child: plane }, Rules::Standard);
    assert!(too_large.is_err_and(|e| e.class == crate::errors::Class::Arg));
}

#[test]
fn bad_arguments_are_refused() {
    let int = basic(dt::INT);
    let class = |recipe| Type::new(recipe, Rules::Standard).err().map(|e| e.class);
    assert_eq!(class(Recipe::Contiguous { count: -1, child: int.clone() }), Some(crate::errors::Class::Count));
    let vector = Recipe::Vector { count: 1, blocklength: -1, stride: 1, child: int.clone() };
    assert_eq!(class(vector), Some(crate::errors::Class::Arg));
    let (sizes, subsizes, starts) = (vec![3], vec![2], vec![2]);
    let subarray = Recipe::Subarray { sizes, subsizes, starts, order: consts::ORDER_C, child: int };
    assert_eq!(class(subarray), Some(crate::errors::Class::Arg));
    assert!(class(Recipe::F90Real { precision: 40, range: consts::UNDEFINED }).is_some());
    let real = Type::new(Recipe::F90Real { precision: 6, range: 30 }, Rules::Standard).unwrap();
    assert_eq!(real.named(), Some(dt::FLOAT));
}

#[test]
fn external32_is_big_endian() {
    let mut out = Vec::new();
    // `long double` 1.5 and -2^-16445 (its smallest subnormal), as gcc stores them.
    let mut values = [[0u8; 16]; 2];
    values[0][7..10].copy_from_slice(&[0xc0, 0xff, 0x3f]);
    (values[1][0], values[1][9]) = (1, 0x80);
    let ty = basic(dt::LONG_DOUBLE);
    // SAFETY: two elements.
    unsafe { external::pack_external(&ty, 2, values.as_ptr().cast(), Rules::Standard, &mut out).unwrap() };
    assert_eq!(out[..4], [0x3f, 0xff, 0x80, 0]);
    assert_eq!((out[16], out[25]), (0x80, 2));
    let mut back = [[9u8; 16]; 2];
    // SAFETY: two elements.
    let n = unsafe { external::unpack_external(&ty, 2, back.as_mut_ptr().cast(), Rules::Standard, &out).unwrap() };
    assert_eq!((n, back), (32, values));

    // A long and an unsigned one have four bytes in every ABI: what they can hold comes back, what not is refused.
    let long = |handle, value: i64, rules| {
        let (ty, mut out, mut back) = (basic(handle), Vec::new(), 0x5555i64);
        // SAFETY: one element each.
        unsafe {
            external::pack_external(&ty, 1, (&raw const value).cast(), rules, &mut out).ok()?;
            external::unpack_external(&ty, 1, (&raw mut back).cast(), rules, &out).unwrap();
        }
        assert_eq!(external::size(&ty, 1, rules), out.len() as u64);
        Some((out, back))
    };
    for rules in [Rules::Standard, Rules::OpenMpi, Rules::Mpich] {
        assert_eq!(long(dt::LONG, -5, rules), Some((vec![0xff, 0xff, 0xff, 0xfb], -5)));
        assert_eq!(long(dt::UNSIGNED_LONG, 4_000_000_000, rules), Some((vec![0xee, 0x6b, 0x28, 0], 4_000_000_000)));
        for outside in [1 << 40, 1 << 31, -(1 << 31) - 1] {
            assert_eq!(long(dt::LONG, outside, rules), None, "{outside}");
        }
        for outside in [1 << 32, -1] {
            assert_eq!(long(dt::UNSIGNED_LONG, outside, rules), None, "{outside}");
        }
    }
}
