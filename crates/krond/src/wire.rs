//! The state file: every name that STATE gives, and nothing of it anywhere else.
//!
//! Beside STATE's keys stand some that a reader may ignore: `Paused`, `LatestCivilTime`, `Pending`, `OtherExecutions`, the kernel's names
//! for a process, the reason of an ending, and last of all `Checksum`, by which damage is told from truth.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use kron_core::{CivilLabel, Outcome, PeriodId, Reason, RunId};
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::process::{BootId, ProcessId};
use crate::state::{Ending, Last, Run, State};

/// The version of the schema that is written.
const VERSION: &str = "1";

/// The name of the file of a job: `<hex(sha256(identity))>.json`.
#[must_use]
pub fn file_name(identity: &str) -> String {
    format!("{}.json", hex(identity.as_bytes()))
}

/// The text of a state file.
#[must_use]
pub fn encode(state: &State) -> Vec<u8> {
    // An ending or a run takes some 350 bytes.
    seal(&StateFile::from(state), 512 + 384 * (state.history.len() + state.runs.len()))
}

/// The text of an anchor file.
#[must_use]
pub fn encode_anchor(latest: Timestamp) -> Vec<u8> {
    seal(&AnchorFile { version: VERSION.into(), wall_max: latest }, 256)
}

/// Reads an anchor file, unless it is damaged.
#[must_use]
pub fn decode_anchor(bytes: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (body, checksum) = unseal(text)?;
    let file: AnchorFile = serde_json::from_str(text).ok()?;
    (hex(body.as_bytes()) == checksum && file.version == VERSION).then_some(file.wall_max)
}

/// An object with its checksum as the last key. About so many bytes are expected, that the text is not moved while it grows.
fn seal(object: &impl Serialize, expected: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(expected);
    serde_json::to_writer(&mut text, object).expect("no map in it has keys other than strings");
    assert_eq!(text.pop(), Some(b'}'), "it is an object");
    let checksum = hex(&text);
    for part in [CHECKSUM, &checksum, END] {
        text.extend_from_slice(part.as_bytes());
    }
    text
}

/// Reads a state file of that job.
///
/// # Errors
///
/// If it cannot be taken for what was written: see [`Unusable`].
pub fn decode(bytes: &[u8], identity: &str) -> Result<State, Unusable> {
    let corrupt = |why: &dyn fmt::Display| Unusable::Corrupt(why.to_string());
    let text = std::str::from_utf8(bytes).map_err(|error| corrupt(&error))?.trim_end();
    let sealed = match unseal(text) {
        Some((body, checksum)) if hex(body.as_bytes()) != checksum => {
            return Err(corrupt(&"its checksum does not match"));
        }
        found => found.is_some(),
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| corrupt(&error))?;
    let object = value.as_object().ok_or_else(|| corrupt(&"expected an object"))?;
    // Without its checksum a file may be damaged anywhere, and one byte of that may have been the checksum's
    // name. A file that somebody else wrote has STATE's keys and no others.
    if let Some(key) = object.keys().find(|key| !sealed && !KEYS.contains(&key.as_str())) {
        return Err(corrupt(&format_args!("it has no checksum, and the unknown key `{key}`")));
    }
    let version = object.get("Version").and_then(|version| version.as_str());
    let version = version.ok_or_else(|| corrupt(&"it has no `Version`"))?.to_owned();
    let value = migrate(&version, value).ok_or(Unusable::Version(version))?;
    let file: StateFile<String> = serde_json::from_value(value).map_err(|error| corrupt(&error))?;
    if file.identity != identity {
        return Err(Unusable::Identity(file.identity));
    }
    file.try_into().map_err(|why: String| corrupt(&why))
}

/// Why a state file cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unusable {
    /// It is not what was written.
    Corrupt(String),
    /// It is of another version, which is named here, and there is no way from that one to this.
    Version(String),
    /// It is the file of another job, whose identity is named here.
    Identity(String),
}

/// What can still be read of a damaged file. Whoever uses it must verify it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Salvage {
    /// The latest time found where a period stands.
    pub latest: Option<Timestamp>,
    /// Runs that were under way.
    pub runs: Vec<Run>,
    /// Whether it was paused. Since when may be among what is lost.
    pub paused: Option<Option<Timestamp>>,
}

/// Looks for what is left in a damaged file, byte by byte.
#[must_use]
pub fn salvage(bytes: &[u8]) -> Salvage {
    let text = String::from_utf8_lossy(bytes);
    let values = |key: &'static str| text.match_indices(key).map(|(at, _)| &text[at + key.len()..]);
    let periods = ["\"LastHandledPeriodID\":", "\"LastNominalTime\":", "\"PeriodID\":", "\"NominalTime\":"];
    let times = periods.into_iter().flat_map(values).filter_map(|value| {
        let value = value.trim_start().strip_prefix('"')?;
        value.get(..TIME_LENGTH)?.parse::<Timestamp>().ok()
    });
    let first =
        |value| serde_json::Deserializer::from_str(value).into_iter::<Execution<String>>().next()?.ok();
    let runs = values("\"ActiveExecution\":").filter_map(first).filter_map(|active| active.try_into().ok());
    let since = |value: &str| value.trim_start().strip_prefix('"')?.split_once('"')?.0.parse().ok();
    let paused = values("\"Paused\":").map(since).next();
    Salvage { latest: times.max(), runs: runs.take(1).collect(), paused }
}

/// The length of `2026-03-01T00:00:00Z`.
const TIME_LENGTH: usize = 20;

/// Makes a file of an older version one of this. There is none yet: the first step will be written here, as a
/// function from one version's object to the next one's that keeps `LastHandledPeriodID`.
fn migrate(version: &str, value: serde_json::Value) -> Option<serde_json::Value> {
    (version == VERSION).then_some(value)
}

const CHECKSUM: &str = r#","Checksum":""#;
const END: &str = r#""}"#;

/// The text before the checksum, and the checksum, if there is one.
fn unseal(text: &str) -> Option<(&str, &str)> {
    let (body, checksum) = text.strip_suffix(END)?.rsplit_once(CHECKSUM)?;
    (checksum.len() == 64).then_some((body, checksum))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(bytes);
    let mut text = String::with_capacity(2 * digest.len());
    for byte in digest {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

/// STATE's keys, and Kron's own.
const KEYS: [&str; 12] = [
    "Version",
    "Identity",
    "Paused",
    "LastHandledPeriodID",
    "LastOutcome",
    "LastChosenTime",
    "LastNominalTime",
    "LatestCivilTime",
    "ActiveExecution",
    "History",
    "Pending",
    "OtherExecutions",
];

/// STATE's record, with what stands between quotes as `T`: a `String` where it is read, and a [`Text`] where it is written.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct StateFile<T> {
    version: T,
    identity: T,
    /// Since when nothing of it starts, because somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<Timestamp>,
    #[serde(rename = "LastHandledPeriodID")]
    last_handled_period_id: T,
    last_outcome: T,
    last_chosen_time: T,
    last_nominal_time: T,
    /// The latest local time of a handled period, and its zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest_civil_time: Option<T>,
    /// The run of a period that started last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    active_execution: Option<Execution<T>>,
    #[serde(default)]
    history: Vec<HistoryEntry<T>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pending: Vec<T>,
    /// The other runs under way, in the order of their starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    other_executions: Vec<Execution<T>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct AnchorFile {
    version: String,
    wall_max: Timestamp,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Execution<T> {
    /// Empty for a run that no period asked for.
    #[serde(rename = "PeriodID")]
    period_id: T,
    #[serde(rename = "PID")]
    pid: u32,
    started_at: T,
    chosen_time: T,
    #[serde(default, rename = "BootID")]
    boot_id: T,
    #[serde(default)]
    start_ticks: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed_hash: Option<T>,
    /// How many seconds it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    /// The number of a run that no period asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manual: Option<u64>,
    /// Its place among the runs under way, where `ActiveExecution` is not the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<usize>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct HistoryEntry<T> {
    #[serde(rename = "PeriodID")]
    period_id: T,
    outcome: T,
    nominal_time: T,
    chosen_time: T,
    completed_at: T,
    exit_code: Option<i32>,
    #[serde(default)]
    reason: T,
    #[serde(default)]
    started_at: T,
    #[serde(default)]
    seed_hash: T,
}

/// What is written between quotes. A file is written for every start and every end, and most of it is times: they are
/// printed where they belong, and not into a `String` each before.
#[derive(Clone, Copy)]
enum Text<'a> {
    Words(&'a str),
    Period(PeriodId),
    Time(Timestamp),
    Civil(&'a CivilLabel),
    Boot(BootId),
}

impl Text<'_> {
    const EMPTY: Text<'static> = Text::Words("");
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Text::Words(words) => serializer.serialize_str(words),
            Text::Period(period) => serializer.collect_str(period),
            Text::Time(time) => serializer.collect_str(time),
            Text::Civil(label) => serializer.collect_str(label),
            Text::Boot(boot) => serializer.collect_str(boot),
        }
    }
}

impl<'a> From<&'a State> for StateFile<Text<'a>> {
    fn from(state: &'a State) -> StateFile<Text<'a>> {
        let newest = state.runs.iter().rposition(|run| matches!(run.id, RunId::Period(_)));
        let last_place = state.runs.len().saturating_sub(1);
        let mut others: Vec<Execution<_>> = state.runs.iter().map(Execution::from).collect();
        let active_execution = newest.map(|newest| Execution {
            place: (newest != last_place).then_some(newest),
            ..others.remove(newest)
        });
        let period = state.last.map_or(Text::EMPTY, |last| Text::Period(last.period));
        StateFile {
            version: Text::Words(VERSION),
            identity: Text::Words(&state.identity),
            paused: state.paused,
            last_handled_period_id: period,
            last_outcome: state.last.map_or(Text::EMPTY, |last| Text::Words(last.outcome.name())),
            last_chosen_time: time(state.last.and_then(|last| last.chosen)),
            last_nominal_time: period,
            latest_civil_time: state.latest.as_ref().map(Text::Civil),
            active_execution,
            history: state.history.iter().map(HistoryEntry::from).collect(),
            pending: state.pending.iter().copied().map(Text::Period).collect(),
            other_executions: others,
        }
    }
}

impl TryFrom<StateFile<String>> for State {
    type Error = String;

    fn try_from(file: StateFile<String>) -> Result<State, String> {
        let last = match file.last_handled_period_id.as_str() {
            "" => None,
            period => Some(Last {
                period: parse_period(period)?,
                outcome: parse_outcome(&file.last_outcome)?,
                chosen: parse_time(&file.last_chosen_time)?,
            }),
        };
        let mut runs = file.other_executions.into_iter().map(Run::try_from).collect::<Result<Vec<_>, _>>()?;
        if let Some(active) = file.active_execution {
            let place = active.place.unwrap_or(runs.len()).min(runs.len());
            runs.insert(place, active.try_into()?);
        }
        Ok(State {
            identity: file.identity,
            paused: file.paused,
            last,
            latest: file
                .latest_civil_time
                .map(|label| label.parse().map_err(|error| format!("{error}, but found `{label}`")))
                .transpose()?,
            pending: file.pending.iter().map(|period| parse_period(period)).collect::<Result<_, _>>()?,
            runs,
            history: file.history.into_iter().map(Ending::try_from).collect::<Result<_, _>>()?,
        })
    }
}

impl<'a> From<&'a Run> for Execution<Text<'a>> {
    fn from(run: &'a Run) -> Execution<Text<'a>> {
        let (period_id, manual) = match run.id {
            RunId::Period(period) => (Text::Period(period), None),
            RunId::Manual(number) => (Text::EMPTY, Some(number)),
        };
        Execution {
            period_id,
            pid: run.process.pid,
            started_at: Text::Time(run.started_at),
            chosen_time: time(run.chosen),
            boot_id: Text::Boot(run.process.boot),
            start_ticks: run.process.start_ticks,
            seed_hash: (!run.seed_hash.is_empty()).then_some(Text::Words(&run.seed_hash)),
            timeout: run.timeout.map(|timeout| timeout.as_secs()),
            manual,
            place: None,
        }
    }
}

impl TryFrom<Execution<String>> for Run {
    type Error = String;

    fn try_from(execution: Execution<String>) -> Result<Run, String> {
        let id = match execution.manual {
            Some(number) => RunId::Manual(number),
            None => RunId::Period(parse_period(&execution.period_id)?),
        };
        // A file that another program wrote names a bare PID, which identifies nobody: boot 0 never was.
        let boot = match execution.boot_id.as_str() {
            "" => BootId::new(0),
            boot => boot.parse().map_err(|_| format!("expected the id of a boot, but found `{boot}`"))?,
        };
        let started_at = parse_time(&execution.started_at)?;
        Ok(Run {
            id,
            process: ProcessId { boot, pid: execution.pid, start_ticks: execution.start_ticks },
            started_at: started_at.ok_or("expected a time, but found no `StartedAt`")?,
            chosen: parse_time(&execution.chosen_time)?,
            seed_hash: execution.seed_hash.unwrap_or_default(),
            timeout: execution.timeout.map(Duration::from_secs),
        })
    }
}

impl<'a> From<&'a Ending> for HistoryEntry<Text<'a>> {
    fn from(ending: &'a Ending) -> HistoryEntry<Text<'a>> {
        HistoryEntry {
            period_id: Text::Period(ending.period),
            outcome: Text::Words(ending.reason.outcome().name()),
            nominal_time: Text::Period(ending.period),
            chosen_time: time(ending.chosen),
            completed_at: Text::Time(ending.completed_at),
            exit_code: ending.exit,
            reason: Text::Words(ending.reason.name()),
            started_at: time(ending.started_at),
            seed_hash: Text::Words(&ending.seed_hash),
        }
    }
}

impl TryFrom<HistoryEntry<String>> for Ending {
    type Error = String;

    fn try_from(entry: HistoryEntry<String>) -> Result<Ending, String> {
        let outcome = parse_outcome(&entry.outcome)?;
        let reason = Reason::ALL.into_iter().find(|reason| reason.name() == entry.reason);
        let completed_at = parse_time(&entry.completed_at)?;
        Ok(Ending {
            period: parse_period(&entry.period_id)?,
            reason: reason.filter(|reason| reason.outcome() == outcome).unwrap_or(plain_reason(outcome)),
            chosen: parse_time(&entry.chosen_time)?,
            started_at: parse_time(&entry.started_at)?,
            completed_at: completed_at.ok_or("expected a time, but found no `CompletedAt`")?,
            exit: entry.exit_code,
            seed_hash: entry.seed_hash,
        })
    }
}

/// What a file that gives no reason must have meant.
const fn plain_reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Executed => Reason::Started,
        Outcome::Missed => Reason::DeadlinePassed,
        Outcome::Skipped => Reason::StillRunning,
        Outcome::Unschedulable => Reason::NoCandidate,
    }
}

fn time(time: Option<Timestamp>) -> Text<'static> {
    time.map_or(Text::EMPTY, Text::Time)
}

fn parse_time(text: &str) -> Result<Option<Timestamp>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| format!("expected a time, but found `{text}`"))
}

fn parse_period(text: &str) -> Result<PeriodId, String> {
    text.parse().map_err(|error: kron_core::PeriodIdError| error.to_string())
}

fn parse_outcome(text: &str) -> Result<Outcome, String> {
    let outcomes = [Outcome::Executed, Outcome::Missed, Outcome::Skipped, Outcome::Unschedulable];
    let found = outcomes.into_iter().find(|outcome| outcome.name() == text);
    found.ok_or_else(|| format!("expected an outcome, but found `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: &str = "/etc/krond.d/jobs:backup";

    fn period(text: &str) -> PeriodId {
        text.parse().unwrap()
    }

    fn run(id: RunId, pid: u32) -> Run {
        Run {
            id,
            process: ProcessId { boot: BootId::new(7), pid, start_ticks: 99 },
            started_at: "2026-03-01T02:10:00.25Z".parse().unwrap(),
            chosen: matches!(id, RunId::Period(_)).then(|| "2026-03-01T02:10:00Z".parse().unwrap()),
            seed_hash: "ab".repeat(32),
            timeout: Some(Duration::from_secs(90)),
        }
    }

    /// A state with something in every key.
    fn full() -> State {
        let ending = |text, reason, exit| Ending {
            period: period(text),
            reason,
            chosen: Some("2026-02-27T02:10:00Z".parse().unwrap()),
            started_at: None,
            completed_at: "2026-02-27T02:11:00Z".parse().unwrap(),
            exit,
            seed_hash: "cd".repeat(32),
        };
        State {
            identity: IDENTITY.into(),
            paused: Some("2026-03-01T02:20:00Z".parse().unwrap()),
            last: Some(Last {
                period: period("2026-03-01T02:00:00Z"),
                outcome: Outcome::Executed,
                chosen: Some("2026-03-01T02:10:00Z".parse().unwrap()),
            }),
            latest: Some("2026-03-01T03:00[Europe/Berlin]".parse().unwrap()),
            pending: vec![period("2026-02-28T02:00:00Z")],
            runs: vec![
                run(RunId::Period(period("2026-02-28T02:00:00Z")), 41),
                run(RunId::Period(period("2026-03-01T02:00:00Z")), 42),
                run(RunId::Manual(3), 43),
            ],
            history: [
                ending("2026-02-26T02:00:00Z", Reason::Superseded, None),
                ending("2026-02-27T02:00:00Z", Reason::Started, Some(143)),
            ]
            .into(),
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let fence = Last { period: period("2026-03-01T00:00:00Z"), outcome: Outcome::Skipped, chosen: None };
        let fenced = State { last: Some(fence), ..State::new(IDENTITY) };
        for state in [State::new(IDENTITY), fenced, full()] {
            assert_eq!(decode(&encode(&state), IDENTITY).unwrap(), state);
        }
    }

    #[test]
    fn the_keys_are_those_of_state() {
        let value: serde_json::Value = serde_json::from_slice(&encode(&full())).unwrap();
        assert_eq!(value["Version"], "1");
        assert_eq!(value["LastHandledPeriodID"], "2026-03-01T02:00:00Z");
        assert_eq!(value["LastNominalTime"], "2026-03-01T02:00:00Z");
        assert_eq!(value["LastOutcome"], "executed");
        assert_eq!(value["LastChosenTime"], "2026-03-01T02:10:00Z");
        assert_eq!(value["ActiveExecution"]["PeriodID"], "2026-03-01T02:00:00Z");
        assert_eq!(value["ActiveExecution"]["PID"], 42);
        assert_eq!(value["ActiveExecution"]["StartedAt"], "2026-03-01T02:10:00.25Z");
        assert_eq!(value["History"][1]["ExitCode"], 143);
        assert_eq!(value["History"][0]["ExitCode"], serde_json::Value::Null);
        assert_eq!(value["History"][0]["Outcome"], "skipped");
        let new: serde_json::Value = serde_json::from_slice(&encode(&State::new(IDENTITY))).unwrap();
        assert_eq!(new["LastHandledPeriodID"], "");
        assert!(new.get("ActiveExecution").is_none());
        assert_eq!(new["History"], serde_json::json!([]));
        assert_eq!(file_name("a"), format!("{}.json", hex(b"a")));
    }

    #[test]
    fn no_bit_can_be_wrong_unnoticed() {
        let state = full();
        let bytes = encode(&state);
        for at in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            match decode(&damaged, IDENTITY) {
                Err(Unusable::Corrupt(_)) => {}
                other => panic!("bit {at} of {:?}: {other:?}", String::from_utf8_lossy(&bytes)),
            }
        }
    }

    #[test]
    fn no_part_passes_for_the_whole() {
        let bytes = encode(&full());
        for length in 0..bytes.len() {
            let found = decode(&bytes[..length], IDENTITY);
            assert!(matches!(found, Err(Unusable::Corrupt(_))), "{length} bytes: {found:?}");
        }
    }

    #[test]
    fn a_file_of_another_program_is_read() {
        let text = r#"{"Version":"1","Identity":"/etc/krond.d/jobs:backup","LastHandledPeriodID":"2026-03-01T02:00:00Z",
            "LastOutcome":"missed","LastChosenTime":"","LastNominalTime":"2026-03-01T02:00:00Z",
            "ActiveExecution":null,"History":[{"PeriodID":"2026-03-01T02:00:00Z","Outcome":"missed",
            "NominalTime":"2026-03-01T02:00:00Z","ChosenTime":"","CompletedAt":"2026-03-01T03:00:00Z","ExitCode":null}]}"#;
        let state = decode(text.as_bytes(), IDENTITY).unwrap();
        assert_eq!(state.watermark(), Some(period("2026-03-01T02:00:00Z")));
        assert_eq!(state.history[0].reason, Reason::DeadlinePassed);
        let unknown = text.replace("\"History\"", "\"Hiztory\"");
        assert!(matches!(decode(unknown.as_bytes(), IDENTITY), Err(Unusable::Corrupt(_))));
    }

    #[test]
    fn another_version_and_another_job_are_no_damage() {
        let mut text = String::from_utf8(encode(&full())).unwrap();
        let (body, _) = unseal(&text).unwrap();
        let body = body.replace("\"Version\":\"1\"", "\"Version\":\"2\"");
        text = format!("{body}{CHECKSUM}{}{END}", hex(body.as_bytes()));
        assert_eq!(decode(text.as_bytes(), IDENTITY), Err(Unusable::Version("2".into())));
        let found = decode(&encode(&full()), "/etc/krond.d/jobs:other");
        assert_eq!(found, Err(Unusable::Identity(IDENTITY.into())));
    }

    #[test]
    fn what_is_left_of_a_damaged_file_is_found() {
        let bytes = encode(&full());
        let found = salvage(&bytes[..bytes.len() - 300]);
        assert_eq!(found.latest, Some("2026-03-01T02:00:00Z".parse().unwrap()));
        assert_eq!(found.runs.iter().map(|run| run.process.pid).collect::<Vec<_>>(), [42]);
        assert_eq!(found.paused, Some(full().paused));
        assert_eq!(salvage(br#"{"Paused":"2026-0"#).paused, Some(None), "since when is lost");
        assert_eq!(salvage(b"\x00\xff"), Salvage::default());
    }
}
