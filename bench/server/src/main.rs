//! How fast kron-server takes jobs in, hands them out and hears of their end, each made durable before it is answered;
//! how late 10,000 cron jobs of 100,000 are that are due in one second; and what 10,000 who follow events cost. On
//! PostgreSQL: the same of jobs, beside pgbench and a public job queue, and what 1,000,000 cron jobs cost that are not due.
//!
//! The server is a process of its own with its defaults, and its clients are threads that each keep one connection.

#![allow(clippy::disallowed_methods, reason = "time is what is measured")]

mod bare;
mod client;
mod cluster;
mod cron;
mod figures;
mod idle;
mod jobs;
mod peer;
mod postgres;
mod server;
mod streams;

use std::path::PathBuf;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let binary = PathBuf::from(arguments.next().expect("usage: kron-bench-server KRON-SERVER [PART]"));
    let part = arguments.next();
    // On PostgreSQL other things are asked.
    if let Some(place) = postgres::Place::given() {
        figures::machine();
        match part.as_deref() {
            Some("idle") => idle::measure(&binary, &place),
            _ => cluster::measure(&binary, &place),
        }
        return;
    }
    let chosen = |name: &str| part.as_deref().is_none_or(|part| part == name);
    figures::machine();
    if chosen("jobs") {
        jobs::measure(&binary);
        bare::measure();
        peer::measure();
    }
    if chosen("cron") {
        cron::measure(&binary);
    }
    if chosen("streams") {
        streams::measure(&binary);
    }
}
