//! Histories by the million, on every core.
//!
//! ```text
//! cargo run --release -p kron-sim --example campaign -- --periods 50000000 --seed 1
//! cargo run --release -p kron-sim --example campaign -- --seed 17 --trace
//! ```
//!
//! Seeds are taken in order, so the same range is the same campaign on any number of cores. Exits 1 with the
//! first seed that broke a promise, 2 if not understood.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kron_sim::{Plant, Tally, Verdict, run_with};

/// How many histories a core takes at a time: well below a second's worth.
const CHUNK: u64 = 100;

/// After how many periods it is told how far it is, where nobody looks at a terminal: a minute or two.
const TOLD_EVERY: u64 = 10_000_000;

struct Options {
    seed: u64,
    periods: u64,
    histories: u64,
    how: kron_sim::Options,
}

fn main() -> ExitCode {
    let Some(options) = arguments() else {
        eprintln!(
            "usage: campaign [--seed N] [--periods N | --histories N] [--plant M1..M12] [--duplicates-only] [--trace]"
        );
        return ExitCode::from(2);
    };
    if options.how.trace {
        let verdict = run_with(options.seed, options.how);
        for line in &verdict.trace {
            println!("{line}");
        }
        print!("{}", verdict.tally);
        return judge(&verdict);
    }
    campaign(&options)
}

fn campaign(options: &Options) -> ExitCode {
    let next = AtomicU64::new(options.seed);
    let total = Mutex::new((Tally::default(), None::<Verdict>));
    let work = || {
        loop {
            let begin = next.fetch_add(CHUNK, Ordering::Relaxed);
            let mut tally = Tally::default();
            let mut failed = None;
            for seed in begin..begin + CHUNK {
                let verdict = run_with(seed, options.how);
                tally += verdict.tally;
                if verdict.violation.is_some() {
                    failed = Some(verdict);
                    break;
                }
            }
            let mut total = total.lock().expect("nobody panics with the lock");
            let before = total.0.periods;
            total.0 += tally;
            if let Some(failed) = failed
                && total.1.as_ref().is_none_or(|first| failed.seed < first.seed)
            {
                total.1 = Some(failed);
            }
            progress(&total.0, before, options);
            let is_enough = total.0.periods >= options.periods || total.0.histories >= options.histories;
            if is_enough || total.1.is_some() {
                return;
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let (tally, failed) = total.into_inner().expect("nobody panics with the lock");
    print!("{tally}");
    match failed {
        Some(verdict) => judge(&verdict),
        None => {
            let last = options.seed + tally.histories - 1;
            println!("0 duplicates, 0 lost, no promise broken; seeds {} to {last}", options.seed);
            ExitCode::SUCCESS
        }
    }
}

fn judge(verdict: &Verdict) -> ExitCode {
    match &verdict.violation {
        Some(violation) => {
            println!("seed {} broke a promise: {violation}", verdict.seed);
            println!("replay it with: scripts/campaign sim --seed {} --trace", verdict.seed);
            ExitCode::FAILURE
        }
        None => {
            println!("seed {}: no promise broken; trace {:016x}", verdict.seed, verdict.hash);
            ExitCode::SUCCESS
        }
    }
}

fn arguments() -> Option<Options> {
    let how = kron_sim::Options::default();
    let mut options = Options { seed: 1, periods: 1_000_000, histories: u64::MAX, how };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--trace" => {
                options.how.trace = true;
                continue;
            }
            "--duplicates-only" => {
                options.how.duplicates_only = true;
                continue;
            }
            _ => {}
        }
        let value = arguments.next()?;
        match name.as_str() {
            "--seed" => options.seed = value.parse().ok()?,
            "--periods" => options.periods = value.parse().ok()?,
            "--histories" => {
                options.histories = value.parse().ok()?;
                options.periods = u64::MAX;
            }
            "--plant" => {
                options.how.plant = Some(Plant::ALL.into_iter().find(|plant| plant.name() == value)?);
            }
            _ => return None,
        }
    }
    Some(options)
}

fn progress(tally: &Tally, before: u64, options: &Options) {
    let of = if options.periods == u64::MAX { String::new() } else { format!(" of {}", options.periods) };
    let line = format!("{} histories, {}{of} periods", tally.histories, tally.periods);
    if std::io::stderr().is_terminal() {
        eprint!("{line}\r");
    } else if tally.periods / TOLD_EVERY > before / TOLD_EVERY {
        eprintln!("{line}");
    }
}
