//! Who makes the highest minutes.

use kron_core::Job;
use serde::Serialize;

use super::count::each_period;
use super::load::Buckets;
use crate::cli::span::Span;
use crate::cli::time;

/// The most peaks that are told of.
const PEAKS_SHOWN: usize = 5;

/// The most jobs that are named of a peak.
const JOBS_NAMED: usize = 8;

/// A minute or an hour that is among the highest, and the jobs that start in it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Peak {
    pub(crate) at: String,
    pub(crate) starts: u32,
    /// How many jobs start then.
    pub(crate) jobs: usize,
    /// Some of them, those that start most often first, then in the order of the files.
    pub(crate) names: Vec<String>,
}

/// The highest buckets, by chosen times, and who makes them.
pub(crate) fn highest(buckets: &Buckets, jobs: &[&Job], label: impl Fn(usize) -> String) -> Vec<Peak> {
    let mut order: Vec<usize> = (0..buckets.counts.len()).collect();
    let by_height = |bucket: &usize| (std::cmp::Reverse(buckets.counts[*bucket]), *bucket);
    if order.len() > PEAKS_SHOWN {
        order.select_nth_unstable_by_key(PEAKS_SHOWN, by_height);
        order.truncate(PEAKS_SHOWN);
    }
    order.sort_unstable_by_key(by_height);
    order.retain(|bucket| buckets.counts[*bucket] > 0);
    let peak = |bucket: usize| {
        let from = buckets.start_of(bucket).as_second();
        let length = 60 * i64::try_from(buckets.minutes).unwrap_or(1);
        let mut found = starting(jobs, Span { from, to: from + length });
        found.sort_by_key(|(_, starts)| std::cmp::Reverse(*starts));
        Peak {
            at: time::utc(buckets.start_of(bucket)),
            starts: buckets.counts[bucket],
            jobs: found.len(),
            names: found.iter().take(JOBS_NAMED).map(|(number, _)| label(*number)).collect(),
        }
    };
    order.into_iter().map(peak).collect()
}

/// The jobs that start in a span, by number, and how often.
fn starting(jobs: &[&Job], span: Span) -> Vec<(usize, u32)> {
    let starts = |job: &Job| {
        let mut count = 0;
        each_period(job, span, |_, chosen| count += u32::from(chosen.is_some_and(|at| span.contains(at))));
        count
    };
    let found = jobs.iter().enumerate().map(|(number, job)| (number, starts(job)));
    found.filter(|(_, starts)| *starts > 0).collect()
}
