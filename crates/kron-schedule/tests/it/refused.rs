//! What each dialect must refuse: the nine rules of the Declarative seed, the list of OJS 3.5, and
//! whatever else anyone may send.

use kron_schedule::Dialect::{Kron, Ojs, Posix};
use kron_schedule::{Dialect, Dst, ErrorKind, Expr, Field, Zone};
use proptest::prelude::*;

/// All lines are refused, each for the given reason and field.
fn refused(dialect: Dialect, kind: ErrorKind, field: Option<Field>, lines: &[&str]) {
    for line in lines {
        match Expr::parse(line, dialect) {
            Ok(expr) => panic!("{line:?} was taken for {expr}"),
            Err(error) => assert_eq!((error.kind(), error.field()), (kind, field), "{line:?}: {error}"),
        }
    }
}

fn taken(dialect: Dialect, lines: &[&str]) {
    for line in lines {
        Expr::parse(line, dialect).unwrap_or_else(|error| panic!("{}", error.render(line)));
    }
}

// The Declarative seed, "Validation Rules".

#[test]
fn posix_1_not_exactly_five_fields() {
    let lines = ["*", "* * * *", "* * * * * *", "0 0 0 1 1 * 2026"];
    refused(Posix, ErrorKind::FieldCount, None, &lines);
    refused(Posix, ErrorKind::Empty, None, &["", " ", "\t \t"]);
    // Blanks are spaces and tabs, any number of them, and nothing else.
    taken(Posix, &["  0\t0 \t *  * *\t "]);
    let lines = ["0 0 * *\n*", "0\u{a0}0 * * *", "0 0 * * *\r", "0\u{2003}0 * * *", "0 0 * *\u{b}*"];
    refused(Posix, ErrorKind::Unexpected, None, &lines);
}

#[test]
fn posix_2_steps() {
    let lines =
        ["*/15 * * * *", "0-30/5 * * * *", "5/15 * * * *", "*/1 * * * *", "*/0 * * * *", "*/ * * * *"];
    refused(Posix, ErrorKind::Step, Some(Field::Minute), &lines);
}

#[test]
fn posix_3_names() {
    refused(Posix, ErrorKind::Name, Some(Field::Month), &["0 0 * jan *", "0 0 * JAN-3 *", "0 0 * 1,Feb *"]);
    refused(
        Posix,
        ErrorKind::Name,
        Some(Field::Weekday),
        &["0 0 * * mon", "0 0 * * sunday", "0 0 * * 1-FRI"],
    );
}

#[test]
fn posix_4_macros() {
    refused(Posix, ErrorKind::Alias, None, &["@daily", "@hourly", "@every 5m", "@reboot", " @yearly", "@"]);
}

#[test]
fn posix_5_quartz_tokens() {
    let lines = ["0 0 ? * *", "0 0 L * *", "0 0 15W * *", "0 0 LW * *", "0 0 W * *"];
    refused(Posix, ErrorKind::Special, Some(Field::Day), &lines);
    let lines = ["0 0 * * ?", "0 0 * * 5L", "0 0 * * 5#3", "0 0 * * L"];
    refused(Posix, ErrorKind::Special, Some(Field::Weekday), &lines);
}

#[test]
fn posix_6_weekday_7() {
    refused(Posix, ErrorKind::Range, Some(Field::Weekday), &["0 0 * * 7", "0 0 * * 5-7", "0 0 * * 1,07"]);
}

#[test]
fn posix_7_ranges_that_wrap_around() {
    refused(Posix, ErrorKind::Reversed, Some(Field::Hour), &["0 22-6 * * *", "0 1-0 * * *"]);
    refused(Posix, ErrorKind::Reversed, Some(Field::Weekday), &["0 0 * * 5-1", "0 0 * * 6-0"]);
    taken(Posix, &["0 6-6 * * *"]);
}

#[test]
fn posix_8_values_out_of_range() {
    refused(
        Posix,
        ErrorKind::Range,
        Some(Field::Minute),
        &["60 * * * *", "0-60 * * * *", "99999999999 * * * *"],
    );
    refused(Posix, ErrorKind::Range, Some(Field::Hour), &["0 24 * * *"]);
    refused(Posix, ErrorKind::Range, Some(Field::Day), &["0 0 0 * *", "0 0 32 * *", "0 0 0-5 * *"]);
    refused(Posix, ErrorKind::Range, Some(Field::Month), &["0 0 * 0 *", "0 0 * 13 *"]);
    taken(Posix, &["0 0 1 1 0", "59 23 31 12 6", "000 00 01 012 06"]);
}

#[test]
fn posix_9_numbers_that_are_not_decimal() {
    let lines = [
        "1e1 * * * *",
        "0x1F * * * *",
        "+5 * * * *",
        "-5 * * * *",
        "1.5 * * * *",
        "1-+5 * * * *",
        "1--5 * * * *",
    ];
    refused(Posix, ErrorKind::Number, Some(Field::Minute), &lines);
    refused(Posix, ErrorKind::Unexpected, None, &["٣ * * * *", "１ * * * *"]); // digits, but not these
}

/// The grammar has `*` alone or a list of numbers and ranges.
#[test]
fn posix_stars_stand_alone() {
    let lines = [
        "*,5 * * * *",
        "5,* * * * *",
        "*,* * * * *",
        "** * * * *",
        "*-5 * * * *",
        "1-* * * * *",
        "*5 * * * *",
    ];
    refused(Posix, ErrorKind::Unexpected, Some(Field::Minute), &lines);
    refused(
        Posix,
        ErrorKind::EmptyItem,
        Some(Field::Minute),
        &[", * * * *", "1, * * * *", ",1 * * * *", "1,,2 * * * *"],
    );
}

#[test]
fn posix_takes_the_seeds_examples() {
    taken(
        Posix,
        &["0 0 * * *", "15 3 * * 1-5", "0,30 * * * *", "0 12 14 2 *", "15,30,45,0 * * * *", "0 0 1,15 * 1"],
    );
}

// OJS Cron 3.5, "The following MUST be treated as validation errors".

#[test]
fn ojs_values_outside_the_range_of_a_field() {
    refused(Ojs, ErrorKind::Range, Some(Field::Second), &["60 0 0 * * *"]);
    refused(Ojs, ErrorKind::Range, Some(Field::Minute), &["60 * * * *"]);
    refused(Ojs, ErrorKind::Range, Some(Field::Hour), &["0 24 * * *"]);
    refused(Ojs, ErrorKind::Range, Some(Field::Month), &["0 0 * 13 *", "0 0 * 0 *"]);
    refused(
        Ojs,
        ErrorKind::Range,
        Some(Field::Weekday),
        &["0 0 * * 8", "0 0 * * 5-8", "0 0 * * 8L", "0 0 * * 8#1"],
    );
}

#[test]
fn ojs_days_that_are_never_valid() {
    refused(
        Ojs,
        ErrorKind::Range,
        Some(Field::Day),
        &["0 0 32 * *", "0 0 0 * *", "0 0 32W * *", "0 0 1-32 * *"],
    );
}

#[test]
fn ojs_malformed_ranges() {
    refused(Ojs, ErrorKind::Unexpected, Some(Field::Minute), &["1- * * * *", "1-2-3 * * * *", "*-5 * * * *"]);
    refused(Ojs, ErrorKind::Number, Some(Field::Minute), &["-1 * * * *"]);
    refused(Ojs, ErrorKind::Reversed, Some(Field::Minute), &["5-1 * * * *"]);
}

#[test]
fn ojs_malformed_steps() {
    refused(
        Ojs,
        ErrorKind::Step,
        Some(Field::Minute),
        &["*/ * * * *", "*/x * * * *", "*/-1 * * * *", "1-5/ * * * *"],
    );
    refused(Ojs, ErrorKind::Unexpected, Some(Field::Minute), &["/5 * * * *", "*/5/5 * * * *"]);
    refused(Ojs, ErrorKind::Number, Some(Field::Minute), &["*/1.5 * * * *"]);
}

#[test]
fn ojs_step_zero() {
    refused(
        Ojs,
        ErrorKind::Step,
        Some(Field::Minute),
        &["*/0 * * * *", "1-5/0 * * * *", "5/0 * * * *", "*/00 * * * *"],
    );
}

#[test]
fn ojs_empty_expressions() {
    refused(Ojs, ErrorKind::Empty, None, &["", " ", "\t"]);
}

#[test]
fn ojs_specials_out_of_place() {
    let lines =
        ["0 0 L-3 * *", "0 0 1-15W * *", "0 0 W * *", "0 0 5L * *", "0 0 5#3 * *", "0 0 LL * *", "0 0 ? * *"];
    for line in lines {
        assert_eq!(Expr::parse(line, Ojs).unwrap_err().field(), Some(Field::Day), "{line}");
    }
    let lines = [
        "0 0 * * L",
        "0 0 * * LW",
        "0 0 * * 5W",
        "0 0 * * 5#0",
        "0 0 * * 5#6",
        "0 0 * * 1-5L",
        "0 0 * * 5#1-2",
    ];
    for line in lines {
        assert_eq!(Expr::parse(line, Ojs).unwrap_err().field(), Some(Field::Weekday), "{line}");
    }
}

/// A day that only some months have is legal: the job does not fire in the others.
#[test]
fn ojs_days_of_some_months_are_taken() {
    let lines = ["0 0 31 * *", "0 0 30 1-2 *", "0 0 29 2 *", "0 0 31W * *"];
    for line in lines {
        Expr::parse(line, Ojs).unwrap().compile(&Zone::utc(), Dst::OJS).unwrap();
    }
}

// Every dialect.

#[test]
fn what_cannot_match_is_refused_when_compiled() {
    for (dialect, line) in [(Posix, "0 0 30 2 *"), (Kron, "0 0 31 4,6,9,11 *"), (Ojs, "0 0 0 30W feb *")] {
        let error =
            Expr::parse(line, dialect).unwrap().compile(&Zone::utc(), dialect.default_dst()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Never, "{line}");
    }
}

proptest! {
    /// Nothing panics, and every span lies within the text, between characters.
    #[test]
    fn any_text_is_answered(text in hostile(), shift in 0..3usize) {
        for dialect in Dialect::ALL {
            let parsed = Expr::parse(&text, dialect).and_then(|expr| {
                expr.compile(&Zone::utc(), dialect.default_dst())?;
                Ok(expr)
            });
            match parsed {
                Ok(expr) => prop_assert_eq!(Expr::parse(&expr.to_string(), dialect), Ok(expr)),
                Err(error) => {
                    prop_assert!(text.get(error.span()).is_some(), "{:?} in {:?}", error.span(), text);
                    prop_assert!(error.render(&text).starts_with(&error.to_string()));
                    prop_assert!(error.declarative(&text).contains(&text));
                    // Nor does a message panic that is shown with a text it was not made for.
                    prop_assert!(!error.shifted(shift).render(&text).is_empty());
                }
            }
        }
    }
}

/// Anything at all, anything long, and what looks much like an expression.
fn hostile() -> impl Strategy<Value = String> {
    let piece = r"[0-9*,/\-LW#?@a-zA-Z \t]|\*/|[0-9]{1,30}|[A-Za-z]{3}|é|☃|\n";
    let field = r"(\*|[0-9]{1,2}|[A-Z]{3})([-/#,LW]([0-9]{1,2}|[A-Z]{3}|\*)?){0,4}";
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat()),
        proptest::collection::vec(field, 4..8).prop_map(|fields| fields.join(" ")),
        "@every [-+]?[0-9]{0,25}(\\.[0-9]{0,25})?[a-zµ]{0,3}[0-9hms]{0,5}",
        "@[a-z]{0,12}( .{0,5})?",
        ("[,*/0-9L-]{1,4}", 200..2_000usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}
