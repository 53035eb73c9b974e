//! Who evaluates cron jobs, of many nodes: pure, and told the time.
//!
//! A node asks for a lease, renews it, and stops of its own accord before it can have ended. That saves work and
//! no more: what makes a fire happen once is its row, and the epoch that is locked while it is written.

use std::time::Duration;

/// How long a lease holds, on the clock of the database.
pub const TTL: Duration = Duration::from_secs(15);

/// So long before the end of its lease a node stops evaluating.
pub const MARGIN: Duration = Duration::from_secs(3);

/// How often a leader renews its lease.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How soon a renewal that failed is tried again.
const RENEW_AGAIN: Duration = Duration::from_secs(1);

/// How often the others ask whether the lease has ended, and how much longer they wait at most, so that they do not
/// ask all at once.
const ASK_EVERY: Duration = Duration::from_secs(2);
const ASK_JITTER: Duration = Duration::from_secs(1);

/// A node, leading or not. Times are told by a clock that nobody sets and that goes on while the host sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Leader {
    state: State,
    /// Whether the lease or an answer about it was asked for and has not come.
    is_asking: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Ended,
    Follows { ask_at: Duration },
    Leads { epoch: i64, until: Duration, renew_at: Duration },
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// It is to end.
    End,
    /// The database did not answer, or could not.
    Failed,
    /// The lease is this node's, since it was asked for at that time.
    Granted {
        /// The number of its reign.
        epoch: i64,
        /// When the question was sent.
        sent: Duration,
    },
    /// A fire found another epoch.
    Lost,
    /// The lease is another's.
    Refused,
    /// Time has passed.
    Tick,
    /// Nobody has the lease.
    Vacant,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Ask for the lease.
    Ask,
    /// Stop evaluating.
    Follow,
    /// Evaluate, but not from that time on.
    Lead {
        /// The number of the reign.
        epoch: i64,
        /// When to stop.
        until: Duration,
    },
    /// Give the lease back.
    Release(i64),
    /// Ask for the lease to hold longer.
    Renew(i64),
}

impl Leader {
    /// A node that has just started.
    #[must_use]
    pub fn new(now: Duration) -> Leader {
        Leader { state: State::Follows { ask_at: now }, is_asking: false }
    }

    /// What to do about something. `luck` is a number from 0 to 1.
    pub fn on(&mut self, now: Duration, event: Event, luck: f64) -> Vec<Effect> {
        if matches!(event, Event::Granted { .. } | Event::Refused | Event::Failed) {
            self.is_asking = false;
        }
        let mut effects = Vec::new();
        // Also before a grant that comes late: for a moment it did not lead, and whoever has stopped by then begins again.
        if let State::Leads { until, .. } = self.state
            && now >= until
        {
            effects.extend(self.follow(now));
        }
        match (event, self.state) {
            (Event::End, State::Leads { epoch, .. }) => {
                self.state = State::Ended;
                effects.extend([Effect::Follow, Effect::Release(epoch)]);
            }
            (Event::End, _) => self.state = State::Ended,
            (Event::Granted { epoch, sent }, State::Follows { .. } | State::Leads { .. }) => {
                let until = sent + TTL.saturating_sub(MARGIN);
                if now < until {
                    self.state = State::Leads { epoch, until, renew_at: sent + RENEW_EVERY };
                    effects.push(Effect::Lead { epoch, until });
                } else {
                    // It came too late to be of any use.
                    effects.extend(self.follow(now));
                }
            }
            // It was granted to a node that has ended.
            (Event::Granted { epoch, .. }, State::Ended) => effects.push(Effect::Release(epoch)),
            (Event::Refused | Event::Lost, State::Leads { .. }) => effects.extend(self.follow(now)),
            (Event::Refused | Event::Failed, State::Follows { .. }) => {
                self.state = State::Follows { ask_at: now + ASK_EVERY + ASK_JITTER.mul_f64(luck) };
            }
            (Event::Failed, State::Leads { epoch, until, .. }) => {
                self.state = State::Leads { epoch, until, renew_at: now + RENEW_AGAIN };
            }
            (Event::Vacant, State::Follows { .. }) => self.state = State::Follows { ask_at: now },
            (Event::Lost | Event::Tick | Event::Vacant, _) | (_, State::Ended) => {}
        }
        effects.extend(self.due(now));
        effects
    }

    /// When to tell it that time has passed.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Duration> {
        match self.state {
            State::Ended => None,
            State::Follows { ask_at } => Some(ask_at),
            State::Leads { until, renew_at, .. } => Some(until.min(renew_at)),
        }
    }

    fn due(&mut self, now: Duration) -> Option<Effect> {
        let effect = match self.state {
            State::Follows { ask_at } if now >= ask_at => Effect::Ask,
            State::Leads { epoch, renew_at, .. } if now >= renew_at => Effect::Renew(epoch),
            _ => return None,
        };
        (!std::mem::replace(&mut self.is_asking, true)).then_some(effect)
    }

    fn follow(&mut self, now: Duration) -> Option<Effect> {
        let led = matches!(self.state, State::Leads { .. });
        self.state = State::Follows { ask_at: now + ASK_EVERY };
        led.then_some(Effect::Follow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn leading(at: Duration) -> Leader {
        let mut leader = Leader::new(at);
        assert_eq!(leader.on(at, Event::Tick, 0.0), [Effect::Ask]);
        let granted = leader.on(at, Event::Granted { epoch: 7, sent: at }, 0.0);
        assert_eq!(granted, [Effect::Lead { epoch: 7, until: at + s(12) }]);
        leader
    }

    #[test]
    fn a_leader_renews_and_leads_on() {
        let mut leader = leading(s(100));
        assert_eq!(leader.wakes_at(), Some(s(105)));
        assert_eq!(leader.on(s(105), Event::Tick, 0.0), [Effect::Renew(7)]);
        assert_eq!(leader.on(s(106), Event::Tick, 0.0), [], "it has asked already");
        let renewed = leader.on(s(107), Event::Granted { epoch: 7, sent: s(105) }, 0.0);
        assert_eq!(renewed, [Effect::Lead { epoch: 7, until: s(117) }], "counted from when it was sent");
    }

    #[test]
    fn a_leader_that_cannot_renew_stops_before_its_lease_ends() {
        let mut leader = leading(s(100));
        let mut now = s(105);
        while now < s(112) {
            assert_eq!(leader.on(now, Event::Tick, 0.0), [Effect::Renew(7)]);
            assert_eq!(leader.on(now, Event::Failed, 0.0), []);
            assert_eq!(leader.wakes_at(), Some(now + s(1)));
            now += s(1);
        }
        assert_eq!(leader.on(s(112), Event::Tick, 0.0), [Effect::Follow], "3 s before the lease ends");
        assert_eq!(leader.on(s(114), Event::Tick, 0.0), [Effect::Ask], "and then asks like everybody else");
    }

    #[test]
    fn a_leader_whose_renewal_comes_late_has_followed_meanwhile() {
        let mut leader = leading(s(100));
        assert_eq!(leader.on(s(105), Event::Tick, 0.0), [Effect::Renew(7)]);
        let renewed = leader.on(s(113), Event::Granted { epoch: 7, sent: s(105) }, 0.0);
        assert_eq!(renewed, [Effect::Follow, Effect::Lead { epoch: 7, until: s(117) }, Effect::Renew(7)]);
    }

    #[test]
    fn a_leader_that_was_stopped_for_long_follows_at_once() {
        let mut leader = leading(s(100));
        assert_eq!(leader.on(s(300), Event::Tick, 0.0), [Effect::Follow]);
        let late = leader.on(s(300), Event::Granted { epoch: 8, sent: s(280) }, 0.0);
        assert_eq!(late, [], "a grant from before the stop is of no use");
    }

    #[test]
    fn what_another_has_is_asked_for_again_after_a_while_and_not_all_at_once() {
        let mut leader = Leader::new(s(0));
        assert_eq!(leader.on(s(0), Event::Tick, 0.0), [Effect::Ask]);
        assert_eq!(leader.on(s(0), Event::Refused, 0.5), []);
        assert_eq!(leader.wakes_at(), Some(Duration::from_millis(2_500)));
        assert_eq!(leader.on(s(1), Event::Vacant, 0.0), [Effect::Ask], "unless it is known to be free");
    }

    #[test]
    fn whoever_ends_gives_the_lease_back_and_asks_no_more() {
        let mut leader = leading(s(100));
        assert_eq!(leader.on(s(101), Event::End, 0.0), [Effect::Follow, Effect::Release(7)]);
        assert_eq!(leader.on(s(200), Event::Tick, 0.0), []);
        assert_eq!(leader.on(s(200), Event::Vacant, 0.0), []);
        assert_eq!(leader.wakes_at(), None);
        // One that ends while its question is on the way gives back what it is answered.
        let mut leader = Leader::new(s(0));
        leader.on(s(0), Event::Tick, 0.0);
        assert_eq!(leader.on(s(0), Event::End, 0.0), []);
        assert_eq!(leader.on(s(1), Event::Granted { epoch: 9, sent: s(0) }, 0.0), [Effect::Release(9)]);
    }

    /// A database with one lease, and nodes that lose messages, stop and go on.
    #[derive(Clone, Copy, Debug)]
    enum Deed {
        /// The node's question is answered, or is lost on its way there or back.
        Serve(usize, bool, bool),
        Pass(u64),
    }

    fn deeds() -> impl Strategy<Value = Vec<Deed>> {
        let serve = (0..3_usize, any::<bool>(), any::<bool>())
            .prop_map(|(n, there, back)| Deed::Serve(n, there, back));
        proptest::collection::vec(prop_oneof![3 => serve, 2 => (1..4_000_u64).prop_map(Deed::Pass)], 1..400)
    }

    proptest! {
        /// Two nodes never lead at the same time, whatever is lost, as long as clocks run at one rate.
        #[test]
        fn of_many_nodes_one_leads_at_most(deeds in deeds()) {
            let mut now = s(1_000);
            let mut nodes = [Leader::new(now); 3];
            let mut asked: [Option<(Effect, Duration)>; 3] = [None; 3];
            let mut leads: [Option<(i64, Duration)>; 3] = [None; 3];
            let (mut epoch, mut holder, mut expires) = (0_i64, None, Duration::ZERO);
            for deed in deeds {
                let (node, event) = match deed {
                    Deed::Pass(ms) => {
                        now += Duration::from_millis(ms);
                        (None, Event::Tick)
                    }
                    Deed::Serve(node, there, back) => {
                        let Some((question, sent)) = asked[node].take() else { continue };
                        let mut answer = Event::Failed;
                        if there {
                            let free = match question {
                                Effect::Ask => expires <= now || holder == Some(node),
                                Effect::Renew(mine) => mine == epoch && holder == Some(node),
                                _ => false,
                            };
                            if free {
                                epoch += i64::from(question == Effect::Ask);
                                (holder, expires) = (Some(node), now + TTL);
                                answer = Event::Granted { epoch, sent };
                            } else {
                                answer = Event::Refused;
                            }
                        }
                        (Some(node), if back { answer } else { Event::Failed })
                    }
                };
                for n in 0..3 {
                    if node.is_some_and(|node| node != n) {
                        continue;
                    }
                    for effect in nodes[n].on(now, event, 0.5) {
                        match effect {
                            Effect::Ask | Effect::Renew(_) => asked[n] = Some((effect, now)),
                            Effect::Lead { epoch, until } => leads[n] = Some((epoch, until)),
                            Effect::Follow => leads[n] = None,
                            Effect::Release(_) => unreachable!("nobody ends here"),
                        }
                    }
                }
                let leading = leads.iter().flatten().filter(|(_, until)| now < *until).count();
                prop_assert!(leading <= 1, "{leading} lead at {now:?}: {leads:?}");
            }
        }
    }
}
