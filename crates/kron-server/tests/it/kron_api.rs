//! Kron's own: the record of occurrences, previews, `why`, manual runs, the list of jobs, and the `kron` object.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::server::{Server, assert_time, cron, instant, list, merge, text, time};

const NAME: &str = "job";

/// A server with a job every quarter of an hour that has fired at 20:30 and was skipped at 20:45.
fn with_history() -> (Server, String) {
    let server = Server::new();
    server.register(cron(NAME, "*/15 * * * *", json!({})));
    server.clock("2026-02-12T20:30:00Z");
    let run = text(&server.fetch_one(NAME)["id"]).to_owned();
    server.clock("2026-02-12T20:45:00Z");
    (server, run)
}

/// When a run of a preview is to be; it may be said with or without its decision.
fn run_time(run: &Value) -> Timestamp {
    time(if run.is_string() { run } else { &run["scheduled_time"] })
}

#[test]
fn occurrences_are_recorded_and_planned() {
    let (server, run) = with_history();
    let all = server.occurrences(NAME, "2026-02-12T20:16:00Z", "2026-02-12T21:20:00Z");
    let brief: Vec<_> = all
        .iter()
        .map(|o| (time(&o["scheduled_time"]).to_string(), text(&o["outcome"]).to_owned()))
        .collect();
    let expected = [("20:30", "executed"), ("20:45", "skipped"), ("21:00", "planned"), ("21:15", "planned")];
    assert_eq!(
        brief,
        expected.map(|(at, outcome)| (format!("2026-02-12T{at}:00Z"), outcome.to_owned())),
        "{all:?}"
    );
    assert_eq!(all[0]["job_id"], *run, "a fire has its job: {}", all[0]);
    assert_time(&all[0]["actual_time"], "2026-02-12T20:30:00Z", "and when it was");
    assert_eq!(all[1]["reason"], "overlap_skip", "a skip has its reason: {}", all[1]);
    assert_time(&all[2]["chosen_time"], "2026-02-12T21:00:00Z", "without a window, the time itself");

    server.clock("2026-02-12T23:52:00Z");
    let all = server.occurrences(NAME, "2026-02-12T20:50:00Z", "2026-02-12T23:52:00Z");
    let missed: Vec<_> = all.iter().filter(|o| o["outcome"] == "missed").collect();
    assert_eq!(missed.len(), 1, "decision 16: one range row: {all:?}");
    assert_time(&missed[0]["first"], "2026-02-12T21:00:00Z", "first");
    assert_time(&missed[0]["last"], "2026-02-12T23:30:00Z", "last");
    assert_eq!(missed[0]["count"], 11, "count");
}

#[test]
fn occurrences_come_in_pages_and_of_known_cron_jobs_only() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({"overlap_policy": "allow"})));
    server.step_to("2026-02-12T20:20:00Z", 20);
    let path = format!("/kron/v1/cron/{NAME}/occurrences?from=2026-02-12T20:15:00Z&to=2026-02-12T20:25:00Z");
    let (mut times, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("{path}&limit=3{cursor}")).is(200, "a page");
        let rows = list(&page["occurrences"]);
        assert!(rows.len() <= 3, "1.6: never more rows than limit");
        times.extend(rows.iter().map(|row| time(&row["scheduled_time"])));
        if page["pagination"]["has_more"] != true {
            break;
        }
        cursor = format!("&cursor={}", text(&page["pagination"]["next_cursor"]));
    }
    let minutes = (16..25).map(|minute| instant(&format!("2026-02-12T20:{minute}:00Z")));
    let whole: Vec<_> = minutes.collect();
    assert!(times.starts_with(&whole), "every one once and in order, across past and future: {times:?}");

    server.get("/kron/v1/cron/nobody/occurrences").refused(404, "not_found", "an unknown cron job");
    for query in ["from=noon", "to=x", "limit=x", "cursor=nonsense"] {
        let answer = server.get(&format!("/kron/v1/cron/{NAME}/occurrences?{query}"));
        answer.refused(400, "invalid_request", query);
    }
    let long = server
        .get(&format!("/kron/v1/cron/{NAME}/occurrences?from=2026-01-01T00:00:00Z&to=2126-01-01T00:00:00Z"));
    let long = long.is(200, "a century is answered page by page");
    assert!(long["pagination"]["has_more"] == true && list(&long["occurrences"]).len() <= 200, "bounded");
}

#[test]
fn nothing_is_silent() {
    // Fires, skips, disabled times, a gap, a pause: whatever was due is in the record.
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({})));
    server.clock("2026-02-12T20:16:00Z");
    let run = text(&server.fetch_one(NAME)["id"]).to_owned();
    server.clock("2026-02-12T20:17:00Z");
    server.ack(&run).is(200, "ack");
    server.clock("2026-02-12T20:22:30Z");
    server.enable(NAME, false);
    server.step_to("2026-02-12T20:25:30Z", 30);
    server.enable(NAME, true);
    server.step_to("2026-02-12T20:27:00Z", 30);
    let all = server.occurrences(NAME, "2026-02-12T20:15:00Z", "2026-02-12T20:27:00Z");
    for minute in 16..=27 {
        let at = instant(&format!("2026-02-12T20:{minute}:00Z"));
        let covers = |o: &&Value| match (&o["first"], &o["last"]) {
            (Value::String(_), Value::String(_)) => time(&o["first"]) <= at && at <= time(&o["last"]),
            _ => time(&o["scheduled_time"]) == at,
        };
        let rows: Vec<_> = all.iter().filter(covers).collect();
        assert_eq!(rows.len(), 1, "every due instant has exactly one outcome: {at}: {all:?}");
        assert!(
            minute == 27 || rows[0]["outcome"] != "planned",
            "and what is past is settled: {at}: {}",
            rows[0]
        );
    }
}

#[test]
fn a_preview_says_what_a_registration_would_mean_and_keeps_nothing() {
    let server = Server::new();
    let preview = |body: Value| server.post("/kron/v1/cron/preview", body);
    let answer =
        preview(json!({"cron": "0 9 * * MON-FRI", "timezone": "America/New_York"})).is(200, "an expression");
    assert!(!text(&answer["description"]).is_empty(), "it is described: {answer}");
    assert!(list(&answer["warnings"]).is_empty(), "and is fine: {answer}");
    let runs = list(&answer["next_runs"]);
    assert_eq!(run_time(&runs[0]), instant("2026-02-13T14:00:00Z"), "the next run");
    assert_eq!(run_time(&runs[1]), instant("2026-02-16T14:00:00Z"), "and the one after the weekend");

    let answer = preview(json!({"cron": "0 0 31 * *"})).is(200, "a warning");
    let warnings = list(&answer["warnings"]);
    assert!(!text(&warnings[0]["code"]).is_empty() && !text(&warnings[0]["message"]).is_empty(), "{answer}");
    assert!(!list(&preview(json!({"cron": "@every 500ms"})).is(200, "a warning")["warnings"]).is_empty());

    let error =
        preview(json!({"cron": "0 9 * * MON-FUN"})).refused(400, "invalid_request", "as registration would");
    let span = &error["details"]["span"];
    let (start, end) =
        (span["start"].as_u64().or(span[0].as_u64()), span["end"].as_u64().or(span[1].as_u64()));
    assert!(
        start.is_some_and(|start| start >= 8) && end.is_some_and(|end| end <= 15),
        "where it is wrong: {error}"
    );
    preview(json!({})).refused(400, "invalid_request", "nothing to preview");

    preview(cron("whole", "@daily", json!({}))).is(200, "a whole definition");
    server.get("/ojs/v1/cron/whole").refused(404, "not_found", "a preview keeps nothing");
    assert!(server.events("*").is_empty(), "and says nothing");
}

#[test]
fn a_preview_shows_which_dates_change() {
    let server = Server::new();
    let stored = server.register(cron(NAME, "0 9 * * *", json!({})));
    let answer =
        server.post("/kron/v1/cron/preview", cron(NAME, "0 9,17 * * MON-FRI", json!({}))).is(200, "changes");
    let [added, removed] = ["added", "removed"].map(|side| list(&answer["changes"][side]));
    assert!(
        added.iter().any(|run| run_time(run) == instant("2026-02-13T17:00:00Z")),
        "17:00 is new: {answer}"
    );
    assert!(
        removed.iter().any(|run| run_time(run) == instant("2026-02-14T09:00:00Z")),
        "Saturday is gone: {answer}"
    );
    assert_eq!(server.cron(NAME), stored, "a preview changes nothing");
    let same = server.post("/kron/v1/cron/preview", cron(NAME, "0 9 * * *", json!({}))).is(200, "no changes");
    let none =
        ["added", "removed"].iter().all(|side| same["changes"][side].as_array().is_none_or(Vec::is_empty));
    assert!(none, "nothing changes: {same}");
}

#[test]
fn why_tells_what_became_of_a_time() {
    let (server, run) = with_history();
    let why = |at: &str| server.get(&format!("/kron/v1/cron/{NAME}/why?at={at}"));
    why("2026-02-12T20:30:00Z").is(200, "it fired");
    assert!(why("2026-02-12T20:30:00Z").text.contains(&run), "with its job");
    assert!(why("2026-02-12T20:45:00Z").text.contains("overlap_skip"), "it was skipped, and why");
    why("2026-02-12T21:00:00Z").is(200, "what is to come");
    why("2026-02-12T20:33:00Z").is(200, "a time at which nothing was due");
    why("noon").refused(400, "invalid_request", "not a time");
    server.get("/kron/v1/cron/nobody/why?at=2026-02-12T20:30:00Z").refused(
        404,
        "not_found",
        "an unknown cron job",
    );
}

#[test]
fn a_manual_run_counts_as_active_and_as_nothing_else() {
    let server = Server::new();
    let before = server.register(cron(NAME, "@every 5m", json!({"args": [1]})));
    server.pass(30);
    let path = format!("/kron/v1/cron/{NAME}/run");
    let job = server.send("POST", &path, &[], b"").is(201, "a manual run")["job"].clone();
    assert_eq!(
        (&job["type"], &job["args"]),
        (&json!("test.cron"), &json!([1])),
        "it is a job like the others: {job}"
    );
    assert_eq!(job["meta"]["cron_name"], NAME, "CRON-20");
    assert_eq!(
        server.cron(NAME),
        before,
        "decision 13: it never moves run_count, last_run_at or next_run_at"
    );
    assert_eq!(server.fetch_one(NAME)["id"], job["id"], "it is fetched like the others");

    server.clock("2026-02-12T20:20:20Z");
    let skipped = server.cron_events("cron.skipped", NAME);
    assert_eq!(skipped.len(), 1, "decision 13: it counts as active for overlap");
    assert_eq!(skipped[0]["active_job_id"], job["id"], "9.2");
    assert_time(&server.cron(NAME)["next_run_at"], "2026-02-12T20:25:20Z", "decision 13: nor an anchor");

    server.enable(NAME, false);
    server.post(&path, json!({})).is(201, "a disabled one can be run by hand");
    server.post("/kron/v1/cron/nobody/run", json!({})).refused(404, "not_found", "an unknown cron job");
}

#[test]
fn jobs_are_listed_and_filtered() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({})));
    server.push_to("one", json!({}));
    let done = server.push_to("two", json!({}));
    server.fetch_one("two");
    server.ack(&done).is(200, "ack");
    server.push(json!({"type": "other.kind", "args": [], "options": {"queue": "two"}}));
    server.pass(60);
    let count = |query: &str| {
        let page = server.get(&format!("/kron/v1/jobs?{query}")).is(200, query);
        assert_eq!(page["pagination"]["total"], list(&page["jobs"]).len(), "1.6: {query}");
        list(&page["jobs"]).len()
    };
    for (query, jobs) in [
        ("", 4),
        ("state=available", 3),
        ("state=completed", 1),
        ("queue=two", 2),
        ("type=other.kind", 1),
        ("cron=job", 1),
        ("cron=nobody", 0),
        ("queue=two&state=available", 1),
    ] {
        assert_eq!(count(query), jobs, "filtered by `{query}`");
    }
    server.get("/kron/v1/jobs?state=sleeping").refused(400, "invalid_request", "there is no such state");
}

#[test]
fn the_kron_object_is_checked_to_its_last_member() {
    let server = Server::new();
    for kron in [
        json!([]),
        json!("after 1h"),
        json!({"windows": {}}),
        json!({"window": {"mode": "after", "duration": "1h", "extra": 1}}),
        json!({"window": {"mode": "before", "duration": "1h"}}),
        json!({"window": {"mode": "after"}}),
        json!({"window": {"mode": "after", "duration": "soon"}}),
        json!({"window": {"mode": "after", "duration": "-1h"}}),
        json!({"window": {"mode": "after", "duration": 60}}),
        json!({"window": {"mode": "after", "duration": "1h"}, "distribution": {"name": "lumpy"}}),
        json!({"window": {"mode": "after", "duration": "1h"}, "seed": {"strategy": "lucky"}}),
        json!({"deadline": "never"}),
        json!({"dst": {"gap": "jump"}}),
        json!({"dst": {"fold": "second"}}),
        json!({"dst": {"gap": "skip", "other": 1}}),
        json!({"only": ["nonsense!"]}),
        json!({"avoid": [3]}),
    ] {
        let answer = server.post("/ojs/v1/cron", cron("bad", "0 9 * * *", json!({"kron": kron})));
        answer.refused(400, "invalid_request", &format!("6.6: {kron}"));
    }
    let kron = json!({
        "window": {"mode": "after", "duration": "1h"}, "distribution": {"name": "uniform", "params": {}},
        "seed": {"strategy": "stable", "salt": ""}, "only": ["hours=9"], "avoid": ["hours=3"], "deadline": "5m",
        "dst": {"gap": "skip", "fold": "first"},
    });
    let job = server.register(cron("whole", "0 9 * * *", json!({"kron": kron})));
    assert_eq!(job["kron"]["window"], kron["window"], "6.6: it comes back: {job}");
}

#[test]
fn a_window_moves_the_run_and_not_its_name() {
    let windowed = |name: &str| {
        let kron =
            json!({"window": {"mode": "after", "duration": "1h"}, "distribution": {"name": "uniform"}});
        cron(name, "0 9 * * *", json!({"kron": kron}))
    };
    let server = Server::new();
    let nominal = instant("2026-02-13T09:00:00Z");
    let chosen = time(&server.register(windowed(NAME))["next_run_at"]);
    let hour = nominal..nominal + jiff::SignedDuration::from_hours(1);
    assert!(
        hour.contains(&chosen),
        "decision 16: next_run_at is the chosen time, within the window: {chosen}"
    );
    let twin = Server::new().register(windowed(NAME));
    assert_eq!(time(&twin["next_run_at"]), chosen, "stable: the same everywhere");
    let others = ["a", "b", "c"].map(|name| time(&server.register(windowed(name))["next_run_at"]));
    assert!(others.iter().any(|other| *other != chosen), "others are spread: {others:?}");

    server.clock(&(chosen - jiff::SignedDuration::from_secs(1)).to_string());
    assert!(server.fires(NAME).is_empty(), "not before its chosen time");
    server.clock(&chosen.to_string());
    assert_eq!(
        server.fires(NAME),
        ["2026-02-13T09:00:00Z"],
        "decision 16: scheduled_time is the nominal time"
    );
    let rows = server.occurrences(NAME, "2026-02-13T08:00:00Z", "2026-02-13T11:00:00Z");
    assert_eq!(time(&rows[0]["chosen_time"]), chosen, "both are in the record: {rows:?}");

    let around = json!({"kron": {"window": {"mode": "around", "duration": "1h"}}});
    let next = time(&server.register(cron("around", "0 12 * * *", around))["next_run_at"]);
    let noon = instant("2026-02-13T12:00:00Z");
    assert!(noon.duration_since(next).abs() <= jiff::SignedDuration::from_mins(30), "around: {next}");
    let only = json!({"kron": {"window": {"mode": "after", "duration": "3h"}, "only": ["hours=14"]}});
    let next = time(&server.register(cron("only", "0 12 * * *", only))["next_run_at"]).to_string();
    assert!(next.starts_with("2026-02-13T14:"), "only in that hour: {next}");
}

#[test]
fn a_deadline_turns_a_late_run_into_a_missed_one() {
    let with_deadline = |deadline: &str| {
        let server = Server::new();
        server.register(cron(NAME, "0 21 * * *", json!({"kron": {"deadline": deadline}})));
        server
    };
    for (deadline, now, fires) in [
        ("5m", "2026-02-12T21:04:59Z", true),
        ("5m", "2026-02-12T21:05:00Z", true),
        ("5m", "2026-02-12T21:05:01Z", false),
        ("0s", "2026-02-12T21:00:00Z", true),
        ("0s", "2026-02-12T21:00:00.900Z", true),
        ("0s", "2026-02-12T21:00:01Z", false),
    ] {
        let server = with_deadline(deadline);
        server.clock(now);
        assert_eq!(server.fires(NAME).len(), usize::from(fires), "decision 4: deadline {deadline} at {now}");
        let missed = server.cron_events("cron.missed", NAME);
        assert_eq!(
            missed.len(),
            usize::from(!fires),
            "decision 16: cron.missed: deadline {deadline} at {now}"
        );
        assert!(
            fires || text(&missed[0]["reason"]).contains("deadline"),
            "decision 16: with a reason: {missed:?}"
        );
        assert_time(&server.cron(NAME)["next_run_at"], "2026-02-13T21:00:00Z", "and it goes on");
    }
}

#[test]
fn another_daylight_saving_policy_can_be_chosen() {
    let new_york =
        |dst: Value| json!({"timezone": "America/New_York", "kron": {"dst": dst}, "overlap_policy": "allow"});
    let server = Server::frozen_at("2026-03-08T05:00:00Z");
    server.register(cron(NAME, "30 2 * * *", new_york(json!({"gap": "after"}))));
    server.step_to("2026-03-08T09:00:00Z", 600);
    let fires = server.cron_events("cron.triggered", NAME);
    assert_eq!(fires.len(), 1, "decision 3: `after` runs");
    assert_time(
        &fires[0]["actual_time"],
        "2026-03-08T07:00:00Z",
        "decision 3: at the first instant after the gap",
    );
    assert!(server.events("cron.skipped").is_empty(), "and nothing is skipped");

    let server = Server::frozen_at("2026-11-01T04:10:00Z");
    server.register(cron(NAME, "30 1 * * *", new_york(json!({"fold": "both"}))));
    server.register(cron("auto", "*/30 * * * *", new_york(json!({"fold": "auto"}))));
    server.step_to("2026-11-01T07:10:00Z", 300);
    assert_eq!(server.fires(NAME), ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"], "decision 3: `both`");
    assert_eq!(server.fires("auto").len(), 6, "decision 3: `auto`, an interval runs both times");
}

#[test]
fn the_kron_object_follows_its_registration() {
    let server = Server::new();
    let kron = json!({"kron": {"deadline": "5m"}});
    server.register(cron(NAME, "0 9 * * *", kron.clone()));
    assert_eq!(server.cron(NAME)["kron"]["deadline"], "5m", "it is stored");
    let plain = server.update(cron(NAME, "0 9 * * *", json!({})));
    assert!(plain.get("kron").is_none_or(Value::is_null), "decision 16: absent, it is plain OJS: {plain}");
    let patched = server.patch(&format!("/ojs/v1/cron/{NAME}"), kron).is(200, "decision 16: PATCH takes it");
    assert_eq!(patched["cron_job"]["kron"]["deadline"], "5m", "decision 16: PATCH takes any client field");
    let both = merge(cron("x", "@daily", json!({})), json!({"unknown": {"anything": 1}}));
    server.register(both);
}

/// A server whose job has windows that overlap, after an hour of it.
fn with_overlapping_windows() -> Server {
    let server = Server::frozen_at("2026-02-12T20:00:00Z");
    let kron = json!({"kron": {"window": {"duration": "30m"}}, "overlap_policy": "allow"});
    server.register(cron(NAME, "*/5 * * * *", kron));
    server.step_to("2026-02-12T21:00:00Z", 30);
    server
}

#[test]
fn occurrences_of_windows_that_overlap_come_in_order_and_no_page_loses_one() {
    let server = with_overlapping_windows();
    let (from, to) = ("2026-02-12T20:00:00Z", "2026-02-12T22:00:00Z");
    let all = server.occurrences(NAME, from, to);
    let times: Vec<Timestamp> = all.iter().map(|it| time(&it["scheduled_time"])).collect();
    let first = instant("2026-02-12T20:05:00Z");
    let expected: Vec<_> = (0..24).map(|n| first + jiff::SignedDuration::from_mins(5 * n)).collect();
    assert_eq!(times, expected, "each once, in the order of their nominal times");
    let outcomes: Vec<&str> = all.iter().map(|it| text(&it["outcome"])).collect();
    let first_planned = outcomes.iter().position(|outcome| *outcome == "planned").unwrap();
    assert!(
        outcomes[first_planned..].contains(&"executed"),
        "the test needs one that waits while a later one has run: {outcomes:?}"
    );
    for limit in [1, 2, 5] {
        let path = format!("/kron/v1/cron/{NAME}/occurrences?from={from}&to={to}&limit={limit}");
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("{path}{cursor}")).is(200, "a page");
            paged.extend(list(&page["occurrences"]).iter().map(|it| time(&it["scheduled_time"])));
            let Some(next) = page["pagination"]["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, expected, "pages of {limit}");
    }
    let rows = server.occurrences(NAME, "2026-02-12T20:05:00.001Z", "2026-02-12T20:10:00Z");
    assert_eq!(rows.len(), 1, "from a moment later, the one before is not asked for: {rows:?}");
}

#[test]
fn a_far_future_is_not_walked_to() {
    let server = Server::frozen_at("2026-02-12T20:00:00Z");
    server.register(cron(NAME, "* * * * * *", json!({})));
    // Thirty thousand million occurrences lie before these.
    let rows = server.occurrences(NAME, "2998-01-01T00:00:00Z", "2998-01-01T00:00:04Z");
    assert_eq!(rows.len(), 5, "{rows:?}");
}

#[test]
fn why_knows_chosen_times_and_windows() {
    let server = with_overlapping_windows();
    let why = |at: &str| server.get(&format!("/kron/v1/cron/{NAME}/why?at={at}")).is(200, "why");
    let all = server.occurrences(NAME, "2026-02-12T20:00:00Z", "2026-02-12T22:00:00Z");
    for (outcome, said) in
        [("executed", "executed: its time had come"), ("planned", "planned: it has not come yet")]
    {
        let of_outcome = |it: &&Value| it["outcome"] == outcome && it["chosen_time"] != it["scheduled_time"];
        let row = all.iter().find(of_outcome).unwrap();
        let (nominal, chosen) = (text(&row["scheduled_time"]), text(&row["chosen_time"]));
        let answer = why(chosen);
        let expected = format!("{chosen} is the chosen time of the occurrence of {nominal}, {said}");
        assert_eq!(answer["answer"], expected, "{answer}");
        assert_eq!(answer["is_occurrence"], false, "{answer}");
        assert_eq!(answer["decision"]["scheduled_time"], *nominal, "{answer}");
        let answer = why(nominal);
        assert_eq!(answer["answer"], said, "asked for the nominal time: {answer}");
        assert_eq!(answer["is_occurrence"], true, "{answer}");
    }
    let chosen: Vec<&str> = all.iter().filter_map(|it| it["chosen_time"].as_str()).collect();
    let other = (0..60).map(|second| format!("2026-02-12T20:41:{second:02}Z"));
    let other = other.into_iter().find(|at| !chosen.contains(&at.as_str())).unwrap();
    let answer = why(&other);
    let expected = format!("{other} is in the window of the occurrence of 2026-02-12T20:40:00Z, ");
    assert!(text(&answer["answer"]).starts_with(&expected), "{answer}");
}

#[test]
fn a_changed_schedule_tells_what_it_gives_up() {
    let server = with_overlapping_windows();
    let (from, to) = ("2026-02-12T20:00:00Z", "2026-02-12T21:00:00Z");
    let waiting = server.occurrences(NAME, from, to).iter().filter(|it| it["outcome"] == "planned").count();
    assert!(waiting > 1, "{waiting}");
    let body = json!({"name": null, "cron": "7 * * * *"});
    server.patch(&format!("/ojs/v1/cron/{NAME}"), body).is(200, "null is absent");
    let missed = server.cron_events("cron.missed", NAME);
    let last = missed.last().unwrap();
    assert_eq!(
        (text(&last["reason"]), last["count"].as_u64()),
        ("rescheduled", Some(waiting as u64)),
        "{last}"
    );
    let rows = server.occurrences(NAME, from, to);
    assert!(rows.iter().all(|it| it["outcome"] != "planned"), "nothing is silent: {rows:?}");
    assert!(rows.iter().any(|it| it["reason"] == "rescheduled"), "{rows:?}");
}

#[test]
fn a_window_that_has_opened_before_the_registration_brings_no_run_of_the_past() {
    let server = Server::frozen_at("2026-02-12T20:50:00Z");
    let now = instant("2026-02-12T20:50:00Z");
    let kron = json!({"kron": {"window": {"mode": "around", "duration": "1h"}}});
    for name in ["a", "b", "c", "d", "e", "f"] {
        let next = time(&server.register(cron(name, "0 21 * * *", kron.clone()))["next_run_at"]);
        assert!(next > now, "{name}: {next}");
    }
    server.clock("2026-02-12T20:50:01Z");
    let fired: Vec<_> =
        server.events("cron.triggered").iter().map(|it| it["data"]["cron_name"].clone()).collect();
    assert!(fired.is_empty(), "nothing runs because it was registered: {fired:?}");
}
