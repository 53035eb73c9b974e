//! How many jobs start when, before and after spreading.

use std::ops::ControlFlow;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use kron_core::decide;
use kron_schedule::Zone;
use serde::Serialize;

use crate::board::{Answer, Board, Refused};
use crate::plan::reach;

/// How many periods are looked at in all. With more, some jobs are left out, and that is told.
const PERIODS_MAX: u64 = 8_000_000;

/// How many periods of one job are looked at: a week of every second.
const PERIODS_OF_ONE_MAX: u64 = 700_000;

const MINUTE: i64 = 60;
const DAYS: i64 = 7;

/// The load of a day, and of the week that it begins.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Load {
    day: String,
    zone: String,
    /// When the day begins.
    from: Timestamp,
    /// Starts a minute if every job began at its nominal time.
    before: Vec<u32>,
    /// Starts a minute as they will be.
    after: Vec<u32>,
    peak_before: Option<Peak>,
    peak_after: Option<Peak>,
    /// Starts an hour as they will be: seven days from this one on, by the hours of their clocks.
    week: Vec<WeekDay>,
    peak_week: Option<PeakHour>,
    /// How many jobs are counted, how many are paused, and whether others were left out.
    jobs: u64,
    paused: u64,
    is_partial: bool,
}

/// The minute with the most starts.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Peak {
    at: Timestamp,
    /// On the clocks of the zone.
    local: String,
    starts: u32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WeekDay {
    day: String,
    name: String,
    hours: [u64; 24],
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PeakHour {
    day: String,
    hour: usize,
    starts: u64,
}

/// Counts the starts of every job.
pub(crate) fn load(board: &dyn Board, zone_name: &str, day: Option<&str>) -> Answer<Load> {
    let zone = board
        .zone(zone_name)
        .ok_or_else(|| Refused::wrong("zone", "the name of a time zone such as Europe/Paris", zone_name))?;
    let today = zone.to_civil(board.now()).date();
    let day: Date = match day {
        None => today,
        Some(text) => text.parse().map_err(|_| Refused::wrong("day", "a day such as 2026-03-01", text))?,
    };
    let begins = (0..=DAYS).map(|nth| {
        let day = day.checked_add(jiff::Span::new().days(nth)).unwrap_or(day);
        midnight(&zone, day)
    });
    let begins: Vec<i64> = begins.collect();
    let (start, end) = (begins[0], begins[begins.len() - 1]);
    let minutes = usize::try_from((end - start) / MINUTE).unwrap_or(0);
    let (mut before, mut after) = (vec![0_u32; minutes], vec![0_u32; minutes]);
    let (mut jobs, mut paused, mut looked_at, mut is_partial) = (0, 0, 0, false);
    board.each_job(&mut |job| {
        if looked_at >= PERIODS_MAX {
            is_partial = true;
            return ControlFlow::Break(());
        }
        if job.paused {
            paused += 1;
            return ControlFlow::Continue(());
        }
        if let Some(plan) = &job.plan {
            jobs += 1;
            let (seen, all) = count(plan, start, end, &mut before, &mut after);
            looked_at += seen;
            is_partial |= !all;
        }
        ControlFlow::Continue(())
    })?;
    let mut week = Vec::new();
    for (nth, edges) in (0..DAYS).zip(begins.windows(2)) {
        let date = day.checked_add(jiff::Span::new().days(nth)).unwrap_or(day);
        let mut hours = [0_u64; 24];
        for second in (edges[0]..edges[1]).step_by(60) {
            let minute = usize::try_from((second - start) / MINUTE).unwrap_or(0);
            let at = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
            let hour = usize::try_from(zone.to_civil(at).hour()).unwrap_or(0);
            hours[hour] += u64::from(after.get(minute).copied().unwrap_or(0));
        }
        week.push(WeekDay { day: date.to_string(), name: date.strftime("%a").to_string(), hours });
    }
    let all_hours = week.iter().flat_map(|day| (0..24).map(move |hour| (day, hour, day.hours[hour])));
    let most = all_hours
        .max_by_key(|(_, hour, starts)| (*starts, std::cmp::Reverse(*hour)))
        .filter(|most| most.2 > 0);
    let peak_week = most.map(|(day, hour, starts)| PeakHour { day: day.day.clone(), hour, starts });
    let of_day = usize::try_from((begins[1] - start) / MINUTE).unwrap_or(0);
    before.truncate(of_day);
    after.truncate(of_day);
    Ok(Load {
        day: day.to_string(),
        zone: zone_name.to_owned(),
        from: Timestamp::from_second(start).unwrap_or(Timestamp::MIN),
        peak_before: peak(&zone, start, &before),
        peak_after: peak(&zone, start, &after),
        before,
        after,
        week,
        peak_week,
        jobs,
        paused,
        is_partial,
    })
}

/// Counts the starts of one job. Says how many periods were looked at, and whether those were all.
fn count(plan: &kron_core::Job, start: i64, end: i64, before: &mut [u32], after: &mut [u32]) -> (u64, bool) {
    let (opens_before, closes_after) = reach(plan);
    let at = |second: i64| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    let first = at(start).checked_sub(closes_after).unwrap_or(Timestamp::MIN);
    let from = first.checked_sub(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MIN);
    let last = at(end).checked_add(opens_before).unwrap_or(Timestamp::MAX);
    let minute = |at: Timestamp| usize::try_from((at.as_second() - start).div_euclid(MINUTE)).ok();
    // Where there is nothing to choose, nothing need be decided.
    let is_plain = plan.window().duration().as_seconds() == 0 && plan.constraints().is_empty();
    let mut looked_at = 0;
    for nominal in plan.schedule().occurrences_after(from).take_while(|nominal| *nominal < last) {
        looked_at += 1;
        if looked_at > PERIODS_OF_ONE_MAX {
            return (looked_at, false);
        }
        if let Some(starts) = minute(nominal).and_then(|minute| before.get_mut(minute)) {
            *starts += 1;
        }
        let chosen = if is_plain { Some(nominal) } else { decide(plan, nominal).chosen() };
        if let Some(starts) = chosen.and_then(minute).and_then(|minute| after.get_mut(minute)) {
            *starts += 1;
        }
    }
    (looked_at, true)
}

fn peak(zone: &Zone, start: i64, starts: &[u32]) -> Option<Peak> {
    let (minute, most) =
        starts.iter().enumerate().max_by_key(|(nth, starts)| (**starts, std::cmp::Reverse(*nth)))?;
    let second = start + i64::try_from(minute).unwrap_or(0) * MINUTE;
    let at = Timestamp::from_second(second).ok().filter(|_| *most > 0)?;
    Some(Peak { at, local: zone.to_civil(at).strftime("%H:%M").to_string(), starts: *most })
}

/// The first instant of a day. Where midnight does not exist, the day begins when clocks have gone forward.
fn midnight(zone: &Zone, day: Date) -> i64 {
    // No offset is more than a day.
    let noon = day
        .at(12, 0, 0, 0)
        .to_zoned(jiff::tz::TimeZone::UTC)
        .map_or(0, |zoned| zoned.timestamp().as_second());
    let is_before =
        |second: i64| Timestamp::from_second(second).is_ok_and(|at| zone.to_civil(at).date() < day);
    let (mut low, mut high) = (noon - 3 * 86_400, noon + 3 * 86_400);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle } else { high = middle }
    }
    high
}

impl Load {
    /// Its minutes as rows of a table.
    pub(crate) fn rows(&self) -> Vec<serde_json::Value> {
        let minutes = self.before.iter().zip(&self.after).zip(0_i64..);
        minutes
            .map(|((before, after), minute)| {
                let at = Timestamp::from_second(self.from.as_second() + minute * MINUTE).ok();
                serde_json::json!({ "minute": at, "before": before, "after": after })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kron_zones::Zones;

    #[test]
    fn a_day_begins_at_midnight_even_when_there_is_none() {
        for (zone, day, begins) in [
            ("UTC", "2026-03-01", "2026-03-01T00:00:00Z"),
            ("Europe/Paris", "2026-03-29", "2026-03-28T23:00:00Z"),
            ("Europe/Paris", "2026-03-30", "2026-03-29T22:00:00Z"),
            ("Pacific/Kiritimati", "2026-03-01", "2026-02-28T10:00:00Z"),
            // Clocks went forward at midnight: the day has 23 hours and begins at one.
            ("America/Havana", "2026-03-08", "2026-03-08T05:00:00Z"),
        ] {
            let zone = Zones::bundled().find(zone).unwrap();
            let expected: Timestamp = begins.parse().unwrap();
            assert_eq!(midnight(&zone, day.parse().unwrap()), expected.as_second(), "{day}");
        }
    }
}
