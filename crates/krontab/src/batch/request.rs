//! A line becomes a request: an object with an `id`, an `op`, and the members that the op takes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::member::{Members, kind_of};
use super::mistake::Mistake;
use super::plain;
use super::wire::{self, Op};

/// One line that asks something.
pub(super) struct Request<'l> {
    /// Echoed as it was sent, whatever it is; nothing if it could not be read.
    pub(super) id: Option<&'l str>,
    pub(super) question: Result<Question<'l>, Mistake>,
}

/// What is asked.
pub(super) struct Question<'l> {
    pub(super) op: Op,
    /// Without `id` and `op`, and with no others than the op takes.
    pub(super) members: Members<'l>,
}

impl<'l> Request<'l> {
    pub(super) fn read(line: &'l str) -> Request<'l> {
        match Object::read(line) {
            Ok(object) => match object.id.map(check_id).transpose() {
                Ok(_) => Request { id: object.id, question: Question::read(object) },
                Err(mistake) => Request { id: None, question: Err(mistake) },
            },
            Err(mistake) => Request { id: None, question: Err(mistake) },
        }
    }
}

impl<'l> Question<'l> {
    fn read(object: Object<'l>) -> Result<Question<'l>, Mistake> {
        let mut members = object.into_members("")?;
        let op = members.required("op")?.choice(wire::OPS).map_err(|mistake| match mistake.code {
            wire::BAD_VALUE => Mistake { code: wire::UNKNOWN_OP, ..mistake },
            _ => mistake,
        })?;
        members.remove("op");
        members.only(op.members())?;
        Ok(Question { op, members })
    }
}

/// How deep arrays and objects may lie in each other in an `id`.
const ID_DEPTH_MAX: usize = 64;

/// Refuses an `id` that common readers of JSON would not read back: one that is nested deeply, or has half
/// a surrogate pair.
fn check_id(id: &str) -> Result<(), Mistake> {
    let refused = |expected: &str, found: &str| {
        Err(Mistake::expected(wire::BAD_REQUEST, expected, found).in_field("id"))
    };
    if !id.contains(['[', '{', '\\']) {
        return Ok(());
    }
    let mut depth = 0;
    let mut quoted = false;
    // Whether the first half of a pair has just been read.
    let mut half = false;
    let mut rest = id;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let mut is_half = false;
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => {
                depth += 1;
                if depth > ID_DEPTH_MAX {
                    return refused("an id of at most 64 levels", "more");
                }
            }
            ']' | '}' if !quoted => depth -= 1,
            '\\' => {
                let code =
                    rest.strip_prefix('u').and_then(|rest| u16::from_str_radix(rest.get(..4)?, 16).ok());
                rest = rest.get(if code.is_some() { 5 } else { 1 }..).unwrap_or_default();
                match (code, half) {
                    (Some(0xDC00..=0xDFFF), true) => {
                        half = false;
                        continue;
                    }
                    (Some(0xDC00..=0xDFFF), false) => return refused("an id that is text", HALF_A_PAIR),
                    (Some(0xD800..=0xDBFF), false) => is_half = true,
                    _ => {}
                }
            }
            _ => {}
        }
        if half {
            return refused("an id that is text", HALF_A_PAIR);
        }
        half = is_half;
    }
    Ok(())
}

const HALF_A_PAIR: &str = "half of a surrogate pair";

/// The most members of one object. The largest request has 16.
const MEMBERS_MAX: usize = 64;

/// An object, taken apart but not read: its values are the JSON texts themselves.
pub(super) struct Object<'l> {
    id: Option<&'l str>,
    list: Vec<(Cow<'l, str>, &'l str)>,
    /// The first name that is one too many.
    surplus: Option<Surplus>,
}

enum Surplus {
    Members,
    Repeated(String),
}

impl<'l> Object<'l> {
    pub(super) fn read(text: &'l str) -> Result<Object<'l>, Mistake> {
        let mut object = Object::new();
        match plain::members(text, |name, value| object.push(name.into(), value)) {
            Some(()) => Ok(object),
            None => Object::read_any(text),
        }
    }

    fn new() -> Object<'l> {
        // Most requests have fewer members than this.
        Object { id: None, list: Vec::with_capacity(12), surplus: None }
    }

    fn push(&mut self, name: Cow<'l, str>, value: &'l str) {
        let repeated = self.list.iter().any(|(other, _)| *other == name);
        match &*name {
            // Kept even in an object that will be refused, for the answer.
            "id" if self.id.is_none() => self.id = Some(value),
            _ if self.surplus.is_some() => {}
            _ if repeated || name == "id" => self.surplus = Some(Surplus::Repeated(name.into_owned())),
            _ if self.list.len() == MEMBERS_MAX => self.surplus = Some(Surplus::Members),
            _ => self.list.push((name, value)),
        }
    }

    /// Reads whatever JSON there is.
    fn read_any(text: &'l str) -> Result<Object<'l>, Mistake> {
        serde_json::from_str(text).map_err(|error| {
            // JSON of another type is found out at its first character. Is the rest JSON at all?
            let mistake = match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) => return Mistake::not_json(&error),
                Ok(_) if error.classify() != Category::Data => return Mistake::not_json(&error),
                Ok(_) => kind_of(text.trim_ascii_start()),
            };
            Mistake::expected(wire::BAD_REQUEST, "an object", mistake)
        })
    }

    /// The members, if each is there once. `within` is the member that the object is; empty for the
    /// request itself, of which alone `id` is no member.
    pub(super) fn into_members(mut self, within: &'static str) -> Result<Members<'l>, Mistake> {
        if let Some(id) = self.id
            && !within.is_empty()
        {
            self.list.push(("id".into(), id));
        }
        match self.surplus {
            None => Ok(Members::new(within, self.list)),
            Some(Surplus::Members) => Err(Mistake::expected(
                wire::BAD_REQUEST,
                format_args!("at most {MEMBERS_MAX} members"),
                "more",
            )),
            Some(Surplus::Repeated(name)) => {
                let field = wire::path(within, &name);
                Err(Mistake::expected(wire::BAD_REQUEST, "each member once", "it twice").in_field(field))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut object = Object::new();
        while let Some(Name(name)) = map.next_key()? {
            let value: &RawValue = map.next_value()?;
            object.push(name, value.get());
        }
        Ok(object)
    }
}

#[derive(Deserialize)]
struct Name<'l>(#[serde(borrow)] Cow<'l, str>);
