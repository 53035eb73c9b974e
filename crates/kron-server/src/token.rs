//! Tokens: who may do what. A token is a secret that its owner was shown once; kept of it is only a hash.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// What a token allows. Each stands for itself; only [`Scope::Admin`] allows everything.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub enum Scope {
    /// Everything.
    Admin,
    /// Read the calendar of the schedule, by an address that has the token in it.
    Calendar,
    /// Push jobs, cancel them, run cron jobs by hand.
    Enqueue,
    /// Look at everything, and change nothing.
    Read,
    /// Take jobs and say what came of them.
    Work,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 5] = [Scope::Admin, Scope::Calendar, Scope::Enqueue, Scope::Read, Scope::Work];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Admin => "admin",
            Scope::Calendar => "calendar",
            Scope::Enqueue => "enqueue",
            Scope::Read => "read",
            Scope::Work => "work",
        }
    }

    /// The scope of a word.
    #[must_use]
    pub fn named(word: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == word)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is kept of a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Token {
    /// Whose it is, for people. No two have the same.
    pub name: String,
    /// What a secret is compared with.
    pub hash: Hash,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// Since when there is it.
    pub created_at: Timestamp,
    /// From when on it allows nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, within [`USE_STEP`].
    pub last_used_at: Option<Timestamp>,
    /// Since when it has allowed nothing, because somebody said so.
    pub revoked_at: Option<Timestamp>,
}

/// The time of a token's last use is written down no more often than this.
pub const USE_STEP: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// The most tokens.
pub const TOKENS_MAX: u32 = 10_000;

/// The longest name of a token.
pub const NAME_CHARS_MAX: usize = 100;

impl Token {
    /// Whether it allows anything at that time.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && !self.has_expired(now)
    }

    /// Whether its time is over.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Whether it allows what needs that scope.
    #[must_use]
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|own| *own == Scope::Admin || *own == scope)
    }
}

/// Checks the name of a token, which goes into logs and lists.
///
/// # Errors
///
/// If it is empty, too long, or has other characters than letters, digits and `.-_@`.
pub fn check_name(name: &str) -> Result<(), String> {
    let usual = |c: char| c.is_ascii_alphanumeric() || ".-_@".contains(c);
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(usual) {
        let found = crate::members::excerpt(name);
        return Err(format!(
            "expected a name of 1 to {NAME_CHARS_MAX} letters, digits and `.-_@`, but found {found}"
        ));
    }
    Ok(())
}

/// The hash of a secret. Secrets are random and long, so that nobody finds one by its hash.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Hash(pub [u8; 32]);

/// What the owner of a token shows. It is never printed by accident.
pub struct Secret([u8; 32]);

/// By this people and their tools recognise a secret where it should not be.
const PREFIX: &str = "kron_";

impl Secret {
    /// A new one, of 256 random bits.
    ///
    /// # Errors
    ///
    /// If the host has no randomness.
    pub fn random() -> Result<Secret, String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| format!("the host gives no random numbers: {error}"))?;
        Ok(Secret(bytes))
    }

    /// What is kept of it.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash(Sha256::digest(self.0).into())
    }

    /// As it is shown to its owner, once.
    #[must_use]
    pub fn reveal(&self) -> String {
        use fmt::Write;
        self.0.iter().fold(PREFIX.to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl FromStr for Secret {
    type Err = ();

    fn from_str(text: &str) -> Result<Secret, ()> {
        let digits = text.strip_prefix(PREFIX).ok_or(())?.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| ())?;
            if !pair.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
                return Err(());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ())?;
        }
        Ok(Secret(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_what_was_shown_and_nothing_like_it() {
        let secret = Secret::random().unwrap();
        let shown = secret.reveal();
        assert_eq!(shown.len(), 5 + 64);
        assert_eq!(shown.parse::<Secret>().unwrap().hash(), secret.hash());
        assert_ne!(Secret::random().unwrap().reveal(), shown);
        assert!(!format!("{secret:?}").contains(&shown[5..]), "it is not printed by accident");
        let upper = format!("kron_{}", shown[5..].to_uppercase().replace(char::is_numeric, "A"));
        for wrong in [
            "",
            "kron_",
            &shown[5..],
            &shown[..68],
            &format!("{shown}0"),
            &upper,
            &format!("kron_{}", "+1".repeat(32)),
        ] {
            assert!(wrong.parse::<Secret>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_admin_allows_everything() {
        let token = |scopes: &[Scope]| Token {
            name: "t".into(),
            hash: Hash([0; 32]),
            scopes: scopes.to_vec(),
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            last_used_at: None,
            revoked_at: None,
        };
        for own in Scope::ALL {
            for needed in Scope::ALL {
                assert_eq!(token(&[own]).allows(needed), own == needed || own == Scope::Admin);
            }
            assert_eq!(Scope::named(own.name()), Some(own));
        }
        assert!(token(&[Scope::Read, Scope::Work]).allows(Scope::Work));
        assert!(!token(&[]).allows(Scope::Read));
        let end: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert!(token(&[]).is_live(end - jiff::SignedDuration::from_millis(1)));
        assert!(!token(&[]).is_live(end), "its end is the first moment without it");
        assert!(!Token { revoked_at: Some(end), ..token(&[]) }.is_live(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn names_are_for_people_and_logs() {
        check_name("ci@build-7.example_1").unwrap();
        assert_eq!(
            check_name("a b\n").unwrap_err(),
            "expected a name of 1 to 100 letters, digits and `.-_@`, but found `a b `"
        );
        assert!(check_name("").is_err() && check_name(&"a".repeat(101)).is_err());
    }
}
