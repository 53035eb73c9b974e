use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use super::daemon::{World, pause};
use super::world::{is_alive, kill};

/// Jobs that write down their period, and whether its claim was durable when they ran.
fn witnesses(world: &World) -> String {
    let line = |name: &str, rest: &str| {
        let state = world.state_file(name);
        format!(
            "@every 1s {rest} name={name} shell=true command=\"if grep -q \\\"$KRON_PERIOD_ID\\\" {0}; then echo \
             $KRON_PERIOD_ID; else echo unclaimed $KRON_PERIOD_ID; fi >> DIR/{name}\"\n",
            state.display()
        )
    };
    [
        line("a", "@policy(deadline=0s)"),
        line("b", "@policy(deadline=3s)"),
        line("c", "@policy(deadline=1h,concurrency=forbid)"),
        line("d", "@policy(deadline=1h,concurrency=replace)"),
        line("e", "@win(after,5s) @policy(deadline=3s)"),
        line("f", "@win(around,4s) @policy(deadline=10s)"),
    ]
    .concat()
}

#[test]
fn killed_at_any_moment_it_never_runs_a_period_twice() {
    let mut world = World::new("");
    world.krontab(&witnesses(&world));
    let mut random = RandomState::new().build_hasher();
    let mut delays = Vec::new();
    for number in 0..30 {
        random.write_u32(number);
        delays.push(i64::try_from(random.finish() % 900).unwrap());
    }
    for delay in &delays {
        world.launch();
        pause(*delay);
        world.crash();
    }
    world.start();
    let names = ["a", "b", "c", "d", "e", "f"];
    let before: BTreeMap<&str, usize> = names.map(|name| (name, world.lines(name).len())).into();
    world.until("all of them run", |world| names.iter().all(|name| world.lines(name).len() > before[name]));
    world.stop();
    for name in names {
        let mut ids = world.lines(name);
        assert!(!ids.is_empty());
        assert!(!ids.iter().any(|id| id.starts_with("unclaimed")), "{name}: {ids:?}, delays {delays:?}");
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name} ran a period twice; delays {delays:?}");
        let handled = world.state_of(name)["LastHandledPeriodID"].as_str().unwrap().to_owned();
        assert!(ids.last().unwrap() <= &handled, "{name}: the watermark {handled} covers {ids:?}");
    }
    assert!(world.events("state_corrupt", "a").is_empty());
}

#[test]
fn a_run_survives_its_krond_and_is_taken_over() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h,concurrency=forbid) name=long shell=true \
         command=\"echo $$ >> DIR/pids; exec sleep 1000\"\n",
    );
    world.start();
    world.until("it runs", |world| world.lines("pids").len() == 1);
    let pid: u32 = world.lines("pids")[0].parse().unwrap();
    world.crash();
    assert!(is_alive(pid), "nobody ends it");
    assert_eq!(world.ask(&["status"]).code, 1, "the socket that is left answers nobody");

    world.start();
    let status = world.json(&["status"]);
    assert_eq!((&status["active"], &status["jobs"]), (&1.into(), &1.into()));
    let job = &world.json(&["jobs", "long"])[0];
    assert_eq!(job["active"][0]["pid"], pid);
    assert_eq!(world.events("process_adopted", "long")[0]["pid"], pid);
    let before = world.reasons("long", "still-running");
    world.until("periods are skipped for it", |world| world.reasons("long", "still-running") > before + 1);
    assert_eq!(world.lines("pids").len(), 1, "nothing runs beside it");

    let period = job["active"][0]["run"].clone();
    kill(pid);
    world.until("the next one runs", |world| world.lines("pids").len() == 2);
    let ended = world.events("execution_completed", "long");
    assert_eq!((&ended[0]["run"], &ended[0]["exit_code"]), (&period, &"unknown".into()));
    let history = world.history("long");
    let ends: Vec<_> = history.iter().filter(|record| record["kind"] == "completed").collect();
    assert_eq!(ends.len(), 1, "its end is told once");
    assert_eq!((&ends[0]["run"], &ends[0]["exit"]), (&period, &serde_json::Value::Null));
    let text = world.ask(&["history", "long"]).out;
    assert!(text.contains("nobody saw how"), "{text}");
    world.stop();
}

#[test]
fn a_run_that_ended_meanwhile_is_known_to_have_run() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h,concurrency=forbid) name=long shell=true \
         command=\"echo $$ >> DIR/pids; exec sleep 1000\"\n",
    );
    world.start();
    world.until("it runs", |world| world.lines("pids").len() == 1);
    let period = world.state_of("long")["ActiveExecution"]["PeriodID"].clone();
    world.crash();
    let pid = world.lines("pids")[0].parse().unwrap();
    kill(pid);
    world.until("it has ended", |_| !is_alive(pid));
    world.start();
    world.until("another runs", |world| world.lines("pids").len() == 2);
    let state = world.state_of("long");
    let entry =
        state["History"].as_array().unwrap().iter().find(|entry| entry["PeriodID"] == period).unwrap();
    assert_eq!((&entry["Outcome"], &entry["ExitCode"]), (&"executed".into(), &serde_json::Value::Null));
    assert!(world.events("process_adopted", "long").is_empty());
    world.stop();
}

/// A run whose job is removed while no krond is there.
fn removed(rest: &str) -> (World, u32) {
    let mut world = World::new(&format!(
        "0 0 1 1 * name=long {rest} shell=true command=\"echo $$ >> DIR/pids; exec sleep 1000\"\n"
    ));
    world.start();
    world.run("long");
    world.until("it runs", |world| world.lines("pids").len() == 1);
    world.crash();
    world.krontab("@daily name=other command=/bin/true\n");
    world.start();
    let pid = world.lines("pids")[0].parse().unwrap();
    assert!(is_alive(pid), "nobody ends it");
    let adopted = world.events("process_adopted", "long");
    assert_eq!((adopted.len(), &adopted[0]["pid"]), (1, &pid.into()));
    assert_eq!(world.json(&["jobs"]).as_array().unwrap().len(), 1, "and it is no job");
    (world, pid)
}

#[test]
fn a_run_whose_job_was_removed_meanwhile_is_seen_to_its_end() {
    let (mut world, pid) = removed("");
    kill(pid);
    world.until("its end is told", |world| !world.events("execution_completed", "long").is_empty());
    world.stop();
    let state = world.state_of("long");
    assert_eq!((state.get("ActiveExecution"), state.get("OtherExecutions")), (None, None), "{state}");
    let told = world.events("process_adopted", "long").len();
    world.start();
    assert_eq!(world.events("process_adopted", "long").len(), told, "there is nothing left of it");
    world.stop();
}

#[test]
fn a_run_whose_job_was_removed_meanwhile_has_its_timeout() {
    let (mut world, pid) = removed("timeout=4s");
    world.until("it is ended", |_| !is_alive(pid));
    world.until("that is told", |world| !world.events("execution_completed", "long").is_empty());
    assert_eq!(world.events("execution_timeout", "long").len(), 1);
    world.stop();
}

#[test]
fn another_spawner_takes_the_place_of_one_that_ended() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h) name=limits shell=true command=\"(ulimit -Sn; ulimit -Hn) | paste -sd' ' >> DIR/limits\"\n",
    );
    let pid = world.start();
    world.until("it runs", |world| world.lines("limits").len() > 1);
    let spawner = || super::world::spawner_of(pid);
    for _ in 0..3 {
        let old = spawner().unwrap();
        let before = world.lines("limits").len();
        kill(old);
        world.until("it runs again", |world| world.lines("limits").len() > before + 1);
        assert_ne!(spawner(), Some(old));
    }
    let is_told = |line: &serde_json::Value| line["operation"] == "keep the spawner";
    assert_eq!(world.events("error", "").iter().filter(|line| is_told(line)).count(), 3);
    let mut limits = world.lines("limits");
    limits.dedup();
    assert_eq!(limits.len(), 1, "runs have the limits they always had");
    world.stop();
}
