//! A full disk under load: what was answered with success stays, what was refused is not there, it says so, and it goes on
//! once there is room.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::server::{Home, MEDIA, Server, binary, cron, pause, text};

/// How large the disk is, in KiB.
const DISK_KIB: u64 = 20 * 1_024;

/// How much of it others have filled before, in bytes.
const FILLED: usize = 16 << 20;

/// A server whose data is on a disk of its own; none where file systems cannot be mounted.
fn on_a_small_disk(home: &Home) -> Option<Server> {
    let data = home.data();
    fs::create_dir_all(&data).unwrap();
    let mount = format!("mount -t tmpfs -o size={DISK_KIB}k kron {}", data.display());
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c"]);
        command
    };
    let can = unshare().arg(&mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("not tested: only root can mount a small disk");
        return None;
    }
    let server = binary().to_string_lossy().into_owned();
    let begin = format!("{mount} && exec {server} --listen 127.0.0.1:0 --data {}", data.display());
    let mut command = unshare();
    command.arg(begin).stdin(Stdio::null());
    Some(home.start_by(command))
}

/// Pushes until it is refused; answers the refusal.
fn push(server: &Server, pushed: &Mutex<BTreeSet<String>>) -> (u16, Value) {
    let job =
        json!({"type": "load.job", "args": ["x".repeat(20_000)], "options": {"queue": "load"}}).to_string();
    for _ in 0..10_000 {
        let answer = server.send("POST", "/ojs/v1/jobs", &[("Content-Type", MEDIA)], job.as_bytes());
        if answer.status != 201 {
            return (answer.status, answer.json());
        }
        pushed.lock().unwrap().insert(text(&answer.json()["job"]["id"]).to_owned());
    }
    panic!("{} jobs of 20 kB fit on a disk of {DISK_KIB} KiB", pushed.lock().unwrap().len());
}

#[test]
fn a_full_disk_loses_nothing_and_is_told() {
    let home = Home::new();
    let Some(server) = on_a_small_disk(&home) else { return };
    let filler = server.root().join(home.data().strip_prefix("/").unwrap()).join("filler");
    fs::write(&filler, vec![1; FILLED]).unwrap();
    server.register(cron("tick", "* * * * * *", json!({"overlap_policy": "allow"})));
    let pushed = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        let pushing: Vec<_> = (0..4).map(|_| scope.spawn(|| push(&server, &pushed))).collect();
        for refused in pushing {
            let (status, body) = refused.join().unwrap();
            assert_eq!((status, &body["error"]["code"]), (500, &json!("backend_error")), "{body}");
            assert!(text(&body["error"]["message"]).contains("full"), "it says why: {body}");
        }
    });
    let mut degraded = false;
    for _ in 0..500 {
        // A small write may still fit, and then it does well.
        degraded = server.get("/ojs/v1/health").status == 503;
        if degraded {
            break;
        }
        let (status, _) = push(&server, &pushed);
        assert_eq!(status, 500);
    }
    assert!(degraded, "and whoever asks how it does is told");
    let known = pushed.lock().unwrap().clone();
    assert!(known.len() > 20, "there was a load: {}", known.len());
    for id in &known {
        assert_eq!(server.state(id), "available", "every 2xx push is there, and can be read: {id}");
    }

    fs::remove_file(&filler).unwrap();
    server.push_to("load", json!({}));
    assert_eq!(server.get("/ojs/v1/health").status, 200, "with room again it does well");
    let before = server.fires("tick").len();
    for _ in 0..3_000 {
        if server.fires("tick").len() > before {
            break;
        }
        pause(20);
    }
    let fires = server.fires("tick");
    assert!(fires.len() > before, "cron jobs go on");
    assert_eq!(fires.iter().collect::<BTreeSet<_>>().len(), fires.len(), "and none has fired twice");
    let mut fetched = BTreeSet::new();
    loop {
        let some = server.fetch("load", 50);
        if some.is_empty() {
            break;
        }
        for job in some {
            assert!(fetched.insert(text(&job["id"]).to_owned()), "handed out twice");
        }
    }
    assert_eq!(fetched.len(), known.len() + 1, "what was refused is not there");
}
