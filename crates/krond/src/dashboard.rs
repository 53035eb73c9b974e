//! What the dashboard shows of a krond, by asking it at its control socket like anybody else.
//!
//! There is no HTTP in the daemon. This is for a process of its own, which needs no more rights than to ask: where
//! krond is root's, root hands it a [`Line`] that passes on nothing but questions and, if allowed, runs and pauses.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kron_core::PeriodId;
use kron_dashboard::serve::Changing;
use kron_dashboard::{
    About, Act, Answer, Board, Counts, Draft, Entry as Settled, Find, Job, Mark, NEXT_MAX, Node, Output,
    Page, Permission, Place, Preview, Pulse, Queue, Refused, Run, Running, Soon, Trouble, Warning, Work,
    WorkFilter,
};
use kron_schedule::Zone;
use krontab::{Entry, Krontab, Source, Zones};
use rustix::fs::{Mode, OFlags};
use serde::de::DeserializeOwned;

use crate::clock;
use crate::console::exit_words;
use crate::control::{self, Answer as Said, Request};
use crate::view::{JobView, RecordView, StatusView, WhatView, reason_words};

/// How many are listed of what runs, what is next and what went wrong.
const LISTED_MAX: usize = 8;

/// How many records are looked through for what went wrong, and for runs.
const RECORDS_MAX: usize = 600;

/// For how long what krond said of its jobs is good, and what its krontabs say.
const JOBS_KEPT: Duration = Duration::from_millis(500);
const KRONTABS_KEPT: Duration = Duration::from_secs(5);

/// How often krond is asked whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How many jobs are handed out at once.
const JOBS_STEP: usize = 1_000;

/// How much of the end of a file is shown.
const TAIL_BYTES: u64 = 16 * 1024;

/// The longest answer that is passed on.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// The way to krond.
#[derive(Debug)]
pub enum Line {
    /// Its control socket, in its state directory.
    Socket(PathBuf),
    /// Somebody who passes questions on.
    Relay(Mutex<UnixStream>),
}

impl Line {
    fn ask(&self, request: &Request) -> io::Result<Option<Said>> {
        match self {
            Line::Socket(state_dir) => control::ask(state_dir, request),
            Line::Relay(stream) => {
                let stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                send(&stream, request)?;
                let answer: Option<Said> = receive(&stream)?;
                Ok(answer)
            }
        }
    }
}

fn send(mut stream: &UnixStream, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// One line, and not a byte more: another reads the next.
fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<T> {
    let mut line = Vec::new();
    // Each side says one thing at a time, so what follows a line is nothing.
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Passes questions on to krond until nobody asks any more. Whatever is not a question is refused, and so are runs and pauses
/// unless they are allowed: who asks may be anybody that a browser can be made to be.
///
/// # Errors
///
/// If the other side cannot be heard any more.
pub fn relay(stream: &UnixStream, state_dir: &Path, may_run: bool) -> io::Result<()> {
    loop {
        let request: Request = match receive(stream) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            request => request?,
        };
        let is_allowed = match &request {
            Request::Status | Request::Jobs { .. } | Request::Records { .. } => true,
            Request::Run { .. } | Request::Pause { .. } | Request::Resume { .. } => may_run,
            Request::Metrics | Request::AcceptClock { .. } | Request::Reload | Request::Stop { .. } => false,
        };
        let answer = if is_allowed {
            // A krond that fails to answer may answer the next time.
            control::ask(state_dir, &request).unwrap_or_else(|error| Some(Said::error(error.to_string())))
        } else {
            Some(Said::error("the dashboard may not ask for that"))
        };
        send(stream, &answer)?;
    }
}

/// A krond as the dashboard sees it.
#[derive(Debug)]
pub struct HostBoard {
    line: Line,
    may_run: bool,
    zones: Zones,
    jobs: Mutex<Option<(Instant, Arc<Vec<JobView>>)>>,
    krontabs: Mutex<Option<(Instant, Arc<Krontabs>)>>,
    /// What krond had recorded when it was last asked, and when that was.
    recorded: (Mutex<(Option<Instant>, u64)>, Condvar),
}

/// What the krontabs say, by identities.
#[derive(Debug)]
struct Krontabs {
    entries: HashMap<String, Arc<Entry>>,
    error: Option<String>,
}

impl HostBoard {
    /// The krond at the other end.
    #[must_use]
    pub fn new(line: Line, may_run: bool) -> HostBoard {
        HostBoard {
            line,
            may_run,
            zones: Zones::system(),
            jobs: Mutex::default(),
            krontabs: Mutex::default(),
            recorded: Default::default(),
        }
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> Answer<T> {
        let lost =
            |message: String| Refused::new(503, "unavailable", message).hint("`krond status` tells more");
        let answer =
            self.line.ask(request).map_err(|error| lost(format!("krond does not answer: {error}")))?;
        let answer = answer.ok_or_else(|| lost("no krond is running there".into()))?;
        if !answer.ok {
            let message = answer.error.unwrap_or_else(|| "krond gave no reason".into());
            let status = if message.starts_with("job not found") { 404 } else { 409 };
            return Err(Refused::new(status, "refused", message));
        }
        serde_json::from_value(answer.result)
            .map_err(|error| lost(format!("could not understand krond's answer: {error}")))
    }

    fn all(&self) -> Answer<Arc<Vec<JobView>>> {
        let mut kept = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, jobs)) = kept.as_ref().filter(|(at, _)| at.elapsed() < JOBS_KEPT) {
            return Ok(Arc::clone(jobs));
        }
        let mut jobs: Vec<JobView> = self.ask(&Request::Jobs { job: None })?;
        jobs.sort_by(|a, b| (&a.name, &a.identity).cmp(&(&b.name, &b.identity)));
        let jobs = Arc::new(jobs);
        *kept = Some((instant(), Arc::clone(&jobs)));
        Ok(jobs)
    }

    fn krontabs(&self) -> Answer<Arc<Krontabs>> {
        let mut kept = self.krontabs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, krontabs)) = kept.as_ref().filter(|(at, _)| at.elapsed() < KRONTABS_KEPT) {
            return Ok(Arc::clone(krontabs));
        }
        let status: StatusView = self.ask(&Request::Status)?;
        let krontabs = match read_krontabs(Path::new(&status.config), &self.zones) {
            Ok(entries) => Krontabs { entries, error: None },
            Err(error) => {
                let error = format!("the dashboard cannot read {}: {error}", status.config);
                Krontabs { entries: HashMap::new(), error: Some(error) }
            }
        };
        let krontabs = Arc::new(krontabs);
        *kept = Some((instant(), Arc::clone(&krontabs)));
        Ok(krontabs)
    }

    fn records(&self, job: Option<&str>, place: &Place) -> Answer<Vec<RecordView>> {
        let (from, to) = (Some(place.from), Some(place.to));
        self.ask(&Request::Records { job: job.map(str::to_owned), from, to, count: place.most })
    }

    fn find(&self, id: &str) -> Answer<Option<JobView>> {
        Ok(self.all()?.iter().find(|job| job.identity == id).cloned())
    }
}

/// When something was asked, to know how old an answer is.
#[expect(clippy::disallowed_methods, reason = "this process schedules nothing")]
fn instant() -> Instant {
    Instant::now()
}

/// What krontabs say, whether krond would trust them or not: it has already said which jobs it has.
fn read_krontabs(path: &Path, zones: &Zones) -> io::Result<HashMap<String, Arc<Entry>>> {
    let files = if path.metadata()?.is_dir() {
        let names = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        names
            .into_iter()
            .filter(|file| krontab::Directory::reads(&file.file_name()))
            .map(|file| file.path())
            .collect()
    } else {
        vec![path.to_owned()]
    };
    let mut entries = HashMap::new();
    for file in files {
        let Ok(source) = Source::new(&file) else { continue };
        let parsed = Krontab::parse_bytes(&fs::read(&file)?, &source, zones);
        entries
            .extend(parsed.entries.into_iter().map(|entry| (entry.identity().to_owned(), Arc::new(entry))));
    }
    Ok(entries)
}

impl Changing for HostBoard {
    /// One of those who wait asks krond, and tells the others.
    fn changed(&self, seen: Option<u64>, within: Duration) -> u64 {
        let until = instant() + within;
        let (state, told) = &self.recorded;
        let mut known = state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if known.0.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
                known.0 = Some(instant());
                drop(known);
                let status: Answer<StatusView> = self.ask(&Request::Status);
                known = state.lock().unwrap_or_else(PoisonError::into_inner);
                // A run that ends is recorded, and so is one that begins. Another krond is something new too.
                let recorded = status.map_or(0, |status| {
                    status.recorded.wrapping_add(u64::from(status.pid) << 32).wrapping_add(1)
                });
                if known.1 != recorded {
                    known.1 = recorded;
                    told.notify_all();
                }
            }
            if seen != Some(known.1) || instant() >= until {
                return known.1;
            }
            known = told.wait_timeout(known, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Board for HostBoard {
    fn about(&self) -> About {
        About {
            product: "krond",
            version: env!("CARGO_PKG_VERSION"),
            place: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            language: "krontab",
            pauses: true,
            edits: false,
            edits_not: Some(
                "Jobs are written in krontabs: change the file, and krond takes it over with `krond reload`.",
            ),
            queues: false,
        }
    }

    fn may(&self, what: Permission) -> bool {
        match what {
            Permission::Change => false,
            Permission::Pause | Permission::Run => self.may_run,
            Permission::See => true,
        }
    }

    fn now(&self) -> Timestamp {
        clock::now().wall
    }

    fn zone(&self, name: &str) -> Option<Zone> {
        self.zones.find(name).ok()
    }

    fn pulse(&self) -> Answer<Pulse> {
        let status: StatusView = self.ask(&Request::Status)?;
        let jobs = self.all()?;
        let mut running: Vec<Running> = Vec::new();
        let mut next: Vec<Soon> = Vec::new();
        for job in jobs.iter() {
            running.extend(job.active.iter().map(|run| Running {
                job: Some(job.identity.clone()),
                name: job.name.clone(),
                since: run.started_at,
                detail: format!("process {}, {}", run.pid, run.run),
            }));
            let chosen = job.next.as_ref().and_then(|next| next.chosen);
            next.extend(chosen.map(|at| Soon { job: job.identity.clone(), name: job.name.clone(), at }));
        }
        running.sort_by_key(|run| run.since);
        next.sort_by_key(|soon| soon.at);
        running.truncate(LISTED_MAX);
        next.truncate(LISTED_MAX);
        let place = Place { from: Timestamp::MIN, to: Timestamp::MAX, most: RECORDS_MAX };
        let held = status.held.iter().map(|held| Trouble {
            at: self.now(),
            job: Some(held.identity.clone()),
            name: name_of(&held.identity),
            mark: Mark::Unschedulable,
            why: format!("held: could not {}: {}", held.operation, held.error),
        });
        let wrong =
            held.chain(self.records(None, &place)?.iter().filter_map(trouble)).take(LISTED_MAX).collect();
        let daemon = Node {
            name: format!("krond, process {}", status.pid),
            role: "daemon".into(),
            well: status.held.is_empty(),
            seen: Some(status.started_at),
            detail: format!("krontabs in {}, zones from {}", status.config, status.zones),
        };
        Ok(Pulse {
            running,
            next,
            wrong,
            nodes: vec![daemon],
            counts: Counts {
                jobs: status.jobs as u64,
                paused: Some(jobs.iter().filter(|job| is_paused(job)).count() as u64),
                running: status.active as u64,
                ..Counts::default()
            },
        })
    }

    fn jobs(&self, find: &Find) -> Answer<Page<Job>> {
        let (all, krontabs) = (self.all()?, self.krontabs()?);
        let found: Vec<&JobView> = all.iter().filter(|job| job.identity.contains(&find.search)).collect();
        let total = found.len() as u64;
        let rows =
            found.into_iter().skip(find.offset).take(find.limit).map(|job| view(job, &krontabs)).collect();
        Ok(Page { rows, total, offset: find.offset, limit: find.limit })
    }

    fn job(&self, id: &str) -> Answer<Option<Job>> {
        let krontabs = self.krontabs()?;
        Ok(self.find(id)?.map(|job| view(&job, &krontabs)))
    }

    fn some_jobs(&self, from: Option<&str>) -> Answer<(Vec<Job>, Option<String>)> {
        let (all, krontabs) = (self.all()?, self.krontabs()?);
        // They are in the order of names and identities, so that whoever comes or goes meanwhile moves no other.
        let place = |job: &JobView| format!("{} {}", job.name, job.identity);
        let begin = from.map_or(0, |from| all.partition_point(|job| place(job).as_str() <= from));
        let some: Vec<&JobView> = all.iter().skip(begin).take(JOBS_STEP).collect();
        let next = some.last().filter(|_| begin + some.len() < all.len()).map(|job| place(job));
        Ok((some.into_iter().map(|job| view(job, &krontabs)).collect(), next))
    }

    fn record(&self, id: &str, place: &Place) -> Answer<Vec<Settled>> {
        // A period has up to two records: what became of it, and how its run ended.
        let most = place.most.saturating_mul(2);
        let records = self.records(Some(id), &Place { most, ..place.clone() })?;
        let ended: HashMap<&str, Option<i32>> = records
            .iter()
            .filter_map(|record| match &record.what {
                WhatView::Completed { run, exit, .. } => Some((run.as_str(), *exit)),
                _ => None,
            })
            .collect();
        let running = self.find(id)?.map(|job| job.active).unwrap_or_default();
        let is_running = |run: &str| running.iter().any(|active| active.run == run);
        let settled = records.iter().filter_map(|record| settled(record, &ended, is_running));
        Ok(settled.take(place.most).collect())
    }

    fn runs(&self, id: &str, most: usize) -> Answer<Vec<Run>> {
        let place =
            Place { from: Timestamp::MIN, to: Timestamp::MAX, most: most.saturating_mul(3).max(RECORDS_MAX) };
        let records = self.records(Some(id), &place)?;
        let has_output = self.krontabs()?.entries.get(id).is_some_and(|entry| output_file(entry).is_some());
        let active = self.find(id)?.map(|job| job.active).unwrap_or_default();
        let active = active.into_iter().map(|run| Run {
            nominal: nominal(&run.run),
            mark: Mark::Running,
            started: Some(run.started_at),
            ended: None,
            detail: format!("process {}", run.pid),
            has_output,
            id: run.run,
        });
        let ended = records.into_iter().filter_map(|record| match record.what {
            WhatView::Completed { run, pid, exit, started_at, ended_at } => {
                let words = exit.map_or_else(|| "nobody saw how it ended".into(), exit_words);
                let pid = pid.map_or(String::new(), |pid| format!(", process {pid}"));
                Some(Run {
                    nominal: nominal(&run),
                    mark: mark_of(exit),
                    started: Some(started_at),
                    ended: Some(ended_at),
                    detail: format!("{words}{pid}"),
                    has_output,
                    id: run,
                })
            }
            _ => None,
        });
        Ok(active.chain(ended).take(most).collect())
    }

    fn output(&self, id: &str, _: &str) -> Answer<Option<Output>> {
        let krontabs = self.krontabs()?;
        let Some(path) = krontabs.entries.get(id).and_then(|entry| output_file(entry)) else {
            return Ok(None);
        };
        let text = tail(path).map_err(|error| {
            Refused::new(409, "unreadable", format!("the dashboard cannot read {}: {error}", path.display()))
        })?;
        let note = format!("the end of {}, where all of its runs write", path.display());
        Ok(Some(Output { text, note }))
    }

    fn preview(&self, draft: &Draft) -> Answer<Preview> {
        let status: StatusView = self.ask(&Request::Status)?;
        preview(draft, Path::new(&status.config), &self.zones, self.now())
    }

    fn save(&self, _: &Draft) -> Answer<String> {
        Err(unchangeable())
    }

    fn act(&self, act: &Act) -> Answer<String> {
        let (job, request, done) = match act {
            Act::Run { job } => (job, Request::Run { job: job.clone() }, "is started"),
            Act::Pause { job } => (job, Request::Pause { job: job.clone() }, "is paused"),
            Act::Resume { job } if self.find(job)?.is_some_and(|job| job.suspended) => {
                let message = format!("{} is suspended by its line in the krontab", name_of(job));
                return Err(Refused::new(409, "krontab", message)
                    .hint("take `suspend=true` away, then `krond reload`"));
            }
            Act::Resume { job } => (job, Request::Resume { job: job.clone() }, "runs again"),
            _ => return Err(unchangeable()),
        };
        let _: serde_json::Value = self.ask(&request)?;
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(format!("{} {done}", name_of(job)))
    }

    fn queues(&self) -> Answer<Vec<Queue>> {
        Ok(Vec::new())
    }

    fn work(&self, filter: &WorkFilter) -> Answer<Page<Work>> {
        Ok(Page { rows: Vec::new(), total: 0, offset: filter.offset, limit: filter.limit })
    }
}

fn unchangeable() -> Refused {
    Refused::new(409, "krontab", "jobs of krond are changed in their krontab")
        .hint("edit the file, then `krond reload`")
}

fn name_of(identity: &str) -> String {
    identity.rsplit_once(':').map_or(identity, |(_, name)| name).to_owned()
}

fn is_paused(job: &JobView) -> bool {
    job.suspended || job.paused_since.is_some()
}

fn nominal(run: &str) -> Option<Timestamp> {
    run.parse::<PeriodId>().ok().map(PeriodId::nominal)
}

fn mark_of(exit: Option<i32>) -> Mark {
    match exit {
        Some(0) => Mark::Succeeded,
        Some(_) => Mark::Failed,
        None => Mark::Executed,
    }
}

fn view(job: &JobView, krontabs: &Krontabs) -> Job {
    let entry = krontabs.entries.get(&job.identity);
    let mut facts = vec![("Krontab", format!("{}, line {}", krontab_of(&job.identity), job.line))];
    if let Some(entry) = entry {
        let plan = &entry.job;
        if plan.window().duration().as_seconds() > 0 {
            facts.push(("Window", plan.window().to_string()));
            facts.push(("Distribution", plan.distribution().to_string()));
        }
        if !plan.constraints().is_empty() {
            facts.push(("Constraints", plan.constraints().to_string()));
        }
        facts.push(("When one is still active", overlap_words(plan.policy().overlap).to_owned()));
        if let Some(deadline) = plan.policy().deadline {
            facts.push(("Deadline", deadline.to_string()));
        }
    }
    let held = job.held.as_ref().map(|held| format!("could not {}: {}", held.operation, held.error));
    let unread = || krontabs.error.clone().filter(|_| entry.is_none());
    Job {
        id: job.identity.clone(),
        name: job.name.clone(),
        description: job.description.clone(),
        schedule: job.schedule.clone(),
        words: entry.map(|entry| entry.schedule.describe()).unwrap_or_default(),
        zone: job.timezone.clone(),
        paused: is_paused(job),
        paused_since: job.paused_since,
        on_resume: job.on_resume.as_ref().and_then(|next| next.chosen),
        held: held.or_else(unread),
        next: job.next.as_ref().and_then(|next| next.chosen),
        last: job.last.as_ref().and_then(|last| last.chosen.or_else(|| nominal(&last.period))),
        last_mark: job.last.as_ref().map(|last| mark_of_outcome(&last.outcome)),
        active: Some(job.active.len()),
        facts,
        definition: None,
        plan: entry.map(|entry| entry.job.clone()),
        // What is over has a record or none; what is to come is all that is computed.
        handled: Timestamp::MIN,
        pending: Vec::new(),
    }
}

fn overlap_words(overlap: kron_core::Overlap) -> &'static str {
    match overlap {
        kron_core::Overlap::Allow => "it runs beside it",
        kron_core::Overlap::Forbid => "it is skipped",
        kron_core::Overlap::Queue => "it waits",
        kron_core::Overlap::Replace => "that one is ended",
    }
}

fn krontab_of(identity: &str) -> &str {
    identity.rsplit_once(':').map_or(identity, |(path, _)| path)
}

fn mark_of_outcome(outcome: &str) -> Mark {
    match outcome {
        "executed" => Mark::Executed,
        "skipped" => Mark::Skipped,
        "unschedulable" => Mark::Unschedulable,
        _ => Mark::Missed,
    }
}

fn settled(
    record: &RecordView,
    ended: &HashMap<&str, Option<i32>>,
    is_running: impl Fn(&str) -> bool,
) -> Option<Settled> {
    match &record.what {
        WhatView::Outcome { period, outcome, reason, chosen, seed_hash, .. } => {
            let mark = match (mark_of_outcome(outcome), ended.get(period.as_str())) {
                (Mark::Executed, Some(exit)) => mark_of(*exit),
                (Mark::Executed, None) if is_running(period) => Mark::Running,
                (mark, _) => mark,
            };
            let exit = ended.get(period.as_str()).copied().flatten().filter(|exit| *exit != 0);
            let why = exit.map_or_else(|| reason_words(reason).to_owned(), exit_words);
            Some(Settled {
                nominal: nominal(period)?,
                last: None,
                count: 1,
                at_least: false,
                chosen: *chosen,
                mark,
                why,
                at: Some(record.at),
                run: Some(period.clone()),
                seed_hash: Some(seed_hash.clone()).filter(|hash| !hash.is_empty()),
            })
        }
        WhatView::Passed { outcome, reason, first, last, count, at_least } => Some(Settled {
            nominal: nominal(first)?,
            last: nominal(last),
            count: *count,
            at_least: *at_least,
            chosen: None,
            mark: mark_of_outcome(outcome),
            why: reason_words(reason).to_owned(),
            at: Some(record.at),
            run: None,
            seed_hash: None,
        }),
        _ => None,
    }
}

/// What a record says that went wrong.
fn trouble(record: &RecordView) -> Option<Trouble> {
    let (mark, why) = match &record.what {
        WhatView::Outcome { outcome, reason, .. } if outcome != "executed" => {
            (mark_of_outcome(outcome), reason_words(reason).to_owned())
        }
        WhatView::Passed { outcome, reason, count, .. } => {
            (mark_of_outcome(outcome), format!("{count} periods: {}", reason_words(reason)))
        }
        WhatView::Completed { exit: Some(exit), .. } if *exit != 0 => (Mark::Failed, exit_words(*exit)),
        _ => return None,
    };
    Some(Trouble {
        at: record.at,
        job: Some(record.identity.clone()),
        name: name_of(&record.identity),
        mark,
        why,
    })
}

/// The file that a job's runs write to, if they do.
fn output_file(entry: &Entry) -> Option<&Path> {
    match &entry.command.stdout {
        krontab::Output::File(path) => Some(path),
        _ => None,
    }
}

/// The end of a file. It is opened with no more rights than this process has, and must be a plain file.
fn tail(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The first line may be half a line.
    let is_whole = metadata.len() <= TAIL_BYTES;
    Ok(if is_whole { text } else { text.split_once('\n').map_or(text.clone(), |(_, rest)| rest.to_owned()) })
}

/// What a draft would do, as a line of a krontab.
fn preview(draft: &Draft, config: &Path, zones: &Zones, now: Timestamp) -> Answer<Preview> {
    let text =
        |name: &str| draft.fields.get(name).and_then(|value| value.as_str()).unwrap_or_default().trim();
    for (name, value) in &draft.fields {
        if value.as_str().is_some_and(|value| value.contains(char::is_control)) {
            return Err(Refused::wrong(name, "a single line", value.as_str().unwrap_or_default()));
        }
    }
    let schedule = text("cron");
    // A phrase is written in quotes.
    let schedule =
        if schedule.starts_with(char::is_alphabetic) { format!("\"{schedule}\"") } else { schedule.into() };
    let name = if text("name").is_empty() { "preview" } else { text("name") };
    let modifiers = [
        ("timezone", text("timezone"), format!("@tz({})", text("timezone"))),
        ("window", text("window"), format!("@win({},{})", text("windowMode"), text("window"))),
        ("distribution", text("distribution"), format!("@dist({})", text("distribution"))),
        ("deadline", text("deadline"), format!("@policy(deadline={})", text("deadline"))),
    ];
    let mut line = schedule.clone();
    let mut places = vec![("cron", 0..schedule.len())];
    for (field, given, modifier) in modifiers {
        if !given.is_empty() {
            line.push(' ');
            places.push((field, line.len()..line.len() + modifier.len()));
            line.push_str(&modifier);
        }
    }
    line.push(' ');
    places.push(("name", line.len()..line.len() + "name=".len() + name.len()));
    line.push_str(&format!("name={name} command=/bin/true"));

    let file = if config.is_dir() { config.join("preview") } else { config.to_owned() };
    let source = Source::new(&file).map_err(|error| Refused::new(409, "krontab", error.to_string()))?;
    let parsed = Krontab::parse(&line, &source, zones);
    let excerpt = |problem: &krontab::Problem| {
        let span = problem.span();
        let before = line.get(..span.start).map_or(0, |text| text.chars().count());
        let marked = line.get(span.clone()).map_or(1, |text| text.chars().count().max(1));
        format!("  | {line}\n  | {}{}", " ".repeat(before), "^".repeat(marked))
    };
    let Some(entry) = parsed.entries.first() else {
        let problem = parsed.problems.iter().find(|problem| problem.is_error());
        let Some(problem) = problem else {
            return Err(Refused {
                field: Some("cron".into()),
                ..Refused::new(400, "wrong", "expected a schedule")
            });
        };
        let at = problem.span().start;
        let field = places.iter().find(|(_, place)| place.contains(&at)).map_or("cron", |(field, _)| field);
        return Err(Refused {
            field: Some(field.to_owned()),
            hint: problem.help().map(str::to_owned),
            excerpt: Some(excerpt(problem)),
            ..Refused::new(400, "wrong", problem.message())
        });
    };
    let warnings = parsed.problems.iter().map(|problem| Warning {
        message: problem.message().to_owned(),
        help: problem.help().map(str::to_owned),
        excerpt: Some(excerpt(problem)),
    });
    let krontabs = Krontabs {
        entries: HashMap::from([(entry.identity().to_owned(), Arc::new(entry.clone()))]),
        error: None,
    };
    let job = JobView {
        identity: entry.identity().to_owned(),
        name: entry.name.clone(),
        line: 1,
        schedule: entry.schedule.text().to_owned(),
        timezone: entry.zone_name().to_owned(),
        description: None,
        suspended: false,
        paused_since: None,
        on_resume: None,
        next: None,
        last: None,
        active: Vec::new(),
        held: None,
    };
    let runs = kron_dashboard::next_runs(&view(&job, &krontabs), now, NEXT_MAX);
    let next: Vec<Timestamp> = runs.iter().filter_map(kron_core::Decision::chosen).collect();
    let zone = entry.job.zone();
    Ok(Preview {
        words: entry.schedule.describe(),
        written: Some(line.replace("command=/bin/true", "command=…")),
        note: Some(format!(
            "Chosen times depend on where a job is written: these are for {}.",
            entry.identity()
        )),
        zone: zone.name().to_owned(),
        warnings: warnings.collect(),
        local: next.iter().map(|at| kron_dashboard::local(zone, *at)).collect(),
        next,
        change: None,
    })
}
