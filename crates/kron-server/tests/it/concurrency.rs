//! Many at once: a job is for one worker, a name for one cron job, an ack for one answer.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use super::server::{Server, cron, text};

/// What so many threads get, each from the same question.
fn at_once<T: Send>(threads: usize, ask: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let ask = &ask;
        let asked: Vec<_> = (0..threads).map(|index| scope.spawn(move || ask(index))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    })
}

#[test]
fn l0_ops_008_a_job_is_claimed_by_exactly_one_worker() {
    let server = Server::new();
    let pushed: BTreeSet<String> = (0..200).map(|_| server.push_to("claim", json!({}))).collect();
    let fetched = at_once(16, |index| {
        let mut own = Vec::new();
        // Some take one at a time, some several.
        loop {
            let jobs = server.fetch("claim", u32::try_from(index % 3).unwrap() + 1);
            if jobs.is_empty() {
                return own;
            }
            own.extend(jobs.iter().map(|job| text(&job["id"]).to_owned()));
        }
    });
    let all: Vec<String> = fetched.into_iter().flatten().collect();
    assert_eq!(all.len(), 200, "L0-OPS-008: each exactly once: {} claims of 200 jobs", all.len());
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), pushed, "L0-OPS-008: and every one");
    for id in pushed.iter().take(20) {
        assert_eq!(server.job(id)["attempt"], 1, "4.7: the claim is atomic");
    }
}

#[test]
fn one_of_many_pushes_with_the_same_id_wins() {
    let server = Server::new();
    let id = "019501a2-3b4c-7d5e-8f6a-1b2c3d4e5f6a";
    let job = json!({"id": id, "type": "a.b", "args": []});
    let mut statuses = at_once(8, |_| server.post("/ojs/v1/jobs", job.clone()).status);
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409], "L0-OPS-017b: under concurrency too");
}

#[test]
fn one_of_many_acks_wins() {
    let server = Server::new();
    let id = server.push_to("q", json!({}));
    server.fetch_one("q");
    let mut statuses = at_once(8, |_| server.ack(&id).status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409], "3.1: active to completed happens once");
    assert_eq!(server.events("job.completed").len(), 1, "6.4: and is told once");
}

#[test]
fn one_of_many_registrations_is_the_first() {
    let server = Server::new();
    let register = |_| server.post("/ojs/v1/cron", cron("same", "@daily", json!({}))).status;
    let mut statuses = at_once(8, register);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201], "CRON-01, CRON-26");
    assert_eq!(server.get("/ojs/v1/cron").is(200, "the list")["count"], 1, "CRON-01");
}

#[test]
fn enqueue_stays_exclusive_when_many_fetch() {
    let server = Server::new();
    server.register(cron("job", "* * * * *", json!({"overlap_policy": "enqueue"})));
    server.step_to("2026-02-12T20:20:00Z", 20);
    for _ in 0..5 {
        let fetched: Vec<Value> = at_once(8, |_| server.fetch("job", 2)).into_iter().flatten().collect();
        assert_eq!(fetched.len(), 1, "6.1 enqueue: never two active at once: {fetched:?}");
        server.ack(text(&fetched[0]["id"])).is(200, "ack");
    }
}

#[test]
fn what_many_push_at_once_is_all_there() {
    let server = Server::new();
    let pushed = at_once(16, |_| (0..25).map(|_| server.push_to("load", json!({}))).collect::<Vec<_>>());
    let pushed: BTreeSet<String> = pushed.into_iter().flatten().collect();
    assert_eq!(pushed.len(), 400, "ids are unique");
    let mut fetched = BTreeSet::new();
    while fetched.len() < 400 {
        let jobs = server.fetch("load", 100);
        assert!(!jobs.is_empty(), "every 201 can be fetched: {} of 400", fetched.len());
        fetched.extend(jobs.iter().map(|job| text(&job["id"]).to_owned()));
    }
    assert_eq!(fetched, pushed, "and nothing else");
}
