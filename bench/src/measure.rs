//! How long it takes. Thread CPU time, so that what else the machine does is not counted.

use rustix::time::{ClockId, clock_gettime};

use crate::contestant::{self, Contestant, KRON, PARSERS, spelled};
use crate::corpus::{CASES, CLASSES, Goal, Zone, random_starts};
use crate::trial;

/// One line of the table: what Kron takes, and what each peer takes for the same.
pub(crate) struct Row {
    pub(crate) part: &'static str,
    pub(crate) name: String,
    pub(crate) kron: f64,
    pub(crate) peers: Vec<(&'static str, Outcome)>,
    /// Against the fastest peer; `None` where no goal is set.
    pub(crate) goal: Option<Goal>,
}

pub(crate) enum Outcome {
    /// Nanoseconds.
    Took(f64),
    /// It panicked when it was asked.
    Panics,
    /// Its answers are others, so its time says nothing.
    Differs,
    /// It was ended after so many nanoseconds for each answer.
    TookOver(f64),
}

/// Batches of each contestant; the best counts.
const BATCHES: usize = 7;
/// A batch repeats a pass until it takes about this long.
const BATCH_NANOS: f64 = 4e6;
const STARTS: usize = 1_000;
/// A peer whose first pass takes longer than this has fewer batches.
const SLOW_NANOS: f64 = 1e8;
const BATCHES_OF_SLOW: usize = 1;
/// How many occurrences a list has.
pub(crate) const LISTED: usize = 1_000;
/// What is listed, and how many times faster than the fastest peer.
pub(crate) const LISTS: [(&str, f64); 4] =
    [("* * * * *", 200.0), ("*/5 * * * *", 200.0), ("0 9 * * MON-FRI", 30.0), ("0 0 1 * *", 9.0)];

pub(crate) fn everything() -> Vec<Row> {
    let starts = random_starts(STARTS);
    let mut rows = Vec::new();
    for zone in Zone::ALL {
        let goal = usize::from(zone != Zone::Utc);
        for class in &CLASSES {
            let (contestants, slow) = trial::all(class.expressions, zone, &starts);
            let name = format!("{} {}", class.name, zone.name());
            rows.push(row("next", name, &contestants, slow, Some(class.goals[goal])));
        }
    }
    for case in &CASES {
        let start: jiff::Timestamp = case.start.parse().expect("an instant");
        let (contestants, slow) = trial::all(&[case.expression], case.zone, &[start.as_second()]);
        let name = format!("{} ({})", case.name, case.expression);
        // What Kron refuses when it is compiled, it is never asked; then refusing is what counts.
        let asked = contestants.first().is_some_and(|c| c.name == KRON);
        let contestants = if asked { contestants } else { with_refusal(case.expression, contestants) };
        rows.push(row("worst", name, &contestants, slow, None));
    }
    rows.extend(list());
    rows.extend(parse());
    rows
}

/// Occurrences in a row, from the same start.
fn list() -> Vec<Row> {
    let start = random_starts(1)[0];
    let lists = LISTS.iter().map(|(expression, ratio)| {
        let listings = contestant::listings(expression, start, LISTED);
        let answers: Vec<Option<i64>> = listings.iter().map(|(_, list)| list()).collect();
        let passes: Vec<Box<dyn Fn()>> = listings
            .into_iter()
            .map(|(_, list)| {
                Box::new(move || assert!(std::hint::black_box(list()).is_some())) as Box<dyn Fn()>
            })
            .collect();
        let names = ["cronchik", "saffron"];
        let times = best(&passes.iter().map(|pass| (&**pass, LISTED)).collect::<Vec<_>>());
        let peers = names.iter().zip(times[1..].iter().zip(&answers[1..])).map(|(name, (time, answer))| {
            (*name, if *answer == answers[0] { Outcome::Took(*time) } else { Outcome::Differs })
        });
        let goal = Some(Goal { name: "G7", ratio: *ratio });
        Row { part: "list", name: (*expression).to_string(), kron: times[0], peers: peers.collect(), goal }
    });
    lists.collect()
}

fn with_refusal(expression: &'static str, peers: Vec<Contestant>) -> Vec<Contestant> {
    let zone = kron_schedule::Zone::utc();
    let refuse = move || {
        let expr = kron_schedule::Expr::parse(expression, kron_schedule::Dialect::Ojs);
        let refused = expr.is_ok_and(|expr| expr.compile(&zone, kron_schedule::Dst::KRON).is_err());
        assert!(std::hint::black_box(refused));
    };
    let kron = Contestant { name: KRON, asks: 1, pass: Box::new(refuse), answers: vec![None], starts: 1 };
    std::iter::once(kron).chain(peers).collect()
}

fn row(
    part: &'static str,
    name: String,
    contestants: &[Contestant],
    slow: Vec<(&'static str, Outcome)>,
    goal: Option<Goal>,
) -> Row {
    let (kron, peers) = contestants.split_first().expect("Kron reads everything in the corpus");
    assert_eq!(kron.name, KRON, "Kron reads {name}");
    let passes: Vec<(&dyn Fn(), usize)> = contestants.iter().map(|c| (&*c.pass, c.asks)).collect();
    let times = best(&passes);
    // In the worst cases the peers' answers are known to differ; that is why they are there.
    let agrees = |peer: &Contestant| part == "worst" || differing(kron, peer) * 20 <= peer.asks;
    let peers = peers.iter().zip(&times[1..]).map(|(peer, time)| {
        let outcome = match peer.asks {
            0 => Outcome::Panics,
            _ if agrees(peer) => Outcome::Took(*time),
            _ => Outcome::Differs,
        };
        (peer.name, outcome)
    });
    Row { part, name, kron: times[0], peers: peers.chain(slow).collect(), goal }
}

fn differing(kron: &Contestant, peer: &Contestant) -> usize {
    let by_kron = |ask: usize| kron.answers[ask / peer.starts * kron.starts + ask % peer.starts];
    peer.answers.iter().enumerate().filter(|(ask, answer)| by_kron(*ask) != **answer).count()
}

/// Reading: each peer against Kron on the expressions that both can read.
fn parse() -> Vec<Row> {
    let goal = |name: &str| (name == "saffron").then_some(Goal { name: "G5", ratio: 1.0 });
    let corpus: Vec<&str> = CLASSES.iter().flat_map(|class| class.expressions).copied().collect();
    let (kron, peers) = PARSERS.split_first().expect("Kron is first");
    peers
        .iter()
        .map(|(name, read)| {
            let pairs: Vec<(String, &str)> =
                corpus.iter().map(|text| (spelled(name, text), *text)).filter(|(own, _)| read(own)).collect();
            let by_kron = || pairs.iter().for_each(|(_, text)| assert!((kron.1)(text)));
            let by_peer = || pairs.iter().for_each(|(own, _)| assert!(read(own)));
            let times = best(&[(&by_kron, pairs.len()), (&by_peer, pairs.len())]);
            let count = format!("{name}: {} of {} expressions", pairs.len(), corpus.len());
            Row {
                part: "parse",
                name: count,
                kron: times[0],
                peers: vec![(*name, Outcome::Took(times[1]))],
                goal: goal(name),
            }
        })
        .collect()
}

/// The best nanoseconds per ask of each. The batches take turns, so that a slow moment hits all alike.
pub(crate) fn best(passes: &[(&dyn Fn(), usize)]) -> Vec<f64> {
    let repeats: Vec<u32> = passes
        .iter()
        .map(|(pass, _)| {
            pass(); // warms up
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let repeats = (BATCH_NANOS / timed(pass, 1)).clamp(1.0, 1e6) as u32;
            repeats
        })
        .collect();
    let mut best = vec![f64::INFINITY; passes.len()];
    for batch in 0..BATCHES {
        for (((pass, asks), repeats), best) in passes.iter().zip(&repeats).zip(&mut best) {
            if batch >= BATCHES_OF_SLOW && *best * *asks as f64 > SLOW_NANOS {
                continue;
            }
            let per_ask = timed(pass, *repeats) / f64::from(*repeats) / *asks as f64;
            *best = best.min(per_ask);
        }
    }
    best
}

fn timed(pass: &dyn Fn(), repeats: u32) -> f64 {
    let begin = thread_nanos();
    for _ in 0..repeats {
        pass();
    }
    (thread_nanos() - begin).max(1) as f64
}

fn thread_nanos() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
