//! Jobs and cron jobs on PostgreSQL, beside what the same PostgreSQL does bare and with a public job queue.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::Client;
use crate::figures::{head, line, load, show, together};
use crate::jobs::job;
use crate::postgres::Place;
use crate::server::Server;

const WORKERS: [usize; 3] = [1, 4, 16];

/// How many jobs each worker has.
const EACH: usize = 200;

/// For how long pgbench is asked to go on, in seconds.
const BARE_SECONDS: usize = 8;

/// How many cron jobs are due in one second, and how long before the last of them must be registered.
const DUE: usize = 2_000;
const LEAD: Duration = Duration::from_secs(5);

/// What came of one number of workers, each a second.
struct Rates {
    workers: usize,
    push: f64,
    work: f64,
    bare: f64,
    peer: Option<(f64, f64)>,
}

pub fn measure(binary: &Path, place: &Place) {
    let url = place.create("jobs");
    place.create("bare");
    place.create("peer");
    place.sql("bare", "CREATE TABLE rows (id text PRIMARY KEY, body text NOT NULL)");
    let server = Server::start_on(binary, Some(&url));
    head("kron-server on PostgreSQL, over HTTP");
    let mut all: Vec<Rates> = WORKERS.map(|workers| jobs(&server, workers)).into();
    println!("most memory {} MB, {:.1} s of processor time", server.memory().0, server.cpu());
    for rates in &mut all {
        rates.bare = bare(place, rates.workers);
        rates.peer = peer(place, rates.workers);
    }
    println!(
        "\n{:>7} {:>10} {:>14} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "workers", "push", "fetch and ack", "pgbench", "peer push", "peer work", "push/pgbench", "work/peer"
    );
    for Rates { workers, push, work, bare, peer } in &all {
        let (peer_push, peer_work) = peer.unwrap_or_default();
        println!(
            "{workers:>7} {push:>10.0} {work:>14.0} {bare:>10.0} {peer_push:>10.0} {peer_work:>10.0} {:>12.2} {:>12.2}",
            push / bare,
            if peer_work > 0.0 { work / peer_work } else { 0.0 },
        );
    }
    println!("pgbench: transactions of one row of 700 bytes. The peer is graphile-worker (load {})", load());
    crons(&server);
}

fn jobs(server: &Server, workers: usize) -> Rates {
    let queue = format!("q{workers}");
    let connect = || Client::new(&server.address);
    let one = job(&queue).to_string();
    let (done, pushing, each) = together(workers, EACH, connect, |client| {
        client.post("/ojs/v1/jobs", &one);
        1
    });
    line(&format!("push, {workers} workers"), done, pushing, each);
    let ids = Mutex::new(Vec::new());
    let fetch = json!({"queues": [queue], "worker_id": "bench"}).to_string();
    let (done, fetching, each) = together(workers, EACH, connect, |client| {
        // Others may have in hand what is left.
        loop {
            let answer: Value =
                serde_json::from_slice(&client.post("/ojs/v1/workers/fetch", &fetch)).unwrap();
            if let Some(id) = answer["job"]["id"].as_str() {
                ids.lock().unwrap().push(id.to_owned());
                return 1;
            }
        }
    });
    line(&format!("fetch, {workers} workers"), done, fetching, each);
    let (done, acking, each) = together(workers, EACH, connect, |client| {
        let id = ids.lock().unwrap().pop().unwrap();
        client.post("/ojs/v1/workers/ack", &json!({"job_id": id}).to_string());
        1
    });
    line(&format!("ack, {workers} workers"), done, acking, each);
    let rate = |took: Duration| done as f64 / took.as_secs_f64();
    Rates { workers, push: rate(pushing), work: rate(fetching + acking), bare: 0.0, peer: None }
}

/// Transactions a second that insert one row each, over so many connections.
fn bare(place: &Place, connections: usize) -> f64 {
    let script = tempfile::NamedTempFile::new().unwrap();
    let sql = "INSERT INTO rows VALUES (gen_random_uuid()::text, repeat('x', 700));\n";
    std::fs::write(script.path(), sql).unwrap();
    let (connections, seconds) = (connections.to_string(), BARE_SECONDS.to_string());
    let done = Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-c", &connections, "-j", &connections, "-T", &seconds, "-f"])
        .arg(script.path())
        .arg(place.url("bare"))
        .output()
        .expect("pgbench is a program of PostgreSQL");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.unwrap_or_else(|| panic!("{said}{}", String::from_utf8_lossy(&done.stderr)))
}

/// Jobs a second that a public job queue takes in and works off, if it is installed.
fn peer(place: &Place, workers: usize) -> Option<(f64, f64)> {
    let script = std::env::var("KRON_BENCH_PEER").ok()?;
    let (workers, each) = (workers.to_string(), EACH.to_string());
    let done = Command::new("node").args([&script, &place.url("peer"), &workers, &each]).output().ok()?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let rates: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(rates.len() == 2, "{said}{}", String::from_utf8_lossy(&done.stderr));
    Some((rates[0], rates[1]))
}

/// Cron jobs that are due in one second.
fn crons(server: &Server) {
    let due = now() + LEAD + Duration::from_secs(DUE as u64 / 100);
    let second = due.as_secs() % 86_400;
    let expression = format!("{} {} * * * *", second % 60, second / 60 % 60);
    let number = std::sync::atomic::AtomicUsize::new(0);
    let connect = || Client::new(&server.address);
    let (done, took, _) = together(16, DUE / 16, connect, |client| {
        let n = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let body =
            json!({"name": format!("job-{n:06}"), "cron": expression, "type": "report.make", "args": [n]});
        client.post("/ojs/v1/cron", &body.to_string());
        1
    });
    println!(
        "\nregistered {done} cron jobs in {} ({:.0} a second)",
        show(took),
        done as f64 / took.as_secs_f64()
    );
    assert!(now().as_secs() < due.as_secs(), "it took too long to register them: they were due before");
    let before = server.cpu();
    let mut first = None;
    let mut told = 0;
    Client::new(&server.address).follow("/ojs/v1/events/stream?types=cron.triggered", |_| {
        first.get_or_insert_with(Instant::now);
        told += 1;
        told < done
    });
    let (took, late) = (first.unwrap().elapsed(), now().saturating_sub(Duration::from_secs(due.as_secs())));
    println!(
        "{done} cron jobs of one second: {:.0} triggered a second, the last {} after it began ({:.2} s of processor time of the server, load {})",
        done as f64 / took.as_secs_f64(),
        show(late),
        server.cpu() - before,
        load()
    );
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}
