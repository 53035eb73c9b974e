//! Cuts a stream into lines, in bounded memory.

use std::io;

use memchr::memchr;

use super::LINE_BYTES_MAX;

/// What stands between two line feeds.
#[derive(Clone, Copy)]
pub(super) enum Line<'b> {
    /// More than [`LINE_BYTES_MAX`]; it was not kept.
    TooLong,
    /// All of it, without the line feed.
    Whole(&'b [u8]),
}

/// Where in a line the bytes so far have ended.
#[derive(Default)]
pub(super) struct Lines {
    /// The beginning of a line whose end has not been read. Never longer than [`LINE_BYTES_MAX`].
    begun: Vec<u8>,
    /// Whether the rest of the line is skipped.
    skipping: bool,
}

impl Lines {
    /// Takes what comes next, and hands on every line that ends in it. Most lie in it as a whole, and are
    /// not copied.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Line<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let piece = &rest[..end];
            rest = &rest[end + 1..];
            if self.begun.is_empty() && !self.skipping && piece.len() <= LINE_BYTES_MAX {
                each(Line::Whole(piece))?;
                continue;
            }
            self.keep(piece);
            self.finish(&mut each)?;
        }
        self.keep(rest);
        Ok(())
    }

    /// Hands on what has begun: at a line feed, or at the end, where the last line may have none.
    pub(super) fn finish(&mut self, mut each: impl FnMut(Line<'_>) -> io::Result<()>) -> io::Result<()> {
        let line = if self.skipping { Line::TooLong } else { Line::Whole(&self.begun) };
        let result = each(line);
        self.begun.clear();
        self.skipping = false;
        result
    }

    fn keep(&mut self, piece: &[u8]) {
        self.skipping |= self.begun.len() + piece.len() > LINE_BYTES_MAX;
        if self.skipping {
            self.begun.clear();
        } else {
            self.begun.extend_from_slice(piece);
        }
    }
}
