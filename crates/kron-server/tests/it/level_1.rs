//! Level 1 of the conformance suite, row by row (L1-…): retries, dead letters, timeouts and workers.

use serde_json::{Value, json};

use super::level_0::job_in;
use super::server::{START, Server, absent, assert_time, list, merge, text, time};

/// Pushes a job with a retry policy without jitter, to a queue.
fn retrying(server: &Server, queue: &str, policy: Value) -> String {
    server.push_to(queue, json!({"retry": merge(json!({"jitter": false}), policy)}))
}

/// Fetches and fails a job again and again as soon as it can be, and returns what each nack answered.
fn fail(server: &Server, queue: &str, times: usize) -> Vec<Value> {
    let one = |_| {
        let job = server.fetch_one(queue);
        let nack = server.nack(text(&job["id"])).is(200, "nack");
        if nack["state"] == "retryable" {
            server.clock(text(&nack["next_attempt_at"]));
        }
        nack
    };
    (0..times).map(one).collect()
}

fn delays(nacks: &[Value]) -> Vec<i64> {
    nacks.iter().filter_map(|nack| nack["retry_delay_ms"].as_i64()).collect()
}

/// How many jobs a heartbeat has extended; the binding does not say whether that is a number or a list.
fn extended(beat: &Value) -> usize {
    let extended = &beat["jobs_extended"];
    extended.as_array().map_or_else(|| usize::try_from(extended.as_u64().unwrap()).unwrap(), Vec::len)
}

fn dead_letters(server: &Server) -> Vec<Value> {
    list(&server.get("/ojs/v1/dead-letter").is(200, "4.13: the list")["jobs"])
}

/// A job that has died into the dead letter list.
fn dead(server: &Server, queue: &str) -> String {
    let id = retrying(server, queue, json!({"max_attempts": 1, "on_exhaustion": "dead_letter"}));
    fail(server, queue, 1);
    id
}

#[test]
fn l1_rtr_001_exponential_backoff_to_the_millisecond() {
    let server = Server::new();
    let id = retrying(
        &server,
        "q",
        json!({"max_attempts": 4, "initial_interval": "PT1S", "backoff_coefficient": 2.0}),
    );
    for (attempt, delay) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        let job = server.fetch_one("q");
        assert_eq!(job["attempt"], attempt, "L1-RTR-001, L1-RTR-013");
        let nack = server.nack(&id).is(200, "nack");
        assert_eq!(nack["retry_delay_ms"], delay, "L1-RTR-001, 5.2: I*C^(n-1)");
        let wait = time(&nack["next_attempt_at"]).duration_since(server.now());
        assert_eq!(wait.as_millis(), i128::from(delay), "5.2: next_attempt_at says the same");
        server.pass_ms(delay - 1);
        assert!(server.fetch("q", 1).is_empty(), "5.8: never early");
        assert_eq!(server.state(&id), "retryable", "5.8: never early");
        server.pass_ms(1);
        assert_eq!(server.state(&id), "available", "5.7: promoted when it is due");
        assert_eq!(server.job(&id)["retry_delay_ms"], delay, "L1-RTR-001: visible on the job");
    }
    assert_eq!(server.fetch_one("q")["retry_delay_ms"], 4_000, "L1-RTR-001: on the fetched job too");
}

#[test]
fn l1_rtr_002_013_attempts_are_counted_and_bounded() {
    let server = Server::new();
    let id = retrying(&server, "q", json!({"max_attempts": 3}));
    let nacks = fail(&server, "q", 3);
    let attempts: Vec<_> = nacks.iter().map(|nack| nack["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 2, 3], "L1-RTR-013: nack reports the attempt that failed");
    let states: Vec<_> = nacks.iter().map(|nack| nack["state"].clone()).collect();
    assert_eq!(states, ["retryable", "retryable", "discarded"], "L1-RTR-002: the third nack discards");
    assert_eq!(server.job(&id)["attempt"], 3, "L1-RTR-013: get says 3");
    assert!(server.fetch("q", 1).is_empty(), "L1-RTR-002: and that is the end");

    for attempts in [0, 1] {
        retrying(&server, "once", json!({"max_attempts": attempts}));
        assert_eq!(fail(&server, "once", 1)[0]["state"], "discarded", "5.1: 0 and 1 both mean no retry");
    }
}

#[test]
fn l1_rtr_003_008_009_010_the_shapes_of_backoff() {
    let server = Server::new();
    let second = json!({"max_attempts": 10, "initial_interval": "PT1S"});
    let cases = [
        (
            "capped",
            json!({"backoff_coefficient": 10.0, "max_interval": "PT2S"}),
            [1_000, 2_000, 2_000],
            "L1-RTR-008",
        ),
        ("linear", json!({"backoff_strategy": "linear"}), [1_000, 2_000, 3_000], "L1-RTR-009"),
        ("linear-2", json!({"backoff_type": "linear"}), [1_000, 2_000, 3_000], "5.1"),
        ("constant", json!({"backoff_strategy": "constant"}), [1_000; 3], "L1-RTR-010"),
        ("one", json!({"backoff_coefficient": 1.0}), [1_000; 3], "5.2: coefficient 1.0 is constant"),
        (
            "polynomial",
            json!({"backoff_strategy": "polynomial", "backoff_coefficient": 3.0}),
            [1_000, 8_000, 27_000],
            "5.2",
        ),
        ("half", json!({"initial_interval": "PT0.5S"}), [500, 1_000, 2_000], "1.3: fractions"),
        (
            "alias",
            json!({"initial_interval_ms": 250, "initial_interval": null}),
            [250, 500, 1_000],
            "1.3: milliseconds",
        ),
    ];
    for (queue, policy, expected, why) in cases {
        let mut policy = merge(second.clone(), policy);
        policy.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        retrying(&server, queue, policy);
        assert_eq!(delays(&fail(&server, queue, 3)), expected, "{why}: {queue}");
    }
    let wild = json!({"max_attempts": 60, "initial_interval": "PT1S", "backoff_coefficient": 1000.0});
    retrying(&server, "wild", wild);
    let all = delays(&fail(&server, "wild", 59));
    assert_eq!(all[58], 300_000, "5.2: guarded against overflow, capped at the default five minutes");

    let base =
        json!({"max_attempts": 50, "initial_interval": "PT2S", "backoff_coefficient": 1.0, "jitter": true});
    retrying(&server, "jitter", base);
    let all = delays(&fail(&server, "jitter", 40));
    assert!(
        all.iter().all(|delay| (1_000..=3_000).contains(delay)),
        "L1-RTR-003: from 1000 to 3000: {all:?}"
    );
    assert!(all.iter().any(|delay| *delay != all[0]), "L1-RTR-003: jitter is not constant: {all:?}");
}

#[test]
fn l1_rtr_004_005_what_is_not_worth_a_retry_gets_none() {
    let server = Server::new();
    let policy = json!({"non_retryable_errors": ["ValidationError", "auth.*", "Auth.*"]});
    let cases = [
        (
            json!({"code": "x", "message": "m", "retryable": false}),
            "discarded",
            "L1-RTR-004: retryable false",
        ),
        (json!({"code": "x", "message": "m", "type": "ValidationError"}), "discarded", "5.3: by type"),
        (json!({"code": "ValidationError", "message": "m"}), "discarded", "5.3: by code"),
        (
            json!({"code": "x", "message": "m", "details": {"error_class": "ValidationError"}}),
            "discarded",
            "L1-RTR-004",
        ),
        (
            json!({"code": "x", "message": "m", "details": {"error_class": "Auth.TokenExpired"}}),
            "discarded",
            "L1-RTR-005",
        ),
        (
            json!({"code": "x", "message": "m", "type": "auth.x.y"}),
            "discarded",
            "L1-RTR-005: a prefix with its dot",
        ),
        (
            json!({"code": "x", "message": "m", "type": "auth"}),
            "retryable",
            "5.3: `auth.*` does not match `auth`",
        ),
        (json!({"code": "x", "message": "m", "type": "authx"}), "retryable", "5.3: nor `authx`"),
        (json!({"code": "x", "message": "m", "type": "ValidationErrors"}), "retryable", "5.3: exactly"),
        (json!({"code": "RETRY", "message": "m"}), "retryable", "5.4: RETRY"),
        (json!({"code": "DISCARD", "message": "m"}), "discarded", "5.4: DISCARD"),
        (json!({"code": "FAIL", "message": "m"}), "discarded", "5.4: FAIL"),
        (json!({"code": "DEAD_LETTER", "message": "m"}), "discarded", "5.4: DEAD_LETTER"),
    ];
    for (index, (error, state, why)) in cases.into_iter().enumerate() {
        let queue = format!("q-{index}");
        let id = retrying(&server, &queue, policy.clone());
        server.fetch_one(&queue);
        let nack = server.post("/ojs/v1/workers/nack", json!({"job_id": id, "error": error})).is(200, why);
        assert_eq!((&nack["state"], &nack["attempt"]), (&json!(state), &json!(1)), "{why}: {error}");
        let listed = dead_letters(&server).iter().any(|job| job["id"] == *id);
        assert_eq!(
            listed,
            error["code"] == "DEAD_LETTER",
            "5.4: only DEAD_LETTER goes to the dead letters: {error}"
        );
    }
}

#[test]
fn l1_rtr_006_007_dlq_001_003_who_exhausts_its_attempts_goes_where_its_policy_says() {
    let server = Server::new();
    let plain = retrying(&server, "plain", json!({"max_attempts": 1}));
    fail(&server, "plain", 1);
    let job = server.job(&plain);
    assert!(job["state"] == "discarded" && job["completed_at"].is_string(), "L1-RTR-006: {job}");
    assert!(dead_letters(&server).is_empty(), "C22: only `dead_letter` reaches the list");

    let [first, second] = ["one", "two"].map(|queue| dead(&server, queue));
    let all = dead_letters(&server);
    let ids: Vec<_> = all.iter().map(|job| text(&job["id"])).collect();
    assert!(
        ids.contains(&first.as_str()) && ids.contains(&second.as_str()),
        "L1-RTR-007, L1-DLQ-003: {ids:?}"
    );
    let job = all.iter().find(|job| job["id"] == *first).unwrap();
    assert_eq!((&job["state"], &job["type"]), (&json!("discarded"), &json!("test.job")), "L1-DLQ-001: {job}");
    assert_eq!(list(&job["errors"]).len(), 1, "L1-DLQ-001: one error");
    assert!(job["discarded_at"].is_string(), "4.13: {job}");
    let one = server.get("/ojs/v1/dead-letter?queue=two").is(200, "4.13: filter");
    assert_eq!(list(&one["jobs"]).len(), 1, "4.13: by queue");
    assert_eq!(one["jobs"][0]["id"], *second, "4.13: by queue");
}

#[test]
fn l1_rtr_011_012_an_invalid_retry_policy_is_422_and_names_the_field() {
    let server = Server::new();
    for (field, value, row) in [
        ("max_attempts", json!(-1), "L1-RTR-011"),
        ("max_attempts", json!("three"), "L1-RTR-011"),
        ("max_attempts", json!(1.5), "L1-RTR-011"),
        ("backoff_coefficient", json!(0.5), "L1-RTR-012"),
        ("backoff_coefficient", json!("two"), "L1-RTR-012"),
        ("initial_interval", json!("soon"), "5.1"),
        ("initial_interval", json!("PT0S"), "5.1"),
        ("max_interval", json!("PT0.5S"), "5.1: at least the initial interval"),
        ("jitter", json!("some"), "5.1"),
        ("non_retryable_errors", json!("all"), "5.1"),
        ("non_retryable_errors", json!([""]), "5.1"),
        ("on_exhaustion", json!("explode"), "5.1"),
    ] {
        let job = json!({"type": "a.b", "args": [], "options": {"retry": {field: value}}});
        let error = server.post("/ojs/v1/jobs", job).refused(422, "validation_error", row);
        assert_eq!(error["type"], "validation_error", "{row}: error.type");
        assert!(text(&error["message"]).contains(field), "{row}: the message names {field}: {error}");
    }
    let job = server.push(json!({"type": "a.b", "args": [], "retry": {"max_attempts": 7, "x_other": 1}}));
    assert_eq!(job["max_attempts"], 7, "5.1: other members are allowed, partial policies are merged");
    server.push(json!({"type": "a.b", "args": [], "retry": {"initial_interval": "PT10M"}}));
}

#[test]
fn l1_rtr_014_015_the_history_of_errors() {
    let server = Server::new();
    let id = retrying(&server, "q", json!({"max_attempts": 3, "initial_interval": "PT1S"}));
    for (attempt, kind) in [(1, "ConnectionTimeout"), (2, "RateLimitExceeded"), (3, "InternalServerError")] {
        server.fetch_one("q");
        let error = json!({"code": "handler_error", "type": kind, "message": format!("failure {attempt}")});
        server.post("/ojs/v1/workers/nack", json!({"job_id": id, "error": error})).is(200, "nack");
        server.pass(60);
    }
    let job = server.job(&id);
    let errors = list(&job["errors"]);
    assert_eq!(errors.len(), 3, "L1-RTR-015: each failed attempt is in the history");
    for (index, kind) in
        ["ConnectionTimeout", "RateLimitExceeded", "InternalServerError"].into_iter().enumerate()
    {
        let error = &errors[index];
        assert_eq!(error["type"], kind, "2.4, L1-RTR-014 as it was meant: by nack's own type");
        assert_eq!(error["code"], "handler_error", "L1-RTR-015: code");
        assert_eq!(error["message"], format!("failure {}", index + 1), "L1-RTR-015: message");
        assert_eq!(error["attempt"], index + 1, "L1-RTR-015: attempt, from 1");
        assert!(
            error["occurred_at"].is_string() && error["timestamp"].is_string(),
            "L1-RTR-015, C24: {error}"
        );
    }
    assert_eq!(job["error"]["message"], "failure 3", "2.1: `error` is the most recent");
    let kinds = server.events("job.*");
    let retrying = kinds.iter().filter(|event| event["type"] == "job.retrying").count();
    assert_eq!(retrying, 2, "6.4: job.retrying for each retry");
}

#[test]
fn l1_dlq_002_004_dead_letters_can_be_retried_and_deleted() {
    let server = Server::new();
    let id = dead(&server, "q");
    server.pass(60);
    let answer = server.post(&format!("/ojs/v1/dead-letter/{id}/retry"), json!({})).is(200, "L1-DLQ-002");
    let job = &answer["job"];
    assert_eq!(
        (&job["id"], &job["state"], &job["attempt"]),
        (&json!(id), &json!("available"), &json!(0)),
        "L1-DLQ-002"
    );
    assert_eq!(list(&job["errors"]).len(), 1, "C26: keep errors[]");
    for member in ["error", "completed_at", "discarded_at"] {
        assert!(absent(job, member), "C26: {member} is dropped: {job}");
    }
    assert_time(&job["enqueued_at"], "2026-02-12T20:16:20Z", "4.13: a fresh enqueued_at");
    assert!(dead_letters(&server).is_empty(), "4.13: removed from the listing");
    assert_eq!(server.fetch_one("q")["attempt"], 1, "L1-DLQ-002: fetch says attempt 1");
    server.ack(&id).is(200, "L1-DLQ-002: ack");

    let id = dead(&server, "q");
    let gone = server.delete(&format!("/ojs/v1/dead-letter/{id}")).is(200, "L1-DLQ-004");
    assert_eq!((&gone["deleted"], &gone["job_id"]), (&json!(true), &json!(id)), "L1-DLQ-004");
    assert!(dead_letters(&server).is_empty(), "L1-DLQ-004: no longer listed");
    server.get(&format!("/ojs/v1/jobs/{id}")).refused(404, "not_found", "4.13: gone from INFO as well");

    let alive = job_in(&server, "discarded");
    for id in [alive.as_str(), "019501a2-0000-7000-8000-000000000000", "nonsense"] {
        let path = format!("/ojs/v1/dead-letter/{id}");
        server.delete(&path).refused(404, "not_found", "3.2: 404 unless it is a dead letter");
        server.post(&format!("{path}/retry"), json!({})).refused(
            404,
            "not_found",
            "3.2: 404 unless it is one",
        );
    }
}

#[test]
fn l1_tmo_001_the_server_enforces_execution_timeouts() {
    let server = Server::new();
    let id = server.push_to("q", json!({"timeout_ms": 2_000, "retry": {"jitter": false}}));
    server.fetch_as("w-1", "q");
    server.pass_ms(1_900);
    server.heartbeat("w-1", &[&id]);
    assert_eq!(server.state(&id), "active", "5.5: not before");
    server.pass_ms(200);
    let job = server.job(&id);
    assert_eq!(job["state"], "retryable", "L1-TMO-001: it fails, regardless of heartbeats");
    assert_eq!(job["error"]["code"], "timeout", "L1-TMO-001, 5.5: {job}");
    server.ack(&id).refused(409, "conflict", "5.5: the worker comes too late");

    let last = server.push_to("last", json!({"timeout": 1, "retry": {"max_attempts": 1}}));
    server.fetch_one("last");
    server.pass(2);
    assert_eq!(server.state(&last), "discarded", "5.5: it follows the policy");
    let patient = server.push_to("patient", json!({}));
    server.fetch_one("patient");
    server.pass(29 * 60);
    assert_eq!(server.state(&patient), "active", "C6: the default is 30 minutes");
}

#[test]
fn l1_vis_001_who_is_silent_loses_the_job() {
    let server = Server::new();
    let id = server.push_to("q", json!({"visibility_timeout_ms": 3_000}));
    server.fetch_as("w-1", "q");
    server.pass_ms(2_900);
    assert!(server.fetch_as("w-2", "q").is_empty(), "L1-VIS-001: it is reserved");
    server.pass_ms(1_100);
    let job = server.job(&id);
    assert_eq!(job["state"], "available", "L1-VIS-001, C17: available at once");
    assert_eq!(job["attempt"], 1, "5.6: attempt is not bumped at expiry");
    assert!(absent(&job, "started_at") && absent(&job, "worker_id"), "3.1: {job}");
    assert_eq!(job["errors"][0]["type"], "visibility_timeout", "5.6: the error is recorded: {job}");
    let again = server.fetch_as("w-2", "q");
    assert_eq!(again[0]["attempt"], 2, "L1-VIS-001: another worker fetches it");
    let late = json!({"job_id": id, "worker_id": "w-1"});
    server.post("/ojs/v1/workers/ack", late).refused(409, "conflict", "4.8: the first worker has lost it");
    server.ack(&id).is(200, "L1-VIS-001: and acks");

    let last = server.push_to("last", json!({"visibility_timeout_ms": 1_000, "retry": {"max_attempts": 1}}));
    server.fetch_one("last");
    server.pass(2);
    assert_eq!(server.state(&last), "discarded", "5.6: discarded if attempts are used up");

    server.push_to("fetch", json!({"visibility_timeout_ms": 60_000}));
    let body = json!({"queues": ["fetch"], "visibility_timeout_ms": 1_000});
    server.post("/ojs/v1/workers/fetch", body).is(200, "fetch");
    server.pass(2);
    assert_eq!(server.fetch("fetch", 1).len(), 1, "4.7: the fetch's own reservation comes first");
}

#[test]
fn l1_vis_002_wrk_001_heartbeats_keep_the_job() {
    let server = Server::new();
    let id = server.push_to("q", json!({"visibility_timeout_ms": 3_000}));
    server.fetch_as("w-1", "q");
    for _ in 0..3 {
        server.pass(2);
        let beat = server.heartbeat("w-1", &[&id]);
        assert_eq!(beat["state"], "running", "L1-WRK-001, L1-VIS-002, C18");
        assert!(beat["server_time"].is_string(), "4.10: {beat}");
        assert_eq!(extended(&beat), 1, "4.10: jobs_extended: {beat}");
        assert_eq!(server.state(&id), "active", "L1-VIS-002: still active");
    }
    server.pass(2);
    let strange = server.heartbeat("w-2", &[&id]);
    assert_eq!(extended(&strange), 0, "4.10: only jobs held by that worker: {strange}");
    server.pass(2);
    assert_eq!(server.state(&id), "available", "4.10: a stranger's heartbeat extends nothing");
    assert_eq!(server.events("job.heartbeat").len(), 3, "4.10: an event per extended job");

    server.post("/ojs/v1/workers/heartbeat", json!({})).refused(400, "invalid_request", "4.10: worker_id");
    for body in [
        json!({"worker_id": "w-3", "active_jobs": 1, "active_job_ids": [id]}),
        json!({"worker_id": "w-3", "job_id": id}),
        json!({"worker_id": "w-3"}),
        json!({"worker_id": "w-3", "active_jobs": ["nonsense"]}),
    ] {
        let beat = server.post("/ojs/v1/workers/heartbeat", body.clone()).is(200, "C19: by JSON type");
        assert_eq!(beat["state"], "running", "C19: {body}");
    }
}

#[test]
fn l1_wrk_002_003_workers_are_told_to_be_quiet_and_to_end() {
    let server = Server::new();
    let id = server.push_to("quiet", json!({"metadata": {"test_directive": "quiet"}}));
    server.fetch_as("w-1", "quiet");
    assert_eq!(server.heartbeat("w-1", &[&id])["state"], "quiet", "L1-WRK-002");
    server.ack(&id).is(200, "L1-WRK-002: ack still works");

    let id = server.push_to("end", json!({"metadata": {"test_directive": "terminate"}}));
    server.fetch_as("w-2", "end");
    assert_eq!(server.heartbeat("w-2", &[&id])["state"], "terminate", "L1-WRK-003");
    let error = json!({"code": "shutdown", "message": "going", "retryable": false});
    let nack = json!({"job_id": id, "error": error, "requeue": true});
    let answer = server.post("/ojs/v1/workers/nack", nack).is(200, "L1-WRK-003");
    assert_eq!(answer["state"], "available", "L1-WRK-003: requeue beats retryable:false");
    assert!(absent(&server.job(&id), "started_at"), "3.1: cleared");
    let job = server.fetch_as("w-3", "end");
    assert_eq!(job[0]["id"], *id, "L1-WRK-003: another worker finishes");
    server.ack(&id).is(200, "L1-WRK-003");
}

#[test]
fn section_4_11_a_worker_that_has_fallen_silent_is_dead() {
    let server = Server::new();
    let [beating, silent] = ["beating", "silent"].map(|queue| server.push_to(queue, json!({})));
    server.fetch_as("w-1", "beating");
    server.fetch_as("w-2", "silent");
    server.heartbeat("w-1", &[&beating]);
    server.pass(29);
    assert_eq!(server.state(&beating), "active", "4.11: dead after 30 s of silence");
    server.pass(10);
    let job = server.job(&beating);
    assert_eq!(job["state"], "available", "4.11: its jobs return at once");
    assert_eq!(job["errors"][0]["type"], "worker_death", "4.11: {job}");
    assert_eq!(server.state(&silent), "active", "4.11: only who has sent a heartbeat is judged");
}

#[test]
fn section_4_12_queues_come_into_being_on_first_use() {
    let server = Server::new();
    assert_eq!(server.get("/ojs/v1/queues").is(200, "4.12")["queues"], json!([]), "4.12: none yet");
    server.push_to("beta", json!({}));
    server.push_to("alpha", json!({}));
    let answer = server.get("/ojs/v1/queues").is(200, "4.12");
    let queues = list(&answer["queues"]);
    let mut names: Vec<_> = queues.iter().map(|queue| text(&queue["name"])).collect();
    names.sort_unstable();
    assert_eq!(names, ["alpha", "beta"], "4.12");
    for queue in &queues {
        assert_eq!(queue["status"], "active", "4.12: {queue}");
        assert_time(&queue["created_at"], START, "4.12");
    }
    assert_eq!(answer["pagination"]["total"], 2, "1.6");
}

#[test]
fn section_4_7_a_worker_that_is_ending_gets_nothing_more() {
    let server = Server::new();
    server.push_to("q", json!({}));
    for state in ["quiet", "terminate"] {
        let beat = json!({"worker_id": state, "state": state, "active_jobs": []});
        server.post("/ojs/v1/workers/heartbeat", beat).is(200, "4.10: a worker says its state");
        assert!(server.fetch_as(state, "q").is_empty(), "4.7: a worker known to be {state} gets nothing");
    }
    assert_eq!(server.fetch_as("w-1", "q").len(), 1, "4.7: others do");
}

#[test]
fn section_4_7_a_fetch_for_any_number_is_answered() {
    let server = Server::new();
    (0..3).for_each(|_| drop(server.push_to("q", json!({}))));
    for count in [json!(0), json!(-1), json!(1.5), json!("many"), json!(u64::MAX), json!(null)] {
        let answer = server.post("/ojs/v1/workers/fetch", json!({"queues": ["none"], "count": count}));
        assert!([200, 400].contains(&answer.status), "4.7: count {count}: {}", answer.text);
    }
    assert_eq!(server.fetch("q", 1_000_000).len(), 3, "4.7: as many as there are");
}

#[test]
fn a_result_of_an_attempt_that_is_over_is_refused_and_changes_nothing() {
    let server = Server::new();
    let id = server.push_to("q", json!({"visibility_timeout_ms": 1_000}));
    let first = server.fetch_as("w", "q")[0].clone();
    server.pass(2);
    let second = server.fetch_as("w", "q")[0].clone();
    assert!(second["fence"].as_u64() > first["fence"].as_u64(), "the same worker, another time");
    let (job, events) = (server.job(&id), server.events("*").len());
    let error = json!({"code": "handler_error", "message": "late"});
    for (path, more) in [("ack", json!({"result": 1})), ("nack", json!({"error": error}))] {
        let body = merge(json!({"job_id": id, "worker_id": "w", "fence": first["fence"]}), more);
        let error =
            server.post(&format!("/ojs/v1/workers/{path}"), body).refused(409, "conflict", "it is over");
        assert!(text(&error["message"]).contains("was handed out anew since"), "{error}");
    }
    assert_eq!((server.job(&id), server.events("*").len()), (job, events), "no trace");
    assert_eq!(
        server.said().matches("what was said of a job was rejected").count(),
        2,
        "but a line of the log"
    );
    let body = json!({"job_id": id, "worker_id": "w", "fence": second["fence"]});
    server.post("/ojs/v1/workers/ack", body).is(200, "the attempt that is under way counts");
    // Whoever revives it is not taken for an earlier attempt either.
    let pushed = server.push(json!({"type": "a.b", "args": [], "fence": 7}));
    assert!(pushed.get("fence").is_none(), "clients do not set it");
}
