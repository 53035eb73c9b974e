//! A krontab becomes jobs and problems, tested from outside. Each file asks one question.

/// Does every line that asks have its answer, in this shape?
mod batch;
/// What the other files stand on.
mod world;

/// Is every problem of a file told, in these words and at this place?
mod golden;

/// Does what was written become the job and the command that it says?
mod meaning;

/// In which forms is a problem told, and is a secret in none of them?
mod problems;

/// Are files that are too long, too many or not text refused?
mod limits;

/// Does `fmt` write one spelling with the same meaning?
mod canonical;

/// Does everything hold for any text at all?
mod properties;

/// Is the page for users true?
mod reference;

/// Which files are trusted?
mod security;

/// Does the `krontab` tool answer in these words, with these exit codes?
#[cfg(feature = "cli")]
mod cli;
/// Are its completions, manual pages and reference those of its flags?
#[cfg(feature = "cli")]
mod cli_generated;
/// What does it do to files, and what around it has a say in its answers?
#[cfg(feature = "cli")]
mod cli_world;
