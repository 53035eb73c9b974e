//! Do the promises hold in long, random histories?
//!
//! A history is a job drawn from a seed and a few hundred things that happen to it: time passes, Kron
//! is off for a while, clocks are set, runs end, the job is suspended and edited. `Story` checks the
//! promises at every step. Here the whole is compared with a model that knows nothing of watermarks:
//! it lists the periods one by one. `KRON_SEED=n` plays one history alone, `KRON_HISTORIES=n` so many.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kron_core::story::Story;
use kron_core::{Ledger, Overlap, PeriodId, WindowMode, decide};

/// `SplitMix64`, so that a seed means the same next year.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

const LINES: [&str; 7] =
    ["* * * * *", "*/5 * * * *", "7 * * * *", "0 */3 * * *", "@every 90s", "*/20 * * * * *", "0 0 * * 1"];

fn job(random: &mut Random) -> Story {
    let mode = random.pick(&[WindowMode::After, WindowMode::Around, WindowMode::Before]);
    let story = Story::at("2026-03-02T10:00:07Z", random.pick(&LINES))
        .window(mode, random.pick(&["0s", "0s", "45s", "3m", "17m", "2h"]))
        .deadline(random.pick(&["0s", "0s", "1s", "30s", "10m", "6h", "none"]))
        .overlap(random.pick(&[Overlap::Allow, Overlap::Forbid, Overlap::Queue, Overlap::Replace]));
    match random.below(3) {
        0 => story,
        _ => story.remembering(Ledger::fenced("2026-03-02T10:00:00Z".parse().unwrap())),
    }
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    match number("KRON_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("KRON_HISTORIES").unwrap_or(count),
    }
}

/// Anything happens, in any order. The story itself is the judge.
#[test]
fn nothing_that_happens_breaks_a_promise() {
    for seed in seeds(400) {
        println!("KRON_SEED={seed}");
        let mut random = Random(seed);
        let mut story = job(&mut random);
        let mut now: Timestamp = "2026-03-02T10:00:07Z".parse().unwrap();
        for _ in 0..40 {
            let seconds = random.pick(&[0, 1, 20, 60, 100, 700, 3_600, 20_000]) + random.below(60) as i64;
            let later = now + SignedDuration::from_secs(seconds);
            match random.below(12) {
                0..=4 => {
                    story.until(&later.to_string());
                    now = later;
                }
                5 => {
                    // Off for up to two years: as cheap as a minute.
                    let later = now + SignedDuration::from_secs(seconds * random.pick(&[1, 10, 3_000]));
                    story.off_until(&later.to_string());
                    now = later;
                }
                6 => {
                    now -= SignedDuration::from_secs(seconds);
                    story.clock(&now.to_string());
                }
                7 => {
                    story.suspend().until(&later.to_string()).resume();
                    now = later;
                }
                8 => drop(story.edit(random.pick(&LINES))),
                9 => drop(story.set_window(WindowMode::Around, random.pick(&["0s", "1m", "20m"]))),
                10 => drop(story.set_deadline(random.pick(&["0s", "5m", "none"]))),
                _ => story.end_all(),
            }
            if random.below(2) == 0 {
                story.end_all();
            }
        }
    }
}

/// While Kron watches and runs may overlap, every period starts exactly once, at its chosen time.
#[test]
fn whoever_watches_all_the_time_starts_every_period_on_time() {
    for seed in seeds(150) {
        println!("KRON_SEED={seed}");
        let mut random = Random(seed);
        let begin: Timestamp = "2026-03-02T10:00:07Z".parse().unwrap();
        let end = begin + SignedDuration::from_secs(6 * 3_600);
        let mut story = job(&mut random)
            .overlap(Overlap::Allow)
            .remembering(Ledger::fenced("2026-03-02T09:00:00Z".parse().unwrap()));
        story.until(&end.to_string());
        let seen: BTreeMap<PeriodId, Timestamp> = story.starts().collect();

        let job = story.job();
        let first = "2026-03-02T09:00:00Z".parse().unwrap();
        let last = end + SignedDuration::from_hours(2);
        let expected: BTreeMap<PeriodId, Timestamp> = job
            .schedule()
            .occurrences_after(first)
            .take_while(|nominal| *nominal <= last)
            .map(|nominal| decide(&job, nominal))
            .map(|decision| (decision.period_id(), decision.chosen().unwrap()))
            .filter(|(_, chosen)| (begin..=end).contains(chosen))
            .collect();
        let watched: BTreeMap<PeriodId, Timestamp> =
            seen.iter().filter(|(id, _)| expected.contains_key(id)).map(|(id, at)| (*id, *at)).collect();
        assert_eq!(watched, expected, "KRON_SEED={seed}");
        // Beside these there can only be the one catch-up for what came due before anybody looked.
        assert!(seen.len() <= watched.len() + 1, "KRON_SEED={seed}");
    }
}
