//! What a definition would do, before it is saved; and why something did or did not happen.

use jiff::{SignedDuration, Timestamp};
use kron_core::{Decision, decide};
use kron_zones::Zones;

use crate::members::{Members, raw};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::times::stamp;

use super::Cron;
use super::definition::{Compiled, Registration};
use super::occurrence::{Occurrence, Outcome, Reason};
use super::turn::periods_after;
use super::view::{occurrence_view, planned_view, warnings};

/// How many next runs are shown, unless somebody asks for another number.
pub const RUNS_DEFAULT: usize = 10;

/// The most next runs that are shown.
pub const RUNS_MAX: usize = 1_000;

/// What a definition would do.
#[derive(Debug)]
pub struct Preview {
    cron: Cron,
    compiled: Compiled,
}

impl Preview {
    /// Reads a definition, or only an expression and what is known of the rest.
    ///
    /// # Errors
    ///
    /// As its registration would be refused.
    pub fn read(
        mut given: Members,
        stored: Option<&Cron>,
        zones: &Zones,
        now: Timestamp,
    ) -> Result<Preview, Refusal> {
        // A form is filled in bit by bit.
        given.0.entry("name".into()).or_insert_with(|| raw(&"preview"));
        if !given.0.contains_key("type") && !given.0.contains_key("job_template") {
            given.put("type", &"preview");
        }
        let registration = Registration::read(given, zones, now)?;
        let enabled = registration.enabled.or(stored.map(|cron| cron.enabled)).unwrap_or(true);
        let (cron, compiled) = match stored {
            Some(stored) => {
                let mut cron = stored.clone();
                let (compiled, _) = cron.redefine(registration.definition, enabled, zones, now)?;
                (cron, compiled)
            }
            None => {
                let compiled = registration.definition.compile(now, zones)?;
                (Cron::new(registration.definition, &compiled, enabled, now), compiled)
            }
        };
        Ok(Preview { cron, compiled })
    }

    /// The next runs.
    #[must_use]
    pub fn runs(&self, count: usize) -> Vec<Timestamp> {
        runs(&self.cron, &self.compiled, count)
    }

    /// What the definition means.
    #[must_use]
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// As it is shown, beside what is stored under that name.
    #[must_use]
    pub fn view(&self, stored: Option<(&Cron, &Compiled)>, count: usize) -> Object {
        let runs = runs(&self.cron, &self.compiled, count);
        let shown: Vec<String> = runs.iter().map(|at| stamp(*at)).collect();
        let local: Vec<String> =
            runs.iter().map(|at| self.compiled.plan.zone().to_civil(*at).to_string()).collect();
        let changes = stored.map(|(cron, compiled)| {
            let before = self::runs(cron, compiled, count);
            let missing = |from: &[Timestamp], other: &[Timestamp]| -> Vec<String> {
                // Beyond the shorter list nothing can be said.
                let end = other.last().copied();
                let known = |at: &&Timestamp| other.len() < count || Some(**at) <= end;
                from.iter().filter(known).filter(|at| !other.contains(at)).map(|at| stamp(*at)).collect()
            };
            Object::new().with("added", &missing(&runs, &before)).with("removed", &missing(&before, &runs))
        });
        Object::new()
            .with("description", &self.compiled.expr.describe())
            .with("timezone", &self.cron.definition.timezone)
            .with("enabled", &self.cron.enabled)
            .with("warnings", &warnings(&self.compiled))
            .with("next_runs", &shown)
            .with("next_runs_local", &local)
            .maybe("changes", changes.as_ref())
    }
}

/// The next runs of a cron job, in order.
#[must_use]
pub fn runs(cron: &Cron, compiled: &Compiled, count: usize) -> Vec<Timestamp> {
    // Windows overlap, so more are looked at than shown; and constraints may allow none at all.
    let looked = count.saturating_mul(2).saturating_add(100);
    let mut runs: Vec<Timestamp> =
        cron.planned(compiled).take(looked).filter_map(|decision| decision.chosen()).collect();
    runs.sort_unstable();
    runs.truncate(count);
    runs
}

/// Why a cron job did or did not run at a time.
#[derive(Debug)]
pub struct Why<'c> {
    /// The cron job.
    pub cron: &'c Cron,
    /// What it means.
    pub compiled: &'c Compiled,
    /// The time that is asked about.
    pub at: Timestamp,
    /// The occurrence that it is about, if any.
    pub about: Option<Decision>,
    /// What the record says about that occurrence, or else about that time.
    pub recorded: Option<Occurrence>,
}

impl Compiled {
    /// The occurrence that a time is about: the one of that time, else the one that is to run then, else the
    /// latest in whose window it lies.
    #[must_use]
    pub fn about(&self, at: Timestamp) -> Option<Decision> {
        let (opens, closes) = self.plan.window().bounds(at);
        // The nominal times of windows that may hold it lie as far behind it as a window reaches ahead.
        let first = at.checked_sub(closes.duration_since(at)).unwrap_or(Timestamp::MIN);
        let last = at.checked_add(at.duration_since(opens)).unwrap_or(Timestamp::MAX);
        let before = first.checked_sub(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MIN);
        let rank = |decision: &Decision| (decision.nominal() == at, decision.chosen() == Some(at));
        periods_after(&self.plan, before)
            .take_while(|nominal| *nominal <= last)
            .map(|nominal| decide(&self.plan, nominal))
            .filter(|decision| decision.window_start() <= at && at <= decision.window_end())
            .max_by_key(rank)
    }
}

impl Why<'_> {
    /// As it is shown.
    #[must_use]
    pub fn view(&self) -> Object {
        let explained = self.compiled.plan.schedule().explain(self.at);
        let parts: Vec<Object> = explained
            .parts()
            .iter()
            .map(|part| {
                Object::new()
                    .with("field", &part.name())
                    .with("value", &part.value())
                    .with("wanted", &part.wanted())
                    .with("matches", &part.matches())
            })
            .collect();
        let is_occurrence = self.about.as_ref().is_some_and(|decision| decision.nominal() == self.at);
        let planned = self.about.as_ref().map(|decision| planned_view(self.cron, decision));
        let what = match (&self.recorded, &self.about) {
            (Some(occurrence), _) => format!("{}: {}", word(occurrence), occurrence.reason.words()),
            (None, Some(decision)) => self.expected(decision),
            (None, None) => explained.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        let answer = match &self.about {
            Some(decision) if !is_occurrence => {
                let chosen = self.recorded.as_ref().map_or(decision.chosen(), |occurrence| occurrence.chosen);
                let place = if chosen == Some(self.at) { "the chosen time" } else { "in the window" };
                let (at, nominal) = (stamp(self.at), stamp(decision.nominal()));
                format!("{at} is {place} of the occurrence of {nominal}, {what}")
            }
            _ => what,
        };
        Object::new()
            .with("cron_name", &self.cron.definition.name)
            .with("at", &stamp(self.at))
            .with("local", &self.compiled.plan.zone().to_civil(self.at).to_string())
            .with("timezone", &self.cron.definition.timezone)
            .with("is_occurrence", &is_occurrence)
            .with("answer", &answer)
            .with("fields", &parts)
            .maybe("recorded", self.recorded.as_ref().map(occurrence_view).as_ref())
            .maybe("decision", planned.as_ref())
    }

    /// What is to become of an occurrence that the record says nothing of.
    fn expected(&self, decision: &Decision) -> String {
        if self.cron.is_settled(decision.nominal()) {
            let created = stamp(self.cron.created_at);
            return format!(
                "not recorded: it lies before the registration at {created}, or beyond what is kept"
            );
        }
        match (self.cron.enabled, decision.chosen()) {
            (false, _) => "it will be skipped: the cron job is disabled".into(),
            (true, None) => format!("it will not run: {}", Reason::Unschedulable.words()),
            (true, Some(_)) => "planned: it has not come yet".into(),
        }
    }
}

fn word(occurrence: &Occurrence) -> &'static str {
    match occurrence.outcome {
        Outcome::Executed => "executed",
        Outcome::Missed => "missed",
        Outcome::Skipped => "skipped",
        Outcome::Unschedulable => "unschedulable",
    }
}
