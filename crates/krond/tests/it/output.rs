use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use krond::children::Exit;
use krond::spawner::{Stage, Ticket};
use krontab::Output;

use super::world::{Hands, Place, open_directory, shell};

alone! {
    fn a_file_is_appended_to_by_the_user_and_for_the_user() {
        let directory = open_directory();
        let out = directory.path().join("out");
        let mut hands = Hands::new();
        for (ticket, text) in [(1, "echo a; echo b >&2"), (2, "echo c")] {
            let mut launch = shell(ticket, text);
            launch.user = Some("nobody".into());
            launch.umask = Some(0o777);
            (launch.stdout, launch.stderr) = (Output::File(out.clone()), Output::File(out.clone()));
            assert_eq!(hands.run(&launch), Exit::Code(0));
        }
        assert_eq!(fs::read_to_string(&out).unwrap(), "a\nb\nc\n");
        let there = fs::metadata(&out).unwrap();
        assert_eq!((there.uid(), there.mode() & 0o7777), (65534, 0o600));
        hands.finish();
    }
}

alone! {
    fn what_is_not_a_file_of_the_user_is_refused() {
        let directory = open_directory();
        let at = |name: &str| directory.path().join(name);
        let secret = at("secret");
        fs::write(&secret, "root's").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&secret, at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
        fs::create_dir(at("roots")).unwrap();
        let cases = [
            (None, at("link"), "it is a symbolic link"),
            (Some("nobody"), at("link"), "it is a symbolic link"),
            (None, at("dangling"), "it is a symbolic link"),
            (Some("nobody"), secret.clone(), "Permission denied"),
            (Some("nobody"), at("roots/out"), "Permission denied"),
            (None, at("no/such"), "No such file or directory"),
            (None, at("roots"), "Is a directory"),
            // Without a reader it cannot be opened, with one it is no file: either way it holds nobody up.
            (None, at("fifo"), "No such device or address"),
            (None, "/dev/null".into(), "it is not a regular file"),
        ];
        let mut hands = Hands::new();
        for (ticket, (user, path, expected)) in (1..).zip(cases) {
            let mut launch = shell(ticket, "echo oops");
            launch.user = user.map(str::to_owned);
            launch.stdout = Output::File(path.clone());
            let (stage, error) = hands.fail(&launch);
            assert_eq!(stage, Stage::Output, "{error}");
            assert!(error.starts_with(&format!("could not open `{}`: ", path.display())), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
        assert!(!at("nothing").exists());
        hands.finish();
    }
}

/// Everything that a log gets, until it has so many lines.
fn hear(log: &UnixDatagram, count: usize) -> Vec<String> {
    log.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = [0; 4096];
    (0..count)
        .map(|_| {
            let length = log.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        })
        .collect()
}

/// The log's relays that are running.
fn relays() -> Vec<u32> {
    let is_relay =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "krond: log\n");
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).filter(is_relay).collect()
}

fn socket(path: &Path) -> UnixDatagram {
    let log = UnixDatagram::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    log
}

alone! {
    fn the_systems_log_gets_lines() under ["unshare", "--pid", "--fork", "--mount-proc"] {
        let directory = open_directory();
        let path = directory.path().join("log");
        let log = socket(&path);
        let mut hands = Hands::new();
        let mut launch = shell(1, "echo one; echo two >&2; printf 'a\\033b\\nlast'; sleep 60 & wait $!");
        (launch.stdout, launch.stderr) = (Output::Syslog, Output::Syslog);
        launch.syslog.clone_from(&path);
        launch.user = Some("nobody".into());
        let process = hands.start(&launch);
        let pid = process.pid;
        let mut lines = hear(&log, 3);
        lines.sort();
        assert_eq!(lines, [
            format!("<76>job-1[{pid}]: two"),
            format!("<78>job-1[{pid}]: a\\x1bb"),
            format!("<78>job-1[{pid}]: one"),
        ]);
        let [relay] = relays()[..] else { panic!("{:?}", relays()) };
        let status = fs::read_to_string(format!("/proc/{relay}/status")).unwrap();
        assert!(status.contains("Uid:\t65534\t65534\t65534\t65534"), "{status}");
        assert_eq!(super::world::descriptors(relay).len(), 3 + 3, "standard ones, the log and two streams");
        // Its memory was the spawner's once, with other jobs in it: that is not for its user to read.
        assert_eq!(fs::metadata(format!("/proc/{relay}/mem")).unwrap().uid(), 0);

        // It is no part of the run, and lasts as long as the output does.
        let mut tree = krond::tree::Tree::new(process);
        assert!(tree.look(&krond::tree::Snapshot::take().unwrap()));
        assert!(tree.members().all(|member| member.pid != relay));
        assert_eq!(tree.members().count(), 2);
        tree.signal(krond::children::Signal::Kill).unwrap();
        assert_eq!(hear(&log, 1), [format!("<78>job-1[{pid}]: last")]);
        hands.until("no relay is left", |_| relays().is_empty());

        // A log that was started anew is found again.
        let mut launch = shell(2, "echo before; while ! test -e /tmp/kron-log-anew; do sleep 0.01; done; echo after");
        launch.argv[2] = launch.argv[2].replace("/tmp/kron-log-anew", directory.path().join("anew").to_str().unwrap());
        launch.stdout = Output::Syslog;
        launch.syslog.clone_from(&path);
        let process = hands.start(&launch);
        assert_eq!(hear(&log, 1), [format!("<78>job-2[{}]: before", process.pid)]);
        drop(log);
        fs::remove_file(&path).unwrap();
        let log = socket(&path);
        fs::write(directory.path().join("anew"), "").unwrap();
        assert_eq!(hear(&log, 1), [format!("<78>job-2[{}]: after", process.pid)]);
        hands.until("ended", |hands| hands.ended.contains_key(&process.pid));

        // What is aborted leaves no relay either.
        launch.ticket = Ticket(3);
        hands.prepare(&launch);
        assert_eq!(relays().len(), 1);
        hands.abort(Ticket(3));
        hands.until("no relay is left", |_| relays().is_empty());
        hands.finish();
    }
}

alone! {
    fn without_a_log_nothing_starts() {
        let directory = open_directory();
        let mut hands = Hands::new();
        let mut launch = shell(1, "echo one");
        launch.stderr = Output::Syslog;
        launch.syslog = directory.path().join("log");
        let (stage, error) = hands.fail(&launch);
        let path = launch.syslog.display();
        let expected = format!("could not reach the system's log at `{path}`: No such file or directory (os error 2)");
        assert_eq!((stage, error), (Stage::Syslog, expected));
        hands.finish();
    }
}

alone! {
    fn a_relay_outlives_krond() {
        let name = "output::a_relay_outlives_krond";
        if let Some(directory) = std::env::var_os("KRON_TEST_VICTIM") {
            return victim(Path::new(&directory));
        }
        let directory = open_directory();
        let log = socket(&directory.path().join("log"));
        let place = Place::new();
        let mut krond = place.command(name, &[]).env("KRON_TEST_VICTIM", directory.path()).spawn().unwrap();
        let one = &hear(&log, 1)[0];
        krond.kill().unwrap();
        krond.wait().unwrap();
        fs::write(directory.path().join("go"), "").unwrap();
        assert_eq!(hear(&log, 1), [one.replace("one", "two")]);
    }
}

/// A krond with one run that has said something and has more to say.
fn victim(directory: &Path) {
    let mut hands = Hands::new();
    let go = directory.join("go");
    let mut launch =
        shell(1, &format!("echo one; until test -e {}; do sleep 0.01; done; echo two", go.display()));
    launch.stdout = Output::Syslog;
    launch.syslog = directory.join("log");
    hands.start(&launch);
    loop {
        hands.turn();
    }
}
