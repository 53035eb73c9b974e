//! What the other files stand on: one source, one database, and a line that is read.

use std::sync::LazyLock;

use krontab::{Code, Entry, Krontab, Parsed, Problem, Source, Zones};

/// The same zones on every machine.
pub(crate) static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);

pub(crate) fn source() -> Source {
    Source::new("/etc/krond.d/test").unwrap()
}

pub(crate) fn parse(text: &str) -> Parsed {
    Krontab::parse(text, &source(), &ZONES)
}

/// The one entry of a text without errors.
pub(crate) fn entry(text: &str) -> Entry {
    let mut parsed = parse(text);
    assert!(!parsed.has_errors(), "{text}\n{}", rendered(&parsed.problems));
    assert_eq!(parsed.entries.len(), 1, "{text}");
    parsed.entries.remove(0)
}

/// The entry of a line that says this beside a schedule, a name and a command.
pub(crate) fn with_modifiers(modifiers: &str) -> Entry {
    entry(&format!("0 2 * * * {modifiers} name=a command=/bin/true"))
}

pub(crate) fn with_fields(fields: &str) -> Entry {
    entry(&format!("0 2 * * * name=a command=/bin/true {fields}"))
}

pub(crate) fn codes(text: &str) -> Vec<Code> {
    parse(text).problems.iter().map(Problem::code).collect()
}

pub(crate) fn rendered(problems: &[Problem]) -> String {
    problems.iter().map(|problem| problem.render() + "\n").collect()
}
