//! `krontab add`: a file is checked, and then installed at once.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use krontab::security::{Finding, Trust};
use krontab::{Directory, Loaded, Zones};
use serde::Serialize;

use crate::cli::answer::Answer;
use crate::cli::args::{FormatArg, IdentityArgs};
use crate::cli::exit::{Failure, Invalid};
use crate::cli::install::{self, Existing};
use crate::cli::view::{JobView, ProblemView};
use crate::cli::{clock, config, load, periods};

/// Check a krontab file and install it where krond reads it
///
/// It is installed whole or not at all; krond notices it without a restart. Only its owner can write
/// it, and if it sets environment variables, only its owner can read it. A directory that does not exist
/// is made, and told. One that krond would not trust is refused. A file that is there and says the same
/// stays as it is, unless krond would refuse it or it shows its variables to everybody: then it is repaired.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Add {
    /// The krontab file; `-` is standard input
    #[arg(long, value_name = "PATH")]
    file: PathBuf,
    /// The directory [default: /etc/krond.d for root, otherwise krond in `XDG_CONFIG_HOME` or ~/.config]
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
        let name = self.target()?;
        let path = directory.join(&name);
        let source = load::source(&self.file, &IdentityArgs::default())?
            .installed_as(&path)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let mut loaded = load::file(&self.file, &source, zones)?;
        let now = clock::now();
        let patience = periods::patience(loaded.parsed.entries.len());
        load::warn_unschedulable(&mut loaded, now, patience);
        if !loaded.is_valid() {
            return Err(Failure::Refused(Invalid::new(&loaded)));
        }
        let made = install::make_directory(&directory)?;
        let directory = Directory::open(&directory, Trust::current())
            .map_err(|error| config::unreadable(&directory, &error))?;
        install::check(directory.findings())?;
        let _lock = install::lock(&directory)?;
        install::clear_drafts(&directory);
        let Installed { changed, replaced, repaired } = self.install(&directory, &name, &loaded)?;
        let Loaded { parsed, .. } = loaded;
        let installed = path.to_string_lossy().into_owned();
        let installation = Installation {
            directories_made: made.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            jobs: parsed.entries.iter().map(|entry| JobView::new(&installed, entry, None)).collect(),
            warnings: parsed
                .problems
                .iter()
                .map(|problem| ProblemView::from(problem).with_dates(&parsed.entries, now))
                .collect(),
            changed,
            replaced,
            repaired,
            installed,
        };
        Ok(Answer::of(&installation, self.format.format))
    }

    /// Writes the file, unless it is there already as it is to be.
    fn install(&self, directory: &Directory, name: &str, loaded: &Loaded) -> Result<Installed, Failure> {
        let path = directory.path().join(name);
        let entries = &loaded.parsed.entries;
        let there = install::look(directory, name.as_ref())?;
        let is_same = there.as_ref().is_some_and(|there| there.bytes.as_ref() == Some(&loaded.bytes));
        let opened = there.as_ref().and_then(|there| there.opened.as_ref());
        let flaws = opened.map(|opened| {
            let findings = opened.findings.iter().cloned();
            let public = opened.public_environment(&path, entries).filter(|_| is_same);
            findings.chain(public).collect::<Vec<Finding>>()
        });
        let flaws: Vec<String> = flaws.into_iter().flatten().map(|finding| finding.message).collect();
        // To install the same file again changes nothing, so it needs no --force. But the same words in a
        // file that krond refuses, or that tells secrets, are not the same file.
        let seen = there.as_ref().and_then(|there| there.seen).filter(|_| is_same);
        let existing = match (self.force, seen) {
            (false, Some(_)) if flaws.is_empty() => {
                return Ok(Installed { changed: false, replaced: false, repaired: Vec::new() });
            }
            (false, Some(seen)) => Existing::ReplaceThis(seen),
            (false, None) => {
                if let Some(flaw) = opened.and(flaws.first()) {
                    let path = path.display();
                    return Err(Failure::Write(format!(
                        "`{path}` is already there, and {flaw}; --force replaces it"
                    )));
                }
                Existing::Keep
            }
            (true, _) => Existing::Replace,
        };
        let secret = entries.iter().any(|entry| !entry.command.env.is_empty());
        let mode = if secret { 0o600 } else { 0o644 };
        install::write(directory, name.as_ref(), &loaded.bytes, mode, existing)?;
        Ok(Installed {
            changed: !is_same || !flaws.is_empty(),
            replaced: there.is_some() && !is_same,
            repaired: if is_same { flaws } else { Vec::new() },
        })
    }

    /// The name of the installed file.
    fn target(&self) -> Result<String, Failure> {
        let own = || self.file.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let name = match (&self.name, load::is_stdin(&self.file)) {
            (Some(name), _) => name.clone(),
            (None, true) => return Err(Failure::Usage("--name is required with standard input".into())),
            (None, false) => own().unwrap_or_default(),
        };
        if !Directory::reads(name.as_ref()) {
            return Err(Failure::Usage(format!(
                "krond does not read files named `{name}`; write --name with another"
            )));
        }
        Ok(name)
    }
}

/// What became of a file that was already there.
struct Installed {
    changed: bool,
    replaced: bool,
    /// What was wrong with how it lay there, though it said the same.
    repaired: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Installation {
    /// Those that were not there, the outermost first.
    directories_made: Vec<String>,
    installed: String,
    /// Whether anything is different from before.
    changed: bool,
    replaced: bool,
    /// What was wrong with how the file lay there, though it said the same.
    repaired: Vec<String>,
    jobs: Vec<JobView>,
    warnings: Vec<ProblemView>,
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for directory in &self.directories_made {
            writeln!(f, "made directory: {directory}")?;
        }
        let what = match (self.changed, self.replaced) {
            (false, _) => "unchanged",
            (true, true) => "replaced",
            (true, false) if !self.repaired.is_empty() => "repaired",
            (true, false) => "installed",
        };
        writeln!(f, "{what}: {}", self.installed)?;
        for flaw in &self.repaired {
            writeln!(f, "before: {flaw}")?;
        }
        if self.jobs.is_empty() {
            writeln!(f, "it has no jobs")?;
        }
        for job in &self.jobs {
            writeln!(f, "- {}: {}", job.identity, job.schedule.description)?;
        }
        for warning in &self.warnings {
            writeln!(f, "\n{}", warning.rendered)?;
        }
        Ok(())
    }
}
