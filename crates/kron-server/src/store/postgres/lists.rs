//! What is read page by page.

use jiff::Timestamp;
use serde_json::value::RawValue;
use sqlx::postgres::PgRow;
use sqlx::{Postgres, QueryBuilder, Row};

use crate::clock::ceil_second;
use crate::cron::{Cron, Occurrence};
use crate::job::{Job, State};
use crate::job_view::Page;
use crate::refusal::Refusal;
use crate::store::verbs::{SCAN_MAX, SOONEST_MAX, Soonest, census_of, event_id, newest};
use crate::store::{
    After, DeadStats, EventQuery, Events, JobFilter, PageRequest, Queue, Span, Stored, Worker,
};

use super::desk::{Desk, body, can_be, left_out};
use super::trouble::Outcome;

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

/// What holds for the rows of a list.
enum Condition<'v> {
    Text(&'static str, &'v str),
    Flag(&'static str, bool),
    Plain(&'static str),
    /// A text is found in a column.
    Within(&'static str, &'v str),
}

type Sql<'v> = QueryBuilder<'v, Postgres>;

impl<'v> List<'v> {
    async fn page<T>(
        &self,
        desk: &mut Desk,
        page: &'v PageRequest,
        read: impl Fn(&PgRow) -> Outcome<T>,
    ) -> Outcome<(Vec<T>, Page)> {
        let mut sql = Sql::new(format!("SELECT count(*) FROM {}", self.table));
        self.restrict(&mut sql, None);
        let total: i64 = desk.row(sql.build()).await?.map_or(Ok(0), |row| row.try_get(0))?;
        let limit = page.limit.unwrap_or(u64::from(u32::MAX));
        let mut sql = Sql::new(format!("SELECT {}, {} AS key FROM {}", self.columns, self.key, self.table));
        self.restrict(&mut sql, page.cursor.as_deref());
        sql.push(format!(" ORDER BY {} {}", self.key, if self.descending { "DESC" } else { "ASC" }));
        sql.push(" LIMIT ")
            .push_bind(whole(limit.saturating_add(1)))
            .push(" OFFSET ")
            .push_bind(whole(page.offset));
        let mut rows = desk.rows(sql.build()).await?;
        let more = rows.len() as u64 > limit;
        if more {
            rows.pop();
        }
        let next = rows.last().filter(|_| more).map(|row| row.try_get("key")).transpose()?;
        // What cannot be read is left out, and the list goes on after it.
        let rows = rows.iter().filter_map(|row| read(row).inspect_err(left_out).ok()).collect();
        let total = total.unsigned_abs();
        Ok((rows, Page { total, limit: page.limit.unwrap_or(total), offset: page.offset, next }))
    }

    fn restrict(&self, sql: &mut Sql<'v>, cursor: Option<&'v str>) {
        let mut word = " WHERE ";
        for condition in &self.conditions {
            sql.push(word);
            word = " AND ";
            match condition {
                Condition::Text(column, value) => sql.push(format!("{column} = ")).push_bind(*value),
                Condition::Flag(column, value) => sql.push(format!("{column} = ")).push_bind(*value),
                Condition::Plain(condition) => sql.push(*condition),
                Condition::Within(column, text) => {
                    sql.push(format!("strpos({column}, ")).push_bind(*text).push(") > 0")
                }
            };
        }
        if let Some(cursor) = cursor {
            let sign = if self.descending { "<" } else { ">" };
            sql.push(format!("{word}{} {sign} ", self.key)).push_bind(cursor);
        }
    }
}

fn whole(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) async fn job(desk: &mut Desk, id: &str) -> Outcome<Option<Job>> {
    if !can_be(id) {
        return Ok(None);
    }
    Ok(desk.bodies(sqlx::query("SELECT body FROM jobs WHERE id = $1").bind(id)).await?.pop())
}

pub(super) async fn cron(desk: &mut Desk, name: &str) -> Outcome<Option<Cron>> {
    if !can_be(name) {
        return Ok(None);
    }
    Ok(desk.bodies(sqlx::query("SELECT body FROM crons WHERE name = $1").bind(name)).await?.pop())
}

pub(super) async fn jobs(
    desk: &mut Desk,
    filter: &JobFilter,
    page: &PageRequest,
) -> Outcome<(Vec<Job>, Page)> {
    let mut conditions = Vec::new();
    conditions.extend(filter.state.map(|state| Condition::Text("state", state.name())));
    conditions.extend(filter.queue.as_deref().map(|queue| Condition::Text("queue", queue)));
    conditions.extend(filter.kind.as_deref().map(|kind| Condition::Text("type", kind)));
    conditions.extend(filter.cron.as_deref().map(|cron| Condition::Text("cron", cron)));
    if filter.dead {
        conditions.push(Condition::Plain("dead_at IS NOT NULL"));
    }
    let list = List { table: "jobs", key: "id", descending: true, columns: "body", conditions };
    list.page(desk, page, body).await
}

/// The latest job of each of these cron jobs: one look at an index for each.
pub(super) async fn latest_jobs(desk: &mut Desk, crons: &[String]) -> Outcome<Vec<Job>> {
    let crons: Vec<&str> = crons.iter().map(String::as_str).filter(|cron| can_be(cron)).collect();
    let sql = "SELECT latest.body FROM unnest($1::text[]) AS wanted (name) CROSS JOIN LATERAL \
               (SELECT body FROM jobs WHERE cron = wanted.name ORDER BY id DESC LIMIT 1) AS latest";
    desk.readable(sqlx::query(sql).bind(crons)).await
}

pub(super) async fn queues(desk: &mut Desk, page: &PageRequest) -> Outcome<(Vec<Queue>, Page)> {
    let columns = "name, paused, created_at";
    let list = List { table: "queues", key: "name", descending: false, columns, conditions: Vec::new() };
    list.page(desk, page, queue).await
}

fn queue(row: &PgRow) -> Outcome<Queue> {
    let created_at = Timestamp::from_millisecond(row.try_get(2)?).unwrap_or_default();
    Ok(Queue { name: row.try_get(0)?, paused: row.try_get(1)?, created_at })
}

pub(super) async fn queue_stats(
    desk: &mut Desk,
    name: &str,
    now: Timestamp,
) -> Outcome<(Queue, Vec<(State, u64)>)> {
    let sql = "SELECT name, paused, created_at FROM queues WHERE name = $1";
    let known = desk.row(sqlx::query(sql).bind(name)).await?.map(|row| queue(&row)).transpose()?;
    let sql = "SELECT state, count(*) FROM jobs WHERE queue = $1 GROUP BY state";
    let counted = pairs(&desk.rows(sqlx::query(sql).bind(name)).await?)?;
    let count = |state: State| counted.iter().find(|(name, _)| name == state.name()).map_or(0, |(_, n)| *n);
    let states = State::ALL.map(|state| (state, count(state))).to_vec();
    let unknown = || Queue { name: name.to_owned(), paused: false, created_at: now };
    Ok((known.unwrap_or_else(unknown), states))
}

/// Every job is counted, in the order of an index that has all that is asked for.
pub(super) async fn census(desk: &mut Desk, queues_max: usize) -> Outcome<Vec<(Option<String>, State, u64)>> {
    let sql = "SELECT queue, state, count(*) FROM jobs GROUP BY queue, state ORDER BY queue";
    let mut rows = Vec::new();
    for row in desk.rows(sqlx::query(sql)).await? {
        rows.push((row.try_get(0)?, row.try_get(1)?, row.try_get::<i64, _>(2)?.unsigned_abs()));
    }
    Ok(census_of(rows, queues_max))
}

fn pairs(rows: &[PgRow]) -> Outcome<Vec<(String, u64)>> {
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get::<i64, _>(1)?.unsigned_abs()))).collect()
}

pub(super) async fn workers(desk: &mut Desk, page: &PageRequest) -> Outcome<(Vec<Worker>, Page)> {
    let list =
        List { table: "workers", key: "id", descending: false, columns: "body", conditions: Vec::new() };
    list.page(desk, page, body).await
}

pub(super) async fn crons(
    desk: &mut Desk,
    enabled: Option<bool>,
    page: &PageRequest,
) -> Outcome<(Vec<Cron>, Page)> {
    let conditions = enabled.map(|enabled| Condition::Flag("enabled", enabled)).into_iter().collect();
    let list = List { table: "crons", key: "name", descending: false, columns: "body", conditions };
    list.page(desk, page, body).await
}

/// Cron jobs after a name, and the name to go on after.
pub(super) async fn crons_after(
    desk: &mut Desk,
    name: Option<&str>,
    most: usize,
) -> Outcome<(Vec<Cron>, Option<String>)> {
    let sql = "SELECT body, name FROM crons WHERE name > $1 ORDER BY name LIMIT $2";
    let rows = desk.rows(sqlx::query(sql).bind(name.unwrap_or_default()).bind(whole(most as u64))).await?;
    let next = rows.last().filter(|_| rows.len() == most).map(|row| row.try_get(1)).transpose()?;
    Ok((rows.iter().filter_map(|row| body(row).inspect_err(left_out).ok()).collect(), next))
}

/// Cron jobs whose name has a text in it. No index helps: names are read, and nothing else, to count them.
pub(super) async fn find_crons(
    desk: &mut Desk,
    text: &str,
    page: &PageRequest,
) -> Outcome<(Vec<Cron>, Page)> {
    if !can_be(text) {
        return Ok((
            Vec::new(),
            Page { total: 0, limit: page.limit.unwrap_or(0), offset: page.offset, next: None },
        ));
    }
    let conditions = if text.is_empty() { Vec::new() } else { vec![Condition::Within("name", text)] };
    let list = List { table: "crons", key: "name", descending: false, columns: "body", conditions };
    list.page(desk, page, body).await
}

pub(super) const SOONEST: &str = "SELECT body, next_look, name FROM crons WHERE next_look IS NOT NULL AND enabled \
                                  AND (next_look, name) > ($1, $2) ORDER BY next_look, name LIMIT $3";

/// The cron jobs that fire next, read a few at a time: mostly the first few are those.
pub(super) async fn soonest_crons(desk: &mut Desk, most: usize) -> Outcome<Vec<Cron>> {
    let mut soonest = Soonest::new(most);
    let (mut looked, mut after) = (0, (i64::MIN, String::new()));
    let step = most.saturating_add(1).min(SOONEST_MAX);
    while looked < SOONEST_MAX {
        let query = sqlx::query(SOONEST).bind(after.0).bind(after.1.clone()).bind(whole(step as u64));
        let rows = desk.rows(query).await?;
        for row in &rows {
            let look = row.try_get(1)?;
            if soonest.is_found(look) {
                return Ok(soonest.found());
            }
            after = (look, row.try_get(2)?);
            if let Ok(cron) = body(row).inspect_err(left_out) {
                soonest.take(cron);
            }
        }
        looked += rows.len();
        if rows.len() < step {
            break;
        }
    }
    Ok(soonest.found())
}

pub(super) const LATEST: &str = "SELECT body FROM occurrences WHERE cron = $1 AND scheduled BETWEEN $2 AND $3 \
                                 ORDER BY scheduled DESC, kind DESC LIMIT $4";

pub(super) const BEGUN: &str = "SELECT body FROM occurrences WHERE cron = $1 AND kind = 'range' AND last >= $2 \
                                AND scheduled < $2 ORDER BY last LIMIT $3";

/// The newest part of the record, the newest first.
pub(super) async fn latest_occurrences(desk: &mut Desk, cron: &str, span: &Span) -> Outcome<Vec<Occurrence>> {
    let (from, to) = (ceil_second(span.from).as_second(), span.to.as_second());
    let limit = whole(span.limit as u64);
    let query = sqlx::query(LATEST).bind(cron).bind(from).bind(to).bind(limit);
    let within = desk.bodies(query).await?;
    let begun = desk.bodies(sqlx::query(BEGUN).bind(cron).bind(from).bind(limit)).await?;
    Ok(newest(within, begun, span.limit))
}

/// Part of the record. Several in a row may have begun before it, and are found by their end: history that
/// nobody asks for is not walked through.
pub(super) async fn occurrences(desk: &mut Desk, cron: &str, span: &Span) -> Outcome<Vec<Occurrence>> {
    let (from, to) = (ceil_second(span.from).as_second(), span.to.as_second());
    let limit = whole(span.limit as u64);
    let Some(after) = span.after else {
        let mut found: Vec<Occurrence> =
            desk.bodies(sqlx::query(BEGUN).bind(cron).bind(from).bind(limit)).await?;
        found.sort_by_key(Occurrence::place);
        let sql = "SELECT body FROM occurrences WHERE cron = $1 AND scheduled BETWEEN $2 AND $3 \
                   ORDER BY scheduled, kind LIMIT $4";
        let query = sqlx::query(sql).bind(cron).bind(from).bind(to).bind(limit);
        found.extend(desk.bodies::<Occurrence>(query).await?);
        found.truncate(span.limit);
        return Ok(found);
    };
    let sql = "SELECT body FROM occurrences WHERE cron = $1 AND (scheduled, kind) > ($2, $3) AND last >= $4 \
               AND scheduled <= $5 ORDER BY scheduled, kind LIMIT $6";
    let query = sqlx::query(sql).bind(cron).bind(after.scheduled.as_second()).bind(after.kind.name());
    desk.bodies(query.bind(from).bind(to).bind(limit)).await
}

pub(super) async fn occurrence_at(desk: &mut Desk, cron: &str, at: Timestamp) -> Outcome<Option<Occurrence>> {
    let at = at.as_second();
    let sql =
        "SELECT body FROM occurrences WHERE cron = $1 AND scheduled = $2 ORDER BY kind = 'one' DESC LIMIT 1";
    if let Some(exact) = desk.bodies(sqlx::query(sql).bind(cron).bind(at)).await?.pop() {
        return Ok(Some(exact));
    }
    let sql = "SELECT body FROM occurrences WHERE cron = $1 AND kind = 'range' AND last >= $2 AND scheduled <= $2 \
               ORDER BY last LIMIT 1";
    Ok(desk.bodies(sqlx::query(sql).bind(cron).bind(at)).await?.pop())
}

pub(super) async fn dead_stats(desk: &mut Desk) -> Outcome<DeadStats> {
    let sql = "SELECT queue, count(*) FROM jobs WHERE dead_at IS NOT NULL GROUP BY queue ORDER BY queue";
    let by_queue = pairs(&desk.rows(sqlx::query(sql)).await?)?;
    let sql = "SELECT coalesce(error_type, 'unknown') AS kind, count(*) FROM jobs WHERE dead_at IS NOT NULL \
               GROUP BY kind ORDER BY kind";
    let by_error_type = pairs(&desk.rows(sqlx::query(sql)).await?)?;
    let sql = "SELECT min(dead_at), max(dead_at) FROM jobs WHERE dead_at IS NOT NULL";
    let ends = desk.row(sqlx::query(sql)).await?;
    let at = |column: usize| -> Outcome<Option<Timestamp>> {
        let Some(row) = &ends else { return Ok(None) };
        Ok(row.try_get::<Option<i64>, _>(column)?.and_then(|ms| Timestamp::from_millisecond(ms).ok()))
    };
    let total = by_queue.iter().map(|(_, n)| n).sum();
    Ok(DeadStats { total, by_queue, by_error_type, oldest: at(0)?, newest: at(1)? })
}

/// The number below which no event can appear any more.
pub(super) const SETTLED: &str = "((pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20) \
                                  + (SELECT base FROM event_base WHERE id = 1))";

/// How far events go.
pub(super) struct Ends {
    /// The last one below which none can appear any more.
    pub(super) settled: i64,
    /// The last one.
    pub(super) last: i64,
}

pub(super) async fn ends(desk: &mut Desk) -> Outcome<Ends> {
    let sql = format!(
        "SELECT coalesce((SELECT max(seq) FROM events WHERE seq < {SETTLED}), 0), \
         coalesce((SELECT max(seq) FROM events), 0)"
    );
    let row = desk.row(sqlx::query(&sql)).await?.ok_or(sqlx::Error::RowNotFound)?;
    Ok(Ends { settled: row.try_get(0)?, last: row.try_get(1)? })
}

pub(super) async fn events(desk: &mut Desk, query: &EventQuery) -> Outcome<(Events, Ends)> {
    let ends = ends(desk).await?;
    let last = ends.settled;
    let after = match &query.after {
        None => 0,
        Some(After::Number(number)) => whole(*number),
        Some(After::Id(id)) => place_of(desk, event_id(id)?, last).await?,
    };
    let sql = "SELECT body, seq, id, type, subject, queue, job_type FROM events WHERE seq > $1 AND seq <= $2 \
               ORDER BY seq LIMIT $3";
    let mut found = Vec::new();
    let (mut looked, mut seen) = (after, 0);
    // However few are wanted, no more are held in memory at once than are asked for.
    while seen < SCAN_MAX && found.len() < query.limit && looked < last {
        let asked = whole(query.limit.max(1) as u64).min(SCAN_MAX - seen);
        let rows = desk.rows(sqlx::query(sql).bind(looked).bind(last).bind(asked)).await?;
        let all = whole(rows.len() as u64) < asked;
        for row in &rows {
            if found.len() == query.limit {
                break;
            }
            let event = event(row)?;
            (looked, seen) = (whole(event.number), seen + 1);
            if query.wants(&event) {
                found.push(event);
            }
        }
        if all && found.len() < query.limit {
            looked = last;
        }
    }
    let cursor = found.last().map(|event| event.id.clone());
    let cursor = match (cursor, &query.after) {
        (None, Some(After::Id(id))) if looked == after => Some(id.clone()),
        (_, _) if looked > 0 => {
            let sql = "SELECT id FROM events WHERE seq <= $1 ORDER BY seq DESC LIMIT 1";
            let row = desk.row(sqlx::query(sql).bind(looked)).await?;
            row.map(|row| row.try_get(0)).transpose()?
        }
        (cursor, _) => cursor,
    };
    Ok((Events { events: found, through: looked.unsigned_abs(), cursor, has_more: looked < last }, ends))
}

fn event(row: &PgRow) -> Outcome<Stored> {
    Ok(Stored {
        number: row.try_get::<i64, _>(1)?.unsigned_abs(),
        id: row.try_get(2)?,
        kind: row.try_get(3)?,
        subject: row.try_get(4)?,
        queue: row.try_get(5)?,
        job_type: row.try_get(6)?,
        body: RawValue::from_string(row.try_get(0)?).map_err(|error| Refusal::backend(&error))?,
    })
}

/// The number of the event of an id. One that is no longer kept lies before all that were told later.
async fn place_of(desk: &mut Desk, id: &str, last: i64) -> Outcome<i64> {
    let sql = "SELECT seq FROM events WHERE id = $1";
    if let Some(row) = desk.row(sqlx::query(sql).bind(id)).await? {
        return Ok(row.try_get(0)?);
    }
    let row = desk.row(sqlx::query("SELECT min(seq) FROM events WHERE id > $1").bind(id)).await?;
    let later: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
    Ok(later.map_or(last, |later| later - 1))
}
