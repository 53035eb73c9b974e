//! Verbs about cron jobs.

use std::thread;

use jiff::Timestamp;
use kron_zones::Zones;
use serde::Deserialize;

use crate::clock::floor_second;
use crate::cron::{Active, Compiled, Cron, Overlap, Registration, Turn};
use crate::job::Job;
use crate::members::{Members, read_as};
use crate::note::{Fired, Note};
use crate::refusal::Refusal;
use crate::store::verbs::{LOOK_AGAIN, TURNS_MAX, WAITING_UNREMARKABLE, lay_over, within_bytes};
use crate::store::{Answer, Rules};

use super::desk::Desk;

pub(super) fn register(
    desk: &mut Desk<'_>,
    rules: &Rules,
    zones: &Zones,
    registration: Registration,
    now: Timestamp,
) -> Answer<(Cron, Compiled, bool)> {
    let Registration { definition, enabled, .. } = registration;
    let Some(mut cron) = desk.cron(&definition.name)? else {
        let compiled = definition.compile(now, zones)?;
        let cron = Cron::new(definition, &compiled, enabled.unwrap_or(true), now);
        desk.save_cron(&cron)?;
        return Ok((cron, compiled, true));
    };
    let enabled = enabled.unwrap_or(cron.enabled);
    if !cron.keeps_its_plans(&definition, enabled) {
        settle_before_a_change(desk, rules, zones, &mut cron, now)?;
    }
    let (compiled, turn) = cron.redefine(definition, enabled, zones, now)?;
    carry_out(desk, zones, &mut cron, &compiled, turn, now)?;
    Ok((cron, compiled, false))
}

pub(super) fn patch(
    desk: &mut Desk<'_>,
    rules: &Rules,
    zones: &Zones,
    name: &str,
    mut change: Members,
    now: Timestamp,
) -> Answer<(Cron, Compiled)> {
    let Some(mut cron) = desk.cron(name)? else { return Err(Refusal::not_found("cron job", name)) };
    if let Some(other) = change.take("name") {
        let other: String = read_as(&other, "name", "the name of the cron job")?;
        if other != name {
            return Err(crate::cron::renamed(name, &other));
        }
    }
    let mut members = cron.definition.members();
    members.0.extend(lay_over(change)?.0);
    let Registration { definition, enabled, .. } = Registration::read(members, zones, now)?;
    let enabled = enabled.unwrap_or(cron.enabled);
    if !cron.keeps_its_plans(&definition, enabled) {
        settle_before_a_change(desk, rules, zones, &mut cron, now)?;
    }
    let (compiled, turn) = cron.redefine(definition, enabled, zones, now)?;
    carry_out(desk, zones, &mut cron, &compiled, turn, now)?;
    Ok((cron, compiled))
}

/// Makes the plans of cron jobs anew by what their zones are now. Says which have changed, from what into what.
pub(super) fn replan(
    desk: &mut Desk<'_>,
    zones: &Zones,
    names: &[String],
    now: Timestamp,
) -> Answer<Vec<(Cron, Cron)>> {
    let mut moved = Vec::new();
    for name in names {
        let Some(cron) = desk.cron(name)? else { continue };
        if let Some(anew) = cron.replanned(zones, now) {
            desk.save_cron(&anew)?;
            moved.push((cron, anew));
        }
    }
    Ok(moved)
}

/// Settles what cron jobs have due at a second, some at a time: first everything about them is read, then it is decided
/// what to do, on as many processors as there are, and then it is written.
pub(super) fn turn_due(
    desk: &mut Desk<'_>,
    rules: &Rules,
    zones: &Zones,
    stamp: Timestamp,
    actual: Timestamp,
) -> Answer<bool> {
    let sql = "SELECT octet_length(body) FROM crons WHERE next_look <= ?1 ORDER BY next_look LIMIT ?2";
    let lengths = desk.many(sql, &[&stamp.as_second(), &(TURNS_MAX as u64)], |row| row.get::<_, usize>(0))?;
    let (looked_at, (count, _)) = (lengths.len(), within_bytes(lengths));
    let more = count < looked_at || looked_at == TURNS_MAX;
    let sql = "SELECT name, body FROM crons WHERE next_look <= ?1 ORDER BY next_look LIMIT ?2";
    let due = desk.many(sql, &[&stamp.as_second(), &(count as u64)], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut questions = Vec::with_capacity(due.len());
    for (name, body) in due {
        let active = if minds_active(&body) { desk.active(&name, rules.counting)? } else { Vec::new() };
        questions.push(Question { name, body, active });
    }
    for (question, decided) in questions.iter().zip(decide_all(&questions, zones, stamp, actual)) {
        match decided {
            // Whatever fails from here on is the store's trouble, and undoes all of it: a savepoint for each would
            // cost as much as the rest.
            Ok(Some((mut cron, compiled, turn))) => {
                carry_out(desk, zones, &mut cron, &compiled, turn, actual)?;
            }
            Ok(None) => {}
            // One cron job's trouble is not another's.
            Err(refusal) => {
                let name = &question.name;
                tracing::error!(cron = name, error = refusal.message, "could not settle a cron job");
                let look = stamp.checked_add(LOOK_AGAIN).ok().map(Timestamp::as_second);
                desk.execute("UPDATE crons SET next_look = ?2 WHERE name = ?1", &[name, &look])?;
            }
        }
    }
    Ok(more)
}

/// Whether it matters which jobs of a cron job are active. Only that is read of it here; the rest is read on all processors.
fn minds_active(body: &str) -> bool {
    #[derive(Deserialize)]
    struct Glance {
        definition: Policy,
    }
    #[derive(Deserialize)]
    struct Policy {
        overlap: Overlap,
    }
    // What cannot be read is told of by whoever reads all of it.
    serde_json::from_str(body).is_ok_and(|Glance { definition }| definition.overlap.minds_active())
}

/// All that a decision about a cron job depends on.
struct Question {
    name: String,
    body: String,
    active: Vec<Active>,
}

/// A cron job, and what was decided about it.
type Decided = (Cron, Compiled, Turn);

/// The fewest decisions that are worth a thread.
const SHARE_MIN: usize = 64;

/// Decides what to do about cron jobs, each by itself.
fn decide_all(
    questions: &[Question],
    zones: &Zones,
    stamp: Timestamp,
    actual: Timestamp,
) -> Vec<Answer<Option<Decided>>> {
    let decide = |question: &Question| {
        let mut cron: Cron =
            serde_json::from_str(&question.body).map_err(|error| Refusal::backend(&error))?;
        let decided = look_at(&mut cron, &question.active, zones, stamp, actual)?;
        Ok(decided.map(|(compiled, turn)| (cron, compiled, turn)))
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = questions.len().div_ceil(threads).max(SHARE_MIN);
    let (own, others) = questions.split_at(share.min(questions.len()));
    thread::scope(|scope| {
        let others: Vec<_> = others
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().map(decide).collect::<Vec<_>>()))
            .collect();
        let mut decided: Vec<_> = own.iter().map(decide).collect();
        for other in others {
            decided.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        decided
    })
}

/// Settles what one cron job has due, as a whole.
fn settle(
    desk: &mut Desk<'_>,
    rules: &Rules,
    zones: &Zones,
    cron: &mut Cron,
    stamp: Timestamp,
    actual: Timestamp,
) -> Answer<()> {
    let minds = cron.minds_active();
    let active = if minds { desk.active(&cron.definition.name, rules.counting)? } else { Vec::new() };
    match look_at(cron, &active, zones, stamp, actual)? {
        Some((compiled, turn)) => carry_out(desk, zones, cron, &compiled, turn, actual),
        None => Ok(()),
    }
}

/// Decides what to do about what one cron job has due.
fn look_at(
    cron: &mut Cron,
    active: &[Active],
    zones: &Zones,
    stamp: Timestamp,
    actual: Timestamp,
) -> Answer<Option<(Compiled, Turn)>> {
    if cron.next_look.is_none_or(|look| look > stamp) {
        return Ok(None);
    }
    let compiled = cron.definition.compile(cron.anchor, zones)?;
    let turn = cron.turn(&compiled, active, stamp, actual);
    Ok(Some((compiled, turn)))
}

/// Settles what a cron job has due before it is changed. One that cannot be compiled any more, because its zone is
/// gone, can be changed all the same: that is how it is repaired.
fn settle_before_a_change(
    desk: &mut Desk<'_>,
    rules: &Rules,
    zones: &Zones,
    cron: &mut Cron,
    now: Timestamp,
) -> Answer<()> {
    match cron.definition.compile(cron.anchor, zones) {
        Ok(_) => settle(desk, rules, zones, cron, floor_second(now), now),
        Err(refusal) => {
            let name = &cron.definition.name;
            tracing::warn!(cron = name, error = refusal.message, "what it had due cannot be told");
            Ok(())
        }
    }
}

/// Carries out what was decided about a cron job, and writes it back.
fn carry_out(
    desk: &mut Desk<'_>,
    zones: &Zones,
    cron: &mut Cron,
    compiled: &Compiled,
    turn: Turn,
    actual: Timestamp,
) -> Answer<()> {
    let name = cron.definition.name.clone();
    for id in turn.cancels {
        // A job that has ended in the meantime need not be cancelled.
        if let Some(mut kept) = desk.job(&id)?
            && let Ok(events) = kept.job.cancel(Some("cancel_previous"), actual)
        {
            desk.save(&kept)?;
            desk.tell(events)?;
        }
    }
    for occurrence in &turn.occurrences {
        desk.record(&name, occurrence)?;
        let (scheduled, reason, count) = (occurrence.scheduled, occurrence.reason, occurrence.count);
        desk.note(Note::Settled { cron: name.clone(), scheduled, reason, count });
    }
    desk.tell(turn.events)?;
    let fires = !turn.fires.is_empty();
    let mut last_run_at = turn.fires.first().map_or(cron.last_run_at, |fire| fire.ran_before);
    for mut fire in turn.fires {
        if !desk.record(&name, &fire.occurrence)? {
            // Whoever recorded it made its job.
            cron.run_count = cron.run_count.saturating_sub(1);
            tracing::warn!(cron = name, scheduled = %fire.occurrence.scheduled, "this occurrence has fired before");
            continue;
        }
        last_run_at = Some(actual);
        desk.insert(&fire.job)?;
        desk.tell(fire.job.received().into_iter().chain([fire.event]))?;
        desk.note(Note::Fired(Box::new(Fired::new(cron, compiled, &fire.occurrence, zones))));
    }
    cron.last_run_at = last_run_at;
    if fires && cron.is_serial() {
        let waiting = desk.waiting(&name)?;
        if waiting > WAITING_UNREMARKABLE {
            tracing::warn!(
                cron = name,
                waiting,
                "more than 2 queued occurrences of this cron job wait for a worker"
            );
        }
    }
    desk.save_cron(cron)
}

/// Makes a job of a cron job by hand.
pub(super) fn run(desk: &mut Desk<'_>, zones: &Zones, name: &str, now: Timestamp) -> Answer<Option<Job>> {
    let Some(cron) = desk.cron(name)? else { return Ok(None) };
    cron.definition.compile(cron.anchor, zones)?;
    let mut job = cron.definition.marked_job(None, now);
    desk.insert(&job)?;
    desk.tell(job.received())?;
    Ok(Some(job))
}
