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

    refused(&lint(""), &[("text", None, "bad-request", "text", "missing member `text`")]);
    assert_eq!(result(&lint(""))["jobs"], json!([]));
}
