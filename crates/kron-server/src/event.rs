//! What happened, for whoever wants to follow it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

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
    pub fn view(&self, id: &str, source: &str) -> Value {
        let time = stamp(self.time);
        let mut view = json!({
            "specversion": "1.0",
            "id": id,
            "type": self.kind,
            "source": source,
            "time": time,
            "subject": self.subject,
            "data": self.data,
        });
        // The cron specification has other names for the same.
        if self.kind.starts_with("cron.") {
            view["event"] = json!(self.kind);
            view["timestamp"] = json!(time);
        }
        view
    }
}
