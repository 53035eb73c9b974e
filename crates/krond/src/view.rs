//! What krond tells other programs: the types behind `--format json`, the records and the control socket.
//!
//! Names are those of the JSON. Times are RFC 3339 in UTC, and empty values are `null`.

use jiff::Timestamp;
use kron_core::{PeriodId, RunId};
use serde::{Deserialize, Serialize};

use crate::state::{Ending, Run, State};

/// How the daemon is.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// Whether it runs. Whoever finds no daemon says so with this alone.
    pub running: bool,
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// Where its krontabs are.
    pub config: String,
    /// Where its state is.
    pub state_dir: String,
    /// Which time zone database it uses.
    pub zones: String,
    /// How many jobs it has.
    pub jobs: usize,
    /// How many of them somebody has paused.
    #[serde(default)]
    pub paused: usize,
    /// How many runs are under way.
    pub active: usize,
    /// How many of them are of jobs that are no longer configured: they are in no list, and a graceful stop waits for them.
    #[serde(default)]
    pub active_of_removed: usize,
    /// Jobs that have to wait because something failed.
    pub held: Vec<HeldView>,
    /// How many more of them there are than are listed.
    #[serde(default)]
    pub more_held: usize,
    /// What starts next.
    pub next: Option<NextView>,
    /// How much it has recorded since it runs: another number means that something has happened.
    #[serde(default)]
    pub recorded: u64,
}

/// A job that has to wait.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldView {
    /// Which.
    pub identity: String,
    /// What failed.
    pub operation: String,
    /// How.
    pub error: String,
    /// How often in a row.
    pub failures: u32,
}

/// A period to come.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextView {
    /// Whose.
    pub identity: String,
    /// Its name.
    pub period: String,
    /// When it starts.
    pub chosen: Option<Timestamp>,
    /// From when on it could have been.
    pub window_start: Timestamp,
    /// Until when.
    pub window_end: Timestamp,
}

/// A job, and what is known of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// Its identity.
    pub identity: String,
    /// Its name, unique in its file.
    pub name: String,
    /// The line it stands on.
    pub line: usize,
    /// Its schedule, as it was written.
    pub schedule: String,
    /// Its time zone.
    pub timezone: String,
    /// What its author says about it.
    pub description: Option<String>,
    /// Whether its line suspends it.
    pub suspended: bool,
    /// Since when it is paused, if somebody has paused it.
    #[serde(default)]
    pub paused_since: Option<Timestamp>,
    /// What would start at once if it were resumed now: the latest period that came due, within its deadline.
    #[serde(default)]
    pub on_resume: Option<NextView>,
    /// What comes next.
    pub next: Option<NextView>,
    /// How its latest handled period ended.
    pub last: Option<LastView>,
    /// Runs under way.
    pub active: Vec<RunView>,
    /// Why it has to wait, if it has to.
    pub held: Option<HeldView>,
}

/// How a job's latest handled period ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastView {
    /// The period.
    pub period: String,
    /// How it ended.
    pub outcome: String,
    /// When it was to run.
    pub chosen: Option<Timestamp>,
}

/// A run under way.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// Its period, or `manual:` and a number.
    pub run: String,
    /// Its process.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
}

/// How a period ended, in a job's state.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndingView {
    /// The period.
    pub period: String,
    /// How it ended.
    pub outcome: String,
    /// Why.
    pub reason: String,
    /// When it was to run.
    pub chosen: Option<Timestamp>,
    /// When its run started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Timestamp,
    /// What its run ended with.
    pub exit: Option<i32>,
    /// The seed of its decision.
    pub seed_hash: String,
}

/// A line of `outcomes/YYYY-MM-DD.jsonl`: something that happened, for people.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordView {
    /// When it was recorded.
    pub at: Timestamp,
    /// Whose.
    pub identity: String,
    /// What happened.
    #[serde(flatten)]
    pub what: WhatView,
}

/// What happened to a job.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum WhatView {
    /// A period has its outcome.
    Outcome {
        /// The period.
        period: String,
        /// How it ended.
        outcome: String,
        /// Why.
        reason: String,
        /// When it was to run.
        chosen: Option<Timestamp>,
        /// The process that was started for it.
        pid: Option<u32>,
        /// The seed of its decision.
        seed_hash: String,
    },
    /// Many periods have theirs, without having been looked at one by one.
    Passed {
        /// How they ended.
        outcome: String,
        /// Why.
        reason: String,
        /// The earliest of them.
        first: String,
        /// The latest of them.
        last: String,
        /// How many.
        count: u64,
        /// Whether there may be more.
        at_least: bool,
    },
    /// A run has started that no period asked for.
    Manual {
        /// Which run.
        run: String,
        /// Its process.
        pid: u32,
    },
    /// Somebody has paused the job.
    Paused {
        /// Since when nothing starts.
        since: Timestamp,
    },
    /// Somebody has resumed it.
    Resumed {
        /// Since when nothing had started.
        since: Timestamp,
    },
    /// A run is over.
    Completed {
        /// Which run.
        run: String,
        /// Its process, if the record itself is there and not only what the state remembers.
        pid: Option<u32>,
        /// What it ended with: a code, 128 and the number of a signal, or `null` where nobody saw it.
        exit: Option<i32>,
        /// When it had started.
        started_at: Timestamp,
        /// When it had ended.
        ended_at: Timestamp,
    },
}

/// A reason in words.
#[must_use]
pub fn reason_words(reason: &str) -> &str {
    match reason {
        "started" => "its time had come, and it was started",
        "found-running" => "a run of it was found under way",
        "deadline-passed" => "its deadline had passed before it could be started",
        "no-candidate" => "no time tried in its window satisfies the constraints",
        "rescheduled" => "the job was edited and no longer has this period",
        "still-running" => "another run was still active",
        "unknown" => "why is no longer recorded",
        "superseded" => "a later period had come due by the time anyone looked",
        other => other,
    }
}

/// The name of a run: its period, or `manual:` and a number.
#[must_use]
pub fn run_name(run: RunId) -> String {
    match run {
        RunId::Period(period) => period.to_string(),
        RunId::Manual(number) => format!("manual:{number}"),
    }
}

impl LastView {
    pub(crate) fn of(state: &State) -> Option<LastView> {
        let last = state.last?;
        Some(LastView {
            period: last.period.to_string(),
            outcome: last.outcome.to_string(),
            chosen: last.chosen,
        })
    }
}

impl From<&Run> for RunView {
    fn from(run: &Run) -> RunView {
        RunView { run: run_name(run.id), pid: run.process.pid, started_at: run.started_at }
    }
}

impl From<&Ending> for EndingView {
    fn from(ending: &Ending) -> EndingView {
        EndingView {
            period: ending.period.to_string(),
            outcome: ending.reason.outcome().to_string(),
            reason: ending.reason.name().to_owned(),
            chosen: ending.chosen,
            started_at: ending.started_at,
            completed_at: ending.completed_at,
            exit: ending.exit,
            seed_hash: ending.seed_hash.clone(),
        }
    }
}

impl NextView {
    /// The next period of a job after everything that is handled.
    pub(crate) fn of(
        job: &kron_core::Job,
        watermark: Option<PeriodId>,
        pending: &[PeriodId],
        now: Timestamp,
    ) -> Option<NextView> {
        if job.policy().suspend {
            return None;
        }
        let pending = pending.iter().map(|period| period.nominal());
        let opens_before = jiff::SignedDuration::from_secs(job.window().opens_before().as_seconds());
        let window = jiff::SignedDuration::from_secs(job.window().duration().as_seconds());
        // A period whose window has opened may still be waiting for its chosen time.
        let from = now.saturating_sub(window).unwrap_or(Timestamp::MIN).saturating_sub(opens_before);
        let mark = watermark.map(PeriodId::nominal).unwrap_or(Timestamp::MIN);
        let mut after = from.unwrap_or(Timestamp::MIN).max(mark);
        let open = std::iter::from_fn(|| {
            after = job.schedule().next_after(after)?;
            Some(after)
        });
        let future = pending.chain(open.take(LOOKED_AT_MAX)).map(|nominal| kron_core::decide(job, nominal));
        let mut best: Option<kron_core::Decision> = None;
        for decision in future {
            let Some(chosen) = decision.chosen() else { continue };
            if let Some(best) = &best
                && decision.window_start() > best.chosen().unwrap_or(Timestamp::MAX)
            {
                break;
            }
            if chosen >= now && best.is_none_or(|best| Some(chosen) < best.chosen()) {
                best = Some(decision);
            }
        }
        best.map(|next| NextView::decided(job, &next))
    }

    /// What a job that is paused would start at once if it were resumed now.
    pub(crate) fn on_resume(
        job: &kron_core::Job,
        ledger: &kron_core::Ledger,
        now: Timestamp,
    ) -> Option<NextView> {
        let watch = kron_core::Watch { since: now, now };
        let (steps, _) = kron_core::evaluate(job, ledger, ledger.active(), watch);
        steps.iter().find_map(|step| match step {
            kron_core::Step::Start(decision) => Some(NextView::decided(job, decision)),
            _ => None,
        })
    }

    fn decided(job: &kron_core::Job, decision: &kron_core::Decision) -> NextView {
        NextView {
            identity: job.identity().to_owned(),
            period: decision.period_id().to_string(),
            chosen: decision.chosen(),
            window_start: decision.window_start(),
            window_end: decision.window_end(),
        }
    }
}

/// How many periods are looked at to find the next that runs. Those of overlapping windows come first, and
/// periods without a time that the constraints allow may lie between.
const LOOKED_AT_MAX: usize = 10_000;
