//! `parse`: what an expression means, or where it is wrong.

use serde_json::json;

use super::{error, refused, result, with};

#[test]
fn parse_gives_the_canonical_spelling_a_sentence_and_what_surprises() {
    let request = json!({"id": "a", "op": "parse", "dialect": "kron", "expr": "* 2 * * MON-FRI"});
    assert_eq!(
        result(&request),
        json!({
            "canonical": "* 2 * * 1-5",
            "description": "Every minute from 02:00 to 02:59 on weekdays",
            "warnings": [{
                "code": "every-minute",
                "message": "this runs 60 times a day: every minute of the hour 2",
                "span": {"start": 0, "end": 3},
                "help": "for once a day at 2:00 write `0 2`",
            }],
        })
    );
    for (dialect, expr, canonical) in [
        ("posix", "00 2 * * *", "0 2 * * *"),
        ("ojs", "@daily", "0 0 * * *"),
        ("ojs", "@every 90m", "@every 1h30m"),
    ] {
        let request = with(&with(&request, "dialect", json!(dialect)), "expr", json!(expr));
        assert_eq!(result(&request)["canonical"], canonical);
    }
}

#[test]
fn parse_says_where_and_why_not() {
    let request = json!({"id": 7, "op": "parse", "dialect": "kron", "expr": "0 25 * * *"});
    assert_eq!(
        error(&request),
        json!({
            "code": "cron-range",
            "message": "expected a number from 0 to 23, but found `25`",
            "field": "expr",
            "span": {"start": 2, "end": 4},
        })
    );
    refused(
        &request,
        &[
            (
                "expr",
                Some(json!("0 0 30 2 *")),
                "cron-never",
                "expr",
                "this will never match: February has no day 30",
            ),
            (
                "expr",
                Some(json!("0 22-6 * * *")),
                "cron-reversed",
                "expr",
                "expected a range that ascends, but found `22-6`; write `22-23,0-6`",
            ),
            ("expr", None, "bad-request", "expr", "missing member `expr`"),
            ("expr", Some(json!(null)), "bad-request", "expr", "missing member `expr`"),
            ("expr", Some(json!(5)), "bad-request", "expr", "expected a string, but found a number"),
            ("expr", Some(json!(["*"])), "bad-request", "expr", "expected a string, but found an array"),
            (
                "dialect",
                Some(json!("cron")),
                "bad-value",
                "dialect",
                "expected `posix`, `kron` or `ojs`, but found `cron`; did you mean `kron`?",
            ),
            ("exp", Some(json!("")), "bad-request", "exp", "unknown member `exp`; did you mean `expr`?"),
            (
                "timezone",
                Some(json!("UTC")),
                "bad-request",
                "timezone",
                "unknown member `timezone`; expected `dialect` or `expr`",
            ),
        ],
    );
}
