//! JSON objects that are written member by member, in an order for people.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::members::{Members, Raw, raw};

/// An object being written.
#[derive(Clone, Debug, Default)]
pub struct Object(Vec<(String, Raw)>);

impl Object {
    /// An empty one.
    #[must_use]
    pub fn new() -> Object {
        Object::default()
    }

    /// The same with a member more.
    #[must_use]
    pub fn with(mut self, name: &str, value: &impl Serialize) -> Object {
        self.0.push((name.to_owned(), raw(value)));
        self
    }

    /// The same with a member more, if there is a value.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<&impl Serialize>) -> Object {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The same with the members of another.
    #[must_use]
    pub fn and(mut self, other: &Object) -> Object {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// The same with members as they came.
    #[must_use]
    pub fn carrying(mut self, members: &Members) -> Object {
        self.0.extend(members.0.iter().map(|(name, raw)| (name.clone(), raw.clone())));
        self
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
