use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use krond::children::Signal;
use serde_json::Value;

use super::daemon::World;
use super::world::{hold, is_alive, kill, spawner_of};

/// A run that ends when it is told to, or by a signal.
const LONG: &str = "0 0 1 1 * name=long shell=true command=\"echo $$ >> DIR/pids; while [ ! -e DIR/go ]; do sleep 0.1; done; exit 3\"\n";

fn started(world: &mut World) -> u32 {
    world.start();
    world.run("long");
    world.until("it runs", |world| world.lines("pids").len() == 1);
    world.lines("pids")[0].parse().unwrap()
}

#[test]
fn a_stop_leaves_runs_to_the_next_krond() {
    let mut world = World::new(LONG);
    let pid = started(&mut world);
    world.stop();
    assert!(is_alive(pid));
    assert_eq!(world.ask(&["status"]).code, 1);
    world.start();
    assert_eq!(world.json(&["status"])["active"], 1);
    fs::write(world.path("go"), "").unwrap();
    world.until("its end is told", |world| !world.events("execution_completed", "long").is_empty());
    world.stop();
}

#[test]
fn a_graceful_stop_waits_and_starts_nothing_more() {
    let mut world = World::new(&format!(
        "{LONG}@every 1s @policy(deadline=1h) name=tick shell=true command=\"echo x >> DIR/ticks\"\n"
    ));
    let pid = started(&mut world);
    world.until("the other runs", |world| !world.lines("ticks").is_empty());
    let mut stop = world.command(&["stop", "--graceful", "--state-dir", "state"]).spawn().unwrap();
    // What is refused now is asked for after it.
    world.until("it stops", |world| world.ask(&["run", "tick"]).err.contains("krond is stopping"));
    let ticks = world.lines("ticks").len();
    super::daemon::pause(2_500);
    assert!(world.lines("ticks").len() <= ticks + 1, "nothing more is started");
    assert!(stop.try_wait().unwrap().is_none(), "it waits");
    assert!(is_alive(pid));
    fs::write(world.path("go"), "").unwrap();
    assert!(stop.wait().unwrap().success());
    assert_eq!(world.ended(), Some(0));
    assert_eq!(world.events("execution_completed", "long")[0]["exit_code"], 3, "its end is recorded");
    assert_eq!(world.state_of("long").get("OtherExecutions"), None);
}

#[test]
fn a_stop_can_end_runs_and_the_later_word_counts() {
    let mut world = World::new(LONG);
    let pid = started(&mut world);
    let mut graceful = world.command(&["stop", "--graceful", "--state-dir", "state"]).spawn().unwrap();
    world.until("it stops", |world| world.ask(&["run", "long"]).err.contains("krond is stopping"));
    let said = world.ask(&["stop", "--end-runs"]);
    assert_eq!((said.code, said.out.as_str()), (0, "krond has stopped\n"), "{}", said.err);
    assert!(graceful.wait().unwrap().success(), "who waited is told as well");
    assert_eq!(world.ended(), Some(0));
    assert!(!is_alive(pid));
    assert_eq!(world.events("execution_stopped", "long")[0]["signal"], "TERM");
    assert_eq!(world.events("execution_completed", "long")[0]["exit_code"], 143);
    assert_eq!(world.ask(&["stop", "--graceful", "--end-runs"]).code, 2, "one of them");
}

#[test]
fn the_setting_says_what_a_signal_does_to_runs() {
    for (on_stop, signal, is_left) in [("leave", "TERM", true), ("end", "TERM", false), ("end", "INT", false)]
    {
        let mut world = World::new(LONG);
        world.settings(&format!("grace = \"1s\"\non_stop = \"{on_stop}\"\n"));
        let pid = started(&mut world);
        world.signal(signal);
        assert_eq!(world.ended(), Some(0), "{on_stop} {signal}");
        assert_eq!(is_alive(pid), is_left, "{on_stop} {signal}");
        assert_eq!(world.log().last().unwrap()["event"], "stopped");
    }
    let mut world = World::new(LONG);
    world.settings("on_stop = \"wait\"\n");
    let pid = started(&mut world);
    world.signal("TERM");
    world.until("it stops", |world| world.ask(&["run", "long"]).err.contains("krond is stopping"));
    assert!(is_alive(pid));
    fs::write(world.path("go"), "").unwrap();
    assert_eq!(world.ended(), Some(0));
    assert_eq!(world.events("execution_completed", "long")[0]["exit_code"], 3);
}

#[test]
fn whoever_started_it_is_told_how_it_is() {
    let mut world = World::new("@daily name=a command=/bin/true\n");
    let path = world.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    world.env.push(("NOTIFY_SOCKET".into(), path.display().to_string()));
    let mut buffer = [0; 256];
    let mut hear = || {
        let length = socket.recv(&mut buffer).expect("it says something");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    world.launch();
    assert_eq!(hear(), "READY=1");
    // By then it answers.
    assert_eq!(world.json(&["status"])["jobs"], 1);
    world.stop();
    assert_eq!(hear(), "STOPPING=1");
    world.launch();
    assert_eq!(hear(), "READY=1");
    world.signal("TERM");
    assert_eq!(hear(), "STOPPING=1");
    assert_eq!(world.ended(), Some(0));
    // One that cannot start is never ready.
    world.krontab("nonsense\n");
    world.launch();
    assert_eq!(world.ended(), Some(1));
    socket.set_nonblocking(true).unwrap();
    assert!(socket.recv(&mut [0; 8]).is_err());
}

#[test]
fn a_log_that_nobody_reads_holds_up_neither_runs_nor_the_end() {
    let world = World::new(
        "@every 1s @policy(deadline=1h) name=tick shell=true command=\"echo x >> DIR/ticks\" stdout=discard stderr=discard\n",
    );
    // The pipe takes 64 KiB, and nobody takes it from there.
    let mut command = world.command(&[
        "start",
        "--foreground",
        "--config",
        "etc",
        "--state-dir",
        "state",
        "--settings",
        "krond.toml",
    ]);
    let mut daemon = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    world.until("it runs", |world| world.lines("ticks").len() > 1);
    // Errors are long lines.
    world.krontab(&format!("{}\n", "x".repeat(4_000)));
    for _ in 0..40 {
        assert_eq!(world.ask(&["reload"]).code, 1);
    }
    let ticks = world.lines("ticks").len();
    world.until("it still runs", |world| world.lines("ticks").len() > ticks + 1);
    assert_eq!(world.ask(&["stop"]).code, 0);
    let mut ended = None;
    world.until("it has ended", |_| {
        ended = daemon.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(0));
    let outcomes = fs::read_dir(world.state.join("outcomes")).unwrap().count();
    assert_eq!(outcomes, 1, "the records are there");
    let records = world.json(&["history", "tick", "--config", "/nonexistent", "--count", "1000"]);
    let executed = |record: &&Value| record["outcome"] == "executed";
    assert!(records.as_array().unwrap().iter().filter(executed).count() >= ticks);
}

#[test]
fn asked_twice_it_waits_for_nothing() {
    let mut world = World::new(LONG);
    world.settings("grace = \"1s\"\non_stop = \"end\"\n");
    let pid = started(&mut world);
    // The end of the run cannot be recorded any more.
    fs::remove_dir_all(&world.state).unwrap();
    world.signal("TERM");
    world.until("it has ended the run", |_| !is_alive(pid));
    world.until("it cannot record that", |world| !world.events("error", "long").is_empty());
    world.signal("TERM");
    assert_eq!(world.ended(), Some(0));
}

#[test]
fn a_stop_waits_for_no_state_that_cannot_be_read() {
    let mut world = World::new(&format!("{LONG}@hourly name=hurt command=/bin/true\n"));
    world.make_state();
    fs::create_dir(world.state_file("hurt")).unwrap();
    for how in ["--graceful", "--end-runs", "--graceful", "--end-runs"] {
        world.start();
        world.until("it is held", |world| world.json(&["status"])["held"][0]["operation"] == "read state");
        let said = world.ask(&["stop", how]);
        assert_eq!((said.code, said.out.as_str()), (0, "krond has stopped\n"), "{}", said.err);
        assert_eq!(world.ended(), Some(0));
    }
}

/// More than a few waves.
const JOBS: usize = 1_200;

/// Jobs that all come due at once, and are long to be told of. Each writes its name down.
fn burst() -> World {
    let variable = "x".repeat(700);
    let line = |job: usize| {
        format!(
            "@every 1h @policy(deadline=1h) name=j{job} env=LONG={variable} shell=true \
             command=\"echo j{job} >> DIR/ran\"\n"
        )
    };
    World::new(&(0..JOBS).map(line).collect::<String>())
}

/// What was recorded as executed, and what has run.
fn recorded_and_run(world: &World) -> (Vec<String>, Vec<String>) {
    let is_recorded = |name: &String| world.state_of(name)["LastOutcome"] == "executed";
    let recorded = (0..JOBS).map(|job| format!("j{job}")).filter(is_recorded);
    let mut recorded: Vec<String> = recorded.collect();
    let mut ran = world.lines("ran");
    recorded.sort();
    ran.sort();
    (recorded, ran)
}

#[test]
fn whatever_was_recorded_as_executed_runs_though_krond_stops_amid_a_burst() {
    let mut world = burst();
    world.launch();
    world.until("the first has run", |world| !world.lines("ran").is_empty());
    world.signal("TERM");
    assert_eq!(world.ended(), Some(0));
    // They are let go by then, and take as long as they take.
    world.until("whatever was recorded has run", |world| {
        let (recorded, ran) = recorded_and_run(world);
        recorded.len() <= ran.len()
    });
    super::daemon::pause(300);
    let (recorded, ran) = recorded_and_run(&world);
    assert!(ran.len() < JOBS, "it stopped before all had run");
    assert_eq!(recorded, ran);
}

#[test]
fn asked_twice_it_waits_for_no_spawner_that_hangs() {
    let mut world = burst();
    let pid = world.launch();
    world.until("the first has run", |world| !world.lines("ran").is_empty());
    let spawner = Killed(spawner_of(pid).unwrap());
    hold(spawner.0).unwrap().signal(Signal::Stop).unwrap();
    world.signal("TERM");
    super::daemon::pause(500);
    world.signal("TERM");
    assert_eq!(world.ended(), Some(0));
}

/// A process that is ended however its test goes, and with it those that wait at its gates.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        kill(self.0);
    }
}
