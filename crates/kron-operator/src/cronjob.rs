//! When a `CronJob` fires, by the rules of Kubernetes (robfig/cron) alone: a comparison with Kron must not use Kron's code.

use jiff::Timestamp;
use jiff::tz::Offset;
use kron_schedule::{Duration, Zone};

/// The schedule of a `CronJob`.
pub(crate) enum When {
    Calendar(Fields),
    /// Seconds.
    Every(i64),
}

pub(crate) struct Fields {
    /// As Kron writes them.
    written: [String; 5],
    bits: [u64; 5],
    /// Whether the day of the month, and the day of the week, are a star without a step.
    stars: (bool, bool),
}

const NAMES: [&[&str]; 5] = [
    &[],
    &[],
    &[],
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
];
const BOUNDS: [(u64, u64); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
const OF: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];

impl When {
    pub(crate) fn read(text: &str) -> Result<When, String> {
        if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
            return Err(format!(
                "`{text}` has a zone in its schedule, which Kubernetes refuses; use timeZone"
            ));
        }
        if let Some(interval) = text.strip_prefix("@every ") {
            let interval: Duration = interval.trim().parse().map_err(|error| format!("`@every`: {error}"))?;
            return match interval.subsec_nanos() == 0 && interval.as_seconds() > 0 {
                true => Ok(When::Every(interval.as_seconds())),
                false => Err("expected whole seconds after `@every`".to_owned()),
            };
        }
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            text => text,
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let words: [&str; 5] = words.try_into().map_err(|words: Vec<_>| {
            format!("expected five fields, but found {} in `{text}`", words.len())
        })?;
        let mut fields = Fields {
            written: Default::default(),
            bits: [0; 5],
            stars: (is_star(words[2]), is_star(words[4])),
        };
        for (at, word) in words.iter().enumerate() {
            (fields.written[at], fields.bits[at]) = field(word, at)?;
        }
        Ok(When::Calendar(fields))
    }

    pub(crate) fn written(&self) -> String {
        match self {
            When::Calendar(fields) => fields.written.join(" "),
            When::Every(seconds) => format!("@every {}", Duration::from_seconds(*seconds)),
        }
    }

    pub(crate) fn is_interval(&self) -> bool {
        match self {
            When::Calendar(fields) => fields.written[..2].iter().any(|field| field.starts_with('*')),
            When::Every(_) => true,
        }
    }

    pub(crate) fn interval(&self) -> Option<i64> {
        match self {
            When::Calendar(_) => None,
            When::Every(seconds) => Some(*seconds),
        }
    }

    /// Every second at which it fires: whenever the clock shows a time that matches.
    pub(crate) fn fires(&self, zone: &Zone, from: Timestamp, end: i64) -> Vec<i64> {
        let When::Calendar(fields) = self else { return Vec::new() };
        let begin = (from.as_second() + 59).div_euclid(60) * 60;
        let minutes = (begin..end).step_by(60);
        minutes.filter(|second| fields.matches(zone, *second)).collect()
    }
}

impl Fields {
    fn matches(&self, zone: &Zone, second: i64) -> bool {
        let Ok(instant) = Timestamp::from_second(second) else { return false };
        let local = second + i64::from(zone.offset_at(instant).seconds());
        let has = |at: usize, value: i64| self.bits[at] >> value & 1 == 1;
        if !has(0, local.div_euclid(60).rem_euclid(60)) || !has(1, local.div_euclid(3_600).rem_euclid(24)) {
            return false;
        }
        let Ok(shown) = Timestamp::from_second(local) else { return false };
        let civil = Offset::UTC.to_datetime(shown);
        let day = has(2, i64::from(civil.day()));
        let weekday = has(4, i64::from(civil.weekday().to_sunday_zero_offset()));
        let is_day = if self.stars.0 || self.stars.1 { day && weekday } else { day || weekday };
        has(3, i64::from(civil.month())) && is_day
    }
}

/// A star, alone or with a step of one, is no restriction.
fn is_star(word: &str) -> bool {
    word.split(',').any(|part| matches!(part, "*" | "?" | "*/1" | "?/1"))
}

/// A field as Kron writes it, and its values.
fn field(word: &str, at: usize) -> Result<(String, u64), String> {
    let (min, max) = BOUNDS[at];
    let wrong =
        || format!("expected the {} from {min} to {max}, as Kubernetes counts, but found `{word}`", OF[at]);
    let value = |text: &str| {
        let named = NAMES[at].iter().position(|name| text.eq_ignore_ascii_case(name));
        let value = named.map(|place| place as u64 + min).or_else(|| text.parse().ok());
        value.filter(|value| (min..=max).contains(value)).ok_or_else(wrong)
    };
    let (mut written, mut bits) = (Vec::new(), 0);
    for part in word.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                (range, Some(step.parse::<u64>().ok().filter(|step| *step > 0).ok_or_else(wrong)?))
            }
            None => (part, None),
        };
        let (first, last) = match (range, range.split_once('-')) {
            ("*" | "?", _) => (min, max),
            (_, Some((first, last))) => (value(first)?, value(last)?),
            // From a value on, if there is a step.
            (one, None) => (value(one)?, if step.is_some() { max } else { value(one)? }),
        };
        if first > last {
            return Err(wrong());
        }
        bits |= (first..=last)
            .step_by(usize::try_from(step.unwrap_or(1)).map_err(|_| wrong())?)
            .fold(0, |bits, value| bits | 1 << value);
        let range = match range {
            "*" | "?" => "*".to_owned(),
            _ if first == last && step.is_none() => first.to_string(),
            _ => format!("{first}-{last}"),
        };
        written.push(match step {
            Some(1) if range == "*" => range,
            Some(step) => format!("{range}/{step}"),
            None => range,
        });
    }
    // A star among others is all there is.
    let written = if written.iter().any(|part| part == "*") { "*".to_owned() } else { written.join(",") };
    Ok((written, bits))
}
