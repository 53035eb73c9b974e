//! The spawner's own process: it copies itself, and holds the gates.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Rlimit, Signal, chdir, getrlimit, pidfd_open, pidfd_send_signal, setrlimit, setsid,
};

use super::account::Account;
use super::child::{self, Ground};
use super::wire::{self, Frames, PACKET_MAX, Reply, Request};
use super::{Launch, SLOW_MAX, Stage, Ticket, WAVE};
use crate::sys::{self, Forked, Kin, Single};

/// Is the spawner, until krond ends. The socket to krond is standard input.
pub fn serve() -> ! {
    let code = match Server::new().and_then(|mut server| server.run()) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("krond: the spawner failed: {error}");
            1
        }
    };
    sys::exit(code)
}

struct Server {
    single: Single,
    socket: OwnedFd,
    epoll: OwnedFd,
    gates: BTreeMap<Ticket, Gate>,
    /// Who is still to be made, at most a wave of them.
    launches: VecDeque<Launch>,
    /// Whose gates krond has opened, and was not told so. No more are at the gate than fit into a packet.
    released: Vec<Ticket>,
    ground: Ground,
}

/// The end of a gate that the spawner holds. One byte opens it, closing it closes it.
struct Gate {
    end: OwnedFd,
    pid: Pid,
}

impl Gate {
    /// Ends the child, which hangs. It is krond's, who may have waited for it, so its number may be another's by now: it is
    /// held first, and then the gate tells whether the child was there all the time.
    fn kill(&self) {
        let Ok(held) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        let mut gate = [PollFd::new(&self.end, PollFlags::empty())];
        let is_there = poll(&mut gate, Some(&NOW)).is_ok_and(|broken| broken == 0);
        if is_there {
            let _ = pidfd_send_signal(&held, Signal::KILL);
        }
    }
}

impl Server {
    fn new() -> io::Result<Server> {
        let single = Single::prove()?;
        // Signals for krond's group or service are not for the spawner: it ends when krond has. Blocked and with
        // their default they cost a child one call to have as a new process should.
        sys::block_signals()?;
        sys::default_signals();
        rustix::thread::set_name(c"krond: spawner")?;
        let socket = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(null)?;
        // A session of its own, so that a terminal's signals pass it by. It may have one already.
        let _ = setsid();
        chdir("/")?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &socket, EventData::new_u64(SOCKET), EventFlags::IN)?;
        let ground = Ground { own: Account::own()?, open_files: open_files()? };
        Ok(Server {
            single,
            socket,
            epoll,
            gates: BTreeMap::new(),
            launches: VecDeque::new(),
            released: Vec::new(),
            ground,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut arrived = Frames::default();
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let until = (!self.launches.is_empty()).then_some(&NOW);
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), until) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for Event { data, .. } in events.drain(..) {
                if data.u64() != SOCKET {
                    self.ended(data.u64());
                } else if !self.hear(&mut arrived)? {
                    return Ok(());
                }
            }
            // One at a time: whoever is at the gate does not wait for all the others to be made.
            if let Some(launch) = self.launches.pop_front() {
                self.make(&launch)?;
            }
        }
    }

    /// Takes all that krond has said. Whether it is still there.
    fn hear(&mut self, arrived: &mut Frames) -> io::Result<bool> {
        let mut packet = [0; PACKET_MAX];
        let mut is_there = true;
        while is_there {
            match recv(&self.socket, &mut packet, RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    is_there = length > 0;
                    arrived.push(&packet[..length]);
                }
                Err(Errno::AGAIN) => break,
                // It has ended without having read everything; what it had said comes first.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for request in arrived.take()? {
            self.handle(request);
        }
        if !self.released.is_empty() {
            let tickets = std::mem::take(&mut self.released);
            self.say(&Reply::Released { tickets })?;
        }
        Ok(is_there)
    }

    fn handle(&mut self, request: Request) {
        match request {
            Request::Launch(launch) => self.launches.push_back(*launch),
            Request::Release(ticket) => {
                if let Some(gate) = self.leave(ticket) {
                    // It fails if the child has ended at the gate, which krond, its parent, learns from the kernel.
                    let _ = rustix::io::write(&gate.end, b"!");
                }
                self.released.push(ticket);
            }
            Request::Kill(ticket) => {
                if let Some(gate) = self.leave(ticket) {
                    gate.kill();
                }
            }
            Request::Abort(ticket) => drop(self.leave(ticket)),
        }
    }

    /// Forgets a ticket, and gives its gate if it is there already.
    fn leave(&mut self, ticket: Ticket) -> Option<Gate> {
        let gate = self.gates.remove(&ticket);
        match &gate {
            Some(gate) => drop(epoll::delete(&self.epoll, &gate.end)),
            None => self.launches.retain(|launch| launch.ticket != ticket),
        }
        gate
    }

    fn make(&mut self, launch: &Launch) -> io::Result<()> {
        match self.launch(launch) {
            Ok(gate) => drop(self.gates.insert(launch.ticket, gate)),
            Err(error) => {
                let error = format!("could not make a process: {error}");
                self.say(&Reply::Failed { ticket: launch.ticket, stage: Stage::Process, error })?;
            }
        }
        Ok(())
    }

    /// Makes the child, and the gate it will wait at.
    fn launch(&self, launch: &Launch) -> io::Result<Gate> {
        let (theirs, end) = pipe_with(PipeFlags::CLOEXEC)?;
        match sys::fork(&self.single, Kin::Sibling)? {
            Forked::Copy => {
                child::run(&self.single, launch, &self.ground, self.socket.as_fd(), theirs.as_fd())
            }
            Forked::Here(pid) => {
                let key = EventData::new_u64(pid.as_raw_nonzero().get().unsigned_abs().into());
                // Nobody but the child can read this gate, so it breaks when the child ends.
                epoll::add(&self.epoll, &end, key, EventFlags::empty())?;
                Ok(Gate { end, pid })
            }
        }
    }

    /// A child has ended before its gate was opened. If it has said why, this comes later and says nothing.
    fn ended(&mut self, pid: u64) {
        let is_its = |gate: &Gate| u64::from(gate.pid.as_raw_nonzero().get().unsigned_abs()) == pid;
        let ticket = self.gates.iter().find_map(|(ticket, gate)| is_its(gate).then_some(*ticket));
        let Some((ticket, gate)) = ticket.and_then(|ticket| self.gates.remove_entry(&ticket)) else { return };
        let _ = epoll::delete(&self.epoll, &gate.end);
        let error = "the process ended before it was released".to_owned();
        // That krond has ended is told by reading.
        let _ = self.say(&Reply::Failed { ticket, stage: Stage::Gate, error });
    }

    fn say(&self, reply: &Reply) -> io::Result<()> {
        match send(&self.socket, &wire::frame(reply)?, SendFlags::NOSIGNAL) {
            // That krond has ended is told by reading.
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Raises the limit on open files if a wave does not fit. Returns what children get back.
fn open_files() -> io::Result<Option<Rlimit>> {
    use rustix::process::Resource::Nofile;
    let limit = getrlimit(Nofile);
    let needed = (WAVE + SLOW_MAX) as u64 + SPARE;
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(None);
    }
    let raised = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
    setrlimit(Nofile, Rlimit { current: Some(raised), maximum: limit.maximum })?;
    Ok(Some(limit))
}

/// Descriptors beside the gates: standard ones, socket, epoll, a new pipe, and room for the libraries of the host.
const SPARE: u64 = 32;

/// The most events taken at once; the rest comes with the next.
const EVENTS: usize = 64;

/// Without waiting.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The socket's key in epoll. No child has it: process numbers begin with 1.
const SOCKET: u64 = 0;
