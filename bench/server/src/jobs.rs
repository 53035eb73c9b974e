//! Jobs: pushed one by one and in batches, fetched and acknowledged.

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::client::Client;
use crate::figures::{head, line, together};
use crate::server::Server;

/// How many jobs each measurement is about, for each number of clients.
const JOBS: usize = 6_400;
const CLIENTS: [usize; 3] = [1, 16, 64];
const BATCH: usize = 100;

/// A job as applications have it: about 200 bytes of arguments.
pub fn job(queue: &str) -> Value {
    let text = "a message of some length, as applications send them, with a name and an address in it";
    json!({"type": "email.send", "args": ["somebody@example.org", {"subject": text, "body": text}], "options": {"queue": queue}})
}

pub fn measure(binary: &Path) {
    head("kron-server over HTTP");
    let server = Server::start(binary);
    let connect = || Client::new(&server.address);
    for clients in CLIENTS {
        let times = if clients == 1 { JOBS / 4 } else { JOBS } / clients;
        let queue = format!("q{clients}");
        let one = job(&queue).to_string();
        let (done, took, each) = together(clients, times, connect, |client| {
            client.post("/ojs/v1/jobs", &one);
            1
        });
        line(&format!("push, {clients} clients"), done, took, each);

        let ids = Mutex::new(Vec::new());
        let fetch = json!({"queues": [queue], "worker_id": "bench"}).to_string();
        let (done, took, each) = together(clients, times, connect, |client| {
            let answer: Value =
                serde_json::from_slice(&client.post("/ojs/v1/workers/fetch", &fetch)).unwrap();
            ids.lock().unwrap().push(answer["job"]["id"].as_str().unwrap().to_owned());
            1
        });
        line(&format!("fetch, {clients} clients"), done, took, each);

        let (done, took, each) = together(clients, times, connect, |client| {
            let id = ids.lock().unwrap().pop().unwrap();
            client.post("/ojs/v1/workers/ack", &json!({"job_id": id}).to_string());
            1
        });
        line(&format!("ack, {clients} clients"), done, took, each);

        let batch = json!({"jobs": vec![job(&queue); BATCH]}).to_string();
        let (done, took, each) =
            together(clients, JOBS.div_ceil(BATCH).div_ceil(clients).max(2), connect, |client| {
                client.post("/ojs/v1/jobs/batch", &batch);
                BATCH
            });
        line(&format!("push of {BATCH} at once, {clients} clients"), done, took, each);
    }
    println!("most memory {} MB, {:.1} s of processor time", server.memory().0, server.cpu());
}
