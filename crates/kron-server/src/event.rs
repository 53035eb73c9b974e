//! What happened, for whoever wants to follow it.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::times::stamp;

/// Something that happened. The store gives it an id and a place in the order.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its word, such as `job.completed`.
    pub kind: &'static str,
    /// The job, queue, worker or cron job it is about.
    pub subject: String,
    /// The queue of that job.
    pub queue: Option<String>,
    /// The type of that job.
    pub job_type: Option<String>,
    /// When.
    pub time: Timestamp,
    /// The rest of it.
    pub data: Map<String, Value>,
}

/// Whether a kind is one of these, of which one may end with `*`. If there are none, every kind is.
#[must_use]
pub fn is_among(kind: &str, types: &[String]) -> bool {
    types.is_empty()
        || types.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(prefix) => kind.starts_with(prefix),
            None => wanted == kind,
        })
}

impl Event {
    /// Something about a job, a worker, a queue or a cron job.
    pub fn new(kind: &'static str, subject: impl Into<String>, time: Timestamp) -> Event {
        Event { kind, subject: subject.into(), queue: None, job_type: None, time, data: Map::new() }
    }

    /// The same, with a member in its data.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Event {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// As it is sent and stored, under an id.
    #[must_use]
    pub fn view<'e>(&'e self, id: &'e str, source: &'e str) -> View<'e> {
        let time = stamp(self.time);
        // The cron specification has other names for the same.
        let is_cron = self.kind.starts_with("cron.");
        View {
            specversion: "1.0",
            id,
            kind: self.kind,
            source,
            subject: &self.subject,
            event: is_cron.then_some(self.kind),
            timestamp: is_cron.then(|| time.clone()),
            time,
            data: &self.data,
        }
    }
}

/// An event as it is sent and stored.
#[derive(Debug, Serialize)]
pub struct View<'e> {
    specversion: &'static str,
    id: &'e str,
    #[serde(rename = "type")]
    kind: &'static str,
    source: &'e str,
    time: String,
    subject: &'e str,
    data: &'e Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
}
