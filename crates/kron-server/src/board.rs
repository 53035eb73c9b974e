//! What the dashboard shows of this server, and does to it.
//!
//! The page speaks of jobs where Open Job Spec speaks of cron jobs, and of work where that speaks of jobs.

mod draft;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kron_dashboard::{
    About, Act, Answer, Board, Counts, Draft, Entry, Find, Job, Mark, Node, Output, Page, Permission, Place,
    Preview, Pulse, Queue, Refused, Run, Running, Soon, Trouble, Work, WorkFilter,
};
use kron_schedule::Zone;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::app::App;
use crate::cron::{Compiled, Cron, Kind, Occurrence, Outcome};
use crate::job::{self, State};
use crate::members::Members;
use crate::refusal::Refusal;
use crate::store::{After, Change, Cluster, EventQuery, JobFilter, PageRequest, Span};

/// What a caller may do.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Look.
    pub see: bool,
    /// Run cron jobs.
    pub run: bool,
    /// Change cron jobs, queues and jobs.
    pub change: bool,
}

impl Access {
    /// Everything.
    pub const ALL: Access = Access { see: true, run: true, change: true };

    /// Only looking.
    pub const SEE: Access = Access { see: true, run: false, change: false };

    /// Nothing.
    pub const NONE: Access = Access { see: false, run: false, change: false };
}

/// This server, as one caller sees it. Its methods block, so they are called where that is allowed.
#[derive(Debug)]
pub struct ServerBoard {
    app: Arc<App>,
    access: Access,
    runtime: Handle,
}

/// How many are listed of what runs, what is next and what went wrong.
const LISTED_MAX: usize = 8;

/// How many events are looked through for what went wrong.
const EVENTS_MAX: u64 = 2_000;

/// How many queues are told of.
const QUEUES_MAX: u64 = 100;

/// How many cron jobs are read at once.
const CRONS_STEP: u64 = 1_000;

/// How many of a cron job's latest jobs are asked how they ended.
const JOBS_MAX: u64 = 500;

/// The longest arguments and texts that a list shows.
const TEXT_CHARS_MAX: usize = 2_000;

impl ServerBoard {
    /// The server for a caller who may do that much.
    #[must_use]
    pub fn new(app: Arc<App>, access: Access, runtime: Handle) -> ServerBoard {
        ServerBoard { app, access, runtime }
    }

    /// Waits for the store.
    fn wait<T>(&self, answer: impl Future<Output = Result<T, Refusal>>) -> Answer<T> {
        self.runtime.block_on(answer).map_err(Refused::from)
    }

    fn view(&self, cron: Cron, is_whole: bool) -> Job {
        let compiled = cron.definition.compile(cron.anchor, &self.app.zones);
        view(cron, compiled, is_whole)
    }

    fn cron(&self, name: &str) -> Answer<Cron> {
        let cron = self.wait(self.app.store.cron(name))?;
        cron.ok_or_else(|| Refused::missing("cron job", name))
    }

    /// The latest jobs of a cron job, the newest first.
    fn jobs_of(&self, name: &str, most: u64) -> Answer<Vec<job::Job>> {
        let filter = JobFilter { cron: Some(name.to_owned()), ..JobFilter::default() };
        let page = PageRequest { limit: Some(most), cursor: None, offset: 0 };
        Ok(self.wait(self.app.store.jobs(filter, page, self.app.clock.now()))?.0)
    }

    fn running(&self, queues: &[Queue]) -> Answer<Vec<Running>> {
        let now = self.app.clock.now();
        let busy =
            queues.iter().filter(|queue| queue.states.iter().any(|(state, n)| *state == "active" && *n > 0));
        let mut running = Vec::new();
        for queue in busy {
            let filter = JobFilter {
                state: Some(State::Active),
                queue: Some(queue.name.clone()),
                ..JobFilter::default()
            };
            let page = PageRequest { limit: Some(LISTED_MAX as u64), cursor: None, offset: 0 };
            for job in self.wait(self.app.store.jobs(filter, page, now))?.0 {
                let worker = job.worker_id.as_deref().unwrap_or("a worker without a name");
                running.push(Running {
                    name: job.cron.as_ref().map_or_else(|| job.kind.clone(), |origin| origin.name.clone()),
                    job: job.cron.as_ref().map(|origin| origin.name.clone()),
                    since: job.started_at.unwrap_or(job.created_at),
                    detail: format!(
                        "{}, attempt {} of {}, {worker}",
                        job.kind, job.attempt, job.retry.max_attempts
                    ),
                });
            }
        }
        running.sort_by_key(|running| running.since);
        running.truncate(LISTED_MAX);
        Ok(running)
    }

    fn wrong(&self) -> Answer<Vec<Trouble>> {
        let last = *self.app.store.last_event().borrow();
        let types =
            ["cron.missed", "cron.skipped", "job.failed", "job.discarded"].map(str::to_owned).to_vec();
        let query = EventQuery {
            after: Some(After::Number(last.saturating_sub(EVENTS_MAX))),
            types,
            limit: usize::try_from(EVENTS_MAX).unwrap_or(usize::MAX),
            ..EventQuery::default()
        };
        let events = self.wait(self.app.store.events(query))?;
        let mut found: Vec<Trouble> = Vec::new();
        let mut given_up: Option<(Value, Value)> = None;
        for event in events.events.iter().rev() {
            let Ok(body) = serde_json::from_str::<Value>(event.body.get()) else { continue };
            let of = (body["subject"].clone(), body["time"].clone());
            // The last failure of a job that is given up is told with that.
            if body["type"] == "job.failed" && given_up.as_ref() == Some(&of) {
                continue;
            }
            if body["type"] == "job.discarded" {
                given_up = Some(of);
            }
            let Some(mut trouble) = trouble(&body) else { continue };
            if trouble.job.is_none()
                && let Some(id) = body["subject"].as_str()
                && let Some(job) = self.wait(self.app.store.job(id, self.app.clock.now()))?
                && let Some(origin) = job.cron
            {
                trouble.name.clone_from(&origin.name);
                trouble.job = Some(origin.name);
            }
            found.push(trouble);
            if found.len() == LISTED_MAX {
                break;
            }
        }
        Ok(found)
    }

    fn nodes(&self) -> Answer<Vec<Node>> {
        let now = self.app.clock.now();
        let cluster = self.wait(self.app.store.cluster())?;
        // The leader first, and then those that were heard of last.
        let leads = |id: &str| cluster.leader.as_ref().is_some_and(|leader| leader.node == id);
        let mut known = cluster.nodes.clone();
        known.sort_by_key(|node| (!leads(&node.id), node.is_silent, std::cmp::Reverse(node.seen_at)));
        known.truncate(LISTED_MAX);
        let mut nodes: Vec<Node> = known.iter().map(|node| server_node(node, &cluster, now)).collect();
        if nodes.is_empty() {
            // Whoever has the file is alone with it, and leads without an election.
            nodes.push(self.only_node(&cluster, now));
        } else if cluster.leader.is_none() {
            nodes.push(Node {
                name: "nobody".into(),
                role: "leader".into(),
                well: false,
                seen: None,
                detail: "no server evaluates cron jobs at the moment".into(),
            });
        }
        let page = PageRequest { limit: Some(LISTED_MAX as u64), cursor: None, offset: 0 };
        for worker in self.wait(self.app.store.workers(page))?.0 {
            let state = match (worker.dead, worker.takes_jobs()) {
                (true, _) => "silent for too long",
                (false, true) => "takes jobs",
                (false, false) => "takes no new jobs",
            };
            nodes.push(Node {
                name: worker.worker_id,
                role: "worker".into(),
                well: !worker.dead,
                seen: Some(worker.last_seen),
                detail: format!("{state}, {} at work", worker.active_jobs.len()),
            });
        }
        Ok(nodes)
    }

    /// The only server of its database.
    fn only_node(&self, cluster: &Cluster, now: Timestamp) -> Node {
        let (version, backend) = (env!("CARGO_PKG_VERSION"), self.app.store.backend());
        let lag = lag_of(cluster, now);
        Node {
            name: host_name(),
            role: "leader".into(),
            well: self.wait(self.app.store.ping()).is_ok() && lag.is_none(),
            seen: now.checked_sub(self.app.started.elapsed()).ok(),
            detail: format!("kron-server {version} on {backend}{}", lag.unwrap_or_default()),
        }
    }
}

impl Board for ServerBoard {
    fn about(&self) -> About {
        About {
            product: "kron-server",
            version: env!("CARGO_PKG_VERSION"),
            place: host_name(),
            language: "ojs",
            pauses: true,
            edits: true,
            edits_not: None,
            queues: true,
        }
    }

    fn may(&self, what: Permission) -> bool {
        match what {
            Permission::Change | Permission::Pause => self.access.change,
            Permission::Run => self.access.run,
            Permission::See => self.access.see,
        }
    }

    fn now(&self) -> Timestamp {
        self.app.clock.now()
    }

    fn zone(&self, name: &str) -> Option<Zone> {
        self.app.zones.find(name).ok()
    }

    fn pulse(&self) -> Answer<Pulse> {
        let queues = self.queues()?;
        let count = |wanted: &str| -> u64 {
            let states = queues.iter().flat_map(|queue| &queue.states);
            states.filter(|(state, _)| *state == wanted).map(|(_, n)| n).sum()
        };
        let one = PageRequest { limit: Some(1), cursor: None, offset: 0 };
        let all = self.wait(self.app.store.find_crons("", one.clone()))?.1.total;
        let paused = self.wait(self.app.store.crons(Some(false), one))?.1.total;
        let soon = self.wait(self.app.store.soonest_crons(LISTED_MAX))?;
        let soon = soon.into_iter().filter_map(|cron| {
            let name = cron.definition.name;
            Some(Soon { job: name.clone(), name, at: cron.next_run_at? })
        });
        Ok(Pulse {
            running: self.running(&queues)?,
            next: soon.collect(),
            wrong: self.wrong()?,
            nodes: self.nodes()?,
            counts: Counts {
                jobs: all,
                paused: Some(paused),
                running: count("active"),
                waiting: Some(count("available")),
                retrying: Some(count("retryable")),
                dead: Some(self.wait(self.app.store.dead_stats())?.total),
            },
        })
    }

    fn jobs(&self, find: &Find) -> Answer<Page<Job>> {
        let page = PageRequest { limit: Some(find.limit as u64), cursor: None, offset: find.offset as u64 };
        let (crons, page) = self.wait(self.app.store.find_crons(&find.search, page))?;
        let names = crons.iter().map(|cron| cron.definition.name.clone()).collect();
        let latest = self.wait(self.app.store.latest_jobs(names))?;
        let mut rows: Vec<Job> = crons.into_iter().map(|cron| self.view(cron, false)).collect();
        for work in &latest {
            let made_by = work.cron.as_ref().map(|origin| origin.name.as_str());
            for row in rows.iter_mut().filter(|row| Some(row.id.as_str()) == made_by) {
                row.last_mark = Some(mark_of_work(work));
            }
        }
        Ok(Page { rows, total: page.total, offset: find.offset, limit: find.limit })
    }

    fn job(&self, id: &str) -> Answer<Option<Job>> {
        let Some(cron) = self.wait(self.app.store.cron(id))? else { return Ok(None) };
        let mut job = self.view(cron, true);
        let latest = self.jobs_of(id, JOBS_MAX)?;
        job.active = Some(latest.iter().filter(|work| work.state == State::Active).count());
        job.last_mark = latest.iter().find(|work| work.started_at.is_some()).map(mark_of_work);
        Ok(Some(job))
    }

    fn some_jobs(&self, from: Option<&str>) -> Answer<(Vec<Job>, Option<String>)> {
        let page = PageRequest { limit: Some(CRONS_STEP), cursor: from.map(str::to_owned), offset: 0 };
        let (crons, page) = self.wait(self.app.store.crons(None, page))?;
        Ok((crons.into_iter().map(|cron| self.view(cron, false)).collect(), page.next))
    }

    fn record(&self, id: &str, place: &Place) -> Answer<Vec<Entry>> {
        let span = Span { from: place.from, to: place.to, after: None, limit: place.most };
        let found = self.wait(self.app.store.latest_occurrences(id, span))?;
        if found.iter().all(|occurrence| occurrence.job_id.is_none()) {
            return Ok(found.into_iter().map(|occurrence| entry(occurrence, None)).collect());
        }
        let mut latest = self.jobs_of(id, JOBS_MAX)?;
        latest.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let work = |occurrence: &Occurrence| {
            let id = occurrence.job_id.as_ref()?;
            latest.binary_search_by(|job| job.id.cmp(id)).ok().map(|at| &latest[at])
        };
        Ok(found
            .into_iter()
            .map(|occurrence| (work(&occurrence), occurrence))
            .map(|(job, it)| entry(it, job))
            .collect())
    }

    fn runs(&self, id: &str, most: usize) -> Answer<Vec<Run>> {
        Ok(self.jobs_of(id, most as u64)?.iter().map(run).collect())
    }

    fn output(&self, _: &str, run: &str) -> Answer<Option<Output>> {
        let job = self.wait(self.app.store.job(run, self.app.clock.now()))?;
        Ok(job.and_then(|job| output(&job)))
    }

    fn preview(&self, draft: &Draft) -> Answer<Preview> {
        let stored = draft.id.as_deref().map(|id| self.cron(id)).transpose()?;
        draft::preview(draft, stored.as_ref(), &self.app.zones, self.app.clock.now())
    }

    fn save(&self, draft: &Draft) -> Answer<String> {
        let stored = draft.id.as_deref().map(|id| self.cron(id)).transpose()?;
        let now = self.app.clock.now();
        let registration = draft::registration(draft, stored.as_ref(), &self.app.zones, now)?;
        let name = registration.definition.name.clone();
        if stored.is_none() && self.wait(self.app.store.cron(&name))?.is_some() {
            let message = format!("there is a cron job called `{name}` already");
            let refused =
                Refused::new(409, "conflict", message).hint("choose another name, or edit that one");
            return Err(Refused { field: Some("name".into()), ..refused });
        }
        let (cron, ..) = self.wait(self.app.store.register(registration, now))?;
        Ok(cron.definition.name)
    }

    fn act(&self, act: &Act) -> Answer<String> {
        let now = self.app.clock.now();
        let store = &self.app.store;
        let change = |id: &str, change: Change| self.wait(store.change(id, change, now));
        match act {
            Act::Run { job } => {
                let made = self.wait(store.run(job, now))?;
                let made = made.ok_or_else(|| Refused::missing("cron job", job))?;
                Ok(format!("{job} has a job more, in the queue {}", made.queue))
            }
            Act::Pause { job } | Act::Resume { job } => {
                let enabled = matches!(act, Act::Resume { .. });
                let mut members = Members::default();
                members.put("enabled", &enabled);
                self.wait(store.patch(job, members, now))?;
                Ok(format!("{job} {}", if enabled { "runs again" } else { "is paused" }))
            }
            Act::PauseQueue { queue } | Act::ResumeQueue { queue } => {
                let paused = matches!(act, Act::PauseQueue { .. });
                self.wait(store.pause(queue, paused, now))?;
                let words = if paused { "hands out no more jobs" } else { "hands out jobs again" };
                Ok(format!("the queue {queue} {words}"))
            }
            Act::Cancel { work } => change(work, Change::Cancel).map(|_| "the job is cancelled".into()),
            Act::Requeue { work } => change(work, Change::Revive).map(|_| "the job is tried anew".into()),
            Act::Discard { work } => {
                self.wait(store.delete_dead(work, now))?;
                Ok("the dead letter is gone".into())
            }
        }
    }

    fn queues(&self) -> Answer<Vec<Queue>> {
        let page = PageRequest { limit: Some(QUEUES_MAX), cursor: None, offset: 0 };
        let (queues, _) = self.wait(self.app.store.queues(page))?;
        let now = self.app.clock.now();
        queues
            .into_iter()
            .map(|queue| {
                let (queue, states) = self.wait(self.app.store.queue_stats(&queue.name, now))?;
                let states = states.into_iter().map(|(state, n)| (state.name(), n)).collect();
                Ok(Queue { name: queue.name, paused: queue.paused, states })
            })
            .collect()
    }

    fn work(&self, filter: &WorkFilter) -> Answer<Page<Work>> {
        let state = match &filter.state {
            None => None,
            Some(word) => {
                let state = State::ALL.into_iter().find(|state| state.name() == word);
                Some(state.ok_or_else(|| Refused::wrong("state", "a state such as available", word))?)
            }
        };
        let of = JobFilter {
            state,
            queue: filter.queue.clone(),
            kind: None,
            cron: filter.job.clone(),
            dead: filter.dead,
        };
        let page =
            PageRequest { limit: Some(filter.limit as u64), cursor: None, offset: filter.offset as u64 };
        let (jobs, page) = self.wait(self.app.store.jobs(of, page, self.app.clock.now()))?;
        let rows = jobs.iter().map(work).collect();
        Ok(Page { rows, total: page.total, offset: filter.offset, limit: filter.limit })
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let detail = |name: &str| refusal.details.get(name).and_then(Value::as_str).map(str::to_owned);
        Refused {
            status: refusal.code.status(),
            code: refusal.code.name(),
            field: detail("field").map(|field| draft::field_of(&field).to_owned()),
            excerpt: detail("excerpt").and_then(|text| draft::place_in(&text)),
            hint: Some(refusal.hint.unwrap_or_else(|| refusal.code.hint().to_owned())),
            message: refusal.message,
        }
    }
}

/// How long something may have been due before that is worth a word.
const LAG_MIN: SignedDuration = SignedDuration::from_secs(5);

/// How far whoever evaluates cron jobs is behind, in words, if that is worth any.
fn lag_of(cluster: &Cluster, now: Timestamp) -> Option<String> {
    let lag = cluster.next_look.map(|look| now.duration_since(look))?;
    (lag >= LAG_MIN).then(|| format!(", {} s behind", lag.as_secs()))
}

/// A server as the dashboard shows it: whether it leads, and how far behind it is if it does.
fn server_node(node: &crate::store::Node, cluster: &Cluster, now: Timestamp) -> Node {
    let leading = cluster.leader.as_ref().filter(|leader| leader.node == node.id);
    let lag = lag_of(cluster, now).filter(|_| leading.is_some());
    let mut detail = format!("kron-server {}, {}", node.version, node.address);
    if let Some(leader) = leading {
        detail += &format!(
            ", evaluates cron jobs since {}, epoch {}",
            crate::times::stamp(leader.since),
            leader.epoch
        );
    }
    detail += lag.as_deref().unwrap_or_default();
    if node.id == cluster.node {
        detail += ", serves this page";
    }
    if node.is_silent {
        detail += ", silent for too long";
    }
    Node {
        name: node.id.clone(),
        role: if leading.is_some() { "leader" } else { "node" }.into(),
        well: !node.is_silent && lag.is_none(),
        seen: Some(node.seen_at),
        detail,
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn view(cron: Cron, compiled: Result<Compiled, Refusal>, is_whole: bool) -> Job {
    let definition = is_whole.then(|| draft::fields(&cron));
    let mut facts = Vec::new();
    if is_whole {
        facts.push(("Type", cron.definition.kind.clone()));
        if let Some(Value::String(queue)) = cron.definition.options.value("queue") {
            facts.push(("Queue", queue));
        }
        facts.push(("When one is still active", cron.definition.overlap.name().replace('_', " ")));
        if let Ok(compiled) = &compiled {
            let plan = &compiled.plan;
            if plan.window().duration().as_seconds() > 0 {
                facts.push(("Window", plan.window().to_string()));
                facts.push(("Distribution", plan.distribution().to_string()));
            }
            if !plan.constraints().is_empty() {
                facts.push(("Constraints", plan.constraints().to_string()));
            }
            if let Some(deadline) = plan.policy().deadline {
                facts.push(("Deadline", deadline.to_string()));
            }
        }
        facts.push(("Times fired", cron.run_count.to_string()));
        facts.push(("Registered", cron.created_at.strftime("%Y-%m-%d %H:%M UTC").to_string()));
    }
    let (plan, words, held) = match compiled {
        Ok(compiled) => (Some(compiled.plan), compiled.expr.describe(), None),
        Err(refusal) => (None, String::new(), Some(refusal.message)),
    };
    Job {
        id: cron.definition.name.clone(),
        name: cron.definition.name,
        description: cron.definition.description,
        schedule: cron.definition.cron,
        words,
        zone: cron.definition.timezone,
        paused: !cron.enabled,
        // Each occurrence of a disabled job is recorded, and enabling counts from then on.
        paused_since: None,
        on_resume: None,
        held,
        next: cron.next_run_at,
        last: cron.last_run_at,
        last_mark: None,
        active: None,
        facts,
        definition,
        plan,
        handled: cron.watermark,
        pending: cron.pending,
    }
}

/// How a job is doing.
fn mark_of_work(job: &job::Job) -> Mark {
    match job.state {
        State::Active => Mark::Running,
        State::Available | State::Pending | State::Scheduled => Mark::Waiting,
        State::Cancelled => Mark::Cancelled,
        State::Completed => Mark::Succeeded,
        State::Discarded => Mark::Failed,
        State::Retryable => Mark::Retrying,
    }
}

fn entry(occurrence: Occurrence, job: Option<&job::Job>) -> Entry {
    let mark = match occurrence.outcome {
        Outcome::Executed => job.map_or(Mark::Executed, mark_of_work),
        Outcome::Missed => Mark::Missed,
        Outcome::Skipped => Mark::Skipped,
        Outcome::Unschedulable => Mark::Unschedulable,
    };
    let error = job.and_then(|job| job.error.as_ref()).map(|failure| failure.message.clone());
    let mut why = match (mark, error) {
        (Mark::Failed | Mark::Retrying, Some(error)) => error,
        _ => occurrence.reason.words().to_owned(),
    };
    if !occurrence.civil.is_empty() {
        why = format!("{why}: {}", occurrence.civil.join(", "));
    }
    Entry {
        nominal: occurrence.scheduled,
        last: occurrence.last.filter(|_| occurrence.kind != Kind::One),
        count: occurrence.count,
        at_least: occurrence.at_least,
        chosen: occurrence.chosen,
        mark,
        why,
        at: Some(occurrence.actual),
        run: occurrence.job_id,
        seed_hash: occurrence.seed_hash,
    }
}

fn ended(job: &job::Job) -> Option<Timestamp> {
    job.completed_at.or(job.cancelled_at).or(job.discarded_at)
}

fn run(job: &job::Job) -> Run {
    let mut detail = format!("attempt {} of {}", job.attempt, job.retry.max_attempts);
    if let Some(failure) = &job.error {
        detail = format!("{detail}; {}: {}", failure.kind, failure.message);
    }
    Run {
        id: job.id.clone(),
        nominal: job.cron.as_ref().and_then(|origin| origin.scheduled),
        mark: mark_of_work(job),
        started: job.started_at,
        ended: ended(job),
        detail: cut(&detail),
        has_output: job.result.is_some() || !job.errors.is_empty(),
    }
}

/// What a job's workers have said: its result, and each of its failures.
fn output(job: &job::Job) -> Option<Output> {
    let mut text = String::new();
    for failure in &job.errors {
        text.push_str(&format!("attempt {}: {}: {}\n", failure.attempt, failure.kind, failure.message));
        for more in [&failure.backtrace, &failure.details].into_iter().flatten() {
            // A text is shown as it was meant, with its lines.
            let said = serde_json::from_str::<String>(more.get()).unwrap_or_else(|_| more.get().to_owned());
            text.push_str(&said);
            text.push('\n');
        }
    }
    if let Some(result) = &job.result {
        text.push_str(
            &serde_json::from_str::<String>(result.get()).unwrap_or_else(|_| result.get().to_owned()),
        );
    }
    let note = format!("what workers reported of the job {}", job.id);
    (!text.is_empty()).then_some(Output { text, note })
}

fn work(job: &job::Job) -> Work {
    Work {
        id: job.id.clone(),
        kind: job.kind.clone(),
        queue: job.queue.clone(),
        state: job.state.name(),
        job: job.cron.as_ref().map(|origin| origin.name.clone()),
        attempt: job.attempt,
        attempts: job.retry.max_attempts,
        created: job.created_at,
        started: job.started_at,
        ended: ended(job),
        next: job.next_attempt_at,
        worker: job.worker_id.clone(),
        error: job.error.as_ref().map(|failure| cut(&format!("{}: {}", failure.kind, failure.message))),
        args: cut(job.args.get()),
        dead: job.dead,
    }
}

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(TEXT_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// What an event says that went wrong.
fn trouble(event: &Value) -> Option<Trouble> {
    let data = &event["data"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let at = event["time"].as_str()?.parse().ok()?;
    let cron = text(&data["cron_name"]);
    let many = data["count"].as_u64().filter(|count| *count > 1);
    let times = many.map_or(String::new(), |count| format!("{count} times: "));
    let (mark, why) = match event["type"].as_str()? {
        "cron.missed" => (Mark::Missed, times + reason(data["reason"].as_str()?)),
        // What is paused is left out on purpose.
        "cron.skipped" if data["reason"] == "disabled" => return None,
        "cron.skipped" => (Mark::Skipped, times + reason(data["reason"].as_str()?)),
        "job.failed" => {
            let error = &data["error"];
            let message = format!("{}: {}", error["type"].as_str()?, error["message"].as_str()?);
            (Mark::Retrying, format!("attempt {}: {}", data["attempt"], cut(&message)))
        }
        "job.discarded" => {
            let last = data["last_error"]["message"].as_str().unwrap_or("nothing was said");
            (Mark::Failed, format!("given up after attempt {}: {}", data["total_attempts"], cut(last)))
        }
        _ => return None,
    };
    let name = cron.clone().or_else(|| text(&data["job_type"])).or_else(|| text(&event["subject"]))?;
    Some(Trouble { at, job: cron, name, mark, why })
}

/// A reason in words.
fn reason(name: &str) -> &str {
    use crate::cron::Reason;
    let all = [
        Reason::DeadlinePassed,
        Reason::Disabled,
        Reason::DstSkip,
        Reason::OverlapSkip,
        Reason::PassedOver,
        Reason::Rescheduled,
        Reason::Triggered,
        Reason::Unschedulable,
    ];
    all.into_iter().find(|reason| reason.name() == name).map_or(name, |reason| reason.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Leading, Node as Server};

    #[test]
    fn a_server_is_shown_with_its_reign_and_how_far_it_is_behind() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-03-01T12:00:10Z");
        let server = |id: &str, is_silent: bool| Server {
            id: id.into(),
            address: "10.0.0.1:8080".into(),
            version: "1".into(),
            started_at: at("2026-03-01T11:00:00Z"),
            seen_at: now,
            is_silent,
        };
        let cluster = |look: &str| Cluster {
            node: "b".into(),
            leader: Some(Leading {
                node: "a".into(),
                epoch: 7,
                since: at("2026-03-01T11:30:00Z"),
                expires_in_ms: 9_000,
            }),
            nodes: Vec::new(),
            next_look: Some(at(look)),
        };
        let shown = |id: &str, is_silent: bool, look: &str| {
            let node = server_node(&server(id, is_silent), &cluster(look), now);
            (node.role, node.well, node.detail)
        };
        let leads = "kron-server 1, 10.0.0.1:8080, evaluates cron jobs since 2026-03-01T11:30:00Z, epoch 7";
        assert_eq!(shown("a", false, "2026-03-01T12:00:09Z"), ("leader".into(), true, leads.into()));
        let behind = format!("{leads}, 10 s behind");
        assert_eq!(shown("a", false, "2026-03-01T12:00:00Z"), ("leader".into(), false, behind));
        let plain = "kron-server 1, 10.0.0.1:8080, serves this page";
        assert_eq!(shown("b", false, "2026-03-01T12:00:00Z"), ("node".into(), true, plain.into()));
        let silent = "kron-server 1, 10.0.0.1:8080, silent for too long";
        assert_eq!(shown("c", true, "2026-03-01T12:00:00Z"), ("node".into(), false, silent.into()));
    }
}
