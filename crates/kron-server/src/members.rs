//! JSON objects that are read by hand: every member is kept as it was written until somebody wants it.
//!
//! What a client sends is handed on exactly, so numbers stay the digits they were and nothing is lost in a
//! conversion that nobody asked for.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::refusal::Refusal;

/// JSON as it was written.
pub type Raw = Box<RawValue>;

/// The deepest nesting of arrays and objects that is taken.
pub const DEPTH_MAX: usize = 64;

/// An object, member by member. Of two members with one name the last counts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Members(pub BTreeMap<String, Raw>);

impl Members {
    /// Reads a request's body.
    ///
    /// # Errors
    ///
    /// If it is not a JSON object, or nested too deeply.
    pub fn read(body: &[u8]) -> Result<Members, Refusal> {
        let text = std::str::from_utf8(body)
            .map_err(|error| Refusal::payload(format!("expected UTF-8, but found {error}")))?;
        if text.trim().is_empty() {
            return Err(Refusal::payload("expected a JSON object, but the body is empty"));
        }
        if depth(text) > DEPTH_MAX {
            return Err(Refusal::payload(format!("expected at most {DEPTH_MAX} levels of nesting")));
        }
        if !text.trim_start().starts_with('{') {
            serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(not_json)?;
            return Err(Refusal::payload("expected a JSON object"));
        }
        serde_json::from_str(text).map_err(not_json)
    }

    /// The object that a member holds.
    ///
    /// # Errors
    ///
    /// If it is no object.
    pub fn of(raw: &RawValue, name: &str) -> Result<Members, Refusal> {
        serde_json::from_str(raw.get()).map_err(|_| wrong(name, "an object", raw))
    }

    /// Takes a member out. `null` counts as absent.
    pub fn take(&mut self, name: &str) -> Option<Raw> {
        self.0.remove(name).filter(|raw| raw.get() != "null")
    }

    /// Takes a member out and reads it.
    ///
    /// # Errors
    ///
    /// If it is there and is something else.
    pub fn take_as<T: DeserializeOwned>(&mut self, name: &str, expected: &str) -> Result<Option<T>, Refusal> {
        self.take(name).map(|raw| read_as(&raw, name, expected)).transpose()
    }

    /// Takes an object out.
    ///
    /// # Errors
    ///
    /// If it is there and is no object.
    pub fn take_members(&mut self, name: &str) -> Result<Option<Members>, Refusal> {
        self.take(name).map(|raw| Members::of(&raw, name)).transpose()
    }

    /// A member, as a value.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        self.0.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// Puts a member in.
    pub fn put(&mut self, name: &str, value: &impl Serialize) {
        self.0.insert(name.to_owned(), raw(value));
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads JSON as what is expected of it.
///
/// # Errors
///
/// If it is something else.
pub fn read_as<T: DeserializeOwned>(raw: &RawValue, name: &str, expected: &str) -> Result<T, Refusal> {
    serde_json::from_str(raw.get()).map_err(|_| wrong(name, expected, raw))
}

/// A value as JSON.
///
/// # Panics
///
/// Never for what this crate serializes: strings, numbers, and maps with strings as keys.
#[must_use]
pub fn raw(value: &impl Serialize) -> Raw {
    serde_json::value::to_raw_value(value).expect("strings, numbers and maps of them are JSON")
}

/// The refusal of a member that is something else than expected.
#[must_use]
pub fn wrong(name: &str, expected: &str, found: &RawValue) -> Refusal {
    Refusal::request(format!("expected {expected} in `{name}`, but found {}", excerpt(found.get())))
        .field(name)
}

/// The most characters of a mistake that are repeated in a message.
const EXCERPT_CHARS_MAX: usize = 60;

/// What was written, short enough to be part of a sentence.
#[must_use]
pub fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(EXCERPT_CHARS_MAX).map(visible).collect();
    if text.chars().nth(EXCERPT_CHARS_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn not_json(error: serde_json::Error) -> Refusal {
    Refusal::payload(format!("expected JSON, but {error}"))
}

/// How deeply arrays and objects are nested, as far as brackets tell.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_an_object_and_nothing_else() {
        assert!(Members::read(br#"{"a":1e400,"a":2}"#).unwrap().0["a"].get() == "2");
        for (body, message) in [
            (&b""[..], "expected a JSON object, but the body is empty"),
            (b"[1]", "expected a JSON object"),
            (b"{", "expected JSON, but EOF while parsing an object at line 1 column 1"),
            (b"\xff{}", "expected UTF-8, but found invalid utf-8 sequence of 1 bytes from index 0"),
        ] {
            assert_eq!(Members::read(body).unwrap_err().message, message);
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(
            Members::read(deep.as_bytes()).unwrap_err().message,
            "expected at most 64 levels of nesting"
        );
        let quoted = format!(r#"{{"a":"{}\""}}"#, "[".repeat(100));
        assert!(Members::read(quoted.as_bytes()).is_ok());
    }
}
