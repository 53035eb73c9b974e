//! Requests and their answers.

use kron_dashboard::{Board, Dashboard, Guard, Mark, Permission, Reply, Request, Response};
use serde_json::{Value, json};

use crate::board::{NOW, Small, entry, job};

fn ask(board: &dyn Board, method: &str, target: &str, body: &Value) -> Response {
    ask_at(&Dashboard::new(Guard::new(80, [])), board, method, target, body)
}

fn ask_at(dashboard: &Dashboard, board: &dyn Board, method: &str, target: &str, body: &Value) -> Response {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let request = Request {
        method: method.into(),
        path: format!("/dashboard/{path}"),
        query: query.into(),
        headers: vec![header("host", "localhost:80"), header("content-type", "application/json")],
        body: body.to_string().into_bytes(),
    };
    match dashboard.answer(board, &request) {
        Reply::Whole(response) => response,
        Reply::Live => panic!("{target} is a stream"),
    }
}

fn get(board: &dyn Board, path: &str) -> Value {
    let response = ask(board, "GET", &format!("api/{path}"), &Value::Null);
    assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
    serde_json::from_slice(&response.body).unwrap()
}

fn refused(board: &dyn Board, path: &str) -> (u16, String) {
    let response = ask(board, "GET", &format!("api/{path}"), &Value::Null);
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    (response.status, body["message"].as_str().unwrap().to_owned())
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let board = Small::new(Vec::new());
    for (path, content_type) in [
        ("", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("api/jobs", "application/json"),
    ] {
        let response = ask(&board, "GET", path, &Value::Null);
        let headers = response.headers();
        let header =
            |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
        assert_eq!((response.status, header("content-type")), (200, Some(content_type)));
        assert_eq!(header("content-security-policy"), Some(kron_dashboard::POLICY));
        assert_eq!(header("x-content-type-options"), Some("nosniff"));
        assert_eq!(header("x-frame-options"), Some("DENY"));
    }
    for path in ["nothing.js", "../Cargo.toml", "api/nothing", "api/"] {
        assert_eq!(ask(&board, "GET", path, &Value::Null).status, 404, "{path}");
    }
    assert_eq!(ask(&board, "DELETE", "api/act", &Value::Null).status, 405);
}

#[test]
fn who_may_not_is_told_so_and_nothing_is_done() {
    let run = json!({"act": "run", "job": "a"});
    let pause = json!({"act": "pause", "job": "a"});
    let draft = json!({"fields": {}});
    for (may, expected) in [
        (vec![], [403, 403, 403, 403]),
        (vec![Permission::See], [200, 403, 403, 403]),
        (vec![Permission::See, Permission::Run], [200, 200, 403, 403]),
        (vec![Permission::See, Permission::Run, Permission::Pause], [200, 200, 200, 403]),
        (vec![Permission::See, Permission::Run, Permission::Pause, Permission::Change], [200, 200, 200, 200]),
    ] {
        let board = Small { may, ..Small::new(vec![job("a", "0 * * * *", "UTC", "0s")]) };
        let statuses = [
            ask(&board, "GET", "api/jobs", &Value::Null).status,
            ask(&board, "POST", "api/act", &run).status,
            ask(&board, "POST", "api/act", &pause).status,
            ask(&board, "POST", "api/save", &draft).status,
        ];
        assert_eq!(statuses, expected, "{:?}", board.may);
        let allowed = expected[1..].iter().filter(|status| **status == 200).count();
        assert_eq!(board.acts.lock().unwrap().len(), allowed);
    }
    let board = Small::new(Vec::new());
    let wrong = ask(&board, "POST", "api/act", &json!({"act": "explode"}));
    assert_eq!(wrong.status, 400);
    assert!(board.acts.lock().unwrap().is_empty());
}

#[test]
fn a_timeline_has_past_and_future_and_the_change_of_clocks() {
    let mut board = Small::new(vec![
        job("night", "30 2 * * *", "Europe/Paris", "1h"),
        job("often", "* * * * *", "UTC", "0s"),
    ]);
    board.entries.push((
        "night".into(),
        entry("2027-03-27T01:30:00Z", Mark::Skipped, "the run before was still active"),
    ));
    let said = get(&board, "timeline?from=2027-03-27T00:00:00Z&to=2027-03-30T00:00:00Z");
    let ticks = said["rows"][0]["ticks"].as_array().unwrap();
    // On the day of the change 02:30 does not exist.
    let nominals: Vec<&str> = ticks.iter().map(|tick| tick["nominal"].as_str().unwrap()).collect();
    assert_eq!(nominals, ["2027-03-27T01:30:00Z", "2027-03-29T00:30:00Z"]);
    assert_eq!((&ticks[0]["mark"], &ticks[1]["mark"]), (&json!("skipped"), &json!("planned")));
    assert_eq!(ticks[0]["why"], "the run before was still active");
    assert_eq!(ticks[1]["window"], json!(["2027-03-29T00:30:00Z", "2027-03-29T01:30:00Z"]));
    assert_eq!(
        said["changes"],
        json!([{"at": "2027-03-28T01:00:00Z", "zone": "Europe/Paris", "before": "+01:00", "after": "+02:00"}])
    );
    // What is too much to be drawn one by one is counted, and what is too much to be counted is told.
    let often = &said["rows"][1];
    assert!(often["ticks"].as_array().unwrap().is_empty());
    assert_eq!(often["hasMore"], true);
    let counted: u64 = often["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["marks"]["planned"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 3_000);
    assert_eq!(refused(&board, "timeline?from=2027-03-27T00:00:00Z&to=2027-03-27T00:00:01Z").0, 400);
    assert_eq!(
        refused(&board, "timeline?from=x&to=y"),
        (400, "expected a time such as 2026-03-01T02:30:00Z in `from`, but found `x`".into())
    );
}

#[test]
fn very_many_jobs_are_counted_in_steps_and_none_twice() {
    let jobs: Vec<_> =
        (0..9).map(|nth| job(&format!("job-{nth}"), "0 9 * * *", "Europe/Paris", "30m")).collect();
    let path = "load?zone=Europe/Paris&day=2027-03-27";
    let whole = get(&Small::new(jobs.clone()), path);
    assert_eq!(whole["counting"], Value::Null);
    // Two jobs at a time, each time longer than a question counts.
    let slow = Small { slow: std::time::Duration::from_millis(900), ..Small::new(jobs) };
    let dashboard = Dashboard::new(Guard::new(80, []));
    let look = || -> Value {
        let response = ask_at(&dashboard, &slow, "GET", &format!("api/{path}"), &Value::Null);
        serde_json::from_slice(&response.body).unwrap()
    };
    let mut steps = Vec::new();
    let counted = loop {
        let said = look();
        if said["counting"].is_null() {
            break said;
        }
        assert_eq!((&said["counting"]["of"], &said["before"]), (&json!(9), &Value::Null));
        steps.push(said["counting"]["done"].as_u64().unwrap());
        assert!(steps.len() < 20, "{steps:?}");
    };
    assert!(steps.len() >= 2 && steps.is_sorted(), "{steps:?}");
    for name in ["before", "after", "week", "jobs", "peakAfter"] {
        assert_eq!(counted[name], whole[name], "{name}");
    }
    // It is kept, and told while it is counted anew because something was done.
    assert_eq!(look()["counting"], Value::Null);
    let act = json!({"act": "run", "job": "job-0"});
    assert_eq!(ask_at(&dashboard, &slow, "POST", "api/act", &act).status, 200);
    let again = look();
    assert!(again["counting"].is_object() && again["after"] == whole["after"], "{again}");
}

#[test]
fn the_load_counts_what_the_engine_will_do() {
    let jobs = (0..50).map(|nth| job(&format!("job-{nth}"), "0 9 * * *", "Europe/Paris", "30m"));
    let mut board = Small::new(jobs.collect());
    board.jobs[0].paused = true;
    let said = get(&board, "load?zone=Europe/Paris&day=2027-03-27");
    let sum = |name: &str| said[name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("before"), sum("after")), (49, 49));
    assert_eq!(said["peakBefore"], json!({"at": "2027-03-27T08:00:00Z", "local": "09:00", "starts": 49}));
    assert!(said["peakAfter"]["starts"].as_u64().unwrap() < 10);
    assert_eq!((&said["jobs"], &said["paused"], &said["isPartial"]), (&json!(49), &json!(1), &json!(false)));
    // Each of these minutes is what the engine chose.
    let mut expected = vec![0_u64; 1_440];
    for job in &board.jobs[1..] {
        let chosen = kron_core::decide(job.plan.as_ref().unwrap(), "2027-03-27T08:00:00Z".parse().unwrap())
            .chosen()
            .unwrap();
        let midnight: jiff::Timestamp = "2027-03-26T23:00:00Z".parse().unwrap();
        expected[usize::try_from((chosen.as_second() - midnight.as_second()) / 60).unwrap()] += 1;
    }
    assert_eq!(said["after"], json!(expected));
    let week: u64 = said["week"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|day| day["hours"].as_array().unwrap())
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(week, 49 * 7);
    assert_eq!(
        get(&board, "load?zone=Europe/Paris&day=2027-03-28")["before"].as_array().unwrap().len(),
        23 * 60
    );
    assert_eq!(
        refused(&board, "load?zone=Mars").1,
        "expected the name of a time zone such as Europe/Paris in `zone`, but found `Mars`"
    );
}

#[test]
fn a_job_is_explained_and_its_next_runs_are_in_two_zones() {
    let board = Small::new(vec![job("night", "30 2 * * *", "Europe/Paris", "1h")]);
    let said = get(&board, "job?id=night");
    let next = said["next"].as_array().unwrap();
    assert_eq!(next.len(), 10);
    assert_eq!(next[0]["nominal"], "2027-03-29T00:30:00Z");
    let plan = board.jobs[0].plan.as_ref().unwrap();
    let decision = kron_core::decide(plan, "2027-03-29T00:30:00Z".parse().unwrap());
    assert_eq!(next[0]["chosen"], json!(decision.chosen()));
    assert!(next[0]["local"].as_str().unwrap().starts_with("2027-03-29 0"));
    let explained = &said["explained"];
    assert_eq!(explained["seedHash"], decision.seed_hash().to_string());
    let share = explained["share"].as_f64().unwrap();
    assert!(
        (explained["unit"].as_f64().unwrap() - share).abs() < 0.001,
        "a uniform choice lies where its number says"
    );
    assert_eq!(refused(&board, "job?id=%3Cb%3E"), (404, "job `<b>` does not exist".into()));
}

#[test]
fn why_answers_from_the_record_and_from_the_engine() {
    let mut board = Small::new(vec![job("night", "30 2 * * *", "Europe/Paris", "1h")]);
    board
        .entries
        .push(("night".into(), entry("2027-03-27T01:30:00Z", Mark::Missed, "its deadline had passed")));
    let why = |at: &str| get(&board, &format!("why?id=night&at={at}"));
    assert_eq!(why("2027-03-27T01:30:00Z")["answer"], "missed: its deadline had passed");
    assert_eq!(
        why("2027-03-27T01:45:00Z")["answer"],
        "2027-03-27T01:45:00Z is in the window of the period of 2027-03-27T01:30:00Z: missed: its deadline had passed"
    );
    assert_eq!(why("2027-03-29T00:30:00Z")["answer"], "planned: it has not come yet");
    let none = why("2027-03-27T08:00:00Z");
    assert_eq!(none["before"]["nominal"], "2027-03-27T01:30:00Z");
    assert_eq!(none["after"]["nominal"], "2027-03-29T00:30:00Z");
    assert_eq!(none["fields"][1], json!({"name": "hour", "value": "9", "wanted": "2", "matches": false}));
    assert!(why("2027-03-26T01:30:00Z")["answer"].as_str().unwrap().starts_with("nothing is recorded of it"));
    assert_eq!(refused(&board, "why?id=night"), (400, "expected `at`, but it is missing".into()));
}

#[test]
fn a_page_has_no_more_rows_than_are_asked_for() {
    let board =
        Small::new((0..300).map(|nth| job(&format!("job-{nth:03}"), "0 * * * *", "UTC", "0s")).collect());
    assert_eq!(get(&board, "jobs")["rows"].as_array().unwrap().len(), 25);
    assert_eq!(get(&board, "jobs?limit=100000")["rows"].as_array().unwrap().len(), 200);
    let last = get(&board, "jobs?search=job-2&offset=90");
    assert_eq!((last["rows"].as_array().unwrap().len(), &last["total"]), (10, &json!(100)));
    let csv = ask(&board, "GET", "api/jobs.csv", &Value::Null);
    assert_eq!(String::from_utf8_lossy(&csv.body).lines().count(), 301);
    let calendar = ask(&board, "GET", "api/schedule.ics", &Value::Null);
    let calendar = String::from_utf8_lossy(&calendar.body).into_owned();
    assert_eq!(calendar.matches("BEGIN:VEVENT").count(), 1_000);
    assert!(calendar.contains("DTSTART:20270327T130000Z"), "the first after {NOW}");
}
