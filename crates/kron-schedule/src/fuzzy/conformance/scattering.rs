//! The tests of scattering and of the cron it makes. Many names are tried, and the results counted.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Implementation;

type Outcome = Result<String, String>;

/// Names as the specification has them, of many repositories.
fn names(many: u32) -> impl Iterator<Item = String> {
    (0..many).map(|n| format!("owner{}/repo{}/.github/workflows/job-{n}.md", n % 7, n % 131))
}

/// A cron expression that was generated, and where it came from.
struct Cron {
    placeholder: String,
    text: String,
}

impl Cron {
    fn of(subject: &dyn Implementation, placeholder: &str, identifier: &str) -> Result<Cron, String> {
        match subject.cron(placeholder, identifier) {
            Ok(text) => Ok(Cron { placeholder: placeholder.into(), text }),
            Err(code) => Err(format!("'{placeholder}' must be scattered, but is refused with {code}")),
        }
    }

    fn field(&self, index: usize) -> Result<&str, String> {
        self.text.split(' ').nth(index).ok_or_else(|| self.wrong("all fields"))
    }

    /// A field that must be a number below a bound.
    fn number(&self, index: usize, below: u32) -> Result<u32, String> {
        let value = self.field(index)?.parse().ok();
        value.filter(|value| *value < below).ok_or_else(|| self.wrong(&format!("a number below {below}")))
    }

    /// The minute of the day.
    fn minute_of_day(&self) -> Result<u32, String> {
        Ok(self.number(1, 24)? * 60 + self.number(0, 60)?)
    }

    fn wrong(&self, expected: &str) -> String {
        format!("'{}' must have {expected}, but is scattered to '{}'", self.placeholder, self.text)
    }
}

pub(super) fn hash_is_deterministic(subject: &dyn Implementation) -> Outcome {
    for name in names(1_000) {
        if subject.hash(&name) != subject.hash(&name) {
            return Err(format!("the hash of '{name}' changes"));
        }
    }
    Ok("1000 identifiers, each hashed twice".into())
}

/// No hash with 32 bits can tell all texts apart, but these few it must.
pub(super) fn hash_tells_apart(subject: &dyn Implementation) -> Outcome {
    let hashes: BTreeSet<u32> = names(1_000).map(|name| subject.hash(&name)).collect();
    if hashes.len() < 1_000 {
        return Err(format!("1000 identifiers have {} hashes", hashes.len()));
    }
    Ok("1000 identifiers have 1000 hashes".into())
}

pub(super) fn choice_is_within_modulo(subject: &dyn Implementation) -> Outcome {
    for name in names(500) {
        let cron = |placeholder| Cron::of(subject, placeholder, &name);
        cron("FUZZY:HOURLY * * *")?.number(0, 60)?;
        cron("FUZZY:DAILY * * *")?.minute_of_day()?;
        let weekly = cron("FUZZY:WEEKLY * * *")?;
        let minute_of_week = weekly.number(4, 7)? * 1_440 + weekly.minute_of_day()?;
        for (modulo, placeholder) in
            [(1, "FUZZY:DAILY_BETWEEN:9:0:9:1 * * *"), (7, "FUZZY:DAILY_BETWEEN:9:0:9:7 * * *")]
        {
            let range = cron(placeholder)?;
            if !(540..540 + modulo).contains(&range.minute_of_day()?) {
                return Err(range.wrong(&format!("one of {modulo} minutes")));
            }
        }
        let daily = cron("FUZZY:DAILY * * *")?.minute_of_day()?;
        if minute_of_week % 1_440 != daily || daily % 60 != cron("FUZZY:HOURLY * * *")?.number(0, 60)? {
            return Err(format!("'{name}' must have remainders of one hash"));
        }
    }
    Ok("500 identifiers, with the moduli 1, 7, 60, 1440 and 10080".into())
}

pub(super) fn daily_covers_the_day(subject: &dyn Implementation) -> Outcome {
    let mut hours = vec![0u32; 24];
    let mut minutes = vec![0u32; 60];
    let mut times = BTreeSet::new();
    for name in names(14_400) {
        let time = Cron::of(subject, "FUZZY:DAILY * * *", &name)?.minute_of_day()?;
        hours[time as usize / 60] += 1;
        minutes[time as usize % 60] += 1;
        times.insert(time);
    }
    // Six standard deviations from the mean, which is 600 and 240.
    even("hour", &hours, 450..750)?;
    even("minute", &minutes, 148..332)?;
    if times.len() < 1_430 {
        return Err(format!("only {} of 1440 minutes are used", times.len()));
    }
    Ok(format!("14400 identifiers use {} of 1440 minutes, and all hours about equally", times.len()))
}

fn even(what: &str, counts: &[u32], expected: core::ops::Range<u32>) -> Result<(), String> {
    match counts.iter().position(|count| !expected.contains(count)) {
        None => Ok(()),
        Some(at) => Err(format!("{what} {at} is used {} times, which is not even", counts[at])),
    }
}

pub(super) fn around_stays_within_its_window(subject: &dyn Implementation) -> Outcome {
    for (target, time) in
        [(0, "0:0"), (30, "0:30"), (720, "12:0"), (840, "14:0"), (1_410, "23:30"), (1_439, "23:59")]
    {
        let placeholder = format!("FUZZY:DAILY_AROUND:{time} * * *");
        window(subject, &placeholder, (target + 1_440 - 60) % 1_440, 120)?;
    }
    Ok("6 times of day, 2000 identifiers each, all 120 minutes of the window used".into())
}

pub(super) fn between_stays_within_its_range(subject: &dyn Implementation) -> Outcome {
    for (start, size, range) in
        [(540, 480, "9:0:17:0"), (0, 60, "0:0:1:0"), (720, 720, "12:0:0:0"), (840, 1, "14:0:14:1")]
    {
        window(subject, &format!("FUZZY:DAILY_BETWEEN:{range} * * *"), start, size)?;
    }
    Ok("4 ranges, 2000 identifiers each, nearly all minutes of the range used".into())
}

/// That every time is one of `size` minutes from `start` on, and that most of these are used.
fn window(subject: &dyn Implementation, placeholder: &str, start: u32, size: u32) -> Result<(), String> {
    let mut used = BTreeSet::new();
    for name in names(2_000) {
        let cron = Cron::of(subject, placeholder, &name)?;
        let within = (cron.minute_of_day()? + 1_440 - start) % 1_440;
        if within >= size {
            return Err(cron.wrong(&format!(
                "a time in the {size} minutes from {}:{:02} on",
                start / 60,
                start % 60
            )));
        }
        used.insert(within);
    }
    if used.len() * 10 < size as usize * 9 {
        return Err(format!("'{placeholder}' uses only {} of {size} minutes", used.len()));
    }
    Ok(())
}

pub(super) fn midnight_carries_the_day(subject: &dyn Implementation) -> Outcome {
    window(subject, "FUZZY:DAILY_BETWEEN:22:0:2:0 * * *", 1_320, 240)?;
    window(subject, "FUZZY:DAILY_BETWEEN:23:59:0:1 * * *", 1_439, 2)?;
    // Times before noon are on the later one of the two days.
    for (placeholder, evening, morning) in [
        ("FUZZY:WEEKLY:1:BETWEEN:22:0:2:0 * * 1", 1, 2),
        ("FUZZY:WEEKLY:6:BETWEEN:22:0:2:0 * * 6", 6, 0),
        ("FUZZY:WEEKLY:1:AROUND:0:30 * * 1", 0, 1),
        ("FUZZY:WEEKLY:6:AROUND:23:30 * * 6", 6, 0),
        ("FUZZY:WEEKLY:0:AROUND:0:30 * * 0", 6, 0),
    ] {
        let mut seen = BTreeSet::new();
        for name in names(500) {
            let cron = Cron::of(subject, placeholder, &name)?;
            let weekday = if cron.minute_of_day()? < 720 { morning } else { evening };
            if cron.number(4, 7)? != weekday {
                return Err(cron.wrong(&format!("weekday {weekday}")));
            }
            seen.insert(weekday);
        }
        if seen.len() < 2 {
            return Err(format!("'{placeholder}' must use both sides of midnight"));
        }
    }
    Ok("2 daily ranges and 5 weekly windows, on both sides of midnight".into())
}

pub(super) fn hourly_has_every_minute(subject: &dyn Implementation) -> Outcome {
    for placeholder in ["FUZZY:HOURLY * * *", "FUZZY:HOURLY:2 * * *"] {
        let mut used = BTreeSet::new();
        for name in names(1_000) {
            used.insert(Cron::of(subject, placeholder, &name)?.number(0, 60)?);
        }
        if used.len() < 60 {
            return Err(format!("'{placeholder}' uses only {} of 60 minutes", used.len()));
        }
    }
    Ok("1000 identifiers use all 60 minutes".into())
}

pub(super) fn weekly_has_every_day(subject: &dyn Implementation) -> Outcome {
    let mut counts = vec![0u32; 7];
    for name in names(7_000) {
        counts[Cron::of(subject, "FUZZY:WEEKLY * * *", &name)?.number(4, 7)? as usize] += 1;
    }
    even("weekday", &counts, 825..1_175)?; // six standard deviations from 1000
    Ok("7000 identifiers use all 7 days about equally".into())
}

/// Computed once by another program. They must never change, or jobs would move.
pub(super) fn times_never_change(subject: &dyn Implementation) -> Outcome {
    const PINNED: [(&str, &str, &str); 8] = [
        ("FUZZY:DAILY * * *", "github/gh-aw/workflow.md", "16 4 * * *"),
        ("FUZZY:WEEKLY * * *", "github/gh-aw/workflow.md", "16 4 * * 1"),
        ("FUZZY:HOURLY * * *", "github/gh-aw/workflow.md", "16 * * * *"),
        ("FUZZY:HOURLY:2 * * *", "github/gh-aw/workflow.md", "16 */2 * * *"),
        ("FUZZY:DAILY_AROUND:14:0 * * *", "github/gh-aw/workflow.md", "16 13 * * *"),
        ("FUZZY:DAILY_BETWEEN:9:0:17:0 * * *", "github/gh-aw/workflow.md", "16 13 * * *"),
        ("FUZZY:BI-WEEKLY * * *", "github/gh-aw/workflow.md", "16 4 */14 * *"),
        ("FUZZY:DAILY * * *", "github/gh-aw/.github/workflows/daily-report.md", "38 11 * * *"),
    ];
    for (placeholder, identifier, expected) in PINNED {
        for _ in 0..2 {
            let cron = Cron::of(subject, placeholder, identifier)?;
            if cron.text != expected {
                return Err(cron.wrong(&format!("'{expected}' for '{identifier}'")));
            }
        }
    }
    Ok(format!("{} times that were computed elsewhere, each twice", PINNED.len()))
}

/// A phrase of every kind. What is generated for them is looked at field by field.
const PHRASES: [&str; 24] = [
    "daily",
    "daily around 14:00",
    "daily around midnight",
    "daily between 9:00 and 17:00",
    "daily between 22:00 and 02:00",
    "daily around 14:00 utc+9",
    "weekly",
    "weekly around 14:00",
    "weekly between 22:00 and 02:00",
    "weekly on sunday",
    "weekly on saturday",
    "weekly on friday around 17:00",
    "weekly on sunday around 0:30",
    "weekly on saturday between 22:00 and 02:00",
    "hourly",
    "every 2h",
    "every 12 hours",
    "every 5 minutes",
    "every 59m",
    "every 2 days",
    "every 31 days",
    "every 1 week",
    "bi-weekly",
    "tri-weekly",
];

fn each_cron(
    subject: &dyn Implementation,
    mut look: impl FnMut(&Cron) -> Result<(), String>,
) -> Result<usize, String> {
    let names: Vec<String> = names(50).collect();
    for phrase in PHRASES {
        let placeholder = subject
            .placeholder(phrase)
            .map_err(|code| format!("'{phrase}' must be understood, but is refused with {code}"))?;
        for name in &names {
            look(&Cron::of(subject, &placeholder, name)?)?;
        }
    }
    Ok(PHRASES.len() * names.len())
}

pub(super) fn five_fields(subject: &dyn Implementation) -> Outcome {
    let many = each_cron(subject, |cron| match cron.text.split(' ').count() {
        5 => Ok(()),
        _ => Err(cron.wrong("5 fields")),
    })?;
    Ok(format!("{many} generated expressions"))
}

pub(super) fn minute_field(subject: &dyn Implementation) -> Outcome {
    field(subject, 0, 0, 59, true)
}

pub(super) fn hour_field(subject: &dyn Implementation) -> Outcome {
    field(subject, 1, 0, 23, true)
}

pub(super) fn weekday_field(subject: &dyn Implementation) -> Outcome {
    field(subject, 4, 0, 6, false)
}

pub(super) fn month_fields(subject: &dyn Implementation) -> Outcome {
    field(subject, 2, 1, 31, true)?;
    field(subject, 3, 1, 12, true)
}

/// That a field is a value of its range, or `*`, or, where steps are allowed, one of these.
fn field(subject: &dyn Implementation, index: usize, min: u32, max: u32, steps: bool) -> Outcome {
    let many = each_cron(subject, |cron| {
        let text = cron.field(index)?;
        let number = |text: &str, min: u32| text.parse().is_ok_and(|value: u32| (min..=max).contains(&value));
        let is_step = steps && text.strip_prefix("*/").is_some_and(|step| number(step, 1));
        if text == "*" || number(text, min) || is_step {
            return Ok(());
        }
        Err(cron.wrong(&format!("a value from {min} to {max} in field {}", index + 1)))
    })?;
    Ok(format!("{many} generated expressions"))
}

pub(super) fn steps(subject: &dyn Implementation) -> Outcome {
    let mut many = 0;
    each_cron(subject, |cron| {
        for text in cron.text.split(' ').filter(|field| field.contains('/')) {
            let step = text.strip_prefix("*/").and_then(|step| step.parse().ok());
            if !step.is_some_and(|step: u32| (1..=59).contains(&step)) {
                return Err(cron.wrong("steps in the form */N"));
            }
            many += 1;
        }
        Ok(())
    })?;
    match many {
        0 => Err("no interval gave a step".into()),
        many => Ok(format!("{many} steps in generated expressions")),
    }
}
