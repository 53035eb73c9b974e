//! What is known of jobs, by whoever has them.
//!
//! These are facts, and what the page shows of them word for word: a field here is a member of the same name there.

use jiff::Timestamp;
use kron_schedule::Zone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a question is answered with.
pub type Answer<T> = Result<T, Refused>;

/// Whoever has jobs. Its methods may block.
pub trait Board {
    /// Who this is, and what it offers.
    fn about(&self) -> About;

    /// Whether the caller may do that.
    fn may(&self, what: Permission) -> bool;

    /// What time it is.
    fn now(&self) -> Timestamp;

    /// A time zone by its name.
    fn zone(&self, name: &str) -> Option<Zone>;

    /// What happens just now.
    ///
    /// # Errors
    ///
    /// If it cannot be found out.
    fn pulse(&self) -> Answer<Pulse>;

    /// A page of jobs by their names.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn jobs(&self, find: &Find) -> Answer<Page<Job>>;

    /// A job.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn job(&self, id: &str) -> Answer<Option<Job>>;

    /// Some of all jobs, and where to go on; the first of them if nobody says where.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn some_jobs(&self, from: Option<&str>) -> Answer<(Vec<Job>, Option<String>)>;

    /// What is recorded of a job, the newest first.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn record(&self, id: &str, place: &Place) -> Answer<Vec<Entry>>;

    /// The latest runs of a job, the newest first.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn runs(&self, id: &str, most: usize) -> Answer<Vec<Run>>;

    /// What a run has said, if that is kept.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn output(&self, id: &str, run: &str) -> Answer<Option<Output>>;

    /// What a draft would do.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    fn preview(&self, draft: &Draft) -> Answer<Preview>;

    /// Makes a draft count. Says whose it is.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    fn save(&self, draft: &Draft) -> Answer<String>;

    /// Does something. Says what was done.
    ///
    /// # Errors
    ///
    /// Why it was not done.
    fn act(&self, act: &Act) -> Answer<String>;

    /// The queues, if there are any.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn queues(&self) -> Answer<Vec<Queue>>;

    /// A page of what is in the queues, the newest first.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn work(&self, filter: &WorkFilter) -> Answer<Page<Work>>;
}

/// Who serves the page, and what it offers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The program.
    pub product: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Where it runs, for the title.
    pub place: String,
    /// The language of its schedules: `ojs` or `krontab`.
    pub language: &'static str,
    /// Whether jobs can be paused and resumed here.
    pub pauses: bool,
    /// Whether jobs can be made and edited here.
    pub edits: bool,
    /// Why not, if not.
    pub edits_not: Option<&'static str>,
    /// Whether it has queues.
    pub queues: bool,
}

/// What a caller may be allowed to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Permission {
    /// Edit, requeue, pause a queue.
    Change,
    /// Pause a job, and resume it.
    Pause,
    /// Run a job now.
    Run,
    /// Look.
    See,
}

/// Why there is no answer, written for the person who asked.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// Its status.
    #[serde(skip)]
    pub status: u16,
    /// Its kind, for programs.
    pub code: &'static str,
    /// What was expected and what was found.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Which field of a form it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The place, with a caret under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

impl Refused {
    /// A refusal.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Refused {
        Refused { status, code, message: message.into(), hint: None, field: None, excerpt: None }
    }

    /// There is no such thing.
    #[must_use]
    pub fn missing(what: &str, id: &str) -> Refused {
        Refused::new(404, "not_found", format!("{what} {} does not exist", excerpt(id)))
    }

    /// A parameter is something else.
    #[must_use]
    pub fn wrong(name: &str, expected: &str, found: &str) -> Refused {
        let message = format!("expected {expected} in `{name}`, but found {}", excerpt(found));
        Refused { field: Some(name.to_owned()), ..Refused::new(400, "wrong", message) }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Refused {
        Refused { hint: Some(hint.into()), ..self }
    }
}

/// The most characters of a mistake that are repeated in a message.
const EXCERPT_CHARS_MAX: usize = 60;

/// What was written, short enough to be part of a sentence.
pub(crate) fn excerpt(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(EXCERPT_CHARS_MAX).map(visible).collect();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// What happens just now.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pulse {
    /// What runs, the longest first.
    pub running: Vec<Running>,
    /// What runs next, the soonest first.
    pub next: Vec<Soon>,
    /// What went wrong lately, the latest first.
    pub wrong: Vec<Trouble>,
    /// Who is there: the leader, other nodes, workers.
    pub nodes: Vec<Node>,
    /// How many of what.
    pub counts: Counts,
}

/// How many of what.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Jobs.
    pub jobs: u64,
    /// Of these, paused.
    pub paused: Option<u64>,
    /// Runs under way.
    pub running: u64,
    /// Work that waits for a worker.
    pub waiting: Option<u64>,
    /// Work that is to be tried again.
    pub retrying: Option<u64>,
    /// Dead letters.
    pub dead: Option<u64>,
}

/// A run under way.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// The job, if it is one of ours.
    pub job: Option<String>,
    /// What is shown as its name.
    pub name: String,
    /// Since when.
    pub since: Timestamp,
    /// Where and how: a process, a worker, an attempt.
    pub detail: String,
}

/// A run to come.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Soon {
    /// The job.
    pub job: String,
    /// Its name.
    pub name: String,
    /// When.
    pub at: Timestamp,
}

/// Something that went wrong.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// When.
    pub at: Timestamp,
    /// The job, if it is one of ours.
    pub job: Option<String>,
    /// What is shown as its name.
    pub name: String,
    /// How it ended.
    pub mark: Mark,
    /// Why.
    pub why: String,
}

/// Somebody who is there.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it does: `leader`, `node`, `worker`.
    pub role: String,
    /// Whether it is well.
    pub well: bool,
    /// Since when, or last heard of when.
    pub seen: Option<Timestamp>,
    /// What else is known.
    pub detail: String,
}

/// Which jobs.
#[derive(Clone, Debug)]
pub struct Find {
    /// Those whose name has this in it.
    pub search: String,
    /// How many to leave out.
    pub offset: usize,
    /// How many at most.
    pub limit: usize,
}

/// Part of a list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// How many there are in all.
    pub total: u64,
    /// How many were left out before them.
    pub offset: usize,
    /// How many were asked for.
    pub limit: usize,
}

/// A job and what is known of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// What it is asked for by.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What its owner says about it.
    pub description: Option<String>,
    /// Its schedule, as it was written.
    pub schedule: String,
    /// The same in words.
    pub words: String,
    /// Its time zone.
    pub zone: String,
    /// Whether it is paused.
    pub paused: bool,
    /// Since when, where that is known.
    pub paused_since: Option<Timestamp>,
    /// What would start at once if it were resumed now: when that was to run.
    pub on_resume: Option<Timestamp>,
    /// Why it cannot run, if it cannot.
    pub held: Option<String>,
    /// When it runs next.
    pub next: Option<Timestamp>,
    /// When it last ran, and how that ended.
    pub last: Option<Timestamp>,
    /// How the last one ended.
    pub last_mark: Option<Mark>,
    /// How many runs are under way, where that is known.
    pub active: Option<usize>,
    /// What else is declared: pairs of a word and a value.
    pub facts: Vec<(&'static str, String)>,
    /// What it is edited by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Value>,
    /// What the engine decides by; none if it cannot be compiled any more.
    #[serde(skip)]
    pub plan: Option<kron_core::Job>,
    /// Every period up to here has its outcome, except the pending ones.
    #[serde(skip)]
    pub handled: Timestamp,
    /// Periods below that which still wait for their chosen time.
    #[serde(skip)]
    pub pending: Vec<Timestamp>,
}

/// How something ended, or will.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It is to come.
    Planned,
    /// It would come, but the job is paused.
    Paused,
    /// It waits for somebody to do it.
    Waiting,
    /// It runs.
    Running,
    /// It was started, and how it ended is not known.
    Executed,
    /// It was done.
    Succeeded,
    /// It was tried and failed, and is tried again.
    Retrying,
    /// It failed.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// By policy it was left out.
    Skipped,
    /// It was not started in time.
    Missed,
    /// No time of its window satisfies the constraints.
    Unschedulable,
}

/// Which part of a record.
#[derive(Clone, Debug)]
pub struct Place {
    /// From here.
    pub from: Timestamp,
    /// Up to here.
    pub to: Timestamp,
    /// How many at most: the newest.
    pub most: usize,
}

/// What became of a period, or of several in a row.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The nominal time; of several, the first.
    pub nominal: Timestamp,
    /// Of several, the last.
    pub last: Option<Timestamp>,
    /// How many.
    pub count: u64,
    /// Whether there may be more.
    pub at_least: bool,
    /// The time that was chosen.
    pub chosen: Option<Timestamp>,
    /// How it ended.
    pub mark: Mark,
    /// Why.
    pub why: String,
    /// When it was settled.
    pub at: Option<Timestamp>,
    /// Its run.
    pub run: Option<String>,
    /// The seed of the decision.
    pub seed_hash: Option<String>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its name.
    pub id: String,
    /// Its period; none if it was started by hand.
    pub nominal: Option<Timestamp>,
    /// How it ended.
    pub mark: Mark,
    /// When it started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// What else is known: an exit code, an attempt, an error.
    pub detail: String,
    /// Whether there is something to read.
    pub has_output: bool,
}

/// What a run has said.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The text, which is anybody's.
    pub text: String,
    /// Where it comes from, and what is missing.
    pub note: String,
}

/// What somebody has written into the form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The job that is edited; none for a new one.
    #[serde(default)]
    pub id: Option<String>,
    /// The fields, by their names.
    pub fields: Map<String, Value>,
}

/// What a draft would do.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The schedule in words.
    pub words: String,
    /// What is to be written instead, or into a file.
    pub written: Option<String>,
    /// What should be known about it.
    pub note: Option<String>,
    /// Its time zone.
    pub zone: String,
    /// What is legal and surely a surprise.
    pub warnings: Vec<Warning>,
    /// The next runs.
    pub next: Vec<Timestamp>,
    /// The same on the clocks of its zone.
    pub local: Vec<String>,
    /// What would change for a job that is there.
    pub change: Option<Change>,
}

/// What is legal and surely a surprise.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// What.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The place, with a caret under it.
    pub excerpt: Option<String>,
}

/// Which runs an edit adds and takes away.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Runs that there were not.
    pub added: Vec<Timestamp>,
    /// Runs that there will not be.
    pub removed: Vec<Timestamp>,
    /// How many stay.
    pub kept: usize,
}

/// Something to do.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// End work that has not ended.
    Cancel {
        /// Which.
        work: String,
    },
    /// Remove a dead letter for good.
    Discard {
        /// Which.
        work: String,
    },
    /// Let a job rest.
    Pause {
        /// Which.
        job: String,
    },
    /// Stop handing out the work of a queue.
    PauseQueue {
        /// Which.
        queue: String,
    },
    /// Try a dead letter anew.
    Requeue {
        /// Which.
        work: String,
    },
    /// Let a job run again.
    Resume {
        /// Which.
        job: String,
    },
    /// Hand out the work of a queue again.
    ResumeQueue {
        /// Which.
        queue: String,
    },
    /// Run a job now, beside its schedule.
    Run {
        /// Which.
        job: String,
    },
}

impl Act {
    /// What must be allowed for it.
    #[must_use]
    pub const fn needs(&self) -> Permission {
        match self {
            Act::Pause { .. } | Act::Resume { .. } => Permission::Pause,
            Act::Run { .. } => Permission::Run,
            _ => Permission::Change,
        }
    }
}

/// A queue.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Whether nothing of it is handed out.
    pub paused: bool,
    /// How much of it is in which state.
    pub states: Vec<(&'static str, u64)>,
}

/// Which work.
#[derive(Clone, Debug)]
pub struct WorkFilter {
    /// In that state.
    pub state: Option<String>,
    /// Of that queue.
    pub queue: Option<String>,
    /// Of that job.
    pub job: Option<String>,
    /// Among the dead letters.
    pub dead: bool,
    /// How many to leave out.
    pub offset: usize,
    /// How many at most.
    pub limit: usize,
}

/// Something in a queue.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    /// Its name.
    pub id: String,
    /// What is to be done.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// Where in its life it is.
    pub state: &'static str,
    /// The job that made it.
    pub job: Option<String>,
    /// Which attempt it is in.
    pub attempt: u32,
    /// How many there may be.
    pub attempts: u32,
    /// When it was received.
    pub created: Timestamp,
    /// When it was last started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// When it is tried again.
    pub next: Option<Timestamp>,
    /// Who has it.
    pub worker: Option<String>,
    /// How it failed last.
    pub error: Option<String>,
    /// What it is done with.
    pub args: String,
    /// Whether it lies among the dead letters.
    pub dead: bool,
}
