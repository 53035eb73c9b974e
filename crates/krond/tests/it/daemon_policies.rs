use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::daemon::World;
use super::world::is_alive;

/// A run that starts a child in a session of its own, and writes down who both are. It ends only when told.
const TREE: &str = "trap '' TERM; setsid sleep 1000 & setsid sh -c 'trap \\\"\\\" TERM; echo $$ >> DIR/pids; while :; do sleep 1; done' & \
                    echo $$ >> DIR/pids; while :; do sleep 1; done";

fn starts(world: &World, name: &str) -> Vec<Value> {
    world.events("execution_started", name)
}

#[test]
fn forbid_skips_what_comes_due_meanwhile() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h,concurrency=forbid) name=slow shell=true command=\"echo x >> DIR/ran; while [ ! -e DIR/go ]; do sleep 0.1; done\"\n\
         @every 1s @policy(deadline=1h) name=other command=/bin/true\n",
    );
    world.start();
    world.until("three are skipped", |world| world.reasons("slow", "still-running") >= 3);
    assert_eq!(world.lines("ran").len(), 1);
    assert!(starts(&world, "other").len() >= 3, "nobody else waits");
    fs::write(world.path("go"), "").unwrap();
    world.until("it runs again", |world| world.lines("ran").len() >= 2);
    let skipped = world.events("skipped_concurrency", "slow");
    assert_eq!((&skipped[0]["outcome"], &skipped[0]["component"]), (&"skipped".into(), &"policy".into()));
    world.stop();
}

#[test]
fn allow_runs_beside() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h,concurrency=allow) name=many command=\"/bin/sleep 1000\"\n",
    );
    world.start();
    world.until("three at a time", |world| world.json(&["status"])["active"].as_u64().unwrap() >= 3);
    let active = world.json(&["jobs", "many"])[0]["active"].as_array().unwrap().clone();
    let pids: BTreeSet<u64> = active.iter().map(|run| run["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids.len(), active.len());
    // All of them are known to the next krond, too.
    world.crash();
    world.start();
    let adopted = world.json(&["jobs", "many"])[0]["active"].as_array().unwrap().clone();
    assert!(active.iter().all(|run| adopted.contains(run)), "{active:?} {adopted:?}");
    world.stop();
}

#[test]
fn replace_ends_the_whole_tree_before_the_next_starts() {
    // A run that finds one of the run before alive says so.
    let krontab = format!(
        "@every 2s @policy(deadline=1h,concurrency=replace) name=tree shell=true command=\"for p in $(cat DIR/pids \
         2>/dev/null); do grep -qs . /proc/$p/cmdline && echo $p >> DIR/overlap; done; {TREE}\"\n"
    );
    let mut world = World::new(&krontab);
    world.start();
    world.until("three runs", |world| starts(world, "tree").len() >= 3 && world.lines("pids").len() >= 6);
    assert_eq!(world.lines("overlap"), Vec::<String>::new());
    let replaced = world.events("replaced_job", "tree");
    assert_eq!(replaced[0]["signal"], "TERM");
    assert!(replaced.iter().any(|line| line["signal"] == "KILL"), "it does not go politely");
    let ended = world.events("execution_completed", "tree");
    assert_eq!(ended[0]["exit_code"], 137);
    // The end of each comes before the start of the next.
    let order: Vec<&str> = ["execution_started", "execution_completed"].into();
    let log = world.log();
    let seen: Vec<&str> =
        log.iter().filter_map(|line| line["event"].as_str()).filter(|event| order.contains(event)).collect();
    assert!(seen.iter().enumerate().all(|(at, event)| *event == order[at % 2]), "{seen:?}");
    assert_eq!(world.ask(&["stop", "--end-runs"]).code, 0);
    assert_eq!(world.processes(), Vec::<u32>::new());
}

#[test]
fn a_timeout_ends_the_whole_tree_politely_and_then_not() {
    let krontab = format!(
        "0 0 1 1 * name=polite timeout=1s command=\"/bin/sleep 1000\"\n\
         0 0 1 1 * name=stubborn timeout=1s shell=true command=\"{TREE}\"\n"
    );
    let mut world = World::new(&krontab);
    world.start();
    for job in ["polite", "stubborn"] {
        world.run(job);
    }
    world.until("both have ended", |world| {
        ["polite", "stubborn"].iter().all(|job| !world.events("execution_completed", job).is_empty())
    });
    let signals = |job: &str| -> Vec<String> {
        let lines = world.events("execution_timeout", job);
        lines.iter().map(|line| line["signal"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(signals("polite"), ["TERM"]);
    assert_eq!(signals("stubborn"), ["TERM", "KILL"]);
    assert_eq!(world.events("execution_completed", "polite")[0]["exit_code"], 143);
    assert_eq!(world.events("execution_completed", "stubborn")[0]["exit_code"], 137);
    assert_eq!(world.lines("pids").len(), 2);
    assert!(!world.lines("pids").iter().any(|pid| is_alive(pid.parse().unwrap())), "nobody of it is left");
    assert_eq!(world.processes(), Vec::<u32>::new());
    world.stop();
}

#[test]
fn every_way_to_end_is_recorded() {
    let cases = [
        ("zero", "exit 0", 0),
        ("three", "exit 3", 3),
        ("term", "kill -TERM $$", 143),
        ("kill", "kill -9 $$", 137),
    ];
    let line = |(name, command, _): &(&str, &str, i32)| {
        format!("0 0 1 1 * name={name} shell=true command=\"{command}\"\n")
    };
    let mut world = World::new(&cases.iter().map(line).collect::<String>());
    // A program that is there, and is none.
    fs::write(world.path("broken"), "\u{7f}ELF nonsense").unwrap();
    fs::set_permissions(world.path("broken"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.krontab(
        &(cases.iter().map(line).collect::<String>() + "0 0 1 1 * name=broken command=DIR/broken\n"),
    );
    world.start();
    let cases: Vec<(&str, i32)> =
        cases.iter().map(|(name, _, code)| (*name, *code)).chain([("broken", 126)]).collect();
    for (name, _) in &cases {
        world.run(name);
    }
    for (name, code) in cases {
        world.until("it has ended", |world| !world.events("execution_completed", name).is_empty());
        let line = &world.events("execution_completed", name)[0];
        assert_eq!(line["exit_code"], code, "{name}");
        assert_eq!(line["level"], if code == 0 { "INFO" } else { "WARN" }, "{name}");
        assert_eq!(world.history(name).last().unwrap()["exit"], code, "{name}");
    }
    world.stop();
}

#[test]
fn a_period_whose_run_fails_is_executed_all_the_same() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h,concurrency=allow) name=bad shell=true command=\"exit 5\"\n",
    );
    world.start();
    world.until("its ends are told", |world| world.events("execution_completed", "bad").len() >= 2);
    let records = world.history("bad");
    let outcomes: Vec<&Value> = records.iter().filter(|record| record["kind"] == "outcome").collect();
    assert!(outcomes.iter().all(|record| record["outcome"] == "executed"), "{outcomes:?}");
    let periods: Vec<&Value> = outcomes.iter().map(|record| &record["period"]).collect();
    let once: BTreeSet<String> = periods.iter().map(ToString::to_string).collect();
    assert_eq!(once.len(), periods.len(), "no failure is tried again");
    let history = world.state_of("bad")["History"].as_array().unwrap().clone();
    assert_eq!((&history[0]["Outcome"], &history[0]["ExitCode"]), (&"executed".into(), &5.into()));
    world.stop();
}

#[test]
fn a_program_that_is_not_there_holds_its_job_alone_until_its_deadline() {
    let mut world = World::new(
        "@every 5s @policy(deadline=2s) name=gone command=DIR/program\n\
         @every 1s @policy(deadline=1h) name=other command=/bin/true\n",
    );
    world.start();
    let held = |world: &World| world.json(&["status"])["held"].clone();
    world.until("it is held", |world| {
        held(world)[0]["failures"].as_u64().is_some_and(|failures| failures >= 2)
    });
    let held = held(&world);
    assert_eq!(
        (&held[0]["identity"], &held[0]["operation"]),
        (&world.identity("gone").into(), &"start".into())
    );
    let error = held[0]["error"].as_str().unwrap();
    assert!(error.contains("could not run") && error.contains("No such file"), "{error}");
    let text = world.ask(&["status"]).out;
    assert!(text.contains("held:      ") && text.contains("No such file"), "{text}");
    assert!(world.ask(&["jobs"]).out.contains("held"));
    assert!(world.ask(&["metrics"]).out.contains("\nkrond_held_jobs 1\n"));
    world.until("why is told", |world| {
        let why = world.ask(&["why", "gone", "--at", "now"]).out;
        why.contains("verdict:  it waits, and is tried again: could not start (")
            && why.contains("No such file")
    });
    let before = world.events("missed_deadline", "gone").len();
    world.until("it is missed", |world| world.events("missed_deadline", "gone").len() > before);
    let missed = &world.events("missed_deadline", "gone")[before];
    assert_eq!((&missed["outcome"], &missed["deadline"]), (&"missed".into(), &"2s".into()));
    assert!(starts(&world, "gone").is_empty());
    assert!(world.events("error", "gone").len() >= 2, "it was tried again");
    let others = starts(&world, "other").len();
    world.until("others go on", |world| starts(world, "other").len() > others + 1);

    // A run by hand says at once what is wrong.
    world.until("it is told", |world| {
        let said = world.ask(&["run", "gone"]);
        assert_eq!(said.code, 1);
        said.err.contains("No such file")
    });

    std::os::unix::fs::symlink("/bin/true", world.path("program")).unwrap();
    world.until("it runs", |world| !starts(world, "gone").is_empty());
    world.until("it is not held", |world| world.json(&["status"])["held"] == serde_json::json!([]));
    world.stop();
}

#[test]
fn nobody_escapes_by_starting_others_while_it_is_killed() {
    // Four of them start others in sessions of their own, as fast as they can.
    let mut world =
        World::new("0 0 1 1 * name=flee timeout=1s shell=true command=\"trap '' TERM; exec sh DIR/flee\"\n");
    fs::write(
        world.path("flee"),
        "trap '' TERM\ni=0\nwhile [ $i -lt 4 ]; do i=$((i+1)); (while :; do setsid sleep 1000 & sleep 0.02; done) & done\nwait\n",
    )
    .unwrap();
    world.settings("grace = \"0s\"\n");
    world.start();
    for round in 1..=3 {
        world.run("flee");
        world.until("it has ended", |world| world.events("execution_completed", "flee").len() == round);
        assert_eq!(world.events("execution_completed", "flee")[round - 1]["exit_code"], 137);
        assert_eq!(world.processes(), Vec::<u32>::new(), "round {round}");
    }
    world.stop();
}
