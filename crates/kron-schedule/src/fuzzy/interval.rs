//! `every 5 minutes` and its like: the number, the unit, and which of them make sense.

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use super::error::{Code, FuzzyError};
use super::parse::Parser;
use super::phrase::{Extra, Form, Unit};
use super::placeholder::{EXACT_DAYS_MAX, HOUR_STEPS, Kind, MINUTES_MAX, MINUTES_MIN, MONTH_DAYS_MAX};
use super::time::number;
use super::warning::{FuzzyWarning, FuzzyWarningKind};
use super::weekday::Workweek;

impl Parser<'_> {
    /// Reads what follows `every`, which began at `start`.
    pub(super) fn every(&mut self, start: usize) -> Result<(Form, Kind), FuzzyError> {
        let (written, place) = self.count()?;
        let unit = self.unit(&place)?;
        let possible = match unit {
            Unit::Minutes => Extra::Scattered,
            Unit::Hours => Extra::OnWeekdays,
            Unit::Days | Unit::Weeks => Extra::Exactly,
        };
        let has_extra = match possible {
            Extra::Exactly => self.extension("exactly"),
            Extra::OnWeekdays => self.on_weekdays().is_some(),
            Extra::Scattered => self.extension("scattered"),
        };
        let extra = has_extra.then_some(possible);
        // What does not fit a number is too much for every unit.
        let kind = written.and_then(|count| kind(count, unit, extra).map(|kind| (count, kind)));
        let Some((count, kind)) = kind else {
            return Err(self.unsupported(written, unit, extra, place));
        };
        self.end(None, &[], (!has_extra).then_some(possible))?;
        let form = Form::Every { count, unit, extra };
        if extra.is_none() || unit == Unit::Minutes {
            let place = start..self.cursor.at();
            self.warn_of_interval(&place, count, unit, extra, form);
        }
        Ok((form, kind))
    }

    /// The number, if it fits, and its place.
    fn count(&mut self) -> Result<(Option<u16>, Range<usize>), FuzzyError> {
        let required = || self.missing("'every' requires a number and a unit", "every 2h");
        let Some(place) = self.cursor.peek() else { return Err(required()) };
        let word = self.cursor.slice(place.clone());
        if Unit::spelled(word).is_some() {
            return Err(required());
        }
        let length = match word.find(|c: char| c.is_ascii_alphabetic()) {
            None | Some(0) => word.len(),
            Some(length) => length,
        };
        let digits = &word[..length];
        let place = place.start..place.start + length;
        let is_number = digits.bytes().all(|b| b.is_ascii_digit());
        if !is_number || digits.bytes().all(|b| b == b'0') {
            let headline = self.in_phrase("Invalid interval", place.clone());
            return Err(FuzzyError::new(
                Code::IntervalValue,
                place,
                headline,
                "Interval must be a positive integer",
            ));
        }
        self.cursor.move_to(place.end);
        Ok((number(digits), place))
    }

    fn unit(&mut self, count: &Range<usize>) -> Result<Unit, FuzzyError> {
        let Some(place) = self.cursor.peek() else {
            let count = self.cursor.quoted(count.clone());
            return Err(
                self.missing(&format!("'every {count}' requires a unit"), &format!("every {count} minutes"))
            );
        };
        let Some(unit) = Unit::spelled(self.cursor.slice(place.clone())) else {
            let units: [String; 4] = Unit::ALL.map(|unit| unit.spellings().join(", "));
            let headline = self.in_phrase("Unknown interval unit", place.clone());
            let guidance = format!("Valid units: {}", units.join(", "));
            return Err(FuzzyError::new(Code::Interval, place, headline, guidance));
        };
        self.cursor.move_to(place.end);
        Ok(unit)
    }

    fn unsupported(
        &self,
        count: Option<u16>,
        unit: Unit,
        extra: Option<Extra>,
        place: Range<usize>,
    ) -> FuzzyError {
        let exactly = extra == Some(Extra::Exactly);
        let guidance = match unit {
            Unit::Minutes => format!("Valid minute intervals: {MINUTES_MIN}m to {MINUTES_MAX}m"),
            Unit::Hours => {
                format!("Valid hour intervals: {}", HOUR_STEPS.map(|step| format!("{step}h")).join(", "))
            }
            Unit::Days if exactly => format!("Valid exact day intervals: 1d to {EXACT_DAYS_MAX}d"),
            Unit::Days => format!("Valid day intervals: 1d to {MONTH_DAYS_MAX}d"),
            Unit::Weeks if exactly => format!("Valid exact week intervals: 1w to {EXACT_WEEKS_MAX}w"),
            Unit::Weeks => format!("Valid week intervals: 1w to {MONTH_WEEKS_MAX}w"),
        };
        let help = count.and_then(|count| match unit {
            Unit::Minutes if count % 60 == 0 && HOUR_STEPS.contains(&(count / 60)) => {
                Some(format!("did you mean `every {}h`?", count / 60))
            }
            Unit::Hours if count == 24 => Some("did you mean `daily`?".into()),
            Unit::Days | Unit::Weeks if self.extensions.are_on() => {
                let exact = kind(count, unit, Some(Extra::Exactly)).filter(|_| !exactly)?;
                let Kind::EveryDays(days) = exact else { return None };
                Some(format!("did you mean `every {days} days exactly`?"))
            }
            _ => None,
        });
        let headline = self.in_phrase("Invalid interval", place.clone());
        FuzzyError::new(Code::Interval, place, headline, guidance).with_help(help)
    }

    fn warn_of_interval(
        &mut self,
        place: &Range<usize>,
        count: u16,
        unit: Unit,
        extra: Option<Extra>,
        form: Form,
    ) {
        if unit == Unit::Hours {
            return;
        }
        if extra.is_none() {
            self.warn(FuzzyWarning::new(
                FuzzyWarningKind::FixedInterval,
                Some(place.clone()),
                format!("Consider using '{}' instead of fixed interval", self.alternative(count, unit, form)),
                "Fixed intervals create load spikes when many workflows run simultaneously",
            ));
        }
        if unit == Unit::Minutes && 60 % count != 0 {
            let steps = 60 / count;
            self.warn(FuzzyWarning::new(
                FuzzyWarningKind::UnevenStep,
                Some(place.clone()),
                format!("{count} minutes do not divide an hour"),
                if extra.is_none() {
                    format!(
                        "The count starts again every hour, {} minutes after the last run",
                        60 - steps * count
                    )
                } else {
                    "The count starts again every hour, so the last distance is another one".into()
                },
            ));
        }
        match (unit, count) {
            (Unit::Days, 2..) => self.warn_of_day_step(place, form, count),
            (Unit::Weeks, 2..) => self.warn_of_day_step(place, form, count * 7),
            _ => {} // every day, or every Sunday
        }
    }

    /// A phrase with about the same frequency that is scattered.
    fn alternative(&self, count: u16, unit: Unit, form: Form) -> String {
        match (unit, count) {
            (Unit::Days, 1) => "daily".into(),
            (Unit::Weeks, 1) => "weekly".into(),
            (Unit::Minutes, _) if self.extensions.are_on() => format!("{form} scattered"),
            (_, _) if self.extensions.are_on() => format!("{form} exactly"),
            (Unit::Minutes | Unit::Hours, _) => "every 2h".into(), // the specification's own words
            (Unit::Days, 14) | (Unit::Weeks, 2) => "bi-weekly".into(),
            (Unit::Days, 21) | (Unit::Weeks, 3) => "tri-weekly".into(),
            (Unit::Days, ..7) => "daily".into(),
            (Unit::Days | Unit::Weeks, _) => "weekly".into(),
        }
    }
}

/// The most weeks whose days a month has.
const MONTH_WEEKS_MAX: u16 = MONTH_DAYS_MAX / 7;
const EXACT_WEEKS_MAX: u16 = EXACT_DAYS_MAX / 7;

/// What the interval stands for, unless there is no such interval.
fn kind(count: u16, unit: Unit, extra: Option<Extra>) -> Option<Kind> {
    let days = match unit {
        Unit::Weeks => count.checked_mul(7)?,
        Unit::Minutes | Unit::Hours | Unit::Days => count,
    };
    match (unit, extra) {
        (Unit::Minutes, extra) => {
            let kind = if extra.is_none() { Kind::FixedMinutes } else { Kind::EveryMinutes };
            (MINUTES_MIN..=MINUTES_MAX).contains(&count).then(|| kind(count))
        }
        (Unit::Hours, extra) => {
            let days = extra.map(|_| Workweek::USUAL);
            HOUR_STEPS.contains(&count).then_some(Kind::Hourly { step: Some(count), days })
        }
        (Unit::Days | Unit::Weeks, Some(_)) => (days <= EXACT_DAYS_MAX).then_some(Kind::EveryDays(days)),
        (Unit::Weeks, None) if count == 1 => Some(Kind::FixedWeek),
        (Unit::Days | Unit::Weeks, None) => (days <= MONTH_DAYS_MAX).then_some(Kind::FixedDays(days)),
    }
}
