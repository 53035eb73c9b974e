//! What was written becomes the job and the command that it says.

use kron_core::{Distribution, Overlap, Policy, SeedStrategy, Window, WindowMode, decide};
use kron_schedule::{Dst, Duration, Fold, Gap};
use krontab::{Krontab, Output, Program, ScheduleKind, Source};

use crate::world::{ZONES, entry, parse, source, with_fields, with_modifiers};

#[test]
fn what_is_not_written_has_its_default() {
    let entry = entry("0 2 * * * name=backup command=/bin/true");
    assert_eq!(entry.name, "backup");
    assert_eq!(entry.line, 1);
    assert_eq!(entry.identity(), "/etc/krond.d/test:backup");
    assert_eq!(entry.zone_name(), "UTC");
    assert_eq!(entry.dst, Dst { gap: Gap::Skip, fold: Fold::Auto });
    assert_eq!(*entry.job.window(), Window::NONE);
    assert_eq!(*entry.job.distribution(), Distribution::Uniform);
    assert_eq!(entry.job.seed_strategy(), SeedStrategy::Stable);
    assert_eq!(entry.job.salt(), "");
    assert!(entry.job.constraints().is_empty());
    let policy = Policy { overlap: Overlap::Forbid, deadline: Some(Duration::ZERO), suspend: false };
    assert_eq!(*entry.job.policy(), policy);
    let command = &entry.command;
    assert_eq!(command.program, Program::Argv(vec!["/bin/true".into()]));
    assert_eq!((&command.user, &command.group, &command.cwd), (&None, &None, &None));
    assert_eq!((command.umask, command.timeout), (None, None));
    assert_eq!((&command.stdout, &command.stderr), (&Output::Inherit, &Output::Inherit));
    assert!(command.env.is_empty());
    assert_eq!(entry.description, None);
}

#[test]
fn every_modifier_changes_the_job() {
    assert_eq!(with_modifiers("@tz(Asia/Kathmandu)").zone_name(), "Asia/Kathmandu");
    for (written, mode) in [
        ("after", WindowMode::After),
        ("around", WindowMode::Around),
        ("center", WindowMode::Around),
        ("before", WindowMode::Before),
    ] {
        let window = *with_modifiers(&format!("@win({written},90m)")).job.window();
        assert_eq!(window, Window::new(mode, Duration::from_seconds(5_400)).unwrap());
    }
    let window = "@win(after,1h)";
    for (written, distribution) in [
        ("uniform", Distribution::Uniform),
        ("skewEarly", Distribution::SkewEarly { shape: 2.0 }),
        ("skewLate,shape=2.5", Distribution::SkewLate { shape: 2.5 }),
        ("normal,sigma=10m", Distribution::Normal { mu: None, sigma: Some(Duration::from_seconds(600)) }),
    ] {
        let entry = with_modifiers(&format!("{window} @dist({written})"));
        assert_eq!(*entry.job.distribution(), distribution);
    }
    for (written, strategy, salt) in [
        ("stable", SeedStrategy::Stable, ""),
        ("daily,salt=a", SeedStrategy::Daily, "a"),
        ("weekly,salt=", SeedStrategy::Weekly, ""),
        ("stable,salt=\"  team alpha \"", SeedStrategy::Stable, "team alpha"),
        ("stable,salt=k=v", SeedStrategy::Stable, "k=v"),
        ("stable,salt=f(x)", SeedStrategy::Stable, "f(x)"),
    ] {
        let entry = with_modifiers(&format!("{window} @seed({written})"));
        assert_eq!((entry.job.seed_strategy(), entry.job.salt()), (strategy, salt));
    }
    for (written, overlap, deadline, suspend) in [
        ("concurrency=allow", Overlap::Allow, 0, false),
        ("concurrency=replace,deadline=5m", Overlap::Replace, 300, false),
        ("suspend=true,concurrency=forbid", Overlap::Forbid, 0, true),
        ("suspend=false", Overlap::Forbid, 0, false),
    ] {
        let deadline = Some(Duration::from_seconds(deadline));
        let entry = with_modifiers(&format!("@policy({written})"));
        assert_eq!(*entry.job.policy(), Policy { overlap, deadline, suspend });
    }
    for (written, gap, fold) in [
        ("gap=after", Gap::After, Fold::Auto),
        ("fold=first", Gap::Skip, Fold::First),
        ("fold=both,gap=skip", Gap::Skip, Fold::Both),
        ("gap=after,fold=auto", Gap::After, Fold::Auto),
    ] {
        assert_eq!(with_modifiers(&format!("@dst({written})")).dst, Dst { gap, fold });
    }
}

#[test]
fn constraints_merge_whatever_their_number_and_order() {
    let entry = with_modifiers(
        "@avoid(dow=SUN) @only(hours=8) @only(\"hours=9; dow=MON-FRI;\") @avoid(date=2026-12-24)",
    );
    assert_eq!(
        entry.job.constraints().to_string(),
        "only(hours=8-9;dow=MON-FRI) avoid(dow=SUN;date=2026-12-24)"
    );
}

#[test]
fn modifiers_may_stand_in_any_order() {
    let one = with_modifiers("@win(after,1h) @tz(Europe/Paris) @seed(daily)");
    let other = with_modifiers("@seed(daily) @tz(Europe/Paris) @win(after,1h)");
    assert_eq!(one.job, other.job);
}

#[test]
fn every_field_is_read() {
    let entry = with_fields(
        "shell=false user=www-data group=adm cwd=/var/www env=A=1 env=\"B=two words\" env=C==x env=D= umask=0027 \
         timeout=1.5h stdout=file:/var/log/x stderr=discard description=\"What it is\"",
    );
    let command = &entry.command;
    assert_eq!(command.user.as_deref(), Some("www-data"));
    assert_eq!(command.group.as_deref(), Some("adm"));
    assert_eq!(command.cwd.as_deref(), Some("/var/www".as_ref()));
    let variables: Vec<(&str, &str)> =
        command.env.iter().map(|variable| (variable.key.as_str(), variable.value.as_str())).collect();
    assert_eq!(variables, [("A", "1"), ("B", "two words"), ("C", "=x"), ("D", "")]);
    assert_eq!(command.umask, Some(0o027));
    assert_eq!(command.timeout, Some(Duration::from_seconds(5_400)));
    assert_eq!(command.stdout, Output::File("/var/log/x".into()));
    assert_eq!(command.stderr, Output::Discard);
    assert_eq!(entry.description.as_deref(), Some("What it is"));
    assert_eq!(with_fields("stdout=syslog").command.stdout, Output::Syslog);
}

#[test]
fn a_command_is_words_or_a_text_for_the_shell() {
    let argv = |fields: &str| {
        let entry = entry(&format!("@daily name=a {fields}"));
        entry.command.program.argv().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(argv("command=/bin/true"), ["/bin/true"]);
    assert_eq!(argv("command=\"/bin/echo a  $HOME *\""), ["/bin/echo", "a", "$HOME", "*"]);
    assert_eq!(argv(r#"command="/bin/echo \"a b\" \"\"""#), ["/bin/echo", "a b", ""]);
    assert_eq!(argv(r#"command="\"/opt/my program\" x""#), ["/opt/my program", "x"]);
    // `shell` counts wherever it stands.
    for fields in ["command=\"ls | wc\" shell=true", "shell=true command=\"ls | wc\""] {
        assert_eq!(argv(fields), ["/bin/sh", "-c", "ls | wc"]);
    }
}

#[test]
fn four_ways_to_write_a_schedule() {
    let kind = |schedule: &str| {
        let written = entry(&format!("{schedule} name=a command=/bin/true")).schedule;
        (written.kind_name(), written.text().to_owned(), written.resolved(), written.placeholder())
    };
    let row = |name, text: &str, resolved: &str| (name, text.to_owned(), resolved.to_owned(), None);
    assert_eq!(kind("00  2 * * mon"), row("cron", "00  2 * * mon", "0 2 * * 1"));
    assert_eq!(kind("@daily"), row("alias", "@daily", "0 0 * * *"));
    assert_eq!(kind("@every 90m"), row("every", "@every 90m", "@every 1h30m"));
    let (name, text, resolved, placeholder) = kind("\"Daily around 14:00\"");
    assert_eq!((name, text.as_str()), ("phrase", "Daily around 14:00"));
    assert_eq!(placeholder.as_deref(), Some("FUZZY:DAILY_AROUND:14:0 * * *"));
    assert!(resolved.ends_with(" * * *"), "{resolved}");
    assert_eq!(entry("\"every 10 days exactly\" name=a command=/bin/true").schedule.expr(), None);
    let described = entry("30 9 * * 1-5 name=a command=/bin/true").schedule.describe();
    assert_eq!(described, "At 09:30 on weekdays");
}

#[test]
fn a_phrase_is_scattered_by_the_identity_and_local_to_the_zone() {
    let line = "\"daily between 9:00 and 17:00\" @tz(Asia/Tokyo) name=a command=/bin/true";
    let here = entry(line);
    let there = Krontab::parse(line, &Source::new("/etc/krond.d/other").unwrap(), &ZONES).entries.remove(0);
    assert_ne!(here.schedule.resolved(), there.schedule.resolved());
    assert_eq!(entry(line).schedule, here.schedule);
    for entry in [here, there] {
        let ScheduleKind::Phrase { .. } = entry.schedule.kind() else {
            panic!("a phrase was written");
        };
        let next = entry.job.schedule().next_after("2026-03-01T00:00:00Z".parse().unwrap()).unwrap();
        let local = entry.job.zone().to_civil(next);
        assert!((9..17).contains(&local.hour()), "{local}");
    }
}

#[test]
fn every_follows_from_the_definition_alone() {
    let entry = entry("@every 7m name=a command=/bin/true");
    let next = entry.job.schedule().next_after("2026-03-01T00:00:00Z".parse().unwrap()).unwrap();
    assert_eq!(next.as_second() % 420, 0);
}

#[test]
fn the_identity_can_be_that_of_another_file_or_any_text() {
    let line = "@daily @win(after,1h) name=backup command=/bin/true";
    let parse = |source: Source| Krontab::parse(line, &source, &ZONES).entries.remove(0);
    let preview = parse(source().installed_as("/etc/krond.d/backup").unwrap());
    assert_eq!(preview.identity(), "/etc/krond.d/backup:backup");
    // The public tool hashes the bare name.
    let bare = parse(source().with_identity("backup"));
    assert_eq!(bare.identity(), "backup");
    let at = "2026-03-01T00:00:00Z".parse().unwrap();
    assert_ne!(decide(&preview.job, at).chosen(), decide(&bare.job, at).chosen());
    let refused = Krontab::parse(line, &source().with_identity("a\nb"), &ZONES);
    assert!(refused.entries.is_empty() && refused.has_errors());
}

#[test]
fn good_lines_are_there_beside_bad_ones_and_warnings_know_their_entry() {
    let parsed = parse(
        "0 0 31 * * name=a command=/bin/true\n\n# c\nnonsense\n@daily name=b command=/bin/true\n@daily name=c command=x\n",
    );
    let names: Vec<(&str, usize)> =
        parsed.entries.iter().map(|entry| (entry.name.as_str(), entry.line)).collect();
    assert_eq!(names, [("a", 1), ("b", 5)]);
    assert_eq!(parsed.warnings(&parsed.entries[0]).count(), 1);
    assert_eq!(parsed.warnings(&parsed.entries[1]).count(), 0);
    assert_eq!(parsed.entry("b").map(|entry| entry.line), Some(5));
    assert!(parsed.entry("c").is_none());
}

#[test]
fn all_mistakes_of_a_line_are_told_together() {
    let parsed = parse("0 0 30 2 * @tz(Mars) @win(after,x) @policy(a=b) nmae=x comand=y user=\n");
    let told: Vec<(&str, usize)> =
        parsed.problems.iter().map(|problem| (problem.code().name(), problem.column())).collect();
    assert_eq!(
        told,
        [
            ("never-matches", 5),
            ("time-zone", 16),
            ("window", 33),
            ("unknown-key", 44),
            ("unknown-field", 49),
            ("unknown-field", 56),
            ("field", 70),
        ]
    );
}
