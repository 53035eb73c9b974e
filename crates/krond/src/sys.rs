//! What only the kernel can do, and Rust cannot check. Everything unsafe in krond is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use rustix::process::Pid;

/// The promise that this process has one thread, and will have no other.
///
/// Then a copy of it is whole: no lock is held by a thread that was not copied, so the copy may allocate, look
/// users up and do whatever else Rust does.
pub(crate) struct Single(PhantomData<*const ()>);

impl Single {
    /// Looks whether there is one thread. Whoever holds the promise starts no other.
    pub(crate) fn prove() -> io::Result<Single> {
        match fs::read_dir("/proc/self/task")?.count() {
            1 => Ok(Single(PhantomData)),
            more => Err(io::Error::other(format!("expected one thread, but found {more}"))),
        }
    }
}

/// Whose child a copy is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kin {
    /// The caller's.
    Child,
    /// The caller's parent's.
    Sibling,
}

/// Who goes on after a copy was made.
pub(crate) enum Forked {
    /// The one that was there before, and what the copy is called.
    Here(Pid),
    /// The copy.
    Copy,
}

/// Copies this process.
pub(crate) fn fork(_single: &Single, kin: Kin) -> io::Result<Forked> {
    // SAFETY: `clone_args` is plain numbers, for which all zeros are valid and mean "nothing asked".
    let mut args: libc::clone_args = unsafe { mem::zeroed() };
    match kin {
        // The kernel refuses another signal here: a sibling ends with the one that its maker ends with, SIGCHLD.
        Kin::Sibling => args.flags = libc::CLONE_PARENT.cast_unsigned().into(),
        Kin::Child => args.exit_signal = libc::SIGCHLD.cast_unsigned().into(),
    }
    // SAFETY: without CLONE_VM the copy has its own memory and goes on with the same stack, as after `fork`. There
    // is no other thread (`Single`), so nothing that it needs is locked. The C library is not told, and what it
    // remembers of its own thread number is used by neither the copy's stages nor `execve`.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of_val(&args)) };
    match i32::try_from(pid) {
        Ok(0) => Ok(Forked::Copy),
        Ok(pid) if pid > 0 => Ok(Forked::Here(Pid::from_raw(pid).expect("a process has a number"))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Every signal does again what it does by default.
pub(crate) fn default_signals() {
    /// At least as long as the kernel's `sigaction` is anywhere. All zeros are the default.
    static DEFAULT: [u64; 8] = [0; 8];
    for signal in 1..=SIGNAL_MAX {
        // Asked of the kernel itself: the C library keeps two signals out of everyone's reach, and a process that has
        // inherited them ignored would pass that on.
        //
        // SAFETY: the kernel only reads, and a default disposition runs none of our code. It refuses SIGKILL and
        // SIGSTOP, which cannot be anything else.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, &raw const DEFAULT, ptr::null::<u64>(), MASK_SIZE)
        };
    }
}

/// The last signal of Linux.
const SIGNAL_MAX: i32 = 64;

/// The bytes of the kernel's own signal mask.
const MASK_SIZE: usize = SIGNAL_MAX as usize / 8;

/// Holds back every signal that can be held back.
pub(crate) fn block_signals() -> io::Result<()> {
    set_mask(|mask| {
        // SAFETY: the mask is ours, and valid for writes.
        unsafe { libc::sigfillset(mask) }
    })
}

/// Holds back no signal.
pub(crate) fn unblock_signals() -> io::Result<()> {
    set_mask(|mask| {
        // SAFETY: the mask is ours, and valid for writes.
        unsafe { libc::sigemptyset(mask) }
    })
}

fn set_mask(fill: impl FnOnce(*mut libc::sigset_t) -> i32) -> io::Result<()> {
    // SAFETY: a mask is plain bits, for which all zeros are valid.
    let mut mask: libc::sigset_t = unsafe { mem::zeroed() };
    fill(&raw mut mask);
    // SAFETY: the mask is valid for reads, and the old one is not asked for.
    let done = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes everything but standard input, output and error, and those named.
///
/// This is for a copy of a process that never returns to where it came from: what owned the descriptors must not
/// be used, or dropped, any more.
pub(crate) fn close_all_but(keep: &mut [BorrowedFd<'_>]) -> io::Result<()> {
    keep.sort_by_key(AsRawFd::as_raw_fd);
    let mut from: RawFd = 3;
    for fd in keep {
        let fd = fd.as_raw_fd();
        if fd > from {
            close_range(from, fd - 1)?;
        }
        from = from.max(fd + 1);
    }
    close_range(from, RawFd::MAX)
}

fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    // SAFETY: it touches no memory. Nobody uses the closed descriptors again, see `close_all_but`.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, first.cast_unsigned(), last.cast_unsigned(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Becomes another program. Returns only if that failed.
pub(crate) fn exec(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both lists end with a null pointer, and everything in them ends with a zero and is borrowed until
    // after the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends at once: nothing is dropped, flushed or unwound.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: it is always allowed, and does not return.
    unsafe { libc::_exit(code) }
}
