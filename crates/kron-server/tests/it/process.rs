//! The process: it starts, says where it is, ends when asked, and is alone with its data.

use std::fs;
use std::net::TcpListener;
use std::process::{Output, Stdio};

use serde_json::json;

use super::server::{Home, Server, binary, cron, files, pause, text};

/// Runs a command that must end by itself, with a bound.
pub(crate) fn ended(mut command: std::process::Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..500 {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().unwrap();
        }
        pause(20);
    }
    child.kill().unwrap();
    panic!("it should have ended by itself: {:?}", child.wait_with_output());
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let server = Server::new();
    let home = server.home();
    let output = ended(home.command(&["--test-mode"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "a second process is refused: {said}");
    assert!(said.contains(&*home.data().to_string_lossy()), "it says which directory: {said}");
    let clear = ["use", "another", "lock", "running"].iter().any(|word| said.contains(word));
    assert!(clear && !said.contains("panicked"), "and why, clearly: {said}");
    assert!(output.stdout.is_empty(), "and never that it listens");
    server.push_to("q", json!({}));

    // Once the first is gone, even by force, the next may.
    let server = server.kill().start(&["--test-mode"]);
    assert_eq!(server.fetch("q", 1).len(), 1, "a lock does not outlive its process");
}

#[test]
fn sigterm_ends_it_gracefully_and_nothing_is_lost() {
    let server = Server::new();
    let job = server.push_to("q", json!({}));
    let before =
        (server.job(&job), server.register(cron("job", "@daily", json!({"args": [1], "enabled": false}))));
    let (home, status) = server.stop();
    assert_eq!(status.code(), Some(0), "SIGTERM ends it with exit 0");
    let server = home.start(&["--test-mode"]);
    assert_eq!((server.job(&job), server.cron("job")), before, "and everything is there afterwards");
}

#[test]
fn an_open_stream_does_not_keep_it_from_ending() {
    let server = Server::new();
    let mut stream = server.stream("/ojs/v1/events", None);
    server.push_to("q", json!({}));
    assert!(stream.next().is_some(), "the stream is open");
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0), "SIGTERM, with a client that never leaves");
    assert_eq!(stream.next(), None, "and the stream ends");
}

#[test]
fn it_makes_its_directory_and_keeps_what_is_in_it_private() {
    let server = Server::new();
    let data = server.home().data();
    assert!(!files(&data).is_empty(), "the data is where --data says");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&data).unwrap().permissions().mode();
        assert_eq!(
            mode & 0o007,
            0,
            "jobs carry secrets: others cannot read the directory it made ({mode:o})"
        );
    }
}

#[test]
fn what_cannot_start_says_why_and_is_not_zero() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut busy = std::process::Command::new(binary());
    busy.args(["--listen", &address, "--data"]).arg(home.data());
    let output = ended(busy);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(&address), "a port in use: {said}");
    assert!(!said.contains("panicked"), "a port in use: {said}");

    let output = ended(home.command(&["--no-such-option"]));
    assert_eq!(output.status.code(), Some(2), "an unknown option");

    let file = Home::new();
    fs::write(file.data(), "not a directory").unwrap();
    let output = ended(file.command(&[]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && !said.contains("panicked"),
        "a file where the directory should be: {said}"
    );
    assert!(said.contains(&*file.data().to_string_lossy()), "it says where: {said}");
    assert_eq!(fs::read_to_string(file.data()).unwrap(), "not a directory", "and leaves it alone");
}

#[test]
fn a_damaged_database_is_not_replaced_by_an_empty_one() {
    let server = Server::new();
    server.push_to("q", json!({}));
    let (home, _) = server.stop();
    // The journals beside it go, and only the database itself is left, and that is damaged.
    let path = |name: &String| home.data().join(name);
    let (beside, database): (Vec<_>, Vec<_>) =
        files(&home.data()).into_iter().partition(|name| name.ends_with("-wal") || name.ends_with("-shm"));
    beside.iter().for_each(|name| fs::remove_file(path(name)).unwrap());
    let largest = database.iter().map(path).max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let damaged = b"this is no database any more. ".repeat(300);
    fs::write(&largest, &damaged).unwrap();
    let output = ended(home.command(&["--test-mode"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && !said.contains("panicked"), "it says so and ends: {said}");
    assert_eq!(fs::read(&largest).unwrap(), damaged, "and what is left can still be rescued");
}

#[test]
fn a_restart_takes_up_what_was_waiting() {
    // On the real clock, for whom a restart is an ordinary pause.
    let home = Home::new();
    let server = home.start(&[]);
    let later = server.push_to("q", json!({"scheduled_at": "+PT0.2S"}));
    let failing = server.push_to("f", json!({"retry": {"initial_interval": "PT0.2S", "jitter": false}}));
    server.fetch_one("f");
    server.nack(&failing).is(200, "nack");
    let cron_job = server.register(cron("job", "* * * * * *", json!({})));
    server.kill();
    let server = home.start(&[]);
    for _ in 0..250 {
        let ready = server.state(&later) == "available" && server.state(&failing) == "available";
        if ready && !server.fires("job").is_empty() {
            assert_eq!(
                server.cron("job")["created_at"],
                cron_job["created_at"],
                "the registration is the same"
            );
            assert_eq!(text(&server.fetch_one("q")["id"]), later, "and the job is delivered");
            return;
        }
        pause(20);
    }
    panic!(
        "after a restart: {}, {}, {:?}",
        server.state(&later),
        server.state(&failing),
        server.fires("job")
    );
}
