//! Server-sent events as they are written on the wire.

use std::fmt::Write as _;
use std::time::Duration;

use hyper::body::Bytes;

/// What a stream says when it has nothing to say: a comment, which clients ignore.
pub const ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// An event of a kind, under an id if it has one.
#[must_use]
pub fn event(kind: &str, id: Option<&str>, data: &str) -> Bytes {
    let mut text = String::with_capacity(kind.len() + id.map_or(0, str::len) + data.len() + 32);
    let _ = writeln!(text, "event: {kind}");
    if let Some(id) = id {
        let _ = writeln!(text, "id: {id}");
    }
    // A line's end in the data would end the event, or begin another.
    for line in data.split(['\n', '\r']) {
        let _ = writeln!(text, "data: {line}");
    }
    text.push('\n');
    text.into()
}

/// When a client whose stream broke should come back.
#[must_use]
pub fn retry(after: Duration) -> Bytes {
    format!("retry: {}\n\n", after.as_millis()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_event_whatever_is_in_it() {
        assert_eq!(event("a.b", Some("evt_1"), "{}"), "event: a.b\nid: evt_1\ndata: {}\n\n");
        assert_eq!(
            event("a.b", None, "x\n\nid: y\r"),
            "event: a.b\ndata: x\ndata: \ndata: id: y\ndata: \n\n"
        );
        assert_eq!(retry(Duration::from_secs(3)), "retry: 3000\n\n");
    }
}
