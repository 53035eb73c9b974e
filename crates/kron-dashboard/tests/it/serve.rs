//! The small server, and whoever does not keep to HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use kron_dashboard::serve::{Changing, serve};
use kron_dashboard::{Dashboard, Guard};

use crate::board::{Small, job};

impl Changing for Small {
    fn changed(&self, seen: Option<u64>, _: Duration) -> u64 {
        seen.map_or(1, |seen| seen + 1)
    }
}

fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let dashboard = Dashboard::new(Guard::new(address.port(), []));
    thread::spawn(move || serve(&listener, dashboard, Small::new(vec![job("a", "0 * * * *", "UTC", "0s")])));
    address
}

fn say(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // Who is refused early may not be heard out.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn requests_are_answered_and_broken_ones_refused() {
    let address = start();
    let host = format!("Host: localhost:{}\r\n", address.port());
    let asked = |head: &str, body: &str| say(address, format!("{head}{host}{body}").as_bytes());
    let page = asked("GET /dashboard/ HTTP/1.1\r\n", "\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("</html>\n"), "{page}");
    assert!(asked("GET / HTTP/1.1\r\n", "\r\n").contains("location: /dashboard/\r\n"));
    assert!(asked("HEAD /dashboard/ HTTP/1.1\r\n", "\r\n").ends_with("\r\n\r\n"));
    let act = "Content-Type: application/json\r\nContent-Length: 23\r\n\r\n{\"act\":\"run\",\"job\":\"a\"}";
    assert!(asked("POST /dashboard/api/act HTTP/1.1\r\n", act).ends_with("{\"done\":\"done\"}"));
    for (request, status) in [
        ("\u{16}\u{3}\u{1} nonsense\r\n\r\n".to_owned(), 400),
        (format!("GET /dashboard/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100)), 400),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000)), 431),
        (format!("POST /dashboard/api/act HTTP/1.1\r\n{host}Content-Length: 9999999\r\n\r\n"), 413),
        (format!("POST /dashboard/api/act HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n"), 400),
        (
            format!(
                "POST /dashboard/api/act HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"
            ),
            400,
        ),
        (format!("POST /dashboard/api/act HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n"), 411),
        ("GET /dashboard/ HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(), 421),
    ] {
        let answer = say(address, request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.80}: {answer:.200}");
    }
}

#[test]
fn whoever_is_silent_keeps_nobody_else_waiting() {
    let address = start();
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let host = format!("Host: localhost:{}\r\n\r\n", address.port());
    assert!(
        say(address, format!("GET /dashboard/ HTTP/1.1\r\n{host}").as_bytes()).starts_with("HTTP/1.1 200")
    );
    // Beyond that they are told to come back, and soon they may.
    let more: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(
        say(address, format!("GET /dashboard/ HTTP/1.1\r\n{host}").as_bytes()).starts_with("HTTP/1.1 503")
    );
    drop((silent, more));
    let mut answer = String::new();
    for _ in 0..600 {
        answer = say(address, format!("GET /dashboard/ HTTP/1.1\r\n{host}").as_bytes());
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
    }
    assert!(answer.starts_with("HTTP/1.1 200"));
}

#[test]
fn the_stream_tells_of_every_change() {
    let address = start();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!("GET /dashboard/api/live HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", address.port());
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = String::new();
    while !heard.contains("data: 3\n\n") {
        let mut part = [0; 4_096];
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    assert!(heard.contains("content-type: text/event-stream\r\n"));
    assert!(heard.contains("\r\n\r\nevent: changed\ndata: 1\n\n"));
}
