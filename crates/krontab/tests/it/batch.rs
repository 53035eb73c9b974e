//! Lines of requests and the lines that answer them. Every answer that a test sees is also held against
//! `docs/reference/batch.schema.json`, and so is every request that was understood.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::rc::Rc;
use std::sync::LazyLock;

use jsonschema::Validator;
use krontab::batch::{COUNT_MAX, LINE_BYTES_MAX, run};
use krontab::{Krontab, Source, Zones};
use proptest::prelude::*;
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../../docs/reference/batch.schema.json");
const REFERENCE: &str = include_str!("../../../../docs/reference/batch.md");

static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);

/// A validator of one of the schema's definitions.
fn validator(definition: &str) -> Validator {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert!(!schema["$defs"][definition].is_null(), "there is no definition {definition}");
    let root = schema.as_object_mut().unwrap();
    root.remove("anyOf");
    root.insert("$ref".into(), format!("#/$defs/{definition}").into());
    jsonschema::validator_for(&schema).unwrap()
}

static REQUEST: LazyLock<Validator> = LazyLock::new(|| validator("request"));
static ANSWER: LazyLock<Validator> = LazyLock::new(|| validator("answer"));

fn answers_of_bytes(input: &[u8]) -> Vec<Value> {
    let mut output = Vec::new();
    run(input, &mut output, &ZONES).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(output.is_empty() || output.ends_with('\n'));
    let answers = output.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        if let Err(error) = ANSWER.validate(&answer) {
            panic!("{error}\n{line}");
        }
        answer
    });
    answers.collect()
}

fn answers(input: &str) -> Vec<Value> {
    answers_of_bytes(input.as_bytes())
}

/// The result of a request, which is also one for the schema.
fn result(request: &Value) -> Value {
    if let Err(error) = REQUEST.validate(request) {
        panic!("{error}\n{request}");
    }
    let answers = answers(&request.to_string());
    let [answer] = &*answers else { panic!("{answers:?}") };
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(answer["id"], request["id"]);
    answer["result"].clone()
}

/// Why a request has none. What its shape alone tells, the schema refuses too.
fn error(request: &Value) -> Value {
    let answers = answers(&request.to_string());
    let [answer] = &*answers else { panic!("{answers:?}") };
    assert_eq!(answer["ok"], false, "{answer}");
    assert_eq!(answer["id"], request["id"]);
    let error = answer["error"].clone();
    if ["bad-request", "bad-value", "unknown-op"].contains(&error["code"].as_str().unwrap()) {
        assert!(!REQUEST.is_valid(request), "the schema takes {request}");
    }
    error
}

/// The request with one member replaced, or left out; a dot leads into an object.
fn with(request: &Value, path: &str, value: impl Into<Option<Value>>) -> Value {
    let mut request = request.clone();
    let (within, name) = path.rsplit_once('.').map_or(("", path), |(within, name)| (within, name));
    let mut object = &mut request;
    for step in within.split('.').filter(|step| !step.is_empty()) {
        object = &mut object[step];
    }
    let object = object.as_object_mut().unwrap();
    match value.into() {
        Some(value) => object.insert(name.into(), value),
        None => object.remove(name),
    };
    request
}

/// Asserts for each change of a request how it is refused: code, field and message.
fn refused(request: &Value, changes: &[(&str, Option<Value>, &str, &str, &str)]) {
    for (path, value, code, field, message) in changes {
        let error = error(&with(request, path, value.clone()));
        let found =
            [&error["code"], &error["field"], &error["message"]].map(|text| text.as_str().unwrap_or(""));
        assert_eq!(found, [*code, *field, *message], "{path}: {value:?}");
    }
}

fn next() -> Value {
    json!({"id": 1, "op": "next", "dialect": "kron", "expr": "30 2 * * *", "timezone": "Europe/Paris",
        "at": "2026-03-28T12:00:00Z", "count": 2})
}

fn decide() -> Value {
    json!({"id": 1, "op": "decide", "identity": "demo/alpha", "nominal": "2026-05-04T06:00:00Z",
        "timezone": "Europe/Berlin", "window": {"mode": "after", "duration": "2h"},
        "distribution": {"name": "uniform", "params": {}}, "seed": {"strategy": "stable", "salt": "s1"}})
}

fn evaluate() -> Value {
    json!({"id": 1, "op": "evaluate", "identity": "a/b", "window": {"mode": "after", "duration": "10m"},
        "dialect": "kron", "expr": "0 * * * *", "lastHandled": "2026-05-04T05:00:00Z",
        "policy": {"concurrency": "forbid", "deadline": "1h", "suspend": false},
        "active": false, "now": "2026-05-04T06:30:00Z"})
}

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
    let most = result(&with(&next(), "count", json!(COUNT_MAX)));
    assert_eq!(most["occurrences"].as_array().unwrap().len(), 10_000);
}

#[test]
fn decide_says_everything_that_a_decision_follows_from() {
    let request = with(&decide(), "distribution", json!({"name": "skewLate", "params": {"shape": "2.5"}}));
    let request = with(&with(&request, "only", json!("hours=6-9")), "avoid", json!("dow=SUN;dow=SAT"));
    let decision = result(&with(&request, "seed", json!({"strategy": "daily", "salt": "t\u{e9}\"m"})));
    let expected = json!({
        "periodId": "2026-05-04T06:00:00Z",
        "nominalTime": "2026-05-04T06:00:00Z",
        "job": "demo/alpha",
        "periodStart": "2026-05-04T06:00:00Z",
        "windowStart": "2026-05-04T06:00:00Z",
        "windowEnd": "2026-05-04T08:00:00Z",
        "windowEndIsOpen": false,
        "mode": "after",
        "distribution": "skewLate",
        "seedStrategy": "daily",
        "periodKey": "2026-05-04",
        "seedMaterial": "demo/alpha\n2026-05-04\nt\u{e9}\"m",
        "seedHash": decision["seedHash"],
        "chosenTime": decision["chosenTime"],
        "unschedulable": false,
        "attemptCount": 1,
        "maxAttempts": 64,
        "identity": "demo/alpha",
        "timezone": "Europe/Berlin",
        "distributionParams": {"shape": "2.5"},
        "salt": "t\u{e9}\"m",
        "constraints": "only(hours=6-9) avoid(dow=SUN,SAT)",
    });
    assert_eq!(decision, expected);
}

/// `kron.md`, appendix A.
#[test]
fn decide_agrees_with_the_numbers_of_the_design() {
    let chosen = |request: &Value| result(request)["chosenTime"].as_str().unwrap().to_owned();
    let e1 = result(&decide());
    assert_eq!(e1["chosenTime"], "2026-05-04T06:56:47Z");
    assert_eq!(e1["seedHash"], "247ecbef7951e20e1af04d61af524623ad27af132fd63249124207d3097af906");
    let utc = with(&decide(), "timezone", None);
    let normal = with(&utc, "distribution", json!({"name": "normal", "params": {"sigma": "10m"}}));
    assert_eq!(chosen(&normal), "2026-05-04T06:59:20Z");
    let params = json!({"lambda": "3", "dir": "late"});
    let exponential = with(&utc, "distribution", json!({"name": "exponential", "params": params}));
    assert_eq!(chosen(&exponential), "2026-05-04T07:36:07Z");

    // Defaults, another spelling of the time, and a word that is printed as another.
    let e3 = json!({"id": 3, "op": "decide", "identity": "demo/gamma", "nominal": "2027-01-01T11:00:00+01:00",
        "window": {"mode": "center", "duration": "5s"}, "distribution": {"name": "skewEarly"},
        "seed": {"strategy": "weekly"}, "only": null});
    let decision = result(&e3);
    assert_eq!(decision["mode"], "around");
    assert_eq!(decision["periodKey"], "2026-W53");
    assert_eq!(decision["timezone"], "UTC");
    assert_eq!(decision["distributionParams"], json!({"shape": "2"}));
    assert_eq!(decision["chosenTime"], "2027-01-01T09:59:58Z");
}

#[test]
fn what_is_unschedulable_has_no_time_and_is_no_error() {
    let decision = result(&with(&decide(), "avoid", json!("hours=0-23")));
    assert_eq!(decision["unschedulable"], true);
    assert_eq!(decision["chosenTime"], "");
    assert_eq!(decision["reason"], "no candidate accepted within MaxAttempts");
    assert_eq!(decision["attemptCount"], 64);
}

#[test]
fn every_public_vector_is_reproduced() {
    let files = [
        include_str!("../../../kron-core/tests/it/data/kron/v1.json"),
        include_str!("../../../kron-core/tests/it/data/kron/v2.json"),
        include_str!("../../../kron-core/tests/it/data/kron/v3.json"),
        include_str!("../../../kron-core/tests/it/data/kron/v4.json"),
        include_str!("../../../kron-core/tests/it/data/kron/v5.json"),
        include_str!("../../../kron-core/tests/it/data/kron/v6.json"),
        include_str!("../../../kron-core/tests/it/data/kron/v7.json"),
    ];
    let mut cases = 0;
    for file in files {
        let file: Value = serde_json::from_str(file).unwrap();
        for case in file["cases"].as_array().unwrap() {
            let (input, expected) = (&case["input"], &case["expected"]);
            let decision = result(&vector_request(input));
            for (name, expected) in expected.as_object().unwrap() {
                let name = if name == "attempts" { "attemptCount" } else { name };
                assert_eq!(decision[name], *expected, "{}: {name}", case["name"]);
            }
            assert_eq!(decision["unschedulable"], expected["unschedulable"].as_bool().unwrap_or(false));
            assert_eq!(decision["job"], input["job"]);
            cases += 1;
        }
    }
    assert_eq!(cases, 22);
}

/// The vectors have constraints as numbers, and everything on one level.
fn vector_request(input: &Value) -> Value {
    let mut distribution = json!({"name": input["distribution"]});
    if let Some(shape) = input["skewShape"].as_f64() {
        distribution["params"] = json!({"shape": shape.to_string()});
    }
    let mut request = json!({
        "id": input["job"],
        "op": "decide",
        "identity": input["identity"],
        "nominal": input["periodStart"],
        "timezone": input["timezone"],
        "window": {"mode": input["mode"], "duration": input["window"]},
        "distribution": distribution,
        "seed": {"strategy": input["seedStrategy"], "salt": input["salt"]},
    });
    for (key, items) in input.as_object().unwrap() {
        for which in ["only", "avoid"] {
            let Some(kind) = key.strip_prefix(which) else { continue };
            let clauses: Vec<String> =
                items.as_array().unwrap().iter().map(|item| clause(kind, item)).collect();
            let before = request[which].as_str().unwrap_or_default();
            request[which] = format!("{before};{}", clauses.join(";")).into();
        }
    }
    request
}

fn clause(kind: &str, item: &Value) -> String {
    let part = |key: &str| item[key].as_u64().unwrap();
    let minute = |minute: u64| format!("{:02}:{:02}", minute / 60, minute % 60);
    let date = |day: u64| format!("{:04}-{:02}-{:02}", day / 10_000, day / 100 % 100, day % 100);
    match kind {
        "Hours" | "Dow" | "Dom" | "Months" => format!("{}={item}", kind.to_lowercase()),
        "Between" => format!("between={}-{}", minute(part("startMinute")), minute(part("endMinute"))),
        "Dates" => format!("dates={}..{}", date(part("startDay")), date(part("endDay"))),
        other => panic!("constraint {other}"),
    }
}

#[test]
fn decide_is_refused_in_these_words() {
    let modes =
        "expected `after`, `around`, `before` or `center`, but found `arround`; did you mean `around`?";
    refused(
        &decide(),
        &[
            ("identity", None, "bad-request", "identity", "missing member `identity`"),
            ("identity", Some(json!("")), "identity", "identity", "expected a name, but found nothing"),
            (
                "identity",
                Some(json!("a\nb")),
                "identity",
                "identity",
                "expected a name without control characters, but found `a\\nb`",
            ),
            ("window", None, "bad-request", "window", "missing member `window`"),
            ("window", Some(json!("1h")), "bad-request", "window", "expected an object, but found a string"),
            ("window.mode", None, "bad-request", "window.mode", "missing member `window.mode`"),
            ("window.mode", Some(json!("arround")), "bad-value", "window.mode", modes),
            (
                "window.duration",
                Some(json!("1d")),
                "bad-duration",
                "window.duration",
                "expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found `d`",
            ),
            (
                "window.duration",
                Some(json!("-1h")),
                "window",
                "window.duration",
                "expected a duration that is not negative, but found `-1h`",
            ),
            (
                "window.duration",
                Some(json!("9000h")),
                "window",
                "window.duration",
                "expected at most 8784h (366 days), but found `9000h`",
            ),
            (
                "window.length",
                Some(json!("1h")),
                "bad-request",
                "window.length",
                "unknown member `length`; expected `mode` or `duration`",
            ),
            (
                "distribution.name",
                Some(json!("unifrom")),
                "distribution",
                "distribution.name",
                "expected `uniform`, `skewEarly`, `skewLate`, `normal` or `exponential`, but found `unifrom`; did you mean `uniform`?",
            ),
            (
                "distribution.params",
                Some(json!({"shape": "2"})),
                "distribution",
                "distribution.params.shape",
                "expected no parameters, but found `shape`",
            ),
            (
                "distribution",
                Some(json!({"name": "skewLate", "params": {"shape": "inf"}})),
                "distribution",
                "distribution.params.shape",
                "expected a number above 0, such as `2.5`, but found `inf`",
            ),
            (
                "distribution",
                Some(json!({"name": "skewLate", "params": {"shape": 2}})),
                "bad-request",
                "distribution.params.shape",
                "expected a string, but found a number",
            ),
            (
                "seed.strategy",
                Some(json!("monthly")),
                "bad-value",
                "seed.strategy",
                "expected `stable`, `daily` or `weekly`, but found `monthly`",
            ),
            (
                "seed.salt",
                Some(json!(true)),
                "bad-request",
                "seed.salt",
                "expected a string, but found a boolean",
            ),
            (
                "only",
                Some(json!("hour=8")),
                "constraint",
                "only",
                "expected `hours`, `dow`, `dom`, `months`, `between`, `date` or `dates`, but found `hour`; did you mean `hours`?",
            ),
            (
                "avoid",
                Some(json!("")),
                "constraint",
                "avoid",
                "expected a clause such as `hours=8-10`, but found nothing",
            ),
            (
                "nominal",
                Some(json!(1_700_000_000)),
                "bad-request",
                "nominal",
                "expected a string, but found a number",
            ),
            (
                "expr",
                Some(json!("@daily")),
                "bad-request",
                "expr",
                "unknown member `expr`; expected `identity`, `nominal`, `timezone`, `window`, `distribution`, `seed`, `only` or `avoid`",
            ),
        ],
    );
    let error = error(&with(&decide(), "only", json!("hours=8;dow=XYZ")));
    assert_eq!(error["span"], json!({"start": 12, "end": 15}));
}

#[test]
fn a_request_does_not_depend_on_the_one_before_it() {
    let odd = with(&decide(), "only", json!("hours=7"));
    let wrong = with(&decide(), "window.mode", json!("sideways"));
    let alone: Vec<Value> =
        [&decide(), &odd, &wrong].into_iter().map(|one| answers(&one.to_string()).remove(0)).collect();
    let all = [&decide(), &odd, &odd, &wrong, &odd, &decide()].map(Value::to_string).join("\n");
    let expected = [0, 1, 1, 2, 1, 0].map(|one: usize| alone[one].clone());
    assert_eq!(answers(&all), expected);
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
            "field": "phrase",
            "span": {"start": 13, "end": 18},
        })
    );
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

#[test]
fn lint_tells_what_the_library_tells() {
    let lint = |text: &str| json!({"id": 1, "op": "lint", "text": text});
    assert_eq!(
        result(&lint("# none\n@daily name=a command=/bin/a\n@hourly name=b command=/bin/b\n")),
        json!({"jobs": ["a", "b"], "warnings": []})
    );
    let warned = result(&lint("* */15 * * * name=a command=/bin/a\n"));
    assert_eq!(warned["warnings"][0]["code"], "every-minute");
    assert_eq!(warned["warnings"][0]["severity"], "warning");

    let text =
        "@daily name=a command=/bin/a\n* 2 * * * name=b command=/bin/b\n @dayly name=c command=/bin/c\n";
    let found = error(&lint(text));
    assert_eq!((found["code"].as_str(), found["field"].as_str()), (Some("krontab"), Some("text")));
    assert_eq!(found["message"], "the krontab has errors");
    let problems = Krontab::parse(text, &Source::new("/f").unwrap(), &ZONES).problems;
    let told = found["problems"].as_array().unwrap();
    assert_eq!(told.len(), problems.len());
    for (told, problem) in told.iter().zip(problems) {
        assert_eq!(told["line"], problem.line());
        assert_eq!(told["column"], problem.column());
        assert_eq!(told["code"], problem.code().name());
        assert_eq!(told["message"], problem.message());
    }
    assert_eq!(told[1]["line"], 3);
    assert_eq!(told[1]["column"], 2);

    refused(&lint(""), &[("text", None, "bad-request", "text", "missing member `text`")]);
    assert_eq!(result(&lint(""))["jobs"], json!([]));
}

#[test]
fn what_is_no_request_is_answered_too() {
    for (line, id, code, message) in [
        ("{", json!(null), "bad-json", "EOF while parsing an object at column 1"),
        ("{\"id\":1,\"op\":}", json!(null), "bad-json", "expected value at column 14"),
        ("[1,", json!(null), "bad-json", "EOF while parsing a value at column 3"),
        ("{} {}", json!(null), "bad-json", "trailing characters at column 4"),
        (" [1]", json!(null), "bad-request", "expected an object, but found an array"),
        ("7", json!(null), "bad-request", "expected an object, but found a number"),
        ("null", json!(null), "bad-request", "expected an object, but found null"),
        ("{}", json!(null), "bad-request", "missing member `op`"),
        ("{\"id\":[1,{\"a\":2}]}", json!([1, {"a": 2}]), "bad-request", "missing member `op`"),
        ("{\"op\":5,\"id\":5}", json!(5), "bad-request", "expected a string, but found a number"),
        (
            "{\"op\":\"prse\",\"id\":\"x\"}",
            json!("x"),
            "unknown-op",
            "expected `parse`, `next`, `prev`, `decide`, `evaluate`, `fuzzy`, `scatter` or `lint`, but found `prse`; did you mean `parse`?",
        ),
        (
            "{\"id\":1,\"op\":\"lint\",\"text\":\"\",\"text\":\"\"}",
            json!(1),
            "bad-request",
            "expected each member once, but found it twice",
        ),
        (
            "{\"id\":1,\"op\":\"lint\",\"id\":2}",
            json!(1),
            "bad-request",
            "expected each member once, but found it twice",
        ),
        // Half a surrogate pair is no text.
        (
            "{\"id\":1,\"op\":\"lint\",\"text\":\"\\ud800\"}",
            json!(1),
            "bad-json",
            "unexpected end of hex escape at column 8",
        ),
    ] {
        let answer = answers(line).remove(0);
        assert_eq!(answer["id"], id, "{line}");
        assert_eq!(answer["error"]["code"], code, "{line}");
        assert_eq!(answer["error"]["message"], message, "{line}");
    }
    let many: Vec<String> = (0..100).map(|n| format!("\"m{n}\":{n}")).collect();
    let answer = answers(&format!("{{{},\"id\":3}}", many.join(","))).remove(0);
    assert_eq!(answer["id"], 3);
    assert_eq!(answer["error"]["message"], "expected at most 64 members, but found more");
}

#[test]
fn an_id_comes_back_as_it_was_sent() {
    for id in [
        "1.0",
        "1e400",
        "-0",
        "\"\\u00e9\\ud83d\\ude00\"",
        "{\"b\":1,\"a\":[]}",
        "[ ]",
        "true",
        "null",
        "12345678901234567890123",
    ] {
        let mut output = Vec::new();
        run(format!("{{\"id\":{id},\"op\":\"lint\",\"text\":\"\"}}").as_bytes(), &mut output, &ZONES)
            .unwrap();
        let expected = format!("{{\"id\":{id},\"ok\":true,\"result\":{{\"jobs\":[],\"warnings\":[]}}}}\n");
        assert_eq!(String::from_utf8(output).unwrap(), expected);
    }
    // But for a carriage return, at which some readers would end the line.
    assert_eq!(answers("{\"id\":[1,\r2]}")[0]["id"], json!([1, 2]));
}

#[test]
fn lines_may_end_in_any_way_and_be_empty() {
    let lint = "{\"id\":1,\"op\":\"lint\",\"text\":\"\"}";
    assert_eq!(answers("").len(), 0);
    assert_eq!(answers("\n\r\n \t\n").len(), 0);
    assert_eq!(answers(&format!("{lint}\r\n\n{lint}\n  {lint}  ")).len(), 3);
    assert!(answers(&format!("{lint}\r\n\n{lint}\n  {lint}  ")).iter().all(|answer| answer["ok"] == true));
}

#[test]
fn bytes_that_are_no_text_are_an_error_of_their_line() {
    let found = answers_of_bytes(b"{\"id\":1}\n{\"id\":\"\xFF\"}\n{\"id\":2}\n");
    assert_eq!(found.len(), 3);
    assert_eq!(found[1]["error"]["code"], "bad-utf8");
    assert_eq!(found[1]["error"]["span"]["start"], 7);
    assert_eq!(found[1]["id"], json!(null));
    assert_eq!(found[2]["id"], 2);
}

#[test]
fn a_line_has_a_longest_length() {
    let lint = "{\"id\":1,\"op\":\"lint\",\"text\":\"\"}";
    let padded = |length: usize| format!("{lint}{}", " ".repeat(length - lint.len()));
    for capacity in [100, 8 << 10, 4 << 20] {
        let input = [&padded(LINE_BYTES_MAX), &padded(LINE_BYTES_MAX + 1), &padded(3 * LINE_BYTES_MAX), lint]
            .map(String::from)
            .join("\n");
        let mut output = Vec::new();
        run(BufReader::with_capacity(capacity, input.as_bytes()), &mut output, &ZONES).unwrap();
        let found: Vec<Value> = String::from_utf8(output)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            found.iter().map(|answer| answer["ok"] == true).collect::<Vec<_>>(),
            [true, false, false, true]
        );
        assert_eq!(found[1]["id"], json!(null));
        assert_eq!(found[1]["error"]["code"], "line-too-long");
        assert_eq!(found[1]["error"]["message"], "expected a line of at most 1048576 bytes, but found more");
    }
}

/// A peer that asks one thing at a time, and only when it has its answer.
#[test]
fn who_waits_for_an_answer_gets_it() {
    #[derive(Clone, Default)]
    struct Wire {
        written: Rc<RefCell<Vec<u8>>>,
        flushed: Rc<RefCell<usize>>,
    }
    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            *self.flushed.borrow_mut() = self.written.borrow().iter().filter(|byte| **byte == b'\n').count();
            Ok(())
        }
    }
    struct Peer {
        wire: Wire,
        asked: usize,
    }
    impl Read for Peer {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert_eq!(*self.wire.flushed.borrow(), self.asked, "a question is without its answer");
            if self.asked == 5 {
                return Ok(0);
            }
            self.asked += 1;
            let line = b"{\"op\":\"lint\",\"text\":\"\"}\n";
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }
    let wire = Wire::default();
    run(BufReader::new(Peer { wire: wire.clone(), asked: 0 }), wire.clone(), &ZONES).unwrap();
    assert_eq!(*wire.flushed.borrow(), 5);
}

#[test]
fn a_peer_that_has_gone_ends_it_quietly_and_other_trouble_does_not() {
    struct Broken(ErrorKind);
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(run(&b"{}\n"[..], Broken(ErrorKind::BrokenPipe), &ZONES).is_ok());
    let full = run(&b"{}\n"[..], Broken(ErrorKind::StorageFull), &ZONES);
    assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);

    struct Failing(u32);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(ErrorKind::Interrupted.into()),
                2 => {
                    buffer[..3].copy_from_slice(b"{}\n");
                    Ok(3)
                }
                _ => Err(ErrorKind::TimedOut.into()),
            }
        }
    }
    let mut output = Vec::new();
    let failed = run(BufReader::new(Failing(0)), &mut output, &ZONES);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(output.iter().filter(|byte| **byte == b'\n').count(), 1, "what was asked has its answer");
}

/// The reference names every code that the schema has, and its examples are what they say.
#[test]
fn the_reference_is_true() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let codes = schema["$defs"]["error"]["properties"]["code"]["anyOf"][0]["enum"].as_array().unwrap();
    for code in codes {
        assert!(
            REFERENCE.contains(&format!("`{}`", code.as_str().unwrap())),
            "{code} is not in the reference"
        );
    }
    let mut examples = 0;
    for block in REFERENCE.split("```json\n").skip(1) {
        let lines: Vec<&str> = block.split("```").next().unwrap().lines().collect();
        for pair in lines.chunks(2) {
            let [request, answer] = pair else { panic!("{pair:?} is half an example") };
            let mut output = Vec::new();
            run(request.as_bytes(), &mut output, &ZONES).unwrap();
            assert_eq!(String::from_utf8(output).unwrap().trim_end(), *answer);
            examples += 1;
        }
    }
    assert!(examples >= 8, "there are only {examples} examples");
}

/// How many lines of the input ask something.
fn asking(input: &[u8]) -> usize {
    input.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count()
}

/// Requests with a few characters changed.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let lines = [
        next(),
        decide(),
        evaluate(),
        json!({"id": 1, "op": "parse", "dialect": "ojs", "expr": "0 0 L * 5#3"}),
        json!({"id": 1, "op": "fuzzy", "phrase": "weekly on monday between 9am utc-5 and 17:00", "extensions": true}),
        json!({"id": 1, "op": "scatter", "placeholder": "FUZZY:HOURLY:2 * * *", "identifier": "x"}),
        json!({"id": 1, "op": "lint", "text": "@daily @win(after,1h) name=a command=\"/bin/a b\"\n"}),
    ];
    let texts: Vec<Vec<u8>> = lines.iter().map(|line| line.to_string().into_bytes()).collect();
    let characters = b"\"{}[]:,\\0159-eTZ.;=*/@#LW \tan\n\r\x00\xFF\xC3".to_vec();
    let changes =
        prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(characters), 0..3), 0..4);
    (prop::sample::select(texts), changes).prop_map(|(mut text, changes)| {
        for (at, character, how) in changes {
            let at = at.index(text.len());
            match how {
                0 => text[at] = character,
                1 => text.insert(at, character),
                _ => drop(text.remove(at)),
            }
        }
        text
    })
}

proptest! {
    #[test]
    fn any_bytes_have_one_answer_for_each_line(input in prop::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert_eq!(answers_of_bytes(&input).len(), asking(&input));
    }

    #[test]
    fn damaged_requests_have_one_answer_each(lines in prop::collection::vec(damaged(), 1..6)) {
        let input = lines.join(&b'\n');
        prop_assert_eq!(answers_of_bytes(&input).len(), asking(&input));
    }

    #[test]
    fn however_the_input_comes_the_answers_are_the_same(
        lines in prop::collection::vec(damaged(), 1..6),
        capacity in 1_usize..400,
    ) {
        let input = lines.join(&b'\n');
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        run(&*input, &mut whole, &ZONES).unwrap();
        let mut reader = BufReader::with_capacity(capacity, &*input);
        prop_assert!(reader.fill_buf().unwrap().len() <= capacity);
        run(reader, &mut pieces, &ZONES).unwrap();
        prop_assert_eq!(whole, pieces);
    }
}
