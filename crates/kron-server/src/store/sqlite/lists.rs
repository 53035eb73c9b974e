//! What is read page by page.

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::ToSql;
use serde_json::value::RawValue;

use crate::clock::ceil_second;
use crate::cron::{Cron, Occurrence};
use crate::job::{Job, State};
use crate::job_view::Page;
use crate::store::verbs::{SCAN_MAX, SOONEST_MAX, Soonest, census_of, event_id, newest};
use crate::store::{
    After, Answer, DeadStats, EventQuery, Events, JobFilter, PageRequest, Queue, Span, Stored, Worker,
};

use super::desk::{body, failed, left_out, many, one};

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
    /// The index that has its rows in order, where SQLite might prefer to sort those of another.
    index: Option<&'static str>,
    /// Conditions of which each row satisfies one, where an index has the rows of each in order but not of all.
    arms: Vec<String>,
}

impl List<'_> {
    fn page<T>(
        &self,
        connection: &Connection,
        page: &PageRequest,
        read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Answer<(Vec<T>, Page)> {
        let total = self.count(connection)?;
        let limit = page.limit.unwrap_or(u64::from(u32::MAX));
        let asked = limit + 1;
        let mut values: Vec<&dyn ToSql> = self.conditions.iter().map(|(_, value)| *value).collect();
        values.extend([&asked as &dyn ToSql, &page.offset]);
        if let Some(cursor) = &page.cursor {
            values.push(cursor);
        }
        let mut rows = many(connection, &self.page_sql(page.cursor.is_some()), &values, |row| {
            Ok((read(row), row.get::<_, String>(row.as_ref().column_count() - 1)?))
        })?;
        let more = rows.len() as u64 > limit;
        if more {
            rows.pop();
        }
        let next = rows.last().filter(|_| more).map(|(_, key)| key.clone());
        // What cannot be read is left out, and the list goes on after it.
        let rows = rows.into_iter().filter_map(|(row, _)| row.inspect_err(left_out).ok()).collect();
        Ok((rows, Page { total, limit: page.limit.unwrap_or(total), offset: page.offset, next }))
    }

    /// The query of a page. Its values are those of the conditions, how many, how many to leave out, and the cursor.
    fn page_sql(&self, has_cursor: bool) -> String {
        let (sign, order) = if self.descending { ("<", "DESC") } else { (">", "ASC") };
        let (key, given) = (self.key, self.conditions.len());
        let place = has_cursor.then(|| format!("{key} {sign} ?{}", given + 3));
        let whole = [String::new()];
        let arms = if self.arms.is_empty() { &whole[..] } else { &self.arms };
        let arms: Vec<String> = arms
            .iter()
            .map(|arm| {
                let mut conditions = self.numbered();
                conditions.extend((!arm.is_empty()).then(|| arm.clone()));
                conditions.extend(place.clone());
                let index = self.index.map(|index| format!(" INDEXED BY {index}")).unwrap_or_default();
                let (columns, table) = (self.columns, self.table);
                format!("SELECT {columns}, {key} FROM {table}{index}{}", wherever(&conditions))
            })
            .collect();
        format!(
            "{} ORDER BY {key} {order} LIMIT ?{} OFFSET ?{}",
            arms.join(" UNION ALL "),
            given + 1,
            given + 2
        )
    }

    fn count(&self, connection: &Connection) -> Answer<u64> {
        let values: Vec<&dyn ToSql> = self.conditions.iter().map(|(_, value)| *value).collect();
        Ok(one(connection, &self.count_sql(), &values, |row| row.get(0))?.unwrap_or(0))
    }

    fn count_sql(&self) -> String {
        format!("SELECT count(*) FROM {}{}", self.table, wherever(&self.numbered()))
    }

    /// The conditions, with numbers in the place of their values.
    fn numbered(&self) -> Vec<String> {
        self.conditions.iter().zip(1..).map(|((text, _), n)| text.replace('?', &format!("?{n}"))).collect()
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
    list_of_jobs(filter, state.as_ref()).page(connection, page, body)
}

/// The latest job of each of these cron jobs: one look at an index for each.
pub(super) fn latest_jobs(connection: &Connection, crons: &[String]) -> Answer<Vec<Job>> {
    let sql = "SELECT body FROM jobs INDEXED BY jobs_of_cron WHERE cron = ?1 ORDER BY id DESC LIMIT 1";
    let mut latest = Vec::new();
    for cron in crons {
        let found = one(connection, sql, &[cron], |row| Ok(body(row)))?;
        latest.extend(found.and_then(|job| job.inspect_err(left_out).ok()));
    }
    Ok(latest)
}

fn list_of_jobs<'v>(filter: &'v JobFilter, state: Option<&'v &'static str>) -> List<'v> {
    let mut conditions: Vec<Condition<'_>> = Vec::new();
    if let Some(state) = state {
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
    let index = match filter {
        JobFilter { cron: Some(_), .. } => Some("jobs_of_cron"),
        JobFilter { dead: true, .. } => Some("jobs_dead_in_order"),
        JobFilter { queue: Some(_), .. } => Some("jobs_in_queue"),
        JobFilter { state: Some(_), .. } => Some("jobs_in_state"),
        JobFilter { kind: Some(_), .. } => Some("jobs_of_type"),
        _ => None,
    };
    // Of a queue, only each state is in order.
    let arms = if index == Some("jobs_in_queue") && filter.state.is_none() { &State::ALL[..] } else { &[] };
    let arms = arms.iter().map(|state| format!("state = '{}'", state.name())).collect();
    List { table: "jobs", key: "id", descending: true, columns: "body", conditions, index, arms }
}

pub(super) fn queues(connection: &Connection, page: &PageRequest) -> Answer<(Vec<Queue>, Page)> {
    let columns = "name, paused, created_at";
    let (conditions, arms) = (Vec::new(), Vec::new());
    let list =
        List { table: "queues", key: "name", descending: false, columns, conditions, index: None, arms };
    list.page(connection, page, queue)
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

/// Every job is counted, in the order of an index that has all that is asked for.
pub(super) fn census(
    connection: &Connection,
    queues_max: usize,
) -> Answer<Vec<(Option<String>, State, u64)>> {
    let sql = "SELECT queue, state, count(*) FROM jobs GROUP BY queue, state ORDER BY queue";
    let rows = many(connection, sql, &[], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, u64>(2)?))
    })?;
    let counted = census_of(rows, queues_max);
    Ok(counted)
}

pub(super) fn workers(connection: &Connection, page: &PageRequest) -> Answer<(Vec<Worker>, Page)> {
    let (conditions, arms) = (Vec::new(), Vec::new());
    let list = List {
        table: "workers",
        key: "id",
        descending: false,
        columns: "body",
        conditions,
        index: None,
        arms,
    };
    list.page(connection, page, body)
}

pub(super) fn crons(
    connection: &Connection,
    enabled: Option<bool>,
    page: &PageRequest,
) -> Answer<(Vec<Cron>, Page)> {
    list_of_crons(enabled.as_ref()).page(connection, page, body)
}

/// Cron jobs after a name, and the name to go on after.
pub(super) fn crons_after(
    connection: &Connection,
    name: Option<&str>,
    most: usize,
) -> Answer<(Vec<Cron>, Option<String>)> {
    let sql = "SELECT body, name FROM crons WHERE name > ?1 ORDER BY name LIMIT ?2";
    let rows = many(connection, sql, &[&name.unwrap_or_default(), &(most as u64)], |row| {
        Ok((body(row), row.get::<_, String>(1)?))
    })?;
    let next = rows.last().filter(|_| rows.len() == most).map(|(_, name)| name.clone());
    Ok((rows.into_iter().filter_map(|(cron, _)| cron.inspect_err(left_out).ok()).collect(), next))
}

fn list_of_crons(enabled: Option<&bool>) -> List<'_> {
    let conditions = enabled.map(|enabled| ("enabled = ?", enabled as &dyn ToSql)).into_iter().collect();
    let (index, arms) = (enabled.map(|_| "crons_in_order"), Vec::new());
    List { table: "crons", key: "name", descending: false, columns: "body", conditions, index, arms }
}

pub(super) fn find_crons(
    connection: &Connection,
    text: &str,
    page: &PageRequest,
) -> Answer<(Vec<Cron>, Page)> {
    let mut conditions: Vec<Condition<'_>> = Vec::new();
    if !text.is_empty() {
        conditions.push(("instr(name, ?) > 0", &text));
    }
    let list = List { conditions, ..list_of_crons(None) };
    list.page(connection, page, body)
}

/// The cron jobs that fire next.
pub(super) fn soonest_crons(connection: &Connection, most: usize) -> Answer<Vec<Cron>> {
    let sql = "SELECT body, next_look FROM crons WHERE next_look IS NOT NULL AND enabled ORDER BY next_look LIMIT ?1";
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query([SOONEST_MAX]).map_err(failed)?;
    let mut soonest = Soonest::new(most);
    while let Some(row) = rows.next().map_err(failed)? {
        if soonest.is_found(row.get(1).map_err(failed)?) {
            break;
        }
        if let Ok(cron) = body(row).inspect_err(left_out) {
            soonest.take(cron);
        }
    }
    Ok(soonest.found())
}

/// The newest part of the record, the newest first.
pub(super) fn latest_occurrences(
    connection: &Connection,
    cron: &str,
    span: &Span,
) -> Answer<Vec<Occurrence>> {
    let (from, to) = (ceil_second(span.from).as_second(), span.to.as_second());
    let limit = span.limit as u64;
    let sql = "SELECT body FROM occurrences WHERE cron = ?1 AND scheduled BETWEEN ?2 AND ?3 \
               ORDER BY scheduled DESC, kind DESC LIMIT ?4";
    let within = many(connection, sql, &[&cron, &from, &to, &limit], body)?;
    let sql = "SELECT body FROM occurrences WHERE cron = ?1 AND kind = 'range' AND last >= ?2 AND scheduled < ?2 \
               ORDER BY last LIMIT ?3";
    Ok(newest(within, many(connection, sql, &[&cron, &from, &limit], body)?, span.limit))
}

/// Part of the record. Several in a row may have begun before it, and are found by their end: history that
/// nobody asks for is not walked through.
pub(super) fn occurrences(connection: &Connection, cron: &str, span: &Span) -> Answer<Vec<Occurrence>> {
    let (from, to) = (ceil_second(span.from).as_second(), span.to.as_second());
    let limit = span.limit as u64;
    let Some(after) = span.after else {
        let mut found: Vec<Occurrence> = many(connection, BEGUN_BEFORE, &[&cron, &from, &limit], body)?;
        found.sort_by_key(Occurrence::place);
        found.extend(many(connection, BETWEEN, &[&cron, &from, &to, &limit], body)?);
        found.truncate(span.limit);
        return Ok(found);
    };
    let (second, kind) = (after.scheduled.as_second(), after.kind.name());
    many(connection, AFTER, &[&cron, &second, &kind, &from, &to, &limit], body)
}

const BEGUN_BEFORE: &str = "SELECT body FROM occurrences WHERE cron = ?1 AND kind = 'range' AND last >= ?2 \
                            AND scheduled < ?2 ORDER BY last LIMIT ?3";
const BETWEEN: &str = "SELECT body FROM occurrences WHERE cron = ?1 AND scheduled BETWEEN ?2 AND ?3 \
                       ORDER BY scheduled, kind LIMIT ?4";
const AFTER: &str = "SELECT body FROM occurrences WHERE cron = ?1 AND (scheduled, kind) > (?2, ?3) AND last >= ?4 \
                     AND scheduled <= ?5 ORDER BY scheduled, kind LIMIT ?6";

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
    let sql = "SELECT coalesce(CASE WHEN json_valid(body) THEN json_extract(body, '$.error.type') END, 'unknown') \
               AS kind, count(*) FROM jobs WHERE dead_at IS NOT NULL GROUP BY kind ORDER BY kind";
    let by_error_type = many(connection, sql, &[], pair)?;
    let sql = "SELECT min(dead_at), max(dead_at) FROM jobs WHERE dead_at IS NOT NULL";
    let ends: Option<(Option<i64>, Option<i64>)> =
        one(connection, sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (oldest, newest) = ends.unwrap_or_default();
    let at = |ms: Option<i64>| ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let total = by_queue.iter().map(|(_, n)| n).sum();
    Ok(DeadStats { total, by_queue, by_error_type, oldest: at(oldest), newest: at(newest) })
}

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
    let through = last.min(after.saturating_add(SCAN_MAX.unsigned_abs()));
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
        let event = read_event(row).map_err(super::desk::failed)?;
        looked = event.number;
        if query.wants(&event) {
            found.push(event);
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

fn read_event(row: &rusqlite::Row<'_>) -> rusqlite::Result<Stored> {
    let body = RawValue::from_string(row.get(3)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
    })?;
    Ok(Stored {
        number: row.get::<_, i64>(0)?.unsigned_abs(),
        id: row.get(1)?,
        kind: row.get(2)?,
        subject: row.get(4)?,
        queue: row.get(5)?,
        job_type: row.get(6)?,
        body,
    })
}

/// The number of the event of an id. One that is no longer kept lies before all that were told later.
fn place_of(connection: &Connection, id: &str, last: u64) -> Answer<u64> {
    let id = event_id(id)?;
    let exact = one(connection, "SELECT seq FROM events WHERE id = ?1", &[&id], |row| row.get::<_, i64>(0))?;
    if let Some(exact) = exact {
        return Ok(exact.unsigned_abs());
    }
    let later = one(connection, "SELECT min(seq) FROM events WHERE id > ?1", &[&id], |row| {
        row.get::<_, Option<i64>>(0)
    })?;
    Ok(later.flatten().map_or(last, |later| later.unsigned_abs() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::STEPS;

    /// What SQLite says it would do.
    fn plan(connection: &Connection, sql: &str) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let count = statement.parameter_count();
        let steps =
            statement.query_map(rusqlite::params_from_iter(vec!["x"; count]), |row| row.get::<_, String>(3));
        steps.unwrap().collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    #[test]
    fn lists_are_read_in_the_order_of_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        STEPS.iter().for_each(|step| connection.execute_batch(step).unwrap());
        let mut queries = Vec::new();
        let states = [None, Some(State::Active)];
        for state in states {
            for queue in [None, Some("q")] {
                for kind in [None, Some("a.b")] {
                    for cron in [None, Some("c")] {
                        let text = |text: Option<&str>| text.map(str::to_owned);
                        let (queue, kind, cron) = (text(queue), text(kind), text(cron));
                        for dead in [false, true] {
                            let filter = JobFilter {
                                state,
                                queue: queue.clone(),
                                kind: kind.clone(),
                                cron: cron.clone(),
                                dead,
                            };
                            let name = state.map(State::name);
                            let list = list_of_jobs(&filter, name.as_ref());
                            queries.extend([list.page_sql(false), list.page_sql(true)]);
                        }
                    }
                }
            }
        }
        for enabled in [None, Some(&true)] {
            let list = list_of_crons(enabled);
            queries.extend([list.page_sql(false), list.page_sql(true), list.count_sql()]);
        }
        queries.extend([BETWEEN, AFTER, BEGUN_BEFORE].map(str::to_owned));
        queries.push("SELECT body FROM crons WHERE next_look <= ?1 ORDER BY next_look LIMIT ?2".into());
        for sql in queries {
            let plan = plan(&connection, &sql);
            assert!(!plan.contains("TEMP B-TREE"), "nothing is sorted: {sql}: {plan}");
            let scans = plan.split("; ").filter(|step| step.starts_with("SCAN "));
            let mut walks = scans.filter(|step| !step.contains(" INDEX "));
            assert_eq!(walks.next(), None, "no table is walked through: {sql}: {plan}");
        }
    }

    #[test]
    fn the_test_finds_a_list_that_is_sorted() {
        let connection = Connection::open_in_memory().unwrap();
        STEPS.iter().for_each(|step| connection.execute_batch(step).unwrap());
        let sorted = plan(&connection, "SELECT body FROM jobs ORDER BY body");
        assert!(sorted.contains("TEMP B-TREE") && sorted.starts_with("SCAN jobs"), "{sorted}");
    }
}
