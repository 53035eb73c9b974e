//! Who may do what: tokens, scopes, and the names by which the server may be called.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use kron_server::gate::Need;
use kron_server::routes::{Route, table};
use kron_server::token::{Scope, Secret};
use serde_json::{Value, json};

use super::process::ended;
use super::server::{Home, MEDIA, Server, files, pause};

fn bearer(secret: &str) -> String {
    format!("Bearer {secret}")
}

/// Asks until it holds, with a bound.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        pause(100);
    }
    panic!("waited in vain: {what}");
}

/// The status of an answer and its challenge, without waiting for the end of a stream.
fn ask(server: &Server, method: &str, path: &str, authorization: Option<&str>) -> (u16, String) {
    let mut stream = server.connect();
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n", server.host());
    if let Some(value) = authorization {
        request.push_str(&format!("Authorization: {value}\r\n"));
    }
    request.push_str("Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let lines: Vec<String> = lines.collect();
    let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let challenge = lines.iter().find_map(|line| line.strip_prefix("www-authenticate: "));
    (status, challenge.unwrap_or("").to_owned())
}

fn path_of(route: &Route) -> String {
    route
        .path
        .split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[test]
fn every_route_lets_those_through_who_may_and_nobody_else() {
    let home = Home::new();
    let scopes = ["read", "enqueue", "work", "admin"];
    let secrets: Vec<String> = scopes.iter().map(|scope| home.token(scope, &[scope], &[])).collect();
    let expired = home.token("short", &["admin"], &["--expires", "1h"]);
    let revoked = home.token("gone", &["admin"], &[]);
    assert!(home.token_command(&["revoke", "gone"]).status.success());
    let server = home.start(&["--test-mode"]);
    let admin = bearer(&secrets[3]);
    let headers = [("Authorization", admin.as_str()), ("Content-Type", MEDIA)];
    let later = br#"{"now": "+PT2H", "running": true}"#;
    server.send("PUT", "/kron/v1/test/clock", &headers, later).is(200, "an admin may set the clock");

    let (mut seen, mut asked) = ([0; 5], 0);
    for route in table(true) {
        let (method, path) = (route.method.to_uppercase(), path_of(&route));
        let needed = match route.needs {
            Need::Nothing => None,
            Need::Scope(scope) => Some(scope.name()),
        };
        seen[needed.map_or(4, |needed| scopes.iter().position(|scope| *scope == needed).unwrap())] += 1;
        let mut check = |role: &str, authorization: Option<&str>, allowed: bool, known: bool| {
            asked += 1;
            let (status, challenge) = ask(&server, &method, &path, authorization);
            let told = format!("{method} {path} needs {needed:?}, asked by {role}: {status} {challenge}");
            match (needed, allowed, known) {
                (None, ..) | (_, true, _) => {
                    assert!(![401, 403].contains(&status) && status < 500 && challenge.is_empty(), "{told}");
                }
                (Some(scope), false, true) => {
                    assert_eq!(status, 403, "{told}");
                    assert!(challenge.contains("error=\"insufficient_scope\""), "{told}");
                    assert!(challenge.contains(&format!("scope=\"{scope}\"")), "{told}");
                }
                (Some(scope), false, false) => {
                    assert_eq!(status, 401, "{told}");
                    assert!(challenge.starts_with("Bearer "), "{told}");
                    assert!(challenge.contains(&format!("scope=\"{scope}\"")), "{told}");
                }
            }
        };
        check("nobody", None, false, false);
        for (scope, secret) in scopes.iter().zip(&secrets) {
            check(scope, Some(&bearer(secret)), *scope == "admin" || Some(*scope) == needed, true);
        }
        check("an expired token", Some(&bearer(&expired)), false, false);
        check("a revoked token", Some(&bearer(&revoked)), false, false);
        check("garbage", Some("Bearer kron_' OR 1=1 --"), false, false);
        check("another scheme", Some("Basic YWRtaW46YWRtaW4="), false, false);
    }
    assert!(seen.iter().all(|count| *count > 0), "every kind of need was met: {seen:?}");
    assert_eq!(asked, table(true).len() * 9);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(&server, "GET", path, None).0, 200, "{path} is for everybody");
    }
    assert_eq!(ask(&server, "HEAD", "/ojs/v1/queues", None).0, 401, "HEAD is GET without a body");
    // Nobody but the store can say that it does not know a token that looks like one.
    let stranger = bearer(&Secret::random().unwrap().reveal());
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", Some(&stranger)).0, 401);
}

#[test]
fn a_refusal_says_what_is_needed_and_the_log_says_who_was_refused_and_what_admins_did() {
    let home = Home::new();
    let worker = home.token("worker-1", &["work"], &[]);
    let admin = home.token("boss", &["admin"], &[]);
    let server = home.start(&["--test-mode"]);
    let job = br#"{"type":"a.b","args":[]}"#;
    let none = server.send("POST", "/ojs/v1/jobs", &[("Content-Type", MEDIA)], job);
    let error = none.refused(401, "unauthenticated", "nobody may push");
    assert_eq!(
        error["message"],
        "expected a token with the scope `enqueue`, but there is no Authorization header"
    );
    assert_eq!(error["details"]["required_scope"], "enqueue");
    assert_eq!(none.header("WWW-Authenticate"), "Bearer realm=\"kron-server\", scope=\"enqueue\"");

    let authorization = bearer(&worker);
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", MEDIA)];
    let error = server.send("POST", "/ojs/v1/jobs", &headers, job);
    let error = error.refused(403, "permission_denied", "a worker may not push");
    assert_eq!(error["message"], "expected a token with the scope `enqueue`, but `worker-1` has `work`");
    let fetch = br#"{"queues":["default"]}"#;
    server.send("POST", "/ojs/v1/workers/fetch", &headers, fetch).is(200, "a worker may fetch");

    let authorization = bearer(&admin);
    let headers = [("Authorization", authorization.as_str())];
    server.send("POST", "/ojs/v1/queues/q/pause", &headers, b"").is(200, "an admin may pause");
    let said = server.said();
    let line = |word: &str| said.lines().find(|line| line.contains("audit") && line.contains(word));
    assert!(line("/ojs/v1/jobs").is_some_and(|line| line.contains("refused")), "{said}");
    assert!(
        line("/pause").is_some_and(|line| line.contains("an admin act") && line.contains("boss")),
        "{said}"
    );
    assert!(!said.contains(&worker[5..]) && !said.contains(&admin[5..]), "no secret is in the log");
}

#[test]
fn a_token_counts_at_once_and_until_it_is_revoked_and_so_do_streams() {
    let home = Home::new();
    let server = home.start(&["--test-mode"]);
    server.push_to("q", json!({}));
    let reader = home.token("reader", &["read"], &[]);
    eventually("the first token closes the server", || ask(&server, "GET", "/ojs/v1/queues", None).0 == 401);
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", Some(&bearer(&reader))).0, 200);
    let second = home.token("second", &["read"], &[]);
    assert_eq!(
        ask(&server, "GET", "/ojs/v1/queues", Some(&bearer(&second))).0,
        200,
        "a new one counts at once"
    );

    let mut stream = server.connect();
    let request = format!(
        "GET /ojs/v1/events/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nConnection: close\r\n\r\n",
        server.host(),
        bearer(&second)
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "HTTP/1.1 200 OK");
    let output = home.token_command(&["revoke", "second"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "token `second` is revoked\n");
    eventually("it is revoked", || ask(&server, "GET", "/ojs/v1/queues", Some(&bearer(&second))).0 == 401);
    // A stream that goes on says every 15 s that it is still there.
    let mut signs = 0..4;
    let rest = lines.map_while(Result::ok).take_while(|line| line != ":" || signs.next().is_some());
    let rest: Vec<String> = rest.collect();
    assert!(rest.iter().any(|line| line == "0"), "the stream has ended in order: {rest:?}");
    assert_eq!(
        ask(&server, "GET", "/ojs/v1/queues", Some(&bearer(&reader))).0,
        200,
        "the other still counts"
    );

    assert!(home.token_command(&["revoke", "reader"]).status.success());
    eventually("it is revoked", || ask(&server, "GET", "/ojs/v1/queues", Some(&bearer(&reader))).0 == 401);
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", None).0, 401, "without live tokens nothing is open");
    let (home, _) = server.stop();
    let server = home.start(&[]);
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", None).0, 401, "not even after a restart");
}

#[test]
fn what_lies_in_the_database_is_no_token() {
    let home = Home::new();
    let secret = home.token("one", &["admin"], &[]);
    let server = home.start(&[]);
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", Some(&bearer(&secret))).0, 200);
    eventually("its use is written down", || {
        let listed = home.token_command(&["list", "--format", "json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        listed[0]["last_used_at"].is_string()
    });
    let raw: Vec<u8> =
        (5..secret.len()).step_by(2).map(|at| u8::from_str_radix(&secret[at..at + 2], 16).unwrap()).collect();
    let hash = secret.parse::<Secret>().unwrap().hash().0;
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let mut found = false;
    for file in files(&home.data()) {
        let bytes = fs::read(home.data().join(&file)).unwrap();
        assert!(!has(&bytes, &secret.as_bytes()[5..]) && !has(&bytes, &raw), "the secret is in {file}");
        found |= has(&bytes, &hash);
    }
    assert!(found, "its hash is there");
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let stolen = bearer(&format!("kron_{hash}"));
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", Some(&stolen)).0, 401, "and the hash opens nothing");
}

#[test]
fn tokens_are_made_listed_and_revoked_and_mistakes_are_told() {
    let home = Home::new();
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let nothing = home.token_command(&["list"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(said(&nothing).contains("there is no database in"), "{}", said(&nothing));
    assert!(!home.data().exists(), "asking makes nothing");

    home.token("ci", &["enqueue", "read", "enqueue"], &["--expires", "90d"]);
    let list = home.token_command(&["list"]);
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.lines().nth(1).unwrap().starts_with("ci    enqueue read"), "{list}");
    let json = home.token_command(&["list", "--format", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json[0]["scopes"], json!(["enqueue", "read"]));
    assert!(json[0]["expires_at"].is_string() && json[0]["revoked_at"].is_null(), "{json}");

    let twice = home.token_command(&["create", "--name", "ci", "--scope", "read"]);
    assert_eq!(twice.status.code(), Some(1));
    assert_eq!(
        said(&twice),
        "kron-server: a token named `ci` exists; revoke it first, or choose another name"
    );
    let none = home.token_command(&["revoke", "nobody"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(said(&none).contains("there is no token `nobody`"), "{}", said(&none));
    for wrong in [
        &["create", "--name", "a b", "--scope", "read"][..],
        &["create", "--name", "a", "--scope", "root"],
        &["create", "--name", "a"],
        &["create", "--name", "a", "--scope", "read", "--expires", "0d"],
    ] {
        assert_eq!(home.token_command(wrong).status.code(), Some(2), "{wrong:?} is wrong usage");
    }
    assert!(home.token_command(&["revoke", "ci"]).status.success());
    home.token("ci", &["read"], &[]);
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let home = Home::new();
    let mut command = std::process::Command::new(super::server::binary());
    command.args(["--listen", "0.0.0.0:0", "--data"]).arg(home.data()).stdin(Stdio::null());
    let output = ended(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("refusing to listen on 0.0.0.0:"), "{said}");
    assert!(said.contains("kron-server token create --name admin --scope admin --data"), "{said}");
    assert!(output.stdout.is_empty());

    let secret = home.token("admin", &["admin"], &[]);
    let mut server = home.start_at("0.0.0.0:0", &["--host", "Kron.example.org"]);
    server.url = server.url.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", None).0, 401);
    assert_eq!(ask(&server, "GET", "/ojs/v1/queues", Some(&bearer(&secret))).0, 200);
    let named = server.raw(b"GET /healthz HTTP/1.1\r\nHost: kron.example.org\r\nConnection: close\r\n\r\n");
    assert!(named.starts_with("HTTP/1.1 200"), "{named}");
    assert!(server.said().contains("travel in the clear"), "{}", server.said());
}

#[test]
fn the_server_is_called_by_its_own_name() {
    let server = Home::new().start(&["--test-mode"]);
    let port = server.host().rsplit_once(':').unwrap().1;
    let ask = |head: &str| server.raw(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes());
    let health = "GET /ojs/v1/health HTTP/1.1";
    for own in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("LocalHost:{port}")] {
        let answer = ask(&format!("{health}\r\nHost: {own}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{own}: {answer}");
    }
    let with_port = [format!("evil.test:{port}"), format!("127.0.0.1.nip.io:{port}")];
    let others = ["evil.test", "127.0.0.1.nip.io", "localhost", "localhost:1", &with_port[0], &with_port[1]];
    for other in others {
        let answer = ask(&format!("{health}\r\nHost: {other}"));
        assert!(answer.starts_with("HTTP/1.1 421"), "{other}: {answer}");
        assert!(answer.contains("is no name of this server"), "{other}: {answer}");
    }
    let own = server.host();
    for wrong in [
        health.to_owned(),
        format!("{health}\r\nHost: {own}\r\nHost: {own}"),
        format!("{health}\r\nHost: {own}\r\nHost: evil.test"),
    ] {
        let answer = ask(&wrong);
        assert!(answer.starts_with("HTTP/1.1 400"), "{wrong}: {answer}");
    }
    let answer = ask(&format!("GET http://evil.test/ojs/v1/health HTTP/1.1\r\nHost: {own}"));
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    // A stream is no different.
    let answer = ask("GET /ojs/v1/events/stream HTTP/1.1\r\nHost: evil.test");
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
}

#[test]
fn pages_of_strangers_change_nothing() {
    let server = Home::new().start(&["--test-mode"]);
    let own = server.url.clone();
    let job = br#"{"type":"a.b","args":[],"queue":"page"}"#;
    let send = |more: &[(&str, &str)]| server.send("POST", "/ojs/v1/jobs", more, job);
    for foreign in [
        &[("Origin", "null")][..],
        &[("Origin", "https://evil.test")],
        &[("Origin", "http://localhost:1")],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Sec-Fetch-Site", "cross-site"), ("Origin", own.as_str())],
    ] {
        let answer = send(&[foreign, &[("Content-Type", "application/json")]].concat());
        answer.refused(403, "permission_denied", &format!("{foreign:?}"));
        // What a form of a page can send without asking.
        let answer = send(&[foreign, &[("Content-Type", "text/plain")]].concat());
        answer.refused(403, "permission_denied", &format!("{foreign:?}"));
    }
    send(&[("Content-Type", "text/plain")]).refused(400, "invalid_request", "a form's type is no JSON");
    let preflight = server.send(
        "OPTIONS",
        "/ojs/v1/jobs",
        &[("Origin", "https://evil.test"), ("Access-Control-Request-Method", "POST")],
        b"",
    );
    assert_eq!(preflight.status, 405);
    assert!(!preflight.headers.keys().any(|name| name.as_str().starts_with("access-control")), "no CORS");
    assert!(server.fetch("page", 10).is_empty(), "nothing was pushed");
    send(&[
        ("Content-Type", "application/json"),
        ("Origin", own.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ])
    .is(201, "its own pages may");

    for path in ["/ojs/v1/health", "/ojs/v1/queues", "/nothing", "/openapi.json"] {
        let answer = server.get(path);
        assert_eq!(answer.header("X-Content-Type-Options"), "nosniff", "{path}");
        assert_eq!(answer.header("Cache-Control"), "no-store", "{path}");
        assert_eq!(
            answer.header("Content-Security-Policy"),
            "default-src 'none'; frame-ancestors 'none'",
            "{path}"
        );
        assert!(answer.header("Access-Control-Allow-Origin").is_empty(), "{path}");
    }
}

#[test]
fn scopes_are_as_the_document_says() {
    let document = kron_server::openapi::document();
    for route in table(false) {
        let security = &document["paths"][route.path][route.method]["security"];
        match route.needs {
            Need::Nothing => assert_eq!(security, &json!([]), "{}", route.id),
            Need::Scope(scope) => {
                assert_eq!(security[0]["token"], json!([scope.name()]), "{}", route.id);
                // The URLs of webhooks often hold secrets.
                let is_secret = route.path.starts_with("/kron/v1/webhooks");
                let reads = (route.method == "get" && !is_secret) || route.id == "previewCron";
                assert_eq!(reads, scope == Scope::Read, "{} changes something or not", route.id);
            }
        }
    }
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}
