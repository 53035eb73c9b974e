//! Short texts without an allocation: period names and keys, which are written for every decision.

use core::fmt;

use crate::calendar::{DAY, Ymd, iso_week, ymd};

/// Up to 23 ASCII characters: eight to a word, the first in the lowest byte, and zeros after the end.
///
/// Words, because what is stored in single bytes cannot be loaded at once by what hashes it.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(crate) struct Label {
    words: [u64; 3],
    length: usize,
}

/// `-009999-01-02T01:59:59Z`, the longest name of a second that jiff can tell.
pub(crate) const LABEL_BYTES_MAX: usize = 23;

/// The lengths of labels in years of four digits, which is nearly all of them.
pub(crate) const UTC_BYTES: usize = 20;
pub(crate) const DATE_BYTES: usize = 10;
pub(crate) const WEEK_BYTES: usize = 8;

impl Label {
    /// A second in UTC: `2026-03-01T00:00:00Z`.
    #[inline(always)]
    pub(crate) fn utc(second: i64) -> Label {
        let (day, second) = split_day(second);
        let (hour, minute) = (second / 3_600, second / 60);
        let date = ymd(day);
        let [year_month, day] = date_words(date);
        let time = pairs([hour, minute - 60 * hour, second - 60 * minute, 0]);
        let hour_minute = ascii(b"T\0\0:\0\0\0\0") | (time & 0xFFFF) << 8 | (time >> 16 & 0xFFFF) << 32;
        let second = ascii(b":\0\0Z\0\0\0\0") | (time >> 32 & 0xFFFF) << 8;
        Label::assemble(date.year, [year_month, day | hour_minute << 16, second], UTC_BYTES)
    }

    /// A day: `2026-03-01`.
    #[inline(always)]
    pub(crate) fn date(days: i32) -> Label {
        let date = ymd(days);
        let [year_month, day] = date_words(date);
        Label::assemble(date.year, [year_month, day, 0], DATE_BYTES)
    }

    /// An ISO week: `2026-W09`.
    #[inline(always)]
    pub(crate) fn week(days: i32) -> Label {
        let (year, week) = iso_week(days);
        let century = year.unsigned_abs() / 100;
        let digits = pairs([century, year.unsigned_abs() - 100 * century, week, 0]);
        let word = ascii(b"\0\0\0\0-W\0\0") | digits & 0xFFFF_FFFF | digits >> 32 << 48;
        Label::assemble(year, [word, 0, 0], WEEK_BYTES)
    }

    #[inline(always)]
    fn assemble(year: i32, words: [u64; 3], length: usize) -> Label {
        if year >= 0 {
            return Label { words, length };
        }
        // A year before 0 has six digits and a sign, as ISO 8601 wants.
        let (sign, [a, b, c]) = (ascii(b"-00\0\0\0\0\0"), words);
        Label { words: [sign | a << 24, a >> 40 | b << 24, b >> 40 | c << 24], length: length + 3 }
    }

    pub(crate) fn words(&self) -> &[u64; 3] {
        &self.words
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Calls a function with the text.
    pub(crate) fn with_str<R>(&self, f: impl FnOnce(&str) -> R) -> R {
        let bytes = self.words.map(u64::to_le_bytes);
        f(core::str::from_utf8(&bytes.as_flattened()[..self.length]).expect("labels are ASCII"))
    }
}

/// The day that a second lies in, in UTC, or locally if the offset has been added.
pub(crate) fn day_number(second: i64) -> i32 {
    split_day(second).0
}

/// The day that a second lies in, and the second of that day.
#[expect(clippy::cast_possible_truncation, reason = "jiff's calendar has 7 million days")]
pub(crate) fn split_day(second: i64) -> (i32, u32) {
    // Division is simplest of numbers that are not negative, so count from before jiff's calendar.
    const SHIFT_DAYS: i32 = 5_000_000;
    let shifted = (second + i64::from(SHIFT_DAYS) * DAY).cast_unsigned();
    let day = shifted / DAY.unsigned_abs();
    (day as i32 - SHIFT_DAYS, (shifted - day * DAY.unsigned_abs()) as u32)
}

/// `2026-03-` and `01`.
fn date_words(Ymd { year, month, day }: Ymd) -> [u64; 2] {
    let century = year.unsigned_abs() / 100;
    let digits = pairs([century, year.unsigned_abs() - 100 * century, month, day]);
    let year_month = ascii(b"\0\0\0\0-\0\0-") | digits & 0xFFFF_FFFF | (digits >> 32 & 0xFFFF) << 40;
    [year_month, digits >> 48]
}

/// Four numbers below 100 as two digits each, the first in the lowest bytes.
fn pairs([a, b, c, d]: [u32; 4]) -> u64 {
    // All four at once, each in its 16 bits: 103/1024 is close enough to a tenth below 100.
    let numbers = u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48;
    let tens = ((numbers * 103) >> 10) & 0x000F_000F_000F_000F;
    let ones = numbers - tens * 10;
    0x3030_3030_3030_3030 | tens | ones << 8
}

/// Eight characters, the first in the lowest byte.
const fn ascii(text: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*text)
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| f.pad(text))
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_str(|text| fmt::Debug::fmt(text, f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use std::string::ToString;

    #[test]
    fn seconds_are_printed_as_jiff_prints_them() {
        let mut state = 5_u64;
        let span = Timestamp::MAX.as_second() - Timestamp::MIN.as_second();
        let random = (0..200_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Timestamp::MIN.as_second() + i64::try_from(state >> 1).unwrap() % span
        });
        let ends = [Timestamp::MIN.as_second(), -1, 0, 1, Timestamp::MAX.as_second()];
        for second in random.chain(ends) {
            let expected = Timestamp::from_second(second).unwrap().to_string();
            assert_eq!(Label::utc(second).to_string(), expected);
            assert_eq!(Label::date(day_number(second)).to_string(), expected.split('T').next().unwrap());
        }
    }
}
