//! What stands in the place of the schedule: cron fields, an alias, `@every` or a phrase.

use std::borrow::Cow;
use std::iter;

use kron_schedule::fuzzy::{
    Extensions, FuzzyError, FuzzyWarning, FuzzyWarningKind, Phrase, Placeholder, Scattered,
};
use kron_schedule::{Dialect, Dst, ErrorKind, Expr, ParseError, Schedule, WarningKind, Zone};

use crate::code::Code;
use crate::file;
use crate::parts::SchedulePart;
use crate::problem::{Mistake, quoted};
use crate::token::{BLANKS, Token};

/// The schedule of an entry, as it was written and as it was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    text: String,
    kind: ScheduleKind,
}

/// The four ways to write a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleKind {
    /// A name such as `@daily`, and what it stands for.
    Alias(Expr),
    /// Five cron fields.
    Cron(Expr),
    /// An interval, `@every`.
    Every(Expr),
    /// A quoted phrase, and the schedule that the job's identity gives it.
    Phrase {
        /// What was said.
        phrase: Phrase,
        /// When that is, for this job.
        scattered: Scattered,
    },
}

impl Written {
    /// The text as it was written; a phrase without its quotes.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Which way it was written, and what it was understood as.
    #[must_use]
    pub fn kind(&self) -> &ScheduleKind {
        &self.kind
    }

    /// The kind in one word: `alias`, `cron`, `every` or `phrase`.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            ScheduleKind::Alias(_) => "alias",
            ScheduleKind::Cron(_) => "cron",
            ScheduleKind::Every(_) => "every",
            ScheduleKind::Phrase { .. } => "phrase",
        }
    }

    /// The expression, unless it is one that cron fields cannot say.
    #[must_use]
    pub fn expr(&self) -> Option<&Expr> {
        match &self.kind {
            ScheduleKind::Alias(expr) | ScheduleKind::Cron(expr) | ScheduleKind::Every(expr) => Some(expr),
            ScheduleKind::Phrase { scattered: Scattered::Cron(cron), .. } => Some(cron.expr()),
            ScheduleKind::Phrase { scattered: Scattered::EveryDays(_), .. } => None,
        }
    }

    /// What a phrase stands for before the job's identity gives it a time.
    #[must_use]
    pub fn placeholder(&self) -> Option<String> {
        match &self.kind {
            ScheduleKind::Phrase { phrase, .. } => Some(phrase.placeholder().to_string()),
            _ => None,
        }
    }

    /// The placeholder of a phrase that is scattered by its job's name.
    pub(crate) fn scattered(&self) -> Option<&Placeholder> {
        match &self.kind {
            ScheduleKind::Phrase { phrase, .. } => {
                Some(phrase.placeholder()).filter(|found| found.is_scattered())
            }
            _ => None,
        }
    }

    /// What it comes to: five cron fields, `@every` with a duration, or a sentence about days.
    #[must_use]
    pub fn resolved(&self) -> String {
        match &self.kind {
            ScheduleKind::Alias(expr) | ScheduleKind::Cron(expr) | ScheduleKind::Every(expr) => {
                expr.to_string()
            }
            ScheduleKind::Phrase { scattered, .. } => scattered.to_string(),
        }
    }

    /// What it comes to, as an English sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.kind {
            ScheduleKind::Phrase { scattered: Scattered::EveryDays(days), .. } => days.to_string(),
            _ => self.expr().map(Expr::describe).unwrap_or_default(),
        }
    }

    pub(crate) fn compile(&self, zone: &Zone, dst: Dst) -> Result<Schedule, ParseError> {
        match &self.kind {
            ScheduleKind::Alias(expr) | ScheduleKind::Cron(expr) | ScheduleKind::Every(expr) => {
                expr.compile(zone, dst)
            }
            ScheduleKind::Phrase { scattered, .. } => scattered.compile(zone, dst),
        }
    }

    /// The one spelling that `fmt` writes.
    pub(crate) fn canonical(&self) -> String {
        match &self.kind {
            ScheduleKind::Alias(_) => self.text.clone(),
            ScheduleKind::Cron(expr) | ScheduleKind::Every(expr) => expr.to_string(),
            ScheduleKind::Phrase { phrase, .. } => format!("\"{phrase}\""),
        }
    }
}

/// A schedule that was read, but whose phrase has no time yet.
pub(crate) enum Draft<'l> {
    Expr(&'l str, Expr),
    Phrase(Token<'l>, Phrase),
}

/// Reads what stands in the place of the schedule.
pub(crate) fn read<'l>(
    part: SchedulePart<'l>,
    line: &'l str,
    mistakes: &mut Vec<Mistake>,
) -> Option<Draft<'l>> {
    match part {
        SchedulePart::Plain(span) => {
            let text = &line[span.clone()];
            let cleaned = cleaned(text);
            match Expr::parse(&cleaned, Dialect::Kron) {
                Ok(expr) => {
                    mistakes.extend(expr.warnings().iter().map(|warning| {
                        let place = warning.span().start + span.start..warning.span().end + span.start;
                        Mistake::new(warning_code(warning.kind()), place, warning.to_string())
                            .with_help_if(warning.help())
                    }));
                    Some(Draft::Expr(text, expr))
                }
                Err(error) => {
                    if Phrase::parse(text, Extensions::On).is_ok() {
                        let help = format!("a phrase stands in quotes: {}", quoted(&format!("\"{text}\"")));
                        mistakes.push(lift(&error, span.start).with_help(help));
                    } else {
                        let errors = Expr::errors(&cleaned, Dialect::Kron);
                        mistakes.extend(errors.iter().map(|error| lift(error, span.start)));
                    }
                    None
                }
            }
        }
        SchedulePart::Phrase(token) => match Phrase::parse(token.text(), Extensions::On) {
            Ok(phrase) => {
                mistakes.extend(phrase.warnings().iter().map(|warning| remark(warning, &token)));
                Some(Draft::Phrase(token, phrase))
            }
            Err(error) => {
                mistakes.push(phrase_mistake(&error, &token));
                None
            }
        },
    }
}

/// The text without characters that have been told already, so that they hide nothing else: blanks that
/// are none part words, and what takes the place of a control character is wrong there. Every byte keeps
/// its place.
fn cleaned(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| file::is_control(c) || c.is_whitespace() && !BLANKS.contains(&c);
    if !text.contains(is_odd) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if !is_odd(c) => out.push(c),
            _ if c.is_whitespace() => out.extend(iter::repeat_n(' ', c.len_utf8())),
            _ => out.extend(iter::repeat_n('*', c.len_utf8())),
        }
    }
    out.into()
}

impl Draft<'_> {
    /// Whether a phrase brings its own offset, and where it stands.
    pub(crate) fn offset_beside_zone(&self) -> Option<Mistake> {
        match self {
            Draft::Phrase(token, phrase) if phrase.has_offset() => Some(
                Mistake::new(
                    Code::Phrase,
                    token.span(),
                    "this phrase has a UTC offset, and the entry has `@tz`",
                )
                .with_help("keep one of them"),
            ),
            _ => None,
        }
    }

    pub(crate) fn is_every(&self) -> bool {
        matches!(self, Draft::Expr(_, Expr::Every(_)))
    }

    /// The schedule, unless it has to wait for the identity.
    pub(crate) fn compile(&self, zone: &Zone, dst: Dst) -> Option<Result<Schedule, ParseError>> {
        match self {
            Draft::Expr(_, expr) => Some(expr.compile(zone, dst)),
            Draft::Phrase(..) => None,
        }
    }

    /// The schedule of the job of that identity.
    pub(crate) fn resolve(self, identity: &str, mistakes: &mut Vec<Mistake>) -> Option<Written> {
        match self {
            Draft::Expr(text, expr) => {
                let kind = match &expr {
                    Expr::Every(_) => ScheduleKind::Every(expr),
                    Expr::Cron(_) if text.starts_with('@') => ScheduleKind::Alias(expr),
                    Expr::Cron(_) => ScheduleKind::Cron(expr),
                };
                Some(Written { text: text.to_owned(), kind })
            }
            Draft::Phrase(token, phrase) => match phrase.placeholder().scatter(identity) {
                Ok(scattered) => {
                    mistakes.extend(scattered.note().map(|note| remark(note, &token)));
                    let text = token.text().to_owned();
                    Some(Written { text, kind: ScheduleKind::Phrase { phrase, scattered } })
                }
                Err(error) => {
                    mistakes.push(phrase_mistake(&error, &token));
                    None
                }
            },
        }
    }
}

/// An expression's mistake in a line that it begins `offset` bytes into.
pub(crate) fn lift(error: &ParseError, offset: usize) -> Mistake {
    let code = match error.kind() {
        ErrorKind::Never => Code::NeverMatches,
        _ => Code::Schedule,
    };
    let span = error.span().start + offset..error.span().end + offset;
    Mistake::new(code, span, error.to_string()).with_help_if(error.help())
}

fn warning_code(kind: WarningKind) -> Code {
    match kind {
        WarningKind::EitherDay => Code::EitherDay,
        WarningKind::EveryMinute => Code::EveryMinute,
        WarningKind::MissingDay => Code::MissingDay,
        WarningKind::StepTooLong => Code::StepTooLong,
        WarningKind::UnevenStep => Code::UnevenStep,
        _ => Code::ScheduleNote,
    }
}

fn phrase_mistake(error: &FuzzyError, token: &Token<'_>) -> Mistake {
    let mistake = Mistake::new(Code::Phrase, token.span_of(error.span()), error.headline())
        .with_phrase_code(error.code(), error.cause());
    if Expr::parse(token.text(), Dialect::Kron).is_ok() {
        return mistake.with_help("cron fields and `@` forms stand without quotes");
    }
    mistake.with_help(error.help().unwrap_or_else(|| error.guidance()))
}

fn remark(warning: &FuzzyWarning, token: &Token<'_>) -> Mistake {
    let span = warning.span().map_or_else(|| token.span(), |span| token.span_of(span));
    let code = match warning.kind() {
        FuzzyWarningKind::AmbiguousZone => Code::AmbiguousZone,
        FuzzyWarningKind::DayStep => Code::DayStep,
        FuzzyWarningKind::FixedInterval => Code::FixedInterval,
        FuzzyWarningKind::OneSidedOffset => Code::OneSidedOffset,
        FuzzyWarningKind::UnevenStep => Code::UnevenStep,
        FuzzyWarningKind::WeekdayMoved => Code::WeekdayMoved,
        _ => Code::PhraseNote,
    };
    Mistake::new(code, span, warning.headline()).with_help(warning.guidance())
}
