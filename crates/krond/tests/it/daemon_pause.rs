use std::fs;

use serde_json::Value;

use super::daemon::{World, mode};

const TWO: &str = "@every 1s @policy(deadline=1h) name=a shell=true command=\"echo $KRON_PERIOD_ID >> DIR/a\"\n\
                   @every 1s @policy(deadline=1h) name=b shell=true command=\"echo $KRON_PERIOD_ID >> DIR/b\"\n";

fn job(world: &World, name: &str) -> Value {
    world.json(&["jobs", name])[0].clone()
}

/// Waits until the other job has run some more. What is paused could have run too.
fn a_while(world: &World) {
    let before = world.lines("b").len();
    world.until("the other runs", |world| world.lines("b").len() > before + 1);
}

fn handled(world: &World) -> String {
    world.state_of("a")["LastHandledPeriodID"].as_str().unwrap().to_owned()
}

#[test]
fn a_paused_job_rests_through_stops_and_crashes_until_it_is_resumed() {
    let mut world = World::new(TWO);
    world.start();
    world.until("both run", |world| world.lines("a").len() > 1 && world.lines("b").len() > 1);
    let said = world.ask(&["pause", "a"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with("a is paused since 20"), "{}", said.out);
    let since = job(&world, "a")["pausedSince"].clone();
    assert!(since.is_string());
    let (mark, file) = (handled(&world), world.state_file("a"));
    assert_eq!((mode(&file), &world.state_of("a")["Paused"]), (0o600, &since));
    // Whoever asks again changes nothing.
    assert_eq!(world.json(&["pause", "a"])["pausedSince"], since);

    a_while(&world);
    let shown = job(&world, "a");
    assert_eq!((&shown["next"], &shown["suspended"]), (&Value::Null, &false.into()));
    assert!(shown["onResume"]["period"].as_str().unwrap() > mark.as_str(), "{shown}");
    assert!(world.ask(&["jobs", "a"]).out.contains("  paused  "));
    assert_eq!(world.json(&["status"])["paused"], 1);
    assert!(world.ask(&["status"]).out.contains(", 1 paused)"));
    assert!(world.ask(&["metrics"]).out.contains("\nkrond_paused_jobs 1\n"));
    let why = world.ask(&["why", "a", "--at", "now"]).out;
    assert!(why.contains("verdict:  the job is paused, since "), "{why}");

    world.stop();
    world.start();
    a_while(&world);
    world.crash();
    world.start();
    a_while(&world);
    assert_eq!((handled(&world), &job(&world, "a")["pausedSince"]), (mark.clone(), &since));
    assert!(world.lines("a").iter().all(|period| *period <= mark), "{mark}: {:?}", world.lines("a"));
    // A run by hand has nothing to do with it.
    world.run("a");
    world.until("it ran by hand", |world| {
        let is_by_hand =
            |record: &Value| record["kind"] == "completed" && record["run"].to_string().contains("manual");
        world.history("a").iter().any(is_by_hand)
    });

    let said = world.ask(&["resume", "a"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with("a is resumed; it was paused since 20"), "{}", said.out);
    world.until("it runs", |world| world.lines("a").iter().any(|period| *period > mark));
    assert_eq!(world.ask(&["resume", "a"]).out, "a was not paused\n");
    let history = world.history("a");
    let kinds = |kind: &str| history.iter().filter(|record| record["kind"] == kind).count();
    assert_eq!((kinds("paused"), kinds("resumed")), (1, 1), "{history:?}");
    let passed =
        history.iter().find(|record| record["kind"] == "passed").expect("what was paused is settled");
    assert_eq!(passed["reason"], "superseded");
    let first = passed["first"].as_str().unwrap();
    let why = world.ask(&["why", "a", "--at", first]).out;
    assert!(why.contains("; the job was paused from 20"), "{why}");
    let text = world.ask(&["history", "a", "--count", "100000"]).out;
    assert!(text.contains("paused         nothing starts until it is resumed"), "{text}");
    world.stop();
    let mut ids: Vec<String> = world.lines("a").into_iter().filter(|id| !id.is_empty()).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "no period ran twice");
}

#[test]
fn what_was_answered_survives_a_crash_at_once() {
    let mut world = World::new(TWO);
    for _ in 0..5 {
        for (verb, is_paused) in [("pause", true), ("resume", false)] {
            world.start();
            let said = world.ask(&[verb, "a"]);
            assert_eq!(said.code, 0, "{}", said.err);
            world.crash();
            assert_eq!(world.state_of("a")["Paused"].is_string(), is_paused, "{verb}");
        }
    }
    world.start();
    assert_eq!(job(&world, "a")["pausedSince"], Value::Null);
    world.stop();
}

#[test]
fn a_damaged_state_that_was_paused_stays_so() {
    let mut world = World::new(TWO);
    world.start();
    world.until("it runs", |world| !world.lines("a").is_empty());
    assert_eq!(world.ask(&["pause", "a"]).code, 0);
    world.stop();
    let file = world.state_file("a");
    let mut damaged = fs::read(&file).unwrap();
    damaged.truncate(damaged.len() - 10);
    fs::write(&file, &damaged).unwrap();
    let before = world.lines("a").len();
    world.start();
    assert_eq!(world.events("state_corrupt", "a").len(), 1);
    a_while(&world);
    assert!(job(&world, "a")["pausedSince"].is_string());
    assert_eq!(world.lines("a").len(), before);
    assert_eq!(world.ask(&["resume", "a"]).code, 0);
    world.until("it runs again", |world| world.lines("a").len() > before);
    world.stop();
}

#[test]
fn a_job_that_is_put_back_is_still_paused() {
    let mut world = World::new(TWO);
    world.start();
    assert_eq!(world.ask(&["pause", "a"]).code, 0);
    let since = job(&world, "a")["pausedSince"].clone();
    let other = TWO.lines().nth(1).unwrap();
    world.krontab(&format!("{other}\n"));
    assert_eq!(world.ask(&["reload"]).code, 0);
    let gone = world.ask(&["pause", "a"]);
    assert_eq!((gone.code, gone.err.as_str()), (1, "error: job not found: a\n"));
    world.krontab(TWO);
    assert_eq!(world.ask(&["reload"]).code, 0);
    assert_eq!(job(&world, "a")["pausedSince"], since);
    // Nor does another schedule wake it.
    world.krontab(&TWO.replacen("@every 1s", "@every 2s", 1));
    assert_eq!(world.ask(&["reload"]).code, 0);
    a_while(&world);
    assert_eq!(job(&world, "a")["pausedSince"], since);
    world.stop();
}
