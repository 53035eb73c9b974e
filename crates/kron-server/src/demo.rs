//! A server to look at: lively cron jobs, a worker, and what happens told in plain lines.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::app::App;
use crate::cron::Registration;
use crate::job::Nack;
use crate::members::{Members, raw};
use crate::serve::serve;
use crate::settings::Settings;
use crate::store::{After, Change, EventQuery, Fetch};

/// Serves a database that is gone afterwards.
///
/// # Errors
///
/// If the address or the database cannot be had.
pub async fn run(settings: Settings) -> Result<(), String> {
    let directory = Directory::new()?;
    let settings = Settings { data: directory.0.clone(), ..settings };
    serve(settings, |url, app| {
        say(&format!("kron-server listening on {url}"));
        say(&guide(url));
        let app = Arc::clone(app);
        tokio::spawn(async move {
            if let Err(message) = show(&app).await {
                say(&message);
            }
        });
    })
    .await
}

/// The cron jobs of the demonstration.
fn cron_jobs() -> Vec<Value> {
    vec![
        json!({"name": "heartbeat", "cron": "*/5 * * * * *", "type": "demo.beat", "overlap_policy": "allow",
            "description": "Every five seconds"}),
        json!({"name": "slow-report", "cron": "*/10 * * * * *", "type": "demo.slow", "args": [{"seconds": 14}],
            "description": "Takes longer than its interval, so every other occurrence is skipped"}),
        json!({"name": "flaky-sync", "cron": "@every 15s", "type": "demo.flaky", "overlap_policy": "enqueue",
            "options": {"retry": {"max_attempts": 3, "initial_interval": "PT2S"}},
            "description": "Fails at first, and is tried again"}),
        json!({"name": "spread-backup", "cron": "0 * * * * *", "type": "demo.backup",
            "kron": {"window": {"mode": "after", "duration": "30s"}, "seed": {"strategy": "stable"}},
            "description": "Once a minute, somewhere in its first thirty seconds"}),
        json!({"name": "nightly-summary", "cron": "30 2 * * *", "timezone": "Europe/Paris", "type": "demo.summary",
            "description": "At half past two in Paris, also on days when clocks change"}),
    ]
}

fn guide(url: &str) -> String {
    format!(
        "Five cron jobs and a worker are at work. Look at them: {url}/dashboard/\n\nOr in another terminal:\n\
         \n  curl -s {url}/ojs/v1/cron\
         \n  curl -s {url}/kron/v1/cron/slow-report/occurrences\
         \n  curl -s '{url}/kron/v1/cron/nightly-summary/why?at=2027-03-28T01:30:00Z'\
         \n  curl -s -X POST {url}/kron/v1/cron/spread-backup/run\
         \n  curl -sN {url}/ojs/v1/events/stream\
         \n\nCtrl-C ends it.\n"
    )
}

/// Registers the cron jobs, works on their jobs, and tells what happens.
async fn show(app: &Arc<App>) -> Result<(), String> {
    for cron_job in cron_jobs() {
        let now = app.clock.now();
        let given = Members::read(cron_job.to_string().as_bytes()).map_err(|refusal| refusal.message)?;
        let registration = Registration::read(given, &app.zones, now).map_err(|refusal| refusal.message)?;
        app.store.register(registration, now).await.map_err(|refusal| refusal.message)?;
    }
    tokio::join!(work(app), tell(app));
    Ok(())
}

/// A worker: it takes jobs and does what their types say.
async fn work(app: &Arc<App>) {
    let mut told = app.store.last_event();
    loop {
        told.borrow_and_update();
        let fetch = Fetch {
            queues: vec!["default".into()],
            count: 10,
            worker_id: Some("demo-worker".into()),
            visibility_ms: None,
        };
        for job in app.store.fetch(fetch, app.clock.now()).await.unwrap_or_default() {
            let app = Arc::clone(app);
            tokio::spawn(async move {
                let seconds = if job.kind == "demo.slow" { 14 } else { 1 };
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let change = if job.kind == "demo.flaky" && job.attempt == 1 {
                    Change::Nack(Nack::of("connection", "the partner did not answer"))
                } else {
                    Change::Ack { worker_id: None, fence: None, result: Some(raw(&json!({"ok": true}))) }
                };
                // It may have been cancelled in the meantime.
                let _ = app.store.change(&job.id, change, app.clock.now()).await;
            });
        }
        let _ = tokio::time::timeout(Duration::from_secs(1), told.changed()).await;
    }
}

/// Tells what happens, a line each.
async fn tell(app: &Arc<App>) {
    let mut told = app.store.last_event();
    let mut after = 0;
    loop {
        told.borrow_and_update();
        let query = EventQuery { after: Some(After::Number(after)), limit: 100, ..EventQuery::default() };
        let Ok(events) = app.store.events(query).await else { return };
        after = events.through;
        for event in &events.events {
            if let Some(line) = serde_json::from_str(event.body.get()).ok().and_then(|body| line(&body)) {
                say(&line);
            }
        }
        if !events.has_more && told.changed().await.is_err() {
            return;
        }
    }
}

fn line(event: &Value) -> Option<String> {
    let data = &event["data"];
    let text = |name: &str| data[name].as_str().unwrap_or("").to_owned();
    let at: Timestamp = event["time"].as_str()?.parse().ok()?;
    let at = at.strftime("%H:%M:%S");
    let what = match event["type"].as_str()? {
        "cron.triggered" => format!("fires     {} (run {})", text("cron_name"), data["run_count"]),
        "cron.skipped" => format!("skips     {}: {}", text("cron_name"), text("reason")),
        "cron.missed" => {
            format!("missed    {}: {} of them, {}", text("cron_name"), data["count"], text("reason"))
        }
        "job.started" => format!("begins    {} (attempt {})", text("job_type"), data["attempt"]),
        "job.completed" => format!("done      {} after {} ms", text("job_type"), data["duration_ms"]),
        "job.retrying" => format!("failed    {}, again at {}", text("job_type"), text("next_retry_at")),
        "job.discarded" => format!("given up  {}", text("job_type")),
        _ => return None,
    };
    Some(format!("{at}  {what}"))
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    // Nobody may be reading any more.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A directory that is removed with what is in it.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new() -> Result<Directory, String> {
        let path = std::env::temp_dir().join(format!("kron-server-demo-{}", std::process::id()));
        std::fs::create_dir(&path)
            .map_err(|error| format!("could not make the directory {}: {error}", path.display()))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
