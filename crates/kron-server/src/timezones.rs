//! Time zone data that changes while the server runs: it is read again, and plans are made anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future;
use jiff::Timestamp;

use crate::app::App;
use crate::cron::Cron;
use crate::members::Members;
use crate::object::Object;
use crate::refusal::{Code, Refusal};
use crate::store::PageRequest;
use crate::times::stamp;

/// How many cron jobs are looked at together, and how many of them are changed at once.
const PAGE: u64 = 500;
const AT_ONCE: usize = 64;

/// The most cron jobs that are told of one by one. All are in the log.
const TOLD_MAX: usize = 1_000;

/// What a look at the time zone database brought.
#[derive(Debug)]
pub struct Refreshed {
    /// The database and its version.
    pub database: String,
    /// The zones whose rules have changed.
    pub zones: Vec<String>,
    /// Cron jobs whose next run has moved; some of them, if they are many.
    pub moved: Vec<Moved>,
    /// How many those are in all.
    pub count: usize,
}

/// A cron job whose next run has moved.
#[derive(Debug)]
pub struct Moved {
    name: String,
    timezone: String,
    before: Option<Timestamp>,
    after: Option<Timestamp>,
}

impl App {
    /// Reads time zone data again, and makes the plans anew of the cron jobs whose zones have changed.
    ///
    /// # Errors
    ///
    /// If the store failed. Then the rest of the plans is made when their cron jobs are looked at.
    pub async fn refresh_zones(&self) -> Result<Refreshed, Refusal> {
        let _one_at_a_time = self.refreshing.lock().await;
        let zones = Arc::clone(&self.zones);
        let read = tokio::task::spawn_blocking(move || zones.refresh()).await;
        let changed: BTreeSet<String> = read.map_err(|error| Refusal::backend(&error))?.into_iter().collect();
        if changed.is_empty() {
            // A million cron jobs are not read for nothing.
            return Ok(self.unchanged());
        }
        let mut refreshed = self.plan_anew(&|zone| changed.contains(zone)).await?;
        refreshed.zones = changed.into_iter().collect();
        let Refreshed { database, zones, count, .. } = &refreshed;
        tracing::info!(%database, ?zones, moved = count, "time zones have changed");
        Ok(refreshed)
    }

    /// The same for a server that was not there when its time zones changed.
    ///
    /// # Errors
    ///
    /// If the store failed.
    pub async fn catch_up_with_zones(&self) -> Result<(), Refusal> {
        let _one_at_a_time = self.refreshing.lock().await;
        self.plan_anew(&|zone| zone != "UTC" && zone != "Etc/UTC").await.map(drop)
    }

    /// Nothing has changed.
    fn unchanged(&self) -> Refreshed {
        let database = self.zones.database().to_string();
        Refreshed { database, zones: Vec::new(), moved: Vec::new(), count: 0 }
    }

    /// Makes the plans anew of cron jobs in some zones. Only what differs is written.
    async fn plan_anew(&self, is_concerned: &(dyn Fn(&str) -> bool + Sync)) -> Result<Refreshed, Refusal> {
        let mut refreshed = self.unchanged();
        let mut cursor = None;
        loop {
            let (crons, page) =
                self.store.crons(None, PageRequest { limit: Some(PAGE), cursor, offset: 0 }).await?;
            let is_stale = |cron: &Cron| is_concerned(&cron.definition.timezone) && self.is_stale(cron);
            let stale: Vec<Cron> = crons.into_iter().filter(is_stale).collect();
            for some in stale.chunks(AT_ONCE) {
                self.replan(some, &mut refreshed).await?;
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(refreshed);
            }
        }
    }

    async fn replan(&self, stale: &[Cron], refreshed: &mut Refreshed) -> Result<(), Refusal> {
        let now = self.clock.now();
        // Nothing is changed, and so only plans are made anew.
        let mut asked = Vec::with_capacity(stale.len());
        for cron in stale {
            asked.push(self.store.patch(&cron.definition.name, Members::default(), now));
        }
        for (before, after) in stale.iter().zip(future::join_all(asked).await) {
            match after {
                Ok((after, _)) => refreshed.add(before, &after),
                // Somebody has removed it in the meantime.
                Err(refusal) if refusal.code == Code::NotFound => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(())
    }

    /// Whether the plans of a cron job are not what its zone makes of them now. What is due is looked at anyway.
    fn is_stale(&self, cron: &Cron) -> bool {
        let now = self.clock.now();
        if cron.next_look.is_some_and(|look| look <= now) {
            return false;
        }
        let Ok(compiled) = cron.definition.compile(cron.anchor, &self.zones) else { return false };
        let anew = cron.planned_anew(&compiled, now);
        (anew.next_look, anew.next_run_at, anew.watermark, anew.label)
            != (cron.next_look, cron.next_run_at, cron.watermark, cron.label)
    }
}

impl Refreshed {
    fn add(&mut self, before: &Cron, after: &Cron) {
        if before.next_run_at == after.next_run_at {
            return;
        }
        let moved = Moved {
            name: after.definition.name.clone(),
            timezone: after.definition.timezone.clone(),
            before: before.next_run_at,
            after: after.next_run_at,
        };
        tracing::info!(
            cron = moved.name, timezone = moved.timezone, before = ?moved.before.map(stamp),
            after = ?moved.after.map(stamp), "the next run has moved with its time zone",
        );
        self.count += 1;
        if self.moved.len() < TOLD_MAX {
            self.moved.push(moved);
        }
    }

    /// As it is answered.
    #[must_use]
    pub fn view(&self) -> Object {
        let moved: Vec<Object> = self
            .moved
            .iter()
            .map(|moved| {
                Object::new()
                    .with("name", &moved.name)
                    .with("timezone", &moved.timezone)
                    .with("next_run_at_before", &moved.before.map(stamp))
                    .with("next_run_at", &moved.after.map(stamp))
            })
            .collect();
        Object::new()
            .with("time_zones", &self.database)
            .with("changed", &self.zones)
            .with("cron_jobs", &moved)
            .with("count", &self.count)
    }
}
