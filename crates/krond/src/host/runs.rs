//! Runs, from the child at its gate to the end that is told: the spawner, whoever it makes, and whoever is adopted.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use kron_core::RunId;
use krontab::Entry;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sha2::{Digest, Sha256};

use super::{ADOPTED, Host, SPAWNER};
use crate::children::{self, PidFd};
use crate::clock;
use crate::daemon::{Event, Ticket};
use crate::ender;
use crate::process::ProcessId;
use crate::spawner::{self, Launch, Spawner};
use crate::timers::Slot;
use crate::view::run_name;

/// Children and adopted runs.
#[derive(Default)]
pub(super) struct Runs {
    /// Children at their gates, and how they ended if they did so there.
    pub(super) gate: HashMap<Ticket, (ProcessId, Option<i32>)>,
    /// Runs that are krond's children, by their number, which is theirs until they are waited for.
    pub(super) own: HashMap<u32, (Slot, RunId)>,
    /// Runs of a krond before this one.
    pub(super) adopted: HashMap<u64, (Slot, RunId, PidFd)>,
    /// Those of them that could not be watched, and are tried again.
    pub(super) unwatched: Vec<(Slot, RunId, ProcessId)>,
    pub(super) last_token: u64,
    /// Runs that were asked to end: they are over when their leader has ended, with this, and nothing is left of them.
    pub(super) ending: HashMap<(Slot, RunId), Ending>,
}

impl Runs {
    /// Whether the run's first process is not known to have ended.
    pub(super) fn has_leader(&self, slot: Slot, run: RunId) -> bool {
        self.own.values().any(|own| *own == (slot, run))
            || self.adopted.values().any(|(of, adopted, _)| (*of, *adopted) == (slot, run))
    }
}

#[derive(Default)]
pub(super) struct Ending {
    pub(super) exit: Option<Option<i32>>,
    pub(super) is_tree_gone: bool,
}

impl Host {
    /// Takes the children that have ended, and what the spawner says. Ends are taken first and answers handled
    /// first: a child that was ready and has ended is known by then.
    pub(super) fn hear_children(&mut self) {
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

    pub(super) fn restart_spawner(&mut self) {
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

    pub(super) fn hear_adopted(&mut self, token: u64) {
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
            Some(ending) => {
                ending.exit = Some(exit);
                let _ = self.ender.send(ender::Task::Look);
            }
            None => self.events.push_back(Event::Exited(slot, run, exit)),
        }
        self.finish_ending(slot, run);
    }

    pub(super) fn finish_ending(&mut self, slot: Slot, run: RunId) {
        let key = (slot, run);
        if let Some(Ending { exit: Some(exit), is_tree_gone: true }) = self.runs.ending.get(&key) {
            self.events.push_back(Event::Exited(slot, run, *exit));
            self.runs.ending.remove(&key);
        }
    }

    pub(super) fn launch(
        &self,
        ticket: Ticket,
        entry: &Entry,
        run: RunId,
        chosen: Option<Timestamp>,
    ) -> Launch {
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
    pub(super) fn watch(&mut self, slot: Slot, run: RunId, process: &ProcessId) {
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
}

/// Takes as many descriptors as krond may have: adopted runs need one each. Tells how many it had.
pub(super) fn raise_descriptors() -> Rlimit {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    limit
}
