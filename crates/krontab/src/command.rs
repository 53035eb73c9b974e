//! What an entry runs, and as whom, where and with what.

use std::fmt;
use std::path::PathBuf;

use kron_schedule::Duration;

use crate::code::Code;
use crate::problem::{Mistake, quoted};
use crate::token::Piece;

/// A program to run, with everything about it that an entry can say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Command {
    /// What is run.
    pub program: Program,
    /// Who runs it; by default whoever runs the daemon.
    pub user: Option<String>,
    /// With which group; by default the user's own.
    pub group: Option<String>,
    /// The working directory, an absolute path.
    pub cwd: Option<PathBuf>,
    /// Variables that are added to its environment, in the order they were written. No key is there twice.
    pub env: Vec<Variable>,
    /// Permission bits that new files do not get, at most `0o777`.
    pub umask: Option<u32>,
    /// How long it may run. Above zero.
    pub timeout: Option<Duration>,
    /// Where its standard output goes.
    pub stdout: Output,
    /// Where its standard error goes.
    pub stderr: Output,
}

/// A program, or a text for the shell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Program {
    /// A program, by its absolute path, and its arguments. Never empty.
    Argv(Vec<String>),
    /// A text for `/bin/sh -c`, because the entry says `shell=true`.
    Shell(String),
}

impl Program {
    /// The words to execute.
    #[must_use]
    pub fn argv(&self) -> Vec<&str> {
        match self {
            Program::Argv(words) => words.iter().map(String::as_str).collect(),
            Program::Shell(text) => vec!["/bin/sh", "-c", text],
        }
    }
}

/// An environment variable. Its value may be a secret, so it is not part of what `{:?}` prints.
#[derive(Clone, Eq, PartialEq)]
pub struct Variable {
    /// The name: not empty, and without `=`.
    pub key: String,
    /// The value.
    pub value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.key)
    }
}

/// Where output goes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Output {
    /// Nowhere.
    Discard,
    /// To the end of a file, by its absolute path.
    File(PathBuf),
    /// Where the daemon's own goes.
    #[default]
    Inherit,
    /// To the system's log, under the job's name.
    Syslog,
}

/// `inherit`, `discard`, `syslog` or `file:/path`.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Discard => f.write_str("discard"),
            Output::File(path) => write!(f, "file:{}", path.display()),
            Output::Inherit => f.write_str("inherit"),
            Output::Syslog => f.write_str("syslog"),
        }
    }
}

/// Reads the value of `command`.
pub(crate) fn program(value: Piece<'_>, shell: bool) -> Result<Program, Mistake> {
    if value.trimmed().text.is_empty() {
        return Err(Mistake::new(Code::Command, value.span(), "expected a program, but found nothing"));
    }
    if shell {
        return Ok(Program::Shell(value.text.to_owned()));
    }
    let words = words(value)?;
    match words.first() {
        Some(program) if program.starts_with('/') => Ok(Program::Argv(words)),
        program => {
            let end = value.text.len();
            let first = value.trimmed();
            let first = first.split_once(' ').map_or(first, |(first, _)| first);
            let span = if first.text.is_empty() { value.span_of(0..end) } else { first.span() };
            let found = quoted(program.map_or("", String::as_str));
            Err(Mistake::new(Code::Command, span, format!("expected an absolute path, but found {found}"))
                .with_help("write the whole path, such as `/usr/bin/rsync`, or add `shell=true`"))
        }
    }
}

/// Splits a command into words. Spaces and tabs separate, double quotes group, inside them `\"` and
/// `\\` stand for one character; nothing else is special.
fn words(value: Piece<'_>) -> Result<Vec<String>, Mistake> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = value.text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ' ' | '\t' if quote.is_none() => words.extend(word.take()),
            '"' => {
                quote = if quote.is_some() { None } else { Some(at) };
                word.get_or_insert_default();
            }
            '\\' if quote.is_some() => {
                let (_, c) = chars.next_if(|(_, next)| matches!(next, '"' | '\\')).unwrap_or((at, c));
                word.get_or_insert_default().push(c);
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        let span = value.span_of(open..value.text.len());
        return Err(Mistake::new(Code::Command, span, "a quote inside the command is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// The words as one text that [`words`] splits into them again.
pub(crate) fn joined(words: &[String]) -> String {
    let word = |word: &String| {
        let plain = !word.is_empty() && !word.contains([' ', '\t', '"']);
        if plain { word.clone() } else { in_quotes(word) }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The text between quotes, with escapes.
pub(crate) fn in_quotes(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token;

    fn read(line: &str) -> Result<Vec<String>, Mistake> {
        words(token::split(line).tokens[0].piece())
    }

    #[test]
    fn words_are_split_at_blanks_and_grouped_by_quotes() {
        for (line, expected) in [
            ("/bin/true", &["/bin/true"][..]),
            ("\"/bin/echo a  b\"", &["/bin/echo", "a", "b"]),
            (r#""/bin/echo \"a b\" c""#, &["/bin/echo", "a b", "c"]),
            (r#""/bin/echo \"\"""#, &["/bin/echo", ""]),
            (r#""/bin/echo x\"y z\"""#, &["/bin/echo", "xy z"]),
            (r#""/bin/echo \"a\\\"b\"""#, &["/bin/echo", "a\"b"]),
            (r#""/bin/echo 'a b' $HOME *""#, &["/bin/echo", "'a", "b'", "$HOME", "*"]),
            (r#""/bin/echo a\b""#, &["/bin/echo", r"a\b"]),
        ] {
            let words = read(line).unwrap();
            assert_eq!(words, expected, "{line}");
            let again = in_quotes(&joined(&words));
            assert_eq!(read(&again).unwrap(), expected, "{again}");
        }
    }

    #[test]
    fn values_do_not_print() {
        let variable = Variable { key: "TOKEN".into(), value: "secret".into() };
        assert_eq!(format!("{variable:?}"), "TOKEN=…");
    }
}
