//! What can be said of counts: their peak, their quantiles, and how they lie in the week.

use jiff::Timestamp;
use kron_schedule::Zone;
use serde::Serialize;

use crate::cli::span::Span;
use crate::cli::time;

/// Starts in a minute or an hour, summed up.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Load {
    pub(crate) total: u64,
    pub(crate) mean: f64,
    pub(crate) median: u32,
    pub(crate) p90: u32,
    pub(crate) p99: u32,
    pub(crate) peak: u32,
    /// When the peak is for the first time, and how many minutes or hours are as high.
    pub(crate) peak_at: String,
    pub(crate) peak_count: usize,
}

impl Load {
    pub(crate) fn new(buckets: &Buckets) -> Load {
        let counts = &buckets.counts;
        let mut sorted = counts.clone();
        sorted.sort_unstable();
        let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let peak = sorted.last().copied().unwrap_or(0);
        let first = counts.iter().position(|count| *count == peak).unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "a mean is shown with two digits")]
        let mean = (total as f64 / counts.len().max(1) as f64 * 100.0).round() / 100.0;
        Load {
            total,
            mean,
            median: quantile(&sorted, 50),
            p90: quantile(&sorted, 90),
            p99: quantile(&sorted, 99),
            peak,
            peak_at: time::utc(buckets.start_of(first)),
            peak_count: counts.iter().filter(|count| **count == peak).count(),
        }
    }
}

/// The count that so many of a hundred do not exceed: the smallest that is one of them.
fn quantile(sorted: &[u32], percent: usize) -> u32 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Counts of minutes, or of hours.
#[derive(Clone, Debug)]
pub(crate) struct Buckets {
    span: Span,
    /// How many minutes one has.
    pub(crate) minutes: usize,
    pub(crate) counts: Vec<u32>,
}

impl Buckets {
    /// Counts of so many minutes each, the first beginning with the span. The last may be shorter.
    pub(crate) fn new(counts: &[u32], span: Span, minutes: usize) -> Buckets {
        let sum = |counts: &[u32]| counts.iter().copied().fold(0, u32::saturating_add);
        Buckets { span, minutes, counts: counts.chunks(minutes.max(1)).map(sum).collect() }
    }

    pub(crate) fn start_of(&self, bucket: usize) -> Timestamp {
        self.span.instant(bucket * self.minutes)
    }

    /// At most so many numbers, each the highest count of as many neighbours: a curve that hides no peak.
    pub(crate) fn highest(&self, at_most: usize) -> (usize, Vec<u32>) {
        let neighbours = self.counts.len().div_ceil(at_most.max(1)).max(1);
        let highest = |counts: &[u32]| counts.iter().copied().max().unwrap_or(0);
        (neighbours, self.counts.chunks(neighbours).map(highest).collect())
    }

    /// The highest count of every hour of the week, Monday first, as clocks of the zone show it.
    pub(crate) fn week(&self, zone: &Zone) -> Week {
        let mut week = Week::default();
        for (bucket, count) in self.counts.iter().enumerate() {
            let civil = zone.to_civil(self.start_of(bucket));
            let day = usize::from(civil.weekday().to_monday_zero_offset().unsigned_abs());
            let cell = &mut week[day][usize::from(civil.hour().unsigned_abs())];
            *cell = Some(cell.unwrap_or(0).max(*count));
        }
        week
    }
}

/// Seven days of twenty-four hours. What the span does not have is `None`.
pub(crate) type Week = [[Option<u32>; 24]; 7];

/// The highest of every hour of the day.
pub(crate) fn hours(week: &Week) -> [Option<u32>; 24] {
    std::array::from_fn(|hour| week.iter().filter_map(|day| day[hour]).max())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::simulate::count::tests::span;

    #[test]
    fn a_quantile_is_a_count_that_so_many_do_not_exceed() {
        let sorted: Vec<u32> = (1..=10).collect();
        assert_eq!([50, 90, 99, 100].map(|percent| quantile(&sorted, percent)), [5, 9, 10, 10]);
        assert_eq!([quantile(&[], 50), quantile(&[7], 1)], [0, 7]);
    }

    #[test]
    fn hours_are_sums_and_curves_are_peaks() {
        let span = span("2026-03-01T00:00:00Z", "2026-03-01T02:30:00Z");
        let mut minutes = vec![1; span.minutes()];
        minutes[61] = 9;
        let hours = Buckets::new(&minutes, span, 60);
        assert_eq!(hours.counts, [60, 68, 30]);
        let load = Load::new(&hours);
        assert_eq!((load.peak, load.peak_at.as_str(), load.total), (68, "2026-03-01T01:00:00Z", 158));
        let (neighbours, curve) = Buckets::new(&minutes, span, 1).highest(50);
        assert_eq!((neighbours, curve.len(), curve.iter().copied().max()), (3, 50, Some(9)));
        // A Sunday.
        let week = Buckets::new(&minutes, span, 1).week(&Zone::utc());
        assert_eq!(
            [week[6][0], week[6][1], week[6][2], week[6][3], week[0][0]],
            [Some(1), Some(9), Some(1), None, None]
        );
    }
}
