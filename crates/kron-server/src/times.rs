//! Times and durations as they are written on the wire.

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Unit};
use serde::{Deserialize, Serialize};

use crate::clock::floor_ms;
use crate::members::{Raw, excerpt, wrong};
use crate::refusal::Refusal;

/// An instant, and how whoever named it wrote it: that is how it is given back.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Stamp {
    /// The instant.
    pub at: Timestamp,
    /// As it was written.
    pub text: String,
}

impl Stamp {
    /// Reads an absolute time with its zone, or one that is so far from now, such as `+PT5S`.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn read(raw: &Raw, name: &str, now: Timestamp) -> Result<Stamp, Refusal> {
        let expected = "a time such as \"2026-01-31T09:00:00Z\"";
        let text: String = serde_json::from_str(raw.get()).map_err(|_| wrong(name, expected, raw))?;
        if let Some(relative) = text.strip_prefix('+') {
            let at = read_span(relative)
                .and_then(|after| now.checked_add(after).ok().map(floor_ms))
                .ok_or_else(|| wrong(name, "a duration such as \"+PT5S\"", raw))?;
            return Ok(Stamp { at, text: stamp(at) });
        }
        let at = read_instant(&text).ok_or_else(|| wrong(name, expected, raw))?;
        Ok(Stamp { at, text })
    }
}

/// An instant as RFC 3339 writes it; a zone must be named, and a name in brackets must not follow.
#[must_use]
pub fn read_instant(text: &str) -> Option<Timestamp> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"-:.+TtZz".contains(&byte));
    if !plain || text.len() < "2026-01-01T00:00:00Z".len() {
        return None;
    }
    text.parse().ok().map(floor_ms)
}

/// An instant in UTC: to the second, or to the millisecond where it is not a whole one.
#[must_use]
pub fn stamp(at: Timestamp) -> String {
    if at.subsec_nanosecond() == 0 { at.to_string() } else { format!("{at:.3}") }
}

/// The longest duration that is taken. It keeps every sum of a time and a duration within the calendar.
const DURATION_MAX: SignedDuration = SignedDuration::from_hours(24 * 366 * 10);

/// Reads an ISO 8601 duration (`PT5M`, `P1D`) or one such as `300s`, in milliseconds.
///
/// # Errors
///
/// If it is none, or negative, or longer than ten years.
pub fn read_duration(raw: &Raw, name: &str) -> Result<u64, Refusal> {
    let expected = "a duration such as \"PT30S\"";
    let text: String = serde_json::from_str(raw.get()).map_err(|_| wrong(name, expected, raw))?;
    let duration = read_span(&text).ok_or_else(|| wrong(name, expected, raw))?;
    Ok(u64::try_from(duration.as_millis()).unwrap_or(0))
}

fn read_span(text: &str) -> Option<SignedDuration> {
    let span: Span = text.parse().ok()?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return None;
    }
    let seconds = span.total((Unit::Second, SpanRelativeTo::days_are_24_hours())).ok()?;
    let duration = SignedDuration::try_from_secs_f64(seconds).ok()?;
    (!duration.is_negative() && duration <= DURATION_MAX).then_some(duration)
}

/// A duration as ISO 8601 writes it.
#[must_use]
pub fn duration(ms: u64) -> String {
    SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX)).to_string()
}

/// A time from a query.
///
/// # Errors
///
/// If it is none.
pub fn from_query(text: &str, name: &str) -> Result<Timestamp, Refusal> {
    read_instant(text).ok_or_else(|| {
        Refusal::request(format!(
            "expected a time such as 2026-01-31T09:00:00Z in `{name}`, but found {}",
            excerpt(text)
        ))
        .hint("a plus sign must be written %2B in a query")
        .field(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::raw;

    #[test]
    fn durations_are_read_in_their_usual_forms() {
        for (text, ms) in [
            ("PT1S", 1_000),
            ("PT0.5S", 500),
            ("PT5M", 300_000),
            ("PT24H", 86_400_000),
            ("P1D", 86_400_000),
            ("300s", 300_000),
        ] {
            assert_eq!(read_duration(&raw(&text), "x").unwrap(), ms, "{text}");
        }
        for text in ["", "5", "P1M", "P1Y", "-PT1S", "PT", "P99999D", "soon"] {
            assert!(read_duration(&raw(&text), "x").is_err(), "{text}");
        }
        assert_eq!(duration(300_000), "PT5M");
        assert_eq!(duration(500), "PT0.5S");
    }

    #[test]
    fn a_time_needs_its_zone_and_is_given_back_as_written() {
        let now = Timestamp::UNIX_EPOCH;
        let read = |text: &str| Stamp::read(&raw(&text), "scheduled_at", now);
        assert_eq!(read("2099-12-31T23:59:59Z").unwrap().text, "2099-12-31T23:59:59Z");
        assert_eq!(read("2026-01-01T00:00:00+02:00").unwrap().at, "2025-12-31T22:00:00Z".parse().unwrap());
        assert_eq!(read("+PT2S").unwrap().text, "1970-01-01T00:00:02Z");
        // Stores keep milliseconds: what is finer would be due there before it is due here.
        assert_eq!(read("+PT0.0015S").unwrap().at, Timestamp::from_millisecond(1).unwrap());
        for text in ["2026-01-01T00:00:00", "2026-01-01", "tomorrow", "2026-01-01T00:00:00Z[UTC]", "+5"] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.message.contains("`scheduled_at`"), "{text}: {}", refusal.message);
        }
    }
}
