//! Do decisions keep their promises, whatever the job and the period?

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use kron_core::{
    Anchor, CANDIDATES_MAX, Constraints, Decision, Direction, Distribution, Job, PeriodId, SeedStrategy,
    Window, WindowMode, decide, seed_material,
};
use kron_schedule::{Duration, Zone};
use proptest::prelude::*;

use crate::jobs::{at, job, zone};

/// Everything a job is made of, as plain values.
#[derive(Clone, Debug)]
struct Definition {
    identity: String,
    zone: &'static str,
    mode: WindowMode,
    nanos: i64,
    distribution: Distribution,
    strategy: SeedStrategy,
    salt: String,
    only: Vec<&'static str>,
    avoid: Vec<&'static str>,
}

impl Definition {
    fn constraints(&self) -> Constraints {
        let mut constraints = Constraints::default();
        for text in &self.only {
            constraints.add_only(text).unwrap();
        }
        for text in &self.avoid {
            constraints.add_avoid(text).unwrap();
        }
        constraints
    }

    fn job(&self) -> Job {
        job(&self.identity, self.zone)
            .window(self.mode, Duration::from_nanos(self.nanos))
            .distribution(self.distribution)
            .seed(self.strategy, self.salt.as_str())
            .constraints(self.constraints())
            .build()
            .unwrap()
    }
}

fn definitions() -> impl Strategy<Value = Definition> {
    let zones =
        ["UTC", "America/New_York", "Europe/Paris", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"];
    let modes = [WindowMode::After, WindowMode::Around, WindowMode::Before];
    let strategies = [SeedStrategy::Daily, SeedStrategy::Stable, SeedStrategy::Weekly];
    let clauses = [
        "hours=8-17",
        "hours=0-23",
        "hours=22-23,0-6",
        "dow=MON-FRI",
        "dow=5-7",
        "dom=1-15",
        "months=1-6",
        "between=08:00-17:30",
        "between=0:00-0:14",
        "dates=2026-01-01..2026-12-31",
        "date=2026-02-28",
        "hours=3;dow=SUN;months=2",
    ];
    let list = || prop::collection::vec(prop::sample::select(clauses.to_vec()), 0..3);
    let nanos = prop_oneof![
        Just(0),
        0..5_000_000_000_i64,
        (0..200_000_i64).prop_map(|seconds| seconds * 1_000_000_000),
        Just(366 * 86_400 * 1_000_000_000),
    ];
    (
        ("[a-z/éß]{1,80}", "[ -~]{0,40}"),
        prop::sample::select(zones.to_vec()),
        (prop::sample::select(modes.to_vec()), nanos),
        distributions(),
        prop::sample::select(strategies.to_vec()),
        (list(), list()),
    )
        .prop_map(|((identity, salt), zone, (mode, nanos), distribution, strategy, (only, avoid))| {
            Definition { identity, zone, mode, nanos, distribution, strategy, salt, only, avoid }
        })
}

fn distributions() -> impl Strategy<Value = Distribution> {
    let number = || prop_oneof![1e-9..50.0_f64, Just(f64::MIN_POSITIVE), Just(f64::MAX), Just(2.0)];
    let direction = prop_oneof![Just(Direction::Early), Just(Direction::Late)];
    let anchors = [None, Some(Anchor::End), Some(Anchor::Mid), Some(Anchor::Nominal), Some(Anchor::Start)];
    let sigma = prop::option::of((1..i64::MAX).prop_map(Duration::from_nanos));
    prop_oneof![
        Just(Distribution::Uniform),
        number().prop_map(|shape| Distribution::SkewEarly { shape }),
        number().prop_map(|shape| Distribution::SkewLate { shape }),
        (number(), direction).prop_map(|(lambda, direction)| Distribution::Exponential { lambda, direction }),
        (prop::sample::select(anchors.to_vec()), sigma)
            .prop_map(|(mu, sigma)| Distribution::Normal { mu, sigma }),
    ]
}

/// Nominal times in Kron's lifetime and far from it, some of them between two seconds.
fn nominals() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (0..4_102_444_800_i64).prop_map(|second| Timestamp::from_second(second).unwrap()),
        1 => (0..4_102_444_800_000_000_000_i64)
            .prop_map(|nanos| Timestamp::from_nanosecond(nanos.into()).unwrap()),
        1 => (Timestamp::MIN.as_second()..Timestamp::MAX.as_second())
            .prop_map(|second| Timestamp::from_second(second).unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chosen_time_is_allowed_and_within_its_window(definition in definitions(), nominal in nominals()) {
        let job = definition.job();
        let decision = decide(&job, nominal);
        let (start, end) = (decision.window_start(), decision.window_end());
        prop_assert_eq!((start, end), job.window().bounds(nominal));
        prop_assert!(start <= end);
        prop_assert_eq!(decision.period_id(), PeriodId::new(nominal));
        let allows = |second: Timestamp| job.constraints().allow(job.zone().to_civil(second));
        match decision.chosen() {
            Some(chosen) => {
                prop_assert!(start <= chosen && chosen <= end, "{} in {} to {}", chosen, start, end);
                prop_assert!(allows(chosen));
                prop_assert_eq!(chosen.subsec_nanosecond(), 0);
                prop_assert_eq!(decision.reason(), None);
            }
            None => {
                prop_assert!(!job.constraints().is_empty());
                prop_assert_eq!(decision.reason(), Some("no candidate accepted within MaxAttempts"));
            }
        }
        if start == end {
            prop_assert_eq!(decision.attempts(), 0);
            prop_assert_eq!(decision.chosen(), Some(start).filter(|second| allows(*second)));
        } else {
            let attempts = 1..=CANDIDATES_MAX;
            prop_assert!(attempts.contains(&decision.attempts()));
            prop_assert!(!decision.is_unschedulable() || decision.attempts() == CANDIDATES_MAX);
            prop_assert!(!job.constraints().is_empty() || decision.attempts() == 1);
        }
    }

    #[test]
    fn a_decision_depends_on_nothing_but_the_definition(definition in definitions(), nominal in nominals()) {
        let (job, again) = (definition.job(), definition.job());
        prop_assert_eq!(decide(&job, nominal), decide(&again, nominal));
        prop_assert_eq!(decide(&job.clone(), nominal), decide(&again, nominal));
    }

    #[test]
    fn the_seed_is_the_text_it_says(definition in definitions(), nominal in nominals()) {
        let job = definition.job();
        let decision = decide(&job, nominal);
        let Definition { identity, salt, .. } = &definition;
        let text = format!("{identity}\n{}\n{salt}", decision.period_key());
        prop_assert_eq!(seed_material(&job, nominal), text.clone());
        prop_assert_eq!(decision.explain(&job).seed_material(), text);
        prop_assert_eq!((job.identity(), job.salt()), (identity.as_str(), salt.as_str()));
    }

    #[test]
    fn constraints_reject_candidates_and_change_none(definition in definitions(), nominal in nominals()) {
        // Without constraints the first candidate is chosen; with them it still is, if it passes.
        let free = Definition { only: Vec::new(), avoid: Vec::new(), ..definition.clone() };
        let first = decide(&free.job(), nominal).chosen().unwrap();
        let job = definition.job();
        let decision = decide(&job, nominal);
        if job.constraints().allow(job.zone().to_civil(first)) {
            prop_assert_eq!(decision.chosen(), Some(first));
        } else {
            prop_assert_ne!(decision.chosen(), Some(first));
        }
    }

    #[test]
    fn a_printed_constraint_can_be_read(definition in definitions()) {
        let constraints = definition.constraints();
        let mut again = Constraints::default();
        if !constraints.only().is_empty() {
            again.add_only(&constraints.only().to_string()).unwrap();
        }
        if !constraints.avoid().is_empty() {
            again.add_avoid(&constraints.avoid().to_string()).unwrap();
        }
        prop_assert_eq!(again, constraints);
    }

    #[test]
    fn no_text_makes_a_constraint_panic(text in "[-=;,.:/* 0-9a-zA-Zé]{0,40}", key in "(hours|dow|dom|months|between|dates?)=") {
        for text in [text.clone(), format!("{key}{text}")] {
            let mut constraints = Constraints::default();
            match constraints.add_only(&text) {
                Ok(()) => prop_assert!(!constraints.is_empty()),
                Err(error) => {
                    prop_assert!(constraints.is_empty());
                    prop_assert!(text.get(error.span()).is_some(), "{} {:?}", text, error);
                }
            }
        }
    }

    #[test]
    fn no_text_makes_a_period_id_panic(text in "[-+0-9TZ:.]{0,30}") {
        if let Ok(id) = text.parse::<PeriodId>() {
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}

#[test]
fn keys_of_days_and_weeks_are_those_of_the_local_calendar() {
    for name in ["UTC", "Asia/Tokyo", "America/Los_Angeles", "Pacific/Apia"] {
        let (kron, jiff) = (zone(name), TimeZone::get(name).unwrap());
        // Every day from 1970 to 2100, at an hour that differs from day to day.
        let mut nominal = at("1970-01-02T00:00:00Z");
        while nominal < at("2101-01-10T00:00:00Z") {
            let day = jiff.to_datetime(nominal).date();
            let week = day.iso_week_date();
            let key = |strategy: SeedStrategy| strategy.period_key(nominal, &kron).to_string();
            assert_eq!(key(SeedStrategy::Daily), day.to_string());
            assert_eq!(key(SeedStrategy::Weekly), format!("{:04}-W{:02}", week.year(), week.week()));
            assert_eq!(key(SeedStrategy::Stable), nominal.to_string());
            nominal += SignedDuration::from_secs(86_400 + 37);
        }
    }
}

#[test]
fn weeks_at_the_ends_of_years_belong_to_the_year_of_their_thursday() {
    for (day, key) in [
        ("2027-01-01T00:00:00Z", "2026-W53"),
        ("2025-12-29T00:00:00Z", "2026-W01"),
        ("2024-12-30T00:00:00Z", "2025-W01"),
        ("2021-01-03T23:59:59Z", "2020-W53"),
        ("2021-01-04T00:00:00Z", "2021-W01"),
        ("2000-01-02T00:00:00Z", "1999-W52"),
    ] {
        assert_eq!(SeedStrategy::Weekly.period_key(at(day), &Zone::utc()).to_string(), key);
    }
}

#[test]
fn periods_of_a_day_share_their_place_in_the_window() {
    let job = job("demo", "UTC")
        .window(WindowMode::After, Duration::from_seconds(3_600))
        .seed(SeedStrategy::Daily, "")
        .build()
        .unwrap();
    let offset = |nominal: Timestamp| decide(&job, nominal).chosen().unwrap() - nominal;
    let morning = at("2026-05-04T06:00:00Z");
    assert_eq!(offset(morning).fieldwise(), offset(morning + 5.hours()).fieldwise());
    assert_ne!(offset(morning).fieldwise(), offset(morning + 24.hours()).fieldwise());
}

#[test]
fn every_distribution_leans_the_way_it_says() {
    let mean = |distribution: Distribution| {
        let job = job("demo", "UTC")
            .window(WindowMode::After, Duration::from_seconds(1_000))
            .distribution(distribution)
            .build()
            .unwrap();
        let start = at("2026-01-01T00:00:00Z");
        let offset = |i: i64| {
            let nominal = start + (i * 60).seconds();
            (decide(&job, nominal).chosen().unwrap().as_second() - nominal.as_second()) as f64
        };
        (0..20_000).map(offset).sum::<f64>() / 20_000.0
    };
    let near = |distribution: Distribution, expected: f64| {
        let mean = mean(distribution);
        assert!((mean - expected).abs() < 8.0, "{distribution}: {mean}, expected {expected}");
    };
    let sigma = Some(Duration::from_seconds(100));
    near(Distribution::Uniform, 500.0);
    near(Distribution::SkewEarly { shape: 2.0 }, 333.3);
    near(Distribution::SkewLate { shape: 2.0 }, 666.7);
    near(Distribution::Exponential { lambda: 1.0, direction: Direction::Early }, 418.0);
    near(Distribution::Exponential { lambda: 1.0, direction: Direction::Late }, 582.0);
    near(Distribution::Exponential { lambda: 1e-9, direction: Direction::Late }, 500.0);
    near(Distribution::Normal { mu: None, sigma }, 500.0);
    near(Distribution::Normal { mu: Some(Anchor::Start), sigma }, 79.8);
    near(Distribution::Normal { mu: Some(Anchor::End), sigma }, 920.2);
    near(Distribution::Normal { mu: Some(Anchor::Nominal), sigma }, 79.8);
}

#[test]
fn a_window_without_length_runs_at_the_nominal_time() {
    let job = job("exact", "UTC").build().unwrap();
    let nominal = at("2026-01-01T00:00:00Z");
    let decision: Decision = decide(&job, nominal);
    assert_eq!((decision.chosen(), decision.attempts()), (Some(nominal), 0));
    assert_eq!(*job.window(), Window::NONE);
}
