//! Every rule about what to do with a period, as a story of a few lines.
//!
//! The sections are those of the Kron specification, from "Handling and Outcomes" on. A story checks
//! the promises at every step by itself: see `kron_core::story`.

use jiff::tz::TimeZone;
use kron_core::story::Story;
use kron_core::{
    Constraints, Ledger, Outcome, Overlap, PeriodId, Reason, Record, RunId, Step, Watch, WindowMode, evaluate,
};
use kron_schedule::Zone;

fn hourly() -> Story {
    Story::at("2026-03-02T10:30:00Z", "0 * * * *")
}

fn period(text: &str) -> PeriodId {
    text.parse().unwrap()
}

fn only(text: &str) -> Constraints {
    let mut constraints = Constraints::default();
    constraints.add_only(text).unwrap();
    constraints
}

fn at_ten() -> Ledger {
    Ledger::fenced(period("2026-03-02T10:00:00Z"))
}

mod handling {
    use super::*;

    #[test]
    fn a_period_has_exactly_one_outcome() {
        let mut story = hourly().remembering(at_ten());
        story.until("11:00").saw(["11:00: 11:00 executed"]);
        story.until("11:00").until("11:30").clock("11:00").saw([]);
    }

    #[test]
    fn an_executed_period_is_one_that_was_started() {
        let story = hourly();
        let watch = Watch {
            since: "2026-03-02T10:30:00Z".parse().unwrap(),
            now: "2026-03-02T11:00:00Z".parse().unwrap(),
        };
        let (steps, _) = evaluate(&story.job(), &at_ten(), &[], watch);
        let [Step::Record(Record::Settled(settled)), Step::Start(decision)] = steps.as_slice() else {
            panic!("a record, then the start: {steps:?}");
        };
        assert_eq!(settled.reason.outcome(), Outcome::Executed);
        assert_eq!(settled.decision, *decision);
    }

    #[test]
    fn a_skipped_period_was_not_started_by_policy() {
        let mut story = hourly().remembering(at_ten());
        story
            .until("12:00")
            .saw(["11:00: 11:00 executed", "12:00: 12:00 skipped, another run was still active"]);
    }

    #[test]
    fn a_missed_period_was_not_started_in_time() {
        let mut story = hourly().remembering(at_ten());
        story.off_until("11:00:01").saw(["11:00:01: 11:00 missed, its deadline had passed"]);
    }

    #[test]
    fn an_unschedulable_period_has_no_time_in_its_window() {
        let never = only("hours=3");
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "10m").constraints(never);
        story
            .until("11:30")
            .saw(["11:00: 11:00 unschedulable, no time tried in its window satisfies the constraints"]);
    }
}

mod trigger {
    use super::*;

    #[test]
    fn a_period_is_eligible_at_its_chosen_time_and_not_before() {
        let mut story = hourly().remembering(at_ten());
        story.until("10:59:59").saw([]).until("11:00").saw(["11:00: 11:00 executed"]);
    }

    #[test]
    fn a_window_moves_the_trigger_to_the_chosen_second() {
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "30m");
        story.until("11:17:14").saw([]);
        story.until("11:17:15").saw(["11:17:15: 11:00 executed"]);
    }

    #[test]
    fn while_suspended_nothing_starts_and_nothing_is_handled() {
        let mut story = hourly().remembering(at_ten());
        story.suspend().until("15:30").saw([]);
        assert_eq!(story.ledger(), &at_ten());
    }

    #[test]
    fn a_suspended_job_has_nothing_to_wake_for() {
        let mut story = hourly();
        story.suspend();
        let now = "2026-03-02T11:00:00Z".parse().unwrap();
        let (steps, wake) = evaluate(&story.job(), &at_ten(), &[], Watch { since: now, now });
        assert_eq!((steps, wake), (vec![], None));
    }

    #[test]
    fn after_a_suspension_only_the_latest_period_can_still_start() {
        let mut story = hourly().remembering(at_ten()).deadline("40m");
        story.suspend().until("13:30").resume().saw([
            "13:30: 11:00 to 12:00, 2 periods, missed, its deadline had passed",
            "13:30: 13:00 executed",
        ]);
    }

    #[test]
    fn an_unschedulable_period_is_not_recorded_while_suspended() {
        let never = only("hours=3");
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "10m").constraints(never);
        story.suspend().until("11:30").saw([]);
        assert_eq!(story.ledger(), &at_ten());
    }
}

mod deadline {
    use super::*;

    #[test]
    fn with_none_to_spare_the_chosen_second_is_in_time() {
        let mut story = hourly().remembering(at_ten());
        story.off_until("2026-03-02T11:00:00.999999999Z").saw(["11:00:00.999999999: 11:00 executed"]);
    }

    #[test]
    fn with_none_to_spare_the_next_second_is_too_late() {
        let mut story = hourly().remembering(at_ten());
        story.off_until("11:00:01").saw(["11:00:01: 11:00 missed, its deadline had passed"]);
    }

    #[test]
    fn the_last_second_of_the_deadline_is_in_time() {
        let mut story = hourly().remembering(at_ten()).deadline("10m");
        story.off_until("11:10:00").saw(["11:10: 11:00 executed"]);
    }

    #[test]
    fn a_second_after_the_deadline_is_too_late() {
        let mut story = hourly().remembering(at_ten()).deadline("10m");
        story.off_until("11:10:01").saw(["11:10:01: 11:00 missed, its deadline had passed"]);
    }

    #[test]
    fn a_fraction_of_a_deadline_is_kept_on_the_second_grid() {
        let on_time = |deadline: &str, now: &str| {
            let mut story = hourly().remembering(at_ten()).deadline(deadline);
            story.off_until(now);
            story.take_seen() == [format!("{}: 11:00 executed", &now[..8])]
        };
        assert!(on_time("1500ms", "11:00:01"));
        assert!(!on_time("1500ms", "11:00:02"));
        assert!(on_time("2s", "11:00:02"));
    }

    #[test]
    fn it_counts_from_the_chosen_time_and_not_from_the_window() {
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "30m").deadline("1m");
        story.off_until("11:18:15").saw(["11:18:15: 11:00 executed"]);
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "30m").deadline("1m");
        story.off_until("11:18:16").saw(["11:18:16: 11:00 missed, its deadline had passed"]);
    }

    #[test]
    fn without_one_the_latest_period_runs_however_late() {
        let mut story = hourly().remembering(at_ten()).deadline("none");
        story.off_until("2027-03-02T10:30:00Z").saw([
            "2027-03-02T10:30:00Z: 11:00 to 2027-03-02T09:00:00Z, at least 1000 periods, skipped, \
             a later period had come due",
            "2027-03-02T10:30:00Z: 2027-03-02T10:00:00Z executed",
        ]);
    }

    #[test]
    fn it_wins_over_concurrency() {
        let mut story = hourly().remembering(at_ten());
        story.until("11:00").saw(["11:00: 11:00 executed"]);
        story.off_until("12:00:01").saw(["12:00:01: 12:00 missed, its deadline had passed"]);
    }

    #[test]
    fn a_burst_is_stamped_once_so_its_last_member_is_not_late() {
        // The adapter reads the clock once for the batch; evaluating later with that stamp is in time.
        let stamp = "2026-03-02T11:00:00Z".parse().unwrap();
        let (steps, _) = evaluate(&hourly().job(), &at_ten(), &[], Watch { since: stamp, now: stamp });
        assert!(matches!(steps.last(), Some(Step::Start(_))));
    }
}

mod concurrency {
    use super::*;

    #[test]
    fn allow_starts_beside_an_active_run() {
        let mut story = hourly().remembering(at_ten()).overlap(Overlap::Allow);
        story.until("12:00").saw(["11:00: 11:00 executed", "12:00: 12:00 executed"]);
    }

    #[test]
    fn forbid_skips_while_a_run_is_active() {
        let mut story = hourly().remembering(at_ten()).overlap(Overlap::Forbid);
        story
            .until("12:30")
            .saw(["11:00: 11:00 executed", "12:00: 12:00 skipped, another run was still active"]);
        story.ends("11:00").until("13:00").saw(["12:30: ended 11:00", "13:00: 13:00 executed"]);
    }

    #[test]
    fn replace_ends_the_active_run_first() {
        let mut story = hourly().remembering(at_ten()).overlap(Overlap::Replace);
        story.until("12:00").saw([
            "11:00: 11:00 executed",
            "12:00: terminate 11:00",
            "12:00: ended 11:00",
            "12:00: 12:00 executed",
        ]);
    }

    #[test]
    fn queue_hands_over_at_once() {
        let mut story = hourly().remembering(at_ten()).overlap(Overlap::Queue);
        story.until("12:00").saw(["11:00: 11:00 executed", "12:00: 12:00 executed"]);
    }

    #[test]
    fn it_is_judged_at_trigger_time() {
        let mut story = hourly().remembering(at_ten());
        story.until("11:30").ends("11:00").until("12:00");
        story.saw(["11:00: 11:00 executed", "11:30: ended 11:00", "12:00: 12:00 executed"]);
    }

    #[test]
    fn a_run_by_hand_counts_as_active() {
        let mut story = hourly().remembering(at_ten());
        story.starts_by_hand(7).until("11:00").saw(["11:00: 11:00 skipped, another run was still active"]);
        story.hand_run_ends(7).until("12:00").saw(["11:00: ended by hand 7", "12:00: 12:00 executed"]);
    }

    #[test]
    fn replace_ends_a_run_by_hand_too() {
        let mut story = hourly().remembering(at_ten()).overlap(Overlap::Replace);
        story.starts_by_hand(7).until("11:00").saw([
            "11:00: terminate by hand 7",
            "11:00: ended by hand 7",
            "11:00: 11:00 executed",
        ]);
    }

    #[test]
    fn a_run_by_hand_moves_no_watermark() {
        let mut story = hourly().remembering(at_ten());
        story.starts_by_hand(7).hand_run_ends(7);
        assert_eq!(story.ledger(), &at_ten());
    }

    #[test]
    fn of_two_that_come_due_in_one_second_forbid_starts_the_earlier() {
        // Every second, five seconds around: the windows overlap, and chosen seconds coincide.
        let mut story = Story::at("2026-03-02T10:00:00Z", "* * * * * *").window(WindowMode::Around, "6s");
        story.until("10:00:30");
        let seen = story.take_seen();
        let executed = |line: &&String| line.ends_with("executed");
        let started: Vec<_> = seen.iter().filter(executed).collect();
        assert_eq!(started.len(), 1, "the run never ends, so there is only one: {seen:#?}");
        let same_second = |line: &&String| line[..8] == started[0][..8];
        let first = seen.iter().filter(same_second).map(|line| line.split(' ').nth(1)).min();
        assert_eq!(first, Some(started[0].split(' ').nth(1)), "and it is the earliest of its second");
    }

    #[test]
    fn of_two_that_come_due_in_one_second_replace_starts_only_the_later() {
        let mut story = Story::at("2026-03-02T10:00:00Z", "* * * * * *")
            .window(WindowMode::Around, "6s")
            .overlap(Overlap::Replace);
        story.until("10:00:30");
        let seen = story.take_seen();
        let at = |line: &String| line.split(": ").next().unwrap().to_string();
        let starts: Vec<_> = seen.iter().filter(|line| line.ends_with(" executed")).map(at).collect();
        let mut seconds = starts.clone();
        seconds.dedup();
        assert_eq!(starts, seconds, "nothing is started only to be ended at once");
        assert!(seen.iter().any(|line| line.ends_with("skipped, a later period had come due")), "{seen:#?}");
    }
}

mod idempotency {
    use super::*;

    #[test]
    fn looking_twice_starts_once() {
        // The story itself evaluates every moment twice; here it also comes back later in the second.
        let mut story = hourly().remembering(at_ten());
        story.until("11:00").until("2026-03-02T11:00:00.5Z").saw(["11:00: 11:00 executed"]);
    }

    #[test]
    fn a_run_found_under_way_is_not_started_again() {
        let now = "2026-03-02T11:00:00Z".parse().unwrap();
        let active = [RunId::Period(period("2026-03-02T11:00:00Z"))];
        let (steps, _) = evaluate(&hourly().job(), &at_ten(), &active, Watch { since: now, now });
        let [Step::Record(Record::Settled(settled))] = steps.as_slice() else {
            panic!("no start: {steps:?}")
        };
        assert_eq!(settled.reason, Reason::FoundRunning);
        assert_eq!(settled.reason.outcome(), Outcome::Executed);
    }

    #[test]
    fn a_run_found_before_its_time_is_not_started_when_it_comes() {
        // 11:00 was to run at 11:17:15; a run of it is there at 11:05, and ends before then.
        let now = "2026-03-02T11:05:00Z".parse().unwrap();
        let active = [RunId::Period(period("2026-03-02T11:00:00Z"))];
        let job = hourly().window(WindowMode::After, "30m").job();
        let mut ledger = at_ten();
        let (steps, _) = evaluate(&job, &ledger, &active, Watch { since: now, now });
        let [Step::Record(record @ Record::Settled(settled))] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(settled.reason, Reason::FoundRunning);
        ledger.apply(record);
        let now = "2026-03-02T11:17:15Z".parse().unwrap();
        assert_eq!(evaluate(&job, &ledger, &[], Watch { since: now, now }).0, []);
    }

    #[test]
    fn a_run_found_under_way_is_told_as_such_even_if_overtaken() {
        let now = "2026-03-02T12:10:00Z".parse().unwrap();
        let active = [RunId::Period(period("2026-03-02T11:00:00Z"))];
        let (steps, _) =
            evaluate(&hourly().deadline("2h").job(), &at_ten(), &active, Watch { since: now, now });
        let reasons: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Record(Record::Settled(settled)) => Some(settled.reason),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, [Reason::FoundRunning, Reason::StillRunning]);
    }

    #[test]
    fn the_record_of_a_start_precedes_it() {
        let now = "2026-03-02T11:00:00Z".parse().unwrap();
        let active = [RunId::Manual(1)];
        let job = hourly().overlap(Overlap::Replace).job();
        let (steps, _) = evaluate(&job, &at_ten(), &active, Watch { since: now, now });
        assert!(matches!(
            steps.as_slice(),
            [Step::Terminate(RunId::Manual(1)), Step::Record(Record::Settled(_)), Step::Start(_)]
        ));
    }

    #[test]
    fn a_crash_before_the_record_leaves_the_period_open() {
        // Nothing was recorded, so what is evaluated after the crash is the same; the deadline holds.
        let job = hourly().deadline("5m").job();
        let steps_at = |now: &str| {
            let now = now.parse().unwrap();
            evaluate(&job, &at_ten(), &[], Watch { since: now, now }).0.len()
        };
        assert_eq!(steps_at("2026-03-02T11:00:00Z"), 2, "a record and a start");
        assert_eq!(steps_at("2026-03-02T11:05:00Z"), 2, "again, after the crash");
        assert_eq!(steps_at("2026-03-02T11:05:01Z"), 1, "missed");
    }

    #[test]
    fn a_crash_after_the_record_loses_the_run_and_never_repeats_it() {
        let mut ledger = at_ten();
        let now = "2026-03-02T11:00:00Z".parse().unwrap();
        let (steps, _) = evaluate(&hourly().job(), &ledger, &[], Watch { since: now, now });
        let Step::Record(record) = &steps[0] else { panic!("the record comes first") };
        ledger.apply(record);
        assert_eq!(evaluate(&hourly().job(), &ledger, &[], Watch { since: now, now }).0, []);
        assert_eq!(ledger.active(), [RunId::Period(period("2026-03-02T11:00:00Z"))], "its end is not known");
    }
}

mod states {
    use super::*;

    #[test]
    fn a_period_is_planned_then_eligible_then_terminal() {
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "30m");
        let eleven = period("2026-03-02T11:00:00Z");
        story.until("11:00");
        assert!(!story.ledger().is_handled(eleven), "planned");
        story.until("11:17:15").saw(["11:17:15: 11:00 executed"]);
        assert!(story.ledger().is_handled(eleven), "terminal");
    }

    #[test]
    fn a_run_is_running_until_it_has_completed() {
        let mut story = hourly().remembering(at_ten());
        story.until("11:00");
        assert_eq!(story.ledger().active(), [RunId::Period(period("2026-03-02T11:00:00Z"))]);
        story.ends("11:00");
        assert_eq!(story.ledger().active(), []);
        assert!(story.ledger().is_handled(period("2026-03-02T11:00:00Z")), "it stays handled");
    }

    #[test]
    fn a_period_never_leaves_its_outcome() {
        // `Ledger` has no way back: even its own records cannot open a handled period again.
        let mut ledger = Ledger::fenced(period("2026-03-02T12:00:00Z"));
        let now = "2026-03-02T11:00:00Z".parse().unwrap();
        let (steps, _) = evaluate(&hourly().job(), &at_ten(), &[], Watch { since: now, now });
        let Step::Record(record) = &steps[0] else { panic!("the record comes first") };
        ledger.apply(record);
        assert_eq!(ledger.watermark(), Some(period("2026-03-02T12:00:00Z")));
        assert_eq!(ledger.pending(), []);
    }
}

mod edits {
    use super::*;

    #[test]
    fn what_is_handled_stays_handled_under_another_schedule() {
        let mut story = hourly().remembering(at_ten());
        story.until("11:00").ends("11:00").edit("*/20 * * * *");
        story.until("11:20").saw(["11:00: 11:00 executed", "11:00: ended 11:00", "11:20: 11:20 executed"]);
        story.clock("10:40").until("11:20").saw([]);
    }

    #[test]
    fn periods_to_come_follow_the_new_definition() {
        let mut story = hourly().remembering(at_ten());
        story.edit("45 * * * *").until("10:45").saw(["10:45: 10:45 executed"]);
    }

    #[test]
    fn a_chosen_time_moved_into_the_past_is_subject_to_the_deadline() {
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "30m");
        story.until("11:10").saw([]);
        story.set_window(WindowMode::After, "0s").until("11:11");
        story.saw(["11:10: 11:00 missed, its deadline had passed"]);
    }

    #[test]
    fn a_chosen_time_moved_into_the_past_can_still_be_in_time() {
        let mut story = hourly().remembering(at_ten()).window(WindowMode::After, "30m").deadline("15m");
        story.until("11:10").saw([]);
        story.set_window(WindowMode::After, "0s").until("11:11").saw(["11:10: 11:00 executed"]);
    }

    #[test]
    fn a_pending_period_that_the_new_schedule_does_not_have_is_skipped() {
        let open = period("2026-03-02T10:20:00Z");
        let ledger = Ledger::restored(Some(period("2026-03-02T10:25:00Z")), vec![open], vec![]);
        let mut story = Story::at("2026-03-02T10:30:00Z", "*/5 * * * *").remembering(ledger);
        story.edit("0 * * * *").set_window(WindowMode::After, "1h").until("10:30");
        story.saw(["10:30: 10:20 skipped, the job was edited and no longer has this period"]);
    }

    #[test]
    fn an_edit_replays_no_backlog() {
        let mut story =
            Story::at("2026-03-02T10:30:00Z", "0 0 1 1 *").deadline("none").overlap(Overlap::Allow).known();
        story.until("11:30").saw([]).edit("*/5 * * * *").until("11:30").saw([
            "11:30: 10:35 to 11:25, 11 periods, skipped, a later period had come due",
            "11:30: 11:30 executed",
        ]);
    }

    #[test]
    fn a_pending_period_that_is_gone_does_not_hide_one_that_is_not() {
        let pending = vec![period("2026-03-02T10:00:00Z"), period("2026-03-02T10:20:00Z")];
        let ledger = Ledger::restored(Some(period("2026-03-02T10:30:00Z")), pending, vec![]);
        let mut story = Story::at("2026-03-02T10:40:00Z", "0 * * * *")
            .window(WindowMode::After, "10m")
            .deadline("2h")
            .remembering(ledger);
        story.until("10:40").saw([
            "10:40: 10:00 executed",
            "10:40: 10:20 skipped, the job was edited and no longer has this period",
        ]);
    }

    #[test]
    fn another_salt_or_distribution_moves_only_what_is_open() {
        use kron_core::{Distribution, Job, SeedStrategy};
        let story = hourly().window(WindowMode::After, "30m");
        let job = story.job();
        let salted = Job::builder("story", job.schedule().clone(), job.zone().clone())
            .window(WindowMode::After, "30m".parse().unwrap())
            .distribution(Distribution::SkewLate { shape: 2.0 })
            .seed(SeedStrategy::Stable, "another")
            .build()
            .unwrap();
        let now = "2026-03-02T11:25:00Z".parse().unwrap();
        let handled = Ledger::fenced(period("2026-03-02T11:00:00Z"));
        assert_eq!(evaluate(&salted, &handled, &[], Watch { since: now, now }).0, [], "handled is handled");
        let nominal = "2026-03-02T12:00:00Z".parse().unwrap();
        assert_ne!(kron_core::decide(&salted, nominal).chosen(), kron_core::decide(&job, nominal).chosen());
    }

    #[test]
    fn another_policy_takes_hold_at_the_next_period() {
        let mut story = hourly().remembering(at_ten());
        story.until("12:00");
        story.saw(["11:00: 11:00 executed", "12:00: 12:00 skipped, another run was still active"]);
        story.overlap(Overlap::Allow).until("13:00").saw(["13:00: 13:00 executed"]);
    }
}

mod clock {
    use super::*;

    #[test]
    fn a_jump_forward_makes_periods_eligible_subject_to_the_deadline() {
        let mut story = hourly().remembering(at_ten()).deadline("10m");
        story.until("10:45").clock("12:05");
        story.saw(["12:05: 11:00 missed, its deadline had passed", "12:05: 12:00 executed"]);
    }

    #[test]
    fn a_jump_forward_replays_no_backlog() {
        let mut story = hourly().remembering(at_ten()).deadline("none").overlap(Overlap::Allow);
        story.until("10:45").clock("15:05").saw([
            "15:05: 11:00 to 14:00, 4 periods, skipped, a later period had come due",
            "15:05: 15:00 executed",
        ]);
    }

    #[test]
    fn a_jump_back_handles_nothing_again() {
        let mut story = hourly().remembering(at_ten());
        story.until("11:30").saw(["11:00: 11:00 executed"]);
        story.clock("10:15").until("11:45").saw([]);
        story.ends("11:00").until("12:00").saw(["11:45: ended 11:00", "12:00: 12:00 executed"]);
    }

    #[test]
    fn a_watermark_ahead_of_time_holds_the_job_until_time_has_passed_it() {
        let ahead = Ledger::fenced(period("2026-03-02T14:00:00Z"));
        let mut story = hourly().remembering(ahead);
        let now = "2026-03-02T10:30:00Z".parse().unwrap();
        assert!(story.ledger().is_ahead_of(now));
        let (_, wake) = evaluate(&story.job(), story.ledger(), &[], Watch { since: now, now });
        assert_eq!(wake, Some("2026-03-02T15:00:00Z".parse().unwrap()), "nothing to wake for before");
        story.until("15:00").saw(["15:00: 15:00 executed"]);
    }

    #[test]
    fn accepting_the_clock_is_the_one_way_back() {
        let ahead = Ledger::fenced(period("2030-01-01T00:00:00Z"));
        let mut story = hourly().remembering(ahead.accept_clock(period("2026-03-02T10:30:00Z")));
        story.until("11:00").saw(["11:00: 11:00 executed"]);
    }
}

mod observability {
    use super::*;

    #[test]
    fn a_record_tells_how_to_reproduce_the_decision() {
        let job = hourly().window(WindowMode::After, "30m").job();
        let now = "2026-03-02T11:17:15Z".parse().unwrap();
        let (steps, _) = evaluate(&job, &at_ten(), &[], Watch { since: now, now });
        let Step::Record(Record::Settled(settled)) = &steps[0] else { panic!("a record: {steps:?}") };
        let decision = &settled.decision;
        assert_eq!(decision.period_id().to_string(), "2026-03-02T11:00:00Z");
        assert_eq!(decision.nominal().to_string(), "2026-03-02T11:00:00Z");
        assert_eq!(decision.chosen().unwrap().to_string(), "2026-03-02T11:17:15Z");
        assert_eq!(decision.seed_hash(), kron_core::decide(&job, decision.nominal()).seed_hash());
        assert_eq!(settled.reason.outcome().name(), "executed");
    }

    #[test]
    fn every_outcome_has_a_reason_in_words() {
        let told = |reason: Reason| format!("{} because {reason}", reason.outcome());
        assert_eq!(told(Reason::Started), "executed because its time had come");
        assert_eq!(told(Reason::FoundRunning), "executed because a run of it was found under way");
        assert_eq!(told(Reason::DeadlinePassed), "missed because its deadline had passed");
        assert_eq!(
            told(Reason::Rescheduled),
            "skipped because the job was edited and no longer has this period"
        );
        assert_eq!(told(Reason::StillRunning), "skipped because another run was still active");
        assert_eq!(told(Reason::Superseded), "skipped because a later period had come due");
        assert_eq!(
            told(Reason::NoCandidate),
            "unschedulable because no time tried in its window satisfies the constraints"
        );
    }
}

mod invariants {
    use super::*;

    #[test]
    fn no_backlog_is_replayed_after_any_downtime() {
        let mut story = Story::at("2026-03-02T10:30:00Z", "* * * * *").remembering(at_ten());
        story.off_until("2036-03-02T10:30:00Z").saw([
            "2036-03-02T10:30:00Z: 10:01 to 2036-03-02T10:29:00Z, at least 1000 periods, missed, \
             its deadline had passed",
            "2036-03-02T10:30:00Z: 2036-03-02T10:30:00Z executed",
        ]);
    }

    #[test]
    fn what_was_overtaken_within_its_deadline_is_skipped_and_past_it_missed() {
        let mut story = hourly().remembering(at_ten()).deadline("3h");
        story.off_until("16:30").saw([
            "16:30: 14:00 to 15:00, 2 periods, skipped, a later period had come due",
            "16:30: 11:00 to 13:00, 3 periods, missed, its deadline had passed",
            "16:30: 16:00 executed",
        ]);
    }

    #[test]
    fn a_job_never_seen_has_missed_nothing() {
        let mut story = hourly().deadline("1h");
        story.until("10:30").saw(["10:30: 10:00 executed"]);
        let mut story = hourly().deadline("10m");
        story.until("10:30").saw(["10:30: 10:00 missed, its deadline had passed"]);
    }

    #[test]
    fn a_job_never_seen_has_missed_nothing_though_somebody_has_long_been_watching() {
        let mut story = Story::at("2026-03-02T10:30:00Z", "* * * * *").deadline("2h").overlap(Overlap::Allow);
        story.held_until("12:30").saw(["12:30: 12:30 executed"]);
    }

    #[test]
    fn history_too_long_to_look_at_is_told_by_its_deadline() {
        let mut story = Story::at("2026-03-02T10:30:00Z", "* * * * *").remembering(at_ten()).deadline("240h");
        story.off_until("2026-04-02T10:30:00Z").saw([
            "2026-04-02T10:30:00Z: 2026-03-23T10:30:00Z to 2026-04-02T10:29:00Z, at least 10999 periods, skipped, \
             a later period had come due",
            "2026-04-02T10:30:00Z: 10:01 to 2026-03-23T10:29:00Z, at least 1000 periods, missed, \
             its deadline had passed",
            "2026-04-02T10:30:00Z: 2026-04-02T10:30:00Z executed",
        ]);
    }

    #[test]
    fn a_suspension_advances_nothing() {
        let mut story = hourly().remembering(at_ten());
        story.suspend().until("12:30").saw([]);
        assert_eq!(story.ledger().watermark(), Some(period("2026-03-02T10:00:00Z")));
    }

    #[test]
    fn watching_judges_each_period_by_its_own_deadline() {
        // Started at 10:30 and never stopped watching, but held up (a failing disk) until 12:20.
        for deadline in ["2h", "none"] {
            let mut story = hourly().remembering(at_ten()).deadline(deadline).overlap(Overlap::Allow);
            story.held_until("12:20").saw(["12:20: 11:00 executed", "12:20: 12:00 executed"]);
        }
    }
}

mod windows {
    use super::*;

    /// The second of each start, and the minute it was for.
    fn starts(seen: &[String]) -> Vec<(String, String)> {
        let words = |line: &String| {
            let (at, rest) = line.split_once(": ")?;
            Some((at.to_string(), rest.strip_suffix(" executed")?.to_string()))
        };
        seen.iter().filter_map(words).collect()
    }

    #[test]
    fn overlapping_windows_run_every_period_once() {
        let mut story = Story::at("2026-03-02T10:00:30Z", "* * * * *")
            .window(WindowMode::After, "3m")
            .overlap(Overlap::Allow)
            .remembering(at_ten());
        story.until("10:14");
        let mut periods: Vec<String> =
            starts(&story.take_seen()).into_iter().map(|(_, period)| period).collect();
        assert!(!periods.is_sorted(), "they do not come in order");
        periods.sort();
        periods.truncate(10);
        let minutes: Vec<String> = (1..=10).map(|minute| format!("10:{minute:02}")).collect();
        assert_eq!(periods, minutes);
    }

    #[test]
    fn an_overtaken_period_waits_for_its_own_time_across_a_restart() {
        let story = || {
            Story::at("2026-03-02T10:00:30Z", "* * * * *")
                .window(WindowMode::After, "30m")
                .overlap(Overlap::Allow)
                .remembering(at_ten())
        };
        let mut steady = story();
        steady.until("11:00");
        let steady = starts(&steady.take_seen());
        // The same with a restart every minute: the ledger carries what is pending.
        let mut restarted = story();
        for minute in 1..60 {
            restarted.until(&format!("10:{minute:02}:30"));
            restarted.off_until(&format!("10:{minute:02}:30"));
            assert!(restarted.ledger().pending().len() < 31);
        }
        restarted.until("11:00");
        assert_eq!(starts(&restarted.take_seen()), steady);
        assert!(steady.len() > 30);
    }

    #[test]
    fn around_the_nominal_time_with_no_deadline_to_spare_nothing_is_missed() {
        let mut story = Story::at("2026-03-02T10:00:30Z", "*/5 * * * *")
            .window(WindowMode::Around, "4m")
            .overlap(Overlap::Allow)
            .remembering(at_ten());
        story.until("13:00");
        let seen = story.take_seen();
        assert!(seen.iter().all(|line| line.ends_with("executed")), "{seen:#?}");
        assert_eq!(seen.len(), 36);
        assert!(starts(&seen).iter().any(|(at, period)| at < period), "half of them come early");
    }

    #[test]
    fn a_period_still_to_come_does_not_hide_the_one_that_came_due_before_it() {
        // At 12:05 the window of 12:00 is open and its time has not come; 11:00 came due unwatched.
        let story = || hourly().remembering(at_ten()).window(WindowMode::After, "30m");
        story().deadline("2h").off_until("12:05").saw(["12:05: 11:00 executed"]);
        story().deadline("none").off_until("12:05").saw(["12:05: 11:00 executed"]);
        story().deadline("0s").off_until("12:05").saw(["12:05: 11:00 missed, its deadline had passed"]);
    }

    #[test]
    fn an_unschedulable_period_is_recorded_when_its_window_opens() {
        let never = only("hours=3");
        let mut story = hourly().remembering(at_ten()).window(WindowMode::Around, "10m").constraints(never);
        story.until("10:54:59").saw([]);
        story
            .until("10:55")
            .saw(["10:55: 11:00 unschedulable, no time tried in its window satisfies the constraints"]);
    }
}

mod daylight_saving {
    use super::*;

    fn new_york() -> Zone {
        Zone::new(&TimeZone::get("America/New_York").unwrap()).unwrap()
    }

    #[test]
    fn a_time_that_happens_twice_runs_once() {
        let mut story = Story::at("2026-11-01T00:00:00Z", "30 1 * * *").zone(&new_york());
        story
            .until("23:00")
            .saw(["00:00: 2026-10-31T05:30:00Z missed, its deadline had passed", "05:30: 05:30 executed"]);
    }

    #[test]
    fn a_time_that_does_not_exist_is_no_period() {
        let mut story = Story::at("2026-03-08T00:00:00Z", "30 2 * * *").zone(&new_york());
        story.until("23:00").saw(["00:00: 2026-03-07T07:30:00Z missed, its deadline had passed"]);
    }
}

mod intervals {
    use super::*;

    #[test]
    fn occurrences_between_two_seconds_fire_once_together() {
        let mut story = Story::at("2026-03-02T10:00:00Z", "@every 400ms").overlap(Overlap::Allow);
        story.until("10:00:02").saw([
            "10:00: 10:00 executed",
            "10:00:01: 10:00:01 executed",
            "10:00:02: 10:00:02 executed",
        ]);
    }

    #[test]
    fn what_is_passed_over_is_counted_in_periods() {
        let mut story = Story::at("2026-03-02T10:00:00Z", "@every 100ms").known();
        story.off_until("10:00:20").saw([
            "10:00:20: 10:00:01 to 10:00:19, 19 periods, missed, its deadline had passed",
            "10:00:20: 10:00:20 executed",
        ]);
    }

    #[test]
    fn an_occurrence_beside_the_second_grid_is_not_early() {
        let mut story = Story::at("2026-03-02T10:00:00Z", "@every 1500ms").overlap(Overlap::Allow);
        story.until("10:00:04").saw([
            "10:00: 10:00 executed",
            "10:00:02: 10:00:02 executed",
            "10:00:03: 10:00:03 executed",
        ]);
    }
}
