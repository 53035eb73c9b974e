//! How long starting many programs takes: through the spawner, each held at its gate first, beside a bare loop.
//!
//! ```text
//! cargo build --release -p krond --bins
//! cargo run --release -p krond --example spawn -- target/release/krond 2000 5
//! ```

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use krond::children;
use krond::clock;
use krond::spawner::{Answer, Launch, Spawner, Ticket};
use krontab::{Output, Program};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{WaitOptions, wait};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [exe, count, rounds] = &words[..] else { return Err("usage: spawn KROND COUNT ROUNDS".into()) };
    let (count, rounds): (u64, usize) = (count.parse()?, rounds.parse()?);
    // What krond's size costs: a bare loop does not feel it with `vfork`, and the spawner must not either.
    let ballast: Vec<u8> = (0..256 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
    let mut spawner = Spawner::start(Path::new(exe))?;
    let (mut bare, mut gated) = (Vec::new(), Vec::new());
    let mut ticket = 0;
    for _ in 0..rounds {
        bare.push(timed(|| loop_of(count))?);
        gated.push(timed(|| gated_loop_of(count, &mut spawner, &mut ticket))?);
    }
    bare.sort();
    gated.sort();
    let (bare, gated) = (bare[rounds / 2], gated[rounds / 2]);
    println!("{count} programs, median of {rounds} rounds, krond with {} MiB", ballast.len() >> 20);
    println!("bare posix_spawn    {bare:>10.1?}");
    println!("prepare and release {gated:>10.1?}");
    println!("ratio               {:>10.2}", gated.as_secs_f64() / bare.as_secs_f64());
    Ok(())
}

/// The standard library spawns with `posix_spawn`.
fn loop_of(count: u64) -> Result<(), Box<dyn Error>> {
    for _ in 0..count {
        drop(Command::new(PROGRAM).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    }
    for _ in 0..count {
        wait(WaitOptions::empty())?;
    }
    Ok(())
}

fn gated_loop_of(count: u64, spawner: &mut Spawner, ticket: &mut u64) -> Result<(), Box<dyn Error>> {
    let command = krontab::Command {
        program: Program::Argv(vec![PROGRAM.to_owned()]),
        user: None,
        group: None,
        cwd: None,
        env: Vec::new(),
        umask: None,
        timeout: None,
        stdout: Output::Discard,
        stderr: Output::Inherit,
    };
    for _ in 0..count {
        *ticket += 1;
        spawner.prepare(&Launch::new(Ticket(*ticket), "spawn", &command, []))?;
    }
    let mut released = 0;
    let mut ended = 0;
    while released < count {
        let now = clock::now().uptime;
        spawner.flush(now);
        let flags = if spawner.wants_write() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        poll(&mut [PollFd::new(spawner, flags)], None)?;
        for answer in spawner.answers(now)? {
            match answer {
                Answer::Ready { ticket, .. } => {
                    spawner.release(ticket);
                    released += 1;
                }
                Answer::Released { .. } => {}
                Answer::Failed { .. } | Answer::Gone { .. } => return Err(format!("{answer:?}").into()),
            }
        }
        spawner.flush(now);
        ended += children::reap()?.len() as u64;
    }
    for _ in ended..count {
        wait(WaitOptions::empty())?;
    }
    Ok(())
}

const PROGRAM: &str = "/bin/true";

#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
fn timed(work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}
