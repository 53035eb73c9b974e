//! A server from its settings: opened, served and ended.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use kron_dashboard::{Dashboard, Guard};
use kron_zones::Zones;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::app::App;
use crate::clock::{Clock, instant};
use crate::feed::Feed;
use crate::gate::{Failures, Gate};
use crate::hosts::Hosts;
use crate::http::Door;
use crate::listen::{Followers, Listener};
use crate::metrics::Metrics;
use crate::routes::router;
use crate::settings::Settings;
use crate::store::{Postgres, Rules, Sqlite, Store};
use crate::tls;
use crate::webhook::deliver::{self, Post};
use crate::webhook::dial::Dialer;

/// Serves until a signal comes. Whoever is told where it listens can be served at once.
///
/// # Errors
///
/// If the address, the certificate or the database cannot be had, or strangers could do anything.
pub async fn serve(settings: Settings, announce: impl FnOnce(&str, &Arc<App>)) -> Result<(), String> {
    let certificate = settings.tls.as_ref().map(tls::Files::load).transpose()?;
    let zones = Arc::new(settings.zoneinfo.as_ref().map_or_else(Zones::system, Zones::from_directory));
    let tcp = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| format!("could not listen on {}: {error}", settings.listen))?;
    let address = tcp.local_addr().map_err(|error| format!("could not listen: {error}"))?;
    let metrics = Arc::new(Metrics::default());
    let rules = Rules {
        defaults: settings.defaults,
        counting: settings.counting,
        directives: settings.test_mode,
        source: format!("ojs://kron/{address}"),
        metrics: Arc::clone(&metrics),
    };
    let store: Arc<dyn Store> = match &settings.postgres {
        Some(place) => Arc::new(Postgres::open(place, rules, address.to_string(), Arc::clone(&zones)).await?),
        None => Arc::new(Sqlite::open(&settings.data, rules, Arc::clone(&zones))?),
    };
    let feed = Arc::new(Feed::new(*store.last_event().borrow()));
    let dialer = Dialer::new(settings.webhooks.guard.clone(), settings.webhooks.ca.as_deref())?;
    let post = Post::new(dialer, settings.webhooks.patience, format!("ojs://kron/{address}"));
    let (end, ending) = watch::channel(false);
    let app = Arc::new(App {
        store,
        clock: if settings.test_mode { Clock::settable() } else { Clock::System },
        zones,
        post,
        retention: settings.retention,
        test_mode: settings.test_mode,
        started: instant(),
        ending,
        caught_up: tokio::sync::Mutex::new(None),
        behind: tokio::sync::Notify::new(),
        feed,
        metrics,
        dashboard: Dashboard::new(Guard::new(
            address.port(),
            settings.hosts.iter().cloned().chain([address.to_string()]),
        )),
        looked: tokio::sync::Mutex::new(None),
    });
    let gate = gate(&app, address, &settings).await?;
    let hosts = Hosts::new(&settings.hosts, address);
    let door = Arc::new(Door { app: Arc::clone(&app), gate, hosts, failures: Failures::default() });
    raise_open_files(settings.limits.connections);
    let work = tokio::spawn(Arc::clone(&app).work());
    let telling = tokio::spawn(deliver::run(Arc::clone(&app)));
    let watching = Arc::clone(&door);
    let watch = tokio::spawn(async move { watching.gate.watch(&watching.app).await });
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let backend = app.store.backend();
    let data = settings.postgres.is_none().then(|| tracing::field::display(settings.data.display()));
    tracing::info!(%address, scheme, backend, data, zones = %app.zones.database(), "serving");
    announce(&format!("{scheme}://{address}"), &app);

    let (tls, renewal) = match (certificate, settings.tls) {
        (Some(certificate), Some(files)) => {
            let (certificate, in_use) = watch::channel(certificate);
            (Some(in_use), Some((files, certificate)))
        }
        _ => (None, None),
    };
    let renew = tokio::spawn(renew(renewal));
    let followers = Followers::start()?;
    let listener = Listener {
        tcp,
        tls,
        limits: Arc::new(settings.limits),
        router: router(&door),
        followers: followers.handle(),
        ending: app.ending.clone(),
    };
    let served = tokio::spawn(listener.serve());
    signal().await;
    tracing::info!("ending");
    let _ = end.send(true);
    app.store.retire().await;
    renew.abort();
    let _ = tokio::join!(served, work, telling, watch);
    Ok(())
}

/// Who may pass, and whether the address is one at which that is enough.
async fn gate(app: &App, address: SocketAddr, settings: &Settings) -> Result<Arc<Gate>, String> {
    let is_private = address.ip().to_canonical().is_loopback();
    let gate = Gate::new(Arc::clone(&app.store), is_private).await.map_err(|refusal| refusal.message)?;
    if !gate.has_tokens() && !is_private {
        return Err(format!(
            "refusing to listen on {address} without a token, since everybody who reaches it could do anything. Make \
             one with `kron-server token create --name admin --scope admin {}`, or listen on 127.0.0.1",
            match settings.postgres {
                Some(_) => "--database …".to_owned(),
                None => format!("--data {}", settings.data.display()),
            }
        ));
    }
    if !gate.has_tokens() {
        tracing::info!(
            "there is no token, so whoever is on this host may do anything; kron-server token create makes one"
        );
    } else if gate.has_live_tokens(app.clock.now()) {
        tracing::info!("requests need a token");
    } else {
        tracing::warn!("requests need a token, and all that there are were revoked or have expired");
    }
    if !is_private && settings.tls.is_none() {
        tracing::warn!(
            "tokens and jobs travel in the clear unless a proxy in front speaks TLS; see --tls-cert"
        );
    }
    Ok(Arc::new(gate))
}

/// File descriptors beside those of connections: the database, its readers, and some to spare.
const OTHER_FILES: u64 = 128;

/// Takes as many file descriptors as the connections need, if the host allows.
fn raise_open_files(connections: usize) {
    let needed = connections as u64 + OTHER_FILES;
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|now| now >= needed) {
        return;
    }
    let current = now.maximum.map_or(needed, |most| most.min(needed));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: now.maximum });
    if raised.is_err() || current < needed {
        tracing::warn!(
            needed,
            "fewer files may be open than the setting limits.connections needs; raise the limit of open files"
        );
    }
}

/// Says where it listens, for people and for programs that started it.
pub fn announce(url: &str, _: &Arc<App>) {
    let mut out = io::stdout().lock();
    // Nobody may be reading; the server serves all the same.
    let _ = writeln!(out, "kron-server listening on {url}").and_then(|()| out.flush());
}

/// Reads the certificate again whenever somebody asks by SIGHUP, for connections that come then.
async fn renew(renewal: Option<(tls::Files, watch::Sender<Arc<ServerConfig>>)>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        let Some((files, certificate)) = &renewal else {
            tracing::info!("there is nothing to read again without TLS");
            continue;
        };
        match files.load() {
            Ok(new) => {
                certificate.send_replace(new);
                tracing::info!(cert = %files.cert.display(), "the certificate was read again");
            }
            Err(error) => tracing::error!(error, "the certificate stays as it was"),
        }
    }
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
