//! Text and a dialect become an expression, or an error with its place.
//!
//! One pass, fields in order, the first mistake wins. Faults of the whole expression (nothing
//! written, a foreign character, a wrong number of fields) come before those of a field. Who shows
//! mistakes to people asks for all of them, with [`errors`].

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::alias;
use crate::dialect::Dialect;
use crate::error::{ErrorKind, ParseError};
use crate::expr::{Cron, Days, Expr, Fields, Shape, Span, Values, Weekdays, ones};
use crate::field::{Field, progression};
use crate::plain::plain;
use crate::suggest::did_you_mean;

/// The longest text taken for an expression: with every value of every field written out it would
/// have about 600 bytes.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 1_024;

pub(crate) fn parse(text: &str, dialect: Dialect) -> Result<Expr, ParseError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(ParseError {
            kind: ErrorKind::TooLong,
            field: None,
            span: 0..text.len(),
            expected: format!("at most {EXPRESSION_BYTES_MAX} bytes").into(),
            found: format!("{}", text.len()).into(),
            help: None,
        });
    }
    if !text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        no_strangers(text)?;
    }
    let at = text.bytes().position(|byte| !is_blank(byte));
    match at.map(|at| (at, text.as_bytes()[at])) {
        None => Err(ParseError {
            kind: ErrorKind::Empty,
            field: None,
            span: 0..0,
            expected: field_count(dialect).into(),
            found: "nothing".into(),
            help: None,
        }),
        Some((at, b'@')) => {
            alias::parse(text.trim_matches(BLANKS), at, dialect).map_err(|error| error.shifted(at))
        }
        Some(_) => cron(text, dialect).map(Expr::Cron),
    }
}

/// No character but those of expressions; durations may have a micro sign.
#[cold]
fn no_strangers(text: &str) -> Result<(), ParseError> {
    let stranger = |c: char| !matches!(c, '\t' | ' '..='~' | '\u{b5}' | '\u{3bc}');
    match text.char_indices().find(|&(_, c)| stranger(c)) {
        None => Ok(()),
        Some((at, c)) => Err(ParseError {
            kind: ErrorKind::Unexpected,
            field: None,
            span: at..at + c.len_utf8(),
            expected: "only ASCII letters, digits and signs, parted by spaces or tabs".into(),
            found: format!("U+{:04X}", u32::from(c)).into(),
            help: None,
        }),
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

pub(crate) const BLANKS: [char; 2] = [' ', '\t'];

/// The longest piece of a text quoted in a message.
const QUOTED_CHARS_MAX: usize = 40;

/// A piece of the text, short enough to be part of a sentence.
pub(crate) fn shortened(piece: &str) -> Cow<'_, str> {
    match piece.char_indices().nth(QUOTED_CHARS_MAX) {
        None => Cow::Borrowed(piece),
        Some((end, _)) => Cow::Owned(format!("{}…", &piece[..end])),
    }
}

fn field_count(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Kron | Dialect::Posix => "5 fields (minute hour day month weekday)",
        Dialect::Ojs => "5 fields (minute hour day month weekday), or 6 with seconds first",
    }
}

/// The most fields of any dialect.
const FIELDS_MAX: usize = 6;

/// Every mistake of a text: the one of the whole expression, or one for each item of a field.
pub(crate) fn errors(text: &str, dialect: Dialect) -> Vec<ParseError> {
    let Err(first) = parse(text, dialect) else {
        return Vec::new();
    };
    let Ok((places, with_seconds)) = places(text, dialect) else {
        return alloc::vec![first];
    };
    if first.field.is_none() {
        return alloc::vec![first];
    }
    let fields = if with_seconds { &Field::ALL[..] } else { &Field::ALL[1..] };
    let parsers = fields.iter().map(|field| Parser::new(text, dialect, *field, &places));
    parsers.flat_map(|parser| parser.errors()).collect()
}

/// Five or six fields.
pub(crate) fn cron(text: &str, dialect: Dialect) -> Result<Cron, ParseError> {
    let (places, with_seconds) = places(text, dialect)?;
    let bytes = text.as_bytes();
    let plainly = |field: Field| plain(&bytes[places[field as usize].clone()], field, dialect);
    let carefully = |field: Field| Parser::new(text, dialect, field, &places).field();
    let values = |field: Field| match plainly(field) {
        Some(values) => Ok(values),
        None => Ok(carefully(field)?.values),
    };
    let fields = Fields {
        second: if with_seconds { values(Field::Second)? } else { Values::only(0) },
        minute: values(Field::Minute)?,
        hour: values(Field::Hour)?,
        day: match plainly(Field::Day) {
            Some(values) => Days { values, nearest: 0, last: false, last_weekday: false },
            None => carefully(Field::Day)?.days(),
        },
        month: values(Field::Month)?,
        weekday: match plainly(Field::Weekday) {
            Some(values) => Weekdays { values, last: 0, nth: [0; 5] },
            None => carefully(Field::Weekday)?.weekdays(),
        },
    };
    Ok(Cron::new(dialect, fields, places.map(|place| span(&place))))
}

/// Where each field stands, and whether the first is one of seconds. If not, its place is empty.
fn places(text: &str, dialect: Dialect) -> Result<([Range<usize>; FIELDS_MAX], bool), ParseError> {
    let bytes = text.as_bytes();
    let mut places: [Range<usize>; FIELDS_MAX] = Default::default();
    let mut count = 0;
    let mut surplus = 0..0;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && !is_blank(bytes[at]) {
            at += 1;
        }
        if start < at {
            match places.get_mut(count) {
                Some(free) => *free = start..at,
                None => surplus = start..at,
            }
            count += 1;
        }
        at += 1;
    }
    let with_seconds = match (count, dialect) {
        (5, _) => false,
        (6, Dialect::Ojs) => true,
        _ => return Err(wrong_count(text, dialect, count, &places, &surplus)),
    };
    if !with_seconds {
        places.rotate_right(1); // the last place, empty, stands for the seconds
    }
    Ok((places, with_seconds))
}

#[expect(clippy::cast_possible_truncation, reason = "at most EXPRESSION_BYTES_MAX")]
pub(crate) fn span(place: &Range<usize>) -> Span {
    Span { start: place.start as u16, end: place.end as u16 }
}

fn wrong_count(
    text: &str,
    dialect: Dialect,
    count: usize,
    places: &[Range<usize>; FIELDS_MAX],
    surplus: &Range<usize>,
) -> ParseError {
    let end = text.trim_end_matches(BLANKS).len();
    let span = match count {
        0..=4 => end..end,
        5..=FIELDS_MAX => places[count - 1].clone(),
        _ => surplus.clone(),
    };
    let help = match (count, dialect) {
        (6, _) => Some(format!("the {dialect} dialect has no seconds: leave the first field out").into()),
        _ => None,
    };
    ParseError {
        kind: ErrorKind::FieldCount,
        field: None,
        span,
        expected: field_count(dialect).into(),
        found: count.to_string().into(),
        help,
    }
}

/// What one field says. Which of the members can be set depends on the field.
struct Parsed {
    values: Values,
    nearest: u32,
    last: bool,
    last_weekday: bool,
    last_of: u8,
    nth: [u8; 5],
}

impl Parsed {
    fn days(&self) -> Days {
        let Parsed { values, nearest, last, last_weekday, .. } = *self;
        Days { values, nearest, last, last_weekday }
    }

    fn weekdays(&self) -> Weekdays {
        Weekdays { values: self.values, last: self.last_of, nth: self.nth }
    }
}

/// Reads one field.
struct Parser<'t> {
    text: &'t str,
    dialect: Dialect,
    field: Field,
    place: Range<usize>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, dialect: Dialect, field: Field, places: &[Range<usize>; FIELDS_MAX]) -> Parser<'t> {
        Parser { text, dialect, field, place: places[field as usize].clone() }
    }

    fn field(&self) -> Result<Parsed, ParseError> {
        let mut parsed = self.nothing();
        self.items().try_for_each(|item| self.item(item, &mut parsed))?;
        Ok(parsed)
    }

    /// The mistakes of all items.
    fn errors(&self) -> Vec<ParseError> {
        let mut parsed = self.nothing();
        self.items().filter_map(|item| self.item(item, &mut parsed).err()).collect()
    }

    fn token(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.place.clone()]
    }

    /// A field of that shape before any of its items is read.
    fn nothing(&self) -> Parsed {
        let shape = match self.token() {
            [b'*'] => Shape::Star,
            [b'*', ..] => Shape::StarLed,
            _ => Shape::List,
        };
        Parsed {
            values: Values { shape, bits: 0 },
            nearest: 0,
            last: false,
            last_weekday: false,
            last_of: 0,
            nth: [0; 5],
        }
    }

    /// Where the items of the list stand.
    fn items(&self) -> impl Iterator<Item = Range<usize>> + use<'t> {
        let (bytes, end) = (self.text.as_bytes(), self.place.end);
        let mut next = Some(self.place.start);
        core::iter::from_fn(move || {
            let start = next?;
            let comma = bytes[start..end].iter().position(|byte| *byte == b',').map(|length| start + length);
            next = comma.map(|comma| comma + 1);
            Some(start..comma.unwrap_or(end))
        })
    }

    fn item(&self, place: Range<usize>, parsed: &mut Parsed) -> Result<(), ParseError> {
        if place.is_empty() {
            let nearby =
                place.start.saturating_sub(1).max(self.place.start)..(place.end + 1).min(self.place.end);
            return Err(self.error(ErrorKind::EmptyItem, nearby, self.number(), "an empty list item"));
        }
        let mut cursor = Cursor { text: self.text, at: place.start, end: place.end };
        if cursor.eat(b'*') {
            return self.star(cursor, &place, parsed);
        }
        if self.dialect.has_quartz_forms() && self.field == Field::Day {
            match self.text.as_bytes()[place.clone()] {
                [b'L' | b'l'] => {
                    parsed.last = true;
                    return Ok(());
                }
                [b'L' | b'l', b'W' | b'w'] => {
                    parsed.last_weekday = true;
                    return Ok(());
                }
                _ => {}
            }
        }
        let from = self.value(&mut cursor)?;
        if self.special(&mut cursor, from, parsed)? {
            return self.end(&cursor, "the end of the item");
        }
        if cursor.eat(b'-') {
            let to = self.value(&mut cursor)?;
            let range = place.start..cursor.at;
            let step = self.step(&mut cursor, &place)?;
            self.end(&cursor, self.after(step, false))?;
            if from > to {
                return Err(self.reversed(range, from, to, step));
            }
            self.add(parsed, from, to, step.unwrap_or(1));
        } else if cursor.peek() == Some(b'/') {
            let step = self.step(&mut cursor, &place)?.unwrap_or(1);
            self.end(&cursor, "`,` or the end of the field")?;
            if !self.dialect.has_quartz_forms() {
                let max = self.field.max();
                let help = match from {
                    7 if self.field == Field::Weekday => "write `0` for Sunday".into(),
                    _ => format!("write `{from}-{max}/{step}`, from {from} to the end"),
                };
                let found = quoted(&self.text[place.clone()]);
                return Err(self
                    .error(ErrorKind::Step, place, "a range before the step", found)
                    .with_help(help));
            }
            self.add(parsed, from, self.field.max().max(from), step);
        } else {
            self.end(&cursor, self.after(None, true))?;
            self.add(parsed, from, from, 1);
        }
        Ok(())
    }

    fn star(
        &self,
        mut cursor: Cursor<'_>,
        place: &Range<usize>,
        parsed: &mut Parsed,
    ) -> Result<(), ParseError> {
        let step = self.step(&mut cursor, place)?;
        self.end(&cursor, self.after(step, false))?;
        if !self.dialect.is_extended() && *place != self.place {
            return Err(self
                .error(ErrorKind::Unexpected, place.clone(), self.number(), "`*` inside a list")
                .with_help("`*` stands alone: it already means every value"));
        }
        self.add(parsed, self.field.min(), self.field.max(), step.unwrap_or(1));
        Ok(())
    }

    /// What may come after a value or a range, and after its step if it has one.
    fn after(&self, step: Option<u32>, value: bool) -> &'static str {
        match (self.dialect.is_extended() && step.is_none(), value) {
            (true, true) => "`,`, `-`, `/` or the end of the field",
            (true, false) => "`,`, `/` or the end of the field",
            (false, true) => "`,`, `-` or the end of the field",
            (false, false) => "`,` or the end of the field",
        }
    }

    /// Adds the values of a range; Sunday may have been written 7.
    fn add(&self, parsed: &mut Parsed, from: u32, to: u32, step: u32) {
        let mut bits = progression(from, to, step);
        if self.field == Field::Weekday {
            bits = bits & Field::Weekday.all() | bits >> 7 & 1;
        }
        parsed.values.bits |= bits;
    }

    /// `15W`, `5L` and `5#3`, once the value is read.
    fn special(&self, cursor: &mut Cursor<'_>, value: u32, parsed: &mut Parsed) -> Result<bool, ParseError> {
        if !self.dialect.has_quartz_forms() {
            return Ok(false);
        }
        match (self.field, cursor.peek().map(|b| b.to_ascii_uppercase())) {
            (Field::Day, Some(b'W')) => {
                cursor.at += 1;
                parsed.nearest |= 1 << value;
            }
            (Field::Weekday, Some(b'L')) => {
                cursor.at += 1;
                parsed.last_of |= 1 << (value % 7);
            }
            (Field::Weekday, Some(b'#')) => {
                cursor.at += 1;
                let digits = cursor.take(|b| b.is_ascii_digit());
                let k = number(&self.text.as_bytes()[digits.clone()]);
                let Some(nth) = (k as usize).checked_sub(1).and_then(|k| parsed.nth.get_mut(k)) else {
                    let (place, found) = self.found(digits, cursor);
                    return Err(self.error(ErrorKind::Range, place, "a number from 1 to 5", found));
                };
                *nth |= 1 << (value % 7);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A number or a name.
    fn value(&self, cursor: &mut Cursor<'_>) -> Result<u32, ParseError> {
        let digits = cursor.take(|b| b.is_ascii_digit());
        if digits.is_empty() {
            return self.name(cursor);
        }
        let value = number(&self.text.as_bytes()[digits.clone()]);
        if (self.field.min()..=self.largest()).contains(&value) {
            return Ok(value);
        }
        let found = quoted(&self.text[digits.clone()]);
        let error = self.error(ErrorKind::Range, digits, self.range(), found);
        Err(match (self.field, value) {
            (Field::Weekday, 7) => error.with_help("Sunday is 0 in this dialect"),
            _ => error,
        })
    }

    /// A three-letter name; a last weekday, `FRIL`, leaves its `L` to be read.
    fn name(&self, cursor: &mut Cursor<'_>) -> Result<u32, ParseError> {
        let start = cursor.at;
        let word = cursor.take(|b| b.is_ascii_alphabetic());
        let name = &self.text[word.clone()];
        if name.is_empty() {
            return Err(self.no_value(cursor));
        }
        if self.dialect.is_extended() {
            if let Some(value) = self.named(name) {
                return Ok(value);
            }
            if self.dialect.has_quartz_forms()
                && self.field == Field::Weekday
                && name.len() == 4
                && let (Some(value), "L" | "l") = (self.named(&name[..3]), &name[3..])
            {
                cursor.at = start + 3;
                return Ok(value);
            }
        }
        Err(self.wrong_name(word))
    }

    fn named(&self, name: &str) -> Option<u32> {
        let names = self.field.names();
        let index = names.iter().position(|candidate| candidate.eq_ignore_ascii_case(name))?;
        u32::try_from(index).ok().map(|index| index + self.field.min())
    }

    /// `/` and the step, if there is one. A step past the field's end is as good as the end.
    fn step(&self, cursor: &mut Cursor<'_>, item: &Range<usize>) -> Result<Option<u32>, ParseError> {
        let slash = cursor.at;
        if !cursor.eat(b'/') {
            return Ok(None);
        }
        let digits = cursor.take(|b| b.is_ascii_digit());
        let step = number(&self.text.as_bytes()[digits.clone()]);
        if !self.dialect.is_extended() {
            let found = format!("the step `{}`", shortened(&self.text[slash..item.end]));
            let error = self.error(ErrorKind::Step, slash..item.end, self.number(), found);
            let written_out = self.text[item.clone()] == format!("*/{step}") && (2..=30).contains(&step);
            return Err(if written_out {
                let values = ones(progression(self.field.min(), self.field.max(), step));
                let list: Vec<String> = values.map(|value| value.to_string()).collect();
                error.with_help(format!("write the values: `{}`", list.join(",")))
            } else {
                error
            });
        }
        if step == 0 {
            let (place, found) = self.found(digits, cursor);
            return Err(self.error(ErrorKind::Step, place, "a step of at least 1", found));
        }
        Ok(Some(step.min(64)))
    }

    /// The item must end here.
    fn end(&self, cursor: &Cursor<'_>, expected: &'static str) -> Result<(), ParseError> {
        let Some(next) = cursor.peek() else {
            return Ok(());
        };
        let rest = cursor.at..cursor.end;
        let found = quoted(&self.text[rest.clone()]);
        let after_digit =
            cursor.at > self.place.start && self.text.as_bytes()[cursor.at - 1].is_ascii_digit();
        if matches!(next, b'?' | b'#' | b'L' | b'l' | b'W' | b'w') {
            return Err(self.quartz(rest));
        }
        if after_digit && (next.is_ascii_alphabetic() || next == b'.') {
            let start = self.text[..cursor.at].trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let whole = start..cursor.end;
            let found = quoted(&self.text[whole.clone()]);
            return Err(self
                .error(ErrorKind::Number, whole, self.number(), found)
                .with_help("numbers are written in plain decimal digits"));
        }
        Err(self.error(ErrorKind::Unexpected, rest, expected, found))
    }

    fn no_value(&self, cursor: &Cursor<'_>) -> ParseError {
        let rest = cursor.at..cursor.end;
        match cursor.peek() {
            None => self.error(ErrorKind::Unexpected, rest, self.number(), "nothing"),
            Some(b'?' | b'#') => self.quartz(rest),
            Some(b'+' | b'-') => {
                let found = quoted(&self.text[rest.clone()]);
                self.error(ErrorKind::Number, rest, self.number(), found)
                    .with_help("numbers are written without a sign")
            }
            Some(_) => {
                let found = quoted(&self.text[rest.clone()]);
                self.error(ErrorKind::Unexpected, rest, self.number(), found)
            }
        }
    }

    fn wrong_name(&self, word: Range<usize>) -> ParseError {
        let name = &self.text[word.clone()];
        if matches!(self.field, Field::Day | Field::Weekday)
            && ["L", "LW", "W"].iter().any(|form| name.eq_ignore_ascii_case(form))
        {
            return self.quartz(word);
        }
        let error = self.error(ErrorKind::Name, word.clone(), self.number(), quoted(name));
        let prefix = name.get(..3).and_then(|prefix| self.named(prefix));
        match (self.field.names(), prefix) {
            ([], _) => error,
            (_, Some(value)) if !self.dialect.is_extended() => error.with_help(format!("write `{value}`")),
            (names, Some(value)) => {
                error.with_help(format!("did you mean `{}`?", names[(value - self.field.min()) as usize]))
            }
            (names, None) if self.dialect.is_extended() => match did_you_mean(name, names.iter().copied()) {
                Some(help) => error.with_help(help),
                None => error,
            },
            _ => error,
        }
    }

    /// `?`, `L`, `W` and `#` where they have no place.
    fn quartz(&self, place: Range<usize>) -> ParseError {
        let piece = &self.text[place.clone()];
        let help: Cow<'static, str> = if piece.starts_with('?') {
            "write `*` for any value".into()
        } else if !self.dialect.has_quartz_forms() {
            format!("the {} dialect has no `L`, `W` and `#`; the ojs dialect does", self.dialect).into()
        } else if self.field == Field::Weekday {
            "the last Friday of the month is `5L`, the third is `5#3`".into()
        } else {
            "`L`, `LW` and `15W` stand alone in the day field, `5L` and `5#3` in the weekday field".into()
        };
        let found = quoted(piece);
        self.error(ErrorKind::Special, place, self.number(), found).with_help(help)
    }

    fn reversed(&self, place: Range<usize>, from: u32, to: u32, step: Option<u32>) -> ParseError {
        let (min, max) = (self.field.min(), self.field.max());
        let found = quoted(&self.text[place.clone()]);
        let error = self.error(ErrorKind::Reversed, place, "a range that ascends", found);
        if step.is_some() {
            return error; // two ranges with that step would not be the same
        }
        error.with_help(if self.field == Field::Weekday && to == 0 && self.dialect.is_extended() {
            format!("write `{from}-7`: 7 is Sunday too")
        } else if from == 7 {
            format!("write `0-{to}`: 0 is Sunday too")
        } else {
            let part =
                |from: u32, to: u32| if from == to { from.to_string() } else { format!("{from}-{to}") };
            format!("write `{},{}`", part(from, max), part(min, to))
        })
    }

    /// What values look like here: "a number from 0 to 59".
    fn range(&self) -> String {
        format!("a number from {} to {}", self.field.min(), self.largest())
    }

    /// The largest number that can be written: Sunday is also 7.
    fn largest(&self) -> u32 {
        self.field.max() + u32::from(self.field == Field::Weekday && self.dialect.is_extended())
    }

    /// The same, with names where there are some.
    fn number(&self) -> String {
        match self.field.names() {
            [first, .., last] if self.dialect.is_extended() => {
                format!("{} or {first} to {last}", self.range())
            }
            _ => self.range(),
        }
    }

    /// What stands where digits were wanted: the digits, or what comes instead.
    fn found(&self, digits: Range<usize>, cursor: &Cursor<'_>) -> (Range<usize>, Cow<'static, str>) {
        let place = if digits.is_empty() { digits.start..cursor.end } else { digits };
        let found = match &self.text[place.clone()] {
            "" => Cow::Borrowed("nothing"),
            piece => Cow::Owned(quoted(piece)),
        };
        (place, found)
    }

    fn error(
        &self,
        kind: ErrorKind,
        span: Range<usize>,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> ParseError {
        ParseError {
            kind,
            field: Some(self.field),
            span,
            expected: expected.into(),
            found: found.into(),
            help: None,
        }
    }
}

impl ParseError {
    pub(crate) fn with_help(mut self, help: impl Into<Cow<'static, str>>) -> ParseError {
        self.help = Some(help.into());
        self
    }
}

pub(crate) fn quoted(piece: &str) -> String {
    format!("`{}`", shortened(piece))
}

/// The value of decimal digits; past four billion they are all out of any range alike.
fn number(digits: &[u8]) -> u32 {
    digits
        .iter()
        .fold(0, |value: u32, digit| value.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
}

/// A place within one item of a field.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
    end: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes()[self.at..self.end].first().copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        start..self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_096))]

        /// Fields of few signs, so that many are right, and many nearly.
        #[test]
        fn what_is_read_plainly_is_read_alike(
            token in "([*0-9]{1,2}|(?i:mon|sun|jan|dec))([-/,*0-9]{1,2}([0-9]{0,2}|SAT|mar|L)){0,4}",
        ) {
            for dialect in [Dialect::Kron, Dialect::Ojs, Dialect::Posix] {
                for field in Field::ALL {
                    if let Some(values) = plain(token.as_bytes(), field, dialect) {
                        let parser = Parser { text: &token, dialect, field, place: 0..token.len() };
                        let parsed = parser.field().map_err(|error| TestCaseError::fail(error.to_string()))?;
                        prop_assert_eq!(values, parsed.values, "{} as {} in {}", token, field, dialect);
                        prop_assert_eq!(parsed.nearest | u32::from(parsed.last_of), 0);
                    }
                }
            }
        }
    }
}
