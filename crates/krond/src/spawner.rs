//! Children, each held at a gate until krond has written down that it starts.
//!
//! krond starts one small process before anything else: the spawner, its own binary in a hidden mode. It has one
//! thread and little memory, so a copy of it is cheap whatever krond grows to. For each [`Launch`] it makes a copy
//! that is krond's own child ([`serve`]). The copy does everything that can fail (session, limits, user, output,
//! directory, program), says [`Answer::Ready`], and waits at its gate, a pipe of which the spawner holds the other
//! end. krond makes its record durable, then says [`Spawner::release`], and the copy becomes the program. A gate that
//! closes instead ([`Spawner::abort`], the end of krond or of the spawner, by whatever means) lets the copy exit, and
//! nothing has run.
//!
//! ```text
//! krond                      spawner                     child (krond's)
//!   prepare(launch) ───────▶ copies itself ────────────▶ sets itself up
//!   ◀──────────────────────────────────── Ready { process }, waits at the gate
//!   writes its state
//!   release(ticket) ───────▶ one byte ─────────────────▶ execve
//!   ◀───────────── Released
//! ```
//!
//! Nothing here ever blocks krond, and it never has more than [`WAVE`] children at the gate. A child whose set-up hangs
//! keeps nobody else from theirs, and is given up after [`SETUP_MAX`].

mod account;
mod child;
mod environment;
mod output;
mod relay;
mod serve;
mod wire;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use krontab::Output;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use serde::{Deserialize, Serialize};

use crate::children;
use crate::process::{BootId, ProcessId};
use wire::{Frames, PACKET_MAX, Reply, Request};

pub use crate::process::Ticket;
pub use serve::serve;

/// The most children at the gate at a time. Each holds one descriptor of the spawner; the writers of krond's state
/// take as many jobs at once, so more would only wait elsewhere.
pub const WAVE: usize = 256;

/// From when on a set-up is slow: a directory or a user that hangs is nothing that others wait for, so it no longer counts
/// as one of the wave.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// The most slow set-ups at a time. Each holds a descriptor of the spawner, too.
const SLOW_MAX: usize = WAVE;

/// How long a set-up may take. A user that is looked up in a directory far away, or a disk that has to wake, takes less.
pub const SETUP_MAX: Duration = Duration::from_secs(30);

/// The word that makes `krond` a spawner. It is no command for people.
pub const MODE: &str = "__spawner";

/// How a child exits that never became a program: its gate closed, or its set-up failed.
///
/// A run that was released can only end so if the spawner was killed in that very moment, or if its program does.
pub const NOT_STARTED: i32 = 125;

/// Everything that a child needs to become a run.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct Launch {
    /// This attempt.
    pub ticket: Ticket,
    /// The job's name, under which its output goes to the system's log.
    pub name: String,
    /// The program, by its absolute path, and its arguments.
    pub argv: Vec<String>,
    /// Variables that are added to its environment. Of two with one name the later counts.
    pub env: Vec<(String, String)>,
    /// Whether the environment of krond is what they are added to, instead of a clean one.
    pub inherit_env: bool,
    /// Who runs it; by default whoever runs krond.
    pub user: Option<String>,
    /// With which group; by default the user's own.
    pub group: Option<String>,
    /// The working directory; by default the user's home, or `/` if that cannot be entered.
    pub cwd: Option<PathBuf>,
    /// Permission bits that new files do not get; by default those that krond was started with.
    pub umask: Option<u32>,
    /// Where its standard output goes.
    #[serde(with = "output::OutputShape")]
    pub stdout: Output,
    /// Where its standard error goes.
    #[serde(with = "output::OutputShape")]
    pub stderr: Output,
    /// How large a file for its output may be when it starts. A larger one is put aside.
    pub output_max: Option<u64>,
    /// Limits; by default, and for those not named, what krond was started with.
    pub limits: Vec<Limit>,
    /// Where the system's log listens.
    pub syslog: PathBuf,
}

/// How much of something a process may have.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Limit {
    /// Of what.
    pub resource: Resource,
    /// How much, unless the process asks for more. `None` is without end.
    pub soft: Option<u64>,
    /// How much it can ask for.
    pub hard: Option<u64>,
}

/// What can be limited, see `getrlimit(2)`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[expect(missing_docs, reason = "they are the kernel's words, and its manual explains them")]
pub enum Resource {
    AddressSpace,
    Core,
    Cpu,
    Data,
    FileSize,
    Memlock,
    OpenFiles,
    Processes,
    Stack,
}

impl Launch {
    /// What a krontab's entry runs. `env` comes after what the entry sets, so that no entry can change it.
    #[must_use]
    pub fn new(
        ticket: Ticket,
        name: impl Into<String>,
        command: &krontab::Command,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Launch {
        let own = command.env.iter().map(|variable| (variable.key.clone(), variable.value.clone()));
        Launch {
            ticket,
            name: name.into(),
            argv: command.program.argv().into_iter().map(str::to_owned).collect(),
            env: own.chain(env).collect(),
            inherit_env: false,
            user: command.user.clone(),
            group: command.group.clone(),
            cwd: command.cwd.clone(),
            umask: command.umask,
            stdout: command.stdout.clone(),
            stderr: command.stderr.clone(),
            output_max: None,
            limits: Vec::new(),
            syslog: PathBuf::from("/dev/log"),
        }
    }
}

/// Arguments and variables may be secrets.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("ticket", &self.ticket)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What became of a ticket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// The child waits at its gate, and nothing can fail any more but becoming the program.
    Ready {
        /// Which.
        ticket: Ticket,
        /// Who it is, and will be as the program.
        process: ProcessId,
    },
    /// Their gates are open, or there is nobody left to open them: what was released has gone on, or has ended.
    Released {
        /// Which.
        tickets: Vec<Ticket>,
    },
    /// There is no child, and nothing has run. It may follow a [`Answer::Ready`]: then the child has ended at its
    /// gate, for someone else has ended it.
    Failed {
        /// Which.
        ticket: Ticket,
        /// What it was doing.
        stage: Stage,
        /// What went wrong, for people.
        error: String,
    },
    /// The spawner has ended. Start another.
    Gone {
        /// What was prepared and not released: none of it has run, or will.
        tickets: Vec<Ticket>,
    },
}

/// What a child was doing when something went wrong, in the order in which it does it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Stage {
    /// Being made.
    Process,
    /// Closing what it does not need.
    Descriptors,
    /// Letting signals through.
    Signals,
    /// Beginning a session of its own.
    Session,
    /// Finding out who it is.
    Identity,
    /// Setting limits.
    Limits,
    /// Looking up the user and the group.
    Account,
    /// Reaching the system's log.
    Syslog,
    /// Taking the user's other groups.
    Groups,
    /// Taking the group.
    Group,
    /// Becoming the user.
    User,
    /// Making sure that it has become the user, and cannot go back.
    Verify,
    /// Opening its output.
    Output,
    /// Entering its directory.
    Directory,
    /// Putting arguments and environment together.
    Arguments,
    /// Looking whether the program can be run.
    Program,
    /// Waiting at the gate.
    Gate,
    /// One of these, nobody knows which: it took too long.
    SetUp,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Process => "process",
            Stage::Descriptors => "descriptors",
            Stage::Signals => "signals",
            Stage::Session => "session",
            Stage::Identity => "identity",
            Stage::Limits => "limits",
            Stage::Account => "account",
            Stage::Syslog => "syslog",
            Stage::Groups => "groups",
            Stage::Group => "group",
            Stage::User => "user",
            Stage::Verify => "verify",
            Stage::Output => "output",
            Stage::Directory => "directory",
            Stage::Arguments => "arguments",
            Stage::Program => "program",
            Stage::Gate => "gate",
            Stage::SetUp => "set-up",
        })
    }
}

/// The spawner, seen from krond. Dropping it ends it, and with it whatever waits at a gate.
///
/// After whatever is asked of it, [`flush`](Spawner::flush). Wait until [`as_fd`](AsFd::as_fd) can be read, or, if it
/// [`wants_write`](Spawner::wants_write), written, or until its [`next_alarm`](Spawner::next_alarm); then ask for
/// [`answers`](Spawner::answers). Its process is krond's child as all the others are, so
/// [`children::reap`] takes it when it has ended.
#[derive(Debug)]
pub struct Spawner {
    pid: u32,
    socket: OwnedFd,
    boot: BootId,
    /// What the socket has not taken yet: at most a wave of launches, and their releases.
    out: VecDeque<u8>,
    /// Launches for which there is no room at the gate yet, in their order.
    queue: VecDeque<(Ticket, Vec<u8>)>,
    /// Those of them that still matter: what was aborted stays in the queue until its turn.
    waiting: BTreeSet<Ticket>,
    /// What was sent and neither released, nor aborted, nor has failed.
    at_gate: BTreeSet<Ticket>,
    /// Those of them that are not ready, and since when.
    setting_up: BTreeMap<Ticket, Duration>,
    /// Those of them that take long.
    slow: BTreeMap<Ticket, Duration>,
    /// What was released, and is not known to have heard of it.
    released: BTreeSet<Ticket>,
    arrived: Frames,
    is_gone: bool,
}

impl Spawner {
    /// Starts a spawner. `exe` is krond's own binary, best as `/proc/self/exe`: that is there even after an upgrade.
    ///
    /// Its limits, umask and environment, and so those of runs that set none, are what krond has now.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start(exe: &Path) -> io::Result<Spawner> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let boot = children::boot_id()?;
        // What spawns is the standard library, with `vfork` semantics: cheap, and never again.
        let child = Command::new(exe).arg0("krond: spawner").arg(MODE).stdin(Stdio::from(theirs)).spawn()?;
        Ok(Spawner {
            pid: child.id(),
            socket: ours,
            boot,
            out: VecDeque::new(),
            queue: VecDeque::new(),
            waiting: BTreeSet::new(),
            at_gate: BTreeSet::new(),
            setting_up: BTreeMap::new(),
            slow: BTreeMap::new(),
            released: BTreeSet::new(),
            arrived: Frames::default(),
            is_gone: false,
        })
    }

    /// The number of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks for a child at its gate. If there is no room there, the request waits here.
    ///
    /// # Errors
    /// If the spawner has ended, or the launch is too long to be sent. Then the ticket has no answer.
    pub fn prepare(&mut self, launch: &Launch) -> io::Result<()> {
        if self.is_gone {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the spawner has ended"));
        }
        let frame = wire::frame(&Request::Launch(Box::new(launch.clone())))?;
        self.queue.push_back((launch.ticket, frame));
        self.waiting.insert(launch.ticket);
        Ok(())
    }

    /// Opens the gate: the child becomes its program, and [`Answer::Released`] follows. Only for a ticket that is ready;
    /// without effect on any other, and `false`.
    pub fn release(&mut self, ticket: Ticket) -> bool {
        let is_there = self.leave(ticket);
        if is_there {
            self.say(&Request::Release(ticket));
            self.released.insert(ticket);
        }
        is_there
    }

    /// Gives up on a ticket, wherever it is: there will be no program, and no further answer.
    pub fn abort(&mut self, ticket: Ticket) {
        if self.leave(ticket) {
            self.say(&Request::Abort(ticket));
        } else {
            self.waiting.remove(&ticket);
        }
    }

    /// Sends what waits, as far as there is room at the gate and in the socket. Never blocks.
    pub fn flush(&mut self, now: Duration) {
        while !self.is_gone && self.has_room() {
            let Some((ticket, frame)) = self.queue.pop_front() else { break };
            if self.waiting.remove(&ticket) {
                self.at_gate.insert(ticket);
                self.setting_up.insert(ticket, now);
                self.out.extend(frame);
            }
        }
        self.send();
    }

    /// Whether something is left to be sent, once the socket can be written.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        !self.out.is_empty() && !self.is_gone
    }

    /// When to ask for answers, though the socket has none: a set-up takes long.
    #[must_use]
    pub fn next_alarm(&self) -> Option<Duration> {
        let slow = self.setting_up.values().min().map(|since| *since + SLOW_AFTER);
        let given_up = self.slow.values().min().map(|since| *since + SETUP_MAX);
        slow.into_iter().chain(given_up).min().filter(|_| !self.is_gone)
    }

    /// Sends what was left, and tells what has become of the tickets. Never blocks.
    ///
    /// A child that has said something and then ended was heard if [`children::reap`] is asked *before* this: take
    /// ends first, then answers, and handle the answers first.
    ///
    /// # Errors
    /// If the socket fails, or what arrives makes no sense. The spawner is of no use then.
    pub fn answers(&mut self, now: Duration) -> io::Result<Vec<Answer>> {
        if self.is_gone {
            return Ok(Vec::new());
        }
        self.send();
        let mut has_ended = false;
        let mut packet = [0; PACKET_MAX];
        while !has_ended {
            match recv(&self.socket, &mut packet, RecvFlags::DONTWAIT) {
                Ok((0, _)) => has_ended = true,
                Ok((length, _)) => self.arrived.push(&packet[..length]),
                Err(Errno::AGAIN) => break,
                // It has ended before it had read everything. What it had said comes first.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let replies = self.arrived.take::<Reply>()?;
        let mut answers: Vec<Answer> = replies.into_iter().filter_map(|reply| self.hear(reply)).collect();
        if has_ended {
            self.is_gone = true;
            self.out.clear();
            self.queue.clear();
            let released = std::mem::take(&mut self.released);
            answers.push(Answer::Released { tickets: released.into_iter().collect() });
            self.setting_up.clear();
            self.slow.clear();
            let mut tickets = std::mem::take(&mut self.at_gate);
            tickets.append(&mut self.waiting);
            answers.push(Answer::Gone { tickets: tickets.into_iter().collect() });
        } else {
            answers.extend(self.give_up(now));
            self.flush(now);
        }
        Ok(answers)
    }

    /// A reply, if it is about something that still matters.
    fn hear(&mut self, reply: Reply) -> Option<Answer> {
        match reply {
            Reply::Ready { ticket, pid, start_ticks } => self.at_gate.contains(&ticket).then(|| {
                self.setting_up.remove(&ticket);
                self.slow.remove(&ticket);
                let process = ProcessId { boot: self.boot, pid, start_ticks };
                Answer::Ready { ticket, process }
            }),
            Reply::Released { tickets } => {
                for ticket in &tickets {
                    self.released.remove(ticket);
                }
                Some(Answer::Released { tickets })
            }
            Reply::Failed { ticket, stage, error } => self.leave(ticket).then(|| {
                // The spawner lets go of the gate before it hears of the next launch.
                self.say(&Request::Abort(ticket));
                Answer::Failed { ticket, stage, error }
            }),
        }
    }

    /// Gives up on set-ups that take too long. Who has taken longest gives place first, whenever they got their tickets.
    fn give_up(&mut self, now: Duration) -> Vec<Answer> {
        self.setting_up.retain(|ticket, since| {
            let is_slow = *since + SLOW_AFTER <= now;
            self.slow.extend(is_slow.then_some((*ticket, *since)));
            !is_slow
        });
        let mut answers = Vec::new();
        while let Some((&ticket, &since)) = self.slow.iter().min_by_key(|(_, since)| **since)
            && (since + SETUP_MAX <= now || self.slow.len() > SLOW_MAX)
        {
            self.leave(ticket);
            self.say(&Request::Kill(ticket));
            let error = format!("it was not ready after {} s", now.saturating_sub(since).as_secs());
            answers.push(Answer::Failed { ticket, stage: Stage::SetUp, error });
        }
        answers
    }

    fn has_room(&self) -> bool {
        self.at_gate.len() - self.slow.len() < WAVE
    }

    /// It is at the gate no longer. Whether it was.
    fn leave(&mut self, ticket: Ticket) -> bool {
        self.setting_up.remove(&ticket);
        self.slow.remove(&ticket);
        self.at_gate.remove(&ticket)
    }

    fn say(&mut self, request: &Request) {
        self.out.extend(wire::frame(request).expect("a ticket is short"));
    }

    /// Sends what the socket takes. That the spawner has ended is for [`Spawner::answers`] to tell.
    fn send(&mut self) {
        while !self.out.is_empty() {
            let length = self.out.len().min(PACKET_MAX);
            let packet = &self.out.make_contiguous()[..length];
            match send(&self.socket, packet, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
    }
}

impl AsFd for Spawner {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A spawner that nobody serves, which has sent these tickets at those seconds.
    fn sent(tickets: &[(u64, u64)]) -> (Spawner, OwnedFd) {
        let (socket, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let since = |&(ticket, second): &(u64, u64)| (Ticket(ticket), Duration::from_secs(second));
        let spawner = Spawner {
            pid: 0,
            socket,
            boot: BootId::new(1),
            out: VecDeque::new(),
            queue: VecDeque::new(),
            waiting: BTreeSet::new(),
            at_gate: tickets.iter().map(|(ticket, _)| Ticket(*ticket)).collect(),
            setting_up: tickets.iter().map(since).collect(),
            slow: BTreeMap::new(),
            released: BTreeSet::new(),
            arrived: Frames::default(),
            is_gone: false,
        };
        (spawner, other)
    }

    #[test]
    fn a_set_up_is_given_up_in_its_time_though_a_ticket_before_it_was_sent_later() {
        let (mut spawner, _other) = sent(&[(1, 100), (2, 70)]);
        assert_eq!(spawner.next_alarm(), Some(Duration::from_secs(70) + SLOW_AFTER));
        assert_eq!(
            spawner.answers(Duration::from_secs(100)).unwrap(),
            [Answer::Failed {
                ticket: Ticket(2),
                stage: Stage::SetUp,
                error: "it was not ready after 30 s".into()
            }]
        );
        assert_eq!(spawner.next_alarm(), Some(Duration::from_secs(100) + SLOW_AFTER));
        assert_eq!(spawner.answers(Duration::from_secs(129)).unwrap(), []);
        assert_eq!(spawner.next_alarm(), Some(Duration::from_secs(100) + SETUP_MAX));
    }
}
