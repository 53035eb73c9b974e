//! The members that `decide` and `evaluate` share become a job.

use kron_core::{
    Constraints, Distribution, DistributionPart, Job, JobBuilder, Policy, SeedStrategy, WindowMode,
};
use kron_schedule::{Dialect, Dst, Duration, Expr, Schedule, Zone};

use super::member::{Member, Members};
use super::mistake::Mistake;
use super::wire;

/// Reads what jobs say about their decisions, and remembers the last of everything: in bulk the next
/// request mostly says the same.
#[derive(Default)]
pub(super) struct Definitions {
    window: Last<(WindowMode, Duration)>,
    distribution: Last<Distribution>,
    seed: Last<(SeedStrategy, String)>,
    constraints: Last<Constraints, 2>,
}

impl Definitions {
    /// A job with that schedule in that zone.
    pub(super) fn job(
        &mut self,
        members: &Members<'_>,
        schedule: Schedule,
        zone: Zone,
    ) -> Result<JobBuilder, Mistake> {
        let identity = members.required("identity")?.text()?;
        let member = members.required("window")?;
        let (mode, duration) = self.window.read([member.json()], || window(&member))?;
        let mut job = Job::builder(identity, schedule, zone).window(mode, duration);
        if let Some(member) = members.optional("distribution") {
            job = job.distribution(self.distribution.read([member.json()], || distribution(&member))?);
        }
        if let Some(member) = members.optional("seed") {
            let (strategy, salt) = self.seed.read([member.json()], || seed(&member))?;
            job = job.seed(strategy, salt);
        }
        let (only, avoid) = (members.optional("only"), members.optional("avoid"));
        if only.is_some() || avoid.is_some() {
            let texts = [&only, &avoid].map(|member| member.as_ref().map_or("", Member::json));
            let read = self.constraints.read(texts, || constraints(only.as_ref(), avoid.as_ref()))?;
            job = job.constraints(read);
        }
        Ok(job)
    }
}

/// What some JSON has last been read as.
pub(super) struct Last<T, const N: usize = 1> {
    json: [String; N],
    value: Option<T>,
}

impl<T, const N: usize> Default for Last<T, N> {
    fn default() -> Last<T, N> {
        Last { json: std::array::from_fn(|_| String::new()), value: None }
    }
}

impl<T: Clone, const N: usize> Last<T, N> {
    pub(super) fn read(
        &mut self,
        json: [&str; N],
        read: impl FnOnce() -> Result<T, Mistake>,
    ) -> Result<T, Mistake> {
        if let Some(value) = self.value.as_ref().filter(|_| self.json == json) {
            return Ok(value.clone());
        }
        let value = read()?;
        for (kept, part) in self.json.iter_mut().zip(json) {
            kept.clear();
            kept.push_str(part);
        }
        Ok(self.value.insert(value).clone())
    }
}

fn window(member: &Member<'_>) -> Result<(WindowMode, Duration), Mistake> {
    let window = member.object("window")?;
    window.only(&["mode", "duration"])?;
    Ok((window.required("mode")?.choice(wire::MODES)?, window.required("duration")?.duration()?))
}

fn distribution(member: &Member<'_>) -> Result<Distribution, Mistake> {
    let members = member.object("distribution")?;
    members.only(&["name", "params"])?;
    let name = members.required("name")?;
    let params: Vec<Member<'_>> = match members.optional("params") {
        Some(params) => params.object("distribution.params")?.into_iter().collect(),
        None => Vec::new(),
    };
    let values = params.iter().map(Member::text).collect::<Result<Vec<_>, _>>()?;
    let pairs: Vec<(&str, &str)> =
        params.iter().zip(&values).map(|(param, value)| (param.name(), &**value)).collect();
    Distribution::parse(&name.text()?, &pairs).map_err(|error| match error.part() {
        DistributionPart::Name => name.blame(error),
        DistributionPart::Key(at) | DistributionPart::Value(at) => params[at].blame(error),
    })
}

fn seed(member: &Member<'_>) -> Result<(SeedStrategy, String), Mistake> {
    let seed = member.object("seed")?;
    seed.only(&["strategy", "salt"])?;
    let strategy = seed.optional("strategy").map(|strategy| strategy.choice(wire::STRATEGIES)).transpose()?;
    let salt = seed.optional("salt").map(|salt| salt.text()).transpose()?;
    Ok((strategy.unwrap_or_default(), salt.unwrap_or_default().into_owned()))
}

fn constraints(only: Option<&Member<'_>>, avoid: Option<&Member<'_>>) -> Result<Constraints, Mistake> {
    let mut constraints = Constraints::default();
    if let Some(only) = only {
        constraints.add_only(&only.text()?).map_err(|error| only.blame(error))?;
    }
    if let Some(avoid) = avoid {
        constraints.add_avoid(&avoid.text()?).map_err(|error| avoid.blame(error))?;
    }
    Ok(constraints)
}

pub(super) fn policy(members: &Members<'_>) -> Result<Policy, Mistake> {
    let policy = members.required("policy")?.object("policy")?;
    policy.only(&["concurrency", "deadline", "suspend"])?;
    let mut read = Policy::default();
    if let Some(concurrency) = policy.optional("concurrency") {
        read.overlap = concurrency.choice(wire::CONCURRENCIES)?;
    }
    if let Some(deadline) = policy.optional("deadline") {
        read.deadline = Some(deadline.duration()?);
    }
    if let Some(suspend) = policy.optional("suspend") {
        read.suspend = suspend.flag()?;
    }
    Ok(read)
}

/// The schedule of `dialect`, `expr` and `dst`.
pub(super) fn schedule(members: &Members<'_>, zone: &Zone) -> Result<Schedule, Mistake> {
    let dialect = members.required("dialect")?.choice(wire::DIALECTS)?;
    let dst = dst(members, dialect)?;
    let expr = members.required("expr")?;
    let parsed = Expr::parse(&expr.text()?, dialect);
    parsed.and_then(|parsed| parsed.compile(zone, dst)).map_err(|error| expr.blame(error))
}

/// The policy for daylight saving; the dialect has a default for what is not said.
fn dst(members: &Members<'_>, dialect: Dialect) -> Result<Dst, Mistake> {
    let mut read = dialect.default_dst();
    let Some(member) = members.optional("dst") else {
        return Ok(read);
    };
    let dst = member.object("dst")?;
    dst.only(&["gap", "fold"])?;
    if let Some(gap) = dst.optional("gap") {
        read.gap = gap.choice(wire::GAPS)?;
    }
    if let Some(fold) = dst.optional("fold") {
        read.fold = fold.choice(wire::FOLDS)?;
    }
    Ok(read)
}
