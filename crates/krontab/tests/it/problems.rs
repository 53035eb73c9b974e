//! The forms a problem takes: one line, several lines, and an object for programs.

use krontab::{Krontab, Severity};
use serde_json::json;

use crate::world::{ZONES, parse, source};

const LINE: &str = "@daily @policy(concurency=forbid) name=x command=/bin/true";

#[test]
fn on_one_line_and_on_several() {
    let problem = parse(LINE).problems.remove(0);
    assert_eq!(
        problem.to_string(),
        "/etc/krond.d/test:1:16: error: unknown key `concurency`; did you mean `concurrency`?"
    );
    assert_eq!((problem.line(), problem.column(), problem.end_column()), (1, 16, 26));
    assert_eq!(problem.span(), 15..25);
    assert_eq!((problem.severity(), problem.is_error()), (Severity::Error, true));
    assert_eq!(problem.code().to_string(), "unknown-key");
    assert_eq!(problem.file(), "/etc/krond.d/test");
}

#[test]
fn as_an_object_for_programs() {
    let problems = parse("0 0 13 * 5 name=x command=rsync").problems;
    assert_eq!(
        serde_json::to_value(&problems).unwrap(),
        json!([
            {
                "severity": "warning", "code": "either-day", "file": "/etc/krond.d/test",
                "line": 1, "column": 5, "endColumn": 11,
                "message": "a day needs to satisfy only one of the two day fields, not both",
            },
            {
                "severity": "error", "code": "command", "file": "/etc/krond.d/test",
                "line": 1, "column": 27, "endColumn": 32,
                "message": "expected an absolute path, but found `rsync`",
                "help": "write the whole path, such as `/usr/bin/rsync`, or add `shell=true`",
            },
        ])
    );
}

#[test]
fn columns_count_characters_and_follow_quotes_and_escapes() {
    let line = r#"@daily name=x command="/bin/ä \"é" user="a b""#;
    let problems = parse(line).problems;
    let shown: Vec<String> = problems
        .iter()
        .map(|problem| {
            let width = problem.end_column() - problem.column();
            line.chars().skip(problem.column() - 1).take(width).collect()
        })
        .collect();
    assert_eq!(shown, ["\"é", "a b"]);
}

#[test]
fn messages_name_the_file_as_they_are_told_to() {
    let source = source().shown_as("draft\u{1b}[31m");
    let problem = Krontab::parse(LINE, &source, &ZONES).problems.remove(0);
    assert_eq!(problem.file(), "draft?[31m");
}

#[test]
fn no_form_of_a_problem_tells_a_secret() {
    let secret = "hunter2";
    for line in [
        "@daily name=x command=x env=TOKEN=hunter2",
        "@daily name=x command=x env=\"TOKEN=hunter2\"",
        "@daily name=x command=x \"env=TOKEN=a hunter2\"",
        "@daily name=x command=x env==hunter2",
        "@daily name=x command=x env=KRON_A=hunter2",
        "@daily name=x command=x env=A=1 env=A=hunter2",
        "@daily name=x command=\"x env=TOKEN=hunter2",
        "@daily name=x command=x env=TOKEN=hunter2\\",
        "@daily name=x command=x env=TOKEN=hunter2\u{a0}",
        "@daily name=x command=x env=TOKEN=hunter2\u{1}",
    ] {
        let parsed = parse(line);
        assert!(parsed.has_errors(), "{line}");
        for problem in &parsed.problems {
            let json = serde_json::to_string(problem).unwrap();
            for text in [problem.render(), problem.to_string(), json, format!("{problem:?}")] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
    let entry = crate::world::with_fields("env=TOKEN=hunter2");
    assert!(!format!("{entry:?}").contains(secret));
}

#[test]
fn phrases_that_fall_together_are_told_once() {
    let entry = |n: u32| format!("\"hourly\" name=backup-{n} command=/bin/true\n");
    let text: String = (1..=4).map(entry).collect();
    let parsed = parse(&text);
    let told: Vec<_> =
        parsed.problems.iter().map(|problem| (problem.line(), problem.code().name())).collect();
    assert_eq!(told, [(1, "cluster")]);
}
