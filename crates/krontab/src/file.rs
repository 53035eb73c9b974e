//! A file becomes lines, each with its position.

use std::borrow::Cow;
use std::io::{self, Read};

use crate::code::Code;
use crate::problem::{Mistake, Problem, Problems, is_directional};
use crate::source::Source;
use crate::token::BLANKS;

/// The longest file: enough for 10,000 entries of a hundred characters.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// The longest line.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// The most jobs of one file. A host that has more keeps them in several.
pub const JOBS_MAX: usize = 10_000;

/// Reads a file, up to one byte more than a krontab may have: enough to tell that it is too long.
///
/// # Errors
///
/// If reading fails.
pub fn read(mut file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.by_ref().take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Takes bytes for text. A line that is none is told, and then left blank: what is wrong with the
/// others is still found. Of a file that cannot be a krontab at all, nothing is left.
pub(crate) fn decode<'b>(bytes: &'b [u8], problems: &mut Problems<'_>) -> Cow<'b, str> {
    if bytes.len() > FILE_BYTES_MAX {
        problems.add(too_long(problems.source()));
        return "".into();
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    if UTF_16.iter().any(|mark| bytes.starts_with(mark)) {
        let mistake = Mistake::new(Code::Encoding, 0..0, "expected UTF-8, but found UTF-16");
        problems.push(1, "", mistake.with_help(SAVE_AS));
        return "".into();
    }
    let mut text = String::with_capacity(bytes.len());
    for (line, number) in bytes.split_inclusive(|byte| *byte == b'\n').zip(1..) {
        match std::str::from_utf8(line) {
            Ok(line) => text.push_str(line),
            Err(error) => {
                // What comes before is valid, so the replacement character stands where the byte stood.
                let at = error.valid_up_to();
                let message = format!("expected UTF-8, but found the byte 0x{:02X}", line[at]);
                let mistake = Mistake::new(Code::Encoding, at..at + 1, message).with_help(SAVE_AS);
                problems.push(number, String::from_utf8_lossy(line).trim_end_matches('\n'), mistake);
                text.push('\n');
            }
        }
    }
    text.into()
}

/// How files in UTF-16 begin, whose every line would be wrong.
const UTF_16: [&[u8]; 2] = [&[0xFF, 0xFE], &[0xFE, 0xFF]];

const SAVE_AS: &str = "save it as UTF-8";

fn too_long(source: &Source) -> Problem {
    let message = format!("expected at most {FILE_BYTES_MAX} bytes (1 MiB), but the file is longer");
    Problem::of_file(source, Code::FileTooLong, message)
}

/// What some editors of Windows put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A line of a file.
pub(crate) struct Line<'t> {
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) content: Content<'t>,
}

pub(crate) enum Content<'t> {
    Blank,
    /// From its `#` on.
    Comment(&'t str),
    /// An entry with control characters; they have been told.
    Damaged(&'t str),
    Entry(&'t str),
    /// An entry that cannot be read at all; the problem has been told.
    Unreadable(&'t str),
}

/// Divides a text into lines, and tells the problems of the file itself. There are no lines in a file
/// that is too long.
pub(crate) fn lines<'t>(text: &'t str, problems: &mut Problems<'_>) -> Option<Vec<Line<'t>>> {
    if text.len() > FILE_BYTES_MAX {
        problems.add(too_long(problems.source()));
        return None;
    }
    let first_line = |text: &'t str| text.split('\n').next().unwrap_or_default();
    let text = match text.trim_start_matches(BYTE_ORDER_MARK) {
        rest if rest.len() < text.len() => {
            problems.push(
                1,
                first_line(text),
                Mistake::new(Code::ByteOrderMark, 0..3, "the file begins with a byte order mark")
                    .with_help("save it as UTF-8 without one"),
            );
            rest
        }
        _ => text,
    };
    line_endings(text, problems);
    if text.is_empty() {
        return Some(Vec::new());
    }
    // A text ends with a line feed: what follows the last one is no line.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let lines = text.split('\n').zip(1..).map(|(line, number)| {
        let line = line.trim_end_matches('\r');
        Line { number, content: content(number, line, problems) }
    });
    Some(lines.collect())
}

/// Tells once that lines end with CR LF, with the first of them.
fn line_endings(text: &str, problems: &mut Problems<'_>) {
    let mut endings = text.split('\n').zip(1..).filter(|(line, _)| line.ends_with('\r'));
    if let Some((line, number)) = endings.next() {
        let count = 1 + endings.count();
        let lines = if count == 1 { "1 line".into() } else { format!("{count} lines") };
        let end = line.len();
        let message = format!("expected lines to end with LF, but found CR LF at the end of {lines}");
        problems.push(
            number,
            line,
            Mistake::new(Code::LineEnding, end - 1..end, message)
                .with_help("it was saved on Windows: `krontab fmt` writes LF"),
        );
    }
}

fn content<'t>(number: usize, line: &'t str, problems: &mut Problems<'_>) -> Content<'t> {
    let trimmed = line.trim_matches(BLANKS);
    if trimmed.is_empty() {
        return Content::Blank;
    }
    if trimmed.starts_with('#') {
        return Content::Comment(trimmed.trim_end_matches([' ', '\t', '\r']));
    }
    if line.len() > LINE_BYTES_MAX {
        let message =
            format!("expected at most {LINE_BYTES_MAX} bytes (64 KiB) in a line, but found {}", line.len());
        problems.push(number, line, Mistake::new(Code::LineTooLong, 0..0, message));
        return Content::Unreadable(line);
    }
    if let Some((at, c)) = line.char_indices().find(|(_, c)| is_directional(*c)) {
        let message = format!("U+{:04X} changes the order in which the line is shown", u32::from(c));
        problems.push(
            number,
            line,
            Mistake::new(Code::TextDirection, at..at + c.len_utf8(), message)
                .with_help("what runs may differ from what is read"),
        );
    }
    let mut is_damaged = false;
    for (at, c) in line.char_indices().filter(|(_, c)| is_control(*c)) {
        let message = format!("expected text, but found the control character U+{:04X}", u32::from(c));
        problems.push(number, line, Mistake::new(Code::ControlCharacter, at..at + c.len_utf8(), message));
        is_damaged = true;
    }
    if is_damaged { Content::Damaged(line) } else { Content::Entry(line) }
}

/// Whether a character would do something to the terminal it is printed on.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control() && c != '\t'
}
