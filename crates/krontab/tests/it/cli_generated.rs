//! Files that are generated from the definitions of the flags, and committed.
//!
//! `KRON_BLESS=1 cargo test -p krontab generated` writes them anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn krontab(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_krontab")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Compares a committed file with what it would be now.
fn fresh(path: &Path, text: &str) {
    if std::env::var_os("KRON_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(committed == text, "{} is stale: KRON_BLESS=1 cargo test -p krontab generated", path.display());
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn generated_completions_are_fresh() {
    for (shell, file) in [("bash", "krontab.bash"), ("fish", "krontab.fish"), ("zsh", "_krontab")] {
        fresh(&here("completions").join(file), &krontab(&["completions", shell]));
    }
}

#[test]
fn generated_manual_pages_are_fresh() {
    let directory = tempfile::tempdir().unwrap();
    krontab(&["man", directory.path().to_str().unwrap()]);
    let names = |path: &Path| -> Vec<String> {
        let Ok(files) = fs::read_dir(path) else { return Vec::new() };
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let pages = names(directory.path());
    assert!(pages.contains(&"krontab.1".to_owned()) && pages.contains(&"krontab-lint.1".to_owned()));
    for page in &pages {
        fresh(&here("man").join(page), &fs::read_to_string(directory.path().join(page)).unwrap());
    }
    assert_eq!(names(&here("man")), pages, "a page without a command");
    assert_eq!(krontab(&["man"]), fs::read_to_string(here("man/krontab.1")).unwrap());
}

#[test]
fn generated_reference_is_fresh() {
    fresh(&here("../../docs/reference/krontab-cli.md"), &krontab(&["reference"]));
}

#[test]
fn every_command_has_examples_and_exit_codes_in_its_help() {
    let help = krontab(&["--help"]);
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands = commands.lines().map(|line| line.split_whitespace().next().unwrap());
    for command in commands.filter(|command| *command != "help") {
        let help = krontab(&["help", command]);
        assert!(help.contains("\nExamples:\n  krontab "), "{command}:\n{help}");
        assert!(help.contains("\nExit codes: 0 "), "{command}:\n{help}");
    }
}

#[test]
fn limits_are_in_the_help() {
    for (command, limit) in
        [("next", "at most 10080"), ("prev", "at most 10080"), ("describe", "at most 10080")]
    {
        assert!(krontab(&["help", command]).contains(limit), "{command}");
    }
    assert!(krontab(&["help", "describe"]).contains("at most 1024 bytes"));
}

#[test]
fn completions_offer_what_the_help_shows_and_the_values_of_flags() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = krontab(&["completions", shell]);
        assert!(!script.contains("reference"), "{shell} offers a hidden command");
        assert!(script.contains("describe") && script.contains("version"), "{shell}");
    }
    let bash = krontab(&["completions", "bash"]);
    for values in ["kron ojs posix", "after around before", "stable daily weekly"] {
        assert!(bash.contains(&format!("compgen -W \"{values}\"")), "{values}");
    }
}

#[test]
fn manual_pages_have_the_sections_that_people_look_for() {
    let directory = tempfile::tempdir().unwrap();
    krontab(&["man", directory.path().to_str().unwrap()]);
    for page in fs::read_dir(directory.path()).unwrap() {
        let path = page.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let path = path.display();
        assert!(!page.contains(".SH EXTRA"), "{path}");
        // Examples are not filled, so that no line is broken or hyphenated.
        let examples = page.split(".SH EXAMPLES\n.nf\n").nth(1).unwrap_or_else(|| panic!("{path}"));
        assert!(examples.split(".fi\n").next().unwrap().contains("krontab "), "{path}");
        let is_main = page.contains(".TH krontab 1");
        assert_eq!(page.contains(".SH \"EXIT STATUS\"\n0 "), !is_main, "{path}");
        assert_eq!(page.contains(".SH ENVIRONMENT\n") && page.contains("XDG_CONFIG_HOME"), is_main, "{path}");
        assert_eq!(page.matches(".ie ").count(), 1, "{path}");
    }
}

#[test]
fn the_directory_of_a_user_is_documented() {
    for command in ["add", "list", "remove"] {
        assert!(krontab(&["help", command]).contains("XDG_CONFIG_HOME"), "{command}");
    }
    assert!(
        krontab(&["--help"]).contains("XDG_CONFIG_HOME")
            && krontab(&["reference"]).contains("XDG_CONFIG_HOME")
    );
}
