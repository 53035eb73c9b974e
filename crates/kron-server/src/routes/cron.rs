//! Cron jobs: register, list, change, remove; and what they did, will do, and why.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use jiff::SignedDuration;
use kron_core::Decision;

use crate::app::App;
use crate::clock::{ceil_second, floor_second};
use crate::cron::{self, Compiled, Cron, Dialect, Kind, Place, Preview, Registration, Why};
use crate::http::{Answer, Input, MEDIA_TYPE, MaybeInput, Reply, ok};
use crate::job_view::{Page, cursor, job_answer, read_cursor};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::store::{PageRequest, Span};
use crate::times::from_query;

use super::page::{Named, Params};

pub(super) async fn register(State(app): State<Arc<App>>, Input(given): Input) -> Answer {
    let now = app.clock.now();
    let registration = Registration::read(given, &app.zones, now)?;
    let dialect = registration.dialect;
    let (cron, compiled, is_new) = app.store.register(registration, now).await?;
    let body = cron::answer(&cron, Some(&compiled), dialect);
    let path = format!("/ojs/v1/cron/{}", cron.definition.name);
    Ok(if is_new { Reply::created(&body).at(path) } else { Reply::ok(&body) })
}

/// Cron jobs; all of them unless a page is asked for. Where those are many they are read and sent page by page.
pub(super) async fn list(State(app): State<Arc<App>>, params: Params) -> Result<Response, Refusal> {
    let enabled = params.flag("enabled")?;
    let asked = params.page_or_all()?;
    let first = PageRequest { limit: asked.limit.or(Some(WHOLE_PAGE)), ..asked.clone() };
    let (crons, mut page) = app.store.crons(enabled, first.clone()).await?;
    if asked.limit.is_none() {
        if page.next.is_some() {
            return Ok(whole_list(app, enabled, first));
        }
        page.limit = page.total;
    }
    let views: Vec<Object> = crons.iter().map(cron::cron_view).collect();
    let list = Object::new()
        .with("cron_jobs", &views)
        .with("crons", &views)
        .with("count", &views.len())
        .with("pagination", &page.view());
    Ok(Reply::ok(&list).into_response())
}

/// How many cron jobs a list that is sent as a whole has in memory.
const WHOLE_PAGE: u64 = 1_000;

/// The two names under which the same list is sent.
const LISTS: [&str; 2] = ["cron_jobs", "crons"];

/// A list that is too long to be held in memory. It is no single moment's: what changes while it is sent may be in it
/// as it was or as it is, and once in each of its two copies.
fn whole_list(app: Arc<App>, enabled: Option<bool>, first: PageRequest) -> Response {
    let sent = Sending { app, enabled, first, list: 0, next: None, counts: [0; 2] };
    let body = Body::from_stream(stream::try_unfold(Some(sent), |sending| async {
        let Some(mut sending) = sending else { return Ok::<_, Refused>(None) };
        let text = sending.page().await.map_err(Refused)?;
        let more = (sending.list < LISTS.len()).then_some(sending);
        Ok(Some((text, more)))
    }));
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response()
}

/// How far a long list has been sent.
struct Sending {
    app: Arc<App>,
    enabled: Option<bool>,
    first: PageRequest,
    /// Which of the two copies.
    list: usize,
    /// Where its next page begins, unless it is the first.
    next: Option<String>,
    counts: [u64; 2],
}

impl Sending {
    /// The next part of the text.
    async fn page(&mut self) -> Result<String, Refusal> {
        let request = match self.next.take() {
            None => self.first.clone(),
            next => PageRequest { cursor: next, offset: 0, ..self.first.clone() },
        };
        let (crons, page) = self.app.store.crons(self.enabled, request).await?;
        let count = &mut self.counts[self.list];
        let mut text = String::new();
        if *count == 0 {
            let opens = if self.list == 0 { '{' } else { ',' };
            text.push_str(&format!("{opens}\"{}\":[", LISTS[self.list]));
        }
        for cron in &crons {
            if *count > 0 {
                text.push(',');
            }
            *count += 1;
            let view = serde_json::to_string(&cron::cron_view(cron));
            text.push_str(&view.map_err(|error| Refusal::backend(&error))?);
        }
        self.next = page.next;
        if self.next.is_none() {
            text.push(']');
            self.list += 1;
            if self.list == LISTS.len() {
                let whole = Page { limit: page.total, next: None, offset: self.first.offset, ..page };
                let rest = Object::new().with("count", &self.counts[0]).with("pagination", &whole.view());
                let rest = serde_json::to_string(&rest).map_err(|error| Refusal::backend(&error))?;
                // The members go on, and so its brace is left out.
                text.push_str(&rest.replacen('{', ",", 1));
            }
        }
        Ok(text)
    }
}

/// A list that broke off in the middle, of which the client sees that it is not whole.
#[derive(Debug)]
struct Refused(Refusal);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Refused {}

pub(super) async fn info(State(app): State<Arc<App>>, Named(name): Named) -> Answer {
    let view = cron::cron_view(&find(&app, &name).await?);
    ok(&Object::new().with("cron_job", &view).with("cron", &view))
}

pub(super) async fn unregister(State(app): State<Arc<App>>, Named(name): Named) -> Answer {
    let Some(cron) = app.store.unregister(&name).await? else { return Err(missing(&name)) };
    let view = cron::cron_view(&cron);
    ok(&Object::new().with("deleted", &true).with("name", &name).with("cron_job", &view).with("cron", &view))
}

pub(super) async fn patch(State(app): State<Arc<App>>, Named(name): Named, Input(given): Input) -> Answer {
    let (cron, compiled) = app.store.patch(&name, given, app.clock.now()).await?;
    ok(&cron::answer(&cron, Some(&compiled), Dialect::Expression))
}

/// What a definition would do. A name that is registered is compared with what it does now.
pub(super) async fn preview(State(app): State<Arc<App>>, params: Params, Input(given): Input) -> Answer {
    let now = app.clock.now();
    let count = params.number("count")?.map_or(cron::RUNS_DEFAULT, |count| {
        usize::try_from(count).unwrap_or(cron::RUNS_MAX).clamp(1, cron::RUNS_MAX)
    });
    let stored = match given.value("name").as_ref().and_then(|name| name.as_str()) {
        Some(name) => app.store.cron(name).await?,
        None => None,
    };
    let preview = Preview::read(given, stored.as_ref(), &app.zones, now)?;
    let compiled = stored.as_ref().map(|cron| compile(&app, cron)).transpose()?;
    ok(&preview.view(stored.as_ref().zip(compiled.as_ref()), count))
}

/// How many occurrences a page has if nobody says, and at most.
const OCCURRENCES_DEFAULT: u64 = 100;
const OCCURRENCES_MAX: u64 = 1_000;

/// Every due instant, past and future, with its outcome.
pub(super) async fn occurrences(State(app): State<Arc<App>>, Named(name): Named, params: Params) -> Answer {
    let cron = find(&app, &name).await?;
    let compiled = compile(&app, &cron)?;
    let now = app.clock.now();
    let day = SignedDuration::from_hours(24);
    let time = |name: &str| params.get(name).map(|text| from_query(text, name)).transpose();
    let to = time("to")?.unwrap_or_else(|| now.checked_add(day).unwrap_or(now));
    let from = match time("from")? {
        Some(from) => from,
        None => now.min(to).checked_sub(day).unwrap_or(now),
    };
    if from > to {
        return Err(Refusal::request("expected `from` to be before `to`").field("from"));
    }
    let after = params.get("cursor").map(|text| {
        let place = read_cursor(text).as_deref().and_then(Place::read);
        place.ok_or_else(|| super::page::wrong("cursor", "a cursor that an answer gave", text))
    });
    let after = after.transpose()?;
    let limit = params.number("limit")?.unwrap_or(OCCURRENCES_DEFAULT).clamp(1, OCCURRENCES_MAX);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);

    let recorded = app.store.occurrences(&name, Span { from, to, after, limit: most + 1 }).await?;
    let begin = after.map_or(from, |after| after.scheduled.max(from));
    let planned = cron
        .planned_from(&compiled, ceil_second(begin))
        .map(|decision| (Place { scheduled: decision.nominal(), kind: Kind::One }, decision))
        .filter(|(place, _)| Some(*place) > after)
        .take_while(|(place, _)| place.scheduled <= to)
        .take(most + 1);
    // Where windows overlap, some wait while later ones have run.
    let mut views: Vec<(Place, Object)> =
        recorded.iter().map(|entry| (entry.place(), cron::occurrence_view(entry))).collect();
    views.extend(planned.map(|(place, decision)| (place, cron::planned_view(&cron, &decision))));
    views.sort_by_key(|(place, _)| *place);
    let more = views.len() > most;
    views.truncate(most);
    let next = views.last().filter(|_| more).map(|(place, _)| cursor(&place.key()));
    let shown: Vec<&Object> = views.iter().map(|(_, view)| view).collect();
    let page =
        Object::new().with("limit", &limit).with("has_more", &more).maybe("next_cursor", next.as_ref());
    ok(&Object::new().with("cron_name", &name).with("occurrences", &shown).with("pagination", &page))
}

pub(super) async fn why(State(app): State<Arc<App>>, Named(name): Named, params: Params) -> Answer {
    let cron = find(&app, &name).await?;
    let compiled = compile(&app, &cron)?;
    let Some(at) = params.get("at") else {
        return Err(Refusal::request("expected a time in `at`, but it is missing").field("at"));
    };
    let at = floor_second(from_query(at, "at")?);
    let about = compiled.about(at);
    let nominal = about.as_ref().map_or(at, Decision::nominal);
    let recorded = app.store.occurrence_at(&name, nominal).await?;
    ok(&Why { cron: &cron, compiled: &compiled, at, about, recorded }.view())
}

pub(super) async fn run(
    State(app): State<Arc<App>>,
    Named(name): Named,
    MaybeInput(_): MaybeInput,
) -> Answer {
    match app.store.run(&name, app.clock.now()).await? {
        Some(job) => Ok(Reply::created(&job_answer(&job)).at(format!("/ojs/v1/jobs/{}", job.id))),
        None => Err(missing(&name)),
    }
}

async fn find(app: &App, name: &str) -> Result<Cron, Refusal> {
    app.store.cron(name).await?.ok_or_else(|| missing(name))
}

fn compile(app: &App, cron: &Cron) -> Result<Compiled, Refusal> {
    cron.definition.compile(cron.anchor, &app.zones)
}

fn missing(name: &str) -> Refusal {
    Refusal::not_found("cron job", name)
}
