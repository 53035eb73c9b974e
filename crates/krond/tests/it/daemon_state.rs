use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::daemon::World;
use super::world::is_root;

const TWO: &str = "@every 1s @policy(deadline=1h) name=hurt shell=true command=\"echo $KRON_PERIOD_ID >> DIR/hurt\"\n\
                   @every 1s @policy(deadline=1h) name=sound shell=true command=\"echo $KRON_PERIOD_ID >> DIR/sound\"\n";

fn names(world: &World, part: &str) -> Vec<String> {
    let names =
        fs::read_dir(&world.state).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(part)).collect()
}

#[test]
fn a_damaged_state_is_kept_and_nothing_that_may_have_run_runs_again() {
    let mut world = World::new(TWO);
    world.start();
    world.until("both run", |world| world.lines("hurt").len() > 1 && world.lines("sound").len() > 1);
    world.stop();
    let file = world.state_file("hurt");
    let mut damaged = fs::read(&file).unwrap();
    damaged.truncate(damaged.len() / 2);
    fs::write(&file, &damaged).unwrap();
    let before = (world.lines("hurt").len(), world.lines("sound").len());

    world.start();
    world.until("both run again", |world| {
        world.lines("hurt").len() > before.0 + 1 && world.lines("sound").len() > before.1 + 1
    });
    let told = world.events("state_corrupt", "hurt");
    assert_eq!((told.len(), &told[0]["level"]), (1, &"ERROR".into()));
    assert!(world.events("state_corrupt", "sound").is_empty());
    let kept = told[0]["kept_as"].as_str().unwrap();
    assert!(
        kept.starts_with(file.file_name().unwrap().to_str().unwrap()) && kept.contains(".corrupt."),
        "{kept}"
    );
    assert_eq!(fs::read(world.state.join(kept)).unwrap(), damaged);
    let fence = told[0]["fence"].as_str().unwrap().to_owned();
    assert!(
        world.lines("hurt")[before.0..].iter().all(|id| *id > fence),
        "{fence}: {:?}",
        world.lines("hurt")
    );
    world.stop();
    let mut ids = world.lines("hurt");
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn a_state_that_cannot_be_read_holds_its_job_alone() {
    let mut world = World::new(TWO);
    world.make_state();
    let file = world.state_file("hurt");
    fs::create_dir(&file).unwrap();
    world.start();
    world.until("the other runs", |world| world.lines("sound").len() > 1);
    let held = world.json(&["status"])["held"].clone();
    assert_eq!(held.as_array().unwrap().len(), 1);
    assert_eq!(
        (&held[0]["identity"], &held[0]["operation"]),
        (&world.identity("hurt").into(), &"read state".into())
    );
    assert_eq!(world.lines("hurt"), Vec::<String>::new());
    world.until("a run is refused for that", |world| {
        let said = world.ask(&["run", "hurt"]);
        assert_eq!(said.code, 1);
        said.err.contains("it is held: could not read")
    });
    fs::remove_dir(&file).unwrap();
    world.until("it runs", |world| !world.lines("hurt").is_empty());
    world.until("that is told", |world| !world.events("recovered", "hurt").is_empty());
    world.stop();
}

#[test]
fn of_many_that_are_held_some_are_named_and_all_are_counted() {
    let line = |job: usize| format!("@hourly name=j{job} command=/bin/true\n");
    let mut world = World::new(&(0..25).map(line).collect::<String>());
    world.make_state();
    for job in 0..25 {
        fs::create_dir(world.state_file(&format!("j{job}"))).unwrap();
    }
    world.start();
    let status = world.json(&["status"]);
    assert_eq!((status["held"].as_array().unwrap().len(), &status["moreHeld"]), (20, &5.into()), "{status}");
    let text = world.ask(&["status"]).out;
    assert!(text.ends_with("           and 5 more\n"), "{text}");
    fs::remove_dir(world.state_file("j7")).unwrap();
    world.until("one is held no more", |world| world.ask(&["status"]).out.ends_with("and 4 more\n"));
    world.stop();
}

/// Runs of jobs that check their own claim: see that none is without one.
#[test]
fn where_nothing_can_be_written_nothing_runs() {
    let Some(mut world) = World::of_nobody(TWO) else { return };
    fs::create_dir(world.path("out")).unwrap();
    fs::set_permissions(world.path("out"), fs::Permissions::from_mode(0o777)).unwrap();
    world.krontab(&TWO.replace("DIR/", "DIR/out/"));
    world.start();
    world.until("both run", |world| world.lines("out/hurt").len() > 1 && world.lines("out/sound").len() > 1);
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o500)).unwrap();
    world.until("both are held", |world| {
        let held = world.json(&["status"])["held"].clone();
        held.as_array().is_some_and(|held| {
            held.len() == 2 && held.iter().all(|held| held["failures"].as_u64().unwrap() > 1)
        })
    });
    let held = world.json(&["status"])["held"][0].clone();
    assert_eq!(held["operation"], "write state");
    assert!(held["error"].as_str().unwrap().contains("Permission denied"), "{held}");
    // Whatever was let go before has written its line by now.
    super::daemon::pause(300);
    let before = (world.lines("out/hurt"), world.lines("out/sound"));
    let failures = held["failures"].as_u64().unwrap();
    world.until("it is tried again", |world| {
        world.json(&["status"])["held"][0]["failures"].as_u64().is_some_and(|now| now > failures)
    });
    assert_eq!((world.lines("out/hurt"), world.lines("out/sound")), before, "nothing runs without a record");
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o700)).unwrap();
    world.until("both run again", |world| {
        world.lines("out/hurt").len() > before.0.len() + 1
            && world.lines("out/sound").len() > before.1.len() + 1
    });
    world.until("nobody is held", |world| world.json(&["status"])["held"] == json!([]));
    for name in ["hurt", "sound"] {
        let mut ids = world.lines(&format!("out/{name}"));
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name} ran a period twice");
    }
    world.stop();
}

#[test]
fn a_full_disk_holds_what_needs_room_until_there_is_some() {
    // Each looks whether its claim is there.
    let mut world = World::new("");
    let line = |world: &World, name: &str| {
        let file = world.state_file(name).display().to_string();
        format!(
            "@every 1s @policy(deadline=1h,concurrency=forbid) name={name} shell=true command=\"if grep -q \
             $KRON_PERIOD_ID {file}; then echo claimed; else echo unclaimed; fi >> DIR/{name}\"\n"
        )
    };
    let names = ["first", "x", "y", "z"];
    world.krontab(&line(&world, "first"));
    world.make_state();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs"]).arg(&world.state);
    if !is_root() || !mount.status().is_ok_and(|status| status.success()) {
        println!("skipped: a small file system cannot be mounted here");
        return;
    }
    let _unmount = Unmount(world.state.clone());
    world.start();
    world.until("it runs", |world| world.lines("first").len() > 1);
    let filler = world.state.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[7; 1024]).is_ok() {}
    drop(file);
    // Three more want a file of their own, and there is at most one to write into.
    world.krontab(&names.map(|name| line(&world, name)).concat());
    assert_eq!(world.ask(&["reload"]).code, 0);
    world.until("some are held", |world| {
        let held = world.json(&["status"])["held"].clone();
        held.as_array().is_some_and(|held| {
            held.len() >= 2
                && held.iter().all(|held| held["error"].as_str().unwrap().contains("No space left"))
        })
    });
    fs::remove_file(&filler).unwrap();
    world.until("nobody is held", |world| world.json(&["status"])["held"] == json!([]));
    for name in names {
        let before = world.lines(name).len();
        world.until("it runs", |world| world.lines(name).len() > before);
        assert!(!world.lines(name).contains(&"unclaimed".into()), "{name}");
    }
    world.stop();
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_run_by_hand_is_no_business_of_the_periods() {
    let mut world = World::new(
        "0 0 1 1 * @policy(concurrency=forbid) name=alone shell=true command=\"echo $$ >> DIR/pids; while [ ! -e DIR/go ]; do sleep 0.1; done\"\n\
         0 0 1 1 * @policy(concurrency=allow) name=many command=\"/bin/sleep 1000\"\n",
    );
    world.make_state();
    fs::write(world.state_file("alone"), handled_of(&world.identity("alone"), "2020-01-01T00:00:00Z"))
        .unwrap();
    world.start();
    // What fell due since then is passed over, and known from now on.
    world.until("it was looked at", |world| {
        world.state_of("alone")["LastHandledPeriodID"] != "2020-01-01T00:00:00Z"
    });
    let last = |world: &World| {
        let state = world.state_of("alone");
        ["LastHandledPeriodID", "LastOutcome", "LastChosenTime", "LastNominalTime"]
            .map(|key| state[key].clone())
    };
    let before = last(&world);
    let said = world.run("alone");
    world.until("it runs", |world| world.lines("pids").len() == 1);
    let pid: u64 = world.lines("pids")[0].parse().unwrap();
    assert!(said.out.starts_with(&format!("started alone (pid {pid}, manual:")), "{}", said.out);
    let state = world.state_of("alone");
    assert_eq!((&state["ActiveExecution"], &state["OtherExecutions"][0]["PID"]), (&Value::Null, &pid.into()));
    assert_eq!(last(&world), before);

    let said = world.ask(&["run", "alone"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("a run of it is active"), "{}", said.err);
    // It counts as active for the next krond as well.
    world.crash();
    world.start();
    assert_eq!(world.ask(&["run", "alone"]).code, 1);
    for _ in 0..2 {
        assert_eq!(world.json(&["run", "many"])["run"].as_str().unwrap().split(':').next(), Some("manual"));
    }
    assert_eq!(world.json(&["jobs", "many"])[0]["active"].as_array().unwrap().len(), 2);

    fs::write(world.path("go"), "").unwrap();
    world.until("its end is told", |world| !world.events("execution_completed", "alone").is_empty());
    assert_eq!(last(&world), before);
    assert!(
        world.ask(&["history", "alone"]).out.contains("by hand"),
        "{}",
        world.ask(&["history", "alone"]).out
    );
    world.run("alone");
    assert_eq!(world.ask(&["stop", "--end-runs"]).code, 0);
}

#[test]
fn a_run_by_hand_waits_for_a_record_and_is_not_refused() {
    let line = |job: usize| format!("0 0 1 1 * @policy(concurrency=forbid) name=j{job} command=/bin/true\n");
    let mut world = World::new(&(0..100).map(line).collect::<String>());
    // What every job missed last is recorded at the start.
    world.start();
    for job in 0..100 {
        let said = world.ask(&["run", &format!("j{job}")]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    world.stop();
}

#[test]
fn a_job_led_astray_by_the_clock_waits_until_somebody_says_so() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h) name=astray shell=true command=\"echo $KRON_PERIOD_ID >> DIR/ran\"\n\
         @every 1h @win(around,50m) name=early command=/bin/true\n",
    );
    world.make_state();
    fs::write(world.state_file("astray"), handled_of(&world.identity("astray"), "2099-01-01T00:00:00Z"))
        .unwrap();
    world.start();
    world.until("it is told", |world| !world.events("clock_anomaly", "astray").is_empty());
    let line = &world.events("clock_anomaly", "astray")[0];
    assert_eq!((&line["level"], &line["watermark"]), (&"WARN".into(), &"2099-01-01T00:00:00Z".into()));
    assert!(line["message"].as_str().unwrap().contains("krond accept-clock"), "{line}");

    let said = world.ask(&["accept-clock", "astray"]);
    assert_eq!(said.code, 1, "nobody can be asked");
    for text in ["up to 2099-01-01T00:00:00Z counts as handled", "could run again", "and more", "add --yes"] {
        assert!(said.err.contains(text), "{text}: {}", said.err);
    }
    assert_eq!(said.err.lines().filter(|line| line.starts_with("  2")).count(), 20);
    assert_eq!(world.state_of("astray")["LastHandledPeriodID"], "2099-01-01T00:00:00Z");
    assert_eq!(world.lines("ran"), Vec::<String>::new());

    let said = world.ask(&["accept-clock", "astray", "--yes"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("counts as handled up to 20"), "{}", said.out);
    world.until("it runs", |world| world.lines("ran").len() > 1);
    let kept = names(&world, ".archived.");
    assert_eq!(kept.len(), 1);
    let kept: Value = serde_json::from_slice(&fs::read(world.state.join(&kept[0])).unwrap()).unwrap();
    assert_eq!(kept["LastHandledPeriodID"], "2099-01-01T00:00:00Z");

    let said = world.ask(&["accept-clock", "astray", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (0, "astray does not wait for the clock: nothing to do\n"));
    assert_eq!(names(&world, ".archived.").len(), 1);
    world.stop();

    // A window that opens before its nominal time leads a job ahead as well, and that is as it should be.
    let soon = jiff::Timestamp::from_second(krond::clock::now().second() + 600).unwrap().to_string();
    fs::write(world.state_file("early"), handled_of(&world.identity("early"), &soon)).unwrap();
    world.start();
    let said = world.ask(&["accept-clock", "early", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (0, "early does not wait for the clock: nothing to do\n"));
    world.stop();
}

fn handled_of(identity: &str, at: &str) -> String {
    json!({
        "Version": "1", "Identity": identity, "LastHandledPeriodID": at, "LastOutcome": "executed",
        "LastChosenTime": at, "LastNominalTime": at, "History": [],
    })
    .to_string()
}
