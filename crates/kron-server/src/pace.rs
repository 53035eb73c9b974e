//! A connection that is held to its time: whoever says nothing, or takes nothing, for too long is cut off.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::limits::Limits;

/// Where a conversation is, which says how long the client may be silent.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// A request is being handled; its client may listen for as long as it likes.
    Busy,
    /// The head of a request has begun and must be whole by then.
    Head(Instant),
    /// Nothing has come yet, and something must by then.
    Silent(Instant),
}

/// The clock of one conversation, which those who carry it on tell how far it is.
#[derive(Debug)]
pub struct Pace {
    phase: Mutex<Phase>,
    head: Duration,
    idle: Duration,
    write: Duration,
}

impl Pace {
    /// A conversation in which something must be said within that time.
    #[must_use]
    pub fn new(limits: &Limits, within: Duration) -> Arc<Pace> {
        Arc::new(Pace {
            phase: Mutex::new(Phase::Silent(Instant::now() + within)),
            head: limits.head.min(within),
            idle: limits.idle,
            write: limits.write,
        })
    }

    /// Something must be said within that time, whatever was said before.
    pub fn expect(&self, within: Duration) {
        self.set(Phase::Silent(Instant::now() + within));
    }

    /// A request is being handled.
    pub fn busy(&self) {
        self.set(Phase::Busy);
    }

    /// It has been answered.
    fn answered(&self) {
        self.set(Phase::Silent(Instant::now() + self.idle));
    }

    fn heard(&self) {
        if let Phase::Silent(_) = self.phase() {
            self.set(Phase::Head(Instant::now() + self.head));
        }
    }

    /// An answer is still on its way, so the time between two requests has not begun.
    fn took(&self) {
        if let Phase::Silent(_) = self.phase() {
            self.answered();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase() {
            Phase::Busy => None,
            Phase::Head(by) | Phase::Silent(by) => Some(by),
        }
    }

    fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }
}

/// A connection with its clock.
#[derive(Debug)]
pub struct Paced<I> {
    io: I,
    pace: Arc<Pace>,
    reading: Pin<Box<Sleep>>,
    writing: Pin<Box<Sleep>>,
    /// Whether the client takes nothing just now.
    stalled: bool,
}

impl<I> Paced<I> {
    /// That connection, held to that pace.
    pub fn new(io: I, pace: Arc<Pace>) -> Paced<I> {
        let now = Instant::now();
        let timer = || Box::pin(sleep_until(now));
        Paced { io, pace, reading: timer(), writing: timer(), stalled: false }
    }

    /// What came of a write, or an error if nothing has for too long.
    fn judge(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = false;
            self.pace.took();
            return written;
        }
        if !self.stalled {
            self.stalled = true;
            self.writing.as_mut().reset(Instant::now() + self.pace.write);
        }
        ready!(self.writing.as_mut().poll(cx));
        Poll::Ready(Err(late("the client took nothing of its answer for too long")))
    }
}

fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl<I: AsyncRead + Unpin> AsyncRead for Paced<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if read.is_ready() {
            if buf.filled().len() > before {
                self.pace.heard();
            }
            return read;
        }
        let Some(deadline) = self.pace.deadline() else { return Poll::Pending };
        if self.reading.deadline() != deadline {
            self.reading.as_mut().reset(deadline);
        }
        ready!(self.reading.as_mut().poll(cx));
        Poll::Ready(Err(late("the client was silent for too long")))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Paced<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bytes);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// The body of an answer. When it is gone, the next request may come.
#[derive(Debug)]
pub struct Answering<B> {
    body: B,
    pace: Arc<Pace>,
}

impl<B> Answering<B> {
    /// That body, in that conversation.
    pub fn new(body: B, pace: Arc<Pace>) -> Answering<B> {
        Answering { body, pace }
    }
}

impl<B> Drop for Answering<B> {
    fn drop(&mut self) {
        self.pace.answered();
    }
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(3_600);
    /// Longer than anything takes that ends at all.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn limits() -> Limits {
        Limits { first_byte: LONG, head: LONG, idle: LONG, write: LONG, ..Limits::default() }
    }

    async fn read(paced: &mut Paced<tokio::io::DuplexStream>) -> io::ErrorKind {
        let read = async {
            loop {
                if let Err(error) = paced.read(&mut [0; 8]).await {
                    return error.kind();
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("it is cut off at some time")
    }

    #[tokio::test]
    async fn silence_is_cut_off_unless_a_request_is_handled() {
        let (_client, server) = duplex(64);
        let pace = Pace::new(&limits(), SHORT);
        let mut paced = Paced::new(server, Arc::clone(&pace));
        assert_eq!(read(&mut paced).await, io::ErrorKind::TimedOut);
        pace.busy();
        assert!(tokio::time::timeout(4 * SHORT, read(&mut paced)).await.is_err(), "nobody is late now");
        pace.expect(SHORT);
        assert_eq!(read(&mut paced).await, io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_head_has_its_time_from_its_first_byte_however_often_one_comes() {
        let (mut client, server) = duplex(64);
        // So long that no busy machine leaves out a byte for it.
        let pace = Pace::new(&Limits { head: 20 * SHORT, ..limits() }, LONG);
        let mut paced = Paced::new(server, pace);
        let trickle = async {
            loop {
                client.write_all(b"x").await.unwrap();
                tokio::time::sleep(SHORT / 5).await;
            }
        };
        tokio::select! {
            kind = read(&mut paced) => assert_eq!(kind, io::ErrorKind::TimedOut),
            () = trickle => {}
        }
    }

    #[tokio::test]
    async fn the_next_request_has_its_time_from_the_end_of_the_answer() {
        let (_client, server) = duplex(1 << 20);
        let pace = Pace::new(&Limits { idle: SHORT, ..limits() }, LONG);
        let mut paced = Paced::new(server, Arc::clone(&pace));
        pace.busy();
        drop(Answering::new((), pace));
        paced.write_all(b"the rest of it").await.unwrap();
        assert_eq!(read(&mut paced).await, io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn whoever_takes_nothing_is_cut_off_even_while_a_request_is_handled() {
        let (_client, server) = duplex(64);
        let pace = Pace::new(&Limits { write: SHORT, ..limits() }, LONG);
        pace.busy();
        let mut paced = Paced::new(server, pace);
        let written = tokio::time::timeout(PATIENCE, paced.write_all(&[0; 1_000])).await;
        assert_eq!(written.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
