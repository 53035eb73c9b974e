//! Many cron jobs that are registered and not due.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::figures::load;
use crate::postgres::Place;
use crate::server::Server;

const REGISTERED: usize = 1_000_000;

/// For how long nothing happens, in seconds, unless KRON_BENCH_IDLE says otherwise.
const SECONDS: u64 = 60;

/// How long to wait for the database to have ended what it does of itself after so many rows.
const SETTLE: Duration = Duration::from_secs(20);

pub fn measure(binary: &Path, place: &Place) {
    let seconds = std::env::var("KRON_BENCH_IDLE").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    println!("\nprocessor time of {seconds} s in which nothing is due");
    let url = place.create("idle");
    let server = Server::start_on(binary, Some(&url));
    let one = json!({"name": "idle-0", "cron": "0 0 1 1 *", "timezone": "Europe/Paris", "type": "report.make", "args": [0]});
    Client::new(&server.address).post("/ojs/v1/cron", &one.to_string());
    wait(&server, place, 1, seconds);
    // As the server would write them, and sooner than it could be asked to.
    place.sql(
        "idle",
        &format!(
            "INSERT INTO crons SELECT 'idle-' || n, enabled, next_look + n % 1000000, replace(body, '\"idle-0\"', \
             '\"idle-' || n || '\"') FROM crons, generate_series(1, {}) AS n",
            REGISTERED - 1
        ),
    );
    place.sql("idle", "VACUUM ANALYZE crons");
    std::thread::sleep(SETTLE);
    wait(&server, place, REGISTERED, seconds);
    for sql in [
        "SELECT body FROM crons WHERE next_look <= 1000000000 ORDER BY next_look, name LIMIT 500 FOR UPDATE",
        "SELECT min(next_look) FROM crons WHERE next_look IS NOT NULL",
    ] {
        println!("\n{sql}");
        print!("{}", place.sql("idle", &format!("EXPLAIN ANALYZE {sql}")));
    }
}

fn wait(server: &Server, place: &Place, registered: usize, seconds: u64) {
    let (before, database) = (server.cpu(), place.cpu());
    std::thread::sleep(Duration::from_secs(seconds));
    println!(
        "{registered:>9} registered: the server {:.2} s, PostgreSQL {:.2} s; memory of the server {} MB (load {})",
        server.cpu() - before,
        place.cpu() - database,
        server.memory().1,
        load()
    );
}
