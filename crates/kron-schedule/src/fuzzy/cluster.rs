//! Many jobs together: who shares a minute, and whose names keep them close.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::cursor::quoted;
use super::placeholder::Placeholder;
use super::scatter::Scattered;

/// Jobs whose schedules fall together more than scattering promises.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cluster {
    kind: ClusterKind,
    members: Vec<usize>,
    message: String,
    advice: &'static str,
}

/// Why schedules fall together.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ClusterKind {
    /// Jobs that were given the very same time. With many jobs and few minutes, that is to be
    /// expected.
    Collision,
    /// Names that differ in their last character only, and so have neighbouring minutes.
    Neighbours,
    /// Schedules of one job. The hash sees the job and not the phrase, so they share a minute.
    SameJob,
}

impl Cluster {
    /// Why they fall together, for programs to branch on.
    #[must_use]
    pub fn kind(&self) -> ClusterKind {
        self.kind
    }

    /// Which of the jobs these are, as positions in what was asked about.
    #[must_use]
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    /// What can be done about it.
    #[must_use]
    pub fn advice(&self) -> &str {
        self.advice
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Finds jobs, each with its identifier and placeholder, whose schedules fall together.
///
/// Fixed intervals are left out, since they all fall together: [`Phrase::warnings`] says so.
///
/// ```
/// use kron_schedule::fuzzy::{ClusterKind, clusters};
///
/// let hourly = "FUZZY:HOURLY * * *".parse()?;
/// let found = clusters([("job1", &hourly), ("job2", &hourly), ("job3", &hourly)]);
/// assert_eq!(found[0].kind(), ClusterKind::Neighbours);
/// assert_eq!(
///     found[0].to_string(),
///     "3 jobs start within 3 minutes, because their names differ in the last character only: job3, job2, job1",
/// );
///
/// // What differs should not come last.
/// assert!(clusters([("1-job", &hourly), ("2-job", &hourly), ("3-job", &hourly)]).is_empty());
/// # Ok::<(), kron_schedule::fuzzy::FuzzyError>(())
/// ```
///
/// [`Phrase::warnings`]: super::Phrase::warnings
#[must_use]
pub fn clusters<'a>(jobs: impl IntoIterator<Item = (&'a str, &'a Placeholder)>) -> Vec<Cluster> {
    let jobs: Vec<Job<'a>> = jobs
        .into_iter()
        .enumerate()
        .filter_map(|(index, (identifier, placeholder))| {
            let slot = placeholder.slot(identifier)?;
            let scattered = placeholder.scatter(identifier).ok()?;
            let time = match &scattered {
                Scattered::Cron(cron) => cron.text().to_string(),
                Scattered::EveryDays(days) => format!("{days} from day {} on", days.phase()),
            };
            Some(Job { index, identifier, placeholder, slot, start: start(&scattered), time })
        })
        .collect();
    let mut found = same_jobs(&jobs);
    found.extend(collisions(&jobs));
    found.extend(neighbours(&jobs));
    found
}

struct Job<'a> {
    index: usize,
    identifier: &'a str,
    placeholder: &'a Placeholder,
    /// Where the time is among all that it could have been.
    slot: u32,
    start: Option<Start>,
    /// All that the identifier decides, in words.
    time: String,
}

/// The minute, the hour unless there are many, and the weekday if there is one.
#[derive(Clone, Copy)]
struct Start {
    minute: i64,
    hour: Option<i64>,
    weekday: Option<i64>,
}

/// Nothing for a schedule with many starts an hour.
fn start(scattered: &Scattered) -> Option<Start> {
    match scattered {
        Scattered::Cron(cron) => {
            let mut fields = cron.text().split(' ').map(|field| field.parse().ok());
            let (minute, hour) = (fields.next()??, fields.next()?);
            Some(Start { minute, hour, weekday: fields.nth(2)? })
        }
        Scattered::EveryDays(days) => {
            let minutes = days.second() / 60;
            Some(Start { minute: minutes % 60, hour: Some(minutes / 60), weekday: None })
        }
    }
}

fn same_jobs(jobs: &[Job<'_>]) -> Vec<Cluster> {
    let minute = |job: &Job<'_>| job.start.map(|start| start.minute);
    let mut found = Vec::new();
    for ((identifier, minute), related) in groups(jobs.iter(), |job| (job.identifier, minute(job))) {
        if minute.is_none() {
            continue;
        }
        // An hourly schedule meets all the others; these meet where their hours are the same.
        let hour = |job: &Job<'_>| job.start.and_then(|start| start.hour);
        let is_hourly = related.iter().any(|job| hour(job).is_none());
        for (_, members) in groups(related.into_iter(), |job| if is_hourly { None } else { hour(job) }) {
            let mut weekdays: Vec<_> =
                members.iter().map(|job| job.start.and_then(|start| start.weekday)).collect();
            weekdays.sort_unstable();
            weekdays.dedup();
            let never_meet = weekdays.len() == members.len() && !weekdays.contains(&None);
            if members.len() > 1 && !never_meet {
                found.push(Cluster {
                    kind: ClusterKind::SameJob,
                    message: format!("{} schedules of {} start in the same minute", members.len(), quoted(identifier)),
                    members: members.iter().map(|job| job.index).collect(),
                    advice: "merge them, or make them jobs of their own: the hash sees the job, not the phrase",
                });
            }
        }
    }
    found
}

/// Jobs with one and the same time. Other schedules of the same job are another matter.
fn collisions(jobs: &[Job<'_>]) -> Vec<Cluster> {
    groups(jobs.iter(), |job| job.time.as_str())
        .map(|(time, mut members)| {
            members.sort_by_key(|job| job.identifier);
            members.dedup_by_key(|job| job.identifier);
            (time, members)
        })
        .filter(|(_, members)| members.len() > 1)
        .map(|(time, members)| Cluster {
            kind: ClusterKind::Collision,
            message: format!("{} jobs have the same time, {time}: {}", members.len(), names(&members)),
            members: members.iter().map(|job| job.index).collect(),
            advice: "rename one of them, or give them a wider window",
        })
        .collect()
}

/// The distance up to which minutes count as neighbours: names that are two letters apart in the
/// alphabet are that far apart in a window of two hours.
const GAP_MAX: u32 = 2;
/// The fewest neighbours worth a remark: two are often near each other by chance.
const NEIGHBOURS_MIN: usize = 3;

fn neighbours(jobs: &[Job<'_>]) -> Vec<Cluster> {
    let stem = |job: &Job<'_>| {
        let mut chars = job.identifier.chars();
        chars.next_back();
        (chars.as_str().to_string(), job.placeholder.to_string())
    };
    let mut found = Vec::new();
    for (_, mut siblings) in groups(jobs.iter(), stem) {
        siblings.sort_by_key(|job| (job.slot, job.identifier));
        siblings.dedup_by_key(|job| job.identifier);
        for near in siblings.chunk_by(|one, next| next.slot - one.slot <= GAP_MAX) {
            let [first, .., last] = near else { continue };
            if near.len() < NEIGHBOURS_MIN {
                continue;
            }
            found.push(Cluster {
                kind: ClusterKind::Neighbours,
                message: format!(
                    "{} jobs start within {} minutes, because their names differ in the last character only: {}",
                    near.len(),
                    last.slot - first.slot + 1,
                    names(near)
                ),
                members: near.iter().map(|job| job.index).collect(),
                advice: "put what differs before the end of the name: `1-backup` rather than `backup-1`",
            });
        }
    }
    found
}

/// The jobs by a key, in the order of the keys.
fn groups<'j, 'a: 'j, K: Ord>(
    jobs: impl Iterator<Item = &'j Job<'a>>,
    key: impl Fn(&'j Job<'a>) -> K,
) -> impl Iterator<Item = (K, Vec<&'j Job<'a>>)> {
    let mut groups: BTreeMap<K, Vec<&Job<'a>>> = BTreeMap::new();
    for job in jobs {
        groups.entry(key(job)).or_default().push(job);
    }
    groups.into_iter()
}

/// How many names a message lists.
const NAMES_MAX: usize = 5;

/// "a, b, c" or, of many, "a, b, c, d, e and 7 more".
fn names(jobs: &[&Job<'_>]) -> String {
    let listed: Vec<String> = jobs.iter().take(NAMES_MAX).map(|job| quoted(job.identifier)).collect();
    match jobs.len() - listed.len() {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}
