//! Durations as Go writes them: `90m`, `1h30m`, `1.5h`, `500ms`.
//!
//! Every surface of Kron writes durations this way: windows, deadlines, timeouts, `@every`.

use alloc::borrow::Cow;
use alloc::format;
use core::fmt;
use core::ops::Range;

/// A signed length of time in whole nanoseconds.
///
/// ```
/// use kron_schedule::Duration;
///
/// let duration: Duration = "1.5h".parse()?;
/// assert_eq!(duration, Duration::from_seconds(5_400));
/// assert_eq!(duration.to_string(), "1h30m");
/// # Ok::<(), kron_schedule::DurationError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Duration(i64);

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// A duration of so many nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Duration {
        Duration(nanos)
    }

    /// A duration of so many seconds; at the ends of the range it saturates.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Duration {
        Duration(seconds.saturating_mul(SECOND))
    }

    /// The whole length in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The length in seconds, rounded toward zero.
    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0 / SECOND
    }

    /// What is left beside whole seconds; it has the sign of the duration.
    #[must_use]
    pub const fn subsec_nanos(self) -> i64 {
        self.0 % SECOND
    }
}

const SECOND: i64 = 1_000_000_000;

/// The units, longest first, so that the canonical form is written with them in this order.
const UNITS: [(&str, i64); 6] =
    [("h", 3_600 * SECOND), ("m", 60 * SECOND), ("s", SECOND), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// The canonical form: whole numbers of units, longest first, those that are zero left out.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let mut rest = self.0.unsigned_abs();
        for (unit, nanos) in UNITS {
            let nanos = nanos.unsigned_abs();
            if rest >= nanos {
                write!(f, "{}{unit}", rest / nanos)?;
                rest %= nanos;
            }
        }
        Ok(())
    }
}

impl core::str::FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Duration, DurationError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let at = text.len() - unsigned.len();
        if unsigned == "0" {
            return Ok(Duration::ZERO);
        }
        // What does not even begin like one.
        if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Err(DurationError::new("a duration such as `90s` or `1h30m`", text, 0..text.len()));
        }
        let mut total: u64 = 0;
        let mut rest = unsigned;
        while !rest.is_empty() {
            let start = at + unsigned.len() - rest.len();
            let (nanos, length) = pair(rest, start)?;
            // 2^63 itself is the one value that only exists with a minus sign.
            total = total.checked_add(nanos).filter(|&sum| sum <= 1 << 63).ok_or_else(|| too_long(text))?;
            rest = &rest[length..];
        }
        let signed = if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
        signed.map(Duration).ok_or_else(|| too_long(text))
    }
}

/// One number with its unit: its nanoseconds, and how many bytes it took.
fn pair(text: &str, start: usize) -> Result<(u64, usize), DurationError> {
    let digits = |from: usize| text.as_bytes()[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(0);
    let has_point = text.as_bytes().get(whole) == Some(&b'.');
    let fraction_at = whole + usize::from(has_point);
    let fraction = if has_point { digits(fraction_at) } else { 0 };
    if whole + fraction == 0 {
        let length = text.chars().next().map_or(0, char::len_utf8);
        return Err(DurationError::new("a number", &text[..length], start..start + length));
    }
    let unit_at = fraction_at + fraction;
    let letters =
        text[unit_at..].find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(text.len() - unit_at);
    let unit = &text[unit_at..unit_at + letters];
    let span = start + unit_at..start + unit_at + letters;
    let Some(scale) = scale(unit) else {
        return Err(DurationError::new("a unit: `h`, `m`, `s`, `ms`, `us` or `ns`", unit, span));
    };
    let length = unit_at + letters;
    let number = || too_long(&text[..length]).shifted(start);
    let whole: u64 = match &text[..whole] {
        "" => 0,
        digits => digits.parse().map_err(|_| number())?,
    };
    let nanos = whole.checked_mul(scale).ok_or_else(number)?;
    let part = fraction_of(&text[fraction_at..fraction_at + fraction], scale);
    Ok((nanos.checked_add(part).ok_or_else(number)?, length))
}

fn scale(unit: &str) -> Option<u64> {
    let unit = match unit {
        "\u{b5}s" | "\u{3bc}s" => "us", // the micro sign, and the Greek letter
        other => other,
    };
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| nanos.unsigned_abs())
}

/// The most digits of a fraction that can matter: an hour has fewer than 10^13 nanoseconds.
const FRACTION_DIGITS_MAX: usize = 15;

/// A decimal fraction of a unit in nanoseconds; what is below a nanosecond is cut.
fn fraction_of(digits: &str, scale: u64) -> u64 {
    let (mut numerator, mut denominator) = (0u128, 1u128);
    for digit in digits.bytes().take(FRACTION_DIGITS_MAX) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    u64::try_from(numerator * u128::from(scale) / denominator)
        .expect("a fraction of a unit is below the unit")
}

fn too_long(text: &str) -> DurationError {
    DurationError::new("a duration below 292 years", text, 0..text.len())
}

/// Why a text is not a duration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DurationError {
    pub(crate) expected: &'static str,
    pub(crate) found: Cow<'static, str>,
    pub(crate) span: Range<usize>,
}

impl DurationError {
    fn new(expected: &'static str, found: &str, span: Range<usize>) -> DurationError {
        let found = match found {
            "" => Cow::Borrowed("nothing"),
            found => Cow::Owned(format!("`{}`", crate::parse::shortened(found))),
        };
        DurationError { expected, found, span }
    }

    fn shifted(mut self, offset: usize) -> DurationError {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }

    /// Where the mistake is, in bytes of the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, but found {}", self.expected, self.found)
    }
}

impl core::error::Error for DurationError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("0s", 0),
            ("5s", 5 * SECOND),
            ("1h30m", 5_400 * SECOND),
            ("1.5h", 5_400 * SECOND),
            (".5s", SECOND / 2),
            ("1.s", SECOND),
            ("500ms", SECOND / 2),
            ("10us", 10_000),
            ("10\u{b5}s", 10_000),
            ("10\u{3bc}s", 10_000),
            ("0.9ns", 0),
            ("-1m", -60 * SECOND),
            ("+1m", 60 * SECOND),
            ("1m1h1m", 3_720 * SECOND),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("0.33333333333333333333333h", 1_199_999_999_999),
        ] {
            assert_eq!(text.parse::<Duration>().map(Duration::as_nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn one_spelling_is_printed() {
        for (text, printed) in [
            ("90m", "1h30m"),
            ("0", "0s"),
            ("-1500ms", "-1s500ms"),
            ("24h", "24h"),
            ("1h0m1s", "1h1s"),
            ("-9223372036854775808ns", "-2562047h47m16s854ms775us808ns"),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.to_string(), printed);
            assert_eq!(printed.parse(), Ok(duration));
        }
    }

    #[test]
    fn errors_say_what_was_expected_found_and_where() {
        for (text, message, span) in [
            ("", "expected a duration such as `90s` or `1h30m`, but found nothing", 0..0),
            ("-", "expected a duration such as `90s` or `1h30m`, but found `-`", 0..1),
            ("5", "expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found nothing", 1..1),
            ("1h 30m", "expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found `h `", 1..3),
            ("2d", "expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found `d`", 1..2),
            ("1hx", "expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found `hx`", 1..3),
            ("1h.m", "expected a number, but found `.`", 2..3),
            ("x", "expected a duration such as `90s` or `1h30m`, but found `x`", 0..1),
            ("soon", "expected a duration such as `90s` or `1h30m`, but found `soon`", 0..4),
            ("-x", "expected a duration such as `90s` or `1h30m`, but found `-x`", 0..2),
            (".", "expected a number, but found `.`", 0..1),
            (
                "9223372036854775808ns",
                "expected a duration below 292 years, but found `9223372036854775808ns`",
                0..21,
            ),
            (
                "1s99999999999999999999h",
                "expected a duration below 292 years, but found `99999999999999999999h`",
                2..23,
            ),
        ] {
            let error = text.parse::<Duration>().unwrap_err();
            assert_eq!((error.to_string().as_str(), error.span()), (message, span), "{text}");
        }
    }
}
