//! The few system calls that are needed, and text without allocation.

use core::arch::asm;
use core::ffi::c_char;

/// Longest path, and longest LD_AUDIT.
const ROOM: usize = 4096;
const AT_FDCWD: isize = -100;
const O_PATH_CLOEXEC: usize = 0o12000000;
const O_CLOEXEC: usize = 0o2000000;

/// Bytes with a NUL behind them.
pub struct Text {
    bytes: [u8; ROOM + 1],
    len: usize,
}

impl Text {
    pub const EMPTY: Text = Text { bytes: [0; ROOM + 1], len: 0 };

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    pub fn clear(&mut self) {
        self.len = 0;
        self.bytes[0] = 0;
    }

    /// `None`: there is no room.
    pub fn push(&mut self, more: &[u8]) -> Option<()> {
        for byte in more {
            if self.len == ROOM {
                return None;
            }
            self.bytes[self.len] = *byte;
            self.len += 1;
        }
        self.bytes[self.len] = 0;
        Some(())
    }

    /// Only what is between the two.
    pub fn keep(&mut self, begin: usize, end: usize) {
        for at in begin..end {
            self.bytes[at - begin] = self.bytes[at];
        }
        self.len = end - begin;
        self.bytes[self.len] = 0;
    }
}

#[derive(Copy, Clone)]
#[repr(usize)]
enum Call {
    Read = 0,
    Close = 3,
    ExitGroup = 231,
    Openat = 257,
    Readlinkat = 267,
    Faccessat = 269,
}

/// A system call; negative: an error.
///
/// # Safety
/// As the call says of its arguments.
unsafe fn call(number: Call, arguments: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes rax, rcx and r11, and what the caller answers for.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as usize as isize => result,
            in("rdi") arguments[0], in("rsi") arguments[1], in("rdx") arguments[2], in("r10") arguments[3],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

pub fn exit(code: usize) -> ! {
    loop {
        // SAFETY: it does not return.
        unsafe { call(Call::ExitGroup, [code, 0, 0, 0]) };
    }
}

fn open(path: *const u8, flags: usize) -> Option<usize> {
    // SAFETY: callers give strings with a NUL.
    let fd = unsafe { call(Call::Openat, [AT_FDCWD as usize, path as usize, flags, 0]) };
    usize::try_from(fd).ok()
}

fn close(fd: usize) {
    // SAFETY: a descriptor of `open`, closed once.
    unsafe { call(Call::Close, [fd, 0, 0, 0]) };
}

/// Is there a file of this name?
pub fn is_there(path: &Text) -> bool {
    // SAFETY: a string with a NUL.
    unsafe { call(Call::Faccessat, [AT_FDCWD as usize, path.bytes.as_ptr() as usize, 0, 0]) == 0 }
}

/// The file behind all links of a path, into `real`.
pub fn real_path<'a>(path: &[u8], real: &'a mut Text) -> Option<&'a [u8]> {
    real.clear();
    real.push(path)?;
    let fd = open(real.bytes.as_ptr(), O_PATH_CLOEXEC)?;
    real.clear();
    let name = real.push(b"/proc/self/fd/").and_then(|()| push_number(real, fd));
    let found = name.and_then(|()| follow(real));
    close(fd);
    found.map(|()| real.bytes())
}

/// The file of this program.
pub fn own_program(file: &mut Text) -> Option<&[u8]> {
    file.clear();
    file.push(b"/proc/self/exe")?;
    follow(file)?;
    Some(file.bytes())
}

/// From the name of a link to what it says.
fn follow(name: &mut Text) -> Option<()> {
    let mut link = [0u8; ROOM];
    // SAFETY: a string with a NUL, and the room that is named.
    let len = unsafe {
        call(Call::Readlinkat, [AT_FDCWD as usize, name.bytes.as_ptr() as usize, link.as_mut_ptr() as usize, ROOM])
    };
    name.clear();
    name.push(link.get(..usize::try_from(len).ok()?)?)
}

fn push_number(text: &mut Text, number: usize) -> Option<()> {
    if number >= 10 {
        push_number(text, number / 10)?;
    }
    text.push(&[b'0' + (number % 10) as u8])
}

/// The value of a variable (`NAME=`) as this process was started with it, into `value`.
pub fn variable(name: &[u8], value: &mut Text) -> Option<()> {
    let fd = open(c"/proc/self/environ".as_ptr().cast(), O_CLOEXEC)?;
    let mut chunk = [0u8; 1024];
    // How much of the name has been seen at the beginning of a variable; `None`: it is another one.
    let mut seen = Some(0);
    value.clear();
    let found = 'read: loop {
        // SAFETY: the room that is named.
        let count = unsafe { call(Call::Read, [fd, chunk.as_mut_ptr() as usize, chunk.len(), 0]) };
        let Some(bytes) = usize::try_from(count).ok().filter(|count| *count > 0).and_then(|count| chunk.get(..count))
        else {
            break seen == Some(name.len());
        };
        for byte in bytes {
            seen = match (seen, *byte) {
                (Some(at), 0) if at == name.len() => break 'read true,
                (_, 0) => Some(0),
                (Some(at), byte) if at == name.len() => {
                    if value.push(&[byte]).is_none() {
                        break 'read false;
                    }
                    Some(at)
                }
                (Some(at), byte) if byte == name[at] => Some(at + 1),
                _ => None,
            };
        }
    };
    close(fd);
    found.then_some(())
}
