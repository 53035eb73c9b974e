//! One JSON request per line in, one JSON answer per line out: Kron for other languages, and in bulk.
//!
//! [`run`] is the loop. `lines` cuts the input, `request`, `plain` and `member` read a line, `ops` answers it with
//! the engine (`job` for what a decision needs), and `answer`, `decision` and `mistake` are what is
//! written. Nearly every word that peers send or receive is in `wire`; the names of members stand where
//! they are read and written. The reference is `docs/reference/batch.md`.

mod answer;
mod decision;
mod job;
mod lines;
mod member;
mod mistake;
mod ops;
mod plain;
mod request;
mod time;
mod wire;

use std::io::{self, BufRead, ErrorKind, Write};

use kron_zones::Zones;
use lines::{Line, Lines};
use mistake::Mistake;
use ops::Desk;
use request::Request;

/// The longest line that is read. A longer one is answered with an error and skipped.
///
/// Nearly every krontab fits into one; a request without such a text has a few hundred bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The most occurrences in one answer. Whoever wants more asks again from the last one.
pub const COUNT_MAX: u32 = 10_000;

/// Answers are written out when they fill this much, or when the input pauses.
const OUTPUT_BYTES: usize = 64 << 10;

/// Answers every line of `input` with one line of `output`, in order; lines without a request are passed
/// over.
///
/// Nothing that a line holds ends the stream. Before it waits for more input it writes and flushes all
/// answers, so a peer that asks one thing at a time gets its answer. A peer that has gone away ends it
/// quietly.
///
/// ```
/// use krontab::Zones;
///
/// let request = r#"{"id":1,"op":"next","dialect":"kron","expr":"0 6 * * *","at":"2026-05-04T06:00:00Z","count":1}"#;
/// let mut answers = Vec::new();
/// krontab::batch::run(request.as_bytes(), &mut answers, &Zones::bundled())?;
/// assert_eq!(
///     String::from_utf8_lossy(&answers),
///     "{\"id\":1,\"ok\":true,\"result\":{\"occurrences\":[\"2026-05-05T06:00:00Z\"]}}\n",
/// );
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// If the input cannot be read or the output not written, other than because the peer has closed it.
pub fn run(input: impl BufRead, output: impl Write, zones: &Zones) -> io::Result<()> {
    match Stream::new(output, zones).answer_all(input) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// One conversation.
struct Stream<'z, W> {
    output: W,
    desk: Desk<'z>,
    /// Answers that are not written yet.
    pending: Vec<u8>,
}

impl<'z, W: Write> Stream<'z, W> {
    fn new(output: W, zones: &'z Zones) -> Stream<'z, W> {
        Stream { output, desk: Desk::new(zones), pending: Vec::new() }
    }

    fn answer_all(mut self, mut input: impl BufRead) -> io::Result<()> {
        let mut lines = Lines::default();
        loop {
            let bytes = match input.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    // What was asked before has its answers.
                    self.flush()?;
                    return Err(error);
                }
            };
            if bytes.is_empty() {
                lines.finish(|line| self.answer(line))?;
                return self.flush();
            }
            lines.feed(bytes, |line| self.answer(line))?;
            let length = bytes.len();
            input.consume(length);
            // The next read may wait for a peer that itself waits for these answers.
            self.flush()?;
        }
    }

    fn answer(&mut self, line: Line<'_>) -> io::Result<()> {
        let out = &mut self.pending;
        match line {
            Line::TooLong => answer::refuse(out, None, Mistake::line_too_long()),
            Line::Whole(bytes) => match str::from_utf8(bytes) {
                Err(error) => answer::refuse(out, None, Mistake::not_utf8(error)),
                Ok(text) if text.trim_ascii().is_empty() => {}
                Ok(text) => self.desk.answer(Request::read(text), out),
            },
        }
        if self.pending.len() >= OUTPUT_BYTES { self.write() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write()?;
        self.output.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        self.output.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}
