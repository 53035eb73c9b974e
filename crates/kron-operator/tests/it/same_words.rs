//! A mistake is told in the same words in a `KronJob` and in a krontab.

use kron_operator::api::KronJobSpec;
use kron_operator::definition::Definition;
use krontab::{Krontab, Problem, Source, Zones};
use serde_json::{Value, json};

/// What krontab says about a line.
fn krontab(line: &str) -> Vec<String> {
    let source = Source::new("/f").unwrap();
    let text = format!("{line} name=x command=/bin/true\n");
    let parsed = Krontab::parse(&text, &source, &Zones::bundled());
    let told = |problem: &Problem| match problem.help() {
        Some(help) => format!("{} ({help})", problem.message()),
        None => problem.message().to_owned(),
    };
    parsed.problems.iter().filter(|problem| problem.is_error()).map(told).collect()
}

/// What the operator says about a spec, without the places.
fn kronjob(spec: Value) -> Vec<(String, String)> {
    let mut spec = spec;
    spec["jobTemplate"] = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}});
    let spec: KronJobSpec = serde_json::from_value(spec).unwrap();
    let flaws = Definition::read(&spec, "ns/x", &Zones::bundled()).err().unwrap_or_default();
    flaws
        .iter()
        .map(|flaw| (flaw.field.clone(), flaw.to_string().split_once(": ").unwrap().1.to_owned()))
        .collect()
}

#[test]
fn both_say_the_same() {
    for (line, spec, field) in [
        ("61 * * * *", json!({"schedule": "61 * * * *"}), "spec.schedule"),
        ("0 25 32 * *", json!({"schedule": "0 25 32 * *"}), "spec.schedule"),
        ("0 0 30 2 *", json!({"schedule": "0 0 30 2 *"}), "spec.schedule"),
        ("5/10 * * * *", json!({"schedule": "5/10 * * * *"}), "spec.schedule"),
        ("@dayly", json!({"schedule": "@dayly"}), "spec.schedule"),
        ("@every 0s", json!({"schedule": "@every 0s"}), "spec.schedule"),
        ("\"daily arond 14:00\"", json!({"schedule": "daily arond 14:00"}), "spec.schedule"),
        ("\"every 61 hours\"", json!({"schedule": "every 61 hours"}), "spec.schedule"),
        (
            "@daily @tz(Europe/Pariss)",
            json!({"schedule": "@daily", "timezone": "Europe/Pariss"}),
            "spec.timezone",
        ),
        (
            "@daily @win(after,1x)",
            json!({"schedule": "@daily", "window": {"duration": "1x"}}),
            "spec.window.duration",
        ),
        (
            "@daily @win(after,3d)",
            json!({"schedule": "@daily", "window": {"duration": "3d"}}),
            "spec.window.duration",
        ),
        (
            "@daily @win(after,-5m)",
            json!({"schedule": "@daily", "window": {"duration": "-5m"}}),
            "spec.window.duration",
        ),
        (
            "@daily @win(after,9999h)",
            json!({"schedule": "@daily", "window": {"duration": "9999h"}}),
            "spec.window.duration",
        ),
        (
            "@daily @dist(gauss)",
            json!({"schedule": "@daily", "distribution": {"name": "gauss"}}),
            "spec.distribution.name",
        ),
        (
            "@daily @win(after,1h) @dist(skewLate,shap=2)",
            json!({"schedule": "@daily", "window": {"duration": "1h"}, "distribution": {"name": "skewLate", "params": {"shap": "2"}}}),
            "spec.distribution.params",
        ),
        (
            "@daily @win(after,1h) @dist(skewLate,shape=-2)",
            json!({"schedule": "@daily", "window": {"duration": "1h"}, "distribution": {"name": "skewLate", "params": {"shape": "-2"}}}),
            "spec.distribution.params.shape",
        ),
        (
            "@daily @win(after,1h) @only(hours=25)",
            json!({"schedule": "@daily", "window": {"duration": "1h"}, "constraints": {"only": [{"hours": "25"}]}}),
            "spec.constraints.only[0].hours",
        ),
        (
            "@daily @win(after,1h) @avoid(dow=FRI-MON)",
            json!({"schedule": "@daily", "window": {"duration": "1h"}, "constraints": {"avoid": [{"dow": "FRI-MON"}]}}),
            "spec.constraints.avoid[0].dow",
        ),
        (
            "@daily @policy(deadline=soon)",
            json!({"schedule": "@daily", "policy": {"deadline": "soon"}}),
            "spec.policy.deadline",
        ),
        (
            "@daily @policy(deadline=-1s)",
            json!({"schedule": "@daily", "policy": {"deadline": "-1s"}}),
            "spec.policy.deadline",
        ),
    ] {
        let (theirs, ours) = (krontab(line), kronjob(spec));
        assert!(!theirs.is_empty(), "krontab takes {line}");
        assert_eq!(ours.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>(), theirs, "{line}");
        assert!(ours.iter().all(|(place, _)| place == field), "{line}: {ours:?}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let flaws = kronjob(
        json!({"schedule": "61 * * * *", "timezone": "X", "window": {"duration": "?"}, "policy": {"deadline": "?"}}),
    );
    let fields: Vec<&str> = flaws.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["spec.timezone", "spec.schedule", "spec.window.duration", "spec.policy.deadline"]);
}

#[test]
fn what_waits_in_a_status_is_bounded() {
    let flaws = kronjob(json!({"schedule": "@every 1s", "window": {"duration": "1h"}}));
    assert_eq!(
        flaws[0].1,
        "more than 1000 windows of this job would be open at once (let it run less often, or make the window shorter)"
    );
}

#[test]
fn a_phrase_needs_no_quotes_and_may_have_them() {
    for schedule in ["daily around 14:00", "\"daily around 14:00\"", "* * * * *", "@every 5m", "@hourly"] {
        assert_eq!(kronjob(json!({"schedule": schedule})), [], "{schedule}");
    }
    let both = kronjob(json!({"schedule": "daily around 14:00 utc+2", "timezone": "Europe/Paris"}));
    assert_eq!(
        both[0].1,
        "this phrase has a UTC offset, and the KronJob has a `timezone` (keep one of them)"
    );
}
