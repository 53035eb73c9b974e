//! Takes an object apart that is written plainly, as nearly all are.
//!
//! In bulk most of the time would go into reading JSON. So this reads a part of it quickly: objects,
//! texts without escapes, whole numbers, and the three words. Whatever else there is, wrong or right, is
//! left to `serde_json`, which knows all of JSON and how to say what is wrong with it.

/// How deep objects may lie in each other. Requests have two within them.
const DEPTH_MAX: usize = 4;

/// Calls a function with the name and the JSON of every member. If the result is `None`, the text is no
/// object of this kind, and what the function has been told is worth nothing.
pub(super) fn members<'l>(text: &'l str, each: impl FnMut(&'l str, &'l str)) -> Option<()> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.blanks();
    scanner.object(DEPTH_MAX, each)?;
    scanner.blanks();
    (scanner.at == text.len()).then_some(())
}

struct Scanner<'l> {
    text: &'l str,
    at: usize,
}

impl<'l> Scanner<'l> {
    fn object(&mut self, depth: usize, mut each: impl FnMut(&'l str, &'l str)) -> Option<()> {
        self.expect(b'{')?;
        self.blanks();
        if self.peek() == Some(b'}') {
            return self.expect(b'}');
        }
        loop {
            let name = self.string()?;
            self.blanks();
            self.expect(b':')?;
            self.blanks();
            let start = self.at;
            self.value(depth)?;
            each(name, &self.text[start..self.at]);
            self.blanks();
            if self.peek() == Some(b'}') {
                return self.expect(b'}');
            }
            self.expect(b',')?;
            self.blanks();
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' if depth > 0 => self.object(depth - 1, |_, _| {}),
            b'1'..=b'9' => self.number(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => None,
        }
    }

    /// A text without escapes; without its quotes.
    fn string(&mut self) -> Option<&'l str> {
        self.expect(b'"')?;
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let (eights, tail) = rest.as_chunks();
        let mut ends = eights.iter().map(|eight| end_in(u64::from_le_bytes(*eight))).enumerate();
        self.at += match ends.find_map(|(i, end)| end.map(|end| 8 * i + end)) {
            Some(end) => end,
            None => rest.len() - tail.len() + tail.iter().position(|byte| ends_text(*byte))?,
        };
        let text = &self.text[start..self.at];
        self.expect(b'"').map(|()| text)
    }

    /// A whole number that does not begin with 0. A point or an exponent is not expected after it.
    fn number(&mut self) -> Option<()> {
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        Some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.as_bytes()[self.at..].starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Whether a text without escapes cannot go on with this byte.
fn ends_text(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..b' ')
}

/// The first of eight bytes at which a text ends: all are looked at together, for the borrow that a
/// subtraction takes from a byte which is too small. It may disturb the bytes above, but none below.
fn end_in(eight: u64) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(EACH * u64::from(limit)) & !bytes;
    let is = |byte: u8| below(eight ^ (EACH * u64::from(byte)), 1);
    let found = (below(eight, b' ') | is(b'"') | is(b'\\')) & (EACH << 7);
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn taken_apart(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut found = Vec::new();
        members(text, |name, value| found.push((name, value))).map(|()| found)
    }

    #[test]
    fn plain_objects_are_taken_apart() {
        assert_eq!(taken_apart("{}"), Some(vec![]));
        let nested = " {\"id\" : 12,\"a\":{\"b\":{},\"é\":null}, \"t\":\"\" , \"f\":true }\r";
        let found = [("id", "12"), ("a", "{\"b\":{},\"é\":null}"), ("t", "\"\""), ("f", "true")];
        assert_eq!(taken_apart(nested), Some(found.to_vec()));
    }

    #[test]
    fn everything_else_is_left_alone() {
        for text in [
            "",
            "{",
            "{}x",
            "{}{}",
            "[]",
            "{\"a\":1,}",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":[1]}",
            "{\"a\":-1}",
            "{\"a\":0}",
            "{\"a\":1.5}",
            "{\"a\":1e5}",
            "{\"a\":1",
            "{\"a\":\"\\n\"}",
            "{\"a\\u0062\":1}",
            "{\"a\":\"\t\"}",
            "{\"a\":nul}",
            "{\"a\":truest}",
            "{\"a\":{\"b\":1}",
            "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{}}}}}}",
        ] {
            assert_eq!(taken_apart(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_ends_at_the_same_byte_however_it_is_looked_for(bytes in any::<[u8; 8]>(), common in "[a\"\\\\ !\x1f]{8}") {
            for eight in [bytes, *common.as_bytes().first_chunk().unwrap()] {
                let expected = eight.iter().position(|byte| ends_text(*byte));
                prop_assert_eq!(end_in(u64::from_le_bytes(eight)), expected);
            }
        }

        #[test]
        fn what_is_taken_apart_is_what_serde_finds(text in "(\\{|\\}|\"|a|é|:|,|1|0|\\.|null|true| |\t|\"a\":|\"b\":\\{\\}){0,14}") {
            if let Some(found) = taken_apart(&text) {
                let expected: BTreeMap<String, &RawValue> = serde_json::from_str(&text).unwrap();
                let found: BTreeMap<String, &str> = found.into_iter().map(|(name, json)| (name.into(), json)).collect();
                prop_assert_eq!(found, expected.into_iter().map(|(name, json)| (name, json.get())).collect());
            }
        }
    }
}
