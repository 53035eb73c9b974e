use std::collections::BTreeSet;
use std::fs;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use kron_core::{Job, Ledger, Outcome, PeriodId, Reason, Record, Settled, Step, Watch, evaluate};
use krond::state::{Last, State};
use krond::wire;
use krontab::{Krontab, Source, Zones};
use serde_json::Value;

use super::daemon::World;

const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/Havana",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Africa/Cairo",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
];

/// Times of day, none of which begins with `*`.
const TIMES: [&str; 6] = ["30 2", "0 1,2,3", "15,45 0-23", "0 0", "59 23", "0-59/20 1-4"];

const REST: [&str; 6] = [
    "",
    "@win(after,90m)",
    "@win(around,3h)",
    "@win(after,10m) @dst(gap=after)",
    "@win(after,2h)",
    "@only(dow=MON-SAT) @win(after,45m)",
];

/// One number after another.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % u64::try_from(end).unwrap()).unwrap()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn hours(&mut self, end: usize) -> SignedDuration {
        SignedDuration::from_secs(i64::try_from(self.below(end * 3_600)).unwrap())
    }
}

/// A job that is watched for days while its zone is changed, and perhaps its times. No local time may run twice, and
/// once the zones are behind it, every one runs. `ledger` is how its memory is read.
fn live(seed: u64, zones: &Zones, ledger: fn(&State, &Job) -> Ledger) -> Result<usize, String> {
    let mut numbers = Numbers(seed);
    let (mut times, rest) = (numbers.pick(&TIMES), numbers.pick(&REST));
    let job = |times: &str, zone: &str| {
        let line = format!(
            "{times} * * * @tz({zone}) {rest} @policy(concurrency=allow,deadline=2h) name=x command=/bin/true"
        );
        let parsed = Krontab::parse(&line, &Source::new("/etc/krond.d/zones").unwrap(), zones);
        assert!(!parsed.has_errors(), "{line}: {:?}", parsed.problems);
        parsed.entries.into_iter().next().unwrap().job
    };
    let mut zone = numbers.pick(&ZONES);
    let mut current = job(times, zone);
    let mut now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    now += numbers.hours(365 * 24);
    let mut edits: Vec<Timestamp> = (0..=numbers.below(3)).map(|_| now + numbers.hours(60)).collect();
    edits.sort();
    let last_edit = *edits.last().unwrap();
    let end = last_edit + SignedDuration::from_hours(96);
    let (mut state, mut since) = (State::fenced(&current, PeriodId::new(now)), now);
    let mut executed: BTreeSet<DateTime> = BTreeSet::new();
    while now < end {
        let (steps, wake) = evaluate(&current, &ledger(&state, &current), &[], Watch { since, now });
        for step in steps {
            let Step::Record(record) = step else { continue };
            if let Record::Settled(Settled { decision, reason: Reason::Started, .. }) = &record {
                let civil = current.zone().to_civil(decision.nominal());
                if !executed.insert(civil) {
                    return Err(format!(
                        "seed {seed}: {civil} ran twice, at {now} in {zone}: {times} {rest}"
                    ));
                }
            }
            state.apply(&record, &current, None, now);
        }
        state.cap_history(1);
        let edit = edits.first().copied();
        now = [wake, edit, Some(end)].into_iter().flatten().filter(|at| *at > now).min().unwrap_or(end);
        if edit == Some(now) {
            edits.remove(0);
            zone = numbers.pick(&ZONES);
            times = if numbers.below(4) == 0 { numbers.pick(&TIMES) } else { times };
            (current, since) = (job(times, zone), now);
        }
    }
    // Zones lie at most 26 hours apart, and a window is at most three long.
    let settled = last_edit + SignedDuration::from_hours(30);
    for nominal in current.schedule().occurrences_after(settled) {
        if nominal > end - SignedDuration::from_hours(3) {
            break;
        }
        let civil = current.zone().to_civil(nominal);
        let can_run = kron_core::decide(&current, nominal).chosen().is_some();
        if can_run && !executed.contains(&civil) {
            return Err(format!("seed {seed}: {civil} in {zone} did not run: {times} {rest}"));
        }
    }
    Ok(executed.len())
}

#[test]
fn no_local_time_runs_twice_in_any_of_10_000_lives_with_other_zones() {
    let zones = Zones::bundled();
    let ran: usize = (0..10_000).map(|seed| live(seed, &zones, State::ledger_of).unwrap()).sum();
    assert!(ran > 100_000, "{ran}");
    // A memory that ignores what clocks showed is found out.
    let planted: fn(&State, &Job) -> Ledger = |state, _| state.ledger();
    let caught = (0..100).filter(|seed| live(*seed, &zones, planted).is_err()).count();
    assert!(caught > 20, "{caught}");
}

/// The job has run an hour ago, at a local time that comes again within a minute where its zone goes.
#[test]
fn an_edit_of_the_zone_runs_nothing_again_and_that_is_told() {
    let nominal = (krond::clock::now().second() + 65).div_euclid(60) * 60;
    let (hour, minute) = (nominal.div_euclid(3_600).rem_euclid(24), nominal.div_euclid(60).rem_euclid(60));
    let at = Timestamp::from_second(nominal).unwrap();
    let text = |zone: &str| {
        format!(
            "{minute} {hour} * * * @tz({zone}) @policy(deadline=1h) name=moved shell=true command=\"echo x >> DIR/moved\"\n\
             @every 1s @policy(deadline=1h) name=other shell=true command=\"echo $KRON_PERIOD_ID >> DIR/other\"\n"
        )
    };
    // What `Etc` calls GMT-1 is an hour ahead of UTC.
    let mut world = World::new(&text("Etc/GMT-1"));
    world.make_state();
    let period = PeriodId::new(Timestamp::from_second(nominal - 3_600).unwrap());
    let label = format!("{}[Etc/GMT-1]", at.strftime("%Y-%m-%dT%H:%M"));
    let state = State {
        last: Some(Last { period, outcome: Outcome::Executed, chosen: Some(period.nominal()) }),
        latest: Some(label.parse().unwrap()),
        ..State::new(world.identity("moved"))
    };
    fs::write(world.state_file("moved"), wire::encode(&state)).unwrap();
    world.start();
    assert_eq!(world.events("zone_changed", "moved"), Vec::<Value>::new());
    world.krontab(&text("UTC"));
    assert_eq!(world.ask(&["reload"]).code, 0);
    world.until("it is told", |world| !world.events("zone_changed", "moved").is_empty());
    let told = &world.events("zone_changed", "moved")[0];
    assert_eq!((&told["handled"], &told["until"]), (&label.clone().into(), &at.to_string().into()));
    let said = world.ask(&["why", "moved", "--at", &at.to_string()]);
    let why = "its local time has been handled, in the zone that the job had before";
    assert!(said.out.contains(why), "{} {}", said.out, said.err);
    // As little after a crash.
    world.crash();
    world.start();
    let after = Timestamp::from_second(nominal + 1).unwrap().to_string();
    world.until("its time is past", |world| world.lines("other").last().is_some_and(|id| *id > after));
    assert_eq!(world.lines("moved"), Vec::<String>::new());
    assert_eq!(world.state_of("moved")["LatestCivilTime"], label);
    world.stop();
}
