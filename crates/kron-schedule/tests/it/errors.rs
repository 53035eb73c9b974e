//! The wording of errors is part of the interface, so it is written down here: for every kind the
//! kind, the field, the place in bytes, and the message as it is shown.

use insta::assert_snapshot;
use jiff::tz::TimeZone;
use kron_schedule::Dialect::{Kron, Ojs, Posix};
use kron_schedule::{Dialect, Dst, ErrorKind, Expr, Field, ParseError, Zone};

#[test]
fn an_at_form_that_nobody_has() {
    assert_snapshot!(errors(&[(Kron, "@dayly"), (Kron, "@Daily"), (Ojs, "@fortnightly"), (Kron, "@reboot"), (Posix, "@daily"), (Posix, "@every 5m")]), @r"
    Alias, -, 0..6: expected @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or `@every` with a duration, but found `@dayly`
      | @dayly
      | ^^^^^^
      = help: did you mean `@daily`?

    Alias, -, 0..6: expected @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or `@every` with a duration, but found `@Daily`
      | @Daily
      | ^^^^^^
      = help: did you mean `@daily`?

    Alias, -, 0..12: expected @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or `@every` with a duration, but found `@fortnightly`
      | @fortnightly
      | ^^^^^^^^^^^^

    Alias, -, 0..7: expected @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or `@every` with a duration, but found `@reboot`
      | @reboot
      | ^^^^^^^
      = help: starting up is not a time of the calendar, so it cannot be scheduled

    Alias, -, 0..6: expected 5 fields (minute hour day month weekday), but found `@daily`
      | @daily
      | ^^^^^^
      = help: the posix dialect has no aliases: write `0 0 * * *`

    Alias, -, 0..9: expected 5 fields (minute hour day month weekday), but found `@every 5m`
      | @every 5m
      | ^^^^^^^^^
      = help: the posix dialect has no `@` forms
    ");
}

#[test]
fn nothing_between_commas() {
    assert_snapshot!(errors(&[(Kron, "1,,2 * * * *"), (Posix, "1, * * * *"), (Ojs, "0 0 0 , * *")]), @r"
    EmptyItem, minute, 1..3: expected a number from 0 to 59, but found an empty list item
      | 1,,2 * * * *
      |  ^^

    EmptyItem, minute, 1..2: expected a number from 0 to 59, but found an empty list item
      | 1, * * * *
      |  ^

    EmptyItem, day, 6..7: expected a number from 1 to 31, but found an empty list item
      | 0 0 0 , * *
      |       ^
    ");
}

#[test]
fn a_wrong_number_of_fields() {
    assert_snapshot!(errors(&[(Kron, "0 0 * *"), (Kron, "0 0 0 * * *"), (Posix, "0 0 1 1 * 2026"), (Ojs, "0 0 0 1 1 * 2026")]), @r"
    FieldCount, -, 7..7: expected 5 fields (minute hour day month weekday), but found 4
      | 0 0 * *
      |        ^

    FieldCount, -, 10..11: expected 5 fields (minute hour day month weekday), but found 6
      | 0 0 0 * * *
      |           ^
      = help: the kron dialect has no seconds: leave the first field out

    FieldCount, -, 10..14: expected 5 fields (minute hour day month weekday), but found 6
      | 0 0 1 1 * 2026
      |           ^^^^
      = help: the posix dialect has no seconds: leave the first field out

    FieldCount, -, 12..16: expected 5 fields (minute hour day month weekday), or 6 with seconds first, but found 7
      | 0 0 0 1 1 * 2026
      |             ^^^^
    ");
}

#[test]
fn an_interval_that_is_none() {
    assert_snapshot!(errors(&[(Ojs, "@every"), (Ojs, "@every 0s"), (Ojs, "@every -1h"), (Ojs, "@every 5"), (Ojs, "@every 1d"), (Ojs, "@every 5 m"), (Kron, "@every 1500ms"), (Kron, "@every 300000000h")]), @r"
    Interval, -, 6..6: expected a duration such as `90s` or `1h30m`, but found nothing
      | @every
      |       ^

    Interval, -, 7..9: expected an interval longer than nothing, but found `0s`
      | @every 0s
      |        ^^

    Interval, -, 7..10: expected an interval longer than nothing, but found `-1h`
      | @every -1h
      |        ^^^

    Interval, -, 8..8: expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found nothing
      | @every 5
      |         ^

    Interval, -, 8..9: expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found `d`
      | @every 1d
      |         ^

    Interval, -, 8..10: expected a unit: `h`, `m`, `s`, `ms`, `us` or `ns`, but found ` m`
      | @every 5 m
      |         ^^

    Interval, -, 7..13: expected whole seconds, but found `1500ms`
      | @every 1500ms
      |        ^^^^^^
      = help: chosen times are whole seconds, so shorter intervals would pile up

    Interval, -, 7..17: expected a duration below 292 years, but found `300000000h`
      | @every 300000000h
      |        ^^^^^^^^^^
    ");
}

#[test]
fn a_name_that_is_none() {
    assert_snapshot!(errors(&[(Kron, "0 0 * JNA *"), (Kron, "0 0 * * Monday"), (Ojs, "0 0 * * MON-FIR"), (Kron, "MON * * * *"), (Posix, "0 0 * jan *"), (Posix, "0 0 * * sunday")]), @r"
    Name, month, 6..9: expected a number from 1 to 12 or JAN to DEC, but found `JNA`
      | 0 0 * JNA *
      |       ^^^
      = help: did you mean `JAN`?

    Name, weekday, 8..14: expected a number from 0 to 7 or SUN to SAT, but found `Monday`
      | 0 0 * * Monday
      |         ^^^^^^
      = help: did you mean `MON`?

    Name, weekday, 12..15: expected a number from 0 to 7 or SUN to SAT, but found `FIR`
      | 0 0 * * MON-FIR
      |             ^^^
      = help: did you mean `FRI`?

    Name, minute, 0..3: expected a number from 0 to 59, but found `MON`
      | MON * * * *
      | ^^^

    Name, month, 6..9: expected a number from 1 to 12, but found `jan`
      | 0 0 * jan *
      |       ^^^
      = help: write `1`

    Name, weekday, 8..14: expected a number from 0 to 6, but found `sunday`
      | 0 0 * * sunday
      |         ^^^^^^
      = help: write `0`
    ");
}

#[test]
fn numbers_in_other_notations() {
    assert_snapshot!(errors(&[(Kron, "+5 * * * *"), (Kron, "-5 * * * *"), (Kron, "0x1F * * * *"), (Posix, "1e1 * * * *"), (Ojs, "1.5 * * * *"), (Posix, "5-+7 * * * *")]), @r"
    Number, minute, 0..2: expected a number from 0 to 59, but found `+5`
      | +5 * * * *
      | ^^
      = help: numbers are written without a sign

    Number, minute, 0..2: expected a number from 0 to 59, but found `-5`
      | -5 * * * *
      | ^^
      = help: numbers are written without a sign

    Number, minute, 0..4: expected a number from 0 to 59, but found `0x1F`
      | 0x1F * * * *
      | ^^^^
      = help: numbers are written in plain decimal digits

    Number, minute, 0..3: expected a number from 0 to 59, but found `1e1`
      | 1e1 * * * *
      | ^^^
      = help: numbers are written in plain decimal digits

    Number, minute, 0..3: expected a number from 0 to 59, but found `1.5`
      | 1.5 * * * *
      | ^^^
      = help: numbers are written in plain decimal digits

    Number, minute, 2..4: expected a number from 0 to 59, but found `+7`
      | 5-+7 * * * *
      |   ^^
      = help: numbers are written without a sign
    ");
}

#[test]
fn values_out_of_range() {
    assert_snapshot!(errors(&[(Kron, "75 3 * * *"), (Kron, "0 25 * * *"), (Kron, "0 0 0 * *"), (Posix, "0 0 * * 7"), (Kron, "0 0 99999999999999999999 * *"), (Ojs, "0 0 * * 5#6"), (Ojs, "0 0 * * 5#")]), @r"
    Range, minute, 0..2: expected a number from 0 to 59, but found `75`
      | 75 3 * * *
      | ^^

    Range, hour, 2..4: expected a number from 0 to 23, but found `25`
      | 0 25 * * *
      |   ^^

    Range, day, 4..5: expected a number from 1 to 31, but found `0`
      | 0 0 0 * *
      |     ^

    Range, weekday, 8..9: expected a number from 0 to 6, but found `7`
      | 0 0 * * 7
      |         ^
      = help: Sunday is 0 in this dialect

    Range, day, 4..24: expected a number from 1 to 31, but found `99999999999999999999`
      | 0 0 99999999999999999999 * *
      |     ^^^^^^^^^^^^^^^^^^^^

    Range, weekday, 10..11: expected a number from 1 to 5, but found `6`
      | 0 0 * * 5#6
      |           ^

    Range, weekday, 10..10: expected a number from 1 to 5, but found nothing
      | 0 0 * * 5#
      |           ^
    ");
}

#[test]
fn ranges_that_descend() {
    assert_snapshot!(errors(&[(Kron, "50-10 * * * *"), (Posix, "0 22-6 * * *"), (Kron, "0 0 * 12-1 *"), (Kron, "0 0 * * FRI-SUN"), (Ojs, "0 0 * * 7-2"), (Posix, "0 0 * * 5-0")]), @r"
    Reversed, minute, 0..5: expected a range that ascends, but found `50-10`
      | 50-10 * * * *
      | ^^^^^
      = help: write `50-59,0-10`

    Reversed, hour, 2..6: expected a range that ascends, but found `22-6`
      | 0 22-6 * * *
      |   ^^^^
      = help: write `22-23,0-6`

    Reversed, month, 6..10: expected a range that ascends, but found `12-1`
      | 0 0 * 12-1 *
      |       ^^^^
      = help: write `12,1`

    Reversed, weekday, 8..15: expected a range that ascends, but found `FRI-SUN`
      | 0 0 * * FRI-SUN
      |         ^^^^^^^
      = help: write `5-7`: 7 is Sunday too

    Reversed, weekday, 8..11: expected a range that ascends, but found `7-2`
      | 0 0 * * 7-2
      |         ^^^
      = help: write `0-2`: 0 is Sunday too

    Reversed, weekday, 8..11: expected a range that ascends, but found `5-0`
      | 0 0 * * 5-0
      |         ^^^
      = help: write `5-6,0`
    ");
}

#[test]
fn forms_of_another_dialect_or_field() {
    assert_snapshot!(errors(&[(Kron, "0 0 ? * *"), (Posix, "0 0 L * *"), (Kron, "0 0 15W * *"), (Kron, "0 0 * * 5#3"), (Ojs, "0 0 * * L"), (Ojs, "0 0 L-3 * *"), (Ojs, "0 5L * * *")]), @r"
    Special, day, 4..5: expected a number from 1 to 31, but found `?`
      | 0 0 ? * *
      |     ^
      = help: write `*` for any value

    Special, day, 4..5: expected a number from 1 to 31, but found `L`
      | 0 0 L * *
      |     ^
      = help: the posix dialect has no `L`, `W` and `#`; the ojs dialect does

    Special, day, 6..7: expected a number from 1 to 31, but found `W`
      | 0 0 15W * *
      |       ^
      = help: the kron dialect has no `L`, `W` and `#`; the ojs dialect does

    Special, weekday, 9..11: expected a number from 0 to 7 or SUN to SAT, but found `#3`
      | 0 0 * * 5#3
      |          ^^
      = help: the kron dialect has no `L`, `W` and `#`; the ojs dialect does

    Special, weekday, 8..9: expected a number from 0 to 7 or SUN to SAT, but found `L`
      | 0 0 * * L
      |         ^
      = help: the last Friday of the month is `5L`, the third is `5#3`

    Special, day, 4..5: expected a number from 1 to 31, but found `L`
      | 0 0 L-3 * *
      |     ^
      = help: `L`, `LW` and `15W` stand alone in the day field, `5L` and `5#3` in the weekday field

    Special, hour, 3..4: expected a number from 0 to 23, but found `L`
      | 0 5L * * *
      |    ^
      = help: `L`, `LW` and `15W` stand alone in the day field, `5L` and `5#3` in the weekday field
    ");
}

#[test]
fn steps() {
    assert_snapshot!(errors(&[(Kron, "*/0 * * * *"), (Ojs, "*/ * * * *"), (Kron, "0 6-22/0 * * *"), (Posix, "*/15 * * * *"), (Posix, "0-30/5 * * * *"), (Kron, "5/15 * * * *"), (Kron, "0 0 * * MON/2")]), @r"
    Step, minute, 2..3: expected a step of at least 1, but found `0`
      | */0 * * * *
      |   ^

    Step, minute, 2..2: expected a step of at least 1, but found nothing
      | */ * * * *
      |   ^

    Step, hour, 7..8: expected a step of at least 1, but found `0`
      | 0 6-22/0 * * *
      |        ^

    Step, minute, 1..4: expected a number from 0 to 59, but found the step `/15`
      | */15 * * * *
      |  ^^^
      = help: write the values: `0,15,30,45`

    Step, minute, 4..6: expected a number from 0 to 59, but found the step `/5`
      | 0-30/5 * * * *
      |     ^^

    Step, minute, 0..4: expected a range before the step, but found `5/15`
      | 5/15 * * * *
      | ^^^^
      = help: write `5-59/15`, from 5 to the end

    Step, weekday, 8..13: expected a range before the step, but found `MON/2`
      | 0 0 * * MON/2
      |         ^^^^^
      = help: write `1-6/2`, from 1 to the end
    ");
}

#[test]
fn characters_that_have_no_place() {
    assert_snapshot!(errors(&[(Kron, "0 9 * * 1–5"), (Kron, "0 9 ☃ * *"), (Kron, "1;2 * * * *"), (Kron, "1- * * * *"), (Kron, "** * * * *"), (Ojs, "/5 * * * *"), (Kron, "@daily 5"), (Posix, "*,5 * * * *")]), @r"
    Unexpected, -, 9..12: expected only ASCII letters, digits and signs, parted by spaces or tabs, but found U+2013
      | 0 9 * * 1–5
      |          ^

    Unexpected, -, 4..7: expected only ASCII letters, digits and signs, parted by spaces or tabs, but found U+2603
      | 0 9 ☃ * *
      |     ^

    Unexpected, minute, 1..3: expected `,`, `-`, `/` or the end of the field, but found `;2`
      | 1;2 * * * *
      |  ^^

    Unexpected, minute, 2..2: expected a number from 0 to 59, but found nothing
      | 1- * * * *
      |   ^

    Unexpected, minute, 1..2: expected `,`, `/` or the end of the field, but found `*`
      | ** * * * *
      |  ^

    Unexpected, minute, 0..2: expected a number from 0 to 59, but found `/5`
      | /5 * * * *
      | ^^

    Unexpected, -, 7..8: expected nothing after `@daily`, but found `5`
      | @daily 5
      |        ^

    Unexpected, minute, 0..1: expected a number from 0 to 59, but found `*` inside a list
      | *,5 * * * *
      | ^
      = help: `*` stands alone: it already means every value
    ");
}

#[test]
fn times_that_never_come() {
    assert_snapshot!(errors(&[(Kron, "0 0 30 2 *"), (Kron, "0 0 31 4,6 *"), (Ojs, "0 0 0 31W 2,4,6,9,11 *")]), @r"
    Never, -, 4..8: this will never match: February has no day 30
      | 0 0 30 2 *
      |     ^^^^

    Never, -, 4..10: this will never match: April and June have no day 31
      | 0 0 31 4,6 *
      |     ^^^^^^

    Never, -, 6..20: this will never match: February, April, June, September and November have no day 31
      | 0 0 0 31W 2,4,6,9,11 *
      |       ^^^^^^^^^^^^^^
    ");
}

/// A zone can take away what the calendar allows. No zone of the database has always done so; a rule can.
#[test]
fn times_that_clocks_always_skip() {
    let rule = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
    let line = "30 2 * 3 SUN#2";
    let error = Expr::parse(line, Ojs).unwrap().compile(&Zone::new(&rule).unwrap(), Dst::OJS).unwrap_err();
    assert_snapshot!(error.render(line), @r"
    this will never match: in a zone without a name clocks always skip the times it names
      | 30 2 * 3 SUN#2
      | ^^^^^^^^^^^^^^
    ");
}

#[test]
fn a_zone_that_is_none() {
    let restless = TimeZone::posix("AAA0BBB,J60/0,J62/0").unwrap();
    let error = Zone::new(&restless).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the clocks of `a zone without a name` change too often: expected at least 5 days before the change at 1970-03-02T23:00:00Z"
    );
}

#[test]
fn nothing_written() {
    for (dialect, line) in [(Kron, ""), (Posix, " \t ")] {
        let error = error(line, dialect);
        assert_eq!((error.kind(), error.span()), (ErrorKind::Empty, 0..0));
        let message = "expected 5 fields (minute hour day month weekday), but found nothing\n  | \n  | ^";
        assert_eq!(error.render(line), message);
    }
}

#[test]
fn too_much_written() {
    let line = format!("{}1 * * * *", "1,".repeat(600));
    let error = error(&line, Kron);
    assert_eq!((error.kind(), error.span()), (ErrorKind::TooLong, 0..line.len()));
    assert_eq!(error.to_string(), "expected at most 1024 bytes, but found 1209");
    // What is shown is cut; the mistake stays in sight.
    assert!(error.render(&line).lines().all(|shown| shown.len() <= 104));
}

#[test]
fn a_mistake_far_into_a_line_stays_in_sight() {
    let line = format!("{}x * * * *", "1,".repeat(100));
    let rendered = error(&line, Kron).render(&line);
    let shown: Vec<&str> = rendered.lines().collect();
    assert_eq!(shown[2].find('^'), shown[1].rfind('x'));
}

/// Tabs and line breaks would move the caret.
#[test]
fn control_characters_are_shown_as_blanks() {
    let line = "0\t9 *\n* *";
    assert_eq!(
        error(line, Posix).render(line),
        "expected only ASCII letters, digits and signs, parted by spaces or tabs, but found U+000A\n  \
         | 0 9 * * *\n  |      ^"
    );
}

/// `Invalid cron expression "<expr>": <field> field <reason>`, as the Declarative seed has it.
#[test]
fn the_declarative_form() {
    let form = |line: &str| {
        let error =
            Expr::parse(line, Posix).and_then(|expr| expr.compile(&Zone::utc(), Dst::POSIX)).unwrap_err();
        let declarative = error.declarative(line);
        assert!(declarative.ends_with(&error.reason()));
        declarative
    };
    let lines = ["60 * * * *", "*/15 * * * *", "0 0 * * mon", "0 0 ? * *", "@daily", "0 0 * *", "0 0 30 2 *"];
    assert_snapshot!(lines.map(form).join("\n"), @r#"
    Invalid cron expression "60 * * * *": minute field must have a number from 0 to 59, but has `60`
    Invalid cron expression "*/15 * * * *": minute field must have a number from 0 to 59, but has the step `/15`
    Invalid cron expression "0 0 * * mon": weekday field must have a number from 0 to 6, but has `mon`
    Invalid cron expression "0 0 ? * *": day field must have a number from 1 to 31, but has `?`
    Invalid cron expression "@daily": expression field must have 5 fields (minute hour day month weekday), but has `@daily`
    Invalid cron expression "0 0 * *": expression field must have 5 fields (minute hour day month weekday), but has 4
    Invalid cron expression "0 0 30 2 *": expression field will never match: February has no day 30
    "#);
}

#[test]
fn an_error_tells_its_parts() {
    let error = error("0 0 * JNA *", Kron);
    assert_eq!(error.kind(), ErrorKind::Name);
    assert_eq!(error.field(), Some(Field::Month));
    assert_eq!(error.span(), 6..9);
    assert_eq!(error.expected(), "a number from 1 to 12 or JAN to DEC");
    assert_eq!(error.found(), "`JNA`");
    assert_eq!(error.help(), Some("did you mean `JAN`?"));
    assert_eq!(error.clone().shifted(10).span(), 16..19);
}

fn error(line: &str, dialect: Dialect) -> ParseError {
    let compiled =
        Expr::parse(line, dialect).and_then(|expr| expr.compile(&Zone::utc(), dialect.default_dst()));
    compiled.expect_err("the line is wrong")
}

/// Each error as kind, field, span and message.
fn errors(lines: &[(Dialect, &str)]) -> String {
    let show = |(dialect, line): &(Dialect, &str)| {
        let error = error(line, *dialect);
        let field = error.field().map_or("-", Field::name);
        format!("{:?}, {field}, {:?}: {}", error.kind(), error.span(), error.render(line))
    };
    lines.iter().map(show).collect::<Vec<_>>().join("\n\n")
}
