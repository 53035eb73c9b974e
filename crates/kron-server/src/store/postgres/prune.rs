//! Forgets what is older, or more, than is kept: some at a time, so that no statement takes long however much there is.

use jiff::{SignedDuration, Timestamp};
use sqlx::Row;

use crate::store::Retention;
use crate::store::verbs::PRUNE_MAX;

use super::desk::Desk;
use super::trouble::Outcome;
use super::webhooks;

/// How many events are counted by one statement.
pub(super) const COUNT_MAX: u64 = 50_000;

/// How many dead letters are counted by one statement. Their rows are read for it, and are larger.
pub(super) const COUNT_DEAD_MAX: u64 = 10_000;

/// How many times events or dead letters are forgotten for one count of them.
pub(super) const ROUNDS_MAX: usize = 20;

/// Statements that forget some rows each, with the first value of each. Nodes that forget at the same time leave each
/// other's rows, and what changes at this moment is locked by whoever changes it: it stays, or is looked at as it is then.
pub(super) fn rows(keep: &Retention, now: Timestamp) -> [(&'static str, i64); 4] {
    [
        (
            "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended_at < $1 AND dead_at IS NULL \
             ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            before(keep.jobs_days, now),
        ),
        (
            "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE dead_at < $1 ORDER BY dead_at LIMIT $2 \
             FOR UPDATE SKIP LOCKED)",
            before(keep.dead_days, now),
        ),
        (
            "DELETE FROM occurrences WHERE (cron, scheduled, kind) IN (SELECT cron, scheduled, kind \
             FROM occurrences WHERE actual < $1 ORDER BY actual LIMIT $2 FOR UPDATE SKIP LOCKED)",
            before(keep.occurrences_days, now),
        ),
        (
            "DELETE FROM workers WHERE id IN (SELECT id FROM workers WHERE dies_at IS NULL AND seen_at < $1 LIMIT $2 \
             FOR UPDATE SKIP LOCKED)",
            before(keep.events_days, now),
        ),
    ]
}

/// What happened before is too old, in milliseconds.
pub(super) fn before(days: u32, now: Timestamp) -> i64 {
    let age = SignedDuration::from_hours(24 * i64::from(days));
    now.checked_sub(age).unwrap_or(Timestamp::MIN).as_millisecond()
}

/// Carries out one of those statements. Says whether there is more.
pub(super) async fn forget(desk: &mut Desk, sql: &str, bound: i64) -> Outcome<bool> {
    let forgotten = desk.execute(sqlx::query(sql).bind(bound).bind(i64::from(PRUNE_MAX))).await?;
    Ok(forgotten >= u64::from(PRUNE_MAX))
}

/// A dead letter's place among all of them: since when it lies there, and its id.
pub(super) type Grave = (i64, String);

/// The place of the one that comes so many before another, which is not counted; none if there are not so many.
pub(super) async fn dead_before(desk: &mut Desk, place: &Grave, count: u64) -> Outcome<Option<Grave>> {
    let (at, id) = place;
    let sql = "SELECT dead_at, id FROM jobs WHERE dead_at <= $1 AND (dead_at, id) < ($1, $2) \
               ORDER BY dead_at DESC, id DESC LIMIT 1 OFFSET $3 - 1";
    let query = sqlx::query(sql).bind(at).bind(id).bind(i64::try_from(count).unwrap_or(i64::MAX));
    desk.row(query).await?.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

/// Forgets some dead letters that come before a place. Says whether there is more. One that is revived at this moment is
/// left to whoever has it in hand, and one that just was is looked at again once it is locked.
pub(super) async fn forget_dead(desk: &mut Desk, place: &Grave) -> Outcome<bool> {
    let (at, id) = place;
    let sql = "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE dead_at <= $1 AND (dead_at, id) < ($1, $2) \
               ORDER BY dead_at LIMIT $3 FOR UPDATE SKIP LOCKED)";
    let forgotten = desk.execute(sqlx::query(sql).bind(at).bind(id).bind(i64::from(PRUNE_MAX))).await?;
    Ok(forgotten >= u64::from(PRUNE_MAX))
}

/// The oldest come first: once one is young enough, so are all.
pub(super) const OLD_EVENTS: &str = "DELETE FROM events WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM events ORDER BY seq LIMIT $2) AS oldest \
     WHERE at < $1) RETURNING seq";

pub(super) const EARLY_EVENTS: &str = "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq < $1 ORDER BY seq LIMIT $2) RETURNING seq";

/// Forgets some events, and counts them for the webhooks that had not come to them. Says whether there is more.
pub(super) async fn forget_events(desk: &mut Desk, sql: &str, bound: i64, now: Timestamp) -> Outcome<bool> {
    let rows = desk.rows(sqlx::query(sql).bind(bound).bind(i64::from(PRUNE_MAX))).await?;
    let numbers: Result<Vec<u64>, sqlx::Error> =
        rows.iter().map(|row| row.try_get::<i64, _>(0).map(i64::unsigned_abs)).collect();
    if !rows.is_empty() {
        webhooks::forget(desk, &numbers?, now).await?;
    }
    Ok(rows.len() >= PRUNE_MAX as usize)
}

/// How many events there are before one, up to so many, and the first of those.
pub(super) async fn count_events(desk: &mut Desk, before: i64, most: u64) -> Outcome<(u64, Option<i64>)> {
    let sql = "SELECT count(*), min(seq) FROM (SELECT seq FROM events WHERE seq < $1 ORDER BY seq DESC LIMIT $2) AS newest";
    let query = sqlx::query(sql).bind(before).bind(i64::try_from(most).unwrap_or(i64::MAX));
    let row = desk.row(query).await?.ok_or(sqlx::Error::RowNotFound)?;
    Ok((row.try_get::<i64, _>(0)?.unsigned_abs(), row.try_get(1)?))
}
