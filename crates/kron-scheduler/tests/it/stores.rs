//! The suite that every store passes, and what is refused.

use std::time::Duration;

use kron_scheduler::store::{FileStore, MemoryStore, SqliteStore, Store};
use kron_scheduler::testing::{FaultyStore, VirtualClock, conformance};
use kron_scheduler::{ErrorKind, Registration, Scheduler};
use serde_json::{Value, json};

#[test]
fn memory() {
    let store = MemoryStore::new();
    conformance::check(|| store.clone());
}

#[test]
fn a_faulty_one_without_faults() {
    let store = FaultyStore::new(MemoryStore::new());
    conformance::check(|| store.clone());
}

#[test]
fn file() {
    let directory = tempfile::tempdir().unwrap();
    conformance::check(|| FileStore::new(directory.path().join("state")));
}

#[test]
fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    conformance::check(|| SqliteStore::new(directory.path().join("state.db")));
}

#[test]
fn places_that_cannot_be_used() {
    for store in [
        &mut FileStore::new("/nonexistent/directory/state") as &mut dyn Store,
        &mut SqliteStore::new("/nonexistent/directory/state.db"),
    ] {
        let error = store.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store);
        assert!(error.is_transient() && std::error::Error::source(&error).is_some(), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    std::fs::write(&path, "this is something else, and longer than a header of a database would be").unwrap();
    assert_eq!(FileStore::new(&path).open().unwrap_err().kind(), ErrorKind::StateCorrupted);
    assert_eq!(SqliteStore::new(&path).open().unwrap_err().kind(), ErrorKind::StateCorrupted);
    std::fs::write(&path, "").unwrap();
    assert_eq!(FileStore::new(&path).open().unwrap_err().kind(), ErrorKind::StateCorrupted);
}

#[test]
fn later_versions_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 9).unwrap();
    drop(database);
    let mut store = SqliteStore::new(&path);
    assert_eq!(store.open().unwrap_err().kind(), ErrorKind::UnsupportedVersion);

    let path = directory.path().join("state");
    let header = r#"{"identifier":"x","tasks":0,"version":9}"#;
    std::fs::write(&path, format!("{:08x} {header}\n", crc32fast::hash(header.as_bytes()))).unwrap();
    let error = FileStore::new(&path).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert_eq!(error.details(), &json!({ "found": 9, "supported": 1 }));
}

#[test]
fn documents_that_are_none() {
    let kind = |document: Value| MemoryStore::from_json(document).unwrap_err().kind();
    assert_eq!(kind(json!([])), ErrorKind::TaskInvalidStructure);
    assert_eq!(kind(json!({ "tasks": [] })), ErrorKind::TaskMissingField);
    assert_eq!(kind(json!({ "version": "1" })), ErrorKind::TaskInvalidType);
    assert_eq!(kind(json!({ "version": 2 })), ErrorKind::UnsupportedVersion);
    assert_eq!(kind(json!({ "version": 1, "tasks": {} })), ErrorKind::TaskInvalidStructure);
}

/// What `initialize` makes of a stored task, with and without leave to discard it.
async fn found(tasks: Value) -> (Option<String>, Value) {
    let document = json!({ "version": 1, "tasks": tasks });
    let store = MemoryStore::from_json(document.clone()).unwrap();
    let clock = VirtualClock::new("2026-06-01T12:00:30+00:00[UTC]").unwrap();
    let registration = || {
        [Registration::new("a", "0 3 * * *", Duration::from_millis(5), || async {
            Ok::<(), std::io::Error>(())
        })]
    };
    let scheduler = Scheduler::builder(store.clone()).clock(clock.clone()).build();
    let error = scheduler.initialize(registration()).await.err();
    match &error {
        Some(_) => assert_eq!(store.to_json(), document, "what is refused is left alone"),
        None => scheduler.stop().await.unwrap(),
    }
    let lenient = Scheduler::builder(store.clone()).clock(clock).discard_bad_records().build();
    lenient.initialize(registration()).await.unwrap();
    lenient.stop().await.unwrap();
    (error.map(|error| error.kind().name().to_owned()), store.to_json()["tasks"].clone())
}

#[tokio::test]
async fn records_that_cannot_be_read() {
    let at = "2026-06-01T03:00:00.000Z";
    let good = json!({ "name": "a", "cronExpression": "0 3 * * *", "retryDelayMs": 5, "registeredAt": at,
        "lastAttemptAt": at });
    // The registration's configuration takes the place of what is missing or wrong.
    let (error, tasks) = found(json!([{ "name": "a", "registeredAt": at, "lastAttemptAt": at }])).await;
    assert_eq!((error, tasks), (None, json!([good])));
    let (error, tasks) = found(json!([{ "name": "a", "cronExpression": 5, "retryDelayMs": -1,
        "registeredAt": at, "lastAttemptAt": at }]))
    .await;
    assert_eq!((error, tasks), (None, json!([good])));
    // Names that are not registered do not matter.
    let (error, tasks) = found(json!([good, { "name": "b", "registeredAt": 5 }])).await;
    assert_eq!((error, tasks), (None, json!([good])));
    // Anything else does.
    for (bad, name) in [
        (json!({ "name": "a" }), "TaskMissingFieldError"),
        (json!({ "name": "a", "registeredAt": at, "lastAttemptAt": 5 }), "TaskInvalidTypeError"),
        (json!({ "name": "a", "registeredAt": at, "running": {} }), "TaskMissingFieldError"),
        (json!({ "cronExpression": "0 3 * * *" }), "TaskMissingFieldError"),
        (json!("a"), "TaskInvalidStructureError"),
        (json!(null), "TaskInvalidStructureError"),
    ] {
        let (error, tasks) = found(json!([bad])).await;
        assert_eq!(error.as_deref(), Some(name), "{bad}");
        assert_eq!(tasks[0]["registeredAt"], "2026-06-01T12:00:00.000Z", "discarded, it begins anew");
    }
    let (error, tasks) = found(json!([good, good])).await;
    assert_eq!(error.as_deref(), Some("TaskInvalidValueError"));
    assert_eq!(tasks, json!([good]));
}
