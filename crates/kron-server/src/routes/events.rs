//! What happened: read page by page, or followed as it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt as _};
use serde_json::{Value, json};

use crate::app::App;
use crate::envelope::check_queue;
use crate::feed::{Follower, Look, Told};
use crate::http::Reply;
use crate::job::{Job, State as JobState};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::sse;
use crate::store::{After, EventQuery, Events, Stored};
use crate::times::stamp;

use super::page::{Named, Params};

/// How many events an answer has if nobody says, and at most.
const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 1_000;

/// How many events a stream that has fallen behind reads at once: all that one reader holds in memory.
const STREAM_PAGE: usize = 20;

/// After how much silence a stream says that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// When a client whose stream broke should come back.
const RETRY: Duration = Duration::from_secs(3);

/// Events after another, oldest first; as a stream if the client asks for one.
pub(super) async fn poll(
    State(app): State<Arc<App>>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = read(&params)?;
    if wants_stream(&headers) {
        return follow(app, query, &headers, Shape::Whole).await;
    }
    let events = app.store.events(query).await?;
    let bodies: Vec<_> = events.events.iter().map(|event| &event.body).collect();
    Ok(Reply::ok(
        &Object::new()
            .with("events", &bodies)
            .with("cursor", &events.cursor)
            .with("has_more", &events.has_more),
    )
    .into_response())
}

/// Events as they happen, of one job or queue (`channel=job:ID`, `channel=queue:NAME`) or of all.
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let mut query = read(&params)?;
    match params.get("channel").map(|channel| channel.split_once(':').unwrap_or((channel, ""))) {
        None | Some(("all", "")) => {}
        Some(("job" | "cron", subject)) => query.subject = Some(subject.to_owned()),
        Some(("queue", name)) => query.queues = vec![name.to_owned()],
        Some((other, _)) => {
            return Err(super::page::wrong("channel", "job:ID, queue:NAME, cron:NAME or all", other));
        }
    }
    follow(app, query, &headers, Shape::Whole).await
}

/// How a job's state changes, until it has ended.
pub(super) async fn of_job(
    State(app): State<Arc<App>>,
    Named(id): Named,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let id = id.to_ascii_lowercase();
    let Some(job) = app.store.job(&id, app.clock.now()).await? else {
        return Err(Refusal::not_found("job", &id));
    };
    let query = EventQuery { subject: Some(id), ..read(&params)? };
    if job.state.is_terminal() && query.after.is_none() && !headers.contains_key("last-event-id") {
        let last = sse::event("job.state_changed", None, &ended(&job));
        return Ok(answer(stream::iter([sse::retry(RETRY), last])));
    }
    follow(app, query, &headers, Shape::ChangesOfOne).await
}

/// What a stream says of a job that had ended before anybody listened.
fn ended(job: &Job) -> String {
    let at = job.completed_at.or(job.cancelled_at).or(job.discarded_at).unwrap_or(job.created_at);
    let (id, queue, kind) = (&job.id, &job.queue, &job.kind);
    let change = json!({
        "job_id": id, "queue": queue, "type": kind, "from": null, "to": job.state, "timestamp": stamp(at),
    });
    change.to_string()
}

/// How the states of a queue's jobs change.
pub(super) async fn of_queue(
    State(app): State<Arc<App>>,
    Named(name): Named,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    check_queue(&name)?;
    follow(app, EventQuery { queues: vec![name], ..read(&params)? }, &headers, Shape::Changes).await
}

fn read(params: &Params) -> Result<EventQuery, Refusal> {
    let limit = params.number("limit")?.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX);
    let (after, cursor) = (params.get("after"), params.get("cursor"));
    let mut types = params.list("types");
    types.extend(params.list("event_types"));
    Ok(EventQuery {
        after: after.or(cursor).map(|id| After::Id(id.to_owned())),
        types,
        queues: params.list("queues"),
        job_types: params.list("job_types"),
        subject: None,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    })
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/event-stream"))
}

/// Sends what is there after the place that the client names, and then what comes.
async fn follow(
    app: Arc<App>,
    mut query: EventQuery,
    headers: &HeaderMap,
    shape: Shape,
) -> Result<Response, Refusal> {
    if let Some(id) = headers.get("last-event-id").and_then(|value| value.to_str().ok()) {
        query.after = Some(After::Id(id.to_owned()));
    }
    query.limit = STREAM_PAGE;
    let follower = app.feed.follow()?;
    // A client that names no place follows from now on.
    let start = *app.store.last_event().borrow();
    let first = match &query.after {
        None => Events { through: start, ..Events::default() },
        Some(_) => app.store.events(query.clone()).await?,
    };
    let place = first.through;
    let reader = Reader {
        app,
        follower,
        query,
        place,
        page: first.events.into_iter(),
        shape,
        greeted: false,
        ended: false,
    };
    Ok(answer(sent(reader)))
}

fn answer(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Body::from_stream(events.map(Ok::<_, Infallible>)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What of an event is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    /// How a state changed, and nothing else.
    Changes,
    /// The same, until the state is a last one.
    ChangesOfOne,
    /// All of it.
    Whole,
}

impl Shape {
    /// The event as it is sent, if it is, and whether it is the last.
    fn of(self, told: &Told) -> Option<(Bytes, bool)> {
        if self == Shape::Whole {
            return Some((told.sent.clone(), false));
        }
        let event = &told.event;
        let body: Value = serde_json::from_str(event.body.get()).ok()?;
        let data = &body["data"];
        let to = data["to"].as_str()?;
        let change = json!({
            "job_id": data["job_id"], "queue": data["queue"], "type": data["job_type"],
            "from": data["from"], "to": to, "timestamp": data["timestamp"],
        });
        let sent = sse::event("job.state_changed", Some(&event.id), &change.to_string());
        let ended = JobState::ALL.iter().any(|state| state.name() == to && state.is_terminal());
        Some((sent, self == Shape::ChangesOfOne && ended))
    }
}

/// One reader's place in the order of events.
struct Reader {
    app: Arc<App>,
    follower: Follower,
    query: EventQuery,
    /// The number of the last event that it has been shown, or that it does not want.
    place: u64,
    /// What was read for it alone, up to its place.
    page: std::vec::IntoIter<Stored>,
    shape: Shape,
    greeted: bool,
    ended: bool,
}

fn sent(reader: Reader) -> impl Stream<Item = Bytes> {
    stream::unfold(reader, |mut reader| async move {
        if !reader.greeted {
            reader.greeted = true;
            return Some((sse::retry(RETRY), reader));
        }
        while !reader.ended {
            let Ok(next) = tokio::time::timeout(KEEP_ALIVE, reader.next()).await else {
                return Some((sse::ALIVE, reader));
            };
            if let Some((sent, last)) = reader.shape.of(&next?) {
                reader.ended = last;
                return Some((sent, reader));
            }
        }
        None
    })
}

impl Reader {
    /// The next event, as soon as there is one. None when the server ends.
    async fn next(&mut self) -> Option<Told> {
        let mut ending = self.app.ending.clone();
        loop {
            if let Some(event) = self.page.next() {
                return Some(event.into());
            }
            match self.follower.feed().look(self.place, &self.query) {
                Look::Event(told) => {
                    self.place = told.event.number;
                    return Some(told);
                }
                Look::Behind => {
                    let _turn = self.follower.feed().catch_up().await?;
                    // Asked first: the store has everything up to there by now.
                    let begins = self.follower.feed().begins();
                    let query = EventQuery { after: Some(After::Number(self.place)), ..self.query.clone() };
                    let events = self.app.store.events(query).await.ok()?;
                    self.place = events.through.max(self.place);
                    if events.events.is_empty() && !events.has_more {
                        // What lies in between has been forgotten.
                        self.place = self.place.max(begins);
                    }
                    self.page = events.events.into_iter();
                }
                Look::Nothing(through) => {
                    self.place = through;
                    if *ending.borrow() {
                        return None;
                    }
                    tokio::select! {
                        more = self.follower.wait(through) => more?,
                        _ = ending.changed() => return None,
                    }
                }
            }
        }
    }
}
