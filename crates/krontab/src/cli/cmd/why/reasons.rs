//! What `krontab why` answers, and how it reads.

use std::fmt;

use serde::Serialize;

use crate::cli::view::{DecisionView, Instant, ScheduleView, SkippedView};

/// Everything that has a say in whether a job runs at an instant.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reasons {
    pub(super) job: String,
    pub(super) identity: String,
    pub(super) schedule: ScheduleView,
    pub(super) timezone: String,
    /// The local time that was asked about, if it does not exist. Then `at` is the first instant after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) missing: Option<String>,
    pub(super) at: Instant,
    pub(super) runs: bool,
    /// The answer in one sentence.
    pub(super) verdict: String,
    /// Whether the instant is a nominal time of the schedule.
    pub(super) nominal: bool,
    pub(super) fields: Vec<FieldView>,
    /// Where both day fields say something: that one of them is enough, and which one matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) either_day: Option<String>,
    /// What a change of clocks has to do with it.
    pub(super) daylight_saving: Vec<String>,
    /// Local times of the same day that do not exist.
    pub(super) skipped: Vec<SkippedView>,
    /// The periods whose windows are open then; no more than a few of them.
    pub(super) periods: Vec<DecisionView>,
    pub(super) open_windows: usize,
    pub(super) constraints: Vec<ClauseView>,
    pub(super) policy: PolicyView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<Instant>,
    /// Where the search for the next run ended without one: there is none before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) none_until: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct FieldView {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) wanted: String,
    pub(super) matches: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ClauseView {
    /// `only` or `avoid`.
    pub(super) rule: &'static str,
    pub(super) clause: String,
    pub(super) allows: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct PolicyView {
    pub(super) concurrency: &'static str,
    pub(super) deadline: Option<String>,
    pub(super) suspend: bool,
}

/// `only(hours=8-10)`
impl fmt::Display for ClauseView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.rule, self.clause)
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "job: {}", self.job)?;
        writeln!(f, "identity: {}", self.identity)?;
        writeln!(f, "schedule: {}", self.schedule)?;
        writeln!(f, "timezone: {}", self.timezone)?;
        match &self.missing {
            Some(missing) => writeln!(f, "at: {missing}, a local time that does not exist")?,
            None => writeln!(f, "at: {}", self.at)?,
        }
        writeln!(f, "nominal time: {}", if self.nominal { "yes" } else { "no" })?;
        let names = self.fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
        let values = self.fields.iter().map(|field| field.value.len()).max().unwrap_or(0);
        for FieldView { name, value, wanted, matches } in &self.fields {
            let relation = if *matches { "matches" } else { "is not" };
            writeln!(f, "  {name:names$}  {value:values$}  {relation} {wanted}")?;
        }
        if let Some(either) = &self.either_day {
            writeln!(f, "  {either}")?;
        }
        for note in &self.daylight_saving {
            writeln!(f, "daylight saving: {note}")?;
        }
        for period in &self.periods {
            let DecisionView { period_id, window_start, window_end, .. } = period;
            let span = match window_start == window_end {
                true => "this second alone".to_owned(),
                false => format!("from {window_start} to {window_end}"),
            };
            writeln!(f, "window: {span}, of the period {period_id}")?;
            writeln!(f, "  chosen time: {}", period.chosen())?;
        }
        if self.open_windows > self.periods.len() {
            writeln!(f, "window: {} more are open", self.open_windows - self.periods.len())?;
        }
        if self.periods.is_empty() {
            writeln!(f, "window: none is open")?;
        }
        for clause in &self.constraints {
            writeln!(
                f,
                "constraint: {clause} {}",
                if clause.allows { "allows it" } else { "does not allow it" }
            )?;
        }
        self.policy.fmt(f)?;
        match (&self.next, &self.none_until) {
            (Some(next), _) => writeln!(f, "next run: {next}")?,
            (None, Some(until)) => writeln!(f, "next run: none found until {until}")?,
            (None, None) => writeln!(f, "next run: none")?,
        }
        writeln!(f, "\n{}", self.verdict)
    }
}

impl fmt::Display for PolicyView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let concurrency = match self.concurrency {
            "allow" => "it also starts beside a run that is still active",
            "replace" => "a run that is still active is ended first",
            "queue" => "it waits for a run that is still active",
            _ => "it is skipped while another run is active",
        };
        writeln!(f, "policy: concurrency={}: {concurrency}", self.concurrency)?;
        if let Some(deadline) = &self.deadline {
            writeln!(
                f,
                "policy: deadline={deadline}: started later than that after the chosen second, it is missed"
            )?;
        }
        if self.suspend {
            writeln!(f, "policy: suspend=true: nothing starts")?;
        }
        Ok(())
    }
}
