//! A timer unit of systemd.

use super::Found;
use super::calendar;
use super::crontab::BOTH_DAYS;
use super::draft::{Draft, Lateness, Run, When};
use super::firing::Rule;
use crate::cli::load::STDIN;

/// Reads a timer. `name` is that of its file, without `.timer`.
pub(crate) fn read(text: &str, name: &str, host_zone: &str) -> Vec<Found> {
    let unit = Unit::read(text);
    let mut found = Vec::new();
    let whole = |outcome| vec![Found { line: 1, text: format!("{name}.timer"), outcome }];
    if name.ends_with('@') {
        let reason = "it is a template: systemd runs its instances, each with a name after the `@`; copy the file to one of \
             those names and import that";
        return whole(Err(reason.to_owned()));
    }
    for Setting { line, key, value, .. } in unit.settings.iter().filter(|setting| setting.section == "Timer")
    {
        let text = format!("{key}={value}");
        let outcome = match key.as_str() {
            "OnCalendar" => entry(value, name, host_zone, &unit),
            _ if key.starts_with("On") && key.ends_with("Sec") => Err(relative(key, value)),
            "OnClockChange" | "OnTimezoneChange" if is_true(value) => {
                Err(format!("`{key}` is an event, and Kron knows only times"))
            }
            _ => continue,
        };
        found.push(Found { line: *line, text, outcome });
    }
    if found.is_empty() {
        return whole(Err("expected `OnCalendar=` in a section [Timer], but there is none".to_owned()));
    }
    found
}

/// Why a time that counts from something else is none of Kron's.
fn relative(key: &str, value: &str) -> String {
    let every = match seconds(value) {
        Some(seconds) if seconds > 0 => {
            format!("; `@every {}` counts from 1970", kron_schedule::Duration::from_seconds(seconds))
        }
        _ => String::new(),
    };
    format!(
        "`{key}` counts from the start of the system or of a unit, and Kron's times follow from the file alone{every}"
    )
}

fn entry(value: &str, name: &str, host_zone: &str, unit: &Unit) -> Result<Draft, String> {
    let (fields, zone) = calendar::read(value)?;
    let mut notes = Vec::new();
    if fields.needs_both_days() {
        notes.push(BOTH_DAYS.to_owned());
    }
    let window = match unit.last("RandomizedDelaySec") {
        Some(delay) => Some(
            seconds(delay)
                .ok_or_else(|| format!("expected a time span, but found `{delay}` for RandomizedDelaySec"))?,
        ),
        None => None,
    }
    .filter(|window| *window > 0);
    if window.is_some() && !unit.is_set("FixedRandomDelay") {
        notes.push("systemd draws another delay every time; here each run has its own, and it can be shown beforehand".to_owned());
    }
    match unit.last("AccuracySec").map_or(Some(60), seconds) {
        Some(accuracy) if accuracy > 1 && window.is_none() => notes.push(format!(
            "systemd may start it up to {} later, together with others (AccuracySec); here it starts in its second",
            kron_schedule::Duration::from_seconds(accuracy)
        )),
        _ => {}
    }
    let persistent = unit.is_set("Persistent");
    if persistent {
        notes.push(
            "a run that was missed is made up for until the next is due, as `Persistent=true` does"
                .to_owned(),
        );
    }
    for key in ["WakeSystem", "RemainAfterElapse"] {
        if unit.last(key).is_some_and(|value| is_true(value) == (key == "WakeSystem")) {
            notes.push(format!("`{key}={}` is not brought along", unit.last(key).unwrap_or_default()));
        }
    }
    let conditions = unit
        .settings
        .iter()
        .filter(|setting| setting.key.starts_with("Condition") || setting.key.starts_with("Assert"));
    let conditions: Vec<&str> = conditions.map(|setting| setting.key.as_str()).collect();
    if !conditions.is_empty() {
        notes.push(format!("not looked at: {} of the timer", conditions.join(", ")));
    }
    let service = match unit.last("Unit") {
        Some(service) => service.to_owned(),
        // Standard input has no name, and a timer starts the service that is named as it is.
        None if name == STDIN => {
            return Err(
                "a timer starts the service of its own name, and standard input has none: write `Unit=`, or \
                 import the file"
                    .to_owned(),
            );
        }
        None => format!("{name}.service"),
    };
    Ok(Draft {
        name: name.to_owned(),
        when: When::Calendar(fields),
        zone: zone.unwrap_or_else(|| host_zone.to_owned()),
        rule: Rule::Systemd,
        window,
        lateness: if persistent { Lateness::UntilNext } else { Lateness::None },
        concurrency: "forbid",
        suspend: false,
        // The unit stays what it is: its sandbox, its user and its log.
        run: Run::Argv(["/usr/bin/systemctl", "start", "--wait", &service].map(str::to_owned).into()),
        user: None,
        cwd: None,
        environment: Vec::new(),
        description: unit.description(),
        notes,
    })
}

/// The settings of a unit, in order.
struct Unit {
    settings: Vec<Setting>,
}

struct Setting {
    line: usize,
    section: String,
    key: String,
    value: String,
}

impl Unit {
    fn read(text: &str) -> Unit {
        let (mut section, mut settings) = (String::new(), Vec::<Setting>::new());
        let mut goes_on = false;
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if goes_on {
                let last: Option<&mut Setting> = settings.last_mut();
                goes_on = line.ends_with('\\');
                if let Some(last) = last {
                    last.value = format!("{} {}", last.value, line.trim_end_matches('\\').trim());
                }
                continue;
            }
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                name.clone_into(&mut section);
            } else if let Some((key, value)) = line.split_once('=') {
                goes_on = value.ends_with('\\');
                let (key, value) = (key.trim().to_owned(), value.trim_end_matches('\\').trim().to_owned());
                // An empty value takes back what was said before.
                if value.is_empty() {
                    settings.retain(|setting| setting.section != section || setting.key != key);
                } else {
                    settings.push(Setting { line: number, section: section.clone(), key, value });
                }
            }
        }
        Unit { settings }
    }

    /// The value that counts, of a key in [Timer].
    fn last(&self, key: &str) -> Option<&str> {
        let mut all = self.settings.iter().filter(|setting| setting.section == "Timer" && setting.key == key);
        all.next_back().map(|setting| setting.value.as_str())
    }

    fn is_set(&self, key: &str) -> bool {
        self.last(key).is_some_and(is_true)
    }

    fn description(&self) -> Option<String> {
        let found = self.settings.iter().find(|setting| setting.key == "Description");
        found.map(|setting| setting.value.clone())
    }
}

fn is_true(value: &str) -> bool {
    ["1", "yes", "y", "true", "t", "on"].iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// A time span of systemd in whole seconds: `60`, `12h`, `1h 30min`. Less than a second is none.
fn seconds(text: &str) -> Option<i64> {
    let (mut total, mut rest) = (0_i64, text.trim());
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: i64 = rest.get(..digits)?.parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "" | "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hr" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 604_800,
            "us" | "usec" | "ms" | "msec" => 0,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = rest[letters..].trim_start();
    }
    Some(total).filter(|total| *total <= 366 * 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_are_added_up() {
        for (text, expected) in [
            ("60", Some(60)),
            ("60m", Some(3_600)),
            ("12h", Some(43_200)),
            ("1h 30min", Some(5_400)),
            ("500ms", Some(0)),
            ("soon", None),
            ("9999999999999999999", None),
            ("99999w", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_answer(text in "[ -~\né]{0,120}", calendar in "[a-zA-Z0-9*:/.,~ é-]{0,24}") {
            let _ = read(&text, "x", "UTC");
            let _ = seconds(&text);
            let text = format!("[Timer]\nOnCalendar={calendar}\n");
            proptest::prop_assert!(!read(&text, "x", "UTC").is_empty());
        }
    }

    #[test]
    fn a_timer_becomes_a_line_for_each_calendar() {
        let text = "[Unit]\nDescription=x\n[Timer]\nOnCalendar=daily\nOnCalendar=\nOnCalendar=weekly\nOnCalendar=Fri 1:00\nOnBootSec=5min\nPersistent=yes\n";
        let found = read(text, "x", "UTC");
        let lines: Vec<Result<String, String>> =
            found.into_iter().map(|found| found.outcome.map(|draft| draft.line("x", Some(86_400)))).collect();
        let expected = "@policy(deadline=24h) name=x command=\"/usr/bin/systemctl start --wait x.service\" description=x";
        assert_eq!(lines[0].as_deref(), Ok(&*format!("0 0 * * MON {expected}")));
        assert_eq!(lines[1].as_deref(), Ok(&*format!("0 1 * * FRI {expected}")));
        assert!(lines[2].as_ref().unwrap_err().contains("`OnBootSec` counts from the start"));
        assert!(read("[Timer]\n", "x", "UTC")[0].outcome.is_err());
        assert!(read(text, "-", "UTC")[0].outcome.as_ref().unwrap_err().contains("standard input"));
        assert!(read(text, "x@", "UTC")[0].outcome.as_ref().unwrap_err().contains("template"));
    }
}
