//! krond beside Debian's cron and a bare loop of posix_spawn: many jobs in one second, and a million that are idle.
//!
//! ```text
//! kron-bench-krond KROND burst [COUNT...]
//! kron-bench-krond KROND idle [COUNT]
//! ```

#![allow(clippy::disallowed_methods, reason = "time is what is measured")]

mod burst;
mod idle;
mod process;

use std::path::Path;
use std::process::ExitCode;

/// How many jobs are due in one second, unless said.
const BURSTS: [usize; 2] = [1_000, 10_000];
/// How many do nothing, unless said.
const IDLE: usize = 1_000_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((krond, rest)) = words.split_first() else { return usage() };
    let (part, counts) =
        rest.split_first().map_or(("burst", &[][..]), |(part, counts)| (part.as_str(), counts));
    let Ok(counts) = counts.iter().map(|word| word.parse()).collect::<Result<Vec<usize>, _>>() else {
        return usage();
    };
    let krond = Path::new(krond);
    match part {
        "burst" => burst::measure(krond, if counts.is_empty() { &BURSTS } else { &counts }),
        "idle" => idle::measure(krond, counts.first().copied().unwrap_or(IDLE)),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: kron-bench-krond KROND [burst [COUNT...] | idle [COUNT]]");
    ExitCode::from(2)
}
