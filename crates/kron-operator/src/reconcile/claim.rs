//! What was claimed, by this process or by another: it is recorded, created, or given up.

use jiff::{SignedDuration, Timestamp};
use kron_core::{PeriodId, Reason, Record, RunId};

use super::{Clerk, Creation, SeenJob, Sight, earliest, foreign};
use crate::api::{ClaimStatus, HistoryEntry};
use crate::condition::{self, Kind};
use crate::tell::Tell;

/// How long a claim of another process is left alone before a period past its deadline is given up: a request of that process
/// may be on its way.
const SETTLE: SignedDuration = SignedDuration::from_secs(30);

/// How long the claim of another process is left to it. A claim from the future is not believed.
const TAKE_OVER: SignedDuration = SignedDuration::from_secs(10);

/// How often Jobs that are being replaced are looked for, should no event tell of their end.
pub(super) const REPLACE_LOOK: SignedDuration = SignedDuration::from_secs(10);

/// A claim, read.
#[derive(Clone)]
pub(super) struct Claim {
    pub(super) status: ClaimStatus,
    pub(super) period: PeriodId,
    pub(super) chosen: Timestamp,
}

impl Claim {
    pub(super) fn read(status: &ClaimStatus) -> Option<Claim> {
        let (period, chosen) = (status.period_id.parse().ok()?, status.chosen_time.parse().ok()?);
        Some(Claim { status: status.clone(), period, chosen })
    }
}

impl Clerk<'_> {
    /// Goes on with what was claimed: records it if its Job is there, creates it if it may, and gives it up if it is too late.
    pub(super) fn settle_claims(&mut self) {
        for claim in std::mem::take(&mut self.claims) {
            match self.settle(&claim) {
                Settle::Keep(claim) => self.claims.push(*claim),
                Settle::Done => {}
            }
        }
    }

    fn settle(&mut self, claim: &Claim) -> Settle {
        let name = &claim.status.job_name;
        let keep = || Settle::Keep(Box::new(claim.clone()));
        let sight = self.seen.jobs.get(name);
        if let Some(Sight::Present(job)) = sight
            && job.is_ours
            && job.period == Some(claim.period)
        {
            self.record_created(claim, job);
            return Settle::Done;
        }
        let Ok(definition) = self.seen.definition else { return keep() };
        if definition.job.policy().suspend {
            return keep(); // nothing starts, and nothing is given up
        }
        let is_mine = claim.status.holder == self.look.holder;
        let waits = !claim.status.replaces.is_empty();
        let ends_at = definition.job.policy().deadline.map(|deadline| {
            let deadline = SignedDuration::from_secs(deadline.as_seconds());
            claim.chosen.checked_add(deadline).unwrap_or(Timestamp::MAX)
        });
        if self.seen.failures.contains_key(name) {
            // It was tried, and is tried again later; if it is too late by then, that is told at once.
            let too_late = ends_at.and_then(|ends_at| ends_at.checked_add(SignedDuration::from_secs(1)).ok());
            self.act.wake_at = earliest(self.act.wake_at, too_late);
            return keep();
        }
        // The one who decided in time, and only waits for others to end, is in time.
        let in_time = is_mine && waits || ends_at.is_none_or(|ends_at| self.look.watch.now <= ends_at);
        if !in_time {
            return self.give_up(claim, sight, is_mine);
        }
        let claimed_at: Timestamp = claim.status.claimed_at.parse().unwrap_or(self.look.clock);
        let left_until = claimed_at.checked_add(TAKE_OVER).unwrap_or(claimed_at);
        if !is_mine && (claimed_at..left_until).contains(&self.look.clock) {
            self.act.wake_at = earliest(self.act.wake_at, Some(left_until));
            return keep();
        }
        if !self.have_ended(&claim.status.replaces) {
            self.act.wake_at = earliest(self.act.wake_at, self.look.clock.checked_add(REPLACE_LOOK).ok());
            return keep();
        }
        // Whoever is about to create writes so first: the claim that was read may be gone by now.
        let mut claim = claim.clone();
        let was_refused = self.seen.refused.contains(name);
        claim.status.contested |= !(is_mine && (waits || was_refused));
        claim.status.replaces.clear();
        self.claim(&claim);
        Settle::Keep(Box::new(claim))
    }

    /// Makes a claim this process's own, to be created next.
    pub(super) fn claim(&mut self, claim: &Claim) {
        self.act.create.push(Creation {
            job_name: claim.status.job_name.clone(),
            period: claim.period,
            chosen: claim.chosen,
        });
    }

    fn record_created(&mut self, claim: &Claim, job: &SeenJob) {
        let name = &claim.status.job_name;
        if claim.status.holder == self.look.holder && !claim.status.contested {
            self.act.clean.push(name.clone());
        }
        self.ledger_active(Some(claim.period), name);
        self.enter(HistoryEntry {
            period_id: claim.period.to_string(),
            chosen_time: Some(claim.status.chosen_time.clone()),
            outcome: Reason::Started.outcome().name().to_owned(),
            reason: Reason::Started.name().to_owned(),
            seed_hash: Some(claim.status.seed_hash.clone()),
            job_name: Some(name.clone()),
            ..self.entry()
        });
        self.act.tells.push(Tell::Executed {
            job_name: name.clone(),
            period: claim.period,
            chosen: claim.chosen,
            found: job.deleting,
        });
    }

    /// The deadline has passed and the Job was not created, or so it seems.
    fn give_up(&mut self, claim: &Claim, sight: Option<&Sight>, is_mine: bool) -> Settle {
        let keep = Settle::Keep(Box::new(claim.clone()));
        let claimed_at: Timestamp = claim.status.claimed_at.parse().unwrap_or(self.look.clock);
        let settled_at = claimed_at.checked_add(SETTLE).unwrap_or(claimed_at);
        if (!is_mine || claim.status.contested) && self.look.clock < settled_at {
            self.act.wake_at = earliest(self.act.wake_at, Some(settled_at));
            return keep;
        }
        if sight.is_none() {
            self.unknown.insert(claim.status.job_name.clone());
            return keep;
        }
        self.ledger.apply(&Record::Ended(RunId::Period(claim.period)));
        let message = match sight {
            Some(Sight::Present(_)) => Some(foreign(&claim.status.job_name)),
            _ => condition::message(&self.status.conditions, Kind::SchedulingError),
        };
        self.enter(HistoryEntry {
            period_id: claim.period.to_string(),
            chosen_time: Some(claim.status.chosen_time.clone()),
            outcome: Reason::DeadlinePassed.outcome().name().to_owned(),
            reason: Reason::DeadlinePassed.name().to_owned(),
            seed_hash: Some(claim.status.seed_hash.clone()),
            message,
            ..self.entry()
        });
        self.act.tells.push(Tell::Settled {
            period: claim.period,
            chosen: Some(claim.chosen),
            reason: Reason::DeadlinePassed,
        });
        Settle::Done
    }

    /// Whether these Jobs have ended; those that have not are asked to.
    pub(super) fn have_ended(&mut self, names: &[String]) -> bool {
        let mut ended = true;
        for name in names {
            match self.seen.jobs.get(name) {
                None => {
                    self.unknown.insert(name.clone());
                }
                Some(Sight::Present(job)) if !self.has_ended(name) && !job.deleting => {
                    self.act.terminate.push(name.clone());
                }
                _ => {}
            }
            ended &= self.has_ended(name);
        }
        ended
    }

    /// Whether a Job is known to have ended, or not to be this `KronJob`'s.
    pub(super) fn has_ended(&self, name: &str) -> bool {
        match self.seen.jobs.get(name) {
            None => false,
            Some(Sight::Absent) => true,
            Some(Sight::Present(job)) => !job.is_ours || job.has_ended(),
        }
    }
}

enum Settle {
    Keep(Box<Claim>),
    Done,
}
