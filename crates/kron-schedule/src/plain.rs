//! Fields of numbers and names, which nearly all fields are, read in one short pass.
//!
//! This reader knows only what is right. It has no opinion of forms like `5L` and of mistakes: for those there is the
//! parser, which can say where they are and what was expected. What both can read, both read alike.

use crate::dialect::Dialect;
use crate::expr::{Shape, Values};
use crate::field::{Field, progression};

/// Reads `*`, `5`, `MON-FRI`, `*/15`, `10-50/20` and lists of them. `None` is no verdict: the parser has the word then.
pub(crate) fn plain(token: &[u8], field: Field, dialect: Dialect) -> Option<Values> {
    if let [b'*'] = token {
        return Some(Values { shape: Shape::Star, bits: field.all() });
    }
    if !dialect.is_extended() {
        return None; // the POSIX dialect has no steps, and Sunday is only 0
    }
    let shape = if token.first() == Some(&b'*') { Shape::StarLed } else { Shape::List };
    let mut reader = Reader { token, at: 0 };
    let mut bits = reader.item(field)?;
    while reader.at < token.len() {
        reader.sign(b',').then_some(())?;
        bits |= reader.item(field)?;
    }
    Some(Values { shape, bits })
}

struct Reader<'t> {
    token: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    /// The values of one item of the list.
    #[inline]
    fn item(&mut self, field: Field) -> Option<u64> {
        let (from, to, is_range) = if self.sign(b'*') {
            (field.min(), field.max(), true)
        } else {
            let from = self.value(field)?;
            let is_range = self.sign(b'-');
            (from, if is_range { self.value(field)? } else { from }, is_range)
        };
        let step = if is_range && self.sign(b'/') { self.number()? } else { 1 };
        let largest = field.max() + u32::from(field == Field::Weekday); // Sunday may be written 7
        if from < field.min() || from > to || to > largest || step == 0 {
            return None;
        }
        let bits = progression(from, to, step);
        Some(if field == Field::Weekday { bits & Field::Weekday.all() | bits >> 7 } else { bits })
    }

    #[inline]
    fn sign(&mut self, sign: u8) -> bool {
        let found = self.token.get(self.at) == Some(&sign);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn value(&mut self, field: Field) -> Option<u32> {
        self.number().or_else(|| self.name(field))
    }

    /// Three letters.
    fn name(&mut self, field: Field) -> Option<u32> {
        let letters = self.token.get(self.at..self.at + 3)?;
        let named = (field.min()..).zip(field.names());
        let (value, _) = named.into_iter().find(|(_, name)| name.as_bytes().eq_ignore_ascii_case(letters))?;
        self.at += 3;
        Some(value)
    }

    /// A number of one or two digits.
    #[inline]
    fn number(&mut self) -> Option<u32> {
        let first = self.digit()?;
        Some(self.digit().map_or(first, |second| first * 10 + second))
    }

    #[inline]
    fn digit(&mut self) -> Option<u32> {
        let digit = self.token.get(self.at)?.wrapping_sub(b'0');
        (digit < 10).then(|| {
            self.at += 1;
            digit.into()
        })
    }
}
