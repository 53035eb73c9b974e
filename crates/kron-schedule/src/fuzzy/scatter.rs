//! A placeholder and an identifier become a schedule.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;

use jiff::civil::{Time, Weekday};

use super::error::FuzzyError;
use super::identifier;
use super::placeholder::{Field, Kind, Placeholder};
use super::time::{DAY, TimeOfDay};
use super::warning::{FuzzyWarning, FuzzyWarningKind};
use super::weekday::{self, Workweek};
use super::window::{self, Window};
use crate::dialect::Dialect;
use crate::dst::Dst;
use crate::error::ParseError;
use crate::every_days::EveryDays;
use crate::expr::Expr;
use crate::schedule::Schedule;
use crate::zone::Zone;

/// The name of the algorithm, to be stored beside what it chose: under another one a job may run at
/// another time.
pub const ALGORITHM: &str = "fuzzy-1.1/fnv1a32";

/// The specification's steps through the days of the month.
const BI_WEEKLY_DAYS: u16 = 14;
const TRI_WEEKLY_DAYS: u16 = 21;

/// A job's own schedule.
///
/// Printed, a cron expression is its five fields, and every so many days a sentence.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Scattered {
    /// A cron expression.
    Cron(ScatteredCron),
    /// Every so many days exactly, which cron cannot say. It must not be exported as cron silently.
    EveryDays(EveryDays),
}

/// A cron expression with the time that was chosen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScatteredCron {
    text: String,
    expr: Box<Expr>,
    moved: Option<FuzzyWarning>,
}

impl Placeholder {
    /// The schedule of the job with this identifier: the same one each time, everywhere.
    ///
    /// ```
    /// use kron_schedule::fuzzy::Placeholder;
    ///
    /// let daily: Placeholder = "FUZZY:DAILY * * *".parse()?;
    /// assert_eq!(daily.scatter("github/gh-aw/workflow.md")?.to_string(), "16 4 * * *");
    /// assert!(daily.scatter("").is_err());
    /// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `ERR-IDENTIFIER-001` if the identifier is empty, even where nothing depends on it.
    pub fn scatter(&self, identifier: &str) -> Result<Scattered, FuzzyError> {
        identifier::check(identifier)?;
        let hash = fnv1a(identifier.as_bytes());
        let (time, _) = window::choose(None, hash);
        let (minute, hour) = (time.minute(), time.hour());
        Ok(match self.0 {
            Kind::Daily { window, days } => daily(hash, window, days),
            Kind::Weekly { weekday, window } => weekly(hash, weekday, window),
            Kind::Hourly { step: None, days } => cron(format!("{} * * * {}", hash % 60, Field(days))),
            Kind::Hourly { step: Some(step), days } => {
                cron(format!("{} */{step} * * {}", hash % 60, Field(days)))
            }
            Kind::BiWeekly => cron(format!("{minute} {hour} */{BI_WEEKLY_DAYS} * *")),
            Kind::TriWeekly => cron(format!("{minute} {hour} */{TRI_WEEKLY_DAYS} * *")),
            Kind::EveryDays(days) => every_days(hash, days, time),
            Kind::EveryMinutes(step) => cron(format!("{}-59/{step} * * * *", hash % u32::from(step))),
            Kind::FixedMinutes(_) | Kind::FixedDays(_) | Kind::FixedWeek => fixed(self),
        })
    }

    /// The schedule of a fixed interval, which is the same for every job; `None` if the identifier
    /// decides.
    ///
    /// ```
    /// use kron_schedule::fuzzy::Placeholder;
    ///
    /// let fixed = |text: &str| text.parse::<Placeholder>().unwrap().fixed();
    /// assert_eq!(fixed("*/5 * * * *").unwrap().to_string(), "*/5 * * * *");
    /// assert_eq!(fixed("FUZZY:DAILY * * *"), None);
    /// ```
    #[must_use]
    pub fn fixed(&self) -> Option<Scattered> {
        (!self.is_scattered()).then(|| fixed(self))
    }

    /// The midnights of the days it occurs on, if it steps through the days of the month: these are the
    /// same for every job, even if the time of day is not. `None` for all others.
    ///
    /// ```
    /// use kron_schedule::fuzzy::Placeholder;
    ///
    /// let bi_weekly: Placeholder = "FUZZY:BI-WEEKLY * * *".parse()?;
    /// assert_eq!(bi_weekly.month_days().unwrap().to_string(), "0 0 */14 * *");
    /// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
    /// ```
    #[must_use]
    pub fn month_days(&self) -> Option<Expr> {
        let step = match self.0 {
            Kind::BiWeekly => BI_WEEKLY_DAYS,
            Kind::TriWeekly => TRI_WEEKLY_DAYS,
            Kind::FixedDays(step) => step,
            _ => return None,
        };
        Some(expr(&format!("0 0 */{step} * *")))
    }

    /// The minute that an identifier has among all it could have had. Nothing if there is no choice.
    pub(super) fn slot(&self, identifier: &str) -> Option<u32> {
        let hash = fnv1a(identifier.as_bytes());
        let day = u32::from(DAY);
        let minute = |window: Option<Window>| hash % window.map_or(day, |window| window.size().into());
        match self.0 {
            Kind::Daily { window, .. } | Kind::Weekly { weekday: Some(_), window } => Some(minute(window)),
            Kind::Weekly { weekday: None, window } => Some(hash_day(hash) * day + minute(window)),
            Kind::Hourly { .. } => Some(hash % 60),
            Kind::BiWeekly | Kind::TriWeekly => Some(minute(None)),
            Kind::EveryDays(days) => Some(hash / day % u32::from(days) * day + minute(None)),
            Kind::EveryMinutes(step) => Some(hash % u32::from(step)),
            Kind::FixedMinutes(_) | Kind::FixedDays(_) | Kind::FixedWeek => None,
        }
    }
}

impl Scattered {
    /// Makes a schedule that can be asked for occurrences. The times are local to the zone.
    ///
    /// # Errors
    ///
    /// If in this zone every time it names falls into a gap that the policy skips.
    pub fn compile(&self, zone: &Zone, dst: Dst) -> Result<Schedule, ParseError> {
        match self {
            Scattered::Cron(cron) => cron.expr.compile(zone, dst),
            Scattered::EveryDays(days) => Ok(days.compile(zone, dst)),
        }
    }

    /// That the window crosses midnight and the time is on another day than the phrase names.
    #[must_use]
    pub fn note(&self) -> Option<&FuzzyWarning> {
        match self {
            Scattered::Cron(cron) => cron.moved.as_ref(),
            Scattered::EveryDays(_) => None,
        }
    }
}

impl ScatteredCron {
    /// The five fields.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expression they are.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.expr
    }
}

impl fmt::Display for Scattered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scattered::Cron(cron) => f.write_str(&cron.text),
            Scattered::EveryDays(days) => days.fmt(f),
        }
    }
}

fn daily(hash: u32, window: Option<Window>, days: Option<Workweek>) -> Scattered {
    let (time, carry) = window::choose(window, hash);
    let moved = days.map(|days| days.moved(carry));
    let note = match (days, moved) {
        (Some(asked), Some(moved)) => moved_note(carry, &asked.names(), &moved.names()),
        _ => None,
    };
    cron_with(format!("{} {} * * {}", time.minute(), time.hour(), Field(moved)), note)
}

fn weekly(hash: u32, asked: Option<Weekday>, window: Option<Window>) -> Scattered {
    let (time, carry) = window::choose(window, hash);
    let day = asked.unwrap_or_else(|| Weekday::Sunday.wrapping_add(hash_day(hash)));
    let moved = day.wrapping_add(carry);
    let note = asked.and_then(|asked| moved_note(carry, weekday::name(asked), weekday::name(moved)));
    cron_with(format!("{} {} * * {}", time.minute(), time.hour(), weekday::number(moved)), note)
}

/// The day of the week that a hash chooses, Sunday being 0.
fn hash_day(hash: u32) -> u32 {
    hash % (7 * u32::from(DAY)) / u32::from(DAY)
}

fn every_days(hash: u32, days: u16, time: TimeOfDay) -> Scattered {
    // The minute of the day has used up the remainder of this division, so the day is independent of it.
    let phase = hash / u32::from(DAY) % u32::from(days);
    let part = |value: u16| i8::try_from(value).ok();
    let every = || {
        let time = Time::new(part(time.hour())?, part(time.minute())?, 0, 0).ok()?;
        EveryDays::new(days, u16::try_from(phase).ok()?, time)
    };
    Scattered::EveryDays(every().expect("a placeholder has 1 to 366 days, and the phase is below"))
}

/// A fixed interval is printed as the cron fields it is.
fn fixed(placeholder: &Placeholder) -> Scattered {
    cron(format!("{placeholder}"))
}

fn cron(text: String) -> Scattered {
    cron_with(text, None)
}

fn cron_with(text: String, moved: Option<FuzzyWarning>) -> Scattered {
    let expr = Box::new(expr(&text));
    Scattered::Cron(ScatteredCron { text, expr, moved })
}

fn expr(text: &str) -> Expr {
    Expr::parse(text, Dialect::Kron).expect("a placeholder holds only what its fields can have")
}

fn moved_note(carry: i32, asked: &str, moved: &str) -> Option<FuzzyWarning> {
    let (side, part) = match carry {
        0 => return None,
        ..0 => ("before", "begins"),
        _ => ("after", "ends"),
    };
    Some(FuzzyWarning::new(
        FuzzyWarningKind::WeekdayMoved,
        None,
        format!("The time chosen is on {moved}, the day {side} {asked}"),
        Cow::Owned(format!("The window crosses midnight: it {part} on the day {side}")),
    ))
}

/// FNV-1a with 32 bits, over bytes.
pub(super) fn fnv1a(bytes: &[u8]) -> u32 {
    const OFFSET_BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The public test vectors of the hash, and the one example of the specification whose input is
    /// given in full (its remainder there is made up).
    #[test]
    fn the_hash_is_fnv_1a_with_32_bits() {
        for (text, hash) in [
            ("", 0x811c_9dc5),
            ("a", 0xe40c_292c),
            ("b", 0xe70c_2de5),
            ("foo", 0xa9f3_7ed7),
            ("foobar", 0xbf9c_f968),
            ("github/gh-aw/workflow.md", 0x0c4a_cbc0),
        ] {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }
}
