//! The specification's own list of tests (its section 9), run against this implementation.
//!
//! ```
//! use kron_schedule::fuzzy::conformance::{level, report};
//!
//! let results = report();
//! assert_eq!(results.len(), 56);
//! assert!(results.iter().all(|result| result.passed));
//! assert_eq!(level(&results), Some(3));
//! ```
//!
//! Where the specification contradicts itself or is silent, the expectations are Kron's reading: the
//! weekday moves when an offset or a window crosses midnight, and uniqueness, which no hash can
//! give, is tested by counting.

mod scattering;
mod table;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::extensions::Extensions;
use super::phrase::Phrase;
use super::placeholder::Placeholder;
use super::scatter::fnv1a;

/// How one test of the list came out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TestResult {
    /// The test's name, such as `T-SYNTAX-001`.
    pub id: &'static str,
    /// What is tested, in the words of the specification.
    pub title: &'static str,
    /// The level that requires it, from 1 to 3.
    pub level: u8,
    /// Whether it passed.
    pub passed: bool,
    /// What was looked at or, if it failed, what was wrong.
    pub detail: String,
}

/// Runs all tests, in the order of the specification.
#[must_use]
pub fn report() -> Vec<TestResult> {
    run(&Kron)
}

/// The level that the results allow to claim: the highest of which, and of those below, all tests
/// passed. Nothing if not even the first one did.
#[must_use]
pub fn level(results: &[TestResult]) -> Option<u8> {
    let holds = |level: &u8| {
        results.iter().any(|result| result.level == *level)
            && results.iter().filter(|result| result.level <= *level).all(|result| result.passed)
    };
    (1..=3).take_while(holds).last()
}

/// What is tested. Tests replace it to see that the list finds what is wrong.
trait Implementation {
    /// The placeholder of a phrase, or the code of the error.
    fn placeholder(&self, phrase: &str) -> Result<String, String>;
    /// The cron expression of a placeholder for an identifier, or the code of the error.
    fn cron(&self, placeholder: &str, identifier: &str) -> Result<String, String>;
    fn hash(&self, text: &str) -> u32;
}

struct Kron;

impl Implementation for Kron {
    fn placeholder(&self, phrase: &str) -> Result<String, String> {
        match Phrase::parse(phrase, Extensions::Off) {
            Ok(phrase) => Ok(phrase.placeholder().to_string()),
            Err(error) => Err(error.code().to_string()),
        }
    }

    fn cron(&self, placeholder: &str, identifier: &str) -> Result<String, String> {
        let scattered = placeholder.parse().and_then(|found: Placeholder| found.scatter(identifier));
        scattered.map(|scattered| scattered.to_string()).map_err(|error| error.code().to_string())
    }

    fn hash(&self, text: &str) -> u32 {
        fnv1a(text.as_bytes())
    }
}

/// One test of the list.
struct Test {
    id: &'static str,
    title: &'static str,
    level: u8,
    check: Check,
}

enum Check {
    /// Phrases and the placeholders they must give.
    Gives(&'static [(&'static str, &'static str)]),
    /// Phrases that must be refused, and the code.
    Refuses(&'static [(&'static str, &'static str)]),
    /// Anything else: what was looked at, or what is wrong.
    Holds(fn(&dyn Implementation) -> Result<String, String>),
}

fn run(subject: &dyn Implementation) -> Vec<TestResult> {
    table::TESTS
        .iter()
        .map(|Test { id, title, level, check }| {
            let outcome = match check {
                Check::Gives(rows) => gives(subject, rows),
                Check::Refuses(rows) => refuses(subject, rows),
                Check::Holds(check) => check(subject),
            };
            let passed = outcome.is_ok();
            let (Ok(detail) | Err(detail)) = outcome;
            TestResult { id, title, level: *level, passed, detail }
        })
        .collect()
}

fn gives(subject: &dyn Implementation, rows: &[(&str, &str)]) -> Result<String, String> {
    for (phrase, expected) in rows {
        match subject.placeholder(phrase) {
            Ok(found) if found == *expected => {}
            Ok(found) | Err(found) => {
                return Err(format!("'{phrase}' must give '{expected}', but gives '{found}'"));
            }
        }
    }
    let [(phrase, placeholder), ..] = rows else { return Err("there is nothing to test".into()) };
    Ok(match rows.len() {
        1 => format!("'{phrase}' gives '{placeholder}'"),
        many => format!("{many} phrases, such as '{phrase}', which gives '{placeholder}'"),
    })
}

fn refuses(subject: &dyn Implementation, rows: &[(&str, &str)]) -> Result<String, String> {
    for (phrase, code) in rows {
        match subject.placeholder(phrase) {
            Err(found) if found == *code => {}
            Ok(found) | Err(found) => {
                return Err(format!("'{phrase}' must be refused with {code}, but gives '{found}'"));
            }
        }
    }
    let [(phrase, code), ..] = rows else { return Err("there is nothing to test".into()) };
    Ok(match rows.len() {
        1 => format!("'{phrase}' is refused with {code}"),
        many => format!("{many} phrases, such as '{phrase}', which is refused with {code}"),
    })
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    fn failures(subject: &dyn Implementation) -> Vec<&'static str> {
        run(subject).iter().filter(|result| !result.passed).map(|result| result.id).collect()
    }

    #[test]
    fn kron_passes_all_56_and_so_level_3() {
        let results = report();
        let failed: Vec<_> = results.iter().filter(|result| !result.passed).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert_eq!(results.len(), 56);
        assert_eq!(level(&results), Some(3));
        let mut ids: Vec<_> = results.iter().map(|result| result.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 56);
    }

    /// Whatever Kron does, it does not.
    struct Contrary(Cell<u32>);

    impl Implementation for Contrary {
        fn placeholder(&self, phrase: &str) -> Result<String, String> {
            match Kron.placeholder(phrase) {
                Ok(_) => Err("ERR-SYNTAX-001".into()),
                Err(_) => Ok("FUZZY:DAILY * * *".into()),
            }
        }

        fn cron(&self, _: &str, _: &str) -> Result<String, String> {
            Err("ERR-PLACEHOLDER-001".into())
        }

        fn hash(&self, _: &str) -> u32 {
            self.0.set(1 - self.0.get());
            self.0.get()
        }
    }

    #[test]
    fn every_test_can_fail() {
        let results = run(&Contrary(Cell::new(0)));
        let passed: Vec<_> = results.iter().filter(|result| result.passed).collect();
        assert!(passed.is_empty(), "{passed:#?}");
        assert_eq!(level(&results), None);
    }

    /// Kron with one mistake, a real one where others have been seen to make it.
    struct Mutant {
        placeholder: fn(&str) -> Result<String, String>,
        cron: fn(&str, &str) -> Result<String, String>,
        hash: fn(&str) -> u32,
    }

    impl Implementation for Mutant {
        fn placeholder(&self, phrase: &str) -> Result<String, String> {
            (self.placeholder)(phrase)
        }

        fn cron(&self, placeholder: &str, identifier: &str) -> Result<String, String> {
            (self.cron)(placeholder, identifier)
        }

        fn hash(&self, text: &str) -> u32 {
            (self.hash)(text)
        }
    }

    const SOUND: Mutant = Mutant {
        placeholder: |phrase| Kron.placeholder(phrase),
        cron: |placeholder, identifier| Kron.cron(placeholder, identifier),
        hash: |text| Kron.hash(text),
    };

    #[test]
    fn a_mistake_fails_its_own_tests() {
        assert_eq!(failures(&SOUND), [""; 0]);

        let bad_times_are_midnight = |phrase: &str| match Kron.placeholder(phrase) {
            Err(code) if code == "ERR-SYNTAX-002" => Ok("FUZZY:DAILY_AROUND:0:0 * * *".to_string()),
            other => other,
        };
        let mutant = Mutant { placeholder: bad_times_are_midnight, ..SOUND };
        assert_eq!(failures(&mutant), ["T-TIME-008", "T-TIME-009"]);
        assert_eq!(level(&run(&mutant)), Some(1));

        let any_offset = |phrase: &str| match Kron.placeholder(phrase) {
            Err(code) if code == "ERR-TZ-001" => Ok("FUZZY:DAILY_AROUND:0:0 * * *".to_string()),
            other => other,
        };
        let mutant = Mutant { placeholder: any_offset, ..SOUND };
        assert_eq!(failures(&mutant), ["T-TZ-008"]);
        assert_eq!(level(&run(&mutant)), Some(2));

        let lower_case_only = |phrase: &str| {
            let is_lower = phrase.to_ascii_lowercase() == phrase;
            if is_lower { Kron.placeholder(phrase) } else { Err("ERR-SYNTAX-001".into()) }
        };
        assert_eq!(failures(&Mutant { placeholder: lower_case_only, ..SOUND }), ["T-SYNTAX-007"]);
        assert_eq!(level(&run(&Mutant { placeholder: lower_case_only, ..SOUND })), None);

        // The weekday stays where it is when the window goes past midnight.
        let weekday_stays = |placeholder: &str, identifier: &str| {
            let cron = Kron.cron(placeholder, identifier)?;
            let asked = placeholder
                .strip_prefix("FUZZY:WEEKLY:")
                .and_then(|rest| rest.get(..1))
                .filter(|day| *day != "A" && *day != "B");
            match (cron.rsplit_once(' '), asked) {
                (Some((fields, _)), Some(weekday)) => Ok(format!("{fields} {weekday}")),
                _ => Ok(cron),
            }
        };
        assert_eq!(failures(&Mutant { cron: weekday_stays, ..SOUND }), ["T-SCATTER-007"]);

        // The end of the window is included, or its start left out.
        let one_late = |placeholder: &str, identifier: &str| {
            let cron = Kron.cron(placeholder, identifier)?;
            let mut fields: Vec<String> = cron.split(' ').map(ToString::to_string).collect();
            if placeholder.contains("AROUND")
                && let Ok(minute) = fields[0].parse::<u32>()
                && minute < 59
            {
                fields[0] = (minute + 1).to_string();
            }
            Ok(fields.join(" "))
        };
        assert_eq!(failures(&Mutant { cron: one_late, ..SOUND }), ["T-SCATTER-005", "T-SCATTER-010"]);

        let mutant = Mutant { hash: |text| Kron.hash(text) % 60, ..SOUND };
        assert_eq!(failures(&mutant), ["T-SCATTER-002"]);

        let six_fields = |placeholder: &str, identifier: &str| {
            Kron.cron(placeholder, identifier).map(|cron| format!("{cron} *"))
        };
        assert!(failures(&Mutant { cron: six_fields, ..SOUND }).contains(&"T-CRON-001"));

        // A sum of the characters instead of a hash, as has been seen.
        let sum = |text: &str| text.bytes().map(u32::from).sum();
        assert!(failures(&Mutant { hash: sum, ..SOUND }).contains(&"T-SCATTER-002"));
    }
}
