//! Sentences: the golden ones, word for word, and that no two meanings share one.

use std::collections::HashMap;
use std::fmt::Write;

use jiff::Timestamp;
use kron_schedule::{Dialect, Expr, Zone};

use crate::generator::{Random, expression, seed};

/// `expression | dialect | sentence`, by kind of construct.
const GOLDEN: &str = include_str!("data/describe.txt");

#[test]
fn sentences_are_as_written_down() {
    let mut wrong = String::new();
    for row in GOLDEN.lines().filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let [text, dialect, sentence] = row.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("three columns: {row}");
        };
        let dialect = Dialect::ALL.into_iter().find(|known| known.name() == dialect).expect("a dialect");
        let described = match Expr::parse(text, dialect) {
            Ok(expr) => expr.describe(),
            Err(error) => error.to_string(),
        };
        if described != sentence {
            writeln!(wrong, "{text} | {dialect}\n  golden:    {sentence}\n  described: {described}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const CASES: u64 = 50_000;

#[test]
fn random_expressions_with_one_sentence_mean_the_same() {
    let mut sentences = Sentences::default();
    let seed = seed();
    for case in 0..CASES {
        let mut random = Random::of_case(seed, case);
        let dialect = *random.pick(&Dialect::ALL);
        sentences.add(&expression(&mut random, dialect), dialect);
    }
}

/// Neighbours, which a careless sentence would confuse: whole fields spelled in several ways, steps
/// that come out even and steps that do not, with and without their first and last value.
const SEXAGESIMAL: [&str; 18] = [
    "*", "0-59", "0-58", "1-59", "0", "30", "0,30", "*/30", "*/7", "0-49/7", "7-56/7", "*/10", "*/10,5",
    "5-55/10", "5-45/10", "0-10", "0-10,30", "*/45",
];
const HOURS: [&str; 17] = [
    "*",
    "0-23",
    "0-22",
    "1-23",
    "9",
    "0",
    "0,12",
    "*/12",
    "*/5",
    "*/2",
    "0-20/2",
    "1-23/2",
    "9-17",
    "9-12",
    "9-12,14",
    "8-10,14-16",
    "9,17",
];
const DAYS: [&str; 20] = [
    "*", "1-31", "1-30", "2-31", "1", "1,15", "15W", "1W,15W", "1,15W", "L", "1,L", "LW", "L,LW", "*/2",
    "1-29/2", "*/10", "1-7", "1-7,L", "1-3,10", "*,L",
];
const MONTHS: [&str; 12] =
    ["*", "1-12", "1-11", "2-12", "1", "1,7", "*/3", "*/2", "3-6", "11,12,1,2", "1-3,7", "12"];
const WEEKDAYS: [&str; 20] = [
    "*", "0-6", "*/1", "1-5", "0,6", "1-6", "0-5", "5-7", "6,0,1", "1", "0", "1,5", "1-3,5", "5#3", "5L",
    "5#1,5#3", "1,5#3", "1#1,5#1", "5#5", "1-5,6#1",
];

#[test]
fn times_with_one_sentence_mean_the_same() {
    let mut sentences = Sentences::default();
    for second in SEXAGESIMAL {
        for minute in SEXAGESIMAL {
            for hour in HOURS {
                sentences.add(&format!("{second} {minute} {hour} * * *"), Dialect::Ojs);
            }
        }
    }
}

#[test]
fn days_with_one_sentence_mean_the_same() {
    let mut sentences = Sentences::default();
    for day in DAYS {
        for month in MONTHS {
            for weekday in WEEKDAYS {
                sentences.add(&format!("0 9 {day} {month} {weekday}"), Dialect::Ojs);
            }
        }
    }
}

#[test]
fn every_set_of_weekdays_and_of_months_has_its_own_sentence() {
    let text = |values: u32, min: u32| {
        let members: Vec<String> =
            (0..12).filter(|n| values >> n & 1 == 1).map(|n| (n + min).to_string()).collect();
        members.join(",")
    };
    let describe = |text: String| Expr::parse(&text, Dialect::Ojs).unwrap().describe();
    let mut sentences: Vec<String> =
        (1..1 << 7).map(|set| describe(format!("0 9 * * {}", text(set, 0)))).collect();
    sentences.extend((1..(1 << 12) - 1).map(|set| describe(format!("0 9 * {} *", text(set, 1)))));
    let count = sentences.len();
    sentences.sort();
    sentences.dedup();
    assert_eq!(sentences.len(), count);
}

/// The sentences seen so far, each with the expressions that have it, one per canonical spelling.
#[derive(Default)]
struct Sentences(HashMap<String, Vec<Expr>>);

impl Sentences {
    fn add(&mut self, text: &str, dialect: Dialect) {
        let expr = Expr::parse(text, dialect).unwrap_or_else(|error| panic!("{text}: {error}"));
        let sentence = expr.describe();
        let same = self.0.entry(sentence).or_default();
        if same.iter().any(|known| known.to_string() == expr.to_string()) {
            return;
        }
        if let Some(first) = same.first() {
            assert_eq!(meaning(first), meaning(&expr), "{first} and {expr}: {}", expr.describe());
        }
        same.push(expr);
    }
}

/// What it answers when asked throughout its first day, every 61 seconds so that each second of a
/// minute has its turn, and then each day of four years. Nothing if it can never match.
fn meaning(expr: &Expr) -> Vec<Option<Timestamp>> {
    const DAY: i64 = 86_400;
    let Ok(schedule) = expr.compile(&Zone::utc(), Dialect::Ojs.default_dst()) else {
        return Vec::new();
    };
    let after = |second| schedule.next_after(Timestamp::from_second(second).unwrap());
    let start = "2023-12-31T23:59:59Z".parse::<Timestamp>().unwrap().as_second();
    let first = after(start).map_or(start, Timestamp::as_second) / DAY * DAY - 1;
    let times = (first..first + DAY).step_by(61);
    let days = (start..start + 1_461 * DAY).step_by(86_400);
    times.chain(days).map(after).collect()
}
