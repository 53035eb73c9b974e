//! Kron beside its peers: one process, interleaved batches, thread CPU time, the best of several.
//!
//! Reading order: `corpus` is what is asked, `contestant` who answers, `trial` who does so in time, `measure` how long it takes,
//! `report` what is printed, `languages` compares with other languages, and `count` is what callgrind counts.

mod contestant;
mod corpus;
mod count;
mod languages;
mod measure;
mod report;
mod trial;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["schedule", "text"] => print!("{}", report::text(&measure::everything())),
        ["schedule", "json"] => print!("{}", report::json(&measure::everything())),
        ["trial", name, zone, starts, ref expressions @ ..] => trial::ask(name, zone, starts, expressions),
        ["languages", ..] => languages::compare(&args[1..]),
        ["count"] => count::contestants(),
        ["count", who] => count::run(who),
        _ => {
            eprintln!(
                "usage: kron-bench schedule text|json, kron-bench languages PROGRAM..., kron-bench count [WHO] (scripts/bench calls it)"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
