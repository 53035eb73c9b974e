//! Where the threads leave what they have done, and the daemon finds it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
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
    Retried(Slot, Box<Recovered>),
    /// States were written, or not, and it took so long.
    Written(Vec<(Slot, Result<(), String>)>, Duration),
    /// Nothing is left of a run that was asked to end.
    TreeGone(Slot, RunId),
    /// A thread that the daemon cannot do without has ended.
    Died(&'static str),
}

/// One end of the inbox for a thread.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    sender: Sender<Message>,
    bell: Arc<OwnedFd>,
}

/// Tells of the end of a thread, however it comes.
struct Vital {
    name: &'static str,
    post: Post,
}

impl Drop for Vital {
    fn drop(&mut self) {
        self.post.send(Message::Died(self.name));
    }
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
    /// Starts a thread that the daemon cannot do without. Its end is told, and means nothing once the daemon is gone.
    pub(crate) fn thread(
        &self,
        name: &'static str,
        work: impl FnOnce(&Post) + Send + 'static,
    ) -> io::Result<()> {
        let vital = Vital { name, post: self.clone() };
        let body = move || {
            let vital = vital;
            work(&vital.post);
        };
        thread::Builder::new().name(name.into()).spawn(body)?;
        Ok(())
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    #[test]
    fn the_end_of_a_thread_is_told_however_it_comes() {
        let (post, inbox) = open().unwrap();
        post.thread("calm", |_| {}).unwrap();
        post.thread("torn", |_| panic!("so that it is torn")).unwrap();
        let mut died = Vec::new();
        while died.len() < 2 {
            poll(&mut [PollFd::new(&inbox, PollFlags::IN)], None).unwrap();
            died.extend(inbox.take().into_iter().map(|message| match message {
                Message::Died(name) => name,
                other => panic!("{other:?}"),
            }));
        }
        died.sort_unstable();
        assert_eq!(died, ["calm", "torn"]);
    }
}
