//! The page for users, `docs/reference/krontab.md`, is true.

use krontab::{Code, Severity};

use crate::world::parse;

const PAGE: &str = include_str!("../../../../docs/reference/krontab.md");

#[test]
fn every_code_has_its_row_and_every_row_its_code() {
    let table = |heading: &str| -> Vec<&str> {
        let rows = PAGE.split(heading).nth(1).unwrap().lines().skip(2);
        rows.take_while(|row| row.starts_with('|')).map(|row| row.split('`').nth(1).unwrap()).collect()
    };
    for (heading, severity) in
        [("| error | means |", Severity::Error), ("| warning | means |", Severity::Warning)]
    {
        let codes = Code::ALL.iter().filter(|code| code.severity() == severity);
        assert_eq!(table(heading), codes.map(|code| code.name()).collect::<Vec<_>>());
    }
}

#[test]
fn every_example_is_a_krontab_without_problems() {
    let examples: Vec<&str> =
        PAGE.split("```krontab\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 3);
    for example in examples {
        let parsed = parse(example);
        assert_eq!(parsed.problems, [], "{example}");
        assert!(!parsed.entries.is_empty());
    }
}
