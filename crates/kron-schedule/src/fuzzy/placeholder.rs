//! What a phrase stands for, until it is known whose schedule it is.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use jiff::civil::Weekday;

use super::cursor::{BLANKS, quoted};
use super::error::{Code, FuzzyError};
use super::time::{TimeOfDay, number};
use super::weekday::{self, Workweek};
use super::window::Window;
use crate::parse::EXPRESSION_BYTES_MAX;

/// A schedule with a gap for the job's own time: `FUZZY:DAILY_AROUND:14:0 * * *`.
///
/// It is printed as the specification spells it. The spellings of the public tool are understood
/// too (`FUZZY:HOURLY/2`, `FUZZY:WEEKLY_AROUND:5:17:0`, `FUZZY:BI_WEEKLY`), and so are leading zeros.
/// Intervals that are the same for every job have no gap: they are plain cron, `*/5 * * * *`.
///
/// ```
/// use kron_schedule::fuzzy::Placeholder;
///
/// let placeholder: Placeholder = "FUZZY:WEEKLY_AROUND:5:17:00 * * *".parse()?;
/// assert_eq!(placeholder.to_string(), "FUZZY:WEEKLY:5:AROUND:17:0 * * 5");
/// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Placeholder(pub(super) Kind);

/// What is left open, and what is not.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Kind {
    Daily {
        window: Option<Window>,
        days: Option<Workweek>,
    },
    Weekly {
        weekday: Option<Weekday>,
        window: Option<Window>,
    },
    /// The step is one of [`HOUR_STEPS`].
    Hourly {
        step: Option<u16>,
        days: Option<Workweek>,
    },
    BiWeekly,
    TriWeekly,
    /// Every so many days exactly: 1 to [`EXACT_DAYS_MAX`].
    EveryDays(u16),
    /// From a minute of the job's own on, in a step of [`MINUTES_MIN`] to [`MINUTES_MAX`].
    EveryMinutes(u16),
    /// From minute 0 on, in such a step.
    FixedMinutes(u16),
    /// At midnight, in a step of 1 to [`MONTH_DAYS_MAX`] through the days of the month.
    FixedDays(u16),
    /// At midnight on Sunday.
    FixedWeek,
}

/// The hour steps that divide a day, but for the whole of it, which is `daily`.
pub(super) const HOUR_STEPS: [u16; 7] = [1, 2, 3, 4, 6, 8, 12];
/// The shortest minute step; the specification has it from its platform.
pub(super) const MINUTES_MIN: u16 = 5;
/// The longest minute step: a longer one would only mean minute 0.
pub(super) const MINUTES_MAX: u16 = 59;
/// The longest step through the days of a month.
pub(super) const MONTH_DAYS_MAX: u16 = 31;
/// The longest exact distance in days, which [`EveryDays`](crate::EveryDays) fixes.
pub(super) const EXACT_DAYS_MAX: u16 = 366;

impl Placeholder {
    /// Whether the identifier of a job decides when it occurs. If not, it is a fixed interval, and
    /// [`fixed`](Placeholder::fixed) has its schedule.
    #[must_use]
    pub fn is_scattered(&self) -> bool {
        !matches!(self.0, Kind::FixedMinutes(_) | Kind::FixedDays(_) | Kind::FixedWeek)
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Daily { window: None, days } => write!(f, "FUZZY:DAILY * * {}", Field(days)),
            Kind::Daily { window: Some(Window::Around(time)), days } => {
                write!(f, "FUZZY:DAILY_AROUND:{} * * {}", Colons(time), Field(days))
            }
            Kind::Daily { window: Some(Window::Between(start, end)), days } => {
                write!(f, "FUZZY:DAILY_BETWEEN:{}:{} * * {}", Colons(start), Colons(end), Field(days))
            }
            Kind::Weekly { weekday, window } => {
                let weekday = weekday.map(weekday::number);
                f.write_str("FUZZY:WEEKLY")?;
                if let Some(weekday) = weekday {
                    write!(f, ":{weekday}")?;
                }
                match window {
                    None => {}
                    Some(Window::Around(time)) => write!(f, ":AROUND:{}", Colons(time))?,
                    Some(Window::Between(start, end)) => {
                        write!(f, ":BETWEEN:{}:{}", Colons(start), Colons(end))?;
                    }
                }
                write!(f, " * * {}", Field(weekday))
            }
            Kind::Hourly { step: None, days } => write!(f, "FUZZY:HOURLY * * {}", Field(days)),
            Kind::Hourly { step: Some(step), days } => write!(f, "FUZZY:HOURLY:{step} * * {}", Field(days)),
            Kind::BiWeekly => f.write_str("FUZZY:BI-WEEKLY * * *"),
            Kind::TriWeekly => f.write_str("FUZZY:TRI-WEEKLY * * *"),
            Kind::EveryDays(days) => write!(f, "FUZZY:EVERY_DAYS:{days} * * *"),
            Kind::EveryMinutes(minutes) => write!(f, "FUZZY:EVERY_MINUTES:{minutes} * * *"),
            Kind::FixedMinutes(step) => write!(f, "*/{step} * * * *"),
            Kind::FixedDays(step) => write!(f, "0 0 */{step} * *"),
            Kind::FixedWeek => f.write_str("0 0 * * 0"),
        }
    }
}

/// A cron field: a value, or `*` for none.
pub(super) struct Field<T>(pub(super) Option<T>);

impl<T: fmt::Display> fmt::Display for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("*"),
            Some(value) => value.fmt(f),
        }
    }
}

/// A time as placeholders have it: "14:0".
struct Colons(TimeOfDay);

impl fmt::Display for Colons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.hour(), self.0.minute())
    }
}

impl FromStr for Placeholder {
    type Err = FuzzyError;

    fn from_str(text: &str) -> Result<Placeholder, FuzzyError> {
        let words: Vec<&str> =
            text.split(BLANKS).filter(|word| !word.is_empty()).take(WORDS_MAX + 1).collect();
        let kind = match words.as_slice() {
            _ if text.len() > EXPRESSION_BYTES_MAX => Err("It is too long".into()),
            [head, "*", "*", weekday] => fuzzy(head, weekday),
            [minute, "*", "*", "*", "*"] => step(minute, MINUTES_MIN, MINUTES_MAX).map(Kind::FixedMinutes),
            ["0", "0", "*", "*", "0"] => Ok(Kind::FixedWeek),
            ["0", "0", day, "*", "*"] => step(day, 1, MONTH_DAYS_MAX).map(Kind::FixedDays),
            _ => Err("A placeholder is FUZZY:TYPE[:PARAMS] and three cron fields, such as FUZZY:DAILY * * *"
                .into()),
        };
        kind.map(Placeholder).map_err(|guidance| {
            let headline = format!("Invalid placeholder '{}'", quoted(text));
            FuzzyError::new(Code::Placeholder, 0..text.len(), headline, guidance)
        })
    }
}

/// The most words of a placeholder: five cron fields.
const WORDS_MAX: usize = 5;

/// What is wrong with it, as the guidance of an error.
type Fault = Cow<'static, str>;

/// Reads the part with the type, and the weekday field, which must agree with it.
fn fuzzy(head: &str, field: &str) -> Result<Kind, Fault> {
    let Some(rest) = head.strip_prefix("FUZZY:") else {
        return Err("A placeholder begins with FUZZY:".into());
    };
    let parts: Vec<&str> = rest.split(':').take(PARTS_MAX + 1).collect();
    let mut kind = typed(&parts)?;
    match &mut kind {
        _ if field == "*" => {} // the public tool leaves the field open even where there is a weekday
        Kind::Daily { days: days @ None, .. } | Kind::Hourly { days: days @ None, .. } => {
            *days = Some(Workweek::of_field(field).ok_or(OPEN)?);
        }
        Kind::Weekly { weekday: Some(weekday), .. } => {
            if number(field) != Some(weekday::number(*weekday).into()) {
                return Err("The two weekdays disagree".into());
            }
        }
        _ => return Err(OPEN.into()),
    }
    Ok(kind)
}

const OPEN: &str = "The weekday field must be *";

/// Reads a type and its parameters, in the spelling of the specification or of the public tool.
fn typed(parts: &[&str]) -> Result<Kind, Fault> {
    let usual = Some(Workweek::USUAL);
    Ok(match parts {
        ["DAILY"] => Kind::Daily { window: None, days: None },
        ["DAILY_AROUND", time @ ..] => Kind::Daily { window: Some(around(time)?), days: None },
        ["DAILY_BETWEEN", times @ ..] => Kind::Daily { window: Some(between(times)?), days: None },
        ["DAILY_WEEKDAYS"] => Kind::Daily { window: None, days: usual },
        ["DAILY_AROUND_WEEKDAYS", time @ ..] => Kind::Daily { window: Some(around(time)?), days: usual },
        ["DAILY_BETWEEN_WEEKDAYS", times @ ..] => Kind::Daily { window: Some(between(times)?), days: usual },
        ["HOURLY" | "HOURLY/1"] => Kind::Hourly { step: None, days: None },
        ["HOURLY", step] => Kind::Hourly { step: Some(hours(step)?), days: None },
        ["HOURLY_WEEKDAYS/1"] => Kind::Hourly { step: None, days: usual },
        ["WEEKLY"] => Kind::Weekly { weekday: None, window: None },
        ["WEEKLY", "AROUND", time @ ..] => Kind::Weekly { weekday: None, window: Some(around(time)?) },
        ["WEEKLY", "BETWEEN", times @ ..] => Kind::Weekly { weekday: None, window: Some(between(times)?) },
        ["WEEKLY", day] => Kind::Weekly { weekday: Some(weekday(day)?), window: None },
        ["WEEKLY", day, "AROUND", time @ ..] | ["WEEKLY_AROUND", day, time @ ..] => {
            Kind::Weekly { weekday: Some(weekday(day)?), window: Some(around(time)?) }
        }
        ["WEEKLY", day, "BETWEEN", times @ ..] => {
            Kind::Weekly { weekday: Some(weekday(day)?), window: Some(between(times)?) }
        }
        ["BI-WEEKLY" | "BI_WEEKLY"] => Kind::BiWeekly,
        ["TRI-WEEKLY" | "TRI_WEEKLY"] => Kind::TriWeekly,
        ["EVERY_DAYS", count] => Kind::EveryDays(within(count, 1, EXACT_DAYS_MAX)?),
        ["EVERY_MINUTES", count] => Kind::EveryMinutes(within(count, MINUTES_MIN, MINUTES_MAX)?),
        [other] => match (other.strip_prefix("HOURLY/"), other.strip_prefix("HOURLY_WEEKDAYS/")) {
            (Some(step), _) => Kind::Hourly { step: Some(hours(step)?), days: None },
            (_, Some(step)) => Kind::Hourly { step: Some(hours(step)?), days: usual },
            _ => return Err(UNKNOWN_TYPE.into()),
        },
        _ => return Err(UNKNOWN_TYPE.into()),
    })
}

/// The most parts of a type with its parameters: a weekly range has seven.
const PARTS_MAX: usize = 7;

const UNKNOWN_TYPE: &str = "Valid types: DAILY, DAILY_AROUND:H:M, DAILY_BETWEEN:H:M:H:M, HOURLY[:N], \
     WEEKLY[:DOW][:AROUND:H:M | :BETWEEN:H:M:H:M], BI-WEEKLY, TRI-WEEKLY, EVERY_DAYS:N, EVERY_MINUTES:N";

fn around(parts: &[&str]) -> Result<Window, Fault> {
    match parts {
        [hour, minute] => time(hour, minute).map(Window::Around),
        _ => Err("AROUND takes an hour and a minute, H:M".into()),
    }
}

fn between(parts: &[&str]) -> Result<Window, Fault> {
    let [start_hour, start_minute, end_hour, end_minute] = parts else {
        return Err("BETWEEN takes two hours and minutes, H:M:H:M".into());
    };
    Window::between(time(start_hour, start_minute)?, time(end_hour, end_minute)?)
        .ok_or_else(|| "The range ends where it starts".into())
}

fn time(hour: &str, minute: &str) -> Result<TimeOfDay, Fault> {
    TimeOfDay::new(within(hour, 0, 23)?, within(minute, 0, 59)?)
        .ok_or_else(|| "A time is from 0:0 to 23:59".into())
}

fn hours(step: &str) -> Result<u16, Fault> {
    number(step)
        .filter(|step| HOUR_STEPS.contains(step))
        .ok_or_else(|| "Valid hour intervals: 1, 2, 3, 4, 6, 8, 12".into())
}

/// A step field, `*/N`.
fn step(field: &str, min: u16, max: u16) -> Result<u16, Fault> {
    match field.strip_prefix("*/") {
        Some(step) => within(step, min, max),
        None => Err("Without FUZZY: it can only be a fixed interval, such as */5 * * * *".into()),
    }
}

fn within(text: &str, min: u16, max: u16) -> Result<u16, Fault> {
    number(text)
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("'{}' is no number from {min} to {max}", quoted(text)).into())
}

fn weekday(text: &str) -> Result<Weekday, Fault> {
    weekday::numbered(within(text, 0, 6)?).ok_or_else(|| "A weekday is from 0 to 6".into())
}
