//! When another scheduler would run a job: its own rules, minute by minute.
//!
//! None of Kron's code decides here, so that a comparison with Kron says something.

use jiff::civil::DateTime;
use kron_schedule::Zone;

use super::fields::Fields;
use crate::cli::span::{Span, timestamp};

/// What a scheduler does when clocks change.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Rule {
    /// Vixie cron, Debian's and cronie: where neither minute nor hour begins with `*`, what was skipped runs
    /// at once after the gap and nothing runs twice. Others follow the clock. A change of more than three
    /// hours is taken for a correction, and followed.
    Cron,
    /// Kubernetes (robfig/cron): it follows the clock. What does not exist does not run, and what comes
    /// twice runs twice.
    Kubernetes,
    /// systemd: what does not exist does not run, and the hour that comes twice counts once, for every
    /// expression. `systemd-analyze calendar` says so.
    Systemd,
}

/// The longest change of clocks that cron takes for one, in minutes.
const CHANGE_MAX: i64 = 180;

/// Every second at which a job would run, in order, as often as it would. There is one look for each minute.
pub(crate) fn firings(fields: &Fields, rule: Rule, zone: &Zone, span: Span) -> Vec<i64> {
    let mut found = Vec::new();
    let is_interval = fields.is_interval();
    // An hour before, so that a change of clocks at the first minute is seen.
    let first = span.from - 3_600;
    let mut before = minutes(zone.to_civil(timestamp(first - 60)));
    // The latest local time that there has been.
    let mut latest = before;
    for second in (first..span.to).step_by(60) {
        let civil = zone.to_civil(timestamp(second));
        let now = minutes(civil);
        let step = now - before;
        let is_change = step != 1 && step.abs() <= CHANGE_MAX;
        if step != 1 && !is_change {
            latest = now - 1;
        }
        let times = match rule {
            Rule::Kubernetes => usize::from(fields.matches(civil)),
            Rule::Cron if is_interval => usize::from(fields.matches(civil)),
            // Each skipped minute is looked at as if it had been, and each that matches is a run.
            Rule::Cron if step > 1 && is_change => {
                let skipped = (before + 1..=now).filter_map(civil_of);
                skipped.filter(|civil| fields.matches(*civil)).count()
            }
            Rule::Cron | Rule::Systemd => usize::from(now > latest && fields.matches(civil)),
        };
        if span.contains(second) {
            found.extend(std::iter::repeat_n(second, times));
        }
        latest = latest.max(now);
        before = now;
    }
    found
}

/// A local time in minutes, as if it were in UTC.
fn minutes(civil: DateTime) -> i64 {
    jiff::tz::Offset::UTC.to_timestamp(civil).map_or(0, |at| at.as_second().div_euclid(60))
}

fn civil_of(minutes: i64) -> Option<DateTime> {
    Some(jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::from_second(minutes * 60).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::import::crontab;
    use crate::cli::simulate::count::tests::span;
    use crate::cli::time;
    use krontab::Zones;

    fn fires(text: &str, rule: Rule, from: &str, to: &str) -> Vec<String> {
        let fields = crontab::fields(&text.split(' ').collect::<Vec<_>>()).unwrap();
        let zone = Zones::bundled().find("America/New_York").unwrap();
        let found = firings(&fields, rule, &zone, span(from, to));
        found.into_iter().map(|second| time::utc(timestamp(second))[5..16].to_owned()).collect()
    }

    #[test]
    fn in_spring_only_cron_makes_up_for_a_time_of_day() {
        let spring = |text, rule| fires(text, rule, "2026-03-08T05:00:00Z", "2026-03-08T09:00:00Z");
        assert_eq!(spring("30 2 * * *", Rule::Cron), ["03-08T07:00"]);
        assert_eq!(spring("0,30 2 * * *", Rule::Cron), ["03-08T07:00", "03-08T07:00"]);
        assert_eq!(spring("30 2 * * *", Rule::Kubernetes), [""; 0]);
        assert_eq!(spring("30 2 * * *", Rule::Systemd), [""; 0]);
        for rule in [Rule::Cron, Rule::Kubernetes, Rule::Systemd] {
            assert_eq!(
                spring("30 * * * *", rule),
                ["03-08T05:30", "03-08T06:30", "03-08T07:30", "03-08T08:30"]
            );
        }
    }

    /// What systemd 252 prints for `*:30` and `01:30` on that day.
    #[test]
    fn in_autumn_they_differ_in_what_comes_twice() {
        let autumn = |text, rule| fires(text, rule, "2026-11-01T05:00:00Z", "2026-11-01T08:00:00Z");
        assert_eq!(autumn("30 1 * * *", Rule::Cron), ["11-01T05:30"]);
        assert_eq!(autumn("30 1 * * *", Rule::Systemd), ["11-01T05:30"]);
        assert_eq!(autumn("30 1 * * *", Rule::Kubernetes), ["11-01T05:30", "11-01T06:30"]);
        assert_eq!(autumn("30 * * * *", Rule::Cron), ["11-01T05:30", "11-01T06:30", "11-01T07:30"]);
        assert_eq!(autumn("30 * * * *", Rule::Systemd), ["11-01T05:30", "11-01T07:30"]);
    }
}
