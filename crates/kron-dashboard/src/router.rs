//! Paths and what they lead to.

use std::fmt::Write;

use jiff::Timestamp;
use kron_core::{Decision, PeriodId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::assets::asset;
use crate::board::{
    Act, Answer, Board, Draft, Entry, Find, Job, Mark, Page, Permission, Place, Refused, Run, Work,
    WorkFilter,
};
use crate::calendar::calendar;
use crate::guard::Guard;
use crate::load::{Known, Loads};
use crate::plan::{self, NEXT_MAX, Planned, next_runs};
use crate::request::{Reply, Request, Response};
use crate::table::csv;
use crate::timeline::{timeline, words};

/// Where the page is.
pub const MOUNT: &str = "/dashboard/";

/// The largest body: a definition with its arguments.
const BODY_BYTES_MAX: usize = 1 << 20;

/// How many rows a page has if nobody says, and at most.
const ROWS_DEFAULT: usize = 25;
const ROWS_MAX: usize = 200;

/// How many rows a file has.
const EXPORTED_MAX: usize = 10_000;

/// How many runs are drawn.
const RUNS_MAX: usize = 60;

/// The router, and what it remembers between requests.
#[derive(Debug)]
pub struct Dashboard {
    guard: Guard,
    loads: Loads,
}

/// What a stream sends when something has changed. Who hears it asks for what they show.
#[must_use]
pub fn frame(revision: u64) -> String {
    format!("event: changed\ndata: {revision}\n\n")
}

impl Dashboard {
    /// A router that answers under these names.
    #[must_use]
    pub fn new(guard: Guard) -> Dashboard {
        Dashboard { guard, loads: Loads::default() }
    }

    /// Whether a request is one of ours, for what is not answered here.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn check(&self, request: &Request) -> Answer<()> {
        self.guard.check(request)
    }

    /// Answers a request.
    #[must_use]
    pub fn answer(&self, board: &dyn Board, request: &Request) -> Reply {
        let answer = self.guard.check(request).and_then(|()| self.route(board, request));
        if request.method == "POST" && !request.path.ends_with("/preview") {
            // What was counted may no longer hold.
            self.loads.forget();
        }
        let mut reply = answer.unwrap_or_else(|refused| Reply::Whole(Response::refused(&refused)));
        if let Reply::Whole(response) = &mut reply
            && request.method == "HEAD"
        {
            response.body = Default::default();
        }
        reply
    }

    fn route(&self, board: &dyn Board, request: &Request) -> Answer<Reply> {
        let no_such_path = || Refused::new(404, "not_found", "this path does not exist");
        let reads = matches!(request.method.as_str(), "GET" | "HEAD");
        let path = request.path.strip_prefix(MOUNT).unwrap_or("");
        if request.path == "/" || request.path == MOUNT.trim_end_matches('/') {
            return Ok(Reply::Whole(
                Response::new("text/plain", &b""[..]).status(303).with("location", MOUNT),
            ));
        }
        if !request.path.starts_with(MOUNT) {
            return Err(no_such_path());
        }
        let Some(path) = path.strip_prefix("api/") else {
            if !reads {
                return Err(Refused::new(405, "wrong_method", "this path can only be read"));
            }
            return asset(path, request).map(Reply::Whole).ok_or_else(no_such_path);
        };
        if !board.may(Permission::See) {
            return Err(Refused::new(403, "forbidden", "you may not look at this server")
                .hint("sign in with a token that may read"));
        }
        if !reads {
            return write(board, path, request).map(Reply::Whole);
        }
        if path == "live" {
            return Ok(Reply::Live);
        }
        self.read(board, path, request)?.map(Reply::Whole).ok_or_else(no_such_path)
    }

    /// What can be read. A name that ends with `.csv` is a table.
    fn read(&self, board: &dyn Board, path: &str, request: &Request) -> Answer<Option<Response>> {
        let (path, is_csv) = path.strip_suffix(".csv").map_or((path, false), |path| (path, true));
        let response = match path {
            "about" => Response::json(&json!({
                "about": board.about(),
                "now": board.now(),
                "may": {
                    "run": board.may(Permission::Run),
                    "pause": board.may(Permission::Pause),
                    "change": board.may(Permission::Change),
                },
            })),
            "now" => Response::json(&json!({ "now": board.now(), "pulse": board.pulse()? })),
            "jobs" => {
                let page = board.jobs(&find(request, is_csv)?)?;
                if is_csv { table("jobs", JOBS, &page.rows) } else { Response::json(&page) }
            }
            "job" => Response::json(&job_view(board, &named(board, request)?)?),
            "next" => {
                let job = named(board, request)?;
                let planned = planned(&job, board.now(), if is_csv { 1_000 } else { NEXT_MAX });
                if is_csv { table("next", NEXT, &planned) } else { Response::json(&planned) }
            }
            "record" => {
                let job = named(board, request)?;
                let most = limit(request, is_csv)?;
                let to = request.time("before")?.unwrap_or(Timestamp::MAX);
                let place = Place { from: Timestamp::MIN, to, most: most + 1 };
                let mut entries = board.record(&job.id, &place)?;
                let has_more = entries.len() > most;
                entries.truncate(most);
                if is_csv {
                    table("record", RECORD, &entries)
                } else {
                    Response::json(&json!({ "rows": entries, "hasMore": has_more }))
                }
            }
            "runs" => {
                let job = named(board, request)?;
                let runs = board.runs(&job.id, if is_csv { EXPORTED_MAX } else { RUNS_MAX })?;
                if is_csv { table("runs", RUNS, &runs) } else { Response::json(&runs) }
            }
            "output" => {
                let job = named(board, request)?;
                let run = needed(request, "run")?;
                let output = board.output(&job.id, &run)?;
                Response::json(&output.ok_or_else(|| Refused::missing("the output of the run", &run))?)
            }
            "why" => {
                let job = named(board, request)?;
                let at = request.time("at")?.ok_or_else(|| missing_param("at"))?;
                Response::json(&why(board, &job, at)?)
            }
            "timeline" => {
                let from = request.time("from")?.ok_or_else(|| missing_param("from"))?;
                let to = request.time("to")?.ok_or_else(|| missing_param("to"))?;
                let timeline = timeline(board, from, to, &find(request, false)?)?;
                if is_csv { table("timeline", TIMELINE, &timeline.rows()) } else { Response::json(&timeline) }
            }
            "load" => {
                let zone = request.param("zone").unwrap_or_else(|| "UTC".into());
                let known = self.loads.look(board, &zone, request.param("day").as_deref(), is_csv)?;
                match known {
                    Known { load: Some(load), .. } if is_csv => table("load", LOAD, &load.rows()),
                    known if is_csv => {
                        let message = "the starts are being counted";
                        let counting = known.counting.map(|counting| counting.to_string());
                        return Err(Refused::new(503, "counting", message)
                            .hint(format!("try again in a moment: {}", counting.unwrap_or_default())));
                    }
                    known => Response::json(&known),
                }
            }
            "queues" => {
                let queues = board.queues()?;
                if is_csv {
                    table("queues", &["name", "paused", "states"], &queues)
                } else {
                    Response::json(&queues)
                }
            }
            "work" => {
                let filter = WorkFilter {
                    state: request.param("state"),
                    queue: request.param("queue"),
                    job: request.param("job"),
                    dead: request.param("dead").is_some_and(|dead| dead == "true"),
                    offset: request.number("offset")?.unwrap_or(0),
                    limit: limit(request, is_csv)?,
                };
                let page: Page<Work> = board.work(&filter)?;
                if is_csv { table("work", WORK, &page.rows) } else { Response::json(&page) }
            }
            "schedule.ics" => {
                let calendar = calendar(board, request.param("id").as_deref())?;
                Response::new("text/calendar; charset=utf-8", calendar.into_bytes())
                    .with("content-disposition", "attachment; filename=\"kron.ics\"")
            }
            _ => return Ok(None),
        };
        Ok(Some(response))
    }
}

const JOBS: &[&str] = &[
    "id",
    "name",
    "schedule",
    "words",
    "zone",
    "paused",
    "next",
    "last",
    "lastMark",
    "active",
    "held",
    "description",
];
const NEXT: &[&str] = &["nominal", "chosen", "local", "windowStart", "windowEnd", "mark"];
const RECORD: &[&str] =
    &["nominal", "last", "count", "atLeast", "chosen", "mark", "why", "at", "run", "seedHash"];
const RUNS: &[&str] = &["id", "nominal", "mark", "started", "ended", "detail"];
const TIMELINE: &[&str] =
    &["job", "nominal", "chosen", "mark", "why", "count", "last", "windowStart", "windowEnd"];
const LOAD: &[&str] = &["minute", "before", "after"];
const WORK: &[&str] = &[
    "id", "kind", "queue", "state", "job", "attempt", "attempts", "created", "started", "ended", "next",
    "worker", "error", "args", "dead",
];

fn table(name: &str, columns: &[&str], rows: &[impl Serialize]) -> Response {
    Response::new("text/csv; charset=utf-8", csv(columns, rows).into_bytes())
        .with("content-disposition", format!("attachment; filename=\"kron-{name}.csv\""))
}

/// What changes something.
fn write(board: &dyn Board, path: &str, request: &Request) -> Answer<Response> {
    if request.method != "POST" {
        return Err(Refused::new(405, "wrong_method", "expected GET or POST"));
    }
    match path {
        "preview" => Ok(Response::json(&board.preview(&body::<Draft>(request)?)?)),
        "save" => {
            allow(board, Permission::Change, "change jobs")?;
            let id = board.save(&body::<Draft>(request)?)?;
            Ok(Response::json(&json!({ "id": id })))
        }
        "act" => {
            let act: Act = body(request)?;
            let words = match act.needs() {
                Permission::Run => "run jobs",
                Permission::Pause => "pause jobs",
                Permission::Change | Permission::See => "change anything",
            };
            allow(board, act.needs(), words)?;
            Ok(Response::json(&json!({ "done": board.act(&act)? })))
        }
        _ => Err(Refused::new(404, "not_found", "this path does not exist")),
    }
}

fn allow(board: &dyn Board, needs: Permission, words: &str) -> Answer<()> {
    if board.may(needs) {
        return Ok(());
    }
    let message = format!("you may look at this server, but not {words}");
    Err(Refused::new(403, "forbidden", message).hint("sign in with a token that may"))
}

fn body<T: DeserializeOwned>(request: &Request) -> Answer<T> {
    if request.body.len() > BODY_BYTES_MAX {
        let message = format!("expected at most {BODY_BYTES_MAX} bytes, but found {}", request.body.len());
        return Err(Refused::new(413, "too_large", message));
    }
    serde_json::from_slice(&request.body)
        .map_err(|error| Refused::new(400, "wrong", format!("could not read the request: {error}")))
}

fn find(request: &Request, is_csv: bool) -> Answer<Find> {
    let search = request.param("search").unwrap_or_default();
    Ok(Find { search, offset: request.number("offset")?.unwrap_or(0), limit: limit(request, is_csv)? })
}

fn limit(request: &Request, is_csv: bool) -> Answer<usize> {
    if is_csv {
        return Ok(EXPORTED_MAX);
    }
    Ok(request.number("limit")?.unwrap_or(ROWS_DEFAULT).clamp(1, ROWS_MAX))
}

fn needed(request: &Request, name: &str) -> Answer<String> {
    request.param(name).ok_or_else(|| missing_param(name))
}

fn missing_param(name: &str) -> Refused {
    Refused::new(400, "wrong", format!("expected `{name}`, but it is missing"))
}

/// The job that a request names.
fn named(board: &dyn Board, request: &Request) -> Answer<Job> {
    let id = needed(request, "id")?;
    board.job(&id)?.ok_or_else(|| Refused::missing("job", &id))
}

fn planned(job: &Job, now: Timestamp, most: usize) -> Vec<Planned> {
    let Some(plan) = &job.plan else { return Vec::new() };
    next_runs(job, now, most).iter().map(|decision| Planned::of(job, plan.zone(), decision)).collect()
}

fn job_view(board: &dyn Board, job: &Job) -> Answer<Value> {
    let now = board.now();
    let runs: Vec<Run> = board.runs(&job.id, RUNS_MAX)?;
    let next = next_runs(job, now, 1);
    let explained = job.plan.as_ref().zip(next.first()).map(|(plan, decision)| plan::explain(plan, decision));
    Ok(json!({
        "now": now,
        "job": job,
        "next": planned(job, now, NEXT_MAX),
        "explained": explained,
        "runs": runs,
    }))
}

/// Why a job did or did not run at a time.
fn why(board: &dyn Board, job: &Job, at: Timestamp) -> Answer<Value> {
    let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
    let Some(plan) = &job.plan else {
        let message = job.held.clone().unwrap_or_else(|| "the schedule cannot be read any more".into());
        return Err(Refused::new(409, "held", message));
    };
    let about = plan::about(plan, at);
    let nominal = about.as_ref().map_or(at, Decision::nominal);
    let now = board.now();
    let recorded = recorded(board, job, nominal)?;
    let explained = plan.schedule().explain(at);
    let fields: Vec<Value> = explained
        .parts()
        .iter()
        .map(|part| {
            json!({ "name": part.name(), "value": part.value(), "wanted": part.wanted(), "matches": part.matches() })
        })
        .collect();
    let nearest = |it: Option<Timestamp>| {
        it.filter(|_| about.is_none()).map(|nominal| kron_core::decide(plan, nominal))
    };
    let before = nearest(plan.schedule().prev_at_or_before(at));
    let after = nearest(plan.schedule().next_after(at));
    let shown = |decision: &Option<Decision>| decision.as_ref().map(|it| Planned::of(job, plan.zone(), it));
    Ok(json!({
        "job": job.id,
        "name": job.name,
        "at": at,
        "local": plan::local(plan.zone(), at),
        "zone": job.zone,
        "answer": answer(job, plan, at, now, about.as_ref(), recorded.as_ref()),
        "mark": recorded.as_ref().map(|entry| entry.mark),
        "isPeriod": about.as_ref().is_some_and(|decision| decision.nominal() == at),
        "recorded": recorded,
        "explained": about.as_ref().map(|decision| plan::explain(plan, decision)),
        "before": shown(&before),
        "after": shown(&after),
        "verdict": explained.to_string(),
        "fields": fields,
    }))
}

/// How many entries of several in a row are looked through for one that holds a time.
const RANGES_MAX: usize = 50;

/// What the record says of a period: its own entry, or that of several in a row with it among them.
fn recorded(board: &dyn Board, job: &Job, nominal: Timestamp) -> Answer<Option<Entry>> {
    let own = board.record(&job.id, &Place { from: nominal, to: nominal, most: RANGES_MAX })?;
    let holds = |entry: &Entry| entry.nominal <= nominal && nominal <= entry.last.unwrap_or(entry.nominal);
    Ok(own.into_iter().filter(holds).max_by_key(|entry| entry.count == 1))
}

fn answer(
    job: &Job,
    plan: &kron_core::Job,
    at: Timestamp,
    now: Timestamp,
    about: Option<&Decision>,
    recorded: Option<&Entry>,
) -> String {
    let mut text = String::new();
    let Some(decision) = about else {
        let explained = plan.schedule().explain(at).to_string();
        return explained.lines().next().unwrap_or_default().to_owned();
    };
    if decision.nominal() != at {
        let place = if decision.chosen() == Some(at) { "the chosen time" } else { "in the window" };
        let _ = write!(text, "{at} is {place} of the period of {}: ", decision.nominal());
    }
    let is_settled = decision.nominal() <= job.handled && !job.pending.contains(&decision.nominal());
    match (recorded, decision.chosen()) {
        (Some(entry), _) => {
            let _ = write!(text, "{}: {}", mark_word(entry.mark), entry.why);
        }
        (None, Some(chosen)) if chosen >= now && !is_settled => {
            let mark = if job.paused { Mark::Paused } else { Mark::Planned };
            let _ = write!(text, "{}: {}", mark_word(mark), words(mark));
        }
        (None, Some(chosen)) if job.paused_since.is_some_and(|since| chosen >= since) => {
            let since = job.paused_since.map(PeriodId::new).map_or_else(String::new, |since| since.to_string());
            let _ = write!(text, "paused: {}, since {since}", words(Mark::Paused));
        }
        (None, None) if decision.window_end() >= now => text.push_str(words(Mark::Unschedulable)),
        (None, _) => text.push_str(
            "nothing is recorded of it: the job was not there yet, had another schedule, or it is longer ago than is kept",
        ),
    }
    text
}

fn mark_word(mark: Mark) -> String {
    serde_json::to_value(mark).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
