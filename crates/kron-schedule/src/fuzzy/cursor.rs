//! A place in a text, and the words from there on.

use alloc::string::String;
use core::ops::Range;

/// White space between words; any run of it counts as one.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Walks over a text of printable ASCII and blanks.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    /// Where the next word is.
    pub(super) fn peek(&self) -> Option<Range<usize>> {
        let rest = self.text[self.at..].trim_start_matches(BLANKS);
        let start = self.text.len() - rest.len();
        let length = rest.find(BLANKS).unwrap_or(rest.len());
        (length > 0).then_some(start..start + length)
    }

    /// The next word, if it is this one. Case does not count.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let Some(place) = self.peek().filter(|place| self.text[place.clone()].eq_ignore_ascii_case(word))
        else {
            return false;
        };
        self.at = place.end;
        true
    }

    pub(super) fn move_to(&mut self, at: usize) {
        self.at = at;
    }

    /// How far it has come.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Where something missing should have been: after the last word.
    pub(super) fn end(&self) -> Range<usize> {
        let end = self.text.trim_end_matches(BLANKS).len();
        end..end
    }

    /// A piece of the text.
    pub(super) fn slice(&self, place: Range<usize>) -> &'t str {
        &self.text[place]
    }

    /// A piece of the text in the words of a message: one blank between words, and not too long.
    pub(super) fn quoted(&self, place: Range<usize>) -> String {
        quoted(self.slice(place))
    }

    /// The whole text in the words of a message.
    pub(super) fn whole(&self) -> String {
        quoted(self.text)
    }
}

/// A text in the words of a message: one blank between words, no control characters, not too long.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(BLANKS).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        let room = QUOTED_CHARS_MAX.saturating_sub(out.chars().count());
        out.extend(word.chars().take(room).map(|c| if c.is_control() { '\u{fffd}' } else { c }));
        if word.chars().count() > room {
            out.push('…');
            break;
        }
    }
    out
}

/// The longest piece of a text quoted in a message; the longest sensible phrase has about 80.
const QUOTED_CHARS_MAX: usize = 100;
