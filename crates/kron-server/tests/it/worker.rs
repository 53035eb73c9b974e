//! `kron-worker` runs a command for every job, and the server hears how it went.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::server::{Server, pause};

/// A worker of a server, ended with the test.
struct Worker(Child);

impl Worker {
    fn start(server: &Server, options: &[&str], script: &str) -> Worker {
        Worker(command(server, options, script).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for its end and says whether that was a good one.
    fn ends_well(mut self) -> bool {
        eventually("the worker ends", || self.0.try_wait().unwrap().is_some());
        self.0.wait().unwrap().success()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(server: &Server, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kron-worker"));
    command.args(["--url", &server.url]).args(options).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Works until nothing is left.
fn drain(server: &Server, options: &[&str], script: &str) {
    let mut all = vec!["--drain"];
    all.extend(options);
    assert!(Worker::start(server, &all, script).ends_well());
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        pause(50);
    }
    panic!("waited in vain: {what}");
}

fn push(server: &Server, more: &Value) -> String {
    let mut job = json!({"type": "test.job", "args": [1, "two", {"three": 3}]});
    for (name, value) in more.as_object().unwrap() {
        job[name] = value.clone();
    }
    server.push(job)["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_gets_its_job_and_its_output_is_the_result() {
    let server = Server::new();
    let id = push(&server, &json!({"meta": {"tenant": "blue"}}));
    let said = r#"printf '{"args":%s,"id":"%s","type":"%s","attempt":%s,"meta":%s,"token":"%s"}' \
        "$(cat)" "$KRON_JOB_ID" "$KRON_JOB_TYPE" "$KRON_JOB_ATTEMPT" "$KRON_JOB_META" "$KRON_TOKEN""#;
    let mut worker = command(&server, &["--drain"], said);
    worker.env("KRON_TOKEN", "secret");
    assert!(Worker(worker.spawn().unwrap()).ends_well());
    let job = server.job(&id);
    assert_eq!(job["state"], "completed");
    let expected = json!({
        "args": [1, "two", {"three": 3}], "id": id, "type": "test.job", "attempt": 1, "meta": {"tenant": "blue"},
        "token": "",
    });
    assert_eq!(job["result"], expected);

    let id = push(&server, &json!({}));
    drain(&server, &[], "echo plain words");
    assert_eq!(server.job(&id)["result"], json!({"output": "plain words\n"}));
}

#[test]
fn a_job_of_a_cron_job_says_so() {
    let server = Server::new();
    server.register(json!({"name": "nightly", "cron": "@daily", "type": "test.cron"}));
    server.post("/kron/v1/cron/nightly/run", json!({})).is(201, "run");
    drain(&server, &[], r#"printf '"%s"' "$KRON_CRON_NAME""#);
    let job = &server.get("/kron/v1/jobs?cron=nightly").is(200, "list")["jobs"][0];
    assert_eq!(job["result"], "nightly");
}

#[test]
fn a_failure_is_told_with_the_end_of_what_was_said_and_tried_again_unless_it_is_final() {
    let server = Server::new();
    let id = push(&server, &json!({}));
    drain(&server, &[], "echo 'no route to host' >&2; exit 3");
    let job = server.job(&id);
    assert_eq!((job["state"].as_str(), job["error"]["type"].as_str()), (Some("retryable"), Some("exit")));
    assert_eq!(job["error"]["message"], "exit status 3: no route to host");

    let id = push(&server, &json!({"queue": "final"}));
    drain(&server, &["--queue", "final"], "exit 65");
    assert_eq!(server.state(&id), "discarded");
    let id = push(&server, &json!({"queue": "missing"}));
    let mut worker = Command::new(env!("CARGO_BIN_EXE_kron-worker"));
    worker.args(["--url", &server.url, "--drain", "--queue", "missing", "--", "/no/such/program"]);
    assert!(Worker(worker.stderr(Stdio::null()).spawn().unwrap()).ends_well());
    assert_eq!(server.job(&id)["error"]["type"], "spawn_failed");
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let server = Server::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("alive");
    let id = push(&server, &json!({"options": {"timeout_ms": 700}}));
    // The grandchild would go on for ever, and ignores being asked.
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do date +%s%N >{0}; sleep 0.05; done) & wait",
        file.display()
    );
    drain(&server, &["--grace", "1s"], &script);
    assert_eq!(server.job(&id)["error"]["type"], "timeout");
    let last = fs::read_to_string(&file).unwrap();
    pause(300);
    assert_eq!(fs::read_to_string(&file).unwrap(), last, "the grandchild goes on");
}

#[test]
fn a_cancelled_job_is_ended() {
    let server = Server::new();
    let directory = tempfile::tempdir().unwrap();
    let id = push(&server, &json!({}));
    let ended = directory.path().join("ended");
    let script = format!("trap 'echo asked >{0}; exit 0' TERM; sleep 60 & wait", ended.display());
    let _worker = Worker::start(&server, &[], &script);
    eventually("it begins", || server.state(&id) == "active");
    server.delete(&format!("/ojs/v1/jobs/{id}")).is(200, "cancel");
    eventually("it is asked to end", || ended.exists());
    assert_eq!(server.state(&id), "cancelled");
}

#[test]
fn a_worker_that_is_asked_to_end_gives_back_what_does_not_end_in_time() {
    let server = Server::new();
    let (short, long) = (push(&server, &json!({"priority": 1})), push(&server, &json!({})));
    let script =
        r#"if [ "$KRON_JOB_ID" = SHORT ]; then sleep 0.5; else sleep 60; fi"#.replace("SHORT", &short);
    let worker = Worker::start(&server, &["--concurrency", "2", "--grace", "2s"], &script);
    eventually("both begin", || server.state(&short) == "active" && server.state(&long) == "active");
    worker.signal(Signal::TERM);
    assert!(worker.ends_well());
    assert_eq!(server.state(&short), "completed");
    let job = server.job(&long);
    assert_eq!((job["state"].as_str(), job["errors"].is_null()), (Some("available"), true));
}

#[test]
fn a_second_signal_waits_for_nothing() {
    let server = Server::new();
    let id = push(&server, &json!({}));
    let worker = Worker::start(&server, &["--grace", "1h"], "trap '' TERM; sleep 60 & wait; sleep 60");
    eventually("it begins", || server.state(&id) == "active");
    worker.signal(Signal::TERM);
    pause(200);
    worker.signal(Signal::TERM);
    assert!(worker.ends_well());
}

#[test]
fn a_worker_outlives_its_server() {
    let server = Server::new();
    let id = push(&server, &json!({}));
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let script = format!("while [ ! -e {0} ]; do sleep 0.05; done", go.display());
    let worker = Worker::start(&server, &[], &script);
    eventually("it begins", || server.state(&id) == "active");
    let address = server.url.trim_start_matches("http://").to_owned();
    let home = server.kill();
    fs::write(&go, "").unwrap();
    pause(300);
    let server = home.start_at(&address, &["--test-mode"]);
    eventually("the outcome is told", || server.state(&id) == "completed");
    worker.signal(Signal::TERM);
    assert!(worker.ends_well());
}

#[test]
fn wrong_usage_is_told() {
    for (arguments, said) in [
        (&["--url", "nonsense", "--", "true"][..], "expected a URL such as http://127.0.0.1:8080"),
        (&["--token-file", "/no/such", "--", "true"], "could not read the token in /no/such"),
        (&["--url", "http://127.0.0.1:1"], "required arguments were not provided"),
        (&["--grace", "soon", "--", "true"], "invalid value 'soon' for '--grace <DURATION>'"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_kron-worker")).args(arguments).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && stderr.contains(said), "{arguments:?}: {stderr}");
    }
}
