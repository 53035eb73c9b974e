//! The latest time that krond has acted at, kept outside the jobs' files.
//!
//! A job whose file is lost or damaged is fenced: nothing that may have run can run again. If the clock was set back as
//! well, it does not tell what may have run, and the file is not there to tell. The anchor does. It is never
//! earlier than any watermark on the disk, and never moves back.
//!
//! There are two files, of which the older is replaced, and each has a checksum: one that is damaged does not take the
//! other with it, and what it said is bounded by its time of modification.

use std::cell::Cell;
use std::io::{self, ErrorKind};

use jiff::Timestamp;

use crate::files::Files;
use crate::wire;

/// How far ahead of what is needed the anchor is set, in seconds: it is written that seldom, and a job that is fenced
/// by it waits at most so long. It is flushed with the states of a wave, so that it costs one more file of them.
pub const STEP: i64 = 10;

/// The names of the files.
const SLOTS: [&str; 2] = ["anchor.0", "anchor.1"];

/// The anchor of a state directory.
#[derive(Debug, Default)]
pub(crate) struct Anchor {
    found: Cell<Option<Found>>,
    /// The latest watermark that was read.
    seen: Cell<Option<Timestamp>>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    /// The latest time of any of the files.
    latest: Option<Timestamp>,
    /// Whether it is known to be durable: what is read after a crash may not be.
    is_durable: bool,
    /// Which of the files is the older.
    older: usize,
}

/// A later anchor, to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raise {
    pub(crate) latest: Timestamp,
    slot: usize,
}

impl Raise {
    /// The file to replace.
    pub(crate) fn file(&self) -> &'static str {
        SLOTS[self.slot]
    }
}

impl Anchor {
    /// The latest time that krond has acted at, if it ever did.
    ///
    /// # Errors
    ///
    /// If it cannot be read now. Then nobody knows.
    pub(crate) fn latest(&self, files: &impl Files) -> io::Result<Option<Timestamp>> {
        Ok(self.find(files)?.latest)
    }

    fn find(&self, files: &impl Files) -> io::Result<Found> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let mut times = [None; 2];
        for (time, name) in times.iter_mut().zip(SLOTS) {
            *time = match files.read(name) {
                Ok(contents) => Some(wire::decode_anchor(&contents.bytes).unwrap_or(contents.modified)),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
            };
        }
        let [first, second] = times;
        let found =
            Found { latest: first.max(second), is_durable: false, older: usize::from(second < first) };
        self.found.set(Some(found));
        Ok(found)
    }

    /// Notes a watermark that was read: one from before there was an anchor counts as well.
    pub(crate) fn see(&self, watermark: Timestamp) {
        self.seen.set(self.seen.get().max(Some(watermark)));
    }

    /// Whether a state with that time may be written without a later anchor.
    pub(crate) fn covers(&self, time: Timestamp) -> bool {
        self.found.get().is_some_and(|found| found.is_durable && found.latest >= Some(time))
    }

    /// The anchor that states up to that time need, if they need another.
    pub(crate) fn raise(&self, files: &impl Files, time: Timestamp) -> io::Result<Option<Raise>> {
        let found = self.find(files)?;
        if self.covers(time) {
            return Ok(None);
        }
        let latest = time.max(self.seen.get().unwrap_or(time));
        Ok(Some(Raise { latest: step_up(latest).max(found.latest.unwrap_or(latest)), slot: found.older }))
    }

    /// It was written, and that is durable.
    pub(crate) fn raised(&self, raise: Raise) {
        let latest = Some(raise.latest);
        self.found.set(Some(Found { latest, is_durable: true, older: 1 - raise.slot }));
    }
}

/// The first step at or after a time.
fn step_up(time: Timestamp) -> Timestamp {
    let second = time.as_second() + i64::from(time.subsec_nanosecond() > 0);
    let steps = second.div_euclid(STEP) + i64::from(second.rem_euclid(STEP) > 0);
    Timestamp::from_second(steps * STEP).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Raises the anchor as the store does.
    fn raise(files: &Directory, anchor: &Anchor, time: &str) -> Option<&'static str> {
        let raise = anchor.raise(files, at(time)).unwrap()?;
        files.create("x.tmp", &wire::encode_anchor(raise.latest), raise.latest).unwrap();
        files.rename("x.tmp", raise.file()).unwrap();
        anchor.raised(raise);
        Some(raise.file())
    }

    #[test]
    fn it_leads_what_is_written_and_never_moves_back() {
        let place = tempfile::tempdir().unwrap();
        let files = Directory::open(&place.path().join("state")).unwrap();
        let anchor = Anchor::default();
        assert_eq!(anchor.latest(&files).unwrap(), None);
        assert_eq!(raise(&files, &anchor, "2026-03-01T12:00:00.1Z"), Some("anchor.0"));
        assert_eq!(raise(&files, &anchor, "2026-03-01T12:00:10Z"), None);
        assert_eq!(raise(&files, &anchor, "2026-03-01T12:00:10.1Z"), Some("anchor.1"));
        assert_eq!(raise(&files, &anchor, "2026-03-01T12:00:31Z"), Some("anchor.0"));
        // The next krond writes it once to be sure of it, into the older one, whatever its clock says.
        let next = Anchor::default();
        assert_eq!(next.latest(&files).unwrap(), Some(at("2026-03-01T12:00:40Z")));
        assert_eq!(raise(&files, &next, "2025-01-01T00:00:00Z"), Some("anchor.1"));
        assert_eq!(raise(&files, &next, "2026-01-01T00:00:00Z"), None);
        assert_eq!(Anchor::default().latest(&files).unwrap(), Some(at("2026-03-01T12:00:40Z")));
    }

    #[test]
    fn one_that_is_damaged_is_bounded_by_its_time() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let files = Directory::open(&path).unwrap();
        let anchor = Anchor::default();
        raise(&files, &anchor, "2026-03-01T12:00:00Z");
        raise(&files, &anchor, "2026-05-01T12:00:00Z");
        let modified = path.join("anchor.1").metadata().unwrap().modified().unwrap();
        std::fs::write(path.join("anchor.1"), "{").unwrap();
        let file = std::fs::File::options().write(true).open(path.join("anchor.1")).unwrap();
        file.set_modified(modified).unwrap();
        assert_eq!(Anchor::default().latest(&files).unwrap(), Some(at("2026-05-01T12:00:00Z")));
        std::fs::remove_file(path.join("anchor.1")).unwrap();
        assert_eq!(Anchor::default().latest(&files).unwrap(), Some(at("2026-03-01T12:00:00Z")));
        std::fs::create_dir(path.join("anchor.1")).unwrap();
        assert!(Anchor::default().latest(&files).is_err(), "nobody knows");
    }
}
