//! A spec becomes a job, or every mistake in it is told with its place.
//!
//! The API server has checked shapes and choices by the CRD. What it cannot check is read here by the parsers that
//! a krontab is read by, so that both say the same about the same mistake.

use std::fmt;

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use kron_core::{
    Constraints, Distribution, DistributionPart, Job, Overlap, Parameter, Policy, SeedStrategy, Window,
    WindowMode,
};
use kron_schedule::fuzzy::{Extensions, Phrase};
use kron_schedule::{Dialect, Dst, Duration, Expr, Fold, Gap, Schedule, Zone};
use kron_zones::Zones;
use serde_json::Value;

use crate::api::{
    ClauseSpec, ConcurrencySpec, FoldSpec, GapSpec, KronJobSpec, SeedStrategySpec, WindowModeSpec,
};

/// The most windows of a `KronJob` that may be open at once: those that wait are listed in its status.
pub const OPEN_MAX: u64 = 1_000;

/// A spec without mistakes.
#[derive(Clone, Debug)]
pub struct Definition {
    /// What kron-core decides and evaluates.
    pub job: Job,
    /// What its schedule comes to: cron fields, `@every` with a duration, or a sentence about days.
    pub resolved: String,
    /// The Job that is created for each period.
    pub template: JobTemplateSpec,
    /// How many finished Jobs are kept: those that succeeded, and those that failed.
    pub keep: (usize, usize),
    /// What is legal, and perhaps a surprise.
    pub warnings: Vec<Flaw>,
}

/// Something wrong with a spec, or odd about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Flaw {
    /// Where: `spec.window.duration`.
    pub field: String,
    /// What was expected, and found.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Flaw {
    fn new(field: &str, message: impl fmt::Display, help: Option<&str>) -> Flaw {
        Flaw { field: field.to_owned(), message: message.to_string(), help: help.map(str::to_owned) }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// The identity of a `KronJob`, which its decisions depend on.
#[must_use]
pub fn identity(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Definition {
    /// Reads a spec.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    pub fn read(spec: &KronJobSpec, identity: &str, zones: &Zones) -> Result<Definition, Vec<Flaw>> {
        let mut reader = Reader { flaws: Vec::new(), warnings: Vec::new() };
        let zone = reader.zone(spec, zones);
        let dst = dst(spec);
        let schedule = reader.schedule(spec, identity, zone.as_ref(), dst);
        let window = reader.window(spec);
        let distribution = reader.distribution(spec);
        let constraints = reader.constraints(spec);
        let policy = reader.policy(spec);
        let template = reader.template(spec);
        let (Some(zone), Some((schedule, resolved)), Some(window), Some(distribution), Some(template), []) =
            (zone, schedule, window, distribution, template, &reader.flaws[..])
        else {
            return Err(reader.flaws);
        };
        if schedule.most_within(window.duration()) > OPEN_MAX {
            let message = format!("more than {OPEN_MAX} windows of this job would be open at once");
            let help = "let it run less often, or make the window shorter";
            return Err(vec![Flaw::new("spec.window.duration", message, Some(help))]);
        }
        let seed = spec.seed.clone().unwrap_or_default();
        let strategy = match seed.strategy {
            SeedStrategySpec::Daily => SeedStrategy::Daily,
            SeedStrategySpec::Stable => SeedStrategy::Stable,
            SeedStrategySpec::Weekly => SeedStrategy::Weekly,
        };
        let history = spec.history.clone().unwrap_or_default();
        let job = Job::builder(identity, schedule, zone)
            .window(window.mode(), window.duration())
            .distribution(distribution)
            .seed(strategy, seed.salt)
            .constraints(constraints)
            .policy(policy)
            .build()
            .map_err(|error| {
                let field = match error.parameter() {
                    Parameter::Deadline => "spec.policy.deadline",
                    Parameter::Salt => "spec.seed.salt",
                    Parameter::Window => "spec.window",
                    Parameter::Identity => "metadata.name",
                    _ => "spec.distribution",
                };
                vec![Flaw::new(field, error, None)]
            })?;
        let keep = (history.successful as usize, history.failed as usize);
        Ok(Definition { job, resolved, template, keep, warnings: reader.warnings })
    }
}

fn dst(spec: &KronJobSpec) -> Dst {
    let Some(dst) = &spec.dst else { return Dst::KRON };
    Dst {
        gap: match dst.gap {
            GapSpec::After => Gap::After,
            GapSpec::Skip => Gap::Skip,
        },
        fold: match dst.fold {
            FoldSpec::Auto => Fold::Auto,
            FoldSpec::Both => Fold::Both,
            FoldSpec::First => Fold::First,
        },
    }
}

/// Collects what is wrong while it reads.
struct Reader {
    flaws: Vec<Flaw>,
    warnings: Vec<Flaw>,
}

impl Reader {
    fn zone(&mut self, spec: &KronJobSpec, zones: &Zones) -> Option<Zone> {
        let Some(name) = &spec.timezone else { return Some(Zone::utc()) };
        zones
            .find(name)
            .map_err(|error| self.flaws.push(Flaw::new("spec.timezone", &error, error.help())))
            .ok()
    }

    /// A phrase begins with a letter, or stands in quotes as it does in a krontab. Nothing else does either.
    fn schedule(
        &mut self,
        spec: &KronJobSpec,
        identity: &str,
        zone: Option<&Zone>,
        dst: Dst,
    ) -> Option<(Schedule, String)> {
        let text = spec.schedule.trim();
        let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match quoted {
            Some(phrase) => self.phrase(phrase, spec, identity, zone, dst),
            None if text.starts_with(|c: char| c.is_alphabetic()) => {
                self.phrase(text, spec, identity, zone, dst)
            }
            None => self.cron(text, zone, dst),
        }
    }

    fn cron(&mut self, text: &str, zone: Option<&Zone>, dst: Dst) -> Option<(Schedule, String)> {
        const FIELD: &str = "spec.schedule";
        let Ok(expr) = Expr::parse(text, Dialect::Kron) else {
            let errors = Expr::errors(text, Dialect::Kron);
            self.flaws.extend(errors.iter().map(|error| Flaw::new(FIELD, error, error.help())));
            return None;
        };
        self.warnings.extend(expr.warnings().iter().map(|warning| Flaw::new(FIELD, warning, warning.help())));
        let utc = Zone::utc();
        match expr.compile(zone.unwrap_or(&utc), dst) {
            Ok(schedule) => Some((schedule, expr.to_string())),
            Err(error) => {
                self.flaws.push(Flaw::new(FIELD, &error, error.help()));
                None
            }
        }
    }

    fn phrase(
        &mut self,
        text: &str,
        spec: &KronJobSpec,
        identity: &str,
        zone: Option<&Zone>,
        dst: Dst,
    ) -> Option<(Schedule, String)> {
        const FIELD: &str = "spec.schedule";
        let read = Phrase::parse(text, Extensions::On).and_then(|phrase| {
            let scattered = phrase.placeholder().scatter(identity)?;
            Ok((phrase, scattered))
        });
        let (phrase, scattered) = match read {
            Ok(read) => read,
            Err(error) => {
                let help = error.help().map_or_else(|| error.guidance().to_owned(), str::to_owned);
                self.flaws.push(Flaw::new(FIELD, error.headline(), Some(&help)));
                return None;
            }
        };
        let notes = phrase.warnings().iter().chain(scattered.note());
        self.warnings.extend(notes.map(|note| Flaw::new(FIELD, note.headline(), Some(note.guidance()))));
        if phrase.has_offset() && spec.timezone.is_some() {
            let message = "this phrase has a UTC offset, and the KronJob has a `timezone`";
            self.flaws.push(Flaw::new(FIELD, message, Some("keep one of them")));
        }
        let utc = Zone::utc();
        match scattered.compile(zone.unwrap_or(&utc), dst) {
            Ok(schedule) => Some((schedule, scattered.to_string())),
            Err(error) => {
                self.flaws.push(Flaw::new(FIELD, &error, error.help()));
                None
            }
        }
    }

    fn window(&mut self, spec: &KronJobSpec) -> Option<Window> {
        const FIELD: &str = "spec.window.duration";
        let Some(window) = &spec.window else { return Some(Window::NONE) };
        let mode = match window.mode {
            WindowModeSpec::After => WindowMode::After,
            WindowModeSpec::Around => WindowMode::Around,
        };
        let length = self.duration(FIELD, &window.duration)?;
        let found = &window.duration;
        Window::new(mode, length)
            .map_err(|error| {
                let message = format!("expected {}, but found `{found}`", error.expected());
                self.flaws.push(Flaw::new(FIELD, message, None));
            })
            .ok()
    }

    fn duration(&mut self, field: &str, text: &str) -> Option<Duration> {
        let help =
            (text.len() > 1 && text.ends_with('d')).then_some("there is no unit for days: write `24h`");
        text.parse::<Duration>().map_err(|error| self.flaws.push(Flaw::new(field, error, help))).ok()
    }

    fn distribution(&mut self, spec: &KronJobSpec) -> Option<Distribution> {
        let Some(given) = &spec.distribution else { return Some(Distribution::Uniform) };
        let pairs: Vec<(&str, &str)> =
            given.params.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Distribution::parse(&given.name, &pairs)
            .map_err(|error| {
                let field = match error.part() {
                    DistributionPart::Name => "spec.distribution.name".to_owned(),
                    DistributionPart::Key(_) => "spec.distribution.params".to_owned(),
                    DistributionPart::Value(at) => format!("spec.distribution.params.{}", pairs[at].0),
                };
                self.flaws.push(Flaw::new(&field, &error, error.help()));
            })
            .ok()
    }

    fn constraints(&mut self, spec: &KronJobSpec) -> Constraints {
        let mut constraints = Constraints::default();
        let Some(given) = &spec.constraints else { return constraints };
        let mut add = |name: &str, clauses: &[ClauseSpec], flaws: &mut Vec<Flaw>| {
            for (at, clause) in clauses.iter().enumerate() {
                let place = format!("spec.constraints.{name}[{at}]");
                if clause.clauses().next().is_none() {
                    let message = "expected a clause such as `hours: 8-10`, but found nothing";
                    flaws.push(Flaw::new(&place, message, None));
                }
                for (key, value) in clause.clauses() {
                    let text = format!("{key}={value}");
                    let added = match name {
                        "only" => constraints.add_only(&text),
                        _ => constraints.add_avoid(&text),
                    };
                    if let Err(error) = added {
                        flaws.push(Flaw::new(&format!("{place}.{key}"), &error, error.help()));
                    }
                }
            }
        };
        add("only", &given.only, &mut self.flaws);
        add("avoid", &given.avoid, &mut self.flaws);
        constraints
    }

    fn policy(&mut self, spec: &KronJobSpec) -> Policy {
        const FIELD: &str = "spec.policy.deadline";
        let given = &spec.policy;
        let mut policy = Policy {
            overlap: match given.concurrency {
                ConcurrencySpec::Allow => Overlap::Allow,
                ConcurrencySpec::Forbid => Overlap::Forbid,
                ConcurrencySpec::Replace => Overlap::Replace,
            },
            suspend: given.suspend,
            ..Policy::default()
        };
        let Some(text) = &given.deadline else { return policy };
        if let Some(deadline) = self.duration(FIELD, text) {
            if deadline < Duration::ZERO {
                let message = format!("expected a duration that is not negative, but found `{text}`");
                self.flaws.push(Flaw::new(FIELD, message, None));
            }
            policy.deadline = Some(deadline);
        }
        policy
    }

    fn template(&mut self, spec: &KronJobSpec) -> Option<JobTemplateSpec> {
        const FIELD: &str = "spec.jobTemplate";
        let value = Value::Object(spec.job_template.0.clone());
        let template = match serde_json::from_value::<JobTemplateSpec>(value) {
            Ok(template) => template,
            Err(error) => {
                let message = format!("expected a Job as batch/v1 has it: {error}");
                self.flaws.push(Flaw::new(FIELD, message, None));
                return None;
            }
        };
        let pod = template.spec.as_ref().and_then(|job| job.template.spec.as_ref());
        let Some(pod) = pod else {
            let message = "expected `spec.template.spec`, but there is none";
            self.flaws.push(Flaw::new(FIELD, message, None));
            return None;
        };
        if !matches!(pod.restart_policy.as_deref(), Some("Never" | "OnFailure")) {
            let found = pod.restart_policy.as_deref().unwrap_or("nothing");
            let message = format!("expected `Never` or `OnFailure`, but found `{found}`");
            self.flaws.push(Flaw::new("spec.jobTemplate.spec.template.spec.restartPolicy", message, None));
        }
        Some(template)
    }
}
