//! What `fmt` writes: one spelling, with the same meaning.

use krontab::Krontab;

use crate::world::{ZONES, source};

fn canonical(text: &str) -> String {
    Krontab::canonical(text, &source(), &ZONES)
}

#[test]
fn entries_have_one_spelling() {
    for (written, expected) in [
        ("  00  2  *  *  mon-fri  command=/bin/true   name=a ", "0 2 * * 1-5 name=a command=/bin/true"),
        ("@daily name=a command=\"/bin/true\"", "@daily name=a command=/bin/true"),
        ("@every\t5400s name=a command=/bin/true", "@every 1h30m name=a command=/bin/true"),
        ("\"Daily  AROUND 2pm\" name=a command=/bin/true", "\"daily around 14:00\" name=a command=/bin/true"),
        (
            "@daily @dst(fold=both) @avoid(dow=6,0) @only(\"hours = 10,8,9\") @policy(suspend=false,concurrency=allow) \
             @seed(daily,salt=) @dist(skewLate) @win(center,3600s) @tz(UTC) name=a command=/bin/true",
            "@daily @tz(UTC) @win(around,1h) @dist(skewLate) @seed(daily,salt=) \
             @policy(concurrency=allow,suspend=false) @only(hours=8-10) @avoid(dow=SUN,SAT) \
             @dst(fold=both) name=a command=/bin/true",
        ),
        (
            "@daily @win(after,1h) @seed(stable,salt=\"a b\") name=a command=/bin/true",
            "@daily @win(after,1h) @seed(stable,salt=\"a b\") name=a command=/bin/true",
        ),
        (
            "@daily description=\"a \\\\ \\\"b\\\"\" stderr=discard stdout=file:\"/x y\" timeout=90s umask=022 \
             env=\"B=two words\" env=A= cwd=/ group=g user=u shell=false command=\"/bin/echo   \\\"a b\\\"\" name=a",
            "@daily name=a command=\"/bin/echo \\\"a b\\\"\" shell=false user=u group=g cwd=/ env=B=\"two words\" \
             env=A=\"\" umask=022 timeout=1m30s stdout=\"file:/x y\" stderr=discard description=\"a \\\\ \\\"b\\\"\"",
        ),
        ("@daily name=a shell=true command=\"a  |  b\"", "@daily name=a command=\"a  |  b\" shell=true"),
    ] {
        assert_eq!(canonical(written), format!("{expected}\n"));
        assert_eq!(canonical(expected), format!("{expected}\n"));
    }
}

#[test]
fn defaults_are_neither_added_nor_taken_away() {
    for modifier in [
        "@dst(gap=skip)",
        "@dst(fold=auto)",
        "@dst(gap=after,fold=first)",
        "@dist(exponential)",
        "@dist(exponential,lambda=1)",
        "@dist(exponential,dir=early)",
        "@dist(exponential,lambda=2.5,dir=late)",
        "@dist(skewEarly)",
        "@dist(skewEarly,shape=2)",
        "@dist(normal)",
        "@dist(normal,mu=mid)",
        "@dist(normal,mu=mid,sigma=10m)",
        "@dist(uniform)",
    ] {
        let line = format!("@daily @win(after,1h) {modifier} name=a command=/bin/true\n");
        assert_eq!(canonical(&line), line);
    }
    let line = |modifiers: &str| format!("@daily @win(after,1h) {modifiers} name=a command=/bin/true\n");
    let written = line("@dst(fold=both,gap=skip) @dist(normal,sigma=600s,mu=mid)");
    let expected = line("@dist(normal,mu=mid,sigma=10m) @dst(gap=skip,fold=both)");
    assert_eq!(canonical(&written), expected);
}

#[test]
fn everything_else_stays() {
    let text = "# a\n\n   # indented  \n\n\n@daily   name=a command=/bin/true\n  @dayly name=b\n#\n\n";
    let expected = "# a\n\n# indented\n\n\n@daily name=a command=/bin/true\n  @dayly name=b\n#\n\n";
    assert_eq!(canonical(text), expected);
    assert_eq!(canonical(""), "");
    assert_eq!(canonical("# no end"), "# no end\n");
    assert_eq!(
        canonical("\u{feff}# a\r\n@daily  name=a command=/bin/true\r\n"),
        "# a\n@daily name=a command=/bin/true\n"
    );
}

#[test]
fn modifiers_that_hold_many_clauses_are_not_joined() {
    let dates = |month: u32| {
        (1..=28)
            .map(|day| format!("date=2026-{month:02}-{day:02};date=2027-{month:02}-{day:02}"))
            .collect::<Vec<_>>()
            .join(";")
    };
    let text = format!("@daily @avoid({}) @avoid({}) name=a command=/bin/true\n", dates(1), dates(3));
    let again = canonical(&text);
    assert_eq!(Krontab::parse(&again, &source(), &ZONES).problems, []);
    assert_eq!(again.matches("@avoid").count(), 2);
}
