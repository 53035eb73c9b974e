//! Distances from UTC: `utc+9`, `utc-05:30`, and the abbreviations that stand for one.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use core::fmt;
use core::ops::Range;

use super::error::{Code, FuzzyError};
use super::parse::{Parser, is_keyword};
use super::time::number;
use super::warning::{FuzzyWarning, FuzzyWarningKind};

/// A fixed distance from UTC.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Offset {
    minutes: i16,
    /// How it was abbreviated, since that may deserve a warning.
    zone: Option<&'static str>,
}

impl Offset {
    /// The minutes by which it is ahead of UTC.
    pub(super) fn minutes(self) -> i16 {
        self.minutes
    }
}

/// "utc+9", "utc+5:30", "pst".
impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(zone) = self.zone {
            return f.write_str(zone);
        }
        let sign = if self.minutes < 0 { '-' } else { '+' };
        let minutes = self.minutes.unsigned_abs();
        write!(f, "utc{sign}{}", minutes / 60)?;
        match minutes % 60 {
            0 => Ok(()),
            rest => write!(f, ":{rest:02}"),
        }
    }
}

/// Abbreviations, each with one fixed offset in hours and minutes and no daylight saving.
const ZONES: [(&str, i16); 7] = [
    ("pst", -8 * 60),
    ("pdt", -7 * 60),
    ("est", -5 * 60),
    ("edt", -4 * 60),
    ("jst", 9 * 60),
    ("ist", 5 * 60 + 30),
    ("pt", -8 * 60),
];

/// Those that people use for more than one: what else it could be, and how to be clear.
const AMBIGUOUS: [(&str, &str, &str); 2] = [
    ("pt", "'PT' could be PST or PDT", "It is read as PST, UTC-8; write utc-8 or utc-7 to be clear"),
    (
        "ist",
        "'IST' could be Indian, Irish or Israel time",
        "It is read as India Standard Time, UTC+5:30; write utc+5:30, utc+1 or utc+2 to be clear",
    ),
];

/// The offsets in use on Earth.
const MINUTES_MIN: i16 = -12 * 60;
const MINUTES_MAX: i16 = 14 * 60;

/// Whether a text that touches a time can be read as its offset.
pub(super) fn begins(text: &str) -> bool {
    starts_with_utc(text) || zone(text).is_some()
}

fn starts_with_utc(text: &str) -> bool {
    text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("utc"))
}

fn zone(text: &str) -> Option<(&'static str, i16)> {
    ZONES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text))
}

impl Parser<'_> {
    /// Reads the offset of a time, if one follows.
    pub(super) fn offset(&mut self) -> Result<Option<Offset>, FuzzyError> {
        let Some(place) = self.cursor.peek() else { return Ok(None) };
        let word = self.cursor.slice(place.clone());
        let offset = if let Some((name, minutes)) = zone(word) {
            self.warn_of_ambiguity(name, &place);
            Offset { minutes, zone: Some(name) }
        } else if starts_with_utc(word) {
            Offset { minutes: self.utc(&word[3..], place.clone())?, zone: None }
        } else if is_like_a_zone(word) {
            return Err(self.bad_offset(Code::OffsetSyntax, "Unknown timezone", place));
        } else {
            return Ok(None);
        };
        self.cursor.move_to(place.end);
        Ok(Some(offset))
    }

    /// Reads what follows `utc`: a sign, hours, and perhaps minutes.
    fn utc(&self, text: &str, place: Range<usize>) -> Result<i16, FuzzyError> {
        let malformed = || self.bad_offset(Code::OffsetSyntax, "Malformed UTC offset", place.clone());
        let (sign, value) = match text.as_bytes().first() {
            Some(b'+') => (1, &text[1..]),
            Some(b'-') => (-1, &text[1..]),
            _ => return Err(malformed()),
        };
        let (hours, minutes) = value.split_once(':').unwrap_or((value, "00"));
        if !matches!(hours.len(), 1 | 2) || minutes.len() != 2 {
            return Err(malformed());
        }
        let two_digits = |text| number(text).and_then(|number| i16::try_from(number).ok());
        let (Some(hours), Some(minutes)) = (two_digits(hours), two_digits(minutes)) else {
            return Err(malformed());
        };
        let total = sign * (hours * 60 + minutes);
        if minutes > 59 || !(MINUTES_MIN..=MINUTES_MAX).contains(&total) {
            return Err(self.bad_offset(Code::OffsetRange, "Invalid UTC offset", place));
        }
        Ok(total)
    }

    fn bad_offset(&self, code: Code, what: &str, place: Range<usize>) -> FuzzyError {
        let guidance = if code == Code::OffsetRange {
            "UTC offset must be in range UTC-12:00 to UTC+14:00"
        } else {
            "UTC offset must be written like utc+9, utc-5 or utc+05:30, or be one of: PST, PDT, EST, EDT, JST, IST"
        };
        let word = self.cursor.slice(place.clone());
        let help = word.contains('/').then(|| {
            format!("a zone by name stands beside the phrase: `@tz({word})` in a krontab, `--tz {word}` of the tool")
        });
        FuzzyError::new(code, place.clone(), self.in_phrase(what, place), guidance).with_help(help)
    }

    fn warn_of_ambiguity(&mut self, name: &str, place: &Range<usize>) {
        if let Some((_, headline, guidance)) = AMBIGUOUS.into_iter().find(|(zone, ..)| *zone == name) {
            let kind = FuzzyWarningKind::AmbiguousZone;
            self.warn(FuzzyWarning::new(
                kind,
                Some(place.clone()),
                headline.to_string(),
                Cow::Borrowed(guidance),
            ));
        }
    }
}

/// Whether a word behind a time was probably meant as its zone: it is short and of letters, or an
/// IANA name, or an offset without `utc`.
fn is_like_a_zone(word: &str) -> bool {
    let first = word.as_bytes().first().copied().unwrap_or_default();
    let is_short = word.len() <= 5 && word.bytes().all(|b| b.is_ascii_alphabetic());
    let is_named = first.is_ascii_alphabetic() && word.contains('/');
    let is_signed = matches!(first, b'+' | b'-') && word.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    let is_gmt = word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("gmt"));
    (is_short && !is_keyword(word)) || is_named || is_signed || is_gmt
}
