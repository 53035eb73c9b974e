//! Webhooks, and the last deliveries of each.

use jiff::Timestamp;
use rusqlite::Connection;

use crate::refusal::Refusal;
use crate::store::Answer;
use crate::webhook::{Change, DELIVERIES_KEPT, Delivery, UNREADABLE, WEBHOOKS_MAX, Webhook};

use super::desk::{Desk, body, json, many};

pub(super) fn add(desk: &mut Desk<'_>, webhook: &Webhook) -> Answer<()> {
    let count: Option<u64> = desk.one("SELECT count(*) FROM webhooks", &[], |row| row.get(0))?;
    if count.is_some_and(|count| count >= WEBHOOKS_MAX as u64) {
        let message = format!("expected at most {WEBHOOKS_MAX} webhooks, and there are as many");
        return Err(Refusal::conflict(message).hint("remove one that nobody needs any more"));
    }
    save(desk, webhook)
}

fn save(desk: &Desk<'_>, webhook: &Webhook) -> Answer<()> {
    let sql = "INSERT INTO webhooks (id, body) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET body = ?2";
    desk.execute(sql, &[&webhook.id, &json(webhook)]).map(drop)
}

/// All that can be read: one that cannot keeps no other from being told.
pub(super) fn all(connection: &Connection) -> Answer<Vec<Webhook>> {
    // Ids that are made later sort later.
    let sql = "SELECT body, id FROM webhooks ORDER BY id";
    let rows = many(connection, sql, &[], |row| Ok((row.get::<_, String>(1)?, body::<Webhook>(row))))?;
    let read = |(id, webhook): (String, rusqlite::Result<Webhook>)| {
        webhook.inspect_err(|error| tracing::error!(webhook = id, %error, message = UNREADABLE)).ok()
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

fn find(desk: &Desk<'_>, id: &str) -> Answer<Option<Webhook>> {
    desk.one("SELECT body FROM webhooks WHERE id = ?1", &[&id], body)
}

pub(super) fn change(desk: &mut Desk<'_>, id: &str, change: Change, now: Timestamp) -> Answer<Webhook> {
    let mut webhook = find(desk, id)?.ok_or_else(|| Refusal::not_found("webhook", id))?;
    let effects = webhook.change(change, now);
    save(desk, &webhook)?;
    if let Some(delivery) = effects.delivery {
        remember(desk, id, &delivery)?;
    }
    desk.tell(effects.events)?;
    Ok(webhook)
}

/// Counts events that are no longer kept for the webhooks that had not come to them.
pub(super) fn forget(desk: &mut Desk<'_>, forgotten: &[u64], now: Timestamp) -> Answer<()> {
    if forgotten.is_empty() {
        return Ok(());
    }
    for webhook in all(desk.connection())? {
        if let Some(misses) = webhook.misses(forgotten) {
            tracing::warn!(webhook = webhook.id, "events were forgotten before a webhook was told of them");
            change(desk, &webhook.id, misses, now)?;
        }
    }
    Ok(())
}

fn remember(desk: &Desk<'_>, id: &str, delivery: &Delivery) -> Answer<()> {
    let sql = "INSERT INTO deliveries (webhook, number, body) VALUES (?1, ?2, ?3) \
               ON CONFLICT (webhook, number) DO UPDATE SET body = ?3";
    desk.execute(sql, &[&id, &delivery.number, &json(delivery)])?;
    let sql = "DELETE FROM deliveries WHERE webhook = ?1 AND number <= \
               (SELECT number FROM deliveries WHERE webhook = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)";
    desk.execute(sql, &[&id, &(DELIVERIES_KEPT as u64)]).map(drop)
}

pub(super) fn remove(desk: &mut Desk<'_>, id: &str) -> Answer<Option<Webhook>> {
    let webhook = find(desk, id)?;
    desk.execute("DELETE FROM deliveries WHERE webhook = ?1", &[&id])?;
    desk.execute("DELETE FROM webhooks WHERE id = ?1", &[&id])?;
    Ok(webhook)
}

pub(super) fn deliveries(connection: &Connection, id: &str) -> Answer<Vec<Delivery>> {
    many(connection, "SELECT body FROM deliveries WHERE webhook = ?1 ORDER BY number DESC", &[&id], body)
}
