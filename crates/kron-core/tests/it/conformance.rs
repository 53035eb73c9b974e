//! Do the cases for ledger stores tell a right store from a wrong one?
//!
//! The right store here keeps a ledger as a few lines of text, and reads it back after every record.
//! Each wrong one has a bug that somebody could really write; the cases must notice every one of them.

use kron_core::conformance::{Case, cases};
use kron_core::{Ledger, Outcome, PeriodId, Record, RunId};

/// A store plays one record and keeps the ledger as text.
type Store = fn(&str, &Record) -> String;

fn passes(store: Store) -> Result<(), Vec<&'static str>> {
    let play = |case: &Case| {
        let text = case.records.iter().fold(print(&Ledger::new()), |text, record| store(&text, record));
        read(&text)
    };
    let failed: Vec<_> =
        cases().iter().filter(|case| play(case) != case.expected).map(|case| case.name).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed) }
}

fn print(ledger: &Ledger) -> String {
    let mut text = String::new();
    if let Some(watermark) = ledger.watermark() {
        text += &format!("watermark {watermark}\n");
    }
    for period in ledger.pending() {
        text += &format!("pending {period}\n");
    }
    for run in ledger.active() {
        text += &match run {
            RunId::Period(period) => format!("active {period}\n"),
            RunId::Manual(number) => format!("manual {number}\n"),
        };
    }
    text
}

fn read(text: &str) -> Ledger {
    let (mut watermark, mut pending, mut active) = (None, vec![], vec![]);
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap();
        let period = || value.parse::<PeriodId>().unwrap();
        match key {
            "watermark" => watermark = Some(period()),
            "pending" => pending.push(period()),
            "active" => active.push(RunId::Period(period())),
            _ => active.push(RunId::Manual(value.parse().unwrap())),
        }
    }
    Ledger::restored(watermark, pending, active)
}

fn right(text: &str, record: &Record) -> String {
    let mut ledger = read(text);
    ledger.apply(record);
    print(&ledger)
}

#[test]
fn a_store_that_keeps_everything_passes() {
    assert_eq!(passes(right), Ok(()));
}

#[test]
fn a_store_that_forgets_what_is_pending_is_noticed() {
    let forgetful: Store = |text, record| {
        right(text, record)
            .lines()
            .filter(|line| !line.starts_with("pending"))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    assert!(passes(forgetful).unwrap_err().contains(&"what is overtaken stays pending"));
}

#[test]
fn a_store_that_clears_the_run_on_a_skip_is_noticed() {
    let eager: Store = |text, record| match record {
        Record::Settled(settled) if settled.reason.outcome() == Outcome::Skipped => right(text, record)
            .lines()
            .filter(|line| !line.starts_with("active"))
            .map(|line| format!("{line}\n"))
            .collect(),
        _ => right(text, record),
    };
    assert!(passes(eager).unwrap_err().contains(&"a skip does not end the run it was skipped for"));
}

#[test]
fn a_store_whose_watermark_is_the_last_record_is_noticed() {
    let last: Store = |text, record| {
        let ledger = read(&right(text, record));
        let watermark = match record {
            Record::Settled(settled) => Some(settled.decision.period_id()),
            _ => ledger.watermark(),
        };
        print(&Ledger::restored(watermark, ledger.pending().to_vec(), ledger.active().to_vec()))
    };
    assert!(passes(last).unwrap_err().contains(&"an earlier period never lowers the watermark"));
}

#[test]
fn a_store_that_ends_every_run_at_once_is_noticed() {
    let ends_all: Store = |text, record| match record {
        Record::Ended(_) => {
            let ledger = read(text);
            print(&Ledger::restored(ledger.watermark(), ledger.pending().to_vec(), vec![]))
        }
        _ => right(text, record),
    };
    assert!(passes(ends_all).unwrap_err().contains(&"several runs can be active"));
}

#[test]
fn a_store_that_takes_a_run_by_hand_for_a_period_is_noticed() {
    let counts: Store = |text, record| match record {
        Record::Manual(_) => text.to_string(),
        _ => right(text, record),
    };
    assert!(passes(counts).unwrap_err().contains(&"a run by hand is active and handles nothing"));
}

#[test]
fn a_store_that_ignores_passed_periods_is_noticed() {
    let ignores: Store = |text, record| match record {
        Record::Passed(_) => text.to_string(),
        _ => right(text, record),
    };
    assert!(passes(ignores).unwrap_err().contains(&"many periods can be passed at once"));
}
