//! Files in `data/`, and every problem of theirs, word for word.
//!
//! `KRON_BLESS=1 cargo test -p krontab golden` writes the expectations anew; read them before they are kept.

use std::path::{Path, PathBuf};

use krontab::{Krontab, Parsed, Source, Zones};

#[test]
fn every_problem_is_told_in_these_words() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "krontab"))
        .collect();
    files.sort();
    assert!(files.len() >= 6);
    let zones = Zones::bundled();
    let mut wrong = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let source = Source::new(format!("/etc/krond.d/{name}")).unwrap();
        let found = rendered(&Krontab::parse(&text, &source, &zones));
        let expected_path = path.with_extension("expected");
        if std::env::var_os("KRON_BLESS").is_some() {
            std::fs::write(&expected_path, &found).unwrap();
        }
        if std::fs::read_to_string(&expected_path).unwrap_or_default() != found {
            wrong.push(format!("{name}:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_without_mistakes_has_all_of_its_entries() {
    let text = include_str!("data/good.krontab");
    let parsed = Krontab::parse(text, &Source::new("/f").unwrap(), &Zones::bundled());
    assert_eq!(parsed.problems, []);
    assert_eq!(parsed.entries.len(), 8);
}

fn rendered(parsed: &Parsed) -> String {
    let problems: Vec<String> = parsed.problems.iter().map(|problem| problem.render() + "\n").collect();
    let names: Vec<&str> = parsed.entries.iter().map(|entry| entry.name.as_str()).collect();
    format!("{}\nentries: {}\n", problems.join("\n"), names.join(" "))
}
