//! `krontab fmt`: one spelling for every entry.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use krontab::{FILE_BYTES_MAX, Krontab, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{Format, FormatArg, IdentityArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{install, load};

/// Write krontab files in one canonical spelling
///
/// Comments, blank lines and the order of entries stay. A line with an error stays as it is, and so does
/// a file that is not UTF-8. What a file means never changes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fmt {
    /// The krontab files; `-` is standard input
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    /// Write nothing; tell which files are spelled differently
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Write the files, instead of printing them
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab fmt jobs.kron
  krontab fmt --write jobs.kron
  krontab fmt --check /etc/krond.d/*

Exit codes: 0 done, 1 a file has errors or --check would change it, 2 anything else.";

impl Fmt {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        if self.write && self.files.iter().any(|path| load::is_stdin(path)) {
            return Err(Failure::Usage("standard input cannot be written: leave out --write".into()));
        }
        let mut files = Vec::new();
        let mut remarks = Vec::new();
        for path in &self.files {
            let (formatted, errors) = formatted(path, zones)?;
            if let Some(text) = formatted.text.as_ref().filter(|_| self.write && formatted.changed) {
                install::rewrite_path(path, &formatted.before, text.as_bytes())?;
            }
            remarks.extend(errors);
            files.push(formatted);
        }
        let would_change = self.check && files.iter().any(|file| file.changed);
        let exit = if would_change || !remarks.is_empty() { Exit::No } else { Exit::Success };
        let answer = match (self.format.format, self.check || self.write) {
            (Format::Text, false) => {
                Answer::text(files.into_iter().filter_map(|file| file.text).collect::<String>())
            }
            (format, _) => Answer::of(&Formatting { write: self.write, files }, format),
        };
        Ok(remarks.into_iter().fold(answer, Answer::remark).ending(exit))
    }
}

/// A file in its canonical spelling, and the errors that are left in it.
fn formatted(path: &Path, zones: &Zones) -> Result<(Formatted, Vec<String>), Failure> {
    let source = load::source(path, &IdentityArgs::default())?;
    let before = load::file(path, &source, zones)?;
    let spelled = match std::str::from_utf8(&before.bytes) {
        Ok(text) if text.len() <= FILE_BYTES_MAX => Some(Krontab::canonical(text, &source, zones)),
        // What is no krontab has no spelling.
        _ => None,
    };
    let after = spelled.as_ref().map(|text| Krontab::parse(text, &source, zones));
    let problems = &after.as_ref().unwrap_or(&before.parsed).problems;
    let findings = before.findings.iter().filter(|finding| finding.is_error()).map(ToString::to_string);
    let problems = problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string);
    let errors: Vec<String> = findings.chain(problems).collect();
    let changed = spelled.as_ref().is_some_and(|text| text.as_bytes() != before.bytes);
    let file = source.shown().to_string();
    let before = before.bytes;
    Ok((Formatted { file, changed, valid: errors.is_empty(), text: spelled, before }, errors))
}

#[derive(Debug, Serialize)]
struct Formatted {
    file: String,
    changed: bool,
    valid: bool,
    /// Null if it cannot be formatted: it is too long, or not UTF-8.
    text: Option<String>,
    /// What was read.
    #[serde(skip)]
    before: Vec<u8>,
}

#[derive(Debug, Serialize)]
struct Formatting {
    #[serde(skip)]
    write: bool,
    files: Vec<Formatted>,
}

/// The files that were, or would be, changed.
impl fmt::Display for Formatting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.write { "formatted" } else { "would change" };
        self.files
            .iter()
            .filter(|file| file.changed)
            .try_for_each(|file| writeln!(f, "{what}: {}", file.file))
    }
}
