//! What a store is: the suite that every one of them passes.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::ErrorKind;
use crate::store::{Change, ChangeKind, Record, RunningMark, Store, Stored};

/// Puts a store through everything the scheduler asks of one.
///
/// `make` gives a store on the same place each time, as a process does that begins again: what one has written, the
/// next one reads. The place is empty in the beginning.
///
/// # Panics
///
/// If the store is not one, with what it did otherwise.
pub fn check<S: Store>(mut make: impl FnMut() -> S) {
    let identifier: Arc<str> = "first".into();
    let records = [record("a"), record("b \"quoted\"\n"), record("ü")];
    let all: Vec<&Record> = records.iter().collect();

    // In the beginning there is nothing, and reading changes nothing.
    let mut store = make();
    assert_eq!(store.open().expect("an empty place is opened"), [], "it is empty in the beginning");
    assert_eq!(store.open().expect("what is open is read again"), [], "reading changes nothing");

    // What is written is read, by whoever comes next.
    store.replace(&identifier, &all).expect("records are written");
    assert_eq!(contents(&mut store), records, "records are read as they were written");
    let mut other = make();
    let error = other.open().expect_err("a store that is open is locked");
    assert_eq!(error.kind(), ErrorKind::StoreLocked, "{error}");
    store.close();
    assert_eq!(contents(&mut other), records, "after `close` others have it");
    drop(other);
    let mut store = make();
    assert_eq!(contents(&mut store), records, "a store that is dropped is closed");

    // Changes are carried out in order, as `Record::apply` does, and again without harm.
    store.replace(&identifier, &all).expect("records are written");
    let mut expected = records.clone();
    let starts = [started(0, 10), started(2, 10)];
    let ends = [
        Change { task: 0, kind: ChangeKind::Succeeded { at: at(11) } },
        Change { task: 2, kind: ChangeKind::Failed { at: at(12), retry_at: at(42) } },
        started(2, 43),
    ];
    let withdrawn = Record {
        running: Some(RunningMark { scheduler_identifier: "before".into(), started_at: at(3) }),
        ..record("b \"quoted\"\n")
    };
    let puts = [Change { task: 1, kind: ChangeKind::Put(Box::new(withdrawn)) }, started(0, 60)];
    for changes in [&starts[..], &ends, &puts, &puts, &[]] {
        store.apply(changes).expect("changes are written");
        for change in changes {
            expected[change.task as usize].apply(&change.kind, &identifier);
        }
        store.close();
        let mut next = make();
        assert_eq!(contents(&mut next), expected, "changes are durable: {changes:?}");
        let all: Vec<&Record> = expected.iter().collect();
        next.replace(&identifier, &all).expect("records are written");
        store = next;
    }

    // Another list, and another identifier, take the place of all there was.
    let fewer = [record("only")];
    store.replace(&"second".into(), &[&fewer[0]]).expect("records are replaced");
    store.apply(&[started(0, 70)]).expect("changes are written");
    store.close();
    let found = contents(&mut store);
    assert_eq!(found.len(), 1, "the others are gone");
    let mark = found[0].running.as_ref().expect("it is marked");
    assert_eq!(&*mark.scheduler_identifier, "second", "marks carry the present identifier");
    store.close();

    // Ten thousand together.
    let many: Vec<Record> = (0..10_000).map(|nth| record(&format!("task {nth}"))).collect();
    let mut store = make();
    store.open().expect("it is opened");
    store.replace(&identifier, &many.iter().collect::<Vec<_>>()).expect("ten thousand are written");
    let marks: Vec<Change> = (0..10_000).map(|task| started(task, 80)).collect();
    store.apply(&marks).expect("ten thousand are marked");
    drop(store);
    let found = contents(&mut make());
    assert_eq!(found.len(), 10_000, "none is lost");
    assert!(found.iter().all(|record| record.last_attempt_at == Some(at(80))), "all are marked");
}

fn contents(store: &mut impl Store) -> Vec<Record> {
    let stored = store.open().expect("a store is opened");
    let record = |stored: Stored| match stored {
        Stored::Record(record) => record,
        Stored::Raw(value) => panic!("what was written as a record is read as one, not {value}"),
    };
    stored.into_iter().map(record).collect()
}

fn record(name: &str) -> Record {
    Record {
        name: name.into(),
        cron_expression: "0 3 * * *".into(),
        retry_delay_ms: 1_500,
        registered_at: at(0),
        last_attempt_at: None,
        last_success_at: Some(at(-5)),
        last_failure_at: None,
        pending_retry_until: Some(at(7)),
        running: None,
    }
}

fn started(task: u32, seconds: i64) -> Change {
    Change { task, kind: ChangeKind::Started { at: at(seconds) } }
}

/// An instant with a fraction, because those are lost most easily.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_770_000_000_123 + seconds * 1_000).expect("a time in 2026")
}
