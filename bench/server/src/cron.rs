//! Many cron jobs registered, and many of them due in one second.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::client::Client;
use crate::figures::{load, percentile, show, together};
use crate::server::Server;

const REGISTERED: usize = 100_000;
const DUE: usize = 10_000;
const CLIENTS: usize = 16;

/// How long before they are due the last of them must be registered.
const LEAD: u64 = 8;

pub fn measure(binary: &Path) {
    println!("\n{REGISTERED} cron jobs registered, {DUE} of them due in one second");
    let server = Server::start(binary);
    let number = std::sync::atomic::AtomicUsize::new(0);
    let register = |count: usize, expression: &(dyn Fn(usize) -> String + Sync)| {
        let connect = || Client::new(&server.address);
        let (done, took, _) = together(CLIENTS, count / CLIENTS, connect, |client| {
            let n = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let body = json!({
                "name": format!("job-{n:06}"), "cron": expression(n), "timezone": "Europe/Paris",
                "type": "report.make", "args": [n, "quarterly"], "options": {"queue": "reports"},
            });
            client.post("/ojs/v1/cron", &body.to_string());
            1
        });
        println!(
            "registered {done} in {} ({:.0} a second, load {})",
            show(took),
            done as f64 / took.as_secs_f64(),
            load()
        );
        took
    };
    let waiting = REGISTERED - DUE;
    let took = register(waiting, &|n| format!("{} {} {} 1 *", n % 60, n % 24, n % 28 + 1));
    // The others follow at about the same pace.
    let lead = (took.as_secs_f64() * DUE as f64 / waiting as f64 * 2.0) as u64 + LEAD;
    let due = now() + Duration::from_secs(lead);
    let due = Duration::from_secs(due.as_secs());
    let second = due.as_secs() % 86_400;
    // Paris is ahead of UTC by whole hours, and the date does not matter: a wildcard for the hour.
    let expression = format!("{} {} * * * *", second % 60, second / 60 % 60);
    register(DUE, &|_| expression.clone());
    assert!(now() < due, "it took too long to register them: they were due before");

    let before = server.cpu();
    let mut late = Vec::with_capacity(DUE);
    Client::new(&server.address).follow("/ojs/v1/events/stream?types=cron.triggered", |_| {
        late.push(now().saturating_sub(due));
        late.len() < DUE
    });
    late.sort_unstable();
    let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|part| show(percentile(&late, part)));
    println!(
        "told to a client after their second had begun: first {}, p50 {p50}, p90 {p90}, p99 {p99}, last {max} ({:.2} s of processor time, load {})",
        show(late[0]),
        server.cpu() - before,
        load(),
    );
    println!(
        "  {}",
        if late[DUE - 1] <= Duration::from_secs(2) { "within two seconds" } else { "NOT within two seconds" }
    );

    let began = Instant::now();
    let list = Client::new(&server.address).get("/ojs/v1/cron");
    println!(
        "listed as a whole: {} MB in {}; most memory of the server {} MB, now {} MB",
        list.len() >> 20,
        show(began.elapsed()),
        server.memory().0,
        server.memory().1
    );
    let began = Instant::now();
    Client::new(&server.address).get("/kron/v1/cron/job-090001/occurrences?limit=200");
    println!("the record of one of them: {}", show(began.elapsed()));
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}
