//! One request to a receiver: its name is looked up, what was found is checked, and what passed is dialled.
//!
//! No redirect is followed, no proxy is asked, nothing is kept for the next request, and of the answer only its status
//! counts.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::guard::{Guard, Target};
use super::{Letter, Outcome};

/// How long a receiver has for everything: being found, being reached, and answering.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one of several addresses has for being reached.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The largest head of an answer, and the most of its body that is waited for.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// How names are looked up. It may take its time: it has a thread of its own.
pub type Lookup = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// The way to receivers.
#[derive(Clone)]
pub struct Dialer {
    guard: Guard,
    tls: TlsConnector,
    lookup: Lookup,
    patience: Duration,
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl Dialer {
    /// A way to receivers that the host's certificates vouch for, or those in a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn new(guard: Guard, ca: Option<&Path>) -> Result<Dialer, String> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca {
            let wrong = |error: &dyn std::fmt::Display| {
                format!("could not read the certificates in {}: {error}", path.display())
            };
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let own = read.map_err(|error| wrong(&error))?;
            if own.is_empty() {
                return Err(wrong(&"there are none"));
            }
            for certificate in own {
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("could not set up TLS: {error}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let lookup: Lookup = Arc::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect));
        Ok(Dialer { guard, tls: TlsConnector::from(Arc::new(config)), lookup, patience: PATIENCE })
    }

    /// What may be called.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Sends a letter. Whoever sends several brings the same seat, so that names that take long to look up take one
    /// thread and not more.
    pub async fn send(&self, letter: Letter, seat: &Arc<Semaphore>) -> Outcome {
        let deadline = Instant::now() + self.patience;
        let sent = timeout_at(deadline, self.exchange(letter, seat)).await;
        let failed = |status, error| Outcome::Failed { status, error };
        match sent {
            Err(_) => failed(None, format!("no answer within {:?}", self.patience)),
            Ok(Err(error)) => failed(None, error),
            Ok(Ok((status, rest))) => {
                // Receivers are let finish; it changes nothing any more.
                let _ = timeout_at(deadline, rest.read()).await;
                let code = status.as_u16();
                match code {
                    200..=299 => Outcome::Delivered(code),
                    300..=399 => failed(
                        Some(code),
                        format!("the receiver answered {code}, and redirects are not followed"),
                    ),
                    _ => failed(Some(code), format!("the receiver answered {code}")),
                }
            }
        }
    }

    async fn exchange(&self, letter: Letter, seat: &Arc<Semaphore>) -> Result<(StatusCode, Rest), String> {
        let target = self.guard.target(&letter.url)?;
        let stream = self.dial(&target, seat).await?;
        if !target.is_secure {
            return speak(stream, &target, letter).await;
        }
        let name = ServerName::try_from(target.host.clone());
        let name = name.map_err(|_| format!("{} is no name that a certificate could have", target.host))?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| format!("no secure connection to {}: {error}", target.host))?;
        speak(stream, &target, letter).await
    }

    /// Connects to the first address that may be called and can be reached.
    async fn dial(&self, target: &Target, seat: &Arc<Semaphore>) -> Result<TcpStream, String> {
        let addresses = self.addresses(target, seat).await?;
        let mut why = format!("no address was found for {}", target.host);
        let mut tried = 0;
        for address in addresses {
            if let Err(forbidden) = self.guard.check(address) {
                if tried == 0 {
                    why = forbidden;
                }
                continue;
            }
            tried += 1;
            // The address that was checked is the one that is dialled: nothing is looked up in between.
            match timeout(CONNECT_PATIENCE, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => why = format!("could not connect to {address}: {error}"),
                Err(_) => why = format!("could not connect to {address}: it does not answer"),
            }
            if tried == ADDRESSES_MAX {
                break;
            }
        }
        Err(why)
    }

    async fn addresses(&self, target: &Target, seat: &Arc<Semaphore>) -> Result<Vec<SocketAddr>, String> {
        if let Ok(ip) = target.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, target.port)]);
        }
        let failed = |error: &dyn std::fmt::Display| format!("could not look {} up: {error}", target.host);
        // A thread that looks up cannot be told to stop. Until it has, it keeps the seat.
        let seat = Arc::clone(seat).acquire_owned().await.map_err(|error| failed(&error))?;
        let (lookup, host, port) = (Arc::clone(&self.lookup), target.host.clone(), target.port);
        let looked_up = tokio::task::spawn_blocking(move || {
            let found = lookup(&host, port);
            drop(seat);
            found
        });
        looked_up.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}

/// What is left of an answer, and the connection that it comes by.
struct Rest {
    body: Incoming,
    _connection: Connection,
}

/// A connection, which ends with whoever waits for it.
struct Connection(tokio::task::JoinHandle<()>);

impl Rest {
    async fn read(mut self) {
        let mut read = 0;
        while let Some(Ok(frame)) = self.body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > BODY_BYTES_MAX {
                return;
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    target: &Target,
    letter: Letter,
) -> Result<(StatusCode, Rest), String> {
    let lost = |error: hyper::Error| format!("the connection to {} broke: {error}", target.host);
    let mut request = Request::post(&target.path)
        .header("host", &target.authority)
        .header("user-agent", concat!("kron-server/", env!("CARGO_PKG_VERSION")))
        .header("connection", "close");
    for (name, value) in &letter.headers {
        request = request.header(*name, value);
    }
    let body = Full::new(Bytes::from(letter.body));
    let request = request.body(body).map_err(|error| format!("this cannot be sent: {error}"))?;
    let mut settings = http1::Builder::new();
    settings.max_buf_size(HEAD_BYTES_MAX);
    let (mut sender, connection) = settings.handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let connection = Connection(tokio::spawn(async move {
        // What goes wrong is told to whoever waits for the answer.
        let _ = connection.await;
    }));
    let answer = sender.send_request(request).await.map_err(lost)?;
    let status = answer.status();
    Ok((status, Rest { body: answer.into_body(), _connection: connection }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    fn letter(url: &str) -> Letter {
        let body = r#"{"id":"evt_1"}"#.to_owned();
        Letter { url: url.into(), headers: std::array::from_fn(|_| ("x-kron-test", "1".into())), body }
    }

    fn dialer(openings: &[&str]) -> Dialer {
        let openings = openings.iter().map(|text| text.parse().unwrap()).collect();
        Dialer::new(Guard { ports: vec![443], http: true, openings }, None).unwrap()
    }

    async fn send(dialer: &Dialer, url: &str) -> Outcome {
        dialer.send(letter(url), &Arc::new(Semaphore::new(1))).await
    }

    fn error(outcome: &Outcome) -> &str {
        match outcome {
            Outcome::Failed { error, .. } => error,
            Outcome::Delivered(status) => panic!("it was delivered, with {status}"),
        }
    }

    /// A receiver that says the same to everybody, and counts them.
    async fn receiver(at: &str, answer: impl Into<Vec<u8>>) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind(at).await.unwrap();
        let (address, count, answer) =
            (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)), answer.into());
        let counted = Arc::clone(&count);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                tokio::spawn(async move {
                    read_request(&mut stream).await;
                    let _ = stream.write_all(&answer).await;
                });
            }
        });
        (address, count)
    }

    async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
        let mut read = Vec::new();
        while !read.ends_with(br#"{"id":"evt_1"}"#) {
            let mut some = [0; 1024];
            match stream.read(&mut some).await {
                Ok(0) | Err(_) => break,
                Ok(count) => read.extend(&some[..count]),
            }
        }
        String::from_utf8(read).unwrap()
    }

    #[tokio::test]
    async fn a_name_that_changes_its_mind_is_checked_each_time_and_what_was_checked_is_dialled() {
        // Two addresses of one host at one port: the first is open to webhooks, the second is not.
        let (open, told) = receiver("127.0.0.2:0", OK).await;
        let (inside, disturbed) = receiver(&format!("127.0.0.1:{}", open.port()), OK).await;
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let rebinding = move |_: &str, port: u16| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            let ip: IpAddr = if first { [127, 0, 0, 2].into() } else { [127, 0, 0, 1].into() };
            Ok(vec![SocketAddr::new(ip, port)])
        };
        let dialer = Dialer { lookup: Arc::new(rebinding), ..dialer(&[&open.to_string()]) };
        let url = format!("http://rebinding.test:{}/", open.port());
        assert_eq!(send(&dialer, &url).await, Outcome::Delivered(200));
        assert_eq!(asked.load(Ordering::SeqCst), 1, "between the check and the dial nobody is asked");
        let second = send(&dialer, &url).await;
        assert!(error(&second).contains("127.0.0.1, which is a loopback address"), "{second:?}");
        assert_eq!((told.load(Ordering::SeqCst), disturbed.load(Ordering::SeqCst)), (1, 0), "{inside}");
    }

    #[tokio::test]
    async fn of_several_addresses_only_those_are_dialled_that_may_be() {
        let (open, told) = receiver("127.0.0.2:0", OK).await;
        let (_, disturbed) = receiver(&format!("127.0.0.1:{}", open.port()), OK).await;
        let both = |_: &str, port: u16| {
            Ok(["169.254.169.254", "127.0.0.1", "::1", "127.0.0.2"]
                .map(|ip| SocketAddr::new(ip.parse().unwrap(), port))
                .to_vec())
        };
        let dialer = Dialer { lookup: Arc::new(both), ..dialer(&[&open.to_string()]) };
        let outcome = send(&dialer, &format!("http://both.test:{}/", open.port())).await;
        assert_eq!(outcome, Outcome::Delivered(200));
        assert_eq!((told.load(Ordering::SeqCst), disturbed.load(Ordering::SeqCst)), (1, 0));
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let (inside, disturbed) = receiver("127.0.0.1:0", OK).await;
        for place in [format!("http://{inside}/"), "http://169.254.169.254/latest/meta-data/".into()] {
            for status in [301, 302, 307, 308] {
                let answer =
                    format!("HTTP/1.1 {status} Moved\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
                let (open, _) = receiver("127.0.0.1:0", answer).await;
                let dialer = dialer(&[&open.to_string(), &inside.to_string()]);
                let outcome = send(&dialer, &format!("http://{open}/")).await;
                let error = format!("the receiver answered {status}, and redirects are not followed");
                assert_eq!(outcome, Outcome::Failed { status: Some(status), error });
            }
        }
        assert_eq!(disturbed.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn whoever_is_slow_is_given_up() {
        let patience = Duration::from_millis(300);
        // One accepts and is silent, one never stops beginning its answer, one does not even accept.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let drips = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (silent_at, drips_at) = (silent.local_addr().unwrap(), drips.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = drips.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
            while stream.write_all(b"x-more: 1\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        for address in [silent_at, drips_at] {
            let dialer = Dialer { patience, ..dialer(&[&address.to_string()]) };
            let outcome = send(&dialer, &format!("http://{address}/")).await;
            assert_eq!(error(&outcome), "no answer within 300ms");
        }
        // Names that nobody finds keep one thread, however often they are asked for.
        let looking = Arc::new(AtomicUsize::new(0));
        let (gate, open) = std::sync::mpsc::channel::<()>();
        let (count, open) = (Arc::clone(&looking), Mutex::new(open));
        let stuck = move |_: &str, _: u16| {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = open.lock().unwrap().recv();
            Ok(Vec::new())
        };
        let dialer = Dialer { patience, lookup: Arc::new(stuck), ..dialer(&[]) };
        let seat = Arc::new(Semaphore::new(1));
        for _ in 0..3 {
            let outcome = dialer.send(letter("https://stuck.test/"), &seat).await;
            assert_eq!(error(&outcome), "no answer within 300ms");
        }
        assert_eq!(looking.load(Ordering::SeqCst), 1);
        drop(gate);
    }

    #[tokio::test]
    async fn an_answer_that_never_ends_is_not_read_to_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let flood = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let much = vec![b'x'; 1 << 16];
            while stream.write_all(&much).await.is_ok() {
                count.fetch_add(much.len(), Ordering::SeqCst);
            }
        });
        let dialer = dialer(&[&address.to_string()]);
        assert_eq!(send(&dialer, &format!("http://{address}/")).await, Outcome::Delivered(200));
        flood.await.unwrap();
        // What was read, and what the host's buffers hold.
        assert!(sent.load(Ordering::SeqCst) < 64 << 20, "{}", sent.load(Ordering::SeqCst));

        let head = format!("HTTP/1.1 200 OK\r\nx-huge: {}\r\n\r\n", "a".repeat(1 << 20));
        let (address, _) = receiver("127.0.0.1:0", head).await;
        let outcome = send(&self::dialer(&[&address.to_string()]), &format!("http://{address}/")).await;
        assert!(error(&outcome).starts_with("the connection to 127.0.0.1 broke"), "{outcome:?}");
    }

    #[tokio::test]
    async fn a_connection_that_breaks_and_an_answer_that_is_none_are_failures() {
        for answer in [&b""[..], b"HTTP/1.1 2", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 999999 OK\r\n\r\n"] {
            let (address, _) = receiver("127.0.0.1:0", answer).await;
            let outcome = send(&dialer(&[&address.to_string()]), &format!("http://{address}/")).await;
            assert!(error(&outcome).starts_with("the connection to 127.0.0.1 broke"), "{outcome:?}");
        }
        for (status, is_delivered) in
            [(199, false), (200, true), (204, true), (299, true), (400, false), (500, false)]
        {
            let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
            let (address, _) = receiver("127.0.0.1:0", answer).await;
            let outcome = send(&dialer(&[&address.to_string()]), &format!("http://{address}/")).await;
            assert_eq!(matches!(outcome, Outcome::Delivered(_)), is_delivered, "{status}: {outcome:?}");
        }
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let outcome = send(&dialer(&[&closed.to_string()]), &format!("http://{closed}/")).await;
        assert!(error(&outcome).starts_with(&format!("could not connect to {closed}: ")), "{outcome:?}");
        let dialer = Dialer { lookup: Arc::new(|_, _| Ok(Vec::new())), ..dialer(&[]) };
        assert_eq!(
            error(&send(&dialer, "https://nobody.test/").await),
            "no address was found for nobody.test"
        );
    }

    #[tokio::test]
    async fn a_receiver_must_be_vouched_for_by_a_certificate_of_its_own_name() {
        let home = tempfile::tempdir().unwrap();
        let ca = home.path().join("ca.pem");
        let certified = rcgen::generate_simple_self_signed(vec!["hook.test".into()]).unwrap();
        std::fs::write(&ca, certified.cert.pem()).unwrap();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let request = read_request(&mut stream).await;
                assert!(request.starts_with("POST /hook HTTP/1.1\r\nhost: hook.test:"), "{request}");
                let _ = stream.write_all(OK).await;
            }
        });
        let guard =
            Guard { ports: vec![], http: false, openings: vec![address.to_string().parse().unwrap()] };
        let lookup: Lookup = Arc::new(move |_, _| Ok(vec![address]));
        let trusting =
            Dialer { lookup: Arc::clone(&lookup), ..Dialer::new(guard.clone(), Some(&ca)).unwrap() };
        let url = format!("https://hook.test:{}/hook", address.port());
        assert_eq!(send(&trusting, &url).await, Outcome::Delivered(200));
        let other = send(&trusting, &format!("https://other.test:{}/hook", address.port())).await;
        assert!(
            error(&other).starts_with("no secure connection to other.test: invalid peer certificate"),
            "{other:?}"
        );
        let stranger = Dialer { lookup, ..Dialer::new(guard.clone(), None).unwrap() };
        let unknown = send(&stranger, &url).await;
        assert!(error(&unknown).contains("invalid peer certificate: UnknownIssuer"), "{unknown:?}");

        std::fs::write(&ca, "nothing").unwrap();
        let why = Dialer::new(guard.clone(), Some(&ca)).unwrap_err();
        assert_eq!(why, format!("could not read the certificates in {}: there are none", ca.display()));
        assert!(Dialer::new(guard, Some(&home.path().join("none.pem"))).is_err());
    }
}
