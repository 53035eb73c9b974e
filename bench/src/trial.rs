//! Some peers take minutes for a few answers, or never give them. So each is first asked in a process of its own, and
//! that is ended after [`BUDGET`] seconds of processor time.

use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::contestant::{self, Contestant, KRON, NAMES};
use crate::corpus::Zone;
use crate::measure::Outcome;

/// Seconds for all answers to one row.
const BUDGET: u64 = 1;

/// All crates that can read all of the expressions, Kron first, and those that take too long for their answers.
pub(crate) fn all(
    expressions: &[&str],
    zone: Zone,
    starts: &[i64],
) -> (Vec<Contestant>, Vec<(&'static str, Outcome)>) {
    let (mut contestants, mut slow) = (Vec::new(), Vec::new());
    for name in NAMES {
        if name == KRON || ends(name, expressions, zone, starts) {
            contestants.extend(contestant::by_name(name, expressions, zone, starts));
        } else {
            let asks = expressions.len() * contestant::starts_of(name, starts).len();
            slow.push((name, Outcome::TookOver(BUDGET as f64 * 1e9 / asks as f64)));
        }
    }
    (contestants, slow)
}

/// Whether the peer answers in time.
fn ends(name: &str, expressions: &[&str], zone: Zone, starts: &[i64]) -> bool {
    let starts = starts.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["trial", name, zone.name(), &starts]).args(expressions);
    let status = command.stdin(Stdio::null()).status().expect("this program can be started");
    status.success()
}

/// What [`ends`] starts: asks once for everything.
pub(crate) fn ask(name: &str, zone: &str, starts: &str, expressions: &[&str]) {
    let limit = Rlimit { current: Some(BUDGET), maximum: Some(BUDGET) };
    setrlimit(Resource::Cpu, limit).expect("a process may limit itself");
    let zone = Zone::by_name(zone).expect("a zone of the corpus");
    let starts: Vec<i64> = starts.split(',').map(|at| at.parse().expect("a second")).collect();
    contestant::by_name(name, expressions, zone, &starts);
}
