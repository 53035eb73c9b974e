//! A disk that keeps only what it was told to keep.
//!
//! There are two views of the directory: what a program sees, and what a power cut would leave. They differ by
//! the operations since the last flush, for each file's content and for each name. A cut keeps any legal choice
//! of them. A flush that fails drops what it was to write, and the next one says that all is well.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::rc::Rc;

use jiff::Timestamp;
use krond::files::{Contents, Files};

use crate::plant::Plant;
use crate::rng::Rng;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// How the machine, or the daemon, comes to a sudden end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Crash {
    /// `kill -9`: what was written stays.
    Kill,
    /// What was not flushed stays, or goes, or stays in part.
    Power,
}

/// One thing that goes wrong once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    Crash(Crash),
    /// No space, with so much of the file written.
    Full,
    /// An error of the device.
    Broken,
}

#[derive(Debug)]
pub(crate) struct Disk {
    inodes: Vec<Inode>,
    /// What a program sees.
    names: BTreeMap<Rc<str>, usize>,
    /// What the platter has.
    durable: BTreeMap<Rc<str>, usize>,
    /// What was done to names since they were last flushed.
    pending: Vec<Change>,
    rng: Rng,
    /// How many calls, and other points where everything may end, there were.
    pub(crate) points: u64,
    /// What happens at a certain point.
    pub(crate) at_point: Option<(u64, Fault)>,
    pub(crate) crashed: Option<Crash>,
    /// Of a thousand calls that write, so many find the disk full.
    pub(crate) full: u64,
    /// Of a thousand calls, so many fail.
    pub(crate) broken: u64,
    /// Faults so far: no space, errors of writing calls, errors of reading ones.
    pub(crate) faults: [u64; 3],
    /// If it is given, it chooses what a power cut leaves, bit by bit.
    pub(crate) choice: Option<u64>,
    /// Whether two names can be exchanged. Not every file system can do it.
    pub(crate) exchanges: bool,
}

#[derive(Debug)]
struct Inode {
    /// What was written, whatever became of it since.
    written: Rc<[u8]>,
    /// What is read.
    bytes: Rc<[u8]>,
    modified: Timestamp,
    is_durable: bool,
    /// A flush of it has failed: the kernel has forgotten that there is something to write.
    is_dropped: bool,
    /// What the platter had before it was written anew, until that is flushed.
    before: Option<(Rc<[u8]>, Timestamp)>,
}

#[derive(Clone, Debug)]
struct Change {
    name: Rc<str>,
    /// What the name is now, if anything.
    to: Option<usize>,
    /// The name that the file had before, if it was renamed: one operation, kept or lost as one.
    from: Option<Rc<str>>,
    /// What has that name now, if the two were exchanged.
    back: Option<usize>,
    /// A flush has failed on it, and no later one will do anything about it.
    is_dropped: bool,
}

impl Disk {
    pub(crate) fn new(rng: Rng) -> Disk {
        Disk {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            rng,
            points: 0,
            at_point: None,
            crashed: None,
            full: 0,
            broken: 0,
            faults: [0; 3],
            choice: None,
            exchanges: true,
        }
    }

    /// A point where everything may end. Whether it has.
    pub(crate) fn point(&mut self) -> bool {
        self.points += 1;
        if let Some((at, Fault::Crash(crash))) = self.at_point
            && self.points >= at
            && self.crashed.is_none()
        {
            self.at_point = None;
            self.crashed = Some(crash);
        }
        self.crashed.is_some()
    }

    /// A call. Some fail, and the last one never returns.
    fn call(&mut self, kind: Kind) -> io::Result<()> {
        if self.point() {
            return Err(io::Error::other("the daemon is dead"));
        }
        let single = self.at_point.filter(|(at, _)| self.points >= *at).map(|(_, fault)| fault);
        if single.is_some() {
            self.at_point = None;
        }
        let writes = !matches!(kind, Kind::Read);
        let grows = matches!(kind, Kind::Create | Kind::Name);
        if grows && (single == Some(Fault::Full) || self.rng.chance(self.full)) {
            self.faults[0] += 1;
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        if single == Some(Fault::Broken) || self.broken > 0 && self.rng.chance(self.broken) {
            self.faults[if writes { 1 } else { 2 }] += 1;
            return Err(io::Error::from_raw_os_error(EIO));
        }
        Ok(())
    }

    fn put(&mut self, name: Rc<str>, to: Option<usize>, from: Option<Rc<str>>) {
        if let Some(from) = &from {
            self.names.remove(from);
        }
        match to {
            Some(inode) => self.names.insert(Rc::clone(&name), inode),
            None => self.names.remove(&name),
        };
        self.pending.push(Change { name, to, from, back: None, is_dropped: false });
    }

    /// Two names change places.
    fn swap(&mut self, one: Rc<str>, other: Rc<str>) {
        let (to, back) = (self.names[&one], self.names[&other]);
        self.names.insert(Rc::clone(&other), to);
        self.names.insert(Rc::clone(&one), back);
        let change =
            Change { name: other, to: Some(to), from: Some(one), back: Some(back), is_dropped: false };
        self.pending.push(change);
    }

    /// How many names a file has.
    fn links(&self, inode: usize) -> usize {
        self.names.values().filter(|named| **named == inode).count()
    }

    /// Flushes names. What an earlier failure has dropped stays undone, and is no longer told of.
    fn flush_names(&mut self) {
        let (dropped, flushed): (Vec<Change>, Vec<Change>) =
            self.pending.drain(..).partition(|change| change.is_dropped);
        // What has become of a name since is durable, so what it was before cannot come back.
        let is_past = |old: &Change| flushed.iter().any(|new| new.name == old.name);
        self.pending = dropped.into_iter().filter(|old| !is_past(old)).collect();
        for change in flushed {
            keep(&mut self.durable, &change);
        }
    }

    /// The power goes, and comes back.
    pub(crate) fn cut_power(&mut self) {
        let mut choice = self.choice;
        let mut choose = |rng: &mut Rng, of: u64| match &mut choice {
            Some(left) => {
                let chosen = *left % of;
                *left /= of;
                chosen
            }
            None => rng.below(of),
        };
        // A journal keeps operations in their order; without one, any of them may be kept.
        let ordered = self.choice.is_none() && choose(&mut self.rng, 2) == 0;
        let first_lost =
            if ordered { choose(&mut self.rng, self.pending.len() as u64 + 1) } else { u64::MAX };
        for (at, change) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            let kept = if ordered { (at as u64) < first_lost } else { choose(&mut self.rng, 2) == 1 };
            if kept {
                keep(&mut self.durable, &change);
            }
        }
        for inode in self.durable.values() {
            let inode = &mut self.inodes[*inode];
            if inode.is_durable {
                continue;
            }
            let length = inode.bytes.len();
            let some = usize::try_from(choose(&mut self.rng, length as u64 + 1)).expect("a length");
            let part = some.min(length.saturating_sub(1));
            inode.bytes = match (choose(&mut self.rng, 4), inode.before.take()) {
                (0, None) => Rc::from([]),
                (1, None) => vec![0; length].into(),
                (0, Some((bytes, modified))) => {
                    inode.modified = modified;
                    bytes
                }
                // Some of the new is there, and some of the old behind it. So is one time or the other.
                (1, Some((bytes, modified))) => {
                    if choose(&mut self.rng, 2) == 0 {
                        inode.modified = modified;
                    }
                    let rest = bytes.get(part..).unwrap_or_default();
                    [&inode.bytes[..part], rest].concat().into()
                }
                (2, _) if !inode.is_dropped => Rc::clone(&inode.bytes),
                _ => inode.bytes[..part].into(),
            };
            inode.is_durable = true;
        }
        self.names = self.durable.clone();
    }

    /// Whether whatever a power cut may leave under that name says this.
    pub(crate) fn surely_says(&self, name: &str, is_it: impl Fn(&[u8]) -> bool) -> bool {
        let says = |inode: Option<&usize>| {
            inode.is_some_and(|inode| {
                let inode = &self.inodes[*inode];
                inode.is_durable && !inode.is_dropped && is_it(&inode.written)
            })
        };
        says(self.durable.get(name))
            && self
                .pending
                .iter()
                .filter(|change| &*change.name == name)
                .all(|change| says(change.to.as_ref()))
    }

    /// What is there now under that name, for the checker, and whether it is what was written.
    pub(crate) fn peek(&self, name: &str) -> Option<(Rc<[u8]>, bool)> {
        let inode = &self.inodes[*self.names.get(name)?];
        Some((Rc::clone(&inode.bytes), inode.bytes == inode.written))
    }

    /// Damages a file at rest. Its time of modification stays. Whether there was something to damage.
    pub(crate) fn damage(&mut self, name: &str) -> bool {
        let Some(inode) = self.names.get(name) else { return false };
        let inode = &mut self.inodes[*inode];
        let length = inode.bytes.len();
        if length == 0 {
            return false;
        }
        let at = self.rng.index(length);
        inode.bytes = match self.rng.below(4) {
            0 => inode.bytes[..at].into(),
            1 => Rc::from([]),
            2 => {
                let mut bytes = inode.bytes.to_vec();
                let end = (at + 1 + self.rng.index(512)).min(length);
                bytes[at..end].fill(0);
                bytes.into()
            }
            _ => {
                let mut bytes = inode.bytes.to_vec();
                bytes[at] ^= 1 << self.rng.below(8);
                bytes.into()
            }
        };
        true
    }

    /// Deletes a file for good. Whether there was one.
    pub(crate) fn delete(&mut self, name: &str) -> bool {
        self.pending.retain(|change| &*change.name != name);
        self.durable.remove(name);
        self.names.remove(name).is_some()
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Create,
    Name,
    Flush,
}

fn keep(durable: &mut BTreeMap<Rc<str>, usize>, change: &Change) {
    if let Some(from) = &change.from {
        match change.back {
            Some(inode) => durable.insert(Rc::clone(from), inode),
            None => durable.remove(from),
        };
    }
    match change.to {
        Some(inode) => durable.insert(Rc::clone(&change.name), inode),
        None => durable.remove(&change.name),
    };
}

/// The disk as the daemon sees it; with a bug planted into the way there, if there is one.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) disk: Rc<RefCell<Disk>>,
    pub(crate) plant: Option<Plant>,
}

impl Mount {
    fn find(disk: &Disk, name: &str) -> io::Result<usize> {
        disk.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Files for Mount {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut disk = self.disk.borrow_mut();
        disk.call(Kind::Read)?;
        Ok(disk.names.keys().map(|name| name.to_string()).collect())
    }

    fn read(&self, name: &str) -> io::Result<Contents> {
        let mut disk = self.disk.borrow_mut();
        disk.call(Kind::Read)?;
        if self.plant == Some(Plant::NoAnchor) && name.starts_with("anchor") {
            return Err(ErrorKind::NotFound.into());
        }
        let inode = &disk.inodes[Mount::find(&disk, name)?];
        Ok(Contents { bytes: inode.bytes.to_vec(), modified: inode.modified })
    }

    fn create(&self, name: &str, bytes: &[u8], modified: Timestamp) -> io::Result<()> {
        let mut disk = self.disk.borrow_mut();
        let was_dead = disk.crashed.is_some();
        let outcome = disk.call(Kind::Create);
        if was_dead {
            return outcome;
        }
        if disk.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        // It failed half-way, and leaves the half behind.
        let written: Rc<[u8]> = match &outcome {
            Ok(()) => bytes.into(),
            Err(_) => bytes[..disk.rng.index(bytes.len() + 1)].into(),
        };
        let bytes = Rc::clone(&written);
        let is_durable = false;
        disk.inodes.push(Inode { written, bytes, modified, is_durable, is_dropped: false, before: None });
        let inode = disk.inodes.len() - 1;
        disk.put(name.into(), Some(inode), None);
        outcome
    }

    fn overwrite(&self, name: &str, bytes: &[u8], modified: Timestamp) -> io::Result<bool> {
        let mut disk = self.disk.borrow_mut();
        let was_dead = disk.crashed.is_some();
        let outcome = disk.call(Kind::Create);
        if was_dead {
            return outcome.map(|()| false);
        }
        let at = Mount::find(&disk, name)?;
        if disk.links(at) > 1 {
            return outcome.map(|()| false);
        }
        let written: Rc<[u8]> = match &outcome {
            Ok(()) => bytes.into(),
            // It failed half-way, and the old end is still there.
            Err(_) => {
                let some = disk.rng.index(bytes.len() + 1);
                let rest = disk.inodes[at].bytes.get(some..).unwrap_or_default();
                [&bytes[..some], rest].concat().into()
            }
        };
        let inode = &mut disk.inodes[at];
        if inode.is_durable {
            inode.before = Some((Rc::clone(&inode.bytes), inode.modified));
        }
        inode.bytes = Rc::clone(&written);
        inode.written = written;
        if outcome.is_ok() {
            inode.modified = modified;
        }
        inode.is_durable = false;
        outcome.map(|()| true)
    }

    fn sync(&self, names: &[String]) -> io::Result<()> {
        if self.plant == Some(Plant::NoFileFlush) {
            return Ok(());
        }
        let mut first = Ok(());
        for name in names {
            let mut disk = self.disk.borrow_mut();
            let inode = Mount::find(&disk, name)?;
            let mut outcome = disk.call(Kind::Flush);
            if disk.crashed.is_some() {
                return outcome;
            }
            if outcome.is_err() {
                disk.inodes[inode].is_dropped = true;
                if self.plant == Some(Plant::FlushAgain) {
                    outcome = Ok(());
                }
            } else if !disk.inodes[inode].is_dropped {
                disk.inodes[inode].is_durable = true;
                disk.inodes[inode].before = None;
            }
            first = first.and(outcome);
        }
        first
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk.borrow_mut();
        disk.call(Kind::Name)?;
        let inode = Mount::find(&disk, from)?;
        disk.put(to.into(), Some(inode), Some(from.into()));
        Ok(())
    }

    fn exchange(&self, one: &str, other: &str) -> io::Result<bool> {
        let mut disk = self.disk.borrow_mut();
        disk.call(Kind::Name)?;
        Mount::find(&disk, one)?;
        if !disk.exchanges || !disk.names.contains_key(other) {
            return Ok(false);
        }
        disk.swap(one.into(), other.into());
        Ok(true)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk.borrow_mut();
        disk.call(Kind::Name)?;
        let inode = Mount::find(&disk, from)?;
        if disk.names.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        disk.put(to.into(), Some(inode), None);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk.borrow_mut();
        disk.call(Kind::Flush)?;
        Mount::find(&disk, name)?;
        disk.put(name.into(), None, None);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        if self.plant == Some(Plant::NoDirectoryFlush) {
            return Ok(());
        }
        let mut disk = self.disk.borrow_mut();
        let outcome = disk.call(Kind::Flush);
        if disk.crashed.is_some() {
            return outcome;
        }
        match outcome {
            Ok(()) => disk.flush_names(),
            Err(error) => {
                for change in &mut disk.pending {
                    change.is_dropped = true;
                }
                if self.plant != Some(Plant::FlushAgain) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount() -> Mount {
        Mount { disk: Rc::new(RefCell::new(Disk::new(Rng::new(1)))), plant: None }
    }

    fn write(mount: &Mount, bytes: &[u8]) {
        mount.create("t", bytes, Timestamp::UNIX_EPOCH).unwrap();
        mount.sync(&["t".into()]).unwrap();
        mount.rename("t", "a").unwrap();
    }

    fn is(mount: &Mount, bytes: &'static [u8]) -> bool {
        mount.disk.borrow().surely_says("a", |found| found == bytes)
    }

    #[test]
    fn only_all_four_steps_together_are_durable() {
        let mount = mount();
        write(&mount, b"old");
        assert!(!is(&mount, b"old"));
        mount.sync_directory().unwrap();
        assert!(is(&mount, b"old"));
        write(&mount, b"new");
        assert!(!is(&mount, b"new") && !is(&mount, b"old"));
    }

    #[test]
    fn a_cut_leaves_every_legal_choice_and_no_other() {
        let mut seen = std::collections::BTreeSet::new();
        for choice in 0..64 {
            let mount = mount();
            write(&mount, b"old");
            mount.sync_directory().unwrap();
            write(&mount, b"new");
            let mut disk = mount.disk.borrow_mut();
            disk.choice = Some(choice);
            disk.cut_power();
            seen.insert((disk.peek("a").unwrap().0.to_vec(), disk.names.contains_key("t")));
        }
        let both = |bytes: &[u8]| [(bytes.to_vec(), false), (bytes.to_vec(), true)];
        let legal: std::collections::BTreeSet<_> =
            both(b"old").into_iter().chain([both(b"new")[0].clone()]).collect();
        assert_eq!(seen, legal);
    }

    #[test]
    fn names_are_exchanged_as_one() {
        let mut seen = std::collections::BTreeSet::new();
        for choice in 0..64 {
            let mount = mount();
            write(&mount, b"old");
            mount.create("t", b"new", Timestamp::UNIX_EPOCH).unwrap();
            mount.sync(&["t".into()]).unwrap();
            mount.sync_directory().unwrap();
            assert!(mount.exchange("t", "a").unwrap());
            assert!(!is(&mount, b"new") && !is(&mount, b"old"));
            let mut disk = mount.disk.borrow_mut();
            disk.choice = Some(choice);
            disk.cut_power();
            seen.insert(["a", "t"].map(|name| disk.peek(name).unwrap().0.to_vec()));
        }
        let legal = [["old", "new"], ["new", "old"]].map(|pair| pair.map(|bytes| bytes.as_bytes().to_vec()));
        assert_eq!(seen, legal.into());
    }

    #[test]
    fn what_is_written_in_place_may_be_old_or_new_or_both_until_it_is_flushed() {
        let mut seen = std::collections::BTreeSet::new();
        for choice in 0..256 {
            let mount = mount();
            write(&mount, b"old!");
            mount.sync_directory().unwrap();
            assert!(mount.overwrite("a", b"new", Timestamp::UNIX_EPOCH).unwrap());
            assert!(!is(&mount, b"new") && !is(&mount, b"old!"));
            let mut disk = mount.disk.borrow_mut();
            disk.choice = Some(choice);
            disk.cut_power();
            seen.insert(String::from_utf8(disk.peek("a").unwrap().0.to_vec()).unwrap());
        }
        for left in ["old!", "new", "nld!", "ne", ""] {
            assert!(seen.contains(left), "{left:?} is not in {seen:?}");
        }
        let mount = mount();
        write(&mount, b"old!");
        mount.link("a", "b").unwrap();
        assert!(!mount.overwrite("a", b"new", Timestamp::UNIX_EPOCH).unwrap(), "it has another name");
        assert_eq!(mount.read("b").unwrap().bytes, b"old!");
    }

    /// A file whose replacement may not be durable must keep what it says: a power cut may bring it back.
    #[test]
    fn no_file_that_can_come_back_is_written_into() {
        use krond::state::State;
        use krond::store::{Missing, Store};
        use krond::wire;
        let names = ["a", "b", "c", "d", "e", "f"];
        // The flush of the directory fails when the first three are written for the third time. Then all goes well
        // again, and the others take whatever is spare.
        for choice in 0..4096 {
            let disk = Rc::new(RefCell::new(Disk::new(Rng::new(choice))));
            let store = Store::new(Mount { disk: Rc::clone(&disk), plant: None }, Missing::New);
            let states = names.map(State::new);
            let write = |names: &[usize]| {
                let wave: Vec<_> = names.iter().map(|at| (&states[*at], Timestamp::UNIX_EPOCH)).collect();
                store.write(&wave).into_iter().all(|answer| answer.is_ok())
            };
            assert!(write(&[0, 1, 2]));
            let calls = disk.borrow().points;
            assert!(write(&[0, 1, 2]));
            let calls = disk.borrow().points - calls;
            let at = disk.borrow().points + calls;
            disk.borrow_mut().at_point = Some((at, Fault::Broken));
            let before = disk.borrow().faults;
            assert!(!write(&[0, 1, 2]));
            assert_eq!(disk.borrow().faults[1], before[1] + 1);
            assert!(write(&[3, 4, 5]));
            disk.borrow_mut().choice = Some(choice);
            disk.borrow_mut().cut_power();
            for name in names {
                let bytes = store.files().read(&wire::file_name(name)).unwrap().bytes;
                assert!(wire::decode(&bytes, name).is_ok(), "{choice}: the file of {name}");
            }
        }
    }

    #[test]
    fn a_flush_that_failed_is_lied_about_from_then_on() {
        let mount = mount();
        mount.create("a", b"data", Timestamp::UNIX_EPOCH).unwrap();
        mount.sync_directory().unwrap();
        let next = mount.disk.borrow().points + 1;
        mount.disk.borrow_mut().at_point = Some((next, Fault::Broken));
        assert!(mount.sync(&["a".into()]).is_err());
        mount.sync(&["a".into()]).unwrap();
        assert!(!is(&mount, b"data"));
        assert_eq!(mount.read("a").unwrap().bytes, b"data");
        mount.disk.borrow_mut().cut_power();
        assert_ne!(mount.read("a").unwrap().bytes, b"data");
    }

    #[test]
    fn names_whose_flush_failed_are_lied_about_too() {
        let mount = mount();
        write(&mount, b"one");
        let next = mount.disk.borrow().points + 1;
        mount.disk.borrow_mut().at_point = Some((next, Fault::Broken));
        assert!(mount.sync_directory().is_err());
        mount.sync_directory().unwrap();
        assert!(!is(&mount, b"one"));
        write(&mount, b"two");
        mount.sync_directory().unwrap();
        assert!(is(&mount, b"two"));
    }
}
