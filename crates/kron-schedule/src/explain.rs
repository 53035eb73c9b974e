//! Why an instant is an occurrence, or why it is not, part by part.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use jiff::Timestamp;

use crate::calendar::DAY;
use crate::duration::Duration;
use crate::expr::Cron;
use crate::field::Field;
use crate::pattern::{DaysAndTimes, Pattern};
use crate::schedule::{Calendar, Interval, Kind, Schedule};
use crate::zone::{floor_second, to_date_time, to_timestamp};

impl Schedule {
    /// Says field by field why an instant does or does not match.
    ///
    /// ```
    /// use jiff::tz::TimeZone;
    /// use kron_schedule::{Dialect, Dst, Expr, Verdict, Zone};
    ///
    /// let zone = Zone::new(&TimeZone::get("Europe/Paris")?)?;
    /// let schedule = Expr::parse("30 9 * * MON-FRI", Dialect::Kron)?.compile(&zone, Dst::KRON)?;
    /// let explanation = schedule.explain("2026-03-07T08:30:00Z".parse()?);
    /// assert_eq!(explanation.verdict(), Verdict::Unmatched);
    /// assert_eq!(explanation.to_string(), "\
    /// 2026-03-07T08:30:00Z is 2026-03-07T09:30:00 in Europe/Paris: no occurrence, because the weekday does not match
    ///   minute  30  matches 30
    ///   hour    9   matches 9
    ///   day     7   matches *
    ///   month   3   matches *
    ///   weekday 6   is not 1-5");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn explain(&self, instant: Timestamp) -> Explanation {
        match self.kind() {
            Kind::Calendar(calendar) => calendar.explain(instant),
            Kind::Interval(interval) => interval.explain(instant),
        }
    }
}

/// Why an instant is an occurrence or not. Printed, it is a sentence and a line for each part.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Explanation {
    instant: Timestamp,
    /// What clocks show in the zone, and its name. An interval has none.
    local: Option<String>,
    verdict: Verdict,
    parts: Vec<Part>,
}

/// The answer, and what kind of reason it has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is an occurrence.
    Occurs,
    /// It is an occurrence in place of a local time that the clocks skipped at this very instant.
    AfterGap,
    /// All parts match, but the same local time already occurred at this earlier instant.
    Repeated(Timestamp),
    /// At least one part does not match.
    Unmatched,
}

/// One part of the answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part {
    name: &'static str,
    value: String,
    wanted: String,
    matches: bool,
    /// Whether it alone stands in the way. A day field that does not match need not, if the other does.
    blocks: bool,
}

impl Explanation {
    /// The answer.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The parts, in the order of the fields.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Part {
    fn new(name: &'static str, value: String, wanted: String, matches: bool) -> Part {
        Part { name, value, wanted, matches, blocks: !matches }
    }

    /// `minute`, `weekday`, or another part of a time.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// What the instant has there.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What the schedule wants there.
    #[must_use]
    pub fn wanted(&self) -> &str {
        &self.wanted
    }

    /// Whether the one satisfies the other.
    #[must_use]
    pub fn matches(&self) -> bool {
        self.matches
    }
}

impl Calendar {
    fn explain(&self, instant: Timestamp) -> Explanation {
        let second = floor_second(instant);
        let segment = self.zone.segment_at(second);
        let civil = second + segment.offset;
        let mut parts = match &self.pattern {
            Pattern::Fields(fields) => fields.explain(civil),
            Pattern::EveryDays(every) => {
                let (day, time) = (civil.div_euclid(DAY), civil.rem_euclid(DAY));
                let (days, phase) = (every.days(), every.phase());
                let wanted_time = to_date_time(every.second()).time();
                alloc::vec![
                    Part::new(
                        "day",
                        format!("{day} since 1970-01-01"),
                        format!("{phase} more than a multiple of {days}"),
                        every.is_day(day),
                    ),
                    Part::new(
                        "time",
                        to_date_time(civil).time().to_string(),
                        wanted_time.to_string(),
                        time == every.second(),
                    ),
                ]
            }
        };
        let whole = instant.subsec_nanosecond() == 0;
        if !whole {
            let value = format!("{}ns", instant.subsec_nanosecond());
            parts.push(Part::new("fraction", value, "a whole second".into(), false));
        }
        parts.extend(before_time(instant));
        let verdict = if second < 0 {
            Verdict::Unmatched
        } else if whole && self.pattern.contains(civil) {
            match segment.repeats(civil) && !self.both {
                true => Verdict::Repeated(to_timestamp(civil - segment.before)),
                false => Verdict::Occurs,
            }
        } else if whole && second == segment.begin && self.swallows(&segment) {
            Verdict::AfterGap
        } else {
            Verdict::Unmatched
        };
        let local = Some(format!("{} in {}", self.zone.to_civil(instant), self.zone.name()));
        Explanation { instant, local, verdict, parts }
    }
}

impl DaysAndTimes {
    fn explain(&self, civil: i64) -> Vec<Part> {
        let cron: Cron = self.to_cron();
        let at = to_date_time(civil);
        let values =
            [at.second(), at.minute(), at.hour(), at.day(), at.month(), at.weekday().to_sunday_zero_offset()];
        let mut written = cron.to_string();
        if at.second() != 0 && written.split(' ').count() < Field::ALL.len() {
            written.insert_str(0, "0 "); // nobody wrote it, but it is why
        }
        let texts: Vec<&str> = written.split(' ').collect();
        let fields = &Field::ALL[Field::ALL.len() - texts.len()..];
        let day = civil.div_euclid(DAY);
        let matches =
            |field: Field| self.field_matches(field, values[field as usize].unsigned_abs().into(), day);
        fields
            .iter()
            .zip(texts)
            .map(|(&field, text)| {
                let value = values[field as usize].to_string();
                let mut part = Part::new(field.name(), value, text.into(), matches(field));
                if matches!(field, Field::Day | Field::Weekday) && self.days.either() {
                    part.blocks = !matches(Field::Day) && !matches(Field::Weekday);
                }
                part
            })
            .collect()
    }
}

impl Interval {
    fn explain(&self, instant: Timestamp) -> Explanation {
        let passed = self.passed(instant);
        let over =
            (instant.as_nanosecond() - self.anchor.as_nanosecond()).rem_euclid(self.length.as_nanos().into());
        let over = Duration::from_nanos(i64::try_from(over).expect("a remainder is below the interval"));
        let matches = over == Duration::ZERO && passed > 0;
        let since = match passed {
            ..0 => format!("before the anchor {}", self.anchor),
            _ => format!("{passed} intervals and {over} since {}", self.anchor),
        };
        let wanted = format!("1 or more whole intervals of {}", self.length);
        let mut parts = alloc::vec![Part::new("interval", since, wanted, matches)];
        parts.extend(before_time(instant));
        let occurs = parts.iter().all(|part| part.matches);
        let verdict = if occurs { Verdict::Occurs } else { Verdict::Unmatched };
        Explanation { instant, local: None, verdict, parts }
    }
}

/// What stands in the way before Kron's time begins.
fn before_time(instant: Timestamp) -> Option<Part> {
    let before = instant < Timestamp::UNIX_EPOCH;
    before.then(|| Part::new("year", to_utc_year(instant), "1970 or later".into(), false))
}

fn to_utc_year(instant: Timestamp) -> String {
    jiff::tz::Offset::UTC.to_datetime(instant).year().to_string()
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.instant)?;
        if let Some(local) = &self.local {
            write!(f, " is {local}")?;
        }
        match self.verdict {
            Verdict::Occurs => f.write_str(": an occurrence")?,
            Verdict::AfterGap => {
                f.write_str(": an occurrence, in place of a local time that the clocks have just skipped")?;
            }
            Verdict::Repeated(first) => {
                write!(f, ": no occurrence, because this local time already occurred at {first}")?;
            }
            Verdict::Unmatched => write!(f, ": no occurrence, because the {} not match", self.unmatched())?,
        }
        let names = self.parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
        let values = self.parts.iter().map(|part| part.value.len()).max().unwrap_or(0);
        for Part { name, value, wanted, matches, .. } in &self.parts {
            let relation = if *matches { "matches" } else { "is not" };
            write!(f, "\n  {name:names$} {value:values$}  {relation} {wanted}")?;
        }
        Ok(())
    }
}

impl Explanation {
    /// "weekday does", "day and the weekday do": what stands in the way.
    fn unmatched(&self) -> String {
        let names: Vec<&str> = self.parts.iter().filter(|part| part.blocks).map(|part| part.name).collect();
        match names.as_slice() {
            [one] => format!("{one} does"),
            names => format!("{} do", names.join(" and the ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Dst, EveryDays, Expr, Fold, Gap, Zone};
    use jiff::civil::time;
    use jiff::tz::TimeZone;

    fn explain(line: &str, zone: &str, dst: Dst, at: &str) -> String {
        let zone = Zone::new(&TimeZone::get(zone).unwrap()).unwrap();
        let schedule = Expr::parse(line, Dialect::Ojs).unwrap().compile(&zone, dst).unwrap();
        let at: Timestamp = at.parse().unwrap();
        let explanation = schedule.explain(at);
        let occurs = matches!(explanation.verdict(), Verdict::Occurs | Verdict::AfterGap);
        assert_eq!(occurs, schedule.matches(at), "explain and matches agree");
        explanation.to_string().lines().next().unwrap().to_string()
    }

    #[test]
    fn verdicts_are_told_in_these_words() {
        assert_eq!(
            explain("30 1 * * *", "America/New_York", Dst::OJS, "2026-11-01T05:30:00Z"),
            "2026-11-01T05:30:00Z is 2026-11-01T01:30:00 in America/New_York: an occurrence"
        );
        assert_eq!(
            explain("30 1 * * *", "America/New_York", Dst::OJS, "2026-11-01T06:30:00Z"),
            "2026-11-01T06:30:00Z is 2026-11-01T01:30:00 in America/New_York: no occurrence, \
             because this local time already occurred at 2026-11-01T05:30:00Z"
        );
        let after = Dst { gap: Gap::After, fold: Fold::First };
        assert_eq!(
            explain("30 2 * * *", "America/New_York", after, "2026-03-08T07:00:00Z"),
            "2026-03-08T07:00:00Z is 2026-03-08T03:00:00 in America/New_York: an occurrence, \
             in place of a local time that the clocks have just skipped"
        );
        assert_eq!(
            explain("30 2 * * *", "America/New_York", Dst::OJS, "2026-03-08T07:00:00.5Z"),
            "2026-03-08T07:00:00.5Z is 2026-03-08T03:00:00.5 in America/New_York: no occurrence, \
             because the minute and the hour and the fraction do not match"
        );
    }

    #[test]
    fn of_two_day_fields_one_that_matches_is_enough() {
        let at = |day: &str| explain("0 0 13 * 5", "UTC", Dst::OJS, &format!("2026-03-{day}T00:00:00Z"));
        assert!(at("13").ends_with(": an occurrence"), "Friday the 13th");
        assert!(at("20").ends_with(": an occurrence"), "another Friday");
        assert!(at("21").ends_with("because the day and the weekday do not match"));
        let late = explain("0 0 13 * 5", "UTC", Dst::OJS, "2026-03-20T01:00:00Z");
        assert!(late.ends_with("because the hour does not match"), "{late}");
    }

    #[test]
    fn what_nobody_wrote_can_be_the_reason() {
        let explained = explain("0 0 * * *", "UTC", Dst::OJS, "2026-03-01T00:00:30Z");
        assert!(explained.ends_with("because the second does not match"), "{explained}");
        let explained = explain("0 0 * * *", "UTC", Dst::OJS, "1969-12-31T00:00:00Z");
        assert!(explained.ends_with("because the year does not match"), "{explained}");
    }

    #[test]
    fn intervals_and_day_counts_are_explained_too() {
        assert_eq!(
            Expr::parse("@every 30m", Dialect::Kron)
                .unwrap()
                .compile(&Zone::utc(), Dst::KRON)
                .unwrap()
                .explain("1970-01-01T01:10:00Z".parse().unwrap())
                .to_string(),
            "1970-01-01T01:10:00Z: no occurrence, because the interval does not match\n  \
             interval 2 intervals and 10m since 1970-01-01T00:00:00Z  is not 1 or more whole intervals of 30m"
        );
        assert_eq!(
            EveryDays::new(10, 3, time(4, 30, 0, 0))
                .unwrap()
                .compile(&Zone::utc(), Dst::KRON)
                .explain("1970-01-05T04:30:00Z".parse().unwrap())
                .to_string(),
            "1970-01-05T04:30:00Z is 1970-01-05T04:30:00 in UTC: no occurrence, because the day does not match\n  \
             day  4 since 1970-01-01  is not 3 more than a multiple of 10\n  \
             time 04:30:00            matches 04:30:00"
        );
    }
}
