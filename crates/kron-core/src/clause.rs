//! The text of constraints: `hours=8-10;dow=MON-FRI;between=08:00-08:14`.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Range, RangeInclusive};

use jiff::civil::Date;

use kron_schedule::suggest::closest;

use crate::error::quoted;

/// One clause, read.
pub(crate) enum Clause {
    /// Minutes of the day.
    Between(RangeInclusive<u32>),
    Dates(RangeInclusive<Date>),
    /// Bit n stands for the value n.
    Values(Kind, u32),
}

/// Kinds of clauses that list small numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Days,
    Hours,
    Months,
    Weekdays,
}

/// The most clauses of one modifier. People write a handful; a list of holidays may take a few
/// modifiers.
pub(crate) const CLAUSES_MAX: usize = 64;

/// The keys of clauses. Their case counts.
const KEYS: [&str; 7] = ["hours", "dow", "dom", "months", "between", "date", "dates"];

/// Reads clauses with semicolons between. Nothing between two is allowed, nothing at all is not.
pub(crate) fn parse(text: &str) -> Result<Vec<Clause>, ConstraintError> {
    let whole = Piece { text, at: 0 };
    let mut clauses = Vec::new();
    for piece in whole.split(b';').map(Piece::trimmed).filter(|piece| !piece.text.is_empty()) {
        if clauses.len() == CLAUSES_MAX {
            let expected = format!("at most {CLAUSES_MAX} clauses");
            return Err(piece.error(expected).with_help("the rest can stand in another modifier"));
        }
        clauses.push(clause(piece)?);
    }
    if clauses.is_empty() {
        return Err(whole.trimmed().error("a clause such as `hours=8-10`"));
    }
    Ok(clauses)
}

fn clause(piece: Piece<'_>) -> Result<Clause, ConstraintError> {
    let Some((key, value)) = piece.split_once(b'=') else {
        return Err(piece.error("a clause such as `hours=8-10`"));
    };
    let (key, value) = (key.trimmed(), value.trimmed());
    match key.text {
        "between" => between(value).map(Clause::Between),
        "date" => date(value).map(|day| Clause::Dates(day..=day)),
        "dates" => dates(value).map(Clause::Dates),
        "dom" => values(Kind::Days, value),
        "dow" => values(Kind::Weekdays, value),
        "hours" => values(Kind::Hours, value),
        "months" => values(Kind::Months, value),
        _ => {
            let error = key.error("`hours`, `dow`, `dom`, `months`, `between`, `date` or `dates`");
            Err(match closest(key.text, KEYS) {
                Some(meant) => error.with_help(format!("did you mean `{meant}`?")),
                None => error,
            })
        }
    }
}

/// A list of values and ranges.
fn values(kind: Kind, list: Piece<'_>) -> Result<Clause, ConstraintError> {
    let mut bits = 0_u64;
    for item in list.split(b',') {
        let (first, last) = match item.split_once(b'-') {
            Some((first, last)) => (value(kind, first)?, value(kind, last)?),
            None => {
                let value = value(kind, item)?;
                (value, value)
            }
        };
        if first > last {
            let (from, to) = (kind.printed(first), kind.printed(last));
            let (min, max) = (kind.printed(kind.min()), kind.printed(kind.max()));
            let run = |a: &str, b: &str| if a == b { a.to_string() } else { format!("{a}-{b}") };
            let (late, early) = (run(&from, &max), run(&min, &to));
            // A range from 7 begins on Sunday already.
            let meant = if first > kind.max() { early } else { format!("{late},{early}") };
            return Err(item
                .error(format!("a range that ends at or after {from}"))
                .with_help(format!("ranges do not go round: write `{meant}`")));
        }
        // `last` is at most 31, so the shift by one more still fits.
        bits |= (2 << last) - (1 << first);
    }
    // Sunday is 0 and 7.
    if kind == Kind::Weekdays && bits >> 7 & 1 == 1 {
        bits = bits & 0x7F | 1;
    }
    let bits = u32::try_from(bits).expect("values are at most 31");
    Ok(Clause::Values(kind, bits))
}

/// A number or a name. For weekdays it may be 7.
fn value(kind: Kind, piece: Piece<'_>) -> Result<u32, ConstraintError> {
    let names = kind.names();
    let mut named = (kind.min()..).zip(names);
    if let Some((value, _)) = named.find(|(_, name)| name.eq_ignore_ascii_case(piece.text)) {
        return Ok(value);
    }
    let is_number = !piece.text.is_empty() && piece.text.bytes().all(|byte| byte.is_ascii_digit());
    let max = if kind == Kind::Weekdays { 7 } else { kind.max() };
    match piece.text.parse::<u32>() {
        Ok(number) if is_number && (kind.min()..=max).contains(&number) => Ok(number),
        _ => {
            let error = piece.error(kind.expected());
            Err(match closest(piece.text, names.iter().copied()) {
                Some(meant) => error.with_help(format!("did you mean `{meant}`?")),
                None if piece.text.starts_with('*') => {
                    error.with_help("a kind that is left out does not restrict")
                }
                None if piece.text.contains('/') => {
                    error.with_help("constraints have no steps; list the values")
                }
                None => error,
            })
        }
    }
}

impl Kind {
    fn key(self) -> &'static str {
        match self {
            Kind::Days => "dom",
            Kind::Hours => "hours",
            Kind::Months => "months",
            Kind::Weekdays => "dow",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Kind::Days => "a number from 1 to 31",
            Kind::Hours => "a number from 0 to 23",
            Kind::Months => "a number from 1 to 12 or a name from `JAN` to `DEC`",
            Kind::Weekdays => "a number from 0 to 7 or a name from `SUN` to `SAT`",
        }
    }

    fn min(self) -> u32 {
        match self {
            Kind::Days | Kind::Months => 1,
            Kind::Hours | Kind::Weekdays => 0,
        }
    }

    fn max(self) -> u32 {
        match self {
            Kind::Days => 31,
            Kind::Hours => 23,
            Kind::Months => 12,
            Kind::Weekdays => 6,
        }
    }

    /// Names of the values from the smallest on; empty for kinds without.
    fn names(self) -> &'static [&'static str] {
        match self {
            Kind::Days | Kind::Hours => &[],
            Kind::Months => {
                &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
            }
            Kind::Weekdays => &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
        }
    }

    fn name(self, value: u32) -> Option<&'static str> {
        self.names().get((value - self.min()) as usize).copied()
    }

    fn printed(self, value: u32) -> Cow<'static, str> {
        match self.name(value) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("{value}")),
        }
    }

    fn fmt_value(self, value: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name(value) {
            Some(name) => f.write_str(name),
            None => fmt::Display::fmt(&value, f),
        }
    }

    /// The clause in its canonical spelling: `hours=8-10,14`.
    pub(crate) fn fmt_clause(self, bits: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())?;
        let mut separator = "=";
        let mut rest = u64::from(bits);
        // One turn for each run of values: at most 16.
        while rest != 0 {
            let first = rest.trailing_zeros();
            let last = first + (rest >> first).trailing_ones() - 1;
            f.write_str(separator)?;
            self.fmt_value(first, f)?;
            if last > first {
                f.write_str("-")?;
                self.fmt_value(last, f)?;
            }
            rest = rest >> (last + 1) << (last + 1);
            separator = ",";
        }
        Ok(())
    }
}

/// `H:MM-HH:MM`, as minutes of the day.
fn between(piece: Piece<'_>) -> Result<RangeInclusive<u32>, ConstraintError> {
    let Some((start, end)) = piece.split_once(b'-') else {
        return Err(piece.error("two times such as `8:00-17:30`"));
    };
    let (first, last) = (minute_of_day(start)?, minute_of_day(end)?);
    if first > last {
        let (start, end) = (start.text, end.text);
        return Err(piece.error(format!("a range that ends at or after {start}")).with_help(format!(
            "a day ends at midnight: write `between={start}-23:59;between=00:00-{end}`"
        )));
    }
    Ok(first..=last)
}

fn minute_of_day(piece: Piece<'_>) -> Result<u32, ConstraintError> {
    let number = |text: &str, lengths: RangeInclusive<usize>, max: u32| {
        let digits = lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| digits && *number <= max)
    };
    piece
        .text
        .split_once(':')
        .and_then(|(hour, minute)| Some(number(hour, 1..=2, 23)? * 60 + number(minute, 2..=2, 59)?))
        .ok_or_else(|| piece.error("a time from `00:00` to `23:59`"))
}

/// `YYYY-MM-DD..YYYY-MM-DD`.
fn dates(piece: Piece<'_>) -> Result<RangeInclusive<Date>, ConstraintError> {
    let Some((start, end)) = piece.text.find("..").map(|at| piece.cut(at, 2)) else {
        return Err(piece.error("two dates such as `2026-12-24..2026-12-26`"));
    };
    let (first, last) = (date(start)?, date(end)?);
    if first > last {
        return Err(piece.error(format!("a range that ends at or after {first}")));
    }
    Ok(first..=last)
}

fn date(piece: Piece<'_>) -> Result<Date, ConstraintError> {
    let expected = "a date such as `2026-12-24`";
    let shaped = piece.text.len() == 10
        && piece.text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return Err(piece.error(expected));
    }
    let number = |range: Range<usize>| piece.text[range].parse::<i16>().unwrap_or(0);
    let small = |range: Range<usize>| i8::try_from(number(range)).unwrap_or(0);
    Date::new(number(0..4), small(5..7), small(8..10)).map_err(|_| piece.error("a day of the calendar"))
}

/// A part of the text, and where it begins in it.
#[derive(Clone, Copy)]
struct Piece<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Piece<'t> {
    fn trimmed(self) -> Piece<'t> {
        let blank = [' ', '\t'];
        let text = self.text.trim_start_matches(blank);
        let at = self.at + self.text.len() - text.len();
        Piece { text: text.trim_end_matches(blank), at }
    }

    /// What is before and after an ASCII character.
    fn split_once(self, separator: u8) -> Option<(Piece<'t>, Piece<'t>)> {
        // Pieces are so short that nothing cleverer would be faster.
        self.text.bytes().position(|byte| byte == separator).map(|at| self.cut(at, 1))
    }

    /// What is before a separator, and what is after it.
    fn cut(self, at: usize, separator_bytes: usize) -> (Piece<'t>, Piece<'t>) {
        let after = at + separator_bytes;
        let (before, rest) = (&self.text[..at], &self.text[after..]);
        (Piece { text: before, at: self.at }, Piece { text: rest, at: self.at + after })
    }

    fn split(self, separator: u8) -> impl Iterator<Item = Piece<'t>> {
        let mut rest = Some(self);
        core::iter::from_fn(move || {
            let whole = rest?;
            let (first, others) = whole.split_once(separator).map_or((whole, None), |(a, b)| (a, Some(b)));
            rest = others;
            Some(first)
        })
    }

    fn error(self, expected: impl Into<Cow<'static, str>>) -> ConstraintError {
        ConstraintError {
            span: self.at..self.at + self.text.len(),
            expected: expected.into(),
            found: quoted(self.text),
            help: None,
        }
    }
}

/// Why a text is not a constraint.
///
/// ```
/// use kron_core::Constraints;
///
/// let error = Constraints::default().add_only("dow=MON; hour=25").unwrap_err();
/// assert_eq!(error.span(), 9..13);
/// assert_eq!(error.found(), "`hour`");
/// assert_eq!(error.help(), Some("did you mean `hours`?"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConstraintError {
    span: Range<usize>,
    expected: Cow<'static, str>,
    found: Cow<'static, str>,
    help: Option<Cow<'static, str>>,
}

impl ConstraintError {
    fn with_help(mut self, help: impl Into<Cow<'static, str>>) -> ConstraintError {
        self.help = Some(help.into());
        self
    }

    /// Where the mistake is, in bytes of the text. Empty at a place where something is missing.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What would have been right, as a noun phrase.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What was there instead.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What to write instead, where Kron can tell.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The same error, for a text that begins `offset` bytes into a longer one.
    #[must_use]
    pub fn shifted(mut self, offset: usize) -> ConstraintError {
        self.span = self.span.start + offset..self.span.end + offset;
        self
    }
}

impl fmt::Display for ConstraintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, but found {}", self.expected, self.found)
    }
}

impl core::error::Error for ConstraintError {}
