//! A job: what is scheduled, and everything its decisions depend on.

use alloc::string::String;

use jiff::Timestamp;
use kron_schedule::{Duration, Schedule, Zone};

use crate::constraint::Constraints;
use crate::distribution::{Distribution, Sampler};
use crate::error::{JobError, Parameter, quoted};
use crate::policy::Policy;
use crate::seed::{Material, PeriodKey, SeedHash, SeedStrategy};
use crate::window::{Window, WindowMode};

/// A job whose parameters are all valid. Nothing that is asked of it can fail.
///
/// ```
/// use kron_core::{Distribution, Job, SeedStrategy, WindowMode, decide};
/// use kron_schedule::{Dialect, Dst, Duration, Expr, Zone};
///
/// let zone = Zone::utc();
/// let schedule = Expr::parse("0 0 * * *", Dialect::Kron)?.compile(&zone, Dst::KRON)?;
/// let job = Job::builder("prod/db-backup", schedule, zone)
///     .window(WindowMode::After, Duration::from_seconds(3_600))
///     .distribution(Distribution::Uniform)
///     .seed(SeedStrategy::Stable, "")
///     .build()?;
///
/// let decision = decide(&job, "2026-03-01T00:00:00Z".parse()?);
/// assert_eq!(decision.chosen(), Some("2026-03-01T00:58:29Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    material: Material,
    schedule: Schedule,
    zone: Zone,
    window: Window,
    distribution: Distribution,
    strategy: SeedStrategy,
    constraints: Constraints,
    policy: Policy,
    /// Whether there are constraints.
    constrained: bool,
    /// The distribution over the window of a nominal time in whole seconds, which nearly all are.
    sampler: Sampler,
}

impl Job {
    /// Begins the definition of a job. What is not given has its default: no window, uniform, stable
    /// seed without salt, no constraints, [`Policy::default`].
    ///
    /// The zone is the one the schedule was compiled in. Keys of days and weeks, and constraints,
    /// are read in it.
    #[inline]
    pub fn builder(identity: impl Into<String>, schedule: Schedule, zone: Zone) -> JobBuilder {
        JobBuilder {
            identity: identity.into(),
            schedule,
            zone,
            window: (WindowMode::After, Duration::ZERO),
            distribution: Distribution::Uniform,
            strategy: SeedStrategy::Stable,
            salt: String::new(),
            constraints: Constraints::default(),
            policy: Policy::default(),
        }
    }

    /// Its name, the same for as long as it is the same job.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.material.identity()
    }

    /// When its periods are.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The zone of its schedule, its constraints and the keys of its periods.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Where around their nominal times its periods may run.
    #[must_use]
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// How chosen times are spread over a window.
    #[must_use]
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Which of its periods share their random numbers.
    #[must_use]
    pub fn seed_strategy(&self) -> SeedStrategy {
        self.strategy
    }

    /// What is mixed into its seeds; empty by default.
    #[must_use]
    pub fn salt(&self) -> &str {
        self.material.salt()
    }

    /// What restricts the seconds that may be chosen.
    #[must_use]
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// What its owner wants done about lateness, overlap and suspension.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The same job under another policy.
    ///
    /// # Errors
    ///
    /// If the deadline is negative.
    pub fn with_policy(self, policy: Policy) -> Result<Job, JobError> {
        check_deadline(&policy)?;
        Ok(Job { policy, ..self })
    }

    pub(crate) fn is_constrained(&self) -> bool {
        self.constrained
    }

    /// The distribution over a window of the usual bounds.
    pub(crate) fn usual_sampler(&self) -> &Sampler {
        &self.sampler
    }

    #[inline]
    pub(crate) fn period_key(&self, nominal: Timestamp) -> PeriodKey {
        self.strategy.period_key(nominal, &self.zone)
    }

    #[inline]
    pub(crate) fn seed_hash(&self, key: &PeriodKey, hash: &mut SeedHash) {
        self.material.hash(key, hash);
    }

    pub(crate) fn seed_material(&self, key: &PeriodKey) -> String {
        self.material.with_key(key)
    }
}

/// A job being defined; see [`Job::builder`].
#[derive(Clone, Debug)]
#[must_use = "a definition is not a job until it is built"]
pub struct JobBuilder {
    identity: String,
    schedule: Schedule,
    zone: Zone,
    window: (WindowMode, Duration),
    distribution: Distribution,
    strategy: SeedStrategy,
    salt: String,
    constraints: Constraints,
    policy: Policy,
}

impl JobBuilder {
    /// Where around their nominal times its periods may run.
    #[inline]
    pub fn window(mut self, mode: WindowMode, duration: Duration) -> JobBuilder {
        self.window = (mode, duration);
        self
    }

    /// How chosen times are spread over the window.
    #[inline]
    pub fn distribution(mut self, distribution: Distribution) -> JobBuilder {
        self.distribution = distribution;
        self
    }

    /// Which periods share their random numbers, and a text to tell this job's from another's.
    #[inline]
    pub fn seed(mut self, strategy: SeedStrategy, salt: impl Into<String>) -> JobBuilder {
        self.strategy = strategy;
        self.salt = salt.into();
        self
    }

    /// What restricts the seconds that may be chosen.
    #[inline]
    pub fn constraints(mut self, constraints: Constraints) -> JobBuilder {
        self.constraints = constraints;
        self
    }

    /// What to do about lateness, overlap and suspension.
    #[inline]
    pub fn policy(mut self, policy: Policy) -> JobBuilder {
        self.policy = policy;
        self
    }

    /// Checks every parameter.
    ///
    /// # Errors
    ///
    /// The first parameter that is not valid, with what was expected and found.
    pub fn build(self) -> Result<Job, JobError> {
        check_identity(&self.identity)?;
        let (mode, duration) = self.window;
        let window = Window::new(mode, duration)?;
        self.distribution.check()?;
        check_deadline(&self.policy)?;
        check_overlap(&self.schedule, &window)?;
        let (lead, width) = window.usual();
        Ok(Job {
            material: Material::new(&self.identity, self.strategy, &self.salt),
            schedule: self.schedule,
            zone: self.zone,
            constrained: !self.constraints.is_empty(),
            sampler: self.distribution.over(&window, lead, width),
            window,
            distribution: self.distribution,
            strategy: self.strategy,
            constraints: self.constraints,
            policy: self.policy,
        })
    }
}

/// A line feed in the identity would make two seeds out of one text.
fn check_identity(identity: &str) -> Result<(), JobError> {
    let parameter = Parameter::Identity;
    if identity.is_empty() {
        return Err(JobError::new(parameter, "a name", "nothing"));
    }
    if identity.contains(char::is_control) {
        return Err(JobError::new(parameter, "a name without control characters", quoted(identity)));
    }
    Ok(())
}

fn check_deadline(policy: &Policy) -> Result<(), JobError> {
    match policy.deadline {
        Some(deadline) if deadline < Duration::ZERO => {
            Err(JobError::value(Parameter::Deadline, "a duration that is not negative", deadline))
        }
        _ => Ok(()),
    }
}

/// The most windows of a job that may be open at once. It bounds what an evaluation looks at, and what
/// a ledger has to remember.
pub const OPEN_MAX: u64 = 10_000;

/// Refuses a job that could have more windows open at once than that.
fn check_overlap(schedule: &Schedule, window: &Window) -> Result<(), JobError> {
    // No schedule has more than one period in a second.
    if window.duration().as_seconds().unsigned_abs() < OPEN_MAX {
        return Ok(());
    }
    if schedule.most_within(window.duration()) > OPEN_MAX {
        let expected = "a window so short that at most 10000 are open at once";
        return Err(JobError::value(Parameter::Window, expected, window.duration()));
    }
    Ok(())
}
