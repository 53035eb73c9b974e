//! Forward and backward searches agree, whatever the expression, the zone, the policy and the start.
//!
//! Input: a byte for the zone, one for dialect and policy, five for the start, then the expression.
#![no_main]

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kron_schedule::{Count, Dialect, Dst, Expr, Fold, Gap, Schedule, Verdict, Zone};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((schedule, start)) = read(data) else {
        return Corpus::Reject;
    };
    agrees(&schedule, start);
    Corpus::Keep
});

fn read(data: &[u8]) -> Option<(Schedule, Timestamp)> {
    let (&[zone, how, a, b, c, d, e], text) = data.split_first_chunk()?;
    let start = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]) % SECONDS;
    let start = Timestamp::from_second(start.try_into().ok()?).ok()?;

    let how = usize::from(how);
    let dialect = Dialect::ALL[how % 3];
    let gap = [Gap::Skip, Gap::After][how / 3 % 2];
    let fold = [Fold::First, Fold::Both, Fold::Auto][how / 6 % 3];

    let zone = &ZONES[usize::from(zone) % ZONES.len()];
    let expr = Expr::parse(str::from_utf8(text).ok()?, dialect).ok()?;
    Some((expr.compile(zone, Dst { gap, fold }).ok()?, start))
}

fn agrees(schedule: &Schedule, start: Timestamp) {
    let before = schedule.prev_at_or_before(start);
    if let Some(before) = before {
        assert!(before <= start);
        assert!(schedule.matches(before));
        assert!(schedule.next_after(before).is_none_or(|next| next > start), "one was passed over");
    }
    let Some(next) = schedule.next_after(start) else {
        assert_eq!(schedule.prev_at_or_before(Timestamp::MAX), before, "the search ended too early");
        return;
    };
    assert!(next > start);
    assert!(schedule.matches(next));
    assert_eq!(schedule.prev_at_or_before(next), Some(next));
    let instant_before = next - SignedDuration::from_nanos(1);
    assert_eq!(schedule.prev_at_or_before(instant_before), before, "one lies between");
    assert_eq!(schedule.next_after(instant_before), Some(next));
    assert_eq!(schedule.count_between(start, next, 2), Count::Exactly(1));
    for at in [start, instant_before, next] {
        let explanation = schedule.explain(at);
        let occurs = matches!(explanation.verdict(), Verdict::Occurs | Verdict::AfterGap);
        assert_eq!(occurs, schedule.matches(at), "{explanation}");
        let unmatched = explanation.verdict() == Verdict::Unmatched;
        assert!(!unmatched || explanation.parts().iter().any(|part| !part.matches()), "{explanation}");
    }
    assert!(schedule.skipped_between(start, next).all(|gap| gap.times().next().is_some()));
}

/// The starts: from 1970 to the end of the year 9999, as far as jiff can tell it.
const SECONDS: u64 = 253_402_207_201;

/// One zone of each kind: no changes, northern, southern, half an hour, negative in winter, a day
/// left out, changes that stopped, changes by decree, and an offset beside the minute.
static ZONES: LazyLock<Vec<Zone>> = LazyLock::new(|| {
    let names = [
        "UTC",
        "Africa/Casablanca",
        "Africa/Monrovia",
        "America/New_York",
        "America/Sao_Paulo",
        "America/Scoresbysund",
        "Antarctica/Troll",
        "Asia/Gaza",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Europe/Dublin",
        "Europe/Paris",
        "Pacific/Apia",
        "Pacific/Chatham",
    ];
    let zone = |name| Zone::new(&TimeZone::get(name).expect("the database is bundled"));
    names.map(|name| zone(name).expect("the database is regular")).into()
});
