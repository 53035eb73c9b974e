use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use krond::control::SOCKET;
use serde_json::Value;

use super::daemon::{NOBODY, World, mode};
use super::world::is_root;

const JOB: &str = "@every 1s @policy(deadline=1h) name=tick shell=true command=\"echo x >> DIR/ticks\"\n";

fn connect(world: &World) -> UnixStream {
    let stream = UnixStream::connect(world.state.join(SOCKET)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Says something, and hears the answer.
fn say(world: &World, bytes: &[u8]) -> Value {
    let mut stream = connect(world);
    // It may have heard enough before everything is said.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    serde_json::from_str(&answer).unwrap_or_default()
}

#[test]
fn the_socket_is_closed_to_others() {
    let mut world = World::new(JOB);
    world.start();
    assert_eq!(mode(&world.state.join(SOCKET)), 0o600);
    assert_eq!(mode(&world.state), 0o700);
    if !is_root() {
        return;
    }
    // Somebody else does not even get there.
    let mut status = Command::new("setpriv");
    status.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(world.path("krond"));
    let said = status.args(["status", "--state-dir"]).arg(&world.state).env("HOME", "/").output().unwrap();
    let wrong = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(said.status.code(), Some(2), "{wrong}");
    assert!(wrong.contains("Permission denied"), "{wrong}");
    world.stop();
    assert!(!world.state.join(SOCKET).exists());
}

#[test]
fn whoever_gets_there_is_asked_who_they_are() {
    let Some(mut world) = World::of_nobody("@daily name=a command=/bin/true\n") else { return };
    world.start();
    // Root may.
    assert_eq!(say(&world, b"{\"op\":\"status\"}\n")["ok"], true);
    // Somebody who can go anywhere and is neither root nor nobody.
    let output = Command::new("setpriv")
        .args([
            "--reuid=1",
            "--regid=1",
            "--clear-groups",
            "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override",
            "--",
        ])
        .arg(world.path("krond"))
        .args(["stop", "--state-dir"])
        .arg(&world.state)
        .env("HOME", "/")
        .output()
        .unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{wrong}");
    assert!(wrong.contains("only root and the user that runs krond may ask"), "{wrong}");
    assert_eq!(world.json(&["status"])["running"], true, "it was not stopped");
    world.stop();
}

#[test]
fn nonsense_costs_nothing() {
    let mut world = World::new(JOB);
    world.start();
    let long = [b"{\"op\":\"run\",\"job\":\"".as_slice(), &vec![b'x'; 10 << 20]].concat();
    for bytes in [
        b"".as_slice(),
        b"\n",
        b"nonsense\n",
        b"{\"op\":\"status\"",
        b"{\"op\":\"frobnicate\"}\n",
        b"{\"op\":\"stop\",\"more\":1}\n",
        b"{\"op\":\"run\",\"job\":7}\n",
        b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
        b"\xff\xfe\x00\n",
        &vec![b'['; 60_000],
        &long,
    ] {
        let answer = say(&world, bytes);
        // The answer to what is too long may not be waited for.
        assert!(answer["ok"] == false || bytes.len() > 65_536, "{answer}");
    }
    assert_eq!(
        say(&world, b"{\"op\":\"status\"}\n{\"op\":\"stop\"}\n")["ok"],
        true,
        "one request, one answer"
    );
    let ticks = world.lines("ticks").len();
    world.until("jobs run", |world| world.lines("ticks").len() > ticks + 1);
    assert_eq!(world.json(&["status"])["running"], true);
    world.stop();
}

#[test]
fn many_who_say_nothing_do_not_keep_others_from_asking() {
    let mut world = World::new(JOB);
    let pid = world.start();
    let mut silent: Vec<UnixStream> = (0..300).map(|_| connect(&world)).collect();
    for (at, stream) in silent.iter_mut().enumerate() {
        // Some of them begin to speak.
        if at % 3 == 0 {
            let _ = stream.write_all(b"{\"op\":");
        }
    }
    for _ in 0..20 {
        let said = world.ask(&["status"]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
    assert!(threads < 150, "{threads} threads");
    let ticks = world.lines("ticks").len();
    world.until("jobs run", |world| world.lines("ticks").len() > ticks + 1);
    // And they do not hold up the end.
    world.stop();
    drop(silent);
}

#[test]
fn many_ask_at_once_and_all_are_answered() {
    let mut world = World::new(JOB);
    world.start();
    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| assert_eq!(say(&world, b"{\"op\":\"jobs\"}\n")["result"][0]["name"], "tick"));
        }
    });
    world.stop();
}

#[test]
fn without_threads_it_says_so_and_goes_on() {
    let Some(mut world) = World::of_nobody("@every 1s @policy(deadline=1h) name=tick command=/bin/true\n")
    else {
        return;
    };
    let pid = world.start();
    let limit = |most: &str| {
        let mut command = Command::new(NOBODY[0]);
        command.args(&NOBODY[1..]).args(["prlimit", "--pid", &pid.to_string(), &format!("--nproc={most}:")]);
        assert!(command.status().unwrap().success());
    };
    limit("1");
    for words in [&["status"][..], &["jobs"], &["reload"]] {
        let said = world.ask(words);
        assert!(said.code != 0 && said.err.contains("could not begin a thread"), "{words:?}: {}", said.err);
    }
    world.signal("HUP");
    let is_told = |line: &serde_json::Value| {
        line["operation"] == "reload" && line["error"].as_str().unwrap().contains("could not begin a thread")
    };
    world.until("that is told", |world| world.events("error", "").iter().any(is_told));
    let before = world.events("execution_completed", "tick").len();
    world.until("runs go on", |world| world.events("execution_completed", "tick").len() > before + 1);
    limit("1000");
    assert_eq!(world.json(&["status"])["jobs"], 1);
    assert_eq!(world.ask(&["reload"]).code, 0);
    world.stop();
}
