//! A board that remembers what it was told.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use kron_core::WindowMode;
use kron_dashboard::{
    About, Act, Answer, Board, Draft, Entry, Find, Job, Mark, Output, Page, Permission, Place, Preview,
    Pulse, Queue, Refused, Run, Work, WorkFilter,
};
use kron_schedule::{Dialect, Dst, Expr, Zone};
use kron_zones::Zones;

pub(crate) struct Small {
    pub(crate) jobs: Vec<Job>,
    pub(crate) entries: Vec<(String, Entry)>,
    pub(crate) may: Vec<Permission>,
    pub(crate) acts: Mutex<Vec<String>>,
    /// How long it takes to read some jobs.
    pub(crate) slow: Duration,
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Saturday; the night after it, clocks go forward in Paris.
pub(crate) const NOW: &str = "2027-03-27T12:00:00Z";

pub(crate) fn job(name: &str, cron: &str, zone: &str, window: &str) -> Job {
    let zone = Zones::bundled().find(zone).unwrap();
    let expr = Expr::parse(cron, Dialect::Kron).unwrap();
    let schedule = expr.compile(&zone, Dst::KRON).unwrap();
    let plan = kron_core::Job::builder(name, schedule, zone.clone())
        .window(WindowMode::After, window.parse().unwrap())
        .build()
        .unwrap();
    Job {
        id: name.into(),
        name: name.into(),
        description: None,
        schedule: cron.into(),
        words: expr.describe(),
        zone: zone.name().into(),
        paused: false,
        paused_since: None,
        on_resume: None,
        held: None,
        next: None,
        last: None,
        last_mark: None,
        active: None,
        facts: Vec::new(),
        definition: None,
        plan: Some(plan),
        handled: at(NOW),
        pending: Vec::new(),
    }
}

pub(crate) fn entry(nominal: &str, mark: Mark, why: &str) -> Entry {
    Entry {
        nominal: at(nominal),
        last: None,
        count: 1,
        at_least: false,
        chosen: Some(at(nominal)),
        mark,
        why: why.into(),
        at: Some(at(nominal)),
        run: None,
        seed_hash: None,
    }
}

impl Small {
    pub(crate) fn new(jobs: Vec<Job>) -> Small {
        let may = vec![Permission::See, Permission::Run, Permission::Pause, Permission::Change];
        Small { jobs, entries: Vec::new(), may, acts: Mutex::default(), slow: Duration::ZERO }
    }
}

impl Board for Small {
    fn about(&self) -> About {
        About {
            product: "test",
            version: "0",
            place: "here".into(),
            language: "krontab",
            pauses: true,
            edits: true,
            edits_not: None,
            queues: false,
        }
    }

    fn may(&self, what: Permission) -> bool {
        self.may.contains(&what)
    }

    fn now(&self) -> Timestamp {
        at(NOW)
    }

    fn zone(&self, name: &str) -> Option<Zone> {
        Zones::bundled().find(name).ok()
    }

    fn pulse(&self) -> Answer<Pulse> {
        Ok(Pulse::default())
    }

    fn jobs(&self, find: &Find) -> Answer<Page<Job>> {
        let found: Vec<Job> =
            self.jobs.iter().filter(|job| job.name.contains(&find.search)).cloned().collect();
        let total = found.len() as u64;
        let rows = found.into_iter().skip(find.offset).take(find.limit).collect();
        Ok(Page { rows, total, offset: find.offset, limit: find.limit })
    }

    fn job(&self, id: &str) -> Answer<Option<Job>> {
        Ok(self.jobs.iter().find(|job| job.id == id).cloned())
    }

    #[expect(clippy::disallowed_methods, reason = "a store that is slow is what is tried")]
    fn some_jobs(&self, from: Option<&str>) -> Answer<(Vec<Job>, Option<String>)> {
        std::thread::sleep(self.slow);
        let from: usize = from.map_or(0, |from| from.parse().unwrap());
        let until = (from + 2).min(self.jobs.len());
        Ok((self.jobs[from..until].to_vec(), (until < self.jobs.len()).then(|| until.to_string())))
    }

    fn record(&self, id: &str, place: &Place) -> Answer<Vec<Entry>> {
        let of = self.entries.iter().filter(|(of, _)| of == id).map(|(_, entry)| entry);
        let within =
            of.filter(|entry| entry.nominal <= place.to && entry.last.unwrap_or(entry.nominal) >= place.from);
        Ok(within.rev().take(place.most).cloned().collect())
    }

    fn runs(&self, _: &str, _: usize) -> Answer<Vec<Run>> {
        Ok(Vec::new())
    }

    fn output(&self, _: &str, _: &str) -> Answer<Option<Output>> {
        Ok(None)
    }

    fn preview(&self, _: &Draft) -> Answer<Preview> {
        Err(Refused::new(400, "wrong", "no"))
    }

    fn save(&self, _: &Draft) -> Answer<String> {
        self.acts.lock().unwrap().push("save".into());
        Ok("a".into())
    }

    fn act(&self, act: &Act) -> Answer<String> {
        self.acts.lock().unwrap().push(format!("{act:?}"));
        Ok("done".into())
    }

    fn queues(&self) -> Answer<Vec<Queue>> {
        Ok(Vec::new())
    }

    fn work(&self, filter: &WorkFilter) -> Answer<Page<Work>> {
        Ok(Page { rows: Vec::new(), total: 0, offset: filter.offset, limit: filter.limit })
    }
}
