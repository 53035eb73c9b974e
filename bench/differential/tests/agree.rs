//! Where everyone means the same, everyone answers the same: UTC, and other zones away from changes
//! of clocks. The lines keep to what all peers read alike; `disagree.rs` has the rest.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kron_differential::{Peer, kron};

#[path = "../../../crates/kron-schedule/tests/it/generator.rs"]
#[expect(dead_code, reason = "only its random numbers are used here")]
mod generator;
use generator::{Random, seed};

const CASES: u64 = 10_000;
const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

#[test]
fn in_utc() {
    compare(&Peer::ALL, &["UTC"]);
}

#[test]
fn in_zones_away_from_changes_of_clocks() {
    let zones = [
        "America/New_York",
        "America/Sao_Paulo",
        "Asia/Kathmandu",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Europe/Paris",
        "Pacific/Chatham",
    ];
    compare(&[Peer::Croner, Peer::Cron], &zones);
}

fn compare(peers: &[Peer], zones: &[&str]) {
    let seed = seed();
    let mut compared = 0;
    for number in 0..CASES {
        let random = &mut Random::of_case(seed, number);
        let (peer, zone) = (*random.pick(peers), *random.pick(zones));
        let line = line(random, peer);
        let after = Timestamp::from_second(random.within(0, 2_082_758_400)).unwrap(); // to 2036
        let expected = kron(&line, zone, after);
        if near_a_change(zone, after, expected) {
            continue;
        }
        let found = peer.next_after(&line, zone, after);
        assert_eq!(
            expected, found,
            "seed {seed}, case {number}: {peer:?} on `{line}` in {zone} after {after}"
        );
        compared += 1;
    }
    assert!(compared > CASES / 4, "only {compared} cases were compared");
}

/// Whether clocks change anywhere near the question or the answer.
fn near_a_change(zone: &str, after: Timestamp, next: Option<Timestamp>) -> bool {
    let zone = TimeZone::get(zone).unwrap();
    let (Some(next), Ok(before)) = (next, after.checked_sub(TWO_DAYS)) else {
        return true;
    };
    zone.following(before).next().is_some_and(|change| change.timestamp() < next + TWO_DAYS)
}

fn line(random: &mut Random, peer: Peer) -> String {
    let (minute, hour) = (field(random, 40, 0, 59), field(random, 40, 0, 23));
    let month = field(random, 80, 1, 12);
    let mut day = field(random, 60, 1, 28);
    let mut weekday = weekdays(random);
    // A step in one day field is a restriction to Kron and none to others.
    if day.starts_with("*/") {
        weekday = "*".into();
    }
    // cron wants both days where the others want either.
    if peer == Peer::Cron && weekday != "*" {
        day = "*".into();
    }
    format!("{minute} {hour} {day} {month} {weekday}")
}

fn field(random: &mut Random, star: i64, min: i64, max: i64) -> String {
    let range = |random: &mut Random| {
        let from = random.within(min, max - 1);
        (from, random.within(from + 1, max))
    };
    match random.within(1, 5) {
        _ if random.percent(star) => "*".into(),
        1 => format!("*/{}", random.within(2, (max - 1).min(20))),
        2 => {
            let (from, to) = range(random);
            format!("{from}-{to}")
        }
        3 => {
            let (from, to) = range(random);
            format!("{from}-{to}/{}", random.within(1, to - from))
        }
        4 => format!("{},{}", random.within(min, max), random.within(min, max)),
        _ => random.within(min, max).to_string(),
    }
}

/// By name: to cron and saffron Sunday is 1.
fn weekdays(random: &mut Random) -> String {
    let lines = ["*", "*", "*", "MON", "SUN", "MON-FRI", "TUE,THU", "SAT"];
    (*random.pick(&lines)).into()
}
