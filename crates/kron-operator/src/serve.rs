//! Probes and metrics over HTTP: `/healthz`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::metrics::Metrics;

/// The most connections at once. Probes and a Prometheus need a handful.
const CONNECTIONS_MAX: usize = 64;

/// How long a client may take to say what it wants.
const HEADERS: Duration = Duration::from_secs(10);

/// How long a connection may stay.
const CONNECTION: Duration = Duration::from_secs(60);

/// Answers until it is dropped. Metrics are for who brings the token, or, without one, for the host itself.
///
/// # Errors
///
/// If the address cannot be listened on.
pub async fn serve(address: SocketAddr, token: Option<String>, metrics: Arc<Metrics>) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let token: Arc<Option<String>> = Arc::new(token);
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await; // too many open files, perhaps
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let (metrics, token) = (Arc::clone(&metrics), Arc::clone(&token));
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = answer(&request, peer, token.as_deref(), &metrics);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADERS)
                .serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(CONNECTION, connection).await;
            drop(permit);
        });
    }
}

fn answer(
    request: &Request<Incoming>,
    peer: SocketAddr,
    token: Option<&str>,
    metrics: &Metrics,
) -> Response<Full<Bytes>> {
    let say = |status: StatusCode, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
    };
    if request.method() != Method::GET {
        return say(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n".to_owned());
    }
    let check = |is_good: bool| match is_good {
        true => say(StatusCode::OK, "ok\n".to_owned()),
        false => say(StatusCode::SERVICE_UNAVAILABLE, "not yet\n".to_owned()),
    };
    match request.uri().path() {
        "/healthz" => check(metrics.is_healthy()),
        "/readyz" => check(metrics.is_ready()),
        "/metrics" => {
            let given = request.headers().get("authorization").and_then(|value| value.to_str().ok());
            let allowed = match token {
                None => peer.ip().is_loopback(),
                Some(token) => given
                    .and_then(|given| given.strip_prefix("Bearer "))
                    .is_some_and(|given| same(given, token)),
            };
            match allowed {
                true => say(StatusCode::OK, metrics.text()),
                false => {
                    say(StatusCode::UNAUTHORIZED, "expected the token of --metrics-token-file\n".to_owned())
                }
            }
        }
        _ => say(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".to_owned()),
    }
}

/// Whether two texts are the same, in a time that does not tell how much of them is.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
