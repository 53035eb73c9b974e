use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Stdio;

use krond::state::State;
use krond::wire;

use super::daemon::{World, mode};
use super::world::is_root;

const JOB: &str = "@every 1s @policy(deadline=1h) name=job command=/bin/true\n";

/// Starts it to see why it cannot: in the foreground, and in the background, which must not differ.
fn fails(world: &World, code: i32, says: &[&str]) {
    for arguments in [&["start", "--foreground"][..], &["start"]] {
        let said = world.ask(arguments);
        assert_eq!(said.code, code, "{arguments:?}: {}{}", said.out, said.err);
        assert!(said.err.starts_with("error: "), "{}", said.err);
        assert!(!said.err.contains("error: error"), "{}", said.err);
        for text in says {
            assert!(said.err.contains(text), "{arguments:?}: expected {text:?} in {}", said.err);
        }
        assert_eq!(said.out, "");
        assert_eq!(world.ask(&["status"]).code, 1);
    }
}

#[test]
fn every_error_of_every_krontab_is_told() {
    let world = World::new("99 * * * * name=a command=/bin/true\n@daily name=b\n");
    world.krontab_as("more", "@hourly name=c command=relative\n");
    world.krontab_as("good", JOB);
    fails(&world, 1, &["3 errors in the krontabs", "etc/jobs:1:", "etc/jobs:2:", "etc/more:1:"]);
    // One that lies there so that anybody can have written it.
    world.krontab(JOB);
    world.krontab_as("more", JOB);
    fs::set_permissions(world.path("etc/more"), fs::Permissions::from_mode(0o666)).unwrap();
    fails(&world, 1, &["etc/more"]);
}

#[test]
fn krontabs_that_are_not_there_are_an_error_of_the_configuration() {
    let world = World::new(JOB);
    fs::remove_dir_all(world.path("etc")).unwrap();
    fails(&world, 1, &["could not read", "create it, or name another place with --config"]);
}

#[test]
fn a_state_of_another_version_or_another_job_is_not_touched() {
    let world = World::new(JOB);
    world.make_state();
    let file = world.state_file("job");
    let good = String::from_utf8(wire::encode(&State::new(world.identity("job")))).unwrap();
    let plain = good.split(",\"Checksum\"").next().unwrap().to_owned() + "}";
    let newer = plain.replace("\"Version\":\"1\"", "\"Version\":\"2\"");
    fs::write(&file, &newer).unwrap();
    fails(&world, 2, &["has Version \"2\"", "use the krond that wrote it"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), newer);
    let foreign = wire::encode(&State::new("/etc/krond.d/other:job"));
    fs::write(&file, &foreign).unwrap();
    fails(&world, 2, &["says that it is of /etc/krond.d/other:job"]);
    assert_eq!(fs::read(&file).unwrap(), foreign);
}

#[test]
fn only_one_has_a_state_directory() {
    let mut world = World::new(JOB);
    let pid = world.start();
    for arguments in [&["start", "--foreground"][..], &["start"]] {
        let said = world.ask(arguments);
        assert_eq!(said.code, 3, "{}", said.err);
        assert!(said.err.contains(&world.state.display().to_string()), "{}", said.err);
    }
    assert!(world.ask(&["start", "--foreground"]).err.contains(&format!("another krond (pid {pid} on ")));
    let said = fs::read_to_string(world.state.join("lock")).unwrap();
    assert_eq!(said.lines().count(), 3, "{said}");
    assert_eq!(world.json(&["status"])["pid"], pid, "the first is untouched");
    world.stop();
}

#[test]
fn a_state_directory_that_others_could_enter_is_refused() {
    let world = World::new(JOB);
    world.make_state();
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o755)).unwrap();
    fails(&world, 2, &["its mode is 0755: run `chmod 700"]);
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o700)).unwrap();
    if is_root() {
        chown(&world.state, Some(65534), None).unwrap();
        fails(&world, 2, &["but it belongs to user 65534"]);
    }
    fs::rename(&world.state, world.path("elsewhere")).unwrap();
    symlink(world.path("elsewhere"), &world.state).unwrap();
    fails(&world, 2, &["to be a directory, and no symbolic link"]);
    assert!(fs::read_dir(world.path("elsewhere")).unwrap().next().is_none(), "nothing was written there");
}

/// There is no network here, so the kernel's answer is changed on its way.
#[test]
fn a_state_directory_on_a_network_is_refused() {
    let world = World::new(JOB);
    world.make_state();
    let words = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fstatfs"];
    let inject = ["-e", "inject=fstatfs:poke_exit=@arg2=6969000000000000"];
    let mut command = std::process::Command::new("strace");
    command.args(words).args(inject).arg(world.path("krond")).args(["start", "--foreground"]);
    command.args(["--config", "etc", "--state-dir", "state", "--settings", "krond.toml"]);
    let Ok(output) = command.current_dir(world.path("")).output() else {
        return println!("skipped: there is no strace");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("ptrace") {
        return println!("skipped: nothing can be traced here");
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("but it is on NFS"), "{said}");
    assert!(fs::read_dir(&world.state).unwrap().next().is_none(), "nothing was written there");
}

#[test]
fn settings_that_others_could_change_are_refused() {
    let world = World::new(JOB);
    let path = world.path("krond.toml");
    let refused = |words: &[&str]| {
        for arguments in [&["start", "--foreground"][..], &["status"]] {
            let said = world.ask(arguments);
            assert_eq!(said.code, 2, "{}", said.err);
            for word in words {
                assert!(said.err.contains(word), "{}", said.err);
            }
        }
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    refused(&["everybody can write the file", "take the right away: `chmod o-w`", "krond.toml"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    refused(&["everybody can write the directory"]);
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    if is_root() {
        chown(&path, Some(65534), None).unwrap();
        refused(&["expected root to own the file, but found user 65534"]);
        chown(&path, Some(0), None).unwrap();
    }
    fs::rename(&path, world.path("elsewhere.toml")).unwrap();
    symlink(world.path("elsewhere.toml"), &path).unwrap();
    refused(&["symbolic link"]);
}

#[test]
fn a_place_where_no_state_directory_can_be_is_the_systems_fault() {
    let mut world = World::new(JOB);
    fs::write(world.path("file"), "").unwrap();
    for place in [world.path("file/state"), "/proc/krond-test".into()] {
        world.state = place;
        fails(&world, 4, &["could not open the state directory"]);
    }
}

#[test]
fn wrong_arguments_end_with_two_and_where_nothing_runs_that_is_told() {
    let world = World::new(JOB);
    for arguments in [&["frobnicate"][..], &["start", "--log-format", "xml"], &["run"], &["why", "job"], &[]]
    {
        let said = world.ask_as_is(arguments);
        assert_eq!(said.code, 2, "{arguments:?}");
    }
    let said = world.ask_as_is::<&str>(&[]);
    assert!(said.out.contains("Usage: krond") && said.err.is_empty(), "{}{}", said.out, said.err);
    let said = world.ask_as_is(&["frobnicate"]);
    assert!(said.out.contains("Usage: krond") && said.err.starts_with("error: "), "{}{}", said.out, said.err);
    let said = world.ask_as_is(&["--help"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(world.ask(&["why", "job", "--at", "soon"]).code, 2);
    world.settings("graze = 1\n");
    let said = world.ask(&["start"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("unknown field `graze`"), "{}", said.err);
    world.settings("");
    for command in
        [&["stop"][..], &["reload"], &["jobs"], &["metrics"], &["run", "job"], &["accept-clock", "job"]]
    {
        let said = world.ask(command);
        assert_eq!(said.code, 1, "{command:?}");
        assert!(said.err.contains("start it with `krond start`"), "{}", said.err);
    }
    let said = world.ask(&["status"]);
    assert_eq!((said.code, said.out.as_str()), (1, "not running\n"));
    assert_eq!(world.json(&["status"]), serde_json::json!({ "running": false }));
    assert!(!world.state.exists(), "asking creates nothing");
}

#[test]
fn a_job_that_is_not_there_is_told() {
    // Not due, so that none of its own runs is in the way of one by hand.
    let job = "0 0 1 1 * name=job command=/bin/true\n";
    let mut world = World::new(job);
    world.start();
    let config = world.path("etc").display().to_string();
    for command in [
        &["run", "nope"][..],
        &["jobs", "nope"],
        &["accept-clock", "nope"],
        &["history", "nope"],
        &["why", "nope", "--at", "now", "--config", &config],
    ] {
        let said = world.ask(command);
        assert_eq!((said.code, said.err.as_str()), (1, "error: job not found: nope\n"), "{command:?}");
    }
    // The same name in two files: which one is asked for is not guessed.
    world.krontab_as("more", job);
    assert_eq!(world.ask(&["reload"]).code, 0);
    for command in [&["run", "job"][..], &["jobs", "job"], &["history", "job"]] {
        let said = world.ask(command);
        assert_eq!(said.code, 1, "{command:?}");
        assert!(said.err.contains("several jobs are called job; name one of"), "{}", said.err);
    }
    world.run(&world.identity("job"));
    world.stop();
}

#[test]
fn in_the_background_it_tells_who_it_is_and_can_be_stopped_and_started_at_once() {
    let world = World::new(JOB);
    for _ in 0..5 {
        let output = world
            .command(&["start", "--config", "etc", "--state-dir", "state", "--settings", "krond.toml"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (said, wrong) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(0), "{wrong}");
        let pid = world.json(&["status"])["pid"].clone();
        let log = world.state.join("krond.log");
        assert_eq!(said, format!("krond is running (pid {pid}); its log is {}\n", log.display()));
        assert_eq!(mode(&log), 0o600);
        let said = world.ask(&["start"]);
        assert_eq!(said.code, 3, "{}", said.err);
        assert!(said.err.contains("krond is running already"), "{}", said.err);
        let said = world.ask(&["stop"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(world.ask(&["status"]).code, 1);
    }
    let log = fs::read_to_string(world.state.join("krond.log")).unwrap();
    assert_eq!(log.matches("event=started").count(), 5);
    assert_eq!(log.matches("event=stopped").count(), 5);
}

#[test]
fn in_the_background_it_has_no_terminal_and_its_log_can_be_moved_away() {
    let world = World::new(JOB);
    let said = world.ask(&["start"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let pid = world.json(&["status"])["pid"].clone();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let pid = pid.to_string();
    assert_eq!(fields[2..5], [&pid, &pid, "0"], "its group, its session and no terminal");
    let log = world.state.join("krond.log");
    for round in 1..3 {
        let moved = world.state.join(format!("krond.log.{round}"));
        fs::rename(&log, &moved).unwrap();
        assert_eq!(world.ask(&["reload"]).code, 0);
        world.until("it logs there", |_| {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("event=config_reloaded"))
        });
        assert_eq!(mode(&log), 0o600);
        let old = fs::read_to_string(&moved).unwrap();
        assert!(old.contains("event=config_reloaded"), "what was told before is there: {old}");
    }
    assert_eq!(world.ask(&["stop"]).code, 0);
    assert!(fs::read_to_string(&log).unwrap().contains("event=stopped"));
}

#[test]
fn a_path_may_be_longer_than_that_of_a_socket() {
    let mut world = World::new(JOB);
    world.state = world.path(&"long/".repeat(30)).join("state");
    world.start();
    assert_eq!(world.json(&["status"])["running"], true);
    assert_eq!(mode(&world.state), 0o700);
    world.stop();
}
