//! The latest events in memory, for everybody who follows them.
//!
//! One task reads them from the store, once for all: whoever follows costs a place in the order and no query. Who
//! has fallen behind what is kept here reads the store until it has caught up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::refusal::{Code, Refusal};
use crate::sse;
use crate::store::{After, EventQuery, Events, Store, Stored};

/// How many events are kept here at most, and how many bytes of them.
const EVENTS_MAX: usize = 4_096;
const BYTES_MAX: usize = 8 << 20;

/// How many follow at most.
pub const FOLLOWERS_MAX: usize = 20_000;

/// How many events are read from the store at once.
const PAGE: usize = 1_000;

/// How often everybody is woken at most. What happens meanwhile is told together.
const PACE: Duration = Duration::from_millis(20);

/// How many of those who have fallen behind read the store at once. Everybody else reads it too.
const CATCHING_UP_MAX: usize = 2;

/// How long to wait after the store has failed.
const BACK_OFF: Duration = Duration::from_secs(1);

/// The latest events.
#[derive(Debug)]
pub struct Feed {
    recent: RwLock<Recent>,
    /// The number up to which they were read.
    through: watch::Sender<u64>,
    followers: AtomicUsize,
    catching_up: Semaphore,
}

/// All events with a number above `after` and up to `through`.
#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<Told>,
    bytes: usize,
    after: u64,
    through: u64,
}

/// An event, and how it is sent: written once, and shared by all who follow.
#[derive(Clone, Debug)]
pub struct Told {
    /// The event.
    pub event: Arc<Stored>,
    /// As a server-sent event.
    pub sent: Bytes,
}

impl From<Stored> for Told {
    fn from(event: Stored) -> Told {
        let sent = sse::event(&event.kind, Some(&event.id), event.body.get());
        Told { event: Arc::new(event), sent }
    }
}

/// What there is after a place.
#[derive(Debug)]
pub enum Look {
    /// This comes next.
    Event(Told),
    /// It is no longer here: the store has it.
    Behind,
    /// Nothing up to that number.
    Nothing(u64),
}

impl Feed {
    /// Nothing yet. What happened before, the store has.
    #[must_use]
    pub fn new(last_event: u64) -> Feed {
        let recent = Recent { after: last_event, through: last_event, ..Recent::default() };
        Feed {
            recent: RwLock::new(recent),
            through: watch::Sender::new(last_event),
            followers: AtomicUsize::new(0),
            catching_up: Semaphore::new(CATCHING_UP_MAX),
        }
    }

    /// Lets somebody follow for as long as the answer is held.
    ///
    /// # Errors
    ///
    /// If there are too many already.
    pub fn follow(self: &Arc<Feed>) -> Result<Follower, Refusal> {
        let taken = self.followers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |followers| {
            (followers < FOLLOWERS_MAX).then_some(followers + 1)
        });
        let too_many = |_| {
            let message = format!("{FOLLOWERS_MAX} clients follow events already, and no more can");
            Refusal::new(Code::BackendUnavailable, message).hint("ask for events page by page, with `after`")
        };
        taken.map_err(too_many)?;
        Ok(Follower { feed: Arc::clone(self), told: self.through.subscribe() })
    }

    /// How many follow.
    pub fn followers(&self) -> usize {
        self.followers.load(Ordering::SeqCst)
    }

    /// The number after which everything is here.
    #[must_use]
    pub fn begins(&self) -> u64 {
        self.recent.read().unwrap_or_else(PoisonError::into_inner).after
    }

    /// Waits for a turn to read the store. None when there will be no more.
    pub async fn catch_up(&self) -> Option<SemaphorePermit<'_>> {
        self.catching_up.acquire().await.ok()
    }

    /// What comes after the event of a number, of those that somebody wants.
    #[must_use]
    pub fn look(&self, after: u64, query: &EventQuery) -> Look {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        if after < recent.after {
            return Look::Behind;
        }
        let begin = recent.events.partition_point(|told| told.event.number <= after);
        match recent.events.range(begin..).find(|told| query.wants(&told.event)) {
            Some(told) => Look::Event(told.clone()),
            None => Look::Nothing(recent.through.max(after)),
        }
    }

    /// Reads what happens, for as long as the store tells of it. While nobody follows, nothing is read.
    pub async fn fill(&self, store: &dyn Store) {
        let mut told = store.last_event();
        loop {
            let last = *told.borrow_and_update();
            if self.followers() == 0 {
                self.take(Events { through: last, ..Events::default() }, true);
            } else if let Err(refusal) = self.read(store, last).await {
                tracing::error!(error = refusal.message, "could not read events for those who follow");
                tokio::time::sleep(BACK_OFF).await;
                continue;
            }
            tokio::time::sleep(PACE).await;
            if told.changed().await.is_err() {
                return;
            }
        }
    }

    async fn read(&self, store: &dyn Store, last: u64) -> Result<(), Refusal> {
        loop {
            let after = self.through.borrow().to_owned();
            if after >= last {
                return Ok(());
            }
            let query =
                EventQuery { after: Some(After::Number(after)), limit: PAGE, ..EventQuery::default() };
            let events = store.events(query).await?;
            let stands_still = events.through <= after;
            // Events may have been forgotten before they were read here.
            self.take(if stands_still { Events { through: last, ..events } } else { events }, stands_still);
        }
    }

    /// Keeps events, and tells everybody. What lies before a gap is of no use to anybody.
    fn take(&self, events: Events, is_gap: bool) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        if is_gap && events.through > recent.through {
            *recent = Recent { after: events.through, ..Recent::default() };
        }
        recent.through = recent.through.max(events.through);
        for event in events.events {
            let told = Told::from(event);
            recent.bytes += told.weight();
            recent.events.push_back(told);
        }
        while recent.events.len() > EVENTS_MAX || recent.bytes > BYTES_MAX {
            let Some(oldest) = recent.events.pop_front() else { break };
            recent.bytes -= oldest.weight();
            recent.after = oldest.event.number;
        }
        let through = recent.through;
        drop(recent);
        self.through.send_if_modified(|known| std::mem::replace(known, through) != through);
    }
}

impl Told {
    fn weight(&self) -> usize {
        size_of::<Stored>() + self.event.body.get().len() + self.event.subject.len() + self.sent.len()
    }
}

/// Somebody who follows.
#[derive(Debug)]
pub struct Follower {
    feed: Arc<Feed>,
    told: watch::Receiver<u64>,
}

impl Follower {
    /// Where to look.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Waits until there is something after the event of a number. None when there will be no more.
    pub async fn wait(&mut self, after: u64) -> Option<()> {
        self.told.wait_for(|through| *through > after).await.ok().map(drop)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.feed.followers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn event(number: u64, kind: &str) -> Stored {
        Stored {
            number,
            id: format!("evt_{number}"),
            kind: kind.into(),
            subject: "a".into(),
            queue: None,
            job_type: None,
            body: RawValue::from_string("{}".into()).unwrap(),
        }
    }

    fn told(feed: &Feed, after: u64, types: &[&str]) -> String {
        let types = types.iter().map(|&kind| kind.to_owned()).collect();
        match feed.look(after, &EventQuery { types, ..EventQuery::default() }) {
            Look::Event(told) => told.event.id.clone(),
            Look::Behind => "behind".into(),
            Look::Nothing(through) => format!("nothing up to {through}"),
        }
    }

    fn take(feed: &Feed, events: impl IntoIterator<Item = Stored>, through: u64) {
        feed.take(Events { events: events.into_iter().collect(), through, ..Events::default() }, false);
    }

    #[test]
    fn everybody_is_shown_what_comes_after_their_place_and_who_is_behind_is_told() {
        let feed = Feed::new(10);
        assert_eq!(told(&feed, 10, &[]), "nothing up to 10");
        assert_eq!(told(&feed, 9, &[]), "behind");
        take(&feed, [event(11, "job.started"), event(12, "cron.missed")], 13);
        assert_eq!(told(&feed, 10, &[]), "evt_11");
        assert_eq!(told(&feed, 10, &["cron.*"]), "evt_12");
        assert_eq!(told(&feed, 12, &[]), "nothing up to 13");
        assert_eq!(told(&feed, 20, &[]), "nothing up to 20", "a place that has not come yet");
    }

    #[test]
    fn only_so_many_are_kept() {
        let feed = Feed::new(0);
        let most = EVENTS_MAX as u64;
        take(&feed, (1..=most + 5).map(|number| event(number, "a")), most + 5);
        assert_eq!(told(&feed, 4, &[]), "behind");
        assert_eq!(told(&feed, 5, &[]), "evt_6");
        let large = |number| {
            let text = format!("\"{}\"", "x".repeat(BYTES_MAX / 8));
            Stored { body: RawValue::from_string(text).unwrap(), ..event(number, "a") }
        };
        take(&feed, (most + 6..most + 16).map(large), most + 15);
        let kept = feed.recent.read().unwrap();
        assert!(kept.bytes <= BYTES_MAX && kept.events.len() == 3, "{} bytes", kept.bytes);
    }

    #[test]
    fn whoever_leaves_makes_room() {
        let feed = Arc::new(Feed::new(0));
        feed.followers.store(FOLLOWERS_MAX - 1, Ordering::SeqCst);
        let last = feed.follow().unwrap();
        let refusal = feed.follow().unwrap_err();
        assert_eq!(refusal.message, "20000 clients follow events already, and no more can");
        drop(last);
        assert!(feed.follow().is_ok());
    }
}
