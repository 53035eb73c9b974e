//! Past and future of some jobs on one axis.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kron_schedule::Zone;
use serde::Serialize;

use crate::board::{Answer, Board, Entry, Find, Job, Mark, Place, Refused};
use crate::plan::{coming, mark_of, reach};

/// The shortest and the longest axis.
const SPAN_MIN: SignedDuration = SignedDuration::from_mins(10);
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(24 * 32);

/// How many periods of a row are drawn one by one. More of them are counted into cells.
const TICKS_MAX: usize = 90;

/// How many cells a row has then.
const CELLS: i64 = 120;

/// How many periods of a row are looked at, those nearest to now.
const LOOKED_AT_MAX: usize = 3_000;

/// A timeline.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timeline {
    now: Timestamp,
    from: Timestamp,
    to: Timestamp,
    rows: Vec<Row>,
    /// How many jobs there are, how many were left out before these, and how many were asked for.
    total: u64,
    offset: usize,
    limit: usize,
    /// When clocks change on the way.
    changes: Vec<ClockChange>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: String,
    name: String,
    words: String,
    zone: String,
    paused: bool,
    ticks: Vec<Tick>,
    cells: Vec<Cell>,
    /// Whether periods of the axis were not looked at, because there are too many.
    has_more: bool,
}

/// A period.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tick {
    nominal: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    chosen: Option<Timestamp>,
    /// Its window, if it has a length.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<(Timestamp, Timestamp)>,
    /// Of several in a row, the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Timestamp>,
    count: u64,
    mark: Mark,
    why: String,
}

/// Many periods, counted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cell {
    from: Timestamp,
    to: Timestamp,
    marks: BTreeMap<Mark, u64>,
}

/// A change of clocks.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClockChange {
    at: Timestamp,
    zone: String,
    before: String,
    after: String,
}

/// Draws the timeline of a page of jobs.
pub(crate) fn timeline(board: &dyn Board, from: Timestamp, to: Timestamp, find: &Find) -> Answer<Timeline> {
    let length = to.duration_since(from);
    if length < SPAN_MIN || length > SPAN_MAX {
        let message = "expected an axis from ten minutes to 32 days";
        return Err(Refused::new(400, "wrong", message));
    }
    let now = board.now();
    let page = board.jobs(find)?;
    let mut zones: BTreeMap<String, Zone> = BTreeMap::new();
    let mut rows = Vec::new();
    for job in page.rows {
        if let Some(plan) = &job.plan {
            zones.insert(job.zone.clone(), plan.zone().clone());
        }
        rows.push(row(board, job, from, to, now)?);
    }
    let changes = zones.iter().flat_map(|(name, zone)| clock_changes(name, zone, from, to)).collect();
    Ok(Timeline { now, from, to, rows, total: page.total, offset: page.offset, limit: page.limit, changes })
}

fn row(board: &dyn Board, job: Job, from: Timestamp, to: Timestamp, now: Timestamp) -> Answer<Row> {
    let mut has_more = false;
    let mut ticks: Vec<Tick> = Vec::new();
    let window = |nominal: Timestamp| {
        let (start, end) = job.plan.as_ref()?.window().bounds(nominal);
        (start < end).then_some((start, end))
    };
    if from <= now {
        let entries = board.record(&job.id, &Place { from, to, most: LOOKED_AT_MAX + 1 })?;
        has_more |= entries.len() > LOOKED_AT_MAX;
        ticks
            .extend(entries.into_iter().take(LOOKED_AT_MAX).rev().map(|entry| Tick::of_entry(entry, window)));
    }
    if let Some(plan) = &job.plan {
        let (before, after) = reach(plan);
        // What is over and has no entry is none of its periods, or no longer recorded.
        let first = from.max(now).checked_sub(after).unwrap_or(Timestamp::MIN);
        let last = to.checked_add(before).unwrap_or(Timestamp::MAX);
        let mut looked_at = 0;
        for decision in coming(&job, plan, first).take_while(|decision| decision.nominal() <= last) {
            looked_at += 1;
            if looked_at > LOOKED_AT_MAX {
                has_more = true;
                break;
            }
            let is_known = ticks.iter().rev().any(|tick| tick.nominal == decision.nominal());
            let is_over = decision.chosen().unwrap_or(decision.nominal()) < now;
            if is_known || is_over || decision.window_end() < from || decision.window_start() > to {
                continue;
            }
            let mark = mark_of(&job, &decision);
            ticks.push(Tick {
                nominal: decision.nominal(),
                chosen: decision.chosen(),
                window: window(decision.nominal()),
                last: None,
                count: 1,
                mark,
                why: words(mark).to_owned(),
            });
        }
    }
    let (ticks, cells) =
        if ticks.len() > TICKS_MAX { (Vec::new(), cells(&ticks, from, to)) } else { (ticks, Vec::new()) };
    let Job { id, name, words, zone, paused, .. } = job;
    Ok(Row { id, name, words, zone, paused, ticks, cells, has_more })
}

impl Tick {
    fn of_entry(entry: Entry, window: impl Fn(Timestamp) -> Option<(Timestamp, Timestamp)>) -> Tick {
        Tick {
            nominal: entry.nominal,
            chosen: entry.chosen,
            window: if entry.count == 1 { window(entry.nominal) } else { None },
            last: entry.last,
            count: entry.count,
            mark: entry.mark,
            why: entry.why,
        }
    }
}

/// What is said of a period to come.
pub(crate) fn words(mark: Mark) -> &'static str {
    match mark {
        Mark::Paused => "the job is paused",
        Mark::Unschedulable => "no time tried in its window satisfies the constraints",
        _ => "it has not come yet",
    }
}

fn cells(ticks: &[Tick], from: Timestamp, to: Timestamp) -> Vec<Cell> {
    let (start, length) = (from.as_second(), (to.as_second() - from.as_second()).max(CELLS));
    let mut counted: BTreeMap<i64, BTreeMap<Mark, u64>> = BTreeMap::new();
    for tick in ticks {
        let at = tick.chosen.unwrap_or(tick.nominal).as_second();
        let cell = ((at - start) * CELLS / length).clamp(0, CELLS - 1);
        *counted.entry(cell).or_default().entry(tick.mark).or_default() += tick.count;
    }
    let edge = |cell: i64| Timestamp::from_second(start + cell * length / CELLS).unwrap_or(to);
    counted.into_iter().map(|(cell, marks)| Cell { from: edge(cell), to: edge(cell + 1), marks }).collect()
}

/// How far apart offsets are compared. Clocks never change and change back within it.
const STEP: i64 = 12 * 3_600;

fn clock_changes(name: &str, zone: &Zone, from: Timestamp, to: Timestamp) -> Vec<ClockChange> {
    let offset = |second: i64| Timestamp::from_second(second).map_or(0, |at| zone.offset_at(at).seconds());
    let mut found = Vec::new();
    let (mut second, end) = (from.as_second(), to.as_second());
    while second < end {
        let next = (second + STEP).min(end);
        if offset(second) != offset(next) {
            let (mut low, mut high) = (second, next);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if offset(middle) == offset(second) { low = middle } else { high = middle }
            }
            let shown = |seconds: i32| {
                let sign = if seconds < 0 { '-' } else { '+' };
                format!("{sign}{:02}:{:02}", seconds.abs() / 3_600, seconds.abs() / 60 % 60)
            };
            found.push(ClockChange {
                at: Timestamp::from_second(high).unwrap_or(to),
                zone: name.to_owned(),
                before: shown(offset(second)),
                after: shown(offset(next)),
            });
        }
        second = next;
    }
    found
}

impl Timeline {
    /// Its periods as rows of a table.
    pub(crate) fn rows(&self) -> Vec<serde_json::Value> {
        let ticks = self.rows.iter().flat_map(|row| row.ticks.iter().map(move |tick| (row, tick)));
        ticks
            .map(|(row, tick)| {
                serde_json::json!({
                    "job": row.id, "nominal": tick.nominal, "chosen": tick.chosen, "mark": tick.mark,
                    "why": tick.why, "count": tick.count, "last": tick.last,
                    "windowStart": tick.window.map(|window| window.0), "windowEnd": tick.window.map(|window| window.1),
                })
            })
            .collect()
    }
}
