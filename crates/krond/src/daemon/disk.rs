//! Whether the disk answers, as far as the daemon can tell by the records that it waits for.
//!
//! What is due in a second is judged by that second, however many are due and however long it takes until all of them are
//! recorded: as long as one record after another becomes durable, nobody is late but by the size of the burst. A disk
//! that answers nothing at all is another matter. Who had to wait for it is held to their deadline when it answers again.

use std::time::Duration;

use super::STAMP_MAX;

/// The longest silence that is not held against anybody: as long as a look may wait for the job's own work.
const SILENCE_MAX: Duration = Duration::from_secs(STAMP_MAX.unsigned_abs());

/// What the disk was asked for, and when it answered.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Records that it has not answered for.
    under_way: usize,
    /// When it last answered, or was asked with nothing to do.
    heard: Duration,
    /// When it answered at last, after a silence that was too long.
    hung_until: Option<Duration>,
}

impl Disk {
    /// A record is to be made durable.
    pub(super) fn asked(&mut self, now: Duration) {
        if self.under_way == 0 {
            self.heard = now;
        }
        self.under_way += 1;
    }

    /// A record is durable, or is not.
    pub(super) fn answered(&mut self, now: Duration) {
        if now.saturating_sub(self.heard) > SILENCE_MAX {
            self.hung_until = Some(now);
        }
        self.heard = now;
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Whether what was decided then has had to wait for a disk that did not answer.
    pub(super) fn has_hung_since(&self, decided: Duration) -> bool {
        self.hung_until.is_some_and(|until| decided < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_disk_that_answers_has_not_hung_however_long_the_last_record_takes() {
        let mut disk = Disk::default();
        for _ in 0..10 {
            disk.asked(at(100));
        }
        for answer in 1..=10 {
            disk.answered(at(100 + 50 * answer));
        }
        assert!(!disk.has_hung_since(at(100)));
        // With nothing to do it has nothing to say.
        disk.asked(at(10_000));
        disk.answered(at(10_001));
        assert!(!disk.has_hung_since(at(100)));
    }

    #[test]
    fn a_silence_is_held_against_who_was_decided_before_its_end() {
        let mut disk = Disk::default();
        disk.asked(at(100));
        disk.asked(at(150));
        disk.answered(at(161));
        assert!(disk.has_hung_since(at(160)));
        assert!(!disk.has_hung_since(at(161)));
        disk.answered(at(162));
        assert!(disk.has_hung_since(at(160)) && !disk.has_hung_since(at(161)), "it has answered since");
    }
}
