//! What can be said, and how it is spelled.

use alloc::vec::Vec;
use core::fmt;

use jiff::civil::Weekday;

use super::error::FuzzyError;
use super::extensions::Extensions;
use super::parse;
use super::placeholder::Placeholder;
use super::warning::FuzzyWarning;
use super::weekday;
use super::window::WrittenWindow;

/// A phrase: a schedule in words, before it is known whose.
///
/// Two phrases are equal when they say the same, however they were spelled;
/// [`Display`](fmt::Display) prints the one canonical spelling, and parsing that gives an equal
/// phrase.
///
/// ```
/// use kron_schedule::fuzzy::{Extensions, Phrase};
///
/// let phrase = Phrase::parse("Daily  between 9am UTC+9 and 5pm UTC+9", Extensions::Off)?;
/// assert_eq!(phrase.to_string(), "daily between 9:00 utc+9 and 17:00 utc+9");
/// assert_eq!(phrase.placeholder().to_string(), "FUZZY:DAILY_BETWEEN:0:0:8:0 * * *");
/// assert!(phrase.has_offset());
/// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Phrase {
    pub(super) form: Form,
    pub(super) placeholder: Placeholder,
    pub(super) warnings: Vec<FuzzyWarning>,
}

impl Phrase {
    /// Reads a phrase.
    ///
    /// # Errors
    ///
    /// The first mistake, in the words and with the code of the specification.
    pub fn parse(text: &str, extensions: Extensions) -> Result<Phrase, FuzzyError> {
        parse::parse(text, extensions)
    }

    /// What it stands for.
    #[must_use]
    pub fn placeholder(&self) -> &Placeholder {
        &self.placeholder
    }

    /// What it does that its author may not expect, in the order of the text.
    #[must_use]
    pub fn warnings(&self) -> &[FuzzyWarning] {
        &self.warnings
    }

    /// Whether a time in it has a UTC offset. Its schedule is then in UTC, and no other zone fits it.
    #[must_use]
    pub fn has_offset(&self) -> bool {
        match self.form {
            Form::Daily { window, .. } | Form::Weekly { window, .. } => {
                window.is_some_and(WrittenWindow::has_offset)
            }
            Form::Hourly { .. } | Form::BiWeekly { .. } | Form::TriWeekly { .. } | Form::Every { .. } => {
                false
            }
        }
    }
}

impl PartialEq for Phrase {
    fn eq(&self, other: &Phrase) -> bool {
        self.form == other.form
    }
}

impl Eq for Phrase {}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.form.fmt(f)
    }
}

/// All that a phrase says, as it was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    Daily { window: Option<WrittenWindow>, weekdays: bool },
    Weekly { weekday: Option<Weekday>, window: Option<WrittenWindow> },
    Hourly { weekdays: bool },
    BiWeekly { exactly: bool },
    TriWeekly { exactly: bool },
    Every { count: u16, unit: Unit, extra: Option<Extra> },
}

/// The unit of an interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    Minutes,
    Hours,
    Days,
    Weeks,
}

/// A word of Kron's own behind an interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Extra {
    Exactly,
    OnWeekdays,
    Scattered,
}

impl Unit {
    pub(super) const ALL: [Unit; 4] = [Unit::Minutes, Unit::Hours, Unit::Days, Unit::Weeks];

    /// Its three spellings: plural, singular, and one letter.
    pub(super) const fn spellings(self) -> [&'static str; 3] {
        match self {
            Unit::Minutes => ["minutes", "minute", "m"],
            Unit::Hours => ["hours", "hour", "h"],
            Unit::Days => ["days", "day", "d"],
            Unit::Weeks => ["weeks", "week", "w"],
        }
    }

    /// The unit that is spelled so, in any case.
    pub(super) fn spelled(word: &str) -> Option<Unit> {
        let is_it = |unit: &Unit| unit.spellings().iter().any(|known| known.eq_ignore_ascii_case(word));
        Unit::ALL.into_iter().find(is_it)
    }
}

impl fmt::Display for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Extra::Exactly => "exactly",
            Extra::OnWeekdays => "on weekdays",
            Extra::Scattered => "scattered",
        })
    }
}

/// The canonical spelling: see [`Phrase`].
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (window, extra) = match *self {
            Form::Daily { window, weekdays } => {
                f.write_str("daily")?;
                (window, weekdays.then_some(Extra::OnWeekdays))
            }
            Form::Weekly { weekday, window } => {
                f.write_str("weekly")?;
                if let Some(weekday) = weekday {
                    write!(f, " on {}", weekday::name(weekday))?;
                }
                (window, None)
            }
            Form::Hourly { weekdays } => {
                f.write_str("hourly")?;
                (None, weekdays.then_some(Extra::OnWeekdays))
            }
            Form::BiWeekly { exactly } => {
                f.write_str("bi-weekly")?;
                (None, exactly.then_some(Extra::Exactly))
            }
            Form::TriWeekly { exactly } => {
                f.write_str("tri-weekly")?;
                (None, exactly.then_some(Extra::Exactly))
            }
            Form::Every { count, unit, extra } => {
                let [plural, singular, _] = unit.spellings();
                write!(f, "every {count} {}", if count == 1 { singular } else { plural })?;
                (None, extra)
            }
        };
        if let Some(window) = window {
            write!(f, " {window}")?;
        }
        if let Some(extra) = extra {
            write!(f, " {extra}")?;
        }
        Ok(())
    }
}
