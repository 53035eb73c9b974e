//! A line becomes tokens.
//!
//! Only spaces and tabs separate. A double quote anywhere begins or ends quoting and is dropped; inside
//! quotes `\"` and `\\` stand for one character, and any other backslash for itself.

use std::borrow::Cow;
use std::ops::Range;

use crate::code::Code;
use crate::problem::Mistake;

/// A piece of a line between blanks, with its quotes taken away.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Token<'l> {
    text: Cow<'l, str>,
    span: Range<usize>,
    is_quoted: bool,
    /// Where stretches of the text begin, in it and in the line. Within a stretch both go on alike.
    stretches: Vec<(usize, usize)>,
}

impl<'l> Token<'l> {
    /// The text, without the quotes that were around parts of it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where it stands, in bytes of the line, with its quotes.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Whether a part of it stood between quotes.
    pub(crate) fn is_quoted(&self) -> bool {
        self.is_quoted
    }

    /// Where a part of the text stands, in bytes of the line.
    pub(crate) fn span_of(&self, range: Range<usize>) -> Range<usize> {
        let start = self.place(range.start);
        let end = match range.end.checked_sub(1) {
            Some(last) if last >= range.start => self.place(last) + 1,
            _ => start,
        };
        start..end
    }

    /// Where a byte of the text stands in the line. The end of the text counts as a byte.
    fn place(&self, at: usize) -> usize {
        let stretch = self.stretches.partition_point(|(text, _)| *text <= at);
        match stretch.checked_sub(1).map(|stretch| self.stretches[stretch]) {
            Some((text, line)) => line + (at - text),
            None => self.span.start,
        }
    }

    /// The whole text, as a piece that can be divided.
    pub(crate) fn piece(&self) -> Piece<'_> {
        Piece { text: &self.text, at: 0, token: self }
    }
}

/// The tokens of a line, and what is wrong with how it is divided.
#[derive(Debug)]
pub(crate) struct Split<'l> {
    pub(crate) tokens: Vec<Token<'l>>,
    pub(crate) mistakes: Vec<Mistake>,
    /// Whether the line goes on somewhere: in a quote that is not closed, or in the next line. The tokens
    /// are those before that, and it cannot be told what is missing.
    pub(crate) is_torn: bool,
}

/// Splits a line into tokens.
pub(crate) fn split(line: &str) -> Split<'_> {
    let mut split = Split { tokens: Vec::new(), mistakes: Vec::new(), is_torn: false };
    let mut end = line.trim_end_matches(BLANKS).len();
    if line[..end].ends_with('\\') {
        let mistake = Mistake::new(Code::TrailingBackslash, end - 1..end, "a backslash ends the line");
        split
            .mistakes
            .push(mistake.with_help("an entry is one line, however long: there is no continuation"));
        split.is_torn = true;
        end -= 1;
    }
    let mut at = 0;
    while let Some(c) = line[at..end].chars().next() {
        if BLANKS.contains(&c) {
            at += 1;
        } else if c.is_whitespace() {
            split.mistakes.push(odd_blank(at, c));
            at += c.len_utf8();
        } else {
            match token(line, at, end) {
                Ok(token) => {
                    at = token.span.end;
                    split.tokens.push(token);
                }
                Err(mistake) => {
                    // In the backslash at the end it has been told already.
                    split.mistakes.extend(Some(mistake).filter(|_| !split.is_torn));
                    split.is_torn = true;
                    break;
                }
            }
        }
    }
    split
}

pub(crate) const BLANKS: [char; 2] = [' ', '\t'];

/// The token that begins at a place of the line.
fn token(line: &str, start: usize, end: usize) -> Result<Token<'_>, Mistake> {
    let mut text = String::new();
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    let mut quote = None;
    let mut is_quoted = false;
    let mut stop = end;
    let mut chars = line[start..end].char_indices().map(|(at, c)| (start + at, c)).peekable();
    while let Some((at, c)) = chars.next() {
        let (at, c) = match c {
            _ if c.is_whitespace() && quote.is_none() => {
                stop = at;
                break;
            }
            '"' => {
                quote = if quote.is_some() { None } else { Some(at) };
                is_quoted = true;
                continue;
            }
            '\\' if quote.is_some() => {
                chars.next_if(|(_, next)| matches!(next, '"' | '\\')).unwrap_or((at, c))
            }
            _ => (at, c),
        };
        let goes_on = stretches.last().is_some_and(|(from, place)| place + (text.len() - from) == at);
        if !goes_on {
            stretches.push((text.len(), at));
        }
        text.push(c);
    }
    if let Some(open) = quote {
        return Err(Mistake::new(Code::OpenQuote, open..end, "this quote is not closed")
            .with_help("inside quotes write `\\\"` for a quote"));
    }
    let text = if is_quoted { Cow::Owned(text) } else { Cow::Borrowed(&line[start..stop]) };
    Ok(Token { text, span: start..stop, is_quoted, stretches })
}

/// Blanks that look like a space and are none come with text from web pages. They stood between words there.
fn odd_blank(at: usize, c: char) -> Mistake {
    let message = format!("expected a space or a tab, but found U+{:04X}", u32::from(c));
    Mistake::new(Code::Unexpected, at..at + c.len_utf8(), message)
        .with_help("it looks like a blank, but does not separate")
}

/// A part of a token's text, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'t> {
    pub(crate) text: &'t str,
    /// Where it begins in the token's text.
    at: usize,
    token: &'t Token<'t>,
}

impl<'t> Piece<'t> {
    /// Its place in bytes of the line.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span_of(0..self.text.len())
    }

    /// The place of a part of it.
    pub(crate) fn span_of(&self, range: Range<usize>) -> Range<usize> {
        self.token.span_of(self.at + range.start..self.at + range.end)
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> Piece<'t> {
        Piece { text: &self.text[range.clone()], at: self.at + range.start, token: self.token }
    }

    pub(crate) fn trimmed(&self) -> Piece<'t> {
        let start = self.text.len() - self.text.trim_start_matches(BLANKS).len();
        let end = self.text.trim_end_matches(BLANKS).len().max(start);
        self.slice(start..end)
    }

    pub(crate) fn split_once(&self, separator: char) -> Option<(Piece<'t>, Piece<'t>)> {
        let at = self.text.find(separator)?;
        Some((self.slice(0..at), self.slice(at + separator.len_utf8()..self.text.len())))
    }

    pub(crate) fn split(&self, separator: char) -> impl Iterator<Item = Piece<'t>> + use<'t> {
        let whole = *self;
        let mut at = 0;
        whole.text.split(separator).map(move |text| {
            let piece = whole.slice(at..at + text.len());
            at += text.len() + separator.len_utf8();
            piece
        })
    }

    /// "expected …, but found …" at this place.
    pub(crate) fn expected(&self, code: Code, expected: &str) -> Mistake {
        Mistake::expected(code, self.span(), expected, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let Split { tokens, mistakes, .. } = split(line);
        assert_eq!(mistakes, [], "{line}");
        tokens.iter().map(|token| token.text().to_owned()).collect()
    }

    #[test]
    fn quotes_group_and_are_dropped() {
        for (line, expected) in [
            ("", &[][..]),
            (" \t ", &[]),
            ("a b\tc", &["a", "b", "c"]),
            ("  a   b  ", &["a", "b"]),
            ("@seed(stable,salt=\"team alpha\")", &["@seed(stable,salt=team alpha)"]),
            ("a\"b c\"d", &["ab cd"]),
            ("\"a\"\"b\"", &["ab"]),
            ("\"\"", &[""]),
            ("x=\"\" y", &["x=", "y"]),
            (r#""say \"hi\"""#, &[r#"say "hi""#]),
            (r#""C:\dir\\x""#, &[r"C:\dir\x"]),
            // Outside quotes a backslash is itself, also before a quote.
            (r#"a\b\"c d""#, &[r"a\b\c d"]),
            (r"'a b'", &["'a", "b'"]),
            ("\"tab\there\"", &["tab\there"]),
            ("\"\u{a0}\"", &["\u{a0}"]),
            ("ä\"ö ü\"", &["äö ü"]),
        ] {
            assert_eq!(texts(line), expected, "{line}");
        }
    }

    #[test]
    fn every_byte_of_a_text_knows_its_place() {
        let line = r#"  ab"c d\"e\\"f g"#;
        let tokens = split(line).tokens;
        assert_eq!(tokens[0].text(), r#"abc d"e\f"#);
        assert_eq!(tokens[0].span(), 2..15);
        for (at, byte) in tokens[0].text().bytes().enumerate() {
            assert_eq!(line.as_bytes()[tokens[0].span_of(at..at + 1).start], byte);
        }
        assert_eq!(tokens[0].span_of(1..3), 3..6);
        assert_eq!(tokens[0].span_of(9..9), 15..15);
        assert_eq!(tokens[1].span(), 16..17);
        let empty = split("name=\"\"").tokens.remove(0);
        assert_eq!(empty.span_of(5..5), 5..5);
        assert_eq!(split("\"\"").tokens[0].span_of(0..0), 0..0);
    }

    #[test]
    fn what_cannot_be_told_apart_is_an_error() {
        for (line, code, span, count) in [
            ("a \"b c", Code::OpenQuote, 2..6, 1),
            ("a \"b\\\" c", Code::OpenQuote, 2..8, 1),
            ("a b\\", Code::TrailingBackslash, 3..4, 2),
            ("a \"b\\  ", Code::TrailingBackslash, 4..5, 1),
            ("a\u{a0}b", Code::Unexpected, 1..3, 2),
            ("a\u{3000}b", Code::Unexpected, 1..4, 2),
        ] {
            let Split { tokens, mistakes, .. } = split(line);
            let found: Vec<_> = mistakes.into_iter().map(|mistake| (mistake.code, mistake.span)).collect();
            assert_eq!(found, [(code, span)], "{line}");
            assert_eq!(tokens.len(), count, "{line}");
        }
    }
}
