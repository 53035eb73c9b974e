//! Occurrences, retries, orphans, overrides and changes of clocks: each a story of a few lines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kron_schedule::Zone;
use kron_scheduler::store::{MemoryStore, RunningMark, Store as _};
use kron_scheduler::testing::VirtualClock;
use kron_scheduler::{Clock, Event, Reason, Registration, Scheduler};

/// A scheduler with a clock, whose callbacks end when they are told to.
struct Story {
    clock: VirtualClock,
    store: MemoryStore,
    scheduler: Scheduler,
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    /// What was started when, in local time.
    starts: Vec<(String, String)>,
    events: Vec<Event>,
    /// How the runs of a task end: at once and well, unless it says otherwise.
    manners: BTreeMap<String, Manner>,
}

#[derive(Clone, Copy)]
enum Manner {
    Well,
    Badly,
    /// After so long, well or not.
    After(i64, bool),
    Never,
}

impl Story {
    fn at(zoned: &str) -> Story {
        let clock = VirtualClock::new(zoned).unwrap();
        let (store, told) = (MemoryStore::new(), Arc::<Mutex<Told>>::default());
        let scheduler = boot(&store, &clock, &told);
        Story { clock, store, scheduler, told }
    }

    fn task(&self, name: &str, cron: &str, delay: Duration) -> Registration {
        let (clock, told, name_) = (self.clock.clone(), Arc::clone(&self.told), name.to_owned());
        Registration::new(name, cron, delay, move || {
            let mut told = told.lock().unwrap();
            told.starts.push((name_.clone(), clock.zone().to_civil(clock.now()).to_string()));
            let manner = told.manners.get(&name_).copied().unwrap_or(Manner::Well);
            let clock = clock.clone();
            async move {
                let is_well = match manner {
                    Manner::Well => true,
                    Manner::Badly => false,
                    Manner::After(seconds, is_well) => {
                        clock.sleep(clock.now() + SignedDuration::from_secs(seconds)).await;
                        is_well
                    }
                    Manner::Never => std::future::pending().await,
                };
                if is_well { Ok(()) } else { Err(std::io::Error::other("as told")) }
            }
        })
    }

    async fn begin(&self, tasks: &[(&str, &str, u64)]) {
        let task =
            |(name, cron, delay): &(&str, &str, u64)| self.task(name, cron, Duration::from_secs(*delay));
        self.scheduler.initialize(tasks.iter().map(task).collect::<Vec<_>>()).await.unwrap();
        self.clock.settle().await;
    }

    fn manner(&self, name: &str, manner: Manner) {
        self.told.lock().unwrap().manners.insert(name.into(), manner);
    }

    async fn until(&self, zoned: &str) {
        self.clock.run_until(zoned).await.unwrap();
    }

    /// Everything but the store is lost.
    async fn crash(&mut self) {
        self.scheduler = boot(&self.store, &self.clock, &self.told);
        self.clock.settle().await;
    }

    /// What was started since this was asked last: local times, with the name if it is not `a`.
    fn starts(&self) -> Vec<String> {
        let starts = std::mem::take(&mut self.told.lock().unwrap().starts);
        let label = |(name, at): (String, String)| if name == "a" { at } else { format!("{name} {at}") };
        starts.into_iter().map(label).collect()
    }

    fn events(&self) -> Vec<String> {
        self.told.lock().unwrap().events.drain(..).map(|event| event.to_string()).collect()
    }
}

fn boot(store: &MemoryStore, clock: &VirtualClock, told: &Arc<Mutex<Told>>) -> Scheduler {
    let told = Arc::clone(told);
    let observer = move |event: &Event| told.lock().unwrap().events.push(event.clone());
    Scheduler::builder(store.clone()).clock(clock.clone()).observer(observer).build()
}

const NONE: [&str; 0] = [];

mod first_appearance {
    use super::*;

    #[tokio::test]
    async fn the_minute_in_progress_counts_and_nothing_before_it() {
        let story = Story::at("2026-06-01T12:00:59.900+00:00[UTC]");
        story.begin(&[("a", "0 12 * * *", 0), ("b", "59 11 * * *", 0), ("c", "1 12 * * *", 0)]).await;
        assert_eq!(story.starts(), ["2026-06-01T12:00:59.9"]);
        story.until("2026-06-01T12:05:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["c 2026-06-01T12:01:00"]);
    }

    #[tokio::test]
    async fn an_occurrence_that_came_before_the_first_look_is_not_lost() {
        let story = Story::at("2026-06-01T12:00:59.900+00:00[UTC]");
        let task = story.task("a", "0 12 * * *", Duration::ZERO);
        story.scheduler.initialize([task]).await.unwrap();
        // The loop has not had a turn yet.
        story.clock.set("2026-06-01T12:01:00.1Z".parse().unwrap());
        story.clock.settle().await;
        assert_eq!(story.starts(), ["2026-06-01T12:01:00.1"]);
    }

    #[tokio::test]
    async fn a_task_that_has_never_run_catches_up_on_what_came_since_its_registration() {
        let mut story = Story::at("2026-06-01T11:00:00+00:00[UTC]");
        story.begin(&[("a", "0 12 * * *", 0)]).await;
        story.crash().await;
        story.clock.set("2026-06-03T18:00:00Z".parse().unwrap());
        story.begin(&[("a", "0 12 * * *", 0)]).await;
        assert_eq!(story.starts(), ["2026-06-03T18:00:00"]);
    }

    #[tokio::test]
    async fn a_name_that_returns_is_new() {
        let story = Story::at("2026-06-01T12:00:10+00:00[UTC]");
        story.begin(&[("a", "0 12 * * *", 0)]).await;
        story.scheduler.stop().await.unwrap();
        story.begin(&[]).await;
        story.scheduler.stop().await.unwrap();
        assert!(story.store.record("a").is_none());
        // The exemption: within its minute it runs a second time.
        story.begin(&[("a", "0 12 * * *", 0)]).await;
        assert_eq!(story.starts().len(), 2);
    }
}

mod catching_up {
    use super::*;

    #[tokio::test]
    async fn a_gap_of_any_length_is_one_run() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.begin(&[("a", "0,15,30,45 * * * *", 0)]).await;
        assert_eq!(story.starts().len(), 1);
        for later in ["2026-06-01T13:05:00Z", "2026-06-02T13:05:00Z", "2036-06-02T13:05:00Z"] {
            story.clock.set(later.parse().unwrap());
            story.clock.settle().await;
            assert_eq!(story.starts().len(), 1, "{later}");
        }
        story.until("2036-06-02T13:20:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["2036-06-02T13:15:00"], "and the schedule goes on");
    }

    #[tokio::test]
    async fn a_run_that_outlasts_an_occurrence_is_followed_at_once() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.manner("a", Manner::After(2 * 3_600 + 300, true));
        story.begin(&[("a", "0 * * * *", 0)]).await;
        story.manner("a", Manner::Well);
        story.until("2026-06-01T14:59:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["2026-06-01T12:00:00", "2026-06-01T14:05:00"]);
    }

    #[tokio::test]
    async fn a_clock_set_back_makes_nothing_run_again() {
        let story = Story::at("2026-06-01T11:59:00+00:00[UTC]");
        story.begin(&[("a", "0 * * * *", 0)]).await;
        story.until("2026-06-01T12:30:00+00:00[UTC]").await;
        story.clock.set("2026-06-01T10:30:00Z".parse().unwrap());
        story.until("2026-06-01T12:59:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["2026-06-01T12:00:00"]);
        story.until("2026-06-01T13:00:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["2026-06-01T13:00:00"]);
    }
}

mod retries {
    use super::*;

    #[tokio::test]
    async fn a_failure_is_tried_again_after_the_delay_until_it_succeeds() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.manner("a", Manner::Badly);
        story.begin(&[("a", "0 * * * *", 600)]).await;
        story.until("2026-06-01T12:25:00+00:00[UTC]").await;
        story.manner("a", Manner::Well);
        story.until("2026-06-01T12:59:00+00:00[UTC]").await;
        let minutes = ["00", "10", "20", "30"].map(|minute| format!("2026-06-01T12:{minute}:00"));
        assert_eq!(story.starts(), minutes);
        let record = story.store.record("a").unwrap();
        let at = |minute: i64| {
            Some("2026-06-01T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minute))
        };
        assert_eq!(record.last_attempt_at, at(30));
        assert_eq!(record.last_success_at, at(30));
        assert_eq!(record.last_failure_at, at(20), "the failure is not forgotten");
        assert_eq!(record.pending_retry_until, None);
        assert_eq!(story.events().iter().filter(|event| *event == "TaskRetryStarted a").count(), 3);
    }

    #[tokio::test]
    async fn a_failure_keeps_the_last_success() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.begin(&[("a", "* * * * *", 600)]).await;
        story.manner("a", Manner::Badly);
        story.until("2026-06-01T12:01:00+00:00[UTC]").await;
        let record = story.store.record("a").unwrap();
        assert_eq!(record.last_success_at, Some("2026-06-01T12:00:00Z".parse().unwrap()));
        assert_eq!(record.pending_retry_until, Some("2026-06-01T12:11:00Z".parse().unwrap()));
    }

    #[tokio::test]
    async fn an_occurrence_takes_the_place_of_a_retry() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.manner("a", Manner::Badly);
        story.begin(&[("a", "0 * * * *", 90 * 60)]).await;
        story.manner("a", Manner::Well);
        story.events();
        story.until("2026-06-01T13:59:00+00:00[UTC]").await;
        assert_eq!(
            story.starts(),
            ["2026-06-01T12:00:00", "2026-06-01T13:00:00"],
            "the retry at 13:30 is over"
        );
        assert_eq!(story.events(), ["TaskRetryPreempted a", "TaskRunStarted a", "TaskRunCompleted a"]);
    }

    #[tokio::test]
    async fn a_retry_and_an_occurrence_due_together_are_one_run_of_the_occurrence() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.manner("a", Manner::Badly);
        story.begin(&[("a", "0 * * * *", 3_600)]).await;
        story.manner("a", Manner::Well);
        story.events();
        story.until("2026-06-01T13:00:00+00:00[UTC]").await;
        assert_eq!(story.starts().len(), 2);
        assert_eq!(story.events()[..2], ["TaskRetryPreempted a", "TaskRunStarted a"]);
    }

    #[tokio::test]
    async fn what_came_due_during_a_failing_run_starts_at_its_end() {
        let story = Story::at("2026-06-01T01:00:00+00:00[UTC]");
        story.manner("a", Manner::After(65 * 60, false));
        story.begin(&[("a", "0 * * * *", 30 * 60)]).await;
        story.manner("a", Manner::Well);
        story.until("2026-06-01T02:59:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["2026-06-01T01:00:00", "2026-06-01T02:05:00"]);
    }

    #[tokio::test]
    async fn a_delay_of_zero_does_not_keep_the_host_busy() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.manner("a", Manner::Badly);
        story.begin(&[("a", "0 12 * * *", 0)]).await;
        assert_eq!(story.starts().len(), 1, "the clock stands still, and so does the task");
        story.until("2026-06-01T12:00:10+00:00[UTC]").await;
        assert_eq!(story.starts().len(), 10);
    }

    #[tokio::test]
    async fn a_pending_retry_survives_a_restart() {
        let mut story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.manner("a", Manner::Badly);
        story.begin(&[("a", "0 12 * * *", 600)]).await;
        story.scheduler.stop().await.unwrap();
        story.manner("a", Manner::Well);
        story.starts();
        story.crash().await;
        story.clock.set("2026-06-01T12:05:00Z".parse().unwrap());
        story.begin(&[("a", "0 12 * * *", 5)]).await;
        assert_eq!(story.starts(), NONE, "a new delay does not move it");
        story.until("2026-06-01T12:15:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["2026-06-01T12:10:00"]);
    }
}

mod orphans {
    use super::*;

    #[tokio::test]
    async fn a_run_that_was_cut_off_starts_at_once_and_keeps_its_history() {
        let mut story = Story::at("2026-06-01T11:00:00+00:00[UTC]");
        story.begin(&[("a", "0 * * * *", 600)]).await;
        story.manner("a", Manner::Never);
        story.until("2026-06-01T12:00:00+00:00[UTC]").await;
        story.crash().await;
        story.manner("a", Manner::Well);
        story.starts();
        story.clock.set("2026-06-01T12:20:30Z".parse().unwrap());
        story.begin(&[("a", "0 * * * *", 600)]).await;
        assert_eq!(story.starts(), ["2026-06-01T12:20:30"]);
        let record = story.store.record("a").unwrap();
        assert_eq!(record.last_failure_at, None, "no failure is invented");
        story.until("2026-06-01T12:59:00+00:00[UTC]").await;
        assert_eq!(story.starts(), NONE);
        let told = story.told.lock().unwrap();
        let reasons: Vec<Reason> = told
            .events
            .iter()
            .filter_map(|event| match event {
                Event::TaskRunStarted { reason, .. } => Some(*reason),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, [Reason::Occurrence, Reason::Occurrence, Reason::Orphan]);
    }

    #[tokio::test]
    async fn orphan_retry_and_occurrence_together_are_one_run() {
        let mut story = Story::at("2026-06-01T11:00:00+00:00[UTC]");
        story.begin(&[("a", "0 * * * *", 600)]).await;
        story.crash().await;
        // Written by hand: a run that was cut off, while a retry was pending.
        let mut store = story.store.clone();
        store.open().unwrap();
        let mut record = story.store.record("a").unwrap();
        record.pending_retry_until = Some("2026-06-01T11:10:00Z".parse().unwrap());
        record.running = Some(RunningMark {
            scheduler_identifier: "someone".into(),
            started_at: "2026-06-01T11:05:00Z".parse().unwrap(),
        });
        store.replace(&"someone".into(), &[&record]).unwrap();
        drop(store);
        story.starts();
        story.clock.set("2026-06-01T12:00:00Z".parse().unwrap());
        story.begin(&[("a", "0 * * * *", 600)]).await;
        story.until("2026-06-01T12:59:00+00:00[UTC]").await;
        assert_eq!(story.starts(), ["2026-06-01T12:00:00"]);
    }

    #[tokio::test]
    async fn one_that_is_not_registered_any_more_is_forgotten() {
        let mut story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.manner("a", Manner::Never);
        story.begin(&[("a", "0 * * * *", 600)]).await;
        story.crash().await;
        story.starts();
        story.begin(&[("b", "0 0 * * *", 600)]).await;
        assert_eq!(story.starts(), NONE);
        assert!(story.store.record("a").is_none());
    }
}

mod overrides {
    use super::*;

    #[tokio::test]
    async fn a_changed_expression_is_judged_by_the_last_attempt() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        story.begin(&[("a", "0 * * * *", 600), ("b", "0 * * * *", 600)]).await;
        story.until("2026-06-01T12:30:00+00:00[UTC]").await;
        story.scheduler.stop().await.unwrap();
        story.starts();
        // 12:20 lies between the last attempt and now; 12:45 does not.
        story.begin(&[("a", "20 * * * *", 600), ("b", "45 * * * *", 600)]).await;
        assert_eq!(story.starts(), ["2026-06-01T12:30:00"]);
        let record = story.store.record("b").unwrap();
        assert_eq!(record.last_success_at, Some("2026-06-01T12:00:00Z".parse().unwrap()), "history is kept");
        assert_eq!(&*record.cron_expression, "45 * * * *");
    }

    #[tokio::test]
    async fn the_same_list_again_changes_nothing() {
        let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
        let list = [("a", "0 * * * *", 600), ("b", "30 * * * *", 5)];
        story.begin(&list).await;
        story.scheduler.stop().await.unwrap();
        let (before, _) = (story.store.to_json(), story.starts());
        story.begin(&list).await;
        assert_eq!(story.starts(), NONE);
        assert_eq!(story.store.to_json(), before);
    }
}

mod daylight_saving {
    use super::*;

    #[tokio::test]
    async fn a_time_that_does_not_exist_does_not_run_and_disturbs_nobody() {
        let story = Story::at("2024-03-10T00:30:00-05:00[America/New_York]");
        story.begin(&[("a", "30 2 * * *", 0), ("b", "0 * * * *", 0)]).await;
        story.until("2024-03-10T05:30:00-04:00[America/New_York]").await;
        let hours = ["01", "03", "04", "05"].map(|hour| format!("b 2024-03-10T{hour}:00:00"));
        assert_eq!(story.starts(), hours);
        story.until("2024-03-11T02:30:00-04:00[America/New_York]").await;
        assert!(story.starts().contains(&"2024-03-11T02:30:00".into()));
    }

    #[tokio::test]
    async fn a_time_that_happens_twice_runs_twice() {
        let story = Story::at("2024-11-03T00:50:00-04:00[America/New_York]");
        story.begin(&[("a", "30 1 * * *", 0)]).await;
        story.until("2024-11-04T00:00:00-05:00[America/New_York]").await;
        assert_eq!(story.starts(), ["2024-11-03T01:30:00", "2024-11-03T01:30:00"]);
    }

    #[tokio::test]
    async fn a_minute_by_minute_task_runs_in_both_passes() {
        let story = Story::at("2024-11-03T00:59:30-04:00[America/New_York]");
        story.begin(&[("a", "* 1 * * *", 0)]).await;
        story.until("2024-11-03T03:00:00-05:00[America/New_York]").await;
        assert_eq!(story.starts().len(), 120);
    }

    #[tokio::test]
    async fn a_day_that_does_not_exist() {
        let story = Story::at("2011-12-29T22:00:00-10:00[Pacific/Apia]");
        story.begin(&[("a", "0 12 * * *", 0)]).await;
        story.until("2011-12-31T13:00:00+14:00[Pacific/Apia]").await;
        assert_eq!(story.starts(), ["2011-12-31T12:00:00"]);
    }

    #[tokio::test]
    async fn another_zone_takes_effect_at_the_next_look() {
        let story = Story::at("2026-06-01T10:00:00+00:00[UTC]");
        story.begin(&[("a", "0 13 * * *", 0)]).await;
        let paris = jiff::tz::TimeZone::get("Europe/Paris").unwrap();
        story.clock.set_zone(Zone::new(&paris).unwrap());
        story.until("2026-06-01T14:30:00+02:00[Europe/Paris]").await;
        assert_eq!(story.starts(), ["2026-06-01T13:00:00"], "13:00 in Paris");
    }
}

#[tokio::test]
async fn lateness_is_measured() {
    let story = Story::at("2026-06-01T12:00:00+00:00[UTC]");
    story.begin(&[("a", "0 * * * *", 0)]).await;
    story.clock.set("2026-06-01T13:20:00Z".parse().unwrap());
    story.clock.settle().await;
    let lateness = story.scheduler.lateness();
    assert_eq!((lateness.starts, lateness.over_bound, lateness.worst), (2, 1, Duration::from_secs(1_200)));
    assert_eq!(kron_scheduler::lateness_bound(100_000), Duration::from_secs(600));
}
