//! What the program does to files, and what of the world around it has a say in its answers.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::cli::{Shell, output};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn neither_locale_nor_time_zone_nor_user_changes_an_answer() {
    let shell = Shell::new();
    let questions: &[&[&str]] = &[
        &["next", "backup", "--file", "jobs.kron", "--as", "/etc/krond.d/jobs", "--count", "3"],
        &["why", "backup", "--file", "jobs.kron"],
        &["describe", "30 2 * * *", "--tz", "Europe/Paris", "--format", "json"],
        &["lint", "--file", "bad.kron"],
        &["list", "--config", "."],
        &["simulate", "herd.kron", "--propose"],
        &["import", "user.crontab", "apt-daily.timer", "cronjobs.yaml"],
        &["diff", "jobs.kron", "changed.kron"],
        &["ical", "jobs.kron"],
    ];
    for question in questions {
        let at: &[&str] = match question[0] {
            "lint" => &[],
            "simulate" | "diff" | "ical" => &["--from", "2026-03-07T00:00:00Z"],
            _ => &["--at", "2026-03-07T00:00:00Z"],
        };
        let mut plain = shell.krontab();
        plain.args(*question).args(at);
        let mut elsewhere = shell.krontab();
        elsewhere.args(*question).args(at);
        elsewhere.envs([
            ("LC_ALL", "de_DE.UTF-8"),
            ("LANG", "ja_JP.UTF-8"),
            ("TZ", "Asia/Tokyo"),
            ("TZDIR", "/nowhere"),
            ("USER", "nobody"),
            ("COLUMNS", "20"),
            ("CLICOLOR_FORCE", "0"),
        ]);
        let (plain, elsewhere) = (output(plain, None), output(elsewhere, None));
        assert_eq!(plain, elsewhere, "{question:?}");
        assert!(!plain.stdout.is_empty(), "{question:?}");
    }
}

#[test]
fn without_a_terminal_there_is_no_colour() {
    let shell = Shell::new();
    for arguments in [&["lint", "--file", "bad.kron"][..], &["nope"], &["--help"], &["next"]] {
        let mut command = shell.krontab();
        command.args(arguments).env("TERM", "xterm-256color");
        let output = output(command, None);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{arguments:?}");
    }
}

#[test]
fn who_closes_the_pipe_has_seen_enough() {
    let shell = Shell::new();
    let mut command = shell.krontab();
    command.args(["next", "poll", "--file", "jobs.kron", "--count", "10080", "--at", "2026-03-07T00:00:00Z"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 5];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn the_version_tells_which_time_zones_are_used() {
    let shell = Shell::new();
    let mut command = shell.krontab();
    command.arg("--version");
    let output = output(command, None);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("krontab {}", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].starts_with("time zones: ") && lines[1].ends_with(')'), "{text}");
}

/// The files of a directory, hidden ones too.
fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_invalid_file_leaves_what_is_installed_alone() {
    let shell = Shell::new();
    let run = |arguments: &[&str]| {
        let mut command = shell.krontab();
        command.args(arguments).args(["--config", "etc"]);
        output(command, None).status.code().unwrap()
    };
    let installed = shell.path().join("etc/jobs");
    assert_eq!(run(&["add", "--file", "plain.kron", "--name", "jobs"]), 0);
    let before = fs::read(&installed).unwrap();
    for file in ["bad.kron", "latin1.kron"] {
        assert_eq!(run(&["add", "--file", file, "--name", "jobs", "--force"]), 1, "{file}");
    }
    assert_eq!(
        run(&["add", "--file", "jobs.kron", "--name", "jobs"]),
        2,
        "it is there, and nobody said --force"
    );
    assert_eq!(fs::read(&installed).unwrap(), before);
    assert_eq!(names(&shell.path().join("etc")), ["jobs"], "nothing is left behind");
    assert_eq!(run(&["add", "--file", "jobs.kron", "--name", "jobs", "--force"]), 0);
    assert_ne!(fs::read(&installed).unwrap(), before);
    assert_eq!(names(&shell.path().join("etc")), ["jobs"]);
}

#[test]
fn of_many_that_remove_at_once_none_undoes_another() {
    let shell = Shell::new();
    let jobs = 0..12;
    let file = shell.path().join("etc/jobs");
    fs::create_dir(file.parent().unwrap()).unwrap();
    for _ in 0..8 {
        let text: String = jobs.clone().map(|n| format!("@daily name=j{n} command=/bin/true\n")).collect();
        fs::write(&file, text).unwrap();
        let children: Vec<_> = jobs
            .clone()
            .skip(1)
            .map(|n| {
                let mut command = shell.krontab();
                command.args(["remove", &format!("j{n}"), "--config", "etc"]);
                command.stdout(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "@daily name=j0 command=/bin/true\n");
    }
}

#[test]
fn only_the_owner_reads_a_file_with_environment_variables() {
    let shell = Shell::new();
    let draft = shell.path().join("secret");
    fs::write(&draft, "0 1 * * * name=a command=/bin/true env=TOKEN=hunter2\n").unwrap();
    for (file, expected) in [("secret", 0o600), ("plain.kron", 0o644)] {
        let mut command = shell.krontab();
        command.args(["add", "--file", file, "--config", "etc"]);
        let output = output(command, None);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(mode(&shell.path().join("etc").join(file)), expected, "{file}");
        assert!(!String::from_utf8(output.stdout).unwrap().contains("hunter2"));
    }
}

#[test]
fn a_directory_that_everybody_can_write_is_refused() {
    let shell = Shell::new();
    let open = shell.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = shell.krontab();
    command.args(["add", "--file", "plain.kron", "--config", "open"]);
    let output = output(command, None);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("everybody can write the directory"), "{stderr}");
    assert!(names(&open).is_empty(), "nothing is left behind");
}

#[test]
fn a_file_that_is_rewritten_keeps_its_permissions() {
    let shell = Shell::new();
    for arguments in [&["fmt", "--write", "jobs.kron"][..], &["remove", "first", "--config", "."]] {
        let (file, permissions) =
            if arguments[0] == "fmt" { ("jobs.kron", 0o640) } else { ("plain.kron", 0o600) };
        let path = shell.path().join(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
        let before = fs::read(&path).unwrap();
        let mut command = shell.krontab();
        command.args(arguments);
        let output = output(command, None);
        assert!(output.status.success(), "{output:?}");
        assert_ne!(fs::read(&path).unwrap(), before);
        assert_eq!(mode(&path), permissions);
    }
}

#[test]
fn the_directory_of_a_user_is_below_their_configuration() {
    // Root's is the system's, which a test must not touch.
    if fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0) {
        return;
    }
    let shell = Shell::new();
    for (variable, directory) in [("XDG_CONFIG_HOME", "xdg/krond"), ("HOME", "home/.config/krond")] {
        let root = shell.path().join(directory.split('/').next().unwrap());
        fs::create_dir(&root).unwrap();
        let mut command = shell.krontab();
        command.env(variable, &root).args(["add", "--file", "plain.kron"]);
        let output = output(command, None);
        assert!(output.status.success(), "{output:?}");
        assert!(shell.path().join(directory).join("plain.kron").is_file());
    }
}

#[test]
fn a_file_that_is_too_long_is_told_without_being_read_to_its_end() {
    let shell = Shell::new();
    let long = "#".repeat(krontab::FILE_BYTES_MAX + 1);
    for (command, code) in [("lint", 1), ("next", 2)] {
        let mut krontab = shell.krontab();
        krontab.args([command, "--file", "-"]);
        if command == "next" {
            krontab.arg("job");
        }
        let output = output(krontab, Some(long.as_bytes()));
        assert_eq!(output.status.code(), Some(code), "{command}");
        let text = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8(text).unwrap().contains("1 MiB"), "{command}");
    }
}

#[test]
fn errors_that_are_not_told_are_counted() {
    let shell = Shell::new();
    fs::write(shell.path().join("many"), "nonsense\n".repeat(150)).unwrap();
    for arguments in [&["next", "a", "--file", "many"][..], &["add", "--file", "many", "--config", "etc"]] {
        let mut command = shell.krontab();
        command.args(arguments);
        let stderr = String::from_utf8(output(command, None).stderr).unwrap();
        assert!(stderr.starts_with("error: many is invalid: 150 errors, so none of it runs\n"), "{stderr}");
        assert!(stderr.contains("and 50 more errors, from here on"), "{stderr}");
    }
}

#[test]
fn a_directory_that_is_not_there_yet_is_no_mistake_unless_it_was_named() {
    // Root's is the system's, which may be there.
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if is_root && fs::exists("/etc/krond.d").unwrap() {
        return;
    }
    let shell = Shell::new();
    let expected = if is_root {
        "/etc/krond.d".to_owned()
    } else {
        shell.path().join(".config/krond").display().to_string()
    };
    let mut command = shell.krontab();
    command.arg("list");
    let listed = output(command, None);
    assert_eq!(
        String::from_utf8(listed.stdout).unwrap(),
        format!("no jobs: there is no directory {expected}\n")
    );
    assert_eq!(listed.status.code(), Some(0));
    let mut command = shell.krontab();
    command.args(["list", "--config", &expected]);
    assert_eq!(output(command, None).status.code(), Some(2));
}

#[test]
fn a_file_is_installed_with_the_next_dates_of_what_is_uneven() {
    let shell = Shell::new();
    let mut command = shell.krontab();
    command.args(["add", "--file", "phrases.kron", "--config", "etc"]);
    let stdout = String::from_utf8(output(command, None).stdout).unwrap();
    let dates = stdout.lines().find_map(|line| line.strip_prefix("  = next dates: ")).unwrap();
    assert_eq!(dates.split(", ").count(), 5, "{stdout}");
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_the_others() {
    let shell = Shell::new();
    let etc = shell.path().join("etc");
    fs::create_dir(&etc).unwrap();
    fs::copy(shell.path().join("plain.kron"), etc.join("plain")).unwrap();
    fs::write(etc.join("od\u{1b}d"), "").unwrap();
    let reason = "it cannot be read: expected a path without control characters, but found";
    for (arguments, other) in
        [(&["list", "--config", "etc"][..], "first   plain"), (&["lint", "--file", "etc"], "OK: ")]
    {
        let mut command = shell.krontab();
        command.args(arguments);
        let found = output(command, None);
        assert_eq!(found.status.code(), Some(1), "{found:?}");
        let text = String::from_utf8([found.stdout, found.stderr].concat()).unwrap();
        assert!(text.contains(reason) && text.contains(other) && !text.contains('\u{1b}'), "{text}");
    }
    let mut command = shell.krontab();
    command.args(["lint", "--file", "etc", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&output(command, None).stdout).unwrap();
    assert_eq!(report["files"][0]["errors"][0]["code"], "unreadable");
}

impl Shell {
    /// Runs krontab with these arguments.
    fn typed(&self, arguments: &[&str]) -> Output {
        let mut command = self.krontab();
        command.args(arguments);
        output(command, None)
    }
}

/// The exit code, and everything that was said.
fn said(output: &Output) -> (Option<i32>, String) {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

const ADD: &[&str] = &["add", "--file", "plain.kron", "--config", "etc"];

#[test]
fn a_file_that_says_the_same_but_is_not_trusted_is_installed_anew() {
    let shell = Shell::new();
    let installed = shell.path().join("etc/plain.kron");
    assert_eq!(shell.typed(ADD).status.code(), Some(0));
    assert!(said(&shell.typed(ADD)).1.starts_with("unchanged: "));

    fs::set_permissions(&installed, fs::Permissions::from_mode(0o666)).unwrap();
    let (code, text) = said(&shell.typed(ADD));
    assert!(
        text.starts_with("repaired: ") && text.contains("before: everybody can write the file\n"),
        "{text}"
    );
    assert_eq!((code, mode(&installed)), (Some(0), 0o644));

    fs::set_permissions(&installed, fs::Permissions::from_mode(0o666)).unwrap();
    let json = shell.typed(&[ADD, &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["repaired"], serde_json::json!(["everybody can write the file"]));
    assert_eq!((&json["changed"], &json["replaced"]), (&true.into(), &false.into()));

    if is_root() {
        std::os::unix::fs::chown(&installed, Some(4_242), Some(4_242)).unwrap();
        let (code, text) = said(&shell.typed(ADD));
        assert!(code == Some(0) && text.contains("repaired: ") && text.contains("found user 4242"), "{text}");
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(&installed).unwrap()), 0);
    }

    fs::remove_file(&installed).unwrap();
    std::os::unix::fs::symlink(shell.path().join("plain.kron"), &installed).unwrap();
    let (code, text) = said(&shell.typed(ADD));
    assert!(code == Some(2) && text.contains("the file is a symbolic link; --force replaces it"), "{text}");
    let (code, text) = said(&shell.typed(&[ADD, &["--force"]].concat()));
    assert!(code == Some(0) && text.starts_with("replaced: "), "{text}");
    assert!(fs::symlink_metadata(&installed).unwrap().is_file());
    assert_eq!(names(&shell.path().join("etc")), ["plain.kron"]);
}

#[test]
fn secrets_that_everybody_can_read_become_private_when_they_are_installed_again() {
    let shell = Shell::new();
    fs::write(shell.path().join("secret"), "0 1 * * * name=a command=/bin/true env=TOKEN=hunter2\n").unwrap();
    let add = ["add", "--file", "secret", "--config", "etc"];
    let installed = shell.path().join("etc/secret");
    assert_eq!(shell.typed(&add).status.code(), Some(0));
    fs::set_permissions(&installed, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, text) = said(&shell.typed(&add));
    assert!(text.contains("before: everybody can read the environment variables of `a`"), "{text}");
    assert_eq!((code, mode(&installed)), (Some(0), 0o600));
    assert!(said(&shell.typed(&add)).1.starts_with("unchanged: "));
}

#[test]
fn a_directory_that_krond_refuses_is_refused_whatever_is_in_it() {
    let shell = Shell::new();
    let etc = shell.path().join("etc");
    assert_eq!(shell.typed(ADD).status.code(), Some(0));
    std::os::unix::fs::symlink("etc", shell.path().join("link")).unwrap();
    fs::set_permissions(&etc, fs::Permissions::from_mode(0o777)).unwrap();
    let before = fs::read(etc.join("plain.kron")).unwrap();
    let refused = |arguments: &[&str], why: &str| {
        let (code, text) = said(&shell.typed(arguments));
        assert!(code == Some(2) && text.contains(why), "{arguments:?}: {text}");
        assert_eq!(fs::read(etc.join("plain.kron")).unwrap(), before, "{arguments:?}");
    };
    let add = |config| ["add", "--file", "plain.kron", "--config", config];
    for target in ["first", "plain.kron"] {
        refused(&["remove", target, "--config", "etc"], "everybody can write the directory");
        refused(&["remove", target, "--config", "link"], "the directory is a symbolic link");
    }
    refused(&add("etc"), "everybody can write the directory");
    fs::set_permissions(&etc, fs::Permissions::from_mode(0o755)).unwrap();
    for link in ["link", "link/", "link/."] {
        refused(&add(link), "the directory is a symbolic link");
        refused(&["remove", "first", "--config", link], "the directory is a symbolic link");
    }
}

#[test]
fn a_job_of_a_file_that_krond_refuses_is_not_removed_but_the_file_can_be() {
    let shell = Shell::new();
    let etc = shell.path().join("etc");
    let installed = etc.join("plain.kron");
    assert_eq!(shell.typed(ADD).status.code(), Some(0));
    let before = fs::read(&installed).unwrap();
    let refused = |why: &str| {
        let (code, text) = said(&shell.typed(&["remove", "first", "--config", "etc"]));
        assert!(code == Some(2) && text.contains(why), "{text}");
        assert!(text.contains("`krontab remove plain.kron`"), "{text}");
        assert_eq!(fs::read(&installed).unwrap(), before);
    };
    fs::set_permissions(&installed, fs::Permissions::from_mode(0o666)).unwrap();
    refused("everybody can write the file");
    if is_root() {
        fs::set_permissions(&installed, fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::chown(&installed, Some(4_242), None).unwrap();
        refused("found user 4242");
    }
    std::os::unix::fs::symlink("plain.kron", etc.join("link")).unwrap();
    for file in ["link", "plain.kron"] {
        assert_eq!(shell.typed(&["remove", file, "--config", "etc"]).status.code(), Some(0), "{file}");
    }
    assert!(names(&etc).is_empty());
}

#[test]
fn nobody_waits_for_what_lies_in_the_place_of_a_file() {
    let shell = Shell::new();
    let etc = shell.path().join("etc");
    fs::create_dir(&etc).unwrap();
    let pipe = etc.join("plain.kron");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", etc.join("zero")).unwrap();
    for (name, why) in [("plain.kron", "found a pipe"), ("zero", "the file is a symbolic link")] {
        let mut command = shell.krontab();
        command.args(ADD).args(["--name", name]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut patience = 1_000;
        while child.try_wait().unwrap().is_none() {
            patience -= 1;
            if patience == 0 {
                child.kill().unwrap();
                panic!("{name}: it waits");
            }
            #[expect(clippy::disallowed_methods, reason = "another process is waited for")]
            std::thread::sleep(Duration::from_millis(10));
        }
        let (code, text) = said(&child.wait_with_output().unwrap());
        assert!(code == Some(2) && text.contains(why), "{name}: {text}");
    }
    assert_eq!(shell.typed(&[ADD, &["--force"]].concat()).status.code(), Some(0));
    assert!(fs::symlink_metadata(&pipe).unwrap().is_file());
}

#[test]
fn the_exit_code_is_right_when_nobody_can_be_told() {
    let shell = Shell::new();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for (arguments, expected) in [
        (&["next", "nope", "--file", "jobs.kron"][..], 1),
        (&["lint", "--file", "nothing"], 2),
        (&["next"], 2),
        (&["nope"], 2),
        (&["describe"], 2),
        (&["list", "--config", "."], 1),
        (&["fmt", "--check", "bad.kron"], 1),
        (&["describe", "0 0 * * *"], 0),
    ] {
        let mut command = shell.krontab();
        command.args(arguments).stdout(Stdio::null()).stderr(full());
        assert_eq!(command.status().unwrap().code(), Some(expected), "{arguments:?}");
    }
    for arguments in [&["describe", "0 0 * * *"][..], &["--help"], &["help", "add"], &["--version"], &["man"]]
    {
        for stderr in [Stdio::null(), full().into()] {
            let mut command = shell.krontab();
            command.args(arguments).stdout(full()).stderr(stderr);
            assert_eq!(command.status().unwrap().code(), Some(2), "{arguments:?}");
        }
    }
}

#[test]
fn drafts_that_were_left_behind_are_cleared_away() {
    let shell = Shell::new();
    let etc = shell.path().join("etc");
    fs::create_dir(&etc).unwrap();
    for (name, minutes) in [(".t.4242-0.tmp", 60), (".t.4243-0.tmp", 0), (".mine.tmp", 60)] {
        let file = fs::File::create(etc.join(name)).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the age of a file is told by the clock")]
        let modified = SystemTime::now() - Duration::from_secs(60 * minutes);
        file.set_modified(modified).unwrap();
    }
    assert_eq!(shell.typed(ADD).status.code(), Some(0));
    assert_eq!(names(&etc), [".mine.tmp", ".t.4243-0.tmp", "plain.kron"]);
}

#[test]
fn an_identity_that_no_job_can_have_is_blamed_on_the_flag() {
    let shell = Shell::new();
    for (identity, why) in [
        ("a\nb", "expected a name without control characters, but found `a\\nb`"),
        ("\u{1b}[2J", "expected a name without control characters, but found `\\u{1b}[2J`"),
        ("", "expected a name, but found nothing"),
    ] {
        for question in [
            &["next", "backup", "--file", "jobs.kron"][..],
            &["why", "backup", "--file", "jobs.kron", "--at", "2026-03-08T07:30:00Z"],
            &["describe", "report", "--file", "jobs.kron"],
            &["explain", "backup", "--at", "2026-03-08T07:30:00Z"],
        ] {
            let found = shell.typed(&[question, &["--identity", identity]].concat());
            let expected = (Some(2), format!("error: --identity: {why}\n"));
            assert_eq!(said(&found), expected, "{question:?}");
        }
    }
}

#[test]
fn a_list_of_jobs_that_never_run_is_not_searched_to_the_end_of_time() {
    let shell = Shell::new();
    let etc = shell.path().join("etc");
    fs::create_dir(&etc).unwrap();
    let job = |number: u32| {
        format!("0 0 * * * @win(after,1h) @only(hours=5) name=job-{number} command=/bin/true\n")
    };
    fs::write(etc.join("jobs"), (0..5_000).map(job).collect::<String>()).unwrap();
    let found = shell.typed(&["list", "--config", "etc", "--at", "2026-03-07T00:00:00Z", "--format", "json"]);
    let listing: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let jobs = listing["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 5_000);
    for job in jobs {
        // Two million periods of them all are four hundred days of each.
        assert_eq!(job["noneUntil"], "2027-04-10T00:00:00Z", "{job}");
    }
}

/// Applies a patch of changed lines, as `patch` does: what is taken away must be there.
fn patched(text: &str, patch: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut at = 0;
    for line in patch.lines().filter(|line| !line.starts_with("---") && !line.starts_with("+++")) {
        match line.split_at(1) {
            ("@", _) => at = line[4..].split(',').next().unwrap().parse::<usize>().unwrap() - 1,
            ("+", new) => lines[at - 1] = new.to_owned(),
            (_, old) => {
                assert_eq!(lines[at], old);
                at += 1;
            }
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_proposed_patch_applies_and_does_what_it_says() {
    let shell = Shell::new();
    let simulated = |file: &str| -> serde_json::Value {
        let mut command = shell.krontab();
        command.args(["simulate", file, "--as", "/etc/krond.d/herd", "--propose", "--format", "json"]);
        command.args(["--from", "2026-03-01T00:00:00Z", "--to", "2026-04-01T00:00:00Z"]);
        serde_json::from_slice(&output(command, None).stdout).unwrap()
    };
    let before = simulated("herd.kron");
    let text = fs::read_to_string(shell.path().join("herd.kron")).unwrap();
    let text = patched(&text, before["proposal"]["patch"].as_str().unwrap());
    fs::write(shell.path().join("flat.kron"), &text).unwrap();
    let after = simulated("flat.kron");
    assert!(before["proposal"]["peakAfter"].as_u64() < before["after"]["peak"].as_u64(), "{before}");
    assert_eq!(after["after"]["peak"], before["proposal"]["peakAfter"]);
    for kept in ["unschedulablePeriods", "periods", "skippedTimes", "suspended"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    // Nothing is left to be proposed for what now has a window.
    assert_eq!(after["proposal"]["patch"], "");
    assert!(text.contains("@win(after,0s) name=pinned") && !text.contains("@win(after,0s) @win"), "{text}");
}

#[test]
fn too_many_jobs_are_refused_before_they_are_compared() {
    let shell = Shell::new();
    fs::write(shell.path().join("many"), "* * * * * a\n".repeat(10_001)).unwrap();
    let mut command = shell.krontab();
    command.args(["import", "many", "--from", "crontab"]);
    let output = output(command, None);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: expected at most 10000 jobs at once"), "{error}");
}
