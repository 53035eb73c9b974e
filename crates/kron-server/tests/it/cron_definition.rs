//! CRON-01 to CRON-15, and CRON-S01 to S03 and S06: what a cron job may say, and what it then means.

use serde_json::{Value, json};

use super::server::{START, Server, assert_time, cron, list, merge, text};

/// Every minute, in a queue of its own.
fn minutely(name: &str) -> Value {
    cron(name, "* * * * *", json!({}))
}

/// Registers and expects a refusal that leaves nothing behind.
#[track_caller]
fn refuse(server: &Server, definition: Value, why: &str) -> Value {
    let name = definition["name"].as_str().unwrap_or_default().to_owned();
    let error = server.post("/ojs/v1/cron", definition).refused(400, "invalid_request", why);
    let all = server.get("/ojs/v1/cron").is(200, "the list");
    assert!(
        !list(&all["cron_jobs"]).iter().any(|job| job["name"] == *name),
        "{why}: nothing is kept of `{name}`"
    );
    error
}

/// Registers expressions at [`START`] in a zone and compares when each runs next.
#[track_caller]
fn next_runs(server: &Server, zone: &str, cases: &[(&str, &str)], why: &str) {
    for (index, (expression, next)) in cases.iter().enumerate() {
        let name = format!("case-{}-{index}", zone.to_lowercase().replace(['/', '_'], "-"));
        let definition = cron(&name, expression, json!({"timezone": zone}));
        let answer =
            server.post("/ojs/v1/cron", definition).is(201, &format!("{why}: `{expression}` is valid"));
        assert_time(&answer["cron_job"]["next_run_at"], next, &format!("{why}: `{expression}` in {zone}"));
    }
}

#[test]
fn cron_01_a_name_is_unique_within_a_deployment() {
    let server = Server::new();
    server.register(minutely("same"));
    server.update(cron("same", "0 0 * * *", json!({})));
    let all = server.get("/ojs/v1/cron").is(200, "the list");
    assert_eq!(all["count"], 1, "CRON-01: a name MUST be unique: {all}");
    assert_eq!(
        all["cron_jobs"][0]["cron"], "0 0 * * *",
        "CRON-01: and the later registration is authoritative"
    );
}

#[test]
fn cron_02_a_name_matches_the_pattern_and_has_at_most_255_characters() {
    let server = Server::new();
    let longest = "a".repeat(255);
    for name in ["a", "0", "daily-report", "a.b-c", "9-lives", "a-", "a.", "a..b", "a--b", &longest] {
        server.register(minutely(name));
        assert_eq!(server.cron(name)["name"], name, "CRON-02: `{name}` is a name");
    }
    let too_long = "a".repeat(256);
    let bad = [
        "", "A", "Daily", "-a", ".a", "a_b", "a b", " a", "a ", "a/b", "a\n", "é", "a\u{0}", "%61", &too_long,
    ];
    for name in bad {
        refuse(&server, minutely(name), "CRON-02: `name` MUST match [a-z0-9][a-z0-9\\-\\.]*, up to 255");
    }
    for name in [json!(null), json!(7), json!(["a"]), json!({})] {
        refuse(&server, merge(minutely("x"), json!({"name": name})), "CRON-02: a name is a string");
    }
    refuse(&server, json!({"cron": "* * * * *", "type": "a.b"}), "2.2: `name` is required");
}

#[test]
fn cron_03_the_schedule_is_a_cron_expression_or_a_special_one() {
    let server = Server::new();
    for (index, expression) in ["* * * * *", "* * * * * *", "@daily", "@every 5m"].into_iter().enumerate() {
        let job = server.register(cron(&format!("ok-{index}"), expression, json!({})));
        assert_eq!(job["cron"], expression, "CRON-03: the expression is echoed as it was written");
    }
    for schedule in [json!("nonsense"), json!(""), json!(null), json!(5), json!({}), json!(["* * * * *"])] {
        refuse(&server, merge(minutely("bad"), json!({"cron": schedule})), "CRON-03: `cron` MUST be valid");
    }
    refuse(&server, json!({"name": "bad", "type": "a.b"}), "2.2: `cron` is required");
}

#[test]
fn cron_04_the_type_is_dot_namespaced() {
    let server = Server::new();
    for (index, kind) in
        ["report.generate", "cleanup", "a.b.c", "a.b_c2", "retry.test.a-b"].into_iter().enumerate()
    {
        server.register(merge(minutely(&format!("ok-{index}")), json!({"type": kind})));
    }
    for kind in
        ["", "Report.Generate", "report generate", "1report.x", "a@b!", ".a", "a.", "a..b", "a.1b", "a/b"]
    {
        refuse(
            &server,
            merge(minutely("bad"), json!({"type": kind})),
            "CRON-04: `type` MUST be dot-namespaced",
        );
    }
    for kind in [json!(null), json!(1), json!(["a"])] {
        refuse(&server, merge(minutely("bad"), json!({"type": kind})), "CRON-04: `type` is a string");
    }
    refuse(&server, json!({"name": "bad", "cron": "* * * * *"}), "2.2: `type` is required");
}

#[test]
fn cron_05_args_are_a_json_array() {
    let server = Server::new();
    for args in [json!({"a": 1}), json!("a"), json!(1), json!(true)] {
        refuse(
            &server,
            merge(minutely("bad"), json!({"args": args})),
            "CRON-05: `args` MUST be a JSON array",
        );
    }
    let args = json!(["text", 42, 3.25, true, null, [1, [2]], {"deep": {"er": []}}]);
    let job = server.register(merge(minutely("mixed"), json!({"args": args})));
    assert_eq!(job["args"], args, "CRON-05: JSON-native types are kept");
    assert_eq!(server.register(minutely("none"))["args"], json!([]), "2.2: `args` defaults to []");

    server.clock("2026-02-12T20:16:00Z");
    assert_eq!(server.fetch_one("mixed")["args"], args, "2.2: args are passed to each triggered job");
}

#[test]
fn cron_06_system_managed_fields_are_ignored_if_a_client_sends_them() {
    let server = Server::new();
    let system = json!({
        "last_run_at": "2020-01-01T00:00:00Z", "next_run_at": "2020-01-01T00:00:00Z",
        "run_count": 99, "created_at": "2020-01-01T00:00:00Z", "status": "broken",
    });
    let nonsense = json!({"last_run_at": 1, "next_run_at": {}, "run_count": "many", "created_at": [null]});
    for (name, fields) in [("values", system), ("nonsense", nonsense)] {
        let job = server.register(merge(minutely(name), fields.clone()));
        let why = "CRON-06: system-managed fields MUST be ignored";
        assert_eq!(job["last_run_at"], Value::Null, "{why}");
        assert_eq!(job["run_count"], 0, "{why}");
        assert_time(&job["created_at"], START, why);
        assert_time(&job["next_run_at"], "2026-02-12T20:16:00Z", why);
        assert_eq!(server.update(merge(minutely(name), fields))["run_count"], 0, "{why}, on update too");
    }
    let patched = server.patch("/ojs/v1/cron/values", json!({"run_count": 7, "description": "d"}));
    assert_eq!(patched.is(200, "CRON-06: on PATCH too")["cron_job"]["run_count"], 0, "CRON-06: on PATCH too");
}

#[test]
fn cron_07_next_run_at_is_computed_on_registration_and_after_every_trigger() {
    let server = Server::new();
    let why = "CRON-07: next_run_at MUST be computed on registration and after every trigger";
    let job = server.register(cron("quarter", "*/15 * * * *", json!({})));
    assert_time(&job["next_run_at"], "2026-02-12T20:30:00Z", why);
    for (now, next) in [("20:30:00", "20:45:00"), ("20:45:00", "21:00:00"), ("21:00:00", "21:15:00")] {
        server.clock(&format!("2026-02-12T{now}Z"));
        assert_time(&server.cron("quarter")["next_run_at"], &format!("2026-02-12T{next}Z"), why);
    }
    assert_eq!(server.cron("quarter")["run_count"], 3, "2.2: run_count is the number of triggers");
    assert_time(&server.cron("quarter")["last_run_at"], "2026-02-12T21:00:00Z", "2.2: last_run_at");
}

#[test]
fn cron_08_five_and_six_fields_are_told_apart_by_counting_tokens() {
    let server = Server::new();
    let cases = [
        ("*/10 * * * *", "2026-02-12T20:20:00Z"),
        ("*/10 * * * * *", "2026-02-12T20:15:30Z"),
        ("30 16 20 * * *", "2026-02-12T20:16:30Z"),
        ("16 20 * * *", "2026-02-12T20:16:00Z"),
        ("0  9\t*  * *", "2026-02-13T09:00:00Z"),
        ("  0 9 * * *  ", "2026-02-13T09:00:00Z"),
    ];
    next_runs(&server, "UTC", &cases, "CRON-08: by the number of whitespace-separated tokens");
    for expression in ["*", "* *", "* * *", "* * * *", "* * * * * * *", "0 0 0 0 0 0 0"] {
        refuse(&server, cron("bad", expression, json!({})), "CRON-08: five or six fields, nothing else");
    }
}

#[test]
fn cron_09_star_list_range_and_step_work_in_all_fields() {
    let cases = [
        // Minutes.
        ("* * * * *", "2026-02-12T20:16:00Z"),
        ("1,15 * * * *", "2026-02-12T21:01:00Z"),
        ("16-18 * * * *", "2026-02-12T20:16:00Z"),
        ("*/20 * * * *", "2026-02-12T20:20:00Z"),
        ("10-50/20 * * * *", "2026-02-12T20:30:00Z"),
        ("1-5,40-45/5,59 * * * *", "2026-02-12T20:40:00Z"),
        // Hours.
        ("0 6,21 * * *", "2026-02-12T21:00:00Z"),
        ("0 22-23 * * *", "2026-02-12T22:00:00Z"),
        ("0 */5 * * *", "2026-02-13T00:00:00Z"),
        ("0 1-23/11 * * *", "2026-02-12T23:00:00Z"),
        // Days of the month.
        ("0 0 1,15 * *", "2026-02-15T00:00:00Z"),
        ("0 0 13-14 * *", "2026-02-13T00:00:00Z"),
        ("0 0 */10 * *", "2026-02-21T00:00:00Z"),
        ("0 0 2-30/7 * *", "2026-02-16T00:00:00Z"),
        // Months.
        ("0 0 1 1,3 *", "2026-03-01T00:00:00Z"),
        ("0 0 1 4-6 *", "2026-04-01T00:00:00Z"),
        ("0 0 1 */5 *", "2026-06-01T00:00:00Z"),
        ("0 0 1 2-12/3 *", "2026-05-01T00:00:00Z"),
        // Days of the week; the 12th is a Thursday.
        ("0 0 * * 1,5", "2026-02-13T00:00:00Z"),
        ("0 0 * * 6-7", "2026-02-14T00:00:00Z"),
        ("0 0 * * */3", "2026-02-14T00:00:00Z"),
        ("0 0 * * 1-3/2", "2026-02-16T00:00:00Z"),
        // Seconds.
        ("5,40 * * * * *", "2026-02-12T20:15:40Z"),
        ("30-35 * * * * *", "2026-02-12T20:15:30Z"),
        ("*/25 * * * * *", "2026-02-12T20:15:25Z"),
        ("10-50/20 * * * * *", "2026-02-12T20:15:30Z"),
        // Both days restricted: either may match (decision 2).
        ("0 0 20 * 6", "2026-02-14T00:00:00Z"),
        ("0 0 13 * 1", "2026-02-13T00:00:00Z"),
    ];
    next_runs(
        &Server::new(),
        "UTC",
        &cases,
        "CRON-09: `*`, `,`, `-` and `/` MUST be supported in all fields",
    );
}

#[test]
fn cron_10_names_of_months_and_weekdays_are_accepted_in_any_case() {
    let months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let server = Server::new();
    let next = |name: &str, expression: String| {
        let job = server.register(cron(name, &expression, json!({})));
        text(&job["next_run_at"]).to_owned()
    };
    let spellings: [fn(&str) -> String; 3] =
        [str::to_owned, str::to_lowercase, |word| word[..1].to_owned() + &word[1..].to_lowercase()];
    for (spelling, spell) in spellings.into_iter().enumerate() {
        for (index, month) in months.into_iter().enumerate() {
            let named = next(&format!("m{spelling}-{index}"), format!("0 0 1 {} *", spell(month)));
            let number = next(&format!("mn{spelling}-{index}"), format!("0 0 1 {} *", index + 1));
            assert_eq!(named, number, "CRON-10: {} is month {}", spell(month), index + 1);
        }
        for (index, day) in weekdays.into_iter().enumerate() {
            let named = next(&format!("d{spelling}-{index}"), format!("0 0 * * {}", spell(day)));
            let number = next(&format!("dn{spelling}-{index}"), format!("0 0 * * {index}"));
            assert_eq!(named, number, "CRON-10: {} is day {index}", spell(day));
        }
    }
    let cases = [
        ("0 0 * * 7", "2026-02-15T00:00:00Z"),
        ("0 0 * * 0", "2026-02-15T00:00:00Z"),
        ("0 0 * * Mon-Fri", "2026-02-13T00:00:00Z"),
        ("0 0 * * mon,WED", "2026-02-16T00:00:00Z"),
        ("0 0 1 APR-jun *", "2026-04-01T00:00:00Z"),
    ];
    next_runs(&server, "UTC", &cases, "CRON-10: both 0 and 7 are Sunday, and names make lists and ranges");
}

#[test]
fn cron_11_invalid_expressions_are_rejected_at_registration() {
    let server = Server::new();
    let invalid = [
        "",
        "   ",
        "not a valid cron",
        "99 25 32 13 8",
        "60 * * * *",
        "* 24 * * *",
        "* * 32 * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * 0 *",
        "* * * * 8",
        "60 * * * * *",
        "-1 * * * *",
        "*/0 * * * *",
        "5/0 * * * *",
        "*/x * * * *",
        "*/ * * * *",
        "*/-1 * * * *",
        "1- * * * *",
        "-5 * * * *",
        "1-2-3 * * * *",
        "30-10 * * * *",
        "1,,2 * * * *",
        ",1 * * * *",
        "1, * * * *",
        "a * * * *",
        "* * * JANUARY *",
        "* * * * FUNDAY",
        "1.5 * * * *",
        "** * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 * * 5#6",
        "0 0 * * 5#0",
        "@",
        "@fortnightly",
        "@reboot",
        "@every",
        "@every 0s",
        "@every -5m",
        "@every 5",
        "@every five minutes",
        "@every 1h 30m",
        "@daily 5",
        "0 9 * * *; rm",
        "０ ９ * * *",
    ];
    for expression in invalid {
        let why = format!("CRON-11: `{expression}` MUST be rejected with 400 invalid_request");
        let error = refuse(&server, cron("bad", expression, json!({})), &why);
        assert!(!text(&error["message"]).is_empty(), "{why}, and say why");
    }
    let long = format!("{} * * * *", ["1"; 5_000].join(","));
    refuse(
        &server,
        cron("bad", &long, json!({})),
        "CRON-11: an endless expression is refused, not evaluated",
    );
}

#[test]
fn cron_11_a_refused_update_leaves_the_cron_job_as_it_was() {
    let server = Server::new();
    let before = server.register(minutely("kept"));
    let bad = server.post("/ojs/v1/cron", cron("kept", "61 * * * *", json!({"description": "new"})));
    bad.refused(400, "invalid_request", "CRON-11: on update too");
    let bad = server.patch("/ojs/v1/cron/kept", json!({"cron": "61 * * * *", "description": "new"}));
    bad.refused(400, "invalid_request", "CRON-11: on PATCH too");
    assert_eq!(server.cron("kept"), before, "3.5: what is refused changes nothing");
}

#[test]
fn section_3_5_a_day_of_some_months_only_warns_and_does_not_fire_in_the_others() {
    let server = Server::new();
    let answer = server.post("/ojs/v1/cron", cron("day-31", "0 0 31 * *", json!({})));
    let answer =
        answer.is(201, "3.5: MUST NOT reject day-of-month values that are valid only in some months");
    assert!(!list(&answer["warnings"]).is_empty(), "3.5: SHOULD warn: {answer}");
    assert_time(&answer["cron_job"]["next_run_at"], "2026-03-31T00:00:00Z", "3.5: not in February");
    let plain = server.post("/ojs/v1/cron", cron("day-28", "0 0 28 * *", json!({}))).is(201, "3.5");
    assert!(plain.get("warnings").is_none_or(|warnings| list(warnings).is_empty()), "28 is in every month");
}

#[test]
fn cron_12_the_standard_special_expressions_are_supported() {
    let server = Server::new();
    let cases = [
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
        ("@monthly", "2026-03-01T00:00:00Z"),
        ("@weekly", "2026-02-15T00:00:00Z"),
        ("@daily", "2026-02-13T00:00:00Z"),
        ("@midnight", "2026-02-13T00:00:00Z"),
        ("@hourly", "2026-02-12T21:00:00Z"),
    ];
    next_runs(&server, "UTC", &cases, "CRON-12: special expressions MUST be supported");
    let local = [("@daily", "2026-02-13T05:00:00Z"), ("@yearly", "2027-01-01T05:00:00Z")];
    next_runs(&server, "America/New_York", &local, "CRON-12: in the job's own zone");
    for job in list(&server.get("/ojs/v1/cron").is(200, "the list")["cron_jobs"]) {
        assert!(text(&job["cron"]).starts_with('@'), "CRON-12: echoed unexpanded: {job}");
    }
}

#[test]
fn cron_13_time_zones_are_iana_names() {
    let server = Server::new();
    for (zone, next) in [
        ("UTC", "2026-02-13T09:00:00Z"),
        ("Etc/UTC", "2026-02-13T09:00:00Z"),
        ("America/New_York", "2026-02-13T14:00:00Z"),
        ("America/Los_Angeles", "2026-02-13T17:00:00Z"),
        ("Europe/London", "2026-02-13T09:00:00Z"),
        ("Europe/Berlin", "2026-02-13T08:00:00Z"),
        ("Asia/Tokyo", "2026-02-13T00:00:00Z"),
        ("Asia/Kolkata", "2026-02-13T03:30:00Z"),
        ("Australia/Sydney", "2026-02-12T22:00:00Z"),
        ("Pacific/Auckland", "2026-02-13T20:00:00Z"),
        ("America/Argentina/Buenos_Aires", "2026-02-13T12:00:00Z"),
    ] {
        next_runs(&server, zone, &[("0 9 * * *", next)], "CRON-13: nine o'clock local time");
    }
    let strangers = [
        "",
        " ",
        "Mars/Olympus",
        "America/Nowhere",
        "america/new_york",
        "New York",
        "Europe",
        "Europe/",
        "localtime",
        "posixrules",
        "posix/Europe/London",
        "right/Europe/London",
        "../etc/passwd",
        "/usr/share/zoneinfo/UTC",
        "America/New_York ",
        "Europe/London\u{0}",
        "Europe/../Europe/London",
    ];
    for zone in strangers {
        let definition = cron("bad", "0 9 * * *", json!({"timezone": zone}));
        let error = refuse(&server, definition, &format!("CRON-13: `{zone}` is not an IANA name"));
        assert!(text(&error["message"]).contains("zone"), "the message names the field: {error}");
    }
    refuse(&server, cron("bad", "0 9 * * *", json!({"timezone": 5})), "CRON-13: a zone is a string");
}

#[test]
fn cron_14_offsets_and_abbreviations_are_not_time_zones() {
    let server = Server::new();
    let zones = [
        "+05:00",
        "-08:00",
        "+0530",
        "UTC+5",
        "UTC-5",
        "GMT+1",
        "EST",
        "PST",
        "CST",
        "MST",
        "HST",
        "EDT",
        "EST5EDT",
        "PST8PDT",
        "CET",
        "EET",
        "MET",
        "WET",
        "GMT",
        "Z",
        "Etc/GMT+5",
        "Etc/GMT-14",
        "Etc/GMT",
    ];
    for zone in zones {
        let definition = cron("bad", "0 9 * * *", json!({"timezone": zone}));
        refuse(&server, definition, &format!("CRON-14: `{zone}` MUST NOT be accepted"));
        let preview = server.post("/kron/v1/cron/preview", json!({"cron": "0 9 * * *", "timezone": zone}));
        preview.refused(400, "invalid_request", &format!("CRON-14: `{zone}`, in a preview neither"));
    }
}

#[test]
fn cron_15_the_default_time_zone_is_utc() {
    let job = Server::new().register(cron("plain", "0 9 * * *", json!({})));
    assert_eq!(job["timezone"], "UTC", "CRON-15: the default MUST be UTC");
    assert_time(&job["next_run_at"], "2026-02-13T09:00:00Z", "CRON-15: and is what counts");
}

#[test]
fn cron_s01_last_nearest_weekday_and_nth_are_supported() {
    let server = Server::new();
    let cases = [
        ("0 0 L * *", "2026-02-28T00:00:00Z"),
        ("0 0 15W * *", "2026-02-16T00:00:00Z"),
        ("0 0 14W * *", "2026-02-13T00:00:00Z"),
        ("0 0 1W * *", "2026-03-02T00:00:00Z"),
        ("0 0 * * 5#3", "2026-02-20T00:00:00Z"),
        ("0 0 * * FRI#3", "2026-02-20T00:00:00Z"),
        ("0 0 * * 4#5", "2026-04-30T00:00:00Z"),
        ("0 0 * * 5L", "2026-02-27T00:00:00Z"),
        ("0 0 0 L * *", "2026-02-28T00:00:00Z"),
    ];
    next_runs(&server, "UTC", &cases, "CRON-S01: `L`, `W` and `#` SHOULD be supported");
    let billing = [("0 23 L * *", "2026-03-01T05:00:00Z")];
    next_runs(&server, "America/Chicago", &billing, "10.5: 11 PM Central on the last day of the month");
}

#[test]
fn cron_s02_every_takes_go_durations_counted_from_registration() {
    let server = Server::new();
    let cases = [
        ("@every 45s", "2026-02-12T20:16:05Z"),
        ("@every 30m", "2026-02-12T20:45:20Z"),
        ("@every 2h", "2026-02-12T22:15:20Z"),
        ("@every 1h30m", "2026-02-12T21:45:20Z"),
        ("@every 2h45m30s", "2026-02-12T23:00:50Z"),
        ("@every 5000ms", "2026-02-12T20:15:25Z"),
    ];
    next_runs(
        &server,
        "UTC",
        &cases,
        "CRON-S02, 4.1: anchored at registration, the first one interval later",
    );
    for interval in ["500ms", "1500ms"] {
        let answer = server
            .post("/ojs/v1/cron", cron(&format!("e-{interval}"), &format!("@every {interval}"), json!({})));
        let answer = answer.is(201, "4.1: milliseconds are part of the grammar");
        assert!(
            !list(&answer["warnings"]).is_empty(),
            "decision 5: beside the second grid, with a warning: {answer}"
        );
    }
}

#[test]
fn cron_s03_the_time_zone_database_is_a_recent_one() {
    let server = Server::frozen_at("2026-06-30T00:00:00Z");
    for (zone, next, since) in [
        ("Europe/Kyiv", "2026-06-30T06:00:00Z", "2022b has the name"),
        ("America/Mexico_City", "2026-06-30T15:00:00Z", "2022f has no summer time"),
        ("America/Ciudad_Juarez", "2026-06-30T15:00:00Z", "2022g has the zone"),
        ("Asia/Almaty", "2026-06-30T04:00:00Z", "2024a has UTC+5"),
        ("America/Asuncion", "2026-06-30T12:00:00Z", "2025a has UTC-3 for the whole year"),
    ] {
        next_runs(&server, zone, &[("0 9 * * *", next)], &format!("CRON-S03: {zone}: {since}"));
    }
}

#[test]
fn cron_s06_the_list_can_be_filtered_by_enabled() {
    let server = Server::new();
    for name in ["on-1", "on-2", "off-1"] {
        server.register(merge(minutely(name), json!({"enabled": !name.starts_with("off")})));
    }
    let names = |query: &str| -> Vec<String> {
        let all = server.get(&format!("/ojs/v1/cron{query}")).is(200, "8.2: the list");
        let names: Vec<String> =
            list(&all["cron_jobs"]).iter().map(|job| text(&job["name"]).to_owned()).collect();
        assert_eq!(all["count"], names.len(), "8.2: `count` is what was returned");
        names
    };
    assert_eq!(names("?enabled=true"), ["on-1", "on-2"], "CRON-S06: filtering by enabled");
    assert_eq!(names("?enabled=false"), ["off-1"], "CRON-S06: filtering by enabled");
    assert_eq!(names("").len(), 3, "8.2: without a filter, all");
    server.get("/ojs/v1/cron?enabled=maybe").refused(400, "invalid_request", "1.5: a bad query is refused");
}
