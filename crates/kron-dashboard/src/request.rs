//! What comes in and what goes out, as values.

use std::borrow::Cow;

use serde::Serialize;

use crate::board::Refused;
use crate::guard::POLICY;

/// A request, as whatever HTTP server there is has read it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method, in capital letters.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// What stands behind the question mark.
    pub query: String,
    /// The headers, with their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The only header of that name. Two of them are none.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        found.next().filter(|_| found.next().is_none())
    }

    /// How many headers of that name there are.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(key, _)| key == name).count()
    }

    /// A parameter of the query; an empty one counts as absent.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.rev().find(|(key, _)| *key == name).map(|(_, value)| decode(value))?;
        (!found.is_empty()).then_some(found)
    }

    /// A whole number of the query.
    pub(crate) fn number(&self, name: &str) -> Result<Option<usize>, Refused> {
        let Some(text) = self.param(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Refused::wrong(name, "a whole number", &text))
    }

    /// A time of the query.
    pub(crate) fn time(&self, name: &str) -> Result<Option<jiff::Timestamp>, Refused> {
        let Some(text) = self.param(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Refused::wrong(name, "a time such as 2026-03-01T02:30:00Z", &text))
    }
}

/// What `%` and `+` stand for. What cannot be text becomes a question mark.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, tail @ ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                if let (Some(high), Some(low)) = (digit(high), digit(low)) {
                    bytes.push(high * 16 + low);
                    rest = tail;
                } else {
                    bytes.push(b'%');
                }
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// All of it.
    Whole(Response),
    /// A stream that tells when something has changed, for as long as somebody listens. Whoever serves it sends
    /// [`frame`](crate::frame)s.
    Live,
}

/// An answer that is complete.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// What its body is.
    pub content_type: &'static str,
    /// Its body.
    pub body: Cow<'static, [u8]>,
    /// Headers of its own.
    more: Vec<(&'static str, String)>,
}

impl Response {
    /// An answer of that type.
    pub(crate) fn new(content_type: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Response {
        Response { status: 200, content_type, body: body.into(), more: Vec::new() }
    }

    /// A value as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Response {
        let body = serde_json::to_vec(value).expect("views have texts for keys");
        Response::new("application/json", body)
    }

    /// A refusal.
    #[must_use]
    pub fn refused(refused: &Refused) -> Response {
        Response { status: refused.status, ..Response::json(refused) }
    }

    /// The same with a header more.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.more.push((name, value.into()));
        self
    }

    /// The same with another status.
    pub(crate) fn status(self, status: u16) -> Response {
        Response { status, ..self }
    }

    /// All of its headers, but for the length: nothing of the page may come from elsewhere, be framed, or be kept
    /// where it is not wanted.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("content-type", self.content_type.to_owned()),
            ("content-security-policy", POLICY.to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
            ("x-frame-options", "DENY".to_owned()),
            ("referrer-policy", "no-referrer".to_owned()),
            ("cross-origin-resource-policy", "same-origin".to_owned()),
            ("cross-origin-opener-policy", "same-origin".to_owned()),
        ];
        if !self.more.iter().any(|(name, _)| *name == "cache-control") {
            headers.push(("cache-control", "no-store".to_owned()));
        }
        headers.extend(self.more.iter().cloned());
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_it_was_meant() {
        let request =
            Request { query: "a=x%20y+z&b=%E2%82%AC&c=%zz%&d=&a=last".into(), ..Request::default() };
        assert_eq!(request.param("a").as_deref(), Some("last"));
        assert_eq!(request.param("b").as_deref(), Some("€"));
        assert_eq!(request.param("c").as_deref(), Some("%zz%"));
        assert_eq!(request.param("d"), None);
        assert_eq!(request.number("b").unwrap_err().message, "expected a whole number in `b`, but found `€`");
    }
}
