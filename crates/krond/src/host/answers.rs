//! What the host says to those who ask at the control socket.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use jiff::{SignedDuration, Timestamp};
use kron_core::Ledger;
use krontab::Entry;
use serde_json::json;

use super::Host;
use crate::anchor;
use crate::clock;
use crate::control::{Answer, Request};
use crate::daemon::{Asker, Command, Event};
use crate::directory::Directory;
use crate::metrics::Gauges;
use crate::notify::{self, notify};
use crate::outcomes;
use crate::timers::Slot;
use crate::view::{HeldView, JobView, LastView, NextView, RunView, StatusView};

/// How many of the jobs that are woken first are asked for their next run.
const SOONEST_MAX: usize = 64;

/// How many records are told at most.
const RECORDS_MAX: usize = 5_000;

/// How many periods that could run again, and jobs that are held, are listed by name.
const LISTED_MAX: usize = 20;

impl Host {
    pub(super) fn answer(&mut self, request: Request, caller: Sender<Answer>) {
        let answer = match request {
            Request::Status => Answer::ok(self.status()),
            Request::Metrics => Answer::ok(self.metrics.render(&self.gauges())),
            Request::Jobs { job: None } => return self.tell_jobs(self.daemon.slots().collect(), caller),
            Request::Jobs { job: Some(job) } => match self.find(&job) {
                Ok(slot) => return self.tell_jobs(vec![slot], caller),
                Err(why) => Answer::error(why),
            },
            Request::Records { job, from, to, count } => {
                return self.tell_records(job, (from, to), count, caller);
            }
            Request::Run { job } => match self.find(&job) {
                Ok(slot) => {
                    let asker = self.asker(caller);
                    return self.events.push_back(Event::Command(Command::Run(slot, asker)));
                }
                Err(why) => Answer::error(why),
            },
            Request::Pause { job } => match self.find(&job) {
                Ok(slot) => {
                    let asker = self.asker(caller);
                    return self.events.push_back(Event::Command(Command::Pause(slot, asker)));
                }
                Err(why) => Answer::error(why),
            },
            Request::Resume { job } => match self.find(&job) {
                Ok(slot) => {
                    let asker = self.asker(caller);
                    return self.events.push_back(Event::Command(Command::Resume(slot, asker)));
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

    pub(super) fn gauges(&self) -> Gauges {
        let (active, _) = self.daemon.active();
        let mut gauges = Gauges { active, started_at: self.started_at, ..Gauges::default() };
        for (_, state, activity) in self.daemon.slots().filter_map(|slot| self.daemon.job(slot)) {
            gauges.jobs += 1;
            gauges.held += usize::from(activity.hold.is_some());
            gauges.paused += usize::from(state.paused.is_some());
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
            let ledger = state.ledger_of(&entry.job);
            NextView::of(&entry.job, ledger.watermark(), ledger.pending(), now)
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
            paused: gauges.paused,
            active: gauges.active,
            active_of_removed: self.daemon.active().1,
            more_held: gauges.held - held.len(),
            held,
            next: next.min_by_key(|next| next.chosen),
            recorded: self.recorded,
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

    /// Tells what is recorded, in a thread of its own: there may be many days of it.
    fn tell_records(
        &self,
        job: Option<String>,
        (from, to): (Option<Timestamp>, Option<Timestamp>),
        count: usize,
        caller: Sender<Answer>,
    ) {
        let found = job.map(|job| self.find(&job)).transpose();
        let state = match found {
            Ok(slot) => slot.and_then(|slot| self.daemon.job(slot)).map(|(_, state, _)| state.clone()),
            Err(why) => return drop(caller.send(Answer::error(why))),
        };
        let wanted = outcomes::Wanted {
            from: from.unwrap_or(Timestamp::MIN),
            to: to.unwrap_or(Timestamp::MAX),
            most: count.min(RECORDS_MAX),
        };
        let path = self.settings.state_dir.clone();
        let refused = caller.clone();
        let tell = move || {
            let read = Directory::open(&path).map_err(|error| error.to_string()).and_then(|directory| {
                let inner = directory.inner(outcomes::DIRECTORY).map_err(|error| error.to_string())?;
                outcomes::latest(&inner, state.as_ref(), &wanted).map_err(|error| error.to_string())
            });
            let _ = caller.send(match read {
                Ok(records) => Answer::ok(records),
                Err(error) => Answer::error(format!("could not read the records: {error}")),
            });
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
            ledger: state.ledger_of(&entry.job),
            paused_since: state.paused,
            active: state.runs.iter().map(RunView::from).collect(),
            held: self.view_held(slot),
        })
    }

    /// What could run again if the watermark were set to now.
    fn preview_accept(&self, slot: Slot) -> Answer {
        let Some((entry, state, activity)) = self.daemon.job(slot) else {
            return Answer::error("job not found");
        };
        if let Some(why) = activity.unknown() {
            return Answer::error(why);
        }
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
    ledger: Ledger,
    paused_since: Option<Timestamp>,
    active: Vec<RunView>,
    held: Option<HeldView>,
}

impl Known {
    fn view(self, now: Timestamp) -> JobView {
        let Known { entry, last, ledger, paused_since, active, held } = self;
        let next = || NextView::of(&entry.job, ledger.watermark(), ledger.pending(), now);
        JobView {
            identity: entry.identity().to_owned(),
            name: entry.name.clone(),
            line: entry.line,
            schedule: entry.schedule.text().to_owned(),
            timezone: entry.zone_name().to_owned(),
            description: entry.description.clone(),
            suspended: entry.job.policy().suspend,
            paused_since,
            on_resume: paused_since.and_then(|_| NextView::on_resume(&entry.job, &ledger, now)),
            next: if paused_since.is_some() { None } else { next() },
            last,
            active,
            held,
        }
    }
}
