//! Phrases: the golden tables, the wording, and what must hold for any phrase, text and identifier.

use std::fmt::Write;

use jiff::Timestamp;
use kron_schedule::fuzzy::{
    ALGORITHM, ClusterKind, Extensions, FuzzyError, FuzzyWarningKind, Phrase, Placeholder, Scattered,
    clusters, identifier,
};
use kron_schedule::{Dst, Zone};

use crate::generator::{Random, seed};

/// `phrase | placeholder or codes | kinds of warnings`.
const PHRASES: &str = include_str!("data/fuzzy.txt");
/// `placeholder | identifier | cron`.
const SCATTERED: &str = include_str!("data/fuzzy_scatter.txt");
/// `> phrase`, or `+ phrase` with extensions, and below it the error or the warnings.
const ERRORS: &str = include_str!("data/fuzzy_errors.txt");
const WARNINGS: &str = include_str!("data/fuzzy_warnings.txt");

fn rows(table: &str) -> impl Iterator<Item = [&str; 3]> {
    table.lines().filter(|row| !row.is_empty() && !row.starts_with('#')).map(|row| {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        columns.try_into().unwrap_or_else(|_| panic!("three columns: {row}"))
    })
}

/// A phrase of a table, and whether it has a `+` before it.
fn marked(text: &str) -> (&str, Extensions) {
    match text.strip_prefix("+ ") {
        Some(phrase) => (phrase.trim_start(), Extensions::On),
        None => (text, Extensions::Off),
    }
}

fn codes(error: &FuzzyError) -> String {
    match error.cause() {
        None => error.code().to_string(),
        Some(cause) => format!("{} {cause}", error.code()),
    }
}

#[test]
fn phrases_are_as_written_down() {
    let mut wrong = String::new();
    for [text, outcome, warnings] in rows(PHRASES) {
        let (text, extensions) = marked(text);
        let (found, kinds) = match Phrase::parse(text, extensions) {
            Ok(phrase) => {
                let kinds: Vec<&str> =
                    phrase.warnings().iter().map(|warning| warning.kind().name()).collect();
                (phrase.placeholder().to_string(), kinds.join(" "))
            }
            Err(error) => (codes(&error), String::new()),
        };
        if found != outcome || kinds != warnings {
            writeln!(wrong, "{text}\n  golden: {outcome} | {warnings}\n  found:  {found} | {kinds}").unwrap();
        }
        if extensions == Extensions::Off
            && let Ok(phrase) = Phrase::parse(text, Extensions::Off)
        {
            assert_eq!(Phrase::parse(text, Extensions::On).as_ref(), Ok(&phrase), "{text}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn times_are_as_computed_elsewhere() {
    assert_eq!(ALGORITHM, "fuzzy-1.1/fnv1a32");
    for [placeholder, identifier, cron] in rows(SCATTERED) {
        let placeholder: Placeholder = placeholder.parse().unwrap_or_else(|error| panic!("{error}"));
        let scattered = placeholder.scatter(identifier).unwrap();
        let found = match scattered {
            Scattered::EveryDays(days) => format!("{days}, phase {}", days.phase()),
            Scattered::Cron(cron) => cron.text().to_string(),
        };
        assert_eq!(found, cron, "{placeholder} of {identifier}");
    }
}

/// The blocks of a file of messages: the phrase, whether it has extensions, and what is below it.
fn blocks(file: &str) -> impl Iterator<Item = (&str, Extensions, &str)> {
    file.split("\n\n").map(|block| block.trim_matches('\n')).filter(|block| !block.starts_with('#')).map(
        |block| {
            let (phrase, message) = block.split_once('\n').unwrap_or((block, ""));
            let (mark, phrase) = phrase.split_at(2);
            (phrase, if mark == "+ " { Extensions::On } else { Extensions::Off }, message)
        },
    )
}

/// The tables of the reference are true.
#[test]
fn the_reference_says_what_happens() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fuzzy.md");
    let reference = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for row in reference.lines().filter(|row| row.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, first, second, third, _] = cells[..] else { continue };
        if let Some(code) = first.strip_prefix("ERR-").filter(|_| !third.is_empty()) {
            let error = if third.starts_with("FUZZY:") {
                third.parse::<Placeholder>().unwrap_err()
            } else {
                Phrase::parse(third, Extensions::Off).unwrap_err()
            };
            assert!(codes(&error).contains(code), "{row}: {}", codes(&error));
        } else if second.contains("* *") {
            let phrase =
                Phrase::parse(first, Extensions::On).unwrap_or_else(|error| panic!("{row}: {error}"));
            assert_eq!(phrase.placeholder().to_string(), second, "{row}");
        } else {
            continue;
        }
        rows += 1;
    }
    assert_eq!(rows, 17 + 6 + 14, "rows with something to check");
}

/// The wording is part of the interface, so it is written down.
#[test]
fn errors_have_the_words_of_the_specification() {
    let mut wrong = String::new();
    let mut seen = Vec::new();
    for (text, extensions, message) in blocks(ERRORS) {
        let error = Phrase::parse(text, extensions).expect_err(text);
        seen.push(error.code());
        seen.extend(error.cause());
        let rendered = error.render(text);
        assert!(rendered.starts_with(&format!("Error: {}\n", error.message())), "{text}");
        if rendered != message {
            let mark = if extensions == Extensions::On { '+' } else { '>' };
            writeln!(wrong, "{mark} {text}\n{rendered}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "these read otherwise now:\n\n{wrong}");
    let empty = Phrase::parse(" \t", Extensions::Off).unwrap_err();
    assert_eq!(empty.message(), "A schedule expression is required\nExample: daily around 14:00");
    assert_eq!(empty.code().as_str(), "ERR-SYNTAX-004");
    let mut codes: Vec<&str> = seen.iter().map(|code| code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 13, "each code of a phrase has its words here: {codes:?}");
}

#[test]
fn warnings_have_these_words() {
    let mut wrong = String::new();
    for (text, extensions, message) in blocks(WARNINGS) {
        let phrase = Phrase::parse(text, extensions).unwrap_or_else(|error| panic!("{text}: {error}"));
        let rendered: Vec<String> = phrase.warnings().iter().map(|warning| warning.render(text)).collect();
        if rendered.join("\n") != message {
            let mark = if extensions == Extensions::On { '+' } else { '>' };
            writeln!(wrong, "{mark} {text}\n{}\n", rendered.join("\n")).unwrap();
        }
    }
    assert!(wrong.is_empty(), "these read otherwise now:\n\n{wrong}");
}

#[test]
fn one_spelling_is_printed() {
    for (text, printed) in [
        ("  Daily \t", "daily"),
        ("daily\r\naround\t2PM", "daily around 14:00"),
        ("daily between MIDNIGHT and 9:05am", "daily between 0:00 and 9:05"),
        ("daily around 9:00 UTC+05:30", "daily around 9:00 utc+5:30"),
        ("daily around 9:00utc-08:00", "daily around 9:00 utc-8"),
        ("daily around 9:00 UTC-0", "daily around 9:00 utc+0"),
        ("daily around 9:00 JST", "daily around 9:00 jst"),
        ("WEEKLY ON MONDAY", "weekly on monday"),
        ("weekly on fri around noon", "weekly on friday around 12:00"),
        ("every 5m", "every 5 minutes"),
        ("every 1H", "every 1 hour"),
        ("every 014 d", "every 14 days"),
        ("every 2w exactly", "every 2 weeks exactly"),
        ("Bi-Weekly Exactly", "bi-weekly exactly"),
        ("daily on weekdays around 9am", "daily around 9:00 on weekdays"),
        ("every 10m scattered", "every 10 minutes scattered"),
    ] {
        let phrase = Phrase::parse(text, Extensions::On).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(phrase.to_string(), printed);
        assert_eq!(Phrase::parse(printed, Extensions::On), Ok(phrase));
    }
}

#[test]
fn an_offset_is_told_so_that_no_other_zone_is_given() {
    let has_offset = |text| Phrase::parse(text, Extensions::On).unwrap().has_offset();
    for text in ["daily around 9:00 utc+0", "daily around 9:00 pst", "daily between 9:00 and 17:00 utc+1"] {
        assert!(has_offset(text), "{text}");
    }
    for text in ["daily", "weekly on monday around 9:00", "hourly", "bi-weekly", "every 2h"] {
        assert!(!has_offset(text), "{text}");
    }
}

#[test]
fn placeholders_that_are_none_are_refused() {
    for (text, guidance) in [
        ("", "A placeholder is FUZZY:TYPE[:PARAMS] and three cron fields, such as FUZZY:DAILY * * *"),
        (
            "FUZZY:DAILY",
            "A placeholder is FUZZY:TYPE[:PARAMS] and three cron fields, such as FUZZY:DAILY * * *",
        ),
        ("FUZZY:WEEKLY:1 * * 2", "The two weekdays disagree"),
        ("FUZZY:WEEKLY:5:AROUND:17:0 * * 1", "The two weekdays disagree"),
        ("FUZZY:WEEKLY:7 * * 7", "'7' is no number from 0 to 6"),
        ("FUZZY:DAILY_AROUND:24:0 * * *", "'24' is no number from 0 to 23"),
        ("FUZZY:DAILY_AROUND:12:60 * * *", "'60' is no number from 0 to 59"),
        ("FUZZY:DAILY_AROUND:12 * * *", "AROUND takes an hour and a minute, H:M"),
        ("FUZZY:DAILY_BETWEEN:9:0:17 * * *", "BETWEEN takes two hours and minutes, H:M:H:M"),
        ("FUZZY:DAILY_BETWEEN:9:0:9:0 * * *", "The range ends where it starts"),
        ("FUZZY:HOURLY:5 * * *", "Valid hour intervals: 1, 2, 3, 4, 6, 8, 12"),
        ("FUZZY:HOURLY/0 * * *", "Valid hour intervals: 1, 2, 3, 4, 6, 8, 12"),
        ("FUZZY:DAILY * * 1", "The weekday field must be *"),
        ("FUZZY:BI-WEEKLY * * 1", "The weekday field must be *"),
        ("fuzzy:DAILY * * *", "A placeholder begins with FUZZY:"),
        ("*/4 * * * *", "'4' is no number from 5 to 59"),
        ("0 0 */32 * *", "'32' is no number from 1 to 31"),
        ("30 * * * *", "Without FUZZY: it can only be a fixed interval, such as */5 * * * *"),
    ] {
        let error = text.parse::<Placeholder>().unwrap_err();
        assert_eq!((error.code().as_str(), error.guidance()), ("ERR-PLACEHOLDER-001", guidance), "{text}");
        assert_eq!(error.headline(), format!("Invalid placeholder '{text}'"));
    }
    let unknown = "FUZZY:MONTHLY * * *".parse::<Placeholder>().unwrap_err();
    assert!(unknown.guidance().starts_with("Valid types: DAILY, "), "{}", unknown.guidance());
}

#[test]
fn an_identifier_is_built_from_repository_and_path_and_is_never_empty() {
    let expected = Ok("github/gh-aw/.github/workflows/Daily.md".to_string());
    for path in [
        ".github/workflows/Daily.md",
        "./.github/workflows/Daily.md",
        "././/.github/workflows/Daily.md",
        ".github\\workflows\\Daily.md",
    ] {
        assert_eq!(identifier("github/gh-aw", path), expected);
    }
    for (slug, path) in [("", "a.md"), ("a/b", ""), (" ", "a.md"), ("a/b", "./"), ("/", "/")] {
        assert_eq!(identifier(slug, path).unwrap_err().code().as_str(), "ERR-IDENTIFIER-001");
    }
    let daily: Placeholder = "FUZZY:DAILY * * *".parse().unwrap();
    for nothing in ["", " ", "\n"] {
        let error = daily.scatter(nothing).unwrap_err();
        assert_eq!(error.to_string(), "A schedule cannot be scattered without an identifier");
        assert_eq!(error.code().as_str(), "ERR-IDENTIFIER-001");
    }
}

#[test]
fn a_window_over_midnight_moves_the_day_with_a_note() {
    let monday: Placeholder = "FUZZY:WEEKLY:1:AROUND:0:30 * * 1".parse().unwrap();
    let early =
        (0..).map(|n| format!("{n}-job")).find(|id| monday.scatter(id).unwrap().note().is_some()).unwrap();
    let scattered = monday.scatter(&early).unwrap();
    let note = scattered.note().unwrap();
    assert!(scattered.to_string().ends_with(" 23 * * 0"), "{scattered}");
    assert_eq!((note.kind(), note.span()), (FuzzyWarningKind::WeekdayMoved, None));
    assert_eq!(
        note.render(""),
        "Note: The time chosen is on sunday, the day before monday\n\
         The window crosses midnight: it begins on the day before"
    );

    let weekdays: Placeholder = "FUZZY:DAILY_BETWEEN:22:0:2:0 * * 1-5".parse().unwrap();
    let late =
        (0..).map(|n| format!("{n}-job")).find(|id| weekdays.scatter(id).unwrap().note().is_some()).unwrap();
    let scattered = weekdays.scatter(&late).unwrap();
    assert!(scattered.to_string().ends_with(" * * 2-6"), "{scattered}");
    assert_eq!(
        scattered.note().unwrap().message(),
        "The time chosen is on tuesday to saturday, the day after monday to friday\n\
         The window crosses midnight: it ends on the day after"
    );
}

/// The dates that the seed's cron really gives, and those of the exact form, which keeps the time.
#[test]
fn bi_weekly_restarts_every_month_and_exactly_does_not() {
    let dates = |text: &str| -> Vec<String> {
        let phrase = Phrase::parse(text, Extensions::On).unwrap();
        let schedule = phrase.placeholder().scatter("a").unwrap().compile(&Zone::utc(), Dst::KRON).unwrap();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        schedule.occurrences_after(start).take(5).map(|at| at.to_string()).collect()
    };
    assert_eq!(
        dates("bi-weekly"),
        [
            "2026-01-01T23:40:00Z",
            "2026-01-15T23:40:00Z",
            "2026-01-29T23:40:00Z",
            "2026-02-01T23:40:00Z",
            "2026-02-15T23:40:00Z",
        ]
    );
    assert_eq!(
        dates("bi-weekly exactly"),
        [
            "2026-01-12T23:40:00Z",
            "2026-01-26T23:40:00Z",
            "2026-02-09T23:40:00Z",
            "2026-02-23T23:40:00Z",
            "2026-03-09T23:40:00Z",
        ]
    );
    assert_eq!(dates("every 2 weeks exactly"), dates("bi-weekly exactly"));
    assert_eq!(dates("every 21 days exactly"), dates("tri-weekly exactly"));
}

/// With a zone, the times of a phrase are local to it.
#[test]
fn times_are_local_to_the_zone_they_are_compiled_for() {
    let phrase = Phrase::parse("daily between 9:00 and 9:01", Extensions::Off).unwrap();
    let zone = Zone::new(&jiff::tz::TimeZone::get("Europe/Paris").unwrap()).unwrap();
    let schedule = phrase.placeholder().scatter("a").unwrap().compile(&zone, Dst::KRON).unwrap();
    let next = |after: &str| schedule.next_after(after.parse().unwrap()).unwrap().to_string();
    assert_eq!(next("2026-01-01T00:00:00Z"), "2026-01-01T08:00:00Z");
    assert_eq!(next("2026-07-01T00:00:00Z"), "2026-07-01T07:00:00Z");
}

#[test]
fn names_that_fall_together_are_found() {
    let placeholder = |text: &str| -> Placeholder { text.parse().unwrap() };
    let (hourly, daily) = (placeholder("FUZZY:HOURLY * * *"), placeholder("FUZZY:DAILY * * *"));
    let (monday, tuesday) = (placeholder("FUZZY:WEEKLY:1 * * 1"), placeholder("FUZZY:WEEKLY:2 * * 2"));
    let found = |jobs: &[(&str, &Placeholder)]| -> Vec<(ClusterKind, Vec<usize>, String)> {
        let found = clusters(jobs.iter().copied());
        found.iter().map(|one| (one.kind(), one.members().to_vec(), one.to_string())).collect()
    };

    // Neighbours, in the order of their minutes; the same names spread well over a day.
    let names = ["job1", "job2", "job3", "other"];
    assert_eq!(found(&names.map(|name| (name, &hourly))), [(
        ClusterKind::Neighbours,
        vec![2, 1, 0],
        "3 jobs start within 3 minutes, because their names differ in the last character only: job3, job2, job1"
            .to_string()
    )]);
    assert_eq!(found(&names.map(|name| (name, &daily))), []);
    // Around a time, every other one is near.
    let around = placeholder("FUZZY:DAILY_AROUND:12:0 * * *");
    let many = ["job1", "job2", "job3", "job4", "job5", "job6", "job7", "job8"];
    let near: Vec<Vec<usize>> =
        found(&many.map(|name| (name, &around))).into_iter().map(|(_, members, _)| members).collect();
    assert_eq!(near, [[2, 0, 6, 4]]);

    // The same time.
    let twin = (0..)
        .map(|n| format!("{n}-job"))
        .find(|name| name != "7-job" && hourly.scatter(name).unwrap() == hourly.scatter("7-job").unwrap());
    let twin = twin.unwrap();
    let time = hourly.scatter("7-job").unwrap().to_string();
    assert_eq!(
        found(&[("7-job", &hourly), ("a", &hourly), (&twin, &hourly)]),
        [(ClusterKind::Collision, vec![2, 0], format!("2 jobs have the same time, {time}: {twin}, 7-job"))]
    );

    // The same minute, but of other days.
    let exact = placeholder("FUZZY:EVERY_DAYS:14 * * *");
    let minute = |name: &str| exact.scatter(name).unwrap().to_string();
    let other = (0..).map(|n| format!("{n}-job")).find(|name| {
        minute(name) == minute("7-job") && exact.scatter(name).unwrap() != exact.scatter("7-job").unwrap()
    });
    assert_eq!(found(&[("7-job", &exact), (&other.unwrap(), &exact)]), []);

    // The schedules of one job share the minute, if they can meet at all.
    let same = "2 schedules of backup start in the same minute".to_string();
    assert_eq!(
        found(&[("backup", &daily), ("backup", &monday)]),
        [(ClusterKind::SameJob, vec![0, 1], same.clone())]
    );
    assert_eq!(
        found(&[("backup", &hourly), ("backup", &monday)]),
        [(ClusterKind::SameJob, vec![0, 1], same)]
    );
    assert_eq!(found(&[("backup", &tuesday), ("backup", &monday)]), []);

    // Fixed intervals and empty names are no matter of scattering.
    let fixed = placeholder("*/5 * * * *");
    assert_eq!(found(&[("a", &fixed), ("b", &fixed), ("", &hourly), ("", &hourly)]), []);
}

const CASES: u64 = 20_000;

/// A phrase at random, and what it asks for.
struct Asked {
    text: String,
    /// The minutes of the week, in UTC, at which windows start; each of a length; nothing if it is not
    /// about times of day.
    windows: Option<(Vec<i64>, i64)>,
}

const WEEK: i64 = 7 * 1_440;
const WEEKDAYS: [&str; 7] = ["sunday", "MONDAY", "Tuesday", "wed", "thursday", "friday", "Sat"];

fn time(random: &mut Random) -> (String, i64) {
    let (hour, minute) = (random.within(0, 23), random.within(0, 59));
    let (text, minutes) = match random.within(1, 4) {
        1 => (format!("{hour}:{minute:02}"), hour * 60 + minute),
        2 => (format!("{hour:02}:{minute:02}"), hour * 60 + minute),
        3 => {
            let (twelve, half) = ((hour + 11) % 12 + 1, if hour < 12 { "am" } else { "PM" });
            (format!("{twelve}:{minute:02}{}{half}", random.pick(&["", " "])), hour * 60 + minute)
        }
        _ => (random.pick(&["noon", "Noon"]).to_string(), 720),
    };
    if random.percent(50) {
        return (text, minutes);
    }
    let gap = random.pick(&["", " "]);
    match random.within(1, 3) {
        1 => {
            let hours = random.within(-12, 14);
            (format!("{text}{gap}utc{hours:+}"), minutes - hours * 60)
        }
        2 => (format!("{text}{gap}UTC-03:30"), minutes + 210),
        _ => (format!("{text}{gap}jst"), minutes - 540),
    }
}

fn asked(random: &mut Random) -> Asked {
    let (window, start, length) = match random.within(1, 3) {
        1 => (String::new(), 0, 1_440),
        2 => {
            let (text, time) = time(random);
            (format!(" around {text}"), time - 60, 120)
        }
        _ => {
            let ((first, start), (second, end)) = (time(random), time(random));
            (format!(" between {first} and {second}"), start, (end - start).rem_euclid(1_440))
        }
    };
    let usual = |days: &[i64]| Some((days.iter().map(|day| day * 1_440 + start).collect(), length));
    let every = [0, 1, 2, 3, 4, 5, 6];
    let (text, windows) = match random.within(1, 7) {
        1 => (format!("daily{window}"), usual(&every)),
        2 => (format!("daily{window} on weekdays"), usual(&every[1..6])),
        3 => {
            let day = random.within(0, 6);
            let name = WEEKDAYS[usize::try_from(day).unwrap()];
            (format!("weekly on {name}{window}"), usual(&[day]))
        }
        4 => (format!("weekly{window}"), usual(&every)),
        5 => (
            random.pick(&["hourly", "every 3 h on weekdays", "bi-weekly", "tri-weekly exactly"]).to_string(),
            None,
        ),
        6 => (format!("every {} minutes{}", random.within(5, 59), random.pick(&["", " scattered"])), None),
        _ => (format!("every {}d{}", random.within(1, 31), random.pick(&["", " exactly"])), None),
    };
    Asked { text, windows }
}

/// The minutes of the week of a cron expression with a fixed time and days by weekday.
fn minutes_of_week(cron: &str) -> Vec<i64> {
    let fields: Vec<&str> = cron.split(' ').collect();
    let time = fields[1].parse::<i64>().unwrap() * 60 + fields[0].parse::<i64>().unwrap();
    let days: Vec<i64> = match fields[4] {
        "*" => (0..7).collect(),
        list => list
            .split(',')
            .flat_map(|item| {
                let (from, to) = item.split_once('-').unwrap_or((item, item));
                from.parse::<i64>().unwrap()..=to.parse::<i64>().unwrap()
            })
            .collect(),
    };
    days.iter().map(|day| day * 1_440 + time).collect()
}

#[test]
fn random_phrases_survive_printing_and_stay_within_what_they_ask_for() {
    let seed = seed();
    for case in 0..CASES {
        let random = &mut Random::of_case(seed, case);
        let Asked { text, windows } = asked(random);
        let phrase = match Phrase::parse(&text, Extensions::On) {
            Ok(phrase) => phrase,
            Err(error) => {
                let is_empty = windows.is_some_and(|(_, length)| length == 0);
                assert!(is_empty && error.code().as_str() == "ERR-TIME-004", "case {case}: {text}: {error}");
                continue;
            }
        };
        let printed = phrase.to_string();
        let again =
            Phrase::parse(&printed, Extensions::On).unwrap_or_else(|error| panic!("{printed}: {error}"));
        assert_eq!(again, phrase, "case {case}: {text}");
        assert_eq!(again.to_string(), printed);
        assert_eq!(again.placeholder(), phrase.placeholder());
        let placeholder = phrase.placeholder().to_string();
        assert_eq!(placeholder.parse(), Ok(*phrase.placeholder()), "case {case}: {text}");

        let name = format!("{:x}", random.next());
        let scattered = phrase.placeholder().scatter(&name).unwrap();
        assert_eq!(phrase.placeholder().scatter(&name).as_ref(), Ok(&scattered));
        assert!(scattered.compile(&Zone::utc(), Dst::KRON).is_ok(), "case {case}: {text}: {scattered}");
        let Some((starts, length)) = windows else { continue };
        let times = minutes_of_week(&scattered.to_string());
        let is_asked = |time: &i64| starts.iter().any(|start| (time - start).rem_euclid(WEEK) < length);
        assert!(times.iter().all(is_asked), "seed {seed}, case {case}: {text} is {placeholder}, {scattered}");
        // One time for each window, or one for all if the week is left open.
        let expected = if text.starts_with("weekly") { 1 } else { starts.len() };
        assert_eq!(times.len(), expected, "case {case}: {text}");
    }
}

/// Words and signs of the language, and what does not belong to it.
const PIECES: [&str; 60] = [
    "daily",
    "weekly",
    "hourly",
    "bi-weekly",
    "tri-weekly",
    "every",
    "on",
    "around",
    "between",
    "and",
    "at",
    "monday",
    "mon",
    "weekdays",
    "exactly",
    "scattered",
    "noon",
    "midnight",
    "am",
    "pm",
    "utc",
    "utc+9",
    "utc-",
    "jst",
    "pt",
    "14:00",
    "9",
    "0",
    "25:00",
    "12",
    ":",
    "+",
    "-",
    "/",
    "*",
    "*/5",
    "FUZZY:",
    "FUZZY:DAILY",
    "FUZZY:WEEKLY:1:AROUND:",
    "FUZZY:HOURLY/",
    "BETWEEN",
    "minutes",
    "h",
    "d",
    "weeks",
    "99999999999999999999",
    " ",
    " ",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\0",
    "é",
    "日",
    "\u{2028}",
    "'",
    "…",
];

/// No text makes it panic, and every mistake has a place that can be shown.
#[test]
fn any_text_is_answered() {
    let seed = seed();
    for case in 0..CASES {
        let random = &mut Random::of_case(seed, case);
        let mut text = if random.percent(50) { asked(random).text } else { String::new() };
        for _ in 0..random.within(1, 8) {
            // Anywhere, as long as it is between characters.
            let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
            let at = *random.pick(&places);
            match text[at..].chars().next() {
                Some(c) if random.percent(30) => text.replace_range(at..at + c.len_utf8(), ""),
                _ => text.insert_str(at, random.pick::<&str>(&PIECES)),
            }
        }
        let (without, with) = (Phrase::parse(&text, Extensions::Off), Phrase::parse(&text, Extensions::On));
        if let Ok(phrase) = &without {
            assert_eq!(with.as_ref(), Ok(phrase), "extensions change the meaning of {text:?}");
        }
        for outcome in [without, with] {
            match outcome {
                Ok(phrase) => {
                    assert!(phrase.placeholder().scatter("a").is_ok(), "{text:?}");
                    for warning in phrase.warnings() {
                        assert!(warning.render(&text).contains(warning.headline()));
                    }
                }
                Err(error) => check_place(&text, &error),
            }
        }
        match text.parse::<Placeholder>() {
            Ok(placeholder) => assert_eq!(placeholder.to_string().parse(), Ok(placeholder)),
            Err(error) => check_place(&text, &error),
        }
    }
    let long = "daily ".repeat(1_000);
    assert!(Phrase::parse(&long, Extensions::On).is_err());
    assert!(long.parse::<Placeholder>().is_err());
}

fn check_place(text: &str, error: &FuzzyError) {
    assert!(text.get(error.span()).is_some(), "{text:?}: {:?}", error.span());
    let rendered = error.render(text);
    let last = rendered.lines().last().unwrap();
    assert!(last.starts_with(error.code().as_str()), "{rendered}");
    assert!(error.message().lines().count() == 2 && !error.message().contains('\0'), "{rendered}");
}

/// The days of the exact forms are spread as well, and do not depend on the time.
#[test]
fn exact_days_are_spread() {
    let fortnight: Placeholder = "FUZZY:EVERY_DAYS:14 * * *".parse().unwrap();
    let mut counts = [0u32; 14];
    for n in 0..14_000 {
        let Scattered::EveryDays(days) = fortnight.scatter(&format!("host{}:job-{n}", n % 97)).unwrap()
        else {
            panic!("every so many days");
        };
        counts[usize::from(days.phase())] += 1;
    }
    assert!(counts.iter().all(|count| (815..1_185).contains(count)), "{counts:?}"); // six deviations
}
