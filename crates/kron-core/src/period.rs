//! Periods, named by their nominal time.

use alloc::borrow::Cow;
use core::fmt;
use core::str::FromStr;

use jiff::Timestamp;

use crate::error::quoted;
use crate::label::Label;

/// The name of a period: its nominal time in whole seconds, printed in one way.
///
/// Two periods of a job are the same when their nominal instants are, however these were written.
///
/// ```
/// use kron_core::PeriodId;
///
/// let id: PeriodId = "2026-03-01T01:00:00+01:00".parse()?;
/// assert_eq!(id.to_string(), "2026-03-01T00:00:00Z");
/// assert_eq!(id, PeriodId::new("2026-03-01T00:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PeriodId(i64);

impl PeriodId {
    /// The period of a nominal time. A fraction of a second does not count.
    #[must_use]
    pub fn new(nominal: Timestamp) -> PeriodId {
        PeriodId(floor_second(nominal))
    }

    /// Its nominal time.
    #[must_use]
    pub fn nominal(self) -> Timestamp {
        to_timestamp(self.0)
    }

    pub(crate) fn label(self) -> Label {
        Label::utc(self.0)
    }
}

impl From<Timestamp> for PeriodId {
    fn from(nominal: Timestamp) -> PeriodId {
        PeriodId::new(nominal)
    }
}

impl From<PeriodId> for Timestamp {
    fn from(id: PeriodId) -> Timestamp {
        id.nominal()
    }
}

impl fmt::Display for PeriodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.label().fmt(f)
    }
}

impl fmt::Debug for PeriodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeriodId({self})")
    }
}

/// Reads any RFC 3339 spelling of a whole second.
impl FromStr for PeriodId {
    type Err = PeriodIdError;

    fn from_str(text: &str) -> Result<PeriodId, PeriodIdError> {
        let expected = "a time such as `2026-03-01T00:00:00Z`";
        let error = |expected: &'static str| PeriodIdError { expected, found: quoted(text) };
        if !is_rfc3339(text) {
            return Err(error(expected));
        }
        let instant: Timestamp = text.parse().map_err(|_| error(expected))?;
        if instant.subsec_nanosecond() != 0 {
            return Err(error("a time in whole seconds"));
        }
        Ok(PeriodId::new(instant))
    }
}

/// Whether the text has the shape of RFC 3339's `date-time`. jiff reads other forms too.
fn is_rfc3339(text: &str) -> bool {
    const DATE_TIME: &[u8] = b"0000-00-00T00:00:0";
    let bytes = text.as_bytes();
    let fits = |text: &[u8], shape: &[u8]| {
        text.len() == shape.len()
            && text.iter().zip(shape).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                _ => byte == shape,
            })
    };
    let Some((head, rest)) = bytes.split_at_checked(DATE_TIME.len() + 1) else {
        return false;
    };
    // A leap second has no instant of its own in UTC as computers count it.
    let seconds_fit = head[DATE_TIME.len()].is_ascii_digit() && head[17] < b'6';
    let rest = match rest {
        [b'.', digits @ ..] => {
            let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if length == 0 {
                return false;
            }
            &digits[length..]
        }
        rest => rest,
    };
    let offset = rest == b"Z" || fits(rest, b"+00:00") || fits(rest, b"-00:00");
    fits(&head[..DATE_TIME.len()], DATE_TIME) && seconds_fit && offset
}

/// Why a text does not name a period.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeriodIdError {
    expected: &'static str,
    found: Cow<'static, str>,
}

impl fmt::Display for PeriodIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, but found {}", self.expected, self.found)
    }
}

impl core::error::Error for PeriodIdError {}

/// The first and the last whole second that jiff can tell.
pub(crate) const SECOND_MIN: i64 = -377_705_023_201;
pub(crate) const SECOND_MAX: i64 = 253_402_207_200;

/// The whole second that an instant lies in.
pub(crate) fn floor_second(instant: Timestamp) -> i64 {
    // jiff counts toward zero: below 1970 a fraction has been rounded up.
    instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
}

/// The instant of a whole second. One past the end of jiff's time becomes its end.
pub(crate) fn to_timestamp(second: i64) -> Timestamp {
    let second = second.clamp(SECOND_MIN, SECOND_MAX);
    Timestamp::from_second(second).expect("it was just brought into jiff's range")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn one_spelling_is_printed() {
        for (text, printed) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("2026-03-01T01:00:00+01:00", "2026-03-01T00:00:00Z"),
            ("2026-03-01T00:00:00.000Z", "2026-03-01T00:00:00Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
            ("0000-02-29T12:34:56Z", "0000-02-29T12:34:56Z"),
            ("9999-12-30T21:59:59Z", "9999-12-30T21:59:59Z"),
        ] {
            let id: PeriodId = text.parse().unwrap();
            assert_eq!(id.to_string(), printed);
            assert_eq!(printed.parse(), Ok(id));
        }
    }

    #[test]
    fn jiff_ends_where_kron_thinks_it_does() {
        assert_eq!((SECOND_MIN, SECOND_MAX), (Timestamp::MIN.as_second(), Timestamp::MAX.as_second()));
    }

    #[test]
    fn a_fraction_belongs_to_its_second_on_either_side_of_1970() {
        let id = |text: &str| PeriodId::new(text.parse().unwrap()).to_string();
        assert_eq!(id("2026-03-01T00:00:00.999999999Z"), "2026-03-01T00:00:00Z");
        assert_eq!(id("1969-12-31T23:59:59.5Z"), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn errors_say_what_was_expected_and_found() {
        for (text, message) in [
            ("", "expected a time such as `2026-03-01T00:00:00Z`, but found nothing"),
            ("soon", "expected a time such as `2026-03-01T00:00:00Z`, but found `soon`"),
            (
                "2026-03-01T00:00Z",
                "expected a time such as `2026-03-01T00:00:00Z`, but found `2026-03-01T00:00Z`",
            ),
            (
                "2026-02-30T00:00:00Z",
                "expected a time such as `2026-03-01T00:00:00Z`, but found `2026-02-30T00:00:00Z`",
            ),
            (
                "2026-06-30T23:59:60Z",
                "expected a time such as `2026-03-01T00:00:00Z`, but found `2026-06-30T23:59:60Z`",
            ),
            (
                "2026-03-01T00:00:00.5Z",
                "expected a time in whole seconds, but found `2026-03-01T00:00:00.5Z`",
            ),
            ("a\nb", "expected a time such as `2026-03-01T00:00:00Z`, but found `a\\nb`"),
        ] {
            assert_eq!(text.parse::<PeriodId>().unwrap_err().to_string(), message);
        }
    }
}
