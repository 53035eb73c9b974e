//! A small HTTP server of threads, for programs that have none: one request for each connection.
//!
//! Everything is bounded: how many connections, how long a head and a body may take and be, how many listen to the
//! stream. Whoever is slow or silent only keeps one of few seats for a few seconds.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::board::{Board, Refused};
use crate::request::{Reply, Request, Response};
use crate::router::{Dashboard, frame};

/// The most connections at once, and how many of them may listen to the stream.
const CONNECTIONS_MAX: usize = 64;
const LISTENERS_MAX: usize = 24;

/// The longest head, the most headers, and the longest body.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
const BODY_BYTES_MAX: usize = 1 << 20;

/// How long a request may take to come, and an answer to be taken.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// After how much silence the stream says that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Something that says when it has changed.
pub trait Changing {
    /// The number of the latest change, as soon as it is not that one, or after so long.
    fn changed(&self, seen: Option<u64>, within: Duration) -> u64;
}

/// Serves for as long as the listener does.
pub fn serve<B: Board + Changing + Send + Sync + 'static>(
    listener: &TcpListener,
    dashboard: Dashboard,
    board: B,
) {
    let served = Arc::new((dashboard, board));
    let (connections, listeners) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let Some(seat) = Seat::take(&connections, CONNECTIONS_MAX) else {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let refused = Refused::new(503, "busy", "too many are asking at once").hint("try again");
            let _ = write(&stream, &Response::refused(&refused));
            continue;
        };
        let (served, listeners) = (Arc::clone(&served), Arc::clone(&listeners));
        // Without a thread the connection is dropped, and the browser asks again.
        let _ = thread::Builder::new().spawn(move || {
            let _seat = seat;
            let (dashboard, board) = &*served;
            let _ = attend(&stream, dashboard, board, &listeners);
        });
    }
}

/// One of a bounded number.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Seat> {
        if taken.fetch_add(1, Ordering::AcqRel) < most {
            return Some(Seat(Arc::clone(taken)));
        }
        taken.fetch_sub(1, Ordering::AcqRel);
        None
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn attend<B: Board + Changing>(
    stream: &TcpStream,
    dashboard: &Dashboard,
    board: &B,
    listeners: &Arc<AtomicUsize>,
) -> io::Result<()> {
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.set_nodelay(true)?;
    let request = match read(stream)? {
        Ok(request) => request,
        Err(refused) => return write(stream, &Response::refused(&refused)),
    };
    match dashboard.answer(board, &request) {
        Reply::Whole(response) => write(stream, &response),
        Reply::Live => match Seat::take(listeners, LISTENERS_MAX) {
            Some(_seat) => live(stream, board),
            None => {
                let refused = Refused::new(503, "busy", "too many pages are open").hint("close some");
                write(stream, &Response::refused(&refused))
            }
        },
    }
}

/// When something began, to bound how long it takes.
#[expect(clippy::disallowed_methods, reason = "how long a connection lasts is no matter of schedules")]
fn instant() -> Instant {
    Instant::now()
}

/// Reads a request, or says what is wrong with it.
fn read(mut stream: &TcpStream) -> io::Result<Result<Request, Refused>> {
    let wrong = |status, message: &str| Ok(Err(Refused::new(status, "wrong", message)));
    let until = instant() + REQUEST_WITHIN;
    let mut bytes = Vec::new();
    let mut more = |bytes: &mut Vec<u8>| -> io::Result<usize> {
        let left = until.saturating_duration_since(instant()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        let mut part = [0; 8 * 1024];
        let read = stream.read(&mut part)?;
        bytes.extend_from_slice(&part[..read]);
        if instant() >= until { Err(io::ErrorKind::TimedOut.into()) } else { Ok(read) }
    };
    let (mut request, head_bytes, length) = loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(&bytes) {
            Ok(httparse::Status::Complete(head_bytes)) if head_bytes <= HEAD_BYTES_MAX => {
                let request = request_of(&head);
                if request.header("transfer-encoding").is_some() {
                    return wrong(411, "expected a Content-Length");
                }
                let length = match request.header("content-length").map(str::parse::<usize>) {
                    None if request.count("content-length") > 0 => {
                        return wrong(400, "expected one Content-Length");
                    }
                    None => 0,
                    Some(Ok(length)) if length <= BODY_BYTES_MAX => length,
                    Some(Ok(_)) => return wrong(413, "the body is too large"),
                    Some(Err(_)) => return wrong(400, "expected a number in Content-Length"),
                };
                break (request, head_bytes, length);
            }
            Ok(httparse::Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => {
                if more(&mut bytes)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(_) => return wrong(431, "the head of the request is too large"),
            Err(_) => return wrong(400, "expected an HTTP request"),
        }
    };
    while bytes.len() < head_bytes + length {
        if more(&mut bytes)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    request.body = bytes[head_bytes..head_bytes + length].to_vec();
    Ok(Ok(request))
}

fn request_of(head: &httparse::Request<'_, '_>) -> Request {
    let target = head.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |header: &httparse::Header<'_>| {
        (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned())
    };
    Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: head.headers.iter().map(header).collect(),
        body: Vec::new(),
    }
}

fn write(mut stream: &TcpStream, response: &Response) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, words(response.status));
    for (name, value) in response.headers() {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", response.body.len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(&response.body)?;
    stream.flush()
}

fn words(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        304 => "Not Modified",
        403 => "Forbidden",
        404 => "Not Found",
        421 => "Misdirected Request",
        503 => "Service Unavailable",
        status if status < 500 => "Refused",
        _ => "Failed",
    }
}

fn live(mut stream: &TcpStream, board: &impl Changing) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\
                x-content-type-options: nosniff\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let mut seen = None;
    loop {
        let revision = board.changed(seen, KEEP_ALIVE);
        // Who has gone is noticed when nobody takes what is sent.
        if seen == Some(revision) {
            stream.write_all(b": still here\n\n")?;
        } else {
            stream.write_all(frame(revision).as_bytes())?;
        }
        stream.flush()?;
        seen = Some(revision);
    }
}
