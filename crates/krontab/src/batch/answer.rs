//! What is written: the envelope, and the shapes of results and mistakes.

use std::ops::Range;

use kron_core::{PeriodId, Reason, Tally};
use kron_schedule::fuzzy::FuzzyWarning;
use kron_schedule::{Count, Warning};
use serde::{Serialize, Serializer};

use super::mistake::Mistake;
use super::time::Time;
use super::wire;
use crate::code::Severity;
use crate::problem::{Cause, PhraseCode, Problem};

/// Appends one answer, a line; `append` writes the result.
pub(super) fn write<R>(
    out: &mut Vec<u8>,
    id: Option<&str>,
    result: Result<R, Mistake>,
    append: impl Fn(&mut Vec<u8>, &R),
) {
    out.extend_from_slice(b"{\"id\":");
    match id {
        // Between tokens JSON allows a carriage return, and many readers of lines take it for an end.
        Some(id) => out.extend(id.bytes().map(|byte| if byte == b'\r' { b' ' } else { byte })),
        None => out.extend_from_slice(b"null"),
    }
    match result {
        Ok(result) => {
            out.extend_from_slice(b",\"ok\":true,\"result\":");
            append(out, &result);
        }
        Err(mistake) => {
            out.extend_from_slice(b",\"ok\":false,\"error\":");
            shape(out, &ErrorShape::from(&mistake));
        }
    }
    out.extend_from_slice(b"}\n");
}

/// An answer without a result.
pub(super) fn refuse(out: &mut Vec<u8>, id: Option<&str>, mistake: Mistake) {
    write(out, id, Err::<(), _>(mistake), |_, ()| {});
}

/// Appends a shape that serde knows.
pub(super) fn shape(out: &mut Vec<u8>, shape: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, shape).expect("a shape has text for keys, and memory takes every byte");
}

#[derive(Serialize)]
struct ErrorShape<'m> {
    code: &'m str,
    message: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<&'m Range<usize>>,
    #[serde(skip_serializing_if = "<[Problem]>::is_empty", serialize_with = "problems")]
    problems: &'m [Problem],
}

impl<'m> From<&'m Mistake> for ErrorShape<'m> {
    fn from(Mistake { code, message, cause, field, span, problems }: &'m Mistake) -> ErrorShape<'m> {
        ErrorShape {
            code,
            message,
            cause: cause.map(Cause::from),
            field: field.as_deref(),
            span: span.as_ref(),
            problems,
        }
    }
}

fn problems<S: Serializer>(problems: &&[Problem], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(problems.iter().map(ProblemShape::from))
}

/// A problem of a krontab. Unlike the tool's, it has no file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProblemShape {
    severity: Severity,
    line: usize,
    column: usize,
    end_column: usize,
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    #[serde(flatten)]
    phrase: Option<PhraseCode>,
}

impl From<&Problem> for ProblemShape {
    fn from(problem: &Problem) -> ProblemShape {
        ProblemShape {
            severity: problem.severity(),
            line: problem.line(),
            column: problem.column(),
            end_column: problem.end_column(),
            code: problem.code().name(),
            message: problem.message().to_owned(),
            help: problem.help().map(str::to_owned),
            phrase: problem.phrase(),
        }
    }
}

/// A remark about what works, but perhaps not as its author thinks.
#[derive(Serialize)]
pub(super) struct Remark {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<Range<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl From<&Warning> for Remark {
    fn from(warning: &Warning) -> Remark {
        Remark {
            code: wire::cron_warning_code(warning.kind()),
            message: warning.to_string(),
            span: Some(warning.span()),
            help: warning.help().map(str::to_owned),
        }
    }
}

impl From<&FuzzyWarning> for Remark {
    fn from(warning: &FuzzyWarning) -> Remark {
        Remark {
            code: warning.kind().name(),
            message: warning.headline().to_owned(),
            span: warning.span(),
            help: Some(warning.guidance().to_owned()),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Parsed {
    /// The one spelling of everything that means the same.
    pub(super) canonical: String,
    pub(super) description: String,
    pub(super) warnings: Vec<Remark>,
}

#[derive(Serialize)]
pub(super) struct Occurrences {
    pub(super) occurrences: Vec<Time>,
}

#[derive(Serialize)]
pub(super) struct Phrased {
    pub(super) placeholder: String,
    pub(super) warnings: Vec<Remark>,
}

#[derive(Serialize)]
pub(super) struct Scattered {
    pub(super) cron: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<Remark>,
}

#[derive(Serialize)]
pub(super) struct Linted {
    /// The names of the entries, in the order of the lines.
    pub(super) jobs: Vec<String>,
    pub(super) warnings: Vec<ProblemShape>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Evaluated {
    pub(super) steps: Vec<StepShape>,
    pub(super) wake_at: Option<Time>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepShape {
    kind: &'static str,
    /// None where a run is to end whose period the request did not tell.
    period_id: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(flatten)]
    tally: Option<TallyShape>,
}

/// Of a record of many periods.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TallyShape {
    first: Time,
    last: Time,
    count: u64,
    /// Whether there may be more.
    at_least: bool,
}

impl StepShape {
    pub(super) fn new(kind: &'static str, period: Option<PeriodId>) -> StepShape {
        let period_id = period.map(PeriodId::nominal).map(Time);
        StepShape { kind, period_id, outcome: None, reason: None, tally: None }
    }

    pub(super) fn settled(period: PeriodId, reason: Reason) -> StepShape {
        StepShape {
            outcome: Some(reason.outcome().name()),
            reason: Some(reason.name()),
            ..StepShape::new(wire::RECORD, Some(period))
        }
    }

    /// Many periods in one; it goes by the name of the last.
    pub(super) fn passed(tally: &Tally) -> StepShape {
        let (count, at_least) = match tally.count {
            Count::Exactly(count) => (count, false),
            Count::AtLeast(count) => (count, true),
        };
        let (first, last) = (Time(tally.first.nominal()), Time(tally.last.nominal()));
        StepShape {
            tally: Some(TallyShape { first, last, count, at_least }),
            ..StepShape::settled(tally.last, tally.reason)
        }
    }
}
