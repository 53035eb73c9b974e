//! Where a krontab comes from: its name in messages, and the identities of its jobs.

use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use crate::problem::{is_unprintable, quoted};

/// The file that a krontab is, or will be installed as.
///
/// A job's identity is `<absolute path>:<name>`. Chosen times and state follow from it, so it must not
/// depend on the directory a tool was started in.
///
/// ```
/// use krontab::Source;
///
/// let draft = Source::new("/home/ann/draft")?.installed_as("/etc/krond.d/backup")?;
/// assert_eq!(&*draft.shown(), "/home/ann/draft");
/// assert_eq!(draft.identity("nightly"), "/etc/krond.d/backup:nightly");
/// # Ok::<(), krontab::SourceError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Source {
    shown: Arc<str>,
    identity: Identity,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Identity {
    /// The path of the installed file, or `-`, before `:<name>`.
    Path(String),
    /// One text for whatever job.
    Text(String),
}

impl Source {
    /// The file at an absolute path, which messages name and identities begin with.
    ///
    /// # Errors
    ///
    /// If the path is relative, goes up with `..`, is not UTF-8 or has control characters.
    pub fn new(path: impl AsRef<Path>) -> Result<Source, SourceError> {
        let path = normal(path.as_ref())?;
        Ok(Source { shown: path.as_str().into(), identity: Identity::Path(path) })
    }

    /// Standard input, which has no path: messages name it `-`, and identities are `-:<name>`. Those of
    /// installed files begin with a slash, so none of them is mistaken for another.
    #[must_use]
    pub fn stdin() -> Source {
        Source { shown: "-".into(), identity: Identity::Path("-".into()) }
    }

    /// The same file, named like this in messages.
    #[must_use]
    pub fn shown_as(mut self, text: &str) -> Source {
        let shown: String = text.chars().map(|c| if is_unprintable(c) { '?' } else { c }).collect();
        self.shown = shown.into();
        self
    }

    /// The same file, with the identities that its jobs have once it is installed at that path.
    ///
    /// # Errors
    ///
    /// As [`new`](Source::new).
    pub fn installed_as(self, path: impl AsRef<Path>) -> Result<Source, SourceError> {
        Ok(Source { identity: Identity::Path(normal(path.as_ref())?), ..self })
    }

    /// The same file, with one identity for whatever job: to ask about one job under another name.
    #[must_use]
    pub fn with_identity(self, identity: impl Into<String>) -> Source {
        Source { identity: Identity::Text(identity.into()), ..self }
    }

    /// The file's name in messages.
    #[must_use]
    pub fn shown(&self) -> Arc<str> {
        Arc::clone(&self.shown)
    }

    /// The identity of the job of that name.
    #[must_use]
    pub fn identity(&self, name: &str) -> String {
        match &self.identity {
            Identity::Path(path) => format!("{path}:{name}"),
            Identity::Text(text) => text.clone(),
        }
    }
}

/// The path with one spelling: no `.`, and no slash twice.
fn normal(path: &Path) -> Result<String, SourceError> {
    let error = |expected| SourceError { expected, found: path.to_string_lossy().into_owned() };
    let mut out = String::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(_) if !path.has_root() => return Err(error("an absolute path")),
            Component::Normal(name) => {
                let name = name.to_str().ok_or_else(|| error("a path in UTF-8"))?;
                if name.contains(char::is_control) {
                    return Err(error("a path without control characters"));
                }
                out.push('/');
                out.push_str(name);
            }
            Component::ParentDir => return Err(error("a path without `..`")),
            Component::Prefix(_) => return Err(error("an absolute path")),
        }
    }
    if out.is_empty() {
        return Err(error("the absolute path of a file"));
    }
    Ok(out)
}

/// Why a path cannot be part of an identity.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceError {
    expected: &'static str,
    found: String,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, but found {}", self.expected, quoted(&self.found))
    }
}

impl std::error::Error for SourceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_begin_with_one_spelling_of_the_path() {
        for path in ["/etc/krond.d/a", "//etc/./krond.d//a", "/etc/krond.d/a/"] {
            assert_eq!(Source::new(path).unwrap().identity("n/1"), "/etc/krond.d/a:n/1");
        }
    }

    #[test]
    fn a_path_that_says_nothing_for_ever_is_refused() {
        for (path, message) in [
            ("a", "expected an absolute path, but found `a`"),
            ("./a", "expected an absolute path, but found `./a`"),
            ("", "expected the absolute path of a file, but found nothing"),
            ("/", "expected the absolute path of a file, but found `/`"),
            ("/a/../b", "expected a path without `..`, but found `/a/../b`"),
            ("/a\nb", "expected a path without control characters, but found `/a\\nb`"),
        ] {
            assert_eq!(Source::new(path).unwrap_err().to_string(), message);
        }
    }
}
