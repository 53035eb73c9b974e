//! The jobs of a world: lines of a krontab, and what they mean, told without Kron.
//!
//! Schedules are simple enough to be enumerated by a remainder: every so many seconds, from an offset. The
//! checker judges by this file alone and never asks kron-schedule when something is due.

use std::fmt::Write as _;

use crate::rng::Rng;

/// Where the krontab of every world is.
pub(crate) const FILE: &str = "/etc/krond.d/sim";

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Line {
    pub(crate) job: usize,
    /// Counts the edits of all jobs. It is written into the line, so that what is said of the job can be judged
    /// by the line it was said about.
    pub(crate) version: usize,
    pub(crate) every: i64,
    pub(crate) offset: i64,
    /// Where it is a list of times of the day, each of which counts once; `None` for an interval, in UTC.
    pub(crate) zone: Option<Zone>,
    pub(crate) around: bool,
    pub(crate) window: i64,
    pub(crate) deadline: i64,
    pub(crate) overlap: Overlap,
    /// The hours that may be chosen, both ends included.
    pub(crate) hours: Option<(i64, i64)>,
    pub(crate) timeout: Option<i64>,
    pub(crate) suspend: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Overlap {
    Allow,
    Forbid,
    Replace,
}

/// Zones whose clocks never change, a quarter of an hour apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Zone {
    Kolkata,
    Kathmandu,
}

impl Zone {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Zone::Kolkata => "Asia/Kolkata",
            Zone::Kathmandu => "Asia/Kathmandu",
        }
    }

    /// How far its clocks are ahead of UTC, in seconds.
    pub(crate) fn offset(self) -> i64 {
        match self {
            Zone::Kolkata => 19_800,
            Zone::Kathmandu => 20_700,
        }
    }

    fn other(self) -> Zone {
        match self {
            Zone::Kolkata => Zone::Kathmandu,
            Zone::Kathmandu => Zone::Kolkata,
        }
    }
}

/// The longest that a job in Kolkata waits for clocks to show more than they did in Kathmandu, in seconds.
pub(crate) const ZONES_APART: i64 = 900;

impl Line {
    pub(crate) fn random(job: usize, version: usize, rng: &mut Rng) -> Line {
        let every = *rng
            .pick(&[60, 60, 60, 60, 60, 60, 120, 120, 300, 300, 600, 30, 30, 30, 20, 20, 10, 10, 900, 3_600]);
        let offset = match every {
            3_600 => 60 * rng.between(0, 59),
            _ => 0,
        };
        let window = match rng.below(10) {
            0..=3 => 0,
            4 | 5 => 2 * rng.between(1, 30),
            6 | 7 => 2 * rng.between(1, every / 2),
            _ => 2 * rng.between(every / 2, every * 2),
        };
        // Long ones would let worlds live for hours in peace, which proves little.
        let window = window.min(900);
        Line {
            job,
            version,
            every,
            offset,
            zone: (every >= 60 && rng.chance(500)).then(|| *rng.pick(&[Zone::Kolkata, Zone::Kathmandu])),
            around: rng.chance(400),
            window,
            deadline: *rng.pick(&[0, 0, 1, 5, 30, 60, 90, 300, 600, 3_600]),
            overlap: *rng.pick(&[Overlap::Forbid, Overlap::Forbid, Overlap::Allow, Overlap::Replace]),
            hours: rng.chance(80).then(|| {
                let first = rng.between(0, 22);
                (first, rng.between(first, 23))
            }),
            timeout: rng.chance(150).then(|| rng.between(1, 90)),
            suspend: rng.chance(20),
        }
    }

    /// The line after an edit: something about it is different.
    pub(crate) fn edited(&self, version: usize, rng: &mut Rng) -> Line {
        let other = Line::random(self.job, version, rng);
        let line = Line { version, ..self.clone() };
        // Another zone is what not every line can have, and so what those that can have most often.
        match rng.below(if self.zone.is_some() { 12 } else { 6 }) {
            0 => Line {
                every: other.every,
                offset: other.offset,
                zone: other.zone,
                window: other.window,
                ..line
            },
            1 => Line { window: other.window.min(2 * self.every), around: other.around, ..line },
            2 => Line { overlap: other.overlap, ..line },
            3 => Line { deadline: other.deadline, ..line },
            4 => Line { suspend: !self.suspend, ..line },
            5 => other,
            _ => Line { zone: self.zone.map(Zone::other), ..line },
        }
    }

    /// As a krontab has it.
    pub(crate) fn text(&self) -> String {
        let Line { job, version, every, offset, window, deadline, .. } = self;
        let mut text = match (every, self.zone) {
            (3_600, Some(_)) => format!("{} 0-23 * * *", offset / 60),
            (_, Some(_)) => format!("0-59/{} 0-23 * * *", every / 60),
            (60, None) => "* * * * *".to_owned(),
            (3_600, None) => format!("{} * * * *", offset / 60),
            (120 | 300 | 600 | 900, None) => format!("*/{} * * * *", every / 60),
            (_, None) => format!("@every {every}s"),
        };
        let overlap = match self.overlap {
            Overlap::Allow => "allow",
            Overlap::Forbid => "forbid",
            Overlap::Replace => "replace",
        };
        let mode = if self.around { "around" } else { "after" };
        let mut add = |part: &str| write!(text, " {part}").expect("a text takes everything");
        if let Some(zone) = self.zone {
            add(&format!("@tz({})", zone.name()));
        }
        if *window > 0 {
            add(&format!("@win({mode},{window}s)"));
        }
        let suspend = self.suspend;
        add(&format!("@policy(concurrency={overlap},deadline={deadline}s,suspend={suspend})"));
        if let Some((first, last)) = self.hours {
            add(&format!("@only(hours={first}-{last})"));
        }
        add(&format!("name=j{job} command=/bin/j{job} description=v{version}"));
        if let Some(timeout) = self.timeout {
            add(&format!("timeout={timeout}s"));
        }
        text
    }

    /// The first and the last second that may be chosen for a period.
    pub(crate) fn bounds(&self, nominal: i64) -> (i64, i64) {
        if self.around {
            (nominal - self.window / 2, nominal + self.window / 2)
        } else {
            (nominal, nominal + self.window)
        }
    }

    pub(crate) fn is_period(&self, nominal: i64) -> bool {
        (nominal - self.phase()).rem_euclid(self.every) == 0
    }

    /// What clocks show then, as a second of a day that began in 1970; `None` for a line that looks at none.
    pub(crate) fn civil(&self, second: i64) -> Option<i64> {
        (self.every >= 60).then(|| second + self.zone.map_or(0, Zone::offset))
    }

    /// The second that its periods are counted from.
    fn phase(&self) -> i64 {
        self.offset - self.zone.map_or(0, Zone::offset)
    }

    /// The periods after one second and up to another.
    pub(crate) fn periods(&self, after: i64, last: i64) -> impl Iterator<Item = i64> + use<> {
        let first = after + self.every - (after - self.phase()).rem_euclid(self.every);
        (first..=last).step_by(usize::try_from(self.every).expect("above zero"))
    }

    /// Whether a second satisfies the constraint.
    pub(crate) fn allows(&self, second: i64) -> bool {
        let local = second + self.zone.map_or(0, Zone::offset);
        let hour = local.div_euclid(3_600).rem_euclid(24);
        self.hours.is_none_or(|(first, last)| (first..=last).contains(&hour))
    }
}

/// The name of a job in that file.
pub(crate) fn identity(job: usize) -> String {
    format!("{FILE}:j{job}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_what_the_line_says() {
        let mut line = Line::random(0, 0, &mut Rng::new(1));
        line.every = 3_600;
        line.offset = 600;
        line.zone = None;
        assert_eq!(line.periods(600, 7_800).collect::<Vec<_>>(), [4_200, 7_800]);
        assert_eq!(line.periods(599, 4_199).collect::<Vec<_>>(), [600]);
        assert!(line.is_period(-3_000) && !line.is_period(0));
        // Ten past every hour in Kathmandu is 25 minutes past it in UTC.
        line.zone = Some(Zone::Kathmandu);
        assert!(line.is_period(1_500) && !line.is_period(600));
        assert_eq!(line.civil(1_500), Some(22_200));
    }

    #[test]
    fn krontab_reads_every_line() {
        let mut rng = Rng::new(2);
        let source = krontab::Source::new(FILE).unwrap();
        for version in 0..500 {
            let line = Line::random(3, version, &mut rng).edited(version, &mut rng);
            let parsed = krontab::Krontab::parse(&line.text(), &source, &krontab::Zones::bundled());
            assert!(!parsed.has_errors(), "{}: {:?}", line.text(), parsed.problems);
            assert_eq!(parsed.entries[0].identity(), identity(3));
        }
    }
}
