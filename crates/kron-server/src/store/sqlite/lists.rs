//! What is read page by page.

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::ToSql;
use serde_json::value::RawValue;

use crate::clock::ceil_second;
use crate::cron::{Cron, Occurrence};
use crate::job::{Job, State};
use crate::job_view::Page;
use crate::refusal::Refusal;
use crate::store::{
    After, Answer, DeadStats, EventQuery, Events, JobFilter, PageRequest, Queue, Span, Stored, Worker,
};

use super::desk::{body, many, one};

/// A condition of a list, and the value in it.
type Condition<'v> = (&'static str, &'v dyn ToSql);

/// One list: where it is, its order, and what restricts it.
struct List<'v> {
    table: &'static str,
    /// The column that names a row, in the order of the list.
    key: &'static str,
    /// Whether the largest key comes first.
    descending: bool,
    columns: &'static str,
    conditions: Vec<Condition<'v>>,
}

impl List<'_> {
    fn page<T>(
        &self,
        connection: &Connection,
        page: &PageRequest,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
        key_of: impl Fn(&T) -> String,
    ) -> Answer<(Vec<T>, Page)> {
        let total = self.count(connection)?;
        let limit = page.limit.unwrap_or(u64::from(u32::MAX));
        let mut conditions: Vec<String> =
            self.conditions.iter().map(|(text, _)| (*text).to_owned()).collect();
        let mut values: Vec<&dyn ToSql> = self.conditions.iter().map(|(_, value)| *value).collect();
        let (sign, order) = if self.descending { ("<", "DESC") } else { (">", "ASC") };
        if let Some(cursor) = &page.cursor {
            conditions.push(format!("{} {sign} ?", self.key));
            values.push(cursor);
        }
        let asked = limit + 1;
        values.push(&asked);
        values.push(&page.offset);
        let sql = format!(
            "SELECT {} FROM {}{} ORDER BY {} {order} LIMIT ? OFFSET ?",
            self.columns,
            self.table,
            wherever(&conditions),
            self.key
        );
        let mut rows = many(connection, &sql, &values, read)?;
        let more = rows.len() as u64 > limit;
        if more {
            rows.pop();
        }
        let next = rows.last().filter(|_| more).map(key_of);
        Ok((rows, Page { total, limit: page.limit.unwrap_or(total), offset: page.offset, next }))
    }

    fn count(&self, connection: &Connection) -> Answer<u64> {
        let conditions: Vec<String> = self.conditions.iter().map(|(text, _)| (*text).to_owned()).collect();
        let values: Vec<&dyn ToSql> = self.conditions.iter().map(|(_, value)| *value).collect();
        let sql = format!("SELECT count(*) FROM {}{}", self.table, wherever(&conditions));
        Ok(one(connection, &sql, &values, |row| row.get(0))?.unwrap_or(0))
    }
}

fn wherever(conditions: &[String]) -> String {
    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

pub(super) fn jobs(
    connection: &Connection,
    filter: &JobFilter,
    page: &PageRequest,
) -> Answer<(Vec<Job>, Page)> {
    let state = filter.state.map(State::name);
    let mut conditions: Vec<Condition<'_>> = Vec::new();
    if let Some(state) = &state {
        conditions.push(("state = ?", state));
    }
    if let Some(queue) = &filter.queue {
        conditions.push(("queue = ?", queue));
    }
    if let Some(kind) = &filter.kind {
        conditions.push(("type = ?", kind));
    }
    if let Some(cron) = &filter.cron {
        conditions.push(("cron = ?", cron));
    }
    if filter.dead {
        conditions.push(("dead_at > ?", &i64::MIN));
    }
    let list = List { table: "jobs", key: "id", descending: true, columns: "body", conditions };
    list.page(connection, page, body, |job: &Job| job.id.clone())
}

pub(super) fn queues(connection: &Connection, page: &PageRequest) -> Answer<(Vec<Queue>, Page)> {
    let columns = "name, paused, created_at";
    let list = List { table: "queues", key: "name", descending: false, columns, conditions: Vec::new() };
    list.page(connection, page, queue, |queue| queue.name.clone())
}

fn queue(row: &rusqlite::Row<'_>) -> rusqlite::Result<Queue> {
    let created_at = Timestamp::from_millisecond(row.get(2)?).unwrap_or_default();
    Ok(Queue { name: row.get(0)?, paused: row.get(1)?, created_at })
}

pub(super) fn queue_stats(
    connection: &Connection,
    name: String,
    now: Timestamp,
) -> Answer<(Queue, Vec<(State, u64)>)> {
    let sql = "SELECT name, paused, created_at FROM queues WHERE name = ?1";
    let known = one(connection, sql, &[&name], queue)?;
    let sql = "SELECT state, count(*) FROM jobs WHERE queue = ?1 GROUP BY state";
    let counted: Vec<(String, u64)> = many(connection, sql, &[&name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let count = |state: State| counted.iter().find(|(name, _)| name == state.name()).map_or(0, |(_, n)| *n);
    let states = State::ALL.map(|state| (state, count(state))).to_vec();
    Ok((known.unwrap_or(Queue { name, paused: false, created_at: now }), states))
}

pub(super) fn workers(connection: &Connection, page: &PageRequest) -> Answer<(Vec<Worker>, Page)> {
    let list =
        List { table: "workers", key: "id", descending: false, columns: "body", conditions: Vec::new() };
    list.page(connection, page, body, |worker: &Worker| worker.worker_id.clone())
}

pub(super) fn crons(
    connection: &Connection,
    enabled: Option<bool>,
    page: &PageRequest,
) -> Answer<(Vec<Cron>, Page)> {
    let mut conditions: Vec<Condition<'_>> = Vec::new();
    if let Some(enabled) = &enabled {
        conditions.push(("enabled = ?", enabled));
    }
    let list = List { table: "crons", key: "name", descending: false, columns: "body", conditions };
    list.page(connection, page, body, |cron: &Cron| cron.definition.name.clone())
}

/// Part of the record. Several in a row may have begun before it, and are found by their end: history that
/// nobody asks for is not walked through.
pub(super) fn occurrences(connection: &Connection, cron: &str, span: &Span) -> Answer<Vec<Occurrence>> {
    let (from, to) = (ceil_second(span.from).as_second(), span.to.as_second());
    let limit = span.limit as u64;
    let Some(after) = span.after else {
        let sql = "SELECT body FROM occurrences WHERE cron = ?1 AND kind = 'range' AND last >= ?2 AND scheduled < ?2 \
                   ORDER BY last LIMIT ?3";
        let mut found: Vec<Occurrence> = many(connection, sql, &[&cron, &from, &limit], body)?;
        found.sort_by_key(Occurrence::place);
        let sql = "SELECT body FROM occurrences WHERE cron = ?1 AND scheduled BETWEEN ?2 AND ?3 \
                   ORDER BY scheduled, kind LIMIT ?4";
        found.extend(many(connection, sql, &[&cron, &from, &to, &limit], body)?);
        found.truncate(span.limit);
        return Ok(found);
    };
    let sql = "SELECT body FROM occurrences WHERE cron = ?1 AND (scheduled, kind) > (?2, ?3) AND last >= ?4 \
               AND scheduled <= ?5 ORDER BY scheduled, kind LIMIT ?6";
    let (second, kind) = (after.scheduled.as_second(), after.kind.name());
    many(connection, sql, &[&cron, &second, &kind, &from, &to, &limit], body)
}

pub(super) fn occurrence_at(
    connection: &Connection,
    cron: &str,
    at: Timestamp,
) -> Answer<Option<Occurrence>> {
    let at = at.as_second();
    let sql =
        "SELECT body FROM occurrences WHERE cron = ?1 AND scheduled = ?2 ORDER BY kind = 'one' DESC LIMIT 1";
    if let Some(exact) = one(connection, sql, &[&cron, &at], body)? {
        return Ok(Some(exact));
    }
    let sql = "SELECT body FROM occurrences WHERE cron = ?1 AND kind = 'range' AND last >= ?2 AND scheduled <= ?2 \
               ORDER BY last LIMIT 1";
    one(connection, sql, &[&cron, &at], body)
}

pub(super) fn dead_stats(connection: &Connection) -> Answer<DeadStats> {
    let pair = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let sql = "SELECT queue, count(*) FROM jobs WHERE dead_at IS NOT NULL GROUP BY queue ORDER BY queue";
    let by_queue: Vec<(String, u64)> = many(connection, sql, &[], pair)?;
    let sql = "SELECT coalesce(json_extract(body, '$.error.type'), 'unknown') AS kind, count(*) FROM jobs \
               WHERE dead_at IS NOT NULL GROUP BY kind ORDER BY kind";
    let by_error_type = many(connection, sql, &[], pair)?;
    let sql = "SELECT min(dead_at), max(dead_at) FROM jobs WHERE dead_at IS NOT NULL";
    let ends: Option<(Option<i64>, Option<i64>)> =
        one(connection, sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (oldest, newest) = ends.unwrap_or_default();
    let at = |ms: Option<i64>| ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let total = by_queue.iter().map(|(_, n)| n).sum();
    Ok(DeadStats { total, by_queue, by_error_type, oldest: at(oldest), newest: at(newest) })
}

/// The most events that one query looks at, however few of them it wants.
const SCAN_MAX: u64 = 20_000;

pub(super) fn events(connection: &Connection, query: &EventQuery) -> Answer<Events> {
    let first: Option<Option<i64>> = one(connection, "SELECT min(seq) FROM events", &[], |row| row.get(0))?;
    let last: Option<Option<i64>> = one(connection, "SELECT max(seq) FROM events", &[], |row| row.get(0))?;
    let whole = |n: Option<Option<i64>>| n.flatten().map_or(0, i64::unsigned_abs);
    let (first, last) = (whole(first), whole(last));
    let after = match &query.after {
        None => 0,
        Some(After::Number(number)) => *number,
        Some(After::Id(id)) => place_of(connection, id, last)?,
    };
    let after = after.max(first.saturating_sub(1));
    let through = last.min(after.saturating_add(SCAN_MAX));
    let sql = "SELECT seq, id, type, body, subject, queue, job_type FROM events WHERE seq > ?1 AND seq <= ?2 \
               ORDER BY seq";
    let mut found = Vec::new();
    let mut looked = after;
    let mut statement = connection.prepare_cached(sql).map_err(super::desk::failed)?;
    let mut rows = statement.query([after, through]).map_err(super::desk::failed)?;
    while let Some(row) = rows.next().map_err(super::desk::failed)? {
        if found.len() == query.limit {
            break;
        }
        let (stored, wanted) = read_event(row, query).map_err(super::desk::failed)?;
        looked = stored.number;
        if wanted {
            found.push(stored);
        }
    }
    let looked = if found.len() < query.limit { through.max(looked) } else { looked };
    let cursor = found.last().map(|event| event.id.clone());
    let cursor = match (cursor, &query.after) {
        (None, Some(After::Id(id))) if looked == after => Some(id.clone()),
        (_, _) if looked > 0 => {
            one(connection, "SELECT id FROM events WHERE seq = ?1", &[&looked], |row| row.get(0))?
        }
        (cursor, _) => cursor,
    };
    Ok(Events { events: found, through: looked, cursor, has_more: looked < last })
}

fn read_event(row: &rusqlite::Row<'_>, query: &EventQuery) -> rusqlite::Result<(Stored, bool)> {
    let kind: String = row.get(2)?;
    let (subject, queue, job_type): (String, Option<String>, Option<String>) =
        (row.get(4)?, row.get(5)?, row.get(6)?);
    let among = |list: &[String], value: Option<&String>| {
        list.is_empty() || value.is_some_and(|it| list.contains(it))
    };
    let wanted_kind = query.types.is_empty()
        || query.types.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(prefix) => kind.starts_with(prefix),
            None => *wanted == kind,
        });
    let wanted = wanted_kind
        && among(&query.queues, queue.as_ref())
        && among(&query.job_types, job_type.as_ref())
        && query.subject.as_ref().is_none_or(|wanted| *wanted == subject);
    let body: String = row.get(3)?;
    let body = RawValue::from_string(body).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok((Stored { number: row.get::<_, i64>(0)?.unsigned_abs(), id: row.get(1)?, kind, body }, wanted))
}

/// The number of the event of an id. One that is no longer kept lies before all that were told later.
fn place_of(connection: &Connection, id: &str, last: u64) -> Answer<u64> {
    if !id.strip_prefix("evt_").is_some_and(crate::envelope::is_id) {
        let message =
            format!("expected the id of an event in `after`, but found {}", crate::members::excerpt(id));
        return Err(Refusal::request(message).field("after"));
    }
    let exact = one(connection, "SELECT seq FROM events WHERE id = ?1", &[&id], |row| row.get::<_, i64>(0))?;
    if let Some(exact) = exact {
        return Ok(exact.unsigned_abs());
    }
    let later = one(connection, "SELECT min(seq) FROM events WHERE id > ?1", &[&id], |row| {
        row.get::<_, Option<i64>>(0)
    })?;
    Ok(later.flatten().map_or(last, |later| later.unsigned_abs() - 1))
}
