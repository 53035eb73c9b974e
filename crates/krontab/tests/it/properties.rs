//! What must hold for every text, however hostile, and for every file that is right.

use krontab::{Krontab, LINE_BYTES_MAX, PROBLEMS_MAX, Parsed};
use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{ZONES, parse, rendered, source};

/// Reads a text and checks everything that can be said about any answer.
fn check(text: &str) -> Parsed {
    let parsed = parse(text);
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').split('\n').collect();
    assert!(parsed.problems.len() <= 2 * PROBLEMS_MAX + 2);
    let last = parsed.problems.len().saturating_sub(2);
    assert!(parsed.problems[..last].is_sorted_by_key(|problem| (problem.line(), problem.column())));
    for problem in &parsed.problems {
        assert!((1..=lines.len()).contains(&problem.line()), "{text:?}");
        let line = lines[problem.line() - 1];
        let chars = line.chars().count();
        assert!((1..=chars + 2).contains(&problem.column()), "{text:?} {problem:?}");
        assert!(problem.end_column() >= problem.column());
        let rendered = problem.render();
        assert!(rendered.lines().count() <= 6 && rendered.chars().count() < 2_000, "{rendered}");
        assert!(!rendered.chars().any(|c| c.is_control() && c != '\n'), "{rendered:?}");
        assert!(!problem.message().contains('\n'));
    }
    for entry in &parsed.entries {
        assert!(!lines[entry.line - 1].trim().is_empty());
        let argv = entry.command.program.argv();
        assert!(argv[0].starts_with('/'));
    }
    parsed
}

/// Every entry means the same in both, line by line.
fn assert_same(one: &Parsed, other: &Parsed, text: &str) {
    assert_eq!(one.entries.len(), other.entries.len(), "{text}\n{}", rendered(&other.problems));
    for (one, other) in one.entries.iter().zip(&other.entries) {
        assert_eq!(one.job, other.job, "{text}");
        assert_eq!(one.command, other.command, "{text}");
        assert_eq!((&one.name, one.line, one.dst), (&other.name, other.line, other.dst));
        assert_eq!(one.description, other.description);
        assert_eq!(one.schedule.resolved(), other.schedule.resolved());
        assert_eq!(one.schedule.kind_name(), other.schedule.kind_name());
    }
}

fn check_canonical(text: &str) {
    let once = Krontab::canonical(text, &source(), &ZONES);
    let twice = Krontab::canonical(&once, &source(), &ZONES);
    assert_eq!(once, twice, "{text:?}");
    assert_same(&check(text), &check(&once), text);
}

fn schedule() -> impl Strategy<Value = String> {
    select(&[
        "0 2 * * *",
        "*/15  9-17 * * mon-fri",
        "0\t0 1,15 * *",
        "5 4 * JAN-mar SUN",
        "@daily",
        "@hourly",
        "@every 90m",
        "@every  1.5h",
        "\"daily\"",
        "\"Daily around 14:00\"",
        "\"weekly on friday  around 5pm\"",
        "\"every 2h\"",
        "\"bi-weekly exactly\"",
    ])
    .prop_map(str::to_owned)
}

/// A text as the value of something: plain, or between quotes with escapes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn text() -> impl Strategy<Value = String> {
    r#"[a-zA-Z0-9 \t"\\=@()#,;äß€/.$*'-]{0,20}"#.prop_map(|text: String| text)
}

/// Modifiers, and which of them stand for each other.
const GROUPS: &[&[&str]] = &[
    &["@tz(Europe/Paris)", "@tz(UTC)", "@tz(America/New_York)"],
    &["@win(after,90m)", "@win(center,3600s)", "@win(before,1m)", "@win(around,5s)"],
    &[
        "@dist(uniform)",
        "@dist(skewEarly,shape=2.50)",
        "@dist(normal,sigma=600s,mu=mid)",
        "@dist(exponential)",
    ],
    &["@policy(deadline=300s)", "@policy(suspend=true,concurrency=allow)", "@policy(concurrency=replace)"],
    &["@dst(fold=both)", "@dst(gap=after,fold=first)"],
    &["@only(hours=1-3,2,5)", "@only(\"dow=6-7; months = jan\")"],
    &["@avoid(date=2026-12-24;dates=2026-12-25..2026-12-26)", "@avoid(between=1:00-02:30)"],
];

fn modifiers() -> impl Strategy<Value = String> {
    let salt = r#"[a-z0-9 "\\=()@#ü-]{0,12}"#
        .prop_map(|salt: String| format!("@seed(weekly,salt={})", quoted(&salt)));
    let fixed = select(GROUPS).prop_flat_map(|group| {
        select(group.to_vec()).prop_map(move |modifier| (group[0], modifier.to_owned()))
    });
    (prop::collection::vec(fixed, 0..5), prop::option::of(salt)).prop_map(|(fixed, salt)| {
        let mut seen = Vec::new();
        let mut out: Vec<String> = salt.into_iter().collect();
        for (group, modifier) in fixed {
            // The first of each group, since most of them may not repeat.
            if group.starts_with("@only") || group.starts_with("@avoid") || !seen.contains(&group) {
                seen.push(group);
                out.push(modifier);
            }
        }
        out.join("  ")
    })
}

fn fields() -> impl Strategy<Value = Vec<String>> {
    let command = prop::collection::vec(text(), 0..4).prop_map(|arguments| {
        let words: Vec<String> = std::iter::once("/bin/echo".to_owned())
            .chain(arguments.iter().map(|word| quoted(word)))
            .collect();
        format!("command={}", quoted(&words.join("  ")))
    });
    let shell = text().prop_map(|text| format!("command={} shell=true", quoted(&format!("x{text}"))));
    let command = prop_oneof![command, shell, Just("command=/bin/true shell=false".to_owned())];
    let env = prop::collection::vec(text(), 0..3).prop_map(|values| {
        let variables = values.iter().enumerate().map(|(n, value)| format!("env=V{n}={}", quoted(value)));
        variables.collect::<Vec<_>>().join(" ")
    });
    let more = select(&[
        "user=www-data group=adm",
        "cwd=\"/a b\"",
        "umask=022 timeout=90m",
        "stdout=file:/var/log/x stderr=syslog",
        "",
    ]);
    let description = text().prop_map(|text| format!("description={}", quoted(&text)));
    (command, env, more, description)
        .prop_map(|(command, env, more, description)| vec![command, env, more.to_owned(), description])
        .prop_shuffle()
}

fn line() -> impl Strategy<Value = String> {
    let entry =
        (schedule(), modifiers(), fields(), 0..1_000u32).prop_map(|(schedule, modifiers, fields, n)| {
            format!("{schedule} {modifiers} name=job-{n}  {} ", fields.join(" "))
        });
    prop_oneof![
        6 => entry,
        1 => Just("# a comment  ".to_owned()),
        1 => Just("  ".to_owned()),
    ]
}

fn file() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..6).prop_map(|lines| lines.join("\n"))
}

/// Pieces of the language in any order, which reach deeper than random characters do.
fn rubble() -> impl Strategy<Value = String> {
    let piece = select(&[
        "0",
        "*",
        "*/5",
        "@daily",
        "@every",
        "5m",
        "\"daily",
        "daily\"",
        "@tz(",
        "@tz(UTC)",
        "@win(after,",
        "1h)",
        "@policy(",
        "deadline=",
        "0s)",
        "@only(hours=1;",
        "@seed(stable,salt=\"",
        "name=",
        "name=a",
        "command=",
        "command=\"",
        "/bin/true",
        "env=A=",
        "shell=true",
        "\\",
        "\"",
        "=",
        "(",
        ")",
        ",",
        ";",
        "#",
        "\t",
        "\r",
        "\n",
        " ",
        "  ",
        "ä",
        "\u{a0}",
        "\u{202e}",
        "\u{feff}",
        "\0",
        "-1h",
        "umask=",
        "022",
        "stdout=file:",
        "@",
        "@avoid()",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        check_canonical(&text);
    }

    #[test]
    fn no_rubble_makes_it_panic(text in rubble()) {
        check_canonical(&text);
    }

    #[test]
    fn valid_files_have_no_errors_and_keep_their_meaning(text in file()) {
        let parsed = check(&text);
        let unexpected: Vec<_> = parsed
            .problems
            .iter()
            .filter(|problem| problem.is_error() && problem.code() != krontab::Code::DuplicateName)
            .cloned()
            .collect();
        prop_assert!(unexpected.is_empty(), "{text}\n{}", rendered(&unexpected));
        check_canonical(&text);
    }

    #[test]
    fn damaged_files_are_told_about(text in file(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<char>(), 0..3u8), 1..4)) {
        let mut chars: Vec<char> = text.chars().collect();
        for (place, c, kind) in damage {
            match (kind, chars.len()) {
                (0, length) => chars.insert(place.index(length + 1), c),
                (1, length) if length > 0 => chars[place.index(length)] = c,
                (_, length) if length > 0 => drop(chars.remove(place.index(length))),
                _ => {}
            }
        }
        check_canonical(&chars.into_iter().collect::<String>());
    }
}

#[test]
fn rubbish_by_the_line_and_by_the_file() {
    for piece in
        ["a=", "a= ", "\"", "@", "@ ", "@only(hours=1) ", "x ", "\\\"", "\"\" ", "env=A=b ", "( ", "\t", "é"]
    {
        // As long as a line may be, a few times over.
        let line = piece.repeat(LINE_BYTES_MAX / piece.len());
        let text = format!("{line}\n0 2 * * * {}\n{line}", &line[..line.len() - 10 * piece.len()]);
        assert!(parse(&text).entries.is_empty());
    }
    let zones = "@daily @tz(Europe/Parix) name=a command=x\n".repeat(2_000);
    assert!(parse(&zones).entries.is_empty());
}
