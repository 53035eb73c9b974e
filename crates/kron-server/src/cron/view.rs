//! Cron jobs and their occurrences as they are shown, in both shapes at once.

use jiff::Timestamp;
use kron_core::Decision;

use crate::object::Object;
use crate::times::stamp;

use super::Cron;
use super::definition::{Compiled, Dialect};
use super::occurrence::{Kind, Occurrence};

/// The cron job as clients see it, under the names of both shapes.
#[must_use]
pub fn cron_view(cron: &Cron) -> Object {
    let definition = &cron.definition;
    let at = |at: Option<Timestamp>| at.map(stamp);
    let template = Object::new()
        .with("type", &definition.kind)
        .with("args", &definition.args)
        .with("options", &definition.options);
    Object::new()
        .with("name", &definition.name)
        .with("cron", &definition.cron)
        .with("expression", &definition.cron)
        .with("timezone", &definition.timezone)
        .with("type", &definition.kind)
        .with("args", &definition.args)
        .with("options", &definition.options)
        .maybe("meta", (!definition.meta.is_empty()).then_some(&definition.meta))
        .with("job_template", &template)
        .with("overlap_policy", &definition.overlap.name())
        .with("enabled", &cron.enabled)
        .with("status", &if cron.enabled { "active" } else { "disabled" })
        .with("description", &definition.description)
        .maybe("kron", definition.kron.as_ref())
        .with("last_run_at", &at(cron.last_run_at))
        .with("next_run_at", &at(cron.next_run_at))
        .with("run_count", &cron.run_count)
        .with("created_at", &stamp(cron.created_at))
}

/// The answer to a registration, in the shape that it was written in.
#[must_use]
pub fn answer(cron: &Cron, compiled: Option<&Compiled>, dialect: Dialect) -> Object {
    let view = cron_view(cron);
    let warnings = compiled.map(warnings).unwrap_or_default();
    let answer = Object::new().with("cron_job", &view);
    let answer = match dialect {
        Dialect::Expression => answer.with("cron", &view),
        Dialect::Seed => answer.and(&view),
    };
    answer.maybe("warnings", (!warnings.is_empty()).then_some(&warnings))
}

/// What is legal and surely a surprise.
pub(super) fn warnings(compiled: &Compiled) -> Vec<Object> {
    let warnings = compiled.expr.warnings();
    warnings
        .iter()
        .map(|warning| {
            let span = warning.span();
            Object::new()
                .with("code", &code(warning.kind()))
                .with("message", &warning.to_string())
                .maybe("help", warning.help().as_ref())
                .with("span", &[span.start, span.end])
        })
        .collect()
}

fn code(kind: kron_schedule::WarningKind) -> &'static str {
    use kron_schedule::WarningKind as Kind;
    match kind {
        Kind::EitherDay => "either_day",
        Kind::EveryMinute => "every_minute",
        Kind::MissingDay => "missing_day",
        Kind::StepTooLong => "step_too_long",
        Kind::SubSecond => "sub_second",
        Kind::UnevenStep => "uneven_step",
        _ => "other",
    }
}

/// An entry of the record of occurrences.
#[must_use]
pub fn occurrence_view(occurrence: &Occurrence) -> Object {
    let range = occurrence.kind == Kind::Range;
    let several = occurrence.kind != Kind::One;
    Object::new()
        .with("scheduled_time", &stamp(occurrence.scheduled))
        .with("chosen_time", &occurrence.chosen.map(stamp))
        .with("outcome", &occurrence.outcome)
        .with("reason", &occurrence.reason)
        .with("explanation", &occurrence.reason.words())
        .with("actual_time", &stamp(occurrence.actual))
        .maybe("job_id", occurrence.job_id.as_ref())
        .maybe("active_job_id", occurrence.active_job_id.as_ref())
        .maybe("seed_hash", occurrence.seed_hash.as_ref())
        .maybe("first", range.then(|| stamp(occurrence.scheduled)).as_ref())
        .maybe("last", occurrence.last.map(stamp).as_ref())
        .maybe("count", several.then_some(&occurrence.count))
        .maybe("at_least", occurrence.at_least.then_some(&true))
        .maybe("civil_times", (!occurrence.civil.is_empty()).then_some(&occurrence.civil))
}

/// An occurrence that has not come yet.
#[must_use]
pub fn planned_view(cron: &Cron, decision: &Decision) -> Object {
    let outcome = match (cron.enabled, decision.chosen()) {
        (false, _) => "disabled",
        (true, None) => "unschedulable",
        (true, Some(_)) => "planned",
    };
    Object::new()
        .with("scheduled_time", &stamp(decision.nominal()))
        .with("chosen_time", &decision.chosen().map(stamp))
        .with("outcome", &outcome)
        .with("window_start", &stamp(decision.window_start()))
        .with("window_end", &stamp(decision.window_end()))
        .with("seed_hash", &decision.seed_hash().to_string())
}
