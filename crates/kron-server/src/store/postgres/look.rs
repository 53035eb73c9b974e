//! Finds out what is due and what was told, here and at other nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};

use crate::clock::instant;
use crate::store::{Answer, Due};

use super::Core;
use super::desk::{Desk, earliest, text};
use super::lease::Nudge;
use super::lists::SETTLED;
use super::pool::Pool;
use super::trouble::Outcome;

/// Where nodes call each other.
const CHANNEL: &str = "kron";

/// How often to look while nobody calls: where calls can be heard, and where they cannot.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_EVERY_DEAF: Duration = Duration::from_millis(250);

/// How long to wait before listening again after the connection was lost.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// How long it may take to be connected and to listen.
const LISTEN_MAX: Duration = Duration::from_secs(3);

/// How long nobody may be heard before this node calls itself, and how long that call may take.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const ECHO_MAX: Duration = Duration::from_secs(3);

/// What one look has seen.
pub(super) struct Seen {
    due: Due,
    /// What had been written here when it began.
    written: u64,
    ready: Ready,
    /// The last event below which none can appear any more, and the last of all.
    settled: i64,
    last: i64,
    is_vacant: bool,
}

/// For whom there may be work.
enum Ready {
    All,
    Of(Vec<String>),
}

/// The most events that are looked at for that.
const READY_MAX: i64 = 1_000;

/// How often to ask whether there is work for those who wait, of which they were not told.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The most queues that are asked about at once.
const QUEUES_MAX: usize = 1_000;

/// Looks whenever something happened, and every now and then.
pub(super) async fn keep(core: Arc<Core>) {
    let mut asked = instant();
    loop {
        let every = if core.hears.load(Ordering::Acquire) { LOOK_EVERY } else { LOOK_EVERY_DEAF };
        let told = tokio::select! {
            () = core.kick.notified() => true,
            () = core.called.notified() => false,
            () = tokio::time::sleep(every) => false,
        };
        try_to_look(&core, &core.loop_pool, told).await;
        if asked.elapsed() >= ASK_EVERY {
            asked = instant();
            if let Err(refusal) = ring_for_what_is_there(&core).await {
                tracing::debug!(error = refusal.message, "could not ask what is there for those who wait");
            }
        }
    }
}

/// Wakes those who wait for work that is there. What is told wakes them sooner, but not everything is: a job may get its
/// turn when another ends, a worker may take jobs again, and whoever found all jobs in other hands may have left too soon.
async fn ring_for_what_is_there(core: &Core) -> Answer<()> {
    for some in core.bell.queues().chunks(QUEUES_MAX) {
        let ready = super::read!(core, core.loop_pool, |desk| ready_of(&mut desk, some))?;
        ready.iter().for_each(|queue| core.bell.ring(queue));
    }
    Ok(())
}

/// Those of some queues from which something can be fetched, each by one look at an index.
async fn ready_of(desk: &mut Desk, queues: &[String]) -> Outcome<Vec<String>> {
    let sql = "SELECT wanted.name FROM UNNEST($1::text[]) AS wanted (name) CROSS JOIN LATERAL (SELECT 1 FROM jobs \
               WHERE queue = wanted.name AND state = 'available' AND NOT blocked LIMIT 1) AS ready \
               WHERE NOT EXISTS (SELECT 1 FROM queues WHERE queues.name = wanted.name AND paused)";
    desk.rows(sqlx::query(sql).bind(queues)).await?.iter().map(text).collect()
}

/// Looks, whatever comes of it: what was committed before stays so, and the next look makes up for this one.
pub(super) async fn try_to_look(core: &Core, pool: &Pool, tell: bool) {
    if let Err(refusal) = look(core, pool, tell).await {
        tracing::debug!(error = refusal.message, "could not look");
    }
}

/// Looks, tells the others if something happened here, and publishes what was seen.
pub(super) async fn look(core: &Core, pool: &Pool, tell: bool) -> Answer<()> {
    let known = *core.last_event.borrow();
    let seen = super::read!(core, pool, |desk| see(&mut desk, core, known, tell))?;
    publish(core, seen);
    Ok(())
}

/// Lets everybody here know what was seen.
pub(super) fn publish(core: &Core, seen: Seen) {
    let leads = core.lease.borrow().is_some();
    if seen.is_vacant && !leads {
        let _ = core.nudge.try_send(Nudge::Vacant);
    }
    // Cron jobs are due for the leader only.
    let mut due = Due { crons: seen.due.crons.filter(|_| leads), ..seen.due };
    core.due.send_if_modified(|known| {
        // What was written here since then may not have been seen. The look that it has called for sees it.
        if core.written.load(Ordering::Acquire) != seen.written {
            due.jobs = earliest(known.jobs, due.jobs);
        }
        std::mem::replace(known, due) != due
    });
    let settled = seen.settled.unsigned_abs();
    // An event that is there but not settled yet is news for whoever waits for work.
    let is_news = core.heard.swap(seen.last, Ordering::AcqRel) != seen.last;
    match seen.ready {
        Ready::All => core.bell.ring_all(),
        Ready::Of(queues) => queues.iter().for_each(|queue| core.bell.ring(queue)),
    }
    core.last_event.send_if_modified(|known| {
        let is_new = *known != settled;
        *known = settled.max(*known);
        is_new || is_news
    });
}

pub(super) async fn see(desk: &mut Desk, core: &Core, known: u64, tell: bool) -> Outcome<Seen> {
    let written = core.written.load(Ordering::Acquire);
    let sql = format!(
        "SELECT (SELECT min(due_at) FROM jobs WHERE due_at IS NOT NULL), \
         (SELECT min(dies_at) FROM workers WHERE dies_at IS NOT NULL), \
         (SELECT min(next_look) FROM crons WHERE next_look IS NOT NULL), \
         coalesce((SELECT max(seq) FROM events), 0), \
         coalesce((SELECT max(seq) FROM events WHERE seq < {SETTLED}), 0), \
         (SELECT holder IS NULL OR expires_at < clock_timestamp() FROM leader WHERE id = 1), \
         CASE WHEN $1 THEN pg_notify('{CHANNEL}', $2)::text END"
    );
    let row = desk.row(sqlx::query(&sql).bind(tell).bind(&core.node)).await?;
    let row = row.ok_or(sqlx::Error::RowNotFound)?;
    let ms = |at: Option<i64>| at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let (job, worker, cron): (Option<i64>, Option<i64>, Option<i64>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let crons = cron.and_then(|second| Timestamp::from_second(second).ok());
    let (last, settled): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
    // What began earlier may end later, and then it is not the last.
    let is_news = last != core.heard.load(Ordering::Acquire) || settled.unsigned_abs() != known;
    let ready =
        if is_news && !core.bell.is_idle() { ready_since(desk, known).await? } else { Ready::Of(Vec::new()) };
    Ok(Seen {
        due: Due { jobs: earliest(ms(job), ms(worker)), crons },
        written,
        ready,
        last,
        settled,
        is_vacant: row.try_get::<Option<bool>, _>(5)?.unwrap_or(false),
    })
}

/// The queues of which something was told that may not have been known here. What is not settled is read again.
async fn ready_since(desk: &mut Desk, known: u64) -> Outcome<Ready> {
    let sql = "SELECT count(*), coalesce(bool_or(type LIKE 'worker.%'), false), \
               coalesce(array_agg(DISTINCT queue) FILTER (WHERE queue IS NOT NULL), '{}') \
               FROM (SELECT type, queue FROM events WHERE seq > $1 ORDER BY seq LIMIT $2) AS told";
    let query = sqlx::query(sql).bind(i64::try_from(known).unwrap_or(i64::MAX)).bind(READY_MAX);
    let row = desk.row(query).await?.ok_or(sqlx::Error::RowNotFound)?;
    let (count, of_workers): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(if of_workers || count == READY_MAX { Ready::All } else { Ready::Of(row.try_get(2)?) })
}

/// Calls the other nodes.
pub(super) async fn call(desk: &mut Desk, core: &Core) -> Outcome<()> {
    desk.rows(sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(&core.node)).await.map(drop)
}

/// Hears what other nodes call, over a connection of its own around any pooler.
pub(super) async fn listen(core: Arc<Core>) {
    let Some(direct) = core.direct.clone() else { return };
    let direct = direct.application_name("kron-server listens").extra_float_digits(None);
    let mut has_warned = false;
    loop {
        let ended = hear(&core, &direct).await;
        let was_heard = core.hears.swap(false, Ordering::AcqRel);
        if let Err(error) = ended {
            // Once, and again when it was heard in between.
            if was_heard || !has_warned {
                tracing::warn!(%error, "cannot hear other servers by --database-direct, and looks every 250 ms instead");
                has_warned = true;
            }
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

/// Hears what they call until the connection is lost. One over which nothing comes any more is known by a call of this node
/// to itself.
async fn hear(core: &Core, direct: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let late = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    let connecting = async {
        // A pool of its own each time: a connection that hangs takes the place of no other.
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(direct.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok::<_, sqlx::Error>(listener)
    };
    let mut listener = tokio::time::timeout(LISTEN_MAX, connecting).await.map_err(late)??;
    core.hears.store(true, Ordering::Release);
    core.called.notify_one();
    loop {
        let heard = match tokio::time::timeout(SILENCE_MAX, listener.try_recv()).await {
            Ok(heard) => heard?,
            Err(_) => {
                // Whether this succeeds or not, it is heard or it is not.
                let _ = super::write!(core, core.loop_pool, |desk| call(&mut desk, core));
                tokio::time::timeout(ECHO_MAX, listener.try_recv()).await.map_err(late)??
            }
        };
        let Some(call) = heard else { return Ok(()) };
        if call.payload() != core.node {
            core.called.notify_one();
        }
    }
}
