//! When a failed job is tried again, and when not.

use serde::{Deserialize, Serialize};

use crate::members::{Members, Raw, read_as};
use crate::refusal::{Code, Refusal};
use crate::times::{duration, read_duration};

/// A retry policy, with every default filled in.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Retry {
    /// How often the job is executed at most.
    pub max_attempts: u32,
    /// Before the first retry.
    pub initial_ms: u64,
    /// What each wait is multiplied with.
    pub coefficient: f64,
    /// The longest wait.
    pub max_ms: u64,
    /// Whether waits are spread, so that what failed together does not return together.
    pub jitter: bool,
    /// Kinds of failures that are final.
    pub non_retryable: Vec<String>,
    /// What becomes of a job that has failed for good.
    pub on_exhaustion: Exhaustion,
    /// How waits grow.
    pub backoff: Backoff,
}

/// What becomes of a job that has failed for good.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhaustion {
    /// It is over.
    Discard,
    /// It is kept where somebody can look at it and try again.
    DeadLetter,
}

/// How the waits between attempts grow.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// They do not.
    #[serde(alias = "none")]
    Constant,
    /// By the coefficient, each time.
    Exponential,
    /// By the first wait, each time.
    Linear,
    /// By the number of the attempt to the power of the coefficient.
    Polynomial,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            max_attempts: 3,
            initial_ms: 1_000,
            coefficient: 2.0,
            max_ms: 300_000,
            jitter: true,
            non_retryable: Vec::new(),
            on_exhaustion: Exhaustion::Discard,
            backoff: Backoff::Exponential,
        }
    }
}

impl Retry {
    /// Reads a policy; what it does not say has its default.
    ///
    /// # Errors
    ///
    /// If a member is wrong; the message names it.
    pub fn read(policy: Option<&Raw>) -> Result<Retry, Refusal> {
        let Some(policy) = policy else { return Ok(Retry::default()) };
        Members::of(policy, "retry")
            .and_then(Retry::read_members)
            .map_err(|refusal| Refusal { code: Code::ValidationError, ..refusal })
    }

    fn read_members(mut given: Members) -> Result<Retry, Refusal> {
        let mut retry = Retry::default();
        if let Some(most) = given.take_as("max_attempts", "a whole number of at least 0")? {
            retry.max_attempts = most;
        }
        if let Some(first) = interval(&mut given, "initial_interval")? {
            retry.initial_ms = first;
            // A first wait above the default cap is meant: the cap gives way.
            retry.max_ms = retry.max_ms.max(first);
        }
        if let Some(raw) = given.take("backoff_coefficient") {
            retry.coefficient = read_as(&raw, "backoff_coefficient", "a number of at least 1.0")?;
            if !(1.0..=1_000_000.0).contains(&retry.coefficient) {
                return Err(crate::members::wrong("backoff_coefficient", "a number of at least 1.0", &raw));
            }
        }
        if let Some(longest) = interval(&mut given, "max_interval")? {
            if longest < retry.initial_ms {
                return Err(Refusal::request(format!(
                    "expected `max_interval` to be at least the initial interval of {}, but found {}",
                    duration(retry.initial_ms),
                    duration(longest),
                ))
                .field("max_interval"));
            }
            retry.max_ms = longest;
        }
        if let Some(jitter) = given.take_as("jitter", "true or false")? {
            retry.jitter = jitter;
        }
        if let Some(raw) = given.take("non_retryable_errors") {
            let expected = "an array of names";
            retry.non_retryable = read_as(&raw, "non_retryable_errors", expected)?;
            if retry.non_retryable.iter().any(String::is_empty) {
                return Err(crate::members::wrong("non_retryable_errors", expected, &raw));
            }
        }
        if let Some(end) = given.take_as("on_exhaustion", "\"discard\" or \"dead_letter\"")? {
            retry.on_exhaustion = end;
        }
        let ways = "\"exponential\", \"linear\", \"constant\", \"polynomial\" or \"none\"";
        for name in ["backoff_type", "backoff_strategy"] {
            if let Some(backoff) = given.take_as(name, ways)? {
                retry.backoff = backoff;
            }
        }
        Ok(retry)
    }

    /// How long to wait after that attempt has failed. `spread` lies in 0 to 1 and is the luck in it.
    #[must_use]
    pub fn delay_ms(&self, attempt: u32, spread: f64) -> u64 {
        let (first, n) = (self.initial_ms as f64, f64::from(attempt.max(1)));
        let wait = match self.backoff {
            Backoff::Constant => first,
            Backoff::Exponential => first * self.coefficient.powf(n - 1.0),
            Backoff::Linear => first * n,
            Backoff::Polynomial => first * n.powf(self.coefficient),
        };
        let most = self.max_ms as f64;
        let wait = wait.min(most);
        let wait = if self.jitter { (wait * (0.5 + spread)).min(most) } else { wait };
        // What is capped at ten years is a whole number, and not negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let ms = wait.round() as u64;
        ms
    }

    /// Whether a failure of one of these names is final.
    #[must_use]
    pub fn is_final<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        names.into_iter().any(|name| {
            self.non_retryable.iter().any(|entry| match entry.strip_suffix('*') {
                Some(prefix) if prefix.ends_with('.') => name.starts_with(prefix),
                _ => entry == name,
            })
        })
    }

    /// The policy as it is shown.
    #[must_use]
    pub fn view(&self) -> serde_json::Value {
        serde_json::json!({
            "max_attempts": self.max_attempts,
            "initial_interval": duration(self.initial_ms),
            "backoff_coefficient": self.coefficient,
            "max_interval": duration(self.max_ms),
            "jitter": self.jitter,
            "non_retryable_errors": self.non_retryable,
            "on_exhaustion": self.on_exhaustion,
            "backoff_strategy": self.backoff,
        })
    }
}

/// An interval, as a duration or under `…_ms` as a number.
fn interval(given: &mut Members, name: &str) -> Result<Option<u64>, Refusal> {
    let ms_name = format!("{name}_ms");
    let in_ms: Option<u32> = given.take_as(&ms_name, "a number of milliseconds")?;
    let written = given.take(name).map(|raw| read_duration(&raw, name)).transpose()?;
    match written.or(in_ms.map(u64::from)) {
        Some(0) => Err(Refusal::request(format!("expected `{name}` to be longer than nothing")).field(name)),
        interval => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::raw;
    use serde_json::json;

    fn read(policy: &serde_json::Value) -> Result<Retry, Refusal> {
        Retry::read(Some(&raw(policy)))
    }

    #[test]
    fn waits_grow_as_the_strategy_says_and_never_past_the_cap() {
        for (policy, waits) in [
            (json!({"jitter": false}), [1_000, 2_000, 4_000]),
            (
                json!({"jitter": false, "backoff_coefficient": 10.0, "max_interval": "PT2S"}),
                [1_000, 2_000, 2_000],
            ),
            (json!({"jitter": false, "backoff_strategy": "linear"}), [1_000, 2_000, 3_000]),
            (json!({"jitter": false, "backoff_strategy": "none"}), [1_000, 1_000, 1_000]),
            (json!({"jitter": false, "backoff_strategy": "polynomial"}), [1_000, 4_000, 9_000]),
        ] {
            let retry = read(&policy).unwrap();
            assert_eq!([1, 2, 3].map(|attempt| retry.delay_ms(attempt, 0.9)), waits, "{policy}");
        }
        let retry = read(&json!({"initial_interval": "PT2S"})).unwrap();
        assert_eq!((retry.delay_ms(1, 0.0), retry.delay_ms(1, 1.0)), (1_000, 3_000));
        assert_eq!(Retry::default().delay_ms(u32::MAX, 1.0), 300_000);
    }

    #[test]
    fn a_wrong_policy_is_a_validation_error_that_names_the_member() {
        for (policy, name) in [
            (json!({"max_attempts": -1}), "max_attempts"),
            (json!({"max_attempts": 1.5}), "max_attempts"),
            (json!({"backoff_coefficient": 0.5}), "backoff_coefficient"),
            (json!({"initial_interval": "PT0S"}), "initial_interval"),
            (json!({"initial_interval": "PT10S", "max_interval": "PT1S"}), "max_interval"),
            (json!({"jitter": "yes"}), "jitter"),
            (json!({"non_retryable_errors": [""]}), "non_retryable_errors"),
            (json!({"on_exhaustion": "explode"}), "on_exhaustion"),
            (json!([]), "retry"),
        ] {
            let refusal = read(&policy).unwrap_err();
            assert_eq!(refusal.code, Code::ValidationError, "{policy}");
            assert!(refusal.message.contains(name), "{policy}: {}", refusal.message);
        }
    }

    #[test]
    fn a_prefix_needs_its_dot() {
        let retry = Retry { non_retryable: vec!["auth.*".into(), "bad".into()], ..Retry::default() };
        for (name, is_final) in
            [("auth.x", true), ("auth", false), ("author", false), ("bad", true), ("bad.x", false)]
        {
            assert_eq!(retry.is_final([name]), is_final, "{name}");
        }
    }
}
