//! A time zone as a table: which offset holds when.
//!
//! Instants and civil times are plain seconds here, the civil ones counted as if 1970-01-01T00:00
//! had been UTC. Between two changes of clocks the offset is constant, so a search needs one look
//! at the table for each change it passes, and converts by adding.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use crate::calendar::{self, CYCLE_DAYS, DAY};

/// A time zone that schedules can be searched in. Clones share one table.
///
/// Kron's pure crates have no time zone database: whoever has one looks the zone up and hands it in.
///
/// ```
/// use jiff::{civil::date, tz::TimeZone};
/// use kron_schedule::Zone;
///
/// let zone = Zone::new(&TimeZone::get("Asia/Kathmandu")?)?;
/// assert_eq!(zone.name(), "Asia/Kathmandu");
/// let noon = zone.to_civil("2026-03-01T06:15:00Z".parse()?);
/// assert_eq!(noon, date(2026, 3, 1).at(12, 0, 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Zone(Arc<Table>);

struct Table {
    name: String,
    /// The stretches of one offset, in order. The first is the one of 1970, and the last has no end.
    segments: Vec<Segment>,
    /// For each `2^BUCKET_BITS` seconds from 1970 on, the number of the segment that holds at their start.
    index: Vec<u16>,
    /// The last segment, if it holds for ever, and otherwise, if clocks change every year, one that holds nowhere.
    /// Where clocks never change, as in UTC, the index is empty and this is all there is to look at.
    finally: Segment,
    offset_min: i64,
    offset_max: i64,
}

/// A stretch of time with one offset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Segment {
    /// The first instant.
    pub(crate) begin: i64,
    /// The first instant after it.
    pub(crate) end: i64,
    pub(crate) offset: i64,
    /// The offset that held before `begin`.
    pub(crate) before: i64,
    /// From which instant on nothing but this segment has a say: it is not the first of it, its civil time has not
    /// happened before, and it is not before 1970.
    settled: i64,
}

impl Segment {
    /// The civil time at which the segment begins.
    pub(crate) fn opens(&self) -> i64 {
        self.begin + self.offset
    }

    /// The civil time that had been reached when the segment began. What lies between it and
    /// [`opens`](Segment::opens) happens twice if the clocks were set back, and never if forward.
    pub(crate) fn reached(&self) -> i64 {
        self.begin + self.before
    }

    /// One that has no end yet.
    fn new(begin: i64, offset: i64, before: i64) -> Segment {
        let settled = (begin + (before - offset).max(1)).max(0);
        Segment { begin, end: FOREVER, offset, before, settled }
    }

    /// It begins and ends after any time that can be asked for.
    const NOWHERE: Segment = Segment { begin: FOREVER, end: FOREVER, offset: 0, before: 0, settled: FOREVER };

    pub(crate) fn holds(&self, instant: i64) -> bool {
        self.begin <= instant && instant < self.end
    }

    /// Whether no change of clocks has a say in what comes from one instant in it to another.
    pub(crate) fn has_alone(&self, from: i64, to: i64) -> bool {
        self.settled <= from && to < self.end
    }

    /// Whether a civil time of this segment has already happened in the one before.
    pub(crate) fn repeats(&self, civil: i64) -> bool {
        civil < self.reached()
    }
}

/// Times far outside any that can be asked for, with room to add offsets.
const FOREVER: i64 = i64::MAX / 4;

/// 2101-01-01T00:00:00Z. By then every zone follows its last rule (the latest explicit change in
/// the database is in 2087), and a rule repeats with the calendar, every 400 years.
const CYCLE_BEGIN: i64 = calendar::first_of_month(2101, 1) * DAY;
const CYCLE: i64 = CYCLE_DAYS * DAY;
/// The table goes a little past the first cycle, so that every stretch in it has its end.
const TABLE_END: i64 = calendar::first_of_month(2503, 1) * DAY;

/// 48 days: no zone changes its clocks often enough to make more than a few steps from the index.
const BUCKET_BITS: u32 = 22;

/// The most changes of clocks of one zone in the table: four a year from 1970 to 2503. Known zones
/// have at most about 1,100.
const CHANGES_MAX: usize = 2_132;

/// Two changes of clocks may not be closer than this. Clocks move by at most 52 hours, so what a
/// change repeats or leaves out concerns no other change. Since 1970 the closest are a week apart.
const SEGMENT_MIN: i64 = 5 * DAY;

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Zone {
        Zone::new(&TimeZone::UTC).expect("UTC has no changes of clocks")
    }

    /// Makes the table of a zone, from 1970 on.
    ///
    /// # Errors
    ///
    /// For a zone that jiff could not find out, and for one whose clocks change so often that the
    /// changes run into each other. No zone of the IANA database is like that.
    pub fn new(zone: &TimeZone) -> Result<Zone, ZoneError> {
        if zone.is_unknown() {
            return Err(ZoneError { name: "Etc/Unknown".into(), at: None });
        }
        let name = match (zone.iana_name(), zone.to_fixed_offset()) {
            (Some(name), _) => name.to_string(),
            (None, Ok(offset)) => offset.to_string(),
            (None, Err(_)) => "a zone without a name".into(),
        };
        let offset = zone.to_offset(Timestamp::UNIX_EPOCH).seconds().into();
        let mut last = Segment::new(-FOREVER, offset, offset);
        let mut segments = Vec::new();
        for change in zone.following(Timestamp::UNIX_EPOCH) {
            let (at, offset) = (change.timestamp().as_second(), i64::from(change.offset().seconds()));
            if at >= TABLE_END {
                break;
            }
            if offset == last.offset {
                continue; // only the abbreviation changed
            }
            if at - last.begin < SEGMENT_MIN || segments.len() >= CHANGES_MAX {
                return Err(ZoneError { name, at: Some(change.timestamp()) });
            }
            segments.push(Segment { end: at, ..last });
            last = Segment::new(at, offset, last.offset);
        }
        segments.push(last);
        let finally = if last.begin < CYCLE_BEGIN { last } else { Segment::NOWHERE };
        let offsets = || segments.iter().map(|segment| segment.offset);
        let (offset_min, offset_max) = (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0));
        let index = index(&segments, finally.begin.min(RECURRENCE.end));
        Ok(Zone(Arc::new(Table { name, segments, index, finally, offset_min, offset_max })))
    }

    /// The name it was looked up by; a fixed offset where there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What clocks show at that instant. Before 1970 the offset of 1970 is used.
    #[must_use]
    pub fn to_civil(&self, instant: Timestamp) -> DateTime {
        let second = floor_second(instant);
        let civil = to_date_time(second + self.segment_at(second).offset);
        let nanos = instant.as_nanosecond() - i128::from(second) * 1_000_000_000;
        let nanos = i32::try_from(nanos).expect("what floor_second leaves is below a second");
        civil.with().subsec_nanosecond(nanos).build().expect("a whole second takes any fraction")
    }

    /// The offset from UTC at that instant. Before 1970 the offset of 1970 is used.
    #[must_use]
    pub fn offset_at(&self, instant: Timestamp) -> Offset {
        let second = floor_second(instant);
        let offset = self.segment_at(second).offset;
        let offset = i32::try_from(offset).ok().and_then(|offset| Offset::from_seconds(offset).ok());
        offset.expect("offsets come from jiff")
    }

    /// Whether its clocks have changed since 1970, or will.
    pub(crate) fn changes(&self) -> bool {
        self.0.segments.len() > 1
    }

    /// How many changes of clocks a stretch of that length can hold at the most.
    pub(crate) fn most_changes_within(&self, seconds: i64) -> u64 {
        if self.changes() { (seconds / SEGMENT_MIN).unsigned_abs() + 1 } else { 0 }
    }

    pub(crate) fn offset_min(&self) -> i64 {
        self.0.offset_min
    }

    pub(crate) fn offset_max(&self) -> i64 {
        self.0.offset_max
    }

    /// The stretch of one offset that the instant lies in.
    pub(crate) fn segment_at(&self, instant: i64) -> Segment {
        // Before 1970 the offset of 1970 is used.
        let segment = self.listed_at(instant.max(0));
        if segment.holds(instant) {
            return *segment;
        }
        let shift = (instant - CYCLE_BEGIN) / CYCLE * CYCLE;
        let segments = &self.0.segments;
        let number = segments.partition_point(|segment| segment.end <= instant - shift);
        let segment = segments[number];
        let (begin, end, settled) = (segment.begin + shift, segment.end + shift, segment.settled + shift);
        Segment { begin, end, settled, ..segment }
    }

    /// The same where the table has it as it is. Otherwise, which is before 1970, and after 2500 if clocks change every
    /// year for ever, it is one that is not settled at that instant.
    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "before 1970 is then past the index too")]
    pub(crate) fn listed_at(&self, instant: i64) -> &Segment {
        let table = &*self.0;
        let bucket = (instant >> BUCKET_BITS) as usize;
        let Some(number) = table.index.get(bucket) else { return &table.finally };
        let mut number = usize::from(*number);
        while let Some(segment) = table.segments.get(number) {
            if instant < segment.end {
                return segment;
            }
            number += 1;
        }
        &table.finally
    }

    /// The first stretch to begin after the instant, if clocks ever change again.
    pub(crate) fn segment_after(&self, instant: i64) -> Option<Segment> {
        let end = self.segment_at(instant).end;
        (end < FOREVER).then(|| self.segment_at(end))
    }
}

/// When the first cycle begins that repeats for ever.
pub(crate) const RECURRENCE: core::ops::Range<i64> = CYCLE_BEGIN..CYCLE_BEGIN + CYCLE;

/// Which segment holds at the start of each bucket that begins before an instant.
#[expect(clippy::cast_possible_truncation, reason = "there are at most CHANGES_MAX segments")]
fn index(segments: &[Segment], until: i64) -> Vec<u16> {
    let mut number = 0;
    (0..)
        .map(|bucket: i64| bucket << BUCKET_BITS)
        .take_while(|begin| *begin < until)
        .map(|begin| {
            while segments[number].end <= begin {
                number += 1;
            }
            number as u16
        })
        .collect()
}

/// The whole second an instant lies in.
pub(crate) fn floor_second(instant: Timestamp) -> i64 {
    // jiff counts toward zero: below 1970 a fraction has been rounded up.
    instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
}

/// The instant of a second that a search has found.
pub(crate) fn to_timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("the search stays within jiff's time")
}

/// A civil time by its names.
pub(crate) fn to_date_time(civil: i64) -> DateTime {
    let (day, second) = calendar::day_and_second(civil);
    let day = calendar::ymd(day);
    let small = |value: u32| i8::try_from(value).expect("parts of a date are small");
    let year = i16::try_from(day.year).expect("jiff's years fit");
    let date = Date::new(year, small(day.month), small(day.day));
    let time = Time::new(small(second / 3_600), small(second / 60 % 60), small(second % 60), 0);
    let (date, time) = (date.expect("a day of the calendar"), time.expect("a time of day"));
    DateTime::from_parts(date, time)
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.0.name).finish()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        Arc::ptr_eq(&self.0, &other.0) || (&a.name, &a.segments) == (&b.name, &b.segments)
    }
}

impl Eq for Zone {}

/// A zone that cannot be scheduled in: it is not known, or its clocks change too often.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ZoneError {
    name: String,
    /// The change of clocks that comes too soon.
    at: Option<Timestamp>,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.at {
            None => write!(f, "expected a time zone, but found `{name}`, which nobody could find out"),
            Some(at) => write!(
                f,
                "the clocks of `{name}` change too often: expected at least 5 days before the change at {at}"
            ),
        }
    }
}

impl core::error::Error for ZoneError {}
