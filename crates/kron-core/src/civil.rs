//! What clocks showed at a period. It is kept beside the period's name, so that a change of the zone, or of its
//! rules, makes nothing run a second time.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use kron_schedule::{Fold, Gap, Zone};

use crate::job::Job;
use crate::period::{PeriodId, floor_second, to_timestamp};

/// What clocks showed at an instant: the local time, where, and which time of two if it came twice.
///
/// It is printed as `2026-10-25T02:30[Europe/Berlin]`, and the second time with `#2` behind it. Of two labels the
/// one with the later local time is the greater, whatever the zones.
///
/// ```
/// use kron_core::CivilLabel;
/// use kron_schedule::Zone;
/// use jiff::tz::TimeZone;
///
/// let berlin = Zone::new(&TimeZone::get("Europe/Berlin")?)?;
/// let label = CivilLabel::new("2026-10-25T01:30:00Z".parse()?, &berlin);
/// assert_eq!(label.to_string(), "2026-10-25T02:30[Europe/Berlin]#2");
/// assert_eq!(label.to_string().parse(), Ok(label));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CivilLabel {
    civil: DateTime,
    is_second: bool,
    zone: String,
}

impl CivilLabel {
    /// What clocks of a zone show at an instant. A fraction of a second does not count.
    #[must_use]
    pub fn new(instant: Timestamp, zone: &Zone) -> CivilLabel {
        let second = floor_second(instant);
        let civil = zone.to_civil(to_timestamp(second));
        let is_second = matches!(Instants::of(civil, zone), Instants::Two(_, later) if later == second);
        CivilLabel { civil, is_second, zone: zone.name().to_owned() }
    }

    /// What clocks show at a period of a job; `None` if its schedule looks at none.
    #[must_use]
    pub fn of(job: &Job, period: PeriodId) -> Option<CivilLabel> {
        job.schedule().dst().map(|_| CivilLabel::new(period.nominal(), job.zone()))
    }

    /// The last second at which clocks of the job's zone show no more than this. Whatever the job has up to there
    /// has had its time, if not in this zone, then in the one it had before.
    ///
    /// `None` where a local time counts as often as clocks show it: intervals, and `fold=both`.
    #[must_use]
    pub fn reached_by(&self, job: &Job) -> Option<PeriodId> {
        let dst = job.schedule().dst().filter(|dst| dst.fold == Fold::First)?;
        let second = match Instants::of(self.civil, job.zone()) {
            Instants::One(second) => second,
            Instants::Two(_, later) if self.is_second => later,
            Instants::Two(first, _) => first,
            // What the gap swallows would run right after it.
            Instants::Gap(after) if dst.gap == Gap::After => after,
            Instants::Gap(after) => after - 1,
        };
        Some(PeriodId::new(to_timestamp(second)))
    }
}

/// When clocks show a local time, in seconds.
enum Instants {
    One(i64),
    Two(i64, i64),
    /// Never: this is the first second after the gap.
    Gap(i64),
}

/// No clock is further from UTC than this, in seconds.
const OFFSET_MAX: i64 = 26 * 3_600;

impl Instants {
    fn of(civil: DateTime, zone: &Zone) -> Instants {
        let utc = Offset::UTC.to_timestamp(civil).map_or(i64::MAX / 2, |utc| utc.as_second());
        let offset_at = |second: i64| i64::from(zone.offset_at(to_timestamp(second)).seconds());
        // Changes of clocks are days apart, so that there is at most one between these.
        let (before, after) = (offset_at(utc - OFFSET_MAX), offset_at(utc + OFFSET_MAX));
        let shows = |offset: i64| offset_at(utc - offset) == offset;
        match (shows(before), shows(after)) {
            (true, true) if before == after => Instants::One(utc - before),
            (true, true) => Instants::Two(utc - before, utc - after),
            (true, false) => Instants::One(utc - before),
            (false, true) => Instants::One(utc - after),
            (false, false) => {
                // Clocks went forward between these two.
                let (mut low, mut high) = (utc - after, utc - before);
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if offset_at(middle) == before { low = middle } else { high = middle }
                }
                Instants::Gap(high)
            }
        }
    }
}

impl fmt::Display for CivilLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.civil.date(), self.civil.time());
        write!(f, "{date}T{:02}:{:02}", time.hour(), time.minute())?;
        if time.second() != 0 {
            write!(f, ":{:02}", time.second())?;
        }
        write!(f, "[{}]{}", self.zone, if self.is_second { "#2" } else { "" })
    }
}

impl FromStr for CivilLabel {
    type Err = CivilLabelError;

    fn from_str(text: &str) -> Result<CivilLabel, CivilLabelError> {
        let (text, is_second) = match text.strip_suffix("#2") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (civil, zone) =
            text.strip_suffix(']').and_then(|text| text.split_once('[')).ok_or(CivilLabelError)?;
        let is_plain = !zone.is_empty() && !zone.contains(['[', ']']) && civil.contains('T');
        let civil: DateTime = civil.parse().map_err(|_| CivilLabelError)?;
        match is_plain && civil.subsec_nanosecond() == 0 {
            true => Ok(CivilLabel { civil, is_second, zone: zone.to_owned() }),
            false => Err(CivilLabelError),
        }
    }
}

/// A text is no label.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CivilLabelError;

impl fmt::Display for CivilLabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a local time and its zone, such as `2026-10-25T02:30[Europe/Berlin]`")
    }
}

impl core::error::Error for CivilLabelError {}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use kron_schedule::{Dialect, Dst, Expr};
    use std::string::ToString;

    fn zone(name: &str) -> Zone {
        Zone::new(&TimeZone::get(name).unwrap()).unwrap()
    }

    fn job(expr: &str, name: &str, dst: Dst) -> Job {
        let zone = zone(name);
        let schedule = Expr::parse(expr, Dialect::Kron).unwrap().compile(&zone, dst).unwrap();
        Job::builder("x", schedule, zone).build().unwrap()
    }

    fn reached(label: &str, expr: &str, zone: &str, dst: Dst) -> Option<String> {
        let label: CivilLabel = label.parse().unwrap();
        label.reached_by(&job(expr, zone, dst)).map(|period| period.to_string())
    }

    #[test]
    fn a_label_says_which_time_of_two() {
        for (at, name, expected) in [
            ("2026-10-25T00:30:00Z", "Europe/Berlin", "2026-10-25T02:30[Europe/Berlin]"),
            ("2026-10-25T01:30:00Z", "Europe/Berlin", "2026-10-25T02:30[Europe/Berlin]#2"),
            ("2026-10-25T02:30:00Z", "Europe/Berlin", "2026-10-25T03:30[Europe/Berlin]"),
            ("2026-03-29T01:00:00Z", "Europe/Berlin", "2026-03-29T03:00[Europe/Berlin]"),
            ("2027-04-03T15:15:00Z", "Australia/Lord_Howe", "2027-04-04T01:45[Australia/Lord_Howe]#2"),
            ("2026-01-01T00:00:20Z", "UTC", "2026-01-01T00:00:20[UTC]"),
        ] {
            let label = CivilLabel::new(at.parse().unwrap(), &zone(name));
            assert_eq!(label.to_string(), expected);
            assert_eq!(expected.parse(), Ok(label));
        }
        for text in [
            "",
            "2026-10-25T02:30",
            "2026-10-25[UTC]",
            "2026-10-25T02:30[]",
            "x[UTC]",
            "2026-10-25T02:30[UTC]#3",
        ] {
            assert_eq!(text.parse::<CivilLabel>(), Err(CivilLabelError), "{text}");
        }
    }

    #[test]
    fn a_local_time_is_reached_where_clocks_show_it() {
        let of = |label, zone| reached(label, "30 2 * * *", zone, Dst::KRON);
        let in_berlin = "2026-06-01T02:30[Europe/Berlin]";
        assert_eq!(of(in_berlin, "Europe/Berlin").as_deref(), Some("2026-06-01T00:30:00Z"));
        assert_eq!(of(in_berlin, "America/New_York").as_deref(), Some("2026-06-01T06:30:00Z"));
        assert_eq!(of(in_berlin, "Asia/Tokyo").as_deref(), Some("2026-05-31T17:30:00Z"));
        // The first time of two, unless it was the second already.
        assert_eq!(of("2026-10-25T02:30[UTC]", "Europe/Berlin").as_deref(), Some("2026-10-25T00:30:00Z"));
        assert_eq!(of("2026-10-25T02:30[X]#2", "Europe/Berlin").as_deref(), Some("2026-10-25T01:30:00Z"));
        // A gap: 03:00 has not been, unless it stands for what was swallowed.
        let after = Dst { gap: Gap::After, ..Dst::KRON };
        assert_eq!(of("2026-03-29T02:30[UTC]", "Europe/Berlin").as_deref(), Some("2026-03-29T00:59:59Z"));
        assert_eq!(
            reached("2026-03-29T02:30[UTC]", "30 2 * * *", "Europe/Berlin", after).as_deref(),
            Some("2026-03-29T01:00:00Z")
        );
    }

    #[test]
    fn what_counts_as_often_as_clocks_show_it_is_not_held_back() {
        let both = Dst { fold: Fold::Both, ..Dst::KRON };
        let label = "2026-06-01T02:30[Europe/Berlin]";
        assert_eq!(reached(label, "*/5 * * * *", "America/New_York", Dst::KRON), None);
        assert_eq!(reached(label, "@every 5m", "America/New_York", Dst::KRON), None);
        assert_eq!(reached(label, "30 2 * * *", "America/New_York", both), None);
        assert_eq!(
            CivilLabel::of(&job("@every 5m", "Asia/Tokyo", Dst::KRON), PeriodId::new(Timestamp::UNIX_EPOCH)),
            None
        );
    }
}
