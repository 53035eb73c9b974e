//! What a phrase does that its author may not expect.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use crate::error::render;

/// A remark about a phrase that works, but perhaps not as its author thinks.
///
/// ```
/// use kron_schedule::fuzzy::{Extensions, Phrase};
///
/// let text = "weekly on monday around 1am utc+9";
/// let phrase = Phrase::parse(text, Extensions::Off)?;
/// assert_eq!(phrase.warnings()[0].render(text), "\
/// Note: 'monday' becomes sunday in UTC
/// 1:00 utc+9 is 16:00 UTC on the day before
///   | weekly on monday around 1am utc+9
///   |           ^^^^^^");
/// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FuzzyWarning {
    kind: FuzzyWarningKind,
    span: Option<Range<usize>>,
    headline: String,
    guidance: Cow<'static, str>,
}

/// What a remark is about, as a closed list for programs to branch on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FuzzyWarningKind {
    /// A zone abbreviation that has more than one meaning.
    AmbiguousZone,
    /// A step through the days of the month, which starts anew every month. Who shows it to a user
    /// lists the next five dates beside it.
    DayStep,
    /// An interval that is the same for every job.
    FixedInterval,
    /// Only one of the two times of a range has an offset.
    OneSidedOffset,
    /// A minute step that does not divide the hour.
    UnevenStep,
    /// The day is another one than the phrase names, because the offset or the window crosses
    /// midnight.
    WeekdayMoved,
}

impl FuzzyWarningKind {
    /// The kind in one word, as it is written in output for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FuzzyWarningKind::AmbiguousZone => "ambiguous-zone",
            FuzzyWarningKind::DayStep => "day-step",
            FuzzyWarningKind::FixedInterval => "fixed-interval",
            FuzzyWarningKind::OneSidedOffset => "one-sided-offset",
            FuzzyWarningKind::UnevenStep => "uneven-step",
            FuzzyWarningKind::WeekdayMoved => "weekday-moved",
        }
    }

    /// Whether it only informs: what was written is done, and nothing about it is doubtful.
    #[must_use]
    pub const fn is_note(self) -> bool {
        matches!(self, FuzzyWarningKind::WeekdayMoved)
    }
}

impl FuzzyWarning {
    pub(super) fn new(
        kind: FuzzyWarningKind,
        span: Option<Range<usize>>,
        headline: String,
        guidance: impl Into<Cow<'static, str>>,
    ) -> FuzzyWarning {
        FuzzyWarning { kind, span, headline, guidance: guidance.into() }
    }

    /// What the remark is about, for programs to branch on.
    #[must_use]
    pub fn kind(&self) -> FuzzyWarningKind {
        self.kind
    }

    /// Where it is, in bytes of the phrase; nothing if it is about the time that was chosen.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    /// The remark in one line.
    #[must_use]
    pub fn headline(&self) -> &str {
        &self.headline
    }

    /// Why it matters, or what to do, in one line.
    #[must_use]
    pub fn guidance(&self) -> &str {
        &self.guidance
    }

    /// The headline, and the guidance below it.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{}\n{}", self.headline, self.guidance)
    }

    /// The message, and below it the phrase with a caret under its place.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let label = if self.kind.is_note() { "Note" } else { "Warning" };
        let message = format!("{label}: {}", self.message());
        match &self.span {
            Some(span) => render(&message, span, None, text),
            None => message,
        }
    }
}

impl fmt::Display for FuzzyWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline)
    }
}
