//! From the network to the routes: connections are accepted, counted, held to their limits, and ended.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Response, header};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::limits::Limits;
use crate::pace::{Answering, Pace, Paced};

/// How a request came in.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// From where.
    pub peer: SocketAddr,
    /// At which of the host's addresses.
    pub local: SocketAddr,
    /// Whether there was room for no more than a glance: only what everybody may ask is answered.
    pub glance: bool,
    /// What it is held to.
    pub limits: Arc<Limits>,
    /// The room for bodies, of all connections together, in bytes.
    pub bodies: Arc<Semaphore>,
}

/// Where connections come from, and what they lead to.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub tcp: TcpListener,
    /// The certificate in use, for connections that begin with TLS.
    pub tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    /// What clients are held to.
    pub limits: Arc<Limits>,
    /// What answers.
    pub router: Router,
    /// Where those who follow events are told of them.
    pub followers: Handle,
    /// Becomes true when the server ends.
    pub ending: watch::Receiver<bool>,
}

/// How many connections more are taken when there is no room, so that the server can still be asked how it does.
const GLANCES_MAX: usize = 32;

/// And how many of them from one address.
const GLANCES_PER_ADDRESS: usize = 4;

/// How long each of them may take.
const GLANCE: Duration = Duration::from_secs(2);

/// How long to wait after a connection could not be accepted, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the reader of a connection holds at most, beside what a head may have.
const BUFFER_BYTES: usize = 64 * 1024;

/// How much of an answer the host keeps for a client that does not take it, beside what is on its way.
const UNSENT_BYTES: u32 = 64 * 1024;

impl Listener {
    /// Serves until the server ends, and then for as long as requests under way may take.
    pub async fn serve(self) {
        let seats = Seats::new(&self.limits);
        let bodies = Arc::new(Semaphore::new(self.limits.bodies_bytes));
        let mut ending = self.ending.clone();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = over(&mut ending) => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.tcp.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Whoever finds no seat is turned away at once, which costs the least.
            let Some(seat) = Seats::take(&seats, peer.ip()) else { continue };
            let Ok(local) = stream.local_addr() else { continue };
            let (limits, bodies) = (Arc::clone(&self.limits), Arc::clone(&bodies));
            let arrival = Arrival { peer, local, glance: seat.glance, limits, bodies };
            let conversation = Conversation {
                arrival,
                tls: self.tls.as_ref().map(|config| Arc::clone(&config.borrow())),
                router: self.router.clone(),
                followers: self.followers.clone(),
                ending: self.ending.clone(),
            };
            connections.spawn(async move {
                if let Err(error) = conversation.carry_on(stream).await {
                    tracing::debug!(%peer, error, "a connection ended early");
                }
                drop(seat);
            });
        }
        drop(self.tcp);
        let drained = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.limits.shutdown, drained).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "some requests did not end in time and were cut off"
            );
            connections.shutdown().await;
        }
    }
}

/// One connection from its beginning to its end.
struct Conversation {
    arrival: Arrival,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    followers: Handle,
    ending: watch::Receiver<bool>,
}

impl Conversation {
    async fn carry_on(self, stream: TcpStream) -> Result<(), String> {
        // Answers are written whole; waiting for more to send with them would only delay them.
        let _ = stream.set_nodelay(true);
        // Whoever takes nothing of its answer costs the host no more than this.
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        let limits = Arc::clone(&self.arrival.limits);
        let glance = self.arrival.glance;
        let within = |usual: Duration| if glance { usual.min(GLANCE) } else { usual };
        let pace = Pace::new(&limits, within(limits.first_byte));
        let stream = Paced::new(stream, Arc::clone(&pace));
        // What only some conversations need is put where others do not have to keep room for it.
        let talk: BoxFuture<'_, _> = match self.tls.clone() {
            None => Box::pin(self.talk(stream, pace)),
            Some(config) => Box::pin(async {
                pace.busy();
                let handshake = TlsAcceptor::from(config).accept(stream);
                let stream = tokio::time::timeout(within(limits.tls_handshake), handshake)
                    .await
                    .map_err(|_| "the handshake of TLS took too long")?
                    .map_err(|error| format!("no TLS: {error}"))?;
                pace.expect(within(limits.first_byte));
                self.talk(stream, pace).await
            }),
        };
        if !glance {
            return talk.await;
        }
        tokio::time::timeout(2 * GLANCE, talk)
            .await
            .unwrap_or_else(|_| Err("there was no room for it".into()))
    }

    /// Answers requests. Once one of them is answered by a stream of events, which may last for days, the conversation
    /// goes on among those who follow.
    async fn talk<I>(&self, io: I, pace: Arc<Pace>) -> Result<(), String>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let streams = Arc::new(Notify::new());
        let mut connection = Box::pin(self.connection(io, pace, Arc::clone(&streams)));
        tokio::select! {
            ended = &mut connection => return ended,
            () = streams.notified() => {}
        }
        // It ends when this does.
        let mut following = JoinSet::new();
        following.spawn_on(connection, &self.followers);
        match following.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(error)) => Err(error.to_string()),
            None => Ok(()),
        }
    }

    fn connection<I>(
        &self,
        io: I,
        pace: Arc<Pace>,
        streams: Arc<Notify>,
    ) -> impl Future<Output = Result<(), String>> + Send + 'static
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = Arc::clone(&self.arrival.limits);
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            // A second line: what `pace` counts apart is counted together here.
            .header_read_timeout(limits.idle.max(limits.first_byte) + limits.head)
            .max_header_size(limits.header_bytes)
            .max_buf_size(limits.header_bytes.max(BUFFER_BYTES))
            .keep_alive(!self.arrival.glance);
        if limits.header_count != Limits::default().header_count {
            protocol.max_headers(limits.header_count);
        }
        let (arrival, router) = (self.arrival.clone(), TowerToHyperService::new(self.router.clone()));
        let service = service_fn(move |mut request: Request<Incoming>| {
            pace.busy();
            request.extensions_mut().insert(arrival.clone());
            let (answer, pace, streams) = (router.call(request), Arc::clone(&pace), Arc::clone(&streams));
            async move {
                let Ok::<Response<_>, Infallible>(response) = answer.await;
                if is_stream(&response) {
                    streams.notify_one();
                }
                Ok::<_, Infallible>(response.map(|body| Answering::new(body, pace)))
            }
        });
        let mut ending = self.ending.clone();
        async move {
            let mut connection = std::pin::pin!(protocol.serve_connection(TokioIo::new(io), service));
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = over(&mut ending) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            ended.map_err(|error| match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            })
        }
    }
}

fn is_stream<B>(response: &Response<B>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// A thread of their own for those who follow events: however many they are, and however much they are sent at once,
/// everybody else gets a share of the processor as before.
#[derive(Debug)]
pub struct Followers(Option<Runtime>);

impl Followers {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the host has none to give.
    pub fn start() -> Result<Followers, String> {
        let mut thread = tokio::runtime::Builder::new_multi_thread();
        let runtime = thread.worker_threads(1).thread_name("kron-follow").enable_all().build();
        runtime.map(|runtime| Followers(Some(runtime))).map_err(|error| format!("no thread for it: {error}"))
    }

    /// Where to go on with those who follow.
    ///
    /// # Panics
    ///
    /// Never: the thread is there for as long as this is.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is taken by nobody else").handle().clone()
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Waits until the server ends.
async fn over(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

/// Who is connected.
#[derive(Debug)]
struct Seats {
    taken: Mutex<Taken>,
    most: usize,
    most_per_address: usize,
}

#[derive(Debug, Default)]
struct Taken {
    seats: usize,
    glances: usize,
    /// How many of both an address has.
    by_address: HashMap<IpAddr, (usize, usize)>,
}

/// A place for one connection, until it is dropped.
#[derive(Debug)]
struct Seat {
    seats: Arc<Seats>,
    address: IpAddr,
    glance: bool,
}

impl Seats {
    fn new(limits: &Limits) -> Arc<Seats> {
        Arc::new(Seats {
            taken: Mutex::default(),
            most: limits.connections,
            most_per_address: limits.connections_per_address,
        })
    }

    fn take(seats: &Arc<Seats>, from: IpAddr) -> Option<Seat> {
        let address = one_client(from);
        let mut taken = seats.taken();
        let (own, own_glances) = taken.by_address.get(&address).copied().unwrap_or_default();
        let room = taken.seats < seats.most && own < seats.most_per_address;
        if room {
            taken.seats += 1;
            taken.by_address.entry(address).or_default().0 += 1;
        } else if taken.glances < GLANCES_MAX && own_glances < GLANCES_PER_ADDRESS {
            taken.glances += 1;
            taken.by_address.entry(address).or_default().1 += 1;
        } else {
            return None;
        }
        Some(Seat { seats: Arc::clone(seats), address, glance: !room })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        let own = taken.by_address.entry(self.address).or_default();
        if self.glance {
            own.1 -= 1;
        } else {
            own.0 -= 1;
        }
        if *own == (0, 0) {
            taken.by_address.remove(&self.address);
        }
        if self.glance {
            taken.glances -= 1;
        } else {
            taken.seats -= 1;
        }
    }
}

/// The address that counts as one client: of IPv6 the network, since a host has all of it.
fn one_client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_counted_by_client_and_some_are_left_for_a_glance() {
        let limits = Limits { connections: 5, connections_per_address: 3, ..Limits::default() };
        let seats = Seats::new(&limits);
        let take = |address: &str| Seats::take(&seats, address.parse().unwrap());
        let first: Vec<Seat> = (0..7).map_while(|_| take("10.0.0.1")).collect();
        let glances = |seats: &[Seat]| seats.iter().filter(|seat| seat.glance).count();
        assert_eq!((first.len(), glances(&first)), (7, 4), "three seats, and then four glances");
        assert!(take("10.0.0.1").is_none() && take("::ffff:10.0.0.1").is_none(), "then nothing");
        // A host of IPv6 has many addresses and is one client.
        let second: Vec<Seat> = ["fd00::1", "fd00::2"].iter().filter_map(|address| take(address)).collect();
        assert_eq!(glances(&second), 0);
        assert!(take("fd00:0:0:1::1").unwrap().glance, "five are taken by all together");
        drop(first);
        assert!(!take("10.0.0.1").unwrap().glance, "who leaves makes room");
        drop(second);
        let taken = seats.taken();
        assert_eq!((taken.seats, taken.glances, taken.by_address.len()), (0, 0, 0));
    }

    #[test]
    fn however_many_addresses_there_are_there_is_an_end() {
        let seats = Seats::new(&Limits { connections: 1, ..Limits::default() });
        let all: Vec<Seat> =
            (0..=255).filter_map(|n| Seats::take(&seats, IpAddr::from([10, 0, 0, n]))).collect();
        assert_eq!(all.len(), 1 + GLANCES_MAX);
    }
}
