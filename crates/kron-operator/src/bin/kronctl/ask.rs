//! `explain`, `next` and `why`: what will happen by the engine that lets it happen, and what has by the status.

use jiff::Timestamp;
use kron_core::{Decision, PeriodId, decide};
use kron_operator::api::HistoryEntry;
use kron_operator::clock;
use kron_operator::definition::Definition;
use serde_json::{Value, json};

use super::{Answer, Args, Cluster, Failure, time};

/// The most periods looked at for the next runs.
const AHEAD_MAX: usize = 100_000;

/// Decisions after a time, in the order of their nominal times.
fn periods(definition: &Definition, after: Timestamp) -> impl Iterator<Item = Decision> + '_ {
    let mut last = after;
    std::iter::from_fn(move || {
        last = definition.job.schedule().next_after(last)?;
        Some(decide(&definition.job, last))
    })
}

/// Say what a KronJob's next run depends on.
#[derive(clap::Args)]
pub(crate) struct Explain {
    /// The KronJob.
    name: String,
    /// The period, by its nominal time; the next one if absent.
    #[arg(long, value_name = "TIME")]
    period: Option<PeriodId>,
}

impl Explain {
    pub(crate) async fn run(&self, args: &Args, cluster: &Cluster) -> Result<Answer, Failure> {
        let (_, definition) = cluster.read(&self.name).await?;
        let decision = match self.period {
            Some(period) => {
                if !definition.job.schedule().matches(period.nominal()) {
                    return Err(Failure::no(format!("{} has no period {period}", self.name)));
                }
                decide(&definition.job, period.nominal())
            }
            None => periods(&definition, clock::now())
                .next()
                .ok_or_else(|| Failure::no("there is no next period"))?,
        };
        let text = format!("schedule: {}\n{}", definition.resolved, decision.explain(&definition.job));
        let fields = text.lines().filter_map(|line| line.split_once(": "));
        let view: serde_json::Map<String, Value> =
            fields.map(|(key, value)| (key.to_owned(), json!(value))).collect();
        Ok(Answer::of(args, &view, text))
    }
}

/// List the next runs.
#[derive(clap::Args)]
pub(crate) struct Next {
    /// The KronJob.
    name: String,
    /// How many.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    count: u16,
    /// From when on, instead of now.
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Timestamp>,
}

impl Next {
    pub(crate) async fn run(&self, args: &Args, cluster: &Cluster) -> Result<Answer, Failure> {
        let (kronjob, definition) = cluster.read(&self.name).await?;
        let from = self.from.unwrap_or_else(clock::now);
        let longest = definition.job.window().duration().as_seconds();
        let early = from.checked_sub(jiff::SignedDuration::from_secs(longest)).unwrap_or(from);
        let coming = periods(&definition, early)
            .filter(|decision| decision.chosen().is_some_and(|chosen| chosen > from));
        // With windows that overlap, a later period may run earlier.
        let many = usize::from(self.count);
        let mut runs: Vec<Decision> = coming.take(AHEAD_MAX.min(many + 1_000)).collect();
        runs.sort_by_key(Decision::chosen);
        runs.truncate(many);
        let mut text = String::new();
        if kronjob.spec.policy.suspend {
            text += "it is suspended: none of these starts until it is resumed\n";
        }
        for run in &runs {
            text += &format!("{}  period {}\n", run.chosen().unwrap_or_default(), run.period_id());
        }
        let view = runs.iter().map(|run| json!({"chosenTime": run.chosen().map(|time| time.to_string()), "periodID": run.period_id().to_string(), "seedHash": run.seed_hash().to_string()}));
        let view = json!({"suspended": kronjob.spec.policy.suspend, "runs": view.collect::<Vec<_>>()});
        if runs.is_empty() {
            text += &format!("{} has no run after {from}\n", self.name);
        }
        Ok(Answer { is_no: runs.is_empty(), ..Answer::of(args, &view, text) })
    }
}

/// Say what became of a period, or what will, and why.
#[derive(clap::Args)]
pub(crate) struct Why {
    /// The KronJob.
    name: String,
    /// The nominal time of the period, or any time; if absent the last period, or the next if none has come.
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<Timestamp>,
}

impl Why {
    pub(crate) async fn run(&self, args: &Args, cluster: &Cluster) -> Result<Answer, Failure> {
        let (kronjob, definition) = cluster.read(&self.name).await?;
        let status = kronjob.status.clone().unwrap_or_default();
        let schedule = definition.job.schedule();
        let known = status.last_period_id.as_ref().or(status.next_period_id.as_ref());
        let known = known.and_then(|text| text.parse::<PeriodId>().ok()).map(|period| period.nominal());
        let asked = self.at.or(known).or_else(|| schedule.next_after(clock::now()));
        let asked = asked
            .ok_or_else(|| Failure::no(format!("no period of {} has come, and none will", self.name)))?;
        if !schedule.matches(asked) {
            return Ok(self.no_period(args, &definition, asked));
        }
        let period = PeriodId::new(asked);
        let decision = decide(&definition.job, asked);
        let chosen = decision.chosen().map(|chosen| chosen.to_string());
        let entry = status.history.iter().find(|entry| covers(entry, period));
        let ledger = status.ledger.clone().unwrap_or_default();
        let handled: Option<PeriodId> = ledger.handled_through.parse().ok();
        let is_pending = ledger.pending.contains(&period.to_string());
        let is_claimed = ledger.claims.iter().any(|claim| claim.period_id == period.to_string());
        let verdict = match (entry, &chosen) {
            (Some(entry), _) => told(entry),
            _ if is_claimed => "its Job is being created".to_owned(),
            _ if Some(period) <= handled && !is_pending => match kronjob.metadata.creation_timestamp.as_ref() {
                Some(created) if decision.window_start() < created.0 => "its window opened before the KronJob was created, so it is none of its periods".to_owned(),
                _ => "it is handled, and so long ago that the status no longer says how; the log and the Events may".to_owned(),
            },
            _ if kronjob.spec.policy.suspend => "it waits: the KronJob is suspended".to_owned(),
            (None, Some(chosen)) => format!("it is to run at {chosen}"),
            (None, None) => "it will not run: no time tried in its window satisfies the constraints".to_owned(),
        };
        let text = format!("period {period}: {verdict}\n{}", decision.explain(&definition.job));
        let view = json!({
            "periodID": period.to_string(), "verdict": verdict, "chosenTime": chosen, "seedHash": decision.seed_hash().to_string(),
            "windowStart": decision.window_start().to_string(), "windowEnd": decision.window_end().to_string(), "history": entry,
        });
        Ok(Answer::of(args, &view, text))
    }

    /// Where no period is, what is around it, and whether clocks skipped it.
    fn no_period(&self, args: &Args, definition: &Definition, asked: Timestamp) -> Answer {
        let schedule = definition.job.schedule();
        let day = jiff::SignedDuration::from_hours(24);
        let (begin, end) = (asked.checked_sub(day).unwrap_or(asked), asked.checked_add(day).unwrap_or(asked));
        let zone = definition.job.zone().name();
        let skipped: Vec<String> = schedule
            .skipped_between(begin, end)
            .flat_map(|gap| gap.times().map(|time| format!("{time}[{zone}]")).collect::<Vec<_>>())
            .take(10)
            .collect();
        let before = schedule.prev_at_or_before(asked).map(|time| time.to_string());
        let after = schedule.next_after(asked).map(|time| time.to_string());
        let shown = |time: &Option<String>| time.clone().unwrap_or_else(|| "none".to_owned());
        let mut text = format!(
            "{} has no period at {asked}: its schedule is {} in {zone}\nthe one before: {}\nthe one after: {}\n",
            self.name,
            definition.resolved,
            shown(&before),
            shown(&after)
        );
        for time in &skipped {
            text += &format!("{time} does not exist: clocks were set forward, and its period does not run\n");
        }
        let view = json!({"periodID": null, "before": before, "after": after, "skipped": skipped});
        Answer { is_no: true, ..Answer::of(args, &view, text) }
    }
}

fn covers(entry: &HistoryEntry, period: PeriodId) -> bool {
    let read = |text: &String| text.parse::<PeriodId>().ok();
    let first = read(&entry.period_id);
    let last = entry.last_period_id.as_ref().map_or(first, read);
    first <= Some(period) && Some(period) <= last
}

fn told(entry: &HistoryEntry) -> String {
    let reason = kron_core::Reason::ALL.into_iter().find(|reason| reason.name() == entry.reason);
    let mut text = match reason {
        Some(reason) => format!("it was {} because {reason}", entry.outcome),
        None => format!("it was {} ({})", entry.outcome, entry.reason),
    };
    if let Some(name) = &entry.job_name {
        text += &format!("; its Job is {name}");
    }
    match entry.result.as_deref() {
        Some("unknown") => text += ", which was deleted before it ended",
        Some(result) => text += &format!(", which {result}"),
        None => {}
    }
    if let Some(message) = &entry.message {
        text += &format!(" ({message})");
    }
    text
}
