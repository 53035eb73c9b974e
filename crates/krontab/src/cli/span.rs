//! The stretch of time that an answer is about.

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use super::exit::Failure;
use super::{clock, time};

/// From when to when.
#[derive(Args, Debug)]
pub(crate) struct SpanArgs {
    /// The first minute, such as 2026-03-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time::instant)]
    from: Option<Timestamp>,
    /// The minute after the last; at most five years after --from [default: a week after --from]
    #[arg(long, value_name = "TIME", value_parser = time::instant)]
    to: Option<Timestamp>,
}

/// What is looked at if nobody says how far: every weekday once.
const USUAL: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The longest stretch: five years, one of them or two with a leap day. Counts are kept for every minute.
const DAYS_MAX: i64 = 5 * 365 + 2;

impl SpanArgs {
    pub(crate) fn get(&self) -> Result<Span, Failure> {
        let from = self.from.unwrap_or_else(clock::now);
        let to = self.to.or_else(|| from.checked_add(USUAL).ok()).unwrap_or(Timestamp::MAX);
        Span::new(from, to).map_err(Failure::Usage)
    }
}

/// A stretch of whole minutes, in seconds since 1970: `from` belongs to it and `to` does not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Span {
    pub(crate) fn new(from: Timestamp, to: Timestamp) -> Result<Span, String> {
        let minute = |at: Timestamp| at.as_second().div_euclid(60) * 60;
        let span = Span { from: minute(from), to: minute(to) };
        if span.from < 0 {
            return Err(format!("--from: expected a time from 1970 on, but found {}", time::utc(from)));
        }
        if span.to <= span.from {
            let (from, to) = (time::utc(from), time::utc(to));
            return Err(format!("--to: expected a later minute than {from}, but found {to}"));
        }
        if span.to - span.from > DAYS_MAX * 86_400 {
            let found = (span.to - span.from) / 86_400;
            return Err(format!(
                "--to: expected at most {DAYS_MAX} days after --from, but found {found}; look at less at once"
            ));
        }
        Ok(span)
    }

    pub(crate) fn minutes(self) -> usize {
        usize::try_from((self.to - self.from) / 60).unwrap_or(0)
    }

    /// The minute that a second belongs to, if it is one of these.
    pub(crate) fn minute(self, second: i64) -> Option<usize> {
        match self.from <= second && second < self.to {
            true => usize::try_from((second - self.from) / 60).ok(),
            false => None,
        }
    }

    pub(crate) fn contains(self, second: i64) -> bool {
        self.from <= second && second < self.to
    }

    /// When the minute of that number begins.
    pub(crate) fn instant(self, minute: usize) -> Timestamp {
        timestamp(self.from + 60 * i64::try_from(minute).unwrap_or(0))
    }

    pub(crate) fn start(self) -> Timestamp {
        timestamp(self.from)
    }

    pub(crate) fn end(self) -> Timestamp {
        timestamp(self.to)
    }
}

/// An instant; one that time does not reach is the end of it.
pub(crate) fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_whole_minutes_and_not_longer_than_it_may_be() {
        let span = |from: &str, to: &str| Span::new(from.parse().unwrap(), to.parse().unwrap());
        let hour = span("2026-03-01T00:00:59Z", "2026-03-01T01:00:01Z").unwrap();
        assert_eq!((hour.minutes(), time::utc(hour.start())), (60, "2026-03-01T00:00:00Z".to_owned()));
        assert_eq!([hour.minute(hour.from), hour.minute(hour.to - 1)], [Some(0), Some(59)]);
        assert_eq!([hour.minute(hour.from - 1), hour.minute(hour.to)], [None, None]);
        assert!(span("2026-01-01T00:00:00Z", "2031-01-01T00:00:00Z").is_ok());
        for (from, to, error) in [
            ("2026-01-01T00:00:00Z", "2031-01-03T00:00:00Z", "--to: expected at most 1827 days after --from"),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:59Z", "--to: expected a later minute than"),
            ("1969-01-01T00:00:00Z", "2026-01-01T00:00:59Z", "--from: expected a time from 1970 on"),
        ] {
            assert!(span(from, to).unwrap_err().starts_with(error), "{from}");
        }
    }
}
