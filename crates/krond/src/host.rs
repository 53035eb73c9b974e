//! The daemon on a real machine: events come from timers, signals, threads and children, and effects go to them.
//!
//! One thread waits for all of it and never for anything else. Disks, the control socket, the log and the search
//! for a run's processes have threads of their own.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kron_core::{PeriodId, RunId};
use krontab::{Entry, Zones};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::anchor;
use crate::children::{self, PidFd};
use crate::clock;
use crate::config;
use crate::console;
use crate::control::{self, Answer, Control, Request};
use crate::daemon::{
    Asker, Command, Configured, Daemon, Done, Effect, Event, Farewell, Report, Ticket, Wake,
};
use crate::directory::{Directory, DirectoryError, Lock};
use crate::ender::{self, End};
use crate::inbox::{self, Inbox, Message, Post};
use crate::log::{self, Level, Line};
use crate::metrics::{Gauges, Metrics};
use crate::moment::Moment;
use crate::notify::{self, notify};
use crate::outcomes::{self, Outcomes};
use crate::process::ProcessId;
use crate::settings::Settings;
use crate::spawner::{self, Launch, Spawner};
use crate::store::Store;
use crate::timers::Slot;
use crate::view::{HeldView, JobView, LastView, NextView, RunView, StatusView, run_name};
use crate::voice::{Style, Voice};
use crate::writer::{self, Task};

/// How long records and releases under way may take once a second signal has come.
const END_WITHIN: Duration = Duration::from_secs(3);

/// How often the file of metrics is replaced.
const METRICS_EVERY: Duration = Duration::from_secs(15);

/// How many of the jobs that are woken first are asked for their next run.
const SOONEST_MAX: usize = 64;

/// How many periods that could run again, and jobs that are held, are listed by name.
const LISTED_MAX: usize = 20;

/// Runs the daemon until it is told to stop.
///
/// # Errors
///
/// If it cannot start, or cannot go on.
pub fn run(settings: &Settings, style: Style) -> Result<(), Failure> {
    Host::start(settings, style)?.serve()
}

/// Why the daemon does not run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The krontabs have errors, each of them ready to be printed.
    Config(Vec<String>),
    /// A state cannot be used.
    State(String),
    /// Another daemon has the state directory.
    Lock(String),
    /// The state directory, or something else of the system, does not work.
    Persistence(String),
}

struct Host {
    settings: Settings,
    style: Style,
    zones: Arc<Zones>,
    started_at: Timestamp,
    daemon: Daemon,
    events: VecDeque<Event>,
    spawner: Spawner,
    /// Whether it has ended, and no other could be started.
    is_spawner_gone: bool,
    /// How many descriptors krond was given, and so its runs get.
    own_descriptors: Rlimit,
    runs: Runs,
    inbox: Inbox,
    post: Post,
    control: Control,
    writer: Sender<Task>,
    ender: Sender<End>,
    voice: Voice,
    metrics: Metrics,
    metrics_at: Duration,
    askers: HashMap<Asker, Sender<Answer>>,
    last_asker: u64,
    /// Who waits for the configuration to be read again.
    reloading: Vec<Sender<Answer>>,
    is_reading: bool,
    /// Who wants it to be read again after that: it may have been edited since.
    reload_next: Option<Vec<Sender<Answer>>>,
    poll: OwnedFd,
    wall: OwnedFd,
    uptime: OwnedFd,
    signals: Vec<(i32, UnixStream)>,
    /// Whether a signal has asked it to end.
    is_asked_to_end: bool,
    /// When it ends, whatever is under way.
    end_at: Option<Duration>,
    is_stopped: bool,
    /// Why it ends, if nobody has asked it to.
    failure: Option<Failure>,
    _lock: Lock,
}

/// Children and adopted runs.
#[derive(Default)]
struct Runs {
    /// Children at their gates, and how they ended if they did so there.
    gate: HashMap<Ticket, (ProcessId, Option<i32>)>,
    /// Runs that are krond's children, by their number, which is theirs until they are waited for.
    own: HashMap<u32, (Slot, RunId)>,
    /// Runs of a krond before this one.
    adopted: HashMap<u64, (Slot, RunId, PidFd)>,
    /// Those of them that could not be watched, and are tried again.
    unwatched: Vec<(Slot, RunId, ProcessId)>,
    last_token: u64,
    /// Runs that were asked to end: they are over when their leader has ended, with this, and nothing is left of them.
    ending: HashMap<(Slot, RunId), Ending>,
}

impl Runs {
    /// Whether the run's first process is not known to have ended.
    fn has_leader(&self, slot: Slot, run: RunId) -> bool {
        self.own.values().any(|own| *own == (slot, run))
            || self.adopted.values().any(|(of, adopted, _)| (*of, *adopted) == (slot, run))
    }
}

#[derive(Default)]
struct Ending {
    exit: Option<Option<i32>>,
    is_tree_gone: bool,
}

const WALL: u64 = 0;
const UPTIME: u64 = 1;
const INBOX: u64 = 2;
const SPAWNER: u64 = 3;
const SIGNALS: u64 = 4;
/// From here on tokens name adopted runs.
const ADOPTED: u64 = 16;

/// The most events taken from the kernel at a time.
const EVENTS_MAX: usize = 256;

impl Host {
    fn start(settings: &Settings, style: Style) -> Result<Host, Failure> {
        let system = |error: io::Error| Failure::Persistence(error.to_string());
        let zones = Arc::new(Zones::system());
        let entries = config::read(&settings.config, &zones).map_err(Failure::Config)?;
        let directory = Directory::open(&settings.state_dir)?;
        let lock = lock(&directory, &settings.state_dir)?;
        let outcomes = directory.inner(outcomes::DIRECTORY).map_err(system)?;
        let store = Store::new(directory, settings.on_missing_state);
        store.clean().map_err(system)?;

        let signals = [SIGTERM, SIGINT, SIGHUP, SIGCHLD].into_iter().map(listen);
        let signals = signals.collect::<io::Result<Vec<_>>>().map_err(system)?;
        // Its limits and environment are those of the runs, so it comes before krond's own are changed.
        let spawner = Spawner::start(Path::new("/proc/self/exe")).map_err(system)?;
        let own_descriptors = raise_descriptors();

        let new = entries.into_iter().map(|entry| (entry, true)).collect();
        let configured = writer::load_all(&store, new).map_err(Failure::State)?;
        let (left_behind, unseen) = writer::left_behind(&store, &configured, &zones);
        let (post, inbox) = inbox::open().map_err(system)?;
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(|errno| system(errno.into()))?;
        let timer = |clock| {
            timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
                .map_err(|errno| system(errno.into()))
        };
        let format = match style {
            Style::Log(format) => format,
            Style::Console { .. } => log::Format::Text,
        };
        let now = clock::now();
        let control = Control::start(&settings.state_dir, &post).map_err(system)?;
        let mut host = Host {
            settings: settings.clone(),
            style,
            zones,
            started_at: now.wall,
            daemon: Daemon::new(settings.manners()),
            events: VecDeque::from([Event::Configured(configured), Event::LeftBehind(left_behind)]),
            spawner,
            is_spawner_gone: false,
            own_descriptors,
            runs: Runs::default(),
            writer: writer::start(store, &post).map_err(system)?,
            ender: ender::start(&post).map_err(system)?,
            voice: Voice::start(
                Outcomes::new(outcomes, settings.outcome_days),
                settings.metrics_file.clone(),
                format,
                &post,
            )
            .map_err(system)?,
            inbox,
            post,
            control,
            metrics: Metrics::new(),
            metrics_at: now.uptime,
            askers: HashMap::new(),
            last_asker: 0,
            reloading: Vec::new(),
            is_reading: false,
            reload_next: None,
            poll,
            wall: timer(TimerfdClockId::Realtime)?,
            uptime: timer(TimerfdClockId::Boottime)?,
            signals,
            is_asked_to_end: false,
            end_at: None,
            is_stopped: false,
            failure: None,
            _lock: lock,
        };
        host.listen_to_all().map_err(system)?;
        for error in unseen {
            host.fail("look for runs of removed jobs", &error);
        }
        Ok(host)
    }

    fn listen_to_all(&mut self) -> io::Result<()> {
        let add = |fd: rustix::fd::BorrowedFd<'_>, token| {
            epoll::add(&self.poll, fd, EventData::new_u64(token), EventFlags::IN)
        };
        add(self.wall.as_fd(), WALL)?;
        add(self.uptime.as_fd(), UPTIME)?;
        add(self.inbox.as_fd(), INBOX)?;
        add(self.spawner.as_fd(), SPAWNER)?;
        for (at, (_, stream)) in self.signals.iter().enumerate() {
            add(stream.as_fd(), SIGNALS + at as u64)?;
        }
        Ok(())
    }

    fn serve(mut self) -> Result<(), Failure> {
        let started = Line::new(clock::now().wall, Level::Info, "scheduler", "started")
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("pid", std::process::id())
            .with("config", self.settings.config.display().to_string())
            .with("state_dir", self.settings.state_dir.display().to_string())
            .with("zones", self.zones.database().to_string());
        self.tell(&started);
        self.work();
        notify(notify::READY);
        while !self.is_stopped {
            let mut ready = Vec::with_capacity(EVENTS_MAX);
            // Interrupted, it is asked again; anything else it cannot say.
            let _ = epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut ready), None);
            for event in ready {
                self.hear(event.data.u64());
            }
            self.work();
        }
        let stopped = Line::new(clock::now().wall, Level::Info, "scheduler", "stopped");
        self.tell(&stopped);
        // Whoever still waits is told that there is no answer.
        drop((self.askers, self.reloading, self.reload_next, self.inbox));
        self.control.close();
        self.voice.close();
        let _ = std::fs::remove_file(self.settings.state_dir.join(control::SOCKET));
        self.failure.map_or(Ok(()), Err)
    }

    /// Finds out what has happened.
    fn hear(&mut self, token: u64) {
        match token {
            // Cancelled, because the clock was set, or expired: the daemon looks at the clock either way.
            WALL => drop(rustix::io::read(&self.wall, &mut [0; 8])),
            UPTIME => drop(rustix::io::read(&self.uptime, &mut [0; 8])),
            INBOX => {
                for message in self.inbox.take() {
                    self.receive(message);
                }
            }
            SPAWNER => self.hear_children(),
            ADOPTED.. => self.hear_adopted(token),
            _ => self.hear_signal(token - SIGNALS),
        }
    }

    fn hear_signal(&mut self, at: u64) {
        let Some((signal, stream)) = usize::try_from(at).ok().and_then(|at| self.signals.get(at)) else {
            return;
        };
        let signal = *signal;
        let _ = rustix::io::read(stream, &mut [0; 64]);
        match signal {
            SIGCHLD => self.hear_children(),
            SIGHUP => self.reload(Vec::new()),
            _ => {
                notify(notify::STOPPING);
                // Asked once more, it waits for no run, and for its own work only as long as that usually takes: an end
                // that cannot be recorded is found by the next krond.
                let farewell = match self.is_asked_to_end {
                    true => Farewell::Leave,
                    false => self.settings.on_stop,
                };
                if self.is_asked_to_end {
                    self.end_soon();
                }
                self.is_asked_to_end = true;
                self.events.push_back(Event::Command(Command::Stop(farewell)));
            }
        }
    }

    /// Ends in a moment, whatever is under way then.
    fn end_soon(&mut self) {
        self.end_at.get_or_insert(clock::now().uptime + END_WITHIN);
    }

    /// Ends because a thread has: nothing can be recorded, ended or told without it. The next krond can.
    fn cannot_go_on(&mut self, thread: &str) {
        let why = format!(
            "the thread `{thread}` has ended: this is a mistake in krond, which must be started again"
        );
        self.fail("go on", &io::Error::other(why.clone()));
        self.failure.get_or_insert(Failure::Persistence(why));
        self.end_soon();
        self.events.push_back(Event::Command(Command::Stop(Farewell::Leave)));
    }

    /// Takes the children that have ended, and what the spawner says. Ends are taken first and answers handled
    /// first: a child that was ready and has ended is known by then.
    fn hear_children(&mut self) {
        let ended = children::reap().unwrap_or_default();
        let answers = self.spawner.answers(clock::now().uptime).unwrap_or_else(|error| {
            self.fail("hear from the spawner", &error);
            Vec::new()
        });
        for answer in answers {
            match answer {
                spawner::Answer::Ready { ticket, process } => {
                    self.runs.gate.insert(ticket, (process, None));
                    self.events.push_back(Event::SpawnReady(ticket, process));
                }
                spawner::Answer::Released { tickets } => {
                    self.events.extend(tickets.into_iter().map(Event::Released));
                }
                spawner::Answer::Failed { ticket, stage, error } => {
                    let error = format!("{stage}: {error}");
                    self.events.push_back(Event::SpawnFailed(ticket, error));
                }
                spawner::Answer::Gone { tickets } => self.respawn(tickets),
            }
        }
        for children::Ended { pid, exit } in ended {
            let exit = Some(exit.code());
            if let Some((slot, run)) = self.runs.own.remove(&pid) {
                self.leader_ended(slot, run, exit);
            } else if let Some((_, at_gate)) =
                self.runs.gate.values_mut().find(|(process, _)| process.pid == pid)
            {
                *at_gate = exit;
            }
        }
    }

    /// Starts another spawner. What waited at the gates of the old one has not run. What was released and had not heard of
    /// it ends with [`spawner::NOT_STARTED`], which is recorded as any end is.
    fn respawn(&mut self, tickets: Vec<Ticket>) {
        self.fail("keep the spawner", &io::Error::other("it has ended, and another takes its place"));
        for ticket in tickets {
            let error = "the spawner has ended".to_owned();
            self.events.push_back(Event::SpawnFailed(ticket, error));
        }
        self.is_spawner_gone = true;
        // It would be heard of again and again.
        let _ = epoll::delete(&self.poll, &self.spawner);
        self.restart_spawner();
    }

    fn restart_spawner(&mut self) {
        // Its limits are those of the runs, and not krond's own.
        let raised = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, self.own_descriptors);
        let started = Spawner::start(Path::new("/proc/self/exe"));
        let _ = setrlimit(Resource::Nofile, raised);
        match started {
            Ok(spawner) => {
                self.spawner = spawner;
                let data = EventData::new_u64(SPAWNER);
                match epoll::add(&self.poll, &self.spawner, data, EventFlags::IN) {
                    Ok(()) => self.is_spawner_gone = false,
                    Err(error) => self.fail("listen to the spawner", &error.into()),
                }
            }
            Err(error) => self.fail("start the spawner", &error),
        }
    }

    fn hear_adopted(&mut self, token: u64) {
        let Some((_, _, pidfd)) = self.runs.adopted.get(&token) else { return };
        if let Ok(children::Waited::Running) = pidfd.wait() {
            return;
        }
        if let Some((slot, run, pidfd)) = self.runs.adopted.remove(&token) {
            let _ = epoll::delete(&self.poll, &pidfd);
            self.leader_ended(slot, run, None);
        }
    }

    /// A run's first process has ended. If it was asked to, whatever it had started must be gone as well.
    fn leader_ended(&mut self, slot: Slot, run: RunId, exit: Option<i32>) {
        match self.runs.ending.get_mut(&(slot, run)) {
            Some(ending) => ending.exit = Some(exit),
            None => self.events.push_back(Event::Exited(slot, run, exit)),
        }
        self.finish_ending(slot, run);
    }

    fn finish_ending(&mut self, slot: Slot, run: RunId) {
        let key = (slot, run);
        if let Some(Ending { exit: Some(exit), is_tree_gone: true }) = self.runs.ending.get(&key) {
            self.events.push_back(Event::Exited(slot, run, *exit));
            self.runs.ending.remove(&key);
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Asked(request, caller) => self.answer(request, caller),
            Message::Read(_) | Message::Loaded(_) if self.daemon.is_stopping() => {
                self.reload_failed(&["krond is stopping".into()]);
            }
            Message::Read(Ok(entries)) => {
                let is_new = |entry: &Arc<Entry>| !self.daemon.knows(entry.identity());
                let entries = entries.into_iter().map(|entry| (Arc::clone(&entry), is_new(&entry)));
                let _ = self.writer.send(Task::Load(entries.collect()));
            }
            Message::Read(Err(errors)) => self.reload_failed(&errors),
            Message::Loaded(Ok(configured)) => self.configure(configured),
            Message::Loaded(Err(error)) => self.reload_failed(&[error]),
            Message::Retried(slot, recovered) => self.events.push_back(Event::StateLoaded(slot, recovered)),
            Message::Written(answers, took) => {
                self.metrics.count_write(took);
                self.events.extend(answers.into_iter().map(|(slot, answer)| match answer {
                    Ok(()) => Event::StateWritten(slot),
                    Err(error) => Event::StateFailed(slot, error),
                }));
            }
            Message::Died(thread) => self.cannot_go_on(thread),
            Message::TreeGone(slot, run) => {
                if let Some(ending) = self.runs.ending.get_mut(&(slot, run)) {
                    ending.is_tree_gone = true;
                }
                self.finish_ending(slot, run);
                if !self.runs.has_leader(slot, run) {
                    // It had ended, and was told of, before it was asked to.
                    self.runs.ending.remove(&(slot, run));
                }
            }
        }
    }

    /// Takes on a configuration.
    fn configure(&mut self, configured: Vec<Configured>) {
        // A job that was removed before may be forgotten by now, and then its state must be looked for after all.
        while let Some(event) = self.events.pop_front() {
            self.feed(event);
        }
        let is_unknown = |job: &Configured| job.memory.is_none() && !self.daemon.knows(job.entry.identity());
        if configured.iter().any(is_unknown) {
            let entries = configured.into_iter().map(|job| job.entry).collect();
            return self.receive(Message::Read(Ok(entries)));
        }
        let jobs = configured.len();
        self.feed(Event::Configured(configured));
        for caller in self.reloading.drain(..) {
            let _ = caller.send(Answer::ok(json!({ "jobs": jobs })));
        }
        self.has_reloaded();
    }

    /// Reads the krontabs again, in a thread of its own.
    fn reload(&mut self, callers: Vec<Sender<Answer>>) {
        if let Some(path) = &self.settings.log_file
            && let Err(error) = log::reopen(path)
        {
            self.fail("open the log anew", &error);
        }
        if self.is_reading {
            return self.reload_next.get_or_insert_default().extend(callers);
        }
        self.reloading = callers;
        if self.daemon.is_stopping() {
            return self.reload_failed(&["krond is stopping".into()]);
        }
        self.is_reading = true;
        let (config, zones, post) =
            (self.settings.config.clone(), Arc::clone(&self.zones), self.post.clone());
        let read = move || post.send(Message::Read(config::read(&config, &zones)));
        if let Err(error) = thread::Builder::new().spawn(read) {
            self.reload_failed(&[format!("krond could not begin a thread: {error}; try again")]);
        }
    }

    fn has_reloaded(&mut self) {
        self.is_reading = false;
        if let Some(callers) = self.reload_next.take() {
            self.reload(callers);
        }
    }

    fn reload_failed(&mut self, errors: &[String]) {
        for error in errors {
            let line = Line::new(clock::now().wall, Level::Error, "scheduler", "error")
                .with("operation", "reload")
                .with("error", error.as_str());
            self.tell(&line);
        }
        let why = format!("the configuration stays as it was: {}", config::listed(errors));
        for caller in self.reloading.drain(..) {
            let _ = caller.send(Answer::error(&why));
        }
        self.has_reloaded();
    }

    /// Lets the daemon work until nothing is left to tell it.
    fn work(&mut self) {
        for (slot, run, process) in std::mem::take(&mut self.runs.unwatched) {
            self.watch(slot, run, &process);
        }
        if self.spawner.next_alarm().is_some_and(|alarm| alarm <= clock::now().uptime) {
            self.hear_children();
        }
        let mut wake = self.feed(Event::Tick);
        while let Some(event) = self.events.pop_front() {
            wake = self.feed(event);
        }
        let now = clock::now();
        if self.end_at.is_some_and(|end_at| end_at <= now.uptime) && !self.is_stopped {
            let line = Line::new(now.wall, Level::Error, "scheduler", "error").with("operation", "stop");
            self.tell(&line.with("error", "records or starts were under way, and were not waited for"));
            self.is_stopped = true;
        }
        if self.settings.metrics_file.is_some() && now.uptime >= self.metrics_at {
            self.metrics_at = now.uptime + METRICS_EVERY;
            self.voice.publish(self.metrics.render(&self.gauges()));
        }
        self.sleep_until(wake, now);
    }

    fn feed(&mut self, event: Event) -> Wake {
        let now = clock::now();
        let (effects, wake) = self.daemon.on(now, event);
        for effect in effects {
            self.carry_out(effect, now);
        }
        wake
    }

    fn sleep_until(&mut self, wake: Wake, now: Moment) {
        self.spawner.flush(now.uptime);
        let mut uptime = wake.uptime.unwrap_or(now.uptime + METRICS_EVERY);
        if self.settings.metrics_file.is_some() {
            uptime = uptime.min(self.metrics_at);
        }
        // A timer with nothing to wait for is still cancelled when the clock is set.
        let wall = wake.wall.map_or(now.wall.as_second() + 86_400, |wall| wall.as_second());
        let at = |seconds: i64, nanoseconds: u32| Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: seconds.max(1), tv_nsec: nanoseconds.into() },
        };
        let cancelled_when_set = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        // Cancelled between two sleeps, it says so once instead of being set.
        for _ in 0..2 {
            if timerfd_settime(&self.wall, cancelled_when_set, &at(wall, 0)).is_ok() {
                break;
            }
        }
        for alarm in [self.end_at, self.spawner.next_alarm()].into_iter().flatten() {
            uptime = uptime.min(alarm);
        }
        let seconds = i64::try_from(uptime.as_secs()).unwrap_or(i64::MAX);
        let _ =
            timerfd_settime(&self.uptime, TimerfdTimerFlags::ABSTIME, &at(seconds, uptime.subsec_nanos()));
        let wanted =
            if self.spawner.wants_write() { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        let _ = epoll::modify(&self.poll, &self.spawner, EventData::new_u64(SPAWNER), wanted);
    }

    fn carry_out(&mut self, effect: Effect, now: Moment) {
        match effect {
            Effect::PrepareChild { ticket, entry, run, chosen } => {
                if self.is_spawner_gone {
                    self.restart_spawner();
                }
                let launch = self.launch(ticket, &entry, run, chosen);
                match self.spawner.prepare(&launch) {
                    Ok(()) => self.spawner.flush(now.uptime),
                    Err(error) => self.events.push_back(Event::SpawnFailed(ticket, error.to_string())),
                }
            }
            Effect::ReleaseChild { ticket, slot, run, process } => {
                match self.spawner.release(ticket) {
                    true => self.spawner.flush(now.uptime),
                    false => self.events.push_back(Event::Released(ticket)),
                }
                match self.runs.gate.remove(&ticket) {
                    Some((_, Some(exit))) => self.events.push_back(Event::Exited(slot, run, Some(exit))),
                    _ => drop(self.runs.own.insert(process.pid, (slot, run))),
                }
            }
            Effect::AbortChild(ticket) => {
                self.runs.gate.remove(&ticket);
                self.spawner.abort(ticket);
            }
            Effect::WriteState { slot, state, archive } => {
                let _ = self.writer.send(Task::Write { slot, state, archive });
            }
            Effect::LoadState(slot, entry) => drop(self.writer.send(Task::Retry(slot, entry))),
            Effect::Watch(slot, run, process) => self.watch(slot, run, &process),
            Effect::Signal(slot, run, process, signal) => {
                self.runs.ending.entry((slot, run)).or_default();
                let _ = self.ender.send(End { slot, run, process, signal });
            }
            Effect::Answer(asker, answer) => {
                if let Some(caller) = self.askers.remove(&asker) {
                    let _ = caller.send(match answer {
                        Ok(Done::Started(run, process)) => {
                            Answer::ok(json!({ "run": run_name(run), "pid": process.pid }))
                        }
                        Ok(Done::Accepted(watermark)) => {
                            Answer::ok(json!({ "watermark": watermark.to_string() }))
                        }
                        Err(why) => Answer::error(why),
                    });
                }
            }
            Effect::Report(report) => self.report(&report, now),
            Effect::Stopped => self.is_stopped = true,
        }
    }

    fn launch(&self, ticket: Ticket, entry: &Entry, run: RunId, chosen: Option<Timestamp>) -> Launch {
        let hash: String =
            Sha256::digest(entry.identity()).iter().map(|byte| format!("{byte:02x}")).collect();
        let variable = |key: &str, value: String| (key.to_owned(), value);
        let mut env = vec![
            variable("KRON_IDENTITY", entry.identity().to_owned()),
            variable("KRON_IDENTITY_SHA256", hash),
            variable("KRON_RUN", run_name(run)),
        ];
        if let (RunId::Period(period), Some(chosen)) = (run, chosen) {
            env.push(variable("KRON_PERIOD_ID", period.to_string()));
            env.push(variable("KRON_CHOSEN_TIME", chosen.to_string()));
        }
        let launch = Launch::new(ticket, entry.name.as_str(), &entry.command, env);
        let (inherit_env, limits) = (self.settings.inherit_environment, self.settings.limits.clone());
        Launch { inherit_env, limits, output_max: self.settings.output_max, ..launch }
    }

    /// Waits for the end of a run from before.
    fn watch(&mut self, slot: Slot, run: RunId, process: &ProcessId) {
        let pidfd = match children::identify(process) {
            Ok(Some(pidfd)) => pidfd,
            Ok(None) => return self.events.push_back(Event::Exited(slot, run, None)),
            Err(error) => {
                self.runs.unwatched.push((slot, run, *process));
                return self.fail("find an adopted run", &error);
            }
        };
        self.runs.last_token += 1;
        let token = ADOPTED + self.runs.last_token;
        match epoll::add(&self.poll, &pidfd, EventData::new_u64(token), EventFlags::IN) {
            Ok(()) => drop(self.runs.adopted.insert(token, (slot, run, pidfd))),
            Err(error) => {
                self.runs.unwatched.push((slot, run, *process));
                self.fail("watch an adopted run", &error.into());
            }
        }
    }

    fn report(&mut self, report: &Report, now: Moment) {
        // A run has started when its record is durable, which is now and not when the event came.
        let now = match report {
            Report::Settled { .. } => clock::now().wall,
            _ => now.wall,
        };
        self.metrics.count(report, now);
        self.voice.keep(outcomes::records(report, now));
        match self.style {
            Style::Log(format) => {
                let least = self.settings.log_level;
                for line in log::lines(report, now).into_iter().filter(|line| line.level >= least) {
                    self.voice.print(line.render(format));
                }
            }
            Style::Console { colours } => {
                if let Some(line) = console::line(report, now, colours) {
                    self.voice.print(line);
                }
            }
        }
    }

    fn tell(&self, line: &Line) {
        match self.style {
            Style::Log(_) if line.level < self.settings.log_level => {}
            Style::Log(format) => self.voice.print(line.render(format)),
            Style::Console { .. } if line.level == Level::Info => {}
            Style::Console { .. } => self.voice.print(line.render(log::Format::Text)),
        }
    }

    /// Tells of a failure that is no job's.
    fn fail(&self, operation: &'static str, error: &io::Error) {
        let line = Line::new(clock::now().wall, Level::Error, "executor", "error");
        self.tell(&line.with("operation", operation).with("error", error.to_string()));
    }

    fn answer(&mut self, request: Request, caller: Sender<Answer>) {
        let answer = match request {
            Request::Status => Answer::ok(self.status()),
            Request::Metrics => Answer::ok(self.metrics.render(&self.gauges())),
            Request::Jobs { job: None } => return self.tell_jobs(self.daemon.slots().collect(), caller),
            Request::Jobs { job: Some(job) } => match self.find(&job) {
                Ok(slot) => return self.tell_jobs(vec![slot], caller),
                Err(why) => Answer::error(why),
            },
            Request::Run { job } => match self.find(&job) {
                Ok(slot) => {
                    let asker = self.asker(caller);
                    return self.events.push_back(Event::Command(Command::Run(slot, asker)));
                }
                Err(why) => Answer::error(why),
            },
            Request::AcceptClock { job, yes } => match (self.find(&job), yes) {
                (Ok(slot), true) => {
                    let asker = self.asker(caller);
                    return self.events.push_back(Event::Command(Command::AcceptClock(slot, asker)));
                }
                (Ok(slot), false) => self.preview_accept(slot),
                (Err(why), _) => Answer::error(why),
            },
            Request::Reload => return self.reload(vec![caller]),
            Request::Stop { runs } => {
                notify(notify::STOPPING);
                let farewell = runs.unwrap_or(self.settings.on_stop);
                self.events.push_back(Event::Command(Command::Stop(farewell)));
                Answer::ok(json!({ "stopping": true }))
            }
        };
        let _ = caller.send(answer);
    }

    fn asker(&mut self, caller: Sender<Answer>) -> Asker {
        self.last_asker += 1;
        let asker = Asker(self.last_asker);
        self.askers.insert(asker, caller);
        asker
    }

    /// The job of that identity, or the only one of that name.
    fn find(&self, job: &str) -> Result<Slot, String> {
        if let Some(slot) = self.daemon.slot(job) {
            return Ok(slot);
        }
        let named = |slot: &Slot| self.daemon.job(*slot).is_some_and(|(entry, ..)| entry.name == job);
        let found: Vec<Slot> = self.daemon.slots().filter(named).collect();
        match found.as_slice() {
            [] => Err(format!("job not found: {job}")),
            [slot] => Ok(*slot),
            several => {
                let identities = several.iter().filter_map(|slot| self.daemon.job(*slot));
                let identities: Vec<&str> = identities.map(|(entry, ..)| entry.identity()).collect();
                Err(format!("several jobs are called {job}; name one of {}", identities.join(", ")))
            }
        }
    }

    fn gauges(&self) -> Gauges {
        let (active, _) = self.daemon.active();
        let mut gauges = Gauges { active, started_at: self.started_at, ..Gauges::default() };
        for (_, _, activity) in self.daemon.slots().filter_map(|slot| self.daemon.job(slot)) {
            gauges.jobs += 1;
            gauges.held += usize::from(activity.hold.is_some());
        }
        gauges
    }

    fn status(&self) -> StatusView {
        let now = clock::now().wall;
        let gauges = self.gauges();
        let held = self.daemon.slots().filter_map(|slot| self.view_held(slot)).take(LISTED_MAX);
        let held: Vec<HeldView> = held.collect();
        let next = self.daemon.soonest().take(SOONEST_MAX).filter_map(|slot| {
            let (entry, state, _) = self.daemon.job(slot)?;
            NextView::of(&entry.job, state.watermark(), &state.pending, now)
        });
        StatusView {
            running: true,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            started_at: self.started_at,
            config: self.settings.config.display().to_string(),
            state_dir: self.settings.state_dir.display().to_string(),
            zones: self.zones.database().to_string(),
            jobs: gauges.jobs,
            active: gauges.active,
            active_of_removed: self.daemon.active().1,
            more_held: gauges.held - held.len(),
            held,
            next: next.min_by_key(|next| next.chosen),
        }
    }

    fn view_held(&self, slot: Slot) -> Option<HeldView> {
        let (entry, _, activity) = self.daemon.job(slot)?;
        let hold = activity.hold?;
        Some(HeldView {
            identity: entry.identity().to_owned(),
            operation: hold.operation.to_owned(),
            error: hold.error,
            failures: hold.failures,
        })
    }

    /// Tells of jobs, in a thread of its own: to look for the next runs of very many takes longer than anybody's
    /// deadline.
    fn tell_jobs(&self, slots: Vec<Slot>, caller: Sender<Answer>) {
        let known: Vec<Known> = slots.into_iter().filter_map(|slot| self.known(slot)).collect();
        let now = clock::now().wall;
        let refused = caller.clone();
        let tell = move || {
            let views: Vec<JobView> = known.into_iter().map(|known| known.view(now)).collect();
            let _ = caller.send(Answer::ok(views));
        };
        if let Err(error) = thread::Builder::new().spawn(tell) {
            let _ =
                refused.send(Answer::error(format!("krond could not begin a thread: {error}; try again")));
        }
    }

    fn known(&self, slot: Slot) -> Option<Known> {
        let (entry, state, _) = self.daemon.job(slot)?;
        Some(Known {
            entry: Arc::clone(entry),
            last: LastView::of(state),
            watermark: state.watermark(),
            pending: state.pending.clone(),
            active: state.runs.iter().map(RunView::from).collect(),
            held: self.view_held(slot),
        })
    }

    /// What could run again if the watermark were set to now.
    fn preview_accept(&self, slot: Slot) -> Answer {
        let Some((entry, state, _)) = self.daemon.job(slot) else { return Answer::error("job not found") };
        let now = clock::now().wall;
        let watermark = state.watermark().map(|watermark| watermark.nominal());
        let opens_before =
            SignedDuration::from_secs(entry.job.window().opens_before().as_seconds() + anchor::STEP);
        let usual = now.saturating_add(opens_before).unwrap_or(Timestamp::MAX);
        let again =
            entry.job.schedule().occurrences_after(now).take_while(|nominal| Some(*nominal) <= watermark);
        let again: Vec<String> = again.take(LISTED_MAX + 1).map(|nominal| nominal.to_string()).collect();
        Answer::ok(json!({
            "identity": entry.identity(),
            "now": now,
            "watermark": watermark,
            // A window that opens before its nominal time leads a job that far by itself, and so does the anchor.
            "isAhead": watermark.is_some_and(|watermark| watermark > usual),
            "more": again.len() > LISTED_MAX,
            "couldRunAgain": again.into_iter().take(LISTED_MAX).collect::<Vec<_>>(),
        }))
    }
}

/// What is known of a job, and quickly copied.
struct Known {
    entry: Arc<Entry>,
    last: Option<LastView>,
    watermark: Option<PeriodId>,
    pending: Vec<PeriodId>,
    active: Vec<RunView>,
    held: Option<HeldView>,
}

impl Known {
    fn view(self, now: Timestamp) -> JobView {
        let Known { entry, last, watermark, pending, active, held } = self;
        JobView {
            identity: entry.identity().to_owned(),
            name: entry.name.clone(),
            line: entry.line,
            schedule: entry.schedule.text().to_owned(),
            timezone: entry.zone_name().to_owned(),
            description: entry.description.clone(),
            suspended: entry.job.policy().suspend,
            next: NextView::of(&entry.job, watermark, &pending, now),
            last,
            active,
            held,
        }
    }
}

fn lock(directory: &Directory, path: &Path) -> Result<Lock, Failure> {
    directory.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            let holder = directory.lock_holder().map_or_else(String::new, |holder| format!(" ({holder})"));
            let path = path.display();
            Failure::Lock(format!("another krond{holder} uses {path}: stop it, or name another --state-dir"))
        }
        _ => Failure::Lock(format!("could not lock {}: {error}", path.display())),
    })
}

/// A stream that can be read when the signal has come.
fn listen(signal: i32) -> io::Result<(i32, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, theirs)?;
    Ok((signal, ours))
}

/// Takes as many descriptors as krond may have: adopted runs need one each. Tells how many it had.
fn raise_descriptors() -> Rlimit {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    limit
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Failure {
        match error.is_io() {
            true => Failure::Persistence(error.to_string()),
            false => Failure::State(error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Config(errors) => f.write_str(&config::listed(errors)),
            Failure::State(why) | Failure::Lock(why) | Failure::Persistence(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}
