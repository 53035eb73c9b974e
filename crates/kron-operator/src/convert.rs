//! `CronJob`s of Kubernetes become `KronJob`s, and every difference in when they fire is found.

use jiff::{SignedDuration, Timestamp};
use kron_schedule::Duration;
use kron_zones::Zones;
use serde_json::{Map, Value, json};

use crate::api::KronJobSpec;
use crate::cronjob::When;
use crate::definition::{Definition, Flaw, identity};

/// A `CronJob` as a `KronJob`.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The resource.
    pub kronjob: Value,
    /// What is not the same, and what to think of.
    pub notes: Vec<String>,
    /// When only one of the two fires, over the span that was compared.
    pub differences: Vec<Difference>,
}

/// A time at which only one of the two fires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Difference {
    /// When.
    pub at: Timestamp,
    /// Whether it is the `CronJob` that fires.
    pub is_cronjob: bool,
}

/// The most differences that are listed.
pub const DIFFERENCES_MAX: usize = 20;

/// The longest deadline that stands for "until the next is due".
const DEADLINE_MAX: i64 = 7 * 24 * 3_600;

/// Converts a `CronJob`, and compares when both fire from a time on, for so many days.
///
/// # Errors
///
/// What cannot be converted, and why.
pub fn convert(cronjob: &Value, zones: &Zones, from: Timestamp, days: u32) -> Result<Converted, String> {
    let name = text(cronjob, "/metadata/name").ok_or("expected metadata.name, but there is none")?;
    let namespace = text(cronjob, "/metadata/namespace").unwrap_or("default");
    let schedule = text(cronjob, "/spec/schedule").ok_or("expected spec.schedule, but there is none")?.trim();
    let template =
        cronjob.pointer("/spec/jobTemplate").ok_or("expected spec.jobTemplate, but there is none")?;
    let mut notes = Vec::new();
    let zone_name = match text(cronjob, "/spec/timeZone") {
        Some(zone) => zone.to_owned(),
        None => {
            notes.push("without timeZone a CronJob follows the zone of kube-controller-manager, which is taken to be UTC".to_owned());
            "UTC".to_owned()
        }
    };
    let when = When::read(schedule)?;
    let concurrency = match text(cronjob, "/spec/concurrencyPolicy") {
        None | Some("Allow") => "allow",
        Some("Forbid") => "forbid",
        Some("Replace") => "replace",
        Some(other) => {
            return Err(format!(
                "expected Allow, Forbid or Replace, but found `{other}` for concurrencyPolicy"
            ));
        }
    };
    if concurrency == "forbid" {
        notes.push("a CronJob that was held up by Forbid starts once the other has ended; a KronJob skips the period and says so".to_owned());
    }
    let zone = zones.find(&zone_name).map_err(|error| format!("timeZone: {error}"))?;
    let fires = when.fires(&zone, from, until(from, days));
    let deadline = match cronjob.pointer("/spec/startingDeadlineSeconds").filter(|value| !value.is_null()) {
        Some(given) => match given.as_i64() {
            Some(seconds) if seconds >= 0 => Some(seconds),
            _ => {
                return Err(format!(
                    "expected a number of seconds, but found `{given}` for startingDeadlineSeconds"
                ));
            }
        },
        None => {
            notes.push("without startingDeadlineSeconds a CronJob starts late until the next run is due; so does the KronJob, by its deadline".to_owned());
            let gaps = fires.windows(2).map(|two| two[1] - two[0]);
            Some(gaps.max().or(when.interval()).unwrap_or(DEADLINE_MAX).min(DEADLINE_MAX))
        }
    };
    let mut spec = Map::new();
    spec.insert("schedule".into(), json!(when.written()));
    if zone_name != "UTC" {
        spec.insert("timezone".into(), json!(zone_name));
        // Kubernetes follows the clock: what comes twice runs twice.
        if !when.is_interval() {
            spec.insert("dst".into(), json!({"gap": "skip", "fold": "both"}));
        }
    }
    let mut policy = json!({"concurrency": concurrency});
    if let Some(deadline) = deadline {
        policy["deadline"] = json!(Duration::from_seconds(deadline).to_string());
    }
    let is_suspended = cronjob.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or(false);
    policy["suspend"] = json!(is_suspended);
    if is_suspended {
        notes.push("it is suspended, and stays so".to_owned());
    }
    spec.insert("policy".into(), policy);
    let limit = |key: &str, default: i64| {
        cronjob.pointer(&format!("/spec/{key}")).and_then(Value::as_i64).unwrap_or(default)
    };
    let (successful, failed) = (limit("successfulJobsHistoryLimit", 3), limit("failedJobsHistoryLimit", 1));
    spec.insert(
        "history".into(),
        json!({"successful": successful.clamp(0, 100), "failed": failed.clamp(0, 100)}),
    );
    spec.insert("jobTemplate".into(), template.clone());
    if matches!(when, When::Every(_)) {
        notes.push("Kubernetes counts `@every` from when it looks first, and Kron from 1970; when they fire was not compared".to_owned());
    }
    if name.len() > crate::api::NAME_MAX {
        return Err(format!(
            "the name has {} characters, and a KronJob's at most {}",
            name.len(),
            crate::api::NAME_MAX
        ));
    }
    let mut metadata = json!({"name": name});
    for key in ["namespace", "labels"] {
        if let Some(value) = cronjob.pointer(&format!("/metadata/{key}")) {
            metadata[key] = value.clone();
        }
    }
    let spec: KronJobSpec = serde_json::from_value(Value::Object(spec))
        .map_err(|error| format!("its parts do not fit: {error}"))?;
    let definition =
        Definition::read(&spec, &identity(namespace, name), zones).map_err(|flaws| told(&flaws))?;
    notes.extend(definition.warnings.iter().map(ToString::to_string));
    notes.push("Kron runs a period at most once; add a `window` to spread it".to_owned());
    let differences = match when {
        When::Every(_) => Vec::new(),
        When::Calendar(_) => compare(&fires, &definition, from, days),
    };
    let kronjob =
        json!({"apiVersion": "kron.io/v1alpha1", "kind": "KronJob", "metadata": metadata, "spec": spec});
    Ok(Converted { kronjob, notes, differences })
}

fn told(flaws: &[Flaw]) -> String {
    flaws.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    value.pointer(path)?.as_str()
}

/// When only one of the two fires.
fn compare(fires: &[i64], definition: &Definition, from: Timestamp, days: u32) -> Vec<Difference> {
    let end = until(from, days);
    let mut theirs = fires.iter().copied().peekable();
    let mut last = from.checked_sub(SignedDuration::from_secs(1)).unwrap_or(from);
    let mut ours = std::iter::from_fn(|| {
        last = definition.job.schedule().next_after(last).filter(|next| next.as_second() < end)?;
        Some(last.as_second())
    })
    .peekable();
    let mut found = Vec::new();
    while found.len() < DIFFERENCES_MAX {
        let (second, is_cronjob) = match (theirs.peek(), ours.peek()) {
            (Some(their), Some(our)) if their == our => {
                theirs.next();
                ours.next();
                continue;
            }
            (Some(their), Some(our)) if their < our => (*their, true),
            (Some(their), None) => (*their, true),
            (_, Some(our)) => (*our, false),
            (None, None) => break,
        };
        if is_cronjob {
            theirs.next()
        } else {
            ours.next()
        };
        found.extend(Timestamp::from_second(second).map(|at| Difference { at, is_cronjob }));
    }
    found
}

fn until(from: Timestamp, days: u32) -> i64 {
    from.as_second() + i64::from(days) * 86_400
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cronjob(schedule: &str, zone: &str) -> Value {
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report", "namespace": "ops"},
            "spec": {"schedule": schedule, "timeZone": zone, "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 300,
                "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}}},
        })
    }

    fn of(schedule: &str, zone: &str) -> Result<Converted, String> {
        convert(&cronjob(schedule, zone), &Zones::bundled(), "2026-01-01T00:00:00Z".parse().unwrap(), 366)
    }

    #[test]
    fn what_kubernetes_writes_in_its_own_way_fires_as_before() {
        for (schedule, written) in [
            ("30 2 * * 1-5", "30 2 * * 1-5"),
            ("5/20 * ? * *", "5-59/20 * * * *"),
            ("0 0 1,15 * FRI", "0 0 1,15 * 5"),
            ("0 0 */1 * MON", "0 0 * * 1"),
            ("@midnight", "0 0 * * *"),
            ("*/7 */5 */2 */3 *", "*/7 */5 */2 */3 *"),
        ] {
            for zone in ["UTC", "America/New_York", "Australia/Lord_Howe"] {
                let converted = of(schedule, zone).unwrap();
                assert_eq!(converted.kronjob["spec"]["schedule"], written, "{schedule}");
                assert_eq!(converted.differences, [], "{schedule} in {zone}");
            }
        }
    }

    #[test]
    fn a_difference_is_found_where_there_is_one() {
        let zones = Zones::bundled();
        let from: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut converted = of("30 1 * * *", "America/New_York").unwrap().kronjob;
        converted["spec"]["dst"]["fold"] = json!("first");
        let spec: KronJobSpec = serde_json::from_value(converted["spec"].clone()).unwrap();
        let definition = Definition::read(&spec, "ops/report", &zones).unwrap();
        let fires = When::read("30 1 * * *").unwrap().fires(
            &zones.find("America/New_York").unwrap(),
            from,
            until(from, 366),
        );
        let found = compare(&fires, &definition, from, 366);
        assert_eq!(found, [Difference { at: "2026-11-01T06:30:00Z".parse().unwrap(), is_cronjob: true }]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (schedule, part) in [
            ("30 2 * *", "expected five fields, but found 4"),
            ("30 2 * * 7", "the day of week from 0 to 6, as Kubernetes counts"),
            ("TZ=UTC 0 0 * * *", "use timeZone"),
            ("@every 1500ms", "whole seconds"),
            ("0 0 30 2 *", "never"),
        ] {
            let error = of(schedule, "UTC").unwrap_err();
            assert!(error.contains(part), "{schedule}: {error}");
        }
        assert!(of("* * * * *", "Mars/Olympus").unwrap_err().contains("timeZone"));
    }

    #[test]
    fn policies_are_kept() {
        let converted = of("0 3 * * *", "UTC").unwrap();
        assert_eq!(
            converted.kronjob["spec"]["policy"],
            json!({"concurrency": "forbid", "deadline": "5m", "suspend": false})
        );
        assert_eq!(converted.kronjob["spec"]["history"], json!({"successful": 3, "failed": 1}));
        let mut without = cronjob("0 3 * * *", "UTC");
        without["spec"].as_object_mut().unwrap().remove("startingDeadlineSeconds");
        let from = "2026-01-01T00:00:00Z".parse().unwrap();
        let converted = convert(&without, &Zones::bundled(), from, 30).unwrap();
        assert_eq!(converted.kronjob["spec"]["policy"]["deadline"], "24h");
    }
}
