//! System calls that are never caught: made by the few instructions between `vmpi_guard_begin` and `vmpi_guard_end`, which the kernel is told of.

use std::arch::global_asm;
use std::ops::Range;

// The restorer is written as the C library's is, by which debuggers know the frame of a signal; unwinders are told where in it the registers are (`gregs` of
// ucontext_t, to which the stack pointer points).
global_asm!(
    ".pushsection .text.vmpi_guard, \"ax\", @progbits",
    ".balign 16",
    ".globl vmpi_guard_begin, vmpi_guard_call, vmpi_guard_restorer, vmpi_guard_return, vmpi_guard_end",
    ".hidden vmpi_guard_begin, vmpi_guard_call, vmpi_guard_restorer, vmpi_guard_return, vmpi_guard_end",
    "vmpi_guard_begin:",
    ".type vmpi_guard_call, @function",
    "vmpi_guard_call:",
    ".cfi_startproc",
    "mov rax, rdi",
    "mov r11, rsi",
    "mov rdi, [r11]",
    "mov rsi, [r11 + 8]",
    "mov rdx, [r11 + 16]",
    "mov r10, [r11 + 24]",
    "mov r8, [r11 + 32]",
    "mov r9, [r11 + 40]",
    "syscall",
    "ret",
    ".cfi_endproc",
    ".balign 16",
    ".cfi_startproc",
    ".cfi_signal_frame",
    // The frame's end is the stack pointer at 160; then rip, rbp, rbx, r12 to r15.
    ".cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06",
    ".cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1",
    ".cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0",
    ".cfi_escape 0x10, 3, 3, 0x77, 0x80, 1",
    ".cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0",
    ".cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0",
    ".cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0",
    ".cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0",
    // Some look one byte back from a return address.
    "nop",
    "vmpi_guard_restorer:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05",
    "ud2",
    ".cfi_endproc",
    "vmpi_guard_return:",
    "mov rsp, rdi",
    "mov rax, 15",
    "syscall",
    "ud2",
    "vmpi_guard_end:",
    ".popsection",
);

unsafe extern "C" {
    static vmpi_guard_begin: u8;
    static vmpi_guard_end: u8;
    fn vmpi_guard_call(number: u64, arguments: *const [u64; 6]) -> i64;
    fn vmpi_guard_restorer();
    fn vmpi_guard_return(frame: u64) -> !;
}

/// Where these instructions are.
pub(super) fn range() -> Range<usize> {
    (&raw const vmpi_guard_begin) as usize..(&raw const vmpi_guard_end) as usize
}

/// Where a handler returns to.
pub(super) fn restorer() -> usize {
    vmpi_guard_restorer as *const () as usize
}

/// A system call; an error is negative.
///
/// # Safety
/// As the call says of its arguments.
pub(super) unsafe fn call(number: u64, arguments: [u64; 6]) -> i64 {
    // SAFETY: the caller's; the array lives.
    unsafe { vmpi_guard_call(number, &raw const arguments) }
}

/// As `call`, of one that this module's users know by a constant of libc, and its error.
///
/// # Safety
/// As the call says of its arguments.
pub(super) unsafe fn known<const N: usize>(number: i64, arguments: [u64; N]) -> nix::Result<u64> {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: the caller's.
    let result = unsafe { call(number as u64, all) };
    match result {
        -4095..0 => Err(nix::Error::from_raw(-result as i32)),
        _ => Ok(result as u64),
    }
}

/// Return from the signal handler whose frame ends at `stack`, as its own restorer would.
///
/// # Safety
/// It is the stack pointer at an rt_sigreturn of a handler of this thread's.
pub(super) unsafe fn return_from_signal(stack: u64) -> ! {
    // SAFETY: the caller's.
    unsafe { vmpi_guard_return(stack) }
}
