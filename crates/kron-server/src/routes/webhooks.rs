//! Webhooks: list, add, change, remove, try.

use std::sync::Arc;

use axum::extract::State;

use crate::app::App;
use crate::http::{Answer, Input, MaybeInput, Reply, ok};
use crate::members::{Members, excerpt, wrong};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::store::{After, EventQuery};
use crate::times::stamp;
use crate::webhook::{Change, Delivery, DeliveryState, Edit, Secret, Webhook};

use super::page::Named;

/// The most kinds of events that one webhook names, and the longest name of one.
const TYPES_MAX: usize = 100;
const TYPE_CHARS_MAX: usize = 100;

/// The longest description.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// How many events are looked at together to find the last.
const LOOK: usize = 1_000;

pub(super) async fn list(State(app): State<Arc<App>>) -> Answer {
    let views: Vec<Object> = app.store.webhooks().await?.iter().map(view).collect();
    ok(&Object::new().with("webhooks", &views).with("count", &views.len()))
}

pub(super) async fn info(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    answer(&find(&app, &id).await?)
}

pub(super) async fn add(State(app): State<Arc<App>>, Input(given): Input) -> Answer {
    let edit = read(&app, given).await?;
    let Some(url) = edit.url.clone() else {
        return Err(Refusal::request("expected a `url`, but it is missing").field("url"));
    };
    let now = app.clock.now();
    // It is told what happens from now on.
    let last = last_event(&app).await?;
    let mut webhook = Webhook::new(url, last, new_secret()?, now);
    webhook.change(Change::Edited(edit), now);
    app.store.add_webhook(webhook.clone()).await?;
    app.post.edited();
    Ok(Reply::created(&revealed(&webhook)).at(format!("/kron/v1/webhooks/{}", webhook.id)))
}

/// The number of the last event, also of one that was told a moment ago and is not known to everybody here.
async fn last_event(app: &App) -> Result<u64, Refusal> {
    let known = *app.store.last_event().borrow();
    // None is of that kind, so all of them are looked at and none is read.
    let (after, types) = (Some(After::Number(known)), vec![String::new()]);
    let looked = app.store.events(EventQuery { after, types, limit: LOOK, ..EventQuery::default() }).await?;
    Ok(looked.through.max(known))
}

pub(super) async fn change(State(app): State<Arc<App>>, Named(id): Named, Input(given): Input) -> Answer {
    let edit = read(&app, given).await?;
    let webhook = app.store.change_webhook(&id, Change::Edited(edit), app.clock.now()).await?;
    app.post.edited();
    answer(&webhook)
}

pub(super) async fn remove(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    let removed = app.store.remove_webhook(&id).await?;
    app.post.edited();
    answer(&removed.ok_or_else(|| Refusal::not_found("webhook", &id))?)
}

pub(super) async fn renew_secret(
    State(app): State<Arc<App>>,
    Named(id): Named,
    MaybeInput(_): MaybeInput,
) -> Answer {
    let change = Change::Resigned(new_secret()?);
    ok(&revealed(&app.store.change_webhook(&id, change, app.clock.now()).await?))
}

pub(super) async fn deliveries(State(app): State<Arc<App>>, Named(id): Named) -> Answer {
    find(&app, &id).await?;
    let views: Vec<Object> = app.store.deliveries(&id).await?.iter().map(delivery_view).collect();
    ok(&Object::new().with("deliveries", &views).with("count", &views.len()))
}

pub(super) async fn test(State(app): State<Arc<App>>, Named(id): Named, MaybeInput(_): MaybeInput) -> Answer {
    let webhook = find(&app, &id).await?;
    let delivery = app.post.ping(&webhook, app.clock.now()).await;
    ok(&Object::new().with("delivery", &delivery_view(&delivery)))
}

async fn find(app: &App, id: &str) -> Result<Webhook, Refusal> {
    app.store.webhook(id).await?.ok_or_else(|| Refusal::not_found("webhook", id))
}

fn new_secret() -> Result<Secret, Refusal> {
    Secret::new().map_err(|error| Refusal::backend(&format!("no secret could be made: {error}")))
}

async fn read(app: &App, mut given: Members) -> Result<Edit, Refusal> {
    let url: Option<String> = given.take_as("url", "a URL")?;
    if let Some(url) = &url {
        app.post.dialer.guard().target(url).map_err(|why| Refusal::request(why).field("url"))?;
    }
    let types = match given.take("types") {
        None => None,
        Some(raw) => {
            let expected =
                format!("up to {TYPES_MAX} kinds of events such as \"job.completed\" or \"cron.*\"");
            let types: Vec<String> = crate::members::read_as(&raw, "types", &expected)?;
            if types.len() > TYPES_MAX || !types.iter().all(|kind| is_type(kind)) {
                return Err(wrong("types", &expected, &raw));
            }
            Some(types)
        }
    };
    let described = given.0.contains_key("description");
    let description: Option<String> = given.take_as("description", "a text")?;
    if description.as_ref().is_some_and(|text| text.chars().count() > DESCRIPTION_CHARS_MAX) {
        let message = format!("expected at most {DESCRIPTION_CHARS_MAX} characters in `description`");
        return Err(Refusal::request(message).field("description"));
    }
    let enabled = given.take_as("enabled", "true or false")?;
    let through = match given.take_as::<String>("after", "the id of an event, or \"now\"")? {
        None => None,
        Some(word) if word == "now" => Some(last_event(app).await?),
        Some(id) => {
            let query = EventQuery { after: Some(After::Id(id)), limit: 0, ..EventQuery::default() };
            Some(app.store.events(query).await?.through)
        }
    };
    if let Some(name) = given.0.keys().next() {
        let expected = "`url`, `types`, `description`, `enabled` or `after`";
        let message = format!("expected {expected}, but found {}", excerpt(name));
        return Err(Refusal::request(message).field(name));
    }
    Ok(Edit { url, types, description: described.then_some(description), enabled, through })
}

fn is_type(kind: &str) -> bool {
    let name = kind.strip_suffix('*').unwrap_or(kind);
    let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || b"._".contains(&byte));
    !kind.is_empty() && kind.len() <= TYPE_CHARS_MAX && is_name
}

fn answer(webhook: &Webhook) -> Answer {
    ok(&Object::new().with("webhook", &view(webhook)))
}

/// With the secret, for once.
fn revealed(webhook: &Webhook) -> Object {
    Object::new().with("webhook", &view(webhook).with("secret", &webhook.secret.reveal()))
}

fn view(webhook: &Webhook) -> Object {
    let pending = webhook.pending.as_ref();
    let state = match (webhook.enabled, pending) {
        (false, _) => "disabled",
        (true, Some(_)) => "failing",
        (true, None) => "working",
    };
    let disabled = webhook.disabled.as_ref();
    Object::new()
        .with("id", &webhook.id)
        .with("url", &webhook.url)
        .with("types", &webhook.types)
        .with("description", &webhook.description)
        .with("enabled", &webhook.enabled)
        .with("created_at", &stamp(webhook.created_at))
        .with("state", &state)
        .maybe("disabled_at", disabled.map(|disabled| stamp(disabled.at)).as_ref())
        .maybe("disabled_reason", disabled.map(|disabled| &disabled.reason))
        .maybe("failing_since", pending.map(|pending| stamp(pending.failing_since)).as_ref())
        .maybe("pending", pending.map(|pending| delivery_view(&pending.delivery)).as_ref())
        .with("forgotten_events", &webhook.forgotten)
}

fn delivery_view(delivery: &Delivery) -> Object {
    let state = match delivery.state {
        DeliveryState::Delivered => "delivered",
        DeliveryState::Failed => "failed",
        DeliveryState::PassedOver => "passed_over",
        DeliveryState::Retrying => "retrying",
        DeliveryState::Stopped => "stopped",
    };
    Object::new()
        .with("id", &delivery.id)
        .with("event_id", &delivery.event_id)
        .with("event_type", &delivery.event_type)
        .with("state", &state)
        .with("attempts", &delivery.attempts)
        .with("first_attempt_at", &stamp(delivery.first_attempt_at))
        .with("last_attempt_at", &stamp(delivery.last_attempt_at))
        .with("duration_ms", &delivery.duration_ms)
        .with("status", &delivery.status)
        .with("error", &delivery.error)
        .maybe("next_attempt_at", delivery.next_attempt_at.map(stamp).as_ref())
}
