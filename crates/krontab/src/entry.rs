//! A line becomes an entry: a job and its command.

use std::sync::LazyLock;

use jiff::Timestamp;
use kron_core::{Job, JobError, OPEN_MAX, Parameter, Window, WindowMode};
use kron_schedule::{Dst, Duration, ParseError, Schedule, Zone};

use crate::canonical;
use crate::code::Code;
use crate::command::Command;
use crate::modifier::{self, Modifiers, Placed};
use crate::parts::{self, SchedulePart};
use crate::problem::Mistake;
use crate::schedule::{self, Written};
use crate::source::Source;
use crate::token::{self, Split};
use crate::{field, file};
use kron_zones::Zones;

/// One line of a krontab that says what to run, and when.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The job's name, unique in its file.
    pub name: String,
    /// The line it stands on, counted from 1.
    pub line: usize,
    /// The schedule, as it was written and as it was understood.
    pub schedule: Written,
    /// What happens to local times that do not exist, or happen twice.
    pub dst: Dst,
    /// The job, ready to be decided about. It has the identity, the zone, the window and the rest.
    pub job: Job,
    /// What it runs.
    pub command: Command,
    /// What its author says about it.
    pub description: Option<String>,
}

impl Entry {
    /// The job's identity, `<absolute path>:<name>`.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.job.identity()
    }

    /// The name of its time zone.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.job.zone().name()
    }
}

/// The zone of those who name none. One table for all of them: there may be a million.
static UTC: LazyLock<Zone> = LazyLock::new(Zone::utc);

/// What became of a line.
pub(crate) struct Reading {
    /// The entry, if there is no error in it.
    pub(crate) entry: Option<Entry>,
    /// Its canonical spelling, likewise.
    pub(crate) canonical: Option<String>,
    /// The name it has, even if there are errors elsewhere, and where that stands.
    pub(crate) name: Option<Placed<String>>,
    pub(crate) mistakes: Vec<Mistake>,
}

/// Reads a line that is neither blank nor a comment.
pub(crate) fn read(number: usize, line: &str, source: &Source, zones: &Zones) -> Reading {
    let mut reading = Reading { entry: None, canonical: None, name: None, mistakes: Vec::new() };
    let Split { tokens, mut mistakes, is_torn } = token::split(line);
    let count = tokens.len();
    let mut parts = parts::divide(line, tokens, &mut mistakes);
    if is_torn && count < parts::CRON_FIELDS && parts.fields.is_empty() {
        parts.schedule = None; // the rest of it may be in what is not closed
    }
    let schedule_at = match &parts.schedule {
        Some(SchedulePart::Plain(span)) => span.start,
        Some(SchedulePart::Phrase(token)) => token.span().start,
        None => 0,
    };
    let draft = parts.schedule.and_then(|part| schedule::read(part, line, &mut mistakes));
    let modifiers = modifier::read(&parts.modifiers, zones, &mut mistakes);
    let end = line.trim_end_matches(token::BLANKS).len();
    let mut field_mistakes = Vec::new();
    let fields = field::read(&parts.fields, end, &mut field_mistakes);
    // Who wrote something else altogether need not hear what its fields are not.
    let is_lost = parts.is_lost || draft.is_none() && parts.fields.is_empty();
    let says = |mistake: &Mistake| match mistake.code {
        Code::MissingField => !is_lost && !is_torn,
        Code::UnknownField => !is_lost,
        _ => true,
    };
    mistakes.extend(field_mistakes.into_iter().filter(says));
    if modifiers.zone.is_some() {
        mistakes.extend(draft.as_ref().and_then(schedule::Draft::offset_beside_zone));
    }
    lint(&modifiers, draft.as_ref(), &mut mistakes);

    reading.name.clone_from(&fields.name);
    let zone = modifiers.zone.as_ref().map_or(&*UTC, |zone| &zone.value).clone();
    let dst = modifiers.dst();
    if mistakes.iter().any(Mistake::is_error) {
        // There will be no job, but whether the schedule ever matches is still worth telling.
        if let Some(Err(error)) = draft.as_ref().and_then(|draft| draft.compile(&zone, dst)) {
            never(&error, schedule_at, &mut mistakes);
        }
    } else if let (Some(draft), Some(name), Some(program)) = (draft, &fields.name, &fields.program) {
        let identity = source.identity(&name.value);
        let written = draft.resolve(&identity, &mut mistakes);
        let built = written.and_then(|written| {
            let schedule = written.compile(&zone, dst);
            let schedule = schedule.map_err(|error| never(&error, schedule_at, &mut mistakes)).ok()?;
            let job = job(schedule, zone, identity, &modifiers, &mut mistakes)?;
            Some((written, job))
        });
        if let Some((written, job)) = built {
            let command = fields.command(program.clone());
            reading.canonical = Some(canonical::entry(&written, &modifiers, &fields));
            reading.entry = Some(Entry {
                name: name.value.clone(),
                line: number,
                schedule: written,
                dst,
                job,
                command,
                description: fields.description,
            });
        }
    }
    reading.mistakes = mistakes;
    reading
}

/// Reads a line that has control characters, which have been told. There is no entry in it, but what else
/// is wrong with it is.
pub(crate) fn read_damaged(number: usize, line: &str, source: &Source, zones: &Zones) -> Reading {
    let reading = read(number, line, source, zones);
    // What cuts through a character cuts through one of these.
    let is_blamed =
        |mistake: &Mistake| line.get(mistake.span.clone()).is_none_or(|text| text.contains(file::is_control));
    let mistakes = reading.mistakes.into_iter().filter(|mistake| !is_blamed(mistake)).collect();
    Reading { entry: None, canonical: None, mistakes, ..reading }
}

/// Tells that a schedule never matches. What else is odd about it no longer matters.
fn never(error: &ParseError, schedule_at: usize, mistakes: &mut Vec<Mistake>) {
    mistakes.retain(|mistake| mistake.is_error() || mistake.code != Code::MissingDay);
    mistakes.push(schedule::lift(error, schedule_at));
}

/// Joins what was read into a job.
fn job(
    schedule: Schedule,
    zone: Zone,
    identity: String,
    modifiers: &Modifiers,
    mistakes: &mut Vec<Mistake>,
) -> Option<Job> {
    let mut builder = Job::builder(identity, schedule, zone)
        .policy(modifiers.policy())
        .constraints(modifiers.constraints.clone());
    if let Some(window) = &modifiers.window {
        builder = builder.window(window.value.mode(), window.value.duration());
    }
    if let Some(distribution) = &modifiers.distribution {
        builder = builder.distribution(distribution.value.distribution);
    }
    if let Some(seed) = &modifiers.seed {
        builder = builder.seed(seed.value.strategy, seed.value.salt.clone().unwrap_or_default());
    }
    let refused = |error: JobError| match (&modifiers.window, error.parameter()) {
        // The rest of a window was checked where it was written; what is left is how many overlap.
        (Some(window), Parameter::Window) => {
            let message = format!("more than {OPEN_MAX} windows of this job would be open at once");
            Mistake::new(Code::TooMany, window.span.clone(), message)
                .with_help("let it run less often, or make the window shorter")
        }
        _ => Mistake::new(Code::Identity, 0..0, error.to_string()),
    };
    builder.build().map_err(|error| mistakes.push(refused(error))).ok()
}

/// What is legal, and surely a mistake.
fn lint(modifiers: &Modifiers, draft: Option<&schedule::Draft<'_>>, mistakes: &mut Vec<Mistake>) {
    if let Some(Placed { value: window, span }) = &modifiers.window {
        mistakes.extend(uneven_window(window).map(|message| {
            Mistake::new(Code::UnevenWindow, span.clone(), message).with_help(match window.mode() {
                WindowMode::Around => "chosen times are whole seconds: make it an even number of them",
                _ => "chosen times are whole seconds: make it a whole number of them",
            })
        }));
    }
    let no_window = modifiers.window.as_ref().is_none_or(|window| window.value.duration() == Duration::ZERO);
    let spread = [
        modifiers.distribution.as_ref().map(|distribution| ("@dist", &distribution.span)),
        modifiers.seed.as_ref().map(|seed| ("@seed", &seed.span)),
    ];
    if no_window {
        mistakes.extend(spread.into_iter().flatten().map(|(name, span)| {
            Mistake::new(Code::NoEffect, span.clone(), format!("`{name}` changes nothing without a window"))
                .with_help("a window such as `@win(after,30m)` has times to choose from")
        }));
    }
    if let (Some(dst), Some(true)) = (&modifiers.dst, draft.map(schedule::Draft::is_every)) {
        mistakes.push(Mistake::new(
            Code::NoEffect,
            dst.span.clone(),
            "`@dst` changes nothing: `@every` does not follow local time",
        ));
    }
    let deadline = modifiers.policy.as_ref().and_then(|policy| policy.value.deadline.as_ref());
    if let Some(Placed { value: Duration::ZERO, span }) = deadline {
        mistakes.push(
            Mistake::new(
                Code::DeadlineZero,
                span.clone(),
                "a deadline of 0s tolerates less than a second of lateness",
            )
            .with_help("it is the default: leave it out if it is meant, else write one such as `5m`"),
        );
    }
}

/// How a window is rounded, if it is not made of whole seconds on each side.
fn uneven_window(window: &Window) -> Option<String> {
    let (start, end) = window.bounds(Timestamp::UNIX_EPOCH);
    let exact = window.duration().as_nanos();
    let before = match window.mode() {
        WindowMode::After => 0,
        WindowMode::Around => exact / 2,
        WindowMode::Before => exact,
    };
    let is_even = |nanos: i64| Duration::from_nanos(nanos).subsec_nanos() == 0;
    if is_even(before) && is_even(exact - before) {
        return None;
    }
    let (opens, closes) =
        (Duration::from_seconds(-start.as_second()), Duration::from_seconds(end.as_second()));
    Some(match window.mode() {
        WindowMode::After => format!("this window is rounded: it closes {closes} after the nominal time"),
        _ => format!(
            "this window is rounded: it opens {opens} before the nominal time and closes {closes} after it"
        ),
    })
}
