//! What is asked: classes of expressions, random starts, and the cases that hurt.

use jiff::Timestamp;

/// Expressions that make a search do the same kind of work.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    pub(crate) expressions: &'static [&'static str],
    /// How many times faster than the fastest peer, in UTC and in a zone.
    pub(crate) goals: [Goal; 2],
}

/// A ratio to reach, and the name it has in the list of goals.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub(crate) name: &'static str,
    pub(crate) ratio: f64,
}

const fn goals(utc: f64, zone: f64) -> [Goal; 2] {
    [Goal { name: "G1", ratio: utc }, Goal { name: "G2", ratio: zone }]
}

/// Days of week go by name, because peers number them differently.
pub(crate) const CLASSES: [Class; 15] = [
    Class { name: "01-every-minute", expressions: &["* * * * *"], goals: goals(8.0, 20.0) },
    Class {
        name: "02-every-n-min",
        expressions: &["*/5 * * * *", "*/15 * * * *", "*/2 * * * *", "*/30 * * * *", "*/10 * * * *"],
        goals: goals(8.0, 20.0),
    },
    Class {
        name: "03-hourly",
        expressions: &["0 * * * *", "17 * * * *", "0 */2 * * *", "30 */6 * * *", "45 */3 * * *"],
        goals: goals(8.0, 20.0),
    },
    Class {
        name: "04-daily",
        expressions: &["0 0 * * *", "30 2 * * *", "0 12 * * *", "15 3 * * *", "45 23 * * *"],
        goals: goals(8.0, 20.0),
    },
    Class {
        name: "05-weekday",
        expressions: &["0 9 * * MON-FRI", "0 22 * * SUN", "30 6 * * MON,WED,FRI", "*/10 9-17 * * MON-FRI"],
        goals: goals(8.0, 20.0),
    },
    Class {
        name: "06-monthly",
        expressions: &["0 0 1 * *", "0 0 15 * *", "30 4 1,15 * *", "0 6 31 * *", "0 3 2-5 * *"],
        goals: goals(3.5, 6.0),
    },
    Class {
        name: "07-yearly",
        expressions: &["0 0 1 1 *", "0 0 25 12 *", "30 8 4 JUL *", "0 12 1 1,7 *", "0 0 31 10 *"],
        goals: goals(3.5, 6.0),
    },
    Class {
        name: "08-feb29",
        expressions: &["0 0 29 2 *", "30 12 29 FEB *", "15 6 29 2 *"],
        goals: goals(3.5, 6.0),
    },
    Class {
        name: "09-feb29-dow",
        expressions: &["0 0 29 2 MON", "0 12 29 2 FRI", "30 8 29 2 SUN"],
        goals: goals(3.5, 30.0),
    },
    Class {
        name: "10-last-dom",
        expressions: &["0 0 L * *", "30 18 L * *", "0 12 L 2,6,9 *", "15 8 L 1-6 *"],
        goals: goals(3.5, 13.0),
    },
    Class {
        name: "11-nearest-wd",
        expressions: &["0 9 15W * *", "0 0 1W * *", "30 6 30W * *", "0 12 10W 3,9 *"],
        goals: goals(3.5, 13.0),
    },
    Class {
        name: "12-nth-dow",
        expressions: &["0 9 * * MON#1", "0 2 * * SUN#2", "0 0 * * FRI#3", "30 7 * * TUE#5", "0 9 * 3 THU#4"],
        goals: goals(3.5, 13.0),
    },
    Class {
        name: "13-seconds",
        expressions: &["*/10 * * * * *", "30 */5 * * * *", "15 30 9 * * MON-FRI", "0,20,40 0 12 * * *"],
        goals: goals(3.5, 13.0),
    },
    Class {
        name: "14-dom-or-dow",
        expressions: &["0 0 13 * FRI", "0 0 1,15 * MON", "30 4 1-7 * SUN", "0 12 1 */3 WED"],
        goals: goals(3.5, 30.0),
    },
    Class {
        name: "15-steps-lists",
        expressions: &[
            "0,15,30,45 8-18 * * *",
            "5-55/10 */3 1-20/2 * *",
            "0 6,12,18 1,10,20 1-6 *",
            "1,2,3,5,8,13,21,34,55 0-23/4 * 2-11/3 *",
        ],
        goals: goals(3.5, 13.0),
    },
];

/// Where and when a search costs most.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) expression: &'static str,
    pub(crate) zone: Zone,
    pub(crate) start: &'static str,
}

pub(crate) const CASES: [Case; 11] = [
    case("gap", "30 2 * * *", Zone::NewYork, "2026-03-08T05:00:00Z"),
    case("fold, before", "30 1 * * *", Zone::NewYork, "2026-11-01T04:00:00Z"),
    case("fold, between", "30 1 * * *", Zone::NewYork, "2026-11-01T05:30:00Z"),
    case("fold, interval", "*/30 1 * * *", Zone::NewYork, "2026-11-01T05:45:00Z"),
    case("never", "0 0 30 2 *", Zone::Utc, "2026-01-01T00:00:00Z"),
    case("no more since 2006", "30 2 * 3 SUN#2", Zone::NewYork, "2026-01-01T00:00:00Z"),
    case("29 Feb over 2100", "0 0 29 2 *", Zone::Utc, "2096-03-01T00:00:00Z"),
    case("40 years, UTC", "0 0 * 2 MON#5", Zone::Utc, "2072-03-01T00:00:00Z"),
    case("40 years, zone", "0 0 * 2 MON#5", Zone::NewYork, "2072-03-01T00:00:00Z"),
    case("in a gap for 43 years", "0 0 * 3 SUNL", Zone::Scoresbysund, "1981-03-29T01:00:00Z"),
    case("in a gap for 17 years", "30 3 1 4 *", Zone::Baghdad, "1991-01-01T00:00:00Z"),
];

const fn case(name: &'static str, expression: &'static str, zone: Zone, start: &'static str) -> Case {
    Case { name, expression, zone, start }
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Zone {
    Utc,
    NewYork,
    Paris,
    /// Half an hour of daylight saving.
    LordHowe,
    /// None.
    Kolkata,
    /// Only for [`CASES`].
    Baghdad,
    /// Only for [`CASES`].
    Scoresbysund,
}

impl Zone {
    pub(crate) fn by_name(name: &str) -> Option<Zone> {
        let rest = [Zone::Baghdad, Zone::Scoresbysund];
        Zone::ALL.into_iter().chain(rest).find(|zone| zone.name() == name)
    }

    pub(crate) const ALL: [Zone; 5] = [Zone::Utc, Zone::NewYork, Zone::Paris, Zone::LordHowe, Zone::Kolkata];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Zone::Utc => "UTC",
            Zone::NewYork => "America/New_York",
            Zone::Paris => "Europe/Paris",
            Zone::LordHowe => "Australia/Lord_Howe",
            Zone::Kolkata => "Asia/Kolkata",
            Zone::Baghdad => "Asia/Baghdad",
            Zone::Scoresbysund => "America/Scoresbysund",
        }
    }
}

/// Seconds of Unix time, drawn from 2020 to 2040, the same in each run.
pub(crate) fn random_starts(count: usize) -> Vec<i64> {
    let second = |at: &str| at.parse::<Timestamp>().expect("an instant").as_second();
    let (begin, end) = (second("2020-01-01T00:00:00Z"), second("2040-01-01T00:00:00Z"));
    let mut state: u64 = 0x006b_726f_6e00;
    let mut draw = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).cast_signed()
    };
    (0..count).map(|_| begin + draw().rem_euclid(end - begin)).collect()
}
