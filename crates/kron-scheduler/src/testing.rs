//! For tests: a clock that you set, a store that fails when told to, and what every store must pass.
//!
//! With a [`VirtualClock`] a test of a year takes as long as its callbacks, and nothing ever sleeps:
//!
//! ```
//! use kron_scheduler::{Registration, Scheduler, store::MemoryStore, testing::VirtualClock};
//! use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = VirtualClock::new("2026-03-28T12:00:00+01:00[Europe/Paris]")?;
//! let scheduler = Scheduler::builder(MemoryStore::new()).clock(clock.clone()).build();
//! let runs = Arc::new(AtomicUsize::new(0));
//! let count = Arc::clone(&runs);
//! scheduler.initialize([Registration::new("nightly", "30 2 * * *", Duration::ZERO, move || {
//!     count.fetch_add(1, Ordering::Relaxed);
//!     async { Ok::<(), std::io::Error>(()) }
//! })]).await?;
//!
//! // On 29 March there is no 02:30 in Paris.
//! clock.run_until("2026-03-29T12:00:00+02:00[Europe/Paris]").await?;
//! assert_eq!(runs.load(Ordering::Relaxed), 0);
//! clock.run_until("2026-03-31T12:00:00+02:00[Europe/Paris]").await?;
//! assert_eq!(runs.load(Ordering::Relaxed), 2);
//! # scheduler.stop().await?;
//! # Ok(())
//! # }
//! ```

pub mod conformance;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp, Zoned};
use kron_schedule::Zone;
use tokio::sync::oneshot;

use crate::clock::{Clock, Sleep};
use crate::error::Error;
use crate::store::{Change, MemoryStore, Record, Store, Stored};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// A clock that stands still until it is moved. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct VirtualClock(Arc<Mutex<Face>>);

#[derive(Debug)]
struct Face {
    now: Timestamp,
    zone: Zone,
    sleepers: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
    count: u64,
}

/// How often everything else gets a turn before it is taken to be waiting. A start takes about five.
const TURNS: usize = 64;

impl VirtualClock {
    /// A clock that shows a time in a zone: `2026-03-28T12:00:00+01:00[Europe/Paris]`.
    ///
    /// # Errors
    ///
    /// If that is no time with a zone.
    pub fn new(zoned: &str) -> Result<VirtualClock, jiff::Error> {
        let zoned: Zoned = zoned.parse()?;
        let zone =
            Zone::new(zoned.time_zone()).map_err(|error| jiff::Error::from_args(format_args!("{error}")))?;
        Ok(VirtualClock::at(zoned.timestamp(), zone))
    }

    /// The same of an instant and a zone.
    #[must_use]
    pub fn at(now: Timestamp, zone: Zone) -> VirtualClock {
        VirtualClock(Arc::new(Mutex::new(Face { now, zone, sleepers: BTreeMap::new(), count: 0 })))
    }

    /// Sets the clock, forward or back, and wakes whoever sleeps, as a host does that was suspended or corrected. What
    /// lies between does not happen.
    pub fn set(&self, now: Timestamp) {
        let mut face = self.face();
        face.now = now;
        for (_, sleeper) in std::mem::take(&mut face.sleepers) {
            sleeper.send(()).ok();
        }
    }

    /// Moves to another zone.
    pub fn set_zone(&self, zone: Zone) {
        self.face().zone = zone;
        self.set(self.now());
    }

    /// Lets time pass up to an instant in a zone, from one waking to the next, with time for everything to happen.
    ///
    /// # Errors
    ///
    /// If that is no time with a zone.
    pub async fn run_until(&self, zoned: &str) -> Result<(), jiff::Error> {
        let zoned: Zoned = zoned.parse()?;
        self.run_to(zoned.timestamp()).await;
        Ok(())
    }

    /// Lets so much time pass.
    pub async fn run_for(&self, duration: SignedDuration) {
        let until = self.now().checked_add(duration).unwrap_or(Timestamp::MAX);
        self.run_to(until).await;
    }

    /// Lets time pass up to an instant.
    pub async fn run_to(&self, until: Timestamp) {
        self.settle().await;
        while let Some(next) = self.next_sleeper().filter(|next| *next <= until) {
            {
                let mut face = self.face();
                face.now = face.now.max(next);
                let now = face.now;
                let later = face.sleepers.split_off(&(now, u64::MAX));
                for (_, sleeper) in std::mem::replace(&mut face.sleepers, later) {
                    sleeper.send(()).ok();
                }
            }
            self.settle().await;
        }
        {
            let mut face = self.face();
            face.now = face.now.max(until);
        }
        self.settle().await;
    }

    /// Lets everything that can happen now happen. Enough on a runtime of one thread, with a store that does not block.
    pub async fn settle(&self) {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    }

    fn next_sleeper(&self) -> Option<Timestamp> {
        let mut face = self.face();
        face.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        face.sleepers.keys().next().map(|(at, _)| *at)
    }

    fn face(&self) -> MutexGuard<'_, Face> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.face().now
    }

    fn zone(&self) -> Zone {
        self.face().zone.clone()
    }

    fn sleep(&self, until: Timestamp) -> Sleep {
        let mut face = self.face();
        if face.now >= until {
            return Box::pin(std::future::ready(()));
        }
        let (sender, receiver) = oneshot::channel();
        face.count += 1;
        let key = (until, face.count);
        face.sleepers.insert(key, sender);
        Box::pin(async move {
            receiver.await.ok();
        })
    }
}

/// A [`MemoryStore`] that fails when told to. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct FaultyStore {
    store: MemoryStore,
    faults: Arc<Mutex<Faults>>,
}

/// When a [`FaultyStore`] fails.
#[derive(Default)]
pub struct Faults {
    /// How many of the next calls of `open` fail.
    pub open: u32,
    /// How many of the next calls of `replace` fail that are the first since `open`.
    pub replace: u32,
    /// How many of the next calls of `apply` fail, and of `replace` where it takes the place of one.
    pub apply: u32,
    /// Whether what fails has been written all the same: the disk did it, and the answer was lost.
    pub after_writing: bool,
    /// Called in the middle of the next `apply`.
    pub during_apply: Option<Box<dyn FnOnce() + Send>>,
    /// Whether `replace` has succeeded since `open`.
    is_replaced: bool,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}

impl FaultyStore {
    /// A store that fails never, yet.
    #[must_use]
    pub fn new(store: MemoryStore) -> FaultyStore {
        FaultyStore { store, faults: Arc::default() }
    }

    /// When it fails, to be changed.
    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records.
    #[must_use]
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    fn trip(&self, count: impl Fn(&mut Faults) -> &mut u32) -> Option<bool> {
        let mut faults = self.faults();
        let after_writing = faults.after_writing;
        let left = count(&mut faults);
        if *left == 0 {
            return None;
        }
        *left -= 1;
        Some(after_writing)
    }

    fn write(&mut self, work: impl FnOnce(&mut MemoryStore) -> Result<(), Error>) -> Result<(), Error> {
        let during = self.faults().during_apply.take();
        if let Some(during) = during {
            during();
        }
        let fault = self.trip(|faults| &mut faults.apply);
        if fault != Some(false) {
            work(&mut self.store)?;
        }
        if fault.is_some() { Err(FaultyStore::fault()) } else { Ok(()) }
    }

    fn fault() -> Error {
        Error::store("Could not use the store", std::io::Error::other("a fault was injected"))
    }
}

impl Store for FaultyStore {
    fn open(&mut self) -> Result<Vec<Stored>, Error> {
        if self.trip(|faults| &mut faults.open).is_some() {
            return Err(FaultyStore::fault());
        }
        self.faults().is_replaced = false;
        self.store.open()
    }

    fn replace(&mut self, identifier: &Arc<str>, records: &[&Record]) -> Result<(), Error> {
        if self.faults().is_replaced {
            return self.write(|store| store.replace(identifier, records));
        }
        if self.trip(|faults| &mut faults.replace).is_some() {
            return Err(FaultyStore::fault());
        }
        self.faults().is_replaced = true;
        self.store.replace(identifier, records)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        self.write(|store| store.apply(changes))
    }

    fn close(&mut self) {
        self.store.close();
    }

    fn blocks(&self) -> bool {
        false
    }
}
