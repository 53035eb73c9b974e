//! Mistakes in an expression: where, what was expected, what was found, what to do.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use crate::field::Field;

/// Why a text is not an expression, or an expression not a schedule.
///
/// Printed, it is one line. [`render`](ParseError::render) adds the text with a caret under the
/// mistake:
///
/// ```
/// use kron_schedule::{Dialect, Expr};
///
/// let line = "0 25 * * *";
/// let error = Expr::parse(line, Dialect::Kron).unwrap_err();
/// assert_eq!(error.to_string(), "expected a number from 0 to 23, but found `25`");
/// assert_eq!(error.render(line), "\
/// expected a number from 0 to 23, but found `25`
///   | 0 25 * * *
///   |   ^^");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParseError {
    pub(crate) kind: ErrorKind,
    pub(crate) field: Option<Field>,
    pub(crate) span: Range<usize>,
    pub(crate) expected: Cow<'static, str>,
    pub(crate) found: Cow<'static, str>,
    pub(crate) help: Option<Cow<'static, str>>,
}

/// What is wrong, as a closed list for programs to branch on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An `@` form that the dialect does not have, or that nobody has.
    Alias,
    /// Nothing was written.
    Empty,
    /// A list with nothing between two commas, or at an end.
    EmptyItem,
    /// A wrong number of fields.
    FieldCount,
    /// A duration that is not one, or that an interval cannot have.
    Interval,
    /// A name that is no month or weekday, or a name where the dialect has only numbers.
    Name,
    /// A fully valid expression that no date can satisfy.
    Never,
    /// Something like a number, but not in plain decimal digits.
    Number,
    /// A value outside the field's range.
    Range,
    /// A range whose end comes before its start.
    Reversed,
    /// A form of another dialect, such as `L` or `?`.
    Special,
    /// A step that is zero, or that the dialect does not have.
    Step,
    /// A text longer than any expression needs to be.
    TooLong,
    /// A character that has no place there.
    Unexpected,
}

impl ParseError {
    /// What is wrong, for programs to branch on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The field that is wrong, or `None` where the whole expression is.
    #[must_use]
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// Where the mistake is, in bytes of the text. Empty at a place where something is missing.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What would have been right, as a noun phrase: "a number from 0 to 59".
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What was there instead.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What to write instead, where Kron can tell.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The message in the form of the declarative scheduler's specification:
    /// `Invalid cron expression "<expr>": <field> field <reason>`.
    ///
    /// ```
    /// use kron_schedule::{Dialect, Expr};
    ///
    /// let line = "60 * * * *";
    /// let error = Expr::parse(line, Dialect::Posix).unwrap_err();
    /// assert_eq!(
    ///     error.declarative(line),
    ///     "Invalid cron expression \"60 * * * *\": minute field must have a number from 0 to 59, but has `60`",
    /// );
    /// ```
    #[must_use]
    pub fn declarative(&self, text: &str) -> String {
        let field = self.field.map_or("expression", Field::name);
        format!("Invalid cron expression \"{text}\": {field} field {}", self.reason())
    }

    /// The reason alone, as it follows the field's name in the declarative form.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.kind {
            ErrorKind::Never => format!("will never match: {}", self.found),
            _ => format!("must have {}, but has {}", self.expected, self.found),
        }
    }

    /// The message, and below it the text with a caret under the mistake.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        render(self, &self.span, self.help.as_deref(), text)
    }

    /// The same error, for a text that begins `offset` bytes into a longer one.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> ParseError {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Never => write!(f, "this will never match: {}", self.found),
            _ => write!(f, "expected {}, but found {}", self.expected, self.found),
        }
    }
}

impl core::error::Error for ParseError {}

/// The longest text shown under a message; a longer one is cut around the mistake.
const SHOWN_CHARS_MAX: usize = 100;

/// A message, the text, a caret under the span, and the help.
///
/// Control characters would move the caret, so they are shown as blanks.
pub(crate) fn render(
    message: &dyn fmt::Display,
    span: &Range<usize>,
    help: Option<&str>,
    text: &str,
) -> String {
    let before = text.char_indices().take_while(|(at, _)| *at < span.start).count();
    let within = text.char_indices().filter(|(at, _)| span.contains(at)).count().max(1);
    // Keep the mistake in sight, a little way in from the left.
    let skipped = (before + within).saturating_sub(SHOWN_CHARS_MAX).min(before);
    let shown: String = text
        .chars()
        .skip(skipped)
        .take(SHOWN_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let indent = " ".repeat(before - skipped);
    let caret = "^".repeat(within.min(SHOWN_CHARS_MAX));
    let mut out = format!("{message}\n  | {}\n  | {indent}{caret}", shown.trim_end());
    if let Some(help) = help {
        out.push_str("\n  = help: ");
        out.push_str(help);
    }
    out
}
