//! Where the threads leave what they have done, and the daemon finds it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use kron_core::RunId;
use krontab::Entry;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::control::{Answer, Request};
use crate::daemon::{Configured, Recovered};
use crate::timers::Slot;

/// Something that a thread has to tell.
#[derive(Debug)]
pub(crate) enum Message {
    /// Somebody asks for something, and waits.
    Asked(Request, Sender<Answer>),
    /// The krontabs were read again.
    Read(Result<Vec<Arc<Entry>>, Vec<String>>),
    /// The states of new jobs were loaded, and this is the configuration.
    Loaded(Result<Vec<Configured>, String>),
    /// A state was tried again.
    Retried(Slot, Recovered),
    /// States were written, or not, and it took so long.
    Written(Vec<(Slot, Result<(), String>)>, Duration),
    /// Nothing is left of a run that was asked to end.
    TreeGone(Slot, RunId),
}

/// One end of the inbox for a thread.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    sender: Sender<Message>,
    bell: Arc<OwnedFd>,
}

/// The daemon's end.
#[derive(Debug)]
pub(crate) struct Inbox {
    receiver: Receiver<Message>,
    bell: Arc<OwnedFd>,
}

/// A way in, and the way out.
pub(crate) fn open() -> io::Result<(Post, Inbox)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = mpsc::channel();
    Ok((Post { sender, bell: Arc::clone(&bell) }, Inbox { receiver, bell }))
}

impl Post {
    /// Leaves a message. Once the daemon is gone, nobody reads it.
    pub(crate) fn send(&self, message: Message) {
        if self.sender.send(message).is_ok() {
            // It can only fail when it has rung so often that the bell is ringing anyway.
            let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        }
    }
}

impl Inbox {
    /// Everything that is there. Never waits.
    pub(crate) fn take(&self) -> Vec<Message> {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        self.receiver.try_iter().collect()
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
