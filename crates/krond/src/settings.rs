//! The settings file. `krond.toml` beside this file is its reference, and the default.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use krontab::security::{self, Finding, Trust};
use serde::Deserialize;

use crate::daemon::{Farewell, Manners};
use crate::log::Level;
use crate::paths::Paths;
use crate::spawner::{Limit, Resource};
use crate::store::Missing;

/// The settings file with every setting and its default.
pub const REFERENCE: &str = include_str!("krond.toml");

/// How krond is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The krontabs: a directory, or one file.
    pub config: PathBuf,
    /// State and records.
    pub state_dir: PathBuf,
    /// The most endings that a state file keeps.
    pub history: usize,
    /// For how many days the daily records are kept.
    pub outcome_days: u16,
    /// How long a run that is asked to end has until it is killed.
    pub grace: Duration,
    /// The most runs of periods that are started in a second.
    pub start_rate: Option<u32>,
    /// What becomes of runs when krond stops.
    pub on_stop: Farewell,
    /// Whether runs get krond's own environment.
    pub inherit_environment: bool,
    /// What a job without a state file is.
    pub on_missing_state: Missing,
    /// The file that metrics are written to.
    pub metrics_file: Option<PathBuf>,
    /// How much a line of the log must matter to be written.
    pub log_level: Level,
    /// How large the output file of a run may be when another starts.
    pub output_max: Option<u64>,
    /// The file that standard output and error are, if krond is in the background. No setting, but told by who starts
    /// it.
    pub log_file: Option<PathBuf>,
    /// What every run may have, where that is not what krond was started with.
    pub limits: Vec<Limit>,
}

impl Settings {
    /// Reads the settings of a file, which must be there, or of the usual place, which need not.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or not be trusted, or says something that krond does not understand.
    pub fn load(given: Option<&Path>, paths: &Paths) -> Result<Settings, SettingsError> {
        let path = given.unwrap_or(&paths.settings);
        let error = |why: String| SettingsError { path: path.to_owned(), why };
        let text = match read(path) {
            Ok(text) => text.map_err(error)?,
            Err(missing) if given.is_none() && missing.kind() == ErrorKind::NotFound => String::new(),
            Err(failed) => return Err(error(failed.to_string())),
        };
        let written: Written = toml::from_str(&text).map_err(|failed| error(failed.to_string()))?;
        written.with(paths).map_err(error)
    }

    /// How the daemon behaves by them.
    #[must_use]
    pub fn manners(&self) -> Manners {
        Manners {
            history_max: self.history,
            grace: self.grace,
            start_rate: self.start_rate,
            ..Manners::default()
        }
    }
}

/// The largest file that can be one of settings.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads a file, if it may be trusted: who can write it decides what runs, as with a krontab.
fn read(path: &Path) -> io::Result<Result<String, String>> {
    let opened = security::open(path, &Trust::current())?;
    let errors = opened.findings.iter().filter(|finding| finding.is_error()).map(Finding::render);
    let errors: Vec<String> = errors.collect();
    let Some(file) = opened.file.filter(|_| errors.is_empty()) else {
        return Ok(Err(errors.join("\n\n")));
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(Ok(text))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    config: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    history: Option<usize>,
    outcome_days: Option<u16>,
    grace: Option<String>,
    start_rate: Option<u32>,
    on_stop: Option<Farewell>,
    inherit_environment: Option<bool>,
    on_missing_state: Option<String>,
    metrics_file: Option<PathBuf>,
    log_level: Option<Level>,
    output_max: Option<u64>,
    limits: Option<toml::Table>,
}

/// What can be limited, by the names that `limits.conf(5)` has for it.
const RESOURCES: [(&str, Resource); 9] = [
    ("as", Resource::AddressSpace),
    ("core", Resource::Core),
    ("cpu", Resource::Cpu),
    ("data", Resource::Data),
    ("fsize", Resource::FileSize),
    ("memlock", Resource::Memlock),
    ("nofile", Resource::OpenFiles),
    ("nproc", Resource::Processes),
    ("stack", Resource::Stack),
];

/// Reads a limit: one for both, or a soft one and a hard one.
fn limit(key: &str, value: &toml::Value) -> Result<Limit, String> {
    let Some((_, resource)) = RESOURCES.into_iter().find(|(name, _)| *name == key) else {
        let names = RESOURCES.map(|(name, _)| name).join(", ");
        return Err(format!("`limits.{key}`: expected one of {names}"));
    };
    let amount = |text: &str| match text.trim() {
        "unlimited" => Some(None),
        text => text.parse::<u64>().ok().map(Some),
    };
    let both = match value {
        toml::Value::Integer(number) => {
            u64::try_from(*number).ok().map(|number| (Some(number), Some(number)))
        }
        toml::Value::String(text) => match text.split_once(':') {
            None => amount(text).map(|both| (both, both)),
            Some((soft, hard)) => amount(soft).zip(amount(hard)),
        },
        _ => None,
    };
    let value = match value {
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::String(text) => format!("{text:?}"),
        other => format!("a {}", other.type_str()),
    };
    let (soft, hard) = both.ok_or_else(|| {
        format!("`limits.{key}`: expected a number, \"unlimited\" or \"SOFT:HARD\", but found {value}")
    })?;
    if hard.is_some_and(|hard| soft.is_none_or(|soft| soft > hard)) {
        return Err(format!("`limits.{key}`: expected no more than the hard limit, but found {value}"));
    }
    Ok(Limit { resource, soft, hard })
}

/// The most endings that a state file may be told to keep: it is written whole, and often.
const HISTORY_MAX: usize = 1_000;

impl Written {
    fn with(self, paths: &Paths) -> Result<Settings, String> {
        let absolute = |key: &str, path: Option<PathBuf>| match path {
            Some(path) if !path.is_absolute() => {
                Err(format!("`{key}`: expected an absolute path, but found `{}`", path.display()))
            }
            path => Ok(path),
        };
        let grace = match self.grace.as_deref() {
            None => Duration::from_secs(10),
            Some(text) => duration("grace", text)?,
        };
        let history = self.history.unwrap_or(20);
        if history > HISTORY_MAX {
            return Err(format!("`history`: expected at most {HISTORY_MAX}, but found {history}"));
        }
        Ok(Settings {
            config: absolute("config", self.config)?.unwrap_or_else(|| paths.config.clone()),
            state_dir: absolute("state_dir", self.state_dir)?.unwrap_or_else(|| paths.state.clone()),
            history,
            outcome_days: self.outcome_days.unwrap_or(90),
            grace,
            start_rate: self.start_rate.filter(|most| *most > 0),
            on_stop: self.on_stop.unwrap_or_default(),
            inherit_environment: self.inherit_environment.unwrap_or(false),
            on_missing_state: match self.on_missing_state.as_deref() {
                None | Some("new") => Missing::New,
                Some("fence") => Missing::Fence,
                Some(found) => {
                    return Err(format!(
                        "`on_missing_state`: expected \"new\" or \"fence\", but found {found:?}"
                    ));
                }
            },
            metrics_file: absolute("metrics_file", self.metrics_file)?,
            log_level: self.log_level.unwrap_or_default(),
            output_max: self.output_max.filter(|most| *most > 0),
            log_file: None,
            limits: {
                let limits = self.limits.unwrap_or_default();
                limits.iter().map(|(key, value)| limit(key, value)).collect::<Result<_, _>>()?
            },
        })
    }
}

fn duration(key: &str, text: &str) -> Result<Duration, String> {
    let parsed: kron_schedule::Duration =
        text.parse().map_err(|error| format!("`{key}`: {error} (such as \"10s\")"))?;
    u64::try_from(parsed.as_seconds())
        .map(Duration::from_secs)
        .map_err(|_| format!("`{key}`: expected no less than 0s, but found {text:?}"))
}

/// Why settings cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SettingsError {
    path: PathBuf,
    why: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.trim_end();
        // What is wrong with a file tells where by itself.
        let between = if why.starts_with("error[") { "\n\n" } else { " " };
        write!(f, "could not use the settings in {}:{between}{why}", self.path.display())
    }
}

impl std::error::Error for SettingsError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        written.with(&Paths::system())
    }

    #[test]
    fn the_reference_says_the_defaults() {
        assert_eq!(parse(REFERENCE).unwrap(), parse("").unwrap());
        let everything = REFERENCE.replace("\n# config", "\nconfig").replace("\n# state_dir", "\nstate_dir");
        assert_eq!(parse(&everything).unwrap(), parse("").unwrap());
        let metrics = everything.replace("\n# metrics_file", "\nmetrics_file");
        assert!(parse(&metrics).unwrap().metrics_file.is_some());
        let limits = REFERENCE.split_once("# [limits]").unwrap().1.replace("\n# ", "\n");
        let limits = parse(&format!("[limits]{limits}")).unwrap().limits;
        assert_eq!(limits.len(), RESOURCES.len(), "each is shown once");
    }

    #[test]
    fn a_limit_is_one_number_or_two() {
        let limits = |text: &str| {
            let limits = parse(&format!("[limits]\nnofile = {text}")).unwrap().limits;
            (limits[0].soft, limits[0].hard)
        };
        assert_eq!(limits("64"), (Some(64), Some(64)));
        assert_eq!(limits("\"64:128\""), (Some(64), Some(128)));
        assert_eq!(limits("\"64:unlimited\""), (Some(64), None));
        assert_eq!(limits("\"unlimited\""), (None, None));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, message) in [
            ("state_dir = \"x\"", "`state_dir`: expected an absolute path, but found `x`"),
            (
                "on_missing_state = \"x\"",
                "`on_missing_state`: expected \"new\" or \"fence\", but found \"x\"",
            ),
            (
                "limits = { nofile = -1 }",
                "`limits.nofile`: expected a number, \"unlimited\" or \"SOFT:HARD\", but found -1",
            ),
            (
                "limits = { nofile = \"many\" }",
                "`limits.nofile`: expected a number, \"unlimited\" or \"SOFT:HARD\", but found \"many\"",
            ),
            (
                "limits = { cpu = \"20:10\" }",
                "`limits.cpu`: expected no more than the hard limit, but found \"20:10\"",
            ),
            (
                "limits = { cpu = \"unlimited:10\" }",
                "`limits.cpu`: expected no more than the hard limit, but found \"unlimited:10\"",
            ),
            (
                "limits = { files = 3 }",
                "`limits.files`: expected one of as, core, cpu, data, fsize, memlock, nofile, nproc, stack",
            ),
            ("history = 1001", "`history`: expected at most 1000, but found 1001"),
        ] {
            assert_eq!(parse(text).unwrap_err(), message);
        }
        assert!(parse("grace = \"soon\"").unwrap_err().starts_with("`grace`: "));
        assert!(parse("histroy = 3").unwrap_err().contains("unknown field `histroy`"));
    }
}
