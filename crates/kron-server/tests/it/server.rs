//! A whole kron-server, as a process of its own, with a directory for it, and what people say to it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use ureq::http::{HeaderMap, Request};

/// The only media type there is, without a charset.
pub(crate) const MEDIA: &str = "application/openjobspec+json";

/// Where every frozen clock begins: a Thursday evening, the day of the seed's own examples.
pub(crate) const START: &str = "2026-02-12T20:15:20Z";

/// The longest that anybody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The server to be tested: the one just built, unless `KRON_SERVER_BINARY` names another, such as a release.
pub(crate) fn binary() -> OsString {
    std::env::var_os("KRON_SERVER_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_kron-server").into())
}

/// A directory for one server after the other. It is gone when nobody holds it any more.
#[derive(Clone)]
pub(crate) struct Home(Arc<tempfile::TempDir>, Option<Arc<str>>);

impl Home {
    pub(crate) fn new() -> Home {
        Home(Arc::new(tempfile::tempdir().unwrap()), postgres())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Whether several servers can be started here, since they share a PostgreSQL.
    pub(crate) fn is_shared(&self) -> bool {
        self.1.is_some()
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("stderr.log")
    }

    /// The command that starts a server here, on any free port.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_at("127.0.0.1:0", arguments)
    }

    fn command_at(&self, address: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(["--listen", address]);
        self.add_store(&mut command);
        command.args(arguments);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Says where everything is kept.
    fn add_store(&self, command: &mut Command) {
        match &self.1 {
            None => command.arg("--data").arg(self.data()),
            Some(database) => command.args(["--database", database]),
        };
    }

    /// Makes a token with `kron-server token create`, and returns its secret.
    #[track_caller]
    pub(crate) fn token(&self, name: &str, scopes: &[&str], more: &[&str]) -> String {
        let mut arguments = vec!["create", "--name", name];
        scopes.iter().for_each(|scope| arguments.extend(["--scope", scope]));
        let output = self.token_command(&[&arguments, more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "a token can be made: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// `kron-server token …` on the database here.
    pub(crate) fn token_command(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(binary());
        command.arg("token").args(arguments).stdin(Stdio::null());
        self.add_store(&mut command);
        command.output().unwrap()
    }

    /// Changes the database behind the server's back, which is SQLite's or PostgreSQL's.
    pub(crate) fn sql(&self, sqlite: &str, postgres: &str) {
        let Some(database) = &self.1 else {
            let connection = rusqlite::Connection::open(self.data().join("kron.db")).unwrap();
            connection.busy_timeout(PATIENCE).unwrap();
            return connection.execute_batch(sqlite).unwrap();
        };
        let done =
            Command::new("psql").args(["-v", "ON_ERROR_STOP=1", "-qX", "-c", postgres, database]).status();
        assert!(done.unwrap().success(), "{postgres}");
    }

    /// A settings file with that in it.
    pub(crate) fn settings(&self, text: &str) -> String {
        let path = self.0.path().join("settings.toml");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Starts a server and waits until it says where it listens.
    pub(crate) fn start(&self, arguments: &[&str]) -> Server {
        self.start_at("127.0.0.1:0", arguments)
    }

    /// Starts a server where another one was.
    pub(crate) fn start_at(&self, address: &str, arguments: &[&str]) -> Server {
        self.start_by(self.command_at(address, arguments))
    }

    /// Starts a server by a command of one's own.
    pub(crate) fn start_by(&self, mut command: Command) -> Server {
        let log = File::options().create(true).append(true).open(self.log()).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, told) = mpsc::channel();
        // The pipe is read to its end, so that nobody is ever stopped by a full one.
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        let line = told.recv_timeout(PATIENCE);
        let url = line.ok().and_then(|line| {
            line.strip_prefix("kron-server listening on ").map(|url| url.trim_end().to_owned())
        });
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(PATIENCE))
            .max_idle_connections_per_host(32)
            .build()
            .new_agent();
        // Made first, so that the process is ended even when it has said nothing.
        let server = Server { child, home: self.clone(), url: url.clone().unwrap_or_default(), agent };
        assert!(url.is_some(), "no line `kron-server listening on http://…` on stdout: {}", server.said());
        server
    }
}

/// A new database where `KRON_TEST_POSTGRES` says, if it does: then the same tests run there.
fn postgres() -> Option<Arc<str>> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let base = std::env::var("KRON_TEST_POSTGRES").ok()?;
    let name = format!("it_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let made = Command::new("psql")
        .args(["-qX", &format!("{base}/postgres"), "-c", &format!("CREATE DATABASE {name}")])
        .status()
        .expect("psql is there where KRON_TEST_POSTGRES is set");
    assert!(made.success(), "no database could be made");
    Some(format!("{base}/{name}").into())
}

/// A running server. It is killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    home: Home,
    pub(crate) url: String,
    agent: ureq::Agent,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", self.said());
        }
    }
}

// Its life.
impl Server {
    /// A server in test mode, in a directory of its own, with its clock frozen at [`START`].
    pub(crate) fn new() -> Server {
        Server::with(&[])
    }

    pub(crate) fn with(arguments: &[&str]) -> Server {
        let server = Home::new().start(&[&["--test-mode"], arguments].concat());
        server.clock(START);
        server
    }

    /// A server in test mode whose clock is frozen somewhere else.
    pub(crate) fn frozen_at(now: &str) -> Server {
        let server = Home::new().start(&["--test-mode"]);
        server.clock(now);
        server
    }

    pub(crate) fn home(&self) -> Home {
        self.home.clone()
    }

    /// Where it is, as clients write it in `Host`.
    pub(crate) fn host(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    /// Has it read its certificate again.
    pub(crate) fn hang_up(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
    }

    /// What it has written to stderr.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.home.log()).unwrap_or_default()
    }

    /// Ends it at once, with `kill -9`.
    pub(crate) fn kill(mut self) -> Home {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.home.clone()
    }

    /// Asks it to end, and waits.
    pub(crate) fn stop(mut self) -> (Home, ExitStatus) {
        self.ask_to_end();
        for _ in 0..500 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (self.home.clone(), status);
            }
            pause(20);
        }
        panic!("SIGTERM ends the server gracefully, but it is still there after 10 s");
    }

    fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Where its files are, for one that has file systems of its own.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.child.id()))
    }

    /// The same as [`kill`](Server::kill), while others still speak to it.
    pub(crate) fn kill_now(&self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).unwrap();
    }
}

// What is said to it.
impl Server {
    /// Sends a request and checks what holds for every answer.
    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The same, for a server that may be gone.
    #[track_caller]
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = if body.is_empty() {
            self.agent.run(request.body(()).unwrap())?
        } else {
            self.agent.run(request.body(body).unwrap())?
        };
        let bytes = response.body_mut().with_config().limit(64 << 20).read_to_vec()?;
        let answer = Answer {
            asked: format!("{method} {path}"),
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: String::from_utf8(bytes).expect("answers are UTF-8"),
        };
        answer.check();
        Ok(answer)
    }

    #[track_caller]
    fn send_json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[("Content-Type", MEDIA)], body.to_string().as_bytes())
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    /// The metrics, which are the only answer that is no JSON.
    #[track_caller]
    pub(crate) fn metrics(&self) -> String {
        let mut response = self.agent.get(format!("{}/kron/v1/metrics", self.url)).call().unwrap();
        let media = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert_eq!((response.status().as_u16(), &*media), (200, "text/plain; version=0.0.4; charset=utf-8"));
        response.body_mut().read_to_string().unwrap()
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], b"")
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "bodies are written where they are sent")]
    pub(crate) fn post(&self, path: &str, body: Value) -> Answer {
        self.send_json("POST", path, &body)
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "bodies are written where they are sent")]
    pub(crate) fn put(&self, path: &str, body: Value) -> Answer {
        self.send_json("PUT", path, &body)
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "bodies are written where they are sent")]
    pub(crate) fn patch(&self, path: &str, body: Value) -> Answer {
        self.send_json("PATCH", path, &body)
    }

    /// Bytes as they are, for what no client should send.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // It may have answered and closed before it has heard everything.
        drop(stream.write_all(bytes));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A connection on which nothing has been said.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// An event stream.
    pub(crate) fn stream(&self, path: &str, last_event_id: Option<&str>) -> Stream {
        let mut request = self.agent.get(format!("{}{path}", self.url)).header("Accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        let response = request.call().unwrap();
        assert_eq!(response.status().as_u16(), 200, "GET {path} as a stream");
        let media = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(media.starts_with("text/event-stream"), "a stream is text/event-stream, not {media}");
        assert_eq!(response.headers()["ojs-version"], "1.0", "OJS-Version is on every answer");
        Stream(BufReader::new(response.into_body().into_reader()))
    }
}

// The clock, in test mode.
impl Server {
    /// Sets the clock and freezes it; everything that is then due has been done when this returns.
    #[track_caller]
    pub(crate) fn clock(&self, now: &str) {
        let body = json!({"now": now, "running": false});
        self.put("/kron/v1/test/clock", body).is(200, "in test mode the clock can be set");
    }

    pub(crate) fn now(&self) -> Timestamp {
        time(&self.get("/kron/v1/test/clock").is(200, "in test mode the clock can be read")["now"])
    }

    /// Moves the clock on by so many milliseconds, in one step.
    #[track_caller]
    pub(crate) fn pass_ms(&self, ms: i64) {
        let now = self.now() + SignedDuration::from_millis(ms);
        self.clock(&now.to_string());
    }

    /// Moves the clock on by so many seconds, in one step.
    #[track_caller]
    pub(crate) fn pass(&self, seconds: i64) {
        self.pass_ms(seconds * 1_000);
    }

    /// Moves the clock to an instant, in steps of so many seconds.
    #[track_caller]
    pub(crate) fn step_to(&self, end: &str, seconds: i64) {
        let (mut now, end) = (self.now(), instant(end));
        while now < end {
            now = end.min(now + SignedDuration::from_secs(seconds));
            self.clock(&now.to_string());
        }
    }
}

// Jobs and workers.
impl Server {
    /// Pushes a job and returns it.
    #[track_caller]
    pub(crate) fn push(&self, job: Value) -> Value {
        self.post("/ojs/v1/jobs", job).is(201, "a valid job is created")["job"].clone()
    }

    /// Pushes a job that has nothing special but its queue and options, and returns its id.
    #[track_caller]
    pub(crate) fn push_to(&self, queue: &str, more: Value) -> String {
        let options = merge(json!({"queue": queue}), more);
        let job = self.push(json!({"type": "test.job", "args": [], "options": options}));
        text(&job["id"]).to_owned()
    }

    #[track_caller]
    pub(crate) fn fetch(&self, queue: &str, count: u32) -> Vec<Value> {
        let body = json!({"queues": [queue], "count": count});
        let answer = self.post("/ojs/v1/workers/fetch", body).is(200, "fetch answers 200");
        list(&answer["jobs"])
    }

    /// Fetches the one job that must be there.
    #[track_caller]
    pub(crate) fn fetch_one(&self, queue: &str) -> Value {
        let jobs = self.fetch(queue, 1);
        assert_eq!(jobs.len(), 1, "a job can be fetched from {queue}");
        jobs[0].clone()
    }

    #[track_caller]
    pub(crate) fn fetch_as(&self, worker: &str, queue: &str) -> Vec<Value> {
        let body = json!({"queues": [queue], "worker_id": worker});
        list(&self.post("/ojs/v1/workers/fetch", body).is(200, "fetch answers 200")["jobs"])
    }

    #[track_caller]
    pub(crate) fn ack(&self, id: &str) -> Answer {
        self.post("/ojs/v1/workers/ack", json!({"job_id": id}))
    }

    /// Reports an ordinary failure.
    #[track_caller]
    pub(crate) fn nack(&self, id: &str) -> Answer {
        let error = json!({"code": "handler_error", "message": "it failed"});
        self.post("/ojs/v1/workers/nack", json!({"job_id": id, "error": error}))
    }

    #[track_caller]
    pub(crate) fn heartbeat(&self, worker: &str, jobs: &[&str]) -> Value {
        let body = json!({"worker_id": worker, "active_jobs": jobs});
        self.post("/ojs/v1/workers/heartbeat", body).is(200, "a heartbeat is answered")
    }

    #[track_caller]
    pub(crate) fn job(&self, id: &str) -> Value {
        self.get(&format!("/ojs/v1/jobs/{id}")).is(200, "the job can be read")["job"].clone()
    }

    #[track_caller]
    pub(crate) fn state(&self, id: &str) -> String {
        text(&self.job(id)["state"]).to_owned()
    }
}

// Cron and events.
impl Server {
    /// Registers a cron job that is new, and returns it.
    #[track_caller]
    pub(crate) fn register(&self, definition: Value) -> Value {
        self.post("/ojs/v1/cron", definition).is(201, "a new registration is 201")["cron_job"].clone()
    }

    /// Registers a cron job again, and returns it.
    #[track_caller]
    pub(crate) fn update(&self, definition: Value) -> Value {
        self.post("/ojs/v1/cron", definition).is(200, "an update is 200 (8.1)")["cron_job"].clone()
    }

    #[track_caller]
    pub(crate) fn cron(&self, name: &str) -> Value {
        self.get(&format!("/ojs/v1/cron/{name}")).is(200, "the cron job can be read")["cron_job"].clone()
    }

    #[track_caller]
    pub(crate) fn enable(&self, name: &str, enabled: bool) -> Value {
        let answer = self.patch(&format!("/ojs/v1/cron/{name}"), json!({"enabled": enabled}));
        answer.is(200, "PATCH toggles a cron job (8.5)")["cron_job"].clone()
    }

    /// All events of these types, oldest first.
    #[track_caller]
    pub(crate) fn events(&self, types: &str) -> Vec<Value> {
        let (mut events, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/ojs/v1/events?types={types}&limit=1000{after}"));
            let page = page.is(200, "events can be polled");
            events.extend(list(&page["events"]));
            if page["has_more"] != true {
                return events;
            }
            after = format!("&after={}", text(&events.last().unwrap()["id"]));
        }
    }

    /// The data of the events of one type that are about one cron job.
    #[track_caller]
    pub(crate) fn cron_events(&self, kind: &str, name: &str) -> Vec<Value> {
        let all = self.events(kind).into_iter().map(|event| event["data"].clone());
        all.filter(|data| data["cron_name"] == name).collect()
    }

    /// The scheduled times at which a cron job has fired.
    #[track_caller]
    pub(crate) fn fires(&self, name: &str) -> Vec<String> {
        let fires = self.cron_events("cron.triggered", name);
        fires.iter().map(|data| time(&data["scheduled_time"]).to_string()).collect()
    }

    /// The record of occurrences of a cron job, past and future.
    #[track_caller]
    pub(crate) fn occurrences(&self, name: &str, from: &str, to: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/kron/v1/cron/{name}/occurrences?from={from}&to={to}&limit=200{cursor}");
            let page = self.get(&path).is(200, "the record of occurrences can be read");
            all.extend(list(&page["occurrences"]));
            if page["pagination"]["has_more"] != true {
                return all;
            }
            cursor = format!("&cursor={}", text(&page["pagination"]["next_cursor"]));
        }
    }
}

/// What the server has answered.
pub(crate) struct Answer {
    asked: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// What holds for every answer to everybody.
    #[track_caller]
    fn check(&self) {
        let asked = &self.asked;
        assert_eq!(
            self.header("OJS-Version"),
            "1.0",
            "{asked}: OJS-Version is the literal 1.0 on every answer"
        );
        assert!(!self.header("X-Request-Id").is_empty(), "{asked}: X-Request-Id is on every answer");
        if self.text.is_empty() {
            return;
        }
        let media = self.header("Content-Type");
        let kron = asked.contains(" /kron/") && media == "application/json";
        assert!(media == MEDIA || kron, "{asked}: Content-Type is exactly {MEDIA}, not {media}");
        if self.status < 400 {
            return;
        }
        let error = &self.json()["error"];
        let answer = format!("{asked}: {} {}", self.status, self.text);
        for word in ["code", "message", "hint", "docs_url"] {
            assert!(!text(&error[word]).is_empty(), "1.4: an error has a {word}: {answer}");
        }
        assert!(error["retryable"].is_boolean(), "1.4: an error says whether to retry: {answer}");
        assert_eq!(error["request_id"], self.header("X-Request-Id"), "1.4: request_id always: {answer}");
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let Ok(value) = serde_json::from_str(&self.text) else {
            panic!("{}: answers are JSON: {} {}", self.asked, self.status, self.text);
        };
        value
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub(crate) fn is(&self, status: u16, why: &str) -> Value {
        assert_eq!(self.status, status, "{why}\n  {}: {}", self.asked, self.text);
        self.json()
    }

    /// The error of an answer that must be this refusal.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str, why: &str) -> Value {
        let error = self.is(status, why)["error"].clone();
        assert_eq!(error["code"], code, "{why}\n  {}: {}", self.asked, self.text);
        let retryable = matches!(code, "rate_limited" | "backend_error" | "backend_unavailable");
        assert_eq!(error["retryable"], retryable, "{why}: retryable\n  {}: {}", self.asked, self.text);
        error
    }
}

/// A stream of server-sent events, read as they come.
pub(crate) struct Stream(BufReader<ureq::BodyReader<'static>>);

/// One of them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub(crate) event: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Iterator for Stream {
    type Item = Sent;

    /// The next one with data, or nothing when the stream ends or too long nothing has come.
    fn next(&mut self) -> Option<Sent> {
        let mut sent = Sent::default();
        loop {
            let mut line = String::new();
            if !self.0.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                return None;
            }
            match line.trim_end().split_once(':') {
                Some(("event", value)) => value.trim_start().clone_into(&mut sent.event),
                Some(("id", value)) => value.trim_start().clone_into(&mut sent.id),
                Some(("data", value)) => sent.data = serde_json::from_str(value).expect("data is JSON"),
                None if line.trim_end().is_empty() && !sent.data.is_null() => return Some(sent),
                // `retry`, comments, and the blank line after them.
                _ => {}
            }
        }
    }
}

/// A cron job whose jobs go to a queue of its own name.
pub(crate) fn cron(name: &str, expression: &str, more: Value) -> Value {
    let plain = json!({"name": name, "cron": expression, "type": "test.cron", "options": {"queue": name}});
    merge(plain, more)
}

/// One object with the members of another over its own.
pub(crate) fn merge(mut under: Value, over: Value) -> Value {
    if let (Value::Object(under), Value::Object(over)) = (&mut under, over) {
        under.extend(over);
    }
    under
}

#[track_caller]
pub(crate) fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("an array, not {value}")).clone()
}

#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}"))
}

#[track_caller]
pub(crate) fn instant(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The instant that a value is. Kron writes them all in UTC.
#[track_caller]
pub(crate) fn time(value: &Value) -> Timestamp {
    let text = text(value);
    assert!(text.ends_with('Z'), "1.3: stamps are written in UTC: {text}");
    instant(text)
}

#[track_caller]
pub(crate) fn assert_time(value: &Value, expected: &str, why: &str) {
    assert!(value.is_string(), "{why}: {expected}, not {value}");
    assert_eq!(time(value), instant(expected), "{why}");
}

/// Whether a member is left out, or null, which says the same.
pub(crate) fn absent(object: &Value, member: &str) -> bool {
    object.get(member).is_none_or(Value::is_null)
}

/// Whether a text is a `UUIDv7` as OJS writes it.
pub(crate) fn is_uuid_v7(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lower_hex = |group: &&str| group.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(lower_hex)
        && groups[2].starts_with('7')
        && groups[3].starts_with(['8', '9', 'a', 'b'])
}

/// Real time passes, where another process is waited for.
pub(crate) fn pause(ms: u64) {
    #[expect(clippy::disallowed_methods, reason = "another process is waited for")]
    std::thread::sleep(Duration::from_millis(ms));
}

/// The files of a directory.
pub(crate) fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
