//! One case, asked of the crate and of the oracle.

use std::fmt::{self, Debug};
use std::ops::Range;

use jiff::Timestamp;
use kron_schedule::{ErrorKind, Expr, Schedule};

use crate::generator::{Case, NamedZone, Random};
use crate::oracle::{DAY, LAST, Oracle};
use crate::shrink::shrink;

/// What was asked, and the two answers.
pub(crate) struct Disagreement(String);

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A schedule, or something in its place that answers wrongly on purpose.
pub(crate) trait Answers {
    fn next_after(&self, instant: Timestamp) -> Option<Timestamp>;
    fn prev_at_or_before(&self, instant: Timestamp) -> Option<Timestamp>;

    /// So many that follow: one search after the other, unless there is another way.
    fn list_after(&self, instant: Timestamp, count: usize) -> Vec<Timestamp> {
        let searched = std::iter::successors(self.next_after(instant), |at| self.next_after(*at));
        searched.take(count).collect()
    }
}

impl Answers for Schedule {
    fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        Schedule::next_after(self, instant)
    }

    fn prev_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        Schedule::prev_at_or_before(self, instant)
    }

    fn list_after(&self, instant: Timestamp, count: usize) -> Vec<Timestamp> {
        self.occurrences_after(instant).take(count).collect()
    }
}

/// The first of the numbered cases that the two disagree on, and its smallest form.
pub(crate) fn first_disagreement(
    seed: u64,
    numbers: Range<u64>,
    zones: &[NamedZone],
) -> Result<(), Disagreement> {
    for number in numbers {
        let case = Case::random(&mut Random::of_case(seed, number), zones);
        if let Err(Disagreement(answers)) = check(&case) {
            let smallest = shrink(case.clone());
            let smallest_answers = check(&smallest).expect_err("shrinking keeps the disagreement");
            return Err(Disagreement(format!(
                "seed {seed}, case {number}\n  {case}\n    {answers}\n  {smallest}\n    {smallest_answers}"
            )));
        }
    }
    Ok(())
}

/// Asks everything about one case.
pub(crate) fn check(case: &Case<'_>) -> Result<(), Disagreement> {
    let oracle = Oracle::new(&case.text, &case.zone.jiff, &case.dst.to_string());
    let expr = match Expr::parse(&case.text, case.dialect) {
        Ok(expr) => expr,
        Err(error) => return Err(Disagreement(format!("a valid expression is refused: {error}"))),
    };
    let printed = expr.to_string();
    same("parse(print(x))", &Ok(expr.clone()), &Expr::parse(&printed, case.dialect))?;
    let schedule = match expr.compile(&case.zone.kron, case.dst) {
        Ok(schedule) => schedule,
        Err(error) => {
            same("the only error of compile", &ErrorKind::Never, &error.kind())?;
            return same("what never matches", &oracle.next_after(-1), &None);
        }
    };
    answers(&schedule, &oracle, case.start)?;
    let start = floor(case.start);
    let whole = case.start.subsec_nanosecond() == 0;
    same("matches", &(oracle.occurs(start) && whole), &schedule.matches(case.start))?;
    let (after, through) = (start - 4 * DAY, start + 4 * DAY);
    let skipped = schedule
        .skipped_between(timestamp(after), timestamp(through))
        .map(|gap| (gap.at().as_second(), gap.times().map(civil_second).collect()))
        .collect();
    same("skipped_between", &oracle.skipped(after, through), &skipped)?;
    if let Some(last) = schedule.last() {
        same("last occurs", &true, &schedule.matches(last))?;
        same("after the last", &oracle.next_after(last.as_second()), &None)?;
    }
    Ok(())
}

/// How many occurrences are followed in each direction.
const FOLLOWED: usize = 3;

/// How many are listed. A list takes up to 64 at once, so that the next such step is seen too.
const LISTED: usize = 70;

/// The next few occurrences and the previous few, by the oracle; and a list of more, by searching again and again.
pub(crate) fn answers(
    subject: &dyn Answers,
    oracle: &Oracle<'_>,
    start: Timestamp,
) -> Result<(), Disagreement> {
    let mut at = start;
    for _ in 0..FOLLOWED {
        let next = subject.next_after(at);
        same(format_args!("next_after {at}"), &oracle.next_after(floor(at)).map(timestamp), &next)?;
        let Some(next) = next else { break };
        same(format_args!("prev_at_or_before {next}"), &Some(next), &subject.prev_at_or_before(next))?;
        at = next;
    }
    let mut at = start;
    for _ in 0..FOLLOWED {
        let prev = subject.prev_at_or_before(at);
        let expected = oracle.prev_at_or_before(floor(at)).map(timestamp);
        same(format_args!("prev_at_or_before {at}"), &expected, &prev)?;
        let Some(prev) = prev else { break };
        at = timestamp(prev.as_second() - 1);
        same(format_args!("next_after {at}"), &Some(prev), &subject.next_after(at))?;
    }
    let searched: Vec<_> =
        std::iter::successors(subject.next_after(start), |at| subject.next_after(*at)).take(LISTED).collect();
    same(format_args!("list_after {start}"), &searched, &subject.list_after(start, LISTED))
}

fn same<T: PartialEq + Debug>(asked: impl fmt::Display, expected: &T, found: &T) -> Result<(), Disagreement> {
    if expected == found {
        return Ok(());
    }
    Err(Disagreement(format!("{asked}: expected {expected:?}, but found {found:?}")))
}

/// The whole second that an instant lies in.
pub(crate) fn floor(instant: Timestamp) -> i64 {
    i64::try_from(instant.as_nanosecond().div_euclid(1_000_000_000)).expect("jiff's seconds fit")
}

/// The instant, moved into jiff's time if it lies outside.
pub(crate) fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second.min(LAST)).expect("nothing is asked before year 1")
}

fn civil_second(civil: jiff::civil::DateTime) -> i64 {
    civil.to_zoned(jiff::tz::TimeZone::UTC).expect("within jiff's time").timestamp().as_second()
}
