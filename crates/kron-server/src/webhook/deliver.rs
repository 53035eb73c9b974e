//! Events are told to webhooks.
//!
//! One loop follows the events and knows which of them somebody wants; a courier for each webhook tells them, one at a
//! time and in order, at the pace of its receiver. A receiver that is slow or dead keeps its own courier waiting, and
//! nobody else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::dial::Dialer;
use super::{Attempt, Change, Delivery, DeliveryState, Outcome, Webhook, delivery_id, wait_ms};
use crate::app::App;
use crate::clock::instant;
use crate::envelope::new_id;
use crate::event::{Event, is_among};
use crate::members::raw;
use crate::refusal::{Code, Refusal};
use crate::store::{After, EventQuery, Stored};

/// What is needed to tell events.
#[derive(Debug)]
pub struct Post {
    /// The way to receivers.
    pub dialer: Dialer,
    /// For how long everything may fail before a webhook is disabled.
    pub patience: SignedDuration,
    /// Who is said to have sent what is sent to try a webhook.
    pub source: String,
    edits: watch::Sender<u64>,
    pings: Arc<Semaphore>,
}

/// How many events are read at once.
const PAGE: usize = 100;

/// How often webhooks are read anew, whatever is told of them.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often a webhook's place is written down while nothing is for it.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// How long to wait after something has failed that should not.
const BACK_OFF: Duration = Duration::from_secs(1);

/// How long requests may take to end once the server has been told to. What is cut off then is told again.
const GRACE: Duration = Duration::from_secs(5);

/// The most requests on their way that only try a webhook.
const PINGS_MAX: usize = 8;

impl Post {
    /// What is needed to tell events.
    #[must_use]
    pub fn new(dialer: Dialer, patience: SignedDuration, source: String) -> Post {
        let pings = Arc::new(Semaphore::new(PINGS_MAX));
        Post { dialer, patience, source, edits: watch::Sender::new(0), pings }
    }

    /// Says that somebody has changed a webhook.
    pub fn edited(&self) {
        self.edits.send_modify(|edits| *edits += 1);
    }

    /// Sends an event that never happened, and says what came of it.
    pub async fn ping(&self, webhook: &Webhook, now: Timestamp) -> Delivery {
        let _seat = self.pings.acquire().await;
        let event = Event::new("webhook.ping", &webhook.id, now).with("webhook_id", webhook.id.as_str());
        let id = format!("evt_{}", new_id(now));
        let body = raw(&event.view(&id, &self.source));
        let (kind, subject) = (event.kind.into(), event.subject);
        let stored = Stored { number: 0, id, kind, subject, queue: None, job_type: None, body };
        let (outcome, duration_ms) = self.send(webhook, &stored, 1, now, &Arc::new(Semaphore::new(1))).await;
        let (state, status, error) = match outcome {
            Outcome::Delivered(status) => (DeliveryState::Delivered, Some(status), None),
            Outcome::Failed { status, error } => (DeliveryState::Failed, status, Some(error)),
        };
        Delivery {
            id: delivery_id(&webhook.id, &stored.id),
            number: 0,
            event_id: stored.id,
            event_type: stored.kind,
            state,
            attempts: 1,
            first_attempt_at: now,
            last_attempt_at: now,
            duration_ms,
            status,
            error,
            next_attempt_at: None,
        }
    }

    async fn send(
        &self,
        webhook: &Webhook,
        event: &Stored,
        attempt: u32,
        now: Timestamp,
        seat: &Arc<Semaphore>,
    ) -> (Outcome, u64) {
        let began = instant();
        let outcome = self.dialer.send(webhook.letter(event, attempt, now), seat).await;
        (outcome, u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// What the loop that follows the events knows for one courier.
#[derive(Clone, Debug)]
struct Seen {
    /// The kinds of events that it looked for.
    types: Vec<String>,
    /// The number up to which there may be something for the courier.
    wanted: u64,
    /// The number up to which the loop has looked.
    looked: u64,
}

/// Tells events to webhooks until the server ends, and then lets what is on its way arrive.
pub async fn run(app: Arc<App>) {
    let mut ending = app.ending.clone();
    let mut couriers = JoinSet::new();
    tokio::select! {
        _ = ending.wait_for(|ending| *ending) => {}
        () = follow(&app, &mut couriers) => {}
    }
    let arrived = async { while couriers.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, arrived).await.is_err() {
        tracing::info!("some webhooks were cut off, and will be told again");
    }
}

/// The couriers, and what they are let know.
type Hired = HashMap<String, watch::Sender<Seen>>;

async fn follow(app: &Arc<App>, couriers: &mut JoinSet<()>) {
    let (mut last, mut edits) = (app.store.last_event(), app.post.edits.subscribe());
    let mut reign = app.store.reign();
    let mut hired = Hired::new();
    let mut place = *last.borrow_and_update();
    loop {
        edits.borrow_and_update();
        reign.borrow_and_update();
        if let Err(refusal) = hire(app, couriers, &mut hired, place).await {
            tracing::error!(error = refusal.message, "could not read the webhooks");
        }
        let time_to_look = tokio::time::sleep(LOOK_EVERY);
        tokio::pin!(time_to_look);
        loop {
            last.borrow_and_update();
            match announce(app, &hired, place).await {
                Ok(reached) => place = reached,
                Err(refusal) => {
                    tracing::error!(error = refusal.message, "could not read what to tell webhooks");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
            tokio::select! {
                _ = last.changed() => {}
                _ = edits.changed() => break,
                _ = reign.changed() => break,
                () = &mut time_to_look => break,
                Some(ended) = couriers.join_next(), if !couriers.is_empty() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "what tells a webhook has failed, and begins anew");
                        tokio::time::sleep(BACK_OFF).await;
                    }
                    break;
                }
            }
        }
    }
}

/// Sees to it that every webhook has a courier, who looks by itself for what is there up to the place that the loop
/// has reached.
async fn hire(
    app: &Arc<App>,
    couriers: &mut JoinSet<()>,
    hired: &mut Hired,
    place: u64,
) -> Result<(), Refusal> {
    // Of many nodes one tells them; another goes on from the place that is kept with each.
    let webhooks = if app.store.leads() { app.store.webhooks().await? } else { Vec::new() };
    let webhooks: Vec<Webhook> = webhooks.into_iter().filter(|it| it.enabled).collect();
    hired.retain(|id, seen| !seen.is_closed() && webhooks.iter().any(|webhook| webhook.id == *id));
    for webhook in webhooks {
        let fresh = Seen { types: webhook.types, wanted: place, looked: place };
        if let Some(seen) = hired.get(&webhook.id) {
            seen.send_replace(fresh);
            continue;
        }
        let (seen, sight) = watch::channel(fresh);
        couriers.spawn(Courier::new(Arc::clone(app), webhook.id.clone()).work(sight));
        hired.insert(webhook.id, seen);
    }
    Ok(())
}

/// Reads what has happened since, and lets those know who are to tell it.
async fn announce(app: &App, hired: &Hired, mut place: u64) -> Result<u64, Refusal> {
    if hired.is_empty() {
        return Ok(*app.store.last_event().borrow());
    }
    loop {
        let query = EventQuery { after: Some(After::Number(place)), limit: PAGE, ..EventQuery::default() };
        let events = app.store.events(query).await?;
        place = place.max(events.through);
        for seen in hired.values() {
            seen.send_if_modified(|seen| {
                seen.looked = place;
                let newest = events.events.iter().rev().find(|event| is_among(&event.kind, &seen.types));
                newest.inspect(|event| seen.wanted = event.number).is_some()
            });
        }
        if !events.has_more {
            return Ok(place);
        }
    }
}

/// Who tells events to one webhook.
struct Courier {
    app: Arc<App>,
    id: String,
    /// For looking names up.
    seat: Arc<Semaphore>,
    /// The webhook's place, as it was last read.
    place: u64,
    /// The number up to which there is nothing for it any more.
    looked: u64,
}

/// What a courier does next.
enum Next {
    /// Look again.
    Again,
    /// Nothing: there is no such webhook, or it is disabled.
    End,
    /// Wait for something to tell.
    Idle,
    /// Wait for the next attempt.
    Until(Timestamp),
}

impl Courier {
    fn new(app: Arc<App>, id: String) -> Courier {
        Courier { app, id, seat: Arc::new(Semaphore::new(1)), place: 0, looked: 0 }
    }

    async fn work(mut self, mut sight: watch::Receiver<Seen>) {
        let app = Arc::clone(&self.app);
        let (mut ending, mut edits) = (app.ending.clone(), app.post.edits.subscribe());
        let (mut failures, mut is_quiet) = (0, false);
        // Whoever is no longer hired works no more.
        while !*ending.borrow() && sight.has_changed().is_ok() {
            edits.borrow_and_update();
            let seen = sight.borrow_and_update().clone();
            let next = self.step(&seen, std::mem::take(&mut is_quiet)).await;
            let wait = match next {
                Ok(Next::Again) => continue,
                Ok(Next::End) => return,
                Ok(Next::Idle) => {
                    failures = 0;
                    tokio::select! {
                        _ = ending.changed() => {}
                        _ = sight.changed() => {}
                        () = tokio::time::sleep(SAVE_EVERY) => is_quiet = true,
                    }
                    continue;
                }
                Ok(Next::Until(at)) => {
                    failures = 0;
                    Some(at)
                }
                Err(refusal) => {
                    // What was told may have to be told again, so this waits as for a receiver that fails.
                    failures += 1;
                    tracing::error!(
                        webhook = self.id,
                        error = refusal.message,
                        "a webhook could not be told"
                    );
                    let wait =
                        SignedDuration::from_millis(i64::try_from(wait_ms(failures, luck())).unwrap_or(0));
                    app.clock.now().checked_add(wait).ok()
                }
            };
            // However much happens meanwhile, it is not tried before its time.
            tokio::select! {
                _ = ending.changed() => {}
                _ = edits.changed() => {}
                () = app.clock.until(wait) => {}
            }
        }
    }

    /// Looks for something to tell, and tells it.
    async fn step(&mut self, seen: &Seen, is_quiet: bool) -> Result<Next, Refusal> {
        let app = Arc::clone(&self.app);
        // Another node tells it by now, from the place that is kept with it.
        if !app.store.leads() {
            return Ok(Next::End);
        }
        let Some(webhook) = app.store.webhook(&self.id).await?.filter(|webhook| webhook.enabled) else {
            return Ok(Next::End);
        };
        if webhook.through != self.place {
            (self.place, self.looked) = (webhook.through, webhook.through);
        }
        let now = app.clock.now();
        if let Some(at) = webhook.not_before(now).filter(|at| *at > now) {
            return Ok(Next::Until(at));
        }
        // What was seen counts only if it was seen with the eyes of this webhook.
        let is_known = seen.types == webhook.types && seen.wanted <= self.looked && webhook.pending.is_none();
        if is_known {
            if is_quiet && seen.looked > self.place {
                self.move_on(&webhook, seen.looked).await?;
            }
            return Ok(Next::Idle);
        }
        let after = Some(After::Number(self.looked));
        let query = EventQuery { after, types: webhook.types.clone(), limit: 1, ..EventQuery::default() };
        let events = app.store.events(query).await?;
        let Some(event) = events.events.first() else {
            self.looked = self.looked.max(events.through);
            return Ok(if events.has_more { Next::Again } else { Next::Idle });
        };
        self.tell(&webhook, event, now).await
    }

    /// Writes down that nothing for it is left up to some number.
    async fn move_on(&mut self, webhook: &Webhook, through: u64) -> Result<(), Refusal> {
        let change = Change::Looked { from: webhook.through, through, forgotten: 0 };
        self.app.store.change_webhook(&self.id, change, self.app.clock.now()).await.map(drop)
    }

    async fn tell(&self, webhook: &Webhook, event: &Stored, began: Timestamp) -> Result<Next, Refusal> {
        let post = &self.app.post;
        let number = webhook.next_attempt(event.number);
        let (outcome, duration_ms) = post.send(webhook, event, number, began, &self.seat).await;
        if let Outcome::Failed { error, .. } = &outcome {
            tracing::warn!(webhook = self.id, event = event.id, attempt = number, error, "a webhook failed");
        }
        let attempt = Attempt {
            from: webhook.through,
            number: event.number,
            event_id: event.id.clone(),
            event_type: event.kind.clone(),
            began,
            duration_ms,
            outcome,
            luck: luck(),
            patience: post.patience,
        };
        let change = Change::Attempted(attempt);
        match self.app.store.change_webhook(&self.id, change, self.app.clock.now()).await {
            Ok(webhook) => {
                if let Some(disabled) = webhook.disabled {
                    tracing::warn!(webhook = self.id, reason = disabled.reason, "a webhook was disabled");
                }
                Ok(Next::Again)
            }
            Err(refusal) if refusal.code == Code::NotFound => Ok(Next::End),
            Err(refusal) => Err(refusal),
        }
    }
}

fn luck() -> f64 {
    getrandom::u32().map_or(0.5, |n| f64::from(n) / f64::from(u32::MAX))
}
