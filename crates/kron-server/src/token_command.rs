//! `kron-server token`: tokens are made and revoked in the database itself, whether a server runs on it or not.

use std::io::{self, Write};

use clap::{Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::clock::Clock;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::store::{PostgresTokens, SqliteTokens, Tokens};
use crate::times::stamp;
use crate::token::{Scope, Secret, Token, check_name};

/// What can be done with tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print its secret, which nobody can see again.
    Create {
        /// Whose it is; the name of a token that was revoked or has expired may be used anew.
        #[arg(long, value_name = "NAME", value_parser = name)]
        name: String,
        /// What it allows; several may be given.
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_enum)]
        scopes: Vec<Scope>,
        /// For how long, such as 90d or 12h; for ever unless given.
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<SignedDuration>,
    },
    /// List all tokens, without their secrets.
    List {
        /// How to write the list.
        #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
        format: ListFormat,
    },
    /// End a token for good. A server that runs heeds it within a second.
    Revoke {
        /// Which one.
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// How a list is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ListFormat {
    /// A JSON array.
    Json,
    /// For people.
    Text,
}

/// Carries a command out on the database that the settings name.
///
/// # Errors
///
/// If the database cannot be had, or there is no such token, or there is one already.
pub fn run(command: &TokenCommand, settings: &Settings) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("could not start: {error}"))?;
    let said = runtime.block_on(carry_out(command, settings))?;
    io::stdout().write_all(said.as_bytes()).map_err(|error| format!("could not write: {error}"))
}

async fn carry_out(command: &TokenCommand, settings: &Settings) -> Result<String, String> {
    let now = Clock::System.now();
    // Only whoever makes a token makes a directory for it.
    let makes = matches!(command, TokenCommand::Create { .. });
    let tokens: Box<dyn Tokens> = match &settings.postgres {
        Some(place) => Box::new(PostgresTokens::open(place).await?),
        None if makes => Box::new(SqliteTokens::open_or_make(&settings.data)?),
        None => Box::new(SqliteTokens::open(&settings.data)?),
    };
    match command {
        TokenCommand::Create { name, scopes, expires } => {
            create(tokens.as_ref(), name, scopes, *expires, now).await
        }
        TokenCommand::List { format } => {
            let all = tokens.tokens().await.map_err(told)?;
            Ok(match format {
                ListFormat::Json => format!("{:#}\n", json!(all.iter().map(view).collect::<Vec<_>>())),
                ListFormat::Text => table(&all, now),
            })
        }
        TokenCommand::Revoke { name } => match tokens.revoke_token(name, now).await.map_err(told)? {
            Some(_) => Ok(format!("token `{name}` is revoked\n")),
            None => Err(format!(
                "there is no token {}; `kron-server token list` shows all",
                crate::members::excerpt(name)
            )),
        },
    }
}

async fn create(
    tokens: &dyn Tokens,
    name: &str,
    scopes: &[Scope],
    expires: Option<SignedDuration>,
    now: Timestamp,
) -> Result<String, String> {
    let secret = Secret::random()?;
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    let expires_at = expires
        .map(|expires| now.checked_add(expires).map_err(|error| format!("`--expires`: {error}")))
        .transpose()?;
    let token = Token {
        name: name.to_owned(),
        hash: secret.hash(),
        scopes,
        created_at: now,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    let (scopes, until) = (words(&token), expires_at.map(|at| format!(" until {}", stamp(at))));
    tokens.add_token(token).await.map_err(told)?;
    eprintln!(
        "token `{name}` allows {scopes}{}; this is its secret, shown only now:",
        until.unwrap_or_default()
    );
    Ok(format!("{}\n", secret.reveal()))
}

#[allow(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn told(refusal: Refusal) -> String {
    match refusal.hint {
        Some(hint) => format!("{}; {hint}", refusal.message),
        None => refusal.message,
    }
}

fn words(token: &Token) -> String {
    token.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(" ")
}

fn view(token: &Token) -> serde_json::Value {
    json!({
        "name": token.name,
        "scopes": token.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>(),
        "created_at": stamp(token.created_at),
        "expires_at": token.expires_at.map(stamp),
        "last_used_at": token.last_used_at.map(stamp),
        "revoked_at": token.revoked_at.map(stamp),
    })
}

fn table(tokens: &[Token], now: Timestamp) -> String {
    let day = |at: Option<Timestamp>| at.map_or_else(|| "-".into(), |at| at.strftime("%F").to_string());
    let mut rows = vec![["NAME", "SCOPES", "CREATED", "EXPIRES", "LAST USED", "STATE"].map(str::to_owned)];
    rows.extend(tokens.iter().map(|token| {
        let state = match token.revoked_at {
            Some(_) => "revoked",
            None if token.has_expired(now) => "expired",
            None => "live",
        };
        let dates = [Some(token.created_at), token.expires_at, token.last_used_at].map(day);
        let [created, expires, used] = dates;
        [token.name.clone(), words(token), created, expires, used, state.to_owned()]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

/// The longest time for which a token can be made.
const EXPIRES_DAYS_MAX: i64 = 366 * 100;

/// Days, or a duration such as `12h`.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let longest = SignedDuration::from_hours(24 * EXPIRES_DAYS_MAX);
    let duration = match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => SignedDuration::from_hours(24 * i64::from(days)),
        _ => {
            let parsed: kron_schedule::Duration =
                text.parse().map_err(|error| format!("{error} (such as 90d or 12h)"))?;
            SignedDuration::from_nanos(parsed.as_nanos())
        }
    };
    if !duration.is_positive() || duration > longest {
        return Err(format!("expected more than nothing and at most {EXPIRES_DAYS_MAX}d"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Hash;

    #[test]
    fn durations_may_be_in_days() {
        assert_eq!(duration("90d").unwrap(), SignedDuration::from_hours(90 * 24));
        assert_eq!(duration("1h30m").unwrap(), SignedDuration::from_mins(90));
        for wrong in ["0d", "0s", "-1h", "4294967295d", "40000d"] {
            assert_eq!(
                duration(wrong).unwrap_err(),
                "expected more than nothing and at most 36600d",
                "{wrong}"
            );
        }
        assert!(duration("soon").unwrap_err().ends_with("(such as 90d or 12h)"));
    }

    #[test]
    fn the_list_is_for_people() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let live = Token {
            name: "ci".into(),
            hash: Hash([0; 32]),
            scopes: vec![Scope::Enqueue, Scope::Read],
            created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            expires_at: None,
            last_used_at: Some(now),
            revoked_at: None,
        };
        let expired =
            Token { name: "worker-1".into(), expires_at: Some(now), last_used_at: None, ..live.clone() };
        let revoked =
            Token { name: "z".into(), scopes: vec![Scope::Admin], revoked_at: Some(now), ..expired.clone() };
        assert_eq!(
            table(&[live, expired, revoked], now),
            "NAME      SCOPES        CREATED     EXPIRES     LAST USED   STATE\n\
             ci        enqueue read  2026-01-02  -           2026-03-01  live\n\
             worker-1  enqueue read  2026-01-02  2026-03-01  -           expired\n\
             z         admin         2026-01-02  2026-03-01  -           revoked\n"
        );
    }
}
