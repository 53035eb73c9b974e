//! What to do about a `KronJob` now: pure, and told the time.
//!
//! kron-core's `evaluate` decides. Here its steps become what Kubernetes has: a status, Jobs, and Events. The order is the
//! protocol, and it is what keeps a period from having two Jobs:
//!
//! 1. **Claim.** The status is written with the period behind its watermark and in its list of claims, if nobody has written
//!    it since it was read.
//! 2. **Create.** Only the holder of a claim that was just written creates the Job, under a name that follows from the
//!    period, with a finalizer that keeps the name taken.
//! 3. **Record.** The status is written with the outcome and without the claim.
//! 4. **Release.** The finalizer is removed, once nobody can still be about to create the same Job (`release.rs`).
//!
//! A period that is not claimed is never created, and one that is behind the watermark is never claimed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kron_core::{
    Decision, Ledger, Passed, PeriodId, Reason, Record, RunId, Settled, Step, Watch, decide, evaluate,
};
use kron_schedule::Count;

use crate::api::{ActiveStatus, ClaimStatus, HistoryEntry, KronJob, KronJobStatus, LedgerStatus, NAME_MAX};
use crate::condition::{self, Kind};
use crate::definition::{Definition, Flaw};
use crate::tell::Tell;

/// The most outcomes that the status remembers.
pub const HISTORY_MAX: usize = 10;

/// How long a claim of another process is left alone before a period past its deadline is given up: a request of that process
/// may be on its way.
pub const SETTLE: SignedDuration = SignedDuration::from_secs(30);

/// How long the claim of another process is left to it. A claim from the future is not believed.
const TAKE_OVER: SignedDuration = SignedDuration::from_secs(10);

/// How often Jobs that are being replaced are looked for, should no event tell of their end.
const REPLACE_LOOK: SignedDuration = SignedDuration::from_secs(10);

/// The most periods looked at for the time of the next run.
const AHEAD_MAX: usize = 10_000;

/// Everything that is known of a `KronJob`.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The resource.
    pub kronjob: &'a KronJob,
    /// Its spec, as it was read.
    pub definition: &'a Result<Definition, Vec<Flaw>>,
    /// Its Jobs by their names, as far as they were looked for.
    pub jobs: &'a BTreeMap<String, Sight>,
    /// Creations that failed since this look began, and why.
    pub failures: &'a BTreeMap<String, String>,
}

/// Who looks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The name of this process, unlike that of any other.
    pub holder: &'a str,
    /// The second that everything due is evaluated with, and since when somebody has been looking.
    pub watch: Watch,
    /// The time by the clock, which may be later if there was a queue.
    pub clock: Timestamp,
}

/// What is known of a Job's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// There is such a Job.
    Present(SeenJob),
    /// The API server has said that there is none.
    Absent,
}

/// A Job, as far as it matters.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenJob {
    /// Whether its owner is this `KronJob`, by its UID.
    pub is_ours: bool,
    /// The period that it is for; none if somebody started it by hand.
    pub period: Option<PeriodId>,
    /// How far it is.
    pub phase: Phase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether its pods are still being deleted.
    pub draining: bool,
    /// Whether Kron's finalizer keeps its name taken.
    pub held: bool,
}

/// How far a Job is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// It has not ended.
    Active,
    /// It has done its work.
    Succeeded(Timestamp),
    /// It has given up.
    Failed(Timestamp),
}

impl SeenJob {
    /// Whether nothing of it runs any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.phase != Phase::Active || self.deleting && !self.draining
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Read these Jobs from the API server, and ask again.
    Look(Vec<String>),
    /// Do this.
    Act(Box<Act>),
}

/// Everything that one look at a `KronJob` brings about, in this order. If the status cannot be written, nothing else is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Act {
    /// The status to be written: always before a creation, and else if it is another than was read.
    pub status: Option<KronJobStatus>,
    /// What is told, once that is written.
    pub tells: Vec<Tell>,
    /// Jobs to be deleted, pods first.
    pub terminate: Vec<String>,
    /// Jobs to be created. Then ask again, to record what came of it.
    pub create: Vec<Creation>,
    /// Jobs whose outcome is recorded, and whose name may be released as far as the status is concerned.
    pub release: Vec<String>,
    /// Of those, the ones that nobody but this process has ever tried to create.
    pub clean: Vec<String>,
    /// Finished Jobs that are no longer kept.
    pub prune: Vec<String>,
    /// When to look again, if nothing happens before.
    pub wake_at: Option<Timestamp>,
}

/// A Job to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct Creation {
    /// Its name.
    pub job_name: String,
    /// The period it is for.
    pub period: PeriodId,
    /// The moment that was chosen.
    pub chosen: Timestamp,
}

/// The name of the Job of a period. It says which second, so it differs between periods, and is the same for whoever asks.
#[must_use]
pub fn job_name(kronjob: &str, period: PeriodId) -> String {
    debug_assert!(kronjob.len() <= NAME_MAX, "the CRD allows no longer names");
    format!("{kronjob}-{}", period.nominal().as_second())
}

/// Says what to do about a `KronJob` now.
#[must_use]
pub fn reconcile(seen: Seen<'_>, look: Look<'_>) -> Turn {
    if seen.kronjob.metadata.deletion_timestamp.is_some() {
        // Its Jobs go with it; nothing keeps their names.
        let release = seen.present().filter(|(_, job)| job.is_ours && job.held).map(|(name, _)| name.clone());
        return Turn::Act(Box::new(Act { release: release.collect(), ..Act::default() }));
    }
    let mut clerk = Clerk::new(seen, look);
    clerk.note_ends();
    clerk.settle_claims();
    clerk.evaluate();
    if !clerk.unknown.is_empty() {
        return Turn::Look(clerk.unknown.into_iter().collect());
    }
    Turn::Act(Box::new(clerk.finish()))
}

impl<'a> Seen<'a> {
    fn present(self) -> impl Iterator<Item = (&'a String, &'a SeenJob)> {
        self.jobs.iter().filter_map(|(name, sight)| match sight {
            Sight::Present(job) => Some((name, job)),
            Sight::Absent => None,
        })
    }

    fn name(self) -> &'a str {
        self.kronjob.metadata.name.as_deref().unwrap_or_default()
    }

    /// The first second at which a window may open: the one of its creation.
    fn created(self) -> Timestamp {
        self.kronjob.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
    }
}

/// Writes a new status, one thing after another.
struct Clerk<'a> {
    seen: Seen<'a>,
    look: Look<'a>,
    status: KronJobStatus,
    ledger: Ledger,
    claims: Vec<Claim>,
    /// Names that must be looked for before anything is decided.
    unknown: BTreeSet<String>,
    /// Runs by hand, by their numbers.
    manual: Vec<String>,
    act: Act,
}

/// A claim, read.
#[derive(Clone)]
struct Claim {
    status: ClaimStatus,
    period: PeriodId,
    chosen: Timestamp,
}

impl Claim {
    fn read(status: &ClaimStatus) -> Option<Claim> {
        let (period, chosen) = (status.period_id.parse().ok()?, status.chosen_time.parse().ok()?);
        Some(Claim { status: status.clone(), period, chosen })
    }
}

impl<'a> Clerk<'a> {
    fn new(seen: Seen<'a>, look: Look<'a>) -> Clerk<'a> {
        let status = seen.kronjob.status.clone().unwrap_or_default();
        let kept = status.ledger.clone();
        let claims: Vec<Claim> = kept.iter().flat_map(|kept| &kept.claims).filter_map(Claim::read).collect();
        let mut manual = Vec::new();
        let mut active = Vec::new();
        for entry in kept.iter().flat_map(|kept| &kept.active) {
            if let Some(period) = entry.period_id.as_ref().and_then(|text| text.parse().ok()) {
                active.push(RunId::Period(period));
            }
        }
        for (name, job) in seen.present().filter(|(_, job)| job.is_ours && !job.has_ended()) {
            match job.period {
                Some(period) => active.push(RunId::Period(period)),
                None => {
                    active.push(RunId::Manual(manual.len() as u64));
                    manual.push(name.clone());
                }
            }
        }
        active.extend(claims.iter().map(|claim| RunId::Period(claim.period)));
        let read = |text: &String| text.parse::<PeriodId>().ok();
        let ledger = match kept.as_ref().and_then(|kept| Some((kept, read(&kept.handled_through)?))) {
            Some((kept, mark)) => {
                Ledger::restored(Some(mark), kept.pending.iter().filter_map(read).collect(), active)
            }
            None => Ledger::restored(Some(fence(seen, look, kept.is_some())), Vec::new(), active),
        };
        Clerk { seen, look, status, ledger, claims, unknown: BTreeSet::new(), manual, act: Act::default() }
    }

    /// Takes Jobs that have ended out of the list of active ones.
    fn note_ends(&mut self) {
        for entry in self.status.ledger.iter().flat_map(|kept| kept.active.clone()) {
            let end = match self.seen.jobs.get(&entry.job_name) {
                None => {
                    self.unknown.insert(entry.job_name);
                    continue;
                }
                Some(Sight::Absent) => Some((None, "unknown")),
                Some(Sight::Present(job)) => match job.phase {
                    _ if !job.is_ours => Some((None, "unknown")),
                    Phase::Succeeded(at) => Some((Some(at), "succeeded")),
                    Phase::Failed(at) => Some((Some(at), "failed")),
                    Phase::Active if job.has_ended() => Some((None, "unknown")),
                    Phase::Active => None,
                },
            };
            let (Some((at, result)), Some(period)) =
                (end, entry.period_id.as_ref().and_then(|text| text.parse::<PeriodId>().ok()))
            else {
                continue;
            };
            self.ledger.apply(&Record::Ended(RunId::Period(period)));
            let at = at.unwrap_or(self.look.clock);
            match result {
                "succeeded" => self.status.last_success_time = Some(stamp(at)),
                "failed" => self.status.last_failure_time = Some(stamp(at)),
                _ => {}
            }
            let noted =
                self.status.history.iter_mut().find(|past| past.job_name.as_ref() == Some(&entry.job_name));
            if let Some(past) = noted {
                past.result = Some(result.to_owned());
                past.ended_at = Some(stamp(at));
            }
            self.act.tells.push(Tell::Ended { job_name: entry.job_name, period, result });
        }
    }

    /// Goes on with what was claimed: records it if its Job is there, creates it if it may, and gives it up if it is too late.
    fn settle_claims(&mut self) {
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
        if self.seen.failures.contains_key(name) {
            return keep(); // it was tried, and is tried again later
        }
        let is_mine = claim.status.holder == self.look.holder;
        let waits = !claim.status.replaces.is_empty();
        // The one who decided in time, and only waits for others to end, is in time.
        let in_time = is_mine && waits
            || definition.job.policy().deadline.is_none_or(|deadline| {
                self.look.watch.now.duration_since(claim.chosen).as_secs() <= deadline.as_seconds()
            });
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
        claim.status.contested |= !(is_mine && waits);
        claim.status.replaces.clear();
        self.claim(&claim);
        Settle::Keep(Box::new(claim))
    }

    /// Makes a claim this process's own, to be created next.
    fn claim(&mut self, claim: &Claim) {
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
    fn have_ended(&mut self, names: &[String]) -> bool {
        let mut ended = true;
        for name in names {
            match self.seen.jobs.get(name) {
                None => {
                    self.unknown.insert(name.clone());
                    ended = false;
                }
                Some(Sight::Absent) => {}
                Some(Sight::Present(job)) if !job.is_ours || job.has_ended() => {}
                Some(Sight::Present(job)) => {
                    ended = false;
                    if !job.deleting {
                        self.act.terminate.push(name.clone());
                    }
                }
            }
        }
        ended
    }

    /// Settles what is due, if the spec can be evaluated.
    fn evaluate(&mut self) {
        let Ok(definition) = self.seen.definition else { return };
        let runs = self.ledger.active().to_vec();
        let (steps, wake_at) = evaluate(&definition.job, &self.ledger, &runs, self.look.watch);
        self.act.wake_at = earliest(self.act.wake_at, wake_at);
        let mut replaces = Vec::new();
        for step in steps {
            match step {
                Step::Terminate(run) => replaces.extend(self.end(run)),
                Step::Start(decision) => self.start(&decision, std::mem::take(&mut replaces)),
                Step::Record(record) => {
                    self.ledger.apply(&record);
                    self.note(&record);
                }
            }
        }
    }

    /// The names of the Jobs that must have ended before a run is replaced. A claim whose Job is not there is dropped.
    fn end(&mut self, run: RunId) -> Vec<String> {
        let period = match run {
            RunId::Manual(number) => {
                let name = usize::try_from(number).ok().and_then(|number| self.manual.get(number));
                return name.cloned().into_iter().collect();
            }
            RunId::Period(period) => period,
        };
        let mut names = vec![job_name(self.seen.name(), period)];
        if let Some(at) = self.claims.iter().position(|claim| claim.period == period) {
            let claim = self.claims.remove(at);
            self.act.create.retain(|creation| creation.period != period);
            self.ledger.apply(&Record::Ended(run));
            self.enter(HistoryEntry {
                period_id: period.to_string(),
                chosen_time: Some(claim.status.chosen_time),
                outcome: Reason::Superseded.outcome().name().to_owned(),
                reason: Reason::Superseded.name().to_owned(),
                seed_hash: Some(claim.status.seed_hash),
                ..self.entry()
            });
            let (chosen, reason) = (Some(claim.chosen), Reason::Superseded);
            self.act.tells.push(Tell::Settled { period, chosen, reason });
            // What it waited for, the next one waits for.
            names.extend(claim.status.replaces);
        }
        names
    }

    fn start(&mut self, decision: &Decision, replaces: Vec<String>) {
        let period = decision.period_id();
        let chosen = decision.chosen().unwrap_or(decision.window_start());
        let name = job_name(self.seen.name(), period);
        let claim = Claim {
            status: ClaimStatus {
                period_id: period.to_string(),
                chosen_time: stamp(chosen),
                seed_hash: decision.seed_hash().to_string(),
                job_name: name.clone(),
                holder: self.look.holder.to_owned(),
                claimed_at: stamp(self.look.clock),
                contested: false,
                replaces,
            },
            period,
            chosen,
        };
        self.act.tells.push(Tell::Triggered { decision: *decision });
        let replaces = claim.status.replaces.clone();
        if replaces.is_empty() {
            self.claim(&claim);
        } else {
            for old in &replaces {
                self.act.tells.push(Tell::Replaced { job_name: old.clone(), by: name.clone() });
            }
            // The claim is written first; the next look finds whether they have ended.
            let _ = self.have_ended(&replaces);
            self.act.wake_at = earliest(self.act.wake_at, self.look.clock.checked_add(REPLACE_LOOK).ok());
        }
        self.claims.push(claim);
    }

    fn note(&mut self, record: &Record) {
        match record {
            Record::Settled(Settled { reason: Reason::Started, .. })
            | Record::Manual(_)
            | Record::Ended(_) => {}
            Record::Settled(Settled { decision, reason, .. }) => {
                let period = decision.period_id();
                let found = *reason == Reason::FoundRunning;
                let name = job_name(self.seen.name(), period);
                if found {
                    self.ledger_active(Some(period), &name);
                }
                self.enter(HistoryEntry {
                    period_id: period.to_string(),
                    chosen_time: decision.chosen().map(stamp),
                    outcome: reason.outcome().name().to_owned(),
                    reason: reason.name().to_owned(),
                    seed_hash: Some(decision.seed_hash().to_string()),
                    job_name: found.then_some(name),
                    ..self.entry()
                });
                self.act.tells.push(Tell::Decided { decision: *decision });
                let (chosen, reason) = (decision.chosen(), *reason);
                self.act.tells.push(Tell::Settled { period, chosen, reason });
            }
            Record::Passed(Passed { tallies, .. }) => {
                for tally in tallies {
                    let one = tally.first == tally.last;
                    self.enter(HistoryEntry {
                        period_id: tally.first.to_string(),
                        last_period_id: (!one).then(|| tally.last.to_string()),
                        count: (!one).then(|| match tally.count {
                            Count::Exactly(count) => count.to_string(),
                            Count::AtLeast(count) => format!("{count}+"),
                        }),
                        outcome: tally.reason.outcome().name().to_owned(),
                        reason: tally.reason.name().to_owned(),
                        ..self.entry()
                    });
                    self.act.tells.push(Tell::Passed { tally: *tally });
                }
            }
        }
    }

    fn entry(&self) -> HistoryEntry {
        HistoryEntry { recorded_at: stamp(self.look.clock), ..HistoryEntry::default() }
    }

    /// Adds an outcome to what the status tells. The latest period, not the latest record, is the last.
    fn enter(&mut self, entry: HistoryEntry) {
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

    fn ledger_active(&mut self, period: Option<PeriodId>, name: &str) {
        let kept = self.status.ledger.get_or_insert_default();
        if !kept.active.iter().any(|entry| entry.job_name == name) {
            let period_id = period.map(|period| period.to_string());
            kept.active.push(ActiveStatus { period_id, job_name: name.to_owned() });
        }
    }

    /// Puts everything together.
    fn finish(mut self) -> Act {
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

enum Settle {
    Keep(Box<Claim>),
    Done,
}

/// Where a `KronJob` without a ledger begins: with windows that open once it exists, and after every period that it is known
/// to have a Job of. One whose ledger cannot be read begins now.
fn fence(seen: Seen<'_>, look: Look<'_>, is_damaged: bool) -> PeriodId {
    let lead = match seen.definition {
        Ok(definition) => definition.job.window().opens_before().as_seconds(),
        Err(_) => 0,
    };
    let begin = if is_damaged { look.watch.now } else { seen.created() };
    let first = begin.checked_add(SignedDuration::from_secs(lead)).unwrap_or(begin);
    let before = first.checked_sub(SignedDuration::from_secs(i64::from(!is_damaged))).unwrap_or(first);
    let known = seen.present().filter(|(_, job)| job.is_ours).filter_map(|(_, job)| job.period).max();
    known.map_or(PeriodId::new(before), |known| known.max(PeriodId::new(before)))
}

/// The period that runs next, as far as anyone can tell.
#[must_use]
pub fn next_run(definition: &Definition, ledger: &Ledger, now: Timestamp) -> Option<Decision> {
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

/// What is said of a Job that is in the way.
#[must_use]
pub fn foreign(name: &str) -> String {
    format!("a Job named {name} is there that is not this KronJob's: it is left alone")
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// A time in whole seconds, as every time of Kron's is printed.
#[must_use]
pub fn stamp(time: Timestamp) -> String {
    PeriodId::new(time).to_string()
}
