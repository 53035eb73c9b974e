//! What a client registers, in either of two shapes, and what it means.

use jiff::Timestamp;
use kron_core::Job as Plan;
use kron_schedule::{Dialect as CronDialect, Dst, Expr, Fold};
use kron_zones::Zones;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::envelope::{self, is_name, read_args, read_type};
use crate::job::{Job, Origin};
use crate::members::{Members, Raw, excerpt, raw, read_as, wrong};
use crate::refusal::Refusal;

use super::spread::Spread;

/// What the owner of a cron job declares. Everything in it has been checked.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Definition {
    /// Its name, the only one of its kind.
    pub name: String,
    /// When, in the `ojs` dialect, as it was written.
    pub cron: String,
    /// Where its clock hangs.
    pub timezone: String,
    /// The type of its jobs.
    #[serde(rename = "type")]
    pub kind: String,
    /// Their arguments.
    pub args: Raw,
    /// What else is said about its jobs.
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub meta: Members,
    /// Their options, as they were written.
    #[serde(default, skip_serializing_if = "Members::is_empty")]
    pub options: Members,
    /// What to do when the one before is still active.
    pub overlap: Overlap,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How it is spread, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kron: Option<Raw>,
}

/// A definition as a request brings it.
#[derive(Clone, Debug)]
pub struct Registration {
    /// What is declared.
    pub definition: Definition,
    /// Whether it fires, if that was said.
    pub enabled: Option<bool>,
    /// In which shape it was written, and so is answered.
    pub dialect: Dialect,
}

/// The two shapes in which cron jobs are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dialect {
    /// `expression` and `job_template`.
    Expression,
    /// `cron`, `type` and `args`, as the cron specification has it.
    Seed,
}

/// What to do when an occurrence is due while the one before is still active.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Fire all the same.
    Allow,
    /// Cancel the one before.
    #[serde(alias = "cancel")]
    CancelPrevious,
    /// Let it wait until the one before has ended.
    Enqueue,
    /// Let it be.
    #[default]
    Skip,
}

impl Overlap {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Overlap::Allow => "allow",
            Overlap::CancelPrevious => "cancel_previous",
            Overlap::Enqueue => "enqueue",
            Overlap::Skip => "skip",
        }
    }

    /// Whether it is asked which jobs are active before the next is made.
    #[must_use]
    pub const fn minds_active(self) -> bool {
        matches!(self, Overlap::CancelPrevious | Overlap::Skip)
    }

    /// The same in the words of kron-core.
    pub(super) const fn policy(self) -> kron_core::Overlap {
        match self {
            Overlap::Allow => kron_core::Overlap::Allow,
            Overlap::CancelPrevious => kron_core::Overlap::Replace,
            Overlap::Enqueue => kron_core::Overlap::Queue,
            Overlap::Skip => kron_core::Overlap::Forbid,
        }
    }
}

/// A definition that can be asked when.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What was written, parsed.
    pub expr: Expr,
    /// What kron-core decides and evaluates.
    pub plan: Plan,
    /// Whether a local time that comes twice is two occurrences.
    pub both: bool,
}

impl Registration {
    /// Reads a request, and checks all of it.
    ///
    /// # Errors
    ///
    /// The first member that is wrong.
    pub fn read(mut given: Members, zones: &Zones, now: Timestamp) -> Result<Registration, Refusal> {
        let name = read_name(given.take("name").as_ref())?;
        let dialect = match (given.0.get("cron"), given.0.get("expression")) {
            (None, Some(_)) => Dialect::Expression,
            _ => Dialect::Seed,
        };
        let mut template = given.take_members("job_template")?.unwrap_or_default();
        let (cron, expression) = (given.take("cron"), given.take("expression"));
        let cron = match cron.or(expression) {
            Some(raw) => read_as::<String>(&raw, "cron", "a cron expression such as \"0 9 * * *\"")?,
            None => {
                return Err(Refusal::request("expected a `cron` expression, but it is missing").field("cron"));
            }
        };
        let mut either = |name: &str| {
            let below = template.take(name);
            given.take(name).or(below)
        };
        let kind = read_type(either("type").as_deref())?;
        let args = match either("args") {
            None => raw(&json!([])),
            args => read_args(args)?,
        };
        let options = members_of(either("options"), "options")?;
        let meta = members_of(either("meta"), "meta")?;
        let timezone = match given.take("timezone") {
            None => "UTC".to_owned(),
            Some(raw) => read_as(&raw, "timezone", "the name of a time zone such as \"Europe/Paris\"")?,
        };
        let overlap = given
            .take_as("overlap_policy", "\"skip\", \"allow\", \"cancel_previous\" or \"enqueue\"")?
            .unwrap_or_default();
        let enabled = given.take_as("enabled", "true or false")?;
        let description = given.take_as("description", "a text")?;
        let kron = given.take("kron");
        let definition =
            Definition { name, cron, timezone, kind, args, meta, options, overlap, description, kron };
        // What would be refused when it fires is refused now.
        definition.compile(now, zones)?;
        Ok(Registration { definition, enabled, dialect })
    }
}

impl Definition {
    /// Says when, with an `@every` counted from an anchor.
    ///
    /// # Errors
    ///
    /// If the expression, the zone, the spread or the options are none. A definition was checked when it was registered,
    /// but by the program and the time zones of that day.
    pub fn compile(&self, anchor: Timestamp, zones: &Zones) -> Result<Compiled, Refusal> {
        let zone = zones.find_in(&self.timezone, CronDialect::Ojs).map_err(|error| {
            let refusal = Refusal::request(format!("`timezone`: {error}")).field("timezone");
            match error.help() {
                Some(help) => refusal.hint(help),
                None => refusal.hint("write the IANA name of a place, such as Europe/Paris, or UTC"),
            }
        })?;
        let spread = Spread::read(self.kron.as_ref())?;
        let wrong = |error: kron_schedule::ParseError| {
            let span = error.span();
            let refusal = Refusal::request(format!("`cron`: {error}"))
                .field("cron")
                .detail("span", json!([span.start, span.end]))
                .detail("excerpt", json!(error.render(&self.cron)));
            match error.help() {
                Some(help) => refusal.hint(help),
                None => refusal,
            }
        };
        let expr = Expr::parse(&self.cron, CronDialect::Ojs).map_err(wrong)?;
        let dst = spread.dst.unwrap_or(Dst::OJS);
        let both = match (&expr, dst.fold) {
            (Expr::Every(_), _) | (_, Fold::Both) => true,
            (Expr::Cron(cron), Fold::Auto) => cron.is_interval(),
            (Expr::Cron(_), Fold::First) => false,
        };
        let schedule = expr.compile(&zone, dst).map_err(wrong)?.anchored_at(anchor);
        let plan = spread.apply(Plan::builder(self.name.clone(), schedule, zone), self.overlap.policy())?;
        self.job(anchor)?;
        Ok(Compiled { expr, plan, both })
    }

    /// A job of it, not yet marked with its origin.
    ///
    /// # Errors
    ///
    /// If its options are none.
    pub fn job(&self, now: Timestamp) -> Result<Job, Refusal> {
        let mut envelope = Members::default();
        envelope.put("type", &self.kind);
        envelope.0.insert("args".into(), self.args.clone());
        envelope.put("options", &self.options);
        if !self.meta.is_empty() {
            envelope.put("meta", &self.meta);
        }
        envelope::read(envelope, now)
    }

    /// A job of it for an occurrence, or by hand. The definition has been compiled before.
    ///
    /// # Panics
    ///
    /// If its options are none, which whoever compiled it has found out.
    #[must_use]
    pub fn marked_job(&self, scheduled: Option<Timestamp>, now: Timestamp) -> Job {
        let mut job = self.job(now).expect("the definition was compiled");
        let serial = self.overlap == Overlap::Enqueue;
        envelope::mark(
            &mut job,
            Origin { name: self.name.clone(), scheduled, serial },
            scheduled.unwrap_or(now),
        );
        job
    }

    /// Whether both have the same occurrences.
    #[must_use]
    pub fn schedule_equals(&self, other: &Definition) -> bool {
        let same_text = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let dst = |definition: &Definition| {
            Spread::read(definition.kron.as_ref()).ok().and_then(|spread| spread.dst)
        };
        same_text(&self.cron) == same_text(&other.cron)
            && self.timezone == other.timezone
            && dst(self) == dst(other)
    }

    /// Whether both are spread alike, however that is written.
    #[must_use]
    pub fn spread_equals(&self, other: &Definition) -> bool {
        let value = |definition: &Definition| {
            definition.kron.as_ref().map(|kron| serde_json::from_str::<Value>(kron.get()).ok())
        };
        value(self) == value(other)
    }

    /// What was declared, as it would be written now, for a change to be laid over it.
    #[must_use]
    pub fn members(&self) -> Members {
        let mut members = Members::default();
        members.put("name", &self.name);
        members.put("cron", &self.cron);
        members.put("timezone", &self.timezone);
        members.put("type", &self.kind);
        members.put("args", &self.args);
        members.put("options", &self.options);
        members.put("meta", &self.meta);
        members.put("overlap_policy", &self.overlap);
        members.put("description", &self.description);
        if let Some(kron) = &self.kron {
            members.put("kron", kron);
        }
        members
    }
}

fn members_of(raw: Option<Raw>, name: &str) -> Result<Members, Refusal> {
    raw.map_or(Ok(Members::default()), |raw| Members::of(&raw, name))
}

fn read_name(raw: Option<&Raw>) -> Result<String, Refusal> {
    let expected = "a name such as \"daily-report\": small letters, digits, `-` and `.`, at most 255";
    let Some(raw) = raw else {
        return Err(Refusal::request("expected a `name`, but it is missing").field("name"));
    };
    let name: String = read_as(raw, "name", expected)?;
    if name.len() > 255 {
        let message = format!("expected {expected}, but found {} characters in `name`", name.chars().count());
        return Err(Refusal::request(message).field("name"));
    }
    if is_name(&name) { Ok(name) } else { Err(wrong("name", expected, raw)) }
}

/// The refusal of a change to the name.
#[must_use]
pub(crate) fn renamed(name: &str, other: &str) -> Refusal {
    let message = format!("the name {} cannot be changed to {}", excerpt(name), excerpt(other));
    Refusal::request(message).field("name").hint("register it under the other name and delete this one")
}
