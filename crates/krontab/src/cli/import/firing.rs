//! When another scheduler would run a job: its own rules, minute by minute.
//!
//! None of Kron's code decides here, so that a comparison with Kron says something.

use jiff::tz::Offset;
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
    // Some hours before, so that a local time that comes twice is known to have been.
    let first = span.from - CHANGE_MAX * 60;
    let mut before = local_minute(zone, first - 60);
    // The latest local time that there has been.
    let mut latest = before;
    for second in (first..span.to).step_by(60) {
        let now = local_minute(zone, second);
        let step = now - before;
        let is_change = step != 1 && step.abs() <= CHANGE_MAX;
        if step != 1 && !is_change {
            latest = now - 1;
        }
        let times = match rule {
            Rule::Kubernetes => usize::from(matches(fields, now)),
            Rule::Cron if is_interval => usize::from(matches(fields, now)),
            // Each skipped minute is looked at as if it had been, and each that matches is a run.
            Rule::Cron if step > 1 && is_change => {
                (before + 1..=now).filter(|minute| matches(fields, *minute)).count()
            }
            Rule::Cron | Rule::Systemd => usize::from(now > latest && matches(fields, now)),
        };
        if span.contains(second) {
            found.extend(std::iter::repeat_n(second, times));
        }
        latest = latest.max(now);
        before = now;
    }
    found
}

/// What clocks show at a second, in minutes since 1970 as if they were in UTC.
fn local_minute(zone: &Zone, second: i64) -> i64 {
    (second + i64::from(zone.offset_at(timestamp(second)).seconds())).div_euclid(60)
}

/// Whether a local minute is one of the fields'. Most are not, and that takes no date to find out.
fn matches(fields: &Fields, minute: i64) -> bool {
    let has = |bits: u64, value: i64| bits >> value & 1 == 1;
    has(fields.minute.bits, minute.rem_euclid(60))
        && has(fields.hour.bits, minute.div_euclid(60).rem_euclid(24))
        && fields.matches(Offset::UTC.to_datetime(timestamp(minute * 60)))
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
