//! Webhooks, and the last deliveries of each.

use jiff::Timestamp;
use sqlx::Row;

use crate::refusal::Refusal;
use crate::webhook::{Change, DELIVERIES_KEPT, Delivery, UNREADABLE, WEBHOOKS_MAX, Webhook};

use super::desk::{Desk, body, can_be, json};
use super::trouble::Outcome;

pub(super) async fn add(desk: &mut Desk, webhook: &Webhook) -> Outcome<()> {
    // One after the other, or two could both be the last.
    desk.rows(sqlx::query("SELECT pg_advisory_xact_lock(6171802031)")).await?;
    let row = desk.row(sqlx::query("SELECT count(*) FROM webhooks")).await?;
    let count: i64 = row.map_or(Ok(0), |row| row.try_get(0))?;
    if count.unsigned_abs() >= WEBHOOKS_MAX as u64 {
        let message = format!("expected at most {WEBHOOKS_MAX} webhooks, and there are as many");
        return Err(Refusal::conflict(message).hint("remove one that nobody needs any more").into());
    }
    save(desk, webhook).await
}

async fn save(desk: &mut Desk, webhook: &Webhook) -> Outcome<()> {
    let sql = "INSERT INTO webhooks (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = $2";
    desk.execute(sqlx::query(sql).bind(&webhook.id).bind(json(webhook))).await.map(drop)
}

/// All that can be read: one that cannot keeps no other from being told.
pub(super) async fn all(desk: &mut Desk) -> Outcome<Vec<Webhook>> {
    // Ids that are made later sort later.
    readable(desk, "SELECT body, id FROM webhooks ORDER BY id").await
}

async fn readable(desk: &mut Desk, sql: &str) -> Outcome<Vec<Webhook>> {
    let mut webhooks = Vec::new();
    for row in desk.rows(sqlx::query(sql)).await? {
        match body(&row) {
            Ok(webhook) => webhooks.push(webhook),
            Err(trouble) => {
                let id: &str = row.try_get(1)?;
                tracing::error!(webhook = id, error = trouble.refusal().message, message = UNREADABLE);
            }
        }
    }
    Ok(webhooks)
}

pub(super) async fn one(desk: &mut Desk, id: &str) -> Outcome<Option<Webhook>> {
    if !can_be(id) {
        return Ok(None);
    }
    Ok(desk.bodies(sqlx::query("SELECT body FROM webhooks WHERE id = $1").bind(id)).await?.pop())
}

async fn held(desk: &mut Desk, id: &str) -> Outcome<Option<Webhook>> {
    if !can_be(id) {
        return Ok(None);
    }
    let sql = "SELECT body FROM webhooks WHERE id = $1 FOR UPDATE";
    Ok(desk.bodies(sqlx::query(sql).bind(id)).await?.pop())
}

pub(super) async fn change(desk: &mut Desk, id: &str, change: Change, now: Timestamp) -> Outcome<Webhook> {
    let mut webhook = held(desk, id).await?.ok_or_else(|| Refusal::not_found("webhook", id))?;
    let effects = webhook.change(change, now);
    save(desk, &webhook).await?;
    if let Some(delivery) = effects.delivery {
        remember(desk, id, &delivery).await?;
    }
    desk.tell(effects.events);
    Ok(webhook)
}

/// Counts events that are no longer kept for the webhooks that had not come to them.
pub(super) async fn forget(desk: &mut Desk, forgotten: &[u64], now: Timestamp) -> Outcome<()> {
    for webhook in readable(desk, "SELECT body, id FROM webhooks ORDER BY id FOR UPDATE").await? {
        if let Some(misses) = webhook.misses(forgotten) {
            tracing::warn!(webhook = webhook.id, "events were forgotten before a webhook was told of them");
            change(desk, &webhook.id, misses, now).await?;
        }
    }
    Ok(())
}

async fn remember(desk: &mut Desk, id: &str, delivery: &Delivery) -> Outcome<()> {
    let sql = "INSERT INTO deliveries (webhook, number, body) VALUES ($1, $2, $3) \
               ON CONFLICT (webhook, number) DO UPDATE SET body = $3";
    let number = i64::try_from(delivery.number).unwrap_or(i64::MAX);
    desk.execute(sqlx::query(sql).bind(id).bind(number).bind(json(delivery))).await?;
    let sql = "DELETE FROM deliveries WHERE webhook = $1 AND number <= \
               (SELECT number FROM deliveries WHERE webhook = $1 ORDER BY number DESC LIMIT 1 OFFSET $2)";
    desk.execute(sqlx::query(sql).bind(id).bind(DELIVERIES_KEPT as i64)).await.map(drop)
}

pub(super) async fn remove(desk: &mut Desk, id: &str) -> Outcome<Option<Webhook>> {
    let webhook = held(desk, id).await?;
    if webhook.is_some() {
        desk.execute(sqlx::query("DELETE FROM deliveries WHERE webhook = $1").bind(id)).await?;
        desk.execute(sqlx::query("DELETE FROM webhooks WHERE id = $1").bind(id)).await?;
    }
    Ok(webhook)
}

pub(super) async fn deliveries(desk: &mut Desk, id: &str) -> Outcome<Vec<Delivery>> {
    let sql = "SELECT body FROM deliveries WHERE webhook = $1 ORDER BY number DESC";
    desk.bodies(sqlx::query(sql).bind(id)).await
}
