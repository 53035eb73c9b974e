//! The `@` forms: names for common schedules, and `@every` with a duration.

use alloc::format;
use core::ops::Range;

use crate::dialect::Dialect;
use crate::duration::Duration;
use crate::error::{ErrorKind, ParseError};
use crate::every::Every;
use crate::expr::{Cron, Expr};
use crate::parse::{self, BLANKS, quoted};
use crate::suggest;

const ALIASES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Reads a text that begins with `@`, `at` so many bytes into what was written.
pub(crate) fn parse(text: &str, at: usize, dialect: Dialect) -> Result<Expr, ParseError> {
    let (name, rest) = text.split_once(BLANKS).unwrap_or((text, ""));
    let argument = rest.trim_start_matches(BLANKS);
    let argument_at = text.len() - argument.len();
    let equivalent = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, cron)| *cron);
    if !dialect.is_extended() {
        let help = match equivalent {
            Some(cron) => format!("the posix dialect has no aliases: write `{cron}`"),
            None => "the posix dialect has no `@` forms".into(),
        };
        return Err(error(ErrorKind::Alias, 0..text.len(), "5 fields (minute hour day month weekday)", text)
            .with_help(help));
    }
    match equivalent {
        Some(_) if !argument.is_empty() => {
            let end = format!("nothing after `{name}`");
            Err(error(ErrorKind::Unexpected, argument_at..text.len(), end, argument))
        }
        Some(cron) => {
            let fields = parse::cron(cron, dialect)?.fields;
            let whole = parse::span(&(at..at + name.len()));
            Ok(Expr::Cron(Cron::new(dialect, fields, [whole; 6])))
        }
        None if name == "@every" => {
            let interval = every(argument, dialect).map_err(|error| error.shifted(argument_at))?;
            Ok(Expr::Every(Every::new(dialect, interval, parse::span(&(at..at + text.len())))))
        }
        None => Err(unknown(name)),
    }
}

fn every(argument: &str, dialect: Dialect) -> Result<Duration, ParseError> {
    let whole = 0..argument.len();
    let interval: Duration = argument.parse().map_err(|wrong: crate::DurationError| ParseError {
        kind: ErrorKind::Interval,
        field: None,
        span: wrong.span(),
        expected: wrong.expected.into(),
        found: wrong.found,
        help: None,
    })?;
    if interval <= Duration::ZERO {
        return Err(error(ErrorKind::Interval, whole, "an interval longer than nothing", argument));
    }
    if dialect == Dialect::Kron && interval.subsec_nanos() != 0 {
        return Err(error(ErrorKind::Interval, whole, "whole seconds", argument)
            .with_help("chosen times are whole seconds, so shorter intervals would pile up"));
    }
    Ok(interval)
}

fn unknown(name: &str) -> ParseError {
    let names = ALIASES.map(|(alias, _)| alias);
    let expected =
        "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or `@every` with a duration";
    let error = error(ErrorKind::Alias, 0..name.len(), expected, name);
    if let Some(glued) = name.strip_prefix("@every").filter(|rest| rest.parse::<Duration>().is_ok()) {
        return error.with_help(format!("did you mean `@every {glued}`?"));
    }
    if name == "@reboot" {
        return error.with_help("starting up is not a time of the calendar, so it cannot be scheduled");
    }
    match suggest::did_you_mean(name, names.into_iter().chain(["@every"])) {
        Some(help) => error.with_help(help),
        None => error,
    }
}

fn error(
    kind: ErrorKind,
    span: Range<usize>,
    expected: impl Into<alloc::borrow::Cow<'static, str>>,
    found: &str,
) -> ParseError {
    ParseError { kind, field: None, span, expected: expected.into(), found: quoted(found).into(), help: None }
}
