//! What only tests may do, in a server that was started for them.

use std::sync::Arc;

use axum::extract::State;

use crate::app::App;
use crate::http::{Answer, Input, MaybeInput, ok};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::times::{Stamp, stamp};

/// Forgets everything.
pub(super) async fn reset(State(app): State<Arc<App>>, MaybeInput(_): MaybeInput) -> Answer {
    app.store.reset().await?;
    *app.looked.lock().await = None;
    ok(&Object::new().with("reset", &true))
}

pub(super) async fn clock(State(app): State<Arc<App>>) -> Answer {
    shown(&app)
}

/// Sets the clock, and answers when everything that is due then has been carried out.
pub(super) async fn set_clock(State(app): State<Arc<App>>, Input(mut given): Input) -> Answer {
    let now = app.clock.now();
    let at = match given.take("now") {
        None => now,
        Some(raw) => Stamp::read(&raw, "now", now)?.at,
    };
    let running = given.take_as("running", "true or false")?.unwrap_or(false);
    if !app.clock.set(at, running) {
        return Err(Refusal::conflict("this server's clock cannot be set"));
    }
    app.settle().await?;
    shown(&app)
}

fn shown(app: &App) -> Answer {
    ok(&Object::new().with("now", &stamp(app.clock.now())).with("running", &app.clock.is_running()))
}
