//! Time zone data that changes while the server runs: it is read again, and plans are made anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::app::App;
use crate::cron::Cron;
use crate::object::Object;
use crate::refusal::Refusal;
use crate::times::stamp;

/// How many cron jobs are looked at together.
const PAGE: usize = 500;

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
    /// Reads time zone data again, and makes the plans anew of the cron jobs whose zones have changed. Of many nodes only
    /// the one that leads makes plans, or nodes with different data would move them to and fro.
    ///
    /// # Errors
    ///
    /// If the store failed. Then the rest of the plans is made by the loop that tries that again, as it is where this node
    /// has not led for long enough.
    pub async fn refresh_zones(&self) -> Result<Refreshed, Refusal> {
        let mut caught_up = self.caught_up.lock().await;
        let zones = Arc::clone(&self.zones);
        let read = tokio::task::spawn_blocking(move || zones.refresh()).await;
        let changed: BTreeSet<String> = read.map_err(|error| Refusal::backend(&error))?.into_iter().collect();
        if changed.is_empty() {
            // A million cron jobs are not read for nothing.
            return Ok(self.unchanged());
        }
        // However this ends, zones that were read once do not count as changed again.
        let before = caught_up.take();
        let planned = self.plan_anew(&|zone| changed.contains(zone)).await;
        if matches!(planned, Ok((_, true))) {
            *caught_up = before;
        } else {
            self.behind.notify_one();
        }
        let (mut refreshed, _) = planned?;
        refreshed.zones = changed.into_iter().collect();
        let Refreshed { database, zones, count, .. } = &refreshed;
        tracing::info!(%database, ?zones, moved = count, "time zones have changed");
        Ok(refreshed)
    }

    /// The same for a server that begins to lead: its time zones may have changed meanwhile, or be others than those of the
    /// node that led before. It is done once in a reign. Says whether it has led long enough to get through.
    ///
    /// # Errors
    ///
    /// If the store failed.
    pub async fn catch_up_with_zones(&self, reign: u64) -> Result<bool, Refusal> {
        let mut caught_up = self.caught_up.lock().await;
        if *caught_up == Some(reign) {
            return Ok(true);
        }
        let (_, is_through) = self.plan_anew(&|zone| zone != "UTC" && zone != "Etc/UTC").await?;
        if is_through {
            *caught_up = Some(reign);
        }
        Ok(is_through)
    }

    /// Nothing has changed.
    fn unchanged(&self) -> Refreshed {
        let database = self.zones.database().to_string();
        Refreshed { database, zones: Vec::new(), moved: Vec::new(), count: 0 }
    }

    /// Makes the plans anew of cron jobs in some zones, for as long as this node leads. Only what differs is written. Says
    /// whether that were all of them.
    async fn plan_anew(
        &self,
        is_concerned: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<(Refreshed, bool), Refusal> {
        let mut refreshed = self.unchanged();
        let mut after = None;
        while self.store.leads() {
            let (crons, next) = self.store.crons_after(after, PAGE).await?;
            let now = self.clock.now();
            let is_stale = |cron: &Cron| {
                is_concerned(&cron.definition.timezone) && cron.replanned(&self.zones, now).is_some()
            };
            let stale = crons.into_iter().filter(is_stale).map(|cron| cron.definition.name);
            let stale: Vec<String> = stale.collect();
            if !stale.is_empty() {
                let Some(moved) = self.store.replan(stale, now).await? else { break };
                moved.iter().for_each(|(before, after)| refreshed.add(before, after));
            }
            after = next;
            if after.is_none() {
                return Ok((refreshed, true));
            }
        }
        Ok((refreshed, false))
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
