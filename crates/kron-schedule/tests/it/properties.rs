//! Random cases: what must hold for every expression, zone, policy and instant.
//!
//! `KRON_SEED=n` runs them with other cases; a failure prints the seed it happened with.

use jiff::civil::time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kron_schedule::{Count, Dialect, Dst, Duration, EveryDays, Expr, Fold, Gap, Zone};

use crate::compare::{answers, first_disagreement, floor, timestamp};
use crate::generator::{Case, NamedZone, Random, instant, seed, zones};
use crate::oracle::{DAY, LAST, Oracle};

/// About ten seconds' worth; `examples/campaign.rs` does ten million.
const CASES: u64 = 100_000;
/// For properties that ask much of each case.
const CASES_FEW: u64 = 3_000;

#[test]
fn answers_agree_with_the_oracle() {
    if let Err(disagreement) = first_disagreement(seed(), 0..CASES, &zones()) {
        panic!("{disagreement}");
    }
}

#[test]
fn iterators_and_counts_agree_with_the_oracle() {
    let (seed, zones) = (seed(), zones());
    for number in 0..CASES_FEW {
        let case = Case::random(&mut Random::of_case(seed, number), &zones);
        let Ok(schedule) = Expr::parse(&case.text, case.dialect).unwrap().compile(&case.zone.kron, case.dst)
        else {
            continue; // it never matches, which the comparison above has looked into
        };
        let oracle = Oracle::new(&case.text, &case.zone.jiff, &case.dst.to_string());
        let through = timestamp(floor(case.start) + DAY);
        let walk = |at: &Timestamp| oracle.next_after(floor(*at)).map(timestamp).filter(|at| *at <= through);
        // Expressions with seconds may have 86,400 a day.
        let mut expected: Vec<Timestamp> =
            std::iter::successors(walk(&case.start), walk).take(2_000).collect();
        let through = if expected.len() < 2_000 { through } else { expected[expected.len() - 1] };

        let forward = schedule.occurrences_after(case.start).take_while(|at| *at <= through);
        assert_eq!(forward.collect::<Vec<_>>(), expected, "seed {seed}, case {number}: {case}");

        let many = u64::try_from(expected.len()).unwrap();
        let count = |at_most| schedule.count_between(case.start, through, at_most);
        assert_eq!(count(many), Count::Exactly(many), "seed {seed}, case {number}: {case}");
        if let Some(fewer) = many.checked_sub(1) {
            assert_eq!(count(fewer), Count::AtLeast(fewer), "seed {seed}, case {number}: {case}");
        }

        let backward = schedule.occurrences_before(through).take_while(|at| *at > case.start);
        expected.reverse();
        assert_eq!(backward.collect::<Vec<_>>(), expected, "seed {seed}, case {number}: {case}");
    }
}

/// The iterator takes the rest of an hour, some weeks or a month at once. Clocks that change in between, and either end
/// of Kron's time, are where that can go wrong.
#[test]
fn listing_days_is_searching_again_and_again() {
    const LISTED: usize = 700;
    for name in
        ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Gaza", "Asia/Kolkata"]
    {
        let zone = Zone::new(&TimeZone::get(name).unwrap()).unwrap();
        for line in [
            "30 2 * * *",
            "0 2 * * SUN",
            "30 1 * * MON-FRI",
            "0 */6 * * TUE,SAT",
            "0 0 1 * *",
            "15 2 29-31 * *",
            "30 2 * 3,10 SUN",
            "0 3 29 2 *",
            "0 2 L,15W * *",
            "30 1 LW * *",
            "45 1 * * MON#1,FRI#5",
            "0 2 13 * FRIL",
            "*/20 * 31 * *",
        ] {
            let policies = [
                (Gap::Skip, Fold::Auto),
                (Gap::After, Fold::Auto),
                (Gap::Skip, Fold::Both),
                (Gap::After, Fold::First),
            ];
            for (gap, fold) in policies {
                let dst = Dst { gap, fold };
                let schedule = Expr::parse(line, Dialect::Ojs).unwrap().compile(&zone, dst).unwrap();
                for start in [
                    "1969-06-01T00:00:00Z",
                    "2026-01-31T23:59:59.5Z",
                    "2098-11-11T11:11:11Z",
                    "9999-02-27T00:00:00Z",
                ] {
                    let start: Timestamp = start.parse().unwrap();
                    let searched = std::iter::successors(Some(start), |at| schedule.next_after(*at)).skip(1);
                    let listed = schedule.occurrences_after(start).take(LISTED);
                    assert!(listed.eq(searched.take(LISTED)), "{line} in {name} after {start}, {dst}");
                }
            }
        }
    }
}

/// The same for occurrences that are close together.
#[test]
fn listing_is_searching_again_and_again() {
    for name in
        ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "Asia/Gaza"]
    {
        let zone = Zone::new(&TimeZone::get(name).unwrap()).unwrap();
        for line in [
            "* * * * *",
            "*/5 * * * *",
            "17 * * * *",
            "30 1-23/2 * * *",
            "0 */6 * * *",
            "*/15 * * * * *",
            "*/7 0-4 * * *",
            "30 15,45 * * * *",
            "0-10,50-59 1,2,3 * * *",
            "5 * 2 * * *",
        ] {
            let both = |gap| Dst { gap, fold: Fold::Both };
            for dst in [Dst::KRON, Dst::OJS, both(Gap::Skip), both(Gap::After)] {
                let schedule = Expr::parse(line, Dialect::Ojs).unwrap().compile(&zone, dst).unwrap();
                for start in ["2026-03-01T00:00:07Z", "2026-09-25T11:59:59Z"] {
                    let start: Timestamp = start.parse().unwrap();
                    let searched = std::iter::successors(Some(start), |at| schedule.next_after(*at)).skip(1);
                    let end = start + jiff::SignedDuration::from_hours(45 * 24);
                    let mut listed = schedule.occurrences_after(start);
                    for expected in searched.take_while(|at| *at < end) {
                        assert_eq!(listed.next(), Some(expected), "{line} in {name}, {dst}");
                    }
                }
            }
        }
    }
}

/// That `parse(print(x)) == x` is part of the first test; here the oracle reads the canonical form.
#[test]
fn the_canonical_form_means_the_same() {
    let (seed, zones) = (seed(), zones());
    for number in 0..CASES_FEW {
        let case = Case::random(&mut Random::of_case(seed, number), &zones);
        let canonical = Expr::parse(&case.text, case.dialect).unwrap().to_string();
        let next = |text: &str| {
            let oracle = Oracle::new(text, &case.zone.jiff, &case.dst.to_string());
            let first = oracle.next_after(floor(case.start));
            (first, first.and_then(|at| oracle.next_after(at)))
        };
        assert_eq!(next(&case.text), next(&canonical), "seed {seed}, case {number}: {case}");
    }
}

#[test]
fn every_so_many_days_agrees_with_the_oracle() {
    let (seed, zones) = (seed(), zones());
    for number in 0..CASES_FEW {
        let random = &mut Random::of_case(seed, number);
        let zone = random.pick(&zones);
        let (gap, fold) = (*random.pick(&[Gap::After, Gap::Skip]), *random.pick(&[Fold::Auto, Fold::Both]));
        let dst = Dst { gap, fold };
        let longest = if random.percent(80) { 14 } else { 366 };
        let days = random.within(1, longest);
        let phase = random.within(0, days - 1);
        let latest = if random.percent(80) { 4 * 60 } else { 24 * 60 - 1 };
        let second = random.within(0, latest) * 60;
        let oracle = Oracle::every_days(days, phase, second, &zone.jiff, &dst.to_string());
        let clock = time(0, 0, 0, 0) + SignedDuration::from_secs(second);
        let every = EveryDays::new(days.try_into().unwrap(), phase.try_into().unwrap(), clock).unwrap();
        let start = instant(random, &zone.jiff);
        if let Err(disagreement) = answers(&every.compile(&zone.kron, dst), &oracle, start) {
            panic!("seed {seed}, case {number}: {every:?} {} {dst} {start}\n{disagreement}", zone.name);
        }
    }
}

#[test]
fn intervals_are_counted_from_their_anchor() {
    let seed = seed();
    for number in 0..CASES_FEW {
        let random = &mut Random::of_case(seed, number);
        let length = match random.within(1, 3) {
            1 => random.within(1, 5_000_000),
            2 => random.within(1, 5_000) * 1_000_000,
            _ => random.within(1, 100_000) * 1_000_000_000,
        };
        let every = format!("@every {}", Duration::from_nanos(length));
        let schedule = Expr::parse(&every, Dialect::Ojs).unwrap().compile(&Zone::utc(), Dst::OJS).unwrap();
        let anchor = Timestamp::from_second(random.within(0, 4_000_000_000)).unwrap();
        let schedule = schedule.anchored_at(anchor);
        let start = anchor + SignedDuration::from_nanos(random.within(-2 * length, 50 * length));

        let step = SignedDuration::from_nanos(length);
        let mut next = anchor + step;
        let mut prev = None;
        while next <= start {
            prev = Some(next);
            next += step;
        }
        let answers = (schedule.prev_at_or_before(start), schedule.next_after(start));
        assert_eq!(answers, (prev, Some(next)), "seed {seed}, case {number}: {every} {anchor} {start}");
    }
}

#[test]
fn every_zone_shows_the_time_that_jiff_shows() {
    let seed = seed();
    for (number, zone) in (0..).zip(zones()) {
        let random = &mut Random::of_case(seed, number);
        let mut instants: Vec<Timestamp> = (0..500).map(|_| instant(random, &zone.jiff)).collect();
        // Every change up to 2037, and one in seven of those that rules make up to the year 2600.
        let changes = zone.jiff.following(Timestamp::UNIX_EPOCH).map(|change| change.timestamp());
        let listed = timestamp(2_145_916_800);
        let end = timestamp(19_880_899_200);
        for (i, change) in changes.take_while(|change| *change < end).enumerate() {
            if change < listed || i % 7 == 0 {
                instants.extend([-1, 0, 1].map(|second| change + SignedDuration::from_secs(second)));
            }
        }
        for at in instants.into_iter().filter(|at| *at >= Timestamp::UNIX_EPOCH) {
            assert_eq!(zone.kron.offset_at(at), zone.jiff.to_offset(at), "{} at {at}", zone.name);
            assert_eq!(zone.kron.to_civil(at), zone.jiff.to_datetime(at), "{} at {at}", zone.name);
        }
    }
}

/// The ends of jiff's time lie outside Kron's, or nearly so, and are no trouble.
#[test]
fn any_instant_may_be_asked_about() {
    for name in ["UTC", "Etc/GMT+12", "Pacific/Kiritimati", "America/New_York", "Africa/Monrovia"] {
        let zone = NamedZone::get(name);
        let schedule =
            Expr::parse("* * * * * *", Dialect::Ojs).unwrap().compile(&zone.kron, Dst::POSIX).unwrap();
        let first = Timestamp::UNIX_EPOCH;
        let last = timestamp(LAST);
        assert_eq!(schedule.next_after(Timestamp::MIN), Some(first), "{name}");
        assert_eq!(schedule.next_after(Timestamp::MAX), None, "{name}");
        assert_eq!(schedule.prev_at_or_before(Timestamp::MIN), None, "{name}");
        assert_eq!(schedule.prev_at_or_before(Timestamp::MAX), Some(last), "{name}");
        assert!(!schedule.matches(Timestamp::MIN) && !schedule.matches(Timestamp::MAX), "{name}");
        assert!(schedule.matches(first) && schedule.matches(last), "{name}");
        assert_eq!(zone.kron.to_civil(Timestamp::MAX), zone.jiff.to_datetime(Timestamp::MAX), "{name}");
        let changes = schedule.skipped_between(Timestamp::MIN, Timestamp::MAX).count();
        let forward = zone.jiff.following(first).filter(|change| {
            change.offset() > zone.jiff.to_offset(change.timestamp() - SignedDuration::from_secs(1))
        });
        assert_eq!(changes, forward.count(), "{name}");
    }
}
