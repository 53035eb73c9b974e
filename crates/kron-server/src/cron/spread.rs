//! The `kron` object of a cron job: windows, distributions, seeds, constraints, deadline, daylight saving.

use kron_core::{Constraints, Distribution, JobBuilder, Overlap, Policy, SeedStrategy, WindowMode};
use kron_schedule::{Dst, Duration, Fold, Gap};

use crate::members::{Members, Raw, read_as, wrong};
use crate::refusal::Refusal;

/// How a cron job is spread over its windows. Absent, it is plain Open Job Spec.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    window: Option<(WindowMode, Duration)>,
    distribution: Option<Distribution>,
    seed: (SeedStrategy, String),
    constraints: Constraints,
    deadline: Option<Duration>,
    pub(super) dst: Option<Dst>,
}

impl Spread {
    /// Reads the object. A member that is not known is an error: it would mean something and do nothing.
    pub(super) fn read(given: Option<&Raw>) -> Result<Spread, Refusal> {
        let Some(given) = given else { return Ok(Spread::default()) };
        let mut given = Members::of(given, "kron")?;
        let mut spread = Spread {
            window: given.take("window").map(|raw| window(&raw)).transpose()?,
            distribution: given.take("distribution").map(|raw| distribution(&raw)).transpose()?,
            seed: given.take("seed").map(|raw| seed(&raw)).transpose()?.unwrap_or_default(),
            constraints: Constraints::default(),
            deadline: given.take("deadline").map(|raw| duration(&raw, "kron.deadline")).transpose()?,
            dst: given.take("dst").map(|raw| dst(&raw)).transpose()?,
        };
        let mut nested = given.take_members("constraints")?.unwrap_or_default();
        for name in ["only", "avoid"] {
            for raw in [nested.take(name), given.take(name)].into_iter().flatten() {
                spread.constrain(name, &raw)?;
            }
        }
        known(&nested, "kron.constraints", &["only", "avoid"])?;
        known(
            &given,
            "kron",
            &["window", "distribution", "seed", "constraints", "only", "avoid", "deadline", "dst"],
        )?;
        Ok(spread)
    }

    /// Puts it into a definition.
    pub(super) fn apply(self, plan: JobBuilder, overlap: Overlap) -> Result<kron_core::Job, Refusal> {
        let (mode, length) = self.window.unwrap_or((WindowMode::After, Duration::ZERO));
        plan.window(mode, length)
            .distribution(self.distribution.unwrap_or(Distribution::Uniform))
            .seed(self.seed.0, self.seed.1)
            .constraints(self.constraints)
            .policy(Policy { overlap, deadline: self.deadline, suspend: false })
            .build()
            .map_err(|error| Refusal::request(format!("`kron`: {error}")).field("kron"))
    }

    /// Clauses as krontab writes them, or as objects of the same keys.
    fn constrain(&mut self, name: &str, raw: &Raw) -> Result<(), Refusal> {
        let field = format!("kron.{name}");
        let expected = "clauses such as \"hours=9-17\"";
        let clauses: Vec<Raw> =
            if raw.get().starts_with('[') { read_as(raw, &field, expected)? } else { vec![raw.clone()] };
        for clause in clauses {
            let texts = if clause.get().starts_with('{') {
                let members = Members::of(&clause, &field)?;
                let pair = |(key, value): (&String, &Raw)| {
                    read_as::<String>(value, &format!("{field}.{key}"), "a text")
                        .map(|value| format!("{key}={value}"))
                };
                members.0.iter().map(pair).collect::<Result<Vec<_>, _>>()?
            } else {
                vec![read_as::<String>(&clause, &field, expected)?]
            };
            for text in texts {
                let added = match name {
                    "only" => self.constraints.add_only(&text),
                    _ => self.constraints.add_avoid(&text),
                };
                added.map_err(|error| Refusal::request(format!("`{field}`: {error}")).field(&field))?;
            }
        }
        Ok(())
    }
}

fn window(raw: &Raw) -> Result<(WindowMode, Duration), Refusal> {
    let mut given = Members::of(raw, "kron.window")?;
    let mode = match given.take("mode") {
        None => WindowMode::After,
        Some(raw) => {
            choose(&raw, "kron.window.mode", &[("after", WindowMode::After), ("around", WindowMode::Around)])?
        }
    };
    let length = match given.take("duration") {
        Some(raw) => duration(&raw, "kron.window.duration")?,
        None => {
            let message = "expected a `kron.window.duration` such as \"30m\", but it is missing";
            return Err(Refusal::request(message).field("kron.window.duration"));
        }
    };
    known(&given, "kron.window", &["mode", "duration"])?;
    Ok((mode, length))
}

fn distribution(raw: &Raw) -> Result<Distribution, Refusal> {
    let field = "kron.distribution";
    let mut given = Members::of(raw, field)?;
    let name: String = match given.take("name") {
        Some(raw) => read_as(&raw, "kron.distribution.name", "a name such as \"uniform\"")?,
        None => "uniform".into(),
    };
    let params = given.take_members("params")?.unwrap_or_default();
    known(&given, field, &["name", "params"])?;
    let text = |(key, raw): (&String, &Raw)| {
        let value = if raw.get().starts_with('"') {
            read_as(raw, &format!("kron.distribution.params.{key}"), "a text")?
        } else {
            raw.get().to_owned()
        };
        Ok((key.clone(), value))
    };
    let params = params.0.iter().map(text).collect::<Result<Vec<(String, String)>, Refusal>>()?;
    let pairs: Vec<(&str, &str)> = params.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    Distribution::parse(&name, &pairs).map_err(|error| {
        let refusal = Refusal::request(format!("`{field}`: {error}")).field(field);
        match error.help() {
            Some(help) => refusal.hint(help),
            None => refusal,
        }
    })
}

fn seed(raw: &Raw) -> Result<(SeedStrategy, String), Refusal> {
    let mut given = Members::of(raw, "kron.seed")?;
    let strategies =
        [("stable", SeedStrategy::Stable), ("daily", SeedStrategy::Daily), ("weekly", SeedStrategy::Weekly)];
    let strategy = match given.take("strategy") {
        None => SeedStrategy::default(),
        Some(raw) => choose(&raw, "kron.seed.strategy", &strategies)?,
    };
    let salt = given.take_as("salt", "a text")?.unwrap_or_default();
    known(&given, "kron.seed", &["strategy", "salt"])?;
    Ok((strategy, salt))
}

fn dst(raw: &Raw) -> Result<Dst, Refusal> {
    let mut given = Members::of(raw, "kron.dst")?;
    let gap = match given.take("gap") {
        None => Dst::OJS.gap,
        Some(raw) => choose(&raw, "kron.dst.gap", &[("skip", Gap::Skip), ("after", Gap::After)])?,
    };
    let folds = [("first", Fold::First), ("both", Fold::Both), ("auto", Fold::Auto)];
    let fold = match given.take("fold") {
        None => Dst::OJS.fold,
        Some(raw) => choose(&raw, "kron.dst.fold", &folds)?,
    };
    known(&given, "kron.dst", &["gap", "fold"])?;
    Ok(Dst { gap, fold })
}

fn duration(raw: &Raw, field: &str) -> Result<Duration, Refusal> {
    let text: String = read_as(raw, field, "a duration such as \"30m\"")?;
    text.parse().map_err(|error| Refusal::request(format!("`{field}`: {error}")).field(field))
}

fn choose<T: Copy>(raw: &Raw, field: &str, choices: &[(&str, T)]) -> Result<T, Refusal> {
    let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    let expected = words.join(" or ");
    let text: String = read_as(raw, field, &expected)?;
    let found = choices.iter().find(|(word, _)| *word == text);
    found.map(|(_, choice)| *choice).ok_or_else(|| wrong(field, &expected, raw))
}

/// Refuses members that are not known.
fn known(left: &Members, field: &str, names: &[&str]) -> Result<(), Refusal> {
    let Some(name) = left.0.keys().find(|name| !names.contains(&name.as_str())) else { return Ok(()) };
    let message = format!("unknown member {} in `{field}`", crate::members::excerpt(name));
    let refusal = Refusal::request(message).field(&format!("{field}.{name}"));
    Err(match kron_schedule::suggest::closest(name, names.iter().copied()) {
        Some(meant) => refusal.hint(format!("did you mean `{meant}`?")),
        None => refusal.hint(format!("its members are {}", names.join(", "))),
    })
}
