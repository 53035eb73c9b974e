//! Who a run is, and becoming so for good.

use std::collections::BTreeSet;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::unistd::{self, Group, User};
use rustix::process::{Gid, Uid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::child::Trouble;
use super::{Launch, Stage};

/// A user of the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
    pub(crate) home: PathBuf,
}

impl Account {
    /// Whoever runs krond. Not every host knows a name for them.
    pub(crate) fn own() -> io::Result<Account> {
        let uid = geteuid();
        let user = User::from_uid(uid.as_raw().into()).map_err(io::Error::from)?;
        Ok(user.map_or_else(
            || Account {
                name: uid.as_raw().to_string(),
                uid,
                gid: rustix::process::getegid(),
                home: PathBuf::from("/"),
            },
            Account::from,
        ))
    }
}

impl From<User> for Account {
    fn from(user: User) -> Account {
        Account {
            name: user.name,
            uid: Uid::from_raw(user.uid.as_raw()),
            gid: Gid::from_raw(user.gid.as_raw()),
            home: PathBuf::from(OsString::from_vec(user.dir.into_os_string().into_vec())),
        }
    }
}

/// Who a run is to be.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) account: Account,
    /// What has to change for it.
    change: Change,
}

#[derive(Debug)]
enum Change {
    /// Nothing: it is whoever krond is.
    None,
    /// The group alone: krond is not root, and may have it at most as one of its own.
    Group(Gid),
    /// Everything, as root can.
    All { gid: Gid, groups: Vec<Gid> },
}

impl Role {
    /// Looks up whom a launch names.
    pub(crate) fn of(launch: &Launch, own: &Account) -> Result<Role, Trouble> {
        let account = match &launch.user {
            Some(name) if *name != own.name => {
                let account = user(name)?;
                refuse_expired(&account)?;
                account
            }
            _ => own.clone(),
        };
        let group = launch.group.as_deref().map(group).transpose()?;
        let is_root = own.uid.is_root();
        if !is_root && account.uid != own.uid {
            let problem =
                format!("only root can run a job as `{}`; krond runs as `{}`", account.name, own.name);
            return Err(Trouble::new(Stage::User, problem));
        }
        let change = match group {
            None if launch.user.is_none() => Change::None,
            None if !is_root => Change::None,
            Some(gid) if !is_root => Change::Group(gid),
            group => {
                let gid = group.unwrap_or(account.gid);
                Change::All { gid, groups: groups_of(&account.name, gid)? }
            }
        };
        Ok(Role { account, change })
    }

    /// Becomes it, for good. After an error the process is nobody it should be, and must end.
    pub(crate) fn assume(&self) -> Result<(), Trouble> {
        match &self.change {
            Change::None => Ok(()),
            Change::Group(gid) => {
                set_thread_res_gid(*gid, *gid, *gid).map_err(|error| Trouble::io(Stage::Group, error))?;
                verify(self.account.uid, *gid, None)
            }
            Change::All { gid, groups } => {
                let uid = self.account.uid;
                set_thread_groups(groups).map_err(|error| Trouble::io(Stage::Groups, error))?;
                set_thread_res_gid(*gid, *gid, *gid).map_err(|error| Trouble::io(Stage::Group, error))?;
                set_thread_res_uid(uid, uid, uid).map_err(|error| Trouble::io(Stage::User, error))?;
                verify(uid, *gid, Some(groups))
            }
        }
    }
}

fn user(name: &str) -> Result<Account, Trouble> {
    match User::from_name(name) {
        Ok(Some(user)) => Ok(user.into()),
        Ok(None) => Err(Trouble::new(Stage::Account, format!("there is no user `{name}`"))),
        Err(error) => {
            Err(Trouble::new(Stage::Account, format!("could not look up the user `{name}`: {error}")))
        }
    }
}

/// Who may no longer log in may no longer run anything, as far as this host says so to krond.
fn refuse_expired(account: &Account) -> Result<(), Trouble> {
    let Ok(shadow) = std::fs::read_to_string(SHADOW) else { return Ok(()) };
    let today = crate::clock::now().wall.as_second().div_euclid(86_400);
    match expiry(&shadow, &account.name) {
        Some(day) if day <= today => {
            let problem = format!("the account of the user `{}` has expired", account.name);
            Err(Trouble::new(Stage::Account, problem))
        }
        _ => Ok(()),
    }
}

/// What a host knows of accounts beyond who they are, see `shadow(5)`.
const SHADOW: &str = "/etc/shadow";

/// The day on which an account expires, counted from 1970, if it does.
fn expiry(shadow: &str, name: &str) -> Option<i64> {
    let mut fields = shadow
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    fields.nth(6)?.parse().ok().filter(|day| *day >= 0)
}

fn group(name: &str) -> Result<Gid, Trouble> {
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(Gid::from_raw(group.gid.as_raw())),
        Ok(None) => Err(Trouble::new(Stage::Account, format!("there is no group `{name}`"))),
        Err(error) => {
            Err(Trouble::new(Stage::Account, format!("could not look up the group `{name}`: {error}")))
        }
    }
}

/// Every group that a user is in, and the one given.
fn groups_of(name: &str, gid: Gid) -> Result<Vec<Gid>, Trouble> {
    let failed = |error: &dyn std::fmt::Display| {
        Trouble::new(Stage::Account, format!("could not look up the groups of `{name}`: {error}"))
    };
    let text = CString::new(name).map_err(|error| failed(&error))?;
    let groups = unistd::getgrouplist(&text, gid.as_raw().into()).map_err(|error| failed(&error))?;
    Ok(groups.into_iter().map(|group| Gid::from_raw(group.as_raw())).collect())
}

/// Looks whether the kernel agrees. That every call succeeded is not enough: with the right securebits a process keeps
/// the power to become root again.
fn verify(uid: Uid, gid: Gid, groups: Option<&[Gid]>) -> Result<(), Trouble> {
    let wrong = |problem: &str| Err(Trouble::new(Stage::Verify, problem.to_owned()));
    let failed = |error: io::Error| Trouble::new(Stage::Verify, error.to_string());
    let users = unistd::getresuid().map_err(|error| failed(error.into()))?;
    if [users.real, users.effective, users.saved].iter().any(|user| user.as_raw() != uid.as_raw()) {
        return wrong("the user is not the one that was set");
    }
    let now = unistd::getresgid().map_err(|error| failed(error.into()))?;
    if [now.real, now.effective, now.saved].iter().any(|group| group.as_raw() != gid.as_raw()) {
        return wrong("the group is not the one that was set");
    }
    if let Some(groups) = groups {
        let raw = |groups: &[Gid]| groups.iter().map(|group| group.as_raw()).collect::<BTreeSet<_>>();
        if raw(&getgroups().map_err(|error| failed(error.into()))?) != raw(groups) {
            return wrong("the other groups are not those that were set");
        }
    }
    if !uid.is_root() && set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok() {
        return wrong("the process could become root again");
    }
    if !uid.is_root() && !gid.is_root() && set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).is_ok() {
        return wrong("the process could take the group of root again");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_expires_on_the_day_that_its_host_says() {
        let shadow = "root:*:19000:0:99999:7:::\nold:!:19000:0:99999:7::19500:\nolder:!:1:0:9:7:3:0:\nodd\nx:!:::::::\n";
        assert_eq!(expiry(shadow, "old"), Some(19_500));
        assert_eq!(expiry(shadow, "older"), Some(0));
        for name in ["root", "odd", "x", "nobody", ""] {
            assert_eq!(expiry(shadow, name), None, "{name}");
        }
    }
}
