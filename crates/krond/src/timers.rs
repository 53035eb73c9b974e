//! Which jobs are to be looked at next.

use std::collections::BTreeMap;

/// A job's place in the daemon. Stable as long as the job is there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Slot(pub u32);

/// Wake-ups of jobs, in whole seconds of the wall clock.
///
/// Due times collide (every minute, on the hour), so there is one bucket for each second and not one entry of
/// a heap for each job. Nothing is ever taken out of the middle: a job knows for itself when it is to be woken, and
/// whoever takes entries out passes over those that are not of that second.
#[derive(Debug, Default)]
pub struct Timers {
    buckets: BTreeMap<i64, Vec<Slot>>,
}

impl Timers {
    /// Wakes the job then.
    pub fn set(&mut self, slot: Slot, at: i64) {
        self.buckets.entry(at).or_default().push(slot);
    }

    /// The earliest wake-up. It may be one that nobody wants any more.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        self.buckets.keys().next().copied()
    }

    /// All wake-ups, in order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, Slot)> + '_ {
        self.buckets.iter().flat_map(|(at, slots)| slots.iter().map(|slot| (*at, *slot)))
    }

    /// Takes out what is due, by second, the longest waiting first.
    pub fn take_due(&mut self, now: i64) -> Vec<(i64, Vec<Slot>)> {
        let mut due = Vec::new();
        while let Some(bucket) = self.buckets.first_entry().filter(|bucket| *bucket.key() <= now) {
            due.push(bucket.remove_entry());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_jobs_come_out_once_and_in_order() {
        let mut timers = Timers::default();
        timers.set(Slot(0), 60);
        timers.set(Slot(1), 30);
        timers.set(Slot(2), 60);
        timers.set(Slot(3), 61);
        assert_eq!(timers.first(), Some(30));
        assert_eq!(timers.iter().map(|(_, slot)| slot.0).collect::<Vec<_>>(), [1, 0, 2, 3]);
        assert_eq!(timers.take_due(29), []);
        assert_eq!(timers.take_due(60), [(30, vec![Slot(1)]), (60, vec![Slot(0), Slot(2)])]);
        assert_eq!(timers.take_due(60), []);
        assert_eq!(timers.first(), Some(61));
    }
}
