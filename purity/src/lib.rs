//! The pure crates in a world without `std`.
//!
//! `std` brings a panic handler, and a program may have only one. This crate brings its own, so as
//! soon as any crate below it links `std`, the compiler refuses it: duplicate lang item `panic_impl`.
//! Without `std` there is no clock, no file, no environment, no thread and no process to reach.
#![no_std]

use core::panic::PanicInfo;

pub use kron_core;
pub use kron_schedule;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
