//! The forms a problem takes: one line, several lines, and an object for programs.

use std::path::Path;

use krontab::{Krontab, Loaded, Severity};
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
        "@daily name=x command=x e\"nv=TOKEN=hunter2\"",
        "@daily name=x command=x env= TOKEN=hunter2",
        "@daily name=x command=x env= hunter2",
        "@daily name=x command=x env=TOKEN= hunter2",
        "@daily name=x command=x env=TOKEN= @hunter2(x)",
        "@daily name=x command=x env=TOKEN=a hunter2",
        "@daily name=x command=x env TOKEN = hunter2",
        "@daily name=x command=x env:TOKEN=hunter2",
        "@daily name=x command=x env=hunter2",
        "@daily name=x command=x evn=TOKEN=hunter2",
        "@daily name=x command=x\u{a0}env=TOKEN=hunter2",
        "@daily name=x command=x\u{3}env=TOKEN=hunter2",
        "@daily name=x command=\"TOKEN=hunter2 /bin/x\"",
        "@daily TOKEN=hunter2 name=x",
        "TOKEN=hunter2",
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

/// The texts that the errors of a line are about, and how many are about something that is missing.
fn blamed(line: &str) -> (Vec<String>, usize) {
    let problems = parse(line).problems;
    let errors: Vec<_> = problems.iter().filter(|problem| problem.is_error()).collect();
    let texts = errors.iter().map(|problem| line[problem.span()].to_owned());
    let (missing, blamed): (Vec<_>, Vec<_>) = texts.partition(String::is_empty);
    (blamed, missing.len())
}

#[test]
fn one_mistake_of_a_line_does_not_hide_another() {
    for (line, texts, missing) in [
        ("61 25 * * 9 name=a command=/bin/a", &["61", "25", "9"][..], 0),
        ("0,60,x 1-99 * * mon,FIR name=a command=/bin/a", &["60", "x", "99", "FIR"], 0),
        ("@daily @only(hors=1;dow=MOON;hours=99) name=a command=/bin/a", &["hors", "MOON", "99"], 0),
        ("@daily @avoid(hours=24,3,25;dom=0) name=a command=/bin/a", &["24", "25", "0"], 0),
        ("@daily @win(aftr,1x) name=a command=/bin/a", &["aftr", "x"], 0),
        (
            "@daily @win(after,1h) @dist(normal,mu=foo,sigma=-1s,x=1,y) name=a command=/bin/a",
            &["foo", "-1s", "x", "y"],
            0,
        ),
        (
            "@daily @win(after,1h) @dist(skewEarly,shape=0.1x,shape=2) name=a command=/bin/a",
            &["0.1x", "shape"],
            0,
        ),
        ("@tz(UTC) 0 0 * * * @win(foo,1h) name=q_q bogus=1", &["@tz(UTC)", "foo", "q_q", "bogus"], 1),
        ("@tz(UTC) 0 24 * * * name=a command=/bin/a", &["@tz(UTC)", "24"], 0),
        ("@tz(UTC) \"daily around 25:00\" name=a command=/bin/a", &["@tz(UTC)", "25:00"], 0),
        ("@daily name=a @win(foo,1h) command=/bin/a", &["@win(foo,1h)", "foo"], 0),
        (
            "@daily @tz(UTC) @tz(Pluto) name=a name=q_q command=/bin/a",
            &["@tz(Pluto)", "Pluto", "name", "q_q"],
            0,
        ),
        // What follows an open quote, or a backslash at the end, cannot be told to be missing.
        ("61 * * * * name=q_q command=\"/bin/a", &["61", "q_q", "\"/bin/a"], 0),
        ("61 * \"* * * name=a command=/bin/a", &["\"* * * name=a command=/bin/a"], 0),
        ("@every \"1h name=a command=/bin/a", &["\"1h name=a command=/bin/a"], 0),
        ("61 * * * * name=q_q \\", &["61", "q_q", "\\"], 0),
        ("61\u{a0}* * * * name=q_q\u{a0}command=x", &["61", "\u{a0}", "q_q", "\u{a0}", "x"], 0),
        ("61 *\u{1} * * * name=q_q\u{7f} command=x", &["61", "\u{1}", "\u{7f}", "x"], 0),
        ("@daily na\u{1}me=a command=/bin/a", &["\u{1}"], 0),
        ("@daily\u{b}name=a command=/bin/a bogus=1", &["\u{b}", "bogus"], 0),
    ] {
        assert_eq!(blamed(line), (texts.iter().map(ToString::to_string).collect(), missing), "{line}");
        assert_eq!(parse(line).entries.len(), 0, "{line}");
    }
}

#[test]
fn a_phrase_keeps_the_codes_of_its_language_beside_the_message() {
    let problem = parse("\"daily around 25:00\" name=a command=/bin/a").problems.remove(0);
    let json = serde_json::to_value(&problem).unwrap();
    assert_eq!(json["code"], "phrase");
    assert_eq!(json["message"], "Invalid time format '25:00' in 'daily around 25:00'");
    assert_eq!(json["phraseCode"], "ERR-SYNTAX-002");
    assert_eq!(json["cause"], json!({"code": "ERR-TIME-001", "message": "the hour is not from 0 to 23"}));
    assert!(problem.render().ends_with("\n  = code: ERR-SYNTAX-002 (ERR-TIME-001)"), "{}", problem.render());
    let problem = parse("\"monthly\" name=a command=/bin/a").problems.remove(0);
    let json = serde_json::to_value(&problem).unwrap();
    assert_eq!((&json["phraseCode"], &json["cause"]), (&json!("ERR-SYNTAX-001"), &json!(null)));
}

#[test]
fn remarks_about_phrases_have_the_kinds_of_their_language() {
    for (phrase, codes) in [
        ("every 5 minutes", &["fixed-interval"][..]),
        ("every 7 minutes", &["fixed-interval", "uneven-step"]),
        ("bi-weekly", &["day-step"]),
        ("weekly on monday around 1am utc+9", &["weekday-moved"]),
        ("daily around 9:00 pt", &["ambiguous-zone"]),
        ("daily between 9:00 utc+1 and 17:00", &["one-sided-offset"]),
    ] {
        let problems = parse(&format!("\"{phrase}\" name=a command=/bin/a")).problems;
        let found: Vec<&str> = problems.iter().map(|problem| problem.code().name()).collect();
        assert_eq!(found, codes, "{phrase}");
    }
}

#[test]
fn phrases_of_several_files_that_fall_together_are_told_once() {
    let file = |path: &str, numbers: std::ops::RangeInclusive<u32>| {
        let entry = |n: u32| format!("\"hourly\" name=backup-{n} command=/bin/true\n");
        let text: String = numbers.map(entry).collect();
        Loaded::parse(Path::new(path), text.into_bytes(), &source(), &ZONES)
    };
    let (mut one, mut other) = (file("/etc/krond.d/one", 1..=2), file("/etc/krond.d/other", 3..=4));
    assert!(one.parsed.problems.is_empty() && other.parsed.problems.is_empty());
    krontab::join_clusters(&mut [&mut one, &mut other]);
    let told: Vec<_> =
        one.parsed.problems.iter().map(|problem| (problem.file(), problem.code().name())).collect();
    assert_eq!(told, [("/etc/krond.d/one", "cluster")]);
    assert!(other.parsed.problems.is_empty());
}
