//! The thread that ends runs: it finds everything that a run has started, signals it, and tells when nothing is left.

use std::collections::{BTreeSet, HashMap};
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

/// A run to be ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) slot: Slot,
    pub(crate) run: RunId,
    pub(crate) process: ProcessId,
    pub(crate) signal: Signal,
}

/// How often to look whether anything is left.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Starts the thread. It ends when nobody can give it runs any more.
pub(crate) fn start(post: &Post) -> io::Result<Sender<End>> {
    let (sender, receiver) = mpsc::channel();
    post.thread("ender", move |post| serve(&receiver, post))?;
    Ok(sender)
}

fn serve(ends: &Receiver<End>, post: &Post) {
    let mut trees: HashMap<(Slot, RunId), Tree> = HashMap::new();
    let mut new: Vec<End> = Vec::new();
    loop {
        let first = if trees.is_empty() && new.is_empty() {
            match ends.recv() {
                Ok(end) => Some(end),
                Err(_) => return,
            }
        } else {
            match ends.recv_timeout(LOOK_EVERY) {
                Ok(end) => Some(end),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        };
        new.extend(first.into_iter().chain(ends.try_iter()));
        // Who cannot be looked for now is looked for again in a moment.
        let Ok(snapshot) = Snapshot::take() else { continue };
        for End { slot, run, process, signal } in new.drain(..) {
            let tree = trees.entry((slot, run)).or_insert_with(|| Tree::new(process));
            tree.look(&snapshot);
            // What is not reached is found again by the next look, and killed when its grace is over.
            let _ = match signal {
                Signal::Term => tree.signal(children::Signal::Terminate),
                Signal::Kill => {
                    freeze(tree);
                    tree.signal(children::Signal::Kill)
                }
            };
        }
        trees.retain(|(slot, run), tree| {
            let is_left = tree.look(&snapshot);
            if !is_left {
                post.send(Message::TreeGone(*slot, *run));
            }
            is_left
        });
    }
}

/// How often somebody new may be found before it is enough.
const FREEZES_MAX: usize = 16;

/// Stops everybody of a run before they are killed: who is stopped starts nobody that would not be found.
fn freeze(tree: &mut Tree) {
    for _ in 0..FREEZES_MAX {
        let before: BTreeSet<u32> = tree.members().map(|member| member.pid).collect();
        let _ = tree.signal(children::Signal::Stop);
        let Ok(snapshot) = Snapshot::take() else { return };
        tree.look(&snapshot);
        if tree.members().all(|member| before.contains(&member.pid)) {
            return;
        }
    }
}
