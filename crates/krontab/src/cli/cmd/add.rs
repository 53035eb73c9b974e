//! `krontab add`: a file is checked, and then installed at once.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use krontab::{Krontab, Problem, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{FormatArg, IdentityArgs};
use crate::cli::exit::{Failure, Invalid};
use crate::cli::install::{self, Existing};
use crate::cli::view::{JobView, ProblemView};
use crate::cli::{config, load};

/// Check a krontab file and install it where krond reads it
///
/// It is installed whole or not at all; krond notices it without a restart. Only its owner can write
/// it, and if it sets environment variables, only its owner can read it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Add {
    /// The krontab file; `-` is standard input
    #[arg(long, value_name = "PATH")]
    file: PathBuf,
    /// The directory [default: /etc/krond.d for root, otherwise ~/.config/krond]
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
    /// The name it gets there; identities begin with it [default: its own]
    #[arg(long, value_name = "TARGET")]
    name: Option<String>,
    /// Replace a file of that name
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab add --file jobs.kron
  krontab add --file draft --name backup --force
  krontab add --file - --name backup --config /etc/krond.d < draft

Exit codes: 0 installed, 1 the file is invalid, 2 it could not be written, or anything else.";

impl Add {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let directory = config::directory(self.config.as_deref())?;
        let path = directory.join(self.target()?);
        let source = load::source(&self.file, &IdentityArgs::default())?
            .installed_as(&path)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let contents = load::contents(&self.file, &source)?;
        if let Some(finding) = contents.distrust() {
            let errors = vec![ProblemView::from(finding).rendered];
            return Err(Failure::Refused(Invalid { file: source.shown().to_string(), errors, count: 1 }));
        }
        let refused = |problems: &[Problem]| Failure::Refused(Invalid::new(&source.shown(), problems));
        let text = contents.text.map_err(|problem| refused(&[problem]))?;
        let parsed = Krontab::parse(&text, &source, zones);
        if parsed.has_errors() {
            return Err(refused(&parsed.problems));
        }

        let there = std::fs::read(&path).ok();
        let is_same = there.as_deref() == Some(text.as_bytes());
        let secret = parsed.entries.iter().any(|entry| !entry.command.env.is_empty());
        let mode = if secret { 0o600 } else { 0o644 };
        // To install the same file again changes nothing, so it needs no --force.
        if !is_same || self.force {
            let existing = if self.force { Existing::Replace } else { Existing::Keep };
            install::make_directory(&directory)?;
            install::write(&path, &text, mode, existing)?;
        }
        let installed = path.to_string_lossy().into_owned();
        let installation = Installation {
            jobs: parsed.entries.iter().map(|entry| JobView::new(&installed, entry, None)).collect(),
            warnings: parsed.problems.iter().map(ProblemView::from).collect(),
            changed: !is_same,
            replaced: there.is_some() && !is_same,
            installed,
        };
        Ok(Answer::of(&installation, self.format.format))
    }

    /// The name of the installed file.
    fn target(&self) -> Result<String, Failure> {
        let own = || self.file.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let name = match (&self.name, load::is_stdin(&self.file)) {
            (Some(name), _) => name.clone(),
            (None, true) => return Err(Failure::Usage("--name is required with standard input".into())),
            (None, false) => own().unwrap_or_default(),
        };
        if !config::is_krontab_name(&name) {
            return Err(Failure::Usage(format!(
                "krond does not read files named `{name}`; write --name with another"
            )));
        }
        Ok(name)
    }
}

#[derive(Debug, Serialize)]
struct Installation {
    installed: String,
    /// Whether anything is different from before.
    changed: bool,
    replaced: bool,
    jobs: Vec<JobView>,
    warnings: Vec<ProblemView>,
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.changed, self.replaced) {
            (false, _) => "unchanged",
            (true, true) => "replaced",
            (true, false) => "installed",
        };
        writeln!(f, "{what}: {}", self.installed)?;
        for job in &self.jobs {
            writeln!(f, "- {}: {}", job.identity, job.schedule.description)?;
        }
        for warning in &self.warnings {
            writeln!(f, "\n{}", warning.rendered)?;
        }
        Ok(())
    }
}
