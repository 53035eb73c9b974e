//! All jobs of a file, or of a directory of them.

use std::path::{Path, PathBuf};

use krontab::security::Trust;
use krontab::{Directory, Entry, Loaded, SourceError, Zones};

use super::args::IdentityArgs;
use super::exit::{Failure, Invalid};
use super::{config, load};

/// Files without errors, in order.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// As it was named.
    pub(crate) path: PathBuf,
    pub(crate) files: Vec<Loaded>,
}

impl Fleet {
    /// Loads a file, or the files of a directory. One that has an error is refused, as krond does: what
    /// is left out would make any answer about all of them wrong.
    pub(crate) fn load(path: &Path, installed: Option<&Path>, zones: &Zones) -> Result<Fleet, Failure> {
        let files = match path.is_dir() {
            true => of_directory(path, installed, zones)?,
            false => {
                let identity =
                    IdentityArgs { installed_as: installed.map(Path::to_path_buf), identity: None };
                vec![load::file(path, &load::source(path, &identity)?, zones)?]
            }
        };
        match files.iter().find(|file| !file.is_valid()) {
            Some(invalid) => Err(Failure::Invalid(Invalid::new(invalid))),
            None => Ok(Fleet { path: path.to_owned(), files }),
        }
    }

    /// The entries of all files, each with the number of its file.
    pub(crate) fn entries(&self) -> Vec<(usize, &Entry)> {
        let files = self.files.iter().enumerate();
        files
            .flat_map(|(file, loaded)| loaded.parsed.entries.iter().map(move |entry| (file, entry)))
            .collect()
    }

    /// How jobs are told apart: by their names, and where there are several files, by those too.
    pub(crate) fn label(&self, file: usize, entry: &Entry) -> String {
        let name =
            self.files.get(file).and_then(|file| file.path.file_name()).filter(|_| self.files.len() > 1);
        match name {
            Some(name) => format!("{}:{}", name.to_string_lossy(), entry.name),
            None => entry.name.clone(),
        }
    }

    /// The path of a file, beginning as the fleet was named.
    pub(crate) fn path_of(&self, file: usize) -> PathBuf {
        match self.files.get(file).and_then(|file| file.path.file_name()) {
            Some(name) if self.path.is_dir() => self.path.join(name),
            _ => self.path.clone(),
        }
    }
}

fn of_directory(path: &Path, installed: Option<&Path>, zones: &Zones) -> Result<Vec<Loaded>, Failure> {
    let path = load::absolute(path)?;
    let failed = |error: std::io::Error| config::unreadable(&path, &error);
    let mut directory = Directory::open(&path, Trust::current()).map_err(failed)?;
    if let Some(installed) = installed {
        let unfit = |error: SourceError| Failure::Usage(format!("--as: {error}"));
        directory = directory.installed_as(installed).map_err(unfit)?;
    }
    let files = directory.krontabs(zones).map_err(failed)?;
    files.map(|(path, loaded)| loaded.map_err(|error| config::unreadable(&path, &error))).collect()
}
