use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::daemon::{World, mode};
use super::world::{is_root, read};

/// The variables that a run has written down.
fn variables(world: &World, file: &str) -> BTreeMap<String, String> {
    let text = read(&world.path(file));
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

#[test]
fn a_run_knows_what_it_is_and_nothing_of_krond() {
    let mut world = World::new(
        "@every 1h @policy(deadline=1h) name=period command=/usr/bin/env stdout=file:DIR/period env=MINE=own\n\
         0 0 1 1 * name=manual command=/usr/bin/env stdout=file:DIR/manual\n",
    );
    world.env.push(("SOMEBODYS_SECRET".into(), "hunter2".into()));
    world.start();
    let period = variables(&world, "period");
    let identity = world.identity("period");
    world.until("it is told", |world| !world.events("execution_started", "period").is_empty());
    let started = world.events("execution_started", "period")[0].clone();
    assert_eq!(period["KRON_IDENTITY"], identity);
    assert_eq!(format!("{}.json", period["KRON_IDENTITY_SHA256"]), krond::wire::file_name(&identity));
    assert_eq!(period["KRON_PERIOD_ID"], started["period"].as_str().unwrap());
    assert_eq!(period["KRON_RUN"], period["KRON_PERIOD_ID"]);
    assert_eq!(period["KRON_CHOSEN_TIME"], started["chosen"].as_str().unwrap());
    assert_eq!(period["MINE"], "own");
    for key in ["PATH", "HOME", "USER", "LOGNAME", "SHELL"] {
        assert!(period.contains_key(key), "{key}");
    }
    assert!(!period.contains_key("SOMEBODYS_SECRET") && !period.contains_key("NOTIFY_SOCKET"), "{period:?}");

    world.run("manual");
    let manual = variables(&world, "manual");
    assert!(manual["KRON_RUN"].starts_with("manual:"), "{manual:?}");
    assert!(!manual.contains_key("KRON_PERIOD_ID") && !manual.contains_key("KRON_CHOSEN_TIME"));
    world.stop();

    world.settings("inherit_environment = true\n");
    fs::remove_file(world.path("manual")).unwrap();
    world.env.push(("NOTIFY_SOCKET".into(), "/nonexistent".into()));
    world.start();
    world.run("manual");
    let manual = variables(&world, "manual");
    assert_eq!(manual["SOMEBODYS_SECRET"], "hunter2");
    assert!(!manual.contains_key("NOTIFY_SOCKET"), "who is told of krond is not told of its runs");
    world.stop();
}

#[test]
fn nothing_secret_is_told() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h) name=quiet command=\"/bin/echo argument-secret\" env=TOKEN=value-secret stdout=discard\n\
         @every 1s @policy(deadline=2s) name=fails command=\"/nonexistent argument-secret\" env=TOKEN=value-secret\n\
         @every 1s @policy(deadline=1h) name=shell shell=true command=\"exit 3 # argument-secret\"\n",
    );
    fs::set_permissions(world.path("etc/jobs"), fs::Permissions::from_mode(0o600)).unwrap();
    world.start();
    world.until("they have run", |world| {
        ["quiet", "shell"].iter().all(|name| world.events("execution_completed", name).len() > 1)
            && !world.events("error", "fails").is_empty()
    });
    let told =
        [&["status"][..], &["jobs"], &["jobs", "--format", "json"], &["metrics"], &["history", "shell"]];
    for command in told {
        assert!(!world.ask(command).out.contains("-secret"), "{command:?}");
    }
    world.stop();
    let mut files = vec![world.path("log")];
    files.extend(fs::read_dir(&world.state).unwrap().map(|entry| entry.unwrap().path()));
    files.extend(fs::read_dir(world.state.join("outcomes")).unwrap().map(|entry| entry.unwrap().path()));
    for file in files.into_iter().filter(|file| file.is_file()) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains("-secret"), "{}: {text}", file.display());
    }
}

#[test]
fn output_goes_where_the_line_says() {
    let say = "shell=true command=\"echo to-NAME; echo wrong-NAME >&2\"";
    let line =
        |name: &str, rest: &str| format!("0 0 1 1 * name={name} {} {rest}\n", say.replace("NAME", name));
    let mut world = World::new(
        &[
            line("file", "stdout=file:DIR/out stderr=file:DIR/err"),
            line("nowhere", "stdout=discard stderr=discard"),
            line("here", ""),
        ]
        .concat(),
    );
    world.start();
    for name in ["file", "nowhere", "here"] {
        world.run(name);
        world.until("it has ended", |world| !world.events("execution_completed", name).is_empty());
    }
    assert_eq!(fs::read_to_string(world.path("out")).unwrap(), "to-file\n");
    assert_eq!(fs::read_to_string(world.path("err")).unwrap(), "wrong-file\n");
    assert_eq!(mode(&world.path("out")) & 0o022, 0);
    let log = world.log_text();
    assert!(log.contains("\nto-here\n") && log.contains("\nwrong-here\n"), "{log}");
    assert!(!log.contains("nowhere\n"), "{log}");
    // To the end of it, again.
    world.run("file");
    world.until("it has ended", |world| world.events("execution_completed", "file").len() == 2);
    assert_eq!(fs::read_to_string(world.path("out")).unwrap(), "to-file\nto-file\n");
    world.stop();
}

#[test]
fn a_run_is_where_it_should_be() {
    let mut world = World::new(
        "0 0 1 1 * name=place cwd=DIR/etc umask=027 shell=true command=\"(pwd; umask; touch DIR/made) > DIR/said\"\n",
    );
    world.start();
    world.run("place");
    world.until("it has ended", |world| !world.events("execution_completed", "place").is_empty());
    assert_eq!(world.lines("said"), [world.path("etc").display().to_string(), "0027".into()]);
    assert_eq!(mode(&world.path("made")), 0o640);
    world.stop();
}

#[test]
fn root_can_run_a_job_as_somebody_else() {
    if !is_root() {
        println!("skipped: only root can");
        return;
    }
    let mut world = World::new(
        "0 0 1 1 * name=other user=nobody shell=true command=\"id -un; id -gn; id -Gn; echo $HOME $USER\" stdout=file:DIR/open/said\n\
         0 0 1 1 * name=unknown user=no-such-user command=/bin/true\n",
    );
    fs::create_dir(world.path("open")).unwrap();
    fs::set_permissions(world.path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    world.start();
    world.run("other");
    world.until("it has ended", |world| !world.events("execution_completed", "other").is_empty());
    let said = world.lines("open/said");
    assert_eq!(said[..3], ["nobody", "nogroup", "nogroup"]);
    assert!(said[3].ends_with(" nobody"), "{said:?}");
    assert_eq!(world.path("open/said").metadata().unwrap().uid(), 65534, "its files are its own");
    let mut refused = world.ask(&["run", "unknown"]);
    world.until("it is refused for that", |world| {
        refused = world.ask(&["run", "unknown"]);
        refused.err.contains("no-such-user")
    });
    assert_eq!(refused.code, 1);
    world.stop();
}

#[test]
fn only_root_can_and_that_is_told_before_anything_runs() {
    let own = "@daily name=mine user=nobody command=/bin/true\n";
    let Some(mut world) = World::of_nobody(own) else { return };
    world.start();
    assert_eq!(world.json(&["status"])["jobs"], 1, "one's own name is nobody else's");
    world.krontab(&format!("{own}\n@daily name=a user=root command=/bin/true\n@daily name=b user=no-such-user command=/bin/true\n"));
    let said = world.ask(&["reload"]);
    assert_eq!(said.code, 1);
    for text in [
        "2 errors in the krontabs",
        "error[user]: only root can run a job as `root`, and krond runs as `nobody`",
        "etc/jobs:3\n",
        "as `no-such-user`",
        "etc/jobs:4\n",
    ] {
        assert!(said.err.contains(text), "{text}: {}", said.err);
    }
    world.stop();
    let said = world.ask(&["start", "--foreground"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("etc/jobs:3\n"), "{}", said.err);
}

#[test]
fn a_person_has_places_of_their_own() {
    let Some(mut world) = World::of_nobody("") else { return };
    let home = world.path("home");
    let config = home.join(".config/krond");
    fs::create_dir_all(&config).unwrap();
    let said = home.join("said");
    fs::write(
        config.join("mine"),
        format!(
            "@every 1s @policy(deadline=1h) name=me shell=true command=\"id -un >> {}\"\n",
            said.display()
        ),
    )
    .unwrap();
    let own = |world: &World| {
        let status = std::process::Command::new("chown")
            .arg("-R")
            .arg("nobody:nogroup")
            .arg(world.path("home"))
            .status();
        assert!(status.unwrap().success());
    };
    own(&world);
    world.env.push(("HOME".into(), home.display().to_string()));
    for (variables, state) in [
        (vec![], home.join(".local/state/krond")),
        (
            vec![
                ("XDG_STATE_HOME".to_owned(), home.join("elsewhere").display().to_string()),
                ("XDG_CONFIG_HOME".to_owned(), home.join(".config").display().to_string()),
            ],
            home.join("elsewhere/krond"),
        ),
    ] {
        world.env.extend(variables);
        world.state.clone_from(&state);
        let started = world.ask_as_is(&["start"]);
        assert_eq!(started.code, 0, "{}", started.err);
        assert!(started.out.contains(&state.join("krond.log").display().to_string()), "{}", started.out);
        assert_eq!((mode(&state), state.metadata().unwrap().uid()), (0o700, 65534));
        let before = world.lines("home/said").len();
        world.until("it runs", |world| world.lines("home/said").len() > before);
        let status = world.ask_as_is(&["status"]);
        assert!(status.out.contains(&config.display().to_string()), "{}", status.out);
        assert_eq!(world.ask_as_is(&["history", "me"]).code, 0);
        assert_eq!(world.ask_as_is(&["stop"]).code, 0);
    }
    assert!(world.lines("home/said").iter().all(|who| who == "nobody"));
    // Where there is no home there is nothing to guess.
    world.env = vec![
        ("HOME".into(), String::new()),
        ("XDG_CONFIG_HOME".into(), String::new()),
        ("XDG_STATE_HOME".into(), String::new()),
    ];
    let said = world.ask_as_is(&["status"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("HOME is set"), "{}", said.err);
}

#[test]
fn a_run_has_the_limits_of_the_settings() {
    let mut world = World::new(
        "@every 1h @policy(deadline=1h) name=limited shell=true stdout=file:DIR/limits \
         command=\"ulimit -Sn; ulimit -Hn; ulimit -Hc; ulimit -St; echo end\"\n",
    );
    world.settings("[limits]\nnofile = \"77:99\"\ncore = 0\ncpu = 1000\n");
    world.start();
    world.until("it has run", |world| world.lines("limits").last().is_some_and(|line| line == "end"));
    assert_eq!(world.lines("limits"), ["77", "99", "0", "1000", "end"]);
    world.stop();
    world.settings("[limits]\nnofile = \"99:77\"\n");
    let said = world.ask(&["start"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("`limits.nofile`: expected no more than the hard limit"), "{}", said.err);
}

#[test]
fn an_output_file_that_is_too_large_is_put_aside() {
    let mut world = World::new(
        "@every 1s @policy(deadline=1h) name=talks shell=true stdout=file:DIR/said \
         command=\"echo $KRON_PERIOD_ID; echo 0123456789012345678901234567890123456789\"\n",
    );
    world.settings("output_max = 100\n");
    world.start();
    world.until("a second one is put aside", |world| {
        world.lines("said.1").len() == 4 && world.lines("talks").is_empty() && {
            let first = world.lines("said.1")[0].clone();
            let ran = world.events("execution_completed", "talks");
            ran.first().is_some_and(|ran| ran["run"].as_str().unwrap() < first.as_str())
        }
    });
    world.stop();
    assert!(world.lines("said").len() <= 4, "{:?}", world.lines("said"));
}
