//! `kill -9` under load, again and again, and a checker: what was answered stays true.
//!
//! A few rounds in every test run; `KRON_KILL9_SECONDS=3600` makes it a campaign.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::server::{Home, MEDIA, Server, cron, list, pause, text, time};

const TICK: &str = "tick";

/// Everything that the server has said with a 2xx.
#[derive(Default)]
struct Promised {
    pushed: BTreeSet<String>,
    /// Each claim that was answered, with the round it was made in.
    claimed: Vec<(String, usize)>,
    acked: BTreeSet<String>,
    cancelled: BTreeSet<String>,
}

/// Asks a server that may be gone at any moment; nothing unless it has answered with success.
fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Option<Value> {
    let bytes = if body.is_null() { String::new() } else { body.to_string() };
    let answer = server.try_send(method, path, &[("Content-Type", MEDIA)], bytes.as_bytes()).ok()?;
    (answer.status < 300).then(|| answer.json())
}

/// Pushes until the server is gone; now and then it changes its mind.
fn push(server: &Server, promised: &Mutex<Promised>) {
    for turn in 0.. {
        let job = json!({"type": "load.job", "args": [turn], "options": {"queue": "load"}});
        let Some(answer) = ask(server, "POST", "/ojs/v1/jobs", &job) else { return };
        let id = text(&answer["job"]["id"]).to_owned();
        promised.lock().unwrap().pushed.insert(id.clone());
        if turn % 10 == 9 && ask(server, "DELETE", &format!("/ojs/v1/jobs/{id}"), &Value::Null).is_some() {
            promised.lock().unwrap().cancelled.insert(id);
        }
    }
}

/// Fetches and acknowledges until the server is gone.
fn work(server: &Server, promised: &Mutex<Promised>, round: usize) {
    loop {
        let fetch = json!({"queues": ["load", TICK], "count": 2});
        let Some(answer) = ask(server, "POST", "/ojs/v1/workers/fetch", &fetch) else { return };
        let ids: Vec<String> = list(&answer["jobs"]).iter().map(|job| text(&job["id"]).to_owned()).collect();
        promised.lock().unwrap().claimed.extend(ids.iter().map(|id| (id.clone(), round)));
        for id in &ids {
            // A job that its pusher has cancelled meanwhile is refused, and that is fine.
            let ack = json!({"job_id": id}).to_string();
            let sent =
                server.try_send("POST", "/ojs/v1/workers/ack", &[("Content-Type", MEDIA)], ack.as_bytes());
            match sent {
                Ok(answer) if answer.status == 200 => drop(promised.lock().unwrap().acked.insert(id.clone())),
                Ok(answer) => assert_eq!(answer.status, 409, "{}", answer.text),
                Err(_) => return,
            }
        }
        if ids.is_empty() {
            pause(5);
        }
    }
}

/// Registers the same cron job over and over, as every start of an application does.
fn register(server: &Server) {
    while ask(server, "POST", "/ojs/v1/cron", &tick()).is_some() {
        pause(50);
    }
}

fn tick() -> Value {
    cron(TICK, "* * * * * *", json!({"overlap_policy": "allow"}))
}

#[test]
fn what_was_answered_survives_kill_9() {
    let seconds: i64 = std::env::var("KRON_KILL9_SECONDS").map_or(8, |text| text.parse().unwrap());
    let end = Timestamp::now() + SignedDuration::from_secs(seconds);
    let mut dice = u64::try_from(Timestamp::now().as_nanosecond() & 0xFFFF_FFFF).unwrap();
    println!("dice: {dice}");
    let mut roll = |below: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % below
    };

    let home = Home::new();
    let promised = Mutex::new(Promised::default());
    let server = home.start(&[]);
    let created = time(&server.register(tick())["created_at"]);
    drop(server.kill());
    let mut round = 0;
    while Timestamp::now() < end {
        let server = home.start(&[]);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| push(&server, &promised));
                scope.spawn(|| work(&server, &promised, round));
            }
            scope.spawn(|| register(&server));
            pause(300 + roll(1_500));
            server.kill_now();
        });
        drop(server.kill());
        // Sometimes nobody is there for some seconds.
        pause(if round % 3 == 1 { 2_200 } else { roll(200) });
        round += 1;
    }

    let server = home.start(&[]);
    // The second in which everything was looked at last must be over.
    let until = Timestamp::now();
    pause(1_500);
    check_jobs(&server, &promised.into_inner().unwrap());
    check_cron(&server, created, until);
    println!("{round} kills");
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0), "and in the end it ends gracefully");
}

/// Every 2xx push is there, every acknowledged job is completed, and nobody was handed out twice.
fn check_jobs(server: &Server, promised: &Promised) {
    assert!(promised.pushed.len() > 20 && promised.acked.len() > 10, "there was a load");
    for id in &promised.pushed {
        let answer = server.get(&format!("/ojs/v1/jobs/{id}"));
        let state = answer.is(200, "every 2xx push survives")["job"]["state"].clone();
        if promised.acked.contains(id) {
            assert_eq!(state, "completed", "every acknowledged job is completed: {id}");
        } else if promised.cancelled.contains(id) {
            assert_eq!(state, "cancelled", "every cancelled job is cancelled: {id}");
        }
    }
    for id in promised.acked.difference(&promised.pushed) {
        assert_eq!(server.state(id), "completed", "of the cron job too: {id}");
    }
    let mut claims: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (id, round) in &promised.claimed {
        claims.entry(id).or_default().push(*round);
    }
    for (id, rounds) in claims {
        assert_eq!(rounds.len(), 1, "a claim survives: {id} was handed out in rounds {rounds:?}");
    }
}

/// No second was fired twice, and every second is in the record.
fn check_cron(server: &Server, created: Timestamp, until: Timestamp) {
    let fires = server.fires(TICK);
    let once: BTreeSet<&String> = fires.iter().collect();
    assert_eq!(once.len(), fires.len(), "no (cron, scheduled_time) fired twice: {fires:?}");
    // It goes on firing meanwhile.
    let count = server.cron(TICK)["run_count"].as_u64().unwrap();
    let known = fires.len() as u64..=server.fires(TICK).len() as u64;
    assert!(known.contains(&count), "2.2: run_count is the number of fires: {count} of {known:?}");
    assert_eq!(time(&server.cron(TICK)["created_at"]), created, "CRON-26: the registration is the first one");

    let mut jobs = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/kron/v1/jobs?cron={TICK}&limit=200{cursor}")).is(200, "its jobs");
        for job in list(&page["jobs"]) {
            let at = time(&job["meta"]["cron_triggered_at"]).to_string();
            assert!(jobs.insert(at.clone()), "decision 15: one job for {at}");
        }
        if page["pagination"]["has_more"] != true {
            break;
        }
        cursor = format!("&cursor={}", text(&page["pagination"]["next_cursor"]));
    }
    for fire in &fires {
        assert!(jobs.contains(fire), "decision 15: the event and the job are one transaction: {fire}");
    }

    let rows = server.occurrences(TICK, &created.to_string(), &until.to_string());
    assert!(!rows.iter().any(|row| row["outcome"] == "planned"), "what is past is settled: {rows:?}");
    let wrong = not_once(&rows, created.as_second() + 1, until.as_second());
    assert!(
        wrong.is_empty(),
        "every due second has exactly one recorded outcome; not so: {wrong:?} of {rows:?}"
    );
}

/// The seconds that are not in the record exactly once.
fn not_once(rows: &[Value], first: i64, last: i64) -> Vec<i64> {
    let mut seconds: BTreeMap<i64, u32> = (first..=last).map(|second| (second, 0)).collect();
    for row in rows {
        let range = if row["first"].is_string() { ["first", "last"] } else { ["scheduled_time"; 2] };
        let [from, to] = range.map(|end| time(&row[end]).as_second());
        if row["count"].is_number() {
            assert_eq!(row["count"], to - from + 1, "a range counts its seconds: {row}");
        }
        (from..=to).for_each(|second| *seconds.entry(second).or_default() += 1);
    }
    seconds.into_iter().filter(|(_, rows)| *rows != 1).map(|(second, _)| second).collect()
}

#[test]
fn the_checker_finds_what_is_lost_and_what_is_twice() {
    let fired = |second: u32| json!({"outcome": "executed", "scheduled_time": format!("1970-01-01T00:00:0{second}Z")});
    let missed = json!({
        "outcome": "missed", "scheduled_time": "1970-01-01T00:00:02Z", "count": 3,
        "first": "1970-01-01T00:00:02Z", "last": "1970-01-01T00:00:04Z",
    });
    let whole = [fired(1), missed.clone(), fired(5)];
    assert!(not_once(&whole, 1, 5).is_empty(), "a whole record");
    assert_eq!(not_once(&[fired(1), missed.clone()], 1, 5), [5], "one is lost");
    assert_eq!(not_once(&[fired(1), missed, fired(4), fired(5)], 1, 5), [4], "one is there twice");
    assert_eq!(not_once(&[fired(1), fired(2), fired(2)], 1, 3), [2, 3], "both");
}
