//! Webhooks: who is told of events, how what is told is signed, and what becomes of telling it. All of it is pure;
//! [`dial`] and [`deliver`] do what is decided here, and [`guard`] says whom they may call.
//!
//! A webhook has its own place in the order of events. It moves past an event when the receiver has answered with
//! success, and not before: whatever happens in between, the event is told again. So a receiver hears of every event
//! at least once, in order, and tells a repetition by the delivery's id, which is the same at each attempt.

pub mod deliver;
pub mod dial;
pub mod guard;

use jiff::{SignedDuration, Timestamp};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};

use crate::envelope::new_id;
use crate::event::{Event, is_among};
use crate::retry::Retry;
use crate::store::Stored;
use crate::times::stamp;

/// The most webhooks. Each has one request on its way at most, so this bounds those too.
pub const WEBHOOKS_MAX: usize = 100;

/// What the log says of one whose row cannot be read.
pub const UNREADABLE: &str = "a webhook cannot be read, and is told of nothing until it can";

/// How many deliveries of a webhook are remembered.
pub const DELIVERIES_KEPT: usize = 100;

/// Somebody who is told of events.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Webhook {
    /// Its id.
    pub id: String,
    /// Whom to tell.
    pub url: String,
    /// Of which kinds of events; of all if none is named. One may end with `*`.
    pub types: Vec<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What signs what is told.
    pub secret: Secret,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether anything is told.
    pub enabled: bool,
    /// Why not, if nobody asked for it.
    pub disabled: Option<Disabled>,
    /// The number of the last event that was told, or was not for it.
    pub through: u64,
    /// The delivery that failed and will be tried again.
    pub pending: Option<Pending>,
    /// How many events had been forgotten before anybody could look whether they were for it.
    pub forgotten: u64,
}

/// Why a webhook is told no more.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Disabled {
    /// Since when.
    pub at: Timestamp,
    /// For people.
    pub reason: String,
}

/// A delivery that has failed so far.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Pending {
    /// As it is shown.
    pub delivery: Delivery,
    /// Since when nothing was delivered.
    pub failing_since: Timestamp,
}

/// What became of telling one event.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Delivery {
    /// Its id, which is the same at each attempt.
    pub id: String,
    /// The event's place in the order.
    pub number: u64,
    /// The event.
    pub event_id: String,
    /// Its kind.
    pub event_type: String,
    /// How it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was first tried.
    pub first_attempt_at: Timestamp,
    /// When it was last tried.
    pub last_attempt_at: Timestamp,
    /// How long that took.
    pub duration_ms: u64,
    /// The status of the last answer, if there was one.
    pub status: Option<u16>,
    /// What went wrong last.
    pub error: Option<String>,
    /// When it is tried again.
    pub next_attempt_at: Option<Timestamp>,
}

/// How a delivery stands.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// The receiver has it.
    Delivered,
    /// It only tried the webhook, and that failed.
    Failed,
    /// Somebody has sent the webhook past it.
    PassedOver,
    /// It is tried again.
    Retrying,
    /// It is tried again once the webhook is enabled.
    Stopped,
}

/// What is done to a webhook.
#[derive(Clone, Debug)]
pub enum Change {
    /// An attempt has ended.
    Attempted(Attempt),
    /// Somebody wants it otherwise.
    Edited(Edit),
    /// Nothing for it is left up to some number.
    Looked {
        /// Where it was.
        from: u64,
        /// Up to where there is nothing.
        through: u64,
        /// How many were forgotten in between.
        forgotten: u64,
    },
    /// It signs with another secret from now on.
    Resigned(Secret),
}

/// What somebody wants otherwise. What is not named stays.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Whom to tell.
    pub url: Option<String>,
    /// Of what.
    pub types: Option<Vec<String>>,
    /// What it is for; or nothing any more.
    pub description: Option<Option<String>>,
    /// Whether at all.
    pub enabled: Option<bool>,
    /// The number of the event after which to go on.
    pub through: Option<u64>,
}

/// An attempt to tell an event, and what came of it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Where the webhook was when it began.
    pub from: u64,
    /// The event's place in the order.
    pub number: u64,
    /// The event.
    pub event_id: String,
    /// Its kind.
    pub event_type: String,
    /// When it began.
    pub began: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// From 0 to 1: the luck in the wait before the next.
    pub luck: f64,
    /// For how long everything may fail before the webhook is disabled.
    pub patience: SignedDuration,
}

/// What came of an attempt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The receiver has it, and answered with that status.
    Delivered(u16),
    /// It may succeed later.
    Failed {
        /// The status of the answer, if there was one.
        status: Option<u16>,
        /// For people.
        error: String,
    },
}

/// What a change brings beside the changed webhook.
#[derive(Debug, Default)]
pub struct Effects {
    /// A delivery to remember.
    pub delivery: Option<Delivery>,
    /// What to tell.
    pub events: Vec<Event>,
}

/// A receiver says so when it is gone for good.
const GONE: u16 = 410;

/// A clock that jumps must not be enough to disable a webhook: so many attempts must have failed too.
const ATTEMPTS_MIN: u32 = 10;

/// How long to wait before the next attempt: 5 seconds, and then twice as long each time up to an hour, give or take
/// half.
#[must_use]
pub fn wait_ms(attempts: u32, luck: f64) -> u64 {
    Retry { initial_ms: 5_000, coefficient: 2.0, max_ms: WAIT_MS_MAX, jitter: true, ..Retry::default() }
        .delay_ms(attempts, luck)
}

/// The longest wait between two attempts.
const WAIT_MS_MAX: u64 = 3_600_000;

impl Webhook {
    /// A new one, that begins after the event of that number.
    #[must_use]
    pub fn new(url: String, through: u64, secret: Secret, now: Timestamp) -> Webhook {
        Webhook {
            id: format!("whk_{}", new_id(now)),
            url,
            types: Vec::new(),
            description: None,
            secret,
            created_at: now,
            enabled: true,
            disabled: None,
            through,
            pending: None,
            forgotten: 0,
        }
    }

    /// Whether it is told of that kind of event.
    #[must_use]
    pub fn wants(&self, event_type: &str) -> bool {
        is_among(event_type, &self.types)
    }

    /// When it may be tried again. A time that is further away than any wait was written under another clock.
    #[must_use]
    pub fn not_before(&self, now: Timestamp) -> Option<Timestamp> {
        let longest = SignedDuration::from_millis(i64::try_from(WAIT_MS_MAX).unwrap_or(i64::MAX));
        let next = self.pending.as_ref()?.delivery.next_attempt_at?;
        (next.duration_since(now) <= longest).then_some(next)
    }

    /// The number of the next attempt to tell an event.
    #[must_use]
    pub fn next_attempt(&self, number: u64) -> u32 {
        let pending = self.pending.as_ref().filter(|pending| pending.delivery.number == number);
        pending.map_or(0, |pending| pending.delivery.attempts).saturating_add(1)
    }

    /// What it comes to that these events are no longer kept: some of them it may not have come to.
    #[must_use]
    pub fn misses(&self, forgotten: &[u64]) -> Option<Change> {
        let missed = forgotten.iter().filter(|number| **number > self.through).count() as u64;
        let through = *forgotten.iter().max()?;
        (missed > 0).then_some(Change::Looked { from: self.through, through, forgotten: missed })
    }

    /// Does something to it.
    pub fn change(&mut self, change: Change, now: Timestamp) -> Effects {
        match change {
            Change::Attempted(attempt) => self.attempted(attempt, now),
            Change::Edited(edit) => self.edit(edit, now),
            // Somebody may have sent it elsewhere meanwhile.
            Change::Looked { from, .. } if self.through != from => Effects::default(),
            Change::Looked { through, forgotten, .. } => {
                self.through = through;
                self.forgotten += forgotten;
                let left_behind = self.pending.take_if(|pending| pending.delivery.number <= through);
                Effects { delivery: left_behind.map(Pending::passed_over), events: Vec::new() }
            }
            Change::Resigned(secret) => {
                self.secret = secret;
                Effects::default()
            }
        }
    }

    fn attempted(&mut self, attempt: Attempt, now: Timestamp) -> Effects {
        let attempts = self.next_attempt(attempt.number);
        let before = self.pending.take_if(|pending| pending.delivery.number == attempt.number);
        let mut delivery = Delivery {
            id: delivery_id(&self.id, &attempt.event_id),
            number: attempt.number,
            event_id: attempt.event_id,
            event_type: attempt.event_type,
            state: DeliveryState::Delivered,
            attempts,
            first_attempt_at: before.as_ref().map_or(attempt.began, |it| it.delivery.first_attempt_at),
            last_attempt_at: attempt.began,
            duration_ms: attempt.duration_ms,
            status: None,
            error: None,
            next_attempt_at: None,
        };
        // Somebody may have sent it elsewhere meanwhile; what was tried is remembered and nothing else.
        let is_current = self.through == attempt.from;
        let mut events = Vec::new();
        match attempt.outcome {
            Outcome::Delivered(status) => {
                delivery.status = Some(status);
                if is_current {
                    self.through = attempt.number;
                }
            }
            Outcome::Failed { status, error } if is_current => {
                let failing_since = before.map_or(attempt.began, |pending| pending.failing_since);
                let wait = SignedDuration::from_millis(
                    i64::try_from(wait_ms(attempts, attempt.luck)).unwrap_or(i64::MAX),
                );
                let is_over = now.duration_since(failing_since) >= attempt.patience;
                let reason = match status {
                    Some(GONE) => Some("the receiver answered 410: it is gone for good".to_owned()),
                    _ if is_over && attempts >= ATTEMPTS_MIN => {
                        Some(format!("nothing was delivered since {}: {error}", stamp(failing_since)))
                    }
                    _ => None,
                };
                delivery.status = status;
                delivery.error = Some(error);
                delivery.next_attempt_at = now.checked_add(wait).ok();
                delivery.state = DeliveryState::Retrying;
                if let Some(reason) = reason.filter(|_| self.enabled) {
                    events.push(
                        Event::new("webhook.disabled", &self.id, now)
                            .with("webhook_id", self.id.as_str())
                            .with("reason", reason.as_str()),
                    );
                    self.enabled = false;
                    self.disabled = Some(Disabled { at: now, reason });
                }
                if !self.enabled {
                    delivery.state = DeliveryState::Stopped;
                    delivery.next_attempt_at = None;
                }
                self.pending = Some(Pending { delivery: delivery.clone(), failing_since });
            }
            Outcome::Failed { status, error } => {
                delivery.status = status;
                delivery.error = Some(error);
                delivery.state = DeliveryState::PassedOver;
            }
        }
        Effects { delivery: Some(delivery), events }
    }

    fn edit(&mut self, edit: Edit, now: Timestamp) -> Effects {
        let mut delivery = None;
        // What somebody has just repaired is tried at once, and is not blamed for what was.
        let is_repaired = edit.url.as_ref().is_some_and(|url| *url != self.url)
            || edit.enabled.is_some_and(|enabled| enabled != self.enabled);
        self.url = edit.url.unwrap_or_else(|| std::mem::take(&mut self.url));
        self.types = edit.types.unwrap_or_else(|| std::mem::take(&mut self.types));
        self.description = edit.description.unwrap_or_else(|| self.description.take());
        if let Some(enabled) = edit.enabled {
            self.enabled = enabled;
            self.disabled = self.disabled.take().filter(|_| !enabled);
        }
        // A delivery that nobody wants any more stands in nobody's way.
        let is_unwanted = self.pending.as_ref().is_some_and(|it| !self.wants(&it.delivery.event_type));
        if edit.through.is_some() || is_unwanted {
            self.through = edit.through.unwrap_or(self.through);
            delivery = self.pending.take().map(Pending::passed_over);
        }
        if let Some(pending) = self.pending.as_mut().filter(|_| is_repaired) {
            pending.failing_since = now;
            pending.delivery.next_attempt_at = self.enabled.then_some(now);
            pending.delivery.state =
                if self.enabled { DeliveryState::Retrying } else { DeliveryState::Stopped };
            delivery = Some(pending.delivery.clone());
        }
        Effects { delivery, events: Vec::new() }
    }
}

impl Pending {
    fn passed_over(self) -> Delivery {
        Delivery { state: DeliveryState::PassedOver, next_attempt_at: None, ..self.delivery }
    }
}

/// What is sent to a receiver.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Whom to tell.
    pub url: String,
    /// Who says what to whom, and how that can be checked.
    pub headers: [(&'static str, String); 8],
    /// The event.
    pub body: String,
}

impl Webhook {
    /// An event as it is sent, at a time.
    #[must_use]
    pub fn letter(&self, event: &Stored, attempt: u32, now: Timestamp) -> Letter {
        let body = event.body.get().to_owned();
        let seconds = now.as_second();
        Letter {
            url: self.url.clone(),
            headers: [
                ("content-type", "application/json".into()),
                ("x-ojs-event-type", event.kind.clone()),
                ("x-ojs-delivery-id", delivery_id(&self.id, &event.id)),
                ("x-ojs-subscription-id", self.id.clone()),
                ("x-ojs-timestamp", seconds.to_string()),
                ("x-ojs-signature", self.secret.sign(seconds, body.as_bytes())),
                ("x-kron-event-id", event.id.clone()),
                ("x-kron-attempt", attempt.to_string()),
            ],
            body,
        }
    }
}

/// The id of the delivery of an event to a webhook. It follows from the two, so that no crash can change it.
#[must_use]
pub fn delivery_id(webhook_id: &str, event_id: &str) -> String {
    let hash = digest::digest(&digest::SHA256, format!("{webhook_id} {event_id}").as_bytes());
    format!("dlv_{}", hex(&hash.as_ref()[..16]))
}

/// What signs what a webhook is told. It is kept as it is, since signing needs it.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A new one, of 256 bits.
    ///
    /// # Errors
    ///
    /// If the host has no luck to give.
    pub fn new() -> Result<Secret, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Secret(format!("whsec_{}", hex(&bytes))))
    }

    /// As it is shown, once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The signature of a body that is sent at a time, as it stands in the header.
    #[must_use]
    pub fn sign(&self, unix_seconds: i64, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes());
        let mut context = hmac::Context::with_key(&key);
        context.update(format!("{unix_seconds}.").as_bytes());
        context.update(body);
        format!("sha256={}", hex(context.sign().as_ref()))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn start() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn webhook() -> Webhook {
        Webhook::new("https://example.com/".into(), 0, Secret("whsec_test".into()), start())
    }

    fn attempt(from: u64, number: u64, outcome: Outcome, began: Timestamp) -> Change {
        Change::Attempted(Attempt {
            from,
            number,
            event_id: format!("evt_{number}"),
            event_type: "job.failed".into(),
            began,
            duration_ms: 5,
            outcome,
            luck: 0.5,
            patience: DAY,
        })
    }

    fn failed(status: Option<u16>) -> Outcome {
        Outcome::Failed { status, error: "oh no".into() }
    }

    #[test]
    fn a_signature_is_that_of_the_time_a_dot_and_the_body() {
        // Made by Python: hmac.new(b"whsec_test", b'1700000000.{"a":1}', hashlib.sha256).hexdigest()
        let expected = "sha256=38877139021993b830af32feea6e18a8da83eb2f6e49ee50bd9e4cf4ca4d3789";
        assert_eq!(Secret("whsec_test".into()).sign(1_700_000_000, br#"{"a":1}"#), expected);
        let secret = Secret::new().unwrap();
        assert!(secret.reveal().len() == 70 && secret != Secret::new().unwrap());
        assert_eq!(format!("{secret:?}"), "Secret(…)", "no log shows it");
    }

    #[test]
    fn waits_double_up_to_an_hour_and_luck_spreads_them() {
        let waits: Vec<u64> = (1..=11).map(|attempts| wait_ms(attempts, 0.5) / 1_000).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
        assert_eq!((wait_ms(1, 0.0), wait_ms(1, 1.0)), (2_500, 7_500));
        assert_eq!(wait_ms(u32::MAX, 1.0), WAIT_MS_MAX);
    }

    #[test]
    fn a_failure_is_tried_again_under_the_same_id_until_it_succeeds() {
        let mut webhook = webhook();
        let first = webhook.change(attempt(0, 3, failed(None), start()), start()).delivery.unwrap();
        assert_eq!((first.state, first.attempts), (DeliveryState::Retrying, 1));
        assert_eq!(webhook.not_before(start()), Some(start() + SignedDuration::from_secs(5)));
        assert_eq!((webhook.through, webhook.next_attempt(3), webhook.next_attempt(4)), (0, 2, 1));
        let later = start() + SignedDuration::from_secs(7);
        let then = webhook.change(attempt(0, 3, Outcome::Delivered(204), later), later).delivery.unwrap();
        assert_eq!((then.id, then.attempts, then.first_attempt_at), (first.id, 2, start()));
        assert_eq!((then.state, then.status, then.error), (DeliveryState::Delivered, Some(204), None));
        assert!(webhook.through == 3 && webhook.pending.is_none());
    }

    #[test]
    fn what_fails_for_long_is_disabled_and_says_why() {
        let mut webhook = webhook();
        let mut now = start();
        let mut told = Vec::new();
        for _ in 0..100 {
            if !webhook.enabled {
                break;
            }
            told = webhook.change(attempt(0, 1, failed(Some(500)), now), now).events;
            now = webhook.not_before(now).unwrap_or(now);
        }
        assert!(now >= start() + DAY && now < start() + DAY + SignedDuration::from_hours(1), "{now}");
        let disabled = webhook.disabled.clone().unwrap();
        assert_eq!(disabled.reason, "nothing was delivered since 2026-01-01T00:00:00Z: oh no");
        assert_eq!(told[0].kind, "webhook.disabled");
        assert_eq!(webhook.pending.as_ref().unwrap().delivery.state, DeliveryState::Stopped);

        // Enabled again, it goes on where it was, and has its time anew.
        webhook.change(Change::Edited(Edit { enabled: Some(true), ..Edit::default() }), now);
        assert!(webhook.enabled && webhook.disabled.is_none() && webhook.not_before(now) == Some(now));
        webhook.change(attempt(0, 1, failed(Some(500)), now), now);
        assert!(webhook.enabled && webhook.through == 0);
    }

    #[test]
    fn a_clock_that_jumps_disables_nothing_and_makes_nobody_wait() {
        let mut webhook = webhook();
        webhook.change(attempt(0, 1, failed(None), start()), start());
        let far = start() + DAY * 400;
        webhook.change(attempt(0, 1, failed(None), far), far);
        assert!(webhook.enabled, "two failures are not many");
        assert_eq!(webhook.not_before(start()), None, "a wait of more than a year is none");
    }

    #[test]
    fn a_receiver_that_is_gone_for_good_is_believed() {
        let mut webhook = webhook();
        webhook.change(attempt(0, 1, failed(Some(410)), start()), start());
        assert_eq!(webhook.disabled.unwrap().reason, "the receiver answered 410: it is gone for good");
    }

    #[test]
    fn who_is_sent_elsewhere_meanwhile_stays_there() {
        let mut webhook = webhook();
        webhook.change(attempt(0, 1, failed(None), start()), start());
        let elsewhere = Edit { through: Some(40), ..Edit::default() };
        let left = webhook.change(Change::Edited(elsewhere), start()).delivery.unwrap();
        assert_eq!((left.number, left.state), (1, DeliveryState::PassedOver));
        for outcome in [Outcome::Delivered(200), failed(None)] {
            let effects = webhook.change(attempt(0, 1, outcome, start()), start());
            assert!(effects.delivery.is_some(), "what was tried is remembered");
            assert!(webhook.through == 40 && webhook.pending.is_none());
        }
        webhook.change(Change::Looked { from: 0, through: 9, forgotten: 9 }, start());
        assert_eq!((webhook.through, webhook.forgotten), (40, 0));
    }

    fn changes() -> impl Strategy<Value = Vec<(u8, u64, bool)>> {
        prop::collection::vec((0_u8..6, 1_u64..4, any::<bool>()), 1..60)
    }

    proptest! {
        #[test]
        fn nothing_is_passed_over_that_was_not_delivered(changes in changes()) {
            let mut webhook = webhook();
            let mut now = start();
            for (kind, step, is_stale) in changes {
                now += SignedDuration::from_secs(600);
                let before = webhook.clone();
                let from = if is_stale { before.through + 1 } else { before.through };
                let number = before.pending.as_ref().map_or(before.through + step, |it| it.delivery.number);
                let change = match kind {
                    0 | 1 => attempt(from, number, Outcome::Delivered(200), now),
                    2 | 3 => attempt(from, number, failed(Some(503)), now),
                    4 => Change::Looked { from, through: number - 1, forgotten: 0 },
                    _ => Change::Edited(Edit { enabled: Some(is_stale), ..Edit::default() }),
                };
                let is_delivered = kind <= 1;
                let effects = webhook.change(change, now);
                let moved_to = match kind {
                    0 | 1 if !is_stale => number,
                    4 if !is_stale => number - 1,
                    _ => before.through,
                };
                prop_assert_eq!(webhook.through, moved_to);
                if let Some(pending) = &webhook.pending {
                    prop_assert!(pending.delivery.number > webhook.through);
                    prop_assert_eq!(pending.delivery.next_attempt_at.is_some(), webhook.enabled);
                }
                if kind <= 3 && !is_stale {
                    let delivery = effects.delivery.unwrap();
                    prop_assert_eq!(&delivery.id, &delivery_id(&webhook.id, &delivery.event_id));
                    prop_assert_eq!(delivery.attempts, before.next_attempt(number));
                    prop_assert_eq!(delivery.state == DeliveryState::Delivered, is_delivered);
                    prop_assert_eq!(webhook.pending.is_none(), is_delivered);
                }
                let kept: Webhook = serde_json::from_str(&serde_json::to_string(&webhook).unwrap()).unwrap();
                prop_assert_eq!(format!("{kept:?}"), format!("{webhook:?}"));
            }
        }
    }
}
