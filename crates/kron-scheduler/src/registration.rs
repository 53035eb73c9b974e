//! What is to run: a name, when, what, and how long to wait after a failure.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;

/// What a callback says when it fails.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A callback that was called.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// What a task does: an async function that may fail.
#[derive(Clone)]
pub struct Callback(Arc<dyn Fn() -> Running + Send + Sync>);

impl Callback {
    /// Makes a callback of an async function or closure.
    ///
    /// ```
    /// use kron_scheduler::Callback;
    ///
    /// let callback = Callback::new(|| async { std::fs::remove_file("/tmp/stale") });
    /// ```
    pub fn new<F, T, E>(callback: F) -> Callback
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Callback(Arc::new(move || {
            let running = callback();
            Box::pin(async move { running.await.map_err(Into::into) })
        }))
    }

    pub(crate) fn call(&self) -> Running {
        (self.0)()
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// One task: its name, its cron expression, its callback, and its retry delay.
///
/// Nothing is judged here but the type; [`initialize`](crate::Scheduler::initialize) does that, before
/// anything else.
#[derive(Clone, Debug)]
pub struct Registration {
    pub(crate) name: Arc<str>,
    pub(crate) cron: Arc<str>,
    pub(crate) retry_delay: Duration,
    pub(crate) callback: Callback,
}

impl Registration {
    /// A task that runs whenever the expression matches, and again `retry_delay` after a failure.
    ///
    /// ```
    /// use kron_scheduler::Registration;
    /// use std::time::Duration;
    ///
    /// Registration::new("backup", "0 3 * * *", Duration::from_secs(300), || async {
    ///     Ok::<(), std::io::Error>(())
    /// });
    /// ```
    pub fn new<F, T, E>(
        name: impl Into<Arc<str>>,
        cron: impl Into<Arc<str>>,
        retry_delay: Duration,
        callback: F,
    ) -> Registration
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Registration::with_callback(name, cron, retry_delay, Callback::new(callback))
    }

    /// The same, with a callback that exists already.
    pub fn with_callback(
        name: impl Into<Arc<str>>,
        cron: impl Into<Arc<str>>,
        retry_delay: Duration,
        callback: Callback,
    ) -> Registration {
        Registration { name: name.into(), cron: cron.into(), retry_delay, callback }
    }

    /// The same, with a delay that came from elsewhere as a number of milliseconds.
    ///
    /// # Errors
    ///
    /// `NegativeRetryDelayError` if it is below zero.
    ///
    /// ```
    /// use kron_scheduler::{Callback, Registration};
    ///
    /// let callback = Callback::new(|| async { Ok::<(), std::io::Error>(()) });
    /// let error = Registration::with_delay_ms("backup", "0 3 * * *", -1, callback).unwrap_err();
    /// assert_eq!(error.to_string(), "Retry delay must be non-negative");
    /// assert_eq!(error.details()["retryDelayMs"], -1);
    /// ```
    pub fn with_delay_ms(
        name: impl Into<Arc<str>>,
        cron: impl Into<Arc<str>>,
        retry_delay_ms: i64,
        callback: Callback,
    ) -> Result<Registration, Error> {
        let delay =
            u64::try_from(retry_delay_ms).map_err(|_| Error::negative_delay(&json!(retry_delay_ms)))?;
        Ok(Registration::with_callback(name, cron, Duration::from_millis(delay), callback))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cron expression as it was written.
    #[must_use]
    pub fn cron(&self) -> &str {
        &self.cron
    }

    /// The delay as it is compared and stored: in milliseconds, and a fraction counts as a whole one.
    pub(crate) fn retry_delay_ms(&self) -> Result<u64, Error> {
        let millis = self.retry_delay.as_nanos().div_ceil(1_000_000);
        u64::try_from(millis).ok().filter(|millis| *millis <= RETRY_DELAY_MS_MAX).ok_or_else(|| {
            let value = json!(self.retry_delay.as_secs_f64() * 1_000.0);
            Error::invalid("retryDelay", &value, "must be at most 100 years").with("name", json!(*self.name))
        })
    }
}

/// The longest delay: a hundred years, so that no retry falls past the end of time.
const RETRY_DELAY_MS_MAX: u64 = 100 * 366 * 86_400_000;

/// The tasks of a scheduler.
#[derive(Clone, Debug, Default)]
pub struct Registrations(pub(crate) Vec<Registration>);

/// Callbacks by name, for registrations that come as data.
pub type Callbacks = HashMap<String, Callback>;

impl Registrations {
    /// Reads registrations that come as data: an array of `[name, cron, callback, delay]`.
    ///
    /// The callback is named, and looked up in the table. The delay is a whole number of milliseconds, or a text
    /// with a unit such as `"90s"` or `"5m"`. The error can be handed to
    /// [`initialize`](crate::Scheduler::initialize) as it is, which then reports it as its own.
    ///
    /// # Errors
    ///
    /// `RegistrationsNotArrayError`, `RegistrationShapeError`, `NegativeRetryDelayError`, or
    /// `InvalidRegistrationError` for a delay that has a fraction or no unit.
    ///
    /// ```
    /// use kron_scheduler::{Callback, Callbacks, Registrations};
    /// use serde_json::json;
    ///
    /// let mut callbacks = Callbacks::new();
    /// callbacks.insert("backup".into(), Callback::new(|| async { Ok::<(), std::io::Error>(()) }));
    ///
    /// let registrations = json!([["nightly", "0 3 * * *", "backup", "5m"]]);
    /// assert!(Registrations::from_json(&registrations, &callbacks).is_ok());
    ///
    /// let error = Registrations::from_json(&json!([["nightly", "0 3 * * *"]]), &callbacks).unwrap_err();
    /// assert_eq!(error.kind().name(), "RegistrationShapeError");
    /// assert_eq!(error.details()["registrationIndex"], 0);
    /// ```
    pub fn from_json(value: &Value, callbacks: &Callbacks) -> Result<Registrations, Error> {
        let Value::Array(entries) = value else { return Err(Error::not_array()) };
        let read = |(index, entry)| entry_from_json(index, entry, callbacks);
        entries.iter().enumerate().map(read).collect::<Result<_, _>>().map(Registrations)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn entry_from_json(index: usize, entry: &Value, callbacks: &Callbacks) -> Result<Registration, Error> {
    let shape = || Error::shape(index, entry);
    let Some([name, cron, callback, delay]) = entry.as_array().map(Vec::as_slice) else {
        return Err(shape());
    };
    let (Some(name), Some(cron), Some(callback)) = (name.as_str(), cron.as_str(), callback.as_str()) else {
        return Err(shape());
    };
    let Some(callback) = callbacks.get(callback) else {
        return Err(shape().with("unknownCallback", json!(crate::error::shortened(callback))));
    };
    let at = |error: Error| error.with("registrationIndex", json!(index)).with("name", json!(name));
    let invalid = |reason: &str| at(Error::invalid("retryDelay", delay, reason));
    let millis = match delay {
        Value::Number(number) => match number.as_i64() {
            Some(millis) => millis,
            None if number.as_f64().is_some_and(|millis| millis < 0.0) => {
                return Err(at(Error::negative_delay(delay)));
            }
            None => return Err(invalid("must be a whole number of milliseconds")),
        },
        Value::String(text) => match text.parse::<kron_schedule::Duration>() {
            Ok(duration) if duration.as_nanos() % 1_000_000 == 0 => duration.as_nanos() / 1_000_000,
            Ok(_) => return Err(invalid("must be a whole number of milliseconds")),
            Err(_) => return Err(invalid("must be a number with a unit, such as 90s or 5m")),
        },
        _ => return Err(shape()),
    };
    Registration::with_delay_ms(name, cron, millis, callback.clone()).map_err(at)
}

impl From<Vec<Registration>> for Registrations {
    fn from(registrations: Vec<Registration>) -> Registrations {
        Registrations(registrations)
    }
}

impl FromIterator<Registration> for Registrations {
    fn from_iter<I: IntoIterator<Item = Registration>>(registrations: I) -> Registrations {
        Registrations(registrations.into_iter().collect())
    }
}

/// What [`initialize`](crate::Scheduler::initialize) takes: registrations, or why there are none.
pub trait IntoRegistrations {
    /// The registrations.
    ///
    /// # Errors
    ///
    /// The one of reading them, if that failed.
    fn into_registrations(self) -> Result<Registrations, Error>;
}

impl IntoRegistrations for Registrations {
    fn into_registrations(self) -> Result<Registrations, Error> {
        Ok(self)
    }
}

impl IntoRegistrations for Vec<Registration> {
    fn into_registrations(self) -> Result<Registrations, Error> {
        Ok(self.into())
    }
}

impl<const N: usize> IntoRegistrations for [Registration; N] {
    fn into_registrations(self) -> Result<Registrations, Error> {
        Ok(self.into_iter().collect())
    }
}

impl IntoRegistrations for Result<Registrations, Error> {
    fn into_registrations(self) -> Result<Registrations, Error> {
        self
    }
}
