//! The commands, and the flags that several of them share.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::cmd;
use super::exit::Failure;
use super::{clock, time};

/// Check, preview, explain and install krontab files: cron jobs with time zones, windows and constraints.
#[derive(Debug, Parser)]
#[command(name = "krontab", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  What does this expression mean, and when does it run next?
    krontab describe '30 9 * * MON-FRI' --tz Europe/Paris
  Is this file valid?
    krontab lint --file jobs.kron
  When will a job really run, and why did it not run then?
    krontab next backup --file jobs.kron --count 5
    krontab why backup --file jobs.kron --at 2026-03-08T07:30:00Z
  When do all of them start, and which windows would flatten the peaks?
    krontab simulate jobs.kron --html load.html --propose
  What would my crontab be, and what would differ?
    krontab import /etc/crontab /etc/cron.d --tz Europe/Paris
  Install it.
    krontab add --file jobs.kron

Nothing but `add`, `remove`, `fmt --write`, `man DIR` and the files that `simulate` is told to write changes a
file, and no command runs a job.
`krontab help COMMAND` has examples of each command.

Environment: Without --config, `list`, `add` and `remove` are about /etc/krond.d for root, and otherwise about
krond in XDG_CONFIG_HOME, or in ~/.config if that is not set. NO_COLOR turns colours off.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Lint(cmd::lint::Lint),
    Explain(cmd::explain::Explain),
    Next(cmd::next::Next),
    Prev(cmd::prev::Prev),
    Why(cmd::why::Why),
    Describe(cmd::describe::Describe),
    Fuzzy(cmd::fuzzy::Fuzzy),
    List(cmd::list::List),
    Add(cmd::add::Add),
    Remove(cmd::remove::Remove),
    Fmt(cmd::fmt::Fmt),
    Simulate(cmd::simulate::Simulate),
    Import(cmd::import::Import),
    Diff(cmd::diff::Diff),
    Ical(cmd::ical::Ical),
    Batch(cmd::batch::Batch),
    Completions(cmd::completions::Completions),
    Man(cmd::man::Man),
    /// Print the reference of all commands in Markdown.
    #[command(hide = true)]
    Reference,
}

/// How an answer is written: lines for people, or one object for programs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct FormatArg {
    /// How the answer is written: lines of text, or one JSON object
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: Format,
}

/// An instant that may be left out.
#[derive(Args, Debug)]
pub(crate) struct AtArg {
    /// The instant to ask about, such as 2026-03-01T12:00:00Z or 2026-03-01T13:00:00+01:00 [default: now]
    #[arg(long, value_name = "TIME", value_parser = time::instant)]
    pub(crate) at: Option<Timestamp>,
}

impl AtArg {
    /// The instant that was given, or now.
    pub(crate) fn or_now(&self) -> Timestamp {
        self.at.unwrap_or_else(clock::now)
    }
}

/// One job of one file.
#[derive(Args, Debug)]
pub(crate) struct JobArgs {
    /// The name of the job
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// The krontab file that has the job; `-` is standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
}

/// Chosen times follow from the identity of a job, so it can be said which one is meant.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct IdentityArgs {
    /// Answer as if the file were installed at this path: chosen times depend on it. Without it, jobs from
    /// standard input have identities that begin with `-:`
    #[arg(long = "as", value_name = "PATH", conflicts_with = "identity")]
    pub(crate) installed_as: Option<PathBuf>,
    /// Answer as if the job had this identity, instead of `<absolute path>:<name>`
    #[arg(long, value_name = "TEXT")]
    pub(crate) identity: Option<String>,
}

impl IdentityArgs {
    /// Refuses an identity that no job can have, before every job of a file is blamed for it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let expected = match self.identity.as_deref() {
            Some("") => "expected a name, but found nothing".to_owned(),
            Some(text) if text.contains(char::is_control) => {
                let shown = text.escape_debug();
                format!("expected a name without control characters, but found `{shown}`")
            }
            _ => return Ok(()),
        };
        Err(Failure::Usage(format!("--identity: {expected}")))
    }

    /// Refuses flags that say something about a file where there is none.
    pub(crate) fn need_file(&self) -> Result<(), Failure> {
        match (&self.installed_as, &self.identity) {
            (None, None) => Ok(()),
            (Some(_), _) => Err(Failure::Usage("--as is about a file: write --file PATH".into())),
            (_, Some(_)) => Err(Failure::Usage("--identity is about a job: write --file PATH".into())),
        }
    }
}

/// Reads one of a few values by its name, and lets help and completions tell them.
pub(crate) fn one_of<T, const N: usize>(values: [(PossibleValue, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let names = values.clone().map(|(name, _)| name);
    PossibleValuesParser::new(names).map(move |text| {
        let meant = values.iter().find(|(name, _)| name.matches(&text, false));
        meant.map(|(_, value)| value.clone()).expect("other names were refused")
    })
}

/// How many periods to show.
#[derive(Args, Debug)]
pub(crate) struct CountArg {
    /// How many periods to show, at most 10080
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) count: i64,
}

/// The most periods shown at once: enough for every minute of a week.
pub(crate) const COUNT_MAX: usize = 10_080;

impl CountArg {
    pub(crate) fn get(&self) -> Result<usize, Failure> {
        count("--count", self.count)
    }
}

/// Checks a number of things to show.
pub(crate) fn count(flag: &str, count: i64) -> Result<usize, Failure> {
    match usize::try_from(count) {
        Ok(0) | Err(_) => Err(Failure::Usage(format!("{flag} must be > 0"))),
        Ok(count) if count > COUNT_MAX => Err(Failure::Usage(format!("{flag} must be at most {COUNT_MAX}"))),
        Ok(count) => Ok(count),
    }
}
