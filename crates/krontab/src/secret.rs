//! What of a line may be the value of an environment variable, and so a secret.
//!
//! Lines are shown because something is wrong with them, so this takes nothing for granted: not that quotes
//! are closed, that the field is spelled `env`, that an equals sign follows it, or that the value ends where
//! the author thought. It rather hides too much.

use std::ops::Range;

use crate::field;
use kron_schedule::suggest::closest;

/// The values of variables in a line, in bytes of it, in order.
///
/// A value begins after `KEY=` behind a word like `env` (`ENV=`, `envs:`, `e"nv="`, `env `), and after a key
/// in capitals. What follows up to the next field or modifier is taken to belong to it.
pub(crate) fn values(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut state = State::Outside;
    let mut done = 0;
    for word in words(line) {
        if word.at < done {
            continue; // in quotes, and so a part of the value before it
        }
        let equals = word.text.find('=');
        let key = &word.text[..equals.unwrap_or(word.text.len())];
        let is_field = equals.is_some() && closest(key, field::NAMES).is_some_and(|name| name != "env");
        let begins = environment(&word.text).or_else(|| equals.filter(|_| is_setting(key)).map(|_| 0));
        let hidden = match (state, begins) {
            (State::Value, _) if !is_field => Some(0),
            (_, Some(from)) if from == word.text.len() => {
                state = if word.text.ends_with(|c: char| c.is_ascii_alphabetic()) {
                    State::Named
                } else {
                    State::Inside
                };
                continue;
            }
            (_, Some(from)) => Some(word.value(from)),
            (State::Inside | State::Named, None) if is_field || word.text.starts_with('@') => None,
            (State::Named, None) if equals.is_none() => continue,
            (State::Inside | State::Named, None) => Some(word.value(0)),
            (State::Outside | State::Value, _) => None,
        };
        let Some(from) = hidden else {
            state = State::Outside;
            continue;
        };
        let is_cut_off = from == word.text.len() && word.end == word.token_end;
        state = if is_cut_off { State::Value } else { State::Inside };
        done = word.token_end;
        found.push(word.place(from)..word.token_end);
    }
    found
}

/// The line with an asterisk for every character of these values. Columns stay as they are.
pub(crate) fn masked(line: &str, values: &[Range<usize>]) -> String {
    let mut values = values.iter().peekable();
    let mut shown = |(at, c): (usize, char)| {
        while values.next_if(|value| value.end <= at).is_some() {}
        let is_secret = c != '"' && values.peek().is_some_and(|value| value.start <= at);
        if is_secret { '*' } else { c }
    };
    line.char_indices().map(&mut shown).collect()
}

/// What the words before say about the next.
#[derive(Clone, Copy)]
enum State {
    Outside,
    /// After a word like `env`, which may be nothing but a word.
    Named,
    /// After a variable: more of its value may follow.
    Inside,
    /// After `KEY=` and a blank.
    Value,
}

/// Where `KEY=value` begins in a word that begins like `env`.
fn environment(word: &str) -> Option<usize> {
    let letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
    let name = &word[..letters];
    let after = word[letters..].chars().next();
    let is_env = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("env"));
    let is_meant = || matches!(after, Some('=' | ':')) && closest(name, field::NAMES) == Some("env");
    (is_env || is_meant()).then(|| letters + after.map_or(0, char::len_utf8))
}

/// Whether a key is one of a variable: no field is in capitals.
fn is_setting(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// What stands between two blanks, without its quotes.
struct Word {
    text: String,
    /// Where it begins and ends in the line.
    at: usize,
    end: usize,
    /// Where the token ends that it is a part of; blanks in quotes do not end it.
    token_end: usize,
    /// Where each byte of the text stands in the line.
    places: Vec<usize>,
}

impl Word {
    /// Where a byte of the text stands in the line.
    fn place(&self, at: usize) -> usize {
        self.places.get(at).copied().unwrap_or(self.end)
    }

    /// Where the value begins in `KEY=value`. What has no key is all value.
    fn value(&self, from: usize) -> usize {
        self.text[from..].find('=').map_or(from, |equals| from + equals + 1)
    }
}

/// The words of a line. Whatever looks like a blank parts them, in quotes too.
fn words(line: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut open: Option<Word> = None;
    let (mut quoted, mut escaped) = (false, false);
    let mut token_begins = 0; // the first word of the token
    for (at, c) in line.char_indices() {
        let is_blank = c.is_whitespace() || c.is_control();
        if is_blank {
            words.extend(open.take());
            if !quoted {
                words[token_begins..].iter_mut().for_each(|word| word.token_end = at);
                token_begins = words.len();
            }
            escaped = false;
            continue;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => {
                quoted = !quoted;
                // What a field has in quotes may begin with a variable.
                words.extend(open.take_if(|word| quoted && word.text.ends_with('=')));
                continue;
            }
            _ => {}
        }
        let end = at + c.len_utf8();
        let word = open.get_or_insert_with(|| Word {
            text: String::new(),
            at,
            end,
            token_end: line.len(),
            places: Vec::new(),
        });
        word.text.push(c);
        word.places.extend(at..end);
        word.end = end;
    }
    words.extend(open);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_found() {
        for (line, expected) in [
            ("env=A=b name=x", "env=A=* name=x"),
            ("@daily env=KEY=s=cret env=K=ü", "@daily env=KEY=****** env=K=*"),
            ("env=A=\"b c\" name=d", "env=A=\"***\" name=d"),
            ("\"env=A=b c\" name=d", "\"env=A=***\" name=d"),
            ("env=A=\"b \\\" c", "env=A=\"***\"**"),
            ("env=A", "env=*"),
            ("myenv=A=b", "myenv=A=b"),
            ("@daily envv=PW=hunter2 user=x", "@daily envv=PW=******* user=x"),
            ("@daily ENV=PW=é2", "@daily ENV=PW=**"),
            ("@daily env PW=hunter2 user=x", "@daily env PW=******* user=x"),
            ("env=A=env=b env=C=d", "env=A=***** env=C=*"),
            ("command=\"/bin/x env=A=b\"", "command=\"/bin/x env=A=*\""),
            // What is not a field as it should be.
            ("e\"nv=PASS=secret\" name=x", "e\"nv=PASS=******\" name=x"),
            ("env= PASS=secret name=x", "env= PASS=****** name=x"),
            ("env=PASS= secret name=x", "env=PASS= ****** name=x"),
            ("env=PASS =secret name=x", "env=**** =****** name=x"),
            ("env PASS = secret name=x", "env PASS = ****** name=x"),
            ("env = PASS=secret name=x", "env = *********** name=x"),
            ("env:PASS=secret", "env:PASS=******"),
            ("evn=PASS=secret", "evn=PASS=******"),
            ("env=secret", "env=******"),
            ("env=PASS=my secret @tz(UTC)", "env=PASS=** ****** @tz(UTC)"),
            ("env=PASS=-a --b=secret name=x", "env=PASS=** --b=****** name=x"),
            ("name=x\u{a0}env=PASS=secret", "name=x\u{a0}env=PASS=******"),
            ("name=x\u{1}env=PASS=secret", "name=x\u{1}env=PASS=******"),
            ("PASS=secret", "PASS=******"),
            ("@daily PASS=secret name=x", "@daily PASS=****** name=x"),
            ("command=\"PGPASSWORD=secret /bin/x", "command=\"PGPASSWORD=*************"),
            // What is none.
            ("0 0 * * * env python", "0 0 * * * env python"),
            (
                "@every 5m name=x description=\"the env of x\"",
                "@every 5m name=x description=\"the env of x\"",
            ),
            ("comand=/bin/x end", "comand=/bin/x end"),
        ] {
            assert_eq!(masked(line, &values(line)), expected);
        }
    }
}
