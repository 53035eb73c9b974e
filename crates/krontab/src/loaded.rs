//! A krontab file that was loaded: what it says, and everything that speaks against running it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::code::Code;
use crate::entry::Entry;
use crate::problem::{Mistake, PROBLEMS_MAX, Problem};
use crate::security::{Finding, Opened};
use crate::source::Source;
use crate::{Krontab, Parsed, file, parts, token};
use kron_zones::Zones;

/// A krontab file: its bytes, its entries, and all that is wrong with it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Loaded {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it. Of a file that is too long, only as much as tells that it is; of one that is not
    /// regular, nothing.
    pub bytes: Vec<u8>,
    /// What it says, and the problems of its text.
    pub parsed: Parsed,
    /// The problems of how it lies there: who could have written it, and who can read it.
    pub findings: Vec<Finding>,
}

impl Loaded {
    /// A text that does not lie anywhere.
    pub fn parse(path: &Path, bytes: Vec<u8>, source: &Source, zones: &Zones) -> Loaded {
        let parsed = Krontab::parse_bytes(&bytes, source, zones);
        Loaded { path: path.to_owned(), bytes, parsed, findings: Vec::new() }
    }

    /// A file that was opened and checked.
    ///
    /// # Errors
    ///
    /// If reading fails.
    pub fn read(path: &Path, opened: Opened, source: &Source, zones: &Zones) -> io::Result<Loaded> {
        let bytes = opened.file.as_ref().map(file::read).transpose()?.unwrap_or_default();
        let mut loaded = Loaded::parse(path, bytes, source, zones);
        let public = opened.public_environment(path, &loaded.parsed.entries);
        loaded.findings = opened.findings;
        loaded.findings.extend(public);
        Ok(loaded)
    }

    /// Warns of every entry whose constraints leave its windows empty. Whether they do follows from a
    /// time and not from the text alone, so the caller looks: he is asked about every entry that has
    /// constraints, and says of one that does not run how far he has looked, such as "at all".
    pub fn warn_unschedulable(&mut self, never_runs: impl Fn(&Entry) -> Option<String>) {
        let source = Source::stdin().shown_as(&self.path.to_string_lossy());
        let constrained = self.parsed.entries.iter().filter(|entry| !entry.job.constraints().is_empty());
        let found: Vec<Problem> = constrained
            .filter_map(|entry| Some((entry.line, never_runs(entry)?)))
            .take(PROBLEMS_MAX)
            .map(|(number, how_far)| {
                let line = self.bytes.split(|byte| *byte == b'\n').nth(number - 1).unwrap_or_default();
                let line = String::from_utf8_lossy(line);
                let message = format!("`@only` and `@avoid` allow no run {how_far}");
                let mistake = Mistake::new(Code::Unschedulable, constraints_in(&line), message);
                let help = "make the window longer, or allow more; `krontab why` tells what a time lacks";
                Problem::new(&source, number, &line, mistake.with_help(help))
            })
            .collect();
        let problems = &mut self.parsed.problems;
        for problem in found {
            let place = problems.partition_point(|other| other.line() <= problem.line());
            problems.insert(place, problem);
        }
    }

    /// Whether the daemon runs it: neither its text nor how it lies there has an error.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.parsed.has_errors() && !self.findings.iter().any(Finding::is_error)
    }
}

/// Where the first constraint of a line is.
fn constraints_in(line: &str) -> Range<usize> {
    let parts = parts::divide(line, token::split(line).tokens, &mut Vec::new());
    let is_meant = |text: &str| text.starts_with("@only(") || text.starts_with("@avoid(");
    parts.modifiers.iter().find(|token| is_meant(token.text())).map_or(0..0, token::Token::span)
}
