//! Any text is a krontab, or every problem of it has a place in it; and it has one canonical spelling.
#![no_main]

use std::sync::LazyLock;

use krontab::{Krontab, Source, Zones};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parsed = Krontab::parse(text, &SOURCE, &ZONES);
    let lines = text.split('\n').count();
    for problem in &parsed.problems {
        assert!((1..=lines).contains(&problem.line()), "{problem} is not in {text:?}");
        assert!(problem.column() <= problem.end_column());
        assert!(!problem.render().is_empty());
    }
    for entry in &parsed.entries {
        assert!((1..=lines).contains(&entry.line));
        assert!(!entry.identity().is_empty());
    }
    let canonical = Krontab::canonical(text, &SOURCE, &ZONES);
    assert_eq!(
        Krontab::canonical(&canonical, &SOURCE, &ZONES),
        canonical,
        "{text:?} has two canonical spellings"
    );
});

static SOURCE: LazyLock<Source> = LazyLock::new(|| Source::new("/etc/krond.d/fuzz").expect("it is absolute"));
static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);
