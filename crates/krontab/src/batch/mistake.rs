//! Why a request has no result: a stable code, a message, and where.

use std::fmt::Display;
use std::ops::Range;
use std::str::Utf8Error;

use kron_core::{ConstraintError, DistributionError, JobError, PeriodIdError};
use kron_schedule::fuzzy::{self, FuzzyError};
use kron_schedule::{DurationError, ParseError};

use super::{LINE_BYTES_MAX, wire};
use crate::problem::Problem;
use kron_zones::ZoneNameError;

/// An error of one request.
#[derive(Debug)]
pub(super) struct Mistake {
    /// For programs to branch on. `wire` and `docs/reference/batch.md` list them.
    pub(super) code: &'static str,
    /// For people.
    pub(super) message: String,
    /// What made a phrase wrong.
    pub(super) cause: Option<fuzzy::Code>,
    /// The member that is wrong, such as `window.mode`.
    pub(super) field: Option<String>,
    /// Where in that member's text, in bytes; without a member, where in the line.
    pub(super) span: Option<Range<usize>>,
    /// All that is wrong with a krontab.
    pub(super) problems: Vec<Problem>,
}

impl Mistake {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Mistake {
        Mistake { code, message: message.into(), cause: None, field: None, span: None, problems: Vec::new() }
    }

    /// A mistake whose message ends with what to write instead, where somebody can tell.
    fn with_help(code: &'static str, message: impl Display, help: Option<&str>) -> Mistake {
        match help {
            Some(help) => Mistake::new(code, format!("{message}; {help}")),
            None => Mistake::new(code, message.to_string()),
        }
    }

    pub(super) fn expected(code: &'static str, expected: impl Display, found: impl Display) -> Mistake {
        Mistake::new(code, format!("expected {expected}, but found {found}"))
    }

    /// The same mistake, in that member.
    pub(super) fn in_field(mut self, field: impl Into<String>) -> Mistake {
        self.field = Some(field.into());
        self
    }

    fn at(mut self, span: Range<usize>) -> Mistake {
        self.span = Some(span);
        self
    }

    pub(super) fn line_too_long() -> Mistake {
        Mistake::expected(
            wire::LINE_TOO_LONG,
            format_args!("a line of at most {LINE_BYTES_MAX} bytes"),
            "more",
        )
    }

    pub(super) fn not_utf8(error: Utf8Error) -> Mistake {
        let at = error.valid_up_to();
        Mistake::expected(wire::BAD_UTF8, "a line in UTF-8", format_args!("other bytes at column {}", at + 1))
            .at(at..at)
    }

    /// The text is not JSON.
    pub(super) fn not_json(error: &serde_json::Error) -> Mistake {
        let message = error.to_string();
        // A line is line 1 of itself, which tells nobody anything.
        let what = message.split_once(" at line ").map_or(&*message, |(what, _)| what);
        let at = error.column().saturating_sub(1);
        Mistake::new(wire::BAD_JSON, format!("{what} at column {}", error.column())).at(at..at)
    }
}

impl From<ParseError> for Mistake {
    fn from(error: ParseError) -> Mistake {
        Mistake::with_help(wire::cron_code(error.kind()), &error, error.help()).at(error.span())
    }
}

impl From<DurationError> for Mistake {
    fn from(error: DurationError) -> Mistake {
        Mistake::new(wire::BAD_DURATION, error.to_string()).at(error.span())
    }
}

impl From<PeriodIdError> for Mistake {
    fn from(error: PeriodIdError) -> Mistake {
        Mistake::new(wire::BAD_TIME, error.to_string())
    }
}

impl From<ConstraintError> for Mistake {
    fn from(error: ConstraintError) -> Mistake {
        Mistake::with_help(wire::CONSTRAINT, &error, error.help()).at(error.span())
    }
}

impl From<DistributionError> for Mistake {
    fn from(error: DistributionError) -> Mistake {
        Mistake::with_help(wire::DISTRIBUTION, &error, error.help())
    }
}

impl From<JobError> for Mistake {
    fn from(error: JobError) -> Mistake {
        let (code, field) = wire::parameter(error.parameter());
        Mistake::expected(code, error.expected(), error.found()).in_field(field)
    }
}

impl From<ZoneNameError> for Mistake {
    fn from(error: ZoneNameError) -> Mistake {
        Mistake::with_help(wire::UNKNOWN_TIMEZONE, &error, error.help())
    }
}

impl From<FuzzyError> for Mistake {
    fn from(error: FuzzyError) -> Mistake {
        let mistake = Mistake::with_help(error.code().as_str(), error.message(), error.help());
        Mistake { cause: error.cause(), ..mistake }.at(error.span())
    }
}
