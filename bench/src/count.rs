//! What callgrind counts, so that the numbers are exact. scripts/bench runs valgrind.

use jiff::Timestamp;

use crate::contestant::{self, KRON, PARSERS, spelled};
use crate::corpus::{CASES, CLASSES, Zone, random_starts};
use crate::measure::{LISTED, LISTS};

/// From how many moments an ordinary search is made, so that what surrounds it hardly counts.
const STARTS: usize = 50;

/// Makes each call that the contestant can make, and tells its name and how many times it was made: those that were
/// counted, in order, and then those that Kron refuses.
pub(crate) fn run(who: &str) {
    let (counted, refused): (Vec<_>, Vec<_>) = calls()
        .into_iter()
        .filter_map(|call| Some((call.made_by(who)?, call.name)))
        .partition(|(made, _)| *made != Made::Refused);
    for (made, name) in counted.iter().chain(&refused) {
        match made {
            Made::Counted(times) => println!("{name}|{times}|"),
            Made::Refused => println!("{name}|0|refused when it is compiled"),
        }
    }
}

/// Kron and its peers.
pub(crate) fn contestants() {
    for (name, _) in PARSERS.iter().filter(|(name, _)| *name != "kron+compile") {
        println!("{name}");
    }
}

#[derive(PartialEq)]
enum Made {
    /// So many times.
    Counted(usize),
    /// There is nothing to ask.
    Refused,
}

struct Call {
    name: String,
    expression: &'static str,
    what: What,
}

enum What {
    /// The next occurrence in a zone after each of some instants.
    Next(Zone, Vec<i64>),
    /// Occurrences in a row, in UTC.
    List,
    /// From text to something that can be asked, in UTC.
    Parse,
}

/// The worst cases, lists, and the first expression of each class: from ordinary moments, and from its text.
fn calls() -> Vec<Call> {
    let instant = |text: &str| text.parse::<Timestamp>().expect("an instant").as_second();
    let worst = CASES.iter().map(|case| Call {
        name: case.name.to_string(),
        expression: case.expression,
        what: What::Next(case.zone, vec![instant(case.start)]),
    });
    let next = CLASSES.iter().flat_map(|class| {
        [Zone::Utc, Zone::NewYork].map(|zone| Call {
            name: format!("{} {}", class.name, zone.name()),
            expression: class.expressions[0],
            what: What::Next(zone, random_starts(STARTS)),
        })
    });
    let parse = CLASSES.iter().map(|class| Call {
        name: format!("{} parse", class.name),
        expression: class.expressions[0],
        what: What::Parse,
    });
    let list = LISTS.iter().map(|(expression, _)| Call {
        name: format!("{expression} list"),
        expression,
        what: What::List,
    });
    worst.chain(next).chain(list).chain(parse).collect()
}

impl Call {
    /// Nothing if that contestant cannot make the call.
    fn made_by(&self, who: &str) -> Option<Made> {
        match &self.what {
            What::Next(zone, starts) => {
                let Some(contestant) = contestant::by_name(who, &[self.expression], *zone, starts) else {
                    return (who == KRON).then_some(Made::Refused);
                };
                if contestant.asks == 0 {
                    return None; // it panics
                }
                measured(&*contestant.pass);
                Some(Made::Counted(contestant.asks))
            }
            What::List => {
                let listings = contestant::listings(self.expression, random_starts(1)[0], LISTED);
                let (_, list) = listings.into_iter().find(|(name, _)| *name == who)?;
                measured(&|| assert!(list().is_some()));
                Some(Made::Counted(LISTED))
            }
            What::Parse => {
                let (name, read) = PARSERS.iter().find(|(name, _)| *name == who)?;
                let text = spelled(name, self.expression);
                // Once before, so that what is made only once is there.
                if !read(&text) {
                    return None;
                }
                measured(&|| assert!(read(&text)));
                Some(Made::Counted(1))
            }
        }
    }
}

fn measured(call: &dyn Fn()) {
    kron_bench_measured(&call);
}

/// Callgrind collects while this runs.
#[inline(never)]
#[expect(unsafe_code, reason = "valgrind finds it by its name")]
#[unsafe(no_mangle)]
extern "C" fn kron_bench_measured(call: &&dyn Fn()) {
    call();
}
