//! A server from its settings: opened, served and ended.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kron_zones::Zones;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::app::App;
use crate::clock::{Clock, instant};
use crate::routes::router;
use crate::settings::Settings;
use crate::store::{Rules, Sqlite};

/// How long requests may take to end once the server has been told to.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until a signal comes. Whoever is told where it listens can be served at once.
///
/// # Errors
///
/// If the address or the database cannot be had.
pub async fn serve(settings: Settings, announce: impl FnOnce(SocketAddr, &Arc<App>)) -> Result<(), String> {
    let zones = Arc::new(Zones::system());
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| format!("could not listen on {}: {error}", settings.listen))?;
    let address = listener.local_addr().map_err(|error| format!("could not listen: {error}"))?;
    let rules = Rules {
        defaults: settings.defaults,
        counting: settings.counting,
        directives: settings.test_mode,
        source: format!("ojs://kron/{address}"),
    };
    let store = Sqlite::open(&settings.data, rules, Arc::clone(&zones))?;
    let (end, ending) = watch::channel(false);
    let app = Arc::new(App {
        store: Arc::new(store),
        clock: if settings.test_mode { Clock::settable() } else { Clock::System },
        zones,
        retention: settings.retention,
        test_mode: settings.test_mode,
        started: instant(),
        ending,
        looked: tokio::sync::Mutex::new(None),
    });
    let work = tokio::spawn(Arc::clone(&app).work());
    tracing::info!(%address, data = %settings.data.display(), zones = %app.zones.database(), "serving");
    announce(address, &app);

    let mut ending = app.ending.clone();
    let served = axum::serve(listener, router(Arc::clone(&app))).with_graceful_shutdown(async move {
        let _ = ending.wait_for(|ending| *ending).await;
    });
    let served = tokio::spawn(served.into_future());
    signal().await;
    tracing::info!("ending");
    let _ = end.send(true);
    if tokio::time::timeout(GRACE, served).await.is_err() {
        tracing::warn!("some requests did not end in time and were cut off");
    }
    let _ = work.await;
    Ok(())
}

/// Says where it listens, for people and for programs that started it.
pub fn announce(address: SocketAddr, _: &Arc<App>) {
    let mut out = io::stdout().lock();
    // Nobody may be reading; the server serves all the same.
    let _ = writeln!(out, "kron-server listening on http://{address}").and_then(|()| out.flush());
}

async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}
