use std::fs;

use super::daemon::World;
use super::world::is_alive;

#[test]
fn a_bad_file_changes_nothing_and_every_error_is_told() {
    let mut world =
        World::new("@every 1s @policy(deadline=1h) name=old shell=true command=\"echo old >> DIR/ran\"\n");
    world.start();
    world.until("it runs", |world| !world.lines("ran").is_empty());
    world.krontab("@every 1s @policy(deadline=1h) name=new shell=true command=\"echo new >> DIR/ran\"\n");
    world.krontab_as("worse", "61 * * * * name=a command=/bin/true\n* * * * * name=b\n");
    let said = world.ask(&["reload"]);
    assert_eq!(said.code, 1);
    for text in ["the configuration stays as it was", "2 errors", "etc/worse:1:", "etc/worse:2:"] {
        assert!(said.err.contains(text), "{text}: {}", said.err);
    }
    // The log has them all as well, in a line each.
    world.until("the log tells", |world| {
        let errors = world.events("error", "");
        errors.iter().filter(|line| line["operation"] == "reload").count() == 2
    });
    let before = world.lines("ran").len();
    world.until("the old one goes on", |world| world.lines("ran").len() > before + 1);
    assert!(world.lines("ran").iter().all(|line| line == "old"));
    assert_eq!(world.json(&["status"])["jobs"], 1);

    fs::remove_file(world.path("etc/worse")).unwrap();
    let said = world.ask(&["reload"]);
    assert_eq!((said.code, said.out.as_str()), (0, "krond has 1 job now\n"), "{}", said.err);
    world.until("the new one runs", |world| world.lines("ran").contains(&"new".into()));
    let count = world.lines("ran").iter().filter(|line| *line == "old").count();
    world.until("more of the new", |world| world.lines("ran").len() > count + 2);
    assert_eq!(world.lines("ran").iter().filter(|line| *line == "old").count(), count, "the old one is gone");
    world.stop();
}

#[test]
fn a_hangup_does_the_same() {
    let mut world = World::new("@every 1s @policy(deadline=1h) name=a command=/bin/true\n");
    world.start();
    world.krontab(
        "@every 1s @policy(deadline=1h) name=a command=/bin/true\n@daily name=b command=/bin/true\n",
    );
    world.signal("HUP");
    world.until("there are two", |world| world.json(&["status"])["jobs"] == 2);
    let reloaded = world.events("config_reloaded", "");
    let last = reloaded.last().unwrap();
    assert_eq!((&last["jobs"], &last["added"], &last["removed"]), (&2.into(), &1.into(), &0.into()));
    world.krontab("nonsense\n");
    world.signal("HUP");
    world.until("it is told", |world| {
        world.events("error", "").iter().any(|line| line["operation"] == "reload")
    });
    assert_eq!(world.json(&["status"])["jobs"], 2);
    world.stop();
}

#[test]
fn a_run_goes_on_when_its_job_is_removed_and_its_end_is_recorded() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h,concurrency=forbid) name=long shell=true \
         command=\"echo $$ >> DIR/pids; while [ ! -e DIR/go ]; do sleep 0.1; done; exit 7\"\n",
    );
    world.start();
    world.until("it runs", |world| world.lines("pids").len() == 1);
    let pid: u32 = world.lines("pids")[0].parse().unwrap();
    world.krontab("@daily name=other command=/bin/true\n");
    assert_eq!(world.ask(&["reload"]).code, 0);
    assert_eq!(world.ask(&["jobs", "long"]).code, 1);
    assert!(is_alive(pid));
    // It is in no list, and counted all the same: a graceful stop would wait for it.
    let status = world.json(&["status"]);
    assert_eq!((&status["active"], &status["activeOfRemoved"]), (&1.into(), &1.into()));
    let text = world.ask(&["status"]).out;
    assert!(text.contains("jobs:      1 (1 run active, 1 of a removed job)\n"), "{text}");
    assert!(world.ask(&["metrics"]).out.contains("\nkrond_active_runs 1\n"));
    fs::write(world.path("go"), "").unwrap();
    world.until("its end is told", |world| !world.events("execution_completed", "long").is_empty());
    assert_eq!(world.events("execution_completed", "long")[0]["exit_code"], 7);
    let state = world.state_of("long");
    assert_eq!(state["ActiveExecution"], serde_json::Value::Null);
    let last = state["History"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["ExitCode"], 7);
    // It is found by what is recorded of it.
    assert_eq!(world.history("long").last().unwrap()["exit"], 7);
    assert_eq!(world.lines("pids").len(), 1, "it has not run again");
    world.stop();
}

#[test]
fn a_job_that_comes_back_while_its_run_ends_is_there() {
    let job = "@every 1s @policy(deadline=1h,concurrency=forbid) name=back shell=true \
               command=\"echo $$ >> DIR/pids; sleep 0.2\"\n";
    let mut world = World::new(job);
    world.start();
    for round in 0..10 {
        let ran = world.lines("pids").len();
        world.until("it runs", |world| world.lines("pids").len() > ran);
        world.krontab("");
        assert_eq!(world.ask(&["reload"]).code, 0, "round {round}");
        assert_eq!(world.json(&["status"])["jobs"], 0);
        world.krontab(job);
        assert_eq!(world.ask(&["reload"]).code, 0, "round {round}");
        assert_eq!(world.json(&["status"])["jobs"], 1, "round {round}");
    }
    let mut ids: Vec<_> = world
        .history("back")
        .iter()
        .filter(|r| r["outcome"] == "executed")
        .map(|r| r["period"].to_string())
        .collect();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "no period twice");
    world.stop();
}

#[test]
fn an_edited_job_is_rescheduled_and_a_renamed_file_is_another_job() {
    let mut world = World::new("0 0 1 1 * @win(after,1h) name=yearly command=/bin/true\n");
    world.start();
    let next = |world: &World| world.json(&["jobs", "yearly"])[0]["next"].clone();
    let before = next(&world);
    world.krontab("0 0 1 1 * @win(after,2h) @seed(stable,salt=x) name=yearly command=/bin/true\n");
    let said = world.ask(&["reload"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let after = next(&world);
    assert_ne!(before["chosen"], after["chosen"]);
    world.until("it is told", |world| !world.events("reschedule", "yearly").is_empty());
    let line = &world.events("reschedule", "yearly")[0];
    assert_eq!(line["period"], before["period"]);
    assert_eq!((&line["previous_chosen"], &line["new_chosen"]), (&before["chosen"], &after["chosen"]));
    assert_eq!(line["reason"], "definition changed");

    fs::rename(world.path("etc/jobs"), world.path("etc/renamed")).unwrap();
    assert_eq!(world.ask(&["reload"]).code, 0);
    let job = &world.json(&["jobs", "yearly"])[0];
    assert_eq!(job["identity"], format!("{}:yearly", world.path("etc/renamed").display()));
    assert_ne!(job["next"]["chosen"], after["chosen"], "its times follow from its identity");
    world.until("the change is told", |world| {
        let reloaded = world.events("config_reloaded", "");
        reloaded.last().is_some_and(|line| line["added"] == 1 && line["removed"] == 1)
    });
    world.stop();
}

#[test]
fn many_reloads_at_once_are_all_answered_with_what_the_files_said_then() {
    let mut world = World::new("");
    world.start();
    for jobs in 1..=8 {
        let text: String = (0..jobs).map(|job| format!("@daily name=j{job} command=/bin/true\n")).collect();
        world.krontab(&text);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(world.ask(&["reload"]).code, 0));
            }
        });
        // Each of them was asked for after the file was written.
        assert_eq!(world.json(&["status"])["jobs"], jobs);
    }
    world.stop();
}

#[test]
fn a_new_job_may_have_the_place_of_one_that_is_gone() {
    let job = |name: &str| format!("@daily name={name} command=/bin/true\n");
    let mut world = World::new(&job("a"));
    world.start();
    for jobs in [job("b"), job("b") + &job("c"), job("d") + &job("c"), job("d") + &job("e") + &job("f")] {
        world.krontab(&jobs);
        assert_eq!(world.ask(&["reload"]).code, 0);
        let there: Vec<String> = world
            .json(&["jobs"])
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["name"].as_str().unwrap().to_owned())
            .collect();
        for line in jobs.lines() {
            assert!(there.iter().any(|name| line.contains(&format!("name={name} "))), "{line}: {there:?}");
        }
        assert_eq!(there.len(), jobs.lines().count(), "{there:?}");
    }
    world.stop();
}
