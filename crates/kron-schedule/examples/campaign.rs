//! Random cases by the million: the crate against a slow oracle, on every core.
//!
//! ```text
//! cargo run --release -p kron-schedule --example campaign -- --cases 10000000 --seed 1
//! ```
//!
//! A case is an expression, a zone, a policy and a start; the same seed makes the same cases on any
//! number of cores. Exits 1 with the smallest form of the first disagreement, 2 if not understood.

// The generator, the oracle and the comparison are those of the tests.
#[path = "../tests/it/compare.rs"]
mod compare;
#[path = "../tests/it/generator.rs"]
#[expect(dead_code, reason = "the tests ask for single zones and take their seed from the environment")]
mod generator;
#[path = "../tests/it/oracle.rs"]
#[expect(dead_code, reason = "the tests also ask for every so many days")]
mod oracle;
#[path = "../tests/it/shrink.rs"]
mod shrink;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use compare::{Disagreement, first_disagreement};

/// How many cases a core takes at a time: about a second's worth.
const CHUNK: u64 = 10_000;

fn main() -> ExitCode {
    let Some((cases, seed)) = arguments() else {
        eprintln!("usage: campaign [--cases N] [--seed S]");
        return ExitCode::from(2);
    };
    match run(cases, seed) {
        Ok(()) => {
            println!("{cases} cases, 0 disagreements, seed {seed}");
            ExitCode::SUCCESS
        }
        Err(disagreement) => {
            println!("{disagreement}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Option<(u64, u64)> {
    let (mut cases, mut seed) = (1_000_000, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next()?.parse().ok()?;
        match name.as_str() {
            "--cases" => cases = value,
            "--seed" => seed = value,
            _ => return None,
        }
    }
    Some((cases, seed))
}

fn run(cases: u64, seed: u64) -> Result<(), Disagreement> {
    let zones = generator::zones();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let found = Mutex::new(None);
    let work = || {
        loop {
            let begin = next.fetch_add(CHUNK, Ordering::Relaxed);
            if begin >= cases || found.lock().expect("nobody panics with the lock").is_some() {
                return;
            }
            let numbers = begin..cases.min(begin + CHUNK);
            let size = numbers.end - begin;
            if let Err(disagreement) = first_disagreement(seed, numbers, &zones) {
                *found.lock().expect("nobody panics with the lock") = Some(disagreement);
            }
            progress(done.fetch_add(size, Ordering::Relaxed) + size, cases);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    found.into_inner().expect("nobody panics with the lock").map_or(Ok(()), Err)
}

fn progress(done: u64, cases: u64) {
    if std::io::stderr().is_terminal() {
        let end = if done >= cases { '\n' } else { '\r' };
        eprint!("{done} of {cases} cases{end}");
    }
}
