//! Files that are generated from the definitions of the flags, and committed.
//!
//! `KRON_BLESS=1 cargo test -p krond generated` writes them anew.

use std::fs;
use std::path::Path;
use std::process::Command;

fn krond(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_krond")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn commands() -> Vec<String> {
    let help = krond(&["--help"]);
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands = commands.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
    commands.filter(|command| *command != "help").collect()
}

#[test]
fn generated_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/krond-cli.md");
    let text = krond(&["reference"]);
    if std::env::var_os("KRON_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{} is stale: KRON_BLESS=1 cargo test -p krond generated", path.display());
    for command in commands() {
        assert!(text.contains(&format!("\n## krond {command}\n")), "{command}");
    }
}

#[test]
fn every_command_has_examples_and_exit_codes_in_its_help() {
    for command in commands() {
        let help = krond(&["help", &command]);
        assert!(help.contains("\nExamples:\n  krond "), "{command}:\n{help}");
        assert!(help.contains("\nExit codes: 0 "), "{command}:\n{help}");
    }
}

#[test]
fn generated_pages_and_completions_know_every_command() {
    let page = krond(&["man"]);
    assert!(page.contains(".TH krond 8"), "{page}");
    let completions = ["bash", "fish", "zsh"].map(|shell| krond(&["completions", shell]));
    for command in commands() {
        let escaped = command.replace('-', "\\-");
        assert!(page.contains(&escaped), "{command}");
        assert!(completions.iter().all(|text| text.contains(&command)), "{command}");
        let own = krond(&["man", &command]);
        assert!(
            own.contains(&format!(".TH krond\\-{escaped} 8"))
                || own.contains(&format!(".TH krond-{command} 8")),
            "{own}"
        );
    }
    assert!(!page.contains("reference"), "what is hidden is not in the page");
}

#[test]
fn the_unit_runs_what_the_guide_installs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/guides/operate.md")).unwrap();
    let unit = fs::read_to_string(root.join("packaging/krond.service")).unwrap();
    let prefix = guide.split("cargo install --path crates/krond --root ").nth(1).unwrap();
    let binary = format!("{}/bin/krond", prefix.lines().next().unwrap());
    for key in ["ExecStart", "ExecReload"] {
        assert!(unit.contains(&format!("\n{key}={binary} ")), "{key} is not {binary}:\n{unit}");
    }
    // Paths that both name are the same.
    for path in ["/etc/systemd/system/krond.service", "systemctl enable --now krond"] {
        assert!(guide.contains(path) && unit.contains(path), "{path}");
    }
    assert!(unit.contains("\nStateDirectory=krond\n") && guide.contains("`/var/lib/krond/`"));

    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("krond.service");
    fs::write(&file, unit.replace(&binary, env!("CARGO_BIN_EXE_krond"))).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let Ok(output) = verify.args(["verify", "--man=no"]).arg(&file).output() else {
        return println!("skipped: there is no systemd-analyze");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let about: Vec<&str> = said.lines().filter(|line| line.contains("krond.service")).collect();
    assert!(about.is_empty(), "{said}");
}

#[test]
fn the_unit_gives_runs_nothing_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let unit = fs::read_to_string(root.join("packaging/krond.service")).unwrap();
    let service = unit.split("\n[Service]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let set = service.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    // Whatever else is set there, a process hands on to its children.
    let about_krond = [
        "Type",
        "ExecStart",
        "ExecReload",
        "KillMode",
        "OOMPolicy",
        "Restart",
        "RestartSec",
        "RestartPreventExitStatus",
        "StateDirectory",
        "StateDirectoryMode",
        "TasksMax",
    ];
    for (key, _) in set {
        assert!(about_krond.contains(&key), "{key}");
    }
}
