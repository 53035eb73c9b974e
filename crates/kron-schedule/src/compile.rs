//! An expression, a zone and a policy become a schedule; what can never match is refused.

use alloc::borrow::Cow;
use alloc::format;

use jiff::Timestamp;

use crate::calendar::days_in_month_max;
use crate::dst::{Dst, Fold};
use crate::error::{ErrorKind, ParseError};
use crate::every_days::EveryDays;
use crate::expr::{Cron, Expr, Shape, ones};
use crate::field::Field;
use crate::pattern::{DaysAndTimes, Pattern};
use crate::schedule::{Calendar, Interval, Schedule};
use crate::zone::Zone;

impl Expr {
    /// Makes a schedule that can be asked for occurrences.
    ///
    /// An `@every` is anchored at 1970-01-01T00:00:00Z, so that its occurrences follow from the
    /// definition alone; [`Schedule::anchored_at`] moves it. Zone and policy do not concern it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Never`] if no date satisfies the expression, or if in this zone every time it
    /// names falls into a gap that the policy skips.
    ///
    /// ```
    /// use kron_schedule::{Dialect, Dst, Expr, Zone};
    ///
    /// let expr = Expr::parse("0 0 30 2 *", Dialect::Kron)?;
    /// let error = expr.compile(&Zone::utc(), Dst::KRON).unwrap_err();
    /// assert_eq!(error.to_string(), "this will never match: February has no day 30");
    /// # Ok::<(), kron_schedule::ParseError>(())
    /// ```
    pub fn compile(&self, zone: &Zone, dst: Dst) -> Result<Schedule, ParseError> {
        match self {
            Expr::Cron(cron) => cron.compile(zone, dst),
            Expr::Every(every) => {
                Ok(Schedule::interval(Interval { length: every.interval(), anchor: Timestamp::UNIX_EPOCH }))
            }
        }
    }
}

impl Cron {
    fn compile(&self, zone: &Zone, dst: Dst) -> Result<Schedule, ParseError> {
        if let Some(reason) = self.impossible_days() {
            return Err(self.never(Field::Day, Field::Month, reason));
        }
        let pattern = Pattern::Fields(DaysAndTimes::new(self));
        let both = match dst.fold {
            Fold::Auto => self.is_interval(),
            Fold::Both => true,
            Fold::First => false,
        };
        let calendar = Calendar::new(pattern, zone, dst.gap, both);
        if calendar.is_empty() {
            let reason = format!("in {} clocks always skip the times it names", zone.name());
            return Err(self.never(Field::Second, Field::Weekday, reason.into()));
        }
        Ok(Schedule::calendar(calendar))
    }

    /// Why no day satisfies the fields, if none does.
    ///
    /// Only days of the month can be impossible. Every weekday comes in every month, and a fifth
    /// one at least in some Februaries; where both day fields restrict, either suffices.
    fn impossible_days(&self) -> Option<Cow<'static, str>> {
        let (day, month) = (&self.fields.day, &self.fields.month);
        if day.values.shape == Shape::Star || self.restricts_weekday() || day.last || day.last_weekday {
            return None;
        }
        let wanted = day.values.bits | u64::from(day.nearest);
        let earliest = wanted.trailing_zeros();
        if ones(month.bits).any(|month| earliest <= days_in_month_max(month)) {
            return None;
        }
        // Only February, April, June, September and November can be short of a day.
        let names: alloc::vec::Vec<&str> = ones(month.bits).map(month_name).collect();
        Some(match names.as_slice() {
            [name] => format!("{name} has no day {earliest}").into(),
            [names @ .., last] => format!("{} and {last} have no day {earliest}", names.join(", ")).into(),
            [] => "no month is left".into(),
        })
    }

    fn never(&self, first: Field, last: Field, reason: Cow<'static, str>) -> ParseError {
        ParseError {
            kind: ErrorKind::Never,
            field: None,
            span: self.span(first).start..self.span(last).end,
            expected: "a time that comes".into(),
            found: reason,
            help: None,
        }
    }
}

impl EveryDays {
    /// Makes a schedule that can be asked for occurrences. [`Fold::Auto`] means the first time.
    ///
    /// ```
    /// # use jiff::civil::time;
    /// # use kron_schedule::{Dst, EveryDays, Zone};
    /// let every_ten_days = EveryDays::new(10, 0, time(12, 0, 0, 0)).unwrap();
    /// let schedule = every_ten_days.compile(&Zone::utc(), Dst::KRON);
    /// let first = schedule.next_after("1970-01-01T00:00:00Z".parse()?);
    /// assert_eq!(first, Some("1970-01-01T12:00:00Z".parse()?));
    /// # Ok::<(), jiff::Error>(())
    /// ```
    #[must_use]
    pub fn compile(&self, zone: &Zone, dst: Dst) -> Schedule {
        let both = dst.fold == Fold::Both;
        Schedule::calendar(Calendar::new(Pattern::EveryDays(*self), zone, dst.gap, both))
    }
}

/// "February".
pub(crate) fn month_name(month: u32) -> &'static str {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    NAMES[month as usize - 1]
}
