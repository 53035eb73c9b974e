//! The tables in `data/`: known lines with known answers, readable by anyone who knows cron.
//!
//! Every row that fails is reported, not only the first. The oracle is asked too, so that a row and
//! the crate cannot be wrong together unless a third opinion is.

use jiff::{SignedDuration, Timestamp};
use kron_schedule::{Dialect, Dst, Expr, Fold, Gap, ParseError, Schedule};

use crate::compare::{Answers, floor, timestamp};
use crate::generator::NamedZone;
use crate::oracle::Oracle;

#[test]
fn next_occurrences() {
    report("next.txt", include_str!("data/next.txt"), |row| {
        row.follow(|answers, at| {
            let next = answers.next_after(at);
            (next, next)
        })
    });
}

#[test]
fn previous_occurrences() {
    report("prev.txt", include_str!("data/prev.txt"), |row| {
        row.follow(|answers, at| {
            let prev = answers.prev_at_or_before(at);
            (prev, prev.map(|prev| prev - SignedDuration::from_nanos(1)))
        })
    });
}

#[test]
fn canonical_forms() {
    report("parse.txt", include_str!("data/parse.txt"), |row| match Expr::parse(row.line(), row.dialect()) {
        Err(error) => row.expect(&format!("error: {error}")),
        Ok(expr) => {
            let printed = expr.to_string();
            row.expect(&printed)?;
            match Expr::parse(&printed, row.dialect()) {
                Ok(again) if again == expr => Ok(()),
                again => Err(format!("parsed again it is {again:?}")),
            }
        }
    });
}

/// One line of a table: its number, and its columns.
struct Row<'t>(usize, Vec<&'t str>);

/// Tries all rows, and fails with all failures.
fn report(table: &str, text: &str, check: impl Fn(&Row<'_>) -> Result<(), String>) {
    let failures: Vec<String> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        // `#` is also a sign of cron; a comment has blanks around it.
        .map(|(number, line)| (number, line.split(" # ").next().unwrap_or(line)))
        .map(|(number, line)| Row(number, line.split('|').map(str::trim).collect()))
        .filter_map(|row| Some((check(&row).err()?, row)))
        .map(|(why, Row(number, columns))| format!("{table}:{number}: {}\n    {why}", columns.join(" | ")))
        .collect();
    assert!(failures.is_empty(), "{} rows fail\n{}", failures.len(), failures.join("\n"));
}

impl Row<'_> {
    fn line(&self) -> &str {
        self.1[0]
    }

    fn dialect(&self) -> Dialect {
        let name = self.1[1];
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name).expect("a dialect's name")
    }

    /// The dialect's policy, with what the row says instead.
    fn dst(&self) -> Dst {
        let mut dst = self.dialect().default_dst();
        for part in self.1[3].split(',').filter(|part| !part.is_empty()) {
            match part {
                "gap=skip" => dst.gap = Gap::Skip,
                "gap=after" => dst.gap = Gap::After,
                "fold=auto" => dst.fold = Fold::Auto,
                "fold=both" => dst.fold = Fold::Both,
                "fold=first" => dst.fold = Fold::First,
                other => panic!("row {}: no policy is called {other}", self.0),
            }
        }
        dst
    }

    fn schedule(&self, zone: &NamedZone) -> Result<Schedule, ParseError> {
        Expr::parse(self.line(), self.dialect())?.compile(&zone.kron, self.dst())
    }

    /// The last column.
    fn answer(&self) -> &str {
        self.1[self.1.len() - 1]
    }

    fn expect(&self, found: &str) -> Result<(), String> {
        if found == self.answer() { Ok(()) } else { Err(format!("found {found}")) }
    }

    /// Goes from one instant of the last column to the next, with the schedule and with the oracle.
    /// A step gives an answer and where to ask from next.
    fn follow(&self, step: Step) -> Result<(), String> {
        let zone = NamedZone::get(self.1[2]);
        let schedule = match self.schedule(&zone) {
            Ok(schedule) => schedule,
            Err(error) => return self.expect(&format!("error: {error}")),
        };
        self.compare(&zone, &schedule, step)?;
        if self.line().starts_with("@every") {
            return Ok(()); // the oracle knows only the calendar
        }
        let oracle = Oracle::new(self.line(), &zone.jiff, &self.dst().to_string());
        self.compare(&zone, &oracle, step).map_err(|why| format!("the oracle: {why}"))
    }

    fn compare(&self, zone: &NamedZone, answers: &dyn Answers, step: Step) -> Result<(), String> {
        let parse = |text: &str| text.parse().unwrap_or_else(|error| panic!("row {}: {error}", self.0));
        let mut at: Timestamp = parse(self.1[4]);
        for expected in self.answer().split_whitespace() {
            let expected = (expected != "none").then(|| parse(expected));
            let (found, next) = step(answers, at);
            if found != expected {
                let local = |at: Option<Timestamp>| {
                    at.map_or("none".into(), |at| at.to_zoned(zone.jiff.clone()).to_string())
                };
                return Err(format!("expected {}, but found {}", local(expected), local(found)));
            }
            at = next.unwrap_or(at);
        }
        Ok(())
    }
}

type Step = fn(&dyn Answers, Timestamp) -> (Option<Timestamp>, Option<Timestamp>);

impl Answers for Oracle<'_> {
    fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        self.next_after(floor(instant)).map(timestamp)
    }

    fn prev_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.prev_at_or_before(floor(instant)).map(timestamp)
    }
}
