use std::fs;
use std::process::{Command, Stdio};

use krond::children::{self, Exit, Signal, Waited};
use krond::process::ProcessId;
use krond::tree::{Snapshot, Tree};

use super::world::{Hands, eventually, hold, is_alive, kill, launch, open_directory, read, shell};

/// The numbers in a file, once there are so many.
fn numbers(path: &std::path::Path, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    eventually("all have begun", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        numbers = text.lines().filter_map(|line| line.parse().ok()).collect();
        numbers.len() == count
    });
    numbers
}

fn look(tree: &mut Tree) -> bool {
    tree.look(&Snapshot::take().unwrap())
}

alone! {
    fn exits_are_told_as_they_were() {
        let mut hands = Hands::new();
        for (ticket, text, exit, code) in [
            (1, "exit 0", Exit::Code(0), 0),
            (2, "exit 1", Exit::Code(1), 1),
            (3, "exit 255", Exit::Code(255), 255),
            (4, "kill -TERM $$", Exit::Signal(15), 143),
            (5, "kill -KILL $$", Exit::Signal(9), 137),
            (6, "kill -SEGV $$", Exit::Signal(11), 139),
        ] {
            let found = hands.run(&shell(ticket, text));
            assert_eq!((found, found.code()), (exit, code), "{text}");
        }
        hands.finish();
    }
}

alone! {
    fn a_child_can_be_waited_for_by_its_hold() {
        let mut hands = Hands::new();
        let process = hands.prepare(&shell(1, "exit 7"));
        let held = children::identify(&process).unwrap().unwrap();
        assert_eq!(held.wait().unwrap(), Waited::Running);
        hands.release(krond::spawner::Ticket(1));
        // Not by `reap`: nobody asks it here.
        let mut found = Waited::Running;
        eventually("ended", || {
            hands.spawner.answers(krond::clock::now().uptime).unwrap();
            found = held.wait().unwrap();
            found != Waited::Running
        });
        assert_eq!(found, Waited::Ended(Some(Exit::Code(7))));
        assert_eq!(held.wait().unwrap(), Waited::Ended(None), "only the first time");
        hands.finish();
    }
}

alone! {
    fn a_run_of_an_earlier_krond_is_found_and_its_exit_unknown() {
        let directory = open_directory();
        let out = directory.path().join("pid");
        // Its parent is a shell that has ended, as an earlier krond has.
        let text = format!("setsid sleep 60 & echo $! > {}", out.display());
        Command::new("/bin/sh").args(["-c", &text]).stdout(Stdio::null()).status().unwrap();
        let pid: u32 = read(&out).trim().parse().unwrap();
        let process = ProcessId {
            boot: children::boot_id().unwrap(),
            pid,
            start_ticks: children::start_ticks(pid).unwrap().unwrap(),
        };
        let held = children::identify(&process).unwrap().unwrap();
        assert_eq!(held.wait().unwrap(), Waited::Running);
        eventually("it is a session", || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "sleep\n");
        let mut tree = Tree::new(process);
        assert!(look(&mut tree));
        assert_eq!(tree.signal(Signal::Terminate).unwrap(), 1);
        eventually("ended", || held.wait().unwrap() != Waited::Running);
        assert_eq!(held.wait().unwrap(), Waited::Ended(None));
        assert!(!look(&mut tree));
    }
}

/// A tree of which everybody ignores TERM: a child, a grandchild whose parent has ended, one in a session of its own,
/// and a child of that.
const STUBBORN: &str = r#"
trap '' TERM
echo $$ >> OUT
sleep 300 & echo $! >> OUT
(sh -c 'echo $$ >> OUT; exec sleep 300' &)
setsid sh -c 'echo $$ >> OUT; sleep 300 & echo $! >> OUT; wait' &
wait; wait; wait; sleep 300
"#;

alone! {
    fn a_tree_that_ignores_term_is_killed_whole() {
        let directory = open_directory();
        let out = directory.path().join("pids");
        let mut hands = Hands::new();
        let stranger = hands.start(&launch(2, &["/bin/sleep", "60"]));
        let process = hands.start(&shell(1, &STUBBORN.replace("OUT", out.to_str().unwrap())));
        let mut all = numbers(&out, 5);
        all.sort_unstable();
        let mut tree = Tree::new(process);
        assert!(look(&mut tree));
        let found: Vec<u32> = tree.members().map(|member| member.pid).collect();
        assert_eq!(found, all);
        assert_eq!(tree.signal(Signal::Terminate).unwrap(), 5);
        hands.linger();
        assert!(look(&mut tree), "they ignore it");
        assert_eq!(tree.members().count(), 5);
        tree.signal(Signal::Kill).unwrap();
        hands.until("the tree is gone", |_| !look(&mut tree));
        assert!(!all.iter().any(|pid| is_alive(*pid)));
        hands.until("reaped", |hands| hands.ended.get(&process.pid) == Some(&Exit::Signal(9)));
        assert!(is_alive(stranger.pid));
        kill(stranger.pid);
        hands.until("reaped", |hands| hands.ended.contains_key(&stranger.pid));
        hands.finish();
    }
}

alone! {
    fn what_is_left_of_a_run_is_found_after_its_leader_has_ended() {
        let directory = open_directory();
        let out = directory.path().join("pids");
        let mut hands = Hands::new();
        let text = "sleep 300 & echo $! >> OUT; setsid sleep 300 & echo $! >> OUT; sleep 300";
        let process = hands.start(&shell(1, &text.replace("OUT", out.to_str().unwrap())));
        let left = numbers(&out, 2);
        let mut tree = Tree::new(process);
        assert!(look(&mut tree));
        kill(process.pid);
        hands.until("the leader has ended", |hands| hands.ended.contains_key(&process.pid));
        assert!(look(&mut tree), "a run that replaces it has to wait");
        let mut found: Vec<u32> = tree.members().map(|member| member.pid).collect();
        found.retain(|pid| left.contains(pid));
        assert_eq!(found.len(), 2);
        tree.signal(Signal::Kill).unwrap();
        hands.until("the tree is gone", |_| !look(&mut tree));
        assert!(!left.iter().any(|pid| is_alive(*pid)));
        hands.finish();
    }
}

alone! {
    fn a_number_that_was_used_again_is_a_stranger() under ["unshare", "--pid", "--fork", "--mount-proc"] {
        let sleep = || Command::new("setsid").args(["/bin/sleep", "60"]).spawn().unwrap();
        let mut first = sleep();
        let pid = first.id();
        let process = ProcessId {
            boot: children::boot_id().unwrap(),
            pid,
            start_ticks: children::start_ticks(pid).unwrap().unwrap(),
        };
        let held = children::identify(&process).unwrap().unwrap();
        let mut tree = Tree::new(process);
        assert!(look(&mut tree));
        first.kill().unwrap();
        first.wait().unwrap();
        // The kernel counts in hundredths of a second, and hands numbers out in turn.
        eventually("another hundredth", || {
            let mut other = Command::new("/bin/true").spawn().unwrap();
            let is_later = children::start_ticks(other.id()).unwrap() > Some(process.start_ticks + 1);
            other.wait().unwrap();
            is_later
        });
        let mut again = None;
        eventually("the number is used again", || {
            fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
            let mut other = sleep();
            if other.id() == pid {
                again = Some(other);
                return true;
            }
            other.kill().unwrap();
            other.wait().unwrap();
            false
        });
        let mut again = again.unwrap();
        assert!(hold(pid).is_some(), "someone is there");
        assert!(children::identify(&process).unwrap().is_none(), "and is not the one");
        assert!(!held.signal(Signal::Kill).unwrap());
        assert_eq!(tree.signal(Signal::Kill).unwrap(), 0, "even if it was not looked for again");
        assert!(!look(&mut tree));
        assert!(is_alive(pid));
        again.kill().unwrap();
        again.wait().unwrap();
    }
}
