//! Mistakes in the definition of a job: which parameter, what was expected, what was found.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;

/// Why a job cannot be built.
///
/// ```
/// use kron_core::{Parameter, Window, WindowMode};
///
/// let error = Window::new(WindowMode::After, "-5m".parse()?).unwrap_err();
/// assert_eq!(error.parameter(), Parameter::Window);
/// assert_eq!(error.to_string(), "window: expected a duration that is not negative, but found `-5m`");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobError {
    parameter: Parameter,
    expected: Cow<'static, str>,
    found: Cow<'static, str>,
}

/// A part of a job's definition that can be wrong by itself.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Parameter {
    /// How late a run may start.
    Deadline,
    /// The job's name.
    Identity,
    /// The rate of an exponential distribution.
    Lambda,
    /// The text that is mixed into the seed.
    Salt,
    /// The exponent of a skewed distribution.
    Shape,
    /// The spread of a normal distribution.
    Sigma,
    /// The window's length.
    Window,
}

impl JobError {
    pub(crate) fn new(
        parameter: Parameter,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> JobError {
        JobError { parameter, expected: expected.into(), found: found.into() }
    }

    /// An error about a value that can be printed.
    pub(crate) fn value(
        parameter: Parameter,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> JobError {
        JobError::new(parameter, expected, format!("`{found}`"))
    }

    /// Which parameter is wrong.
    #[must_use]
    pub fn parameter(&self) -> Parameter {
        self.parameter
    }

    /// What would have been right, as a noun phrase.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What was there instead.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, but found {}", self.parameter, self.expected, self.found)
    }
}

impl core::error::Error for JobError {}

impl Parameter {
    /// One word, as krontab and `KronJob` call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Parameter::Deadline => "deadline",
            Parameter::Identity => "identity",
            Parameter::Lambda => "lambda",
            Parameter::Salt => "salt",
            Parameter::Shape => "shape",
            Parameter::Sigma => "sigma",
            Parameter::Window => "window",
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The most characters of a mistake that are repeated in a message.
const FOUND_CHARS_MAX: usize = 40;

/// What was written, between backticks. Control characters could change the terminal they are
/// printed on, so they are shown as escapes.
pub(crate) fn quoted(text: &str) -> Cow<'static, str> {
    if text.is_empty() {
        return Cow::Borrowed("nothing");
    }
    let mut out = String::from("`");
    for c in text.chars().take(FOUND_CHARS_MAX) {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(FOUND_CHARS_MAX).is_some() {
        out.push('…');
    }
    out.push('`');
    Cow::Owned(out)
}
