//! Where the bugs that tests plant change what the machine does.

use jiff::{SignedDuration, Timestamp};
use kron_schedule::{Dst, Fold, Gap};

use super::{Adoption, Ending, Machine, Selected, Task};
use crate::flaw::{Flaw, planted};

pub(super) fn dst(right: Dst) -> Dst {
    match planted() {
        Some(Flaw::GapRuns) => Dst { gap: Gap::After, ..right },
        Some(Flaw::FoldRunsOnce) => Dst { fold: Fold::First, ..right },
        _ => right,
    }
}

pub(super) fn adopted(machine: &mut Machine, adoption: &Adoption, floor: Timestamp, now: Timestamp) {
    for task in &mut machine.tasks {
        let record = &mut task.record;
        let is_new = adoption.new.contains(&record.name);
        match planted() {
            Some(Flaw::ForgedHistory) if is_new => record.last_attempt_at = Some(now),
            Some(Flaw::BootMakesUp) if is_new => record.registered_at -= SignedDuration::from_hours(36),
            Some(Flaw::OverrideForgets) if adoption.overridden.contains(&record.name) => {
                record.registered_at = floor;
                record.last_attempt_at = None;
                record.last_success_at = None;
                record.pending_retry_until = None;
            }
            Some(Flaw::OrphanForgotten) => record.running = None,
            _ => {}
        }
    }
}

pub(super) fn selected(machine: &mut Machine, selected: &[Selected]) {
    for Selected { task, before, .. } in selected {
        match planted() {
            Some(Flaw::RetryNotCleared) => {
                machine.tasks[*task as usize].record.pending_retry_until = before.pending_retry_until;
            }
            Some(Flaw::Overlap) => machine.enqueue(*task),
            _ => {}
        }
    }
}

pub(super) fn ended(task: &mut Task, ending: Ending, now: Timestamp) {
    let record = &mut task.record;
    match (ending, planted()) {
        (Ending::Failed, Some(Flaw::FailureMovesAttempt)) => record.last_attempt_at = Some(now),
        (Ending::Failed, Some(Flaw::FailureForgetsSuccess)) => record.last_success_at = None,
        // Without the failure there is nothing to keep a distance from.
        (Ending::Failed, Some(Flaw::ZeroDelaySpins)) => record.last_failure_at = None,
        (Ending::Failed, Some(Flaw::RetryEarly)) => {
            let half = SignedDuration::from_millis(record.retry_delay_ms.cast_signed() / 2);
            record.pending_retry_until = Some(now + half);
        }
        // As a scheduler would that goes on with the occurrence after the last one it ran for.
        (Ending::Succeeded, Some(Flaw::MakeUp)) => {
            let schedule = task.plan.schedule.as_ref();
            let next = schedule.and_then(|schedule| schedule.next_after(record.registered_at));
            if let Some(next) = next.filter(|next| *next < now) {
                record.registered_at = next;
                record.last_attempt_at = Some(next);
            }
        }
        _ => {}
    }
}
