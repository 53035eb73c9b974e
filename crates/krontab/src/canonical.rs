//! One spelling for every entry: what `krontab fmt` writes.
//!
//! Comments, blank lines and the order of entries stay. Within an entry, the order and the spelling of
//! modifiers and fields are fixed, and only what needs quotes has them. Nothing is added or taken
//! away: a default that was written stays written, and one that was not stays away. A line with an error stays as it is.

use std::borrow::Cow;

use crate::command::{self, Program};
use crate::entry;
use crate::field::Fields;
use crate::file::{self, Content};
use crate::modifier::Modifiers;
use crate::problem::Problems;
use crate::schedule::Written;
use crate::source::Source;
use kron_zones::Zones;

/// The file with every entry in its canonical spelling.
pub(crate) fn file(text: &str, source: &Source, zones: &Zones) -> String {
    let mut problems = Problems::new(source);
    let Some(lines) = file::lines(text, &mut problems) else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len());
    for line in lines {
        match line.content {
            Content::Blank => {}
            Content::Comment(comment) => out.push_str(comment),
            Content::Entry(text) => {
                let reading = entry::read(line.number, text, source, zones);
                out.push_str(reading.canonical.as_deref().unwrap_or(text));
            }
            Content::Damaged(text) | Content::Unreadable(text) => out.push_str(text),
        }
        out.push('\n');
    }
    out
}

/// An entry in its canonical spelling.
pub(crate) fn entry(written: &Written, modifiers: &Modifiers, fields: &Fields) -> String {
    let mut out = written.canonical();
    let modifiers = modifiers.to_string();
    if !modifiers.is_empty() {
        out.push(' ');
        out.push_str(&modifiers);
    }
    let mut field = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            out.extend([" ", key, "=", &word(value)]);
        }
    };
    let program = fields.program.as_ref().map(|program| match program {
        Program::Argv(words) => command::joined(words),
        Program::Shell(text) => text.clone(),
    });
    let shell = fields.shell.map(|shell| if shell { "true" } else { "false" });
    let timeout = fields.timeout.map(|timeout| timeout.to_string());
    let stdout = fields.stdout.as_ref().map(ToString::to_string);
    let stderr = fields.stderr.as_ref().map(ToString::to_string);
    // The order of `field::NAMES`.
    field("name", fields.name.as_ref().map(|name| name.value.as_str()));
    field("command", program.as_deref());
    field("shell", shell);
    field("user", fields.user.as_deref());
    field("group", fields.group.as_deref());
    field("cwd", fields.cwd.as_deref());
    for variable in &fields.env {
        field(&format!("env={}", word(&variable.key)), Some(&variable.value));
    }
    field("umask", fields.umask.as_deref());
    field("timeout", timeout.as_deref());
    field("stdout", stdout.as_deref());
    field("stderr", stderr.as_deref());
    field("description", fields.description.as_deref());
    out
}

/// A word that the tokeniser reads as this text: in quotes, if it needs them.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let needs_quotes =
        text.is_empty() || text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\\'));
    if needs_quotes { Cow::Owned(command::in_quotes(text)) } else { Cow::Borrowed(text) }
}
