//! Which jobs are to be looked at next.

use std::collections::BTreeMap;

/// A job's place in the daemon. Stable as long as the job is there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Slot(pub u32);

/// One wake-up for each job, in whole seconds of the wall clock.
///
/// Due times collide (every minute, on the hour), so there is one bucket for each second and not one entry of
/// a heap for each job. Setting a job's time again leaves its old entry behind: it is recognised by the time
/// that `of` says, and goes with its bucket.
#[derive(Debug, Default)]
pub struct Timers {
    buckets: BTreeMap<i64, Vec<Slot>>,
    of: Vec<Option<i64>>,
}

impl Timers {
    /// Wakes the job then, and no longer when it was to be woken before. `None` for never.
    pub fn set(&mut self, slot: Slot, at: Option<i64>) {
        let place = slot.0 as usize;
        if place >= self.of.len() {
            self.of.resize(place + 1, None);
        }
        if self.of[place] == at {
            return;
        }
        self.of[place] = at;
        if let Some(at) = at {
            self.buckets.entry(at).or_default().push(slot);
        }
    }

    /// When the job is to be woken.
    #[must_use]
    pub fn of(&self, slot: Slot) -> Option<i64> {
        self.of.get(slot.0 as usize).copied().flatten()
    }

    /// The earliest wake-up. It may be one that nobody wants any more.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        self.buckets.keys().next().copied()
    }

    /// The jobs that are to be woken first, in order.
    pub fn soonest(&self) -> impl Iterator<Item = Slot> + '_ {
        let bucket = move |(at, slots): (&i64, &Vec<Slot>)| {
            let at = *at;
            slots.clone().into_iter().filter(move |slot| self.of(*slot) == Some(at))
        };
        self.buckets.iter().flat_map(bucket)
    }

    /// Takes out the jobs that are due, the longest waiting first.
    pub fn take_due(&mut self, now: i64) -> Vec<Slot> {
        let mut due = Vec::new();
        while let Some(bucket) = self.buckets.first_entry().filter(|bucket| *bucket.key() <= now) {
            let (at, slots) = bucket.remove_entry();
            for slot in slots {
                let of = &mut self.of[slot.0 as usize];
                if *of == Some(at) {
                    *of = None;
                    due.push(slot);
                }
            }
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
        timers.set(Slot(0), Some(60));
        timers.set(Slot(1), Some(30));
        timers.set(Slot(2), Some(60));
        assert_eq!(timers.first(), Some(30));
        assert_eq!(timers.take_due(60), [Slot(1), Slot(0), Slot(2)]);
        assert_eq!(timers.take_due(60), []);
        assert_eq!(timers.first(), None);
    }

    #[test]
    fn only_the_last_time_set_counts() {
        let mut timers = Timers::default();
        timers.set(Slot(0), Some(60));
        timers.set(Slot(0), Some(90));
        timers.set(Slot(0), Some(60));
        timers.set(Slot(1), Some(60));
        timers.set(Slot(1), None);
        assert_eq!(timers.of(Slot(0)), Some(60));
        assert_eq!(timers.take_due(59), []);
        assert_eq!(timers.take_due(100), [Slot(0)]);
        assert_eq!(timers.take_due(100), []);
    }
}
