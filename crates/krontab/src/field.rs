//! The fields: `name=`, `command=` and what may stand beside them.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;

use kron_schedule::Duration;

use crate::code::Code;
use crate::command::{self, Command, Output, Program, Variable};
use crate::modifier::{Placed, boolean, read_duration};
use crate::problem::{Mistake, quoted};
use crate::token::{Piece, Token};
use kron_schedule::suggest::{closest, did_you_mean};

/// What the fields of an entry say. What is not there was not written.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) name: Option<Placed<String>>,
    pub(crate) program: Option<Program>,
    pub(crate) shell: Option<bool>,
    pub(crate) user: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) env: Vec<Variable>,
    /// The keys of `env`, to find one that is there twice.
    env_keys: HashSet<String>,
    /// As it was written: digits.
    pub(crate) umask: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) stdout: Option<Output>,
    pub(crate) stderr: Option<Output>,
    pub(crate) description: Option<String>,
}

/// The fields, in the order in which they are printed.
pub(crate) const NAMES: [&str; 12] = [
    "name",
    "command",
    "shell",
    "user",
    "group",
    "cwd",
    "env",
    "umask",
    "timeout",
    "stdout",
    "stderr",
    "description",
];

/// Whether there is a field of that name.
pub(crate) fn is_known(key: &str) -> bool {
    NAMES.contains(&key)
}

/// Words that stand in a modifier, by those who expect them in a field.
const IN_MODIFIERS: [(&str, &str); 11] = [
    ("avoid", "@avoid(…)"),
    ("concurrency", "@policy(concurrency=…)"),
    ("deadline", "@policy(deadline=…)"),
    ("dist", "@dist(…)"),
    ("only", "@only(…)"),
    ("salt", "@seed(stable,salt=…)"),
    ("seed", "@seed(…)"),
    ("suspend", "@policy(suspend=…)"),
    ("timezone", "@tz(…)"),
    ("tz", "@tz(…)"),
    ("window", "@win(…)"),
];

/// Reads the fields of an entry. What is missing would stand at the `end` of the line.
pub(crate) fn read(tokens: &[Token<'_>], end: usize, mistakes: &mut Vec<Mistake>) -> Fields {
    let mut fields = Fields::default();
    let mut seen: Vec<&str> = Vec::new();
    let mut mistyped: Vec<&str> = Vec::new();
    let mut command = None;
    for token in tokens {
        let whole = token.piece();
        let Some((key, value)) = whole.split_once('=') else {
            continue; // every field has one, or it would not be a field
        };
        let Some(name) = NAMES.iter().find(|name| **name == key.text) else {
            mistakes.push(unknown(key));
            // Who mistyped a field did not forget it.
            mistyped.extend(closest(key.text, NAMES));
            continue;
        };
        if *name != "env" && seen.contains(name) {
            let message = format!("the field `{name}` stands here twice");
            mistakes.push(Mistake::new(Code::RepeatedField, key.span(), message));
            // What is wrong within it is told too. Of a command it depends on `shell`, which may follow.
            if *name != "command" {
                mistakes.extend(Fields::default().set(name, value, key.span()).err());
            }
            continue;
        }
        seen.push(name);
        if *name == "command" {
            command = Some(value); // how it is read depends on `shell`, which may follow
        } else if let Err(mistake) = fields.set(name, value, key.span()) {
            mistakes.push(mistake);
        }
    }
    if let Some(command) = command {
        match command::program(command, fields.shell.unwrap_or(false)) {
            Ok(program) => fields.program = Some(program),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    for (name, example) in [("name", "name=backup"), ("command", "command=/usr/bin/backup")] {
        if !seen.contains(&name) && !mistyped.contains(&name) {
            let message = format!("expected a field `{name}`, but the entry has none");
            mistakes.push(
                Mistake::new(Code::MissingField, end..end, message)
                    .with_help(format!("every entry has a name and a command: add `{example}`")),
            );
        }
    }
    fields
}

fn unknown(key: Piece<'_>) -> Mistake {
    let modifier = IN_MODIFIERS.iter().find(|(word, _)| *word == key.text);
    let help = match modifier {
        Some((_, modifier)) => format!("it stands in a modifier: `{modifier}`"),
        None => did_you_mean(key.text, NAMES).unwrap_or_else(|| format!("there are {}", NAMES.join(", "))),
    };
    Mistake::new(Code::UnknownField, key.span(), format!("unknown field {}", quoted(key.text)))
        .with_help(help)
}

impl Fields {
    fn set(&mut self, name: &str, value: Piece<'_>, key: Range<usize>) -> Result<(), Mistake> {
        match name {
            "cwd" => self.cwd = Some(absolute_path(value)?),
            "description" => self.description = Some(value.text.to_owned()),
            "env" => {
                let variable = variable(value)?;
                if !self.env_keys.insert(variable.key.clone()) {
                    let message = format!("the variable {} stands here twice", quoted(&variable.key));
                    return Err(Mistake::new(Code::Environment, value.span(), message));
                }
                self.env.push(variable);
            }
            "group" => self.group = Some(account(value)?),
            "name" => {
                self.name = Some(Placed { value: job_name(value)?, span: key.start..value.span().end });
            }
            "shell" => self.shell = Some(boolean(value, Code::Field)?),
            "stderr" => self.stderr = Some(output(value)?),
            "stdout" => self.stdout = Some(output(value)?),
            "timeout" => self.timeout = Some(timeout(value)?),
            "umask" => self.umask = Some(umask(value)?),
            _ => self.user = Some(account(value)?),
        }
        Ok(())
    }

    /// The command, with defaults for what was not written.
    pub(crate) fn command(&self, program: Program) -> Command {
        Command {
            program,
            user: self.user.clone(),
            group: self.group.clone(),
            cwd: self.cwd.as_ref().map(PathBuf::from),
            env: self.env.clone(),
            umask: self.umask.as_ref().and_then(|digits| u32::from_str_radix(digits, 8).ok()),
            timeout: self.timeout,
            stdout: self.stdout.clone().unwrap_or_default(),
            stderr: self.stderr.clone().unwrap_or_default(),
        }
    }
}

/// The longest name of a job. It is part of log lines, of file names and of messages.
const NAME_BYTES_MAX: usize = 128;

fn job_name(value: Piece<'_>) -> Result<String, Mistake> {
    let is_plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '/' | '-');
    let name = value.text;
    if name.len() > NAME_BYTES_MAX {
        let expected = format!("at most {NAME_BYTES_MAX} characters");
        return Err(value.expected(Code::Name, &expected));
    }
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(name.to_owned());
    }
    let meant: String = name
        .to_lowercase()
        .chars()
        .map(|c| if matches!(c, '_' | ' ' | '.' | ':') { '-' } else { c })
        .collect();
    let help = (!meant.is_empty() && meant.chars().all(is_plain)).then(|| format!("did you mean `{meant}`?"));
    Err(value.expected(Code::Name, "a name of `a` to `z`, `0` to `9`, `/` and `-`").with_help_if(help))
}

/// A user or group. Whether there is one is for the host to say.
fn account(value: Piece<'_>) -> Result<String, Mistake> {
    let name = value.text;
    let shaped = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.trim_end_matches('$').chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        && name.len() <= ACCOUNT_BYTES_MAX;
    if shaped { Ok(name.to_owned()) } else { Err(value.expected(Code::Field, "the name of an account")) }
}

/// The longest name of an account: Linux has 32, directories of other systems have more.
const ACCOUNT_BYTES_MAX: usize = 256;

fn absolute_path(value: Piece<'_>) -> Result<String, Mistake> {
    if value.text.starts_with('/') {
        return Ok(value.text.to_owned());
    }
    Err(value.expected(Code::Field, "an absolute path"))
}

fn variable(value: Piece<'_>) -> Result<Variable, Mistake> {
    // The value may be a secret, so no message repeats it.
    let Some((key, text)) = value.split_once('=') else {
        let message = "expected a variable such as `KEY=value`, but found no equals sign";
        return Err(Mistake::new(Code::Environment, value.span(), message));
    };
    if key.text.is_empty() {
        let message = "expected the name of a variable, but found nothing";
        return Err(Mistake::new(Code::Environment, key.span(), message));
    }
    if key.text.starts_with("KRON_") {
        return Err(key
            .expected(Code::Environment, "a variable of your own")
            .with_help("those that begin with `KRON_` are set for each run"));
    }
    Ok(Variable { key: key.text.to_owned(), value: text.text.to_owned() })
}

fn umask(value: Piece<'_>) -> Result<String, Mistake> {
    let digits = value.text;
    let octal = (3..=4).contains(&digits.len()) && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    // Bits above these three digits are no permissions.
    if octal && (digits.len() == 3 || digits.starts_with('0')) {
        return Ok(digits.to_owned());
    }
    Err(value.expected(Code::Field, "3 octal digits such as `022`, or 4 that begin with `0`"))
}

fn timeout(value: Piece<'_>) -> Result<Duration, Mistake> {
    let timeout = read_duration(value, Code::Field)?;
    if timeout > Duration::ZERO {
        return Ok(timeout);
    }
    Err(value
        .expected(Code::Field, "a duration above 0")
        .with_help("without `timeout` a run takes as long as it takes"))
}

fn output(value: Piece<'_>) -> Result<Output, Mistake> {
    Ok(match value.text {
        "discard" => Output::Discard,
        "inherit" => Output::Inherit,
        "syslog" => Output::Syslog,
        other => {
            let Some(path) = other.strip_prefix("file:") else {
                let help = did_you_mean(other, ["discard", "inherit", "syslog"]).or_else(|| {
                    other
                        .starts_with('/')
                        .then(|| format!("did you mean {}?", quoted(&format!("file:{other}"))))
                });
                return Err(value
                    .expected(Code::Field, "`inherit`, `discard`, `syslog` or `file:` with a path")
                    .with_help_if(help));
            };
            let place = value.slice(other.len() - path.len()..other.len());
            Output::File(PathBuf::from(absolute_path(place)?))
        }
    })
}
