//! CRON-16 to CRON-30 and CRON-S04: when a cron job fires, when it does not, and what is said about it.

use serde_json::{Value, json};

use super::server::{START, Server, absent, assert_time, cron, instant, list, merge, pause, text, time};

/// A queue and name for one cron job that every test needs.
const NAME: &str = "job";

/// What has been skipped, as (reason, scheduled time).
fn skips(server: &Server) -> Vec<(String, String)> {
    let skips = server.cron_events("cron.skipped", NAME);
    let brief = |data: &Value| (text(&data["reason"]).to_owned(), time(&data["scheduled_time"]).to_string());
    skips.iter().map(brief).collect()
}

/// A server at [`START`] with a job every minute whose run of 20:16 is active, and the id of that run.
fn with_active_run(policy: &str) -> (Server, String) {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({"overlap_policy": policy})));
    server.clock("2026-02-12T20:16:00Z");
    let run = server.fetch_as("w-1", NAME);
    assert_eq!(run.len(), 1, "{policy}: it has fired");
    (server, text(&run[0]["id"]).to_owned())
}

struct Gap {
    zone: &'static str,
    cron: &'static str,
    registered: &'static str,
    transition: &'static str,
    missing: &'static [&'static str],
    /// Fires on the day itself, from times that do exist.
    fires: &'static [&'static str],
    next: &'static str,
}

const GAPS: [Gap; 5] = [
    Gap {
        zone: "America/New_York",
        cron: "30 2 * * *",
        registered: "2026-03-07T12:00:00Z",
        transition: "2026-03-08T07:00:00Z",
        missing: &["02:30"],
        fires: &[],
        next: "2026-03-09T06:30:00Z",
    },
    Gap {
        zone: "America/New_York",
        cron: "15,45 1-3 * * *",
        registered: "2026-03-07T12:00:00Z",
        transition: "2026-03-08T07:00:00Z",
        missing: &["02:15", "02:45"],
        fires: &[
            "2026-03-08T06:15:00Z",
            "2026-03-08T06:45:00Z",
            "2026-03-08T07:15:00Z",
            "2026-03-08T07:45:00Z",
        ],
        next: "2026-03-09T05:15:00Z",
    },
    Gap {
        zone: "Europe/London",
        cron: "30 1 * * *",
        registered: "2026-03-28T12:00:00Z",
        transition: "2026-03-29T01:00:00Z",
        missing: &["01:30"],
        fires: &[],
        next: "2026-03-30T00:30:00Z",
    },
    // Half an hour only: from 02:00 to 02:30.
    Gap {
        zone: "Australia/Lord_Howe",
        cron: "15 2 * * *",
        registered: "2026-10-03T00:00:00Z",
        transition: "2026-10-03T15:30:00Z",
        missing: &["02:15"],
        fires: &[],
        next: "2026-10-04T15:15:00Z",
    },
    Gap {
        zone: "Australia/Lord_Howe",
        cron: "15,45 2 * * *",
        registered: "2026-10-03T00:00:00Z",
        transition: "2026-10-03T15:30:00Z",
        missing: &["02:15"],
        fires: &["2026-10-03T15:45:00Z"],
        next: "2026-10-04T15:15:00Z",
    },
];

#[test]
fn cron_16_spring_forward_does_not_fire_and_says_dst_skip() {
    for gap in GAPS {
        let why = format!("CRON-16: `{}` in {}", gap.cron, gap.zone);
        let server = Server::frozen_at(gap.registered);
        server.register(cron(NAME, gap.cron, json!({"timezone": gap.zone, "overlap_policy": "allow"})));
        let before = instant(gap.transition) - jiff::SignedDuration::from_secs(2);
        server.step_to(&before.to_string(), 900);
        assert_eq!(server.cron_events("cron.skipped", NAME).len(), 0, "{why}: nothing is skipped yet");

        server.clock(gap.transition);
        let skipped = server.cron_events("cron.skipped", NAME);
        assert_eq!(skipped.len(), 1, "{why}: one cron.skipped per gap, at the transition (9.2)");
        assert_eq!(skipped[0]["reason"], "dst_skip", "{why}");
        for civil in gap.missing {
            assert!(
                skipped[0].to_string().contains(civil),
                "{why}: it tells the time {civil}: {}",
                skipped[0]
            );
        }

        let hours = instant(gap.transition) + jiff::SignedDuration::from_hours(4);
        server.step_to(&hours.to_string(), 900);
        assert_eq!(server.fires(NAME), gap.fires, "{why}: jobs in skipped hours MUST NOT fire");
        assert_eq!(server.cron_events("cron.skipped", NAME).len(), 1, "{why}: said once");
        assert_time(&server.cron(NAME)["next_run_at"], gap.next, &why);

        server.clock(gap.next);
        assert_eq!(server.fires(NAME).last().map(String::as_str), Some(gap.next), "{why}: then as usual");
    }
}

#[test]
fn cron_16_next_run_at_already_knows_that_the_time_does_not_exist() {
    let server = Server::frozen_at("2026-03-07T12:00:00Z");
    let job = server.register(cron(NAME, "30 2 * * *", json!({"timezone": "America/New_York"})));
    assert_time(&job["next_run_at"], "2026-03-09T06:30:00Z", "CRON-16: the next trigger is a day later");
}

#[test]
fn cron_16_a_gap_that_was_slept_through_is_still_reported() {
    let server = Server::frozen_at("2026-03-07T12:00:00Z");
    server.register(cron(NAME, "30 2 * * *", json!({"timezone": "America/New_York"})));
    server.clock("2026-03-09T06:31:00Z");
    assert_eq!(server.fires(NAME), ["2026-03-09T06:30:00Z"], "CRON-25: one catch-up");
    let skipped = server.cron_events("cron.skipped", NAME);
    assert_eq!(skipped.len(), 1, "CRON-30: whenever an occurrence does not result in a job: {skipped:?}");
    assert_eq!(skipped[0]["reason"], "dst_skip");
}

#[test]
fn cron_16_who_has_nothing_in_the_gap_skips_nothing() {
    let server = Server::frozen_at("2026-03-08T06:00:00Z");
    server.register(cron("noon", "0 12 * * *", json!({"timezone": "America/New_York"})));
    server.register(cron("utc", "30 2 * * *", json!({})));
    server.register(cron("interval", "@every 30m", json!({"timezone": "America/New_York"})));
    server.step_to("2026-03-08T09:00:00Z", 600);
    assert!(server.events("cron.skipped").is_empty(), "CRON-16: only times that do not exist are skipped");
    assert_eq!(server.fires("interval").len(), 6, "5.2: `@every` does not know of daylight saving");
}

#[test]
fn cron_17_fall_back_fires_exactly_once_the_first_time() {
    let new_york = ("America/New_York", "2026-11-01T04:10:00Z", "2026-11-01T08:10:00Z");
    let cases = [
        (new_york, "30 1 * * *", &["2026-11-01T05:30:00Z"][..], "2026-11-02T06:30:00Z"),
        (new_york, "*/30 1 * * *", &["2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z"], "2026-11-02T06:00:00Z"),
        (
            new_york,
            "*/30 * * * *",
            &[
                "2026-11-01T04:30:00Z",
                "2026-11-01T05:00:00Z",
                "2026-11-01T05:30:00Z",
                "2026-11-01T07:00:00Z",
                "2026-11-01T07:30:00Z",
                "2026-11-01T08:00:00Z",
            ],
            "2026-11-01T08:30:00Z",
        ),
        (
            ("Europe/London", "2026-10-24T23:40:00Z", "2026-10-25T03:00:00Z"),
            "30 1 * * *",
            &["2026-10-25T00:30:00Z"],
            "2026-10-26T01:30:00Z",
        ),
        // Half an hour only: from 02:00 back to 01:30.
        (
            ("Australia/Lord_Howe", "2026-04-04T14:00:00Z", "2026-04-04T17:00:00Z"),
            "45 1 * * *",
            &["2026-04-04T14:45:00Z"],
            "2026-04-05T15:15:00Z",
        ),
        (
            ("Australia/Lord_Howe", "2026-04-04T14:00:00Z", "2026-04-04T17:00:00Z"),
            "15 1 * * *",
            &["2026-04-04T14:15:00Z"],
            "2026-04-05T14:45:00Z",
        ),
    ];
    for ((zone, from, to), expression, fires, next) in cases {
        let why = format!("CRON-17: `{expression}` in {zone} MUST fire exactly once, the first time");
        let server = Server::frozen_at(from);
        server.register(cron(NAME, expression, json!({"timezone": zone, "overlap_policy": "allow"})));
        server.step_to(to, 300);
        assert_eq!(server.fires(NAME), fires, "{why}");
        assert_time(&server.cron(NAME)["next_run_at"], next, &why);
        let silent = server.events("cron.skipped").is_empty() && server.events("cron.missed").is_empty();
        assert!(silent, "decision 3: a dropped second pass is not an occurrence and emits nothing");
    }
}

#[test]
fn cron_17_every_goes_on_through_the_repeated_hour() {
    let server = Server::frozen_at("2026-11-01T05:10:00Z");
    server.register(cron(NAME, "@every 30m", json!({"timezone": "America/New_York"})));
    server.step_to("2026-11-01T07:10:00Z", 600);
    let times = ["05:40", "06:10", "06:40", "07:10"].map(|time| format!("2026-11-01T{time}:00Z"));
    assert_eq!(server.fires(NAME), times, "6.3: `@every` is unaffected");
}

#[test]
fn cron_18_skip_drops_the_occurrence_and_names_the_active_run() {
    let (server, run) = with_active_run("skip");
    server.clock("2026-02-12T20:17:00Z");
    assert_eq!(server.fires(NAME).len(), 1, "6.1 skip: no new job is enqueued");
    assert!(server.fetch(NAME, 10).is_empty(), "6.1 skip: no new job is enqueued");
    let skipped = server.cron_events("cron.skipped", NAME);
    assert_eq!(skipped.len(), 1, "6.1 skip: a cron.skipped event MUST be emitted");
    assert_eq!(skipped[0]["reason"], "overlap_skip", "9.2");
    assert_eq!(skipped[0]["active_job_id"], *run, "9.2: the event has the active_job_id");
    assert_time(&skipped[0]["scheduled_time"], "2026-02-12T20:17:00Z", "9.2");

    let job = server.cron(NAME);
    assert_time(&job["next_run_at"], "2026-02-12T20:18:00Z", "6.1 skip: next_run_at advances");
    assert_eq!(job["run_count"], 1, "6.3: a skip does not count");
    assert_time(&job["last_run_at"], "2026-02-12T20:16:00Z", "6.3: a skip is no run");

    server.ack(&run).is(200, "the run ends");
    server.clock("2026-02-12T20:18:00Z");
    assert_eq!(
        server.fires(NAME).len(),
        2,
        "6.1 skip: the skipped one is lost, not deferred; the next fires"
    );
}

#[test]
fn cron_18_only_an_active_run_is_an_overlap_unless_the_server_is_told_otherwise() {
    for (setting, fires) in [("active", 3), ("unfinished", 1)] {
        let server = Server::with(&["--overlap-counts", setting]);
        server.register(cron(NAME, "* * * * *", json!({"overlap_policy": "skip"})));
        server.step_to("2026-02-12T20:18:00Z", 20);
        assert_eq!(server.fires(NAME).len(), fires, "6, C5: nobody has fetched; --overlap-counts {setting}");
    }
    let (server, run) = with_active_run("skip");
    server.nack(&run).is(200, "the run fails and waits for its retry");
    server.clock("2026-02-12T20:17:00Z");
    assert_eq!(server.fires(NAME).len(), 2, "6: a run that waits for its retry is not active");
}

#[test]
fn cron_18_allow_runs_as_many_as_fall_due() {
    let (server, first) = with_active_run("allow");
    server.clock("2026-02-12T20:17:00Z");
    let second = server.fetch_one(NAME);
    assert_ne!(second["id"], *first, "6.1 allow: a new job is enqueued unconditionally");
    assert_eq!(server.state(&first), "active", "6.1 allow: both execute at once");
    assert!(server.events("cron.skipped").is_empty(), "6.1 allow: nothing is skipped");
}

#[test]
fn cron_18_cancel_previous_really_cancels() {
    let (server, first) = with_active_run("cancel_previous");
    server.clock("2026-02-12T20:17:00Z");
    let previous = server.job(&first);
    assert_eq!(previous["state"], "cancelled", "6.1: the previous job transitions to `cancelled`");
    assert!(previous["cancelled_at"].is_string() && absent(&previous, "completed_at"), "2.1: {previous}");
    server.ack(&first).refused(409, "conflict", "4.5: the worker's later ack is refused");
    let beat = server.heartbeat("w-1", &[&first]);
    assert!(list(&beat["cancelled_jobs"]).contains(&json!(first)), "4.5: the worker is told: {beat}");

    let second = server.fetch_one(NAME);
    assert_eq!(second["meta"]["cron_name"], NAME, "6.1: and a new one starts");
    let kinds = server.events("job.cancelled,job.enqueued");
    let position = |kind: &str, id: &str| {
        kinds.iter().position(|event| event["type"] == kind && event["subject"] == id).expect(kind)
    };
    let (cancelled, enqueued) =
        (position("job.cancelled", &first), position("job.enqueued", text(&second["id"])));
    assert!(cancelled < enqueued, "6.1: MUST attempt to cancel before (or with) enqueueing the new one");
}

#[test]
fn cron_18_cancel_previous_of_a_run_that_has_ended_is_nothing() {
    let (server, first) = with_active_run("cancel_previous");
    server.ack(&first).is(200, "it completes in time");
    server.clock("2026-02-12T20:17:00Z");
    assert_eq!(server.state(&first), "completed", "6.1: if it completes before, the cancellation is a no-op");
    server.fetch_one(NAME);
    assert!(server.events("job.cancelled").is_empty(), "6.1: a no-op");
}

#[test]
fn cron_18_enqueue_never_has_two_active_at_once() {
    let (server, mut active) = with_active_run("enqueue");
    server.step_to("2026-02-12T20:19:00Z", 20);
    assert_eq!(server.fires(NAME).len(), 4, "6.1 enqueue: the new run is enqueued even so");
    assert!(server.events("cron.skipped").is_empty(), "6.1 enqueue: nothing is skipped");
    for time in ["20:17:00", "20:18:00", "20:19:00"] {
        assert!(server.fetch(NAME, 10).is_empty(), "6.1 enqueue: do not allow concurrent execution");
        server.ack(&active).is(200, "the previous run completes");
        let next = server.fetch(NAME, 10);
        assert_eq!(next.len(), 1, "6.1 enqueue: one is picked up after the previous run completes");
        assert_time(&next[0]["meta"]["cron_triggered_at"], &format!("2026-02-12T{time}Z"), "in their order");
        text(&next[0]["id"]).clone_into(&mut active);
    }
}

#[test]
fn cron_18_enqueue_holds_back_a_retry_too_and_nobody_else() {
    let server = Server::new();
    let options = json!({"queue": NAME, "retry": {"initial_interval": "PT10S", "jitter": false}});
    server.register(cron(NAME, "* * * * *", json!({"overlap_policy": "enqueue", "options": options})));
    server.step_to("2026-02-12T20:17:00Z", 20);
    let first = server.fetch_one(NAME);
    server.nack(text(&first["id"])).is(200, "the first fails");
    let second = server.fetch_one(NAME);
    server.pass(15);
    assert_eq!(server.state(text(&first["id"])), "available", "its retry is due");
    let stranger = server.push_to(NAME, json!({}));
    let fetched = server.fetch(NAME, 10);
    assert_eq!(fetched.len(), 1, "6.1 enqueue: a retry does not run beside the next occurrence");
    assert_eq!(fetched[0]["id"], *stranger, "6.1 enqueue: other jobs of the queue are not held back");
    server.ack(text(&second["id"])).is(200, "the second completes");
    assert_eq!(server.fetch_one(NAME)["id"], first["id"], "6.1 enqueue: now the retry");
}

#[test]
fn cron_18_there_are_four_policies_and_no_fifth() {
    let server = Server::new();
    for policy in ["skip", "allow", "cancel_previous", "enqueue"] {
        let job =
            server.register(cron(&policy.replace('_', "-"), "* * * * *", json!({"overlap_policy": policy})));
        assert_eq!(job["overlap_policy"], policy, "CRON-18: all four MUST be supported");
    }
    let alias = server.register(cron("alias", "* * * * *", json!({"overlap_policy": "cancel"})));
    assert_eq!(alias["overlap_policy"], "cancel_previous", "6.1: `cancel` is an alias");
    for policy in [json!("queue"), json!("SKIP"), json!(""), json!(1)] {
        let answer = server.post("/ojs/v1/cron", cron("bad", "* * * * *", json!({"overlap_policy": policy})));
        answer.refused(400, "invalid_request", "CRON-18: there is no other policy");
    }
}

#[test]
fn cron_19_the_default_policy_is_skip() {
    let server = Server::new();
    let job = server.register(cron(NAME, "* * * * *", json!({})));
    assert_eq!(job["overlap_policy"], "skip", "CRON-19: the default MUST be skip");
    server.clock("2026-02-12T20:16:00Z");
    server.fetch_one(NAME);
    server.clock("2026-02-12T20:17:00Z");
    assert_eq!(skips(&server), [("overlap_skip".to_owned(), "2026-02-12T20:17:00Z".to_owned())], "CRON-19");
}

#[test]
fn cron_20_triggered_jobs_carry_the_name_of_their_cron_job() {
    let server = Server::new();
    let options = json!({"queue": NAME, "meta": {"partner": "p1"}});
    server.register(cron(NAME, "* * * * *", json!({"options": options})));
    server.clock("2026-02-12T20:16:01Z");
    let job = server.fetch_one(NAME);
    for meta in [&job["meta"], &job["metadata"]] {
        assert_eq!(meta["cron_name"], NAME, "CRON-20: cron_name MUST be in the metadata: {job}");
        assert_time(
            &meta["cron_triggered_at"],
            "2026-02-12T20:16:00Z",
            "6.3: the nominal time, as in the seed",
        );
    }
    assert_eq!(job["meta"]["partner"], "p1", "2.2: with the metadata of the options");
}

#[test]
fn cron_24_cron_is_evaluated_at_most_once_a_second() {
    let server = Server::new();
    server.register(cron("fast", "@every 500ms", json!({"overlap_policy": "allow"})));
    server.register(cron("second", "* * * * * *", json!({"overlap_policy": "allow"})));
    for _ in 0..40 {
        server.pass_ms(250);
    }
    for name in ["fast", "second"] {
        let fires = server.cron_events("cron.triggered", name);
        let mut seconds: Vec<i64> = fires.iter().map(|data| time(&data["actual_time"]).as_second()).collect();
        assert!(
            (9..=11).contains(&seconds.len()),
            "{name}: ten seconds, about ten fires, not {}",
            seconds.len()
        );
        seconds.dedup();
        assert_eq!(
            seconds.len(),
            fires.len(),
            "CRON-24: MUST NOT be more frequent than once per second: {fires:?}"
        );
    }
}

#[test]
fn cron_25_after_a_long_pause_one_catch_up_fires_and_the_rest_is_reported() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({"overlap_policy": "allow"})));
    server.clock("2026-02-13T08:15:30Z");
    let why = "CRON-25: MUST fire at most one catch-up occurrence and advance next_run_at";
    assert_eq!(server.fires(NAME), ["2026-02-13T08:15:00Z"], "{why}; it is for the latest due (decision 12)");
    let job = server.cron(NAME);
    assert_eq!(job["run_count"], 1, "{why}");
    assert_time(&job["next_run_at"], "2026-02-13T08:16:00Z", why);
    assert_eq!(server.fetch(NAME, 100).len(), 1, "{why}");

    let missed = server.cron_events("cron.missed", NAME);
    assert_eq!(missed.len(), 1, "decision 16: one cron.missed per cron job and wake-up");
    assert_time(&missed[0]["first"], "2026-02-12T20:16:00Z", "decision 16: first");
    assert_time(&missed[0]["last"], "2026-02-13T08:14:00Z", "decision 16: last");
    assert_eq!(missed[0]["count"], 719, "decision 16: count");
    assert!(missed[0]["reason"].is_string(), "decision 16: with a reason");

    server.clock("2026-02-13T08:16:00Z");
    assert_eq!(server.fires(NAME).len(), 2, "and then as usual");
}

#[test]
fn cron_25_years_of_seconds_are_caught_up_in_no_time() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * * *", json!({})));
    server.register(cron("fast", "@every 500ms", json!({})));
    server.clock("2036-02-12T20:15:20Z");
    for name in [NAME, "fast"] {
        assert_eq!(server.fires(name).len(), 1, "decision 12: nobody counts occurrences one by one");
        assert_time(&server.fires(name)[0].clone().into(), "2036-02-12T20:15:20Z", "the latest due");
    }
}

#[test]
fn cron_25_a_clock_set_back_fires_nothing_twice() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({"overlap_policy": "allow"})));
    server.step_to("2026-02-12T20:20:00Z", 20);
    server.clock("2026-02-12T20:16:30Z");
    server.step_to("2026-02-12T20:22:00Z", 20);
    let fires = server.fires(NAME);
    let mut once = fires.clone();
    once.dedup();
    assert_eq!(fires, once, "decision 15: UNIQUE(cron, scheduled_time)");
    assert_eq!(fires.len(), 7, "20:16 to 20:22, each once: {fires:?}");
}

#[test]
fn section_4_1_every_does_not_drift_and_skips_do_not_move_it() {
    let server = Server::new();
    let job = server.register(cron(NAME, "@every 5m", json!({})));
    assert_time(&job["next_run_at"], "2026-02-12T20:20:20Z", "4.1: one interval after registration");
    server.clock("2026-02-12T20:20:27Z");
    assert_eq!(server.fires(NAME), ["2026-02-12T20:20:20Z"]);
    let next = &server.cron(NAME)["next_run_at"];
    assert_time(next, "2026-02-12T20:25:20Z", "decision 5: from the scheduled time, however late it was");

    let run = server.fetch_one(NAME);
    server.clock("2026-02-12T20:25:20Z");
    assert_eq!(skips(&server), [("overlap_skip".to_owned(), "2026-02-12T20:25:20Z".to_owned())]);
    assert_time(
        &server.cron(NAME)["next_run_at"],
        "2026-02-12T20:30:20Z",
        "decision 5: a skip moves nothing",
    );
    server.ack(text(&run["id"])).is(200, "the run ends");

    server.clock("2026-02-12T21:02:00Z");
    assert_eq!(server.fires(NAME).last().unwrap(), "2026-02-12T21:00:20Z", "CRON-25: the latest due");
    assert_time(&server.cron(NAME)["next_run_at"], "2026-02-12T21:05:20Z", "decision 5: nothing drifts");
}

#[test]
fn cron_26_registration_is_an_upsert_that_keeps_what_has_happened() {
    let server = Server::new();
    let first = server.register(cron(
        NAME,
        "*/10 * * * *",
        json!({"description": "first", "overlap_policy": "allow"}),
    ));
    server.step_to("2026-02-12T20:34:00Z", 20);
    let same = server.update(cron(
        NAME,
        "*/10 * * * *",
        json!({"description": "second", "overlap_policy": "allow"}),
    ));
    let why = "CRON-26: registration MUST use upsert semantics";
    assert_eq!(same["description"], "second", "{why}: its fields are updated");
    assert_eq!(same["created_at"], first["created_at"], "{why}: created_at is kept");
    assert_eq!(same["run_count"], 2, "{why}: run_count is kept");
    assert_time(&same["last_run_at"], "2026-02-12T20:30:00Z", "CRON-26: last_run_at is kept");
    assert_time(
        &same["next_run_at"],
        "2026-02-12T20:40:00Z",
        "CRON-26: an unchanged schedule keeps next_run_at",
    );

    let changed = server.update(cron(NAME, "*/7 * * * *", json!({})));
    assert_time(&changed["next_run_at"], "2026-02-12T20:35:00Z", "CRON-26: a changed schedule has a new one");
    assert_eq!(changed["run_count"], 2, "{why}: run_count is kept even so");
    assert_eq!(changed["created_at"], first["created_at"], "{why}: and created_at");
    assert_eq!(changed["description"], Value::Null, "decision 16: omitted fields take their defaults");
    assert_eq!(changed["overlap_policy"], "skip", "decision 16: omitted fields take their defaults");

    let zoned = server.update(cron(NAME, "0 9 * * *", json!({"timezone": "Asia/Tokyo"})));
    assert_time(
        &zoned["next_run_at"],
        "2026-02-13T00:00:00Z",
        "CRON-26: a changed zone is a changed schedule",
    );
}

#[test]
fn cron_26_an_unchanged_interval_keeps_its_anchor() {
    let server = Server::new();
    server.register(cron(NAME, "@every 10m", json!({})));
    server.clock("2026-02-12T20:19:00Z");
    let again = server.update(cron(NAME, "@every 10m", json!({"args": [1]})));
    assert_time(&again["next_run_at"], "2026-02-12T20:25:20Z", "decision 16: the anchor is left alone");
    server.clock("2026-02-12T20:25:20Z");
    assert_eq!(server.fires(NAME).len(), 1);
    assert_eq!(server.fetch_one(NAME)["args"], json!([1]), "8.1: with what was updated");
}

#[test]
fn cron_26_an_omitted_enabled_keeps_its_value() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({"enabled": false})));
    let again = server.update(cron(NAME, "* * * * *", json!({})));
    assert_eq!(
        again["enabled"], false,
        "decision 16: a deployment does not switch on what an operator has off"
    );
    assert_eq!(again["next_run_at"], Value::Null, "CRON-28");
    let on = server.update(cron(NAME, "* * * * *", json!({"enabled": true})));
    assert_eq!(on["enabled"], true, "decision 16: said aloud, it counts");
    assert_time(&on["next_run_at"], "2026-02-12T20:16:00Z", "decision 16: re-enabling counts from now");
}

#[test]
fn cron_27_removing_what_does_not_exist_is_404() {
    let server = Server::new();
    server.delete("/ojs/v1/cron/nobody").refused(404, "not_found", "CRON-27: removal MUST return 404");
    server.get("/ojs/v1/cron/nobody").refused(404, "not_found", "8.3: so MUST reading");
    server.patch("/ojs/v1/cron/nobody", json!({"enabled": true})).refused(404, "not_found", "and toggling");
    server.delete("/ojs/v1/cron/NO%20BODY").refused(404, "not_found", "CRON-27: whatever the name");

    server.register(cron(NAME, "* * * * *", json!({})));
    let gone = server.delete("/ojs/v1/cron/job").is(200, "8.4");
    assert_eq!((&gone["deleted"], &gone["name"]), (&json!(true), &json!(NAME)), "8.4: the answer");
    server.delete("/ojs/v1/cron/job").refused(404, "not_found", "CRON-27: the second time");
}

#[test]
fn section_8_4_removal_leaves_the_jobs_alone_and_nothing_fires_any_more() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({"overlap_policy": "allow"})));
    server.step_to("2026-02-12T20:17:00Z", 20);
    let active = server.fetch_one(NAME);
    server.delete("/ojs/v1/cron/job").is(200, "8.4");
    server.clock("2026-02-12T20:30:00Z");
    assert_eq!(server.fires(NAME).len(), 2, "8.4: it is gone");
    server.ack(text(&active["id"])).is(200, "8.4: does not affect active jobs");
    server.fetch_one(NAME);

    let again = server.register(cron(NAME, "* * * * *", json!({})));
    assert_eq!(again["run_count"], 0, "8.1: a new registration begins anew");
    assert_time(&again["created_at"], "2026-02-12T20:30:00Z", "8.1: a new registration begins anew");
}

#[test]
fn cron_28_a_disabled_cron_job_has_no_next_run() {
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({})));
    let off = server.enable(NAME, false);
    assert_eq!((&off["name"], &off["enabled"]), (&json!(NAME), &json!(false)), "8.5: the answer");
    assert_eq!(off.get("next_run_at"), Some(&Value::Null), "CRON-28: next_run_at MUST be null");
    assert_eq!(server.cron(NAME)["next_run_at"], Value::Null, "CRON-28: read back too");
    let born_off = server.register(cron("born-off", "* * * * *", json!({"enabled": false})));
    assert_eq!(born_off.get("next_run_at"), Some(&Value::Null), "CRON-28: from the beginning too");

    server.step_to("2026-02-12T20:18:30Z", 30);
    assert!(server.fires(NAME).is_empty(), "2.2: disabled cron jobs do not fire");
    let on = server.enable(NAME, true);
    assert_time(&on["next_run_at"], "2026-02-12T20:19:00Z", "decision 16: re-enabling counts from now");
    server.clock("2026-02-12T20:18:59Z");
    assert!(server.fires(NAME).is_empty(), "decision 16: what was due while disabled is not caught up");
    server.clock("2026-02-12T20:19:00Z");
    assert_eq!(server.fires(NAME), ["2026-02-12T20:19:00Z"]);
}

#[test]
fn cron_29_every_trigger_emits_cron_triggered() {
    let server = Server::new();
    server.register(cron(NAME, "0 9 * * *", json!({"timezone": "America/New_York"})));
    server.clock("2026-02-13T14:00:02Z");
    let events = server.events("cron.triggered");
    assert_eq!(events.len(), 1, "CRON-29: MUST be emitted every time");
    let event = &events[0];
    assert_eq!(event["event"], "cron.triggered", "9.1: `event`: {event}");
    assert_eq!(event["type"], "cron.triggered", "6.4: and `type`, as the envelope says");
    assert_eq!(event["specversion"], "1.0", "6.4");
    assert_eq!(event["subject"], NAME, "6.4: the subject is the cron name");
    assert!(text(&event["id"]).starts_with("evt_") && event["source"].is_string(), "6.4: {event}");
    assert_time(&event["timestamp"], "2026-02-13T14:00:02Z", "9.1: `timestamp`");
    assert_time(&event["time"], "2026-02-13T14:00:02Z", "6.4: and `time`");

    let job = server.fetch_one(NAME);
    let data = &event["data"];
    let expected = json!({
        "cron_name": NAME, "cron_expression": "0 9 * * *", "cron_expr": "0 9 * * *",
        "timezone": "America/New_York", "job_id": job["id"], "job_type": "test.cron", "run_count": 1,
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&data[member], value, "9.1: data.{member}: {data}");
    }
    assert_time(&data["scheduled_time"], "2026-02-13T14:00:00Z", "9.1: scheduled_time");
    assert_time(&data["actual_time"], "2026-02-13T14:00:02Z", "9.1: actual_time reveals the lag");
}

#[test]
fn cron_30_every_occurrence_without_a_job_emits_cron_skipped() {
    // Overlap.
    let (server, run) = with_active_run("skip");
    server.clock("2026-02-12T20:17:00Z");
    let events = server.events("cron.skipped");
    assert_eq!(events.len(), 1, "CRON-30: MUST be emitted");
    let data = &events[0]["data"];
    assert_eq!(
        (&events[0]["event"], &events[0]["type"]),
        (&json!("cron.skipped"), &json!("cron.skipped")),
        "9.2, 6.4"
    );
    let expected = json!({
        "cron_name": NAME, "cron_expression": "* * * * *", "cron_expr": "* * * * *", "timezone": "UTC",
        "reason": "overlap_skip", "active_job_id": run, "existing_job_id": run, "job_type": "test.cron",
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&data[member], value, "9.2: data.{member}: {data}");
    }

    // Disabled, at each occurrence.
    let server = Server::new();
    server.register(cron(NAME, "* * * * *", json!({"enabled": false})));
    server.step_to("2026-02-12T20:18:10Z", 10);
    let times = ["20:16", "20:17", "20:18"];
    let expected = times.map(|time| ("disabled".to_owned(), format!("2026-02-12T{time}:00Z")));
    assert_eq!(skips(&server), expected, "CRON-30, decision 16: `disabled` at each occurrence");

    // Daylight saving: see CRON-16. There are no other reasons.
    for data in [server.events("cron.skipped")].concat() {
        let reason = text(&data["data"]["reason"]).to_owned();
        assert!(
            ["overlap_skip", "disabled", "dst_skip"].contains(&reason.as_str()),
            "9.2: MUST be one of three"
        );
    }
}

#[test]
fn cron_s04_more_than_two_queued_occurrences_are_warned_about() {
    let (server, _) = with_active_run("enqueue");
    server.step_to("2026-02-12T20:18:00Z", 20);
    let warnings = |server: &Server| {
        let said = server.said();
        said.lines().filter(|line| line.contains("WARN") && line.contains(NAME)).count()
    };
    assert_eq!(warnings(&server), 0, "CRON-S04: two queued occurrences are fine:\n{}", server.said());
    server.step_to("2026-02-12T20:19:00Z", 20);
    for _ in 0..50 {
        if warnings(&server) > 0 {
            return;
        }
        pause(20);
    }
    panic!("CRON-S04: a warning when more than 2 queued occurrences exist:\n{}", server.said());
}

#[test]
fn section_7_3_a_new_registration_is_looked_at_without_waiting() {
    // On a clock that runs: whoever sleeps until a far next_run_at must be woken.
    let server = Server::new();
    server.register(cron("far", "@yearly", json!({})));
    server.put("/kron/v1/test/clock", json!({"now": START, "running": true})).is(200, "the clock runs");
    server.register(cron("near", "* * * * * *", json!({})));
    for _ in 0..100 {
        if !server.fires("near").is_empty() {
            return;
        }
        pause(50);
    }
    panic!("7.3: sleeps until the earliest next_run_at; a job every second has not fired for 5 s");
}

#[test]
fn section_2_2_options_are_applied_to_each_triggered_job() {
    let server = Server::new();
    let options = json!({
        "queue": "reports", "timeout": 300, "tags": ["a", "b"], "meta": {"k": "v"}, "priority": 7,
        "retry": {"max_attempts": 5, "initial_interval": "PT30S", "backoff_coefficient": 2.0, "jitter": false},
    });
    let job =
        server.register(cron(NAME, "* * * * *", json!({"options": options, "type": "report.generate"})));
    assert_eq!(job["options"], options, "2.2: options are echoed");
    server.clock("2026-02-12T20:16:00Z");
    let run = server.fetch_one("reports");
    let expected = json!({
        "type": "report.generate", "queue": "reports", "timeout_ms": 300_000, "tags": ["a", "b"], "priority": 7,
        "max_attempts": 5,
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&run[member], value, "2.2: {member}: {run}");
    }
    let failed = server.nack(text(&run["id"])).is(200, "it fails");
    assert_eq!(failed["retry_delay_ms"], 30_000, "1.1: options.retry is the standard retry policy");

    let plain = merge(cron("plain", "* * * * *", json!({})), json!({"options": {}}));
    server.register(plain);
    server.clock("2026-02-12T20:17:00Z");
    assert_eq!(
        server.fetch_one("default")["meta"]["cron_name"],
        "plain",
        "2.2: the queue defaults to `default`"
    );
}

#[test]
fn section_2_2_bad_options_are_refused_at_registration() {
    let server = Server::new();
    for (options, status, code) in [
        (json!({"queue": "My Queue"}), 400, "invalid_request"),
        (json!({"priority": 101}), 400, "invalid_request"),
        (json!([]), 400, "invalid_request"),
        (json!({"retry": {"max_attempts": -1}}), 422, "validation_error"),
    ] {
        let answer = server.post("/ojs/v1/cron", cron("bad", "* * * * *", json!({"options": options})));
        assert!([400, status].contains(&answer.status), "2.2: as for a job: {options}: {}", answer.text);
        let told = answer.json()["error"]["code"].clone();
        assert!(told == code || told == "invalid_request", "2.2: as for a job: {options}: {told}");
    }
}

#[test]
fn section_6_3_runs_belong_together_by_the_name_of_their_cron_job() {
    let (server, run) = with_active_run("skip");
    let shared = json!({"options": {"queue": NAME}, "overlap_policy": "skip"});
    server.register(cron("neighbour", "* * * * *", shared));
    server.clock("2026-02-12T20:17:00Z");
    assert_eq!(server.fires("neighbour").len(), 1, "6.3: another name in the same queue is nobody's overlap");
    assert_eq!(server.fires(NAME).len(), 1, "6.3: its own is");

    server.delete("/ojs/v1/cron/job").is(200, "8.4: the run goes on");
    server.register(cron(NAME, "* * * * *", json!({"overlap_policy": "skip"})));
    server.clock("2026-02-12T20:18:00Z");
    let skipped = server.cron_events("cron.skipped", NAME);
    assert_eq!(
        skipped.last().unwrap()["active_job_id"],
        *run,
        "6.3: the name is the correlation key: {skipped:?}"
    );
    server.ack(&run).is(200, "ack");
    server.clock("2026-02-12T20:19:00Z");
    assert_eq!(server.fires(NAME).len(), 2, "6.3: and then it fires");
}

#[test]
fn section_8_5_a_policy_changed_by_patch_counts_for_the_runs_that_are_active() {
    let (server, first) = with_active_run("allow");
    server.clock("2026-02-12T20:17:00Z");
    let second = text(&server.fetch_one(NAME)["id"]).to_owned();
    server.patch("/ojs/v1/cron/job", json!({"overlap_policy": "cancel_previous"})).is(200, "decision 16");
    server.clock("2026-02-12T20:18:00Z");
    let states = [server.state(&first), server.state(&second)];
    assert_eq!(states, ["cancelled", "cancelled"], "6.1 cancel_previous: no run is left beside the new one");
    assert_eq!(server.fetch(NAME, 10).len(), 1, "6.1 cancel_previous: the new one");
}
