//! Rows that cannot be read: nobody waits for them, and what can be read again comes back.

use super::*;

#[test]
fn a_job_that_was_set_aside_is_taken_back_once_it_can_be_read() {
    in_every_store(|mut world| async move {
        let busy = world.push(json!({"visibility_timeout_ms": 3_000})).await;
        assert_eq!(world.fetch(1).await, [busy.as_str()]);
        let ready = world.push(json!({})).await;
        let later = world.push(json!({"scheduled_at": "+PT10S"})).await;
        let (hopeless, mixed_up) = (world.push(json!({})).await, world.push(json!({})).await);
        let all = [&*busy, &*ready, &*later, &*hopeless, &*mixed_up];
        world.damage(&all).await;
        world.look_at(&all).await;
        world.store.advance(world.now).await.unwrap();
        // Another look may have begun before, and be told after.
        let is_due_after = async |seconds: i64| {
            let (mut due, at) = (world.store.due(), start() + SignedDuration::from_secs(seconds));
            let is_due = due.wait_for(|due| due.jobs == Some(at));
            tokio::time::timeout(PATIENCE, is_due).await.unwrap().unwrap();
        };
        // The worker's only.
        is_due_after(30).await;
        assert!(world.fetch(9).await.is_empty());
        assert!(!world.prune().await);
        assert!(world.fetch(9).await.is_empty(), "nothing was mended");

        let waiter = world.store.bell().listen(&["default".into()]);
        let enqueued = world.told("job.enqueued").await;
        world.mend(&[&busy, &ready, &later]).await;
        let copy = format!(
            "UPDATE jobs SET body = (SELECT body FROM jobs WHERE id = '{ready}') WHERE id = '{mixed_up}'"
        );
        assert_eq!(world.database.execute(&copy).await, 1);
        assert!(!world.prune().await);
        tokio::time::timeout(PATIENCE, waiter.wait()).await.expect("whoever waits for work is woken");
        assert_eq!(world.told("job.enqueued").await, enqueued + 1, "so that other nodes hear of it");
        is_due_after(3).await;
        assert_eq!(world.fetch(9).await, [ready.as_str()]);
        world.ack(&ready).await;
        world.prune().await;
        assert!(world.fetch(9).await.is_empty(), "a body of another job brings that one not back");
        world.wait(3);
        assert_eq!(world.state(&busy).await, State::Available);
        assert_eq!(world.state(&later).await, State::Scheduled);
        world.wait(7);
        assert_eq!(world.fetch(9).await, [busy, later]);
        assert!(world.store.job(&hopeless, world.now).await.is_err());
        assert_eq!(world.counted("kron_store_unreadable_total").await, 5);
    });
}

#[test]
fn however_many_jobs_cannot_be_read_time_goes_on_and_each_is_looked_at_again() {
    in_every_store(|mut world| async move {
        let options =
            |delay: &str| json!({"type": "test.job", "args": [], "options": {"scheduled_at": delay}});
        let mut jobs: Vec<Job> =
            (0..=ADVANCE_MAX.max(TAKE_BACK_MAX)).map(|_| world.read(&options("+PT5S"))).collect();
        let mut bad: Vec<String> = jobs.iter().map(|job| job.id.clone()).collect();
        bad.sort();
        jobs.push(world.read(&options("+PT6S")));
        let good = world.store.push(jobs).await.unwrap().pop().unwrap().id;
        world.damage(&bad.iter().map(String::as_str).collect::<Vec<_>>()).await;
        world.wait(6);
        assert!(world.store.advance(world.now).await.unwrap(), "there is more");
        while world.store.advance(world.now).await.unwrap() {}
        assert_eq!(world.fetch(9).await, [good]);

        let (first, last) = (bad[0].as_str(), bad[bad.len() - 1].as_str());
        world.mend(&[last]).await;
        assert!(world.prune().await, "there are more to look at");
        assert!(world.fetch(9).await.is_empty());
        assert!(!world.prune().await);
        while world.store.advance(world.now).await.unwrap() {}
        assert_eq!(world.fetch(9).await, [last]);
        world.mend(&[first]).await;
        world.prune().await;
        while world.store.advance(world.now).await.unwrap() {}
        assert_eq!(world.fetch(9).await, [first], "and then from the first one on");
    });
}

#[test]
fn jobs_that_wait_for_one_that_is_set_aside_get_their_turn_and_it_waits_for_its_own() {
    in_every_store(|mut world| async move {
        world.register(json!({"name": "c", "cron": "* * * * *", "overlap_policy": "enqueue"})).await;
        world.turn(60).await;
        world.turn(60).await;
        let mut jobs: Vec<String> = world.of_cron("c", None).await.into_iter().map(|job| job.id).collect();
        jobs.sort();
        let [one, two] = [&*jobs[0], &*jobs[1]];
        world.damage(&[one]).await;
        assert_eq!(world.fetch(9).await, [two]);
        world.mend(&[one]).await;
        world.prune().await;
        assert!(world.fetch(9).await.is_empty(), "one is back, and the other has its turn");
        world.ack(two).await;
        assert_eq!(world.fetch(9).await, [one]);

        // One that a worker has cannot be made to wait, but others wait for it again.
        let [three, four] = [world.store.run("c", world.now).await, world.store.run("c", world.now).await];
        let [three, four] = [three, four].map(|job| job.unwrap().unwrap().id);
        let set_aside_and_take_back = async |then: &str| {
            world.damage(&[one]).await;
            world.look_at(&[one]).await;
            assert_eq!(world.fetch(9).await, [then]);
            world.mend(&[one]).await;
            world.prune().await;
            assert_eq!(world.state(one).await, State::Active);
        };
        set_aside_and_take_back(&three).await;
        world.ack(&three).await;
        assert!(world.fetch(9).await.is_empty(), "a worker has the first one");
        set_aside_and_take_back(&four).await;
        world.store.change(one, Change::Nack(Nack { requeue: true, ..nack() }), world.now).await.unwrap();
        assert!(world.fetch(9).await.is_empty(), "it comes back to the queue while another is active");
        world.ack(&four).await;
        assert_eq!(world.fetch(9).await, [one]);
    });
}

#[test]
fn whoever_finds_only_jobs_that_are_set_aside_is_woken_for_those_behind_them() {
    in_every_store(|world| async move {
        let mut bad = Vec::new();
        for _ in 0..9 {
            bad.push(world.push(json!({"priority": 1})).await);
        }
        let good = world.push(json!({})).await;
        world.damage(&bad.iter().map(String::as_str).collect::<Vec<_>>()).await;
        // What was done before wakes nobody after this.
        world.store.advance(world.now).await.unwrap();
        let waiter = world.store.bell().listen(&["default".into()]);
        let mut looks = 1;
        let mut handed_out = world.fetch(1).await;
        while handed_out.is_empty() {
            tokio::time::timeout(PATIENCE, waiter.wait()).await.expect("it is woken to look again");
            looks += 1;
            handed_out = world.fetch(1).await;
        }
        assert_eq!(handed_out, [good]);
        assert!(looks > 1, "too few of them for a fetch to find only those");
        // Those behind one of them are found by the same look.
        let (bad, good) = (world.push(json!({"priority": 1})).await, world.push(json!({})).await);
        world.damage(&[&bad]).await;
        assert_eq!(world.fetch(1).await, [good]);
    });
}

#[test]
fn a_heartbeat_succeeds_whatever_cannot_be_read_and_each_job_is_counted_once() {
    in_every_store(|world| async move {
        let (bad, good, done) =
            (world.push(json!({})).await, world.push(json!({})).await, world.push(json!({})).await);
        assert_eq!(world.fetch(9).await.len(), 3);
        world.ack(&done).await;
        assert_eq!(world.beat("w", &[&bad, &good]).await.extended, 2);
        world.damage(&[&bad, &done]).await;
        let sql = "UPDATE workers SET body = '!' || body";
        assert_eq!(world.database.execute(sql).await, 1);
        for _ in 0..2 {
            let beaten = world.beat("w", &[&bad, &good, &done]).await;
            assert_eq!((beaten.state, beaten.extended), (WorkerState::Running, 1));
            assert_eq!(beaten.lost, [bad.as_str(), done.as_str()]);
        }
        assert_eq!(world.counted("kron_store_unreadable_total").await, 1);
        world.mend(&[&done]).await;
        let filter = JobFilter { state: Some(State::Completed), ..JobFilter::default() };
        let (ended, _) = world.store.jobs(filter, all(), world.now).await.unwrap();
        assert_eq!(ended.len(), 1, "what has ended is left as it is");

        assert_eq!(world.database.execute(sql).await, 1);
        let refusal = world.store.direct("w", WorkerState::Quiet, world.now).await.unwrap_err();
        assert_eq!(refusal.code, Code::NotFound);
        assert!(world.fetch(9).await.is_empty());
    });
}

#[test]
fn what_cannot_be_read_keeps_nothing_from_being_counted_and_forgotten() {
    in_every_store(|mut world| async move {
        let dead = world.push(json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}})).await;
        world.fetch(1).await;
        world.fail(&dead).await;
        world.damage(&[&dead]).await;
        assert_eq!(world.store.dead_stats().await.unwrap().total, 1);
        world.beat("silent", &[]).await;
        world.wait(31);
        while world.store.advance(world.now).await.unwrap() {}
        assert_eq!(world.database.execute("UPDATE workers SET body = '!' || body").await, 1);
        let webhook = || Webhook::new("https://example.com/".into(), 0, Secret::new().unwrap(), world.now);
        let (bad, good) = (webhook(), webhook());
        for webhook in [&bad, &good] {
            world.store.add_webhook(webhook.clone()).await.unwrap();
        }
        let damage = format!("UPDATE webhooks SET body = '!' || body WHERE id = '{}'", bad.id);
        assert_eq!(world.database.execute(&damage).await, 1);
        let served = world.store.webhooks().await.unwrap();
        assert_eq!(served.iter().map(|it| &it.id).collect::<Vec<_>>(), [&good.id], "the other is served");
        assert!(world.store.webhook(&bad.id).await.is_err(), "and who asks for it is told so");
        let told = world.told("*").await as u64;
        assert!(told > 0);
        world.wait(400 * 86_400);
        while world.prune().await {}
        assert_eq!(world.store.dead_stats().await.unwrap().total, 0);
        assert_eq!(world.store.workers(all()).await.unwrap().1.total, 0);
        assert_eq!(world.told("*").await, 0);
        let missed = world.store.webhook(&good.id).await.unwrap().unwrap().forgotten;
        assert_eq!(missed, told, "the other knows what it has missed");
    });
}
