//! The daemon on a real machine: events come from timers, signals, threads and children, and effects go to them.
//!
//! One thread waits for all of it and never for anything else. Disks, the control socket, the log and the search
//! for a run's processes have threads of their own.

mod answers;
mod failure;
mod reload;
mod runs;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use jiff::Timestamp;
use krontab::{Entry, Zones};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::Rlimit;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::json;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::clock;
use crate::config;
use crate::console;
use crate::control::{self, Answer, Control};
use crate::daemon::{Asker, Command, Daemon, Done, Effect, Event, Farewell, Report, Wake};
use crate::directory::{Directory, Lock};
use crate::ender::{self, End};
use crate::inbox::{self, Inbox, Message, Post};
use crate::log::{self, Level, Line};
use crate::metrics::Metrics;
use crate::moment::Moment;
use crate::notify::{self, notify};
use crate::outcomes::{self, Outcomes};
use crate::settings::Settings;
use crate::spawner::Spawner;
use crate::store::Store;
use crate::view::run_name;
use crate::voice::{Style, Voice};
use crate::writer::{self, Task, Write};
use runs::{Runs, raise_descriptors};

pub use failure::Failure;

/// How long records and releases under way may take once a second signal has come.
const END_WITHIN: Duration = Duration::from_secs(3);

/// How often the file of metrics is replaced.
const METRICS_EVERY: Duration = Duration::from_secs(15);

/// Runs the daemon until it is told to stop.
///
/// # Errors
///
/// If it cannot start, or cannot go on.
pub fn run(settings: &Settings, style: Style) -> Result<(), Failure> {
    Host::start(settings, style)?.serve()
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
    ender: Sender<ender::Task>,
    voice: Voice,
    metrics: Metrics,
    metrics_at: Duration,
    askers: HashMap<Asker, Sender<Answer>>,
    last_asker: u64,
    /// How much was recorded since the start.
    recorded: u64,
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
            recorded: 0,
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
        if self.settings.metrics_file.is_some() {
            self.voice.publish(self.metrics.render(&self.gauges()));
        }
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

    fn receive(&mut self, message: Message) {
        match message {
            Message::Asked(request, caller) => self.answer(request, caller),
            Message::Read(_) | Message::Loaded(_) if self.daemon.is_stopping() => {
                if let Message::Loaded(Ok(configured)) = message {
                    self.tell_alerts(&configured);
                }
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

    /// Lets the daemon work until nothing is left to tell it.
    fn work(&mut self) {
        for (slot, run, process) in std::mem::take(&mut self.runs.unwatched) {
            self.watch(slot, run, &process);
        }
        if self.spawner.next_alarm().is_some_and(|alarm| alarm <= clock::now().uptime) {
            self.hear_children();
        }
        // Who waits for an answer, or at a gate, comes before those who are only now looked at.
        let wake = loop {
            while let Some(event) = self.events.pop_front() {
                self.feed(event);
            }
            let wake = self.feed(Event::Tick);
            if self.events.is_empty() {
                break wake;
            }
        };
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
            Effect::WriteState { slot, state, archive, is_awaited } => {
                let _ = self.writer.send(Task::Write(Write { slot, state, archive, is_awaited }));
            }
            Effect::LoadState(slot, entry) => drop(self.writer.send(Task::Retry(slot, entry))),
            Effect::Watch(slot, run, process) => self.watch(slot, run, &process),
            Effect::Signal(slot, run, process, signal) => {
                self.runs.ending.entry((slot, run)).or_default();
                let _ = self.ender.send(ender::Task::End(End { slot, run, process, signal }));
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
                        Ok(Done::Paused(since)) => Answer::ok(json!({ "pausedSince": since })),
                        Ok(Done::Resumed(since)) => Answer::ok(json!({ "wasPausedSince": since })),
                        Err(why) => Answer::error(why),
                    });
                }
            }
            Effect::Report(report) => self.report(&report, now),
            Effect::Stopped => self.is_stopped = true,
        }
    }

    fn report(&mut self, report: &Report, now: Moment) {
        // A run has started when its record is durable, which is now and not when the event came.
        let now = match report {
            Report::Settled { .. } => clock::now().wall,
            _ => now.wall,
        };
        self.metrics.count(report, now);
        let records = outcomes::records(report, now);
        self.recorded += records.len() as u64;
        self.voice.keep(records);
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
