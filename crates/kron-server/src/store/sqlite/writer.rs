//! One thread writes. What waits for it shares a transaction, and so one flush of the disk. Another counts and logs
//! what was written.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};

use crate::bell::Bell;
use crate::clock::instant;
use crate::metrics::Metrics;
use crate::note::Note;
use crate::refusal::{Code, Refusal};
use crate::store::Due;

use super::desk::{Desk, Memory};

/// The most orders that share a transaction. It bounds what one failure to commit takes with it.
const GROUP_MAX: usize = 256;

/// The most orders that wait. Whoever comes then waits too.
const WAITING_MAX: usize = 1_024;

/// The most transactions whose notes wait to be counted and logged.
const NOTES_MAX: usize = 16;

/// Something to be done at the desk, and how to tell what came of it.
type Order = Box<dyn FnOnce(&mut Desk<'_>) -> Told + Send>;

/// Tells an order's sender, once it is known whether the transaction is durable.
type Told = Box<dyn FnOnce(Result<(), Refusal>) + Send>;

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Writer {
    /// None once it ends.
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<thread::JoinHandle<()>>,
    pub(super) due: watch::Receiver<Due>,
    pub(super) last_event: watch::Receiver<u64>,
    /// Whether the last transaction failed.
    pub(super) is_failing: watch::Receiver<bool>,
}

impl Writer {
    pub(super) fn start(
        mut connection: Connection,
        mut memory: Memory,
        metrics: Arc<Metrics>,
        bell: Arc<Bell>,
    ) -> Result<Writer, Refusal> {
        let (orders, mut waiting) = mpsc::channel::<Order>(WAITING_MAX);
        let first = look(&connection)?;
        let (due, due_seen) = watch::channel(first);
        let (last_event, last_event_seen) = watch::channel(memory.last_event);
        let (is_failing, is_failing_seen) = watch::channel(false);
        let (noted, notes_taken) = sync_channel::<(Vec<Note>, Duration)>(NOTES_MAX);
        let counted = Arc::clone(&metrics);
        let take = move || {
            for (notes, took) in notes_taken {
                notes.into_iter().for_each(|note| note.take(&counted, took));
            }
        };
        let notes_thread = spawn("kron-notes", take)?;
        let write = move || {
            while let Some(first) = waiting.blocking_recv() {
                let mut group = vec![first];
                while group.len() < GROUP_MAX {
                    let Ok(order) = waiting.try_recv() else { break };
                    group.push(order);
                }
                let (began, orders) = (instant(), group.len());
                let mut notes = Vec::new();
                let done = carry_out(&mut connection, &mut memory, &mut notes, group);
                let took = began.elapsed();
                // What the group changed is known before anybody is told of it, or a client could read what
                // its own request has ended.
                if let Ok(now) = look(&connection) {
                    due.send_if_modified(|due| std::mem::replace(due, now) != now);
                }
                let last = memory.last_event;
                last_event.send_if_modified(|known| std::mem::replace(known, last) != last);
                is_failing.send_replace(done.outcome.is_err());
                match done.outcome {
                    Ok(()) => metrics.committed(orders, took),
                    Err(_) => metrics.commit_failed(),
                }
                done.tell();
                notes.iter().for_each(|note| note.wake(&bell));
                // Nobody waits for the rest. Only if the log is slower than the disk does the disk wait for it.
                let _ = noted.send((notes, took));
            }
            // Whoever copies the database finds everything in one file.
            if let Err(error) = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
                tracing::warn!(%error, "could not fold the log into the database");
            }
            drop(noted);
            let _ = notes_thread.join();
        };
        let thread = spawn("kron-store", write)?;
        Ok(Writer {
            orders: Some(orders),
            thread: Some(thread),
            due: due_seen,
            last_event: last_event_seen,
            is_failing: is_failing_seen,
        })
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
                let answer = match (committed, came_to) {
                    // What went wrong says more than that nothing could be committed after it.
                    (Err(_), Err(own)) if own.code == Code::BackendError => Err(own),
                    (committed, came_to) => committed.and(came_to),
                };
                // Nobody may be waiting any more; what was done stays done.
                let _ = tell.send(answer);
            })
        });
        let gone = || Refusal::new(Code::BackendUnavailable, "the store has stopped");
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send(order).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    /// What was ordered is carried out before the store is gone.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>, Refusal> {
    let no_thread = |error| Refusal::backend(&format!("no thread for it: {error}"));
    thread::Builder::new().name(name.into()).spawn(work).map_err(no_thread)
}

/// A group of orders that was carried out or not, and whom to tell.
struct Done {
    told: Vec<Told>,
    outcome: Result<(), Refusal>,
}

impl Done {
    fn tell(self) {
        for tell in self.told {
            tell(self.outcome.clone());
        }
    }
}

/// Carries a group of orders out, as one transaction.
fn carry_out(
    connection: &mut Connection,
    memory: &mut Memory,
    notes: &mut Vec<Note>,
    group: Vec<Order>,
) -> Done {
    let mut told = Vec::with_capacity(group.len());
    let before = memory.clone();
    let outcome = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut desk = Desk::new(&transaction, memory, notes);
        told.extend(group.into_iter().map(|order| order(&mut desk)));
        transaction.commit()
    })();
    let outcome = outcome.map_err(|error: rusqlite::Error| {
        *memory = before;
        notes.clear();
        tracing::error!(%error, "a transaction failed and nothing of it was done");
        // On a full disk the log may be what fills it, and most of it may be in the database already.
        let _ = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
        Refusal::backend(&error)
    });
    Done { told, outcome }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::desk::failed;

    fn open() -> Writer {
        let connection = Connection::open_in_memory().unwrap();
        crate::store::sqlite::STEPS.iter().for_each(|step| connection.execute_batch(step).unwrap());
        let memory = Memory { seq: 0, last_event: 0, source: "test".into() };
        Writer::start(connection, memory, Arc::default(), Arc::default()).unwrap()
    }

    async fn count(writer: &Writer) -> i64 {
        let sql = "SELECT count(*) FROM queues";
        writer.write(|desk| desk.one(sql, &[], |row| row.get(0))).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn what_shares_a_transaction_that_a_failure_undoes_is_not_done_and_told_so() {
        let writer = open();
        let open_queue =
            |name: &'static str| writer.write(move |desk| desk.open_queue(name, Timestamp::UNIX_EPOCH));
        open_queue("before").await.unwrap();
        // The others gather while this one is carried out, and so share a transaction.
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let held = writer.write(move |_| Ok(begin.send(()).is_ok() && gate.recv().is_ok()));
        // A full disk does the same to a transaction.
        let undone = writer.write(|desk| -> Result<(), Refusal> {
            desk.connection().execute_batch("ROLLBACK").map_err(failed)?;
            Err(Refusal::backend(&"the disk is full"))
        });
        let others = async {
            begun.await.unwrap();
            let release = async { go.send(()).unwrap() };
            tokio::join!(open_queue("first"), undone, open_queue("last"), release)
        };
        let (held, (first, undone, last, ())) = tokio::join!(held, others);
        assert!(held.unwrap());
        assert!(first.is_err() && undone.is_err() && last.is_err(), "{first:?} {undone:?} {last:?}");
        assert_eq!(undone.unwrap_err().message, "the store failed: the disk is full", "it is told why");
        assert!(*writer.is_failing.borrow(), "whoever asks how it does is told");
        assert_eq!(count(&writer).await, 1, "nothing of what failed was done");
        assert!(!*writer.is_failing.borrow(), "until it has succeeded again");
        open_queue("after").await.unwrap();
        assert_eq!(count(&writer).await, 2, "and it goes on");
    }
}
