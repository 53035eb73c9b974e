//! `krond why`.

use std::fmt::Write as _;
use std::path::Path;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, PeriodId, Policy, decide};
use krond::clock;
use krond::control::{self, Request};
use krond::view::{JobView, RecordView, WhatView, reason_words};
use krontab::Entry;
use serde::Serialize;

use super::history::{Known, cells, forgotten, known, sentence};
use super::status::what_failed;
use crate::cli::Format;
use crate::cli::answer::{Answer, Failure};
use crate::cli::place::{Krontabs, Place};

/// Tells why a job did or did not run at a time: from the records what became of its periods, and from the engine how
/// their times were chosen.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  krond why backup --at 2026-03-01T02:30:00Z\n  krond why backup --at now\n\n\
                        Exit codes: 0 done; 1 job not found; 2 anything else. For why a schedule has no period at a \
                        time, field by field, ask `krontab why`."
)]
pub(crate) struct Args {
    /// The name or the identity of the job. Of one that is no longer configured the records are told
    job: String,
    /// The time, such as 2026-03-01T02:30:00Z, or `now`
    #[arg(long, value_name = "TIME")]
    at: String,
    #[command(flatten)]
    krontabs: Krontabs,
    #[command(flatten)]
    place: Place,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What is known of a time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WhyView {
    identity: String,
    at: Timestamp,
    /// Whether the job is configured now. If not, nothing is known of it but its records.
    configured: bool,
    /// The records next to the time, before and after it, of a job that is not configured.
    records: Vec<RecordView>,
    /// Periods whose window holds the time.
    periods: Vec<PeriodView>,
    /// The period before, if no window holds the time.
    before: Option<PeriodView>,
    /// The period after, likewise.
    after: Option<PeriodView>,
    /// Local times near it that do not exist, because clocks went forward.
    skipped: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PeriodView {
    period: String,
    window_start: Timestamp,
    window_end: Timestamp,
    chosen: Option<Timestamp>,
    seed_hash: String,
    attempts: u32,
    /// What became of it: everything that was recorded.
    records: Vec<RecordView>,
    /// What can be said of it.
    verdict: String,
}

/// How many periods are told of. Overlapping windows can be many.
const PERIODS_MAX: usize = 20;

/// How far around the time local times that do not exist are looked for.
const SKIPPED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

impl Args {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let settings = self.place.settings()?;
        let now = clock::now().wall;
        let at = match self.at.as_str() {
            "now" => now,
            text => text.parse().map_err(|_| {
                Failure::Usage(format!(
                    "--at: expected a time such as 2026-03-01T02:30:00Z, but found `{text}`"
                ))
            })?,
        };
        let state_dir = &settings.state_dir;
        let view = match self.krontabs.find(&self.job, &settings) {
            Ok(entry) => {
                let known = known(entry.identity().to_owned(), state_dir)?;
                let running = running(entry.identity(), state_dir);
                view(&Sight { entry: &entry, known: &known, running: running.as_ref(), now }, at)
            }
            Err(failure @ Failure::No(_)) => {
                let Some(known) = forgotten(&self.job, state_dir)? else { return Err(failure) };
                WhyView {
                    records: around(at, &known.records),
                    identity: known.identity,
                    at,
                    configured: false,
                    periods: Vec::new(),
                    before: None,
                    after: None,
                    skipped: Vec::new(),
                }
            }
            Err(failure) => return Err(failure),
        };
        Ok(Answer::of(&view, self.format, || text(&view)))
    }
}

/// What is seen of a job that is configured.
struct Sight<'a> {
    entry: &'a Entry,
    known: &'a Known,
    /// What the krond that runs there says of it.
    running: Option<&'a JobView>,
    now: Timestamp,
}

/// What the krond that runs there says of a job, if one does and has it.
fn running(identity: &str, state_dir: &Path) -> Option<JobView> {
    let request = Request::Jobs { job: Some(identity.to_owned()) };
    let answer = control::ask(state_dir, &request).ok()??;
    serde_json::from_value::<Vec<JobView>>(answer.result).ok()?.pop()
}

/// The outcome before a time and the one after it, with whatever else is recorded of their periods.
fn around(at: Timestamp, records: &[RecordView]) -> Vec<RecordView> {
    let parse = |text: &str| text.parse::<PeriodId>().ok().map(PeriodId::nominal);
    let when = |what: &WhatView| match what {
        WhatView::Outcome { chosen, period, .. } => chosen.or_else(|| parse(period)),
        WhatView::Passed { first, .. } => parse(first),
        _ => None,
    };
    let timed = || records.iter().filter_map(|record| Some((when(&record.what)?, &record.what)));
    let before = timed().filter(|(time, _)| *time <= at).max_by_key(|(time, _)| *time);
    let after = timed().filter(|(time, _)| *time > at).min_by_key(|(time, _)| *time);
    let near: Vec<&WhatView> = before.into_iter().chain(after).map(|(_, what)| what).collect();
    let is_near = |what: &WhatView| {
        near.iter().any(|near| match near {
            WhatView::Outcome { period, .. } => {
                period.parse().is_ok_and(|parsed: PeriodId| what.is_about(parsed, period))
            }
            near => **near == *what,
        })
    };
    records.iter().filter(|record| is_near(&record.what)).cloned().collect()
}

fn view(sight: &Sight<'_>, at: Timestamp) -> WhyView {
    let entry = sight.entry;
    let job = &entry.job;
    let about = |decision: Decision| period_view(sight, &decision);
    let opens_before = SignedDuration::from_secs(job.window().opens_before().as_seconds());
    let latest = at.saturating_add(opens_before).unwrap_or(Timestamp::MAX);
    let first = job.schedule().prev_at_or_before(latest);
    let earlier = job.schedule().occurrences_before(latest);
    let mut nominals: Vec<Timestamp> = first.into_iter().chain(earlier).take(PERIODS_MAX + 1).collect();
    nominals.dedup();
    let open = nominals.iter().map(|nominal| decide(job, *nominal));
    let open = open.filter(|decision| decision.window_start() <= at && at <= decision.window_end());
    let mut periods: Vec<PeriodView> = open.map(about).collect();
    periods.reverse();
    let no_window = periods.is_empty();
    let before = nominals.iter().copied().find(|nominal| *nominal <= at).filter(|_| no_window);
    let after = job.schedule().next_after(at).filter(|_| no_window);
    let from = at.saturating_sub(SKIPPED_WITHIN).unwrap_or(Timestamp::MIN);
    let to = at.saturating_add(SKIPPED_WITHIN).unwrap_or(Timestamp::MAX);
    let zone = entry.zone_name();
    let label = |time: DateTime| format!("{}[{zone}]", time.strftime("%Y-%m-%dT%H:%M"));
    let skipped = job.schedule().skipped_between(from, to).flat_map(|gap| gap.times()).map(label);
    WhyView {
        identity: entry.identity().to_owned(),
        at,
        configured: true,
        records: Vec::new(),
        periods,
        before: before.map(|nominal| about(decide(job, nominal))),
        after: after.map(|nominal| about(decide(job, nominal))),
        skipped: skipped.take(PERIODS_MAX).collect(),
    }
}

fn period_view(sight: &Sight<'_>, decision: &Decision) -> PeriodView {
    let period = decision.period_id();
    let name = period.to_string();
    let records = sight.known.records.iter();
    let found: Vec<RecordView> =
        records.filter(|record| record.what.is_about(period, &name)).cloned().collect();
    PeriodView {
        verdict: verdict(sight, decision, &found),
        window_start: decision.window_start(),
        window_end: decision.window_end(),
        chosen: decision.chosen(),
        seed_hash: decision.seed_hash().to_string(),
        attempts: decision.attempts(),
        records: found,
        period: name,
    }
}

/// What can be said of a period in a sentence.
fn verdict(sight: &Sight<'_>, decision: &Decision, records: &[RecordView]) -> String {
    let policy = sight.entry.job.policy();
    let state = sight.known.state.as_ref();
    let period = decision.period_id();
    let is_handled = state.is_some_and(|state| state.ledger_of(&sight.entry.job).is_handled(period));
    let had_its_time = is_handled && state.is_some_and(|state| !state.ledger().is_handled(period));
    let outcome = records.iter().rev().find_map(|record| match &record.what {
        WhatView::Outcome { outcome, reason, .. } | WhatView::Passed { outcome, reason, .. } => {
            Some((outcome.as_str(), reason.as_str()))
        }
        _ => None,
    });
    let paused = paused_at(decision.chosen().unwrap_or(decision.window_start()), sight);
    match (outcome, decision.chosen()) {
        (Some((outcome @ ("missed" | "skipped"), reason)), _) if paused.is_some() => {
            format!("{outcome}: {}; {}", reason_words(reason), paused.unwrap_or_default())
        }
        (Some((outcome, reason)), _) => format!("{outcome}: {}", reason_words(reason)),
        (None, Some(_)) if !is_handled && paused.is_some() => paused.unwrap_or_default(),
        (None, _) if policy.suspend => "the job is suspended".into(),
        (None, None) => "no time of its window satisfies the constraints".into(),
        (None, Some(_)) if had_its_time => {
            "it does not run: its local time has been handled, in the zone that the job had before".into()
        }
        (None, Some(chosen)) if chosen > sight.now => "it has not come yet".into(),
        (None, Some(chosen)) if !is_handled && may_start(policy, chosen, sight.now) => {
            match (sight.running, sight.running.and_then(|job| job.held.as_ref())) {
                (_, Some(held)) => format!("it waits, and is tried again: {}", what_failed(held)),
                (Some(_), None) => "it is due, and has not started yet".into(),
                (None, None) => "it has not started, because krond does not run; its deadline has not passed".into(),
            }
        }
        (None, Some(_)) => {
            "nothing is recorded of it: krond did not run then, did not have this job, or had it with another \
             schedule"
                .into()
        }
    }
}

/// That the job is or was paused at a time, if so.
fn paused_at(time: Timestamp, sight: &Sight<'_>) -> Option<String> {
    let known = &sight.known;
    if let Some(since) = known.state.as_ref().and_then(|state| state.paused)
        && time >= since
    {
        return Some(format!("the job is paused, since {}", PeriodId::new(since)));
    }
    known.records.iter().rev().find_map(|record| match record.what {
        WhatView::Resumed { since } if since <= time && time <= record.at => {
            let (since, until) = (PeriodId::new(since), PeriodId::new(record.at));
            Some(format!("the job was paused from {since} to {until}"))
        }
        _ => None,
    })
}

/// Whether a period that is due is within its deadline.
fn may_start(policy: &Policy, chosen: Timestamp, now: Timestamp) -> bool {
    let late = now.as_second() - chosen.as_second();
    policy.deadline.is_none_or(|deadline| late <= deadline.as_seconds())
}

fn text(view: &WhyView) -> String {
    let mut text = format!("job:     {}\nat:      {}\n", view.identity, view.at);
    if !view.configured {
        let what =
            if view.records.is_empty() { "nothing is recorded of it" } else { "this is recorded of it" };
        let _ = writeln!(text, "\nthe job is not configured now; {what}");
        for record in &view.records {
            let (run, what, how) = cells(&record.what);
            let line = format!("  record:   {}  {run}  {what:13}  {how}", PeriodId::new(record.at));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        return text;
    }
    let mut tell = |head: &str, period: &PeriodView| {
        let chosen = period.chosen.map_or_else(|| "none".into(), |chosen| chosen.to_string());
        let _ = writeln!(text, "\n{head} {}", period.period);
        let _ = writeln!(text, "  window:   {} to {}", period.window_start, period.window_end);
        let attempt = match period.attempts {
            // A window without length has one time, and nothing is drawn.
            0 => String::new(),
            attempts => format!("attempt {attempts}, "),
        };
        let _ = writeln!(text, "  chosen:   {chosen} ({attempt}seed {})", period.seed_hash);
        let _ = writeln!(text, "  verdict:  {}", period.verdict);
        for record in &period.records {
            let _ = writeln!(text, "  record:   {}  {}", PeriodId::new(record.at), sentence(&record.what));
        }
    };
    for period in &view.periods {
        tell("its window holds that time: the period", period);
    }
    if view.periods.is_empty() {
        if let Some(before) = &view.before {
            tell("no window holds that time; before it is the period", before);
        }
        if let Some(after) = &view.after {
            tell("after it is the period", after);
        }
    }
    for skipped in &view.skipped {
        let _ = writeln!(text, "\nno such time: {skipped}, because clocks went forward");
    }
    text
}
