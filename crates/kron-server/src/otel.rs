//! Traces for OpenTelemetry: the spans of requests and of looks at cron jobs, sent as OTLP over HTTP in JSON.
//!
//! Written by hand, since the crates made for it bring another HTTP client and another TLS with them: the format is
//! small, and ureq is here already. What cannot be sent is dropped and counted in the log; nobody waits for a collector.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::clock::nanos;

/// The target of the spans that are sent.
pub const SPANS: &str = "kron::span";

/// The most spans that wait to be sent, that are sent at once, and how long the first of them waits.
const WAITING_MAX: usize = 4_096;
const BATCH_MAX: usize = 512;
const BATCH_WAIT: Duration = Duration::from_secs(1);

/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The layer that sends spans to a collector.
#[derive(Debug)]
pub struct Traces(SyncSender<Ended>);

/// A span that is open.
struct Open {
    trace: [u8; 16],
    span: [u8; 8],
    parent: Option<[u8; 8]>,
    begin: u128,
    attributes: BTreeMap<&'static str, Value>,
}

/// A span that has ended.
#[derive(Debug)]
struct Ended(Value);

impl Traces {
    /// Sends to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, such as `http://localhost:4318`; none if it is unset.
    #[must_use]
    pub fn from_environment() -> Option<Traces> {
        let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok().filter(|text| !text.is_empty())?;
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let (tell, told) = sync_channel(WAITING_MAX);
        let sending = thread::Builder::new().name("kron-otel".into()).spawn(move || send(&told, &url));
        sending.is_ok().then_some(Traces(tell))
    }
}

/// Sends what has ended until nobody tells of more.
fn send(told: &Receiver<Ended>, url: &str) {
    let agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().new_agent();
    let mut is_failing = false;
    while let Ok(first) = told.recv() {
        let mut spans = vec![first.0];
        while spans.len() < BATCH_MAX {
            match told.recv_timeout(BATCH_WAIT) {
                Ok(span) => spans.push(span.0),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let count = spans.len();
        let sent = agent.post(url).header("Content-Type", "application/json").send(body(&spans).to_string());
        match sent {
            Ok(_) => is_failing = false,
            // Told once, and again only when it has succeeded in between.
            Err(error) if !is_failing => {
                is_failing = true;
                tracing::warn!(%error, url, dropped = count, "could not send traces");
            }
            Err(_) => {}
        }
    }
}

fn body(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            attribute("service.name", &json!("kron-server")),
            attribute("service.version", &json!(env!("CARGO_PKG_VERSION"))),
        ]},
        "scopeSpans": [{"scope": {"name": "kron-server"}, "spans": spans}],
    }]})
}

fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(value) => json!({"intValue": value.to_string()}),
        Value::String(value) => json!({"stringValue": value}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for Traces {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|span| is_sent(span.metadata())) else { return };
        let mut read = Read::default();
        attributes.record(&mut read);
        let above = span
            .parent()
            .and_then(|parent| parent.extensions().get::<Open>().map(|open| (open.trace, open.span)));
        let (trace, parent) = match read.parent.or(above) {
            Some((trace, parent)) => (trace, Some(parent)),
            None => (random(), None),
        };
        let open = Open { trace, span: random(), parent, begin: nanos(), attributes: read.attributes };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            let mut read = Read::default();
            values.record(&mut read);
            open.attributes.append(&mut read.attributes);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<Open>() else { return };
        // What does not fit is dropped: nobody waits for a collector.
        let _ = self.0.try_send(Ended(open.ended(span.name(), nanos())));
    }
}

fn is_sent(metadata: &Metadata<'_>) -> bool {
    metadata.target() == SPANS && *metadata.level() <= Level::INFO
}

impl Open {
    fn ended(mut self, name: &str, end: u128) -> Value {
        let name = match self.attributes.remove("otel.name") {
            Some(Value::String(name)) => name,
            _ => name.to_owned(),
        };
        let is_request = self.attributes.contains_key("http.route");
        let failed = self.attributes.get("http.response.status_code").and_then(Value::as_u64) >= Some(500);
        let attributes: Vec<Value> =
            self.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        json!({
            "traceId": hex(&self.trace),
            "spanId": hex(&self.span),
            "parentSpanId": self.parent.map(|parent| hex(&parent)).unwrap_or_default(),
            "name": name,
            // SERVER or INTERNAL, and ERROR or unset.
            "kind": if is_request { 2 } else { 1 },
            "status": if failed { json!({"code": 2}) } else { json!({}) },
            "startTimeUnixNano": self.begin.to_string(),
            "endTimeUnixNano": end.to_string(),
            "attributes": attributes,
        })
    }
}

/// What a span says about itself.
#[derive(Default)]
struct Read {
    attributes: BTreeMap<&'static str, Value>,
    parent: Option<([u8; 16], [u8; 8])>,
}

impl Visit for Read {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.attributes.insert(field.name(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "traceparent" {
            self.parent = traceparent(value);
        } else {
            self.attributes.insert(field.name(), json!(value));
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.attributes.insert(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attributes.insert(field.name(), json!(value));
    }
}

/// The trace and the span that a client names, if it names them as W3C Trace Context has it.
fn traceparent(text: &str) -> Option<([u8; 16], [u8; 8])> {
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags, ..] = parts[..] else { return None };
    if version.len() != 2 || version == "ff" || (version == "00" && parts.len() != 4) || flags.len() != 2 {
        return None;
    }
    let (trace, span) = (unhex::<16>(trace)?, unhex::<8>(span)?);
    (trace != [0; 16] && span != [0; 8]).then_some((trace, span))
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // An id of zeros is none; without randomness there is none.
    let _ = getrandom::fill(&mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 2 * N || !is_hex {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_taken_as_it_is_specified_or_not_at_all() {
        let right = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let (trace, span) = traceparent(right).unwrap();
        assert_eq!((&*hex(&trace), &*hex(&span)), ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"));
        assert!(traceparent("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more").is_some());
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c8031é-b7ad6b7169203331-01",
        ] {
            assert_eq!(traceparent(wrong), None, "{wrong}");
        }
    }
}
