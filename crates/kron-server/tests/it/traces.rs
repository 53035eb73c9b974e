//! Traces: a collector hears of requests and looks at cron jobs, within the trace that a client began.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Home, MEDIA, cron, list, text};

/// A collector on a port of its own: it hands over every span that it is sent.
fn collector() -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length, mut asked) = (String::new(), 0, String::new());
            while stream.read_line(&mut line).unwrap() > 2 {
                if asked.is_empty() {
                    asked.clone_from(&line);
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            assert!(asked.starts_with("POST /v1/traces "), "{asked}");
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            stream
                .get_mut()
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
                .unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            for resource in list(&body["resourceSpans"]) {
                for scope in list(&resource["scopeSpans"]) {
                    list(&scope["spans"]).into_iter().for_each(|span| drop(tell.send(span)));
                }
            }
        }
    });
    (url, told)
}

fn attribute<'s>(span: &'s Value, key: &str) -> Option<&'s Value> {
    let found = span["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object()?.values().next()
}

#[test]
fn a_collector_hears_of_requests_and_of_cron_jobs() {
    let (url, spans) = collector();
    let home = Home::new();
    let mut command = home.command(&["--test-mode"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url);
    let server = home.start_by(command);
    server.clock("2026-02-12T20:15:20Z");
    server.register(cron("minutely", "* * * * *", json!({})));
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let headers = [("Content-Type", MEDIA), ("traceparent", &*format!("00-{trace}-b7ad6b7169203331-01"))];
    let job = json!({"type": "a.b", "args": []}).to_string();
    assert_eq!(server.send("POST", "/ojs/v1/jobs", &headers, job.as_bytes()).status, 201);
    server.clock("2026-02-12T20:16:00Z");

    let (mut pushed, mut looked) = (None, None);
    while pushed.is_none() || looked.is_none() {
        let span = spans.recv_timeout(Duration::from_secs(60)).expect("both are sent");
        let [begin, end] =
            ["startTimeUnixNano", "endTimeUnixNano"].map(|key| text(&span[key]).parse::<u64>().unwrap());
        assert!(0 < begin && begin <= end, "{span}");
        match text(&span["name"]) {
            "POST /ojs/v1/jobs" => pushed = Some(span),
            "cron.look" => looked = Some(span),
            _ => {}
        }
    }
    let (pushed, looked) = (pushed.unwrap(), looked.unwrap());
    assert_eq!((&pushed["traceId"], &pushed["parentSpanId"]), (&json!(trace), &json!("b7ad6b7169203331")));
    assert_eq!(
        (&pushed["kind"], attribute(&pushed, "http.response.status_code")),
        (&json!(2), Some(&json!("201")))
    );
    assert_eq!(attribute(&pushed, "http.route"), Some(&json!("/ojs/v1/jobs")));
    assert_ne!(looked["traceId"], json!(trace), "nobody asked for it");
    assert_eq!(text(&looked["spanId"]).len(), 16);
}
