//! One change to a line, with everything else as it was written.

use crate::parts::{self, SchedulePart};
use crate::token;

/// The line of an entry with a window of that many seconds after its schedule, `@win(after,…)`.
///
/// Nothing if the line has no schedule, or a window already: that was its author's decision. A line that
/// says `@win(after,0s)` has one too, which keeps a job where it is.
///
/// ```
/// let line = "0 3 * * *  @tz(Europe/Paris)  name=a command=/bin/true";
/// let spread = krontab::with_window(line, &"30m".parse()?).unwrap();
/// assert_eq!(spread, "0 3 * * * @win(after,30m)  @tz(Europe/Paris)  name=a command=/bin/true");
/// assert_eq!(krontab::with_window(&spread, &"1h".parse()?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn with_window(line: &str, duration: &kron_schedule::Duration) -> Option<String> {
    let parts = parts::divide(line, token::split(line).tokens, &mut Vec::new());
    if parts.modifiers.iter().any(|token| token.text().starts_with("@win(")) {
        return None;
    }
    let end = match parts.schedule? {
        SchedulePart::Plain(span) => span.end,
        SchedulePart::Phrase(token) => token.span().end,
    };
    let (before, after) = line.split_at_checked(end)?;
    Some(format!("{before} @win(after,{duration}){after}"))
}
