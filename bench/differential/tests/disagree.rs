//! The disagreements we know of, each asserted to be still there: when a peer changes its mind, this
//! table should hear of it. Kron's side of every row is also in `kron-schedule`'s golden tables.

use jiff::Timestamp;
use kron_differential::Peer::{self, Cron, Croner, Saffron};
use kron_differential::kron;

/// Peer, line, zone, after, Kron's answer, the peer's answer.
type Row = (Peer, &'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const KNOWN: &[Row] = &[
    // Both day fields restricted: Kron runs on either, cron only on both.
    (Cron, "0 0 29 2 MON", "UTC", "2030-03-27T00:00Z", "2031-02-03T00:00Z", "2044-02-29T00:00Z"),
    // Sunday is 0 to Kron and 1 to cron and saffron.
    (Cron, "0 0 * * 1", "UTC", "2026-06-02T00:00Z", "2026-06-08T00:00Z", "2026-06-07T00:00Z"),
    (Saffron, "0 0 * * 1", "UTC", "2026-06-02T00:00Z", "2026-06-08T00:00Z", "2026-06-07T00:00Z"),
    // 2100 is no leap year, and cron's years end there.
    (Cron, "0 0 29 2 *", "UTC", "2096-02-29T00:00Z", "2104-02-29T00:00Z", "none"),
    // A time in the gap: Kron skips it (`gap=after` is croner's way), and says so.
    (Croner, "30 2 * * *", "America/New_York", "2026-03-07T12:00-05:00", "2026-03-09T02:30-04:00", "2026-03-08T03:00-04:00"),
    (Croner, "15 2 8 3 *", "America/New_York", "2026-03-07T12:00-05:00", "2027-03-08T02:15-05:00", "2026-03-08T03:00-04:00"),
    (Croner, "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00+10:30", "2026-10-05T02:15+11:00", "2026-10-04T02:30+11:00"),
    // A list of minutes is no interval to Kron, so the repeated hour counts once.
    (Croner, "15,45 1 * * *", "America/New_York", "2026-11-01T01:45-04:00", "2026-11-02T01:15-05:00", "2026-11-01T01:15-05:00"),
    // An interval runs through both passes of the repeated hour; cron leaves a hole of two hours.
    (Cron, "0 * * * *", "America/New_York", "2026-11-01T01:00-04:00", "2026-11-01T01:00-05:00", "2026-11-01T02:00-05:00"),
    (Cron, "*/30 1 * * *", "America/New_York", "2026-11-01T01:30-04:00", "2026-11-01T01:00-05:00", "2026-11-02T01:00-05:00"),
];

#[test]
fn known_disagreements_are_still_there() {
    let parse = |text: &str| (text != "none").then(|| text.parse::<Timestamp>().unwrap());
    for &(peer, line, zone, after, ours, theirs) in KNOWN {
        assert_ne!(ours, theirs, "not a disagreement: `{line}`");
        let after = parse(after).unwrap();
        assert_eq!(kron(line, zone, after), parse(ours), "Kron on `{line}` in {zone} after {after}");
        let found = peer.next_after(line, zone, after);
        assert_eq!(found, parse(theirs), "{peer:?} on `{line}` in {zone} after {after}");
    }
}

/// Where Kron's policy is set to croner's, even the gaps agree.
#[test]
fn croner_fills_gaps_as_gap_after_does() {
    use kron_schedule::{Dialect, Dst, Expr, Fold, Gap, Zone};
    let zone = Zone::new(&jiff::tz::TimeZone::get("America/New_York").unwrap()).unwrap();
    let dst = Dst { gap: Gap::After, fold: Fold::First };
    for line in ["30 2 * * *", "0 2 * * SUN", "15 2 8 3 *", "59 2 8 3 *"] {
        let schedule = Expr::parse(line, Dialect::Kron).unwrap().compile(&zone, dst).unwrap();
        let after = "2026-03-07T12:00-05:00".parse().unwrap();
        assert_eq!(schedule.next_after(after), Croner.next_after(line, "America/New_York", after), "{line}");
    }
}
