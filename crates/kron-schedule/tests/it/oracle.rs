//! A slow, obvious reference for what the crate computes fast.
//!
//! It shares nothing with the crate: its calendar counts days one at a time, its fields are lists
//! of items asked one by one, its clocks are jiff's, and it finds an occurrence by walking to it.
//! It passes over only what plainly holds none: between two changes of clocks, the rest of a day
//! that the day fields exclude, and the rest of a minute that the minute or hour field excludes.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) const DAY: i64 = 86_400;
/// The last whole second of jiff's time.
pub(crate) const LAST: i64 = 253_402_207_200;

/// An expression in a zone, under a policy.
pub(crate) struct Oracle<'z> {
    meaning: Meaning,
    zone: &'z TimeZone,
    /// The first instant after a gap stands for the times in the gap.
    after: bool,
    /// A local time that happens twice occurs twice.
    both: bool,
}

impl<'z> Oracle<'z> {
    /// The policy is written `gap=skip,fold=auto`; the expression is valid in its dialect.
    pub(crate) fn new(text: &str, zone: &'z TimeZone, policy: &str) -> Oracle<'z> {
        let meaning = Meaning::read(text);
        let auto = policy.contains("fold=auto") && meaning.is_interval;
        let both = policy.contains("fold=both") || auto;
        Oracle { meaning, zone, after: policy.contains("gap=after"), both }
    }

    pub(crate) fn every_days(
        days: i64,
        phase: i64,
        second: i64,
        zone: &'z TimeZone,
        policy: &str,
    ) -> Oracle<'z> {
        let clock = format!("{} {} {} * * *", second % 60, second / 60 % 60, second / 3_600);
        let mut oracle = Oracle::new(&clock, zone, policy);
        oracle.meaning.every_days = Some((days, phase));
        oracle
    }

    /// The definition of an occurrence.
    pub(crate) fn occurs(&self, at: i64) -> bool {
        if !(0..=LAST).contains(&at) {
            return false;
        }
        let local = at + self.offset(at);
        let shown = self.meaning.says(local) == Says::Yes && (self.both || !self.happened_before(local, at));
        shown || self.after && !self.swallowed(at).is_empty()
    }

    pub(crate) fn next_after(&self, after: i64) -> Option<i64> {
        let mut at = (after + 1).max(0);
        while at <= LAST {
            if self.occurs(at) {
                return Some(at);
            }
            let (change, offset) = (self.next_change(at), self.offset(at));
            while at < change && at <= LAST {
                let local = at + offset;
                at += match self.meaning.says(local) {
                    Says::NotThisDay => DAY - local.rem_euclid(DAY),
                    Says::NotThisMinute => 60 - local.rem_euclid(60),
                    Says::Yes if self.occurs(at) => return Some(at),
                    Says::Yes | Says::No => 1,
                };
            }
            at = change;
        }
        None
    }

    pub(crate) fn prev_at_or_before(&self, at: i64) -> Option<i64> {
        let mut at = at.min(LAST);
        while at >= 0 {
            let (begin, offset) = (self.quiet_since(at), self.offset(at));
            while at >= begin && at >= 0 {
                let local = at + offset;
                at -= match self.meaning.says(local) {
                    Says::NotThisDay => local.rem_euclid(DAY) + 1,
                    Says::NotThisMinute => local.rem_euclid(60) + 1,
                    Says::Yes if self.occurs(at) => return Some(at),
                    Says::Yes | Says::No => 1,
                };
            }
            if self.occurs(begin) {
                return Some(begin);
            }
            at = begin - 1;
        }
        None
    }

    /// The changes of clocks after one instant, up to and including another, that left out local
    /// times of the expression, and those times.
    pub(crate) fn skipped(&self, after: i64, through: i64) -> Vec<(i64, Vec<i64>)> {
        let mut skipped = Vec::new();
        let mut change = self.next_change(after.clamp(0, LAST));
        while change <= through.min(LAST) {
            let times = self.swallowed(change);
            if !self.after && !times.is_empty() {
                skipped.push((change, times));
            }
            change = self.next_change(change);
        }
        skipped
    }

    /// Whether clocks showed this local time before the instant. They never move by more than two
    /// days, so only offsets of the last few days can have shown it.
    fn happened_before(&self, local: i64, at: i64) -> bool {
        let mut since = (at - 3 * DAY).max(0);
        while since < at {
            let offset = self.offset(since);
            let earlier = local - offset;
            if earlier < at && self.offset(earlier) == offset {
                return true;
            }
            since = self.next_change(since);
        }
        false
    }

    /// The matching local times that clocks left out at an instant; none unless they were set forward.
    fn swallowed(&self, at: i64) -> Vec<i64> {
        let mut swallowed = Vec::new();
        let mut local = at + self.offset(at - 1);
        while local < at + self.offset(at) {
            local += match self.meaning.says(local) {
                Says::NotThisDay => DAY - local.rem_euclid(DAY),
                Says::NotThisMinute => 60 - local.rem_euclid(60),
                Says::No => 1,
                Says::Yes => {
                    swallowed.push(local);
                    1
                }
            };
        }
        swallowed
    }

    fn offset(&self, at: i64) -> i64 {
        self.zone.to_offset(instant(at)).seconds().into()
    }

    fn next_change(&self, at: i64) -> i64 {
        self.zone.following(instant(at)).next().map_or(i64::MAX, |change| change.timestamp().as_second())
    }

    /// An instant at or before this one since which nobody touched the clocks: a change, or some
    /// months ago. (`TimeZone::preceding` of jiff 0.2.39 would not do: it has the change of
    /// 2007-03-11 in America/Indiana/Winamac an hour early.)
    fn quiet_since(&self, at: i64) -> i64 {
        let mut since = at - 100 * DAY;
        loop {
            match self.next_change(since) {
                change if change <= at => since = change,
                _ => return since,
            }
        }
    }
}

fn instant(at: i64) -> Timestamp {
    Timestamp::from_second(at).expect("the walk stays within jiff's time")
}

/// What the fields say, item by item.
struct Meaning {
    second: Vec<Item>,
    minute: Vec<Item>,
    hour: Vec<Item>,
    /// `None` for exactly `*`.
    day: Option<Vec<Item>>,
    month: Vec<Item>,
    /// `None` for exactly `*`.
    weekday: Option<Vec<Item>>,
    /// Only days whose number leaves this remainder.
    every_days: Option<(i64, i64)>,
    is_interval: bool,
}

enum Item {
    /// From, to, step.
    Values(i64, i64, i64),
    LastDay,
    LastWorkday,
    NearestWorkday(i64),
    LastOfWeekday(i64),
    NthOfWeekday(i64, i64),
}

#[derive(PartialEq)]
enum Says {
    NotThisDay,
    NotThisMinute,
    No,
    Yes,
}

impl Meaning {
    fn says(&self, local: i64) -> Says {
        let second = local.rem_euclid(DAY);
        if !self.is_day(local.div_euclid(DAY)) {
            Says::NotThisDay
        } else if !has(&self.hour, second / 3_600) || !has(&self.minute, second / 60 % 60) {
            Says::NotThisMinute
        } else if has(&self.second, second % 60) {
            Says::Yes
        } else {
            Says::No
        }
    }

    fn is_day(&self, number: i64) -> bool {
        if let Some((days, phase)) = self.every_days {
            return number.rem_euclid(days) == phase;
        }
        let day = &DAYS[usize::try_from(number - DAYS_BEGIN).expect("the walk begins in 1970")];
        let by_day = || self.day.iter().flatten().any(|item| item.is_day(day));
        let by_weekday = || self.weekday.iter().flatten().any(|item| item.is_weekday(day));
        has(&self.month, day.month)
            && match (&self.day, &self.weekday) {
                (None, None) => true,
                (Some(_), None) => by_day(),
                (None, Some(_)) => by_weekday(),
                (Some(_), Some(_)) => by_day() || by_weekday(),
            }
    }
}

fn has(items: &[Item], value: i64) -> bool {
    items.iter().any(|item| item.has(value))
}

impl Item {
    fn has(&self, value: i64) -> bool {
        match *self {
            Item::Values(from, to, step) => from <= value && value <= to && (value - from) % step == 0,
            _ => false,
        }
    }

    fn is_day(&self, day: &Day) -> bool {
        match *self {
            Item::LastDay => day.day == day.length,
            Item::LastWorkday => workdays(day).last() == Some(day.day),
            Item::NearestWorkday(wanted) => {
                wanted <= day.length
                    && workdays(day).min_by_key(|workday| (workday - wanted).abs()) == Some(day.day)
            }
            _ => self.has(day.day),
        }
    }

    fn is_weekday(&self, day: &Day) -> bool {
        match *self {
            Item::LastOfWeekday(weekday) => day.weekday == weekday && day.day + 7 > day.length,
            Item::NthOfWeekday(weekday, nth) => day.weekday == weekday && (day.day + 6) / 7 == nth,
            // Sunday is 0, and where a range reaches it, also 7.
            _ => self.has(day.weekday) || day.weekday == 0 && self.has(7),
        }
    }
}

/// The days from Monday to Friday of the month that a day lies in.
fn workdays(day: &Day) -> impl Iterator<Item = i64> {
    let (today, weekday) = (day.day, day.weekday);
    (1..=day.length).filter(move |other| (1..=5).contains(&(weekday + other - today).rem_euclid(7)))
}

struct Day {
    month: i64,
    day: i64,
    weekday: i64,
    /// Of the month.
    length: i64,
}

/// The number of the first day in [`DAYS`], 1969-01-01, counted from 1970-01-01.
const DAYS_BEGIN: i64 = -365;

/// Every day of the years 1969 to 9999, counted off.
static DAYS: LazyLock<Vec<Day>> = LazyLock::new(|| {
    let mut days = Vec::new();
    let mut weekday = 3; // 1969-01-01 was a Wednesday
    for year in 1969..=9999 {
        let leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
        let lengths = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in (1..).zip(lengths) {
            for day in 1..=length {
                days.push(Day { month, day, weekday, length });
                weekday = (weekday + 1) % 7;
            }
        }
    }
    days
});

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Meaning {
    /// Reads a valid expression of any dialect.
    fn read(text: &str) -> Meaning {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *".into(),
            "@monthly" => "0 0 1 * *".into(),
            "@weekly" => "0 0 * * 0".into(),
            "@daily" | "@midnight" => "0 0 * * *".into(),
            "@hourly" => "0 * * * *".into(),
            fields => fields.to_ascii_uppercase(),
        };
        let mut fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        let [second, minute, hour, day, month, weekday] = fields[..] else {
            panic!("not an expression: {text}");
        };
        let restricted = |field: &str, items| if field == "*" { None } else { Some(items) };
        Meaning {
            second: items(second, 0, 59, &[]),
            minute: items(minute, 0, 59, &[]),
            hour: items(hour, 0, 23, &[]),
            day: restricted(day, items(day, 1, 31, &[])),
            month: items(month, 1, 12, &MONTHS),
            weekday: restricted(weekday, items(weekday, 0, 6, &WEEKDAYS)),
            every_days: None,
            is_interval: minute.starts_with('*') || hour.starts_with('*'),
        }
    }
}

fn items(field: &str, min: i64, max: i64, names: &[&str]) -> Vec<Item> {
    let value = |text: &str| {
        let named = (min..).zip(names).find(|(_, name)| **name == text);
        named.map_or_else(
            || text.parse().unwrap_or_else(|_| panic!("not a value: {text}")),
            |(value, _)| value,
        )
    };
    let item = |item: &str| {
        // The specials first: `L` and `W` are also letters of names.
        if item == "L" {
            return Item::LastDay;
        }
        if item == "LW" {
            return Item::LastWorkday;
        }
        if let Some((weekday, nth)) = item.split_once('#') {
            return Item::NthOfWeekday(value(weekday) % 7, value(nth));
        }
        match item.strip_suffix(['L', 'W']) {
            Some(day) if item.ends_with('W') => return Item::NearestWorkday(value(day)),
            Some(weekday) if !names.contains(&item) && min == 0 => {
                return Item::LastOfWeekday(value(weekday) % 7);
            }
            _ => {}
        }
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(value(step))),
            None => (item, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((from, to)) => (value(from), value(to)),
            None if step.is_some() => (value(range), max.max(value(range))), // from here to the end
            None => (value(range), value(range)),
        };
        Item::Values(from, to, step.unwrap_or(1))
    };
    field.split(',').map(item).collect()
}
