//! How many starts there are in a second, whoever they are for.
//!
//! After a long downtime, or at midnight, very many jobs are due at once. A host that must not start them all in one
//! second is told how many it may. The others wait in order. One whose deadline passes meanwhile is not started: its job is told, and
//! decides again.

use std::collections::BTreeMap;
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
    /// In the order in which they were decided about, which is that of their tickets; but whom somebody waits for first.
    waiting: BTreeMap<(Turn, Ticket), Waiting>,
    /// The second of the clock that those were looked at last.
    looked: i64,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Turn {
    /// Whose job somebody asks something of, and waits for the answer.
    Asked,
    Usual,
}

#[derive(Debug)]
struct Waiting {
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
            self.waiting.retain(|(_, ticket), waiting| {
                let is_due = waiting.is_due(now);
                in_vain.extend((!is_due).then_some(*ticket));
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
                    self.waiting.insert((Turn::Usual, ticket), Waiting { effect, chosen, until });
                }
                // Nobody else has heard of one that waits.
                Effect::AbortChild(ticket) if self.take(ticket).is_some() => {}
                effect => effects.push(effect),
            }
        }
        let second = now.uptime.as_secs();
        if self.second.0 != second {
            self.second = (second, 0);
        }
        while self.second.1 < most
            && let Some((_, next)) = self.waiting.pop_first()
        {
            self.second.1 += 1;
            effects.push(next.effect);
        }
        in_vain
    }

    /// Lets one go before the others, if it waits: its job does one thing at a time, and somebody waits for the next.
    pub(super) fn hurry(&mut self, ticket: Ticket) {
        if let Some(waiting) = self.take(ticket) {
            self.waiting.insert((Turn::Asked, ticket), waiting);
        }
    }

    fn take(&mut self, ticket: Ticket) -> Option<Waiting> {
        let usual = self.waiting.remove(&(Turn::Usual, ticket));
        usual.or_else(|| self.waiting.remove(&(Turn::Asked, ticket)))
    }

    /// When more may start, if something waits for it.
    pub(super) fn next(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then(|| Duration::from_secs(self.second.0 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::sync::Arc;

    use kron_core::{PeriodId, RunId};
    use krontab::{Krontab, Source, Zones};

    #[test]
    fn very_many_that_wait_are_given_up_in_a_moment() {
        let text = "* * * * * @policy(deadline=5m) name=a command=/bin/true\n";
        let parsed = Krontab::parse(text, &Source::new("/etc/krond.d/x").unwrap(), &Zones::bundled());
        let entry = Arc::new(parsed.entries.into_iter().next().unwrap());
        let wall: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let now = Moment { wall, uptime: Duration::from_secs(60) };
        let prepare = |ticket| Effect::PrepareChild {
            ticket,
            entry: Arc::clone(&entry),
            run: RunId::Period(PeriodId::new(wall)),
            chosen: Some(wall),
        };
        let tickets = || (1..=200_000).map(Ticket);
        let mut pace = Pace::new(Some(1));
        let mut effects: Vec<Effect> = tickets().map(prepare).collect();
        pace.keep(now, &mut effects);
        assert_eq!(effects.len(), 1);
        let mut effects: Vec<Effect> = tickets().rev().map(Effect::AbortChild).collect();
        let started = clock::now().uptime;
        pace.keep(now, &mut effects);
        let took = clock::now().uptime - started;
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(effects.len(), 1, "only the one that was let go is to be aborted");
        assert_eq!(pace.next(), None);
    }
}
