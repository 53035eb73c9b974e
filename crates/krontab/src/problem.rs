//! A mistake in a file: where, what was expected, what was found, what to do.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use kron_schedule::fuzzy;
use serde::Serialize;

use crate::code::{Code, Severity};
use crate::secret;
use crate::source::Source;

/// One problem of a file, with its place.
///
/// Printed, it is one line; [`render`](Problem::render) adds the line of the file with a caret under
/// the mistake. Serialized, it is an object with `severity`, `code`, `file`, `line`, `column`,
/// `endColumn`, `message` and, where there is one, `help`; of a phrase that is none, also `phraseCode` and,
/// where there is one, `cause`.
///
/// ```
/// use krontab::{Krontab, Source, Zones};
///
/// let source = Source::new("/etc/krond.d/backup")?;
/// let text = "@daily @policy(concurency=forbid) name=nightly command=/usr/bin/backup\n";
/// let problems = Krontab::parse(text, &source, &Zones::bundled()).problems;
/// assert_eq!(
///     problems[0].to_string(),
///     "/etc/krond.d/backup:1:16: error: unknown key `concurency`; did you mean `concurrency`?",
/// );
/// assert_eq!(problems[0].render(), "\
/// error[unknown-key]: unknown key `concurency`
///   --> /etc/krond.d/backup:1:16
///   | @daily @policy(concurency=forbid) name=nightly command=/usr/bin/backup
///   |                ^^^^^^^^^^
///   = help: did you mean `concurrency`?");
/// # Ok::<(), krontab::SourceError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    severity: Severity,
    code: Code,
    file: Arc<str>,
    line: usize,
    column: usize,
    end_column: usize,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    #[serde(flatten)]
    phrase: Option<PhraseCode>,
    #[serde(skip)]
    count: u32,
    #[serde(skip)]
    span: Range<usize>,
    #[serde(skip)]
    excerpt: Option<Box<Excerpt>>,
}

impl Problem {
    /// A problem of a line of the file.
    pub(crate) fn new(source: &Source, number: usize, line: &str, mistake: Mistake) -> Problem {
        let Mistake { code, span, mut message, help, phrase } = mistake;
        let secrets = secret::values(line);
        if secrets.iter().any(|secret| secret.start < span.end && span.start < secret.end) {
            message = without_found(message);
        }
        let before = chars_before(line, span.start);
        let within = chars_before(line, span.end).saturating_sub(before);
        Problem {
            severity: code.severity(),
            code,
            file: source.shown(),
            line: number,
            column: before + 1,
            end_column: before + within + 1,
            message: printable(&message),
            help: help.as_deref().map(printable),
            phrase: phrase.map(|(code, cause)| PhraseCode {
                phrase_code: code.as_str(),
                cause: cause.map(Cause::from),
            }),
            count: 1,
            span,
            excerpt: Excerpt::new(line, &secrets, before, within),
        }
    }

    /// A problem of the file as a whole, which has no line to show.
    pub(crate) fn of_file(source: &Source, code: Code, message: impl Into<String>) -> Problem {
        Problem { excerpt: None, ..Problem::new(source, 1, "", Mistake::new(code, 0..0, message)) }
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Whether it is an error, and not only a warning.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// What kind of problem it is, for programs to branch on.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The file, as messages name it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The first character of the mistake in its line, counted from 1 in characters.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The first character after the mistake. It is the column where something is missing.
    #[must_use]
    pub fn end_column(&self) -> usize {
        self.end_column
    }

    /// The place in bytes of the line.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What is wrong, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to write instead, where Kron can tell.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Of a phrase that is none, which of the phrase language's own errors it is.
    #[must_use]
    pub fn phrase(&self) -> Option<PhraseCode> {
        self.phrase
    }

    /// How many problems it stands for: more than one only where the rest is counted and not told.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The message, and below it the place and the line with a caret under the mistake.
    ///
    /// Values of environment variables are not shown, because they may be secrets.
    #[must_use]
    pub fn render(&self) -> String {
        let Problem { severity, code, file, line, column, message, .. } = self;
        let mut out = format!("{severity}[{code}]: {message}\n  --> {file}:{line}:{column}");
        if let Some(Excerpt { text, indent, carets }) = self.excerpt.as_deref() {
            out.push_str("\n  | ");
            out.push_str(text);
            out.push_str("\n  | ");
            out.push_str(&" ".repeat(*indent));
            out.push_str(&"^".repeat(*carets));
        }
        if let Some(help) = &self.help {
            out.push_str("\n  = help: ");
            out.push_str(help);
        }
        if let Some(PhraseCode { phrase_code, cause }) = self.phrase {
            out.push_str("\n  = code: ");
            out.push_str(phrase_code);
            if let Some(cause) = cause {
                out.push_str(&format!(" ({})", cause.code));
            }
        }
        out
    }
}

/// An error of the phrase language, by its codes. Serialized, it is the members `phraseCode` and, where
/// there is one, `cause`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhraseCode {
    /// What is wrong, such as `ERR-SYNTAX-002`.
    pub phrase_code: &'static str,
    /// What made it wrong, where the language has a code for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

/// What made a phrase wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Cause {
    /// Such as `ERR-TIME-001`.
    pub code: &'static str,
    /// What it stands for.
    pub message: &'static str,
}

impl From<fuzzy::Code> for Cause {
    fn from(code: fuzzy::Code) -> Cause {
        Cause { code: code.as_str(), message: code.meaning() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { severity, file, line, column, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {severity}: {message}")?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// A message that does not repeat what was found, because it may be secret.
fn without_found(message: String) -> String {
    if let Some((expected, _)) = message.split_once(", but found `") {
        return format!("{expected}, but found something else");
    }
    match message.split_once(" `") {
        Some((what, _)) if what.starts_with("unknown ") => what.to_owned(),
        _ => message,
    }
}

/// The part of a line that is shown under a message.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Excerpt {
    text: String,
    /// The number of blanks before the carets.
    indent: usize,
    carets: usize,
}

/// The longest piece of a line shown under a message; a longer one is cut around the mistake.
const SHOWN_CHARS_MAX: usize = 100;

impl Excerpt {
    /// `before` and `within` are the characters before the mistake, and of it.
    fn new(line: &str, secrets: &[Range<usize>], before: usize, within: usize) -> Option<Box<Excerpt>> {
        let carets = within.clamp(1, SHOWN_CHARS_MAX);
        // Keep the mistake in sight, a little way in from the left.
        let skipped = (before + carets).saturating_sub(SHOWN_CHARS_MAX).min(before);
        let masked = secret::masked(line, secrets);
        // Control characters would move the caret, so they are shown as blanks.
        let shown: String = masked
            .chars()
            .skip(skipped)
            .take(SHOWN_CHARS_MAX)
            .map(|c| if is_unprintable(c) { ' ' } else { c })
            .collect();
        let text = shown.trim_end().to_owned();
        (!text.is_empty()).then(|| Box::new(Excerpt { text, indent: before - skipped, carets }))
    }
}

fn chars_before(line: &str, at: usize) -> usize {
    line.char_indices().take_while(|(start, _)| *start < at).count()
}

/// Whether printing the character would do something else than print it.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || is_directional(c)
        || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Characters that change the order in which others are shown.
pub(crate) fn is_directional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

/// A problem of a line, before it is known which line of which file it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Mistake {
    pub(crate) code: Code,
    /// Bytes of the line. Empty at a place where something is missing.
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The code of the phrase language, and its cause.
    pub(crate) phrase: Option<(fuzzy::Code, Option<fuzzy::Code>)>,
}

impl Mistake {
    pub(crate) fn new(code: Code, span: Range<usize>, message: impl Into<String>) -> Mistake {
        Mistake { code, span, message: message.into(), help: None, phrase: None }
    }

    /// "expected …, but found …".
    pub(crate) fn expected(code: Code, span: Range<usize>, expected: &str, found: &str) -> Mistake {
        Mistake::new(code, span, format!("expected {expected}, but found {}", quoted(found)))
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Mistake {
        self.help = Some(help.into());
        self
    }

    /// With the help, if there is one to give.
    pub(crate) fn with_help_if(mut self, help: Option<impl Into<String>>) -> Mistake {
        self.help = help.map(Into::into).or(self.help);
        self
    }

    /// With the codes of the phrase language.
    pub(crate) fn with_phrase_code(mut self, code: fuzzy::Code, cause: Option<fuzzy::Code>) -> Mistake {
        self.phrase = Some((code, cause));
        self
    }

    pub(crate) fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}

/// The longest message. Some repeat what was written, which may be a whole line.
const MESSAGE_CHARS_MAX: usize = 400;

/// The text, short enough to be read, with escapes for what would do something else than print.
fn printable(text: &str) -> String {
    escaped(text, MESSAGE_CHARS_MAX)
}

/// The most characters of a mistake that are repeated in a message.
const FOUND_CHARS_MAX: usize = 40;

/// What was written, between backticks, short enough to be part of a sentence.
pub(crate) fn quoted(text: &str) -> String {
    if text.is_empty() {
        return "nothing".into();
    }
    format!("`{}`", escaped(text, FOUND_CHARS_MAX))
}

fn escaped(text: &str, chars_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(chars_max));
    for c in text.chars().take(chars_max) {
        if is_unprintable(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(chars_max).is_some() {
        out.push('…');
    }
    out
}

/// Collects the problems of a file, up to a bound for each severity.
pub(crate) struct Problems<'s> {
    source: &'s Source,
    errors: Collected,
    warnings: Collected,
}

#[derive(Default)]
struct Collected {
    problems: Vec<Problem>,
    /// How many there were beyond the bound, and where the first of them was.
    more: u32,
    more_from: Option<Problem>,
}

/// The most problems reported of each severity. Nobody reads more at once, and a file of rubbish
/// must not become a report many times its size.
pub const PROBLEMS_MAX: usize = 100;

impl<'s> Problems<'s> {
    pub(crate) fn new(source: &'s Source) -> Problems<'s> {
        Problems { source, errors: Collected::default(), warnings: Collected::default() }
    }

    pub(crate) fn source(&self) -> &'s Source {
        self.source
    }

    pub(crate) fn push(&mut self, number: usize, line: &str, mistake: Mistake) {
        let collected = self.of(mistake.code.severity());
        if collected.problems.len() < PROBLEMS_MAX || collected.more_from.is_none() {
            let problem = Problem::new(self.source, number, line, mistake);
            self.add(problem);
        } else {
            collected.more += 1;
        }
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        let collected = self.of(problem.severity);
        if collected.problems.len() < PROBLEMS_MAX {
            collected.problems.push(problem);
        } else {
            collected.more += 1;
            collected.more_from.get_or_insert(problem);
        }
    }

    fn of(&mut self, severity: Severity) -> &mut Collected {
        match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        }
    }

    /// All of them in the order of their places, and then how many more there were.
    pub(crate) fn finish(self) -> Vec<Problem> {
        let more = [
            self.errors.summary(Code::MoreErrors, "error"),
            self.warnings.summary(Code::MoreWarnings, "warning"),
        ];
        let mut problems = self.errors.problems;
        problems.extend(self.warnings.problems);
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems.extend(more.into_iter().flatten());
        problems
    }
}

impl Collected {
    fn summary(&self, code: Code, noun: &str) -> Option<Problem> {
        let first = self.more_from.as_ref()?;
        let plural = if self.more == 1 { "" } else { "s" };
        Some(Problem {
            code,
            message: format!("and {} more {noun}{plural}, from here on", self.more),
            help: None,
            phrase: None,
            count: self.more,
            ..first.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_the_mistake() {
        let source = Source::new("/f").unwrap();
        let line = format!("{}ä?{}", "x".repeat(300), "y".repeat(300));
        let problem = Problem::new(&source, 7, &line, Mistake::new(Code::Unexpected, 302..303, "no"));
        assert_eq!((problem.line(), problem.column(), problem.end_column()), (7, 302, 303));
        let rendered = problem.render();
        let rows: Vec<&str> = rendered.lines().collect();
        let caret = rows[3].find('^').unwrap();
        assert_eq!(rows[2].chars().nth(caret), Some('?'));
    }
}
