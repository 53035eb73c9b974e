//! The golden vectors of the public Kron project, in `data/kron`.

use kron_core::{Constraints, Distribution, SeedStrategy, WindowMode, decide};
use serde_json::Value;

use crate::jobs::{at, job};

const FILES: [(&str, &str); 7] = [
    ("v1", include_str!("data/kron/v1.json")),
    ("v2", include_str!("data/kron/v2.json")),
    ("v3", include_str!("data/kron/v3.json")),
    ("v4", include_str!("data/kron/v4.json")),
    ("v5", include_str!("data/kron/v5.json")),
    ("v6", include_str!("data/kron/v6.json")),
    ("v7", include_str!("data/kron/v7.json")),
];

/// The number of cases in all files, so that none is lost unnoticed.
const CASES: usize = 22;

#[test]
fn every_public_vector_is_reproduced() {
    let mut cases = 0;
    for (file, text) in FILES {
        let file_value: Value = serde_json::from_str(text).unwrap();
        for case in file_value["cases"].as_array().unwrap() {
            check(&format!("{file}/{}", case["name"]), &case["input"], &case["expected"]);
            cases += 1;
        }
    }
    assert_eq!(cases, CASES);
}

fn check(name: &str, input: &Value, expected: &Value) {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let known = [
        "identity",
        "job",
        "periodStart",
        "timezone",
        "window",
        "mode",
        "distribution",
        "skewShape",
        "seedStrategy",
        "salt",
        "onlyHours",
        "onlyDow",
        "onlyDom",
        "onlyMonths",
        "onlyDates",
        "avoidBetween",
        "avoidDom",
        "avoidMonths",
        "avoidDates",
    ];
    for key in input.as_object().unwrap().keys() {
        assert!(known.contains(&key.as_str()), "{name} has an input this test does not read: {key}");
    }
    let shape = input["skewShape"].as_f64().unwrap_or(2.0);
    let distribution = match text("distribution") {
        "uniform" => Distribution::Uniform,
        "skewEarly" => Distribution::SkewEarly { shape },
        "skewLate" => Distribution::SkewLate { shape },
        other => panic!("{name}: distribution {other}"),
    };
    let mode = match text("mode") {
        "after" => WindowMode::After,
        "around" | "center" => WindowMode::Around,
        "before" => WindowMode::Before,
        other => panic!("{name}: mode {other}"),
    };
    let strategy = match text("seedStrategy") {
        "stable" => SeedStrategy::Stable,
        "daily" => SeedStrategy::Daily,
        "weekly" => SeedStrategy::Weekly,
        other => panic!("{name}: seed strategy {other}"),
    };
    let zone = input["timezone"].as_str().unwrap_or("UTC");
    let job = job(text("identity"), zone)
        .window(mode, text("window").parse().unwrap())
        .distribution(distribution)
        .seed(strategy, text("salt"))
        .constraints(constraints(input))
        .build()
        .unwrap();

    let decision = decide(&job, at(text("periodStart")));
    let expected_text = |key: &str| expected[key].as_str().unwrap_or_default();
    let printed = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    assert_eq!(decision.period_id().to_string(), expected_text("periodId"), "{name}");
    assert_eq!(decision.period_key().to_string(), expected_text("periodKey"), "{name}");
    assert_eq!(decision.window_start().to_string(), expected_text("windowStart"), "{name}");
    assert_eq!(decision.window_end().to_string(), expected_text("windowEnd"), "{name}");
    assert_eq!(decision.seed_hash().to_string(), expected_text("seedHash"), "{name}");
    assert_eq!(printed(decision.chosen()), expected_text("chosenTime"), "{name}");
    assert_eq!(u64::from(decision.attempts()), expected["attempts"].as_u64().unwrap(), "{name}");
    assert_eq!(decision.is_unschedulable(), expected["unschedulable"].as_bool().unwrap_or(false), "{name}");
    assert_eq!(decision.reason().unwrap_or_default(), expected_text("reason"), "{name}");
}

/// The vectors have constraints as numbers; a job has them as text.
fn constraints(input: &Value) -> Constraints {
    let mut constraints = Constraints::default();
    for (key, value) in input.as_object().unwrap() {
        let (only, kind) = if let Some(kind) = key.strip_prefix("only") {
            (true, kind)
        } else if let Some(kind) = key.strip_prefix("avoid") {
            (false, kind)
        } else {
            continue;
        };
        for item in value.as_array().unwrap() {
            let clause = clause(kind, item);
            if only {
                constraints.add_only(&clause).unwrap();
            } else {
                constraints.add_avoid(&clause).unwrap();
            }
        }
    }
    constraints
}

fn clause(kind: &str, item: &Value) -> String {
    let part = |key: &str| item[key].as_u64().unwrap();
    let minute = |minute: u64| format!("{:02}:{:02}", minute / 60, minute % 60);
    let date = |day: u64| format!("{:04}-{:02}-{:02}", day / 10_000, day / 100 % 100, day % 100);
    match kind {
        "Hours" => format!("hours={item}"),
        "Dow" => format!("dow={item}"),
        "Dom" => format!("dom={item}"),
        "Months" => format!("months={item}"),
        "Between" => format!("between={}-{}", minute(part("startMinute")), minute(part("endMinute"))),
        "Dates" => format!("dates={}..{}", date(part("startDay")), date(part("endDay"))),
        other => panic!("constraint {other}"),
    }
}
