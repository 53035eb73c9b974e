//! `kronctl` without a cluster.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

fn kronctl(words: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kronctl"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

const KRONJOB: &str = "\
apiVersion: kron.io/v1alpha1
kind: KronJob
metadata: {name: report, namespace: ops}
spec:
  schedule: daily around 14:00
  timezone: Europe/Paris
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: example.test/report}]
";

const CRONJOB: &str = "\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: ops}
spec:
  schedule: \"30 1 * * 1-5\"
  timeZone: America/New_York
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: example.test/report}]
";

#[test]
fn a_manifest_is_checked_and_every_mistake_told() {
    assert_eq!(kronctl(&["validate", "-f", "-"], KRONJOB), (0, "report: valid\n".into(), String::new()));
    let bad = KRONJOB
        .replace("Europe/Paris", "Europe/Pariss")
        .replace("  schedule:", "  windw: {duration: 1h}\n  schedule:");
    let (code, out, _) = kronctl(&["validate", "-f", "-"], &bad);
    assert_eq!(code, 1);
    assert!(out.contains("report: error: spec.windw: there is no such field\n"), "{out}");
    assert!(out.contains("did you mean `Europe/Paris`?"), "{out}");
    let (code, out, _) = kronctl(&["validate", "--json", "-f", "-"], &format!("{KRONJOB}---\n{bad}"));
    let views: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, views[0]["valid"].as_bool(), views[1]["valid"].as_bool()),
        (1, Some(true), Some(false))
    );
}

#[test]
fn a_mistake_of_shape_is_told_with_its_place() {
    for (from, to, told) in [
        (
            "kron.io/v1alpha1",
            "kron.io/v2",
            "report: error: apiVersion: expected `kron.io/v1alpha1`, but found \"kron.io/v2\"\n",
        ),
        (
            "name: report",
            "name: Re port",
            "Re port: error: metadata.name: expected small letters, digits, `-` and `.`",
        ),
        ("name: report,", "", "(no name): error: metadata.name: expected small letters"),
        (
            "spec:\n  schedule",
            "specs:\n  schedule",
            "report: error: spec: expected an object with `schedule` and `jobTemplate`",
        ),
        (
            "timezone: Europe/Paris",
            "policy: {concurrency: sometimes}",
            "report: error: spec.policy.concurrency: unknown variant `sometimes`, expected one of `allow`, `forbid`, `replace`\n",
        ),
    ] {
        assert!(KRONJOB.contains(from));
        let (code, out, _) = kronctl(&["validate", "-f", "-"], &KRONJOB.replacen(from, to, 1));
        assert!(code == 1 && out.contains(told), "{out}");
    }
}

#[test]
fn a_cronjob_becomes_a_kronjob_that_is_valid() {
    let (code, out, _) = kronctl(&["convert", "-f", "-", "--from", "2026-01-01T00:00:00Z"], CRONJOB);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("schedule: 30 1 * * 1-5") && out.contains("fold: both"), "{out}");
    let (code, again, _) = kronctl(&["validate", "-f", "-"], &out);
    assert_eq!(code, 0, "{again}");
}

#[test]
fn what_cannot_be_answered_says_why_and_has_its_code() {
    let (code, _, error) = kronctl(&["validate", "-f", "/nowhere"], "");
    assert!(code == 2 && error.starts_with("error: /nowhere cannot be read"), "{error}");
    let (code, _, error) = kronctl(&["convert", "-f", "-"], "kind: Pod\n");
    assert!(code == 2 && error.contains("expected an object of the kind CronJob"), "{error}");
    let (code, _, error) = kronctl(&["validate", "-f", "-"], "a: [\n");
    assert!(code == 2 && error.contains("is no YAML"), "{error}");
    let (code, out, _) = kronctl(&["convert", "-f", "-"], &CRONJOB.replace("30 1 * * 1-5", "30 1 * * 7"));
    assert!(code == 1 && out.contains("was not converted"), "{out}");
}

#[test]
fn a_time_that_is_none_says_what_one_is() {
    for words in [
        ["why", "report", "--at", "yesterday"],
        ["next", "report", "--from", "yesterday"],
        ["explain", "report", "--period", "yesterday"],
    ] {
        let (code, _, error) = kronctl(&words, "");
        assert!(code == 2 && error.contains("expected a time such as `2026-03-01T0"), "{error}");
        assert!(error.contains("but found `yesterday`"), "{error}");
    }
}

#[test]
fn without_a_cluster_it_says_how_to_name_one() {
    for words in [
        &["next", "report", "--kubeconfig", "/nowhere"][..],
        &["run", "report", "--kubeconfig", "/nowhere", "--context", "x"],
        &["why", "report", "--kubeconfig", "/proc/self/environ"],
    ] {
        let (code, out, error) = kronctl(words, "");
        assert!(code == 2 && out.is_empty(), "{error}");
        assert!(error.starts_with("error: no cluster can be found: "), "{error}");
        assert!(error.ends_with("; name a kubeconfig with --kubeconfig or KUBECONFIG\n"), "{error}");
    }
    let kubeconfig = std::env::temp_dir().join(format!("kronctl-{}.json", std::process::id()));
    let closed = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "a", "users": [{"name": "a", "user": {}}],
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}"#;
    std::fs::write(&kubeconfig, closed).unwrap();
    let named = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let (code, _, error) = kronctl(&[&["next", "report"], &named[..]].concat(), "");
    assert!(code == 2 && error.starts_with("error: the API server gave no answer: "), "{error}");
    let (code, _, error) = kronctl(&[&["next", "report", "--context", "b"], &named[..]].concat(), "");
    std::fs::remove_file(&kubeconfig).unwrap();
    assert!(code == 2 && error.contains("no cluster can be found: ") && error.contains('b'), "{error}");
}

#[test]
fn it_completes_and_has_a_page() {
    let (code, script, _) = kronctl(&["completions", "bash"], "");
    assert!(code == 0 && script.contains("kronctl"));
    let (code, page, _) = kronctl(&["man"], "");
    assert!(code == 0 && page.contains(".TH kronctl"));
}
