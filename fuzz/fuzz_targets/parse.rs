//! Any text, in every dialect, is an expression or a mistake with a place in it.
#![no_main]

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use kron_schedule::{Dialect, Expr, ParseError, Zone};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for dialect in Dialect::ALL {
        match Expr::parse(text, dialect) {
            Ok(expr) => is_whole(&expr, text, dialect),
            Err(error) => has_a_place(&error, text),
        }
    }
});

/// It has one canonical spelling, which means the same, and compiles or says why not.
fn is_whole(expr: &Expr, text: &str, dialect: Dialect) {
    assert_eq!(expr.dialect(), dialect);
    let canonical = expr.to_string();
    let again = Expr::parse(&canonical, dialect).expect("the canonical spelling is an expression");
    assert_eq!(again, *expr, "{text:?} became {canonical:?}, which means something else");
    assert_eq!(again.to_string(), canonical, "{text:?} has two canonical spellings");
    assert_eq!(again.describe(), expr.describe());
    for warning in expr.warnings() {
        assert!(text.get(warning.span()).is_some_and(|place| !place.starts_with(' ')), "{warning}");
        assert!(!warning.render(text).is_empty());
    }

    for zone in &*ZONES {
        match (expr.compile(zone, dialect.default_dst()), again.compile(zone, dialect.default_dst())) {
            (Ok(schedule), Ok(same)) => assert_eq!(schedule, same),
            (Err(error), Err(_)) => has_a_place(&error, text),
            (one, other) => panic!("{text:?} and {canonical:?} differ: {one:?} and {other:?}"),
        }
    }
}

/// The span is a part of the text, and every form of the message can be made.
fn has_a_place(error: &ParseError, text: &str) {
    assert!(text.get(error.span()).is_some(), "{:?} is no part of {text:?}", error.span());
    assert!(!error.render(text).is_empty());
    assert!(!error.declarative(text).is_empty());
    assert!(!error.to_string().is_empty());
}

static ZONES: LazyLock<[Zone; 2]> = LazyLock::new(|| {
    let new_york = TimeZone::get("America/New_York").expect("the database is bundled");
    [Zone::utc(), Zone::new(&new_york).expect("its clocks change twice a year")]
});
