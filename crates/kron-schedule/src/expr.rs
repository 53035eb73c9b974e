//! What was written, parsed: it can be compared, printed in one spelling, described and compiled.

use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Range;

use crate::dialect::Dialect;
use crate::error::ParseError;
use crate::every::Every;
use crate::field::{Field, progression};

/// A parsed schedule expression.
///
/// Two expressions are equal when each field names the same values and begins with `*` in both or in
/// neither, however they were spelled. [`Display`](fmt::Display) prints one canonical spelling of
/// that, and parsing it gives an equal expression.
///
/// ```
/// use kron_schedule::{Dialect, Expr};
///
/// let expr = Expr::parse("00  9-17 * jan,feb,Mar mon-fri", Dialect::Kron)?;
/// assert_eq!(expr.to_string(), "0 9-17 * 1-3 1-5");
/// assert_eq!(expr, Expr::parse("0 9-17 * 1-3 1-5", Dialect::Kron)?);
/// assert_eq!(Expr::parse("@daily", Dialect::Kron)?.to_string(), "0 0 * * *");
/// # Ok::<(), kron_schedule::ParseError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Expr {
    /// Calendar fields.
    Cron(Cron),
    /// An interval, `@every`.
    Every(Every),
}

impl Expr {
    /// Reads an expression in the given dialect.
    ///
    /// # Errors
    ///
    /// The first mistake, with its place, what was expected and what was found.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Expr, ParseError> {
        crate::parse::parse(text, dialect)
    }

    /// Every mistake of a text, in the order of their places: one for each item of each field. None if
    /// it is an expression.
    ///
    /// ```
    /// use kron_schedule::{Dialect, Expr};
    ///
    /// let errors = Expr::errors("61 25 * * 1,9", Dialect::Kron);
    /// let found: Vec<&str> = errors.iter().map(|error| error.found()).collect();
    /// assert_eq!(found, ["`61`", "`25`", "`9`"]);
    /// ```
    #[must_use]
    pub fn errors(text: &str, dialect: Dialect) -> Vec<ParseError> {
        crate::parse::errors(text, dialect)
    }

    /// The dialect it was written in.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self {
            Expr::Cron(cron) => cron.dialect,
            Expr::Every(every) => every.dialect(),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Cron(cron) => cron.fmt(f),
            Expr::Every(every) => every.fmt(f),
        }
    }
}

/// The calendar fields of an expression.
#[derive(Clone, Copy, Debug)]
pub struct Cron {
    pub(crate) dialect: Dialect,
    pub(crate) fields: Fields,
    spans: [Span; 6],
}

/// The values each field names. Everything the schedule depends on is here.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Fields {
    pub(crate) second: Values,
    pub(crate) minute: Values,
    pub(crate) hour: Values,
    pub(crate) day: Days,
    pub(crate) month: Values,
    pub(crate) weekday: Weekdays,
}

/// The values of one field, and as much of their spelling as has a meaning.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Values {
    pub(crate) shape: Shape,
    /// Bit n stands for the value n.
    pub(crate) bits: u64,
}

/// How a field is spelled, as far as rules depend on it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Shape {
    /// Exactly `*`: the field does not restrict.
    Star,
    /// Begins with `*` and goes on: an interval to [`Fold::Auto`](crate::Fold::Auto), a restriction
    /// to the day rule.
    StarLed,
    /// Begins with a value.
    List,
}

/// The day-of-month field.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Days {
    pub(crate) values: Values,
    /// Bit n stands for `nW`, the weekday nearest to day n.
    pub(crate) nearest: u32,
    /// `L`, the last day of the month.
    pub(crate) last: bool,
    /// `LW`, the last Monday-to-Friday day of the month.
    pub(crate) last_weekday: bool,
}

/// The day-of-week field.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Weekdays {
    pub(crate) values: Values,
    /// Bit n stands for `nL`, the last such weekday of the month.
    pub(crate) last: u8,
    /// Bit n of `nth[k - 1]` stands for `n#k`, the k-th such weekday of the month.
    pub(crate) nth: [u8; 5],
}

/// A place in the text. Two bytes each suffice, because the text is bounded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) start: u16,
    pub(crate) end: u16,
}

impl Cron {
    pub(crate) fn new(dialect: Dialect, fields: Fields, spans: [Span; 6]) -> Cron {
        Cron { dialect, fields, spans }
    }

    /// Where the field stands in the text, in bytes. An alias has all its fields in one place.
    #[must_use]
    pub fn span(&self, field: Field) -> Range<usize> {
        let Span { start, end } = self.spans[field as usize];
        start.into()..end.into()
    }

    /// Whether the minute or the hour field begins with `*`: such an expression is an interval
    /// rather than a time of day.
    #[must_use]
    pub fn is_interval(&self) -> bool {
        self.fields.minute.shape != Shape::List || self.fields.hour.shape != Shape::List
    }

    /// Whether a day must satisfy the day-of-month field: it does unless that is exactly `*`.
    pub(crate) fn restricts_day(&self) -> bool {
        self.fields.day.values.shape != Shape::Star
    }

    /// Whether a day must satisfy the day-of-week field: it does unless that is exactly `*`.
    pub(crate) fn restricts_weekday(&self) -> bool {
        self.fields.weekday.values.shape != Shape::Star
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Cron) -> bool {
        (self.dialect, &self.fields) == (other.dialect, &other.fields)
    }
}

impl Eq for Cron {}

impl Hash for Cron {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.dialect, self.fields).hash(state);
    }
}

impl Values {
    pub(crate) const fn only(value: u32) -> Values {
        Values { shape: Shape::List, bits: 1 << value }
    }

    /// For a field that begins with `*`: its step, the smallest that fits, and what is left over.
    pub(crate) fn led(self, field: Field) -> Option<(u32, u64)> {
        if self.shape != Shape::StarLed {
            return None;
        }
        let (min, max) = (field.min(), field.max());
        (1..=max + 1).find_map(|step| {
            let every = progression(min, max, step);
            (every & !self.bits == 0).then_some((step, self.bits & !every))
        })
    }
}

/// The canonical spelling: see [`Expr`].
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fields { second, minute, hour, day, month, weekday } = &self.fields;
        if *second != Values::only(0) {
            self.list(f, Field::Second).values(*second)?;
            f.write_str(" ")?;
        }
        self.list(f, Field::Minute).values(*minute)?;
        f.write_str(" ")?;
        self.list(f, Field::Hour).values(*hour)?;
        f.write_str(" ")?;
        let mut list = self.list(f, Field::Day);
        list.values(day.values)?;
        for n in ones(day.nearest.into()) {
            list.item(format_args!("{n}W"))?;
        }
        if day.last {
            list.item(format_args!("L"))?;
        }
        if day.last_weekday {
            list.item(format_args!("LW"))?;
        }
        f.write_str(" ")?;
        self.list(f, Field::Month).values(*month)?;
        f.write_str(" ")?;
        let mut list = self.list(f, Field::Weekday);
        list.values(weekday.values)?;
        for (k, bits) in (1..).zip(weekday.nth) {
            for n in ones(bits.into()) {
                list.item(format_args!("{n}#{k}"))?;
            }
        }
        for n in ones(weekday.last.into()) {
            list.item(format_args!("{n}L"))?;
        }
        Ok(())
    }
}

impl Cron {
    fn list<'a, 'b>(&self, f: &'a mut fmt::Formatter<'b>, field: Field) -> List<'a, 'b> {
        List { f, field, steps: self.dialect.is_extended(), first: true }
    }
}

/// Writes the members of one field with commas between.
struct List<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    field: Field,
    /// Whether the dialect has steps.
    steps: bool,
    first: bool,
}

/// From how many members on a progression is written as a range with a step, rather than listed.
const PROGRESSION_MIN: u32 = 5;
/// From how many members on consecutive values are written as a range.
const RUN_MIN: u32 = 3;

impl List<'_, '_> {
    fn item(&mut self, item: fmt::Arguments<'_>) -> fmt::Result {
        if !self.first {
            self.f.write_str(",")?;
        }
        self.first = false;
        self.f.write_fmt(item)
    }

    fn values(&mut self, values: Values) -> fmt::Result {
        if values.shape == Shape::Star {
            return self.item(format_args!("*"));
        }
        let mut bits = values.bits;
        if let Some((step, rest)) = values.led(self.field) {
            self.item(format_args!("*/{step}"))?;
            bits = rest;
        }
        if self.steps && self.field == Field::Weekday && bits & 0b110_0011 == 0b110_0001 {
            // Friday, Saturday and Sunday are one run when Sunday is written 7.
            bits = bits & !1 | 1 << 7;
        }
        match stride(bits) {
            Some((from, to, step)) if self.steps => self.item(format_args!("{from}-{to}/{step}")),
            _ => self.runs(bits),
        }
    }

    fn runs(&mut self, mut bits: u64) -> fmt::Result {
        while bits != 0 {
            let from = bits.trailing_zeros();
            let length = (bits >> from).trailing_ones();
            let to = from + length - 1;
            if length >= RUN_MIN {
                self.item(format_args!("{from}-{to}"))?;
            } else {
                for value in from..=to {
                    self.item(format_args!("{value}"))?;
                }
            }
            bits &= !progression(from, to, 1);
        }
        Ok(())
    }
}

/// The bits as one progression of a step over 1, if they are one worth writing so.
fn stride(bits: u64) -> Option<(u32, u32, u32)> {
    if bits.count_ones() < PROGRESSION_MIN {
        return None;
    }
    let from = bits.trailing_zeros();
    let to = 63 - bits.leading_zeros();
    let step = (bits & (bits - 1)).trailing_zeros() - from;
    (step > 1 && progression(from, to, step) == bits).then_some((from, to, step))
}

/// The positions of the set bits, ascending.
pub(crate) fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
        lowest
    })
}
