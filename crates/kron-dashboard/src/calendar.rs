//! The future schedule as a calendar.

use std::ops::ControlFlow;

use jiff::{SignedDuration, Timestamp};

use crate::board::{Answer, Board};
use crate::plan::{coming, reach};

/// How many events a calendar has, and how far it reaches.
const EVENTS_MAX: usize = 1_000;
const AHEAD: SignedDuration = SignedDuration::from_hours(24 * 28);

/// How many periods of one job are looked at, and how many in all.
const PERIODS_OF_ONE_MAX: usize = 1_000;
const PERIODS_MAX: usize = 1_000_000;

struct Event {
    at: Timestamp,
    nominal: Timestamp,
    id: String,
    name: String,
    words: String,
}

/// The first runs of every job in order, or of one.
pub(crate) fn calendar(board: &dyn Board, only: Option<&str>) -> Answer<String> {
    let now = board.now();
    let until = now.checked_add(AHEAD).unwrap_or(Timestamp::MAX);
    let mut events: Vec<Event> = Vec::new();
    let mut looked_at = 0;
    let mut add = |job: crate::board::Job| {
        let Some(plan) = job.plan.as_ref().filter(|_| !job.paused) else { return ControlFlow::Continue(()) };
        let (_, after) = reach(plan);
        let from = now.checked_sub(after).unwrap_or(Timestamp::MIN);
        for decision in coming(&job, plan, from).take(PERIODS_OF_ONE_MAX) {
            looked_at += 1;
            if decision.nominal() > until {
                break;
            }
            let Some(at) = decision.chosen().filter(|at| *at >= now) else { continue };
            let (id, name, words) = (job.id.clone(), job.name.clone(), job.words.clone());
            events.push(Event { at, nominal: decision.nominal(), id, name, words });
        }
        // What cannot be among the first is let go.
        if events.len() > 4 * EVENTS_MAX {
            first(&mut events);
        }
        if looked_at > PERIODS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match only {
        Some(id) => {
            let job = board.job(id)?.ok_or_else(|| crate::board::Refused::missing("job", id))?;
            let _ = add(job);
        }
        None => {
            let mut from = None;
            loop {
                let (jobs, next) = board.some_jobs(from.as_deref())?;
                from = next;
                if jobs.into_iter().try_for_each(&mut add).is_break() || from.is_none() {
                    break;
                }
            }
        }
    }
    first(&mut events);
    Ok(written(&events, now))
}

fn first(events: &mut Vec<Event>) {
    events.sort_by(|a, b| (a.at, a.nominal, &a.id).cmp(&(b.at, b.nominal, &b.id)));
    events.truncate(EVENTS_MAX);
}

fn written(events: &[Event], now: Timestamp) -> String {
    let program = concat!("dashboard ", env!("CARGO_PKG_VERSION"));
    let mut calendar = kron_calendar::Calendar::new(program, now).named("Kron");
    for event in events {
        calendar.add(&kron_calendar::Event {
            identity: &event.id,
            nominal: event.nominal,
            at: event.at,
            summary: &event.name,
            description: &event.words,
        });
    }
    calendar.text()
}
