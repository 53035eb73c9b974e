//! A web service with a scheduler inside: its state, its lateness and its last events over HTTP, and an orderly end.
//!
//! ```sh
//! cargo run -p kron-scheduler --example service
//! curl localhost:3000/          # what has happened
//! curl localhost:3000/orders    # how many orders were cleaned up
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use kron_scheduler::{Event, Registration, Scheduler, store::FileStore};
use serde_json::{Value, json};

/// What the handlers and the tasks share.
#[derive(Default)]
struct Shop {
    cleaned_up: AtomicU64,
    last_events: Mutex<VecDeque<String>>,
}

impl Shop {
    async fn clean_up(&self) -> Result<(), std::io::Error> {
        self.cleaned_up.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn note(&self, event: &Event) {
        let mut events = self.last_events.lock().expect("nobody panics with it");
        events.push_back(event.to_string());
        if events.len() > 20 {
            events.pop_front();
        }
    }
}

#[derive(Clone)]
struct App {
    shop: Arc<Shop>,
    scheduler: Arc<Scheduler>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().init();
    let shop = Arc::new(Shop::default());
    let (noted, cleaned) = (Arc::clone(&shop), Arc::clone(&shop));
    let store = FileStore::new(std::env::temp_dir().join("shop.kron"));
    let scheduler = Scheduler::builder(store).observer(move |event| noted.note(event)).build();
    let app = App { shop, scheduler: Arc::new(scheduler) };

    // Every minute; a failure is tried again after ten seconds.
    let clean_up = Registration::new("clean-up", "* * * * *", Duration::from_secs(10), move || {
        let shop = Arc::clone(&cleaned);
        async move { shop.clean_up().await }
    });
    app.scheduler.initialize([clean_up]).await?;

    let router =
        Router::new()
            .route("/", get(status))
            .route(
                "/orders",
                get(|State(app): State<App>| async move {
                    app.shop.cleaned_up.load(Ordering::Relaxed).to_string()
                }),
            )
            .with_state(app.clone());
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let interrupted = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    axum::serve(listener, router).with_graceful_shutdown(interrupted).await?;
    // Tasks may take a minute to end. Those that do not are started again next time.
    if tokio::time::timeout(Duration::from_secs(60), app.scheduler.stop()).await.is_err() {
        println!("some tasks did not end");
    }
    Ok(())
}

async fn status(State(app): State<App>) -> Json<Value> {
    let lateness = app.scheduler.lateness();
    Json(json!({
        "state": format!("{:?}", app.scheduler.state()),
        "starts": lateness.starts,
        "worstLatenessMs": u64::try_from(lateness.worst.as_millis()).unwrap_or(u64::MAX),
        "lastEvents": *app.shop.last_events.lock().expect("nobody panics with it"),
    }))
}
