//! The wire itself: headers, media types, bodies that no client should send, and errors that people can read.

use serde_json::{Value, json};

use super::server::{MEDIA, Server, cron, is_uuid_v7, list, merge, text};

/// Everything that takes a body.
const TAKES_A_BODY: [(&str, &str); 7] = [
    ("POST", "/ojs/v1/jobs"),
    ("POST", "/ojs/v1/workers/fetch"),
    ("POST", "/ojs/v1/workers/ack"),
    ("POST", "/ojs/v1/workers/nack"),
    ("POST", "/ojs/v1/workers/heartbeat"),
    ("POST", "/ojs/v1/cron"),
    ("PATCH", "/ojs/v1/cron/job"),
];

const JOB: &[u8] = br#"{"type":"a.b","args":[]}"#;

fn with_cron() -> Server {
    let server = Server::new();
    server.register(cron("job", "@daily", json!({})));
    server
}

/// A request as bytes, for what a well-behaved client would not send.
fn request(server: &Server, head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = head.replace('\n', "\r\n").into_bytes();
    let (host, length) = (server.host(), body.len());
    bytes
        .extend(format!("\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n").bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn every_answer_has_its_headers_whoever_gives_it() {
    // What is checked for every answer of every test is in `Answer::check`; here are those of the framework.
    let server = Server::new();
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/nothing"),
        ("GET", "/ojs/v1"),
        ("GET", "/ojs/v1/nothing"),
        ("POST", "/ojs/v1/nothing"),
        ("PUT", "/ojs/v1/jobs"),
        ("PATCH", "/ojs/v1/jobs"),
        ("DELETE", "/ojs/v1/workers/fetch"),
        ("GET", "/ojs/v1/workers/fetch"),
        ("POST", "/ojs/manifest"),
        ("DELETE", "/ojs/v1/cron"),
        ("PUT", "/ojs/v1/cron/job"),
        ("ASSERT", "/"),
        ("ASSERT", "/ojs/v1/jobs"),
        ("TRACE", "/ojs/v1/jobs"),
        ("GET", "/ojs/v1/cron/%ZZ"),
        ("GET", "/ojs/v1/cron/%FF%FE"),
        ("GET", "/ojs/v1/cron/job/extra"),
        ("GET", "/ojs/../etc/passwd"),
        ("GET", "/kron/v1/nothing"),
    ] {
        let answer = server.send(method, path, &[], b"");
        let refused = matches!(answer.status, 400 | 404 | 405);
        assert!(
            refused,
            "1.1, L0-OPS-008: {method} {path} gets a well-formed answer: {} {}",
            answer.status, answer.text
        );
        assert!(!answer.text.is_empty(), "1.4: {method} {path} is an error with a body");
    }
    let answer = server.send("POST", "/ojs/v1/nothing", &[], JOB);
    answer.refused(404, "not_found", "1.5: an unknown path");
    assert!(server.send("HEAD", "/ojs/v1/health", &[], b"").text.is_empty(), "HEAD has no body");
    let options = server.send("OPTIONS", "/ojs/v1/jobs", &[], b"");
    assert!(options.status < 500, "OPTIONS is answered");
}

#[test]
fn the_media_type_is_the_same_whatever_a_client_accepts() {
    let server = Server::new();
    for accept in ["text/html", "application/json", "*/*", MEDIA, "image/png;q=1"] {
        let answer = server.send("GET", "/ojs/v1/health", &[("Accept", accept)], b"");
        assert_eq!(answer.header("Content-Type"), MEDIA, "1.1: whatever Accept says ({accept})");
    }
}

#[test]
fn requests_are_named_and_the_name_comes_back() {
    let server = Server::new();
    for path in ["/ojs/v1/health", "/ojs/v1/jobs/nobody", "/nothing", "/ojs/manifest"] {
        let answer = server.send("GET", path, &[("X-Request-ID", "mine-42")], b"");
        assert_eq!(answer.header("X-Request-Id"), "mine-42", "1.2: echo the client's value ({path})");
        let answer = server.get(path);
        let id = answer.header("X-Request-Id");
        assert!(is_uuid_v7(id.strip_prefix("req_").unwrap_or_default()), "1.2: req_ + UUIDv7 ({path}): {id}");
        assert_ne!(server.get(path).header("X-Request-Id"), id, "1.2: each its own");
    }
}

#[test]
fn another_version_of_the_protocol_is_unsupported() {
    let server = Server::new();
    for version in ["1.0", "1", "1.0.0", "1.0.0-rc.1"] {
        server.send("GET", "/ojs/v1/health", &[("OJS-Version", version)], b"").is(200, "1.2: to be kind");
    }
    for version in ["2.0", "0.9", "one"] {
        let answer = server.send("POST", "/ojs/v1/jobs", &[("OJS-Version", version)], JOB);
        answer.refused(422, "unsupported", &format!("1.2: OJS-Version {version}"));
    }
}

#[test]
fn request_bodies_have_one_of_two_media_types() {
    let server = Server::new();
    for media in [
        MEDIA,
        "application/json",
        "application/json; charset=utf-8",
        "application/openjobspec+json; charset=utf-8; v=1",
        "Application/JSON",
    ] {
        server
            .send("POST", "/ojs/v1/jobs", &[("Content-Type", media)], JOB)
            .is(201, &format!("1.1: {media}"));
    }
    for media in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "nonsense",
    ] {
        for (method, path) in TAKES_A_BODY {
            let answer = server.send(method, path, &[("Content-Type", media)], JOB);
            answer.refused(
                400,
                "invalid_request",
                &format!("1.1: any other declared type: {media} at {path}"),
            );
        }
    }
    let bare = server.raw(&request(&server, "POST /ojs/v1/jobs HTTP/1.1", JOB));
    assert!(bare.starts_with("HTTP/1.1 201"), "1.1: no Content-Type: let it through: {bare}");
    let get = server.send("GET", "/ojs/v1/health", &[("Content-Type", "text/plain")], b"");
    get.is(200, "1.1: only on a request with a body");
}

#[test]
fn what_is_not_a_json_object_is_an_invalid_payload() {
    let server = with_cron();
    let deep = [&b"{\"type\":\"a.b\",\"args\":"[..], &[b'['; 100_000], &[b']'; 100_000], b"}"].concat();
    let bodies: [&[u8]; 15] = [
        b"",
        b" ",
        b"not json",
        b"{",
        b"{\"type\":\"a.b\",\"args\":[]",
        b"{\"type\":\"a.b\",\"args\":[]} trailing",
        b"{'type':'a.b'}",
        b"[]",
        b"\"text\"",
        b"5",
        b"null",
        b"{\"type\":\"a\xFF\xFE\",\"args\":[]}",
        b"{\"type\":\"a.b\",\"args\":[NaN]}",
        b"\xEF\xBB\xBF",
        &[b'['; 100_000],
    ];
    for (method, path) in TAKES_A_BODY {
        for body in bodies {
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]);
            let answer = server.send(method, path, &[("Content-Type", MEDIA)], body);
            answer.refused(
                400,
                "invalid_payload",
                &format!("1.5, L0-OPS-015b: {method} {path} with `{shown}`"),
            );
        }
        let answer = server.send(method, path, &[("Content-Type", MEDIA)], &deep);
        assert_eq!(answer.status, 400, "2.1: nesting is bounded, and nothing falls over: {}", answer.text);
    }
    let twice = br#"{"type":"a.b","args":[1],"type":"c.d","args":[2]}"#;
    let job = server.send("POST", "/ojs/v1/jobs", &[("Content-Type", MEDIA)], twice).is(201, "1.3");
    assert_eq!(
        (&job["job"]["type"], &job["job"]["args"]),
        (&json!("c.d"), &json!([2])),
        "1.3: the last one wins"
    );
}

#[test]
fn a_body_of_a_mebibyte_is_taken_and_a_larger_one_is_413() {
    let server = Server::new();
    let sized = |bytes: usize| json!({"type": "a.b", "args": ["x".repeat(bytes)]}).to_string();
    let fits = sized((1 << 20) - 64);
    server
        .send("POST", "/ojs/v1/jobs", &[("Content-Type", MEDIA)], fits.as_bytes())
        .is(201, "1.5: at least 1 MiB");

    let large = sized(5 << 18);
    for path in ["/ojs/v1/jobs", "/ojs/v1/cron", "/ojs/v1/workers/ack"] {
        let head = format!("POST {path} HTTP/1.1\nContent-Type: {MEDIA}");
        let answer = server.raw(&request(&server, &head, large.as_bytes()));
        assert!(answer.starts_with("HTTP/1.1 413"), "1.5: {path}: 413, not {answer:.300}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        assert!(head.contains("ojs-version: 1.0"), "trap 3: OJS-Version on 413 too: {head}");
        assert!(
            head.contains(&format!("content-type: {MEDIA}\r\n")),
            "1.1: the media type on 413 too: {head}"
        );
        let error = &serde_json::from_str::<Value>(body).expect("1.4: a JSON body")["error"];
        assert_eq!(
            (&error["code"], &error["retryable"]),
            (&json!("envelope_too_large"), &json!(false)),
            "1.5: {error}"
        );
        assert!(error["hint"].is_string() && error["docs_url"].is_string(), "1.4: {error}");
    }

    // Nobody says in advance how large it will be.
    let mut chunked = format!(
        "POST /ojs/v1/jobs HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: {MEDIA}\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.host()
    )
    .into_bytes();
    for chunk in large.as_bytes().chunks(65_536) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let answer = server.raw(&chunked);
    assert!(answer.starts_with("HTTP/1.1 413"), "1.5: chunked: 413, not {answer:.300}");
    server.get("/ojs/v1/health").is(200, "and it lives");
}

#[test]
fn garbage_on_the_wire_ends_nothing() {
    let server = Server::new();
    let header = format!("GET /ojs/v1/health HTTP/1.1\nX-Large: {}", "x".repeat(1 << 20));
    let long = format!("GET /{} HTTP/1.1", "x".repeat(1 << 20));
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: nonsense\r\n\r\n".to_vec(),
        request(&server, &header, b""),
        request(&server, &long, b""),
    ] {
        let answer = server.raw(&bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "refused or closed: {answer:.200}");
    }
    server.get("/ojs/v1/health").is(200, "and it lives");
}

#[test]
fn without_test_mode_there_are_no_test_hooks() {
    let server = super::server::Home::new().start(&[]);
    server.post("/ojs/v1/admin/reset", json!({})).refused(
        404,
        "not_found",
        "4.16: reset is for test mode only",
    );
    server.get("/kron/v1/test/clock").refused(404, "not_found", "the clock is for test mode only");
    let set = json!({"now": "2026-01-01T00:00:00Z", "running": false});
    server.put("/kron/v1/test/clock", set).refused(404, "not_found", "the clock is for test mode only");
    let id = server.push_to("quiet", json!({"metadata": {"test_directive": "quiet"}}));
    server.fetch_as("w-1", "quiet");
    assert_eq!(server.heartbeat("w-1", &[&id])["state"], "running", "4.10: gated behind a flag");
}

#[test]
fn reset_clears_everything() {
    let server = Server::new();
    let id = server.push_to("q", json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}));
    server.fetch_as("w-1", "q");
    server.nack(&id).is(200, "nack");
    server.push_to("q", json!({"scheduled_at": "+PT5S"}));
    server.register(cron("job", "* * * * *", json!({})));
    server.pass(60);
    server.send("POST", "/ojs/v1/admin/reset", &[], b"").is(200, "trap 1: reset");
    server.get(&format!("/ojs/v1/jobs/{id}")).refused(404, "not_found", "trap 1: jobs");
    server.get("/ojs/v1/cron/job").refused(404, "not_found", "trap 1: cron jobs");
    for (path, member) in [
        ("/ojs/v1/cron", "cron_jobs"),
        ("/ojs/v1/dead-letter", "jobs"),
        ("/ojs/v1/queues", "queues"),
        ("/kron/v1/jobs", "jobs"),
        ("/ojs/v1/events", "events"),
    ] {
        let all = server.get(path).is(200, path);
        assert!(list(&all[member]).is_empty(), "trap 1: {path} is empty: {all}");
    }
    server.pass(120);
    assert!(server.events("*").is_empty(), "trap 1: timers included");
    server.register(cron("job", "* * * * *", json!({})));
}

#[test]
fn a_clock_that_cannot_be_is_refused() {
    let server = Server::new();
    for body in [json!({"now": "noon"}), json!({"now": 5}), json!({"now": "2026-01-01T00:00:00"})] {
        server.put("/kron/v1/test/clock", body).refused(400, "invalid_request", "now is a stamp");
    }
    let clock = server.get("/kron/v1/test/clock").is(200, "the clock");
    assert_eq!(clock["running"], false, "it is frozen");
    server
        .put("/kron/v1/test/clock", json!({"now": "2026-01-01T00:00:00Z", "running": true}))
        .is(200, "it runs");
    let clock = server.get("/kron/v1/test/clock").is(200, "the clock");
    assert_eq!(clock["running"], true, "it runs");
    assert!(text(&clock["now"]).starts_with("2026-01-01T00:00:"), "from there: {clock}");
}

#[test]
fn errors_name_the_field_that_is_wrong() {
    let server = Server::new();
    let job = json!({"type": "a.b", "args": []});
    for (field, more) in [
        ("type", json!({"type": "A B"})),
        ("args", json!({"args": {}})),
        ("id", json!({"id": "x"})),
        ("queue", json!({"options": {"queue": "A"}})),
        ("priority", json!({"options": {"priority": 101}})),
        ("scheduled_at", json!({"options": {"scheduled_at": "x"}})),
        ("expires_at", json!({"options": {"expires_at": "x"}})),
    ] {
        let error =
            server.post("/ojs/v1/jobs", merge(job.clone(), more)).refused(400, "invalid_request", field);
        assert!(
            text(&error["message"]).contains(field),
            "1.4: people are told which field: {field}: {error}"
        );
    }
}

#[test]
fn what_an_error_points_to_is_there() {
    let server = Server::new();
    let refusal = server.get("/ojs/v1/jobs/nobody").refused(404, "not_found", "1.4");
    let place = text(&refusal["docs_url"]).split('#').next().unwrap().to_owned();
    let catalogue = server.get(&place).is(200, "the link leads somewhere");
    let codes: Vec<&str> =
        catalogue["errors"].as_array().unwrap().iter().map(|it| text(&it["code"])).collect();
    assert!(codes.contains(&text(&refusal["code"])), "{codes:?}");
}
