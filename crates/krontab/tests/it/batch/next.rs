//! `next` and `prev`: occurrences away from an instant.

use krontab::batch::COUNT_MAX;
use serde_json::{Value, json};

use super::{refused, result, with};

pub(super) fn next() -> Value {
    json!({"id": 1, "op": "next", "dialect": "kron", "expr": "30 2 * * *", "timezone": "Europe/Paris",
        "at": "2026-03-28T12:00:00Z", "count": 2})
}

#[test]
fn next_and_prev_list_occurrences_away_from_an_instant() {
    let occurrences = |request: &Value| result(request)["occurrences"].clone();
    // On 29 March clocks go forward over 02:30 in Paris.
    assert_eq!(occurrences(&next()), json!(["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]));
    let after = with(&next(), "dst", json!({"gap": "after"}));
    assert_eq!(occurrences(&after), json!(["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]));

    // After is after, and at or before is at or before, newest first.
    let at = with(&next(), "at", json!("2026-03-30T02:30:00+02:00"));
    assert_eq!(occurrences(&at), json!(["2026-03-31T00:30:00Z", "2026-04-01T00:30:00Z"]));
    let prev = with(&at, "op", json!("prev"));
    assert_eq!(occurrences(&prev), json!(["2026-03-30T00:30:00Z", "2026-03-28T01:30:00Z"]));

    // On 25 October it is 02:30 twice.
    let fold = with(&with(&next(), "at", json!("2026-10-24T12:00:00Z")), "dst", json!({"fold": "both"}));
    assert_eq!(occurrences(&fold), json!(["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]));
    let first = with(&fold, "dst", json!(null));
    assert_eq!(occurrences(&first), json!(["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]));

    // Without a zone it is UTC, and where time ends so do occurrences.
    let last = with(&with(&next(), "timezone", None), "at", json!("9999-12-29T02:30:00Z"));
    assert_eq!(occurrences(&last), json!(["9999-12-30T02:30:00Z"]));

    // A fraction of a second is printed where there is one.
    let every = json!({"id": null, "op": "prev", "dialect": "ojs", "expr": "@every 500ms",
        "at": "2026-03-28T12:00:00.7Z", "count": 2});
    assert_eq!(occurrences(&every), json!(["2026-03-28T12:00:00.5Z", "2026-03-28T12:00:00Z"]));
}

#[test]
fn next_and_prev_are_refused_in_these_words() {
    for op in ["next", "prev"] {
        refused(
            &with(&next(), "op", json!(op)),
            &[
                ("count", None, "bad-request", "count", "missing member `count`"),
                (
                    "count",
                    Some(json!("2")),
                    "bad-request",
                    "count",
                    "expected a whole number from 1 to 10000, but found a string",
                ),
                (
                    "count",
                    Some(json!(COUNT_MAX + 1)),
                    "bad-value",
                    "count",
                    "expected a whole number from 1 to 10000, but found `10001`",
                ),
                (
                    "count",
                    Some(json!(0)),
                    "bad-value",
                    "count",
                    "expected a whole number from 1 to 10000, but found `0`",
                ),
                (
                    "count",
                    Some(json!(1.5)),
                    "bad-value",
                    "count",
                    "expected a whole number from 1 to 10000, but found `1.5`",
                ),
                (
                    "at",
                    Some(json!("2026-03-28T12:00:00")),
                    "bad-time",
                    "at",
                    "expected a time such as `2026-03-01T00:00:00Z`, but found `2026-03-28T12:00:00`",
                ),
                (
                    "at",
                    Some(json!("9999-12-31T00:00:00Z")),
                    "bad-time",
                    "at",
                    "expected a time from `0000-01-01T00:00:00Z` to `9999-12-30T22:00:00Z`, but found `9999-12-31T00:00:00Z`",
                ),
                (
                    "timezone",
                    Some(json!("Europe/paris")),
                    "unknown-timezone",
                    "timezone",
                    "unknown time zone `Europe/paris`; did you mean `Europe/Paris`?",
                ),
                ("dst", Some(json!("skip")), "bad-request", "dst", "expected an object, but found a string"),
                (
                    "dst",
                    Some(json!({"gap": "skipp"})),
                    "bad-value",
                    "dst.gap",
                    "expected `skip` or `after`, but found `skipp`; did you mean `skip`?",
                ),
                (
                    "dst",
                    Some(json!({"folds": "first"})),
                    "bad-request",
                    "dst.folds",
                    "unknown member `folds`; did you mean `fold`?",
                ),
                // An `id` is one of the request alone.
                (
                    "dst",
                    Some(json!({"id": 1})),
                    "bad-request",
                    "dst.id",
                    "unknown member `id`; expected `gap` or `fold`",
                ),
            ],
        );
    }
    // Whole is whole, however it is written; the schema thinks so too.
    for count in [json!(2.0), json!(0.2e1)] {
        assert_eq!(result(&with(&next(), "count", count))["occurrences"].as_array().unwrap().len(), 2);
    }
    let most = result(&with(&next(), "count", json!(COUNT_MAX)));
    assert_eq!(most["occurrences"].as_array().unwrap().len(), 10_000);
}

#[test]
fn the_ojs_dialect_takes_the_zones_of_places_only() {
    let ojs = with(&next(), "dialect", json!("ojs"));
    for zone in ["UTC", "Etc/UTC", "Europe/Paris", "America/Argentina/Ushuaia", "US/Pacific"] {
        result(&with(&ojs, "timezone", json!(zone)));
    }
    for zone in ["EST", "MST", "EST5EDT", "CET", "GMT", "Japan", "Etc/GMT", "Etc/GMT+5", "Etc/Zulu"] {
        for op in ["next", "prev"] {
            let found = super::error(&with(&with(&ojs, "timezone", json!(zone)), "op", json!(op)));
            assert_eq!(
                (&found["code"], &found["field"]),
                (&json!("unknown-timezone"), &json!("timezone")),
                "{zone}"
            );
        }
        // The others take every name, also right after it was refused.
        for dialect in ["kron", "posix"] {
            result(&with(&with(&next(), "dialect", json!(dialect)), "timezone", json!(zone)));
        }
    }
    // What was found for one dialect is not found for another.
    let lines = ["kron", "ojs", "kron"]
        .map(|dialect| with(&with(&next(), "dialect", json!(dialect)), "timezone", json!("CET")).to_string());
    let told: Vec<_> = super::answers(&lines.join("\n")).iter().map(|answer| answer["ok"].clone()).collect();
    assert_eq!(told, [true, false, true]);
}
