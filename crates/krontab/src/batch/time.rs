//! RFC 3339 in, RFC 3339 out.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use kron_core::PeriodId;
use serde::{Serialize, Serializer};

/// Why a text is no instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TimeFault {
    /// It is not written as RFC 3339 writes a time, or there is no such time.
    Form,
    /// Time ends before it.
    Late,
}

impl TimeFault {
    /// What would have been right, as a noun phrase.
    pub(super) fn expected(self) -> &'static str {
        match self {
            TimeFault::Form => "a time such as `2026-03-01T00:00:00Z`",
            TimeFault::Late => "a time from `0000-01-01T00:00:00Z` to `9999-12-30T22:00:00Z`",
        }
    }
}

/// Reads RFC 3339's `date-time` and nothing else; jiff would also take other forms. Digits below a
/// nanosecond are cut.
pub(super) fn parse(text: &str) -> Result<Timestamp, TimeFault> {
    let (civil, offset) = parts(text).ok_or(TimeFault::Form)?;
    offset.to_timestamp(civil).map_err(|_| TimeFault::Late)
}

fn parts(text: &str) -> Option<(DateTime, Offset)> {
    let (head, rest) = text.as_bytes().split_at_checked(19)?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| head[*at] != *mark) {
        return None;
    }
    let year = i16::from(two(&head[0..2])?) * 100 + i16::from(two(&head[2..4])?);
    let (month, day) = (two(&head[5..7])?, two(&head[8..10])?);
    let (hour, minute, second) = (two(&head[11..13])?, two(&head[14..16])?, two(&head[17..19])?);
    let (nanos, rest) = fraction(rest)?;
    // A leap second has no instant of its own in UTC as computers count it, and jiff refuses it here.
    Some((DateTime::new(year, month, day, hour, minute, second, nanos).ok()?, offset(rest)?))
}

/// Two digits.
fn two(digits: &[u8]) -> Option<i8> {
    match digits {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => i8::try_from((tens - b'0') * 10 + (ones - b'0')).ok(),
        _ => None,
    }
}

/// Nanoseconds after a point, and what follows them.
fn fraction(text: &[u8]) -> Option<(i32, &[u8])> {
    let [b'.', digits @ ..] = text else {
        return Some((0, text));
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let padded = digits[..length].iter().chain(std::iter::repeat(&b'0')).take(9);
    let nanos = padded.fold(0, |nanos, digit| nanos * 10 + i32::from(digit - b'0'));
    (length > 0).then_some((nanos, &digits[length..]))
}

/// `Z` or `+01:00`.
fn offset(text: &[u8]) -> Option<Offset> {
    let (sign, time) = match text {
        b"Z" => return Some(Offset::UTC),
        [b'+', time @ ..] => (1, time),
        [b'-', time @ ..] => (-1, time),
        _ => return None,
    };
    let [hours @ .., b':', m, n] = time else { return None };
    let (hours, minutes) = (two(hours)?, two(&[*m, *n])?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (i32::from(hours) * 3_600 + i32::from(minutes) * 60)).ok()
}

/// An instant as it is answered: in UTC, with a fraction only where there is one.
#[derive(Clone, Copy)]
pub(super) struct Time(pub(super) Timestamp);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.subsec_nanosecond() {
            // The engine has a quick way to write whole seconds.
            0 => PeriodId::new(self.0).fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_rfc_3339_writes_them() {
        for (text, printed) in [
            ("2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"),
            ("2026-03-01T01:30:00+01:30", "2026-03-01T00:00:00Z"),
            ("2026-02-28T19:00:00-05:00", "2026-03-01T00:00:00Z"),
            ("2026-03-01T00:00:00-00:00", "2026-03-01T00:00:00Z"),
            ("2026-03-01T00:00:00.5Z", "2026-03-01T00:00:00.5Z"),
            ("2026-03-01T00:00:00.0000000019Z", "2026-03-01T00:00:00.000000001Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            ("9999-12-30T22:00:00Z", "9999-12-30T22:00:00Z"),
        ] {
            assert_eq!(Time(parse(text).unwrap()).to_string(), printed);
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "now",
            "2026-03-01",
            "2026-03-01T00:00:00",
            "2026-03-01T00:00Z",
            "2026-03-01 00:00:00Z",
            "2026-03-01t00:00:00Z",
            "2026-03-01T00:00:00z",
            "2026-03-01T00:00:00.Z",
            "2026-03-01T00:00:00,5Z",
            "2026-03-01T00:00:00+1:00",
            "2026-03-01T00:00:00+0100",
            "2026-03-01T00:00:00+01",
            "2026-03-01T00:00:00+24:00",
            "2026-03-01T00:00:00+01:60",
            "2026-03-01T00:00:00Z ",
            "2026-03-01T24:00:00Z",
            "2026-06-30T23:59:60Z",
            "2026-02-29T00:00:00Z",
            "+026-03-01T00:00:00Z",
            "2026-03-01T00:00:0éZ",
        ] {
            assert_eq!(parse(text), Err(TimeFault::Form), "{text}");
        }
    }

    #[test]
    fn time_ends_where_the_message_says() {
        let [first, last] = ["0000-01-01T00:00:00Z", "9999-12-30T22:00:00Z"];
        assert!(parse(first).is_ok());
        assert_eq!(parse(last).unwrap().as_second(), Timestamp::MAX.as_second());
        for text in ["9999-12-30T22:00:01Z", "9999-12-31T23:59:59Z", "9999-12-30T22:00:00-00:01"] {
            assert_eq!(parse(text), Err(TimeFault::Late), "{text}");
        }
        assert!([first, last].iter().all(|end| TimeFault::Late.expected().contains(end)));
    }
}
