//! What only holds where many nodes share a database.

use std::time::Instant;

use jiff::SignedDuration;
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};

use super::*;
use crate::event::Event;

/// The longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn rules() -> Rules {
    Rules {
        defaults: crate::job::Defaults::default(),
        counting: crate::cron::Counting::Active,
        directives: false,
        source: "ojs://test".into(),
        metrics: Arc::default(),
    }
}

/// Runs a case with a new database.
fn with_database<F: Future<Output = ()>>(case: impl FnOnce(Place) -> F) {
    let Some(place) = server::database() else {
        assert!(std::env::var_os("KRON_WITHOUT_POSTGRES").is_some(), "PostgreSQL is not installed");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(case(place));
}

async fn node(place: &Place) -> Postgres {
    Postgres::open(place, rules(), "test".into(), Arc::new(Zones::bundled())).await.unwrap()
}

async fn leads(node: &Postgres) {
    let mut lease = node.core.lease.clone();
    tokio::time::timeout(PATIENCE, lease.wait_for(Option::is_some)).await.unwrap().unwrap();
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn register(node: &Postgres, name: &str, now: Timestamp) {
    let given = json!({"name": name, "cron": "* * * * *", "type": "a.b"});
    let given = Members::read(given.to_string().as_bytes()).unwrap();
    node.register(Registration::read(given, &node.zones, now).unwrap(), now).await.unwrap();
}

/// Another node's attempt to take the lease, which gives up after a while.
async fn take_over(place: &Place) -> Result<(), sqlx::Error> {
    let mut other = PgConnection::connect(&place.url).await.unwrap();
    other.execute("BEGIN; SET LOCAL lock_timeout = '500ms'").await?;
    other.execute("UPDATE leader SET epoch = epoch + 1, holder = 'other' WHERE id = 1").await?;
    other.execute("COMMIT").await.map(drop)
}

#[test]
fn while_a_fire_is_written_nobody_takes_the_lease_and_it_can_be_renewed() {
    with_database(|place| async move {
        let node = node(&place).await;
        leads(&node).await;
        let epoch = node.core.lease.borrow().unwrap().epoch;
        let mut desk = node.core.begin().await.unwrap();
        assert!(desk.is_current(epoch, &node.core.node).await.unwrap());
        assert!(take_over(&place).await.is_err(), "the epoch is locked");
        let mut renewal = PgConnection::connect(&place.url).await.unwrap();
        renewal.execute("BEGIN; SET LOCAL lock_timeout = '500ms'").await.unwrap();
        renewal.execute("UPDATE leader SET expires_at = clock_timestamp() WHERE id = 1").await.unwrap();
        renewal.execute("ROLLBACK").await.unwrap();
        assert!(matches!(desk.commit().await, Committed::Done(_)));
        take_over(&place).await.unwrap();
        let mut desk = node.core.begin().await.unwrap();
        assert!(!desk.is_current(epoch, &node.core.node).await.unwrap(), "and then it is another's");
    });
}

#[test]
fn a_look_at_the_epoch_that_locks_nothing_is_no_fence() {
    // The planted fault: what the test above would not have survived.
    with_database(|place| async move {
        let node = node(&place).await;
        leads(&node).await;
        let epoch = node.core.lease.borrow().unwrap().epoch;
        let mut desk = node.core.begin().await.unwrap();
        let plain = "SELECT 1 FROM leader WHERE id = 1 AND epoch = $1";
        assert!(desk.row(sqlx::query(plain).bind(epoch)).await.unwrap().is_some());
        take_over(&place).await.unwrap();
        desk.tell([Event::new("cron.triggered", "late", at("2026-01-01T00:00:00Z"))]);
        assert!(matches!(desk.commit().await, Committed::Done(_)), "a fire of an epoch that has ended");
    });
}

#[test]
fn without_the_key_an_occurrence_fires_twice() {
    // The planted fault: the key of the record is what `an_occurrence_that_is_recorded_never_fires_again` rests on.
    with_database(|place| async move {
        let node = node(&place).await;
        leads(&node).await;
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        let (before, due) = (at("2026-01-01T00:00:30Z"), at("2026-01-01T00:01:00Z"));
        for (expected, sql) in
            [(1, ""), (1, ""), (2, "ALTER TABLE occurrences DROP CONSTRAINT occurrences_pkey")]
        {
            connection.execute(sql).await.unwrap();
            node.unregister("twice").await.unwrap();
            register(&node, "twice", before).await;
            while node.turn(due, due).await.unwrap() {}
            let filter = JobFilter { cron: Some("twice".into()), ..JobFilter::default() };
            let all = PageRequest { limit: None, cursor: None, offset: 0 };
            assert_eq!(node.jobs(filter, all, due).await.unwrap().0.len(), expected, "{sql}");
        }
    });
}

#[test]
fn events_of_transactions_that_end_late_are_not_passed_over() {
    with_database(|place| async move {
        let node = node(&place).await;
        let now = at("2026-01-01T00:00:00Z");
        // It has its number, and is not committed.
        let mut early = PgConnection::connect(&place.url).await.unwrap();
        early.execute("BEGIN; INSERT INTO events SELECT (pg_current_xact_id()::text::bigint << 20) + 1, 'evt_early', \
             'a.early', 's', NULL, NULL, 0, '{}'").await.unwrap();
        node.pause("late", true, now).await.unwrap();
        let query = EventQuery { limit: 10, ..EventQuery::default() };
        let kinds =
            |events: &Events| events.events.iter().map(|event| event.kind.clone()).collect::<Vec<_>>();
        let read = node.events(query.clone()).await.unwrap();
        assert!(read.events.is_empty(), "what comes later waits: {:?}", kinds(&read));
        early.execute("COMMIT").await.unwrap();
        let after = Some(crate::store::After::Number(read.through));
        let read = node.events(EventQuery { after, ..query }).await.unwrap();
        assert_eq!(kinds(&read), ["a.early", "queue.paused"]);
    });
}

#[test]
fn a_commit_that_was_not_answered_is_read_back() {
    with_database(|place| async move {
        let node = node(&place).await;
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        let told = "INSERT INTO events SELECT (pg_current_xact_id()::text::bigint << 20) + 1, $1, 'a.b', 's', NULL, NULL, \
                    0, '{}' RETURNING pg_current_xact_id()::text";
        let mut marks = Vec::new();
        for (id, end) in [("evt_done", "COMMIT"), ("evt_undone", "ROLLBACK"), ("evt_open", "SELECT 1")] {
            connection.execute("BEGIN").await.unwrap();
            let transaction: String =
                sqlx::query_scalar(told).bind(id).fetch_one(&mut connection).await.unwrap();
            connection.execute(end).await.unwrap();
            marks.push(Mark { transaction, event: id.into() });
        }
        assert_eq!(node.core.look_for(&marks[0]).await.unwrap(), Some(true));
        assert_eq!(node.core.look_for(&marks[1]).await.unwrap(), Some(false));
        assert_eq!(node.core.look_for(&marks[2]).await.unwrap(), None, "nobody knows yet");
        // After a crash the database may not have heard of it.
        let unheard = Mark { transaction: "4000000000".into(), event: "evt_unheard".into() };
        assert_eq!(node.core.look_for(&unheard).await.unwrap(), Some(false));
        assert!(node.core.read_back(None).await.is_err(), "without a mark it is said that nobody knows");
        connection.execute("COMMIT").await.unwrap();
        assert!(node.core.read_back(Some(marks[2].clone())).await.unwrap());
    });
}

#[test]
fn tables_of_a_newer_version_are_refused_if_they_cannot_be_used() {
    with_database(|place| async move {
        drop(node(&place).await);
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection.execute("INSERT INTO kron_steps VALUES (98, false)").await.unwrap();
        drop(node(&place).await);
        connection.execute("INSERT INTO kron_steps VALUES (99, true)").await.unwrap();
        let zones = Arc::new(Zones::bundled());
        let refused = Postgres::open(&place, rules(), "test".into(), zones).await.unwrap_err();
        assert_eq!(
            refused,
            "expected tables up to step 2, but found step 99, which this kron-server does not know: a newer one has \
             changed the database; use that version, or another database"
        );
    });
}

#[test]
fn what_is_registered_at_one_node_is_fired_by_the_other_and_a_node_that_ends_is_followed_at_once() {
    with_database(|place| async move {
        let first = node(&place).await;
        leads(&first).await;
        let second = node(&place).await;
        let now = at("2026-01-01T00:00:30Z");
        register(&second, "there", now).await;
        let due = at("2026-01-01T00:01:00Z");
        let mut known = first.due();
        tokio::time::timeout(PATIENCE, known.wait_for(|known| known.crons == Some(due)))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(second.due().borrow().crons, None, "who does not lead has none due");
        assert!(!second.turn(due, due).await.unwrap());
        assert_eq!(second.cron("there").await.unwrap().unwrap().run_count, 0, "and fires none");
        while first.turn(due, due).await.unwrap() {}
        assert_eq!(second.cron("there").await.unwrap().unwrap().run_count, 1);

        let leader = second.cluster().await.unwrap().leader.unwrap();
        assert_eq!(leader.node, first.core.node);
        // Each says of itself that it is there.
        let both = async {
            while second.cluster().await.unwrap().nodes.len() < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, both).await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "how long it takes is the question")]
        let asked = Instant::now();
        first.retire().await;
        leads(&second).await;
        let took = asked.elapsed();
        let after = second.cluster().await.unwrap();
        assert_eq!(after.leader.map(|it| it.epoch), Some(leader.epoch + 1));
        assert_eq!(after.nodes.len(), 1, "one that has ended is not there any more");
        assert!(took < Duration::from_secs(30), "{took:?}");
        let later = due + SignedDuration::from_secs(60);
        assert!(!first.turn(later, later).await.unwrap(), "it fires nothing any more");
        while second.turn(later, later).await.unwrap() {}
        assert_eq!(second.cron("there").await.unwrap().unwrap().run_count, 2);
    });
}

#[test]
fn work_that_comes_in_at_one_node_wakes_whoever_waits_for_it_at_another() {
    with_database(|place| async move {
        for direct in [Some(place.url.clone()), None] {
            let place = Place { direct, ..place.clone() };
            let (here, there) = (node(&place).await, node(&place).await);
            let wanted = there.bell().listen(&["wanted".into()]);
            let other = there.bell().listen(&["other".into()]);
            let given = json!({"type": "a.b", "args": [], "options": {"queue": "wanted"}});
            let given = Members::read(given.to_string().as_bytes()).unwrap();
            let now = at("2026-01-01T00:00:00Z");
            here.push(vec![crate::envelope::read(given, now).unwrap()]).await.unwrap();
            tokio::time::timeout(PATIENCE, wanted.wait()).await.unwrap();
            let is_woken = tokio::time::timeout(Duration::from_millis(100), other.wait()).await.is_ok();
            assert!(!is_woken, "who waits for something else sleeps on");
        }
    });
}

#[test]
fn a_cron_job_that_cannot_be_read_keeps_no_other_from_firing() {
    with_database(|place| async move {
        let node = node(&place).await;
        leads(&node).await;
        let now = at("2026-01-01T00:00:30Z");
        register(&node, "a", now).await;
        register(&node, "b", now).await;
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection
            .execute("UPDATE crons SET body = '{\"from\": \"the future\"}' WHERE name = 'a'")
            .await
            .unwrap();
        let due = at("2026-01-01T00:01:00Z");
        while node.turn(due, due).await.unwrap() {}
        assert_eq!(node.cron("b").await.unwrap().unwrap().run_count, 1);
        let is_due: bool = sqlx::query_scalar("SELECT next_look <= $1 FROM crons WHERE name = 'a'")
            .bind(due.as_second())
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert!(!is_due, "it is looked at again later");
    });
}

#[test]
fn many_registered_cron_jobs_cost_nothing_while_none_is_due_and_little_to_look_at() {
    with_database(|place| async move {
        let _node = node(&place).await;
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection
            .execute("INSERT INTO crons SELECT 'c' || n, true, 2000000000 + n, '{}' FROM generate_series(1, 20000) AS n; \
                      INSERT INTO occurrences SELECT 'c' || n % 10, n, CASE n % 5 WHEN 0 THEN 'range' ELSE 'one' END, n, \
                      n, 1, '{}' FROM generate_series(1, 20000) AS n; ANALYZE crons; ANALYZE occurrences")
            .await
            .unwrap();
        for (index, sql) in [
            ("crons_due", crons::DUE.replace("$1", "1000000000").replace("$2", "500")),
            ("crons_due", "SELECT min(next_look) FROM crons WHERE next_look IS NOT NULL".into()),
            ("crons_due", lists::SOONEST.replace("$1", "0").replace("$2", "''").replace("$3", "20")),
            (
                "occurrences_pkey",
                lists::LATEST
                    .replace("$1", "'c1'")
                    .replace("$2", "0")
                    .replace("$3", "30000")
                    .replace("$4", "20"),
            ),
            (
                "occurrences_in_a_row",
                lists::BEGUN.replace("$1", "'c1'").replace("$2", "15000").replace("$3", "20"),
            ),
        ] {
            let plan: Vec<String> =
                sqlx::query_scalar(&format!("EXPLAIN {sql}")).fetch_all(&mut connection).await.unwrap();
            let plan = plan.join("\n");
            assert!(
                plan.contains(index) && !plan.contains("Seq Scan") && !plan.contains("Sort"),
                "{sql}\n{plan}"
            );
        }
    });
}
