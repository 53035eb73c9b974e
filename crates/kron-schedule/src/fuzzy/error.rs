//! Mistakes in a phrase, in the words and with the codes of the specification.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use crate::error::render;

/// Why a text is not a phrase or a placeholder, or why a placeholder cannot be scattered.
///
/// Printed, it is one line, the headline. [`message`](FuzzyError::message) has the guidance below it,
/// as the specification words both, and [`render`](FuzzyError::render) adds the place and the code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FuzzyError {
    code: Code,
    cause: Option<Code>,
    span: Range<usize>,
    headline: String,
    guidance: Cow<'static, str>,
    help: Option<String>,
}

/// What is wrong: the codes of the specification's appendix B, and three of Kron's own.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Code {
    /// `ERR-SYNTAX-001`: unknown schedule type.
    ScheduleType,
    /// `ERR-SYNTAX-002`: invalid time format. The cause tells more, if anything is out of range.
    TimeFormat,
    /// `ERR-SYNTAX-003`: invalid weekday.
    Weekday,
    /// `ERR-SYNTAX-004`: missing required component.
    Missing,
    /// `ERR-SYNTAX-005`: unsupported syntax pattern.
    Unsupported,
    /// `ERR-TIME-001`: hour out of range.
    Hour,
    /// `ERR-TIME-002`: minute out of range.
    Minute,
    /// `ERR-TIME-003`: invalid 12-hour format.
    TwelveHour,
    /// `ERR-TIME-004`, Kron's own: a range that ends where it starts.
    EqualTimes,
    /// `ERR-TZ-001`: invalid UTC offset.
    OffsetRange,
    /// `ERR-TZ-002`: malformed offset syntax, or an unknown zone.
    OffsetSyntax,
    /// `ERR-INTERVAL-001`: invalid interval value.
    IntervalValue,
    /// `ERR-INTERVAL-002`: unsupported interval.
    Interval,
    /// `ERR-PLACEHOLDER-001`, Kron's own: not a placeholder.
    Placeholder,
    /// `ERR-IDENTIFIER-001`, Kron's own: nothing to hash.
    Identifier,
}

impl Code {
    /// The code as it is written: `ERR-SYNTAX-001`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::ScheduleType => "ERR-SYNTAX-001",
            Code::TimeFormat => "ERR-SYNTAX-002",
            Code::Weekday => "ERR-SYNTAX-003",
            Code::Missing => "ERR-SYNTAX-004",
            Code::Unsupported => "ERR-SYNTAX-005",
            Code::Hour => "ERR-TIME-001",
            Code::Minute => "ERR-TIME-002",
            Code::TwelveHour => "ERR-TIME-003",
            Code::EqualTimes => "ERR-TIME-004",
            Code::OffsetRange => "ERR-TZ-001",
            Code::OffsetSyntax => "ERR-TZ-002",
            Code::IntervalValue => "ERR-INTERVAL-001",
            Code::Interval => "ERR-INTERVAL-002",
            Code::Placeholder => "ERR-PLACEHOLDER-001",
            Code::Identifier => "ERR-IDENTIFIER-001",
        }
    }

    /// What the code stands for, in a few words: "the hour is not from 0 to 23".
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Code::ScheduleType => "there is no such kind of schedule",
            Code::TimeFormat => "it is not a time",
            Code::Weekday => "it is not a weekday",
            Code::Missing => "something is missing",
            Code::Unsupported => "it is not supported there",
            Code::Hour => "the hour is not from 0 to 23",
            Code::Minute => "the minute is not from 00 to 59",
            Code::TwelveHour => "the hour is not from 1 to 12 before am or pm",
            Code::EqualTimes => "the range ends where it starts",
            Code::OffsetRange => "the offset is not from -12:00 to +14:00",
            Code::OffsetSyntax => "it is not an offset, or an unknown zone",
            Code::IntervalValue => "it is not a positive whole number",
            Code::Interval => "it is not an interval of that unit, or no unit",
            Code::Placeholder => "it is not a placeholder",
            Code::Identifier => "there is no identity to hash",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FuzzyError {
    pub(super) fn new(
        code: Code,
        span: Range<usize>,
        headline: String,
        guidance: impl Into<Cow<'static, str>>,
    ) -> FuzzyError {
        FuzzyError { code, cause: None, span, headline, guidance: guidance.into(), help: None }
    }

    pub(super) fn because(mut self, cause: Option<Code>) -> FuzzyError {
        self.cause = cause;
        self
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> FuzzyError {
        self.help = help;
        self
    }

    /// What is wrong, for programs to branch on.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// For a time that is out of range, which part of it is.
    #[must_use]
    pub fn cause(&self) -> Option<Code> {
        self.cause
    }

    /// Where the mistake is, in bytes of the text. Empty at a place where something is missing.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What is wrong, in one line.
    #[must_use]
    pub fn headline(&self) -> &str {
        &self.headline
    }

    /// How it is written correctly, in one line.
    #[must_use]
    pub fn guidance(&self) -> &str {
        &self.guidance
    }

    /// What was probably meant, where Kron can tell.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The headline, and the guidance below it: the message as the specification has it.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{}\n{}", self.headline, self.guidance)
    }

    /// The message, the text with a caret under the mistake, and on the last line the code, with its
    /// cause in brackets.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let message = format!("Error: {}", self.message());
        let rendered = render(&message, &self.span, self.help.as_deref(), text);
        match self.cause {
            None => format!("{rendered}\n{}", self.code),
            Some(cause) => format!("{rendered}\n{} ({cause})", self.code),
        }
    }

    /// The same error, for a text that begins `offset` bytes into a longer one.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> FuzzyError {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }
}

impl fmt::Display for FuzzyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline)
    }
}

impl core::error::Error for FuzzyError {}
