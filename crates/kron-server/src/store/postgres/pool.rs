//! Connections to the database. Each is used by one transaction at a time; one that failed is closed, never reused.
//!
//! Nothing is ever set for a session, so that a pooler may hand every transaction to another.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long it may take to be connected.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// How long to wait for a connection that others use.
const SEAT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct Pool {
    options: PgConnectOptions,
    /// Whether the database keeps statements prepared. Behind a pooler it cannot.
    pub(super) keeps_statements: bool,
    idle: Idle,
    seats: Arc<Semaphore>,
}

/// A connection, and the right to have one.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) connection: PgConnection,
    /// Whether it was used before. The database may have closed it in the meantime.
    pub(super) is_used: bool,
    permit: OwnedSemaphorePermit,
    idle: Idle,
}

type Idle = Arc<Mutex<Vec<PgConnection>>>;

impl Pool {
    pub(super) fn new(options: PgConnectOptions, size: u32, keeps_statements: bool) -> Pool {
        // A pooler refuses whoever asks for a setting that it does not know, and no floating point number is read.
        let options =
            options.application_name("kron-server").extra_float_digits(None).disable_statement_logging();
        Pool {
            options,
            keeps_statements,
            idle: Arc::default(),
            seats: Arc::new(Semaphore::new(size as usize)),
        }
    }

    /// Seats to the same database that nobody else can take.
    pub(super) fn aside(&self, size: u32) -> Pool {
        Pool { idle: Arc::default(), seats: Arc::new(Semaphore::new(size as usize)), ..self.clone() }
    }

    /// A connection of its own.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let connecting = PgConnection::connect_with(&self.options);
        tokio::time::timeout(CONNECT_MAX, connecting).await.map_err(|_| sqlx::Error::PoolTimedOut)?
    }

    pub(super) async fn acquire(&self) -> Result<Seat, sqlx::Error> {
        let waiting = Arc::clone(&self.seats).acquire_owned();
        let permit = tokio::time::timeout(SEAT_MAX, waiting).await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_used = idle.is_some();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Seat { connection, is_used, permit, idle: Arc::clone(&self.idle) })
    }

    /// Forgets all idle connections: one of them has turned out to be dead, and the others may be.
    pub(super) fn forget_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Seat {
    /// Leaves it to others, after its transaction has ended.
    pub(super) fn put_back(self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.connection);
        drop(self.permit);
    }
}
