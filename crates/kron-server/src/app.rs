//! Everything that a request may need, and the loops that work while nobody asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kron_zones::Zones;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::clock::{Clock, floor_second};
use crate::feed::Feed;
use crate::metrics::Metrics;
use crate::refusal::Refusal;
use crate::store::{Retention, Store};
use crate::webhook::deliver::Post;

/// A server: a store, a clock, and what it was told at its start.
pub struct App {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Clock,
    /// Time zones by name.
    pub zones: Arc<Zones>,
    /// What tells webhooks.
    pub post: Post,
    /// For how long things are kept.
    pub retention: Retention,
    /// Whether tests may reset it and set its clock.
    pub test_mode: bool,
    /// Since when it runs.
    pub started: Instant,
    /// Becomes true when it is to end.
    pub ending: watch::Receiver<bool>,
    /// The reign of this node for which all plans are made by its time zones of now, if they are. Held by whoever reads time
    /// zones again or makes those plans.
    pub caught_up: tokio::sync::Mutex<Option<u64>>,
    /// Some plans were not made, and are to be.
    pub behind: tokio::sync::Notify,
    /// The latest events, for those who follow them.
    pub feed: Arc<Feed>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The web page's router.
    pub dashboard: kron_dashboard::Dashboard,
    /// The last second at which cron jobs were looked at; nobody looks twice in a second.
    pub looked: tokio::sync::Mutex<Option<Timestamp>>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("clock", &self.clock)
            .field("test_mode", &self.test_mode)
            .finish_non_exhaustive()
    }
}

/// The longest sleep between two looks at cron jobs.
const LOOK_MAX: Duration = Duration::from_secs(60);

/// How long to wait after the store has failed.
const BACK_OFF: Duration = Duration::from_secs(1);

/// How long a server that has just started leaves what is old alone: what is due comes first, and whoever sets its clock for a test has done so by then.
const PRUNE_FIRST: Duration = Duration::from_secs(2);

/// How often old things are forgotten.
const PRUNE_EVERY: Duration = Duration::from_secs(300);

/// How often time zones are read again. Few are in use, and each is a small file.
const ZONES_EVERY: Duration = Duration::from_secs(600);

impl App {
    /// Runs the loops until the server ends.
    pub async fn work(self: Arc<App>) {
        let mut ending = self.ending.clone();
        let feed = self.feed.fill(&*self.store);
        let zones = self.zones_loop();
        let work =
            async { tokio::join!(self.advance_loop(), self.cron_loop(), self.prune_loop(), zones, feed) };
        tokio::select! {
            _ = ending.wait_for(|ending| *ending) => {}
            _ = work => {}
        }
    }

    /// Carries out everything that is due now.
    ///
    /// # Errors
    ///
    /// If the store failed.
    pub async fn settle(&self) -> Result<(), Refusal> {
        let now = self.clock.now();
        while self.store.advance(now).await? {}
        self.look(now).await
    }

    /// Looks at the cron jobs that are due, unless somebody has in this second.
    async fn look(&self, now: Timestamp) -> Result<(), Refusal> {
        let mut looked = self.looked.lock().await;
        let stamp = floor_second(now);
        if *looked == Some(stamp) {
            return Ok(());
        }
        // What is due in a second is stamped with it, however long it takes to write it all down.
        let turns = async {
            while self.store.turn(stamp, self.clock.now()).await? {}
            Ok(())
        };
        turns.instrument(tracing::info_span!(target: "kron::span", "cron.look", %stamp)).await?;
        *looked = Some(stamp);
        Ok(())
    }

    /// Jobs become available, expire and time out.
    async fn advance_loop(&self) {
        let mut due = self.store.due();
        loop {
            let next = due.borrow_and_update().jobs;
            tokio::select! {
                () = self.clock.until(next) => {}
                changed = due.changed() => if changed.is_err() { return },
            }
            let now = self.clock.now();
            let is_due = due.borrow().jobs.is_some_and(|due| due <= now);
            if is_due && let Err(refusal) = self.store.advance(now).await {
                tracing::error!(error = refusal.message, "could not advance jobs");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }

    /// Cron jobs fire.
    async fn cron_loop(&self) {
        let mut due = self.store.due();
        loop {
            let next = due.borrow_and_update().crons;
            let next = self.not_before_the_next_second(next).await;
            tokio::select! {
                () = self.clock.until(next) => {}
                () = tokio::time::sleep(LOOK_MAX) => {}
                changed = due.changed() => if changed.is_err() { return },
            }
            let now = self.clock.now();
            let is_due = due.borrow().crons.is_some_and(|due| due <= now);
            if is_due && let Err(refusal) = self.look(now).await {
                tracing::error!(error = refusal.message, "could not look at cron jobs");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }

    async fn not_before_the_next_second(&self, next: Option<Timestamp>) -> Option<Timestamp> {
        let looked = *self.looked.lock().await;
        let now = floor_second(self.clock.now());
        let next_second = now.checked_add(Duration::from_secs(1)).ok();
        match looked {
            Some(looked) if looked == now => {
                next.map(|next| next_second.map_or(next, |second| next.max(second)))
            }
            _ => next,
        }
    }

    /// Time zones are read again now and then, and whenever the process is sent a SIGHUP.
    async fn zones_loop(&self) {
        let hangup = tokio::signal::unix::SignalKind::hangup();
        let mut hangups = match tokio::signal::unix::signal(hangup) {
            Ok(hangups) => hangups,
            Err(error) => {
                return tracing::error!(%error, "SIGHUP cannot be heard, and time zones stay as they are");
            }
        };
        let mut reign = self.store.reign();
        loop {
            let led = *reign.borrow_and_update();
            let is_through = match led {
                None => true,
                Some(led) => self.catch_up_with_zones(led).await.unwrap_or_else(|refusal| {
                    let message = "could not make all plans by the time zones of today";
                    tracing::error!(error = refusal.message, message);
                    false
                }),
            };
            let wait = if is_through { ZONES_EVERY } else { BACK_OFF };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                heard = hangups.recv() => if heard.is_none() { return },
                changed = reign.changed() => if changed.is_err() { return } else { continue },
                () = self.behind.notified() => continue,
            }
            if let Err(refusal) = self.refresh_zones().await {
                tracing::error!(error = refusal.message, "could not make all plans by the new time zones");
            }
        }
    }

    async fn prune_loop(&self) {
        tokio::time::sleep(PRUNE_FIRST).await;
        loop {
            match self.store.prune(self.retention, self.clock.now()).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(refusal) => tracing::error!(error = refusal.message, "could not forget what is old"),
            }
            tokio::time::sleep(PRUNE_EVERY).await;
        }
    }
}
