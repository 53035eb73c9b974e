//! Events: polled as JSON, and streamed with resumption.

use serde_json::{Value, json};

use super::server::{Home, Server, cron, list, text};

/// A server on which three jobs were pushed to one queue and two to another.
fn with_five() -> Server {
    let server = Server::new();
    for queue in ["one", "one", "one", "two", "two"] {
        server.push_to(queue, json!({}));
    }
    server
}

fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| text(&event["id"]).to_owned()).collect()
}

#[test]
fn events_are_polled_oldest_first_page_by_page() {
    let server = with_five();
    let all = ids(&server.events("*"));
    assert_eq!(all.len(), 5, "6.4: one job.enqueued each");
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 5, "6.4: ids are unique");

    let page = server.get("/ojs/v1/events?limit=2").is(200, "6.4");
    assert_eq!(ids(&list(&page["events"])), all[..2], "6.4: oldest first");
    assert_eq!(page["has_more"], true, "6.4: has_more");
    let page = server.get(&format!("/ojs/v1/events?after={}", all[1])).is(200, "6.4");
    assert_eq!(ids(&list(&page["events"])), all[2..], "6.4: after an id");
    assert_eq!(page["has_more"], false, "6.4: has_more");
    let cursor = text(&page["cursor"]).to_owned();
    let none =
        server.get(&format!("/ojs/v1/events?after={cursor}")).is(200, "6.4: the cursor can be given back");
    assert_eq!(none["events"], json!([]), "6.4: nothing new");
    server.push_to("one", json!({}));
    let one = server.get(&format!("/ojs/v1/events?after={cursor}")).is(200, "6.4");
    assert_eq!(list(&one["events"]).len(), 1, "6.4: what came since");
    server.get("/ojs/v1/events?limit=x").refused(400, "invalid_request", "1.5: a bad query");
}

#[test]
fn events_are_filtered() {
    let server = with_five();
    server.push(json!({"type": "other.kind", "args": [], "options": {"queue": "two"}}));
    server.fetch_one("one");
    server.register(cron("job", "* * * * *", json!({})));
    server.pass(60);
    let count =
        |query: &str| list(&server.get(&format!("/ojs/v1/events?{query}")).is(200, query)["events"]).len();
    assert_eq!(count("types=job.started"), 1, "6.4: types");
    assert_eq!(count("types=job.started,cron.triggered"), 2, "6.4: several types");
    assert_eq!(count("types=cron.*"), 1, "6.4: a trailing star");
    assert_eq!(count("types=job.enqueued&queues=two"), 3, "6.4: queues");
    assert_eq!(count("types=job.enqueued&queues=one,two"), 6, "6.4: several queues");
    assert_eq!(count("job_types=other.kind"), 1, "6.4: job_types");
    assert_eq!(count("types=nothing.known"), 0, "6.4: nothing is nothing");
}

#[test]
fn the_poll_is_json_unless_a_stream_is_asked_for() {
    let server = with_five();
    for accept in ["*/*", "application/json", "text/html, */*"] {
        let answer = server.send("GET", "/ojs/v1/events", &[("Accept", accept)], b"");
        assert_eq!(list(&answer.is(200, "C28: JSON poll")["events"]).len(), 5, "C28: with Accept {accept}");
    }
}

#[test]
fn a_stream_resumes_after_the_last_event_id_and_goes_on_live() {
    let server = with_five();
    let all = ids(&server.events("*"));
    let mut stream = server.stream("/ojs/v1/events", Some(&all[1]));
    for id in &all[2..] {
        let sent = stream.next().expect("6.4: replay after Last-Event-ID");
        assert_eq!((&sent.id, sent.event.as_str()), (id, "job.enqueued"), "6.4: id and event: {sent:?}");
        assert_eq!(sent.data["id"], **id, "6.4: the data is the event");
    }
    let new = server.push_to("one", json!({}));
    let sent = stream.next().expect("6.4: and then what happens");
    assert_eq!(
        (sent.event.as_str(), &sent.data["subject"]),
        ("job.enqueued", &json!(new)),
        "6.4: live: {sent:?}"
    );
    drop(stream);

    server.fetch_one("one");
    let mut again = server.stream("/ojs/v1/events", Some(&sent.id));
    let missed = again.next().expect("6.4: nothing is lost between two streams");
    assert_eq!(missed.event, "job.started", "6.4: nothing is lost between two streams: {missed:?}");
}

#[test]
fn a_stream_takes_the_filters_of_the_poll() {
    let server = Server::new();
    server.push_to("one", json!({}));
    let start = ids(&server.events("*"));
    let mut stream = server.stream("/ojs/v1/events?types=cron.*", Some(&start[0]));
    server.register(cron("job", "* * * * *", json!({})));
    server.push_to("one", json!({}));
    server.pass(60);
    let sent = stream.next().expect("6.4: the cron event");
    assert_eq!(
        (sent.event.as_str(), &sent.data["data"]["cron_name"]),
        ("cron.triggered", &json!("job")),
        "6.4: {sent:?}"
    );
}

#[test]
fn the_sdk_subscribes_to_channels() {
    let server = Server::new();
    let job = server.push_to("one", json!({}));
    let mut of_job = server.stream(&format!("/ojs/v1/events/stream?channel=job:{job}"), None);
    let mut of_queue = server.stream("/ojs/v1/events/stream?channel=queue:one", None);
    server.push_to("two", json!({}));
    server.fetch_one("one");
    for stream in [&mut of_job, &mut of_queue] {
        let sent = stream.next().expect("9: the alias path");
        assert!(!sent.event.is_empty() && !sent.id.is_empty(), "9: event:, id:, data: lines: {sent:?}");
        assert!(sent.data.to_string().contains(&job), "9: only of this channel: {sent:?}");
    }
}

#[test]
fn a_job_has_a_stream_of_its_own() {
    let server = Server::new();
    let unknown = "/ojs/v1/jobs/019501a2-0000-7000-8000-000000000000/events";
    let answer = server.send("GET", unknown, &[("Accept", "text/event-stream")], b"");
    answer.refused(404, "not_found", "6.4: 404 as normal JSON");

    let id = server.push_to("one", json!({}));
    let mut stream = server.stream(&format!("/ojs/v1/jobs/{id}/events"), None);
    server.fetch_one("one");
    server.ack(&id).is(200, "ack");
    // Where many servers share a database, what follows from now on may begin with what happened a moment ago.
    let changes = stream.by_ref().map(|sent| sent.data["to"].clone()).filter(|to| *to != "available");
    let told: Vec<_> = changes.take(2).collect();
    assert_eq!(told, ["active", "completed"], "6.4: job.state_changed with from and to");
    assert_eq!(stream.next(), None, "6.4: it ends with its job");

    let ended: Vec<_> = server.stream(&format!("/ojs/v1/jobs/{id}/events"), None).collect();
    assert_eq!(ended.len(), 1, "6.4: terminal job: one event, then close: {ended:?}");
}

#[test]
fn events_survive_a_restart_with_their_ids() {
    let home = Home::new();
    let server = home.start(&["--test-mode"]);
    (0..3).for_each(|_| drop(server.push_to("one", json!({}))));
    let before = server.events("*");
    server.kill();
    let server = home.start(&["--test-mode"]);
    let after = server.events("job.enqueued");
    assert_eq!(after, before, "6.4: whoever resumes, resumes after a restart too");
    let rest: Vec<_> = server.stream("/ojs/v1/events", Some(text(&before[0]["id"]))).take(2).collect();
    assert_eq!(rest.len(), 2, "6.4: and so does a stream");
}
