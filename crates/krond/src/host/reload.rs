//! Krontabs that are read again: in a thread of their own, all of them or none, and one reading after another.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use krontab::Entry;
use serde_json::json;

use super::Host;
use crate::clock;
use crate::config;
use crate::control::Answer;
use crate::daemon::{Configured, Event};
use crate::inbox::{Message, Post};
use crate::log::{self, Level, Line};

impl Host {
    /// Takes on a configuration.
    pub(super) fn configure(&mut self, configured: Vec<Configured>) {
        // A job that was removed before may be forgotten by now, and then its state must be looked for after all.
        while let Some(event) = self.events.pop_front() {
            self.feed(event);
        }
        let is_unknown = |job: &Configured| job.memory.is_none() && !self.daemon.knows(job.entry.identity());
        if configured.iter().any(is_unknown) {
            self.tell_alerts(&configured);
            let entries = configured.into_iter().map(|job| job.entry).collect();
            return self.receive(Message::Read(Ok(entries)));
        }
        let jobs = configured.len();
        self.feed(Event::Configured(configured));
        for caller in self.reloading.drain(..) {
            let _ = caller.send(Answer::ok(json!({ "jobs": jobs })));
        }
        self.has_reloaded();
    }

    /// Tells of the damage that was found in states which nobody takes up.
    pub(super) fn tell_alerts(&mut self, configured: &[Configured]) {
        let now = clock::now();
        for Configured { entry, memory } in configured {
            if let Some(alert) = memory.as_ref().and_then(|memory| memory.alert(entry)) {
                self.report(&alert, now);
            }
        }
    }

    /// Reads the krontabs again, in a thread of its own.
    pub(super) fn reload(&mut self, callers: Vec<Sender<Answer>>) {
        if let Some(path) = &self.settings.log_file
            && let Err(error) = log::reopen(path)
        {
            self.fail("open the log anew", &error);
        }
        if self.is_reading {
            return self.reload_next.get_or_insert_default().extend(callers);
        }
        self.reloading = callers;
        if self.daemon.is_stopping() {
            return self.reload_failed(&["krond is stopping".into()]);
        }
        self.is_reading = true;
        let (config, zones, post) =
            (self.settings.config.clone(), Arc::clone(&self.zones), self.post.clone());
        let read = move || tell(&post, || config::read(&config, &zones));
        if let Err(error) = thread::Builder::new().spawn(read) {
            self.reload_failed(&[format!("krond could not begin a thread: {error}; try again")]);
        }
    }

    fn has_reloaded(&mut self) {
        self.is_reading = false;
        if let Some(callers) = self.reload_next.take() {
            self.reload(callers);
        }
    }

    pub(super) fn reload_failed(&mut self, errors: &[String]) {
        for error in errors {
            let line = Line::new(clock::now().wall, Level::Error, "scheduler", "error")
                .with("operation", "reload")
                .with("error", error.as_str());
            self.tell(&line);
        }
        let why = format!("the configuration stays as it was: {}", config::listed(errors));
        for caller in self.reloading.drain(..) {
            let _ = caller.send(Answer::error(&why));
        }
        self.has_reloaded();
    }
}

/// Tells what a reading has come to, whatever that is: until it is told, no other begins.
fn tell(post: &Post, read: impl FnOnce() -> Result<Vec<Arc<Entry>>, Vec<String>>) {
    // What it has left half done is gone with it.
    let read = panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(vec!["krond could not read the krontabs for a mistake of its own, which its log has".into()])
    });
    post.send(Message::Read(read));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox;

    #[test]
    fn a_reading_that_is_torn_is_told_as_one_that_failed() {
        let (post, inbox) = inbox::open().unwrap();
        tell(&post, || panic!("so that it is torn"));
        let told = inbox.take();
        assert!(matches!(&told[..], [Message::Read(Err(errors))] if errors.len() == 1), "{told:?}");
    }
}
