//! A krontab file that was loaded: what it says, and everything that speaks against running it.

use std::io;
use std::path::{Path, PathBuf};

use crate::file;
use crate::security::{Finding, Opened};
use crate::source::Source;
use crate::{Krontab, Parsed};
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

    /// Whether the daemon runs it: neither its text nor how it lies there has an error.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.parsed.has_errors() && !self.findings.iter().any(Finding::is_error)
    }
}
