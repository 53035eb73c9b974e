use std::collections::BTreeSet;
use std::fs;

use kron_core::decide;
use krontab::{Krontab, Source, Zones};
use serde_json::Value;

use super::daemon::World;

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect()
}

/// Jobs of which something is to be told.
const JOBS: &str = "@every 1s @policy(deadline=1h) name=tick description=\"Ticks away\" command=/bin/true\n\
                    @every 1s @policy(deadline=1h,concurrency=forbid) name=long command=\"/bin/sleep 1000\"\n\
                    0 0 1 1 * @tz(Europe/Paris) @win(around,2h) @dist(normal) @policy(suspend=true) name=asleep command=/bin/true\n\
                    @every 1s @policy(deadline=1h) name=gone command=/nonexistent\n";

#[test]
fn what_programs_read_has_the_names_they_know() {
    let mut world = World::new(JOBS);
    let pid = world.start();
    world.until("something has happened", |world| {
        world.events("execution_completed", "tick").len() > 1
            && world.reasons("long", "still-running") > 0
            && !world.events("error", "gone").is_empty()
    });
    let status = world.json(&["status"]);
    assert_eq!(
        keys(&status),
        [
            "active",
            "activeOfRemoved",
            "config",
            "held",
            "jobs",
            "moreHeld",
            "next",
            "paused",
            "pid",
            "recorded",
            "running",
            "startedAt",
            "stateDir",
            "version",
            "zones"
        ]
        .into()
    );
    assert_eq!((&status["pid"], &status["jobs"], &status["active"]), (&pid.into(), &4.into(), &1.into()));
    assert_eq!(status["config"], world.path("etc").display().to_string());
    assert_eq!(status["stateDir"], world.state.display().to_string());
    assert_eq!(keys(&status["held"][0]), ["error", "failures", "identity", "operation"].into());
    assert_eq!(keys(&status["next"]), ["chosen", "identity", "period", "windowEnd", "windowStart"].into());

    let jobs = world.json(&["jobs"]);
    let names: Vec<&str> = jobs.as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tick", "long", "asleep", "gone"], "in the order of the file");
    let expected = [
        "active",
        "description",
        "held",
        "identity",
        "last",
        "line",
        "name",
        "next",
        "onResume",
        "pausedSince",
        "schedule",
        "suspended",
        "timezone",
    ];
    assert_eq!(keys(&jobs[0]), expected.into());
    assert_eq!(
        (&jobs[0]["description"], &jobs[0]["line"], &jobs[0]["held"]),
        (&"Ticks away".into(), &1.into(), &Value::Null)
    );
    assert_eq!(keys(&jobs[0]["last"]), ["chosen", "outcome", "period"].into());
    assert_eq!(keys(&jobs[1]["active"][0]), ["pid", "run", "startedAt"].into());
    assert_eq!(
        (&jobs[2]["suspended"], &jobs[2]["next"], &jobs[2]["timezone"]),
        (&true.into(), &Value::Null, &"Europe/Paris".into())
    );
    assert_eq!(jobs[3]["held"]["operation"], "start");
    assert_eq!(world.json(&["jobs", "long"]).as_array().unwrap().len(), 1);

    let history = world.history("tick");
    let outcome = history.iter().find(|record| record["kind"] == "outcome").unwrap();
    assert_eq!(
        keys(outcome),
        ["at", "chosen", "identity", "kind", "outcome", "period", "pid", "reason", "seedHash"].into()
    );
    let completed = history.iter().find(|record| record["kind"] == "completed").unwrap();
    assert_eq!(
        keys(completed),
        ["at", "endedAt", "exit", "identity", "kind", "pid", "run", "startedAt"].into()
    );
    assert_eq!((&completed["run"], &completed["pid"]), (&outcome["period"], &outcome["pid"]));
    assert_eq!(world.json(&["history", "tick", "--count", "1"]).as_array().unwrap().len(), 1);

    let period = outcome["period"].as_str().unwrap();
    let why = world.json(&["why", "tick", "--at", period]);
    assert_eq!(
        keys(&why),
        ["after", "at", "before", "configured", "identity", "periods", "records", "skipped"].into()
    );
    let expected =
        ["attempts", "chosen", "period", "records", "seedHash", "verdict", "windowEnd", "windowStart"];
    assert_eq!(keys(&why["periods"][0]), expected.into());
    assert_eq!(why["periods"][0]["verdict"], "executed: its time had come, and it was started");
    assert_eq!(why["periods"][0]["seedHash"], outcome["seedHash"]);
    world.until("a run by hand", |world| {
        let said = world.ask(&["run", "tick", "--format", "json"]);
        let run: Value = serde_json::from_str(&said.out).unwrap_or_default();
        assert!(said.code == 1 || keys(&run) == ["pid", "run"].into(), "{run}");
        said.code == 0
    });
    world.stop();
}

#[test]
fn what_people_read_is_in_columns_and_in_words() {
    let mut world = World::new(JOBS);
    world.start();
    world.until("something has happened", |world| {
        world.events("execution_completed", "tick").len() > 1
            && world.reasons("long", "still-running") > 0
            && !world.events("error", "gone").is_empty()
    });
    let jobs = world.ask(&["jobs"]).out;
    let lines: Vec<&str> = jobs.lines().collect();
    assert_eq!(lines.len(), 5);
    let column = lines[0].find("IDENTITY").unwrap();
    for line in &lines[1..] {
        assert!(line[column..].starts_with('/') && line[..column].ends_with("  "), "{jobs}");
    }
    assert!(lines[3].contains("  suspended ") && lines[4].contains("  held "), "{jobs}");
    let status = world.ask(&["status"]).out;
    for text in ["running since ", "jobs:      4 (1 run active)\n", "next:      ", "held:      "] {
        assert!(status.contains(text), "{text}: {status}");
    }
    let history = world.ask(&["history", "long"]).out;
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines[0].starts_with("AT (UTC)              PERIOD OR RUN"), "{history}");
    let column = lines[0].find("WHAT").unwrap();
    assert!(lines[1..].iter().any(|line| line[column..].starts_with("executed       pid ")), "{history}");
    assert!(
        lines[1..]
            .iter()
            .any(|line| line[column..].starts_with("skipped        another run was still active")),
        "{history}"
    );
    assert!(lines.iter().all(|line| !line.ends_with(' ')), "{history}");

    let skipped = world.events("skipped_concurrency", "long")[0]["period"].as_str().unwrap().to_owned();
    let why = world.ask(&["why", "long", "--at", &skipped]).out;
    assert!(why.contains("verdict:  skipped: another run was still active"), "{why}");
    let why = world.ask(&["why", "long", "--at", "2020-01-01T00:00:00Z"]).out;
    assert!(why.contains("nothing is recorded of it"), "{why}");
    let why = world.ask(&["why", "asleep", "--at", "now"]).out;
    assert!(why.contains("the job is suspended"), "{why}");
    world.stop();
    // Records outlive krond, and so does what can be said by them.
    assert_eq!(world.ask(&["history", "long"]).code, 0);
    let config = world.path("etc").display().to_string();
    let why = world.ask(&["why", "long", "--at", &skipped, "--config", &config]);
    assert!(why.out.contains("another run was still active"), "{}{}", why.out, why.err);
}

#[test]
fn a_decision_can_be_computed_again_from_its_line_alone() {
    let mut world = World::new(
        "@every 1s @win(after,2s) @dist(uniform) @policy(deadline=1h) name=plain command=/bin/true\n\
         @every 1s @tz(Europe/Paris) @win(around,3s) @dist(normal,mu=mid,sigma=1s) @seed(stable,salt=pepper) @policy(deadline=1h) name=fancy command=/bin/true\n\
         @every 2s @win(after,2s) @seed(daily) @dist(skewLate,shape=3) @only(hours=0-11,12-23) @avoid(dates=2020-12-24..2020-12-31) @policy(deadline=1h) name=clause command=/bin/true\n",
    );
    world.start();
    world.until("all are decided", |world| {
        ["plain", "fancy", "clause"].iter().all(|name| world.events("decision", name).len() > 1)
    });
    world.stop();
    let zones = Zones::system();
    for line in world.log().iter().filter(|line| line["event"] == "decision") {
        let text = |key: &str| line[key].as_str().unwrap_or_else(|| panic!("{key} of {line}")).to_owned();
        let time = |key: &str| text(key).parse::<jiff::Timestamp>().unwrap();
        let length = time("window_end").duration_since(time("window_start")).as_secs();
        let optional = |head: &str, value: &str| match value {
            "" => String::new(),
            value => format!("{head}{value}"),
        };
        let constraints = match text("constraints").as_str() {
            "none" => String::new(),
            constraints => {
                constraints.replace("only(", "@only(\"").replace("avoid(", "@avoid(\"").replace(')', "\")")
            }
        };
        // Only what the line says: a krontab is written from it, and read as any other.
        let krontab = format!(
            "{} @tz({}) @win({},{length}s) @dist({}{}) @seed({}{}) {constraints} name={} command=/bin/true\n",
            text("schedule"),
            text("timezone"),
            text("window_mode"),
            text("distribution"),
            optional(",", &text("dist_params").replace(' ', ",")),
            text("seed_strategy"),
            optional(",salt=", &text("salt")),
            text("name"),
        );
        let source = Source::new("/x").unwrap().with_identity(text("identity"));
        let parsed = Krontab::parse(&krontab, &source, &zones);
        assert!(!parsed.has_errors(), "{krontab}: {:?}", parsed.problems);
        let decision = decide(&parsed.entries[0].job, time("nominal"));
        assert_eq!(decision.seed_hash().to_string(), text("seed_hash"), "{krontab}");
        assert_eq!(decision.chosen().unwrap().to_string(), text("chosen"), "{krontab}");
        assert_eq!(decision.period_id().to_string(), text("period"));
        assert_eq!(u64::from(decision.attempts()), line["attempts"].as_u64().unwrap());
    }
}

#[test]
fn lines_come_in_order_and_both_formats_say_the_same() {
    let mut world = World::new("@every 1s @policy(deadline=1h) name=tick command=/bin/true\n");
    world.start();
    world.until("it has run", |world| world.events("execution_completed", "tick").len() > 1);
    world.stop();
    let period = world.events("decision", "tick")[0]["period"].clone();
    let log = world.log();
    let of_it = log.iter().filter(|line| line["period"] == period || line["run"] == period);
    let events: Vec<&str> = of_it.map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["decision", "trigger", "execution_started", "execution_completed"]);
    assert_eq!((&log[0]["event"], &log[1]["event"]), (&"started".into(), &"config_reloaded".into()));
    for line in &log {
        for key in ["timestamp", "level", "component", "event"] {
            assert!(line[key].is_string(), "{key}: {line}");
        }
        assert_eq!(
            line["timestamp"].as_str().unwrap().len(),
            "2026-03-01T00:00:00.000000000Z".len(),
            "{line}"
        );
    }

    let text = world.command(&["start", "--config", "etc", "--state-dir", "text"]).output().unwrap();
    assert!(text.status.success());
    world.state = world.path("text");
    let text = || fs::read_to_string(world.path("text/krond.log")).unwrap();
    world.until("it has run", |_| text().contains("event=execution_completed"));
    assert_eq!(world.ask(&["stop"]).code, 0);
    let text = text();
    for event in ["decision", "trigger", "execution_started", "execution_completed"] {
        let line = text.lines().find(|line| line.contains(&format!("event={event} "))).unwrap();
        let json = log.iter().find(|line| line["event"] == event).unwrap();
        for key in keys(json).into_iter().filter(|key| *key != "timestamp") {
            assert!(line.contains(&format!(" {key}=")), "{key}: {line}");
        }
        assert!(line.split(' ').next().unwrap().ends_with('Z'), "{line}");
    }
}

#[test]
fn numbers_are_kept_in_a_file_that_is_always_whole() {
    let mut world = World::new("@every 1s @policy(deadline=1h) name=tick shell=true command=\"exit 1\"\n");
    let file = world.path("krond.prom");
    world.settings(&format!("metrics_file = \"{}\"\n", file.display()));
    world.start();
    world.until("it is written", |_| file.exists());
    world.until("it has run", |world| world.events("execution_completed", "tick").len() > 1);
    let metrics = world.ask(&["metrics"]).out;
    for text in [&metrics, &fs::read_to_string(&file).unwrap()] {
        let mut help = BTreeSet::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if line.starts_with("# HELP ") {
                assert!(help.insert(words[2]), "{} twice", words[2]);
            } else if !line.starts_with('#') {
                let name = words[0].split('{').next().unwrap();
                let name = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| name.strip_suffix(end))
                    .unwrap_or(name);
                assert!(help.contains(name), "{line}");
                assert!(words.last().unwrap().parse::<f64>().is_ok(), "{line}");
            }
        }
        let names = [
            "krond_build_info",
            "krond_start_time_seconds",
            "krond_jobs",
            "krond_active_runs",
            "krond_held_jobs",
            "krond_paused_jobs",
            "krond_outcomes_total",
            "krond_runs_completed_total",
            "krond_failures_total",
            "krond_lateness_seconds",
            "krond_state_write_seconds",
        ];
        assert_eq!(help, names.into());
    }
    assert!(metrics.contains("\nkrond_jobs 1\n"), "{metrics}");
    assert!(!metrics.contains("krond_runs_completed_total{result=\"failed\"} 0\n"), "{metrics}");
    world.stop();
    assert!(!world.path("krond.prom.tmp").exists());
    let last = fs::read_to_string(&file).unwrap();
    assert!(!last.contains("krond_runs_completed_total{result=\"failed\"} 0\n"), "what it ends with: {last}");
}

#[test]
fn records_are_kept_by_the_day_and_not_for_ever() {
    let mut world = World::new("@every 1s @policy(deadline=1h) name=tick command=/bin/true\n");
    world.settings("outcome_days = 7\n");
    world.make_state();
    let outcomes = world.state.join("outcomes");
    fs::create_dir(&outcomes).unwrap();
    let day = |days: i64| {
        let at = krond::clock::now().second() - days * 86_400;
        jiff::Timestamp::from_second(at).unwrap().strftime("%Y-%m-%d.jsonl").to_string()
    };
    let identity = world.identity("tick");
    let record = |period: &str| {
        format!(
            "{{\"at\":\"{period}\",\"identity\":\"{identity}\",\"kind\":\"outcome\",\"period\":\"{period}\",\"outcome\":\"missed\",\
             \"reason\":\"deadline-passed\",\"chosen\":null,\"pid\":null,\"seedHash\":\"\"}}\n"
        )
    };
    // One that is old, one that is not, one of today that a crash has cut in half, and what is none of krond's.
    fs::write(outcomes.join(day(9)), record("2020-01-01T00:00:00Z")).unwrap();
    fs::write(outcomes.join(day(5)), record("2020-01-02T00:00:00Z")).unwrap();
    fs::write(outcomes.join(day(0)), record("2020-01-03T00:00:00Z") + "{\"at\":\"2020").unwrap();
    fs::write(outcomes.join("notes.txt"), "mine").unwrap();
    world.start();
    world.until("it has run", |world| world.events("execution_completed", "tick").len() > 1);
    world.stop();
    let there: BTreeSet<String> = fs::read_dir(&outcomes)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!there.contains(&day(9)) && there.contains(&day(5)) && there.contains("notes.txt"), "{there:?}");
    let history = world.history("tick");
    let missed = history.iter().filter(|record| record["outcome"] == "missed").count();
    let executed = history.iter().filter(|record| record["outcome"] == "executed").count();
    assert_eq!(missed, 2);
    let in_log = world.events("execution_started", "tick").len();
    assert_eq!(executed, in_log, "none is lost to the half line");
}

/// Records are for people, and may be lost; a state may not.
#[test]
fn what_the_records_lack_the_state_tells() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h) name=tick command=/bin/true\n\
         @every 1s @policy(deadline=1h,concurrency=forbid) name=long command=\"/bin/sleep 1000\"\n",
    );
    world.settings("on_stop = \"leave\"\ngrace = \"1s\"\n");
    world.start();
    world.until("both have run", |world| {
        world.events("execution_completed", "tick").len() > 2 && world.reasons("long", "still-running") > 0
    });
    let active = world.json(&["jobs", "long"])[0]["active"][0].clone();
    world.ask(&["stop"]);
    let before = world.history("tick");
    fs::remove_dir_all(world.state.join("outcomes")).unwrap();
    let history = world.history("tick");
    let last = before.iter().rev().find(|record| record["kind"] == "completed").unwrap();
    let same = history.iter().find(|record| record["kind"] == "completed" && record["run"] == last["run"]);
    let same = same.unwrap_or_else(|| panic!("{last} is not in {history:?}"));
    assert_eq!((&same["exit"], &same["pid"]), (&0.into(), &Value::Null));
    let times: Vec<&str> = history.iter().map(|record| record["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let config = world.path("etc").display().to_string();
    let why = |world: &World, job: &str, at: &Value| {
        world.json(&["why", job, "--config", &config, "--at", at.as_str().unwrap()])
    };
    let told = why(&world, "tick", &last["run"])["periods"][0].clone();
    assert_eq!(told["verdict"], "executed: its time had come, and it was started");
    let told = why(&world, "long", &active["run"])["periods"][0].clone();
    assert_eq!(told["verdict"], "executed: its time had come, and it was started");
    assert_eq!((told["records"].as_array().unwrap().len(), &told["records"][0]["pid"]), (1, &active["pid"]));

    // It is no longer configured, and there is nothing but its state.
    world.krontab("");
    let told = why(&world, "tick", &last["run"]);
    assert_eq!((&told["configured"], &told["periods"]), (&false.into(), &serde_json::json!([])));
    let records = told["records"].as_array().unwrap();
    assert!(records.iter().any(|record| record["period"] == last["run"]), "{records:?}");
    let said = world.ask(&["why", "tick", "--config", &config, "--at", last["run"].as_str().unwrap()]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("the job is not configured now; this is recorded of it"), "{}", said.out);
    assert!(!world.history("tick").is_empty());
    let said = world.ask(&["why", "never", "--config", &config, "--at", "now"]);
    assert_eq!((said.code, said.err.as_str()), (1, "error: job not found: never\n"));
}

#[test]
fn how_a_decision_came_about_is_told_to_who_wants_to_know() {
    let line = "@every 1s @win(after,1s) @policy(deadline=1h) name=tick command=/bin/true\n";
    let mut world = World::new(line);
    world.start();
    world.until("it runs", |world| !world.events("execution_completed", "tick").is_empty());
    world.stop();
    assert!(world.events("seed_computed", "tick").is_empty());
    let mut world = World::new(line);
    world.settings("log_level = \"debug\"\n");
    world.start();
    world.until("it runs", |world| !world.events("execution_completed", "tick").is_empty());
    world.stop();
    let [seed, sample, decision] =
        ["seed_computed", "sample", "decision"].map(|event| world.events(event, "tick")[0].clone());
    assert_eq!((&seed["level"], &sample["level"]), (&"DEBUG".into(), &"DEBUG".into()));
    assert_eq!(seed["seed_hash"], decision["seed_hash"]);
    assert_eq!(sample["candidate"], decision["chosen"]);
    let mut quiet = World::new(line);
    quiet.settings("log_level = \"warn\"\n");
    quiet.start();
    quiet.until("it runs", |world| !world.history("tick").is_empty());
    quiet.stop();
    assert!(quiet.events("decision", "tick").is_empty());
}
