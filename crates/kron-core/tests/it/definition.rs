//! Are mistakes in a definition refused, in words that help? The wording is part of the interface.

use kron_core::{Constraints, Direction, Distribution, Job, JobBuilder, Parameter, Policy, WindowMode};
use kron_schedule::{Dialect, Dst, Duration, Expr};

use crate::jobs::job;

#[test]
fn a_job_says_which_parameter_is_wrong() {
    let named = |identity: &str| job(identity, "UTC");
    let window = |text: &str| named("demo").window(WindowMode::After, text.parse().unwrap());
    let spread = |distribution: Distribution| named("demo").distribution(distribution);
    let sigma = |text: &str| spread(Distribution::Normal { mu: None, sigma: Some(text.parse().unwrap()) });
    let lambda = |lambda: f64| spread(Distribution::Exponential { lambda, direction: Direction::Early });
    let shape = |shape: f64| spread(Distribution::SkewLate { shape });
    let deadline = |text: &str| {
        named("demo").policy(Policy { deadline: Some(text.parse().unwrap()), ..Policy::default() })
    };
    let cases: [(JobBuilder, Parameter, &str); 12] = [
        (named(""), Parameter::Identity, "identity: expected a name, but found nothing"),
        (
            named("a\nb"),
            Parameter::Identity,
            "identity: expected a name without control characters, but found `a\\nb`",
        ),
        (
            window("-1ns"),
            Parameter::Window,
            "window: expected a duration that is not negative, but found `-1ns`",
        ),
        (
            window("8784h1ns"),
            Parameter::Window,
            "window: expected at most 8784h (366 days), but found `8784h1ns`",
        ),
        (sigma("0s"), Parameter::Sigma, "sigma: expected a duration above 0, but found `0s`"),
        (sigma("-1s"), Parameter::Sigma, "sigma: expected a duration above 0, but found `-1s`"),
        (shape(0.0), Parameter::Shape, "shape: expected a finite number above 0, but found `0`"),
        (shape(-2.0), Parameter::Shape, "shape: expected a finite number above 0, but found `-2`"),
        (shape(f64::INFINITY), Parameter::Shape, "shape: expected a finite number above 0, but found `inf`"),
        (lambda(f64::NAN), Parameter::Lambda, "lambda: expected a finite number above 0, but found `NaN`"),
        (lambda(0.0), Parameter::Lambda, "lambda: expected a finite number above 0, but found `0`"),
        (
            deadline("-5m"),
            Parameter::Deadline,
            "deadline: expected a duration that is not negative, but found `-5m`",
        ),
    ];
    for (builder, parameter, message) in cases {
        let error = builder.build().unwrap_err();
        assert_eq!((error.parameter(), error.to_string().as_str()), (parameter, message));
        assert_eq!(
            message,
            format!("{parameter}: expected {}, but found {}", error.expected(), error.found())
        );
    }
}

#[test]
fn a_job_whose_windows_would_overlap_without_end_is_refused() {
    let with_window = |line: &str, window: &str| {
        let zone = crate::jobs::zone("UTC");
        let schedule = Expr::parse(line, Dialect::Ojs).unwrap().compile(&zone, Dst::KRON).unwrap();
        Job::builder("demo", schedule, zone).window(WindowMode::Around, window.parse().unwrap()).build()
    };
    let minutely = |window: &str| with_window("* * * * *", window);
    assert!(minutely("166h").is_ok());
    assert_eq!(
        minutely("167h").unwrap_err().to_string(),
        "window: expected a window so short that at most 10000 are open at once, but found `167h`"
    );
    // Every 15 seconds, 10,000 are open after 41 hours and 40 minutes.
    assert!(with_window("*/15 * * * * *", "3h").is_ok());
    assert!(with_window("*/15 * * * * *", "41h").is_ok());
    assert!(with_window("*/15 * * * * *", "42h").is_err());
}

#[test]
fn what_is_just_allowed_is_allowed() {
    let widest = Duration::from_seconds(366 * 86_400);
    for mode in [WindowMode::After, WindowMode::Around, WindowMode::Before] {
        assert!(job("é/x:y z", "UTC").window(mode, widest).build().is_ok());
    }
    let tiny = Distribution::SkewEarly { shape: f64::MIN_POSITIVE };
    assert!(job("demo", "UTC").distribution(tiny).build().is_ok());
    let job = job("demo", "UTC").build().unwrap();
    let forever = Policy { deadline: None, ..Policy::default() };
    assert!(job.clone().with_policy(forever).is_ok());
    let negative = Policy { deadline: Some(Duration::from_nanos(-1)), ..Policy::default() };
    assert!(job.with_policy(negative).is_err());
}

#[test]
fn a_constraint_says_what_was_expected_found_and_where() {
    let hours = "expected a number from 0 to 23, but found ";
    let dow = "expected a number from 0 to 7 or a name from `SUN` to `SAT`, but found ";
    let months = "expected a number from 1 to 12 or a name from `JAN` to `DEC`, but found ";
    let keys = "expected `hours`, `dow`, `dom`, `months`, `between`, `date` or `dates`, but found ";
    let clause = "expected a clause such as `hours=8-10`, but found ";
    for (text, at, message, help) in [
        ("", 0..0, format!("{clause}nothing"), None),
        (" ; ;", 1..4, format!("{clause}`; ;`"), None),
        ("hours", 0..5, format!("{clause}`hours`"), None),
        ("hour=8", 0..4, format!("{keys}`hour`"), Some("did you mean `hours`?")),
        ("Hours=8", 0..5, format!("{keys}`Hours`"), Some("did you mean `hours`?")),
        ("dow=1;weekday=2", 6..13, format!("{keys}`weekday`"), None),
        ("=8", 0..0, format!("{keys}nothing"), None),
        ("hours=", 6..6, format!("{hours}nothing"), None),
        ("hours=24", 6..8, format!("{hours}`24`"), None),
        ("hours=8,,9", 8..8, format!("{hours}nothing"), None),
        ("hours=8, 9", 8..10, format!("{hours}` 9`"), None),
        ("hours=+8", 6..8, format!("{hours}`+8`"), None),
        ("hours=99999999999", 6..17, format!("{hours}`99999999999`"), None),
        ("hours=*", 6..7, format!("{hours}`*`"), Some("a kind that is left out does not restrict")),
        ("hours=1/2", 6..9, format!("{hours}`1/2`"), Some("constraints have no steps; list the values")),
        (
            "hours=22-6",
            6..10,
            "expected a range that ends at or after 22, but found `22-6`".into(),
            Some("ranges do not go round: write `22-23,0-6`"),
        ),
        ("dow=MNO", 4..7, format!("{dow}`MNO`"), Some("did you mean `MON`?")),
        ("dow=8", 4..5, format!("{dow}`8`"), None),
        (
            "dow=FRI-SUN",
            4..11,
            "expected a range that ends at or after FRI, but found `FRI-SUN`".into(),
            Some("ranges do not go round: write `FRI-SAT,SUN`"),
        ),
        (
            "dow=7-1",
            4..7,
            "expected a range that ends at or after 7, but found `7-1`".into(),
            Some("ranges do not go round: write `SUN-MON`"),
        ),
        ("dom=0", 4..5, "expected a number from 1 to 31, but found `0`".into(), None),
        ("months=13", 7..9, format!("{months}`13`"), None),
        ("between=8:00", 8..12, "expected two times such as `8:00-17:30`, but found `8:00`".into(), None),
        ("between=8-9", 8..9, "expected a time from `00:00` to `23:59`, but found `8`".into(), None),
        (
            "between=8:00-24:00",
            13..18,
            "expected a time from `00:00` to `23:59`, but found `24:00`".into(),
            None,
        ),
        ("between=8:0-9:00", 8..11, "expected a time from `00:00` to `23:59`, but found `8:0`".into(), None),
        (
            "between=22:00-06:00",
            8..19,
            "expected a range that ends at or after 22:00, but found `22:00-06:00`".into(),
            Some("a day ends at midnight: write `between=22:00-23:59;between=00:00-06:00`"),
        ),
        ("date=2026-2-3", 5..13, "expected a date such as `2026-12-24`, but found `2026-2-3`".into(), None),
        ("date=2026-02-30", 5..15, "expected a day of the calendar, but found `2026-02-30`".into(), None),
        (
            "dates=2026-02-01",
            6..16,
            "expected two dates such as `2026-12-24..2026-12-26`, but found `2026-02-01`".into(),
            None,
        ),
        (
            "dates=2026-02-02..2026-02-01",
            6..28,
            "expected a range that ends at or after 2026-02-02, but found `2026-02-02..2026-02-01`".into(),
            None,
        ),
    ] {
        let error = Constraints::default().add_avoid(text).unwrap_err();
        assert_eq!((error.to_string(), error.span(), error.help()), (message, at, help), "{text}");
    }
}

#[test]
fn constraints_are_read_and_printed_in_one_spelling() {
    for (text, printed) in [
        ("hours=8-10;dow=MON-FRI", "hours=8-10;dow=MON-FRI"),
        (" hours = 08,9,010 ; ;", "hours=8-10"),
        ("dow=5-7", "dow=SUN,FRI-SAT"),
        ("dow=0-7", "dow=SUN-SAT"),
        ("dow=7", "dow=SUN"),
        ("dow=sun,Mon", "dow=SUN-MON"),
        ("months=jan-MAR,12", "months=JAN-MAR,DEC"),
        ("dom=31,1", "dom=1,31"),
        (
            "between=8:05-9:00;between=9:01-10:00;between=23:59-23:59",
            "between=08:05-10:00;between=23:59-23:59",
        ),
        (
            "date=2026-12-25;date=2026-12-24;dates=2027-01-01..2027-01-01",
            "dates=2026-12-24..2026-12-25;date=2027-01-01",
        ),
    ] {
        let mut constraints = Constraints::default();
        constraints.add_only(text).unwrap();
        assert_eq!(constraints.to_string(), format!("only({printed})"));
        let mut again = Constraints::default();
        again.add_only(printed).unwrap();
        assert_eq!(again, constraints);
    }
    assert_eq!(Constraints::default().to_string(), "none");
}

#[test]
fn repeated_modifiers_add_values_of_a_kind_and_require_every_kind() {
    let date_time = |text: &str| text.parse::<jiff::civil::DateTime>().unwrap();
    let mut constraints = Constraints::default();
    constraints.add_only("hours=8").unwrap();
    constraints.add_only("hours=9").unwrap();
    assert!(constraints.allow(date_time("2026-03-03T08:30:00")));
    assert!(constraints.allow(date_time("2026-03-03T09:30:00")));
    constraints.add_only("dow=MON").unwrap();
    assert!(!constraints.allow(date_time("2026-03-03T09:30:00")), "a Tuesday");
    assert!(constraints.allow(date_time("2026-03-02T09:30:00")), "a Monday");
    constraints.add_avoid("between=09:30-09:30;dom=9").unwrap();
    assert!(!constraints.allow(date_time("2026-03-02T09:30:59")), "the last minute counts to its end");
    assert!(constraints.allow(date_time("2026-03-02T09:31:00")));
    assert!(!constraints.allow(date_time("2026-03-09T08:00:00")), "any clause of avoid rejects");
}

#[test]
fn a_mistake_adds_nothing() {
    let mut constraints = Constraints::default();
    constraints.add_only("hours=8").unwrap();
    let before = constraints.clone();
    assert!(constraints.add_only("hours=9;dow=XXX").is_err());
    assert_eq!(constraints, before);
}

#[test]
fn a_modifier_has_at_most_64_clauses() {
    let dates: Vec<String> =
        (0..64).map(|i| format!("date=2026-{:02}-{:02}", i / 28 + 1, i % 28 + 1)).collect();
    let mut constraints = Constraints::default();
    constraints.add_avoid(&dates.join(";")).unwrap();
    let error = constraints.add_avoid(&format!("{};hours=1", dates.join(";"))).unwrap_err();
    assert_eq!(error.to_string(), "expected at most 64 clauses, but found `hours=1`");
    assert_eq!(error.help(), Some("the rest can stand in another modifier"));
    assert_eq!(error.shifted(10).span().start, 64 * 16 + 10);
    constraints.add_avoid("hours=1").unwrap();
}
