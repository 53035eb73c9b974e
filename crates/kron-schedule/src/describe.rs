//! An expression becomes the English sentence a person would write for it.
//!
//! First the time of day, from the shortest unit outwards; then the days; then the months. Nothing
//! that restricts is left out, so different meanings have different sentences. How a field was
//! spelled matters in one way: an even `*/s` is told as an interval, however few its values.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::compile::month_name;
use crate::duration::Duration;
use crate::expr::{Cron, Days, Expr, Fields, Shape, Values, Weekdays, ones};
use crate::field::{Field, progression};

impl Expr {
    /// An English sentence, without a full stop.
    ///
    /// ```
    /// use kron_schedule::{Dialect, Expr};
    ///
    /// let describe = |text| Expr::parse(text, Dialect::Ojs).map(|expr| expr.describe());
    /// assert_eq!(describe("0 9 * * MON-FRI")?, "At 09:00 on weekdays");
    /// assert_eq!(
    ///     describe("*/15 8-18 * * FRIL")?,
    ///     "Every 15 minutes past hours 8 to 18 on the last Friday of the month"
    /// );
    /// assert_eq!(describe("0 0 1 * MON")?, "At 00:00 on the 1st of the month or on Monday");
    /// assert_eq!(describe("@every 90m")?, "Every 1 hour 30 minutes");
    /// # Ok::<(), kron_schedule::ParseError>(())
    /// ```
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Expr::Cron(cron) => cron.describe(),
            Expr::Every(every) => interval(every.interval()),
        }
    }
}

impl Cron {
    fn describe(&self) -> String {
        let fields = &self.fields;
        let months = match self.day_rule() {
            // These days are told with their month: "on the 1st of January".
            DayRule::Dates | DayRule::NthWeekdays => None,
            DayRule::Any | DayRule::Either | DayRule::Weekdays => months(fields.month),
        };
        let mut sentence = self.time();
        for clause in [self.days(), months].into_iter().flatten() {
            // A comma keeps the month from joining the second of two kinds of days, and one span
            // from running into the next.
            let apart =
                sentence.contains(" or ") || sentence.contains(" from ") && clause.starts_with("from ");
            sentence.push_str(if apart { ", " } else { " " });
            sentence.push_str(&clause);
        }
        sentence
    }

    fn time(&self) -> String {
        let fields = &self.fields;
        if let Some(hours) = every_so_many_hours(fields) {
            return hours;
        }
        if let Some(times) = times_of_day(fields) {
            return match self.day_rule() {
                DayRule::Any => format!("At {times} every day"),
                _ => format!("At {times}"),
            };
        }
        if has_seconds(fields) { by_second(fields) } else { by_minute(fields) }
    }

    fn days(&self) -> Option<String> {
        let Fields { day, month, weekday, .. } = &self.fields;
        match self.day_rule() {
            DayRule::Any => None,
            DayRule::Dates => Some(dates(day, &of_months(*month))),
            DayRule::Either => Some(format!("{} or {}", dates(day, MONTH), weekdays(weekday, MONTH))),
            DayRule::NthWeekdays => Some(weekdays(weekday, &of_months(*month))),
            DayRule::Weekdays => Some(weekdays(weekday, MONTH)),
        }
    }

    fn day_rule(&self) -> DayRule {
        let Fields { day, weekday, .. } = &self.fields;
        if is_full(day.values, Field::Day) && is_full(weekday.values, Field::Weekday) {
            return DayRule::Any;
        }
        match (self.restricts_day(), self.restricts_weekday()) {
            (true, true) => DayRule::Either,
            (true, false) => DayRule::Dates,
            (false, _) if weekday.values.bits == 0 => DayRule::NthWeekdays,
            (false, _) => DayRule::Weekdays,
        }
    }
}

/// What decides the days.
enum DayRule {
    Any,
    Dates,
    Either,
    /// Weekdays by their place in the month only.
    NthWeekdays,
    /// Weekdays of every week, perhaps with some by their place in the month.
    Weekdays,
}

/// "Every 2 hours at minute 30", "Every hour from 09:00 to 17:00".
fn every_so_many_hours(fields: &Fields) -> Option<String> {
    let (minute, second) = (only_value(fields.minute)?, only_value(fields.second)?);
    if is_full(fields.hour, Field::Hour) {
        return (minute == 0 && second == 0).then(|| "Every hour".into());
    }
    let stride = interval_of(fields.hour, Field::Hour)?;
    let every = every_so_many(stride.step, Field::Hour);
    Some(match (stride.is_even(Field::Hour), minute, second) {
        (true, 0, 0) => every,
        (true, minute, 0) => format!("{every} at minute {minute}"),
        _ => {
            let time = |hour| clock(fields, hour, minute, second);
            format!("{every} from {} to {}", time(stride.from), time(stride.to))
        }
    })
}

/// The most times of day that are listed one by one.
const TIMES_MAX: u32 = 6;

/// "09:00, 09:30, 17:00 and 17:30", if the times are few and none of the fields is an interval.
fn times_of_day(fields: &Fields) -> Option<String> {
    let Fields { second, minute, hour, .. } = *fields;
    let count = second.bits.count_ones() * minute.bits.count_ones() * hour.bits.count_ones();
    if count > TIMES_MAX
        || interval_of(second, Field::Second).is_some()
        || interval_of(minute, Field::Minute).is_some()
    {
        return None;
    }
    let mut times = Vec::new();
    for h in ones(hour.bits) {
        for m in ones(minute.bits) {
            times.extend(ones(second.bits).map(|s| clock(fields, h, m, s)));
        }
    }
    Some(and(&times))
}

/// The time with seconds only if the expression has some.
fn clock(fields: &Fields, hour: u32, minute: u32, second: u32) -> String {
    if has_seconds(fields) {
        format!("{hour:02}:{minute:02}:{second:02}")
    } else {
        format!("{hour:02}:{minute:02}")
    }
}

/// Whether it names another second than the first of a minute.
fn has_seconds(fields: &Fields) -> bool {
    only_value(fields.second) != Some(0)
}

/// "Every 15 minutes past hours 8 to 18".
fn by_minute(fields: &Fields) -> String {
    let Fields { minute, hour, .. } = *fields;
    let rhythm = Rhythm::of(minute, Field::Minute);
    let every_hour = is_full(hour, Field::Hour);
    let hours = match rhythm {
        Rhythm::All => hours_of_every_minute(hour),
        Rhythm::Even { .. } if every_hour => String::new(),
        Rhythm::FromStart { .. } if every_hour => " of each hour".into(),
        Rhythm::FromStart { .. } => format!(" of {}", numbered(hour, Field::Hour)),
        Rhythm::Even { .. } | Rhythm::List | Rhythm::Part(_) => hours_past(hour),
    };
    format!("{}{hours}", rhythm.phrase(minute, Field::Minute))
}

/// "At second 30 of every minute", "Every 10 seconds of minutes 0 and 30 past hour 9".
fn by_second(fields: &Fields) -> String {
    let Fields { second, minute, hour, .. } = *fields;
    let rhythm = Rhythm::of(second, Field::Second);
    let phrase = rhythm.phrase(second, Field::Second);
    if !is_full(minute, Field::Minute) {
        return format!("{phrase} of {}{}", numbered(minute, Field::Minute), hours_past(hour));
    }
    let minutes = match rhythm {
        Rhythm::All | Rhythm::Even { .. } => "",
        Rhythm::FromStart { .. } => " of each minute",
        Rhythm::List | Rhythm::Part(_) => " of every minute",
    };
    format!("{phrase}{minutes}{}", hours_of_every_minute(hour))
}

/// The hours after every minute of them: " from 08:00 to 18:59".
fn hours_of_every_minute(hour: Values) -> String {
    match stride(hour.bits) {
        _ if is_full(hour, Field::Hour) => String::new(),
        Some(Stride { from, to, step: 1 }) => format!(" from {from:02}:00 to {to:02}:59"),
        _ => format!(" of {}", numbered(hour, Field::Hour)),
    }
}

/// The hours after some of their minutes: " past hours 8 to 18".
fn hours_past(hour: Values) -> String {
    if is_full(hour, Field::Hour) {
        " of every hour".into()
    } else {
        format!(" past {}", numbered(hour, Field::Hour))
    }
}

/// How the values of the shortest unit follow each other.
#[derive(Clone, Copy)]
enum Rhythm {
    All,
    /// The distance is the same everywhere, across the ends of the longer unit too.
    Even {
        step: u32,
    },
    /// From the start of the longer unit to its end, where the distance breaks.
    FromStart {
        step: u32,
    },
    List,
    /// At equal distances in a part of the longer unit.
    Part(Stride),
}

impl Rhythm {
    fn of(values: Values, field: Field) -> Rhythm {
        if is_full(values, field) {
            return Rhythm::All;
        }
        match interval_of(values, field) {
            None | Some(Stride { step: 1, .. }) => Rhythm::List,
            Some(stride) if stride.is_even(field) => Rhythm::Even { step: stride.step },
            Some(stride) if stride.is_whole(field) => Rhythm::FromStart { step: stride.step },
            Some(stride) => Rhythm::Part(stride),
        }
    }

    /// The beginning of the sentence.
    fn phrase(self, values: Values, field: Field) -> String {
        match self {
            Rhythm::All => every_so_many(1, field),
            Rhythm::Even { step } => every_so_many(step, field),
            Rhythm::FromStart { step } => format!("{} from the start", every_so_many(step, field)),
            Rhythm::List => format!("At {}", numbered(values, field)),
            Rhythm::Part(Stride { from, to, step }) => {
                format!("{} from {field} {from} to {field} {to}", every_so_many(step, field))
            }
        }
    }
}

/// "Every minute", "Every 15 minutes".
fn every_so_many(step: u32, field: Field) -> String {
    match step {
        1 => format!("Every {field}"),
        step => format!("Every {step} {field}s"),
    }
}

/// "hour 9", "hours 8 to 12, 14 and 18", "every 2nd hour from 0 to 22".
fn numbered(values: Values, field: Field) -> String {
    match long_stride(values.bits) {
        Some(Stride { from, to, step }) => format!("every {} {field} from {from} to {to}", ordinal(step)),
        None => {
            let plural = if values.bits.count_ones() == 1 { "" } else { "s" };
            format!("{field}{plural} {}", and(&list(values.bits, |value| value.to_string())))
        }
    }
}

const MONTH: &str = "the month";

/// "on the 1st and 15th of the month".
fn dates(days: &Days, month: &str) -> String {
    let bits = days.values.bits;
    if is_full(days.values, Field::Day) {
        return format!("on every day of {month}");
    }
    let mut others: Vec<String> =
        ones(days.nearest.into()).map(|day| format!("the weekday nearest the {}", ordinal(day))).collect();
    others.extend(days.last.then(|| "the last day".into()));
    others.extend(days.last_weekday.then(|| "the last weekday".into()));
    if others.is_empty()
        && let Some((from, to)) = run(bits)
    {
        return format!("from the {} to the {} of {month}", ordinal(from), ordinal(to));
    }
    let mut items = match long_stride(bits) {
        Some(Stride { from, to, step }) => {
            vec![format!("every {} day from the {} to the {}", ordinal(step), ordinal(from), ordinal(to))]
        }
        None => {
            let mut items = list(bits, ordinal);
            if let Some(first) = items.first_mut() {
                first.insert_str(0, "the ");
            }
            items
        }
    };
    items.append(&mut others);
    format!("on {} of {month}", and(&items))
}

/// "on Monday and the first and third Friday of the month".
fn weekdays(weekdays: &Weekdays, month: &str) -> String {
    const MONDAY_TO_FRIDAY: u64 = 0b011_1110;
    const SATURDAY_AND_SUNDAY: u64 = 0b100_0001;
    let bits = weekdays.values.bits;
    let mut nth: Vec<String> = WEEK.into_iter().filter_map(|day| nth_weekday(weekdays, day)).collect();
    let mut items = match bits {
        _ if is_full(weekdays.values, Field::Weekday) => return "on every day of the week".into(),
        MONDAY_TO_FRIDAY => vec!["weekdays".into()],
        SATURDAY_AND_SUNDAY => vec!["weekends".into()],
        _ => match cyclic_run(bits, Field::Weekday) {
            Some((from, to)) if nth.is_empty() => {
                return format!("from {} to {}", weekday_name(from), weekday_name(to));
            }
            Some((from, to)) => vec![format!("{} to {}", weekday_name(from), weekday_name(to))],
            None => WEEK.into_iter().filter(|day| bits >> day & 1 == 1).map(weekday_name).collect(),
        },
    };
    if nth.is_empty() {
        return format!("on {}", and(&items));
    }
    items.append(&mut nth);
    format!("on {} of {month}", and(&items))
}

/// "the first and third Friday".
fn nth_weekday(weekdays: &Weekdays, day: u32) -> Option<String> {
    const NTH: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
    let mut nth: Vec<String> = NTH
        .iter()
        .zip(weekdays.nth)
        .filter(|(_, bits)| bits >> day & 1 == 1)
        .map(|(n, _)| (*n).into())
        .collect();
    nth.extend((weekdays.last >> day & 1 == 1).then(|| "last".into()));
    (!nth.is_empty()).then(|| format!("the {} {}", and(&nth), weekday_name(day)))
}

/// The weekdays as a week is told, with Sunday at its end.
const WEEK: [u32; 7] = [1, 2, 3, 4, 5, 6, 0];

fn weekday_name(day: u32) -> String {
    const NAMES: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    NAMES[day as usize].into()
}

/// "in March and July", "from November to February".
fn months(month: Values) -> Option<String> {
    if is_full(month, Field::Month) {
        return None;
    }
    Some(match cyclic_run(month.bits, Field::Month) {
        Some((from, to)) => format!("from {} to {}", month_name(from), month_name(to)),
        None => format!("in {}", month_names(month)),
    })
}

/// The months after "the 1st of": "January and July", "each month from March to June".
fn of_months(month: Values) -> String {
    match cyclic_run(month.bits, Field::Month) {
        _ if is_full(month, Field::Month) => MONTH.into(),
        Some((from, to)) => format!("each month from {} to {}", month_name(from), month_name(to)),
        None => month_names(month),
    }
}

fn month_names(month: Values) -> String {
    and(&list(month.bits, |month| month_name(month).into()))
}

/// "Every 1 hour 30 minutes". There are no days: a day does not always have 24 hours.
fn interval(interval: Duration) -> String {
    const UNITS: [(&str, i64); 6] = [
        ("hour", 3_600_000_000_000),
        ("minute", 60_000_000_000),
        ("second", 1_000_000_000),
        ("millisecond", 1_000_000),
        ("microsecond", 1_000),
        ("nanosecond", 1),
    ];
    let mut rest = interval.as_nanos();
    let mut parts = Vec::new();
    for (unit, nanos) in UNITS {
        match rest / nanos {
            0 => {}
            1 if rest == nanos && parts.is_empty() => parts.push(unit.to_string()),
            1 => parts.push(format!("1 {unit}")),
            count => parts.push(format!("{count} {unit}s")),
        }
        rest %= nanos;
    }
    format!("Every {}", parts.join(" "))
}

/// Values at equal distances.
#[derive(Clone, Copy)]
struct Stride {
    from: u32,
    to: u32,
    step: u32,
}

impl Stride {
    /// Whether it goes through the whole field from its start.
    fn is_whole(self, field: Field) -> bool {
        self.from == field.min() && self.to + self.step > field.max()
    }

    /// Whether the distance from the last value to the first of the next round is the same.
    fn is_even(self, field: Field) -> bool {
        self.from == field.min() && self.to + self.step == field.max() + 1
    }
}

/// From how many values on a stride begins the sentence, "Every 15 minutes".
const INTERVAL_MIN: u32 = 4;
/// From how many values on a stride is told within the sentence, "every 2nd hour".
const STRIDE_MIN: u32 = 5;
/// From how many values on a run is told by its ends.
const RUN_MIN: u32 = 3;

/// The values as one stride, if they are one; a single value is a run of one.
fn stride(bits: u64) -> Option<Stride> {
    let from = bits.trailing_zeros();
    let to = bits.checked_ilog2()?;
    let step = match bits & (bits - 1) {
        0 => 1,
        others => others.trailing_zeros() - from,
    };
    (progression(from, to, step) == bits).then_some(Stride { from, to, step })
}

/// The values as an interval: a long stride, or one written `*/s` that comes out even.
fn interval_of(values: Values, field: Field) -> Option<Stride> {
    let count = values.bits.count_ones();
    let written = |stride: Stride| values.shape != Shape::List && stride.is_even(field) && count > 1;
    stride(values.bits).filter(|&stride| count >= INTERVAL_MIN || written(stride))
}

/// The values as a long stride with gaps.
fn long_stride(bits: u64) -> Option<Stride> {
    stride(bits).filter(|stride| stride.step > 1 && bits.count_ones() >= STRIDE_MIN)
}

/// The ends of a run, if the values are one.
fn run(bits: u64) -> Option<(u32, u32)> {
    let Stride { from, to, step } = stride(bits)?;
    (step == 1 && bits.count_ones() >= RUN_MIN).then_some((from, to))
}

/// The ends of a run, if the values are one that may go on past the end of the week or the year.
fn cyclic_run(bits: u64, field: Field) -> Option<(u32, u32)> {
    let before = |value| if value == field.min() { field.max() } else { value - 1 };
    let has = |value: u32| bits >> value & 1 == 1;
    let mut starts = ones(bits).filter(|&value| !has(before(value)));
    let mut ends = ones(field.all() & !bits).map(before).filter(|&value| has(value));
    let (from, to) = (starts.next()?, ends.next()?);
    (starts.next().is_none() && bits.count_ones() >= RUN_MIN).then_some((from, to))
}

fn is_full(values: Values, field: Field) -> bool {
    values.bits == field.all()
}

fn only_value(values: Values) -> Option<u32> {
    (values.bits.count_ones() == 1).then(|| values.bits.trailing_zeros())
}

/// The values one by one, or by their ends where they are runs: "1", "3", "8 to 18".
fn list(mut bits: u64, name: impl Fn(u32) -> String) -> Vec<String> {
    let mut items = Vec::new();
    while bits != 0 {
        let from = bits.trailing_zeros();
        let length = (bits >> from).trailing_ones();
        let to = from + length - 1;
        if length >= RUN_MIN {
            items.push(format!("{} to {}", name(from), name(to)));
        } else {
            items.extend((from..=to).map(&name));
        }
        bits &= !progression(from, to, 1);
    }
    items
}

/// "a", "a and b", "a, b and c".
fn and(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// "1st", "2nd", "3rd", "11th".
fn ordinal(n: u32) -> String {
    let suffix = match (n / 10 % 10, n % 10) {
        (1, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}
