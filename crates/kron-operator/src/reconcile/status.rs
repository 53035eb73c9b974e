//! What a status says once everything is decided: outcomes, what is next, and conditions.

use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, Ledger, PeriodId, RunId, decide};

use super::{Act, Clerk, Phase, stamp};
use crate::api::{ActiveStatus, ClaimStatus, HistoryEntry, LedgerStatus};
use crate::condition::{self, Kind};
use crate::definition::Definition;

/// The most outcomes that the status remembers.
const HISTORY_MAX: usize = 10;

/// The most periods looked at for the time of the next run.
const AHEAD_MAX: usize = 10_000;

impl Clerk<'_> {
    pub(super) fn entry(&self) -> HistoryEntry {
        HistoryEntry { recorded_at: stamp(self.look.clock), ..HistoryEntry::default() }
    }

    /// Adds an outcome to what the status tells. The latest period, not the latest record, is the last.
    pub(super) fn enter(&mut self, entry: HistoryEntry) {
        let last = entry.last_period_id.clone().unwrap_or_else(|| entry.period_id.clone());
        let read = |text: &String| text.parse::<PeriodId>().ok();
        if self.status.last_period_id.as_ref().and_then(read) <= read(&last) {
            self.status.last_nominal_time = Some(last.clone());
            self.status.last_period_id = Some(last);
            self.status.last_chosen_time.clone_from(&entry.chosen_time);
            self.status.last_outcome = Some(entry.outcome.clone());
            self.status.last_reason = Some(entry.reason.clone());
            self.status.last_seed_hash.clone_from(&entry.seed_hash);
        }
        self.status.history.insert(0, entry);
        self.status.history.truncate(HISTORY_MAX);
    }

    pub(super) fn ledger_active(&mut self, period: Option<PeriodId>, name: &str) {
        let kept = self.status.ledger.get_or_insert_default();
        if !kept.active.iter().any(|entry| entry.job_name == name) {
            let period_id = period.map(|period| period.to_string());
            kept.active.push(ActiveStatus { period_id, job_name: name.to_owned() });
        }
    }

    /// Puts everything together.
    pub(super) fn finish(mut self) -> Act {
        let seen = self.seen;
        let created = |name: &String| self.act.create.iter().any(|creation| creation.job_name == *name);
        let clock = stamp(self.look.clock);
        let claims = self.claims.iter().map(|claim| {
            let mut status = claim.status.clone();
            if created(&status.job_name) {
                status.holder = self.look.holder.to_owned();
                status.claimed_at.clone_from(&clock);
                status.replaces.clear();
            }
            status
        });
        let claims: Vec<ClaimStatus> = claims.collect();
        let mut active = self.status.ledger.take().map(|kept| kept.active).unwrap_or_default();
        let running = self.ledger.active();
        active.retain(|entry| {
            let period = entry.period_id.as_ref().and_then(|text| text.parse().ok());
            period.is_some_and(|period| running.contains(&RunId::Period(period)))
        });
        self.status.active_count = i64::try_from(active.len() + self.manual.len()).unwrap_or(i64::MAX);
        // One that could not be read yet has no beginning: its windows are not known.
        if seen.definition.is_ok()
            || seen.kronjob.status.as_ref().is_some_and(|status| status.ledger.is_some())
        {
            self.status.ledger = Some(LedgerStatus {
                handled_through: self.ledger.watermark().map(|mark| mark.to_string()).unwrap_or_default(),
                pending: self.ledger.pending().iter().map(ToString::to_string).collect(),
                claims,
                active,
            });
        }
        self.status.observed_generation = seen.kronjob.metadata.generation;
        self.next();
        self.conditions();
        // A claim is written even where the same one is there: what was read may be long gone, and the API server says so.
        if !self.act.create.is_empty() || seen.kronjob.status.as_ref() != Some(&self.status) {
            self.act.status = Some(self.status.clone());
        }
        let unrecorded = |name: &String| self.claims.iter().any(|claim| claim.status.job_name == *name);
        let held = seen.present().filter(|(name, job)| {
            let handled = job.period.is_some_and(|period| self.ledger.is_handled(period));
            job.is_ours && job.held && handled && !unrecorded(name)
        });
        self.act.release = held.map(|(name, _)| name.clone()).collect();
        self.act.prune = self.too_many();
        self.act
    }

    fn next(&mut self) {
        let next = match self.seen.definition {
            Ok(definition) if !definition.job.policy().suspend => {
                next_run(definition, &self.ledger, self.look.watch.now)
            }
            _ => None,
        };
        self.status.next_period_id = next.as_ref().map(|next| next.period_id().to_string());
        self.status.next_nominal_time.clone_from(&self.status.next_period_id);
        self.status.next_chosen_time = next.and_then(|next| next.chosen()).map(stamp);
    }

    fn conditions(&mut self) {
        let failure = self.seen.failures.iter().next().map(|(name, why)| format!("{name}: {why}"));
        let generation = self.seen.kronjob.metadata.generation;
        let mut set = |kind, is, reason: &str, message: String| {
            condition::set(
                &mut self.status.conditions,
                kind,
                is,
                reason,
                message,
                generation,
                self.look.clock,
            );
        };
        match self.seen.definition {
            Err(flaws) => {
                let message: Vec<String> = flaws.iter().map(ToString::to_string).collect();
                let message = message.join("; ");
                set(
                    Kind::Ready,
                    false,
                    "InvalidSpec",
                    "nothing is scheduled until the spec is corrected".into(),
                );
                set(Kind::InvalidSpec, true, "Mistakes", message);
            }
            Ok(definition) => {
                let (reason, message) = match definition.job.policy().suspend {
                    true => ("Suspended", "nothing starts, and no period is handled".to_owned()),
                    false => ("Scheduled", format!("its schedule is {}", definition.resolved)),
                };
                set(Kind::Ready, true, reason, message);
                set(Kind::InvalidSpec, false, "Valid", String::new());
            }
        }
        match failure {
            Some(message) => set(Kind::SchedulingError, true, "CreateFailed", message),
            None if self.claims.is_empty() => set(Kind::SchedulingError, false, "None", String::new()),
            None => {} // it is being tried again
        }
        let is_unschedulable = self.status.last_outcome.as_deref() == Some("unschedulable");
        let message = match is_unschedulable {
            true => "no time tried in the window of the last period satisfies the constraints".to_owned(),
            false => String::new(),
        };
        let reason = if is_unschedulable { "NoCandidate" } else { "None" };
        condition::set(
            &mut self.status.conditions,
            Kind::Unschedulable,
            is_unschedulable,
            reason,
            message,
            generation,
            self.look.clock,
        );
    }

    /// Finished Jobs beyond those that are kept, the latest of which stay.
    fn too_many(&self) -> Vec<String> {
        let Ok(definition) = self.seen.definition else { return Vec::new() };
        let (successful, failed) = definition.keep;
        let (mut succeeded, mut gave_up) = (Vec::new(), Vec::new());
        for (name, job) in self.seen.present().filter(|(_, job)| job.is_ours && !job.deleting) {
            let recorded = !self.claims.iter().any(|claim| claim.status.job_name == *name);
            match job.phase {
                Phase::Succeeded(at) if recorded => succeeded.push((at, name)),
                Phase::Failed(at) if recorded => gave_up.push((at, name)),
                _ => {}
            }
        }
        let mut prune = Vec::new();
        for (mut jobs, keep) in [(succeeded, successful), (gave_up, failed)] {
            jobs.sort_unstable();
            let many = jobs.len().saturating_sub(keep);
            prune.extend(jobs.into_iter().take(many).map(|(_, name)| name.clone()));
        }
        prune
    }
}

/// The period that runs next, as far as anyone can tell.
fn next_run(definition: &Definition, ledger: &Ledger, now: Timestamp) -> Option<Decision> {
    let job = &definition.job;
    let lead = SignedDuration::from_secs(job.window().opens_before().as_seconds());
    let mark = ledger.watermark().map_or(now, PeriodId::nominal);
    let mut last = mark;
    let later = std::iter::from_fn(|| {
        last = job.schedule().next_after(last)?;
        Some(last)
    });
    let pending = ledger.pending().iter().map(|period| period.nominal());
    let mut earliest: Option<Decision> = None;
    for nominal in pending.chain(later).take(AHEAD_MAX) {
        let best = earliest.as_ref().and_then(Decision::chosen);
        // No later window opens before this one.
        if best.is_some_and(|best| nominal.checked_sub(lead).is_ok_and(|opens| opens > best)) {
            break;
        }
        let decision = decide(job, nominal);
        if decision.chosen().is_some_and(|chosen| chosen >= now && best.is_none_or(|best| chosen < best)) {
            earliest = Some(decision);
        }
    }
    earliest
}
