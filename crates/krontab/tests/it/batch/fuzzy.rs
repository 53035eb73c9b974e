//! `fuzzy` and `scatter`: a phrase becomes a time.

use serde_json::{Value, json};

use super::{error, refused, result, with};

#[test]
fn fuzzy_and_scatter_make_a_time_of_a_phrase() {
    let fuzzy = json!({"id": 1, "op": "fuzzy", "phrase": "Daily around 2pm"});
    let phrased = result(&fuzzy);
    assert_eq!(phrased, json!({"placeholder": "FUZZY:DAILY_AROUND:14:0 * * *", "warnings": []}));
    let scatter =
        json!({"id": 2, "op": "scatter", "placeholder": phrased["placeholder"], "identifier": "a/b"});
    let scattered = result(&scatter);
    assert_eq!(scattered.as_object().unwrap().len(), 1);
    let parse = json!({"id": 3, "op": "parse", "dialect": "posix", "expr": scattered["cron"]});
    assert_eq!(result(&parse)["canonical"], scattered["cron"]);

    let moved = result(&with(&fuzzy, "phrase", json!("weekly on monday around 1am utc+9")));
    assert_eq!(moved["warnings"][0]["code"], "weekday-moved");
    let note = with(&scatter, "placeholder", json!("FUZZY:WEEKLY:1:AROUND:0:0 * * 1"));
    assert_eq!(result(&with(&note, "identifier", json!("x")))["note"]["code"], "weekday-moved");

    // Kron's own phrases have to be asked for, and not all of them are cron.
    let exactly = with(&fuzzy, "phrase", json!("bi-weekly exactly"));
    assert_eq!(error(&exactly)["code"], "ERR-SYNTAX-005");
    assert!(error(&exactly)["message"].as_str().unwrap().contains("`--extensions`"));
    let zoned = error(&with(&fuzzy, "phrase", json!("daily around 14:00 Europe/Paris")));
    let message = zoned["message"].as_str().unwrap();
    assert!(message.contains("`@tz(Europe/Paris)`") && message.contains("`--tz Europe/Paris`"), "{message}");
    let placeholder = result(&with(&exactly, "extensions", json!(true)))["placeholder"].clone();
    let error = error(&with(&scatter, "placeholder", placeholder));
    assert_eq!((error["code"].as_str(), error["field"].as_str()), (Some("not-cron"), Some("placeholder")));
}

#[test]
fn fuzzy_and_scatter_keep_the_codes_of_the_specification() {
    let fuzzy = json!({"id": 1, "op": "fuzzy", "phrase": "daily around 25:00"});
    assert_eq!(
        error(&fuzzy),
        json!({
            "code": "ERR-SYNTAX-002",
            "message": "Invalid time format '25:00' in 'daily around 25:00'\nTime must be in 24-hour format (HH:MM, 0-23 hours) or 12-hour format with am/pm",
            "cause": {"code": "ERR-TIME-001", "message": "the hour is not from 0 to 23"},
            "field": "phrase",
            "span": {"start": 13, "end": 18},
        })
    );
    assert_eq!(error(&with(&fuzzy, "phrase", json!("daily around")))["cause"], Value::Null);
    refused(
        &fuzzy,
        &[
            ("phrase", Some(json!({})), "bad-request", "phrase", "expected a string, but found an object"),
            (
                "extensions",
                Some(json!("on")),
                "bad-request",
                "extensions",
                "expected `true` or `false`, but found a string",
            ),
        ],
    );
    let scatter = json!({"id": 2, "op": "scatter", "placeholder": "FUZZY:DAILY * * *", "identifier": ""});
    let code = |request: &Value| (error(request)["code"].clone(), error(request)["field"].clone());
    assert_eq!(code(&scatter), (json!("ERR-IDENTIFIER-001"), json!("identifier")));
    let daily = with(&with(&scatter, "identifier", json!("a")), "placeholder", json!("DAILY"));
    assert_eq!(code(&daily), (json!("ERR-PLACEHOLDER-001"), json!("placeholder")));
}
