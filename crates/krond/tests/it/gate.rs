use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use krond::children::Exit;
use krond::spawner::{Answer, NOT_STARTED, Stage, Ticket, WAVE};
use rustix::process::{Pid, Signal, kill_process};

use super::world::{
    Hands, Place, children_of, descriptors, eventually, exe, hold, is_alive, kill, launch, open_directory,
    read, shell,
};

/// A launch that leaves a mark if it ever runs.
fn marking(ticket: u64, directory: &Path) -> krond::spawner::Launch {
    let mark = directory.join(format!("ran-{ticket}"));
    launch(ticket, &["/usr/bin/touch", mark.to_str().unwrap()])
}

fn marks(directory: &Path) -> usize {
    let is_mark = |entry: &fs::DirEntry| entry.file_name().to_str().unwrap().starts_with("ran-");
    fs::read_dir(directory).unwrap().filter(|entry| is_mark(entry.as_ref().unwrap())).count()
}

/// Says something to the spawner itself.
fn signal(hands: &Hands, signal: Signal) {
    let pid = Pid::from_raw(hands.spawner.pid().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

alone! {
    fn nothing_runs_before_it_is_released() {
        let directory = open_directory();
        let mut hands = Hands::new();
        let process = hands.prepare(&marking(1, directory.path()));
        let at_gate = exe(process.pid);
        hands.linger();
        assert_eq!(marks(directory.path()), 0);
        assert_eq!(exe(process.pid), at_gate, "it is the spawner's program still");
        assert!(children_of(std::process::id()).iter().any(|(pid, _)| *pid == process.pid), "it is krond's own");
        hands.release(Ticket(1));
        hands.until("ended", |hands| hands.ended.get(&process.pid) == Some(&Exit::Code(0)));
        assert_eq!(marks(directory.path()), 1);
        hands.finish();
    }
}

alone! {
    fn what_is_aborted_never_runs() {
        let directory = open_directory();
        let mut hands = Hands::new();
        let process = hands.prepare(&marking(1, directory.path()));
        hands.abort(Ticket(1));
        hands.until("ended", |hands| hands.ended.get(&process.pid) == Some(&Exit::Code(NOT_STARTED)));
        // Too late, and without effect.
        hands.release(Ticket(1));
        // Before it was ready, or even sent: no answer will come.
        for ticket in 2..=3 * WAVE as u64 {
            hands.spawner.prepare(&marking(ticket, directory.path())).unwrap();
        }
        hands.flush();
        for ticket in 2..=3 * WAVE as u64 {
            hands.abort(Ticket(ticket));
        }
        let after = 3 * WAVE as u64 + 1;
        assert_eq!(hands.run(&launch(after, &["/bin/true"])), Exit::Code(0));
        hands.linger();
        assert_eq!(marks(directory.path()), 0);
        assert_eq!(hands.ready.keys().copied().collect::<Vec<_>>(), [Ticket(1), Ticket(after)]);
        hands.finish();
    }
}

alone! {
    fn a_dropped_spawner_takes_its_gates_along() {
        let directory = open_directory();
        let mut hands = Hands::new();
        for ticket in 0..50 {
            hands.prepare(&marking(ticket, directory.path()));
        }
        let gated: Vec<u32> = hands.ready.values().map(|process| process.pid).collect();
        hands.finish();
        assert!(!gated.into_iter().any(is_alive));
        assert_eq!(marks(directory.path()), 0);
    }
}

alone! {
    fn a_killed_spawner_takes_its_gates_along_and_says_which() {
        let directory = open_directory();
        let mut hands = Hands::new();
        let running = hands.start(&launch(1000, &["/bin/sleep", "60"]));
        for ticket in 0..50 {
            hands.prepare(&marking(ticket, directory.path()));
        }
        for ticket in 50..50 + WAVE as u64 {
            hands.spawner.prepare(&marking(ticket, directory.path())).unwrap();
        }
        hands.flush();
        kill(hands.spawner.pid());
        hands.until("gone", |hands| hands.gone.is_some());
        let tickets: Vec<Ticket> = (0..50 + WAVE as u64).map(Ticket).collect();
        assert_eq!(hands.gone, Some(tickets));
        assert!(hands.spawner.prepare(&launch(2000, &["/bin/true"])).is_err());
        assert!(!hands.spawner.wants_write());
        hands.until("only the run is left", |_| children_of(std::process::id()).len() == 1);
        assert!(is_alive(running.pid), "what was released goes on");
        assert_eq!(marks(directory.path()), 0);
        kill(running.pid);
        hands.until("it has ended", |hands| hands.ended.contains_key(&running.pid));
        assert_eq!(children_of(std::process::id()), []);
    }
}

alone! {
    fn a_killed_krond_takes_its_gates_along() {
        if let Some(directory) = std::env::var_os("KRON_TEST_VICTIM") {
            return victim(Path::new(&directory));
        }
        let directory = open_directory();
        let place = Place::new();
        let mut victim = place
            .command("gate::a_killed_krond_takes_its_gates_along", &[])
            .env("KRON_TEST_VICTIM", directory.path())
            .spawn()
            .unwrap();
        let text = read(&directory.path().join("processes"));
        let pids: Vec<u32> = text.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        let [spawner, running, gated @ ..] = &pids[..] else { panic!("{text}") };
        assert_eq!(gated.len(), 50);
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        victim.kill().unwrap();
        victim.wait().unwrap();
        eventually("the gates are closed", || !gated.iter().any(|pid| is_alive(*pid)) && !is_alive(*spawner));
        assert!(is_alive(*running), "what was released goes on");
        assert_eq!(marks(directory.path()), 0);
        kill(*running);
    }
}

/// A krond that has many at the gate, one of them released, and then nothing more to do.
fn victim(directory: &Path) {
    let mut hands = Hands::new();
    let running = hands.start(&launch(1000, &["/bin/sleep", "60"]));
    let mut text = format!("{} {}", hands.spawner.pid(), running.pid);
    for ticket in 0..50 {
        let process = hands.prepare(&marking(ticket, directory));
        text += &format!(" {}", process.pid);
    }
    fs::write(directory.join("processes"), text + "\n").unwrap();
    loop {
        hands.turn();
    }
}

alone! {
    fn whoever_ends_at_the_gate_has_failed() {
        let mut hands = Hands::new();
        let process = hands.prepare(&launch(1, &["/bin/true"]));
        kill(process.pid);
        hands.until("failed", |hands| hands.failed.contains_key(&Ticket(1)));
        assert_eq!(hands.failed[&Ticket(1)].0, Stage::Gate);
        hands.until("reaped", |hands| hands.ended.get(&process.pid) == Some(&Exit::Signal(9)));
        hands.finish();
    }
}

alone! {
    fn who_is_at_the_gate_does_not_wait_for_others_to_be_made() {
        let mut hands = Hands::new();
        hands.prepare(&launch(0, &["/bin/true"]));
        // While it does nothing, very much is asked of it, and the release comes last.
        signal(&hands, Signal::STOP);
        for ticket in 1..40 {
            hands.spawner.prepare(&launch(ticket, &["/bin/true"])).unwrap();
        }
        hands.flush();
        hands.release(Ticket(0));
        assert!(!hands.spawner.wants_write(), "all of it has been said");
        signal(&hands, Signal::CONT);
        let mut answers = Vec::new();
        eventually("something is answered", || {
            answers = hands.spawner.answers(Duration::ZERO).unwrap();
            !answers.is_empty()
        });
        assert_eq!(answers[0], Answer::Released { tickets: vec![Ticket(0)] });
        hands.finish();
    }
}

alone! {
    fn a_thousand_at_once_need_few_descriptors() {
        const ALL: usize = 1_000;
        let mut hands = Hands::new();
        let before = descriptors(std::process::id());
        for ticket in 0..ALL as u64 {
            hands.spawner.prepare(&launch(ticket, &["/bin/true"])).unwrap();
        }
        hands.until("a wave is ready", |hands| hands.ready.len() == WAVE);
        hands.linger();
        assert_eq!(hands.ready.len(), WAVE, "no more than a wave at the gate");
        let mut most = 0;
        let mut released = BTreeSet::new();
        hands.until("all have run", |hands| {
            most = most.max(descriptors(hands.spawner.pid()).len());
            assert_eq!(descriptors(std::process::id()), before);
            let ready: Vec<Ticket> = hands.ready.keys().copied().collect();
            for ticket in ready.into_iter().filter(|ticket| released.insert(*ticket)) {
                hands.release(ticket);
            }
            hands.ended.len() == ALL
        });
        assert!((WAVE..WAVE + 16).contains(&most), "{most} descriptors");
        assert!(hands.ended.values().all(|exit| *exit == Exit::Code(0)));
        assert_eq!(hands.failed.len(), 0);
        hands.finish();
    }
}

alone! {
    fn what_cannot_be_set_up_says_where_and_why() {
        let directory = open_directory();
        let plain = directory.path().join("plain");
        fs::write(&plain, "not a program").unwrap();
        let mut hands = Hands::new();
        let with = |change: fn(&mut krond::spawner::Launch)| {
            let mut launch = launch(1, &["/bin/true"]);
            change(&mut launch);
            launch
        };
        let cases = [
            (launch(1, &["/no/such"]), Stage::Program, "could not run `/no/such`: No such file or directory"),
            (launch(1, &["/"]), Stage::Program, "could not run `/`: it is a directory"),
            (launch(1, &["true"]), Stage::Program, "could not run `true`: it is not an absolute path"),
            (launch(1, &[]), Stage::Program, "could not run ``: it is not an absolute path"),
            (launch(1, &[plain.to_str().unwrap()]), Stage::Program, "Permission denied"),
            (launch(1, &["/bin/echo", "a\0b"]), Stage::Arguments, "a zero byte"),
            (with(|l| l.user = Some("nobody-here".into())), Stage::Account, "there is no user `nobody-here`"),
            (with(|l| l.group = Some("nobody-here".into())), Stage::Account, "there is no group `nobody-here`"),
            (with(|l| l.cwd = Some("/no/such".into())), Stage::Directory, "could not enter `/no/such`: No such"),
            (
                with(|l| (l.user, l.cwd) = (Some("nobody".into()), Some("/root".into()))),
                Stage::Directory,
                "Permission denied",
            ),
        ];
        for (ticket, (mut launch, stage, error)) in (100..).zip(cases) {
            launch.ticket = Ticket(ticket);
            let (at, said) = hands.fail(&launch);
            assert!(at == stage && said.contains(error), "{at}: {said}");
        }
        // A long text is cut, and arrives.
        let (at, said) = hands.fail(&launch(1, &[&format!("/{}", "ü".repeat(5_000))]));
        assert_eq!((at, said.len()), (Stage::Program, 2 << 10));
        // And those that come after are none the worse.
        assert_eq!(hands.run(&launch(2, &["/bin/true"])), Exit::Code(0));
        hands.until("reaped", |_| children_of(std::process::id()).len() == 1);
        hands.finish();
    }
}

alone! {
    fn a_program_that_vanishes_at_the_gate_is_not_found() {
        use std::os::unix::fs::PermissionsExt;
        let directory = open_directory();
        let program = directory.path().join("program");
        let mut hands = Hands::new();
        for (ticket, code) in [(1, 127), (2, 126)] {
            fs::copy("/bin/true", &program).unwrap();
            let process = hands.prepare(&launch(ticket, &[program.to_str().unwrap()]));
            match code {
                127 => fs::remove_file(&program).unwrap(),
                _ => fs::set_permissions(&program, fs::Permissions::from_mode(0o600)).unwrap(),
            }
            hands.release(Ticket(ticket));
            hands.until("ended", |hands| hands.ended.get(&process.pid) == Some(&Exit::Code(code)));
        }
        hands.finish();
    }
}

alone! {
    fn a_process_is_itself_at_the_gate_and_as_the_program() {
        let mut hands = Hands::new();
        let process = hands.start(&launch(1, &["/bin/sleep", "60"]));
        let held = krond::children::identify(&process).unwrap().expect("it is there");
        assert!(hold(process.pid).is_some());
        held.signal(krond::children::Signal::Kill).unwrap();
        hands.until("ended", |hands| hands.ended.get(&process.pid) == Some(&Exit::Signal(9)));
        assert!(krond::children::identify(&process).unwrap().is_none());
        assert_eq!(held.wait().unwrap(), krond::children::Waited::Ended(None));
        hands.finish();
    }
}

alone! {
    fn a_full_socket_makes_nobody_wait() {
        let directory = open_directory();
        let out = directory.path().join("out");
        let mut hands = Hands::new();
        // The spawner is stopped, and krond goes on.
        let spawner = rustix::process::Pid::from_raw(hands.spawner.pid().cast_signed()).unwrap();
        rustix::process::kill_process(spawner, rustix::process::Signal::STOP).unwrap();
        let long = "x".repeat(40_000);
        for ticket in 0..40 {
            let text = format!("printf %s \"$LONG\" | wc -c >> {}", out.display());
            let mut launch = shell(ticket, &text);
            launch.env.push(("LONG".into(), long.clone()));
            hands.spawner.prepare(&launch).unwrap();
        }
        hands.flush();
        assert!(hands.spawner.wants_write());
        rustix::process::kill_process(spawner, rustix::process::Signal::CONT).unwrap();
        hands.until("ready", |hands| hands.ready.len() == 40);
        assert!(!hands.spawner.wants_write());
        for ticket in 0..40 {
            hands.release(Ticket(ticket));
        }
        hands.until("ended", |hands| hands.ended.len() == 40);
        assert_eq!(fs::read_to_string(&out).unwrap(), "40000\n".repeat(40));
        hands.finish();
    }
}

alone! {
    fn a_child_that_is_stuck_keeps_no_other_gate_open() {
        // Sometimes the spawner is stuck before any child is.
        assert!((0..10).any(|_| was_stuck()), "none was ever stuck");
    }
}

/// Kills the spawner while some wait at their gates and others wait to be heard. Returns whether there were such.
fn was_stuck() -> bool {
    let mut hands = Hands::new();
    for ticket in 0..10 {
        hands.prepare(&launch(ticket, &["/bin/true"]));
    }
    let gated: Vec<u32> = hands.ready.values().map(|process| process.pid).collect();
    // Nobody hears what these have to say, so some of them wait to say it, and the spawner with them.
    let long = format!("/{}", "x".repeat(2_100));
    for ticket in 10..210 {
        hands.spawner.prepare(&launch(ticket, &[&long])).unwrap();
    }
    hands.flush();
    let living = || -> Vec<u32> {
        children_of(std::process::id()).iter().map(|(pid, _)| *pid).filter(|pid| is_alive(*pid)).collect()
    };
    let (mut before, mut quiet) = (Vec::new(), 0);
    eventually("nothing goes on", || {
        let now = living();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
        quiet == 40
    });
    kill(hands.spawner.pid());
    eventually("the gates are closed", || !gated.iter().any(|pid| is_alive(*pid)));
    let was_stuck = !living().is_empty();
    hands.until("nobody is left", |_| children_of(std::process::id()).is_empty());
    let gone = hands.gone.unwrap();
    assert!(gone.starts_with(&(0..10).map(Ticket).collect::<Vec<_>>()));
    assert_eq!(gone.len() + hands.failed.len(), 210, "and everyone is accounted for");
    was_stuck
}

alone! {
    fn a_child_that_is_stopped_at_the_gate_hides_no_end_of_the_spawner() {
        let mut hands = Hands::new();
        let process = hands.prepare(&launch(1, &["/bin/true"]));
        let pid = rustix::process::Pid::from_raw(process.pid.cast_signed()).unwrap();
        eventually("it waits", || descriptors(process.pid).len() == 4);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        kill(hands.spawner.pid());
        hands.until("gone", |hands| hands.gone.is_some());
        assert!(is_alive(process.pid));
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        hands.until("ended", |hands| hands.ended.get(&process.pid) == Some(&Exit::Code(NOT_STARTED)));
    }
}

/// A directory that hangs whoever enters it, as one does whose server is gone.
fn hang(directory: &Path) -> fs::File {
    let fuse = fs::File::options().read(true).write(true).open("/dev/fuse").unwrap();
    rustix::io::fcntl_setfd(&fuse, rustix::io::FdFlags::empty()).unwrap();
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd());
    let mut mount = std::process::Command::new("mount");
    mount.args(["--internal-only", "-t", "fuse", "-o", &options, "nobody-serves"]).arg(directory);
    assert!(mount.status().unwrap().success());
    rustix::io::fcntl_setfd(&fuse, rustix::io::FdFlags::CLOEXEC).unwrap();
    fuse
}

alone! {
    fn whose_set_up_hangs_holds_up_nobody_and_is_given_up() under ["unshare", "--mount"] {
        if !Path::new("/dev/fuse").exists() {
            return println!("skipped: there is no /dev/fuse");
        }
        let directory = open_directory();
        let fuse = hang(directory.path());
        let mut hands = Hands::new();
        // More than a wave of them.
        let hung = WAVE as u64 + 40;
        for ticket in 0..hung {
            let mut launch = launch(ticket, &["/bin/true"]);
            launch.cwd = Some(directory.path().to_owned());
            hands.spawner.prepare(&launch).unwrap();
        }
        assert_eq!(hands.run(&launch(hung, &["/bin/true"])), Exit::Code(0), "nobody waits for them");
        hands.linger();
        assert!(hands.failed.len() <= 40, "they have their time: {:?}", hands.failed);
        // It passes.
        hands.later = krond::spawner::SETUP_MAX;
        hands.until("given up", |hands| hands.failed.len() as u64 == hung);
        for (stage, error) in hands.failed.values() {
            assert!(*stage == Stage::SetUp && error.contains("not ready after"), "{stage}: {error}");
        }
        hands.until("nothing is left of them", |_| children_of(std::process::id()).len() == 1);
        assert!(descriptors(hands.spawner.pid()).len() < 16, "and no gate");
        assert_eq!(hands.run(&launch(hung + 1, &["/bin/true"])), Exit::Code(0));
        hands.later = std::time::Duration::ZERO;
        hands.finish();
        drop(fuse);
        let _ = std::process::Command::new("umount").arg("--lazy").arg(directory.path()).status();
    }
}
