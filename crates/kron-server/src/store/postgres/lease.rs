//! The lease, asked for and renewed: carries out what [`leader`](crate::leader) decides.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;
use tokio::sync::{mpsc, oneshot, watch};

use crate::leader::{Effect, Event, Leader, TTL};
use crate::store::Answer;
use crate::store::verbs::luck;

use super::Core;
use super::desk::Desk;
use super::trouble::Outcome;

/// The right to evaluate cron jobs, until a time of [`boottime`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Lease {
    pub(super) epoch: i64,
    until: Duration,
}

impl Lease {
    /// Whether it has not ended.
    pub(super) fn holds(self) -> bool {
        boottime() < self.until
    }
}

/// Something that the one who keeps the lease should know.
#[derive(Debug)]
pub(super) enum Nudge {
    /// The server ends; say when the lease has been given back.
    End(oneshot::Sender<()>),
    /// A fire found another epoch.
    Lost,
    /// Nobody has the lease.
    Vacant,
}

/// A clock that nobody sets and that goes on while the host sleeps.
pub(super) fn boottime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Asks for the lease and keeps it, until the server ends.
pub(super) async fn keep(
    core: Arc<Core>,
    lease: watch::Sender<Option<Lease>>,
    mut nudges: mpsc::Receiver<Nudge>,
) {
    let mut leader = Leader::new(boottime());
    let mut event = Event::Tick;
    let mut ended: Option<oneshot::Sender<()>> = None;
    loop {
        let mut next = None;
        for effect in leader.on(boottime(), event, luck()) {
            let sent = boottime();
            let granted =
                |epoch: Option<i64>| epoch.map_or(Event::Refused, |epoch| Event::Granted { epoch, sent });
            match effect {
                Effect::Ask => next = Some(ask(&core).await.map_or_else(failed, granted)),
                Effect::Renew(epoch) => next = Some(renew(&core, epoch).await.map_or_else(failed, granted)),
                Effect::Release(epoch) => {
                    if let Err(refusal) = release(&core, epoch).await {
                        tracing::warn!(error = refusal.message, "could not give the lease back");
                    }
                }
                Effect::Lead { epoch, until } => {
                    let now = Some(Lease { epoch, until });
                    let before = lease.send_replace(now);
                    if before.map(|lease| lease.epoch) != Some(epoch) {
                        tracing::info!(epoch, node = core.node, "leads");
                        core.reign.send_replace(Some(epoch.unsigned_abs()));
                        core.kick.notify_one();
                    }
                }
                Effect::Follow => {
                    tracing::warn!(node = core.node, "leads no more");
                    lease.send_replace(None);
                    core.reign.send_replace(None);
                    core.kick.notify_one();
                }
            }
        }
        if let Some(ended) = ended.take_if(|_| next.is_none()) {
            if let Err(refusal) = leave(&core).await {
                tracing::debug!(error = refusal.message, "could not say that this node has left");
            }
            let _ = ended.send(());
            return;
        }
        event = match next {
            Some(next) => next,
            None => {
                let wait = leader.wakes_at().map_or(TTL, |at| at.saturating_sub(boottime()));
                tokio::select! {
                    () = tokio::time::sleep(wait) => Event::Tick,
                    nudge = nudges.recv() => match nudge {
                        Some(Nudge::End(told)) => {
                            ended = Some(told);
                            Event::End
                        }
                        Some(Nudge::Lost) => Event::Lost,
                        Some(Nudge::Vacant) => Event::Vacant,
                        None => return,
                    },
                }
            }
        };
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_or_else")]
fn failed(refusal: crate::refusal::Refusal) -> Event {
    tracing::warn!(error = refusal.message, "could not ask for the lease");
    Event::Failed
}

pub(super) async fn ask(core: &Core) -> Answer<Option<i64>> {
    super::write!(core, core.lease_pool, |desk| take(&mut desk, core))
}

pub(super) async fn renew(core: &Core, epoch: i64) -> Answer<Option<i64>> {
    super::write!(core, core.lease_pool, |desk| prolong(&mut desk, core, epoch))
}

async fn release(core: &Core, epoch: i64) -> Answer<()> {
    super::write!(core, core.lease_pool, |desk| give_back(&mut desk, core, epoch))
}

async fn leave(core: &Core) -> Answer<()> {
    super::write!(core, core.lease_pool, |desk| disappear(&mut desk, core))
}

/// A lease that ends later than any can was taken before the database's clock was set back. From now it has as long as any:
/// a leader that is there renews it meanwhile, and one that is gone is followed as usual.
async fn shorten(desk: &mut Desk) -> Outcome<()> {
    let sql = "UPDATE leader SET expires_at = clock_timestamp() + make_interval(secs => $1) \
               WHERE id = 1 AND expires_at > clock_timestamp() + make_interval(secs => $1)";
    desk.execute(sqlx::query(sql).bind(TTL.as_secs_f64())).await.map(drop)
}

/// Takes the lease if nobody has it. This waits for fires of the epoch before to end.
async fn take(desk: &mut Desk, core: &Core) -> Outcome<Option<i64>> {
    shorten(desk).await?;
    let sql = "UPDATE leader SET epoch = epoch + 1, holder = $1, since = clock_timestamp(), \
               expires_at = clock_timestamp() + make_interval(secs => $2) \
               WHERE id = 1 AND (holder IS NULL OR holder = $1 OR expires_at < clock_timestamp()) RETURNING epoch";
    let row = desk.row(sqlx::query(sql).bind(&core.node).bind(TTL.as_secs_f64())).await?;
    appear(desk, core).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

async fn prolong(desk: &mut Desk, core: &Core, epoch: i64) -> Outcome<Option<i64>> {
    let sql = "UPDATE leader SET expires_at = clock_timestamp() + make_interval(secs => $3) \
               WHERE id = 1 AND epoch = $1 AND holder = $2 RETURNING epoch";
    let query = sqlx::query(sql).bind(epoch).bind(&core.node).bind(TTL.as_secs_f64());
    let row = desk.row(query).await?;
    appear(desk, core).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

async fn give_back(desk: &mut Desk, core: &Core, epoch: i64) -> Outcome<()> {
    let sql = "UPDATE leader SET holder = NULL, expires_at = '-infinity' WHERE id = 1 AND epoch = $1 AND holder = $2";
    desk.execute(sqlx::query(sql).bind(epoch).bind(&core.node)).await.map(drop)
}

/// Says that this node is there no more, and wakes the others.
async fn disappear(desk: &mut Desk, core: &Core) -> Outcome<()> {
    desk.execute(sqlx::query("DELETE FROM nodes WHERE id = $1").bind(&core.node)).await?;
    super::look::call(desk, core).await
}

/// Says that this node is there.
async fn appear(desk: &mut Desk, core: &Core) -> Outcome<()> {
    let sql = "INSERT INTO nodes (id, address, version, started_at, seen_at) \
               VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp()) \
               ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()";
    let query = sqlx::query(sql).bind(&core.node).bind(&core.address).bind(env!("CARGO_PKG_VERSION"));
    desk.execute(query).await?;
    let sql = "DELETE FROM nodes WHERE seen_at < clock_timestamp() - interval '1 hour'";
    desk.execute(sqlx::query(sql)).await.map(drop)
}
