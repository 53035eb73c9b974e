//! When the name of a recorded Job may be released.
//!
//! The finalizer keeps a Job's name taken: whoever tries to create it again, however late, is refused. A Job that this
//! process alone has ever tried to create, once, is released as soon as its outcome is recorded. Of any other, a request
//! may still be on its way: from a process that was stopped right before it sent it, or that never got its answer. Such a name is
//! kept until no such request can arrive any more.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long after its claim was sent a process may begin to create a Job. After that it reads the claim again.
pub const CREATE_WITHIN: Duration = Duration::from_secs(10);

/// How long the name of a Job is kept that others may have tried to create. It is the one bound that at most once depends
/// on: a request that was begun within [`CREATE_WITHIN`] reaches the API server before this has passed.
pub const HOLD: Duration = Duration::from_secs(600);

/// The most names that are remembered. A name that is forgotten is only kept longer.
const NAMES_MAX: usize = 100_000;

/// Since when this process has known of each held Job that its outcome is recorded.
#[derive(Debug, Default)]
pub struct Holds {
    recorded: BTreeMap<(String, String), Duration>,
}

impl Holds {
    /// How long to wait before a recorded Job may be released. `now` is a time that counts while the machine sleeps.
    pub fn wait(&mut self, uid: &str, name: &str, is_clean: bool, now: Duration) -> Duration {
        if is_clean {
            return Duration::ZERO;
        }
        if self.recorded.len() >= NAMES_MAX {
            self.recorded.clear();
        }
        let since = *self.recorded.entry((uid.to_owned(), name.to_owned())).or_insert(now);
        HOLD.saturating_sub(now.saturating_sub(since))
    }

    /// Forgets a Job that was released.
    pub fn forget(&mut self, uid: &str, name: &str) {
        self.recorded.remove(&(uid.to_owned(), name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_may_have_tried_is_kept() {
        let mut holds = Holds::default();
        let at = Duration::from_secs;
        assert_eq!(holds.wait("u", "a", true, at(5)), Duration::ZERO);
        assert_eq!(holds.wait("u", "b", false, at(5)), HOLD);
        assert_eq!(holds.wait("u", "b", false, at(105)), HOLD - at(100));
        assert_eq!(holds.wait("u", "b", false, at(605)), Duration::ZERO);
        holds.forget("u", "b");
        assert_eq!(holds.wait("u", "b", false, at(700)), HOLD);
    }
}
