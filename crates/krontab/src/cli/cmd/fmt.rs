//! `krontab fmt`: one spelling for every entry.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use krontab::{Krontab, Problem, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{Format, FormatArg, IdentityArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{install, load};

/// Write krontab files in one canonical spelling
///
/// Comments, blank lines and the order of entries stay. A line with an error stays as it is. What a
/// file means never changes.
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
            if self.write && formatted.changed {
                install::rewrite(path, &formatted.text)?;
            }
            remarks.extend(errors.iter().map(ToString::to_string));
            files.push(formatted);
        }
        let would_change = self.check && files.iter().any(|file| file.changed);
        let exit = if would_change || !remarks.is_empty() { Exit::No } else { Exit::Success };
        let answer = match (self.format.format, self.check || self.write) {
            (Format::Text, false) => {
                Answer::text(files.into_iter().map(|file| file.text).collect::<String>())
            }
            (format, _) => Answer::of(&Formatting { write: self.write, files }, format),
        };
        Ok(remarks.into_iter().fold(answer, Answer::remark).ending(exit))
    }
}

/// A file in its canonical spelling, and the errors that are left in it.
fn formatted(path: &Path, zones: &Zones) -> Result<(Formatted, Vec<Problem>), Failure> {
    let source = load::source(path, &IdentityArgs::default())?;
    let before = load::text(path, &source)?;
    let text = Krontab::canonical(&before, &source, zones);
    let mut errors = Krontab::parse(&text, &source, zones).problems;
    errors.retain(Problem::is_error);
    let changed = text != before;
    Ok((Formatted { file: source.shown().to_string(), changed, valid: errors.is_empty(), text }, errors))
}

#[derive(Debug, Serialize)]
struct Formatted {
    file: String,
    changed: bool,
    valid: bool,
    text: String,
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
