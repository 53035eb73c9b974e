//! Webhooks: events are told to receivers, at least once and in order, whatever the receivers do; and the server calls
//! nobody whom it may not.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::server::{Answer, Home, Server, list, pause, text, time};

/// A request that a receiver got.
#[derive(Clone, Debug)]
struct Told {
    headers: Vec<(String, String)>,
    body: String,
}

impl Told {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    fn event(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The type of the event, and the job that it is about.
    fn what(&self) -> (String, String) {
        let event = self.event();
        (text(&event["type"]).to_owned(), text(&event["subject"]).to_owned())
    }
}

/// What a receiver answers.
type Answers = Box<dyn FnMut(&Told) -> u16 + Send>;

/// A receiver. What it answers to each request is up to the test; 0 is no answer at all.
struct Receiver {
    address: SocketAddr,
    told: Arc<Mutex<Vec<Told>>>,
    answers: Arc<Mutex<Answers>>,
}

impl Receiver {
    fn new() -> Receiver {
        Receiver::answering(|_| 200)
    }

    fn answering(answers: impl FnMut(&Told) -> u16 + Send + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = Receiver {
            address: listener.local_addr().unwrap(),
            told: Arc::default(),
            answers: Arc::new(Mutex::new(Box::new(answers))),
        };
        let (told, answers) = (Arc::clone(&receiver.told), Arc::clone(&receiver.answers));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (told, answers) = (Arc::clone(&told), Arc::clone(&answers));
                thread::spawn(move || hear(stream, &told, &answers));
            }
        });
        receiver
    }

    /// From now on it answers otherwise.
    fn answer(&self, answers: impl FnMut(&Told) -> u16 + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answers);
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// Waits until it was told so often.
    #[track_caller]
    fn told_times(&self, count: usize) -> Vec<Told> {
        eventually(&format!("{count} requests"), || self.told().len() >= count);
        self.told()
    }
}

fn hear(mut stream: TcpStream, told: &Mutex<Vec<Told>>, answers: &Mutex<Answers>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None if line.trim_end().is_empty() => break,
            None => assert_eq!(line, "POST /hook HTTP/1.1\r\n"),
        }
    }
    let mut request = Told { headers, body: String::new() };
    let length: u64 = request.header("content-length").parse().unwrap();
    reader.take(length).read_to_string(&mut request.body).unwrap();
    told.lock().unwrap().push(request.clone());
    let status = (answers.lock().unwrap())(&request);
    if status == 0 {
        // It holds on to the connection, and says nothing.
        let mut nothing = [0; 1];
        let _ = stream.read(&mut nothing);
        return;
    }
    let _ = write!(stream, "HTTP/1.1 {status} So\r\ncontent-length: 2\r\n\r\nok");
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1_200 {
        if holds() {
            return;
        }
        pause(50);
    }
    panic!("waited in vain: {what}");
}

/// A place for a server that may call these receivers.
fn home(receivers: &[&Receiver]) -> (Home, String) {
    let home = Home::new();
    let open: Vec<String> = receivers.iter().map(|receiver| receiver.address.to_string()).collect();
    let path = home.data().with_file_name("kron-server.toml");
    fs::write(&path, format!("[webhooks]\nhttp = true\nallow = {open:?}\n")).unwrap();
    (home, path.to_str().unwrap().to_owned())
}

/// The same, started with its clock frozen.
fn server(receivers: &[&Receiver]) -> Server {
    let (home, config) = home(receivers);
    let server = home.start(&["--test-mode", "--config", &config]);
    server.clock(super::server::START);
    server
}

const PATH: &str = "/kron/v1/webhooks";

#[track_caller]
fn subscribe(server: &Server, receiver: &Receiver, more: Value) -> (String, String) {
    let body = super::server::merge(json!({"url": receiver.url()}), more);
    let webhook = server.post(PATH, body).is(201, "a webhook is made")["webhook"].clone();
    (text(&webhook["id"]).to_owned(), text(&webhook["secret"]).to_owned())
}

#[track_caller]
fn show(server: &Server, id: &str) -> Value {
    server.get(&format!("{PATH}/{id}")).is(200, "a webhook is shown")["webhook"].clone()
}

#[track_caller]
fn deliveries(server: &Server, id: &str) -> Vec<Value> {
    list(&server.get(&format!("{PATH}/{id}/deliveries")).is(200, "deliveries are listed")["deliveries"])
}

#[track_caller]
fn change(server: &Server, id: &str, body: Value) -> Value {
    server.patch(&format!("{PATH}/{id}"), body).is(200, "a webhook is changed")["webhook"].clone()
}

/// What Python's standard library says to the signatures.
fn python_agrees(secret: &str, told: &[Told]) -> bool {
    let script = "import hmac, hashlib, json, sys\n\
        for one in json.load(sys.stdin):\n    \
            signed = (one['time'] + '.' + one['body']).encode()\n    \
            mac = 'sha256=' + hmac.new(one['secret'].encode(), signed, hashlib.sha256).hexdigest()\n    \
            if not hmac.compare_digest(mac, one['signature']): sys.exit('wrong')\n";
    let all: Vec<Value> = told
        .iter()
        .map(|one| {
            json!({"secret": secret, "time": one.header("X-OJS-Timestamp"), "body": one.body,
                "signature": one.header("X-OJS-Signature")})
        })
        .collect();
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("python3 checks the signatures");
    python.stdin.take().unwrap().write_all(json!(all).to_string().as_bytes()).unwrap();
    python.wait().unwrap().success()
}

#[test]
fn events_are_told_in_order_signed_and_once_if_all_is_well() {
    let receiver = Receiver::new();
    let server = server(&[&receiver]);
    server.push_to("before", json!({}));
    let (id, secret) = subscribe(&server, &receiver, json!({"types": ["job.enqueued", "job.comp*"]}));
    let jobs: Vec<String> = (0..20).map(|_| server.push_to("q", json!({}))).collect();
    for job in &jobs {
        server.fetch_one("q");
        server.ack(job).is(200, "ack");
    }
    let told = receiver.told_times(40);
    let expected: Vec<(String, String)> = ["job.enqueued", "job.completed"]
        .iter()
        .flat_map(|kind| jobs.iter().map(move |job| ((*kind).to_owned(), job.clone())))
        .collect();
    assert_eq!(
        told.iter().map(Told::what).collect::<Vec<_>>(),
        expected,
        "from now on, in order, what it wants"
    );
    assert_eq!(receiver.told().len(), 40);
    for one in &told {
        let event = one.event();
        assert_eq!(one.header("X-OJS-Event-Type"), event["type"]);
        assert_eq!(one.header("X-Kron-Event-ID"), event["id"]);
        assert_eq!(one.header("X-OJS-Subscription-ID"), id);
        assert_eq!(one.header("X-Kron-Attempt"), "1");
        assert_eq!(one.header("Content-Type"), "application/json");
        assert_eq!(one.header("X-OJS-Timestamp"), server.now().as_second().to_string());
        for forbidden in ["Authorization", "Cookie", "Proxy-Authorization"] {
            assert_eq!(one.header(forbidden), "", "nothing of the server's own is sent along");
        }
    }
    assert!(python_agrees(&secret, &told), "the signature is what the documentation says");
    assert!(!python_agrees("whsec_other", &told[..1]), "and another secret makes another");
    let mut changed = told[0].clone();
    changed.body.push(' ');
    assert!(!python_agrees(&secret, &[changed]));
    let ids: std::collections::BTreeSet<&str> =
        told.iter().map(|one| one.header("X-OJS-Delivery-ID")).collect();
    assert_eq!(ids.len(), 40, "each delivery has an id of its own");

    eventually("all is written down", || deliveries(&server, &id).len() == 40);
    let last = &deliveries(&server, &id)[0];
    assert_eq!(
        (&last["state"], &last["status"], &last["attempts"]),
        (&json!("delivered"), &json!(200), &json!(1))
    );
    assert_eq!(last["event_id"], told[39].event()["id"], "the newest comes first");
    assert_eq!(show(&server, &id)["state"], "working");
}

#[test]
fn a_failure_is_tried_again_in_its_place_and_under_its_id() {
    let mut count = 0;
    let receiver = Receiver::answering(move |_| {
        count += 1;
        [500, 302, 200][count.min(3) - 1]
    });
    let server = server(&[&receiver]);
    let (id, secret) = subscribe(&server, &receiver, json!({"types": ["job.enqueued"]}));
    let jobs = [server.push_to("q", json!({})), server.push_to("q", json!({}))];
    receiver.told_times(1);
    eventually("the failure is shown", || show(&server, &id)["state"] == "failing");
    let failing = show(&server, &id);
    assert_eq!(failing["pending"]["error"], "the receiver answered 500");
    assert_eq!(failing["pending"]["state"], "retrying");
    let wait = time(&failing["pending"]["next_attempt_at"]).duration_since(server.now());
    assert!(
        wait >= SignedDuration::from_millis(2_500) && wait <= SignedDuration::from_millis(7_500),
        "{wait:?}"
    );
    // Whatever happens meanwhile, its time has not come.
    server.push_to("other", json!({}));
    server.pass(2);
    pause(300);
    assert_eq!(receiver.told().len(), 1);
    server.pass(6);
    receiver.told_times(2);
    eventually("the second failure is shown", || show(&server, &id)["pending"]["attempts"] == 2);
    assert_eq!(
        show(&server, &id)["pending"]["error"],
        "the receiver answered 302, and redirects are not followed"
    );
    server.pass(16);
    let told = receiver.told_times(5);
    let subjects: Vec<String> = told.iter().map(|one| one.what().1).collect();
    assert_eq!(
        subjects[..4],
        [&jobs[0], &jobs[0], &jobs[0], &jobs[1]].map(String::clone),
        "the second waits"
    );
    let attempts: Vec<&str> = told.iter().map(|one| one.header("X-Kron-Attempt")).collect();
    assert_eq!(attempts, ["1", "2", "3", "1", "1"]);
    let of_first: Vec<&str> = told[..3].iter().map(|one| one.header("X-OJS-Delivery-ID")).collect();
    assert!(of_first.iter().all(|id| *id == of_first[0]), "{of_first:?}");
    assert!(python_agrees(&secret, &told), "each attempt is signed with its own time");
    eventually("all is well again", || show(&server, &id)["state"] == "working");
    let first = deliveries(&server, &id).pop().unwrap();
    assert_eq!((&first["attempts"], &first["state"]), (&json!(3), &json!("delivered")));
}

#[test]
fn a_receiver_that_never_answers_keeps_nobody_waiting() {
    let (dead, lively) = (Receiver::answering(|_| 0), Receiver::new());
    let server = server(&[&dead, &lively]);
    for _ in 0..20 {
        subscribe(&server, &dead, json!({}));
    }
    let (id, _) = subscribe(&server, &lively, json!({"types": ["job.enqueued"]}));
    let jobs: Vec<String> = (0..50).map(|_| server.push_to("q", json!({}))).collect();
    let told: Vec<String> = lively.told_times(50).iter().map(|one| one.what().1).collect();
    assert_eq!(told, jobs);
    // Every one of the dead has one request, and not more.
    dead.told_times(20);
    assert_eq!(dead.told().len(), 20);
    server.get("/ojs/v1/health").is(200, "the server is well");
    assert_eq!(show(&server, &id)["state"], "working");
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0), "and it ends when asked, whoever is still to answer");
}

#[test]
fn what_fails_for_days_is_disabled_with_a_reason_and_goes_on_where_it_was() {
    let receiver = Receiver::answering(|_| 503);
    let server = server(&[&receiver]);
    let (id, _) = subscribe(&server, &receiver, json!({"types": ["job.enqueued"]}));
    let job = server.push_to("q", json!({}));
    for attempts in 1..=12 {
        eventually("the attempt is written down", || show(&server, &id)["pending"]["attempts"] == attempts);
        if attempts == 11 {
            // Beyond the last wait, and five days after the first failure.
            server.pass(5 * 24 * 3_600);
        } else if attempts < 11 {
            let next = time(&show(&server, &id)["pending"]["next_attempt_at"]);
            server.clock(&next.to_string());
        }
    }
    let disabled = show(&server, &id);
    assert_eq!((&disabled["state"], &disabled["enabled"]), (&json!("disabled"), &json!(false)));
    let reason = text(&disabled["disabled_reason"]);
    let expected = "nothing was delivered since 2026-02-12T20:15:20Z: the receiver answered 503";
    assert_eq!(reason, expected);
    assert_eq!(deliveries(&server, &id)[0]["state"], "stopped");
    let events = server.events("webhook.disabled");
    assert_eq!((&events[0]["subject"], &events[0]["data"]["reason"]), (&json!(id), &json!(reason)));
    let before = receiver.told().len();
    let other = server.push_to("q", json!({}));
    server.pass(24 * 3_600);
    pause(300);
    assert_eq!(receiver.told().len(), before, "it is left alone");

    receiver.answer(|_| 200);
    let enabled = change(&server, &id, json!({"enabled": true}));
    assert_eq!((enabled["disabled_reason"].is_null(), &enabled["state"]), (true, &json!("failing")));
    let told = receiver.told_times(before + 2);
    let subjects: Vec<String> = told[before..].iter().map(|one| one.what().1).collect();
    assert_eq!(subjects, [job, other], "nothing was lost");
    assert_eq!(told[before].header("X-Kron-Attempt"), "13");
    assert_eq!(told[before].header("X-OJS-Delivery-ID"), told[0].header("X-OJS-Delivery-ID"));
}

#[test]
fn a_webhook_can_be_sent_past_what_its_receiver_cannot_take_and_back() {
    let receiver = Receiver::answering(|told| if told.body.contains("poison") { 400 } else { 200 });
    let server = server(&[&receiver]);
    let (id, _) = subscribe(&server, &receiver, json!({"types": ["job.enqueued"]}));
    server.push_to("poison", json!({}));
    let good = server.push_to("q", json!({}));
    receiver.told_times(1);
    eventually("it fails", || show(&server, &id)["state"] == "failing");
    let poison = show(&server, &id)["pending"]["event_id"].clone();
    change(&server, &id, json!({"after": poison}));
    let told = receiver.told_times(2);
    assert_eq!(told[1].what().1, good);
    let states =
        || -> Vec<Value> { deliveries(&server, &id).iter().map(|one| one["state"].clone()).collect() };
    eventually("both are written down", || states() == ["delivered", "passed_over"]);
    // And back: what is told again has the same id.
    change(&server, &id, json!({"after": poison}));
    let told = receiver.told_times(3);
    assert_eq!(told[2].header("X-OJS-Delivery-ID"), told[1].header("X-OJS-Delivery-ID"));
    // A webhook may also begin in the past.
    let (_, _) = subscribe(&server, &receiver, json!({"after": poison, "types": ["job.enqueued"]}));
    assert_eq!(receiver.told_times(4)[3].what().1, good);
}

#[test]
fn kinds_that_are_added_later_are_told_and_nothing_in_between_is_lost() {
    let receiver = Receiver::new();
    let server = server(&[&receiver]);
    let (id, _) = subscribe(&server, &receiver, json!({"types": ["job.completed"]}));
    for round in 0..10 {
        let types = if round % 2 == 0 { json!(["job.enqueued"]) } else { json!(["job.enqueued", "job.*"]) };
        change(&server, &id, json!({"types": types}));
        server.push_to("q", json!({}));
    }
    assert_eq!(receiver.told_times(10).len(), 10);
    change(&server, &id, json!({"enabled": false}));
    let missed = server.push_to("q", json!({}));
    change(&server, &id, json!({"enabled": true}));
    assert_eq!(
        receiver.told_times(11)[10].what().1,
        missed,
        "what happened while it was disabled comes then"
    );
    server.delete(&format!("{PATH}/{id}")).is(200, "a webhook is removed");
    server.push_to("q", json!({}));
    pause(300);
    assert_eq!(receiver.told().len(), 11);
    server.get(&format!("{PATH}/{id}")).refused(404, "not_found", "it is gone");
}

#[test]
fn a_test_says_at_once_what_came_of_it() {
    let receiver = Receiver::new();
    let server = server(&[&receiver]);
    let (id, secret) = subscribe(&server, &receiver, json!({"types": ["job.enqueued"], "enabled": false}));
    let test =
        || server.post(&format!("{PATH}/{id}/test"), json!({})).is(200, "it is tried")["delivery"].clone();
    let delivery = test();
    assert_eq!((&delivery["state"], &delivery["status"]), (&json!("delivered"), &json!(200)));
    let told = receiver.told_times(1);
    assert_eq!((told[0].event()["type"].clone(), told[0].what().1), (json!("webhook.ping"), id.clone()));
    assert_eq!(told[0].header("X-OJS-Delivery-ID"), delivery["id"]);
    assert!(python_agrees(&secret, &told));
    receiver.answer(|_| 500);
    let delivery = test();
    assert_eq!(
        (&delivery["state"], &delivery["error"]),
        (&json!("failed"), &json!("the receiver answered 500"))
    );
    assert!(deliveries(&server, &id).is_empty(), "it is no event");

    // Another secret counts from now on.
    let renewed = server.post(&format!("{PATH}/{id}/secret"), json!({})).is(200, "it is renewed");
    test();
    let told = receiver.told_times(3);
    assert!(
        python_agrees(text(&renewed["webhook"]["secret"]), &told[2..]) && !python_agrees(&secret, &told[2..])
    );
}

#[test]
fn the_secret_is_shown_once() {
    let receiver = Receiver::new();
    let server = server(&[&receiver]);
    let answer = server.post(PATH, json!({"url": receiver.url(), "description": "mine"}));
    let made = answer.is(201, "a webhook is made")["webhook"].clone();
    let id = text(&made["id"]);
    assert_eq!(answer.header("Location"), format!("{PATH}/{id}"));
    assert!(text(&made["secret"]).starts_with("whsec_"));
    let shown: [Answer; 4] = [
        server.get(PATH),
        server.get(&format!("{PATH}/{id}")),
        server.patch(&format!("{PATH}/{id}"), json!({"description": null})),
        server.delete(&format!("{PATH}/{id}")),
    ];
    for answer in &shown {
        assert!(answer.status == 200 && !answer.text.contains("secret"), "{}", answer.text);
    }
    assert!(shown[0].text.contains("\"mine\"") && shown[2].json()["webhook"]["description"].is_null());
    assert!(!server.said().contains(text(&made["secret"])), "and no log holds it");
}

#[test]
fn nobody_is_called_who_may_not_be() {
    // With the settings that a server has if nobody says otherwise, and somebody who listens inside.
    let inside = Receiver::new();
    let server = Server::new();
    for (url, why) in [
        (inside.url(), "this one is not encrypted; the setting `webhooks.http` allows that"),
        (format!("https://{}/", inside.address), "which is a loopback address"),
        ("https://169.254.169.254/latest/meta-data/".into(), "which is a link-local address"),
        ("https://[::ffff:127.0.0.1]/".into(), "which is an IPv4 address in IPv6"),
        ("https://2130706433/".into(), "its host is a number that is no address in its usual form"),
        ("https://example.com:22/".into(), "webhooks may not call port 22"),
        ("https://a:b@example.com/".into(), "this one holds a user or a password"),
    ] {
        let error =
            server.post(PATH, json!({"url": url})).refused(400, "invalid_request", "it is refused at once");
        assert!(text(&error["message"]).contains(why), "{url}: {error}");
        assert_eq!(error["details"]["field"], "url");
    }
    // A name may lead anywhere, and is looked at when it is dialled.
    let made = server.post(PATH, json!({"url": "https://localhost/"})).is(201, "a name is taken");
    let id = text(&made["webhook"]["id"]);
    let delivery =
        server.post(&format!("{PATH}/{id}/test"), json!({})).is(200, "and tried")["delivery"].clone();
    assert_eq!(delivery["state"], "failed");
    assert!(text(&delivery["error"]).contains("which is a loopback address"), "{delivery}");
    // The same goes for real events.
    server.push_to("q", json!({}));
    eventually("it fails", || show(&server, id)["state"] == "failing");
    assert!(text(&show(&server, id)["pending"]["error"]).contains("which is a loopback address"));
    assert!(inside.told().is_empty());
}

#[test]
fn mistakes_are_told() {
    let server = Server::new();
    for (body, message) in [
        (json!({}), "expected a `url`, but it is missing"),
        (json!({"url": 1}), "expected a URL in `url`, but found `1`"),
        (
            json!({"url": "https://example.com/", "event": []}),
            "expected `url`, `types`, `description`, `enabled` or `after`, but found `event`",
        ),
        (
            json!({"url": "https://example.com/", "types": ["Job Done"]}),
            "expected up to 100 kinds of events such as \"job.completed\" or \"cron.*\" in `types`, but found `[\"Job Done\"]`",
        ),
        (
            json!({"url": "https://example.com/", "enabled": 1}),
            "expected true or false in `enabled`, but found `1`",
        ),
        (
            json!({"url": "https://example.com/", "after": "yesterday"}),
            "expected the id of an event in `after`, but found `yesterday`",
        ),
    ] {
        let error = server.post(PATH, body).refused(400, "invalid_request", message);
        assert_eq!(error["message"], message);
    }
    assert_eq!(server.get(PATH).is(200, "nothing was made")["count"], 0);
    for (method, path) in
        [("GET", ""), ("DELETE", ""), ("GET", "/deliveries"), ("POST", "/test"), ("POST", "/secret")]
    {
        let answer = server.send(method, &format!("{PATH}/whk_none{path}"), &[], b"");
        answer.refused(404, "not_found", "there is no such webhook");
    }
    server.patch(&format!("{PATH}/whk_none"), json!({})).refused(
        404,
        "not_found",
        "there is no such webhook",
    );

    let (home, _) = home(&[]);
    let path = home.data().with_file_name("wrong.toml");
    fs::write(&path, "[webhooks]\nca = \"/nowhere/ca.pem\"\n").unwrap();
    let output = home.command(&["--config", path.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("could not read the certificates in /nowhere/ca.pem"),
        "{said}"
    );
}

#[test]
fn events_that_were_forgotten_before_they_could_be_told_are_counted() {
    let receiver = Receiver::new();
    let server = server(&[&receiver]);
    let (id, _) = subscribe(&server, &receiver, json!({}));
    server.push_to("q", json!({}));
    receiver.told_times(1);
    change(&server, &id, json!({"enabled": false}));
    for _ in 0..5 {
        server.push_to("q", json!({}));
    }
    // Old things are forgotten at a start, when the clock is the host's, which is many weeks later.
    let config = server.home().data().with_file_name("kron-server.toml").to_str().unwrap().to_owned();
    let server = server.kill().start(&["--test-mode", "--config", &config]);
    eventually("they are forgotten", || server.events("job.enqueued").is_empty());
    change(&server, &id, json!({"enabled": true}));
    let late = server.push_to("q", json!({}));
    assert_eq!(receiver.told_times(2)[1].what().1, late);
    eventually("they are counted", || show(&server, &id)["forgotten_events"] == 5);
}

#[test]
fn a_kill_between_telling_and_writing_it_down_repeats_and_loses_nothing() {
    let receiver = Receiver::new();
    let (home, config) = home(&[&receiver]);
    let mut server = home.start(&["--config", &config]);
    let (id, secret) = subscribe(&server, &receiver, json!({"types": ["job.enqueued"]}));
    let mut jobs = Vec::new();
    for round in 0..6_usize {
        // The receiver hears of some, and the server is killed before it can know that: while it waits for the answer,
        // or when the answer has just been sent.
        let heard = receiver.told().len() + round % 3;
        let silent = round.is_multiple_of(2);
        let count = Arc::clone(&receiver.told);
        receiver.answer(move |_| if silent && count.lock().unwrap().len() > heard { 0 } else { 200 });
        for _ in 0..5 {
            jobs.push(server.push_to("q", json!({})));
        }
        receiver.told_times(heard + 1);
        server.kill();
        receiver.answer(|_| 200);
        server = home.start(&["--config", &config]);
    }
    let distinct = |told: &[Told]| {
        let mut seen: Vec<String> = Vec::new();
        for one in told {
            let job = one.what().1;
            if !seen.contains(&job) {
                seen.push(job);
            }
        }
        seen
    };
    eventually("all were told", || distinct(&receiver.told()).len() == jobs.len());
    let told = receiver.told();
    assert_eq!(distinct(&told), jobs, "each at least once, and first in order");
    assert!(told.len() > jobs.len(), "some more than once: {} of {}", told.len(), jobs.len());
    for (position, one) in told.iter().enumerate() {
        let again = told[..position].iter().filter(|it| it.what() == one.what());
        for first in again {
            assert_eq!(
                first.header("X-OJS-Delivery-ID"),
                one.header("X-OJS-Delivery-ID"),
                "under the same id"
            );
            assert_eq!(first.body, one.body);
        }
        // Only the one that was on its way when the server was killed comes again.
        if let Some(next) = told.get(position + 1) {
            let [here, there] =
                [one, next].map(|it| jobs.iter().position(|job| *job == it.what().1).unwrap());
            assert!(there == here || there == here + 1, "{here} and then {there}");
        }
    }
    assert!(python_agrees(&secret, &told));
    eventually("all is well", || show(&server, &id)["state"] == "working");
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn what_is_on_its_way_when_the_server_ends_arrives_and_is_written_down() {
    let receiver = Receiver::answering(|_| {
        pause(800);
        200
    });
    let (home, config) = home(&[&receiver]);
    let server = home.start(&["--config", &config]);
    let (id, _) = subscribe(&server, &receiver, json!({"types": ["job.enqueued"]}));
    let job = server.push_to("q", json!({}));
    receiver.told_times(1);
    let (home, status) = server.stop();
    assert_eq!(status.code(), Some(0));
    let server = home.start(&["--config", &config]);
    let next = server.push_to("q", json!({}));
    let told: Vec<String> = receiver.told_times(2).iter().map(|one| one.what().1).collect();
    assert_eq!(told, [job, next], "it is not told again");
    eventually("both are written down", || deliveries(&server, &id).len() == 2);
}
