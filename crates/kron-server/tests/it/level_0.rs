//! Level 0 of the conformance suite, row by row (L0-…): envelopes, lifecycle and operations.

use serde_json::{Value, json};

use super::server::{MEDIA, START, Server, absent, assert_time, is_uuid_v7, list, merge, text};

const ID: &str = "019501a2-3b4c-7d5e-8f6a-1b2c3d4e5f6a";
const NOBODY: &str = "019501a2-0000-7000-8000-000000000000";

fn minimal() -> Value {
    json!({"type": "email.send", "args": ["user@example.com", "welcome"]})
}

/// Pushes a minimal job with something else in it, and expects it to be refused.
#[track_caller]
fn refuse(server: &Server, more: Value, why: &str) {
    server.post("/ojs/v1/jobs", merge(minimal(), more)).refused(400, "invalid_request", why);
}

/// The id of a job in a state, in a queue of that name, got there by the ordinary way.
pub(crate) fn job_in(server: &Server, state: &str) -> String {
    let id = match state {
        "scheduled" => server.push_to(state, json!({"scheduled_at": "2099-01-01T00:00:00Z"})),
        "pending" => server.push_to(state, json!({"pending": true})),
        "discarded" => server.push_to(state, json!({"retry": {"max_attempts": 1}})),
        _ => server.push_to(state, json!({})),
    };
    if ["active", "completed", "retryable", "discarded"].contains(&state) {
        assert_eq!(server.fetch_one(state)["id"], *id);
    }
    match state {
        "completed" => drop(server.ack(&id).is(200, "ack")),
        "retryable" | "discarded" => drop(server.nack(&id).is(200, "nack")),
        "cancelled" => drop(server.delete(&format!("/ojs/v1/jobs/{id}")).is(200, "cancel")),
        _ => {}
    }
    assert_eq!(server.state(&id), state, "3.1: there is a way to {state}");
    id
}

#[test]
fn l0_env_a_minimal_job_gets_a_complete_envelope() {
    let server = Server::new();
    let answer = server.post("/ojs/v1/jobs", minimal());
    let body = answer.is(201, "L0-ENV-001, L0-OPS-001: 201");
    assert_eq!(answer.header("Content-Type"), MEDIA, "L0-ENV-001, L0-OPS-001: the exact Content-Type");
    assert_eq!(answer.header("OJS-Version"), "1.0", "L0-ENV-001, L0-ENV-013");
    let job = &body["job"];
    let id = text(&job["id"]);
    assert_eq!(answer.header("Location"), format!("/ojs/v1/jobs/{id}"), "1.2: Location of the new resource");
    assert!(is_uuid_v7(id), "L0-ENV-001, L0-ENV-009: a UUIDv7, not {id}");
    let expected = json!({
        "specversion": "1.0", "type": "email.send", "args": ["user@example.com", "welcome"], "queue": "default",
        "state": "available", "attempt": 0, "priority": 0, "max_attempts": 3, "meta": {},
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&job[member], value, "L0-ENV-001, L0-ENV-012, L0-ENV-019, L0-OPS-002: {member}: {job}");
    }
    assert_time(&job["created_at"], START, "L0-ENV-001: created_at");
    assert_time(&job["enqueued_at"], START, "L0-ENV-001: enqueued_at");
    for member in ["started_at", "completed_at", "error", "result", "options", "scheduled_at", "worker_id"] {
        assert!(job.get(member).is_none(), "L0-ENV-019, L0-OPS-002, 2.1: {member} is left out: {job}");
    }
    assert_ne!(server.push(minimal())["id"], *id, "L0-ENV-009: ids are unique");
    assert_eq!(server.job(id), *job, "L0-OPS-018b, L0-LC-001: INFO shows the same");
}

#[test]
fn l0_env_002_a_full_job_is_accepted_and_echoed() {
    let server = Server::new();
    let meta =
        json!({"trace_id": "t-1", "tenant": "acme", "nested": {"list": [1, "a", null]}, "tags": ["x", "y"]});
    let options = json!({
        "queue": "email", "priority": 10, "timeout_ms": 30_000, "delay_until": "2020-01-01T00:00:00Z",
        "retry": {"max_attempts": 5, "initial_interval": "PT2S", "backoff_coefficient": 3.0, "jitter": true},
        "unique": {"keys": ["type", "args"], "period": "PT1H", "on_conflict": "reject"},
        "tags": ["onboarding"], "visibility_timeout_ms": 45_000,
    });
    let job = server.push(json!({
        "type": "email.send", "args": [1], "meta": meta, "schema": "urn:ojs:schema:email.send:1", "options": options,
    }));
    let expected = json!({
        "state": "available", "queue": "email", "priority": 10, "meta": meta, "timeout_ms": 30_000, "max_attempts": 5,
        "tags": ["onboarding"], "visibility_timeout_ms": 45_000, "schema": "urn:ojs:schema:email.send:1",
        "scheduled_at": "2020-01-01T00:00:00Z",
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&job[member], value, "L0-ENV-002, L0-ENV-015, L0-ENV-018: {member}: {job}");
    }
    assert!(job.get("options").is_none(), "2.2: never return an `options` object on the job");
}

#[test]
fn section_2_2_both_styles_of_saying_things_work_and_options_come_first() {
    let server = Server::new();
    let top = server.push(merge(
        minimal(),
        json!({
            "queue": "top", "priority": 5, "timeout": 60, "retry": {"max_attempts": 2}, "tags": ["t"],
            "scheduled_at": "2099-01-01T00:00:00Z",
        }),
    ));
    let both = server.push(merge(
        minimal(),
        json!({
            "queue": "top", "priority": 5, "options": {"queue": "inner", "priority": -5},
            "meta": {"a": 1}, "specversion": "1.0",
        }),
    ));
    assert_eq!((&top["queue"], &top["priority"]), (&json!("top"), &json!(5)), "2.2: {top}");
    assert_eq!((&top["timeout_ms"], &top["max_attempts"]), (&json!(60_000), &json!(2)), "2.1: {top}");
    assert_eq!((&top["state"], &top["tags"]), (&json!("scheduled"), &json!(["t"])), "2.2: {top}");
    assert_eq!(
        (&both["queue"], &both["priority"]),
        (&json!("inner"), &json!(-5)),
        "2.2: options.X first: {both}"
    );

    let options = json!({"meta": {"from": "meta"}, "metadata": {"also": "metadata"}});
    let meta = &server.push(merge(minimal(), json!({"meta": {"top": true}, "options": options})))["meta"];
    let merged = json!({"top": true, "from": "meta", "also": "metadata"});
    assert_eq!(meta, &merged, "C7: options.meta and options.metadata merge into meta");
}

#[test]
fn l0_env_003_to_007_what_is_no_job_is_refused() {
    let server = Server::new();
    let post = |body: Value| server.post("/ojs/v1/jobs", body);
    post(json!({"args": []})).refused(
        400,
        "invalid_request",
        "L0-ENV-003, L0-OPS-031: missing type is exactly 400",
    );
    post(json!({"type": "a.b"})).refused(400, "invalid_request", "L0-ENV-004, L0-OPS-003: missing args");
    let types = [
        "Email.Send",
        "email send",
        "1email.send",
        "",
        "email@send!",
        "INVALID_TYPE_FORMAT!!",
        ".a",
        "a.",
        "a..b",
        "é.a",
    ];
    for kind in types {
        refuse(&server, json!({"type": kind}), &format!("L0-ENV-005: the type `{kind}`"));
    }
    for kind in [json!(null), json!(5), json!(["a.b"])] {
        refuse(&server, json!({"type": kind}), "L0-ENV-005: a type is a string");
    }
    for queue in ["Default", "my_queue!", "my_queue", "-invalid", "my queue", "", &"q".repeat(256)] {
        refuse(&server, json!({"options": {"queue": queue}}), &format!("L0-ENV-006: the queue `{queue}`"));
        refuse(&server, json!({"queue": queue}), &format!("L0-ENV-006: the queue `{queue}` at the top"));
    }
    for args in [json!({"a": 1}), json!("a"), json!(1), json!(true), json!(null)] {
        refuse(&server, json!({"args": args}), "L0-ENV-007: args MUST be an array");
    }
    for id in
        ["f47ac10b-58cc-4372-a567-0e02b2c3d479", "not-a-uuid", &ID.to_uppercase(), "", &format!("{ID} ")]
    {
        refuse(&server, json!({"id": id}), &format!("L0-ENV-011: the id `{id}`"));
    }
    for priority in [json!(101), json!(-101), json!(999_999), json!("high-ish"), json!(1.5)] {
        refuse(
            &server,
            json!({"options": {"priority": priority}}),
            "L0-ENV-017: priority is from -100 to 100",
        );
    }
    for (member, value) in [
        ("meta", json!([])),
        ("meta", json!("text")),
        ("options", json!("text")),
        ("scheduled_at", json!("tomorrow")),
        ("scheduled_at", json!("2026-02-12T20:15:00")),
        ("expires_at", json!("2026-13-01T00:00:00Z")),
        ("timeout_ms", json!(-1)),
    ] {
        refuse(&server, json!({member: value}), &format!("2.1: `{member}` cannot be {value}"));
    }
    let other = merge(minimal(), json!({"specversion": "2.0"}));
    server.post("/ojs/v1/jobs", other).refused(422, "unsupported", "2.1: other majors are rejected");
    assert!(server.fetch("default", 10).is_empty(), "what is refused is not enqueued");
}

#[test]
fn l0_env_008_to_018_what_is_valid_is_kept_as_it_is() {
    let server = Server::new();
    let args = json!([
        "text", 42, -7, 3.75, 0, true, false, null, [], [1, [2, [3]]], {"a": {"b": {"c": [null, {"d": "e"}]}}},
        9_007_199_254_740_991_i64, "ünï\u{1F600}\n\"", {}
    ]);
    let job = server.push(json!({"type": "test.args", "args": args, "options": {"queue": "args"}}));
    assert_eq!(job["args"], args, "L0-ENV-008, L0-OPS-002: args deep-equal");
    assert_eq!(server.fetch_one("args")["args"], args, "L0-OPS-004: and delivered so");
    assert_eq!(server.push(json!({"type": "a.b", "args": []}))["args"], json!([]), "L0-ENV-008: empty args");

    let raw = br#"{"type":"a.b","args":[1.0, 1e2, 12345678901234567890, 0.1],"z":{"b":1,"a":2}}"#;
    let answer = server.send("POST", "/ojs/v1/jobs", &[("Content-Type", MEDIA)], raw);
    answer.is(201, "2.1: numbers as they are");
    let kept = answer.text.replace(' ', "");
    assert!(kept.contains("12345678901234567890"), "2.1: args are preserved exactly: {}", answer.text);

    let job = server.push(merge(minimal(), json!({"id": ID})));
    assert_eq!(job["id"], ID, "L0-ENV-010: the client's id is returned");
    assert_eq!(server.job(&ID.to_uppercase())["id"], ID, "C9: lower-case ids in paths before using them");

    let unknown = json!({"x_custom": "v", "future_field": {"a": [1, 2]}, "another": 42});
    let job = server.push(merge(minimal(), unknown.clone()));
    for (member, value) in unknown.as_object().unwrap() {
        assert_eq!(&job[member], value, "L0-ENV-014: unknown fields come back");
        assert_eq!(&server.job(text(&job["id"]))[member], value, "L0-ENV-014: and are stored");
    }
    for priority in [0, 10, -10, 100, -100] {
        let job = server.push(merge(minimal(), json!({"options": {"priority": priority}})));
        assert_eq!(job["priority"], priority, "L0-ENV-016: accepted and echoed, 0 too");
    }
    for queue in ["a", "0", "email.high-priority", &"q".repeat(255)] {
        assert_eq!(
            server.push(merge(minimal(), json!({"options": {"queue": queue}})))["queue"],
            queue,
            "C29"
        );
    }
    let job = server.push(json!({"type": "retry.test.exponential-backoff", "args": []}));
    assert_eq!(job["type"], "retry.test.exponential-backoff", "C8: hyphens are part of types");
}

#[test]
fn section_2_1_what_only_the_server_says_is_ignored_if_a_client_says_it() {
    let server = Server::new();
    let lies = json!({
        "state": "completed", "attempt": 5, "max_attempts": 99, "created_at": "2020-01-01T00:00:00Z",
        "enqueued_at": "2020-01-01T00:00:00Z", "started_at": "2020-01-01T00:00:00Z", "completed_at": "x",
        "result": 1, "error": {"a": 1}, "errors": [1], "worker_id": "w", "cancelled_at": "x", "discarded_at": "x",
        "retry_delay_ms": 3, "next_attempt_at": "x",
    });
    let job = server.push(merge(minimal(), lies));
    assert_eq!((&job["state"], &job["attempt"]), (&json!("available"), &json!(0)), "2.1: ignored silently");
    assert_eq!(job["max_attempts"], 3, "2.1: ignored silently");
    assert_time(&job["created_at"], START, "2.1: ignored silently");
    for member in
        ["started_at", "completed_at", "result", "error", "worker_id", "cancelled_at", "discarded_at"]
    {
        assert!(absent(&job, member), "2.1: never stored as unknown fields: {member}: {job}");
    }
}

#[test]
fn l0_evt_jobs_tell_their_story_in_events() {
    let server = Server::new();
    let done = server.push(json!({"type": "test.story", "args": [], "options": {"queue": "story"}}));
    let done = text(&done["id"]);
    server.fetch_as("w-1", "story");
    server.pass_ms(1_500);
    server.ack(done).is(200, "ack");
    let failed = server.push_to("story", json!({"retry": {"max_attempts": 1}}));
    server.fetch_as("w-1", "story");
    server.nack(&failed).is(200, "nack");

    let of = |id: &str| -> Vec<(String, Value)> {
        let all = server.events("job.*").into_iter();
        let own = all.filter(|event| event["subject"] == id);
        own.map(|event| (text(&event["type"]).to_owned(), event)).collect()
    };
    let kinds = |events: &[(String, Value)]| events.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
    let story = of(done);
    assert_eq!(
        kinds(&story),
        ["job.enqueued", "job.started", "job.completed"],
        "L0-EVT-001, L0-EVT-002, 6.4"
    );
    for (kind, event) in &story {
        assert_eq!(event["specversion"], "1.0", "6.4: the envelope");
        assert!(text(&event["id"]).starts_with("evt_") && event["source"].is_string(), "6.4: {event}");
        assert!(event["time"].is_string(), "6.4: {event}");
        let data = &event["data"];
        assert_eq!(
            (&data["job_type"], &data["queue"]),
            (&json!("test.story"), &json!("story")),
            "6.4: {kind}: {data}"
        );
        assert_eq!(data["job_id"], done, "6.4: job_id in every job event's data");
        assert!(
            data["state"].is_string() && data["timestamp"].is_string(),
            "6.4: state and timestamp: {data}"
        );
    }
    assert_eq!(story[1].1["data"]["worker_id"], "w-1", "6.4: job.started");
    assert_eq!(story[1].1["data"]["attempt"], 1, "6.4: job.started");
    assert_eq!(story[2].1["data"]["attempt"], 1, "L0-EVT-002: job.completed");
    assert_eq!(story[2].1["data"]["duration_ms"], 1_500, "L0-EVT-002: job.completed");

    let story = of(&failed);
    assert_eq!(
        kinds(&story)[2..],
        ["job.failed", "job.discarded"],
        "6.4: on every failed attempt, and at the end"
    );
    assert_eq!(story[2].1["data"]["error"]["message"], "it failed", "6.4: job.failed");
    assert_eq!(story[3].1["data"]["total_attempts"], 1, "6.4: job.discarded");
    assert_eq!(story[3].1["data"]["last_error"]["message"], "it failed", "6.4: job.discarded");
}

#[test]
fn l0_lc_the_way_through_the_states() {
    let server = Server::new();
    // Available, then active, then completed.
    let id = server.push_to("way", json!({}));
    assert_eq!(server.state(&id), "available", "L0-LC-001");
    server.pass(5);
    let job = server.fetch_one("way");
    assert_eq!(
        (&job["state"], &job["attempt"]),
        (&json!("active"), &json!(1)),
        "L0-LC-003, L0-OPS-004: {job}"
    );
    assert_time(&job["started_at"], "2026-02-12T20:15:25Z", "L0-LC-003: started_at");
    assert_eq!(server.job(&id), job, "L0-LC-003: get agrees");
    let ack = server.ack(&id).is(200, "L0-LC-004");
    let expected = json!({"acknowledged": true, "id": id, "job_id": id, "state": "completed"});
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&ack[member], value, "L0-LC-004, L0-OPS-009, C10: {member}: {ack}");
    }
    assert_time(&ack["completed_at"], "2026-02-12T20:15:25Z", "L0-LC-004, L0-OPS-009");
    let job = server.job(&id);
    assert!(job["started_at"].is_string() && job["completed_at"].is_string(), "L0-LC-004: {job}");

    // Scheduled far away.
    let id = server.push_to("far", json!({"delay_until": "2099-12-31T00:00:00Z"}));
    assert_eq!(server.state(&id), "scheduled", "L0-LC-002");
    assert!(absent(&server.job(&id), "enqueued_at"), "3.1: enqueued_at is when it becomes available");

    // Failed with attempts left.
    let id = job_in(&server, "retryable");
    let job = server.job(&id);
    assert_eq!(job["attempt"], 1, "L0-LC-005");
    assert!(absent(&job, "completed_at") && job["error"].is_object(), "L0-LC-005: {job}");

    // Failed for good.
    let id = server.push_to("last", json!({"retry": {"max_attempts": 1}}));
    server.fetch_one("last");
    let nack = server.nack(&id).is(200, "L0-LC-006");
    assert_eq!((&nack["state"], &nack["id"]), (&json!("discarded"), &json!(id)), "L0-LC-006: {nack}");
    assert!(
        nack["completed_at"].is_string() && nack["discarded_at"].is_string(),
        "L0-LC-006, L0-OPS-014: {nack}"
    );
    let job = server.job(&id);
    assert!(job["completed_at"].is_string() && job["started_at"].is_string(), "L0-LC-006: {job}");

    // Cancelled before and after its start.
    let id = server.push_to("cancel", json!({}));
    let answer = server.delete(&format!("/ojs/v1/jobs/{id}")).is(200, "L0-LC-007, L0-OPS-015a");
    assert_eq!(answer["job"]["state"], "cancelled", "L0-LC-007");
    assert_eq!(answer["job"]["previous_state"], "available", "4.5");
    assert!(answer["job"]["cancelled_at"].is_string(), "L0-OPS-015a");
    let job = server.job(&id);
    assert!(job["attempt"] == 0 && absent(&job, "completed_at"), "L0-LC-007: {job}");
    assert!(server.fetch("cancel", 1).is_empty(), "a cancelled job is not delivered");
    let id = job_in(&server, "active");
    let job = server.delete(&format!("/ojs/v1/jobs/{id}")).is(200, "L0-LC-008")["job"].clone();
    assert!(
        job["state"] == "cancelled" && job["attempt"] == 1 && job["started_at"].is_string(),
        "L0-LC-008: {job}"
    );
}

#[test]
fn l0_lc_009_to_014_every_operation_in_every_state() {
    let server = Server::new();
    // Section 3.2: ack, nack, cancel, activate.
    for (state, allowed) in [
        ("scheduled", &["cancel"][..]),
        ("available", &["cancel"]),
        ("pending", &["cancel", "activate"]),
        ("active", &["ack", "nack", "cancel"]),
        ("retryable", &["cancel"]),
        ("completed", &[]),
        ("cancelled", &[]),
        ("discarded", &[]),
    ] {
        for operation in ["ack", "nack", "cancel", "activate"] {
            let id = job_in(&server, state);
            let before = server.job(&id);
            let answer = match operation {
                "ack" => server.ack(&id),
                "nack" => server.nack(&id),
                "cancel" => server.delete(&format!("/ojs/v1/jobs/{id}")),
                _ => server.post(&format!("/ojs/v1/jobs/{id}/activate"), json!({})),
            };
            let why = format!("L0-LC-009 to 014, L0-OPS-017a, L0-OPS-032: {operation} of a {state} job");
            if allowed.contains(&operation) {
                answer.is(200, &why);
            } else {
                let error = answer.refused(409, "conflict", &why);
                assert_eq!(
                    error["details"]["current_state"], state,
                    "3.1: details with current_state: {error}"
                );
                assert_eq!(server.job(&id), before, "{why}: the job is unchanged");
            }
            // Whatever is left is out of the next one's way.
            drop(server.delete(&format!("/ojs/v1/jobs/{id}")));
        }
        assert!(server.fetch(state, 10).is_empty(), "3.2: of {state} jobs, none is left to fetch");
    }
}

#[test]
fn section_3_2_only_available_jobs_are_fetched_and_unknown_ones_are_404() {
    let server = Server::new();
    for state in ["scheduled", "pending", "active", "retryable", "completed", "cancelled", "discarded"] {
        job_in(&server, state);
        assert!(server.fetch(state, 10).is_empty(), "3.2: fetch does not take a {state} job");
    }
    let why = "3.2: unknown id";
    server.ack(NOBODY).refused(404, "not_found", why);
    server.nack(NOBODY).refused(404, "not_found", why);
    server.delete(&format!("/ojs/v1/jobs/{NOBODY}")).refused(404, "not_found", "L0-OPS-016a");
    server.post(&format!("/ojs/v1/jobs/{NOBODY}/activate"), json!({})).refused(404, "not_found", why);
    let answer = server.get(&format!("/ojs/v1/jobs/{NOBODY}"));
    let error = answer.refused(404, "not_found", "L0-OPS-016b, L0-OPS-019a, L0-OPS-030");
    assert!(error["hint"].is_string() && error["docs_url"].is_string(), "L0-OPS-030: {error}");
    assert_eq!(answer.header("Content-Type"), MEDIA, "L0-OPS-019a, L0-OPS-033");
    for id in ["not-an-id", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "%00", "%F0%9F"] {
        server.get(&format!("/ojs/v1/jobs/{id}")).refused(
            404,
            "not_found",
            "4.4: malformed ids are not found",
        );
    }
}

#[test]
fn section_4_6_a_pending_job_waits_for_its_activation() {
    let server = Server::new();
    let ids = [job_in(&server, "pending"), job_in(&server, "pending")];
    for (id, body) in ids.iter().zip([&b""[..], b"{}"]) {
        let path = format!("/ojs/v1/jobs/{id}/activate");
        let job =
            server.send("POST", &path, &[], body).is(200, "1.1: a zero-length body and {}")["job"].clone();
        assert_eq!(
            (&job["state"], &job["previous_state"]),
            (&json!("available"), &json!("pending")),
            "4.6: {job}"
        );
        assert!(job["activated_at"].is_string() && job["enqueued_at"].is_string(), "4.6: {job}");
    }
    assert_eq!(server.fetch_one("pending")["id"], *ids[0], "4.6: now it can be fetched");
}

#[test]
fn l0_ops_004_to_007_fetching() {
    let server = Server::new();
    let empty = server.post("/ojs/v1/workers/fetch", json!({"queues": ["empty"]})).is(200, "L0-OPS-005");
    assert_eq!(empty["jobs"], json!([]), "L0-OPS-005: 200 with an empty array");

    let meta = json!({"k": [1, 2]});
    server.push(json!({"type": "a.b", "args": [1], "meta": meta, "options": {"queue": "one"}}));
    let job = server.fetch_one("one");
    assert_eq!((&job["meta"], &job["args"]), (&meta, &json!([1])), "L0-OPS-004: meta and args are delivered");

    let pushed: Vec<String> = (0..5).map(|_| server.push_to("fifo", json!({}))).collect();
    let fetched: Vec<String> = (0..5).map(|_| text(&server.fetch_one("fifo")["id"]).to_owned()).collect();
    assert_eq!(pushed, fetched, "L0-OPS-006: first in, first out");

    let low = server.push_to("second", json!({"priority": 100}));
    let high = server.push_to("first", json!({}));
    let both = json!({"queues": ["first", "second"], "count": 10});
    let answer = server.post("/ojs/v1/workers/fetch", both).is(200, "L0-OPS-007");
    let ids: Vec<Value> = list(&answer["jobs"]).iter().map(|job| job["id"].clone()).collect();
    assert_eq!(ids, [json!(high), json!(low)], "L0-OPS-007: the first listed queue is served first");

    let ids = [0, 10, -10, 10].map(|priority| server.push_to("ranked", json!({"priority": priority})));
    let fetched: Vec<Value> = server.fetch("ranked", 10).iter().map(|job| job["id"].clone()).collect();
    let ranked = [&ids[1], &ids[3], &ids[0], &ids[2]].map(|id| json!(id));
    assert_eq!(fetched, ranked, "4.7: priority descending, then first in, first out");

    (0..7).for_each(|_| drop(server.push_to("many", json!({}))));
    assert_eq!(server.fetch("many", 5).len(), 5, "4.7: never more than `count`");
    assert_eq!(server.fetch("many", 5).len(), 2, "4.7: and the rest");
    for bad in [
        json!({}),
        json!({"queues": []}),
        json!({"queues": "one"}),
        json!({"queues": [1]}),
        json!({"queues": null}),
    ] {
        let answer = server.post("/ojs/v1/workers/fetch", bad);
        answer.refused(400, "invalid_request", "4.7: queues is a non-empty array");
    }
}

#[test]
fn l0_ops_009_to_014_ack_and_nack() {
    let server = Server::new();
    let result = json!({"message_id": "m-1", "nested": {"list": [1, null, {"a": true}]}});
    for result in [result, json!("text"), json!(0), json!(false), json!([])] {
        let id = job_in(&server, "active");
        let ack = json!({"job_id": id, "result": result});
        server.post("/ojs/v1/workers/ack", ack).is(200, "L0-OPS-010");
        assert_eq!(server.job(&id)["result"], result, "L0-OPS-010, L0-OPS-018a: exactly what ack carried");
    }
    let id = job_in(&server, "active");
    server.ack(&id).is(200, "L0-OPS-009");
    assert!(absent(&server.job(&id), "result"), "2.1: absent otherwise");

    // Fails once, then succeeds.
    let id = server.push_to("again", json!({"retry": {"initial_interval": "PT1S", "jitter": false}}));
    server.fetch_one("again");
    let nack = server.nack(&id).is(200, "L0-OPS-013");
    let expected = json!({"id": id, "job_id": id, "state": "retryable", "attempt": 1, "max_attempts": 3});
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&nack[member], value, "L0-LC-005, L0-OPS-013, C10: {member}: {nack}");
    }
    assert_time(&nack["next_attempt_at"], "2026-02-12T20:15:21Z", "L0-OPS-013");
    let error = &server.job(&id)["error"];
    assert!(
        !text(&error["type"]).is_empty(),
        "L0-OPS-012: the error has a type though nack sent none: {error}"
    );
    assert_eq!(error["message"], "it failed", "L0-OPS-012");
    server.pass(2);
    let job = server.fetch_one("again");
    assert_eq!(job["attempt"], 2, "L0-OPS-011: attempt 2");
    server.post("/ojs/v1/workers/ack", json!({"job_id": id, "result": {"ok": true}})).is(200, "L0-OPS-011");
    let job = server.job(&id);
    assert!(absent(&job, "error") && job["result"]["ok"] == true, "L0-OPS-011: ack clears the error: {job}");

    // Fails for good.
    let id = server.push_to("gone", json!({"retry": {"max_attempts": 1}}));
    server.fetch_one("gone");
    let nack = server.nack(&id).is(200, "L0-OPS-014");
    let expected = json!({"state": "discarded", "attempt": 1, "max_attempts": 1});
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&nack[member], value, "L0-OPS-014: {member}: {nack}");
    }
    let job = server.job(&id);
    assert!(job["error"]["message"] == "it failed" && job["completed_at"].is_string(), "L0-OPS-014: {job}");

    for (path, body) in [("ack", json!({})), ("ack", json!({"job_id": 5})), ("nack", json!({"error": {}}))] {
        let answer = server.post(&format!("/ojs/v1/workers/{path}"), body);
        answer.refused(400, "invalid_request", "4.8, 4.9: job_id is required");
    }
}

#[test]
fn section_4_8_another_workers_job_cannot_be_acknowledged() {
    let server = Server::new();
    let id = server.push_to("mine", json!({}));
    let job = server.fetch_as("w-1", "mine");
    assert_eq!(job[0]["worker_id"], "w-1", "2.1: the current holder");
    for (path, more) in [("ack", json!({})), ("nack", json!({"error": {"code": "x", "message": "y"}}))] {
        let body = merge(json!({"job_id": id, "worker_id": "w-2"}), more);
        let answer = server.post(&format!("/ojs/v1/workers/{path}"), body);
        answer.refused(409, "conflict", "4.8: if both sides name a worker and they differ");
    }
    let body = json!({"job_id": id, "worker_id": "w-1"});
    server.post("/ojs/v1/workers/ack", body).is(200, "4.8: its own worker may");
}

#[test]
fn l0_ops_017b_the_same_client_id_twice_is_a_duplicate() {
    let server = Server::new();
    server.push(merge(minimal(), json!({"id": ID})));
    let again = server.post("/ojs/v1/jobs", merge(minimal(), json!({"id": ID, "args": [2]})));
    again.refused(409, "duplicate", "L0-OPS-017b: 409 duplicate, not retryable");
    assert_eq!(server.job(ID)["args"], minimal()["args"], "the first stays as it was");
    server.fetch_one("default");
    server.ack(ID).is(200, "ack");
    let again = server.post("/ojs/v1/jobs", merge(minimal(), json!({"id": ID})));
    again.refused(409, "duplicate", "L0-OPS-017b: after it has completed too");
}

#[test]
fn l0_ops_019b_020a_manifest_and_health() {
    let server = Server::new();
    let manifest = server.get("/ojs/manifest").is(200, "L0-OPS-019b");
    assert_eq!((&manifest["specversion"], &manifest["ojs_version"]), (&json!("1.0"), &json!("1.0")), "C21");
    for member in ["name", "version", "language"] {
        assert!(
            !text(&manifest["implementation"][member]).is_empty(),
            "L0-OPS-019b, 9: {member}: {manifest}"
        );
    }
    assert_eq!(manifest["conformance_level"], 2, "L0-OPS-019b: levels 0 to 2");
    assert!(list(&manifest["protocols"]).contains(&json!("http")), "L0-OPS-019b: {manifest}");
    assert!(manifest["backend"].is_string(), "9: the SDK needs a backend: {manifest}");
    let capabilities = manifest["capabilities"].as_object().expect("4.1: an object");
    assert!(capabilities.values().all(Value::is_boolean), "4.1: of booleans");
    for capability in ["cron_jobs", "dead_letter", "delayed_jobs", "job_ttl"] {
        assert_eq!(capabilities[capability], true, "4.1: {capability}");
    }
    let extensions = manifest.get("extensions").map(list).unwrap_or_default();
    assert!(extensions.iter().all(Value::is_string), "C21: an array of strings");

    let health = server.get("/ojs/v1/health").is(200, "L0-OPS-020a");
    assert_eq!(health["status"], "ok", "L0-OPS-020a");
    assert_eq!(health["backend"]["status"], "ok", "4.2");
    assert!(health["version"].is_string() && health["uptime_seconds"].is_number(), "4.2: {health}");
}

#[test]
fn l0_ops_020b_reading_changes_nothing() {
    let server = Server::new();
    for state in ["scheduled", "available", "active", "completed", "retryable", "cancelled", "discarded"] {
        let path = format!("/ojs/v1/jobs/{}", job_in(&server, state));
        let first = server.get(&path).text;
        for _ in 0..3 {
            assert_eq!(server.get(&path).text, first, "L0-OPS-020b: byte for byte, in state {state}");
        }
    }
}

#[test]
fn section_9_the_sdk_finds_the_job_at_the_top_level_too() {
    let server = Server::new();
    let flat = |answer: Value, why: &str| {
        let job = answer["job"].as_object().expect("the job").clone();
        for (member, value) in job {
            assert_eq!(answer[&member], value, "9: {why}: `{member}` is repeated next to `job`");
        }
    };
    let id = job_in(&server, "available");
    flat(server.get(&format!("/ojs/v1/jobs/{id}")).is(200, "get"), "get_job");
    flat(server.delete(&format!("/ojs/v1/jobs/{id}")).is(200, "cancel"), "cancel_job");
    let id = server.push_to("dead", json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}));
    server.fetch_one("dead");
    server.nack(&id).is(200, "nack");
    let path = format!("/ojs/v1/dead-letter/{id}/retry");
    flat(server.send("POST", &path, &[], b"").is(200, "retry"), "retry_dead_letter_job");
}
