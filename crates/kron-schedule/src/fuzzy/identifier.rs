//! Whose schedule it is: the text that is hashed.

use alloc::format;
use alloc::string::{String, ToString};

use super::error::{Code, FuzzyError};

/// The identifier of a file in a repository: the repository's slug, and the path from its root.
///
/// Slashes point forward, a leading `./` is left out, and case is kept. Kron's own surfaces do not
/// need it: there, the identifier is the identity of the job.
///
/// ```
/// use kron_schedule::fuzzy::identifier;
///
/// let identifier = identifier("github/gh-aw", "./.github/workflows/daily-report.md")?;
/// assert_eq!(identifier, "github/gh-aw/.github/workflows/daily-report.md");
/// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
/// ```
///
/// # Errors
///
/// `ERR-IDENTIFIER-001` if either part is empty.
pub fn identifier(repository_slug: &str, path: &str) -> Result<String, FuzzyError> {
    let slug = repository_slug.trim().trim_matches('/');
    let path = path.trim().replace('\\', "/");
    let mut path = path.as_str();
    while let Some(shorter) = path.strip_prefix("./").or_else(|| path.strip_prefix('/')) {
        path = shorter;
    }
    if slug.is_empty() || path.is_empty() {
        let part = if slug.is_empty() { "repository slug" } else { "path" };
        return Err(FuzzyError::new(
            Code::Identifier,
            0..0,
            format!("The {part} of the identifier is empty"),
            "Example: github/gh-aw and .github/workflows/daily-report.md",
        ));
    }
    Ok(format!("{slug}/{path}"))
}

/// Refuses an identifier that identifies nothing.
pub(super) fn check(identifier: &str) -> Result<(), FuzzyError> {
    if identifier.trim().is_empty() {
        return Err(FuzzyError::new(
            Code::Identifier,
            0..0,
            "A schedule cannot be scattered without an identifier".to_string(),
            "Example: github/gh-aw/.github/workflows/daily-report.md",
        ));
    }
    Ok(())
}
