//! The words that peers send or receive, and what they are in Kron. Nothing else knows them.

use kron_core::{Overlap, Parameter, SeedStrategy, WindowMode};
use kron_schedule::{Dialect, ErrorKind, Fold, Gap, WarningKind};

/// What can be asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Op {
    Decide,
    Evaluate,
    Fuzzy,
    Lint,
    Next,
    Parse,
    Prev,
    Scatter,
}

pub(super) const OPS: &[(&str, Op)] = &[
    ("parse", Op::Parse),
    ("next", Op::Next),
    ("prev", Op::Prev),
    ("decide", Op::Decide),
    ("evaluate", Op::Evaluate),
    ("fuzzy", Op::Fuzzy),
    ("scatter", Op::Scatter),
    ("lint", Op::Lint),
];

impl Op {
    /// Its members, besides `id` and `op`.
    pub(super) const fn members(self) -> &'static [&'static str] {
        match self {
            Op::Parse => &["dialect", "expr"],
            Op::Next | Op::Prev => &["dialect", "expr", "timezone", "at", "count", "dst"],
            Op::Decide => {
                &["identity", "nominal", "timezone", "window", "distribution", "seed", "only", "avoid"]
            }
            Op::Evaluate => &[
                "identity",
                "nominal",
                "timezone",
                "window",
                "distribution",
                "seed",
                "only",
                "avoid",
                "dialect",
                "expr",
                "dst",
                "policy",
                "lastHandled",
                "active",
                "now",
            ],
            Op::Fuzzy => &["phrase", "extensions"],
            Op::Scatter => &["placeholder", "identifier"],
            Op::Lint => &["text", "path"],
        }
    }
}

pub(super) const DIALECTS: &[(&str, Dialect)] =
    &[("posix", Dialect::Posix), ("kron", Dialect::Kron), ("ojs", Dialect::Ojs)];

pub(super) const GAPS: &[(&str, Gap)] = &[("skip", Gap::Skip), ("after", Gap::After)];

pub(super) const FOLDS: &[(&str, Fold)] =
    &[("first", Fold::First), ("both", Fold::Both), ("auto", Fold::Auto)];

/// `center` is another word for `around`; answers say `around`.
pub(super) const MODES: &[(&str, WindowMode)] = &[
    ("after", WindowMode::After),
    ("around", WindowMode::Around),
    ("before", WindowMode::Before),
    ("center", WindowMode::Around),
];

pub(super) const STRATEGIES: &[(&str, SeedStrategy)] =
    &[("stable", SeedStrategy::Stable), ("daily", SeedStrategy::Daily), ("weekly", SeedStrategy::Weekly)];

/// Without `Queue`, which only surfaces with a queue have.
pub(super) const CONCURRENCIES: &[(&str, Overlap)] =
    &[("allow", Overlap::Allow), ("forbid", Overlap::Forbid), ("replace", Overlap::Replace)];

// Kinds of steps. There is also `hold`, for adapters that pass their steps on in this form: a run that
// cannot be started yet. `evaluate` never asks for it.
pub(super) const RECORD: &str = "record";
pub(super) const START: &str = "start";
pub(super) const TERMINATE: &str = "terminate";

// Codes of mistakes. Those of fuzzy phrases are the specification's own.
pub(super) const BAD_DURATION: &str = "bad-duration";
pub(super) const BAD_JSON: &str = "bad-json";
pub(super) const BAD_REQUEST: &str = "bad-request";
pub(super) const BAD_TIME: &str = "bad-time";
pub(super) const BAD_UTF8: &str = "bad-utf8";
pub(super) const BAD_VALUE: &str = "bad-value";
pub(super) const CONSTRAINT: &str = "constraint";
pub(super) const DISTRIBUTION: &str = "distribution";
pub(super) const KRONTAB: &str = "krontab";
pub(super) const LINE_TOO_LONG: &str = "line-too-long";
pub(super) const NOT_CRON: &str = "not-cron";
pub(super) const UNKNOWN_OP: &str = "unknown-op";
pub(super) const UNKNOWN_TIMEZONE: &str = "unknown-timezone";

/// The code of a mistake in a cron expression.
pub(super) const fn cron_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Alias => "cron-alias",
        ErrorKind::Empty => "cron-empty",
        ErrorKind::EmptyItem => "cron-empty-item",
        ErrorKind::FieldCount => "cron-field-count",
        ErrorKind::Interval => "cron-interval",
        ErrorKind::Name => "cron-name",
        ErrorKind::Never => "cron-never",
        ErrorKind::Number => "cron-number",
        ErrorKind::Range => "cron-range",
        ErrorKind::Reversed => "cron-reversed",
        ErrorKind::Special => "cron-special",
        ErrorKind::Step => "cron-step",
        ErrorKind::TooLong => "cron-too-long",
        ErrorKind::Unexpected => "cron-unexpected",
        // A kind of a later `kron-schedule`.
        _ => "cron",
    }
}

/// The code of a remark about a cron expression that works.
pub(super) const fn cron_warning_code(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::EitherDay => "either-day",
        WarningKind::EveryMinute => "every-minute",
        WarningKind::MissingDay => "missing-day",
        WarningKind::StepTooLong => "step-too-long",
        WarningKind::SubSecond => "sub-second",
        WarningKind::UnevenStep => "uneven-step",
        _ => "cron",
    }
}

/// The code of a wrong parameter of a job, and the member it came in.
pub(super) const fn parameter(parameter: Parameter) -> (&'static str, &'static str) {
    match parameter {
        Parameter::Deadline => ("deadline", "policy.deadline"),
        Parameter::Identity => ("identity", "identity"),
        Parameter::Lambda => (DISTRIBUTION, "distribution.params.lambda"),
        Parameter::Salt => ("seed", "seed.salt"),
        Parameter::Shape => (DISTRIBUTION, "distribution.params.shape"),
        Parameter::Sigma => (DISTRIBUTION, "distribution.params.sigma"),
        Parameter::Window => ("window", "window.duration"),
        _ => (BAD_VALUE, ""),
    }
}

/// The name of a member of an object within the request: `window.mode`.
pub(super) fn path(within: &str, name: &str) -> String {
    match within {
        "" => name.to_owned(),
        _ => format!("{within}.{name}"),
    }
}

/// "`a`, `b` or `c`".
pub(super) fn either(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => format!("`{one}`"),
        [first @ .., last] => format!("`{}` or `{last}`", first.join("`, `")),
    }
}
