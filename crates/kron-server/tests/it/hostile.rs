//! Clients that are slow, silent, large or lying, and a server that goes on as if they were not there.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::server::{Home, MEDIA, Server, pause};

/// So often is a byte sent, and so often is it asked again.
const STEP_MS: u64 = 100;

/// The most steps that anybody waits.
const STEPS_MAX: usize = 600;

/// A server with limits that a test can wait for.
fn with_limits(limits: &str) -> Server {
    let home = Home::new();
    let settings = home.settings(&format!("[limits]\n{limits}"));
    home.start(&["--test-mode", "--config", &settings])
}

/// What has come by now; none once the other side has ended the connection.
fn heard(stream: &mut TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_millis(STEP_MS))).unwrap();
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes) {
        Ok(0) => None,
        Ok(count) => Some(String::from_utf8_lossy(&bytes[..count]).into_owned()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Some(String::new())
        }
        Err(_) => None,
    }
}

/// Sends a byte at a time until the other side ends it, and returns what it said.
fn trickle(stream: &mut TcpStream, byte: u8) -> String {
    let mut said = String::new();
    for _ in 0..STEPS_MAX {
        // It may be gone, which the next read finds.
        drop(stream.write_all(&[byte]));
        match heard(stream) {
            None => return said,
            Some(more) => said.push_str(&more),
        }
    }
    panic!("a client that trickles is not cut off; it heard {said:?}");
}

fn is_ended(stream: &mut TcpStream) -> bool {
    (0..STEPS_MAX).any(|_| heard(stream).is_none())
}

fn is_healthy(server: &Server) -> bool {
    let request =
        format!("GET /ojs/v1/health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host());
    server.raw(request.as_bytes()).starts_with("HTTP/1.1 200")
}

#[test]
fn whoever_is_slow_or_silent_is_cut_off() {
    // With the usual time between two requests, nothing else cuts a slow head off before this test gives up.
    let server = with_limits("first_byte = \"1s\"\nhead = \"1s\"\nbody = \"1s\"");
    let mut silent = server.connect();
    let mut slow_head = server.connect();
    write!(slow_head, "GET /ojs/v1/health HTTP/1.1\r\nHost: {}\r\nX-Slow: ", server.host()).unwrap();
    assert_eq!(trickle(&mut slow_head, b'x'), "", "a head that never ends is not answered");
    assert!(is_ended(&mut silent), "nor is silence");

    let mut slow_body = server.connect();
    write!(
        slow_body,
        "POST /ojs/v1/jobs HTTP/1.1\r\nHost: {}\r\nContent-Type: {MEDIA}\r\nContent-Length: 100000\r\n\r\n{{\"type\":\"",
        server.host()
    )
    .unwrap();
    let said = trickle(&mut slow_body, b'x');
    assert!(said.starts_with("HTTP/1.1 408"), "a body that never ends is told so: {said}");
    assert!(said.contains("expected the whole body within 1 s"), "{said}");

    // Between two requests, too.
    let server = with_limits("idle = \"1s\"");
    let mut idle = server.connect();
    write!(idle, "GET /ojs/v1/health HTTP/1.1\r\nHost: {}\r\n\r\n", server.host()).unwrap();
    assert!(is_ended(&mut idle));
    // Whoever waits for an answer is not slow.
    let body = json!({"queues": ["none"], "wait_ms": 3_000});
    server
        .post("/ojs/v1/workers/fetch", body)
        .is(200, "a fetch waits for longer than a client may be silent");
}

#[test]
fn whoever_takes_nothing_of_its_answers_is_cut_off() {
    let server = with_limits("write = \"1s\"");
    let mut greedy = server.connect();
    greedy.set_write_timeout(Some(Duration::from_millis(STEP_MS))).unwrap();
    let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", server.host()).repeat(100);
    let cut_off = (0..STEPS_MAX).any(|_| {
        let written = greedy.write(request.as_bytes()).map_err(|error| error.kind());
        pause(STEP_MS);
        !matches!(written, Ok(_) | Err(ErrorKind::WouldBlock | ErrorKind::TimedOut))
    });
    assert!(cut_off, "a client that never reads is cut off");
    assert!(is_healthy(&server));
}

#[test]
fn silent_connections_leave_room_to_ask_how_the_server_does() {
    let server = with_limits("connections_per_address = 20\nfirst_byte = \"10m\"");
    let silent: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    for _ in 0..8 {
        assert!(is_healthy(&server), "its health can be asked, however many are silent");
    }
    let request =
        |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host());
    let work = server.raw(request("/ojs/v1/queues").as_bytes());
    assert!(work.starts_with("HTTP/1.1 503"), "work has to wait: {work}");
    assert!(work.contains("there are too many connections") && work.contains("retry-after: 1"), "{work}");

    // Those who are silent even then are turned away, at once or after a moment.
    let mut more: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    assert!(more.iter_mut().all(is_ended), "nobody stays who does not fit");
    assert!((0..STEPS_MAX).any(|_| is_healthy(&server)), "and then its health can be asked again");
    drop(silent);
    let works = || server.raw(request("/ojs/v1/queues").as_bytes()).starts_with("HTTP/1.1 200");
    assert!(
        (0..STEPS_MAX).any(|_| works() || {
            pause(STEP_MS);
            false
        }),
        "who leaves makes room"
    );
}

#[test]
fn large_heads_and_bodies_are_refused() {
    let server = with_limits(
        "header_bytes = 4096\nheader_count = 32\nbody_bytes = 2048\nbatch_bytes = 8192\nbodies_bytes = 16384",
    );
    let ask = |more: &str, body: &str| {
        let (host, length) = (server.host(), body.len());
        let request = format!(
            "POST /ojs/v1/jobs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n{body}"
        );
        server.raw(request.as_bytes())
    };
    let job = r#"{"type":"a.b","args":[]}"#;
    assert!(ask("", job).starts_with("HTTP/1.1 201"));
    let many: String = (0..40).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert!(ask(&many, job).starts_with("HTTP/1.1 431"), "{}", ask(&many, job));
    assert!(ask(&format!("X-Large: {}\r\n", "x".repeat(5_000)), job).starts_with("HTTP/1.1 431"));
    let endless = server.raw(&[b"GET / HTTP/1.1\r\nX: ", &vec![b'x'; 1 << 20][..]].concat());
    assert!(endless.is_empty() || endless.starts_with("HTTP/1.1 431"), "{endless:.200}");
    let large = json!({"type": "a.b", "args": ["x".repeat(3_000)]}).to_string();
    assert!(ask("", &large).starts_with("HTTP/1.1 413"));
    server
        .post("/ojs/v1/jobs/batch", json!({"jobs": [{"type": "a.b", "args": ["x".repeat(1_000)]}]}))
        .is(201, "a batch");
    assert!(is_healthy(&server));
}

#[test]
fn bodies_that_together_are_too_large_are_refused_and_make_room_again() {
    let server = with_limits("body_bytes = 65536\nbatch_bytes = 65536\nbodies_bytes = 65536");
    let head = |length: usize| {
        format!(
            "POST /ojs/v1/jobs HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n",
            server.host()
        )
    };
    let job = json!({"type": "a.b", "args": ["x".repeat(60_000)]}).to_string();
    let full = || server.raw(&[head(job.len()).as_bytes(), job.as_bytes()].concat());
    // Room is taken as bytes come, so of two that come at once either may be refused, or both: then they come again.
    let taken = (0..STEPS_MAX).find(|_| {
        // One has sent most of what fits, and holds it.
        let mut held = server.connect();
        held.write_all(&[head(job.len()).as_bytes(), &job.as_bytes()[..job.len() - 1]].concat()).unwrap();
        let refused = (0..10).map(|_| full()).find(|answer| answer.starts_with("HTTP/1.1 503"));
        let Some(refused) = refused else { return false };
        assert!(refused.contains("too many large requests are being handled at once"), "{refused}");
        drop(held.write_all(&job.as_bytes()[job.len() - 1..]));
        let mut answer = String::new();
        drop(held.read_to_string(&mut answer));
        answer.starts_with("HTTP/1.1 201")
    });
    assert!(
        taken.is_some(),
        "while one that fits holds its room, another is refused, and then the one is taken"
    );
    assert!((0..STEPS_MAX).any(|_| full().starts_with("HTTP/1.1 201")), "and has made room");
}

#[test]
fn packed_bodies_are_not_unpacked() {
    let server = Server::new();
    for encoding in ["gzip", "br", "deflate", "zstd", "gzip, gzip", "nonsense"] {
        let headers = [("Content-Type", MEDIA), ("Content-Encoding", encoding)];
        let answer = server.send("POST", "/ojs/v1/jobs", &headers, b"\x1f\x8b\x08\0\0\0\0\0");
        let error = answer.refused(415, "unsupported", encoding);
        assert_eq!(error["details"]["field"], "Content-Encoding");
    }
    let headers = [("Content-Type", MEDIA), ("Content-Encoding", "identity")];
    server.send("POST", "/ojs/v1/jobs", &headers, br#"{"type":"a.b","args":[]}"#).is(201, "as it is");
}

#[test]
fn names_are_names_whatever_is_in_them() {
    let server = Server::new();
    let id = server.push_to("kept", json!({}));
    let nasty = [
        "'%20OR%20'1'='1",
        "x';DROP%20TABLE%20jobs;--",
        "%22%20OR%201=1",
        "1%20UNION%20SELECT%20*%20FROM%20tokens",
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "%00",
        "a%00b",
        "%252e%252e",
        "%ef%bc%8e%ef%bc%8e",
        "a%0d%0aSet-Cookie:%20x=1",
        "$%7Bjndi:ldap://x%7D",
        "%F0%9F%92%A9",
    ];
    let places = [
        "/ojs/v1/jobs/X",
        "/ojs/v1/jobs/X/progress",
        "/ojs/v1/jobs/X/events",
        "/ojs/v1/cron/X",
        "/ojs/v1/dead-letter/X",
        "/kron/v1/cron/X/occurrences",
        "/kron/v1/cron/X/why?at=2026-01-01T00:00:00Z",
        "/ojs/v1/queues/X/stats",
        "/ojs/v1/events?after=X",
        "/ojs/v1/events?types=X&queues=X&job_types=X",
        "/kron/v1/jobs?queue=X&type=X&cron=X",
        "/kron/v1/jobs?cursor=X",
        "/kron/v1/jobs?state=X",
        "/ojs/v1/dead-letter?queue=X&type=X&cursor=X",
        "/X",
        "/openapi.json/X",
    ];
    for place in places {
        for name in nasty {
            let path = place.replace('X', name);
            let answer = server.get(&path);
            assert!(answer.status < 500, "{path}: {} {}", answer.status, answer.text);
            assert!(answer.headers.get("set-cookie").is_none(), "{path}");
            assert!(!answer.text.contains("root:"), "{path}");
        }
    }
    assert_eq!(server.state(&id), "available", "nothing has happened to what is there");
    assert!(is_healthy(&server));
}
