//! A disk that fails at every step, and files that end anywhere.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use jiff::Timestamp;

use super::FileStore;
use crate::store::{Change, ChangeKind, Record, Store, Stored};
use crate::{Error, ErrorKind};

thread_local! {
    static STEPS_LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    static RECOVERS: Cell<bool> = const { Cell::new(false) };
}

/// Fails at the step that a test has chosen, and at every one after it if the disk does not recover.
pub(super) fn trip(step: &str) -> io::Result<()> {
    match STEPS_LEFT.get() {
        None => Ok(()),
        Some(0) => {
            STEPS_LEFT.set(if RECOVERS.get() { None } else { Some(0) });
            Err(io::Error::other(format!("the disk failed at {step}")))
        }
        Some(left) => {
            STEPS_LEFT.set(Some(left - 1));
            Ok(())
        }
    }
}

fn record(name: &str) -> Record {
    Record {
        name: name.into(),
        cron_expression: "0 3 * * *".into(),
        retry_delay_ms: 0,
        registered_at: at(0),
        last_attempt_at: None,
        last_success_at: None,
        last_failure_at: None,
        pending_retry_until: None,
        running: None,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_770_000_000 + second).unwrap()
}

fn started(task: u32, second: i64) -> Change {
    Change { task, kind: ChangeKind::Started { at: at(second) } }
}

fn attempts(stored: &[Stored]) -> Vec<Option<Timestamp>> {
    let attempt = |stored: &Stored| match stored {
        Stored::Record(record) => record.last_attempt_at,
        Stored::Raw(_) => None,
    };
    stored.iter().map(attempt).collect()
}

#[test]
fn a_file_cut_off_anywhere_has_whole_transactions_or_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let identifier: Arc<str> = "one".into();
    let mut store = FileStore::new(&path);
    store.open().unwrap();
    store.replace(&identifier, &[&record("a"), &record("b")]).unwrap();
    let snapshot = std::fs::metadata(&path).unwrap().len();
    store.apply(&[started(0, 1), started(1, 1)]).unwrap();
    store.apply(&[Change { task: 0, kind: ChangeKind::Succeeded { at: at(2) } }, started(0, 3)]).unwrap();
    store.close();
    let bytes = std::fs::read(&path).unwrap();
    let allowed = [[None, None], [Some(at(1)), Some(at(1))], [Some(at(3)), Some(at(1))]];
    let mut seen = 0;
    for end in 0..=bytes.len() {
        let cut = directory.path().join("cut");
        std::fs::write(&cut, &bytes[..end]).unwrap();
        let found = FileStore::new(&cut).open();
        if (end as u64) < snapshot {
            let kind = found.expect_err("half a snapshot is none").kind();
            assert_eq!(kind, ErrorKind::StateCorrupted, "cut at {end}");
            assert_eq!(std::fs::read(&cut).unwrap(), &bytes[..end], "what is refused is left alone");
        } else {
            let found = attempts(&found.expect("a snapshot and what came after it"));
            let which = allowed.iter().position(|allowed| found == allowed);
            seen = seen.max(which.unwrap_or_else(|| panic!("cut at {end}: {found:?}")));
        }
    }
    assert_eq!(seen, 2, "nothing is lost of a file that is whole");
}

#[test]
fn a_changed_byte_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let mut store = FileStore::new(&path);
    store.open().unwrap();
    store.replace(&"one".into(), &[&record("a")]).unwrap();
    store.apply(&[started(0, 1)]).unwrap();
    store.apply(&[started(0, 2)]).unwrap();
    store.close();
    let bytes = std::fs::read(&path).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for (at_byte, bit) in (0..bytes.len()).flat_map(|at_byte| (0..8).map(move |bit| (at_byte, bit))) {
        let mut bytes = bytes.clone();
        bytes[at_byte] ^= 1 << bit;
        std::fs::write(&path, &bytes).unwrap();
        match FileStore::new(&path).open() {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StateCorrupted, "byte {at_byte}: {error}");
                let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<Error>());
                assert_eq!(cause.map(Error::kind), Some(ErrorKind::TaskInvalidStructure));
            }
            // The last transaction cannot be told from one that was cut off. Capital letters of a checksum are the
            // same number.
            Ok(found) => {
                let found = attempts(&found);
                let cut_off = at_byte >= last && found == [Some(at(1))];
                assert!(found == [Some(at(2))] || cut_off, "byte {at_byte}, bit {bit}: {found:?}");
            }
        }
    }
}

/// Whatever step fails, alone or with all that follow, nothing is lost, and it can be tried again.
#[test]
fn a_disk_that_fails() {
    for (step, recovers) in (0..12).flat_map(|step| [(step, true), (step, false)]) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let read = || attempts(&FileStore::new(&path).open().unwrap());
        let mut store = FileStore::new(&path);
        RECOVERS.set(recovers);

        // The first list fails, and there is none.
        store.open().unwrap();
        STEPS_LEFT.set(Some(step));
        let failed = store.replace(&"one".into(), &[&record("a")]).is_err();
        STEPS_LEFT.set(None);
        assert_eq!(failed, step < 5);
        assert!(!failed || !path.exists() || is_undecided(step, recovers), "step {step}");
        store.replace(&"one".into(), &[&record("a")]).unwrap();
        store.apply(&[started(0, 1)]).unwrap();

        // A transaction fails, and is then done with all that there is.
        STEPS_LEFT.set(Some(step));
        let failed = store.apply(&[started(0, 2)]).is_err();
        STEPS_LEFT.set(None);
        assert_eq!(failed, step < 2);
        if failed {
            let mut marked = record("a");
            marked.apply(&ChangeKind::Started { at: at(2) }, &"one".into());
            assert!(store.apply(&[started(0, 3)]).is_err(), "it wants to be given everything");
            store.replace(&"one".into(), &[&marked]).unwrap();
        }
        store.close();
        assert_eq!(read(), [Some(at(2))], "step {step}");

        // A new list fails, and the old one is still there.
        store.open().unwrap();
        STEPS_LEFT.set(Some(step));
        let failed = store.replace(&"two".into(), &[&record("a"), &record("b")]).is_err();
        STEPS_LEFT.set(None);
        assert_eq!(failed, step < 5);
        store.close();
        let (old, new) = (vec![Some(at(2))], vec![None, None]);
        let found = read();
        assert!(
            found == if failed { old } else { new.clone() } || is_undecided(step, recovers) && found == new
        );
    }
}

/// After the rename the disk fails, and does not let it be undone either: one or the other is there.
fn is_undecided(step: usize, recovers: bool) -> bool {
    step == 4 && !recovers
}

#[test]
fn a_long_log_becomes_a_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let mut store = FileStore::new(&path);
    store.open().unwrap();
    let mut records: Vec<Record> = (0..20_000).map(|nth| record(&format!("{nth}"))).collect();
    store.replace(&"one".into(), &records.iter().collect::<Vec<_>>()).unwrap();
    let (mut longest, mut rewritten) = (0, 0);
    for second in 0..200 {
        // Every other one, so that each has to be named.
        let changes: Vec<Change> = (0..10_000).map(|nth| started(2 * nth, second)).collect();
        store.apply(&changes).unwrap();
        longest = longest.max(std::fs::metadata(&path).unwrap().len());
        for change in &changes {
            records[change.task as usize].apply(&change.kind, &"one".into());
        }
        if store.wants_rewrite() {
            store.replace(&"one".into(), &records.iter().collect::<Vec<_>>()).unwrap();
            rewritten += 1;
        }
    }
    store.close();
    assert!(longest < 16 << 20 && rewritten > 0, "the file stays small: {longest}");
    let found: Vec<Stored> = records.into_iter().map(Stored::Record).collect();
    assert_eq!(FileStore::new(&path).open().unwrap(), found);
}
