//! `lint`: what the library says about a krontab.

use krontab::{Krontab, Source};
use serde_json::json;

use super::{ZONES, error, refused, result};

#[test]
fn lint_tells_what_the_library_tells() {
    let lint = |text: &str| json!({"id": 1, "op": "lint", "text": text});
    assert_eq!(
        result(&lint("# none\n@daily name=a command=/bin/a\n@hourly name=b command=/bin/b\n")),
        json!({"jobs": ["a", "b"], "warnings": []})
    );
    let warned = result(&lint("* */15 * * * name=a command=/bin/a\n"));
    assert_eq!(warned["warnings"][0]["code"], "every-minute");
    assert_eq!(warned["warnings"][0]["severity"], "warning");

    let text =
        "@daily name=a command=/bin/a\n* 2 * * * name=b command=/bin/b\n @dayly name=c command=/bin/c\n";
    let found = error(&lint(text));
    assert_eq!((found["code"].as_str(), found["field"].as_str()), (Some("krontab"), Some("text")));
    assert_eq!(found["message"], "the krontab has errors");
    let problems = Krontab::parse(text, &Source::new("/f").unwrap(), &ZONES).problems;
    let told = found["problems"].as_array().unwrap();
    assert_eq!(told.len(), problems.len());
    for (told, problem) in told.iter().zip(problems) {
        assert_eq!(told["line"], problem.line());
        assert_eq!(told["column"], problem.column());
        assert_eq!(told["code"], problem.code().name());
        assert_eq!(told["message"], problem.message());
    }
    assert_eq!(told[1]["line"], 3);
    assert_eq!(told[1]["column"], 2);

    let entry = |n: u32| format!("\"hourly\" name=backup-{n} command=/bin/true\n");
    let together = lint(&(1..=4).map(entry).collect::<String>());
    let at = |path: &str| super::with(&together, "path", json!(path));
    assert_eq!(result(&at("/etc/krond.d/test"))["warnings"][0]["code"], "cluster");
    let named = |path: &str| result(&at(path))["warnings"][0]["message"].to_string().contains(path);
    assert!(named("/etc/krond.d/test"), "{}", result(&at("/etc/krond.d/test")));
    let refusal = error(&at("jobs.kron"));
    assert_eq!((&refusal["code"], &refusal["field"]), (&json!("bad-value"), &json!("path")));

    refused(&lint(""), &[("text", None, "bad-request", "text", "missing member `text`")]);
    assert_eq!(result(&lint(""))["jobs"], json!([]));
}
