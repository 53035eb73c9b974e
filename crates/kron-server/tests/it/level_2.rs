//! Level 2 of the conformance suite, row by row (L2-…): delays, expiries, and cron in the suite's own dialect.

use serde_json::{Value, json};

use super::server::{START, Server, absent, assert_time, cron, list, merge, text};

/// A cron job as the suite writes it.
fn suite(name: &str, expression: &str, more: Value) -> Value {
    let template = json!({"type": "cron.test", "args": ["tick"], "options": {"queue": name}});
    merge(json!({"name": name, "expression": expression, "timezone": "UTC", "job_template": template}), more)
}

#[test]
fn l2_cron_001_registering_in_the_dialect_of_the_suite() {
    let server = Server::new();
    let answer =
        server.post("/ojs/v1/cron", suite("every-five", "*/5 * * * *", json!({}))).is(201, "L2-CRON-001");
    for cron in [&answer["cron"], &answer["cron_job"]] {
        let expected = json!({
            "name": "every-five", "expression": "*/5 * * * *", "cron": "*/5 * * * *", "enabled": true,
            "type": "cron.test", "args": ["tick"], "options": {"queue": "every-five"},
        });
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&cron[member], value, "L2-CRON-001, 6.1(d): {member}: {answer}");
        }
        assert_eq!(cron["job_template"]["type"], "cron.test", "6.1: C carries both spellings");
        assert_time(&cron["next_run_at"], "2026-02-12T20:20:00Z", "L2-CRON-001");
        assert_time(&cron["created_at"], START, "L2-CRON-001");
    }
}

#[test]
fn section_6_1_registering_in_the_dialect_of_the_seed_is_flat_for_the_sdk() {
    let server = Server::new();
    let definition = cron("flat", "*/5 * * * *", json!({"meta": {"k": "v"}}));
    let answer = server.post("/ojs/v1/cron", definition).is(201, "6.1(c)");
    assert_eq!(answer["cron"], "*/5 * * * *", "6.1(c), 9: `cron` at the top is the expression, a string");
    for (member, value) in answer["cron_job"].as_object().expect("8.1: cron_job") {
        assert_eq!(&answer[member], value, "6.1(c): C's fields flat: {member}");
    }
    let job = &answer["cron_job"];
    assert_eq!(
        (&job["expression"], &job["job_template"]["type"]),
        (&job["cron"], &job["type"]),
        "6.1: both: {job}"
    );
    for member in [
        "name",
        "timezone",
        "overlap_policy",
        "enabled",
        "description",
        "status",
        "last_run_at",
        "next_run_at",
        "run_count",
        "created_at",
    ] {
        assert!(job.get(member).is_some(), "6.1: C always carries {member}: {job}");
    }
    server.clock("2026-02-12T20:20:00Z");
    assert_eq!(server.fetch_one("flat")["meta"]["k"], "v", "6.1: top-level meta too");
}

#[test]
fn section_6_1_where_both_dialects_speak_cron_and_the_top_level_win() {
    let server = Server::new();
    let template = json!({"type": "template.type", "args": [1], "options": {"queue": "template"}});
    let both = json!({
        "name": "both", "cron": "0 9 * * *", "expression": "0 10 * * *", "type": "top.type", "job_template": template,
    });
    let job = server.register(both);
    assert_eq!((&job["cron"], &job["type"]), (&json!("0 9 * * *"), &json!("top.type")), "6.1: {job}");
    assert_eq!(
        (&job["args"], &job["options"]["queue"]),
        (&json!([1]), &json!("template")),
        "6.1: the rest of it: {job}"
    );
}

#[test]
fn section_6_1_lists_gets_and_deletes_carry_both_spellings() {
    let server = Server::new();
    server.register(suite("first", "0 * * * *", json!({})));
    server.register(cron("second", "30 2 * * *", json!({})));
    let all = server.get("/ojs/v1/cron").is(200, "L2-CRON-002");
    assert_eq!(all["crons"], all["cron_jobs"], "6.1: one body with cron_jobs and crons");
    assert_eq!(all["count"], 2, "8.2: count");
    assert_eq!(all["pagination"]["total"], 2, "6.1: pagination");
    assert!(list(&all["crons"]).iter().any(|cron| cron["name"] == "second"), "L2-CRON-002");
    let one = server.get("/ojs/v1/cron/first").is(200, "8.3");
    assert_eq!((&one["cron_job"]["name"], &one["cron"]["name"]), (&json!("first"), &json!("first")), "6.1");

    let gone = server.delete("/ojs/v1/cron/first").is(200, "L2-CRON-003");
    assert_eq!((&gone["deleted"], &gone["name"]), (&json!(true), &json!("first")), "8.4");
    assert_eq!(
        (&gone["cron"]["name"], &gone["cron_job"]["name"]),
        (&json!("first"), &json!("first")),
        "L2-CRON-003"
    );
    let all = server.get("/ojs/v1/cron").is(200, "L2-CRON-003");
    assert!(!list(&all["crons"]).iter().any(|cron| cron["name"] == "first"), "L2-CRON-003: gone");
    server.delete("/ojs/v1/cron/%73econd").is(200, "9: names arrive percent-encoded");
}

#[test]
fn l2_cron_004_005_it_fires_and_does_not_overlap() {
    let server = Server::new();
    let job = server.register(suite("tick", "* * * * *", json!({"overlap_policy": "skip"})));
    assert_eq!(job["overlap_policy"], "skip", "L2-CRON-005: the echo");
    server.pass(65);
    let run = server.fetch("tick", 10);
    assert_eq!(run.len(), 1, "L2-CRON-004, L2-CRON-005: one in 65 s");
    assert_eq!((&run[0]["type"], &run[0]["args"]), (&json!("cron.test"), &json!(["tick"])), "L2-CRON-004");
    server.pass(65);
    assert!(server.fetch("tick", 10).is_empty(), "L2-CRON-005: held for 65 s in silence, nothing beside it");
}

#[test]
fn l2_cron_006_007_tz_001_expressions_and_zones() {
    let server = Server::new();
    for expression in ["not a valid cron", "0 0 0 0 0 0 0", "99 25 32 13 8"] {
        let answer = server.post("/ojs/v1/cron", suite("bad", expression, json!({})));
        let error = answer.refused(400, "invalid_request", &format!("L2-CRON-006: {expression}"));
        assert!(!text(&error["message"]).is_empty(), "L2-CRON-006: with a message");
    }
    for expression in ["@daily", "@hourly", "@weekly"] {
        let job = server.register(suite(&expression[1..], expression, json!({})));
        assert_eq!(job["expression"], expression, "L2-CRON-007: echoed unexpanded");
    }
    for (name, zone, next) in [
        ("tokyo", "Asia/Tokyo", "2026-02-13T00:00:00Z"),
        ("new-york", "America/New_York", "2026-02-13T14:00:00Z"),
    ] {
        let job = server.register(suite(name, "0 9 * * *", json!({"timezone": zone})));
        assert_eq!(job["timezone"], zone, "L2-TZ-001");
        assert_time(&job["next_run_at"], next, "L2-TZ-001: and this time it is compared");
    }
}

#[test]
fn section_2_1_the_seeds_own_example_is_answered_as_the_seed_says() {
    let server = Server::new();
    let definition = json!({
        "name": "daily-report", "cron": "0 9 * * *", "timezone": "America/New_York", "type": "report.generate",
        "args": [{"report": "daily_summary"}],
        "options": {
            "queue": "reports", "timeout": 300,
            "retry": {"max_attempts": 3, "initial_interval": "PT30S", "backoff_coefficient": 2.0},
        },
        "overlap_policy": "skip", "enabled": true, "description": "Generate daily summary report at 9 AM ET",
    });
    let job = server.register(definition.clone());
    for (member, value) in definition.as_object().unwrap() {
        assert_eq!(&job[member], value, "8.1: {member} comes back as it was given");
    }
    assert_time(&job["next_run_at"], "2026-02-13T14:00:00Z", "8.1");
    assert_eq!((&job["last_run_at"], &job["run_count"]), (&Value::Null, &json!(0)), "8.1");
    assert_eq!(server.cron("daily-report"), job, "8.3: and so it is read");
    assert_eq!(server.get("/ojs/v1/cron").is(200, "8.2")["cron_jobs"], json!([job]), "8.2: and listed");

    let bare = server.register(json!({"name": "bare", "cron": "@daily", "type": "a.b"}));
    let defaults = json!({
        "args": [], "timezone": "UTC", "options": {}, "overlap_policy": "skip", "enabled": true, "description": null,
        "last_run_at": null, "run_count": 0,
    });
    for (member, value) in defaults.as_object().unwrap() {
        assert_eq!(bare.get(member), Some(value), "2.2: the default of {member}: {bare}");
    }
}

#[test]
fn section_8_5_patch_takes_any_client_field_and_keeps_the_others() {
    let server = Server::new();
    let before = server.register(cron("job", "*/10 * * * *", json!({"description": "d", "args": [1]})));
    let patch = |body: Value| server.patch("/ojs/v1/cron/job", body);
    let job = patch(json!({"description": "new"})).is(200, "decision 16")["cron_job"].clone();
    assert_eq!(job, merge(before.clone(), json!({"description": "new"})), "decision 16: only that");
    let job =
        patch(json!({"cron": "0 9 * * *", "timezone": "Asia/Tokyo"})).is(200, "decision 16")["cron_job"]
            .clone();
    assert_time(&job["next_run_at"], "2026-02-13T00:00:00Z", "2.2: next_run_at follows");
    assert_eq!(
        (&job["args"], &job["description"]),
        (&json!([1]), &json!("new")),
        "decision 16: the others are kept"
    );
    for (body, why) in [
        (json!({"enabled": "yes"}), "8.5: enabled is a boolean"),
        (json!({"timezone": "EST"}), "CRON-14"),
        (json!({"args": {}}), "CRON-05"),
        (json!({"overlap_policy": "maybe"}), "CRON-18"),
        (json!({"type": "Bad Type"}), "CRON-04"),
    ] {
        patch(body).refused(400, "invalid_request", why);
    }
    assert_eq!(server.cron("job"), job, "what is refused changes nothing");
    let enabled = server.post("/ojs/v1/cron", cron("job", "@daily", json!({"enabled": "yes"})));
    enabled.refused(400, "invalid_request", "2.2: enabled is a boolean");
}

#[test]
fn l2_del_delayed_jobs_wait_for_their_time() {
    let server = Server::new();
    let job = server
        .push(json!({"type": "a.b", "args": [], "options": {"queue": "five", "scheduled_at": "+PT5S"}}));
    let id = text(&job["id"]);
    assert_eq!(job["state"], "scheduled", "L2-DEL-002");
    assert_time(&job["scheduled_at"], "2026-02-12T20:15:25Z", "L2-DEL-002: resolved at receipt");
    assert!(server.fetch("five", 1).is_empty(), "L2-DEL-002: not now");
    server.pass_ms(4_999);
    assert!(server.fetch("five", 1).is_empty(), "5.8: never early");
    server.pass_ms(1);
    let ready = server.job(id);
    assert_eq!(ready["state"], "available", "L2-DEL-003: available at its time");
    assert_time(&ready["enqueued_at"], "2026-02-12T20:15:25Z", "3.1: enqueued_at");
    assert_eq!(server.fetch_one("five")["id"], id, "L2-DEL-002: then it is there");
    assert_eq!(server.events("job.scheduled").len(), 1, "6.4: job.scheduled");

    let past = json!({"type": "a.b", "args": [], "options": {"queue": "past", "scheduled_at": "2020-01-01T00:00:00Z"}});
    let job = server.push(past);
    assert!(job["state"] == "available" && job["enqueued_at"].is_string(), "L2-DEL-004: {job}");
    server.fetch_one("past");

    for given in ["2099-12-31T23:59:59Z", "2099-12-31T23:59:59+02:00", "2099-12-31T23:59:59.5Z"] {
        let job = server.push(json!({"type": "a.b", "args": [], "scheduled_at": given}));
        assert_eq!(job["scheduled_at"], given, "1.3: echoed as given");
        assert_eq!(server.job(text(&job["id"]))["scheduled_at"], given, "1.3: and stored so");
    }
}

#[test]
fn l2_ttl_jobs_that_nobody_started_in_time_expire() {
    let server = Server::new();
    let job =
        server.push(json!({"type": "a.b", "args": [], "options": {"queue": "ttl", "expires_at": "+PT2S"}}));
    let id = text(&job["id"]);
    assert_time(&job["expires_at"], "2026-02-12T20:15:22Z", "L2-TTL-001");
    server.pass(3);
    assert!(server.fetch("ttl", 1).is_empty(), "L2-TTL-001: not delivered");
    let job = server.job(id);
    assert_eq!(job["state"], "discarded", "L2-TTL-001");
    assert!(absent(&job, "completed_at") && job["discarded_at"].is_string(), "L2-TTL-001, C16: {job}");
    let events = server.events("job.expired");
    assert_eq!(events.len(), 1, "5.8: job.expired");
    assert_eq!(events[0]["subject"], id, "5.8: job.expired");
    assert!(
        list(&server.get("/ojs/v1/dead-letter").is(200, "C23")["jobs"]).is_empty(),
        "C23: no dead letter"
    );

    let options = json!({"queue": "long", "expires_at": "2099-12-31T23:59:59Z"});
    let job = server.push(json!({"type": "a.b", "args": [], "options": options}));
    assert_eq!(job["expires_at"], "2099-12-31T23:59:59Z", "L2-TTL-002: character for character");
    server.fetch_one("long");
    server.ack(text(&job["id"])).is(200, "L2-TTL-002: it runs normally");

    let started = server.push_to("started", json!({"expires_at": "+PT2S"}));
    server.fetch_one("started");
    server.pass(3);
    assert_eq!(server.state(&started), "active", "5.8: only before its start");
    let late = server.push_to("late", json!({"expires_at": "2020-01-01T00:00:00Z"}));
    assert!(server.fetch("late", 1).is_empty(), "5.8: already past: accept, then expire");
    assert_eq!(server.state(&late), "discarded", "5.8: already past: accept, then expire");
    let waiting = server.push_to("waiting", json!({"scheduled_at": "+PT10S", "expires_at": "+PT5S"}));
    server.pass(20);
    assert_eq!(server.state(&waiting), "discarded", "3.1: scheduled jobs expire too");
}
