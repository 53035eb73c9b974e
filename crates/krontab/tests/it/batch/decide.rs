//! `decide`: when in its window a period runs.

use serde_json::{Value, json};

use super::{answers, error, refused, result, with};

pub(super) fn decide() -> Value {
    json!({"id": 1, "op": "decide", "identity": "demo/alpha", "nominal": "2026-05-04T06:00:00Z",
        "timezone": "Europe/Berlin", "window": {"mode": "after", "duration": "2h"},
        "distribution": {"name": "uniform", "params": {}}, "seed": {"strategy": "stable", "salt": "s1"}})
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
        include_str!("../../../../kron-core/tests/it/data/kron/v1.json"),
        include_str!("../../../../kron-core/tests/it/data/kron/v2.json"),
        include_str!("../../../../kron-core/tests/it/data/kron/v3.json"),
        include_str!("../../../../kron-core/tests/it/data/kron/v4.json"),
        include_str!("../../../../kron-core/tests/it/data/kron/v5.json"),
        include_str!("../../../../kron-core/tests/it/data/kron/v6.json"),
        include_str!("../../../../kron-core/tests/it/data/kron/v7.json"),
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
