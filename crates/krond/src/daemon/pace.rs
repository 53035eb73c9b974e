//! How many starts there are in a second, whoever they are for.
//!
//! After a long downtime, or at midnight, very many jobs are due at once. A host that must not start them all in one
//! second is told how many it may. The others wait in order. One whose deadline passes meanwhile is not started: its job is told, and
//! decides again.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::effect::Effect;
use super::event::Ticket;
use crate::moment::Moment;

/// Starts on their way out.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The most starts in a second; `None` is without end.
    most: Option<u32>,
    /// The second of the uptime that starts are counted in, and how many there were.
    second: (u64, u32),
    waiting: VecDeque<Waiting>,
    /// The second of the clock that those were looked at last.
    looked: i64,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    effect: Effect,
    chosen: Timestamp,
    /// Until when it may start, if not for ever.
    until: Option<Timestamp>,
}

impl Waiting {
    /// Whether it was decided for this time, and not for one that is over or has gone back.
    fn is_due(&self, now: Moment) -> bool {
        let second = now.second();
        self.chosen.as_second() <= second && self.until.is_none_or(|until| second <= until.as_second())
    }
}

impl Pace {
    pub(super) fn new(most: Option<u32>) -> Pace {
        Pace { most, ..Pace::default() }
    }

    /// Holds back what would be too much, and lets go what has waited. Whoever has waited in vain is returned.
    pub(super) fn keep(&mut self, now: Moment, effects: &mut Vec<Effect>) -> Vec<Ticket> {
        let Some(most) = self.most else { return Vec::new() };
        // Those that have waited are looked at once a second. Who has just been decided about is on time.
        let mut in_vain = Vec::new();
        if self.looked != now.second() {
            self.looked = now.second();
            self.waiting.retain(|waiting| {
                let is_due = waiting.is_due(now);
                in_vain.extend((!is_due).then_some(waiting.ticket));
                is_due
            });
        }
        for effect in std::mem::take(effects) {
            match effect {
                // A run that somebody asks for by hand waits for nobody.
                Effect::PrepareChild { ticket, ref entry, chosen: Some(chosen), .. } => {
                    let deadline = entry.job.policy().deadline;
                    let until = deadline.map(|limit| SignedDuration::from_secs(limit.as_seconds()));
                    let until = until.and_then(|limit| chosen.checked_add(limit).ok());
                    self.waiting.push_back(Waiting { ticket, effect, chosen, until });
                }
                Effect::AbortChild(ticket) if self.waiting.iter().any(|waiting| waiting.ticket == ticket) => {
                    self.waiting.retain(|waiting| waiting.ticket != ticket);
                }
                effect => effects.push(effect),
            }
        }
        let second = now.uptime.as_secs();
        if self.second.0 != second {
            self.second = (second, 0);
        }
        while self.second.1 < most
            && let Some(next) = self.waiting.pop_front()
        {
            self.second.1 += 1;
            effects.push(next.effect);
        }
        in_vain
    }

    /// When more may start, if something waits for it.
    pub(super) fn next(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then(|| Duration::from_secs(self.second.0 + 1))
    }
}
