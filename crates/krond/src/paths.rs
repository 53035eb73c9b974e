//! Where things are, for the system and for a person.

use std::env;
use std::path::PathBuf;

/// The places that krond uses unless it is told others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Paths {
    /// The krontabs: a directory, or one file.
    pub config: PathBuf,
    /// The settings.
    pub settings: PathBuf,
    /// State, records and the control socket.
    pub state: PathBuf,
}

impl Paths {
    /// The system's places for root, and a person's own for anybody else.
    ///
    /// # Errors
    ///
    /// If it cannot be told where a person's places are.
    pub fn current() -> Result<Paths, String> {
        if rustix::process::geteuid().is_root() {
            return Ok(Paths::system());
        }
        let variable = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = variable("HOME");
        let place = |name: &str, under: &str| {
            let place = variable(name).or_else(|| home.as_ref().map(|home| home.join(under)));
            place.ok_or_else(|| format!("neither {name} nor HOME is set: set one of them"))
        };
        let config = place("XDG_CONFIG_HOME", ".config")?;
        let state = place("XDG_STATE_HOME", ".local/state")?.join("krond");
        Ok(Paths { config: config.join("krond"), settings: config.join("krond.toml"), state })
    }

    /// The system's places.
    #[must_use]
    pub fn system() -> Paths {
        Paths {
            config: "/etc/krond.d".into(),
            settings: "/etc/krond.toml".into(),
            state: "/var/lib/krond".into(),
        }
    }
}
