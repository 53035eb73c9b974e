//! Files that are too long, too many or not text.

use krontab::{Code, FILE_BYTES_MAX, JOBS_MAX, Krontab, LINE_BYTES_MAX, PROBLEMS_MAX, Parsed, Problem, read};

use crate::world::{ZONES, codes, parse, rendered, source};

#[test]
fn a_file_has_at_most_a_mebibyte() {
    let fits = format!("@daily name=a command=/bin/true\n#{}\n", "x".repeat(FILE_BYTES_MAX - 34));
    assert_eq!(fits.len(), FILE_BYTES_MAX);
    assert_eq!(codes(&fits), []);
    let parsed = parse(&format!("{fits}\n"));
    assert_eq!(parsed.problems.len(), 1);
    assert_eq!(parsed.problems[0].code(), Code::FileTooLong);
    assert!(parsed.entries.is_empty());
}

#[test]
fn a_line_has_at_most_64_kibibytes() {
    let line = |length: usize| {
        let start = "@daily name=a command=/bin/true description=";
        format!("{start}{}", "x".repeat(length - start.len()))
    };
    assert_eq!(codes(&line(LINE_BYTES_MAX)), []);
    assert_eq!(codes(&line(LINE_BYTES_MAX + 1)), [Code::LineTooLong]);
    // What nobody reads as an entry may be of any length.
    assert_eq!(codes(&format!("#{}", "x".repeat(LINE_BYTES_MAX + 1))), []);
}

#[test]
fn a_file_has_at_most_10_000_jobs_and_they_share_their_zones() {
    let mut text: String =
        (0..JOBS_MAX).map(|n| format!("0 2 * * * @tz(Europe/Paris) name=j{n} command=/bin/true\n")).collect();
    let parsed = parse(&text);
    assert_eq!((parsed.entries.len(), parsed.problems.len()), (JOBS_MAX, 0));
    text.push_str("@daily name=more command=/bin/true\n@daily name=again command=/bin/true\n");
    let parsed = parse(&text);
    assert_eq!(parsed.entries.len(), JOBS_MAX);
    assert_eq!(parsed.problems.len(), 1);
    assert_eq!((parsed.problems[0].code(), parsed.problems[0].line()), (Code::TooMany, JOBS_MAX + 1));
}

#[test]
fn an_entry_has_at_most_64_modifiers_of_64_clauses() {
    let clauses = |count: usize| vec!["hours=1"; count].join(";");
    let line = |modifiers: &str| format!("@daily {modifiers} name=a command=/bin/true");
    assert_eq!(codes(&line(&format!("@only({})", clauses(64)))), []);
    assert_eq!(codes(&line(&format!("@only({})", clauses(65)))), [Code::Constraint]);
    assert_eq!(codes(&line(&"@avoid(hours=1) ".repeat(64))), []);
    assert_eq!(codes(&line(&"@avoid(hours=1) ".repeat(65))), [Code::TooMany]);
}

#[test]
fn the_first_hundred_problems_are_told_and_the_rest_counted() {
    let mut text: String = (0..1_000).map(|n| format!("0 0 13 * 5 name=j{n} command=/bin/true\n")).collect();
    text.push_str(&"nonsense\n".repeat(500));
    let parsed = parse(&text);
    assert_eq!(parsed.error_count(), 500, "the line that counts the rest is none of them");
    let problems = parsed.problems;
    assert_eq!(problems.len(), 2 * PROBLEMS_MAX + 2);
    let [.., errors, warnings] = problems.as_slice() else {
        panic!("there are more than two");
    };
    assert_eq!(errors.code(), Code::MoreErrors);
    assert_eq!((errors.message(), errors.line()), ("and 400 more errors, from here on", 1_101));
    assert_eq!(warnings.code(), Code::MoreWarnings);
    assert_eq!((warnings.message(), warnings.line()), ("and 900 more warnings, from here on", 101));
    let one_more = parse(&"nonsense\n".repeat(PROBLEMS_MAX + 1)).problems;
    assert_eq!(one_more[PROBLEMS_MAX].message(), "and 1 more error, from here on");
}

fn of_bytes(bytes: &[u8]) -> Parsed {
    Krontab::parse_bytes(bytes, &source(), &ZONES)
}

#[test]
fn bytes_that_are_not_text_are_pointed_at() {
    let problems = of_bytes(b"# fine\n@daily name=\xc3\xa4\xff\xfe command=x\n").problems;
    assert_eq!(
        rendered(&problems),
        "error[encoding]: expected UTF-8, but found the byte 0xFF\n  --> /etc/krond.d/test:2:14\n  \
         | @daily name=ä\u{fffd}\u{fffd} command=x\n  |              ^\n  = help: save it as UTF-8\n"
    );
    let long = vec![b'#'; FILE_BYTES_MAX + 5];
    let read = read(long.as_slice()).unwrap();
    assert_eq!(read.len(), FILE_BYTES_MAX + 1);
    assert_eq!(of_bytes(&read).problems[0].code(), Code::FileTooLong);
}

#[test]
fn a_line_that_is_no_text_hides_no_other_problem() {
    let text = b"# caf\xe9\n@dayly name=a command=/bin/true\n@daily name=\xe9 command=\n@daily name=b command=/bin/true\n";
    let parsed = of_bytes(text);
    let found: Vec<_> = parsed.problems.iter().map(|problem| (problem.line(), problem.code())).collect();
    assert_eq!(found, [(1, Code::Encoding), (2, Code::Schedule), (3, Code::Encoding)]);
    assert_eq!(parsed.entries.len(), 1);
    assert_eq!((parsed.entries[0].name.as_str(), parsed.entries[0].line), ("b", 4));
    // A file in UTF-16 is one problem and not one for each of its lines.
    let problems = of_bytes(b"\xff\xfe@\0d\0\n\0x\0\n\0").problems;
    let messages: Vec<_> = problems.iter().map(Problem::message).collect();
    assert_eq!(messages, ["expected UTF-8, but found UTF-16"]);
}

#[test]
fn odd_texts_of_few_lines() {
    assert_eq!(codes(""), []);
    assert_eq!(codes("\n\n"), []);
    assert_eq!(codes(" \t \n  # c"), []);
    assert_eq!(codes("\u{feff}"), [Code::ByteOrderMark]);
    assert_eq!(codes("\r\n"), [Code::LineEnding]);
    assert_eq!(codes("# a\rb\n"), []);
    assert_eq!(codes("@daily name=a\rcommand=/bin/true"), [Code::ControlCharacter]);
    assert_eq!(codes("@daily name=a command=/bin/true\0"), [Code::ControlCharacter]);
    // The last line need not end.
    assert_eq!(parse("@daily name=a command=/bin/true").entries.len(), 1);
}

#[test]
fn an_expression_has_at_most_1024_bytes() {
    let line = |bytes: usize| {
        let minutes = format!("0{}", ",0".repeat((bytes - 9) / 2));
        let expression = format!("{minutes} * * * *");
        assert!(expression.len() == bytes, "{}", expression.len());
        format!("{expression} name=a command=/bin/true")
    };
    let page = include_str!("../../../../docs/reference/krontab.md");
    assert!(page.contains("| a cron expression | 1,024 bytes |"));
    assert_eq!(codes(&line(1_023)), []);
    assert_eq!(codes(&line(1_025)), [Code::Schedule]);
}
