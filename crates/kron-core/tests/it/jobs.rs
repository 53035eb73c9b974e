//! Jobs for tests. Their schedules do not matter: decisions are asked for by nominal time.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kron_core::{Job, JobBuilder};
use kron_schedule::{Dialect, Dst, Expr, Zone};

pub(crate) fn zone(name: &str) -> Zone {
    Zone::new(&TimeZone::get(name).unwrap()).unwrap()
}

pub(crate) fn job(identity: &str, zone_name: &str) -> JobBuilder {
    let zone = zone(zone_name);
    let schedule = Expr::parse("0 0 * * *", Dialect::Kron).unwrap().compile(&zone, Dst::KRON).unwrap();
    Job::builder(identity, schedule, zone)
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}
