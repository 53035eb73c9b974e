//! Who answers. Each gets its own type of instant, ready made, so that converting costs nobody anything.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::str::FromStr;

use chrono::{DateTime, TimeZone, Utc};
use jiff::Timestamp;
use kron_schedule::{Dialect, Dst, Expr};

use crate::corpus::Zone;

pub(crate) const KRON: &str = "kron";

/// Some expressions and starts, ready to be asked by one crate.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    /// How many times one pass asks; 0 if the crate panicked when it was asked.
    pub(crate) asks: usize,
    /// Asks for the next occurrence of every expression after every start, once each.
    pub(crate) pass: Box<dyn Fn()>,
    /// The answers in the same order, as seconds of Unix time.
    pub(crate) answers: Vec<Option<i64>>,
    /// How many starts each expression is asked about.
    pub(crate) starts: usize,
}

/// It walks day by day and minute by minute, and would take minutes for what the others do in milliseconds.
const STARTS_OF_CRONEXPR: usize = 40;

/// As many of the starts as the crate is asked about.
pub(crate) fn starts_of<'s>(name: &str, starts: &'s [i64]) -> &'s [i64] {
    let count = if name == "cronexpr" { STARTS_OF_CRONEXPR } else { starts.len() };
    &starts[..count.min(starts.len())]
}

/// Everyone, Kron first.
pub(crate) const NAMES: [&str; 8] =
    [KRON, "croner", "cron", "cron-lite", "cron-parser", "cronexpr", "cronchik", "saffron"];

/// Nothing if that crate cannot read all of the expressions, or does not know the zone.
pub(crate) fn by_name(name: &str, expressions: &[&str], zone: Zone, starts: &[i64]) -> Option<Contestant> {
    match (name, zone) {
        (KRON, _) => kron(expressions, zone, starts),
        ("cronexpr", _) => cronexpr(expressions, zone, starts),
        ("cronchik", Zone::Utc) => cronchik(expressions, starts),
        ("saffron", Zone::Utc) => saffron(expressions, starts),
        (_, Zone::Utc) => zoned(name, expressions, &Utc, starts),
        (_, Zone::NewYork) => zoned(name, expressions, &chrono_tz::America::New_York, starts),
        (_, Zone::Paris) => zoned(name, expressions, &chrono_tz::Europe::Paris, starts),
        (_, Zone::LordHowe) => zoned(name, expressions, &chrono_tz::Australia::Lord_Howe, starts),
        (_, Zone::Kolkata) => zoned(name, expressions, &chrono_tz::Asia::Kolkata, starts),
        (_, Zone::Baghdad) => zoned(name, expressions, &chrono_tz::Asia::Baghdad, starts),
        (_, Zone::Scoresbysund) => zoned(name, expressions, &chrono_tz::America::Scoresbysund, starts),
    }
}

/// Reads an expression, and tells whether it could.
type Parser = fn(&str) -> bool;

/// What is measured for reading an expression: everything up to a form that can be asked.
pub(crate) const PARSERS: [(&str, Parser); 9] = [
    (KRON, |text| black_box(Expr::parse(text, Dialect::Ojs)).is_ok()),
    ("kron+compile", |text| {
        Expr::parse(text, Dialect::Ojs).is_ok_and(|expr| black_box(expr.compile(&utc(), Dst::KRON)).is_ok())
    }),
    ("croner", |text| black_box(croner::Cron::from_str(text)).is_ok()),
    ("cron", |text| black_box(cron::Schedule::from_str(text)).is_ok()),
    ("cron-lite", |text| black_box(cron_lite::Schedule::new(text)).is_ok()),
    ("cron-parser", |text| black_box(cron_parser::Schedule::parse(text)).is_ok()),
    ("cronexpr", |text| black_box(::cronexpr::parse_crontab(text)).is_ok()),
    ("cronchik", |text| black_box(cronchik::CronSchedule::parse_str(text)).is_ok()),
    ("saffron", |text| black_box(text.parse::<saffron::Cron>()).is_ok()),
];

/// The expression as the crate wants it spelled.
pub(crate) fn spelled(name: &str, text: &str) -> String {
    let fields: Vec<&str> = text.split(' ').collect();
    match (name, fields.len()) {
        // The second comes first, always.
        ("cron", 5) => format!("0 {text}"),
        // The zone comes last, always.
        ("cronexpr", _) => format!("{text} UTC"),
        // Of the two day fields, the one that does not matter is a question mark.
        ("cron-lite", count) => {
            let mut fields = fields;
            match (fields[count - 3], fields[count - 1]) {
                ("*", "*") => {}
                ("*", _) => fields[count - 3] = "?",
                (_, "*") => fields[count - 1] = "?",
                _ => {}
            }
            fields.join(" ")
        }
        _ => text.to_string(),
    }
}

fn utc() -> kron_schedule::Zone {
    static UTC: std::sync::LazyLock<kron_schedule::Zone> = std::sync::LazyLock::new(kron_schedule::Zone::utc);
    UTC.clone()
}

pub(crate) fn kron_zone(zone: Zone) -> kron_schedule::Zone {
    let zone = jiff::tz::TimeZone::get(zone.name()).expect("the database is bundled");
    kron_schedule::Zone::new(&zone).expect("the database is regular")
}

fn kron(expressions: &[&str], zone: Zone, starts: &[i64]) -> Option<Contestant> {
    let zone = kron_zone(zone);
    let read = |text: &str| Expr::parse(text, Dialect::Ojs).ok()?.compile(&zone, Dst::KRON).ok();
    let starts = starts.iter().map(|at| Timestamp::from_second(*at).expect("in range")).collect();
    contestant(
        KRON,
        expressions,
        read,
        starts,
        |schedule, start| schedule.next_after(*start),
        |answer| Some(answer?.as_second()),
    )
}

/// The peers that speak chrono.
fn zoned<Z>(name: &str, expressions: &[&str], zone: &Z, starts: &[i64]) -> Option<Contestant>
where
    Z: TimeZone + Copy + 'static,
    Z::Offset: Copy,
{
    let starts = starts.iter().map(|at| zone.timestamp_opt(*at, 0).unwrap()).collect::<Vec<DateTime<Z>>>();
    let seconds = |answer: Option<DateTime<Z>>| Some(answer?.timestamp());
    match name {
        "croner" => contestant(
            "croner",
            expressions,
            |text| croner::Cron::from_str(text).ok(),
            starts,
            |schedule, start| schedule.find_next_occurrence(start, false).ok(),
            seconds,
        ),
        "cron" => contestant(
            "cron",
            expressions,
            |text| cron::Schedule::from_str(text).ok(),
            starts,
            |schedule, start| schedule.after(start).next(),
            seconds,
        ),
        "cron-lite" => contestant(
            "cron-lite",
            expressions,
            |text| cron_lite::Schedule::new(text).ok(),
            starts,
            |schedule, start| schedule.upcoming(start),
            seconds,
        ),
        "cron-parser" => contestant(
            "cron-parser",
            expressions,
            |text| cron_parser::Schedule::parse(text).ok(),
            starts,
            |schedule, start| schedule.next_after(start),
            seconds,
        ),
        _ => None,
    }
}

fn cronexpr(expressions: &[&str], zone: Zone, starts: &[i64]) -> Option<Contestant> {
    contestant(
        "cronexpr",
        expressions,
        |text| ::cronexpr::parse_crontab(&text.replace("UTC", zone.name())).ok(),
        starts_of("cronexpr", starts)
            .iter()
            .map(|at| Timestamp::from_second(*at).expect("in range"))
            .collect(),
        |schedule, start| schedule.find_next(::cronexpr::MakeTimestamp(*start)),
        |answer| Some(answer.ok()?.timestamp().as_second()),
    )
}

fn cronchik(expressions: &[&str], starts: &[i64]) -> Option<Contestant> {
    let start = |at: &i64| time::OffsetDateTime::from_unix_timestamp(*at).expect("in range");
    contestant(
        "cronchik",
        expressions,
        |text| cronchik::CronSchedule::parse_str(text).ok(),
        starts.iter().map(start).collect(),
        |schedule, start| schedule.next_time_from(*start),
        |answer| Some(answer.unix_timestamp()),
    )
}

fn saffron(expressions: &[&str], starts: &[i64]) -> Option<Contestant> {
    contestant(
        "saffron",
        expressions,
        |text| text.parse::<saffron::Cron>().ok(),
        starts.iter().map(|at| Utc.timestamp_opt(*at, 0).unwrap()).collect(),
        |schedule, start| schedule.next_after(*start),
        |answer| Some(answer?.timestamp()),
    )
}

fn contestant<S: 'static, T: 'static, R: 'static>(
    name: &'static str,
    expressions: &[&str],
    read: impl Fn(&str) -> Option<S>,
    starts: Vec<T>,
    next: impl Fn(&S, &T) -> R + 'static,
    seconds: impl Fn(R) -> Option<i64>,
) -> Option<Contestant> {
    let schedules = expressions.iter().map(|text| read(&spelled(name, text))).collect::<Option<Vec<S>>>()?;
    let ask = || schedules.iter().flat_map(|s| starts.iter().map(|t| seconds(next(s, t)))).collect();
    let Ok(answers) = quietly(ask) else {
        return Some(Contestant { name, asks: 0, pass: Box::new(|| ()), answers: Vec::new(), starts: 1 });
    };
    let count = starts.len();
    let pass = move || {
        for schedule in &schedules {
            for start in &starts {
                // By reference, because a copy of an answer that was only just written makes the processor wait.
                black_box(&next(black_box(schedule), black_box(start)));
            }
        }
    };
    Some(Contestant { name, asks: answers.len(), pass: Box::new(pass), answers, starts: count })
}

/// Some peers panic on what they cannot answer. That is an outcome, and needs no backtrace.
fn quietly(ask: impl FnOnce() -> Vec<Option<i64>>) -> std::thread::Result<Vec<Option<i64>>> {
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let answers = catch_unwind(AssertUnwindSafe(ask));
    set_hook(hook);
    answers
}

/// Lists so many occurrences from a start; the last is what came of it.
pub(crate) type Listing = (&'static str, Box<dyn Fn() -> Option<i64>>);

/// Kron and the two crates that are fastest at one occurrence, in UTC.
pub(crate) fn listings(expression: &str, start: i64, count: usize) -> Vec<Listing> {
    let schedule = Expr::parse(expression, Dialect::Ojs).ok();
    let kron = schedule.and_then(|expr| expr.compile(&utc(), Dst::KRON).ok()).map(|schedule| {
        let start = Timestamp::from_second(start).expect("in range");
        let list = move || {
            let listed = black_box(&schedule).occurrences_after(start).take(count);
            listed.inspect(|at| _ = black_box(at.as_second())).last().map(|at| at.as_second())
        };
        (KRON, Box::new(list) as Box<dyn Fn() -> Option<i64>>)
    });
    let cronchik = cronchik::CronSchedule::parse_str(expression).ok().map(|schedule| {
        let start = time::OffsetDateTime::from_unix_timestamp(start).expect("in range");
        let list = move || {
            let last = (0..count).fold(start, |at, _| black_box(&schedule).next_time_from(at));
            Some(last.unix_timestamp())
        };
        ("cronchik", Box::new(list) as Box<dyn Fn() -> Option<i64>>)
    });
    let saffron = expression.parse::<saffron::Cron>().ok().map(|schedule| {
        let start = Utc.timestamp_opt(start, 0).unwrap();
        let list = move || {
            let last = (0..count).try_fold(start, |at, _| black_box(&schedule).next_after(at));
            last.map(|at| at.timestamp())
        };
        ("saffron", Box::new(list) as Box<dyn Fn() -> Option<i64>>)
    });
    [kron, cronchik, saffron].into_iter().flatten().collect()
}
