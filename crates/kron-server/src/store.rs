//! What must survive: jobs, cron jobs, occurrences, events, webhooks, workers and queues.
//!
//! Every verb of [`Store`] is a whole transaction: when it answers, what it did is durable, and when it
//! fails, nothing of it was done. What happens to a job or a cron job is decided by the pure code in
//! [`job`](crate::job) and [`cron`](crate::cron); a store only brings it in and carries it out.

#[cfg(test)]
mod conformance;
mod postgres;
mod sqlite;
mod verbs;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::bell::Bell;
use crate::cron::{Compiled, Counting, Cron, Occurrence, Place, Registration};
use crate::event::is_among;
use crate::job::{Defaults, Job, Nack, Progress, State};
use crate::job_view::Page;
use crate::members::{Members, Raw};
use crate::metrics::Metrics;
use crate::refusal::Refusal;
use crate::token::Token;
use crate::webhook::{self, Delivery, Webhook};

pub use postgres::{Place as PostgresPlace, Postgres, PostgresTokens};
pub use sqlite::{Sqlite, SqliteTokens};

/// What a verb answers.
pub type Answer<T> = Result<T, Refusal>;

/// Where everything is kept.
#[async_trait]
pub trait Store: Tokens {
    /// Takes jobs in: all of them, or none.
    async fn push(&self, jobs: Vec<Job>) -> Answer<Vec<Job>>;

    /// A job as it is now.
    async fn job(&self, id: &str, now: Timestamp) -> Answer<Option<Job>>;

    /// Does something to a job, as its life allows.
    async fn change(&self, id: &str, change: Change, now: Timestamp) -> Answer<Changed>;

    /// Hands jobs to a worker, each to one only.
    async fn fetch(&self, fetch: Fetch, now: Timestamp) -> Answer<Vec<Job>>;

    /// Hears from a worker.
    async fn beat(&self, beat: Beat, now: Timestamp) -> Answer<Beaten>;

    /// Carries out what time alone has changed. Says whether there is more of it.
    async fn advance(&self, now: Timestamp) -> Answer<bool>;

    /// Jobs that satisfy a filter, the newest first.
    async fn jobs(&self, filter: JobFilter, page: PageRequest, now: Timestamp) -> Answer<(Vec<Job>, Page)>;

    /// The latest job of each of these cron jobs that has made any, in no order.
    async fn latest_jobs(&self, crons: Vec<String>) -> Answer<Vec<Job>>;

    /// What lies among the dead letters, summed up.
    async fn dead_stats(&self) -> Answer<DeadStats>;

    /// Removes a dead letter for good.
    async fn delete_dead(&self, id: &str, now: Timestamp) -> Answer<()>;

    /// Known queues, by name.
    async fn queues(&self, page: PageRequest) -> Answer<(Vec<Queue>, Page)>;

    /// Stops or resumes handing out the jobs of a queue.
    async fn pause(&self, queue: &str, paused: bool, now: Timestamp) -> Answer<Queue>;

    /// How many jobs are in which state, of the queues that come first by name and of all others together, under no name.
    async fn census(&self, queues_max: usize) -> Answer<Vec<(Option<String>, State, u64)>>;

    /// How many jobs of a queue are in which state.
    async fn queue_stats(&self, queue: &str, now: Timestamp) -> Answer<(Queue, Vec<(State, u64)>)>;

    /// Known workers.
    async fn workers(&self, page: PageRequest) -> Answer<(Vec<Worker>, Page)>;

    /// Tells a worker, at its next heartbeat, what to do.
    async fn direct(&self, worker_id: &str, state: WorkerState, now: Timestamp) -> Answer<Worker>;

    /// Registers a cron job, or changes the one of that name. Says whether it is new.
    async fn register(&self, registration: Registration, now: Timestamp) -> Answer<(Cron, Compiled, bool)>;

    /// Changes some of a cron job's members.
    async fn patch(&self, name: &str, change: Members, now: Timestamp) -> Answer<(Cron, Compiled)>;

    /// Removes a cron job. Its jobs stay.
    async fn unregister(&self, name: &str) -> Answer<Option<Cron>>;

    /// A cron job.
    async fn cron(&self, name: &str) -> Answer<Option<Cron>>;

    /// Cron jobs by name; all of them if no limit is given.
    async fn crons(&self, enabled: Option<bool>, page: PageRequest) -> Answer<(Vec<Cron>, Page)>;

    /// Cron jobs by name, some of those after one, and the name to go on after. Nothing is counted for it.
    async fn crons_after(&self, name: Option<String>, most: usize) -> Answer<(Vec<Cron>, Option<String>)>;

    /// Makes the plans of cron jobs anew by the time zones of this node, and says of those that this has changed how they
    /// were and are. None while another node leads: then its time zones count.
    async fn replan(&self, names: Vec<String>, now: Timestamp) -> Answer<Option<Vec<(Cron, Cron)>>>;

    /// Cron jobs whose name has a text in it, by name.
    async fn find_crons(&self, text: &str, page: PageRequest) -> Answer<(Vec<Cron>, Page)>;

    /// The cron jobs that fire next, the soonest first.
    async fn soonest_crons(&self, most: usize) -> Answer<Vec<Cron>>;

    /// Settles what cron jobs have due, some at a time. Says whether there is more of it.
    async fn turn(&self, stamp: Timestamp, actual: Timestamp) -> Answer<bool>;

    /// Makes a job of a cron job by hand.
    async fn run(&self, name: &str, now: Timestamp) -> Answer<Option<Job>>;

    /// What the record says of a cron job from one time up to another, in order.
    async fn occurrences(&self, name: &str, span: Span) -> Answer<Vec<Occurrence>>;

    /// The newest of what the record says of a cron job from one time up to another, the newest first.
    async fn latest_occurrences(&self, name: &str, span: Span) -> Answer<Vec<Occurrence>>;

    /// What the record says of one time.
    async fn occurrence_at(&self, name: &str, at: Timestamp) -> Answer<Option<Occurrence>>;

    /// What happened, in order.
    async fn events(&self, query: EventQuery) -> Answer<Events>;

    /// Takes a webhook in, unless there are too many.
    async fn add_webhook(&self, webhook: Webhook) -> Answer<()>;

    /// A webhook.
    async fn webhook(&self, id: &str) -> Answer<Option<Webhook>>;

    /// All webhooks, the oldest first.
    async fn webhooks(&self) -> Answer<Vec<Webhook>>;

    /// Does something to a webhook.
    async fn change_webhook(&self, id: &str, change: webhook::Change, now: Timestamp) -> Answer<Webhook>;

    /// Removes a webhook, and what is known of its deliveries.
    async fn remove_webhook(&self, id: &str) -> Answer<Option<Webhook>>;

    /// What became of the last events that a webhook was told of, the newest first.
    async fn deliveries(&self, webhook_id: &str) -> Answer<Vec<Delivery>>;

    /// Forgets what is older than is kept. Says whether there is more of it.
    async fn prune(&self, retention: Retention, now: Timestamp) -> Answer<bool>;

    /// Forgets everything.
    async fn reset(&self) -> Answer<()>;

    /// Whether it answers.
    async fn ping(&self) -> Answer<()>;

    /// The nodes that share it, and which of them evaluates cron jobs.
    async fn cluster(&self) -> Answer<Cluster>;

    /// Leaves what only one node can have to another, since this one ends.
    async fn retire(&self);

    /// Whether this node does what one does for all: it evaluates cron jobs, and tells webhooks.
    fn leads(&self) -> bool;

    /// The number of this node's reign, for as long as it knows to lead.
    fn reign(&self) -> watch::Receiver<Option<u64>>;

    /// When time alone will next change something.
    fn due(&self) -> watch::Receiver<Due>;

    /// What wakes whoever waits for work.
    fn bell(&self) -> &Arc<Bell>;

    /// The number of the last event.
    fn last_event(&self) -> watch::Receiver<u64>;

    /// Its word: `sqlite` or `postgres`.
    fn backend(&self) -> &'static str;
}

/// Where tokens are kept: apart from the rest, since they are made and revoked beside a server that runs.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// All tokens by name, those too that no longer allow anything.
    async fn tokens(&self) -> Answer<Vec<Token>>;

    /// Takes a new token in. It may have the name of one that no longer allows anything, and replaces it;
    /// any other name that is taken is a conflict.
    async fn add_token(&self, token: Token) -> Answer<()>;

    /// Ends a token for good. One that has ended so already is left as it is; none is of an unknown name.
    async fn revoke_token(&self, name: &str, now: Timestamp) -> Answer<Option<Token>>;

    /// Writes down that tokens were used. Names of none are ignored.
    async fn note_use(&self, names: Vec<String>, now: Timestamp) -> Answer<()>;
}

/// When time alone will next change something.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Due {
    /// About jobs and workers.
    pub jobs: Option<Timestamp>,
    /// About cron jobs.
    pub crons: Option<Timestamp>,
}

/// The nodes that share a store.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The one that answers.
    pub node: String,
    /// The one that evaluates cron jobs, if one does.
    pub leader: Option<Leading>,
    /// Those that were heard of.
    pub nodes: Vec<Node>,
    /// When the earliest cron job is to be looked at.
    pub next_look: Option<Timestamp>,
}

/// Who evaluates cron jobs.
#[derive(Clone, Debug)]
pub struct Leading {
    /// The node.
    pub node: String,
    /// The number of its reign. Each has its own, and later ones are greater.
    pub epoch: u64,
    /// Since when.
    pub since: Timestamp,
    /// For how long, unless it is heard of.
    pub expires_in_ms: u64,
}

/// A process that serves a store.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name: another one for each process.
    pub id: String,
    /// Where it listens.
    pub address: String,
    /// Its program's version.
    pub version: String,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub seen_at: Timestamp,
    /// Whether that is too long ago.
    pub is_silent: bool,
}

/// What holds for everything in a store.
#[derive(Clone, Debug)]
pub struct Rules {
    /// For jobs that do not say otherwise.
    pub defaults: Defaults,
    /// What counts as overlap.
    pub counting: Counting,
    /// Whether jobs may tell the server what to answer to heartbeats, as conformance tests do.
    pub directives: bool,
    /// Who is said to have sent events.
    pub source: String,
    /// Where everything that was done is counted.
    pub metrics: Arc<Metrics>,
}

/// Something that is done to a job.
#[derive(Clone, Debug)]
pub enum Change {
    /// It need not wait for anybody's word any longer.
    Activate,
    /// It is done.
    Ack {
        /// Who says so.
        worker_id: Option<String>,
        /// Of which time that it was handed out, if that is said.
        fence: Option<u64>,
        /// What it came to.
        result: Option<Raw>,
    },
    /// Nobody wants it any more.
    Cancel,
    /// It failed.
    Nack(Nack),
    /// It says how far it is.
    Report(Progress),
    /// It is taken out of the dead letters.
    Revive,
    /// The answer that handed it out never reached its worker, so that attempt never was.
    TakeBack {
        /// Which attempt.
        attempt: u32,
    },
}

/// A job after a change.
#[derive(Clone, Debug)]
pub struct Changed {
    /// As it is now.
    pub job: Job,
    /// The state it was in.
    pub before: State,
    /// The attempt it was in.
    pub attempt: u32,
}

/// A worker's wish for work.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Where to look, in this order.
    pub queues: Vec<String>,
    /// How many jobs at most.
    pub count: usize,
    /// Who asks.
    pub worker_id: Option<String>,
    /// For how long the worker may be silent.
    pub visibility_ms: Option<u64>,
}

/// A worker's sign of life.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Who.
    pub worker_id: String,
    /// What it says it is doing.
    pub jobs: Vec<String>,
    /// For how long it may be silent.
    pub visibility_ms: Option<u64>,
    /// What it says about itself.
    pub about: Members,
}

/// The answer to a sign of life.
#[derive(Clone, Debug)]
pub struct Beaten {
    /// What the worker should do.
    pub state: WorkerState,
    /// How many of its jobs were extended.
    pub extended: usize,
    /// Those of its jobs that somebody cancelled.
    pub cancelled: Vec<String>,
    /// Those that it has no more for another reason.
    pub lost: Vec<String>,
}

/// What a worker should do.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// Fetch no more.
    Quiet,
    /// Work.
    #[default]
    Running,
    /// End.
    Terminate,
}

/// A worker that was heard of.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub struct Worker {
    /// Its name.
    pub worker_id: String,
    /// What it should do.
    pub state: WorkerState,
    /// When it was first heard of.
    pub first_seen: Timestamp,
    /// When it was last heard of.
    pub last_seen: Timestamp,
    /// Whether it has been silent for too long.
    pub dead: bool,
    /// What it says it is doing.
    pub active_jobs: Vec<String>,
    /// What it says about itself.
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub about: Members,
}

impl Worker {
    /// Whether it is handed jobs: nobody told it otherwise, and neither does it say so itself.
    #[must_use]
    pub fn takes_jobs(&self) -> bool {
        let said = self.about.value("state");
        let ends = said.as_ref().and_then(|word| word.as_str());
        let ends = ends
            .is_some_and(|word| ["quiet", "terminate", "drain", "draining", "terminating"].contains(&word));
        self.state == WorkerState::Running && !ends
    }
}

/// A queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Whether its jobs are not handed out.
    pub paused: bool,
    /// When it was first heard of.
    pub created_at: Timestamp,
}

/// Which jobs.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// In that state.
    pub state: Option<State>,
    /// Of that queue.
    pub queue: Option<String>,
    /// Of that type.
    pub kind: Option<String>,
    /// Made by that cron job.
    pub cron: Option<String>,
    /// Among the dead letters.
    pub dead: bool,
}

/// Which page of a list.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// How many at most; none for all.
    pub limit: Option<u64>,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// How many to leave out.
    pub offset: u64,
}

/// Which part of a record.
#[derive(Clone, Debug)]
pub struct Span {
    /// From here.
    pub from: Timestamp,
    /// Up to here.
    pub to: Timestamp,
    /// Where the page before ended.
    pub after: Option<Place>,
    /// How many at most.
    pub limit: usize,
}

/// What lies among the dead letters.
#[derive(Clone, Debug, Default)]
pub struct DeadStats {
    /// How many there are.
    pub total: u64,
    /// How many of which queue.
    pub by_queue: Vec<(String, u64)>,
    /// How many for which kind of failure.
    pub by_error_type: Vec<(String, u64)>,
    /// Since when the oldest lies there.
    pub oldest: Option<Timestamp>,
    /// And the newest.
    pub newest: Option<Timestamp>,
}

/// Which events.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// After that one.
    pub after: Option<After>,
    /// Of these kinds; one may end with `*`.
    pub types: Vec<String>,
    /// Of jobs of these queues.
    pub queues: Vec<String>,
    /// Of jobs of these types.
    pub job_types: Vec<String>,
    /// About that job, worker or cron job.
    pub subject: Option<String>,
    /// How many at most.
    pub limit: usize,
}

impl EventQuery {
    /// Whether an event is one of those, wherever it stands.
    #[must_use]
    pub fn wants(&self, event: &Stored) -> bool {
        let among = |list: &[String], value: Option<&String>| {
            list.is_empty() || value.is_some_and(|it| list.contains(it))
        };
        is_among(&event.kind, &self.types)
            && among(&self.queues, event.queue.as_ref())
            && among(&self.job_types, event.job_type.as_ref())
            && self.subject.as_ref().is_none_or(|wanted| *wanted == event.subject)
    }
}

/// A place in the order of events.
#[derive(Clone, Debug)]
pub enum After {
    /// After the event of that id.
    Id(String),
    /// After the event of that number.
    Number(u64),
}

/// Some events.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// In order; each with its number, its id and its kind.
    pub events: Vec<Stored>,
    /// The number up to which was looked.
    pub through: u64,
    /// The id to go on after.
    pub cursor: Option<String>,
    /// Whether there may be more now.
    pub has_more: bool,
}

/// An event as it is kept.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its place in the order.
    pub number: u64,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// The job, queue, worker or cron job it is about.
    pub subject: String,
    /// The queue of that job.
    pub queue: Option<String>,
    /// The type of that job.
    pub job_type: Option<String>,
    /// As it is shown.
    pub body: Box<RawValue>,
}

/// For how long things are kept that nothing depends on any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    /// Jobs that have ended.
    pub jobs_days: u32,
    /// Dead letters.
    pub dead_days: u32,
    /// How many dead letters at most.
    pub dead_max: u64,
    /// Events.
    pub events_days: u32,
    /// How many events at most.
    pub events_max: u64,
    /// The record of occurrences.
    pub occurrences_days: u32,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            jobs_days: 7,
            dead_days: 180,
            dead_max: 10_000,
            events_days: 7,
            events_max: 1_000_000,
            occurrences_days: 90,
        }
    }
}
