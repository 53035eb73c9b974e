use std::collections::BTreeMap;
use std::fs;

use krond::clock;
use serde_json::Value;

use super::daemon::{World, turn};

/// How many come due in one second.
const JOBS: usize = 1_000;

/// How far apart their periods are. Long enough for all of them to run on a slow machine.
const EVERY: i64 = 20;

#[test]
fn a_thousand_that_are_due_in_one_second_all_run_and_none_is_late() {
    let line = |job: usize| format!("@every {EVERY}s @policy(deadline=0s) name=j{job} command=/bin/true\n");
    let mut world = World::new(&(0..JOBS).map(line).collect::<String>());
    // It is up well before they come due.
    while !(2..EVERY - 8).contains(&(clock::now().second() % EVERY)) {
        turn();
    }
    world.start();
    let now = clock::now().second();
    let due = jiff::Timestamp::from_second(now + EVERY - now % EVERY).unwrap().to_string();
    let outcomes = |world: &World| {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for file in fs::read_dir(world.state.join("outcomes")).into_iter().flatten() {
            for line in fs::read_to_string(file.unwrap().path()).unwrap().lines() {
                let record: Value = serde_json::from_str(line).unwrap_or_default();
                if record["kind"] == "outcome" && record["period"] == due {
                    *found.entry(record["outcome"].to_string()).or_default() += 1;
                }
            }
        }
        found
    };
    world.until("all have an outcome", |world| outcomes(world).values().sum::<usize>() >= JOBS);
    assert_eq!(outcomes(&world), BTreeMap::from([("\"executed\"".into(), JOBS)]));
    world.until("all have ended", |world| world.json(&["status"])["active"] == 0);
    let metrics = world.ask(&["metrics"]).out;
    let succeeded = format!("krond_runs_completed_total{{result=\"succeeded\"}} {JOBS}\n");
    assert!(metrics.contains(&succeeded), "{metrics}");
    world.stop();
}
