//! The modifiers: `@tz @win @dist @seed @policy @only @avoid @dst`.

use std::fmt;
use std::ops::Range;

use kron_core::{
    ConstraintError, Constraints, Distribution, DistributionPart, Overlap, Policy, SeedStrategy, Window,
    WindowMode,
};
use kron_schedule::{Dst, Duration, Fold, Gap, Zone};

use crate::canonical;
use crate::code::Code;
use crate::problem::{Mistake, quoted};
use crate::token::{BLANKS, Piece, Token};
use kron_schedule::suggest::{closest, did_you_mean};
use kron_zones::Zones;

/// What the modifiers of an entry say. What is not there was not written.
///
/// [`Display`](fmt::Display) prints them in one spelling and order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modifiers {
    pub(crate) zone: Option<Placed<Zone>>,
    pub(crate) window: Option<Placed<Window>>,
    pub(crate) distribution: Option<Placed<Spread>>,
    pub(crate) seed: Option<Placed<Seed>>,
    pub(crate) policy: Option<Placed<PolicyKeys>>,
    pub(crate) only: Vec<String>,
    pub(crate) avoid: Vec<String>,
    pub(crate) constraints: Constraints,
    pub(crate) dst: Option<Placed<DstKeys>>,
}

/// A value and where it was written, in bytes of the line.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Seed {
    pub(crate) strategy: SeedStrategy,
    pub(crate) salt: Option<String>,
}

/// A distribution, and which of its parameters were written.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    pub(crate) distribution: Distribution,
    keys: Vec<String>,
}

/// The keys of `@policy` that were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyKeys {
    concurrency: Option<Overlap>,
    pub(crate) deadline: Option<Placed<Duration>>,
    suspend: Option<bool>,
}

/// The keys of `@dst` that were written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DstKeys {
    gap: Option<Gap>,
    fold: Option<Fold>,
}

impl Modifiers {
    /// The rules for odd local times, with defaults for what was not written.
    pub(crate) fn dst(&self) -> Dst {
        let keys = self.dst.as_ref().map(|dst| dst.value).unwrap_or_default();
        Dst { gap: keys.gap.unwrap_or(Dst::KRON.gap), fold: keys.fold.unwrap_or(Dst::KRON.fold) }
    }

    /// The policy, with defaults for what was not written.
    pub(crate) fn policy(&self) -> Policy {
        let default = Policy::default();
        let Some(Placed { value: keys, .. }) = &self.policy else {
            return default;
        };
        Policy {
            overlap: keys.concurrency.unwrap_or(default.overlap),
            deadline: keys.deadline.as_ref().map(|deadline| deadline.value).or(default.deadline),
            suspend: keys.suspend.unwrap_or(default.suspend),
        }
    }
}

/// The modifiers, by name.
const NAMES: [&str; 8] = ["@tz", "@win", "@dist", "@seed", "@policy", "@only", "@avoid", "@dst"];

/// Other words for them, from other schedulers and from kindred files.
const SYNONYMS: [(&str, &str); 8] = [
    ("@constraint", "@only"),
    ("@distribution", "@dist"),
    ("@except", "@avoid"),
    ("@jitter", "@win"),
    ("@salt", "@seed"),
    ("@timezone", "@tz"),
    ("@window", "@win"),
    ("@zone", "@tz"),
];

/// The most modifiers of one entry. Only `@only` and `@avoid` repeat, for lists of holidays.
const MODIFIERS_MAX: usize = 64;

/// Reads the modifiers of an entry.
pub(crate) fn read(tokens: &[Token<'_>], zones: &Zones, mistakes: &mut Vec<Mistake>) -> Modifiers {
    let mut modifiers = Modifiers::default();
    let mut seen: Vec<&str> = Vec::new();
    for (count, token) in tokens.iter().enumerate() {
        if count == MODIFIERS_MAX {
            let message = format!("expected at most {MODIFIERS_MAX} modifiers, but found {}", tokens.len());
            mistakes.push(Mistake::new(Code::TooMany, token.span(), message));
            break;
        }
        let (name, body) = match shape(token) {
            Ok(shaped) => shaped,
            Err(mistake) => {
                mistakes.push(mistake);
                continue;
            }
        };
        let repeats = matches!(name, "@only" | "@avoid");
        if !repeats && seen.contains(&name) {
            mistakes.push(
                Mistake::new(Code::RepeatedModifier, token.span(), format!("`{name}` stands here twice"))
                    .with_help("keep one of them: which one counts is not guessed"),
            );
            // What is wrong within it is told, and what is right has no effect.
            Modifiers::default().read(name, body, token.span(), zones, mistakes);
            continue;
        }
        seen.push(name);
        modifiers.read(name, body, token.span(), zones, mistakes);
    }
    modifiers
}

/// A modifier's name with its `@`, and what is between its parentheses.
fn shape<'t>(token: &'t Token<'t>) -> Result<(&'static str, Piece<'t>), Mistake> {
    let whole = token.piece();
    let (name, body) = match whole.split_once('(') {
        Some((name, body)) if body.text.ends_with(')') => (name, body.slice(0..body.text.len() - 1)),
        Some(_) => {
            let end = token.span().end;
            return Err(Mistake::new(
                Code::ModifierSyntax,
                end..end,
                format!("expected `)` at the end of {}", quoted(whole.text)),
            ));
        }
        None => {
            let name = whole.split_once('=').map_or(whole, |(name, _)| name).text;
            let help = NAMES
                .contains(&name)
                .then(|| format!("write what it says between parentheses: `{}`", example(name)))
                .or_else(|| name_help(name));
            return Err(whole
                .expected(Code::ModifierSyntax, "a modifier such as `@tz(UTC)`")
                .with_help_if(help));
        }
    };
    let Some(known) = NAMES.iter().find(|known| **known == name.text) else {
        let message = format!("unknown modifier {}", quoted(name.text));
        let help = name_help(name.text);
        let mistake = Mistake::new(Code::UnknownModifier, name.span(), message);
        return Err(mistake.with_help(help.unwrap_or_else(|| format!("there are {}", NAMES.join(", ")))));
    };
    if body.text.is_empty() {
        let message = format!("expected something between the parentheses of `{known}`, but found nothing");
        return Err(Mistake::new(Code::ModifierSyntax, token.span(), message)
            .with_help(format!("such as `{}`", example(known))));
    }
    Ok((known, body))
}

fn name_help(name: &str) -> Option<String> {
    let synonym = SYNONYMS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, name)| *name);
    synonym.or_else(|| closest(name, NAMES)).map(|name| format!("did you mean `{name}`?"))
}

fn example(name: &str) -> &'static str {
    match name {
        "@avoid" => "@avoid(date=2026-12-24)",
        "@dist" => "@dist(skewEarly,shape=3)",
        "@dst" => "@dst(gap=skip,fold=auto)",
        "@only" => "@only(hours=8-10)",
        "@policy" => "@policy(concurrency=forbid,deadline=5m)",
        "@seed" => "@seed(daily,salt=team-a)",
        "@tz" => "@tz(Europe/Paris)",
        _ => "@win(after,30m)",
    }
}

impl Modifiers {
    fn read(
        &mut self,
        name: &str,
        body: Piece<'_>,
        span: Range<usize>,
        zones: &Zones,
        mistakes: &mut Vec<Mistake>,
    ) {
        let before = mistakes.len();
        match name {
            "@avoid" => self.constraint(body, Constraints::add_avoid, mistakes),
            "@only" => self.constraint(body, Constraints::add_only, mistakes),
            "@dist" => {
                let spread = distribution(body, mistakes);
                self.distribution = spread.map(|value| Placed { value, span });
            }
            "@dst" => self.dst = Some(Placed { value: dst(body, mistakes), span }),
            "@policy" => self.policy = Some(Placed { value: policy(body, mistakes), span }),
            "@seed" => self.seed = Some(Placed { value: seed(body, mistakes), span }),
            "@tz" => {
                let zone = zones.find(body.text).map_err(|error| {
                    let help = error.help().map(str::to_owned);
                    Mistake::new(Code::TimeZone, body.span(), error.to_string()).with_help_if(help)
                });
                self.zone = placed(zone, &span, mistakes);
            }
            _ => self.window = window(body, mistakes).map(|value| Placed { value, span }),
        }
        if before == mistakes.len() {
            match name {
                "@avoid" => self.avoid.push(canonical_clauses(body.text)),
                "@only" => self.only.push(canonical_clauses(body.text)),
                _ => {}
            }
        }
    }

    fn constraint(
        &mut self,
        body: Piece<'_>,
        add: fn(&mut Constraints, &str) -> Result<(), ConstraintError>,
        mistakes: &mut Vec<Mistake>,
    ) {
        let Err(error) = add(&mut self.constraints, body.text) else {
            return;
        };
        let before = mistakes.len();
        for clause in body.split(';').filter(|clause| !clause.trimmed().text.is_empty()) {
            wrong_clause(clause, mistakes);
        }
        if before == mistakes.len() {
            mistakes.push(refused(&error, body)); // it is about all of them together
        }
    }
}

/// Tells what is wrong with a clause: of a list, with each of its values.
fn wrong_clause(clause: Piece<'_>, mistakes: &mut Vec<Mistake>) {
    let check = |text: &str| Constraints::default().add_only(text).err();
    let Some(error) = check(clause.text) else {
        return;
    };
    let before = mistakes.len();
    if let Some((key, list)) = clause.split_once('=').filter(|(_, list)| list.text.contains(',')) {
        for value in list.split(',') {
            let alone = format!("{}={}", key.text, value.text);
            let value_at = key.text.len() + 1;
            if let Some(error) = check(&alone).filter(|error| error.span().start >= value_at) {
                let span = error.span().start - value_at..error.span().end - value_at;
                let mistake = Mistake::new(Code::Constraint, value.span_of(span), error.to_string());
                mistakes.push(mistake.with_help_if(error.help()));
            }
        }
    }
    if before == mistakes.len() {
        mistakes.push(refused(&error, clause));
    }
}

fn refused(error: &ConstraintError, piece: Piece<'_>) -> Mistake {
    Mistake::new(Code::Constraint, piece.span_of(error.span()), error.to_string()).with_help_if(error.help())
}

/// The clauses of one modifier in their canonical spelling.
fn canonical_clauses(text: &str) -> String {
    let mut alone = Constraints::default();
    match alone.add_only(text) {
        Ok(()) => alone.only().to_string(),
        Err(_) => text.to_owned(),
    }
}

fn placed<T>(
    read: Result<T, Mistake>,
    span: &Range<usize>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Placed<T>> {
    read.map(|value| Placed { value, span: span.clone() }).map_err(|mistake| mistakes.push(mistake)).ok()
}

fn window(body: Piece<'_>, mistakes: &mut Vec<Mistake>) -> Option<Window> {
    let Some((mode, duration)) = body.split_once(',') else {
        mistakes.push(body.expected(Code::Window, "a mode and a duration such as `after,30m`"));
        return None;
    };
    let before = mistakes.len();
    let known = match mode.text {
        "after" => WindowMode::After,
        "around" | "center" => WindowMode::Around,
        "before" => WindowMode::Before,
        other => {
            let help = did_you_mean(other, ["after", "around", "before", "center"]);
            mistakes.push(mode.expected(Code::Window, "`after`, `around` or `before`").with_help_if(help));
            WindowMode::After // so that the duration is looked at too
        }
    };
    let window = read_duration(duration, Code::Window).and_then(|length| {
        Window::new(known, length).map_err(|error| duration.expected(Code::Window, error.expected()))
    });
    let window = window.map_err(|mistake| mistakes.push(mistake)).ok();
    window.filter(|_| before == mistakes.len())
}

fn distribution(body: Piece<'_>, mistakes: &mut Vec<Mistake>) -> Option<Spread> {
    let before = mistakes.len();
    let mut pieces = body.split(',');
    let name = pieces.next().unwrap_or(body);
    let mut parameters = Vec::new();
    for piece in pieces {
        match piece.split_once('=') {
            Some(pair) => parameters.push(pair),
            None => mistakes.push(piece.expected(Code::Distribution, "a parameter such as `shape=2`")),
        }
    }
    // One mistake is told at a time: without the parameter that has it, the next is found.
    loop {
        let texts: Vec<(&str, &str)> = parameters.iter().map(|(key, value)| (key.text, value.text)).collect();
        let error = match Distribution::parse(name.text, &texts) {
            Ok(distribution) => {
                let keys = texts.iter().map(|(key, _)| (*key).to_owned()).collect();
                return (before == mistakes.len()).then_some(Spread { distribution, keys });
            }
            Err(error) => error,
        };
        let (code, place) = match error.part() {
            DistributionPart::Key(i) if texts[..i].iter().any(|(key, _)| *key == texts[i].0) => {
                (Code::RepeatedKey, parameters[i].0)
            }
            DistributionPart::Key(i) => (Code::UnknownKey, parameters[i].0),
            DistributionPart::Name => (Code::Distribution, name),
            DistributionPart::Value(i) => (Code::Distribution, parameters[i].1),
        };
        mistakes.push(Mistake::new(code, place.span(), error.to_string()).with_help_if(error.help()));
        match error.part() {
            DistributionPart::Name => return None, // what it could have is not known
            DistributionPart::Key(i) | DistributionPart::Value(i) => drop(parameters.remove(i)),
        }
    }
}

fn seed(body: Piece<'_>, mistakes: &mut Vec<Mistake>) -> Seed {
    let mut pieces = body.split(',');
    let name = pieces.next().unwrap_or(body);
    let strategy = match name.text {
        "daily" => SeedStrategy::Daily,
        "stable" => SeedStrategy::Stable,
        "weekly" => SeedStrategy::Weekly,
        other => {
            let help = did_you_mean(other, ["stable", "daily", "weekly"]);
            mistakes.push(name.expected(Code::Seed, "`stable`, `daily` or `weekly`").with_help_if(help));
            SeedStrategy::Stable
        }
    };
    let mut salt = None;
    for piece in pieces {
        match piece.split_once('=') {
            Some((key, value)) if key.text == "salt" => {
                if salt.is_some() {
                    mistakes.push(repeated_key(key));
                }
                salt = Some(value.trimmed().text.to_owned());
            }
            // A comma in a salt would look like this.
            _ if salt.is_some() => mistakes.push(
                piece.expected(Code::Seed, "nothing after the salt").with_help("a salt cannot hold a comma"),
            ),
            Some((key, _)) => mistakes.push(unknown_key(key, &["salt"])),
            None => mistakes.push(piece.expected(Code::Seed, "`salt=` with a text")),
        }
    }
    Seed { strategy, salt }
}

fn policy(body: Piece<'_>, mistakes: &mut Vec<Mistake>) -> PolicyKeys {
    let mut keys = PolicyKeys::default();
    for (key, value) in pairs(body, Code::Policy, &["concurrency", "deadline", "suspend"], mistakes) {
        let read = match key.text {
            "concurrency" => overlap(value).map(|overlap| keys.concurrency = Some(overlap)),
            "deadline" => deadline(value).map(|deadline| {
                keys.deadline = Some(Placed { value: deadline, span: key.span().start..value.span().end });
            }),
            _ => boolean(value, Code::Policy).map(|suspend| keys.suspend = Some(suspend)),
        };
        mistakes.extend(read.err());
    }
    keys
}

fn overlap(value: Piece<'_>) -> Result<Overlap, Mistake> {
    Ok(match value.text {
        "allow" => Overlap::Allow,
        "forbid" => Overlap::Forbid,
        "replace" => Overlap::Replace,
        "queue" => {
            return Err(value
                .expected(Code::Policy, "`allow`, `forbid` or `replace`")
                .with_help("a host has no queue in which a run could wait; only kron-server does"));
        }
        other => {
            let help = did_you_mean(other, ["allow", "forbid", "replace"]);
            return Err(value.expected(Code::Policy, "`allow`, `forbid` or `replace`").with_help_if(help));
        }
    })
}

fn deadline(value: Piece<'_>) -> Result<Duration, Mistake> {
    let deadline = read_duration(value, Code::Policy)?;
    if deadline < Duration::ZERO {
        return Err(value.expected(Code::Policy, "a duration that is not negative"));
    }
    Ok(deadline)
}

fn dst(body: Piece<'_>, mistakes: &mut Vec<Mistake>) -> DstKeys {
    let mut keys = DstKeys::default();
    for (key, value) in pairs(body, Code::Policy, &["gap", "fold"], mistakes) {
        let values: &[&str] = match key.text {
            "gap" => &["skip", "after"],
            _ => &["first", "both", "auto"],
        };
        match (key.text, value.text) {
            ("gap", "after") => keys.gap = Some(Gap::After),
            ("gap", "skip") => keys.gap = Some(Gap::Skip),
            ("fold", "auto") => keys.fold = Some(Fold::Auto),
            ("fold", "both") => keys.fold = Some(Fold::Both),
            ("fold", "first") => keys.fold = Some(Fold::First),
            (_, other) => {
                let forms: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                let help = did_you_mean(other, values.iter().copied());
                mistakes.push(value.expected(Code::Policy, &either(&forms)).with_help_if(help));
            }
        }
    }
    keys
}

/// `key=value` pairs with commas between. Those with a wrong or repeated key are mistakes.
fn pairs<'t>(
    body: Piece<'t>,
    code: Code,
    keys: &[&'static str],
    mistakes: &mut Vec<Mistake>,
) -> Vec<(Piece<'t>, Piece<'t>)> {
    let mut pairs: Vec<(Piece<'_>, Piece<'_>)> = Vec::new();
    for piece in body.split(',') {
        match piece.split_once('=') {
            None => {
                let forms: Vec<String> = keys.iter().map(|key| format!("`{key}=…`")).collect();
                mistakes.push(piece.expected(code, &either(&forms)));
            }
            Some((key, _)) if !keys.contains(&key.text) => mistakes.push(unknown_key(key, keys)),
            Some((key, _)) if pairs.iter().any(|(other, _)| other.text == key.text) => {
                mistakes.push(repeated_key(key));
            }
            Some(pair) => pairs.push(pair),
        }
    }
    pairs
}

/// "a", "a or b", "a, b or c".
fn either(forms: &[String]) -> String {
    match forms {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn unknown_key(key: Piece<'_>, keys: &[&str]) -> Mistake {
    let help = did_you_mean(key.text, keys.iter().copied()).unwrap_or_else(|| match keys {
        [only] => format!("there is `{only}`"),
        _ => format!("there are `{}`", keys.join("`, `")),
    });
    Mistake::new(Code::UnknownKey, key.span(), format!("unknown key {}", quoted(key.text))).with_help(help)
}

fn repeated_key(key: Piece<'_>) -> Mistake {
    let message = format!("the key {} stands here twice", quoted(key.text));
    Mistake::new(Code::RepeatedKey, key.span(), message)
}

pub(crate) fn boolean(value: Piece<'_>, code: Code) -> Result<bool, Mistake> {
    match value.text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => {
            let help = did_you_mean(other, ["true", "false"]);
            Err(value.expected(code, "`true` or `false`").with_help_if(help))
        }
    }
}

pub(crate) fn read_duration(value: Piece<'_>, code: Code) -> Result<Duration, Mistake> {
    value.text.parse().map_err(|error: kron_schedule::DurationError| {
        let mistake = Mistake::new(code, value.span_of(error.span()), error.to_string());
        let help = match value.text {
            text if text.contains(BLANKS) => Some("write it without blanks"),
            text if text.len() > 1 && text.ends_with('d') => Some("there is no unit for days: write `24h`"),
            _ => None,
        };
        mistake.with_help_if(help)
    })
}

/// The modifiers as one line would have them: `@tz(UTC) @win(after,30m)`.
impl fmt::Display for Modifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut write = |f: &mut fmt::Formatter<'_>, name: &str, body: &dyn fmt::Display| {
            write!(f, "{separator}{name}({body})")?;
            separator = " ";
            Ok(())
        };
        if let Some(zone) = &self.zone {
            write(f, "@tz", &zone.value.name())?;
        }
        if let Some(window) = &self.window {
            write(f, "@win", &window.value)?;
        }
        if let Some(distribution) = &self.distribution {
            write(f, "@dist", &distribution.value)?;
        }
        if let Some(Placed { value: Seed { strategy, salt }, .. }) = &self.seed {
            match salt.as_deref() {
                None => write(f, "@seed", strategy)?,
                Some("") => write(f, "@seed", &format_args!("{strategy},salt="))?,
                Some(salt) => write(f, "@seed", &format_args!("{strategy},salt={}", canonical::word(salt)))?,
            }
        }
        if let Some(policy) = &self.policy {
            write(f, "@policy", &policy.value)?;
        }
        for clauses in &self.only {
            write(f, "@only", clauses)?;
        }
        for clauses in &self.avoid {
            write(f, "@avoid", clauses)?;
        }
        if let Some(dst) = &self.dst {
            write(f, "@dst", &dst.value)?;
        }
        Ok(())
    }
}

impl fmt::Display for PolicyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let overlap = self.concurrency.map(|overlap| match overlap {
            Overlap::Allow => "allow",
            Overlap::Forbid => "forbid",
            Overlap::Queue => "queue",
            Overlap::Replace => "replace",
        });
        let written = [
            overlap.map(|overlap| format!("concurrency={overlap}")),
            self.deadline.as_ref().map(|deadline| format!("deadline={}", deadline.value)),
            self.suspend.map(|suspend| format!("suspend={suspend}")),
        ];
        f.write_str(&written.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// The parameters that were written, in one order and spelling; the others have their defaults.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.distribution.name())?;
        let all = self.distribution.parameters().to_string();
        let is_written = |parameter: &&str| {
            let key = parameter.split('=').next();
            self.keys.iter().any(|written| Some(written.as_str()) == key)
        };
        all.split(',').filter(is_written).try_for_each(|parameter| write!(f, ",{parameter}"))
    }
}

impl fmt::Display for DstKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gap = self.gap.map(|gap| match gap {
            Gap::After => "gap=after",
            Gap::Skip => "gap=skip",
        });
        let fold = self.fold.map(|fold| match fold {
            Fold::Auto => "fold=auto",
            Fold::Both => "fold=both",
            Fold::First => "fold=first",
        });
        f.write_str(&[gap, fold].into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}
