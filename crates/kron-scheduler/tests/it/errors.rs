//! The wording is part of the interface, so it is written down here.

use std::error::Error as _;
use std::time::Duration;

use kron_scheduler::store::{MemoryStore, Record};
use kron_scheduler::{Callback, Callbacks, Error, ErrorKind, Registration, Registrations, Scheduler};
use serde_json::{Value, json};

fn refusal(list: Vec<Registration>) -> Error {
    let scheduler = Scheduler::new(MemoryStore::new());
    let call = scheduler.initialize(list);
    // Nothing was polled, and there is no runtime.
    call.refusal().expect("it is refused before anything is awaited").clone()
}

fn task(name: &str, cron: &str) -> Registration {
    Registration::new(name, cron, Duration::ZERO, || async { Ok::<(), std::io::Error>(()) })
}

fn parts(error: &Error) -> (&str, String, &Value) {
    (error.kind().name(), error.to_string(), error.details())
}

#[test]
fn registrations_that_are_no_array() {
    for value in [json!({}), json!(null), json!("x"), json!(5)] {
        let error = Registrations::from_json(&value, &Callbacks::new()).unwrap_err();
        assert_eq!(
            parts(&error),
            ("RegistrationsNotArrayError", "Registrations must be an array".into(), &Value::Null)
        );
    }
}

#[test]
fn registrations_of_a_wrong_shape() {
    let mut callbacks = Callbacks::new();
    callbacks.insert("f".into(), Callback::new(|| async { Ok::<(), std::io::Error>(()) }));
    let good = json!(["a", "* * * * *", "f", 0]);
    for bad in [
        json!("a"),
        json!(null),
        json!([]),
        json!(["a", "* * * * *", "f"]),
        json!(["a", "* * * * *", "f", 0, 1]),
        json!([1, "* * * * *", "f", 0]),
        json!(["a", 5, "f", 0]),
        json!(["a", "* * * * *", null, 0]),
        json!(["a", "* * * * *", "unknown", 0]),
        json!(["a", "* * * * *", "f", null]),
        json!(["a", "* * * * *", "f", {}]),
        json!(["a", "* * * * *", "f", { "toMillis": 5 }]),
    ] {
        let error = Registrations::from_json(&json!([good, bad]), &callbacks).unwrap_err();
        assert_eq!(error.kind().name(), "RegistrationShapeError", "{bad}");
        assert_eq!(
            error.to_string(),
            "Invalid registration shape: expected [string, string, function, Duration]"
        );
        assert_eq!(error.details()["registrationIndex"], 1);
        assert_eq!(error.details()["received"], bad);
    }
    assert_eq!(Registrations::from_json(&json!([good]), &callbacks).unwrap().len(), 1);
}

#[test]
fn delays_that_are_none() {
    let mut callbacks = Callbacks::new();
    callbacks.insert("f".into(), Callback::new(|| async { Ok::<(), std::io::Error>(()) }));
    let error = |delay: Value| {
        Registrations::from_json(&json!([["a", "* * * * *", "f", delay]]), &callbacks).unwrap_err()
    };
    for delay in [json!(-1), json!(-0.5), json!("-5m")] {
        let error = error(delay.clone());
        assert_eq!(error.kind().name(), "NegativeRetryDelayError", "{delay}");
        assert_eq!(error.to_string(), "Retry delay must be non-negative");
    }
    assert_eq!(error(json!(-1)).details()["retryDelayMs"], -1);
    for delay in [json!(0.5), json!(1e300), json!("5"), json!("soon"), json!("1ns")] {
        let error = error(delay.clone());
        assert_eq!(error.kind().name(), "InvalidRegistrationError", "{delay}");
        assert_eq!(error.details()["field"], "retryDelay");
        assert_eq!(error.details()["value"], delay);
    }
    let forever =
        Registration::new("a", "* * * * *", Duration::MAX, || async { Ok::<(), std::io::Error>(()) });
    assert_eq!(refusal(vec![forever]).kind(), ErrorKind::InvalidRegistration);
}

#[test]
fn names() {
    let error = refusal(vec![task("", "* * * * *")]);
    assert_eq!(error.kind().name(), "InvalidRegistrationError");
    assert_eq!(error.to_string(), "Invalid registration: name must not be empty");
    assert_eq!(
        error.details(),
        &json!({ "field": "name", "value": "", "reason": "must not be empty", "registrationIndex": 0 })
    );
    let error = refusal(vec![task("a", "* * * * *"), task("b", "* * * * *"), task("a", "bad")]);
    assert_eq!(error.kind().name(), "ScheduleDuplicateTaskError");
    assert_eq!(error.to_string(), "Task with name \"a\" is already scheduled");
    assert_eq!(error.details()["taskName"], "a");
}

#[test]
fn expressions() {
    for (cron, field, reason) in [
        ("60 * * * *", "minute", "must have a number from 0 to 59, but has `60`"),
        ("* * * * 7", "weekday", "must have a number from 0 to 6, but has `7`"),
        ("0 0 * * 1-7", "weekday", "must have a number from 0 to 6, but has `7`"),
        ("* * * *", "expression", "must have 5 fields (minute hour day month weekday), but has 4"),
        ("", "expression", "must have 5 fields (minute hour day month weekday), but has nothing"),
    ] {
        let error = refusal(vec![task("a", cron)]);
        let message = format!("Invalid cron expression \"{cron}\": {field} field {reason}");
        assert_eq!(error.kind().name(), "CronExpressionInvalidError");
        assert_eq!(error.to_string(), message);
        for (name, value) in [("expression", cron), ("field", field), ("reason", reason)] {
            assert_eq!(error.details()[name], value);
        }
        // The causes, one in the other.
        let inner = error.source().unwrap().downcast_ref::<Error>().unwrap();
        assert_eq!((inner.kind().name(), inner.to_string()), ("InvalidCronExpressionError", message));
        let field_error = inner.source().unwrap().downcast_ref::<Error>().unwrap();
        assert_eq!(field_error.kind().name(), "FieldParseError");
        assert_eq!(field_error.details()["fieldName"], field);
    }
    // The nine rules, and what else is not in the grammar.
    for cron in [
        "* * * * * *",
        "*/15 * * * *",
        "0 0 * jan *",
        "0 0 * * mon",
        "@daily",
        "0 0 ? * *",
        "0 0 L * *",
        "0 0 15W * *",
        "0 0 * * 5#2",
        "30-10 * * * *",
        "24 24 * * *",
        "0 0 0 * *",
        "0 0 32 * *",
        "0 0 * 13 *",
        "1e1 * * * *",
        "0x5 * * * *",
        "+5 * * * *",
        "-5 * * * *",
        "*,5 * * * *",
        "0 0 * * *\n",
        "0\u{a0}0 * * *",
        "1,,2 * * * *",
        "1- * * * *",
        ", * * * *",
    ] {
        assert_eq!(refusal(vec![task("a", cron)]).kind(), ErrorKind::CronExpressionInvalid, "{cron}");
    }
    let error = refusal(vec![task("a", "5,99 * * * *")]);
    let field = error.source().unwrap().source().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(field.details()["fieldValue"], "5,99");
}

#[test]
fn dates_that_never_come() {
    let error = refusal(vec![task("a", "0 0 30 2 *")]);
    assert_eq!(error.kind(), ErrorKind::CronExpressionInvalid);
    let cause = error.source().unwrap().source().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!(cause.kind().name(), "CronCalculationError");
    assert_eq!(
        cause.to_string(),
        "Failed to calculate next occurrence: this will never match: February has no day 30"
    );
    assert_eq!(cause.details()["expression"], "0 0 30 2 *");
    assert!(cause.details()["currentTime"].is_string() && cause.details()["cause"].is_string());
}

#[test]
fn long_values_are_not_repeated_whole() {
    let error = refusal(vec![task("a", &"9".repeat(5_000))]);
    assert!(error.to_string().len() < 400);
    let name = "n".repeat(5_000);
    let error = refusal(vec![task(&name, "* * * * *"), task(&name, "* * * * *")]);
    assert!(error.to_string().len() < 700, "{error}");
}

#[test]
fn records_that_are_none() {
    let good = json!({
        "name": "a", "cronExpression": "* * * * *", "retryDelayMs": 5, "registeredAt": "2026-01-01T00:00:00.000Z",
        "lastAttemptAt": "2026-01-01T00:00:00.000Z",
        "running": { "schedulerIdentifier": "x", "startedAt": "2026-01-01T00:00:00.000Z" },
    });
    assert_eq!(Record::from_json(&good).unwrap().to_json(), good);
    let with = |field: &str, value: Value| {
        let mut record = good.clone();
        record[field] = value;
        Record::from_json(&record).unwrap_err()
    };
    let without = |field: &str| {
        let mut record = good.clone();
        record.as_object_mut().unwrap().remove(field);
        Record::from_json(&record).unwrap_err()
    };
    for field in ["name", "cronExpression", "retryDelayMs", "registeredAt"] {
        let error = without(field);
        let message = format!("Missing required field: {field}");
        assert_eq!(parts(&error), ("TaskMissingFieldError", message, &json!({ "field": field })));
    }
    for (field, value, expected, actual) in [
        ("name", json!(5), "string", "number"),
        ("cronExpression", json!(null), "string", "null"),
        ("retryDelayMs", json!("5"), "non-negative integer", "string"),
        ("retryDelayMs", json!(-5), "non-negative integer", "number"),
        ("retryDelayMs", json!(0.5), "non-negative integer", "number"),
        ("lastAttemptAt", json!("yesterday"), "ISO 8601 timestamp", "string"),
        ("lastSuccessAt", json!(null), "ISO 8601 timestamp", "null"),
        ("lastFailureAt", json!([]), "ISO 8601 timestamp", "array"),
        ("pendingRetryUntil", json!({}), "ISO 8601 timestamp", "object"),
        ("running", json!(true), "object", "boolean"),
    ] {
        let error = with(field, value.clone());
        assert_eq!(error.kind().name(), "TaskInvalidTypeError");
        let message = format!("Invalid type for field '{field}': expected {expected}, got {actual}");
        assert_eq!(error.to_string(), message);
        let details =
            json!({ "field": field, "value": value, "expectedType": expected, "actualType": actual });
        assert_eq!(error.details(), &details);
        assert!(error.kind().is_deserialize());
    }
    let error = with("running", json!({ "schedulerIdentifier": 5, "startedAt": "2026-01-01T00:00:00Z" }));
    assert_eq!(error.details()["field"], "schedulerIdentifier");
    let error = with("name", json!(""));
    assert_eq!(error.to_string(), "Invalid value for field 'name': must not be empty");
    assert_eq!(error.kind().name(), "TaskInvalidValueError");
    for value in [json!(null), json!([]), json!("a")] {
        let error = Record::from_json(&value).unwrap_err();
        assert_eq!(error.kind().name(), "TaskInvalidStructureError");
        assert_eq!(error.details()["value"], value);
    }
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), ErrorKind::ALL.len());
    let specified = [
        "RegistrationsNotArrayError",
        "RegistrationShapeError",
        "InvalidRegistrationError",
        "ScheduleDuplicateTaskError",
        "SchedulerAlreadyActiveError",
        "CronExpressionInvalidError",
        "NegativeRetryDelayError",
        "InvalidCronExpressionError",
        "FieldParseError",
        "CronCalculationError",
        "TaskTryDeserializeError",
        "TaskMissingFieldError",
        "TaskInvalidTypeError",
        "TaskInvalidValueError",
        "TaskInvalidStructureError",
    ];
    assert!(specified.iter().all(|name| names.contains(name)));
}
