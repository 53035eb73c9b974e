//! Lists: pages, cursors, and what they say about themselves.

use serde_json::{Value, json};

use super::server::{Server, cron, list, text};

/// Path, the member with the rows, and the member that tells rows apart.
const LISTS: [(&str, &str, &str); 4] = [
    ("/ojs/v1/cron", "cron_jobs", "name"),
    ("/ojs/v1/queues", "queues", "name"),
    ("/ojs/v1/dead-letter", "jobs", "id"),
    ("/kron/v1/jobs", "jobs", "id"),
];

/// A server with so many cron jobs, queues, and dead letters.
fn with_many(many: usize) -> Server {
    let server = Server::new();
    for index in 0..many {
        server.register(cron(&format!("cron-{index:03}"), "@yearly", json!({})));
        let queue = format!("queue-{index:03}");
        let id =
            server.push_to(&queue, json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}));
        server.fetch_one(&queue);
        server.nack(&id).is(200, "nack");
    }
    server
}

/// All pages of a list, each checked for what it says about itself.
fn walk(server: &Server, path: &str, rows: &str, limit: usize, total: usize) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("{path}?limit={limit}{cursor}")).is(200, path);
        let about = &page["pagination"];
        let items = list(&page[rows]);
        assert!(items.len() <= limit, "1.6: never more rows than limit: {path}");
        assert_eq!(
            (&about["total"], &about["limit"]),
            (&json!(total), &json!(limit)),
            "1.6, 9: {path}: {about}"
        );
        assert!(about["offset"].is_u64(), "9: the SDK refuses a pagination without offset: {path}: {about}");
        pages.push(items);
        assert!(pages.len() <= total + 1, "1.6: pages end: {path}");
        if about["has_more"] != true {
            assert!(
                about.get("next_cursor").is_none_or(Value::is_null),
                "1.6: next_cursor iff has_more: {about}"
            );
            return pages;
        }
        let next = text(&about["next_cursor"]);
        assert!(!next.is_empty(), "1.6: non-empty iff has_more: {about}");
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn every_list_comes_in_pages() {
    let server = with_many(5);
    for (path, rows, key) in LISTS {
        let pages = walk(&server, path, rows, 2, 5);
        let sizes: Vec<_> = pages.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 2, 1], "1.6: {path}");
        let mut keys: Vec<_> = pages.iter().flatten().map(|row| text(&row[key]).to_owned()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 5, "1.6: every row once: {path}");
        assert_eq!(walk(&server, path, rows, 5, 5).len(), 1, "1.6: a full last page is the last: {path}");

        let rest = server.get(&format!("{path}?limit=10&offset=3")).is(200, "1.6: offset");
        assert_eq!(list(&rest[rows]).len(), 2, "1.6: offset: {path}");
        assert_eq!(rest["pagination"]["offset"], 3, "1.6: offset: {path}");
    }
}

#[test]
fn limits_out_of_range_are_clamped_and_nonsense_is_refused() {
    let server = with_many(3);
    for (path, rows, _) in LISTS {
        for limit in ["0", "100000", "99999999999999999999"] {
            let page = server.get(&format!("{path}?limit={limit}"));
            if limit.len() < 10 || page.status != 400 {
                let page = page.is(200, &format!("1.6: out-of-range limit: clamp: {path}?limit={limit}"));
                assert!(
                    page["pagination"]["limit"].as_u64().is_some_and(|l| (1..=1_000).contains(&l)),
                    "1.6: {page}"
                );
                assert!(!list(&page[rows]).is_empty(), "1.6: clamped, not empty: {path}");
            }
        }
        for query in ["limit=two", "offset=x", "cursor=nonsense", "cursor=%FF", "cursor=AAAAAAAAAAAAAAAA"] {
            let answer = server.get(&format!("{path}?{query}"));
            answer.refused(400, "invalid_request", &format!("1.6: {path}?{query}"));
        }
    }
}

#[test]
fn the_list_of_cron_jobs_is_whole_unless_pages_are_asked_for() {
    let server = Server::new();
    for index in 0..60 {
        server.register(cron(&format!("cron-{index:03}"), "@yearly", json!({"enabled": index % 2 == 0})));
    }
    let all = server.get("/ojs/v1/cron").is(200, "8.2");
    assert_eq!((&all["count"], &all["pagination"]["total"]), (&json!(60), &json!(60)), "decision 16: all");
    assert_eq!(list(&all["cron_jobs"]).len(), 60, "8.2: list all registered cron jobs");
    let some = server.get("/ojs/v1/cron?limit=7&enabled=true").is(200, "8.2");
    assert_eq!(
        (&some["count"], &some["pagination"]["total"]),
        (&json!(7), &json!(30)),
        "decision 16: count, total"
    );
}

#[test]
fn other_lists_have_fifty_rows_unless_told_otherwise() {
    let server = Server::new();
    for _ in 0..60 {
        server.push_to("q", json!({}));
    }
    let page = server.get("/kron/v1/jobs").is(200, "the list");
    assert_eq!(list(&page["jobs"]).len(), 50, "1.6: 50 by default");
    assert_eq!(
        (&page["pagination"]["total"], &page["pagination"]["has_more"]),
        (&json!(60), &json!(true)),
        "1.6"
    );
    assert_eq!(walk(&server, "/kron/v1/jobs", "jobs", 25, 60).len(), 3, "1.6: pages");
}
