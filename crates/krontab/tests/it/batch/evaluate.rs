//! `evaluate`: what to do about a job now.

use serde_json::{Value, json};

use super::{error, refused, result, with};

pub(super) fn evaluate() -> Value {
    json!({"id": 1, "op": "evaluate", "identity": "a/b", "window": {"mode": "after", "duration": "10m"},
        "dialect": "kron", "expr": "0 * * * *", "lastHandled": "2026-05-04T05:00:00Z",
        "policy": {"concurrency": "forbid", "deadline": "1h", "suspend": false},
        "active": false, "now": "2026-05-04T06:30:00Z"})
}

#[test]
fn evaluate_gives_the_steps_and_when_to_ask_again() {
    let start = result(&evaluate());
    let period = "2026-05-04T06:00:00Z";
    assert_eq!(
        start,
        json!({
            "steps": [
                {"kind": "record", "periodId": period, "outcome": "executed", "reason": "started"},
                {"kind": "start", "periodId": period},
            ],
            "wakeAt": "2026-05-04T07:03:38Z",
        })
    );

    let busy = with(&evaluate(), "active", json!(true));
    assert_eq!(
        result(&busy)["steps"],
        json!([{"kind": "record", "periodId": period, "outcome": "skipped", "reason": "still-running"}])
    );
    assert_eq!(
        result(&with(&busy, "policy.concurrency", json!("replace")))["steps"],
        json!([
            {"kind": "terminate", "periodId": null},
            {"kind": "record", "periodId": period, "outcome": "executed", "reason": "started"},
            {"kind": "start", "periodId": period},
        ])
    );
    assert_eq!(result(&with(&busy, "policy.concurrency", json!("allow"))), start);

    let late = with(&evaluate(), "policy.deadline", None);
    assert_eq!(
        result(&late)["steps"],
        json!([{"kind": "record", "periodId": period, "outcome": "missed", "reason": "deadline-passed"}])
    );
    assert_eq!(
        result(&with(&evaluate(), "avoid", json!("dom=4")))["steps"],
        json!([{"kind": "record", "periodId": period, "outcome": "unschedulable", "reason": "no-candidate"}])
    );
    assert_eq!(
        result(&with(&evaluate(), "policy.suspend", json!(true))),
        json!({"steps": [], "wakeAt": null})
    );
    assert_eq!(result(&with(&evaluate(), "lastHandled", json!(period)))["steps"], json!([]));

    // A `decide` can be extended to an `evaluate`; the nominal time has no say.
    assert_eq!(result(&with(&evaluate(), "nominal", json!("2020-01-01T00:00:00Z"))), start);
}

#[test]
fn periods_that_were_passed_over_are_told_in_one_record() {
    let away = with(&evaluate(), "lastHandled", json!("2026-05-04T01:00:00Z"));
    let steps = &result(&away)["steps"];
    assert_eq!(
        steps[0],
        json!({
            "kind": "record", "periodId": "2026-05-04T05:00:00Z", "outcome": "missed", "reason": "deadline-passed",
            "first": "2026-05-04T02:00:00Z", "last": "2026-05-04T05:00:00Z", "count": 4, "atLeast": false,
        })
    );
    assert_eq!(steps[1]["reason"], "started");
    assert_eq!(steps[2]["kind"], "start");

    // Years are not counted one by one.
    let years = result(&with(&away, "lastHandled", json!("2006-05-04T01:00:00Z")));
    assert_eq!(years["steps"][0]["atLeast"], true);
    // A job that was never seen has missed nothing.
    let never = result(&with(&away, "lastHandled", None));
    assert_eq!(never["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn evaluate_is_refused_in_these_words() {
    refused(
        &evaluate(),
        &[
            ("active", None, "bad-request", "active", "missing member `active`"),
            (
                "active",
                Some(json!(1)),
                "bad-request",
                "active",
                "expected `true` or `false`, but found a number",
            ),
            ("policy", None, "bad-request", "policy", "missing member `policy`"),
            (
                "policy.concurrency",
                Some(json!("forbit")),
                "bad-value",
                "policy.concurrency",
                "expected `allow`, `forbid` or `replace`, but found `forbit`; did you mean `forbid`?",
            ),
            (
                "policy.deadline",
                Some(json!("-5m")),
                "deadline",
                "policy.deadline",
                "expected a duration that is not negative, but found `-5m`",
            ),
            (
                "policy.suspend",
                Some(json!("no")),
                "bad-request",
                "policy.suspend",
                "expected `true` or `false`, but found a string",
            ),
            (
                "lastHandled",
                Some(json!("2026-05-04T05:00:00.5Z")),
                "bad-time",
                "lastHandled",
                "expected a time in whole seconds, but found `2026-05-04T05:00:00.5Z`",
            ),
            (
                "lastHandled",
                Some(json!("9999-12-31T00:00:00Z")),
                "bad-time",
                "lastHandled",
                "expected a time from `0000-01-01T00:00:00Z` to `9999-12-30T22:00:00Z`, but found `9999-12-31T00:00:00Z`",
            ),
            (
                "expr",
                Some(json!("* * *")),
                "cron-field-count",
                "expr",
                "expected 5 fields (minute hour day month weekday), but found 3",
            ),
            (
                "nominal",
                Some(json!("soon")),
                "bad-time",
                "nominal",
                "expected a time such as `2026-03-01T00:00:00Z`, but found `soon`",
            ),
        ],
    );
    let many = with(&with(&evaluate(), "expr", json!("* * * * *")), "window.duration", json!("170h"));
    let error = error(&many);
    assert_eq!(error["code"], "window");
    assert_eq!(
        error["message"],
        "expected a window so short that at most 10000 are open at once, but found `170h`"
    );
}
