//! One thread writes. What waits for it shares a transaction, and so one flush of the disk.

use std::thread;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};

use crate::refusal::{Code, Refusal};
use crate::store::Due;

use super::desk::{Desk, Memory};

/// The most orders that share a transaction. It bounds what one failure to commit takes with it.
const GROUP_MAX: usize = 256;

/// The most orders that wait. Whoever comes then waits too.
const WAITING_MAX: usize = 1_024;

/// Something to be done at the desk, and how to tell what came of it.
type Order = Box<dyn FnOnce(&mut Desk<'_>) -> Told + Send>;

/// Tells an order's sender, once it is known whether the transaction is durable.
type Told = Box<dyn FnOnce(Result<(), Refusal>) + Send>;

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Writer {
    orders: mpsc::Sender<Order>,
    pub(super) due: watch::Receiver<Due>,
    pub(super) last_event: watch::Receiver<u64>,
}

impl Writer {
    pub(super) fn start(mut connection: Connection, mut memory: Memory) -> Result<Writer, Refusal> {
        let (orders, mut waiting) = mpsc::channel::<Order>(WAITING_MAX);
        let first = look(&connection)?;
        let (due, due_seen) = watch::channel(first);
        let (last_event, last_event_seen) = watch::channel(memory.last_event);
        let write = move || {
            while let Some(first) = waiting.blocking_recv() {
                let mut group = vec![first];
                while group.len() < GROUP_MAX {
                    let Ok(order) = waiting.try_recv() else { break };
                    group.push(order);
                }
                carry_out(&mut connection, &mut memory, group);
                if let Ok(now) = look(&connection) {
                    due.send_if_modified(|due| std::mem::replace(due, now) != now);
                }
                last_event
                    .send_if_modified(|last| std::mem::replace(last, memory.last_event) != memory.last_event);
            }
        };
        thread::Builder::new()
            .name("kron-store".into())
            .spawn(write)
            .map_err(|error| Refusal::backend(&format!("no thread for it: {error}")))?;
        Ok(Writer { orders, due: due_seen, last_event: last_event_seen })
    }

    /// Has something done in a transaction, and waits until it is durable.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (tell, told) = oneshot::channel();
        let order: Order = Box::new(move |desk| {
            let came_to = desk.in_savepoint(work);
            Box::new(move |committed| {
                // Nobody may be waiting any more; what was done stays done.
                let _ = tell.send(committed.and(came_to));
            })
        });
        let gone = || Refusal::new(Code::BackendUnavailable, "the store has stopped");
        self.orders.send(order).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

/// Carries a group of orders out, as one transaction.
fn carry_out(connection: &mut Connection, memory: &mut Memory, group: Vec<Order>) {
    let mut told = Vec::with_capacity(group.len());
    let before = memory.clone();
    let outcome = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut desk = Desk::new(&transaction, memory);
        told.extend(group.into_iter().map(|order| order(&mut desk)));
        transaction.commit()
    })();
    let outcome = outcome.map_err(|error: rusqlite::Error| {
        *memory = before;
        tracing::error!(%error, "a transaction failed and nothing of it was done");
        Refusal::backend(&error)
    });
    for tell in told {
        tell(outcome.clone());
    }
}

/// Finds out when time alone will next change something.
fn look(connection: &Connection) -> Result<Due, Refusal> {
    let first = |sql: &str| -> rusqlite::Result<Option<i64>> {
        connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
    };
    let read = || -> rusqlite::Result<Due> {
        let job = first("SELECT min(due_at) FROM jobs WHERE due_at IS NOT NULL")?;
        let worker = first("SELECT min(dies_at) FROM workers WHERE dies_at IS NOT NULL")?;
        let cron = first("SELECT min(next_look) FROM crons WHERE next_look IS NOT NULL")?;
        let jobs = [job, worker].into_iter().flatten().min();
        Ok(Due {
            jobs: jobs.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
            crons: cron.and_then(|second| Timestamp::from_second(second).ok()),
        })
    };
    read().map_err(|error| Refusal::backend(&error))
}
