//! Tokens: made and revoked beside servers that run.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::refusal::Refusal;
use crate::store::{Answer, Tokens};
use crate::token::{Hash, Scope, TOKENS_MAX, Token};

use super::desk::Desk;
use super::trouble::Outcome;
use super::{Core, Place, Postgres, read, write};

/// The tokens in a PostgreSQL database, and nothing else.
#[derive(Debug)]
pub struct PostgresTokens(Arc<Core>);

impl PostgresTokens {
    /// Opens a database. Its tables are made or changed if they have to be.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, or is of a later version.
    pub async fn open(place: &Place) -> Result<PostgresTokens, String> {
        let (core, ..) = Core::open(place, "ojs://kron".into(), Arc::default(), String::new()).await?;
        Ok(PostgresTokens(core))
    }
}

#[async_trait]
impl Tokens for PostgresTokens {
    async fn tokens(&self) -> Answer<Vec<Token>> {
        read!(self.0, |desk| all(&mut desk))
    }

    async fn add_token(&self, token: Token) -> Answer<()> {
        write!(self.0, |desk| add(&mut desk, &token))
    }

    async fn revoke_token(&self, name: &str, now: Timestamp) -> Answer<Option<Token>> {
        write!(self.0, |desk| revoke(&mut desk, name, now))
    }

    async fn note_use(&self, names: Vec<String>, now: Timestamp) -> Answer<()> {
        write!(self.0, |desk| note_use(&mut desk, &names, now))
    }
}

#[async_trait]
impl Tokens for Postgres {
    async fn tokens(&self) -> Answer<Vec<Token>> {
        read!(self.core, |desk| all(&mut desk))
    }

    async fn add_token(&self, token: Token) -> Answer<()> {
        write!(self.core, |desk| add(&mut desk, &token))
    }

    async fn revoke_token(&self, name: &str, now: Timestamp) -> Answer<Option<Token>> {
        write!(self.core, |desk| revoke(&mut desk, name, now))
    }

    async fn note_use(&self, names: Vec<String>, now: Timestamp) -> Answer<()> {
        write!(self.core, |desk| note_use(&mut desk, &names, now))
    }
}

async fn all(desk: &mut Desk) -> Outcome<Vec<Token>> {
    let sql = "SELECT name, hash, scopes, created_at, expires_at, last_used_at, revoked_at FROM tokens ORDER BY name";
    desk.rows(sqlx::query(sql)).await?.iter().map(token).collect()
}

async fn add(desk: &mut Desk, token: &Token) -> Outcome<()> {
    let sql = "INSERT INTO tokens (name, hash, scopes, created_at, expires_at) SELECT $1, $2, $3, $4, $5 \
               WHERE (SELECT count(*) FROM tokens WHERE name <> $1) < $6 \
               ON CONFLICT (name) DO UPDATE SET hash = $2, scopes = $3, created_at = $4, expires_at = $5, \
               last_used_at = NULL, revoked_at = NULL WHERE tokens.revoked_at IS NOT NULL OR tokens.expires_at <= $4";
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
    let query = sqlx::query(sql).bind(&token.name).bind(&token.hash.0[..]).bind(scopes.join(" "));
    let query = query.bind(token.created_at.as_millisecond());
    let query = query.bind(token.expires_at.map(Timestamp::as_millisecond)).bind(i64::from(TOKENS_MAX));
    if desk.execute(query).await? == 1 {
        return Ok(());
    }
    let taken = desk.row(sqlx::query("SELECT 1 FROM tokens WHERE name = $1").bind(&token.name)).await?;
    let refusal = match taken {
        Some(_) => Refusal::conflict(format!("a token named `{}` exists", token.name))
            .hint("revoke it first, or choose another name"),
        None => Refusal::conflict(format!("there are {TOKENS_MAX} tokens already"))
            .hint("use the name of one that was revoked or has expired"),
    };
    Err(refusal.into())
}

async fn revoke(desk: &mut Desk, name: &str, now: Timestamp) -> Outcome<Option<Token>> {
    let sql = "UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE name = $1 \
               RETURNING name, hash, scopes, created_at, expires_at, last_used_at, revoked_at";
    let row = desk.row(sqlx::query(sql).bind(name).bind(now.as_millisecond())).await?;
    row.as_ref().map(token).transpose()
}

async fn note_use(desk: &mut Desk, names: &[String], now: Timestamp) -> Outcome<()> {
    // In one order, so that nodes do not wait for each other in a circle.
    let sql = "UPDATE tokens SET last_used_at = $2 WHERE name IN (SELECT name FROM tokens WHERE name = ANY($1) \
               ORDER BY name FOR UPDATE)";
    desk.execute(sqlx::query(sql).bind(names).bind(now.as_millisecond())).await.map(drop)
}

fn token(row: &PgRow) -> Outcome<Token> {
    let (hash, scopes): (&[u8], &str) = (row.try_get(1)?, row.try_get(2)?);
    let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    let hash = hash.try_into().map_err(|_| Refusal::backend(&"the hash of a token is not 32 bytes long"))?;
    Ok(Token {
        name: row.try_get(0)?,
        hash: Hash(hash),
        // A word that this program does not know allows nothing that it knows.
        scopes: scopes.split(' ').filter_map(Scope::named).collect(),
        created_at: at(row.try_get(3)?),
        expires_at: row.try_get::<Option<i64>, _>(4)?.map(at),
        last_used_at: row.try_get::<Option<i64>, _>(5)?.map(at),
        revoked_at: row.try_get::<Option<i64>, _>(6)?.map(at),
    })
}
