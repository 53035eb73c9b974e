//! Who may do what: the tokens of the store, kept at hand, and what is written down about their use.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;

use crate::app::App;
use crate::clock::instant;
use crate::refusal::{Code, Refusal};
use crate::store::Store;
use crate::token::{Hash, Scope, Secret, Token, USE_STEP};

/// What a route asks of whoever uses it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A token with that scope.
    Scope(Scope),
}

/// Who was let through.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Who {
    /// Anybody, since the route asks for nothing or there is no token.
    Anybody,
    /// The owner of a token.
    Owner {
        /// Its name.
        name: String,
        /// By which it is found.
        hash: Hash,
    },
}

impl Who {
    /// A word for logs.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Who::Anybody => "-",
            Who::Owner { name, .. } => name,
        }
    }
}

/// How often the tokens are read again. So long may one that was revoked still be used.
const READ_EVERY: Duration = Duration::from_secs(1);

/// Tokens that nobody knows are looked for in the store no more often than this.
const LOOK_STEP: Duration = Duration::from_millis(250);

/// Tokens that could not be read again for so long allow nothing any more.
const STALE: Duration = Duration::from_secs(60);

/// Whoever lets requests through or not.
pub struct Gate {
    store: Arc<dyn Store>,
    /// Whether everything is allowed to everybody as long as there is no token: nobody can come from elsewhere.
    opens: bool,
    known: watch::Sender<Arc<Known>>,
    /// Only one reads at a time.
    reading: tokio::sync::Mutex<()>,
    /// Whose last use is to be written down.
    used: Mutex<BTreeSet<String>>,
}

/// The tokens as they were.
struct Known {
    tokens: HashMap<Hash, Token>,
    read_at: Instant,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("opens", &self.opens).finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate in front of a store. One that `opens` lets everybody through as long as there is no token.
    ///
    /// # Errors
    ///
    /// If the tokens cannot be read.
    pub async fn new(store: Arc<dyn Store>, opens: bool) -> Result<Gate, Refusal> {
        let known = Known::read(&*store).await?;
        Ok(Gate {
            store,
            opens,
            known: watch::Sender::new(Arc::new(known)),
            reading: tokio::sync::Mutex::new(()),
            used: Mutex::default(),
        })
    }

    /// Whether there is any token, whatever it allows.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        !self.known().tokens.is_empty()
    }

    /// Whether there is a token that allows anything.
    #[must_use]
    pub fn has_live_tokens(&self, now: Timestamp) -> bool {
        self.known().tokens.values().any(|token| token.is_live(now))
    }

    /// Whether somebody may do what asks for that.
    ///
    /// # Errors
    ///
    /// If not, and why.
    pub async fn admit(&self, need: Need, headers: &HeaderMap, now: Timestamp) -> Result<Who, Refusal> {
        let Need::Scope(scope) = need else { return Ok(Who::Anybody) };
        let wanted = format!("a token with the scope `{scope}`");
        let of_scope = |refusal: Refusal| refusal.detail("required_scope", json!(scope.name()));
        let Some(token) = self.owner(&wanted, headers, now).await.map_err(of_scope)? else {
            return Ok(Who::Anybody);
        };
        if !token.allows(scope) {
            let has: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
            let message = format!("expected {wanted}, but `{}` has `{}`", token.name, has.join(" "));
            return Err(of_scope(Refusal::new(Code::PermissionDenied, message)));
        }
        Ok(Who::Owner { name: token.name, hash: token.hash })
    }

    /// The token that a request shows, or none where nobody needs one. What is `wanted` is told to those who need it.
    ///
    /// # Errors
    ///
    /// If it shows none that allows anything.
    pub async fn owner(
        &self,
        wanted: &str,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<Option<Token>, Refusal> {
        if self.opens && !self.has_tokens() {
            return Ok(None);
        }
        let unknown =
            |found: &str| Refusal::new(Code::Unauthenticated, format!("expected {wanted}, but {found}"));
        let hash = shown(headers).map_err(unknown)?;
        let mut known = self.known();
        if !known.tokens.contains_key(&hash) {
            // It may have been made just now.
            self.look_again().await?;
            known = self.known();
        }
        if known.read_at.elapsed() > STALE {
            return Err(Refusal::new(Code::BackendUnavailable, "the tokens cannot be read from the store"));
        }
        let token = known.tokens.get(&hash).ok_or_else(|| unknown(UNKNOWN))?;
        if token.revoked_at.is_some() {
            return Err(unknown(&format!("`{}` was revoked", token.name)));
        }
        if token.has_expired(now) {
            return Err(unknown(&format!("`{}` has expired", token.name)));
        }
        self.used().insert(token.name.clone());
        Ok(Some(token.clone()))
    }

    /// Waits until somebody who was let through for something that asks for a token would be no longer.
    pub async fn until_shut(&self, who: &Who, app: &App) {
        let mut known = self.known.subscribe();
        loop {
            let now = Arc::clone(&known.borrow_and_update());
            let is_let = match who {
                Who::Anybody => now.tokens.is_empty(),
                Who::Owner { hash, .. } => {
                    now.tokens.get(hash).is_some_and(|token| token.is_live(app.clock.now()))
                }
            };
            if !is_let || known.changed().await.is_err() {
                return;
            }
        }
    }

    /// Reads the tokens again and again, until the server ends.
    pub async fn watch(&self, app: &App) {
        let mut ending = app.ending.clone();
        loop {
            tokio::select! {
                _ = ending.wait_for(|ending| *ending) => return,
                () = tokio::time::sleep(READ_EVERY) => {}
            }
            let read = async {
                let turn = self.reading.lock().await;
                self.read().await?;
                drop(turn);
                self.note_use(app.clock.now()).await
            };
            if let Err(refusal) = read.await {
                tracing::error!(error = refusal.message, "could not read the tokens");
            }
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.borrow())
    }

    fn used(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the tokens, unless somebody has since this was asked.
    async fn look_again(&self) -> Result<(), Refusal> {
        let asked = instant();
        let _turn = self.reading.lock().await;
        let read_at = self.known().read_at;
        if read_at >= asked {
            return Ok(());
        }
        tokio::time::sleep(LOOK_STEP.saturating_sub(read_at.elapsed())).await;
        self.read().await
    }

    async fn read(&self) -> Result<(), Refusal> {
        let before = self.known();
        let now = Known::read(&*self.store).await?;
        for token in now.tokens.values() {
            let known = before.tokens.get(&token.hash);
            if known.is_none() {
                tracing::info!(target: AUDIT, token = token.name, scopes = ?token.scopes, "a token was made");
            }
            if token.revoked_at.is_some() && known.is_none_or(|known| known.revoked_at.is_none()) {
                tracing::info!(target: AUDIT, token = token.name, "a token was revoked");
            }
        }
        self.known.send_replace(Arc::new(now));
        Ok(())
    }

    /// Writes down which tokens were used, each no more often than it matters.
    async fn note_use(&self, now: Timestamp) -> Result<(), Refusal> {
        let mut names = std::mem::take(&mut *self.used());
        let known = self.known();
        for token in known.tokens.values() {
            if token.last_used_at.is_some_and(|last| now.duration_since(last) < USE_STEP) {
                names.remove(&token.name);
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        self.store.note_use(names.into_iter().collect(), now).await
    }
}

impl Known {
    async fn read(store: &dyn Store) -> Result<Known, Refusal> {
        let read_at = instant();
        let tokens = store.tokens().await?.into_iter().map(|token| (token.hash, token)).collect();
        Ok(Known { tokens, read_at })
    }
}

/// What is said of a token that is none.
const UNKNOWN: &str = "nobody knows this one";

/// What a request shows, or what is wrong about it.
fn shown(headers: &HeaderMap) -> Result<Hash, &'static str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (given.next(), given.next()) {
        (None, _) => return Err("there is no Authorization header"),
        (Some(_), Some(_)) => return Err("there is more than one Authorization header"),
        (Some(value), None) => value.to_str().unwrap_or(""),
    };
    match value.split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => {
            let secret: Secret = secret.trim().parse().map_err(|()| UNKNOWN)?;
            Ok(secret.hash())
        }
        _ => Err("the Authorization header is not `Bearer` and a token"),
    }
}

/// What a refusal tells clients about how to show who they are.
#[must_use]
pub fn challenge(refusal: &Refusal) -> Option<String> {
    let scope = refusal.details.get("required_scope").and_then(|scope| scope.as_str());
    match (refusal.code, scope) {
        (Code::Unauthenticated, Some(scope)) => {
            Some(format!("Bearer realm=\"kron-server\", scope=\"{scope}\""))
        }
        (Code::PermissionDenied, Some(scope)) => {
            Some(format!("Bearer realm=\"kron-server\", error=\"insufficient_scope\", scope=\"{scope}\""))
        }
        _ => None,
    }
}

/// The part of the log that says who did what.
pub const AUDIT: &str = "kron_server::audit";

/// The most failures a second that are written down one by one. The others are counted.
const FAILURES_MAX: u32 = 20;

/// Failures in the log, which strangers cannot fill.
#[derive(Debug)]
pub struct Failures(Mutex<Second>);

#[derive(Debug)]
struct Second {
    began: Instant,
    written: u32,
    left_out: u64,
}

impl Default for Failures {
    fn default() -> Failures {
        Failures(Mutex::new(Second { began: instant(), written: 0, left_out: 0 }))
    }
}

impl Failures {
    /// Whether the next one may be written down, and how many were not since the last that was.
    #[must_use]
    pub fn next(&self, now: Instant) -> Option<u64> {
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(second.began) >= Duration::from_secs(1) {
            (second.began, second.written) = (now, 0);
        }
        if second.written == FAILURES_MAX {
            second.left_out += 1;
            return None;
        }
        second.written += 1;
        Some(std::mem::take(&mut second.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_cannot_fill_the_log() {
        let failures = Failures::default();
        let start = instant();
        let written: Vec<_> = (0..1_000).filter_map(|_| failures.next(start)).collect();
        assert_eq!(written, [0; 20]);
        assert_eq!(failures.next(start + Duration::from_secs(1)), Some(980), "and the rest is counted");
        assert_eq!(failures.next(start + Duration::from_secs(1)), Some(0));
    }

    #[test]
    fn a_header_shows_a_token_or_says_why_not() {
        let show = |given: &[&str]| {
            let headers = given.iter().map(|value| (header::AUTHORIZATION, value.parse().unwrap())).collect();
            shown(&headers)
        };
        let secret = Secret::random().unwrap();
        let text = secret.reveal();
        assert_eq!(show(&[&format!("Bearer {text}")]), Ok(secret.hash()));
        assert_eq!(show(&[&format!("bearer  {text}")]), Ok(secret.hash()), "the scheme has no case");
        let twice = format!("Bearer {text}");
        for (given, message) in [
            (&[][..], "there is no Authorization header"),
            (&[&*twice, &*twice][..], "there is more than one Authorization header"),
            (&["Basic YTpi"][..], "the Authorization header is not `Bearer` and a token"),
            (&["Bearer"][..], "the Authorization header is not `Bearer` and a token"),
            (&["Bearer nonsense"][..], "nobody knows this one"),
            (&[&*text][..], "the Authorization header is not `Bearer` and a token"),
        ] {
            assert_eq!(show(given), Err(message));
        }
    }
}
