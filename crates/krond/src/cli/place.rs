//! Which daemon a command is about, and how to ask it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use krond::config;
use krond::control::{self, Request};
use krond::paths::Paths;
use krond::settings::Settings;
use krontab::{Entry, Zones};
use serde::de::DeserializeOwned;

use super::answer::Failure;

/// Flags that say which daemon.
#[derive(Args, Clone, Debug)]
pub(crate) struct Place {
    /// Where state, records and the control socket are [default: /var/lib/krond, for a person ~/.local/state/krond]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The settings file [default: /etc/krond.toml, for a person ~/.config/krond.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
}

impl Place {
    /// The settings, with what the flags say.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let paths = Paths::current().map_err(Failure::Usage)?;
        let settings = Settings::load(self.settings.as_deref(), &paths)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let state_dir = match &self.state_dir {
            Some(path) => absolute(path)?,
            None => settings.state_dir,
        };
        Ok(Settings { state_dir, ..settings })
    }

    /// Asks the daemon, which must be running.
    pub(crate) fn ask<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Failure> {
        let settings = self.settings()?;
        let state_dir = settings.state_dir.display();
        let answer = control::ask(&settings.state_dir, request)
            .map_err(|error| Failure::Usage(format!("could not ask the krond in {state_dir}: {error}")))?;
        let answer = answer.ok_or_else(|| {
            Failure::NotRunning(format!(
                "no krond is running with its state in {state_dir}: start it with `krond start`"
            ))
        })?;
        if !answer.ok {
            return Err(Failure::No(answer.error.unwrap_or_else(|| "krond gave no reason".into())));
        }
        serde_json::from_value(answer.result)
            .map_err(|error| Failure::Usage(format!("could not understand krond's answer: {error}")))
    }
}

/// Where the krontabs are, for a command that reads them itself.
#[derive(Args, Clone, Debug)]
pub(crate) struct Krontabs {
    /// The krontabs: a directory, or one file [default: those of the krond that runs there, or of the settings]
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
}

impl Krontabs {
    /// The job of that identity, or the only one of that name.
    pub(crate) fn find(&self, job: &str, settings: &Settings) -> Result<Arc<Entry>, Failure> {
        let found = self.find_all(job, settings)?;
        match found.as_slice() {
            [] => Err(Failure::No(format!("job not found: {job}"))),
            [entry] => Ok(Arc::clone(entry)),
            several => Err(ambiguous(job, several.iter().map(|entry| entry.identity()))),
        }
    }

    /// The jobs of that identity or name.
    pub(crate) fn find_all(&self, job: &str, settings: &Settings) -> Result<Vec<Arc<Entry>>, Failure> {
        let path = match &self.config {
            Some(path) => absolute(path)?,
            None => running_config(settings).unwrap_or_else(|| settings.config.clone()),
        };
        let entries = config::read(&path, &Zones::system())
            .map_err(|errors| Failure::Usage(config::listed(&errors)))?;
        Ok(entries.into_iter().filter(|entry| entry.identity() == job || entry.name == job).collect())
    }
}

/// A name that several jobs have.
pub(crate) fn ambiguous<'a>(job: &str, identities: impl Iterator<Item = &'a str>) -> Failure {
    let identities = identities.collect::<Vec<_>>().join(", ");
    Failure::No(format!("several jobs are called {job}; name one of {identities}"))
}

/// The krontabs of the daemon that runs there, if one does.
fn running_config(settings: &Settings) -> Option<PathBuf> {
    let status = control::ask(&settings.state_dir, &Request::Status).ok()??;
    Some(status.result.get("config")?.as_str()?.into())
}

/// The absolute path of a file that was named.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::Usage(format!("could not find {}: {error}", path.display())))
}
