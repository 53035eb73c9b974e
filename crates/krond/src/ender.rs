//! The thread that ends runs: it finds everything that a run has started, signals it, and tells when nothing is left.
//!
//! However many are to be ended, all processes are looked at once for all of them.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use kron_core::RunId;

use crate::children;
use crate::daemon::Signal;
use crate::inbox::{Message, Post};
use crate::process::ProcessId;
use crate::timers::Slot;
use crate::tree::{Snapshot, Tree};

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Task {
    /// A run is to be ended.
    End(End),
    /// The first process of one that is being ended has ended: what is left of it may be gone.
    Look,
}

/// A run to be ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) slot: Slot,
    pub(crate) run: RunId,
    pub(crate) process: ProcessId,
    pub(crate) signal: Signal,
}

/// How long to wait before the next look whether anything is left. Each further one waits twice as long, up to the last: a
/// process that cannot be ended would have all processes looked at for ever.
const LOOK_MIN: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Starts the thread. It ends when nobody can give it runs any more.
pub(crate) fn start(post: &Post) -> io::Result<Sender<Task>> {
    let (sender, receiver) = mpsc::channel();
    post.thread("ender", move |post| serve(&receiver, post))?;
    Ok(sender)
}

fn serve(tasks: &Receiver<Task>, post: &Post) {
    let mut trees: Trees = HashMap::new();
    let mut new: Vec<End> = Vec::new();
    let mut pause = LOOK_MIN;
    loop {
        let first = if trees.is_empty() && new.is_empty() {
            match tasks.recv() {
                Ok(task) => Some(task),
                Err(_) => return,
            }
        } else {
            match tasks.recv_timeout(pause) {
                Ok(task) => Some(task),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        };
        pause = next_pause(pause, first.is_some());
        new.extend(first.into_iter().chain(tasks.try_iter()).filter_map(|task| match task {
            Task::End(end) => Some(end),
            Task::Look => None,
        }));
        if trees.is_empty() && new.is_empty() {
            continue;
        }
        // Who cannot be looked for now is looked for again in a moment.
        let Ok(snapshot) = Snapshot::take() else { continue };
        for End { slot, run, process, .. } in &new {
            trees.entry((*slot, *run)).or_insert_with(|| Tree::new(*process));
        }
        trees.retain(|(slot, run), tree| {
            let is_left = tree.look(&snapshot);
            if !is_left {
                post.send(Message::TreeGone(*slot, *run));
            }
            is_left
        });
        end(&mut trees, new.drain(..).map(|End { slot, run, signal, .. }| ((slot, run), signal)));
    }
}

/// How long to wait after another look, for which there was a reason or none but the time.
fn next_pause(pause: Duration, is_told: bool) -> Duration {
    if is_told { LOOK_MIN } else { LOOK_MAX.min(2 * pause) }
}

/// The runs that are being ended.
type Trees = HashMap<(Slot, RunId), Tree>;

/// Signals runs, each as it is asked for. What is not reached is found again by the next look, and killed when its grace is
/// over.
fn end(trees: &mut Trees, new: impl Iterator<Item = ((Slot, RunId), Signal)>) {
    let mut killed = Vec::new();
    for (key, signal) in new {
        // It may be gone already.
        if signal == Signal::Kill {
            killed.extend(trees.remove_entry(&key));
        } else if let Some(tree) = trees.get(&key) {
            let _ = tree.signal(children::Signal::Terminate);
        }
    }
    freeze(&mut killed, Snapshot::take);
    for (key, tree) in killed {
        let _ = tree.signal(children::Signal::Kill);
        trees.insert(key, tree);
    }
}

/// How often somebody new may be found before it is enough.
const FREEZES_MAX: usize = 16;

/// Stops everybody of some runs before they are killed: who is stopped starts nobody that would not be found.
fn freeze<K>(trees: &mut [(K, Tree)], take: impl Fn() -> io::Result<Snapshot>) {
    let mut moving: Vec<&mut Tree> = trees.iter_mut().map(|(_, tree)| tree).collect();
    for _ in 0..FREEZES_MAX {
        if moving.is_empty() {
            return;
        }
        for tree in &moving {
            let _ = tree.signal(children::Signal::Stop);
        }
        let Ok(snapshot) = take() else { return };
        moving.retain_mut(|tree| {
            let before: Vec<ProcessId> = tree.members().collect();
            tree.look(&snapshot);
            !tree.members().all(|member| before.binary_search(&member).is_ok())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::process::{Child, Command};

    fn sleeper() -> (Child, Tree) {
        let child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let start_ticks = children::start_ticks(child.id()).unwrap().unwrap();
        let process = ProcessId { boot: children::boot_id().unwrap(), pid: child.id(), start_ticks };
        (child, Tree::new(process))
    }

    #[test]
    fn all_processes_are_looked_at_once_for_all_runs_that_are_killed_together() {
        let (mut sleepers, mut trees): (Vec<Child>, Vec<((), Tree)>) =
            (0..20).map(|_| sleeper()).map(|(child, tree)| (child, ((), tree))).unzip();
        let looks = Cell::new(0);
        freeze(&mut trees, || {
            looks.set(looks.get() + 1);
            Snapshot::take()
        });
        for sleeper in &mut sleepers {
            let stat = format!("/proc/{}/stat", sleeper.id());
            while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
                std::thread::yield_now();
            }
            sleeper.kill().unwrap();
            sleeper.wait().unwrap();
        }
        assert_eq!(looks.get(), 1, "nobody has started anybody");
    }

    #[test]
    fn what_does_not_end_is_looked_for_ever_more_rarely_until_there_is_news() {
        let mut pause = LOOK_MIN;
        let looks = (0..).take_while(|_| {
            pause = next_pause(pause, false);
            pause < LOOK_MAX
        });
        assert_eq!(looks.count(), 5);
        assert_eq!(next_pause(pause, false), LOOK_MAX);
        assert_eq!(next_pause(pause, true), LOOK_MIN);
    }
}
