//! `krontab lint`: is this file valid, and what about it is surely a mistake?

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use krontab::{Krontab, Problem, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{Format, FormatArg, IdentityArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::view::ProblemView;
use crate::cli::{config, load};

/// Check krontab files, and point at every mistake
///
/// The text is checked by the code that krond uses. Of who may change the file, only this is checked: that
/// not everybody may; `krontab add` checks the rest. Warnings do not make a file invalid.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Lint {
    /// A krontab file, or a directory of them; `-` is standard input. May be repeated
    #[arg(long = "file", value_name = "PATH", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab lint --file jobs.kron
  krontab lint --file /etc/krond.d --format json
  krontab lint --file - < jobs.kron

Exit codes: 0 valid, 1 invalid, 2 wrong arguments, or a file that cannot be read.";

impl Lint {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let mut files = Vec::new();
        for path in &self.files {
            match path.is_dir() {
                true => files.extend(config::files(path)?),
                false => files.push(path.clone()),
            }
        }
        let reports = files.iter().map(|path| check(path, zones)).collect::<Result<Vec<_>, _>>()?;
        let valid = reports.iter().all(|report| report.valid);
        let answer = match (self.format.format, reports.as_slice()) {
            // Who asks about one file gets its report; who asks about several gets a list.
            (format, [report]) if self.files.len() == 1 && !self.files[0].is_dir() => {
                Answer::of(report, format)
            }
            (Format::Text, []) => Answer::text("no krontab files there\n"),
            (format, _) => Answer::of(&Reports { valid, files: reports }, format),
        };
        Ok(answer.ending(if valid { Exit::Success } else { Exit::No }))
    }
}

/// What is wrong with one file.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    valid: bool,
    jobs: usize,
    errors: Vec<ProblemView>,
    warnings: Vec<ProblemView>,
}

#[derive(Debug, Serialize)]
struct Reports {
    valid: bool,
    files: Vec<Report>,
}

fn check(path: &Path, zones: &Zones) -> Result<Report, Failure> {
    let source = load::source(path, &IdentityArgs::default())?;
    let contents = load::contents(path, &source)?;
    let mut errors: Vec<ProblemView> = contents.distrust().map(ProblemView::from).into_iter().collect();
    let mut warnings = Vec::new();
    let mut jobs = 0;
    match &contents.text {
        Ok(text) => {
            let parsed = Krontab::parse(text, &source, zones);
            jobs = parsed.entries.len();
            let (bad, odd): (Vec<&Problem>, Vec<&Problem>) =
                parsed.problems.iter().partition(|p| p.is_error());
            errors.extend(bad.into_iter().map(ProblemView::from));
            warnings.extend(odd.into_iter().map(ProblemView::from));
            let opened = contents.opened.as_ref();
            let public = opened.and_then(|opened| opened.public_environment(path, &parsed.entries));
            warnings.extend(public.as_ref().map(ProblemView::from));
        }
        Err(problem) => errors.push(ProblemView::from(problem)),
    }
    Ok(Report { file: source.shown().to_string(), valid: errors.is_empty(), jobs, errors, warnings })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", if self.valid { "OK" } else { "INVALID" }, self.file)?;
        for error in &self.errors {
            writeln!(f, "{}", error.line())?;
        }
        for problem in self.errors.iter().chain(&self.warnings) {
            writeln!(f, "\n{}", problem.rendered)?;
        }
        Ok(())
    }
}

impl fmt::Display for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, report) in self.files.iter().enumerate() {
            let after_details = index > 0 && !self.files[index - 1].is_clean();
            write!(f, "{}{report}", if after_details { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl Report {
    fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.warnings.is_empty()
    }
}
