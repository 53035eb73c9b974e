//! Tokens, and how another process than the server comes to them.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::refusal::Refusal;
use crate::store::{Answer, Tokens};
use crate::token::{Hash, Scope, TOKENS_MAX, Token};

use super::desk::{failed, many, one};
use super::{FILE, SCHEMA_VERSION};

/// The tokens of a database that a server may be using at the same time. Each verb is a transaction of its own,
/// and nothing else in the database is touched, so that what the server remembers of it stays true.
#[derive(Debug)]
pub struct SqliteTokens(Mutex<Connection>);

impl SqliteTokens {
    /// Opens the database of a directory.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be read, or it is of another version and in use.
    pub fn open(directory: &Path) -> Result<SqliteTokens, String> {
        let path = directory.join(FILE);
        if !path.exists() {
            return Err(format!(
                "there is no database in {}; --data names the directory of the server",
                directory.display()
            ));
        }
        SqliteTokens::open_or_make(directory)
    }

    /// Opens the database of a directory, which is made if there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be made or read, or it is of another version and in use.
    pub fn open_or_make(directory: &Path) -> Result<SqliteTokens, String> {
        super::make_directory(directory)?;
        let path = directory.join(FILE);
        let mut connection = super::open_file(&path)?;
        let in_file = |error: rusqlite::Error| format!("could not read {}: {error}", path.display());
        if super::version(&connection).map_err(in_file)? != SCHEMA_VERSION {
            // A server that runs has taken all the steps it knows, and must not find others under its feet.
            let _lock = super::lock(directory)?;
            super::migrate(&mut connection, &path)?;
        }
        Ok(SqliteTokens(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Tokens for SqliteTokens {
    async fn tokens(&self) -> Answer<Vec<Token>> {
        all(&self.connection())
    }

    async fn add_token(&self, token: Token) -> Answer<()> {
        add(&self.connection(), &token)
    }

    async fn revoke_token(&self, name: &str, now: Timestamp) -> Answer<Option<Token>> {
        revoke(&self.connection(), name, now)
    }

    async fn note_use(&self, names: Vec<String>, now: Timestamp) -> Answer<()> {
        note_use(&self.connection(), &names, now)
    }
}

const COLUMNS: &str = "name, hash, scopes, created_at, expires_at, last_used_at, revoked_at";

pub(super) fn all(connection: &Connection) -> Answer<Vec<Token>> {
    many(connection, &format!("SELECT {COLUMNS} FROM tokens ORDER BY name"), &[], token)
}

pub(super) fn add(connection: &Connection, token: &Token) -> Answer<()> {
    // One statement is one transaction, for whoever has no other around it.
    let sql = format!(
        "INSERT INTO tokens ({COLUMNS}) SELECT ?1, ?2, ?3, ?4, ?5, NULL, NULL \
         WHERE (SELECT count(*) FROM tokens WHERE name <> ?1) < ?6 \
         ON CONFLICT (name) DO UPDATE SET hash = ?2, scopes = ?3, created_at = ?4, expires_at = ?5, \
         last_used_at = NULL, revoked_at = NULL WHERE revoked_at IS NOT NULL OR expires_at <= ?4"
    );
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
    let ms = |at: Timestamp| at.as_millisecond();
    let (created_at, expires_at) = (ms(token.created_at), token.expires_at.map(ms));
    let values = params![token.name, token.hash.0, scopes.join(" "), created_at, expires_at, TOKENS_MAX];
    if connection.execute(&sql, values).map_err(failed)? == 1 {
        return Ok(());
    }
    let taken = one(connection, "SELECT 1 FROM tokens WHERE name = ?1", &[&token.name], |_| Ok(()))?;
    Err(match taken {
        Some(()) => Refusal::conflict(format!("a token named `{}` exists", token.name))
            .hint("revoke it first, or choose another name"),
        None => Refusal::conflict(format!("there are {TOKENS_MAX} tokens already"))
            .hint("use the name of one that was revoked or has expired"),
    })
}

pub(super) fn revoke(connection: &Connection, name: &str, now: Timestamp) -> Answer<Option<Token>> {
    let sql = format!(
        "UPDATE tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE name = ?1 RETURNING {COLUMNS}"
    );
    one(connection, &sql, &[&name, &now.as_millisecond()], token)
}

pub(super) fn note_use(connection: &Connection, names: &[String], now: Timestamp) -> Answer<()> {
    let sql = "UPDATE tokens SET last_used_at = ?2 WHERE name = ?1";
    for name in names {
        connection.execute(sql, params![name, now.as_millisecond()]).map_err(failed)?;
    }
    Ok(())
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let scopes: String = row.get(2)?;
    let created_at: i64 = row.get(3)?;
    let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(Token {
        name: row.get(0)?,
        hash: Hash(row.get(1)?),
        // A word that this program does not know allows nothing that it knows.
        scopes: scopes.split(' ').filter_map(Scope::named).collect(),
        created_at: at(created_at),
        expires_at: row.get::<_, Option<i64>>(4)?.map(at),
        last_used_at: row.get::<_, Option<i64>>(5)?.map(at),
        revoked_at: row.get::<_, Option<i64>>(6)?.map(at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::{STEPS, Sqlite, connect, lock, version};

    #[tokio::test]
    async fn a_database_of_the_first_version_is_brought_up_to_date_unless_it_is_in_use() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE);
        let connection = connect(&path).unwrap();
        connection.execute_batch(&format!("{} PRAGMA user_version = 1;", STEPS[0])).unwrap();
        connection
            .execute("INSERT INTO queues (name, paused, created_at) VALUES ('kept', 0, 0)", [])
            .unwrap();
        let held = lock(home.path()).unwrap();
        let told = SqliteTokens::open(home.path()).unwrap_err();
        assert!(told.contains("in use by another kron-server"), "{told}");
        assert_eq!(version(&connection).unwrap(), 1, "nothing was done to it");
        drop(held);
        assert!(SqliteTokens::open(home.path()).unwrap().tokens().await.unwrap().is_empty());
        assert_eq!(version(&connection).unwrap(), SCHEMA_VERSION);
        let queues: i64 = connection.query_row("SELECT count(*) FROM queues", [], |row| row.get(0)).unwrap();
        assert_eq!(queues, 1);

        connection.execute_batch("PRAGMA user_version = 99;").unwrap();
        let told = SqliteTokens::open(home.path()).unwrap_err();
        assert!(told.contains("but found version 99: it was written by another kron-server"), "{told}");
    }

    #[tokio::test]
    async fn tokens_are_made_beside_a_store_that_is_open() {
        let home = tempfile::tempdir().unwrap();
        assert!(SqliteTokens::open(home.path()).unwrap_err().starts_with("there is no database in"));
        let zones = std::sync::Arc::new(kron_zones::Zones::bundled());
        let rules = crate::store::Rules {
            defaults: crate::job::Defaults::default(),
            counting: crate::cron::Counting::Active,
            directives: false,
            source: "ojs://test".into(),
            metrics: std::sync::Arc::default(),
        };
        let store = Sqlite::open(home.path(), rules, zones).unwrap();
        let beside = SqliteTokens::open(home.path()).unwrap();
        let token = Token {
            name: "ci".into(),
            hash: Hash([7; 32]),
            scopes: vec![Scope::Read, Scope::Work],
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        beside.add_token(token.clone()).await.unwrap();
        assert_eq!(store.tokens().await.unwrap(), [token]);
        store.revoke_token("ci", Timestamp::UNIX_EPOCH).await.unwrap().unwrap();
        assert!(beside.tokens().await.unwrap()[0].revoked_at.is_some());
    }
}
