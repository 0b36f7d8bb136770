//! Views against a naive model: the file's bytes listed one by one, as MPI 4.1 section 14.3 defines them.

#![allow(unsafe_code)]

use super::memory::{Buffer, Memory};
use super::representation::Representation;
use super::transfer;
use super::view::View;
use crate::consts::dt;
use crate::datatype::{self, Recipe, Rules, Type};
use crate::errors::Class;
use proptest::prelude::*;
use std::rc::Rc;
use std::sync::Mutex;

/// Datatypes come from a table that one thread may use at a time.
pub(super) static TYPES: Mutex<()> = Mutex::new(());

fn byte() -> Rc<Type> {
    datatype::get(dt::BYTE).unwrap()
}

/// A filetype of bytes: (gap, length) after each other, and room at the end.
fn filetype(blocks: &[(i64, i64)], tail: i64) -> Rc<Type> {
    let (mut displacements, mut blocklengths, mut at) = (Vec::new(), Vec::new(), 0);
    for (gap, len) in blocks {
        displacements.push(at + gap);
        blocklengths.push(*len);
        at += gap + len;
    }
    let child =
        Rc::new(Type::new(Recipe::Hindexed { blocklengths, displacements, child: byte() }, Rules::Standard).unwrap());
    Rc::new(Type::new(Recipe::Resized { lb: 0, extent: at + tail, child }, Rules::Standard).unwrap())
}

/// Position of each byte of the stream.
fn naive(displacement: i64, blocks: &[(i64, i64)], tail: i64, bytes: usize) -> Vec<i64> {
    let mut positions = Vec::new();
    let mut at = displacement;
    while positions.len() < bytes {
        for (gap, len) in blocks {
            at += gap;
            positions.extend(at..at + len);
            at += len;
        }
        at += tail;
    }
    positions.truncate(bytes);
    positions
}

fn scratch() -> std::fs::File {
    let path =
        std::env::temp_dir().join(format!("vmpi-io-test-{}-{:?}", std::process::id(), std::thread::current().id()));
    let options = || {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options
    };
    let _ = std::fs::remove_file(&path);
    let file = options().open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

fn memory(view: &View, data: &mut [u8], write: bool) -> Memory {
    let buffer = Buffer { addr: data.as_mut_ptr().cast(), count: data.len() as u64, ty: byte(), handle: dt::BYTE };
    // SAFETY: the tests keep the data as long as the memory.
    unsafe { Memory::new(view, buffer, write).unwrap() }
}

fn blocks() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((0i64..5, 1i64..5), 1..8)
}

proptest! {
    #[test]
    fn the_stream_is_the_bytes_of_the_view(
        displacement in 0i64..20, blocks in blocks(), tail in 0i64..6, from in 0usize..60, len in 0usize..60,
    ) {
        let _types = TYPES.lock().unwrap();
        let view = View::new(displacement, byte(), filetype(&blocks, tail), Representation::Native, true).unwrap();
        let model = naive(displacement, &blocks, tail, 200);
        let mut seen = Vec::new();
        view.extents(from as u64, (from + len) as u64, &mut |position, n| {
            seen.extend(position..position + n as i64);
            true
        });
        prop_assert_eq!(&seen, &model[from..from + len]);
        prop_assert_eq!(view.position(from as u64), model[from]);
        if len > 0 {
            prop_assert_eq!(view.bounds(from as u64, (from + len) as u64), (model[from], model[from + len - 1] + 1));
        }
        for position in [0, model[from] - 1, model[from], model[from + len], model[199] + 5] {
            let expected = model[..150].iter().filter(|p| **p < position).count() as u64;
            prop_assert_eq!(view.first_at(0, 150, position), expected);
            if position < model[150] {
                prop_assert_eq!(view.etypes_before(position) as u64, expected);
            }
        }
    }

    #[test]
    fn writes_touch_their_bytes_only_and_reads_end_with_the_file(
        displacement in 0i64..20, blocks in blocks(), tail in 0i64..6, from in 0usize..60, len in 0usize..90,
        size in 0usize..200,
    ) {
        let _types = TYPES.lock().unwrap();
        let view = View::new(displacement, byte(), filetype(&blocks, tail), Representation::Native, true).unwrap();
        let model = naive(displacement, &blocks, tail, 200);
        let file = scratch();
        let old: Vec<u8> = (0..size).map(|i| 100 + (i % 50) as u8).collect();
        transfer::write_block(&file, &old, 0).unwrap();
        // What is read is what the file has, up to its end.
        let mut data = vec![1; len];
        let got = transfer::read_stream(&file, &view, from as u64, &memory(&view, &mut data, false)).unwrap() as usize;
        let expected: Vec<u8> =
            model[from..from + len].iter().take_while(|p| **p < size as i64).map(|p| old[*p as usize]).collect();
        prop_assert_eq!(got, expected.len());
        prop_assert_eq!(&data[..got], &expected[..]);
        prop_assert!(data[got..].iter().all(|b| *b == 1), "what lies behind the end is left alone");
        // What is written is exactly the stream.
        let mut data: Vec<u8> = (0..len).map(|i| (i % 90) as u8).collect();
        transfer::write_stream(&file, &view, from as u64, &memory(&view, &mut data, true)).unwrap();
        let mut wanted = old;
        for (byte, position) in data.iter().zip(&model[from..]) {
            let position = *position as usize;
            wanted.resize(wanted.len().max(position + 1), 0);
            wanted[position] = *byte;
        }
        let mut all = vec![0; wanted.len() + 10];
        let bytes = transfer::read_block(&file, &mut all, 0).unwrap();
        prop_assert_eq!(bytes, wanted.len());
        prop_assert_eq!(&all[..bytes], &wanted[..]);
    }
}

fn indexed(displacements: &[i64], len: i64) -> Rc<Type> {
    let recipe = Recipe::HindexedBlock { blocklength: len, displacements: displacements.to_vec(), child: byte() };
    Rc::new(Type::new(recipe, Rules::Standard).unwrap())
}

#[test]
fn filetypes_that_mpi_forbids() {
    let _types = TYPES.lock().unwrap();
    let class = |ty: Rc<Type>, writes| View::new(0, byte(), ty, Representation::Native, writes).err().map(|e| e.class);
    assert_eq!(class(indexed(&[4, 0], 1), false), Some(Class::Io));
    assert_eq!(class(indexed(&[-4, 0], 1), false), Some(Class::Io));
    assert_eq!(class(indexed(&[0, 2], 4), true), Some(Class::Io));
    assert_eq!(class(indexed(&[0, 2], 4), false), None);
    let int = datatype::get(dt::INT).unwrap();
    let view = View::new(0, int, byte(), Representation::Native, false);
    assert_eq!(view.err().map(|e| e.class), Some(Class::Arg));
    let view = View::new(0, byte(), byte(), Representation::Native, false).unwrap();
    assert!(view.check_reach(i64::MAX as u64).is_err());
    assert!(view.stream(-1).is_err());
}

#[test]
fn external32_scales_the_view() {
    let _types = TYPES.lock().unwrap();
    let long = datatype::get(dt::LONG).unwrap();
    let pair = Rc::new(
        Type::new(Recipe::Vector { count: 2, blocklength: 1, stride: 3, child: long.clone() }, Rules::Standard)
            .unwrap(),
    );
    let external = Representation::External32(Rules::Standard);
    let view = View::new(10, long.clone(), pair, external.clone(), true).unwrap();
    assert_eq!(view.unit(), 4);
    // Four bytes each, three apart; the type ends with its second element.
    let positions: Vec<i64> = (0..4).map(|i| view.position(i * 4)).collect();
    assert_eq!(positions, [10, 22, 26, 38]);
    let mut data = [1i64, -2, 3];
    let buffer = Buffer { addr: data.as_mut_ptr().cast(), count: 3, ty: long, handle: dt::LONG };
    let file = scratch();
    // SAFETY: the array outlives both.
    let mut out = unsafe { Memory::new(&view, buffer.clone(), true).unwrap() };
    transfer::write_stream(&file, &view, 0, &out).unwrap();
    let mut bytes = [0; 30];
    transfer::read_block(&file, &mut bytes, 0).unwrap();
    assert_eq!(
        (&bytes[10..14], &bytes[22..26], &bytes[26..30]),
        (&[0, 0, 0, 1][..], &[255, 255, 255, 254][..], &[0, 0, 0, 3][..])
    );
    assert_eq!(out.finish_write(12), 24);
    data = [0; 3];
    // SAFETY: as above.
    out = unsafe { Memory::new(&view, buffer, false).unwrap() };
    let got = transfer::read_stream(&file, &view, 0, &out).unwrap();
    assert_eq!(out.finish_read(got).unwrap(), 24);
    assert_eq!(data, [1, -2, 3]);
}
