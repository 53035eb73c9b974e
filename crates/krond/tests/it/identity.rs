use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use krond::children::Exit;
use krond::process::ProcessId;
use krond::spawner::{Launch, Limit, Resource, Stage};

use super::world::{Hands, Place, descriptors, eventually, launch, open_directory, read, shell};

/// What the kernel says of a run.
struct Seen {
    status: BTreeMap<String, String>,
    environ: Vec<String>,
    cwd: PathBuf,
    descriptors: BTreeMap<u32, PathBuf>,
    limits: String,
}

impl Seen {
    fn of(process: ProcessId) -> Seen {
        let file = |name: &str| format!("/proc/{}/{name}", process.pid);
        let status = fs::read_to_string(file("status")).unwrap();
        let field = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let environ = String::from_utf8(fs::read(file("environ")).unwrap()).unwrap();
        // While a program is loaded it opens and closes libraries. What was leaked to it stays.
        let target = |number: u32| Some((number, fs::read_link(file(&format!("fd/{number}"))).ok()?));
        let mut open = BTreeMap::new();
        eventually("three descriptors", || {
            open = descriptors(process.pid).into_iter().filter_map(target).collect();
            open.keys().copied().eq(0..=2)
        });
        Seen {
            status: status.lines().map(field).collect(),
            environ: environ.split_terminator('\0').map(str::to_owned).collect(),
            cwd: fs::read_link(file("cwd")).unwrap(),
            descriptors: open,
            limits: fs::read_to_string(file("limits")).unwrap(),
        }
    }

    fn status(&self, name: &str) -> &str {
        &self.status[name]
    }

    fn limit(&self, name: &str) -> Vec<&str> {
        let line = self.limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().take(2).collect()
    }
}

/// Starts a run that does nothing, and looks at it.
fn seen(hands: &mut Hands, change: impl FnOnce(&mut Launch)) -> Seen {
    let ticket = 1 + hands.ready.len() as u64;
    let mut launch = launch(ticket, &["/bin/sleep", "60"]);
    change(&mut launch);
    let process = hands.start(&launch);
    let seen = Seen::of(process);
    assert_eq!(seen.status("Pid"), process.pid.to_string());
    assert_eq!(seen.status("NSsid"), process.pid.to_string(), "it leads a session");
    assert_eq!(seen.status("NSpgid"), process.pid.to_string(), "and a group");
    assert_eq!(seen.status("PPid"), std::process::id().to_string(), "and is krond's own");
    for name in ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"] {
        assert_eq!(seen.status(name), "0000000000000000", "{name}");
    }
    super::world::kill(process.pid);
    hands.until("ended", |hands| hands.ended.contains_key(&process.pid));
    seen
}

/// Whatever a careless krond has: open files, ignored signals, a mask.
fn careless() -> Vec<fs::File> {
    let open = |_| {
        let file = fs::File::open("/dev/zero").unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        file
    };
    (0..20).map(open).collect()
}

/// The user, group and other groups of a user, as `id` says.
fn id(flag: &str, user: &str) -> String {
    let output = std::process::Command::new("id").args([flag, user]).output().unwrap();
    let mut all: Vec<u32> =
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(|id| id.parse().unwrap()).collect();
    all.sort_unstable();
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

fn four(id: &str) -> String {
    [id; 4].join(" ")
}

alone! {
    fn a_run_of_krond_itself_has_what_krond_has_and_nothing_open() {
        let _open = careless();
        let own = fs::read_to_string("/proc/self/status").unwrap();
        let own = |name: &str| {
            let line = own.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let mut hands = Hands::new();
        let seen = seen(&mut hands, |_| {});
        let same =
            ["Uid", "Gid", "Groups", "Umask", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"];
        for name in same {
            assert_eq!(seen.status(name), own(name), "{name}");
        }
        assert_eq!(seen.limits, fs::read_to_string("/proc/self/limits").unwrap());
        assert_eq!(seen.descriptors[&0], PathBuf::from("/dev/null"));
        assert_eq!(seen.cwd, PathBuf::from("/root"));
        hands.finish();
    }
}

alone! {
    fn signals_that_krond_ignores_or_blocks_are_not_the_runs() under ["nohup", "env", "--block-signal=USR1", "--ignore-signal=TERM"] {
        let _open = careless();
        let mut hands = Hands::new();
        seen(&mut hands, |_| {});
        hands.finish();
    }
}

alone! {
    fn a_run_of_another_user_has_exactly_what_it_should() under ["setpriv", "--groups=1,2,3"] {
        let _open = careless();
        let mut hands = Hands::new();
        let lang = std::env::var("LANG").unwrap_or_else(|_| "C.UTF-8".into());
        let users = ["nobody", "www-data", "root"];
        for user in users {
            let seen = seen(&mut hands, |launch| {
                launch.user = Some(user.into());
                launch.umask = Some(0o027);
                launch.cwd = Some("/usr".into());
                launch.env = vec![("A".into(), "1 =\n".into()), ("PATH".into(), "/p".into()), ("A".into(), "2".into())];
            });
            assert_eq!(seen.status("Uid"), four(&id("-u", user)));
            assert_eq!(seen.status("Gid"), four(&id("-g", user)));
            assert_eq!(seen.status("Groups"), id("-G", user));
            assert_eq!(seen.status("Umask"), "0027");
            assert_eq!(seen.cwd, PathBuf::from("/usr"));
            for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                let is_none = seen.status(name) == "0000000000000000";
                assert_eq!(is_none, user != "root" || matches!(name, "CapInh" | "CapAmb"), "{user} {name}");
            }
            let home = fs::read_to_string("/etc/passwd").unwrap();
            let home = home.lines().find(|line| line.starts_with(&format!("{user}:"))).unwrap();
            let home = home.split(':').nth(5).unwrap();
            assert_eq!(seen.environ, [
                "PATH=/p".to_owned(),
                format!("LANG={lang}"),
                "SHELL=/bin/sh".to_owned(),
                format!("HOME={home}"),
                format!("USER={user}"),
                format!("LOGNAME={user}"),
                "A=2".to_owned(),
            ]);
        }
        // Another group; and a home that is not there.
        let seen = seen(&mut hands, |launch| {
            (launch.user, launch.group) = (Some("nobody".into()), Some("daemon".into()));
        });
        assert_eq!(seen.status("Uid"), four("65534"));
        assert_eq!(seen.status("Gid"), four("1"));
        assert_eq!(seen.status("Groups"), "1 65534".replace(" 65534", if id("-G", "nobody") == "65534" { "" } else { " 65534" }));
        assert_eq!(seen.cwd, PathBuf::from("/"));
        hands.finish();
    }
}

alone! {
    fn krond_environment_is_inherited_if_asked_for() under ["env", "X=y", "HOME=/x", "NOTIFY_SOCKET=/n"] {
        let mut hands = Hands::new();
        let seen = seen(&mut hands, |launch| (launch.inherit_env, launch.user) = (true, Some("nobody".into())));
        let mut expected: BTreeMap<String, String> = std::env::vars().collect();
        assert_eq!((&*expected["X"], &*expected["NOTIFY_SOCKET"]), ("y", "/n"));
        expected.remove("NOTIFY_SOCKET");
        for (name, value) in [("HOME", "/nonexistent"), ("USER", "nobody"), ("LOGNAME", "nobody")] {
            expected.insert(name.to_owned(), value.to_owned());
        }
        let pair = |variable: &String| {
            let (name, value) = variable.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        assert_eq!(seen.environ.iter().map(pair).collect::<BTreeMap<_, _>>(), expected);
        assert_eq!(seen.environ.len(), expected.len(), "no name twice");
        hands.finish();
    }
}

alone! {
    fn limits_are_set_and_the_spawners_own_are_not_seen() under ["prlimit", "--nofile=100:4096"] {
        let mut hands = Hands::new();
        let plain = seen(&mut hands, |_| {});
        assert_eq!(plain.limit("Max open files"), ["100", "4096"], "though the spawner needs more");
        let limit = |resource, soft, hard| Limit { resource, soft, hard };
        let limited = seen(&mut hands, |launch| {
            launch.user = Some("nobody".into());
            launch.limits = vec![
                limit(Resource::OpenFiles, Some(50), Some(60)),
                limit(Resource::Core, Some(0), None),
            ];
        });
        assert_eq!(limited.limit("Max open files"), ["50", "60"]);
        assert_eq!(limited.limit("Max core file size"), ["0", "unlimited"]);
        hands.finish();
    }
}

alone! {
    fn arguments_arrive_byte_for_byte() {
        let directory = open_directory();
        let mut hands = Hands::new();
        let all: Vec<String> = (1..=0x24f).filter_map(char::from_u32).map(|c| format!("{c}-{c}{c}")).collect();
        let odd = ["", " ", "a b", "$HOME", "`id`", "*", "\n", "%", "\\", "'\"", "-n", "--", "\u{1f980}"];
        let words: Vec<&str> = odd.into_iter().chain(all.iter().map(String::as_str)).collect();
        let out = directory.path().join("out");
        let text = format!("printf '%s\\0' \"$@\" > {}", out.display());
        let argv: Vec<&str> = ["/bin/sh", "-c", &text, "sh"].into_iter().chain(words.iter().copied()).collect();
        assert_eq!(hands.run(&launch(1, &argv)), Exit::Code(0));
        let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(fs::read_to_string(out).unwrap(), expected);
        // What a shell is given, and what the kernel keeps.
        let process = hands.start(&launch(2, &["/bin/sleep", "60"]));
        assert_eq!(fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap(), b"/bin/sleep\x0060\0");
        super::world::kill(process.pid);
        hands.finish();
    }
}

/// Asks for a run as `nobody`, which must fail in one stage, and leave nothing behind.
fn refused(stages: &[Stage]) {
    let directory = open_directory();
    let mark = directory.path().join("mark");
    let mut hands = Hands::new();
    let mut launch = launch(1, &["/usr/bin/touch", mark.to_str().unwrap()]);
    launch.user = Some("nobody".into());
    let (stage, error) = hands.fail(&launch);
    assert!(stages.contains(&stage), "{stage}: {error}");
    hands.release(launch.ticket);
    hands.linger();
    assert!(!mark.exists());
    hands.finish();
}

alone! {
    fn a_user_that_cannot_be_set_is_not_replaced_by_root() under ["setpriv", "--bounding-set=-setuid"] {
        refused(&[Stage::User]);
    }
}

alone! {
    fn groups_that_cannot_be_set_are_not_replaced_by_those_of_root() under ["setpriv", "--bounding-set=-setgid"] {
        refused(&[Stage::Groups]);
    }
}

alone! {
    fn whoever_could_become_root_again_does_not_run() under ["setpriv", "--securebits=+no_setuid_fixup"] {
        refused(&[Stage::Verify]);
    }
}

alone! {
    fn a_user_that_the_namespace_does_not_have_is_refused() under ["unshare", "--user", "--map-root-user"] {
        refused(&[Stage::Groups]);
    }
}

alone! {
    fn a_drop_that_the_kernel_refuses_or_only_pretends_is_noticed() {
        if std::process::Command::new("strace").arg("--version").output().is_err() {
            println!("skipped: there is no strace");
            return;
        }
        let place = Place::new();
        for (call, fault, stage) in [
            ("setgroups", "error=EAGAIN", "groups"),
            ("setresgid", "error=EAGAIN", "group"),
            ("setresuid", "error=EAGAIN", "user"),
            // These do nothing and say that all is well.
            ("setgroups", "retval=0", "verify"),
            ("setresgid", "retval=0", "verify"),
            ("setresuid", "retval=0", "verify"),
        ] {
            let inject = format!("inject={call}:{fault}");
            let under = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", &inject];
            let mut command = place.command("identity::a_stage_fails", &under);
            let output = command.env("KRON_TEST_STAGE", stage).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("1 passed"), "{inject}: {said}{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// Not a test by itself: what the one before runs in another process.
#[test]
fn a_stage_fails() {
    let Ok(stage) = std::env::var("KRON_TEST_STAGE") else { return };
    let stages = [Stage::Groups, Stage::Group, Stage::User, Stage::Verify];
    refused(&[stages.into_iter().find(|known| known.to_string() == stage).unwrap()]);
}

alone! {
    fn where_no_process_can_be_made_nothing_starts() under ["setpriv", "--reuid=54321", "--clear-groups", "prlimit", "--nproc=3"] {
        let mut hands = Hands::new();
        // This one, with two threads, and the spawner.
        let (stage, error) = hands.fail(&launch(1, &["/bin/true"]));
        assert_eq!(stage, Stage::Process);
        assert!(error.starts_with("could not make a process: Resource temporarily unavailable"), "{error}");
        let spawner = hands.spawner.pid();
        super::world::kill(spawner);
        hands.until("ended", |hands| hands.ended.contains_key(&spawner));
    }
}

alone! {
    fn only_root_runs_jobs_for_others() under ["setpriv", "--reuid=nobody", "--regid=nogroup", "--init-groups"] {
        let directory = open_directory();
        let out = directory.path().join("out");
        let mut hands = Hands::new();
        for (ticket, user) in [(1, "root"), (2, "www-data")] {
            let mut launch = launch(ticket, &["/bin/true"]);
            launch.user = Some(user.into());
            let (stage, error) = hands.fail(&launch);
            assert_eq!(stage, Stage::User);
            assert_eq!(error, format!("only root can run a job as `{user}`; krond runs as `nobody`"));
        }
        let mut other = launch(3, &["/bin/true"]);
        other.group = Some("daemon".into());
        assert_eq!(hands.fail(&other).0, Stage::Group);
        for (ticket, user, group) in [(4, None, None), (5, Some("nobody"), None), (6, None, Some("nogroup"))] {
            let mut launch = shell(ticket, &format!("id -u > {}", out.display()));
            (launch.user, launch.group) = (user.map(str::to_owned), group.map(str::to_owned));
            assert_eq!(hands.run(&launch), Exit::Code(0));
            assert_eq!(read(&out), "65534\n");
        }
        hands.finish();
    }
}

alone! {
    fn a_program_that_only_root_may_run_is_not_run_for_others() {
        use std::os::unix::fs::PermissionsExt;
        let directory = open_directory();
        let program = directory.path().join("program");
        fs::copy("/bin/true", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let mut hands = Hands::new();
        let mut launch = launch(1, &[program.to_str().unwrap()]);
        launch.user = Some("nobody".into());
        assert_eq!(hands.fail(&launch).0, Stage::Program);
        (launch.ticket, launch.user) = (krond::spawner::Ticket(2), None);
        assert_eq!(hands.run(&launch), Exit::Code(0));
        hands.finish();
    }
}

/// The test of the test: what was opened carelessly would have been seen.
#[test]
fn descriptors_are_seen() {
    let open = careless();
    let seen = descriptors(std::process::id());
    assert!(open.iter().all(|file| seen.contains(&file.as_raw_fd().cast_unsigned())));
}
