//! Random guards, touched at random, beside a model of what must lie there.

use super::*;
use fastrand::Rng;

const PAGES: usize = 24;
const BYTES: usize = PAGES * PAGE;
const STEPS: usize = 3000;

struct Model {
    at: *mut u8,
    /// What the program must find.
    bytes: Vec<u8>,
    /// On their way, by ticket.
    messages: Vec<Option<Message>>,
}

impl Model {
    /// Messages that have arrived since.
    fn settle(&mut self) {
        for (ticket, slot) in self.messages.iter_mut().enumerate() {
            // SAFETY: the only thread.
            let is_on_its_way = unsafe { (*ON_THE_WAY.0.get())[ticket].is_some() };
            if let Some(message) = slot.take_if(|_| !is_on_its_way) {
                let start = message.addr - self.at as usize;
                if message.access != Access::Write {
                    self.bytes[start..start + message.len].fill(message.value);
                }
            }
        }
    }

    fn meets(&self, start: usize, len: usize) -> bool {
        let other = |message: &Message| message.addr - self.at as usize;
        self.messages.iter().flatten().any(|m| start < other(m) + m.len && other(m) < start + len)
    }

    fn begin(&mut self, random: &mut Rng, value: u8) {
        let ticket = random.usize(..MOST);
        let len = random.usize(1..5 * PAGE);
        let start = random.usize(..BYTES - len);
        let access = if random.bool() { Access::Away } else { Access::Write };
        if self.messages[ticket].is_some() || self.meets(start, len) {
            return;
        }
        let addr = self.at.wrapping_add(start);
        if access == Access::Write {
            // The program fills it, which touches what shares its pages.
            // SAFETY: the test's memory.
            unsafe { addr.write_bytes(value, len) };
            self.settle();
            self.bytes[start..start + len].fill(value);
        }
        match super::start(ticket as u32, addr, len, value, access) {
            Ok(()) => self.messages[ticket] = Some(Message { addr: addr as usize, len, value, access }),
            // SAFETY: the only thread.
            Err(NotGuardable::Overlap(_)) => unsafe { (*ON_THE_WAY.0.get())[ticket] = None },
            Err(why) => panic!("{why}"),
        }
    }

    fn touch(&mut self, random: &mut Rng, value: u8, pipe: [i32; 2]) {
        let len = random.usize(1..PAGE);
        let start = random.usize(..BYTES - len);
        let addr = self.at.wrapping_add(start);
        let mut got = [0u8; PAGE];
        // SAFETY: the test's memory and descriptors.
        unsafe {
            match random.u8(..4) {
                0 => addr.copy_to(got.as_mut_ptr(), len),
                1 => addr.write_bytes(value, len),
                2 => {
                    assert_eq!(libc::write(pipe[1], addr.cast(), len), len as isize);
                    assert_eq!(libc::read(pipe[0], got.as_mut_ptr().cast(), len), len as isize);
                }
                _ => {
                    got[..len].fill(value);
                    assert_eq!(libc::write(pipe[1], got.as_ptr().cast(), len), len as isize);
                    assert_eq!(libc::read(pipe[0], addr.cast(), len), len as isize);
                }
            }
            if addr.read_volatile() == value && got[0] == 0 {
                got[..len].fill(value);
            }
        }
        self.settle();
        if got[..len].iter().all(|byte| *byte == value) {
            self.bytes[start..start + len].fill(value);
        }
        assert!(got[..len] == self.bytes[start..start + len], "{start} {len}");
    }
}

#[test]
fn what_lies_there_is_what_the_model_says() {
    if !is_offered() {
        return;
    }
    for seed in 0..8 {
        alone(|| {
            let mut random = Rng::with_seed(seed);
            let mut pipe = [0; 2];
            // SAFETY: room for two.
            assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
            let mut model = Model { at: pages(PAGES), bytes: vec![1; BYTES], messages: vec![None; MOST] };
            let mut begun = 0;
            for step in 0..STEPS {
                // Not 0, and not what lay there lately.
                let value = (step % 251) as u8 + 2;
                match random.u8(..4) {
                    0 => model.touch(&mut random, value, pipe),
                    1 => {
                        let ticket = random.u32(..MOST as u32);
                        if model.messages[ticket as usize].is_some() {
                            arrives(ticket, 0, 0);
                            model.settle();
                        }
                    }
                    _ => model.begin(&mut random, value),
                }
                begun += usize::from(any_armed());
            }
            assert!(begun > STEPS / 2, "seed {seed}: something is guarded most of the time");
            wait_for_all();
            model.settle();
            // SAFETY: the test's memory.
            let is = unsafe { std::slice::from_raw_parts(model.at, BYTES) };
            assert!(is == model.bytes, "seed {seed}");
        });
    }
}
