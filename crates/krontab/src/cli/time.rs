//! Instants as people write and read them. English, whatever the locale.

use jiff::civil::{DateTime, Weekday};
use jiff::{SignedDuration, Timestamp};
use kron_schedule::Zone;
use krontab::Zones;

/// Reads an instant with an offset: RFC 3339, or RFC 9557 with a zone that has that offset then.
pub(crate) fn instant(text: &str) -> Result<Timestamp, String> {
    let instant = text.parse().map_err(|_| {
        let expected = "expected a time such as `2026-03-01T12:00:00Z`";
        let has_civil = |end: Option<usize>| {
            text.get(..end.unwrap_or(text.len())).is_some_and(|text| text.parse::<DateTime>().is_ok())
        };
        if has_civil(None) {
            return format!("{expected}, with `Z` or an offset at its end");
        }
        match text.starts_with("9999-12-3") && has_civil(Some("9999-12-31T00:00:00".len())) {
            true => "expected a time up to `9999-12-30T22:00:00Z`, where time ends".to_owned(),
            false => expected.to_owned(),
        }
    })?;
    check_zone(text, instant)?;
    Ok(instant)
}

/// Refuses an instant whose offset is not the one that the zone behind it has then: which of the two
/// was meant is not guessed.
pub(crate) fn check_zone(text: &str, instant: Timestamp) -> Result<(), String> {
    let Some((written, annotations)) = text.split_once('[') else {
        return Ok(());
    };
    let name = annotations.split(']').next().unwrap_or_default().trim_start_matches('!');
    // `Z` says nothing about the offset there, and `[u-ca=…]` is about calendars.
    if written.ends_with(['Z', 'z']) || name.contains('=') {
        return Ok(());
    }
    let zone = Zones::system().find(name).map_err(|error| match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })?;
    match written.parse::<DateTime>() {
        Ok(civil) if civil != zone.to_civil(instant) => Err(format!(
            "expected the offset that {name} has then, but found another: this is {} there; \
             leave out `[{name}]`, or correct the offset",
            zoned(instant, &zone).trim_end_matches(&format!("[{name}]"))
        )),
        _ => Ok(()),
    }
}

/// An instant in UTC, in whole seconds: `2026-03-01T12:00:00Z`.
pub(crate) fn utc(instant: Timestamp) -> String {
    kron_core::PeriodId::new(instant).to_string()
}

/// An instant as clocks show it: `Sun 2026-03-01 13:00:00 +01:00`. Nothing in UTC but the day.
pub(crate) fn local(instant: Timestamp, zone: &Zone) -> String {
    let civil = zone.to_civil(instant);
    let day = day(civil.weekday());
    if is_utc(zone) {
        return day.to_owned();
    }
    format!("{day} {} {} {}", civil.date(), clock(civil), offset(instant, zone))
}

/// An instant for programs, with offset and zone: `2026-03-01T13:00:00+01:00[Europe/Paris]`.
pub(crate) fn zoned(instant: Timestamp, zone: &Zone) -> String {
    let civil = zone.to_civil(instant);
    format!("{}T{}{}[{}]", civil.date(), clock(civil), offset(instant, zone), zone.name())
}

/// A local time that need not exist: `2026-03-08T02:30[America/New_York]`.
pub(crate) fn label(civil: DateTime, zone: &Zone) -> String {
    let second = if civil.second() == 0 { String::new() } else { format!(":{:02}", civil.second()) };
    format!("{}T{:02}:{:02}{second}[{}]", civil.date(), civil.hour(), civil.minute(), zone.name())
}

/// The instants at which clocks show a local time: none in a gap, two in a fold, in order.
pub(crate) fn instants(civil: DateTime, zone: &Zone) -> Vec<Timestamp> {
    let Ok(as_utc) = jiff::tz::Offset::UTC.to_timestamp(civil) else {
        return Vec::new();
    };
    // Whatever the offset is there, it is one of those a day before or after.
    let around = [SignedDuration::from_hours(-26), SignedDuration::from_hours(26)];
    let mut found: Vec<Timestamp> = around
        .into_iter()
        .filter_map(|by| Some(zone.offset_at(as_utc.checked_add(by).ok()?)))
        .filter_map(|offset| offset.to_timestamp(civil).ok())
        .filter(|at| zone.to_civil(*at) == civil)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The first instant after the gap that a local time falls into.
pub(crate) fn after_gap(civil: DateTime, zone: &Zone) -> Option<Timestamp> {
    let as_utc = jiff::tz::Offset::UTC.to_timestamp(civil).ok()?;
    let day = SignedDuration::from_hours(26);
    let (mut before, mut after) = (as_utc.checked_sub(day).ok()?, as_utc.checked_add(day).ok()?);
    // Clocks show less than the local time before the gap, and more after it.
    while after.as_second() - before.as_second() > 1 {
        let middle = before.as_second().midpoint(after.as_second());
        let middle = Timestamp::from_second(middle).ok()?;
        match zone.to_civil(middle) < civil {
            true => before = middle,
            false => after = middle,
        }
    }
    Some(after)
}

pub(crate) fn is_utc(zone: &Zone) -> bool {
    matches!(zone.name(), "UTC" | "Etc/UTC")
}

fn clock(civil: DateTime) -> String {
    format!("{:02}:{:02}:{:02}", civil.hour(), civil.minute(), civil.second())
}

fn offset(instant: Timestamp, zone: &Zone) -> String {
    let seconds = zone.offset_at(instant).seconds();
    let (sign, length) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    let rest = if length % 60 == 0 { String::new() } else { format!(":{:02}", length % 60) };
    format!("{sign}{:02}:{:02}{rest}", length / 3_600, length / 60 % 60)
}

fn day(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "Mon",
        Weekday::Tuesday => "Tue",
        Weekday::Wednesday => "Wed",
        Weekday::Thursday => "Thu",
        Weekday::Friday => "Fri",
        Weekday::Saturday => "Sat",
        Weekday::Sunday => "Sun",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_time_has_none_one_or_two_instants() {
        let zone = Zones::bundled().find("America/New_York").unwrap();
        let found = |text: &str| -> Vec<String> {
            instants(text.parse().unwrap(), &zone).into_iter().map(utc).collect()
        };
        assert_eq!(found("2026-03-07T02:30"), ["2026-03-07T07:30:00Z"]);
        assert_eq!(found("2026-03-08T02:30"), [""; 0]);
        let after = after_gap("2026-03-08T02:30".parse().unwrap(), &zone);
        assert_eq!(after.map(utc).as_deref(), Some("2026-03-08T07:00:00Z"));
        assert_eq!(found("2026-11-01T01:30"), ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]);
    }

    #[test]
    fn an_instant_is_shown_as_clocks_show_it() {
        let at: Timestamp = "2026-03-08T07:30:00Z".parse().unwrap();
        let new_york = Zones::bundled().find("America/New_York").unwrap();
        assert_eq!(local(at, &new_york), "Sun 2026-03-08 03:30:00 -04:00");
        assert_eq!(local(at, &Zone::utc()), "Sun");
        assert_eq!(zoned(at, &new_york), "2026-03-08T03:30:00-04:00[America/New_York]");
        assert_eq!(label(new_york.to_civil(at), &new_york), "2026-03-08T03:30[America/New_York]");
    }

    #[test]
    fn an_offset_and_a_zone_must_agree() {
        for text in [
            "2026-07-01T00:00:00+02:00[Europe/Berlin]",
            "2026-01-01T00:00:00+01:00[!Europe/Berlin]",
            "2026-07-01T00:00:00Z[Europe/Berlin]",
            "2026-11-01T01:30:00-05:00[America/New_York]",
            "2026-11-01T01:30:00-04:00[America/New_York]",
            "2026-07-01T00:00:00+05:00[u-ca=iso8601]",
        ] {
            assert!(instant(text).is_ok(), "{text}");
        }
        assert_eq!(
            instant("2026-07-01T00:00:00+05:00[Europe/Berlin]").unwrap_err(),
            "expected the offset that Europe/Berlin has then, but found another: this is \
             2026-06-30T21:00:00+02:00 there; leave out `[Europe/Berlin]`, or correct the offset"
        );
        let unknown = instant("2026-07-01T00:00:00+05:00[Berlin]").unwrap_err();
        assert_eq!(unknown, "unknown time zone `Berlin`; did you mean `Europe/Berlin`?");
    }

    #[test]
    fn an_instant_needs_an_offset() {
        assert!(instant("2026-03-01T13:00:00+01:00").is_ok());
        let error = instant("2026-03-01T13:00:00").unwrap_err();
        assert_eq!(error, "expected a time such as `2026-03-01T12:00:00Z`, with `Z` or an offset at its end");
        assert!(instant("9999-12-30T22:00:00Z").is_ok());
        for late in ["9999-12-31T00:00:00Z", "9999-12-31T23:59:59.5Z", "9999-12-30T22:00:01Z"] {
            let error = instant(late).unwrap_err();
            assert_eq!(error, "expected a time up to `9999-12-30T22:00:00Z`, where time ends", "{late}");
        }
        assert_eq!(instant("noon").unwrap_err(), "expected a time such as `2026-03-01T12:00:00Z`");
    }
}
