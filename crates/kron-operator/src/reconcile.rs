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

mod claim;
mod status;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, Ledger, Passed, PeriodId, Reason, Record, RunId, Settled, Step, Watch, evaluate};
use kron_schedule::Count;

use self::claim::{Claim, REPLACE_LOOK};
use crate::api::{ClaimStatus, HistoryEntry, KronJob, KronJobStatus, NAME_MAX};
use crate::definition::{Definition, Flaw};
use crate::tell::Tell;

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
    /// Jobs that this process tried to create, where every try was answered, with a refusal: nothing is on its way.
    pub refused: &'a BTreeSet<String>,
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

    /// Settles what is due, if the spec can be evaluated.
    fn evaluate(&mut self) {
        let Ok(definition) = self.seen.definition else { return };
        let runs = self.ledger.active().to_vec();
        let (steps, wake_at) = evaluate(&definition.job, &self.ledger, &runs, self.look.watch);
        self.act.wake_at = earliest(self.act.wake_at, wake_at);
        let mut replaces = BTreeSet::new();
        for step in steps {
            match step {
                Step::Terminate(run) => replaces.extend(self.end(run)),
                Step::Start(decision) => {
                    self.start(&decision, std::mem::take(&mut replaces).into_iter().collect());
                }
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
            // Nobody creates the Job of a claim that waits: what it waited for, the next one waits for, and not for it.
            if !claim.status.replaces.is_empty() {
                names = claim.status.replaces;
                names.retain(|name| !self.has_ended(name));
            }
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
