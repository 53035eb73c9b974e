//! The future schedule as a calendar (iCalendar, RFC 5545).

use std::fmt::Write;
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

/// The first runs of every job in order, or of one. An event keeps its name as long as its job and its period do, so a
/// calendar that is read again moves it.
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
        None => board.each_job(&mut add)?,
    }
    first(&mut events);
    Ok(written(&events, now))
}

fn first(events: &mut Vec<Event>) {
    events.sort_by(|a, b| (a.at, a.nominal, &a.id).cmp(&(b.at, b.nominal, &b.id)));
    events.truncate(EVENTS_MAX);
}

fn written(events: &[Event], now: Timestamp) -> String {
    let mut out = String::new();
    let mut line = |text: &str| fold(&mut out, text);
    line("BEGIN:VCALENDAR");
    line("VERSION:2.0");
    line(concat!("PRODID:-//Kron//dashboard ", env!("CARGO_PKG_VERSION"), "//EN"));
    line("CALSCALE:GREGORIAN");
    line("X-WR-CALNAME:Kron");
    let stamp = |at: Timestamp| at.strftime("%Y%m%dT%H%M%SZ").to_string();
    for event in events {
        line("BEGIN:VEVENT");
        line(&format!("UID:{}-{:016x}@kron.invalid", event.nominal.as_second(), fingerprint(&event.id)));
        line(&format!("DTSTAMP:{}", stamp(now)));
        line(&format!("DTSTART:{}", stamp(event.at)));
        line("DURATION:PT1M");
        line(&format!("SUMMARY:{}", escaped(&event.name)));
        line(&format!("DESCRIPTION:{}", escaped(&event.words)));
        line("TRANSP:TRANSPARENT");
        line("END:VEVENT");
    }
    line("END:VCALENDAR");
    out
}

/// FNV-1a, which is enough to tell jobs apart.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '\\' | ';' | ',' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {}
            c => out.push(c),
        }
        out
    })
}

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 75;

/// Writes a line, continued on the next where it is too long, and never within a character.
fn fold(out: &mut String, text: &str) {
    let mut length = 0;
    for c in text.chars() {
        if length + c.len_utf8() > LINE_BYTES_MAX {
            out.push_str("\r\n ");
            length = 1;
        }
        out.push(c);
        length += c.len_utf8();
    }
    let _ = write!(out, "\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short_and_texts_harmless() {
        let at: Timestamp = "2026-03-01T02:30:00Z".parse().unwrap();
        let event = Event {
            at,
            nominal: at,
            id: "a".into(),
            name: format!("é{},\r\nEND:VEVENT", "x".repeat(90)),
            words: "a;b".into(),
        };
        let text = written(&[event], at);
        assert!(text.split("\r\n").all(|line| line.len() <= LINE_BYTES_MAX));
        assert_eq!(text.matches("\r\nEND:VEVENT").count(), 1);
        assert!(text.contains("DESCRIPTION:a\\;b\r\n"));
        assert!(text.contains("DTSTART:20260301T023000Z\r\n"));
    }
}
