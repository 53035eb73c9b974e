//! The heart of krond: a machine without I/O, told the time and what has happened.
//!
//! [`Daemon::on`] takes a moment and an event, and says what to do. It never waits: what takes time is an
//! effect, and its end is another event. For each job the order is kept (prepare a child, make its record
//! durable, let it go), and between jobs there is none, so a slow disk or a burst delays nobody's evaluation.

mod disk;
mod effect;
mod event;
mod pace;
mod tracked;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use krontab::Entry;

pub use effect::{Because, Changes, Done, Effect, Report, Signal, Wake};
pub use event::{Asker, Command, Configured, Event, Farewell, Recovered, Ticket};
pub use tracked::{Activity, Hold};

use crate::moment::Moment;
use crate::state::State;
use crate::timers::{Slot, Timers};
use disk::Disk;
use pace::Pace;
use tracked::{Asked, Tracked, Work};

/// How a daemon behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// The most endings that a state file keeps.
    pub history_max: usize,
    /// How long a run that was asked to end politely has to do so.
    pub grace: Duration,
    /// The most runs of periods that are started in a second; `None` is without end.
    pub start_rate: Option<u32>,
    /// How many jobs are looked at for one tick while none has waited for long: the first are started while the others are decided.
    pub looks_max: usize,
}

impl Default for Manners {
    fn default() -> Manners {
        Manners { history_max: 20, grace: Duration::from_secs(10), start_rate: None, looks_max: 8 }
    }
}

/// The longest sleep. A machine that was asleep itself is noticed by then.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// A longer time without a look was no sleep of the daemon's own: nobody has watched.
const STALL_MIN: Duration = Duration::from_secs(40);

/// From here on a difference between the clocks is a jump, in seconds. Slewing stays far below.
const JUMP_MIN: f64 = 2.0;

/// How long a look that was due may wait for the job's own work and still be made with the second it was due.
/// After that the world has moved on too far, and what came due is judged by the time it is.
const STAMP_MAX: i64 = 60;

/// How often the number of looks is doubled at most: by then there are thousands in one go.
const LOOKS_DOUBLED_MAX: i64 = 12;

/// The daemon's jobs, and everything that is under way.
#[derive(Debug)]
pub struct Daemon {
    manners: Manners,
    jobs: Vec<Option<Tracked>>,
    slots: HashMap<Arc<str>, Slot>,
    free: Vec<Slot>,
    timers: Timers,
    /// Whose time has come, and by which second. Who has been looked at since, for another reason, is passed over.
    due: VecDeque<(Slot, i64)>,
    /// When something by the other clock is due: a timeout, the end of a grace or of a hold.
    alarms: BTreeSet<(Duration, Slot)>,
    tickets: HashMap<Ticket, Slot>,
    last_ticket: u64,
    last: Option<Moment>,
    stopping: Option<Stopping>,
    /// Who was not idle when it was last asked whether the daemon can end. Asked first again, or every end of a
    /// million jobs would be a look at all the others.
    busy: usize,
    pace: Pace,
    disk: Disk,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stopping {
    Under(Farewell),
    Done,
}

impl Daemon {
    /// A daemon without jobs.
    #[must_use]
    pub fn new(manners: Manners) -> Daemon {
        Daemon {
            manners,
            jobs: Vec::new(),
            slots: HashMap::new(),
            free: Vec::new(),
            timers: Timers::default(),
            due: VecDeque::new(),
            alarms: BTreeSet::new(),
            tickets: HashMap::new(),
            last_ticket: 0,
            last: None,
            stopping: None,
            busy: 0,
            pace: Pace::new(manners.start_rate),
            disk: Disk::default(),
        }
    }

    /// Whether the daemon has the job's memory, so that nobody need load it.
    #[must_use]
    pub fn knows(&self, identity: &str) -> bool {
        self.slots.contains_key(identity)
    }

    /// Whether it was asked to end.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Where the job is.
    #[must_use]
    pub fn slot(&self, identity: &str) -> Option<Slot> {
        self.slots.get(identity).copied()
    }

    /// What a job's line says, and what is known of it.
    #[must_use]
    pub fn job(&self, slot: Slot) -> Option<(&Arc<Entry>, &State, Activity)> {
        let job = self.tracked(slot)?;
        Some((&job.entry, &job.state, job.activity()))
    }

    fn tracked(&self, slot: Slot) -> Option<&Tracked> {
        self.jobs.get(slot.0 as usize)?.as_ref()
    }

    /// All jobs that are configured.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let is_there = |job: &Option<Tracked>| job.as_ref().is_some_and(|job| !job.removed);
        let slots = self.jobs.iter().enumerate().filter(move |(_, job)| is_there(job));
        slots.map(|(at, _)| slot_at(at))
    }

    /// How many runs are under way, and how many of them are of jobs that are no longer configured.
    #[must_use]
    pub fn active(&self) -> (usize, usize) {
        self.jobs.iter().flatten().fold((0, 0), |(all, removed), job| {
            let runs = job.state.runs.len();
            (all + runs, removed + if job.removed { runs } else { 0 })
        })
    }

    /// The jobs that are looked at first, in order.
    pub fn soonest(&self) -> impl Iterator<Item = Slot> + '_ {
        let is_so = |at: i64, slot: Slot| self.tracked(slot).is_some_and(|job| job.timer == Some(at));
        self.timers.iter().filter(move |(at, slot)| is_so(*at, *slot)).map(|(_, slot)| slot)
    }

    /// Says what to do about an event, and when to come back if nothing else happens.
    pub fn on(&mut self, now: Moment, event: Event) -> (Vec<Effect>, Wake) {
        let mut effects = Vec::new();
        self.notice(now, &mut effects);
        // Other events are about somebody who waits, and for whom those that are only now looked at would be in the way.
        let looks = matches!(event, Event::Tick);
        if matches!(event, Event::StateWritten(_) | Event::StateFailed(..)) {
            self.disk.answered(now.uptime);
        }
        match event {
            Event::Tick => {}
            // What is about to end takes on nothing new.
            Event::Configured(_) if self.is_stopping() => {}
            Event::Configured(jobs) => self.configure(jobs, now, &mut effects),
            Event::LeftBehind(jobs) => self.see_off(jobs, now, &mut effects),
            Event::StateLoaded(slot, memory) => {
                self.with(slot, now, &mut effects, |job, work| job.loaded(*memory, work));
            }
            Event::StateWritten(slot) => self.with(slot, now, &mut effects, Tracked::written),
            Event::StateFailed(slot, error) => {
                self.with(slot, now, &mut effects, |job, work| job.write_failed(error, work));
            }
            Event::SpawnReady(ticket, process) => match self.tickets.get(&ticket).copied() {
                Some(slot) => {
                    self.with(slot, now, &mut effects, |job, work| job.ready(ticket, process, work));
                }
                None => effects.push(Effect::AbortChild(ticket)),
            },
            Event::SpawnFailed(ticket, error) => {
                if let Some(slot) = self.tickets.get(&ticket).copied() {
                    self.with(slot, now, &mut effects, |job, work| job.spawn_failed(ticket, error, work));
                }
            }
            Event::Released(ticket) => {
                if let Some(slot) = self.tickets.remove(&ticket) {
                    self.with(slot, now, &mut effects, |job, _| job.released(ticket));
                }
            }
            Event::Exited(slot, run, exit) => {
                self.with(slot, now, &mut effects, |job, work| job.exited(run, exit, work.now.wall));
            }
            Event::Command(Command::Run(slot, asker)) => {
                self.ask(slot, Asked::Run(asker), now, &mut effects);
            }
            Event::Command(Command::AcceptClock(slot, asker)) => {
                self.ask(slot, Asked::AcceptClock(asker), now, &mut effects);
            }
            Event::Command(Command::Pause(slot, asker)) => {
                self.ask(slot, Asked::Pause(asker), now, &mut effects);
            }
            Event::Command(Command::Resume(slot, asker)) => {
                self.ask(slot, Asked::Resume(asker), now, &mut effects);
            }
            Event::Command(Command::Stop(farewell)) => self.stop(farewell, now, &mut effects),
        }
        self.tick(looks, now, &mut effects);
        self.keep_pace(now, &mut effects);
        self.end(&mut effects);
        (effects, self.wake(now))
    }

    /// Lets no more start than may in a second. Who has waited too long decides again.
    fn keep_pace(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        for ticket in self.pace.keep(now, effects) {
            if let Some(slot) = self.tickets.remove(&ticket) {
                let error = "more are due than `start_rate` lets start".to_owned();
                self.with(slot, now, effects, |job, work| job.spawn_failed(ticket, error, work));
            }
        }
    }

    /// Compares the clocks with what they were, and names what has happened to them before it is handled.
    fn notice(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let Some(last) = self.last.replace(now) else { return };
        let jump = now.jump_since(&last);
        let slept = now.uptime.saturating_sub(last.uptime);
        if jump.abs() >= JUMP_MIN {
            effects.push(Effect::Report(Report::ClockJumped(jump)));
        }
        if slept > STALL_MIN {
            effects.push(Effect::Report(Report::Stalled(slept)));
        }
        let unwatched = jump >= JUMP_MIN || slept > STALL_MIN;
        let back = now.second() < last.second();
        if !unwatched && !back {
            return;
        }
        for (at, job) in self.jobs.iter_mut().enumerate() {
            let Some(job) = job else { continue };
            job.since = if unwatched { now.wall } else { job.since.min(now.wall) };
            let is_stale = job.outdate(unwatched);
            if is_stale || job.look.is_some() || back && !job.removed {
                job.look = Some(now.second());
                arm(&mut self.timers, slot_at(at), job, Some(now.second()));
            }
        }
    }

    /// Finds out who is due, and looks at some of them if it is time for that.
    fn tick(&mut self, looks: bool, now: Moment, effects: &mut Vec<Effect>) {
        let second = now.second();
        for (at, slots) in self.timers.take_due(second) {
            for slot in slots {
                let Some(Some(job)) = self.jobs.get_mut(slot.0 as usize) else { continue };
                if job.timer.take_if(|timer| *timer == at).is_none() {
                    continue;
                }
                // One second for everything that is due by now, whenever its turn comes.
                let stamp = *job.look.get_or_insert(second);
                job.wake = None;
                self.due.push_back((slot, stamp));
            }
        }
        for _ in 0..if looks { self.looks(second) } else { 0 } {
            let Some(slot) = self.next_due() else { break };
            self.due.pop_front();
            self.with(slot, now, effects, |_, _| {});
        }
        while let Some((at, slot)) = self.alarms.first().copied().filter(|(at, _)| *at <= now.uptime) {
            self.alarms.remove(&(at, slot));
            self.with(slot, now, effects, Tracked::alarm);
        }
    }

    /// Who is looked at next.
    fn next_due(&mut self) -> Option<Slot> {
        while let Some((slot, _)) = self.due.front().copied() {
            if self.tracked(slot).is_some_and(|job| job.look.is_some()) {
                return Some(slot);
            }
            self.due.pop_front();
        }
        None
    }

    /// How many are looked at in one go: twice as many for every second that the first has waited. However many are due and however
    /// busy krond is with those that have started, all are decided long before the second that they are judged by is too long ago.
    fn looks(&mut self, second: i64) -> usize {
        self.next_due();
        let waited = self.due.front().map_or(0, |(_, stamp)| (second - stamp).clamp(0, LOOKS_DOUBLED_MAX));
        self.manners.looks_max.max(1) << waited
    }

    /// Does something to a job, and then whatever it is free to do next.
    fn with(
        &mut self,
        slot: Slot,
        now: Moment,
        effects: &mut Vec<Effect>,
        change: impl FnOnce(&mut Tracked, &mut Work<'_>),
    ) {
        let Some(place) = self.jobs.get_mut(slot.0 as usize) else { return };
        let Some(job) = place else { return };
        let mut work = Work {
            slot,
            now,
            manners: &self.manners,
            stopping: self.stopping.is_some(),
            last_ticket: &mut self.last_ticket,
            tickets: &mut self.tickets,
            disk: &mut self.disk,
            effects,
        };
        if let Some(alarm) = job.alarm_at.take() {
            self.alarms.remove(&(alarm, slot));
        }
        change(job, &mut work);
        job.advance(&mut work);
        arm(&mut self.timers, slot, job, job.wake);
        job.alarm_at = job.next_alarm();
        if let Some(alarm) = job.alarm_at {
            self.alarms.insert((alarm, slot));
        }
        if job.removed && job.is_over() {
            self.slots.remove(job.entry.identity());
            if let Some(alarm) = job.alarm_at {
                self.alarms.remove(&(alarm, slot));
            }
            *place = None;
            self.free.push(slot);
        }
    }

    /// Takes on a configuration. Runs go on, whatever becomes of their jobs.
    fn configure(&mut self, jobs: Vec<Configured>, now: Moment, effects: &mut Vec<Effect>) {
        let mut changes = Changes { jobs: jobs.len(), ..Changes::default() };
        let mut kept = vec![false; self.jobs.len()];
        for Configured { entry, memory } in jobs {
            match (self.slot(entry.identity()), memory) {
                (Some(slot), _) => {
                    kept[slot.0 as usize] = true;
                    self.with(slot, now, effects, |job, work| {
                        let is_moved = job.removed || job.entry.job != entry.job;
                        let has_another_command = job.entry.command != entry.command;
                        changes.changed += usize::from(is_moved || has_another_command);
                        if is_moved {
                            job.edit(entry, work);
                        } else if has_another_command {
                            job.change_command(entry, work);
                        } else {
                            job.entry = entry;
                        }
                    });
                }
                (None, Some(memory)) => {
                    changes.added += 1;
                    let slot = self.take_slot(&entry);
                    // It may be the place of a job that is gone.
                    kept.resize(kept.len().max(self.jobs.len()), false);
                    kept[slot.0 as usize] = true;
                    self.jobs[slot.0 as usize] = Some(Tracked::new(entry, now.wall));
                    self.with(slot, now, effects, |job, work| job.recall(memory, work));
                }
                // Nobody has looked for its state, so nothing can be done about it.
                (None, None) => {}
            }
        }
        for (at, kept) in kept.into_iter().enumerate() {
            if !kept && self.jobs[at].as_ref().is_some_and(|job| !job.removed) {
                changes.removed += 1;
                self.with(slot_at(at), now, effects, Tracked::remove);
            }
        }
        effects.push(Effect::Report(Report::Configured(changes)));
    }

    /// Takes on jobs that are no longer configured, until their runs are over.
    fn see_off(&mut self, jobs: Vec<Configured>, now: Moment, effects: &mut Vec<Effect>) {
        for Configured { entry, memory } in jobs {
            let Some(memory) = memory.filter(|_| !self.knows(entry.identity())) else { continue };
            let slot = self.take_slot(&entry);
            self.jobs[slot.0 as usize] = Some(Tracked::left_behind(entry, now.wall));
            self.with(slot, now, effects, |job, work| job.recall(memory, work));
        }
    }

    fn take_slot(&mut self, entry: &Entry) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            slot_at(self.jobs.len() - 1)
        });
        self.slots.insert(entry.identity().into(), slot);
        slot
    }

    /// Takes on what somebody asks for, or says at once why not: nobody waits for nothing.
    fn ask(&mut self, slot: Slot, asked: Asked, now: Moment, effects: &mut Vec<Effect>) {
        let asker = asked.asker();
        if self.tracked(slot).is_none() {
            effects.push(Effect::Answer(asker, Err("it is no longer configured".into())));
            return;
        }
        let mut preparing = None;
        self.with(slot, now, effects, |job, work| match job.refusal(&asked, work.stopping) {
            Some(why) => work.answer(asker, Err(why)),
            None => {
                if matches!(asked, Asked::Pause(_)) {
                    job.stand_back(work);
                }
                preparing = job.preparing();
                job.asked.push_back(asked);
            }
        });
        if let Some(ticket) = preparing {
            self.pace.hurry(ticket);
        }
    }

    fn stop(&mut self, farewell: Farewell, now: Moment, effects: &mut Vec<Effect>) {
        // Whoever carries effects out has been told already.
        if self.stopping == Some(Stopping::Done) {
            return;
        }
        self.stopping = Some(Stopping::Under(farewell));
        for at in 0..self.jobs.len() {
            self.with(slot_at(at), now, effects, |job, work| job.stop(farewell, work));
        }
    }

    /// Whether the daemon, having been asked to, can end.
    fn end(&mut self, effects: &mut Vec<Effect>) {
        let Some(Stopping::Under(farewell)) = self.stopping else { return };
        let is_idle = |job: &Tracked| match farewell {
            Farewell::Leave => job.is_quiet(),
            Farewell::Wait | Farewell::End => job.is_over(),
        };
        let is_busy = |at: &usize| self.jobs[*at].as_ref().is_some_and(|job| !is_idle(job));
        match (self.busy..self.jobs.len()).chain(0..self.busy).find(is_busy) {
            Some(at) => self.busy = at,
            None => {
                self.stopping = Some(Stopping::Done);
                effects.push(Effect::Stopped);
            }
        }
    }

    fn wake(&self, now: Moment) -> Wake {
        let cap = if self.due.is_empty() { now.uptime + SLEEP_MAX } else { now.uptime };
        let alarm = self.alarms.first().map(|(at, _)| *at).into_iter().chain(self.pace.next()).min();
        Wake {
            wall: self.timers.first().and_then(|second| Timestamp::from_second(second).ok()),
            uptime: Some(alarm.map_or(cap, |alarm| alarm.min(cap))),
        }
    }
}

/// Wakes the job then, and no longer when it was to be woken before. `None` for never.
fn arm(timers: &mut Timers, slot: Slot, job: &mut Tracked, at: Option<i64>) {
    if job.timer == at {
        return;
    }
    job.timer = at;
    if let Some(at) = at {
        timers.set(slot, at);
    }
}

fn slot_at(index: usize) -> Slot {
    Slot(u32::try_from(index).expect("there are fewer than 2^32 jobs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Last, Run};
    use crate::store::Loaded;
    use kron_core::{Outcome, PeriodId, RunId};
    use krontab::{Krontab, Source, Zones};

    /// The moment of that time of the day, on a machine that was booted at midnight.
    fn at(time: &str) -> Moment {
        let wall: Timestamp = format!("2026-03-01T{time}Z").parse().unwrap();
        let midnight: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        Moment { wall, uptime: wall.duration_since(midnight).try_into().unwrap() }
    }

    /// A configuration with minutely jobs of these names. Those that are new remember this.
    fn jobs(daemon: &Daemon, names: &[&str], handled: Option<&str>) -> Event {
        let line = |name: &&str| format!("* * * * * @policy(deadline=5m) name={name} command=/bin/true\n");
        let text: String = names.iter().map(line).collect();
        let parsed = Krontab::parse(&text, &Source::new("/etc/krond.d/x").unwrap(), &Zones::bundled());
        let configured = parsed.entries.into_iter().map(|entry| {
            let mut state = State::new(entry.identity());
            let period = handled.map(|time| PeriodId::new(at(time).wall));
            state.last = period.map(|period| Last { period, outcome: Outcome::Executed, chosen: None });
            let memory = Recovered { loaded: Loaded::Found(state), alive: Vec::new() };
            let memory = (!daemon.knows(entry.identity())).then_some(memory);
            Configured { entry: Arc::new(entry), memory }
        });
        Event::Configured(configured.collect())
    }

    fn slot(daemon: &Daemon, name: &str) -> Option<Slot> {
        daemon.slot(&format!("/etc/krond.d/x:{name}"))
    }

    fn answers(effects: &[Effect]) -> usize {
        effects.iter().filter(|effect| matches!(effect, Effect::Answer(..))).count()
    }

    fn started(effects: &[Effect]) -> Vec<RunId> {
        let run = |effect: &Effect| match effect {
            Effect::PrepareChild { run, .. } => Some(*run),
            _ => None,
        };
        effects.iter().filter_map(run).collect()
    }

    #[test]
    fn a_new_job_may_take_the_place_of_one_that_is_gone() {
        let mut daemon = Daemon::new(Manners::default());
        for names in [&["a", "b"][..], &["b"], &["b", "c"], &["b", "c"]] {
            let event = jobs(&daemon, names, Some("12:00:00"));
            let _ = daemon.on(at("12:00:30"), event);
            assert_eq!(daemon.slots().count(), names.len(), "{names:?}");
            assert!(names.iter().all(|name| slot(&daemon, name).is_some()), "{names:?}");
        }
    }

    #[test]
    fn whoever_asks_is_answered() {
        let mut daemon = Daemon::new(Manners::default());
        let event = jobs(&daemon, &["a"], Some("12:00:00"));
        let _ = daemon.on(at("12:00:30"), event);
        let there = slot(&daemon, "a").unwrap();
        for slot in [there, Slot(7)] {
            for command in [Command::Run, Command::AcceptClock] {
                let _ = daemon.on(at("12:00:40"), Event::Command(Command::Stop(Farewell::Wait)));
                let (effects, _) = daemon.on(at("12:00:40"), Event::Command(command(slot, Asker(1))));
                assert_eq!(answers(&effects), 1);
            }
        }
    }

    #[test]
    fn who_asks_about_a_job_whose_state_cannot_be_read_is_told_so_at_once() {
        let mut daemon = Daemon::new(Manners::default());
        let Event::Configured(mut configured) = jobs(&daemon, &["a"], None) else { panic!() };
        let unreadable = Recovered { loaded: Loaded::Unreadable("no disk".into()), alive: Vec::new() };
        configured[0].memory = Some(unreadable);
        let _ = daemon.on(at("12:10:00"), Event::Configured(configured));
        let there = slot(&daemon, "a").unwrap();
        // While it waits, and while it is being read again.
        for time in ["12:10:00", "12:10:01"] {
            let _ = daemon.on(at(time), Event::Tick);
            for command in [Command::Run, Command::AcceptClock, Command::Pause, Command::Resume] {
                let (effects, _) = daemon.on(at(time), Event::Command(command(there, Asker(1))));
                let why = effects.iter().find_map(|effect| match effect {
                    Effect::Answer(_, Err(why)) => Some(why.as_str()),
                    _ => None,
                });
                assert!(why.is_some_and(|why| why.ends_with("no disk")), "{effects:?}");
            }
        }
        assert!(daemon.job(there).unwrap().2.unknown().is_some(), "nor is there anything to show before");
    }

    #[test]
    fn what_was_decided_before_a_stall_is_decided_again() {
        let mut daemon = Daemon::new(Manners::default());
        let event = jobs(&daemon, &["a"], Some("12:00:00"));
        let (effects, _) = daemon.on(at("12:10:00"), event);
        assert_eq!(started(&effects), [], "what was overtaken is recorded first");
        let written = Event::StateWritten(slot(&daemon, "a").unwrap());
        let (effects, _) = daemon.on(at("13:10:20"), written);
        assert_eq!(started(&effects), [], "the next hour is passed over first, too");
        let written = Event::StateWritten(slot(&daemon, "a").unwrap());
        let (effects, _) = daemon.on(at("13:10:20"), written);
        assert_eq!(started(&effects), [RunId::Period(PeriodId::new(at("13:10:00").wall))]);
    }

    fn process() -> crate::process::ProcessId {
        crate::process::ProcessId { boot: crate::process::BootId::new(1), pid: 2, start_ticks: 3 }
    }

    fn has_stopped(effects: &[Effect]) -> bool {
        effects.iter().any(|effect| matches!(effect, Effect::Stopped))
    }

    #[test]
    fn a_stop_waits_until_whoever_was_let_go_is_on_their_way() {
        let mut daemon = Daemon::new(Manners::default());
        let event = jobs(&daemon, &["a", "b"], Some("12:09:00"));
        let _ = daemon.on(at("12:10:00"), event);
        let _ = daemon.on(at("12:10:00"), Event::SpawnReady(Ticket(1), process()));
        let stop = Event::Command(Command::Stop(Farewell::Leave));
        let (effects, _) = daemon.on(at("12:10:00"), stop);
        let aborted = effects.iter().any(|effect| matches!(effect, Effect::AbortChild(Ticket(2))));
        assert!(aborted && !has_stopped(&effects), "{effects:?}");
        let (effects, _) = daemon.on(at("12:10:01"), Event::StateWritten(slot(&daemon, "a").unwrap()));
        let released = effects.iter().any(|effect| matches!(effect, Effect::ReleaseChild { .. }));
        assert!(released && !has_stopped(&effects), "{effects:?}");
        let (effects, _) = daemon.on(at("12:10:01"), Event::Released(Ticket(1)));
        assert!(has_stopped(&effects), "{effects:?}");
    }

    #[test]
    fn a_state_that_is_being_read_at_the_stop_is_read_once() {
        for farewell in [Farewell::Leave, Farewell::Wait, Farewell::End] {
            let mut daemon = Daemon::new(Manners::default());
            let Event::Configured(mut configured) = jobs(&daemon, &["a"], Some("12:09:00")) else { panic!() };
            let mut found = configured[0].memory.clone().unwrap();
            let unreadable = Recovered { loaded: Loaded::Unreadable("no disk".into()), alive: Vec::new() };
            configured[0].memory = Some(unreadable);
            let _ = daemon.on(at("12:10:00"), Event::Configured(configured));
            let loads = |effects: &[Effect]| {
                effects.iter().filter(|effect| matches!(effect, Effect::LoadState(..))).count()
            };
            let (effects, _) = daemon.on(at("12:10:01"), Event::Tick);
            assert_eq!(loads(&effects), 1);
            let (effects, _) = daemon.on(at("12:10:01"), Event::Command(Command::Stop(farewell)));
            assert_eq!(loads(&effects), 0, "{farewell:?}");
            // Who waits for runs waits to hear of them.
            assert_eq!(has_stopped(&effects), farewell == Farewell::Leave, "{farewell:?}");
            let Loaded::Found(state) = &mut found.loaded else { panic!() };
            let id = RunId::Manual(7);
            let started_at = at("12:00:00").wall;
            let (chosen, seed_hash, timeout) = (None, String::new(), None);
            state.runs.push(Run { id, process: process(), started_at, chosen, seed_hash, timeout });
            found.alive.push(id);
            let loaded = Event::StateLoaded(slot(&daemon, "a").unwrap(), Box::new(found));
            // Told twice, it counts once.
            let (effects, _) = daemon.on(at("12:10:01"), loaded.clone());
            let is_ended = effects.iter().any(|effect| matches!(effect, Effect::Signal(..)));
            assert_eq!(is_ended, farewell == Farewell::End, "{farewell:?}");
            let (effects, _) = daemon.on(at("12:10:01"), loaded);
            assert!(!effects.iter().any(|effect| matches!(effect, Effect::Watch(..))));
            let exited = Event::Exited(slot(&daemon, "a").unwrap(), id, Some(0));
            let (effects, _) = daemon.on(at("12:10:02"), exited);
            assert!(!has_stopped(&effects), "its end is recorded first");
            let (effects, _) = daemon.on(at("12:10:02"), Event::StateWritten(slot(&daemon, "a").unwrap()));
            assert_eq!(has_stopped(&effects), farewell != Farewell::Leave, "{farewell:?}");
        }
    }

    #[test]
    fn what_is_asked_of_it_after_its_end_is_not_heard() {
        let mut daemon = Daemon::new(Manners::default());
        let event = jobs(&daemon, &["a"], Some("12:10:00"));
        let _ = daemon.on(at("12:10:00"), event);
        let (effects, _) = daemon.on(at("12:10:01"), Event::Command(Command::Stop(Farewell::Leave)));
        assert!(has_stopped(&effects), "{effects:?}");
        let (effects, _) = daemon.on(at("12:10:01"), Event::Command(Command::Stop(Farewell::Wait)));
        assert!(!has_stopped(&effects), "it ends once: {effects:?}");
    }

    #[test]
    fn who_ends_at_the_gate_while_the_record_is_written_is_a_run_that_has_ended() {
        let mut daemon = Daemon::new(Manners::default());
        let event = jobs(&daemon, &["a"], Some("12:09:00"));
        let _ = daemon.on(at("12:10:00"), event);
        let _ = daemon.on(at("12:10:00"), Event::SpawnReady(Ticket(1), process()));
        let _ = daemon.on(at("12:10:00"), Event::SpawnFailed(Ticket(1), "killed".into()));
        let (effects, _) = daemon.on(at("12:10:00"), Event::StateWritten(slot(&daemon, "a").unwrap()));
        assert!(effects.iter().any(|effect| matches!(effect, Effect::ReleaseChild { .. })), "{effects:?}");
        let _ = daemon.on(at("12:10:00"), Event::Released(Ticket(1)));
        let (effects, _) = daemon.on(at("12:10:00"), Event::Command(Command::Stop(Farewell::Leave)));
        assert!(has_stopped(&effects), "{effects:?}");
    }

    /// A child at its gate when the machine falls asleep, before its record and after it.
    #[test]
    fn who_was_at_the_gate_before_a_sleep_is_not_let_go_past_the_deadline() {
        for is_recorded in [false, true] {
            for (woken, runs_again) in [("12:12:00", true), ("13:00:30", false)] {
                let mut daemon = Daemon::new(Manners::default());
                let event = jobs(&daemon, &["a"], Some("12:09:00"));
                let (effects, _) = daemon.on(at("12:10:00"), event);
                let period = RunId::Period(PeriodId::new(at("12:10:00").wall));
                assert_eq!(started(&effects), [period]);
                let ready = Event::SpawnReady(Ticket(1), process());
                let slot = slot(&daemon, "a").unwrap();
                let (effects, _) = if is_recorded {
                    let _ = daemon.on(at("12:10:01"), ready);
                    daemon.on(at(woken), Event::StateWritten(slot))
                } else {
                    daemon.on(at(woken), ready)
                };
                let aborted = effects.iter().any(|effect| matches!(effect, Effect::AbortChild(Ticket(1))));
                assert!(aborted, "{woken}: {effects:?}");
                let is_let_go = |effect: &Effect| matches!(effect, Effect::ReleaseChild { .. });
                assert!(!effects.iter().any(is_let_go), "{woken}: {effects:?}");
                let state = effects.iter().find_map(|effect| match effect {
                    Effect::WriteState { state, .. } => Some(Arc::clone(state)),
                    _ => None,
                });
                let state = state.expect("what was passed over is recorded first");
                assert!(state.runs.is_empty(), "{woken}: {state:?}");
                let (effects, _) = daemon.on(at(woken), Event::StateWritten(slot));
                let latest = PeriodId::new(Timestamp::from_second(at(woken).second() / 60 * 60).unwrap());
                assert_eq!(started(&effects), [RunId::Period(latest)], "{woken}");
                let ran = state.history.iter().any(|ending| ending.reason.outcome() == Outcome::Missed);
                assert_eq!(ran, !runs_again, "{woken}: {state:?}");
            }
        }
    }

    /// Time passes, and krond watches. Whatever is asked of the disk is answered at once, but for the records of these.
    fn watch(daemon: &mut Daemon, from: &str, to: &str, unanswered: &[Slot]) {
        let mut now = at(from);
        while now.wall < at(to).wall {
            let mut events = vec![Event::Tick];
            while let Some(event) = events.pop() {
                let (effects, _) = daemon.on(now, event);
                events.extend(effects.iter().filter_map(|effect| match effect {
                    Effect::WriteState { slot, .. } if !unanswered.contains(slot) => {
                        Some(Event::StateWritten(*slot))
                    }
                    _ => None,
                }));
            }
            let step = Duration::from_secs(15);
            now = Moment { wall: now.wall + step, uptime: now.uptime + step };
        }
    }

    /// The disk answers nothing while one child is at its gate and another waits for its turn to be made.
    #[test]
    fn who_waited_for_a_disk_that_hung_is_not_let_go_past_the_deadline() {
        for (woken, is_in_time) in [("12:15:00", true), ("12:15:01", false)] {
            let mut daemon = Daemon::new(Manners::default());
            let event = jobs(&daemon, &["a", "b"], Some("12:09:00"));
            let (effects, _) = daemon.on(at("12:10:00"), event);
            assert_eq!(started(&effects).len(), 2);
            let (a, b) = (slot(&daemon, "a").unwrap(), slot(&daemon, "b").unwrap());
            let _ = daemon.on(at("12:10:01"), Event::SpawnReady(Ticket(1), process()));
            watch(&mut daemon, "12:10:02", woken, &[a, b]);
            for (ticket, event) in [(1, Event::StateWritten(a)), (2, Event::SpawnReady(Ticket(2), process()))]
            {
                let (effects, _) = daemon.on(at(woken), event);
                let is_aborted = |effect: &Effect| matches!(effect, Effect::AbortChild(_));
                assert_eq!(!effects.iter().any(is_aborted), is_in_time, "{woken} {ticket}: {effects:?}");
                if !is_in_time {
                    let state = states(&effects).remove(0);
                    assert!(state.runs.is_empty(), "{woken} {ticket}: {state:?}");
                    let period = PeriodId::new(at("12:10:00").wall);
                    let first = state.history.iter().find(|ending| ending.period == period);
                    let outcome = first.map(|ending| ending.reason.outcome());
                    assert_eq!(outcome, Some(Outcome::Missed), "{woken} {ticket}: {state:?}");
                }
            }
        }
    }

    #[test]
    fn who_waits_for_very_many_others_is_let_go_while_the_disk_answers() {
        let mut daemon = Daemon::new(Manners::default());
        let event = jobs(&daemon, &["a", "b"], Some("12:09:00"));
        let _ = daemon.on(at("12:10:00"), event);
        let there = slot(&daemon, "a").unwrap();
        let _ = daemon.on(at("12:10:01"), Event::SpawnReady(Ticket(1), process()));
        let _ = daemon.on(at("12:10:02"), Event::StateWritten(there));
        watch(&mut daemon, "12:10:02", "12:30:00", &[]);
        let (effects, _) = daemon.on(at("12:30:00"), Event::SpawnReady(Ticket(2), process()));
        assert_eq!(states(&effects)[0].runs.len(), 1, "{effects:?}");
    }

    #[test]
    fn a_timeout_of_a_run_from_before_does_not_follow_the_wall_clock() {
        // It began at 12:00 by the wall clock of its day, which was an hour ahead, and has run for ten minutes.
        let mut daemon = Daemon::new(Manners::default());
        let Event::Configured(mut configured) = jobs(&daemon, &["a"], Some("12:09:00")) else { panic!() };
        let memory = configured[0].memory.as_mut().unwrap();
        let Loaded::Found(state) = &mut memory.loaded else { panic!() };
        let now = at("12:10:00");
        let ticks = (now.uptime - Duration::from_secs(600)).as_millis() / 10;
        let process = crate::process::ProcessId { start_ticks: ticks.try_into().unwrap(), ..process() };
        let id = RunId::Manual(7);
        let timeout = Some(Duration::from_secs(900));
        let started_at = at("13:00:00").wall;
        state.runs.push(Run { id, process, started_at, chosen: None, seed_hash: String::new(), timeout });
        memory.alive.push(id);
        // It is of a job that is no longer configured.
        let (_, wake) = daemon.on(now, Event::LeftBehind(configured));
        assert!(wake.uptime <= Some(now.uptime + Duration::from_secs(300)));
        let is_ended = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Signal(..)));
        let (effects, _) = daemon.on(at("12:14:40"), Event::Tick);
        assert!(!is_ended(&effects), "{effects:?}");
        let (effects, _) = daemon.on(at("12:15:00"), Event::Tick);
        assert!(is_ended(&effects), "{effects:?}");
        assert_eq!(daemon.slots().count(), 0);
        let there = slot(&daemon, "a").unwrap();
        let (effects, _) = daemon.on(at("12:15:01"), Event::Exited(there, id, None));
        let closed = effects
            .iter()
            .any(|effect| matches!(effect, Effect::WriteState { state, .. } if state.runs.is_empty()));
        assert!(closed, "{effects:?}");
        let _ = daemon.on(at("12:15:01"), Event::StateWritten(there));
        assert!(slot(&daemon, "a").is_none(), "and it is forgotten");
    }

    fn states(effects: &[Effect]) -> Vec<Arc<State>> {
        let state = |effect: &Effect| match effect {
            Effect::WriteState { state, .. } => Some(Arc::clone(state)),
            _ => None,
        };
        effects.iter().filter_map(state).collect()
    }

    #[test]
    fn who_pauses_is_answered_when_that_is_durable_and_what_was_not_recorded_does_not_start() {
        for is_durable in [false, true] {
            let mut daemon = Daemon::new(Manners::default());
            let event = jobs(&daemon, &["a"], Some("12:09:00"));
            let (effects, _) = daemon.on(at("12:10:00"), event);
            let period = RunId::Period(PeriodId::new(at("12:10:00").wall));
            assert_eq!(started(&effects), [period]);
            let there = slot(&daemon, "a").unwrap();
            let (effects, _) = daemon.on(at("12:10:01"), Event::Command(Command::Pause(there, Asker(1))));
            assert!(
                matches!(effects[..], [Effect::AbortChild(Ticket(1)), Effect::WriteState { .. }]),
                "{effects:?}"
            );
            assert_eq!(states(&effects)[0].paused, Some(at("12:10:01").wall));
            let (effects, _) = if is_durable {
                daemon.on(at("12:10:01"), Event::StateWritten(there))
            } else {
                daemon.on(at("12:10:01"), Event::StateFailed(there, "no space".into()))
            };
            let answer = effects.iter().find_map(|effect| match effect {
                Effect::Answer(Asker(1), answer) => Some(answer.clone()),
                _ => None,
            });
            if is_durable {
                assert_eq!(answer, Some(Ok(Done::Paused(at("12:10:01").wall))));
                assert_eq!(daemon.job(there).unwrap().2.wake, None, "there is nothing to wait for");
                // Asked once more, it is what it was.
                let (effects, _) = daemon.on(at("12:20:00"), Event::Command(Command::Pause(there, Asker(2))));
                let answered = Effect::Answer(Asker(2), Ok(Done::Paused(at("12:10:01").wall)));
                assert_eq!(format!("{:?}", effects.last()), format!("{:?}", Some(answered)));
                assert!(states(&effects).is_empty(), "{effects:?}");
                let (effects, _) =
                    daemon.on(at("12:20:30"), Event::Command(Command::Resume(there, Asker(3))));
                assert_eq!(states(&effects)[0].paused, None);
                let (effects, _) = daemon.on(at("12:20:30"), Event::StateWritten(there));
                assert_eq!(answers(&effects), 1);
                let passed = &states(&effects)[0];
                assert_eq!(
                    passed.watermark(),
                    Some(PeriodId::new(at("12:19:00").wall)),
                    "what was paused is settled"
                );
                let (effects, _) = daemon.on(at("12:20:30"), Event::StateWritten(there));
                assert_eq!(started(&effects), [RunId::Period(PeriodId::new(at("12:20:00").wall))]);
            } else {
                assert!(matches!(answer, Some(Err(ref why)) if why.ends_with("no space")), "{answer:?}");
                // It is not paused, so what was withdrawn is decided again.
                let (effects, _) = daemon.on(at("12:10:02"), Event::Tick);
                assert_eq!(started(&effects), [period]);
            }
        }
    }

    #[test]
    fn a_start_is_told_with_the_definition_it_was_decided_with() {
        let mut daemon = Daemon::new(Manners::default());
        let event = jobs(&daemon, &["a"], Some("12:09:00"));
        let _ = daemon.on(at("12:10:00"), event);
        let parsed = Krontab::parse(
            "@hourly name=a command=/bin/true",
            &Source::new("/etc/krond.d/x").unwrap(),
            &Zones::bundled(),
        );
        let entry = Arc::new(parsed.entries[0].clone());
        let _ = daemon.on(at("12:10:00"), Event::SpawnReady(Ticket(1), process()));
        let _ = daemon.on(at("12:10:00"), Event::Configured(vec![Configured { entry, memory: None }]));
        let written = Event::StateWritten(slot(&daemon, "a").unwrap());
        let (effects, _) = daemon.on(at("12:10:00"), written);
        let told = effects.iter().find_map(|effect| match effect {
            Effect::Report(Report::Settled { entry, .. }) => Some(entry.schedule.text().to_owned()),
            _ => None,
        });
        assert_eq!(told.as_deref(), Some("* * * * *"));
    }

    /// The jobs that children are made for.
    fn starts(effects: &[Effect]) -> Vec<String> {
        let name = |effect: &Effect| match effect {
            Effect::PrepareChild { entry, .. } => Some(entry.name.clone()),
            _ => None,
        };
        effects.iter().filter_map(name).collect()
    }

    #[test]
    fn no_more_start_in_a_second_than_may_and_the_others_wait_in_order() {
        let mut daemon = Daemon::new(Manners { start_rate: Some(2), ..Manners::default() });
        let event = jobs(&daemon, &["a", "b", "c", "d", "e"], Some("11:59:00"));
        daemon.on(at("11:59:30"), event);
        let (effects, wake) = daemon.on(at("12:00:00.2"), Event::Tick);
        assert_eq!(starts(&effects), ["a", "b"]);
        assert_eq!(wake.uptime, Some(Duration::from_secs(12 * 3_600 + 1)), "the next may start then");
        let (effects, _) = daemon.on(at("12:00:00.9"), Event::Tick);
        assert!(starts(&effects).is_empty());
        let (effects, _) = daemon.on(at("12:00:01"), Event::Tick);
        assert_eq!(starts(&effects), ["c", "d"]);
        let (effects, wake) = daemon.on(at("12:00:02"), Event::Tick);
        assert_eq!(starts(&effects), ["e"]);
        assert!(wake.uptime > Some(Duration::from_secs(12 * 3_600 + 3)), "nobody waits");
    }

    #[test]
    fn the_first_start_while_the_others_are_decided_and_all_by_the_second_they_were_due() {
        let mut daemon = Daemon::new(Manners { looks_max: 2, ..Manners::default() });
        let event = jobs(&daemon, &["a", "b", "c", "d", "e"], Some("11:59:00"));
        daemon.on(at("11:59:30"), event);
        let now = at("12:00:00.2");
        let (effects, wake) = daemon.on(now, Event::Tick);
        assert_eq!(starts(&effects), ["a", "b"]);
        assert_eq!(wake.uptime, Some(now.uptime), "there is more to do");
        let (effects, wake) = daemon.on(at("12:00:00.8"), Event::SpawnReady(Ticket(1), process()));
        assert!(
            matches!(effects[..], [Effect::WriteState { is_awaited: true, .. }]),
            "who is at the gate waits for nobody: {effects:?}"
        );
        assert_eq!(wake.uptime, Some(at("12:00:00.8").uptime), "there is still more to do");
        let (effects, _) = daemon.on(at("12:00:00.9"), Event::Tick);
        assert_eq!(starts(&effects), ["c", "d"]);
        let (effects, wake) = daemon.on(at("12:00:30"), Event::Tick);
        assert_eq!(started(&effects), [RunId::Period(PeriodId::new(at("12:00:00").wall))], "{effects:?}");
        assert_eq!(starts(&effects), ["e"]);
        assert!(wake.uptime > Some(at("12:00:30").uptime), "nobody waits");
    }

    #[test]
    fn an_end_that_the_next_start_of_its_own_job_waits_for_is_waited_for() {
        for (ended, is_due) in [("11:59:30", false), ("12:00:00", true)] {
            let mut daemon = Daemon::new(Manners::default());
            let event = jobs(&daemon, &["a"], Some("11:58:00"));
            daemon.on(at("11:58:30"), event);
            daemon.on(at("11:59:00"), Event::Tick);
            let there = slot(&daemon, "a").unwrap();
            daemon.on(at("11:59:00"), Event::SpawnReady(Ticket(1), process()));
            daemon.on(at("11:59:00"), Event::StateWritten(there));
            daemon.on(at("11:59:30"), Event::Tick);
            // Whoever is due by now is known, and not looked at yet.
            daemon.on(at(ended), Event::Released(Ticket(1)));
            let run = RunId::Period(PeriodId::new(at("11:59:00").wall));
            let (effects, _) = daemon.on(at(ended), Event::Exited(there, run, Some(0)));
            let [Effect::WriteState { is_awaited, .. }] = &effects[..] else { panic!("{effects:?}") };
            assert_eq!(*is_awaited, is_due, "{ended}");
        }
    }

    #[test]
    fn the_longer_they_wait_the_more_are_looked_at() {
        let mut daemon = Daemon::new(Manners { looks_max: 1, ..Manners::default() });
        let event = jobs(&daemon, &["a", "b", "c", "d", "e", "f", "g"], Some("11:59:00"));
        daemon.on(at("11:59:30"), event);
        let (effects, _) = daemon.on(at("12:00:00.2"), Event::Tick);
        assert_eq!(starts(&effects), ["a"]);
        let (effects, _) = daemon.on(at("12:00:01.2"), Event::Tick);
        assert_eq!(starts(&effects), ["b", "c"]);
        let (effects, _) = daemon.on(at("12:00:02.2"), Event::Tick);
        assert_eq!(starts(&effects), ["d", "e", "f", "g"]);
    }

    #[test]
    fn who_has_been_looked_at_meanwhile_is_not_looked_at_in_place_of_another() {
        let mut daemon = Daemon::new(Manners { looks_max: 1, ..Manners::default() });
        let event = jobs(&daemon, &["a", "b", "c", "d", "e"], Some("11:59:00"));
        daemon.on(at("11:59:30"), event);
        let (effects, _) = daemon.on(at("12:00:00.2"), Event::Tick);
        assert_eq!(starts(&effects), ["a"]);
        // Somebody asks something of two, and so they are looked at.
        for name in ["b", "c"] {
            let there = slot(&daemon, name).unwrap();
            let (effects, _) = daemon.on(at("12:00:00.3"), Event::Command(Command::Resume(there, Asker(1))));
            assert_eq!(starts(&effects), [name]);
        }
        let (effects, _) = daemon.on(at("12:00:01.2"), Event::Tick);
        assert_eq!(starts(&effects), ["d", "e"], "two, for they have waited for a second");
    }

    #[test]
    fn who_is_asked_something_does_not_wait_for_all_the_others_to_start() {
        let mut daemon = Daemon::new(Manners { start_rate: Some(1), ..Manners::default() });
        let event = jobs(&daemon, &["a", "b", "c", "d"], Some("11:59:00"));
        daemon.on(at("11:59:30"), event);
        daemon.on(at("12:00:00"), Event::Tick);
        let there = slot(&daemon, "d").unwrap();
        let (effects, _) = daemon.on(at("12:00:00.5"), Event::Command(Command::AcceptClock(there, Asker(1))));
        assert_eq!(starts(&effects), [""; 0], "no more than may");
        let (effects, _) = daemon.on(at("12:00:01"), Event::Tick);
        assert_eq!(starts(&effects), ["d"]);
        let Some(Effect::PrepareChild { ticket, .. }) = effects.first() else { panic!("{effects:?}") };
        daemon.on(at("12:00:01"), Event::SpawnReady(*ticket, process()));
        daemon.on(at("12:00:01"), Event::StateWritten(there));
        let (effects, _) = daemon.on(at("12:00:01"), Event::StateWritten(there));
        assert_eq!(answers(&effects), 1, "{effects:?}");
        let (effects, _) = daemon.on(at("12:00:02"), Event::Tick);
        assert_eq!(starts(&effects), ["b"], "and the others go on in order");
    }

    #[test]
    fn an_edit_counts_for_who_still_waits_to_start() {
        let edited = |line: &str| {
            let mut daemon = Daemon::new(Manners { start_rate: Some(1), ..Manners::default() });
            let event = jobs(&daemon, &["a", "b"], Some("11:59:00"));
            daemon.on(at("11:59:30"), event);
            let (effects, _) = daemon.on(at("12:00:00"), Event::Tick);
            assert_eq!(starts(&effects), ["a"]);
            let text = format!("* * * * * @policy(deadline=5m) name=a command=/bin/true\n{line}");
            let parsed = Krontab::parse(&text, &Source::new("/etc/krond.d/x").unwrap(), &Zones::bundled());
            let entries = parsed.entries.into_iter();
            let jobs = entries.map(|entry| Configured { entry: Arc::new(entry), memory: None });
            let (effects, _) = daemon.on(at("12:00:00.5"), Event::Configured(jobs.collect()));
            assert_eq!(starts(&effects), [""; 0]);
            let is_known = slot(&daemon, "b").is_some();
            let (effects, _) = daemon.on(at("12:00:01"), Event::Tick);
            let programs = effects.into_iter().filter_map(|effect| match effect {
                Effect::PrepareChild { entry, .. } => Some(entry.command.program.argv()[0].to_owned()),
                _ => None,
            });
            (programs.collect::<Vec<_>>(), is_known)
        };
        let policy = |words: &str| format!("* * * * * @policy(deadline=5m{words}) name=b command=/bin/false");
        assert_eq!(edited(&policy("")), (vec!["/bin/false".into()], true));
        assert_eq!(edited(&policy(",suspend=true")), (Vec::new(), true));
        assert_eq!(edited(""), (Vec::new(), false), "nobody waits for what is not started");
    }

    #[test]
    fn who_waits_past_its_deadline_is_not_started() {
        let mut daemon = Daemon::new(Manners { start_rate: Some(1), ..Manners::default() });
        let event = jobs(&daemon, &["a", "b"], Some("11:59:00"));
        daemon.on(at("11:59:30"), event);
        let (effects, _) = daemon.on(at("12:00:00"), Event::Tick);
        assert_eq!(starts(&effects), ["a"]);
        // Nobody looks for longer than the deadline, and then there is a later period.
        let (effects, _) = daemon.on(at("12:05:01"), Event::Tick);
        assert!(starts(&effects).is_empty(), "{effects:?}");
        let is_held = |effect: &Effect| {
            matches!(effect, Effect::Report(Report::Held { entry, error, .. })
                if entry.name == "b" && error.contains("start_rate"))
        };
        assert!(effects.iter().any(is_held), "{effects:?}");
        // Whoever stops does not start what waits.
        let (effects, _) = daemon.on(at("12:05:01.1"), Event::Command(Command::Stop(Farewell::Leave)));
        assert!(starts(&effects).is_empty());
        let (effects, _) = daemon.on(at("12:05:09"), Event::Tick);
        assert!(starts(&effects).is_empty());
    }
}
