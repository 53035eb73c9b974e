//! Other cron crates behind one question: what comes next?

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use jiff::Timestamp;

/// A crate that Kron is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peer {
    /// The most complete one, and the most careful with changes of clocks.
    Croner,
    /// The most used one. Its expressions begin with seconds.
    Cron,
    /// The fastest one. It knows only UTC.
    Saffron,
}

impl Peer {
    pub const ALL: [Peer; 3] = [Peer::Croner, Peer::Cron, Peer::Saffron];

    /// The first occurrence of a five-field line after an instant.
    ///
    /// `None` stands for every way of not answering: refusing the line, or finding nothing.
    pub fn next_after(self, line: &str, zone: &str, after: Timestamp) -> Option<Timestamp> {
        let tz: Tz = zone.parse().expect("a zone that chrono-tz knows");
        let utc =
            DateTime::<Utc>::from_timestamp_nanos(i64::try_from(after.as_nanosecond()).expect("before 2262"));
        let local = utc.with_timezone(&tz);
        let next = match self {
            Peer::Croner => {
                let cron: croner::Cron = line.parse().ok()?;
                cron.find_next_occurrence(&local, false).ok()?.timestamp()
            }
            Peer::Cron => {
                let cron: cron::Schedule = format!("0 {line}").parse().ok()?;
                cron.after(&local).next()?.timestamp()
            }
            Peer::Saffron => {
                assert_eq!(zone, "UTC", "saffron knows no other");
                let cron: saffron::Cron = line.parse().ok()?;
                cron.next_after(utc)?.timestamp()
            }
        };
        Some(Timestamp::from_second(next).expect("within jiff's time"))
    }
}

/// Kron's answer, with its own policy, in the dialect that reads the most.
pub fn kron(line: &str, zone: &str, after: Timestamp) -> Option<Timestamp> {
    use kron_schedule::{Dialect, Dst, Expr, Zone};
    let zone = Zone::new(&jiff::tz::TimeZone::get(zone).expect("a known zone")).expect("an ordinary zone");
    Expr::parse(line, Dialect::Ojs).ok()?.compile(&zone, Dst::KRON).ok()?.next_after(after)
}
