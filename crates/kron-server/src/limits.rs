//! How much of the server one client may have, and for how long.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;

use crate::envelope::ENVELOPE_BYTES_MAX;

/// What clients are held to. Whoever is slower or wants more is cut off or refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// How many connections at once.
    pub connections: usize,
    /// How many of them from one address.
    pub connections_per_address: usize,
    /// How long a handshake of TLS may take.
    pub tls_handshake: Duration,
    /// How long a new connection may be silent.
    pub first_byte: Duration,
    /// How long the head of a request may take from its first byte.
    pub head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// How long a connection may be silent between two requests.
    pub idle: Duration,
    /// How long a client may take nothing of its answer.
    pub write: Duration,
    /// How long requests may take to end once the server has been told to.
    pub shutdown: Duration,
    /// The most headers of a request.
    pub header_count: usize,
    /// The largest head of a request.
    pub header_bytes: usize,
    /// The largest body of a request.
    pub body_bytes: usize,
    /// The largest body of a batch of jobs.
    pub batch_bytes: usize,
    /// The most bytes of all bodies that are being handled at once.
    pub bodies_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1_024,
            connections_per_address: 512,
            tls_handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(10),
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            shutdown: Duration::from_secs(10),
            header_count: 100,
            header_bytes: 32 * 1024,
            body_bytes: ENVELOPE_BYTES_MAX,
            batch_bytes: 16 * ENVELOPE_BYTES_MAX,
            bodies_bytes: 64 * ENVELOPE_BYTES_MAX,
        }
    }
}

/// Limits as they stand in a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    connections: Option<u64>,
    connections_per_address: Option<u64>,
    tls_handshake: Option<String>,
    first_byte: Option<String>,
    head: Option<String>,
    body: Option<String>,
    idle: Option<String>,
    write: Option<String>,
    shutdown: Option<String>,
    header_count: Option<u64>,
    header_bytes: Option<u64>,
    body_bytes: Option<u64>,
    batch_bytes: Option<u64>,
    bodies_bytes: Option<u64>,
}

/// The longest time that a limit can be.
const TIME_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The most of anything that is counted in bytes.
const BYTES_MAX: u64 = 1 << 30;

impl Limits {
    pub(crate) fn read(written: Written) -> Result<Limits, String> {
        let usual = Limits::default();
        let limits = Limits {
            connections: count("connections", written.connections, 1..=100_000, usual.connections)?,
            connections_per_address: count(
                "connections_per_address",
                written.connections_per_address,
                1..=100_000,
                usual.connections_per_address,
            )?,
            tls_handshake: time("tls_handshake", written.tls_handshake, usual.tls_handshake)?,
            first_byte: time("first_byte", written.first_byte, usual.first_byte)?,
            head: time("head", written.head, usual.head)?,
            body: time("body", written.body, usual.body)?,
            idle: time("idle", written.idle, usual.idle)?,
            write: time("write", written.write, usual.write)?,
            shutdown: time("shutdown", written.shutdown, usual.shutdown)?,
            header_count: count("header_count", written.header_count, 16..=10_000, usual.header_count)?,
            header_bytes: count("header_bytes", written.header_bytes, 1_024..=1 << 20, usual.header_bytes)?,
            body_bytes: count("body_bytes", written.body_bytes, 1_024..=BYTES_MAX, usual.body_bytes)?,
            batch_bytes: count("batch_bytes", written.batch_bytes, 1_024..=BYTES_MAX, usual.batch_bytes)?,
            bodies_bytes: count("bodies_bytes", written.bodies_bytes, 1_024..=BYTES_MAX, usual.bodies_bytes)?,
        };
        let largest = limits.body_bytes.max(limits.batch_bytes);
        if limits.bodies_bytes < largest {
            return Err(format!(
                "`limits.bodies_bytes`: expected at least {largest}, so that the largest body fits, but found {}",
                limits.bodies_bytes
            ));
        }
        Ok(limits)
    }
}

fn count(key: &str, given: Option<u64>, range: RangeInclusive<u64>, usual: usize) -> Result<usize, String> {
    let Some(given) = given else { return Ok(usual) };
    match usize::try_from(given) {
        Ok(count) if range.contains(&given) => Ok(count),
        _ => {
            let (least, most) = range.into_inner();
            Err(format!("`limits.{key}`: expected {least} to {most}, but found {given}"))
        }
    }
}

fn time(key: &str, given: Option<String>, usual: Duration) -> Result<Duration, String> {
    let Some(text) = given else { return Ok(usual) };
    let duration: kron_schedule::Duration =
        text.parse().map_err(|error| format!("`limits.{key}`: {error} (such as \"10s\")"))?;
    match u64::try_from(duration.as_nanos()).map(Duration::from_nanos) {
        Ok(time) if !time.is_zero() && time <= TIME_MAX => Ok(time),
        _ => Err(format!("`limits.{key}`: expected more than nothing and at most 24h, but found {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told() {
        for (text, message) in [
            ("connections = 0", "`limits.connections`: expected 1 to 100000, but found 0"),
            ("head = \"0s\"", "`limits.head`: expected more than nothing and at most 24h, but found \"0s\""),
            (
                "idle = \"25h\"",
                "`limits.idle`: expected more than nothing and at most 24h, but found \"25h\"",
            ),
            (
                "bodies_bytes = 2048",
                "`limits.bodies_bytes`: expected at least 16777216, so that the largest body fits, but found 2048",
            ),
        ] {
            assert_eq!(Limits::read(toml::from_str(text).unwrap()).unwrap_err(), message);
        }
        assert_eq!(Limits::read(Written::default()).unwrap(), Limits::default());
    }
}
