//! The members of an object, read one by one: what was expected, what was found, and in which member.

use std::borrow::Cow;

use jiff::Timestamp;
use kron_schedule::Duration;

use super::mistake::Mistake;
use super::request::Object;
use super::{time, wire};
use crate::problem::quoted;
use kron_schedule::suggest::did_you_mean;

/// The members of one object, each there once.
pub(super) struct Members<'l> {
    /// The member that the object is; empty for the request itself.
    within: &'static str,
    list: Vec<(Cow<'l, str>, &'l str)>,
}

impl<'l> Members<'l> {
    pub(super) fn new(within: &'static str, list: Vec<(Cow<'l, str>, &'l str)>) -> Members<'l> {
        Members { within, list }
    }

    /// Refuses members of any other name. A member that nobody reads is a typing error that nobody sees.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Mistake> {
        let Some((name, _)) = self.list.iter().find(|(name, _)| !known.contains(&&**name)) else {
            return Ok(());
        };
        let help = did_you_mean(name, known.iter().copied())
            .unwrap_or_else(|| format!("expected {}", wire::either(known)));
        let message = format!("unknown member {}; {help}", quoted(name));
        Err(Mistake::new(wire::BAD_REQUEST, message).in_field(wire::path(self.within, name)))
    }

    /// A member that need not be there. `null` is as good as nothing.
    pub(super) fn optional(&self, name: &'static str) -> Option<Member<'l>> {
        let (_, value) = self.list.iter().find(|(other, _)| other == name)?;
        let within = self.within;
        Some(Member { within, name: name.into(), value }).filter(|_| *value != "null")
    }

    pub(super) fn required(&self, name: &'static str) -> Result<Member<'l>, Mistake> {
        self.optional(name).ok_or_else(|| {
            let field = wire::path(self.within, name);
            Mistake::new(wire::BAD_REQUEST, format!("missing member `{field}`")).in_field(field)
        })
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.list.retain(|(other, _)| other != name);
    }

    /// All members, whatever their names.
    pub(super) fn into_iter(self) -> impl Iterator<Item = Member<'l>> {
        let within = self.within;
        self.list.into_iter().map(move |(name, value)| Member { within, name, value })
    }
}

/// One member.
pub(super) struct Member<'l> {
    within: &'static str,
    name: Cow<'l, str>,
    value: &'l str,
}

impl<'l> Member<'l> {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What was sent.
    pub(super) fn json(&self) -> &'l str {
        self.value
    }

    /// Its path: `window.mode`.
    pub(super) fn field(&self) -> String {
        wire::path(self.within, &self.name)
    }

    /// Says that a mistake is in this member.
    pub(super) fn blame(&self, mistake: impl Into<Mistake>) -> Mistake {
        mistake.into().in_field(self.field())
    }

    fn wrong_type(&self, expected: &str) -> Mistake {
        self.blame(Mistake::expected(wire::BAD_REQUEST, expected, kind_of(self.json())))
    }

    pub(super) fn text(&self) -> Result<Cow<'l, str>, Mistake> {
        let json = self.json();
        let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
            return Err(self.wrong_type("a string"));
        };
        if !inner.contains('\\') {
            return Ok(Cow::Borrowed(inner));
        }
        // Only here it is seen that half of a surrogate pair stands alone.
        let text: String = serde_json::from_str(json).map_err(|error| {
            let mistake = Mistake { span: None, ..Mistake::not_json(&error) };
            self.blame(mistake)
        })?;
        Ok(Cow::Owned(text))
    }

    pub(super) fn flag(&self) -> Result<bool, Mistake> {
        match self.json() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong_type("`true` or `false`")),
        }
    }

    /// A whole number from 1 to `max`. JSON has one kind of number, so `2.0` is as whole as `2`.
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and at most `max`")]
    #[expect(clippy::cast_sign_loss, reason = "it is at least 1")]
    pub(super) fn count(&self, max: u32) -> Result<usize, Mistake> {
        let json = self.json();
        let expected = format!("a whole number from 1 to {max}");
        if kind_of(json) != NUMBER {
            return Err(self.wrong_type(&expected));
        }
        let number = json.parse().ok().filter(|number: &f64| number.fract() == 0.0);
        let number = number.filter(|number| (1.0..=f64::from(max)).contains(number));
        number
            .map(|number| number as usize)
            .ok_or_else(|| self.blame(Mistake::expected(wire::BAD_VALUE, expected, quoted(json))))
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T, Mistake> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let mut mistake = Mistake::expected(wire::BAD_VALUE, wire::either(&words), quoted(&text));
        if let Some(help) = did_you_mean(&text, words) {
            mistake.message = format!("{}; {help}", mistake.message);
        }
        Err(self.blame(mistake))
    }

    pub(super) fn time(&self) -> Result<Timestamp, Mistake> {
        let text = self.text()?;
        time::parse(&text)
            .map_err(|fault| self.blame(Mistake::expected(wire::BAD_TIME, fault.expected(), quoted(&text))))
    }

    pub(super) fn duration(&self) -> Result<Duration, Mistake> {
        self.text()?.parse().map_err(|error: kron_schedule::DurationError| self.blame(error))
    }

    /// An object within the request.
    pub(super) fn object(&self, within: &'static str) -> Result<Members<'l>, Mistake> {
        if kind_of(self.json()) != OBJECT {
            return Err(self.wrong_type(OBJECT));
        }
        Object::read(self.json())
            .and_then(|object| object.into_members(within))
            .map_err(|mistake| if mistake.field.is_some() { mistake } else { self.blame(mistake) })
    }
}

const NUMBER: &str = "a number";
const OBJECT: &str = "an object";

/// What kind of JSON a text is; its first character tells.
pub(super) fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => OBJECT,
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => NUMBER,
    }
}
