//! How many are changed in one transaction: half as many after one that took too long, and more again after a quick one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::trouble::Outcome;

/// A number that becomes what can be done in time, whatever it is that takes it.
#[derive(Debug)]
pub(super) struct Batch {
    most: usize,
    size: AtomicUsize,
}

/// What takes less than this may be twice as much the next time. It is a quarter of what a statement may take, so that
/// the next one is in time as well.
const QUICK: Duration = Duration::from_millis(750);

impl Batch {
    pub(super) fn new(most: usize) -> Batch {
        Batch { most, size: AtomicUsize::new(most) }
    }

    /// How many to try.
    pub(super) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Learns from what so many came to. Others may try at the same time: each halves what it has tried itself.
    pub(super) fn tried<T>(&self, size: usize, took: Duration, outcome: &Outcome<T>) {
        match outcome {
            Ok(_) if took < QUICK => {
                self.size.fetch_max(size.saturating_mul(2).min(self.most), Ordering::Relaxed);
            }
            Err(trouble) if trouble.took_too_long() => {
                self.size.fetch_min((size / 2).max(1), Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Refusal;
    use crate::store::postgres::trouble::Trouble;

    #[test]
    fn what_took_too_long_is_halved_down_to_one_and_grows_again_with_what_is_quick() {
        let batch = Batch::new(500);
        let tried = |size: usize, took: u64, outcome: Outcome<()>| {
            batch.tried(size, Duration::from_millis(took), &outcome);
            batch.size()
        };
        let (too_long, refused) = (|| Err(Trouble::Silence), || Err(Refusal::not_found("job", "j").into()));
        assert_eq!(tried(500, 3_000, too_long()), 250);
        assert_eq!(tried(500, 3_000, too_long()), 250, "who began with as many has learned nothing new");
        assert_eq!(tried(250, 10, refused()), 250, "fewer would not help");
        assert_eq!(tried(250, 2_000, Ok(())), 250, "twice as many would take too long");
        for expected in [125, 62, 31, 15, 7, 3, 1, 1] {
            assert_eq!(tried(batch.size(), 3_000, too_long()), expected);
        }
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 500, 500] {
            assert_eq!(tried(batch.size(), 10, Ok(())), expected);
        }
    }
}
