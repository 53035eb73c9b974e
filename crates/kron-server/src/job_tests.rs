//! The table of what may be done to a job in which state, and random lives that must keep their promises.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use crate::job::{Defaults, Job, Nack, Progress, State};
use crate::members::Members;

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn push(options: &serde_json::Value) -> Job {
    let body = json!({"type": "test.job", "args": [], "options": options});
    crate::envelope::read(Members::read(body.to_string().as_bytes()).unwrap(), start()).unwrap()
}

fn nack() -> Nack {
    Nack::of("oops", "oops")
}

/// A job in that state.
fn in_state(state: State) -> Job {
    let mut job = match state {
        State::Scheduled => push(&json!({"scheduled_at": "+PT1H"})),
        State::Pending => push(&json!({"pending": true})),
        State::Discarded => push(&json!({"retry": {"max_attempts": 1}})),
        _ => push(&json!({})),
    };
    if !matches!(state, State::Scheduled | State::Pending | State::Available) {
        job.claim(Some("w"), None, Defaults::default(), start());
    }
    match state {
        State::Cancelled => drop(job.cancel(None, start()).unwrap()),
        State::Completed => drop(job.ack(None, None, None, start()).unwrap()),
        State::Retryable | State::Discarded => drop(job.nack(nack(), 0.5, start()).unwrap()),
        _ => {}
    }
    assert_eq!(job.state, state);
    job
}

#[test]
fn what_may_be_done_in_which_state() {
    use State::{Active, Cancelled, Completed, Discarded, Pending};
    for state in State::ALL {
        let is = |allowed: &[State]| allowed.contains(&state);
        assert_eq!(in_state(state).ack(None, None, None, start()).is_ok(), is(&[Active]), "ack {state:?}");
        assert_eq!(in_state(state).nack(nack(), 0.5, start()).is_ok(), is(&[Active]), "nack {state:?}");
        assert_eq!(in_state(state).activate(start()).is_ok(), is(&[Pending]), "activate {state:?}");
        let cancelled = in_state(state).cancel(None, start());
        assert_eq!(cancelled.is_ok(), !is(&[Completed, Cancelled, Discarded]), "cancel {state:?}");
        let beaten = in_state(state).beat("w", None, Defaults::default(), start());
        assert_eq!(beaten.is_some(), is(&[Active]), "beat {state:?}");
        let mut job = in_state(state);
        job.report(Progress { value: 0.5, data: None, message: None, at: start() }, Defaults::default());
        assert_eq!(job.progress.is_some(), is(&[Active]), "report {state:?}");
    }
}

#[test]
fn refusals_name_the_state() {
    let refusal = in_state(State::Available).ack(None, None, None, start()).unwrap_err();
    assert!(refusal.message.ends_with("is available and cannot be acknowledged"), "{}", refusal.message);
    assert_eq!(refusal.details["current_state"], "available");
    let refusal = in_state(State::Active).ack(Some("other"), None, None, start()).unwrap_err();
    assert!(refusal.message.contains("is held by another worker"), "{}", refusal.message);
}

#[test]
fn what_an_attempt_says_that_is_over_counts_no_more() {
    let mut job = in_state(State::Active);
    let old = job.fence;
    job.nack(Nack { requeue: true, fence: Some(old), ..nack() }, 0.5, start()).unwrap();
    // The same worker has it again, so that only the fence tells the two attempts apart.
    job.claim(Some("w"), None, Defaults::default(), start());
    let before = format!("{job:?}");
    let stale = job.ack(Some("w"), Some(old), None, start()).unwrap_err();
    assert_eq!(
        stale.message,
        format!(
            "job {} was handed out anew since (fence 2, and not 1), so it cannot be acknowledged by that attempt",
            job.id
        )
    );
    assert!(job.nack(Nack { fence: Some(old), ..nack() }, 0.5, start()).is_err());
    assert_eq!(format!("{job:?}"), before, "and leaves no trace");
    job.ack(Some("w"), Some(2), None, start()).unwrap();
}

/// Something that happens to a job.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Ack,
    Beat,
    Cancel,
    Claim,
    Fail { retryable: bool },
    Requeue,
    Wait { seconds: i64 },
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => Just(Deed::Claim),
        1 => Just(Deed::Ack),
        1 => Just(Deed::Cancel),
        2 => any::<bool>().prop_map(|retryable| Deed::Fail { retryable }),
        1 => Just(Deed::Requeue),
        2 => Just(Deed::Beat),
        4 => (0..4_000_i64).prop_map(|seconds| Deed::Wait { seconds }),
    ];
    proptest::collection::vec(deed, 1..40)
}

proptest! {
    /// Whatever happens, in whatever order: terminal states are final, attempts are counted at claims only
    /// and never exceed the policy, and once it was told the time, what is due lies ahead.
    #[test]
    fn a_life_keeps_its_promises(
        deeds in deeds(),
        most in 0..4_u32,
        delay in proptest::option::of(1..3_000_u32),
        expiry in proptest::option::of(1..6_000_u32),
    ) {
        let mut options = json!({"retry": {"max_attempts": most}});
        if let Some(delay) = delay {
            options["scheduled_at"] = json!(format!("+PT{delay}S"));
        }
        if let Some(expiry) = expiry {
            options["expires_at"] = json!(format!("+PT{expiry}S"));
        }
        let mut job = push(&options);
        let mut now = start();
        let (mut claims, mut requeues) = (0, 0);
        for deed in deeds {
            let before = job.clone();
            match deed {
                Deed::Ack => drop(job.ack(None, None, None, now)),
                Deed::Beat => drop(job.beat("w", None, Defaults::default(), now)),
                Deed::Cancel => drop(job.cancel(None, now)),
                Deed::Claim if job.state == State::Available => {
                    claims += 1;
                    job.claim(Some("w"), None, Defaults::default(), now);
                }
                Deed::Claim => {}
                Deed::Fail { retryable } => drop(job.nack(Nack { retryable: Some(retryable), ..nack() }, 0.3, now)),
                Deed::Requeue => {
                    if job.nack(Nack { requeue: true, ..nack() }, 0.3, now).is_ok() {
                        requeues += 1;
                    }
                }
                Deed::Wait { seconds } => {
                    now += SignedDuration::from_secs(seconds);
                    job.advance(0.3, now);
                }
            }
            if matches!(deed, Deed::Wait { .. }) {
                prop_assert!(job.due_at().is_none_or(|due| due > now));
            }
            if before.state.is_terminal() {
                prop_assert_eq!(job.state, before.state);
            }
            prop_assert_eq!(job.attempt, claims);
            // Giving a job back costs no attempt of its own, but the next claim counts.
            prop_assert!(claims <= most.max(1) + requeues);
            prop_assert_eq!(job.worker_id.is_some(), job.state == State::Active);
            prop_assert!(job.errors.len() <= crate::job::FAILURES_MAX);
            let ended_by_itself = job.completed_at.is_some();
            prop_assert!(!ended_by_itself || matches!(job.state, State::Completed | State::Discarded));
            // It is stored and read back as it was.
            let text = serde_json::to_string(&job).unwrap();
            let again: Job = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&again).unwrap(), text);
        }
    }
}
