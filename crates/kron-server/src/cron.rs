//! Cron jobs: what was registered, what it means, and what to do about it now.

mod definition;
mod occurrence;
mod preview;
mod spread;
mod turn;
mod view;
mod zone;

use jiff::Timestamp;
use jiff::civil::DateTime;
use kron_core::PeriodId;
use serde::{Deserialize, Serialize};

pub(crate) use definition::renamed;
pub use definition::{Compiled, Definition, Dialect, Overlap, Registration};
pub use occurrence::{Kind, Occurrence, Outcome, Place, Reason};
pub use preview::{Preview, RUNS_DEFAULT, RUNS_MAX, Why, runs};
pub use turn::{Active, Counting, Fire, Turn};
pub use view::{answer, cron_view, occurrence_view, planned_view};

/// A registered cron job: its definition, and what must be remembered so that no occurrence fires twice.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Cron {
    /// What its owner declares.
    pub definition: Definition,
    /// Whether it fires.
    pub enabled: bool,
    /// When it was registered first.
    pub created_at: Timestamp,
    /// From where an `@every` counts.
    pub anchor: Timestamp,
    /// When it fired last.
    pub last_run_at: Option<Timestamp>,
    /// How often it has fired.
    pub run_count: u64,
    /// Every occurrence up to here has its outcome, except the pending ones.
    pub watermark: Timestamp,
    /// The local time of the last occurrence up to there, by the time zone data of the day. By other data the same
    /// local time may come again, and is not another occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<DateTime>,
    /// Nominal times below the watermark that still wait for their chosen time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Timestamp>,
    /// Up to here, local times that clocks skipped have been told of.
    pub gaps_told: Timestamp,
    /// When it will fire next; none while it is disabled.
    pub next_run_at: Option<Timestamp>,
    /// When to look at it next.
    pub next_look: Option<Timestamp>,
}

impl Cron {
    /// A cron job as it is when it is registered.
    #[must_use]
    pub fn new(definition: Definition, compiled: &Compiled, enabled: bool, now: Timestamp) -> Cron {
        let mut cron = Cron {
            definition,
            enabled,
            created_at: now,
            anchor: now,
            last_run_at: None,
            run_count: 0,
            watermark: Timestamp::MIN,
            label: None,
            pending: Vec::new(),
            gaps_told: now,
            next_run_at: None,
            next_look: None,
        };
        cron.count_from(compiled, now);
        cron.look_ahead(compiled, now);
        cron
    }

    /// Whether its plans stay as they are under another definition, since that has the same occurrences at the same times.
    /// Then nothing need be settled before.
    #[must_use]
    pub fn keeps_its_plans(&self, definition: &Definition, enabled: bool) -> bool {
        self.enabled == enabled
            && self.definition.schedule_equals(definition)
            && self.definition.spread_equals(definition)
    }

    /// The same cron job under another definition. What was due has been settled before, if its plans change.
    ///
    /// A schedule that has not changed goes on as it was; a changed one, and one that is enabled again,
    /// counts from now, and what still waited for its chosen time is told of. Where no plan changes, none is made: this
    /// node may have other time zones than the one that leads, whose plans they are. For the same reason the watermark
    /// follows no zone here.
    ///
    /// # Errors
    ///
    /// If the definition cannot be compiled.
    pub fn redefine(
        &mut self,
        definition: Definition,
        enabled: bool,
        zones: &kron_zones::Zones,
        now: Timestamp,
    ) -> Result<(Compiled, Turn), crate::refusal::Refusal> {
        let same = self.definition.schedule_equals(&definition);
        let keeps_plans = self.keeps_its_plans(&definition, enabled);
        let anchor = if same { self.anchor } else { now };
        let compiled = definition.compile(anchor, zones)?;
        let mut turn = Turn::default();
        if !same || (enabled && !self.enabled) {
            // What cannot be compiled any more had nothing that waited.
            if let Ok(before) = self.definition.compile(self.anchor, zones) {
                turn = self.give_up(&before, now);
            }
            self.count_from(&compiled, now);
        }
        self.definition = definition;
        self.enabled = enabled;
        self.anchor = anchor;
        if !keeps_plans {
            self.look_ahead(&compiled, now);
        }
        Ok((compiled, turn))
    }

    /// The ledger of kron-core.
    fn ledger(&self) -> kron_core::Ledger {
        let pending = self.pending.iter().map(|at| PeriodId::new(*at));
        kron_core::Ledger::restored(Some(PeriodId::new(self.watermark)), pending.collect(), Vec::new())
    }
}
