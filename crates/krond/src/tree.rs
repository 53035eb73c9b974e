//! A run's whole tree: the process krond has started, and what has come of it.
//!
//! What belongs to a run is found from what the kernel says of all processes ([`Snapshot`]): whatever is in a session
//! that the run has begun, and whatever was started by a process of the run. Nothing else is ever signalled.
//!
//! A process escapes if it begins a session of its own *and* its parent ends before krond has looked once: then nothing
//! connects it with the run any more. krond does not take orphans to itself (`PR_SET_CHILD_SUBREAPER`) against that: it
//! would have them, and still not know whose they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;

use crate::children::{Signal, Stat, boot_id, identify_in_this_boot};
use crate::process::{BootId, ProcessId};

/// All processes at one moment that have not ended. One serves for any number of trees, and a look at it costs what the tree has
/// and not what the machine has.
#[derive(Clone, Debug)]
pub struct Snapshot {
    boot: BootId,
    processes: HashMap<u32, Stat>,
    /// Whom each has started, and who is in each session.
    children: HashMap<u32, Vec<u32>>,
    sessions: HashMap<u32, Vec<u32>>,
}

impl Snapshot {
    /// Looks at every process there is.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn take() -> io::Result<Snapshot> {
        let mut processes = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            // It may have ended since. Who cannot be looked at is another user's, where /proc hides those.
            if let Ok(Some(stat)) = Stat::read(pid) {
                processes.push((pid, stat));
            }
        }
        Ok(Snapshot::of(boot_id()?, processes))
    }

    fn of(boot: BootId, processes: Vec<(u32, Stat)>) -> Snapshot {
        let processes: HashMap<u32, Stat> =
            processes.into_iter().filter(|(_, stat)| !has_ended(stat)).collect();
        let (mut children, mut sessions) = (HashMap::new(), HashMap::new());
        for (&pid, stat) in &processes {
            children.entry(stat.parent).or_insert_with(Vec::new).push(pid);
            sessions.entry(stat.session).or_insert_with(Vec::new).push(pid);
        }
        Snapshot { boot, processes, children, sessions }
    }

    /// Whether that very process is there.
    fn has(&self, pid: u32, start_ticks: u64) -> bool {
        self.processes.get(&pid).is_some_and(|stat| stat.start_ticks == start_ticks)
    }
}

/// A zombie is nobody, unless it is only the first of several threads that has ended.
fn has_ended(stat: &Stat) -> bool {
    matches!(stat.state, b'Z' | b'X' | b'x') && stat.threads <= 1
}

/// What belongs to one run. It learns with every [`look`](Tree::look), so look at once when a run is to be ended, and
/// then again until nothing is left.
#[derive(Clone, Debug)]
pub struct Tree {
    leader: ProcessId,
    /// Whom the last look found, by number and start.
    members: BTreeMap<u32, u64>,
    /// Sessions that were begun by one of the run. A number stays taken as long as anyone is in its session, so it is
    /// theirs until a look finds none of those it knew in it.
    sessions: BTreeSet<u32>,
}

impl Tree {
    /// The tree of a run that krond has started: its first process leads a session.
    #[must_use]
    pub fn new(leader: ProcessId) -> Tree {
        let (members, sessions) = ([(leader.pid, leader.start_ticks)].into(), [leader.pid].into());
        Tree { leader, members, sessions }
    }

    /// Finds who belongs to the run, and returns whether anyone does.
    pub fn look(&mut self, snapshot: &Snapshot) -> bool {
        if snapshot.boot != self.leader.boot {
            self.members.clear();
            self.sessions.clear();
            return false;
        }
        let known = self.members.iter().filter(|(pid, ticks)| snapshot.has(**pid, **ticks));
        let mut left: Vec<u32> = known.map(|(&pid, _)| pid).collect();
        let mut found = BTreeMap::new();
        let mut sessions = BTreeSet::new();
        while let Some(pid) = left.pop() {
            let stat = &snapshot.processes[&pid];
            if found.insert(pid, stat.start_ticks).is_some() {
                continue;
            }
            left.extend(snapshot.children.get(&pid).into_iter().flatten());
            let is_theirs = stat.session == pid || self.sessions.contains(&stat.session);
            if is_theirs && sessions.insert(stat.session) {
                left.extend(&snapshot.sessions[&stat.session]);
            }
        }
        self.members = found;
        self.sessions = sessions;
        !self.members.is_empty()
    }

    /// Whom the last look found. Before the first, that is the leader.
    pub fn members(&self) -> impl Iterator<Item = ProcessId> {
        let boot = self.leader.boot;
        self.members.iter().map(move |(&pid, &start_ticks)| ProcessId { boot, pid, start_ticks })
    }

    /// Signals whom the last look found, each identified once more. Returns how many were still there.
    ///
    /// # Errors
    /// The first error, after all were tried.
    pub fn signal(&self, signal: Signal) -> io::Result<usize> {
        let mut reached = 0;
        let mut failed = None;
        if boot_id()? != self.leader.boot {
            return Ok(0);
        }
        for (&pid, &ticks) in &self.members {
            let held = identify_in_this_boot(pid, ticks);
            match held.and_then(|held| held.map_or(Ok(false), |held| held.signal(signal))) {
                Ok(was_there) => reached += usize::from(was_there),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(reached), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId::new(1);

    /// Processes as (number, parent, session, ticks).
    fn snapshot(processes: &[(u32, u32, u32, u64)]) -> Snapshot {
        Snapshot::of(BOOT, processes.iter().map(stat).collect())
    }

    fn stat(&(pid, parent, session, start_ticks): &(u32, u32, u32, u64)) -> (u32, Stat) {
        (pid, Stat { state: b'S', parent, session, threads: 1, start_ticks })
    }

    fn tree() -> Tree {
        Tree::new(ProcessId { boot: BOOT, pid: 10, start_ticks: 100 })
    }

    fn pids(tree: &Tree) -> Vec<u32> {
        tree.members().map(|process| process.pid).collect()
    }

    const KROND: (u32, u32, u32, u64) = (5, 1, 5, 50);
    const LEADER: (u32, u32, u32, u64) = (10, 5, 10, 100);

    #[test]
    fn a_session_and_its_descendants_belong_and_nobody_else() {
        let mut tree = tree();
        let stranger = (99, 5, 99, 100);
        let (child, orphan) = ((11, 10, 10, 101), (12, 1, 10, 102));
        let (daemon, its_child) = ((13, 11, 13, 103), (14, 1, 13, 104));
        assert!(tree.look(&snapshot(&[KROND, LEADER, stranger, child, orphan, daemon, its_child])));
        assert_eq!(pids(&tree), [10, 11, 12, 13, 14]);
    }

    #[test]
    fn whoever_was_found_stays_found_when_its_parents_have_ended() {
        let mut tree = tree();
        tree.look(&snapshot(&[KROND, LEADER, (13, 10, 13, 103)]));
        assert!(tree.look(&snapshot(&[KROND, (13, 1, 13, 103), (15, 1, 13, 105)])));
        assert_eq!(pids(&tree), [13, 15]);
        assert!(!tree.look(&snapshot(&[KROND])));
    }

    #[test]
    fn numbers_that_were_used_again_are_strangers() {
        let mut tree = tree();
        tree.look(&snapshot(&[KROND, LEADER, (11, 10, 10, 101)]));
        // Number 10 leads another session now, with a child in it; 11 is someone else's.
        assert!(!tree.look(&snapshot(&[KROND, (10, 1, 10, 900), (20, 10, 10, 901), (11, 1, 1, 902)])));
        assert!(!tree.look(&snapshot(&[KROND, LEADER])), "what was gone does not come back");
    }

    #[test]
    fn a_leader_that_is_not_there_leads_nobody() {
        let mut tree = tree();
        assert!(!tree.look(&snapshot(&[KROND, (12, 1, 10, 102)])));
    }

    #[test]
    fn another_boot_has_nobody() {
        let mut tree = tree();
        let other = Snapshot { boot: BootId::new(2), ..snapshot(&[KROND, LEADER]) };
        assert!(!tree.look(&other));
    }

    #[test]
    fn a_zombie_is_nobody_unless_threads_live_on() {
        for (threads, is_someone) in [(1, false), (2, true)] {
            let (pid, leader) = stat(&LEADER);
            let zombie = Stat { state: b'Z', threads, ..leader };
            let world = Snapshot::of(BOOT, vec![stat(&KROND), (pid, zombie)]);
            assert_eq!(tree().look(&world), is_someone, "{threads} threads");
        }
    }

    #[test]
    fn very_many_runs_are_looked_at_in_a_moment() {
        // Each has a leader and two in a row below it.
        let leaders = || (0..40_000_u32).map(|run| 100 + 3 * run);
        let row = |pid: u32| [(pid, 5, pid, 1), (pid + 1, pid, pid, 1), (pid + 2, pid + 1, pid, 1)];
        let world = snapshot(&leaders().flat_map(row).collect::<Vec<_>>());
        let started = crate::clock::now().uptime;
        for pid in leaders() {
            let mut tree = Tree::new(ProcessId { boot: BOOT, pid, start_ticks: 1 });
            assert!(tree.look(&world));
            assert_eq!(pids(&tree), [pid, pid + 1, pid + 2]);
        }
        let took = crate::clock::now().uptime - started;
        assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    }
}
