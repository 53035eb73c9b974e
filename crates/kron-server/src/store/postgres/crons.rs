//! Verbs about cron jobs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kron_zones::Zones;
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::clock::floor_second;
use crate::cron::{Active, Compiled, Cron, Registration, Turn};
use crate::job::Job;
use crate::members::{Members, read_as};
use crate::note::{Fired, Note};
use crate::refusal::Refusal;
use crate::store::Rules;
use crate::store::verbs::{LOOK_AGAIN, WAITING_UNREMARKABLE, lay_over, within_bytes};

use super::desk::{Desk, body};
use super::trouble::{Outcome, Trouble};

pub(super) async fn register(
    desk: &mut Desk,
    rules: &Rules,
    zones: &Zones,
    registration: Registration,
    now: Timestamp,
) -> Outcome<(Cron, Compiled, bool)> {
    let Registration { definition, enabled, .. } = registration;
    // Two that register the same name for the first time come one after the other.
    hold_name(desk, &definition.name).await?;
    let Some(mut cron) = desk.cron(&definition.name).await? else {
        let compiled = definition.compile(now, zones)?;
        let cron = Cron::new(definition, &compiled, enabled.unwrap_or(true), now);
        desk.save_crons(&[&cron]).await?;
        return Ok((cron, compiled, true));
    };
    let enabled = enabled.unwrap_or(cron.enabled);
    if !cron.keeps_its_plans(&definition, enabled) {
        settle_before_a_change(desk, rules, zones, &mut cron, now).await?;
    }
    let (compiled, turn) = cron.redefine(definition, enabled, zones, now)?;
    let (cron, compiled) = carry_out_one(desk, zones, (cron, compiled, turn), now).await?;
    Ok((cron, compiled, false))
}

pub(super) async fn patch(
    desk: &mut Desk,
    rules: &Rules,
    zones: &Zones,
    name: &str,
    mut change: Members,
    now: Timestamp,
) -> Outcome<(Cron, Compiled)> {
    let Some(mut cron) = desk.cron(name).await? else {
        return Err(Refusal::not_found("cron job", name).into());
    };
    if let Some(other) = change.take("name") {
        let other: String = read_as(&other, "name", "the name of the cron job")?;
        if other != name {
            return Err(crate::cron::renamed(name, &other).into());
        }
    }
    let mut members = cron.definition.members();
    members.0.extend(lay_over(change)?.0);
    let Registration { definition, enabled, .. } = Registration::read(members, zones, now)?;
    let enabled = enabled.unwrap_or(cron.enabled);
    if !cron.keeps_its_plans(&definition, enabled) {
        settle_before_a_change(desk, rules, zones, &mut cron, now).await?;
    }
    let (compiled, turn) = cron.redefine(definition, enabled, zones, now)?;
    carry_out_one(desk, zones, (cron, compiled, turn), now).await
}

pub(super) async fn unregister(desk: &mut Desk, name: &str) -> Outcome<Option<Cron>> {
    let cron = desk.cron(name).await?;
    if cron.is_some() {
        desk.execute(sqlx::query("DELETE FROM crons WHERE name = $1").bind(name)).await?;
    }
    Ok(cron)
}

/// Makes the plans of cron jobs anew by what their zones are now, for as long as the epoch is this node's. Says which have
/// changed, from what into what.
pub(super) async fn replan(
    desk: &mut Desk,
    zones: &Zones,
    lease: (i64, &str),
    names: &[String],
    now: Timestamp,
) -> Outcome<Option<Vec<(Cron, Cron)>>> {
    let (epoch, node) = lease;
    if !desk.is_current(epoch, node).await? {
        return Ok(None);
    }
    let sql = "SELECT body FROM crons WHERE name = ANY($1) ORDER BY name FOR UPDATE";
    let crons: Vec<Cron> = desk.readable(sqlx::query(sql).bind(names)).await?;
    let moved = crons.into_iter().filter_map(|cron| {
        let anew = cron.replanned(zones, now)?;
        Some((cron, anew))
    });
    let moved: Vec<(Cron, Cron)> = moved.collect();
    desk.save_crons(&moved.iter().map(|(_, anew)| anew).collect::<Vec<_>>()).await?;
    Ok(Some(moved))
}

/// What is due, and nothing else, in the order of an index.
pub(super) const DUE: &str =
    "SELECT body, name FROM crons WHERE next_look <= $1 ORDER BY next_look, name LIMIT $2 FOR UPDATE";

/// How much that is.
const LENGTHS: &str =
    "SELECT octet_length(body) FROM crons WHERE next_look <= $1 ORDER BY next_look, name LIMIT $2";

/// Settles what cron jobs have due at a second, some at a time, for as long as the epoch is this node's.
pub(super) async fn turn_due(
    desk: &mut Desk,
    rules: &Rules,
    zones: &Zones,
    lease: (i64, &str),
    most: usize,
    (stamp, actual): (Timestamp, Timestamp),
) -> Outcome<Option<bool>> {
    let (epoch, node) = lease;
    if !desk.is_current(epoch, node).await? {
        return Ok(None);
    }
    let lengths = desk.rows(sqlx::query(LENGTHS).bind(stamp.as_second()).bind(most as i64)).await?;
    let lengths: Vec<i32> = lengths.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let (count, _) = within_bytes(lengths.iter().map(|length| length.unsigned_abs() as usize));
    let more = count < lengths.len() || lengths.len() == most;
    let rows = desk.rows(sqlx::query(DUE).bind(stamp.as_second()).bind(count as i64)).await?;
    let mut due = Vec::with_capacity(rows.len());
    for row in &rows {
        match body(row) {
            Ok(cron) => due.push(cron),
            Err(trouble) => look_again(desk, row, &trouble, stamp).await?,
        }
    }
    settle(desk, rules, zones, due, stamp, actual).await?;
    Ok(Some(more))
}

/// A row that this version cannot read is one cron job's trouble, not another's.
async fn look_again(desk: &mut Desk, row: &PgRow, trouble: &Trouble, stamp: Timestamp) -> Outcome<()> {
    let name: String = row.try_get("name")?;
    tracing::error!(cron = name, error = ?trouble, "could not read a cron job");
    let look = stamp.checked_add(LOOK_AGAIN).ok().map(Timestamp::as_second);
    desk.execute(sqlx::query("UPDATE crons SET next_look = $2 WHERE name = $1").bind(name).bind(look))
        .await?;
    Ok(())
}

/// Settles what some cron jobs have due, and writes them back.
async fn settle(
    desk: &mut Desk,
    rules: &Rules,
    zones: &Zones,
    crons: Vec<Cron>,
    stamp: Timestamp,
    actual: Timestamp,
) -> Outcome<Vec<Cron>> {
    let minding = crons.iter().filter(|cron| cron.minds_active());
    let names: Vec<&str> = minding.map(|cron| cron.definition.name.as_str()).collect();
    let mut active: BTreeMap<String, Vec<Active>> = BTreeMap::new();
    for (cron, run) in desk.active(&names, rules.counting).await? {
        active.entry(cron).or_default().push(run);
    }
    let (mut turns, mut untold) = (Vec::with_capacity(crons.len()), Vec::new());
    for mut cron in crons {
        match cron.definition.compile(cron.anchor, zones) {
            Ok(compiled) => {
                let runs = active.get(&cron.definition.name).map_or(&[][..], Vec::as_slice);
                let turn = cron.turn(&compiled, runs, stamp, actual);
                turns.push((cron, compiled, turn));
            }
            // One cron job's trouble is not another's.
            Err(refusal) => {
                let name = &cron.definition.name;
                tracing::error!(cron = name, error = refusal.message, "could not settle a cron job");
                cron.next_look = stamp.checked_add(LOOK_AGAIN).ok();
                untold.push(cron);
            }
        }
    }
    desk.save_crons(&untold.iter().collect::<Vec<_>>()).await?;
    let carried_out = carry_out(desk, zones, turns, actual).await?;
    Ok(carried_out.into_iter().map(|(cron, _)| cron).collect())
}

/// Settles what a cron job has due before it is changed. One that cannot be compiled any more, because its zone is
/// gone, can be changed all the same: that is how it is repaired.
async fn settle_before_a_change(
    desk: &mut Desk,
    rules: &Rules,
    zones: &Zones,
    cron: &mut Cron,
    now: Timestamp,
) -> Outcome<()> {
    if let Err(refusal) = cron.definition.compile(cron.anchor, zones) {
        let name = &cron.definition.name;
        tracing::warn!(cron = name, error = refusal.message, "what it had due cannot be told");
        return Ok(());
    }
    if cron.next_look.is_none_or(|look| look > floor_second(now)) {
        return Ok(());
    }
    let settled = settle(desk, rules, zones, vec![cron.clone()], floor_second(now), now).await?;
    if let Some(settled) = settled.into_iter().next() {
        *cron = settled;
    }
    Ok(())
}

/// A cron job, and what was decided about it.
type Decided = (Cron, Compiled, Turn);

async fn carry_out_one(
    desk: &mut Desk,
    zones: &Zones,
    decided: Decided,
    actual: Timestamp,
) -> Outcome<(Cron, Compiled)> {
    let mut written = carry_out(desk, zones, vec![decided], actual).await?;
    Ok(written.swap_remove(0))
}

/// Carries out what was decided about some cron jobs, and writes them back.
async fn carry_out(
    desk: &mut Desk,
    zones: &Zones,
    turns: Vec<Decided>,
    actual: Timestamp,
) -> Outcome<Vec<(Cron, Compiled)>> {
    let holds =
        |(cron, _, turn): &&Decided| !turn.cancels.is_empty() || (cron.is_serial() && !turn.fires.is_empty());
    let held: BTreeSet<String> =
        turns.iter().filter(holds).map(|(cron, ..)| cron.definition.name.clone()).collect();
    desk.hold_crons(&held).await?;
    cancel(desk, &turns, actual).await?;

    let mut record = Vec::new();
    for (cron, _, turn) in &turns {
        let of = cron.definition.name.as_str();
        record.extend(turn.occurrences.iter().map(|occurrence| (of, occurrence)));
        record.extend(turn.fires.iter().map(|fire| (of, &fire.occurrence)));
    }
    let fresh = desk.record(&record).await?;

    let (mut crons, mut jobs) = (Vec::with_capacity(turns.len()), Vec::new());
    let mut queued = Vec::new();
    for (mut cron, compiled, turn) in turns {
        let name = cron.definition.name.clone();
        for occurrence in &turn.occurrences {
            let (scheduled, reason, count) = (occurrence.scheduled, occurrence.reason, occurrence.count);
            desk.notes.push(Note::Settled { cron: name.clone(), scheduled, reason, count });
        }
        desk.tell(turn.events);
        if cron.is_serial() && !turn.fires.is_empty() {
            queued.push(name.clone());
        }
        let mut last_run_at = turn.fires.first().map_or(cron.last_run_at, |fire| fire.ran_before);
        for mut fire in turn.fires {
            let scheduled = fire.occurrence.scheduled;
            if !fresh.contains(&(name.clone(), scheduled.as_second())) {
                // Whoever recorded it made its job.
                cron.run_count = cron.run_count.saturating_sub(1);
                tracing::warn!(cron = name, %scheduled, "this occurrence has fired before");
                continue;
            }
            last_run_at = Some(actual);
            desk.notes.push(Note::Fired(Box::new(Fired::new(&cron, &compiled, &fire.occurrence, zones))));
            desk.tell(fire.job.received().into_iter().chain([fire.event]));
            jobs.push(fire.job);
        }
        cron.last_run_at = last_run_at;
        crons.push((cron, compiled));
    }
    if !jobs.is_empty() {
        desk.insert(&jobs).await?;
    }
    for name in queued {
        let waiting = desk.waiting(&name).await?;
        if waiting > WAITING_UNREMARKABLE {
            let message = "more than 2 queued occurrences of this cron job wait for a worker";
            tracing::warn!(cron = name, waiting, message);
        }
    }
    desk.save_crons(&crons.iter().map(|(cron, _)| cron).collect::<Vec<_>>()).await?;
    Ok(crons)
}

/// Cancels jobs. One that has ended in the meantime need not be.
async fn cancel(desk: &mut Desk, turns: &[Decided], actual: Timestamp) -> Outcome<()> {
    let ids: Vec<String> = turns.iter().flat_map(|(_, _, turn)| turn.cancels.iter().cloned()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let mut cancelled = Vec::new();
    for mut kept in desk.kept(&ids).await? {
        if let Ok(events) = kept.job.cancel(Some("cancel_previous"), actual) {
            desk.tell(events);
            cancelled.push(kept);
        }
    }
    desk.save_all(&cancelled).await
}

/// Makes a job of a cron job by hand.
pub(super) async fn run(desk: &mut Desk, zones: &Zones, name: &str, now: Timestamp) -> Outcome<Option<Job>> {
    let Some(cron) = desk.cron(name).await? else { return Ok(None) };
    cron.definition.compile(cron.anchor, zones)?;
    let mut job = cron.definition.marked_job(None, now);
    desk.insert(std::slice::from_ref(&job)).await?;
    desk.tell(job.received());
    Ok(Some(job))
}

async fn hold_name(desk: &mut Desk, name: &str) -> Outcome<()> {
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, 6172))";
    desk.rows(sqlx::query(sql).bind(name)).await.map(drop)
}
