//! Times that are known together.

use jiff::Timestamp;

use crate::calendar::{DAY, Month};
use crate::zone::to_timestamp;

/// Times at regular distances that are known without a search. Bit n stands for `begin` and n times `every`.
///
/// A pattern tells civil times. [`in_segment`](Self::in_segment) makes instants of them, as long as no clocks change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) begin: i64,
    pub(crate) every: i64,
    pub(crate) bits: u64,
    /// The month that it goes to the end of. If there is one, the next such month can follow without a search.
    pub(crate) month: Option<Month>,
    /// By how much its instants are earlier than civil times, and before which instant that holds.
    offset: i64,
    until: i64,
}

impl Run {
    /// Civil times.
    pub(crate) fn new(begin: i64, every: i64, bits: u64) -> Run {
        Run { begin, every, bits, ..Run::default() }
    }

    pub(crate) fn to_end_of(self, month: Month) -> Run {
        Run { month: Some(month), ..self }
    }

    /// As instants, without those that are not before `until`.
    pub(crate) fn in_segment(self, offset: i64, until: i64) -> Run {
        Run { begin: self.begin - offset, offset, until, ..self }.before(until)
    }

    /// Without those that are not before `end`.
    pub(crate) fn before(self, end: i64) -> Run {
        if self.last().is_none_or(|last| last < end) {
            return self;
        }
        // At least the last bit goes, so that fewer than 64 are left.
        let left = (end - self.begin).max(0).unsigned_abs().div_ceil(self.every.unsigned_abs());
        Run { bits: self.bits & !(!0 << left), month: None, ..self }
    }

    /// Takes one civil time on each of some days of a month in place of what there was; bit 0 stands for `begin`. Not
    /// if there are none, or if not all of them lie before the end of the segment.
    pub(crate) fn go_on(&mut self, month: Month, begin: i64, days: u32) -> bool {
        let begin = begin - self.offset;
        let is_known = days.checked_ilog2().is_some_and(|last| begin + i64::from(last) * DAY < self.until);
        if is_known {
            (self.begin, self.bits, self.month) = (begin, days.into(), Some(month));
        }
        is_known
    }

    /// The last of it.
    pub(crate) fn last(&self) -> Option<i64> {
        Some(self.begin + i64::from(self.bits.checked_ilog2()?) * self.every)
    }

    /// Takes the first out.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Timestamp> {
        if self.bits == 0 {
            return None;
        }
        let number = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(to_timestamp(self.begin + i64::from(number) * self.every))
    }
}
