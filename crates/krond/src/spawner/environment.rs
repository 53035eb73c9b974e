//! What a run finds in its environment.

use std::ffi::{OsStr, OsString};

use super::account::Account;

/// The environment of a run: a clean one or krond's own, then the user's, then what was asked for. No name is there
/// twice.
pub(crate) fn environment(
    from: From,
    account: &Account,
    asked: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let mut env = Vec::new();
    let mut set = |name: &OsStr, value: &OsStr| match env.iter_mut().find(|(there, _)| there == name) {
        Some((_, there)) => value.clone_into(there),
        None => env.push((name.to_owned(), value.to_owned())),
    };
    match from {
        From::Clean { lang } => {
            set("PATH".as_ref(), PATH.as_ref());
            set("LANG".as_ref(), lang.as_deref().unwrap_or(LANG.as_ref()));
            set("SHELL".as_ref(), SHELL.as_ref());
        }
        From::Krond(inherited) => {
            let is_its_own = |name: &OsStr| KRONDS_OWN.iter().any(|own| name == *own);
            for (name, value) in inherited.iter().filter(|(name, _)| !is_its_own(name)) {
                set(name, value);
            }
        }
    }
    let home = account.home.as_os_str();
    set("HOME".as_ref(), if home.is_empty() { "/".as_ref() } else { home });
    set("USER".as_ref(), account.name.as_ref());
    set("LOGNAME".as_ref(), account.name.as_ref());
    for (name, value) in asked {
        set(name.as_ref(), value.as_ref());
    }
    env
}

/// What an environment begins with.
#[derive(Debug)]
pub(crate) enum From {
    /// Nothing but where programs are, a shell, and krond's language if it has one.
    Clean { lang: Option<OsString> },
    /// Everything that krond has.
    Krond(Vec<(OsString, OsString)>),
}

/// Where programs are.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The language of a host that says none.
const LANG: &str = "C.UTF-8";

/// As in cron: a user's own shell may be `nologin`, and programs that ask for `SHELL` want to run something.
const SHELL: &str = "/bin/sh";

/// What a service manager tells krond and nobody else.
const KRONDS_OWN: [&str; 7] = [
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rustix::process::{Gid, Uid};

    use super::*;

    fn pairs<T: std::convert::From<&'static str>>(pairs: &[(&'static str, &'static str)]) -> Vec<(T, T)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn backup() -> Account {
        Account {
            name: "backup".to_owned(),
            uid: Uid::from_raw(34),
            gid: Gid::from_raw(34),
            home: PathBuf::from("/var/backups"),
        }
    }

    #[test]
    fn a_clean_one_has_six_names_and_what_was_asked_for() {
        let asked = pairs(&[("A", "1"), ("SHELL", "/bin/bash"), ("A", "2")]);
        assert_eq!(
            environment(From::Clean { lang: Some("de_DE.UTF-8".into()) }, &backup(), &asked),
            pairs(&[
                ("PATH", PATH),
                ("LANG", "de_DE.UTF-8"),
                ("SHELL", "/bin/bash"),
                ("HOME", "/var/backups"),
                ("USER", "backup"),
                ("LOGNAME", "backup"),
                ("A", "2"),
            ])
        );
    }

    #[test]
    fn an_inherited_one_is_the_users_and_not_the_service_managers() {
        let krond = pairs(&[("PATH", "/bin"), ("HOME", "/root"), ("NOTIFY_SOCKET", "/run/n"), ("TZ", "UTC")]);
        assert_eq!(
            environment(From::Krond(krond), &backup(), &[]),
            pairs(&[
                ("PATH", "/bin"),
                ("HOME", "/var/backups"),
                ("TZ", "UTC"),
                ("USER", "backup"),
                ("LOGNAME", "backup"),
            ])
        );
    }
}
