//! A job on its way into a krontab: what it was there, and the line that it becomes here.

use std::collections::BTreeSet;

use super::fields::Fields;
use super::firing::Rule;

/// A job of another scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// A name that it could have.
    pub(crate) name: String,
    pub(crate) when: When,
    /// The zone it is in.
    pub(crate) zone: String,
    pub(crate) rule: Rule,
    /// How long it may be put off, in seconds.
    pub(crate) window: Option<i64>,
    pub(crate) lateness: Lateness,
    /// `allow`, `forbid` or `replace`.
    pub(crate) concurrency: &'static str,
    pub(crate) suspend: bool,
    pub(crate) run: Run,
    pub(crate) user: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) description: Option<String>,
    /// What would differ, besides when it runs.
    pub(crate) notes: Vec<String>,
}

/// When it runs.
#[derive(Clone, Debug)]
pub(crate) enum When {
    Calendar(Fields),
    /// An interval in seconds.
    Every(i64),
}

/// How late it may start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lateness {
    /// Not at all.
    None,
    /// So many seconds.
    Seconds(i64),
    /// Until the next one is due.
    UntilNext,
}

/// What it runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Run {
    Argv(Vec<String>),
    /// A text for `/bin/sh -c`.
    Shell(String),
}

/// The longest deadline that is written: a year, as far as windows go.
const DEADLINE_MAX: i64 = 366 * 86_400;

impl Draft {
    /// The line of the krontab. `longest` is the longest distance of two runs, in seconds.
    pub(crate) fn line(&self, name: &str, longest: Option<i64>) -> String {
        let mut out = match &self.when {
            When::Calendar(fields) => fields.kron(),
            When::Every(seconds) => format!("@every {}", duration(*seconds)),
        };
        if self.zone != "UTC" && !matches!(self.when, When::Every(_)) {
            out.push_str(&format!(" @tz({})", self.zone));
        }
        if let Some(window) = self.window.filter(|window| *window > 0) {
            out.push_str(&format!(" @win(after,{})", duration(window)));
        }
        out.push_str(&self.policy(longest));
        if let When::Calendar(fields) = &self.when {
            if fields.needs_both_days() {
                out.push_str(&format!(" @only(dow={})", fields.weekday_names()));
            }
            out.push_str(self.dst(fields));
        }
        let mut field = |key: &str, value: &str| out.push_str(&format!(" {key}={}", word(value)));
        field("name", name);
        match &self.run {
            Run::Argv(words) => field("command", &joined(words)),
            Run::Shell(text) => {
                field("command", text);
                field("shell", "true");
            }
        }
        if let Some(user) = &self.user {
            field("user", user);
        }
        if let Some(cwd) = &self.cwd {
            field("cwd", cwd);
        }
        for (key, value) in &self.environment {
            field(&format!("env={key}"), value);
        }
        if let Some(description) = &self.description {
            field("description", description);
        }
        out
    }

    fn policy(&self, longest: Option<i64>) -> String {
        let mut keys = Vec::new();
        if self.concurrency != "forbid" {
            keys.push(format!("concurrency={}", self.concurrency));
        }
        let deadline = match self.lateness {
            Lateness::None => None,
            Lateness::Seconds(seconds) => Some(seconds),
            Lateness::UntilNext => longest,
        };
        if let Some(deadline) = deadline.filter(|deadline| *deadline > 0) {
            keys.push(format!("deadline={}", duration(deadline.min(DEADLINE_MAX))));
        }
        if self.suspend {
            keys.push("suspend=true".to_owned());
        }
        if keys.is_empty() { String::new() } else { format!(" @policy({})", keys.join(",")) }
    }

    /// The rule for changes of clocks that does what the other scheduler did. Nothing where it is Kron's own, or
    /// where clocks do not change.
    fn dst(&self, fields: &Fields) -> &'static str {
        match (self.rule, fields.is_interval()) {
            _ if self.zone == "UTC" => "",
            (Rule::Cron, false) => " @dst(gap=after)",
            (Rule::Kubernetes, false) => " @dst(fold=both)",
            (Rule::Systemd, true) => " @dst(fold=first)",
            (Rule::Cron | Rule::Kubernetes, true) | (Rule::Systemd, false) => "",
        }
    }
}

/// `1h30m`, `90s`: as Kron writes durations.
fn duration(seconds: i64) -> String {
    kron_schedule::Duration::from_seconds(seconds).to_string()
}

/// A word that the tokeniser of krontabs reads as this text.
fn word(text: &str) -> String {
    let needs_quotes =
        text.is_empty() || text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\\'));
    if needs_quotes { in_quotes(text) } else { text.to_owned() }
}

/// Words as one text that is split into them again.
fn joined(words: &[String]) -> String {
    let word = |word: &String| {
        let is_plain = !word.is_empty() && !word.contains([' ', '\t', '"']);
        if is_plain { word.clone() } else { in_quotes(word) }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Names that are taken.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

/// The longest name that is made, so that a number still fits behind it.
const NAME_MAX: usize = 100;

impl Names {
    /// A name that nobody has yet, as much as possible like this one.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let mut slug = String::new();
        for c in wanted.chars().take(NAME_MAX) {
            match c.to_ascii_lowercase() {
                c @ ('a'..='z' | '0'..='9') => slug.push(c),
                _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
                _ => {}
            }
        }
        let slug = match slug.trim_end_matches('-') {
            "" => "job".to_owned(),
            slug => slug.to_owned(),
        };
        let numbered = (2..).map(|number| format!("{slug}-{number}"));
        let free = std::iter::once(slug.clone()).chain(numbered).find(|name| !self.0.contains(name));
        let name = free.unwrap_or(slug);
        self.0.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_krontabs_and_taken_once() {
        let mut names = Names::default();
        let taken: Vec<String> =
            ["e2scrub_all_cron", "Cron.Daily", "cron daily", "…", "/"].map(|name| names.take(name)).into();
        assert_eq!(taken, ["e2scrub-all-cron", "cron-daily", "cron-daily-2", "job", "job-2"]);
    }
}
