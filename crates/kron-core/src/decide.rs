//! A job and a nominal time become a decision.

use alloc::string::String;
use core::fmt;

use jiff::Timestamp;

use crate::distribution::Sampler;
use crate::job::Job;
use crate::label::Label;
use crate::period::{PeriodId, floor_second, to_timestamp};
use crate::prng::SplitMix64;
use crate::seed::{PeriodKey, SeedHash};

/// Decides when, within its window, the period with that nominal time runs.
///
/// The same job and the same nominal time give the same decision, on every machine and in every
/// process. Whether the schedule has an occurrence at that time is not asked.
///
/// ```
/// # use kron_core::{Job, WindowMode, decide};
/// # use kron_schedule::{Dialect, Dst, Duration, Expr, Zone};
/// # let zone = Zone::utc();
/// # let schedule = Expr::parse("0 6 * * *", Dialect::Kron)?.compile(&zone, Dst::KRON)?;
/// let job = Job::builder("demo/alpha", schedule, zone)
///     .window(WindowMode::After, Duration::from_seconds(2 * 3_600))
///     .seed(Default::default(), "s1")
///     .build()?;
/// let decision = decide(&job, "2026-05-04T06:00:00Z".parse()?);
/// assert_eq!(decision.period_id().to_string(), "2026-05-04T06:00:00Z");
/// assert_eq!(decision.window_end(), "2026-05-04T08:00:00Z".parse()?);
/// assert_eq!(decision.chosen(), Some("2026-05-04T06:56:47Z".parse()?));
/// assert_eq!(decision.attempts(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn decide(job: &Job, nominal: Timestamp) -> Decision {
    let key = job.period_key(nominal);
    let hash = SeedHash::INITIAL;
    let mut decision =
        Decision { nominal: PeriodId::new(nominal), start: 0, end: 0, chosen: None, attempts: 0, key, hash };
    // The hash is made where it stays: what has just been written in two pieces cannot be read in two
    // others until it has left the processor's queue.
    job.seed_hash(&key, &mut decision.hash);
    match job.window().usual_bounds(nominal) {
        Some(bounds) => decision.choose(job, bounds, job.usual_sampler()),
        None => decision.choose_unusually(job, nominal),
    }
    decision
}

/// The text whose hash is the seed of a period: identity, key and salt, with line feeds between.
#[must_use]
pub fn seed_material(job: &Job, nominal: Timestamp) -> String {
    job.seed_material(&job.period_key(nominal))
}

/// The most candidates tried for one period; the public vectors fix the number.
pub const CANDIDATES_MAX: u32 = 64;

fn allowed(job: &Job, second: i64) -> bool {
    let offset = job.zone().offset_at(to_timestamp(second));
    job.constraints().allow_second(second + i64::from(offset.seconds()))
}

/// When a period runs, and how that came about.
///
/// It has what differs between the periods of a job. [`explain`](Decision::explain) puts it
/// together with the job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    nominal: PeriodId,
    start: i64,
    end: i64,
    chosen: Option<i64>,
    attempts: u32,
    key: PeriodKey,
    hash: SeedHash,
}

impl Decision {
    /// Settles on the first candidate in the window that the constraints allow.
    #[inline(always)]
    fn choose(&mut self, job: &Job, (start, end): (i64, i64), sampler: &Sampler) {
        (self.start, self.end) = (start, end);
        let width = end - start;
        if width == 0 {
            // There is nothing to sample.
            self.chosen = Some(start).filter(|second| allowed(job, *second));
            return;
        }
        let mut stream = SplitMix64::new(self.hash.state());
        for attempt in 1..CANDIDATES_MAX + 1 {
            let candidate = start + sampler.offset(stream.unit(), width);
            if !job.is_constrained() || allowed(job, candidate) {
                (self.chosen, self.attempts) = (Some(candidate), attempt);
                return;
            }
        }
        self.attempts = CANDIDATES_MAX;
    }

    /// The same for a nominal time between two seconds, or close to the end of time.
    #[inline(never)]
    fn choose_unusually(&mut self, job: &Job, nominal: Timestamp) {
        let (start, end) = job.window().bounds_of_any(nominal);
        let sampler = job.distribution().over(job.window(), floor_second(nominal) - start, end - start);
        self.choose(job, (start, end), &sampler);
    }

    /// The period's name.
    #[must_use]
    pub fn period_id(&self) -> PeriodId {
        self.nominal
    }

    /// The nominal time.
    #[must_use]
    pub fn nominal(&self) -> Timestamp {
        self.nominal.nominal()
    }

    /// The first second of the window.
    #[must_use]
    pub fn window_start(&self) -> Timestamp {
        to_timestamp(self.start)
    }

    /// The last second of the window.
    #[must_use]
    pub fn window_end(&self) -> Timestamp {
        to_timestamp(self.end)
    }

    /// The second to run at, or `None` if the period is unschedulable.
    #[must_use]
    pub fn chosen(&self) -> Option<Timestamp> {
        self.chosen.map(to_timestamp)
    }

    /// Whether no candidate was allowed.
    #[must_use]
    pub fn is_unschedulable(&self) -> bool {
        self.chosen.is_none()
    }

    /// Why the period is unschedulable, if it is.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        // The public vectors fix the words.
        self.is_unschedulable().then_some("no candidate accepted within MaxAttempts")
    }

    /// How many candidates were sampled; none if the window is a single second.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The number from 0 to 1 that the last candidate was made of; none if the window is a single second.
    #[must_use]
    pub fn unit(&self) -> Option<f64> {
        let mut stream = SplitMix64::new(self.hash.state());
        (0..self.attempts).map(|_| stream.unit().to_f64()).last()
    }

    /// What stood for the period in its seed.
    #[must_use]
    pub fn period_key(&self) -> PeriodKey {
        self.key
    }

    /// The seed.
    #[must_use]
    pub fn seed_hash(&self) -> SeedHash {
        self.hash
    }

    /// Everything that is needed to reproduce the decision, for logs and people. The job is the one
    /// it was decided for.
    ///
    /// ```
    /// # use kron_core::{Job, WindowMode, decide};
    /// # use kron_schedule::{Dialect, Dst, Expr, Zone};
    /// # let zone = Zone::utc();
    /// # let schedule = Expr::parse("0 6 * * *", Dialect::Kron)?.compile(&zone, Dst::KRON)?;
    /// let job = Job::builder("demo/alpha", schedule, zone)
    ///     .window(WindowMode::After, "2h".parse()?)
    ///     .seed(Default::default(), "s1")
    ///     .build()?;
    /// let decision = decide(&job, "2026-05-04T06:00:00Z".parse()?);
    /// assert_eq!(decision.explain(&job).to_string(), "\
    /// identity: demo/alpha
    /// period_id: 2026-05-04T06:00:00Z
    /// nominal_time: 2026-05-04T06:00:00Z
    /// window: after,2h
    /// window_start: 2026-05-04T06:00:00Z
    /// window_end: 2026-05-04T08:00:00Z
    /// timezone: UTC
    /// distribution: uniform
    /// seed_strategy: stable
    /// salt: s1
    /// period_key: 2026-05-04T06:00:00Z
    /// seed_hash: 247ecbef7951e20e1af04d61af524623ad27af132fd63249124207d3097af906
    /// constraints: none
    /// attempts: 1 of 64
    /// chosen_time: 2026-05-04T06:56:47Z
    /// ");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn explain<'a>(&'a self, job: &'a Job) -> Explanation<'a> {
        Explanation { decision: self, job }
    }
}

/// A decision together with its job; see [`Decision::explain`].
///
/// Printed, it has one line for each thing the decision depends on or says, under the name that the
/// specification uses for it.
#[derive(Clone, Copy, Debug)]
pub struct Explanation<'a> {
    decision: &'a Decision,
    job: &'a Job,
}

impl<'a> Explanation<'a> {
    /// The decision.
    #[must_use]
    pub fn decision(&self) -> &'a Decision {
        self.decision
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &'a Job {
        self.job
    }

    /// The text whose hash is the seed.
    #[must_use]
    pub fn seed_material(&self) -> String {
        self.job.seed_material(&self.decision.key)
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { decision, job } = self;
        writeln!(f, "identity: {}", job.identity())?;
        writeln!(f, "period_id: {}", decision.nominal)?;
        writeln!(f, "nominal_time: {}", decision.nominal)?;
        writeln!(f, "window: {}", job.window())?;
        writeln!(f, "window_start: {}", Label::utc(decision.start))?;
        writeln!(f, "window_end: {}", Label::utc(decision.end))?;
        writeln!(f, "timezone: {}", job.zone().name())?;
        writeln!(f, "distribution: {}", job.distribution())?;
        writeln!(f, "seed_strategy: {}", job.seed_strategy())?;
        writeln!(f, "salt: {}", job.salt().escape_debug())?;
        writeln!(f, "period_key: {}", decision.key)?;
        writeln!(f, "seed_hash: {}", decision.hash)?;
        writeln!(f, "constraints: {}", job.constraints())?;
        writeln!(f, "attempts: {} of {CANDIDATES_MAX}", decision.attempts)?;
        match (decision.chosen, decision.reason()) {
            (Some(chosen), _) => writeln!(f, "chosen_time: {}", Label::utc(chosen)),
            (None, reason) => writeln!(f, "unschedulable: {}", reason.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chosen() {
            Some(chosen) => write!(f, "{} at {}", self.nominal, PeriodId::new(chosen)),
            None => write!(f, "{} unschedulable", self.nominal),
        }
    }
}
