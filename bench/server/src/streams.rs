//! Many who follow events and never read them.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::client::Client;
use crate::figures::{head, line, together};
use crate::jobs::job;
use crate::server::Server;

const FOLLOWERS: usize = 10_000;

/// What all of them may cost, in MB.
const MEMORY_GOAL: u64 = 256;

pub fn measure(binary: &Path) {
    // Each is a file, here and in the server, which inherits what is allowed here.
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let server = Server::start(binary);
    head(&format!("{FOLLOWERS} who follow events and never read"));
    let before = server.memory().1;
    let began = Instant::now();
    let mut silent = Vec::with_capacity(FOLLOWERS);
    for _ in 0..FOLLOWERS {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request = format!(
            "GET /ojs/v1/events HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n",
            server.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        silent.push(stream);
    }
    println!("connected in {:.1} s", began.elapsed().as_secs_f64());
    let one = job("q").to_string();
    for round in 1..=3 {
        let (done, took, each) = together(
            16,
            200,
            || Client::new(&server.address),
            |client| {
                client.post("/ojs/v1/jobs", &one);
                1
            },
        );
        line(&format!("push, 16 clients, round {round}"), done, took, each);
    }
    let (done, took, each) = together(
        1,
        20,
        || Client::new(&server.address),
        |client| {
            client.get("/healthz");
            1
        },
    );
    line("health, 1 client", done, took, each);
    let (most, now) = server.memory();
    println!(
        "memory {before} MB before, {now} MB now, {most} MB at most ({:.1} KB for each); {:.1} s of processor time",
        (most - before) as f64 * 1_024.0 / FOLLOWERS as f64,
        server.cpu()
    );
    println!("  {} {MEMORY_GOAL} MB", if most <= MEMORY_GOAL { "within" } else { "NOT within" });
}
