//! What can go wrong in a transaction, and what to do about it.

use crate::refusal::{Code, Refusal};

/// What a step of a transaction comes to.
pub(super) type Outcome<T> = Result<T, Trouble>;

/// Why a transaction is not ended as it was meant to be.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It was refused; the database is well.
    Refused(Refusal),
    /// The database could not do it, or cannot be reached.
    Database(sqlx::Error),
    /// The database does not answer.
    Silence,
    /// It was lost in the middle of a commit, and nothing of that was done.
    Undone,
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Trouble {
        Trouble::Refused(refusal)
    }
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Trouble {
        Trouble::Database(error)
    }
}

impl Trouble {
    /// Whether it may be tried again at once: two transactions stood in each other's way, or the connection was lost
    /// before anything was committed.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Trouble::Refused(_) | Trouble::Silence => false,
            Trouble::Undone => true,
            Trouble::Database(sqlx::Error::Database(error)) => {
                // Deadlock, serialization, a lock that took too long, an administrator's command, and a transaction that
                // was ended because this process was stopped in the middle of it.
                matches!(
                    error.code().as_deref(),
                    Some("40P01" | "40001" | "55P03" | "57P01" | "25P03" | "25P04")
                )
            }
            Trouble::Database(error) => matches!(error, sqlx::Error::Io(_) | sqlx::Error::Protocol(_)),
        }
    }

    /// Whether there was more to do than could be done in time: a statement or the transaction was ended for it, or
    /// nobody waited any longer.
    pub(super) fn took_too_long(&self) -> bool {
        match self {
            Trouble::Silence => true,
            Trouble::Database(sqlx::Error::Database(error)) => {
                matches!(error.code().as_deref(), Some("57014" | "25P03" | "25P04"))
            }
            _ => false,
        }
    }

    /// How it is told to whoever asked.
    pub(super) fn refusal(self) -> Refusal {
        let away = |why: &dyn std::fmt::Display| {
            Refusal::new(Code::BackendUnavailable, format!("the database cannot be used just now: {why}"))
        };
        match self {
            Trouble::Refused(refusal) => refusal,
            Trouble::Silence => away(&"it does not answer"),
            Trouble::Undone => away(&"it was lost in the middle of a commit, and nothing was done"),
            Trouble::Database(sqlx::Error::Database(error)) => match error.code().as_deref() {
                // A byte 0, which PostgreSQL keeps in no text.
                Some("22021") => Refusal::request(
                    "expected text without the character U+0000, which PostgreSQL cannot keep",
                ),
                // What a pooler says of a database that it cannot reach or has no room for.
                Some(code) if code.starts_with("08") => away(&error),
                // Too many connections, shutting down, starting up, read-only, a lock, a statement or a transaction that
                // took too long.
                Some(
                    "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "25P03" | "25P04" | "55P03"
                    | "57014" | "40P01" | "40001",
                ) => away(&error),
                Some("26000" | "42P05") => Refusal::backend(&error)
                    .hint("behind a transaction pooler the server needs --database-pooler"),
                _ => Refusal::backend(&error),
            },
            Trouble::Database(error) => away(&error),
        }
    }
}
