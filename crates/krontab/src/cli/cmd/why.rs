//! `krontab why`: why a job does, or does not, run at a time.

mod reasons;

use clap::Args;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use kron_core::{Constraints, Decision, Job, Overlap};
use kron_schedule::{Dialect, Explanation, Part, Verdict, WarningKind, Zone};
use krontab::{Entry, ScheduleKind, Zones};

use self::reasons::{ClauseView, FieldView, PolicyView, Reasons};
use super::explain::zone;
use crate::cli::answer::Answer;
use crate::cli::args::{FormatArg, JobArgs};
use crate::cli::exit::Failure;
use crate::cli::periods::NextRun;
use crate::cli::view::{DecisionView, Instant, ScheduleView, SkippedView};
use crate::cli::{load, periods, time};

/// Say why a job does, or does not, run at a time: field by field, and what else stands in the way
///
/// The answer follows from the krontab alone: schedule, daylight saving, window, constraints, policy.
/// What krond did about a period is in its state, and not asked for here.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Why {
    #[command(flatten)]
    job: JobArgs,
    /// An instant, such as 2026-03-08T07:30:00Z, or a local time, such as 2026-03-08T02:30, which is
    /// in the job's zone, or 2026-03-08T02:30[Europe/Paris]
    #[arg(long, value_name = "TIME", value_parser = when)]
    at: When,
    #[command(flatten)]
    format: FormatArg,
}

const EXAMPLES: &str = "\
Examples:
  krontab why backup --file jobs.kron --at 2026-03-08T07:30:00Z
  krontab why backup --file jobs.kron --at '2026-03-08T02:30[America/New_York]'

Exit codes: 0 answered, 1 job not found, 2 anything else.";

impl Why {
    pub(crate) fn run(&self, zones: &Zones) -> Result<Answer, Failure> {
        let entry = load::job(&self.job, zones)?.entry;
        let asked = self.at.resolve(entry.job.zone(), zones)?;
        Ok(Answer::of(&reasons(&entry, &asked), self.format.format))
    }
}

/// A time as it was written.
#[derive(Clone, Debug)]
enum When {
    Instant(Timestamp),
    /// A local time, and its zone where it is not the job's.
    Local(DateTime, Option<String>),
}

fn when(text: &str) -> Result<When, String> {
    if let Ok(instant) = text.parse() {
        time::check_zone(text, instant)?;
        return Ok(When::Instant(instant));
    }
    let (civil, zone) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((civil, zone)) => (civil, Some(zone.to_owned())),
        None => (text, None),
    };
    let expected = || "expected a time such as `2026-03-08T07:30:00Z` or `2026-03-08T02:30`".to_owned();
    civil.parse().map(|civil| When::Local(civil, zone)).map_err(|_| expected())
}

/// What was asked for, on the time line.
struct Asked {
    /// The instant. For a local time that does not exist, the first one after the gap.
    at: Timestamp,
    /// The local time that does not exist, with its zone.
    missing: Option<(DateTime, Zone)>,
    /// The second time that the local time comes.
    again: Option<Timestamp>,
}

impl When {
    fn resolve(&self, job_zone: &Zone, zones: &Zones) -> Result<Asked, Failure> {
        let (civil, zone) = match self {
            When::Instant(at) => return Ok(Asked { at: *at, missing: None, again: None }),
            When::Local(civil, None) => (*civil, job_zone.clone()),
            When::Local(civil, Some(name)) => (*civil, zone(zones, Some(name), Dialect::Kron)?),
        };
        match time::instants(civil, &zone).as_slice() {
            [] => {
                let at = time::after_gap(civil, &zone)
                    .ok_or_else(|| Failure::Usage(format!("--at {civil} is beyond the end of time")))?;
                Ok(Asked { at, missing: Some((civil, zone)), again: None })
            }
            [at] => Ok(Asked { at: *at, missing: None, again: None }),
            [at, again, ..] => Ok(Asked { at: *at, missing: None, again: Some(*again) }),
        }
    }
}

/// The most periods shown that have their windows open at once.
const PERIODS_SHOWN: usize = 3;

fn reasons(entry: &Entry, asked: &Asked) -> Reasons {
    let job = &entry.job;
    let at = floor(asked.at);
    let explanation = job.schedule().explain(at);
    let open = nearest_first(periods::open_at(job, at), at);
    let constraints = clauses(job.constraints(), job.zone().to_civil(at));
    let (runs, verdict) = verdict(entry, asked, &open, &constraints);
    let view = |decision: &Decision| DecisionView::new(&entry.name, job, decision);
    let fields = fields(entry, asked, &explanation);
    let (next, none_until) = match periods::next_run(job, at, periods::patience(1)) {
        _ if job.policy().suspend => (None, None),
        NextRun::At(next) => (Some(Instant::new(next, job.zone())), None),
        NextRun::NoneUntil(until) => (None, Some(time::utc(until))),
        NextRun::Never => (None, None),
    };
    Reasons {
        job: entry.name.clone(),
        identity: entry.identity().to_owned(),
        schedule: ScheduleView::from(&entry.schedule),
        timezone: entry.zone_name().to_owned(),
        missing: asked.missing.as_ref().map(|(civil, zone)| time::label(*civil, zone)),
        at: Instant::new(at, job.zone()),
        runs,
        verdict,
        nominal: asked.missing.is_none()
            && matches!(explanation.verdict(), Verdict::Occurs | Verdict::AfterGap),
        either_day: either_day(entry, &fields),
        fields,
        daylight_saving: daylight_saving(entry, asked, explanation.verdict()),
        skipped: skipped_that_day(job, at),
        periods: open.iter().take(PERIODS_SHOWN).map(view).collect(),
        open_windows: open.len(),
        constraints,
        policy: PolicyView {
            concurrency: overlap(job.policy().overlap),
            deadline: job.policy().deadline.map(|deadline| deadline.to_string()),
            suspend: job.policy().suspend,
        },
        next,
        none_until,
    }
}

/// The periods in the order of their distance: who asks about an instant means what was chosen for it,
/// or for a time close to it. Those for which nothing was chosen come last.
fn nearest_first(mut open: Vec<Decision>, at: Timestamp) -> Vec<Decision> {
    open.sort_by_key(|decision| match decision.chosen() {
        Some(chosen) => (0, chosen.duration_since(at).abs()),
        None => (1, decision.nominal().duration_since(at).abs()),
    });
    open
}

/// The fields of the instant; of a local time that does not exist, its own.
fn fields(entry: &Entry, asked: &Asked, explanation: &Explanation) -> Vec<FieldView> {
    let missing = asked.missing.as_ref().filter(|(_, zone)| zone == entry.job.zone());
    // In UTC every local time exists, and the fields are the same.
    let in_utc = missing.and_then(|(civil, _)| {
        let at = Offset::UTC.to_timestamp(*civil).ok()?;
        let schedule = match entry.schedule.kind() {
            ScheduleKind::Every(_) => return None,
            ScheduleKind::Alias(expr) | ScheduleKind::Cron(expr) => expr.compile(&Zone::utc(), entry.dst),
            ScheduleKind::Phrase { scattered, .. } => scattered.compile(&Zone::utc(), entry.dst),
        };
        Some(schedule.ok()?.explain(at))
    });
    let view = |part: &Part| FieldView {
        name: part.name().to_owned(),
        value: part.value().to_owned(),
        wanted: part.wanted().to_owned(),
        matches: part.matches(),
    };
    in_utc.as_ref().unwrap_or(explanation).parts().iter().map(view).collect()
}

/// What is to be said where both day fields are restricted: a field that does not match need not stand in
/// the way.
fn either_day(entry: &Entry, fields: &[FieldView]) -> Option<String> {
    let warnings = entry.schedule.expr()?.warnings();
    if !warnings.iter().any(|warning| warning.kind() == WarningKind::EitherDay) {
        return None;
    }
    let matches = |name| fields.iter().any(|field| field.name == name && field.matches);
    let which = match (matches("day"), matches("weekday")) {
        (true, true) => "both match",
        (true, false) => "the day matches",
        (false, true) => "the weekday matches",
        (false, false) => "neither matches",
    };
    Some(format!("one of the two day fields is enough: {which}"))
}

/// The answer, and its one sentence. The order of the questions is the rule. The open periods come
/// nearest first, so the one that is named is the one that was meant.
fn verdict(entry: &Entry, asked: &Asked, open: &[Decision], clauses: &[ClauseView]) -> (bool, String) {
    let Entry { name, job, .. } = entry;
    let at = floor(asked.at);
    let when = match &asked.missing {
        Some((civil, zone)) => time::label(*civil, zone),
        None => time::utc(at),
    };
    if let Some((civil, _)) = asked.missing.as_ref().filter(|(_, zone)| zone == job.zone()) {
        let would = skips(job, *civil, at);
        let gap = "the clocks go over it";
        return match job.schedule().explain(at).verdict() {
            Verdict::AfterGap => {
                let instead = format!("`gap=after` puts its period at {} instead", time::utc(at));
                (false, format!("{name} does not run at {when}: {gap}, and {instead}."))
            }
            _ if would => {
                (false, format!("{name} does not run at {when}: {gap}, and `gap=skip` leaves it out."))
            }
            _ => (false, format!("{name} does not run at {when}: {gap}, and the schedule does not name it.")),
        };
    }
    let period = |decision: &Decision| match job.window().duration().as_nanos() {
        0 if job.schedule().explain(at).verdict() == Verdict::AfterGap => AFTER_GAP.to_owned(),
        0 => "it is a time of its schedule, and there is no window".to_owned(),
        _ => format!("it is the time chosen for its period {}", decision.period_id()),
    };
    if let Some(decision) = open.iter().find(|decision| decision.chosen() == Some(at)) {
        return match job.policy().suspend {
            true => (false, format!("{name} would run at {when}, but it is suspended: `suspend=true`.")),
            false => (true, format!("{name} runs at {when}: {}.", period(decision))),
        };
    }
    let refused: Vec<String> =
        clauses.iter().filter(|clause| !clause.allows).map(ToString::to_string).collect();
    let refused = refused.join(" and ");
    let because = match open {
        [] => schedule_says(job, at),
        [decision, ..] => match (decision.chosen(), refused.as_str()) {
            (None, "") => format!(
                "the constraints allowed none of the {} times tried in the window of its period {}",
                decision.attempts(),
                decision.period_id()
            ),
            (None, refused) => format!("{refused} does not allow it"),
            (Some(chosen), refused) => {
                let constraint =
                    if refused.is_empty() { String::new() } else { format!("{refused} does not allow it; ") };
                let chosen = time::utc(chosen);
                format!("{constraint}the time chosen for its period {} is {chosen}", decision.period_id())
            }
        },
    };
    (false, format!("{name} does not run at {when}: {because}."))
}

const AFTER_GAP: &str = "it stands for a local time that the clocks have just skipped";

/// Why the schedule has nothing at an instant.
fn schedule_says(job: &Job, at: Timestamp) -> String {
    let explanation = job.schedule().explain(at);
    match explanation.verdict() {
        Verdict::Repeated(first) => {
            format!(
                "the same local time already came at {}, and it runs only the first time",
                time::utc(first)
            )
        }
        _ => {
            // The first line ends with the reason.
            let text = explanation.to_string();
            let line = text.lines().next().unwrap_or_default();
            let reason = line.split_once("because ").map_or(line, |(_, reason)| reason);
            match job.window().duration().as_nanos() {
                0 => reason.to_owned(),
                _ => format!("no window is open then, and {reason}"),
            }
        }
    }
}

fn daylight_saving(entry: &Entry, asked: &Asked, verdict: Verdict) -> Vec<String> {
    let job = &entry.job;
    let mut notes = Vec::new();
    if let Some((civil, zone)) = &asked.missing {
        let label = time::label(*civil, zone);
        notes.push(format!("{label} does not exist: clocks go forward at {}", time::utc(asked.at)));
    }
    if let Some(again) = asked.again {
        let (first, again) = (time::utc(asked.at), time::utc(again));
        notes.push(format!("this local time comes twice: this is about {first}, and {again} is the other"));
    }
    match verdict {
        Verdict::Repeated(first) => {
            notes.push(format!("this local time comes twice, and the first time is {}", time::utc(first)));
        }
        Verdict::AfterGap if asked.missing.is_none() => notes.push(AFTER_GAP.into()),
        Verdict::Occurs if asked.again.is_none() => notes.extend(other_pass(entry, floor(asked.at))),
        Verdict::AfterGap | Verdict::Occurs | Verdict::Unmatched => {}
    }
    let skipped = asked.missing.is_none().then(|| skipped_that_day(job, floor(asked.at)));
    notes.extend(skipped.iter().flatten().map(ToString::to_string));
    if !notes.is_empty() {
        notes.push(format!("the policy is @dst({})", entry.dst));
    }
    notes
}

/// What is to be said of an occurrence whose local time comes twice.
fn other_pass(entry: &Entry, at: Timestamp) -> Option<String> {
    // An interval does not follow local time, so that it comes twice means nothing to it.
    if matches!(entry.schedule.kind(), ScheduleKind::Every(_)) {
        return None;
    }
    let zone = entry.job.zone();
    let passes = time::instants(zone.to_civil(at), zone);
    let other = passes.into_iter().find(|pass| *pass != at)?;
    let which = if other < at { "the first time is" } else { "the second time is" };
    let both = match entry.job.schedule().explain(other).verdict() {
        Verdict::Occurs => "it is a time of the schedule both times",
        _ => "only this one is a time of the schedule",
    };
    Some(format!("this local time comes twice: {which} {}, and {both}", time::utc(other)))
}

/// The gaps that swallowed something on the local day of an instant.
fn skipped_that_day(job: &Job, at: Timestamp) -> Vec<SkippedView> {
    let day = SignedDuration::from_hours(26);
    let (Ok(after), Ok(through)) = (at.checked_sub(day), at.checked_add(day)) else {
        return Vec::new();
    };
    let date = job.zone().to_civil(at).date();
    let skipped = job.schedule().skipped_between(after, through);
    let same_day = skipped.filter(|skipped| skipped.times().any(|civil| civil.date() == date));
    same_day.map(|skipped| SkippedView::new(&skipped, job.zone())).collect()
}

/// Whether a change of clocks at that instant swallows that local time of the schedule.
fn skips(job: &Job, civil: DateTime, at: Timestamp) -> bool {
    let before = at.checked_sub(SignedDuration::from_secs(1)).unwrap_or(at);
    let mut skipped = job.schedule().skipped_between(before, at);
    skipped.any(|skipped| skipped.times().any(|time| time == civil))
}

/// Every clause of the constraints, and whether it allows a local time.
///
/// Of `only`, the values of one kind count together; of `avoid`, each clause counts alone.
fn clauses(constraints: &Constraints, civil: DateTime) -> Vec<ClauseView> {
    let mut views = Vec::new();
    let mut kinds: Vec<(&str, String)> = Vec::new();
    let (only, avoid) = (constraints.only().to_string(), constraints.avoid().to_string());
    for clause in only.split(';').filter(|clause| !clause.is_empty()) {
        let kind = match clause.split('=').next() {
            Some("date" | "dates") => "dates",
            kind => kind.unwrap_or_default(),
        };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, clauses)) => clauses.extend([";", clause]),
            None => kinds.push((kind, clause.to_owned())),
        }
    }
    for (_, clause) in kinds {
        let mut alone = Constraints::default();
        alone.add_only(&clause).expect("what was printed can be read");
        views.push(ClauseView { rule: "only", allows: alone.allow(civil), clause });
    }
    for clause in avoid.split(';').filter(|clause| !clause.is_empty()) {
        let mut alone = Constraints::default();
        alone.add_avoid(clause).expect("what was printed can be read");
        views.push(ClauseView { rule: "avoid", allows: alone.allow(civil), clause: clause.to_owned() });
    }
    views
}

fn overlap(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Allow => "allow",
        Overlap::Forbid => "forbid",
        Overlap::Queue => "queue",
        Overlap::Replace => "replace",
    }
}

/// Chosen times are whole seconds, and so is what is asked about them.
fn floor(at: Timestamp) -> Timestamp {
    kron_core::PeriodId::new(at).nominal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_kind_count_together() {
        let mut constraints = Constraints::default();
        constraints.add_only("between=08:00-09:00;between=20:00-21:00;dow=MON-FRI").unwrap();
        constraints.add_avoid("date=2026-03-02;hours=20").unwrap();
        let found: Vec<String> = clauses(&constraints, "2026-03-02T20:30".parse().unwrap())
            .iter()
            .map(|clause| format!("{clause} {}", clause.allows))
            .collect();
        assert_eq!(
            found,
            [
                "only(dow=MON-FRI) true",
                "only(between=08:00-09:00;between=20:00-21:00) true",
                "avoid(hours=20) false",
                "avoid(date=2026-03-02) false",
            ]
        );
    }
}
