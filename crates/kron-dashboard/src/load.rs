//! How many jobs start when, before and after spreading.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use kron_core::decide;
use kron_schedule::Zone;
use serde::Serialize;

use crate::board::{Answer, Board, Find, Job, Refused};
use crate::plan::reach;

/// How many periods are looked at in all. With more, some jobs are left out, and that is told.
const PERIODS_MAX: u64 = 100_000_000;

/// How many periods of one job are looked at: a week of every second.
const PERIODS_OF_ONE_MAX: u64 = 700_000;

/// For how long a request counts. The next one goes on where it stopped.
const COUNTED_WITHIN: Duration = Duration::from_millis(800);

/// For how long a count is good, and for how many times as long as it took.
const GOOD_FOR: SignedDuration = SignedDuration::from_secs(20);
const GOOD_TIMES: i32 = 20;

/// After how long somebody who counts is taken to have failed.
const TAKEN_MAX: Duration = Duration::from_secs(60);

/// How many counts are remembered: of other days, and in other zones.
const COUNTS_MAX: usize = 4;

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
    counted_at: Timestamp,
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

/// What is known of the load now: the latest that was counted, and how far the next count is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Known {
    #[serde(flatten)]
    pub(crate) load: Option<Load>,
    /// How far a count is that is under way.
    pub(crate) counting: Option<Progress>,
}

/// How far a count is.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress {
    done: u64,
    of: u64,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} jobs are counted", self.done, self.of)
    }
}

/// The loads that were asked for. To count the starts of very many jobs takes long, so it is done in steps: each request
/// goes on for a moment, and tells how far it is.
#[derive(Debug, Default)]
pub(crate) struct Loads(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    kept: Vec<Kept>,
    /// How often what was counted had to be forgotten.
    forgotten: u64,
}

#[derive(Debug)]
struct Kept {
    zone: String,
    day: Date,
    /// What was counted, when, and until when it is good.
    load: Option<(Load, Timestamp)>,
    count: Option<Count>,
    progress: Option<Progress>,
    /// Since when somebody has the count, if somebody does.
    taken: Option<Instant>,
}

impl Loads {
    /// What was counted may no longer hold.
    pub(crate) fn forget(&self) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.forgotten += 1;
        for kept in &mut shelf.kept {
            kept.count = None;
            kept.progress = None;
            if let Some((_, until)) = &mut kept.load {
                *until = Timestamp::MIN;
            }
        }
    }

    /// The load of a day in a zone. Where it is not known yet it is counted for a moment, or to the end.
    pub(crate) fn look(
        &self,
        board: &dyn Board,
        zone: &str,
        day: Option<&str>,
        to_the_end: bool,
    ) -> Answer<Known> {
        let named = board
            .zone(zone)
            .ok_or_else(|| Refused::wrong("zone", "the name of a time zone such as Europe/Paris", zone))?;
        let day: Date = match day {
            None => named.to_civil(board.now()).date(),
            Some(text) => {
                text.parse().map_err(|_| Refused::wrong("day", "a day such as 2026-03-01", text))?
            }
        };
        // Who counts takes the count along, and the others are told how far it was.
        let (mut count, forgotten) = match self.take(board, zone, &named, day)? {
            Ok(taken) => taken,
            Err(known) => return Ok(known),
        };
        let until = (!to_the_end).then(|| instant() + COUNTED_WITHIN);
        let counted = count.go_on(board, until);
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = shelf.forgotten == forgotten;
        let Some(kept) = shelf.kept.iter_mut().find(|kept| kept.is(zone, day)) else {
            // It was pushed out by others meanwhile.
            let load = counted?.then(|| count.load(board.now()));
            return Ok(Known { counting: load.is_none().then(|| count.progress()), load });
        };
        (kept.taken, kept.progress) = (None, None);
        if counted? {
            let good = GOOD_FOR.max(count.took() * GOOD_TIMES);
            let until = board.now().checked_add(good).unwrap_or(Timestamp::MAX);
            kept.load = Some((count.load(board.now()), if holds { until } else { Timestamp::MIN }));
        } else if holds {
            kept.progress = Some(count.progress());
            kept.count = Some(count);
        } else {
            kept.progress = Some(Progress { done: 0, ..count.progress() });
            kept.count = Some(count.anew());
        }
        Ok(kept.known())
    }

    /// The count to go on with, or what is known if there is nothing to count or somebody does.
    fn take(
        &self,
        board: &dyn Board,
        zone: &str,
        named: &Zone,
        day: Date,
    ) -> Answer<Result<(Count, u64), Known>> {
        let of = board.jobs(&Find { search: String::new(), offset: 0, limit: 1 })?.total;
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Shelf { kept: all, forgotten } = &mut *shelf;
        let at = all.iter().position(|kept| kept.is(zone, day)).unwrap_or_else(|| {
            if all.len() >= COUNTS_MAX {
                all.remove(0);
            }
            let zone = zone.to_owned();
            all.push(Kept { zone, day, load: None, count: None, progress: None, taken: None });
            all.len() - 1
        });
        let kept = &mut all[at];
        let is_good = kept.load.as_ref().is_some_and(|(_, until)| board.now() < *until);
        // Whoever has it for so long does not bring it back.
        let is_taken = kept.taken.is_some_and(|since| since.elapsed() < TAKEN_MAX);
        if is_good || is_taken {
            return Ok(Err(kept.known()));
        }
        let count = kept.count.take().unwrap_or_else(|| Count::new(zone, named, day, of));
        (kept.taken, kept.progress) = (Some(instant()), Some(count.progress()));
        Ok(Ok((count, *forgotten)))
    }
}

impl Kept {
    fn is(&self, zone: &str, day: Date) -> bool {
        self.zone == zone && self.day == day
    }

    fn known(&self) -> Known {
        Known { load: self.load.as_ref().map(|(load, _)| load.clone()), counting: self.progress }
    }
}

/// When something began, to bound how long it takes.
#[expect(clippy::disallowed_methods, reason = "how long counting takes is no matter of schedules")]
fn instant() -> Instant {
    Instant::now()
}

/// A count that is under way.
#[derive(Debug)]
struct Count {
    zone: Zone,
    zone_name: String,
    day: Date,
    /// When each day of the week begins, and the last one ends.
    begins: Vec<i64>,
    before: Vec<u32>,
    after: Vec<u32>,
    jobs: u64,
    paused: u64,
    looked_at: u64,
    is_partial: bool,
    /// Jobs that were read and not counted yet, and where those after them begin.
    waiting: Vec<Job>,
    from: Option<String>,
    has_begun: bool,
    seen: u64,
    of: u64,
    took: Duration,
}

impl Count {
    fn new(zone_name: &str, zone: &Zone, day: Date, of: u64) -> Count {
        let begins: Vec<i64> = (0..=DAYS)
            .map(|nth| midnight(zone, day.checked_add(jiff::Span::new().days(nth)).unwrap_or(day)))
            .collect();
        let minutes = usize::try_from((begins[begins.len() - 1] - begins[0]) / MINUTE).unwrap_or(0);
        Count {
            zone: zone.clone(),
            zone_name: zone_name.to_owned(),
            day,
            begins,
            before: vec![0; minutes],
            after: vec![0; minutes],
            jobs: 0,
            paused: 0,
            looked_at: 0,
            is_partial: false,
            waiting: Vec::new(),
            from: None,
            has_begun: false,
            seen: 0,
            of,
            took: Duration::ZERO,
        }
    }

    /// The same from the start.
    fn anew(&self) -> Count {
        Count::new(&self.zone_name, &self.zone, self.day, self.of)
    }

    /// Counts on, at most until then and at least one job. Says whether all are counted.
    fn go_on(&mut self, board: &dyn Board, until: Option<Instant>) -> Answer<bool> {
        let began = instant();
        let is_over = loop {
            let Some(job) = self.waiting.pop() else {
                if self.has_begun && self.from.is_none() {
                    break true;
                }
                let (jobs, next) = board.some_jobs(self.from.as_deref())?;
                (self.waiting, self.from, self.has_begun) = (jobs, next, true);
                continue;
            };
            if self.looked_at >= PERIODS_MAX {
                self.is_partial = true;
                break true;
            }
            self.add(&job);
            if until.is_some_and(|until| instant() >= until) {
                break false;
            }
        };
        self.took += began.elapsed();
        Ok(is_over)
    }

    fn add(&mut self, job: &Job) {
        self.seen += 1;
        if job.paused {
            self.paused += 1;
        } else if let Some(plan) = &job.plan {
            self.jobs += 1;
            let (start, end) = (self.begins[0], self.begins[self.begins.len() - 1]);
            let (seen, all) = count(plan, start, end, &mut self.before, &mut self.after);
            self.looked_at += seen;
            self.is_partial |= !all;
        }
    }

    fn progress(&self) -> Progress {
        Progress { done: self.seen, of: self.of.max(self.seen) }
    }

    fn took(&self) -> SignedDuration {
        SignedDuration::try_from(self.took).unwrap_or(SignedDuration::MAX / GOOD_TIMES)
    }

    /// What was counted, at that time.
    fn load(&self, counted_at: Timestamp) -> Load {
        let (zone, day, start) = (&self.zone, self.day, self.begins[0]);
        let mut week = Vec::new();
        for (nth, edges) in (0..DAYS).zip(self.begins.windows(2)) {
            let date = day.checked_add(jiff::Span::new().days(nth)).unwrap_or(day);
            let mut hours = [0_u64; 24];
            for second in (edges[0]..edges[1]).step_by(60) {
                let minute = usize::try_from((second - start) / MINUTE).unwrap_or(0);
                let at = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
                let hour = usize::try_from(zone.to_civil(at).hour()).unwrap_or(0);
                hours[hour] += u64::from(self.after.get(minute).copied().unwrap_or(0));
            }
            week.push(WeekDay { day: date.to_string(), name: date.strftime("%a").to_string(), hours });
        }
        let all_hours = week.iter().flat_map(|day| (0..24).map(move |hour| (day, hour, day.hours[hour])));
        let most = all_hours
            .max_by_key(|(_, hour, starts)| (*starts, std::cmp::Reverse(*hour)))
            .filter(|most| most.2 > 0);
        let peak_week = most.map(|(day, hour, starts)| PeakHour { day: day.day.clone(), hour, starts });
        let of_day = usize::try_from((self.begins[1] - start) / MINUTE).unwrap_or(0);
        let before = self.before[..of_day].to_vec();
        let after = self.after[..of_day].to_vec();
        Load {
            day: day.to_string(),
            zone: self.zone_name.clone(),
            from: Timestamp::from_second(start).unwrap_or(Timestamp::MIN),
            peak_before: peak(zone, start, &before),
            peak_after: peak(zone, start, &after),
            before,
            after,
            week,
            peak_week,
            jobs: self.jobs,
            paused: self.paused,
            is_partial: self.is_partial,
            counted_at,
        }
    }
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
